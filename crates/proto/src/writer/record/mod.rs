//! What was written: changes, their payloads and instances, limits and marks of coherent sets.

pub(super) mod change;
pub(super) mod coherent;
pub(super) mod destination_order;
pub(super) mod durability;
pub(super) mod group;
pub(super) mod history;
pub(super) mod instances;
pub(super) mod payloads;
pub(super) mod service;
