//! What the application ignores (DCPS 1.4 §2.2.2.2.1.14 to .17).

use super::network::*;
use crate::discovery::Command;
use crate::guid::Guid;
use crate::outbox::Event;
use crate::qos::QosSet;
use crate::time::Duration;

fn seconds(network: &mut Network, seconds: i64) {
    network.run_for(Duration::from_secs(seconds));
}

fn known(network: &Network) -> (usize, usize) {
    let participant = &network.nodes[0].participant;
    (participant.remote_participants().count(), participant.remote_endpoints().count())
}

fn endpoint_events(network: &Network) -> Vec<Guid> {
    let events = network.nodes[0].events.iter();
    let changed = events.filter_map(|(_, event)| match event {
        Event::EndpointChanged { endpoint } => Some(*endpoint),
        _ => None,
    });
    changed.collect()
}

#[test]
fn an_ignored_participant_seems_to_leave_and_never_comes_back() {
    let mut network = Network::of(3);
    seconds(&mut network, 1);
    assert_eq!(known(&network), (2, 4));
    network.call(0, |it, now, out| it.ignore_participant(now, prefix(1), out)).unwrap();
    let gone = Command::UnmatchWriter { reader: READER, writer: prefix(1).entity(WRITER) };
    assert_eq!(network.count(0, |command| *command == gone), 1);
    seconds(&mut network, 60);
    assert_eq!(known(&network), (1, 2), "for good");
    let told = Event::ParticipantChanged { participant: prefix(1).participant(), alive: false };
    assert_eq!(network.nodes[0].events.iter().filter(|(_, event)| *event == told).count(), 1);
}

#[test]
fn an_ignored_endpoint_matches_nothing_even_when_it_changes() {
    let mut network = Network::of(2);
    seconds(&mut network, 1);
    let writer = prefix(1).entity(WRITER);
    network.call(0, |it, _, out| it.ignore_endpoint(writer, out)).unwrap();
    let gone = Command::UnmatchWriter { reader: READER, writer };
    assert_eq!(network.count(0, |command| *command == gone), 1);
    let changed = QosSet { user_data: vec![1], ..QosSet::writer() };
    network.call(1, |it, now, out| it.update_endpoint(now, writer, changed, out)).unwrap();
    seconds(&mut network, 5);
    assert_eq!(known(&network), (1, 1), "the reader of the same participant is still there");
    let matches =
        |command: &Command| matches!(command, Command::MatchWriter { writer: it, .. } if it.guid == writer);
    assert_eq!(network.count(0, matches), 1, "from before");
}

#[test]
fn of_an_ignored_topic_no_remote_endpoint_is_known_and_others_are() {
    let mut network = Network::of(2);
    let other = crate::guid::EntityId::user_writer(9, true);
    network.add_endpoint(1, other, "Circle", QosSet::writer());
    seconds(&mut network, 1);
    let topic = network.nodes[0].participant.endpoint(prefix(1).entity(WRITER)).unwrap().topic.to_owned();
    network.call(0, |it, _, out| it.ignore_topic(&topic, out)).unwrap();
    let late = crate::guid::EntityId::user_writer(10, true);
    network.add_endpoint(1, late, &topic, QosSet::writer());
    seconds(&mut network, 5);
    let left: Vec<Guid> = network.nodes[0].participant.remote_endpoints().map(|it| it.guid).collect();
    assert_eq!(left, [prefix(1).entity(other)]);
}

#[test]
fn local_endpoints_ignore_each_other_when_told_to_and_others_still_match_them() {
    let mut network = Network::of(2);
    seconds(&mut network, 1);
    let own = Command::UnmatchWriter { reader: READER, writer: prefix(0).entity(WRITER) };
    network.call(0, |it, now, out| it.ignore_participant(now, prefix(0), out)).unwrap();
    assert_eq!(network.count(0, |command| *command == own), 1);
    let other = Command::UnmatchReader { writer: WRITER, reader: prefix(1).entity(READER) };
    assert_eq!(network.count(0, |command| *command == other), 0);
    let changed = QosSet { user_data: vec![1], ..QosSet::writer() };
    let writer = prefix(0).entity(WRITER);
    network.call(0, |it, now, out| it.update_endpoint(now, writer, changed, out)).unwrap();
    let matches =
        |command: &Command| matches!(command, Command::MatchWriter { writer: it, .. } if it.guid == writer);
    assert_eq!(network.count(0, matches), 1, "from before");
}

#[test]
fn endpoints_that_come_change_and_go_are_told() {
    let mut network = Network::of(2);
    seconds(&mut network, 1);
    let (writer, reader) = (prefix(1).entity(WRITER), prefix(1).entity(READER));
    let mut told = endpoint_events(&network);
    told.sort_unstable();
    assert_eq!(told, [writer, reader]);
    let changed = QosSet { user_data: vec![1], ..QosSet::writer() };
    network.call(1, |it, now, out| it.update_endpoint(now, writer, changed, out)).unwrap();
    seconds(&mut network, 1);
    assert_eq!(endpoint_events(&network)[2..], [writer]);
    network.call(1, |it, now, out| it.remove_endpoint(now, writer, out));
    seconds(&mut network, 1);
    assert_eq!(endpoint_events(&network)[3..], [writer]);
    network.call(1, |it, now, out| it.shutdown(now, out));
    seconds(&mut network, 1);
    assert_eq!(endpoint_events(&network)[4..], [reader]);
}
