//! What a process does wrong on purpose, so that it is seen that checkers notice it.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::ValueEnum;

/// Samples between two mistakes.
const EVERY: u64 = 40;
/// What leaks at a time, in octets.
const LEAK_BYTES: usize = 1 << 20;
/// Pause between two leaks.
const LEAK_PAUSE: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mistake {
    /// An octet of a sample is another one.
    Corrupt,
    /// A sample is written twice.
    Duplicate,
    /// Two samples change places.
    Reorder,
    /// A sample is left out.
    Lose,
    /// The writer sleeps for three times as long as it may.
    Stall,
    /// Memory is taken and never given back.
    LeakMemory,
    /// Files stay open.
    LeakDescriptors,
    /// Files stay behind.
    LeaveFiles,
    /// A process ends that nobody killed.
    Crash,
}

impl Mistake {
    /// The numbers that are written in place of the `number`th.
    pub(crate) fn numbers(this: Option<Self>, number: u64) -> impl Iterator<Item = u64> {
        let place = number % EVERY;
        let (first, second) = match this {
            Some(Self::Duplicate) if place == 0 => (Some(number), Some(number)),
            Some(Self::Reorder) if place == 0 => (Some(number + 1), Some(number)),
            Some(Self::Reorder) if place == 1 => (None, None),
            Some(Self::Lose) if place == 0 => (None, None),
            _ => (Some(number), None),
        };
        first.into_iter().chain(second)
    }

    /// Makes the octets of a sample wrong, if that is the mistake.
    pub(crate) fn spoil(this: Option<Self>, number: u64, octets: &mut [u8]) {
        if this == Some(Self::Corrupt)
            && number.is_multiple_of(EVERY)
            && let Some(last) = octets.last_mut()
        {
            *last ^= 0x10;
        }
    }

    /// How long the writer sleeps instead of writing.
    pub(crate) fn pause(this: Option<Self>, number: u64, stall: Duration) -> Duration {
        let stalls = this == Some(Self::Stall) && number % EVERY == EVERY - 1;
        if stalls { stall * 3 } else { Duration::ZERO }
    }

    /// What goes wrong beside writing, while there is load.
    pub(crate) fn leak(self, resting: &AtomicBool) {
        let mut number = 0;
        loop {
            std::thread::sleep(LEAK_PAUSE);
            if resting.load(Ordering::Relaxed) {
                continue;
            }
            number += 1;
            match self {
                Self::LeakMemory => {
                    // Not zeros, which need no memory.
                    Box::leak(vec![1_u8; LEAK_BYTES].into_boxed_slice());
                }
                Self::LeakDescriptors => std::mem::forget(File::open("/dev/null")),
                Self::LeaveFiles => {
                    let _ = File::create(format!("/dev/shm/left-{}", number % 3));
                }
                Self::Crash if number == 20 => std::process::exit(3),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_wrong_as_they_are_told() {
        let numbers = |mistake| (0..4).flat_map(|it| Mistake::numbers(mistake, it)).collect::<Vec<_>>();
        assert_eq!(numbers(None), [0, 1, 2, 3]);
        assert_eq!(numbers(Some(Mistake::Duplicate)), [0, 0, 1, 2, 3]);
        assert_eq!(numbers(Some(Mistake::Reorder)), [1, 0, 2, 3]);
        assert_eq!(numbers(Some(Mistake::Lose)), [1, 2, 3]);
    }
}
