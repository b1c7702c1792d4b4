//! Emptying an outbox: datagrams are sent under the lock of who left them, events reported with no lock held.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

use plainsong_proto::outbox::{Event, Outbox};

use super::{ParticipantSlot, Rank};

thread_local! {
    /// The outbox of this thread, unless it is lent.
    static OUTBOX: Cell<Option<Box<Outbox>>> = const { Cell::new(None) };
    /// Those of calls within calls.
    #[expect(clippy::vec_box, reason = "lent and taken back for every call: a pointer moves faster than an outbox")]
    static MORE: RefCell<Vec<Box<Outbox>>> = const { RefCell::new(Vec::new()) };
    /// This thread receives on a loan; true when listeners are to be told of something.
    pub(super) static ON_LOAN: Cell<Option<bool>> = const { Cell::new(None) };
    /// While this thread of the domain waited in a listener, something was left for it to tell.
    pub(super) static LEFT_UNTOLD: Cell<bool> = const { Cell::new(false) };
}

/// Whether listeners may not be called here: the thread waits, with whatever locks its application holds.
pub(super) fn is_on_loan() -> bool {
    ON_LOAN.get().is_some()
}

/// Receives or sends as `f` does; what listeners are to be told waits for [`super::turn::tell_rest`] on this thread.
pub(super) fn quietly<R>(f: impl FnOnce() -> R) -> R {
    ON_LOAN.set(Some(false));
    let result = f();
    if ON_LOAN.take() == Some(true) {
        LEFT_UNTOLD.set(true);
    }
    result
}

/// Lends an empty outbox of this thread. A listener that writes nests, and gets another one.
#[inline]
pub(crate) fn with_outbox<R>(f: impl FnOnce(&mut Outbox) -> R) -> R {
    let mut out = OUTBOX.take().unwrap_or_else(another);
    let result = f(&mut out);
    out.clear();
    if let Some(other) = OUTBOX.replace(Some(out)) {
        MORE.with_borrow_mut(|more| more.push(other));
    }
    result
}

#[cold]
fn another() -> Box<Outbox> {
    MORE.with_borrow_mut(Vec::pop).unwrap_or_default()
}

impl ParticipantSlot {
    /// Wakes who waits for progress and tells the sink. No lock may be held.
    #[inline]
    pub(crate) fn report(&self, out: &mut Outbox) {
        debug_assert_eq!(Rank::held(), Rank::None, "events are reported with a lock held");
        if !out.events.is_empty() {
            self.report_events(out);
        }
    }

    fn report_events(&self, out: &mut Outbox) {
        for event in &out.events {
            if let Event::Progress { endpoint } = event {
                self.progress(*endpoint);
            }
        }
        if is_on_loan() {
            out.events.retain(|event| !self.sink().told_quietly(event));
            if !out.events.is_empty() {
                self.shared().turns.leave_untold(self.prefix, out.events.drain(..));
            }
            return;
        }
        self.tell(&mut out.events);
        out.events.clear();
    }

    /// Tells the sink. No lock may be held.
    pub(crate) fn tell(&self, events: &mut Vec<Event>) {
        // A listener that panics must not end a receive or timer thread; its message was printed by the hook.
        let _ = catch_unwind(AssertUnwindSafe(|| self.sink().events(events)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_use_gets_another_outbox_and_both_come_back_empty() {
        with_outbox(|outer| {
            outer.events.push(Event::Progress { endpoint: Default::default() });
            with_outbox(|inner| assert!(inner.is_empty()));
            assert_eq!(outer.events.len(), 1);
        });
        with_outbox(|again| assert!(again.is_empty()));
        assert!(OUTBOX.take().is_some());
        assert_eq!(MORE.with_borrow(Vec::len), 1);
    }
}
