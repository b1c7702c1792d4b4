//! The elements of each policy: DDS-XML 1.0 maps the structures of the DDS IDL one to one (§7.2). PROPERTY,
//! DATA_REPRESENTATION and TYPE_CONSISTENCY_ENFORCEMENT, which 1.0 leaves out, and our own CONSISTENCY follow
//! the same rules.

use std::collections::BTreeSet;
use std::sync::Arc;

use plainsong_proto::cdr::XcdrVersion;
use plainsong_proto::qos::{
    AccessScope, ConsistencyKind, DeliverAt, DestinationOrder, Durability, EntityKind, HistoryKind,
    LivelinessKind, Ownership, POLICIES, Property, QosSet, ReliabilityKind,
};
use plainsong_proto::time::Duration;

use super::error::{Place, QosProviderError};
use super::value;
use super::xml::Element;

/// Sets one field of a policy.
#[derive(Clone)]
pub(super) struct Assignment {
    /// Name of the policy.
    pub(super) policy: &'static str,
    pub(super) place: Place,
    /// Octets that it copies, at least one.
    pub(super) weight: usize,
    change: Change,
}

impl Assignment {
    pub(super) fn apply(&self, qos: &mut QosSet) {
        (self.change)(qos);
    }
}

/// The element of a policy.
pub(super) struct PolicyElement {
    /// Its name.
    pub(super) name: &'static str,
    /// Name of the policy.
    pub(super) policy: &'static str,
    fields: &'static [Field],
}

struct Field {
    name: &'static str,
    form: Form,
}

/// How a field is written, and where it goes.
#[derive(Clone, Copy)]
enum Form {
    Duration(fn(&mut QosSet, Duration)),
    Boolean(fn(&mut QosSet, bool)),
    /// The literals of an enumeration, in the order of its kinds.
    Kind(&'static [&'static str], fn(&mut QosSet, usize)),
    Number(fn(&mut QosSet, i32)),
    Positive(fn(&mut QosSet, i32)),
    Limit(fn(&mut QosSet, i32)),
    /// A number that is checked and asks for nothing.
    Hint,
    Octets(fn(&mut QosSet) -> &mut Vec<u8>),
    Base64(fn(&mut QosSet) -> &mut Vec<u8>),
    Strings(fn(&mut QosSet) -> &mut Vec<String>),
    Properties,
    Representations,
}

const fn field(name: &'static str, form: Form) -> Field {
    Field { name, form }
}

/// The elements an entity of `kind` may have.
pub(super) fn elements_of(kind: EntityKind) -> impl Iterator<Item = &'static PolicyElement> + Clone {
    ELEMENTS.iter().filter(move |element| {
        POLICIES.iter().any(|policy| policy.name == element.policy && policy.applies_to(kind))
    })
}

/// Reads the element of a policy.
pub(super) fn policy(
    schema: &PolicyElement,
    element: &Element,
    assignments: &mut Vec<Assignment>,
) -> Result<(), QosProviderError> {
    value::only_attributes(element, &[])?;
    let mut seen: Vec<&str> = Vec::new();
    for child in value::children(element)? {
        let Some(field) = schema.fields.iter().find(|field| field.name == child.name) else {
            let known = schema.fields.iter().map(|field| field.name);
            return Err(value::unknown(child, &element.name, known));
        };
        if seen.contains(&field.name) {
            return Err(value::twice(child));
        }
        seen.push(field.name);
        if let Some(change) = read(field.form, child)? {
            // What is copied was written there.
            let weight = 1 + written(child);
            assignments.push(Assignment {
                policy: schema.policy,
                place: child.place.clone(),
                weight,
                change,
            });
        }
    }
    Ok(())
}

type Change = Arc<dyn Fn(&mut QosSet) + Send + Sync>;

/// Octets of text and names in an element.
fn written(element: &Element) -> usize {
    element.text.len() + element.children.iter().map(|child| child.name.len() + written(child)).sum::<usize>()
}

/// What a field asks for; nothing when it is empty and may be.
fn read(form: Form, element: &Element) -> Result<Option<Change>, QosProviderError> {
    fn list<T: Clone + Send + Sync + 'static>(of: fn(&mut QosSet) -> &mut Vec<T>, list: Vec<T>) -> Change {
        Arc::new(move |qos| of(qos).clone_from(&list))
    }
    let number = |set: fn(&mut QosSet, i32), number: Option<i32>| {
        number.map(|number| -> Change { Arc::new(move |qos| set(qos, number)) })
    };
    Ok(match form {
        Form::Duration(set) => {
            let duration = value::duration(element)?;
            Some(Arc::new(move |qos| set(qos, duration)))
        }
        Form::Boolean(set) => {
            let flag = value::boolean(element)?;
            Some(Arc::new(move |qos| set(qos, flag)))
        }
        Form::Kind(literals, set) => {
            let index = value::kind(element, literals)?;
            Some(Arc::new(move |qos| set(qos, index)))
        }
        Form::Number(set) => number(set, value::any_number(element)?),
        Form::Positive(set) => number(set, value::positive(element)?),
        Form::Limit(set) => number(set, value::limit(element)?),
        Form::Hint => {
            value::positive(element)?;
            None
        }
        Form::Octets(of) => Some(list(of, value::octets(element)?)),
        Form::Base64(of) => Some(list(of, value::octets_base64(element)?)),
        Form::Strings(of) => Some(list(of, value::strings(element)?)),
        Form::Properties => {
            let properties = value::properties(element)?;
            Some(Arc::new(move |qos| merge(&mut qos.properties, &properties)))
        }
        Form::Representations => {
            let versions: Vec<XcdrVersion> = value::representations(element)?;
            Some(Arc::new(move |qos| qos.data_representation.clone_from(&versions)))
        }
    })
}

/// Properties add to inherited ones; those of the same name replace them.
fn merge(inherited: &mut Vec<Property>, properties: &[Property]) {
    let names: BTreeSet<&str> = properties.iter().map(|property| property.name.as_str()).collect();
    inherited.retain(|known| !names.contains(known.name.as_str()));
    inherited.extend_from_slice(properties);
}

const HISTORY_KINDS: &[&str] = &["KEEP_LAST_HISTORY_QOS", "KEEP_ALL_HISTORY_QOS"];

/// All policies that an application may set.
pub(super) const ELEMENTS: &[PolicyElement] = &[
    PolicyElement {
        name: "user_data",
        policy: "USER_DATA",
        fields: &[
            field("value", Form::Octets(|qos| &mut qos.user_data)),
            field("valueB64", Form::Base64(|qos| &mut qos.user_data)),
        ],
    },
    PolicyElement {
        name: "topic_data",
        policy: "TOPIC_DATA",
        fields: &[
            field("value", Form::Octets(|qos| &mut qos.topic_data)),
            field("valueB64", Form::Base64(|qos| &mut qos.topic_data)),
        ],
    },
    PolicyElement {
        name: "group_data",
        policy: "GROUP_DATA",
        fields: &[
            field("value", Form::Octets(|qos| &mut qos.group_data)),
            field("valueB64", Form::Base64(|qos| &mut qos.group_data)),
        ],
    },
    PolicyElement {
        name: "durability",
        policy: "DURABILITY",
        fields: &[field(
            "kind",
            Form::Kind(
                &[
                    "VOLATILE_DURABILITY_QOS",
                    "TRANSIENT_LOCAL_DURABILITY_QOS",
                    "TRANSIENT_DURABILITY_QOS",
                    "PERSISTENT_DURABILITY_QOS",
                ],
                |qos, index| pick(&mut qos.durability, Durability::ALL, index),
            ),
        )],
    },
    PolicyElement {
        name: "durability_service",
        policy: "DURABILITY_SERVICE",
        fields: &[
            field(
                "service_cleanup_delay",
                Form::Duration(|qos, delay| qos.durability_service.service_cleanup_delay = delay),
            ),
            field(
                "history_kind",
                Form::Kind(HISTORY_KINDS, |qos, index| {
                    pick(&mut qos.durability_service.history.kind, HistoryKind::ALL, index);
                }),
            ),
            field("history_depth", Form::Positive(|qos, depth| qos.durability_service.history.depth = depth)),
            field(
                "max_samples",
                Form::Limit(|qos, limit| qos.durability_service.resource_limits.max_samples = limit),
            ),
            field(
                "max_instances",
                Form::Limit(|qos, limit| qos.durability_service.resource_limits.max_instances = limit),
            ),
            field(
                "max_samples_per_instance",
                Form::Limit(|qos, limit| {
                    qos.durability_service.resource_limits.max_samples_per_instance = limit;
                }),
            ),
        ],
    },
    PolicyElement {
        name: "presentation",
        policy: "PRESENTATION",
        fields: &[
            field(
                "access_scope",
                Form::Kind(
                    &["INSTANCE_PRESENTATION_QOS", "TOPIC_PRESENTATION_QOS", "GROUP_PRESENTATION_QOS"],
                    |qos, index| pick(&mut qos.presentation.access_scope, AccessScope::ALL, index),
                ),
            ),
            field("coherent_access", Form::Boolean(|qos, flag| qos.presentation.coherent_access = flag)),
            field("ordered_access", Form::Boolean(|qos, flag| qos.presentation.ordered_access = flag)),
        ],
    },
    PolicyElement {
        name: "deadline",
        policy: "DEADLINE",
        fields: &[field("period", Form::Duration(|qos, period| qos.deadline = period))],
    },
    PolicyElement {
        name: "latency_budget",
        policy: "LATENCY_BUDGET",
        fields: &[field("duration", Form::Duration(|qos, budget| qos.latency_budget = budget))],
    },
    PolicyElement {
        name: "ownership",
        policy: "OWNERSHIP",
        fields: &[field(
            "kind",
            Form::Kind(&["SHARED_OWNERSHIP_QOS", "EXCLUSIVE_OWNERSHIP_QOS"], |qos, index| {
                pick(&mut qos.ownership, Ownership::ALL, index);
            }),
        )],
    },
    PolicyElement {
        name: "ownership_strength",
        policy: "OWNERSHIP_STRENGTH",
        fields: &[field("value", Form::Number(|qos, strength| qos.ownership_strength = strength))],
    },
    PolicyElement {
        name: "liveliness",
        policy: "LIVELINESS",
        fields: &[
            field(
                "kind",
                Form::Kind(
                    &[
                        "AUTOMATIC_LIVELINESS_QOS",
                        "MANUAL_BY_PARTICIPANT_LIVELINESS_QOS",
                        "MANUAL_BY_TOPIC_LIVELINESS_QOS",
                    ],
                    |qos, index| pick(&mut qos.liveliness.kind, LivelinessKind::ALL, index),
                ),
            ),
            field("lease_duration", Form::Duration(|qos, lease| qos.liveliness.lease_duration = lease)),
        ],
    },
    PolicyElement {
        name: "time_based_filter",
        policy: "TIME_BASED_FILTER",
        fields: &[field(
            "minimum_separation",
            Form::Duration(|qos, separation| qos.time_based_filter = separation),
        )],
    },
    PolicyElement {
        name: "partition",
        policy: "PARTITION",
        fields: &[field("name", Form::Strings(|qos| &mut qos.partition))],
    },
    PolicyElement {
        name: "reliability",
        policy: "RELIABILITY",
        fields: &[
            field(
                "kind",
                Form::Kind(&["BEST_EFFORT_RELIABILITY_QOS", "RELIABLE_RELIABILITY_QOS"], |qos, index| {
                    pick(&mut qos.reliability.kind, ReliabilityKind::ALL, index);
                }),
            ),
            field("max_blocking_time", Form::Duration(|qos, time| qos.reliability.max_blocking_time = time)),
        ],
    },
    PolicyElement {
        name: "destination_order",
        policy: "DESTINATION_ORDER",
        fields: &[field(
            "kind",
            Form::Kind(
                &["BY_RECEPTION_TIMESTAMP_DESTINATIONORDER_QOS", "BY_SOURCE_TIMESTAMP_DESTINATIONORDER_QOS"],
                |qos, index| pick(&mut qos.destination_order, DestinationOrder::ALL, index),
            ),
        )],
    },
    PolicyElement {
        name: "history",
        policy: "HISTORY",
        fields: &[
            field(
                "kind",
                Form::Kind(HISTORY_KINDS, |qos, index| pick(&mut qos.history.kind, HistoryKind::ALL, index)),
            ),
            field("depth", Form::Positive(|qos, depth| qos.history.depth = depth)),
        ],
    },
    PolicyElement {
        name: "resource_limits",
        policy: "RESOURCE_LIMITS",
        fields: &[
            field("max_samples", Form::Limit(|qos, limit| qos.resource_limits.max_samples = limit)),
            field("max_instances", Form::Limit(|qos, limit| qos.resource_limits.max_instances = limit)),
            field(
                "max_samples_per_instance",
                Form::Limit(|qos, limit| qos.resource_limits.max_samples_per_instance = limit),
            ),
            field("initial_samples", Form::Hint),
            field("initial_instances", Form::Hint),
        ],
    },
    PolicyElement {
        name: "transport_priority",
        policy: "TRANSPORT_PRIORITY",
        fields: &[field("value", Form::Number(|qos, priority| qos.transport_priority = priority))],
    },
    PolicyElement {
        name: "lifespan",
        policy: "LIFESPAN",
        fields: &[field("duration", Form::Duration(|qos, lifespan| qos.lifespan = lifespan))],
    },
    PolicyElement {
        name: "entity_factory",
        policy: "ENTITY_FACTORY",
        fields: &[field(
            "autoenable_created_entities",
            Form::Boolean(|qos, flag| qos.entity_factory.autoenable_created_entities = flag),
        )],
    },
    PolicyElement {
        name: "writer_data_lifecycle",
        policy: "WRITER_DATA_LIFECYCLE",
        fields: &[field(
            "autodispose_unregistered_instances",
            Form::Boolean(|qos, flag| qos.writer_data_lifecycle.autodispose_unregistered_instances = flag),
        )],
    },
    PolicyElement {
        name: "reader_data_lifecycle",
        policy: "READER_DATA_LIFECYCLE",
        fields: &[
            field(
                "autopurge_nowriter_samples_delay",
                Form::Duration(|qos, delay| {
                    qos.reader_data_lifecycle.autopurge_nowriter_samples_delay = delay;
                }),
            ),
            field(
                "autopurge_disposed_samples_delay",
                Form::Duration(|qos, delay| {
                    qos.reader_data_lifecycle.autopurge_disposed_samples_delay = delay;
                }),
            ),
        ],
    },
    PolicyElement {
        name: "data_representation",
        policy: "DATA_REPRESENTATION",
        fields: &[field("value", Form::Representations)],
    },
    PolicyElement {
        name: "type_consistency",
        policy: "TYPE_CONSISTENCY_ENFORCEMENT",
        fields: &[
            field(
                "kind",
                Form::Kind(&["DISALLOW_TYPE_COERCION", "ALLOW_TYPE_COERCION"], |qos, index| {
                    qos.type_consistency.allow_type_coercion = index == 1;
                }),
            ),
            field(
                "ignore_sequence_bounds",
                Form::Boolean(|qos, flag| qos.type_consistency.ignore_sequence_bounds = flag),
            ),
            field(
                "ignore_string_bounds",
                Form::Boolean(|qos, flag| qos.type_consistency.ignore_string_bounds = flag),
            ),
            field(
                "ignore_member_names",
                Form::Boolean(|qos, flag| qos.type_consistency.ignore_member_names = flag),
            ),
            field(
                "prevent_type_widening",
                Form::Boolean(|qos, flag| qos.type_consistency.prevent_type_widening = flag),
            ),
            field(
                "force_type_validation",
                Form::Boolean(|qos, flag| qos.type_consistency.force_type_validation = flag),
            ),
        ],
    },
    PolicyElement { name: "property", policy: "PROPERTY", fields: &[field("value", Form::Properties)] },
    PolicyElement {
        name: "consistency",
        policy: "CONSISTENCY",
        fields: &[
            field(
                "kind",
                Form::Kind(&["EVENTUAL_CONSISTENCY_QOS", "ATOMIC_CONSISTENCY_QOS"], |qos, index| {
                    pick(&mut qos.consistency.kind, ConsistencyKind::ALL, index);
                }),
            ),
            field(
                "slow_member_delay",
                Form::Duration(|qos, delay| qos.consistency.slow_member_delay = delay),
            ),
            field(
                "deliver_at",
                Form::Kind(&["STABLE_DELIVERY_QOS", "DURABLE_DELIVERY_QOS"], |qos, index| {
                    pick(&mut qos.consistency.deliver_at, DeliverAt::ALL, index);
                }),
            ),
        ],
    },
];

fn pick<T: Copy>(field: &mut T, kinds: &[T], index: usize) {
    if let Some(kind) = kinds.get(index) {
        *field = *kind;
    }
}
