//! Publishers: writers that share partition, presentation and a listener (DCPS 1.4 §2.2.2.4.1).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use plainsong_proto::instance::InstanceHandle;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::qos::{EntityKind, QosSet};
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::status::StatusMask;
use plainsong_proto::time::Duration;

use crate::base::clock;
use crate::base::locks::lock;
use crate::condition::{Condition, HasCore};
use crate::data_writer::{AnyDataWriter, WriterInner};
use crate::error::{Error, PreconditionNotMet, Result};
use crate::group::{Group, Member};
use crate::listener::DataWriterListener;
use crate::participant::{DomainParticipant, ParticipantInner};
use crate::runtime::{ParticipantSlot, dispatch};
use crate::topic_description::WritableTopic;

pub(crate) type PublisherInner = Group<WriterInner, dyn DataWriterListener>;

/// A group of writers. Clones are the same publisher.
#[derive(Clone)]
pub struct Publisher {
    pub(crate) inner: Arc<PublisherInner>,
}

impl Publisher {
    pub(crate) fn new(participant: Arc<ParticipantInner>, qos: QosSet) -> Result<Self> {
        Ok(Self { inner: Arc::new(Group::new(participant, EntityKind::Publisher, qos)?) })
    }

    /// Enables a publisher that was created disabled and, when its ENTITY_FACTORY says so, its writers.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] when its participant is not enabled, [`Error::AlreadyDeleted`].
    pub fn enable(&self) -> Result<()> {
        self.inner.enable()
    }

    /// Waits until all that its writers wrote so far is acknowledged.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::AlreadyDeleted`].
    pub fn wait_for_acknowledgments(&self, timeout: impl Into<Duration>) -> Result<()> {
        let timeout = timeout.into();
        self.inner.check_exists()?;
        let end = clock::deadline(timeout);
        self.inner.members().into_iter().filter(|writer| writer.core().is_enabled()).try_for_each(|writer| {
            let left = end.map_or(timeout, |end| clock::until(end).into());
            AnyDataWriter::new(writer).wait_for_acknowledgments(left).map_err(|error| match error {
                Error::Timeout { waited_for, what, .. } => Error::Timeout { waited_for, what, timeout },
                other => other,
            })
        })
    }

    /// Its instance handle.
    #[must_use]
    pub fn instance_handle(&self) -> InstanceHandle {
        self.inner.guid().into()
    }

    /// The listener, if one is set.
    #[must_use]
    pub fn listener(&self) -> Option<Arc<dyn DataWriterListener>> {
        self.inner.listener.get()
    }

    /// Statuses that changed since they were last read: a publisher has none of its own.
    #[must_use]
    pub fn status_changes(&self) -> StatusMask {
        self.inner.core.changed()
    }

    /// A condition on the statuses in `mask`.
    #[must_use]
    pub fn status_condition(&self, mask: impl Into<StatusMask>) -> Condition {
        Condition::status(Arc::clone(&self.inner) as Arc<dyn HasCore>, mask.into())
    }

    /// A writer of `topic`. With ENTITY_FACTORY off it is created disabled.
    ///
    /// # Errors
    /// [`crate::Error::InconsistentPolicy`] for contradictory QoS.
    pub fn create_writer<D: WritableTopic>(&self, topic: &D, qos: QosSet) -> Result<D::Writer> {
        topic.new_writer(self, qos)
    }

    /// Adds a new writer, and enables it where that is its factory's business.
    pub(crate) fn adopt(&self, writer: &Arc<WriterInner>) -> Result<()> {
        if *lock(&self.inner.suspended) {
            writer.suspend();
        }
        if self.join_set(writer) { writer.enable() } else { Ok(()) }
    }

    /// Adds a new writer, which takes part in the coherent set that is being written; true when it is to be
    /// enabled at once.
    fn join_set(&self, writer: &Arc<WriterInner>) -> bool {
        let depth = lock(&self.inner.depth);
        if *depth > 0 {
            let first = SequenceNumber(self.inner.set_first.load(Ordering::SeqCst));
            writer.edit(|writer| writer.begin_coherent_changes(first));
        }
        self.inner.add(writer)
    }

    /// Hears of the statuses in `mask` of all its writers that have no closer listener for them.
    pub fn set_listener(&self, listener: Option<Arc<dyn DataWriterListener>>, mask: impl Into<StatusMask>) {
        self.inner.listener.set(listener, mask.into());
    }

    /// Tells that many small changes are coming (DCPS 1.4 §2.2.2.4.1.8): the writers keep samples together,
    /// until [`Self::resume_publications`] or a batch is full. A hint: it changes no promise of the QoS.
    pub fn suspend_publications(&self) {
        let writers = self.inner.members();
        *lock(&self.inner.suspended) = true;
        writers.iter().for_each(|writer| writer.suspend());
    }

    /// Sends what was kept together since [`Self::suspend_publications`].
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] when publications were not suspended.
    pub fn resume_publications(&self) -> Result<()> {
        let slot = self.inner.participant.slot()?;
        if !std::mem::take(&mut *lock(&self.inner.suspended)) {
            return Err(PreconditionNotMet::NotBegun {
                what: "publications of the publisher were not suspended",
            }
            .into());
        }
        self.inner.members().iter().for_each(|writer| writer.resume(slot));
        Ok(())
    }

    /// Begins a coherent set: subscribers with coherent access see all that the writers write until
    /// [`Self::end_coherent_changes`], or nothing of it. Calls nest; only the outermost pair counts. Means
    /// nothing unless `presentation.coherent_access` is set.
    pub fn begin_coherent_changes(&self) {
        // Dropped last: the end of a writer reports events.
        let writers;
        let mut depth = lock(&self.inner.depth);
        writers = self.inner.members();
        *depth += 1;
        if *depth == 1 {
            let first = self.inner.numbering.last().next();
            self.inner.set_first.store(first.0, Ordering::SeqCst);
            for writer in &writers {
                writer.edit(|writer| writer.begin_coherent_changes(first));
            }
        }
    }

    /// Ends what [`Self::begin_coherent_changes`] began.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] when nothing was begun.
    pub fn end_coherent_changes(&self) -> Result<()> {
        self.inner.check_exists()?;
        let slot = self.inner.participant.slot()?;
        dispatch::with_outbox(|out| {
            let ended = self.end_set(slot, out);
            slot.report(out);
            ended
        })
    }

    fn end_set(&self, slot: &ParticipantSlot, out: &mut Outbox) -> Result<()> {
        let writers;
        let mut depth = lock(&self.inner.depth);
        writers = self.inner.members();
        let Some(left) = depth.checked_sub(1) else {
            return Err(
                PreconditionNotMet::NotBegun { what: "no coherent set of the publisher was begun" }.into()
            );
        };
        *depth = left;
        if left == 0 {
            let end = self.inner.numbering.advance();
            for writer in &writers {
                writer.end_coherent_changes(slot, end, out);
            }
        }
        Ok(())
    }

    /// Its QoS.
    #[must_use]
    pub fn qos(&self) -> QosSet {
        self.inner.qos()
    }

    /// Changes PARTITION and GROUP_DATA; its writers match anew.
    ///
    /// # Errors
    /// [`crate::Error::InconsistentPolicy`], or [`crate::Error::ImmutablePolicy`] for PRESENTATION.
    pub fn set_qos(&self, qos: QosSet) -> Result<()> {
        self.inner.set_qos(qos)?.iter().try_for_each(|writer| writer.announce_qos())
    }

    /// The participant it belongs to.
    #[must_use]
    pub fn participant(&self) -> DomainParticipant {
        DomainParticipant::from_inner(Arc::clone(&self.inner.participant))
    }
}
