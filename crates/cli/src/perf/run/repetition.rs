//! The life of one repetition: all workers at once, step by step, and an end whatever they do.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use plainsong_perfkit::event::{ErrorKind, Interval};
use plainsong_perfkit::spec::Role;
use plainsong_perfkit::{Command, Description, Event};

use super::link::{FromAgents, Link};
use super::others::{Controller, Others};
use super::outage::Cutter;
use super::parties::{Outage, Party};
use crate::perf::agent::protocol::{End, MachineUse, Manner, Notice, Order};
use crate::perf::agent::{clock, fresh_scratch};
use crate::perf::results::{Program, Repetition, Status, WorkerResult};

/// Between the order to start and the start, so that all have heard it.
const START_AFTER: Duration = Duration::from_millis(30);
/// How often it is looked whether the user wants to end.
const LOOKING: Duration = Duration::from_millis(100);
/// Agents end what does not answer; one that does not even do that is given up after so much more.
const AGENT_GRACE: Duration = Duration::from_secs(15);
/// The version of the protocol of workers that is spoken here.
const WORKER_PROTOCOL: u32 = 1;

/// Everything about a worker of this repetition.
struct Member<'a> {
    party: &'a Party,
    number: u32,
    hello: Option<Description>,
    /// It was asked for, and told.
    identity: Option<Option<Program>>,
    started: bool,
    result: WorkerResult,
    end: Option<End>,
    lines: Vec<Event>,
}

/// What stays of a repetition beside its results.
pub(super) struct Finished {
    pub(super) repetition: Repetition,
    /// What each worker said, by its name.
    pub(super) lines: Vec<(String, Vec<Event>)>,
    /// What the adapters say of themselves.
    pub(super) descriptions: Vec<(String, Description)>,
    /// What exactly ran, of adapters that were not known yet.
    pub(super) programs: Vec<Program>,
    /// CPU used by others, if all agents have told theirs.
    pub(super) others: Option<Others>,
    /// An agent is gone: nothing more can be measured with it.
    pub(super) broken: bool,
}

/// Why a repetition goes no further.
struct Stopped {
    status: Status,
    reason: String,
}

/// What a repetition is carried out with.
pub(super) struct Stage<'a> {
    pub(super) links: &'a mut [Link],
    pub(super) receiver: &'a Receiver<FromAgents>,
    pub(super) interrupted: &'a AtomicBool,
    /// Numbers of workers are never used twice: what an old one said late is not taken for a new one's.
    pub(super) next_worker: &'a mut u32,
    /// Agents, and adapters of which it is known what exactly runs there.
    pub(super) identified: &'a BTreeSet<(String, String)>,
    /// In which nothing gets through.
    pub(super) outage: Option<Outage>,
}

impl Stage<'_> {
    /// Carries out one repetition; `None` if the user has interrupted it.
    pub(super) fn perform(&mut self, parties: &[Party]) -> Option<Finished> {
        let first = *self.next_worker;
        *self.next_worker += u32::try_from(parties.len()).unwrap_or(u32::MAX);
        let member = |(party, number)| Member {
            party,
            number,
            hello: None,
            identity: None,
            started: false,
            result: WorkerResult {
                name: Party::name(party).to_owned(),
                adapter: party.adapter.clone(),
                host: self.links.get(party.node).map(|it| it.host.name.clone()).unwrap_or_default(),
                ..WorkerResult::default()
            },
            end: None,
            lines: Vec::new(),
        };
        let members = parties.iter().zip(first..).map(member).collect();
        let started_unix_ms = clock::unix_ms();
        let mut play = Play {
            stage: self,
            members,
            killed: Vec::new(),
            cutter: None,
            machines: Vec::new(),
            controller: None,
        };
        let outcome = play.all_acts();
        let ended = play.finish();
        if play.stage.interrupted.load(Ordering::Relaxed) {
            return None;
        }
        let broken = ended.is_err();
        let gone = |reason| Stopped { status: Status::Failed, reason };
        let stopped = outcome.err().or_else(|| ended.err().map(gone));
        Some(Finished { broken, ..play.results(stopped, started_unix_ms) })
    }
}

struct Play<'a, 'b> {
    stage: &'a mut Stage<'b>,
    members: Vec<Member<'a>>,
    /// Members that the campaign kills, once they are.
    killed: Vec<u32>,
    cutter: Option<Cutter>,
    /// By the number of the link.
    machines: Vec<(usize, MachineUse)>,
    /// From the start of the work on.
    controller: Option<Controller>,
}

impl<'a> Play<'a, '_> {
    fn all_acts(&mut self) -> Result<(), Stopped> {
        let scratch = fresh_scratch();
        for link in 0..self.stage.links.len() {
            self.order(link, &Order::Begin { scratch: Some(scratch.clone()) })?;
        }
        for place in 0..self.members.len() {
            let Some(member) = self.members.get(place) else { continue };
            let order = Order::Spawn {
                worker: member.number,
                adapter: member.party.adapter.clone(),
                pin: member.party.pin,
            };
            let node = member.party.node;
            self.order(node, &order)?;
            self.tell(place, Command::Hello)?;
        }
        self.until("said hello", Duration::from_secs(10), |it| it.hello.is_some())?;
        self.check_pairing()?;
        for place in 0..self.members.len() {
            if let Some(member) = self.members.get(place) {
                let spec = Box::new(member.party.spec.clone());
                self.tell(place, Command::Configure { spec })?;
            }
        }
        let patience = self.members.iter().map(|it| it.party.spec.match_timeout_ms).max().unwrap_or(0);
        let patience = Duration::from_millis(patience) + Duration::from_secs(5);
        self.until("was ready", patience, |it| it.result.ready_after_ns.is_some())?;
        self.prepare_outage()?;
        self.start_and_wait()?;
        self.stop_the_others()?;
        self.identify()?;
        for place in 0..self.members.len() {
            if self.members.get(place).is_some_and(|it| it.end.is_none()) {
                self.tell(place, Command::Quit)?;
            }
        }
        self.until("left", Duration::from_secs(5), |it| it.end.is_some())
    }

    fn prepare_outage(&mut self) -> Result<(), Stopped> {
        let Some(planned) = self.stage.outage else { return Ok(()) };
        let pids: Vec<u32> = self.stage.links.iter().map(|it| it.pid).collect();
        let failed = |reason| Stopped { status: Status::Failed, reason };
        self.cutter = Some(Cutter::new(planned, &pids).map_err(failed)?);
        Ok(())
    }

    /// Asks what exactly runs, once for each adapter of each agent: now nothing is measured any more.
    fn identify(&mut self) -> Result<(), Stopped> {
        let mut asked = BTreeSet::new();
        for place in 0..self.members.len() {
            let Some(member) = self.members.get(place).filter(|it| it.end.is_none()) else { continue };
            let (adapter, node, worker) = (member.party.adapter.clone(), member.party.node, member.number);
            let key = (member.result.host.clone(), adapter.clone());
            if !self.stage.identified.contains(&key) && asked.insert(key) {
                self.order(node, &Order::Identify { worker, adapter })?;
                if let Some(member) = self.members.get_mut(place) {
                    member.identity = Some(None);
                }
            }
        }
        let answered = |it: &Member<'_>| !matches!(it.identity, Some(None)) || it.end.is_some();
        self.until("told what it runs", Duration::from_secs(30), answered)
    }

    /// Two products can only be paired if both speak RTPS.
    fn check_pairing(&self) -> Result<(), Stopped> {
        let speaks = |it: &Member<'_>| {
            it.hello.as_ref().is_some_and(|hello| hello.features.iter().any(|feature| feature == "rtps"))
        };
        let Some(first) = self.members.first() else { return Ok(()) };
        let mixed = self.members.iter().any(|it| it.party.adapter != first.party.adapter);
        match self.members.iter().find(|it| !speaks(it)) {
            Some(mute) if mixed => Err(Stopped {
                status: Status::Unsupported,
                reason: format!(
                    "{} does not speak RTPS: it cannot be paired with another product",
                    mute.party.adapter
                ),
            }),
            _ => Ok(()),
        }
    }

    fn start_and_wait(&mut self) -> Result<(), Stopped> {
        let start_ns = clock::now_ns() + u64::try_from(START_AFTER.as_nanos()).unwrap_or(0);
        let warmup_ms = self.members.iter().map(|it| it.party.spec.warmup_ms).max().unwrap_or(0);
        let length = |it: &Member<'_>| it.party.spec.warmup_ms + it.party.spec.duration_ms;
        let length_ms = self.members.iter().map(length).max().unwrap_or(0);
        for link in 0..self.stage.links.len() {
            let there =
                |ms: u64| self.stage.links.get(link).map_or(0, |it| it.there(start_ns + ms * 1_000_000));
            let order = Order::Measure { from_ns: there(warmup_ms), until_ns: there(length_ms) };
            self.order(link, &order)?;
        }
        for place in 0..self.members.len() {
            let Some(member) = self.members.get_mut(place) else { continue };
            member.started = true;
            let node = member.party.node;
            let at_ns = self.stage.links.get(node).map_or(0, |it| it.there(start_ns));
            self.tell(place, Command::Start { at_ns })?;
        }
        self.controller = Some(Controller::watch());
        let after = |it: &Member<'_>| it.party.spec.drain_ms.saturating_add(it.party.spec.settle_ms);
        let after_ms = self.members.iter().map(after).max().unwrap_or(0);
        let patience = START_AFTER + Duration::from_millis(length_ms + after_ms) + Duration::from_secs(10);
        self.until("made a report", patience, |it| it.result.report.is_some() || !it.party.leads)
    }

    /// Who only reads or answers has done its work when the leading workers have.
    fn stop_the_others(&mut self) -> Result<(), Stopped> {
        for place in 0..self.members.len() {
            let Some(member) = self.members.get(place) else { continue };
            if member.result.report.is_some() || member.end.is_some() {
                continue;
            }
            let answers = matches!(member.party.spec.role, Role::Pong { .. });
            self.tell(place, Command::Stop)?;
            if answers {
                // All pings are answered or given up: there is nothing to drain.
                self.tell(place, Command::Stop)?;
            }
        }
        let killed = self.killed.clone();
        // However long the drain is extended by samples that still come; the agent ends it before this does.
        let patience = Duration::from_secs(30);
        self.until("made a report", patience, |it| it.result.report.is_some() || killed.contains(&it.number))
    }

    /// Waits until all members are so; kills those whose time has come.
    fn until(
        &mut self,
        what: &str,
        patience: Duration,
        done: impl Fn(&Member<'_>) -> bool,
    ) -> Result<(), Stopped> {
        let begin = Instant::now();
        let end = begin + patience + AGENT_GRACE;
        while !self.members.iter().all(&done) {
            self.kill_as_planned(begin)?;
            let next_cut = self.cut_as_planned(begin + START_AFTER)?;
            if self.stage.interrupted.load(Ordering::Relaxed) {
                return Err(Stopped { status: Status::Skipped, reason: "interrupted".to_owned() });
            }
            let next_kill = self.next_kill(begin).unwrap_or(end);
            let wake = end.min(Instant::now() + LOOKING).min(next_kill).min(next_cut.unwrap_or(end));
            match self.stage.receiver.recv_timeout(wake.saturating_duration_since(Instant::now())) {
                Ok((link, notice)) => self.take(link, notice)?,
                Err(RecvTimeoutError::Timeout) if Instant::now() < end => {}
                Err(_) => {
                    let name = self.members.iter().find(|it| !done(it)).map_or("", |it| it.party.name());
                    let reason = format!("{name} has not {what}, and its agent does nothing about it");
                    return Err(Stopped { status: Status::Hung, reason });
                }
            }
        }
        Ok(())
    }

    /// Cuts and joins the networks once the work has begun; when there is more to do.
    fn cut_as_planned(&mut self, begin: Instant) -> Result<Option<Instant>, Stopped> {
        let started = self.members.iter().all(|it| it.started);
        let Some(cutter) = self.cutter.as_mut().filter(|_| started) else { return Ok(None) };
        cutter.act(begin).map_err(|reason| Stopped { status: Status::Failed, reason })?;
        Ok(cutter.next(begin))
    }

    fn next_kill(&self, begin: Instant) -> Option<Instant> {
        let waiting = self.members.iter().filter(|it| it.started && !self.killed.contains(&it.number));
        waiting.filter_map(|it| Some(begin + START_AFTER + it.party.killed_after?)).min()
    }

    fn kill_as_planned(&mut self, begin: Instant) -> Result<(), Stopped> {
        while self.next_kill(begin).is_some_and(|at| at <= Instant::now()) {
            let due = |it: &&Member<'_>| {
                it.started
                    && !self.killed.contains(&it.number)
                    && it
                        .party
                        .killed_after
                        .is_some_and(|after| begin + START_AFTER + after <= Instant::now())
            };
            let Some(member) = self.members.iter().find(due) else { break };
            let (number, node) = (member.number, member.party.node);
            self.killed.push(number);
            self.order(node, &Order::Kill { worker: number })?;
        }
        Ok(())
    }

    fn order(&mut self, link: usize, order: &Order) -> Result<(), Stopped> {
        let gone = |reason| Stopped { status: Status::Failed, reason };
        let link = self.stage.links.get_mut(link).ok_or_else(|| gone("there is no such agent".to_owned()))?;
        link.order(order).map_err(|error| gone(format!("{}: {error}", link.host.name)))
    }

    fn tell(&mut self, place: usize, line: Command) -> Result<(), Stopped> {
        let Some(member) = self.members.get(place) else { return Ok(()) };
        let (worker, node) = (member.number, member.party.node);
        self.order(node, &Order::Tell { worker, line })
    }

    fn member(&mut self, number: u32) -> Option<&mut Member<'a>> {
        self.members.iter_mut().find(|it| it.number == number)
    }

    /// Understands what an agent says.
    fn take(&mut self, link: usize, notice: Result<Notice, String>) -> Result<(), Stopped> {
        // The agents of other networks are idle.
        let Some(link) = self.stage.links.iter().find(|it| it.number == link) else { return Ok(()) };
        let name = &link.host.name;
        let gone = |reason| Stopped { status: Status::Failed, reason: format!("agent {name}: {reason}") };
        let notice = notice.map_err(gone)?;
        match notice {
            Notice::Spawned { worker, pid } => {
                if let Some(member) = self.member(worker) {
                    member.result.pid = pid;
                }
                Ok(())
            }
            Notice::NotSpawned { worker, missing, reason } => match self.member(worker) {
                Some(_) if missing => Err(Stopped { status: Status::Skipped, reason }),
                Some(_) => Err(Stopped { status: Status::Failed, reason }),
                None => Ok(()),
            },
            Notice::Identified { worker, program } => {
                if let Some(member) = self.member(worker) {
                    let hosts = vec![member.result.host.clone()];
                    member.identity = program.map(|program| Some(Program { hosts, ..*program }));
                }
                Ok(())
            }
            Notice::Line { worker, event } => self.hear(worker, *event),
            Notice::Ended { worker, end } => self.bury(worker, *end),
            Notice::Refused { reason } => Err(Stopped { status: Status::Failed, reason }),
            _ => Ok(()),
        }
    }

    fn hear(&mut self, worker: u32, event: Event) -> Result<(), Stopped> {
        let Some(member) = self.member(worker) else { return Ok(()) };
        member.lines.push(event.clone());
        let name = &member.result.name;
        let failed = |what: String| Stopped { status: Status::Failed, reason: what };
        match event {
            Event::Hello { protocol, .. } if protocol != WORKER_PROTOCOL => Err(failed(format!(
                "adapter {} speaks protocol {protocol}, not {WORKER_PROTOCOL}: `plainsong perf adapters --install {0}`",
                member.party.adapter
            ))),
            Event::Hello { description, .. } => {
                member.hello = Some(description);
                Ok(())
            }
            Event::Ready { took_ns } => {
                member.result.ready_after_ns = Some(took_ns);
                Ok(())
            }
            Event::Interval(interval) => {
                member.result.intervals.push(Interval { histogram: None, ..interval });
                Ok(())
            }
            Event::Report(_) if !member.started => {
                Err(failed(format!("{name} reported before it was started")))
            }
            Event::Report(report) => {
                member.result.report = Some(*report);
                Ok(())
            }
            Event::Error { kind, message } => {
                let status = match kind {
                    ErrorKind::Unsupported => Status::Unsupported,
                    ErrorKind::Unmatched => Status::Unmatched,
                    ErrorKind::Failed | ErrorKind::Protocol => Status::Failed,
                };
                Err(Stopped { status, reason: format!("{name}: {message}") })
            }
        }
    }

    /// A worker is gone: as it should, or not.
    fn bury(&mut self, worker: u32, end: End) -> Result<(), Stopped> {
        let as_planned = self.killed.contains(&worker);
        let Some(member) = self.member(worker) else { return Ok(()) };
        let reported = member.result.report.is_some();
        let outcome = if as_planned || reported && end.manner == Manner::Exit {
            Ok(())
        } else {
            Err(verdict(&member.result.name, &member.party.adapter, reported, &end))
        };
        member.result.exit.clone_from(&end.exit);
        member.result.resources = end.resources.clone();
        member.end = Some(end);
        outcome
    }

    /// Ends everything that is left, in good or bad order.
    fn finish(&mut self) -> Result<(), String> {
        let mut awaited = Vec::new();
        for link in 0..self.stage.links.len() {
            if self.order(link, &Order::Finish).is_ok()
                && let Some(link) = self.stage.links.get(link)
            {
                awaited.push(link.number);
            }
        }
        let complete = awaited.len() == self.stage.links.len();
        let end = Instant::now() + AGENT_GRACE;
        while !awaited.is_empty() {
            match self.stage.receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok((link, Ok(Notice::Finished { machine }))) => {
                    awaited.retain(|it| *it != link);
                    self.machines.extend(machine.map(|machine| (link, machine)));
                }
                Ok((link, Err(error))) if awaited.contains(&link) => return Err(error),
                // What is said and how it ends is still kept; it cannot change the outcome any more.
                Ok((link, notice)) => {
                    let _ = self.take(link, notice);
                }
                Err(_) => return Err("an agent does not end its workers".to_owned()),
            }
        }
        if complete { Ok(()) } else { Err("an agent is gone".to_owned()) }
    }

    fn results(self, stopped: Option<Stopped>, started_unix_ms: u64) -> Finished {
        let controller_ns = self.controller.as_ref().map_or(0, Controller::used_ns);
        let others = Others::of(self.stage.links, &self.machines, controller_ns);
        let (status, reason) = stopped.map_or((Status::Ok, String::new()), |it| (it.status, it.reason));
        let mut finished = Finished {
            repetition: Repetition { started_unix_ms, status, reason, ..Repetition::default() },
            lines: Vec::new(),
            descriptions: Vec::new(),
            programs: Vec::new(),
            others,
            broken: false,
        };
        finished.repetition.outage_end_ns = self.cutter.as_ref().and_then(|it| it.ended_ns);
        finished.repetition.others_percent = others.map(|it| it.percent);
        for member in self.members {
            if let Some(hello) = member.hello {
                finished.descriptions.push((member.party.adapter.clone(), hello));
            }
            finished.programs.extend(member.identity.flatten());
            finished.lines.push((member.result.name.clone(), member.lines));
            finished.repetition.workers.push(member.result);
        }
        finished
    }
}

/// What the end of a worker means that was not to end.
fn verdict(name: &str, adapter: &str, reported: bool, end: &End) -> Stopped {
    let last_words =
        last_words(&end.complaint).map_or_else(String::new, |it| format!("; its last words: {it}"));
    let when = if reported { " after its report" } else { "" };
    let (status, what) = match end.manner {
        Manner::Signal => (Status::Crashed, format!("died by {}{when}", end.exit)),
        Manner::Failure => (Status::Crashed, format!("ended with {}{when}", end.exit)),
        Manner::Exit => (Status::Failed, format!("left without a report ({})", end.exit)),
        Manner::Hung => (Status::Hung, format!("{}, and was killed", end.reason)),
        Manner::Babble => (Status::Failed, format!("is no worker of the laboratory: {}", end.reason)),
        Manner::Killed => (Status::Failed, "was killed".to_owned()),
    };
    Stopped { status, reason: format!("{name} ({adapter}) {what}{last_words}") }
}

/// What a process said of its end: why it panicked, without the hints and frames that come after that, else
/// its last line.
fn last_words(complaint: &str) -> Option<String> {
    let mut lines = complaint.lines();
    match lines.find(|line| line.contains(" panicked at ")) {
        Some(place) => Some(format!("{place} {}", lines.next().unwrap_or_default()).trim_end().to_owned()),
        None => complaint.lines().last().map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_panic_the_reason_is_told_and_not_the_hint_that_follows() {
        let panic = "a warning\nthread 'main' panicked at src/a.rs:7:9:\nexpected this, got that\nstack backtrace:\n   0: f\n\
                     note: Some details are omitted";
        let told = "thread 'main' panicked at src/a.rs:7:9: expected this, got that";
        for (complaint, expected) in [(panic, Some(told)), ("first\nlast", Some("last")), ("", None)] {
            assert_eq!(last_words(complaint).as_deref(), expected);
        }
    }
}
