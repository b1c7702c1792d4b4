//! Writes, as fast as it can or when samples are due.

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hdrhistogram::Histogram;

use super::ticker::{Source, Ticker};
use super::{Context, Window, Work, checked_size, enough, lock};
use crate::adapter::{Adapter, Failure, Session};
use crate::clock::{ms, now_ns};
use crate::counting::PHASES_MAX;
use crate::event::{Interval, Phase, Report};
use crate::fault::Faulty;
use crate::payload::{Head, Maker, Random};
use crate::recorder::{Recorder, named};
use crate::schedule::{Schedule, Slot};
use crate::spec::{EndpointSpec, InstanceOrder, Pacing, Role};

/// Without pacing, the clock is read once more for one of so many samples that say when they were due, to
/// know how long the write took.
const TIMED_EVERY: u64 = 16;
/// Where a sample takes less than that, one of so many says when it was due: with reading the clock for each,
/// the fastest products would spend a twentieth of their time.
const BRISK_NS: u64 = 1_000;
const STAMPED_EVERY: u32 = 8;

pub(super) struct Publish {
    context: Context,
    endpoint: EndpointSpec,
    pacing: Pacing,
    order: InstanceOrder,
    number: u16,
    instances: u32,
    readers: u32,
    maker: Maker,
    random: Random,
    /// The next sequence number of each instance, of the warm-up and of the measured time.
    sequences: [Vec<u32>; 2],
    next_instance: u32,
    telling: Arc<Telling>,
    phases: Vec<Phase>,
    writer: Faulty,
    // After the writer, so that it is dropped after it.
    _session: Box<dyn Session>,
}

/// What the ticker looks at.
#[derive(Default)]
struct Telling {
    sent: AtomicU64,
    missed: AtomicU64,
    timeouts: AtomicU64,
    phase: AtomicU16,
    calls: Mutex<Recorder>,
    told: Mutex<(u64, u64)>,
}

impl Source for Telling {
    fn latency(&self) -> &'static str {
        "write_call"
    }

    fn end_interval(&self, latencies: &mut Histogram<u64>) -> Interval {
        lock(&self.calls).exchange(latencies);
        let (sent, missed) = (self.sent.load(Ordering::Relaxed), self.missed.load(Ordering::Relaxed));
        let (sent_before, missed_before) = std::mem::replace(&mut *lock(&self.told), (sent, missed));
        Interval {
            sent: sent.saturating_sub(sent_before),
            missed_slots: missed.saturating_sub(missed_before),
            phase: self.phase.load(Ordering::Relaxed),
            ..Interval::default()
        }
    }
}

/// Counts at the begin of a part of the run.
#[derive(Clone, Copy)]
struct Mark {
    at_ns: u64,
    sent: u64,
    missed: u64,
    timeouts: u64,
}

impl Publish {
    pub(super) fn new(adapter: &mut dyn Adapter, context: Context) -> Result<Self, Failure> {
        let Role::Publish { writer: endpoint, number, size, instances, order, pacing, readers } =
            context.spec.role.clone()
        else {
            return Err(Failure::Failed("the role is another".to_owned()));
        };
        let instances = instances.max(1);
        let seed = context.spec.seed;
        let mut session = adapter.open(&context.spec.session)?;
        let writer =
            Faulty::new(session.writer(&endpoint)?, context.spec.faults, endpoint.payload_max.max(size));
        // Touched now, so that no page comes into being while samples are written.
        let sequences = || {
            let mut sequences = vec![1; instances as usize];
            sequences.fill(0);
            sequences
        };
        Ok(Self {
            endpoint,
            pacing,
            order,
            number,
            instances,
            readers,
            maker: Maker::new(checked_size(size)?, seed),
            random: Random::new(seed),
            sequences: [sequences(), sequences()],
            next_instance: 0,
            telling: Arc::default(),
            phases: Vec::with_capacity(PHASES_MAX),
            writer,
            context,
            _session: session,
        })
    }

    fn mark(&self, at_ns: u64) -> Mark {
        Mark {
            at_ns,
            sent: self.telling.sent.load(Ordering::Relaxed),
            missed: self.telling.missed.load(Ordering::Relaxed),
            timeouts: self.telling.timeouts.load(Ordering::Relaxed),
        }
    }

    /// Writes until the end of this part of the run, or until stopped.
    fn write_until(
        &mut self,
        schedule: &mut Schedule,
        end_ns: u64,
        warmup: bool,
        samples_max: u64,
    ) -> Result<(), Failure> {
        let begin = self.mark(now_ns());
        let mut step = begin;
        let mut calls = 0_u64;
        // Those written since the clock was read, and when that was.
        let (mut written, mut read_ns) = (0, begin.at_ns);
        let is_unpaced = self.pacing == Pacing::Max;
        loop {
            let sent = self.telling.sent.load(Ordering::Relaxed);
            let now_ns = now_ns();
            if now_ns >= end_ns
                || self.context.control.is_stopped()
                || samples_max > 0 && sent - begin.sent >= samples_max
            {
                break;
            }
            if schedule.step_end_ns().is_some_and(|step_end_ns| now_ns >= step_end_ns) {
                self.note_phase(schedule, step, now_ns);
                let goes_on = schedule.end_step(sent - step.sent, now_ns);
                if !goes_on || usize::from(schedule.phase()) >= PHASES_MAX {
                    return Ok(());
                }
                step = self.mark(now_ns);
                self.telling.phase.store(schedule.phase(), Ordering::Relaxed);
            }
            let Some(due_ns) = self.wait_for_slot(schedule, now_ns, end_ns) else { break };
            calls += 1;
            let timed = !warmup && (!is_unpaced || calls.is_multiple_of(TIMED_EVERY));
            self.write(due_ns, warmup, schedule.phase(), timed)?;
            let unstamped = if is_unpaced && samples_max == 0 {
                follow(written, now_ns.saturating_sub(read_ns))
            } else {
                0
            };
            for _ in 0..unstamped {
                self.write(0, warmup, schedule.phase(), false)?;
            }
            (written, read_ns) = (1 + unstamped, now_ns);
        }
        if !warmup && schedule.step_end_ns().is_some() {
            self.note_phase(schedule, step, now_ns());
        }
        Ok(())
    }

    /// When the next sample is due, once that time has come; `None` if it does not before the end.
    fn wait_for_slot(&mut self, schedule: &mut Schedule, now_ns: u64, end_ns: u64) -> Option<u64> {
        let Slot::At { due_ns, late_ns } = schedule.next_slot() else { return Some(now_ns) };
        if due_ns > now_ns {
            // There is time: nothing stays in a batch until the next one.
            self.writer.flush();
            if due_ns >= end_ns {
                self.context.control.sleep_until(end_ns);
                return None;
            }
            if !self.context.control.wait_until(due_ns) {
                return None;
            }
        } else if now_ns > late_ns {
            self.telling.missed.fetch_add(1, Ordering::Relaxed);
        }
        Some(due_ns)
    }

    fn write(&mut self, due_ns: u64, warmup: bool, phase: u16, timed: bool) -> Result<(), Failure> {
        let instance = match self.order {
            InstanceOrder::RoundRobin => self.next_instance,
            InstanceOrder::Random => self.random.below(self.instances),
        };
        let [warming, measured] = &mut self.sequences;
        let sequences = if warmup { warming } else { measured };
        let Some(sequence) = sequences.get_mut(instance as usize) else { return Ok(()) };
        let head = Head { warmup, sequence: *sequence, writer: self.number, phase, due_ns };
        let payload = self.maker.make(&head);
        let begin_ns = if timed { now_ns() } else { 0 };
        match self.writer.write(instance, payload) {
            Ok(()) => {
                *sequence = sequence.wrapping_add(1);
                // Nobody else counts: that no other could come between would cost as much as a part of the
                // write.
                let sent = self.telling.sent.load(Ordering::Relaxed);
                self.telling.sent.store(sent + 1, Ordering::Relaxed);
                self.next_instance = if instance + 1 < self.instances { instance + 1 } else { 0 };
            }
            // The sample was not taken: the next attempt is the same one.
            Err(Failure::Timeout) => {
                self.telling.timeouts.fetch_add(1, Ordering::Relaxed);
            }
            Err(failure) => return Err(failure),
        }
        if timed {
            lock(&self.telling.calls).record(now_ns().saturating_sub(begin_ns));
        }
        Ok(())
    }

    fn note_phase(&mut self, schedule: &Schedule, begin: Mark, now_ns: u64) {
        self.phases.push(Phase {
            phase: schedule.phase(),
            target_rate: schedule.rate(),
            length_ns: now_ns.saturating_sub(begin.at_ns),
            sent: self.telling.sent.load(Ordering::Relaxed) - begin.sent,
            ..Phase::default()
        });
    }

    fn work(&mut self, window: Window) -> Result<(Mark, u64), Failure> {
        self.context.control.wait_until(window.start_ns);
        if window.measure_ns > window.start_ns {
            let pacing = match self.pacing {
                Pacing::Ramp { start, .. } => Pacing::Rate { rate: start },
                other => other,
            };
            self.write_until(&mut Schedule::new(pacing, window.start_ns), window.measure_ns, true, 0)?;
        }
        let mark = self.mark(window.measure_ns.max(now_ns()));
        self.next_instance = 0;
        let samples_max = self.context.spec.samples_max;
        self.write_until(
            &mut Schedule::new(self.pacing, window.measure_ns),
            window.end_ns,
            false,
            samples_max,
        )?;
        self.writer.finish()?;
        Ok((mark, now_ns()))
    }
}

/// How many samples follow one that says when it was due, after so many took so long.
const fn follow(written: u32, took_ns: u64) -> u32 {
    if took_ns <= BRISK_NS * written as u64 { STAMPED_EVERY - 1 } else { 0 }
}

impl Work for Publish {
    fn matched(&mut self) -> Result<(), String> {
        enough("readers", &self.endpoint.topic, self.writer.matched(), self.readers)
    }

    fn run(&mut self, _adapter: &mut dyn Adapter, start_ns: u64) -> Result<Report, Failure> {
        crate::floor::system::sleep_exactly();
        let window = self.context.window(start_ns);
        let ticker = Ticker::start(&self.context, window, Arc::clone(&self.telling) as Arc<dyn Source>);
        let worked = self.work(window);
        let calls = ticker.finish();
        let (mark, end_ns) = worked?;
        // Readers that count what was lost wait for their drain in this time.
        let spec = &self.context.spec;
        self.writer.wait_acknowledged(Duration::from_nanos(ms(spec.drain_ms.max(spec.settle_ms))));
        let now = self.mark(end_ns);
        Ok(Report {
            start_ns: mark.at_ns,
            length_ns: end_ns.saturating_sub(mark.at_ns),
            sent: now.sent - mark.sent,
            write_timeouts: now.timeouts - mark.timeouts,
            missed_slots: now.missed - mark.missed,
            phases: self.phases.clone(),
            histograms: named("write_call", &calls).into_iter().collect(),
            injected: self.writer.injected(),
            ..Report::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_samples_that_take_less_than_a_microsecond_follow_others() {
        assert_eq!(follow(0, 1), 0, "nothing is known of the first");
        assert_eq!((follow(1, BRISK_NS), follow(1, BRISK_NS + 1)), (7, 0));
        assert_eq!((follow(8, 8 * BRISK_NS), follow(8, 8 * BRISK_NS + 1)), (7, 0));
    }
}
