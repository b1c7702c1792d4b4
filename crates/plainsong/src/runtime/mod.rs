//! Who runs the state machines: slots that lock them, the registry that finds them, the threads that feed them.
//!
//! Lock order: participant → endpoint → timer. Datagrams of one state machine leave under its lock, so they keep
//! their order; events are reported after all locks are gone.

pub(crate) mod dispatch;
pub(crate) mod notify;
pub(crate) mod receive;
pub(crate) mod registry;
pub(crate) mod timer;

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plainsong_proto::discovery::Participant;
use plainsong_proto::guid::{EntityId, Guid};
use plainsong_proto::outbox::{Event, Outbox};
use plainsong_proto::reader::Reader;
use plainsong_proto::stats::DropCounters;
use plainsong_proto::time::{Instant, Now};
use plainsong_proto::writer::Writer;

use crate::clock;
use crate::transport::Transport;
use notify::Notify;

pub(crate) use registry::ParticipantSlot;

/// A local writer and its lock.
pub(crate) type WriterSlot = EndpointSlot<Writer>;
/// A local reader and its lock.
pub(crate) type ReaderSlot = EndpointSlot<Reader>;

/// Where the driver reports what happened to a participant and its endpoints.
pub(crate) trait EventSink: Send + Sync {
    /// Called with no lock held, on the thread that caused the events. Whatever is left in `events` is dropped.
    fn events(&self, events: &mut Vec<Event>);
}

/// What all participants of a domain share, and its threads.
pub(crate) struct Shared {
    pub(crate) transport: Transport,
    pub(crate) timer: timer::Timer,
    pub(crate) registry: registry::Registry,
    pub(crate) drops: Mutex<DropCounters>,
}

/// A sans-IO state machine, as the timer sees it.
pub(crate) trait StateMachine: Send {
    fn timeout(&mut self, now: Now, out: &mut Outbox);
    fn next_timeout(&self) -> Option<Instant>;
}

/// A state machine and the deadline the timer knows of.
pub(crate) struct Timed<M> {
    machine: M,
    /// Nanoseconds of the instant; `u64::MAX` when the timer has no entry.
    armed_at: u64,
}

/// A local endpoint and its lock.
pub(crate) struct EndpointSlot<M> {
    /// Its entity id.
    pub(crate) id: EntityId,
    /// Its GUID.
    pub(crate) guid: Guid,
    /// Wakes callers that wait for room or for acknowledgements.
    pub(crate) progress: Notify,
    state: Mutex<Timed<M>>,
}

/// Locks; a panic of another holder (a bug of one call) does not make the rest unusable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which lock a thread takes. A thread takes locks in this order only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    None,
    Participant,
    Endpoint,
}

/// While it lives, this thread holds a lock of that rank. Costs nothing in release builds.
#[must_use]
pub(crate) struct Held {
    before: Rank,
}

thread_local! {
    static HELD: Cell<Rank> = const { Cell::new(Rank::None) };
}

impl Rank {
    /// To be called before locking.
    fn hold(self) -> Held {
        if !cfg!(debug_assertions) {
            return Held { before: Self::None };
        }
        let before = Self::held();
        assert!(before < self, "a thread that holds the lock of a {before:?} locks a {self:?}");
        HELD.set(self);
        Held { before }
    }

    /// The highest rank this thread holds.
    pub(crate) fn held() -> Self {
        HELD.get()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            HELD.set(self.before);
        }
    }
}

impl<M: StateMachine> Timed<M> {
    pub(crate) const fn new(machine: M) -> Self {
        Self { machine, armed_at: u64::MAX }
    }

    pub(crate) const fn machine(&self) -> &M {
        &self.machine
    }

    /// Runs `f`, sends what it left, and tells the timer if the deadline became earlier.
    pub(crate) fn run<R>(
        &mut self,
        shared: &Shared,
        guid: Guid,
        now: Now,
        out: &mut Outbox,
        f: impl FnOnce(&mut M, Now, &mut Outbox) -> R,
    ) -> R {
        let result = f(&mut self.machine, now, out);
        shared.transport.send(out);
        out.clear_transmits();
        self.arm(shared, guid);
        result
    }

    /// The timer's entry went off: does what is due.
    pub(crate) fn fire(&mut self, shared: &Shared, guid: Guid, now: Now, out: &mut Outbox) {
        self.armed_at = u64::MAX;
        self.run(shared, guid, now, out, |machine, now, out| {
            if machine.next_timeout().is_some_and(|due| due <= now.mono) {
                machine.timeout(now, out);
            }
        });
    }

    /// A later deadline waits for the entry to go off: it then finds out.
    fn arm(&mut self, shared: &Shared, guid: Guid) {
        if let Some(next) = self.machine.next_timeout()
            && next.0 < self.armed_at
        {
            self.armed_at = next.0;
            shared.timer.set(guid, next);
        }
    }
}

impl<M: StateMachine> EndpointSlot<M> {
    fn build(guid: Guid, machine: M) -> Arc<Self> {
        Arc::new(Self {
            id: guid.entity,
            guid,
            progress: Notify::default(),
            state: Mutex::new(Timed::new(machine)),
        })
    }

    fn lock(&self) -> (Held, MutexGuard<'_, Timed<M>>) {
        (Rank::Endpoint.hold(), lock(&self.state))
    }

    /// Runs `f` under the endpoint lock and sends what it left under the same lock, so that datagrams of one
    /// endpoint keep their order. Events are reported after unlocking.
    pub(crate) fn with<R>(
        &self,
        participant: &ParticipantSlot,
        f: impl FnOnce(&mut M, Now, &mut Outbox) -> R,
    ) -> R {
        dispatch::with_outbox(|out| {
            let result = {
                let (_rank, mut state) = self.lock();
                state.run(participant.shared(), self.guid, clock::now(), out, f)
            };
            participant.report(out);
            result
        })
    }

    /// Like [`EndpointSlot::with`] for callers that report later.
    pub(crate) fn run<R>(
        &self,
        shared: &Shared,
        now: Now,
        out: &mut Outbox,
        f: impl FnOnce(&mut M, Now, &mut Outbox) -> R,
    ) -> R {
        let (_rank, mut state) = self.lock();
        state.run(shared, self.guid, now, out, f)
    }

    /// Looks at the state machine: nothing may change, nothing is sent.
    pub(crate) fn look<R>(&self, f: impl FnOnce(&M) -> R) -> R {
        let (_rank, state) = self.lock();
        f(&state.machine)
    }

    /// Changes a state machine that is not in use yet: nothing is sent.
    pub(crate) fn edit<R>(&self, f: impl FnOnce(&mut M) -> R) -> R {
        f(&mut lock(&self.state).machine)
    }

    fn fire(&self, shared: &Shared, now: Now, out: &mut Outbox) {
        let (_rank, mut state) = self.lock();
        state.fire(shared, self.guid, now, out);
    }

    /// The slot can be found by the timer from now on.
    fn announce_deadline(&self, shared: &Shared) {
        let (_rank, mut state) = self.lock();
        state.armed_at = u64::MAX;
        state.arm(shared, self.guid);
    }
}

impl WriterSlot {
    /// A slot for `writer`.
    pub(crate) fn new(writer: Writer) -> Arc<Self> {
        Self::build(writer.guid(), writer)
    }
}

impl ReaderSlot {
    /// A slot for `reader`.
    pub(crate) fn new(reader: Reader) -> Arc<Self> {
        Self::build(reader.guid(), reader)
    }
}

impl StateMachine for Writer {
    fn timeout(&mut self, now: Now, out: &mut Outbox) {
        Self::timeout(self, now, out);
    }

    fn next_timeout(&self) -> Option<Instant> {
        Self::next_timeout(self)
    }
}

impl StateMachine for Reader {
    fn timeout(&mut self, now: Now, out: &mut Outbox) {
        Self::timeout(self, now, out);
    }

    fn next_timeout(&self) -> Option<Instant> {
        Self::next_timeout(self)
    }
}

impl StateMachine for Participant {
    fn timeout(&mut self, now: Now, out: &mut Outbox) {
        Self::timeout(self, now, out);
    }

    fn next_timeout(&self) -> Option<Instant> {
        Self::next_timeout(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(debug_assertions)]
    fn locks_are_taken_in_one_order() {
        let participant = Rank::Participant.hold();
        drop((Rank::Endpoint.hold(), participant));
        assert_eq!(Rank::held(), Rank::None);
        let _endpoint = Rank::Endpoint.hold();
        assert!(std::panic::catch_unwind(|| Rank::Participant.hold()).is_err());
    }
}
