//! The numbers that were chosen.

use std::time::Duration;

/// A chunk is written when it has so many octets: large enough for few writes, and small enough to be looked
/// at whole.
pub const CHUNK_BYTES: usize = 4 << 20;

/// What was recorded is in the file, and on the disk, after twice this time at most.
pub const FLUSH_PERIOD: Duration = Duration::from_millis(400);

/// A record of a file: a chunk of [`CHUNK_BYTES`] with one sample more, of the largest that Plainsong takes,
/// fits.
pub(crate) const RECORD_BYTES_MAX: usize = 128 << 20;

/// How much is read from a file at once.
pub(crate) const READ_BYTES: usize = 256 << 10;

/// Flaws of a file that are told one by one.
pub(crate) const FLAWS_MAX: usize = 100;

/// Octets of the description of a type in the metadata of a channel, before they are decoded.
pub(crate) const TYPE_TEXT_BYTES_MAX: usize = 16 << 20;

/// Octets of the QoS in the metadata of a channel.
pub(crate) const QOS_TEXT_BYTES_MAX: usize = 1 << 20;

/// Octets of the metadata of all channels of a file.
pub(crate) const METADATA_BYTES_MAX: usize = 256 << 20;
