//! Where all places are taken by dead participants, whatever their leases and their endpoints, a newcomer
//! finds one within seconds, and who lives keeps its own (rule R3 of this implementation).

use super::Findings;
use crate::ledger::{Acquaintance, Ledger};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    check_all(&ledger.arrivals, findings);
}

pub(super) fn check_all(acquaintances: &[Acquaintance], findings: &mut Findings) {
    for it in acquaintances {
        let holds = [(it.is_there, "known"), (it.is_matched, "matched"), (it.receives, "in touch")];
        for (_, what) in holds.into_iter().filter(|(holds, _)| !holds) {
            findings.report(|| format!("{:?} is not {what} at {} ms", it.of, it.at.0 / 1_000_000));
        }
    }
}
