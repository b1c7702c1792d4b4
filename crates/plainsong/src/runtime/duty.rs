//! What a thread of the domain does while a listener that it called waits: what it always does, but for calling listeners.
//!
//! A `write` that waits for room, or a wait for acknowledgements or data, would otherwise wait for what its own thread is to receive,
//! or to send in time. What listeners want to hear of meanwhile they are told by the same thread, when the batch of datagrams is
//! done that it was in: no listener is called within another.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};
use std::time::Duration;

use plainsong_proto::time::Instant;

use super::notify::Notify;
use super::walk::{Walk, fire_one, locators_changed};
use super::{Shared, dispatch};
use crate::base::clock;
use crate::transport::{Input, Receiver};

/// Between two looks whether another thread has ended the wait.
const LOOK: Duration = Duration::from_millis(1);
/// For so many batches after a wait the thread receives one datagram at a time: others of a batch would wait, too.
const ALONE: u32 = 64;

/// What a thread is there for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Duty {
    Receive(Input),
    Timer,
}

thread_local! {
    static DUTY: RefCell<Option<(Weak<Shared>, Duty)>> = const { RefCell::new(None) };
    /// What is left of [`ALONE`].
    static ALONE_LEFT: Cell<u32> = const { Cell::new(0) };
}

/// The calling thread does this from now on.
pub(super) fn begin(shared: &Arc<Shared>, duty: Duty) {
    DUTY.set(Some((Arc::downgrade(shared), duty)));
}

/// Whether the next batch should be one datagram.
pub(super) fn receives_alone() -> bool {
    let left = ALONE_LEFT.get();
    if left > 0 {
        ALONE_LEFT.set(left - 1);
    }
    left > 0
}

/// Waits while the epoch of `notify` is `seen`, doing the thread's duty; false when `deadline` passed first. `None`: it has none.
pub(super) fn wait(notify: &Notify, seen: u32, deadline: Option<Instant>) -> Option<bool> {
    let (shared, duty) =
        DUTY.with_borrow(|it| it.as_ref().and_then(|(shared, duty)| Some((shared.upgrade()?, *duty))))?;
    ALONE_LEFT.set(ALONE);
    let mut post = Post::of(&shared, duty);
    loop {
        if notify.epoch() != seen {
            return Some(true);
        }
        if deadline.is_some_and(|deadline| deadline <= clock::mono()) {
            return Some(false);
        }
        if shared.transport.is_closed() || shared.turns.has_much_untold() {
            return Some(notify.wait(seen, deadline));
        }
        let serves = dispatch::quietly(|| post.serve(&shared));
        if !serves && notify.epoch() == seen {
            let timeout = deadline.map_or(LOOK, |deadline| clock::until(deadline).min(LOOK));
            post.rest(&shared, notify, seen, timeout);
        }
    }
}

/// What it takes to do the duty within a wait; buffers that the thread received in before hold what it is in the middle of.
enum Post {
    Receive(Input, Box<Receiver>),
    Timer,
}

impl Post {
    fn of(shared: &Shared, duty: Duty) -> Self {
        match duty {
            Duty::Receive(input) => Self::Receive(input, Box::new(shared.transport.receiver(input))),
            Duty::Timer => Self::Timer,
        }
    }

    /// Does what there is to do, without waiting for it: whether there was something.
    fn serve(&mut self, shared: &Shared) -> bool {
        match self {
            Self::Receive(input, receiver) => {
                let mut walk = Walk::default();
                if shared.transport.receive(*input, receiver, false, |it| walk.datagram(shared, &it)) {
                    locators_changed(shared);
                }
                walk.datagrams > 0
            }
            Self::Timer => shared.timer.fire_due(|guid| fire_one(shared, guid)),
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
