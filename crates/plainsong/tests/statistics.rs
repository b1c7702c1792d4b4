//! What participants count is told to those who ask, and to nobody else.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::time::Instant;

use common::{PATIENCE, Point, fresh_domain, loopback, participant, reader, until, writer};
use plainsong::prelude::*;
use plainsong::sample::Sample;
use plainsong::statistics::{ParticipantStatistics, STATISTICS_TOPIC};

/// A participant that shares nothing with those of the other configuration, as if in another process.
fn stranger(domain: u16, name: &str, statistics: bool) -> DomainParticipant {
    let config = Config { announce_period_ms: 2_999, statistics, ..loopback() };
    let factory = DomainParticipantFactory::with_config(config);
    factory.create_participant(domain, name, QosSet::default()).unwrap()
}

/// The next sample of which that holds.
fn await_sample(
    reader: &DataReader<ParticipantStatistics>,
    mut holds: impl FnMut(&Sample<ParticipantStatistics>) -> bool,
) -> Sample<ParticipantStatistics> {
    let deadline = Instant::now() + PATIENCE;
    let waits = WaitSet::new();
    waits.attach(reader.status_condition(StatusKind::DataAvailable));
    loop {
        if let Some(found) = reader.take().unwrap().into_iter().find(&mut holds) {
            return found;
        }
        assert!(Instant::now() < deadline, "no such sample came");
        waits.wait(deadline - Instant::now()).unwrap();
    }
}

#[test]
fn an_observer_reads_what_others_count_until_they_leave() {
    let domain = fresh_domain();
    let (observer, observed) = (participant(domain), stranger(domain, "observed", true));
    let writer = writer::<Point>(&observed, "Counted", QosSet::writer().reliable().keep_all());
    let reader = reader::<Point>(&observed, "Counted", QosSet::reader().reliable().keep_all());
    until("the writer matches", || !writer.matched_subscriptions().unwrap().is_empty());
    for id in 0..10 {
        writer.write(&Point { id, ..Point::default() }).unwrap();
    }
    writer.wait_for_acknowledgments(PATIENCE).unwrap();

    let statistics = observer.observe_statistics().unwrap();
    let told = await_sample(&statistics, |it| it.info.valid_data);
    let (info, told) = (told.info, told.data.unwrap());
    assert_eq!(told.participant, observed.guid().to_bytes());
    assert_eq!((told.name.as_str(), told.process_id), ("observed", std::process::id()));
    let [of_writer] = told.writers.as_slice() else { panic!("{told:?}") };
    assert_eq!(of_writer.guid, writer.guid().to_bytes());
    assert_eq!((of_writer.topic.as_str(), of_writer.matched, of_writer.written), ("Counted", 1, 10));
    assert!(of_writer.written_bytes >= 10 * 12, "{of_writer:?}");
    let [of_reader] = told.readers.as_slice() else { panic!("{told:?}") };
    assert_eq!(of_reader.guid, reader.guid().to_bytes());
    assert_eq!((of_reader.received, of_reader.held, of_reader.lost), (10, 10, 0));
    assert_eq!(of_reader.received_bytes, of_writer.written_bytes);
    assert_eq!(of_reader.latencies.iter().sum::<u64>(), 10);
    assert!(of_reader.latency_ns(1.0, None).unwrap() > 0 && of_reader.latency_sum_ns > 0);

    // What is counted for the application itself is the same.
    let own = observed.statistics().unwrap();
    assert_eq!((&own.writers, &own.readers), (&told.writers, &told.readers));

    // It goes on, and what is taken is no more held.
    reader.take().unwrap();
    let later = await_sample(&statistics, |it| it.data.as_ref().is_some_and(|it| it.readers[0].held == 0));
    assert!(later.data.unwrap().time_ns > told.time_ns);

    // Nobody is shown the writer.
    let published = observer.state().unwrap().remote_endpoints.items;
    assert!(published.iter().all(|it| it.topic != STATISTICS_TOPIC || !it.is_writer), "{published:?}");

    drop((writer, reader, observed));
    let left = await_sample(&statistics, |it| !it.info.valid_data);
    assert_eq!(left.info.instance_handle, info.instance_handle);
}

#[test]
fn who_keeps_its_counters_to_itself_tells_nobody() {
    let domain = fresh_domain();
    let (observer, silent) = (participant(domain), stranger(domain, "silent", false));
    let statistics = observer.observe_statistics().unwrap();
    // One that tells comes later, and is heard first.
    let observed = stranger(domain, "observed", true);
    let told = await_sample(&statistics, |it| it.info.valid_data).data.unwrap();
    assert_eq!(told.name, "observed");
    assert_eq!(statistics.matched_publications().unwrap().len(), 1);
    drop((silent, observed));
}

#[test]
fn the_writer_is_there_while_somebody_reads() {
    let domain = fresh_domain();
    let (observer, observed) = (participant(domain), stranger(domain, "observed", true));
    let is_told = || {
        let limits = plainsong::state::StateLimits { internal_endpoints: true, ..Default::default() };
        let endpoints = observer.state_within(&limits).unwrap().remote_endpoints.items;
        endpoints.iter().any(|it| it.topic == STATISTICS_TOPIC)
    };
    for _ in 0..2 {
        let statistics = observer.observe_statistics().unwrap();
        await_sample(&statistics, |it| it.info.valid_data);
        assert!(is_told());
        drop(statistics);
        until("the writer leaves", || !is_told());
    }
    drop(observed);
}
