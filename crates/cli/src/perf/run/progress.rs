//! How far a campaign is, and how long it will take: on standard error.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

const BAR: usize = 24;

/// The progress of one run.
pub(crate) struct Progress {
    terminal: bool,
    /// Only the bar: the caller prints a table that says the rest.
    quiet: bool,
    begin: Instant,
    /// Estimated times: of all that was to be done, and of what is done.
    total: Duration,
    done: Duration,
    repetitions: usize,
    repetitions_done: usize,
}

impl Progress {
    pub(crate) fn new(repetitions: usize, total: Duration, quiet: bool) -> Self {
        let terminal = stderr().is_terminal();
        let begin = Instant::now();
        Self { terminal, quiet, begin, total, done: Duration::ZERO, repetitions, repetitions_done: 0 }
    }

    /// What begins now.
    pub(crate) fn begins(&self, cell: &str, repetition: u32) {
        if self.terminal {
            self.draw(&format!("{cell} #{repetition}"));
        }
    }

    /// What has ended, with a word on how if it was not well.
    pub(crate) fn ended(&mut self, cell: &str, repetition: u32, estimate: Duration, word: &str) {
        self.done += estimate;
        self.repetitions_done += 1;
        if self.quiet {
            return;
        }
        if !word.is_empty() {
            self.say(&format!("{cell} #{repetition}: {word}"));
        } else if !self.terminal {
            let (done, all) = (self.repetitions_done, self.repetitions);
            self.say(&format!("{done}/{all} {cell} #{repetition}: ok, {} left", words(self.left())));
        }
    }

    /// A line that stays.
    pub(crate) fn say(&self, line: &str) {
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        // Nobody can be told when standard error is closed.
        let _ = writeln!(stderr(), "{clear}{line}");
    }

    fn left(&self) -> Duration {
        let ahead = self.total.saturating_sub(self.done);
        if self.done.is_zero() {
            return ahead;
        }
        // As much slower, or faster, than estimated as what has been done.
        ahead.mul_f64((self.begin.elapsed().as_secs_f64() / self.done.as_secs_f64()).clamp(0.01, 100.0))
    }

    fn draw(&self, what: &str) {
        let share = self.done.as_secs_f64() / self.total.as_secs_f64().max(0.001);
        let filled = (share.clamp(0.0, 1.0) * BAR as f64) as usize;
        let bar: String = (0..BAR).map(|it| if it < filled { '#' } else { '.' }).collect();
        let (done, all) = (self.repetitions_done, self.repetitions);
        let mut line = format!("[{bar}] {done}/{all}, {} left, {what}", words(self.left()));
        line.truncate(line.char_indices().nth(100).map_or(line.len(), |(place, _)| place));
        let _ = write!(stderr(), "\r\x1b[K{line}");
        let _ = stderr().flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.terminal {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

/// `1 h 05 min`, `3 min 20 s`, `12 s`.
pub(crate) fn words(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds:02} s"),
        (hours, minutes, _) => format!("{hours} h {minutes:02} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_two_units() {
        assert_eq!(words(Duration::from_millis(11_600)), "12 s");
        assert_eq!(words(Duration::from_secs(200)), "3 min 20 s");
        assert_eq!(words(Duration::from_secs(3900)), "1 h 05 min");
    }

    #[test]
    fn what_is_left_follows_the_pace_so_far() {
        let mut progress = Progress::new(4, Duration::from_secs(40), true);
        assert_eq!(progress.left(), Duration::from_secs(40));
        progress.ended("a", 0, Duration::from_secs(10), "");
        assert!(progress.left() < Duration::from_secs(2), "nothing has taken any time so far");
    }
}
