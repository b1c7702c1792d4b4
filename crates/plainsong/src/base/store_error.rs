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
         the others have; do not put an old copy in its place. If it had votes of a voter with a name, start without PLAINSONG_VOTER: \
         the voters of a group stay as they are, and a majority of the others goes on"
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
    /// It has a group with other voters than the settings say.
    #[error(
        "{file} holds a group that was made {}, and the voters of a group stay as they are: {}, to go on with it; to begin a new group \
         with other voters, use another state directory, or move the file aside, which loses what it holds unless somebody writes it \
         again", MadeWith(.voters), Again(.voters)
    )]
    OtherVoters {
        /// The file.
        file: PathBuf,
        /// The names of its voters, with commas between them; empty where its members vote.
        voters: String,
    },
    /// It has the votes of another voter.
    #[error(
        "{file} has votes of another voter: set PLAINSONG_VOTER to that one, or give this voter a state directory of its own"
    )]
    OtherVoter {
        /// The file.
        file: PathBuf,
    },
    /// The votes of a voter are gone.
    #[error(
        "{file} {}, and this voter has voted before: it votes no more, since it might vote otherwise than it did. Start without \
         PLAINSONG_VOTER, as a member that does not vote: the voters of a group stay as they are, and a majority of the others goes \
         on. To have other voters, begin a new group in new state directories", Gone(.is_missing)
    )]
    VotesLost {
        /// The file.
        file: PathBuf,
        /// There is no such file. Otherwise it was made anew without the votes.
        is_missing: bool,
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

struct MadeWith<'a>(&'a str);

impl fmt::Display for MadeWith<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("without PLAINSONG_VOTERS"),
            voters => write!(f, "with PLAINSONG_VOTERS={voters}"),
        }
    }
}

struct Again<'a>(&'a str);

impl fmt::Display for Again<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("unset PLAINSONG_VOTERS and PLAINSONG_VOTER"),
            voters => write!(f, "set PLAINSONG_VOTERS={voters}"),
        }
    }
}

struct Gone<'a>(&'a bool);

impl fmt::Display for Gone<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self.0 { "is missing" } else { "was made anew without the votes that it had" })
    }
}

struct Process<'a>(&'a Option<u32>);

impl fmt::Display for Process<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |process| write!(f, ", of process {process}"))
    }
}
