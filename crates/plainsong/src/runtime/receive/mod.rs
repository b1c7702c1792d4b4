//! The threads of a domain: what arrives goes to the state machines it concerns, what is due is done.
//!
//! `estimate.rs` measures what arrives at an input, `policy.rs` says whether to poll, to sleep or to hand the
//! input over, `owner.rs` keeps who owns it, and this file and `waiter.rs` receive.

pub(super) mod acks;
pub(super) mod estimate;
pub(super) mod owner;
mod policy;
mod waiter;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::deliver::{Delivery, fire_timer, locators_changed};
use super::nested_wait::{self, Role};
use super::{Shared, dispatch};
use crate::base::clock;
use crate::base::config::Config;
use crate::base::locks::lock;
use crate::transport::{Alarm, Input, Receiver, Traffic, Transports};
use acks::AckSources;
use estimate::Estimator;
use owner::{Owners, WakeUp};
use policy::Next;

pub(crate) use owner::Wanted;

pub(crate) use waiter::{found_nothing, poll, sleep, wait};

/// Who polls so often by `take` between two datagrams does nothing else.
const POLLS_MIN: u32 = 8;

/// The inputs for user data of a domain.
pub(crate) struct UserInputs {
    owners: Owners<Alarm>,
    /// How often a thread found nothing to take.
    polls: AtomicU32,
    inputs: Vec<UserInput>,
}

/// What it takes to receive from one input.
struct UserInput {
    source: Input,
    /// Locked by its owner.
    state: Mutex<ReceiveState>,
}

struct ReceiveState {
    receiver: Receiver,
    estimator: Estimator,
}

impl WakeUp for Alarm {
    fn set(&self, after: Duration) {
        self.set(after);
    }

    fn wait(&self) {
        self.wait();
    }
}

/// Receives until the transports are closed.
pub(crate) fn run(shared: &Arc<Shared>, input: Input) {
    // Who serves links calls no listener, which could wait for what comes by them.
    if !matches!(input.traffic, Traffic::Links) {
        nested_wait::begin(shared, Role::Receive(input));
    }
    match input.traffic {
        Traffic::Discovery => receive_discovery(shared, input),
        Traffic::User(_) => shared.inputs.run(shared, input),
        Traffic::Links => {
            while !shared.transport.is_closed() {
                let changes = shared.transport.serve_links();
                let tell = || changes.into_iter().for_each(|it| shared.memory_link(it.node, it.result));
                let ((), has_deferred) = dispatch::deferring_events(tell);
                if has_deferred {
                    shared.deferred.ask();
                    shared.transport.wake_receiver();
                }
            }
        }
    }
}

fn receive_discovery(shared: &Shared, input: Input) {
    // Urgent samples come here.
    let estimator = Estimator::new(shared.transport.config().may_busy_poll());
    let mut state = ReceiveState { receiver: shared.transport.receiver(input), estimator };
    while !shared.transport.is_closed() {
        let polls = state.estimator.estimate().polls(clock::mono);
        let delivery = state.receive(|receiver, delivery| {
            if shared.transport.receive(input, receiver, !polls, |it| delivery.datagram(shared, &it)) {
                locators_changed(shared);
            }
        });
        if polls && delivery.datagrams == 0 {
            state.estimator.polled_in_vain();
            // Whoever else is to run on this core comes first.
            std::thread::yield_now();
        }
        dispatch::notify_deferred(shared);
    }
}

/// Calls what is due until the timer stops.
pub(crate) fn run_timer(shared: &Arc<Shared>) {
    nested_wait::begin(shared, Role::Timer);
    shared.timer.run(|guid| {
        fire_timer(shared, guid);
        dispatch::notify_deferred(shared);
    });
}

impl UserInputs {
    pub(crate) fn new(transport: &Transports, config: &Config) -> Self {
        let sources = transport.inputs().into_iter().filter(|it| matches!(it.traffic, Traffic::User(_)));
        let sources: Vec<Input> = sources.collect();
        let alarm = |input: &Input| {
            let can = config.may_hand_over() && transport.can_hand_over(*input);
            if can { Alarm::new().ok() } else { None }
        };
        let input = |source: &Input| {
            let estimator = Estimator::new(config.may_busy_poll());
            let state = ReceiveState { receiver: transport.receiver(*source), estimator };
            UserInput { source: *source, state: Mutex::new(state) }
        };
        Self {
            owners: Owners::new(sources.iter().map(alarm).collect()),
            polls: AtomicU32::new(0),
            inputs: sources.iter().map(input).collect(),
        }
    }

    /// Receives from one input until the transports are closed: the life of a receive thread.
    fn run(&self, shared: &Shared, source: Input) {
        let Some(number) = self.inputs.iter().position(|input| input.source == source) else { return };
        let Some(input) = self.inputs.get(number) else { return };
        let mut waiters = Waiters { number, polls: 0, are_polling: false };
        while !shared.transport.is_closed() {
            self.receive(shared, input, &mut waiters);
            if let Some(before) = self.owners.hand_over(number, waiters.are_polling) {
                let was_useful = self.owners.await_return(number, before);
                lock(&input.state).estimator.handed_back(was_useful);
                shared.deferred.notify(shared);
            }
        }
        // A task that is left with an entity that was deleted has to hear of that.
        shared.deferred.wake_tasks();
    }

    /// Receives until the input had better be handed over.
    fn receive(&self, shared: &Shared, input: &UserInput, waiters: &mut Waiters) {
        let mut state = lock(&input.state);
        let can_hand_over = self.owners.can_hand_over(waiters.number);
        while !shared.transport.is_closed() {
            let polls = match state.estimator.estimate().next(clock::mono) {
                Next::HandOver => return state.estimator.hand_over(),
                next => next == Next::Poll,
            };
            let mut wanted = None;
            let delivery = state.receive(|receiver, delivery| {
                if nested_wait::receives_singly() {
                    receiver.expect_one();
                }
                shared.transport.receive(input.source, receiver, !polls, |received| {
                    // Before it is delivered, which wakes who waits for it.
                    if delivery.datagrams == 0 {
                        wanted = waiters.wanted(self);
                    }
                    // Listeners hear of one sample before the next may replace it.
                    shared.deferred.notify_asked(shared);
                    delivery.datagram(shared, &received);
                });
            });
            shared.deferred.notify_asked(shared);
            if delivery.datagrams == 0 && polls {
                state.estimator.polled_in_vain();
                std::thread::yield_now();
                continue;
            }
            dispatch::notify_deferred(shared);
            if can_hand_over {
                let (is_for_one, acks) = match wanted {
                    Some(Wanted::Samples) => (delivery.datagrams == 1, AckSources::None),
                    Some(Wanted::Acks) => (!delivery.has_samples(), delivery.acks()),
                    None => (false, AckSources::None),
                };
                state.estimator.note_waiter(is_for_one, acks);
            }
        }
    }

    /// Nothing is received any more: receive threads that sleep return.
    pub(crate) fn stop(&self) {
        self.owners.stop();
    }

    /// In a process that was just forked: the alarms are the parent's, and so is what wakes this thread.
    #[cfg(unix)]
    pub(crate) fn abandon(&self) {
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            crate::base::fork::disconnect(self.owners.alarms().map(AsRawFd::as_raw_fd));
            waiter::abandon_waker();
        }
    }
}

impl ReceiveState {
    /// Receives as `f` does.
    fn receive(&mut self, f: impl FnOnce(&mut Receiver, &mut Delivery)) -> Delivery {
        let mut delivery = Delivery::default();
        f(&mut self.receiver, &mut delivery);
        delivery.end(&mut self.estimator);
        delivery
    }
}

/// Who waits for what an input brings, as its receive thread sees it.
struct Waiters {
    /// The number of the input.
    number: usize,
    /// What [`UserInputs::polls`] was.
    polls: u32,
    /// The last datagram was awaited by threads that poll by `take`.
    are_polling: bool,
}

impl Waiters {
    /// What one thread sleeps for, or some poll for.
    fn wanted(&mut self, inputs: &UserInputs) -> Option<Wanted> {
        let before = std::mem::replace(&mut self.polls, inputs.polls.load(Ordering::Relaxed));
        let (sleepers, wanted) = inputs.owners.sleepers();
        self.are_polling = sleepers == 0 && self.polls.wrapping_sub(before) >= POLLS_MIN;
        match sleepers {
            1 => Some(wanted),
            _ => self.are_polling.then_some(Wanted::Samples),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
