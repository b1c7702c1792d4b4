//! A recording from its begin to its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plainsong::builtin_topics::PUBLICATION_TOPIC;
use plainsong::discovered::ToldType;
use plainsong::prelude::{DataReader, Guid, InstanceHandle, PublicationBuiltinTopicData, ReliabilityKind};
use plainsong::serialized::SerializedChange;
use plainsong::time::{Time, TimeExt as _};
use plainsong::{Error, types::TypeDescription};
use plainsong_recording::{Event, EventKind, FLUSH_PERIOD, Output, OutputError, RecordedWriter};

use super::sources::Sources;
use super::sync::Syncer;
use super::{Failure, Options};
use crate::look;
use crate::output::counted;
use crate::progress::Progress;
use crate::stop::Stop;

/// How long nothing may come before the program looks around.
const PATIENCE: Duration = Duration::from_millis(20);
/// How often it looks for writers and losses.
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// After so long a type counts as not told; changes wait for it.
const TYPE_PATIENCE: Duration = Duration::from_secs(2);
/// Octets of such changes; more of them do without the type.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// What the end of a file takes beside what it repeats of each channel.
const END_BYTES: u64 = 1_024;
/// What the index takes of each chunk, and of each sample.
const CHUNK_INDEX_BYTES: u64 = 256;
const SAMPLE_INDEX_BYTES: u64 = 64;

/// What was recorded of a topic.
#[derive(Default)]
pub(super) struct TopicTotals {
    pub(super) samples: u64,
    /// Ends of instances.
    pub(super) endings: u64,
    pub(super) bytes: u64,
    /// SAMPLE_LOST.
    pub(super) lost: u64,
    /// SAMPLE_REJECTED of best-effort writers: those of reliable ones come again.
    pub(super) rejected: u64,
}

/// What was recorded.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) topics: BTreeMap<String, TopicTotals>,
    pub(super) file_bytes: u64,
    pub(super) seconds: f64,
    /// Samples that are in the file.
    pub(super) kept: u64,
    /// A writer could not be recorded.
    refused: u64,
}

impl Totals {
    fn samples(&self) -> u64 {
        self.topics.values().map(|topic| topic.samples).sum()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.refused == 0 && self.topics.values().all(|topic| topic.lost + topic.rejected == 0)
    }
}

/// A writer that is recorded.
struct Tracked {
    handle: InstanceHandle,
    source: usize,
    writer: RecordedWriter,
    channel: Channel,
    has_left: bool,
}

enum Channel {
    /// Its type is awaited; the changes that came meanwhile.
    Awaited {
        since: Instant,
        changes: Vec<SerializedChange>,
        bytes: usize,
    },
    Open {
        id: u16,
        sequence: u32,
    },
}

pub(super) struct Session {
    wants: Box<dyn Fn(&str) -> bool>,
    stop: Stop,
    begin: Instant,
    end: Option<Instant>,
    bytes_max: u64,
    /// What the end of the file repeats of its channels.
    repeated_bytes: u64,
    chunks: u64,
    is_full: bool,
    sources: Sources,
    publications: DataReader<PublicationBuiltinTopicData>,
    tracked: BTreeMap<Guid, Tracked>,
    /// Of writers that are matched before they are told of.
    orphans: Vec<(usize, SerializedChange)>,
    output: Output,
    syncer: Syncer,
    next_flush: Instant,
    next_look: Instant,
    totals: Totals,
    progress: Progress,
    last_time: u64,
}

impl Session {
    pub(super) fn begin(options: &Options, stop: Stop) -> Result<Self, Failure> {
        let config = look::config()?;
        // The file first: a domain is joined only by who can record.
        let output = Output::create(&options.output, options.force)?;
        let syncer = Syncer::start(output.handle().map_err(OutputError::Io)?).map_err(OutputError::Io)?;
        let sources = Sources::new(config, options.domain)?;
        let builtin = sources.participant().builtin_subscriber()?;
        let reader = builtin.lookup_reader(PUBLICATION_TOPIC).and_then(|it| it.downcast());
        let publications = reader.ok_or_else(|| Error::NotEnabled("the built-in subscriber".into()))?;
        let begin = Instant::now();
        let mut progress = Progress::new();
        progress.say(&format!("recording domain {} to {}", options.domain, options.output.display()));
        Ok(Self {
            wants: Box::new(options.wants()),
            stop,
            begin,
            end: options.duration.map(|duration| begin + duration),
            bytes_max: options.max_bytes.unwrap_or(u64::MAX),
            repeated_bytes: 0,
            chunks: 0,
            is_full: false,
            sources,
            publications,
            tracked: BTreeMap::new(),
            orphans: Vec::new(),
            output,
            syncer,
            next_flush: begin + FLUSH_PERIOD,
            next_look: begin,
            totals: Totals::default(),
            progress,
            last_time: 0,
        })
    }

    /// Until somebody or something ends it.
    pub(super) fn record(&mut self) -> Result<(), Failure> {
        while !self.stop.is_told() && self.end.is_none_or(|end| Instant::now() < end) && !self.is_full {
            let ready = self.sources.arrivals.wait(PATIENCE);
            let now = Instant::now();
            if now >= self.next_look {
                self.next_look = now + LOOK_PERIOD;
                self.look()?;
            }
            for source in ready {
                self.take(source)?;
            }
            if self.output.is_due() || Instant::now() >= self.next_flush {
                self.flush()?;
            }
            self.tell();
        }
        Ok(())
    }

    /// Takes what has come, and ends the file.
    pub(super) fn finish(mut self) -> (Totals, Result<(), Failure>) {
        let mut result = Ok(());
        if !self.is_full {
            result = self.last();
        }
        self.progress.end();
        let mut totals = self.totals;
        totals.seconds = self.begin.elapsed().as_secs_f64();
        drop(self.syncer);
        let before = self.output.bytes().0;
        match self.output.finish() {
            Ok(bytes) => {
                totals.file_bytes = bytes;
                totals.kept = totals.samples();
            }
            Err(error) => {
                totals.file_bytes = before;
                result = result.and(Err(error.into()));
            }
        }
        (totals, result)
    }

    fn last(&mut self) -> Result<(), Failure> {
        self.look()?;
        for source in 0..self.sources.all.len() {
            self.take(source)?;
        }
        let awaited: Vec<Guid> = self.tracked.keys().copied().collect();
        awaited.into_iter().try_for_each(|guid| self.open(guid, true))
    }

    /// Whether the file has room for so many octets more. Its index is a part of it.
    fn has_room(&self, bytes: usize) -> bool {
        let (written, waiting) = self.output.bytes();
        let chunks = CHUNK_INDEX_BYTES * (self.chunks + 2) * (1 + self.tracked.len() as u64);
        let end = END_BYTES + self.repeated_bytes + chunks;
        let samples = SAMPLE_INDEX_BYTES * (1 + waiting as u64 / SAMPLE_INDEX_BYTES / 2);
        written + waiting as u64 + bytes as u64 + end + samples < self.bytes_max
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.next_flush = Instant::now() + FLUSH_PERIOD;
        let before = self.output.bytes().0;
        self.output.commit()?;
        self.chunks += u64::from(self.output.bytes().0 > before);
        self.totals.kept = self.totals.samples();
        self.syncer.request().map_err(|error| OutputError::Io(error).into())
    }

    fn tell(&mut self) {
        let Self { progress, totals, output, begin, .. } = self;
        progress.tell(|| {
            let sum = |of: fn(&TopicTotals) -> u64| totals.topics.values().map(of).sum::<u64>();
            let (written, waiting) = output.bytes();
            format!(
                "{:.1} s  {}  {}  {:.1} MB  lost {}",
                begin.elapsed().as_secs_f64(),
                counted(totals.topics.len() as u64, "topic"),
                counted(sum(|topic| topic.samples), "sample"),
                (written + waiting as u64) as f64 / 1e6,
                sum(|topic| topic.lost + topic.rejected),
            )
        });
    }

    /// Looks for writers that came or left, for types that were told, and for losses.
    fn look(&mut self) -> Result<(), Failure> {
        for sample in self.publications.take()? {
            match sample.data {
                Some(data) => self.found(&data)?,
                None => self.left(Guid::from(sample.info.instance_handle))?,
            }
        }
        let awaited: Vec<Guid> =
            self.tracked.iter().filter(|(_, it)| it.is_awaited()).map(|(guid, _)| *guid).collect();
        awaited.into_iter().try_for_each(|guid| self.open(guid, false))?;
        for (source, change) in std::mem::take(&mut self.orphans) {
            // Who is not told of now has left, or is none of those that are wanted.
            if self.tracked.contains_key(&change.writer) {
                self.change(source, change)?;
            }
        }
        self.losses()
    }

    fn found(&mut self, data: &PublicationBuiltinTopicData) -> Result<(), Failure> {
        let guid = Guid::from_bytes(data.key);
        if !(self.wants)(&data.topic_name) || self.tracked.contains_key(&guid) {
            return Ok(());
        }
        let keyed = guid.entity.is_keyed();
        let source = match self.sources.for_writer(data, keyed) {
            Ok(source) => source,
            Err(error) => {
                self.totals.refused += 1;
                self.progress
                    .say(&format!("topic '{}': writer {guid} is not recorded: {error}", data.topic_name));
                return Ok(());
            }
        };
        let writer = RecordedWriter {
            topic: data.topic_name.clone(),
            type_name: data.type_name.clone(),
            guid,
            keyed,
            qos: data.qos(),
            ty: None,
        };
        self.totals.topics.entry(data.topic_name.clone()).or_default();
        let channel = Channel::Awaited { since: Instant::now(), changes: Vec::new(), bytes: 0 };
        let handle = InstanceHandle::from(guid);
        self.tracked.insert(guid, Tracked { handle, source, writer, channel, has_left: false });
        self.open(guid, false)
    }

    /// A writer has left: what it wrote before comes first.
    fn left(&mut self, guid: Guid) -> Result<(), Failure> {
        let Some(tracked) = self.tracked.get(&guid).filter(|it| !it.has_left) else { return Ok(()) };
        self.take(tracked.source)?;
        self.open(guid, true)?;
        let Some(tracked) = self.tracked.get_mut(&guid) else { return Ok(()) };
        tracked.has_left = true;
        let event = Event {
            topic: tracked.writer.topic.clone(),
            writer: guid,
            kind: EventKind::Departure,
            key: Vec::new(),
            key_hash: Vec::new(),
        };
        let now = nanos(Time::now()).max(self.last_time);
        Ok(self.output.event(&event, (now, now))?)
    }

    /// Opens the channel of a writer when its type is known, or is waited for no longer.
    fn open(&mut self, guid: Guid, at_once: bool) -> Result<(), Failure> {
        let Some(tracked) = self.tracked.get_mut(&guid) else { return Ok(()) };
        let Channel::Awaited { since, bytes, .. } = &tracked.channel else { return Ok(()) };
        let is_late = at_once || since.elapsed() >= TYPE_PATIENCE || *bytes > WAITING_BYTES_MAX;
        let ty: Option<Arc<TypeDescription>> =
            match self.sources.participant().discovered_type(tracked.handle)? {
                ToldType::Known(ty) => Some(Arc::new(*ty)),
                // It is asked once its participant is known to answer, which may be a moment later.
                ToldType::Awaited | ToldType::Untold if !is_late => return Ok(()),
                ToldType::Awaited | ToldType::Untold => None,
            };
        tracked.writer.ty = ty;
        let before = self.output.bytes().1;
        let (id, said) = self.output.add_writer(&tracked.writer)?;
        self.repeated_bytes += self.output.bytes().1.saturating_sub(before) as u64;
        let (topic, type_name) = (&tracked.writer.topic, &tracked.writer.type_name);
        let without = said.map_or_else(String::new, |said| format!(", without schema: {said}"));
        self.progress.say(&format!("topic '{topic}' ({type_name}) of writer {guid}{without}"));
        let opened = Channel::Open { id, sequence: 0 };
        let Channel::Awaited { changes, .. } = std::mem::replace(&mut tracked.channel, opened) else {
            return Ok(());
        };
        let source = tracked.source;
        changes.into_iter().try_for_each(|change| self.change(source, change))
    }

    fn take(&mut self, source: usize) -> Result<(), Failure> {
        let Some(reader) = self.sources.all.get(source).map(|it| it.reader.clone()) else { return Ok(()) };
        for change in reader.take_changes()? {
            if !self.has_room(change.payload.len()) {
                self.is_full = true;
                return Ok(());
            }
            self.change(source, change)?;
            if self.output.is_due() {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn change(&mut self, source: usize, change: SerializedChange) -> Result<(), Failure> {
        let Some(tracked) = self.tracked.get_mut(&change.writer) else {
            self.orphans.push((source, change));
            return Ok(());
        };
        // A reader that asks for less than another matches its writers, too.
        if tracked.source != source {
            return Ok(());
        }
        let (id, sequence) = match &mut tracked.channel {
            Channel::Awaited { changes, bytes, .. } => {
                *bytes += change.payload.len();
                changes.push(change);
                return Ok(());
            }
            Channel::Open { id, sequence } => (*id, sequence),
        };
        let times = (nanos(change.reception_timestamp), nanos(change.source_timestamp));
        self.last_time = self.last_time.max(times.0);
        let octets = change.payload.as_slice();
        let topic = match self.totals.topics.get_mut(&tracked.writer.topic) {
            Some(topic) => topic,
            None => self.totals.topics.entry(tracked.writer.topic.clone()).or_default(),
        };
        let Some(ending) = change.ending else {
            *sequence = sequence.wrapping_add(1);
            topic.samples += 1;
            topic.bytes += octets.len() as u64;
            return Ok(self.output.sample(id, *sequence, times, octets)?);
        };
        topic.endings += 1;
        let kind = match (ending.disposed, ending.unregistered) {
            (true, true) => EventKind::DisposeUnregister,
            (true, false) => EventKind::Dispose,
            (false, _) => EventKind::Unregister,
        };
        let (key, key_hash) =
            if ending.hash_only { (Vec::new(), octets.to_vec()) } else { (octets.to_vec(), Vec::new()) };
        let event = Event { topic: tracked.writer.topic.clone(), writer: change.writer, kind, key, key_hash };
        Ok(self.output.event(&event, times)?)
    }

    /// Counts what was lost, and tells of it once a topic.
    fn losses(&mut self) -> Result<(), Failure> {
        for source in &mut self.sources.all {
            let count = |count: i32| u64::try_from(count).unwrap_or(0);
            let lost = count(source.reader.sample_lost_status()?.total_count);
            let rejected = count(source.reader.sample_rejected_status()?.count.total_count);
            let (lost_before, rejected_before) = std::mem::replace(&mut source.told, (lost, rejected));
            let is_reliable = source.reader.qos().reliability.kind == ReliabilityKind::Reliable;
            let rejected = if is_reliable { 0 } else { rejected - rejected_before };
            let lost = lost - lost_before;
            if lost + rejected == 0 {
                continue;
            }
            let topic = self.totals.topics.entry(source.topic.clone()).or_default();
            let is_first = topic.lost + topic.rejected == 0;
            topic.lost += lost;
            topic.rejected += rejected;
            if is_first {
                self.progress.say(&format!(
                    "topic '{}': samples are lost ({lost} on the way, {rejected} for want of room)",
                    source.topic
                ));
            }
        }
        Ok(())
    }
}

impl Tracked {
    const fn is_awaited(&self) -> bool {
        matches!(self.channel, Channel::Awaited { .. })
    }
}

/// As the format has times.
fn nanos(time: Time) -> u64 {
    u64::try_from(time.0).unwrap_or(0)
}
