//! Holds the table of `docs/life-of-a-sample.md` against what happens: allocations, locks and system calls of
//! each step. A child process counts the first two, its parent the third.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]
// Only debug builds count locks.
#![cfg(debug_assertions)]

mod common;
#[path = "../../proto/tests/counting/mod.rs"]
mod counting;
mod tracing;

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{Pair, Point, until};
use plainsong::prelude::*;

const CHILD: &str = "PLAINSONG_TEST_LIFE_CHILD";
const ROUNDS: u32 = 200;
/// After so long the next sample tells its reader again what there is.
const TELLS_AFTER: Duration = Duration::from_micros(1100);
/// Each sample after a pause of 2 ms asks for an acknowledgement, and others one every 10 ms: of so many
/// rounds that were over within `QUICK`, as was the one before, most see none.
const QUICK_ROUNDS: u32 = 50;
const QUICK: Duration = Duration::from_micros(1_900);
/// What so many rounds cost is no accident: where the host takes the core from a thread, a part of what a
/// sample costs may count towards the lap before.
const SAME_ROUNDS: usize = 3;
/// The steps, as the document names them, and as kinds of laps.
const WRITE: (u8, &str) = (0, "`write`");
const RECEIVE: (u8, &str) = (1, "arrival, listener, `take_into`");

/// What a step costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    allocations: u64,
    locks: u64,
}

thread_local! {
    static LAST: Cell<Option<Cost>> = const { Cell::new(None) };
}

/// What this thread has spent so far.
fn spent() -> Cost {
    Cost { allocations: counting::allocations() as u64, locks: plainsong::locks_taken() }
}

impl Cost {
    fn since(self, before: Self) -> Self {
        Self { allocations: self.allocations - before.allocations, locks: self.locks - before.locks }
    }
}

/// The row of a step: allocations, locks, system calls.
fn documented(step: &str) -> [u64; 3] {
    let document = include_str!("../../../docs/life-of-a-sample.md");
    let row = document.lines().find_map(|line| line.strip_prefix(&format!("| {step} |")));
    let row = row.unwrap_or_else(|| panic!("no row of {step} in docs/life-of-a-sample.md"));
    let cells: Vec<u64> = row.split('|').take(3).map(|cell| cell.trim().parse().unwrap()).collect();
    cells.try_into().unwrap()
}

/// What a step costs when nothing comes in between: timers and acknowledgements only add to it.
fn alone<T: Ord>(all: impl IntoIterator<Item = T>) -> T {
    let mut counts = std::collections::BTreeMap::new();
    all.into_iter().for_each(|cost| *counts.entry(cost).or_insert(0) += 1);
    counts.into_iter().find(|(_, rounds)| *rounds >= SAME_ROUNDS).unwrap().0
}

#[test]
fn the_document_tells_what_each_step_costs() {
    if std::env::var_os(CHILD).is_some() {
        return live();
    }
    let laps = tracing::count_system_calls("the_document_tells_what_each_step_costs", CHILD, "1");
    // Every other lap of the writer is between writes.
    let writes = laps.of(WRITE.0).iter().step_by(2).map(|calls| calls.values().sum::<u64>());
    assert_eq!(alone(writes), documented(WRITE.1)[2], "system calls of {}", WRITE.1);
    // On a busy host a lap may be without any: the call that brought its sample fell into the lap before.
    let arrivals =
        laps.of(RECEIVE.0).iter().map(|calls| calls.values().sum::<u64>()).filter(|calls| *calls > 0);
    assert_eq!(alone(arrivals), documented(RECEIVE.1)[2], "system calls of {}", RECEIVE.1);
}

/// Takes each sample and notes what happened in its thread since the one before.
struct Taker {
    taken: AtomicU32,
    costs: Mutex<Vec<Cost>>,
    samples: Mutex<Vec<Sample<Point>>>,
}

impl DataReaderListener for Taker {
    fn on_data_available(&self, reader: &AnyDataReader) {
        let reader = reader.downcast::<Point>().unwrap();
        let mut samples = self.samples.lock().unwrap();
        reader.take_into(&ReadOptions::new(), &mut samples).unwrap();
        let count = samples.drain(..).len() as u32;
        let now = spent();
        if let Some(before) = LAST.replace(Some(now)) {
            self.costs.lock().unwrap().push(now.since(before));
        }
        tracing::lap(RECEIVE.0);
        // What noting the cost has cost is not the sample's.
        LAST.set(Some(spent()));
        self.taken.fetch_add(count, Ordering::Release);
    }
}

/// The child: one sample after the other, each taken before the next is written.
fn live() {
    let pair = Pair::<Point>::with(
        &common::udp(),
        QosSet::writer().keep_last(8),
        QosSet::reader().reliable().keep_last(8),
    );
    let taker = Arc::new(Taker {
        taken: AtomicU32::new(0),
        costs: Mutex::new(Vec::with_capacity(2 * ROUNDS as usize)),
        samples: Mutex::default(),
    });
    let listener = Arc::clone(&taker);
    pair.reader.set_listener(Some(listener), StatusMask::NONE.with(StatusKind::DataAvailable));
    let mut writes = Vec::new();
    let (mut round, mut quick, mut was_quick) = (0, 0, false);
    // On a busy host rounds are long: there are more of them until enough are not.
    while round < ROUNDS || quick < QUICK_ROUNDS {
        let began = Instant::now();
        let sample = Point { id: round % 4, x: 1.0, y: 2.0 };
        let before = spent();
        tracing::lap(WRITE.0);
        pair.writer.write(&sample).unwrap();
        tracing::lap(WRITE.0);
        writes.push(spent().since(before));
        let written = Instant::now();
        until("the sample is taken", || taker.taken.load(Ordering::Acquire) > round);
        while written.elapsed() < TELLS_AFTER {}
        let is_quick = began.elapsed() < QUICK;
        quick += u32::from(is_quick && was_quick);
        was_quick = is_quick;
        round += 1;
    }
    let costs = taker.costs.lock().unwrap().clone();
    for (name, costs) in [(WRITE.1, writes), (RECEIVE.1, costs)] {
        let [allocations, locks, _] = documented(name);
        assert_eq!(alone(costs.iter().map(|cost| cost.allocations)), allocations, "allocations of {name}");
        assert_eq!(alone(costs.iter().map(|cost| cost.locks)), locks, "locks of {name}");
    }
}

#[test]
fn a_thread_that_waits_and_takes_into_its_own_memory_allocates_nothing() {
    let pair = Pair::<Point>::with(
        &common::udp(),
        QosSet::writer().keep_last(8),
        QosSet::reader().reliable().keep_last(8),
    );
    let taken = AtomicU32::new(0);
    let costs = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let waiting = WaitSet::new();
            waiting.attach(pair.reader.read_condition(&ReadOptions::new()));
            let (mut triggered, mut samples, mut costs) = (Vec::new(), Vec::new(), Vec::new());
            while taken.load(Ordering::SeqCst) < ROUNDS {
                let before = spent();
                waiting.wait_into(common::PATIENCE, &mut triggered).unwrap();
                pair.reader.take_into(&ReadOptions::new(), &mut samples).unwrap();
                costs.push(spent().since(before).allocations);
                triggered.clear();
                taken.fetch_add(samples.drain(..).len() as u32, Ordering::SeqCst);
            }
            costs
        });
        for round in 0..ROUNDS {
            pair.writer.write(&Point { id: round % 4, x: 1.0, y: 2.0 }).unwrap();
            until("the sample is taken", || taken.load(Ordering::SeqCst) > round);
        }
        waiter.join().unwrap()
    });
    // Whatever grows has grown by then: what acknowledgements and timers take is their own.
    let late = &costs[costs.len() / 2..];
    let free = late.iter().filter(|allocations| **allocations == 0).count();
    assert!(2 * free > late.len(), "allocations of each wait and take: {late:?}");
}
