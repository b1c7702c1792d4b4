//! Who runs the state machines: slots that lock them, the registry that finds them, the threads that feed
//! them.
//!
//! Lock order: participant → group → endpoint → timer. Datagrams of one state machine leave under its lock,
//! so they keep their order; events are reported after all locks are gone.

pub(crate) mod deadline;
mod delegation;
pub(crate) mod deliver;
pub(crate) mod dispatch;
pub(crate) mod drops;
pub(crate) mod heap;
mod inbox;
mod listener_time;
#[cfg(all(test, feature = "shuttle"))]
mod model;
pub(crate) mod nested_wait;
pub(crate) mod notify;
pub(crate) mod placement;
pub(crate) mod receive;
pub(crate) mod registry;
pub(crate) mod timer;

use std::cell::Cell;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;

#[cfg(feature = "sim")]
use plainsong_proto::discovery::Command;
use plainsong_proto::discovery::{MemoryRefusal, Participant};
use plainsong_proto::guid::{EntityId, Guid};
use plainsong_proto::locator::NodeId;
use plainsong_proto::outbox::{Event, Outbox};
use plainsong_proto::reader::Reader;
use plainsong_proto::time::{Instant, Now};
use plainsong_proto::wire::{AckNack, NackFrag};
use plainsong_proto::writer::Writer;

use crate::base::clock;
use crate::transport::own_traffic::Awaiting;
use crate::transport::{Batch, Transports};
use deadline::Deadline;
use delegation::Delegating;
use notify::Notify;
use plainsong_proto::sources::Sender;

pub(crate) use registry::{ParticipantSlot, STATISTICS_TIMER};

/// A local writer and its lock.
pub(crate) type WriterSlot = EndpointSlot<Writer>;
/// A local reader and its lock.
pub(crate) type ReaderSlot = EndpointSlot<Reader>;

/// Where the driver reports what happened to a participant and its endpoints.
pub(crate) trait EventSink: Send + Sync {
    /// Called with no lock held, on the thread that caused the events. Whatever is left in `events` is
    /// dropped.
    fn events(&self, events: &mut Vec<Event>);

    /// Wakes who waits for an event, on a thread that may hold locks of the application; tasks are left to
    /// the caller. False, and nothing done, when there is more to tell: [`EventSink::events`] then does.
    fn wake_waiters(&self, event: &Event, tasks: &mut Vec<Waker>) -> bool;

    /// The timer's entry of an entity went off that is no endpoint. Called with no lock held.
    fn fire(&self, _entity: EntityId, _out: &mut Outbox) {}

    /// Called before a decision of discovery is carried out, with the lock of the participant held.
    #[cfg(feature = "sim")]
    fn command(&self, _command: &Command) {}
}

/// What all participants of a domain share, and its threads.
pub(crate) struct Shared {
    pub(crate) transport: Transports,
    pub(crate) timer: timer::Timer,
    pub(crate) registry: registry::Registry,
    pub(crate) drops: drops::Drops,
    pub(crate) inputs: receive::UserInputs,
    pub(crate) deferred: dispatch::DeferredEvents,
    pub(crate) heap: heap::Heap,
}

impl Shared {
    /// Memory is shared with a node from now on, or it is not: also later, when that ends. The caller holds
    /// no lock that [`Transports::link`] takes, and what that says changed before.
    pub(crate) fn memory_link(&self, node: NodeId, answer: Result<(), MemoryRefusal>) {
        for slot in self.registry.participants().iter() {
            slot.control(|participant, now, out| participant.memory_link(now, node, answer, out));
        }
    }

    /// Sends what was gathered, merged where it goes to the same places. What follows is sent at once.
    fn send_gathered(&self, out: &mut Outbox) {
        out.gather(false);
        out.merge(0);
        self.transport.send(&Batch { out, traffic_class: 0, recuts: false });
        out.clear_transmits();
    }
}

/// A sans-IO state machine, as the timer sees it.
pub(crate) trait StateMachine: Send {
    /// What may wait for whoever holds the lock.
    type Call: Send;

    fn call(&mut self, call: Self::Call, now: Now, out: &mut Outbox);
    fn timeout(&mut self, now: Now, out: &mut Outbox);
    fn next_timeout(&self) -> Option<Instant>;
    /// Whether the last call may have changed what `next_timeout` says; asked once after each.
    fn moved_timeout(&mut self) -> bool {
        true
    }
    /// The octet of the IP header that marks its datagrams.
    fn traffic_class(&self) -> u8 {
        0
    }
    /// The path to an address takes datagrams of so many octets. A machine that takes it into account sends
    /// what did not pass in smaller ones; that of others is left to IP.
    const FOLLOWS_PATHS: bool = false;

    fn path(&mut self, _address: IpAddr, _bytes: usize) {}
    /// What the last call left was sent; `clock` tells when.
    fn sent(&mut self, _clock: fn() -> Instant) {}
}

/// A state machine and the deadline the timer knows of.
pub(crate) struct Timed<M> {
    machine: M,
    /// So many datagrams it composed.
    datagrams: u64,
    deadline: Arc<Deadline>,
}

/// A local endpoint and its lock.
pub(crate) struct EndpointSlot<M: StateMachine> {
    /// Its entity id.
    pub(crate) id: EntityId,
    /// Its GUID.
    pub(crate) guid: Guid,
    /// Wakes callers that wait for room or for acknowledgements.
    pub(crate) progress: Arc<Notify>,
    /// Events of so many samples may be told together.
    pub(crate) events_max: usize,
    /// A reader of an ATOMIC topic: what it gets comes from a group.
    pub(crate) is_agreed: bool,
    /// So many calls leave what they send to this process to its receive thread: a listener hears of it.
    listened: AtomicU32,
    state: Delegating<Timed<M>, Deferred<M::Call>>,
    deadline: Arc<Deadline>,
}

/// After so many calls it is seen whether a listener still hears of what they send.
const LISTENED_CALLS: u32 = 256;

enum Deferred<C> {
    Fire,
    Call(C),
}

/// An answer of a reader to a local writer.
pub(crate) enum Response {
    AckNack(Sender, AckNack),
    NackFrag(Sender, NackFrag),
}

/// Which lock a thread takes. A thread takes locks in this order only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    None,
    Participant,
    Group,
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
    pub(crate) fn hold(self) -> Held {
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
    pub(crate) fn new(machine: M) -> Self {
        Self { machine, datagrams: 0, deadline: Arc::default() }
    }

    pub(crate) const fn machine(&self) -> &M {
        &self.machine
    }

    /// Runs `f`, sends what it left, and tells the timer if the deadline became earlier.
    #[inline]
    pub(crate) fn run<R>(
        &mut self,
        shared: &Shared,
        guid: Guid,
        now: Now,
        out: &mut Outbox,
        f: impl FnOnce(&mut M, Now, &mut Outbox) -> R,
    ) -> R {
        // What is gathered is of several machines and bears no mark.
        let is_apart = out.is_gathering() && self.machine.traffic_class() != 0;
        if is_apart {
            shared.send_gathered(out);
        }
        let before = out.transmits().len();
        let result = f(&mut self.machine, now, out);
        self.datagrams += out.transmits().len().saturating_sub(before) as u64;
        if !out.transmits().is_empty() && !out.is_gathering() {
            let traffic_class = self.machine.traffic_class();
            let too_long = shared.transport.send(&Batch { out, traffic_class, recuts: M::FOLLOWS_PATHS });
            out.clear_transmits();
            self.machine.sent(clock::mono);
            for (address, bytes) in too_long {
                self.machine.path(address, bytes);
            }
        }
        if is_apart {
            out.gather(true);
        }
        if self.machine.moved_timeout() {
            self.arm(shared, guid);
        } else {
            debug_assert!(self.is_armed(), "a deadline was moved, and the timer is not told");
        }
        result
    }

    /// The timer's entry went off: does what is due.
    pub(crate) fn fire(&mut self, shared: &Shared, guid: Guid, now: Now, out: &mut Outbox) {
        self.deadline.disarmed();
        self.run(shared, guid, now, out, |machine, now, out| {
            if machine.next_timeout().is_some_and(|due| due <= now.mono) {
                machine.timeout(now, out);
            }
        });
    }

    fn run_call(&mut self, shared: &Shared, guid: Guid, now: Now, out: &mut Outbox, call: Deferred<M::Call>) {
        match call {
            Deferred::Fire => self.fire(shared, guid, now, out),
            Deferred::Call(call) => {
                self.run(shared, guid, now, out, |machine, now, out| machine.call(call, now, out));
            }
        }
    }

    fn arm(&self, shared: &Shared, guid: Guid) {
        self.deadline.set(&shared.timer, guid, self.machine.next_timeout());
    }

    /// Whether the timer knows of the deadline.
    fn is_armed(&self) -> bool {
        self.deadline.is(self.machine.next_timeout())
    }
}

impl<M: StateMachine> EndpointSlot<M> {
    fn build(guid: Guid, machine: M, events_max: usize, is_agreed: bool) -> Arc<Self> {
        let state = Timed::new(machine);
        Arc::new(Self {
            id: guid.entity,
            guid,
            progress: Arc::default(),
            events_max,
            is_agreed,
            listened: AtomicU32::new(0),
            deadline: Arc::clone(&state.deadline),
            state: Delegating::new(state),
        })
    }

    /// Runs `f` under the endpoint lock and sends what it left under the same lock, so that datagrams of one
    /// endpoint keep their order. Events are reported after unlocking.
    pub(crate) fn with<R>(
        &self,
        participant: &ParticipantSlot,
        f: impl FnOnce(&mut M, Now, &mut Outbox) -> R,
    ) -> R {
        dispatch::with_outbox(|out| {
            let result = self.run(participant.shared(), clock::now(), out, f);
            participant.report(out);
            result
        })
    }

    /// Like [`EndpointSlot::with`], for a write. What this process is sent the caller receives itself, if it
    /// would have to wake somebody for it. Listeners and tasks hear of it from a thread of the domain all the
    /// same: the caller may hold locks that they take.
    pub(crate) fn write<R>(
        &self,
        participant: &ParticipantSlot,
        f: impl FnOnce(&mut M, Now, &mut Outbox) -> R,
    ) -> R {
        let shared = participant.shared();
        dispatch::with_outbox(|out| {
            let awaiting = self.receives_own(shared).map(Awaiting::begin);
            let result = self.run(shared, clock::now(), out, f);
            if awaiting.is_some_and(Awaiting::end) && deliver::receive_own(shared) {
                self.listened.store(LISTENED_CALLS, Ordering::Relaxed);
            }
            participant.report(out);
            result
        })
    }

    /// As what the process sends to itself, if the caller receives that.
    fn receives_own(&self, shared: &Shared) -> Option<NodeId> {
        let node = shared.transport.own_queue().filter(|_| !dispatch::defers_events())?;
        let calls = self.listened.load(Ordering::Relaxed);
        if calls > 0 {
            self.listened.store(calls - 1, Ordering::Relaxed);
        }
        (calls == 0).then_some(node)
    }

    /// Like [`EndpointSlot::with`] for callers that report later.
    pub(crate) fn run<R>(
        &self,
        shared: &Shared,
        now: Now,
        out: &mut Outbox,
        f: impl FnOnce(&mut M, Now, &mut Outbox) -> R,
    ) -> R {
        let result = self.locked(|state| state.run(shared, self.guid, now, out, f));
        self.run_deferred(shared, now, out);
        result
    }

    /// Like [`EndpointSlot::with`] for what leaves nothing to send and nothing to report.
    #[inline]
    pub(crate) fn quietly<R>(&self, participant: &ParticipantSlot, f: impl FnOnce(&mut M) -> R) -> R {
        let shared = participant.shared();
        let result = self.locked(|state| {
            let result = f(&mut state.machine);
            state.arm(shared, self.guid);
            result
        });
        if self.state.has_deferred() {
            dispatch::with_outbox(|out| {
                self.run_deferred(shared, clock::now(), out);
                participant.report(out);
            });
        }
        result
    }

    /// Makes a call now or, when the endpoint is busy, leaves it to who holds the lock: the receive thread
    /// does not wait for an application in the middle of a `write`, and that `write` need not wake it.
    pub(crate) fn run_or_defer(&self, shared: &Shared, now: Now, out: &mut Outbox, call: M::Call) {
        self.run_or_enqueue(shared, now, out, Deferred::Call(call));
    }

    fn run_or_enqueue(&self, shared: &Shared, now: Now, out: &mut Outbox, call: Deferred<M::Call>) {
        self.state.run_or_enqueue(call, |state, call| {
            let _rank = Rank::Endpoint.hold();
            state.run_call(shared, self.guid, now, out, call);
        });
        self.run_deferred(shared, now, out);
    }

    /// Uses the lock in the knowledge that [`Self::run_deferred`] follows.
    #[inline]
    fn locked<R>(&self, f: impl FnOnce(&mut Timed<M>) -> R) -> R {
        let _rank = Rank::Endpoint.hold();
        self.state.with(f)
    }

    /// Makes the calls that came while the lock was held.
    #[inline]
    fn run_deferred(&self, shared: &Shared, now: Now, out: &mut Outbox) {
        if self.state.has_deferred() {
            self.state.run_deferred(|state, call| {
                let _rank = Rank::Endpoint.hold();
                state.run_call(shared, self.guid, now, out, call);
            });
        }
    }

    /// Looks at the state machine: nothing may change, nothing is sent.
    pub(crate) fn look<R>(&self, f: impl FnOnce(&M) -> R) -> R {
        let _rank = Rank::Endpoint.hold();
        f(&self.state.lock().machine)
    }

    /// So many datagrams the endpoint composed, each for one destination or more.
    pub(crate) fn datagrams(&self) -> u64 {
        let _rank = Rank::Endpoint.hold();
        let state = self.state.lock();
        state.datagrams
    }

    /// Changes a state machine in a way that sends nothing and moves no deadline.
    pub(crate) fn edit<R>(&self, f: impl FnOnce(&mut M) -> R) -> R {
        f(&mut self.state.lock().machine)
    }

    fn fire(&self, shared: &Shared, now: Now, out: &mut Outbox) {
        // In a steady flow deadlines move on before they are reached: no reason to stop the flow.
        if self.deadline.is_due(&shared.timer, self.guid, now.mono) {
            self.run_or_enqueue(shared, now, out, Deferred::Fire);
        }
    }

    /// The slot can be found by the timer from now on.
    fn announce_deadline(&self, shared: &Shared) {
        let _rank = Rank::Endpoint.hold();
        let state = self.state.lock();
        self.deadline.disarmed();
        state.arm(shared, self.guid);
    }
}

impl WriterSlot {
    /// A slot for `writer`.
    pub(crate) fn new(writer: Writer) -> Arc<Self> {
        Self::build(writer.guid(), writer, 1, false)
    }
}

impl ReaderSlot {
    /// A slot for `reader`.
    pub(crate) fn new(reader: Reader) -> Arc<Self> {
        let events_max = reader.stored_before_any_leaves();
        let is_agreed = reader.qos().is_atomic();
        Self::build(reader.guid(), reader, events_max, is_agreed)
    }
}

impl StateMachine for Writer {
    type Call = Response;

    fn call(&mut self, call: Response, now: Now, out: &mut Outbox) {
        // The writer counts its own drops.
        let _ = match call {
            Response::AckNack(reader, acknack) => self.on_acknack(now, reader, &acknack, out),
            Response::NackFrag(reader, nack) => self.on_nack_frag(now, reader, &nack, out),
        };
    }

    fn timeout(&mut self, now: Now, out: &mut Outbox) {
        Self::timeout(self, now, out);
    }

    fn next_timeout(&self) -> Option<Instant> {
        Self::next_timeout(self)
    }

    fn moved_timeout(&mut self) -> bool {
        Self::moved_timeout(self)
    }

    fn traffic_class(&self) -> u8 {
        Self::traffic_class(self)
    }

    const FOLLOWS_PATHS: bool = true;

    fn path(&mut self, address: IpAddr, bytes: usize) {
        Self::path(self, address, bytes);
    }

    fn sent(&mut self, clock: fn() -> Instant) {
        Self::sent(self, clock());
    }
}

impl StateMachine for Reader {
    type Call = Infallible;

    fn call(&mut self, call: Infallible, _now: Now, _out: &mut Outbox) {
        match call {}
    }

    fn timeout(&mut self, now: Now, out: &mut Outbox) {
        Self::timeout(self, now, out);
    }

    fn next_timeout(&self) -> Option<Instant> {
        Self::next_timeout(self)
    }
}

impl StateMachine for Participant {
    type Call = Infallible;

    fn call(&mut self, call: Infallible, _now: Now, _out: &mut Outbox) {
        match call {}
    }

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
