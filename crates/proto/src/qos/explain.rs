//! Why an offer falls short of a request, in words: one rule for each policy that has any
//! (DCPS 1.4 §2.2.3, XTypes 1.3 §7.6.3.1, and CONSISTENCY).

use std::fmt::Display;

use crate::time::Duration;

use super::policy::QosSet;
use super::rxo;
use super::table::{POLICIES, Policy};
use super::words;

/// The request/offered rule of a policy, and how to speak about it.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Whether what a writer offers satisfies what a reader requests.
    pub(crate) compatible: fn(&QosSet, &QosSet) -> bool,
    /// The value of a writer, in words.
    offered: fn(&QosSet) -> String,
    /// The value of a reader, in words.
    requested: fn(&QosSet) -> String,
    /// What would make the offered (first) satisfy the requested.
    cure: fn(&QosSet, &QosSet) -> String,
}

/// A policy in which an offer falls short of a request.
#[derive(Clone, Debug)]
pub struct Shortfall {
    /// The policy.
    pub policy: &'static Policy,
    /// What the writer offers, in words.
    pub offered: String,
    /// What the reader requests, in words.
    pub requested: String,
    /// What to change on which side.
    pub cure: String,
}

/// The policies in which `offered` falls short of `requested`, explained, in the order of
/// [`super::incompatible`].
#[must_use]
pub fn shortfalls(offered: &QosSet, requested: &QosSet) -> Vec<Shortfall> {
    let broken = POLICIES.iter().filter_map(|policy| {
        let rule = policy.rule.filter(|rule| !(rule.compatible)(offered, requested))?;
        Some(Shortfall {
            policy,
            offered: (rule.offered)(offered),
            requested: (rule.requested)(requested),
            cure: (rule.cure)(offered, requested),
        })
    });
    broken.collect()
}

/// The cure where kinds have an order or must be equal.
fn align(policy: &str, offered: impl Display, requested: impl Display) -> String {
    format!("set the reader's {policy} to {offered} or the writer's to {requested}")
}

/// The cure where the offered duration must not be longer than the requested one.
fn shorten(what: &str, offered: Duration, requested: Duration) -> String {
    let at_least = if offered.is_infinite() { "" } else { "at least " };
    format!("set the reader's {what} to {at_least}{offered} or the writer's to at most {requested}")
}

pub(super) const DURABILITY: Rule = Rule {
    compatible: rxo::durability,
    offered: |qos| qos.durability.to_string(),
    requested: |qos| qos.durability.to_string(),
    cure: |offered, requested| align("DURABILITY", offered.durability, requested.durability),
};

pub(super) const PRESENTATION: Rule = Rule {
    compatible: rxo::presentation,
    offered: presentation,
    requested: presentation,
    cure: |offered, requested| {
        let (offered, requested) = (offered.presentation, requested.presentation);
        let mut cures = Vec::new();
        if offered.access_scope < requested.access_scope {
            let (lower, higher) = (offered.access_scope, requested.access_scope);
            cures
                .push(format!("set the subscriber's access_scope to {lower} or the publisher's to {higher}"));
        }
        let mut flag = |name, offers: bool, requests: bool| {
            if requests && !offers {
                cures.push(format!("set {name} to false at the subscriber or to true at the publisher"));
            }
        };
        flag("coherent_access", offered.coherent_access, requested.coherent_access);
        flag("ordered_access", offered.ordered_access, requested.ordered_access);
        cures.join(", and ")
    },
};

fn presentation(qos: &QosSet) -> String {
    let policy = qos.presentation;
    let flags = [(policy.coherent_access, " coherent"), (policy.ordered_access, " ordered")];
    let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
    format!("{}{}", policy.access_scope, if flags.is_empty() { " without order" } else { &flags })
}

pub(super) const DEADLINE: Rule = Rule {
    compatible: rxo::deadline,
    offered: |qos| qos.deadline.to_string(),
    requested: |qos| qos.deadline.to_string(),
    cure: |offered, requested| shorten("DEADLINE", offered.deadline, requested.deadline),
};

pub(super) const LATENCY_BUDGET: Rule = Rule {
    compatible: rxo::latency_budget,
    offered: |qos| qos.latency_budget.to_string(),
    requested: |qos| qos.latency_budget.to_string(),
    cure: |offered, requested| shorten("LATENCY_BUDGET", offered.latency_budget, requested.latency_budget),
};

pub(super) const OWNERSHIP: Rule = Rule {
    compatible: rxo::ownership,
    offered: |qos| qos.ownership.to_string(),
    requested: |qos| qos.ownership.to_string(),
    cure: |offered, requested| align("OWNERSHIP", offered.ownership, requested.ownership),
};

pub(super) const LIVELINESS: Rule = Rule {
    compatible: rxo::liveliness,
    offered: liveliness,
    requested: liveliness,
    cure: |offered, requested| {
        let (offered, requested) = (offered.liveliness, requested.liveliness);
        let mut cures = Vec::new();
        if offered.kind < requested.kind {
            cures.push(align("LIVELINESS kind", offered.kind, requested.kind));
        }
        if offered.lease_duration > requested.lease_duration {
            let what = "LIVELINESS lease_duration";
            cures.push(shorten(what, offered.lease_duration, requested.lease_duration));
        }
        cures.join(", and ")
    },
};

fn liveliness(qos: &QosSet) -> String {
    format!("{} within {}", qos.liveliness.kind, qos.liveliness.lease_duration)
}

pub(super) const RELIABILITY: Rule = Rule {
    compatible: rxo::reliability,
    offered: |qos| qos.reliability.kind.to_string(),
    requested: |qos| qos.reliability.kind.to_string(),
    cure: |offered, requested| align("RELIABILITY", offered.reliability.kind, requested.reliability.kind),
};

pub(super) const DESTINATION_ORDER: Rule = Rule {
    compatible: rxo::destination_order,
    offered: |qos| qos.destination_order.to_string(),
    requested: |qos| qos.destination_order.to_string(),
    cure: |offered, requested| {
        align("DESTINATION_ORDER", offered.destination_order, requested.destination_order)
    },
};

pub(super) const DATA_REPRESENTATION: Rule = Rule {
    compatible: rxo::data_representation,
    offered: |qos| first_representation(qos).to_owned(),
    requested: |qos| {
        rxo::representations(qos)
            .iter()
            .map(|version| words::representation(*version))
            .collect::<Vec<_>>()
            .join(" or ")
    },
    cure: |offered, requested| {
        let (writes, reads) = (first_representation(offered), first_representation(requested));
        format!("add {writes} to the reader's DATA_REPRESENTATION or let the writer's begin with {reads}")
    },
};

pub(super) const CONSISTENCY: Rule = Rule {
    compatible: rxo::consistency,
    offered: |qos| qos.consistency.kind.to_string(),
    requested: |qos| qos.consistency.kind.to_string(),
    cure: |offered, requested| {
        let cure = align("CONSISTENCY", offered.consistency.kind, requested.consistency.kind);
        format!("{cure}, which Plainsong alone offers")
    },
};

/// The one a writer writes.
fn first_representation(qos: &QosSet) -> &'static str {
    rxo::representations(qos).first().map_or("nothing", |version| words::representation(*version))
}
