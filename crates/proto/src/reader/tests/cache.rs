//! The cache against a model so naive that it is obviously right: one list of samples, scanned.

use crate::instance::KeyFunction;
use proptest::prelude::*;

use super::*;

const KEYS: u8 = 4;

#[derive(Clone, Debug)]
enum Step {
    Write(u8, u8),
    Dispose(u8, u8),
    Unregister(u8, u8),
    Leave(u8),
    Access { take: bool, selector: Selector },
}

#[derive(Clone, Debug)]
struct Entry {
    key: u8,
    value: u8,
    valid: bool,
    read: bool,
    generations: (i32, i32),
}

#[derive(Clone, Debug)]
struct ModelInstance {
    state: InstanceState,
    new: bool,
    generations: (i32, i32),
    writers: Vec<u8>,
}

struct Model {
    depth: Option<usize>,
    entries: Vec<Entry>,
    instances: BTreeMap<u8, ModelInstance>,
}

/// What a sample looks like from outside.
type Seen = (u8, Option<u8>, SampleState, ViewState, InstanceState, (i32, i32), i32, i32, i32);

impl Model {
    fn write(&mut self, writer: u8, key: u8, value: u8) {
        let fresh =
            ModelInstance { state: InstanceState::Alive, new: true, generations: (0, 0), writers: vec![] };
        let instance = self.instances.entry(key).or_insert(fresh);
        match instance.state {
            InstanceState::Alive => {}
            InstanceState::NotAliveDisposed => {
                (instance.generations.0, instance.new) = (instance.generations.0 + 1, true)
            }
            InstanceState::NotAliveNoWriters => {
                (instance.generations.1, instance.new) = (instance.generations.1 + 1, true)
            }
        }
        instance.state = InstanceState::Alive;
        instance.writers.retain(|other| *other != writer);
        instance.writers.push(writer);
        self.entries.push(Entry { key, value, valid: true, read: false, generations: instance.generations });
        if let Some(depth) = self.depth
            && self.entries.iter().filter(|entry| entry.key == key && entry.valid).count() > depth
        {
            let oldest = self.entries.iter().position(|entry| entry.key == key && entry.valid).unwrap();
            self.entries.remove(oldest);
        }
    }

    fn end(&mut self, key: u8, state: InstanceState) {
        let fresh =
            ModelInstance { state: InstanceState::Alive, new: true, generations: (0, 0), writers: vec![] };
        let instance = self.instances.entry(key).or_insert(fresh);
        if instance.state == state {
            return;
        }
        instance.state = state;
        let generations = instance.generations;
        self.entries.retain(|entry| entry.valid || entry.key != key);
        self.entries.push(Entry { key, value: 0, valid: false, read: false, generations });
    }

    fn dispose(&mut self, writer: u8, key: u8) {
        self.end(key, InstanceState::NotAliveDisposed);
        let writers = &mut self.instances.get_mut(&key).unwrap().writers;
        writers.retain(|other| *other != writer);
        writers.push(writer);
    }

    fn unregister(&mut self, writer: u8, key: u8) {
        let Some(instance) = self.instances.get_mut(&key) else { return };
        let before = instance.writers.len();
        instance.writers.retain(|other| *other != writer);
        let last = before > 0 && instance.writers.is_empty() && before != instance.writers.len();
        if last && instance.state == InstanceState::Alive {
            self.end(key, InstanceState::NotAliveNoWriters);
        }
    }

    fn access(&mut self, take: bool, selector: &Selector) -> Vec<Seen> {
        let mut seen = Vec::new();
        let keys: Vec<u8> = self.instances.keys().copied().collect();
        for key in keys {
            match selector.instance {
                InstanceSelector::Exactly(instance) if instance != handle(key) => continue,
                InstanceSelector::NextAfter(instance) if handle(key) <= instance || !seen.is_empty() => {
                    continue;
                }
                _ => {}
            }
            self.access_one(key, take, selector, &mut seen);
        }
        seen
    }

    fn access_one(&mut self, key: u8, take: bool, selector: &Selector, seen: &mut Vec<Seen>) {
        let instance = self.instances.get_mut(&key).unwrap();
        let view = if instance.new { ViewState::New } else { ViewState::NotNew };
        let matches =
            selector.view_states & view as u8 != 0 && selector.instance_states & instance.state as u8 != 0;
        let sample_state = |entry: &Entry| if entry.read { SampleState::Read } else { SampleState::NotRead };
        let chosen: Vec<usize> = (0..self.entries.len())
            .filter(|at| {
                let entry = &self.entries[*at];
                matches && entry.key == key && selector.sample_states & sample_state(entry) as u8 != 0
            })
            .take(selector.samples_max - seen.len())
            .collect();
        let Some(last) = chosen.last() else { return };
        let total = |generations: (i32, i32)| generations.0 + generations.1;
        let newest = total(self.entries[*last].generations);
        for (rank, at) in chosen.iter().rev().enumerate().collect::<Vec<_>>().into_iter().rev() {
            let entry = &self.entries[*at];
            let own = total(entry.generations);
            seen.push((
                key,
                entry.valid.then_some(entry.value),
                sample_state(entry),
                view,
                instance.state,
                entry.generations,
                rank as i32,
                newest - own,
                total(instance.generations) - own,
            ));
        }
        instance.new = false;
        for at in chosen.into_iter().rev() {
            if take {
                self.entries.remove(at);
            } else {
                self.entries[at].read = true;
            }
        }
    }
}

fn seen(sample: &CachedSample) -> Seen {
    let info = &sample.info;
    (
        info.instance_handle.0[0],
        info.valid_data.then(|| sample.payload.as_slice()[5]),
        info.sample_state,
        info.view_state,
        info.instance_state,
        (info.disposed_generation_count, info.no_writers_generation_count),
        info.sample_rank,
        info.generation_rank,
        info.absolute_generation_rank,
    )
}

fn selectors() -> impl Strategy<Value = Selector> {
    let instance = prop_oneof![
        Just(InstanceSelector::All),
        (0..KEYS).prop_map(|key| InstanceSelector::Exactly(handle(key))),
        (0..KEYS).prop_map(|key| InstanceSelector::NextAfter(handle(key))),
        Just(InstanceSelector::NextAfter(InstanceHandle::NIL)),
    ];
    (1_u8..4, 1_u8..4, 1_u8..8, instance, prop_oneof![0_usize..4, Just(1_000)]).prop_map(
        |(sample_states, view_states, instance_states, instance, samples_max)| Selector {
            sample_states,
            view_states,
            instance_states,
            instance,
            samples_max,
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let writer = 1_u8..=3;
    let step = prop_oneof![
        6 => (writer.clone(), 0..KEYS).prop_map(|(writer, key)| Step::Write(writer, key)),
        2 => (writer.clone(), 0..KEYS).prop_map(|(writer, key)| Step::Dispose(writer, key)),
        2 => (writer.clone(), 0..KEYS).prop_map(|(writer, key)| Step::Unregister(writer, key)),
        1 => writer.prop_map(Step::Leave),
        4 => (any::<bool>(), selectors()).prop_map(|(take, selector)| Step::Access { take, selector }),
    ];
    prop::collection::vec(step, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn read_and_take_do_what_the_naive_model_does(steps in steps(), depth in prop::option::of(1_usize..4)) {
        let mut qos = QosSet::reader().reliable().keep_all();
        if let Some(depth) = depth {
            qos = qos.keep_last(depth as i32);
        }
        let mut bench = Bench::new(qos);
        let mut model = Model { depth, entries: Vec::new(), instances: Default::default() };
        let mut numbers = [0_i64; 4];
        for number in 1..=3 {
            bench.matched(number, QosSet::writer());
        }
        for (value, step) in steps.into_iter().enumerate() {
            let value = value as u8;
            let mut next = |writer: u8| {
                numbers[usize::from(writer)] += 1;
                numbers[usize::from(writer)]
            };
            match step {
                Step::Write(writer, key) => {
                    bench.data(writer, next(writer), key, value).unwrap();
                    model.write(writer, key, value);
                }
                Step::Dispose(writer, key) => {
                    bench.dispose(writer, next(writer), key).unwrap();
                    model.dispose(writer, key);
                }
                Step::Unregister(writer, key) => {
                    bench.unregister(writer, next(writer), key).unwrap();
                    model.unregister(writer, key);
                }
                Step::Leave(number) => {
                    bench.reader.unmatch_writer(bench.now, writer(number), &mut bench.out);
                    bench.matched(number, QosSet::writer());
                    numbers[usize::from(number)] = 0;
                    (0..KEYS).for_each(|key| model.unregister(number, key));
                }
                Step::Access { take, selector } => {
                    let samples = if take { bench.take_with(&selector) } else { bench.read_with(&selector) };
                    let found: Vec<Seen> = samples.iter().map(seen).collect();
                    prop_assert_eq!(found, model.access(take, &selector), "{:?}", selector);
                }
            }
            for mask in 0..8_u8 {
                let (sample_states, view_states) = (mask % 3 + 1, mask % 2 + 1);
                let expected = model.entries.iter().any(|entry| {
                    let instance = &model.instances[&entry.key];
                    let view = if instance.new { 1 } else { 2 };
                    let read = if entry.read { 1 } else { 2 };
                    sample_states & read != 0 && view_states & view != 0 && mask & instance.state as u8 != 0
                });
                prop_assert_eq!(bench.reader.has_data(sample_states, view_states, mask), expected);
            }
        }
    }
}

#[test]
fn a_hundred_thousand_instances_are_taken_one_after_the_other_without_scanning() {
    fn four_octets(payload: &[u8], _: bool) -> Result<Key, Malformed> {
        let mut octets = [0xee; 16];
        octets[..4].copy_from_slice(payload.get(4..8).ok_or(Malformed::Truncated)?);
        Ok(InstanceHandle(octets).into())
    }
    const INSTANCES: u32 = 100_000;
    let mut bench = Bench::with(ReaderConfig {
        key: KeyFunction::new(four_octets),
        ..config(QosSet::reader().reliable())
    });
    bench.matched(1, QosSet::writer());
    let context = bench.context(1);
    let write = |bench: &mut Bench, number: u32, key: u32| {
        let mut octets = vec![0, 1, 0, 0];
        octets.extend(key.to_be_bytes());
        let data = plain(number.into(), &octets);
        bench.reader.on_data(bench.now, &context, &data, &mut bench.out).unwrap();
        bench.out.clear();
    };
    for key in 0..INSTANCES {
        write(&mut bench, key + 1, key);
    }
    let mut previous = InstanceHandle::NIL;
    let mut taken = 0;
    loop {
        let samples = bench.take_with(&only(InstanceSelector::NextAfter(previous)));
        let Some(sample) = samples.first() else { break };
        assert!(sample.info.instance_handle > previous);
        previous = sample.info.instance_handle;
        taken += 1;
    }
    assert_eq!(taken, INSTANCES);
    // All instances are alive and empty now; a scan over them for each sample would take minutes.
    for number in 0..20_000 {
        write(&mut bench, INSTANCES + 1 + number, number % 7);
        assert!(bench.reader.has_data(2, 3, 7));
        assert_eq!(bench.take_with(&only(InstanceSelector::NextAfter(InstanceHandle::NIL))).len(), 1);
    }
}
