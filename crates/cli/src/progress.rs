//! How far something is, on a terminal.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often it is told.
const PERIOD: Duration = Duration::from_millis(200);

/// A line that is written over again and again, where a person looks at it.
pub(crate) struct Progress {
    is_shown: bool,
    next: Instant,
    is_open: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { is_shown: std::io::stderr().is_terminal(), next: Instant::now(), is_open: false }
    }

    pub(crate) fn tell(&mut self, line: impl FnOnce() -> String) {
        let now = Instant::now();
        if self.is_shown && now >= self.next {
            self.next = now + PERIOD;
            self.is_open = true;
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\x1b[K{}", line()).and_then(|()| out.flush());
        }
    }

    /// A line that stays.
    pub(crate) fn say(&mut self, line: &str) {
        self.end();
        eprintln!("{line}");
    }

    pub(crate) fn end(&mut self) {
        if std::mem::take(&mut self.is_open) {
            eprint!("\r\x1b[K");
        }
    }
}
