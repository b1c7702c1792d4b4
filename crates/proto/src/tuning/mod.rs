//! The tuning of the protocol core: every number that was chosen, not prescribed by a standard, with its unit
//! and reason.
//!
//! The rows are constants, as the path of a sample is counted in instructions; [`GROUPS`] lists them for
//! `docs/tuning.md`. What drivers set is in `WriterLimits`, `ReaderLimits` and `DiscoveryLimits`
//! (`docs/limits.md`).

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name of the constant.
    pub name: &'static str,
    /// Its value, in its unit.
    pub default: &'static str,
    /// The unit.
    pub unit: &'static str,
    /// What it is, and why it is what it is.
    pub why: &'static str,
}

/// The rows of one owner.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Which part of the core reads them.
    pub owner: &'static str,
    /// In the order of the source.
    pub rows: &'static [Row],
}

/// All rows.
pub const GROUPS: &[Group] = &[
    writer::ACKNOWLEDGEMENTS,
    writer::REPAIR,
    writer::CONGESTION,
    writer::DATAGRAMS,
    writer::HISTORY,
    reader::ACKNOWLEDGEMENTS,
    reader::FRAGMENTS,
    reader::CACHE,
    discovery::ANNOUNCEMENTS,
    discovery::ADDRESSES,
    discovery::PARTICIPANTS,
    discovery::ENDPOINTS,
    memory::MEMORY,
];

/// The rows of groups of ATOMIC topics, which have a page of their own (`docs/tuning-atomic.md`).
pub const GROUPS_OF_ATOMIC: &[Group] = &[atomic::ATOMIC, decider::DECIDER];

/// A value in its unit as its type has it.
macro_rules! quantity {
    ($value:expr, us) => {
        $crate::time::Duration::from_micros($value)
    };
    ($value:expr, ms) => {
        $crate::time::Duration::from_millis($value)
    };
    ($value:expr, s) => {
        $crate::time::Duration::from_secs($value)
    };
    ($value:expr, KiB) => {
        $value << 10
    };
    ($value:expr, MiB) => {
        $value << 20
    };
    ($value:expr, $unit:ident) => {
        $value
    };
}

/// A group of rows: a constant of each, and a list of all.
macro_rules! rows {
    ($group:ident: $owner:literal;
     $($(#[doc = $why:literal])+ $name:ident: $type:ty = $value:expr, $unit:ident;)+) => {
        $($(#[doc = $why])+ pub(crate) const $name: $type = quantity!($value, $unit);)+

        #[doc = $owner]
        pub const $group: $crate::tuning::Group = $crate::tuning::Group {
            owner: $owner,
            rows: &[$($crate::tuning::Row {
                name: stringify!($name),
                default: stringify!($value),
                unit: stringify!($unit),
                why: concat!($($why),+),
            }),+],
        };
    };
}

pub mod atomic;
pub mod decider;
pub mod discovery;
pub mod memory;
pub mod reader;
pub mod writer;
