//! The slots of the samples of a reader. Each is written where it stays until it is taken, field by field,
//! and a slot that was left is the next to be filled: its memory is warm.

use super::instances::Sample;
use crate::shrink;
use crate::tuning::reader::{SLOT_CHECK_TAKES, SLOT_GROWTH_DIVISOR, SLOT_GROWTH_MIN};

/// Index of a slot.
pub(super) type SlotId = u32;

/// The end of a queue.
const NONE: SlotId = SlotId::MAX;

/// All samples of a reader.
#[derive(Debug, Default)]
pub(super) struct Samples {
    slots: Vec<Slot>,
    /// Those that are free, the one left last at the end. Not linked: the next would be known only by what is
    /// in no cache.
    free: Vec<SlotId>,
    /// Since the slots were looked at last.
    takes: u32,
    /// The most slots in use before a take since then.
    peak: usize,
}

#[derive(Debug)]
struct Slot {
    sample: Sample,
    previous: SlotId,
    next: SlotId,
}

/// Samples of one instance, in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    first: SlotId,
    last: SlotId,
    len: u32,
}

impl Queue {
    /// Without samples.
    pub(super) const fn new() -> Self {
        Self { first: NONE, last: NONE, len: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The slot of the first sample.
    pub(super) const fn first(&self) -> Option<SlotId> {
        if self.first == NONE { None } else { Some(self.first) }
    }
}

impl Samples {
    /// A slot to be filled in, which holds what was in it before: it is in no queue.
    #[inline]
    pub(super) fn claim(&mut self) -> SlotId {
        match self.free.pop() {
            Some(at) => at,
            None => self.grow(),
        }
    }

    #[cold]
    fn grow(&mut self) -> SlotId {
        if self.slots.len() == self.slots.capacity() {
            self.slots.reserve_exact((self.slots.len() / SLOT_GROWTH_DIVISOR).max(SLOT_GROWTH_MIN));
        }
        self.slots.push(Slot { sample: Sample::blank(), previous: NONE, next: NONE });
        (self.slots.len() - 1) as SlotId
    }

    #[inline]
    pub(super) fn get(&self, at: SlotId) -> Option<&Sample> {
        self.slots.get(at as usize).map(|slot| &slot.sample)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: SlotId) -> Option<&mut Sample> {
        self.slots.get_mut(at as usize).map(|slot| &mut slot.sample)
    }

    /// The slot after `at` in its queue.
    #[inline]
    pub(super) fn after(&self, at: SlotId) -> Option<SlotId> {
        self.slots.get(at as usize).map(|slot| slot.next).filter(|next| *next != NONE)
    }

    /// Puts a claimed slot into `queue`: after `previous`, or in front.
    #[inline]
    pub(super) fn insert(&mut self, queue: &mut Queue, at: SlotId, previous: Option<SlotId>) {
        let previous = previous.unwrap_or(NONE);
        let next = match self.slots.get_mut(previous as usize) {
            Some(previous) => std::mem::replace(&mut previous.next, at),
            None => std::mem::replace(&mut queue.first, at),
        };
        match self.slots.get_mut(next as usize) {
            Some(next) => next.previous = at,
            None => queue.last = at,
        }
        if let Some(slot) = self.slots.get_mut(at as usize) {
            (slot.previous, slot.next) = (previous, next);
        }
        queue.len += 1;
    }

    /// Puts a claimed slot at the end of `queue`.
    #[inline]
    pub(super) fn push(&mut self, queue: &mut Queue, at: SlotId) {
        let last = (queue.last != NONE).then_some(queue.last);
        self.insert(queue, at, last);
    }

    /// Frees a slot that is in no queue.
    pub(super) fn free(&mut self, at: SlotId) {
        if let Some(slot) = self.slots.get_mut(at as usize) {
            slot.sample.payload.vacate(at as usize);
            self.free.push(at);
        }
    }

    /// Takes a slot out of its queue and frees it. What it holds can be read until the next is claimed.
    #[inline(always)]
    pub(super) fn remove(&mut self, queue: &mut Queue, at: SlotId) {
        let Some(slot) = self.slots.get_mut(at as usize) else { return };
        slot.sample.payload.vacate(at as usize);
        let (previous, next) = (slot.previous, slot.next);
        self.free.push(at);
        match self.slots.get_mut(previous as usize) {
            Some(previous) => previous.next = next,
            None => queue.first = next,
        }
        match self.slots.get_mut(next as usize) {
            Some(next) => next.previous = previous,
            None => queue.last = previous,
        }
        queue.len -= 1;
    }

    /// Samples are about to be taken. Returns whether it is time to look for memory that is not in use.
    #[inline]
    pub(super) fn note_take(&mut self) -> bool {
        self.peak = self.peak.max(self.slots.len() - self.free.len());
        self.takes += 1;
        self.takes >= SLOT_CHECK_TAKES
    }

    /// What was in use before now is no measure any more.
    pub(super) fn forget_peak(&mut self) {
        self.peak = self.slots.len() - self.free.len();
    }

    /// Gives memory back where far less was in use lately.
    pub(super) fn trim(&mut self) {
        self.takes = 0;
        if std::mem::take(&mut self.peak) < self.slots.len() / 4 {
            shrink::trim(&mut self.slots, &mut self.free);
        }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// The samples of `queue`, with their slots.
    pub(super) fn iter(&self, queue: Queue) -> impl Iterator<Item = (SlotId, &Sample)> {
        let mut at = queue.first;
        std::iter::from_fn(move || {
            let slot = self.slots.get(at as usize)?;
            Some((std::mem::replace(&mut at, slot.next), &slot.sample))
        })
    }

    /// The slot of the first sample of `queue` that is wanted.
    pub(super) fn find(&self, queue: Queue, wanted: impl Fn(&Sample) -> bool) -> Option<SlotId> {
        self.iter(queue).find(|(_, sample)| wanted(sample)).map(|(at, _)| at)
    }

    /// As [`Self::iter`], from the last to the first.
    pub(super) fn backwards(&self, queue: Queue) -> impl Iterator<Item = (SlotId, &Sample)> {
        let mut at = queue.last;
        std::iter::from_fn(move || {
            let slot = self.slots.get(at as usize)?;
            Some((std::mem::replace(&mut at, slot.previous), &slot.sample))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn queues_share_places_and_keep_their_orders(
            steps in prop::collection::vec((0_u8..4, 0_usize..2, any::<prop::sample::Index>()), 0..300),
        ) {
            let mut samples = Samples::default();
            let mut queues = [Queue::new(); 2];
            let mut model = [const { Vec::new() }; 2];
            for (id, (step, which, index)) in (0..).zip(steps) {
                let (queue, expected) = (&mut queues[which], &mut model[which]);
                if step == 0 && !expected.is_empty() {
                    let (at, _) = expected.remove(index.index(expected.len()));
                    samples.remove(queue, at);
                } else {
                    let at = samples.claim();
                    samples.get_mut(at).unwrap().id = id;
                    let position = if step == 1 { index.index(expected.len() + 1) } else { expected.len() };
                    match step {
                        1 => samples.insert(queue, at, position.checked_sub(1).map(|before| expected[before].0)),
                        _ => samples.push(queue, at),
                    }
                    expected.insert(position, (at, id));
                }
                for (queue, expected) in queues.iter().zip(&model) {
                    prop_assert_eq!(queue.len(), expected.len());
                    prop_assert_eq!(queue.first(), expected.first().map(|(at, _)| *at));
                    let found: Vec<_> = samples.iter(*queue).map(|(at, sample)| (at, sample.id)).collect();
                    prop_assert_eq!(&found, expected);
                    let mut back: Vec<_> = samples.backwards(*queue).map(|(at, sample)| (at, sample.id)).collect();
                    back.reverse();
                    prop_assert_eq!(&back, expected);
                }
            }
            let held: usize = queues.iter().map(Queue::len).sum();
            prop_assert!(samples.slots.len() <= held.max(300));
        }
    }
}
