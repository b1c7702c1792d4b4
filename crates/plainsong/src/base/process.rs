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
}
