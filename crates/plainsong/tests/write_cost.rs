//! What a steady `write` costs: no allocation, and one system call; less than one in a flow of writes, where
//! samples share datagrams.
//!
//! A child process writes between two marks; its parent counts the system calls of the writing thread
//! with ptrace, and the child itself counts allocations.
#![allow(missing_docs, unsafe_code, clippy::unwrap_used, reason = "tests; ptrace needs unsafe")]

mod common;
#[path = "../../proto/tests/counting/mod.rs"]
mod counting;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use common::{Pair, Point};
use plainsong::prelude::*;

const BURSTS: usize = 50;
const WRITES: u32 = 100;
const CHILD: &str = "PLAINSONG_TEST_WRITE_COST_CHILD";
/// Harmless calls with arguments that nobody else uses: they mark begin and end.
const MARK_BEGIN: i64 = 0x5051_0001;
const MARK_END: i64 = 0x5051_0002;

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
        // A busy host may keep the writing thread from running for so long that the heartbeat timer goes off
        // and must be started again: that burst was no steady state. At least one must be.
        let steady = bursts.iter().filter(|calls| calls.len() == 1).count();
        assert!(steady > 0, "reliable {reliable}: nothing else; by number: {bursts:?}");
    }
}

#[test]
fn a_batch_of_writes_allocates_nothing_and_makes_one_system_call() {
    let bursts = count_system_calls("batched");
    assert_eq!(bursts.len(), BURSTS);
    // Now and then an answer to a reader goes out meanwhile.
    let single = bursts.iter().filter(|calls| calls.values().sum::<u64>() == 1).count();
    assert!(single > BURSTS / 2, "{WRITES} samples in one datagram; by number: {bursts:?}");
}

/// The child: writes to a matched reader of this process.
fn write_between_marks() {
    let kind = std::env::var(CHILD).unwrap();
    let (reliable, batched) = (kind != "best-effort", kind == "batched");
    let (writer_qos, reader_qos) = (QosSet::writer().keep_last(8), QosSet::reader().keep_last(8));
    let budget = plainsong::proto::time::Duration::from_secs(if batched { 3_600 } else { 0 });
    let (writer_qos, reader_qos) =
        (QosSet { latency_budget: budget, ..writer_qos }, QosSet { latency_budget: budget, ..reader_qos });
    let pair = if reliable {
        Pair::<Point>::new(writer_qos, reader_qos.reliable())
    } else {
        Pair::<Point>::new(writer_qos.best_effort(), reader_qos)
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
        mark(MARK_BEGIN);
        (0..WRITES).for_each(write);
        if batched {
            pair.writer.flush().unwrap();
        }
        mark(MARK_END);
    }
    assert_eq!(counting::allocations() - before, 0, "allocations in {BURSTS} times {WRITES} writes");
}

fn mark(which: i64) {
    // SAFETY: the kernel refuses this descriptor; nothing else happens.
    unsafe { libc::syscall(libc::SYS_close, which) };
}

/// Runs the child under ptrace and counts, for each pair of its marks, the calls of the thread that made them.
fn count_system_calls(kind: &str) -> Vec<BTreeMap<i64, u64>> {
    // Who traces waits for all children of the process, so only one may.
    static TRACING: Mutex<()> = Mutex::new(());
    let _alone = TRACING.lock().unwrap_or_else(PoisonError::into_inner);
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "a_steady_write_allocates_nothing_and_makes_one_system_call",
        "--test-threads=1",
    ]);
    command.env(CHILD, kind);
    // SAFETY: between fork and exec only one system call is made.
    unsafe {
        command.pre_exec(|| {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            Ok(())
        });
    }
    // The tracer waits for it, as for each of its threads.
    #[expect(clippy::zombie_processes, reason = "trace() waits")]
    let child = command.spawn().unwrap();
    trace(child.id() as libc::pid_t)
}

fn trace(process: libc::pid_t) -> Vec<BTreeMap<i64, u64>> {
    let mut bursts = Vec::<BTreeMap<i64, u64>>::new();
    let mut marked: Option<libc::pid_t> = None;
    let mut entering = BTreeMap::<libc::pid_t, bool>::new();
    let mut exit_code = None;
    while let Some((thread, status)) = wait_any() {
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            if thread == process {
                exit_code = Some(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 });
            }
            continue;
        }
        let signal = libc::WSTOPSIG(status);
        let is_system_call = signal == libc::SIGTRAP | 0x80;
        if is_system_call {
            let enters = entering.entry(thread).or_insert(true);
            if *enters {
                let (number, argument) = system_call(thread);
                match (number == libc::SYS_close, argument) {
                    (true, MARK_BEGIN) => {
                        marked = Some(thread);
                        bursts.push(BTreeMap::new());
                    }
                    (true, MARK_END) => marked = None,
                    _ if marked == Some(thread) => {
                        bursts
                            .last_mut()
                            .into_iter()
                            .for_each(|calls| *calls.entry(number).or_insert(0) += 1);
                    }
                    _ => {}
                }
            }
            *enters = !*enters;
        } else if signal == libc::SIGTRAP {
            // The exec, or a new thread announced itself: both want the options.
            let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE;
            // SAFETY: `thread` is stopped and traced by us; the call takes no pointers.
            unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, thread, 0, options) };
        }
        let deliver =
            if is_system_call || matches!(signal, libc::SIGTRAP | libc::SIGSTOP) { 0 } else { signal };
        // SAFETY: `thread` is stopped and traced by us; the call takes no pointers.
        unsafe { libc::ptrace(libc::PTRACE_SYSCALL, thread, 0, deliver) };
    }
    assert_eq!(exit_code, Some(0), "the writing process failed: its output says why");
    bursts
}

/// The next thread that stopped or ended; `None` when there are no more.
fn wait_any() -> Option<(libc::pid_t, libc::c_int)> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let thread = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
    (thread > 0).then_some((thread, status))
}

/// Number and first argument of the call that a stopped thread is about to make.
fn system_call(thread: libc::pid_t) -> (i64, i64) {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: `thread` is stopped and traced by us, and `info` has `size` octets.
    let got = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size, &raw mut info) };
    assert!(got > 0, "the kernel does not describe system calls: {}", std::io::Error::last_os_error());
    // SAFETY: at the entry of a call the union holds `entry`.
    let entry = unsafe { info.u.entry };
    (entry.nr as i64, entry.args[0] as i64)
}
