//! Voters with names: to whom messages go, and what is kept of their votes.

use std::sync::Weak;

use plainsong_proto::atomic::{Member, Status, Storage};
use plainsong_proto::discovery::Participant;
use plainsong_proto::guid::Guid;

use super::{GroupSlot, State};
use crate::atomic::lane::Addressee;
use crate::atomic::storage::StoreError;
use crate::atomic::voting::{MESSAGES, Voting};
use crate::atomic::{AtomicGroup, AtomicStranger};
use crate::runtime::dispatch;

impl GroupSlot {
    /// It votes, and is no member.
    pub(crate) const fn is_witness(&self) -> bool {
        self.is_witness
    }

    pub(super) fn addressee(&self, state: &State) -> Addressee {
        let member = state.group.member();
        let has_names = !self.voting.names().is_empty();
        let of_member = member.filter(|_| !has_names).and_then(Member::voter);
        Addressee {
            member: member.map(Member::id),
            voter: self.voting.own_id().or(of_member),
            has_lasting_voters: has_names || self.keeps != Storage::None,
        }
    }

    /// What is kept is durable up to a change; or nothing is any more.
    fn durable(&self, through: Result<u64, StoreError>) {
        dispatch::with_outbox(|out| {
            self.run(out, |state, now, _| match through {
                Ok(through) => state.group.on_stored(now.mono, through),
                Err(error) => {
                    state.store_error = Some(error);
                    state.group.lose_disk(now.mono);
                    state.moved = true;
                }
            });
            self.slot.report(out);
        });
    }

    /// Notes whose endpoints of the same topic do not match because other voters are set for them.
    pub(crate) fn add_strangers(&self, control: &Participant, group: &mut AtomicGroup) {
        let reader = self.messages.reader.guid;
        let pairs = control.mismatched_pairs().filter(|(_, it, _)| *it == reader);
        group.strangers.extend(pairs.filter_map(|(writer, _, _)| stranger(control, writer)));
    }

    /// A writer does not match an endpoint of this group: whose it is, if other voters are set for that.
    pub(crate) fn meet(&self, writer: Guid, reader: Guid) -> Option<AtomicStranger> {
        let stranger = self.slot.look(|control| stranger(control, writer));
        let stranger = stranger.filter(|_| reader == self.messages.reader.guid)?;
        dispatch::with_outbox(|out| {
            self.run(out, |state, _, _| self.note(state, Status::Stranger));
            self.slot.report(out);
        });
        Some(stranger)
    }
}

/// Whose an endpoint of a group with other voters is.
fn stranger(control: &Participant, writer: Guid) -> Option<AtomicStranger> {
    let voters = Voting::names_in(control.endpoint(writer)?.type_name, MESSAGES)?;
    Some(AtomicStranger { participant: writer.prefix.participant(), voters })
}

/// What the thread that keeps things calls.
pub(super) fn on_durable(group: Weak<GroupSlot>) -> impl Fn(Result<u64, StoreError>) + Send + Sync {
    move |through| {
        if let Some(group) = group.upgrade() {
            group.durable(through);
        }
    }
}
