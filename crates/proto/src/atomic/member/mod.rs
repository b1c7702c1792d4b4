//! A member of a group: what a participant with an ATOMIC endpoint does.

mod change;
mod durable;
mod hold;
mod join;
mod transfer;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use thiserror::Error;

use crate::atomic::Storage;
use crate::atomic::epoch::{Epoch, Taken};
use crate::atomic::history::History;
use crate::atomic::lost::Lost;
use crate::atomic::message::{Message, Row};
use crate::atomic::storage::{Change, Slot};
use crate::atomic::view::{Decision, Ranks, View, Voters};
use crate::atomic::{Action, Body, Delivered, Destination, EntryHeader, MEMBERS_MAX, MemberId, Status};
use crate::time::{Duration, Instant};
use crate::tuning::atomic::{DECISIONS_KEPT, REPORT_AGAIN, ROW_IDLE, ROW_PENDING, ROW_POSITION};
use durable::Disk;
use join::Joining;
use transfer::Transfers;

/// What the driver and the QoS of a topic decide.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// Of everything that must be equal in all members.
    pub digest: u64,
    /// A member that is not heard for so long is suspected.
    pub lease: Duration,
    /// One that receives nothing new for so long, although there is something, is suspected, too.
    pub stuck: Duration,
    /// Who holds the others up by a full window for so long is excluded; infinite: never.
    pub slow: Duration,
    /// Entries of this member at most that not everybody has delivered.
    pub window_entries: usize,
    /// And their octets.
    pub window_octets: usize,
    /// Who joins later has what was agreed before.
    pub keeps_history: bool,
    /// Entries of the agreed history at most.
    pub history_entries_max: usize,
    /// What this member keeps on its disk: something only where it keeps the history.
    pub storage: Storage,
    /// Who votes.
    pub voters: Voters,
    /// Who finds no group for so long makes one; `None` where the voters do.
    pub bootstrap_after: Option<Duration>,
    /// Of which instance a group is that this member makes: the less, the older. The second that it makes is
    /// of the next one, and so on.
    pub instance: u64,
}

/// What a member does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It is no member, and wishes to be.
    Joining,
    /// It takes part.
    Active,
    /// It has stopped, and waits to hear how its epoch ends.
    Frozen,
    /// It has left, or has something else than the others.
    Gone,
}

/// Why an entry was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// The others have not delivered enough of what was written.
    #[error("the window is full: the others have not delivered enough yet")]
    Full,
    /// It is no member at the moment.
    #[error("the group is changing, or this participant has not joined it yet")]
    NoMember,
    /// It never is again.
    #[error("this participant has left the group")]
    Gone,
}

/// What an operator may see of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupState {
    /// What this member does.
    pub phase: Phase,
    /// The epoch, 0 before the first.
    pub epoch: u64,
    /// Members with the positions that they have delivered, by rank.
    pub members: Vec<(MemberId, u64)>,
    /// Whom this member suspects.
    pub suspected: Ranks,
    /// Whether it waits for votes.
    pub is_suspended: bool,
    /// Entries of its own that not everybody has delivered.
    pub in_window: usize,
    /// Whose readers take no more.
    pub held: Ranks,
}

/// One participant in one group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member<B> {
    config: Config,
    id: MemberId,
    phase: Phase,
    epoch: Option<Epoch<B>>,
    joining: Joining,
    /// Entries of epochs to come.
    early: BTreeMap<(u64, MemberId), Early<B>>,
    /// What this member wrote and no epoch has taken in yet.
    unsent: VecDeque<B>,
    history: History<B>,
    disk: Disk,
    /// Its history may be void, so that readers do not get it until it takes part again.
    withholds: bool,
    lost: Lost,
    transfers: Transfers,
    /// Everything up to this position was given to readers here.
    have: u64,
    /// Of which group; 0 before the first.
    instance: u64,
    /// And in which lineage of it.
    lineage: u64,
    /// A group that was left for an older one.
    renounced: Option<Renounced>,
    /// Whether everything up to the beginning of the epoch was.
    caught_up: bool,
    /// The readers here take no more.
    is_held: bool,
    /// It has been a member of the group before: what it misses since is missing.
    was_member: bool,
    /// It was one before it joined last.
    is_back: bool,
    /// Octets of own entries in the window, oldest first, and the positions of those that are delivered.
    window: VecDeque<usize>,
    window_octets: usize,
    window_positions: VecDeque<u64>,
    /// Since when writes are refused by the window.
    full_since: Option<Instant>,
    /// How the last epochs ended.
    decisions: VecDeque<Arc<Decision>>,
    /// Others wait for what this member has.
    row_due: Option<Instant>,
    is_dirty: bool,
    told_position: u64,
    /// How many of its own entries it had delivered then, of this epoch.
    told_own: u64,
    pause: Duration,
    frozen_since: Option<Instant>,
    /// Since when others are known to be in a later epoch, and not how this one ended.
    behind_since: Option<Instant>,
    /// Who received nothing, and who kept this member waiting, when it stopped.
    stuck: Ranks,
    accused: Ranks,
    repeat_due: Option<Instant>,
    is_suspended: bool,
    leaves: bool,
    /// When it asks again to be let go: who alone has everything has to stay.
    leave_due: Option<Instant>,
    last_call: Option<Instant>,
    actions: VecDeque<Action<B>>,
    #[cfg(feature = "mistakes")]
    mistake: Option<crate::atomic::mistake::Mistake>,
}

/// A group that was left for an older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Renounced {
    instance: u64,
    /// Everything up to this position was given to readers.
    have: u64,
    /// So many entries it may have delivered, which are to be sent in the older group.
    unsettled: usize,
}

/// Entries of one lane of an epoch that this member does not know yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Early<B> {
    entries: VecDeque<(EntryHeader, B)>,
    octets: usize,
    /// More came than a member would be sent: it is none of that epoch.
    is_over: bool,
}

impl<B: Body> Member<B> {
    /// A participant that wishes to join.
    #[must_use]
    pub fn new(config: Config, id: MemberId, now: Instant) -> Self {
        Self {
            history: History::new(config.history_entries_max),
            joining: Joining::new(now),
            config,
            id,
            phase: Phase::Joining,
            epoch: None,
            early: BTreeMap::new(),
            unsent: VecDeque::new(),
            disk: Disk::default(),
            withholds: false,
            lost: Lost::default(),
            transfers: Transfers::default(),
            have: 0,
            instance: 0,
            lineage: 0,
            renounced: None,
            caught_up: false,
            is_held: false,
            was_member: false,
            is_back: false,
            window: VecDeque::new(),
            window_octets: 0,
            window_positions: VecDeque::new(),
            full_since: None,
            decisions: VecDeque::new(),
            row_due: None,
            is_dirty: false,
            told_position: 0,
            told_own: 0,
            pause: ROW_PENDING,
            frozen_since: None,
            behind_since: None,
            stuck: Ranks::default(),
            accused: Ranks::default(),
            repeat_due: None,
            is_suspended: false,
            leaves: false,
            leave_due: None,
            last_call: None,
            actions: VecDeque::new(),
            #[cfg(feature = "mistakes")]
            mistake: None,
        }
    }

    /// Errs from the next epoch on.
    #[cfg(feature = "mistakes")]
    pub const fn err(&mut self, mistake: crate::atomic::mistake::Mistake) {
        self.mistake = Some(mistake);
    }

    /// Who it is in this incarnation.
    #[must_use]
    pub const fn id(&self) -> MemberId {
        self.id
    }

    /// Of what must be equal in all members.
    #[must_use]
    pub const fn config_digest(&self) -> u64 {
        self.config.digest
    }

    /// What it does.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// The view that it has installed.
    #[must_use]
    pub fn view(&self) -> Option<&View> {
        self.epoch.as_ref().map(|it| &it.view)
    }

    /// The position up to which everything was delivered here.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.have
    }

    /// Whether it has everything that came before the epoch.
    #[must_use]
    pub const fn is_caught_up(&self) -> bool {
        self.caught_up
    }

    /// Entries written here that are not delivered here.
    #[must_use]
    pub fn unresolved(&self) -> usize {
        self.unsent.len() + self.window.len() - self.window_positions.len()
    }

    /// Agreed entries that are kept, in order.
    pub fn history(&self) -> impl Iterator<Item = &Delivered<B>> {
        self.history.entries().filter(|_| !self.withholds)
    }

    /// How many entries are kept.
    #[must_use]
    pub fn history_len(&self) -> usize {
        self.history.entries().len()
    }

    /// What stands for all entries before those that are kept, and up to which position.
    #[must_use]
    pub fn history_state(&self) -> Option<&(u64, Arc<[u8]>)> {
        self.history.state()
    }

    pub(super) fn is_in(&self, instance: u64, epoch: u64) -> bool {
        self.view().is_some_and(|view| view.instance == instance && view.epoch == epoch)
    }

    /// Everything up to a position is in `state` from now on: it takes the place of the entries.
    /// Not at once while others fetch what is kept; and nothing of more than
    /// `STATE_BYTES_MAX`.
    pub fn replace_history(&mut self, through: u64, state: Arc<[u8]>) {
        let Some((through, state)) = self.defer(through, state) else { return };
        if self.config.keeps_history
            && through <= self.have
            && let Some(gone) = self.history.replace(through, Arc::clone(&state))
        {
            self.store(Change::State(through, state));
            self.forget(gone);
        }
    }

    /// Takes the next thing to be done.
    pub fn poll(&mut self) -> Option<Action<B>> {
        self.actions.pop_front()
    }

    /// Moves all of that to the end of a queue.
    pub(crate) fn move_actions(&mut self, to: &mut VecDeque<Action<B>>) {
        to.append(&mut self.actions);
    }

    /// What an operator may see.
    #[must_use]
    pub fn state(&self, now: Instant) -> GroupState {
        let members = self
            .epoch
            .iter()
            .flat_map(|epoch| epoch.view.members.iter().map(|it| it.id).zip(epoch.positions()));
        GroupState {
            phase: self.phase,
            epoch: self.epoch.as_ref().map_or(0, |it| it.view.epoch),
            members: members.collect(),
            suspected: self.epoch.as_ref().map(|it| self.suspected(it, now)).unwrap_or_default(),
            is_suspended: self.is_suspended,
            in_window: self.window.len(),
            held: self.epoch.as_ref().map(Epoch::held).unwrap_or_default(),
        }
    }

    /// Writes: the entry is sent at once, and delivered later in the agreed order.
    ///
    /// # Errors
    /// It was not accepted; try again later.
    pub fn write(&mut self, now: Instant, body: B) -> Result<(), Refused> {
        match self.phase {
            Phase::Gone => return Err(Refused::Gone),
            Phase::Joining | Phase::Frozen => return Err(Refused::NoMember),
            Phase::Active => {}
        }
        // Who vouches for nothing adds nothing to what is delivered to it.
        if self.epoch.as_ref().is_some_and(Epoch::withholds) {
            return Err(Refused::Full);
        }
        if !self.has_room(body.octets()) {
            self.full_since.get_or_insert(now);
            return Err(Refused::Full);
        }
        self.send(body);
        self.deliver();
        self.schedule_row(now);
        Ok(())
    }

    /// Whether the window takes one more of so many octets.
    #[must_use]
    pub fn has_room(&self, octets: usize) -> bool {
        self.window.is_empty()
            || self.window.len() < self.config.window_entries
                && self.window_octets + octets <= self.config.window_octets
    }

    fn send(&mut self, body: B) {
        let Some(epoch) = &mut self.epoch else { return };
        let octets = body.octets();
        let header = epoch.send(body.clone());
        let rank = epoch.rank;
        self.window.push_back(octets);
        self.window_octets += octets;
        if self.config.storage != Storage::None {
            self.store_held(rank, header.stamp, body.clone());
        }
        self.actions.push_back(Action::SendEntry(header, body));
    }

    /// Takes an entry of another member's lane; a lane brings its entries in order.
    pub fn on_entry(&mut self, now: Instant, from: MemberId, header: EntryHeader, body: B) {
        self.notice(now);
        let current = self.epoch.as_ref().map_or(0, |it| it.view.epoch);
        if self.view().is_some_and(|view| view.instance != header.instance) {
            return;
        }
        let is_to_come = match self.phase {
            Phase::Joining => self.joining.is_to_come(header.instance, header.epoch),
            _ => header.epoch > current,
        };
        if is_to_come {
            self.keep_early(from, header, body);
            return;
        }
        if self.phase != Phase::Active || header.epoch != current {
            return;
        }
        let Some(epoch) = &mut self.epoch else { return };
        let Some(rank) = epoch.view.rank_of(from) else { return };
        let kept = (self.config.storage != Storage::None).then(|| body.clone());
        if epoch.take(now, rank, header, body) == Taken::Next {
            self.is_dirty |= self.config.storage != Storage::Durable;
            kept.into_iter().for_each(|body| self.store_held(rank, header.stamp, body));
        }
        self.deliver();
        self.schedule_row(now);
    }

    fn keep_early(&mut self, from: MemberId, header: EntryHeader, body: B) {
        if !self.early.contains_key(&(header.epoch, from)) && self.early.len() >= 2 * MEMBERS_MAX {
            // Of the oldest epoch least is to be hoped.
            self.early.pop_first();
        }
        let early = self.early.entry((header.epoch, from)).or_insert_with(|| Early {
            entries: VecDeque::new(),
            octets: 0,
            is_over: false,
        });
        early.octets += body.octets();
        let is_over = early.entries.len() >= self.config.window_entries
            || early.octets > self.config.window_octets && !early.entries.is_empty();
        early.is_over |= is_over;
        if early.is_over {
            early.entries.clear();
        } else {
            early.entries.push_back((header, body));
        }
    }

    /// Takes a message. Who sent it is vouched for by the driver.
    pub fn on_message(&mut self, now: Instant, message: Message<B>) {
        self.notice(now);
        match message {
            Message::Report { instance, report } => self.on_report(now, instance, &report),
            Message::AskView { from, epoch } => self.answer_view(from, epoch),
            _ if self.phase == Phase::Gone => {}
            Message::Row(row) => self.on_row(now, &row),
            Message::Wedge { instance, epoch } => {
                if self.is_in(instance, epoch) && self.phase == Phase::Active {
                    self.freeze(now);
                }
            }
            Message::NewView(decision) => self.learn(now, decision),
            Message::Current(view) => self.on_current(now, view),
            Message::Join(join) => self.on_join(now, &join),
            Message::Fetch(fetch) => self.on_fetch(&fetch),
            Message::Transfer(part) => self.on_transfer(now, part),
            Message::Decider { .. } => {}
        }
    }

    fn on_row(&mut self, now: Instant, row: &Row) {
        if self.phase == Phase::Joining {
            self.joining.heard(now, row);
            return;
        }
        let Some(epoch) = &mut self.epoch else { return };
        if row.instance != epoch.view.instance {
            self.on_rival(now, row.instance);
            self.give_way(now);
            return;
        }
        if row.epoch > epoch.view.epoch {
            self.ask_view(row.from);
            return;
        }
        if row.epoch < epoch.view.epoch {
            self.help_old(row.instance, row.epoch, row.from);
            return;
        }
        let Some(rank) = epoch.view.rank_of(row.from) else { return };
        if self.phase == Phase::Frozen {
            epoch.heard(now, rank);
            return;
        }
        if epoch.merge(now, rank, row) {
            self.check_digests();
            self.deliver();
            self.schedule_row(now);
            if self.epoch.as_ref().is_some_and(|epoch| row.position < epoch.position) {
                // It may have missed what this member told.
                self.row_due = Instant::earliest([self.row_due, now.after(self.pause)]);
            }
        }
    }

    /// Delivers what may be, and lets go of what everybody has.
    fn deliver(&mut self) {
        while self.phase == Phase::Active
            && self.caught_up
            && !self.is_held
            && self.keeps_up()
            && let Some(epoch) = &mut self.epoch
            && let Some((rank, body)) = epoch.next()
        {
            self.emit(rank, body);
        }
        let Some(epoch) = &self.epoch else { return };
        let everywhere = epoch.everywhere();
        let mut released = 0;
        while self.window_positions.front().is_some_and(|position| *position <= everywhere) {
            self.window_positions.pop_front();
            self.window_octets -= self.window.pop_front().unwrap_or(0);
            released += 1;
        }
        if released > 0 {
            self.full_since = None;
            self.actions.push_back(Action::Release(released));
        }
    }

    fn emit(&mut self, rank: usize, body: B) {
        let Some(epoch) = &self.epoch else { return };
        let position = epoch.position;
        let is_own = rank == epoch.rank && !self.is_successor();
        let slot = Slot { epoch: epoch.view.epoch, rank, index: epoch.delivered_of(rank) };
        let from = epoch.view.members[rank].id;
        let delivered = Delivered { position, epoch: epoch.view.epoch, from, body };
        if is_own {
            self.window_positions.push_back(position);
        }
        // State that was transferred may be later than where the epoch began.
        if position <= self.have {
            if is_own {
                self.actions.push_back(Action::Settled(1));
            }
            self.store(Change::Passed(slot));
            return;
        }
        self.have = position;
        self.lost.delivered(&delivered);
        self.keep(&delivered, Some(slot));
        self.give(delivered);
    }

    fn check_digests(&mut self) {
        let Some(epoch) = &self.epoch else { return };
        // With half of the others against it, a member of lower rank is believed.
        let others = epoch.diverged.count();
        let half = epoch.view.members.len() / 2;
        let is_wrong =
            others > half || others == half && others > 0 && epoch.diverged.iter().any(|it| it < epoch.rank);
        if is_wrong {
            self.actions.push_back(Action::Status(Status::Diverged));
            self.go();
        }
    }

    /// Rows are sent once for all that a driver had at hand: see [`Self::flush`].
    fn schedule_row(&mut self, now: Instant) {
        let Some(epoch) = &self.epoch else { return };
        let untold = epoch.position - self.told_position.min(epoch.position);
        // Who has delivered only its own keeps nobody waiting.
        let is_own = epoch.own_delivered() - self.told_own.min(epoch.own_delivered()) == untold;
        let is_awaited = untold > 0 && !is_own;
        self.is_dirty |= is_awaited && untold * 4 >= self.config.window_entries as u64;
        if is_awaited {
            self.row_due = Instant::earliest([self.row_due, now.after(ROW_POSITION)]);
        } else if self.is_waiting() {
            self.row_due = Instant::earliest([self.row_due, now.after(self.pause)]);
        }
    }

    /// Whether others wait for a row.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.is_dirty && self.phase == Phase::Active
    }

    /// The driver has handed over what was at hand: others are told what this member has.
    pub fn flush(&mut self, now: Instant) {
        if self.is_dirty() {
            self.pause = ROW_PENDING;
            self.send_row(now);
        }
    }

    /// Others are to tell at once what they have: somebody waits for it.
    pub fn hasten(&mut self, now: Instant) {
        if self.phase == Phase::Active && !self.window.is_empty() {
            self.send_row(now);
        }
    }

    fn send_row(&mut self, now: Instant) {
        let Some(epoch) = &self.epoch else { return };
        self.is_dirty = false;
        self.told_position = epoch.position;
        self.told_own = epoch.own_delivered();
        let row = epoch.row(now, self.config.lease, self.has_caught_up());
        // Who waits for others tells again soon what they may have missed.
        self.row_due = now.after(if self.is_waiting() { self.pause } else { ROW_IDLE });
        self.pause = Duration((self.pause.0 * 2).min(ROW_IDLE.0));
        self.actions.push_back(Action::Send(Destination::Group, Message::Row(row)));
    }

    /// Whether it holds what it may not deliver yet, or not everybody has delivered what it wrote.
    fn is_waiting(&self) -> bool {
        !self.window.is_empty() || self.epoch.as_ref().is_some_and(Epoch::has_undelivered)
    }

    /// When [`Self::tick`] is to be called next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Gone => None,
            Phase::Joining => Some(self.joining.due()),
            Phase::Active => self.row_due,
            Phase::Frozen => self.repeat_due,
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Instant) {
        self.notice(now);
        match self.phase {
            Phase::Gone => {}
            Phase::Joining => self.tick_joining(now),
            Phase::Active => self.tick_active(now),
            Phase::Frozen => {
                if self.repeat_due.is_none_or(|due| due <= now) {
                    self.repeat_due = now.after(REPORT_AGAIN);
                    self.report(now);
                }
            }
        }
    }

    fn tick_active(&mut self, now: Instant) {
        let Some(epoch) = &self.epoch else { return };
        let leaves = self.leaves && self.leave_due.is_none_or(|due| due <= now);
        if !self.suspected(epoch, now).is_empty() || leaves || self.is_held_up(now) {
            self.freeze(now);
            return;
        }
        if !self.caught_up {
            self.tick_fetch(now);
        }
        self.replace_deferred();
        if self.is_dirty || self.row_due.is_none_or(|due| due <= now) {
            self.send_row(now);
        }
    }

    /// Whom it does not hear, or who receives nothing.
    fn suspected(&self, epoch: &Epoch<B>, now: Instant) -> Ranks {
        let silent = epoch.view.ranks().without(epoch.hears(now, self.config.lease));
        let stuck =
            if self.phase == Phase::Active { epoch.stuck(now, self.config.stuck) } else { self.stuck };
        silent.or(stuck)
    }

    fn is_held_up(&self, now: Instant) -> bool {
        !self.config.slow.is_infinite()
            && self.full_since.is_some_and(|since| now.since(since) >= self.config.slow)
            && self.epoch.as_ref().and_then(Epoch::slowest).is_some()
    }

    /// Whoever did not run for long has heard nobody meanwhile: that is not the others' silence.
    fn notice(&mut self, now: Instant) {
        let pause = self.last_call.map_or(Duration::ZERO, |last| now.since(last));
        self.last_call = Some(now);
        if pause.0 > self.config.lease.0 / 2
            && let Some(epoch) = &mut self.epoch
        {
            epoch.woke(now);
        }
    }

    fn remember(&mut self, decision: &Arc<Decision>) {
        if self.decisions.iter().any(|it| it.base == decision.base) {
            return;
        }
        let gone = if self.decisions.len() == DECISIONS_KEPT { self.decisions.pop_front() } else { None };
        self.decisions.push_back(Arc::clone(decision));
        self.store(Change::Decision(Arc::clone(decision), gone.map(|it| it.base)));
    }
}
