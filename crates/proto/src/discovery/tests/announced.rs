//! What others are told of policies that only inform.

use super::network::{Network, READER, WRITER, config, prefix};
use crate::discovery::ParticipantConfig;
use crate::qos::check::{PROPERTIES_BYTES_MAX, PROPERTIES_MAX};
use crate::qos::{EntityKind, Property, QosSet, consistent};
use crate::time::Duration;

fn property(name: &str, value: &str, propagate: bool) -> Property {
    Property { name: name.to_owned(), value: value.to_owned(), propagate }
}

#[test]
fn a_property_travels_only_when_it_is_to_and_a_secret_is_in_no_datagram() {
    let told = [property("team", "blue", true)];
    let qos = QosSet {
        properties: [&told[..], &[property("password", "hidden-from-all", false)]].concat(),
        ..QosSet::writer()
    };
    let mut network = Network::new();
    network.capture = Some(Vec::new());
    network.add(ParticipantConfig { qos: qos.clone(), ..config(0) });
    network.add(config(1));
    network.add_writer(0, qos.clone());
    network.add_reader(0, qos);
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_secs(5));
    let peer = &network.nodes[1].participant;
    let remote = peer.database.get(prefix(0)).unwrap();
    assert_eq!(remote.data.properties, told);
    for entity in [WRITER, READER] {
        let endpoint = peer.endpoint(prefix(0).entity(entity)).unwrap();
        assert_eq!(endpoint.qos.properties, told);
    }
    let captured = network.capture.unwrap();
    let seen = |words: &[u8]| captured.iter().any(|(_, _, it)| it.windows(words.len()).any(|at| at == words));
    assert!(seen(b"blue") && !seen(b"hidden-from-all") && !seen(b"password"));
}

#[test]
fn data_of_users_topics_and_groups_reach_others_and_so_do_their_changes() {
    let mut network = Network::new();
    let participant = QosSet { user_data: b"who".to_vec(), ..QosSet::default() };
    network.add(ParticipantConfig { qos: participant, ..config(0) });
    network.add(config(1));
    let data = |user: &[u8], topic: &[u8], group: &[u8]| QosSet {
        user_data: user.to_vec(),
        topic_data: topic.to_vec(),
        group_data: group.to_vec(),
        ..QosSet::writer()
    };
    let writer = network.add_writer(0, data(b"user", b"topic", b"group"));
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_secs(1));
    let told = |network: &Network| {
        let qos = network.nodes[1].participant.endpoint(writer).unwrap().qos.clone();
        [qos.user_data, qos.topic_data, qos.group_data]
    };
    assert_eq!(told(&network), [b"user".to_vec(), b"topic".to_vec(), b"group".to_vec()]);
    assert_eq!(network.nodes[1].participant.database.get(prefix(0)).unwrap().data.user_data, b"who");
    let changed = data(b"", b"other", b"group");
    network.call(0, |it, now, out| it.update_endpoint(now, writer, changed, out)).unwrap();
    let changed = QosSet { user_data: b"else".to_vec(), ..QosSet::default() };
    network.call(0, |it, now, out| it.set_qos(now, changed, out));
    network.run_for(Duration::from_millis(10));
    assert_eq!(told(&network), [Vec::new(), b"other".to_vec(), b"group".to_vec()]);
    assert_eq!(network.nodes[1].participant.database.get(prefix(0)).unwrap().data.user_data, b"else");
}

#[test]
fn as_many_properties_as_are_allowed_arrive() {
    let value = "v".repeat(PROPERTIES_BYTES_MAX / PROPERTIES_MAX - 2);
    let properties: Vec<_> =
        (0..PROPERTIES_MAX).map(|index| property(&index.to_string(), &value, true)).collect();
    let mut network = Network::new();
    network.add(config(0));
    network.add(config(1));
    let qos = QosSet { properties: properties.clone(), ..QosSet::writer() };
    assert!(consistent(&qos, EntityKind::Writer).is_ok());
    let writer = network.add_writer(0, qos);
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_secs(1));
    assert_eq!(network.nodes[1].participant.endpoint(writer).map(|it| &it.qos.properties), Some(&properties));
}
