//! What a process does in a group: a member and a voter with a model of agreement between them, or what
//! products have.

use std::sync::Arc;

use plainsong_proto::atomic::coordinator::{Coordinator, Proposal};
use plainsong_proto::atomic::group::Group;
use plainsong_proto::atomic::{Action, EntryHeader, Member, MemberId, Message, Refused};
use plainsong_proto::time::Instant;

use super::entry::Entry;

pub(super) enum Participant {
    Model { member: Option<Box<Member<Entry>>>, coordinator: Box<Coordinator> },
    Real(Box<Group<Entry>>),
}

impl Participant {
    pub(super) fn member(&self) -> Option<&Member<Entry>> {
        match self {
            Self::Model { member, .. } => member.as_deref(),
            Self::Real(group) => group.member(),
        }
    }

    pub(super) fn coordinator(&mut self) -> Option<&mut Coordinator> {
        match self {
            Self::Model { coordinator, .. } => Some(coordinator),
            Self::Real(_) => None,
        }
    }

    pub(super) fn poll(&mut self) -> Option<Action<Entry>> {
        match self {
            Self::Model { member, .. } => member.as_mut()?.poll(),
            Self::Real(group) => group.poll(),
        }
    }

    pub(super) fn tick(&mut self, now: Instant, votes: bool, proposals: &mut Vec<Proposal<Entry>>) {
        match self {
            Self::Model { member, coordinator } => {
                if let Some(member) = member
                    && member.next_deadline().is_some_and(|due| due <= now)
                {
                    member.tick(now);
                }
                if votes {
                    coordinator.tick(now, proposals);
                }
            }
            Self::Real(group) => group.tick(now),
        }
    }

    pub(super) fn flush(&mut self, now: Instant) {
        match self {
            Self::Model { member: Some(member), .. } => member.flush(now),
            Self::Model { .. } => {}
            Self::Real(group) => group.flush(now),
        }
    }

    pub(super) fn leave(&mut self, now: Instant) {
        match self {
            Self::Model { member: Some(member), .. } => member.leave(now),
            Self::Model { .. } => {}
            Self::Real(group) => group.leave(now),
        }
    }

    pub(super) fn hold(&mut self) {
        match self {
            Self::Model { member: Some(member), .. } => member.hold(),
            Self::Model { .. } => {}
            Self::Real(group) => group.hold(),
        }
    }

    pub(super) fn resume(&mut self, now: Instant) {
        match self {
            Self::Model { member: Some(member), .. } => member.resume(now),
            Self::Model { .. } => {}
            Self::Real(group) => group.resume(now),
        }
    }

    pub(super) fn replace_history(&mut self, through: u64, state: Arc<[u8]>) {
        match self {
            Self::Model { member: Some(member), .. } => member.replace_history(through, state),
            Self::Model { .. } => {}
            Self::Real(group) => group.replace_history(through, state),
        }
    }

    pub(super) fn on_message(
        &mut self,
        now: Instant,
        message: Message<Entry>,
        votes: bool,
        proposals: &mut Vec<Proposal<Entry>>,
    ) {
        match self {
            Self::Model { member, coordinator } => {
                if votes {
                    coordinator.on_message(now, &message, proposals);
                }
                if let Some(member) = member {
                    member.on_message(now, message);
                }
            }
            Self::Real(group) => group.on_message(now, message),
        }
    }

    pub(super) fn on_entry(&mut self, now: Instant, from: MemberId, header: EntryHeader, entry: Entry) {
        match self {
            Self::Model { member: Some(member), .. } => member.on_entry(now, from, header, entry),
            Self::Model { .. } => {}
            Self::Real(group) => group.on_entry(now, from, header, entry),
        }
    }

    pub(super) fn lose_disk(&mut self, now: Instant) {
        match self {
            Self::Model { member: Some(member), .. } => member.lose_disk(now),
            Self::Model { .. } => {}
            Self::Real(group) => group.lose_disk(now),
        }
    }

    pub(super) fn on_stored(&mut self, now: Instant, number: u64) {
        match self {
            Self::Model { member: Some(member), .. } => member.on_stored(now, number),
            Self::Model { .. } => {}
            Self::Real(group) => group.on_stored(now, number),
        }
    }

    pub(super) fn write(&mut self, now: Instant, entry: Entry) -> Result<(), Refused> {
        match self {
            Self::Model { member: Some(member), .. } => member.write(now, entry),
            Self::Model { .. } => Err(Refused::Gone),
            Self::Real(group) => group.write(now, entry),
        }
    }

    pub(super) fn next_deadline(&self, votes: bool) -> Option<Instant> {
        match self {
            Self::Model { member, coordinator } => {
                let member = member.as_deref().and_then(Member::next_deadline);
                let voter = if votes { coordinator.next_deadline() } else { None };
                member.into_iter().chain(voter).min()
            }
            Self::Real(group) => group.next_deadline(),
        }
    }
}
