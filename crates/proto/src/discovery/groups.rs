//! Which writers each publisher has whose changes have an order in it, and when that is told.
//!
//! Readers know the writers of a publisher by a digest of all of them. To make it anew for each of thousands
//! of writers that come or go would cost the square of their number: of a publisher with many, changes are
//! told together.

use std::collections::{BTreeMap, BTreeSet};

use super::endpoint::all_of;
use crate::guid::{Guid, GuidPrefix};
use crate::time::Instant;
use crate::tuning::discovery::{GROUP_AT_ONCE_MAX, GROUP_PAUSE};

/// The publishers, by their GUID.
#[derive(Debug, Default)]
pub(super) struct Groups {
    writers: BTreeMap<Guid, BTreeSet<Guid>>,
    /// Publishers of which a change was not told yet.
    changed: BTreeSet<Guid>,
    notified_at: Option<Instant>,
}

impl Groups {
    pub(super) fn add(&mut self, publisher: Guid, writer: Guid) {
        self.writers.entry(publisher).or_default().insert(writer);
    }

    pub(super) fn remove(&mut self, publisher: Guid, writer: Guid) {
        if let Some(writers) = self.writers.get_mut(&publisher) {
            writers.remove(&writer);
            if writers.is_empty() {
                self.writers.remove(&publisher);
            }
        }
    }

    /// Forgets the publishers of a participant.
    pub(super) fn remove_all(&mut self, prefix: GuidPrefix) {
        let publishers: Vec<Guid> = self.writers.range(all_of(prefix)).map(|(guid, _)| *guid).collect();
        for publisher in publishers {
            self.writers.remove(&publisher);
            self.changed.remove(&publisher);
        }
    }

    /// The writers of a publisher, in order.
    pub(super) fn writers(&self, publisher: Guid) -> impl Iterator<Item = Guid> + '_ {
        self.writers.get(&publisher).into_iter().flatten().copied()
    }

    /// Whether a change of a publisher is told at once; if not, it is remembered.
    pub(super) fn notifies_at_once(&mut self, publisher: Guid) -> bool {
        let few = self.writers.get(&publisher).is_none_or(|writers| writers.len() <= GROUP_AT_ONCE_MAX);
        if !few {
            self.changed.insert(publisher);
        }
        few
    }

    /// The publishers whose changes are to be told now.
    pub(super) fn take_due(&mut self, now: Instant) -> BTreeSet<Guid> {
        if self.next_timeout().is_none_or(|at| at > now) {
            return BTreeSet::new();
        }
        self.notified_at = Some(now);
        std::mem::take(&mut self.changed)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let due = self.notified_at.map_or(Some(Instant(0)), |at| at.after(GROUP_PAUSE));
        due.filter(|_| !self.changed.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::discovery::Command;
    use crate::discovery::matching::{Endpoint, Matching};
    use crate::discovery::path::EndpointPath;
    use crate::guid::EntityId;
    use crate::locator::Locator;
    use crate::outbox::Outbox;
    use crate::qos::{AccessScope, QosSet};
    use crate::types::TypeIds;
    use crate::types::library::TypeLimits;
    use crate::wire::GroupDigest;

    const OWN: GuidPrefix = GuidPrefix([1; 12]);
    const OTHER: GuidPrefix = GuidPrefix([2; 12]);

    fn endpoint(mut qos: QosSet) -> Arc<Endpoint> {
        qos.presentation.access_scope = AccessScope::Group;
        qos.presentation.ordered_access = true;
        Arc::new(Endpoint {
            vendor: [0, 0],
            topic: "t".into(),
            type_name: "T".into(),
            qos,
            unicast: Vec::new(),
            multicast: Vec::new(),
            path: EndpointPath {
                locators: vec![Locator::udp([10, 0, 0, 2].into(), 7411)],
                ..Default::default()
            },
            receive_bytes: 0,
            expects_inline_qos: false,
            group: EntityId([0, 0, 9, 8]),
            content_filter: None,
            type_ids: TypeIds::default(),
            knows_our_types: true,
            description: None,
            process_types: None,
        })
    }

    fn writer(number: u32) -> Guid {
        let [_, a, b, c] = number.to_be_bytes();
        OTHER.entity(EntityId([a, b, c, 0x02]))
    }

    fn notified(out: &mut Outbox) -> Vec<GroupDigest> {
        let digest = |command: Command| match command {
            Command::GroupWriters { writers, .. } => Some(writers),
            _ => None,
        };
        std::mem::take(&mut out.commands).into_iter().filter_map(digest).collect()
    }

    #[test]
    fn writers_of_a_publisher_that_come_and_go_by_thousands_are_told_of_together() {
        let mut matching = Matching::new(OWN, 100, TypeLimits::default());
        let mut out = Outbox::default();
        matching.insert(OWN.entity(EntityId([0, 0, 1, 0x07])), endpoint(QosSet::reader()), &mut out);
        (1..=4_000).for_each(|number| matching.insert(writer(number), endpoint(QosSet::writer()), &mut out));
        assert_eq!(notified(&mut out).len(), GROUP_AT_ONCE_MAX);
        let due = matching.groups_next_timeout().expect("the rest is to be told");
        matching.groups_timeout(due.max(Instant(1)), &mut out);
        let all = GroupDigest::of((1..=4_000).map(|number| writer(number).entity));
        assert_eq!((notified(&mut out), matching.groups_next_timeout()), (vec![all], None));
        matching.remove(writer(1), &mut out);
        let due = matching.groups_next_timeout().expect("one less is a change");
        assert_eq!(due, Instant(1).after(GROUP_PAUSE).unwrap());
        matching.groups_timeout(Instant(2), &mut out);
        assert!(notified(&mut out).is_empty(), "not before its time");
        (2..=3_999).for_each(|number| matching.remove(writer(number), &mut out));
        assert_eq!(notified(&mut out).last(), Some(&GroupDigest::of([writer(4_000).entity])));
        matching.groups_timeout(due, &mut out);
        notified(&mut out);
        (1..=4_000).for_each(|number| matching.insert(writer(number), endpoint(QosSet::writer()), &mut out));
        notified(&mut out);
        let (all, true) = matching.some_of(OTHER, 4_000) else { panic!("there are more") };
        matching.remove_gone(OTHER, &all, &mut out);
        assert!(notified(&mut out).is_empty(), "nobody is matched with it any more");
        assert_eq!(matching.groups_next_timeout(), None);
    }
}
