//! Starting the processes of a live pair, and asking them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use plainsong_proto::guid::Guid;

use crate::lab::Host;
use crate::worker::{Seen, unhex};

/// How long a busy machine may take for what takes a moment.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a process may take to tell what it has seen: one that is stalled for longer has missed it.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// A process of a pair.
pub(crate) struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    name: &'static str,
    /// Its writer or reader.
    pub(crate) endpoint: Guid,
}

/// A writer and a reader that are matched.
pub(crate) struct Pair {
    pub(crate) writer: Worker,
    pub(crate) reader: Worker,
}

/// Resident memory, in octets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) now: u64,
    /// The most since it was reset.
    pub(crate) peak: u64,
}

impl Worker {
    pub(crate) fn start(host: &Host, role: &'static str, run: u32, latched: bool) -> Result<Self, String> {
        let program =
            std::env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
        let mut child = host
            .command(&program)
            .args(["worker", role, "--run", &run.to_string()])
            .args(latched.then_some("--latched"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("nsenter (util-linux): {error}"))?;
        let output = child.stdout.take().ok_or("no standard output")?;
        let input = child.stdin.take();
        let (sender, lines) = mpsc::channel();
        // It ends with the pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut worker = Self { child, input, lines, name: role, endpoint: Guid::UNKNOWN };
        let line = worker.line(PATIENCE)?;
        let octets = <[u8; 16]>::try_from(unhex(&line)).map_err(|_| format!("the {role} says {line:?}"))?;
        worker.endpoint = Guid::from_bytes(octets);
        Ok(worker)
    }

    fn line(&mut self, patience: Duration) -> Result<String, String> {
        self.lines.recv_timeout(patience).map_err(|_| match self.child.try_wait() {
            Ok(Some(status)) => format!("the {} ended: {status}", self.name),
            _ => format!("the {} does not answer for {} s", self.name, patience.as_secs()),
        })
    }

    pub(crate) fn tell(&mut self, word: &str) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("no standard input")?;
        writeln!(input, "{word}").map_err(|error| format!("the {} ended: {error}", self.name))
    }

    /// What it has seen so far; the longest pause is forgotten with it.
    pub(crate) fn ask(&mut self) -> Result<Seen, String> {
        self.tell("seen")?;
        let line = self.line(ANSWER_MAX)?;
        Seen::parse(&line).ok_or_else(|| format!("the {} says {line:?}", self.name))
    }

    /// Ends it in order: it says that it leaves. A reader that is killed is waited for until its lease ends
    /// (DCPS 1.4 §2.2.3.14): for 18 s of its 20 s a writer that keeps everything stops, attacked or not.
    pub(crate) fn leave(mut self) -> Result<(), String> {
        drop(self.input.take());
        let end = Instant::now() + PATIENCE;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("the {} ended: {status}", self.name)),
                Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(10)),
                _ => return Err(format!("the {} does not end within {} s", self.name, PATIENCE.as_secs())),
            }
        }
    }

    pub(crate) fn memory(&self) -> Memory {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let octets = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilo| kilo * 1_024)
        };
        Memory { now: octets("VmRSS:").unwrap_or(0), peak: octets("VmHWM:").unwrap_or(0) }
    }

    /// Forgets the highest memory so far.
    pub(crate) fn reset_peak(&self) {
        let _ = std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.input.take());
        // It may be stalled, and has nothing to save.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Pair {
    /// Starts both and waits until samples flow.
    pub(crate) fn start(writers: &Host, readers: &Host, run: u32, latched: bool) -> Result<Self, String> {
        let reader = Worker::start(readers, "reader", run, false)?;
        let writer = Worker::start(writers, "writer", run, latched)?;
        let mut pair = Self { writer, reader };
        let end = Instant::now() + PATIENCE;
        while pair.reader.ask()?.samples < 100 {
            if Instant::now() > end {
                return Err("no samples flow between the two, and nobody has attacked yet".to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(pair)
    }

    /// Whether more samples arrive, within so long.
    pub(crate) fn flows(&mut self, patience: Duration) -> Result<bool, String> {
        let (begin, before) = (Instant::now(), self.reader.ask()?.samples);
        while begin.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(20));
            if self.reader.ask()?.samples >= before + 20 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lets the writer rest until the reader has everything, for so long at most; what both have seen then.
    pub(crate) fn settle(&mut self, patience: Duration) -> Result<[Seen; 2], String> {
        self.writer.tell("rest")?;
        // A write that is under way ends.
        std::thread::sleep(Duration::from_millis(200));
        let end = Instant::now() + patience;
        loop {
            let (written, received) = (self.writer.ask()?, self.reader.ask()?);
            if received.samples >= written.samples || Instant::now() > end {
                return Ok([written, received]);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
