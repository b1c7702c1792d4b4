//! Who has no type of a topic asks for that of others, and is told why there is none.

use super::network::{Network, READER, WRITER, config, endpoint, prefix};
use super::types::{SHAPE, described, typed};
use crate::discovery::{ToldType, WhyUntold};
use crate::guid::{EntityId, Guid};
use crate::qos::QosSet;
use crate::time::Duration;
use crate::type_support::DynamicType;
use crate::types::library::{TypeLibrary, TypeLimits};

/// The first node has a writer of a type and a reader without; the second has nothing.
fn network() -> Network {
    let mut network = Network::new();
    network.add(config(0));
    network.add(config(1));
    let writer = typed(0, WRITER, QosSet::writer(), &described(SHAPE));
    let untyped = endpoint(prefix(0), READER, "Square", QosSet::reader());
    for endpoint in [writer, untyped] {
        network.call(0, |participant, now, out| participant.add_endpoint(now, endpoint, out)).unwrap();
    }
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_millis(500));
    network
}

fn told(network: &mut Network, node: usize, entity: EntityId) -> ToldType {
    let guid: Guid = prefix(0).entity(entity);
    network.call(node, |participant, now, out| participant.told_type(now, guid, out))
}

fn why(network: &Network, entity: EntityId) -> WhyUntold {
    network.nodes[1].participant.why_untold(prefix(0).entity(entity))
}

#[test]
fn a_type_is_known_once_its_participant_was_asked() {
    let mut network = network();
    assert_eq!(told(&mut network, 1, WRITER), ToldType::Awaited);
    network.run_for(Duration::from_millis(100));
    let ToldType::Known(description) = told(&mut network, 1, WRITER) else { panic!("no type") };
    assert_eq!(*description, *described(SHAPE), "to be told to others as it was told");
    assert!(DynamicType::new("ShapeType", (*description).into()).is_ok());
    assert_eq!(told(&mut network, 1, READER), ToldType::Untold);
    assert_eq!(why(&network, READER), WhyUntold::NotTold);
    // What is our own is known without a question.
    assert!(matches!(told(&mut network, 0, WRITER), ToldType::Known(_)));
}

#[test]
fn who_does_not_answer_is_asked_again_on_demand() {
    let mut network = network();
    let library = std::mem::replace(
        &mut network.nodes[0].participant.matching.types,
        TypeLibrary::new(TypeLimits::default()),
    );
    assert_eq!(told(&mut network, 1, WRITER), ToldType::Awaited);
    network.run_for(Duration::from_secs(3));
    assert_eq!(told(&mut network, 1, WRITER), ToldType::Untold);
    assert_eq!(why(&network, WRITER), WhyUntold::NotAnswered);
    network.nodes[0].participant.matching.types = library;
    assert_eq!(told(&mut network, 1, WRITER), ToldType::Untold, "nobody asks by itself");
    let guid = prefix(0).entity(WRITER);
    network.call(1, |participant, now, out| participant.ask_type_again(now, guid, out));
    assert_eq!(told(&mut network, 1, WRITER), ToldType::Awaited);
    network.run_for(Duration::from_millis(100));
    assert!(matches!(told(&mut network, 1, WRITER), ToldType::Known(_)));
}

#[test]
fn who_serves_no_types_is_not_asked() {
    let mut network = network();
    network.nodes[1].participant.matching.lookups.set_service(prefix(0), false);
    assert_eq!(told(&mut network, 1, WRITER), ToldType::Untold);
    assert_eq!(why(&network, WRITER), WhyUntold::NoService);
}
