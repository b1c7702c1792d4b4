//! The processes of an agent: what they say, what they use, and their ends.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command as Process, ExitStatus, Stdio};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plainsong_perfkit::{Command, Event};
use rustix::process::{Pid, Signal, kill_process_group};

use super::procfs::{self, Details, MachineTime, Usage};
use super::protocol::{End, LINE_OCTETS_MAX, Lines, MachineUse, Manner, Notice};
use super::{Input, LOOKING, SAMPLING, child, clock, is_answer};
use crate::perf::results::{ResourceSample, Resources, Traffic};

/// How long a worker may take for its first line, to begin its answer beyond what it was allowed, and to
/// leave.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
const MATCH_GRACE: Duration = Duration::from_secs(5);
const REPORT_GRACE: Duration = Duration::from_secs(10);
const QUIT_WITHIN: Duration = Duration::from_secs(5);

/// How long the end of a worker's output may follow its own.
const OUTPUT_WITHIN: Duration = Duration::from_secs(1);

/// What a worker may say in one repetition: a line a second for a day, and much more than any report.
const LINES_MAX: u64 = 100_000;
const OCTETS_MAX: u64 = 256 << 20;

/// How much of its standard error is kept: the last of it.
const COMPLAINT_OCTETS_MAX: usize = 4096;

/// What came from a worker.
pub(super) enum Said {
    Event(Box<Event>),
    /// Why it is not listened to any more.
    Nonsense(String),
    /// Its output has ended.
    Nothing,
}

/// One look at a process.
#[derive(Clone, Copy)]
struct Look {
    at_ns: u64,
    usage: Usage,
}

/// A process that was started.
pub(super) struct Worker {
    number: u32,
    child: Child,
    input: Option<ChildStdin>,
    complaint: Arc<Mutex<VecDeque<u8>>>,
    /// When it is killed, and what it has not done by then.
    deadline: Option<(Instant, String)>,
    killed: Option<(Manner, String)>,
    match_timeout: Duration,
    /// From its start to the end of its work, and how long a reader goes on.
    work: Duration,
    first: Option<(Look, Details)>,
    last: Option<Look>,
    last_details: Details,
    samples: Vec<ResourceSample>,
    resident_octets_max: u64,
    own_octets_max: u64,
    threads_max: u32,
    descriptors_max: u32,
    output_ended: bool,
    /// When it was found to have exited; told when all it said was passed on.
    gone: Option<(Instant, ExitStatus)>,
    ended: bool,
}

impl Worker {
    pub(super) fn start(
        number: u32,
        program: &[PathBuf],
        pin: Option<u32>,
        inputs: &SyncSender<Input>,
    ) -> Result<Self, String> {
        let mut process = Process::new(child::own_program()?);
        process.args(["perf", "child", "--parent", &std::process::id().to_string()]);
        if let Some(cpu) = pin {
            process.args(["--pin", &cpu.to_string()]);
        }
        process.arg("--").args(program);
        // A group of its own: Ctrl-C of the terminal is for the controller, and a kill takes what the worker
        // started.
        process.process_group(0);
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = process.spawn().map_err(|error| format!("starting a worker: {error}"))?;
        let complaint = Arc::new(Mutex::new(VecDeque::new()));
        if let Some(output) = child.stdout.take() {
            let inputs = inputs.clone();
            thread("worker-out", move || listen(number, output, &inputs))?;
        }
        if let Some(errors) = child.stderr.take() {
            let complaint = Arc::clone(&complaint);
            thread("worker-err", move || keep_last(errors, &complaint))?;
        }
        Ok(Self {
            number,
            input: child.stdin.take(),
            child,
            complaint,
            deadline: Some((Instant::now() + HELLO_WITHIN, format!("said nothing within {HELLO_WITHIN:?}"))),
            killed: None,
            match_timeout: Duration::ZERO,
            work: Duration::ZERO,
            first: None,
            last: None,
            last_details: Details::default(),
            samples: Vec::new(),
            resident_octets_max: 0,
            own_octets_max: 0,
            threads_max: 0,
            descriptors_max: 0,
            output_ended: false,
            gone: None,
            ended: false,
        })
    }

    /// Whether the thread that reads its errors has read all.
    fn complaint_ended(&self) -> bool {
        Arc::strong_count(&self.complaint) == 1
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn command(&mut self, command: &Command) {
        let now = Instant::now();
        match command {
            Command::Hello => {}
            Command::Configure { spec } => {
                self.match_timeout = Duration::from_millis(spec.match_timeout_ms);
                let parts = [spec.warmup_ms, spec.duration_ms, spec.drain_ms, spec.settle_ms];
                self.work = Duration::from_millis(parts.into_iter().fold(0, u64::saturating_add));
                let within = self.match_timeout + MATCH_GRACE;
                self.deadline = Some((now + within, format!("was not ready within {within:?}")));
            }
            Command::Start { at_ns } => {
                let until = Duration::from_nanos(at_ns.saturating_sub(clock::now_ns()));
                let within = until + self.work + REPORT_GRACE;
                self.deadline =
                    Some((now + within, format!("made no report within {within:.1?} of its start")));
            }
            Command::Stop => {
                let within = REPORT_GRACE + self.work.min(REPORT_GRACE);
                self.deadline =
                    Some((now + within, format!("made no report within {within:?} of being stopped")));
            }
            Command::Quit => {
                self.deadline = Some((now + QUIT_WITHIN, format!("did not leave within {QUIT_WITHIN:?}")));
            }
        }
        // A worker that is gone does not read; its end is told by itself.
        if let Some(input) = &mut self.input
            && let Ok(mut line) = serde_json::to_vec(command)
        {
            line.push(b'\n');
            let _ = input.write_all(&line).and_then(|()| input.flush());
        }
        if matches!(command, Command::Quit) {
            self.input = None;
        }
    }

    fn kill(&mut self, manner: Manner, reason: &str) {
        if self.ended {
            return;
        }
        if self.killed.is_none() {
            self.killed = Some((manner, reason.to_owned()));
        }
        self.deadline = None;
        self.kill_group();
    }

    fn kill_group(&self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // An error says that nobody is left.
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
    }

    /// The first look comes before the details, the last after them: what looking costs is not counted twice.
    fn look(&mut self, with_details: bool) {
        let pid = self.child.id();
        // A process that ended, but was not waited for, has no memory.
        let Some(usage) = procfs::usage(pid).filter(|it| it.resident_octets > 0) else { return };
        let look = Look { at_ns: clock::now_ns(), usage };
        self.resident_octets_max = self.resident_octets_max.max(usage.resident_octets_max);
        self.own_octets_max = self.own_octets_max.max(usage.own_octets);
        self.threads_max = self.threads_max.max(usage.threads);
        if with_details && let Some(details) = procfs::details(pid) {
            self.descriptors_max = self.descriptors_max.max(details.descriptors);
            self.last_details = details;
        }
        match self.last {
            None => self.first = Some((look, self.last_details.clone())),
            Some(before) => {
                let used = (usage.user_ns + usage.system_ns)
                    .saturating_sub(before.usage.user_ns + before.usage.system_ns);
                let elapsed = look.at_ns.saturating_sub(before.at_ns).max(1);
                self.samples.push(ResourceSample {
                    at_ns: look.at_ns,
                    cpu_percent: used as f64 / elapsed as f64 * 100.0,
                    resident_octets: usage.resident_octets,
                });
            }
        }
        self.last = Some(look);
    }

    fn resources(&self, traffic: Traffic) -> Resources {
        let mut resources = Resources {
            resident_octets_max: self.resident_octets_max,
            own_octets_max: self.own_octets_max,
            threads_max: self.threads_max,
            descriptors_max: self.descriptors_max,
            samples: self.samples.clone(),
            traffic,
            ..Resources::default()
        };
        if let (Some((first, details)), Some(last)) = (&self.first, self.last) {
            let (before, after) = (first.usage, last.usage);
            resources.user_ns = after.user_ns.saturating_sub(before.user_ns);
            resources.system_ns = after.system_ns.saturating_sub(before.system_ns);
            resources.wall_ns = last.at_ns.saturating_sub(first.at_ns);
            resources.resident_octets_end = after.resident_octets;
            resources.minor_faults = after.minor_faults.saturating_sub(before.minor_faults);
            resources.major_faults = after.major_faults.saturating_sub(before.major_faults);
            let switched = &self.last_details;
            resources.voluntary_switches =
                switched.voluntary_switches.saturating_sub(details.voluntary_switches);
            resources.involuntary_switches =
                switched.involuntary_switches.saturating_sub(details.involuntary_switches);
            let since = |(name, after): (&String, &u64)| {
                let before = details.threads.get(name).copied().unwrap_or(0);
                (name.clone(), after.saturating_sub(before))
            };
            resources.threads = switched.threads.iter().map(since).filter(|(_, used)| *used > 0).collect();
        }
        resources
    }

    fn end(&mut self, status: ExitStatus, traffic: Traffic) -> End {
        self.ended = true;
        self.input = None;
        let said = match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "an unknown end".to_owned(),
        };
        let (manner, exit, reason) = match self.killed.take() {
            Some((Manner::Killed, reason)) => (Manner::Killed, said, reason),
            Some((manner, reason)) => (manner, format!("killed by the laboratory: {}", word(manner)), reason),
            None if status.success() => (Manner::Exit, said, String::new()),
            None if status.signal().is_some() => (Manner::Signal, said, String::new()),
            None => (Manner::Failure, said, String::new()),
        };
        let complaint = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        let complaint: Vec<u8> = complaint.iter().copied().collect();
        let complaint = String::from_utf8_lossy(&complaint).trim().to_owned();
        End { exit, manner, reason, complaint, resources: self.resources(traffic) }
    }
}

fn word(manner: Manner) -> &'static str {
    match manner {
        Manner::Hung => "hung",
        Manner::Babble => "no worker of the laboratory",
        _ => "no longer needed",
    }
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
    thread.map(|_| ()).map_err(|error| format!("starting a thread: {error}"))
}

/// Passes on what a worker says, as far as it makes sense.
fn listen(worker: u32, output: ChildStdout, inputs: &SyncSender<Input>) {
    let mut lines = Lines::new(BufReader::new(output), LINE_OCTETS_MAX);
    let (mut count, mut octets) = (0, 0);
    let nonsense = loop {
        let line = match lines.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        };
        count += 1;
        octets += line.len() as u64;
        if count > LINES_MAX || octets > OCTETS_MAX {
            break Some(format!("it said more than {LINES_MAX} lines or {OCTETS_MAX} octets"));
        }
        match serde_json::from_slice(line) {
            Ok(event) => {
                if inputs.send(Input::Said { worker, said: Said::Event(Box::new(event)) }).is_err() {
                    return;
                }
            }
            Err(error) => {
                let start = String::from_utf8_lossy(line).chars().take(80).collect::<String>();
                break Some(format!("it said what is no event ({error}): {start:?}"));
            }
        }
    };
    let said = nonsense.map_or(Said::Nothing, Said::Nonsense);
    // The agent is gone if nobody listens.
    let _ = inputs.send(Input::Said { worker, said });
}

/// Errors are read to their end, so that the worker never waits, and the last of them are kept.
fn keep_last(errors: ChildStderr, kept: &Mutex<VecDeque<u8>>) {
    let mut errors = BufReader::new(errors);
    let mut octets = [0; 1024];
    while let Ok(count @ 1..) = errors.read(&mut octets) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(octets.iter().take(count));
        let surplus = kept.len().saturating_sub(COMPLAINT_OCTETS_MAX);
        kept.drain(..surplus);
    }
    let _ = errors.fill_buf();
}

/// All workers of a repetition.
#[derive(Default)]
pub(super) struct Workers {
    workers: Vec<Worker>,
    measuring: Option<Measuring>,
    traffic: Traffic,
    /// When the measurement began and when it was last looked at.
    machine: Option<(MachineLook, MachineLook)>,
    /// When to ask again who has exited; at once if `None`.
    next_wait: Option<Instant>,
}

/// A measurement that runs.
struct Measuring {
    until_ns: u64,
    next_ns: u64,
    first: Option<Traffic>,
    looks: u64,
}

/// One look at all CPUs.
#[derive(Clone, Copy)]
struct MachineLook {
    at_ns: u64,
    time: MachineTime,
    own_ns: u64,
}

impl Workers {
    pub(super) fn add(&mut self, worker: Worker) {
        self.workers.push(worker);
    }

    fn find(&mut self, number: u32) -> Option<&mut Worker> {
        self.workers.iter_mut().find(|it| it.number == number)
    }

    pub(super) fn command(&mut self, number: u32, command: &Command) {
        if let Some(worker) = self.find(number) {
            worker.command(command);
        }
    }

    pub(super) fn kill(&mut self, number: u32, manner: Manner, reason: &str) {
        if let Some(worker) = self.find(number) {
            worker.kill(manner, reason);
        }
    }

    /// An answer ends the wait for it.
    pub(super) fn heard(&mut self, number: u32, event: &Event) {
        let measuring = self.measuring.as_ref().and_then(|it| it.first);
        let Some(worker) = self.find(number).filter(|_| is_answer(event)) else { return };
        worker.deadline = None;
        // Work that is done before its time is over: what it took is known now, and the worker may leave at
        // once.
        if let (Event::Report(_), Some(first)) = (event, measuring) {
            worker.look(true);
            self.traffic = procfs::traffic().since(first);
        }
    }

    /// The process of a worker that has not ended.
    pub(super) fn pid(&self, number: u32) -> Option<u32> {
        self.workers.iter().find(|it| it.number == number && it.gone.is_none()).map(Worker::pid)
    }

    fn look_at_machine(&self) -> MachineLook {
        // The time of workers that were waited for is among that of the agent.
        let running =
            self.workers.iter().filter(|it| it.gone.is_none()).map(|it| procfs::family_ns(it.pid()));
        MachineLook {
            own_ns: running.sum::<u64>() + procfs::family_ns(std::process::id()),
            time: procfs::machine_time(),
            at_ns: clock::now_ns(),
        }
    }

    /// The CPU of the machine during the measurement, as far as it went.
    pub(super) fn machine_use(&self) -> Option<MachineUse> {
        let (first, last) = self.machine?;
        let plain = |look: MachineLook| look.time.busy_ns.saturating_sub(look.time.interrupts_ns);
        Some(MachineUse {
            wall_ns: last.at_ns.saturating_sub(first.at_ns),
            busy_ns: plain(last).saturating_sub(plain(first)),
            own_ns: last.own_ns.saturating_sub(first.own_ns),
            processes: u32::try_from(self.workers.len()).unwrap_or(u32::MAX).saturating_add(1),
        })
    }

    pub(super) fn output_ended(&mut self, number: u32) {
        if let Some(worker) = self.find(number) {
            worker.output_ended = true;
        }
        self.next_wait = None;
    }

    pub(super) fn measure(&mut self, from_ns: u64, until_ns: u64) {
        self.measuring = Some(Measuring { until_ns, next_ns: from_ns, first: None, looks: 0 });
    }

    pub(super) fn any_left(&self) -> bool {
        self.workers.iter().any(|it| !it.ended)
    }

    /// When to look again; `None` if there is nothing to look at.
    pub(super) fn next_look(&self) -> Option<Instant> {
        if !self.any_left() {
            return None;
        }
        let now = Instant::now();
        let Some(measuring) = &self.measuring else { return Some(now + LOOKING) };
        let sample = Duration::from_nanos(measuring.next_ns.saturating_sub(clock::now_ns()));
        Some(now + sample.min(SAMPLING))
    }

    /// Looks after all: takes their resources if it is time, kills who did not answer in time, tells who has
    /// ended.
    pub(super) fn look(&mut self) -> Vec<Notice> {
        self.sample();
        let now = Instant::now();
        let mut notices = Vec::new();
        if self.next_wait.is_some_and(|at| now < at) {
            return notices;
        }
        self.next_wait = Some(now + LOOKING);
        for worker in self.workers.iter_mut().filter(|it| !it.ended) {
            if let Some((_, reason)) = worker.deadline.take_if(|(at, _)| *at <= now) {
                worker.kill(Manner::Hung, &reason);
            }
            if worker.gone.is_none()
                && let Ok(Some(status)) = worker.child.try_wait()
            {
                // What it started may outlive it, and hold its output.
                worker.kill_group();
                worker.gone = Some((now, status));
            }
            if let Some((since, status)) = worker.gone
                && (worker.output_ended && worker.complaint_ended() || now >= since + OUTPUT_WITHIN)
            {
                let end = worker.end(status, self.traffic);
                notices.push(Notice::Ended { worker: worker.number, end: Box::new(end) });
            }
        }
        notices
    }

    fn sample(&mut self) {
        let Some(measuring) = &mut self.measuring else { return };
        if clock::now_ns() < measuring.next_ns {
            return;
        }
        let last = measuring.next_ns >= measuring.until_ns;
        // Switches and descriptors cost a look at each thread: once a second, at the start and at the end.
        let with_details = last || measuring.looks.is_multiple_of(5);
        measuring.looks += 1;
        // Before anything that takes time: most of discovery is over in a blink.
        let traffic = procfs::traffic();
        let first = *measuring.first.get_or_insert(traffic);
        self.traffic = traffic.since(first);
        for worker in self.workers.iter_mut().filter(|it| !it.ended) {
            worker.look(with_details);
        }
        let step = u64::try_from(SAMPLING.as_nanos()).unwrap_or(u64::MAX);
        // After a pause of the agent what was missed is not made up for.
        measuring.next_ns = (measuring.next_ns + step).max(clock::now_ns()).min(measuring.until_ns);
        if last {
            self.measuring = None;
        }
        let look = self.look_at_machine();
        let first = self.machine.map_or(look, |(first, _)| first);
        self.machine = Some((first, look));
    }

    /// Ends all that are left, politely if they have nothing to do any more.
    pub(super) fn kill_left(&mut self) {
        for worker in &mut self.workers {
            worker.kill(Manner::Killed, "ended with the repetition");
        }
        self.next_wait = None;
    }

    /// Nothing outlives its agent.
    pub(super) fn kill_all(&mut self) {
        self.kill_left();
        for worker in &mut self.workers {
            // Killed: it ends at once.
            let _ = worker.child.wait();
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.kill_all();
    }
}
