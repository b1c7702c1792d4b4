//! A process of the run: starting it, telling it, signals to it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;

use rustix::process::{Pid, Signal, kill_process};

use crate::load::FLOWS;
use crate::measure::Holds;
use crate::mistake::Mistake;
use crate::told::Told;

/// What a process does, a bit for each flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Role {
    pub(crate) writes: u64,
    pub(crate) reads: u64,
}

impl Role {
    /// Whether it holds writers of this flow up.
    pub(crate) fn holds_up(self, flow: usize) -> bool {
        FLOWS[flow].reliable && self.reads >> flow & 1 == 1
    }

    pub(crate) fn name(self) -> &'static str {
        match (self.writes, self.reads) {
            (_, 0) => "writer",
            (0, _) => "reader",
            _ => "both",
        }
    }
}

/// A process; it is killed with its owner.
pub(crate) struct Member {
    child: Child,
    input: Option<ChildStdin>,
    pub(crate) process: u64,
    pub(crate) role: Role,
    pub(crate) is_stopped: bool,
}

/// What all processes of a run are told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common {
    pub(crate) stall_ms: u64,
    pub(crate) lease_ms: u64,
}

impl Member {
    /// Starts one, whose lines go to `lines`.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn start(
        process: u64,
        role: Role,
        seed: u64,
        mistake: Option<Mistake>,
        common: Common,
        lines: &Sender<(u64, Told)>,
    ) -> Result<Self, String> {
        // The file of this program may be hidden here.
        let mut command = Command::new("/proc/self/exe");
        command.arg("worker");
        let options = [
            ("--process", process),
            ("--writes", role.writes),
            ("--reads", role.reads),
            ("--seed", seed),
            ("--stall-ms", common.stall_ms),
        ];
        options.iter().for_each(|(name, value)| {
            command.arg(name).arg(value.to_string());
        });
        if let Some(name) = mistake.as_ref().and_then(clap::ValueEnum::to_possible_value) {
            command.args(["--mistake", name.get_name()]);
        }
        command.env("PLAINSONG_INTERFACES", "lo");
        command.env("PLAINSONG_LEASE_DURATION_MS", common.lease_ms.to_string());
        command.env("PLAINSONG_ANNOUNCE_PERIOD_MS", (common.lease_ms / 4).to_string());
        // What is free goes back at once, so that what is resident is in use.
        command.env("MALLOC_ARENA_MAX", "1");
        command.env("MALLOC_MMAP_THRESHOLD_", "32768");
        command.env("MALLOC_TRIM_THRESHOLD_", "65536");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("starting a process: {error}"))?;
        let output = child.stdout.take().ok_or("no standard output")?;
        let input = child.stdin.take();
        let lines = lines.clone();
        // It ends with the pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The last line of a process that is killed may be half a line.
                if let Some(told) = Told::parse(&line)
                    && lines.send((process, told)).is_err()
                {
                    break;
                }
            }
        });
        Ok(Self { child, input, process, role, is_stopped: false })
    }

    pub(crate) fn tell(&mut self, word: &str) {
        // One that has ended is noticed elsewhere.
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{word}");
        }
    }

    pub(crate) fn stop(&mut self) {
        self.is_stopped = true;
        self.signal(Signal::STOP);
    }

    pub(crate) fn go_on(&mut self) {
        self.is_stopped = false;
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }

    /// How it ended, if it did so by itself.
    pub(crate) fn ended(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten().map(|status| status.to_string())
    }

    /// Kills it, if it has not ended by itself.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Lets it end in order.
    pub(crate) fn leave(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }

    pub(crate) fn holds(&self) -> Holds {
        Holds::of(self.child.id())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}
