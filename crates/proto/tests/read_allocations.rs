//! A reader in its steady state allocates nothing: receiving, acknowledging, taking, replacing.

mod counting;

use counting::allocated_by;
use plainsong_proto::discovery::MatchedWriter;
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::instance::{InstanceHandle, Key, KeyFunction};
use plainsong_proto::locator::Locator;
use plainsong_proto::malformed::Malformed;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::qos::QosSet;
use plainsong_proto::reader::{CachedSamples, Reader, ReaderConfig, ReaderLimits};
use plainsong_proto::sample_info::{InstanceSelector, Selector};
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::time::{Duration, Instant, Now, Time};
use plainsong_proto::wire::{Data, DataFrag, Heartbeat, MessageContext};

const WRITER: Guid = GuidPrefix([1; 12]).entity(EntityId::user_writer(1, true));
const ROUNDS: i64 = 2_000;

fn key(payload: &[u8], _key_only: bool) -> Result<Key, Malformed> {
    Ok(InstanceHandle([*payload.get(4).ok_or(Malformed::Truncated)?; 16]).into())
}

/// A reader with one writer, and the clock of both.
struct Bench {
    reader: Reader,
    out: Outbox,
    now: Now,
    context: MessageContext,
    samples: CachedSamples,
}

impl Bench {
    fn new(qos: QosSet, offered: QosSet) -> Self {
        let guid = GuidPrefix([2; 12]).entity(EntityId::user_reader(1, true));
        let limits = ReaderLimits::default();
        let mut reader =
            Reader::new(ReaderConfig { guid, keyed: true, qos, limits, key: KeyFunction::new(key) });
        let mut out = Outbox::new();
        let now = Now { mono: Instant(1), wall: Time(1) };
        let locators = vec![Locator::udp([127, 0, 0, 1].into(), 7_411)];
        reader.match_writer(
            now,
            &MatchedWriter {
                guid: WRITER,
                locators,
                sources: plainsong_proto::sources::Sources::default(),
                publisher: EntityId::UNKNOWN,
                vendor: plainsong_proto::vendor::PLAINSONG,
                qos: offered,
                begins: false,
            },
            &mut out,
        );
        let context = MessageContext {
            source: WRITER.prefix,
            vendor: [0, 0],
            version: [2, 5],
            destination: GuidPrefix::UNKNOWN,
            timestamp: Some(now.wall),
            from: Locator::default(),
        };
        Self { reader, out, now, context, samples: CachedSamples::new() }
    }

    fn tick(&mut self) {
        let step = Duration::from_micros(700);
        self.now = Now { mono: Instant(self.now.mono.0 + 700_000), wall: self.now.wall.plus(step) };
        self.context.timestamp = Some(self.now.wall);
        if self.reader.next_timeout().is_some_and(|due| due <= self.now.mono) {
            self.reader.timeout(self.now, &mut self.out);
        }
        self.out.clear();
    }

    fn data(&mut self, number: i64, payload: &[u8]) {
        let data = Data {
            reader: EntityId::UNKNOWN,
            writer: WRITER.entity,
            sequence_number: SequenceNumber(number),
            inline_qos: None,
            payload,
            attachment: None,
            key_only: false,
        };
        self.reader.on_data(self.now, &self.context, &data, &mut self.out).expect("a sample in order");
    }

    fn heartbeat(&mut self, last: i64) {
        let heartbeat = Heartbeat {
            reader: EntityId::UNKNOWN,
            writer: WRITER.entity,
            first: SequenceNumber(1),
            last: SequenceNumber(last),
            count: last as i32,
            final_flag: false,
            liveliness: false,
            group: None,
        };
        self.reader.on_heartbeat(self.now, &self.context, &heartbeat, &mut self.out).expect("a new count");
    }

    fn take(&mut self, instance: InstanceSelector) -> usize {
        self.samples.clear();
        let selector = Selector { instance, ..Selector::default() };
        self.reader.take(self.now, &selector, &mut self.samples);
        let taken = self.samples.len();
        self.samples.clear();
        taken
    }
}

/// Everything finite, so that every timer runs.
fn timed(qos: QosSet) -> QosSet {
    let mut qos = QosSet { deadline: Duration::from_millis(100), lifespan: Duration::from_secs(1), ..qos };
    qos.liveliness.lease_duration = Duration::from_secs(1);
    qos
}

#[test]
fn receiving_acknowledging_and_taking_small_samples_allocates_nothing() {
    for qos in [QosSet::reader().reliable().keep_all(), QosSet::reader().keep_last(1)] {
        let mut bench = Bench::new(timed(qos), timed(QosSet::writer()));
        let mut payload = [7; 64];
        let mut round = |bench: &mut Bench, number: i64| {
            payload[4] = (number % 8) as u8;
            bench.data(number, &payload);
            bench.heartbeat(number);
            assert_eq!(bench.take(InstanceSelector::All), 1);
            bench.tick();
        };
        (1..ROUNDS).for_each(|number| round(&mut bench, number));
        let (_, allocated) =
            allocated_by(|| (ROUNDS..2 * ROUNDS).for_each(|number| round(&mut bench, number)));
        assert_eq!(allocated.calls, 0, "{allocated:?}");
    }
}

#[test]
fn replacing_unread_samples_allocates_nothing() {
    let mut bench = Bench::new(QosSet::reader().reliable().keep_last(3), QosSet::writer());
    let mut payload = [7; 64];
    let mut round = |bench: &mut Bench, number: i64| {
        payload[4] = (number % 8) as u8;
        bench.data(number, &payload);
        bench.tick();
    };
    (1..ROUNDS).for_each(|number| round(&mut bench, number));
    let (_, allocated) = allocated_by(|| (ROUNDS..2 * ROUNDS).for_each(|number| round(&mut bench, number)));
    assert_eq!(allocated.calls, 0, "{allocated:?}");
    assert_eq!(bench.take(InstanceSelector::NextAfter(InstanceHandle::NIL)), 3);
}

#[test]
fn a_sample_in_fragments_allocates_once_not_per_fragment() {
    let mut bench = Bench::new(QosSet::reader().reliable().keep_all(), QosSet::writer());
    let whole = vec![7; 1_000_000];
    let round = |bench: &mut Bench, number: i64| {
        for (at, piece) in whole.chunks(1_400).enumerate() {
            let fragment = DataFrag {
                reader: EntityId::UNKNOWN,
                writer: WRITER.entity,
                sequence_number: SequenceNumber(number),
                first_fragment: at as u32 + 1,
                fragments: 1,
                fragment_bytes: 1_400,
                sample_bytes: whole.len() as u32,
                inline_qos: None,
                payload: piece,
                key_only: false,
            };
            bench
                .reader
                .on_data_frag(bench.now, &bench.context, &fragment, &mut bench.out)
                .expect("in order");
        }
        assert_eq!(bench.take(InstanceSelector::All), 1);
        bench.tick();
    };
    (1..20).for_each(|number| round(&mut bench, number));
    let (_, allocated) = allocated_by(|| (20..40).for_each(|number| round(&mut bench, number)));
    // 715 fragments: the bitmap, doubled as they come.
    assert!(allocated.calls <= 20 * 8, "{allocated:?}");
    assert!(allocated.octets <= 20 * 1_000, "the buffer came back from the pool: {allocated:?}");
}
