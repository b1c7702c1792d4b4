//! What the application ignores for good (DCPS 1.4 §2.2.2.2.1.14 to .17): it is forgotten, and nothing that
//! is heard of it later is believed. Others are not told.

use std::collections::BTreeSet;

use super::config::DiscoveryError;
use super::participant::Participant;
use crate::guid::{Guid, GuidPrefix};
use crate::outbox::Outbox;
use crate::time::Now;
use crate::tuning::discovery::IGNORED_MAX;

/// What is ignored.
#[derive(Debug)]
pub(super) struct Ignored {
    participants: BTreeSet<GuidPrefix>,
    endpoints: BTreeSet<Guid>,
    topics: BTreeSet<String>,
}

impl Ignored {
    pub(super) const fn new() -> Self {
        Self { participants: BTreeSet::new(), endpoints: BTreeSet::new(), topics: BTreeSet::new() }
    }

    /// Whether an endpoint is ignored, by itself or with its participant.
    pub(super) fn has(&self, endpoint: Guid) -> bool {
        self.participants.contains(&endpoint.prefix) || self.endpoints.contains(&endpoint)
    }

    /// Whether a participant is ignored.
    pub(super) fn has_participant(&self, participant: GuidPrefix) -> bool {
        self.participants.contains(&participant)
    }

    /// Whether remote endpoints of a topic are ignored.
    pub(super) fn has_topic(&self, topic: &str) -> bool {
        self.topics.contains(topic)
    }
}

impl Participant {
    /// Ignores a participant: it seems to have left and never to come back. Ignoring this very participant
    /// means that its own writers and readers do not match each other.
    ///
    /// # Errors
    /// [`DiscoveryError::TooManyIgnored`].
    pub fn ignore_participant(
        &mut self,
        now: Now,
        participant: GuidPrefix,
        out: &mut Outbox,
    ) -> Result<(), DiscoveryError> {
        remember(&mut self.matching.ignored.participants, participant)?;
        self.cease_to_lead();
        if participant == self.config.prefix {
            self.matching.part_ignored(out);
        } else {
            self.forget(now, participant, out);
        }
        Ok(())
    }

    /// Ignores a writer or reader: it matches nothing here. Of a local one, that is what this participant
    /// has; others still match it.
    ///
    /// # Errors
    /// [`DiscoveryError::TooManyIgnored`].
    pub fn ignore_endpoint(&mut self, endpoint: Guid, out: &mut Outbox) -> Result<(), DiscoveryError> {
        remember(&mut self.matching.ignored.endpoints, endpoint)?;
        self.cease_to_lead();
        if endpoint.prefix == self.config.prefix {
            self.matching.part_ignored(out);
        } else {
            self.forget_endpoint(endpoint, out);
        }
        Ok(())
    }

    /// Ignores all writers and readers that other participants have of a topic.
    ///
    /// # Errors
    /// [`DiscoveryError::TooManyIgnored`].
    pub fn ignore_topic(&mut self, topic: &str, out: &mut Outbox) -> Result<(), DiscoveryError> {
        remember(&mut self.matching.ignored.topics, topic.to_owned())?;
        self.cease_to_lead();
        let remote: Vec<Guid> =
            self.remote_endpoints().filter(|it| it.topic == topic).map(|it| it.guid).collect();
        remote.into_iter().for_each(|guid| self.forget_endpoint(guid, out));
        Ok(())
    }
}

fn remember<T: Ord>(set: &mut BTreeSet<T>, one: T) -> Result<(), DiscoveryError> {
    if set.len() >= IGNORED_MAX && !set.contains(&one) {
        return Err(DiscoveryError::TooManyIgnored(IGNORED_MAX));
    }
    set.insert(one);
    Ok(())
}
