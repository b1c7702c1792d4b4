//! What a reader does with each sample: count it, and note its latency.

use std::ops::{AddAssign, Range};

use hdrhistogram::Histogram;

use crate::adapter::{Failure, Sample};
use crate::event::{InTime, Interval, Phase, Stall, Stream, Switch, Totals};
use crate::payload::{self, Head};
use crate::recorder::{Moments, Recorder, histogram};
use crate::tracker::{Seen, Tracker};

/// Most streams whose counts are told one by one.
const STREAMS_TOLD_MAX: usize = 64;
/// Most steps of a ramp; later ones count as the last.
pub(crate) const PHASES_MAX: usize = 1024;
/// Most changes of owner that are told.
const SWITCHES_MAX: usize = 10_000;
/// A sample that comes so long after it was due is late: a reader that gets one is not up to date.
const LATE_NS: u64 = 10_000_000;
/// Most stalls that are told.
const STALLS_MAX: usize = 100;
/// Shorter ones are not.
const STALL_MIN_NS: u64 = 50_000_000;
/// A corrupted sample is believed to be one whose sequence number is this near to the expected one.
const PLAUSIBLE: i32 = 64;

/// What is expected, and what is to be measured.
#[derive(Clone, Copy, Debug)]
pub struct Expectation {
    /// Numbers of writers are below this.
    pub writers: u16,
    /// Numbers of instances are below this.
    pub instances: u32,
    /// Note the time since a sample was due.
    pub one_way: bool,
    /// Look at checksums.
    pub checksum: bool,
    /// Each instance has one owner at a time: samples of the others are no loss.
    pub exclusive: bool,
}

/// All counts of a reader. Takes no memory once it is made.
pub struct Counting {
    expectation: Expectation,
    tracker: Tracker,
    latency: Recorder,
    plain: Plain,
    interval: Counts,
    totals: Counts,
    /// By writer; also by instance where these are few.
    streams: Vec<Counts>,
    by_instance: bool,
    phases: Vec<PhaseCounts>,
    phase: u16,
    phase_latency: Histogram<u64>,
    owners: Vec<Option<u16>>,
    /// When each writer was last heard, if there are owners.
    heard_ns: Vec<u64>,
    switches: Vec<Switch>,
    first_ns: u64,
    last_ns: u64,
    /// The measured time: what comes after it counts, but for no rate.
    measured_ns: Option<Range<u64>>,
    in_time: InTime,
    /// The last sample of any kind, warm-up included.
    any_ns: u64,
    /// When the last sample came that was not late, and how many were missing then; 0 before any came.
    timely: (u64, i64),
    stalls: Vec<Stall>,
}

/// Good samples of the phase under way, while nothing else comes: they are added to the counts together,
/// since adding to each of these takes as long as the fastest product does for a sample.
#[derive(Clone, Copy, Debug, Default)]
struct Plain {
    received: u64,
    octets: u64,
    last_ns: u64,
    /// What comes until then may be counted here; 0: nothing, before the next one that is counted the other
    /// way.
    until_ns: u64,
}

/// What the payload of a sample says.
enum Judged {
    /// It came in its turn.
    Good,
    Else(Counts),
}

/// [`Totals`] while they grow: a late sample takes a loss back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) received: u64,
    pub(crate) octets: u64,
    pub(crate) lost: i64,
    pub(crate) duplicates: u64,
    pub(crate) reordered: u64,
    pub(crate) corrupted: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.received += other.received;
        self.octets += other.octets;
        self.lost += other.lost;
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.corrupted += other.corrupted;
    }
}

impl Counts {
    pub(crate) fn totals(&self) -> Totals {
        Totals {
            received: self.received,
            octets: self.octets,
            lost: u64::try_from(self.lost).unwrap_or(0),
            duplicates: self.duplicates,
            reordered: self.reordered,
            corrupted: self.corrupted,
        }
    }

    /// Adds these to what is told of an interval.
    pub(crate) fn tell(&self, interval: &mut Interval) {
        interval.received = self.received;
        interval.octets = self.octets;
        interval.lost = self.lost;
        interval.duplicates = self.duplicates;
        interval.reordered = self.reordered;
        interval.corrupted = self.corrupted;
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct PhaseCounts {
    counts: Counts,
    first_ns: u64,
    last_ns: u64,
    latency_p50_ns: Option<u64>,
    latency_p99_ns: Option<u64>,
}

/// What a reader counted in the end.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// All.
    pub totals: Totals,
    /// By writer, and by instance where these are few.
    pub streams: Vec<Stream>,
    /// By step of a ramp.
    pub phases: Vec<Phase>,
    /// Changes of owner.
    pub switches: Vec<Switch>,
    /// Times of at least 50 ms in which the reader was behind, if latency is measured.
    pub stalls: Vec<Stall>,
    /// Mean and deviation of the latency.
    pub moments: Moments,
    /// When the first counted sample came, 0 if none did.
    pub first_ns: u64,
    /// The measured time; from the first to the last counted sample if that was not to its end.
    pub length_ns: u64,
    /// What came in time.
    pub in_time: InTime,
}

impl Counting {
    /// Ready for what is expected.
    ///
    /// # Errors
    /// [`Failure::Unsupported`] if there are too many writers and instances to count.
    pub fn new(expectation: Expectation) -> Result<Self, Failure> {
        let Expectation { writers, instances, exclusive, .. } = expectation;
        let tracker = Tracker::new(writers, instances).ok_or_else(|| {
            Failure::Unsupported(format!(
                "{writers} writers with {instances} instances each are more than can be counted: take fewer instances"
            ))
        })?;
        let by_instance = tracker.streams() <= STREAMS_TOLD_MAX;
        let told = if by_instance { tracker.streams() } else { usize::from(writers) };
        Ok(Self {
            expectation,
            tracker,
            latency: Recorder::default(),
            plain: Plain::default(),
            interval: Counts::default(),
            totals: Counts::default(),
            streams: vec![Counts::default(); told],
            by_instance,
            phases: vec![PhaseCounts::default(); PHASES_MAX],
            phase: 0,
            phase_latency: histogram(),
            owners: vec![None; if exclusive { instances as usize } else { 0 }],
            heard_ns: vec![0; if exclusive { usize::from(writers) } else { 0 }],
            switches: Vec::with_capacity(if exclusive { SWITCHES_MAX } else { 0 }),
            first_ns: 0,
            last_ns: 0,
            measured_ns: None,
            in_time: InTime::default(),
            any_ns: 0,
            timely: (0, 0),
            stalls: Vec::with_capacity(STALLS_MAX),
        })
    }

    /// Says what the measured time is.
    pub fn measures_in(&mut self, measured_ns: Range<u64>) {
        self.settle();
        self.measured_ns = Some(measured_ns);
    }

    /// Notes a sample that came now. One that does not say when it was due follows another closely, or so its
    /// writer wrote it: it counts as if it came with that, and the clock is not read.
    #[inline]
    pub fn sample(&mut self, clock_ns: impl FnOnce() -> u64, sample: Sample<'_>) {
        let octets = sample.payload.len() as u64;
        let head = Head::read(sample.payload).unwrap_or_default();
        let says_when = sample.payload.len() >= payload::SIZE_WITH_TIME;
        let is_stamped = says_when && head.due_ns > 0;
        let is_followed = says_when && !is_stamped && self.any_ns > 0 && !self.expectation.exclusive;
        let now_ns = if is_followed { self.any_ns } else { clock_ns() };
        self.any_ns = now_ns;
        if head.warmup {
            self.interval += Counts { received: 1, octets, ..Counts::default() };
            return;
        }
        let received = match self.judge(now_ns, &head, sample) {
            Judged::Good if head.phase == self.phase && now_ns <= self.plain.until_ns => {
                self.plain.received += 1;
                self.plain.octets += octets;
                self.plain.last_ns = now_ns;
                if let Some(stream) = self.told(&head, sample.instance) {
                    stream.received += 1;
                    stream.octets += octets;
                }
                true
            }
            Judged::Good => {
                let good = Counts { received: 1, octets, ..Counts::default() };
                self.count(now_ns, &head, sample.instance, good);
                true
            }
            Judged::Else(counts) => {
                self.count(now_ns, &head, sample.instance, counts);
                counts.received > 0
            }
        };
        if self.expectation.one_way && received && is_stamped {
            let latency_ns = now_ns.saturating_sub(head.due_ns);
            self.latency.record(latency_ns);
            self.phase_latency.saturating_record(latency_ns.max(1));
            if latency_ns <= LATE_NS {
                self.note_timely(now_ns);
            }
        }
    }

    /// Where the counts of the sample's writer are told, or of its instance.
    fn told(&mut self, head: &Head, instance: u32) -> Option<&mut Counts> {
        let stream = self.tracker.stream(head.writer, instance)?;
        let told = if self.by_instance { stream } else { usize::from(head.writer) };
        self.streams.get_mut(told)
    }

    /// Counts a sample, whatever it is.
    #[cold]
    fn count(&mut self, now_ns: u64, head: &Head, instance: u32, counts: Counts) {
        self.settle();
        if self.first_ns == 0 {
            self.first_ns = now_ns;
        }
        let measured_end_ns = self.measured_ns.as_ref().map_or(u64::MAX, |measured| measured.end);
        if now_ns <= measured_end_ns {
            self.last_ns = now_ns;
            self.in_time.received += counts.received;
            self.in_time.octets += counts.octets;
        }
        self.interval += counts;
        self.totals += counts;
        if let Some(stream) = self.told(head, instance) {
            *stream += counts;
        }
        self.note_phase(now_ns, head.phase, counts);
        self.plain.until_ns = measured_end_ns;
    }

    /// Adds the good samples that wait to all counts.
    fn settle(&mut self) {
        let Plain { received, octets, last_ns, .. } = std::mem::take(&mut self.plain);
        if received == 0 {
            return;
        }
        let counts = Counts { received, octets, ..Counts::default() };
        self.last_ns = last_ns;
        self.in_time.received += received;
        self.in_time.octets += octets;
        self.interval += counts;
        self.totals += counts;
        self.note_phase(last_ns, self.phase, counts);
    }

    /// A sample came in time. After a stall the reader is up to date again once nothing is missing from it.
    fn note_timely(&mut self, now_ns: u64) {
        let (begin_ns, missing) = self.timely;
        let stalled = begin_ns > 0 && now_ns.saturating_sub(begin_ns) >= STALL_MIN_NS;
        if stalled && self.totals.lost > missing {
            return;
        }
        self.timely = (now_ns, self.totals.lost);
        if stalled && self.stalls.len() < STALLS_MAX {
            self.stalls.push(Stall { begin_ns, end_ns: Some(now_ns) });
        }
    }

    /// What a sample adds to the counts.
    #[inline]
    fn judge(&mut self, now_ns: u64, head: &Head, sample: Sample<'_>) -> Judged {
        let payload = sample.payload;
        let corrupted = Counts { corrupted: 1, ..Counts::default() };
        let good = Counts { received: 1, octets: payload.len() as u64, ..Counts::default() };
        if payload.len() < 4 {
            return Judged::Else(corrupted);
        }
        let intact = !self.expectation.checksum || payload::is_intact(payload);
        if !intact && !self.is_plausible(head, sample.instance) {
            return Judged::Else(corrupted);
        }
        // Without the number of its writer, a sample of several writers cannot be told from others.
        if payload.len() < payload::SIZE_WITH_WRITER && self.expectation.writers > 1 {
            return Judged::Else(good);
        }
        if self.expectation.exclusive && intact {
            self.note_owner(now_ns, head, sample.instance);
        }
        Judged::Else(match self.tracker.note(head.writer, sample.instance, head.sequence) {
            Seen::Next { skipped: 0 } if intact => return Judged::Good,
            // A corrupted sample is not lost as well.
            Seen::Next { skipped } if !intact => Counts { lost: i64::from(skipped), ..corrupted },
            Seen::Late if !intact => Counts { lost: -1, ..corrupted },
            Seen::Next { skipped } => Counts { lost: i64::from(skipped), ..good },
            Seen::Late => Counts { lost: -1, reordered: 1, ..good },
            Seen::Again if intact => Counts { duplicates: 1, ..Counts::default() },
            Seen::Again | Seen::Unknown => corrupted,
        })
    }

    fn is_plausible(&self, head: &Head, instance: u32) -> bool {
        let ahead = self.tracker.ahead(head.writer, instance, head.sequence);
        ahead.is_some_and(|ahead| (-PLAUSIBLE..=PLAUSIBLE).contains(&ahead))
    }

    fn note_owner(&mut self, now_ns: u64, head: &Head, instance: u32) {
        let Some(owner) = self.owners.get_mut(instance as usize) else { return };
        let Some(heard_ns) = self.heard_ns.get_mut(usize::from(head.writer)) else { return };
        *heard_ns = now_ns;
        let before = owner.replace(head.writer);
        if before == Some(head.writer) {
            return;
        }
        // What this writer wrote while another was the owner was not for us.
        self.tracker.resume(head.writer, instance, head.sequence);
        let Some(from) = before else { return };
        if self.switches.len() < SWITCHES_MAX {
            let last = self.heard_ns.get(usize::from(from)).copied().unwrap_or(now_ns);
            let gap_ns = now_ns.saturating_sub(last);
            self.switches.push(Switch { at_ns: now_ns, from, to: head.writer, gap_ns });
        }
    }

    fn note_phase(&mut self, now_ns: u64, phase: u16, counts: Counts) {
        if counts.received > 0 && phase > self.phase {
            self.end_phase();
            self.phase = phase;
        }
        let index = usize::from(phase.min(self.phase)).min(PHASES_MAX - 1);
        let Some(phase) = self.phases.get_mut(index) else { return };
        phase.counts += counts;
        if phase.first_ns == 0 {
            phase.first_ns = now_ns;
        }
        phase.last_ns = now_ns;
    }

    fn end_phase(&mut self) {
        let index = usize::from(self.phase).min(PHASES_MAX - 1);
        if let Some(phase) = self.phases.get_mut(index)
            && !self.phase_latency.is_empty()
        {
            phase.latency_p50_ns = Some(self.phase_latency.value_at_quantile(0.5));
            phase.latency_p99_ns = Some(self.phase_latency.value_at_quantile(0.99));
            self.phase_latency.reset();
        }
    }

    /// The counts since the last time, with the latencies in exchange for an empty histogram.
    pub(crate) fn end_interval(&mut self, latencies: &mut Histogram<u64>) -> (Counts, u16) {
        self.settle();
        self.latency.exchange(latencies);
        (std::mem::take(&mut self.interval), self.phase)
    }

    /// When the last sample came, of the warm-up too; 0 if none did.
    #[must_use]
    pub fn last_heard_ns(&self) -> u64 {
        self.any_ns
    }

    /// The number of samples counted as received.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.totals.received + self.plain.received
    }

    /// How long the measured time was that is over now: a product that stood still for a part of it is not
    /// the faster for that. When it ended early, as for a number of samples, from the first to the last of
    /// them.
    fn length_ns(&self, now_ns: u64) -> u64 {
        match &self.measured_ns {
            Some(measured) if now_ns >= measured.end => measured.end.saturating_sub(measured.start),
            _ => self.last_ns.saturating_sub(self.first_ns),
        }
    }

    /// The end.
    pub fn finish(&mut self, now_ns: u64) -> Counted {
        self.settle();
        self.end_phase();
        let instances = self.expectation.instances.max(1) as usize;
        let streams = self.streams.iter().enumerate().filter(|(_, counts)| **counts != Counts::default());
        let streams = streams.map(|(index, counts)| {
            let (writer, instance) = match self.by_instance {
                true => (index / instances, u32::try_from(index % instances).ok()),
                false => (index, None),
            };
            Stream { writer: u16::try_from(writer).unwrap_or(u16::MAX), instance, totals: counts.totals() }
        });
        let phases = self.phases.iter().enumerate().filter(|(_, phase)| phase.first_ns != 0);
        let phases = phases.map(|(number, phase)| Phase {
            phase: u16::try_from(number).unwrap_or(u16::MAX),
            length_ns: phase.last_ns.saturating_sub(phase.first_ns),
            totals: phase.counts.totals(),
            latency_p50_ns: phase.latency_p50_ns,
            latency_p99_ns: phase.latency_p99_ns,
            ..Phase::default()
        });
        // Behind at the last sample, it never was up to date again.
        let begin_ns = self.timely.0;
        if begin_ns > 0 && self.last_ns.saturating_sub(begin_ns) >= STALL_MIN_NS {
            self.stalls.push(Stall { begin_ns, end_ns: None });
        }
        Counted {
            totals: self.totals.totals(),
            streams: streams.collect(),
            phases: phases.collect(),
            switches: self.switches.clone(),
            stalls: self.stalls.clone(),
            moments: self.latency.moments(),
            first_ns: self.first_ns,
            length_ns: self.length_ns(now_ns),
            in_time: self.in_time,
        }
    }
}

#[cfg(test)]
#[path = "counting/tests.rs"]
mod tests;
