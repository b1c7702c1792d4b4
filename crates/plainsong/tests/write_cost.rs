//! What a steady `write` costs: no allocation, and one system call; less than one in a flow of writes, where
//! samples share datagrams.
//!
//! A child process writes in laps; its parent counts the system calls of the writing thread
//! with ptrace, and the child itself counts allocations.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;
#[path = "../../proto/tests/counting/mod.rs"]
mod counting;
mod tracing;

use common::{Pair, Point};
use plainsong::prelude::*;
use tracing::{Calls, Laps};

const BURSTS: usize = 50;
const WRITES: u32 = 100;
const CHILD: &str = "PLAINSONG_TEST_WRITE_COST_CHILD";

#[test]
fn a_steady_write_allocates_nothing_and_makes_one_system_call() {
    if std::env::var_os(CHILD).is_some() {
        return write_between_marks();
    }
    for reliable in [true, false] {
        let bursts = count_system_calls(if reliable { "reliable" } else { "best-effort" });
        assert_eq!(bursts.len(), BURSTS);
        for calls in &bursts {
            let sent = calls.get(&libc::SYS_sendmsg).copied().unwrap_or(0);
            assert_eq!(
                sent,
                u64::from(WRITES),
                "reliable {reliable}: one sendmsg a write; by number: {calls:?}"
            );
            let woken = calls.get(&libc::SYS_futex).copied().unwrap_or(0);
            assert_eq!(
                calls.values().sum::<u64>(),
                sent + woken,
                "reliable {reliable}: nothing else: {calls:?}"
            );
        }
        // The timer thread is woken once for each time that readers are asked, not for each write: on a busy
        // host, where writes take long, that is now and then in each burst.
        let woken: u64 = bursts.iter().filter_map(|calls| calls.get(&libc::SYS_futex)).sum();
        let writes = u64::from(WRITES) * BURSTS as u64;
        assert!(woken <= writes / 10, "reliable {reliable}: {woken} wake-ups in {writes} writes: {bursts:?}");
    }
}

#[test]
fn a_batch_of_writes_allocates_nothing_and_makes_one_system_call() {
    let bursts = count_system_calls("batched");
    assert_eq!(bursts.len(), BURSTS);
    // Now and then an answer to a reader goes out meanwhile, or a thread has to be woken.
    let alone = |calls: &Calls| calls.values().sum::<u64>() == 1;
    assert!(bursts.iter().any(alone), "{WRITES} samples in one datagram; by number: {bursts:?}");
    let sent = |calls: &Calls| calls.get(&libc::SYS_sendmsg).copied().unwrap_or(0);
    assert!(bursts.iter().all(|calls| sent(calls) <= u64::from(WRITES / 10)), "by number: {bursts:?}");
}

/// The system calls of each burst of the child.
fn count_system_calls(kind: &str) -> Vec<Calls> {
    let test = "a_steady_write_allocates_nothing_and_makes_one_system_call";
    let laps: Laps = tracing::count_system_calls(test, CHILD, kind);
    // Every other lap is between bursts.
    laps.of(0).iter().step_by(2).cloned().collect()
}

/// The child: writes to a matched reader of this process.
fn write_between_marks() {
    let kind = std::env::var(CHILD).unwrap();
    let (reliable, batched) = (kind != "best-effort", kind == "batched");
    let (writer_qos, reader_qos) = (QosSet::writer().keep_last(8), QosSet::reader().keep_last(8));
    let budget = Duration::from_secs(if batched { 3_600 } else { 0 });
    let (writer_qos, reader_qos) =
        (QosSet { latency_budget: budget, ..writer_qos }, QosSet { latency_budget: budget, ..reader_qos });
    let pair = if reliable {
        Pair::<Point>::with(&common::udp(), writer_qos, reader_qos.reliable())
    } else {
        Pair::<Point>::with(&common::udp(), writer_qos.best_effort(), reader_qos)
    };
    // A pause between writes, so that they are no flow.
    let write = |x: u32| {
        let pause = std::time::Instant::now();
        while !batched && pause.elapsed() < std::time::Duration::from_micros(20) {}
        pair.writer.write(&Point { id: x % 4, x: f64::from(x), y: 0.0 }).unwrap();
    };
    // Pools, queues and maps reach the size they keep.
    (0..10_000).for_each(write);
    pair.writer.flush().unwrap();
    let before = counting::allocations();
    for _ in 0..BURSTS {
        tracing::lap(0);
        (0..WRITES).for_each(write);
        if batched {
            pair.writer.flush().unwrap();
        }
        tracing::lap(0);
    }
    // A reader that a busy host keeps waiting makes a pool grow once more when a batch waits too.
    let (allocations, most) = (counting::allocations() - before, if batched { 5 } else { 0 });
    assert!(allocations <= most, "{allocations} allocations in {BURSTS} times {WRITES} writes");
}
