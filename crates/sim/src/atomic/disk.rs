//! Disks: what has been written is there some time later, in order; a crash may lose the last of it.

use std::collections::BTreeMap;

use plainsong_proto::atomic::storage::{Change, Image, is_claim};
use plainsong_proto::atomic::view::Report;
use plainsong_proto::atomic::{Member, Storage};
use plainsong_proto::malformed::Malformed;
use plainsong_proto::time::Duration;

use super::Mistake;
use super::entry::Entry;
use super::process::{Disk, State};
use super::world::{Event, World};

fn read(disk: &Disk) -> Result<Image<Entry>, Malformed> {
    Image::read(disk.iter().map(|(key, value)| (key.clone(), value.clone())))
}

impl World {
    pub(super) fn persist_later(&mut self, index: usize) {
        if !self.processes[index].is_persist_due {
            self.processes[index].is_persist_due = true;
            let delay = self.rng.below(self.plan.persist_delay + 1);
            self.schedule(Duration(delay as i64), Event::Persist { process: index });
        }
    }

    pub(super) fn on_persist(&mut self, index: usize) {
        self.processes[index].is_persist_due = false;
        if self.processes[index].state == State::Paused {
            self.persist_later(index);
            return;
        }
        if !self.processes[index].runs() || self.processes[index].is_disk_full {
            return;
        }
        let count = self.processes[index].unsynced.len();
        let last = self.processes[index].unsynced.back().map_or(0, |(number, _)| *number);
        self.sync(index, count);
        self.processes[index].participant.on_stored(self.at, last);
        self.done(index);
    }

    /// What is on the disk of a node whose processes are durable, if anything is.
    pub(super) fn recall(&mut self, node: usize) -> Option<Image<Entry>> {
        let disk = Some(&self.disks[node]).filter(|disk| !disk.is_empty())?;
        match read(disk) {
            Ok(image) => Some(image),
            Err(error) => {
                self.truth.violated("readable", format!("what node {node} has written: {error}"));
                None
            }
        }
    }

    /// Who has come to have what was before has it on its disk, or can make it again of what is there: it had
    /// all before an epoch that has ended, and what it vouched for in it.
    pub(super) fn check_caught_up(&mut self, index: usize, report: &Report) {
        let process = &self.processes[index];
        let Some(view) = process.member().and_then(Member::view) else { return };
        let is_new = view.members.iter().any(|it| it.id == report.id && !it.caught_up);
        if !report.caught_up || !is_new || process.is_clone || self.plan.config.storage != Storage::Durable {
            return;
        }
        let (instance, base) = (view.instance, view.base_position);
        let image = self.recall(self.processes[index].node);
        let have = image.as_ref().map_or(0, |image| image.have);
        let on_disk = image.and_then(|image| image.epoch).map(|epoch| epoch.view);
        let ended = on_disk.filter(|it| it.instance == instance && it.base_position < base);
        if have < ended.map_or(base, |it| it.base_position) {
            self.violated("caught_up", index, format!("has {have} of {base} on its disk"));
        }
    }

    /// The first changes that wait are on the disk.
    pub(super) fn sync(&mut self, index: usize, count: usize) {
        let process = &mut self.processes[index];
        let mut of_its_own = Disk::new();
        let disk = if process.is_clone { &mut of_its_own } else { &mut self.disks[process.node] };
        let forgets = self.mistake == Some(Mistake::ForgetFsync);
        for (_, change) in process.unsynced.drain(..count) {
            match &change {
                Change::Begin { instance, discards } => {
                    process.disk_instance = *instance;
                    if *discards {
                        disk.retain(|key, _| is_claim(key));
                    }
                }
                Change::View(view, rank) => {
                    let id = view.members[*rank].id;
                    process.places.insert(view.epoch, id);
                    self.kept_views.insert(id);
                }
                // Who makes a group may be killed before it tells of it.
                Change::Decision(decision, _) if decision.base == 0 => self.truth.decided(decision),
                Change::Held(..) if forgets => continue,
                Change::Held(slot, ..) => {
                    if let Some(id) = process.places.get(&slot.epoch) {
                        self.truth.persisted(process.disk_instance, *slot, *id);
                    }
                }
                _ => {}
            }
            let mut batch = BTreeMap::new();
            change.stage(&mut batch);
            for (key, value) in batch {
                match value {
                    Some(value) => disk.insert(key, value),
                    None => disk.remove(&key),
                };
            }
        }
    }
}
