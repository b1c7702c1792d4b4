//! The protocol of Plainsong as state machines: octets and time in, octets and events out.
//!
//! This crate decides; it never opens a socket, reads a clock, starts a thread or draws randomness.
//! Its callers own all of that: the `plainsong` crate for real networks, the simulator for tests.
#![deny(unsafe_code)]

pub mod atomic;
pub mod backoff;
pub mod cdr;
mod copying;
pub mod discovery;
pub mod estimate;
pub mod filter;
pub mod guid;
pub mod instance;
mod limits;
pub mod locator;
mod long_keys;
pub mod malformed;
pub mod matched;
pub mod outbox;
pub mod payload;
pub mod policy_id;
pub mod qos;
pub mod reader;
pub mod receiver;
pub mod sample_info;
pub mod seq;
mod shrink;
pub mod sources;
pub mod stats;
pub mod status;
pub mod time;
pub mod tuning;
pub mod type_support;
pub mod types;
pub mod vendor;
pub mod wire;
pub mod writer;
