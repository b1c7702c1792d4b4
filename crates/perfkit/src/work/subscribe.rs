//! Reads and counts.

use std::sync::{Arc, Mutex};

use hdrhistogram::Histogram;

use super::reading::Reading;
use super::ticker::{Source, Ticker};
use super::{Context, Work, enough, lock};
use crate::adapter::{Adapter, Failure, Sample, Session};
use crate::clock::{ms, now_ns};
use crate::counting::{Counting, Expectation};
use crate::event::{Interval, Report};
use crate::recorder::named;
use crate::spec::{EndpointSpec, Role};

/// Time between looks at whether it is over.
const LOOKING_NS: u64 = 10_000_000;
/// The same for the end of the measured time: a hundred workers that look are to take next to nothing of two
/// cores.
const END_LOOKING_NS: u64 = 50_000_000;
/// However long samples go on to come after the end, they are not waited for any longer.
const DRAIN_MAX_NS: u64 = 8_000_000_000;

pub(super) struct Subscribe {
    context: Context,
    endpoint: EndpointSpec,
    writers: u32,
    counting: Arc<Mutex<Counting>>,
    reading: Reading,
    // After the reader, so that it is dropped after it.
    _session: Box<dyn Session>,
}

impl Subscribe {
    pub(super) fn new(adapter: &mut dyn Adapter, context: Context) -> Result<Self, Failure> {
        let Role::Subscribe { reader: endpoint, writers, one_way, checksum } = context.spec.role.clone()
        else {
            return Err(Failure::Failed("the role is another".to_owned()));
        };
        let counting = Counting::new(Expectation {
            writers: u16::try_from(writers.max(1)).unwrap_or(u16::MAX),
            instances: endpoint.instances.max(1),
            one_way,
            checksum,
            exclusive: endpoint.ownership_strength.is_some(),
        })?;
        let counting = Arc::new(Mutex::new(counting));
        let mut session = adapter.open(&context.spec.session)?;
        let told = Arc::clone(&counting);
        let sink = move |sample: Sample<'_>| lock(&told).sample(now_ns, sample);
        let reading = Reading::Idle(session.reader(&endpoint, Box::new(sink))?);
        Ok(Self { context, endpoint, writers, counting, reading, _session: session })
    }
}

impl Source for Mutex<Counting> {
    fn latency(&self) -> &'static str {
        "one_way"
    }

    fn end_interval(&self, latencies: &mut Histogram<u64>) -> Interval {
        let (counts, phase) = lock(self).end_interval(latencies);
        let mut interval = Interval { phase, ..Interval::default() };
        counts.tell(&mut interval);
        interval
    }
}

impl Work for Subscribe {
    fn matched(&mut self) -> Result<(), String> {
        let matched = self.reading.reader().map_or(0, |reader| reader.matched());
        enough("writers", &self.endpoint.topic, matched, self.writers)
    }

    fn run(&mut self, _adapter: &mut dyn Adapter, start_ns: u64) -> Result<Report, Failure> {
        let window = self.context.window(start_ns);
        lock(&self.counting).measures_in(window.measure_ns..window.end_ns);
        self.reading.begin(self.endpoint.read);
        let ticker = Ticker::start(&self.context, window, Arc::clone(&self.counting) as Arc<dyn Source>);
        let counting = Arc::clone(&self.counting);
        let samples_max = self.context.spec.samples_max;
        let enough = || samples_max > 0 && lock(&counting).received() >= samples_max;
        let heard = || lock(&counting).last_heard_ns();
        until_over(&self.context, &self.reading, window.end_ns, enough, heard);
        let ended = self.reading.end();
        let latencies = ticker.finish();
        ended?;
        let counted = lock(&self.counting).finish(now_ns());
        Ok(Report {
            start_ns: if counted.first_ns == 0 { window.measure_ns } else { counted.first_ns },
            length_ns: counted.length_ns,
            totals: counted.totals,
            in_time: Some(counted.in_time),
            streams: counted.streams,
            phases: counted.phases,
            switches: counted.switches,
            stalls: counted.stalls,
            histograms: named("one_way", &latencies).into_iter().collect(),
            latency_mean_ns: counted.moments.mean(),
            latency_deviation_ns: counted.moments.deviation(),
            ..Report::default()
        })
    }
}

/// Waits for the end of a reader: its time is over and that to be stopped, it has enough, it was stopped, or
/// it failed. Then until nothing has come for the time of the drain, or it was stopped again.
pub(super) fn until_over(
    context: &Context,
    reading: &Reading,
    end_ns: u64,
    enough: impl Fn() -> bool,
    last_heard_ns: impl Fn() -> u64,
) {
    let end_ns = end_ns.saturating_add(ms(context.spec.settle_ms));
    while now_ns() < end_ns && !context.control.is_stopped() && !reading.has_failed() && !enough() {
        context.control.sleep_until(now_ns().saturating_add(END_LOOKING_NS).min(end_ns));
    }
    drain(context, reading, || false, last_heard_ns);
}

/// Waits until nothing has come for the time of the drain, all is here, or the worker was stopped once more.
pub(super) fn drain(
    context: &Context,
    reading: &Reading,
    all_here: impl Fn() -> bool,
    last_heard_ns: impl Fn() -> u64,
) {
    let ended_ns = now_ns();
    let stops = context.control.stops().max(1);
    let drain_ns = ms(context.spec.drain_ms);
    while !all_here() {
        let now_ns = now_ns();
        let silent = now_ns.saturating_sub(last_heard_ns().max(ended_ns)) >= drain_ns;
        let patient = now_ns.saturating_sub(ended_ns) < DRAIN_MAX_NS;
        if silent || !patient || reading.has_failed() || context.control.stops() > stops {
            return;
        }
        context.control.sleep_until(now_ns.saturating_add(LOOKING_NS));
    }
}
