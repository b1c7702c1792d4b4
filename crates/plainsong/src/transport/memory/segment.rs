//! Memory that processes share: anonymous, of a size that is sealed, written to by the one that made it and
//! read by others.
//!
//! Nobody but its maker can write to a segment: the seal `F_SEAL_FUTURE_WRITE` lets the maker's own mapping
//! alone, and a descriptor that was passed on can be mapped for reading only. So what a process writes is
//! never changed by another one, and what it reads of a peer may change at any time and be anything. Words
//! are therefore read and written as atomics, octets copied word by word, and nothing hands out a reference
//! to what a peer may change, but for the payloads of chunks ([`PeerSegment::range`]).
//!
//! No access of a peer's segment can fail: it cannot shrink, nothing can be punched out of it, and all of it
//! was there when it was mapped.

#![allow(unsafe_code, reason = "memory that processes share has no safe form")]

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use thiserror::Error;

use crate::base::fork;

/// As `/proc/PID/maps` shows it.
const NAME: &CStr = c"plainsong";
/// What a reader depends on: the size stays, nothing is punched out, no one else writes, and no seal follows.
const SEALS: libc::c_int =
    libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_FUTURE_WRITE | libc::F_SEAL_SEAL;
const WORD: usize = size_of::<u64>();
/// The unit of `st_blocks`.
const BLOCK_BYTES: u64 = 512;

/// The pages of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pages {
    #[default]
    Usual,
    /// Of those that the administrator has set aside (`vm.nr_hugepages`), if enough of them are left and the
    /// size is a multiple of theirs.
    Huge,
}

/// Why a peer's descriptor was refused.
#[derive(Debug, Error)]
pub(crate) enum SegmentError {
    #[error("its kind and size cannot be asked for: {0}")]
    Unknown(io::Error),
    #[error("it is no sealed memory")]
    NoMemory,
    #[error("it lacks seals: 0x{found:x} of 0x{:x}", SEALS)]
    Unsealed { found: libc::c_int },
    #[error("it has {bytes} octets, between {least} and {most} are allowed")]
    Size { bytes: u64, least: usize, most: usize },
    #[error("only {there} of its {bytes} octets are there")]
    Sparse { there: u64, bytes: u64 },
    #[error("it cannot be mapped: {0}")]
    Map(io::Error),
}

/// Octets that other processes may see, and that one may change. An offset beyond the end, or a word that is
/// not aligned, is a mistake of the caller: it panics. What a peer tells is never an offset before it was
/// checked.
pub(crate) trait Memory {
    fn bytes(&self) -> usize;

    /// `Relaxed`.
    fn load32(&self, offset: usize) -> u32;

    /// `Relaxed`.
    fn load64(&self, offset: usize) -> u64;

    /// `Acquire`: what was written before the word was released is seen afterwards.
    fn acquire64(&self, offset: usize) -> u64 {
        let word = self.load64(offset);
        // Loads of read-only memory are relaxed ones, by the rules of the language.
        fence(Ordering::Acquire);
        word
    }

    /// Appends so many octets from `offset` on, as they are at some time each.
    fn copy_out(&self, offset: usize, bytes: usize, into: &mut Vec<u8>);
}

/// Memory of this process's own, which nobody else writes to. Who writes where is settled by who owns which
/// end of what is in it; two who wrote to one place at a time would spoil each other's octets.
pub(crate) trait OwnMemory: Memory {
    /// `Relaxed`.
    fn store32(&self, offset: usize, word: u32);

    /// `Relaxed`.
    fn store64(&self, offset: usize, word: u64);

    /// `Release`: who acquires the word sees what was written before.
    fn release64(&self, offset: usize, word: u64);

    fn copy_in(&self, offset: usize, octets: &[u8]);
}

/// Where octets are. They are there as long as the value is, and begin at an address that words may have.
struct Octets {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: they are reached as atomics only, or through who owns a chunk.
unsafe impl Send for Octets {}
// SAFETY: as above.
unsafe impl Sync for Octets {}

impl Octets {
    /// # Panics
    /// If they are not all there.
    #[inline]
    fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        assert!(offset.checked_add(bytes).is_some_and(|end| end <= self.bytes), "within the memory");
        // SAFETY: not beyond the end, as was just checked.
        unsafe { self.start.as_ptr().add(offset) }
    }

    #[inline]
    fn word32(&self, offset: usize) -> &AtomicU32 {
        let word = self.at(offset, size_of::<u32>());
        assert!(offset.is_multiple_of(align_of::<AtomicU32>()), "a word is aligned");
        // SAFETY: there and aligned, as was just checked; words are used as atomics only.
        unsafe { AtomicU32::from_ptr(word.cast()) }
    }

    #[inline]
    fn word64(&self, offset: usize) -> &AtomicU64 {
        let word = self.at(offset, size_of::<u64>());
        assert!(offset.is_multiple_of(align_of::<AtomicU64>()), "a word is aligned");
        // SAFETY: there and aligned, as was just checked; words are used as atomics only.
        unsafe { AtomicU64::from_ptr(word.cast()) }
    }

    /// How many octets are in the word in which the first of them is, if it is none of their own; and how
    /// many words of their own follow.
    #[inline]
    fn split(offset: usize, bytes: usize) -> (usize, usize) {
        let before = (offset.next_multiple_of(WORD) - offset).min(bytes);
        (before, (bytes - before) / WORD)
    }

    /// So many words, the first of which is at `offset`.
    #[inline]
    fn words(&self, offset: usize, count: usize) -> &[AtomicU64] {
        let first = self.at(offset, count * WORD);
        if count == 0 {
            return &[];
        }
        assert!(offset.is_multiple_of(WORD), "a word is aligned");
        // SAFETY: there and aligned, as was just checked, as long as `self` is; words are used as atomics
        // only.
        unsafe { std::slice::from_raw_parts(first.cast(), count) }
    }

    #[inline]
    fn copy_out(&self, offset: usize, bytes: usize, into: &mut Vec<u8>) {
        self.at(offset, bytes);
        into.reserve(bytes);
        let (before, words) = Self::split(offset, bytes);
        let part = |at: usize, bytes: usize| {
            let octets = self.word64(at / WORD * WORD).load(Ordering::Relaxed).to_ne_bytes();
            octets.into_iter().skip(at % WORD).take(bytes)
        };
        if before > 0 {
            into.extend(part(offset, before));
        }
        let middle = offset + before;
        let whole = self.words(middle, words).iter();
        into.extend(whole.flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()));
        let (last, left) = (middle + words * WORD, bytes - before - words * WORD);
        if left > 0 {
            into.extend(part(last, left));
        }
    }

    /// Words of which a part stays what it is are read and written: nobody else writes there.
    #[inline]
    fn copy_in(&self, offset: usize, octets: &[u8]) {
        self.at(offset, octets.len());
        let (before, words) = Self::split(offset, octets.len());
        let (first, rest) = octets.split_at(before);
        let (middle, last) = rest.split_at(words * WORD);
        let part = |at: usize, octets: &[u8]| {
            let word = self.word64(at / WORD * WORD);
            let mut all = word.load(Ordering::Relaxed).to_ne_bytes();
            all.iter_mut().skip(at % WORD).zip(octets).for_each(|(place, octet)| *place = *octet);
            word.store(u64::from_ne_bytes(all), Ordering::Relaxed);
        };
        if !first.is_empty() {
            part(offset, first);
        }
        let at = offset + before;
        for (word, octets) in self.words(at, words).iter().zip(middle.as_chunks::<WORD>().0) {
            word.store(u64::from_ne_bytes(*octets), Ordering::Relaxed);
        }
        if !last.is_empty() {
            part(at + words * WORD, last);
        }
    }
}

/// What has octets of that kind.
trait HasOctets {
    fn octets(&self) -> &Octets;
}

/// What has octets that may be written to.
trait HasOwnOctets: HasOctets {}

impl<T: HasOctets> Memory for T {
    fn bytes(&self) -> usize {
        self.octets().bytes
    }

    #[inline]
    fn load32(&self, offset: usize) -> u32 {
        self.octets().word32(offset).load(Ordering::Relaxed)
    }

    #[inline]
    fn load64(&self, offset: usize) -> u64 {
        self.octets().word64(offset).load(Ordering::Relaxed)
    }

    #[inline]
    fn copy_out(&self, offset: usize, bytes: usize, into: &mut Vec<u8>) {
        self.octets().copy_out(offset, bytes, into);
    }
}

impl<T: HasOwnOctets> OwnMemory for T {
    #[inline]
    fn store32(&self, offset: usize, word: u32) {
        self.octets().word32(offset).store(word, Ordering::Relaxed);
    }

    #[inline]
    fn store64(&self, offset: usize, word: u64) {
        self.octets().word64(offset).store(word, Ordering::Relaxed);
    }

    #[inline]
    fn release64(&self, offset: usize, word: u64) {
        self.octets().word64(offset).store(word, Ordering::Release);
    }

    #[inline]
    fn copy_in(&self, offset: usize, octets: &[u8]) {
        self.octets().copy_in(offset, octets);
    }
}

/// A mapping; it ends with the value, and no child of a fork has it.
struct Mapping {
    octets: Octets,
    /// In which process it was made: see [`fork`].
    generation: u32,
}

impl Mapping {
    fn new(fd: BorrowedFd<'_>, bytes: usize, protection: libc::c_int) -> io::Result<Self> {
        // Miri has memory of one process.
        let (shared, none) = (libc::MAP_SHARED, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let (flags, fd) = if cfg!(miri) { (none, -1) } else { (shared, fd.as_raw_fd()) };
        // SAFETY: a new mapping of an open file, where the kernel likes it.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at 0"))?;
        let mapping = Self { octets: Octets { start, bytes }, generation: fork::generation() };
        if !cfg!(miri) {
            // SAFETY: the mapping that was just made.
            check(unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_DONTFORK) })?;
        }
        Ok(mapping)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // A forked process does not have it, and may have something else there.
        if self.generation != fork::generation() {
            return;
        }
        // SAFETY: mapped with these values, and used by nobody any more: references to what is in it do not
        // live longer than it.
        unsafe { libc::munmap(self.octets.start.as_ptr().cast(), self.octets.bytes) };
    }
}

/// Memory of this process that others may read.
pub(crate) struct Segment {
    fd: OwnedFd,
    mapping: Mapping,
}

impl Segment {
    /// So many octets, all zero, all there.
    ///
    /// # Errors
    /// There are no descriptors or no address space for it, it is more than half of the
    /// memory of this host, or files may not be as large (`RLIMIT_FSIZE`).
    pub(crate) fn create(bytes: usize, pages: Pages) -> io::Result<Self> {
        let length = libc::off_t::try_from(bytes).ok().filter(|length| *length > 0);
        let length = length.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        // Who exceeds these is not told so by an error but killed.
        if file_bytes_max() < length as u64 {
            return Err(io::Error::from_raw_os_error(libc::EFBIG));
        }
        if memory_bytes() / 2 < length as u64 {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        let fd = match reserved(length, pages) {
            Err(_) if pages == Pages::Huge => reserved(length, Pages::Usual)?,
            other => other?,
        };
        let mapping = Mapping::new(fd.as_fd(), bytes, libc::PROT_READ | libc::PROT_WRITE)?;
        seal(&fd)?;
        Ok(Self { fd, mapping })
    }

    /// What others map: see [`PeerSegment::map`].
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Octets that nobody in this process writes to while they are borrowed.
    ///
    /// # Safety
    /// So it has to be.
    pub(super) unsafe fn range(&self, offset: usize, bytes: usize) -> &[u8] {
        // SAFETY: there, as `at` finds, as long as `self` is, and unchanged, as the caller promises: no other
        // process can write to it.
        unsafe { std::slice::from_raw_parts(self.mapping.octets.at(offset, bytes), bytes) }
    }

    /// Octets that nobody else in this process reads or writes while they are borrowed.
    ///
    /// # Safety
    /// So it has to be.
    #[expect(clippy::mut_from_ref, reason = "the caller owns a part of it")]
    pub(super) unsafe fn range_mut(&self, offset: usize, bytes: usize) -> &mut [u8] {
        // SAFETY: there, as `at` finds, as long as `self` is, and borrowed by nobody else, as the caller
        // promises. Other processes can do no more than read.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.octets.at(offset, bytes), bytes) }
    }
}

impl HasOctets for Segment {
    fn octets(&self) -> &Octets {
        &self.mapping.octets
    }
}

impl HasOwnOctets for Segment {}

/// Memory of a peer, to read.
pub(crate) struct PeerSegment(Mapping);

impl PeerSegment {
    /// Maps what a peer says is a segment.
    ///
    /// # Errors
    /// It is not, or its size is none of `bytes`.
    pub(crate) fn map(fd: BorrowedFd<'_>, bytes: RangeInclusive<usize>) -> Result<Self, SegmentError> {
        // SAFETY: a plain system call. It fails for what knows no seals.
        let found = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) };
        if found < 0 {
            return Err(SegmentError::NoMemory);
        }
        if found & SEALS != SEALS {
            return Err(SegmentError::Unsealed { found });
        }
        // What is asked from now on cannot change.
        let (length, there) = size(fd).map_err(SegmentError::Unknown)?;
        let fits = usize::try_from(length).ok().filter(|length| bytes.contains(length));
        let Some(length) = fits else {
            return Err(SegmentError::Size { bytes: length, least: *bytes.start(), most: *bytes.end() });
        };
        // Reading a hole would take memory of this process, and kill it where there is none.
        if there < length as u64 {
            return Err(SegmentError::Sparse { there, bytes: length as u64 });
        }
        Mapping::new(fd, length, libc::PROT_READ).map(Self).map_err(SegmentError::Map)
    }

    /// Octets in place, if they are all there. An honest peer does not write to what it has lent. If another
    /// one does, their reader finds values that nobody has written, as in any message of a hostile peer.
    pub(crate) fn range(&self, offset: usize, bytes: usize) -> Option<&[u8]> {
        offset.checked_add(bytes).filter(|end| *end <= self.0.octets.bytes)?;
        // SAFETY: there as long as `self` is. This process has no mapping through which they could be
        // written. That a hostile peer may write to them all the same is the price of reading in place:
        // readers check each value that they act upon after they have copied it, and what they read twice
        // they do not trust to be the same.
        Some(unsafe { std::slice::from_raw_parts(self.0.octets.at(offset, bytes), bytes) })
    }
}

impl HasOctets for PeerSegment {
    fn octets(&self) -> &Octets {
        &self.0.octets
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A file that nothing names, all of whose octets are there.
#[cfg(not(miri))]
fn reserved(bytes: libc::off_t, pages: Pages) -> io::Result<OwnedFd> {
    let fd = anonymous(pages)?;
    // SAFETY: a plain system call with a descriptor of ours.
    check(unsafe { libc::ftruncate(fd.as_raw_fd(), bytes) })?;
    // Memory that is not there is an error now, and no signal later.
    // SAFETY: as above.
    check(unsafe { libc::fallocate(fd.as_raw_fd(), 0, 0, bytes) })?;
    Ok(fd)
}

#[cfg(not(miri))]
fn seal(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: a plain system call with a descriptor of ours.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, SEALS) })
}

/// Any descriptor: memory is what was mapped.
#[cfg(miri)]
fn reserved(_: libc::off_t, _: Pages) -> io::Result<OwnedFd> {
    // SAFETY: a plain system call.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    check(fd)?;
    // SAFETY: just made, and owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(miri)]
fn seal(_: &OwnedFd) -> io::Result<()> {
    Ok(())
}

/// A new file that nothing names.
#[cfg_attr(miri, expect(dead_code, reason = "Miri has none"))]
fn anonymous(pages: Pages) -> io::Result<OwnedFd> {
    let huge = if pages == Pages::Huge { libc::MFD_HUGETLB } else { 0 };
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | huge;
    // SAFETY: a name that ends with zero, and flags.
    let create = |flags| unsafe { libc::memfd_create(NAME.as_ptr(), flags) };
    let fd = match create(flags | libc::MFD_NOEXEC_SEAL) {
        // Before Linux 6.3.
        -1 if io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) => create(flags),
        fd => fd,
    };
    check(fd)?;
    // SAFETY: just made, and owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// How long a file is, and how many octets of it are there.
fn size(fd: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel writes into a local variable.
    check(unsafe { libc::fstat(fd.as_raw_fd(), found.as_mut_ptr()) })?;
    // SAFETY: written to, since the call succeeded.
    let found = unsafe { found.assume_init() };
    let unsigned = |number| u64::try_from(number).unwrap_or(0);
    Ok((unsigned(found.st_size), unsigned(found.st_blocks).saturating_mul(BLOCK_BYTES)))
}

/// Octets of the longest file that this process may make.
fn file_bytes_max() -> u64 {
    if cfg!(miri) {
        return u64::MAX;
    }
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes into a local variable.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    if result < 0 { u64::MAX } else { limit.rlim_cur }
}

/// Octets of memory that this host has; 0 if it does not say.
fn memory_bytes() -> u64 {
    if cfg!(miri) {
        return u64::MAX;
    }
    let mut found = MaybeUninit::<libc::sysinfo>::uninit();
    // SAFETY: the kernel writes into a local variable.
    if unsafe { libc::sysinfo(found.as_mut_ptr()) } < 0 {
        return 0;
    }
    // SAFETY: written to, since the call succeeded.
    let found = unsafe { found.assume_init() };
    found.totalram.saturating_mul(found.mem_unit.into())
}

/// Memory on the heap, in the place of a segment and of what a peer has mapped of it: it needs no kernel, so
/// that Miri can watch.
#[cfg(any(test, feature = "fuzz"))]
pub(super) struct HeapMemory(Octets);

#[cfg(any(test, feature = "fuzz"))]
impl HeapMemory {
    pub(super) fn new(bytes: usize) -> Self {
        let words: Box<[u64]> = vec![0; bytes / 8].into();
        let start = NonNull::from(Box::leak(words)).cast();
        Self(Octets { start, bytes: bytes / 8 * 8 })
    }
}

#[cfg(any(test, feature = "fuzz"))]
impl Drop for HeapMemory {
    fn drop(&mut self) {
        let words = ptr::slice_from_raw_parts_mut(self.0.start.as_ptr().cast::<u64>(), self.0.bytes / 8);
        // SAFETY: what `new` has taken out of its box.
        drop(unsafe { Box::from_raw(words) });
    }
}

#[cfg(any(test, feature = "fuzz"))]
impl HasOctets for HeapMemory {
    fn octets(&self) -> &Octets {
        &self.0
    }
}

#[cfg(any(test, feature = "fuzz"))]
impl HasOwnOctets for HeapMemory {}

#[cfg(test)]
mod tests;
