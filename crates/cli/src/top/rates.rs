//! What participants counted between two samples of their statistics, by topic and by process.

use std::collections::BTreeMap;

use plainsong::prelude::*;
use plainsong::statistics::{DropStatistics, ParticipantStatistics, ReaderStatistics, WriterStatistics};
use serde::Serialize;

/// Participants that are followed at most.
const PARTICIPANTS_MAX: usize = 10_000;

/// The last two samples of each participant.
#[derive(Default)]
pub(crate) struct Tracker {
    known: BTreeMap<[u8; 16], Followed>,
}

/// What came of a participant.
type Told = (InstanceHandle, Option<ParticipantStatistics>);

struct Followed {
    before: Option<ParticipantStatistics>,
    now: ParticipantStatistics,
}

/// A topic in the last interval; rates are per second, and `None` before there are two samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct TopicRates {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) type_name: String,
    pub(crate) writers: usize,
    pub(crate) readers: usize,
    pub(crate) written_per_s: Option<f64>,
    pub(crate) written_bytes_per_s: Option<f64>,
    /// Datagrams with what single readers had missed, or with the history for late joiners.
    pub(crate) resent_per_s: Option<f64>,
    /// Samples that the reader which is most behind has not acknowledged.
    pub(crate) behind: u64,
    pub(crate) received_per_s: Option<f64>,
    pub(crate) lost: u64,
    pub(crate) rejected: u64,
    /// Half of the samples took at most so long, in the last interval.
    pub(crate) latency_p50_ns: Option<u64>,
    pub(crate) latency_p99_ns: Option<u64>,
}

/// A participant in the last interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ParticipantRates {
    pub(crate) guid: String,
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) process: u32,
    pub(crate) executable: String,
    pub(crate) version: String,
    /// Of one processor, in percent: of the process, which may have other participants.
    pub(crate) cpu_percent: Option<f64>,
    pub(crate) memory_bytes: u64,
    pub(crate) written_per_s: Option<f64>,
    pub(crate) received_per_s: Option<f64>,
    pub(crate) lost: u64,
    pub(crate) drops: BTreeMap<String, u64>,
}

impl Tracker {
    /// Takes over what has come: the instances, and their samples; none of who has left.
    pub(crate) fn take(&mut self, samples: impl IntoIterator<Item = Told>) {
        for (instance, told) in samples {
            let Some(now) = told else {
                self.known.remove(&instance.0);
                continue;
            };
            if let Some(known) = self.known.get_mut(&now.participant) {
                if now.time_ns > known.now.time_ns {
                    known.before = Some(std::mem::replace(&mut known.now, now));
                }
            } else if self.known.len() < PARTICIPANTS_MAX {
                self.known.insert(now.participant, Followed { before: None, now });
            }
        }
    }

    /// Whether there are rates of everyone who tells.
    pub(crate) fn is_complete(&self) -> bool {
        self.known.values().all(|it| it.before.is_some())
    }

    /// Whether that participant tells what it counts.
    pub(crate) fn knows(&self, participant: Guid) -> bool {
        self.known.contains_key(&participant.to_bytes())
    }

    /// All topics, by name and type.
    pub(crate) fn topics(&self) -> Vec<TopicRates> {
        let mut topics: BTreeMap<(&str, &str), (TopicRates, Vec<u64>)> = BTreeMap::new();
        for known in self.known.values() {
            for writer in &known.now.writers {
                let topic = topics.entry((&writer.topic, &writer.type_name)).or_default();
                known.add_writer(&mut topic.0, writer);
            }
            for reader in &known.now.readers {
                let (topic, latencies) = topics.entry((&reader.topic, &reader.type_name)).or_default();
                known.add_reader(topic, latencies, reader);
            }
        }
        let finish = |((name, type_name), (topic, latencies)): ((&str, &str), (TopicRates, Vec<u64>))| {
            let mut all = ReaderStatistics::default();
            all.latencies = latencies;
            TopicRates {
                name: name.to_owned(),
                type_name: type_name.to_owned(),
                latency_p50_ns: all.latency_ns(0.5, None),
                latency_p99_ns: all.latency_ns(0.99, None),
                ..topic
            }
        };
        topics.into_iter().map(finish).collect()
    }

    /// All participants that tell.
    pub(crate) fn participants(&self) -> Vec<ParticipantRates> {
        self.known.values().map(Followed::rates).collect()
    }
}

impl Followed {
    fn seconds(&self) -> Option<f64> {
        let nanos = self.now.time_ns.checked_sub(self.before.as_ref()?.time_ns)?;
        (nanos > 0).then_some(nanos as f64 / 1e9)
    }

    /// What a counter grew by in a second. Of an entity that is new, all of it is new.
    fn rate(&self, now: u64, before: Option<u64>) -> Option<f64> {
        Some(now.saturating_sub(before.unwrap_or(0)) as f64 / self.seconds()?)
    }

    fn writer_before(&self, guid: [u8; 16]) -> Option<&WriterStatistics> {
        self.before.as_ref()?.writers.iter().find(|it| it.guid == guid)
    }

    fn reader_before(&self, guid: [u8; 16]) -> Option<&ReaderStatistics> {
        self.before.as_ref()?.readers.iter().find(|it| it.guid == guid)
    }

    fn add_writer(&self, topic: &mut TopicRates, writer: &WriterStatistics) {
        let before = self.writer_before(writer.guid);
        topic.writers += 1;
        topic.behind = topic.behind.max(writer.behind);
        add(&mut topic.written_per_s, self.rate(writer.written, before.map(|it| it.written)));
        let bytes = self.rate(writer.written_bytes, before.map(|it| it.written_bytes));
        add(&mut topic.written_bytes_per_s, bytes);
        let resent = self.rate(writer.resent_datagrams, before.map(|it| it.resent_datagrams));
        add(&mut topic.resent_per_s, resent);
    }

    fn add_reader(&self, topic: &mut TopicRates, latencies: &mut Vec<u64>, reader: &ReaderStatistics) {
        let before = self.reader_before(reader.guid);
        topic.readers += 1;
        topic.lost = topic.lost.saturating_add(reader.lost);
        topic.rejected = topic.rejected.saturating_add(reader.rejected);
        add(&mut topic.received_per_s, self.rate(reader.received, before.map(|it| it.received)));
        if self.before.is_none() {
            return;
        }
        if latencies.len() < reader.latencies.len() {
            latencies.resize(reader.latencies.len(), 0);
        }
        for (bucket, (total, count)) in latencies.iter_mut().zip(&reader.latencies).enumerate() {
            let earlier = before.and_then(|it| it.latencies.get(bucket)).copied().unwrap_or(0);
            *total = total.saturating_add(count.saturating_sub(earlier));
        }
    }

    fn rates(&self) -> ParticipantRates {
        let Self { now, before } = self;
        let mut rates = ParticipantRates {
            guid: Guid::from_bytes(now.participant).to_string(),
            name: now.name.clone(),
            host: now.host.clone(),
            process: now.process_id,
            executable: now.executable.clone(),
            version: now.version.clone(),
            memory_bytes: now.memory_bytes,
            ..ParticipantRates::default()
        };
        let cpu = self.rate(now.cpu_ns, before.as_ref().map(|it| it.cpu_ns));
        rates.cpu_percent = cpu.map(|nanos| nanos / 1e7).filter(|_| now.cpu_ns > 0);
        for writer in &now.writers {
            let before = self.writer_before(writer.guid).map(|it| it.written);
            add(&mut rates.written_per_s, self.rate(writer.written, before));
            count_drops(&mut rates.drops, &writer.drops);
        }
        for reader in &now.readers {
            let before = self.reader_before(reader.guid).map(|it| it.received);
            add(&mut rates.received_per_s, self.rate(reader.received, before));
            rates.lost = rates.lost.saturating_add(reader.lost);
            count_drops(&mut rates.drops, &reader.drops);
        }
        count_drops(&mut rates.drops, &now.drops);
        rates
    }
}

fn add(total: &mut Option<f64>, more: Option<f64>) {
    if let Some(more) = more {
        *total = Some(total.unwrap_or(0.0) + more);
    }
}

fn count_drops(total: &mut BTreeMap<String, u64>, more: &[DropStatistics]) {
    for drop in more {
        let count = total.entry(drop.reason.clone()).or_default();
        *count = count.saturating_add(drop.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(time_s: i64, written: u64, latencies: &[u64]) -> Told {
        let mut writer = WriterStatistics::default();
        (writer.topic, writer.guid, writer.written) = ("T".to_owned(), [1; 16], written);
        (writer.written_bytes, writer.behind) = (written * 100, 3);
        let mut reader = ReaderStatistics::default();
        (reader.topic, reader.guid) = ("T".to_owned(), [2; 16]);
        (reader.received, reader.lost) = (latencies.iter().sum(), 7);
        reader.latencies = latencies.to_vec();
        let mut all = ParticipantStatistics::default();
        (all.participant, all.time_ns) = ([9; 16], time_s * 1_000_000_000);
        (all.cpu_ns, all.memory_bytes) = (time_s.unsigned_abs() * 500_000_000, 4_096);
        (all.writers, all.readers) = (vec![writer], vec![reader]);
        (InstanceHandle(all.participant), Some(all))
    }

    #[test]
    fn rates_are_differences_of_two_samples() {
        let mut tracker = Tracker::default();
        tracker.take([counted(10, 1_000, &[5])]);
        assert!(!tracker.is_complete());
        assert_eq!(tracker.topics()[0].written_per_s, None);
        // The same sample again tells nothing new.
        tracker.take([counted(10, 1_000, &[5]), counted(12, 1_300, &[5, 0, 98, 2])]);
        assert!(tracker.is_complete());
        let [topic] = tracker.topics().try_into().unwrap();
        assert_eq!((topic.name.as_str(), topic.writers, topic.readers), ("T", 1, 1));
        assert_eq!((topic.written_per_s, topic.written_bytes_per_s), (Some(150.0), Some(15_000.0)));
        assert_eq!((topic.received_per_s, topic.behind, topic.lost), (Some(50.0), 3, 7));
        assert_eq!((topic.latency_p50_ns, topic.latency_p99_ns), (Some(4_096), Some(8_192)));
        let [participant] = tracker.participants().try_into().unwrap();
        assert_eq!((participant.cpu_percent, participant.memory_bytes), (Some(50.0), 4_096));
        assert_eq!((participant.written_per_s, participant.lost), (Some(150.0), 7));
    }

    #[test]
    fn who_has_left_is_forgotten() {
        let mut tracker = Tracker::default();
        tracker.take([counted(10, 1_000, &[5])]);
        tracker.take([(InstanceHandle([9; 16]), None)]);
        assert!(tracker.topics().is_empty() && tracker.participants().is_empty());
    }
}
