//! The table of policies, the request/offered rules, partitions and contradictions.

mod consistency;

use super::check::{OCTETS_MAX, PARTITION_BYTES_MAX, PARTITIONS_MAX, PROPERTIES_MAX, PROPERTY_BYTES_MAX};
use super::rxo::pattern_matches;
use super::table::{decode_parameter, encode_qos};
use super::*;
use crate::cdr::XcdrVersion;
use crate::malformed::Malformed;
use crate::time::Duration;
use crate::wire::ParameterListView;
use crate::wire::param::{Parameter, ParameterListBuilder, pid};

const DURABILITY: PolicyId = PolicyId::Durability;
const PRESENTATION: PolicyId = PolicyId::Presentation;
const DEADLINE: PolicyId = PolicyId::Deadline;
const LATENCY_BUDGET: PolicyId = PolicyId::LatencyBudget;
const OWNERSHIP: PolicyId = PolicyId::Ownership;
const LIVELINESS: PolicyId = PolicyId::Liveliness;
const RELIABILITY: PolicyId = PolicyId::Reliability;
const DESTINATION_ORDER: PolicyId = PolicyId::DestinationOrder;
const DATA_REPRESENTATION: PolicyId = PolicyId::DataRepresentation;

/// A QoS in which no policy has its default.
fn unusual() -> QosSet {
    QosSet {
        user_data: vec![1, 2, 3],
        topic_data: vec![4],
        group_data: vec![5; 8],
        durability: Durability::Transient,
        durability_service: DurabilityService {
            service_cleanup_delay: Duration::from_secs(3),
            history: History { kind: HistoryKind::KeepAll, depth: 2 },
            resource_limits: ResourceLimits { max_samples: 9, max_instances: 8, max_samples_per_instance: 7 },
        },
        presentation: Presentation {
            access_scope: AccessScope::Group,
            coherent_access: true,
            ordered_access: true,
        },
        deadline: Duration::from_millis(1500),
        latency_budget: Duration::from_micros(20),
        ownership: Ownership::Exclusive,
        ownership_strength: -7,
        liveliness: Liveliness {
            kind: LivelinessKind::ManualByTopic,
            lease_duration: Duration::from_secs(4),
        },
        time_based_filter: Duration::from_millis(100),
        partition: vec!["p1".to_owned(), String::new(), "x*".to_owned()],
        reliability: Reliability {
            kind: ReliabilityKind::Reliable,
            max_blocking_time: Duration::from_millis(7),
        },
        transport_priority: 12,
        lifespan: Duration::from_secs(60),
        destination_order: DestinationOrder::BySourceTimestamp,
        history: History { kind: HistoryKind::KeepLast, depth: 5 },
        resource_limits: ResourceLimits { max_samples: 50, max_instances: 10, max_samples_per_instance: 5 },
        entity_factory: EntityFactory { autoenable_created_entities: false },
        writer_data_lifecycle: WriterDataLifecycle { autodispose_unregistered_instances: false },
        reader_data_lifecycle: ReaderDataLifecycle {
            autopurge_nowriter_samples_delay: Duration::ZERO,
            autopurge_disposed_samples_delay: Duration::ZERO,
        },
        data_representation: vec![XcdrVersion::Xcdr2, XcdrVersion::Xcdr1],
        type_consistency: TypeConsistency {
            allow_type_coercion: false,
            ignore_sequence_bounds: false,
            ignore_string_bounds: false,
            ignore_member_names: true,
            prevent_type_widening: true,
            force_type_validation: true,
        },
        properties: vec![
            Property { name: "told".to_owned(), value: "yes".to_owned(), propagate: true },
            Property { name: "secret".to_owned(), value: "no".to_owned(), propagate: false },
        ],
        consistency: Consistency {
            kind: ConsistencyKind::Atomic,
            slow_member_delay: Duration::from_secs(2),
            deliver_at: DeliverAt::Stable,
        },
    }
}

fn encoded(qos: &QosSet, kind: EntityKind) -> Vec<u8> {
    let mut out = Vec::new();
    let mut list = ParameterListBuilder::new(&mut out, true);
    encode_qos(qos, kind, &mut list);
    list.sentinel();
    out
}

fn decoded(list: &[u8], mut qos: QosSet) -> Result<QosSet, Malformed> {
    let (view, _) = ParameterListView::parse(list, true)?;
    for parameter in view.parameters() {
        assert!(decode_parameter(&mut qos, &parameter, true)?, "{parameter:?} is a policy");
    }
    Ok(qos)
}

#[test]
fn the_table_has_every_policy_once_and_in_order() {
    let ids: Vec<_> = POLICIES.iter().filter_map(|policy| policy.id).collect();
    assert_eq!(ids, PolicyId::ALL);
    let without: Vec<_> = POLICIES.iter().filter(|policy| policy.id.is_none()).map(|it| it.name).collect();
    assert_eq!((POLICIES.len(), &without[..]), (26, &["PROPERTY"][..]));
    let numbers = (1..=24).chain([1025]);
    for (number, policy) in numbers.zip(POLICIES.iter().filter(|policy| policy.id.is_some())) {
        let id = policy.id.unwrap();
        assert_eq!((id as u32, id.name()), (number, policy.name));
    }
    let mut pids: Vec<u16> = POLICIES.iter().filter_map(Policy::parameter_id).collect();
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), 23, "all but the three that concern nobody else");
}

#[test]
fn what_a_writer_announces_arrives_whole() {
    let offered = unusual();
    let arrived = decoded(&encoded(&offered, EntityKind::Writer), QosSet::writer()).unwrap();
    let expected = QosSet {
        time_based_filter: Duration::ZERO,
        type_consistency: TypeConsistency::default(),
        entity_factory: EntityFactory::default(),
        writer_data_lifecycle: WriterDataLifecycle::default(),
        reader_data_lifecycle: ReaderDataLifecycle::default(),
        properties: offered.properties[..1].to_vec(),
        ..offered
    };
    assert_eq!(arrived, expected);
}

#[test]
fn what_a_reader_announces_arrives_whole() {
    let requested = unusual();
    let arrived = decoded(&encoded(&requested, EntityKind::Reader), QosSet::reader()).unwrap();
    let expected = QosSet {
        durability_service: DurabilityService::default(),
        ownership_strength: 0,
        transport_priority: 0,
        lifespan: Duration::INFINITE,
        entity_factory: EntityFactory::default(),
        writer_data_lifecycle: WriterDataLifecycle::default(),
        reader_data_lifecycle: ReaderDataLifecycle::default(),
        properties: requested.properties[..1].to_vec(),
        ..requested
    };
    assert_eq!(arrived, expected);
}

#[test]
fn fact_17_what_the_rules_compare_is_said_even_when_it_is_the_default_unless_it_is_infinite() {
    let list = encoded(&QosSet::reader(), EntityKind::Reader);
    let (view, _) = ParameterListView::parse(&list, true).unwrap();
    let ids: Vec<u16> = view.parameters().map(|parameter| parameter.id).collect();
    let always = [
        pid::DURABILITY,
        pid::PRESENTATION,
        pid::LATENCY_BUDGET,
        pid::OWNERSHIP,
        pid::RELIABILITY,
        pid::DESTINATION_ORDER,
        pid::DATA_REPRESENTATION,
        pid::TYPE_CONSISTENCY_ENFORCEMENT,
    ];
    assert_eq!(ids, always);
    let list = encoded(&QosSet::writer(), EntityKind::Writer);
    let (view, _) = ParameterListView::parse(&list, true).unwrap();
    let ids: Vec<u16> = view.parameters().map(|parameter| parameter.id).collect();
    assert_eq!(ids, always[..always.len() - 1], "a writer has no type consistency to enforce");
}

#[test]
fn fact_28_defaults_of_writer_and_reader_are_compatible() {
    assert!(incompatible(&QosSet::writer(), &QosSet::reader()).is_empty());
    assert_eq!(incompatible(&QosSet::reader(), &QosSet::writer()), [RELIABILITY]);
}

#[test]
fn fact_28_the_stronger_kind_satisfies_the_weaker() {
    use Durability::{Persistent, Transient, TransientLocal, Volatile};
    let kinds = [Volatile, TransientLocal, Transient, Persistent];
    for (strength, offered) in kinds.into_iter().enumerate() {
        for (needed, requested) in kinds.into_iter().enumerate() {
            let result =
                incompatible(&QosSet::writer().durability(offered), &QosSet::reader().durability(requested));
            assert_eq!(result.is_empty(), strength >= needed, "{offered:?} for {requested:?}");
        }
    }
    let scope = |access_scope, coherent_access, ordered_access| QosSet {
        presentation: Presentation { access_scope, coherent_access, ordered_access },
        ..QosSet::writer().best_effort()
    };
    let topic = scope(AccessScope::Topic, true, false);
    assert!(incompatible(&topic, &scope(AccessScope::Instance, false, false)).is_empty());
    assert!(incompatible(&topic, &scope(AccessScope::Topic, true, false)).is_empty());
    for requested in [
        scope(AccessScope::Group, false, false),
        scope(AccessScope::Instance, false, true),
        scope(AccessScope::Group, true, true),
    ] {
        assert_eq!(incompatible(&topic, &requested), [PRESENTATION]);
    }
}

#[test]
fn fact_28_every_shortcoming_is_named_in_order() {
    let offered = QosSet {
        deadline: Duration::from_secs(7),
        latency_budget: Duration::from_secs(1),
        ..QosSet::writer().best_effort()
    };
    let requested = QosSet {
        durability: Durability::TransientLocal,
        deadline: Duration::from_secs(5),
        ownership: Ownership::Exclusive,
        liveliness: Liveliness { kind: LivelinessKind::Automatic, lease_duration: Duration::from_secs(1) },
        destination_order: DestinationOrder::BySourceTimestamp,
        data_representation: vec![XcdrVersion::Xcdr2],
        ..QosSet::reader().reliable()
    };
    let all = [
        DURABILITY,
        DEADLINE,
        LATENCY_BUDGET,
        OWNERSHIP,
        LIVELINESS,
        RELIABILITY,
        DESTINATION_ORDER,
        DATA_REPRESENTATION,
    ];
    assert_eq!(incompatible(&offered, &requested), all);
}

#[test]
fn fact_28_liveliness_compares_kind_and_lease() {
    let liveliness = |kind, seconds| QosSet {
        liveliness: Liveliness { kind, lease_duration: Duration::from_secs(seconds) },
        ..QosSet::reader()
    };
    use LivelinessKind::{Automatic, ManualByParticipant, ManualByTopic};
    let offered = liveliness(ManualByParticipant, 5);
    assert!(incompatible(&offered, &liveliness(Automatic, 5)).is_empty());
    assert_eq!(incompatible(&offered, &liveliness(Automatic, 4)), [LIVELINESS]);
    assert_eq!(incompatible(&offered, &liveliness(ManualByTopic, 9)), [LIVELINESS]);
}

#[test]
fn fact_53_a_writer_offers_its_first_representation_and_none_means_xcdr1() {
    use XcdrVersion::{Xcdr1, Xcdr2};
    let with = |list: &[XcdrVersion]| QosSet { data_representation: list.to_vec(), ..QosSet::reader() };
    let compatible = |offered: &[XcdrVersion], requested: &[XcdrVersion]| {
        incompatible(&with(offered), &with(requested)).is_empty()
    };
    assert!(compatible(&[], &[]) && compatible(&[], &[Xcdr1]) && compatible(&[Xcdr1], &[]));
    assert!(compatible(&[Xcdr2], &[Xcdr1, Xcdr2]));
    assert!(!compatible(&[Xcdr2], &[]) && !compatible(&[], &[Xcdr2]));
    assert!(!compatible(&[Xcdr2, Xcdr1], &[Xcdr1]), "only the first is offered");
}

#[test]
fn fact_53_unknown_representations_are_left_out_but_never_become_xcdr1() {
    let list = |ids: &[u8]| {
        let value =
            [&[ids.len() as u8, 0, 0, 0][..], &ids.iter().flat_map(|id| [*id, 0]).collect::<Vec<_>>()]
                .concat();
        let mut qos = QosSet::reader();
        let parameter = Parameter { id: pid::DATA_REPRESENTATION, value: &value };
        decode_parameter(&mut qos, &parameter, true).map(|_| qos.data_representation)
    };
    assert_eq!(list(&[1, 2]), Ok(vec![XcdrVersion::Xcdr2]));
    assert_eq!(list(&[1]), Err(Malformed::InvalidEnum));
    assert_eq!(list(&[]), Ok(vec![]));
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn fact_29_partitions_meet_by_name_or_pattern() {
    let meet = |one: &[&str], other: &[&str]| {
        let (one, other) = (names(one), names(other));
        assert_eq!(partitions_match(&one, &other), partitions_match(&other, &one));
        partitions_match(&one, &other)
    };
    assert!(meet(&[], &[]) && meet(&[], &[""]));
    assert!(!meet(&[], &["p1"]));
    assert!(meet(&["p1", "x"], &["x"]) && !meet(&["p1"], &["p2"]));
    assert!(meet(&["p1"], &["p*"]) && !meet(&["x1"], &["p*"]));
    assert!(meet(&[], &["*"]), "a pattern may match the empty name");
    assert!(!meet(&["p*"], &["p*"]), "a pattern never matches a pattern");
    assert!(!meet(&["p?"], &["*"]));
}

#[test]
fn fact_29_patterns_are_those_of_fnmatch() {
    for (pattern, name) in [
        ("", ""),
        ("*", ""),
        ("**", "anything"),
        ("a?c", "abc"),
        ("a?c", "aüc"),
        ("*.txt", "a.txt.txt"),
        ("a*b*c", "aXbXbXc"),
        ("[abc]x", "bx"),
        ("[a-c]x", "bx"),
        ("[!a-c]x", "dx"),
        ("[^a]x", "bx"),
        ("[]]x", "]x"),
        ("[a-]x", "-x"),
        ("\\*x", "*x"),
        ("[x", "[x"),
        ("a[", "a["),
        ("[]", "[]"),
        ("[!]", "[!]"),
        ("[[]", "["),
        ("[\\]x", "\\x"),
    ] {
        assert!(pattern_matches(pattern, name), "{pattern} {name}");
    }
    for (pattern, name) in [
        ("", "a"),
        ("?", ""),
        ("a", "A"),
        ("a?c", "ac"),
        ("*b", "abc"),
        ("[abc]", "d"),
        ("[!a-c]x", "bx"),
        ("\\*x", "ax"),
        ("a*b*c", "aXcXb"),
        ("[a", "a"),
    ] {
        assert!(!pattern_matches(pattern, name), "{pattern} {name}");
    }
}

#[test]
fn r15_the_worst_pattern_is_matched_in_bounded_work() {
    let pattern = "*a".repeat(PARTITION_BYTES_MAX / 2);
    let name = format!("{}b", "a".repeat(PARTITION_BYTES_MAX - 1));
    assert!(!pattern_matches(&pattern, &name));
    let brackets = "[".repeat(PARTITION_BYTES_MAX);
    assert!(pattern_matches(&brackets, &brackets));
    let name = format!("{}x", &brackets[1..]);
    for pattern in
        [format!("*{}y", &brackets[2..]), format!("*{}]y", &brackets[3..]), format!("*{}[]", &brackets[3..])]
    {
        assert!(!pattern_matches(&pattern, &name));
    }
}

#[test]
fn policies_that_may_not_change_are_named() {
    let (old, mut new) = (QosSet::writer(), QosSet::writer());
    new.deadline = Duration::from_secs(1);
    new.ownership_strength = 9;
    new.partition = names(&["p"]);
    assert!(changed_immutable(&old, &new, EntityKind::Writer).is_none());
    new.history.depth = 7;
    assert_eq!(changed_immutable(&old, &new, EntityKind::Writer).map(|policy| policy.name), Some("HISTORY"));
    new = old.clone();
    new.presentation.coherent_access = true;
    assert!(changed_immutable(&old, &new, EntityKind::Writer).is_none(), "not a writer's policy");
    assert_eq!(
        changed_immutable(&old, &new, EntityKind::Publisher).and_then(|policy| policy.id),
        Some(PRESENTATION)
    );
    let explicit = old.clone().representation(XcdrVersion::Xcdr1);
    assert!(changed_immutable(&old, &explicit, EntityKind::Writer).is_none(), "the same in other words");
}

fn refused(kind: EntityKind, change: impl FnOnce(&mut QosSet)) -> Option<&'static str> {
    let mut qos = QosSet::default();
    change(&mut qos);
    consistent(&qos, kind).err().map(|inconsistent| inconsistent.policy)
}

#[test]
fn contradictions_are_refused_by_name() {
    use EntityKind::{Reader, Topic, Writer};
    assert_eq!(refused(Writer, |_| {}), None);
    assert_eq!(refused(Writer, |qos| qos.history.depth = 0), Some("HISTORY"));
    assert_eq!(
        refused(Writer, |qos| (qos.history.kind, qos.history.depth) = (HistoryKind::KeepAll, 0)),
        None
    );
    let limit = |qos: &mut QosSet| qos.resource_limits.max_samples_per_instance = 3;
    let deep = |qos: &mut QosSet| (limit(qos), qos.history.depth = 4).0;
    assert_eq!(refused(Reader, limit), None);
    assert_eq!(refused(Reader, deep), Some("HISTORY"));
    let small = |qos: &mut QosSet| (qos.resource_limits.max_samples, qos.history.depth) = (3, 5);
    assert_eq!(refused(Reader, small), Some("HISTORY"), "the depth could never be reached");
    let few = |qos: &mut QosSet| (limit(qos), qos.resource_limits.max_samples = 2).0;
    assert_eq!(refused(Reader, few), Some("RESOURCE_LIMITS"));
    assert_eq!(refused(Reader, |qos| qos.resource_limits.max_instances = 0), Some("RESOURCE_LIMITS"));
    assert_eq!(refused(Reader, |qos| qos.resource_limits.max_samples = -2), Some("RESOURCE_LIMITS"));
    let filter = |qos: &mut QosSet| {
        (qos.deadline, qos.time_based_filter) = (Duration::from_secs(1), Duration::from_secs(2));
    };
    assert_eq!(refused(Reader, filter), Some("DEADLINE"));
    assert_eq!(refused(Writer, filter), None, "writers have no filter");
    assert_eq!(refused(Topic, |qos| qos.durability_service.history.depth = 0), Some("DURABILITY_SERVICE"));
    assert_eq!(refused(Writer, |qos| qos.deadline = Duration::ZERO), Some("DEADLINE"));
    assert_eq!(refused(Writer, |qos| qos.latency_budget = Duration(-1)), Some("LATENCY_BUDGET"));
}

#[test]
fn durations_that_rtps_cannot_tell_are_refused_by_name() {
    type Set = fn(&mut QosSet, Duration);
    let told: [(&str, Set); 8] = [
        ("DEADLINE", |qos, duration| qos.deadline = duration),
        ("LATENCY_BUDGET", |qos, duration| qos.latency_budget = duration),
        ("LIVELINESS", |qos, duration| qos.liveliness.lease_duration = duration),
        ("RELIABILITY", |qos, duration| qos.reliability.max_blocking_time = duration),
        ("TIME_BASED_FILTER", |qos, duration| qos.time_based_filter = duration),
        ("LIFESPAN", |qos, duration| qos.lifespan = duration),
        ("DURABILITY_SERVICE", |qos, duration| qos.durability_service.service_cleanup_delay = duration),
        ("CONSISTENCY", |qos, duration| qos.consistency.slow_member_delay = duration),
    ];
    for (policy, set) in told {
        for outside in [Duration(-1), Duration::from_secs(i32::MAX.into()), Duration(i64::MAX - 1)] {
            let mut qos = QosSet::default();
            set(&mut qos, outside);
            let refusal = consistent(&qos, EntityKind::Writer).map_err(|it| (it.policy, it.bad_value));
            assert_eq!(refusal, Err((policy, true)), "{outside}");
        }
        for inside in [Duration(i64::from(i32::MAX) * 1_000_000_000 - 1), Duration::INFINITE] {
            assert_eq!(refused(EntityKind::Writer, |qos| set(qos, inside)), None, "{policy}: {inside}");
        }
    }
}

#[test]
fn r3_sizes_are_limited_on_both_sides() {
    use EntityKind::Writer;
    assert_eq!(refused(Writer, |qos| qos.user_data = vec![0; OCTETS_MAX]), None);
    assert_eq!(refused(Writer, |qos| qos.user_data = vec![0; OCTETS_MAX + 1]), Some("USER_DATA"));
    assert_eq!(refused(Writer, |qos| qos.partition = names(&["p"; PARTITIONS_MAX + 1])), Some("PARTITION"));
    assert_eq!(refused(Writer, |qos| qos.partition = names(&["a\0b"])), Some("PARTITION"));
    let long = "p".repeat(PARTITION_BYTES_MAX + 1);
    assert_eq!(refused(Writer, |qos| qos.partition = names(&[&long])), Some("PARTITION"));
    let property = Property { name: "n".to_owned(), ..Property::default() };
    assert_eq!(refused(Writer, |qos| qos.properties = vec![property; PROPERTIES_MAX + 1]), Some("PROPERTY"));

    let large = Property { value: "v".repeat(PROPERTY_BYTES_MAX), ..Property::default() };
    assert_eq!(refused(Writer, |qos| qos.properties = vec![large.clone(); 32]), None);
    assert_eq!(refused(Writer, |qos| qos.properties = vec![large.clone(); 33]), Some("PROPERTY"));

    let decode =
        |id: u16, value: &[u8]| decode_parameter(&mut QosSet::default(), &Parameter { id, value }, true);
    let count = |count: u32, rest: usize| [&count.to_le_bytes()[..], &vec![0; rest]].concat();
    assert_eq!(decode(pid::USER_DATA, &count(u32::MAX, 8)), Err(Malformed::LengthOutOfRange));
    assert_eq!(decode(pid::USER_DATA, &count(9, 8)), Err(Malformed::Truncated));
    assert_eq!(decode(pid::PARTITION, &count(u32::MAX, 8)), Err(Malformed::LengthOutOfRange));
    assert_eq!(decode(pid::PARTITION, &count(65, 400)), Err(Malformed::LengthOutOfRange));
    assert_eq!(decode(pid::PARTITION, &count(2, 4)), Err(Malformed::LengthOutOfRange));
    assert_eq!(decode(pid::PROPERTY_LIST, &count(u32::MAX, 64)), Err(Malformed::LengthOutOfRange));
    assert_eq!(decode(pid::DATA_REPRESENTATION, &count(17, 64)), Err(Malformed::LengthOutOfRange));
}

#[test]
fn r2_strings_without_their_nul_or_with_one_inside_are_refused() {
    let partition = |text: &[u8]| {
        let mut value = [&[1, 0, 0, 0, text.len() as u8, 0, 0, 0][..], text].concat();
        value.resize(value.len().next_multiple_of(4), 0);
        let mut qos = QosSet::default();
        decode_parameter(&mut qos, &Parameter { id: pid::PARTITION, value: &value }, true)
            .map(|_| qos.partition)
    };
    assert_eq!(partition(b"ab\0"), Ok(names(&["ab"])));
    assert_eq!(partition(b""), Ok(names(&[""])), "some leave the NUL of an empty string out");
    assert_eq!(partition(b"ab"), Err(Malformed::InvalidString));
    assert_eq!(partition(b"a\0b\0"), Err(Malformed::InvalidString));
    assert_eq!(partition(b"\xff\0"), Err(Malformed::InvalidString));
}

#[test]
fn properties_that_are_too_long_or_no_text_are_left_out() {
    let text = |octets: &[u8]| {
        let mut out = (octets.len() as u32).to_le_bytes().to_vec();
        out.extend_from_slice(octets);
        out.resize(out.len().next_multiple_of(4), 0);
        out
    };
    let long = [&[b'x'; 2000][..], b"\0"].concat();
    let value = [
        &[3, 0, 0, 0][..],
        &text(b"a\0"),
        &text(&long),
        &text(b"b"),
        &text(b"v\0"),
        &text(b"c\0"),
        &text(b"w\0"),
    ];
    let mut qos = QosSet::default();
    let parameter = Parameter { id: pid::PROPERTY_LIST, value: &value.concat() };
    assert_eq!(decode_parameter(&mut qos, &parameter, true), Ok(true));
    assert_eq!(qos.properties.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["c"]);
}

#[test]
fn fact_54_type_consistency_may_be_told_in_part() {
    let mut qos = QosSet::default();
    let parameter = Parameter { id: pid::TYPE_CONSISTENCY_ENFORCEMENT, value: &[0, 0, 0, 0] };
    assert_eq!(decode_parameter(&mut qos, &parameter, true), Ok(true));
    let expected = TypeConsistency {
        allow_type_coercion: false,
        ignore_sequence_bounds: false,
        ignore_string_bounds: false,
        ..TypeConsistency::default()
    };
    assert_eq!(qos.type_consistency, expected);
}

#[test]
fn r2_enumerations_out_of_range_are_refused() {
    for id in [pid::DURABILITY, pid::PRESENTATION, pid::OWNERSHIP, pid::LIVELINESS, pid::RELIABILITY] {
        let mut qos = QosSet::default();
        let value = [9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(
            decode_parameter(&mut qos, &Parameter { id, value: &value }, true),
            Err(Malformed::InvalidEnum)
        );
    }
    let negative = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    let deadline = Parameter { id: pid::DEADLINE, value: &negative };
    assert_eq!(decode_parameter(&mut QosSet::default(), &deadline, true), Err(Malformed::InvalidDuration));
}

#[test]
fn flags_about_members_of_types_are_told_to_be_unhonoured() {
    let told = |kind, change: fn(&mut TypeConsistency)| {
        let mut qos = QosSet::default();
        change(&mut qos.type_consistency);
        unhonoured(&qos, kind).iter().map(|it| it.policy).collect::<Vec<_>>()
    };
    let strict: fn(&mut TypeConsistency) = |it| it.allow_type_coercion = false;
    assert_eq!(told(EntityKind::Reader, strict), ["TYPE_CONSISTENCY_ENFORCEMENT"]);
    assert!(told(EntityKind::Writer, strict).is_empty(), "a writer does not have the policy");
    assert!(
        told(EntityKind::Reader, |it| it.force_type_validation = true).is_empty(),
        "this one is enforced"
    );
}

#[test]
fn what_outlives_its_writer_is_told_to_be_unhonoured() {
    let of = |durability, kind| {
        let list = unhonoured(&QosSet::default().durability(durability), kind);
        list.first().map(|it| (it.policy, it.what.contains("disk")))
    };
    assert_eq!(of(Durability::TransientLocal, EntityKind::Writer), None);
    assert_eq!(of(Durability::Transient, EntityKind::Writer), Some(("DURABILITY", false)));
    assert_eq!(of(Durability::Persistent, EntityKind::Writer), Some(("DURABILITY", true)));
    assert_eq!(of(Durability::Transient, EntityKind::Reader), Some(("DURABILITY", false)));
    assert_eq!(of(Durability::Volatile, EntityKind::Reader), None);
}
