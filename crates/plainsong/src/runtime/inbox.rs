//! What waits for whoever is busy with an endpoint.

use std::collections::VecDeque;

use crate::base::sync::atomic::{AtomicUsize, Ordering};
use crate::base::sync::{Mutex, lock};

/// More than this waits for the lock instead.
const CALLS_MAX: usize = 64;

/// A short queue. Looking whether it is empty takes no lock.
#[derive(Debug)]
pub(super) struct Inbox<C> {
    calls: Mutex<VecDeque<C>>,
    count: AtomicUsize,
}

impl<C> Default for Inbox<C> {
    fn default() -> Self {
        Self { calls: Mutex::default(), count: AtomicUsize::new(0) }
    }
}

impl<C> Inbox<C> {
    /// # Errors
    /// The queue is full: the call comes back.
    pub(super) fn push(&self, call: C) -> Result<(), C> {
        let mut calls = lock(&self.calls);
        if calls.len() >= CALLS_MAX {
            return Err(call);
        }
        calls.push_back(call);
        self.count.store(calls.len(), Ordering::SeqCst);
        Ok(())
    }

    pub(super) fn pop(&self) -> Option<C> {
        if self.is_empty() {
            return None;
        }
        let mut calls = lock(&self.calls);
        let call = calls.pop_front();
        self.count.store(calls.len(), Ordering::SeqCst);
        call
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_out_in_order_and_are_bounded() {
        let inbox = Inbox::default();
        assert!(inbox.is_empty());
        (0..CALLS_MAX).for_each(|call| inbox.push(call).unwrap());
        assert_eq!(inbox.push(99), Err(99));
        assert_eq!(
            (0..CALLS_MAX).map(|_| inbox.pop().unwrap()).collect::<Vec<_>>(),
            Vec::from_iter(0..CALLS_MAX)
        );
        assert_eq!(inbox.pop(), None);
    }
}
