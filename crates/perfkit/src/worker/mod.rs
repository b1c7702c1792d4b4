//! The life of a worker: commands in, events out.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::adapter::{Adapter, Failure};
use crate::clock::{ms, now_ns};
use crate::command::Command;
use crate::event::{ErrorKind, Event, Report};
use crate::floor::system;
use crate::recorder;
use crate::spec::WorkerSpec;
use crate::work::{self, Control, Output, Work};

/// The version of the protocol of commands and events.
pub const PROTOCOL: u32 = 1;
/// The longest command, in octets.
const LINE_MAX: u64 = 1 << 20;
/// What is still running this long after the standard input has ended is not waited for.
const LEAVING_MS: u64 = 1000;
/// Time between looks at what is matched: this, or this part of what it has taken so far. Many workers that
/// look more often take the cores from what they wait for.
const MATCHING_NS: u64 = 500_000;
const MATCHING_PARTS: u64 = 64;

/// Why a worker ends before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    kind: ErrorKind,
    message: String,
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unsupported(message) => Self { kind: ErrorKind::Unsupported, message },
            Failure::Failed(message) => Self { kind: ErrorKind::Failed, message },
            Failure::Timeout => Self {
                kind: ErrorKind::Failed,
                message: "a write took longer than its blocking time: read faster, or raise blocking_ms"
                    .to_owned(),
            },
        }
    }
}

/// What `main` of an adapter does: is a worker on standard input and output until it is told to leave.
///
/// From here on the standard output of the process belongs to the protocol; what libraries print on it goes
/// to the standard error. When the standard input ends, the process ends, even if the adapter hangs.
pub fn main(adapter: &mut dyn Adapter) -> ExitCode {
    system::die_with_parent();
    let output = match system::private_stdout() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("no standard output: {error}");
            return ExitCode::FAILURE;
        }
    };
    let leave = || {
        std::thread::sleep(Duration::from_millis(LEAVING_MS));
        system::leave_now(1)
    };
    match serve(adapter, BufReader::new(std::io::stdin()), output, leave) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The same with any input and output; `leave` is called on another thread when the input has ended.
///
/// # Errors
/// The event of the error that ended it, which has been told.
pub fn serve(
    adapter: &mut dyn Adapter,
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
    leave: impl FnOnce() + Send + 'static,
) -> Result<(), Box<Event>> {
    let output = Arc::new(Output::new(output));
    let control = Arc::new(Control::default());
    output.tell(&Event::Hello {
        protocol: PROTOCOL,
        pid: std::process::id(),
        description: adapter.description(),
    });
    let commands = listen(input, Arc::clone(&control), leave);
    let mut worker = Worker { adapter, commands, control, output: Arc::clone(&output), work: None };
    worker.run().map_err(|trouble| {
        let event = Event::Error { kind: trouble.kind, message: trouble.message };
        output.tell(&event);
        Box::new(event)
    })
}

/// Reads commands on a thread of its own, so that a stop is heard during the work.
fn listen(
    mut input: impl BufRead + Send + 'static,
    control: Arc<Control>,
    leave: impl FnOnce() + Send + 'static,
) -> Receiver<Result<Command, Trouble>> {
    let (sender, commands) = channel();
    std::thread::spawn(move || {
        let mut line = Vec::new();
        while let Some(command) = read_command(&mut input, &mut line) {
            let last = matches!(command, Ok(Command::Quit) | Err(_));
            // Stops that came before were for the work before.
            if matches!(command, Ok(Command::Configure { .. })) {
                control.reset();
            }
            if last || matches!(command, Ok(Command::Stop)) {
                control.stop();
            }
            if sender.send(command).is_err() || last {
                break;
            }
        }
        control.stop();
        drop(sender);
        leave();
    });
    commands
}

/// The next command; `None` at the end of the input.
fn read_command(input: &mut impl BufRead, line: &mut Vec<u8>) -> Option<Result<Command, Trouble>> {
    let protocol = |message: String| Some(Err(Trouble { kind: ErrorKind::Protocol, message }));
    loop {
        line.clear();
        if input.take(LINE_MAX).read_until(b'\n', line).ok()? == 0 {
            return None;
        }
        if !line.ends_with(b"\n") && line.len() as u64 == LINE_MAX {
            return protocol(format!("a command is longer than {LINE_MAX} octets"));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        return match serde_json::from_slice(line) {
            Ok(command) => Some(Ok(command)),
            Err(error) => protocol(format!(
                "a command makes no sense: {error} (is this adapter of another version? `plainsong perf adapters --install` builds it again)"
            )),
        };
    }
}

struct Worker<'a> {
    adapter: &'a mut dyn Adapter,
    commands: Receiver<Result<Command, Trouble>>,
    control: Arc<Control>,
    output: Arc<Output>,
    /// The entities live on after the report, since others may still need them, until the worker leaves.
    work: Option<(Box<dyn Work>, WorkerSpec)>,
}

impl Worker<'_> {
    fn run(&mut self) -> Result<(), Trouble> {
        let mut reported = false;
        while let Ok(command) = self.commands.recv() {
            match command? {
                Command::Hello => {
                    let description = self.adapter.description();
                    self.output.tell(&Event::Hello {
                        protocol: PROTOCOL,
                        pid: std::process::id(),
                        description,
                    });
                }
                Command::Configure { spec } => {
                    reported = !self.configure(*spec)?;
                }
                Command::Start { at_ns } => {
                    self.start(at_ns)?;
                    reported = true;
                }
                Command::Stop if !reported => {
                    self.output.tell(&Event::Report(Box::new(empty_report())));
                    reported = true;
                }
                Command::Stop => {}
                Command::Quit => break,
            }
        }
        Ok(())
    }

    /// False if it was stopped before it was ready, and has said so.
    fn configure(&mut self, spec: WorkerSpec) -> Result<bool, Trouble> {
        let begin_ns = now_ns();
        // The old entities leave before new ones come.
        self.work = None;
        let mut work = work::prepare(self.adapter, &spec, &self.control, &self.output)?;
        let until_ns = begin_ns.saturating_add(ms(spec.match_timeout_ms));
        while let Err(missing) = work.matched() {
            if self.control.is_stopped() {
                // The command that stopped it is still to be received, and is answered then.
                return Ok(true);
            }
            if now_ns() > until_ns {
                let message = format!("{missing} after {} ms", spec.match_timeout_ms);
                return Err(Trouble { kind: ErrorKind::Unmatched, message });
            }
            let now_ns = now_ns();
            let pause_ns = MATCHING_NS.max(now_ns.saturating_sub(begin_ns) / MATCHING_PARTS);
            self.control.sleep_until(now_ns.saturating_add(pause_ns));
        }
        self.work = Some((work, spec));
        self.output.tell(&Event::Ready { took_ns: now_ns().saturating_sub(begin_ns) });
        Ok(true)
    }

    fn start(&mut self, at_ns: u64) -> Result<(), Trouble> {
        let Some((work, _)) = &mut self.work else {
            let message = "start without a successful configure".to_owned();
            return Err(Trouble { kind: ErrorKind::Protocol, message });
        };
        let mut report = work.run(self.adapter, at_ns.max(now_ns()))?;
        report.recorder_cost_ns = recorder::cost_ns();
        self.output.tell(&Event::Report(Box::new(report)));
        Ok(())
    }
}

fn empty_report() -> Report {
    Report { recorder_cost_ns: recorder::cost_ns(), ..Report::default() }
}
