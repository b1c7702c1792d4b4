//! Writers that share one road, which has a rate, a length and a queue: it is busy, little waits in its
//! queue, little is lost, and each writer gets its part. Time is virtual.

#[allow(dead_code)]
mod road;

use std::collections::BinaryHeap;

use plainsong_proto::discovery::{MatchedReader, MatchedWriter};
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::instance::{InstanceHandle, KeyFunction};
use plainsong_proto::locator::Locator;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::{NewPayload, Payload};
use plainsong_proto::qos::QosSet;
use plainsong_proto::reader::{CachedSamples, Reader, ReaderConfig, ReaderLimits};
use plainsong_proto::receiver::{self, Registry};
use plainsong_proto::sample_info::Selector;
use plainsong_proto::sources::{Sender, Sources};
use plainsong_proto::stats::DropCounters;
use plainsong_proto::time::{Instant, Now, Time};
use plainsong_proto::wire::{EndpointSubmessage, MessageContext};
use plainsong_proto::writer::{ChangeKind, WriteError, Writer, WriterConfig, WriterLimits};
use road::one_instance;

const MS: u64 = 1_000_000;
/// What a datagram has beside its octets: Ethernet, IP and UDP.
const DATAGRAM_BYTES: u64 = 66;

/// What all datagrams take from here to there; back there is nothing in the way but the length.
#[derive(Clone, Copy, Debug)]
struct Bottleneck {
    mbit_per_s: u64,
    round_trip_micros: u64,
    queue_bytes: u64,
}

impl Bottleneck {
    fn nanos(&self, bytes: u64) -> u64 {
        bytes * 8_000 / self.mbit_per_s
    }
}

/// A writer here and its reader behind the road.
struct Pair {
    writer: Writer,
    reader: Reader,
    sample: Vec<u8>,
    /// The next sample.
    payload: Payload,
    /// Octets of samples that the reader's application has.
    taken: usize,
    /// What was sent for it, first and again.
    sent: u64,
    /// Datagrams that its reader sent.
    answers: u64,
    begins: Instant,
}

fn names(number: u8) -> (Guid, Guid) {
    let writer = GuidPrefix([number; 12]).entity(EntityId::user_writer(1, true));
    (writer, GuidPrefix([100 + number; 12]).entity(EntityId::user_reader(1, true)))
}

impl Registry for Pair {
    fn deliver(&mut self, now: Now, from: &MessageContext, heard: &EndpointSubmessage<'_>, out: &mut Outbox) {
        let reader = self.reader.guid();
        let _ = match heard {
            EndpointSubmessage::Data(data) => self.reader.on_data(now, from, data, out),
            EndpointSubmessage::DataFrag(data) => self.reader.on_data_frag(now, from, data, out),
            EndpointSubmessage::Heartbeat(it) => self.reader.on_heartbeat(now, from, it, out),
            EndpointSubmessage::HeartbeatFrag(it) => self.reader.on_heartbeat_frag(now, from, it, out),
            EndpointSubmessage::Gap(gap) => self.reader.on_gap(now, from, gap, out),
            EndpointSubmessage::AckNack(it) => self.writer.on_acknack(now, Sender::unplaced(reader), it, out),
            EndpointSubmessage::NackFrag(it) => {
                self.writer.on_nack_frag(now, Sender::unplaced(reader), it, out)
            }
        };
    }

    fn is_local(&self, _: GuidPrefix) -> bool {
        true
    }
}

/// When a datagram arrives, a tie-breaker, of which pair it is, and its octets; the earliest is the greatest.
type Arrival = std::cmp::Reverse<(u64, u64, usize, Vec<u8>)>;

struct Scene {
    bottleneck: Bottleneck,
    pairs: Vec<Pair>,
    now: Now,
    out: Outbox,
    arrivals: BinaryHeap<Arrival>,
    sent: u64,
    /// When the road has sent all that it holds.
    free_at: u64,
    /// How long each datagram waited for the road, since when.
    waits: Vec<(u64, u64)>,
    dropped: u64,
    /// Nothing arrives, in either direction.
    is_cut: bool,
}

impl Scene {
    /// Writers of samples of so many octets, which begin after so many milliseconds.
    fn new(bottleneck: Bottleneck, writers: &[(usize, u64)]) -> Self {
        let start = Instant(1_000_000_000);
        let now = Now { mono: start, wall: Time(1_700_000_000_000_000_000) };
        let pair = |number: u8, bytes: usize, begins: u64| {
            let (writer, reader) = names(number);
            let writer = Writer::new(WriterConfig {
                guid: writer,
                keyed: true,
                qos: QosSet::writer().keep_all(),
                limits: WriterLimits::default(),
                content_filter: None,
                group: None,
            });
            let reader = Reader::new(ReaderConfig {
                guid: reader,
                keyed: true,
                qos: QosSet::reader().reliable().keep_all(),
                limits: ReaderLimits::default(),
                key: KeyFunction::new(one_instance),
            });
            Pair {
                writer,
                reader,
                sample: vec![7; bytes],
                payload: Payload::from_vec(vec![7; bytes]),
                taken: 0,
                sent: 0,
                answers: 0,
                begins: Instant(start.0 + begins * MS),
            }
        };
        let pairs =
            (1..).zip(writers).map(|(number, (bytes, begins))| pair(number, *bytes, *begins)).collect();
        let mut scene = Self {
            bottleneck,
            pairs,
            now,
            out: Outbox::new(),
            arrivals: BinaryHeap::new(),
            sent: 0,
            free_at: 0,
            waits: Vec::new(),
            dropped: 0,
            is_cut: false,
        };
        (0..writers.len()).for_each(|index| scene.match_pair(index));
        scene
    }

    fn match_pair(&mut self, index: usize) {
        let locators = vec![Locator::udp([10, 0, 0, 1].into(), 7_411)];
        let Some(pair) = self.pairs.get_mut(index) else { return };
        let reader = MatchedReader {
            guid: pair.reader.guid(),
            locators: locators.clone(),
            sources: Sources::default(),
            expects_inline_qos: false,
            same_host: false,
            urgent: None,
            receive_bytes: 4 << 20,
            qos: pair.reader.qos().clone(),
            content_filter: None,
            begins: false,
            skips_to_heartbeat: false,
            is_of_own_process: false,
        };
        let writer = MatchedWriter {
            guid: pair.writer.guid(),
            locators,
            sources: Sources::default(),
            publisher: EntityId::UNKNOWN,
            vendor: plainsong_proto::vendor::PLAINSONG,
            qos: pair.writer.qos().clone(),
            begins: false,
        };
        pair.reader.match_writer(self.now, &writer, &mut self.out);
        pair.writer.match_reader(self.now, &reader, &mut self.out);
        self.send(index);
    }

    /// Samples go over the road, acknowledgements back without a queue.
    fn send(&mut self, index: usize) {
        let Some(pair) = self.pairs.get_mut(index) else { return };
        let at = self.now.mono.0;
        for transmit in self.out.transmits() {
            let octets = self.out.datagram(transmit);
            self.sent += 1;
            let is_back = octets.get(8..20) == Some(&pair.reader.guid().prefix.0[..]);
            let mut leaves = at;
            if is_back {
                pair.answers += 1;
            } else {
                let bytes = octets.len() as u64 + DATAGRAM_BYTES;
                pair.sent += bytes;
                let wait = self.free_at.saturating_sub(at);
                if wait + self.bottleneck.nanos(bytes) > self.bottleneck.nanos(self.bottleneck.queue_bytes) {
                    self.dropped += 1;
                    continue;
                }
                self.waits.push((at, wait));
                leaves += wait + self.bottleneck.nanos(bytes);
                self.free_at = leaves;
            }
            if self.is_cut {
                continue;
            }
            let arrives = leaves + self.bottleneck.round_trip_micros * 500;
            self.arrivals.push(std::cmp::Reverse((arrives, self.sent, index, octets.to_vec())));
        }
        self.out.clear();
    }

    /// The application writes as long as there is room.
    fn write(&mut self, index: usize) {
        while let Some(pair) = self.pairs.get_mut(index).filter(|pair| pair.begins <= self.now.mono) {
            let (instance, wall) = (InstanceHandle([1; 16]), self.now.wall);
            let written = pair.writer.write_from(
                self.now,
                ChangeKind::Alive,
                instance.into(),
                NewPayload::Payload(&mut pair.payload),
                wall,
                &mut self.out,
            );
            if written.is_ok() {
                pair.payload = Payload::from_vec(pair.sample.clone());
            }
            self.send(index);
            match written {
                Ok(_) => {}
                Err(WriteError::Full) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn take(&mut self, index: usize) {
        let Some(pair) = self.pairs.get_mut(index) else { return };
        let mut samples = CachedSamples::new();
        pair.reader.take(self.now, &Selector::default(), &mut samples);
        pair.taken += samples.iter().map(|sample| sample.payload.as_slice().len()).sum::<usize>();
    }

    /// The next thing that happens before `end`; false when there is none.
    fn step(&mut self, end: Instant) -> bool {
        let timers = self.pairs.iter().flat_map(|pair| {
            let begins = Some(pair.begins).filter(|begins| *begins > self.now.mono);
            [pair.writer.next_timeout(), pair.reader.next_timeout(), begins]
        });
        let arrival = self.arrivals.peek().map(|std::cmp::Reverse((at, ..))| Instant(*at));
        let Some(next) = timers.flatten().chain(arrival).min().filter(|next| *next <= end) else {
            return false;
        };
        let next = next.max(self.now.mono);
        self.now = Now { mono: next, wall: self.now.wall.plus(next.since(self.now.mono)) };
        if arrival.is_some_and(|arrival| arrival <= next)
            && let Some(std::cmp::Reverse((_, _, index, octets))) = self.arrivals.pop()
        {
            let Some(pair) = self.pairs.get_mut(index) else { return false };
            let mut drops = DropCounters::default();
            receiver::datagram(self.now, Locator::default(), &octets, None, pair, &mut drops, &mut self.out);
            self.send(index);
            self.take(index);
            self.write(index);
            return true;
        }
        for index in 0..self.pairs.len() {
            let Some(pair) = self.pairs.get_mut(index) else { continue };
            pair.writer.timeout(self.now, &mut self.out);
            pair.reader.timeout(self.now, &mut self.out);
            self.send(index);
            self.write(index);
        }
        true
    }

    /// Datagrams that readers sent.
    fn answers(&self) -> u64 {
        self.pairs.iter().map(|pair| pair.answers).sum()
    }

    /// So many milliseconds pass.
    fn pass(&mut self, ms: u64) -> Passed {
        let before: Vec<(usize, u64)> = self.pairs.iter().map(|pair| (pair.taken, pair.sent)).collect();
        let (dropped, answers) = (self.dropped, self.answers());
        let start = self.now.mono;
        let end = Instant(start.0 + ms * MS);
        while self.step(end) {}
        self.now = Now { mono: end, wall: self.now.wall.plus(end.since(self.now.mono)) };
        let capacity = self.bottleneck.mbit_per_s as f64 * 125.0 * ms as f64;
        let taken =
            self.pairs.iter().zip(&before).map(|(pair, (taken, _))| (pair.taken - taken) as f64 / capacity);
        let sent: u64 = self.pairs.iter().zip(&before).map(|(pair, (_, sent))| pair.sent - sent).sum();
        let mut waits: Vec<u64> =
            self.waits.iter().filter(|(at, _)| *at >= start.0).map(|(_, wait)| *wait).collect();
        waits.sort_unstable();
        let wait = |at: f64| waits[((waits.len() - 1) as f64 * at) as usize] as f64 / MS as f64;
        Passed {
            taken: taken.collect(),
            sent: sent as f64 / capacity,
            usual_ms: wait(0.5),
            rare_ms: wait(0.99),
            longest_ms: wait(1.0),
            dropped: (self.dropped - dropped) as f64 / waits.len() as f64,
            answers_per_s: (self.answers() - answers) * 1_000 / ms,
            datagram_bytes: (sent / waits.len().max(1) as u64) - DATAGRAM_BYTES,
        }
    }
}

/// What happened in some time.
#[derive(Debug)]
struct Passed {
    /// Octets of samples that each application got, and all that was sent, as parts of what the road carries.
    taken: Vec<f64>,
    sent: f64,
    /// How long datagrams waited for the road: the median, the 99th percentile, the longest.
    usual_ms: f64,
    rare_ms: f64,
    longest_ms: f64,
    /// The part of the datagrams that the queue had no room for.
    dropped: f64,
    /// Datagrams of readers.
    answers_per_s: u64,
    /// What a datagram of writers has on average.
    datagram_bytes: u64,
}

/// What happens until all have settled, and after that.
fn pass(bottleneck: Bottleneck, writers: &[(usize, u64)], settle_ms: u64, ms: u64) -> (Passed, Passed) {
    let mut scene = Scene::new(bottleneck, writers);
    let first = scene.pass(settle_ms);
    (first, scene.pass(ms))
}

/// Of what the road carries, samples of this size are at most this part: the rest is headers.
fn useful(bytes: usize) -> f64 {
    if bytes < 1_000 { 0.74 } else { 0.8 }
}

#[test]
fn a_writer_keeps_a_road_busy_and_little_waits_in_its_queue() {
    for (mbit_per_s, round_trip_micros, beginning_ms) in
        [(100, 200, 10.0), (100, 5_000, 15.0), (100, 20_000, 25.0), (10, 5_000, 15.0)]
    {
        for bytes in [1_000, 100_000] {
            // Its queue holds 100 ms.
            let queue_bytes = 12_500 * mbit_per_s;
            let bottleneck = Bottleneck { mbit_per_s, round_trip_micros, queue_bytes };
            let (first, later) = pass(bottleneck, &[(bytes, 0)], 1_500, 500);
            let scene = format!("{bottleneck:?}, {bytes} octets: {first:?}, {later:?}");
            assert!(later.taken[0] > 0.9 * useful(bytes), "{scene}");
            assert!(first.longest_ms < beginning_ms && later.longest_ms < beginning_ms, "{scene}");
            assert!(later.rare_ms < 10.0 && later.usual_ms < 6.0, "{scene}");
            assert!(first.dropped + later.dropped == 0.0, "{scene}");
        }
    }
}

#[test]
fn short_samples_that_wait_share_datagrams() {
    let bottleneck = Bottleneck { mbit_per_s: 100, round_trip_micros: 1_000, queue_bytes: 1_250_000 };
    let (_, later) = pass(bottleneck, &[(200, 0)], 300, 300);
    assert!(later.taken[0] > 0.9 * useful(200), "{later:?}");
}

#[test]
fn a_fast_road_is_kept_busy_too() {
    for (round_trip_micros, bytes) in [(200, 8_000), (2_000, 100_000)] {
        let bottleneck = Bottleneck { mbit_per_s: 1_000, round_trip_micros, queue_bytes: 12_500_000 };
        let (first, later) = pass(bottleneck, &[(bytes, 0)], 100, 100);
        let scene = format!("{bottleneck:?}, {bytes} octets: {first:?}, {later:?}");
        assert!(later.taken[0] > 0.9 * useful(bytes), "{scene}");
        assert!(first.longest_ms < 10.0 && later.longest_ms < 6.0, "{scene}");
        assert!(first.dropped + later.dropped == 0.0, "{scene}");
    }
}

#[test]
fn where_the_queue_is_short_little_is_lost() {
    // 25 kB, 2 ms: less than the time that the window aims at. A window that halves uses less of a road that
    // is longer than its queue.
    for (round_trip_micros, settle_ms, part) in [(200, 500, 0.9), (5_000, 1_500, 0.6), (20_000, 3_500, 0.35)]
    {
        for bytes in [1_000, 100_000] {
            let bottleneck = Bottleneck { mbit_per_s: 100, round_trip_micros, queue_bytes: 25_000 };
            let (_, later) = pass(bottleneck, &[(bytes, 0)], settle_ms, 1_000);
            let scene = format!("{bottleneck:?}, {bytes} octets: {later:?}");
            assert!(later.taken[0] > part * useful(bytes), "{scene}");
            assert!(later.dropped < 0.08 && later.sent < 1.1, "{scene}");
        }
    }
}

#[test]
fn two_writers_share_a_road() {
    for (round_trip_micros, settle_ms) in [(200, 2_000), (5_000, 4_000)] {
        for bytes in [1_000, 100_000] {
            let bottleneck = Bottleneck { mbit_per_s: 100, round_trip_micros, queue_bytes: 1_250_000 };
            let (_, later) = pass(bottleneck, &[(bytes, 0), (bytes, 500)], settle_ms, 1_000);
            let scene = format!("{bottleneck:?}, {bytes} octets: {later:?}");
            let [one, other] = later.taken[..] else { panic!("{scene}") };
            assert!(one + other > 0.9 * useful(bytes), "{scene}");
            assert!(one.min(other) > 0.3 * (one + other), "{scene}");
            assert!(later.rare_ms < 10.0 && later.dropped == 0.0, "{scene}");
        }
    }
}

#[test]
fn eight_writers_share_a_road() {
    let bottleneck = Bottleneck { mbit_per_s: 100, round_trip_micros: 1_000, queue_bytes: 1_250_000 };
    let writers: Vec<_> = (0..8).map(|number| (1_000, number * 100)).collect();
    let (_, later) = pass(bottleneck, &writers, 2_500, 1_000);
    let scene = format!("{bottleneck:?}: {later:?}");
    let sum: f64 = later.taken.iter().sum();
    assert!(sum > 0.9 * useful(1_000), "{scene}");
    let least = later.taken.iter().copied().fold(f64::MAX, f64::min);
    assert!(least > 0.4 * sum / 8.0, "{scene}");
    assert!(later.rare_ms < 15.0 && later.dropped == 0.0, "{scene}");
}

#[test]
fn a_road_that_gives_out_for_a_while_is_taken_up_again_at_once() {
    let bottleneck = Bottleneck { mbit_per_s: 100, round_trip_micros: 1_000, queue_bytes: 1_250_000 };
    let mut scene = Scene::new(bottleneck, &[(8_000, 0)]);
    scene.pass(500);
    scene.is_cut = true;
    let cut = scene.pass(1_000);
    assert!(cut.sent < 0.05, "hardly anything is sent where nobody answers: {cut:?}");
    scene.is_cut = false;
    scene.pass(1_000);
    let later = scene.pass(500);
    assert!(later.taken[0] > 0.9 * useful(8_000), "{later:?}");
}

#[test]
fn readers_are_asked_by_parts_of_the_window_and_datagrams_are_full() {
    // Where samples share datagrams, or fill them, most of the road is for what is in them; the parts here
    // are of what it carries.
    for (bytes, part) in [(64, 0.64), (1_024, 0.85), (16_384, 0.84), (100_000, 0.84)] {
        for round_trip_micros in [50, 1_000, 5_000, 20_000] {
            let bottleneck = Bottleneck { mbit_per_s: 100, round_trip_micros, queue_bytes: 1_250_000 };
            let (_, later) = pass(bottleneck, &[(bytes, 0)], 1_500, 1_000);
            let scene = format!("{bottleneck:?}, {bytes} octets: {later:?}");
            assert!(later.taken[0] > part, "{scene}");
            assert!(later.answers_per_s < 1_200 && later.datagram_bytes > 1_000, "{scene}");
        }
    }
}
