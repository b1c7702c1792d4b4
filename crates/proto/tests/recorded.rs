//! Stories about one writer and its readers, with what came of them on record: which samples each reader got,
//! and what the writer sent, to the octet. Whoever changes how a writer composes datagrams sees what else
//! that changes.
//!
//! `RECORD=1 cargo test -p plainsong-proto --test recorded` writes `tests/recorded/writer.txt` anew: the
//! column of samples never changes without a fault, and a change in the others is to be argued for.

#[path = "road/rings.rs"]
mod rings;
mod road;

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use plainsong_proto::filter::{ContentFilter, FilterFunction};
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::instance::{InstanceHandle, Key, KeyFunction};
use plainsong_proto::locator::Locator;
use plainsong_proto::malformed::Malformed;
use plainsong_proto::matched::{MatchedReader, MatchedWriter};
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::Payload;
use plainsong_proto::qos::{AccessScope, DestinationOrder, Durability, HistoryKind, Presentation, QosSet};
use plainsong_proto::reader::{CachedSamples, Reader, ReaderConfig, ReaderLimits};
use plainsong_proto::receiver::{self, Registry};
use plainsong_proto::sample_info::Selector;
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::sources::{Sender, Sources};
use plainsong_proto::stats::{DropCounters, DropReason};
use plainsong_proto::time::{Duration, Instant, Now, Time};
use plainsong_proto::wire::{EndpointSubmessage, MessageContext};
use plainsong_proto::writer::{ChangeKind, WriteError, Writer, WriterConfig, WriterLimits};
use rings::{Record, Rings};
use road::{Road, announced, compile, obeyed};

const STORIES: u64 = 160;
const STEPS: usize = 60;
const INSTANCES: usize = 3;
const WRITER: Guid = GuidPrefix([1; 12]).entity(EntityId::user_writer(1, true));
const MILLISECOND: Duration = Duration::from_millis(1);

/// Who may be matched, each of them once.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Near,
    SecondNear,
    ThirdNear,
    FourthNear,
    BestEffort,
    Elsewhere,
    FarAway,
    InlineQos,
    Durable,
    Filtered,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Near,
        Self::SecondNear,
        Self::ThirdNear,
        Self::FourthNear,
        Self::BestEffort,
        Self::Elsewhere,
        Self::FarAway,
        Self::InlineQos,
        Self::Durable,
        Self::Filtered,
    ];

    const fn is_elsewhere(self) -> bool {
        matches!(self, Self::Elsewhere | Self::FarAway)
    }

    const fn tells_receive_bytes(self) -> bool {
        matches!(self, Self::Near | Self::SecondNear | Self::ThirdNear | Self::FourthNear)
    }

    fn guid(self) -> Guid {
        GuidPrefix([10 + self as u8; 12]).entity(EntityId::user_reader(1, true))
    }

    fn locator(self, by_memory: bool) -> Locator {
        if by_memory {
            return Locator::memory([10 + self as u8; 16]);
        }
        let ip = if self.is_elsewhere() { [10, 0, 0, 10 + self as u8] } else { [127, 0, 0, 1] };
        Locator::udp(ip.into(), 7_410 + self as u16)
    }

    fn qos(self, offered: &QosSet) -> QosSet {
        let reader = QosSet::reader().keep_all();
        let mut qos = match self {
            Self::BestEffort => reader,
            Self::Durable => reader.reliable().durability(offered.durability),
            _ => reader.reliable(),
        };
        qos.presentation = offered.presentation;
        qos.destination_order = offered.destination_order;
        qos
    }

    fn filter(self) -> Option<ContentFilter> {
        (self == Self::Filtered).then(|| announced(3))
    }

    fn matched(self, offered: &QosSet, by_memory: bool) -> MatchedReader {
        MatchedReader {
            guid: self.guid(),
            locators: vec![self.locator(by_memory)],
            sources: Sources::default(),
            urgent: None,
            expects_inline_qos: self == Self::InlineQos,
            same_host: !self.is_elsewhere(),
            receive_bytes: if self.tells_receive_bytes() { 212_992 } else { 0 },
            qos: self.qos(offered),
            content_filter: self.filter(),
            begins: false,
            skips_to_heartbeat: false,
            is_of_own_process: false,
        }
    }
}

fn instance(number: u8) -> InstanceHandle {
    InstanceHandle([number; 16])
}

/// Octet 8 of a sample is its instance; a serialized key has it behind the encapsulation.
fn key(payload: &[u8], key_only: bool) -> Result<Key, Malformed> {
    let at = if key_only { 4 } else { 8 };
    Ok(instance(payload.get(at).copied().unwrap_or(0)).into())
}

fn offered(variant: u64) -> QosSet {
    let qos = QosSet::writer().keep_all();
    let presented =
        |access_scope, ordered_access| Presentation { access_scope, coherent_access: true, ordered_access };
    match variant {
        3 => QosSet::writer().keep_last(3),
        4 => qos.durability(Durability::TransientLocal),
        5 => QosSet::writer().keep_last(5).durability(Durability::TransientLocal),
        6 => QosSet { destination_order: DestinationOrder::BySourceTimestamp, ..qos },
        7 => QosSet { latency_budget: Duration::from_millis(2), ..qos },
        8 => QosSet { presentation: presented(AccessScope::Topic, false), ..qos },
        9 => QosSet { lifespan: Duration::from_millis(30), ..qos },
        _ => qos,
    }
}

/// As FNV-1a, by words.
struct Digest(u64);

impl Digest {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            let mut octets = [word.len() as u8; 8];
            octets[..word.len()].copy_from_slice(word);
            self.0 = (self.0 ^ u64::from_le_bytes(octets)).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
        }
    }
}

/// How readers of this host are reached.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Udp,
    Memory,
    /// By memory and by UDP by turns, while samples are under way.
    Both,
}

struct Seat {
    kind: Kind,
    reader: Reader,
    matched: bool,
    by_memory: bool,
    /// Samples up to this one were written before it was matched: it may get some that were still to be sent.
    since: u32,
    /// What it got of each instance, in its order.
    got: [Digest; INSTANCES],
    samples: usize,
}

struct Ends {
    writer: Writer,
    seats: Vec<Seat>,
    /// Who receives: the writer, if nobody else.
    receives: Option<usize>,
}

impl Registry for Ends {
    fn deliver(
        &mut self,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    ) {
        // What comes twice, or late, is dropped and counted there.
        let _ = match (submessage, self.receives) {
            (EndpointSubmessage::AckNack(acknack), None) => {
                let sender = Sender::unplaced(context.source.entity(acknack.reader));
                self.writer.on_acknack(now, sender, acknack, out)
            }
            (EndpointSubmessage::NackFrag(nack), None) => {
                let sender = Sender::unplaced(context.source.entity(nack.reader));
                self.writer.on_nack_frag(now, sender, nack, out)
            }
            (of_writer, Some(seat)) => self.seats[seat].reader.on_submessage(now, context, of_writer, out),
            _ => Ok(()),
        };
    }

    fn is_local(&self, prefix: GuidPrefix) -> bool {
        self.receives.is_none_or(|seat| self.seats[seat].kind.guid().prefix == prefix)
    }
}

struct Story {
    ends: Ends,
    now: Now,
    out: Outbox,
    road: Road<Option<usize>>,
    way: Way,
    /// Two for each seat: to it, and back.
    rings: Rings,
    moves: usize,
    /// What happens does not depend on what the road loses, so that samples stay the same when datagrams do
    /// not.
    random: u64,
    written: u32,
    sent: Digest,
    datagrams: usize,
    octets: usize,
}

impl Story {
    fn new(seed: u64, way: Way) -> Self {
        let qos = offered(seed % 10);
        let ring_bytes = [256 << 10, 64 << 10, 32 << 10][(seed % 3) as usize];
        let config = WriterConfig {
            guid: WRITER,
            keyed: true,
            qos: qos.clone(),
            limits: WriterLimits { memory_ring_bytes: ring_bytes, ..WriterLimits::default() },
            content_filter: Some(FilterFunction::new(compile)),
            group: None,
        };
        let seat = |kind: Kind| {
            let limits = ReaderLimits::default();
            let config = ReaderConfig {
                guid: kind.guid(),
                keyed: true,
                qos: kind.qos(&qos),
                limits,
                key: KeyFunction::new(key),
            };
            let mut reader = Reader::new(config);
            if let Some(filter) = kind.filter() {
                reader.set_filter(Some(obeyed(&filter)));
            }
            Seat {
                kind,
                reader,
                matched: false,
                by_memory: way != Way::Udp && !kind.is_elsewhere(),
                since: 0,
                got: [const { Digest::new() }; INSTANCES],
                samples: 0,
            }
        };
        let loss_percent = [0, 0, 3, 20][(seed / 10 % 4) as usize];
        let mut story = Self {
            ends: Ends {
                writer: Writer::new(config),
                seats: Kind::ALL.into_iter().map(seat).collect(),
                receives: None,
            },
            now: Now { mono: Instant(1_000_000_000), wall: Time(1_700_000_000_000_000_000) },
            out: Outbox::new(),
            road: Road::new(loss_percent, seed + 1),
            way,
            // Of some rings other writers fill the most.
            rings: Rings::new(
                2 * Kind::ALL.len(),
                ring_bytes / [1, 8][(seed % 5 / 4) as usize],
                [0, 300_000][(seed % 2) as usize],
                seed + 1,
            ),
            moves: 0,
            random: (seed + 1).wrapping_mul(0xd134_2543_de82_ef95) | 1,
            written: 0,
            sent: Digest::new(),
            datagrams: 0,
            octets: 0,
        };
        story.join((seed % 3) as usize);
        if seed.is_multiple_of(4) {
            (1..4).for_each(|index| story.join(index));
        }
        story
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.random >> 33) % below
    }

    /// Carries what is in the outbox, and notes what the writer sent.
    fn send(&mut self, from: Option<usize>) {
        let mut destinations = 0;
        for transmit in self.out.transmits() {
            let (bytes, to) = (self.out.datagram(transmit), self.out.destinations(transmit));
            let attachment = self.out.parts(transmit).1.cloned();
            if let Some(index) = from {
                if self.ends.seats[index].by_memory {
                    self.rings.push(self.now.mono, 2 * index + 1, (bytes, attachment));
                } else {
                    self.road.carry(self.now.mono, None, &bytes);
                }
                continue;
            }
            destinations += to.len();
            self.octets += to.len() * bytes.len();
            self.sent.add(format!("{to:?}").as_bytes());
            self.sent.add(&bytes);
            for (index, seat) in self.ends.seats.iter().enumerate() {
                let hears = |to: &Locator| *to == seat.kind.locator(false);
                if to.iter().any(hears) {
                    assert!(attachment.is_none(), "only memory has anything beside a message");
                    self.road.carry(self.now.mono, Some(index), &bytes);
                }
                if to.contains(&seat.kind.locator(true)) {
                    self.rings.push(self.now.mono, 2 * index, (bytes.clone(), attachment.clone()));
                }
            }
        }
        self.datagrams += destinations;
        if from.is_none() {
            self.sent.add(format!("{:?}", self.out.events).as_bytes());
            let writer = &mut self.ends.writer;
            writer.sent(self.now.mono);
        }
        self.out.clear();
    }

    fn arrive(&mut self, to: Option<usize>, (bytes, attachment): &Record) {
        let mut drops = DropCounters::default();
        self.ends.receives = to;
        receiver::datagram(
            self.now,
            Locator::default(),
            bytes,
            attachment.as_ref(),
            &mut self.ends,
            &mut drops,
            &mut self.out,
        );
        let malformed = drops.iter().find(|(reason, _)| *reason != DropReason::OtherDestination);
        assert_eq!(malformed, None, "what is composed here is well formed");
        self.send(to);
    }

    /// Time passes; what falls due in it is done when it falls due.
    fn pass(&mut self, span: Duration) {
        let end = self.now.mono.after(span).expect("finite");
        loop {
            let readers = self.ends.seats.iter().map(|seat| seat.reader.next_timeout());
            let timeouts = readers.chain([self.ends.writer.next_timeout()]).flatten();
            let next = timeouts.chain(self.road.next_arrival()).chain(self.rings.next_arrival()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.move_to(next.max(self.now.mono));
            if let Some((to, bytes)) = self.road.arrived(self.now.mono) {
                self.arrive(to, &(bytes, None));
                continue;
            }
            if let Some((link, record)) = self.rings.arrived(self.now.mono) {
                self.arrive(link.is_multiple_of(2).then_some(link / 2), &record);
                continue;
            }
            self.ends.writer.timeout(self.now, &mut self.out);
            self.send(None);
            for index in 0..self.ends.seats.len() {
                self.ends.seats[index].reader.timeout(self.now, &mut self.out);
                self.send(Some(index));
            }
        }
        self.move_to(end);
    }

    fn move_to(&mut self, mono: Instant) {
        self.now = Now { mono, wall: self.now.wall.plus(mono.since(self.now.mono)) };
    }

    fn take(&mut self) {
        for seat in &mut self.ends.seats {
            let mut samples = CachedSamples::new();
            seat.reader.take(self.now, &Selector::default(), &mut samples);
            // Which state an instance has depends on when it is looked at.
            for sample in samples.iter().filter(|sample| sample.info.valid_data) {
                let payload = sample.payload.as_slice();
                let number = u32::from_le_bytes(payload[4..8].try_into().expect("four octets"));
                if number <= seat.since && seat.kind != Kind::Durable {
                    continue;
                }
                seat.samples += 1;
                seat.got[usize::from(payload[8])].add(payload);
            }
        }
    }

    fn join(&mut self, index: usize) {
        let qos = self.ends.writer.qos().clone();
        let Seat { kind, reader, matched, by_memory, since, .. } = &mut self.ends.seats[index];
        if std::mem::replace(matched, true) {
            return;
        }
        *since = self.written;
        let reader_of_writer = kind.matched(&qos, *by_memory);
        let writer = MatchedWriter {
            guid: WRITER,
            locators: vec![Locator::udp([127, 0, 0, 1].into(), 7_400)],
            sources: Sources::default(),
            publisher: EntityId::UNKNOWN,
            vendor: plainsong_proto::vendor::PLAINSONG,
            qos,
            begins: false,
        };
        reader.match_writer(self.now, &writer, &mut self.out);
        self.send(Some(index));
        self.ends.writer.match_reader(self.now, &reader_of_writer, &mut self.out);
        self.send(None);
    }

    /// Its process shares memory with the writer's, or does not any more; then what was not read may be gone.
    fn move_one(&mut self) {
        let index = (self.rings.draw() % Kind::ALL.len() as u64) as usize;
        let qos = self.ends.writer.qos().clone();
        let Seat { kind, matched, by_memory, .. } = &mut self.ends.seats[index];
        if self.way != Way::Both || !*matched || kind.is_elsewhere() {
            return;
        }
        *by_memory = !*by_memory;
        let reader = kind.matched(&qos, *by_memory);
        if !*by_memory && self.rings.draw().is_multiple_of(2) {
            (0..2).for_each(|back| self.rings.cut(2 * index + back));
        }
        self.moves += 1;
        self.ends.writer.match_reader(self.now, &reader, &mut self.out);
        self.send(None);
    }

    /// It has all by then: what it gets does not depend on what is on its way.
    fn part(&mut self, index: usize) {
        self.ends.writer.resume(self.now, &mut self.out);
        self.send(None);
        self.settle();
        let Seat { kind, reader, matched, .. } = &mut self.ends.seats[index];
        if std::mem::replace(matched, false) {
            reader.unmatch_writer(self.now, WRITER, &mut self.out);
            let guid = kind.guid();
            self.send(Some(index));
            self.ends.writer.unmatch_reader(self.now, guid, &mut self.out);
            self.send(None);
        }
    }

    fn change(&mut self, kind: ChangeKind, of: u8, payload: Vec<u8>) {
        let payload = Payload::from_vec(payload);
        for _ in 0..20_000 {
            let Self { ends, now, out, .. } = self;
            let result = ends.writer.write(*now, kind, instance(of), payload.clone(), now.wall, out);
            self.send(None);
            match result {
                Err(WriteError::Full) => {
                    self.pass(MILLISECOND);
                    self.take();
                }
                Ok(_) | Err(WriteError::UnknownInstance) => return,
                Err(error) => panic!("{error}"),
            }
        }
        panic!("the writer stayed full for twenty seconds");
    }

    fn write(&mut self, of: u8, bytes: usize) {
        self.written += 1;
        let mut payload = vec![0, 1, 0, 0];
        payload.extend(self.written.to_le_bytes());
        payload.resize(bytes.max(9), self.written as u8);
        payload[8] = of;
        self.change(ChangeKind::Alive, of, payload);
    }

    fn step(&mut self) {
        let (of, many) = (self.draw(INSTANCES as u64) as u8, self.draw(8) as usize);
        match self.draw(100) {
            0..42 => {
                let bytes = [9, 64, 64, 116, 1_000, 1_000, 5_000, 16_384, 30_000, 100_000];
                let bytes = bytes[self.draw(10) as usize];
                let times = if bytes > 20_000 { 1 + many / 4 } else { [1, 3, 12, 60][many / 2] };
                let pause = [0, 0, 0, 30_000, 2_000_000][self.draw(5) as usize];
                for _ in 0..times {
                    self.write(of, bytes);
                    if self.rings.draw().is_multiple_of(8) {
                        self.move_one();
                    }
                    self.pass(Duration(pause));
                }
            }
            42..50 => {
                let kind = if many < 5 { ChangeKind::Dispose } else { ChangeKind::Unregister };
                self.change(kind, of, vec![0, 1, 0, 0, of]);
            }
            50..72 => self.pass(Duration([20_000, 200_000, 3_000_000, 50_000_000][many / 2])),
            72..75 => self.ends.writer.suspend(),
            75..80 => self.ends.writer.resume(self.now, &mut self.out),
            80..82 => self.ends.writer.flush(self.now, &mut self.out),
            82..85 => self.ends.writer.begin_coherent_changes(SequenceNumber(1)),
            85..89 => self.ends.writer.end_coherent_changes(self.now, SequenceNumber(1), &mut self.out),
            89..97 => {
                let index = self.draw(Kind::ALL.len() as u64) as usize;
                self.join(index);
            }
            _ => {
                let index = self.draw(Kind::ALL.len() as u64) as usize;
                self.part(index);
            }
        }
        self.send(None);
        self.pass(Duration(1_000));
        self.take();
        self.sent.add(format!("{:?}", self.ends.writer.next_timeout()).as_bytes());
    }

    fn settle(&mut self) {
        for _ in 0..3_000 {
            let last = self.ends.writer.last_sequence_number();
            if self.ends.writer.is_acknowledged(self.now.mono, last) {
                self.pass(MILLISECOND);
                return self.take();
            }
            self.pass(Duration::from_millis(10));
            self.take();
        }
        panic!("not acknowledged after thirty seconds");
    }

    /// Whether what reliable readers get is the same whenever it comes.
    fn is_certain(&self) -> bool {
        let qos = self.ends.writer.qos();
        qos.history.kind == HistoryKind::KeepAll && qos.lifespan.is_infinite()
    }

    /// What came of it, as a line: samples that reliable readers got and their digest, then what the writer
    /// sent.
    fn line(&self, seed: u64) -> String {
        let mut line = format!("{seed}");
        if self.is_certain() {
            let mut got = Digest::new();
            let reliable = self.ends.seats.iter().filter(|seat| seat.kind != Kind::BestEffort);
            let samples: usize = reliable.clone().map(|seat| seat.samples).sum();
            reliable.flat_map(|seat| &seat.got).for_each(|of_one| got.add(&of_one.0.to_le_bytes()));
            let _ = write!(line, " {samples} {:016x}", got.0);
        } else {
            line.push_str(" - -");
        }
        let _ = write!(line, " {} {} {:016x}", self.datagrams, self.octets, self.sent.0);
        line
    }
}

fn told(seed: u64, way: Way) -> Story {
    let mut story = Story::new(seed, way);
    (0..STEPS).for_each(|_| story.step());
    story.ends.writer.end_coherent_changes(story.now, SequenceNumber(1), &mut story.out);
    story.send(None);
    story.ends.writer.resume(story.now, &mut story.out);
    story.send(None);
    story.settle();
    story
}

/// All but what a writer sent.
fn samples(line: &str) -> Vec<String> {
    line.split(' ').take(3).map(str::to_owned).collect()
}

#[test]
fn readers_get_by_memory_and_by_changing_routes_what_is_on_record_of_udp() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/writer.txt");
    let recorded = fs::read_to_string(&path).expect("what is on record");
    let (mut moves, mut lost) = (0, 0);
    for (seed, then) in recorded.lines().enumerate().filter(|(seed, _)| (seed / 10).is_multiple_of(4)) {
        for way in [Way::Memory, Way::Both] {
            let story = told(seed as u64, way);
            assert_eq!(samples(&story.line(seed as u64)), samples(then), "{seed}");
            (moves, lost) = (moves + story.moves, lost + story.rings.lost);
        }
    }
    assert!(moves > 400 && lost > 100, "routes changed {moves} times, and {lost} messages found no room");
}

#[test]
fn readers_get_and_a_writer_sends_what_is_on_record() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/writer.txt");
    let threads = 2;
    let of = |thread| {
        (0..STORIES)
            .filter(move |seed| seed % threads == thread)
            .map(|seed| told(seed, Way::Udp).line(seed))
            .collect::<Vec<_>>()
    };
    let (even, odd) = std::thread::scope(|scope| {
        let odd = scope.spawn(|| of(1));
        (of(0), odd.join().expect("no story fails"))
    });
    let lines: Vec<String> = even.into_iter().zip(odd).flat_map(|(one, other)| [one, other]).collect();
    if std::env::var_os("RECORD").is_some() {
        fs::write(&path, lines.join("\n") + "\n").expect("a file that can be written");
    }
    let recorded = fs::read_to_string(&path).expect("what is on record");
    let recorded: Vec<&str> = recorded.lines().collect();
    assert_eq!(recorded.len(), lines.len());
    let others: Vec<_> =
        recorded.iter().zip(&lines).filter(|(then, now)| samples(then) != samples(now)).collect();
    assert!(others.is_empty(), "readers get other samples: {others:#?}");
    let others: Vec<_> = recorded.iter().zip(&lines).filter(|(then, now)| *then != now).collect();
    assert!(others.is_empty(), "the writer sends something else: {others:#?}");
}
