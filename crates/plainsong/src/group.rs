//! What publishers and subscribers are: a group of endpoints that share QoS and a listener.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, Weak};

use plainsong_proto::guid::{EntityId, Guid};
use plainsong_proto::qos::{AccessScope, EntityKind, QosSet, changed_immutable};
use plainsong_proto::writer::WriterGroup;

use crate::base::locks::lock;
use crate::condition::HasCore;
use crate::consistent::check_qos;
use crate::entity::{EntityCore, ListenerSlot};
use crate::error::{Error, PreconditionNotMet, Result};
use crate::participant::ParticipantInner;
use crate::topic::TopicInner;

/// Entity kinds of publishers and subscribers (RTPS 2.5 Table 9.1).
const PUBLISHER: u8 = 0x08;
const SUBSCRIBER: u8 = 0x09;

/// What a group does with its endpoints, whatever they are.
pub(crate) trait Member: HasCore + 'static {
    fn guid(&self) -> Guid;
    fn topic(&self) -> &Arc<TopicInner>;
    fn enable(self: &Arc<Self>) -> Result<()>;
    /// Refuses policies of its group that it cannot have.
    fn check_group(&self, group: &QosSet) -> Result<()>;
    /// Withdraws it for good. Deleting it again is an error.
    fn delete(&self) -> Result<()>;
}

/// The endpoints of a group, in the order in which they were made.
struct Members<E> {
    by_guid: BTreeMap<Guid, Weak<E>>,
    /// With so many it is time to look for those that nobody has any more.
    sweep_len: usize,
}

/// Fewer are not looked through.
const SWEEP_LEN_MIN: usize = 4;

impl<E: Member> Members<E> {
    const fn new() -> Self {
        Self { by_guid: BTreeMap::new(), sweep_len: SWEEP_LEN_MIN }
    }

    fn add(&mut self, member: &Arc<E>) {
        // Not each time, lest each new member ask all others.
        if self.by_guid.len() >= self.sweep_len {
            self.by_guid.retain(|_, member| member.strong_count() > 0);
            self.sweep_len = (2 * self.by_guid.len()).max(SWEEP_LEN_MIN);
        }
        self.by_guid.insert(member.guid(), Arc::downgrade(member));
    }
}

/// A group of endpoints `E` with a listener `L`.
pub(crate) struct Group<E, L: ?Sized> {
    pub(crate) participant: Arc<ParticipantInner>,
    pub(crate) core: EntityCore,
    pub(crate) listener: ListenerSlot<L>,
    kind: EntityKind,
    qos: Mutex<QosSet>,
    /// What its endpoints have by default.
    default_qos: Mutex<QosSet>,
    members: Mutex<Members<E>>,
    /// How many `begin_coherent_changes` or `begin_access` have no end yet. No event may be reported
    /// while this is locked: a listener may want to lock it too.
    pub(crate) depth: Mutex<u32>,
    /// Publishers: the group number with which the coherent set begins that is open while `depth` is not 0.
    pub(crate) set_first: AtomicI64,
    /// Publishers: writers keep samples together.
    pub(crate) suspended: Mutex<bool>,
    /// Publishers: what the writers share under GROUP scope.
    pub(crate) numbering: Arc<WriterGroup>,
    id: EntityId,
    /// What it hears goes to nobody further up: the subscriber of the built-in topics.
    pub(crate) is_builtin: bool,
}

impl<E: Member, L: ?Sized> Group<E, L> {
    pub(crate) fn new(participant: Arc<ParticipantInner>, kind: EntityKind, qos: QosSet) -> Result<Self> {
        participant.check_exists()?;
        let qos = qos.or_default(kind, || participant.default_group_qos(kind));
        check_qos(&qos, kind, name(kind))?;
        let group_kind = if matches!(kind, EntityKind::Publisher) { PUBLISHER } else { SUBSCRIBER };
        let id = EntityId::with_kind(participant.next_entity_key(), group_kind);
        Ok(Self {
            participant,
            core: EntityCore::new(),
            listener: ListenerSlot::new(),
            kind,
            qos: Mutex::new(qos),
            default_qos: Mutex::new(QosSet::default().or_default(kind_of_members(kind), QosSet::default)),
            members: Mutex::new(Members::new()),
            depth: Mutex::new(0),
            set_first: AtomicI64::new(0),
            suspended: Mutex::new(false),
            numbering: Arc::default(),
            id,
            is_builtin: false,
        })
    }

    /// Remembers a new endpoint; true when it is to be enabled at once.
    pub(crate) fn add(&self, member: &Arc<E>) -> bool {
        lock(&self.members).add(member);
        self.qos().entity_factory.autoenable_created_entities && self.core.is_enabled()
    }

    /// Enables the group and, when ENTITY_FACTORY says so, what it contains (DCPS 1.4 §2.2.2.1.1.7).
    pub(crate) fn enable(&self) -> Result<()> {
        self.check_exists()?;
        if !self.participant.core.is_enabled() {
            return Err(not_enabled(name(self.kind), "the participant"));
        }
        if self.core.enable() && self.qos().entity_factory.autoenable_created_entities {
            return self.members().iter().try_for_each(Member::enable);
        }
        Ok(())
    }

    /// Refuses what needs a group that is there.
    pub(crate) fn check_exists(&self) -> Result<()> {
        self.core.check_exists(|| name(self.kind).to_owned())
    }

    /// Refuses to change what the standard fixes (DCPS 1.4 §2.2.5).
    pub(crate) fn check_not_builtin(&self) -> Result<()> {
        if !self.is_builtin {
            return Ok(());
        }
        Err(PreconditionNotMet::BuiltinQos.into())
    }

    /// Refuses to enable a member before the group.
    pub(crate) fn check_enabled_factory(&self, member: &str) -> Result<()> {
        if self.core.is_enabled() { Ok(()) } else { Err(not_enabled(member, name(self.kind))) }
    }

    /// Deletes one of its endpoints.
    pub(crate) fn delete_member(&self, member: &Arc<E>) -> Result<()> {
        self.check_exists()?;
        let is_known = lock(&self.members).by_guid.remove(&member.guid()).is_some();
        if !is_known && !member.core().is_deleted() {
            let entity = "the endpoint".to_owned();
            let factory = if self.kind == EntityKind::Publisher { "publisher" } else { "subscriber" };
            return Err(PreconditionNotMet::ForeignEntity { entity, factory }.into());
        }
        member.delete()
    }

    /// Deletes all its endpoints.
    pub(crate) fn delete_members(&self) -> Result<()> {
        self.check_exists()?;
        let taken = std::mem::take(&mut lock(&self.members).by_guid);
        for member in taken.values().filter_map(Weak::upgrade) {
            // One that was deleted meanwhile is what it should be.
            let _ = member.delete();
        }
        Ok(())
    }

    /// Deletes the group, which must have no endpoints.
    pub(crate) fn delete(&self) -> Result<()> {
        self.check_exists()?;
        if !self.members().is_empty() {
            return Err(PreconditionNotMet::HasEntities { entity: name(self.kind).to_owned() }.into());
        }
        if self.core.delete() { Ok(()) } else { self.check_exists() }
    }

    /// The endpoint of that topic, if there is one; of several, any.
    pub(crate) fn lookup(&self, topic: &str) -> Option<Arc<E>> {
        self.members().into_iter().find(|member| member.topic().name == topic)
    }

    pub(crate) fn guid(&self) -> Guid {
        self.participant.guid_prefix.entity(self.id)
    }

    pub(crate) fn default_qos(&self) -> QosSet {
        lock(&self.default_qos).clone()
    }

    /// What an endpoint has that is asked to have `qos`.
    pub(crate) fn qos_of_member(&self, qos: QosSet) -> QosSet {
        qos.or_default(self.kind_of_members(), || self.default_qos())
    }

    pub(crate) fn set_default_qos(&self, qos: QosSet) -> Result<()> {
        self.check_exists()?;
        let kind = self.kind_of_members();
        let what = if kind == EntityKind::Writer { "writers by default" } else { "readers by default" };
        let qos = qos.or_default(kind, QosSet::default);
        check_qos(&qos, kind, what)?;
        *lock(&self.default_qos) = qos;
        Ok(())
    }

    const fn kind_of_members(&self) -> EntityKind {
        kind_of_members(self.kind)
    }

    /// Its endpoints.
    pub(crate) fn members(&self) -> Vec<Arc<E>> {
        let members = lock(&self.members);
        let members = members.by_guid.values().filter_map(Weak::upgrade);
        members.filter(|member| !member.core().is_deleted()).collect()
    }

    /// What its endpoints announce as their group: others must know it for GROUP scope only.
    pub(crate) fn announced_id(&self) -> EntityId {
        let is_group = self.qos().presentation.access_scope == AccessScope::Group;
        if is_group { self.id } else { EntityId::UNKNOWN }
    }

    pub(crate) fn qos(&self) -> QosSet {
        lock(&self.qos).clone()
    }

    /// Takes over changeable policies and gives the endpoints that must announce them.
    pub(crate) fn set_qos(&self, qos: QosSet) -> Result<Vec<Arc<E>>> {
        self.check_exists()?;
        self.check_not_builtin()?;
        let qos = qos.or_default(self.kind, || self.participant.default_group_qos(self.kind));
        check_qos(&qos, self.kind, name(self.kind))?;
        let members = self.members();
        members.iter().try_for_each(|member| member.check_group(&qos))?;
        let mut current = lock(&self.qos);
        // As long as the group has no endpoints, nothing depends on it.
        if self.core.is_enabled()
            && !members.is_empty()
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

fn not_enabled(entity: &str, factory: &'static str) -> Error {
    PreconditionNotMet::FactoryNotEnabled { entity: entity.to_owned(), factory }.into()
}

const fn kind_of_members(kind: EntityKind) -> EntityKind {
    if matches!(kind, EntityKind::Publisher) { EntityKind::Writer } else { EntityKind::Reader }
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
