//! Chunks and slabs: who has what, and what goes back.

use std::collections::BTreeSet;

use super::*;

const MIB: u64 = 1 << 20;

fn at(seconds: u64) -> Instant {
    Instant(1 + seconds * 1_000_000_000)
}

fn pool(bytes_max: u64) -> Pool {
    Pool::new(bytes_max, Pages::Usual)
}

#[test]
#[cfg_attr(miri, ignore = "many numbers")]
fn sizes_are_pages_and_waste_a_fifth_at_most() {
    assert_eq!(chunk_bytes(0), Some(4_096));
    assert_eq!(chunk_bytes(4_096), Some(4_096));
    assert_eq!(chunk_bytes(4_097), Some(8_192));
    assert_eq!(chunk_bytes(12_289), Some(16_384));
    assert_eq!(chunk_bytes(1 << 20), Some(1 << 20));
    assert_eq!(chunk_bytes((1 << 20) + 1), Some((1 << 20) + (256 << 10)));
    for bytes in (4_096..40_000_000).step_by(39_979) {
        let chunk = chunk_bytes(bytes).unwrap();
        assert!(chunk >= bytes && chunk.is_multiple_of(4_096), "{bytes}");
        assert!(chunk - bytes < (bytes / 4).max(4_096), "{bytes}");
        assert_eq!(chunk_bytes(chunk), Some(chunk));
    }
    assert_eq!(chunk_bytes(usize::MAX), None);
    assert_eq!(chunk_bytes(isize::MAX as usize), None);
}

#[test]
fn no_two_chunks_overlap_and_what_is_dropped_is_used_again() {
    let pool = pool(4 * MIB);
    let mut chunks = Vec::new();
    let mut places = BTreeSet::new();
    for number in 0..if cfg!(miri) { 6 } else { 100_u8 } {
        let mut chunk = pool.allocate(4_096 * (1 + usize::from(number) % 3)).unwrap();
        chunk.bytes_mut().fill(number);
        let attachment = chunk.attachment(&(0..1), 0);
        assert!(places.insert((attachment.slab, attachment.offset)));
        chunks.push(chunk);
    }
    for (number, chunk) in chunks.iter().enumerate() {
        assert!(chunk.bytes().iter().all(|octet| usize::from(*octet) == number));
    }
    let bytes = pool.bytes();
    drop(chunks);
    for _ in 0..if cfg!(miri) { 10 } else { 1_000 } {
        let chunk = pool.allocate(4_096).unwrap();
        let attachment = chunk.attachment(&(0..1), 0);
        assert!(places.contains(&(attachment.slab, attachment.offset)));
    }
    assert_eq!(pool.bytes(), bytes);
    assert_eq!(pool.retired(), 0);
}

#[test]
fn an_exhausted_pool_names_its_limit_and_has_room_again_when_chunks_are_dropped() {
    let pool = pool(MIB);
    let mut chunks: Vec<Chunk> = std::iter::from_fn(|| pool.allocate(65_536).ok()).collect();
    assert_eq!(chunks.len(), 16);
    assert_eq!(pool.bytes(), MIB);
    let refusal = pool.allocate(65_536).unwrap_err().to_string();
    assert!(refusal.starts_with("the memory that is shared has 1048576 octets at most"), "{refusal}");
    assert!(refusal.contains("memory_pool_bytes_max"), "{refusal}");
    assert!(pool.allocate(4_096).is_err());
    assert!(pool.allocate(usize::MAX).is_err());
    chunks.pop();
    chunks.push(pool.allocate(65_536).unwrap());
    // Another size gets the room of slabs that nobody uses, and no other.
    assert!(pool.allocate(1 << 20).is_err());
    chunks.clear();
    drop(pool.allocate(1 << 20).unwrap());
    assert!(pool.retired() > 0);
    assert!(Pool::new(0, Pages::Usual).allocate(1).is_err());
}

#[test]
fn slabs_that_nobody_uses_are_unmapped_after_a_while() {
    let pool = pool(64 * MIB);
    let unused = Duration::from_secs(10);
    let kept = pool.allocate(4_096).unwrap();
    let large = pool.allocate(4 << 20).unwrap();
    let (small_id, large_id) = (kept.slab().id(), large.slab().id());
    assert!(!pool.trim(at(0), unused));
    drop(large);
    assert!(!pool.trim(at(100), unused), "it was not seen unused before");
    assert!(!pool.trim(at(109), unused));
    drop(pool.allocate(4 << 20).unwrap());
    assert!(!pool.trim(at(111), unused), "it was used meanwhile");
    assert!(!pool.trim(at(120), unused));
    assert!(pool.trim(at(121), unused));
    let is_there = pool.is_there();
    assert!(is_there(small_id) && !is_there(large_id));
    assert_eq!(pool.retired(), 1);
    let again = pool.allocate(4 << 20).unwrap();
    assert_ne!(again.slab().id(), large_id);
}

#[test]
fn a_chunk_outlives_its_pool() {
    let pool = pool(MIB);
    let mut chunk = pool.allocate(5_000).unwrap();
    drop(pool);
    chunk.bytes_mut().fill(7);
    let shared = Arc::new(chunk);
    let payload =
        plainsong_proto::payload::Payload::from_region(Arc::clone(&shared) as Arc<dyn Region>, 0..5_000);
    let (region, range) = payload.region().unwrap();
    let found = region.as_any().downcast_ref::<Chunk>().unwrap();
    assert_eq!(found.attachment(&range, 3).bytes, 5_000);
    assert_eq!(payload.len(), 5_000);
}

#[test]
#[cfg_attr(miri, ignore = "many chunks")]
fn slabs_grow_with_their_use_and_few_are_made() {
    let pool = pool(64 * MIB);
    let chunks: Vec<Chunk> = (0..4_000).map(|_| pool.allocate(4_096).unwrap()).collect();
    let slabs: BTreeSet<u32> = chunks.iter().map(|chunk| chunk.slab().id()).collect();
    assert!(slabs.len() <= 7, "{}", slabs.len());
    assert!(pool.bytes() <= 2 * 4_000 * 4_096);
}

#[test]
fn threads_take_and_give_back_at_once() {
    let pool = pool(8 * MIB);
    let rounds = if cfg!(miri) { 20 } else { 20_000 };
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let pool = &pool;
            scope.spawn(move || {
                let mut chunks = Vec::new();
                for round in 0..rounds {
                    let mut chunk = pool.allocate(4_096 + usize::from(thread & 1) * 4_096).unwrap();
                    chunk.bytes_mut()[..16].fill(thread);
                    chunks.push(chunk);
                    if round % 7 == 6 {
                        let all = chunks.drain(..);
                        all.for_each(|chunk| assert_eq!(chunk.bytes()[..16], [thread; 16]));
                    }
                }
            });
        }
    });
    assert!(pool.trim(at(1), Duration::ZERO));
    assert_eq!(pool.bytes(), 0);
}

#[test]
fn what_is_kept_leaves_half_of_the_pool_whatever_slabs_it_is_in() {
    let pool = pool(4 * MIB);
    let (mut kept, mut slabs) = (Vec::new(), BTreeSet::new());
    // Each size takes what it gets; one chunk of each slab stays.
    for bytes in [4_096, 8_192, 16_384, 65_536, 262_144] {
        let all: Vec<Chunk> = std::iter::from_fn(|| pool.allocate_to_keep(bytes).ok()).collect();
        kept.extend(all.into_iter().filter(|chunk| slabs.insert(chunk.slab().id())));
        let few = slabs.len();
        assert!(few > 0 && few < SLABS_MAX);
    }
    let refusal = pool.allocate_to_keep(1 << 20).unwrap_err().to_string();
    assert!(refusal.starts_with("loans and histories have all that they may"), "{refusal}");
    assert!(refusal.contains("half of 4194304 octets"), "{refusal}");
    assert!(kept.iter().map(Chunk::capacity).sum::<usize>() < 1 << 20, "chunks alone would leave room");
    for bytes in [4_096, 65_536, 1 << 20, 2 << 20] {
        drop(pool.allocate(bytes).unwrap());
    }
    kept.clear();
    drop(pool.allocate_to_keep(2 << 20).unwrap());
}

#[test]
fn a_size_that_takes_little_leaves_room_for_others() {
    let pool = pool(16 * MIB);
    // The second half of the last slab would not be used for long.
    let _few: Vec<Chunk> = (0..5).map(|_| pool.allocate_to_keep(1_280 << 10).unwrap()).collect();
    drop(pool.allocate_to_keep(1 << 20).unwrap());
}

#[test]
fn what_can_never_be_lent_is_refused_with_what_has_to_change() {
    let pool = pool(4 * MIB);
    for bytes in [(2 << 20) + 1, 3 << 20, isize::MAX as usize, usize::MAX] {
        let refusal = pool.allocate_to_keep(bytes).unwrap_err().to_string();
        assert!(refusal.starts_with("2097152 octets at most"), "{refusal}");
        assert!(refusal.contains("half of 4194304: raise memory_pool_bytes_max"), "{refusal}");
        assert!(!refusal.contains("let go"), "that would not help: {refusal}");
    }
    drop(pool.allocate_to_keep(2 << 20).unwrap());
}

#[test]
fn who_takes_at_the_same_time_does_not_get_more_than_half() {
    let rounds = if cfg!(miri) { 1 } else { 50 };
    for _ in 0..rounds {
        let pool = pool(MIB);
        let start = std::sync::Barrier::new(8);
        let kept: usize = std::thread::scope(|scope| {
            let take = || {
                start.wait();
                let all: Vec<Chunk> = std::iter::from_fn(|| pool.allocate_to_keep(16_384).ok()).collect();
                start.wait();
                all.iter().map(Chunk::capacity).sum::<usize>()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(kept, 1 << 19);
    }
}

/// How many chunks a peer is lent that never gives any back, and what it may keep in the end.
fn lend_all(pool: &Pool, lent: &mut Vec<Chunk>) -> (u64, u64) {
    let (mut has, mut share) = (0, 0);
    while let Ok(chunk) = pool.allocate(65_536) {
        let Some(kept) = chunk.lend(has * 65_536) else { break };
        (has, share) = (has + 1, kept / 65_536);
        lent.push(chunk);
    }
    (has, share)
}

#[test]
fn peers_that_give_nothing_back_leave_some_for_the_next() {
    let pool = pool(8 * MIB);
    let mut lent = Vec::new();
    let all: Vec<(u64, u64)> = (0..6).map(|_| lend_all(&pool, &mut lent)).collect();
    // Half of what is left of half of the pool, each; and a third of that is what they may keep.
    assert_eq!(all, [(32, 10), (16, 5), (8, 2), (4, 1), (2, 0), (1, 0)]);
    lent.iter().for_each(Chunk::take_back);
    lent.clear();
    assert_eq!(lend_all(&pool, &mut lent), (32, 10));
    // What many have is there once, and is no reason to give others less.
    let has = 20 * 65_536;
    assert!((0..100).all(|_| lent.iter().take(8).all(|chunk| chunk.lend(has).is_some())));
    for _ in 0..100 {
        lent.iter().take(8).for_each(Chunk::take_back);
    }
    assert!(pool.allocate(65_536).unwrap().lend(32 * 65_536).is_none());
}

#[test]
fn what_is_longer_than_peers_may_have_is_lent_while_nothing_else_is() {
    let pool = pool(8 * MIB);
    let long = pool.allocate(6 << 20).unwrap();
    assert_eq!((long.lend(0), long.lend(0)), (Some(0), Some(0)));
    let short = pool.allocate(4_096).unwrap();
    assert_eq!(short.lend(0), None);
    long.take_back();
    long.take_back();
    assert!(short.lend(0).is_some());
    assert_eq!(long.lend(0), None);
}
