//! What a node sends to itself: endpoints of one process reach each other by a queue in its private memory.
//!
//! One thread at a time receives from it, in order. That is the receiver of the node or, while that sleeps,
//! a thread that has sent something: it would have to wake the receiver, and spares that. Who comes while
//! another sender receives leaves its record to that one, which looks again when it has stopped.

use std::collections::VecDeque;
use std::sync::atomic::fence;

use plainsong_proto::payload::Payload;

use crate::base::sync::atomic::{AtomicU32, Ordering};
use crate::base::sync::{Mutex, lock};

/// Records that wait to be received, at most.
const RECORDS_MAX: usize = 1 << 12;
/// Octets of buffers that are kept for the next records.
const SPARE_BYTES_MAX: usize = 256 << 10;

/// What [`OwnQueue::state`] is while the receiver is awake: it receives.
const AWAKE: u32 = 0;
/// What it is while a sender receives.
const SENDER: u32 = u32::MAX;

/// A queue of records.
#[derive(Default)]
pub(super) struct OwnQueue {
    queue: Mutex<Queue>,
    /// Who receives. Any other number is that of a sleep of the receiver: nobody does.
    state: AtomicU32,
}

#[derive(Default)]
struct Queue {
    records: VecDeque<Record>,
    /// Octets of the records, without attachments, and of these.
    bytes: usize,
    attached_bytes: u64,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
}

/// A message, and the long payload that it ends with.
#[derive(Default)]
pub(super) struct Record {
    pub(super) bytes: Vec<u8>,
    pub(super) attachment: Option<Payload>,
}

impl OwnQueue {
    /// Its octets, without the attachment, if there was room for it: the queue takes so many octets of
    /// messages, and of attachments; one that is longer alone.
    pub(super) fn push<'a>(
        &self,
        parts: impl Iterator<Item = &'a [u8]>,
        attachment: Option<&Payload>,
        (bytes_max, attached_bytes_max): (usize, u64),
    ) -> Option<usize> {
        let mut queue = lock(&self.queue);
        let attached = attachment.map_or(0, Payload::len) as u64;
        let is_beyond = queue.attached_bytes > 0 && queue.attached_bytes + attached > attached_bytes_max;
        if queue.records.len() >= RECORDS_MAX || queue.bytes >= bytes_max || is_beyond {
            return None;
        }
        queue.attached_bytes += attached;
        let mut bytes = queue.spare.pop().unwrap_or_default();
        queue.spare_bytes -= bytes.capacity();
        bytes.clear();
        parts.for_each(|part| bytes.extend_from_slice(part));
        let octets = bytes.len();
        queue.bytes += octets;
        queue.records.push_back(Record { bytes, attachment: attachment.cloned() });
        Some(octets)
    }

    /// The oldest record replaces the one that was there, whose buffer is used again.
    pub(super) fn pop(&self, record: &mut Record) -> bool {
        let mut queue = lock(&self.queue);
        let Some(next) = queue.records.pop_front() else { return false };
        queue.bytes -= next.bytes.len();
        queue.attached_bytes -= next.attachment.as_ref().map_or(0, Payload::len) as u64;
        let used = std::mem::replace(record, next);
        if queue.spare_bytes + used.bytes.capacity() <= SPARE_BYTES_MAX {
            queue.spare_bytes += used.bytes.capacity();
            queue.spare.push(used.bytes);
        }
        // Dropping a payload may take the lock of its pool, and hold nobody up here.
        drop(queue);
        drop(used.attachment);
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.queue).records.is_empty()
    }

    /// Whether its receiver may receive: unless a sender does.
    pub(super) fn begin_receiving(&self) -> bool {
        let state = self.state.load(Ordering::Acquire);
        match state {
            AWAKE => true,
            SENDER => false,
            _ => matches!(
                self.state.compare_exchange(state, AWAKE, Ordering::Acquire, Ordering::Acquire),
                // Somebody was about to wake it.
                Ok(_) | Err(AWAKE)
            ),
        }
    }

    /// The receiver is about to sleep. [`Self::must_stay_awake`] has to follow.
    pub(super) fn announce_sleep(&self, number: u32) {
        if self.state.load(Ordering::Relaxed) == AWAKE {
            self.state.store(number, Ordering::Release);
        }
    }

    /// The last look of the receiver, behind a full fence: whether there is something for it.
    pub(super) fn must_stay_awake(&self) -> bool {
        self.state.load(Ordering::Relaxed) != SENDER && !self.is_empty()
    }

    /// After [`Self::push`]: whether the receiver sleeps, and has to be woken by the caller. Once for each
    /// sleep.
    pub(super) fn must_wake(&self) -> bool {
        fence(Ordering::SeqCst);
        let state = self.state.load(Ordering::Relaxed);
        let sleeps = state != AWAKE && state != SENDER;
        sleeps && self.state.compare_exchange(state, AWAKE, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// After [`Self::push`]: the caller receives from now on, for the receiver sleeps. `None`: somebody
    /// receives already, and will find what was pushed.
    pub(super) fn claim(&self) -> Option<Claim> {
        fence(Ordering::SeqCst);
        loop {
            let state = self.state.load(Ordering::Relaxed);
            if state == AWAKE || state == SENDER {
                return None;
            }
            // Whoever received before has seen all before this record.
            if self.state.compare_exchange(state, SENDER, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Some(Claim { sleep: state });
            }
        }
    }

    /// The caller does not receive any more. It looks whether something came that others left to it: then it
    /// may claim the queue again.
    pub(super) fn release(&self, claim: Claim) -> Option<Claim> {
        self.stop_receiving(claim);
        fence(Ordering::SeqCst);
        if self.is_empty() { None } else { self.claim() }
    }

    /// The first half of [`Self::release`].
    pub(super) fn stop_receiving(&self, claim: Claim) {
        self.state.store(claim.sleep, Ordering::Release);
    }

    /// Whether nobody receives.
    #[cfg(test)]
    pub(super) fn sleeps(&self) -> bool {
        let state = self.state.load(Ordering::SeqCst);
        state != AWAKE && state != SENDER
    }

    /// The caller does not receive any more. It has to wake the receiver, which receives the rest.
    pub(super) fn hand_back(&self, _: Claim) {
        self.state.store(AWAKE, Ordering::Release);
    }
}

/// The right of a sender to receive.
pub(super) struct Claim {
    sleep: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: (usize, u64) = (100, 10_000);

    #[test]
    fn records_come_out_in_order_and_their_buffers_are_used_again() {
        let (queue, mut record) = (OwnQueue::default(), Record::default());
        assert!(queue.is_empty() && !queue.pop(&mut record));
        let payload = Payload::from_vec(vec![7; 5_000]);
        assert_eq!(queue.push([&b"ab"[..], b"c"].into_iter(), None, ROOM), Some(3));
        assert_eq!(queue.push([&b"d"[..]].into_iter(), Some(&payload), ROOM), Some(1));
        assert!(queue.pop(&mut record) && record.attachment.is_none());
        assert_eq!(record.bytes, b"abc");
        let place = record.bytes.as_ptr();
        assert!(queue.pop(&mut record) && queue.is_empty());
        assert_eq!(
            (&record.bytes[..], record.attachment.as_ref().map(Payload::len)),
            (&b"d"[..], Some(5_000))
        );
        assert!(queue.push([&b"e"[..]].into_iter(), None, ROOM).is_some() && queue.pop(&mut record));
        assert_eq!(record.bytes.as_ptr(), place);
    }

    #[test]
    fn what_there_is_no_room_for_is_refused() {
        let queue = OwnQueue::default();
        let long = [0; 60];
        let push = |octets: &[u8]| queue.push(std::iter::once(octets), None, ROOM);
        assert_eq!([push(&long), push(&long), push(b"f")], [Some(60), Some(60), None]);
        let queue = OwnQueue::default();
        let payload = Payload::from_vec(vec![7; 12_000]);
        let push = || queue.push(std::iter::empty(), Some(&payload), ROOM).is_some();
        assert!(push(), "it is longer, and alone");
        assert!(!push());
        assert!(queue.pop(&mut Record::default()) && push());
        let queue = OwnQueue::default();
        let pushed =
            (0..2 * RECORDS_MAX).filter(|_| queue.push(std::iter::empty(), None, ROOM).is_some()).count();
        assert_eq!(pushed, RECORDS_MAX);
    }
}
