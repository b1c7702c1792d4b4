//! Where the threads that receive run, and how urgently.

use std::io;

use crate::base::config::Config;

/// What a thread asks of the scheduler of its host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placement {
    cpus: Vec<usize>,
    priority: u8,
    /// It has little to do at a time, and goes before those that have much when it is woken.
    has_short_slice: bool,
}

impl Placement {
    /// For discovery and urgent samples.
    pub(crate) fn of_meta_thread() -> Self {
        Self { has_short_slice: true, ..Self::default() }
    }

    pub(crate) fn of_receive_threads(config: &Config) -> Self {
        Self { cpus: config.receive_cpus.clone(), priority: config.receive_priority, has_short_slice: false }
    }

    /// Moves the calling thread there.
    ///
    /// # Errors
    /// The host does not allow it, or does not offer it: nothing runs elsewhere in silence.
    pub(crate) fn apply(&self) -> io::Result<()> {
        if !self.cpus.is_empty() {
            platform::stay_on(&self.cpus).map_err(|error| {
                let cpus = self.cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
                let hint = "take CPUs that this process may use, or unset PLAINSONG_RECEIVE_CPUS";
                io::Error::new(
                    error.kind(),
                    format!("receive threads cannot run on CPUs {cpus}: {error}; {hint}"),
                )
            })?;
        }
        if self.has_short_slice {
            platform::set_short_slice();
        }
        if self.priority > 0 {
            platform::set_real_time(self.priority).map_err(|error| {
                let hint = "allow it (CAP_SYS_NICE, or RLIMIT_RTPRIO), or unset PLAINSONG_RECEIVE_PRIORITY";
                let asked = format!("receive threads cannot have real-time priority {}", self.priority);
                io::Error::new(error.kind(), format!("{asked}: {error}; {hint}"))
            })?;
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod platform {
    #![allow(unsafe_code, reason = "sched_setaffinity and sched_setscheduler have no safe wrapper")]

    use std::io;
    use std::mem::{size_of, zeroed};

    /// The shortest time slice that the scheduler grants.
    const SLICE_NS: u64 = 100_000;

    /// A hint that needs no privilege: Linux 6.12 and later let a thread of short time slices preempt one of
    /// longer slices as soon as it is woken; others take no notice.
    pub(super) fn set_short_slice() {
        // SAFETY: all-zero is a value of this type.
        let mut attributes: libc::sched_attr = unsafe { zeroed() };
        let size = size_of::<libc::sched_attr>() as libc::c_uint;
        // SAFETY: the pointer and size describe a local variable; 0 is the calling thread.
        let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
        if got == 0 && attributes.sched_policy == libc::SCHED_OTHER as u32 {
            attributes.sched_runtime = SLICE_NS;
            // SAFETY: the pointer is to a local variable that begins with its size.
            unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
        }
    }

    pub(super) fn stay_on(cpus: &[usize]) -> io::Result<()> {
        // SAFETY: all-zero is the empty set.
        let mut set: libc::cpu_set_t = unsafe { zeroed() };
        for &cpu in cpus {
            if cpu >= libc::CPU_SETSIZE as usize {
                return Err(io::Error::from(io::ErrorKind::InvalidInput));
            }
            // SAFETY: the set has CPU_SETSIZE members, and `cpu` is one of them.
            unsafe { libc::CPU_SET(cpu, &mut set) };
        }
        // SAFETY: the pointer and size describe `set`; 0 is the calling thread.
        let result = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    pub(super) fn set_real_time(priority: u8) -> io::Result<()> {
        let parameters = libc::sched_param { sched_priority: libc::c_int::from(priority) };
        // SAFETY: the pointer is to a local variable; 0 is the calling thread.
        let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::io;

    pub(super) const fn set_short_slice() {}

    pub(super) fn stay_on(_cpus: &[usize]) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    pub(super) fn set_real_time(_priority: u8) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(unsafe_code, reason = "sched_getaffinity has no safe wrapper")]

    use super::*;

    fn allowed() -> Vec<usize> {
        // SAFETY: all-zero is the empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer and size describe `set`; 0 is the calling thread.
        let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
        assert_eq!(result, 0);
        // SAFETY: the set has CPU_SETSIZE members.
        (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
    }

    #[test]
    fn a_thread_stays_on_the_cpus_it_is_told() {
        let first = allowed()[0];
        let there = std::thread::spawn(move || {
            Placement { cpus: vec![first], ..Placement::default() }.apply().unwrap();
            allowed()
        });
        assert_eq!(there.join().unwrap(), [first]);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_with_a_way_out() {
        for cpu in [1000, 1_000_000] {
            let error =
                Placement { cpus: vec![cpu], ..Placement::default() }.apply().unwrap_err().to_string();
            assert!(error.contains(&format!("on CPUs {cpu}")), "{error}");
            assert!(error.contains("unset PLAINSONG_RECEIVE_CPUS"), "{error}");
        }
    }

    #[test]
    fn a_thread_of_short_slices_keeps_how_nice_it_is() {
        let there = std::thread::spawn(|| {
            // SAFETY: no pointers; 0 is the calling thread.
            let nice = || unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
            // SAFETY: no pointers; 0 is the calling thread.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 3) };
            let before = nice();
            Placement::of_meta_thread().apply().unwrap();
            (before, nice())
        });
        let (before, after) = there.join().unwrap();
        assert_eq!((before, after), (3, 3));
    }

    #[test]
    fn nothing_is_asked_by_default() {
        assert_eq!(Placement::of_receive_threads(&Config::default()), Placement::default());
        Placement::default().apply().unwrap();
    }
}
