//! Samples through memory that two processes share: the floor of every transport within a host.

// A mapping is memory that others change: there is no safe form of it.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::system::{futex_wait, futex_wake};

/// Octets before the data of a ring: how much was written and read, each in a cache line of its own.
const DATA: usize = 256;
const READ: usize = 128;
/// Octets before a sample: its size and instance.
const HEADER: usize = 8;
/// Instead of a size: the next sample is at the beginning of the ring.
const WRAP: u32 = u32::MAX;
/// Octets of a bell.
const BELL: usize = 4096;

/// Shared memory; unmapped when dropped.
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: what is in it is reached through atomics, or by the one owner of a ring's side.
unsafe impl Send for Mapping {}

impl Mapping {
    fn of(file: &File, length: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of an open file; the kernel chooses where.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at 0"))?;
        Ok(Self { start, length })
    }

    fn create(path: &Path, length: usize) -> io::Result<Self> {
        // It appears with its whole length.
        let unfinished = path.with_extension("new");
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&unfinished)?;
        file.set_len(length as u64)?;
        let mapping = Self::of(&file, length)?;
        std::fs::rename(&unfinished, path)?;
        Ok(mapping)
    }

    fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        if length <= DATA {
            return Err(io::Error::other("too short for a shared memory of this program"));
        }
        Self::of(&file, length)
    }

    fn word32(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset + 4 <= self.length && offset.is_multiple_of(4));
        // SAFETY: within the mapping, aligned, and only used as an atomic.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    fn word64(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= self.length && offset.is_multiple_of(8));
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    /// # Panics
    /// If the octets are not within the mapping.
    fn write(&mut self, offset: usize, octets: &[u8]) {
        assert!(offset.checked_add(octets.len()).is_some_and(|end| end <= self.length), "within the mapping");
        // SAFETY: within the mapping, as was just checked; the source is elsewhere.
        unsafe {
            std::ptr::copy_nonoverlapping(octets.as_ptr(), self.start.as_ptr().add(offset), octets.len());
        }
    }

    /// The octets, if they are within the mapping. The other side must leave them alone as long as they are
    /// used.
    fn octets(&self, offset: usize, length: usize) -> Option<&[u8]> {
        offset.checked_add(length).filter(|end| *end <= self.length)?;
        // SAFETY: within the mapping; a writer writes only to what has been read.
        Some(unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset), length) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this length, and not used again.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// The side of a ring that writes.
pub struct Producer {
    mapping: Mapping,
    capacity: u64,
    written: u64,
    /// How much had been read when it was last looked at.
    read: u64,
}

/// The side of a ring that reads.
pub struct Consumer {
    mapping: Mapping,
    capacity: u64,
    read: u64,
}

fn octets_of(size: usize) -> u64 {
    (HEADER + size).next_multiple_of(8) as u64
}

impl Producer {
    /// A new ring in a file, with room for two samples of `payload_max` octets and for `capacity` octets at
    /// least.
    ///
    /// # Errors
    /// Of the file system.
    pub fn create(path: &Path, capacity: usize, payload_max: usize) -> io::Result<Self> {
        let least = octets_of(payload_max).saturating_mul(4);
        let capacity = (capacity as u64).max(least).checked_next_power_of_two();
        let capacity =
            capacity.filter(|it| *it < 1 << 40).ok_or_else(|| io::Error::other("samples too large"))?;
        let mapping = Mapping::create(path, DATA + capacity as usize)?;
        Ok(Self { mapping, capacity, written: 0, read: 0 })
    }

    /// Writes a sample; false if there is no room now.
    pub fn push(&mut self, instance: u32, payload: &[u8]) -> bool {
        let needed = octets_of(payload.len());
        let mut place = self.written & (self.capacity - 1);
        let left = self.capacity - place;
        // A sample is never cut: what does not fit before the end begins at the beginning.
        let skipped = if left < needed { left } else { 0 };
        if self.written + skipped + needed > self.read + self.capacity {
            self.read = self.mapping.word64(READ).load(Ordering::Acquire);
            if self.written + skipped + needed > self.read + self.capacity {
                return false;
            }
        }
        if skipped > 0 {
            self.mapping.write(DATA + place as usize, &WRAP.to_le_bytes());
            place = 0;
        }
        let size = payload.len() as u32;
        self.mapping.write(DATA + place as usize, &size.to_le_bytes());
        self.mapping.write(DATA + place as usize + 4, &instance.to_le_bytes());
        self.mapping.write(DATA + place as usize + HEADER, payload);
        self.written += skipped + needed;
        self.mapping.word64(0).store(self.written, Ordering::Release);
        true
    }
}

impl Consumer {
    /// The other side of a ring.
    ///
    /// # Errors
    /// Of the file system, or if there is something else.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mapping = Mapping::open(path)?;
        let capacity = (mapping.length - DATA) as u64;
        if !capacity.is_power_of_two() {
            return Err(io::Error::other("no ring of this program"));
        }
        Ok(Self { mapping, capacity, read: 0 })
    }

    /// Whether there is nothing to read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mapping.word64(0).load(Ordering::SeqCst) == self.read
    }

    /// Reads a sample, in its place; false if there is none, or nothing that makes sense.
    pub fn pop(&mut self, look: &mut impl FnMut(u32, &[u8])) -> bool {
        let written = self.mapping.word64(0).load(Ordering::Acquire);
        if written == self.read {
            return false;
        }
        let mut place = (self.read & (self.capacity - 1)) as usize;
        if self.size_at(place) == Some(WRAP) {
            self.read += self.capacity - place as u64;
            place = 0;
        }
        let Some(size) = self.size_at(place) else { return false };
        let instance = self.mapping.word32(DATA + place + 4).load(Ordering::Relaxed);
        let Some(payload) = self.mapping.octets(DATA + place + HEADER, size as usize) else { return false };
        look(instance, payload);
        self.read += octets_of(size as usize);
        self.mapping.word64(READ).store(self.read, Ordering::Release);
        true
    }

    fn size_at(&self, place: usize) -> Option<u32> {
        (DATA + place + HEADER <= self.mapping.length)
            .then(|| self.mapping.word32(DATA + place).load(Ordering::Relaxed))
    }
}

/// Wakes a reader of any number of rings.
pub struct Bell {
    mapping: Mapping,
}

impl Bell {
    /// A new one in a file.
    ///
    /// # Errors
    /// Of the file system.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { mapping: Mapping::create(path, BELL)? })
    }

    /// One that another process has made.
    ///
    /// # Errors
    /// Of the file system, or if there is something else.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { mapping: Mapping::open(path)? })
    }

    /// Wakes whoever waits.
    pub fn ring(&self) {
        self.mapping.word32(0).fetch_add(1, Ordering::SeqCst);
        if self.mapping.word32(64).load(Ordering::SeqCst) != 0 {
            futex_wake(self.mapping.word32(0));
        }
    }

    /// Waits for a ring, unless there is something already.
    pub fn wait(&self, timeout: Duration, something: impl Fn() -> bool) {
        let rings = self.mapping.word32(0).load(Ordering::SeqCst);
        self.mapping.word32(64).store(1, Ordering::SeqCst);
        if !something() {
            futex_wait(self.mapping.word32(0), rings, timeout);
        }
        self.mapping.word32(64).store(0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_out_as_they_went_in_however_often_the_ring_goes_around() {
        let path = std::env::temp_dir().join(format!("plainsong-ring-{}", std::process::id()));
        let mut producer = Producer::create(&path, 1024, 100).expect("a ring");
        let mut consumer = Consumer::open(&path).expect("its other side");
        std::fs::remove_file(&path).expect("it stays mapped");
        let (mut next, mut seen) = (0_u32, 0_u32);
        let content = |number: u32| vec![number as u8; (number % 101) as usize];
        while seen < 5000 {
            while producer.push(next, &content(next)) {
                next += 1;
            }
            // Some stay, so that the two sides meet everywhere.
            while seen + 2 < next
                && consumer.pop(&mut |instance, payload| assert_eq!(payload, content(instance)))
            {
                seen += 1;
            }
            assert!(!consumer.is_empty());
        }
    }

    #[test]
    fn a_bell_wakes_another_thread() {
        let path = std::env::temp_dir().join(format!("plainsong-bell-{}", std::process::id()));
        let bell = Bell::create(&path).expect("a bell");
        let other = Bell::open(&path).expect("the same");
        std::fs::remove_file(&path).expect("it stays mapped");
        let done = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let done = &done;
            scope.spawn(move || {
                done.store(1, Ordering::SeqCst);
                other.ring();
            });
            // Either it is there before the wait, or the bell ends the wait long before its time.
            let begin = std::time::Instant::now();
            while done.load(Ordering::SeqCst) == 0 {
                bell.wait(Duration::from_secs(60), || done.load(Ordering::SeqCst) == 1);
            }
            assert!(begin.elapsed() < Duration::from_secs(30));
        });
    }
}
