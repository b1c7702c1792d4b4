//! A controller's end of the connection to an agent.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crate::perf::agent::child::own_program;
use crate::perf::agent::clock;
use crate::perf::agent::protocol::{LINE_OCTETS_MAX, Lines, Notice, Order, PROTOCOL, send};
use crate::perf::results::Host;

/// How long an agent may take for what costs it nothing.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// The fastest of so many exchanges says most about the difference between two clocks.
const CLOCK_ROUNDS: u32 = 16;

/// What came from the agents: the number of the link, and the notice or its end.
pub(crate) type FromAgents = (usize, Result<Notice, String>);

/// An agent that has answered.
pub(crate) struct Link {
    /// Of all links of this process.
    pub(crate) number: usize,
    pub(crate) host: Host,
    pub(crate) pid: u32,
    /// How other hosts reach this one, for an agent on another host.
    pub(crate) address: Option<String>,
    /// It reads the controller's clock.
    pub(crate) same_clock: bool,
    output: Option<Box<dyn Write + Send>>,
    child: Option<Child>,
}

/// The number and place of all notices.
pub(crate) struct Mailbox<'a> {
    pub(crate) sender: &'a Sender<FromAgents>,
    pub(crate) receiver: &'a Receiver<FromAgents>,
}

impl Link {
    /// Starts an agent, behind the words of `before` (`unshare -n ...`).
    ///
    /// # Errors
    /// What it said, if it did not start.
    pub(crate) fn start(
        number: usize,
        name: &str,
        before: &[String],
        adapters: &Path,
        mailbox: &Mailbox<'_>,
    ) -> Result<Self, String> {
        let own = own_program()?;
        let mut words = before.iter().map(std::ffi::OsString::from).collect::<Vec<_>>();
        words.push(own.into_os_string());
        let (program, arguments) = words.split_first().ok_or("no program")?;
        let mut command = Command::new(program);
        command.args(arguments).args(["perf", "agent", "--stdio", "--adapter-dir"]).arg(adapters);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("starting {}: {error}", program.to_string_lossy()))?;
        let (Some(output), Some(input)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("an agent without pipes".to_owned());
        };
        let input = BufReader::new(input);
        let mut link = Self::log_in(number, name, input, Box::new(output), "", mailbox)?;
        link.child = Some(child);
        Ok(link)
    }

    /// Connects to the agent of another host.
    ///
    /// # Errors
    /// It is not there, or refuses.
    pub(crate) fn connect(
        number: usize,
        name: &str,
        address: &str,
        token: &str,
        mailbox: &Mailbox<'_>,
    ) -> Result<Self, String> {
        let fail = |what: String| {
            format!(
                "agent {name} at {address}: {what}; start it with `plainsong perf agent --listen {address} --token-file FILE`"
            )
        };
        let mut addresses = address.to_socket_addrs().map_err(|error| fail(error.to_string()))?;
        let first = addresses.next().ok_or_else(|| fail("no such address".to_owned()))?;
        let stream =
            TcpStream::connect_timeout(&first, ANSWER_WITHIN).map_err(|error| fail(error.to_string()))?;
        stream.set_nodelay(true).map_err(|error| fail(error.to_string()))?;
        let input = BufReader::new(stream.try_clone().map_err(|error| fail(error.to_string()))?);
        let mut link = Self::log_in(number, name, input, Box::new(stream), token, mailbox).map_err(fail)?;
        link.address = Some(first.ip().to_string());
        Ok(link)
    }

    fn log_in(
        number: usize,
        name: &str,
        input: impl BufRead + Send + 'static,
        output: Box<dyn Write + Send>,
        token: &str,
        mailbox: &Mailbox<'_>,
    ) -> Result<Self, String> {
        let sender = mailbox.sender.clone();
        let listen = move || {
            let mut lines = Lines::new(input, LINE_OCTETS_MAX);
            loop {
                let notice = match lines.next() {
                    Ok(Some(notice)) => Ok(notice),
                    Ok(None) => Err("the agent hung up".to_owned()),
                    Err(error) => Err(format!("the agent cannot be understood: {error}")),
                };
                let over = notice.is_err();
                // Nobody listens when the controller ends.
                if sender.send((number, notice)).is_err() || over {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name(format!("agent-{number}"))
            .spawn(listen)
            .map_err(|error| format!("starting a thread: {error}"))?;
        let mut link = Self {
            number,
            host: Host::default(),
            pid: 0,
            address: None,
            same_clock: false,
            output: Some(output),
            child: None,
        };
        link.order(&Order::Login { protocol: PROTOCOL, token: token.to_owned(), name: name.to_owned() })?;
        let Notice::Welcome { pid, boot_id, host, .. } = link.answer(mailbox)? else {
            return Err("the agent's first word was no welcome".to_owned());
        };
        link.pid = pid;
        link.host = *host;
        link.same_clock = !boot_id.is_empty() && boot_id == own_boot_id();
        if !link.same_clock {
            link.compare_clocks(mailbox)?;
        }
        Ok(link)
    }

    /// Sends an order.
    ///
    /// # Errors
    /// The agent is gone.
    pub(crate) fn order(&mut self, order: &Order) -> Result<(), String> {
        let output = self.output.as_mut().ok_or("the agent is gone")?;
        send(output, order).map_err(|error| format!("the agent is gone: {error}"))
    }

    /// The next notice of this agent, when no other says anything that matters.
    fn answer(&self, mailbox: &Mailbox<'_>) -> Result<Notice, String> {
        let end = Instant::now() + ANSWER_WITHIN;
        loop {
            match mailbox.receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok((number, Ok(Notice::Refused { reason }))) if number == self.number => return Err(reason),
                Ok((number, notice)) if number == self.number => return notice,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return Err("the agent does not answer".to_owned()),
                Err(RecvTimeoutError::Disconnected) => return Err("the agent hung up".to_owned()),
            }
        }
    }

    /// Offset to add to a time of the controller, and how wrong it may be: from the fastest of some
    /// exchanges.
    fn compare_clocks(&mut self, mailbox: &Mailbox<'_>) -> Result<(), String> {
        let mut best = (i64::MAX, u64::MAX);
        for _ in 0..CLOCK_ROUNDS {
            self.order(&Order::Clock { sent_ns: clock::now_ns() })?;
            let Notice::Clock { sent_ns, received_ns, answered_ns } = self.answer(mailbox)? else {
                return Err("the agent did not tell its time".to_owned());
            };
            let arrived_ns = clock::now_ns();
            let there = received_ns.wrapping_sub(sent_ns).cast_signed();
            let back = answered_ns.wrapping_sub(arrived_ns).cast_signed();
            let away =
                arrived_ns.saturating_sub(sent_ns).saturating_sub(answered_ns.saturating_sub(received_ns));
            if away / 2 < best.1 {
                best = (there / 2 + back / 2, away / 2);
            }
        }
        (self.host.clock_offset_ns, self.host.clock_bound_ns) = best;
        Ok(())
    }

    /// A time of the controller's clock on that of the agent.
    pub(crate) fn there(&self, here_ns: u64) -> u64 {
        here_ns.saturating_add_signed(self.host.clock_offset_ns)
    }

    /// CPU used by others on the agent's host, percent of one core.
    ///
    /// # Errors
    /// The agent does not answer.
    pub(crate) fn load(&mut self, duration: Duration, mailbox: &Mailbox<'_>) -> Result<f64, String> {
        let for_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.order(&Order::Load { for_ms })?;
        match self.answer(mailbox)? {
            Notice::Load { percent } => Ok(percent),
            _ => Err("the agent did not tell its load".to_owned()),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // An agent ends all its workers and itself when its controller hangs up.
        self.output = None;
        if let Some(child) = &mut self.child {
            let _ = child.wait();
        }
    }
}

fn own_boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
