//! When and how much: asking for acknowledgements, windows, pacing, repetitions and silence.

pub(super) mod ack_policy;
pub(super) mod class;
pub(super) mod cost;
pub(super) mod crowd;
pub(super) mod hearing;
pub(super) mod heartbeat;
pub(super) mod pace;
pub(super) mod repair;
pub(super) mod road;
pub(super) mod round_trip;
pub(super) mod silence;
pub(super) mod window;
