//! Answers pings.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hdrhistogram::Histogram;

use super::background::BackgroundReading;
use super::reading::Reading;
use super::subscribe::until_over;
use super::ticker::{Source, Ticker};
use super::{Context, Work, enough, lock};
use crate::adapter::{Adapter, Failure, Sample, Session};
use crate::clock::{now_ns, pause};
use crate::counting::{Counting, Expectation};
use crate::event::{InTime, Interval, Report};
use crate::fault::Faulty;
use crate::payload::Head;
use crate::spec::{EndpointSpec, Role};

pub(super) struct Pong {
    context: Context,
    pings: EndpointSpec,
    answers: EndpointSpec,
    answering: Arc<Answering>,
    reading: Reading,
    background: Option<BackgroundReading>,
    // After the reader and the writer, so that it is dropped after them.
    _session: Box<dyn Session>,
}

/// What the reading thread does.
struct Answering {
    writer: Mutex<Faulty>,
    counting: Mutex<Counting>,
    full: bool,
    delay: Duration,
    /// Answers of the measured time, and those of this interval.
    sent: AtomicU64,
    sent_interval: AtomicU64,
    write_timeouts: AtomicU64,
    failure: Mutex<Option<Failure>>,
}

impl Answering {
    fn answer(&self, sample: Sample<'_>) {
        let now_ns = now_ns();
        if !self.delay.is_zero() {
            pause(self.delay);
        }
        let answer =
            if self.full { sample.payload } else { sample.payload.get(..4).unwrap_or(sample.payload) };
        let mut writer = lock(&self.writer);
        let written = writer.write(sample.instance, answer);
        writer.flush();
        drop(writer);
        match written {
            Ok(()) => {
                self.sent_interval.fetch_add(1, Ordering::Relaxed);
                if Head::read(answer).is_some_and(|head| !head.warmup) {
                    self.sent.fetch_add(1, Ordering::Relaxed);
                }
            }
            Err(Failure::Timeout) => {
                self.write_timeouts.fetch_add(1, Ordering::Relaxed);
            }
            Err(failure) => {
                lock(&self.failure).get_or_insert(failure);
            }
        }
        // Counted after the answer has left.
        lock(&self.counting).sample(|| now_ns, sample);
    }
}

impl Source for Answering {
    fn latency(&self) -> &'static str {
        "one_way"
    }

    fn end_interval(&self, latencies: &mut Histogram<u64>) -> Interval {
        let interval = self.counting.end_interval(latencies);
        Interval { sent: self.sent_interval.swap(0, Ordering::Relaxed), ..interval }
    }
}

impl Pong {
    pub(super) fn new(adapter: &mut dyn Adapter, context: Context) -> Result<Self, Failure> {
        let Role::Pong { reader: pings, writer: answers, full } = context.spec.role.clone() else {
            return Err(Failure::Failed("the role is another".to_owned()));
        };
        let counting = Counting::new(Expectation {
            writers: 1,
            instances: pings.instances.max(1),
            one_way: false,
            checksum: false,
            exclusive: false,
        })?;
        let mut session = adapter.open(&context.spec.session)?;
        let writer = Faulty::new(session.writer(&answers)?, context.spec.faults, answers.payload_max);
        let answering = Arc::new(Answering {
            writer: Mutex::new(writer),
            counting: Mutex::new(counting),
            full,
            delay: Duration::from_micros(context.spec.faults.delay_us),
            sent: AtomicU64::new(0),
            sent_interval: AtomicU64::new(0),
            write_timeouts: AtomicU64::new(0),
            failure: Mutex::new(None),
        });
        let told = Arc::clone(&answering);
        let reading = Reading::Idle(session.reader(&pings, Box::new(move |sample| told.answer(sample)))?);
        let background = BackgroundReading::new(&mut *session, &context)?;
        Ok(Self { context, pings, answers, answering, reading, background, _session: session })
    }
}

impl Work for Pong {
    fn matched(&mut self) -> Result<(), String> {
        let readers = lock(&self.answering.writer).matched();
        enough("readers", &self.answers.topic, readers, 1)?;
        let writers = self.reading.reader().map_or(0, |reader| reader.matched());
        enough("writers", &self.pings.topic, writers, 1)?;
        self.background.as_mut().map_or(Ok(()), BackgroundReading::matched)
    }

    fn run(&mut self, _adapter: &mut dyn Adapter, start_ns: u64) -> Result<Report, Failure> {
        let window = self.context.window(start_ns);
        let ticker = Ticker::start(&self.context, window, Arc::clone(&self.answering) as Arc<dyn Source>);
        self.reading.begin(self.pings.read);
        if let Some(background) = &mut self.background {
            background.begin(window);
        }
        let answering = Arc::clone(&self.answering);
        let failed = || lock(&answering.failure).is_some();
        let heard = || lock(&answering.counting).last_heard_ns();
        until_over(&self.context, &self.reading, window.end_ns, failed, heard);
        let ended = self.reading.end();
        let streamed = self.background.as_mut().map_or_else(|| Ok(InTime::default()), BackgroundReading::end);
        ticker.finish();
        ended?;
        let background = streamed?;
        if let Some(failure) = lock(&self.answering.failure).take() {
            return Err(failure);
        }
        lock(&self.answering.writer).finish()?;
        let counted = lock(&self.answering.counting).finish(now_ns());
        Ok(Report {
            start_ns: if counted.first_ns == 0 { window.measure_ns } else { counted.first_ns },
            length_ns: counted.length_ns,
            sent: self.answering.sent.load(Ordering::Relaxed),
            write_timeouts: self.answering.write_timeouts.load(Ordering::Relaxed),
            totals: counted.totals,
            streams: counted.streams,
            injected: lock(&self.answering.writer).injected(),
            background,
            ..Report::default()
        })
    }
}
