//! QoS that an entity may have.

use plainsong_proto::qos::{EntityKind, Inconsistent, QosSet};

use crate::error::{Error, Result};

/// Refuses contradictory policies, naming the entity.
pub(crate) fn check_qos(qos: &QosSet, kind: EntityKind, entity: &str) -> Result<()> {
    plainsong_proto::qos::consistent(qos, kind).map_err(|inconsistent| {
        let Inconsistent { policy, bad_value, reason } = inconsistent;
        if bad_value {
            return Error::BadParameter(format!("{policy} of {entity}: {reason}"));
        }
        Error::InconsistentPolicy { entity: entity.to_owned(), reason: inconsistent.to_string() }
    })
}
