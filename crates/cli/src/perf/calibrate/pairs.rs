//! Two parties that wake each other.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use plainsong_perfkit::clock::now_ns;
use plainsong_perfkit::floor::system::{futex_wait, futex_wake};

use super::Cpus;

/// How long one run takes, in nanoseconds, and its round trips at most.
pub(super) const RUN_NS: u64 = 50_000_000;
pub(super) const TRIPS_MAX: usize = 20_000;
/// The first round trips of a run are not counted.
pub(super) const WARMUP_TRIPS: usize = 20;
/// Nobody waits longer for the other.
const PATIENCE: Duration = Duration::from_secs(1);

/// The answer that ends the other party.
const END: u32 = u32::MAX;

/// Times of round trips, until the run is over.
pub(super) fn trips(mut trip: impl FnMut() -> io::Result<()>) -> io::Result<Vec<u64>> {
    let mut times = Vec::with_capacity(TRIPS_MAX);
    let run_ns = now_ns();
    let mut begin_ns = run_ns;
    let mut number = 0;
    // At least two are counted, however slow they are.
    while times.len() < 2 || begin_ns.saturating_sub(run_ns) < RUN_NS && times.len() < TRIPS_MAX {
        trip()?;
        let end_ns = now_ns();
        number += 1;
        if number > WARMUP_TRIPS {
            times.push(end_ns.saturating_sub(begin_ns));
        }
        begin_ns = end_ns;
    }
    Ok(times)
}

/// Both look at a word all the time.
pub(super) fn spin(cpus: Cpus) -> Vec<u64> {
    let wait = |word: &AtomicU32, before: u32| {
        while word.load(Ordering::Acquire) == before {
            cpus.relax();
        }
    };
    between(cpus, |word, number| word.store(number, Ordering::Release), wait)
}

/// Both sleep until they are woken.
pub(super) fn futex(cpus: Cpus) -> Vec<u64> {
    let wait = |word: &AtomicU32, before: u32| {
        while word.load(Ordering::Acquire) == before {
            futex_wait(word, before, PATIENCE);
        }
    };
    let tell = |word: &AtomicU32, number: u32| {
        word.store(number, Ordering::Release);
        futex_wake(word);
    };
    between(cpus, tell, wait)
}

/// One party asks with a number in one word, the other answers with the same in another.
fn between(
    cpus: Cpus,
    tell: impl Fn(&AtomicU32, u32) + Copy + Send,
    wait: impl Fn(&AtomicU32, u32) + Copy + Send,
) -> Vec<u64> {
    let (ping, pong) = (&AtomicU32::new(0), &AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            cpus.pin(true);
            let mut heard = 0;
            while heard != END {
                wait(ping, heard);
                heard = ping.load(Ordering::Acquire);
                tell(pong, heard);
            }
        });
        let mut number = 0;
        let times = trips(|| {
            tell(ping, number + 1);
            wait(pong, number);
            number += 1;
            Ok(())
        });
        tell(ping, END);
        times.unwrap_or_default()
    })
}

/// An octet through a pipe, and one back through another.
pub(super) fn pipe(cpus: Cpus) -> io::Result<Vec<u64>> {
    let (mut asked, mut asking) = io::pipe()?;
    let (mut answer, mut answering) = io::pipe()?;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            cpus.pin(true);
            let mut octet = [0];
            // It ends when the other side is closed.
            while asked.read_exact(&mut octet).is_ok() && answering.write_all(&octet).is_ok() {}
        });
        let mut octet = [7];
        let times = trips(|| {
            asking.write_all(&octet)?;
            answer.read_exact(&mut octet)
        });
        drop(asking);
        times
    })
}
