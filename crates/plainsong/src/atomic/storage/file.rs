//! A store in a file, by the embedded database redb: trees that are copied where they change, with checksums
//! by which what was written in part is noticed.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{
    AccessGuard, CommitError, Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend,
    StorageError, TableDefinition, TableError, TransactionError,
};

use plainsong_proto::atomic::entry::Entry;
use plainsong_proto::atomic::storage::{Image, is_claim, is_vote};

use super::{Batch, Store, StoreError};
use crate::atomic::name::Name;
use crate::atomic::voting::{Voting, names_of};

/// The map; the name says in which form its keys and values are.
const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("plainsong.atomic.1");
/// Of which topic and partition it is.
const GROUP: TableDefinition<'_, &str, &str> = TableDefinition::new("plainsong.atomic.group");
const TOPIC: &str = "topic";
const PARTITION: &str = "partition";
/// Who votes in the group, with commas between the names; empty where its members do.
const VOTERS: &str = "voters";
/// Of which voter there are votes.
const VOTER: &str = "voter";
/// What of the file is kept in memory. It is read once, from the beginning to the end.
const CACHE_BYTES: usize = 4 << 20;

/// What a file says of its group.
type Labels = BTreeMap<String, String>;

/// A store in a file.
pub(crate) struct FileStore {
    file: PathBuf,
    /// `None` if it could not be opened anew.
    database: Option<Database>,
    failed: Option<StoreError>,
    /// Of which group it says that it is.
    group: Labels,
}

impl FileStore {
    /// The store in this file, which is made if there is none. All of it is checked.
    pub(crate) fn open(file: &Path) -> Result<Self, StoreError> {
        match fs::metadata(file) {
            // A file is given its name when it is complete, so that this is none of ours.
            Ok(metadata) if metadata.len() == 0 => return Err(StoreError::damaged(file, "it is empty")),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::create(file)?,
            Err(error) => return Err(StoreError::of_open(file, error)),
        }
        let opened = OpenOptions::new().read(true).write(true).open(file);
        let backend = opened.and_then(backend).map_err(|error| StoreError::of_open(file, error))?;
        Self::with_backend(file, backend)
    }

    /// Makes a file with an empty map. Whoever is interrupted leaves none under this name.
    fn create(file: &Path) -> Result<(), StoreError> {
        let new = file.with_extension("new");
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&new);
        let backend = opened.and_then(backend).map_err(|error| StoreError::of_open(&new, error))?;
        Self::format(&new, backend)?;
        fs::rename(&new, file).map_err(|error| StoreError::of_open(file, error))?;
        sync_directory_of(file).map_err(|error| StoreError::of_open(file, error))
    }

    /// Makes an empty map.
    pub(super) fn format(file: &Path, backend: impl StorageBackend) -> Result<(), StoreError> {
        let database = open_database(file, backend)?;
        let begun = database.begin_write().map_err(|error| of_transaction(file, error))?;
        begun.open_table(TABLE).map_err(|error| of_table(file, error))?;
        begun.commit().map_err(|error| of_commit(file, error))?;
        // What goes wrong at the end is noticed when the file is opened.
        drop(database);
        Ok(())
    }

    pub(super) fn with_backend(file: &Path, backend: impl StorageBackend) -> Result<Self, StoreError> {
        let database = open_database(file, backend)?;
        let store =
            Self { file: file.to_owned(), database: Some(database), failed: None, group: Labels::new() };
        store.read(&mut |_, _| {})?;
        Ok(store)
    }

    fn database(&self) -> Result<&Database, StoreError> {
        let closed = || StoreError::damaged(&self.file, "it is closed");
        self.database.as_ref().ok_or_else(closed)
    }

    /// Keeps the file under another name, and puts one in its place that has only what outlives a group.
    /// Under its own name there is one or the other at any time.
    fn replace(&mut self) -> Result<(), StoreError> {
        let file = self.file.clone();
        let of_open = |error| StoreError::of_open(&file, error);
        let (mut kept, is_voter) = (Batch::new(), self.group.contains_key(VOTER));
        self.read(&mut |key, value| {
            if is_claim(key) || is_voter && is_vote(key) {
                kept.insert(key.to_vec(), Some(value.to_vec()));
            }
        })?;
        let next = file.with_extension("next");
        match fs::remove_file(&next) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(of_open(error)),
            _ => {}
        }
        let mut made = Self::open(&next)?;
        made.commit(&kept)?;
        made.say_group(std::mem::take(&mut self.group))?;
        drop((made, self.database.take()));
        let aside = self.free_aside();
        // Where a file can have one name only it is copied.
        let copy = || fs::copy(&file, &aside).and_then(|_| File::open(&aside)?.sync_all());
        fs::hard_link(&file, &aside).or_else(|_| copy()).map_err(of_open)?;
        sync_directory_of(&file).map_err(of_open)?;
        fs::rename(&next, &file).map_err(of_open)?;
        sync_directory_of(&file).map_err(of_open)?;
        *self = Self::open(&file)?;
        self.group = self.read_group()?;
        Ok(())
    }

    /// Refuses a file that says it is of another group, or of one with other voters; what it does not say
    /// it says from now on. Who knows the hash alone leaves the topic to others.
    ///
    /// Of a voter that `has_voted` there must be votes.
    pub(super) fn claim(&mut self, name: &Name, voting: &Voting, has_voted: bool) -> Result<(), StoreError> {
        self.group = self.read_group()?;
        let file = || self.file.clone();
        let mut group = self.group.clone();
        if let Some((topic, partition)) = group.get(TOPIC).zip(group.get(PARTITION)) {
            if Name::new(topic, partition).hash() != name.hash() {
                let within = if partition.is_empty() { "" } else { " in partition " };
                let group = format!("topic '{topic}'{within}{partition}");
                return Err(StoreError::OtherTopic { file: file(), group });
            }
        } else if name.is_known() {
            group.insert(TOPIC.to_owned(), name.topic.clone());
            group.insert(PARTITION.to_owned(), name.partition.clone());
        }
        let (is_empty, of_view) = self.look_at_view(!group.contains_key(VOTERS))?;
        if is_empty && group.get(VOTERS).is_some_and(|it| *it != voting.joined()) {
            // Nothing came of a start with other settings.
            group.retain(|key, _| key != VOTERS && key != VOTER);
        }
        let voters = group.get(VOTERS).cloned().or(of_view).unwrap_or_else(|| voting.joined());
        if voters != voting.joined() {
            return Err(StoreError::OtherVoters { file: file(), voters });
        }
        if let Some(own) = voting.own() {
            match group.get(VOTER) {
                Some(voter) if voter != own => return Err(StoreError::OtherVoter { file: file() }),
                // It was made by a start that did not vote.
                None if has_voted && group.contains_key(VOTERS) => {
                    return Err(StoreError::VotesLost { file: file(), is_missing: false });
                }
                _ => group.insert(VOTER.to_owned(), own.to_owned()),
            };
        }
        group.insert(VOTERS.to_owned(), voters);
        if group == self.group { Ok(()) } else { self.say_group(group) }
    }

    /// Whether there is nothing in it, and, if that is asked for, who votes in its last view, if it has one.
    fn look_at_view(&self, of_view: bool) -> Result<(bool, Option<String>), StoreError> {
        let (mut is_empty, mut pairs) = (true, Vec::new());
        self.read(&mut |key, value| {
            is_empty = false;
            if of_view {
                pairs.push((key.to_vec(), value.to_vec()));
            }
        })?;
        let image =
            Image::<Arc<Entry>>::read(pairs).map_err(|error| StoreError::damaged(&self.file, error))?;
        let view = image.epoch.as_ref().map(|it| &it.view);
        let view = view.or_else(|| image.decisions.last().map(|it| &it.next));
        Ok((is_empty, view.map(|view| names_of(&view.voters))))
    }

    fn read_group(&self) -> Result<Labels, StoreError> {
        let file = &self.file;
        let begun = self.database()?.begin_read().map_err(|error| of_transaction(file, error))?;
        let table = match begun.open_table(GROUP) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(Labels::new()),
            other => other.map_err(|error| of_table(file, error))?,
        };
        let entries = table.iter().map_err(|error| of_storage(file, error))?;
        let owned = |(key, value): (AccessGuard<'_, &str>, AccessGuard<'_, &str>)| {
            (key.value().to_owned(), value.value().to_owned())
        };
        entries.map(|it| it.map(owned).map_err(|error| of_storage(file, error))).collect()
    }

    pub(super) fn say_group(&mut self, group: Labels) -> Result<(), StoreError> {
        let file = &self.file;
        let begun = self.database()?.begin_write().map_err(|error| of_transaction(file, error))?;
        {
            let mut table = begun.open_table(GROUP).map_err(|error| of_table(file, error))?;
            table.retain(|key, _| group.contains_key(key)).map_err(|error| of_storage(file, error))?;
            for (key, value) in &group {
                table.insert(key.as_str(), value.as_str()).map_err(|error| of_storage(file, error))?;
            }
        }
        begun.commit().map_err(|error| of_commit(file, error))?;
        self.group = group;
        Ok(())
    }

    /// A name for what is put aside.
    fn free_aside(&self) -> PathBuf {
        let mut aside = (1_u32..).map(|number| self.file.with_extension(format!("{number}.aside")));
        aside.find(|it| !it.exists()).unwrap_or_else(|| self.file.with_extension("aside"))
    }

    fn write(&self, batch: &Batch) -> Result<(), StoreError> {
        let file = &self.file;
        let begun = self.database()?.begin_write().map_err(|error| of_transaction(file, error))?;
        {
            let mut table = begun.open_table(TABLE).map_err(|error| of_table(file, error))?;
            for (key, value) in batch {
                let changed = match value {
                    Some(value) => table.insert(key.as_slice(), value.as_slice()).map(drop),
                    None => table.remove(key.as_slice()).map(drop),
                };
                changed.map_err(|error| of_storage(file, error))?;
            }
        }
        begun.commit().map_err(|error| of_commit(file, error))
    }
}

impl Store for FileStore {
    fn file(&self) -> &Path {
        &self.file
    }

    fn read(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        let file = &self.file;
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let begun = self.database()?.begin_read().map_err(|error| of_transaction(file, error))?;
        let table = begun.open_table(TABLE).map_err(|error| of_table(file, error))?;
        for entry in table.iter().map_err(|error| of_storage(file, error))? {
            let (key, value) = entry.map_err(|error| of_storage(file, error))?;
            each(key.value(), value.value());
        }
        Ok(())
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let written = self.write(batch);
        self.failed = written.as_ref().err().cloned();
        written
    }

    fn put_aside(&mut self) -> Result<(), StoreError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let replaced = self.replace();
        self.failed = replaced.as_ref().err().cloned();
        replaced
    }
}

/// Opens a database and checks all of it.
fn open_database(file: &Path, backend: impl StorageBackend) -> Result<Database, StoreError> {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
    // The library promises no panic for octets that it did not write: those of a file may be any.
    match catch_unwind(AssertUnwindSafe(|| builder.create_with_backend(backend))) {
        Ok(opened) => opened.map_err(|error| of_database(file, error)),
        Err(_) => Err(StoreError::damaged(file, "it cannot be read as a database")),
    }
}

#[cfg(not(feature = "power-loss"))]
fn backend(file: File) -> io::Result<impl StorageBackend> {
    redb::backends::FileBackend::new(file).map_err(io::Error::other)
}

#[cfg(feature = "power-loss")]
fn backend(file: File) -> io::Result<impl StorageBackend> {
    super::lossy::backend(file)
}

/// Makes the names in the directory of a file durable.
pub(super) fn sync_directory_of(file: &Path) -> io::Result<()> {
    match file.parent() {
        #[cfg(unix)]
        Some(directory) => File::open(directory)?.sync_all(),
        _ => Ok(()),
    }
}

fn of_database(file: &Path, error: DatabaseError) -> StoreError {
    match error {
        DatabaseError::DatabaseAlreadyOpen => StoreError::InUse { file: file.to_owned(), process: None },
        DatabaseError::Storage(error) => of_storage(file, error),
        other => StoreError::damaged(file, other),
    }
}

fn of_transaction(file: &Path, error: TransactionError) -> StoreError {
    match error {
        TransactionError::Storage(error) => of_storage(file, error),
        other => StoreError::of_io(file, io::Error::other(other)),
    }
}

fn of_table(file: &Path, error: TableError) -> StoreError {
    match error {
        TableError::Storage(error) => of_storage(file, error),
        other => StoreError::damaged(file, other),
    }
}

fn of_commit(file: &Path, error: CommitError) -> StoreError {
    match error {
        CommitError::Storage(error) => of_storage(file, error),
        other => StoreError::of_io(file, io::Error::other(other)),
    }
}

fn of_storage(file: &Path, error: StorageError) -> StoreError {
    match error {
        StorageError::Corrupted(what) => StoreError::damaged(file, what),
        StorageError::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            StoreError::damaged(file, error)
        }
        StorageError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            StoreError::damaged(file, "its end is missing")
        }
        StorageError::Io(error) => StoreError::of_io(file, error),
        other => StoreError::of_io(file, io::Error::other(other)),
    }
}
