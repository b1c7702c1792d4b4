//! Copying long octets in pieces.
//!
//! glibc copies what is longer than about 2 kB with one instruction (`rep movsb`), which on processors with
//! Zen 3 cores is fifteen times slower where the destination is 1 to 31 octets behind the source, as far as
//! the last twelve bits of their addresses tell. Memory of 128 KiB or more begins at a page, so that a header
//! of eight octets in front of a payload is enough to make it so, each time (`docs/performance-path.md`).
//! Shorter pieces are copied by other instructions, which are as fast everywhere.

use crate::tuning::memory::COPY_PIECE_BYTES;

/// Appends octets.
#[inline]
pub(crate) fn append(to: &mut Vec<u8>, octets: &[u8]) {
    if octets.len() <= COPY_PIECE_BYTES {
        to.extend_from_slice(octets);
    } else {
        append_long(to, octets);
    }
}

#[inline(never)]
fn append_long(to: &mut Vec<u8>, octets: &[u8]) {
    to.reserve(octets.len());
    for piece in octets.chunks(COPY_PIECE_BYTES) {
        to.extend_from_slice(piece);
    }
}

/// The same octets as a vector.
pub(crate) fn copied(octets: &[u8]) -> Vec<u8> {
    let mut copy = Vec::with_capacity(octets.len());
    append(&mut copy, octets);
    copy
}

/// Copies octets to a place of the same length.
#[inline]
pub(crate) fn copy(to: &mut [u8], octets: &[u8]) {
    if octets.len() <= COPY_PIECE_BYTES || to.len() != octets.len() {
        copy_few(to, octets);
    } else {
        copy_long(to, octets);
    }
}

#[inline(never)]
fn copy_long(to: &mut [u8], octets: &[u8]) {
    for (place, piece) in to.chunks_mut(COPY_PIECE_BYTES).zip(octets.chunks(COPY_PIECE_BYTES)) {
        place.copy_from_slice(piece);
    }
}

/// Appends octets, up to 127 without a call.
#[inline(always)]
pub(crate) fn append_few(to: &mut Vec<u8>, octets: &[u8]) {
    if octets.len() > 127 {
        return to.extend_from_slice(octets);
    }
    let rest = append_half::<64>(to, octets);
    let rest = append_half::<32>(to, rest);
    let rest = append_half::<16>(to, rest);
    let rest = append_half::<8>(to, rest);
    let rest = append_half::<4>(to, rest);
    rest.iter().for_each(|octet| to.push(*octet));
}

/// Appends `N` octets, if there are as many; the others.
#[inline(always)]
fn append_half<'o, const N: usize>(to: &mut Vec<u8>, octets: &'o [u8]) -> &'o [u8] {
    let Some((first, rest)) = octets.split_first_chunk::<N>() else { return octets };
    to.extend_from_slice(first);
    rest
}

/// Copies octets to a place of the same length, up to 128 without a call: the first and the last of them,
/// which share those between.
#[inline(always)]
pub(crate) fn copy_few(to: &mut [u8], octets: &[u8]) {
    let is_few = to.len() == octets.len() && octets.len() <= 128;
    let is_copied = is_few
        && if octets.len() > 32 {
            ends::<64>(to, octets) || ends::<32>(to, octets)
        } else {
            ends::<16>(to, octets) || ends::<8>(to, octets) || ends::<4>(to, octets)
        };
    if !is_copied {
        to.copy_from_slice(octets);
    }
}

/// Whether the first `N` and the last `N` are all.
#[inline(always)]
fn ends<const N: usize>(to: &mut [u8], octets: &[u8]) -> bool {
    let (Some(first), Some(last)) = (octets.first_chunk::<N>(), octets.last_chunk::<N>()) else {
        return false;
    };
    if octets.len() > 2 * N {
        return false;
    }
    if let Some(place) = to.first_chunk_mut::<N>() {
        *place = *first;
    }
    if let Some(place) = to.last_chunk_mut::<N>() {
        *place = *last;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_octets_arrive_whole() {
        let octets: Vec<u8> = (1..=140).collect();
        for length in 0..octets.len() {
            let octets = &octets[..length];
            let mut place = vec![0; length + 1];
            copy_few(&mut place[..length], octets);
            assert_eq!((&place[..length], place[length]), (octets, 0), "{length}");
            let mut appended = vec![0];
            append_few(&mut appended, octets);
            assert_eq!((appended[0], &appended[1..]), (0, octets), "{length}");
        }
    }

    #[test]
    fn every_length_arrives_whole() {
        let octets: Vec<u8> = (0..3 * COPY_PIECE_BYTES + 1).map(|at| at as u8 ^ (at >> 8) as u8).collect();
        for length in [
            0,
            1,
            COPY_PIECE_BYTES - 1,
            COPY_PIECE_BYTES,
            COPY_PIECE_BYTES + 1,
            2 * COPY_PIECE_BYTES,
            octets.len(),
        ] {
            let octets = &octets[..length];
            let mut appended = vec![7];
            append(&mut appended, octets);
            assert_eq!((appended[0], &appended[1..]), (7, octets), "{length}");
            assert_eq!(copied(octets), octets, "{length}");
            let mut place = vec![0; length];
            copy(&mut place, octets);
            assert_eq!(place, octets, "{length}");
        }
    }
}
