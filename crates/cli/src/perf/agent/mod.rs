//! An agent: one for each host or network namespace of a campaign. It starts workers, passes on what they
//! say, looks after them, and ends all of them when its controller is gone.

pub(crate) mod child;
pub(crate) mod clock;
mod environment;
mod identity;
mod procfs;
pub(crate) mod protocol;
mod server;
mod worker;

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use plainsong_perfkit::{Command, Event};

pub(crate) use self::server::{Options, read_token, run};

use self::protocol::{LINE_OCTETS_MAX, Lines, Manner, Notice, Order, PROTOCOL, send};
use self::worker::{Said, Worker, Workers};

/// How often processes are looked at while they are measured, and how often when not.
const SAMPLING: Duration = Duration::from_millis(200);
const LOOKING: Duration = Duration::from_millis(50);

/// What waits to be handled; a worker that says more than is passed on has to wait.
const INPUTS_MAX: usize = 256;

/// What wakes the agent.
enum Input {
    Order(Order),
    HungUp,
    Said { worker: u32, said: Said },
}

/// The longest line of who has not logged in.
const LOGIN_OCTETS_MAX: u64 = 4096;

/// A controller that may give orders.
pub(crate) struct Session<R> {
    lines: Lines<R>,
    name: String,
    /// It has started this agent, and needed no token.
    is_child: bool,
}

/// Hears the first line of a controller.
///
/// # Errors
/// Why it was refused; it is told so too.
fn login<R: BufRead>(input: R, output: &mut impl Write, token: Option<&str>) -> Result<Session<R>, String> {
    let mut lines = Lines::new(input, LOGIN_OCTETS_MAX);
    let refusal = match lines.next() {
        Ok(Some(Order::Login { protocol, .. })) if protocol != PROTOCOL => format!(
            "the controller speaks protocol {protocol}, this agent {PROTOCOL}: use one version of plainsong on all hosts"
        ),
        Ok(Some(Order::Login { token: given, name, .. })) => match token {
            Some(expected) if !same(expected.as_bytes(), given.as_bytes()) => {
                "the token is wrong: give --token-file with the file of the agent".to_owned()
            }
            _ => {
                let lines = lines.with_limit(LINE_OCTETS_MAX);
                return Ok(Session { lines, name, is_child: token.is_none() });
            }
        },
        Ok(Some(_)) => "the first line was no login".to_owned(),
        Ok(None) => "the connection ended before a login".to_owned(),
        Err(error) => format!("the first line was no login: {error}"),
    };
    // The controller may be gone already; the reason is told to the user of the agent as well.
    let _ = send(output, &Notice::Refused { reason: refusal.clone() });
    Err(refusal)
}

/// Serves one controller until it hangs up. Must be called on the main thread: workers are tied to the life
/// of the thread that started them.
///
/// # Errors
/// What became of the connection.
fn serve(
    session: Session<impl BufRead + Send + 'static>,
    output: impl Write,
    adapters: &Path,
) -> Result<(), String> {
    let Session { mut lines, name, is_child } = session;
    let (inputs, received) = sync_channel(INPUTS_MAX);
    let orders = inputs.clone();
    let reading = std::thread::Builder::new().name("orders".into()).spawn(move || {
        while let Ok(Some(order)) = lines.next() {
            if orders.send(Input::Order(order)).is_err() {
                return;
            }
        }
        // The agent is gone if nobody listens.
        let _ = orders.send(Input::HungUp);
    });
    reading.map_err(|error| format!("starting a thread: {error}"))?;
    let mut agent = Agent {
        output,
        inputs,
        adapters: adapters.to_owned(),
        workers: Workers::default(),
        is_child,
        scratch: None,
    };
    let welcome = Notice::Welcome {
        protocol: PROTOCOL,
        pid: std::process::id(),
        boot_id: environment::boot_id(),
        host: Box::new(environment::host(&name)),
        root: rustix::process::geteuid().is_root(),
    };
    agent.tell(&welcome).and_then(|()| agent.work(&received))
}

/// Compares in a time that depends on the lengths alone.
fn same(expected: &[u8], given: &[u8]) -> bool {
    let differing = expected.iter().zip(given).fold(0, |differing, (a, b)| differing | (a ^ b));
    expected.len() == given.len() && std::hint::black_box(differing) == 0
}

struct Agent<W> {
    output: W,
    inputs: SyncSender<Input>,
    adapters: PathBuf,
    workers: Workers,
    /// The controller has started it, with its own rights, on its own host.
    is_child: bool,
    /// Removed when the next repetition begins, and at the end.
    scratch: Option<Scratch>,
}

impl<W: Write> Agent<W> {
    fn tell(&mut self, notice: &Notice) -> Result<(), String> {
        send(&mut self.output, notice).map_err(|error| format!("the controller is gone: {error}"))
    }

    fn work(&mut self, inputs: &Receiver<Input>) -> Result<(), String> {
        loop {
            let wake = self.workers.next_look();
            let input = match wake {
                None => inputs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => inputs.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            match input {
                Ok(Input::HungUp) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(Input::Order(order)) => self.carry_out(order, inputs)?,
                Ok(Input::Said { worker, said }) => self.pass_on(worker, said)?,
                Err(RecvTimeoutError::Timeout) => {}
            }
            for notice in self.workers.look() {
                self.tell(&notice)?;
            }
        }
    }

    fn carry_out(&mut self, order: Order, inputs: &Receiver<Input>) -> Result<(), String> {
        match order {
            Order::Login { .. } => return Err("the controller logged in twice".to_owned()),
            Order::Clock { sent_ns } => {
                let received_ns = clock::now_ns();
                self.tell(&Notice::Clock { sent_ns, received_ns, answered_ns: clock::now_ns() })?;
            }
            Order::Load { for_ms } => {
                let percent = load_of_others(Duration::from_millis(for_ms.min(10_000)));
                self.tell(&Notice::Load { percent })?;
            }
            Order::Begin { scratch } => {
                self.workers = Workers::default();
                self.scratch = Some(Scratch::new(scratch.filter(|_| self.is_child))?);
            }
            Order::Spawn { worker, adapter, pin } => self.spawn(worker, &adapter, pin)?,
            Order::Tell { worker, line } => {
                let line = self.with_scratch(line);
                self.workers.command(worker, &line);
            }
            Order::Kill { worker } => {
                self.workers.kill(worker, Manner::Killed, "killed as the campaign asked for")
            }
            Order::Identify { worker, adapter } => {
                let pid = self.workers.pid(worker);
                let program = pid.and_then(|pid| identity::of(pid, &adapter, &self.adapters)).map(Box::new);
                self.tell(&Notice::Identified { worker, program })?;
            }
            Order::Measure { from_ns, until_ns } => self.workers.measure(from_ns, until_ns),
            Order::Finish => self.finish(inputs)?,
        }
        Ok(())
    }

    fn spawn(&mut self, worker: u32, adapter: &str, pin: Option<u32>) -> Result<(), String> {
        let program = match child::program(adapter, &self.adapters) {
            Ok(program) => program,
            Err(reason) => return self.tell(&Notice::NotSpawned { worker, missing: true, reason }),
        };
        let notice = match Worker::start(worker, &program, pin, &self.inputs) {
            Ok(started) => {
                let pid = started.pid();
                self.workers.add(started);
                Notice::Spawned { worker, pid }
            }
            Err(reason) => Notice::NotSpawned { worker, missing: false, reason },
        };
        self.tell(&notice)
    }

    /// Where a host keeps temporary files is its own business.
    fn with_scratch(&self, line: Command) -> Command {
        let Command::Configure { mut spec } = line else { return line };
        if let Some(scratch) = &self.scratch {
            spec.session.scratch = scratch.0.to_string_lossy().into_owned();
        }
        Command::Configure { spec }
    }

    fn pass_on(&mut self, worker: u32, said: Said) -> Result<(), String> {
        match said {
            Said::Event(event) => {
                self.workers.heard(worker, &event);
                self.tell(&Notice::Line { worker, event })
            }
            Said::Nonsense(text) => {
                self.workers.kill(worker, Manner::Babble, &text);
                self.workers.output_ended(worker);
                Ok(())
            }
            Said::Nothing => {
                self.workers.output_ended(worker);
                Ok(())
            }
        }
    }

    /// Kills what is left, and waits until all of it is gone.
    fn finish(&mut self, inputs: &Receiver<Input>) -> Result<(), String> {
        self.workers.kill_left();
        while self.workers.any_left() {
            // What workers said before they were killed still comes.
            match inputs.recv_timeout(Duration::from_millis(10)) {
                Ok(Input::Said { worker, said }) => self.pass_on(worker, said)?,
                Ok(Input::HungUp) | Err(RecvTimeoutError::Disconnected) => {
                    return Err("the controller is gone".to_owned());
                }
                Ok(Input::Order(_)) | Err(RecvTimeoutError::Timeout) => {}
            }
            for notice in self.workers.look() {
                self.tell(&notice)?;
            }
        }
        self.scratch = None;
        let machine = self.workers.machine_use();
        self.tell(&Notice::Finished { machine })
    }
}

/// What everyone but this process uses of the CPU, in percent of one core.
fn load_of_others(duration: Duration) -> f64 {
    let (busy, mine, start) = (procfs::machine_time().busy_ns, own_cpu_time(), Instant::now());
    std::thread::sleep(duration);
    let used = procfs::machine_time()
        .busy_ns
        .saturating_sub(busy)
        .saturating_sub(own_cpu_time().saturating_sub(mine));
    used as f64 / start.elapsed().as_nanos().max(1) as f64 * 100.0
}

/// CPU time of this process, in nanoseconds.
pub(crate) fn own_cpu_time() -> u64 {
    let usage = procfs::usage(std::process::id()).unwrap_or_default();
    usage.user_ns + usage.system_ns
}

/// A directory of its own for each repetition.
struct Scratch(PathBuf);

impl Scratch {
    fn new(shared: Option<PathBuf>) -> Result<Self, String> {
        let path = shared.unwrap_or_else(fresh_scratch);
        std::fs::create_dir_all(&path).map_err(|error| format!("making {}: {error}", path.display()))?;
        Ok(Self(path))
    }
}

/// A path that nobody else has, and short: those of Unix sockets have a limit of 108 octets.
pub(crate) fn fresh_scratch() -> PathBuf {
    std::env::temp_dir().join(format!("psl-{}-{}", std::process::id(), clock::now_ns()))
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed lies in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// True for what makes a worker's configuration known to be over.
fn is_answer(event: &Event) -> bool {
    !matches!(event, Event::Interval(_))
}
