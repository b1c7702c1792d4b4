//! One writer and several readers with filters of their own, over a network that loses, repeats and reorders:
//! each reader gets what it wants, once, in order, whatever the others want, and nothing counts as lost.

mod road;

use plainsong_proto::discovery::{MatchedReader, MatchedWriter};
use plainsong_proto::filter::FilterFunction;
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::instance::{InstanceHandle, KeyFunction};
use plainsong_proto::locator::Locator;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::Payload;
use plainsong_proto::qos::{Durability, QosSet};
use plainsong_proto::reader::{Reader, ReaderConfig, ReaderLimits};
use plainsong_proto::receiver::{self, Registry};
use plainsong_proto::sample_info::Selector;
use plainsong_proto::stats::{DropCounters, DropReason};
use plainsong_proto::time::{Duration, Instant, Now, Time};
use plainsong_proto::wire::{EndpointSubmessage, MessageContext};
use plainsong_proto::writer::{ChangeKind, WriteError, Writer, WriterConfig, WriterLimits};
use road::{Road, announced, compile, obeyed, one_instance};

const WRITER: Guid = GuidPrefix([1; 12]).entity(EntityId::user_writer(1, true));

/// A reader, the number of its participant, what it wants, and what it got.
struct Member {
    reader: Reader,
    divisor: u32,
    taken: Vec<u32>,
    joined: bool,
}

impl Member {
    /// Reader `number`; two of them live in each participant.
    fn new(number: u8, divisor: u32, qos: QosSet) -> Self {
        let guid = GuidPrefix([2 + number / 2; 12]).entity(EntityId::user_reader(number.into(), true));
        let limits = ReaderLimits::default();
        let mut reader =
            Reader::new(ReaderConfig { guid, keyed: true, qos, limits, key: KeyFunction::new(one_instance) });
        if divisor > 1 {
            reader.set_filter(Some(obeyed(&announced(divisor))));
        }
        Self { reader, divisor, taken: Vec::new(), joined: false }
    }

    fn port(&self) -> u16 {
        7_400 + u16::from(self.reader.guid().prefix.0[0])
    }

    fn matched(&self) -> MatchedReader {
        MatchedReader {
            guid: self.reader.guid(),
            locators: vec![Locator::udp([127, 0, 0, 1].into(), self.port())],
            sources: plainsong_proto::sources::Sources::default(),
            urgent: None,
            expects_inline_qos: false,
            // Some near, some far: datagrams of two sizes.
            same_host: self.port().is_multiple_of(2),
            receive_bytes: 0,
            qos: self.reader.qos().clone(),
            content_filter: (self.divisor > 1).then(|| announced(self.divisor)),
            begins: false,
            skips_to_heartbeat: false,
            is_of_own_process: false,
        }
    }
}

/// Where a datagram arrives: at the writer, or at one participant of readers.
struct Place<'a> {
    writer: &'a mut Writer,
    members: &'a mut [Member],
    port: Option<u16>,
}

impl Registry for Place<'_> {
    fn deliver(
        &mut self,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    ) {
        let addressed = |reader: Guid| {
            let entity = match submessage {
                EndpointSubmessage::Data(it) => it.reader,
                EndpointSubmessage::DataFrag(it) => it.reader,
                EndpointSubmessage::Heartbeat(it) => it.reader,
                EndpointSubmessage::HeartbeatFrag(it) => it.reader,
                EndpointSubmessage::Gap(it) => it.reader,
                _ => EntityId::UNKNOWN,
            };
            let prefix = context.destination;
            (entity == EntityId::UNKNOWN || entity == reader.entity)
                && (prefix == GuidPrefix::UNKNOWN || prefix == reader.prefix)
        };
        for member in self.members.iter_mut() {
            let guid = member.reader.guid();
            if Some(member.port()) != self.port || !member.joined || !addressed(guid) {
                continue;
            }
            let reader = &mut member.reader;
            // Duplicates and stale counts are the network's doing, and counted where they are dropped.
            let _ = reader.on_submessage(now, context, submessage, out);
        }
        if self.port.is_none() {
            let _ = match submessage {
                EndpointSubmessage::AckNack(it) => {
                    self.writer.on_acknack(now, context.sender(it.reader), it, out)
                }
                EndpointSubmessage::NackFrag(it) => {
                    self.writer.on_nack_frag(now, context.sender(it.reader), it, out)
                }
                _ => Ok(()),
            };
        }
    }

    fn is_local(&self, _prefix: GuidPrefix) -> bool {
        true
    }
}

struct World {
    writer: Writer,
    members: Vec<Member>,
    now: Now,
    out: Outbox,
    /// To the writer, or to a port of readers.
    road: Road<Option<u16>>,
}

impl World {
    fn new(offered: QosSet, members: Vec<Member>, loss_percent: u64, seed: u64) -> Self {
        let limits = WriterLimits::default();
        let content_filter = Some(FilterFunction::new(compile));
        let writer = Writer::new(WriterConfig {
            guid: WRITER,
            keyed: true,
            qos: offered,
            limits,
            content_filter,
            group: None,
        });
        let now = Now { mono: Instant(1_000_000_000), wall: Time(1_700_000_000_000_000_000) };
        Self { writer, members, now, out: Outbox::new(), road: Road::new(loss_percent, seed) }
    }

    fn join(&mut self, index: usize) {
        let writer = MatchedWriter {
            guid: WRITER,
            locators: vec![Locator::udp([127, 0, 0, 1].into(), 7_000)],
            sources: plainsong_proto::sources::Sources::default(),
            publisher: EntityId::UNKNOWN,
            vendor: plainsong_proto::vendor::PLAINSONG,
            qos: self.writer.qos().clone(),
            begins: false,
        };
        self.members[index].joined = true;
        let reader = self.members[index].matched();
        self.writer.match_reader(self.now, &reader, &mut self.out);
        self.send();
        self.members[index].reader.match_writer(self.now, &writer, &mut self.out);
        self.send();
    }

    fn send(&mut self) {
        for transmit in self.out.transmits() {
            let datagram = self.out.datagram(transmit);
            for destination in self.out.destinations(transmit) {
                let port = Some(destination.port as u16).filter(|port| *port != 7_000);
                self.road.carry(self.now.mono, port, &datagram);
            }
        }
        self.out.clear();
    }

    fn step(&mut self, end: Instant) -> bool {
        let timers = self.members.iter().filter_map(|member| member.reader.next_timeout());
        let next = timers.chain(self.writer.next_timeout()).chain(self.road.next_arrival()).min();
        let Some(next) = next.filter(|next| *next <= end) else { return false };
        self.move_to(next.max(self.now.mono));
        if let Some((port, bytes)) = self.road.arrived(self.now.mono) {
            let mut counters = DropCounters::default();
            let Self { writer, members, out, now, .. } = self;
            let mut place = Place { writer, members, port };
            receiver::datagram(*now, Locator::default(), &bytes, None, &mut place, &mut counters, out);
            assert_eq!(counters.iter().next(), None, "our own datagrams are well formed");
        } else {
            self.writer.timeout(self.now, &mut self.out);
            for member in &mut self.members {
                member.reader.timeout(self.now, &mut self.out);
            }
        }
        self.send();
        true
    }

    fn move_to(&mut self, instant: Instant) {
        self.now = Now { mono: instant, wall: self.now.wall.plus(instant.since(self.now.mono)) };
    }

    fn pass(&mut self, span: Duration) {
        let end = self.now.mono.after(span).expect("finite");
        while self.step(end) {}
        self.move_to(end);
        for member in &mut self.members {
            let mut samples = plainsong_proto::reader::CachedSamples::new();
            member.reader.take(self.now, &Selector::default(), &mut samples);
            member.taken.extend(samples.iter().map(|sample| {
                u32::from_le_bytes(sample.payload.as_slice()[4..8].try_into().expect("four octets"))
            }));
        }
    }

    fn write(&mut self, number: u32, bytes: usize) {
        let mut octets = vec![0, 1, 0, 0];
        octets.extend(number.to_le_bytes());
        octets.resize(bytes, 7);
        let payload = Payload::from_vec(octets);
        for _ in 0..10_000 {
            let (instance, at) = (InstanceHandle([1; 16]), self.now.wall);
            let kind = ChangeKind::Alive;
            let result = self.writer.write(self.now, kind, instance, payload.clone(), at, &mut self.out);
            self.send();
            match result {
                Ok(_) => return,
                Err(WriteError::Full) => self.pass(Duration::from_millis(1)),
                Err(error) => panic!("{error}"),
            }
        }
        panic!("the writer stayed full for ten seconds");
    }

    fn settle(&mut self) {
        for _ in 0..1_000 {
            self.pass(Duration::from_millis(10));
            if self.writer.is_acknowledged(self.now.mono, self.writer.last_sequence_number()) {
                return;
            }
        }
        panic!("not acknowledged after ten seconds");
    }
}

/// Six readers, two to a participant: some filter, one wants all, one nothing; the last join late.
fn everyone_gets_their_own(durability: Durability, bytes: usize, loss_percent: u64, seed: u64) -> World {
    let requested = QosSet::reader().reliable().keep_all().durability(durability);
    let divisors = [3, 1, 5, 1_000_000, 3, 2];
    let members = (0..)
        .zip(divisors)
        .map(|(number, divisor)| Member::new(number, divisor, requested.clone()))
        .collect();
    let offered = QosSet::writer().keep_all().durability(durability);
    let mut world = World::new(offered, members, loss_percent, seed);
    (0..4).for_each(|index| world.join(index));
    const SAMPLES: u32 = 150;
    for number in 1..=SAMPLES {
        if number == 100 {
            world.settle();
            world.join(4);
            world.join(5);
        }
        world.write(number, bytes);
        world.pass(Duration::from_micros(100));
    }
    world.settle();
    for (index, member) in world.members.iter_mut().enumerate() {
        let first = if index >= 4 && durability == Durability::Volatile { 100 } else { 1 };
        let wanted: Vec<u32> = (first..=SAMPLES).filter(|it| it % member.divisor == 0).collect();
        assert_eq!(member.taken, wanted, "reader {index}, seed {seed}");
        assert_eq!(member.reader.sample_lost_status().total_count, 0, "reader {index}, seed {seed}");
    }
    let sent = world.road.sent;
    world.pass(Duration::from_secs(10));
    assert!(
        world.road.sent - sent <= 20,
        "seed {seed}: {} datagrams with nothing to say",
        world.road.sent - sent
    );
    world
}

#[test]
fn fact_62_each_of_many_readers_gets_what_it_wants_and_no_more() {
    for seed in 1..=8 {
        for durability in [Durability::Volatile, Durability::TransientLocal] {
            everyone_gets_their_own(durability, 40, 20, seed);
            everyone_gets_their_own(durability, 6_000, 10, seed);
        }
    }
}

#[test]
fn only_those_who_share_a_participant_with_who_wants_a_sample_hear_of_it() {
    let world = everyone_gets_their_own(Durability::Volatile, 40, 0, 1);
    let filtered = |index: usize| world.members[index].reader.drops().get(DropReason::ContentFilter);
    assert!(filtered(0) > 0, "its neighbour wants every sample");
    assert!(filtered(3) <= 30, "its neighbour wants every fifth");
    assert_eq!(filtered(2), 0, "its neighbour wants nothing");
}
