//! What is known of a group from outside.

use std::fmt;

use plainsong_proto::guid::Guid;
use plainsong_proto::time::Duration;

use super::AtomicStranger;
use super::voter::{AtomicVoter, describe, tally};

/// One member of a group, as somebody outside sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ObservedMember {
    /// The participant.
    pub participant: Guid,
    /// Its name; empty if it is not known.
    pub name: String,
    /// Its process and host, as far as it says: `process 12 "plotter" on host "robot"`.
    pub process: String,
    /// As which of the voters it votes, where they have names.
    pub voter: Option<String>,
    /// The last position that it has told; `None` if it has told none in this epoch.
    pub position: Option<u64>,
    /// It has everything that came before the epoch.
    pub is_caught_up: bool,
    /// It keeps what it has on a disk.
    pub is_stored: bool,
    /// Its readers take no more: it delivers nothing, and who writes waits for it.
    pub is_held: bool,
    /// It has stopped, until it hears how the epoch ends.
    pub is_changing: bool,
    /// It is not heard, here or by another member: it is about to be excluded.
    pub is_suspected: bool,
    /// How long ago it was heard last; where it has told no position, how long its epoch is observed.
    pub silent_for: Duration,
}

/// The group of an ATOMIC topic, as somebody outside sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ObservedGroup {
    /// The topic.
    pub topic: String,
    /// The partition, empty for the default one.
    pub partition: String,
    /// The number of the epoch; 0 if no member has told it yet.
    pub epoch: u64,
    /// The last position that any member has delivered.
    pub position: u64,
    /// A member has stopped: somebody comes, goes or is lost.
    pub is_changing: bool,
    /// A member has stopped for two seconds, or no majority of the voters is heard: nothing is delivered, or
    /// nothing will be when the epoch has to end.
    pub is_suspended: bool,
    /// All members, in the order in which they joined.
    pub members: Vec<ObservedMember>,
    /// Participants that ask to be members.
    pub joining: Vec<Guid>,
    /// The names of its voters; none where the members vote.
    pub voter_names: Vec<String>,
    /// Those who vote now, and whether they are heard.
    pub voters: Vec<AtomicVoter>,
    /// Participants with the topic that are of another group, because other voters are set for them.
    pub strangers: Vec<AtomicStranger>,
}

impl ObservedMember {
    pub(super) fn person(&self) -> String {
        describe(self.participant, &self.name, &self.process)
    }
}

impl ObservedGroup {
    /// Whether anybody is heard who is a member or would be one.
    #[must_use]
    pub fn is_there(&self) -> bool {
        !(self.members.is_empty() && self.joining.is_empty())
    }

    /// Whether there is an epoch, all its members take part, none of them is suspected, all voters that have
    /// names are heard, and the topic has no other group.
    #[must_use]
    pub fn is_well(&self) -> bool {
        let are_heard = self.voter_names.is_empty() || self.voters.iter().all(|it| it.is_heard);
        let is_well = |it: &ObservedMember| it.position.is_some() && !it.is_suspected && !it.is_changing;
        let is_one = self.strangers.is_empty();
        is_one
            && are_heard
            && !self.members.is_empty()
            && !self.is_suspended
            && self.members.iter().all(is_well)
    }
}

/// One line, and one for each member.
impl fmt::Display for ObservedGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.topic)?;
        if !self.partition.is_empty() {
            write!(f, " in partition {}", self.partition)?;
        }
        match (self.members.len(), self.epoch) {
            (0, _) => f.write_str(": no member is heard")?,
            (count, epoch) => write!(f, ": epoch {epoch}, members {count}, position {}", self.position)?,
        }
        if !self.voter_names.is_empty() {
            write!(f, ", voters {}", self.voter_names.join(","))?;
        }
        if self.is_suspended {
            write!(f, ", suspended: {}", tally(&self.voters))?;
        } else if self.is_changing {
            f.write_str(", changing")?;
        }
        for member in &self.members {
            write!(f, "\n  {member}")?;
            if let Some(position) = member.position {
                write!(f, ", behind by {}", self.position.saturating_sub(position))?;
            }
        }
        let is_member =
            |voter: &AtomicVoter| self.members.iter().any(|it| it.voter.as_ref() == Some(&voter.name));
        let named = self.voters.iter().filter(|_| !self.voter_names.is_empty());
        for voter in named.filter(|it| !is_member(it)) {
            let state = match voter.participant {
                None => " is not heard",
                Some(_) if voter.is_heard => ", which is no member, is heard",
                Some(_) => ", which is no member, is not heard",
            };
            write!(f, "\n  voter {}{state}", voter.name)?;
        }
        for participant in &self.joining {
            write!(f, "\n  {participant} asks to join")?;
        }
        Ok(())
    }
}

impl fmt::Display for ObservedMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.participant)?;
        if !self.name.is_empty() {
            write!(f, " \"{}\"", self.name)?;
        }
        if !self.process.is_empty() {
            write!(f, " ({})", self.process)?;
        }
        if let Some(voter) = &self.voter {
            write!(f, " voter {voter}")?;
        }
        f.write_str(match self.position {
            _ if self.is_changing => " changing",
            None => " not heard in this epoch since observation began",
            Some(_) => " active",
        })?;
        match self.position {
            // Nobody knows for how long.
            None if self.is_suspected => f.write_str(", suspected")?,
            Some(_) if self.is_suspected => {
                write!(f, ", suspected: silent for {} ms", self.silent_for.0 / 1_000_000)?;
            }
            _ => {}
        }
        if self.is_stored {
            f.write_str(", on a disk")?;
        }
        if self.is_held {
            f.write_str(", takes nothing")?;
        }
        if self.position.is_some() && !self.is_caught_up {
            f.write_str(", not caught up")?;
        }
        self.position.map_or(Ok(()), |position| write!(f, ", position {position}"))
    }
}
