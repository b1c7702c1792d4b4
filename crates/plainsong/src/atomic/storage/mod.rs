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

use std::path::Path;

use crate::atomic::name::Name;
use crate::atomic::voting::Voting;
pub(crate) use crate::base::store_error::StoreError;
pub(crate) use committer::{Committer, Stage, StoreThread};
pub(crate) use directory::StateDirectory;
#[cfg(test)]
pub(crate) use file::FileStore;

pub(crate) use plainsong_proto::atomic::storage::Batch;

/// An ordered map of octets that outlives processes and losses of power.
pub(crate) trait Store: Send {
    /// Where it is: errors name it.
    fn file(&self) -> &Path;

    /// Shows every key with its value, in ascending order of the keys.
    fn read(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError>;

    /// Makes all of these changes, or none. They are durable when this returns.
    ///
    /// After an error nobody knows what is on the disk, since a kernel may forget what it could not write:
    /// every later call fails with the same error, and the file is to be opened anew.
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError>;

    /// Puts the file aside under another name, and goes on with one that has only the claims of its member
    /// and the votes of a voter with a name: nothing that was kept is lost.
    fn put_aside(&mut self) -> Result<(), StoreError>;
}

/// What a participant that keeps something has for it.
pub(crate) struct Storage {
    directory: StateDirectory,
    pub(crate) thread: StoreThread,
}

impl Storage {
    /// Locks the directory and starts the thread.
    pub(crate) fn open(directory: &Path, domain_id: u16) -> Result<Self, StoreError> {
        let thread = StoreThread::start(domain_id).map_err(|error| StoreError::of_open(directory, error));
        Ok(Self { directory: StateDirectory::open(directory, domain_id)?, thread: thread? })
    }

    /// Whether there are fewer files than this, or the one of the group.
    pub(crate) fn has_room_for(&self, name: &Name, files_max: usize) -> Result<bool, StoreError> {
        self.directory.has_room_for(name, files_max)
    }

    /// What is kept of a group in which these vote.
    pub(crate) fn store(&self, name: &Name, voting: &Voting) -> Result<Box<dyn Store>, StoreError> {
        self.directory.store(name, voting)
    }
}
