//! Who receives from an input for user data: its receive thread, or a thread of the application that waits
//! for what it brings (leader and followers). Who owns an input is the only one to receive from it.
//!
//! A receive thread hands its input over, and then sleeps in [`InputOwners::await_return`]. Whoever waits
//! next acquires it, receives what it waits for, and leaves it unowned when its wait is over. If nobody
//! acquires it again within [`RECLAIM_AFTER`], an alarm that was set wakes the receive thread, which takes it
//! back. Anybody who needs the receive thread sooner recalls it.
//!
//! An owned input is always received from; an unowned one has its alarm set; a recalled one has its alarm
//! going off. `model.rs` looks for schedules of threads in which that does not hold.
//!
//! The receive thread takes its input back at once when somebody else waits for something, or when samples
//! come faster than they are waited for. So a sample, an acknowledgement or a request for repairs waits for a
//! millisecond at most. No input is handed over where `busy_poll`, `receive_cpus` or `receive_priority` say
//! how data is to be received.

use std::sync::Arc;
use std::time::Duration;

use plainsong_proto::time::Instant;

use crate::base::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::base::sync::{self, Mutex, MutexGuard, lock};
use crate::runtime::notify::Notify;

/// For so long data may be in the socket of an input that nobody owns.
pub(in crate::runtime) const RECLAIM_AFTER: Duration = Duration::from_millis(1);
/// It was of use to hand an input over when so many datagrams were received meanwhile.
const USEFUL: u64 = 16;

/// What a waiting thread cannot go on without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Samples of writers.
    Samples,
    /// Acknowledgements of readers.
    Acks,
}

/// Wakes one thread at a time, the one of an input, at a time that can be changed.
pub(in crate::runtime) trait WakeUp {
    /// Goes off after that time, and not when it was to before.
    fn set(&self, after: Duration);
    /// Sleeps until it goes off, or for no reason.
    fn wait(&self);
}

/// Who owns each input, and who sleeps until a receive thread wakes it.
pub(in crate::runtime) struct Owners<W> {
    state: Mutex<State>,
    /// How many sleep, and whether the last of them waits for acknowledgements: copies for who looks without
    /// the lock.
    sleepers: AtomicUsize,
    is_for_acks: AtomicBool,
    /// Some input was handed over to threads that poll by `take`.
    has_pollers: AtomicBool,
    /// Of each input; `None`: it is never handed over.
    alarms: Vec<Option<W>>,
}

struct State {
    inputs: Vec<InputState>,
    sleepers: Vec<(Arc<Notify>, Wanted)>,
    stopped: bool,
}

/// Who owns one input, and what came of handing it over.
#[derive(Debug)]
struct InputState {
    owner: Owner,
    /// The alarm will go off.
    is_armed: bool,
    /// Datagrams that waiting threads received.
    received: u64,
    /// A thread that waited for acknowledgements of one participant got samples, or acknowledgements of
    /// others.
    is_disturbed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    ReceiveThread,
    /// Nobody: the receive thread is coming.
    Recalled,
    /// A thread that waits.
    Waiter,
    /// Nobody: whoever comes first, the receive thread not before then.
    Unowned(Option<Instant>),
}

impl<W: WakeUp> Owners<W> {
    /// All inputs are their receive threads'.
    pub(in crate::runtime) fn new(alarms: Vec<Option<W>>) -> Self {
        let idle =
            |_| InputState { owner: Owner::ReceiveThread, is_armed: false, received: 0, is_disturbed: false };
        let inputs = alarms.iter().map(idle).collect();
        Self {
            state: Mutex::new(State { inputs, sleepers: Vec::new(), stopped: false }),
            sleepers: AtomicUsize::new(0),
            is_for_acks: AtomicBool::new(false),
            has_pollers: AtomicBool::new(false),
            alarms,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn alarm(&self, input: usize) -> Option<&W> {
        self.alarms.get(input)?.as_ref()
    }

    pub(in crate::runtime) fn can_hand_over(&self, input: usize) -> bool {
        self.alarm(input).is_some()
    }

    /// Whether some input was handed over to threads that poll.
    pub(in crate::runtime) fn has_pollers(&self) -> bool {
        self.has_pollers.load(Ordering::Relaxed)
    }

    /// How many sleep until a receive thread wakes them, and what the last of them wants.
    pub(in crate::runtime) fn sleepers(&self) -> (usize, Wanted) {
        let wanted = if self.is_for_acks.load(Ordering::Relaxed) { Wanted::Acks } else { Wanted::Samples };
        (self.sleepers.load(Ordering::Relaxed), wanted)
    }

    /// Hands an input over to the one thread that sleeps, or that slept until it was woken just now, or to
    /// those that poll: how much waiting threads had received before. `None`: it stays the receive thread's.
    pub(in crate::runtime) fn hand_over(&self, input: usize, to_pollers: bool) -> Option<u64> {
        let alarm = self.alarm(input)?;
        let mut state = self.lock();
        if state.sleepers.len() > 1 || state.stopped {
            return None;
        }
        let sleeper = state.sleepers.first().map(|(notify, _)| Arc::clone(notify));
        let held = state.inputs.get_mut(input)?;
        held.owner = Owner::Unowned(sync::deadline(RECLAIM_AFTER));
        (held.is_armed, held.is_disturbed) = (true, false);
        let received = held.received;
        alarm.set(RECLAIM_AFTER);
        self.has_pollers.store(to_pollers, Ordering::Relaxed);
        drop(state);
        if let Some(sleeper) = sleeper {
            // It looks again at what it waits for, and then acquires the input.
            sleeper.wake_all();
        }
        Some(received)
    }

    /// Sleeps until the input is the receive thread's again: whether it was of use to hand it over. `before`:
    /// what [`Self::hand_over`] said.
    pub(in crate::runtime) fn await_return(&self, input: usize, before: u64) -> bool {
        let Some(alarm) = self.alarm(input) else { return false };
        loop {
            alarm.wait();
            let mut state = self.lock();
            let stopped = state.stopped;
            let Some(held) = state.inputs.get_mut(input) else { return false };
            held.is_armed = false;
            let left = match held.owner {
                // A waiting thread is not waited for when the transport has stopped.
                _ if stopped => return false,
                // When it leaves it sets the alarm.
                Owner::Waiter => continue,
                Owner::Unowned(until) => until.map_or(RECLAIM_AFTER, sync::until),
                Owner::ReceiveThread | Owner::Recalled => Duration::ZERO,
            };
            if left.is_zero() {
                held.owner = Owner::ReceiveThread;
                self.has_pollers.store(false, Ordering::Relaxed);
                return !held.is_disturbed && held.received.wrapping_sub(before) >= USEFUL;
            }
            held.is_armed = true;
            alarm.set(left);
        }
    }

    /// An unowned input becomes the caller's.
    pub(in crate::runtime) fn acquire(&self) -> Option<Owned<'_, W>> {
        let mut state = self.lock();
        if state.stopped {
            return None;
        }
        let is_unowned = |held: &InputState| matches!(held.owner, Owner::Unowned(_));
        let input = state.inputs.iter().position(is_unowned)?;
        state.inputs.get_mut(input)?.owner = Owner::Waiter;
        Some(Owned { owners: self, input, received: 0, is_disturbed: false, recalls: false })
    }

    /// While it lives, the calling thread sleeps until a receive thread wakes it.
    pub(in crate::runtime) fn sleep<'a>(
        &'a self,
        notify: &'a Arc<Notify>,
        wanted: Wanted,
    ) -> Sleeping<'a, W> {
        let mut state = self.lock();
        state.sleepers.push((Arc::clone(notify), wanted));
        self.copy_sleepers(&state);
        // Nobody sleeps for what is in an unowned socket.
        for input in 0..state.inputs.len() {
            self.recall_unowned(&mut state, input);
        }
        Sleeping { owners: self, notify }
    }

    fn copy_sleepers(&self, state: &State) {
        let is_for_acks = state.sleepers.last().is_some_and(|(_, wanted)| *wanted == Wanted::Acks);
        self.sleepers.store(state.sleepers.len(), Ordering::Relaxed);
        self.is_for_acks.store(is_for_acks, Ordering::Relaxed);
    }

    fn recall_unowned(&self, state: &mut State, input: usize) {
        if let Some(held) = state.inputs.get_mut(input)
            && matches!(held.owner, Owner::Unowned(_))
        {
            self.recall(held, input);
        }
    }

    fn recall(&self, held: &mut InputState, input: usize) {
        held.owner = Owner::Recalled;
        if let Some(alarm) = self.alarm(input) {
            alarm.set(Duration::ZERO);
        }
    }

    /// Nothing is received any more: receive threads that sleep return.
    pub(in crate::runtime) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        self.alarms().for_each(|alarm| alarm.set(Duration::ZERO));
    }

    pub(in crate::runtime) fn alarms(&self) -> impl Iterator<Item = &W> {
        self.alarms.iter().flatten()
    }
}

/// See [`Owners::sleep`].
pub(in crate::runtime) struct Sleeping<'a, W: WakeUp> {
    owners: &'a Owners<W>,
    notify: &'a Arc<Notify>,
}

impl<W: WakeUp> Drop for Sleeping<'_, W> {
    fn drop(&mut self) {
        let mut state = self.owners.lock();
        if let Some(position) = state.sleepers.iter().position(|(it, _)| Arc::ptr_eq(it, self.notify)) {
            state.sleepers.swap_remove(position);
        }
        self.owners.copy_sleepers(&state);
    }
}

/// An input that a waiting thread owns as long as this lives.
pub(in crate::runtime) struct Owned<'a, W: WakeUp> {
    owners: &'a Owners<W>,
    pub(in crate::runtime) input: usize,
    /// Datagrams that it received.
    pub(in crate::runtime) received: u64,
    /// See [`InputState::is_disturbed`].
    pub(in crate::runtime) is_disturbed: bool,
    /// The receive thread shall take the input back.
    pub(in crate::runtime) recalls: bool,
}

impl<W: WakeUp> Drop for Owned<'_, W> {
    fn drop(&mut self) {
        let (owners, input) = (self.owners, self.input);
        let mut state = owners.lock();
        // Who sleeps must not wait for this thread to come back.
        let recalls = self.recalls || !state.sleepers.is_empty();
        let Some(held) = state.inputs.get_mut(input) else { return };
        held.received += self.received;
        held.is_disturbed |= self.is_disturbed;
        if recalls {
            return owners.recall(held, input);
        }
        held.owner = Owner::Unowned(sync::deadline(RECLAIM_AFTER));
        if !held.is_armed
            && let Some(alarm) = owners.alarm(input)
        {
            held.is_armed = true;
            alarm.set(RECLAIM_AFTER);
        }
    }
}

#[cfg(test)]
mod inspection {
    use super::*;

    impl<W: WakeUp> Owners<W> {
        /// Datagrams that waiting threads received.
        pub(in crate::runtime) fn received_by_waiters(&self) -> u64 {
            self.lock().inputs.iter().map(|it| it.received).sum()
        }

        /// Whether some thread waits, for a receive thread or by itself.
        pub(in crate::runtime) fn has_waiters(&self) -> bool {
            let state = self.lock();
            !state.sleepers.is_empty() || state.inputs.iter().any(|it| it.owner == Owner::Waiter)
        }

        pub(in crate::runtime) fn are_all_back(&self) -> bool {
            self.lock().inputs.iter().all(|it| it.owner == Owner::ReceiveThread)
        }

        pub(in crate::runtime) fn is_with_waiter(&self) -> bool {
            self.lock().inputs.iter().any(|it| it.owner == Owner::Waiter)
        }

        pub(in crate::runtime) fn is_disturbed(&self) -> bool {
            self.lock().inputs.iter().any(|it| it.is_disturbed)
        }
    }
}
