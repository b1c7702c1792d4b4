//! A participant that votes in the groups of a domain and is a member of none: what `plainsong witness` is.
//!
//! Groups are found by the endpoints of their members. A witness votes in those that have the voters that are
//! set for it ([`Config::voters`](crate::config::Config::voters)); others are not its business.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::atomic::Name;
use crate::base::locks::lock;
use crate::error::{PreconditionNotMet, Result};
use crate::participant::DomainParticipant;

/// The endpoints of a group come before those of its topic, which say how it is called. A vote waits for them
/// so long at most.
const NAME_AWAITED: Duration = Duration::from_secs(1);

/// Votes in all groups of the domain of a participant.
pub struct Witness {
    participant: DomainParticipant,
    groups_max: usize,
    /// Groups that it does not vote in, and was asked to; each is told of once.
    refused: Mutex<BTreeSet<Name>>,
    /// Since when there are groups of which the topic is not known, by their hashes.
    unnamed: Mutex<BTreeMap<u128, Instant>>,
}

/// What became of a group that has come or gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WitnessEvent {
    /// It votes in the group from now on.
    Votes {
        /// The topic; what endpoints of the group are called as long as nobody announces a writer.
        topic: String,
        /// The partition.
        partition: String,
    },
    /// It does not vote in the group.
    Refused {
        /// The topic.
        topic: String,
        /// The partition.
        partition: String,
        /// Why, and what to do.
        reason: String,
    },
    /// Nobody is left in the group.
    Ended {
        /// The topic.
        topic: String,
        /// The partition.
        partition: String,
    },
}

impl Witness {
    /// A witness in so many groups at most. Each takes a file of a few MiB in the state directory, which
    /// stays when the group ends.
    ///
    /// # Errors
    /// [`PreconditionNotMet`] when the participant has no name as a voter.
    pub fn new(participant: &DomainParticipant, groups_max: usize) -> Result<Self> {
        if participant.inner.voting.own().is_none() {
            return Err(PreconditionNotMet::NoVoter.into());
        }
        // What cannot be opened at all is told now.
        participant.inner.storage()?;
        Ok(Self {
            participant: participant.clone(),
            groups_max,
            refused: Mutex::default(),
            unnamed: Mutex::default(),
        })
    }

    /// Looks which groups there are, and begins to vote in those that have come. To be called every some ten
    /// milliseconds: opening a file takes its time, which discovery has not.
    ///
    /// # Errors
    /// The participant is deleted.
    pub fn look(&self) -> Result<Vec<WitnessEvent>> {
        let inner = &self.participant.inner;
        let now = Instant::now();
        let mut unnamed = lock(&self.unnamed);
        let there = self.participant.inspect(|control| {
            // By their hashes: members announce the names of the topics, too.
            let mut names = BTreeMap::new();
            let mut there = BTreeSet::new();
            for endpoint in control.remote_endpoints() {
                if let Some(hash) = inner.voting.group_of(endpoint.topic, endpoint.type_name) {
                    there.insert(hash);
                } else if endpoint.qos.is_atomic() {
                    let partition = endpoint.qos.partition.first().map_or("", String::as_str);
                    let name = Name::new(endpoint.topic, partition);
                    names.insert(name.hash(), name);
                }
            }
            unnamed.retain(|hash, _| there.contains(hash) && !names.contains_key(hash));
            let mut named = Vec::new();
            for hash in there {
                let mut since = || now.duration_since(*unnamed.entry(hash).or_insert(now));
                match names.remove(&hash) {
                    Some(name) => named.push((name, true)),
                    None => named.push((Name::of_hash(hash), since() >= NAME_AWAITED)),
                }
            }
            named
        })?;
        drop(unnamed);
        // Those of which the name may come yet are there, and nothing is begun in them.
        let (there, are_ready): (Vec<_>, Vec<_>) = there.into_iter().unzip();
        let mut events = Vec::new();
        let joined = inner.groups_there();
        for (name, group) in &joined {
            if group.is_witness() && !there.iter().any(|it| it.hash() == name.hash()) {
                inner.leave_group(group);
                events.push(WitnessEvent::Ended {
                    topic: name.topic.clone(),
                    partition: name.partition.clone(),
                });
            }
        }
        let mut refused = lock(&self.refused);
        refused.retain(|name| there.iter().any(|it| it.hash() == name.hash()));
        for (name, is_ready) in there.into_iter().zip(are_ready) {
            let is_same = |it: &Name| it.hash() == name.hash();
            if !is_ready || joined.iter().any(|(it, _)| is_same(it)) || refused.iter().any(is_same) {
                continue;
            }
            let (topic, partition) = (name.topic.clone(), name.partition.clone());
            events.push(match inner.witness_group(name.clone(), self.groups_max) {
                Ok(()) => WitnessEvent::Votes { topic, partition },
                Err(error) => {
                    refused.insert(name);
                    WitnessEvent::Refused { topic, partition, reason: error.to_string() }
                }
            });
        }
        Ok(events)
    }
}
