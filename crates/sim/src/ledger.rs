//! What truly happened in a run, seen from outside of the protocol: who wrote, matched and took what
//! and when. The checkers read this and nothing else.

use std::collections::BTreeMap;

use plainsong_proto::guid::{Guid, GuidPrefix};
use plainsong_proto::qos::{Durability, HistoryKind, QosSet};
use plainsong_proto::sample_info::InstanceState;
use plainsong_proto::status::{CountStatus, LivelinessChangedStatus, MatchedStatus};
use plainsong_proto::time::{Duration, Instant};

use crate::sample::Sample;

/// Everything that is known about a run.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Every participant that ever lived.
    pub participants: Vec<ParticipantRecord>,
    /// Every user writer that ever lived.
    pub writers: Vec<WriterRecord>,
    /// Every user reader that ever lived.
    pub readers: Vec<ReaderRecord>,
    /// What travelled when nothing should.
    pub quiet: Option<Quiet>,
    /// Since when nothing goes wrong any more.
    pub calm_since: Option<Instant>,
    /// When the run ended.
    pub finished_at: Instant,
}

/// How a participant or endpoint came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Deleted by its application, which told everyone.
    Deleted,
    /// Its process died.
    Crashed,
}

/// The life of one participant.
#[derive(Clone, Debug)]
pub struct ParticipantRecord {
    /// Its prefix.
    pub prefix: GuidPrefix,
    /// Its domain.
    pub domain: u16,
    /// When it started.
    pub born_at: Instant,
    /// When and how it ended, if it did.
    pub ended: Option<(Instant, Ending)>,
    /// How long others keep it without hearing from it.
    pub lease_duration: Duration,
    /// Whom it knew when the run ended.
    pub knows: Vec<GuidPrefix>,
}

/// What writers and readers have in common.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its GUID.
    pub guid: Guid,
    /// Index of its participant in the ledger.
    pub participant: usize,
    /// Topic name.
    pub topic: String,
    /// The topic has a key.
    pub keyed: bool,
    /// QoS, with partitions.
    pub qos: QosSet,
    /// When it was created.
    pub born_at: Instant,
    /// When and how it ended, if it did.
    pub ended: Option<(Instant, Ending)>,
    /// When it was matched with whom.
    pub matches: BTreeMap<Guid, Vec<Epoch>>,
    /// PUBLICATION_MATCHED or SUBSCRIPTION_MATCHED when the run ended.
    pub matched_status: MatchedStatus,
    /// OFFERED or REQUESTED_DEADLINE_MISSED when the run ended.
    pub deadline_missed: CountStatus,
}

/// An uninterrupted match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// When it began.
    pub start: Instant,
    /// When it ended, if it did.
    pub end: Option<Instant>,
}

/// The life of one writer.
#[derive(Clone, Debug)]
pub struct WriterRecord {
    /// What it shares with readers.
    pub endpoint: Endpoint,
    /// What it wrote, in order.
    pub changes: Vec<Change>,
    /// Since when a write waits for room.
    pub blocked_since: Option<Instant>,
    /// Writes that waited and then succeeded.
    pub unblocked: u64,
    /// Most changes ever seen in its history.
    pub history_max: usize,
}

/// What a change does to its instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// A data sample; the counter of its payload.
    Data(u32),
    /// The instance is disposed.
    Dispose,
    /// The writer no longer writes it.
    Unregister,
    /// Both, as unregistering does when autodispose is on.
    DisposeUnregister,
}

/// One change in the life of a writer.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// When `write` succeeded.
    pub at: Instant,
    /// What it does.
    pub kind: ChangeKind,
    /// To which instance.
    pub instance: u32,
    /// Length of the payload in octets.
    pub bytes: usize,
}

/// The life of one reader.
#[derive(Clone, Debug)]
pub struct ReaderRecord {
    /// What it shares with writers.
    pub endpoint: Endpoint,
    /// Everything taken, in order.
    pub deliveries: Vec<Delivery>,
    /// Length of `deliveries` after each take.
    pub takes: Vec<usize>,
    /// When and how this reader takes.
    pub taking: Taking,
    /// How much the last take, after everything was quiet, found without having been told.
    pub untold: usize,
    /// How often `take` did not return what `read` had returned just before.
    pub misreads: usize,
    /// LIVELINESS_CHANGED when the run ended.
    pub liveliness: LivelinessChangedStatus,
}

/// When a reader takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taking {
    /// As soon as it is told of data.
    Promptly,
    /// Every so often; promptly once faults are over.
    Every(Duration),
    /// Once, when the run ends.
    AtEnd,
}

/// One sample taken.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// When.
    pub at: Instant,
    /// By whom it was written, as the reader says.
    pub writer: Guid,
    /// Of which instance, as the reader says.
    pub instance: u32,
    /// State of the instance when taken.
    pub state: InstanceState,
    /// The data; `None` when the sample only tells of a state.
    pub data: Option<Result<Sample, &'static str>>,
    /// Length of the payload in octets.
    pub bytes: usize,
}

/// Traffic in a window in which nobody had anything to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quiet {
    /// Length of the window.
    pub lasting: Duration,
    /// Participants alive in it.
    pub participants: u64,
    /// Most destinations that any of them announces itself to.
    pub destinations: u64,
    /// Datagrams sent, once for each destination.
    pub datagrams: u64,
    /// Octets sent, once for each destination.
    pub octets: u64,
    /// Submessages of user endpoints.
    pub user_submessages: u64,
}

impl Endpoint {
    /// Whether it lived when the run ended.
    #[must_use]
    pub const fn is_alive(&self) -> bool {
        self.ended.is_none()
    }

    /// The epochs with `peer`, in order.
    #[must_use]
    pub fn epochs(&self, peer: Guid) -> &[Epoch] {
        self.matches.get(&peer).map_or(&[], Vec::as_slice)
    }

    /// Whom it is matched with now.
    pub fn matched(&self) -> impl Iterator<Item = Guid> + '_ {
        let open = |epochs: &Vec<Epoch>| epochs.last().is_some_and(|epoch| epoch.end.is_none());
        self.matches.iter().filter(move |(_, epochs)| open(epochs)).map(|(guid, _)| *guid)
    }

    /// A match begins, or goes on with news. True when it began.
    pub fn begin_match(&mut self, peer: Guid, at: Instant) -> bool {
        let epochs = self.matches.entry(peer).or_default();
        let known = epochs.last().is_some_and(|epoch| epoch.end.is_none());
        if !known {
            epochs.push(Epoch { start: at, end: None });
        }
        !known
    }

    /// A match ends.
    pub fn end_match(&mut self, peer: Guid, at: Instant) {
        if let Some(epoch) = self.matches.get_mut(&peer).and_then(|epochs| epochs.last_mut()) {
            epoch.end.get_or_insert(at);
        }
    }
}

impl WriterRecord {
    /// Data samples of one instance, in order: position among the changes, counter.
    pub fn data_of(&self, instance: u32) -> impl Iterator<Item = (&Change, u32)> {
        self.changes.iter().filter(move |change| change.instance == instance).filter_map(
            |change| match change.kind {
                ChangeKind::Data(counter) => Some((change, counter)),
                _ => None,
            },
        )
    }

    /// The data sample with this counter.
    #[must_use]
    pub fn data(&self, counter: u32) -> Option<&Change> {
        self.changes.iter().find(|change| change.kind == ChangeKind::Data(counter))
    }

    /// Whether the writer later gave the instance up, and with it the history it kept for late joiners.
    #[must_use]
    pub fn is_unregistered_after(&self, change: &Change) -> bool {
        let later = self.changes.iter().filter(|later| later.instance == change.instance);
        let mut later = later.filter(|later| later.at >= change.at);
        later.any(|later| matches!(later.kind, ChangeKind::Unregister | ChangeKind::DisposeUnregister))
    }

    /// Instances it ever wrote, ascending.
    #[must_use]
    pub fn instances(&self) -> Vec<u32> {
        let mut instances: Vec<u32> = self.changes.iter().map(|change| change.instance).collect();
        instances.sort_unstable();
        instances.dedup();
        instances
    }
}

impl ReaderRecord {
    /// Intact data taken that `writer` wrote, in order.
    pub fn data_from(&self, writer: Guid) -> impl Iterator<Item = (&Delivery, Sample)> {
        self.deliveries.iter().filter(move |delivery| delivery.writer == writer).filter_map(|delivery| {
            match delivery.data {
                Some(Ok(sample)) => Some((delivery, sample)),
                _ => None,
            }
        })
    }

    /// The deliveries of each take.
    pub fn by_take(&self) -> impl Iterator<Item = &[Delivery]> {
        let starts = std::iter::once(0).chain(self.takes.iter().copied());
        starts.zip(&self.takes).filter_map(|(start, end)| self.deliveries.get(start..*end))
    }

    /// Whether its limits can never make it refuse a sample for good.
    #[must_use]
    pub fn can_hold_everything(&self) -> bool {
        let limits = self.endpoint.qos.resource_limits;
        let unlimited = |limit: i32| limit < 0;
        unlimited(limits.max_instances)
            && (self.taking != Taking::AtEnd
                || (unlimited(limits.max_samples) && unlimited(limits.max_samples_per_instance)))
    }
}

/// A writer and a reader that are to understand each other.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The writer.
    pub writer: &'a WriterRecord,
    /// The reader.
    pub reader: &'a ReaderRecord,
}

impl Ledger {
    /// Every pair of the same topic that was ever matched on the reader's side.
    pub fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        self.readers.iter().flat_map(|reader| {
            self.writers
                .iter()
                .filter(|writer| !reader.endpoint.epochs(writer.endpoint.guid).is_empty())
                .map(move |writer| Pair { writer, reader })
        })
    }

    /// Pairs alive and matched on both sides when the run ended, both reliable, with nothing else
    /// in their QoS that takes samples away.
    pub fn reliable_pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        self.pairs().filter(Pair::is_reliable_to_the_end)
    }

    /// Writers that ever wrote `instance` of `topic` in the reader's domain.
    pub fn writers_of<'a>(&'a self, topic: &'a str, instance: u32) -> impl Iterator<Item = &'a WriterRecord> {
        self.writers.iter().filter(move |writer| {
            writer.endpoint.topic == topic && writer.changes.iter().any(|change| change.instance == instance)
        })
    }
}

impl<'a> Pair<'a> {
    fn is_reliable_to_the_end(&self) -> bool {
        let (writer, reader) = (&self.writer.endpoint, &self.reader.endpoint);
        let open = |epochs: &[Epoch]| epochs.last().is_some_and(|epoch| epoch.end.is_none());
        writer.is_alive()
            && reader.is_alive()
            && open(writer.epochs(reader.guid))
            && open(reader.epochs(writer.guid))
            && self.is_reliable()
            && writer.qos.lifespan.is_infinite()
            && reader.qos.time_based_filter == Duration::ZERO
            && reader.qos.ownership == plainsong_proto::qos::Ownership::Shared
            && self.reader.can_hold_everything()
    }

    /// The time from which on nothing may be missing, when matched to the end: the last match
    /// began on the writer's side, and on the reader's too when there was more than one.
    #[must_use]
    pub fn promised_from(&self) -> Instant {
        let written = self.writer.endpoint.epochs(self.reader.endpoint.guid);
        let read = self.reader.endpoint.epochs(self.writer.endpoint.guid);
        let start = |epochs: &[Epoch]| epochs.last().map_or(Instant(u64::MAX), |epoch| epoch.start);
        match (written.len(), read.len()) {
            (1, 1) => start(written),
            _ => start(written).max(start(read)),
        }
    }

    /// When the first side learned of the other; no volatile sample from before may arrive.
    #[must_use]
    pub fn first_matched_at(&self) -> Instant {
        let written = self.writer.endpoint.epochs(self.reader.endpoint.guid);
        let read = self.reader.endpoint.epochs(self.writer.endpoint.guid);
        let start = |epochs: &[Epoch]| epochs.first().map_or(Instant(u64::MAX), |epoch| epoch.start);
        start(written).min(start(read))
    }

    /// Matches on the reader's side: a new one may bring again what an earlier one brought.
    #[must_use]
    pub fn reader_epochs(&self) -> usize {
        self.reader.endpoint.epochs(self.writer.endpoint.guid).len()
    }

    /// Both sides are reliable.
    #[must_use]
    pub fn is_reliable(&self) -> bool {
        self.writer.endpoint.qos.is_reliable() && self.reader.endpoint.qos.is_reliable()
    }

    /// Both sides are at least TRANSIENT_LOCAL.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.writer.endpoint.qos.durability >= Durability::TransientLocal
            && self.reader.endpoint.qos.durability >= Durability::TransientLocal
    }

    /// Samples of one instance that survive in a history of this QoS.
    #[must_use]
    pub fn depth(qos: &QosSet) -> usize {
        match qos.history.kind {
            HistoryKind::KeepAll => usize::MAX,
            HistoryKind::KeepLast => usize::try_from(qos.history.depth).unwrap_or(1).max(1),
        }
    }

    /// Counters of data from the writer that the reader took, in order.
    #[must_use]
    pub fn delivered(&self) -> Vec<u32> {
        self.reader.data_from(self.writer.endpoint.guid).map(|(_, sample)| sample.counter).collect()
    }
}
