//! The new changes that a route is still to be sent: what does not fit the current burst, or the window,
//! waits here, in order, so that a long sample does not overrun socket buffers of the usual 208 KiB.

use crate::seq::{FragmentNumber, SequenceNumber};
use crate::time::Instant;

use super::span::Span;
use crate::writer::record::change::TakenChange;

/// New changes on their way to all readers of a route.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Those of them that the history still holds when they can be sent.
    pub(crate) span: Span,
    /// The first, once begun: what was begun is sent to its end, even when the history lets it go.
    pub(crate) begun: Option<TakenChange>,
    pub(crate) tail: Tail,
}

/// What becomes of the last fragments of the last queued change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// That is to be seen.
    Unknown,
    /// They wait for the next change of a flow, until then.
    Held(Instant),
    /// They leave as soon as the burst allows it.
    Released,
}

/// The queue of one route.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pending: Option<Pending>,
    /// The first change that waits for others in an open datagram, not for a burst: then nothing is pending.
    held: Option<SequenceNumber>,
    /// Until then changes that were not begun wait because all readers would filter them by time: the last is
    /// sent then.
    pub(crate) separation_end: Option<Instant>,
}

impl Queue {
    /// Queues a new change.
    pub(crate) fn push(&mut self, number: SequenceNumber) {
        match &mut self.pending {
            Some(pending) => pending.span.last = number,
            None => {
                let span = Span::new(number, number);
                self.pending = Some(Pending { span, begun: None, tail: Tail::Unknown });
            }
        }
    }

    /// A new change waits for others.
    pub(crate) fn hold(&mut self, number: SequenceNumber) {
        self.held.get_or_insert(number);
    }

    /// Nothing waits for others any more.
    pub(crate) const fn release_held(&mut self) {
        self.held = None;
    }

    /// The new change to send next.
    pub(crate) const fn first(&mut self) -> Option<&mut Pending> {
        self.pending.as_mut()
    }

    /// Takes everything out: what was not sent.
    pub(crate) const fn take(&mut self) -> Option<Pending> {
        self.pending.take()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.pending.is_none()
    }

    /// Queued changes below `next` were sent, or are not to be.
    pub(crate) fn advance(&mut self, next: SequenceNumber) {
        match &mut self.pending {
            Some(pending) if next <= pending.span.last => {
                pending.span.advance(next);
                (pending.begun, pending.tail) = (None, Tail::Unknown);
            }
            _ => self.pending = None,
        }
    }

    /// So much is left of what was next.
    pub(crate) fn put(&mut self, span: Span) {
        let Some(pending) = &mut self.pending else { return };
        if span.number > pending.span.number {
            self.advance(span.number);
        } else {
            (pending.span, pending.tail) = (span, Tail::Unknown);
        }
    }

    /// The first change not yet sent, and how many of its fragments were.
    pub(crate) fn unsent(&self) -> Option<(SequenceNumber, FragmentNumber)> {
        match (self.held, &self.pending) {
            (Some(number), _) => Some((number, 0)),
            (None, Some(pending)) => Some((pending.span.number, pending.span.fragment - 1)),
            (None, None) => None,
        }
    }

    /// Whether changes that were not begun wait, until readers want the next one.
    pub(crate) const fn is_paused(&self) -> bool {
        self.separation_end.is_some()
    }

    /// Whether what is next waits for that. What was begun is sent to its end.
    pub(crate) fn waits(&self) -> bool {
        self.is_paused() && self.pending.as_ref().is_none_or(|pending| pending.span.fragment == 1)
    }

    /// When fragments that wait for others leave at the latest.
    pub(crate) fn tail_due(&self) -> Option<Instant> {
        match self.pending.as_ref()?.tail {
            Tail::Held(due) => Some(due),
            Tail::Unknown | Tail::Released => None,
        }
    }

    /// Fragments that wait for others wait no longer. Whether there are any.
    pub(crate) fn release_tail(&mut self) -> bool {
        let held = self.pending.as_mut().filter(|pending| matches!(pending.tail, Tail::Held(_)));
        held.map(|pending| pending.tail = Tail::Released).is_some()
    }

    /// Nothing waits for others, or until readers want it. Whether anything did.
    pub(crate) fn release(&mut self) -> bool {
        let was_separated = self.separation_end.take().is_some() && !self.is_empty();
        self.release_tail() || was_separated
    }

    /// Datagrams have another size from now on: what was begun begins anew.
    pub(crate) const fn recut(&mut self) {
        if let Some(pending) = &mut self.pending {
            pending.span.recut();
        }
    }
}
