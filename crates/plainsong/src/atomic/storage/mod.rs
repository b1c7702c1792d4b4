//! What a participant keeps of ATOMIC groups on its disk, so that it outlives the process.
//!
//! A group has one file in the state directory ([`StateDirectory`]): a map of octets whose changes are made
//! durable some at a time, each time all or none of them ([`Store`]). A thread of the participant does
//! that, for whatever waits at once ([`StoreThread`]). What stands in the maps the protocol core decides.

mod committer;
mod directory;
mod file;
#[cfg(any(test, feature = "power-loss"))]
mod lossy;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use committer::{Committer, Stage, StoreThread};
pub(crate) use directory::StateDirectory;
#[cfg(test)]
pub(crate) use file::FileStore;

/// Changes that are made together: values by their keys, `None` where a key goes.
pub(crate) type Batch = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// An ordered map of octets that outlives processes and losses of power.
pub(crate) trait Store: Send {
    /// Shows every key with its value, in ascending order of the keys.
    fn read(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError>;

    /// Makes all of these changes, or none. They are durable when this returns.
    ///
    /// After an error nobody knows what is on the disk, since a kernel may forget what it could not write:
    /// every later call fails with the same error, and the file is to be opened anew.
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError>;
}

/// What a participant keeps on its disk cannot be read or written.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refuses to open the file or its directory.
    #[error("{file} cannot be opened: {source}: this process must be able to create, read and write it")]
    CannotOpen {
        /// The file or directory.
        file: PathBuf,
        /// The system's answer.
        source: Arc<io::Error>,
    },
    /// Another participant has it, in this process or another one.
    #[error(
        "{file} is locked by another participant{}: give each participant a state directory of its own, or end the other one first",
        Process(.process)
    )]
    InUse {
        /// The file that is locked.
        file: PathBuf,
        /// The process that has locked it, where that is known.
        process: Option<u32>,
    },
    /// It does not have what was written to it.
    #[error(
        "{file} is damaged ({what}), and is left as it is: restore it, or remove it and lose what this participant kept there; a voter \
         that lost it must come back under another name"
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The disk or the quota is full.
    #[error("there is no room on the disk for {file}: make room, then make the participant anew")]
    DiskFull {
        /// The file.
        file: PathBuf,
    },
    /// The operating system refuses to read or write. Nothing more is written to the file.
    #[error("{file} cannot be read or written: {source}: check the disk, then make the participant anew")]
    Io {
        /// The file.
        file: PathBuf,
        /// The system's answer.
        source: Arc<io::Error>,
    },
}

impl StoreError {
    fn of_open(file: &Path, source: io::Error) -> Self {
        if is_full(&source) {
            return Self::DiskFull { file: file.to_owned() };
        }
        Self::CannotOpen { file: file.to_owned(), source: Arc::new(source) }
    }

    fn of_io(file: &Path, source: io::Error) -> Self {
        if is_full(&source) {
            return Self::DiskFull { file: file.to_owned() };
        }
        Self::Io { file: file.to_owned(), source: Arc::new(source) }
    }

    fn damaged(file: &Path, what: impl ToString) -> Self {
        Self::Damaged { file: file.to_owned(), what: what.to_string() }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

struct Process<'a>(&'a Option<u32>);

impl std::fmt::Display for Process<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |process| write!(f, ", of process {process}"))
    }
}
