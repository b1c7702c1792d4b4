//! Why a participant told no type of an endpoint, and asking it once more.

use super::participant::Participant;
use crate::guid::Guid;
use crate::outbox::Outbox;
use crate::time::Now;

/// Why the type of an endpoint is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum WhyUntold {
    /// Its announcement describes no type.
    NotTold,
    /// It has the hash of one, and its participant serves no type lookup requests.
    NoService,
    /// Its participant did not answer in time, or not with all that the type consists of.
    NotAnswered,
}

impl Participant {
    /// Why there is no type of an endpoint, where [`Self::told_type`] says so.
    #[must_use]
    pub fn why_untold(&self, endpoint: Guid) -> WhyUntold {
        let ids = self.matching.get(endpoint).map(|it| it.type_ids).unwrap_or_default();
        if ids.complete.or(ids.minimal).is_none() {
            WhyUntold::NotTold
        } else if self.matching.lookups.has_service(endpoint.prefix) {
            WhyUntold::NotAnswered
        } else {
            WhyUntold::NoService
        }
    }

    /// Asks a participant once more for the type of an endpoint, if it did not answer before.
    pub fn ask_type_again(&mut self, now: Now, endpoint: Guid, out: &mut Outbox) {
        let ids = self.matching.get(endpoint).map(|it| it.type_ids).unwrap_or_default();
        for root in [ids.complete, ids.minimal].into_iter().flatten() {
            self.matching.lookups.ask_again(endpoint.prefix, root);
        }
        self.request_types(now, out);
    }
}
