//! What a reader tells of itself to people: from whom it receives, and what it counted. Nothing here changes
//! the reader.

use super::Reader;
use crate::guid::Guid;
use crate::locator::Locator;
use crate::seq::SequenceNumber;
use crate::stats::Latencies;

/// A matched writer, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterRoute {
    /// The writer.
    pub writer: Guid,
    /// Where acknowledgements for it go.
    pub destinations: Vec<Locator>,
    /// It repeats what is lost.
    pub reliable: bool,
    /// Every sample up to this one is received or known to be gone; 0 before the first.
    pub received: SequenceNumber,
    /// So many later samples wait for those before them, or for room.
    pub waiting: usize,
    /// They wait for room: the cache has none until samples are taken, or under KEEP_LAST read.
    pub is_refused: bool,
}

/// Totals of a reader since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderTotals {
    /// Writers that were matched.
    pub matched: i32,
    /// Writers whose QoS did not suit.
    pub incompatible: i32,
    /// Deadlines missed.
    pub deadlines_missed: i32,
    /// Samples lost.
    pub lost: i32,
    /// Samples rejected at a limit.
    pub rejected: i32,
    /// Matched writers that are alive now.
    pub alive: i32,
    /// Matched writers that are not.
    pub not_alive: i32,
    /// Octets of the payloads that it was given.
    pub received_bytes: u64,
    /// How long their samples took from their source timestamps to their reception.
    pub latencies: Latencies,
}

impl Reader {
    /// The matched writers, in the order of their GUIDs.
    pub fn writer_routes(&self) -> impl Iterator<Item = WriterRoute> {
        let proxies = self.by_guid.values().filter_map(|id| self.proxy(*id));
        proxies.map(|writer| WriterRoute {
            writer: writer.guid,
            destinations: writer.locators.clone(),
            reliable: writer.reliable,
            received: if writer.reliable {
                SequenceNumber(writer.order.expected().0 - 1)
            } else {
                writer.received
            },
            waiting: writer.order.waiting(),
            is_refused: writer.blocked && !self.presenter.is_accessing(),
        })
    }

    /// What was counted; no status is reset.
    #[must_use]
    pub const fn totals(&self) -> ReaderTotals {
        let statuses = &self.statuses;
        ReaderTotals {
            matched: statuses.subscription_matched.total.total_count,
            incompatible: statuses.incompatible_qos.count.total_count,
            deadlines_missed: statuses.deadline_missed.count.total_count,
            lost: statuses.sample_lost.total_count,
            rejected: statuses.sample_rejected.count.total_count,
            alive: statuses.liveliness_changed.alive_count,
            not_alive: statuses.liveliness_changed.not_alive_count,
            received_bytes: self.cache.counted.bytes,
            latencies: self.cache.counted.latencies,
        }
    }
}
