//! QoS that an entity may have.

use plainsong_proto::qos::{EntityKind, QosSet};

use crate::error::{BadParameter, Error, Result};

/// Refuses contradictory policies, naming the entity.
pub(crate) fn check_qos(qos: &QosSet, kind: EntityKind, entity: &str) -> Result<()> {
    plainsong_proto::qos::consistent(qos, kind).map_err(|inconsistent| {
        let entity = entity.to_owned();
        if inconsistent.bad_value {
            return BadParameter::Policy { entity, source: inconsistent }.into();
        }
        Error::InconsistentPolicy { entity, source: inconsistent }
    })
}
