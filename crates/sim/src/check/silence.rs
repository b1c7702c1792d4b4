//! When nobody writes and everything is acknowledged, only announcements and liveliness travel, and
//! little of those; user endpoints say nothing at all.

use super::Findings;
use crate::ledger::{Ledger, Quiet, ReaderRecord};

/// Announcements: a participant may send so much to the group, or to each address of its peers.
const OCTETS_PER_SECOND_PER_DESTINATION: u64 = 1_500;
/// Liveliness and announcements by unicast: a participant may send so much to each other one.
const OCTETS_PER_SECOND_PER_PAIR: u64 = 1_500;

/// While a reader does not take, or has no room for another instance.
const OCTETS_PER_SECOND_HELD_UP: u64 = 300_000;

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    let Some(quiet) = ledger.quiet else { return };
    let participants = quiet.participants;
    let pairs = participants * participants;
    let announced = participants * quiet.destinations;
    // A writer goes on asking a reader that has no room, and room may come one sample at a time.
    let mut readers = ledger.readers.iter().filter(|reader| reader.endpoint.is_alive());
    let held_up = !readers.all(ReaderRecord::can_hold_everything);
    let rate = announced * OCTETS_PER_SECOND_PER_DESTINATION
        + pairs * OCTETS_PER_SECOND_PER_PAIR
        + u64::from(held_up) * OCTETS_PER_SECOND_HELD_UP;
    let allowed = (i128::from(rate) * i128::from(quiet.lasting.0) / 1_000_000_000) as u64;
    if quiet.octets > allowed {
        findings.report(|| {
            let Quiet { datagrams, octets, .. } = quiet;
            format!("{octets} octets in {datagrams} datagrams travelled in silence, {allowed} are allowed")
        });
    }
    if quiet.user_submessages > 0 && !held_up {
        findings.report(|| format!("user endpoints sent {} submessages in silence", quiet.user_submessages));
    }
}
