//! What is delivered goes to the readers of this participant, and to its writers for readers with EVENTUAL
//! consistency. What finds no room waits here, and holds the member up: it delivers nothing more, so that
//! the windows of all writers fill ([`plainsong_proto::atomic::member::Member::hold`]).
//!
//! A reader with EVENTUAL consistency holds its writer up as it does elsewhere: one that has never answered
//! is left out after a while, one that has is waited for until the lease of its participant ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plainsong_proto::atomic::entry::{Entry, EntryKind};
use plainsong_proto::atomic::{Delivered, member};
use plainsong_proto::guid::{EntityId, Guid};
use plainsong_proto::outbox::Outbox;
use plainsong_proto::sample_info::Agreed;
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::time::{Duration, Now};

use super::{GroupSlot, LocalReader, State};
use crate::atomic::local::{Attached, GivenState, Writing};
use crate::base::locks::lock;
use crate::runtime::{Rank, WriterSlot, dispatch};

/// Writers that do not match a reader, those that are gone among them.
const MISMATCHED_MAX: usize = 1_024;

impl GroupSlot {
    /// It waits for [`GroupSlot::offer_delivered`], so that what is delivered at once is offered at once.
    pub(super) fn deliver(&self, state: &mut State, delivered: Delivered<Arc<Entry>>) {
        let Delivered { position, epoch, body: entry, .. } = delivered;
        let agreed = Agreed { position, epoch };
        if entry.kind != EntryKind::Barrier {
            for reader in &mut state.readers {
                if reader.after.is_some_and(|after| position > after) && reader.matches(&entry) {
                    reader.backlog.push_back((Arc::clone(&entry), agreed));
                }
            }
        }
        if entry.writer.prefix == self.guid.prefix {
            state.resolve(&entry);
        }
        state.has_delivered = true;
    }

    /// Readers and writers get what is delivered; who has no room holds the member up.
    pub(super) fn offer_delivered(&self, state: &mut State, now: Now, out: &mut Outbox) {
        if std::mem::take(&mut state.has_delivered) && !state.offer(&self.slot, now, out) {
            self.wait_for_room(state, now, out);
        }
    }

    /// Somebody has no room: the member delivers nothing until it has.
    pub(super) fn wait_for_room(&self, state: &mut State, now: Now, out: &mut Outbox) {
        // Who makes room after this offers what waits; who has made some before is offered it here.
        self.has_backlog.store(true, Ordering::SeqCst);
        if !state.offer(&self.slot, now, out) {
            state.group.hold();
        }
    }

    /// Readers and writers that wait for room get what there is for them.
    pub(crate) fn offer_backlog(&self) {
        if !self.has_backlog.load(Ordering::SeqCst) {
            return;
        }
        dispatch::with_outbox(|out| {
            self.run(out, |state, now, out| {
                if state.offer(&self.slot, now, out) {
                    self.has_backlog.store(false, Ordering::SeqCst);
                    state.group.resume(now.mono);
                    // Others wait for what it has.
                    state.group.flush(now.mono);
                }
                state.moved = true;
            });
            self.slot.report(out);
        });
    }

    /// So many samples were delivered to others only.
    pub(super) fn lose(&self, state: &mut State, now: Now, count: u64, out: &mut Outbox) {
        state.counts.missed += count;
        for reader in &state.readers {
            reader.slot.run(self.slot.shared(), now, out, |reader, _, out| reader.lost_agreed(count, out));
        }
    }

    /// A reader of this participant gets what is agreed from now on, and before if it is durable.
    pub(crate) fn add_reader(&self, reader: LocalReader) {
        dispatch::with_outbox(|out| {
            self.run(out, |state, now, out| {
                let member = state.group.member();
                let is_member = state.first_base.is_some();
                let LocalReader { slot, is_durable, mismatched } = reader;
                let after = match member {
                    _ if is_durable => Some(0),
                    Some(member) if is_member => Some(member.position()),
                    _ => None,
                };
                let mut attached = Attached {
                    slot,
                    after,
                    is_durable,
                    mismatched,
                    backlog: VecDeque::new(),
                    wants_state: false,
                    state: None,
                    begins_anew: false,
                };
                let known = member.filter(|_| is_durable).into_iter().flat_map(member::Member::history);
                // No more than the history has at most.
                let backlog = known.filter(|known| attached.matches(&known.body)).map(|known| {
                    (Arc::clone(&known.body), Agreed { position: known.position, epoch: known.epoch })
                });
                attached.backlog = backlog.collect();
                state.readers.push(attached);
                self.wait_for_room(state, now, out);
            });
            self.slot.report(out);
        });
        self.offer_backlog();
    }

    /// Whether a writer matches a reader has changed.
    pub(crate) fn note_mismatch(&self, reader: EntityId, writer: Guid, is_matched: bool) {
        let _rank = Rank::Group.hold();
        let mut state = lock(&self.state);
        for reader in state.readers.iter_mut().filter(|it| it.slot.id == reader) {
            if is_matched {
                reader.mismatched.remove(&writer);
                continue;
            }
            if reader.mismatched.len() >= MISMATCHED_MAX {
                reader.mismatched.pop_first();
            }
            reader.mismatched.insert(writer);
        }
    }

    /// A reader takes state in place of what was delivered before it came, and from now on.
    pub(crate) fn want_state(&self, id: EntityId) {
        let _rank = Rank::Group.hold();
        let mut state = lock(&self.state);
        let known = state.group.member().and_then(member::Member::history_state).cloned();
        for reader in state.readers.iter_mut().filter(|reader| reader.slot.id == id) {
            reader.wants_state = true;
            let given = |(through, octets)| GivenState { through, octets, begins_anew: false };
            reader.state = known.clone().map(given);
        }
    }

    pub(super) fn give_state(
        &self,
        state: &mut State,
        now: Now,
        through: u64,
        octets: &Arc<[u8]>,
        out: &mut Outbox,
    ) {
        for reader in state.readers.iter_mut().filter(|reader| reader.wants_state) {
            let begins_anew = std::mem::take(&mut reader.begins_anew)
                | reader.state.as_ref().is_some_and(|before| before.begins_anew);
            reader.state = Some(GivenState { through, octets: Arc::clone(octets), begins_anew });
            reader.slot.run(self.slot.shared(), now, out, |reader, _, out| reader.told_state(out));
        }
    }

    /// The state that a reader was given last, once.
    pub(crate) fn take_state(&self, id: EntityId) -> Option<GivenState> {
        let _rank = Rank::Group.hold();
        let mut state = lock(&self.state);
        state.readers.iter_mut().find(|reader| reader.slot.id == id)?.state.take()
    }

    /// Everything up to a position is in this state: it takes the place of what is kept.
    pub(crate) fn replace_history(&self, through: u64, octets: Arc<[u8]>) {
        dispatch::with_outbox(|out| {
            self.run(out, |state, _, _| state.group.replace_history(through, octets));
            self.slot.report(out);
        });
    }

    pub(crate) fn remove_reader(&self, id: EntityId) -> bool {
        let is_unused = {
            let _rank = Rank::Group.hold();
            let mut state = lock(&self.state);
            state.readers.retain(|reader| reader.slot.id != id);
            state.is_unused()
        };
        // Nothing waits for it any more.
        self.offer_backlog();
        is_unused
    }

    /// A writer of this participant; so many of each instance are kept for those who join later, 0 for all,
    /// `None` for none. Who holds it up for longer than `slow` is excluded.
    pub(crate) fn add_writer(&self, slot: &Arc<WriterSlot>, kept: Option<u32>, slow: Duration) {
        let writing = Writing {
            slot: Arc::clone(slot),
            last: SequenceNumber(0),
            resolved: SequenceNumber(0),
            unknown: 0,
            depth: kept.unwrap_or(0),
            is_kept: kept.is_some(),
            slow,
            backlog: VecDeque::new(),
        };
        let _rank = Rank::Group.hold();
        let mut state = lock(&self.state);
        state.writers.insert(slot.id, writing);
        state.follow_slow();
    }

    pub(crate) fn remove_writer(&self, id: EntityId) -> bool {
        let is_unused = {
            let _rank = Rank::Group.hold();
            let mut state = lock(&self.state);
            state.writers.remove(&id);
            state.follow_slow();
            state.is_unused()
        };
        self.offer_backlog();
        is_unused
    }
}

impl State {
    /// Whether all found room.
    fn offer(&mut self, slot: &crate::runtime::ParticipantSlot, now: Now, out: &mut Outbox) -> bool {
        let mut has_room = true;
        for reader in &mut self.readers {
            has_room &= reader.offer_backlog(slot, now, out);
        }
        for writing in self.writers.values_mut() {
            has_room &= writing.publish(slot, now, out);
        }
        has_room
    }

    /// The most patient that this participant may be is what the least patient of its writers allows.
    fn follow_slow(&mut self) {
        let slow = self.writers.values().map(|it| it.slow).min().unwrap_or(Duration::INFINITE);
        self.group.set_slow(slow);
    }

    pub(super) fn longest_backlog(&self) -> usize {
        let readers = self.readers.iter().map(|it| it.backlog.len());
        readers.chain(self.writers.values().map(|it| it.backlog.len())).max().unwrap_or(0)
    }
}
