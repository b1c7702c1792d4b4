//! CONSISTENCY: what it goes with, what satisfies it, and how it travels.

use super::{decoded, encoded, names};
use crate::malformed::Malformed;
use crate::qos::table::{decode_parameter, from_octets, to_octets};
use crate::qos::*;
use crate::time::Duration;
use crate::wire::param::{Parameter, pid};

fn atomic() -> QosSet {
    QosSet::writer().consistency(ConsistencyKind::Atomic)
}

/// Why an ATOMIC entity is refused after a change.
fn refused(kind: EntityKind, change: fn(&mut QosSet)) -> Option<&'static str> {
    let mut qos = atomic();
    change(&mut qos);
    let inconsistent = consistent(&qos, kind).err()?;
    assert!(!inconsistent.bad_value && inconsistent.reason.contains("CONSISTENCY ATOMIC"), "{inconsistent}");
    // Without ATOMIC there is nothing against it.
    assert_eq!(consistent(&qos.consistency(ConsistencyKind::Eventual), kind), Ok(()));
    Some(inconsistent.policy)
}

#[test]
fn only_an_atomic_writer_satisfies_an_atomic_reader() {
    let reader = QosSet::reader().reliable();
    assert_eq!(incompatible(&atomic(), &reader), []);
    assert_eq!(incompatible(&atomic(), &QosSet::reader()), [], "it feeds readers that lose samples, too");
    assert_eq!(incompatible(&atomic(), &atomic()), []);
    assert_eq!(incompatible(&QosSet::writer(), &atomic()), [PolicyId::Consistency]);
    assert_eq!(PolicyId::Consistency as u32, 1025);
}

#[test]
fn what_would_part_the_readers_of_an_atomic_topic_is_refused_by_name() {
    use EntityKind::{Reader, Topic, Writer};
    for kind in [Topic, Writer, Reader] {
        assert_eq!(refused(kind, |_| {}), None);
        assert_eq!(refused(kind, |qos| *qos = qos.clone().best_effort()), Some("RELIABILITY"));
        let by_source = |qos: &mut QosSet| qos.destination_order = DestinationOrder::BySourceTimestamp;
        assert_eq!(refused(kind, by_source), Some("DESTINATION_ORDER"));
        assert_eq!(refused(kind, |qos| qos.ownership = Ownership::Exclusive), Some("OWNERSHIP"));
        assert_eq!(refused(kind, |qos| qos.durability = Durability::TransientLocal), None);
        assert_eq!(refused(kind, |qos| qos.durability = Durability::Transient), None);
        assert_eq!(refused(kind, |qos| qos.durability = Durability::Persistent), None);
    }
    let expires = |qos: &mut QosSet| qos.lifespan = Duration::from_secs(1);
    assert_eq!(refused(Topic, expires), Some("LIFESPAN"));
    assert_eq!(refused(Writer, expires), Some("LIFESPAN"));
    assert_eq!(refused(Reader, expires), None, "readers have no LIFESPAN");
    let local = |qos: &mut QosSet| {
        qos.deadline = Duration::from_secs(2);
        qos.time_based_filter = Duration::from_secs(1);
        qos.latency_budget = Duration::from_millis(1);
        qos.resource_limits.max_samples = 3;
    };
    assert_eq!(refused(Reader, local), None, "each reader does as it likes with what it got");
    assert_eq!(refused(EntityKind::Participant, |qos| *qos = qos.clone().best_effort()), None);
}

#[test]
fn an_atomic_entity_that_says_nothing_about_reliability_is_reliable() {
    use EntityKind::{Reader, Topic, Writer};
    for kind in [Topic, Writer, Reader] {
        let qos = QosSet::default().consistency(ConsistencyKind::Atomic).or_default(kind, QosSet::default);
        assert!(qos.is_reliable(), "{kind:?}");
        assert_eq!(consistent(&qos, kind), Ok(()));
    }
}

#[test]
fn an_atomic_entity_is_in_one_partition_without_sets_and_stays_there() {
    let within = |partitions: &[&str]| QosSet { partition: names(partitions), ..atomic() };
    let refused = |qos: &QosSet, before: Option<&QosSet>| {
        consistent_in_group(qos, before).map_err(|it| it.policy).err()
    };
    for one in [&[][..], &[""], &["a"]] {
        assert_eq!(refused(&within(one), None), None);
    }
    for other in [&["a", "b"][..], &["a*"], &["a?"], &["[ab]"]] {
        assert_eq!(refused(&within(other), None), Some("PARTITION"));
    }
    assert_eq!(refused(&within(&[""]), Some(&within(&[]))), None, "the same in other words");
    assert_eq!(refused(&within(&["a"]), Some(&within(&["b"]))), Some("PARTITION"));
    let presented = |access_scope, coherent_access| QosSet {
        presentation: Presentation { access_scope, coherent_access, ordered_access: true },
        ..atomic()
    };
    assert_eq!(refused(&presented(AccessScope::Topic, false), None), None);
    assert_eq!(refused(&presented(AccessScope::Topic, true), None), Some("PRESENTATION"));
    assert_eq!(refused(&presented(AccessScope::Group, false), None), Some("PRESENTATION"));
    let eventual = presented(AccessScope::Group, true).consistency(ConsistencyKind::Eventual);
    assert_eq!(refused(&QosSet { partition: names(&["a*", "b"]), ..eventual }, Some(&within(&[]))), None);
}

#[test]
fn it_cannot_change() {
    let before = QosSet::writer();
    for kind in [EntityKind::Topic, EntityKind::Writer, EntityKind::Reader] {
        let changed = changed_immutable(&before, &atomic(), kind);
        assert_eq!(changed.and_then(|policy| policy.id), Some(PolicyId::Consistency));
    }
}

/// PID 0x8f05 of four octets: ATOMIC.
const ATOMIC_ON_THE_WIRE: [u8; 8] = [0x05, 0x8f, 4, 0, 1, 0, 0, 0];

#[test]
fn atomic_is_one_parameter_that_others_may_ignore_and_eventual_is_none() {
    for kind in [EntityKind::Writer, EntityKind::Reader] {
        let (with, without) = (encoded(&atomic(), kind), encoded(&QosSet::writer(), kind));
        let at = without.len() - 4;
        assert_eq!(with[..at], without[..at]);
        assert_eq!(with[at..], [&ATOMIC_ON_THE_WIRE[..], &without[at..]].concat());
        assert!(decoded(&with, QosSet::default()).unwrap().is_atomic());
        assert!(!decoded(&without, QosSet::default()).unwrap().is_atomic());
    }
    assert_eq!(pid::PLAINSONG_CONSISTENCY & pid::MUST_UNDERSTAND, 0);
    // A topic of the built-in topics tells it, too.
    assert!(from_octets(&to_octets(&atomic(), EntityKind::Topic)).unwrap().is_atomic());
}

#[test]
fn r2_a_kind_that_nobody_knows_is_refused() {
    let read = |value: &[u8]| {
        let mut qos = QosSet::default();
        let parameter = Parameter { id: pid::PLAINSONG_CONSISTENCY, value };
        decode_parameter(&mut qos, &parameter, true).map(|_| qos.consistency)
    };
    let (kind, deliver_at) = (ConsistencyKind::Atomic, DeliverAt::Durable);
    let atomic = |slow_member_delay| Ok(Consistency { kind, slow_member_delay, deliver_at });
    assert_eq!(read(&[0, 0, 0, 0]), Ok(Consistency::default()));
    assert_eq!(read(&[1, 0, 0, 0]), atomic(Duration::INFINITE));
    let seconds = [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(read(&seconds), atomic(Duration::from_secs(2)));
    let stable = Consistency { deliver_at: DeliverAt::Stable, ..atomic(Duration::from_secs(2)).unwrap() };
    assert_eq!(read(&[&seconds[..], &[0; 4]].concat()), Ok(stable));
    assert_eq!(read(&[&seconds[..], &[0; 4], &[9; 4]].concat()), Ok(stable), "more may follow");
    assert_eq!(read(&[&seconds[..], &[9; 4]].concat()), Err(Malformed::InvalidEnum));
    assert_eq!(read(&seconds[..8]), Err(Malformed::Truncated));
    assert_eq!(read(&[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]), Err(Malformed::InvalidDuration));
    assert_eq!(read(&[2, 0, 0, 0]), Err(Malformed::InvalidEnum));
    assert_eq!(read(&[]), Err(Malformed::Truncated));
}

#[test]
fn how_long_a_slow_member_is_waited_for_is_told_and_not_compared() {
    let evicts = |qos: QosSet| QosSet {
        consistency: Consistency { slow_member_delay: Duration::from_secs(2), ..qos.consistency },
        ..qos
    };
    let list = encoded(&evicts(atomic()), EntityKind::Writer);
    assert_eq!(decoded(&list, QosSet::writer()).unwrap().consistency, evicts(atomic()).consistency);
    assert_eq!(incompatible(&evicts(atomic()), &atomic()), []);
    assert_eq!(incompatible(&atomic(), &evicts(atomic())), []);
    let at_once = QosSet {
        consistency: Consistency { slow_member_delay: Duration::ZERO, ..atomic().consistency },
        ..atomic()
    };
    assert_eq!(consistent(&at_once, EntityKind::Writer).map_err(|it| it.policy), Err("CONSISTENCY"));
    assert_eq!(unhonoured(&evicts(atomic()), EntityKind::Writer), []);
}

#[test]
fn when_samples_are_delivered_is_told_and_not_compared() {
    let stable = |qos: QosSet| QosSet {
        consistency: Consistency { deliver_at: DeliverAt::Stable, ..qos.consistency },
        ..qos.durability(Durability::Persistent)
    };
    let list = encoded(&stable(atomic()), EntityKind::Writer);
    assert_eq!(decoded(&list, QosSet::writer()).unwrap().consistency, stable(atomic()).consistency);
    assert_eq!(incompatible(&stable(atomic()), &atomic()), []);
    assert_eq!(unhonoured(&stable(atomic()), EntityKind::Writer), [], "members keep it on their disks");
}
