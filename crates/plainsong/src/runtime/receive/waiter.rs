//! A thread of the application that waits, and that receives what it waits for when it can own an input.
//!
//! If it slept until a receive thread woke it, each sample would cost a second wake-up: first the receive
//! thread, then it. So it sleeps in the socket, does with a datagram what the receive thread would have done,
//! and leaves the input when its wait is over.
//!
//! A thread that waits for room to write is one of those: it receives the acknowledgements that make room,
//! most of which came while it wrote, so that nobody sleeps or is woken for them. It does so only while one
//! participant answers and nothing comes for readers: nobody receives as long as it writes, and each answer
//! of many would wake it.
//!
//! A waiting thread calls no listener and wakes no task: events of that kind are left to a receive thread.
//!
//! A sample that comes while such a writer writes is received when it next waits, or after a millisecond;
//! then the input is taken back, and handed over again only after twice as many acknowledgements in a row, up
//! to 4,096.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plainsong_proto::time::Instant;

use super::acks::AckSources;
use super::owner::{Owned, Wanted};
use super::{Input, ReceiveState, UserInput};
use crate::base::clock;
use crate::base::locks::lock;
use crate::runtime::notify::{Notify, Wake};
use crate::runtime::{Shared, deliver::Delivery, dispatch, nested_wait};
use crate::transport::{Alarm, Received, ThreadWaker};

/// A wait as short as that was none.
const PROMPT: Duration = Duration::from_micros(3);

impl Wake for ThreadWaker {
    fn wake(&self) {
        self.wake();
    }
}

thread_local! {
    /// Kept for all waits of the thread.
    static WAKER: RefCell<Option<Arc<ThreadWaker>>> = const { RefCell::new(None) };
}

fn waker_of_thread() -> Option<Arc<ThreadWaker>> {
    WAKER.with_borrow_mut(|waker| {
        if waker.is_none() {
            *waker = ThreadWaker::new().ok().map(Arc::new);
        }
        waker.clone()
    })
}

/// In a process that was just forked: the waker of this thread is the parent's.
#[cfg(target_os = "linux")]
pub(super) fn abandon_waker() {
    let _ = WAKER.try_with(RefCell::take);
}

/// Before something is taken: receives what is there when an input was handed over to threads that poll.
pub(crate) fn poll(shared: &Shared) {
    if shared.inputs.owners.has_pollers()
        && let Some(mut waiter) = Waiter::acquire(shared, Wanted::Samples)
    {
        waiter.poll(shared);
    }
}

/// There was nothing to take. Exact numbers do not matter.
pub(crate) fn found_nothing(shared: &Shared) {
    let polls = &shared.inputs.polls;
    polls.store(polls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// Sleeps while the epoch of `notify` is `seen`, receiving meanwhile when nobody else does. False when
/// `deadline` passed first.
pub(crate) fn wait(
    shared: &Shared,
    notify: &Arc<Notify>,
    seen: u32,
    deadline: Option<Instant>,
    wanted: Wanted,
) -> bool {
    if let Some(woken) = nested_wait::wait(notify, seen, deadline) {
        return woken;
    }
    if let Some(mut waiter) = Waiter::acquire(shared, wanted)
        && let Some(woken) = waiter.receive(shared, notify, seen, deadline)
    {
        return woken;
    }
    let _sleeping = shared.inputs.owners.sleep(notify, wanted);
    notify.wait(seen, deadline)
}

/// Sleeps while the epoch of `notify` is `seen`, for what no socket of a domain brings. False when `deadline`
/// passed first.
pub(crate) fn sleep(notify: &Notify, seen: u32, deadline: Option<Instant>) -> bool {
    nested_wait::wait(notify, seen, deadline).unwrap_or_else(|| notify.wait(seen, deadline))
}

/// A waiting thread that owns an input.
struct Waiter<'a> {
    owned: Owned<'a, Alarm>,
    input: &'a UserInput,
    wanted: Wanted,
    /// Who acknowledged.
    acks: AckSources,
}

impl<'a> Waiter<'a> {
    fn acquire(shared: &'a Shared, wanted: Wanted) -> Option<Self> {
        if dispatch::defers_events() {
            return None;
        }
        let owned = shared.inputs.owners.acquire()?;
        let input = shared.inputs.inputs.get(owned.input)?;
        Some(Self { owned, input, wanted, acks: AckSources::None })
    }

    const fn source(&self) -> Input {
        self.input.source
    }

    /// Receives until the epoch of `notify` is not `seen` any more (true) or `deadline` has passed (false);
    /// `None` when the receive thread had better do that.
    fn receive(
        &mut self,
        shared: &Shared,
        notify: &Notify,
        seen: u32,
        deadline: Option<Instant>,
    ) -> Option<bool> {
        let Some(waker) = waker_of_thread() else {
            self.owned.recalls = true;
            return None;
        };
        let registration = notify.register(Arc::<ThreadWaker>::clone(&waker));
        let mut state = lock(&self.input.state);
        let is_for_acks = self.wanted == Wanted::Acks;
        // What came while this thread wrote.
        while is_for_acks && !self.owned.recalls && notify.epoch() == seen {
            if self.receive_some(shared, &mut state).datagrams == 0 {
                break;
            }
        }
        while !self.owned.recalls {
            let is_over = || deadline.is_some_and(|deadline| clock::mono() >= deadline);
            let began = clock::mono();
            let polls = !is_for_acks && state.estimator.estimate().polls(|| began);
            if polls && notify.epoch() == seen && !is_over() {
                self.poll_once(shared, &mut state, began);
                continue;
            }
            let Some(armed) = registration.arm(seen) else { return Some(true) };
            if is_over() {
                return Some(false);
            }
            let woken = shared.transport.wait(self.source(), Some(&waker), deadline.map(clock::until));
            // What this thread does itself need not wake it.
            drop(armed);
            match woken {
                Ok(woken) => {
                    if woken.waker {
                        waker.reset();
                    }
                    if woken.datagram {
                        let waited = clock::mono().since(began);
                        self.receive_some(shared, &mut state);
                        self.note(&mut state, waited < PROMPT.into());
                    }
                }
                Err(error) => self.owned.recalls = error.kind() != std::io::ErrorKind::Interrupted,
            }
        }
        None
    }

    /// Receives one datagram if there is one.
    fn poll(&mut self, shared: &Shared) {
        let mut state = lock(&self.input.state);
        self.receive_some(shared, &mut state);
        let is_prompt = self.owned.received > 0;
        self.note(&mut state, is_prompt);
    }

    /// Receives one datagram if there is one, or lets others run.
    fn poll_once(&mut self, shared: &Shared, state: &mut ReceiveState, now: Instant) {
        let waited = now.since(state.estimator.since());
        if self.receive_some(shared, state).datagrams == 0 {
            state.estimator.polled_in_vain();
            std::thread::yield_now();
        } else {
            self.note(state, waited < PROMPT.into());
        }
    }

    /// Whether this thread did not have to wait for samples.
    fn note(&mut self, state: &mut ReceiveState, is_prompt: bool) {
        if self.wanted == Wanted::Samples {
            state.estimator.note_prompt(is_prompt);
            self.owned.recalls |= state.estimator.estimate().is_too_fast_for_one();
        }
    }

    /// Receives one datagram if there is one, or the acknowledgements that are there: what they had.
    fn receive_some(&mut self, shared: &Shared, state: &mut ReceiveState) -> Delivery {
        if shared.deferred.are_asked() {
            // Listeners hear of one sample before the next may replace it.
            self.owned.recalls = true;
            return Delivery::default();
        }
        let source = self.source();
        let (delivery, has_deferred) = dispatch::deferring_events(|| {
            state.receive(|receiver, delivery| {
                let each = |received: Received<'_>| {
                    self.owned.received += 1;
                    delivery.datagram(shared, &received);
                };
                if self.wanted == Wanted::Samples {
                    receiver.expect_one();
                }
                shared.transport.receive(source, receiver, false, each);
            })
        });
        self.acks = self.acks.with(delivery.acks());
        let is_alone = !delivery.has_samples() && self.acks.is_of_one();
        self.owned.is_disturbed |= self.wanted == Wanted::Acks && !is_alone;
        self.owned.recalls |= has_deferred || self.owned.is_disturbed || shared.transport.is_closed();
        delivery
    }
}
