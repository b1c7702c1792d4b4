//! What a process holds, and what a host holds for processes that are gone.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What a process holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holds {
    /// Resident memory, in octets; of what several processes hold, its share.
    pub(crate) pss_bytes: u64,
    pub(crate) rss_bytes: u64,
    pub(crate) descriptors: u64,
    pub(crate) threads: u64,
    /// Mappings of memory that has no name, but a descriptor.
    pub(crate) shared_mappings: u64,
}

impl Holds {
    pub(crate) fn of(pid: u32) -> Self {
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let entries =
            |name: &str| fs::read_dir(format!("/proc/{pid}/{name}")).map_or(0, |it| it.count() as u64);
        let rollup = read("smaps_rollup");
        let octets = |name: &str| {
            let line = rollup.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
                .map_or(0, |kilo| kilo * 1_024)
        };
        Self {
            pss_bytes: octets("Pss:"),
            rss_bytes: octets("Rss:"),
            descriptors: entries("fd"),
            threads: entries("task"),
            shared_mappings: read("maps").lines().filter(|line| line.contains("memfd:")).count() as u64,
        }
    }
}

/// What has names on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names(BTreeSet<String>);

impl Names {
    /// Everything in the folders where shared memory and files of a moment are, and the abstract addresses of
    /// sockets in this network namespace.
    pub(crate) fn look() -> Self {
        let mut names = BTreeSet::new();
        for folder in ["/dev/shm", "/tmp"] {
            files(Path::new(folder), &mut names);
        }
        names.extend(abstract_sockets(&fs::read_to_string("/proc/net/unix").unwrap_or_default()));
        Self(names)
    }

    /// Those that were not there before.
    pub(crate) fn new_since(&self, before: &Self) -> Vec<String> {
        self.0.difference(&before.0).cloned().collect()
    }
}

fn files(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        names.insert(entry.path().display().to_string());
        if entry.file_type().is_ok_and(|it| it.is_dir()) {
            files(&entry.path(), names);
        }
    }
}

/// The names that begin with `@` in a list of Unix sockets.
fn abstract_sockets(list: &str) -> impl Iterator<Item = String> {
    list.lines()
        .filter_map(|line| line.split_whitespace().nth(7))
        .filter(|it| it.starts_with('@'))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    use super::*;

    #[test]
    fn what_a_process_holds_is_read() {
        let before = Holds::of(std::process::id());
        assert!(before.pss_bytes > 100_000 && before.pss_bytes <= before.rss_bytes, "{before:?}");
        assert!(before.threads >= 1);
        let _files: Vec<_> = (0..50).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        // Other tests open and close some meanwhile.
        assert!(Holds::of(std::process::id()).descriptors >= before.descriptors + 30);
        assert_eq!(Holds::of(0), Holds::default(), "there is no such process");
    }

    #[test]
    fn new_names_are_noticed() {
        let before = Names::look();
        let name = format!("chaos-test-{}", std::process::id());
        let path = std::env::temp_dir().join(&name);
        fs::write(&path, "").unwrap();
        let _socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let new = Names::look().new_since(&before);
        fs::remove_file(&path).unwrap();
        assert!(new.contains(&format!("@{name}")), "{new:?}");
        assert!(
            path.parent() != Some(Path::new("/tmp")) || new.contains(&path.display().to_string()),
            "{new:?}"
        );
    }
}
