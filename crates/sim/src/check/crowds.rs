//! No address has more than its share of the places of a process for participants, however many of its
//! participants prove it, and no participant has more endpoints than it may (rule R3 of this implementation).

use super::Findings;
use crate::ledger::Ledger;

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for crowd in ledger.crowds.iter().filter(|crowd| crowd.known > crowd.allowed) {
        findings.report(|| {
            let (known, what, allowed) = (crowd.known, crowd.what, crowd.allowed);
            format!("{known} {what} of one stranger are known, {allowed} may be")
        });
    }
}
