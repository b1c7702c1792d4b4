//! Publishers and subscribers: coherent sets, and accesses (DCPS 1.4 §2.2.2.4.1.10, §2.2.2.5.2.8).

use std::sync::Arc;

use plainsong_proto::guid::EntityId;
use plainsong_proto::qos::{AccessScope, QosSet};
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::writer::WriterGroup;

use super::{Happening, World};
use crate::ledger::SetRecord;
use crate::node::State;

/// A publisher or subscriber.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) node: usize,
    pub(super) member: usize,
    pub(super) entity: EntityId,
    /// What its writers share.
    pub(super) numbering: Arc<WriterGroup>,
    /// The coherent set being written, and the writers that take part.
    pub(super) set: Option<(usize, Vec<usize>)>,
    /// The group number with which it begins.
    pub(super) set_first: SequenceNumber,
    /// The application looks at its readers.
    pub(super) accessing: bool,
}

/// An application may look at a subscriber for so long.
const ACCESS_NANOS_MAX: u64 = 30_000_000;

/// Whether all readers of the subscriber are looked at together.
fn is_accessed(qos: &QosSet) -> bool {
    let presentation = qos.presentation;
    presentation.access_scope == AccessScope::Group
        && (presentation.coherent_access || presentation.ordered_access)
}

impl World {
    /// Creates a publisher; its number.
    pub fn add_publisher(&mut self, node: usize, member: usize) -> usize {
        self.add_group(node, member, 0x08)
    }

    /// Creates a subscriber; its number.
    pub fn add_subscriber(&mut self, node: usize, member: usize) -> usize {
        self.add_group(node, member, 0x09)
    }

    fn add_group(&mut self, node: usize, member: usize, kind: u8) -> usize {
        let index = self.groups.len();
        let entity = EntityId::with_kind(index as u32 + 1, kind);
        self.groups.push(Group {
            node,
            member,
            entity,
            numbering: Arc::default(),
            set: None,
            set_first: SequenceNumber(0),
            accessing: false,
        });
        index
    }

    /// Whether the process of a publisher or subscriber runs; `None` when it is gone.
    #[must_use]
    pub fn is_group_running(&self, group: usize) -> Option<bool> {
        match self.nodes[self.groups[group].node].state {
            State::Running => Some(true),
            State::Paused => Some(false),
            State::Gone => None,
        }
    }

    /// Begins a coherent set.
    pub fn begin_set(&mut self, group: usize) {
        if self.groups[group].set.is_some() || self.is_group_running(group) != Some(true) {
            return;
        }
        let first = self.groups[group].numbering.last().next();
        let set = self.ledger.sets.len();
        let writers: Vec<usize> = self.living_writers(group);
        writers.iter().for_each(|writer| self.begin_part(*writer, first));
        self.note(self.groups[group].node, 21, || format!("publisher {group} begins set {set}"));
        self.ledger.sets.push(SetRecord { group, begun_at: self.at, ended_at: None });
        self.groups[group].set = Some((set, writers));
        self.groups[group].set_first = first;
    }

    fn begin_part(&mut self, writer: usize, first: SequenceNumber) {
        let place = self.writers[writer];
        self.call(place.node, |node, call| {
            if let Some(local) = node.members[place.member].writers.get_mut(&place.entity) {
                local.writer.edit(call.now, |writer| writer.begin_coherent_changes(first));
            }
        });
    }

    /// A new writer takes part in the set that its publisher is writing.
    pub(super) fn join_set(&mut self, group: usize, writer: usize) {
        let first = self.groups[group].set_first;
        if let Some((_, writers)) = &mut self.groups[group].set {
            writers.push(writer);
            self.begin_part(writer, first);
        }
    }

    /// Ends the coherent set.
    pub fn end_set(&mut self, group: usize) {
        if self.is_group_running(group) != Some(true) {
            return;
        }
        let Some((set, writers)) = self.groups[group].set.take() else { return };
        let end = self.groups[group].numbering.advance();
        self.note(self.groups[group].node, 22, || format!("publisher {group} ends set {set}"));
        let at = self.at;
        for writer in writers {
            let place = self.writers[writer];
            self.call(place.node, |node, call| {
                let now = node.options.clock.now(at);
                if let Some(local) = node.members[place.member].writers.get_mut(&place.entity) {
                    call.of_writer(&mut local.writer, |writer, out| {
                        writer.end_coherent_changes(now, end, out);
                    });
                }
                node.settle(place.member, now, call);
            });
        }
        self.ledger.sets[set].ended_at = Some(self.at);
    }

    /// Ends all coherent sets that are still being written.
    pub fn end_sets(&mut self) {
        (0..self.groups.len()).for_each(|group| self.end_set(group));
    }

    /// The set that what `writer` writes now belongs to.
    pub(super) fn open_set(&self, writer: usize) -> Option<usize> {
        let endpoint = &self.ledger.writers[writer].endpoint;
        let (set, writers) = self.groups[endpoint.group?].set.as_ref()?;
        (endpoint.qos.presentation.coherent_access && writers.contains(&writer)).then_some(*set)
    }

    /// What an endpoint of this QoS shares with the others of its publisher.
    pub(super) fn numbering(&self, group: Option<usize>, qos: &QosSet) -> Option<Arc<WriterGroup>> {
        let group = group.filter(|_| qos.presentation.access_scope == AccessScope::Group)?;
        Some(Arc::clone(&self.groups[group].numbering))
    }

    /// The number of what a writer wrote last among the changes of its publisher.
    pub(super) fn last_group_number(&self, writer: usize) -> Option<i64> {
        let endpoint = &self.ledger.writers[writer].endpoint;
        Some(self.numbering(endpoint.group, &endpoint.qos)?.last().0)
    }

    fn living_writers(&self, group: usize) -> Vec<usize> {
        let of_group = |writer: &usize| {
            let endpoint = &self.ledger.writers[*writer].endpoint;
            endpoint.group == Some(group) && endpoint.is_alive()
        };
        (0..self.writers.len()).filter(of_group).collect()
    }

    fn living_readers(&self, group: usize) -> Vec<usize> {
        let of_group = |reader: &usize| {
            let endpoint = &self.ledger.readers[*reader].endpoint;
            endpoint.group == Some(group) && endpoint.is_alive()
        };
        (0..self.readers.len()).filter(of_group).collect()
    }

    /// The subscriber whose readers are all looked at when one of them is.
    pub(super) fn accessed_group(&self, reader: usize) -> Option<usize> {
        let endpoint = &self.ledger.readers[reader].endpoint;
        endpoint.group.filter(|_| is_accessed(&endpoint.qos))
    }

    /// Takes everything that the readers of a subscriber have, in one access.
    pub(super) fn take_group(&mut self, group: usize) -> usize {
        if self.is_group_running(group) != Some(true) || self.groups[group].accessing {
            return 0;
        }
        self.begin_access(group);
        self.end_access(group)
    }

    /// The application begins to look at a subscriber and takes its time.
    pub(super) fn begin_long_access(&mut self, group: usize) {
        if self.is_group_running(group) == Some(true) && !self.groups[group].accessing {
            self.begin_access(group);
            let lasting = self.rng.below(ACCESS_NANOS_MAX);
            self.push(plainsong_proto::time::Instant(self.at.0 + lasting), Happening::EndAccess { group });
        }
    }

    fn begin_access(&mut self, group: usize) {
        self.groups[group].accessing = true;
        let readers = self.entities(group);
        let Group { node, member, .. } = self.groups[group];
        self.call(node, |node, call| {
            node.settle_groups(member, &readers, call);
            for reader in &readers {
                if let Some(local) = node.members[member].readers.get_mut(reader) {
                    local.reader.edit(call.now, |reader| reader.begin_access());
                }
            }
        });
    }

    /// Takes everything the readers have and lets in what waited meanwhile.
    pub(super) fn end_access(&mut self, group: usize) -> usize {
        match self.is_group_running(group) {
            Some(true) => {}
            Some(false) => {
                let later = plainsong_proto::time::Instant(self.at.0 + ACCESS_NANOS_MAX);
                self.push(later, Happening::EndAccess { group });
                return 0;
            }
            None => return 0,
        }
        self.accesses += 1;
        let taken = self.living_readers(group).into_iter().map(|reader| self.take_one(reader)).sum();
        self.groups[group].accessing = false;
        let readers = self.entities(group);
        let Group { node, member, .. } = self.groups[group];
        let at = self.at;
        self.call(node, |node, call| {
            let now = node.options.clock.now(at);
            for reader in &readers {
                if let Some(local) = node.members[member].readers.get_mut(reader) {
                    local.reader.run(now, call.out, |reader, out| reader.end_access(now, out));
                }
            }
            node.settle(member, now, call);
            node.settle_groups(member, &readers, call);
        });
        taken
    }

    /// A reader of a subscriber has its part of a coherent set of GROUP scope.
    pub(super) fn group_part(&mut self, reader: usize) {
        let Some(group) = self.ledger.readers[reader].endpoint.group else { return };
        // An access that is under way looks at its end.
        if !self.groups[group].accessing {
            let readers = self.entities(group);
            let Group { node, member, .. } = self.groups[group];
            self.call(node, |node, call| node.settle_groups(member, &readers, call));
        }
    }

    fn entities(&self, group: usize) -> Vec<EntityId> {
        self.living_readers(group).into_iter().map(|reader| self.readers[reader].entity).collect()
    }
}
