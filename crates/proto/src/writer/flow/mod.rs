//! When and how much: acknowledgement requests, congestion controllers, retransmissions and silence.

pub(super) mod ack_policy;
pub(super) mod congestion_window;
pub(super) mod controller;
pub(super) mod delay;
pub(super) mod fan_out;
pub(super) mod heartbeat;
pub(super) mod queue;
pub(super) mod repair;
pub(super) mod retransmission;
pub(super) mod round_trip;
pub(super) mod route_kind;
pub(super) mod silence;
pub(super) mod span;
