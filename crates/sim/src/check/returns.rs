//! A participant that stood still for less than its lease, while somebody else proved to be it, is at its
//! place again soon after it runs on, is matched and heard there, and stays, whatever is claimed of it (rule
//! R8 of this implementation).

use super::{Findings, newcomers};
use crate::ledger::Ledger;

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    newcomers::check_all(&ledger.returns, findings);
}
