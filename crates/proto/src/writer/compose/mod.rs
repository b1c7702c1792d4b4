//! The packetizer: datagrams of new, held, cut, repeated and filtered samples.

pub(super) mod acks;
pub(super) mod batch;
mod filtering;
pub(super) mod moved;
pub(super) mod packet;
pub(super) mod packetizer;
pub(super) mod plan;
mod retransmit;
mod send;
pub(super) mod submessages;
