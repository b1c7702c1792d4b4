//! One group of one participant: its core and its lock, the endpoints by which its members are told, and the
//! readers and writers of this participant.
//!
//! Lock order: participant → group → endpoint → timer. Entries leave under the lock of the group, so that the
//! lane has them in their order.

mod room;
mod standing;
mod taking;
mod voting;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use plainsong_proto::atomic::entry::{Entry, EntryKind, Head};
use plainsong_proto::atomic::{Action, Group, GroupLimits, Phase, Refused, Status, Storage, member, storage};
use plainsong_proto::discovery::DiscoveryError;
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::instance::Key;
use plainsong_proto::outbox::{Event, Outbox};
use plainsong_proto::payload::{NewPayload, Payload, PayloadPool};
use plainsong_proto::reader::CachedSamples;
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::time::{Duration, Instant, Now, Time};
use plainsong_proto::writer::{ChangeKind, WriteError, Writer};

use super::dropped::Dropped;
use super::lane::{self, Channel, GROUP};
use super::local::{Attached, Writing, kind_of};
use super::name::Name;
use super::opening::{Opened, Opening};
use super::storage::{Committer, StoreError};
use super::voter;
use super::voting::Voting;
use super::{AtomicCounts, AtomicDrop, AtomicEvent, AtomicGroup, AtomicMember};
use crate::base::clock;
use crate::base::locks::lock;
use crate::error::{Error, Result, WaitedFor};
use crate::runtime::deadline::Deadline;
use crate::runtime::notify::Notify;
use crate::runtime::{ParticipantSlot, Rank, ReaderSlot, dispatch, receive};

/// Events that wait to be told.
const EVENTS_MAX: usize = 64;

/// Who hears of what happens to a member.
pub(crate) type OnAtomicEvent = Arc<dyn Fn(&str, AtomicEvent) + Send + Sync>;

/// A group, as one participant has it.
pub(crate) struct GroupSlot {
    pub(crate) name: Name,
    /// Names it for the timer, and its barriers.
    pub(crate) guid: Guid,
    slot: Arc<ParticipantSlot>,
    lane: Channel,
    messages: Channel,
    pool: PayloadPool,
    /// Wakes who waits for room, for the outcome of what it wrote, or for the group.
    pub(crate) progress: Notify,
    /// A reader or writer waits for room.
    has_backlog: AtomicBool,
    /// A write was refused that did not wait: its writer is told when it may be tried again.
    has_refused: AtomicBool,
    has_events: AtomicBool,
    leave_within: Duration,
    linger: Duration,
    /// How long writing waits for the group at least.
    pub(crate) settle_within: Duration,
    deadline: Deadline,
    voting: Voting,
    is_witness: bool,
    /// What this member keeps on its disk.
    keeps: Storage,
    state: std::sync::Mutex<State>,
}

struct State {
    group: Group<Arc<Entry>>,
    readers: Vec<Attached>,
    writers: BTreeMap<EntityId, Writing>,
    /// What this member wrote and has not delivered, oldest first.
    unresolved: VecDeque<(Arc<Entry>, Key)>,
    /// The last barrier, and the last that is delivered.
    barriers: (SequenceNumber, SequenceNumber),
    /// The last one that is not delivered here, and will not be.
    lost_barrier: SequenceNumber,
    /// Entries whose octets come next, by their lanes.
    apart: BTreeMap<Guid, Head>,
    /// The last number on the lane of each entry that is kept there.
    sent: VecDeque<SequenceNumber>,
    samples: CachedSamples,
    /// When participants were heard last, where voters have names.
    voices: BTreeMap<GuidPrefix, Instant>,
    /// Somebody of this participant waits for the delivery of what it writes.
    is_awaited: bool,
    /// What came of others since it last told them what it has: entries and their octets.
    untold: (usize, usize),
    /// Something is delivered that nobody was offered yet.
    has_delivered: bool,
    /// It has left, and who waits for that was told.
    is_gone: bool,
    counts: AtomicCounts,
    dropped: Dropped,
    /// Where the first epoch of this participant began.
    first_base: Option<u64>,
    events: Vec<AtomicEvent>,
    moved: bool,
    is_ended: bool,
    /// What makes durable what the group keeps.
    committer: Option<Committer<storage::Change<Arc<Entry>>>>,
    /// Nothing is kept any more.
    store_error: Option<StoreError>,
}

/// A reader of this participant.
pub(crate) struct LocalReader {
    pub(crate) slot: Arc<ReaderSlot>,
    /// It gets what was agreed before it came.
    pub(crate) is_durable: bool,
    /// Writers of which it gets nothing.
    pub(crate) mismatched: BTreeSet<Guid>,
}

/// A change to be written.
pub(crate) struct Change<'a> {
    pub(crate) kind: ChangeKind,
    pub(crate) key: Key,
    pub(crate) payload: NewPayload<'a>,
    /// `None`: now.
    pub(crate) timestamp: Option<Time>,
    /// Who writes it waits until it is taken. Who does not is told when it may be.
    pub(crate) waits: bool,
}

/// Why a change was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotWritten {
    /// A member, perhaps this one, has not delivered enough.
    Full,
    /// The group changes, or this participant is no member yet.
    Changing,
    /// The group changes for long: no majority of the voters is reached.
    Suspended,
    /// This participant is no member any more.
    Gone,
    /// The writer refuses it.
    Refused(WriteError),
}

impl GroupSlot {
    /// Begins to join.
    ///
    /// # Errors
    /// What is kept of it cannot be read.
    pub(crate) fn open(
        opening: &Opening<'_>,
        slot: &Arc<ParticipantSlot>,
        mut next_key: impl FnMut() -> u32,
    ) -> std::result::Result<Arc<Self>, StoreError> {
        let prefix = slot.prefix;
        let bounds = GroupLimits::default();
        let Opened { group, store } = opening.open(prefix, clock::now())?;
        let (voting, limits) = (opening.voting, &opening.limits);
        Ok(Arc::new_cyclic(|weak: &Weak<Self>| Self {
            name: opening.name.clone(),
            guid: prefix.entity(EntityId::with_kind(next_key(), GROUP)),
            slot: Arc::clone(slot),
            lane: Channel::lane(prefix, &mut next_key, limits.clone(), voting),
            messages: Channel::messages(prefix, &mut next_key, limits.clone(), bounds.messages_max, voting),
            leave_within: bounds.leave_within,
            linger: bounds.linger,
            settle_within: bounds.settle_within,
            pool: PayloadPool::new(),
            progress: Notify::default(),
            has_backlog: AtomicBool::new(false),
            has_refused: AtomicBool::new(false),
            has_events: AtomicBool::new(false),
            deadline: Deadline::default(),
            voting: voting.clone(),
            is_witness: opening.is_witness,
            keeps: opening.keeps,
            state: std::sync::Mutex::new(State {
                group,
                readers: Vec::new(),
                writers: BTreeMap::new(),
                unresolved: VecDeque::new(),
                barriers: Default::default(),
                lost_barrier: SequenceNumber::default(),
                apart: BTreeMap::new(),
                sent: VecDeque::new(),
                samples: CachedSamples::new(),
                voices: BTreeMap::new(),
                is_awaited: false,
                untold: (0, 0),
                has_delivered: false,
                is_gone: false,
                counts: AtomicCounts::default(),
                dropped: Dropped::default(),
                first_base: None,
                events: Vec::new(),
                moved: false,
                is_ended: false,
                committer: opening.committer(store, voting::on_durable(Weak::clone(weak))),
                store_error: None,
            }),
        }))
    }

    /// What this member keeps on its disk.
    pub(crate) const fn keeps(&self) -> Storage {
        self.keeps
    }

    /// Those of its endpoints for which events come.
    pub(crate) fn endpoints(&self) -> [EntityId; 3] {
        [self.guid.entity, self.lane.reader.id, self.messages.reader.id]
    }

    /// Others find it from now on.
    pub(crate) fn announce(&self) -> std::result::Result<(), DiscoveryError> {
        self.messages.announce(&self.slot, &self.name)?;
        // A witness takes no entries, and would hold the others up if it were sent any.
        if !self.is_witness {
            self.lane.announce(&self.slot, &self.name)?;
        }
        dispatch::with_outbox(|out| {
            self.run(out, |_, _, _| ());
            self.slot.report(out);
        });
        Ok(())
    }

    /// Runs `f` and carries out what follows. Whoever calls reports the events, and tells what happened.
    fn run<R>(&self, out: &mut Outbox, f: impl FnOnce(&mut State, Now, &mut Outbox) -> R) -> R {
        let now = clock::now();
        let (result, moved) = {
            let _rank = Rank::Group.hold();
            let mut state = lock(&self.state);
            let result = f(&mut state, now, out);
            self.carry_out(&mut state, now, out);
            let is_gone = state.group.member().is_none_or(|member| member.phase() == Phase::Gone);
            state.moved |= std::mem::replace(&mut state.is_gone, is_gone) != is_gone;
            let due = state.group.next_deadline().filter(|_| !state.is_ended);
            self.deadline.set(&self.slot.shared().timer, self.guid, due);
            let moved = std::mem::take(&mut state.moved);
            if moved && self.has_refused.swap(false, Ordering::SeqCst) {
                out.events.extend(state.writers.keys().map(|id| Event::Progress { endpoint: *id }));
            }
            (result, moved)
        };
        if moved {
            self.progress.wake_all();
        }
        result
    }

    /// Something has come for it: called with no lock held.
    pub(crate) fn receive(&self) {
        dispatch::with_outbox(|out| {
            self.run(out, |state, now, out| {
                let is_awaited = self.take_entries(state, now, out) | self.take_messages(state, now, out);
                if is_awaited || state.is_row_due() {
                    state.untold = (0, 0);
                    state.group.flush(now.mono);
                }
            });
            self.slot.report(out);
        });
    }

    /// The timer's entry went off.
    pub(crate) fn fire(&self, out: &mut Outbox) {
        if !self.deadline.is_due(&self.slot.shared().timer, self.guid, clock::mono()) {
            return;
        }
        self.deadline.disarmed();
        self.run(out, |state, now, _| state.group.tick(now.mono));
    }

    fn carry_out(&self, state: &mut State, now: Now, out: &mut Outbox) {
        while let Some(action) = state.group.poll() {
            let is_of_lanes = matches!(
                action,
                Action::Deliver(_) | Action::SendEntry(..) | Action::Release(_) | Action::Store(..)
            );
            if !is_of_lanes {
                self.offer_delivered(state, now, out);
            }
            let shared = self.slot.shared();
            match action {
                Action::Send(to, message) => {
                    let is_sent = self.messages.writer.run(shared, now, out, |writer, now, out| {
                        lane::send_message(writer, &self.pool, now, (to, &message), out)
                    });
                    if !is_sent {
                        state.dropped.count(AtomicDrop::Unsent);
                    }
                }
                Action::SendEntry(header, entry) => {
                    let nonce = state.group.member().map_or(0, |member| member.id().nonce);
                    let is_awaited = state.is_awaited || entry.kind == EntryKind::Barrier;
                    let header = (nonce, header, is_awaited);
                    let sent = self.lane.writer.run(shared, now, out, |writer, now, out| {
                        lane::send_entry(writer, &self.pool, now, header, &entry, out)
                    });
                    match sent {
                        Ok(number) => state.sent.push_back(number),
                        Err(_) => state.dropped.count(AtomicDrop::Unsent),
                    }
                }
                Action::Deliver(delivered) => self.deliver(state, delivered),
                Action::Release(count) => {
                    let count = (count as usize).min(state.sent.len());
                    if let Some(last) = state.sent.drain(..count).next_back() {
                        self.lane
                            .writer
                            .run(shared, now, out, |writer, now, _| writer.forget_through(now, last));
                    }
                    state.moved = true;
                }
                Action::Settled(count) => state.settle(count),
                Action::Unknown(count) => state.give_up(count),
                Action::Missed(count) => self.lose(state, now, count, out),
                Action::Store(number, change) => {
                    if let Some(committer) = &state.committer {
                        committer.push(number, change);
                    }
                }
                Action::State(through, octets) => self.give_state(state, now, through, &octets, out),
                Action::Status(status) => self.note(state, status),
            }
        }
        self.offer_delivered(state, now, out);
    }

    fn note(&self, state: &mut State, status: Status) {
        let counts = &mut state.counts;
        match status {
            Status::Installed { .. } => {
                let base = state.group.member().and_then(member::Member::view).map(|view| view.base_position);
                let base = *state.first_base.get_or_insert_with(|| base.unwrap_or(0));
                for reader in &mut state.readers {
                    reader.after.get_or_insert(base);
                }
            }
            Status::Evicted => counts.evicted += 1,
            Status::Suspended => counts.suspended += 1,
            Status::DataLoss => {
                counts.data_loss += 1;
                state.readers.iter_mut().for_each(|reader| reader.begins_anew = true);
            }
            Status::OutcomeUnknown => counts.outcome_unknown += 1,
            Status::Diverged => counts.diverged += 1,
            // Both are shown with the group.
            Status::StorageFailed | Status::Stranger => {}
        }
        state.moved = true;
        // Who is told of none for long needs the last ones only.
        if state.events.len() == EVENTS_MAX {
            state.events.remove(0);
        }
        state.events.push(status);
        self.has_events.store(true, Ordering::SeqCst);
    }

    /// Writes a change of a writer; its number.
    pub(crate) fn write(
        &self,
        writer: EntityId,
        change: &mut Change<'_>,
    ) -> std::result::Result<SequenceNumber, NotWritten> {
        dispatch::with_outbox(|out| {
            let written = self.run(out, |state, now, out| {
                let written = self.accept(state, now, writer, change);
                if written == Err(NotWritten::Full) {
                    // Room is made by who has what waits here for more.
                    self.lane.writer.run(self.slot.shared(), now, out, Writer::flush);
                }
                if written.is_err() && !change.waits {
                    self.has_refused.store(true, Ordering::SeqCst);
                }
                written
            });
            self.slot.report(out);
            written
        })
    }

    fn accept(
        &self,
        state: &mut State,
        now: Now,
        id: EntityId,
        change: &mut Change<'_>,
    ) -> std::result::Result<SequenceNumber, NotWritten> {
        if self.disk_error(state).is_some() {
            return Err(NotWritten::Gone);
        }
        let writing = state.writers.get_mut(&id).ok_or(NotWritten::Gone)?;
        if !writing.backlog.is_empty() {
            return Err(NotWritten::Full);
        }
        let (kind, key) = (change.kind, change.key);
        let bytes = change.payload.view().len();
        let (kind, timestamp, has_others) = writing
            .slot
            .edit(|writer| {
                let timestamp = change.timestamp.unwrap_or_else(|| writer.source_timestamp(now, key));
                Ok((
                    writer.prepare(now, kind, key, bytes, timestamp)?,
                    timestamp,
                    writer.has_eventual_readers(),
                ))
            })
            .map_err(NotWritten::Refused)?;
        state.is_awaited = has_others || !state.readers.is_empty();
        let payload = match &change.payload {
            NewPayload::Octets(octets) => self.pool.copy(octets),
            NewPayload::Payload(payload) => Payload::clone(payload),
        };
        let number = writing.last.next();
        let entry = Arc::new(Entry {
            writer: self.guid.prefix.entity(id),
            number,
            kind: kind_of(kind),
            timestamp,
            instance: key.hash.0,
            depth: writing.depth,
            is_kept: writing.is_kept,
            payload,
        });
        if let Err(refused) = state.group.write(now.mono, Arc::clone(&entry)) {
            return Err(state.refusal(now, refused));
        }
        if let Some(writing) = state.writers.get_mut(&id) {
            writing.last = number;
        }
        state.unresolved.push_back((entry, key));
        Ok(number)
    }

    /// Writes a barrier; its number. When it is resolved, everything is delivered here that was resolved
    /// anywhere before.
    fn begin_sync(&self) -> std::result::Result<SequenceNumber, NotWritten> {
        dispatch::with_outbox(|out| {
            let written = self.run(out, |state, now, _| {
                if self.disk_error(state).is_some() {
                    return Err(NotWritten::Gone);
                }
                let number = state.barriers.0.next();
                let entry = Arc::new(Entry {
                    writer: self.guid,
                    number,
                    kind: EntryKind::Barrier,
                    timestamp: now.wall,
                    instance: [0; 16],
                    depth: 0,
                    is_kept: false,
                    payload: Payload::empty(),
                });
                let written = state.group.write(now.mono, Arc::clone(&entry));
                written.map_err(|refused| state.refusal(now, refused))?;
                state.barriers.0 = number;
                state.unresolved.push_back((entry, lane::NO_KEY));
                Ok(number)
            });
            self.slot.report(out);
            written
        })
    }

    /// Writes a barrier and waits until it is resolved; `check` ends the wait for an entity that is deleted.
    pub(crate) fn sync(
        &self,
        timeout: Duration,
        describe: &dyn Fn() -> String,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let deadline = clock::deadline(timeout);
        let mut barrier = None;
        loop {
            let epoch = self.progress.epoch();
            if barrier.is_none() {
                match self.begin_sync() {
                    Ok(number) => barrier = Some(number),
                    Err(NotWritten::Gone) => return Err(self.why_gone(describe)),
                    Err(_) => {}
                }
            }
            match barrier.map(|number| self.is_synced(number)) {
                Some(Some(true)) => return Ok(()),
                Some(None) => {
                    barrier = None;
                    continue;
                }
                Some(Some(false)) | None => {}
            }
            self.check_disk()?;
            check()?;
            if !self.await_progress(epoch, deadline) {
                let why = if barrier.is_some() { NotWritten::Full } else { NotWritten::Changing };
                let what = format!("synchronising {} ({})", describe(), self.explain(why));
                return Err(Error::Timeout { waited_for: WaitedFor::Group, what, timeout });
            }
        }
    }

    /// Sleeps until something moves on since the epoch was `seen`; false when `deadline` passed first. A
    /// thread of the domain, which may have called a listener that waits, goes on with what it is for.
    pub(crate) fn await_progress(&self, seen: u32, deadline: Option<Instant>) -> bool {
        receive::sleep(&self.progress, seen, deadline)
    }

    /// Somebody waits for the delivery of what was written here: others are to say at once that they have it.
    pub(crate) fn hasten(&self) {
        dispatch::with_outbox(|out| {
            self.run(out, |state, now, out| {
                self.lane.writer.run(self.slot.shared(), now, out, Writer::flush);
                state.group.hasten(now.mono);
            });
            self.slot.report(out);
        });
    }

    /// Whether its entries go to others of this host by memory that they share.
    pub(crate) fn shares_memory(&self) -> bool {
        self.lane.writer.look(Writer::shares_memory)
    }

    /// Whether a barrier, or one after it, is delivered here; `None` if it never will be, because the others
    /// went on without this participant meanwhile.
    fn is_synced(&self, number: SequenceNumber) -> Option<bool> {
        let _rank = Rank::Group.hold();
        let state = lock(&self.state);
        let is_delivered = state.barriers.1 >= number;
        (is_delivered || state.lost_barrier < number).then_some(is_delivered)
    }

    /// Whether a change is delivered here, or it is known that it was to the others.
    pub(crate) fn is_resolved(&self, writer: EntityId, number: SequenceNumber) -> bool {
        let _rank = Rank::Group.hold();
        let state = lock(&self.state);
        state.writers.get(&writer).is_none_or(|it| it.resolved >= number)
    }

    /// Of how many changes of a writer it cannot be told any more whether they were delivered, since this was
    /// last asked.
    pub(crate) fn take_unknown(&self, writer: EntityId) -> u64 {
        let _rank = Rank::Group.hold();
        lock(&self.state).writers.get_mut(&writer).map_or(0, |it| std::mem::take(&mut it.unknown))
    }

    /// The last change of a writer.
    pub(crate) fn last_of(&self, writer: EntityId) -> SequenceNumber {
        let _rank = Rank::Group.hold();
        lock(&self.state).writers.get(&writer).map_or(SequenceNumber(0), |it| it.last)
    }

    /// Leaves the group, and waits a moment for the others to go on.
    pub(crate) fn leave(&self) {
        let deadline = clock::deadline(self.leave_within);
        let is_alone = dispatch::with_outbox(|out| {
            let is_alone = self.run(out, |state, now, _| {
                let view = state.group.member().and_then(member::Member::view);
                let is_alone = view.is_none_or(|view| view.members.len() == 1);
                state.group.leave(now.mono);
                is_alone
            });
            self.slot.report(out);
            is_alone
        });
        loop {
            let epoch = self.progress.epoch();
            let is_gone = {
                let _rank = Rank::Group.hold();
                lock(&self.state).group.member().is_none_or(|member| member.phase() == Phase::Gone)
            };
            if is_gone || !self.await_progress(epoch, deadline) {
                break;
            }
        }
        let lingers = clock::deadline(self.linger);
        while !self.is_witness && !is_alone && self.await_progress(self.progress.epoch(), lingers) {}
        let committer = {
            let _rank = Rank::Group.hold();
            let mut state = lock(&self.state);
            state.is_ended = true;
            state.committer.take()
        };
        if let Some(committer) = committer {
            committer.drain(self.leave_within);
        }
        if !self.is_witness {
            self.lane.withdraw(&self.slot);
        }
        self.messages.withdraw(&self.slot);
        self.slot.shared().timer.remove(self.guid);
    }

    /// Something happened that nobody was told of yet.
    pub(crate) fn has_events(&self) -> bool {
        self.has_events.load(Ordering::SeqCst)
    }

    /// Takes what happened and nobody was told of yet.
    pub(crate) fn take_events(&self) -> Vec<AtomicEvent> {
        let _rank = Rank::Group.hold();
        let mut state = lock(&self.state);
        self.has_events.store(false, Ordering::SeqCst);
        std::mem::take(&mut state.events)
    }

    /// What is known of it.
    pub(crate) fn look(&self) -> AtomicGroup {
        let mut group = self.look_at_state();
        self.name_voters(&mut group.votes);
        group
    }

    fn look_at_state(&self) -> AtomicGroup {
        let now = clock::mono();
        let named = if self.voting.names().is_empty() { Vec::new() } else { self.slot.look(voter::named) };
        let _rank = Rank::Group.hold();
        let state = lock(&self.state);
        let known = state.group.member().map(|member| (member.state(now), member.position()));
        let (phase, epoch, position) = known
            .as_ref()
            .map_or((Phase::Gone, 0, 0), |(known, position)| (known.phase, known.epoch, *position));
        let members = known.iter().flat_map(|(known, _)| {
            known.members.iter().enumerate().map(|(rank, (id, position))| AtomicMember {
                participant: id.prefix.participant(),
                position: *position,
                is_suspected: known.suspected.has(rank),
                is_held: known.held.has(rank),
            })
        });
        let mut group = AtomicGroup {
            topic: self.name.topic.clone(),
            partition: self.name.partition.clone(),
            phase: phase.into(),
            epoch,
            members: members.collect(),
            position,
            in_window: known.as_ref().map_or(0, |(known, _)| known.in_window),
            unresolved: state.group.member().map_or(0, member::Member::unresolved),
            is_suspended: known.as_ref().is_some_and(|(known, _)| known.is_suspended),
            waiting: state.longest_backlog(),
            history: state.group.member().map_or(0, member::Member::history_len),
            history_state_bytes: state
                .group
                .member()
                .and_then(member::Member::history_state)
                .map_or(0, |(_, state)| state.len()),
            counts: state.counts,
            voters: self.voting.names().to_vec(),
            voter: self.voting.own().map(ToOwned::to_owned),
            votes: Vec::new(),
            store_error: state.store_error.as_ref().map(ToString::to_string),
            strangers: Vec::new(),
            drops: state.dropped.list(state.group.undecodable()),
        };
        group.votes = self.votes(&state, &group, &named, now);
        group
    }
}

impl State {
    /// Why a group does not take what is written.
    fn refusal(&self, now: Now, refused: Refused) -> NotWritten {
        match refused {
            Refused::Full => NotWritten::Full,
            Refused::Gone => NotWritten::Gone,
            Refused::NoMember => {
                let member = self.group.member();
                let is_suspended = member.is_some_and(|member| member.state(now.mono).is_suspended);
                if is_suspended { NotWritten::Suspended } else { NotWritten::Changing }
            }
        }
    }

    /// Whether others wait for what this member has: they deliver by it, or have sent a good part of what
    /// they may. Of two members the other one has delivered what it sent without it, and hears of it in time.
    fn is_row_due(&self) -> bool {
        let bounds = GroupLimits::default();
        let (entries, octets) = self.untold;
        let members = self.group.member().and_then(member::Member::view).map_or(0, |view| view.members.len());
        members != 2 || entries * 4 >= bounds.window_entries || octets * 4 >= bounds.window_bytes
    }

    fn is_unused(&self) -> bool {
        self.readers.is_empty() && self.writers.is_empty()
    }

    /// A change of this participant is delivered: readers with EVENTUAL consistency get it now.
    fn resolve(&mut self, entry: &Entry) {
        let is_it =
            |(other, _): &(Arc<Entry>, Key)| (other.writer, other.number) == (entry.writer, entry.number);
        // What comes of the history was resolved in an earlier incarnation.
        if let Some(position) = self.unresolved.iter().position(is_it)
            && let Some((entry, key)) = self.unresolved.remove(position)
        {
            self.publish(entry, key);
        }
    }

    /// It is agreed: readers with EVENTUAL consistency are offered it.
    fn publish(&mut self, entry: Arc<Entry>, key: Key) {
        let id = entry.writer.entity;
        self.note_resolved(id, entry.number);
        if entry.kind != EntryKind::Barrier
            && let Some(writing) = self.writers.get_mut(&id)
        {
            writing.backlog.push_back((entry, key));
            self.has_delivered = true;
        }
    }

    fn note_resolved(&mut self, id: EntityId, number: SequenceNumber) {
        self.moved = true;
        if let Some(writing) = self.writers.get_mut(&id) {
            writing.resolved = writing.resolved.max(number);
        } else if id.kind() == GROUP {
            self.barriers.1 = self.barriers.1.max(number);
        }
    }

    /// The first changes that are not resolved are, elsewhere.
    fn settle(&mut self, count: u64) {
        for _ in 0..count {
            let Some((entry, key)) = self.unresolved.pop_front() else { break };
            if entry.kind == EntryKind::Barrier {
                self.lose_barrier(entry.number);
            } else {
                self.publish(entry, key);
            }
        }
    }

    /// It is not known whether the first changes that are not resolved are.
    fn give_up(&mut self, count: u64) {
        for _ in 0..count {
            let Some((entry, _)) = self.unresolved.pop_front() else { break };
            if entry.kind == EntryKind::Barrier {
                self.lose_barrier(entry.number);
                continue;
            }
            let id = entry.writer.entity;
            self.note_resolved(id, entry.number);
            if let Some(writing) = self.writers.get_mut(&id) {
                writing.unknown += 1;
            }
        }
    }

    /// What stands before it is not delivered here.
    fn lose_barrier(&mut self, number: SequenceNumber) {
        self.lost_barrier = self.lost_barrier.max(number);
        self.moved = true;
    }
}
