//! When nobody writes and everything is acknowledged, only announcements and liveliness travel, and
//! little of those; user endpoints say nothing at all.

use super::Findings;
use crate::ledger::{Ledger, Quiet, ReaderRecord};

/// Announcements: a participant may send so much to the group, or to each address of its peers.
const OCTETS_PER_SECOND_PER_DESTINATION: u64 = 1_500;
/// Liveliness and announcements by unicast: a participant may send so much to each other one.
const OCTETS_PER_SECOND_PER_PAIR: u64 = 1_500;

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    let Some(quiet) = ledger.quiet else { return };
    let participants = quiet.participants;
    let pairs = participants * participants;
    let announced = participants * quiet.destinations;
    let rate = announced * OCTETS_PER_SECOND_PER_DESTINATION + pairs * OCTETS_PER_SECOND_PER_PAIR;
    let allowed = (i128::from(rate) * i128::from(quiet.lasting.0) / 1_000_000_000) as u64;
    if quiet.octets > allowed {
        findings.report(|| {
            let Quiet { datagrams, octets, .. } = quiet;
            format!("{octets} octets in {datagrams} datagrams travelled in silence, {allowed} are allowed")
        });
    }
    // A writer goes on asking a reader that has no room until it is told otherwise.
    let mut readers = ledger.readers.iter().filter(|reader| reader.endpoint.is_alive());
    if quiet.user_submessages > 0 && readers.all(ReaderRecord::can_hold_everything) {
        findings.report(|| format!("user endpoints sent {} submessages in silence", quiet.user_submessages));
    }
}
