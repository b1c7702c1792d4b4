//! One row per QoS policy: its names and ids, where it applies, how it travels and what it demands.
//! Everything that treats policies alike reads this table.

use crate::cdr::XcdrVersion;
use crate::malformed::Malformed;
use crate::policy_id::PolicyId;
use crate::time::Duration;
use crate::wire::ParameterListView;
use crate::wire::octets::{Reader, Sink};
use crate::wire::param::{Parameter, ParameterListBuilder, pid};

use super::check::{OCTETS_MAX, PARTITION_BYTES_MAX, PARTITIONS_MAX, PROPERTIES_MAX, PROPERTY_BYTES_MAX};
use super::explain::{self, Rule};
use super::policy::{
    AccessScope, Consistency, ConsistencyKind, DeliverAt, DestinationOrder, Durability, DurabilityService,
    History, HistoryKind, Liveliness, LivelinessKind, Ownership, Presentation, Property, QosSet, Reliability,
    ReliabilityKind, ResourceLimits, TypeConsistency,
};
use super::rxo;

/// The kinds of entity that have QoS, as bits of [`Policy::entities`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EntityKind {
    /// DomainParticipant.
    Participant = 1,
    /// Topic.
    Topic = 2,
    /// Publisher.
    Publisher = 4,
    /// Subscriber.
    Subscriber = 8,
    /// DataWriter.
    Writer = 16,
    /// DataReader.
    Reader = 32,
}

const PARTICIPANT: u8 = EntityKind::Participant as u8;
const TOPIC: u8 = EntityKind::Topic as u8;
const GROUPS: u8 = EntityKind::Publisher as u8 | EntityKind::Subscriber as u8;
const WRITER: u8 = EntityKind::Writer as u8;
const READER: u8 = EntityKind::Reader as u8;
const ENDPOINTS: u8 = WRITER | READER;

/// How a policy travels in a parameter list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    pid: u16,
    encode: fn(&QosSet, &mut Sink<'_>),
    decode: fn(&mut QosSet, &mut Reader<'_>) -> Result<(), Malformed>,
}

/// Everything general about one policy.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Name in the standard.
    pub name: &'static str,
    /// `QosPolicyId_t`, when the standards give it one.
    pub id: Option<PolicyId>,
    /// Union of the [`EntityKind`]s that have it.
    pub entities: u8,
    /// It may change after the entity is enabled.
    pub changeable: bool,
    /// Where it is defined.
    pub section: &'static str,
    pub(crate) form: Option<Form>,
    /// When a writer's offer satisfies a reader's request, where that is asked at all.
    pub(crate) rule: Option<&'static Rule>,
    pub(crate) equal: fn(&QosSet, &QosSet) -> bool,
}

impl Policy {
    /// Its parameter id, when it is announced to others.
    #[must_use]
    pub fn parameter_id(&self) -> Option<u16> {
        self.form.map(|form| form.pid)
    }

    /// Whether a reader's request must be satisfied by a writer's offer.
    #[must_use]
    pub const fn is_requested(&self) -> bool {
        self.rule.is_some()
    }

    /// Whether entities of `kind` have it.
    #[must_use]
    pub const fn applies_to(&self, kind: EntityKind) -> bool {
        self.entities & kind as u8 != 0
    }
}

macro_rules! equal {
    ($field:ident) => {
        |one: &QosSet, other: &QosSet| one.$field == other.$field
    };
}

/// All policies of DCPS 1.4 in the order of their ids, then those of other standards, then our own.
pub const POLICIES: &[Policy] = &[
    Policy {
        name: "USER_DATA",
        id: Some(PolicyId::UserData),
        entities: PARTICIPANT | ENDPOINTS,
        changeable: true,
        section: "DCPS 1.4 §2.2.3.1",
        form: Some(Form {
            pid: pid::USER_DATA,
            encode: |qos, sink| sink.octet_sequence(&qos.user_data),
            decode: |qos, value| octets(value).map(|octets| qos.user_data = octets),
        }),
        rule: None,
        equal: equal!(user_data),
    },
    Policy {
        name: "DURABILITY",
        id: Some(PolicyId::Durability),
        entities: TOPIC | ENDPOINTS,
        changeable: false,
        section: "DCPS 1.4 §2.2.3.4",
        form: Some(Form {
            pid: pid::DURABILITY,
            encode: |qos, sink| sink.u32(qos.durability as u32),
            decode: |qos, value| durability(value).map(|kind| qos.durability = kind),
        }),
        rule: Some(&explain::DURABILITY),
        equal: equal!(durability),
    },
    Policy {
        name: "PRESENTATION",
        id: Some(PolicyId::Presentation),
        entities: GROUPS,
        changeable: false,
        section: "DCPS 1.4 §2.2.3.6",
        form: Some(Form {
            pid: pid::PRESENTATION,
            encode: encode_presentation,
            decode: |qos, value| presentation(value).map(|policy| qos.presentation = policy),
        }),
        rule: Some(&explain::PRESENTATION),
        equal: equal!(presentation),
    },
    Policy {
        name: "DEADLINE",
        id: Some(PolicyId::Deadline),
        entities: TOPIC | ENDPOINTS,
        changeable: true,
        section: "DCPS 1.4 §2.2.3.7",
        form: Some(Form {
            pid: pid::DEADLINE,
            encode: |qos, sink| sink.duration(qos.deadline),
            decode: |qos, value| value.duration().map(|period| qos.deadline = period),
        }),
        rule: Some(&explain::DEADLINE),
        equal: equal!(deadline),
    },
    Policy {
        name: "LATENCY_BUDGET",
        id: Some(PolicyId::LatencyBudget),
        entities: TOPIC | ENDPOINTS,
        changeable: true,
        section: "DCPS 1.4 §2.2.3.8",
        form: Some(Form {
            pid: pid::LATENCY_BUDGET,
            encode: |qos, sink| sink.duration(qos.latency_budget),
            decode: |qos, value| value.duration().map(|budget| qos.latency_budget = budget),
        }),
        rule: Some(&explain::LATENCY_BUDGET),
        equal: equal!(latency_budget),
    },
    Policy {
        name: "OWNERSHIP",
        id: Some(PolicyId::Ownership),
        entities: TOPIC | ENDPOINTS,
        changeable: false,
        section: "DCPS 1.4 §2.2.3.9",
        form: Some(Form {
            pid: pid::OWNERSHIP,
            encode: |qos, sink| sink.u32(qos.ownership as u32),
            decode: |qos, value| ownership(value).map(|kind| qos.ownership = kind),
        }),
        rule: Some(&explain::OWNERSHIP),
        equal: equal!(ownership),
    },
    Policy {
        name: "OWNERSHIP_STRENGTH",
        id: Some(PolicyId::OwnershipStrength),
        entities: WRITER,
        changeable: true,
        section: "DCPS 1.4 §2.2.3.10",
        form: Some(Form {
            pid: pid::OWNERSHIP_STRENGTH,
            encode: |qos, sink| sink.i32(qos.ownership_strength),
            decode: |qos, value| value.i32().map(|strength| qos.ownership_strength = strength),
        }),
        rule: None,
        equal: equal!(ownership_strength),
    },
    Policy {
        name: "LIVELINESS",
        id: Some(PolicyId::Liveliness),
        entities: TOPIC | ENDPOINTS,
        changeable: false,
        section: "DCPS 1.4 §2.2.3.11",
        form: Some(Form {
            pid: pid::LIVELINESS,
            encode: encode_liveliness,
            decode: |qos, value| liveliness(value).map(|policy| qos.liveliness = policy),
        }),
        rule: Some(&explain::LIVELINESS),
        equal: equal!(liveliness),
    },
    Policy {
        name: "TIME_BASED_FILTER",
        id: Some(PolicyId::TimeBasedFilter),
        entities: READER,
        changeable: true,
        section: "DCPS 1.4 §2.2.3.12",
        form: Some(Form {
            pid: pid::TIME_BASED_FILTER,
            encode: |qos, sink| sink.duration(qos.time_based_filter),
            decode: |qos, value| value.duration().map(|separation| qos.time_based_filter = separation),
        }),
        rule: None,
        equal: equal!(time_based_filter),
    },
    Policy {
        name: "PARTITION",
        id: Some(PolicyId::Partition),
        entities: GROUPS,
        changeable: true,
        section: "DCPS 1.4 §2.2.3.13",
        form: Some(Form {
            pid: pid::PARTITION,
            encode: encode_partition,
            decode: |qos, value| partition(value).map(|names| qos.partition = names),
        }),
        rule: None,
        equal: equal!(partition),
    },
    Policy {
        name: "RELIABILITY",
        id: Some(PolicyId::Reliability),
        entities: TOPIC | ENDPOINTS,
        changeable: false,
        section: "DCPS 1.4 §2.2.3.14",
        form: Some(Form {
            pid: pid::RELIABILITY,
            encode: encode_reliability,
            decode: |qos, value| reliability(value).map(|policy| qos.reliability = policy),
        }),
        rule: Some(&explain::RELIABILITY),
        equal: equal!(reliability),
    },
    Policy {
        name: "DESTINATION_ORDER",
        id: Some(PolicyId::DestinationOrder),
        entities: TOPIC | ENDPOINTS,
        changeable: false,
        section: "DCPS 1.4 §2.2.3.17",
        form: Some(Form {
            pid: pid::DESTINATION_ORDER,
            encode: |qos, sink| sink.u32(qos.destination_order as u32),
            decode: |qos, value| destination_order(value).map(|kind| qos.destination_order = kind),
        }),
        rule: Some(&explain::DESTINATION_ORDER),
        equal: equal!(destination_order),
    },
    Policy {
        name: "HISTORY",
        id: Some(PolicyId::History),
        entities: TOPIC | ENDPOINTS,
        changeable: false,
        section: "DCPS 1.4 §2.2.3.18",
        form: Some(Form {
            pid: pid::HISTORY,
            encode: |qos, sink| encode_history(qos.history, sink),
            decode: |qos, value| history(value).map(|policy| qos.history = policy),
        }),
        rule: None,
        equal: equal!(history),
    },
    Policy {
        name: "RESOURCE_LIMITS",
        id: Some(PolicyId::ResourceLimits),
        entities: TOPIC | ENDPOINTS,
        changeable: false,
        section: "DCPS 1.4 §2.2.3.19",
        form: Some(Form {
            pid: pid::RESOURCE_LIMITS,
            encode: |qos, sink| encode_resource_limits(qos.resource_limits, sink),
            decode: |qos, value| resource_limits(value).map(|limits| qos.resource_limits = limits),
        }),
        rule: None,
        equal: equal!(resource_limits),
    },
    Policy {
        name: "ENTITY_FACTORY",
        id: Some(PolicyId::EntityFactory),
        entities: PARTICIPANT | GROUPS,
        changeable: true,
        section: "DCPS 1.4 §2.2.3.20",
        form: None,
        rule: None,
        equal: equal!(entity_factory),
    },
    Policy {
        name: "WRITER_DATA_LIFECYCLE",
        id: Some(PolicyId::WriterDataLifecycle),
        entities: WRITER,
        changeable: true,
        section: "DCPS 1.4 §2.2.3.21",
        form: None,
        rule: None,
        equal: equal!(writer_data_lifecycle),
    },
    Policy {
        name: "READER_DATA_LIFECYCLE",
        id: Some(PolicyId::ReaderDataLifecycle),
        entities: READER,
        changeable: true,
        section: "DCPS 1.4 §2.2.3.22",
        form: None,
        rule: None,
        equal: equal!(reader_data_lifecycle),
    },
    Policy {
        name: "TOPIC_DATA",
        id: Some(PolicyId::TopicData),
        entities: TOPIC,
        changeable: true,
        section: "DCPS 1.4 §2.2.3.2",
        form: Some(Form {
            pid: pid::TOPIC_DATA,
            encode: |qos, sink| sink.octet_sequence(&qos.topic_data),
            decode: |qos, value| octets(value).map(|octets| qos.topic_data = octets),
        }),
        rule: None,
        equal: equal!(topic_data),
    },
    Policy {
        name: "GROUP_DATA",
        id: Some(PolicyId::GroupData),
        entities: GROUPS,
        changeable: true,
        section: "DCPS 1.4 §2.2.3.3",
        form: Some(Form {
            pid: pid::GROUP_DATA,
            encode: |qos, sink| sink.octet_sequence(&qos.group_data),
            decode: |qos, value| octets(value).map(|octets| qos.group_data = octets),
        }),
        rule: None,
        equal: equal!(group_data),
    },
    Policy {
        name: "TRANSPORT_PRIORITY",
        id: Some(PolicyId::TransportPriority),
        entities: TOPIC | WRITER,
        changeable: true,
        section: "DCPS 1.4 §2.2.3.15",
        form: Some(Form {
            pid: pid::TRANSPORT_PRIORITY,
            encode: |qos, sink| sink.i32(qos.transport_priority),
            decode: |qos, value| value.i32().map(|priority| qos.transport_priority = priority),
        }),
        rule: None,
        equal: equal!(transport_priority),
    },
    Policy {
        name: "LIFESPAN",
        id: Some(PolicyId::Lifespan),
        entities: TOPIC | WRITER,
        changeable: true,
        section: "DCPS 1.4 §2.2.3.16",
        form: Some(Form {
            pid: pid::LIFESPAN,
            encode: |qos, sink| sink.duration(qos.lifespan),
            decode: |qos, value| value.duration().map(|lifespan| qos.lifespan = lifespan),
        }),
        rule: None,
        equal: equal!(lifespan),
    },
    Policy {
        name: "DURABILITY_SERVICE",
        id: Some(PolicyId::DurabilityService),
        entities: TOPIC | WRITER,
        changeable: false,
        section: "DCPS 1.4 §2.2.3.5",
        form: Some(Form {
            pid: pid::DURABILITY_SERVICE,
            encode: encode_durability_service,
            decode: |qos, value| durability_service(value).map(|service| qos.durability_service = service),
        }),
        rule: None,
        equal: equal!(durability_service),
    },
    Policy {
        name: "DATA_REPRESENTATION",
        id: Some(PolicyId::DataRepresentation),
        entities: TOPIC | ENDPOINTS,
        changeable: false,
        section: "XTypes 1.3 §7.6.3.1",
        form: Some(Form {
            pid: pid::DATA_REPRESENTATION,
            encode: encode_data_representation,
            decode: |qos, value| data_representation(value).map(|list| qos.data_representation = list),
        }),
        rule: Some(&explain::DATA_REPRESENTATION),
        equal: |one, other| rxo::representations(one) == rxo::representations(other),
    },
    Policy {
        name: "TYPE_CONSISTENCY_ENFORCEMENT",
        id: Some(PolicyId::TypeConsistencyEnforcement),
        entities: READER,
        changeable: false,
        section: "XTypes 1.3 §7.6.3.4",
        form: Some(Form {
            pid: pid::TYPE_CONSISTENCY_ENFORCEMENT,
            encode: encode_type_consistency,
            decode: |qos, value| type_consistency(value).map(|policy| qos.type_consistency = policy),
        }),
        rule: None,
        equal: equal!(type_consistency),
    },
    Policy {
        name: "PROPERTY",
        id: None,
        entities: PARTICIPANT | ENDPOINTS,
        changeable: true,
        section: "DDS Security 1.1 §7.2.5",
        form: Some(Form {
            pid: pid::PROPERTY_LIST,
            encode: encode_properties,
            decode: |qos, value| properties(value).map(|list| qos.properties = list),
        }),
        rule: None,
        equal: equal!(properties),
    },
    Policy {
        name: "CONSISTENCY",
        id: Some(PolicyId::Consistency),
        entities: TOPIC | ENDPOINTS,
        changeable: false,
        section: "Plainsong",
        form: Some(Form {
            pid: pid::PLAINSONG_CONSISTENCY,
            encode: |qos, sink| encode_consistency(qos.consistency, sink),
            decode: |qos, value| consistency(value).map(|policy| qos.consistency = policy),
        }),
        rule: Some(&explain::CONSISTENCY),
        equal: equal!(consistency),
    },
];

/// The first policy of an enabled entity that differs although it must not change
/// (DCPS 1.4 §2.2.3 Table "changeable").
#[must_use]
pub fn changed_immutable(old: &QosSet, new: &QosSet, kind: EntityKind) -> Option<&'static Policy> {
    POLICIES.iter().find(|policy| policy.applies_to(kind) && !policy.changeable && !(policy.equal)(old, new))
}

/// The first policy of an entity of `kind` in which the two differ.
#[must_use]
pub fn different(one: &QosSet, other: &QosSet, kind: EntityKind) -> Option<&'static Policy> {
    POLICIES.iter().find(|policy| policy.applies_to(kind) && !(policy.equal)(one, other))
}

/// The policies of a writer or reader, its publisher or subscriber and topic, as an opaque form of octets.
#[must_use]
pub fn to_octets(qos: &QosSet, kind: EntityKind) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut list = ParameterListBuilder::new(&mut octets, true);
    encode_qos(qos, kind, &mut list);
    list.sentinel();
    octets
}

/// What [`to_octets`] made into octets.
///
/// # Errors
/// [`Malformed`] for anything else.
pub fn from_octets(octets: &[u8]) -> Result<QosSet, Malformed> {
    let mut qos = QosSet::default();
    for parameter in ParameterListView::parse(octets, true)?.0.parameters() {
        decode_parameter(&mut qos, &parameter, true)?;
    }
    Ok(qos)
}

/// Appends the policies that others must know about: of a writer or reader also those of its publisher or
/// subscriber and topic. Policies with a request/offered rule always travel, so that nobody has to guess a
/// default; the others only when they differ from it. So does TYPE_CONSISTENCY_ENFORCEMENT, whose absence
/// means DISALLOW_TYPE_COERCION to others, not the default (XTypes 1.3 §7.6.3.4.1). DEADLINE and LIVELINESS
/// do not: everyone knows that they are infinite unless told, while Dust DDS 0.16 takes an infinite time that
/// is told for a finite one. CONSISTENCY does not, because other products have nothing but its default.
pub(crate) fn encode_qos(qos: &QosSet, kind: EntityKind, list: &mut ParameterListBuilder<'_>) {
    let entities = match kind {
        EntityKind::Writer => WRITER | EntityKind::Publisher as u8,
        EntityKind::Reader => READER | EntityKind::Subscriber as u8,
        other => other as u8,
    };
    let is_endpoint = matches!(kind, EntityKind::Writer | EntityKind::Reader);
    let default = QosSet::default();
    for policy in POLICIES {
        let Some(form) = policy.form else { continue };
        let applies = policy.entities & entities != 0 || (is_endpoint && policy.entities == TOPIC);
        let always = match form.pid {
            pid::DEADLINE | pid::LIVELINESS | pid::PLAINSONG_CONSISTENCY => false,
            pid::TYPE_CONSISTENCY_ENFORCEMENT => true,
            _ => policy.rule.is_some(),
        };
        if applies && (always || !(policy.equal)(qos, &default)) {
            list.parameter(form.pid, |sink| (form.encode)(qos, sink));
        }
    }
}

/// Takes one parameter into `qos`; false when it is no policy.
///
/// # Errors
/// [`Malformed`] when the value is not what the policy asks for.
pub(crate) fn decode_parameter(
    qos: &mut QosSet,
    parameter: &Parameter<'_>,
    little_endian: bool,
) -> Result<bool, Malformed> {
    let id = parameter.known_id();
    let form = POLICIES.iter().filter_map(|policy| policy.form).find(|form| form.pid == id);
    let Some(form) = form else { return Ok(false) };
    (form.decode)(qos, &mut Reader::new(parameter.value, little_endian))?;
    Ok(true)
}

fn octets(value: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
    value.octet_sequence(OCTETS_MAX).map(<[u8]>::to_vec)
}

fn durability(value: &mut Reader<'_>) -> Result<Durability, Malformed> {
    Ok(match value.u32()? {
        0 => Durability::Volatile,
        1 => Durability::TransientLocal,
        2 => Durability::Transient,
        3 => Durability::Persistent,
        _ => return Err(Malformed::InvalidEnum),
    })
}

fn encode_presentation(qos: &QosSet, sink: &mut Sink<'_>) {
    sink.u32(qos.presentation.access_scope as u32);
    sink.boolean(qos.presentation.coherent_access);
    sink.boolean(qos.presentation.ordered_access);
}

fn presentation(value: &mut Reader<'_>) -> Result<Presentation, Malformed> {
    let access_scope = match value.u32()? {
        0 => AccessScope::Instance,
        1 => AccessScope::Topic,
        2 => AccessScope::Group,
        _ => return Err(Malformed::InvalidEnum),
    };
    Ok(Presentation { access_scope, coherent_access: value.boolean()?, ordered_access: value.boolean()? })
}

fn ownership(value: &mut Reader<'_>) -> Result<Ownership, Malformed> {
    Ok(match value.u32()? {
        0 => Ownership::Shared,
        1 => Ownership::Exclusive,
        _ => return Err(Malformed::InvalidEnum),
    })
}

fn encode_liveliness(qos: &QosSet, sink: &mut Sink<'_>) {
    sink.u32(qos.liveliness.kind as u32);
    sink.duration(qos.liveliness.lease_duration);
}

fn liveliness(value: &mut Reader<'_>) -> Result<Liveliness, Malformed> {
    let kind = match value.u32()? {
        0 => LivelinessKind::Automatic,
        1 => LivelinessKind::ManualByParticipant,
        2 => LivelinessKind::ManualByTopic,
        _ => return Err(Malformed::InvalidEnum),
    };
    Ok(Liveliness { kind, lease_duration: value.duration()? })
}

fn encode_partition(qos: &QosSet, sink: &mut Sink<'_>) {
    sink.u32(u32::try_from(qos.partition.len()).unwrap_or(u32::MAX));
    qos.partition.iter().for_each(|name| sink.string(name));
}

fn partition(value: &mut Reader<'_>) -> Result<Vec<String>, Malformed> {
    let count = value.count(PARTITIONS_MAX, 4)?;
    (0..count).map(|_| value.string(PARTITION_BYTES_MAX).map(str::to_owned)).collect()
}

fn encode_reliability(qos: &QosSet, sink: &mut Sink<'_>) {
    let kind = if qos.is_reliable() { ReliabilityKind::Reliable } else { ReliabilityKind::BestEffort };
    sink.u32(kind as u32);
    sink.duration(qos.reliability.max_blocking_time);
}

fn reliability(value: &mut Reader<'_>) -> Result<Reliability, Malformed> {
    let kind = match value.u32()? {
        1 => ReliabilityKind::BestEffort,
        // 3 is EXACTLY_ONCE of early versions; nobody offers less by it.
        2 | 3 => ReliabilityKind::Reliable,
        _ => return Err(Malformed::InvalidEnum),
    };
    Ok(Reliability { kind, max_blocking_time: value.duration()? })
}

fn destination_order(value: &mut Reader<'_>) -> Result<DestinationOrder, Malformed> {
    Ok(match value.u32()? {
        0 => DestinationOrder::ByReceptionTimestamp,
        1 => DestinationOrder::BySourceTimestamp,
        _ => return Err(Malformed::InvalidEnum),
    })
}

fn encode_consistency(policy: Consistency, sink: &mut Sink<'_>) {
    sink.u32(policy.kind as u32);
    let is_stable = policy.deliver_at == DeliverAt::Stable;
    if !policy.slow_member_delay.is_infinite() || is_stable {
        sink.duration(policy.slow_member_delay);
    }
    if is_stable {
        sink.u32(policy.deliver_at as u32);
    }
}

fn consistency(value: &mut Reader<'_>) -> Result<Consistency, Malformed> {
    let kind = match value.u32()? {
        0 => ConsistencyKind::Eventual,
        1 => ConsistencyKind::Atomic,
        _ => return Err(Malformed::InvalidEnum),
    };
    let slow_member_delay = if value.is_empty() { Duration::INFINITE } else { value.duration()? };
    let deliver_at = match if value.is_empty() { 1 } else { value.u32()? } {
        0 => DeliverAt::Stable,
        1 => DeliverAt::Durable,
        _ => return Err(Malformed::InvalidEnum),
    };
    Ok(Consistency { kind, slow_member_delay, deliver_at })
}

fn encode_history(history: History, sink: &mut Sink<'_>) {
    sink.u32(history.kind as u32);
    sink.i32(history.depth);
}

fn history(value: &mut Reader<'_>) -> Result<History, Malformed> {
    let kind = match value.u32()? {
        0 => HistoryKind::KeepLast,
        1 => HistoryKind::KeepAll,
        _ => return Err(Malformed::InvalidEnum),
    };
    Ok(History { kind, depth: value.i32()? })
}

fn encode_resource_limits(limits: ResourceLimits, sink: &mut Sink<'_>) {
    sink.i32(limits.max_samples);
    sink.i32(limits.max_instances);
    sink.i32(limits.max_samples_per_instance);
}

fn resource_limits(value: &mut Reader<'_>) -> Result<ResourceLimits, Malformed> {
    Ok(ResourceLimits {
        max_samples: value.i32()?,
        max_instances: value.i32()?,
        max_samples_per_instance: value.i32()?,
    })
}

fn encode_durability_service(qos: &QosSet, sink: &mut Sink<'_>) {
    sink.duration(qos.durability_service.service_cleanup_delay);
    encode_history(qos.durability_service.history, sink);
    encode_resource_limits(qos.durability_service.resource_limits, sink);
}

fn durability_service(value: &mut Reader<'_>) -> Result<DurabilityService, Malformed> {
    Ok(DurabilityService {
        service_cleanup_delay: value.duration()?,
        history: history(value)?,
        resource_limits: resource_limits(value)?,
    })
}

const XCDR1: u16 = 0;
const XCDR2: u16 = 2;
/// More than the standard has; a longer list is no list of representations.
const REPRESENTATIONS_MAX: usize = 16;

fn encode_data_representation(qos: &QosSet, sink: &mut Sink<'_>) {
    let list = rxo::representations(qos);
    sink.u32(u32::try_from(list.len()).unwrap_or(u32::MAX));
    for version in list {
        sink.u16(match version {
            XcdrVersion::Xcdr1 => XCDR1,
            XcdrVersion::Xcdr2 => XCDR2,
        });
    }
}

/// Representations we do not know (XML, vendors' own) are left out; when nothing remains the list is
/// refused, because an empty one would mean XCDR1.
fn data_representation(value: &mut Reader<'_>) -> Result<Vec<XcdrVersion>, Malformed> {
    let count = value.count(REPRESENTATIONS_MAX, 2)?;
    let mut list = Vec::with_capacity(count);
    for _ in 0..count {
        match value.u16()? {
            XCDR1 => list.push(XcdrVersion::Xcdr1),
            XCDR2 => list.push(XcdrVersion::Xcdr2),
            _ => {}
        }
    }
    if list.is_empty() && count > 0 { Err(Malformed::InvalidEnum) } else { Ok(list) }
}

fn encode_type_consistency(qos: &QosSet, sink: &mut Sink<'_>) {
    let policy = qos.type_consistency;
    sink.u16(policy.allow_type_coercion.into());
    sink.boolean(policy.ignore_sequence_bounds);
    sink.boolean(policy.ignore_string_bounds);
    sink.boolean(policy.ignore_member_names);
    sink.boolean(policy.prevent_type_widening);
    sink.boolean(policy.force_type_validation);
}

fn type_consistency(value: &mut Reader<'_>) -> Result<TypeConsistency, Malformed> {
    let allow_type_coercion = match value.u16()? {
        0 => false,
        1 => true,
        _ => return Err(Malformed::InvalidEnum),
    };
    // Early versions of the policy had fewer fields: what is not told has its default.
    let default = TypeConsistency::default();
    let mut flag = |default| if value.is_empty() { Ok(default) } else { value.boolean() };
    Ok(TypeConsistency {
        allow_type_coercion,
        ignore_sequence_bounds: flag(default.ignore_sequence_bounds)?,
        ignore_string_bounds: flag(default.ignore_string_bounds)?,
        ignore_member_names: flag(default.ignore_member_names)?,
        prevent_type_widening: flag(default.prevent_type_widening)?,
        force_type_validation: flag(default.force_type_validation)?,
    })
}

fn encode_properties(qos: &QosSet, sink: &mut Sink<'_>) {
    let propagated = || qos.properties.iter().filter(|property| property.propagate);
    sink.u32(u32::try_from(propagated().count()).unwrap_or(u32::MAX));
    for property in propagated() {
        sink.string(&property.name);
        sink.string(&property.value);
    }
}

/// Properties only inform: those beyond the limits, or that are no text, are ignored.
fn properties(value: &mut Reader<'_>) -> Result<Vec<Property>, Malformed> {
    let count = value.count(usize::MAX, 8)?.min(PROPERTIES_MAX);
    let mut list = Vec::with_capacity(count);
    for _ in 0..count {
        let (name, text) = (property_text(value)?, property_text(value)?);
        if let (Some(name), Some(text)) = (name, text) {
            list.push(Property { name: name.to_owned(), value: text.to_owned(), propagate: true });
        }
    }
    Ok(list)
}

fn property_text<'a>(value: &mut Reader<'a>) -> Result<Option<&'a str>, Malformed> {
    match value.string(usize::from(u16::MAX)) {
        Ok(text) => Ok((text.len() <= PROPERTY_BYTES_MAX).then_some(text)),
        Err(Malformed::InvalidString) => Ok(None),
        Err(other) => Err(other),
    }
}
