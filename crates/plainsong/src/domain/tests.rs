//! Participants, writers and readers of one process over real sockets on loopback.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use plainsong_proto::discovery::{Command, LocalEndpoint, MatchedReader, MatchedWriter, ParticipantConfig};
use plainsong_proto::guid::{EntityId, GuidPrefix};
use plainsong_proto::instance::{InstanceHandle, KeyFunction};
use plainsong_proto::locator::Locator;
use plainsong_proto::outbox::{Event, Outbox};
use plainsong_proto::payload::Payload;
use plainsong_proto::qos::{History, HistoryKind, QosSet, Reliability, ReliabilityKind};
use plainsong_proto::reader::{CachedSample, CachedSamples, Reader, ReaderConfig, ReaderLimits};
use plainsong_proto::sample_info::Selector;
use plainsong_proto::sources::Sources;
use plainsong_proto::time::Duration;
use plainsong_proto::writer::{ChangeKind, WriteError, Writer, WriterConfig, WriterLimits};

use super::*;
use crate::base::clock;
use crate::runtime::{ReaderSlot, WriterSlot};
use crate::transport::udp::tests::eventually;
#[cfg(target_os = "linux")]
use crate::transport::udp::tests::hosts::in_namespace;

fn loopback() -> Config {
    Config { interfaces: Some(vec!["lo".to_owned()]), ..Config::default() }
}

fn reliable() -> QosSet {
    QosSet {
        reliability: Reliability {
            kind: ReliabilityKind::Reliable,
            max_blocking_time: Duration::from_secs(10),
        },
        history: History { kind: HistoryKind::KeepAll, depth: 1 },
        ..QosSet::default()
    }
}

/// Calls a closure with each event, on the thread that caused it.
struct Listener<F>(F);

impl<F: Fn(Event) + Send + Sync> EventSink for Listener<F> {
    fn events(&self, events: &mut Vec<Event>) {
        events.drain(..).for_each(&self.0);
    }

    fn wake_waiters(&self, _: &Event, _: &mut Vec<std::task::Waker>) -> bool {
        false
    }
}

fn participant(
    domain: &Domain,
    name: u8,
    listener: impl Fn(Event) + Send + Sync + 'static,
) -> Arc<ParticipantSlot> {
    let mut config = ParticipantConfig::new(GuidPrefix([name; 12]), domain.domain_id);
    config.locators = domain.local_locators();
    config.seed = name.into();
    config.announce_period = Duration::from_millis(200);
    domain.add_participant(Participant::new(config), Arc::new(Listener(listener)))
}

fn writer(participant: &ParticipantSlot, qos: &QosSet) -> Arc<WriterSlot> {
    let slot = WriterSlot::new(Writer::new(WriterConfig {
        guid: participant.prefix.entity(EntityId::user_writer(1, false)),
        keyed: false,
        qos: qos.clone(),
        limits: WriterLimits::default(),
        content_filter: None,
        group: None,
    }));
    participant.insert_writer(&slot);
    slot
}

fn reader(participant: &ParticipantSlot, qos: &QosSet) -> Arc<ReaderSlot> {
    let slot = ReaderSlot::new(Reader::new(ReaderConfig {
        guid: participant.prefix.entity(EntityId::user_reader(1, false)),
        keyed: false,
        qos: qos.clone(),
        limits: ReaderLimits::default(),
        key: KeyFunction::new(|_, _| Ok(InstanceHandle::NIL.into())),
    }));
    participant.insert_reader(&slot);
    slot
}

/// A writer and a reader, and who they belong to; matched by hand, as discovery would.
struct Pair {
    domain: Arc<Domain>,
    writer: (Arc<ParticipantSlot>, Arc<WriterSlot>),
    reader: (Arc<ParticipantSlot>, Arc<ReaderSlot>),
}

impl Pair {
    fn new(
        domain_id: u16,
        qos: &QosSet,
        of_writer: impl Fn(Event) + Send + Sync + 'static,
        of_reader: impl Fn(Event) + Send + Sync + 'static,
    ) -> Self {
        Self::with(domain_id, &Config { multicast: false, ..loopback() }, qos, of_writer, of_reader)
    }

    fn with(
        domain_id: u16,
        config: &Config,
        qos: &QosSet,
        of_writer: impl Fn(Event) + Send + Sync + 'static,
        of_reader: impl Fn(Event) + Send + Sync + 'static,
    ) -> Self {
        let domain = Domain::open(domain_id, config).unwrap();
        let (a, b) = (participant(&domain, 1, of_writer), participant(&domain, 2, of_reader));
        let pair =
            Self { writer: (a.clone(), writer(&a, qos)), reader: (b.clone(), reader(&b, qos)), domain };
        pair.connect(qos);
        pair
    }

    fn connect(&self, qos: &QosSet) {
        let ((a, writer), (b, reader)) = (&self.writer, &self.reader);
        let locators = self.domain.local_locators().user_unicast;
        let to_reader = Box::new(MatchedReader {
            guid: reader.guid,
            locators: locators.clone(),
            sources: Sources::default(),
            expects_inline_qos: false,
            same_host: true,
            urgent: None,
            receive_bytes: 0,
            qos: qos.clone(),
            content_filter: None,
            begins: false,
            skips_to_heartbeat: false,
            is_of_own_process: false,
        });
        let to_writer = Box::new(MatchedWriter {
            guid: writer.guid,
            locators,
            sources: Sources::default(),
            publisher: EntityId::UNKNOWN,
            vendor: plainsong_proto::vendor::PLAINSONG,
            qos: qos.clone(),
            begins: false,
        });
        b.control(|_, _, out| {
            out.commands.push(Command::MatchWriter { reader: reader.id, writer: to_writer });
        });
        a.control(|_, _, out| {
            out.commands.push(Command::MatchReader { writer: writer.id, reader: to_reader });
        });
    }

    /// Waits for room as `DataWriter::write` does.
    fn write(&self, bytes: &[u8]) {
        let (participant, writer) = &self.writer;
        let payload = Payload::from_vec([&[0, 1, 0, 0], bytes].concat());
        let deadline = clock::mono().after(Duration::from_secs(10));
        loop {
            let seen = writer.progress.epoch();
            let result = writer.with(participant, |writer, now, out| {
                writer.write(now, ChangeKind::Alive, InstanceHandle::NIL, payload.clone(), now.wall, out)
            });
            match result {
                Ok(_) => return,
                Err(WriteError::Full) => assert!(writer.progress.wait(seen, deadline), "no room"),
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn take(&self) -> Vec<CachedSample> {
        let (participant, reader) = &self.reader;
        let mut samples = CachedSamples::new();
        reader.with(participant, |reader, now, _| reader.take(now, &Selector::default(), &mut samples));
        samples.into_vec()
    }

    fn take_until(&self, count: usize) -> Vec<CachedSample> {
        let mut samples = Vec::new();
        eventually("samples", || {
            samples.extend(self.take());
            samples.len() >= count
        });
        samples
    }
}

#[test]
fn a_reliable_writer_faster_than_its_reader_waits_and_loses_nothing() {
    let pair = Pair::new(20, &reliable(), |_| (), |_| ());
    let count = 3_000_u32;
    let samples = std::thread::scope(|scope| {
        let samples = scope.spawn(|| pair.take_until(count as usize));
        for index in 0..count {
            let mut bytes = vec![index as u8; 4_000];
            bytes[..4].copy_from_slice(&index.to_le_bytes());
            pair.write(&bytes);
        }
        samples.join().unwrap()
    });
    assert_eq!(samples.len(), count as usize);
    for (index, sample) in samples.iter().enumerate() {
        assert_eq!(sample.payload.as_slice()[4..8], (index as u32).to_le_bytes());
        assert_eq!(sample.payload.len(), 4_004);
    }
    assert!(pair.domain.drops().get(DropReason::Malformed) == 0);
}

#[test]
fn threads_that_never_sleep_lose_nothing_and_end() {
    let config = Config { busy_poll: true, multicast: false, ..loopback() };
    let pair = Pair::with(19, &config, &reliable(), |_| (), |_| ());
    for index in 0..500_u32 {
        pair.write(&index.to_le_bytes());
    }
    let numbers = pair.take_until(500).into_iter().map(|it| it.payload.as_slice()[4..8].to_vec());
    assert!(numbers.eq((0..500_u32).map(|index| index.to_le_bytes().to_vec())));
}

#[test]
fn a_domain_whose_threads_cannot_run_where_they_should_is_not_opened() {
    let config = Config { receive_cpus: vec![1000], multicast: false, ..loopback() };
    let error = Domain::open(18, &config).map(drop).unwrap_err().to_string();
    assert!(error.contains("CPUs 1000"), "{error}");
}

#[test]
fn samples_larger_than_a_datagram_arrive_whole() {
    let pair = Pair::new(21, &reliable(), |_| (), |_| ());
    let image: Vec<u8> = (0..3_000_000_u32).map(|index| (index / 7) as u8).collect();
    for _ in 0..5 {
        pair.write(&image);
        let samples = pair.take_until(1);
        assert!(samples[0].payload.as_slice()[4..4 + image.len()] == image);
    }
}

#[test]
fn readers_hear_of_data_and_a_listener_that_panics_stops_nothing() {
    let heard = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&heard);
    let pair = Pair::new(
        22,
        &QosSet::default(),
        |_| (),
        move |event| {
            if matches!(event, Event::DataAvailable { .. }) && count.fetch_add(1, Ordering::Relaxed) == 0 {
                panic!("a listener that panics (expected in this test)");
            }
        },
    );
    for round in 1..=3 {
        pair.write(&[round]);
        assert_eq!(pair.take_until(1)[0].payload.as_slice()[4], round);
        eventually("the event", || heard.load(Ordering::Relaxed) == u32::from(round));
    }
}

#[test]
fn a_listener_may_write() {
    let echo = Arc::new(std::sync::OnceLock::<Pair>::new());
    let there = Pair::new(23, &reliable(), |_| (), {
        let echo = Arc::clone(&echo);
        move |event| {
            if matches!(event, Event::DataAvailable { .. })
                && let Some(back) = echo.get()
            {
                back.write(b"echo");
            }
        }
    });
    assert!(echo.set(Pair::new(24, &reliable(), |_| (), |_| ())).is_ok());
    there.write(b"call");
    assert_eq!(echo.get().unwrap().take_until(1)[0].payload.as_slice()[4..], *b"echo");
    assert_eq!(there.take_until(1)[0].payload.as_slice()[4..], *b"call");
}

#[test]
fn an_unmatched_or_removed_reader_hears_nothing() {
    let qos = QosSet::default();
    let pair = Pair::new(25, &qos, |_| (), |_| ());
    pair.write(b"1");
    pair.take_until(1);
    let ((_, writer), (b, reader)) = (&pair.writer, &pair.reader);
    b.control(|_, _, out| {
        out.commands.push(Command::UnmatchWriter { reader: reader.id, writer: writer.guid });
    });
    assert!(b.matched_readers(writer.guid).is_none());
    pair.connect(&qos);
    assert_eq!(b.matched_readers(writer.guid).unwrap().len(), 1);
    b.remove_reader(reader.id);
    assert!(b.matched_readers(writer.guid).is_none() && b.reader(reader.id).is_none());
    pair.write(b"2");
    eventually("the drop is counted", || pair.domain.drops().iter().any(|(_, count)| count > 0));
    assert!(pair.take().iter().all(|sample| !sample.info.valid_data));
}

#[cfg(target_os = "linux")]
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
#[cfg(target_os = "linux")]
fn participants_cost_no_threads_and_the_last_user_ends_them() {
    const NAME: &str = "domain::tests::participants_cost_no_threads_and_the_last_user_ends_them";
    if !in_namespace(NAME, "ip link set lo up") {
        return;
    }
    let before = threads();
    let domain = Domain::join(26, &Config::default()).unwrap();
    assert_eq!(threads(), before + 6, "rx-meta, rx-data, rx-data6, memory, rx-memory, timer");
    let slots: Vec<_> = (1..=60).map(|name| participant(&domain, name, |_| ())).collect();
    assert!(Arc::ptr_eq(&domain, &Domain::join(26, &Config::default()).unwrap()));
    assert_eq!(threads(), before + 6);
    for slot in &slots {
        domain.remove_participant(slot);
    }
    assert!(domain.shared.registry.participants().is_empty());
    let weak = Arc::downgrade(&domain.shared);
    drop((domain, slots));
    eventually("the threads end", || threads() == before);
    assert!(weak.upgrade().is_none());
}

/// The announcement of a participant that nobody runs.
#[cfg(target_os = "linux")]
fn forged_announcement(name: u8, domain: &Domain) -> Vec<u8> {
    let mut config = ParticipantConfig::new(GuidPrefix([name; 12]), domain.domain_id);
    config.locators = domain.local_locators();
    // Nobody else is there to be found by it.
    config.locators.announce_to = vec![Locator::udp([127, 0, 0, 1].into(), 1)];
    let mut out = Outbox::new();
    Participant::new(config).start(clock::now(), &mut out);
    let announcement = out.transmits().first().expect("it announces itself");
    out.slices(announcement).flatten().copied().collect()
}

#[test]
#[cfg(target_os = "linux")]
fn r9_packets_start_no_threads_and_open_no_sockets() {
    const NAME: &str = "domain::tests::r9_packets_start_no_threads_and_open_no_sockets";
    if !in_namespace(NAME, "ip link set lo up") {
        return;
    }
    let pair = Pair::new(29, &reliable(), |_| (), |_| ());
    let resources = || (threads(), std::fs::read_dir("/proc/self/fd").unwrap().count());
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let before = resources();
    let locators = pair.domain.local_locators();
    for locator in locators.meta_unicast.iter().chain(&locators.user_unicast) {
        let to = (locator.ip().unwrap(), locator.udp_port().unwrap());
        for name in 3..=u8::MAX {
            stranger.send_to(&forged_announcement(name, &pair.domain), to).unwrap();
            stranger.send_to(&[name; 64], to).unwrap();
        }
    }
    let malformed = || pair.domain.drops().get(DropReason::Malformed);
    eventually("all packets are looked at", || malformed() == 2 * (u64::from(u8::MAX) - 2));
    assert!(knows(&pair.writer.0) > 0, "some of the forged were believed");
    assert_eq!(resources(), before);
}

#[test]
fn r7_octets_that_mean_nothing_end_no_receive_thread() {
    let pair = Pair::new(30, &reliable(), |_| (), |_| ());
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let locators = pair.domain.local_locators();
    let header = [&b"RTPS\x02\x05\x01\xf5"[..], &[1; 12]].concat();
    let hostile = [&[][..], &[0xff; 1_400], &header, &[&header[..], &[0x15, 0xff, 0xff, 0xff]].concat()];
    for locator in locators.meta_unicast.iter().chain(&locators.user_unicast) {
        let to = (locator.ip().unwrap(), locator.udp_port().unwrap());
        for datagram in hostile {
            stranger.send_to(datagram, to).unwrap();
        }
    }
    let malformed = || pair.domain.drops().get(DropReason::Malformed);
    eventually("what means nothing is counted", || malformed() >= 4);
    pair.write(b"still here");
    assert_eq!(pair.take_until(1)[0].payload.as_slice()[4..], *b"still here\0\0");
}

#[test]
fn domain_ids_beyond_the_ports_are_refused() {
    let error = Domain::open(233, &loopback()).err().unwrap();
    assert!(error.to_string().contains("domain 233"));
}

fn knows(slot: &ParticipantSlot) -> usize {
    slot.look(|participant| participant.remote_participants().count())
}

/// Participants of separate domains objects, as in separate processes, find each other and exchange a sample.
fn strangers_meet(domain_id: u16, config: &Config) {
    let (here, there) = (Domain::open(domain_id, config).unwrap(), Domain::open(domain_id, config).unwrap());
    let (a, b) = (participant(&here, 1, |_| ()), participant(&there, 2, |_| ()));
    eventually("they know each other", || knows(&a) == 1 && knows(&b) == 1);
    let qos = reliable();
    let (writer, reader) = (writer(&a, &qos), reader(&b, &qos));
    for (slot, guid) in [(&a, writer.guid), (&b, reader.guid)] {
        let (topic, type_name, qos) = ("Square".to_owned(), "ShapeType".to_owned(), qos.clone());
        let group = EntityId::UNKNOWN;
        let endpoint = LocalEndpoint {
            guid,
            topic,
            type_name,
            keyed: false,
            qos,
            group,
            content_filter: None,
            type_description: None,
        };
        slot.control(|control, now, out| control.add_endpoint(now, endpoint, out)).unwrap();
    }
    eventually("they match", || {
        writer.look(|writer| writer.matched_readers().count()) == 1
            && reader.look(|reader| reader.matched_writers().count()) == 1
    });
    let pair = Pair { domain: here, writer: (a, writer), reader: (b, reader) };
    pair.write(b"hello");
    assert_eq!(pair.take_until(1)[0].payload.as_slice()[4..9], *b"hello");
    there.remove_participant(&pair.reader.0);
    eventually("the departure is heard", || knows(&pair.writer.0) == 0);
    eventually("and unmatched", || pair.writer.1.look(|writer| writer.matched_readers().count()) == 0);
}

#[test]
fn strangers_on_one_host_meet_without_multicast() {
    strangers_meet(27, &Config { multicast: false, ..loopback() });
}

#[test]
#[cfg(target_os = "linux")]
fn strangers_meet_where_loopback_knows_no_multicast() {
    const NAME: &str = "domain::tests::strangers_meet_where_loopback_knows_no_multicast";
    if in_namespace(NAME, "ip link set lo up") {
        strangers_meet(0, &Config::default());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_address_that_comes_late_is_told_to_those_who_know_us() {
    const NAME: &str = "domain::tests::an_address_that_comes_late_is_told_to_those_who_know_us";
    let setup = "ip link set lo up; ip link add one type veth peer name two; ip link set two up";
    if !in_namespace(NAME, setup) {
        return;
    }
    let heard = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&heard);
    let (here, there) = (Domain::open(0, &Config::default()).unwrap(), Domain::open(0, &loopback()).unwrap());
    let a = participant(&here, 1, |_| ());
    let b = participant(&there, 2, move |event| {
        if matches!(event, Event::ParticipantChanged { alive: true, .. }) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    eventually("they know each other", || knows(&a) == 1 && knows(&b) == 1);
    let before = heard.load(Ordering::Relaxed);
    crate::transport::udp::tests::hosts::shell("ip addr add 10.9.0.1/24 dev one; ip link set one up");
    eventually("the change is told", || heard.load(Ordering::Relaxed) > before);
    assert_eq!(knows(&b), 1);
}

#[test]
fn sixty_participants_on_one_host_all_meet() {
    const COUNT: u8 = 60;
    let config = Config { multicast: false, ipv6: crate::base::config::Use::Off, ..loopback() };
    let all: Vec<_> = (1..=COUNT)
        .map(|name| {
            let domain = Domain::open(28, &config).unwrap();
            let slot = participant(&domain, name, |_| ());
            (domain, slot)
        })
        .collect();
    for (_, slot) in &all {
        eventually("everyone knows everyone", || knows(slot) == usize::from(COUNT) - 1);
    }
}
