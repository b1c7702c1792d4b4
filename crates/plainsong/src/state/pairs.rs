//! Whether the endpoints of other participants match each other, for tools that have none themselves.

use plainsong_proto::discovery::{Judgement, are_internal};
use plainsong_proto::guid::Guid;

use super::Bounded;
use crate::error::Result;
use crate::participant::DomainParticipant;

/// A writer and a reader of one topic, and whether they match.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DiscoveredPair {
    /// The writer.
    pub writer: Guid,
    /// The reader.
    pub reader: Guid,
    /// Whether they match, and why not.
    pub judgement: Judgement,
}

/// How much of its domain a participant knows. Once nothing of it changes for a while, that is all there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscoveryProgress {
    /// Other participants.
    pub participants: usize,
    /// Of these, those that have not answered where they say that they are.
    pub unproven: usize,
    /// Their writers and readers.
    pub endpoints: usize,
    /// A type is asked for, and neither known yet nor given up.
    pub awaits_types: bool,
}

impl DomainParticipant {
    /// Whether a writer and a reader of one topic match and, if not, all that keeps them apart, whoever has
    /// them: what two others make of each other follows from what they announced. `None` when one of them is
    /// not known, or their topics differ.
    ///
    /// Types of others that were not asked for count as alike if their names are: [`Self::ask_types`] asks.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`], [`crate::Error::AlreadyDeleted`].
    pub fn judge(&self, writer: Guid, reader: Guid) -> Result<Option<Judgement>> {
        self.inspect(|control| control.judge(writer, reader))
    }

    /// The same of all pairs of a writer and a reader of one topic, by topics, `pairs_max` at most. Those of
    /// the product itself are left out unless `internal` says otherwise.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`], [`crate::Error::AlreadyDeleted`].
    pub fn discovered_pairs(&self, pairs_max: usize, internal: bool) -> Result<Bounded<DiscoveredPair>> {
        let (pairs, left_out) = self.inspect(|control| {
            let mut pairs = control.pairs().filter(|it| internal || !are_internal(it.0, it.1));
            let some: Vec<_> = pairs.by_ref().take(pairs_max).collect();
            (some, pairs.count())
        })?;
        let mut items = Vec::with_capacity(pairs.len());
        // Not all under one lock: comparing types takes its time.
        for some in pairs.chunks(JUDGED_AT_ONCE) {
            items.extend(self.inspect(|control| {
                let judged = some.iter().filter_map(|(writer, reader)| {
                    let judgement = control.judge(*writer, *reader)?;
                    Some(DiscoveredPair { writer: *writer, reader: *reader, judgement })
                });
                judged.collect::<Vec<_>>()
            })?);
        }
        Ok(Bounded { items, left_out })
    }

    /// Asks others for those of their types by which endpoints of one topic may differ, also where this
    /// participant has no endpoint of it. [`DiscoveryProgress::awaits_types`] tells whether answers are due.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`], [`crate::Error::AlreadyDeleted`].
    pub fn ask_types(&self) -> Result<()> {
        self.inner.slot()?.control(|control, now, out| control.ask_types(now, out));
        Ok(())
    }

    /// How much of its domain it knows, which costs less than [`Self::state`].
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`], [`crate::Error::AlreadyDeleted`].
    pub fn discovery_progress(&self) -> Result<DiscoveryProgress> {
        self.inspect(|control| DiscoveryProgress {
            participants: control.remote_participants().count(),
            unproven: control.remote_participants().filter(|remote| !remote.proven).count(),
            endpoints: control.remote_endpoints().count(),
            awaits_types: control.awaits_types(),
        })
    }
}

/// Pairs that are judged under one lock.
const JUDGED_AT_ONCE: usize = 64;
