//! Whoever does not match is told why, on both sides, once, and what would cure it.

use super::network::{HOP, Network, READER, WRITER, config, endpoint, prefix};
use proptest::prelude::*;
use proptest::sample::select;

use crate::cdr::XcdrVersion;
use crate::discovery::{
    Difference, DiscoveryLimits, LocalEndpoint, Mismatch, MismatchReason, ParticipantConfig,
};
use crate::guid::{EntityId, Guid};
use crate::outbox::Event;
use crate::qos::{
    AccessScope, ConsistencyKind, DestinationOrder, Durability, Liveliness, LivelinessKind, Ownership,
    POLICIES, Presentation, QosSet, ReliabilityKind, incompatible, partitions_match,
};
use crate::time::Duration;

/// A writer in node 0 and a reader in node 1, which have found each other.
fn pair(offered: &QosSet, requested: &QosSet) -> Network {
    let mut network = Network::new();
    network.add(config(0));
    network.add(config(1));
    network.add_writer(0, offered.clone());
    network.add_reader(1, requested.clone());
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_secs(1));
    network
}

fn the_mismatch(network: &Network, node: usize) -> Mismatch {
    let mut all = network.nodes[node].participant.mismatches();
    let mismatch = all.next().expect("a mismatch");
    assert!(all.next().is_none(), "one pair, one mismatch");
    mismatch
}

/// What node was told of mismatches, in order.
fn told(network: &Network, node: usize) -> Vec<(Guid, Guid, bool)> {
    let events = network.nodes[node].events.iter();
    events
        .filter_map(|(_, event)| match event {
            Event::MismatchChanged { writer, reader, mismatched } => Some((*writer, *reader, *mismatched)),
            _ => None,
        })
        .collect()
}

fn with(change: impl FnOnce(&mut QosSet)) -> QosSet {
    let mut qos = QosSet::writer();
    change(&mut qos);
    qos
}

/// An offer that falls short of a request in this policy alone, and what is said about it.
fn shortfall_in(policy: &str) -> (QosSet, QosSet, &'static str) {
    let seconds = Duration::from_secs;
    let liveliness = |kind, lease_duration| with(|it| it.liveliness = Liveliness { kind, lease_duration });
    let presentation = |access_scope, coherent_access, ordered_access| {
        with(|it| it.presentation = Presentation { access_scope, coherent_access, ordered_access })
    };
    match policy {
        "DURABILITY" => (
            QosSet::writer(),
            QosSet::writer().durability(Durability::TransientLocal),
            "the writer has VOLATILE, the reader wants TRANSIENT_LOCAL; \
             set the reader's DURABILITY to VOLATILE or the writer's to TRANSIENT_LOCAL",
        ),
        "PRESENTATION" => (
            presentation(AccessScope::Topic, true, false),
            presentation(AccessScope::Group, true, true),
            "the writer has TOPIC coherent, the reader wants GROUP coherent ordered; \
             set the subscriber's access_scope to TOPIC or the publisher's to GROUP, \
             and set ordered_access to false at the subscriber or to true at the publisher",
        ),
        "DEADLINE" => (
            QosSet::writer(),
            with(|it| it.deadline = seconds(2)),
            "the writer has infinite, the reader wants 2 s; \
             set the reader's DEADLINE to infinite or the writer's to at most 2 s",
        ),
        "LATENCY_BUDGET" => (
            with(|it| it.latency_budget = Duration::from_millis(20)),
            with(|it| it.latency_budget = Duration::from_micros(1500)),
            "the writer has 20 ms, the reader wants 1.5 ms; \
             set the reader's LATENCY_BUDGET to at least 20 ms or the writer's to at most 1.5 ms",
        ),
        "OWNERSHIP" => (
            with(|it| it.ownership = Ownership::Exclusive),
            QosSet::writer(),
            "the writer has EXCLUSIVE, the reader wants SHARED; \
             set the reader's OWNERSHIP to EXCLUSIVE or the writer's to SHARED",
        ),
        "LIVELINESS" => (
            liveliness(LivelinessKind::Automatic, seconds(9)),
            liveliness(LivelinessKind::ManualByTopic, seconds(3)),
            "the writer has AUTOMATIC within 9 s, the reader wants MANUAL_BY_TOPIC within 3 s; \
             set the reader's LIVELINESS kind to AUTOMATIC or the writer's to MANUAL_BY_TOPIC, and set \
             the reader's LIVELINESS lease_duration to at least 9 s or the writer's to at most 3 s",
        ),
        "RELIABILITY" => (
            QosSet::writer().best_effort(),
            QosSet::writer(),
            "the writer has BEST_EFFORT, the reader wants RELIABLE; \
             set the reader's RELIABILITY to BEST_EFFORT or the writer's to RELIABLE",
        ),
        "DESTINATION_ORDER" => (
            QosSet::writer(),
            with(|it| it.destination_order = DestinationOrder::BySourceTimestamp),
            "the writer has BY_RECEPTION_TIMESTAMP, the reader wants BY_SOURCE_TIMESTAMP; set the reader's \
             DESTINATION_ORDER to BY_RECEPTION_TIMESTAMP or the writer's to BY_SOURCE_TIMESTAMP",
        ),
        "DATA_REPRESENTATION" => (
            with(|it| it.data_representation = vec![XcdrVersion::Xcdr2, XcdrVersion::Xcdr1]),
            QosSet::writer(),
            "the writer has XCDR2, the reader wants XCDR1; \
             add XCDR2 to the reader's DATA_REPRESENTATION or let the writer's begin with XCDR1",
        ),
        "CONSISTENCY" => (
            QosSet::writer(),
            QosSet::writer().consistency(ConsistencyKind::Atomic),
            "the writer has EVENTUAL, the reader wants ATOMIC; set the reader's CONSISTENCY to EVENTUAL or the \
             writer's to ATOMIC, which Plainsong alone offers",
        ),
        other => panic!("{other} has a request/offered rule and no example of its explanation"),
    }
}

#[test]
fn every_request_offered_rule_is_explained_and_cured() {
    for policy in POLICIES.iter().filter(|policy| policy.is_requested()) {
        let (offered, requested, words) = shortfall_in(policy.name);
        let mut network = pair(&offered, &requested);
        for node in [0, 1] {
            let mismatch = the_mismatch(&network, node);
            assert_eq!(mismatch.reason, MismatchReason::Qos(vec![policy.id.unwrap()]));
            assert_eq!(mismatch.differences.len(), 1, "{mismatch}");
            assert_eq!(mismatch.differences[0].to_string(), format!("{}: {words}", policy.name));
        }
        let (writer, reader) = (prefix(0).entity(WRITER), prefix(1).entity(READER));
        network
            .call(1, |participant, now, out| participant.update_endpoint(now, reader, offered, out))
            .unwrap();
        network.run_for(Duration(10 * HOP as i64));
        for node in [0, 1] {
            assert_eq!(told(&network, node), [(writer, reader, true), (writer, reader, false)]);
            assert_eq!(network.nodes[node].participant.mismatches().count(), 0);
            assert_eq!(network.matches(node).len(), 1);
        }
    }
}

#[test]
fn all_policies_that_fall_short_are_listed_and_both_parties_introduced() {
    let requested = QosSet { deadline: Duration::from_millis(500), ..QosSet::writer() };
    let network = pair(&QosSet::writer().best_effort(), &requested);
    let seen_by_writer = the_mismatch(&network, 0);
    assert_eq!(
        seen_by_writer.to_string(),
        "topic \"Square\": writer 010107070000000000000000:00000102 of this participant and reader \
         010107070000000000000001:00000207 of participant \"node 1\" (Plainsong, 10.0.0.2) do not match\
         \n  DEADLINE: the writer has infinite, the reader wants 500 ms; set the reader's DEADLINE to \
         infinite or the writer's to at most 500 ms\
         \n  RELIABILITY: the writer has BEST_EFFORT, the reader wants RELIABLE; set the reader's RELIABILITY \
         to BEST_EFFORT or the writer's to RELIABLE"
    );
    let seen_by_reader = the_mismatch(&network, 1);
    assert_eq!(seen_by_reader.differences, seen_by_writer.differences);
    assert!(seen_by_reader.reader.local && !seen_by_reader.writer.local);
    assert_eq!(seen_by_reader.writer.participant, "node 0");
}

#[test]
fn partitions_are_told_with_a_name_to_add() {
    let within = |names: &[&str]| with(|it| it.partition = names.iter().map(|it| (*it).to_owned()).collect());
    let cases: [(&[&str], &[&str], &str); 5] = [
        (
            &["a", "b"],
            &["c"],
            "the writer has \"a\", \"b\", the reader wants \"c\"; \
          add \"a\" to the subscriber's PARTITION or \"c\" to the publisher's",
        ),
        (
            &[],
            &["c"],
            "the writer has the default partition \"\", the reader wants \"c\"; \
          add \"\" to the subscriber's PARTITION or \"c\" to the publisher's",
        ),
        (
            &["x*"],
            &["y"],
            "the writer has \"x*\", the reader wants \"y\"; add \"y\" to the publisher's PARTITION",
        ),
        (
            &["y\n"],
            &["x?"],
            "the writer has \"y\\n\", the reader wants \"x?\"; \
          add \"y\\n\" to the subscriber's PARTITION",
        ),
        (
            &["x*"],
            &["x*"],
            "the writer has \"x*\", the reader wants \"x*\"; \
          use a plain name on one side: a pattern never matches a pattern",
        ),
    ];
    for (offered, requested, words) in cases {
        let network = pair(&within(offered), &within(requested));
        let mismatch = the_mismatch(&network, 1);
        assert_eq!(mismatch.reason, MismatchReason::Partition);
        assert_eq!(mismatch.differences[0].to_string(), format!("PARTITION: {words}"));
    }
}

#[test]
fn a_hundred_partitions_fill_no_screen() {
    let many = with(|it| it.partition = (0..60).map(|index| format!("{index}")).collect());
    let mismatch = the_mismatch(&pair(&many, &QosSet::writer()), 1);
    assert!(mismatch.differences[0].writer.ends_with("\"7\" and 52 more"), "{mismatch}");
}

#[test]
fn type_names_and_keys_are_told_together_with_what_else_is_wrong() {
    let mut network = Network::new();
    network.add(config(0));
    network.add(config(1));
    network.add_writer(0, QosSet::writer().best_effort());
    let keyless = EntityId::user_reader(2, false);
    let other = LocalEndpoint {
        type_name: "Circle".into(),
        ..endpoint(prefix(1), keyless, "Square", QosSet::writer())
    };
    network.call(1, |participant, now, out| participant.add_endpoint(now, other, out)).unwrap();
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_secs(1));
    let mismatch = the_mismatch(&network, 0);
    assert_eq!(mismatch.reason, MismatchReason::TypeName);
    let subjects: Vec<_> = mismatch.differences.iter().map(|it| &*it.subject).collect();
    assert_eq!(subjects, ["type name", "key", "RELIABILITY"]);
    let Difference { writer, reader, .. } = &mismatch.differences[0];
    assert_eq!((writer.as_str(), reader.as_str()), ("\"ShapeType\"", "\"Circle\""));
    assert!(mismatch.to_string().contains(
        "key: the writer has a keyed type, the reader wants a type without key; mark the same members"
    ));
    assert!(mismatch.to_string().contains("one of the participants tells nothing of its type"));
}

#[test]
fn a_reader_that_forces_type_validation_matches_nobody_who_tells_no_type() {
    let strict = with(|it| it.type_consistency.force_type_validation = true);
    let mut network = pair(&QosSet::writer(), &strict);
    for node in [0, 1] {
        let mismatch = the_mismatch(&network, node);
        assert_eq!(mismatch.reason, MismatchReason::TypeInformation);
        assert_eq!(
            mismatch.differences[0].to_string(),
            "TYPE_CONSISTENCY_ENFORCEMENT: the writer has no type information to check, the reader wants \
             force_type_validation; set the reader's force_type_validation to false, or have both \
             participants tell their types"
        );
    }
    let reader = prefix(1).entity(READER);
    let lenient = with(|it| {
        it.type_consistency.ignore_member_names = true;
        it.type_consistency.prevent_type_widening = true;
    });
    network
        .call(1, |participant, now, out| participant.update_endpoint(now, reader, lenient.clone(), out))
        .unwrap();
    network.run_for(Duration(10 * HOP as i64));
    assert_eq!(network.matches(0).len(), 1);
    let announced = network.nodes[0].participant.endpoint(reader).unwrap();
    assert_eq!(announced.qos.type_consistency, lenient.type_consistency, "the other flags are kept as told");
}

#[test]
fn endpoints_of_one_participant_are_explained_too() {
    let mut network = Network::new();
    network.add(config(0));
    network.add_writer(0, QosSet::writer().best_effort());
    network.add_reader(0, QosSet::writer());
    let mismatch = the_mismatch(&network, 0);
    assert!(mismatch.writer.local && mismatch.reader.local);
    assert_eq!(told(&network, 0).len(), 1);
}

#[test]
fn another_reason_is_told_again_and_a_departure_withdraws() {
    let mut network = pair(&QosSet::writer().best_effort(), &QosSet::writer());
    let (writer, reader) = (prefix(0).entity(WRITER), prefix(1).entity(READER));
    let update = |network: &mut Network, qos: QosSet| {
        network.call(1, |participant, now, out| participant.update_endpoint(now, reader, qos, out)).unwrap();
        network.run_for(Duration(10 * HOP as i64));
    };
    // The same shortcoming in other words is no news; another one is.
    update(&mut network, QosSet { user_data: vec![1], ..QosSet::writer() });
    assert_eq!(told(&network, 0), [(writer, reader, true)]);
    update(&mut network, QosSet::writer().durability(Durability::TransientLocal));
    assert_eq!(told(&network, 0), [(writer, reader, true); 2]);
    network.call(1, |participant, now, out| participant.shutdown(now, out));
    network.run_for(Duration(10 * HOP as i64));
    assert_eq!(told(&network, 0)[2..], [(writer, reader, false)]);
    assert!(network.nodes[0].participant.mismatch(writer, reader).is_none());
}

#[test]
fn what_is_not_remembered_is_not_told() {
    let mut network = Network::new();
    let limits = DiscoveryLimits { mismatches_max: 3, ..DiscoveryLimits::default() };
    network.add(ParticipantConfig { limits, ..config(0) });
    network.add_writer(0, QosSet::writer().best_effort());
    for key in 10..20 {
        network.add_endpoint(0, EntityId::user_reader(key, true), "Square", QosSet::writer());
    }
    assert_eq!(network.nodes[0].participant.mismatches().count(), 3);
    assert_eq!(told(&network, 0).len(), 3);
}

const PARTITIONS: &[&[&str]] = &[&[], &["a"], &["b", "a"], &["a*"]];
const REPRESENTATIONS: &[&[XcdrVersion]] = &[&[], &[XcdrVersion::Xcdr2]];

prop_compose! {
    /// QoS with all that can keep a writer and a reader apart, often alike.
    fn any_qos()(
        durability in select(Durability::ALL),
        scope in select(AccessScope::ALL),
        ownership in select(Ownership::ALL),
        kind in select(LivelinessKind::ALL),
        reliability in select(ReliabilityKind::ALL),
        destination_order in select(DestinationOrder::ALL),
        consistency in select(ConsistencyKind::ALL),
        [coherent_access, ordered_access, force_type_validation] in any::<[bool; 3]>(),
        [deadline, latency_budget, lease] in prop::array::uniform3(1..3_i64),
        partition in select(PARTITIONS),
        data_representation in select(REPRESENTATIONS),
    ) -> QosSet {
        with(|it| {
            it.durability = durability;
            it.presentation = Presentation { access_scope: scope, coherent_access, ordered_access };
            it.ownership = ownership;
            it.liveliness = Liveliness { kind, lease_duration: Duration::from_secs(lease) };
            it.reliability.kind = reliability;
            it.destination_order = destination_order;
            it.consistency.kind = consistency;
            it.deadline = Duration::from_secs(deadline);
            it.latency_budget = Duration::from_millis(latency_budget);
            it.partition = partition.iter().map(|name| (*name).to_owned()).collect();
            it.data_representation = data_representation.to_vec();
            it.type_consistency.force_type_validation = force_type_validation;
        })
    }
}

proptest! {
    #[test]
    fn a_pair_matches_or_is_explained_in_full(offered in any_qos(), requested in any_qos(), keyed: bool) {
        let mut network = Network::new();
        network.add(config(0));
        let writer = network.add_writer(0, offered.clone());
        let reader = EntityId::user_reader(7, keyed);
        let reader = network.add_endpoint(0, reader, "Square", requested.clone());
        let mut expected: Vec<&str> = Vec::new();
        let mut differ = |subject, differs: bool| expected.extend(differs.then_some(subject));
        differ("TYPE_CONSISTENCY_ENFORCEMENT", requested.type_consistency.force_type_validation);
        differ("key", !keyed);
        differ("PARTITION", !partitions_match(&offered.partition, &requested.partition));
        for policy in incompatible(&offered, &requested) {
            differ(policy.name(), true);
        }
        let told_before = told(&network, 0);
        match network.nodes[0].participant.mismatch(writer, reader) {
            None => {
                prop_assert_eq!(&expected, &Vec::<&str>::new());
                prop_assert_eq!(network.matches(0).len(), 2, "both local sides match");
                prop_assert!(told_before.is_empty());
            }
            Some(mismatch) => {
                let subjects: Vec<_> = mismatch.differences.iter().map(|it| &*it.subject).collect();
                prop_assert_eq!(&subjects, &expected);
                for it in &mismatch.differences {
                    prop_assert!(it.writer != it.reader || it.subject == "PARTITION", "{}", it);
                    prop_assert!(it.cure.len() > 20, "{}", it);
                }
                prop_assert!(network.matches(0).is_empty());
                prop_assert_eq!(told_before, [(writer, reader, true)]);
            }
        }
    }
}
