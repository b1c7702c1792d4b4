//! Ctrl-C and SIGTERM: a sleep that they end at once.

use std::sync::Arc;
use std::time::Duration;

use plainsong::prelude::{Condition, GuardCondition, WaitSet};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Told once, for all threads, when the program should end.
#[derive(Clone)]
pub(crate) struct Stop {
    guard: GuardCondition,
    waiting: Arc<WaitSet>,
}

impl Stop {
    /// From now on Ctrl-C and SIGTERM end [`Stop::sleep`] instead of the process.
    pub(crate) fn on_signals() -> std::io::Result<Self> {
        let guard = GuardCondition::new();
        let waiting = WaitSet::new();
        waiting.attach(guard.condition());
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let told = guard.clone();
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            for _ in signals.forever() {
                told.set_trigger_value(true);
            }
        })?;
        Ok(Self { guard, waiting: Arc::new(waiting) })
    }

    /// Whether the program should end.
    pub(crate) fn is_told(&self) -> bool {
        self.guard.condition().trigger_value()
    }

    /// Ends the program from within.
    pub(crate) fn tell(&self) {
        self.guard.set_trigger_value(true);
    }

    /// From now on this ends [`Stop::sleep`] too, while it is so.
    pub(crate) fn also_wakes(&self, condition: &Condition) {
        self.waiting.attach(condition.clone());
    }

    /// Sleeps, but not past the end of the program.
    pub(crate) fn sleep(&self, duration: Duration) {
        // The result says only which of the two ended the sleep.
        let _ = self.waiting.wait(duration);
    }
}
