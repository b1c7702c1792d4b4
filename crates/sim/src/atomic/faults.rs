//! What goes wrong, and how it ends.

use plainsong_proto::atomic::Member;
use plainsong_proto::time::{Duration, Instant};

use super::plan::Fault;
use super::process::{Process, Start, State, Stream};
use super::truth::Truth;
use super::world::{Event, World};

impl World {
    pub(super) fn fault(&mut self, index: usize) {
        let (_, fault) = self.plan.faults[index];
        self.note(&[20, index as u64], || format!("fault {fault:?}"));
        match fault {
            Fault::Block { from, to, both_ways } => {
                self.block(from, to);
                if both_ways {
                    self.block(to, from);
                }
            }
            Fault::Split(side) => {
                let count = self.plan.nodes.len();
                for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
                    if (side >> from ^ side >> to) & 1 == 1 {
                        self.block(from, to);
                    }
                }
            }
            Fault::Heal => self.unblock(),
            Fault::Loss(percent) => self.link.loss_percent = percent,
            Fault::Clog { from, to, lasting } => {
                self.clogged[from][to] = self.at.after(lasting).unwrap_or(self.at);
            }
            Fault::Leave { node, again } => self.leave(node, again),
            Fault::PowerLoss { restart } => self.lose_power(restart),
            Fault::DiskFull { node, again } => self.fill_disk(node, again),
            Fault::Pause { node, .. }
            | Fault::Slow { node, .. }
            | Fault::Crash { node, .. }
            | Fault::Clone { node, .. }
            | Fault::Hold { node, .. }
            | Fault::Snapshot { node } => {
                if let Some(process) = self.of_node[node].filter(|&it| self.processes[it].is_alive()) {
                    self.fault_of(process, fault);
                }
            }
        }
    }

    fn fault_of(&mut self, process: usize, fault: Fault) {
        match fault {
            Fault::Pause { lasting, .. } if self.processes[process].runs() => {
                self.processes[process].state = State::Paused;
                self.schedule(lasting, Event::Wake { process });
            }
            Fault::Slow { lasting, .. } => {
                self.processes[process].is_slow = true;
                self.schedule(lasting, Event::Quicken { process });
            }
            Fault::Crash { node, restart, loses_disk } => {
                self.crash(process);
                if loses_disk {
                    self.disks[node].clear();
                    self.has_kept_all[node] = false;
                }
                if let Some(delay) = restart {
                    self.schedule(delay, Event::Start { node });
                }
            }
            Fault::Clone { node, lasting } => self.clone_of(node, lasting),
            Fault::Hold { lasting, .. } => {
                self.processes[process].participant.hold();
                self.processes[process].app.given_while_held = 0;
                self.schedule(lasting, Event::Resume { process });
            }
            Fault::Snapshot { .. } => self.snapshot(process),
            _ => {}
        }
    }

    fn block(&mut self, from: usize, to: usize) {
        if from != to {
            self.blocked[from][to].get_or_insert(self.at);
        }
    }

    pub(super) fn unblock(&mut self) {
        let count = self.plan.nodes.len();
        for from in 0..count {
            for to in 0..count {
                if let Some(since) = self.blocked[from][to].take()
                    && self.plan.forgets_after.is_some_and(|after| self.at.since(since) > after)
                {
                    self.forget(from, to);
                }
            }
        }
        self.kick();
    }

    /// They have taken one another for gone: lanes begin anew.
    fn forget(&mut self, from: usize, to: usize) {
        for process in 0..self.processes.len() {
            if self.processes[process].node != from {
                continue;
            }
            for other in 0..self.processes.len() {
                if self.processes[other].node == to
                    && let Some(stream) = self.streams[process].get_mut(&other)
                {
                    let is_scheduled = stream.is_scheduled;
                    *stream = Stream { is_scheduled, ..Stream::default() };
                }
            }
        }
    }

    /// What was held up goes on.
    fn kick(&mut self) {
        for from in 0..self.processes.len() {
            let targets: Vec<usize> = self.streams[from].keys().copied().collect();
            targets.into_iter().for_each(|to| self.schedule_lane(from, to));
        }
    }

    pub(super) fn wake(&mut self, index: usize) {
        if self.processes[index].state != State::Paused {
            return;
        }
        self.processes[index].state = State::Runs;
        self.processes[index].timer = None;
        self.note(&[21, index as u64], || format!("p{index} goes on"));
        // Either its timers or what has arrived come first.
        if self.rng.chance(50) {
            self.arm(index);
        }
        while let Some((from, message)) = self.processes[index].inbox.pop_front() {
            self.take(from, index, &message);
        }
        self.kick();
        self.done(index);
    }

    /// An application takes again.
    pub(super) fn resume(&mut self, index: usize) {
        let process = &self.processes[index];
        if process.state == State::Paused {
            self.schedule(Duration::from_millis(100), Event::Resume { process: index });
        } else if process.runs() && process.member().is_some_and(Member::is_held) {
            self.note(&[25, index as u64], || format!("p{index} takes again"));
            self.processes[index].participant.resume(self.at);
            self.done(index);
        }
    }

    pub(super) fn quicken(&mut self, index: usize) {
        self.processes[index].is_slow = false;
        self.kick();
    }

    pub(super) fn crash(&mut self, index: usize) {
        if !self.processes[index].is_alive() {
            return;
        }
        self.note(&[22, index as u64], || format!("p{index} crashes"));
        self.processes[index].state = State::Dead;
        let node = self.processes[index].node;
        if self.of_node[node] == Some(index) {
            self.of_node[node] = None;
        }
        // Of what was written last a part may be on the disk.
        let unsynced =
            if self.processes[index].is_disk_full { 0 } else { self.processes[index].unsynced.len() };
        let kept = self.rng.below(unsynced as u64 + 1);
        self.sync(index, kept as usize);
        // Of what is on its way a part arrives.
        let targets: Vec<usize> = self.streams[index].keys().copied().collect();
        for to in targets {
            let is_blocked = self.is_blocked(index, to);
            let Some(stream) = self.streams[index].get_mut(&to) else { continue };
            let kept = if is_blocked { 0 } else { self.rng.below(stream.queue.len() as u64 + 1) };
            stream.queue.truncate(kept as usize);
        }
    }

    fn fill_disk(&mut self, node: usize, again: Duration) {
        let Some(index) = self.of_node[node].filter(|&it| self.processes[it].runs()) else { return };
        let process = &mut self.processes[index];
        if !process.is_leaving {
            process.is_disk_full = true;
            self.has_kept_all[node] = false;
            process.participant.lose_disk(self.at);
            self.leaves(index, Some(again));
        }
    }

    fn lose_power(&mut self, restart: Duration) {
        for index in 0..self.processes.len() {
            let node = self.processes[index].node;
            if self.processes[index].is_alive() {
                self.crash(index);
                let delay = restart.0 + self.rng.below(100_000_000) as i64;
                self.schedule(Duration(delay), Event::Start { node });
            }
        }
    }

    fn leave(&mut self, node: usize, again: Option<Duration>) {
        let Some(index) = self.of_node[node].filter(|&it| self.processes[it].runs()) else { return };
        self.processes[index].participant.leave(self.at);
        self.leaves(index, again);
    }

    fn leaves(&mut self, index: usize, again: Option<Duration>) {
        let node = self.processes[index].node;
        self.processes[index].is_leaving = true;
        self.note(&[23, index as u64], || format!("p{index} leaves"));
        self.done(index);
        // It stays for as long as it takes, at most.
        self.schedule(Duration::from_millis(1_500), Event::EndClone { process: index });
        if self.processes[index].fixed.is_some() || again.is_some() {
            let delay = Duration(again.map_or(0, |it| it.0) + 1_500_000_000);
            self.schedule(delay, Event::Start { node });
        }
    }

    /// Another process has the same GUID prefix.
    fn clone_of(&mut self, node: usize, lasting: Duration) {
        if !self.plan.nodes[node].is_member {
            return;
        }
        let nonce = self.nonces + self.rng.below(1 << 30);
        self.nonces += 1 << 31;
        let start = Start {
            node,
            nonce,
            instance: self.at.0 << 16 | 0xff00,
            generation: self.generations[node],
            is_clone: true,
            is_real: self.is_real,
            image: None,
        };
        let process = Process::start(&self.plan, start, self.at);
        let index = self.admit(process);
        self.schedule(lasting, Event::EndClone { process: index });
    }

    /// An application sums up what it was given.
    fn snapshot(&mut self, index: usize) {
        let Some((instance, _)) = self.processes[index].epoch() else { return };
        let Some(member) = self.processes[index].member() else { return };
        let through = self.rng.below(member.position() + 1);
        if let Some(digest) = self.truth.digest(instance, through) {
            self.processes[index].participant.replace_history(through, Truth::state(through, digest));
        }
    }

    /// All faults end, and whoever is needed is started again.
    pub(super) fn heal(&mut self) {
        self.note(&[24], || "all faults end".to_owned());
        self.is_healed = true;
        self.link.loss_percent = 0;
        self.clogged.iter_mut().flatten().for_each(|until| *until = Instant(0));
        self.unblock();
        for index in 0..self.processes.len() {
            if self.processes[index].is_clone {
                self.crash(index);
            }
            self.quicken(index);
            self.wake(index);
            self.resume(index);
        }
        for node in 0..self.plan.nodes.len() {
            if self.of_node[node].is_none() {
                self.start(node);
            }
        }
    }
}
