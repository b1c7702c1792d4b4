//! A writer and a reader, and between them a network that loses, repeats and reorders: everything
//! arrives, once, in order, and then there is silence.

mod road;

use plainsong_proto::discovery::{MatchedReader, MatchedWriter};
use plainsong_proto::filter::{ContentFilter, FilterFunction};
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::instance::{InstanceHandle, KeyFunction};
use plainsong_proto::locator::Locator;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::Payload;
use plainsong_proto::qos::{DestinationOrder, Durability, QosSet, ResourceLimits};
use plainsong_proto::reader::{Reader, ReaderConfig, ReaderLimits};
use plainsong_proto::receiver::{self, Registry};
use plainsong_proto::sample_info::Selector;
use plainsong_proto::sources::{Sender, Sources};
use plainsong_proto::stats::{DropCounters, DropReason};
use plainsong_proto::time::{Duration, Instant, Now, Time};
use plainsong_proto::wire::{EndpointSubmessage, MessageContext};
use plainsong_proto::writer::{ChangeKind, WriteError, Writer, WriterConfig, WriterLimits};
use road::{Road, announced, compile, obeyed, one_instance};

const WRITER: Guid = GuidPrefix([1; 12]).entity(EntityId::user_writer(1, true));
const READER: Guid = GuidPrefix([2; 12]).entity(EntityId::user_reader(1, true));

fn locator() -> Locator {
    Locator::udp([127, 0, 0, 1].into(), 7_411)
}

struct Ends {
    writer: Writer,
    reader: Reader,
}

impl Registry for Ends {
    fn deliver(
        &mut self,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    ) {
        // Duplicates and stale counts are the network's doing, and counted where they are dropped.
        let _ = match submessage {
            EndpointSubmessage::AckNack(acknack) => {
                self.writer.on_acknack(now, Sender::unplaced(READER), acknack, out)
            }
            EndpointSubmessage::NackFrag(nack) => {
                self.writer.on_nack_frag(now, Sender::unplaced(READER), nack, out)
            }
            of_writer => self.reader.on_submessage(now, context, of_writer, out),
        };
    }

    fn is_local(&self, _prefix: GuidPrefix) -> bool {
        true
    }
}

struct Pair {
    ends: Ends,
    now: Now,
    out: Outbox,
    road: Road<()>,
    taken: Vec<Vec<u8>>,
    filter: Option<ContentFilter>,
}

impl Pair {
    fn new(offered: QosSet, requested: QosSet, loss_percent: u64, seed: u64) -> Self {
        let mut limits = WriterLimits::default();
        limits.heartbeat_shortest = limits.heartbeat_shortest.min(Duration::from_millis(5));
        let writer = WriterConfig {
            guid: WRITER,
            keyed: true,
            qos: offered,
            limits,
            content_filter: Some(FilterFunction::new(compile)),
            group: None,
        };
        let limits = ReaderLimits::default();
        let reader = ReaderConfig {
            guid: READER,
            keyed: true,
            qos: requested,
            limits,
            key: KeyFunction::new(one_instance),
        };
        let now = Now { mono: Instant(1_000_000_000), wall: Time(1_700_000_000_000_000_000) };
        let ends = Ends { writer: Writer::new(writer), reader: Reader::new(reader) };
        let road = Road::new(loss_percent, seed);
        Self { ends, now, out: Outbox::new(), road, taken: Vec::new(), filter: None }
    }

    fn match_both(&mut self) {
        self.match_reader();
        let writer = MatchedWriter {
            guid: WRITER,
            locators: vec![locator()],
            sources: Sources::default(),
            publisher: EntityId::UNKNOWN,
            vendor: plainsong_proto::vendor::PLAINSONG,
            qos: self.ends.writer.qos().clone(),
            begins: false,
        };
        self.ends.reader.match_writer(self.now, &writer, &mut self.out);
        self.send();
    }

    /// The writer hears of the reader.
    fn match_reader(&mut self) {
        let qos = self.ends.reader.qos().clone();
        let reader = MatchedReader {
            guid: READER,
            locators: vec![locator()],
            sources: Sources::default(),
            urgent: None,
            expects_inline_qos: false,
            same_host: false,
            receive_bytes: 0,
            qos,
            content_filter: self.filter.clone(),
            begins: false,
            skips_to_heartbeat: false,
            is_of_own_process: false,
        };
        self.ends.writer.match_reader(self.now, &reader, &mut self.out);
        self.send();
    }

    /// The reader wants every so manieth sample from now on; its writer hears of it when they match.
    fn want_every(&mut self, divisor: u32) {
        let announced = announced(divisor);
        self.ends.reader.set_filter(Some(obeyed(&announced)));
        self.filter = Some(announced);
    }

    /// Sends what is in the outbox.
    fn send(&mut self) {
        for transmit in self.out.transmits() {
            self.road.carry(self.now.mono, (), &self.out.datagram(transmit));
        }
        self.out.clear();
    }

    /// The next thing that happens, if it does before `end`.
    fn step(&mut self, end: Instant) -> bool {
        let timers = [self.ends.writer.next_timeout(), self.ends.reader.next_timeout()];
        let next = timers.into_iter().flatten().chain(self.road.next_arrival()).min();
        let Some(next) = next.filter(|next| *next <= end) else { return false };
        self.move_to(next.max(self.now.mono));
        if let Some(((), bytes)) = self.road.arrived(self.now.mono) {
            let mut counters = DropCounters::default();
            receiver::datagram(
                self.now,
                Locator::default(),
                &bytes,
                None,
                &mut self.ends,
                &mut counters,
                &mut self.out,
            );
            assert_eq!(counters.iter().next(), None, "our own datagrams are well formed");
        } else {
            self.ends.writer.timeout(self.now, &mut self.out);
            self.ends.reader.timeout(self.now, &mut self.out);
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
    }

    fn take(&mut self) {
        let mut samples = plainsong_proto::reader::CachedSamples::new();
        self.ends.reader.take(self.now, &Selector::default(), &mut samples);
        self.taken.extend(samples.iter().map(|sample| sample.payload.as_slice().to_vec()));
    }

    /// Writes, waiting for room as the driver does.
    fn write(&mut self, bytes: Vec<u8>) {
        let payload = Payload::from_vec(bytes);
        for _ in 0..10_000 {
            let (instance, timestamp) = (InstanceHandle([1; 16]), self.now.wall);
            let result = self.ends.writer.write(
                self.now,
                ChangeKind::Alive,
                instance,
                payload.clone(),
                timestamp,
                &mut self.out,
            );
            self.send();
            match result {
                Ok(_) => return,
                Err(WriteError::Full) => {
                    self.pass(Duration::from_millis(1));
                    self.take();
                }
                Err(error) => panic!("{error}"),
            }
        }
        panic!("the writer stayed full for ten seconds");
    }

    fn settle(&mut self) {
        for _ in 0..1_000 {
            self.pass(Duration::from_millis(10));
            self.take();
            if self.ends.writer.is_acknowledged(self.now.mono, self.ends.writer.last_sequence_number()) {
                return;
            }
        }
        panic!("not acknowledged after ten seconds; {} taken", self.taken.len());
    }
}

fn sample(number: usize, bytes: usize) -> Vec<u8> {
    let mut sample = vec![0, 1, 0, 0];
    sample.extend((number as u32).to_le_bytes());
    sample.resize(bytes.max(8), number as u8);
    sample
}

fn reliable(durability: Durability) -> (QosSet, QosSet) {
    let offered = QosSet::writer().keep_all().durability(durability);
    (offered, QosSet::reader().reliable().keep_all().durability(durability))
}

/// Writes samples of `bytes` octets over a bad network and checks what arrives.
fn everything_arrives(samples: usize, bytes: usize, loss_percent: u64, seed: u64) {
    let (offered, requested) = reliable(Durability::Volatile);
    let mut pair = Pair::new(offered, requested, loss_percent, seed);
    pair.match_both();
    let written: Vec<Vec<u8>> = (0..samples).map(|number| sample(number, bytes)).collect();
    for sample in &written {
        pair.write(sample.clone());
        pair.pass(Duration::from_micros(100));
    }
    pair.settle();
    assert!(pair.taken == written, "seed {seed}: {} of {samples} samples", pair.taken.len());
    assert_eq!(pair.ends.reader.sample_lost_status().total_count, 0);
    pair.pass(Duration::from_secs(1));
    let sent = pair.road.sent;
    pair.pass(Duration::from_secs(10));
    assert!(
        pair.road.sent - sent <= 4,
        "seed {seed}: {} datagrams with nothing to say",
        pair.road.sent - sent
    );
}

#[test]
fn small_samples_survive_a_network_that_loses_a_fifth() {
    for seed in 1..=20 {
        everything_arrives(300, 40, 20, seed);
    }
}

#[test]
fn samples_in_fragments_survive_a_network_that_loses_a_tenth() {
    for seed in 1..=6 {
        everything_arrives(10, 100_000, 10, seed);
    }
}

#[test]
fn a_writer_whose_clock_stands_before_1970_tells_no_time_and_its_samples_live() {
    let in_time_and_by_source = |mut qos: QosSet| {
        (qos.lifespan, qos.destination_order) = (Duration::from_secs(5), DestinationOrder::BySourceTimestamp);
        qos
    };
    let (offered, requested) = reliable(Durability::Volatile);
    let mut pair = Pair::new(in_time_and_by_source(offered), in_time_and_by_source(requested), 0, 1);
    pair.match_both();
    let here = pair.now.wall;
    for number in 0..3 {
        pair.now.wall = Time(-1_000_000_000_000 + number);
        pair.write(sample(number as usize, 40));
        pair.now.wall = here;
        pair.pass(Duration::from_millis(10));
    }
    let mut samples = plainsong_proto::reader::CachedSamples::new();
    pair.ends.reader.take(pair.now, &Selector::default(), &mut samples);
    assert_eq!(samples.len(), 3);
    for sample in samples.iter() {
        assert_eq!(sample.info.source_timestamp, sample.info.reception_timestamp);
        assert!(sample.info.reception_timestamp >= here);
    }
}

#[test]
fn samples_of_all_sizes_survive_a_network_that_loses_half() {
    let (offered, requested) = reliable(Durability::Volatile);
    let mut pair = Pair::new(offered, requested, 50, 1);
    pair.match_both();
    let written: Vec<Vec<u8>> =
        (0..500).map(|number| sample(number, [16, 700, 5_000, 40][number % 4])).collect();
    for sample in &written {
        pair.write(sample.clone());
    }
    pair.settle();
    assert!(pair.taken == written, "{} samples", pair.taken.len());
    while let Some(due) = pair.ends.writer.next_timeout() {
        assert!(due.since(pair.now.mono) < Duration::from_millis(10), "a writer with no debts has no timer");
        pair.pass(Duration::from_millis(10));
    }
}

#[test]
fn five_megabytes_survive_a_network_that_loses_a_tenth_without_undue_repetition() {
    let needed = (5 << 20) / 1_280;
    let mut times: Vec<Duration> = Vec::new();
    for seed in 1..12 {
        let (offered, requested) = reliable(Durability::Volatile);
        let mut pair = Pair::new(offered, requested, 10, seed);
        pair.match_both();
        let start = pair.now.mono;
        pair.write(sample(1, 5 << 20));
        pair.settle();
        assert!(pair.taken == [sample(1, 5 << 20)]);
        assert!(pair.road.sent < needed * 3 / 2, "seed {seed}: {} datagrams for {needed}", pair.road.sent);
        times.push(pair.now.mono.since(start));
    }
    // The last fragment, what asks for it and the answer may all be lost: some runs wait for a timer or two.
    times.sort_unstable();
    assert!(times[5] < Duration::from_millis(500), "{times:?}");
    assert!(times[10] < Duration::from_secs(2), "{times:?}");
}

/// A writer that keeps the last is written six times what it may send; the samples that were taken, each with
/// the one that had been written last by then.
fn written_faster_than_sent(loss_percent: u64, seed: u64) -> (Pair, Vec<(usize, usize)>) {
    const SAMPLES: usize = 200;
    let (offered, requested) = (QosSet::writer().keep_last(1), QosSet::reader().reliable().keep_all());
    let mut pair = Pair::new(offered, requested, loss_percent, seed);
    pair.match_both();
    let mut all = Vec::new();
    for newest in 0..SAMPLES {
        pair.write(sample(newest, 390_000));
        pair.pass(Duration::from_micros(500));
        pair.take();
        all.extend(pair.taken.drain(..).map(|taken| (number(&taken), newest)));
    }
    pair.settle();
    all.extend(pair.taken.drain(..).map(|taken| (number(&taken), SAMPLES - 1)));
    assert_eq!(all.last(), Some(&(SAMPLES - 1, SAMPLES - 1)), "the newest arrives");
    (pair, all)
}

fn number(sample: &[u8]) -> usize {
    usize::from(sample[4]) + 256 * usize::from(sample[5])
}

#[test]
fn a_reader_of_a_writer_that_keeps_the_last_hears_the_newest_and_nothing_stale() {
    let (mut pair, taken) = written_faster_than_sent(0, 1);
    assert!(taken.windows(2).all(|pair| pair[0].0 < pair[1].0));
    // One that is being sent, and one that was begun in its place, each take six and a half pauses.
    let oldest = taken.iter().map(|(sample, newest)| newest - sample).max();
    assert!(oldest.is_some_and(|samples| samples <= 9), "{oldest:?} samples behind");
    let skipped = pair.ends.writer.drops().get(DropReason::ReplacedUnsent) as usize;
    assert_eq!(taken.len() + skipped, 200);
    assert!(skipped > 150);
    assert_eq!(pair.ends.reader.sample_lost_status().total_count, 0, "what was replaced is not lost");
    assert!(pair.road.sent < taken.len() as u64 * 330, "{} datagrams for {}", pair.road.sent, taken.len());
}

#[test]
fn what_was_replaced_is_not_repeated_where_datagrams_are_lost() {
    for seed in 1..=3 {
        let (pair, taken) = written_faster_than_sent(5, seed);
        assert!(taken.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let begun = 200 - pair.ends.writer.drops().get(DropReason::ReplacedUnsent);
        assert!(pair.road.sent < begun * 400, "{} datagrams for {begun} that were begun", pair.road.sent);
    }
}

#[test]
fn on_a_good_network_nothing_is_sent_twice() {
    let (offered, requested) = reliable(Durability::Volatile);
    let mut pair = Pair::new(offered, requested, 0, 1);
    pair.match_both();
    for number in 0..100 {
        pair.write(sample(number, 1_000));
        pair.pass(Duration::from_millis(1));
    }
    pair.settle();
    assert_eq!(pair.taken.len(), 100);
    assert_eq!(pair.ends.reader.drops().iter().next(), None, "no duplicate arrived");
}

#[test]
fn fact_63_a_late_joiner_gets_the_history_once_and_in_order() {
    let (offered, requested) = reliable(Durability::TransientLocal);
    for seed in 1..=10 {
        let mut pair = Pair::new(offered.clone(), requested.clone(), 20, seed);
        let written: Vec<Vec<u8>> = (0..60).map(|number| sample(number, 40)).collect();
        let (before, after) = written.split_at(50);
        before.iter().for_each(|sample| pair.write(sample.clone()));
        pair.match_both();
        assert!(!pair.ends.reader.is_history_complete());
        after.iter().for_each(|sample| pair.write(sample.clone()));
        pair.settle();
        assert!(pair.taken == written, "seed {seed}: {} samples", pair.taken.len());
        assert!(pair.ends.reader.is_history_complete());
    }
}

#[test]
fn fact_63_a_volatile_late_joiner_gets_only_what_is_written_from_then_on() {
    let offered = QosSet::writer().keep_all().durability(Durability::TransientLocal);
    let requested = QosSet::reader().reliable().keep_all();
    for seed in 1..=10 {
        let mut pair = Pair::new(offered.clone(), requested.clone(), 20, seed);
        let written: Vec<Vec<u8>> = (0..60).map(|number| sample(number, 40)).collect();
        let (before, after) = written.split_at(50);
        before.iter().for_each(|sample| pair.write(sample.clone()));
        pair.match_both();
        after.iter().for_each(|sample| pair.write(sample.clone()));
        pair.settle();
        assert!(pair.taken == after, "seed {seed}: {} samples", pair.taken.len());
        assert_eq!(pair.ends.reader.sample_lost_status().total_count, 0);
    }
}

#[test]
fn what_was_written_while_a_stopped_reader_was_given_up_is_lost_to_it_and_the_new_match_is_told() {
    // Without loss, and where the GAP may have to be asked for.
    for loss_percent in [0, 20] {
        for durability in [Durability::Volatile, Durability::TransientLocal] {
            let offered = QosSet::writer().keep_all().durability(durability);
            let requested = QosSet::reader().reliable().keep_all();
            let mut pair = Pair::new(offered, requested, loss_percent, 5);
            pair.match_both();
            let written: Vec<Vec<u8>> = (0..120).map(|number| sample(number, 40)).collect();
            written[..40].iter().for_each(|sample| pair.write(sample.clone()));
            pair.settle();
            assert_eq!(pair.ends.reader.subscription_matched_status().total.total_count, 1);
            // Its lease ended at the writer, while it heard and noticed nothing.
            pair.ends.writer.unmatch_reader(pair.now, READER, &mut pair.out);
            written[40..100].iter().for_each(|sample| pair.write(sample.clone()));
            pair.pass(Duration::from_secs(30));
            pair.match_reader();
            written[100..].iter().for_each(|sample| pair.write(sample.clone()));
            pair.settle();
            pair.pass(Duration::from_secs(1));
            let expected: Vec<_> = written[..40].iter().chain(&written[100..]).cloned().collect();
            assert!(pair.taken == expected, "{} samples", pair.taken.len());
            assert_eq!(
                pair.ends.reader.sample_lost_status().total_count,
                60,
                "{durability:?} {loss_percent}"
            );
            if loss_percent == 0 {
                let matched = pair.ends.reader.subscription_matched_status();
                assert_eq!((matched.total.total_count_change, matched.current_count), (1, 1));
            }
        }
    }
}

#[test]
fn fact_65_a_full_reader_holds_the_writer_back_and_nothing_is_lost() {
    let (offered, mut requested) = reliable(Durability::Volatile);
    requested.resource_limits = ResourceLimits { max_samples: 4, ..ResourceLimits::default() };
    let offered =
        QosSet { resource_limits: ResourceLimits { max_samples: 8, ..ResourceLimits::default() }, ..offered };
    for loss_percent in [0, 10] {
        let mut pair = Pair::new(offered.clone(), requested.clone(), loss_percent, 3);
        pair.match_both();
        let written: Vec<Vec<u8>> = (0..200).map(|number| sample(number, 40)).collect();
        written.iter().for_each(|sample| pair.write(sample.clone()));
        pair.settle();
        pair.take();
        assert!(pair.taken == written, "{} samples", pair.taken.len());
        assert!(pair.ends.reader.sample_rejected_status().count.total_count > 0);
    }
}

/// Writes samples for a reader that wants every so manieth, and checks what arrives.
fn the_wanted_arrive(
    divisor: u32,
    bytes: usize,
    loss_percent: u64,
    durability: Durability,
    seed: u64,
) -> u64 {
    let (offered, requested) = reliable(durability);
    let mut pair = Pair::new(offered, requested, loss_percent, seed);
    pair.want_every(divisor);
    let written: Vec<Vec<u8>> = (0..200).map(|number| sample(number, bytes)).collect();
    let joins_at = if durability == Durability::Volatile { 0 } else { 150 };
    for (number, sample) in written.iter().enumerate() {
        if number == joins_at {
            pair.match_both();
        }
        pair.write(sample.clone());
        pair.pass(Duration::from_micros(100));
    }
    pair.settle();
    let wanted: Vec<_> = written.into_iter().step_by(divisor as usize).collect();
    assert!(pair.taken == wanted, "seed {seed}: {} of {} samples", pair.taken.len(), wanted.len());
    assert_eq!(pair.ends.reader.sample_lost_status().total_count, 0);
    let sent = pair.road.sent;
    pair.pass(Duration::from_secs(10));
    assert!(
        pair.road.sent - sent <= 4,
        "seed {seed}: {} datagrams with nothing to say",
        pair.road.sent - sent
    );
    sent
}

#[test]
fn fact_62_a_filtering_reader_gets_what_it_wants_through_a_network_that_loses_a_fifth() {
    for seed in 1..=10 {
        the_wanted_arrive(3, 40, 20, Durability::Volatile, seed);
        the_wanted_arrive(3, 40, 20, Durability::TransientLocal, seed);
        the_wanted_arrive(4, 20_000, 10, Durability::Volatile, seed);
        the_wanted_arrive(4, 20_000, 10, Durability::TransientLocal, seed);
    }
}

#[test]
fn fact_62_what_is_not_wanted_does_not_travel() {
    let all = the_wanted_arrive(1, 1_000, 0, Durability::Volatile, 1);
    let few = the_wanted_arrive(20, 1_000, 0, Durability::Volatile, 1);
    assert!(few < all / 5, "{few} datagrams instead of {all}");
}

#[test]
fn a_filter_changes_while_samples_flow() {
    for seed in 1..=10 {
        let (offered, requested) = reliable(Durability::Volatile);
        let mut pair = Pair::new(offered, requested, 20, seed);
        pair.want_every(3);
        pair.match_both();
        for number in 0..200 {
            if number == 90 {
                pair.settle();
                pair.want_every(2);
                pair.match_both();
            }
            pair.write(sample(number, 40));
            pair.pass(Duration::from_micros(100));
        }
        pair.settle();
        let wanted = (0..200).filter(|number| number % if *number < 90 { 3 } else { 2 } == 0);
        assert!(pair.taken == wanted.map(|number| sample(number, 40)).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn a_writer_that_does_not_filter_makes_no_difference_to_its_reader() {
    let (offered, requested) = reliable(Durability::Volatile);
    let mut pair = Pair::new(offered, requested, 20, 1);
    pair.want_every(3);
    pair.filter = None;
    pair.match_both();
    (0..100).for_each(|number| pair.write(sample(number, 40)));
    pair.settle();
    assert!(pair.taken == (0..100).step_by(3).map(|number| sample(number, 40)).collect::<Vec<_>>());
}

/// The times from `write` to `take`, the shortest first, of samples written one each 400 µs over a road that
/// loses.
fn delays(loss_percent: u64, seed: u64) -> Vec<Duration> {
    const PERIOD: Duration = Duration::from_micros(400);
    let (offered, requested) = reliable(Durability::Volatile);
    let mut pair = Pair::new(offered, requested, loss_percent, seed);
    pair.match_both();
    let (mut written, mut delays) = (Vec::new(), Vec::new());
    for number in 0..20_000 {
        written.push(pair.now.mono);
        pair.write(sample(number, 1_024));
        let next = pair.now.mono.after(PERIOD).expect("finite");
        loop {
            let goes_on = pair.step(next);
            pair.take();
            while delays.len() < pair.taken.len() {
                delays.push(pair.now.mono.since(written[delays.len()]));
            }
            if !goes_on {
                break;
            }
        }
        pair.move_to(next);
    }
    delays.sort_unstable();
    delays
}

#[test]
fn samples_that_were_lost_are_late_by_few_round_trips() {
    // A round trip takes 0.1 to 0.7 ms.
    for (loss_percent, most_ms) in [(1, 2), (5, 4)] {
        for seed in 1..=3 {
            let delays = delays(loss_percent, seed);
            let late = delays.iter().filter(|delay| **delay > Duration::from_millis(most_ms)).count();
            assert!(late * 1_000 <= delays.len(), "{late} of {} samples, seed {seed}", delays.len());
        }
    }
}
