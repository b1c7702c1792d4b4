//! A participant without endpoints judges those of others, and comes to the verdict of these.

use proptest::prelude::*;
use proptest::sample::select;

use super::network::{Network, READER, WRITER, config, prefix};
use super::types::{DOUBLE, SHAPE, described, typed};
use crate::discovery::{Judgement, Mismatch, MismatchReason};
use crate::guid::Guid;
use crate::qos::{Durability, Ownership, QosSet, ReliabilityKind};
use crate::time::Duration;

const OBSERVER: usize = 2;
const DURABILITIES: [Durability; 2] = [Durability::Volatile, Durability::TransientLocal];

fn writer() -> Guid {
    prefix(0).entity(WRITER)
}

fn reader() -> Guid {
    prefix(1).entity(READER)
}

fn strangers() -> Network {
    let mut network = Network::new();
    (0..3).for_each(|node| _ = network.add(config(node)));
    network
}

fn start(network: &mut Network) {
    (0..3).for_each(|node| network.start(node));
    network.run_for(Duration::from_secs(1));
}

/// A writer in node 0, a reader in node 1, and somebody who looks, all of whom know one another.
fn observed(offered: QosSet, requested: QosSet) -> Network {
    let mut network = strangers();
    network.add_writer(0, offered);
    network.add_reader(1, requested);
    start(&mut network);
    network
}

fn judgement(network: &Network, node: usize) -> Option<Judgement> {
    network.nodes[node].participant.judge(writer(), reader())
}

/// But for whose endpoints these are, which differs between those who tell.
fn impersonal(judgement: Option<Judgement>) -> Option<Judgement> {
    let Some(Judgement::Mismatched(mut mismatch)) = judgement else { return judgement };
    for party in [&mut mismatch.writer, &mut mismatch.reader] {
        (party.local, party.address, party.product) = (false, None, None);
        party.participant.clear();
    }
    Some(Judgement::Mismatched(mismatch))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn who_has_no_endpoint_judges_as_those_who_have_them(
        durabilities in (select(&DURABILITIES[..]), select(&DURABILITIES[..])),
        ownerships in (select(&[Ownership::Shared, Ownership::Exclusive][..]),
            select(&[Ownership::Shared, Ownership::Exclusive][..])),
        reliabilities in (select(&[ReliabilityKind::BestEffort, ReliabilityKind::Reliable][..]),
            select(&[ReliabilityKind::BestEffort, ReliabilityKind::Reliable][..])),
        partitions in (select(&["", "a", "a*"][..]), select(&["", "a", "b"][..])),
        deadlines in (1_i64..3, 1_i64..3),
    ) {
        let qos = |durability, ownership, kind, partition: &str, deadline| {
            let mut qos = QosSet::writer().durability(durability).partition([partition]);
            (qos.ownership, qos.reliability.kind) = (ownership, kind);
            qos.deadline = Duration::from_secs(deadline);
            qos
        };
        let offered = qos(durabilities.0, ownerships.0, reliabilities.0, partitions.0, deadlines.0);
        let requested = qos(durabilities.1, ownerships.1, reliabilities.1, partitions.1, deadlines.1);
        let network = observed(offered, requested);
        let seen = impersonal(judgement(&network, OBSERVER));
        prop_assert!(matches!(seen, Some(Judgement::Matched | Judgement::Mismatched(_))));
        prop_assert_eq!(&seen, &impersonal(judgement(&network, 0)));
        prop_assert_eq!(&seen, &impersonal(judgement(&network, 1)));
    }
}

fn mismatch(network: &Network, node: usize) -> Box<Mismatch> {
    match judgement(network, node) {
        Some(Judgement::Mismatched(mismatch)) => mismatch,
        other => panic!("{other:?}"),
    }
}

#[test]
fn types_of_others_are_asked_for_and_compared_by_who_has_none() {
    let mut network = strangers();
    let told = typed(0, WRITER, QosSet::writer(), &described(SHAPE));
    network.call(0, |participant, now, out| participant.add_endpoint(now, told, out)).unwrap();
    let told = typed(1, READER, QosSet::reader(), &described(DOUBLE));
    network.call(1, |participant, now, out| participant.add_endpoint(now, told, out)).unwrap();
    start(&mut network);
    assert_eq!(judgement(&network, OBSERVER), Some(Judgement::Matched), "nobody was asked");
    network.call(OBSERVER, |participant, now, out| participant.ask_types(now, out));
    assert_eq!(judgement(&network, OBSERVER), Some(Judgement::Undecided));
    assert!(network.nodes[OBSERVER].participant.awaits_types());
    network.run_for(Duration::from_millis(500));
    assert!(!network.nodes[OBSERVER].participant.awaits_types());
    let (seen, own) = (mismatch(&network, OBSERVER), mismatch(&network, 1));
    assert_eq!(seen.reason, MismatchReason::TypeDefinition);
    assert_eq!(seen.differences, own.differences);
    assert!(seen.differences[0].writer.contains("member `size`: int32"), "{seen}");
}

#[test]
fn pairs_are_those_of_one_topic_and_unknown_ones_are_not_judged() {
    let mut network = observed(QosSet::writer(), QosSet::reader());
    let other = network.add_endpoint(1, crate::guid::EntityId([0, 0, 9, 0x07]), "Circle", QosSet::reader());
    network.run_for(Duration::from_secs(1));
    let observer = &network.nodes[OBSERVER].participant;
    assert_eq!(observer.pairs().collect::<Vec<_>>(), [(writer(), reader())]);
    assert_eq!(observer.judge(writer(), other), None);
    assert_eq!(observer.judge(writer(), prefix(7).entity(READER)), None);
}
