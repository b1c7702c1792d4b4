//! The state of a participant as data: who matches, who does not and why, how samples reach readers, what was
//! counted.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::net::UdpSocket;

use common::{Pair, Point, fresh_domain, participant, reader, until, writer};
use plainsong::drops::DropReason;
use plainsong::locator::Locator;
use plainsong::prelude::*;
use plainsong::state::{MismatchReason, RouteKind, StateLimits, UsedTransport};

#[test]
fn a_snapshot_says_who_matches_and_how_samples_reach_them() {
    let pair = Pair::<Point>::new(QosSet::writer(), QosSet::reader().reliable());
    pair.writer.write(&Point::default()).unwrap();
    pair.writer.wait_for_acknowledgments(common::PATIENCE).unwrap();

    let [writing, reading] = [0, 1].map(|index: usize| pair.participants[index].state().unwrap());
    assert_eq!((writing.guid, writing.is_enabled), (pair.participants[0].guid(), true));
    assert_eq!(
        (writing.topics.items[0].name.as_str(), writing.topics.items[0].type_name.as_str()),
        ("Pair", "Point")
    );
    let [state] = &writing.writers.items[..] else { panic!("{writing}") };
    assert_eq!((state.guid, state.topic.as_str()), (pair.writer.guid(), "Pair"));
    assert!(state.qos.is_reliable() && state.is_enabled && state.unhonoured.is_empty());
    assert_eq!((state.counters.written, state.counters.matched), (1, 1));
    assert!(state.counters.datagrams >= 1, "{state}");
    assert_eq!(writing.publishers.items[0].guid, state.publisher);
    let [route] = &state.routes[..] else { panic!("{state}") };
    let is_by_memory = route.destinations.iter().all(|it| it.node_id().is_some());
    assert_eq!(route.kind, if is_by_memory { RouteKind::Memory } else { RouteKind::SameHost });
    let is_here = |it: &Locator| is_by_memory || it.ip().is_some_and(|ip| ip.is_loopback());
    assert!(route.destinations.iter().all(is_here), "{route}");
    let [reached] = &route.readers[..] else { panic!("{route}") };
    assert_eq!((reached.guid, reached.is_reliable, reached.behind), (pair.reader.guid(), true, 0));

    let [state] = &reading.readers.items[..] else { panic!("{reading}") };
    assert_eq!((state.counters.held, state.counters.lost, state.counters.alive), (1, 0, 1));
    let [matched] = &state.writers.items[..] else { panic!("{state}") };
    assert_eq!((matched.guid, matched.received, matched.waiting), (pair.writer.guid(), 1, 0));
    // Both participants are of this process: each knows of the other's endpoint all the same.
    let [remote] = &reading.remote_endpoints.items[..] else { panic!("{reading}") };
    assert_eq!((remote.guid, remote.is_writer, remote.topic.as_str()), (pair.writer.guid(), true, "Pair"));
    let [other] = &reading.remote_participants.items[..] else { panic!("{reading}") };
    assert_eq!((other.guid, other.product.as_deref()), (pair.participants[0].guid(), Some("Plainsong")));
    assert_eq!(other.transport == UsedTransport::Memory, is_by_memory, "{reading}");
    let delivery = pair.writer.delivery().unwrap();
    let [participant] = &delivery.participants[..] else { panic!("{delivery}") };
    assert_eq!((participant.participant, participant.readers), (pair.participants[1].guid(), 1));
    assert_eq!(participant.transport, writing.remote_participants.items[0].transport);
    assert_eq!(delivery.readers_by_memory(), usize::from(is_by_memory));

    let text = writing.to_string();
    for part in [
        format!(
            "writer {} of topic \"Pair\", type \"Point\": RELIABLE VOLATILE KEEP_LAST 1",
            pair.writer.guid()
        ),
        format!("reader {}", pair.reader.guid()),
        format!("to this host at {}", if is_by_memory { "memory/" } else { "udp/127.0.0.1:" }),
        format!("this host by {}", participant.transport),
        "1 written".to_owned(),
    ] {
        assert!(text.contains(&part), "{part:?} is missing in\n{text}");
    }
}

/// Another type of the same name.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(name = "Point", final)]
struct Text {
    #[dds(key)]
    id: u32,
    text: String,
}

#[test]
fn a_snapshot_says_who_does_not_match_why_and_what_to_do() {
    let domain = fresh_domain();
    let [here, there] = [participant(domain), participant(domain)];
    let _offering = writer::<Point>(&here, "Qos", QosSet::writer().best_effort());
    let _asking = reader::<Point>(&there, "Qos", QosSet::reader().reliable());
    let _points = writer::<Point>(&here, "Type", QosSet::writer());
    let texts = reader::<Text>(&there, "Type", QosSet::reader());
    until("both pairs are known", || here.state().unwrap().mismatches.items.len() == 2);

    let state = here.state().unwrap();
    let of = |topic: &str| state.mismatches.items.iter().find(|it| it.topic == topic).unwrap();
    assert_eq!(of("Qos").reason, MismatchReason::Qos(vec![PolicyId::Reliability]));
    let [difference] = &of("Qos").differences[..] else { panic!("{state}") };
    let sides = (&*difference.subject, difference.writer.as_str(), difference.reader.as_str());
    assert_eq!(sides, ("RELIABILITY", "BEST_EFFORT", "RELIABLE"));
    assert!(difference.cure.contains("RELIABILITY"), "{difference}");
    assert_eq!((&of("Type").reason, of("Type").reader.guid), (&MismatchReason::TypeDefinition, texts.guid()));
    assert!(of("Type").differences[0].reader.contains("text"), "{state}");
    assert!(state.writers.items.iter().all(|writer| writer.routes.is_empty()));
    let incompatible = state.writers.items.iter().find(|it| it.topic == "Qos").unwrap().counters.incompatible;
    assert_eq!(incompatible, 1);
    assert!(state.to_string().contains(&difference.cure), "{state}");
}

#[test]
fn a_reader_that_left_is_in_no_route_any_more() {
    let Pair { writer, reader, participants } =
        Pair::<Point>::new(QosSet::writer(), QosSet::reader().reliable());
    drop(reader);
    until("the reader leaves", || writer.matched_subscriptions().unwrap().is_empty());
    let state = participants[0].state().unwrap();
    let writer = &state.writers.items[0];
    assert_eq!((writer.routes.len(), writer.readers_left_out, writer.counters.matched), (0, 0, 1));
    assert!(state.remote_endpoints.items.is_empty() && state.mismatches.items.is_empty(), "{state}");
    let reading = participants[1].state().unwrap();
    assert!(reading.readers.items.is_empty(), "{reading}");
}

#[test]
fn each_participant_has_a_line_with_its_name_guid_and_process() {
    let domain = fresh_domain();
    let here = participant(domain);
    let factory = DomainParticipantFactory::with_config(common::loopback());
    let unnamed = factory.create_participant(domain, "", QosSet::default()).unwrap();
    until("they know each other", || here.state().unwrap().remote_participants.items.len() == 1);
    let process = format!("process {}", std::process::id());

    let state = here.state().unwrap();
    assert_eq!((state.process.id, state.name.as_str()), (std::process::id(), "test"));
    let [other] = &state.remote_participants.items[..] else { panic!("{state}") };
    assert_eq!((other.process.id, other.name.as_str()), (std::process::id(), ""));
    let text = state.to_string();
    let first = text.lines().next().unwrap();
    assert!(first.starts_with(&format!("participant {} \"test\", {process} ", here.guid())), "{first}");
    let line = format!("  participant {} unnamed, {process} ", unnamed.guid());
    assert!(text.lines().any(|it| it.starts_with(&line)), "{line:?} is missing in\n{text}");
}

#[test]
fn reasons_come_first_and_those_that_ended_are_told_apart() {
    let domain = fresh_domain();
    let [here, there] = [participant(domain), participant(domain)];
    let offering = writer::<Point>(&here, "Qos", QosSet::writer().best_effort());
    let asking = || reader::<Point>(&there, "Qos", QosSet::reader().reliable());
    let (first, second) = (asking(), asking());
    let now = || here.state().unwrap().writers.items[0].incompatible_now;
    until("two do not match", || now() == 2);
    let text = here.state().unwrap().to_string();
    assert!(text.lines().nth(1).unwrap().contains("do not match"), "{text}");
    assert!(text.contains("2 incompatible readers now and 2 in all"), "{text}");
    drop((first, second));
    until("they have gone", || now() == 0);
    let text = here.state().unwrap().to_string();
    assert!(text.contains("0 incompatible readers now and 2 in all"), "{text}");
    drop(offering);
}

#[test]
fn every_policy_that_is_not_the_default_is_shown() {
    let here = participant(fresh_domain());
    let mut qos = QosSet::writer().keep_last(3);
    qos.liveliness =
        Liveliness { kind: LivelinessKind::ManualByTopic, lease_duration: Duration::from_secs(1) };
    qos.resource_limits = ResourceLimits { max_samples: 40, ..ResourceLimits::default() };
    let _writer = writer::<Point>(&here, "Shown", qos);
    let text = here.state().unwrap().to_string();
    for part in
        ["RELIABLE VOLATILE KEEP_LAST 3", "LIVELINESS MANUAL_BY_TOPIC 1 s", "RESOURCE_LIMITS max_samples 40"]
    {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
}

#[test]
fn samples_that_a_limit_refuses_wait_for_room_and_not_for_others() {
    let mut qos = QosSet::reader().reliable().keep_all();
    qos.resource_limits.max_samples = 2;
    let Pair { writer, reader, participants } = Pair::<Point>::new(QosSet::writer().keep_all(), qos);
    for id in 0..5 {
        writer.write(&Point { id, ..Point::default() }).unwrap();
    }
    let route = || participants[1].state().unwrap().readers.items[0].writers.items[0].clone();
    until("all are there", || route().waiting == 3);
    assert!(route().is_refused, "{}", route());
    let text = route().to_string();
    assert!(text.contains("3 wait for room: RESOURCE_LIMITS refuse more until samples are taken"), "{text}");
    until("the rest comes", || !reader.take().unwrap().is_empty() && route().received == 5);
    assert!(!route().is_refused && route().waiting == 0, "{}", route());
}

#[test]
fn what_was_dropped_is_counted_by_reason() {
    let domain = fresh_domain();
    let [here, there] = [participant(domain), participant(domain)];
    until("they know each other", || there.state().unwrap().remote_participants.items.len() == 1);
    let address = there.state().unwrap().remote_participants.items[0].discovery_locators[0];
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(b"no RTPS", (address.ip().unwrap(), address.udp_port().unwrap())).unwrap();
    let count = || {
        let drops = here.state().unwrap().domain_drops;
        drops.iter().find(|it| it.reason == DropReason::Malformed).map(|it| it.count)
    };
    until("it is counted", || count() == Some(1));
    assert!(here.state().unwrap().to_string().contains("1 Malformed"));
}

#[test]
fn what_the_limits_leave_out_is_counted() {
    let domain = fresh_domain();
    let [here, there] = [participant(domain), participant(domain)];
    let writers: Vec<_> = (0..3).map(|_| writer::<Point>(&here, "Limits", QosSet::writer())).collect();
    let readers: Vec<_> = (0..4).map(|_| reader::<Point>(&there, "Limits", QosSet::reader())).collect();
    for writer in &writers {
        until("all match", || writer.matched_subscriptions().unwrap().len() == readers.len());
    }
    let limits = StateLimits { entities: 2, remote: 1, matches: 3, mismatches: 0, ..StateLimits::default() };
    let state = here.state_within(&limits).unwrap();
    assert_eq!((state.writers.items.len(), state.writers.left_out), (2, 1));
    assert_eq!((state.remote_endpoints.items.len(), state.remote_endpoints.left_out), (1, 3));
    let writer = &state.writers.items[0];
    let named: usize = writer.routes.iter().map(|route| route.readers.len()).sum();
    assert_eq!((named, writer.readers_left_out), (3, 1));
    assert!(state.to_string().contains("and 1 more writers"), "{state}");
}

#[test]
fn a_participant_that_is_not_enabled_has_a_state_and_a_deleted_one_has_none() {
    let mut factory = DomainParticipantFactory::with_config(common::loopback());
    let mut qos = QosSet::default();
    qos.entity_factory.autoenable_created_entities = false;
    factory.set_qos(qos);
    let participant = factory.create_participant(fresh_domain(), "asleep", QosSet::default()).unwrap();
    let _writer = writer::<Point>(&participant, "Asleep", QosSet::writer());
    let state = participant.state().unwrap();
    assert!(!state.is_enabled && !state.writers.items[0].is_enabled);
    assert_eq!(state.to_string().matches("(not enabled)").count(), 2, "{state}");
    participant.delete_contained_entities().unwrap();
    factory.delete_participant(&participant).unwrap();
    assert!(matches!(participant.state(), Err(plainsong::Error::AlreadyDeleted(_))));
}
