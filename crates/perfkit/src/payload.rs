//! What is in a payload, so that a reader can count and measure by looking at it.
//!
//! | octets | little-endian | if the payload has at least |
//! |---|---|---|
//! | 0..4 | sequence number of writer and instance, from 0; the highest bit: a sequence of the warm-up | 4 |
//! | 4..6, 6..8 | number of the writer; phase (step of a ramp) | 8 |
//! | 8..16 | when it was due, monotonic nanoseconds; 0: not said, it follows one that does | 16 |
//! | 16..20 | checksum of the octets before, XOR that of the octets behind | 20 |
//! | 20.. | pseudo-random octets from the seed | |
//!
//! The checksum of less than 1,024 octets is the lower half of their rapidhash (v3), that of more is their
//! CRC-32: each is the faster there, and of the fastest products a short sample takes no longer than a few
//! checksums do.

use rapidhash::v3::rapidhash_v3;

/// The smallest payload.
pub const SIZE_MIN: u64 = 4;
/// The smallest payload that names its writer.
pub const SIZE_WITH_WRITER: usize = 8;
/// The smallest payload that says when it was due.
pub const SIZE_WITH_TIME: usize = 16;
/// The smallest payload with a checksum.
pub const SIZE_WITH_CHECKSUM: usize = 20;
/// The bit of the first field that marks the warm-up.
const WARMUP: u32 = 1 << 31;
/// Of fewer octets the checksum is a hash.
const CRC_BYTES_LEAST: usize = 1024;

/// The fields of a payload; those it is too small for are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Written during the warm-up.
    pub warmup: bool,
    /// Sequence number of writer and instance, 31 bits.
    pub sequence: u32,
    /// Number of the writer.
    pub writer: u16,
    /// Step of a ramp.
    pub phase: u16,
    /// When it was due; 0 if that is not said.
    pub due_ns: u64,
}

impl Head {
    /// Reads the fields; `None` if there are not even 4 octets.
    #[must_use]
    pub fn read(payload: &[u8]) -> Option<Self> {
        let (first, rest) = payload.split_first_chunk::<4>()?;
        let first = u32::from_le_bytes(*first);
        let mut head = Self { warmup: first & WARMUP != 0, sequence: first & !WARMUP, ..Self::default() };
        if let Some((word, rest)) = rest.split_first_chunk::<4>() {
            head.writer = u16::from_le_bytes([word[0], word[1]]);
            head.phase = u16::from_le_bytes([word[2], word[3]]);
            head.due_ns = rest.first_chunk::<8>().map_or(0, |due| u64::from_le_bytes(*due));
        }
        Some(head)
    }

    /// Writes the fields that there is room for.
    pub fn write(&self, payload: &mut [u8]) {
        let octets = self.octets();
        if let Some(place) = payload.first_chunk_mut() {
            *place = octets;
            return;
        }
        // A field is there whole or not at all.
        let room = match payload.len() {
            ..4 => 0,
            4..8 => 4,
            _ => 8,
        };
        payload[..room].copy_from_slice(&octets[..room]);
    }

    /// All fields, written as two words: smaller pieces could not be read at once for the checksum.
    const fn octets(&self) -> [u8; SIZE_WITH_TIME] {
        let first = self.sequence & !WARMUP | if self.warmup { WARMUP } else { 0 };
        let word = first as u64 | (self.writer as u64) << 32 | (self.phase as u64) << 48;
        ((self.due_ns as u128) << 64 | word as u128).to_le_bytes()
    }
}

/// Makes the payloads of one writer, in one buffer.
pub struct Maker {
    buffer: Vec<u8>,
    /// The checksum of the octets after the field, which never change.
    rest: u32,
}

impl Maker {
    /// Payloads of `size` octets with content from `seed`.
    #[must_use]
    pub fn new(size: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut buffer = vec![0; size];
        for chunk in buffer.chunks_mut(8) {
            let octets = random.bits().to_le_bytes();
            chunk.copy_from_slice(&octets[..chunk.len()]);
        }
        let rest = checksum(buffer.get(SIZE_WITH_CHECKSUM..).unwrap_or_default());
        Self { rest, buffer }
    }

    /// The next payload.
    pub fn make(&mut self, head: &Head) -> &[u8] {
        head.write(&mut self.buffer);
        if let Some((front, rest)) = self.buffer.split_first_chunk_mut::<SIZE_WITH_TIME>()
            && let Some(field) = rest.first_chunk_mut::<4>()
        {
            *field = (checksum(front) ^ self.rest).to_le_bytes();
        }
        &self.buffer
    }
}

#[inline]
fn checksum(octets: &[u8]) -> u32 {
    if octets.len() < CRC_BYTES_LEAST { rapidhash_v3(octets) as u32 } else { crc32fast::hash(octets) }
}

/// Whether the checksum of a payload is right; true if it is too small for one.
#[must_use]
pub fn is_intact(payload: &[u8]) -> bool {
    let Some((front, rest)) = payload.split_first_chunk::<SIZE_WITH_TIME>() else { return true };
    let Some((field, rest)) = rest.split_first_chunk::<4>() else { return true };
    checksum(front) ^ checksum(rest) == u32::from_le_bytes(*field)
}

/// Pseudo-random numbers that a seed repeats (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, 0 if that is 0.
    pub fn below(&mut self, limit: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(limit)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_as_far_as_it_fits() {
        let head = Head { warmup: true, sequence: 77, writer: 3, phase: 5, due_ns: 1 << 40 };
        for size in [4, 7, 8, 15, 16, 19, 20, 21, 64, 65_536] {
            let mut maker = Maker::new(size, 9);
            let payload = maker.make(&head);
            let expected = Head {
                writer: if size >= 8 { 3 } else { 0 },
                phase: if size >= 8 { 5 } else { 0 },
                due_ns: if size >= 16 { 1 << 40 } else { 0 },
                ..head
            };
            let read = Head::read(payload).expect("4 octets are there");
            assert_eq!((read.warmup, read.sequence), (true, 77), "size {size}");
            if [4, 8, 16, 20, 21, 64].contains(&size) {
                assert_eq!(read, expected, "size {size}");
            }
            assert!(is_intact(payload));
        }
        assert_eq!(Head::read(&[1, 2, 3]), None);
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        for size in [48, CRC_BYTES_LEAST + SIZE_WITH_CHECKSUM + 4] {
            let mut maker = Maker::new(size, 1);
            let intact = maker.make(&Head { sequence: 4, due_ns: 99, ..Head::default() }).to_vec();
            for bit in 0..size * 8 {
                let mut damaged = intact.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(!is_intact(&damaged), "bit {bit} of {size} octets");
            }
        }
    }
}
