//! A process of a cell: starting it in its network, telling it, hearing it, and what is done to it.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::nemesis::network::{INTERFACE, Network};
use crate::nemesis::record::Record;
use crate::nemesis::told::Told;

/// Who is squeezed runs so long, then stands still so long: a tenth of a processor.
const RUNS: Duration = Duration::from_millis(10);
const STANDS: Duration = Duration::from_millis(90);
/// How long one that leaves in order may take.
const LEAVES: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(5);

/// How a process is started.
pub(crate) struct Start<'a> {
    pub(crate) slot: usize,
    pub(crate) process: u64,
    /// Arguments of its program.
    pub(crate) options: Vec<String>,
    pub(crate) lease: Duration,
    /// What outlives it.
    pub(crate) disk: Option<&'a Path>,
    /// What is not synced to it is lost with the process; what, follows from this.
    pub(crate) power_loss: Option<u64>,
    /// Its wall clock is that of the host and what this file says.
    pub(crate) clock: Option<PathBuf>,
    /// Where its lines are kept, too.
    pub(crate) keep: Option<&'a Path>,
}

/// A process; it is killed with its owner.
pub(crate) struct Member {
    child: Child,
    input: Option<ChildStdin>,
    hearing: Option<JoinHandle<()>>,
    record: Arc<Mutex<Record>>,
    squeezing: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
    pub(crate) process: u64,
}

impl Member {
    /// Starts one.
    ///
    /// # Errors
    /// It does not start.
    pub(crate) fn start(network: &Network, start: &Start<'_>) -> Result<Self, String> {
        // The file of this program may be hidden here.
        let mut command = Command::new("/proc/self/exe");
        command.args(["nemesis", "member"]).args(&start.options);
        command.env("PLAINSONG_INTERFACES", INTERFACE).env("PLAINSONG_IPV6", "off");
        command.env("PLAINSONG_LEASE_DURATION_MS", start.lease.as_millis().to_string());
        command.env("PLAINSONG_ANNOUNCE_PERIOD_MS", (start.lease / 8).as_millis().to_string());
        if let Some(disk) = start.disk {
            command.env("PLAINSONG_STATE_DIRECTORY", disk);
        }
        if let Some(seed) = start.power_loss {
            command.env("PLAINSONG_POWER_LOSS", seed.to_string());
        }
        if let Some(clock) = &start.clock {
            command.env("LD_PRELOAD", clock_library()).env("FAKETIME_TIMESTAMP_FILE", clock);
            command.envs(["FAKETIME_NO_CACHE", "FAKETIME_DONT_FAKE_MONOTONIC"].map(|name| (name, "1")));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let spawned = network.within(start.slot, || command.spawn());
        let mut child = spawned.map_err(|error| format!("starting a process: {error}"))?;
        let output = child.stdout.take().ok_or("no standard output")?;
        let input = child.stdin.take();
        let record = Arc::new(Mutex::new(Record::default()));
        let mut kept = match start.keep {
            None => None,
            Some(keep) => {
                let path = keep.join(format!("process-{}.log", start.process));
                Some(File::create(&path).map_err(|error| format!("{}: {error}", path.display()))?)
            }
        };
        let heard = Arc::clone(&record);
        // It ends with the pipe.
        let hearing = std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some(kept) = &mut kept {
                    let _ = writeln!(kept, "{line}");
                }
                if let Some(told) = Told::parse(&line) {
                    lock(&heard).hear(told);
                }
            }
        });
        let process = start.process;
        Ok(Self { child, input, hearing: Some(hearing), record, squeezing: None, process })
    }

    pub(crate) fn tell(&mut self, word: &str) {
        // One that has ended is noticed elsewhere.
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{word}");
        }
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        lock(&self.record)
    }

    /// Kills it, and does not wait until it has ended.
    pub(crate) fn strike_dead(&self) {
        signal(&self.child, Signal::KILL);
    }

    pub(crate) fn stop(&self) {
        signal(&self.child, Signal::STOP);
    }

    pub(crate) fn go_on(&self) {
        signal(&self.child, Signal::CONT);
    }

    /// Gives it a tenth of a processor until [`Self::release`].
    pub(crate) fn squeeze(&mut self) {
        let Some(pid) = pid(&self.child) else { return };
        let ends = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                let _ = kill_process(pid, Signal::STOP);
                std::thread::sleep(STANDS);
                let _ = kill_process(pid, Signal::CONT);
                std::thread::sleep(RUNS);
            }
        });
        self.squeezing = Some((ends, thread));
    }

    pub(crate) fn release(&mut self) {
        if let Some((ends, thread)) = self.squeezing.take() {
            ends.store(true, Ordering::Relaxed);
            let _ = thread.join();
        }
    }

    /// How it ended, if it did so by itself.
    pub(crate) fn ended(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten().map(|status| status.to_string())
    }

    /// Kills it; all that it told.
    pub(crate) fn kill(mut self) -> Record {
        self.end();
        std::mem::take(&mut *lock(&self.record))
    }

    /// Lets it end in order, and kills it if it does not.
    pub(crate) fn leave(mut self) -> Record {
        self.release();
        self.go_on();
        drop(self.input.take());
        let end = Instant::now() + LEAVES;
        while self.ended().is_none() && Instant::now() < end {
            std::thread::sleep(LOOK);
        }
        self.kill()
    }

    fn end(&mut self) {
        self.release();
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(hearing) = self.hearing.take() {
            let _ = hearing.join();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = pid(child) {
        let _ = kill_process(pid, signal);
    }
}

/// What gives a process another wall clock, where it is installed.
pub(crate) fn clock_library() -> PathBuf {
    let architecture = std::env::consts::ARCH;
    PathBuf::from(format!("/usr/lib/{architecture}-linux-gnu/faketime/libfaketimeMT.so.1"))
}
