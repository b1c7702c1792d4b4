//! How far apart two CPUs are: a hypervisor moves them between cores that share a cache and cores that do
//! not.

use std::sync::atomic::{AtomicU32, Ordering};

use plainsong_perfkit::clock::now_ns;
use plainsong_perfkit::floor::system::{allowed_cpus, pin_to_cpu};

/// Round trips that are timed together.
const TRIPS: u32 = 500;
/// How long they are repeated, in nanoseconds: to see the least, and to see it again soon.
const LENGTH_NS: u64 = 6_000_000;
/// All is over after so much more, whatever keeps a thread from its CPU.
const PATIENCE_NS: u64 = 50_000_000;
/// Looks at the word before one at the clock.
const LOOKS: u32 = 1 << 12;

/// What ends the other thread.
const END: u32 = u32::MAX;

/// In a cache line of its own, and none that is fetched with another.
#[repr(align(128))]
struct Word(AtomicU32);

impl Word {
    fn say(&self, value: u32) {
        self.0.store(value, Ordering::Release);
    }

    /// What the other says after `before`; `None` if that takes too long.
    fn after(&self, before: u32, end_ns: u64) -> Option<u32> {
        loop {
            // Without a pause, which may take as long as the answer.
            let mut looks = (0..LOOKS).map(|_| self.0.load(Ordering::Acquire));
            if let Some(value) = looks.find(|it| *it != before) {
                return Some(value);
            }
            if now_ns() > end_ns {
                return None;
            }
        }
    }
}

/// The mean round trip of a word between the two CPUs of this thread, in nanoseconds, when it was least; it
/// takes 6 ms. `None` if this thread may run on fewer CPUs or on more (nobody knows then where others run),
/// or if the two had not both time for it.
pub(crate) fn cores_apart_ns() -> Option<f64> {
    let [first, second] = allowed_cpus()[..] else { return None };
    let end_ns = now_ns() + LENGTH_NS + PATIENCE_NS;
    between(first, second, end_ns).map(|ns| ns as f64 / f64::from(TRIPS))
}

/// The shortest time of all batches. Both threads are new, so that the caller stays free to run anywhere.
fn between(first: usize, second: usize, end_ns: u64) -> Option<u64> {
    let word = &Word(AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut said = 0;
            if pin_to_cpu(second).is_err() {
                return;
            }
            while let Some(heard) = word.after(said, end_ns).filter(|it| *it != END) {
                said = heard + 1;
                word.say(said);
            }
        });
        let asking = scope.spawn(move || {
            let least_ns = pin_to_cpu(first).ok().and_then(|()| least_batch(word, end_ns));
            word.say(END);
            least_ns
        });
        asking.join().ok().flatten().filter(|it| *it > 0)
    })
}

fn least_batch(word: &Word, end_ns: u64) -> Option<u64> {
    let mut heard = 0;
    let mut batch = || {
        let begin_ns = now_ns();
        for _ in 0..TRIPS {
            word.say(heard + 1);
            heard = word.after(heard + 1, end_ns)?;
        }
        Some(now_ns().saturating_sub(begin_ns))
    };
    // In the first the other thread may have to start.
    let mut least_ns = batch()?;
    let enough_ns = now_ns() + LENGTH_NS;
    while now_ns() < enough_ns {
        let Some(ns) = batch() else { break };
        least_ns = least_ns.min(ns);
    }
    Some(least_ns)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Far more than is allowed to it, for a machine that has much else to do.
    const BOUND: Duration = Duration::from_secs(5);

    #[test]
    fn it_takes_little_time_and_leaves_the_caller_where_it_was() {
        let before = allowed_cpus();
        let begin = Instant::now();
        let apart_ns = cores_apart_ns();
        assert!(begin.elapsed() < BOUND);
        assert!(apart_ns.is_none_or(|it| it > 0.0), "{apart_ns:?}");
        assert!(before.len() == 2 || apart_ns.is_none(), "{before:?}");
        assert_eq!(allowed_cpus(), before);
    }

    #[test]
    fn two_threads_that_share_a_cpu_or_lack_one_do_not_wait_for_ever() {
        let one = allowed_cpus()[0];
        for (first, second) in [(one, one), (one, 1023)] {
            let begin = Instant::now();
            let _ = between(first, second, now_ns() + PATIENCE_NS);
            assert!(begin.elapsed() < BOUND);
        }
    }
}
