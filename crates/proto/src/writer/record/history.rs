//! The changes a writer still needs: HISTORY, RESOURCE_LIMITS and LIFESPAN of DCPS 1.4 §2.2.3
//! as a queue in the order of sequence numbers.
//!
//! Changes leave from anywhere (KEEP_LAST, LIFESPAN); what they leave behind is a hole. Holes at the
//! front go at once, the others when they outnumber the changes, so that every operation is
//! O(log n) at worst and O(1) amortised, and memory follows the number of changes held.

use std::collections::{BTreeMap, VecDeque};

use crate::instance::InstanceHandle;
use crate::payload::NewPayload;
use crate::qos::{Durability, QosSet};
use crate::seq::SequenceNumber;
use crate::time::{Instant, Time};
use crate::tuning::writer::{HISTORY_HOLES_MAX, HISTORY_HOLES_SCANNED_MAX};

use super::change::{Change, ChangeKind, Marks, Verdict, window_bytes};
use super::instances::{Instances, Slot};
use super::payloads::{Payloads, Place};
use super::service::Service;

/// One change, or the hole that it left. One cache line: a window has thousands.
#[derive(Debug)]
#[repr(align(64))]
struct Entry {
    sequence_number: SequenceNumber,
    /// Neighbours among the changes of the same instance, 0 for none. The one before may be gone.
    previous: SequenceNumber,
    next: SequenceNumber,
    source_timestamp: Time,
    expires: Instant,
    /// Of a coherent set, or numbered among those of all writers of the publisher: few are.
    marks: Option<Box<Marks>>,
    slot: Slot,
    verdict: Verdict,
    payload: Place,
    /// `None`: a hole.
    kind: Option<ChangeKind>,
}

/// Expires never.
const NEVER: Instant = Instant(u64::MAX);
/// No neighbour.
const NONE: SequenceNumber = SequenceNumber(0);

const _: () = assert!(size_of::<Entry>() == 64);

impl Entry {
    /// It only ends a coherent set.
    fn is_end(&self) -> bool {
        self.marks.as_ref().is_some_and(|marks| marks.is_end)
    }
}

/// The changes of one writer.
#[derive(Debug, Default)]
pub(crate) struct History {
    entries: VecDeque<Entry>,
    payloads: Payloads,
    /// Entries that are not holes.
    changes: usize,
    last: SequenceNumber,
    /// Nobody needs changes up to here any more, late joiners apart.
    released: SequenceNumber,
    /// Changes above `released`, and their octets.
    pending: usize,
    pending_bytes: usize,
    /// Changes stay when released, for late joiners.
    durable: bool,
    /// There was a change that expires.
    expiring: bool,
    /// What becomes of them then, when a durability service does it.
    pub(crate) service: Option<Service>,
    /// Coherent sets of which anything is held, by their first numbers.
    sets: BTreeMap<SequenceNumber, HeldSet>,
    /// Ends of sets among the changes.
    ends: usize,
    /// The last end of a set: it stays even when nothing else of its set does.
    last_end: SequenceNumber,
}

/// What is held of a coherent set.
#[derive(Debug, Default)]
struct HeldSet {
    /// Its changes with data.
    changes: usize,
    /// The change that ends it.
    end: Option<SequenceNumber>,
}

impl History {
    /// The history of a writer with this QoS, whose numbers begin after `last`.
    pub(crate) fn of(qos: &QosSet, last: SequenceNumber) -> Self {
        let durable = qos.durability >= Durability::TransientLocal;
        let payloads = Payloads::new(!durable);
        Self { durable, payloads, last, released: last, service: Service::new(qos), ..Self::default() }
    }

    /// Payloads of up to so many octets are copied, longer ones referenced.
    pub(crate) const fn copied_bytes_max(&self) -> usize {
        self.payloads.short_bytes_max()
    }

    /// Number of the last change written, 0 before the first.
    pub(crate) const fn last(&self) -> SequenceNumber {
        self.last
    }

    /// No change has a number up to this one but those written so far.
    pub(crate) fn leave_out(&mut self, up_to: SequenceNumber) {
        self.last = self.last.max(up_to);
    }

    /// Nobody but late joiners needs changes up to this one.
    pub(crate) const fn released(&self) -> SequenceNumber {
        self.released
    }

    /// Number of the first change held, `last + 1` when there is none.
    pub(crate) fn first(&self) -> SequenceNumber {
        self.entries.front().map_or_else(|| self.last.next(), |entry| entry.sequence_number)
    }

    /// Changes held, ends of coherent sets apart.
    pub(crate) const fn len(&self) -> usize {
        self.changes - self.ends
    }

    /// Changes and holes.
    #[cfg(test)]
    pub(crate) fn entries_held(&self) -> usize {
        self.entries.len()
    }

    /// Coherent sets of which anything is held.
    #[cfg(test)]
    pub(crate) fn sets_held(&self) -> usize {
        self.sets.len()
    }

    /// Pieces of memory with short payloads.
    #[cfg(test)]
    pub(crate) fn chunks_held(&self) -> usize {
        self.payloads.chunks_held()
    }

    /// Changes not released yet.
    pub(crate) const fn pending(&self) -> usize {
        self.pending
    }

    /// Octets that the changes not released yet take up.
    pub(crate) const fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// Octets that will be pending when the changes up to this one are released, were all of one length.
    pub(crate) fn pending_bytes_above(&self, number: SequenceNumber) -> usize {
        let above = usize::try_from(self.last.0 - number.0).unwrap_or(0).min(self.pending);
        (self.pending_bytes / self.pending.max(1)).saturating_mul(above)
    }

    /// When the oldest change expires. Changes expire in the order written; one written with an older
    /// source timestamp may wait for those before it, and is refused when asked for meanwhile.
    #[inline]
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        // Else the oldest change, which is in no cache, is not touched by each write.
        if !self.expiring {
            return None;
        }
        self.entries.front().map(|entry| entry.expires).filter(|end| *end != NEVER)
    }

    /// Appends a change; its number. The payload is taken from `payload`, whatever `change` shows of it.
    pub(crate) fn push(
        &mut self,
        slot: Slot,
        change: &Change<'_>,
        payload: NewPayload<'_>,
        instances: &mut Instances,
    ) -> SequenceNumber {
        let sequence_number = self.last.next();
        self.last = sequence_number;
        self.changes += 1;
        self.pending += 1;
        self.pending_bytes += window_bytes(payload.view().len());
        let superseded = change.marks.and_then(|marks| self.join_set(sequence_number, marks));
        self.expiring |= change.expires.is_some();
        let mut previous = None;
        if let Some(instance) = instances.get_mut(slot) {
            if instance.samples == 0 {
                instance.oldest = sequence_number;
            } else {
                previous = Some(instance.newest);
            }
            instance.newest = sequence_number;
            instance.samples += 1;
        }
        if let Some(previous) = previous {
            self.reopen(previous);
            if let Some(entry) = self.entry_mut(previous) {
                entry.next = sequence_number;
            }
        }
        self.entries.push_back(Entry {
            sequence_number,
            previous: previous.unwrap_or(NONE),
            next: NONE,
            source_timestamp: change.source_timestamp,
            expires: change.expires.unwrap_or(NEVER),
            marks: change.marks.map(|marks| Box::new(*marks)),
            slot,
            verdict: change.verdict,
            payload: self.payloads.push(payload),
            kind: Some(change.kind),
        });
        if let Some(superseded) = superseded {
            self.remove(superseded, instances);
        }
        sequence_number
    }

    /// The change of that number, if it is held.
    pub(crate) fn get(&self, number: SequenceNumber, instances: &Instances) -> Option<Change<'_>> {
        let entry = self.held(number)?;
        Some(Change {
            kind: entry.kind?,
            hash: instances
                .get(entry.slot)
                .map_or(InstanceHandle::NIL, |instance| instances.hash_of(instance.handle)),
            payload: self.payloads.get(entry.payload),
            source_timestamp: entry.source_timestamp,
            expires: Some(entry.expires).filter(|end| *end != NEVER),
            marks: entry.marks.as_deref(),
            verdict: entry.verdict,
        })
    }

    /// What the change of that number does to its instance, if it is held.
    pub(crate) fn kind(&self, number: SequenceNumber) -> Option<ChangeKind> {
        self.held(number)?.kind
    }

    fn held(&self, number: SequenceNumber) -> Option<&Entry> {
        self.entries.get(self.position(number).ok()?).filter(|entry| entry.kind.is_some())
    }

    /// The first change held with this number or a higher one, or, when many holes follow, a number
    /// below which there is none; `last + 1` at the end. Everything before it is gone for good.
    pub(crate) fn next_held(&self, number: SequenceNumber) -> SequenceNumber {
        let (Ok(start) | Err(start)) = self.position(number);
        let end = start.saturating_add(HISTORY_HOLES_SCANNED_MAX).min(self.entries.len());
        for entry in self.entries.range(start.min(end)..end) {
            if entry.kind.is_some() {
                return entry.sequence_number;
            }
        }
        self.entries.get(end).map_or_else(|| self.last.next(), |entry| entry.sequence_number)
    }

    /// The group number of a change that is held.
    pub(crate) fn numbered(&self, number: SequenceNumber) -> Option<SequenceNumber> {
        self.held(number)?.marks.as_ref()?.group_number
    }

    /// The group number of the last change held with this number or a lower one; `None` also after many
    /// holes.
    pub(crate) fn last_numbered(&self, number: SequenceNumber) -> Option<SequenceNumber> {
        let (Ok(end) | Err(end)) = self.position(number.next());
        let end = end.min(self.entries.len());
        let start = end.saturating_sub(HISTORY_HOLES_SCANNED_MAX);
        let held = self.entries.range(start..end).rev().find(|entry| entry.kind.is_some())?;
        held.marks.as_ref()?.group_number
    }

    /// Drops one change, wherever it is: often in front, as the last of the only instance.
    #[inline]
    pub(crate) fn remove(&mut self, number: SequenceNumber, instances: &mut Instances) {
        let is_first = |entry: &mut Entry| entry.sequence_number == number;
        if self.service.is_none()
            && let Some(entry) = self.entries.pop_front_if(is_first)
        {
            self.first_left(entry, instances);
            if self.entries.is_empty() {
                self.payloads.clear();
            }
        } else {
            self.remove_in_place(number, instances);
        }
        self.drop_holes();
    }

    /// Drops one change and leaves its hole, so that positions stay.
    pub(crate) fn remove_in_place(&mut self, number: SequenceNumber, instances: &mut Instances) {
        if let Ok(position) = self.position(number) {
            self.empty(position, instances);
        }
    }

    /// Drops the changes whose lifespan has ended; whether there were any.
    pub(crate) fn expire(&mut self, now: Instant, instances: &mut Instances) -> bool {
        let before = self.changes;
        while self.next_expiry().is_some_and(|end| end <= now) {
            self.empty(0, instances);
            self.drop_holes();
        }
        self.changes < before
    }

    /// LIFESPAN was changed: all changes held follow the new one.
    pub(crate) fn set_expiry(&mut self, expiry: impl Fn(Time) -> Option<Instant>) {
        self.expiring = true;
        for entry in self.entries.iter_mut().filter(|entry| entry.kind.is_some()) {
            entry.expires = expiry(entry.source_timestamp).unwrap_or(NEVER);
        }
    }

    /// Nobody but late joiners needs changes up to `number` any more; never goes back. Volatile
    /// changes are dropped, and so is all that is held of instances unregistered by then.
    pub(crate) fn release(
        &mut self,
        now: Instant,
        number: SequenceNumber,
        instances: &mut Instances,
    ) -> bool {
        if number <= self.released {
            return false;
        }
        if self.durable {
            self.release_durable(now, number, instances);
        } else {
            self.release_volatile(number, instances);
        }
        self.released = number;
        self.drop_holes();
        self.keep_service_limits(instances);
        true
    }

    /// The changes up to `number` leave, from the front: each is touched once, and nothing else but its
    /// instance.
    fn release_volatile(&mut self, number: SequenceNumber, instances: &mut Instances) {
        self.release_plain(number, instances);
        while let Some(entry) = self.entries.pop_front_if(|entry| entry.sequence_number <= number) {
            let released = entry.sequence_number;
            self.first_left(entry, instances);
            self.released = released;
        }
        if self.entries.is_empty() {
            self.payloads.clear();
        }
    }

    /// The first changes leave together, as long as they have nothing special. An instance is told once of
    /// those that follow each other.
    fn release_plain(&mut self, number: SequenceNumber, instances: &mut Instances) {
        let (mut left, mut left_of_instance, mut bytes) = (0, 0, 0);
        let mut last: Option<&Entry> = None;
        for entry in &self.entries {
            let is_plain = entry.kind.is_some() && entry.marks.is_none();
            let Some(payload_bytes) = entry.payload.short_len().filter(|_| is_plain) else { break };
            if entry.sequence_number > number {
                break;
            }
            if let Some(before) = last
                && before.next != entry.sequence_number
            {
                instances.first_left(before.slot, left_of_instance, before.next);
                left_of_instance = 0;
            }
            left += 1;
            left_of_instance += 1;
            bytes += window_bytes(payload_bytes);
            last = Some(entry);
        }
        let Some(last) = last else { return };
        instances.first_left(last.slot, left_of_instance, last.next);
        self.payloads.pop_front(last.payload);
        self.released = last.sequence_number;
        self.entries.drain(..left);
        self.changes -= left;
        self.pending -= left;
        self.pending_bytes -= bytes;
    }

    /// The first entry was taken out: its instance is told, and nothing else is touched.
    #[inline(always)]
    fn first_left(&mut self, entry: Entry, instances: &mut Instances) {
        if entry.kind.is_some() {
            self.changes -= 1;
            if entry.sequence_number > self.released {
                self.pending -= 1;
                self.pending_bytes -= window_bytes(self.payloads.len(entry.payload));
            }
            instances.first_left(entry.slot, 1, entry.next);
        }
        self.payloads.pop_front(entry.payload);
        if let Some(marks) = entry.marks {
            self.marked_left(&marks, instances);
        }
    }

    /// A change of a coherent set left: the end of the set may follow.
    #[cold]
    fn marked_left(&mut self, marks: &Marks, instances: &mut Instances) {
        if let Some(end) = self.leave_set(marks) {
            self.remove_in_place(end, instances);
        }
    }

    /// Nobody present needs changes up to `number` any more.
    fn release_durable(&mut self, now: Instant, number: SequenceNumber, instances: &mut Instances) {
        let (Ok(mut position) | Err(mut position)) = self.position(self.released.next());
        while let Some(entry) = self.entries.get(position).filter(|entry| entry.sequence_number <= number) {
            self.released = entry.sequence_number;
            if let Some(kind) = entry.kind {
                self.pending -= 1;
                self.pending_bytes -= window_bytes(self.payloads.len(entry.payload));
                let (slot, unregisters) = (entry.slot, kind.unregisters());
                let (is_end, number_released) = (entry.is_end(), entry.sequence_number);
                if is_end && self.is_useless_end(number_released) {
                    self.empty(position, instances);
                } else if self.service.is_some() {
                    self.hand_over(now, number_released, slot, instances);
                } else if unregisters && entry.next == NONE {
                    self.purge(slot, instances);
                }
            }
            position += 1;
        }
    }

    /// Drops every change of an instance.
    pub(crate) fn purge(&mut self, slot: Slot, instances: &mut Instances) {
        while let Some(instance) = instances.get(slot).filter(|instance| instance.samples > 0) {
            let Ok(position) = self.position(instance.oldest) else { return };
            self.empty(position, instances);
        }
    }

    /// Makes a hole of an entry.
    fn empty(&mut self, position: usize, instances: &mut Instances) {
        let Some(entry) = self.entries.get_mut(position) else { return };
        if entry.kind.take().is_none() {
            return;
        }
        entry.expires = NEVER;
        let marks = entry.marks.take().map_or_else(Marks::default, |marks| *marks);
        let (number, slot, previous, next) = (entry.sequence_number, entry.slot, entry.previous, entry.next);
        self.changes -= 1;
        if number > self.released {
            self.pending -= 1;
            self.pending_bytes -= window_bytes(self.payloads.len(entry.payload));
        }
        self.payloads.let_go(entry.payload);
        if let Some(service) = &mut self.service {
            service.closed(number);
        }
        if let Some(instance) = instances.get_mut(slot) {
            instance.samples -= 1;
            if instance.newest == number {
                instance.newest = previous;
            }
            if instance.oldest == number {
                // The next is not touched, lest its cache line be: that what was before it is gone shows.
                instance.oldest = next;
            } else {
                if let Some(entry) = self.entry_mut(previous) {
                    entry.next = next;
                }
                if let Some(entry) = self.entry_mut(next) {
                    entry.previous = previous;
                }
            }
        }
        instances.forget_if_over(slot);
        if let Some(end) = self.leave_set(&marks)
            && let Ok(position) = self.position(end)
        {
            self.empty(position, instances);
        }
    }

    /// Accounts for a new change of a coherent set. A new end makes the one before it needless when
    /// that is all that is held of its set.
    fn join_set(&mut self, number: SequenceNumber, marks: &Marks) -> Option<SequenceNumber> {
        let set = self.sets.entry(marks.set?).or_default();
        if !marks.is_end {
            set.changes += 1;
            return None;
        }
        set.end = Some(number);
        self.ends += 1;
        let before = std::mem::replace(&mut self.last_end, number);
        (before <= self.released && self.is_useless_end(before)).then_some(before)
    }

    /// Accounts for a change that left. The end of its set follows the last of the others, once every
    /// reader knows of it; it is returned.
    fn leave_set(&mut self, marks: &Marks) -> Option<SequenceNumber> {
        let first = marks.set?;
        if marks.is_end {
            self.ends -= 1;
            self.sets.remove(&first);
            return None;
        }
        let set = self.sets.get_mut(&first)?;
        set.changes -= 1;
        let end = set.end?;
        (end <= self.released && self.is_useless_end(end)).then_some(end)
    }

    /// Whether this is the end of a set of which nothing else is held, and not the last of all ends.
    fn is_useless_end(&self, number: SequenceNumber) -> bool {
        if number == self.last_end {
            return false;
        }
        let marks = self.held(number).and_then(|entry| entry.marks.as_ref()).filter(|marks| marks.is_end);
        let set = marks.and_then(|marks| self.sets.get(&marks.set?));
        set.is_some_and(|set| set.changes == 0)
    }

    /// The kind of the change of that number, and of the one before it of its instance; and whether it is the
    /// last of it.
    pub(crate) fn with_previous(
        &self,
        number: SequenceNumber,
    ) -> Option<(ChangeKind, Option<ChangeKind>, bool)> {
        let entry = self.held(number)?;
        Some((entry.kind?, self.kind(entry.previous), entry.next == NONE))
    }

    /// The change before that number of the same instance.
    pub(crate) fn previous(&self, number: SequenceNumber) -> Option<SequenceNumber> {
        let previous = self.entries.get(self.position(number).ok()?)?.previous;
        self.held(previous).map(|entry| entry.sequence_number)
    }

    #[inline]
    pub(crate) fn drop_holes(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.kind.is_none()) {
            self.pop_front();
        }
        if self.entries.len() > 2 * self.changes + HISTORY_HOLES_MAX {
            self.compact();
        }
    }

    #[cold]
    fn compact(&mut self) {
        self.entries.retain(|entry| entry.kind.is_some());
        self.payloads.compact(self.entries.iter_mut().map(|entry| &mut entry.payload));
    }

    fn pop_front(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            self.payloads.pop_front(entry.payload);
        }
        if self.entries.is_empty() {
            self.payloads.clear();
        }
    }

    fn entry_mut(&mut self, number: SequenceNumber) -> Option<&mut Entry> {
        // The last, where one instance is written again and again.
        if self.entries.back().is_some_and(|entry| entry.sequence_number == number) {
            return self.entries.back_mut();
        }
        let position = self.position(number).ok()?;
        self.entries.get_mut(position)
    }

    /// Where the entry of that number is, or would be.
    fn position(&self, number: SequenceNumber) -> Result<usize, usize> {
        let Some(front) = self.entries.front() else { return Err(0) };
        let Ok(offset) = usize::try_from(number.0.saturating_sub(front.sequence_number.0)) else {
            return Err(0);
        };
        // Without compaction since the front was written, the number tells the position.
        if self.entries.get(offset).is_some_and(|entry| entry.sequence_number == number) {
            return Ok(offset);
        }
        self.entries.binary_search_by_key(&number, |entry| entry.sequence_number)
    }
}
