//! Writes pings and measures how long their answers take: one after the other, or at points of time fixed
//! before.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Thread;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::background::BackgroundWriting;
use super::reading::{Reading, read_once};
use super::subscribe::drain;
use super::ticker::{Source, Ticker};
use super::{Context, Window, Work, checked_size, enough, lock};
use crate::adapter::{Adapter, Failure, Sample, Session};
use crate::clock::{ms, now_ns};
use crate::counting::Counts;
use crate::event::{InTime, Interval, Report, Totals};
use crate::fault::Faulty;
use crate::payload::{self, Head, Maker};
use crate::recorder::{Recorder, corrected, named};
use crate::schedule::{Schedule, Slot};
use crate::spec::{EndpointSpec, Pacing, ReadMethod, Role};

/// Most pings that can wait for answers at a time; answers to older ones are not looked at.
const OUTSTANDING_MAX: usize = 1 << 16;
/// The longest that a waiting ping does not look whether it was stopped.
const PATIENCE_NS: u64 = 20_000_000;

pub(super) struct Ping {
    context: Context,
    pings: EndpointSpec,
    answers: EndpointSpec,
    rate: u64,
    timeout_ns: u64,
    expected: u32,
    maker: Maker,
    answered: Arc<Answered>,
    reading: Reading,
    writer: Faulty,
    background: Option<BackgroundWriting>,
    // After the reader and the writer, so that it is dropped after them.
    _session: Box<dyn Session>,
}

/// What the writing and the reading thread share.
struct Answered {
    waiting: Mutex<Waiting>,
    /// Pings with all answers, warm-up included.
    complete: AtomicU64,
    sent: AtomicU64,
    sent_told: AtomicU64,
    missed: AtomicU64,
    timeouts: AtomicU64,
    missed_told: AtomicU64,
    /// The writing thread, if it sleeps until its ping is complete.
    sleeper: Mutex<Option<Thread>>,
}

struct Waiting {
    slots: Vec<WaitingPing>,
    recorder: Recorder,
    interval: Counts,
    totals: Counts,
    /// Whether order can be told: with several answers to each ping it cannot.
    ordered: bool,
    highest: Option<u32>,
    heard_ns: u64,
}

#[derive(Clone, Copy, Default)]
struct WaitingPing {
    head: Head,
    expected: u32,
    left: u32,
}

impl Waiting {
    /// Notes an answer; true if it was the last one of its ping.
    fn note(&mut self, now_ns: u64, payload: &[u8]) -> bool {
        self.heard_ns = now_ns;
        let Some(head) = Head::read(payload) else { return false };
        let intact = payload::is_intact(payload);
        let mask = self.slots.len() - 1;
        let Some(slot) = self.slots.get_mut(head.sequence as usize & mask) else { return false };
        let known =
            slot.expected > 0 && slot.head.sequence == head.sequence && slot.head.warmup == head.warmup;
        let mut counts = Counts::default();
        let mut complete = false;
        if !intact {
            counts.corrupted = 1;
        } else if known && slot.left == 0 {
            counts.duplicates = 1;
        } else if known {
            counts.received = 1;
            counts.octets = payload.len() as u64;
            if !head.warmup {
                self.recorder.record(now_ns.saturating_sub(slot.head.due_ns));
                let late = self.ordered && self.highest.is_some_and(|highest| head.sequence < highest);
                counts.reordered = u64::from(late);
                self.highest = self.highest.max(Some(head.sequence));
            }
        }
        if known && slot.left > 0 {
            slot.left -= 1;
            complete = slot.left == 0;
        }
        self.interval += counts;
        if !head.warmup {
            self.totals += counts;
        }
        complete
    }
}

impl Answered {
    fn answer(&self, sample: Sample<'_>) {
        let now_ns = now_ns();
        let complete = lock(&self.waiting).note(now_ns, sample.payload);
        if complete {
            self.complete.fetch_add(1, Ordering::Release);
            if let Some(sleeper) = &*lock(&self.sleeper) {
                sleeper.unpark();
            }
        }
    }

    /// Expects answers to a ping that is about to be written.
    fn expect(&self, head: Head, expected: u32) {
        let mut waiting = lock(&self.waiting);
        let mask = waiting.slots.len() - 1;
        if let Some(slot) = waiting.slots.get_mut(head.sequence as usize & mask) {
            *slot = WaitingPing { head, expected, left: expected };
        }
    }
}

impl Source for Answered {
    fn latency(&self) -> &'static str {
        "round_trip"
    }

    fn end_interval(&self, latencies: &mut Histogram<u64>) -> Interval {
        let mut interval = Interval::default();
        {
            let mut waiting = lock(&self.waiting);
            waiting.recorder.exchange(latencies);
            std::mem::take(&mut waiting.interval).tell(&mut interval);
        }
        let since = |now: &AtomicU64, told: &AtomicU64| {
            let now = now.load(Ordering::Relaxed);
            now.saturating_sub(told.swap(now, Ordering::Relaxed))
        };
        interval.sent = since(&self.sent, &self.sent_told);
        interval.missed_slots = since(&self.missed, &self.missed_told);
        interval
    }
}

impl Ping {
    pub(super) fn new(adapter: &mut dyn Adapter, context: Context) -> Result<Self, Failure> {
        let Role::Ping { writer: pings, reader: answers, size, rate, timeout_ms, answers: expected } =
            context.spec.role.clone()
        else {
            return Err(Failure::Failed("the role is another".to_owned()));
        };
        let mut session = adapter.open(&context.spec.session)?;
        let writer = Faulty::new(session.writer(&pings)?, context.spec.faults, pings.payload_max.max(size));
        let expected = expected.max(1);
        let waiting = Waiting {
            slots: vec![WaitingPing::default(); OUTSTANDING_MAX],
            recorder: Recorder::default(),
            interval: Counts::default(),
            totals: Counts::default(),
            ordered: expected == 1,
            highest: None,
            heard_ns: 0,
        };
        let answered = Arc::new(Answered {
            waiting: Mutex::new(waiting),
            complete: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            sent_told: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            timeouts: AtomicU64::new(0),
            missed_told: AtomicU64::new(0),
            sleeper: Mutex::new(None),
        });
        let told = Arc::clone(&answered);
        let reading = Reading::Idle(session.reader(&answers, Box::new(move |sample| told.answer(sample)))?);
        let background = BackgroundWriting::new(&mut *session, &context)?;
        Ok(Self {
            pings,
            answers,
            rate,
            timeout_ns: ms(timeout_ms.max(1)),
            expected,
            maker: Maker::new(checked_size(size)?, context.spec.seed),
            answered,
            reading,
            writer,
            background,
            context,
            _session: session,
        })
    }

    /// Writes one ping; true if it was taken.
    fn write(&mut self, head: Head) -> Result<bool, Failure> {
        let payload = self.maker.make(&head);
        self.answered.expect(head, self.expected);
        match self.writer.write(0, payload) {
            Ok(()) => {
                // Whoever waits for the answer does not leave the question in a batch.
                self.writer.flush();
                self.answered.sent.fetch_add(1, Ordering::Relaxed);
                Ok(true)
            }
            Err(Failure::Timeout) => {
                self.answered.timeouts.fetch_add(1, Ordering::Relaxed);
                Ok(false)
            }
            Err(failure) => Err(failure),
        }
    }

    /// One ping after the other, until that time; their number.
    fn closed_loop(&mut self, end_ns: u64, warmup: bool, samples_max: u64) -> Result<u64, Failure> {
        let mut sequence = 0_u32;
        loop {
            let due_ns = now_ns();
            let enough = samples_max > 0 && u64::from(sequence) >= samples_max;
            if due_ns >= end_ns || enough || self.context.control.is_stopped() {
                return Ok(u64::from(sequence));
            }
            let before = self.answered.complete.load(Ordering::Acquire);
            if self.write(Head { warmup, sequence, due_ns, ..Head::default() })? {
                sequence = sequence.wrapping_add(1);
                self.wait_for_answers(before, due_ns.saturating_add(self.timeout_ns))?;
            }
        }
    }

    /// Waits until another ping is complete, or the time is over.
    fn wait_for_answers(&mut self, before: u64, until_ns: u64) -> Result<(), Failure> {
        while self.answered.complete.load(Ordering::Acquire) == before {
            let now_ns = now_ns();
            if now_ns >= until_ns || self.context.control.is_stopped() {
                return Ok(());
            }
            let patience = Duration::from_nanos((until_ns - now_ns).min(PATIENCE_NS));
            match self.answers.read {
                ReadMethod::Listener => std::thread::park_timeout(patience),
                method => read_once(self.reading.reader()?, method, patience)?,
            }
        }
        Ok(())
    }

    /// Pings when they are due, whether those before were answered or not, until that time; their number.
    fn open_loop(
        &mut self,
        begin_ns: u64,
        end_ns: u64,
        warmup: bool,
        samples_max: u64,
    ) -> Result<u64, Failure> {
        let mut schedule = Schedule::new(Pacing::Rate { rate: self.rate }, begin_ns);
        let mut sequence = 0_u32;
        while samples_max == 0 || u64::from(sequence) < samples_max {
            let Slot::At { due_ns, late_ns } = schedule.next_slot() else { break };
            let over = due_ns >= end_ns || now_ns() >= end_ns || self.reading.has_failed();
            if over || !self.context.control.wait_until(due_ns) {
                break;
            }
            if now_ns() > late_ns {
                self.answered.missed.fetch_add(1, Ordering::Relaxed);
            }
            if self.write(Head { warmup, sequence, due_ns, ..Head::default() })? {
                sequence = sequence.wrapping_add(1);
            }
        }
        Ok(u64::from(sequence))
    }

    fn part(&mut self, begin_ns: u64, end_ns: u64, warmup: bool, samples_max: u64) -> Result<u64, Failure> {
        if self.rate == 0 {
            self.closed_loop(end_ns, warmup, samples_max)
        } else {
            self.open_loop(begin_ns, end_ns, warmup, samples_max)
        }
    }

    fn work(&mut self, window: Window) -> Result<Measured, Failure> {
        self.context.control.wait_until(window.start_ns);
        if window.measure_ns > window.start_ns {
            self.part(window.start_ns, window.measure_ns, true, 0)?;
        }
        let begin_ns = window.measure_ns.max(now_ns());
        let missed = self.answered.missed.load(Ordering::Relaxed);
        let timeouts = self.answered.timeouts.load(Ordering::Relaxed);
        let sent = self.part(window.measure_ns, window.end_ns, false, self.context.spec.samples_max)?;
        let end_ns = now_ns();
        self.writer.finish()?;
        Ok(Measured {
            begin_ns,
            end_ns,
            sent,
            missed: self.answered.missed.load(Ordering::Relaxed) - missed,
            timeouts: self.answered.timeouts.load(Ordering::Relaxed) - timeouts,
        })
    }

    /// Lets the answers come that are still under way.
    fn drain(&mut self, sent: u64) {
        let expected = sent.saturating_mul(u64::from(self.expected));
        let answered = Arc::clone(&self.answered);
        let here = || {
            let totals = lock(&answered.waiting).totals;
            totals.received + totals.corrupted
        };
        drain(&self.context, &self.reading, || here() >= expected, || lock(&answered.waiting).heard_ns);
    }
}

/// What happened in the measured time.
struct Measured {
    begin_ns: u64,
    end_ns: u64,
    sent: u64,
    missed: u64,
    timeouts: u64,
}

impl Work for Ping {
    fn matched(&mut self) -> Result<(), String> {
        enough("readers", &self.pings.topic, self.writer.matched(), self.expected)?;
        let writers = self.reading.reader().map_or(0, |reader| reader.matched());
        enough("writers", &self.answers.topic, writers, self.expected)?;
        self.background.as_mut().map_or(Ok(()), BackgroundWriting::matched)
    }

    fn run(&mut self, _adapter: &mut dyn Adapter, start_ns: u64) -> Result<Report, Failure> {
        crate::floor::system::sleep_exactly();
        let window = self.context.window(start_ns);
        let ticker = Ticker::start(&self.context, window, Arc::clone(&self.answered) as Arc<dyn Source>);
        let closed = self.rate == 0;
        if closed {
            *lock(&self.answered.sleeper) = Some(std::thread::current());
        } else {
            self.reading.begin(self.answers.read);
        }
        if let Some(background) = &mut self.background {
            background.begin(&self.context.control, window);
        }
        let worked = self.work(window);
        let streamed = self.background.as_mut().map_or_else(|| Ok(InTime::default()), BackgroundWriting::end);
        if let Ok(measured) = &worked {
            if closed {
                self.reading.begin(self.answers.read);
            }
            self.drain(measured.sent);
        }
        let ended = self.reading.end();
        let round_trips = ticker.finish();
        let measured = worked?;
        ended?;
        let background = streamed?;
        let waiting = lock(&self.answered.waiting);
        let expected = measured.sent.saturating_mul(u64::from(self.expected));
        let here = waiting.totals.received + waiting.totals.corrupted;
        let totals = Totals { lost: expected.saturating_sub(here), ..waiting.totals.totals() };
        let mut histograms: Vec<_> = named("round_trip", &round_trips).into_iter().collect();
        if closed {
            histograms.extend(named("round_trip_corrected", &corrected(&round_trips)));
        }
        Ok(Report {
            start_ns: measured.begin_ns,
            length_ns: measured.end_ns.saturating_sub(measured.begin_ns),
            sent: measured.sent,
            write_timeouts: measured.timeouts,
            missed_slots: measured.missed,
            totals,
            histograms,
            latency_mean_ns: waiting.recorder.moments().mean(),
            latency_deviation_ns: waiting.recorder.moments().deviation(),
            injected: self.writer.injected(),
            background,
            ..Report::default()
        })
    }
}
