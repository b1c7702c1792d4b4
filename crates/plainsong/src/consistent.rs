//! QoS that an entity may have.

use plainsong_proto::qos::{EntityKind, Inconsistent, QosSet, consistent, consistent_in_group};

use crate::error::{BadParameter, Error, Result};

/// Refuses contradictory policies, naming the entity.
pub(crate) fn check_qos(qos: &QosSet, kind: EntityKind, entity: &str) -> Result<()> {
    consistent(qos, kind).map_err(|inconsistent| refusal(inconsistent, entity.to_owned()))
}

/// Refuses what a writer or reader cannot have together with its publisher or subscriber. `before` is what it
/// had until now, if it is enabled.
pub(crate) fn check_announced_qos(
    qos: &QosSet,
    before: Option<&QosSet>,
    describe: impl Fn() -> String,
) -> Result<()> {
    consistent_in_group(qos, before).map_err(|inconsistent| refusal(inconsistent, describe()))
}

fn refusal(inconsistent: Inconsistent, entity: String) -> Error {
    if inconsistent.bad_value {
        return BadParameter::Policy { entity, source: inconsistent }.into();
    }
    Error::InconsistentPolicy { entity, source: inconsistent }
}
