//! Combinations of policies that contradict each other (DCPS 1.4 §2.2.3), and sizes we do not carry.

use thiserror::Error;

use crate::time::Duration;

use super::policy::{
    AccessScope, DestinationOrder, History, HistoryKind, LENGTH_UNLIMITED, Ownership, QosSet,
    ReliabilityKind, ResourceLimits,
};
use super::rxo::{is_pattern, is_whole_pattern, partitions_match};
use super::table::EntityKind;

/// Octets of USER_DATA, TOPIC_DATA and GROUP_DATA each.
pub const OCTETS_MAX: usize = 32 << 10;
/// Names in PARTITION.
pub const PARTITIONS_MAX: usize = 64;
/// Octets of one name in PARTITION.
pub const PARTITION_BYTES_MAX: usize = 256;
/// Properties of one entity.
pub const PROPERTIES_MAX: usize = 64;
/// Octets of the name or value of one property.
pub const PROPERTY_BYTES_MAX: usize = 1024;
/// Octets of the names and values of all properties of one entity: they travel in one parameter.
pub const PROPERTIES_BYTES_MAX: usize = 32 << 10;

/// Why a QoS cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("inconsistent QoS: {policy}: {reason}")]
pub struct Inconsistent {
    /// Name of the policy.
    pub policy: &'static str,
    /// The value alone is at fault, whatever the others are: BAD_PARAMETER, not INCONSISTENT_POLICY (DCPS 1.4
    /// §2.2.1.1).
    pub bad_value: bool,
    /// What is wrong, and what would be right.
    pub reason: &'static str,
}

/// Whether the policies that apply to an entity of `kind` fit together.
///
/// # Errors
/// [`Inconsistent`] with the first contradiction found.
pub fn consistent(qos: &QosSet, kind: EntityKind) -> Result<(), Inconsistent> {
    sizes(qos)?;
    durations(qos)?;
    resource_limits("RESOURCE_LIMITS", qos.resource_limits)?;
    history("HISTORY", qos.history, qos.resource_limits)?;
    if matches!(kind, EntityKind::Topic | EntityKind::Writer) {
        let service = &qos.durability_service;
        resource_limits("DURABILITY_SERVICE", service.resource_limits)?;
        history("DURABILITY_SERVICE", service.history, service.resource_limits)?;
    }
    if matches!(kind, EntityKind::Topic | EntityKind::Writer | EntityKind::Reader) && qos.is_atomic() {
        atomic(qos, kind)?;
    }
    require(
        kind != EntityKind::Reader || qos.deadline >= qos.time_based_filter,
        "DEADLINE",
        "the period must not be shorter than TIME_BASED_FILTER's minimum separation",
    )
}

/// Whether a writer or reader of this QoS can be in its publisher or subscriber. PARTITION and PRESENTATION
/// of `qos` are those of the group; `before` is what an enabled one had until now.
///
/// # Errors
/// [`Inconsistent`] with the first policy of the group that does not go with CONSISTENCY ATOMIC.
pub fn consistent_in_group(qos: &QosSet, before: Option<&QosSet>) -> Result<(), Inconsistent> {
    if !qos.is_atomic() {
        return Ok(());
    }
    let one = "writers and readers with CONSISTENCY ATOMIC are in one partition: give one name without '*', '?' and \
               '['";
    let is_one = qos.partition.len() <= 1 && !qos.partition.iter().any(|name| is_pattern(name));
    require(is_one, "PARTITION", one)?;
    let stays = "a writer or reader with CONSISTENCY ATOMIC stays in its partition: make another in a publisher or \
                 subscriber of the other partition, and delete this one";
    let is_there = before.is_none_or(|before| partitions_match(&before.partition, &qos.partition));
    require(is_there, "PARTITION", stays)?;
    let sets = "coherent_access does not go with CONSISTENCY ATOMIC: each sample has its own place in the order of \
                all writers; write in one sample what belongs together";
    require(!qos.presentation.coherent_access, "PRESENTATION", sets)?;
    let group = "GROUP access_scope does not go with CONSISTENCY ATOMIC: each topic has an order of its own; use \
                 TOPIC";
    require(qos.presentation.access_scope != AccessScope::Group, "PRESENTATION", group)
}

/// What does not go with ATOMIC: all readers have the same samples in the same order.
fn atomic(qos: &QosSet, kind: EntityKind) -> Result<(), Inconsistent> {
    require(
        qos.reliability.kind != ReliabilityKind::BestEffort,
        "RELIABILITY",
        "BEST_EFFORT readers lose samples, and with CONSISTENCY ATOMIC all get the same ones: use RELIABLE",
    )?;
    require(
        kind == EntityKind::Reader || qos.lifespan.is_infinite(),
        "LIFESPAN",
        "samples that expire by each reader's clock are not the same for all readers, as CONSISTENCY ATOMIC \
         promises: leave it infinite",
    )?;
    require(
        qos.destination_order == DestinationOrder::ByReceptionTimestamp,
        "DESTINATION_ORDER",
        "with CONSISTENCY ATOMIC all readers have one order of all writers, which timestamps do not change: use \
         BY_RECEPTION_TIMESTAMP",
    )?;
    require(
        qos.ownership == Ownership::Shared,
        "OWNERSHIP",
        "who owns an instance depends on when each reader misses a writer, and with CONSISTENCY ATOMIC all get the \
         samples of all writers: use SHARED",
    )
}

const fn require(holds: bool, policy: &'static str, reason: &'static str) -> Result<(), Inconsistent> {
    if holds { Ok(()) } else { Err(Inconsistent { policy, bad_value: false, reason }) }
}

/// As [`require`], of a value that is none.
const fn require_value(holds: bool, policy: &'static str, reason: &'static str) -> Result<(), Inconsistent> {
    if holds { Ok(()) } else { Err(Inconsistent { policy, bad_value: true, reason }) }
}

fn sizes(qos: &QosSet) -> Result<(), Inconsistent> {
    let data =
        [("USER_DATA", &qos.user_data), ("TOPIC_DATA", &qos.topic_data), ("GROUP_DATA", &qos.group_data)];
    for (policy, octets) in data {
        require(octets.len() <= OCTETS_MAX, policy, "at most 32768 octets are carried")?;
    }
    require(qos.partition.len() <= PARTITIONS_MAX, "PARTITION", "at most 64 names are carried")?;
    for name in &qos.partition {
        let fits = name.len() <= PARTITION_BYTES_MAX && !name.contains('\0');
        require(fits, "PARTITION", "a name has at most 256 octets and no NUL")?;
        let ends = "a set that '[' begins ends with ']': a name that never does matches nothing";
        require(is_whole_pattern(name), "PARTITION", ends)?;
    }
    require(qos.properties.len() <= PROPERTIES_MAX, "PROPERTY", "at most 64 properties are carried")?;
    for text in qos.properties.iter().flat_map(|property| [&property.name, &property.value]) {
        let fits = text.len() <= PROPERTY_BYTES_MAX && !text.contains('\0');
        require(fits, "PROPERTY", "a name or value has at most 1024 octets and no NUL")?;
    }
    let all: usize = qos.properties.iter().map(|property| property.name.len() + property.value.len()).sum();
    require(all <= PROPERTIES_BYTES_MAX, "PROPERTY", "at most 32768 octets of names and values are carried")?;
    Ok(())
}

fn durations(qos: &QosSet) -> Result<(), Inconsistent> {
    let told = [
        ("DEADLINE", qos.deadline),
        ("LATENCY_BUDGET", qos.latency_budget),
        ("LIVELINESS", qos.liveliness.lease_duration),
        ("RELIABILITY", qos.reliability.max_blocking_time),
        ("TIME_BASED_FILTER", qos.time_based_filter),
        ("LIFESPAN", qos.lifespan),
        ("DURABILITY_SERVICE", qos.durability_service.service_cleanup_delay),
        ("CONSISTENCY", qos.consistency.slow_member_delay),
    ];
    for (policy, duration) in told {
        let range = "a duration is infinite, or not negative and below 2147483647 s: RTPS tells no other";
        require_value(duration.is_on_wire(), policy, range)?;
    }
    let lifecycle = &qos.reader_data_lifecycle;
    for delay in [lifecycle.autopurge_nowriter_samples_delay, lifecycle.autopurge_disposed_samples_delay] {
        require_value(delay >= Duration::ZERO, "READER_DATA_LIFECYCLE", "a duration must not be negative")?;
    }
    let positive = "it must be longer than zero";
    require(qos.deadline > Duration::ZERO, "DEADLINE", positive)?;
    require(qos.lifespan > Duration::ZERO, "LIFESPAN", positive)?;
    require(qos.consistency.slow_member_delay > Duration::ZERO, "CONSISTENCY", positive)?;
    require(qos.liveliness.lease_duration > Duration::ZERO, "LIVELINESS", positive)
}

fn history(policy: &'static str, history: History, limits: ResourceLimits) -> Result<(), Inconsistent> {
    if history.kind == HistoryKind::KeepAll {
        return Ok(());
    }
    require(history.depth >= 1, policy, "KEEP_LAST needs a depth of at least 1")?;
    let limit = limits.max_samples_per_instance;
    require(
        limit == LENGTH_UNLIMITED || history.depth <= limit,
        policy,
        "the depth must not exceed max_samples_per_instance",
    )?;
    require(
        limits.max_samples == LENGTH_UNLIMITED || history.depth <= limits.max_samples,
        policy,
        "the depth must not exceed max_samples",
    )
}

fn resource_limits(policy: &'static str, limits: ResourceLimits) -> Result<(), Inconsistent> {
    let ResourceLimits { max_samples, max_instances, max_samples_per_instance } = limits;
    for limit in [max_samples, max_instances, max_samples_per_instance] {
        require(
            limit == LENGTH_UNLIMITED || limit >= 1,
            policy,
            "a limit is at least 1, or LENGTH_UNLIMITED",
        )?;
    }
    // With an unlimited number per instance, max_samples alone limits each.
    require(
        max_samples == LENGTH_UNLIMITED
            || max_samples_per_instance == LENGTH_UNLIMITED
            || max_samples_per_instance <= max_samples,
        policy,
        "max_samples must not be smaller than max_samples_per_instance",
    )
}
