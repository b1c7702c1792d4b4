//! The UDP sockets of this host, and whose they are, as far as the kernel tells (Linux).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// A UDP socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UdpSocketEntry {
    pub(super) port: u16,
    /// Datagrams that the kernel dropped because its buffer was full, and for wrong checksums.
    pub(super) drops: u64,
    pub(super) inode: u64,
    /// The process that has it open; of several, one.
    pub(super) process: Option<Process>,
}

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) id: u32,
    pub(super) name: String,
}

/// Those of this network namespace; `None` where the system does not tell.
pub(super) fn list() -> Option<Vec<UdpSocketEntry>> {
    let lists: Vec<String> =
        ["/proc/net/udp", "/proc/net/udp6"].iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    if lists.is_empty() {
        return None;
    }
    let mut sockets: Vec<_> = lists.iter().flat_map(|list| parse(list)).collect();
    let owners = owners(&sockets.iter().map(|socket| socket.inode).collect());
    for socket in &mut sockets {
        socket.process = owners.get(&socket.inode).cloned();
    }
    Some(sockets)
}

/// Lines of `/proc/net/udp`: the second column is address and port, the tenth the inode, the last the drops.
fn parse(list: &str) -> impl Iterator<Item = UdpSocketEntry> + '_ {
    list.lines().skip(1).filter_map(|line| {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        let (_, port) = columns.get(1)?.rsplit_once(':')?;
        Some(UdpSocketEntry {
            port: u16::from_str_radix(port, 16).ok()?,
            inode: columns.get(9)?.parse().ok()?,
            drops: columns.get(12).and_then(|drops| drops.parse().ok()).unwrap_or(0),
            process: None,
        })
    })
}

/// Who has these sockets open, of the processes into which one may look.
fn owners(inodes: &BTreeSet<u64>) -> BTreeMap<u64, Process> {
    let mut owners = BTreeMap::new();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for (id, path) in processes.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse::<u32>().ok()?;
        Some((id, entry.path()))
    }) {
        let descriptors = fs::read_dir(path.join("fd")).into_iter().flatten().flatten();
        let open = descriptors.filter_map(|descriptor| {
            let target = fs::read_link(descriptor.path()).ok()?;
            target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok()
        });
        for inode in open.filter(|inode| inodes.contains(inode)) {
            let name = || fs::read_to_string(path.join("comm")).unwrap_or_default().trim().to_owned();
            owners.entry(inode).or_insert_with(|| Process { id, name: name() });
        }
    }
    owners
}

impl UdpSocketEntry {
    /// Whose it is, in words.
    pub(super) fn owner(&self) -> String {
        match &self.process {
            Some(Process { id, name }) => format!("{name} (process {id})"),
            None => "a process into which this one may not look".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let list = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n \
                    1087: 00000000:1CF2 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 47110 2 0000000000000000 17\n\
                    short line\n";
        let all: Vec<_> = parse(list).collect();
        assert_eq!(all, [UdpSocketEntry { port: 7_410, drops: 17, inode: 47_110, process: None }]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_socket_of_this_process_is_found_with_its_owner() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let own = list().unwrap().into_iter().find(|it| it.port == port).unwrap();
        assert_eq!(own.process.unwrap().id, std::process::id());
    }
}
