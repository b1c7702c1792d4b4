//! One cell: processes start, the nemesis does what it does to them, all is healed, and they must agree.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::clock::now_ns;
use crate::nemesis::disk::Disk;
use crate::nemesis::fault::{Fault, conditions};
use crate::nemesis::history::order::Id;
use crate::nemesis::member::{Member, Start, clock_library};
use crate::nemesis::mistake::Mistake;
use crate::nemesis::network::Network;
use crate::nemesis::network::link::Counts;
use crate::nemesis::plan::{Cell, Consistency, Durability, Nemesis, Role, name};
use crate::nemesis::record::Record;
use crate::random::Random;

/// How long a busy machine may take until all have found each other.
const STARTS: Duration = Duration::from_secs(30);
/// Pause between two faults, shortest and longest, in milliseconds.
const PAUSE_MS: [u64; 2] = [100, 1_500];
/// So long members may take until they are a group again.
const REGROUPS: Duration = Duration::from_secs(3);
/// Faults of a mix at once.
const MIXED: usize = 3;
/// Who starts again has lost its disk so often, in percent.
const LOSES_DISK: u64 = 25;
const LOOK: Duration = Duration::from_millis(5);

/// What is the same in all cells of a run.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) consistency: Consistency,
    /// Of faults.
    pub(crate) lasts: Duration,
    /// So long all may take to agree after healing.
    pub(crate) heals: Duration,
    pub(crate) lease: Duration,
    pub(crate) mistake: Option<Mistake>,
    pub(crate) keep: Option<PathBuf>,
}

/// All that one process told, and what became of it.
pub(crate) struct Life {
    pub(crate) process: u64,
    pub(crate) record: Record,
    pub(crate) reads: bool,
    pub(crate) started_ns: u64,
    /// When it was killed.
    pub(crate) killed_ns: Option<u64>,
    /// It was there from the beginning.
    pub(crate) is_first: bool,
    /// It was there to the end.
    pub(crate) survives: bool,
}

/// What a cell was.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) lives: Vec<Life>,
    pub(crate) violations: Vec<String>,
    /// How often something was done.
    pub(crate) faults: u64,
    /// So often a process left since its disk was full.
    pub(crate) disks_failed: u64,
    pub(crate) healed: Duration,
    /// Between these, writes were to be resolved.
    pub(crate) load_ns: [u64; 2],
    pub(crate) frames: Counts,
}

struct Slot {
    member: Option<Member>,
    /// What outlives its processes.
    disk: Option<Disk>,
    started_ns: u64,
    is_first: bool,
}

struct Active {
    fault: Fault,
    until: Instant,
}

struct Run<'a> {
    common: &'a Common,
    cell: Cell,
    random: Random,
    network: Network,
    slots: Vec<Slot>,
    active: Vec<Active>,
    /// When a process last started again, and when one was last reached again.
    restarted: Option<Instant>,
    joined: Option<Instant>,
    /// Which one has lost its disk last.
    newcomer: Option<usize>,
    heals: bool,
    next_process: u64,
    keep: Option<PathBuf>,
    outcome: Outcome,
}

/// Carries a cell out.
///
/// # Errors
/// It cannot be carried out.
pub(crate) fn run(cell: Cell, seed: u64, common: &Common) -> Result<Outcome, String> {
    let mut random = Random::new(seed);
    let count = cell.topology.roles().len();
    let keep = match &common.keep {
        None => None,
        Some(keep) => {
            let keep = keep.join(format!("{}-{seed}", cell.to_string().replace('/', "-")));
            std::fs::create_dir_all(&keep).map_err(|error| format!("{}: {error}", keep.display()))?;
            Some(keep)
        }
    };
    let mut run = Run {
        common,
        cell,
        network: Network::new(count, random.next())?,
        random,
        slots: Vec::new(),
        active: Vec::new(),
        restarted: None,
        joined: None,
        newcomer: None,
        heals: false,
        next_process: 1,
        keep,
        outcome: Outcome::default(),
    };
    run.begin()?;
    run.disturb()?;
    run.heal()?;
    Ok(run.end())
}

impl Run<'_> {
    /// Starts all, and lets them begin when they have found each other.
    fn begin(&mut self) -> Result<(), String> {
        for slot in 0..self.cell.topology.roles().len() {
            let role = self.role(slot);
            let has_disk = self.has_disks() && (role.reads || role.writes);
            let disk = if has_disk { Some(Disk::new(slot)?) } else { None };
            self.slots.push(Slot { member: None, disk, started_ns: 0, is_first: true });
            self.start(slot)?;
        }
        let end = Instant::now() + STARTS;
        while !self.members().all(|member| member.record().ready_ns.is_some()) {
            self.look_after();
            if Instant::now() > end || !self.outcome.violations.is_empty() {
                let said = self.outcome.violations.join("; ");
                return Err(format!("{}: not all processes find each other: {said}", self.cell));
            }
            std::thread::sleep(LOOK);
        }
        self.outcome.load_ns[0] = now_ns();
        self.tell("go");
        Ok(())
    }

    fn start(&mut self, slot: usize) -> Result<(), String> {
        let roles = self.cell.topology.roles();
        let role = self.role(slot);
        let is_first = self.slots[slot].is_first;
        let process = self.next_process;
        self.next_process += 1;
        let mut options = vec![
            format!("--process={process}"),
            format!("--writers={}", roles.iter().filter(|it| it.writes).count()),
            format!("--readers={}", (0..roles.len()).filter(|slot| self.role(*slot).reads).count()),
            format!("--members={}", roles.iter().filter(|it| it.reads || it.writes).count()),
            format!("--consistency={}", name(&self.common.consistency)),
            format!("--durability={}", name(&self.cell.durability)),
            format!("--seed={}", self.random.next()),
        ];
        let is_whole = is_first || self.cell.durability != Durability::Volatile;
        let flags = [(role.writes, "--writes"), (role.reads, "--reads"), (is_whole, "--is-whole")];
        options.extend(flags.into_iter().filter(|(is, _)| *is).map(|(_, flag)| flag.to_owned()));
        let reader = (0..roles.len()).find(|slot| self.role(*slot).reads);
        if let Some(mistake) = self.common.mistake.filter(|_| is_first && reader == Some(slot)) {
            options.push(format!("--mistake={}", name(&mistake)));
        }
        let clock = has_clock(self.cell.nemesis).then(|| clock_file(slot));
        if let Some(clock) = &clock {
            set_clock(clock, 0)?;
        }
        let start = Start {
            slot,
            process,
            options,
            lease: self.common.lease,
            disk: self.slots[slot].disk.as_ref().map(Disk::path),
            power_loss: None,
            clock,
            keep: self.keep.as_deref(),
        };
        let started_ns = now_ns();
        let member = Member::start(&self.network, &start)?;
        self.slots[slot].started_ns = started_ns;
        self.slots[slot].member = Some(member);
        Ok(())
    }

    /// Where an order is agreed on, who writes reads: what is resolved must be read by somebody.
    fn role(&self, slot: usize) -> Role {
        let role = self.cell.topology.roles()[slot];
        Role { reads: role.reads || role.writes && self.common.consistency == Consistency::Atomic, ..role }
    }

    fn members(&self) -> impl Iterator<Item = &Member> {
        self.slots.iter().filter_map(|slot| slot.member.as_ref())
    }

    fn tell(&mut self, word: &str) {
        self.slots.iter_mut().filter_map(|slot| slot.member.as_mut()).for_each(|member| member.tell(word));
    }

    fn has_disks(&self) -> bool {
        self.cell.durability == Durability::Persistent
    }

    /// Starts one again, sometimes without what was on its disk.
    fn restart(&mut self, slot: usize) -> Result<(), String> {
        if self.may_lose_disk(slot) && self.random.percent(LOSES_DISK) {
            self.note(&format!("{slot} has lost its disk"))?;
            self.slots[slot].disk.iter().try_for_each(Disk::clear)?;
            self.newcomer = Some(slot);
        }
        self.start(slot)?;
        self.slots[slot].member.iter_mut().for_each(|member| member.tell("go"));
        Ok(())
    }

    /// Whether all others have what was on its disk, and are enough to go on without its vote.
    fn may_lose_disk(&self, slot: usize) -> bool {
        let disks = self.slots.iter().filter(|it| it.disk.is_some()).count();
        let is_up = |it: &Slot| it.member.as_ref().is_some_and(|it| it.record().ready_ns.is_some());
        let mut others =
            self.slots.iter().enumerate().filter(|(other, it)| *other != slot && it.disk.is_some());
        let is_quiet = !self.heals && self.active.is_empty() && !is_recent(self.joined);
        disks > 2 && is_quiet && others.all(|(_, it)| is_up(it))
    }

    /// Whether the one that has lost its disk last is no member again yet: until then all others must stay.
    fn awaits_newcomer(&self) -> bool {
        let member = self.newcomer.and_then(|slot| self.slots[slot].member.as_ref());
        member.is_some_and(|member| member.record().ready_ns.is_none())
    }

    /// Notices who has ended by itself, or left its group.
    fn look_after(&mut self) {
        for slot in 0..self.slots.len() {
            let is_full = self.active.iter().any(|it| matches!(it.fault, Fault::Full(of, _) if of == slot));
            let failed = self.slots[slot].member.as_ref().filter(|_| !is_full);
            if let Some(why) = failed.and_then(|it| it.record().disk_failed.take()) {
                self.outcome.violations.push(format!("slot {slot}: its disk failed: {why}"));
            }
            let member = self.slots[slot].member.as_mut();
            let Some((process, status)) = member.and_then(|it| Some((it.process, it.ended()?))) else {
                continue;
            };
            self.outcome.violations.push(format!("process {process} ended by itself: {status}"));
            self.bury(slot, Member::kill, None);
        }
    }

    /// Ends one, and keeps what it told.
    fn bury(&mut self, slot: usize, end: fn(Member) -> Record, killed_ns: Option<u64>) {
        if let Some(member) = self.slots[slot].member.take() {
            let Slot { started_ns, is_first, .. } = self.slots[slot];
            let process = member.process;
            self.slots[slot].is_first = false;
            let record = end(member);
            let reads = self.role(slot).reads;
            let life = Life { process, record, reads, started_ns, killed_ns, is_first, survives: false };
            self.outcome.lives.push(life);
        }
    }

    /// Faults begin and end, until time is up.
    fn disturb(&mut self) -> Result<(), String> {
        let end = Instant::now() + self.common.lasts;
        let most = match self.cell.nemesis {
            Nemesis::Mix => MIXED,
            // What is on their disks brings them back.
            Nemesis::Kill | Nemesis::Leave if self.has_disks() => self.slots.len(),
            _ => 1,
        };
        let mut next = Instant::now() + self.pause();
        while Instant::now() < end {
            let now = Instant::now();
            let (over, active) = std::mem::take(&mut self.active).into_iter().partition(|it| it.until <= now);
            self.active = active;
            for Active { fault, .. } in over {
                self.undo(&fault)?;
                next = now + self.pause();
            }
            if now >= next && self.active.len() < most {
                next = now + self.pause();
                self.strike(now.min(end), end)?;
            }
            self.look_after();
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn pause(&mut self) -> Duration {
        Duration::from_millis(self.random.between(PAUSE_MS[0], PAUSE_MS[1]))
    }

    /// Begins a fault, if it can be had beside those that there are.
    fn strike(&mut self, now: Instant, end: Instant) -> Result<(), String> {
        let drawn = Fault::draw(self.cell.nemesis, self.slots.len(), self.has_disks(), &mut self.random);
        let Some((fault, lasts)) = drawn else { return Ok(()) };
        if !self.may_begin(&fault) {
            return Ok(());
        }
        match &fault {
            Fault::Kill(slot) => self.bury(*slot, Member::kill, Some(now_ns())),
            Fault::Leave(slot) => self.bury(*slot, Member::leave, None),
            Fault::Outage(slots) => {
                let at_ns = now_ns();
                slots.iter().filter_map(|it| self.slots[*it].member.as_ref()).for_each(Member::strike_dead);
                slots.iter().for_each(|slot| self.bury(*slot, Member::kill, Some(at_ns)));
            }
            Fault::Full(slot, bytes) => self.slots[*slot].disk.iter().try_for_each(|it| it.fill(*bytes))?,
            Fault::Freeze(slot) => self.slots[*slot].member.iter().for_each(Member::stop),
            Fault::Squeeze(slot) => self.slots[*slot].member.iter_mut().for_each(Member::squeeze),
            Fault::Clock(slot, seconds) => set_clock(&clock_file(*slot), *seconds)?,
            Fault::Cut(_) | Fault::Links(_) => {}
        }
        self.outcome.faults += 1;
        self.note(&format!("begins {fault:?}"))?;
        self.active.push(Active { fault, until: (now + lasts).min(end) });
        self.set_links();
        Ok(())
    }

    /// Writes down when a fault begins and ends, beside what processes tell.
    fn note(&self, what: &str) -> Result<(), String> {
        let Some(keep) = &self.keep else { return Ok(()) };
        let file = File::options().create(true).append(true).open(keep.join("faults.log"));
        let noted = file.and_then(|mut file| writeln!(file, "{} {what}", now_ns()));
        noted.map_err(|error| format!("{}: {error}", keep.display()))
    }

    /// Whether the others can get over a fault, beside those that there are.
    fn may_begin(&self, fault: &Fault) -> bool {
        let is_active = |is: fn(&Fault) -> bool| self.active.iter().any(|it| is(&it.fault));
        let has_disks = self.has_disks();
        let is_agreed = self.common.consistency == Consistency::Atomic && !has_disks;
        if self.awaits_newcomer() {
            return false;
        }
        // Members agree on who goes on. Who starts again while it reaches nobody is a group of its own, and
        // what a majority forgets at once is lost.
        let is_alone = is_agreed && (is_active(Fault::ends_process) || is_recent(self.restarted));
        let is_apart = is_agreed && (is_active(Fault::separates) || is_recent(self.joined));
        match fault {
            Fault::Kill(slot) | Fault::Leave(slot) => {
                let may_go = has_disks || self.others_hold(*slot);
                may_go && !self.is_struck(*slot) && !is_alone && !is_apart
            }
            Fault::Outage(slots) => slots.iter().all(|slot| !self.is_struck(*slot)),
            Fault::Full(slot, _) => self.slots[*slot].disk.is_some() && !self.is_struck(*slot),
            Fault::Freeze(slot) => !self.is_struck(*slot) && !is_alone,
            Fault::Squeeze(slot) | Fault::Clock(slot, _) => !self.is_struck(*slot),
            Fault::Cut(_) => !is_alone,
            Fault::Links(_) => true,
        }
    }

    /// Whether something is done to that process.
    fn is_struck(&self, slot: usize) -> bool {
        self.active.iter().any(|it| it.fault.strikes(slot))
    }

    /// Whether somebody else with a part in the topic is there: what all forget is nobody's.
    fn others_hold(&self, slot: usize) -> bool {
        let roles = self.cell.topology.roles();
        let holds = |other: usize| roles[other].reads || roles[other].writes;
        (0..roles.len()).any(|other| other != slot && holds(other) && self.slots[other].member.is_some())
    }

    fn set_links(&self) {
        let faults = || self.active.iter().map(|it| &it.fault);
        self.network.switch().change(|from, to| Some(conditions(faults(), from, to)));
    }

    fn undo(&mut self, fault: &Fault) -> Result<(), String> {
        if fault.ends_process() {
            self.restarted = Some(Instant::now());
        } else if fault.separates() {
            self.joined = Some(Instant::now());
        }
        self.note(&format!("ends {fault:?}"))?;
        match fault {
            Fault::Kill(slot) | Fault::Leave(slot) => self.restart(*slot)?,
            Fault::Outage(slots) => slots.iter().try_for_each(|slot| self.restart(*slot))?,
            Fault::Full(slot, _) => self.make_room(*slot)?,
            Fault::Freeze(slot) => self.slots[*slot].member.iter().for_each(Member::go_on),
            Fault::Squeeze(slot) => self.slots[*slot].member.iter_mut().for_each(Member::release),
            Fault::Clock(slot, _) => set_clock(&clock_file(*slot), 0)?,
            Fault::Cut(_) | Fault::Links(_) => {}
        }
        self.set_links();
        Ok(())
    }

    /// There is room again, and the process starts again if it has left; what it said of that.
    fn make_room(&mut self, slot: usize) -> Result<(), String> {
        self.slots[slot].disk.iter().try_for_each(Disk::make_room)?;
        self.bury(slot, Member::kill, None);
        let said = self.outcome.lives.last().and_then(|life| life.record.disk_failed.clone());
        if let Some(said) = said {
            self.note(&format!("{slot} left: {said}"))?;
            self.outcome.disks_failed += 1;
            if !said.contains("no room") {
                self.outcome
                    .violations
                    .push(format!("slot {slot} does not say that its disk is full: {said}"));
            }
        }
        self.restart(slot)
    }

    /// Ends all faults; then every write must be resolved, and everybody must have the same, within time.
    fn heal(&mut self) -> Result<(), String> {
        self.heals = true;
        for Active { fault, .. } in std::mem::take(&mut self.active) {
            self.undo(&fault)?;
        }
        if self.cell.nemesis == Nemesis::Full && self.outcome.disks_failed == 0 {
            self.outcome.violations.push("no process noticed that its disk is full".to_owned());
        }
        self.outcome.load_ns[1] = now_ns();
        let begin = Instant::now();
        let mut asked = 1;
        self.tell("rest");
        loop {
            self.look_after();
            let missing = self.busy(asked).or_else(|| self.missing());
            self.outcome.healed = begin.elapsed();
            match missing {
                None => break,
                Some(what) if begin.elapsed() > self.common.heals => {
                    let heals = self.common.heals;
                    self.outcome.violations.push(format!("not healed within {heals:?}: {what}"));
                    return Ok(());
                }
                Some(_) if self.common.consistency == Consistency::Atomic && self.busy(asked).is_none() => {
                    asked += 1;
                    self.tell("write");
                }
                Some(_) => {}
            }
            std::thread::sleep(LOOK);
        }
        self.tell("read");
        let end = Instant::now() + STARTS;
        while let Some(what) = self.busy(asked + 1) {
            self.look_after();
            if Instant::now() > end {
                self.outcome.violations.push(format!("does not read in the end: {what}"));
                break;
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Who has not yet done everything that it was asked for.
    fn busy(&self, asked: u64) -> Option<String> {
        let member = self.members().find(|member| member.record().rests < asked)?;
        Some(format!(
            "process {} has writes that are not resolved: {}",
            member.process,
            member.record().state
        ))
    }

    /// What readers have not yet.
    fn missing(&self) -> Option<String> {
        match self.common.consistency {
            Consistency::Eventual => self.behind(),
            Consistency::Atomic => self.apart(),
        }
    }

    /// Who was there from the beginning and has not what others of these wrote.
    fn behind(&self) -> Option<String> {
        let first = || self.slots.iter().filter(|it| it.is_first).filter_map(|it| it.member.as_ref());
        let ends_of = |member: &Member| -> Vec<Id> {
            let record = member.record();
            record.writes.values().filter_map(|it| it.last()).map(|(write, _)| write.id).collect()
        };
        let ends: Vec<Id> = first().flat_map(ends_of).collect();
        for reading in first() {
            let record = reading.record();
            let has = |id: &Id| record.log.iter().rev().any(|entry| entry.id == *id);
            if let Some(id) = ends.iter().find(|id| !record.log.is_empty() && !has(id)) {
                return Some(format!(
                    "process {} has not sample {} of {}",
                    reading.process, id.number, id.writer
                ));
            }
        }
        None
    }

    /// Two readers that are not at the same place.
    fn apart(&self) -> Option<String> {
        let readers = self.slots.iter().enumerate().filter(|(slot, _)| self.role(*slot).reads);
        let ends: Vec<(u64, u64)> = readers
            .filter_map(|(_, slot)| slot.member.as_ref())
            .map(|member| (member.process, member.record().log.last().map_or(0, |it| it.position)))
            .collect();
        let (first, others) = ends.split_first()?;
        let other = others.iter().find(|it| it.1 != first.1)?;
        Some(format!("process {} is at position {}, {} at {}", first.0, first.1, other.0, other.1))
    }

    /// Lets all leave; what was.
    fn end(mut self) -> Outcome {
        for slot in 0..self.slots.len() {
            let before = self.outcome.lives.len();
            self.bury(slot, Member::leave, None);
            self.outcome.lives[before..].iter_mut().for_each(|life| life.survives = true);
        }
        self.outcome.frames = self.network.switch().total();
        self.outcome
    }
}

fn is_recent(at: Option<Instant>) -> bool {
    at.is_some_and(|at| at.elapsed() < REGROUPS)
}

/// Whether wall clocks jump under a nemesis, here.
fn has_clock(nemesis: Nemesis) -> bool {
    matches!(nemesis, Nemesis::Clock | Nemesis::Mix) && clock_library().exists()
}

fn clock_file(slot: usize) -> PathBuf {
    std::env::temp_dir().join(format!("clock-{slot}"))
}

/// Sets the wall clock of a process so many seconds ahead, or behind.
fn set_clock(file: &PathBuf, seconds: i64) -> Result<(), String> {
    std::fs::write(file, format!("{seconds:+}s\n")).map_err(|error| format!("{}: {error}", file.display()))
}
