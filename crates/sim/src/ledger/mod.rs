//! What truly happened in a run, seen from outside of the protocol: who wrote, matched and took what
//! and when. The checkers read this and nothing else.

mod pair;

use std::collections::{BTreeMap, BTreeSet};

use plainsong_proto::discovery::MismatchReason;
use plainsong_proto::guid::{Guid, GuidPrefix};
use plainsong_proto::qos::QosSet;
use plainsong_proto::sample_info::InstanceState;
use plainsong_proto::status::{CountStatus, IncompatibleQosStatus, LivelinessChangedStatus, MatchedStatus};
use plainsong_proto::time::{Duration, Instant, Time};

pub use pair::Pair;

use crate::sample::{Filter, Sample};

/// Everything that is known about a run.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Every participant that ever lived.
    pub participants: Vec<ParticipantRecord>,
    /// Every user writer that ever lived.
    pub writers: Vec<WriterRecord>,
    /// Every user reader that ever lived.
    pub readers: Vec<ReaderRecord>,
    /// Every coherent set that was ever begun.
    pub sets: Vec<SetRecord>,
    /// The address that forged announcements named.
    pub stranger: Stranger,
    /// Processes of one host share memory.
    pub shares_memory: bool,
    /// Readers of strangers that asked again and again.
    pub storms: Vec<Storm>,
    /// Readers in whose names something was taken that they never said.
    pub taken: Vec<Guid>,
    /// Writers, by their place, that waited for room when strangers went, and since when they did.
    pub held_up: Vec<(usize, Duration)>,
    /// What processes believe otherwise of genuine participants since strangers said so.
    pub altered: Vec<String>,
    /// Submessages of user endpoints that went to where only strangers are.
    pub diverted: u64,
    /// How many strangers are known at the end, and endpoints of each.
    pub crowds: Vec<Crowd>,
    /// What is known of who stood still while somebody else was taken for it.
    pub returns: Vec<Acquaintance>,
    /// What is known of who came when dead participants had all places, and of who was there before.
    pub arrivals: Vec<Acquaintance>,
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
    /// Endpoints of others that it knew when the run ended, with the QoS it believed them to have.
    pub believes: Vec<(Guid, QosSet)>,
    /// Pairs, writer first, of which it said when the run ended that they do not match, and why.
    pub mismatches: Vec<(Guid, Guid, MismatchReason)>,
    /// When its wall clock was set.
    pub wall_set_at: Vec<Instant>,
    /// When its process stood still; the last time may last.
    pub stopped: Vec<Epoch>,
    /// When its address changed.
    pub moved_at: Vec<Instant>,
}

/// What one publisher wrote between `begin_coherent_changes` and `end_coherent_changes`.
#[derive(Clone, Copy, Debug)]
pub struct SetRecord {
    /// The publisher.
    pub group: usize,
    /// When it was begun.
    pub begun_at: Instant,
    /// When it was ended, if it was.
    pub ended_at: Option<Instant>,
}

/// An address of which its owner never said that it wants anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stranger {
    /// Octets of the datagrams that named it, with their IP and UDP headers.
    pub received: u64,
    /// Octets sent to it, with their IP and UDP headers.
    pub sent: u64,
}

/// What a process has to do with a genuine participant at some time.
#[derive(Clone, Copy, Debug)]
pub struct Acquaintance {
    /// When.
    pub at: Instant,
    /// With whom.
    pub of: GuidPrefix,
    /// It is known where it is, and nowhere else.
    pub is_there: bool,
    /// Their endpoints are matched, on both sides.
    pub is_matched: bool,
    /// All that was written until shortly before was received.
    pub receives: bool,
}

/// What a process remembers of strangers.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// Of what so many.
    pub what: &'static str,
    /// How many there are.
    pub known: usize,
    /// How many there may be.
    pub allowed: usize,
}

/// What a stranger drew that asked a writer again and again.
#[derive(Clone, Copy, Debug)]
pub struct Storm {
    /// Place of the writer.
    pub writer: usize,
    /// Octets of the requests, with their IP and UDP headers.
    pub asked: u64,
    /// Octets that were sent in answer to them, with their IP and UDP headers.
    pub drawn: u64,
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
    /// Its publisher or subscriber, when it has one of its own making.
    pub group: Option<usize>,
    /// QoS, with that of its publisher or subscriber and its topic.
    pub qos: QosSet,
    /// QoS it had before, oldest first.
    pub earlier: Vec<QosSet>,
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
    /// OFFERED or REQUESTED_INCOMPATIBLE_QOS when the run ended.
    pub incompatible: IncompatibleQosStatus,
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
    /// When they waited.
    pub waits: Vec<Epoch>,
    /// Most changes ever seen in its history.
    pub history_max: usize,
    /// LIVELINESS_LOST when the run ended.
    pub liveliness_lost: CountStatus,
    /// When each of its changes that was small enough left first, by sequence number.
    pub sent: BTreeMap<i64, Instant>,
    /// When fragments of its samples left.
    pub fragments: Vec<Instant>,
    /// How its datagrams were marked: TRANSPORT_PRIORITY then, and the traffic class.
    pub marked: BTreeSet<(i32, u8)>,
    /// What it was told of the content filter of each reader, and when.
    pub told_filters: BTreeMap<Guid, Vec<(Instant, Option<Filter>)>>,
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
    /// Its source timestamp.
    pub source: Time,
    /// The coherent set it is in, if any.
    pub set: Option<usize>,
    /// Its sequence number.
    pub number: i64,
    /// Its number among the changes of its publisher, under GROUP scope.
    pub group_number: Option<i64>,
    /// It had to wait until there was room on the road to another host.
    pub waits_for_road: bool,
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
    /// Its content filters, if it has any, and since when: each until the next.
    pub filters: Vec<(Instant, Filter)>,
    /// How much the last take, after everything was quiet, found without having been told.
    pub untold: usize,
    /// How often `take` did not return what `read` had returned just before.
    pub misreads: usize,
    /// LIVELINESS_CHANGED when the run ended.
    pub liveliness: LivelinessChangedStatus,
    /// Instances it still knew when the run ended.
    pub known_instances: Vec<u32>,
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
    /// Its source timestamp, as the reader says.
    pub source: Time,
    /// What the reader's wall clock showed.
    pub wall: Time,
    /// What was taken in one access, of one reader or all of a subscriber, has the same number.
    pub access: u64,
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
    /// Timers that went off.
    pub timers: u64,
}

impl Epoch {
    /// Whether there was a time that is in both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let ends_before = |one: &Self, start: Instant| one.end.is_some_and(|end| end <= start);
        !ends_before(self, other.start) && !ends_before(other, self.start)
    }
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

    /// Every QoS it ever had.
    pub fn ever(&self) -> impl Iterator<Item = &QosSet> {
        self.earlier.iter().chain(std::iter::once(&self.qos))
    }

    /// It has other QoS from now on.
    pub fn change_qos(&mut self, qos: QosSet) {
        self.earlier.push(std::mem::replace(&mut self.qos, qos));
    }

    /// Whether it lived and was matched with `peer` all the time from `from` to `to`.
    #[must_use]
    pub fn matched_throughout(&self, peer: Guid, from: Instant, to: Instant) -> bool {
        let covers = |epoch: &Epoch| epoch.start <= from && epoch.end.is_none_or(|end| end >= to);
        // The match of one that was deleted is left open.
        self.ended.is_none_or(|(end, _)| end >= to) && self.epochs(peer).iter().any(covers)
    }

    /// Whether its process ran all the time from `from` to `to`.
    #[must_use]
    pub fn ran_throughout(&self, ledger: &Ledger, from: Instant, to: Instant) -> bool {
        let stops = ledger.participants.get(self.participant).map_or(&[][..], |record| &record.stopped);
        self.ended.is_none_or(|(end, _)| end >= to)
            && stops.iter().all(|stop| stop.start > to || stop.end.is_some_and(|end| end < from))
    }

    /// Whether its process kept its address from `from` to `to`.
    #[must_use]
    pub fn stayed_throughout(&self, ledger: &Ledger, from: Instant, to: Instant) -> bool {
        let moves = ledger.participants.get(self.participant).map_or(&[][..], |record| &record.moved_at);
        !moves.iter().any(|at| (from..=to).contains(at))
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
    /// It was told what a reader announces of its content filter.
    pub fn told_filter(&mut self, reader: Guid, at: Instant, filter: Option<Filter>) {
        let told = self.told_filters.entry(reader).or_default();
        if told.last().is_none_or(|(_, last)| *last != filter) {
            told.push((at, filter));
        }
    }

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

/// Of values each of which holds until the next, those that held at some time between two.
pub(crate) fn in_force<T: Copy>(
    values: &[(Instant, T)],
    from: Instant,
    to: Instant,
) -> impl Iterator<Item = T> {
    let before = values.partition_point(|(since, _)| *since <= from);
    let values = values.get(before.saturating_sub(1)..).unwrap_or(&[]);
    values.iter().take_while(move |(since, _)| *since <= to).map(|(_, value)| *value)
}

/// Whether a reader forgets instances by itself.
fn purges(qos: &QosSet) -> bool {
    let lifecycle = qos.reader_data_lifecycle;
    let delays = [lifecycle.autopurge_nowriter_samples_delay, lifecycle.autopurge_disposed_samples_delay];
    delays.iter().any(|delay| !delay.is_infinite())
}

impl ReaderRecord {
    /// The content filters that were in force at some time between two.
    pub fn filters_between(&self, from: Instant, to: Instant) -> impl Iterator<Item = Filter> {
        in_force(&self.filters, from, to)
    }

    /// Whether it may ever have forgotten an instance: by READER_DATA_LIFECYCLE, or for want of room.
    #[must_use]
    pub fn forgets_instances(&self) -> bool {
        self.endpoint.ever().any(|qos| purges(qos) || qos.resource_limits.max_instances >= 0)
    }

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

    /// Whether its RESOURCE_LIMITS bound no number of samples.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        let limits = self.endpoint.qos.resource_limits;
        limits.max_samples < 0 && limits.max_samples_per_instance < 0
    }

    /// Whether its limits can never make it refuse a sample for good.
    #[must_use]
    pub fn can_hold_everything(&self) -> bool {
        // What is purged before it is taken is gone.
        let purged = self.endpoint.ever().any(purges) && self.taking != Taking::Promptly;
        self.endpoint.qos.resource_limits.max_instances < 0 && !purged && self.is_emptied_in_time()
    }

    /// Whether nothing waits outside for room when the application takes at last.
    pub fn is_emptied_in_time(&self) -> bool {
        self.taking != Taking::AtEnd || self.is_unlimited()
    }
}

impl Ledger {
    /// Writers that ever wrote `instance` of `topic`.
    pub fn writers_of<'a>(&'a self, topic: &'a str, instance: u32) -> impl Iterator<Item = &'a WriterRecord> {
        self.writers.iter().filter(move |writer| {
            writer.endpoint.topic == topic && writer.changes.iter().any(|change| change.instance == instance)
        })
    }

    /// The writer with this GUID.
    #[must_use]
    pub fn writer(&self, guid: Guid) -> Option<&WriterRecord> {
        self.writers.iter().find(|writer| writer.endpoint.guid == guid)
    }

    /// Writers of a publisher.
    pub fn writers_in(&self, group: usize) -> impl Iterator<Item = &WriterRecord> {
        self.writers.iter().filter(move |writer| writer.endpoint.group == Some(group))
    }

    /// Readers of a subscriber.
    pub fn readers_in(&self, group: usize) -> impl Iterator<Item = &ReaderRecord> {
        self.readers.iter().filter(move |reader| reader.endpoint.group == Some(group))
    }

    /// Whether the wall clock of a participant was set between two times.
    #[must_use]
    pub fn clock_was_set(&self, participant: usize, from: Instant, to: Instant) -> bool {
        let record = self.participants.get(participant);
        record.is_some_and(|record| record.wall_set_at.iter().any(|at| (from..=to).contains(at)))
    }
}
