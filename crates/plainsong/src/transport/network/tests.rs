//! Participants of the real driver on a network in memory: no socket is opened.

use plainsong_derive::DdsType;
use plainsong_proto::guid::{EntityId, GuidPrefix};
use plainsong_proto::outbox::Outbox;
use plainsong_proto::qos::{ConsistencyKind, Durability, QosSet};
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::stats::DropReason;
use plainsong_proto::wire::Heartbeat;

use super::*;
use crate::base::config::Config;
use crate::data_reader::DataReader;
use crate::data_writer::DataWriter;
use crate::domain::Domain;
use crate::participant::{DomainParticipant, DomainParticipantFactory};
use crate::transport::Transports;
use crate::transport::udp::tests::eventually;

const DOMAIN: u16 = 3;
const PATIENCE: Duration = Duration::from_secs(60);
const LOSS_PERCENT: u64 = 20;

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(name = "Number", final)]
struct Number {
    value: u32,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(name = "Image", final)]
struct Image {
    octets: Vec<u8>,
}

fn config() -> Config {
    Config {
        announce_period_ms: 100,
        lease_duration_ms: 2_000,
        // Each sample leaves alone, so that many datagrams are lost.
        batch_bytes: 0,
        datagram_bytes_max: 1_400,
        ..Config::default()
    }
}

fn join(network: &Arc<Network>, number: u8) -> DomainParticipant {
    let transports = Transports::on_network(network.host(DOMAIN, number), &config());
    let domain = Domain::with_transports(DOMAIN, &config(), transports).unwrap();
    let factory = DomainParticipantFactory::with_config(config());
    factory.create_in(domain, "network", QosSet::default()).unwrap()
}

fn reliable() -> QosSet {
    let mut qos = QosSet::writer().keep_all();
    qos.reliability.max_blocking_time = plainsong_proto::time::Duration::from_secs(60);
    qos
}

fn writer<T: plainsong_proto::cdr::DdsType>(of: &DomainParticipant, qos: QosSet) -> DataWriter<T> {
    let topic = of.create_topic("topic", QosSet::default()).unwrap();
    of.create_publisher(QosSet::default()).unwrap().create_writer(&topic, qos).unwrap()
}

fn reader<T: plainsong_proto::cdr::DdsType>(of: &DomainParticipant, qos: QosSet) -> DataReader<T> {
    let topic = of.create_topic("topic", QosSet::default()).unwrap();
    of.create_subscriber(QosSet::default()).unwrap().create_reader(&topic, qos).unwrap()
}

fn matched<T: plainsong_proto::cdr::DdsType>(writer: &DataWriter<T>, readers: usize) {
    eventually("the writer is matched", || writer.matched_subscriptions().unwrap().len() == readers);
}

/// A fifth was lost, or not far from it.
fn a_fifth_was_lost(network: &Network, sent_min: u64) {
    let (sent, lost) = network.counts();
    assert!(sent >= sent_min && (sent / 10..sent / 3).contains(&lost), "{lost} of {sent} lost");
}

#[test]
fn all_reliable_samples_arrive_in_order_for_who_sleeps_until_they_come() {
    const SAMPLES: u32 = 1_000;
    let network = Network::new(1, LOSS_PERCENT);
    let (writing, reading) = (join(&network, 1), join(&network, 2));
    let writer = writer::<Number>(&writing, reliable());
    let reader = reader::<Number>(&reading, QosSet::reader().reliable().keep_all());
    matched(&writer, 1);
    let take_all = || {
        let mut values = Vec::new();
        while values.len() < SAMPLES as usize {
            let samples = reader.wait_take(PATIENCE).unwrap();
            assert!(!samples.is_empty(), "{} of {SAMPLES} came", values.len());
            values.extend(samples.into_iter().filter_map(|sample| sample.data).map(|it| it.value));
        }
        values
    };
    let values = std::thread::scope(|scope| {
        let taking = scope.spawn(take_all);
        (0..SAMPLES).for_each(|value| writer.write(&Number { value }).unwrap());
        taking.join().unwrap()
    });
    assert_eq!(values, (0..SAMPLES).collect::<Vec<_>>());
    a_fifth_was_lost(&network, SAMPLES.into());
    assert!(writing.interfaces().is_empty(), "there is no UDP");
    let acknowledged = writer.wait_for_acknowledgments(PATIENCE);
    assert!(acknowledged.is_ok(), "{acknowledged:?}");
}

#[test]
fn a_long_sample_is_whole_though_a_fifth_of_its_fragments_is_lost() {
    let network = Network::new(2, LOSS_PERCENT);
    let (writing, reading) = (join(&network, 1), join(&network, 2));
    let writer = writer::<Image>(&writing, reliable());
    let reader = reader::<Image>(&reading, QosSet::reader().reliable().keep_all());
    matched(&writer, 1);
    let image = Image { octets: (0..300_000_u32).map(|index| (index % 251) as u8).collect() };
    writer.write(&image).unwrap();
    let samples = reader.wait_take(PATIENCE).unwrap();
    assert!(samples.len() == 1 && samples[0].data.as_ref() == Some(&image));
    a_fifth_was_lost(&network, 200);
}

#[test]
fn who_joins_late_gets_what_was_kept() {
    let network = Network::new(3, LOSS_PERCENT);
    let writing = join(&network, 1);
    let durable = |mut qos: QosSet| {
        qos.durability = Durability::TransientLocal;
        qos
    };
    let writer = writer::<Number>(&writing, durable(reliable()));
    (0..100).for_each(|value| writer.write(&Number { value }).unwrap());
    let reading = join(&network, 2);
    let reader = reader::<Number>(&reading, durable(QosSet::reader().reliable().keep_all()));
    reader.wait_for_historical_data(PATIENCE).unwrap();
    let mut values = Vec::new();
    eventually("all of them", || {
        values.extend(reader.take().unwrap().into_iter().filter_map(|it| it.data).map(|it| it.value));
        values.len() >= 100
    });
    assert_eq!(values, (0..100).collect::<Vec<_>>());
}

#[test]
fn who_leaves_ends_its_threads_and_is_gone_for_others() {
    let network = Network::new(4, LOSS_PERCENT);
    let (writing, reading) = (join(&network, 1), join(&network, 2));
    let writer = writer::<Number>(&writing, reliable());
    let reader = reader::<Number>(&reading, QosSet::reader().reliable().keep_all());
    matched(&writer, 1);
    assert_eq!(network.hosts(), 2);
    drop((reader, reading));
    // Its threads, which slept in the transport, had to return for that.
    eventually("the transport is gone", || network.hosts() == 1);
    // Its departure may have been lost: then its lease ends.
    matched(&writer, 0);
}

#[test]
fn a_closed_transport_lets_everyone_go() {
    let network = Network::new(5, 0);
    let host = network.host(DOMAIN, 1);
    std::thread::scope(|scope| {
        scope.spawn(|| host.receive(Traffic::User(0), &mut Receiver::default(), true, |_| ()));
        scope.spawn(|| host.wait(Traffic::Discovery, None, None).unwrap());
        host.close();
    });
    host.receive(Traffic::User(0), &mut Receiver::default(), true, |_| ());
}

#[test]
fn the_seed_alone_says_which_datagrams_are_lost() {
    let lost = |seed, number| {
        let network = Network::new(seed, LOSS_PERCENT);
        let (from, to) = (network.host(DOMAIN, 1), network.host(DOMAIN, number));
        let mut all = Vec::new();
        for octet in 0..200 {
            network.carry(&from.host, &to.host.user_locator(), &Arc::from([octet]));
        }
        while to.wait(Traffic::User(0), None, Some(Duration::ZERO)).unwrap().datagram {
            to.receive(Traffic::User(0), &mut Receiver::default(), false, |it| all.push(it.bytes[0]));
        }
        all
    };
    assert!((140..180).contains(&lost(7, 2).len()));
    assert_eq!(lost(7, 2), lost(7, 2));
    assert_ne!(lost(7, 2), lost(8, 2));
    assert_ne!(lost(7, 2), lost(7, 3), "each way has losses of its own");
}

/// Adds a message of a writer that nobody knows.
fn message(out: &mut Outbox, to: &[Locator]) {
    let mut message = out.message(GuidPrefix([1; 12]), to, 1_400);
    assert!(message.heartbeat(&Heartbeat {
        reader: EntityId::UNKNOWN,
        writer: EntityId::user_writer(1, false),
        first: SequenceNumber::FIRST,
        last: SequenceNumber::FIRST,
        count: 1,
        final_flag: true,
        liveliness: false,
        group: None,
    }));
    message.finish();
}

/// Of shared memory, as another stack might name it.
const ELSEWHERE: Locator = Locator { kind: 16, port: 7_411, address: [7; 16] };

fn sends_what_it_reaches_and_counts_the_rest(transports: &Transports) {
    let input = transports.inputs().into_iter().find(|it| it.traffic == Traffic::User(0)).unwrap();
    let here = transports.locators().user_unicast[0];
    let mut out = Outbox::new();
    message(&mut out, &[ELSEWHERE, here]);
    message(&mut out, &[here]);
    transports.send(&Batch { out: &out, traffic_class: 0, recuts: false });
    assert_eq!(transports.unreachable(), 1);
    let (mut receiver, mut received) = (transports.receiver(input), 0);
    while received < out.transmits().len() {
        transports.receive(input, &mut receiver, true, |_| received += 1);
    }
    assert_eq!(transports.unreachable(), 1);
}

#[test]
fn a_destination_that_no_transport_reaches_is_counted_and_keeps_nothing_from_others() {
    let config = Config { multicast: false, interfaces: Some(vec!["lo".to_owned()]), ..config() };
    sends_what_it_reaches_and_counts_the_rest(&Transports::open(DOMAIN, &config).unwrap());
    let host = Network::new(6, 0).host(DOMAIN, 1);
    sends_what_it_reaches_and_counts_the_rest(&Transports::on_network(host, &config));
}

#[test]
fn a_participant_tells_of_what_no_transport_reached() {
    let network = Network::new(7, 0);
    let participant = join(&network, 1);
    let mut out = Outbox::new();
    message(&mut out, &[ELSEWHERE]);
    let shared = participant.inner.slot().unwrap().shared();
    shared.transport.send(&Batch { out: &out, traffic_class: 0, recuts: false });
    assert_eq!(participant.drops().get(DropReason::Unreachable), 1);
}

#[test]
fn readers_with_eventual_consistency_miss_nothing_of_a_member_without_which_the_others_went_on() {
    let network = Network::new(8, 0);
    let participants: Vec<_> = (1..=4).map(|number| join(&network, number)).collect();
    let (members, outside) = participants.split_at(3);
    let atomic = |qos: QosSet| qos.reliable().keep_all().consistency(ConsistencyKind::Atomic);
    let writer = writer::<Number>(&members[2], atomic(reliable()));
    let agreed: Vec<_> = members.iter().map(|it| reader::<Number>(it, atomic(QosSet::reader()))).collect();
    let eventual = reader::<Number>(&outside[0], QosSet::reader().reliable().keep_all());
    let has = |count| move |it: &DomainParticipant| it.atomic_groups()[0].members.len() == count;
    eventually("all are members", || members.iter().all(has(3)));
    matched(&writer, 4);
    // The others have what it writes, and it does not hear of that.
    network.cut(1, 3, true);
    network.cut(2, 3, true);
    (0..10).for_each(|value| writer.write(&Number { value }).unwrap());
    let take = |reader: &DataReader<Number>| {
        let mut values = Vec::new();
        eventually("all samples come", || {
            values.extend(reader.take().unwrap().into_iter().filter_map(|it| it.data).map(|it| it.value));
            values.len() >= 10
        });
        values
    };
    assert_eq!(take(&agreed[0]), Vec::from_iter(0..10));
    eventually("the others go on", || members[..2].iter().all(has(2)));
    network.cut(1, 3, false);
    network.cut(2, 3, false);
    assert_eq!(take(&eventual), Vec::from_iter(0..10));
    eventually("it is back", || members.iter().all(has(3)));
    assert_eq!(members[2].atomic_groups()[0].counts.evicted, 1);
}
