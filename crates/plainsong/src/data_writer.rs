//! Typed writers (DCPS 1.4 §2.2.2.4.2). `write` serializes, records and sends on the caller's thread.

mod agreed;
mod delivery;
mod dynamic;
mod errors;
mod loan;
mod serialized;
mod waiting;

use std::any::TypeId;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

pub use delivery::{Delivery, ParticipantDelivery};
pub use loan::{Loan, NotWritten, OctetLoan, SerializedLoan};
use plainsong_proto::cdr::{self, Cdr, DdsType, EncodeError, Endianness, XcdrVersion};
pub use plainsong_proto::discovery::{MemoryRefusal, UsedTransport};
use plainsong_proto::guid::{EntityId, Guid};
use plainsong_proto::instance::{InstanceHandle, Key, KeyFunction};
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::{COPIED_BYTES_MAX, NewPayload, Payload, PayloadPool, SHORT_BYTES_MAX};
use plainsong_proto::qos::{AccessScope, EntityKind, QosSet, Unhonoured, changed_immutable, unhonoured};
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::status::{
    CountStatus, DeadlineMissedStatus, IncompatibleQosStatus, MatchedStatus, StatusKind, StatusMask,
};
use plainsong_proto::time::{Duration, Now, Time};
use plainsong_proto::type_support::{self, TypeSupport};
pub use plainsong_proto::writer::ReaderBehind;
use plainsong_proto::writer::{ChangeKind, WriteError, Writer, WriterConfig};

use crate::atomic::GroupSlot;
use crate::base::{clock, trace};
use crate::condition::{Condition, HasCore};
use crate::consistent::{check_announced_qos, check_qos};
use crate::entity::{EntityCore, ListenerSlot, endpoint_inner, endpoint_operations, key_value};
use crate::error::{Error, OutOfResources, Result};
use crate::group::{Member, announced_qos};
use crate::keys;
use crate::listener::DataWriterListener;
use crate::publisher::{Publisher, PublisherInner};
use crate::runtime::{ParticipantSlot, WriterSlot};
use crate::topic::{AnyTopic, Topic, TopicInner};
use crate::transport::LOAN_SHARED_BYTES_MIN;
use crate::write_options::{Patience, WriteOptions};

/// How long a deletion may wait for readers to hear of it.
const DELETION_PATIENCE: Duration = Duration::from_secs(1);

/// Writes samples of type `T`. Clones are the same writer; it leaves when the last is dropped.
///
/// Dropping waits for nobody: samples that readers have not acknowledged may not reach them, and its
/// instances are left without writers. [`Publisher::delete_writer`] disposes them first where
/// WRITER_DATA_LIFECYCLE says so, and waits for readers to hear of that, `max_blocking_time` or a second at
/// most. [`Self::wait_for_acknowledgments`] before either makes sure of all.
pub struct DataWriter<T> {
    inner: Arc<WriterInner>,
    marker: PhantomData<fn(T)>,
}

/// A writer whose type is not known to the compiler: what listeners get, and who writes encoded samples
/// ([`DomainParticipant::create_any_topic`](crate::participant::DomainParticipant::create_any_topic)).
#[derive(Clone)]
pub struct AnyDataWriter(Arc<WriterInner>);

pub(crate) struct WriterInner {
    pub(crate) topic: Arc<TopicInner>,
    publisher: Arc<PublisherInner>,
    slot: Arc<WriterSlot>,
    core: EntityCore,
    listener: ListenerSlot<dyn DataWriterListener>,
    pool: PayloadPool,
    /// Octets of the last sample: the next may have about as many.
    usual_bytes: AtomicUsize,
    /// Samples of up to so many are copied by the protocol's writer.
    copied_bytes_max: usize,
    version: XcdrVersion,
    guid: Guid,
    ty: Arc<dyn TypeSupport>,
    /// Finds the key of encoded samples.
    key: KeyFunction,
    max_blocking_time: Duration,
    /// CONSISTENCY ATOMIC.
    is_atomic: bool,
    /// Then the group to which it writes, once it is enabled.
    agreed: OnceLock<Arc<GroupSlot>>,
}

impl<T: DdsType> DataWriter<T> {
    pub(crate) fn create(publisher: Arc<PublisherInner>, topic: &Topic<T>, qos: QosSet) -> Result<Self> {
        let inner = WriterInner::create(publisher, &topic.inner, type_support::of::<T>(), qos)?;
        Ok(Self { inner, marker: PhantomData })
    }

    pub(crate) const fn inner(&self) -> &Arc<WriterInner> {
        &self.inner
    }

    /// Announces a writer that was created disabled.
    ///
    /// # Errors
    /// [`Error::NotEnabled`] when its participant is not, [`Error::OutOfResources`] at a limit.
    pub fn enable(&self) -> Result<()> {
        self.inner.enable()
    }

    /// Writes `sample` now. With RELIABLE and KEEP_ALL it waits for room, at most `max_blocking_time`: up to
    /// RESOURCE_LIMITS and
    /// [`Config::unacknowledged_bytes_max`](crate::base::config::Config::unacknowledged_bytes_max), for which
    /// a sample counts for 192 octets more than it has. Readers that have never answered anything are not
    /// waited for again and again ([`Self::readers_behind`]).
    ///
    /// With CONSISTENCY ATOMIC it waits for as long for members that have not delivered enough; while this
    /// participant joins the group of the topic, and while that changes, 3 s at least.
    ///
    /// # Errors
    /// [`Error::Timeout`] when no room came, [`Error::OutOfResources`] at a limit that waiting cannot lift,
    /// and for a sample longer than
    /// [`Config::sample_bytes_max`](crate::base::config::Config::sample_bytes_max), [`Error::Serialization`]
    /// when a bound is exceeded, [`Error::NotEnabled`].
    pub fn write(&self, sample: &T) -> Result<()> {
        self.change(sample, ChangeKind::Alive, None, Patience::usual(self.inner.max_blocking_time))
    }

    /// Writes a sample with borrowed members as [`Self::write`] does: `Image<'_>` on a topic of
    /// `Image<'static>`. The octets are copied once; nothing is borrowed after the return.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_borrowed(&self, sample: &T::Borrowed<'_>) -> Result<()> {
        self.change(sample, ChangeKind::Alive, None, Patience::usual(self.inner.max_blocking_time))
    }

    /// Writes as [`Self::write`] does, but for what `options` say.
    ///
    /// # Errors
    /// As [`Self::write`]; [`Error::PreconditionNotMet`] for the handle of another instance;
    /// [`Error::BadParameter`] for one that names none of this writer, for a timestamp that goes back, or is
    /// before 1970 or 2³² seconds later.
    pub fn write_with(&self, sample: &T, options: &WriteOptions) -> Result<()> {
        self.change_with(sample, ChangeKind::Alive, options)
    }

    /// Writes as [`Self::write_borrowed`] does, but for what `options` say.
    ///
    /// # Errors
    /// As [`Self::write_with`].
    pub fn write_borrowed_with(&self, sample: &T::Borrowed<'_>, options: &WriteOptions) -> Result<()> {
        self.change_with(sample, ChangeKind::Alive, options)
    }

    /// Writes without ever waiting.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] when there is no room now, [`Error::GroupUnready`] when the group of an ATOMIC
    /// topic has none; otherwise as [`Self::write`].
    pub fn try_write(&self, sample: &T) -> Result<()> {
        self.change(sample, ChangeKind::Alive, None, Patience::NONE)
    }

    /// Tells readers that the instance is gone.
    ///
    /// # Errors
    /// As [`Self::write`]; [`Error::PreconditionNotMet`] when the type has no key.
    pub fn dispose(&self, sample: &T) -> Result<()> {
        self.dispose_with(sample, &WriteOptions::new())
    }

    /// Disposes as [`Self::dispose`] does, but for what `options` say.
    ///
    /// # Errors
    /// As [`Self::dispose`] and [`Self::write_with`].
    pub fn dispose_with(&self, sample: &T, options: &WriteOptions) -> Result<()> {
        self.check_keyed()?;
        self.change_with(sample, ChangeKind::Dispose, options)
    }

    /// Tells readers that this writer will not write the instance any more. With
    /// `autodispose_unregistered_instances` it disposes the instance too.
    ///
    /// # Errors
    /// As [`Self::dispose`]; [`Error::PreconditionNotMet`] when the instance is not registered.
    pub fn unregister_instance(&self, sample: &T) -> Result<()> {
        self.unregister_instance_with(sample, &WriteOptions::new())
    }

    /// Unregisters as [`Self::unregister_instance`] does, but for what `options` say.
    ///
    /// # Errors
    /// As [`Self::unregister_instance`] and [`Self::write_with`].
    pub fn unregister_instance_with(&self, sample: &T, options: &WriteOptions) -> Result<()> {
        self.check_keyed()?;
        self.change_with(sample, ChangeKind::Unregister, options)
    }

    /// Prepares to write an instance, and gives its handle; NIL for a type without key.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] at `max_instances`, [`Error::NotEnabled`].
    pub fn register_instance(&self, sample: &T) -> Result<InstanceHandle> {
        if !T::KEYED {
            return Ok(InstanceHandle::NIL);
        }
        self.inner.core.check_exists(|| self.inner.describe())?;
        let key = self.key_of(sample)?;
        let payload = self.serialize(sample, true)?;
        self.inner
            .with(|writer, now, _| writer.register_instance(now, key, payload))?
            .map_err(|error| self.inner.write_error(error, None, None))
    }

    /// The handle of a registered instance.
    ///
    /// # Errors
    /// [`Error::NotEnabled`], [`Error::Serialization`].
    pub fn lookup_instance(&self, sample: &T) -> Result<Option<InstanceHandle>> {
        let key = self.key_of(sample)?;
        self.inner.with(|writer, _, _| writer.find_registered(key))
    }

    /// The key fields of a registered instance; other members have their defaults.
    ///
    /// # Errors
    /// [`Error::NotEnabled`], [`Error::BadParameter`] when the handle is not registered.
    pub fn key_value(&self, handle: InstanceHandle) -> Result<T> {
        let key = self.inner.with(|writer, _, _| writer.instance_key(handle).cloned())?;
        key_value(key, self.inner.ty.value_bytes(), || self.inner.describe())
    }

    /// The same writer without its type.
    #[must_use]
    pub fn as_any(&self) -> AnyDataWriter {
        AnyDataWriter(Arc::clone(&self.inner))
    }

    fn check_keyed(&self) -> Result<()> {
        if T::KEYED { Ok(()) } else { Err(self.inner.has_no_key()) }
    }

    fn change_with<S: Cdr>(&self, sample: &S, kind: ChangeKind, options: &WriteOptions) -> Result<()> {
        self.inner.check_handle(options.handle(), || self.key_of(sample))?;
        let timeout = options.patience(self.inner.max_blocking_time);
        self.change(sample, kind, options.timestamp(), timeout)
    }

    fn change<S: Cdr>(
        &self,
        sample: &S,
        kind: ChangeKind,
        timestamp: Option<Time>,
        patience: Patience,
    ) -> Result<()> {
        if let Some(timestamp) = timestamp {
            self.inner.check_timestamp(timestamp)?;
        }
        let key = self.key_of(sample)?;
        if self.change_of(sample, key, kind, timestamp, patience)? {
            self.keep_key(sample, key);
        }
        Ok(())
    }

    /// Whether it is to keep the serialized key; see [`Self::keep_key`].
    #[inline]
    fn change_of<S: Cdr>(
        &self,
        sample: &S,
        key: Key,
        kind: ChangeKind,
        timestamp: Option<Time>,
        patience: Patience,
    ) -> Result<bool> {
        let key_only = kind != ChangeKind::Alive;
        let usual_bytes = self.inner.usual_bytes.load(Ordering::Relaxed);
        if !key_only && usual_bytes <= self.inner.copied_bytes_max {
            let (mut short, mut long);
            let place: &mut [u8] = if usual_bytes <= SHORT_BYTES_MAX {
                short = [0; SHORT_BYTES_MAX];
                &mut short
            } else {
                long = [0; COPIED_BYTES_MAX];
                &mut long
            };
            match cdr::to_fixed_payload_as::<T, S>(sample, self.inner.version, Endianness::Little, place) {
                Ok(bytes) => {
                    if usual_bytes > SHORT_BYTES_MAX {
                        self.inner.usual_bytes.store(bytes, Ordering::Relaxed);
                    }
                    let octets = NewPayload::Octets(place.get(..bytes).unwrap_or(&[]));
                    return self.inner.write(kind, key, octets, timestamp, patience);
                }
                Err(EncodeError::BufferFull { .. }) => {}
                Err(error) => return Err(self.inner.serialization(error)),
            }
        }
        // Here locks are taken before the writer is asked.
        self.inner.core.check_exists(|| self.inner.describe())?;
        let mut payload = self.serialize(sample, key_only)?;
        self.inner.write(kind, key, NewPayload::Payload(&mut payload), timestamp, patience)
    }

    /// Has the writer know a key that is not the only one with its hash, for when the instance ends with the
    /// writer. The sample was written: nothing that goes wrong here may be taken for its failure.
    #[cold]
    fn keep_key<S: Cdr>(&self, sample: &S, key: Key) {
        self.inner.keep_key(key, || self.serialize(sample, true));
    }

    #[inline]
    fn key_of<S: Cdr>(&self, sample: &S) -> Result<Key> {
        keys::key_of::<T, S>(sample).map_err(|error| self.inner.serialization(error))
    }

    fn serialize<S: Cdr>(&self, sample: &S, key_only: bool) -> Result<Payload> {
        let version = self.inner.version;
        let usual_bytes = self.inner.usual_bytes.load(Ordering::Relaxed);
        if !key_only {
            if let Some(payload) = self.serialize_around(sample)? {
                return Ok(payload);
            }
            if usual_bytes >= LOAN_SHARED_BYTES_MIN
                && self.inner.shares_memory()
                && let Some(payload) = self.serialize_shared(sample, usual_bytes)?
            {
                return Ok(payload);
            }
        }
        let mut buffer = self.inner.pool.take();
        let bytes = buffer.bytes_mut();
        if key_only {
            cdr::key_to_payload_as::<T, S>(sample, version, Endianness::Little, bytes)
        } else {
            cdr::to_payload_as::<T, S>(sample, version, Endianness::Little, bytes)
        }
        .map_err(|error| self.inner.serialization(error))?;
        if !key_only {
            self.inner.usual_bytes.store(bytes.len(), Ordering::Relaxed);
        }
        Ok(buffer.freeze())
    }
}

const ENTITY_KIND: EntityKind = EntityKind::Writer;

/// What a writer can do whether or not its type is known.
macro_rules! untyped_operations {
    () => {
        endpoint_operations!(DataWriterListener);

        /// Waits until every reliable reader matched when a sample was written has acknowledged it, those
        /// apart that have answered nothing at all for 20 s since their match: [`Self::readers_behind`] tells
        /// of them. Where none is matched, it succeeds at once. A process that ends without it takes with it
        /// what readers still miss.
        ///
        /// With CONSISTENCY ATOMIC it waits until all of that is delivered in the agreed order, here and so
        /// to all members of the group.
        ///
        /// # Errors
        /// [`Error::Timeout`], [`Error::NotEnabled`]; [`Error::OutcomeUnknown`] with CONSISTENCY ATOMIC.
        pub fn wait_for_acknowledgments(&self, timeout: impl Into<Duration>) -> Result<()> {
            self.inner().wait_for_acknowledgments(timeout.into())
        }

        /// With CONSISTENCY ATOMIC: waits until everything that was delivered anywhere before the call, or
        /// whose writers were told so, is delivered to the readers of this participant; and at first until
        /// this participant is a member of its group.
        ///
        /// # Errors
        /// [`Error::Timeout`], [`Error::NotEnabled`]; [`Error::PreconditionNotMet`] with EVENTUAL
        /// consistency; [`Error::LeftGroup`] where the participant is no member any more.
        pub fn sync(&self, timeout: impl Into<Duration>) -> Result<()> {
            self.inner().sync(timeout.into())
        }

        /// Sends samples that wait for others to share a datagram with: in a flow of writes, or because
        /// LATENCY_BUDGET allows it.
        ///
        /// # Errors
        /// [`Error::NotEnabled`].
        pub fn flush(&self) -> Result<()> {
            self.inner().with(|writer, now, out| writer.flush(now, out))
        }

        /// Handles of the matched readers: [`Self::matched_subscription_data`] tells of each, [`Guid::from`]
        /// makes its GUID of it.
        ///
        /// # Errors
        /// [`Error::NotEnabled`].
        pub fn matched_subscriptions(&self) -> Result<Vec<InstanceHandle>> {
            self.inner().with(|writer, _, _| writer.matched_readers().map(InstanceHandle::from).collect())
        }

        /// The reliable readers that have not acknowledged everything, late joiners with what they lack of
        /// the history: how far they are, and how long they have answered nothing. Those that have least hold
        /// the writer back when `write` finds no room; one that has never answered anything is not waited for
        /// (`docs/qos.md`, RELIABILITY).
        ///
        /// # Errors
        /// [`Error::NotEnabled`].
        pub fn readers_behind(&self) -> Result<Vec<ReaderBehind>> {
            self.inner().with(|writer, now, _| writer.readers_behind(now.mono).collect())
        }

        /// How samples reach the matched readers: by shared memory, or by UDP and why so.
        ///
        /// # Errors
        /// [`Error::NotEnabled`].
        pub fn delivery(&self) -> Result<Delivery> {
            let inner = self.inner();
            let readers = inner.with(|writer, _, _| writer.matched_readers().collect::<Vec<_>>())?;
            Ok(Delivery::of(&readers, inner.publisher.participant.slot()?))
        }

        /// Asserts the writer's liveliness.
        ///
        /// # Errors
        /// [`Error::NotEnabled`].
        pub fn assert_liveliness(&self) -> Result<()> {
            self.inner().with(|writer, now, out| writer.assert_liveliness(now, out))?;
            self.inner()
                .publisher
                .participant
                .slot()?
                .control(|control, now, out| control.assert_liveliness(now, out));
            Ok(())
        }

        /// PUBLICATION_MATCHED; reading it resets the changes.
        ///
        /// # Errors
        /// [`Error::AlreadyDeleted`].
        pub fn publication_matched_status(&self) -> Result<MatchedStatus> {
            self.inner().status(StatusKind::PublicationMatched, Writer::publication_matched_status)
        }

        /// OFFERED_INCOMPATIBLE_QOS; reading it resets the change.
        ///
        /// # Errors
        /// [`Error::AlreadyDeleted`].
        pub fn offered_incompatible_qos_status(&self) -> Result<IncompatibleQosStatus> {
            self.inner().status(StatusKind::OfferedIncompatibleQos, Writer::offered_incompatible_qos_status)
        }

        /// OFFERED_DEADLINE_MISSED; reading it resets the change.
        ///
        /// # Errors
        /// [`Error::AlreadyDeleted`].
        pub fn offered_deadline_missed_status(&self) -> Result<DeadlineMissedStatus> {
            self.inner().status(StatusKind::OfferedDeadlineMissed, Writer::offered_deadline_missed_status)
        }

        /// LIVELINESS_LOST; reading it resets the change.
        ///
        /// # Errors
        /// [`Error::AlreadyDeleted`].
        pub fn liveliness_lost_status(&self) -> Result<CountStatus> {
            self.inner().status(StatusKind::LivelinessLost, Writer::liveliness_lost_status)
        }

        /// The publisher it belongs to.
        #[must_use]
        pub fn publisher(&self) -> Publisher {
            Publisher { inner: Arc::clone(&self.inner().publisher) }
        }
    };
}

impl<T: DdsType> DataWriter<T> {
    untyped_operations!();
}

impl AnyDataWriter {
    untyped_operations!();

    pub(crate) const fn new(inner: Arc<WriterInner>) -> Self {
        Self(inner)
    }

    pub(crate) const fn inner(&self) -> &Arc<WriterInner> {
        &self.0
    }

    /// The writer with its type, when it is `T`.
    #[must_use]
    pub fn downcast<T: DdsType>(&self) -> Option<DataWriter<T>> {
        (self.0.ty.rust_type() == Some(TypeId::of::<T>()))
            .then(|| DataWriter { inner: Arc::clone(&self.0), marker: PhantomData })
    }
}

impl<T> Clone for DataWriter<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), marker: PhantomData }
    }
}

impl WriterInner {
    endpoint_inner!(Writer, publisher);

    pub(crate) fn create(
        publisher: Arc<PublisherInner>,
        topic: &Arc<TopicInner>,
        ty: Arc<dyn TypeSupport>,
        qos: QosSet,
    ) -> Result<Arc<Self>> {
        let (topic, keyed) = (Arc::clone(topic), ty.is_keyed());
        publisher.check_exists()?;
        topic.check_usable(&publisher.participant)?;
        let qos = publisher.qos_of_member(qos);
        let describe = || format!("the writer of topic '{}'", topic.name);
        check_qos(&qos, EntityKind::Writer, &describe())?;
        let qos = announced_qos(qos, &publisher.qos(), &topic.qos());
        check_announced_qos(&qos, None, describe)?;
        let participant = &publisher.participant;
        let id = EntityId::user_writer(participant.next_entity_key(), keyed);
        let guid = participant.guid_prefix.entity(id);
        let version = qos.data_representation.first().copied().unwrap_or(XcdrVersion::Xcdr1);
        let max_blocking_time = qos.reliability.max_blocking_time;
        let is_grouped = qos.presentation.access_scope == AccessScope::Group;
        let group = is_grouped.then(|| Arc::clone(&publisher.numbering));
        let is_atomic = qos.is_atomic();
        let limits = participant.config().writer_limits();
        let content_filter = Some(Arc::clone(&ty).filter_function());
        let writer = Writer::new(WriterConfig { guid, keyed, qos, limits, content_filter, group });
        let copied_bytes_max = writer.copied_bytes_max();
        Ok(Arc::new(Self {
            topic,
            slot: WriterSlot::new(writer),
            core: EntityCore::new(),
            listener: ListenerSlot::new(),
            pool: PayloadPool::new(),
            usual_bytes: AtomicUsize::new(0),
            copied_bytes_max,
            version,
            guid,
            key: Arc::clone(&ty).key_function(keys::fingerprint_of),
            ty,
            max_blocking_time,
            is_atomic,
            agreed: OnceLock::new(),
            publisher,
        }))
    }

    fn announce(self: &Arc<Self>) -> Result<()> {
        self.core.check_exists(|| self.describe())?;
        self.publisher.check_enabled_factory(&self.describe())?;
        let participant = &self.publisher.participant;
        let slot = participant.slot()?;
        if !self.core.enable() {
            return Ok(());
        }
        // Before anything is written, so that others wait for it.
        self.publisher.numbering.add_writer(self.guid.entity);
        participant.router.add_writer(self.guid.entity, Arc::downgrade(self));
        slot.insert_writer(&self.slot);
        if self.is_atomic {
            self.join()?;
        }
        let endpoint = self.topic.endpoint(
            self.guid,
            self.slot.look(|writer| writer.qos().clone()),
            self.publisher.announced_id(),
        );
        trace::endpoint_created(self.guid, &self.topic.name, self.topic.type_name(), &endpoint.qos);
        slot.control(|control, now, out| control.add_endpoint(now, endpoint, out))
            .map_err(OutOfResources::from)?;
        participant.note_manual_writers();
        Ok(())
    }

    /// Changes the protocol's writer; nothing is sent.
    pub(crate) fn edit(&self, f: impl FnOnce(&mut Writer)) {
        self.slot.edit(f);
    }

    /// Keeps samples together, as far as a batch reaches.
    pub(crate) fn suspend(&self) {
        self.slot.edit(Writer::suspend);
    }

    /// Sends what was kept together.
    pub(crate) fn resume(&self, slot: &ParticipantSlot) {
        self.slot.with(slot, |writer, now, out| writer.resume(now, out));
    }

    /// Ends its part of a coherent set; the caller reports the events.
    pub(crate) fn end_coherent_changes(&self, slot: &ParticipantSlot, end: SequenceNumber, out: &mut Outbox) {
        self.slot.run(slot.shared(), clock::now(), out, |writer, now, out| {
            writer.end_coherent_changes(now, end, out);
        });
    }

    /// Whether it is to keep the serialized key; see [`DataWriter::keep_key`].
    fn write(
        &self,
        kind: ChangeKind,
        key: Key,
        mut payload: NewPayload<'_>,
        timestamp: Option<Time>,
        patience: Patience,
    ) -> Result<bool> {
        if self.is_atomic {
            return self.write_agreed(kind, key, payload, timestamp, patience);
        }
        let (mut deadline, mut probe, mut is_last_try) = (None, None, false);
        let mut lacks_key = false;
        loop {
            // Read before trying, so that progress made in between is not slept through.
            let epoch = self.slot.progress.epoch();
            let write = |writer: &mut Writer, now: Now, out: &mut Outbox| {
                let timestamp = timestamp.unwrap_or_else(|| writer.source_timestamp(now, key));
                let written = writer.write_from(now, kind, key, payload.again(), timestamp, out);
                lacks_key = kind == ChangeKind::Alive && key.fingerprint.is_some() && writer.lacks_key(key);
                written
            };
            self.core.check_enabled(|| self.describe())?;
            let written = self.slot.write(self.publisher.participant.slot()?, write);
            let Err(error) = written else {
                self.publisher.participant.assert_manual_writers();
                return Ok(lacks_key);
            };
            let Some(patience) = patience.room.filter(|_| matches!(error, WriteError::Full)) else {
                return Err(self.write_error(error, patience.room, timestamp.map(|it| (key, it))));
            };
            let deadline = *deadline.get_or_insert_with(|| clock::deadline(patience));
            let probe = probe.get_or_insert_with(|| self.peer_probe());
            if is_last_try {
                return Err(self.naming_those_behind(self.write_error(error, Some(patience), None)));
            }
            // Readers that are silent are waited for until then, and no longer.
            is_last_try = !self.wait_for_progress(probe, epoch, deadline);
        }
    }

    /// As [`DataWriter::keep_key`]. It fails where the writer was deleted meanwhile, and needs no keys.
    #[cold]
    fn keep_key(&self, key: Key, serialized: impl FnOnce() -> Result<Payload>) {
        let kept = serialized()
            .and_then(|payload| self.with(|writer, now, _| writer.register_instance(now, key, payload)));
        // It was written: there is room for it.
        drop(kept);
    }

    pub(crate) fn waiters(&self) -> &crate::entity::Waiters {
        self.core.waiters()
    }

    /// Something happened to the writer: `None` is progress without a status.
    pub(crate) fn on_event(self: &Arc<Self>, kind: Option<StatusKind>) {
        let Some(kind) = kind else {
            if let Some(group) = self.agreed.get() {
                group.offer_backlog();
            }
            return self.core.wake_waiters();
        };
        self.trace(kind);
        let listener = self.listener_of(kind);
        self.core.raise(kind);
        if let Some(listener) = listener {
            self.tell(&*listener, kind);
        }
    }

    /// A status changed: wakes who waits for that, unless a listener wants to hear of it. The caller wakes
    /// `tasks`.
    pub(crate) fn wake_on_status(&self, kind: StatusKind, tasks: &mut Vec<Waker>) -> bool {
        let is_quiet = self.listener_of(kind).is_none();
        if is_quiet {
            self.trace(kind);
            self.core.raise_leaving(kind, tasks);
        }
        is_quiet
    }

    /// There may be room: wakes who waits for it. The caller wakes `tasks`.
    pub(crate) fn wake_on_progress(&self, tasks: &mut Vec<Waker>) {
        self.core.wake_waiters_leaving(tasks);
    }

    fn trace(&self, kind: StatusKind) {
        let matches = || self.slot.look(|writer| writer.matched_readers().count());
        trace::status_changed(self.guid, &self.topic.name, kind, matches);
    }

    /// Who hears of a status: the closest that wants it (DCPS 1.4 §2.2.4.2.3).
    fn listener_of(&self, kind: StatusKind) -> Option<Arc<dyn DataWriterListener>> {
        self.listener
            .wants(kind)
            .or_else(|| self.publisher.listener.wants(kind))
            .or_else(|| Some(self.publisher.participant.router.listener.wants(kind)?))
    }

    fn tell(self: &Arc<Self>, listener: &dyn DataWriterListener, kind: StatusKind) {
        let any = AnyDataWriter(Arc::clone(self));
        // A status cannot be read only while the writer is being deleted: nobody is left to tell.
        let _ = match kind {
            StatusKind::PublicationMatched => {
                any.publication_matched_status().map(|status| listener.on_publication_matched(&any, &status))
            }
            StatusKind::OfferedIncompatibleQos => any
                .offered_incompatible_qos_status()
                .map(|status| listener.on_offered_incompatible_qos(&any, &status)),
            StatusKind::OfferedDeadlineMissed => any
                .offered_deadline_missed_status()
                .map(|status| listener.on_offered_deadline_missed(&any, &status)),
            StatusKind::LivelinessLost => {
                any.liveliness_lost_status().map(|status| listener.on_liveliness_lost(&any, &status))
            }
            _ => Ok(()),
        };
    }

    /// Deleting a writer unregisters its instances, and disposes them when WRITER_DATA_LIFECYCLE says so
    /// (DCPS
    /// 1.4 §2.2.3.21). Merely unregistered they are by its leaving.
    fn dispose_all(&self) {
        let mut instances: Vec<_> = self.slot.look(|writer| {
            let disposes = writer.qos().writer_data_lifecycle.autodispose_unregistered_instances;
            if self.ty.is_keyed() && disposes { writer.registered_instances().collect() } else { Vec::new() }
        });
        if instances.is_empty() {
            return;
        }
        // Of two with one hash one has a key. When that has ended, the hash alone tells which is the other.
        instances.sort_by_key(|(_, key)| key.is_empty());
        let patience = self.max_blocking_time.min(DELETION_PATIENCE);
        // What readers do not take in time, they learn from its leaving.
        let disposed = instances.into_iter().try_for_each(|(handle, mut key)| {
            let key = NewPayload::Payload(&mut key);
            self.write(ChangeKind::Unregister, handle.into(), key, None, Patience::given(patience)).map(drop)
        });
        let _ = disposed.and_then(|()| self.wait_for_acknowledgments(patience));
    }

    /// Ends it: nobody hears of it or from it any more.
    fn withdraw(&self) {
        let participant = &self.publisher.participant;
        let Ok(slot) = participant.slot() else { return };
        if self.core.is_enabled() {
            self.slot.with(slot, |writer, now, out| writer.flush(now, out));
            trace::endpoint_deleted(self.guid, &self.topic.name);
            participant.router.remove(self.guid.entity);
            self.leave();
            slot.control(|control, now, out| control.remove_endpoint(now, self.guid, out));
            slot.remove_writer(self.guid.entity);
            self.publisher.numbering.remove_writer(self.guid.entity);
            participant.note_manual_writers();
        }
    }
}

impl HasCore for WriterInner {
    fn core(&self) -> &EntityCore {
        &self.core
    }
}

impl Member for WriterInner {
    fn guid(&self) -> Guid {
        self.guid
    }

    fn topic(&self) -> &Arc<TopicInner> {
        &self.topic
    }

    fn enable(self: &Arc<Self>) -> Result<()> {
        self.announce()
    }

    fn check_group(&self, group: &QosSet) -> Result<()> {
        self.check_group_qos(group)
    }

    fn delete(&self) -> Result<()> {
        if self.core.is_active() {
            self.dispose_all();
        }
        if !self.core.delete() {
            return Err(Error::AlreadyDeleted(self.describe()));
        }
        self.withdraw();
        self.slot.progress.wake_all();
        Ok(())
    }
}

impl Drop for WriterInner {
    fn drop(&mut self) {
        if self.core.is_to_end() {
            self.withdraw();
        }
    }
}
