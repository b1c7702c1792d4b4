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
    fn what_is_too_long_is_not_told() {
        assert_eq!(bounded("x".repeat(TEXT_BYTES_MAX)).len(), TEXT_BYTES_MAX);
        assert_eq!(bounded("x".repeat(TEXT_BYTES_MAX + 1)), "");
    }
}
