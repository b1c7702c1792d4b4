//! A writer in its steady state allocates nothing: writing, acknowledging, replacing, asking.

mod counting;
use plainsong_proto::discovery::MatchedReader;
use plainsong_proto::filter::{ContentFilter, FilterFunction, PayloadFilter};
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::instance::InstanceHandle;
use plainsong_proto::locator::Locator;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::PayloadPool;
use plainsong_proto::qos::{Durability, QosSet};
use plainsong_proto::seq::{SequenceNumber, SequenceSet};
use plainsong_proto::sources::{Sender, Sources};
use plainsong_proto::time::{Duration, Instant, Now, Time};
use plainsong_proto::wire::AckNack;
use plainsong_proto::writer::{ChangeKind, Writer, WriterConfig, WriterLimits};

const WRITER: Guid = GuidPrefix([1; 12]).entity(EntityId::user_writer(1, true));

fn reader(number: u8, qos: QosSet) -> MatchedReader {
    MatchedReader {
        guid: GuidPrefix([number; 12]).entity(EntityId::user_reader(1, true)),
        locators: vec![Locator::udp([127, 0, 0, 1].into(), 7_400 + u16::from(number))],
        sources: Sources::default(),
        urgent: None,
        expects_inline_qos: false,
        same_host: !number.is_multiple_of(2),
        receive_bytes: 0,
        qos,
        content_filter: None,
        begins: false,
        skips_to_heartbeat: false,
        is_of_own_process: false,
    }
}

fn small(_: &ContentFilter) -> Option<PayloadFilter> {
    Some(PayloadFilter::new(|payload| payload.len() < 100))
}

/// Writes `rounds` samples of 64 octets to eight instances, each acknowledged by every reader two
/// samples later; allocations of the second half.
fn allocations(qos: QosSet, readers: &[MatchedReader], payload_bytes: usize, rounds: i64) -> usize {
    let mut writer = Writer::new(WriterConfig {
        guid: WRITER,
        keyed: true,
        qos,
        limits: WriterLimits::default(),
        content_filter: Some(FilterFunction::new(small)),
        group: None,
    });
    let (mut out, pool) = (Outbox::new(), PayloadPool::new());
    let mut now = Now { mono: Instant(1), wall: Time(1) };
    for reader in readers {
        writer.match_reader(now, reader, &mut out);
    }
    let bytes = vec![7; payload_bytes];
    let mut before = 0;
    for round in 1..=rounds {
        if round == rounds / 2 {
            before = counting::allocations();
        }
        now.mono = now.mono.after(Duration::from_micros(700)).expect("finite");
        now.wall = now.wall.plus(Duration::from_micros(700));
        let instance = InstanceHandle([(round % 8) as u8; 16]);
        let payload = pool.copy(&bytes);
        let number = writer
            .write(now, ChangeKind::Alive, instance, payload, now.wall, &mut out)
            .expect("room for one more");
        out.clear();
        let acknack = |reader: &MatchedReader| AckNack {
            reader: reader.guid.entity,
            writer: WRITER.entity,
            missing: SequenceSet::empty(number.plus(-2).max(SequenceNumber::FIRST)),
            count: round as i32,
            final_flag: true,
            heartbeat: None,
        };
        for reader in readers.iter().filter(|reader| reader.qos.is_reliable()) {
            writer
                .on_acknack(now, Sender::unplaced(reader.guid), &acknack(reader), &mut out)
                .expect("a plausible count");
        }
        writer.timeout(now, &mut out);
        out.clear();
    }
    assert!(before > 0, "warming up allocates, and is counted");
    counting::allocations() - before
}

#[test]
fn a_best_effort_write_allocates_nothing() {
    let readers = [reader(2, QosSet::reader()), reader(3, QosSet::reader())];
    assert_eq!(allocations(QosSet::writer().best_effort(), &readers, 64, 10_000), 0);
}

#[test]
fn a_reliable_write_with_acknowledgements_allocates_nothing() {
    let readers = [2, 3, 4].map(|number| reader(number, QosSet::reader().reliable()));
    assert_eq!(allocations(QosSet::writer(), &readers, 64, 10_000), 0);
    assert_eq!(allocations(QosSet::writer().keep_all(), &readers, 64, 10_000), 0);
}

#[test]
fn a_durable_write_allocates_nothing_once_its_history_is_full() {
    let readers = [reader(3, QosSet::reader().reliable().durability(Durability::TransientLocal))];
    let qos = QosSet::writer().keep_last(10).durability(Durability::TransientLocal);
    assert_eq!(allocations(qos, &readers, 64, 10_000), 0);
}

#[test]
fn a_fragmented_write_allocates_nothing() {
    let readers = [2, 3].map(|number| reader(number, QosSet::reader().reliable()));
    assert_eq!(allocations(QosSet::writer().keep_last(4), &readers, 100_000, 1_000), 0);
}

#[test]
fn a_write_with_lifespan_and_deadline_allocates_nothing() {
    let readers = [reader(3, QosSet::reader().reliable())];
    let qos = QosSet {
        lifespan: Duration::from_millis(5),
        deadline: Duration::from_millis(1),
        ..QosSet::writer().keep_all()
    };
    assert_eq!(allocations(qos, &readers, 64, 10_000), 0);
}

#[test]
fn a_write_for_readers_with_filters_allocates_nothing() {
    for payload_bytes in [64, 200] {
        let filter = |text: &str| ContentFilter {
            class_name: ContentFilter::SQL.to_owned(),
            expression: text.to_owned(),
            ..ContentFilter::default()
        };
        let filtered = |number, text| MatchedReader {
            content_filter: Some(filter(text)),
            ..reader(number, QosSet::reader().reliable())
        };
        let readers = [filtered(2, "a"), filtered(3, "b"), filtered(5, "a"), reader(7, QosSet::reader())];
        assert_eq!(allocations(QosSet::writer().keep_all(), &readers, payload_bytes, 10_000), 0);
    }
}
