//! From the first repetition to the last: networks, order, marks, and a valid `run.json` at all times.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};

use super::apart::{Cores, larger};
use super::directory::write_repetition;
use super::link::{FromAgents, Mailbox};
use super::network::{Network, Setting};
use super::order::Turn;
use super::outage;
use super::parties::{Draft, Party, estimate};
use super::progress::Progress;
use super::repetition::{Finished, Stage};
use super::tail::add_lost_tails;
use super::{OVERHEAD, turns};
use crate::perf::agent::clock;
use crate::perf::campaign::values::NetworkMode;
use crate::perf::campaign::{Campaign, Kind, Planned};
use crate::perf::results::{Repetition, Run, Status, WorkerResult};

/// How long the CPU is watched before each repetition, and before the first.
const WATCHING: Duration = Duration::from_millis(250);
const WATCHING_FIRST: Duration = Duration::from_secs(1);
/// `run.json` is written again when that takes at most this part of the time since.
const WRITING_SHARE: u32 = 20;
/// The difference between clocks, if it is not known to this share of a second, is told with every result.
const CLOCK_BOUND_NS: u64 = 50_000;

/// What is to be done.
pub(crate) struct Job {
    pub(crate) campaign: Campaign,
    pub(crate) planned: Vec<Planned>,
    /// Where to write; nowhere for what is only looked at.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) adapters: PathBuf,
    pub(crate) token: String,
    pub(crate) strict: bool,
    pub(crate) quiet: bool,
    /// How far apart the two cores are, in nanoseconds, if that can be told.
    pub(crate) look: Box<dyn Fn() -> Option<f64>>,
}

impl Job {
    /// What a repetition takes, by the campaign.
    fn time(&self, turn: &Turn) -> Duration {
        self.planned.get(turn.cell).map_or(Duration::ZERO, |it| estimate(&self.campaign, it) + OVERHEAD)
    }
}

/// What was done.
pub(crate) struct Outcome {
    pub(crate) run: Run,
    pub(crate) interrupted: bool,
    /// A network or its agents could not be had: what needs them was skipped.
    pub(crate) incomplete: bool,
}

/// Carries out a job, from where `run` ends.
///
/// # Errors
/// Results cannot be written.
pub(crate) fn conduct(job: &Job, run: Run) -> Result<Outcome, String> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The second one does not wait for order.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)))
            .map_err(|error| format!("installing signal handlers: {error}"))?;
    }
    let done = |turn: &Turn| {
        let cell =
            job.planned.get(turn.cell).and_then(|it| run.cells.iter().find(|cell| cell.id == it.cell.id));
        cell.is_some_and(|cell| cell.repetitions.iter().any(|it| it.number == turn.repetition))
    };
    let all = turns(&job.campaign, &job.planned);
    let turns: Vec<Turn> = all.into_iter().filter(|it| !done(it)).collect();
    let progress = Progress::new(turns.len(), turns.iter().map(|it| job.time(it)).sum(), job.quiet);
    let cores = Cores::new(&job.look, &run);
    let (sender, receiver) = channel();
    let mut conductor = Conductor {
        job,
        run,
        interrupted: &interrupted,
        sender,
        receiver,
        networks: BTreeMap::new(),
        links_made: 0,
        next_worker: 0,
        identified: BTreeSet::new(),
        cores,
        progress,
        written: None,
    };
    conductor.write(true)?;
    conductor.cores.look();
    for turn in &turns {
        if !conductor.take_turn(*turn)? {
            break;
        }
    }
    conductor.cores.mark_all(&mut conductor.run);
    let interrupted = interrupted.load(Ordering::Relaxed);
    conductor.run.finished_unix_ms = (!interrupted).then(clock::unix_ms);
    conductor.write(true)?;
    let incomplete = conductor.networks.values().any(Result::is_err);
    Ok(Outcome { run: conductor.run, interrupted, incomplete })
}

struct Conductor<'a> {
    job: &'a Job,
    run: Run,
    interrupted: &'a AtomicBool,
    sender: Sender<FromAgents>,
    receiver: Receiver<FromAgents>,
    networks: BTreeMap<NetworkMode, Result<Network, String>>,
    links_made: usize,
    next_worker: u32,
    /// Agents, and adapters of which it is known what exactly runs there.
    identified: BTreeSet<(String, String)>,
    cores: Cores<'a>,
    progress: Progress,
    /// When `run.json` was written, and how long that took.
    written: Option<(Instant, Duration)>,
}

impl Conductor<'_> {
    /// False if the user wants to end.
    fn take_turn(&mut self, turn: Turn) -> Result<bool, String> {
        let job = self.job;
        let Some(planned) = job.planned.get(turn.cell) else { return Ok(true) };
        self.progress.begins(&planned.cell.id, turn.repetition);
        let Some(finished) = self.measure(planned, turn) else { return Ok(false) };
        let repetition = &finished.repetition;
        let word = match repetition.status {
            Status::Ok => repetition.marks.join("; "),
            status => format!("{}: {}", status.label(), repetition.reason),
        };
        self.progress.ended(&planned.cell.id, turn.repetition, job.time(&turn), &word);
        if let Some(directory) = &job.directory {
            write_repetition(directory, &planned.cell.id, &finished)?;
        }
        let repetition = self.note_programs(finished);
        if let Some(cell) = self.run.cells.iter_mut().find(|it| it.id == planned.cell.id) {
            cell.repetitions.push(repetition);
        }
        // The nearest may have been that one.
        self.cores.mark_all(&mut self.run);
        self.write(false)?;
        Ok(!self.interrupted.load(Ordering::Relaxed))
    }

    /// Notes what ran; what is left is the result.
    fn note_programs(&mut self, finished: Finished) -> Repetition {
        self.run.adapters.extend(finished.descriptions);
        for program in finished.programs {
            let key = |host: &String| (host.clone(), program.adapter.clone());
            self.identified.extend(program.hosts.iter().map(key));
            self.run.note_program(program);
        }
        finished.repetition
    }

    /// One repetition, whatever becomes of it; `None` if it was interrupted.
    fn measure(&mut self, planned: &Planned, turn: Turn) -> Option<Finished> {
        let mut finished = self.attempt(planned, turn)?;
        finished.repetition.number = turn.repetition;
        finished.repetition.order = turn.order;
        Some(finished)
    }

    fn attempt(&mut self, planned: &Planned, turn: Turn) -> Option<Finished> {
        let mode = planned.point.network;
        if let Err(reason) = self.prepare(mode, planned.point.loss_percent) {
            return Some(skipped(Status::Skipped, reason));
        }
        let marks = match self.wait_for_calm(mode) {
            Ok(marks) if self.job.strict && !marks.is_empty() => {
                return Some(skipped(
                    Status::Skipped,
                    format!("{}; --strict measures nothing then", marks.join("; ")),
                ));
            }
            Ok(marks) => marks,
            Err(reason) => {
                self.networks.remove(&mode);
                return Some(skipped(Status::Failed, reason));
            }
        };
        let Some(Ok(network)) = self.networks.get_mut(&mode) else {
            return Some(skipped(Status::Failed, "there is no such network".to_owned()));
        };
        let one_clock = network.links.iter().all(|it| it.same_clock);
        let draft = Draft {
            campaign: &self.job.campaign,
            planned,
            nodes: &network.nodes,
            one_clock,
            repetition: turn.repetition,
            order: turn.order,
        };
        let parties: Vec<Party> = draft.parties();
        let outage = draft.outage();
        if outage.is_some() && !network.private {
            let reason = "an outage needs a network of its own: write network = \"private\" or \"pair\"";
            return Some(skipped(Status::Skipped, reason.to_owned()));
        }
        let mut stage = Stage {
            links: &mut network.links,
            receiver: &self.receiver,
            interrupted: self.interrupted,
            next_worker: &mut self.next_worker,
            identified: &self.identified,
            outage,
        };
        // Nothing is known of the cores of other machines.
        let before_ns = if one_clock { self.cores.look() } else { None };
        let mut finished = stage.perform(&parties)?;
        let after_ns = if one_clock { self.cores.look() } else { None };
        finished.repetition.cores_apart_ns = larger(before_ns, after_ns);
        finished.repetition.marks.extend(marks);
        add_lost_tails(&parties, &mut finished.repetition.workers);
        if finished.broken {
            // The next repetition begins with new agents.
            self.networks.remove(&mode);
        }
        self.judge(planned, &mut finished);
        Some(finished)
    }

    /// Says what is doubtful or wrong of what has been measured.
    fn judge(&self, planned: &Planned, finished: &mut Finished) {
        let repetition = &mut finished.repetition;
        if let Some(mark) = finished.others.and_then(|it| it.mark(self.job.campaign.busy_limit_percent)) {
            if self.job.strict {
                repetition.status = Status::Skipped;
                repetition.reason = format!("{mark}; --strict keeps nothing then");
            }
            repetition.marks.push(mark);
        }
        check_discovery(&planned.cell.kind, repetition);
        outage::check(&planned.cell, repetition);
        if repetition.status == Status::Ok {
            repetition.marks.extend(self.cores.mark(repetition.cores_apart_ns));
        }
    }

    fn mailbox(&self) -> Mailbox<'_> {
        Mailbox { sender: &self.sender, receiver: &self.receiver }
    }

    /// Makes the network if it is not there, and sets its loss.
    fn prepare(&mut self, mode: NetworkMode, loss_percent: f64) -> Result<(), String> {
        if !self.networks.contains_key(&mode) {
            let setting = Setting {
                campaign: &self.job.campaign,
                adapters: &self.job.adapters,
                token: &self.job.token,
                mailbox: self.mailbox(),
            };
            let mut made = Network::make(mode, self.links_made, &setting);
            self.links_made += 1000;
            if let Ok(network) = &mut made {
                self.note_hosts(network)?;
            }
            self.networks.insert(mode, made);
        }
        match self.networks.get_mut(&mode) {
            Some(Ok(network)) => network.set_loss(loss_percent),
            Some(Err(reason)) => Err(reason.clone()),
            None => Err("there is no such network".to_owned()),
        }
    }

    fn note_hosts(&mut self, network: &mut Network) -> Result<(), String> {
        let mailbox = Mailbox { sender: &self.sender, receiver: &self.receiver };
        let mut load = 0.0;
        for (place, link) in network.links.iter_mut().enumerate() {
            // Agents of one host see the same processors.
            if place == 0 || !link.same_clock {
                load = link.load(WATCHING_FIRST, &mailbox)?;
            }
            link.host.load_before = load;
            self.run.hosts.retain(|it| it.name != link.host.name);
            self.run.hosts.push(link.host.clone());
        }
        Ok(())
    }

    /// Waits until nobody else uses much of the CPU, or the campaign's patience is over: then there is a
    /// mark.
    fn wait_for_calm(&mut self, mode: NetworkMode) -> Result<Vec<String>, String> {
        let Some(Ok(network)) = self.networks.get_mut(&mode) else { return Ok(Vec::new()) };
        let mailbox = Mailbox { sender: &self.sender, receiver: &self.receiver };
        let limit = self.job.campaign.busy_limit_percent;
        let end = Instant::now() + self.job.campaign.busy_wait.0;
        let mut marks = Vec::new();
        for (place, link) in network.links.iter_mut().enumerate() {
            let bound_ns = link.host.clock_bound_ns;
            if bound_ns > CLOCK_BOUND_NS {
                marks.push(format!(
                    "clock: that of {} is known to {} us only",
                    link.host.name,
                    bound_ns / 1000
                ));
            }
            // Who does not want to wait hears afterwards whether others used the CPU meanwhile.
            if place > 0 && link.same_clock || self.job.campaign.busy_wait.0.is_zero() {
                continue;
            }
            loop {
                let load = link.load(WATCHING, &mailbox)?;
                if load <= limit || self.interrupted.load(Ordering::Relaxed) {
                    break;
                }
                if Instant::now() >= end {
                    let on = if link.same_clock { String::new() } else { format!(" on {}", link.host.name) };
                    marks.push(format!("busy before: {:.2} cores by others{on}", load / 100.0));
                    break;
                }
            }
        }
        Ok(marks)
    }

    /// Writes `run.json`, at the latest at the end.
    fn write(&mut self, now: bool) -> Result<(), String> {
        let Some(directory) = &self.job.directory else { return Ok(()) };
        let due = self.written.is_none_or(|(at, took)| at.elapsed() >= took * WRITING_SHARE);
        if now || due {
            let begin = Instant::now();
            self.run.write(directory)?;
            self.written = Some((Instant::now(), begin.elapsed()));
        }
        Ok(())
    }
}

/// Participants that have not all found each other have measured no time.
fn check_discovery(kind: &str, repetition: &mut Repetition) {
    let alone = |it: &WorkerResult| it.report.as_ref().is_some_and(|it| it.matched_after_ns.is_none());
    if kind != Kind::Discovery.text() || repetition.status != Status::Ok {
        return;
    }
    if let Some(worker) = repetition.workers.iter().find(|it| alone(it)) {
        repetition.reason = format!("{} did not find all participants in its time", worker.name);
        repetition.status = Status::Unmatched;
    }
}

/// A repetition in which nobody did anything.
fn skipped(status: Status, reason: String) -> Finished {
    let started_unix_ms = clock::unix_ms();
    Finished {
        repetition: Repetition { started_unix_ms, status, reason, ..Repetition::default() },
        lines: Vec::new(),
        descriptions: Vec::new(),
        programs: Vec::new(),
        others: None,
        broken: false,
    }
}
