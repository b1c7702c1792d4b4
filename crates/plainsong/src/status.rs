//! Communication statuses (DCPS 1.4 §2.2.4.1), as listeners and `…_status` operations give them.

pub use plainsong_proto::status::{
    CountStatus, DeadlineMissedStatus, IncompatibleQosStatus, LivelinessChangedStatus, MatchedStatus,
    RejectReason, SampleRejectedStatus, StatusKind, StatusMask,
};
