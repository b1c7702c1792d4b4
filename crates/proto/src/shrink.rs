//! Tables give back the memory of what left them, as after a flood.

use crate::tuning::memory::{HEAP_TRIM_AFTER, SHRINK_ENTRIES_MIN};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hash};

/// A table that never gives memory back by itself.
pub(crate) trait Shrink {
    /// Gives memory back where less than a quarter is in use. Half of what stays is free, so that many
    /// entries come or go before the table moves again.
    fn shrink_if_sparse(&mut self);
}

/// What is to stay of `capacity`, if that is to change.
fn wanted(used: usize, capacity: usize) -> Option<usize> {
    (capacity > SHRINK_ENTRIES_MIN && used < capacity / 4).then(|| (2 * used).max(SHRINK_ENTRIES_MIN))
}

impl<T> Shrink for Vec<T> {
    fn shrink_if_sparse(&mut self) {
        if let Some(capacity) = wanted(self.len(), self.capacity()) {
            self.shrink_to(capacity);
        }
    }
}

impl<T> Shrink for VecDeque<T> {
    fn shrink_if_sparse(&mut self) {
        if let Some(capacity) = wanted(self.len(), self.capacity()) {
            self.shrink_to(capacity);
        }
    }
}

impl<K: Eq + Hash, V, S: BuildHasher> Shrink for HashMap<K, V, S> {
    fn shrink_if_sparse(&mut self) {
        if let Some(capacity) = wanted(self.len(), self.capacity()) {
            self.shrink_to(capacity);
        }
    }
}

/// Entries that are known by their index, and the indices that are free: those at the end are given back, and
/// the lowest is used next, so that the others come to the end.
pub(crate) fn trim<T>(slots: &mut Vec<T>, free: &mut Vec<u32>) {
    free.sort_unstable_by(|one, other| other.cmp(one));
    let at_end = free.iter().zip((0..slots.len()).rev()).take_while(|(free, last)| **free as usize == *last);
    let at_end = at_end.count();
    slots.truncate(slots.len() - at_end);
    free.drain(..at_end);
    slots.shrink_if_sparse();
    free.shrink_if_sparse();
}

/// How many things were forgotten, each with memory of its own.
#[derive(Debug, Default)]
pub(crate) struct Freed(usize);

impl Freed {
    /// Whether that makes many, now for the first time.
    pub(crate) const fn note(&mut self, things: usize) -> bool {
        let before = self.0;
        self.0 = before.saturating_add(things);
        before < HEAP_TRIM_AFTER && self.0 >= HEAP_TRIM_AFTER
    }

    /// Whether there were many; then the count begins anew.
    pub(crate) const fn take(&mut self) -> bool {
        let is_much = self.0 >= HEAP_TRIM_AFTER;
        if is_much {
            self.0 = 0;
        }
        is_much
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_gives_memory_back_when_little_is_left() {
        let mut table: HashMap<u32, u32> = (0..100_000).map(|number| (number, number)).collect();
        let full = table.capacity();
        table.shrink_if_sparse();
        assert_eq!(table.capacity(), full, "it is in use");
        table.retain(|number, _| *number < 10);
        table.shrink_if_sparse();
        assert!((10..4 * SHRINK_ENTRIES_MIN).contains(&table.capacity()));
        let before = table.capacity();
        table.clear();
        table.shrink_if_sparse();
        assert_eq!(table.capacity(), before, "what is small stays as it is");
    }

    #[test]
    fn slots_at_the_end_are_given_back_and_the_lowest_is_used_next() {
        let mut slots: Vec<u32> = (0..10_000).collect();
        let mut free: Vec<u32> = (0..10_000).filter(|at| ![1, 40].contains(at)).collect();
        trim(&mut slots, &mut free);
        assert_eq!((slots.len(), free.len(), free.pop()), (41, 39, Some(0)));
        assert!(slots.capacity() <= SHRINK_ENTRIES_MIN && free.capacity() <= SHRINK_ENTRIES_MIN);
    }
}
