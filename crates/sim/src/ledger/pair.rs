//! Two endpoints that are to understand each other, and what they owe each other.

use plainsong_proto::qos::{AccessScope, DestinationOrder, Durability, HistoryKind, Ownership, QosSet};
use plainsong_proto::time::{Duration, Instant};

use super::{Change, ChangeKind, Epoch, Ledger, ReaderRecord, WriterRecord, in_force};
use crate::sample::Filter;

/// A reader that does not know the writer yet learns of it in this time, unless discovery is slow.
const STRANGE_FOR: Duration = Duration::from_secs(1);

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
}

impl<'a> Pair<'a> {
    /// Alive and matched on both sides when the run ended.
    #[must_use]
    pub fn is_matched_to_the_end(&self) -> bool {
        let (writer, reader) = (&self.writer.endpoint, &self.reader.endpoint);
        let open = |epochs: &[Epoch]| epochs.last().is_some_and(|epoch| epoch.end.is_none());
        writer.is_alive()
            && reader.is_alive()
            && open(writer.epochs(reader.guid))
            && open(reader.epochs(writer.guid))
    }

    fn is_reliable_to_the_end(&self) -> bool {
        self.is_matched_to_the_end()
            && self.is_reliable()
            && self.is_lasting()
            && !self.is_thinned()
            && self.reader.can_hold_everything()
    }

    /// No sample ever expired.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        self.writer.endpoint.ever().all(|qos| qos.lifespan.is_infinite())
    }

    /// The reader sometimes had a minimum separation.
    #[must_use]
    pub fn is_thinned(&self) -> bool {
        self.reader.endpoint.ever().any(|qos| qos.time_based_filter > Duration::ZERO)
    }

    /// Whether the reader must get `change`, written while the two were matched, if both keep all: neither
    /// ownership nor order nor coherence takes it away.
    #[must_use]
    pub fn owes(&self, ledger: &Ledger, change: &Change) -> bool {
        self.owns(ledger, change.instance)
            && self.keeps_order(ledger, change.instance)
            && self.wants(change)
            && self.shows_whole(ledger, change)
    }

    /// Whether every content filter lets the change pass that the reader has had since it was written, and
    /// every one of which the writer thought that it has.
    #[must_use]
    pub fn wants(&self, change: &Change) -> bool {
        let ChangeKind::Data(counter) = change.kind else { return true };
        let for_ever = Instant(u64::MAX);
        let told = self.writer.told_filters.get(&self.reader.endpoint.guid).map_or(&[][..], Vec::as_slice);
        // What it was never to think is no excuse.
        let own = |told: &Filter| self.reader.filters.iter().any(|(_, filter)| filter == told);
        let mut told = in_force(told, change.at, for_ever).flatten().filter(own);
        self.reader.filters_between(change.at, for_ever).all(|filter| filter.passes(counter))
            && told.all(|filter| filter.passes(counter))
    }

    /// Whether the writer may write the instance whatever others do (DCPS 1.4 §2.2.3.9.2).
    #[must_use]
    pub fn owns(&self, ledger: &Ledger, instance: u32) -> bool {
        let writer = &self.writer.endpoint;
        if self.reader.endpoint.qos.ownership == Ownership::Shared {
            return true;
        }
        let weakest = writer.ever().map(|qos| qos.ownership_strength).min();
        let mut others = ledger.writers_of(&writer.topic, instance).map(|other| &other.endpoint);
        others.all(|other| {
            let strongest = other.ever().map(|qos| qos.ownership_strength).max();
            other.guid == writer.guid || (weakest, other.guid) > (strongest, writer.guid)
        })
    }

    /// Whether DESTINATION_ORDER lets everything of the instance pass: what one writer wrote in order.
    fn keeps_order(&self, ledger: &Ledger, instance: u32) -> bool {
        let by_source = self.reader.endpoint.qos.destination_order == DestinationOrder::BySourceTimestamp;
        let topic = &self.writer.endpoint.topic;
        !by_source
            || (ledger.writers_of(topic, instance).count() == 1
                && self.writer.changes.is_sorted_by_key(|change| change.source))
    }

    /// Whether PRESENTATION lets the change pass: the set it is in, and those before it, arrive whole.
    fn shows_whole(&self, ledger: &Ledger, change: &Change) -> bool {
        let presentation = self.reader.endpoint.qos.presentation;
        if !presentation.coherent_access {
            return true;
        }
        if !self.reader.is_unlimited() {
            // A set that never fits is never shown.
            return false;
        }
        if presentation.access_scope == AccessScope::Group && !self.is_group_sound(ledger, change.at) {
            return false;
        }
        let Some(set) = change.set.and_then(|set| ledger.sets.get(set)) else { return true };
        set.ended_at.is_some()
            && set.begun_at >= self.promised_from()
            && self.writer.endpoint.qos.history.kind == HistoryKind::KeepAll
    }

    /// Whether every writer of the publisher reaches every reader of the subscriber that it matches, since
    /// before `at`: else a set of GROUP scope, and what comes after it, may wait in vain.
    fn is_group_sound(&self, ledger: &Ledger, at: Instant) -> bool {
        let (Some(publisher), Some(subscriber)) = (self.writer.endpoint.group, self.reader.endpoint.group)
        else {
            return false;
        };
        let sound = |pair: Pair<'_>| {
            pair.is_reliable_to_the_end()
                && pair.reader.is_unlimited()
                && pair.promised_from() <= at
                && pair.has_no_lease()
                && pair.writer.endpoint.qos.history.kind == HistoryKind::KeepAll
        };
        let mut pairs = ledger
            .writers_in(publisher)
            .flat_map(|writer| ledger.readers_in(subscriber).map(move |reader| Pair { writer, reader }));
        pairs.all(|pair| pair.reader_epochs() == 0 || sound(pair))
    }

    /// The writer never has to assert its liveliness.
    #[must_use]
    pub fn has_no_lease(&self) -> bool {
        self.writer.endpoint.qos.liveliness.lease_duration.is_infinite()
    }

    /// The time from which on nothing may be missing, when matched to the end: the last match began on the
    /// writer's side, and on the reader's too when there was more than one. A reader that has answered
    /// nothing yet is not waited for when there is no room.
    #[must_use]
    pub fn promised_from(&self) -> Instant {
        let written = self.writer.endpoint.epochs(self.reader.endpoint.guid);
        let read = self.reader.endpoint.epochs(self.writer.endpoint.guid);
        let start = |epochs: &[Epoch]| epochs.last().map_or(Instant(u64::MAX), |epoch| epoch.start);
        match (written.len(), read.len()) {
            (1, 1) if !self.may_be_left_out(start(written), start(read)) => start(written),
            _ => start(written).max(start(read)),
        }
    }

    /// Whether the reader said nothing for so long that a writer without room, as this one was, need not wait
    /// for it.
    fn may_be_left_out(&self, written: Instant, read: Instant) -> bool {
        let is_in_the_way = |wait: &Epoch| wait.start < read && wait.end.is_none_or(|end| end > written);
        let WriterRecord { waits, blocked_since, .. } = self.writer;
        read.since(written) >= STRANGE_FOR
            && (waits.iter().any(is_in_the_way) || blocked_since.is_some_and(|since| since < read))
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

    /// Samples of one instance that a writer keeps for late joiners, at least: what HISTORY says, and for
    /// TRANSIENT and PERSISTENT what DURABILITY_SERVICE says (DCPS 1.4 §2.2.3.5).
    #[must_use]
    pub fn depth_for_late_joiners(qos: &QosSet) -> usize {
        let service = &qos.durability_service;
        let limits = service.resource_limits;
        match qos.durability {
            Durability::Volatile => 0,
            Durability::TransientLocal => Self::depth(qos),
            // At a limit the oldest leaves, whatever its instance.
            _ if limits.max_samples >= 0 || limits.max_instances >= 0 => 0,
            _ if service.history.kind == HistoryKind::KeepAll => {
                usize::try_from(limits.max_samples_per_instance).unwrap_or(usize::MAX)
            }
            _ => usize::try_from(service.history.depth).unwrap_or(1),
        }
    }

    /// Counters of data from the writer that the reader took, in order.
    #[must_use]
    pub fn delivered(&self) -> Vec<u32> {
        self.reader.data_from(self.writer.endpoint.guid).map(|(_, sample)| sample.counter).collect()
    }
}
