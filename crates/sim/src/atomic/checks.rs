//! What each process does and tells its application is compared with the truth.

use std::sync::Arc;

use plainsong_proto::atomic::member::{Member, Phase};
use plainsong_proto::atomic::view::Voters;
use plainsong_proto::atomic::{Action, Delivered, MEMBERS_MAX, Message, Status};

use super::brief::sample;
use super::entry::Entry;
use super::truth::Truth;
use super::world::World;

impl Truth {
    /// What an application keeps in place of the samples up to a position.
    pub(super) fn state(through: u64, digest: u64) -> Arc<[u8]> {
        // Of many lengths: some take many parts.
        let bytes = if digest.is_multiple_of(2) { 16 } else { digest as usize % 200_000 };
        [through.to_be_bytes(), digest.to_be_bytes()].concat().into_iter().cycle().take(bytes).collect()
    }
}

impl World {
    /// Does what a member asks for.
    pub(super) fn act(&mut self, index: usize, action: Action<Entry>) {
        match action {
            Action::Send(destination, message) => self.send(index, destination, message),
            Action::SendEntry(header, entry) => {
                let Some(id) = self.processes[index].member().map(Member::id) else { return };
                self.send_entry(index, id, header, entry);
            }
            Action::Deliver(delivered) => self.on_deliver(index, &delivered),
            Action::State(through, octets) => self.on_state(index, through, &octets),
            Action::Missed(count) => {
                self.on_missed(index, count);
            }
            Action::Settled(count) => self.on_settled(index, count),
            Action::Unknown(count) => self.on_unknown(index, count),
            Action::Release(count) => {
                let process = &mut self.processes[index];
                process.released += count;
                if process.released > process.sent {
                    self.violated("release", index, format!("{count} more than were sent"));
                }
            }
            Action::Store(number, change) => {
                self.processes[index].unsynced.push_back((number, change));
                self.persist_later(index);
            }
            Action::Status(status) => self.on_status(index, status),
        }
    }

    pub(super) fn violated(&mut self, invariant: &'static str, index: usize, what: String) {
        self.truth.violated(invariant, format!("p{index}: {what}"));
    }

    fn instance_of(&self, index: usize) -> u64 {
        let process = &self.processes[index];
        process.epoch().map_or(process.app.donor_instance, |(instance, _)| instance)
    }

    /// An application belongs to one instance, or is told that what it had is void.
    fn enter(&mut self, index: usize, instance: u64) {
        let app = &mut self.processes[index].app;
        if app.instance == instance {
            return;
        }
        let is_void = app.instance != 0 && app.last > 0 && !app.knows_of_loss;
        app.instance = instance;
        app.last = 0;
        app.begins = true;
        app.knows_of_loss = false;
        app.transferred_to = 0;
        app.missed = 0;
        if is_void {
            self.violated("instance", index, "enters another instance, and nobody is told".to_owned());
        }
    }

    /// Of which instance a delivery is: a member may have gone on since it asked for it.
    fn instance_of_delivery(&self, index: usize, delivered: &Delivered<Entry>) -> u64 {
        let instance = self.instance_of(index);
        let is_of = |instance: &u64| {
            let view = self.truth.view(*instance, delivered.epoch);
            view.is_some_and(|view| view.rank_of(delivered.from).is_some())
        };
        let likely = [instance, self.processes[index].app.instance];
        let found = likely.into_iter().chain(self.truth.instances()).find(is_of);
        if self.is_real { found.unwrap_or(instance) } else { instance }
    }

    fn on_deliver(&mut self, index: usize, delivered: &Delivered<Entry>) {
        let instance = self.instance_of_delivery(index, delivered);
        self.enter(index, instance);
        let Delivered { position, body, .. } = *delivered;
        self.trace.record(self.at, &[11, index as u64, position, body.payload], || {
            format!("p{index} delivers {position}: {}", sample(&body))
        });
        self.truth.delivered(instance, &format!("p{index}"), delivered);
        self.check_held(index, delivered);
        let keeps = self.plan.config.keeps_history;
        let view = self.truth.view(instance, delivered.epoch);
        let is_first_of_epoch = view.is_some_and(|view| position == view.base_position + 1);
        let app = &mut self.processes[index].app;
        let last = std::mem::replace(&mut app.last, position);
        // It may have gone again when it is heard of its first epoch.
        let is_next = position == last + 1 || app.begins && !keeps && is_first_of_epoch;
        let may_skip = keeps && position > last;
        let begins = std::mem::replace(&mut app.begins, false);
        // It begins again, and has been told so.
        let restarts = position <= last && std::mem::take(&mut app.knows_of_loss);
        let is_own = app.pending.front() == Some(&body);
        let is_known = app.writers.contains(&body.writer) && app.pending.contains(&body);
        if is_own {
            app.pending.pop_front();
            self.truth.resolved(instance, position);
        } else if is_known {
            self.violated("own_order", index, format!("{delivered:?} before others of its own"));
        }
        if !is_next && !may_skip && !restarts {
            self.violated("positions", index, format!("{position} after {last} (begins: {begins})"));
        } else if !is_next && !restarts {
            self.check_skipped(index, instance, last, position);
        }
    }

    /// Who takes nothing is given what is within the cut of an epoch that ends, and little of that.
    fn check_held(&mut self, index: usize, delivered: &Delivered<Entry>) {
        let process = &mut self.processes[index];
        let Some(member) = process.participant.member().filter(|it| it.is_held()) else { return };
        let ends = member.view().is_some_and(|view| delivered.epoch < view.epoch);
        process.app.given_while_held += 1;
        let most = (2 * MEMBERS_MAX + 1) * self.plan.config.window_entries;
        if !ends || process.app.given_while_held > most {
            let count = process.app.given_while_held;
            self.violated("held", index, format!("is given {delivered:?}, and {count} in all"));
        }
    }

    /// What is left out was replaced by later samples.
    fn check_skipped(&mut self, index: usize, instance: u64, last: u64, position: u64) {
        let newest = self.truth.positions(instance);
        let may_lack = self.truth.replaced_by_lost(instance);
        let kept = self.truth.history(None, instance, newest);
        let mut skipped = kept.range(last + 1..position.max(last + 1)).map(|(skipped, _)| *skipped);
        if let Some(skipped) = skipped.find(|it| !may_lack.contains(it)) {
            self.violated(
                "complete",
                index,
                format!("{skipped} is kept, and left out between {last} and {position}"),
            );
        }
    }

    fn on_state(&mut self, index: usize, through: u64, octets: &Arc<[u8]>) {
        let instance = self.instance_of(index);
        self.enter(index, instance);
        self.trace.record(self.at, &[12, index as u64, through], || {
            format!("p{index} takes state up to {through}")
        });
        let known = self.truth.digest(instance, through).map(|digest| Truth::state(through, digest));
        let app = &mut self.processes[index].app;
        let last = std::mem::replace(&mut app.last, through);
        app.begins = false;
        let restarts = through <= last && std::mem::take(&mut app.knows_of_loss);
        if through <= last && !restarts || known.as_ref() != Some(octets) {
            self.violated("state", index, format!("up to {through} after {last}"));
        }
    }

    fn on_missed(&mut self, index: usize, count: u64) {
        let instance = self.instance_of(index);
        let app = &mut self.processes[index].app;
        if !self.plan.config.keeps_history {
            app.last += count;
            return;
        }
        app.missed += count;
        let (missed, most) = (app.missed, self.truth.positions(instance));
        if missed > most {
            self.violated("missed", index, format!("{missed} of {most}"));
        }
    }

    fn on_settled(&mut self, index: usize, count: u64) {
        self.trace.record(self.at, &[13, index as u64, count], || format!("p{index}: {count} are settled"));
        for _ in 0..count {
            let app = &mut self.processes[index].app;
            let instance = app.instance;
            let Some(entry) = app.pending.pop_front() else {
                return self.violated("settled", index, "more than were written".to_owned());
            };
            match self.truth.position_of(instance, &entry) {
                Some(position) => self.truth.resolved(instance, position),
                None => self.violated("settled", index, format!("{entry:?} was not delivered")),
            }
        }
    }

    fn on_unknown(&mut self, index: usize, count: u64) {
        self.trace.record(self.at, &[14, index as u64, count], || format!("p{index}: {count} are unknown"));
        self.unknown += count;
        for _ in 0..count {
            let Some(entry) = self.processes[index].app.pending.pop_front() else {
                return self.violated("unknown", index, "more than were written".to_owned());
            };
            self.truth.unknown.insert((entry.writer, entry.number));
        }
    }

    fn on_status(&mut self, index: usize, status: Status) {
        self.trace.record(self.at, &[15, index as u64], || format!("p{index} {status:?}"));
        match status {
            Status::Installed { epoch, .. } => self.on_installed(index, epoch),
            Status::Diverged => self.violated("diverged", index, "leaves".to_owned()),
            Status::DataLoss => {
                let app = &mut self.processes[index].app;
                (app.knows_of_loss, app.missed) = (true, 0);
            }
            Status::StorageFailed
            | Status::Evicted
            | Status::Suspended
            | Status::OutcomeUnknown
            | Status::Stranger => {}
        }
    }

    fn on_installed(&mut self, index: usize, epoch: u64) {
        let Some(view) = self.processes[index].member().and_then(Member::view).cloned() else {
            return;
        };
        if self.is_real && view.epoch != epoch {
            return;
        }
        self.enter(index, view.instance);
        if self.truth.view(view.instance, epoch) != Some(&view) {
            self.violated("one_decision", index, format!("installs {view:?}, which was not decided"));
        }
        let keeps = self.plan.config.keeps_history;
        let app = &mut self.processes[index].app;
        let last = app.last;
        if app.begins && !keeps {
            app.last = view.base_position;
        } else if !keeps && last != view.base_position {
            self.violated("positions", index, format!("at {last} in {view:?}"));
        }
        self.processes[index].app.begins = false;
        self.follow_view(index);
    }

    /// What a message says must be true.
    pub(super) fn check_message(&mut self, index: usize, message: &Message<Entry>) {
        match message {
            Message::Row(row) => self.truth.row(row),
            Message::Report { instance, report } => {
                self.truth.report(*instance, report);
                self.check_caught_up(index, report);
                if report.caught_up {
                    self.check_history(index);
                }
            }
            Message::NewView(decision)
                if self.is_real || decision.base == 0 && self.plan.config.voters == Voters::Members =>
            {
                self.truth.decided(decision);
            }
            _ => {}
        }
    }

    /// Who has caught up keeps what everybody keeps.
    pub(super) fn check_history(&mut self, index: usize) {
        let entries_max = self.plan.config.history_entries_max;
        if !self.plan.config.keeps_history || entries_max < 1_000 && self.plan.has_snapshots() {
            return;
        }
        let Some((instance, _)) = self.processes[index].epoch() else { return };
        let process = &self.processes[index];
        let Some(member) = process.member() else { return };
        let position = member.position();
        if position < process.app.transferred_to || position != process.app.last {
            // What it was given has been replaced by what it is to deliver yet.
            return;
        }
        let through = member.history_state().map_or(0, |(through, _)| *through);
        let may_lack = self.truth.replaced_by_lost(instance).last().copied().unwrap_or(0);
        if may_lack > 0 && entries_max < 1_000 {
            // Who has more forgets the first of it sooner.
            return;
        }
        // Who lacks what was replaced may still have what that had replaced.
        let first = through.max(may_lack) + 1;
        let expected = self.truth.history(Some(index), instance, position).range(first..);
        let mine = || member.history().map(|it| (it.position, it.body));
        let mine = || mine().filter(|(position, _)| *position > may_lack);
        if !mine().eq(expected.clone().map(|(position, entry)| (*position, *entry))) {
            let mine: Vec<u64> = mine().map(|(position, _)| position).collect();
            let expected: Vec<&u64> = expected.map(|(position, _)| position).collect();
            let what = format!("has {mine:?} at {position} in place of {expected:?}");
            self.violated("history", index, what);
        }
    }

    /// What must hold whenever the core has been called.
    pub(super) fn check_process(&mut self, index: usize) {
        let process = &self.processes[index];
        let Some(member) = process.member() else { return };
        let (unresolved, pending) = (member.unresolved(), process.app.pending.len());
        if member.phase() != Phase::Gone && unresolved != pending {
            self.violated(
                "unresolved",
                index,
                format!("{unresolved} for the member, {pending} for the writers"),
            );
        }
    }
}
