//! The numbers that were chosen: what an input may ask of the compiler before it is refused.

/// Files that include one another.
pub(crate) const INCLUDE_DEPTH_MAX: usize = 64;
/// A file.
pub(crate) const FILE_BYTES_MAX: usize = 16 << 20;
/// Inclusions in one run: a file that is included again counts again.
pub(crate) const INCLUSIONS_MAX: usize = 100_000;
/// What comes out of the preprocessor for one input file.
pub(crate) const TOKENS_MAX: usize = 4_000_000;
/// What the macros of one input file may add.
pub(crate) const EXPANDED_TOKENS_MAX: usize = 1_000_000;
/// Macros within macros.
pub(crate) const MACRO_DEPTH_MAX: usize = 64;
/// Modules, types and expressions within one another, and `#if` within `#if`.
pub(crate) const NESTING_MAX: usize = 64;
/// Elements of an XML file.
pub(crate) const XML_ELEMENTS_MAX: usize = 1_000_000;
/// Attributes of an element.
pub(crate) const XML_ATTRIBUTES_MAX: usize = 64;
/// Fields and constants of a ROS 2 interface.
pub(crate) const ROS_FIELDS_MAX: usize = 65_536;
/// Octets of the name by which peers know a type (XTypes 1.3 Annex B).
pub(crate) const DDS_NAME_BYTES_MAX: usize = 256;
/// Types that are made of one another.
pub(crate) const TYPE_DEPTH_MAX: u32 = 256;
/// Diagnostics that are kept; those after them are counted.
pub(crate) const DIAGNOSTICS_MAX: usize = 100;
/// Columns of a line that a diagnostic shows.
pub(crate) const EXCERPT_COLUMNS_MAX: usize = 160;
/// Elements of an array, over all its dimensions, as the size of an array is 32 bits wide on the wire.
pub(crate) const ARRAY_ELEMENTS_MAX: u64 = u32::MAX as u64;
/// The largest member id (XTypes 1.3 §7.2.2.4.4.4.1).
pub(crate) const MEMBER_ID_MAX: u32 = 0x0fff_ffff;
/// Types that a description leads to.
#[cfg(feature = "described")]
pub(crate) const DESCRIBED_TYPES_MAX: usize = 4_096;
/// How deep they are within one another.
#[cfg(feature = "described")]
pub(crate) const DESCRIBED_DEPTH_MAX: usize = 128;
