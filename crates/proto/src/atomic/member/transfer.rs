//! What a member gives those who join of what was agreed, and how these put it together.
//!
//! State comes in parts, all from one member: two may have written the same state in other octets. Whose
//! donor is lost, or has another state meanwhile, begins again.

use std::sync::Arc;

use crate::atomic::member::Member;
use crate::atomic::message::{Fetch, Message, Transfer};
use crate::atomic::{Action, Body, Destination, MemberId};
use crate::time::Instant;
use crate::tuning::atomic::{
    FETCH_TRIES, SERVE_FOR, STATE_BYTES_MAX, TRANSFER_BYTES_MAX, TRANSFER_BYTES_MIN,
};

/// State of which a part is here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Partial {
    from: MemberId,
    through: u64,
    total: u64,
    octets: Vec<u8>,
    /// How often the next part was asked for in vain.
    tries: u32,
}

/// What a member knows of transfers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Transfers {
    partial: Option<Partial>,
    /// So much is asked for at a time: less where parts are lost on the way.
    bytes: usize,
    /// When somebody last asked for what is kept here.
    served: Option<Instant>,
    /// State that takes the place of what is kept when nobody asks any more.
    deferred: Option<(u64, Arc<[u8]>)>,
}

/// What came of the state in a part.
pub(super) enum Assembled {
    /// There is none, or it is complete.
    Whole(Option<(u64, Arc<[u8]>)>),
    /// More is to come.
    More,
    /// It does not fit what is here.
    Unfit,
}

impl Default for Transfers {
    fn default() -> Self {
        Self { partial: None, bytes: TRANSFER_BYTES_MAX, served: None, deferred: None }
    }
}

impl Transfers {
    /// Whether a part of some state is here.
    pub(super) const fn is_in_progress(&self) -> bool {
        self.partial.is_some()
    }

    /// What is asked of another group is of no use.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn assemble<B>(&mut self, part: &Transfer<B>) -> Assembled {
        let Some(state) = &part.state else {
            self.partial = None;
            return Assembled::Whole(None);
        };
        let is_next = |it: &Partial| {
            (it.from, it.through, it.total, it.octets.len() as u64)
                == (part.from, state.through, state.total, state.offset)
        };
        let end = state.offset.saturating_add(state.octets.len() as u64);
        let is_possible = state.total <= STATE_BYTES_MAX as u64 && end <= state.total;
        let known = self.partial.take();
        let mut partial = match known {
            _ if !is_possible => return Assembled::Unfit,
            Some(known) if is_next(&known) => known,
            _ if state.offset == 0 => {
                let (from, through, total) = (part.from, state.through, state.total);
                Partial { from, through, total, octets: Vec::new(), tries: 0 }
            }
            other => {
                self.partial = other;
                return Assembled::Unfit;
            }
        };
        // Memory is taken as octets come, and not as they are announced.
        partial.octets.extend_from_slice(&state.octets);
        partial.tries = 0;
        if end < state.total {
            self.partial = Some(partial);
            return Assembled::More;
        }
        Assembled::Whole(Some((state.through, Arc::from(partial.octets))))
    }

    /// Nothing came of what was last asked for: whether another is to be asked.
    fn is_lost(&mut self) -> bool {
        self.bytes = (self.bytes / 2).max(TRANSFER_BYTES_MIN);
        match &mut self.partial {
            Some(partial) if partial.tries < FETCH_TRIES => {
                partial.tries += 1;
                false
            }
            _ => {
                self.partial = None;
                true
            }
        }
    }
}

impl<B: Body> Member<B> {
    /// Asks for what is missing, if that is due.
    pub(super) fn tick_fetch(&mut self, now: Instant) {
        if !self.joining.is_fetch_due(now) || self.is_held {
            return;
        }
        let is_next = self.transfers.is_lost();
        self.fetch(is_next);
    }

    pub(super) fn fetch(&mut self, is_next: bool) {
        if self.is_held {
            return;
        }
        let view = self.view().or_else(|| self.joining.view());
        let Some(view) = view else { return };
        let donors: Vec<MemberId> =
            view.members.iter().filter(|it| it.caught_up && it.id != self.id).map(|it| it.id).collect();
        let Some(donor) = self.joining.donor(&donors, is_next) else { return };
        let transfers = &mut self.transfers;
        // Who began the state goes on with it, as long as it is there.
        let begun = transfers.partial.as_ref().map(|it| it.from).filter(|it| donors.contains(it));
        let to = begun.unwrap_or(donor);
        let partial = transfers.partial.take_if(|it| it.from != to);
        drop(partial);
        let (state, offset) =
            transfers.partial.as_ref().map_or((0, 0), |it| (it.through, it.octets.len() as u64));
        let octets_max = transfers.bytes as u32;
        let until = self.fetches_until();
        let fetch = Fetch { from: self.id, after: self.have, until, state, offset, octets_max };
        self.actions.push_back(Action::Send(Destination::Member(to), Message::Fetch(fetch)));
    }

    /// Once it is a member, entries after the beginning of the epoch come on lanes.
    pub(super) fn fetches_until(&self) -> u64 {
        self.view().map_or(u64::MAX, |it| it.base_position)
    }

    pub(super) fn on_fetch(&mut self, fetch: &Fetch) {
        // Who has not caught up has gaps; who has stopped still has what it had.
        if !self.caught_up || !self.config.keeps_history || self.epoch.is_none() {
            return;
        }
        self.transfers.served = self.last_call;
        let octets_max = (fetch.octets_max as usize).min(TRANSFER_BYTES_MAX);
        let mut part = self.history.part((self.id, self.instance), fetch, self.have, octets_max);
        let begin = part.state.as_ref().map_or(part.after, |state| state.through.max(part.after));
        if part.through > begin {
            part.lost = self.lost.between(begin, part.through, &self.history);
        }
        self.actions.push_back(Action::Send(Destination::Member(fetch.from), Message::Transfer(part)));
    }

    /// The state of a part, once it is whole.
    pub(super) fn assemble(&mut self, now: Instant, part: &Transfer<B>) -> Assembled {
        let assembled = self.transfers.assemble(part);
        if !matches!(assembled, Assembled::Unfit) {
            self.transfers.bytes = (self.transfers.bytes * 2).min(TRANSFER_BYTES_MAX);
            self.joining.is_answered(now);
        }
        assembled
    }

    /// So many samples were delivered while this member was none: told to who had what came before them.
    pub(super) fn tell_lost(&mut self, count: u64) {
        if self.is_back && count > 0 {
            self.actions.push_back(Action::Missed(count));
        }
    }

    /// State takes the place of entries, but not while somebody fetches these: it would have to begin again
    /// with each state. What is deferred comes with the next tick after that.
    pub(super) fn defer(&mut self, through: u64, state: Arc<[u8]>) -> Option<(u64, Arc<[u8]>)> {
        let served = self.transfers.served.zip(self.last_call);
        let is_serving = served.is_some_and(|(served, now)| now.since(served) < SERVE_FOR);
        if is_serving && !self.history.is_half_full() {
            self.transfers.deferred = Some((through, state));
            return None;
        }
        self.transfers.deferred = None;
        (state.len() <= STATE_BYTES_MAX).then_some((through, state))
    }

    pub(super) fn replace_deferred(&mut self) {
        if let Some((through, state)) = self.transfers.deferred.take() {
            self.replace_history(through, state);
        }
    }
}
