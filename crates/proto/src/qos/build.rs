//! A QoS is put together by one call for each policy.

use super::policy::{
    ConsistencyKind, DestinationOrder, Durability, DurabilityService, EntityFactory, History, HistoryKind,
    Liveliness, LivelinessKind, Ownership, Presentation, Property, QosSet, ReaderDataLifecycle,
    ReliabilityKind, ResourceLimits, TypeConsistency, WriterDataLifecycle,
};
use crate::cdr::XcdrVersion;
use crate::time::Duration;

impl QosSet {
    /// RELIABLE.
    #[must_use]
    pub fn reliable(mut self) -> Self {
        self.reliability.kind = ReliabilityKind::Reliable;
        self
    }

    /// BEST_EFFORT.
    #[must_use]
    pub fn best_effort(mut self) -> Self {
        self.reliability.kind = ReliabilityKind::BestEffort;
        self
    }

    /// KEEP_LAST of `depth` samples per instance.
    #[must_use]
    pub fn keep_last(mut self, depth: i32) -> Self {
        self.history = History { kind: HistoryKind::KeepLast, depth };
        self
    }

    /// KEEP_ALL.
    #[must_use]
    pub fn keep_all(mut self) -> Self {
        self.history.kind = HistoryKind::KeepAll;
        self
    }

    /// DURABILITY.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// DEADLINE.
    #[must_use]
    pub fn deadline(mut self, period: impl Into<Duration>) -> Self {
        self.deadline = period.into();
        self
    }

    /// LIVELINESS.
    #[must_use]
    pub fn liveliness(mut self, kind: LivelinessKind, lease_duration: impl Into<Duration>) -> Self {
        self.liveliness = Liveliness { kind, lease_duration: lease_duration.into() };
        self
    }

    /// `max_blocking_time` of RELIABILITY: how long `write` may wait for room.
    #[must_use]
    pub fn max_blocking_time(mut self, time: impl Into<Duration>) -> Self {
        self.reliability.max_blocking_time = time.into();
        self
    }

    /// LATENCY_BUDGET.
    #[must_use]
    pub fn latency_budget(mut self, duration: impl Into<Duration>) -> Self {
        self.latency_budget = duration.into();
        self
    }

    /// LIFESPAN.
    #[must_use]
    pub fn lifespan(mut self, duration: impl Into<Duration>) -> Self {
        self.lifespan = duration.into();
        self
    }

    /// TIME_BASED_FILTER.
    #[must_use]
    pub fn time_based_filter(mut self, minimum_separation: impl Into<Duration>) -> Self {
        self.time_based_filter = minimum_separation.into();
        self
    }

    /// PARTITION of a publisher or subscriber.
    #[must_use]
    pub fn partition<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.partition = names.into_iter().map(Into::into).collect();
        self
    }

    /// OWNERSHIP.
    #[must_use]
    pub fn ownership(mut self, ownership: Ownership) -> Self {
        self.ownership = ownership;
        self
    }

    /// DATA_REPRESENTATION.
    #[must_use]
    pub fn representation(mut self, version: XcdrVersion) -> Self {
        self.data_representation = vec![version];
        self
    }

    /// USER_DATA of a participant, writer or reader.
    #[must_use]
    pub fn user_data(mut self, octets: impl Into<Vec<u8>>) -> Self {
        self.user_data = octets.into();
        self
    }

    /// TOPIC_DATA of a topic.
    #[must_use]
    pub fn topic_data(mut self, octets: impl Into<Vec<u8>>) -> Self {
        self.topic_data = octets.into();
        self
    }

    /// GROUP_DATA of a publisher or subscriber.
    #[must_use]
    pub fn group_data(mut self, octets: impl Into<Vec<u8>>) -> Self {
        self.group_data = octets.into();
        self
    }

    /// DURABILITY_SERVICE.
    #[must_use]
    pub fn durability_service(mut self, service: DurabilityService) -> Self {
        self.durability_service = service;
        self
    }

    /// PRESENTATION of a publisher or subscriber.
    #[must_use]
    pub fn presentation(mut self, presentation: Presentation) -> Self {
        self.presentation = presentation;
        self
    }

    /// OWNERSHIP_STRENGTH of a writer.
    #[must_use]
    pub fn ownership_strength(mut self, strength: i32) -> Self {
        self.ownership_strength = strength;
        self
    }

    /// TRANSPORT_PRIORITY.
    #[must_use]
    pub fn transport_priority(mut self, priority: i32) -> Self {
        self.transport_priority = priority;
        self
    }

    /// DESTINATION_ORDER.
    #[must_use]
    pub fn destination_order(mut self, order: DestinationOrder) -> Self {
        self.destination_order = order;
        self
    }

    /// RESOURCE_LIMITS: `ResourceLimits { max_samples: 100, ..Default::default() }`.
    #[must_use]
    pub fn resource_limits(mut self, limits: ResourceLimits) -> Self {
        self.resource_limits = limits;
        self
    }

    /// ENTITY_FACTORY of a participant, publisher or subscriber.
    #[must_use]
    pub fn entity_factory(mut self, factory: EntityFactory) -> Self {
        self.entity_factory = factory;
        self
    }

    /// WRITER_DATA_LIFECYCLE.
    #[must_use]
    pub fn writer_data_lifecycle(mut self, lifecycle: WriterDataLifecycle) -> Self {
        self.writer_data_lifecycle = lifecycle;
        self
    }

    /// READER_DATA_LIFECYCLE.
    #[must_use]
    pub fn reader_data_lifecycle(mut self, lifecycle: ReaderDataLifecycle) -> Self {
        self.reader_data_lifecycle = lifecycle;
        self
    }

    /// TYPE_CONSISTENCY_ENFORCEMENT of a reader.
    #[must_use]
    pub fn type_consistency(mut self, consistency: TypeConsistency) -> Self {
        self.type_consistency = consistency;
        self
    }

    /// PROPERTY: one more, or another value of that name. With `propagate` others are told of it.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>, propagate: bool) -> Self {
        let property = Property { name: name.into(), value: value.into(), propagate };
        self.properties.retain(|known| known.name != property.name);
        self.properties.push(property);
        self
    }

    /// CONSISTENCY of a topic, writer or reader.
    #[must_use]
    pub fn consistency(mut self, kind: ConsistencyKind) -> Self {
        self.consistency.kind = kind;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy::AccessScope;
    use super::super::table::POLICIES;
    use super::*;

    /// A QoS in which a builder has set this policy alone.
    fn built(policy: &str) -> QosSet {
        let qos = QosSet::default();
        let second = Duration::from_secs(1);
        let limits = ResourceLimits { max_samples: 7, ..ResourceLimits::default() };
        match policy {
            "USER_DATA" => qos.user_data([1]),
            "TOPIC_DATA" => qos.topic_data([1]),
            "GROUP_DATA" => qos.group_data([1]),
            "DURABILITY" => qos.durability(Durability::TransientLocal),
            "DURABILITY_SERVICE" => qos.durability_service(DurabilityService {
                resource_limits: limits,
                ..DurabilityService::default()
            }),
            "PRESENTATION" => {
                qos.presentation(Presentation { access_scope: AccessScope::Topic, ..Presentation::default() })
            }
            "DEADLINE" => qos.deadline(second),
            "LATENCY_BUDGET" => qos.latency_budget(second),
            "OWNERSHIP" => qos.ownership(Ownership::Exclusive),
            "OWNERSHIP_STRENGTH" => qos.ownership_strength(1),
            "LIVELINESS" => qos.liveliness(LivelinessKind::ManualByTopic, second),
            "TIME_BASED_FILTER" => qos.time_based_filter(second),
            "PARTITION" => qos.partition(["a"]),
            "RELIABILITY" => qos.reliable(),
            "DESTINATION_ORDER" => qos.destination_order(DestinationOrder::BySourceTimestamp),
            "HISTORY" => qos.keep_all(),
            "RESOURCE_LIMITS" => qos.resource_limits(limits),
            "ENTITY_FACTORY" => qos.entity_factory(EntityFactory { autoenable_created_entities: false }),
            "WRITER_DATA_LIFECYCLE" => {
                qos.writer_data_lifecycle(WriterDataLifecycle { autodispose_unregistered_instances: false })
            }
            "READER_DATA_LIFECYCLE" => qos.reader_data_lifecycle(ReaderDataLifecycle {
                autopurge_disposed_samples_delay: second,
                ..ReaderDataLifecycle::default()
            }),
            "TRANSPORT_PRIORITY" => qos.transport_priority(1),
            "LIFESPAN" => qos.lifespan(second),
            "DATA_REPRESENTATION" => qos.representation(XcdrVersion::Xcdr2),
            "TYPE_CONSISTENCY_ENFORCEMENT" => qos.type_consistency(TypeConsistency {
                ignore_member_names: true,
                ..TypeConsistency::default()
            }),
            "PROPERTY" => qos.property("a", "b", true),
            "CONSISTENCY" => qos.consistency(ConsistencyKind::Atomic),
            other => panic!("{other} has no builder"),
        }
    }

    #[test]
    fn every_policy_has_a_builder_that_sets_it_alone() {
        for policy in POLICIES {
            let qos = built(policy.name);
            for other in POLICIES {
                let is_set = !(other.equal)(&qos, &QosSet::default());
                assert_eq!(
                    is_set,
                    other.name == policy.name,
                    "{} by the builder of {}",
                    other.name,
                    policy.name
                );
            }
        }
    }

    #[test]
    fn a_property_has_one_value() {
        let qos =
            QosSet::default().property("a", "1", true).property("b", "2", true).property("a", "3", false);
        let values: Vec<_> = qos.properties.iter().map(|it| (it.name.as_str(), it.value.as_str())).collect();
        assert_eq!(values, [("b", "2"), ("a", "3")]);
    }
}
