//! Deliberate mistakes: a simulator that notices none of them proves nothing.
//!
//! Nearly all are made around the protocol core: a driver misleads a member or a voter. Two can only be made
//! by the member itself, which has a feature for them that no product has.

use std::sync::Arc;

use plainsong_proto::atomic::message::{Join, Row, Transfer};
use plainsong_proto::atomic::mistake::Mistake as OfMember;
use plainsong_proto::atomic::view::Report;
use plainsong_proto::atomic::{Decision, Destination, EntryHeader, Message, Phase};

use super::entry::Entry;
use super::plan::Length;
use super::verdict::run;
use super::world::World;
use crate::trace::Detail;

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// See [`Mistake::ALL`].
    StaleCut,
    /// See [`Mistake::ALL`].
    AckAfterFreeze,
    /// See [`Mistake::ALL`].
    ExtraIncumbent,
    /// See [`Mistake::ALL`].
    SameNonce,
    /// See [`Mistake::ALL`].
    FewHolders,
    /// See [`Mistake::ALL`].
    KeepClock,
    /// See [`Mistake::ALL`].
    GreatestCut,
    /// See [`Mistake::ALL`].
    DecideTwice,
    /// See [`Mistake::ALL`].
    DropTail,
    /// See [`Mistake::ALL`].
    PromiseEarly,
    /// See [`Mistake::ALL`].
    AckOneMore,
    /// See [`Mistake::ALL`].
    ForgetFsync,
    /// See [`Mistake::ALL`].
    ClaimHistory,
    /// See [`Mistake::ALL`].
    ReportUnsynced,
    /// See [`Mistake::ALL`].
    DropEarly,
    /// See [`Mistake::ALL`].
    CatchUpUnsynced,
    /// See [`Mistake::ALL`].
    JoinUnclaimed,
}

/// Seeds tried before a mistake counts as unnoticed.
const SEEDS_MAX: u64 = 2_000;

impl Mistake {
    /// All, and what goes wrong. `MUTATIONS.md` has the same rows.
    pub const ALL: &'static [(Self, &'static str)] = &[
        (Self::StaleCut, "an epoch is cut to what rows said before its members stopped"),
        (Self::AckAfterFreeze, "who has stopped vouches for what still arrives"),
        (Self::ExtraIncumbent, "somebody goes on who has not reported"),
        (Self::SameNonce, "a process that starts again is the member that it was"),
        (Self::FewHolders, "the first member of an epoch need not hold what is delivered"),
        (Self::KeepClock, "clocks do not pass the stamps that are received"),
        (Self::GreatestCut, "an epoch is cut to the most that somebody holds"),
        (Self::DecideTwice, "one epoch is decided more than once"),
        (Self::DropTail, "what was sent after the cut is not sent again"),
        (Self::PromiseEarly, "clocks promise though entries are missing"),
        (Self::AckOneMore, "members are taken to hold one entry more than they do"),
        (Self::ForgetFsync, "what is not on a disk is said to be"),
        (Self::ClaimHistory, "who has just joined is taken to have what was before"),
        (Self::ReportUnsynced, "a report counts what is not on the disk"),
        (Self::DropEarly, "what does not count leaves the disk before its epoch"),
        (Self::CatchUpUnsynced, "who has joined is taken to have what is not on its disk"),
        (Self::JoinUnclaimed, "who would join may forget under which name"),
    ];

    /// The first seed with which it is noticed, and by which invariant.
    #[must_use]
    pub fn first_noticed(self) -> Option<(u64, &'static str)> {
        (0..SEEDS_MAX).find_map(|seed| {
            let verdict = run(seed, Length::Short, Detail::Hash, Some(self));
            verdict.violations.first().map(|violation| (seed, violation.invariant))
        })
    }

    pub(super) const fn of_member(self) -> Option<OfMember> {
        match self {
            Self::KeepClock => Some(OfMember::KeepClock),
            Self::DropTail => Some(OfMember::DropTail),
            Self::DropEarly => Some(OfMember::DropEarly),
            Self::CatchUpUnsynced => Some(OfMember::CatchUpUnsynced),
            Self::JoinUnclaimed => Some(OfMember::JoinUnclaimed),
            _ => None,
        }
    }
}

impl World {
    /// A member or voter is told something else than was said.
    pub(super) fn misheard(&mut self, to: usize, message: Message<Entry>) -> Message<Entry> {
        let Some(mistake) = self.mistake else { return message };
        match message {
            Message::Row(row) => {
                if mistake == Mistake::StaleCut {
                    self.processes[to].rows.insert(row.from, row.clone());
                }
                Message::Row(self.misheard_row(mistake, row))
            }
            Message::Report { instance, report } => {
                Message::Report { instance, report: self.misheard_report(mistake, instance, report) }
            }
            // And it has nothing of it for long.
            Message::Join(join) if mistake == Mistake::ClaimHistory => {
                Message::Join(Join { ready: true, ..join })
            }
            Message::Transfer(part) if mistake == Mistake::ClaimHistory && !self.is_healed => {
                Message::Transfer(Transfer { instance: u64::MAX, ..part })
            }
            other => other,
        }
    }

    fn misheard_row(&self, mistake: Mistake, mut row: Row) -> Row {
        let view = self.truth.view(row.instance, row.epoch);
        match mistake {
            Mistake::PromiseEarly => row.sent = 0,
            Mistake::FewHolders if view.is_some_and(|view| view.rank_of(row.from) == Some(0)) => {
                row.acked = self.truth.sent_on(row.instance, row.epoch);
            }
            Mistake::AckOneMore => {
                let sent = self.truth.sent_on(row.instance, row.epoch);
                for (acked, sent) in row.acked.iter_mut().zip(sent) {
                    *acked = (*acked + 1).min(sent);
                }
            }
            _ => {}
        }
        row
    }

    fn misheard_report(&self, mistake: Mistake, instance: u64, mut report: Report) -> Report {
        match mistake {
            Mistake::ClaimHistory => report.caught_up = true,
            Mistake::ReportUnsynced => {
                if let Some(held) = self.truth.held(instance, report.epoch, report.id) {
                    report.holds.clone_from(held);
                }
            }
            _ => {}
        }
        report
    }

    /// Something else is put to the vote than the core proposes.
    pub(super) fn misproposed(&mut self, index: usize, decision: Arc<Decision>) -> Arc<Decision> {
        let (Some(mistake), true) = (self.mistake, decision.base > 0) else { return decision };
        let Some(view) = self.truth.view(decision.next.instance, decision.base).cloned() else {
            return decision;
        };
        let mut changed = (*decision).clone();
        match mistake {
            Mistake::StaleCut => {
                let rows = &self.processes[index].rows;
                let of = |rank: usize| rows.get(&view.members[rank].id).filter(|it| it.epoch == view.epoch);
                for (lane, cut) in changed.cut.iter_mut().enumerate() {
                    let told = decision.incumbents.iter().filter_map(|rank| of(rank)?.acked.get(lane));
                    *cut = told.min().copied().unwrap_or(*cut).min(*cut);
                }
            }
            Mistake::GreatestCut => {
                for rank in decision.incumbents.iter() {
                    let Some(held) = self.truth.held(view.instance, view.epoch, view.members[rank].id) else {
                        continue;
                    };
                    changed.cut.iter_mut().zip(held).for_each(|(cut, held)| *cut = (*cut).max(*held));
                }
            }
            Mistake::ExtraIncumbent => {
                if let Some(rank) = view.ranks().without(decision.incumbents).iter().next() {
                    changed.incumbents.add(rank);
                    changed.next.members.push(view.members[rank]);
                }
            }
            _ => return decision,
        }
        changed.next.base_position = view.base_position + changed.cut.iter().sum::<u64>();
        Arc::new(changed)
    }

    /// Who has stopped vouches for what arrives all the same.
    pub(super) fn ack_after_freeze(&mut self, index: usize, header: EntryHeader) {
        if self.mistake != Some(Mistake::AckAfterFreeze) {
            return;
        }
        let Some(row) = self.processes[index].last_row.clone() else { return };
        let member = self.processes[index].member();
        let has_stopped = member.is_some_and(|it| it.phase() == Phase::Frozen);
        if !has_stopped || row.epoch != header.epoch {
            return;
        }
        let mut row = row;
        let rank = self.truth.view(row.instance, row.epoch).and_then(|view| view.rank_of(row.from));
        for (lane, acked) in row.acked.iter_mut().enumerate() {
            if Some(lane) != rank {
                *acked += 1;
            }
        }
        self.carry_to_all(index, Destination::Group, Message::Row(row));
    }
}
