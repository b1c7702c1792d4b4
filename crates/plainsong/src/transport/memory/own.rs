//! What a node sends to itself: endpoints of one process reach each other by a queue in its private memory.

use std::collections::VecDeque;
use std::sync::Mutex;

use plainsong_proto::payload::Payload;

use crate::base::locks::lock;

/// Records that wait to be received, at most.
const RECORDS_MAX: usize = 1 << 12;
/// Octets of buffers that are kept for the next records.
const SPARE_BYTES_MAX: usize = 256 << 10;

/// A queue of records.
#[derive(Default)]
pub(super) struct OwnQueue(Mutex<Queue>);

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
    /// Whether there was room for it: the queue takes so many octets of messages, and of attachments; one
    /// that is longer alone.
    pub(super) fn push<'a>(
        &self,
        parts: impl Iterator<Item = &'a [u8]>,
        attachment: Option<&Payload>,
        (bytes_max, attached_bytes_max): (usize, u64),
    ) -> bool {
        let mut queue = lock(&self.0);
        let attached = attachment.map_or(0, Payload::len) as u64;
        let is_beyond = queue.attached_bytes > 0 && queue.attached_bytes + attached > attached_bytes_max;
        if queue.records.len() >= RECORDS_MAX || queue.bytes >= bytes_max || is_beyond {
            return false;
        }
        queue.attached_bytes += attached;
        let mut bytes = queue.spare.pop().unwrap_or_default();
        queue.spare_bytes -= bytes.capacity();
        bytes.clear();
        parts.for_each(|part| bytes.extend_from_slice(part));
        queue.bytes += bytes.len();
        queue.records.push_back(Record { bytes, attachment: attachment.cloned() });
        true
    }

    /// The oldest record replaces the one that was there, whose buffer is used again.
    pub(super) fn pop(&self, record: &mut Record) -> bool {
        let mut queue = lock(&self.0);
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
        lock(&self.0).records.is_empty()
    }
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
        assert!(queue.push([&b"ab"[..], b"c"].into_iter(), None, ROOM));
        assert!(queue.push([&b"d"[..]].into_iter(), Some(&payload), ROOM));
        assert!(queue.pop(&mut record) && record.attachment.is_none());
        assert_eq!(record.bytes, b"abc");
        let place = record.bytes.as_ptr();
        assert!(queue.pop(&mut record) && queue.is_empty());
        assert_eq!(
            (&record.bytes[..], record.attachment.as_ref().map(Payload::len)),
            (&b"d"[..], Some(5_000))
        );
        assert!(queue.push([&b"e"[..]].into_iter(), None, ROOM) && queue.pop(&mut record));
        assert_eq!(record.bytes.as_ptr(), place);
    }

    #[test]
    fn what_there_is_no_room_for_is_refused() {
        let queue = OwnQueue::default();
        let long = [0; 60];
        assert!(
            queue.push([&long[..]].into_iter(), None, ROOM)
                && queue.push([&long[..]].into_iter(), None, ROOM)
        );
        assert!(!queue.push([&b"f"[..]].into_iter(), None, ROOM));
        let queue = OwnQueue::default();
        let payload = Payload::from_vec(vec![7; 12_000]);
        assert!(queue.push(std::iter::empty(), Some(&payload), ROOM), "it is longer, and alone");
        assert!(!queue.push(std::iter::empty(), Some(&payload), ROOM));
        assert!(queue.pop(&mut Record::default()) && queue.push(std::iter::empty(), Some(&payload), ROOM));
        let queue = OwnQueue::default();
        let pushed = (0..2 * RECORDS_MAX).filter(|_| queue.push(std::iter::empty(), None, ROOM)).count();
        assert_eq!(pushed, RECORDS_MAX);
    }
}
