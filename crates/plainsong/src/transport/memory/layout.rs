//! Where everything is in the segment that one side of a link makes and the other one reads.
//!
//! Words that different threads write, or read at different times, are two cache lines apart: processors
//! fetch lines in pairs.

use thiserror::Error;

use super::segment::{Memory, OwnMemory};

/// Slots of lent chunks, and entries of a release ring.
pub(crate) const LENT_MAX: usize = 1_024;

const MAGIC: usize = 0;
const VERSION: usize = 8;
const RING_BYTES: usize = 16;
const NONCE: usize = 24;
const ECHO: usize = 32;
/// Octets that were ever put into this segment's ring.
pub(super) const HEAD: usize = 128;
/// Octets of the owner's chunks that the peer may keep; it gets copies of what comes beyond.
const SHARE: usize = HEAD + 8;
/// Octets that were ever taken out of the ring of the other segment of the link.
pub(super) const CONSUMED: usize = 256;
/// The number of the sleep that the owner is about to begin or has begun; 0: it looks.
pub(super) const SLEEPING: usize = 384;
/// Slots that were ever released.
pub(super) const RELEASED: usize = 512;
/// The last of them.
pub(super) const RELEASES: usize = 640;
/// Where the ring begins.
pub(super) const RING: usize = 8_192;

const MAGIC_VALUE: u64 = u64::from_le_bytes(*b"plainsng");
const VERSION_VALUE: u64 = 2;
/// A shorter ring would not take one datagram, a longer one serves nobody.
pub(crate) const RING_BYTES_LEAST: usize = 4 << 10;
pub(crate) const RING_BYTES_MOST: usize = 64 << 20;

const _: () = assert!(RELEASES + 4 * LENT_MAX <= RING, "the ring begins after all else");

/// Octets of a segment with a ring of so many.
pub(crate) const fn segment_bytes(ring_bytes: usize) -> usize {
    RING + ring_bytes
}

/// Whether a ring may have so many octets.
pub(crate) const fn is_ring(bytes: usize) -> bool {
    bytes.is_power_of_two() && bytes >= RING_BYTES_LEAST && bytes <= RING_BYTES_MOST
}

/// What a segment says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) ring_bytes: usize,
    /// A random number, which the other side echoes: so it is this memory that both see.
    pub(crate) nonce: u64,
}

/// Why a peer's segment is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum HeaderError {
    #[error("it is no segment of a link")]
    Magic,
    #[error("its version is {found}, known is {}", VERSION_VALUE)]
    Version { found: u64 },
    #[error("a ring of {ring_bytes} octets is not what a segment of {bytes} has")]
    Ring { ring_bytes: u64, bytes: usize },
}

impl Header {
    /// Writes it to a new segment.
    pub(crate) fn write(&self, own: &impl OwnMemory) {
        own.store64(VERSION, VERSION_VALUE);
        own.store64(RING_BYTES, self.ring_bytes as u64);
        own.store64(NONCE, self.nonce);
        own.release64(MAGIC, MAGIC_VALUE);
    }

    /// That of a peer's segment, checked: what it says of its ring holds for this mapping for ever, whatever
    /// the peer writes there later.
    ///
    /// # Errors
    /// It is not what this version makes.
    pub(crate) fn read(peer: &impl Memory) -> Result<Self, HeaderError> {
        let bytes = peer.bytes();
        if bytes < RING || peer.acquire64(MAGIC) != MAGIC_VALUE {
            return Err(HeaderError::Magic);
        }
        let found = peer.load64(VERSION);
        if found != VERSION_VALUE {
            return Err(HeaderError::Version { found });
        }
        let told = peer.load64(RING_BYTES);
        let fits = |it: &usize| is_ring(*it) && segment_bytes(*it) <= bytes;
        let ring_bytes = usize::try_from(told).ok().filter(fits);
        let ring_bytes = ring_bytes.ok_or(HeaderError::Ring { ring_bytes: told, bytes })?;
        Ok(Self { ring_bytes, nonce: peer.load64(NONCE) })
    }
}

/// Tells the peer that its nonce was read in its memory.
pub(crate) fn write_echo(own: &impl OwnMemory, nonce: u64) {
    own.release64(ECHO, nonce);
}

/// Tells the peer, before the next record, how many octets it may keep.
pub(crate) fn write_share(own: &impl OwnMemory, bytes: u64) {
    own.store64(SHARE, bytes);
}

/// How many octets of the peer's chunks may be kept; whatever it says, only its own memory is at stake.
pub(crate) fn read_share(peer: &impl Memory) -> u64 {
    peer.load64(SHARE)
}

/// The nonce that the peer has read in our memory; 0: none yet.
pub(crate) fn read_echo(peer: &impl Memory) -> u64 {
    peer.acquire64(ECHO)
}
