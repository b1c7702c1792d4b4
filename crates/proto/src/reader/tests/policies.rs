//! HISTORY, RESOURCE_LIMITS, OWNERSHIP, LIFESPAN, DEADLINE, DESTINATION_ORDER,
//! TIME_BASED_FILTER, and the statuses they raise.

use super::*;
use crate::policy_id::PolicyId;
use crate::qos::{DestinationOrder, Ownership, ResourceLimits};
use crate::status::RejectReason;

const SECOND: Duration = Duration::from_secs(1);

fn ms(millis: i64) -> Duration {
    Duration::from_millis(millis)
}

fn strong(strength: i32) -> QosSet {
    QosSet { ownership: Ownership::Exclusive, ownership_strength: strength, ..QosSet::writer() }
}

fn exclusive() -> Bench {
    Bench::new(QosSet { ownership: Ownership::Exclusive, ..QosSet::reader().reliable().keep_all() })
}

#[test]
fn keep_last_keeps_the_last_of_each_instance() {
    let mut bench = Bench::new(QosSet::reader().reliable().keep_last(2));
    bench.matched(1, QosSet::writer());
    for number in 1..=5 {
        bench.data(1, number, (number % 2) as u8, number as u8).unwrap();
    }
    assert_eq!(bench.values(), [2, 4, 3, 5]);
    assert_eq!(bench.reader.sample_lost_status().total_count, 0, "replaced is not lost");
    bench.data(1, 6, 0, 6).unwrap();
    bench.dispose(1, 7, 0).unwrap();
    assert_eq!(bench.values(), [6], "a dispose replaces no data");
}

#[test]
fn a_reliable_sample_without_room_is_not_acknowledged_until_there_is() {
    let mut qos = QosSet::reader().reliable().keep_all();
    qos.resource_limits = ResourceLimits { max_samples: 2, ..ResourceLimits::default() };
    let mut bench = Bench::new(qos);
    bench.matched(1, QosSet::writer());
    bench.heartbeat(1, 1, 0, true).unwrap();
    for number in 1..=4 {
        bench.data(1, number, 1, number as u8).unwrap();
    }
    assert_eq!(bench.reported(StatusKind::SampleRejected), 1, "once for the sample, not for each try");
    let status = bench.reader.sample_rejected_status();
    assert_eq!((status.count.total_count, status.last_reason), (1, RejectReason::SamplesLimit));
    assert_eq!(status.last_instance, handle(1));
    bench.acks();
    bench.heartbeat(1, 1, 4, false).unwrap();
    assert_eq!(bench.acks(), [Ack { base: 3, missing: vec![], final_flag: true }], "1 and 2 only; 3 is here");
    assert_eq!(bench.values(), [1, 2]);
    bench.out.clear();
    assert_eq!(bench.reader.next_timeout(), Some(bench.now.mono), "there is something to say at once");
    bench.pass(Duration::ZERO);
    assert_eq!(bench.acks(), [Ack { base: 5, missing: vec![], final_flag: true }]);
    assert!(bench.out.events.iter().any(|event| matches!(event, Event::DataAvailable { .. })));
    assert_eq!(bench.values(), [3, 4]);
}

#[test]
fn each_limit_rejects_by_its_name() {
    let cases = [
        (ResourceLimits { max_instances: 1, ..ResourceLimits::default() }, RejectReason::InstancesLimit),
        (ResourceLimits { max_samples: 2, ..ResourceLimits::default() }, RejectReason::SamplesLimit),
        (
            ResourceLimits { max_samples_per_instance: 2, ..ResourceLimits::default() },
            RejectReason::SamplesPerInstanceLimit,
        ),
    ];
    for (resource_limits, reason) in cases {
        let mut bench = Bench::new(QosSet { resource_limits, ..QosSet::reader().keep_all() });
        bench.matched(1, QosSet::writer());
        bench.data(1, 1, 1, 1).unwrap();
        bench.data(1, 2, 1, 2).unwrap();
        let key = if reason == RejectReason::InstancesLimit { 2 } else { 1 };
        assert_eq!(bench.data(1, 3, key, 3), Err(DropReason::ResourceLimit));
        assert_eq!(bench.reader.sample_rejected_status().last_reason, reason);
        assert_eq!(bench.values(), [1, 2]);
        bench.dispose(1, 4, 1).unwrap();
        bench.take();
        bench.data(1, 5, key, 5).unwrap();
        assert_eq!(bench.values(), [5], "there is room again");
    }
}

#[test]
fn fact_31_the_strongest_writer_owns_the_instance_and_ties_go_to_the_lower_guid() {
    let mut bench = exclusive();
    for (number, strength) in [(1, 3), (2, 4), (3, 4)] {
        bench.matched(number, strong(strength));
    }
    bench.data(1, 1, 1, 10).unwrap();
    bench.data(3, 1, 1, 30).unwrap();
    assert_eq!(bench.data(1, 2, 1, 11), Err(DropReason::NotOwner));
    bench.data(2, 1, 1, 20).unwrap();
    assert_eq!(bench.data(3, 2, 1, 31), Err(DropReason::NotOwner), "equal strength, higher GUID");
    bench.data(1, 3, 2, 12).unwrap();
    assert_eq!(bench.values(), [10, 30, 20, 12], "ownership is per instance");
    assert_eq!(bench.dispose(1, 4, 1), Err(DropReason::NotOwner));
    bench.dispose(2, 2, 1).unwrap();
    assert_eq!(bench.data(1, 5, 1, 13), Err(DropReason::NotOwner), "a dispose keeps ownership");
    bench.matched(1, strong(5));
    bench.take();
    bench.data(1, 6, 1, 14).unwrap();
    assert_eq!(bench.values(), [14], "a change of strength acts at once");
}

#[test]
fn ownership_passes_to_the_strongest_of_those_that_still_write_the_instance() {
    let mut bench = exclusive();
    (1..=3).for_each(|number| bench.matched(number, strong(i32::from(number))));
    bench.data(1, 1, 1, 11).unwrap();
    bench.data(2, 1, 1, 21).unwrap();
    bench.data(3, 1, 1, 31).unwrap();
    bench.unregister(3, 2, 1).unwrap();
    assert_eq!(bench.data(1, 2, 1, 12), Err(DropReason::NotOwner), "the second is there, and stronger");
    bench.data(2, 2, 1, 22).unwrap();
    assert_eq!(bench.values(), [11, 21, 31, 22]);
    bench.reader.unmatch_writer(bench.now, writer(2), &mut bench.out);
    bench.data(1, 3, 1, 13).unwrap();
    assert_eq!(bench.values(), [13]);
}

#[test]
fn fact_31_ownership_passes_on_when_the_owner_unregisters_leaves_or_misses_its_deadline() {
    let lose: [fn(&mut Bench); 3] = [
        |bench| bench.unregister(2, 2, 1).unwrap(),
        |bench| bench.reader.unmatch_writer(bench.now, writer(2), &mut bench.out),
        |bench| bench.pass(Duration::from_secs(3)),
    ];
    for lose in lose {
        let mut bench = exclusive();
        let qos = QosSet { deadline: Duration::from_secs(2), ..bench.reader.qos().clone() };
        bench.reader.set_qos(bench.now, qos);
        bench.matched(1, strong(1));
        bench.matched(2, strong(2));
        bench.data(2, 1, 1, 20).unwrap();
        assert_eq!(bench.data(1, 1, 1, 10), Err(DropReason::NotOwner));
        lose(&mut bench);
        bench.data(1, 2, 1, 11).unwrap();
        let samples = bench.take();
        assert_eq!(values(&samples), [20, 11]);
        assert_eq!(samples.len(), 2, "writer 1 kept the instance alive all the time");
    }
}

#[test]
fn fact_34_lifespan_runs_from_the_source_timestamp() {
    let mut bench = Bench::reliable();
    bench.matched(2, QosSet { lifespan: ms(250), ..QosSet::writer() });
    let written = bench.now.wall;
    bench.data_at(2, 1, 1, 1, written).unwrap();
    bench.pass(ms(100));
    bench.data_at(2, 2, 1, 2, written.plus(ms(100))).unwrap();
    let late = bench.data_at(2, 3, 1, 3, written.plus(ms(-200)));
    assert_eq!(late, Err(DropReason::Expired), "dead on arrival");
    bench.now.mono = bench.now.mono.after(ms(160)).unwrap();
    assert_eq!(bench.values(), [2], "expired samples are never returned, even if no timer ran");
    bench.data_at(2, 4, 1, 4, bench.now.wall).unwrap();
    assert!(bench.reader.has_data(0xff, 0xff, 0xff));
    bench.pass(ms(300));
    assert!(!bench.reader.has_data(0xff, 0xff, 0xff), "the timer removed it");
    let inline = InlineQos { lifespan: Some(ms(50)), ..InlineQos::default() };
    bench.data_with(1, 1, &inline, &payload(1, 9), false).unwrap();
    bench.pass(ms(60));
    assert!(bench.take().is_empty(), "a lifespan may come with the sample");
}

#[test]
fn fact_33_a_missed_deadline_is_told_per_instance_and_again_each_period() {
    let mut bench = Bench::new(QosSet { deadline: SECOND, ..QosSet::reader().reliable().keep_all() });
    bench.matched(1, QosSet::writer());
    bench.heartbeat(1, 1, 0, true).unwrap();
    bench.data(1, 1, 1, 1).unwrap();
    bench.data(1, 2, 2, 2).unwrap();
    for number in 3..7 {
        bench.pass(ms(600));
        bench.data(1, number, 1, 1).unwrap();
    }
    let status = bench.reader.requested_deadline_missed_status();
    assert_eq!((status.count.total_count, status.last_instance), (2, handle(2)), "2.4 s: two periods");
    bench.pass(ms(1_500));
    let status = bench.reader.requested_deadline_missed_status();
    assert_eq!((status.count.total_count, status.count.total_count_change), (4, 2), "both this time");
    assert!(bench.reported(StatusKind::RequestedDeadlineMissed) >= 3);
    bench.dispose(1, 7, 1).unwrap();
    bench.unregister(1, 8, 2).unwrap();
    bench.pass(Duration::from_secs(10));
    assert_eq!(bench.reader.requested_deadline_missed_status().count.total_count_change, 0);
    assert_eq!(bench.reader.next_timeout(), None, "what is not alive has no deadline");
    bench.data(1, 9, 1, 1).unwrap();
    bench.pass(ms(1_100));
    assert_eq!(bench.reader.requested_deadline_missed_status().count.total_count_change, 1, "re-armed");
}

#[test]
fn a_deadline_set_later_watches_instances_that_fell_silent_before() {
    let mut bench = Bench::reliable();
    bench.data(1, 1, 1, 1).unwrap();
    bench.pass(Duration::from_secs(10));
    bench.reader.set_qos(bench.now, QosSet { deadline: SECOND, ..bench.reader.qos().clone() });
    bench.pass(ms(900));
    assert_eq!(bench.reader.requested_deadline_missed_status().count.total_count, 0, "it begins anew");
    bench.pass(ms(200));
    assert_eq!(bench.reader.requested_deadline_missed_status().count.total_count, 1);
    bench.reader.set_qos(bench.now, QosSet { deadline: Duration::INFINITE, ..bench.reader.qos().clone() });
    bench.pass(Duration::from_secs(10));
    assert_eq!(bench.reader.requested_deadline_missed_status().count.total_count, 1);
    assert_eq!(bench.reader.next_timeout(), None);
}

#[test]
fn fact_35_by_source_timestamp_late_samples_find_their_place() {
    let mut qos = QosSet::reader().reliable().keep_last(3);
    qos.destination_order = DestinationOrder::BySourceTimestamp;
    let mut bench = Bench::new(qos);
    bench.matched(1, QosSet::writer());
    bench.matched(2, QosSet::writer());
    let at = |millis: i64| Time(1_700_000_000_000_000_000).plus(ms(millis));
    bench.data_at(1, 1, 1, 10, at(10)).unwrap();
    bench.data_at(1, 2, 1, 30, at(30)).unwrap();
    bench.data_at(2, 1, 1, 20, at(20)).unwrap();
    assert_eq!(bench.data_at(2, 2, 1, 5, at(5)), Err(DropReason::OutOfOrder), "older than a full history");
    bench.data_at(2, 3, 1, 30, at(30)).unwrap();
    assert_eq!(bench.values(), [20, 30, 30]);
    assert_eq!(bench.data_at(2, 4, 1, 29, at(29)), Err(DropReason::OutOfOrder), "newer ones were taken");
    bench.data_at(2, 5, 1, 40, at(40)).unwrap();
    assert_eq!(bench.values(), [40]);
}

#[test]
fn fact_36_without_a_timestamp_the_time_of_reception_stands_in() {
    let mut bench = Bench::reliable();
    let context = MessageContext { timestamp: None, ..bench.context(1) };
    let octets = payload(1, 1);
    bench.reader.on_data(bench.now, &context, &plain(1, &octets), &mut bench.out).unwrap();
    let sample = bench.take().pop().unwrap();
    assert_eq!(sample.info.source_timestamp, bench.now.wall);
    assert_eq!(sample.info.reception_timestamp, bench.now.wall);
}

#[test]
fn fact_32_filtered_samples_are_acknowledged_and_the_last_is_shown_when_the_writer_stops() {
    let mut bench =
        Bench::new(QosSet { time_based_filter: SECOND, ..QosSet::reader().reliable().keep_all() });
    bench.matched(1, QosSet::writer());
    bench.heartbeat(1, 1, 0, true).unwrap();
    let mut shown = Vec::new();
    for number in 1..=35 {
        bench.data(1, number, 1, number as u8).unwrap();
        shown.extend(bench.values());
        bench.pass(ms(100));
    }
    assert_eq!(shown, [1, 11, 21, 31]);
    bench.heartbeat(1, 1, 35, false).unwrap();
    assert_eq!(bench.acks().last().unwrap().base, 36);
    bench.out.clear();
    bench.pass(Duration::from_secs(2));
    assert!(bench.out.events.iter().any(|event| matches!(event, Event::DataAvailable { .. })));
    assert_eq!(bench.values(), [35]);
    assert_eq!(bench.reader.next_timeout(), None);
    bench.data(1, 36, 2, 36).unwrap();
    bench.data(1, 37, 2, 37).unwrap();
    bench.unregister(1, 38, 2).unwrap();
    let samples = bench.take();
    assert_eq!(values(&samples), [36, 37]);
    assert_eq!(state_of(&samples), InstanceState::NotAliveNoWriters);
}

#[test]
fn a_sample_held_back_after_a_disposal_is_shown_before_its_writer_is_gone() {
    let mut bench =
        Bench::new(QosSet { time_based_filter: SECOND, ..QosSet::reader().reliable().keep_all() });
    bench.matched(1, QosSet::writer());
    bench.heartbeat(1, 1, 0, true).unwrap();
    bench.data(1, 1, 1, 1).unwrap();
    bench.dispose(1, 2, 1).unwrap();
    bench.data(1, 3, 1, 3).unwrap();
    assert_eq!(state_of(&bench.take()), InstanceState::NotAliveDisposed);
    bench.reader.unmatch_writer(bench.now, writer(1), &mut bench.out);
    let samples = bench.take();
    assert_eq!(values(&samples), [3]);
    assert_eq!(state_of(&samples), InstanceState::NotAliveNoWriters);
    bench.pass(Duration::from_secs(5));
    assert!(bench.take().is_empty(), "nothing brings an instance without writers back to life");
}

#[test]
fn a_sample_held_back_waits_until_resource_limits_let_it_in() {
    let mut qos = QosSet { time_based_filter: SECOND, ..QosSet::reader().reliable().keep_all() };
    qos.resource_limits.max_samples = 1;
    let mut bench = Bench::new(qos);
    bench.matched(1, QosSet::writer());
    bench.heartbeat(1, 1, 0, true).unwrap();
    bench.data(1, 1, 1, 1).unwrap();
    bench.data(1, 2, 1, 2).unwrap();
    bench.pass(Duration::from_secs(3));
    assert_eq!(bench.read_with(&Selector::default()).len(), 1, "max_samples is 1");
    assert_eq!(bench.values(), [1]);
    bench.pass(SECOND);
    assert_eq!(bench.values(), [2]);
    bench.data(1, 3, 1, 3).unwrap();
    assert_eq!(bench.values(), [3]);
    bench.data(1, 4, 1, 4).unwrap();
    bench.data(1, 5, 2, 5).unwrap();
    bench.unregister(1, 6, 1).unwrap();
    assert_eq!(bench.values(), [5], "the last sample of an instance whose writer leaves finds no room");
    bench.pass(SECOND);
    assert_eq!(bench.reader.sample_lost_status().total_count, 1);
}

#[test]
fn matching_and_incompatibility_are_counted() {
    let mut bench = Bench::new(QosSet::reader().reliable());
    bench.matched(1, QosSet::writer());
    bench.matched(1, QosSet::writer());
    bench.matched(2, QosSet::writer());
    assert_eq!(bench.reader.matched_writers().collect::<Vec<_>>(), [writer(1), writer(2)]);
    bench.reader.unmatch_writer(bench.now, writer(1), &mut bench.out);
    assert!(!bench.reader.is_matched(writer(1)) && bench.reader.is_matched(writer(2)));
    assert!(bench.reader.status_changes().contains(StatusKind::SubscriptionMatched));
    let status = bench.reader.subscription_matched_status();
    assert_eq!(
        (status.total.total_count, status.current_count, status.last_endpoint),
        (2, 1, writer(1).into())
    );
    assert!(!bench.reader.status_changes().contains(StatusKind::SubscriptionMatched));
    assert_eq!(bench.reader.subscription_matched_status().current_count_change, 0);
    bench.reader.incompatible_writer(&[PolicyId::Reliability, PolicyId::Durability], &mut bench.out);
    bench.reader.incompatible_writer(&[PolicyId::Durability], &mut bench.out);
    assert_eq!(bench.reported(StatusKind::RequestedIncompatibleQos), 2);
    let status = bench.reader.requested_incompatible_qos_status();
    assert_eq!((status.count.total_count, status.count.total_count_change), (2, 2));
    assert_eq!(status.last_policy_id, Some(PolicyId::Durability));
    assert_eq!(status.policies, [(PolicyId::Reliability, 1), (PolicyId::Durability, 2)]);
    assert_eq!(bench.reader.requested_incompatible_qos_status().count.total_count_change, 0);
}

#[test]
fn a_matched_writer_of_the_same_guid_starts_afresh_after_it_left() {
    let mut bench = Bench::reliable();
    bench.data(1, 1, 1, 1).unwrap();
    bench.reader.unmatch_writer(bench.now, writer(1), &mut bench.out);
    bench.take();
    bench.matched(1, QosSet::writer());
    bench.data(1, 1, 1, 2).unwrap();
    assert_eq!(bench.values(), [2]);
}

#[test]
fn r3_the_cache_is_bounded_even_without_resource_limits() {
    let limits = ReaderLimits { samples_max: 3, instances_max: 2, ..ReaderLimits::default() };
    let mut bench = Bench::with(ReaderConfig { limits, ..config(QosSet::reader().keep_all()) });
    bench.matched(1, QosSet::writer());
    let results: Vec<_> = (1..=5).map(|number| bench.data(1, number, number as u8 % 3, 1)).collect();
    let full = Err(DropReason::ResourceLimit);
    assert_eq!(results, [Ok(()), Ok(()), full, Ok(()), full]);
    let limits = ReaderLimits { cache_bytes_max: 13, ..ReaderLimits::default() };
    let mut bench = Bench::with(ReaderConfig { limits, ..config(QosSet::reader().keep_all()) });
    bench.matched(1, QosSet::writer());
    let results: Vec<_> = (1..=3).map(|number| bench.data(1, number, 1, 1)).collect();
    assert_eq!(results, [Ok(()), Ok(()), full]);
}

#[test]
fn a_heartbeat_that_a_later_one_overtook_takes_back_nothing_that_was_told_since() {
    let mut bench = Bench::reliable();
    bench.data(1, 1, 1, 1).unwrap();
    bench.heartbeat_counted(1, 1, 1, true, 700).unwrap();
    // 2 to 4 are not for this reader; the writer lets go of them.
    bench.gap(1, 2, 5, &[]).unwrap();
    bench.heartbeat_counted(1, 2, 4, true, 703).unwrap();
    for overtaken in [701, 702] {
        bench.heartbeat_counted(1, 1, 2, true, overtaken).unwrap();
    }
    bench.heartbeat_counted(1, 5, 4, false, 704).unwrap();
    assert_eq!(bench.reader.sample_lost_status().total_count, 0);
    assert_eq!(bench.acks(), [Ack { base: 5, missing: vec![], final_flag: true }]);
}

#[test]
fn a_heartbeat_of_plainsong_that_hundreds_overtook_takes_back_nothing() {
    let mut bench = Bench::reliable();
    bench.vendor = crate::vendor::PLAINSONG;
    bench.data(1, 1, 1, 1).unwrap();
    bench.heartbeat_counted(1, 1, 1, true, 700).unwrap();
    bench.heartbeat_counted(1, 5, 4, true, 100_000).unwrap();
    bench.heartbeat_counted(1, 2, 2, true, 701).unwrap();
    assert_eq!(bench.data(1, 3, 1, 3), Err(DropReason::Duplicate), "it is gone, as was said later");
    assert_eq!(bench.values(), [1]);
}

#[test]
fn a_forged_count_hides_what_a_writer_of_plainsong_says_for_a_second_at_most() {
    let mut bench = Bench::reliable();
    bench.vendor = crate::vendor::PLAINSONG;
    bench.data(1, 1, 1, 1).unwrap();
    bench.heartbeat_counted(1, 1, 1, true, 7).unwrap();
    bench.heartbeat_counted(1, 1_000, 2_000, true, 1 << 30).unwrap();
    bench.pass(Duration::from_secs(1));
    bench.acks();
    bench.heartbeat_counted(1, 1, 3, true, 8).unwrap();
    assert_eq!(bench.acks(), [Ack { base: 2, missing: vec![2, 3], final_flag: false }]);
    bench.heartbeat_counted(1, 1, 3, true, 9).unwrap();
    bench.data(1, 2, 1, 2).unwrap();
    assert_eq!(bench.values(), [1, 2]);
}

#[test]
fn what_a_forged_heartbeat_or_gap_hid_is_asked_for_after_all() {
    let mut bench = Bench::reliable();
    bench.data(1, 1, 1, 1).unwrap();
    bench.heartbeat(1, 1_000, 2_000, true).unwrap();
    bench.gap(1, 1_000, 3_000, &[]).unwrap();
    assert_eq!(bench.data(1, 2, 1, 2), Err(DropReason::Duplicate), "the lie is believed for now");
    bench.acks();
    bench.pass(ms(10));
    bench.acks();
    bench.heartbeat(1, 1, 3, true).unwrap();
    assert_eq!(bench.acks(), [Ack { base: 2, missing: vec![2, 3], final_flag: false }]);
    bench.data(1, 2, 1, 2).unwrap();
    bench.data(1, 3, 1, 3).unwrap();
    assert_eq!(bench.values(), [1, 2, 3]);
}
