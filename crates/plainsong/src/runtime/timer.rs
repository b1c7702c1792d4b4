//! One thread that calls state machines when they are due, and sleeps for as long as nothing is.

use std::collections::HashMap;
use std::sync::PoisonError;

use plainsong_proto::guid::Guid;
use plainsong_proto::time::Instant;

use crate::base::sync::{self, Condvar, Mutex, lock};

/// The deadlines of all state machines of a domain.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    state: Mutex<State>,
    earlier: Condvar,
}

#[derive(Debug, Default)]
struct State {
    heap: Heap,
    /// What the thread sleeps for: `None` while it is awake.
    sleeping_until: Option<u64>,
    stopped: bool,
}

/// A binary heap with one entry for each GUID, which can be moved: nothing stale, no growth in the steady
/// state.
#[derive(Debug, Default)]
struct Heap {
    entries: Vec<(u64, Guid)>,
    positions: HashMap<Guid, usize>,
}

impl Timer {
    /// Sets the one deadline of `guid`; wakes the thread only when it would oversleep.
    pub(crate) fn set(&self, guid: Guid, at: Instant) {
        let mut state = lock(&self.state);
        state.heap.set(guid, at.0);
        if state.sleeping_until.is_some_and(|until| at.0 < until) {
            state.sleeping_until = None;
            // Else the thread wakes only to wait for the lock.
            drop(state);
            self.earlier.notify_one();
        }
    }

    /// Forgets `guid`.
    pub(crate) fn remove(&self, guid: Guid) {
        lock(&self.state).heap.remove(guid);
    }

    /// When the next is due.
    #[cfg(all(feature = "sim", not(test)))]
    pub(crate) fn next(&self) -> Option<Instant> {
        lock(&self.state).heap.first().map(Instant)
    }

    /// Makes [`Timer::run`] return.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.earlier.notify_one();
    }

    /// Calls `fire` for each GUID that is due, with no lock held, until stopped.
    pub(crate) fn run(&self, mut fire: impl FnMut(Guid)) {
        let mut state = lock(&self.state);
        while !state.stopped {
            let now = sync::mono();
            if let Some(guid) = state.heap.pop_due(now.0) {
                drop(state);
                fire(guid);
                // It may have sent a burst of a long sample: what waited for the core meanwhile goes before
                // the next.
                sync::yield_now();
                state = lock(&self.state);
                continue;
            }
            let next = state.heap.first();
            state.sleeping_until = Some(next.unwrap_or(u64::MAX));
            state = match next {
                Some(at) => {
                    let timeout = sync::until(Instant(at));
                    let waited = self.earlier.wait_timeout(state, timeout);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.earlier.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
            state.sleeping_until = None;
        }
    }
}

impl Timer {
    /// Calls `fire` for one GUID that is due, if there is one: whether there was. On the thread of
    /// [`Self::run`].
    pub(crate) fn fire_due(&self, fire: impl FnOnce(Guid)) -> bool {
        let due = lock(&self.state).heap.pop_due(sync::mono().0);
        due.map(fire).is_some()
    }
}

impl Heap {
    fn first(&self) -> Option<u64> {
        self.entries.first().map(|(at, _)| *at)
    }

    fn set(&mut self, guid: Guid, at: u64) {
        let position = match self.positions.get(&guid) {
            Some(position) => *position,
            None => {
                self.entries.push((at, guid));
                self.positions.insert(guid, self.entries.len() - 1);
                self.entries.len() - 1
            }
        };
        self.entries[position].0 = at;
        self.settle(position);
    }

    fn remove(&mut self, guid: Guid) {
        let Some(position) = self.positions.remove(&guid) else { return };
        self.entries.swap_remove(position);
        if let Some((_, moved)) = self.entries.get(position) {
            self.positions.insert(*moved, position);
            self.settle(position);
        }
    }

    fn pop_due(&mut self, now: u64) -> Option<Guid> {
        let (_, guid) = *self.entries.first().filter(|(at, _)| *at <= now)?;
        self.remove(guid);
        Some(guid)
    }

    /// Moves the entry at `position` up or down to where it belongs.
    fn settle(&mut self, mut position: usize) {
        while position > 0 && self.entries[position] < self.entries[(position - 1) / 2] {
            self.swap(position, (position - 1) / 2);
            position = (position - 1) / 2;
        }
        loop {
            let children = 2 * position + 1..(2 * position + 3).min(self.entries.len());
            let Some(least) = children.min_by_key(|child| self.entries[*child]) else { return };
            if self.entries[position] <= self.entries[least] {
                return;
            }
            self.swap(position, least);
            position = least;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.entries.swap(a, b);
        for position in [a, b] {
            self.positions.insert(self.entries[position].1, position);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::mpsc;
    use std::time::Duration as StdDuration;

    use plainsong_proto::guid::EntityId;
    use plainsong_proto::guid::GuidPrefix;
    use plainsong_proto::time::Duration;

    use super::*;
    use crate::base::clock;

    fn guid(key: u32) -> Guid {
        GuidPrefix::UNKNOWN.entity(EntityId::user_writer(key, true))
    }

    #[test]
    fn the_heap_pops_in_order_whatever_was_moved_and_removed() {
        let (mut heap, mut model) = (Heap::default(), BTreeMap::new());
        let mut random: u64 = 1;
        for _ in 0..if cfg!(miri) { 100 } else { 5_000 } {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (key, at) = ((random >> 40) as u32 % 97, random >> 50);
            if random >> 33 & 7 == 0 {
                heap.remove(guid(key));
                model.remove(&guid(key));
            } else {
                heap.set(guid(key), at);
                model.insert(guid(key), at);
            }
        }
        let mut expected: Vec<_> = model.into_iter().map(|(guid, at)| (at, guid)).collect();
        expected.sort_unstable();
        for (at, guid) in expected {
            assert!(heap.pop_due(at - u64::from(at > 0)).is_none_or(|popped| popped == guid && at == 0));
            if at > 0 {
                assert_eq!(heap.pop_due(at), Some(guid));
            }
        }
        assert!(heap.entries.is_empty() && heap.positions.is_empty());
    }

    #[test]
    fn an_earlier_deadline_wakes_the_thread_and_stop_ends_it() {
        let timer = Timer::default();
        let (sender, fired) = mpsc::channel();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| timer.run(|guid| sender.send((guid, clock::mono())).unwrap()));
            let (late, soon) = (
                clock::mono().after(Duration::from_secs(3_600)).unwrap(),
                clock::mono().after(Duration::from_millis(30)).unwrap(),
            );
            timer.set(guid(1), late);
            timer.set(guid(2), soon);
            let (first, at) = fired.recv_timeout(StdDuration::from_secs(10)).unwrap();
            assert_eq!(first, guid(2));
            assert!(at >= soon);
            timer.set(guid(1), at);
            assert_eq!(fired.recv_timeout(StdDuration::from_secs(10)).unwrap().0, guid(1));
            timer.stop();
            thread.join().unwrap();
        });
    }

    #[test]
    fn a_thread_with_nothing_due_stays_asleep() {
        let timer = Timer::default();
        std::thread::scope(|scope| {
            scope.spawn(|| timer.run(|_| ()));
            let far = clock::mono().after(Duration::from_secs(3_600)).unwrap();
            timer.set(guid(1), far);
            while lock(&timer.state).sleeping_until != Some(far.0) {
                std::thread::yield_now();
            }
            timer.set(guid(2), Instant(far.0 + 1));
            assert_eq!(lock(&timer.state).sleeping_until, Some(far.0), "a later deadline does not wake it");
            timer.stop();
        });
    }
}
