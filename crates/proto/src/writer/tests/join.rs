//! Samples that join those which wait: nothing but work is saved.

use proptest::prelude::*;

use super::*;
use crate::qos::{AccessScope, DestinationOrder, History, LivelinessKind, Presentation};
use crate::writer::compose::plan::Plan;

/// What happens to two writers, of which only one lets samples join others unasked.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write { instance: u8, bytes: usize, times: usize },
    Change(ChangeKind, u8),
    Pass { micros: i64 },
    Acknowledge { part: i64 },
    Handed,
    Suspend,
    Resume,
    Flush,
    Qos(QosChange),
    BeginSet,
    EndSet,
    Match(Kind),
    Unmatch(Kind),
}

#[derive(Clone, Copy, Debug)]
enum QosChange {
    Budget,
    Lifespan,
    Deadline,
    None,
}

/// Kinds of readers, each of which there is at most one of.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Reliable,
    BestEffort,
    Elsewhere,
    InlineQos,
    Durable,
}

impl Kind {
    fn reader(self) -> MatchedReader {
        match self {
            Self::Reliable => reliable(7),
            Self::BestEffort => reader(8, QosSet::reader()),
            Self::Elsewhere => MatchedReader { same_host: false, ..reliable(9) },
            Self::InlineQos => MatchedReader { expects_inline_qos: true, ..reliable(10) },
            Self::Durable => durable(11),
        }
    }
}

fn qos_of(variant: u8) -> QosSet {
    let mut qos = QosSet::writer().keep_all();
    match variant {
        0..4 => {}
        4 => qos = QosSet::writer().keep_last(3),
        5 => qos.resource_limits.max_samples = 300,
        6 => qos.destination_order = DestinationOrder::BySourceTimestamp,
        7 => {
            qos.liveliness.kind = LivelinessKind::ManualByTopic;
            qos.liveliness.lease_duration = Duration::from_millis(5);
        }
        8 => qos = qos.durability(Durability::TransientLocal),
        9 => {
            qos = qos.durability(Durability::Transient);
            qos.durability_service.history = History { kind: HistoryKind::KeepLast, depth: 2 };
        }
        OF_GROUP => {
            qos.presentation =
                Presentation { access_scope: AccessScope::Group, coherent_access: true, ordered_access: true }
        }
        _ => qos.presentation.coherent_access = true,
    }
    qos
}

/// The variant of QoS whose changes are numbered among those of a publisher.
const OF_GROUP: u8 = 10;
/// What may be unacknowledged, so that it is reached.
const WINDOW_BYTES: usize = 128 << 10;

fn story(variant: u8) -> Story {
    let limits = WriterLimits { unacknowledged_bytes_max: WINDOW_BYTES, ..WriterLimits::default() };
    let group = (variant == OF_GROUP).then(|| Arc::new(WriterGroup::default()));
    let mut story = Story::of_group(qos_of(variant), limits, group);
    story.matched(&reliable(7));
    story
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes =
        prop_oneof![4 => Just(8), 4 => Just(108), 2 => Just(600), 1 => Just(2_000), 1 => Just(40_000)];
    let write = (0..3_u8, bytes, 1..200_usize);
    let kind = || {
        prop_oneof![
            6 => Just(Kind::Reliable),
            1 => Just(Kind::BestEffort),
            1 => Just(Kind::Elsewhere),
            1 => Just(Kind::InlineQos),
            1 => Just(Kind::Durable),
        ]
    };
    let change = prop_oneof![1 => Just(ChangeKind::Dispose), 3 => Just(ChangeKind::Unregister)];
    let qos = prop_oneof![
        1 => Just(QosChange::Budget),
        1 => Just(QosChange::Lifespan),
        1 => Just(QosChange::Deadline),
        3 => Just(QosChange::None),
    ];
    let step = prop_oneof![
        30 => write.prop_map(|(instance, bytes, times)| Step::Write { instance, bytes, times }),
        6 => (change, 0..3_u8).prop_map(|(kind, instance)| Step::Change(kind, instance)),
        4 => prop_oneof![Just(1), Just(30), Just(300), Just(20_000)].prop_map(|micros| Step::Pass { micros }),
        5 => (0..5_i64).prop_map(|part| Step::Acknowledge { part }),
        4 => Just(Step::Handed),
        1 => Just(Step::Suspend),
        2 => Just(Step::Resume),
        1 => Just(Step::Flush),
        2 => qos.prop_map(Step::Qos),
        1 => Just(Step::BeginSet),
        2 => Just(Step::EndSet),
        2 => kind().prop_map(Step::Match),
        1 => kind().prop_map(Step::Unmatch),
    ];
    prop::collection::vec(step, 1..50)
}

impl Story {
    /// What one writer of two does. `joins`: its samples may join others unasked.
    fn take_step(&mut self, step: Step, joins: bool) -> Vec<Result<SequenceNumber, WriteError>> {
        match step {
            Step::Write { instance, bytes, times } => {
                return (0..times)
                    .map(|_| {
                        if !joins {
                            let plan = self.writer.plan();
                            self.writer.plan = Some(Plan { joining_bytes_max: None, ..plan });
                        }
                        let (_, due) = (self.writer.moved_timeout(), self.writer.next_timeout());
                        let written = self.write(instance, &vec![instance; bytes]);
                        assert!(self.writer.moved_timeout() || self.writer.next_timeout() == due);
                        written
                    })
                    .collect();
            }
            Step::Change(kind, instance) => return vec![self.change(kind, instance, &[instance; 4])],
            Step::Pass { micros } => self.pass(Duration::from_micros(micros)),
            Step::Acknowledge { part } => {
                let (first, last) =
                    (self.writer.history.first().0, self.writer.sent_last(RouteKind::SameHost).0);
                let base = first + (last + 1 - first).max(0) * part / 4;
                let missing = Vec::from_iter((part == 1 && base <= last).then_some(base));
                for kind in [Kind::Reliable, Kind::Elsewhere, Kind::InlineQos, Kind::Durable] {
                    // Those that are not matched are not heard.
                    let _ = self.acknack(&kind.reader(), base, &missing);
                }
            }
            Step::Handed => self.writer.sent(self.now.mono),
            Step::Suspend => self.writer.suspend(),
            Step::Resume => self.writer.resume(self.now, &mut self.out),
            Step::Flush => self.writer.flush(self.now, &mut self.out),
            Step::Qos(change) => {
                let mut qos = self.writer.qos().clone();
                (qos.latency_budget, qos.lifespan) = (Duration::ZERO, Duration::INFINITE);
                qos.deadline = Duration::INFINITE;
                match change {
                    QosChange::Budget => qos.latency_budget = Duration::from_millis(10),
                    QosChange::Lifespan => qos.lifespan = Duration::from_millis(5),
                    QosChange::Deadline => qos.deadline = Duration::from_millis(5),
                    QosChange::None => {}
                }
                self.writer.set_qos(self.now, qos);
            }
            Step::BeginSet => self.writer.begin_coherent_changes(SequenceNumber(1)),
            Step::EndSet => {
                self.writer.end_coherent_changes(self.now, SequenceNumber(1), &mut self.out);
            }
            Step::Match(kind) => self.matched(&kind.reader()),
            Step::Unmatch(kind) => {
                self.writer.unmatch_reader(self.now, kind.reader().guid, &mut self.out);
            }
        }
        Vec::new()
    }

    fn datagrams(&mut self) -> Vec<(Vec<Locator>, Vec<u8>)> {
        let whole = |transmit| (self.out.destinations(transmit).to_vec(), self.out.datagram(transmit));
        let datagrams = self.out.transmits().iter().map(whole).collect();
        self.out.clear_transmits();
        datagrams
    }
}

proptest! {
    #[test]
    fn a_writer_whose_samples_join_others_does_what_one_does_that_asks_for_each(
        qos in 0..12_u8,
        steps in steps(),
    ) {
        let [mut joining, mut asking] = [story(qos), story(qos)];
        for step in steps {
            prop_assert_eq!(joining.take_step(step, true), asking.take_step(step, false));
            prop_assert_eq!(joining.datagrams(), asking.datagrams(), "after {:?}", step);
            prop_assert_eq!(joining.events(), asking.events());
            prop_assert_eq!(joining.writer.next_timeout(), asking.writer.next_timeout());
            prop_assert_eq!(joining.writer.history_len(), asking.writer.history_len());
        }
    }
}

/// A flow of samples for one reader of this host, of which the last waits for others.
fn flow(qos: QosSet) -> Story {
    let mut story = Story::with_limits(qos, WriterLimits::default());
    story.matched(&reliable(7));
    (0..20).for_each(|_| assert!(story.write(1, &[7; 108]).is_ok()));
    story
}

impl Story {
    /// Whether a sample of so many octets joins those which wait.
    fn joins(&mut self, instance: u8, bytes: usize) -> bool {
        self.writer.joins(self.now, handle(instance), bytes).is_some()
    }
}

#[test]
fn plain_samples_of_a_flow_join_those_that_wait_unless_they_are_longer_or_of_a_new_instance() {
    let mut story = flow(QosSet::writer().keep_all());
    assert!(story.joins(1, 108) && story.joins(1, 4));
    assert!(story.joins(1, 1_000) && !story.joins(2, 108));
    story.write(2, &[7; 200]).unwrap();
    assert!(story.joins(2, 108) && story.joins(1, 200));
    story.writer.flush(story.now, &mut story.out);
    assert!(!story.joins(1, 108), "nothing waits");
}

#[test]
fn after_a_pause_a_sample_is_asked_for_itself() {
    let mut story = flow(QosSet::writer().keep_all());
    story.pass(Duration::from_micros(100));
    assert!(story.writer.holds() && !story.joins(1, 108));
}

#[test]
fn a_full_window_is_joined_by_none() {
    let mut story = flow(QosSet::writer().keep_all());
    while story.writer.history.pending_bytes() + window_bytes(108) <= story.writer.window_bytes {
        story.write(1, &[7; 108]).unwrap();
    }
    assert!(!story.joins(1, 108));
}

#[test]
fn samples_that_must_be_asked_for_join_none() {
    let plain = || QosSet::writer().keep_all();
    let mut limited = plain();
    limited.resource_limits.max_samples = 1_000;
    let mut manual = plain();
    manual.liveliness.kind = LivelinessKind::ManualByTopic;
    let expiring = QosSet { lifespan: Duration::from_secs(1), ..plain() };
    let due = QosSet { deadline: Duration::from_secs(1), ..plain() };
    let by_source = QosSet { destination_order: DestinationOrder::BySourceTimestamp, ..plain() };
    let transient = plain().durability(Durability::Transient);
    for qos in [QosSet::writer().keep_last(5), transient, limited, manual, expiring, due, by_source] {
        let mut story = flow(qos.clone());
        assert!(story.writer.holds() && !story.joins(1, 108), "{qos:?}");
    }
}

#[test]
fn an_unregistered_instance_is_registered_by_a_sample_that_joins() {
    let mut story = flow(QosSet::writer().keep_all());
    story.change(ChangeKind::Unregister, 1, &[1; 4]).unwrap();
    assert_eq!(story.change(ChangeKind::Unregister, 1, &[1; 4]), Err(WriteError::UnknownInstance));
    assert!(story.joins(1, 108), "its changes are still held");
    story.write(1, &[7; 108]).unwrap();
    assert!(story.change(ChangeKind::Unregister, 1, &[1; 4]).is_ok());
}

#[test]
fn a_disposed_instance_is_alive_by_a_sample_that_joins() {
    let mut story = flow(QosSet::writer().keep_all());
    story.change(ChangeKind::Dispose, 1, &[1; 4]).unwrap();
    assert!(story.joins(1, 108));
    story.write(1, &[7; 108]).unwrap();
    story
        .writer
        .set_qos(story.now, QosSet { deadline: Duration::from_millis(5), ..story.writer.qos().clone() });
    story.pass(Duration::from_millis(6));
    assert_eq!(story.writer.offered_deadline_missed_status().count.total_count, 1);
}

#[test]
fn a_batch_that_samples_filled_by_joining_tells_who_waits_for_room() {
    let told_at = |joins: bool| {
        let mut story = flow(QosSet::writer().keep_all());
        while story.write(1, &[7; 108]).is_ok() {}
        // Less than the quarter for which who waits is woken.
        let sent = story.writer.sent_last(RouteKind::SameHost).0;
        story.events();
        story.acknack(&reliable(7), sent / 5, &[]).unwrap();
        let write = |story: &mut Story| {
            story.take_step(Step::Write { instance: 1, bytes: 108, times: 1 }, joins);
            !story.events().is_empty()
        };
        assert_eq!(story.events(), [], "nobody is told of the answer itself");
        (0..300).position(|_| write(&mut story))
    };
    let told = told_at(true);
    assert!(told.is_some_and(|written| written > 100), "{told:?}");
    assert_eq!(told, told_at(false));
}
