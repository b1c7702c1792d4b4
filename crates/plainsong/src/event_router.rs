//! Events of a participant's entities, told to the entity, listener or callback that they are for.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, RwLock, Weak};
use std::task::Waker;

use plainsong_proto::discovery::are_internal;
use plainsong_proto::guid::{EntityId, Guid};
use plainsong_proto::outbox::{Event, Outbox};
use plainsong_proto::status::StatusKind;

use crate::atomic::{GroupSlot, OnAtomicEvent};
use crate::base::locks::{read, write};
use crate::base::trace;
use crate::data_reader::ReaderInner;
use crate::data_writer::WriterInner;
use crate::domain::EventSink;
use crate::entity::ListenerSlot;
use crate::listener::DomainParticipantListener;
use crate::mismatch::OnMismatch;
use crate::participant::ParticipantInner;
use crate::runtime::STATISTICS_TIMER;
use crate::undecodable::OnUndecodable;
use crate::unresponsive::OnUnresponsive;

/// Finds the entity an event is about, and the listener that wants it.
pub(crate) struct Router {
    endpoints: RwLock<BTreeMap<EntityId, Endpoint>>,
    pub(crate) listener: ListenerSlot<dyn DomainParticipantListener>,
    pub(crate) participant: OnceLock<Weak<ParticipantInner>>,
    pub(crate) on_participant: RwLock<Option<OnParticipant>>,
    on_mismatch: RwLock<Option<OnMismatch>>,
    on_undecodable: RwLock<Option<OnUndecodable>>,
    pub(crate) on_unresponsive: RwLock<Option<OnUnresponsive>>,
    pub(crate) on_atomic_event: RwLock<Option<OnAtomicEvent>>,
}

/// Called with a remote participant and whether it is there.
type OnParticipant = Arc<dyn Fn(Guid, bool) + Send + Sync>;

enum Endpoint {
    Writer(Weak<WriterInner>),
    Reader(Weak<ReaderInner>),
    Group(Weak<GroupSlot>),
}

/// What was there is dropped when the lock is released: that may run code of the application.
pub(crate) fn replace<T>(slot: &RwLock<Option<T>>, callback: T) {
    let old = write(slot).replace(callback);
    drop(old);
}

/// An endpoint that is there.
enum Found {
    Writer(Arc<WriterInner>),
    Reader(Arc<ReaderInner>),
    Group(Arc<GroupSlot>),
}

impl Router {
    pub(crate) fn new() -> Self {
        Self {
            endpoints: RwLock::new(BTreeMap::new()),
            listener: ListenerSlot::new(),
            participant: OnceLock::new(),
            on_participant: RwLock::new(None),
            on_mismatch: RwLock::new(None),
            on_undecodable: RwLock::new(None),
            on_unresponsive: RwLock::new(None),
            on_atomic_event: RwLock::new(None),
        }
    }

    pub(crate) fn add_writer(&self, id: EntityId, writer: Weak<WriterInner>) {
        self.edit(|endpoints| endpoints.insert(id, Endpoint::Writer(writer)));
    }

    pub(crate) fn add_reader(&self, id: EntityId, reader: Weak<ReaderInner>) {
        self.edit(|endpoints| endpoints.insert(id, Endpoint::Reader(reader)));
    }

    pub(crate) fn add_group(&self, group: &Arc<GroupSlot>) {
        let endpoints = group.endpoints();
        self.edit(|known| known.extend(endpoints.map(|id| (id, Endpoint::Group(Arc::downgrade(group))))));
    }

    pub(crate) fn remove_group(&self, group: &GroupSlot) {
        self.edit(|known| group.endpoints().iter().for_each(|id| drop(known.remove(id))));
    }

    pub(crate) fn remove(&self, id: EntityId) {
        self.edit(|endpoints| endpoints.remove(&id));
    }

    pub(crate) fn set_on_mismatch(&self, callback: OnMismatch) {
        replace(&self.on_mismatch, callback);
    }

    pub(crate) fn set_on_undecodable(&self, callback: OnUndecodable) {
        replace(&self.on_undecodable, callback);
    }

    fn edit<R>(&self, change: impl FnOnce(&mut BTreeMap<EntityId, Endpoint>) -> R) {
        change(&mut write(&self.endpoints));
    }

    /// The endpoint with that id, while somebody has it.
    fn find(&self, id: EntityId) -> Option<Found> {
        match read(&self.endpoints).get(&id)? {
            Endpoint::Writer(writer) => writer.upgrade().map(Found::Writer),
            Endpoint::Reader(reader) => reader.upgrade().map(Found::Reader),
            Endpoint::Group(group) => group.upgrade().map(Found::Group),
        }
    }

    #[cold]
    fn group_part(&self, reader: EntityId) {
        if let Some(Found::Reader(reader)) = self.find(reader) {
            reader.subscriber().group_part();
        }
    }

    #[cold]
    fn undecodable(&self, reader: EntityId, writer: Guid) {
        let callback = read(&self.on_undecodable).clone();
        if let Some(callback) = callback
            && let Some(Found::Reader(reader)) = self.find(reader)
            && let Some(explained) = reader.undecodable().iter().find(|it| it.writer.guid == writer)
        {
            callback(explained);
        }
    }

    /// Tells what happened to a member of a group.
    fn tell_of(&self, group: &GroupSlot) {
        if !group.has_events() {
            return;
        }
        let callback = read(&self.on_atomic_event).clone();
        for event in group.take_events() {
            if let Some(callback) = &callback {
                callback(&group.name.topic, event);
            }
        }
    }

    /// A group gives its readers nothing of writers that do not match them. A participant that is of another
    /// group of a topic is told of as an inconsistent topic, too.
    #[cold]
    fn tell_group(&self, writer: Guid, reader: Guid, mismatched: bool) {
        let group = match self.find(reader.entity) {
            Some(Found::Reader(local)) => return local.note_mismatch(writer, reader),
            Some(Found::Group(group)) if mismatched => group,
            _ => return,
        };
        let Some(stranger) = group.meet(writer, reader) else { return };
        if let Some(participant) = self.participant.get().and_then(Weak::upgrade)
            && let Some(topic) = participant.topic(&group.name.topic)
        {
            topic.met_inconsistent(&format!("participant {} {stranger}", stranger.participant));
        }
        self.tell_of(&group);
    }

    fn report(&self, id: EntityId, kind: Option<StatusKind>) {
        match (self.find(id), kind) {
            (Some(Found::Writer(writer)), kind) => writer.on_event(kind),
            (Some(Found::Reader(reader)), Some(kind)) => reader.on_event(kind),
            (Some(Found::Group(group)), Some(StatusKind::DataAvailable)) => {
                group.receive();
                self.tell_of(&group);
            }
            _ => {}
        }
    }
}

impl EventSink for Router {
    fn fire(&self, entity: EntityId, out: &mut Outbox) {
        if entity == STATISTICS_TIMER {
            if let Some(participant) = self.participant.get().and_then(Weak::upgrade) {
                participant.publish_statistics(out);
            }
        } else if let Some(Found::Group(group)) = self.find(entity) {
            group.fire(out);
            self.tell_of(&group);
        }
    }

    fn wake_waiters(&self, event: &Event, tasks: &mut Vec<Waker>) -> bool {
        match event {
            Event::Progress { endpoint } => {
                if let Some(Found::Writer(writer)) = self.find(*endpoint) {
                    writer.wake_on_progress(tasks);
                }
                true
            }
            Event::DataAvailable { reader } => match self.find(*reader) {
                Some(Found::Reader(reader)) => reader.wake_on_data(tasks),
                Some(Found::Group(group)) => {
                    group.receive();
                    !group.has_events()
                }
                _ => true,
            },
            Event::Status { endpoint, kind } => match self.find(endpoint.entity) {
                Some(Found::Writer(writer)) => writer.wake_on_status(*kind, tasks),
                Some(Found::Reader(reader)) => reader.wake_on_status(*kind, tasks),
                Some(Found::Group(_)) | None => true,
            },
            _ => false,
        }
    }

    fn events(&self, events: &mut Vec<Event>) {
        for event in events.drain(..) {
            match event {
                Event::Status { endpoint, kind } => self.report(endpoint.entity, Some(kind)),
                Event::DataAvailable { reader } => self.report(reader, Some(StatusKind::DataAvailable)),
                Event::Progress { endpoint } => self.report(endpoint, None),
                Event::GroupPart { reader } => self.group_part(reader),
                Event::Undecodable { reader, writer } => self.undecodable(reader, writer),
                Event::MemoryFreed => {
                    if let Some(local) = self.participant.get().and_then(Weak::upgrade)
                        && let Ok(slot) = local.slot()
                    {
                        slot.memory_freed();
                    }
                }
                Event::ParticipantChanged { participant, alive } => {
                    trace::participant_discovered(participant, alive);
                    if let Some(local) = self.participant.get().and_then(Weak::upgrade)
                        && let (Some(builtin), Ok(slot)) = (local.builtin(), local.slot())
                    {
                        builtin.participant_changed(slot, participant);
                    }
                    let callback = read(&self.on_participant).clone();
                    if let Some(callback) = callback {
                        callback(participant, alive);
                    }
                }
                Event::ParticipantUnanswering { participant } => {
                    trace::participant_unresponsive(participant);
                    let callback = read(&self.on_unresponsive).clone();
                    if let Some(callback) = callback {
                        callback(participant);
                    }
                }
                Event::EndpointChanged { endpoint } => {
                    if let Some(participant) = self.participant.get().and_then(Weak::upgrade) {
                        participant.endpoint_changed(endpoint);
                    }
                }
                Event::MismatchChanged { writer, reader, mismatched } => {
                    self.tell_group(writer, reader, mismatched);
                    if are_internal(writer, reader) {
                        continue;
                    }
                    if mismatched && let Some(participant) = self.participant.get().and_then(Weak::upgrade) {
                        participant.note_mismatch(writer, reader);
                    }
                    let callback = read(&self.on_mismatch).clone();
                    if let Some(callback) = callback {
                        callback(writer, reader, mismatched);
                    }
                }
            }
        }
    }
}
