//! A global allocator that counts what the current thread allocates.
#![allow(
    unsafe_code,
    dead_code,
    reason = "a global allocator is unsafe to implement; each test uses its own part of what this one counts"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static OCTETS: Cell<usize> = const { Cell::new(0) };
    static FREED: Cell<usize> = const { Cell::new(0) };
}

/// What a piece of code allocated; freed memory is not taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allocated {
    pub(crate) calls: usize,
    pub(crate) octets: usize,
}

/// Runs `code` and tells what it allocated on this thread.
pub(crate) fn allocated_by<R>(code: impl FnOnce() -> R) -> (R, Allocated) {
    let before = (CALLS.get(), OCTETS.get());
    let result = code();
    (result, Allocated { calls: CALLS.get() - before.0, octets: OCTETS.get() - before.1 })
}

/// How often this thread has allocated.
pub(crate) fn allocations() -> usize {
    CALLS.get()
}

/// Octets that this thread has allocated and not freed; what another thread frees still counts.
pub(crate) fn octets_held() -> isize {
    OCTETS.get().cast_signed() - FREED.get().cast_signed()
}

fn count_freed(octets: usize) {
    let _ = FREED.try_with(|sum| sum.set(sum.get() + octets));
}

fn count(octets: usize) {
    // A thread that is ending has no counters any more, and nobody asks for them.
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
    let _ = OCTETS.try_with(|sum| sum.set(sum.get() + octets));
}

// SAFETY: every call goes to the system allocator with the arguments it came with.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count_freed(layout.size());
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        count_freed(layout.size());
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
