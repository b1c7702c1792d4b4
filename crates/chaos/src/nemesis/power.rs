//! Losses of power: the processes of a PERSISTENT topic write as fast as they can, and are all killed at one
//! moment, with what they have not synced to their disks. They start again from these. What was acknowledged
//! must be in the one order that each of them reads from its beginning, and they must go on.
//!
//! The disks are empty again after some losses, so that there is never much to read.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::nemesis::cell::Common;
use crate::nemesis::disk::Disk;
use crate::nemesis::history::order::{self, Id, Log, Write};
use crate::nemesis::member::{Member, Start};
use crate::nemesis::network::Network;
use crate::nemesis::plan::{Consistency, Durability, name};
use crate::nemesis::record::Record;
use crate::random::Random;

const PROCESSES: usize = 3;
/// Losses before disks are empty again, at most.
const LOSSES_OF_DISKS_MAX: u64 = 10;
/// Power is lost so long after all are back, at most; or, so often in percent, after they start.
const UPTIME_MS_MAX: u64 = 400;
const EARLY_PERCENT: u64 = 25;
const EARLY_MS_MAX: u64 = 800;
const LOOK: Duration = Duration::from_millis(5);
const SHOWN_MAX: usize = 20;
/// After so many groups with violations it ends.
const FAILED_MAX: u64 = 3;
/// A line is printed after so many.
const LINE: u64 = 10;

/// A process, and what it told before it was killed, or in the end.
struct Life {
    process: u64,
    record: Record,
    survives: bool,
}

/// What is counted.
#[derive(Default)]
struct Counts {
    losses: u64,
    early: u64,
    writes: u64,
    acknowledged: u64,
    unknown: u64,
    read: u64,
    violations: u64,
    /// Groups with violations.
    failed: u64,
    /// The longest that all took to be back.
    back: Duration,
}

/// Processes with the same disks.
struct Group<'a> {
    common: &'a Common,
    network: &'a Network,
    disks: &'a [Disk],
    seed: u64,
    random: &'a mut Random,
    next_process: &'a mut u64,
    members: Vec<Member>,
    lives: Vec<Life>,
    violations: Vec<String>,
    back: Duration,
}

/// Loses power so often; whether all was well.
///
/// # Errors
/// It cannot be carried out.
pub(crate) fn run(losses: u64, seed: u64, common: &Common) -> Result<bool, String> {
    if !cfg!(feature = "power-loss") {
        return Err("this program was built without the feature power-loss".to_owned());
    }
    if let Some(keep) = &common.keep {
        std::fs::create_dir_all(keep).map_err(|error| format!("{}: {error}", keep.display()))?;
    }
    let begin = Instant::now();
    let mut random = Random::new(seed);
    let network = Network::new(PROCESSES, random.next())?;
    let disks = (0..PROCESSES).map(Disk::new).collect::<Result<Vec<_>, _>>()?;
    let (mut counts, mut next_process, mut told) = (Counts::default(), 1, 0);
    while counts.losses < losses && counts.failed < FAILED_MAX {
        disks.iter().try_for_each(Disk::clear)?;
        let wanted = (1 + random.below(LOSSES_OF_DISKS_MAX)).min(losses - counts.losses);
        let mut group = Group {
            common,
            network: &network,
            disks: &disks,
            seed,
            random: &mut random,
            next_process: &mut next_process,
            members: Vec::new(),
            lives: Vec::new(),
            violations: Vec::new(),
            back: Duration::ZERO,
        };
        group.run(wanted, &mut counts)?;
        group.judge(&mut counts)?;
        if counts.losses / LINE > told / LINE {
            told = counts.losses;
            println!("{} losses, {} violations", counts.losses, counts.violations);
        }
    }
    let Counts { losses, early, writes, acknowledged, unknown, read, violations, back, .. } = counts;
    println!(
        "power loss: seed {seed}, {losses} losses in {:.1} minutes, {early} of them before all were back; {writes} writes, \
         {acknowledged} acknowledged, {unknown} unknown, {read} read; all were back in {:.2} s",
        begin.elapsed().as_secs_f64() / 60.0,
        back.as_secs_f64()
    );
    println!("violations: {violations}");
    Ok(violations == 0)
}

impl Group<'_> {
    /// Starts all, and has them lose power, so often; then they go on in peace.
    fn run(&mut self, losses: u64, counts: &mut Counts) -> Result<(), String> {
        for loss in 0..=losses {
            (0..PROCESSES).try_for_each(|slot| self.start(slot))?;
            let is_early = loss > 0 && loss < losses && self.random.percent(EARLY_PERCENT);
            if is_early {
                counts.early += 1;
                self.members.iter_mut().for_each(|member| member.tell("go"));
            } else if !self.come_back() {
                break;
            }
            if loss == losses {
                self.rest();
                break;
            }
            let most = if is_early { EARLY_MS_MAX } else { UPTIME_MS_MAX };
            std::thread::sleep(Duration::from_millis(self.random.below(most)));
            self.lose_power();
            counts.losses += 1;
        }
        Ok(())
    }

    fn start(&mut self, slot: usize) -> Result<(), String> {
        let process = *self.next_process;
        *self.next_process += 1;
        let mut options: Vec<String> =
            ["--writes", "--reads", "--rushes", "--is-whole"].map(str::to_owned).into();
        options.extend(["--writers", "--readers", "--members"].map(|name| format!("{name}={PROCESSES}")));
        options.push(format!("--process={process}"));
        options.push(format!("--consistency={}", name(&Consistency::Atomic)));
        options.push(format!("--durability={}", name(&Durability::Persistent)));
        options.extend(self.common.mistake.map(|it| format!("--mistake={}", name(&it))));
        options.push(format!("--seed={}", self.random.next()));
        let start = Start {
            slot,
            process,
            options,
            lease: self.common.lease,
            disk: Some(self.disks[slot].path()),
            power_loss: Some(self.random.next()),
            clock: None,
            keep: self.common.keep.as_deref(),
        };
        self.members.push(Member::start(self.network, &start)?);
        Ok(())
    }

    /// All are a group again, have what was acknowledged, and go on.
    fn come_back(&mut self) -> bool {
        let begin = Instant::now();
        let acknowledged: HashSet<Id> =
            self.lives.iter().flat_map(|life| acknowledged(&life.record)).collect();
        let is_back = self.wait("is no member again", |record| record.ready_ns.is_some())
            && self.wait("has not read what was acknowledged", |record| {
                let read = || record.log.iter().map(|it| it.id).collect();
                record.log.len() >= acknowledged.len() && acknowledged.is_subset(&read())
            });
        self.members.iter_mut().for_each(|member| member.tell("go"));
        let goes_on = is_back
            && self.wait("has no write acknowledged", |record| {
                record.all_writes().any(|(write, _)| write.resolved_ns.is_some())
            });
        self.back = self.back.max(begin.elapsed());
        goes_on
    }

    /// Waits until something is true of all.
    fn wait(&mut self, what: &str, is_true: impl Fn(&Record) -> bool) -> bool {
        let end = Instant::now() + self.common.heals;
        loop {
            let mut late = None;
            for member in &mut self.members {
                if let Some(status) = member.ended() {
                    self.violations.push(format!("process {} ended by itself: {status}", member.process));
                    return false;
                }
                let record = member.record();
                if let Some(why) = &record.disk_failed {
                    self.violations.push(format!("process {}: its disk failed: {why}", member.process));
                    return false;
                }
                if !is_true(&record) {
                    late = Some(format!("process {} {what}: {}", member.process, record.state));
                }
            }
            let Some(late) = late else { return true };
            if Instant::now() > end {
                self.violations.push(format!("after {:?}: {late}", self.common.heals));
                return false;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Kills all at once.
    fn lose_power(&mut self) {
        self.members.iter().for_each(Member::strike_dead);
        for member in self.members.drain(..) {
            let process = member.process;
            self.lives.push(Life { process, record: member.kill(), survives: false });
        }
    }

    /// All writes are resolved, and all have the same.
    fn rest(&mut self) {
        let mut asked = 1;
        self.members.iter_mut().for_each(|member| member.tell("rest"));
        let end = Instant::now() + self.common.heals;
        while self.wait("has writes that are not resolved", |record| record.rests >= asked) {
            let last = |member: &Member| member.record().log.last().map(|it| it.position);
            let ends: HashSet<Option<u64>> = self.members.iter().map(last).collect();
            if ends.len() == 1 || Instant::now() > end {
                break;
            }
            asked += 1;
            self.members.iter_mut().for_each(|member| member.tell("write"));
        }
    }

    /// Lets all leave, and checks what all of them told.
    fn judge(mut self, counts: &mut Counts) -> Result<(), String> {
        let survives = self.violations.is_empty();
        for member in std::mem::take(&mut self.members) {
            let process = member.process;
            let record = if survives { member.leave() } else { member.kill() };
            self.lives.push(Life { process, record, survives });
        }
        let records = || self.lives.iter().map(|life| &life.record);
        let writes: Vec<Write> = records().flat_map(|it| it.all_writes().map(|(write, _)| *write)).collect();
        let logs: Vec<Log> = self.lives.iter().map(log_of).collect();
        let findings = order::check(&writes, &logs);
        let told = self.lives.iter().flat_map(|life| {
            life.record.violations.iter().map(move |what| format!("process {}: {what}", life.process))
        });
        let violations: Vec<String> =
            self.violations.iter().cloned().chain(told).chain(findings.described()).collect();
        counts.writes += writes.len() as u64;
        counts.acknowledged += records().map(|it| acknowledged(it).count() as u64).sum::<u64>();
        counts.unknown += records().map(|it| it.unknown).sum::<u64>();
        counts.read += records().map(|it| it.log.len() as u64).sum::<u64>();
        counts.back = counts.back.max(self.back);
        counts.violations += findings.count.max(violations.len() as u64);
        if violations.is_empty() {
            return Ok(());
        }
        counts.failed += 1;
        let processes: Vec<u64> = self.lives.iter().map(|life| life.process).collect();
        println!("FAILED --seed {} by loss {}, processes {processes:?}", self.seed, counts.losses);
        violations.iter().take(SHOWN_MAX).for_each(|what| println!("VIOLATION {what}"));
        let Some(keep) = &self.common.keep else { return Ok(()) };
        for (slot, disk) in self.disks.iter().enumerate() {
            disk.copy_to(&keep.join(format!("disk-{slot}-by-loss-{}", counts.losses)))?;
        }
        Ok(())
    }
}

fn acknowledged(record: &Record) -> impl Iterator<Item = Id> {
    record.all_writes().filter(|(write, _)| write.resolved_ns.is_some()).map(|(write, _)| write.id)
}

/// Everybody reads all from the beginning.
fn log_of(life: &Life) -> Log {
    Log {
        reader: life.process,
        is_whole: true,
        survives: life.survives,
        missed: life.record.missed,
        entries: life.record.log.clone(),
    }
}
