//! When nobody writes and everything is acknowledged, only announcements and liveliness travel, and
//! little of those; user endpoints say nothing at all, and timers go off for a reason.

use super::Findings;
use crate::ledger::{Endpoint, Ledger, Quiet, ReaderRecord};

/// Announcements: a participant may send so much to the group, or to each address of its peers.
const OCTETS_PER_SECOND_PER_DESTINATION: u64 = 1_500;
/// Liveliness and announcements by unicast: a participant may send so much to each other one.
const OCTETS_PER_SECOND_PER_PAIR: u64 = 1_500;

/// Announcements, liveliness and leases: timers of a participant go off so often.
const TIMERS_PER_SECOND: u64 = 150;
/// Deadlines: timers of an instance go off so often.
const TIMERS_PER_SECOND_PER_INSTANCE: u64 = 10;

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
    let seconds = quiet.lasting.0 as u64 / 1_000_000_000;
    let timers = seconds
        * (participants * TIMERS_PER_SECOND + watched_instances(ledger) * TIMERS_PER_SECOND_PER_INSTANCE);
    if quiet.timers > timers && !held_up {
        findings.report(|| format!("{} timers went off in silence, {timers} are allowed", quiet.timers));
    }
    if quiet.user_submessages > 0 && !held_up {
        findings.report(|| format!("user endpoints sent {} submessages in silence", quiet.user_submessages));
    }
}

/// Instances whose deadlines somebody watches, once for each who does.
fn watched_instances(ledger: &Ledger) -> u64 {
    let watches = |endpoint: &Endpoint| endpoint.is_alive() && !endpoint.qos.deadline.is_infinite();
    let writers = ledger.writers.iter().filter(|writer| watches(&writer.endpoint));
    let written: usize = writers.map(|writer| writer.instances().len()).sum();
    let readers = ledger.readers.iter().filter(|reader| watches(&reader.endpoint));
    let read: usize = readers.map(|reader| reader.known_instances.len()).sum();
    (written + read) as u64
}
