//! Subscribers: readers that share partition, presentation and a listener (DCPS 1.4 §2.2.2.5.2).

use std::sync::Arc;

use plainsong_proto::instance::InstanceHandle;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::qos::{AccessScope, EntityKind, QosSet};
use plainsong_proto::reader::{GroupRoom, next_verdict};
use plainsong_proto::sample_info::Selector;
use plainsong_proto::status::{StatusKind, StatusMask};

use crate::base::clock;
use crate::base::locks::lock;
use crate::condition::{Condition, HasCore};
use crate::data_reader::{AnyDataReader, ReaderInner};
use crate::error::{PreconditionNotMet, Result};
use crate::group::{Group, Member};
use crate::listener::DataReaderListener;
use crate::participant::{DomainParticipant, ParticipantInner};
use crate::read_options::ReadOptions;
use crate::runtime::{ParticipantSlot, dispatch};
use crate::topic_description::TopicDescription;

pub(crate) type SubscriberInner = Group<ReaderInner, dyn DataReaderListener>;

/// A group of readers. Clones are the same subscriber.
#[derive(Clone)]
pub struct Subscriber {
    pub(crate) inner: Arc<SubscriberInner>,
}

impl Subscriber {
    pub(crate) fn new(participant: Arc<ParticipantInner>, qos: QosSet) -> Result<Self> {
        Ok(Self { inner: Arc::new(Group::new(participant, EntityKind::Subscriber, qos)?) })
    }

    /// The subscriber of the built-in topics.
    pub(crate) fn builtin(participant: Arc<ParticipantInner>, qos: QosSet) -> Result<Self> {
        let mut group = Group::new(participant, EntityKind::Subscriber, qos)?;
        group.is_builtin = true;
        let subscriber = Self { inner: Arc::new(group) };
        subscriber.enable()?;
        Ok(subscriber)
    }

    /// Enables a subscriber that was created disabled and, when its ENTITY_FACTORY says so, its readers: all
    /// of them before any shows something. With coherent access of GROUP scope, create it disabled, then its
    /// readers, then enable it: readers that are created later miss what was shown before.
    ///
    /// # Errors
    /// [`crate::Error::PreconditionNotMet`] when its participant is not enabled,
    /// [`crate::Error::AlreadyDeleted`].
    pub fn enable(&self) -> Result<()> {
        self.inner.enable_at_once()
    }

    /// Calls `on_data_available` of the listeners of all its readers that have data to read: what a listener
    /// of DATA_ON_READERS does when it leaves the reading to them.
    ///
    /// # Errors
    /// [`crate::Error::AlreadyDeleted`].
    pub fn notify_readers(&self) -> Result<()> {
        self.inner.check_exists()?;
        self.inner.members().iter().for_each(|reader| reader.notify());
        Ok(())
    }

    /// Its instance handle.
    #[must_use]
    pub fn instance_handle(&self) -> InstanceHandle {
        self.inner.guid().into()
    }

    /// The listener, if one is set.
    #[must_use]
    pub fn listener(&self) -> Option<Arc<dyn DataReaderListener>> {
        self.inner.listener.get()
    }

    /// Statuses that changed since they were last read.
    #[must_use]
    pub fn status_changes(&self) -> StatusMask {
        self.inner.core.changed()
    }

    /// A reader of a topic, a content-filtered topic or a multi-topic. With ENTITY_FACTORY off it is created
    /// disabled. Of a multi-topic, `qos` is that of its readers of the topics; HISTORY also applies to the
    /// result, for each combination of instances.
    ///
    /// # Errors
    /// [`crate::Error::InconsistentPolicy`] for contradictory QoS.
    pub fn create_reader<D: TopicDescription>(&self, topic: &D, qos: QosSet) -> Result<D::Reader> {
        topic.new_reader(self, qos)
    }

    /// Adds a new reader, and enables it where that is its factory's business.
    pub(crate) fn adopt(&self, reader: &Arc<ReaderInner>) -> Result<()> {
        if self.inner.add(reader) { reader.enable() } else { Ok(()) }
    }

    /// Hears of the statuses in `mask` of all its readers that have no closer listener for them.
    /// With DATA_ON_READERS in the mask it hears of that instead of DATA_AVAILABLE.
    pub fn set_listener(&self, listener: Option<Arc<dyn DataReaderListener>>, mask: impl Into<StatusMask>) {
        self.inner.listener.set(listener, mask.into());
    }

    /// Begins to look at what there is now: until [`Self::end_access`] nothing new becomes readable in any
    /// of its readers. Calls nest; only the outermost pair counts. With ordered or coherent access of GROUP
    /// scope, samples can be read within such a pair only (DCPS 1.4 §2.2.2.5.2.8).
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`].
    pub fn begin_access(&self) -> Result<()> {
        self.inner.check_exists()?;
        let slot = self.inner.participant.slot()?;
        dispatch::with_outbox(|out| {
            self.inner.begin(slot, out);
            slot.report(out);
        });
        Ok(())
    }

    /// Ends what [`Self::begin_access`] began.
    ///
    /// # Errors
    /// [`crate::Error::PreconditionNotMet`] when nothing was begun, [`crate::Error::NotEnabled`].
    pub fn end_access(&self) -> Result<()> {
        self.inner.check_exists()?;
        let slot = self.inner.participant.slot()?;
        dispatch::with_outbox(|out| {
            let ended = self.inner.end(slot, out);
            slot.report(out);
            ended
        })
    }

    /// The readers that have what `options` choose by state. With ordered access of GROUP scope there is one
    /// entry for each sample, in the order the publishers wrote them: take one sample from each. One that
    /// does not decode gives none.
    #[must_use]
    pub fn readers(&self, options: &ReadOptions) -> Vec<AnyDataReader> {
        let selector = &options.selector;
        let readers = self.inner.members();
        let presentation = self.qos().presentation;
        if presentation.access_scope == AccessScope::Group && presentation.ordered_access {
            let order = group_order(&readers, selector);
            return order.filter_map(|at| readers.get(at).map(|it| AnyDataReader(Arc::clone(it)))).collect();
        }
        readers.into_iter().filter(|reader| reader.has_data(selector)).map(AnyDataReader).collect()
    }

    /// Its QoS.
    #[must_use]
    pub fn qos(&self) -> QosSet {
        self.inner.qos()
    }

    /// Changes PARTITION and GROUP_DATA; its readers match anew.
    ///
    /// # Errors
    /// [`crate::Error::InconsistentPolicy`], or [`crate::Error::ImmutablePolicy`] for PRESENTATION.
    pub fn set_qos(&self, qos: QosSet) -> Result<()> {
        self.inner.set_qos(qos)?.iter().try_for_each(|reader| reader.announce_qos())
    }

    /// A condition on the subscriber's own status, DATA_ON_READERS.
    #[must_use]
    pub fn status_condition(&self, mask: impl Into<StatusMask>) -> Condition {
        Condition::status(Arc::clone(&self.inner) as Arc<dyn HasCore>, mask.into())
    }

    /// The participant it belongs to.
    #[must_use]
    pub fn participant(&self) -> DomainParticipant {
        DomainParticipant::from_inner(Arc::clone(&self.inner.participant))
    }
}

/// Which of `readers` has the next sample, for all samples.
fn group_order(readers: &[Arc<ReaderInner>], selector: &Selector) -> impl Iterator<Item = usize> {
    let mut samples = Vec::new();
    for (at, reader) in readers.iter().enumerate() {
        reader.look(|reader| {
            // What has no number of its own, such as the end of an instance, goes with what came before.
            let mut last = None;
            for (time, publisher, number) in reader.group_order(selector) {
                last = number.or(last);
                samples.push((publisher, last, time, at));
            }
        });
    }
    // The numbers rule within a publisher; the times say how publishers mix.
    samples.sort_by_key(|(publisher, number, ..)| (*publisher, *number));
    let mut before = None;
    for (publisher, _, time, _) in &mut samples {
        if let Some((same, latest)) = before
            && same == *publisher
        {
            *time = (*time).max(latest);
        }
        before = Some((*publisher, *time));
    }
    samples.sort_by_key(|(publisher, number, time, _)| (*time, *publisher, *number));
    samples.into_iter().map(|(.., at)| at)
}

impl SubscriberInner {
    pub(crate) fn is_accessing(&self) -> bool {
        *lock(&self.depth) > 0
    }

    /// Enables it and its readers; what they are sent meanwhile waits, as during an access.
    pub(crate) fn enable_at_once(&self) -> Result<()> {
        let Ok(slot) = self.participant.slot() else { return self.enable() };
        dispatch::with_outbox(|out| {
            self.begin(slot, out);
            slot.report(out);
        });
        let enabled = self.enable();
        let ended = dispatch::with_outbox(|out| {
            let ended = self.end(slot, out);
            slot.report(out);
            ended
        });
        enabled.and(ended)
    }

    fn begin(&self, slot: &ParticipantSlot, out: &mut Outbox) {
        // Dropped last: the end of a reader reports events.
        let readers = self.members();
        let mut depth = lock(&self.depth);
        *depth += 1;
        if *depth == 1 {
            settle_groups(&readers, slot, out);
            for reader in &readers {
                reader.run(slot, out, |reader, _, _| reader.begin_access());
            }
        }
    }

    fn end(&self, slot: &ParticipantSlot, out: &mut Outbox) -> Result<()> {
        let readers = self.members();
        let mut depth = lock(&self.depth);
        let Some(left) = depth.checked_sub(1) else {
            return Err(PreconditionNotMet::NotBegun { what: "no access of the subscriber was begun" }.into());
        };
        *depth = left;
        if left == 0 {
            for reader in &readers {
                reader.run(slot, out, |reader, now, out| reader.end_access(now, out));
            }
            settle_groups(&readers, slot, out);
        }
        Ok(())
    }

    /// One of its readers has its part of a coherent set of GROUP scope.
    pub(crate) fn group_part(&self) {
        let Ok(slot) = self.participant.slot() else { return };
        dispatch::with_outbox(|out| {
            let readers = self.members();
            let depth = lock(&self.depth);
            // An access is under way: its end will look.
            if *depth == 0 {
                settle_groups(&readers, slot, out);
            }
            drop(depth);
            slot.report(out);
        });
    }

    /// Some reader was read: DATA_ON_READERS is lowered (DCPS 1.4 §2.2.4.2.2).
    pub(crate) fn data_on_readers_consumed(&self) {
        self.core.lower(StatusKind::DataOnReaders);
    }
}

/// Shows or drops what has its turn in all readers under GROUP access, and asks writers for what the rest
/// waits for.
fn settle_groups(readers: &[Arc<ReaderInner>], slot: &ParticipantSlot, out: &mut Outbox) {
    let mut last = None;
    loop {
        let (mut members, now) = (Vec::new(), clock::now());
        for reader in readers {
            reader.look(|reader| reader.group_members(now, &mut members));
        }
        let room = |publisher, number| {
            let of_each = readers.iter().map(|reader| reader.look(|it| it.group_room(publisher, number)));
            of_each.min().unwrap_or(GroupRoom::Enough)
        };
        // What was carried out has gone; should it ever not, this thread does not stay here.
        let Some(verdict) = next_verdict(&members, room).filter(|verdict| last != Some(*verdict)) else {
            for reader in readers {
                reader.run(slot, out, |reader, now, out| reader.ask_for_group(now, &members, out));
            }
            return;
        };
        for reader in readers {
            reader.run(slot, out, |reader, now, out| reader.carry_out_verdict(now, verdict, out));
        }
        last = Some(verdict);
    }
}
