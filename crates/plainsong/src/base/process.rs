//! Who this process is, for the tools of people who look at a domain.

use std::sync::OnceLock;
use std::{env, fs};

use plainsong_proto::discovery::ProcessData;

/// Octets of a name or path at most; of longer ones nothing is told.
const TEXT_BYTES_MAX: usize = 255;

/// What is known of this process. What the system does not tell stays empty.
pub(crate) fn describe() -> ProcessData {
    static CONSTANT: OnceLock<ProcessData> = OnceLock::new();
    let constant = CONSTANT.get_or_init(|| ProcessData {
        host: bounded(host()),
        user: bounded(first_variable(&["USER", "LOGNAME", "USERNAME"])),
        executable: bounded(executable()),
        id: 0,
    });
    // After a fork it is another.
    ProcessData { id: std::process::id(), ..constant.clone() }
}

fn host() -> String {
    // Where the kernel tells it as a file, that is what `gethostname` gives.
    let told = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let told = told.trim();
    if told.is_empty() { first_variable(&["HOSTNAME", "COMPUTERNAME"]) } else { told.to_owned() }
}

/// Whether that user is not the one as which a user namespace shows all those that it does not know.
#[cfg(target_os = "linux")]
pub(crate) fn is_distinct(user: u32) -> bool {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let unknown = read("/proc/sys/kernel/overflowuid").trim().parse();
    unknown != Ok(user) || knows_all_users(&read("/proc/self/uid_map"))
}

/// Whether a user namespace with that map knows every user: each line is the first of some here, the first of
/// the same outside, and how many they are.
#[cfg(target_os = "linux")]
fn knows_all_users(uid_map: &str) -> bool {
    let counts = uid_map.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok());
    counts.sum::<u64>() >= u64::from(u32::MAX)
}

fn executable() -> String {
    let path = env::current_exe().ok().or_else(|| env::args_os().next().map(Into::into));
    path.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
}

fn first_variable(names: &[&str]) -> String {
    names.iter().find_map(|name| env::var(name).ok()).unwrap_or_default()
}

fn bounded(text: String) -> String {
    if text.len() > TEXT_BYTES_MAX { String::new() } else { text }
}

/// Time on processors in nanoseconds, and memory in use in octets; 0 where the system does not tell.
pub(crate) fn usage() -> (u64, u64) {
    #[cfg(target_os = "linux")]
    {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        (cpu_ns(&read("/proc/self/stat")).unwrap_or(0), memory_bytes(&read("/proc/self/status")).unwrap_or(0))
    }
    #[cfg(not(target_os = "linux"))]
    (0, 0)
}

/// `proc(5)`: fields 14 and 15, in ticks of which every Linux shows 100 a second.
#[cfg(any(target_os = "linux", test))]
fn cpu_ns(stat: &str) -> Option<u64> {
    // The name of the program, in parentheses, may hold anything.
    let fields = stat.rsplit_once(')')?.1;
    let mut fields = fields.split_whitespace().skip(11);
    let ticks = fields.next()?.parse::<u64>().ok()?.checked_add(fields.next()?.parse().ok()?)?;
    ticks.checked_mul(10_000_000)
}

#[cfg(any(target_os = "linux", test))]
fn memory_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_knows_its_id_and_executable() {
        let process = describe();
        assert_eq!(process.id, std::process::id());
        assert!(process.executable.contains("plainsong"), "{process:?}");
        #[cfg(target_os = "linux")]
        assert!(!process.host.is_empty());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn only_a_full_map_knows_every_user() {
        assert!(is_distinct(0));
        assert!(knows_all_users("         0          0 4294967295\n"));
        assert!(knows_all_users("0 100000 65536\n65536 200000 4294901759\n"));
        for map in ["", "0 0 1\n", "0 100000 65536\n", "nonsense", "0 0 many\n"] {
            assert!(!knows_all_users(map), "{map}");
        }
    }

    #[test]
    fn what_is_too_long_is_not_told() {
        assert_eq!(bounded("x".repeat(TEXT_BYTES_MAX)).len(), TEXT_BYTES_MAX);
        assert_eq!(bounded("x".repeat(TEXT_BYTES_MAX + 1)), "");
    }

    #[test]
    fn what_the_kernel_tells_is_read() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 1 0 9 9 9";
        assert_eq!(cpu_ns(stat), Some(3_000_000_000));
        assert_eq!(cpu_ns("42"), None);
        assert_eq!(memory_bytes("Name:\tx\nVmRSS:\t    1200 kB\n"), Some(1_228_800));
        assert_eq!(memory_bytes(""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_uses_memory() {
        assert!(usage().1 > 0);
    }
}
