//! A wait within a listener, on a thread of the domain: it does meanwhile what it always does, but for
//! calling listeners.
//!
//! A `write` that waits for room, or a wait for acknowledgements or data, would otherwise wait for what its
//! own thread is to receive, or to send in time. The same thread notifies listeners of what happens meanwhile
//! when the batch of datagrams is done that it was in: no listener is called within another. Tasks are woken
//! at once, for the listener may wait for what they do.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};
use std::time::Duration;

use plainsong_proto::time::Instant;

use super::deliver::{Delivery, fire_timer, locators_changed};
use super::notify::Notify;
use super::{Shared, dispatch};
use crate::base::clock;
use crate::transport::{Input, Receiver};

/// How often it is checked whether another thread has ended the wait.
const CHECK: Duration = Duration::from_millis(1);
/// For so many batches after a wait the thread receives one datagram at a time: others of a batch would wait,
/// too.
const SINGLE_BATCHES: u32 = 64;

/// What a thread is there for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    Receive(Input),
    Timer,
}

thread_local! {
    static ROLE: RefCell<Option<(Weak<Shared>, Role)>> = const { RefCell::new(None) };
    /// What is left of [`SINGLE_BATCHES`].
    static SINGLE_LEFT: Cell<u32> = const { Cell::new(0) };
}

/// The calling thread does this from now on.
pub(super) fn begin(shared: &Arc<Shared>, role: Role) {
    ROLE.set(Some((Arc::downgrade(shared), role)));
}

/// Whether the next batch should be one datagram.
pub(super) fn receives_singly() -> bool {
    let left = SINGLE_LEFT.get();
    if left > 0 {
        SINGLE_LEFT.set(left - 1);
    }
    left > 0
}

/// Waits while the epoch of `notify` is `seen`, doing what the thread is for; false when `deadline` passed
/// first. `None`: it is not of the domain.
pub(super) fn wait(notify: &Notify, seen: u32, deadline: Option<Instant>) -> Option<bool> {
    let (shared, role) =
        ROLE.with_borrow(|it| it.as_ref().and_then(|(shared, role)| Some((shared.upgrade()?, *role))))?;
    SINGLE_LEFT.set(SINGLE_BATCHES);
    let mut worker = Worker::of(&shared, role);
    loop {
        if notify.epoch() != seen {
            return Some(true);
        }
        if deadline.is_some_and(|deadline| deadline <= clock::mono()) {
            return Some(false);
        }
        if shared.transport.is_closed() || shared.deferred.are_many() {
            return Some(notify.wait(seen, deadline));
        }
        let serves = dispatch::deferring_events_within_listener(|| worker.serve(&shared));
        shared.deferred.wake_tasks();
        if !serves && notify.epoch() == seen {
            let timeout = deadline.map_or(CHECK, |deadline| clock::until(deadline).min(CHECK));
            worker.rest(&shared, notify, seen, timeout);
        }
    }
}

/// What it takes to do that within a wait; buffers that the thread received in before hold what it is in the
/// middle of.
enum Worker {
    Receive(Input, Box<Receiver>),
    Timer,
}

impl Worker {
    fn of(shared: &Shared, role: Role) -> Self {
        match role {
            Role::Receive(input) => Self::Receive(input, Box::new(shared.transport.receiver(input))),
            Role::Timer => Self::Timer,
        }
    }

    /// Does what there is to do, without waiting for it: whether there was something.
    fn serve(&mut self, shared: &Shared) -> bool {
        match self {
            Self::Receive(input, receiver) => {
                let mut delivery = Delivery::default();
                if shared.transport.receive(*input, receiver, false, |it| delivery.datagram(shared, &it)) {
                    locators_changed(shared);
                }
                delivery.datagrams > 0
            }
            Self::Timer => shared.timer.fire_due(|guid| fire_timer(shared, guid)),
        }
    }

    /// Sleeps until there may be something to do.
    fn rest(&self, shared: &Shared, notify: &Notify, seen: u32, timeout: Duration) {
        match self {
            // Who is interrupted looks again.
            Self::Receive(input, _) => _ = shared.transport.wait(*input, None, Some(timeout)),
            Self::Timer => _ = notify.wait(seen, clock::deadline(timeout)),
        }
    }
}
