//! What streams beside pings and answers: written by a thread of the worker that pings, read by the one that
//! answers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Control;
use super::reading::Reading;
use super::{Context, Window, checked_size, enough, lock};
use crate::adapter::{Failure, Sample, Session, Writer};
use crate::clock::now_ns;
use crate::event::InTime;
use crate::payload::{Head, Maker};
use crate::schedule::{Schedule, Slot};
use crate::spec::{Background, Pacing};

/// The longest that the writing thread does not look whether it should end.
const PATIENCE: Duration = Duration::from_millis(50);

/// Samples and octets of the measured time.
#[derive(Default)]
struct Sum {
    samples: AtomicU64,
    octets: AtomicU64,
}

impl Sum {
    fn add(&self, octets: usize) {
        self.samples.fetch_add(1, Ordering::Relaxed);
        self.octets.fetch_add(octets as u64, Ordering::Relaxed);
    }

    fn told(&self) -> InTime {
        InTime { received: self.samples.load(Ordering::Relaxed), octets: self.octets.load(Ordering::Relaxed) }
    }
}

/// The worker that pings writes.
pub(super) struct BackgroundWriting {
    background: Background,
    /// Nobody's while the thread has it.
    writer: Option<(Box<dyn Writer>, Maker)>,
    sum: Arc<Sum>,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Failure>>>,
}

impl BackgroundWriting {
    /// The writer that the specification of a worker asks for, if it does.
    pub(super) fn new(session: &mut dyn Session, context: &Context) -> Result<Option<Self>, Failure> {
        let Some(background) = context.spec.background.clone() else { return Ok(None) };
        let maker = Maker::new(checked_size(background.size)?, context.spec.seed);
        let writer = Some((session.writer(&background.endpoint)?, maker));
        let (sum, ending) = (Arc::default(), Arc::default());
        Ok(Some(Self { background, writer, sum, ending, thread: None }))
    }

    pub(super) fn matched(&mut self) -> Result<(), String> {
        let readers = self.writer.as_mut().map_or(0, |(writer, _)| writer.matched());
        enough("readers", &self.background.endpoint.topic, readers, 1)
    }

    /// Writes in a thread of its own until [`Self::end`], from the start of the window on.
    pub(super) fn begin(&mut self, control: &Arc<Control>, window: Window) {
        let Some((writer, maker)) = self.writer.take() else { return };
        let writing = Stream {
            writer,
            maker,
            pacing: self.background.pacing,
            window,
            control: Arc::clone(control),
            ending: Arc::clone(&self.ending),
            sum: Arc::clone(&self.sum),
        };
        self.thread = Some(std::thread::spawn(move || writing.write()));
    }

    /// Ends writing; what was written in the measured time.
    pub(super) fn end(&mut self) -> Result<InTime, Failure> {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().map_err(|_| Failure::Failed("the thread beside it panicked".to_owned()))??;
        }
        Ok(self.sum.told())
    }
}

struct Stream {
    writer: Box<dyn Writer>,
    maker: Maker,
    pacing: Pacing,
    window: Window,
    control: Arc<Control>,
    ending: Arc<AtomicBool>,
    sum: Arc<Sum>,
}

impl Stream {
    fn write(mut self) -> Result<(), Failure> {
        let mut schedule = Schedule::new(self.pacing, self.window.start_ns);
        let mut sequence = 0;
        self.control.wait_until(self.window.start_ns);
        while !self.is_over() {
            let due_ns = match schedule.next_slot() {
                Slot::Now => now_ns(),
                Slot::At { due_ns, .. } => due_ns,
            };
            if due_ns >= self.window.end_ns || !self.control.wait_until(due_ns) {
                break;
            }
            let measured = now_ns() >= self.window.measure_ns;
            let head = Head { sequence, due_ns, ..Head::default() };
            let payload = self.maker.make(&head);
            match self.writer.write(0, payload) {
                Ok(()) => {
                    sequence = sequence.wrapping_add(1);
                    if measured {
                        self.sum.add(payload.len());
                    }
                }
                Err(Failure::Timeout) => {}
                Err(failure) => return Err(failure),
            }
            self.writer.flush();
            while self.pacing == Pacing::Max && !self.is_over() && !self.writer.wait_acknowledged(PATIENCE) {}
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        now_ns() >= self.window.end_ns || self.control.is_stopped() || self.ending.load(Ordering::Relaxed)
    }
}

/// The worker that answers reads.
pub(super) struct BackgroundReading {
    background: Background,
    reading: Reading,
    measured: Arc<Measured>,
}

/// The measured time, known from the start on, and what came in it.
#[derive(Default)]
struct Measured {
    window: Mutex<Option<Window>>,
    sum: Sum,
}

impl Measured {
    fn sample(&self, sample: Sample<'_>) {
        let now_ns = now_ns();
        let inside = |it: Window| (it.measure_ns..it.end_ns).contains(&now_ns);
        if lock(&self.window).is_some_and(inside) {
            self.sum.add(sample.payload.len());
        }
    }
}

impl BackgroundReading {
    /// The reader that the specification of a worker asks for, if it does.
    pub(super) fn new(session: &mut dyn Session, context: &Context) -> Result<Option<Self>, Failure> {
        let Some(background) = context.spec.background.clone() else { return Ok(None) };
        let measured = Arc::new(Measured::default());
        let told = Arc::clone(&measured);
        let sink = Box::new(move |sample: Sample<'_>| told.sample(sample));
        let reading = Reading::Idle(session.reader(&background.endpoint, sink)?);
        Ok(Some(Self { background, reading, measured }))
    }

    pub(super) fn matched(&mut self) -> Result<(), String> {
        let writers = self.reading.reader().map_or(0, |reader| reader.matched());
        enough("writers", &self.background.endpoint.topic, writers, 1)
    }

    /// Reads until [`Self::end`].
    pub(super) fn begin(&mut self, window: Window) {
        *lock(&self.measured.window) = Some(window);
        self.reading.begin(self.background.endpoint.read);
    }

    /// Ends reading; what was received in the measured time.
    pub(super) fn end(&mut self) -> Result<InTime, Failure> {
        self.reading.end()?;
        Ok(self.measured.sum.told())
    }
}
