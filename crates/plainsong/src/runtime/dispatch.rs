//! Emptying an outbox: datagrams are sent under the lock of who left them, events reported with no lock held.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use plainsong_proto::guid::GuidPrefix;
use plainsong_proto::outbox::{Event, Outbox};

use super::{ParticipantSlot, Rank, Shared};
use crate::base::locks::lock;

thread_local! {
    /// The outbox of this thread, unless it is in use.
    static OUTBOX: Cell<Option<Box<Outbox>>> = const { Cell::new(None) };
    /// Those of calls within calls.
    #[expect(clippy::vec_box, reason = "taken and put back for every call: a pointer moves faster than an outbox")]
    static MORE: RefCell<Vec<Box<Outbox>>> = const { RefCell::new(Vec::new()) };
    /// This thread may call no listener and no waker of a task; true when it deferred an event.
    static DEFERS_EVENTS: Cell<Option<bool>> = const { Cell::new(None) };
    /// While this thread of the domain waited in a listener, it deferred an event.
    static HAS_DEFERRED: Cell<bool> = const { Cell::new(false) };
}

/// Events that wait for a listener to return, at most by one batch more.
const DEFERRED_MAX: usize = 1 << 12;

/// Whether listeners and wakers of tasks may not be called here: the thread waits or writes, with whatever
/// locks its application holds.
pub(super) fn defers_events() -> bool {
    DEFERS_EVENTS.get().is_some()
}

/// Whether this thread has deferred an event since [`deferring_events`] began.
pub(super) fn has_deferred() -> bool {
    DEFERS_EVENTS.get() == Some(true)
}

/// Receives or sends as `f` does; what listeners and tasks are to hear of is deferred. Whether there was any.
pub(super) fn deferring_events<R>(f: impl FnOnce() -> R) -> (R, bool) {
    DEFERS_EVENTS.set(Some(false));
    let result = f();
    (result, DEFERS_EVENTS.take() == Some(true))
}

/// As [`deferring_events`], within a listener: it waits for [`notify_deferred`] on this thread.
pub(super) fn deferring_events_within_listener<R>(f: impl FnOnce() -> R) -> R {
    let (result, has_deferred) = deferring_events(f);
    if has_deferred {
        HAS_DEFERRED.set(true);
    }
    result
}

/// On a thread of the domain, between batches: notifies of what was deferred while a listener waited.
#[inline]
pub(super) fn notify_deferred(shared: &Shared) {
    while HAS_DEFERRED.take() {
        shared.deferred.notify(shared);
    }
}

/// Wakes tasks, with no lock held. A waker that panics keeps nobody from being woken; the hook printed it.
pub(crate) fn wake_tasks(tasks: &mut Vec<Waker>) {
    for task in tasks.drain(..) {
        let _ = catch_unwind(AssertUnwindSafe(|| task.wake()));
    }
}

/// Events of participants of which a thread of the domain will notify listeners, and tasks that it will wake.
#[derive(Debug, Default)]
pub(crate) struct DeferredEvents {
    events: Mutex<Vec<(GuidPrefix, Event)>>,
    /// Each once: no more than await something.
    tasks: Mutex<Vec<Waker>>,
    /// A receive thread was woken for them.
    is_asked: AtomicBool,
}

impl DeferredEvents {
    /// Of what is deferred twice listeners hear once: that a status changed or that there is data does not
    /// say how much.
    fn defer(&self, participant: GuidPrefix, events: impl Iterator<Item = Event>) {
        let mut deferred = lock(&self.events);
        for event in events {
            let entry = (participant, event);
            let stands_for_others =
                !matches!(event, Event::ParticipantChanged { .. } | Event::MismatchChanged { .. });
            if !stands_for_others || !deferred.contains(&entry) {
                deferred.push(entry);
            }
        }
        DEFERS_EVENTS.set(Some(true));
    }

    fn defer_tasks(&self, tasks: Vec<Waker>) {
        let mut deferred = lock(&self.tasks);
        let is_known = |task: &Waker| deferred.iter().any(|other| other.will_wake(task));
        let (known, mut new): (Vec<_>, Vec<_>) = tasks.into_iter().partition(is_known);
        deferred.append(&mut new);
        // Dropping a waker may run code of the application.
        drop(deferred);
        drop(known);
        DEFERS_EVENTS.set(Some(true));
    }

    /// So much is deferred that who waits in a listener had better not receive more.
    pub(super) fn are_many(&self) -> bool {
        lock(&self.events).len() >= DEFERRED_MAX
    }

    /// A receive thread is about to be woken to notify of them.
    pub(super) fn ask(&self) {
        self.is_asked.store(true, Ordering::Release);
    }

    pub(super) fn are_asked(&self) -> bool {
        self.is_asked.load(Ordering::Acquire)
    }

    /// On a receive thread: notifies of them if it was woken for that.
    #[inline]
    pub(super) fn notify_asked(&self, shared: &Shared) {
        if self.are_asked() {
            self.notify(shared);
        }
    }

    /// Wakes the tasks only, on a thread that may call no listener but is one of the domain.
    pub(super) fn wake_tasks(&self) {
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        wake_tasks(&mut tasks);
    }

    /// Notifies of all of them, on a thread that may call listeners. Tasks come first: a listener may wait
    /// for what they do.
    pub(super) fn notify(&self, shared: &Shared) {
        self.is_asked.store(false, Ordering::SeqCst);
        self.wake_tasks();
        let deferred = std::mem::take(&mut *lock(&self.events));
        for of_one in deferred.chunk_by(|(one, _), (other, _)| one == other) {
            let mut events = of_one.iter().map(|(_, event)| *event).collect();
            if let Some((prefix, _)) = of_one.first()
                && let Some(participant) = shared.registry.participant(*prefix)
            {
                participant.notify(&mut events);
            }
        }
    }
}

/// Runs `f` with an empty outbox of this thread. A listener that writes nests, and gets another one.
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
    /// Wakes who waits for progress and notifies the sink. No lock may be held.
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
        if defers_events() {
            let mut tasks = Vec::new();
            out.events.retain(|event| !self.sink().wake_waiters(event, &mut tasks));
            if !tasks.is_empty() {
                self.shared().deferred.defer_tasks(tasks);
            }
            if !out.events.is_empty() {
                self.shared().deferred.defer(self.prefix, out.events.drain(..));
            }
            return;
        }
        self.notify(&mut out.events);
        out.events.clear();
    }

    /// Notifies the sink. No lock may be held.
    pub(crate) fn notify(&self, events: &mut Vec<Event>) {
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
