//! What a participant has counted: for the application, and for others that ask.

use plainsong_proto::guid::Guid;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::qos::{Durability, QosSet};

use crate::base::locks::lock;
use crate::base::{clock, process};
use crate::data_reader::{DataReader, ReaderInner};
use crate::data_writer::WriterInner;
use crate::error::Result;
use crate::group::Member;
use crate::participant::{DomainParticipant, ParticipantInner};
use crate::runtime::ParticipantSlot;
use crate::statistics::{
    ParticipantStatistics, Publication, ReaderStatistics, STATISTICS_TOPIC, WriterStatistics, counts, drops,
};
use crate::topic::AnyTopic;

/// Writers, and readers, of which a participant tells.
const ENDPOINTS_MAX: usize = 1_000;

impl DomainParticipant {
    /// What it has counted until now.
    ///
    /// # Errors
    /// [`crate::Error::AlreadyDeleted`].
    pub fn statistics(&self) -> Result<ParticipantStatistics> {
        self.inner.check_exists()?;
        Ok(self.inner.statistics())
    }

    /// A reader of what the other Plainsong participants of the domain count. They tell it once a second, as
    /// long as somebody has such a reader. Of each the reader keeps the last sample; the instance of one that
    /// has left is NOT_ALIVE.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`], [`crate::Error::AlreadyDeleted`], and
    /// [`crate::PreconditionNotMet`] when the participant has another topic of that name.
    pub fn observe_statistics(&self) -> Result<DataReader<ParticipantStatistics>> {
        let known = self.inner.topic(STATISTICS_TOPIC).and_then(|topic| AnyTopic(topic).downcast());
        let topic = match known {
            Some(topic) => topic,
            None => self.create_topic::<ParticipantStatistics>(STATISTICS_TOPIC, QosSet::default())?,
        };
        let subscriber = self.create_subscriber(QosSet::default())?;
        let qos = QosSet::reader().reliable().keep_last(1).durability(Durability::TransientLocal);
        subscriber.create_reader(&topic, qos)
    }
}

impl ParticipantInner {
    fn statistics(&self) -> ParticipantStatistics {
        let (writers, readers) = self.endpoints();
        let left_out = |count: usize| count.saturating_sub(ENDPOINTS_MAX);
        let mut dropped = self.domain_drops();
        if let Ok(slot) = self.slot() {
            slot.look(|control| dropped.merge(control.drops()));
        }
        let process = process::describe();
        let (cpu_ns, memory_bytes) = process::usage();
        ParticipantStatistics {
            participant: self.guid_prefix.participant().to_bytes(),
            name: self.name.clone(),
            host: process.host,
            process_id: process.id,
            executable: process.executable,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            time_ns: clock::now().wall.0,
            cpu_ns,
            memory_bytes,
            left_out: u32::try_from(left_out(writers.len()) + left_out(readers.len())).unwrap_or(u32::MAX),
            writers: writers.iter().take(ENDPOINTS_MAX).map(|it| of_writer(it)).collect(),
            readers: readers.iter().take(ENDPOINTS_MAX).map(|it| of_reader(it)).collect(),
            copied_samples: self.slot().map_or(0, |slot| slot.shared().transport.copied()),
            drops: drops(&dropped),
        }
    }

    /// An endpoint of another participant on [`STATISTICS_TOPIC`] has come or changed.
    pub(crate) fn tell_statistics(&self, slot: &ParticipantSlot, endpoint: Guid) {
        if !endpoint.entity.is_reader() || !self.config().statistics {
            return;
        }
        let mut publication = lock(&self.publication);
        match &mut *publication {
            Some(known) => known.hasten(),
            // Who cannot be told of the writer is told the next time that somebody comes.
            None => {
                let limits = self.config().writer_limits();
                *publication = Publication::begin(slot, self.next_entity_key(), limits).ok();
            }
        }
    }

    /// The timer of the statistics went off.
    pub(crate) fn publish_statistics(&self, out: &mut Outbox) {
        let Ok(slot) = self.slot() else { return };
        let mut publication = lock(&self.publication);
        let Some(known) = &mut *publication else { return };
        if !known.publish(slot, clock::now(), || self.statistics(), out) {
            known.end(slot);
            *publication = None;
        }
    }
}

fn of_writer(inner: &WriterInner) -> WriterStatistics {
    let datagrams = inner.datagrams();
    let now = clock::now().mono;
    inner.look(|writer| {
        let totals = writer.totals();
        WriterStatistics {
            guid: inner.guid().to_bytes(),
            topic: inner.topic.name.clone(),
            type_name: inner.topic.type_name().to_owned(),
            matched: count(writer.matched_readers().count()),
            written: u64::try_from(writer.last_sequence_number().0).unwrap_or(0),
            written_bytes: totals.written_bytes,
            in_history: writer.history_len() as u64,
            behind: writer.reader_routes(now).map(|reader| reader.behind).max().unwrap_or(0),
            datagrams,
            resent_datagrams: totals.resent_datagrams,
            resent_bytes: totals.resent_bytes,
            deadlines_missed: totals.deadlines_missed.max(0).cast_unsigned(),
            drops: drops(writer.drops()),
        }
    })
}

fn of_reader(inner: &ReaderInner) -> ReaderStatistics {
    inner.look(|reader| {
        let totals = reader.totals();
        ReaderStatistics {
            guid: inner.guid().to_bytes(),
            topic: inner.topic.name.clone(),
            type_name: inner.topic.type_name().to_owned(),
            matched: count(reader.matched_writers().count()),
            received: totals.latencies.counts().iter().sum(),
            received_bytes: totals.received_bytes,
            held: reader.held_samples() as u64,
            lost: u64::from(totals.lost.max(0).cast_unsigned()),
            rejected: u64::from(totals.rejected.max(0).cast_unsigned()),
            deadlines_missed: totals.deadlines_missed.max(0).cast_unsigned(),
            latency_sum_ns: totals.latencies.sum_ns(),
            latencies: counts(&totals.latencies),
            drops: drops(reader.drops()),
        }
    })
}

fn count(many: usize) -> u32 {
    u32::try_from(many).unwrap_or(u32::MAX)
}
