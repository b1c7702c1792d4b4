//! A set of instances in the order of their handles. Usually instances come in that order and leave in it,
//! all that are there: then it is a queue. It is a tree as far as they do not.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, RangeBounds};

use super::instances::InstanceId;
use crate::instance::InstanceHandle;
use crate::shrink::Shrink;

#[derive(Debug, Default)]
pub(super) struct HandleSet {
    /// Each came after those before it, and is greater.
    queue: VecDeque<(InstanceHandle, InstanceId)>,
    /// The others.
    tree: BTreeMap<InstanceHandle, InstanceId>,
}

impl HandleSet {
    /// Adds an instance that is not in it.
    #[inline]
    pub(super) fn insert(&mut self, handle: InstanceHandle, id: InstanceId) {
        if self.queue.back().is_none_or(|(last, _)| *last < handle) {
            self.queue.push_back((handle, id));
        } else {
            self.tree.insert(handle, id);
        }
    }

    /// Removes an instance that is in it.
    #[inline]
    pub(super) fn remove(&mut self, handle: InstanceHandle) {
        if self.queue.front().is_some_and(|(first, _)| *first == handle) {
            self.queue.pop_front();
        } else {
            self.remove_behind(handle);
        }
    }

    #[cold]
    fn remove_behind(&mut self, handle: InstanceHandle) {
        if self.queue.back().is_some_and(|(last, _)| *last == handle) {
            self.queue.pop_back();
        } else if self.tree.remove(&handle).is_none() {
            // From the middle: each moves to the tree once, where that costs no more than if it had come
            // there.
            self.tree.extend(self.queue.drain(..).filter(|(other, _)| *other != handle));
        }
    }

    /// Gives memory back after a flood.
    pub(super) fn trim(&mut self) {
        self.queue.shrink_if_sparse();
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.tree.is_empty()
    }

    /// The first after `from`: its id alone, which fits in a register.
    #[inline(always)]
    pub(super) fn following(&self, from: Bound<InstanceHandle>) -> Option<InstanceId> {
        if self.tree.is_empty() {
            let (handle, id) = self.queue.front()?;
            if (from, Bound::Unbounded).contains(handle) {
                return Some(*id);
            }
        }
        self.entry_following(from).map(|(_, id)| id)
    }

    /// The first after `from`.
    #[cold]
    pub(super) fn entry_following(
        &self,
        from: Bound<InstanceHandle>,
    ) -> Option<(InstanceHandle, InstanceId)> {
        let range = (from, Bound::Unbounded);
        let queued = self.queue.partition_point(|(handle, _)| !range.contains(handle));
        let queued = self.queue.get(queued).copied();
        let other = self.tree.range(range).next().map(|(handle, id)| (*handle, *id));
        match (queued, other) {
            (Some(queued), Some(other)) => Some(queued.min(other)),
            (queued, other) => queued.or(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn handle(number: u8) -> InstanceHandle {
        InstanceHandle([number; 16])
    }

    proptest! {
        #[test]
        fn it_is_an_ordered_set(
            steps in prop::collection::vec((0_u8..3, any::<u8>()), 0..400),
            from in any::<u8>(),
        ) {
            let (mut set, mut model) = (HandleSet::default(), BTreeMap::new());
            let mut next = 0_u8;
            for (step, number) in steps {
                // Many in order, some anywhere.
                let number = if step == 0 { next } else { number };
                next = next.wrapping_add(u8::from(step == 0));
                if step < 2 {
                    if model.insert(handle(number), u32::from(number)).is_none() {
                        set.insert(handle(number), u32::from(number));
                    }
                } else {
                    let first = model.range(handle(number)..).next().map(|(handle, _)| *handle);
                    if let Some(first) = first {
                        model.remove(&first);
                        set.remove(first);
                    }
                }
                for bound in [Bound::Unbounded, Bound::Excluded(handle(from)), Bound::Included(handle(from))] {
                    let expected = model.range((bound, Bound::Unbounded)).next();
                    prop_assert_eq!(set.entry_following(bound), expected.map(|(handle, id)| (*handle, *id)));
                    prop_assert_eq!(set.following(bound), expected.map(|(_, id)| *id));
                }
            }
        }
    }
}
