//! Plays the changes of a file at their times.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plainsong::prelude::WriteOptions;
use plainsong::time::{Time, TimeExt as _};
use plainsong_recording::Change;

use super::feed::feed;
use super::survey::Found;
use super::writers::Writers;
use super::{Failure, Options};
use crate::output::counted;
use crate::progress::Progress;
use crate::stop::Stop;

/// How often is looked for readers.
const LOOK_PERIOD: Duration = Duration::from_millis(20);
/// A sleep may take so much longer than it should: the rest is waited for awake.
const SLEEP_ERROR: Duration = Duration::from_micros(150);
/// Sleeps longer than this end with the program.
const LONG_SLEEP: Duration = Duration::from_millis(50);
/// Refusals that are told of one by one.
const TOLD_MAX: u64 = 10;

/// What was played.
#[derive(Default)]
pub(super) struct Played {
    pub(super) samples: u64,
    pub(super) endings: u64,
    /// Changes that no writer took.
    pub(super) refused: u64,
    pub(super) flaws: u64,
    /// How late the latest change was.
    pub(super) latest: Duration,
}

impl Played {
    pub(super) const fn is_complete(&self) -> bool {
        self.refused == 0 && self.flaws == 0
    }
}

/// Plays what was found, as often as is asked for.
pub(super) fn perform(
    options: &Options,
    found: &Found,
    stop: &Stop,
    played: &mut Played,
) -> Result<(), Failure> {
    let found = Arc::new(found.clone());
    let mut writers = Writers::new(options)?;
    for repetition in 0..options.repetitions {
        writers.complete(options, &found)?;
        if repetition == 0 {
            await_readers(options, &writers, stop)?;
        }
        if stop.is_told() {
            break;
        }
        once(options, &found, stop, &mut writers, played)?;
    }
    writers.settle();
    Ok(())
}

/// Gives readers the time to match.
fn await_readers(options: &Options, writers: &Writers, stop: &Stop) -> Result<(), Failure> {
    let begin = Instant::now();
    if let Some(patience) = options.wait {
        loop {
            let unread = writers.unread()?;
            if unread.is_empty() || stop.is_told() {
                break;
            }
            if begin.elapsed() >= patience {
                return Err(Failure::NoReaders(unread));
            }
            stop.sleep(LOOK_PERIOD);
        }
    }
    // A writer knows its reader before that knows it.
    stop.sleep(options.delay.saturating_sub(begin.elapsed().min(options.delay / 2)));
    Ok(())
}

/// When a change is due.
struct Schedule {
    begin: Instant,
    wall: Time,
    /// The time of the file at which it begins.
    start: u64,
    rate: f64,
}

impl Schedule {
    fn due(&self, time: u64) -> Instant {
        self.begin + Duration::from_nanos((time.saturating_sub(self.start) as f64 / self.rate) as u64)
    }

    /// A time that was recorded, moved to now.
    fn moved(&self, time: u64) -> Time {
        let offset = i64::try_from(i128::from(time) - i128::from(self.start)).unwrap_or(0);
        Time(self.wall.0.saturating_add((offset as f64 / self.rate) as i64))
    }
}

fn once(
    options: &Options,
    found: &Arc<Found>,
    stop: &Stop,
    writers: &mut Writers,
    played: &mut Played,
) -> Result<(), Failure> {
    let batches = feed(options, Arc::clone(found))?;
    let start = found.span(options).0;
    let mut schedule = None;
    let mut progress = Progress::new();
    for change in batches.iter().flatten() {
        let schedule = schedule.get_or_insert_with(|| Schedule {
            begin: Instant::now(),
            wall: Time::now(),
            start,
            rate: if options.fast { f64::INFINITY } else { options.rate },
        });
        if !options.fast {
            let late = sleep_until(schedule.due(change.log_time()), stop);
            played.latest = played.latest.max(late);
        }
        if stop.is_told() {
            return Ok(());
        }
        let seconds = |time: u64| time.saturating_sub(found.first) as f64 / 1e9;
        progress.tell(|| {
            let (now, end) = (seconds(change.log_time()), seconds(found.last));
            format!("{now:.1} of {end:.1} s  {}", counted(played.samples, "sample"))
        });
        let publish_time = match &change {
            Change::Sample { publish_time, .. } | Change::Event { publish_time, .. } => *publish_time,
        };
        let stamp = match (options.recorded_timestamps, options.fast) {
            (true, _) => Time(i64::try_from(publish_time).unwrap_or(i64::MAX)),
            (false, false) => schedule.moved(publish_time),
            (false, true) => Time::now(),
        };
        let options = WriteOptions::new().source_timestamp(stamp);
        let result = match &change {
            Change::Sample { writer, payload, .. } => match writers.get(*writer) {
                Some(player) => {
                    let written = player.write(payload, &options).map_err(|error| error.to_string());
                    written.map(|()| played.samples += 1)
                }
                // It comes after the departure of its writer.
                None => continue,
            },
            Change::Event { event, .. } => {
                writers.end(event, &options).map(|ended| played.endings += u64::from(ended))
            }
        };
        if let Err(error) = result {
            played.refused += 1;
            if played.refused <= TOLD_MAX {
                progress.say(&format!("a change is not played: {error}"));
            }
        }
    }
    progress.end();
    Ok(())
}

/// Sleeps; how much later than it should it has ended.
fn sleep_until(due: Instant, stop: &Stop) -> Duration {
    loop {
        let now = Instant::now();
        let Some(left) = due.checked_duration_since(now) else { return now.duration_since(due) };
        if left > LONG_SLEEP {
            stop.sleep(left - LONG_SLEEP);
            if stop.is_told() {
                return Duration::ZERO;
            }
        } else if left > SLEEP_ERROR {
            std::thread::sleep(left - SLEEP_ERROR);
        } else {
            std::hint::spin_loop();
        }
    }
}
