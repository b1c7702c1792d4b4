//! How floors find each other: files in the directory that the workers of a cell share.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use plainsong_perfkit::Failure;
use plainsong_perfkit::clock::now_ns;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// What is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Writer,
    Reader,
}

/// An entry, for as long as it lives.
pub(super) struct Entry {
    path: PathBuf,
    pub(super) id: u32,
}

impl Drop for Entry {
    fn drop(&mut self) {
        // A directory that is already gone has no entry either.
        let _ = fs::remove_file(&self.path);
    }
}

/// The place of one topic of one domain.
#[derive(Clone, Debug)]
pub(super) struct Place {
    directory: PathBuf,
    name: String,
}

impl Place {
    pub(super) fn new(scratch: &str, domain: u32, topic: &str) -> Result<Self, Failure> {
        if scratch.is_empty() {
            return Err(Failure::Failed(
                "a floor needs `scratch`, a directory that its workers share".to_owned(),
            ));
        }
        let name = format!("{domain}-{:08x}", hash(&(domain, topic)));
        Ok(Self { directory: PathBuf::from(scratch), name })
    }

    /// A path of this process alone, short enough for the name of a socket.
    pub(super) fn own_path(&self) -> PathBuf {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.directory.join(format!("{}-{number}", std::process::id()))
    }

    /// Registers an address under a number that nobody else has.
    pub(super) fn register(&self, side: Side, address: &str) -> Result<Entry, Failure> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = hash(&(std::process::id(), number, now_ns()));
        let path = self.directory.join(format!("{}-{}-{id:08x}", self.name, suffix(side)));
        // It appears whole.
        let unfinished = path.with_extension("new");
        let written = fs::write(&unfinished, address).and_then(|()| fs::rename(&unfinished, &path));
        written.map_err(|error| Failure::Failed(format!("cannot write {}: {error}", path.display())))?;
        Ok(Entry { path, id })
    }

    /// The addresses registered, by number.
    pub(super) fn find(&self, side: Side) -> BTreeMap<u32, String> {
        let prefix = format!("{}-{}-", self.name, suffix(side));
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let entry = |path: &Path| {
            let id = path.file_name()?.to_str()?.strip_prefix(&prefix)?.to_owned();
            Some((u32::from_str_radix(&id, 16).ok()?, fs::read_to_string(path).ok()?))
        };
        entries.filter_map(|found| entry(&found.path())).collect()
    }
}

fn suffix(side: Side) -> &'static str {
    match side {
        Side::Writer => "w",
        Side::Reader => "r",
    }
}

/// 32 bits of anything; the same in every process of one build.
pub(super) fn hash(value: &impl Hash) -> u32 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish() as u32
}
