//! What was lent comes back once, or when the link ends.

use super::super::pool::Pool;
use super::super::segment::Pages;
use super::*;
use crate::base::locks::lock;
use std::sync::Mutex;

#[test]
fn a_slot_is_released_once_and_lent_again() {
    let mut lending = Lending::new();
    let slots: Vec<u32> = (0..4).map(|what| lending.lend(what, 25).unwrap()).collect();
    assert_eq!(slots, [0, 1, 2, 3]);
    assert_eq!(lending.release(2), Some(2));
    assert_eq!(lending.release(2), None);
    for nonsense in [4, LENT_MAX as u32, u32::MAX] {
        assert_eq!(lending.release(nonsense), None);
    }
    assert_eq!((lending.len(), lending.bytes()), (3, 75));
    assert_eq!(lending.lend(5, 25), Some(2));
    (0..4).filter(|slot| *slot != 2).for_each(|slot| assert!(lending.release(slot).is_some()));
    assert_eq!(lending.release(2), Some(5));
    assert_eq!((lending.len(), lending.bytes()), (0, 0));
}

#[test]
fn slots_are_few() {
    let mut lending = Lending::new();
    for what in 0..LENT_MAX {
        assert!(lending.lend(what, 1).is_some());
    }
    assert_eq!(lending.lend(0, 1), None);
    assert_eq!(lending.len(), LENT_MAX);
}

#[test]
fn when_the_table_goes_all_is_back() {
    let pool = Pool::new(1 << 20, Pages::Usual);
    let mut lending = Lending::new();
    while let Ok(chunk) = pool.allocate(4_096) {
        let bytes = chunk.capacity() as u64;
        lending.lend(Arc::new(chunk), bytes).unwrap();
    }
    assert_eq!(lending.len(), 256);
    drop(lending);
    assert_eq!(std::iter::from_fn(|| pool.allocate(4_096).ok()).collect::<Vec<_>>().len(), 256);
}

#[derive(Default)]
struct Returned(Mutex<Vec<u32>>);

impl LetGo for Returned {
    fn let_go(&self, slot: u32) {
        lock(&self.0).push(slot);
    }
}

#[test]
#[cfg_attr(miri, ignore = "a mapping")]
fn what_is_borrowed_is_read_in_place_and_given_back() {
    let pool = Pool::new(1 << 20, Pages::Usual);
    let mut chunk = pool.allocate(5_000).unwrap();
    chunk.bytes_mut().fill(9);
    let id = chunk.slab().id();
    let mut slabs = PeerSlabs::new(1 << 20);
    let lender = Arc::new(Returned::default());
    let attachment = chunk.attachment(&(10..5_000), 17);
    assert_eq!(slabs.borrow(&attachment, &lender).err(), Some(AttachmentError::Slab(id)));
    slabs.insert(id, chunk.slab().fd(), 8_192).unwrap();
    assert!(matches!(slabs.insert(id, chunk.slab().fd(), 8_192), Err(PeerSlabError::Known(_))));
    let borrowed = slabs.borrow(&attachment, &lender).unwrap();
    assert_eq!(borrowed.bytes(), [9; 4_990]);
    assert_eq!(slabs.borrowed_bytes(), 8_192, "of the whole chunk");
    assert_eq!(slabs.mapped_bytes(), chunk.slab().bytes() as u64);
    assert!(slabs.remove(id));
    assert!(!slabs.remove(id));
    assert_eq!(borrowed.bytes(), [9; 4_990], "it stays as long as it is borrowed");
    assert!(lock(&lender.0).is_empty());
    drop(borrowed);
    assert_eq!(*lock(&lender.0), [17]);
    assert_eq!((slabs.borrowed_bytes(), slabs.mapped_bytes()), (0, 0));
}

#[test]
#[cfg_attr(miri, ignore = "a mapping")]
fn attachments_beyond_a_slab_and_slabs_beyond_the_limits_are_refused() {
    let pool = Pool::new(1 << 20, Pages::Usual);
    let chunk = pool.allocate(4_096).unwrap();
    let bytes = chunk.slab().bytes() as u64;
    let mut slabs = PeerSlabs::new(bytes + 1);
    let lender = Arc::new(Returned::default());
    for chunk_bytes in [0, bytes + 1, u64::MAX] {
        let refused = slabs.insert(7, chunk.slab().fd(), chunk_bytes);
        assert!(matches!(refused, Err(PeerSlabError::Chunk { .. })), "{chunk_bytes}");
        assert_eq!(slabs.mapped_bytes(), 0);
    }
    slabs.insert(7, chunk.slab().fd(), 4_096).unwrap();
    let of = |offset, bytes| Attachment { slab: 7, slot: 0, offset, bytes };
    assert!(slabs.borrow(&of(bytes, 0), &lender).is_ok());
    assert!(slabs.borrow(&of(4_096, 4_096), &lender).is_ok());
    // Who could say less than it pins would use up the memory of the other unseen.
    let beyond_chunks = [of(0, 4_097), of(4_095, 2), of(8_000, 8_000), of(bytes - 4_097, 4_097)];
    let beyond_slab =
        [of(bytes, 1), of(0, bytes + 1), of(u64::MAX, 1), of(1, u64::MAX), of(u64::MAX, u64::MAX)];
    for wrong in beyond_chunks.into_iter().chain(beyond_slab) {
        assert_eq!(slabs.borrow(&wrong, &lender).err(), Some(AttachmentError::Range(7)));
    }
    let refusal = slabs.insert(8, chunk.slab().fd(), 4_096).unwrap_err().to_string();
    assert!(refusal.starts_with("slab 8: it has"), "{refusal}");
    assert_eq!(slabs.mapped_bytes(), bytes);
}
