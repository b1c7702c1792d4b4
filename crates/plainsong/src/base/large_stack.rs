//! Where values are decoded that a thread's stack may have no room for. `take` may be called on a receive
//! thread, by a listener, and a peer that sends the first sample of a large type must not end the process.

use std::thread;

/// Larger values are decoded on a thread of their own, which takes some 50 µs: the stack of others may have
/// 2 MiB, and a value is there several times, in a debug build many times.
pub(crate) const VALUE_BYTES_MAX: usize = if cfg!(debug_assertions) { 32 << 10 } else { 128 << 10 };
/// So often a value may be on the stack, where types nest and nothing is optimized.
const COPIES_MAX: usize = 64;
/// For all else.
const STACK_BYTES: usize = 1 << 20;

/// Does `work`, which has values of `T` on the stack, or others of so many octets, where there is room for
/// them.
///
/// # Errors
/// [`NoStack`]
#[inline]
pub(crate) fn on_fitting_stack<T, R: Send>(
    value_bytes: usize,
    work: impl FnOnce() -> R + Send,
) -> Result<R, NoStack> {
    if const { size_of::<T>() > VALUE_BYTES_MAX } || value_bytes > VALUE_BYTES_MAX {
        on_large_stack(value_bytes.max(size_of::<T>()), work)
    } else {
        Ok(work())
    }
}

/// There is no memory for a stack of so many octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoStack(pub(crate) usize);

/// Does `work`, which has values of so many octets on the stack, on a thread of its own.
///
/// # Errors
/// [`NoStack`]
#[cold]
#[inline(never)]
pub(crate) fn on_large_stack<R: Send>(
    value_bytes: usize,
    work: impl FnOnce() -> R + Send,
) -> Result<R, NoStack> {
    let stack_bytes = value_bytes.saturating_mul(COPIES_MAX).saturating_add(STACK_BYTES);
    thread::scope(|scope| {
        let large = thread::Builder::new().name("large-values".to_owned()).stack_size(stack_bytes);
        let thread = large.spawn_scoped(scope, work).map_err(|_| NoStack(stack_bytes))?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELLS: usize = 1 << 20;

    #[test]
    fn large_values_have_room_and_what_has_none_is_told() {
        let last = on_fitting_stack::<[u64; CELLS], _>(0, || *[7_u64; CELLS].last().unwrap_or(&0));
        assert_eq!(last, Ok(7));
        assert_eq!(
            on_fitting_stack::<u64, _>(8, thread::current).map(|it| it.id()),
            Ok(thread::current().id())
        );
        let bytes = 1 << 50;
        assert_eq!(on_large_stack(bytes, || ()), Err(NoStack(bytes * COPIES_MAX + STACK_BYTES)));
    }
}
