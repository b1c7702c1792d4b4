//! What of an entity's QoS has less effect than the standard promises.

use super::policy::{Durability, QosSet, TypeConsistency};
use super::table::EntityKind;

/// A policy that is accepted and announced, but not carried out in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unhonoured {
    /// Name of the policy.
    pub policy: &'static str,
    /// What is done, what is not, and what to do about it.
    pub what: &'static str,
}

/// What of `qos` has less effect in an entity of `kind` than DCPS 1.4 §2.2.3 promises.
#[must_use]
pub fn unhonoured(qos: &QosSet, kind: EntityKind) -> Vec<Unhonoured> {
    let all = [durability(qos, kind), type_consistency(qos, kind)];
    all.into_iter().flatten().collect()
}

fn durability(qos: &QosSet, kind: EntityKind) -> Option<Unhonoured> {
    if qos.is_atomic() {
        // Every member of the group keeps the history, and a PERSISTENT one on its disk.
        return None;
    }
    let what = match (kind, qos.durability) {
        (EntityKind::Writer, Durability::Transient) => {
            "the writer itself keeps history as its DURABILITY_SERVICE says, and ends with it: there is no \
             durability service; keep the writer alive as long as its data is wanted"
        }
        (EntityKind::Writer, Durability::Persistent) => {
            "the writer itself keeps history in memory as its DURABILITY_SERVICE says, and ends with it: \
             nothing is stored on disk; keep the writer alive as long as its data is wanted"
        }
        (EntityKind::Reader, Durability::Transient | Durability::Persistent) => {
            "history comes from writers that live: what writers wrote that have left is not provided"
        }
        _ => return None,
    };
    Some(Unhonoured { policy: "DURABILITY", what })
}

fn type_consistency(qos: &QosSet, kind: EntityKind) -> Option<Unhonoured> {
    let TypeConsistency { force_type_validation, .. } = qos.type_consistency;
    let usual = TypeConsistency { force_type_validation, ..TypeConsistency::default() };
    (kind == EntityKind::Reader && qos.type_consistency != usual).then_some(Unhonoured {
        policy: "TYPE_CONSISTENCY_ENFORCEMENT",
        what: "types are compared with those of other Plainsong participants; others are not told ours and match \
               by name: give types that must not meet different names",
    })
}
