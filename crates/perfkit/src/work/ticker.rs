//! Tells of each second what happened in it, on a thread of its own.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::{Context, Window};
use crate::clock::now_ns;
use crate::event::{Event, Interval};
use crate::recorder::{histogram, named};

/// Nanoseconds of an interval.
const LENGTH_NS: u64 = 1_000_000_000;
/// A last interval that is shorter is not told.
const SHORTEST_NS: u64 = 1_000_000;

/// What is told of.
pub(super) trait Source: Send + Sync {
    /// What its latencies are called.
    fn latency(&self) -> &'static str;

    /// Counts since the last time, with latencies in exchange for an empty histogram.
    fn end_interval(&self, latencies: &mut Histogram<u64>) -> Interval;
}

/// The thread; gives the histogram of the whole in the end.
pub(super) struct Ticker {
    running: Sender<()>,
    thread: JoinHandle<Histogram<u64>>,
}

impl Ticker {
    /// Tells of `source` from the start of the window on.
    pub(super) fn start(context: &Context, window: Window, source: Arc<dyn Source>) -> Self {
        let (running, ended) = channel();
        let context = context.clone();
        let thread = std::thread::spawn(move || tell(&context, window, &*source, &ended));
        Self { running, thread }
    }

    /// Tells of what is left, and gives all latencies.
    pub(super) fn finish(self) -> Histogram<u64> {
        drop(self.running);
        self.thread.join().unwrap_or_else(|_| histogram())
    }
}

fn tell(context: &Context, window: Window, source: &dyn Source, ended: &Receiver<()>) -> Histogram<u64> {
    let mut whole = histogram();
    let mut latencies = histogram();
    let mut begin_ns = window.start_ns;
    loop {
        // The warm-up ends with an interval of its own.
        let mut next_ns = begin_ns.saturating_add(LENGTH_NS);
        if begin_ns < window.measure_ns {
            next_ns = next_ns.min(window.measure_ns);
        }
        let left = Duration::from_nanos(next_ns.saturating_sub(now_ns()));
        let ending = ended.recv_timeout(left) == Err(RecvTimeoutError::Disconnected);
        let now_ns = now_ns();
        let mut interval = source.end_interval(&mut latencies);
        interval.start_ns = begin_ns;
        interval.length_ns = now_ns.saturating_sub(begin_ns);
        interval.warmup = begin_ns < window.measure_ns;
        if !latencies.is_empty() {
            interval.latency_p50_ns = Some(latencies.value_at_quantile(0.5));
            interval.latency_p99_ns = Some(latencies.value_at_quantile(0.99));
            interval.latency_max_ns = Some(latencies.max());
            interval.histogram = named(source.latency(), &latencies);
            // Both have the same bounds, so this cannot fail.
            let _ = whole.add(&latencies);
            latencies.reset();
        }
        if interval.length_ns >= SHORTEST_NS {
            context.output.tell(&Event::Interval(interval));
        }
        if ending {
            return whole;
        }
        begin_ns = now_ns;
    }
}
