//! What a controller and an agent tell each other: one JSON object a line, in both directions.

use std::io::{self, BufRead, Write};
use std::path::PathBuf;

use plainsong_perfkit::{Command, Event};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::perf::results::{Host, Program, Resources};

/// Version of this protocol.
pub(crate) const PROTOCOL: u32 = 2;

/// The longest line of an agent or a worker; a report with many histograms has some 100 KiB.
pub(crate) const LINE_OCTETS_MAX: u64 = 16 << 20;

/// From the controller.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub(crate) enum Order {
    /// The first line: the token of the agent's file, empty over a pipe.
    Login { protocol: u32, token: String, name: String },
    /// Echoed at once with the time, to compare clocks.
    Clock { sent_ns: u64 },
    /// Measure for so long what everyone else uses of the CPU.
    Load { for_ms: u64 },
    /// A new repetition: an empty scratch directory, no workers. Agents of the controller's host are told a
    /// directory to share; one on another host has its own, whatever it is told.
    Begin { scratch: Option<PathBuf> },
    /// Start a worker.
    Spawn { worker: u32, adapter: String, pin: Option<u32> },
    /// A line for a worker.
    Tell { worker: u32, line: Command },
    /// End a worker as a crash would: SIGKILL.
    Kill { worker: u32 },
    /// Take the resources of all workers between these times (monotonic, of the agent).
    Measure { from_ns: u64, until_ns: u64 },
    /// Tell what exactly a worker runs.
    Identify { worker: u32, adapter: String },
    /// End what is left: answered by [`Notice::Ended`] for each worker that had not ended, then
    /// [`Notice::Finished`].
    Finish,
}

/// From an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "notice", rename_all = "snake_case")]
pub(crate) enum Notice {
    /// Answers a login.
    Welcome { protocol: u32, pid: u32, boot_id: String, host: Box<Host>, root: bool },
    /// Answers [`Order::Clock`].
    Clock { sent_ns: u64, received_ns: u64, answered_ns: u64 },
    /// Answers [`Order::Load`]: percent of one core.
    Load { percent: f64 },
    /// A worker runs.
    Spawned { worker: u32, pid: u32 },
    /// A worker could not be started: `missing` if there is no such adapter here.
    NotSpawned { worker: u32, missing: bool, reason: String },
    /// A line of a worker.
    Line { worker: u32, event: Box<Event> },
    /// A worker is no more.
    Ended { worker: u32, end: Box<End> },
    /// Answers [`Order::Identify`]; nothing is known of a worker that is gone.
    Identified { worker: u32, program: Option<Box<Program>> },
    /// Answers [`Order::Finish`], with the CPU of the machine if it was measured.
    Finished { machine: Option<MachineUse> },
    /// The agent refuses; it hangs up after this.
    Refused { reason: String },
}

/// CPU time of an agent's machine while workers were measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MachineUse {
    pub(crate) wall_ns: u64,
    /// By anybody, over all cores, without interrupts.
    pub(crate) busy_ns: u64,
    /// Of it, by the agent and its workers.
    pub(crate) own_ns: u64,
    /// How many these are.
    pub(crate) processes: u32,
}

/// How a worker ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct End {
    /// `exit 0`, `signal 9`, `killed by the laboratory: hung`.
    pub(crate) exit: String,
    pub(crate) manner: Manner,
    /// Why the laboratory killed it, if it did.
    pub(crate) reason: String,
    /// The last lines of its standard error.
    pub(crate) complaint: String,
    pub(crate) resources: Resources,
}

/// See [`End`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Manner {
    /// By itself, without an error.
    #[default]
    Exit,
    /// By itself, with an exit code other than 0.
    Failure,
    /// By a signal that the laboratory did not send.
    Signal,
    /// Killed because it did not answer in time.
    Hung,
    /// Killed because of what it said.
    Babble,
    /// Killed because it was asked for ([`Order::Kill`], [`Order::Finish`]).
    Killed,
}

/// Reads lines of at most `octets_max`.
pub(crate) struct Lines<R> {
    input: R,
    octets_max: u64,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R, octets_max: u64) -> Self {
        Self { input, octets_max, line: Vec::new() }
    }

    /// The same input, with lines of another length.
    pub(crate) fn with_limit(self, octets_max: u64) -> Self {
        Self { octets_max, ..self }
    }

    /// The next line without its end; `None` at the end of the input.
    ///
    /// # Errors
    /// Also for a line that is too long.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        use io::Read;
        self.line.clear();
        let read = (&mut self.input).take(self.octets_max).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if read as u64 >= self.octets_max {
            let message = format!("a line is longer than {} octets", self.octets_max);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(Some(&self.line))
    }

    /// The next line as a value.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some(line) = self.next_line()? else { return Ok(None) };
        serde_json::from_slice(line).map(Some).map_err(Into::into)
    }
}

/// Writes one line, and flushes it.
pub(crate) fn send(output: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_an_error_and_not_a_growing_buffer() {
        let endless = vec![b'x'; 1000];
        let mut lines = Lines::new(&endless[..], 100);
        assert_eq!(lines.next_line().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn the_last_line_needs_no_end() {
        let mut lines = Lines::new(&b"one\ntwo"[..], 100);
        assert_eq!(lines.next_line().unwrap(), Some(&b"one"[..]));
        assert_eq!(lines.next_line().unwrap(), Some(&b"two"[..]));
        assert_eq!(lines.next_line().unwrap(), None);
    }
}
