//! What leaves: the datagrams of new, held, cut and filtered samples.

pub(super) mod batch;
pub(super) mod content;
pub(super) mod fill;
pub(super) mod join;
pub(super) mod lending;
pub(super) mod pieces;
pub(super) mod send;
pub(super) mod submessages;
