//! Octets of a sequence that an application has filled in a chunk, and the payload that is made around them.
//!
//! The rest of the sample is written before and behind them, once. Until then nobody can see more of the
//! chunk than these octets.

#![allow(unsafe_code, reason = "parts of a chunk have different owners")]

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use plainsong_proto::payload::{Payload, Region};

use super::pool::Chunk;
use crate::base::sync::atomic::{AtomicBool, Ordering};

/// The octets, for a sequence that has them.
pub(crate) struct FilledOctets(Arc<Filled>);

struct Filled {
    chunk: Chunk,
    range: Range<usize>,
    /// Of what is around them, too, a payload was made.
    is_complete: AtomicBool,
}

/// A payload with the octets in its midst.
pub(crate) struct Completed {
    filled: Arc<Filled>,
    range: Range<usize>,
}

impl FilledOctets {
    /// Those of a range of a chunk, clipped to it.
    pub(crate) fn new(chunk: Chunk, range: Range<usize>) -> Self {
        let end = range.end.min(chunk.capacity());
        let range = range.start.min(end)..end;
        Self(Arc::new(Filled { chunk, range, is_complete: AtomicBool::new(false) }))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.range.len()
    }

    /// The payload that has them between `head` and `tail`. `None`: there is one already, or not as much
    /// room.
    pub(crate) fn complete(&self, head: &[u8], tail: &[u8]) -> Option<Payload> {
        let Filled { chunk, range, is_complete } = &*self.0;
        let start = range.start.checked_sub(head.len())?;
        let end = range.end.checked_add(tail.len()).filter(|end| *end <= chunk.capacity())?;
        if is_complete.swap(true, Ordering::AcqRel) {
            return None;
        }
        // SAFETY: of a chunk that is owned here all that others can see is `range`, until a `Completed` is
        // made of it below. Only one call gets as far as that, and these places are outside of `range`.
        unsafe {
            chunk.part_mut(start..range.start).copy_from_slice(head);
            chunk.part_mut(range.end..end).copy_from_slice(tail);
        }
        let completed = Completed { filled: Arc::clone(&self.0), range: start..end };
        Some(Payload::from_region(Arc::new(completed), 0..end - start))
    }
}

impl Completed {
    /// The chunk, and where the payload is in it.
    pub(super) fn place(&self) -> (&Chunk, &Range<usize>) {
        (&self.filled.chunk, &self.range)
    }
}

impl Region for FilledOctets {
    fn octets(&self) -> &[u8] {
        // SAFETY: nobody writes to that range: who filled it has given it to this value.
        unsafe { self.0.chunk.part(self.0.range.clone()) }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Region for Completed {
    fn octets(&self) -> &[u8] {
        // SAFETY: what is around the octets was written before this was made, and is not written again.
        unsafe { self.filled.chunk.part(self.range.clone()) }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl fmt::Debug for FilledOctets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} octets in {:?}", self.len(), self.0.chunk)
    }
}

impl fmt::Debug for Completed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} octets in {:?}", self.range.len(), self.filled.chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::Pool;
    use super::super::segment::Pages;
    use super::*;

    fn filled(pool: &Pool) -> FilledOctets {
        let mut chunk = pool.allocate(4_096).unwrap();
        chunk.bytes_mut()[100..200].fill(7);
        FilledOctets::new(chunk, 100..200)
    }

    #[test]
    fn a_payload_is_made_around_them_once() {
        let pool = Pool::new(1 << 20, Pages::Usual);
        let octets = filled(&pool);
        assert_eq!(octets.octets(), [7; 100]);
        assert!(octets.complete(&[1; 101], &[]).is_none(), "no room before them");
        assert!(octets.complete(&[], &[1; 3_897]).is_none(), "nor behind");
        let payload = octets.complete(&[1; 3], &[2; 5]).unwrap();
        assert_eq!(payload.as_slice(), [&[1; 3][..], &[7; 100], &[2; 5]].concat());
        assert_eq!(octets.octets().as_ptr(), payload.as_slice()[3..].as_ptr());
        assert!(octets.complete(&[1; 3], &[2; 5]).is_none(), "others read what is around them");
        drop(octets);
        assert_eq!(payload.as_slice().len(), 108);
        let whole = filled(&pool).complete(&[1; 100], &[2; 3_896]).unwrap();
        assert_eq!(whole.len(), 4_096);
    }

    #[test]
    fn who_completes_them_at_the_same_time_does_so_alone() {
        let pool = Pool::new(1 << 20, Pages::Usual);
        let octets = filled(&pool);
        let made: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..=4)
                .map(|number| {
                    scope.spawn({
                        let octets = &octets;
                        move || octets.complete(&[number; 100], &[number; 100])
                    })
                })
                .collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        let [payload] = &made[..] else { panic!("{} payloads", made.len()) };
        let [first, .., last] = payload.as_slice() else { panic!("it is empty") };
        assert!(first == last && *first > 0);
    }

    #[test]
    fn a_range_beyond_the_chunk_is_clipped() {
        let chunk = Pool::new(1 << 20, Pages::Usual).allocate(4_096).unwrap();
        assert_eq!(FilledOctets::new(chunk, 4_000..9_000).octets().len(), 96);
    }
}
