//! Why a group takes nothing and delivers nothing, in words, for who waits for it in vain.

use plainsong_proto::atomic::{MEMBERS_MAX, SUSPENDED_AFTER, Storage, View};
use plainsong_proto::guid::{Guid, GuidPrefix};
use plainsong_proto::time::Instant;

use super::{GroupSlot, NotWritten, State};
use crate::atomic::storage::StoreError;
use crate::atomic::voter::{is_majority, tally, who};
use crate::atomic::{AtomicGroup, AtomicMember, AtomicVoter, MemberPhase};
use crate::base::locks::lock;
use crate::error::{Error, Result};
use crate::runtime::Rank;

impl GroupSlot {
    /// Why a change was refused, or is not delivered, and what to do.
    pub(crate) fn explain(&self, refused: NotWritten) -> String {
        let group = self.look();
        match group.phase {
            MemberPhase::Gone => "this participant has left the group".to_owned(),
            MemberPhase::Joining if !group.voters.is_empty() && group.votes.iter().all(|it| it.participant.is_none()) => {
                let names = group.voters.join(", ");
                format!(
                    "this participant cannot join the group: no participant is known that votes as {names}; set PLAINSONG_VOTER to \
                     one of these names for each process that is to vote, and PLAINSONG_STATE_DIRECTORY to where it keeps its votes, \
                     or run plainsong witness; a majority of the names must vote"
                )
            }
            _ if group.is_suspended => format!(
                "its group is suspended: {}; it goes on when a majority of them runs and is reached",
                tally(&group.votes)
            ),
            MemberPhase::Joining if group.voters.is_empty() || is_majority(&group.votes) => {
                "this participant is joining the group: write with a longer max_blocking_time, or wait with sync() first"
                    .to_owned()
            }
            MemberPhase::Joining => format!(
                "this participant cannot join the group: {}; start those that are missing (the voters of a group stay as \
                 they are: with others a new group begins, in new state directories)",
                tally(&group.votes)
            ),
            MemberPhase::Changing => {
                "its group is changing, since a member comes, goes or is lost: try again".to_owned()
            }
            MemberPhase::Active if refused == NotWritten::Full => self.explain_full(&group),
            MemberPhase::Active => "its group was changing until now: try again".to_owned(),
        }
    }

    /// Who has delivered least.
    fn explain_full(&self, group: &AtomicGroup) -> String {
        let own = self.guid.prefix.participant();
        let is_held = |it: &&AtomicMember| it.is_held;
        if group.waiting > 0 || group.members.iter().any(|it| it.participant == own && it.is_held) {
            return "a reader of this participant is full, or a reliable reader with EVENTUAL consistency keeps a \
                    writer of it waiting: take samples"
                .to_owned();
        }
        let others = || group.members.iter().filter(|it| it.participant != own);
        let Some(slowest) = others().find(is_held).or_else(|| others().min_by_key(|it| it.position)) else {
            return "what this participant wrote is not yet on its disk".to_owned();
        };
        let name = self.slot.look(|control| who(control, slowest.participant));
        let lag = group.position.saturating_sub(slowest.position);
        let why = match slowest {
            it if it.is_held => "its readers are full and have to take samples",
            it if it.is_suspected => "it is not heard and is about to be excluded",
            _ => "slow_member_delay of CONSISTENCY says when such a member is excluded",
        };
        let in_window = group.in_window;
        format!("{in_window} samples are not delivered everywhere: {name} is behind by {lag}, {why}")
    }

    /// Why this participant is no member any more.
    pub(crate) fn why_gone(&self, describe: impl FnOnce() -> String) -> Error {
        self.check_disk().err().unwrap_or_else(|| Error::LeftGroup { entity: describe() })
    }

    /// Why a member that has to keep what it holds leaves, or has left.
    pub(super) fn disk_error<'a>(&self, state: &'a State) -> Option<&'a StoreError> {
        state.store_error.as_ref().filter(|_| self.keeps != Storage::None)
    }

    /// Refuses to wait for what needs a disk that has failed.
    pub(crate) fn check_disk(&self) -> Result<()> {
        let _rank = Rank::Group.hold();
        self.disk_error(&lock(&self.state)).map_or(Ok(()), |error| Err(error.clone().into()))
    }

    /// Those who vote, as far as is known; those of `named` vote by name.
    pub(super) fn votes(
        &self,
        state: &State,
        group: &AtomicGroup,
        named: &[(String, Guid)],
        now: Instant,
    ) -> Vec<AtomicVoter> {
        // Who has nothing to say is silent as long as nothing changes.
        let is_quiet = group.phase == MemberPhase::Active && !group.is_suspended;
        let is_heard = |guid: Guid| {
            let member = group.members.iter().find(|it| it.participant == guid);
            guid.prefix == self.guid.prefix
                || member.map_or_else(|| is_quiet || state.was_heard(guid.prefix, now), |it| !it.is_suspected)
        };
        let of_name = |name: &String| {
            let own = self.voting.own().filter(|own| own == name).map(|_| self.guid.prefix.participant());
            let mut all = named.iter().filter(|(it, _)| it == name).map(|(_, guid)| *guid).chain(own);
            let heard = all.clone().find(|guid| is_heard(*guid));
            let participant = heard.or_else(|| all.next());
            AtomicVoter { name: name.clone(), participant, is_heard: heard.is_some() }
        };
        if !self.voting.names().is_empty() {
            return self.voting.names().iter().map(of_name).collect();
        }
        let of_view = |view: &View| -> Vec<AtomicVoter> {
            let of = |id: &_| view.members.iter().find(|it| it.id.voter() == *id).map(|it| it.id.prefix);
            let voter = |prefix: Option<GuidPrefix>| {
                let participant = prefix.map(|prefix| prefix.participant());
                let is_heard = participant.is_some_and(is_heard);
                AtomicVoter { name: String::new(), participant, is_heard }
            };
            view.voters.iter().map(of).map(voter).collect()
        };
        state.group.member().and_then(|member| member.view()).map(of_view).unwrap_or_default()
    }

    /// Where the members vote, their names are those of their participants.
    pub(super) fn name_voters(&self, voters: &mut [AtomicVoter]) {
        let own = self.guid.prefix.participant();
        self.slot.look(|control| {
            for voter in voters.iter_mut().filter(|it| it.name.is_empty()) {
                voter.name = match voter.participant {
                    Some(guid) if guid == own => "this participant".to_owned(),
                    Some(guid) => who(control, guid),
                    None => "one that is no member any more".to_owned(),
                };
            }
        });
    }
}

impl State {
    /// A participant sent something.
    pub(super) fn hear(&mut self, from: GuidPrefix, now: Instant) {
        if self.voices.len() >= 2 * MEMBERS_MAX && !self.voices.contains_key(&from) {
            let oldest = self.voices.iter().min_by_key(|(_, at)| **at).map(|(prefix, _)| *prefix);
            oldest.and_then(|prefix| self.voices.remove(&prefix));
        }
        self.voices.insert(from, now);
    }

    fn was_heard(&self, from: GuidPrefix, now: Instant) -> bool {
        self.voices.get(&from).is_some_and(|at| now.since(*at) < SUSPENDED_AFTER)
    }
}
