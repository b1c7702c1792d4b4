//! State that several processes hold and change together: state machine replication on an ATOMIC topic.
//!
//! Every process applies the same commands in the same order, so that all have the same state. One that
//! dies takes nothing with it; one that comes later, or comes back, gets all commands and has the same state
//! again. For that the members keep all of them in memory.
//!
//! A process that is cut off from a majority of the voters ([`atomic`](crate::atomic)) has the state as it
//! was, and proposes nothing until it is heard again.
//!
//! ```no_run
//! use plainsong::prelude::*;
//! use plainsong::replicated::{Replicated, StateMachine};
//!
//! #[derive(Clone, Debug, Default, DdsType)]
//! struct Deposit {
//!     amount: i64,
//! }
//!
//! #[derive(Default)]
//! struct Account {
//!     balance: i64,
//! }
//!
//! impl StateMachine for Account {
//!     type Command = Deposit;
//!     type Response = i64;
//!
//!     fn apply(&mut self, command: Deposit) -> i64 {
//!         self.balance += command.amount;
//!         self.balance
//!     }
//! }
//!
//! # fn main() -> plainsong::Result<()> {
//! let participant = DomainParticipant::new(0)?;
//! let account = Replicated::<Account>::open(&participant, "Account")?;
//! let balance = account.propose(&Deposit { amount: 10 }, Duration::from_secs(5))?;
//! assert!(balance >= 10);
//! account.sync(Duration::from_secs(5))?;
//! println!("{}", account.read(|it| it.balance));
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use crate::base::clock;
use crate::data_reader::{AnyDataReader, DataReader};
use crate::data_writer::DataWriter;
use crate::error::{Error, Result, WaitedFor};
use crate::instance::InstanceHandle;
use crate::listener::DataReaderListener;
use crate::participant::DomainParticipant;
use crate::qos::{ConsistencyKind, Durability, QosSet};
use crate::sample::{Agreed, Sample};
use crate::status::StatusKind;
use crate::time::{Duration, Time};
use crate::types::DdsType;
use crate::write_options::WriteOptions;

/// A state that commands change, the same way wherever they are applied: what [`Self::apply`] does may depend
/// on the state and the command alone, not on clocks, random numbers, addresses or the order of hash maps.
pub trait StateMachine: Default + Send + 'static {
    /// What changes it.
    type Command: DdsType;
    /// What who proposed a command is told.
    type Response: Send + 'static;

    /// Carries a command out.
    fn apply(&mut self, command: Self::Command) -> Self::Response;
}

/// A participant's copy of a state that all who open it under one name have in common.
pub struct Replicated<S: StateMachine> {
    inner: Arc<Inner<S>>,
}

struct Inner<S: StateMachine> {
    writer: DataWriter<S::Command>,
    reader: DataReader<S::Command>,
    own: InstanceHandle,
    /// Commands are numbered and written under it.
    last_stamp: Mutex<Time>,
    machine: Mutex<Machine<S>>,
    applied: Condvar,
}

struct Machine<S: StateMachine> {
    state: S,
    /// Of the last command that it has in it.
    last: Agreed,
    /// Commands of this copy that somebody waits for, and their responses once they are applied.
    proposed: BTreeMap<Time, Option<S::Response>>,
}

/// Applies what arrives, on the thread that brings it.
struct Applier<S: StateMachine>(Weak<Inner<S>>);

impl<S: StateMachine> Replicated<S> {
    /// Takes part in the state of this name: a TRANSIENT_LOCAL topic with CONSISTENCY ATOMIC. The state
    /// begins as its default, and has what others have done to it once [`Self::sync`] returns.
    ///
    /// # Errors
    /// As those of creating a topic, a writer and a reader.
    pub fn open(participant: &DomainParticipant, name: &str) -> Result<Self> {
        let qos = |qos: QosSet| {
            qos.reliable()
                .keep_all()
                .durability(Durability::TransientLocal)
                .consistency(ConsistencyKind::Atomic)
        };
        let topic = participant.create_topic::<S::Command>(name, QosSet::default())?;
        let reader =
            participant.create_subscriber(QosSet::default())?.create_reader(&topic, qos(QosSet::reader()))?;
        let writer =
            participant.create_publisher(QosSet::default())?.create_writer(&topic, qos(QosSet::writer()))?;
        let machine = Machine { state: S::default(), last: Agreed::default(), proposed: BTreeMap::new() };
        let inner = Arc::new(Inner {
            own: writer.instance_handle(),
            writer,
            reader,
            last_stamp: Mutex::new(Time::FIRST_ON_WIRE),
            machine: Mutex::new(machine),
            applied: Condvar::new(),
        });
        let applier = Arc::new(Applier(Arc::downgrade(&inner)));
        inner.reader.set_listener(Some(applier), StatusKind::DataAvailable);
        inner.apply_all()?;
        Ok(Self { inner })
    }

    /// Proposes a command, waits until it is applied here, and returns what that returned. Whatever is
    /// proposed after that, anywhere, is applied later. Not to be called by a listener: it waits for what
    /// others bring.
    ///
    /// # Errors
    /// [`Error::Timeout`]: it was not accepted, or not applied yet; in the second case it may still be. Those
    /// of [`DataWriter::write`].
    pub fn propose(&self, command: &S::Command, timeout: impl Into<Duration>) -> Result<S::Response> {
        let timeout = timeout.into();
        let deadline = clock::deadline(timeout);
        let stamp = self.write(command, timeout)?;
        let mut machine = self.inner.lock();
        loop {
            if let Some(Some(_)) = machine.proposed.get(&stamp)
                && let Some(Some(response)) = machine.proposed.remove(&stamp)
            {
                return Ok(response);
            }
            let left = deadline.map(clock::until);
            if left.is_some_and(|left| left.is_zero()) {
                machine.proposed.remove(&stamp);
                let what =
                    format!("waiting for a command of {} to be applied", self.inner.writer.topic_name());
                return Err(Error::Timeout { waited_for: WaitedFor::Acknowledgments, what, timeout });
            }
            let left = left.unwrap_or(std::time::Duration::MAX);
            machine =
                self.inner.applied.wait_timeout(machine, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Writes a command under a time stamp that no other command of this copy has.
    fn write(&self, command: &S::Command, timeout: Duration) -> Result<Time> {
        let mut last = self.inner.last_stamp.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = clock::now().wall.max(last.plus(Duration::from_nanos(1)));
        *last = stamp;
        self.inner.lock().proposed.insert(stamp, None);
        let options = WriteOptions::new().source_timestamp(stamp).max_blocking_time(timeout);
        let written = self.inner.writer.write_with(command, &options);
        if written.is_err() {
            self.inner.lock().proposed.remove(&stamp);
        }
        written.map(|()| stamp)
    }

    /// Waits until this copy has everything that was applied anywhere before the call. Reading after that is
    /// linearizable.
    ///
    /// # Errors
    /// As [`DataReader::sync`].
    pub fn sync(&self, timeout: impl Into<Duration>) -> Result<()> {
        self.inner.reader.sync(timeout)?;
        self.inner.apply_all()
    }

    /// Looks at this copy as it is: it may be behind others.
    pub fn read<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        look(&self.inner.lock().state)
    }

    /// The position of the last command that this copy has in it, in the agreed order of the topic.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.inner.lock().last.position
    }
}

impl<S: StateMachine> Inner<S> {
    fn lock(&self) -> MutexGuard<'_, Machine<S>> {
        // A command that panics leaves the state as it is; the next thread that looks at it is told nothing.
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply_all(&self) -> Result<()> {
        let mut machine = self.lock();
        // Taken under the lock: two threads that took in turn might apply in another order.
        for Sample { info, data, .. } in self.reader.take()? {
            let Some(command) = data else { continue };
            // Of two groups that did not know of each other the younger has ended, and so has its state.
            if info.agreed.position <= machine.last.position || info.agreed.epoch < machine.last.epoch {
                machine.state = S::default();
            }
            let response = machine.state.apply(command);
            machine.last = info.agreed;
            if info.publication_handle == self.own
                && let Some(waited_for) = machine.proposed.get_mut(&info.source_timestamp)
            {
                *waited_for = Some(response);
            }
        }
        drop(machine);
        self.applied.notify_all();
        Ok(())
    }
}

impl<S: StateMachine> DataReaderListener for Applier<S> {
    fn on_data_available(&self, _reader: &AnyDataReader) {
        if let Some(inner) = self.0.upgrade() {
            // A reader that was deleted has nothing to apply.
            let _ = inner.apply_all();
        }
    }
}
