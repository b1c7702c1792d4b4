//! The state directory of a participant: a folder for each domain, in it a file for each group.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::file::{FileStore, sync_directory_of};
use super::{Store, StoreError};
use crate::atomic::name::Name;
use crate::atomic::voting::Voting;

/// So much of a topic's name is in the name of a file: whoever looks at them finds it.
const SHOWN_CHARS_MAX: usize = 80;
const EXTENSION: &str = "redb";
/// Of a file that says of which voters there are votes, a line for each set.
const VOTED: &str = "voted";
const LOCK: &str = "lock";

/// The folder of one participant. No other participant has it as long as this lives.
pub(crate) struct StateDirectory {
    folder: PathBuf,
    /// The operating system ends the lock with the process, if nothing else does.
    _lock: File,
}

impl StateDirectory {
    /// Makes it if there is none, and locks it.
    pub(crate) fn open(directory: &Path, domain_id: u16) -> Result<Self, StoreError> {
        let folder = directory.join(format!("domain-{domain_id}"));
        let of_open = |error| StoreError::of_open(&folder, error);
        fs::create_dir_all(&folder).map_err(of_open)?;
        sync_directory_of(&folder).map_err(of_open)?;
        let file = folder.join(LOCK);
        let of_lock = |error| StoreError::of_open(&file, error);
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&file);
        let mut lock = opened.map_err(of_lock)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                // Who has it says so there.
                let mut text = String::new();
                let _ = lock.take(32).read_to_string(&mut text);
                return Err(StoreError::InUse { file, process: text.trim().parse().ok() });
            }
            Err(TryLockError::Error(error)) => return Err(of_lock(error)),
        }
        let told = lock.set_len(0).and_then(|()| lock.rewind());
        told.and_then(|()| writeln!(lock, "{}", std::process::id())).map_err(of_lock)?;
        Ok(Self { folder, _lock: lock })
    }

    /// What is kept of a group in which these vote: nothing when there is no file yet. A voter that has lost
    /// its votes might vote otherwise than before: it does not begin anew.
    pub(crate) fn store(&self, name: &Name, voting: &Voting) -> Result<Box<dyn Store>, StoreError> {
        let file = self.file_of(name)?;
        let mark = self.folder.join(format!("{:032x}.{VOTED}", name.hash()));
        let of_mark = |error| StoreError::of_open(&mark, error);
        let has_voted = voting.own().is_some() && has_voted(&mark, voting).map_err(of_mark)?;
        if has_voted && !file.exists() {
            return Err(StoreError::VotesLost { file, is_missing: true });
        }
        let mut store = FileStore::open(&file)?;
        store.claim(name, voting, has_voted)?;
        if voting.own().is_some() && !has_voted {
            say_voted(&mark, voting).map_err(of_mark)?;
        }
        Ok(Box::new(store))
    }

    /// Whether there are fewer files than this, or the one of the group.
    pub(crate) fn has_room_for(&self, name: &Name, files_max: usize) -> Result<bool, StoreError> {
        let of_open = |error| StoreError::of_open(&self.folder, error);
        let entries = fs::read_dir(&self.folder).map_err(of_open)?;
        let is_store = |it: &fs::DirEntry| it.path().extension().is_some_and(|it| it == EXTENSION);
        let files = entries.filter_map(Result::ok).filter(is_store).count();
        Ok(files < files_max || self.file_of(name)?.exists())
    }

    /// The file of a group. Its hash names the group; what stands before it is for who reads it. A witness,
    /// which knows the hash alone, finds the file all the same.
    fn file_of(&self, name: &Name) -> Result<PathBuf, StoreError> {
        let end = format!("{:032x}.{EXTENSION}", name.hash());
        let of_open = |error| StoreError::of_open(&self.folder, error);
        for entry in fs::read_dir(&self.folder).map_err(of_open)? {
            let entry = entry.map_err(of_open)?;
            if entry.file_name().to_string_lossy().ends_with(&end) {
                return Ok(entry.path());
            }
        }
        let shown = |char: char| if char.is_ascii_alphanumeric() || char == '-' { char } else { '_' };
        let topic: String = name.topic.chars().take(SHOWN_CHARS_MAX).map(shown).collect();
        Ok(self.folder.join(format!("{topic}-{end}")))
    }
}

/// Whether the mark says that there were votes of such a set of voters. One without a line says so of all.
fn has_voted(mark: &Path, voting: &Voting) -> io::Result<bool> {
    match fs::read_to_string(mark) {
        Ok(text) => Ok(text.is_empty() || text.lines().any(|it| it == voting.joined())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn say_voted(mark: &Path, voting: &Voting) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(mark)?;
    writeln!(file, "{}", voting.joined())?;
    file.sync_all()?;
    sync_directory_of(mark)
}
