//! Files, and places in them.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::limits::FILE_BYTES_MAX;

/// Why a file was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    Missing,
    Because(String),
}

impl Unread {
    pub(crate) fn say(&self) -> &str {
        match self {
            Self::Missing => "there is no such file",
            Self::Because(reason) => reason,
        }
    }
}

/// Where the compiler reads files from.
pub trait Files {
    /// The octets of a file.
    ///
    /// # Errors
    /// What the system says; `NotFound` lets the search for an included file go on.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// A path that is the same for all spellings of one file.
    fn identity(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }
}

/// The files of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        use io::Read as _;
        let file = std::fs::File::open(path)?;
        let mut octets = Vec::new();
        // One octet more than allowed tells that there are too many.
        file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut octets)?;
        Ok(octets)
    }

    fn identity(&self, path: &Path) -> PathBuf {
        path.canonicalize().unwrap_or_else(|_| path.to_owned())
    }
}

/// Files that are held in memory, for tests and for types that come from elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    files: HashMap<PathBuf, Vec<u8>>,
}

impl Memory {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, or replaces it.
    #[must_use]
    pub fn with(mut self, path: impl Into<PathBuf>, text: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }
}

impl Files for Memory {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// One file of a [`SourceMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileId(u32);

/// A piece of a file. What a macro expands to has the place where the macro is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    pub(crate) file: FileId,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    /// From the start of this one to the end of the other, if both are in one file.
    pub(crate) fn to(self, end: Self) -> Self {
        if self.file == end.file && end.end >= self.start { Self { end: end.end, ..self } } else { self }
    }

    /// The place right after it.
    pub(crate) fn after(self) -> Self {
        Self { start: self.end, ..self }
    }
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    text: Arc<str>,
    /// The directive that read it first.
    included_at: Option<Span>,
    line_starts: OnceCell<Vec<usize>>,
}

/// A place as people count: from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The path as it was found.
    pub path: PathBuf,
    /// From 1.
    pub line: usize,
    /// Characters, from 1.
    pub column: usize,
}

/// All files that one run has read.
#[derive(Debug, Default)]
pub struct SourceMap {
    files: Vec<File>,
    by_identity: HashMap<PathBuf, FileId>,
}

impl SourceMap {
    /// The file of this identity, if it was read.
    pub(crate) fn known(&self, identity: &Path) -> Option<FileId> {
        self.by_identity.get(identity).copied()
    }

    pub(crate) fn add(
        &mut self,
        path: PathBuf,
        identity: PathBuf,
        text: String,
        included_at: Option<Span>,
    ) -> FileId {
        // Fewer than 2^32, because inclusions are limited.
        let id = FileId(self.files.len() as u32);
        self.files.push(File { path, text: text.into(), included_at, line_starts: OnceCell::new() });
        self.by_identity.insert(identity, id);
        id
    }

    /// Reads a file, or finds it among those that were read.
    pub(crate) fn load(
        &mut self,
        files: &dyn Files,
        path: &Path,
        included_at: Option<Span>,
    ) -> Result<FileId, Unread> {
        let identity = files.identity(path);
        if let Some(known) = self.known(&identity) {
            return Ok(known);
        }
        let octets = files.read(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Unread::Missing,
            _ => Unread::Because(error.to_string()),
        })?;
        if octets.len() > FILE_BYTES_MAX {
            return Err(Unread::Because(format!("it has more than {} MiB", FILE_BYTES_MAX >> 20)));
        }
        let text = String::from_utf8(octets)
            .unwrap_or_else(|error| error.into_bytes().into_iter().map(char::from).collect());
        Ok(self.add(path.to_owned(), identity, text, included_at))
    }

    fn file(&self, id: FileId) -> &File {
        &self.files[id.0 as usize]
    }

    pub(crate) fn text(&self, id: FileId) -> Arc<str> {
        Arc::clone(&self.file(id).text)
    }

    pub(crate) fn path(&self, id: FileId) -> &Path {
        &self.file(id).path
    }

    /// The paths of all files, in the order in which they were first read.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }

    /// The directives by which a file came in, innermost first.
    pub(crate) fn inclusions(&self, id: FileId) -> impl Iterator<Item = Span> {
        std::iter::successors(self.file(id).included_at, |at| self.file(at.file).included_at)
    }

    /// Where a piece starts.
    pub fn location(&self, span: Span) -> Location {
        let file = self.file(span.file);
        let (line, start) = file.line(span.start as usize);
        let before = file.text.get(start..span.start as usize).unwrap_or_default();
        Location { path: file.path.clone(), line, column: before.chars().count() + 1 }
    }

    /// The line in which a piece starts, without its end.
    pub(crate) fn line(&self, span: Span) -> &str {
        let file = self.file(span.file);
        let (_, start) = file.line(span.start as usize);
        let rest = file.text.get(start..).unwrap_or_default();
        rest.split(['\n', '\r']).next().unwrap_or_default()
    }

    pub(crate) fn piece(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }
}

impl File {
    /// The number of the line of an octet, from 1, and where the line starts.
    fn line(&self, at: usize) -> (usize, usize) {
        let starts = self.line_starts.get_or_init(|| {
            let ends = self.text.bytes().enumerate().filter(|(_, octet)| *octet == b'\n');
            std::iter::once(0).chain(ends.map(|(end, _)| end + 1)).collect()
        });
        let line = starts.partition_point(|start| *start <= at);
        (line, starts[line - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_and_in_characters() {
        let mut sources = SourceMap::default();
        let text = "first\näöü x\n".to_owned();
        let file = sources.add("a.idl".into(), "a.idl".into(), text, None);
        let at = |start: u32| {
            let location = sources.location(Span { file, start, end: start });
            (location.line, location.column)
        };
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(5), (1, 6));
        assert_eq!(at(6), (2, 1));
        assert_eq!(at(13), (2, 5));
        assert_eq!(at(15), (3, 1));
        assert_eq!(sources.line(Span { file, start: 13, end: 14 }), "äöü x");
    }
}
