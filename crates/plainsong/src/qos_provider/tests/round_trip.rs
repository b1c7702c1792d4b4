//! Any QoS, printed as a profile, comes back as it was.

use std::fmt::Write;

use plainsong_proto::cdr::XcdrVersion;
use plainsong_proto::qos::{
    AccessScope, Consistency, ConsistencyKind, DeliverAt, DestinationOrder, Durability, DurabilityService,
    EntityFactory, EntityKind, History, HistoryKind, LENGTH_UNLIMITED, Liveliness, LivelinessKind, Ownership,
    Presentation, Property, QosSet, ReaderDataLifecycle, Reliability, ReliabilityKind, ResourceLimits,
    TypeConsistency, WriterDataLifecycle, consistent,
};
use plainsong_proto::time::Duration;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::library;

/// Prints elements, indented by nothing: places do not matter here.
#[derive(Default)]
struct Printer(String);

impl Printer {
    fn group(&mut self, name: &str, contents: impl FnOnce(&mut Self)) {
        write!(self.0, "<{name}>").unwrap();
        contents(self);
        write!(self.0, "</{name}>").unwrap();
    }

    fn leaf(&mut self, name: &str, value: impl ToString) {
        let value = value.to_string().replace('&', "&amp;").replace('<', "&lt;").replace('\r', "&#13;");
        self.group(name, |it| it.0.push_str(&value));
    }

    fn duration(&mut self, name: &str, duration: Duration) {
        self.group(name, |it| {
            if duration.is_infinite() {
                it.leaf("sec", "DURATION_INFINITE_SEC");
                it.leaf("nanosec", "DURATION_INFINITE_NSEC");
            } else {
                it.leaf("sec", duration.0 / 1_000_000_000);
                it.leaf("nanosec", duration.0 % 1_000_000_000);
            }
        });
    }

    fn limit(&mut self, name: &str, limit: i32) {
        match limit {
            LENGTH_UNLIMITED => self.leaf(name, "LENGTH_UNLIMITED"),
            limit => self.leaf(name, limit),
        }
    }

    fn octets(&mut self, name: &str, octets: &[u8]) {
        let list: Vec<_> = octets.iter().map(|octet| format!("0x{octet:02x}")).collect();
        self.group(name, |it| it.leaf("value", list.join(",")));
    }

    fn kind(&mut self, policy: &str, field: &str, kind: impl ToString, suffix: &str) {
        self.group(policy, |it| it.leaf(field, format!("{}{suffix}", kind.to_string())));
    }
}

/// The policies of an entity of `kind`.
fn printed(qos: &QosSet, kind: EntityKind) -> String {
    let mut it = Printer::default();
    let endpoint = matches!(kind, EntityKind::Writer | EntityKind::Reader);
    match kind {
        EntityKind::Participant => {}
        EntityKind::Publisher | EntityKind::Subscriber => group(&mut it, qos),
        _ => topic_or_endpoint(&mut it, qos),
    }
    if kind == EntityKind::Topic {
        it.octets("topic_data", &qos.topic_data);
    }
    if matches!(kind, EntityKind::Topic | EntityKind::Writer) {
        topic_or_writer(&mut it, qos);
    }
    if endpoint || kind == EntityKind::Participant {
        it.octets("user_data", &qos.user_data);
        properties(&mut it, &qos.properties);
    }
    if matches!(kind, EntityKind::Participant | EntityKind::Publisher | EntityKind::Subscriber) {
        let flag = qos.entity_factory.autoenable_created_entities;
        it.kind("entity_factory", "autoenable_created_entities", flag, "");
    }
    if kind == EntityKind::Writer {
        it.kind("ownership_strength", "value", qos.ownership_strength, "");
        let flag = qos.writer_data_lifecycle.autodispose_unregistered_instances;
        it.kind("writer_data_lifecycle", "autodispose_unregistered_instances", flag, "");
    }
    if kind == EntityKind::Reader {
        reader(&mut it, qos);
    }
    it.0
}

fn group(it: &mut Printer, qos: &QosSet) {
    it.group("presentation", |it| {
        it.leaf("access_scope", format!("{}_PRESENTATION_QOS", qos.presentation.access_scope));
        it.leaf("coherent_access", qos.presentation.coherent_access);
        it.leaf("ordered_access", qos.presentation.ordered_access);
    });
    it.group("partition", |it| {
        it.group("name", |it| qos.partition.iter().for_each(|name| it.leaf("element", name)));
    });
    it.octets("group_data", &qos.group_data);
}

fn topic_or_endpoint(it: &mut Printer, qos: &QosSet) {
    it.kind("durability", "kind", qos.durability, "_DURABILITY_QOS");
    it.group("deadline", |it| it.duration("period", qos.deadline));
    it.group("latency_budget", |it| it.duration("duration", qos.latency_budget));
    it.kind("ownership", "kind", qos.ownership, "_OWNERSHIP_QOS");
    it.group("liveliness", |it| {
        it.leaf("kind", format!("{}_LIVELINESS_QOS", qos.liveliness.kind));
        it.duration("lease_duration", qos.liveliness.lease_duration);
    });
    it.group("reliability", |it| {
        it.leaf("kind", format!("{}_RELIABILITY_QOS", qos.reliability.kind));
        it.duration("max_blocking_time", qos.reliability.max_blocking_time);
    });
    it.kind("destination_order", "kind", qos.destination_order, "_DESTINATIONORDER_QOS");
    it.group("history", |it| {
        it.leaf("kind", format!("{}_HISTORY_QOS", qos.history.kind));
        it.leaf("depth", qos.history.depth);
    });
    it.group("resource_limits", |it| limits(it, qos.resource_limits));
    it.group("consistency", |it| {
        it.leaf("kind", format!("{}_CONSISTENCY_QOS", qos.consistency.kind));
        it.duration("slow_member_delay", qos.consistency.slow_member_delay);
        it.leaf("deliver_at", format!("{}_DELIVERY_QOS", qos.consistency.deliver_at));
    });
    it.group("data_representation", |it| {
        it.group("value", |it| {
            for version in &qos.data_representation {
                it.leaf(
                    "element",
                    match version {
                        XcdrVersion::Xcdr1 => "XCDR_DATA_REPRESENTATION",
                        XcdrVersion::Xcdr2 => "XCDR2_DATA_REPRESENTATION",
                    },
                );
            }
        });
    });
}

fn topic_or_writer(it: &mut Printer, qos: &QosSet) {
    it.kind("transport_priority", "value", qos.transport_priority, "");
    it.group("lifespan", |it| it.duration("duration", qos.lifespan));
    it.group("durability_service", |it| {
        let service = qos.durability_service;
        it.duration("service_cleanup_delay", service.service_cleanup_delay);
        it.leaf("history_kind", format!("{}_HISTORY_QOS", service.history.kind));
        it.leaf("history_depth", service.history.depth);
        limits(it, service.resource_limits);
    });
}

fn reader(it: &mut Printer, qos: &QosSet) {
    it.group("time_based_filter", |it| it.duration("minimum_separation", qos.time_based_filter));
    it.group("reader_data_lifecycle", |it| {
        let delays = qos.reader_data_lifecycle;
        it.duration("autopurge_nowriter_samples_delay", delays.autopurge_nowriter_samples_delay);
        it.duration("autopurge_disposed_samples_delay", delays.autopurge_disposed_samples_delay);
    });
    it.group("type_consistency", |it| {
        let policy = qos.type_consistency;
        it.leaf(
            "kind",
            if policy.allow_type_coercion { "ALLOW_TYPE_COERCION" } else { "DISALLOW_TYPE_COERCION" },
        );
        it.leaf("ignore_sequence_bounds", policy.ignore_sequence_bounds);
        it.leaf("ignore_string_bounds", policy.ignore_string_bounds);
        it.leaf("ignore_member_names", policy.ignore_member_names);
        it.leaf("prevent_type_widening", policy.prevent_type_widening);
        it.leaf("force_type_validation", policy.force_type_validation);
    });
}

fn limits(it: &mut Printer, limits: ResourceLimits) {
    it.limit("max_samples", limits.max_samples);
    it.limit("max_instances", limits.max_instances);
    it.limit("max_samples_per_instance", limits.max_samples_per_instance);
}

fn properties(it: &mut Printer, properties: &[Property]) {
    it.group("property", |it| {
        it.group("value", |it| {
            for property in properties {
                it.group("element", |it| {
                    it.leaf("name", &property.name);
                    it.leaf("value", &property.value);
                    it.leaf("propagate", property.propagate);
                });
            }
        });
    });
}

fn duration(least: i64) -> impl Strategy<Value = Duration> {
    let finite = (least..i64::from(i32::MAX - 1) * 1_000_000_000).prop_map(Duration);
    prop_oneof![finite, Just(Duration::INFINITE), (least..5_000_000_000).prop_map(Duration)]
}

fn any_limits() -> impl Strategy<Value = ResourceLimits> {
    let limit = || prop_oneof![Just(LENGTH_UNLIMITED), 1..100_i32];
    (limit(), limit(), limit()).prop_map(|(max_samples, max_instances, max_samples_per_instance)| {
        ResourceLimits { max_samples, max_instances, max_samples_per_instance }
    })
}

fn any_history() -> impl Strategy<Value = History> {
    (select(HistoryKind::ALL), 1..20_i32).prop_map(|(kind, depth)| History { kind, depth })
}

const REPRESENTATIONS: &[&[XcdrVersion]] =
    &[&[], &[XcdrVersion::Xcdr1], &[XcdrVersion::Xcdr2], &[XcdrVersion::Xcdr2, XcdrVersion::Xcdr1]];

fn any_properties() -> impl Strategy<Value = Vec<Property>> {
    vec(("\\PC{0,9}", any::<bool>()), 0..4).prop_map(|all| {
        let named = all.into_iter().enumerate().map(|(index, (value, propagate))| Property {
            name: format!("dds.name:{index}"),
            value,
            propagate,
        });
        named.collect()
    })
}

prop_compose! {
    fn kinds()(
        durability in select(Durability::ALL),
        scope in select(AccessScope::ALL),
        ownership in select(Ownership::ALL),
        liveliness in select(LivelinessKind::ALL),
        reliability in select(ReliabilityKind::ALL),
        destination_order in select(DestinationOrder::ALL),
        consistency in select(ConsistencyKind::ALL),
        deliver_at in select(DeliverAt::ALL),
        flags in any::<[bool; 10]>(),
        lease_duration in duration(1),
        max_blocking_time in duration(0),
        slow_member_delay in duration(1),
    ) -> QosSet {
        let [a, b, c, d, e, f, g, h, i, j] = flags;
        QosSet {
            durability,
            presentation: Presentation { access_scope: scope, coherent_access: a, ordered_access: b },
            ownership,
            liveliness: Liveliness { kind: liveliness, lease_duration },
            reliability: Reliability { kind: reliability, max_blocking_time },
            destination_order,
            consistency: Consistency { kind: consistency, slow_member_delay, deliver_at },
            entity_factory: EntityFactory { autoenable_created_entities: c },
            writer_data_lifecycle: WriterDataLifecycle { autodispose_unregistered_instances: d },
            type_consistency: TypeConsistency {
                allow_type_coercion: e,
                ignore_sequence_bounds: f,
                ignore_string_bounds: g,
                ignore_member_names: h,
                prevent_type_widening: i,
                force_type_validation: j,
            },
            ..QosSet::default()
        }
    }
}

prop_compose! {
    fn any_qos()(
        kinds in kinds(),
        octets in any::<[Vec<u8>; 3]>(),
        times in (duration(1), duration(0), duration(0), duration(1)),
        purge in (duration(0), duration(0), duration(0)),
        numbers in any::<(i32, i32)>(),
        partition in vec("\\PC{0,9}", 0..4),
        histories in (any_history(), any_history()),
        limits in (any_limits(), any_limits()),
        representations in select(REPRESENTATIONS),
        properties in any_properties(),
    ) -> QosSet {
        let [user_data, topic_data, group_data] = octets;
        QosSet {
            user_data,
            topic_data,
            group_data,
            deadline: times.0,
            latency_budget: times.1,
            time_based_filter: times.2,
            lifespan: times.3,
            reader_data_lifecycle: ReaderDataLifecycle {
                autopurge_nowriter_samples_delay: purge.0,
                autopurge_disposed_samples_delay: purge.1,
            },
            durability_service: DurabilityService {
                service_cleanup_delay: purge.2,
                history: histories.0,
                resource_limits: limits.0,
            },
            ownership_strength: numbers.0,
            transport_priority: numbers.1,
            partition,
            history: histories.1,
            resource_limits: limits.1,
            data_representation: representations.to_vec(),
            properties,
            ..kinds
        }
    }
}

/// What an entity of `kind` keeps of a QoS: the rest has its defaults.
fn applying(qos: &QosSet, kind: EntityKind) -> QosSet {
    let mut kept = match kind {
        EntityKind::Writer => QosSet::writer(),
        _ => QosSet::default(),
    };
    let applies = |policy: &str| {
        plainsong_proto::qos::POLICIES.iter().any(|it| it.name == policy && it.applies_to(kind))
    };
    macro_rules! keep {
        ($($policy:literal $field:ident)+) => {$(if applies($policy) { kept.$field = qos.$field.clone(); })+};
    }
    keep! {
        "USER_DATA" user_data "TOPIC_DATA" topic_data "GROUP_DATA" group_data "DURABILITY" durability
        "DURABILITY_SERVICE" durability_service "PRESENTATION" presentation "DEADLINE" deadline
        "LATENCY_BUDGET" latency_budget "OWNERSHIP" ownership "OWNERSHIP_STRENGTH" ownership_strength
        "LIVELINESS" liveliness "TIME_BASED_FILTER" time_based_filter "PARTITION" partition
        "RELIABILITY" reliability "TRANSPORT_PRIORITY" transport_priority "LIFESPAN" lifespan
        "DESTINATION_ORDER" destination_order "HISTORY" history "RESOURCE_LIMITS" resource_limits
        "ENTITY_FACTORY" entity_factory "WRITER_DATA_LIFECYCLE" writer_data_lifecycle
        "READER_DATA_LIFECYCLE" reader_data_lifecycle "DATA_REPRESENTATION" data_representation
        "TYPE_CONSISTENCY_ENFORCEMENT" type_consistency "PROPERTY" properties
        "CONSISTENCY" consistency
    }
    kept
}

proptest! {
    #[test]
    fn any_qos_comes_back_as_it_was(qos in any_qos()) {
        use EntityKind::{Participant, Publisher, Reader, Subscriber, Topic, Writer};
        for kind in [Participant, Topic, Publisher, Subscriber, Writer, Reader] {
            let name = match kind {
                Participant => "domain_participant_qos",
                Topic => "topic_qos",
                Publisher => "publisher_qos",
                Subscriber => "subscriber_qos",
                Writer => "datawriter_qos",
                Reader => "datareader_qos",
            };
            let expected = applying(&qos, kind);
            let text = format!("<{name} name=\"P\">{}</{name}>", printed(&qos, kind));
            let read = library(&text);
            if let Err(reason) = consistent(&expected, kind) {
                // What contradicts itself is refused, for the reason the entity itself would give.
                let error = read.err().expect("a contradiction").to_string();
                prop_assert!(error.contains(&reason.to_string()), "{}", error);
                continue;
            }
            let profiles = read.expect("a consistent QoS");
            prop_assert_eq!(profiles.resolve("Lib::P", kind, None).expect("a profile"), expected);
        }
    }
}
