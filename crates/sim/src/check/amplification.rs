//! An address that only forged announcements named, or those of somebody who is elsewhere, receives at most
//! three times the octets of those, from each participant that heard them (RTPS 2.5 says nothing of it; it is
//! rule R1 of this implementation, after RFC 9000 §8).

use super::Findings;
use crate::ledger::Ledger;

const FACTOR: u64 = 3;

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    let stranger = ledger.stranger;
    if stranger.sent > FACTOR * stranger.received {
        findings.report(|| {
            format!("{} octets went to an address that {} had named", stranger.sent, stranger.received)
        });
    }
}
