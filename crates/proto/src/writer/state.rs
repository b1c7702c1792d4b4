//! What a writer tells of itself to people: how each reader is reached, and what it counted. Nothing here
//! changes the writer.

use crate::guid::Guid;
use crate::locator::Locator;
use crate::time::{Duration, Instant};

use super::Writer;
use super::flow::route_kind::RouteKind;

/// A matched reader, how it is reached, and what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaderRoute {
    /// The reader.
    pub reader: Guid,
    /// Where samples for it go now.
    pub destinations: Vec<Locator>,
    /// It is on this host.
    pub same_host: bool,
    /// It is reached by memory shared with its process.
    pub by_memory: bool,
    /// It acknowledges what it has.
    pub reliable: bool,
    /// So many samples that were written since it was matched are not acknowledged; 0 where nothing is.
    pub behind: u64,
    /// How long it has been asked for an answer and given none; `None`: it answers, or need not.
    pub silent_for: Option<Duration>,
    /// The writer does not wait for it until it answers.
    pub is_left_out: bool,
}

/// Totals of a writer since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterTotals {
    /// Readers that were matched.
    pub matched: i32,
    /// Readers whose QoS did not suit.
    pub incompatible: i32,
    /// Deadlines missed.
    pub deadlines_missed: i32,
    /// Leases of its liveliness that ended.
    pub liveliness_lost: i32,
    /// Octets of the payloads that were written.
    pub written_bytes: u64,
    /// Octets that were sent to single readers: what these had missed, and the history of late joiners.
    pub resent_bytes: u64,
    /// And in how many datagrams.
    pub resent_datagrams: u64,
}

impl Writer {
    /// The matched readers, in the order of their GUIDs.
    pub fn reader_routes(&self, now: Instant) -> impl Iterator<Item = ReaderRoute> {
        let last = self.last_sequence_number();
        self.proxies.iter().map(move |reader| {
            let has = reader.has_of(&self.history).min(last);
            let behind = if reader.reliable { last.0.abs_diff(has.0) } else { 0 };
            let silence = reader.silence.lasts(now);
            ReaderRoute {
                reader: reader.guid,
                destinations: reader.destinations().to_vec(),
                same_host: reader.kind != RouteKind::Remote,
                by_memory: reader.kind == RouteKind::Memory,
                reliable: reader.reliable,
                behind,
                silent_for: (behind > 0 && silence > Duration::ZERO).then_some(silence),
                is_left_out: reader.silence.is_left_out,
            }
        })
    }

    /// What was counted; no status is reset.
    #[must_use]
    pub const fn totals(&self) -> WriterTotals {
        WriterTotals {
            matched: self.matched.total.total_count,
            incompatible: self.incompatible.count.total_count,
            deadlines_missed: self.deadline_missed.count.total_count,
            liveliness_lost: self.liveliness_lost.total_count,
            written_bytes: self.counted.written_bytes,
            resent_bytes: self.counted.resent_bytes,
            resent_datagrams: self.counted.resent_datagrams,
        }
    }
}
