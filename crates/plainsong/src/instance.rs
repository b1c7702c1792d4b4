//! What names instances and entities: [`InstanceHandle`], and the [`Guid`] that an entity's handle stands
//! for.

pub use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
pub use plainsong_proto::instance::InstanceHandle;
