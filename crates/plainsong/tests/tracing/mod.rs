//! Counting the system calls of a child process between marks that its threads make.
#![allow(
    unsafe_code,
    dead_code,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "ptrace is unsafe; each test uses its own part"
)]

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// A harmless call with arguments that nobody else uses: it begins a lap and ends the one before.
const MARK: i64 = 0x5051_0000;
/// Kinds of laps.
const KINDS: i64 = 16;

/// The system calls of a lap, by number.
pub type Calls = BTreeMap<i64, u64>;

/// Ends the lap of this kind and begins the next, in this thread.
pub fn lap(kind: u8) {
    // SAFETY: the kernel refuses this descriptor; nothing else happens.
    unsafe { libc::syscall(libc::SYS_close, MARK + i64::from(kind)) };
}

/// The laps of each kind, and which thread is in the last of them.
#[derive(Default)]
pub struct Laps {
    laps: BTreeMap<u8, Vec<Calls>>,
    threads: BTreeMap<u8, libc::pid_t>,
}

impl Laps {
    pub fn of(&self, kind: u8) -> &[Calls] {
        self.laps.get(&kind).map_or(&[], Vec::as_slice)
    }

    fn call(&mut self, thread: libc::pid_t, number: i64, argument: i64) {
        if number == libc::SYS_close && (MARK..MARK + KINDS).contains(&argument) {
            let kind = (argument - MARK) as u8;
            self.laps.entry(kind).or_default().push(Calls::new());
            self.threads.insert(kind, thread);
            return;
        }
        for (kind, _) in self.threads.iter().filter(|(_, of)| **of == thread) {
            if let Some(lap) = self.laps.get_mut(kind).and_then(|laps| laps.last_mut()) {
                *lap.entry(number).or_insert(0) += 1;
            }
        }
    }
}

/// Runs one test of this binary in a child process, with a variable set, and counts the system calls of its
/// laps.
pub fn count_system_calls(test: &str, variable: &str, value: &str) -> Laps {
    use std::os::unix::process::CommandExt;
    // Who traces waits for all children of the process, so only one may.
    static TRACING: Mutex<()> = Mutex::new(());
    let _alone = TRACING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(variable, value);
    // SAFETY: between fork and exec only one system call is made.
    unsafe {
        command.pre_exec(|| {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            Ok(())
        });
    }
    // The tracer waits for it, as for each of its threads.
    #[expect(clippy::zombie_processes, reason = "trace() waits")]
    let child = command.spawn().unwrap();
    trace(child.id() as libc::pid_t)
}

fn trace(process: libc::pid_t) -> Laps {
    let mut laps = Laps::default();
    let mut entering = BTreeMap::<libc::pid_t, bool>::new();
    let mut exit_code = None;
    while let Some((thread, status)) = wait_any() {
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            if thread == process {
                exit_code = Some(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 });
            }
            continue;
        }
        let signal = libc::WSTOPSIG(status);
        let is_system_call = signal == libc::SIGTRAP | 0x80;
        if is_system_call {
            let enters = entering.entry(thread).or_insert(true);
            if *enters && let Some((number, argument)) = system_call(thread) {
                laps.call(thread, number, argument);
            }
            *enters = !*enters;
        } else if signal == libc::SIGTRAP {
            // The exec, or a new thread announced itself: both want the options.
            let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE;
            // SAFETY: `thread` is stopped and traced by us; the call takes no pointers.
            unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, thread, 0, options) };
        }
        let deliver =
            if is_system_call || matches!(signal, libc::SIGTRAP | libc::SIGSTOP) { 0 } else { signal };
        // SAFETY: `thread` is stopped and traced by us; the call takes no pointers.
        unsafe { libc::ptrace(libc::PTRACE_SYSCALL, thread, 0, deliver) };
    }
    assert_eq!(exit_code, Some(0), "the traced process failed: its output says why");
    laps
}

/// The next thread that stopped or ended; `None` when there are no more.
fn wait_any() -> Option<(libc::pid_t, libc::c_int)> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let thread = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
    (thread > 0).then_some((thread, status))
}

/// Number and first argument of the call that a stopped thread is about to make; `None` when its process
/// ended meanwhile.
fn system_call(thread: libc::pid_t) -> Option<(i64, i64)> {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: `thread` is stopped and traced by us, and `info` has `size` octets.
    let got = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size, &raw mut info) };
    if got <= 0 {
        let error = std::io::Error::last_os_error();
        assert_eq!(
            error.raw_os_error(),
            Some(libc::ESRCH),
            "the kernel does not describe system calls: {error}"
        );
        return None;
    }
    // SAFETY: at the entry of a call the union holds `entry`.
    let entry = unsafe { info.u.entry };
    Some((entry.nr as i64, entry.args[0] as i64))
}
