//! Participants with many endpoints go.

use super::network::{Network, config, prefix};
use crate::guid::{EntityId, GuidPrefix};
use crate::outbox::{Event, Outbox};
use crate::qos::QosSet;
use crate::seq::SequenceNumber;
use crate::time::Duration;
use crate::wire::header::{PROTOCOL_VERSION, VENDOR_ID};
use crate::wire::{Data, MessageContext};

fn withdrawn(out: &mut Outbox) -> usize {
    let events = std::mem::take(&mut out.events);
    events.iter().filter(|event| matches!(event, Event::EndpointChanged { .. })).count()
}

fn pair(endpoints: u32) -> Network {
    let mut network = Network::new();
    network.add(config(0));
    network.add(config(1));
    for key in 0..endpoints {
        network.add_endpoint(1, EntityId::user_writer(key, true), "Square", QosSet::writer());
    }
    network.start(0);
    network.start(1);
    network.run_for(Duration::from_secs(5));
    assert_eq!(network.nodes[0].participant.remote_endpoints().count(), endpoints as usize);
    network
}

#[test]
fn thousands_of_endpoints_are_forgotten_in_pieces() {
    let mut network = pair(2_100);
    let (now, mut out) = (network.clock(), Outbox::default());
    let participant = &mut network.nodes[0].participant;
    participant.participant_died(now, prefix(1), &mut out);
    let mut freed = 0;
    let mut counts = vec![withdrawn(&mut out)];
    while participant.next_timeout().is_some_and(|at| at <= now.mono) {
        participant.timeout(now, &mut out);
        let is_gone = |event: &Event| matches!(event, Event::ParticipantChanged { alive: false, .. });
        freed += out.events.iter().filter(|event| **event == Event::MemoryFreed).count();
        let is_over = out.events.iter().any(is_gone);
        counts.push(withdrawn(&mut out));
        assert_eq!(is_over, participant.remote_endpoints().next().is_none(), "the participant goes last");
    }
    assert_eq!(counts, [500, 500, 500, 500, 100]);
    assert_eq!(freed, 1, "there are some MB to give back");
}

#[test]
fn who_returns_while_it_is_forgotten_has_what_it_has_now() {
    let mut network = pair(1_600);
    network.call(0, |participant, now, out| participant.participant_died(now, prefix(1), out));
    assert_eq!(network.nodes[0].participant.remote_endpoints().count(), 1_100);
    let guid = network.nodes[1].participant.guid();
    assert_eq!(network.nodes[0].participant.departures.gone, [guid.prefix]);
    network.call(0, |participant, _, out| participant.finish_forgetting(guid.prefix, out));
    assert_eq!(network.nodes[0].participant.remote_endpoints().count(), 0);
    network.run_for(Duration::from_secs(30));
    assert_eq!(network.nodes[0].participant.remote_endpoints().count(), 1_600);
}

#[test]
fn who_announces_itself_while_it_is_forgotten_does_not_have_that_done_at_once() {
    let mut network = pair(1_600);
    let source = network.nodes[1].participant.guid().prefix;
    let address = network.nodes[1].address;
    let announced = network.nodes[0].participant.database.get(source).unwrap().data.encode();
    network.call(0, |participant, now, out| {
        participant.participant_died(now, source, out);
        let context = MessageContext {
            source,
            vendor: VENDOR_ID,
            version: PROTOCOL_VERSION,
            destination: GuidPrefix::UNKNOWN,
            timestamp: None,
            from: address,
        };
        let data = Data {
            reader: EntityId::UNKNOWN,
            writer: EntityId::SPDP_WRITER,
            sequence_number: SequenceNumber(1),
            inline_qos: None,
            payload: &announced,
            attachment: None,
            key_only: false,
        };
        let before = withdrawn(out);
        participant.on_announcement(now, &context, &data, out).unwrap();
        assert_eq!((before, withdrawn(out)), (500, 0));
        assert!(participant.database.get(source).is_some(), "it is heard all the same");
    });
    network.run_for(Duration::from_secs(30));
    assert_eq!(network.nodes[0].participant.remote_endpoints().count(), 1_600);
}
