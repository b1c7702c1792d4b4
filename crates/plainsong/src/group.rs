//! What publishers and subscribers are: a group of endpoints that share QoS and a listener.

use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use plainsong_proto::guid::EntityId;
use plainsong_proto::qos::{AccessScope, EntityKind, QosSet, changed_immutable};

use crate::condition::HasCore;
use crate::entity::{EntityCore, ListenerSlot};
use crate::error::{Error, Result};
use crate::participant::{ParticipantInner, check_qos};

/// Entity kinds of publishers and subscribers (RTPS 2.5 Table 9.1).
const PUBLISHER: u8 = 0x08;
const SUBSCRIBER: u8 = 0x09;

/// A group of endpoints `E` with a listener `L`.
pub(crate) struct Group<E, L: ?Sized> {
    pub(crate) participant: Arc<ParticipantInner>,
    pub(crate) core: EntityCore,
    pub(crate) listener: ListenerSlot<L>,
    kind: EntityKind,
    qos: Mutex<QosSet>,
    members: Mutex<Vec<Weak<E>>>,
    /// How many `begin_coherent_changes` or `begin_access` have no end yet. No event may be reported
    /// while this is locked: a listener may want to lock it too.
    pub(crate) depth: Mutex<u32>,
    /// Publishers: writers keep samples together.
    pub(crate) suspended: Mutex<bool>,
    /// GROUP scope: the number of the last change of any of its writers.
    pub(crate) sequence: AtomicI64,
    id: EntityId,
}

impl<E, L: ?Sized> Group<E, L> {
    pub(crate) fn new(participant: Arc<ParticipantInner>, kind: EntityKind, qos: QosSet) -> Result<Self> {
        check_qos(&qos, kind, name(kind))?;
        let group_kind = if matches!(kind, EntityKind::Publisher) { PUBLISHER } else { SUBSCRIBER };
        let id = EntityId::with_kind(participant.next_entity_key(), group_kind);
        Ok(Self {
            participant,
            core: EntityCore::new(),
            listener: ListenerSlot::new(),
            kind,
            qos: Mutex::new(qos),
            members: Mutex::new(Vec::new()),
            depth: Mutex::new(0),
            suspended: Mutex::new(false),
            sequence: AtomicI64::new(0),
            id,
        })
    }

    /// Remembers a new endpoint; true when it is to be enabled at once.
    pub(crate) fn add(&self, member: &Arc<E>) -> bool {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.retain(|member| member.strong_count() > 0);
        members.push(Arc::downgrade(member));
        self.qos().entity_factory.autoenable_created_entities && self.participant.core.is_enabled()
    }

    /// Its endpoints.
    pub(crate) fn members(&self) -> Vec<Arc<E>> {
        let members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.iter().filter_map(Weak::upgrade).collect()
    }

    /// What its endpoints announce as their group: others must know it for GROUP scope only.
    pub(crate) fn announced_id(&self) -> EntityId {
        let is_group = self.qos().presentation.access_scope == AccessScope::Group;
        if is_group { self.id } else { EntityId::UNKNOWN }
    }

    pub(crate) fn qos(&self) -> QosSet {
        self.qos.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes over changeable policies and gives the endpoints that must announce them.
    pub(crate) fn set_qos(&self, qos: QosSet) -> Result<Vec<Arc<E>>> {
        check_qos(&qos, self.kind, name(self.kind))?;
        let members = self.members();
        let mut current = self.qos.lock().unwrap_or_else(PoisonError::into_inner);
        // Groups are enabled from the start, but as long as nobody has matched nothing depends on them.
        if !members.is_empty()
            && let Some(policy) = changed_immutable(&current, &qos, self.kind)
        {
            return Err(Error::ImmutablePolicy { policy: policy.name, entity: name(self.kind).into() });
        }
        *current = qos;
        Ok(members)
    }
}

impl<E: Send + Sync, L: ?Sized + Send + Sync> HasCore for Group<E, L> {
    fn core(&self) -> &EntityCore {
        &self.core
    }
}

const fn name(kind: EntityKind) -> &'static str {
    if matches!(kind, EntityKind::Publisher) { "the publisher" } else { "the subscriber" }
}

/// The QoS an endpoint announces: its own, with what its group and topic decide.
pub(crate) fn announced_qos(mut own: QosSet, group: &QosSet, topic: &QosSet) -> QosSet {
    own.partition.clone_from(&group.partition);
    own.presentation = group.presentation;
    own.group_data.clone_from(&group.group_data);
    own.topic_data.clone_from(&topic.topic_data);
    own
}
