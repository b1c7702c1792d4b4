//! Types as objects: of Rust types, or described at run time (XTypes 1.3).

pub use plainsong_derive::DdsType;
pub use plainsong_proto::cdr::DdsType;
pub use plainsong_proto::filter::FilterError;
pub use plainsong_proto::type_support::{
    DataError, DataRef, DataValue, DynamicData, DynamicType, DynamicTypeError, KeyError, OpaqueType, Scalar,
    TypeSupport, of as type_support_of,
};
pub use plainsong_proto::types::{
    Extensibility, TypeDescription, TypeHash, TypeIdentifier, TypeInformation, TypeObject,
};
