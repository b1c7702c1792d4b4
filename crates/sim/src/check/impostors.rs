//! Nothing of a genuine participant that answers ends, changes or moves because somebody else says so from
//! where it is not, and nothing that is for it goes there (rule R8 of this implementation).

use super::Findings;
use crate::ledger::Ledger;

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for what in &ledger.altered {
        findings.report(|| format!("a stranger had its way: {what}"));
    }
    if ledger.diverted > 0 {
        findings.report(|| format!("{} submessages of users went to a stranger", ledger.diverted));
    }
}
