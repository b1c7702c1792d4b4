//! A file that loses at random what was not synced, as a disk does without power: for tests alone.

use std::fmt;
#[cfg(feature = "power-loss")]
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex};

use redb::StorageBackend;
#[cfg(feature = "power-loss")]
use redb::backends::FileBackend;

use crate::base::locks::lock;

/// So long a sync takes at most, so that much is not synced when power is lost.
#[cfg(feature = "power-loss")]
const SYNC_US_MAX: u64 = 10_000;
/// Disks write so much at once, or not at all.
const SECTOR_BYTES: usize = 512;

/// Where octets stay.
pub(super) trait Medium: Send + 'static {
    fn set_len(&mut self, bytes: usize) -> io::Result<()>;
    fn write(&mut self, offset: usize, octets: &[u8]) -> io::Result<()>;
}

impl Medium for Vec<u8> {
    fn set_len(&mut self, bytes: usize) -> io::Result<()> {
        self.resize(bytes, 0);
        Ok(())
    }

    fn write(&mut self, offset: usize, octets: &[u8]) -> io::Result<()> {
        let end = offset + octets.len();
        if self.len() < end {
            self.resize(end, 0);
        }
        self[offset..end].copy_from_slice(octets);
        Ok(())
    }
}

#[cfg(feature = "power-loss")]
impl Medium for File {
    fn set_len(&mut self, bytes: usize) -> io::Result<()> {
        Self::set_len(self, bytes as u64)
    }

    fn write(&mut self, offset: usize, octets: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, octets, offset as u64)
    }
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// The power is lost at this operation.
    pub(super) loses_power_at: Option<u64>,
    /// No more than so many octets find room.
    pub(super) room_bytes: Option<usize>,
    /// This sync fails; what was to be synced is forgotten, as kernels do.
    pub(super) fails_sync: Option<u64>,
}

enum Change {
    Length(usize),
    Octets(usize, Vec<u8>),
}

/// The file, as all who have it see it.
pub(super) struct State<M> {
    /// What a loss of power leaves.
    pub(super) medium: M,
    current: Vec<u8>,
    unsynced: Vec<Change>,
    random: u64,
    /// Whether what is not synced may reach the medium at any time.
    is_lossy: bool,
    pub(super) faults: Faults,
    pub(super) operations: u64,
    pub(super) written_bytes: usize,
    pub(super) syncs: u64,
    is_off: bool,
}

/// A file of redb.
pub(super) struct Lossy<M>(pub(super) Arc<Mutex<State<M>>>);

impl<M: Medium> Lossy<M> {
    pub(super) fn new(medium: M, current: Vec<u8>, seed: Option<u64>, faults: Faults) -> Self {
        Self(Arc::new(Mutex::new(State {
            medium,
            current,
            unsynced: Vec::new(),
            random: seed.unwrap_or(0).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            is_lossy: seed.is_some(),
            faults,
            operations: 0,
            written_bytes: 0,
            syncs: 0,
            is_off: false,
        })))
    }
}

/// A file, which loses what was not synced if a variable says so.
#[cfg(feature = "power-loss")]
pub(super) fn backend(mut file: File) -> io::Result<Backend> {
    use std::io::Read;
    let Some(seed) = crate::base::config::power_loss_seed() else {
        return FileBackend::new(file).map(Backend::File).map_err(io::Error::other);
    };
    let mut current = Vec::new();
    file.read_to_end(&mut current)?;
    let seed = seed ^ u64::from(std::process::id()) << 32 ^ current.len() as u64;
    Ok(Backend::Lossy(Lossy::new(file, current, Some(seed), Faults::default())))
}

/// A file of a process that may lose power.
#[cfg(feature = "power-loss")]
#[derive(Debug)]
pub(super) enum Backend {
    File(FileBackend),
    Lossy(Lossy<File>),
}

#[cfg(feature = "power-loss")]
impl Backend {
    fn inner(&self) -> &dyn StorageBackend {
        match self {
            Self::File(file) => file,
            Self::Lossy(file) => file,
        }
    }
}

#[cfg(feature = "power-loss")]
impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.inner().len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner().read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner().set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        if let Self::Lossy(file) = self {
            let pause_us = lock(&file.0).below(SYNC_US_MAX);
            std::thread::sleep(std::time::Duration::from_micros(pause_us));
        }
        self.inner().sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner().write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.inner().close()
    }
}

impl<M: Medium> State<M> {
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % bound
    }

    fn begin(&mut self) -> io::Result<()> {
        self.operations += 1;
        if self.faults.loses_power_at.is_some_and(|at| self.operations >= at) && !self.is_off {
            self.lose_power()?;
        }
        if self.is_off { Err(io::Error::other("there is no power")) } else { Ok(()) }
    }

    /// Some of what is not synced stays, in part; the rest is gone.
    pub(super) fn lose_power(&mut self) -> io::Result<()> {
        self.is_off = true;
        for change in std::mem::take(&mut self.unsynced) {
            self.apply_some(&change)?;
        }
        Ok(())
    }

    /// A change reaches the medium whole, in some of its sectors, or not at all.
    fn apply_some(&mut self, change: &Change) -> io::Result<()> {
        match (change, self.below(3)) {
            (_, 0) => Ok(()),
            (Change::Length(bytes), _) => self.medium.set_len(*bytes),
            (Change::Octets(offset, octets), 1) => self.medium.write(*offset, octets),
            (Change::Octets(offset, octets), _) => {
                for (index, sector) in octets.chunks(SECTOR_BYTES).enumerate() {
                    if self.below(2) == 0 {
                        self.medium.write(offset + index * SECTOR_BYTES, sector)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn change(&mut self, change: Change) -> io::Result<()> {
        if self.is_lossy && self.below(4) == 0 {
            self.apply_some(&change)?;
        }
        self.unsynced.push(change);
        Ok(())
    }
}

impl<M: Medium> StorageBackend for Lossy<M> {
    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.0).current.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = lock(&self.0);
        let octets = state.current.get(offset as usize..).and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(octets.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = lock(&self.0);
        state.begin()?;
        state.current.resize(len as usize, 0);
        state.change(Change::Length(len as usize))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = lock(&self.0);
        state.begin()?;
        state.syncs += 1;
        let fails = state.faults.fails_sync == Some(state.syncs);
        for change in std::mem::take(&mut state.unsynced) {
            match change {
                change if fails => state.apply_some(&change)?,
                Change::Length(bytes) => state.medium.set_len(bytes)?,
                Change::Octets(offset, octets) => state.medium.write(offset, &octets)?,
            }
        }
        if fails { Err(io::Error::other("the disk refuses")) } else { Ok(()) }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = lock(&self.0);
        state.begin()?;
        let written = state.written_bytes + data.len();
        let left = state.faults.room_bytes.map(|room| room.saturating_sub(state.written_bytes));
        let fits = left.map_or(data.len(), |left| left.min(data.len()));
        state.written_bytes = written;
        let begin = offset as usize;
        let octets = data[..fits].to_vec();
        let end = begin + fits;
        if state.current.len() < end {
            state.current.resize(end, 0);
        }
        state.current[begin..end].copy_from_slice(&octets);
        state.change(Change::Octets(begin, octets))?;
        if fits < data.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl<M> fmt::Debug for Lossy<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a file that loses what was not synced")
    }
}
