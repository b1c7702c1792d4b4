//! Coherent sets as a writer marks them (PRESENTATION, DCPS 1.4 §2.2.3.6; RTPS 2.5 §8.7.5, §8.7.6).
//!
//! Every change of a set carries the number of its first change. The end of a set is a change without
//! data: it needs no instance, counts towards no limit, and stays in the history as long as anything of
//! its set does, so that late joiners get sets whole.

use crate::instance::InstanceHandle;
use crate::outbox::Outbox;
use crate::payload::{NewPayload, PayloadView};
use crate::qos::AccessScope;
use crate::seq::SequenceNumber;
use crate::time::Now;

use super::change::{Change, ChangeKind, Marks, Verdict};
use super::instances;
use crate::writer::{Writer, expiry};

/// The coherent set being written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenSet {
    first: SequenceNumber,
    group: Option<SequenceNumber>,
}

impl Writer {
    /// Begins a coherent set: what is written until [`Self::end_coherent_changes`] is shown by coherent
    /// readers at once or never. `group` is the group number of the set's first change, for GROUP scope.
    /// Without coherent access in the QoS, and inside a set, this means nothing.
    pub fn begin_coherent_changes(&mut self, group: SequenceNumber) {
        let presentation = self.config.qos.presentation;
        if presentation.coherent_access && self.open_set.is_none() {
            let group = (presentation.access_scope == AccessScope::Group).then_some(group);
            self.void_plan();
            self.open_set = Some(OpenSet { first: self.history.last().next(), group });
        }
    }

    /// Ends the coherent set and tells the readers. `group` is the group number after those of the set:
    /// under GROUP scope every writer of the publisher ends the set, also one that wrote nothing in it.
    pub fn end_coherent_changes(&mut self, now: Now, group: SequenceNumber, out: &mut Outbox) {
        let Some(open) = self.open_set.take() else { return };
        self.void_plan();
        if open.group.is_none() && self.history.last() < open.first {
            return;
        }
        let marks = Marks {
            set: Some(open.first),
            group_set: open.group,
            group_number: open.group.map(|_| group),
            is_end: true,
        };
        let change = Change {
            kind: ChangeKind::Alive,
            hash: InstanceHandle::NIL,
            payload: PayloadView::Octets(&[]),
            source_timestamp: now.wall,
            expires: expiry(now, now.wall, self.config.qos.lifespan),
            marks: Some(&marks),
            verdict: Verdict::ALL,
        };
        let number = self.history.push(instances::NIL, &change, NewPayload::Octets(&[]), &mut self.instances);
        self.send_new(now, number, None, out);
        self.settle(now);
    }

    /// The marks of a change with data that is written now.
    pub(crate) fn marks(&mut self) -> Option<Marks> {
        if self.open_set.is_none() && self.config.group.is_none() {
            return None;
        }
        Some(Marks {
            set: self.open_set.map(|open| open.first),
            group_set: self.open_set.and_then(|open| open.group),
            group_number: self.config.group.as_ref().map(|group| group.advance()),
            is_end: false,
        })
    }
}
