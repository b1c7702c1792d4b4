//! Whether any two endpoints match, those of others among themselves included: what a tool shows that has
//! none itself.

use super::explain::Mismatch;
use super::matching::MismatchReason;
use super::participant::Participant;
use super::type_lookup::TypeRelation;
use crate::guid::Guid;
use crate::outbox::Outbox;
use crate::time::Now;

/// Whether a writer and a reader of one topic match.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Judgement {
    /// They do, as far as their announcements tell.
    Matched,
    /// They do not, and why.
    Mismatched(Box<Mismatch>),
    /// Whoever has one of the types is asked for it.
    Undecided,
}

impl Participant {
    /// Whether a writer and a reader of one topic match, whoever has them; `None` when one of them is not
    /// known, or their topics differ. What two others make of each other follows from what they announce: by
    /// the same rules as for endpoints of this participant, but for their addresses, which are not compared.
    ///
    /// Types that were not asked for count as alike if their names are: see [`Self::ask_types`].
    #[must_use]
    pub fn judge(&self, writer: Guid, reader: Guid) -> Option<Judgement> {
        let (offering, requesting) = (self.matching.get(writer)?, self.matching.get(reader)?);
        if offering.topic != requesting.topic {
            return None;
        }
        if [writer.prefix, reader.prefix].contains(&self.config.prefix) {
            return Some(match self.matching.is_matched(writer, reader) {
                Some(true) => Judgement::Matched,
                Some(false) => Judgement::Mismatched(Box::new(self.mismatch(writer, reader)?)),
                None => Judgement::Undecided,
            });
        }
        let relation = self.matching.told_type_relation(writer, reader);
        if relation == TypeRelation::Undecided {
            return Some(Judgement::Undecided);
        }
        let reason = self.matching.discord(writer, reader, &relation);
        Some(reason.map_or(Judgement::Matched, |reason| self.mismatched(writer, reader, reason)))
    }

    fn mismatched(&self, writer: Guid, reader: Guid, reason: MismatchReason) -> Judgement {
        let mismatch = self.explain(writer, reader, reason);
        mismatch.map_or(Judgement::Undecided, |mismatch| Judgement::Mismatched(Box::new(mismatch)))
    }

    /// Pairs of a writer and a reader of one topic, whoever has them, by topics.
    pub fn pairs(&self) -> impl Iterator<Item = (Guid, Guid)> + '_ {
        self.matching.pairs_of_topics()
    }

    /// Asks others for those of their types by which endpoints of one topic may differ, also where this
    /// participant has no endpoint of it. The answers are there some milliseconds later, or never; how many
    /// questions a participant is asked has the usual limit.
    pub fn ask_types(&mut self, now: Now, out: &mut Outbox) {
        if self.is_present() {
            self.matching.want_types_that_differ();
            let first = out.transmits().len();
            self.request_types(now, out);
            out.merge(first);
        }
    }

    /// Whether a type is asked for, and neither known yet nor given up.
    #[must_use]
    pub fn awaits_types(&self) -> bool {
        self.matching.lookups.is_waiting()
    }
}
