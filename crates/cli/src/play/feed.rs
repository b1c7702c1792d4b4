//! Reads a file ahead of its performance, and puts its changes in the order of their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use plainsong_recording::{Change, Input, Item};

use super::survey::{Found, open};
use super::{Failure, Options};

/// A change may stand so many nanoseconds later in the file than its time says: as long as a recorder waits
/// for the type of a writer, and some more.
const DISORDER_NS: u64 = 4_000_000_000;
/// Octets that wait to be put in order, and that wait to be played.
const AHEAD_BYTES_MAX: usize = 64 << 20;
/// Changes that are handed over at once, and their octets.
const BATCH_CHANGES: usize = 256;
const BATCH_BYTES: usize = 1 << 20;
const BATCHES_AHEAD: usize = 16;

/// In the order of times; of equal ones in that of the file.
struct Waiting {
    time: u64,
    place: u64,
    change: Change,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.place).cmp(&(other.time, other.place))
    }
}

struct Feed {
    out: SyncSender<Vec<Change>>,
    batch: Vec<Change>,
    batch_bytes: usize,
}

impl Feed {
    /// Whether somebody still wants it.
    fn push(&mut self, change: Change) -> bool {
        self.batch_bytes += change.bytes();
        self.batch.push(change);
        (self.batch.len() < BATCH_CHANGES && self.batch_bytes < BATCH_BYTES) || self.flush()
    }

    fn flush(&mut self) -> bool {
        self.batch_bytes = 0;
        self.out.send(std::mem::take(&mut self.batch)).is_ok()
    }
}

/// The changes that are to be played, in order. What cannot be read was told of before.
pub(super) fn feed(options: &Options, found: Arc<Found>) -> Result<Receiver<Vec<Change>>, Failure> {
    let mut input = Input::new(open(options)?);
    let span = found.span(options);
    let (out, batches) = sync_channel(BATCHES_AHEAD);
    let read = move || {
        let mut feed = Feed { out, batch: Vec::new(), batch_bytes: 0 };
        let mut waiting = BinaryHeap::new();
        let (mut waiting_bytes, mut place, mut newest) = (0, 0, 0);
        while let Ok(Some(item)) = input.next_item() {
            let Item::Change(change) = item else { continue };
            let time = change.log_time();
            newest = newest.max(time);
            if found.wants(&change, span) {
                waiting_bytes += change.bytes();
                place += 1;
                waiting.push(Reverse(Waiting { time, place, change }));
            }
            while let Some(Reverse(first)) = waiting.peek()
                && (first.time.saturating_add(DISORDER_NS) < newest || waiting_bytes > AHEAD_BYTES_MAX)
            {
                let Some(Reverse(first)) = waiting.pop() else { break };
                waiting_bytes -= first.change.bytes();
                if !feed.push(first.change) {
                    return;
                }
            }
        }
        while let Some(Reverse(first)) = waiting.pop() {
            if !feed.push(first.change) {
                return;
            }
        }
        feed.flush();
    };
    let started = std::thread::Builder::new().name("input".into()).spawn(read);
    started.map_err(|error| Failure::File(error.into()))?;
    Ok(batches)
}
