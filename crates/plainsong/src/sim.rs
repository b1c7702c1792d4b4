//! The driver for the simulator: dispatch, registry, slots and deadlines as they are, without threads,
//! sockets or clock.
//!
//! One thread calls, and says what time it is; what is sent is collected. So a run depends on its seed alone.
//! What is left out: threads, sockets, the receive policy, and the entities of the API; a call of the
//! application goes to its slot as `DataWriter::write` does. With the feature `sim` only, and for nobody
//! else.

use std::sync::{Arc, Mutex};

use plainsong_proto::discovery::Participant;
use plainsong_proto::guid::EntityId;
use plainsong_proto::locator::Locator;
use plainsong_proto::matched::Command;
use plainsong_proto::outbox::{Event, Outbox};
use plainsong_proto::reader::Reader;
use plainsong_proto::stats::DropCounters;
use plainsong_proto::time::{Instant, Now};
use plainsong_proto::writer::Writer;

use crate::base::clock;
use crate::base::config::Config;
use crate::base::locks::lock;
use crate::runtime::dispatch::DeferredEvents;
use crate::runtime::drops::Drops;
use crate::runtime::heap::Heap;
use crate::runtime::receive::UserInputs;
use crate::runtime::registry::Registry;
use crate::runtime::timer::Timer;
use crate::runtime::{EventSink, ParticipantSlot, ReaderSlot, Shared, WriterSlot, deliver};
use crate::transport::collector::Collector;
use crate::transport::{Received, Transports};

pub use crate::transport::collector::Collected;

/// What a path of the simulated network takes in one datagram.
const PATH_BYTES: usize = 1_472;

/// The driver of one process.
pub struct Driver {
    shared: Arc<Shared>,
    sent: Collector,
}

/// What discovery decided, or the application is told, in order.
#[derive(Clone, Debug)]
pub enum Heard {
    /// The driver is about to carry it out.
    Command(Command),
    /// Listeners would be notified.
    Event(Event),
}

/// A participant of that process.
pub struct SimParticipant {
    slot: Arc<ParticipantSlot>,
    heard: Arc<Log>,
}

/// A writer of a participant.
pub struct SimWriter {
    participant: Arc<ParticipantSlot>,
    slot: Arc<WriterSlot>,
}

/// A reader of a participant.
pub struct SimReader {
    participant: Arc<ParticipantSlot>,
    slot: Arc<ReaderSlot>,
}

#[derive(Default)]
struct Log(Mutex<Vec<Heard>>);

impl EventSink for Log {
    fn events(&self, events: &mut Vec<Event>) {
        lock(&self.0).extend(events.drain(..).map(Heard::Event));
    }

    fn wake_waiters(&self, _: &Event, _: &mut Vec<std::task::Waker>) -> bool {
        false
    }

    fn command(&self, command: &Command) {
        lock(&self.0).push(Heard::Command(command.clone()));
    }
}

impl Default for Driver {
    fn default() -> Self {
        let sent = Collector::default();
        let config = Config { datagram_bytes_max: PATH_BYTES, ..Config::default() };
        let transport = Transports::collecting(sent.clone(), &config);
        let shared = Arc::new(Shared {
            inputs: UserInputs::new(&transport, &config),
            deferred: DeferredEvents::default(),
            transport,
            timer: Timer::default(),
            registry: Registry::default(),
            drops: Drops::default(),
            heap: Heap::default(),
        });
        Self { shared, sent }
    }
}

impl Driver {
    /// A datagram arrived.
    pub fn receive(&self, now: Now, from: Locator, bytes: &[u8]) {
        clock::at(now, || {
            _ = deliver::datagram(&self.shared, &Received { from, interface: 0, bytes, attachment: None })
        });
    }

    /// Does what is due.
    pub fn fire_due(&self, now: Now) {
        clock::at(
            now,
            || while self.shared.timer.fire_due(|guid| deliver::fire_timer(&self.shared, guid)) {},
        );
    }

    /// When [`Self::fire_due`] has something to do next.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        self.shared.timer.next()
    }

    /// What was sent since this was asked last.
    #[must_use]
    pub fn take_sent(&self) -> Vec<Collected> {
        self.sent.take()
    }

    /// What was dropped before it reached any endpoint.
    #[must_use]
    pub fn drops(&self) -> DropCounters {
        self.shared.drops.counters()
    }

    /// Registers a participant. Those of one process hear of each other without the wire.
    pub fn add(&self, now: Now, participant: Participant) -> SimParticipant {
        let heard = Arc::<Log>::default();
        let sink = Arc::<Log>::clone(&heard);
        let slot = ParticipantSlot::new(Arc::clone(&self.shared), participant, sink);
        clock::at(now, || self.shared.registry.add(&slot));
        SimParticipant { slot, heard }
    }
}

impl SimParticipant {
    /// What it was told since this was asked last.
    #[must_use]
    pub fn take_heard(&self) -> Vec<Heard> {
        std::mem::take(&mut *lock(&self.heard.0))
    }

    /// A call into the control plane.
    pub fn run<R>(&self, now: Now, f: impl FnOnce(&mut Participant, &mut Outbox) -> R) -> R {
        clock::at(now, || self.slot.control(|participant, _, out| f(participant, out)))
    }

    /// Looks at the control plane.
    pub fn look<R>(&self, f: impl FnOnce(&Participant) -> R) -> R {
        self.slot.look(f)
    }

    /// Makes a writer known to the driver.
    #[must_use]
    pub fn add_writer(&self, now: Now, writer: Writer) -> SimWriter {
        let slot = WriterSlot::new(writer);
        clock::at(now, || self.slot.insert_writer(&slot));
        SimWriter { participant: Arc::clone(&self.slot), slot }
    }

    /// Makes a reader known to the driver.
    #[must_use]
    pub fn add_reader(&self, now: Now, reader: Reader) -> SimReader {
        let slot = ReaderSlot::new(reader);
        clock::at(now, || self.slot.insert_reader(&slot));
        SimReader { participant: Arc::clone(&self.slot), slot }
    }

    /// Nothing reaches the endpoint any more.
    pub fn remove(&self, id: EntityId) {
        if id.is_reader() { self.slot.remove_reader(id) } else { self.slot.remove_writer(id) }
    }
}

impl SimWriter {
    /// A call of the application.
    pub fn run<R>(&self, now: Now, f: impl FnOnce(&mut Writer, &mut Outbox) -> R) -> R {
        clock::at(now, || self.slot.with(&self.participant, |writer, _, out| f(writer, out)))
    }

    /// Looks at it.
    pub fn look<R>(&self, f: impl FnOnce(&Writer) -> R) -> R {
        self.slot.look(f)
    }
}

impl SimReader {
    /// A call of the application.
    pub fn run<R>(&self, now: Now, f: impl FnOnce(&mut Reader, &mut Outbox) -> R) -> R {
        clock::at(now, || self.slot.with(&self.participant, |reader, _, out| f(reader, out)))
    }

    /// Looks at it.
    pub fn look<R>(&self, f: impl FnOnce(&Reader) -> R) -> R {
        self.slot.look(f)
    }
}
