//! Limits and lifespan, and a comparison of [`History`] with the plainest model of it.

use proptest::prelude::*;

use super::*;
use crate::payload::NewPayload;
use crate::qos::ResourceLimits;

fn limited(max_samples: i32, max_samples_per_instance: i32) -> ResourceLimits {
    ResourceLimits { max_samples, max_samples_per_instance, ..ResourceLimits::default() }
}

#[test]
fn keep_all_stops_at_max_samples_until_acknowledged() {
    let qos = QosSet { resource_limits: limited(3, -1), ..QosSet::writer().keep_all() };
    let mut story = Story::new(qos);
    let reader = reliable(7);
    story.matched(&reader);
    for instance in 1..=3 {
        story.write(instance, b"data").unwrap();
    }
    assert_eq!(story.write(1, b"data"), Err(WriteError::Full));
    story.acknack(&reader, 2, &[]).unwrap();
    assert_eq!(story.write(1, b"data"), Ok(SequenceNumber(4)));
}

#[test]
fn keep_all_stops_at_max_samples_per_instance_for_that_instance() {
    let qos = QosSet { resource_limits: limited(-1, 2), ..QosSet::writer().keep_all() };
    let mut story = Story::new(qos);
    let reader = reliable(7);
    story.matched(&reader);
    story.write(1, b"data").unwrap();
    story.write(1, b"data").unwrap();
    assert_eq!(story.write(1, b"data"), Err(WriteError::Full));
    story.write(2, b"data").unwrap();
    story.acknack(&reader, 2, &[]).unwrap();
    story.write(1, b"data").unwrap();
}

#[test]
fn a_durable_keep_all_history_at_its_limit_gives_up_what_all_have() {
    let qos = QosSet { resource_limits: limited(3, -1), ..QosSet::writer().keep_all() };
    let mut story = Story::new(qos.durability(Durability::TransientLocal));
    for _ in 0..5 {
        story.write(1, b"data").unwrap();
    }
    story.matched(&durable(7));
    assert_eq!(data(&story.sent()), [3, 4, 5]);
}

#[test]
fn durable_keep_last_cannot_hold_more_instances_than_max_samples() {
    let qos = QosSet { resource_limits: limited(2, -1), ..QosSet::writer().keep_last(1) };
    let mut story = Story::new(qos.durability(Durability::TransientLocal));
    story.write(1, b"data").unwrap();
    story.write(2, b"data").unwrap();
    assert_eq!(story.write(3, b"data"), Err(WriteError::OutOfResources(Limit::Samples)));
    story.write(2, b"data").unwrap();
}

#[test]
fn fact_34_a_sample_expires_by_its_source_timestamp() {
    let qos = QosSet { lifespan: Duration::from_millis(250), ..QosSet::writer().keep_all() };
    let mut story = Story::new(qos.durability(Durability::TransientLocal));
    let early = durable(8);
    story.matched(&early);
    let old = story.now.wall.plus(Duration::from_millis(-100));
    let payload = Payload::from_vec(b"data".to_vec());
    story.writer.write(story.now, ChangeKind::Alive, handle(1), payload, old, &mut story.out).unwrap();
    story.write(1, b"data").unwrap();
    story.sent();
    story.pass(Duration::from_millis(149));
    assert_eq!(story.writer.history.len(), 2);
    story.pass(Duration::from_millis(1));
    assert_eq!(story.writer.history.len(), 1);
    story.sent();
    story.acknack(&early, 1, &[1, 2]).unwrap();
    let sent = story.sent();
    assert_eq!((gaps(&sent, 2), data(&sent)), (vec![1], vec![2]), "expired is irrelevant");
    story.pass(Duration::from_millis(100));
    story.sent();
    story.matched(&durable(7));
    assert_eq!(data(&story.sent()), []);
}

#[test]
fn an_expired_sample_makes_room() {
    let qos = QosSet { lifespan: Duration::from_millis(100), ..QosSet::writer().keep_all() };
    let mut story = Story::new(QosSet { resource_limits: limited(1, -1), ..qos });
    story.matched(&reliable(7));
    story.write(1, b"data").unwrap();
    assert_eq!(story.write(1, b"data"), Err(WriteError::Full));
    story.events();
    story.pass(Duration::from_millis(100));
    assert!(story.events().contains(&Event::Progress { endpoint: WRITER.entity }));
    story.write(1, b"data").unwrap();
}

#[test]
fn a_history_with_one_old_sample_does_not_grow() {
    let mut story = Story::new(QosSet::writer().keep_last(1).durability(Durability::TransientLocal));
    story.write(1, b"written once").unwrap();
    for _ in 0..100_000 {
        story.write(2, b"written often").unwrap();
    }
    assert_eq!(story.writer.history.len(), 2);
    assert!(story.writer.history.entries_held() < 200);
    story.matched(&durable(7));
    assert_eq!(data(&story.sent()), [1, 100_001]);
}

#[test]
fn the_memory_of_payloads_that_left_together_is_used_again() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let reader = reliable(7);
    story.matched(&reader);
    for number in 1..=2_000 {
        story.write(1, &[7; 100]).unwrap();
        if number % 20 == 0 {
            // Never all: then the memory would be free anyway.
            story.acknack(&reader, number - 3, &[]).unwrap();
        }
    }
    assert!(story.writer.history.entries_held() < 100);
    assert!(story.writer.history.chunks_held() <= 4, "{}", story.writer.history.chunks_held());
}

#[test]
fn a_changed_lifespan_holds_for_what_is_kept() {
    let qos = QosSet::writer().keep_all().durability(Durability::TransientLocal);
    let mut story = Story::new(qos.clone());
    story.write(1, b"data").unwrap();
    story.writer.set_qos(story.now, QosSet { lifespan: Duration::from_millis(100), ..qos });
    story.write(1, b"data").unwrap();
    story.pass(Duration::from_millis(100));
    assert_eq!(story.writer.history.len(), 0);
}

#[test]
fn an_expired_sample_behind_a_younger_one_is_not_replayed() {
    let qos = QosSet { lifespan: Duration::from_millis(100), ..QosSet::writer().keep_all() };
    let mut story = Story::new(qos.durability(Durability::TransientLocal));
    story.write(1, b"young").unwrap();
    let old = story.now.wall.plus(Duration::from_millis(-50));
    let payload = Payload::from_vec(b"old".to_vec());
    story.writer.write(story.now, ChangeKind::Alive, handle(1), payload, old, &mut story.out).unwrap();
    story.pass(Duration::from_millis(60));
    story.matched(&durable(7));
    assert_eq!(data(&story.sent()), [1]);
}

/// What a history must do, said as plainly as possible.
#[derive(Default)]
struct Model {
    changes: Vec<(i64, u8, ChangeKind, usize)>,
    last: i64,
    released: i64,
    durable: bool,
}

impl Model {
    fn release(&mut self, number: i64) {
        if number <= self.released {
            return;
        }
        let before = std::mem::replace(&mut self.released, number);
        if !self.durable {
            self.changes.retain(|change| change.0 > number);
            return;
        }
        let over: Vec<u8> = (0..8)
            .filter(|instance| {
                let newest = self.changes.iter().rfind(|change| change.1 == *instance);
                newest
                    .is_some_and(|change| (before + 1..=number).contains(&change.0) && change.2.unregisters())
            })
            .collect();
        self.changes.retain(|change| !over.contains(&change.1));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(u8, bool, usize),
    RemoveOldest(u8),
    Remove(i64),
    Release(i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..8_u8, prop::bool::weighted(0.1), 0..180_usize)
            .prop_map(|(instance, unregister, bytes)| Step::Push(instance, unregister, bytes)),
        2 => (0..8_u8).prop_map(Step::RemoveOldest),
        1 => (0..40_i64).prop_map(Step::Remove),
        1 => (0..40_i64).prop_map(Step::Release),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_history_is_what_its_model_is(durable: bool, steps in prop::collection::vec(step(), 1..400)) {
        let durability = if durable { Durability::TransientLocal } else { Durability::Volatile };
        let mut history = History::of(&QosSet::writer().durability(durability), SequenceNumber(0));
        let mut instances = Instances::new(Duration::INFINITE);
        let mut model = Model { durable, ..Model::default() };
        for step in steps {
            apply(&step, &mut history, &mut instances, &mut model);
            compare(&history, &instances, &model);
        }
    }
}

fn apply(step: &Step, history: &mut History, instances: &mut Instances, model: &mut Model) {
    match *step {
        Step::Push(instance, unregister, bytes) => {
            let kind = if unregister { ChangeKind::Unregister } else { ChangeKind::Alive };
            let slot = instances.register(&Key::from(handle(instance)).into());
            if unregister {
                instances.unregister(slot);
            }
            let change = Change {
                hash: handle(instance),
                payload: PayloadView::Octets(&[]),
                marks: Default::default(),
                verdict: Verdict::ALL,
                kind,
                source_timestamp: Time(0),
                expires: None,
            };
            model.last += 1;
            let mut payload = Payload::from_vec(octets(model.last, bytes));
            let number = history.push(slot, &change, NewPayload::Payload(&mut payload), instances);
            assert_eq!((number.0, payload.len()), (model.last, 0));
            model.changes.push((model.last, instance, kind, bytes));
        }
        Step::RemoveOldest(instance) => {
            let oldest = instances
                .find(handle(instance))
                .and_then(|slot| instances.get(slot))
                .filter(|instance| instance.samples > 0)
                .map(|instance| instance.oldest.0);
            let expected = model.changes.iter().find(|change| change.1 == instance).map(|change| change.0);
            assert_eq!(oldest, expected);
            if let Some(oldest) = oldest {
                history.remove(SequenceNumber(oldest), instances);
                model.changes.retain(|change| change.0 != oldest);
            }
        }
        Step::Remove(back) => {
            history.remove(SequenceNumber(model.last - back), instances);
            model.changes.retain(|change| change.0 != model.last - back);
        }
        Step::Release(back) => {
            history.release(Instant(0), SequenceNumber(model.last - back), instances);
            model.release(model.last - back);
        }
    }
}

/// The payload of a change.
fn octets(number: i64, bytes: usize) -> Vec<u8> {
    vec![number as u8; bytes]
}

fn compare(history: &History, instances: &Instances, model: &Model) {
    let held: Vec<i64> = model.changes.iter().map(|change| change.0).collect();
    assert_eq!(history.len(), held.len());
    assert_eq!(history.last().0, model.last);
    assert_eq!(history.first().0, held.first().copied().unwrap_or(model.last + 1));
    for number in 0..=model.last + 1 {
        let change = history.get(SequenceNumber(number), instances);
        assert_eq!(change.is_some(), held.contains(&number));
        let next = held.iter().copied().find(|held| *held >= number).unwrap_or(model.last + 1);
        let found = history.next_held(SequenceNumber(number)).0;
        assert!(found == next || found < next && found > number, "{number}: {found} instead of {next}");
    }
    for (number, instance, kind, bytes) in &model.changes {
        let change = history.get(SequenceNumber(*number), instances).expect("it is held");
        assert_eq!((change.kind, change.hash), (*kind, handle(*instance)));
        assert_eq!(change.payload.as_slice(), octets(*number, *bytes));
    }
    let pending = model.changes.iter().filter(|change| change.0 > model.released);
    assert_eq!(history.pending(), pending.clone().count());
    assert_eq!(
        history.pending_bytes(),
        pending.map(|change| change.3 + CHANGE_OVERHEAD_BYTES).sum::<usize>()
    );
    for instance in 0..8 {
        let mut samples = model.changes.iter().filter(|change| change.1 == instance);
        let found = instances.find(handle(instance)).and_then(|slot| instances.get(slot));
        assert_eq!(found.map_or(0, |instance| instance.samples), samples.clone().count());
        if let (Some(found), Some(newest)) = (found, samples.next_back()) {
            assert_eq!(found.newest.0, newest.0);
        }
    }
    assert!(history.entries_held() <= 2 * held.len() + 65);
}
