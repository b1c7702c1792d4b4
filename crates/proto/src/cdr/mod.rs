//! Placeholder of CDR.

/// The key of an instance in sixteen octets (RTPS 2.5 §9.6.4.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub [u8; 16]);

/// Versions of the extended CDR (XTypes 1.3 §7.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum XcdrVersion {
    /// XCDR1.
    Xcdr1,
    /// XCDR2.
    Xcdr2,
}
