//! What can go wrong with a file that outlives the process.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        "{file} is damaged ({what}), and is left as it is: move it aside and start again, so that the member joins anew and fetches what \
         the others have; do not put an old copy in its place; a voter comes back under another name, which PLAINSONG_VOTERS of all \
         has to say"
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// It was moved or copied here from the state of another group.
    #[error(
        "{file} is of {group}, and not of the topic that it is called after: move it back, or aside, and start again"
    )]
    OtherTopic {
        /// The file.
        file: PathBuf,
        /// The topic that it is of, with the partition.
        group: String,
    },
    /// It has the votes of another voter, or of one of other voters.
    #[error(
        "{file} has votes of another voter, or of another set of voters: voters of a group stay as they are; a group with others is \
         another group, which takes another state directory"
    )]
    OtherVoters {
        /// The file.
        file: PathBuf,
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
    pub(crate) fn of_open(file: &Path, source: io::Error) -> Self {
        if is_full(&source) {
            return Self::DiskFull { file: file.to_owned() };
        }
        Self::CannotOpen { file: file.to_owned(), source: Arc::new(source) }
    }

    pub(crate) fn of_io(file: &Path, source: io::Error) -> Self {
        if is_full(&source) {
            return Self::DiskFull { file: file.to_owned() };
        }
        Self::Io { file: file.to_owned(), source: Arc::new(source) }
    }

    pub(crate) fn damaged(file: &Path, what: impl ToString) -> Self {
        Self::Damaged { file: file.to_owned(), what: what.to_string() }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

struct Process<'a>(&'a Option<u32>);

impl fmt::Display for Process<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |process| write!(f, ", of process {process}"))
    }
}
