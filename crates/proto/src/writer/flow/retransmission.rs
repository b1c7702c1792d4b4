//! What is on its way to single readers: what they lack, and the history for late joiners.

use std::collections::VecDeque;

use crate::guid::Guid;
use crate::seq::{FragmentNumber, SequenceNumber};

use super::span::Span;

/// Something on its way to one reader.
#[derive(Debug)]
pub(crate) struct Retransmission {
    pub(crate) reader: Guid,
    pub(crate) span: Span,
}

/// The retransmissions of one writer, in the order in which they are to be sent: readers by switches.
#[derive(Debug, Default)]
pub(crate) struct Retransmissions {
    queue: VecDeque<Retransmission>,
}

impl Retransmissions {
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn readers(&self) -> impl Iterator<Item = Guid> {
        self.queue.iter().map(|it| it.reader)
    }

    pub(crate) fn pop_front(&mut self) -> Option<Retransmission> {
        self.queue.pop_front()
    }

    pub(crate) fn push_front(&mut self, it: Retransmission) {
        self.queue.push_front(it);
    }

    pub(crate) fn push_back(&mut self, it: Retransmission) {
        self.queue.push_back(it);
    }

    /// Queues it: in a window that has not room for everything, before later changes for its reader.
    pub(crate) fn queue(&mut self, it: Retransmission, is_windowed: bool) {
        let is_after =
            |other: &Retransmission| other.reader == it.reader && other.span.number > it.span.number;
        match self.queue.iter().position(is_after).filter(|_| is_windowed) {
            Some(place) => self.queue.insert(place, it),
            None => self.queue.push_back(it),
        }
    }

    /// Whether the change, or the given fragment of it, is on its way to the reader anyway.
    pub(crate) fn cover(&self, reader: Guid, number: SequenceNumber, fragment: FragmentNumber) -> bool {
        self.queue.iter().any(|it| it.reader == reader && it.span.has(number, fragment))
    }

    /// Whether earlier changes are on their way to the reader.
    pub(crate) fn has_before(&self, reader: Guid, number: SequenceNumber) -> bool {
        self.queue.iter().any(|it| it.reader == reader && it.span.number < number)
    }

    /// Whether a change, or parts of it, are on their way to the reader.
    pub(crate) fn has(&self, reader: Guid, number: SequenceNumber) -> bool {
        let is_of = |it: &Retransmission| (it.span.number..=it.span.last).contains(&number);
        self.queue.iter().any(|it| it.reader == reader && is_of(it))
    }

    /// The next reader follows; the order of what goes to one reader stays.
    pub(crate) fn rotate(&mut self, reader: Guid) {
        for _ in 0..self.queue.len() {
            if self.queue.front().is_none_or(|it| it.reader != reader) {
                return;
            }
            self.queue.rotate_left(1);
        }
    }

    /// Datagrams to some readers have another size from now on: what was begun begins anew.
    pub(crate) fn recut(&mut self, is_meant: impl Fn(Guid) -> bool) {
        for it in self.queue.iter_mut().filter(|it| is_meant(it.reader)) {
            it.span.recut();
        }
    }

    /// Drops what was meant for a reader that is gone.
    pub(crate) fn forget(&mut self, reader: Guid) {
        self.queue.retain(|it| it.reader != reader);
    }
}
