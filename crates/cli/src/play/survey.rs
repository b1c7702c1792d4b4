//! What a file has, before any of it is played: its writers are to be there from the begin on.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use plainsong_recording::{Change, Flaw, Globs, Input, Item, RecordedWriter};

use super::{Failure, Options};

/// What was found.
#[derive(Clone, Default)]
pub(super) struct Found {
    /// Those that are to be played, by the numbers of their channels.
    pub(super) writers: BTreeMap<u16, Arc<RecordedWriter>>,
    /// Changes of the file, played or not.
    pub(super) changes: u64,
    /// The first and last time, in nanoseconds since 1970.
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) flaws: Vec<Flaw>,
    pub(super) flaw_count: u64,
}

/// Reads all of a file.
pub(super) fn survey(options: &Options) -> Result<Found, Failure> {
    let (wanted, unwanted) = (Globs::new(&options.topics), Globs::new(&options.exclude));
    let wants = |topic: &str| (wanted.is_empty() || wanted.has_topic(topic)) && !unwanted.has_topic(topic);
    let mut input = Input::new(open(options)?);
    let mut found = Found { first: u64::MAX, ..Found::default() };
    while let Some(item) = input.next_item()? {
        match item {
            Item::Writer(id, writer) if wants(&writer.topic) => _ = found.writers.insert(id, writer),
            Item::Writer(..) => {}
            Item::Change(change) => {
                found.changes += 1;
                found.first = found.first.min(change.log_time());
                found.last = found.last.max(change.log_time());
            }
        }
    }
    let (flaws, count) = input.flaws();
    (found.flaws, found.flaw_count) = (flaws.to_vec(), count);
    Ok(found)
}

/// Opens the file.
pub(super) fn open(options: &Options) -> Result<File, Failure> {
    File::open(&options.file).map_err(|error| Failure::File(error.into()))
}

impl Found {
    /// The times between which is played, from the begin of the recording.
    pub(super) fn span(&self, options: &Options) -> (u64, u64) {
        let after = |span: std::time::Duration| {
            self.first.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
        };
        (after(options.start), options.end.map_or(u64::MAX, after))
    }

    /// Whether a change is to be played.
    pub(super) fn wants(&self, change: &Change, (start, end): (u64, u64)) -> bool {
        let in_time = (start..=end).contains(&change.log_time());
        in_time
            && match change {
                Change::Sample { writer, .. } => self.writers.contains_key(writer),
                Change::Event { event, .. } => {
                    self.writers.values().any(|writer| writer.guid == event.writer)
                }
            }
    }
}
