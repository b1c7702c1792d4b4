//! What is so, whatever members believe: what was sent, who holds it, and the one order that must come of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use plainsong_proto::atomic::message::Row;
use plainsong_proto::atomic::storage::Slot;
use plainsong_proto::atomic::view::{Decision, Report, View};
use plainsong_proto::atomic::{Body as _, Delivered, EntryHeader, HistoryKey, MemberId};

use super::entry::Entry;
use crate::check::Violation;

/// One place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Placed {
    epoch: u64,
    from: MemberId,
    entry: Entry,
}

/// One epoch of one group.
#[derive(Debug)]
struct EpochTruth {
    view: View,
    decision: Option<Arc<Decision>>,
    /// By lane: stamps and entries.
    sent: Vec<Vec<(u64, Entry)>>,
    /// By member and lane: entries that were given to it.
    held: Vec<Vec<u64>>,
    /// And are durable.
    durable: Vec<Vec<u64>>,
    /// By lane: entries in the order.
    placed: Vec<u64>,
    last: (u64, usize),
    rows: Vec<Option<Row>>,
    reports: Vec<Option<Report>>,
}

/// One instance of the group.
#[derive(Debug, Default)]
struct GroupTruth {
    epochs: BTreeMap<u64, EpochTruth>,
    order: Vec<Placed>,
    /// Of all up to each position.
    digests: Vec<u64>,
    /// The last position that somebody knew to be resolved.
    resolved: u64,
    last_of_writer: BTreeMap<u32, u32>,
    kept: BTreeMap<Option<usize>, Kept>,
    /// Positions that are in the order still, and had been replaced by what was lost.
    replaced_by_lost: BTreeSet<u64>,
}

/// What is kept of the order up to a position.
#[derive(Debug, Default)]
struct Kept {
    position: u64,
    entries: BTreeMap<u64, Entry>,
    of_key: BTreeMap<HistoryKey, VecDeque<u64>>,
}

/// Everything.
#[derive(Debug, Default)]
pub(super) struct Truth {
    groups: BTreeMap<u64, GroupTruth>,
    /// By writer and number: the instance in which it was written, and what was resolved before.
    written: Vec<Vec<(u64, u64, Entry)>>,
    /// And the instance in whose order it is.
    placed: BTreeMap<(u32, u32), u64>,
    /// Those of which it cannot be told what came of them.
    pub(super) unknown: BTreeSet<(u32, u32)>,
    is_durable: bool,
    history_entries_max: usize,
    pub(super) violations: Vec<Violation>,
}

impl EpochTruth {
    fn new(view: View) -> Self {
        let count = view.members.len();
        Self {
            decision: None,
            sent: vec![Vec::new(); count],
            held: vec![vec![0; count]; count],
            durable: vec![vec![0; count]; count],
            placed: vec![0; count],
            last: (0, 0),
            rows: vec![None; count],
            reports: vec![None; count],
            view,
        }
    }

    fn safe(&self, is_durable: bool) -> &Vec<Vec<u64>> {
        if is_durable { &self.durable } else { &self.held }
    }

    /// All within a cut, in order.
    fn in_order(&self, cut: &[u64]) -> Vec<(u64, usize, Entry)> {
        let mut all = Vec::new();
        for (rank, lane) in self.sent.iter().enumerate() {
            let count = cut.get(rank).copied().unwrap_or(0).min(lane.len() as u64) as usize;
            all.extend(lane.iter().take(count).map(|(stamp, entry)| (*stamp, rank, *entry)));
        }
        all.sort_by_key(|(stamp, rank, _)| (*stamp, *rank));
        all
    }
}

impl Truth {
    pub(super) fn new(is_durable: bool, history_entries_max: usize) -> Self {
        Self { is_durable, history_entries_max, ..Self::default() }
    }

    pub(super) fn violated(&mut self, invariant: &'static str, what: String) {
        if self.violations.len() < 20 {
            self.violations.push(Violation { invariant, what });
        }
    }

    pub(super) fn new_writer(&mut self) -> u32 {
        self.written.push(Vec::new());
        self.written.len() as u32 - 1
    }

    /// A sample was written.
    pub(super) fn issued(&mut self, instance: u64, entry: Entry) {
        let resolved = self.groups.get(&instance).map_or(0, |group| group.resolved);
        self.written[entry.writer as usize].push((instance, resolved, entry));
    }

    pub(super) fn next_number(&self, writer: u32) -> u32 {
        self.written[writer as usize].len() as u32 + 1
    }

    fn epoch(&mut self, instance: u64, epoch: u64) -> Option<&mut EpochTruth> {
        self.groups.get_mut(&instance)?.epochs.get_mut(&epoch)
    }

    pub(super) fn view(&self, instance: u64, epoch: u64) -> Option<&View> {
        Some(&self.groups.get(&instance)?.epochs.get(&epoch)?.view)
    }

    /// The newest view of an instance.
    pub(super) fn newest(&self, instance: u64) -> Option<&View> {
        Some(&self.groups.get(&instance)?.epochs.last_key_value()?.1.view)
    }

    pub(super) fn instances(&self) -> impl Iterator<Item = u64> {
        self.groups.keys().copied()
    }

    pub(super) fn positions(&self, instance: u64) -> u64 {
        self.groups.get(&instance).map_or(0, |group| group.order.len() as u64)
    }

    pub(super) fn digest(&self, instance: u64, position: u64) -> Option<u64> {
        self.groups.get(&instance)?.digests.get(position.checked_sub(1)? as usize).copied()
    }

    /// A member has sent an entry on its lane.
    pub(super) fn sent(&mut self, instance: u64, from: MemberId, header: EntryHeader, entry: Entry) {
        let Some(truth) = self.epoch(instance, header.epoch) else {
            return self
                .violated("sent", format!("{from} sends in epoch {} that nobody knows", header.epoch));
        };
        let Some(rank) = truth.view.rank_of(from) else {
            return self.violated("sent", format!("{from} sends in epoch {} without it", header.epoch));
        };
        let clock = truth.rows[rank].as_ref().map_or(0, |row| row.clock);
        let lane = &mut truth.sent[rank];
        let is_next = header.index == lane.len() as u64 + 1;
        let is_later = header.stamp > clock && lane.last().is_none_or(|(stamp, _)| header.stamp > *stamp);
        lane.push((header.stamp, entry));
        truth.held[rank][rank] = lane.len() as u64;
        if !is_next || !is_later {
            self.violated("stamps", format!("{from} sends {header:?} after a row with clock {clock}"));
        }
    }

    /// An entry was given to a member that takes it.
    pub(super) fn received(&mut self, instance: u64, who: MemberId, from: MemberId, header: EntryHeader) {
        let Some(truth) = self.epoch(instance, header.epoch) else { return };
        if let (Some(member), Some(lane)) = (truth.view.rank_of(who), truth.view.rank_of(from)) {
            let held = &mut truth.held[member][lane];
            if *held + 1 == header.index {
                *held = header.index;
            }
        }
    }

    /// How much of each lane a member holds.
    pub(super) fn held(&self, instance: u64, epoch: u64, who: MemberId) -> Option<&Vec<u64>> {
        let truth = self.groups.get(&instance)?.epochs.get(&epoch)?;
        Some(&truth.held[truth.view.rank_of(who)?])
    }

    /// How much was sent on each lane.
    pub(super) fn sent_on(&self, instance: u64, epoch: u64) -> Vec<u64> {
        let truth = self.groups.get(&instance).and_then(|group| group.epochs.get(&epoch));
        truth.map_or_else(Vec::new, |it| it.sent.iter().map(|lane| lane.len() as u64).collect())
    }

    /// An entry is on a member's disk.
    pub(super) fn persisted(&mut self, instance: u64, slot: Slot, who: MemberId) {
        let Some(truth) = self.epoch(instance, slot.epoch) else { return };
        if let Some(rank) = truth.view.rank_of(who)
            && let Some(durable) = truth.durable[rank].get_mut(slot.rank)
        {
            *durable = (*durable).max(slot.index);
        }
    }

    /// A member tells what it has.
    pub(super) fn row(&mut self, row: &Row) {
        let is_durable = self.is_durable;
        let Some(truth) = self.epoch(row.instance, row.epoch) else { return };
        let Some(rank) = truth.view.rank_of(row.from) else { return };
        let known = &truth.safe(is_durable)[rank];
        let is_true = row.acked.len() == known.len() && row.acked.iter().zip(known).all(|(a, b)| a <= b);
        let grows = truth.rows[rank].as_ref().is_none_or(|old| {
            old.clock <= row.clock
                && old.sent <= row.sent
                && old.acked.iter().zip(&row.acked).all(|(a, b)| a <= b)
        });
        let has_stopped = truth.reports[rank].is_some();
        let sent = truth.sent[rank].len() as u64;
        truth.rows[rank] = Some(row.clone());
        if !is_true || sent < row.sent {
            self.violated("rows_true", format!("{row:?}, but {} are sent", sent));
        }
        if !grows {
            self.violated("rows_grow", format!("{row:?}"));
        }
        if has_stopped {
            self.violated("stopped", format!("{} tells a row after its report", row.from));
        }
    }

    /// A member has stopped.
    pub(super) fn report(&mut self, instance: u64, report: &Report) {
        let is_durable = self.is_durable;
        let Some(truth) = self.epoch(instance, report.epoch) else { return };
        let Some(rank) = truth.view.rank_of(report.id) else { return };
        let changes = truth.reports[rank].as_ref().is_some_and(|old| {
            let is_less = old.holds.iter().zip(&report.holds).any(|(old, new)| old > new);
            let is_other = old.holds != report.holds || old.clock != report.clock;
            if old.successor == report.successor { is_other } else { is_less && !report.is_partial }
        });
        let known = &truth.safe(is_durable)[rank];
        let is_true =
            report.holds.len() == known.len() && report.holds.iter().zip(known).all(|(a, b)| a <= b);
        let keeps = truth.rows[rank].as_ref().is_none_or(|row| {
            (row.clock <= report.clock || report.successor.is_some())
                && row.acked.iter().zip(&report.holds).all(|(told, holds)| told <= holds)
                || report.is_partial
        });
        truth.reports[rank] = Some(report.clone());
        if changes {
            self.violated("stopped", format!("a report changes: {report:?}"));
        }
        if !is_true {
            self.violated("reports_true", format!("{report:?}"));
        }
        if !keeps {
            self.violated("reports_keep", format!("{report:?} after a row that says more"));
        }
    }

    /// Something was decided, or somebody has made a group.
    pub(super) fn decided(&mut self, decision: &Arc<Decision>) {
        let instance = decision.next.instance;
        let group = self.groups.entry(instance).or_default();
        if decision.base == 0 {
            let known = group.epochs.entry(1).or_insert_with(|| EpochTruth::new(decision.next.clone()));
            if known.view != decision.next {
                self.violated("one_decision", format!("instance {instance} begins twice: {decision:?}"));
            }
            return;
        }
        let Some(truth) = group.epochs.get_mut(&decision.base) else {
            return self.violated("one_decision", format!("of an epoch that never began: {decision:?}"));
        };
        if let Some(known) = &truth.decision {
            if known != decision {
                let what = format!("epoch {} ends by {known:?} and by {decision:?}", decision.base);
                self.violated("one_decision", what);
            }
            return;
        }
        truth.decision = Some(Arc::clone(decision));
        if decision.next.lineage > truth.view.lineage {
            self.lose(decision);
        }
        self.check_decision(decision);
        self.place_within(decision);
        let Some(group) = self.groups.get_mut(&instance) else { return };
        group.epochs.insert(decision.next.epoch, EpochTruth::new(decision.next.clone()));
        let placed = group.order.len() as u64;
        if placed != decision.next.base_position {
            self.violated("positions", format!("{placed} entries before {:?}", decision.next));
        }
    }

    /// All members of an epoch failed at once, and had vouched for what was not durable: what was delivered
    /// in it begins again with what is left.
    fn lose(&mut self, decision: &Decision) {
        let instance = decision.next.instance;
        if self.is_durable {
            self.violated("lineage", format!("members vouched for what is durable, and {decision:?}"));
        }
        let Some(group) = self.groups.get_mut(&instance) else { return };
        let Some(truth) = group.epochs.get_mut(&decision.base) else { return };
        let cut: u64 = decision.cut.iter().sum();
        let left = truth.view.base_position.min(decision.next.base_position - cut);
        truth.placed.fill(0);
        truth.last = (0, 0);
        for lost in &group.order[left as usize..] {
            self.unknown.insert((lost.entry.writer, lost.entry.number));
        }
        let kept = group.history(None, u64::MAX, self.history_entries_max);
        let kept: BTreeSet<u64> = kept.keys().copied().collect();
        group.order.truncate(left as usize);
        group.digests.truncate(left as usize);
        group.kept.clear();
        let kept_of_rest = group.history(None, left, self.history_entries_max);
        let replaced: Vec<u64> = kept_of_rest.keys().filter(|it| !kept.contains(it)).copied().collect();
        group.replaced_by_lost.extend(replaced);
        group.replaced_by_lost.retain(|position| *position <= left);
        group.resolved = group.resolved.min(left);
        // Positions after that begin again.
        let of_instance = self.written.iter_mut().flatten().filter(|(of, ..)| *of == instance);
        of_instance.for_each(|(_, resolved, _)| *resolved = left.min(*resolved));
        group.last_of_writer =
            group.order.iter().map(|place| (place.entry.writer, place.entry.number)).collect();
    }

    fn check_decision(&mut self, decision: &Decision) {
        let is_durable = self.is_durable;
        let Some(truth) = self.epoch(decision.next.instance, decision.base) else { return };
        let mut wrong = Vec::new();
        let mut is_caught_up = false;
        for rank in decision.incumbents.iter() {
            let Some(Some(report)) = truth.reports.get(rank) else {
                wrong.push(("incumbents", format!("rank {rank} goes on and has not reported")));
                continue;
            };
            is_caught_up |= report.caught_up;
            let holds = &truth.safe(is_durable)[rank];
            if decision.cut.iter().zip(holds).any(|(cut, holds)| cut > holds) {
                wrong.push(("availability", format!("rank {rank} goes on and holds {holds:?} only")));
            }
            if report.clock >= decision.next.base_clock {
                wrong.push(("clocks", format!("rank {rank} is ahead of the next epoch")));
            }
        }
        if !is_caught_up && decision.next.lineage == truth.view.lineage {
            wrong.push(("incumbents", "nobody goes on who has caught up".to_owned()));
        }
        if truth.placed.iter().zip(&decision.cut).any(|(placed, cut)| placed > cut) {
            wrong.push(("above_cut", format!("{:?} were delivered", truth.placed)));
        }
        for (invariant, what) in wrong {
            self.violated(invariant, format!("{what}: {decision:?}"));
        }
    }

    /// All within a cut has its place from now on, whether or not somebody delivers it.
    fn place_within(&mut self, decision: &Decision) {
        let instance = decision.next.instance;
        let Some(truth) = self.epoch(instance, decision.base) else { return };
        let sequence = truth.in_order(&decision.cut);
        let base = truth.view.base_position;
        let members: Vec<MemberId> = truth.view.members.iter().map(|it| it.id).collect();
        for (position, (stamp, rank, entry)) in (base + 1..).zip(sequence) {
            let place = Placed { epoch: decision.base, from: members[rank], entry };
            let Some(group) = self.groups.get(&instance) else { return };
            match group.order.get(position as usize - 1) {
                Some(known) if *known == place => {}
                Some(known) => {
                    let what = format!("position {position} was {known:?}, and is {place:?} by the cut");
                    return self.violated("one_order", what);
                }
                None => self.place(instance, place, rank, stamp),
            }
        }
    }

    fn place(&mut self, instance: u64, place: Placed, rank: usize, stamp: u64) {
        let Placed { epoch, entry, .. } = place;
        let Some(group) = self.groups.get_mut(&instance) else { return };
        let position = group.order.len() as u64 + 1;
        group.order.push(place);
        let before = group.digests.last().copied().unwrap_or(1);
        group.digests.push((before.rotate_left(7) ^ entry.digest()).wrapping_mul(0x0000_0100_0000_01b3));
        if let Some(truth) = group.epochs.get_mut(&epoch) {
            truth.placed[rank] += 1;
            truth.last = (stamp, rank);
        }
        self.placed.insert((entry.writer, entry.number), instance);
        let last = group.last_of_writer.insert(entry.writer, entry.number).unwrap_or(0);
        let written = &self.written[entry.writer as usize];
        if entry.number <= last {
            let what =
                format!("position {position}: number {} of {} after {last}", entry.number, entry.writer);
            return self.violated("dense", what);
        }
        let is_missing = |number: u32| {
            let of = written.get(number as usize - 1).map(|(of, ..)| *of);
            let placed = self.placed.get(&(entry.writer, number)).copied();
            let elsewhere = [of, placed].into_iter().flatten().any(|it| it != instance);
            !elsewhere && !self.unknown.contains(&(entry.writer, number))
        };
        if (last + 1..entry.number).any(is_missing) {
            let what =
                format!("position {position}: number {} of {} after {last}", entry.number, entry.writer);
            return self.violated("dense", what);
        }
        match written.get(entry.number as usize - 1) {
            Some((of, resolved, known)) if *known == entry => {
                if *of == instance && *resolved >= position {
                    let what = format!("{entry:?} at {position} was written when {resolved} was resolved");
                    self.violated("real_time", what);
                }
            }
            _ => self.violated("written", format!("position {position}: nobody wrote {entry:?}")),
        }
    }

    /// A member delivers an entry: it is the one of this position for everybody.
    pub(super) fn delivered(&mut self, instance: u64, who: &str, delivered: &Delivered<Entry>) {
        let Delivered { position, epoch, from, body } = *delivered;
        let place = Placed { epoch, from, entry: body };
        let Some(group) = self.groups.get(&instance) else {
            return self.violated("one_order", format!("{who} delivers {delivered:?} in no group"));
        };
        let count = group.order.len() as u64;
        if let Some(known) = group.order.get((position as usize).wrapping_sub(1)) {
            if *known != place {
                self.violated("one_order", format!("position {position} is {known:?}, {who}: {place:?}"));
            }
            return;
        }
        if position != count + 1 {
            return self.violated("positions", format!("{who} delivers {position} after {count}"));
        }
        let Some(truth) = group.epochs.get(&epoch) else {
            return self.violated("one_order", format!("{who}: {delivered:?} of no epoch"));
        };
        let Some(rank) = truth.view.rank_of(from) else {
            return self.violated("one_order", format!("{who}: {delivered:?} of no member"));
        };
        if let Some(decision) = &truth.decision {
            return self.violated("above_cut", format!("{who}: {delivered:?} after {decision:?}"));
        }
        let index = truth.placed[rank] + 1;
        let Some((stamp, entry)) = truth.sent[rank].get(index as usize - 1).copied() else {
            return self.violated("written", format!("{who}: {delivered:?} was not sent"));
        };
        if entry != body {
            return self
                .violated("one_order", format!("{who}: {delivered:?} is not entry {index}: {entry:?}"));
        }
        if (stamp, rank) <= truth.last {
            let what = format!("{who}: {delivered:?} with stamp {stamp} after {:?}", truth.last);
            return self.violated("stamps", what);
        }
        let safe = truth.safe(self.is_durable);
        if let Some(without) = safe.iter().position(|held| held[rank] < index) {
            let what =
                format!("{who} delivers {delivered:?}, entry {index}, but not rank {without} holds it");
            return self.violated("held_by_all", what);
        }
        self.place(instance, place, rank, stamp);
    }

    /// Its writer knows that the first unresolved entry has been delivered.
    pub(super) fn resolved(&mut self, instance: u64, position: u64) {
        if let Some(group) = self.groups.get_mut(&instance) {
            group.resolved = group.resolved.max(position);
        }
    }

    /// Where an entry is in the order.
    pub(super) fn position_of(&self, instance: u64, entry: &Entry) -> Option<u64> {
        let order = &self.groups.get(&instance)?.order;
        order.iter().rposition(|it| it.entry == *entry).map(|index| index as u64 + 1)
    }

    /// What is kept by who has delivered so much. For the same `asker` it goes on where it was the last time.
    pub(super) fn history(
        &mut self,
        asker: Option<usize>,
        instance: u64,
        position: u64,
    ) -> &BTreeMap<u64, Entry> {
        self.groups.entry(instance).or_default().history(asker, position, self.history_entries_max)
    }

    /// Positions of an instance that some lack and others have: what replaced them was lost.
    pub(super) fn replaced_by_lost(&self, instance: u64) -> BTreeSet<u64> {
        self.groups.get(&instance).map(|group| group.replaced_by_lost.clone()).unwrap_or_default()
    }
}

impl GroupTruth {
    fn history(&mut self, asker: Option<usize>, position: u64, entries_max: usize) -> &BTreeMap<u64, Entry> {
        let kept = self.kept.entry(asker).or_default();
        if kept.position > position {
            *kept = Kept::default();
        }
        let new = self.order.iter().take(position as usize).skip(kept.position as usize);
        for place in new {
            kept.add(place.entry, entries_max);
        }
        &kept.entries
    }
}

impl Kept {
    fn add(&mut self, entry: Entry, entries_max: usize) {
        self.position += 1;
        let Some(key) = entry.history_key() else { return };
        self.entries.insert(self.position, entry);
        let of_key = self.of_key.entry(key).or_default();
        of_key.push_back(self.position);
        let depth = usize::from(entry.depth);
        if depth > 0 && of_key.len() > depth {
            let first = of_key.pop_front();
            first.and_then(|first| self.entries.remove(&first));
        }
        if self.entries.len() > entries_max {
            self.entries.pop_first();
        }
    }
}
