//! State that several processes hold and change together: state machine replication on an ATOMIC topic.
//!
//! Every process applies the same commands in the same order, so that all have the same state. One that
//! dies takes nothing with it; one that comes later, or comes back, gets a snapshot of the state and the
//! commands after it, and has the same state again. For that the members keep the last snapshot, of up to
//! 64 MiB, and the commands since then: some thousand.
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
//! #[derive(Clone, Debug, Default, DdsType)]
//! struct Account {
//!     balance: i64,
//! }
//!
//! impl StateMachine for Account {
//!     type Command = Deposit;
//!     type Response = i64;
//!     type Snapshot = Self;
//!
//!     fn apply(&mut self, command: Deposit) -> i64 {
//!         self.balance += command.amount;
//!         self.balance
//!     }
//!
//!     fn snapshot(&self) -> Self {
//!         self.clone()
//!     }
//!
//!     fn restore(snapshot: Self) -> Self {
//!         snapshot
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

use plainsong_proto::atomic::SnapshotLimits;
use plainsong_proto::cdr::{EncodeError, Endianness, XcdrVersion, from_payload, to_payload};
use plainsong_proto::malformed::Malformed;

use crate::atomic::{GivenState, NotWritten};
use crate::base::clock;
use crate::data_reader::{AnyDataReader, DataReader};
use crate::data_writer::DataWriter;
use crate::error::{BadParameter, Error, OutOfResources, Result, WaitedFor};
use crate::instance::InstanceHandle;
use crate::listener::DataReaderListener;
use crate::participant::DomainParticipant;
use crate::qos::{ConsistencyKind, Durability, QosSet, ResourceLimits};
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

    /// What it is at one moment, for those who come later: the state itself, where that is a [`DdsType`].
    type Snapshot: DdsType;

    /// Carries a command out.
    fn apply(&mut self, command: Self::Command) -> Self::Response;

    /// The state as it is, with all that [`Self::apply`] depends on. Taken now and then.
    fn snapshot(&self) -> Self::Snapshot;

    /// The state that a snapshot was taken of.
    fn restore(snapshot: Self::Snapshot) -> Self;
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
    /// Commands since the last snapshot, and the octets of that.
    since_snapshot: u64,
    snapshot_bytes: usize,
    trouble: Option<Trouble>,
    /// Commands of this copy that somebody waits for, and their responses once they are applied.
    proposed: BTreeMap<Time, Option<S::Response>>,
}

/// Why a copy does not go on.
#[derive(Clone, Debug)]
enum Trouble {
    /// Its snapshot has so many octets.
    TooLong(usize),
    /// Its snapshot cannot be encoded.
    Unwritable(EncodeError),
    /// That of another process cannot be decoded.
    Unreadable(Malformed),
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
        if let Some(group) = reader.inner().agreed.get() {
            group.want_state(reader.guid().entity);
        }
        // What readers with EVENTUAL consistency can still get of the commands is bounded, too.
        let limits = SnapshotLimits::default();
        let max_samples = limits.commands as i32;
        let limits = ResourceLimits { max_samples, ..ResourceLimits::default() };
        let qos = qos(QosSet::writer()).resource_limits(limits);
        let writer = participant.create_publisher(QosSet::default())?.create_writer(&topic, qos)?;
        let machine = Machine {
            state: S::default(),
            last: Agreed::default(),
            since_snapshot: 0,
            snapshot_bytes: 0,
            trouble: None,
            proposed: BTreeMap::new(),
        };
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
    /// [`Error::Timeout`]: it was not accepted, or not applied yet; in the second case it may still be. If
    /// this participant was excluded from the group meanwhile, and the others have taken it in, it gets their
    /// snapshot and not the response. [`Error::OutOfResources`]: the state is too long for a snapshot.
    /// [`Error::BadParameter`]: the snapshot of another process is no such state; this copy applies nothing
    /// more. Those of [`DataWriter::write`].
    pub fn propose(&self, command: &S::Command, timeout: impl Into<Duration>) -> Result<S::Response> {
        self.inner.check()?;
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
                let why = self.inner.reader.inner().agreed.get().map(|it| it.explain(NotWritten::Full));
                let what = format!(
                    "waiting for a command of {} to be applied ({})",
                    self.inner.writer.topic_name(),
                    why.unwrap_or_default()
                );
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
    /// As [`DataReader::sync`]; and [`Error::BadParameter`] as for [`Self::propose`].
    pub fn sync(&self, timeout: impl Into<Duration>) -> Result<()> {
        self.inner.reader.sync(timeout)?;
        self.inner.apply_all()?;
        match self.inner.check() {
            Err(Error::OutOfResources(_)) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
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
        let samples = self.reader.take()?;
        let group = self.reader.inner().agreed.get();
        let mut given = group.and_then(|group| group.take_state(self.reader.guid().entity));
        for Sample { info, data, .. } in samples {
            let Some(command) = data else { continue };
            // Of two groups that did not know of each other the younger has ended, and so has its state.
            let begins_anew =
                info.agreed.position <= machine.last.position || info.agreed.epoch < machine.last.epoch;
            let is_after = |it: &mut GivenState| {
                if it.begins_anew { begins_anew } else { it.through < info.agreed.position }
            };
            if let Some(given) = given.take_if(is_after) {
                machine.restore(&given);
            } else if begins_anew {
                machine.begin();
            }
            if matches!(machine.trouble, Some(Trouble::Unreadable(_))) {
                continue;
            }
            let response = machine.state.apply(command);
            machine.last = info.agreed;
            machine.since_snapshot += 1;
            if info.publication_handle == self.own
                && let Some(waited_for) = machine.proposed.get_mut(&info.source_timestamp)
            {
                *waited_for = Some(response);
            }
        }
        if let Some(given) = given {
            machine.restore(&given);
        }
        if let Some((through, octets)) = machine.take_snapshot()
            && let Some(group) = group
        {
            group.replace_history(through, octets);
        }
        drop(machine);
        self.applied.notify_all();
        Ok(())
    }

    /// Whether this copy goes on.
    fn check(&self) -> Result<()> {
        let Some(trouble) = self.lock().trouble.clone() else { return Ok(()) };
        let entity = format!("the copy of {}", self.writer.topic_name());
        Err(match trouble {
            Trouble::TooLong(octets) => {
                let octets_max = SnapshotLimits::default().bytes_max;
                OutOfResources::State { entity, octets, octets_max }.into()
            }
            Trouble::Unwritable(source) => {
                Error::Serialization { topic: self.writer.topic_name().to_owned(), source }
            }
            Trouble::Unreadable(source) => {
                let found =
                    "the state that another process sent is no snapshot of this one's type".to_owned();
                BadParameter::Octets { entity, found, source }.into()
            }
        })
    }
}

impl<S: StateMachine> Machine<S> {
    /// Nothing of what was applied counts.
    fn begin(&mut self) {
        self.state = S::default();
        self.since_snapshot = 0;
        self.trouble = None;
    }

    fn restore(&mut self, given: &GivenState) {
        match from_payload::<S::Snapshot>(&given.octets) {
            Ok(snapshot) => {
                self.state = S::restore(snapshot);
                self.trouble = None;
            }
            Err(malformed) => self.trouble = Some(Trouble::Unreadable(malformed)),
        }
        self.last = Agreed { position: given.through, epoch: 0 };
        self.since_snapshot = 0;
        self.snapshot_bytes = given.octets.len();
    }

    /// A snapshot, if one is due: the longer they are, the more commands are between them.
    fn take_snapshot(&mut self) -> Option<(u64, Arc<[u8]>)> {
        let limits = SnapshotLimits::default();
        let is_due = self.since_snapshot >= limits.pause(self.snapshot_bytes);
        if !is_due || matches!(self.trouble, Some(Trouble::Unreadable(_))) {
            return None;
        }
        self.since_snapshot = 0;
        let mut octets = Vec::new();
        let encoded = to_payload(&self.state.snapshot(), XcdrVersion::Xcdr2, Endianness::Little, &mut octets);
        self.snapshot_bytes = octets.len();
        self.trouble = match encoded {
            Err(error) => Some(Trouble::Unwritable(error)),
            Ok(()) if octets.len() > limits.bytes_max => Some(Trouble::TooLong(octets.len())),
            Ok(()) => None,
        };
        self.trouble.is_none().then(|| (self.last.position, Arc::from(octets)))
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
