//! What other participants of Plainsong count, which they tell who asks: what they dropped, and readers that
//! are given nothing though somebody writes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plainsong::Error;
use plainsong::prelude::*;
use plainsong::statistics::{DropStatistics, ParticipantStatistics};

use super::codes::{self, Severity};
use super::{Patient, report::Report};
use crate::output::counted;
use crate::stop::Stop;

/// Counters are told once a second.
const TOLD_EVERY: Duration = Duration::from_millis(1_300);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Drops at endpoints and participants that say something, and what to do. What is not here is in order.
const TELLING: [(&str, Severity, &str); 12] = [
    ("ResourceLimit", Severity::Warning, "read faster, or raise RESOURCE_LIMITS of the reader"),
    (
        "BufferFull",
        Severity::Warning,
        "write more slowly, or see socket-overflow: too much is missing at once",
    ),
    ("SampleTooLarge", Severity::Warning, "raise PLAINSONG_SAMPLE_BYTES_MAX where the reader is"),
    (
        "Undecodable",
        Severity::Error,
        "define the type alike on both sides, and encode it as the reader expects",
    ),
    ("FragmentGeometry", Severity::Warning, "find out who sends fragments that contradict one another"),
    ("IncompleteSet", Severity::Warning, "keep coherent sets shorter, or make their topics reliable"),
    (
        "ReaderSilent",
        Severity::Warning,
        "see why the reliable reader does not answer: it is stopped, starved or cut off",
    ),
    ("SocketFull", Severity::Warning, "raise net.core.rmem_max and PLAINSONG_RECEIVE_BUFFER_BYTES"),
    (
        "PoolUsedUp",
        Severity::Warning,
        "raise PLAINSONG_MEMORY_POOL_BYTES_MAX, or keep fewer loans and long samples",
    ),
    ("Expired", Severity::Note, "lengthen LIFESPAN, or compare the clocks of the hosts"),
    (
        "DiscoveryLimit",
        Severity::Warning,
        "use fewer participants, or several domains; docs/limits.md has the limits",
    ),
    ("AmbiguousKeyHash", Severity::Note, "let writers send the key, not its hash alone"),
];

/// What each participant told first, and last.
#[derive(Default)]
pub(super) struct Counters(BTreeMap<[u8; 16], (ParticipantStatistics, ParticipantStatistics)>);

/// Reads what others tell, twice.
pub(super) fn read(
    participant: &DomainParticipant,
    reader: &DataReader<ParticipantStatistics>,
    stop: &Stop,
) -> Result<Counters, Error> {
    let mut counters = Counters::default();
    let is_there = participant
        .state()?
        .remote_participants
        .items
        .iter()
        .any(|it| it.tool.is_none() && it.product.as_deref() == Some("Plainsong"));
    let end = Instant::now() + TOLD_EVERY;
    while is_there && Instant::now() < end && !stop.is_told() {
        for sample in reader.take()? {
            let Some(told) = sample.data else { continue };
            match counters.0.get_mut(&told.participant) {
                Some((_, last)) => *last = told,
                None => _ = counters.0.insert(told.participant, (told.clone(), told)),
            }
        }
        stop.sleep(LOOK_AGAIN);
    }
    Ok(counters)
}

pub(super) fn check(patient: &Patient<'_>, report: &mut Report) {
    let all = &patient.counters.0;
    report.check("counters of others", format!("told by {}", counted(all.len() as u64, "participant")));
    let mut written: BTreeMap<[u8; 16], u64> = BTreeMap::new();
    for (first, last) in all.values() {
        let before = |guid| first.writers.iter().find(|it| it.guid == guid).map_or(0, |it| it.written);
        written.extend(last.writers.iter().map(|it| (it.guid, it.written.saturating_sub(before(it.guid)))));
    }
    let known = |guid: [u8; 16]| patient.view.endpoints.iter().find(|it| it.guid == Guid::from_bytes(guid));
    for (_, last) in all.values() {
        let of = format!("{} (process {} on {})", last.executable, last.process_id, last.host);
        find_drops(&of, &last.drops, report);
        for it in &last.writers {
            let entity = format!("topic {:?}: writer {} of {of}", it.topic, Guid::from_bytes(it.guid));
            find_drops(&entity, &it.drops, report);
        }
        for it in &last.readers {
            let entity = format!("topic {:?}: reader {} of {of}", it.topic, Guid::from_bytes(it.guid));
            find_drops(&entity, &it.drops, report);
            let matches = known(it.guid).map_or(&[][..], |endpoint| &endpoint.matches);
            let count: u64 = matches.iter().filter_map(|guid| written.get(&guid.to_bytes())).sum();
            if it.received == 0 && count > 0 {
                let drops: Vec<_> = it.drops.iter().map(|it| format!("{} {}", it.reason, it.count)).collect();
                let drops = if drops.is_empty() { "it dropped nothing".to_owned() } else { drops.join(", ") };
                let what =
                    format!("its writers wrote {count} samples meanwhile, and it was given none: {drops}");
                report.find(codes::READER_NOTHING, Severity::Warning, entity, what, None);
            }
        }
    }
}

fn find_drops(entity: &str, drops: &[DropStatistics], report: &mut Report) {
    for it in drops {
        let Some((_, severity, cure)) = TELLING.iter().find(|(reason, _, _)| *reason == it.reason) else {
            continue;
        };
        let what = format!("it dropped {}: {}", counted(it.count, "time"), it.reason);
        report.find(codes::DROPPED, *severity, entity, what, Some((*cure).to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use plainsong::drops::DropReason;

    use super::*;

    #[test]
    fn reasons_are_those_that_there_are() {
        for (name, _, _) in TELLING {
            assert!(DropReason::ALL.iter().any(|reason| format!("{reason:?}") == name), "{name}");
        }
    }

    #[test]
    fn what_says_something_is_found() {
        let drop = |reason: &str| {
            let mut drop = DropStatistics::default();
            (drop.reason, drop.count) = (reason.into(), 3);
            drop
        };
        let mut report = Report::default();
        find_drops("a reader", &[drop("Duplicate"), drop("Undecodable")], &mut report);
        let [finding] = &report.findings[..] else { panic!("{report:?}") };
        assert_eq!((finding.code, finding.severity), ("dropped", Severity::Error));
        assert_eq!(finding.what, "it dropped 3 times: Undecodable");
    }
}
