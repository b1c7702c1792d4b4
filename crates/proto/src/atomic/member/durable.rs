//! What a member keeps on its disk, and how it goes on when its process has started again.
//!
//! A member that starts again is a new incarnation, which speaks for the one that it was: it reports what
//! that held, in the epoch in which it was, and goes on in its place if the voters agree
//! (`Report::successor`). It never does anything else in the name of who it was. What it reports is true:
//! what that one vouched for was durable before, and nothing is lost that was. Before it speaks as somebody
//! it writes down the name (`Change::Claims`), so that it knows itself in a view whatever becomes of its
//! process: also before it wishes to join, since others may then name it in a view. Who makes a group has its
//! first view on the disk before it tells anybody. Otherwise a voter could forget a group that waits for it.

use std::collections::{BTreeMap, VecDeque};

use crate::atomic::Storage;
use crate::atomic::epoch::Epoch;
use crate::atomic::member::{Config, Member, Phase};
use crate::atomic::storage::{Change, Image, Slot};
use crate::atomic::view::View;
use crate::atomic::{Action, Body, Delivered, MemberId, Status, VoterId};
use crate::time::Instant;
use crate::tuning::atomic::{CLAIMS_KEPT, UNSYNCED_MAX};

/// What is on the disk of a member, as far as it has to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Disk {
    /// Changes so far, and those that are durable.
    number: u64,
    stored: u64,
    /// What begins when the change of this number is durable.
    awaited: VecDeque<(u64, Awaited)>,
    /// As whom it may be in views that it does not know: never who took part in an epoch that it has left.
    claims: Vec<MemberId>,
    /// As whom it takes part.
    place: Option<MemberId>,
    /// That it speaks as who it is now is durable.
    is_claimed: bool,
    /// That it has caught up is durable.
    caught_up: bool,
    /// What was held of an epoch that is over: needed until the disk says that it is.
    over: Vec<Slot>,
    /// Where entries of the history are held that came on lanes.
    places: BTreeMap<u64, Slot>,
    /// The process started again, and may have lost what it vouched for.
    is_partial: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Awaited {
    Held(Slot),
    CaughtUp { epoch: u64 },
    Claim(MemberId),
    Founded { instance: u64 },
}

impl<B: Body> Member<B> {
    /// A participant that was a member before, from what is on its disk. Its incarnation is later than those.
    #[must_use]
    pub fn restore(config: Config, id: MemberId, now: Instant, image: Image<B>) -> Self {
        let of_view = image.epoch.as_ref().map(|epoch| epoch.view.members[epoch.rank].id);
        let last = image.claims.iter().chain(&of_view).map(|it| it.nonce).max();
        let id = MemberId { nonce: last.map_or(id.nonce, |last| last.wrapping_add(1)), ..id };
        let mut member = Self::new(config, id, now);
        member.instance = image.instance;
        member.lineage = image.lineage;
        member.was_member = image.was_member;
        member.have = image.have;
        member.decisions = image.decisions.into_iter().map(std::sync::Arc::new).collect();
        // What was not durable when it was vouched for may turn out to be void; by what it was then.
        let of_place = image.epoch.as_ref().map(|epoch| epoch.view.members[epoch.rank].storage);
        let was_stable = of_place.unwrap_or(member.config.storage) == Storage::Stable;
        member.withholds = was_stable;
        if let Some((through, state)) = image.state {
            member.history.replace(through, std::sync::Arc::clone(&state));
            if !member.withholds {
                member.actions.push_back(Action::State(through, state));
            }
        }
        for (entry, slot) in image.history {
            // Of several changes that belong together only the first may be there.
            let mut gone = Vec::new();
            slot.into_iter().for_each(|slot| _ = member.disk.places.insert(entry.position, slot));
            if member.history.insert(&entry, &mut gone) {
                member.give(entry);
            } else {
                gone.push(entry.position);
            }
            member.forget(gone);
        }
        member.disk.claims = image.claims;
        if let Some(id) = of_view.filter(|id| !member.disk.claims.contains(id)) {
            member.disk.claims.insert(0, id);
        }
        member.disk.place = of_view;
        if let Some(image) = image.epoch {
            let base = image.view.base_position;
            member.caught_up = member.have >= base;
            member.disk.caught_up = member.caught_up;
            member.disk.is_partial = was_stable;
            member.epoch = Some(Epoch::restore(image, now));
            member.claim();
            member.phase = Phase::Frozen;
            member.frozen_since = Some(now);
        }
        member
    }

    /// The readers here get an entry.
    pub(super) fn give(&mut self, entry: Delivered<B>) {
        if !self.withholds {
            self.actions.push_back(Action::Deliver(entry));
        }
    }

    /// It takes part again: the readers here get the history that they have not had.
    pub(super) fn give_withheld(&mut self) {
        if std::mem::take(&mut self.withholds) {
            if let Some((through, state)) = self.history.state() {
                self.actions.push_back(Action::State(*through, std::sync::Arc::clone(state)));
            }
            self.actions.extend(self.history.entries().cloned().map(Action::Deliver));
        }
    }

    /// Writes down as whom it will speak.
    fn claim(&mut self) {
        #[cfg(feature = "mistakes")]
        if self.epoch.is_none() && self.mistake == Some(crate::atomic::mistake::Mistake::JoinUnclaimed) {
            self.disk.is_claimed = true;
            return;
        }
        if !self.disk.claims.contains(&self.id) {
            self.disk.claims.push(self.id);
        }
        if self.disk.claims.len() > CLAIMS_KEPT
            && let Some(oldest) = self.disk.claims.iter().position(|id| Some(*id) != self.disk.place)
        {
            self.disk.claims.remove(oldest);
        }
        self.store_claims();
    }

    fn store_claims(&mut self) {
        self.store(Change::Claims(self.disk.claims.clone()));
        self.disk.is_claimed = false;
        self.await_store(Awaited::Claim(self.id));
    }

    /// Whether it knows itself when it starts again, whoever names it in a view meanwhile. If not, it will.
    pub(super) fn has_claimed(&mut self) -> bool {
        if self.config.storage != Storage::None && self.disk.claims.last() != Some(&self.id) {
            self.claim();
        }
        self.disk.is_claimed || self.config.storage == Storage::None
    }

    /// Who it was in the epoch before it is in no other one: what that held is gone.
    pub(super) fn take_place(&mut self, place: Option<MemberId>) {
        let before = std::mem::replace(&mut self.disk.place, place);
        let known = self.disk.claims.len();
        self.disk.claims.retain(|id| Some(*id) != before || before == place);
        if self.disk.claims.len() < known {
            self.store(Change::Claims(self.disk.claims.clone()));
        }
    }

    /// A group that it makes is told to others when its first view is durable.
    pub(super) fn store_founding(&mut self, view: &View) {
        let Some(rank) = view.rank_of(self.id) else { return };
        self.store(Change::View(Box::new(view.clone()), rank));
        self.await_store(Awaited::Founded { instance: view.instance });
    }

    /// Whether the member of its epoch is one that it was before its process started again.
    pub(super) fn is_successor(&self) -> bool {
        self.place().is_some_and(|id| id != self.id)
    }

    /// The member of its view that it is, or speaks for.
    #[must_use]
    pub fn place(&self) -> Option<MemberId> {
        self.epoch.as_ref().map(|epoch| epoch.view.members[epoch.rank].id)
    }

    /// Which voter it is, where the members vote: the one of its view.
    #[must_use]
    pub fn voter(&self) -> Option<VoterId> {
        self.place().map(MemberId::voter)
    }

    /// Whether something outlives its process.
    pub(crate) fn has_disk(&self) -> bool {
        self.config.storage != Storage::None
    }

    /// Whether its disk keeps up with what is delivered.
    pub(super) fn keeps_up(&self) -> bool {
        self.disk.number - self.disk.stored < UNSYNCED_MAX as u64
    }

    /// Nothing can be written to its disk any more: it leaves, since it cannot vouch for anything.
    pub fn lose_disk(&mut self, now: Instant) {
        self.actions.push_back(Action::Status(Status::StorageFailed));
        self.leave(now);
    }

    /// Whether it may say what it has.
    pub(super) fn may_report(&self) -> bool {
        !self.is_successor() || self.disk.is_claimed
    }

    /// Who it was in its epoch vouched for what was not durable, or not.
    pub(super) fn be_partial(&mut self, storage: Storage) {
        self.disk.is_partial = storage == Storage::Stable;
    }

    /// It is another incarnation, which is not on the disk.
    pub(super) const fn forget_claim(&mut self) {
        self.disk.is_claimed = false;
    }

    /// What it reports may be less than it vouched for.
    pub(super) fn is_partial(&self) -> bool {
        self.disk.is_partial && self.is_successor()
    }

    /// Who it was before, by what is on its disk, the last of them last.
    pub(super) fn been(&self) -> impl DoubleEndedIterator<Item = MemberId> + '_ {
        self.disk.claims.iter().copied().filter(|id| *id != self.id)
    }

    /// Whether it was that member before.
    pub(super) fn has_been(&self, id: MemberId) -> bool {
        self.been().any(|it| it == id)
    }

    /// Its rank in a view, and whether that is of one that it was.
    pub(super) fn place_in(&self, view: &View) -> Option<(usize, bool)> {
        let own = view.rank_of(self.id).map(|rank| (rank, false));
        let before = || self.disk.claims.iter().find_map(|id| view.rank_of(*id));
        own.or_else(|| before().map(|rank| (rank, true)))
    }

    /// Whether others may rely on it to have all that came before the epoch.
    pub(super) fn has_caught_up(&self) -> bool {
        #[cfg(feature = "mistakes")]
        if self.mistake == Some(crate::atomic::mistake::Mistake::CatchUpUnsynced) {
            return self.caught_up;
        }
        self.caught_up && (self.disk.caught_up || self.config.storage != Storage::Durable)
    }

    /// It has caught up as soon as what it has asked for is durable.
    pub(super) fn await_caught_up(&mut self) {
        if self.caught_up
            && !self.disk.caught_up
            && let Some(epoch) = self.view().map(|view| view.epoch)
        {
            self.await_store(Awaited::CaughtUp { epoch });
        }
    }

    /// Asks for a change of its disk, if it has one.
    pub(super) fn store(&mut self, change: Change<B>) {
        if self.config.storage != Storage::None {
            self.disk.number += 1;
            self.actions.push_back(Action::Store(self.disk.number, change));
        }
    }

    fn await_store(&mut self, what: Awaited) {
        if self.config.storage != Storage::None {
            self.disk.awaited.push_back((self.disk.number, what));
        }
    }

    /// The last entry of a lane is to be held.
    pub(super) fn store_held(&mut self, rank: usize, stamp: u64, body: B) {
        let Some(epoch) = self.epoch.as_ref().filter(|_| self.config.storage != Storage::None) else {
            return;
        };
        let slot = Slot { epoch: epoch.view.epoch, rank, index: epoch.received_of(rank) };
        // Who took the place of one that it was vouches as that one did, until it joins anew.
        let is_awaited = epoch.is_durable();
        self.store(Change::Held(slot, stamp, body));
        if is_awaited {
            self.await_store(Awaited::Held(slot));
        }
    }

    /// The history takes an entry in; from the lane where it is held, or from another member.
    pub(super) fn keep(&mut self, entry: &Delivered<B>, slot: Option<Slot>) {
        let mut gone = Vec::new();
        let is_kept = self.config.keeps_history && self.history.insert(entry, &mut gone);
        if self.config.storage == Storage::None {
            return;
        }
        match slot {
            Some(slot) => {
                let Delivered { position, from, .. } = *entry;
                self.store(Change::Delivered { position, slot, from, is_kept });
                if is_kept {
                    self.disk.places.insert(position, slot);
                }
            }
            None if is_kept => self.store(Change::Agreed(entry.clone())),
            None => {}
        }
        self.forget(gone);
    }

    pub(super) fn forget(&mut self, positions: Vec<u64>) {
        for position in positions {
            let slot = self.disk.places.remove(&position);
            self.store(Change::Forgotten(position, slot));
        }
    }

    /// What is held of the epoch and not delivered does not count.
    pub(super) fn drop_held(&mut self) {
        if self.config.storage != Storage::None {
            self.disk.over = self.epoch.iter().flat_map(Epoch::undelivered).collect();
            #[cfg(feature = "mistakes")]
            if self.mistake == Some(crate::atomic::mistake::Mistake::DropEarly) {
                self.store_dropped();
            }
        }
    }

    fn store_dropped(&mut self) {
        for slot in std::mem::take(&mut self.disk.over) {
            self.store(Change::Dropped(slot));
        }
    }

    /// It is in a view from now on.
    pub(super) fn store_view(&mut self, is_successor: bool) {
        let Some(epoch) = self.epoch.as_ref().filter(|_| self.config.storage != Storage::None) else {
            return;
        };
        let change = Change::View(Box::new(epoch.view.clone()), epoch.rank);
        self.store(change);
        self.store_dropped();
        if is_successor {
            self.has_claimed();
        }
        self.await_caught_up();
    }

    /// It is in no view any more.
    pub(super) fn store_left(&mut self) {
        self.caught_up = false;
        self.disk.caught_up = false;
        // Before the disk forgets what that one held.
        self.take_place(None);
        self.store(Change::Left);
        self.store_dropped();
    }

    /// It is in another group: what was kept of the one before is void.
    pub(super) fn store_begin(&mut self, discards: bool) {
        self.disk.places.clear();
        self.store(Change::Begin { instance: self.instance, discards });
    }

    /// Its group goes on with what it has, and others may have had more.
    pub(super) fn store_lineage(&mut self) {
        self.store(Change::Lineage { instance: self.instance, lineage: self.lineage });
    }

    /// Its group goes on with what another has: what was kept of it is void.
    pub(super) fn store_void(&mut self) {
        if self.config.storage != Storage::None {
            let places = std::mem::take(&mut self.disk.places);
            let entry = |it: &Delivered<B>| (it.position, places.get(&it.position).copied());
            let entries = self.history.entries().map(entry).collect();
            self.store(Change::Void { instance: self.instance, lineage: self.lineage, entries });
        }
    }

    /// All changes up to this one are durable.
    pub fn on_stored(&mut self, now: Instant, number: u64) {
        self.notice(now);
        self.disk.stored = self.disk.stored.max(number);
        while let Some((awaited, what)) = self.disk.awaited.front().copied()
            && awaited <= number
        {
            self.disk.awaited.pop_front();
            match what {
                Awaited::Held(slot) => {
                    if let Some(epoch) = &mut self.epoch
                        && epoch.view.epoch == slot.epoch
                        && self.phase == Phase::Active
                    {
                        epoch.persisted(slot.rank, slot.index);
                        self.is_dirty = true;
                    }
                }
                Awaited::CaughtUp { epoch } => {
                    if self.caught_up && self.view().is_some_and(|view| view.epoch == epoch) {
                        self.disk.caught_up = true;
                        self.is_dirty = true;
                    }
                }
                Awaited::Claim(id) => {
                    if id == self.id {
                        self.disk.is_claimed = true;
                        self.repeat_due = Some(now);
                        self.joining.wake(now);
                    }
                }
                Awaited::Founded { instance } => self.tell_of_group(now, instance),
            }
        }
        if self.phase == Phase::Frozen && self.repeat_due.is_some_and(|due| due <= now) {
            self.tick(now);
        }
        self.deliver();
        self.schedule_row(now);
    }
}
