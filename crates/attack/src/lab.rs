//! The namespaces: a bridge, on which the attacker sits, and hosts joined to it.

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Where the attacker is; all addresses of [`ATTACKER_NETWORK`] are its own, too.
pub(crate) const ATTACKER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 3);
/// The first three octets of addresses of the attacker.
pub(crate) const ATTACKER_NETWORK: [u8; 3] = [10, 78, 2];
/// The victim has all addresses of this network, which attacks forge.
pub(crate) const VICTIM_NETWORK: [u8; 3] = [10, 78, 1];
/// The interface of a host, which is named `port` and its name on the bridge.
const INTERFACE: &str = "lab0";
/// No name of an interface may be longer.
const HOSTS: [(&str, Ipv4Addr); 4] = [
    ("writer", Ipv4Addr::new(10, 78, 0, 1)),
    ("reader", Ipv4Addr::new(10, 78, 0, 2)),
    ("victim", Ipv4Addr::new(10, 78, 1, 1)),
    ("newcomer", Ipv4Addr::new(10, 78, 0, 4)),
];

/// An address of the victim.
pub(crate) const fn victim(last: u8) -> Ipv4Addr {
    let [a, b, c] = VICTIM_NETWORK;
    Ipv4Addr::new(a, b, c, last)
}

/// Runs this program again in a namespace of its own, so that nothing it does reaches the host's network.
pub(crate) fn enter_namespace() -> Result<bool, String> {
    let program = std::env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    let mut command = Command::new("unshare");
    command.arg("-n").arg(program).args(std::env::args_os().skip(1)).arg("inside");
    let status = command.status().map_err(|error| format!("unshare (util-linux): {error}"))?;
    match status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => Err(format!("{status}: network namespaces need root, unshare (util-linux) and ip (iproute2)")),
    }
}

/// The hosts of one run.
pub(crate) struct Lab {
    pub(crate) writer: Host,
    pub(crate) reader: Host,
    pub(crate) victim: Host,
    pub(crate) newcomer: Host,
}

/// A namespace, for as long as its process waits for the end of its input.
pub(crate) struct Host {
    name: &'static str,
    holder: Child,
}

impl Lab {
    /// Makes the bridge in this namespace, which is nobody else's, and joins four hosts to it.
    ///
    /// # Errors
    /// What is missing: rights, programs.
    pub(crate) fn make() -> Result<Self, String> {
        let [a, b, c] = ATTACKER_NETWORK;
        shell(&format!(
            "ip link set lo up; ip link add hub type bridge mcast_snooping 0; ip link set hub up\n\
             ip address add {ATTACKER}/16 dev hub; ip route add 224.0.0.0/4 dev hub\n\
             ip route add local {a}.{b}.{c}.0/24 dev hub"
        ))?;
        let mut hosts = Vec::new();
        for (name, address) in HOSTS {
            hosts.push(Host::make(name, address)?);
        }
        let [writer, reader, victim, newcomer] =
            <[Host; 4]>::try_from(hosts).map_err(|_| "four hosts are four".to_owned())?;
        let [a, b, c] = VICTIM_NETWORK;
        victim.shell(&format!("ip route add local {a}.{b}.{c}.0/24 dev {INTERFACE}"))?;
        // What is for everyone was not drawn by an attack.
        shell("ip link set dev portvictim type bridge_slave mcast_flood off")?;
        Ok(Self { writer, reader, victim, newcomer })
    }
}

impl Host {
    fn make(name: &'static str, address: Ipv4Addr) -> Result<Self, String> {
        let mut holder = Command::new("unshare")
            .args(["-n", "sh", "-ec", "ip link set lo up; echo up; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("unshare (util-linux): {error}"))?;
        let mut line = String::new();
        let told = holder.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
        if !matches!(told, Some(Ok(_))) || line.trim() != "up" {
            return Err("making a network namespace failed: it needs root".to_owned());
        }
        let host = Self { name, holder };
        let pid = host.holder.id();
        shell(&format!(
            "ip link add port{name} type veth peer name {INTERFACE} netns {pid}\n\
             ip link set port{name} master hub up"
        ))?;
        host.shell(&format!(
            "ip address add {address}/16 dev {INTERFACE}; ip link set {INTERFACE} up\n\
             ip route add 224.0.0.0/4 dev {INTERFACE}\n\
             echo 0 > /proc/sys/net/ipv4/conf/{INTERFACE}/rp_filter"
        ))?;
        Ok(host)
    }

    /// Octets of IP packets for this host alone that have arrived.
    pub(crate) fn octets_received(&self) -> u64 {
        octets_received(Path::new(&format!("/proc/{}/net/netstat", self.holder.id())))
    }

    /// Whether frames pass between this host and the bridge.
    pub(crate) fn join(&self, joined: bool) -> Result<(), String> {
        let state = if joined { 3 } else { 0 };
        shell(&format!("bridge link set dev port{} state {state}", self.name))
    }

    /// A command in the namespace of this host.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.holder.id().to_string(), "-n"]).arg(program);
        command
    }

    fn shell(&self, script: &str) -> Result<(), String> {
        let mut command = self.command(Path::new("sh"));
        command.args(["-ec", script]);
        finish(command, script)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// Octets of IP packets for the attacker alone that have arrived.
pub(crate) fn octets_of_attacker() -> u64 {
    octets_received(Path::new("/proc/self/net/netstat"))
}

/// `IpExt` of the kernel's statistics: all that arrived but what was for a group.
fn octets_received(path: &Path) -> u64 {
    unicast_octets(&std::fs::read_to_string(path).unwrap_or_default())
}

fn unicast_octets(statistics: &str) -> u64 {
    let mut rows = statistics.lines().filter_map(|line| line.strip_prefix("IpExt: "));
    let (Some(names), Some(values)) = (rows.next(), rows.next()) else { return 0 };
    let value = |wanted: &str| {
        let mut pairs = names.split(' ').zip(values.split(' '));
        pairs.find(|(name, _)| *name == wanted).and_then(|(_, value)| value.parse::<u64>().ok()).unwrap_or(0)
    };
    value("InOctets").saturating_sub(value("InMcastOctets"))
}

fn shell(script: &str) -> Result<(), String> {
    let mut command = Command::new("sh");
    command.args(["-ec", script]);
    finish(command, script)
}

fn finish(mut command: Command, script: &str) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{script}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("`{script}`: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_was_for_a_group_is_not_counted() {
        let statistics = "TcpExt: InOctets\nTcpExt: 7\nIpExt: InMcastPkts InOctets OutOctets InMcastOctets\n\
                          IpExt: 1 5000 6000 1200\n";
        assert_eq!(super::unicast_octets(statistics), 3_800);
        assert_eq!(super::unicast_octets(""), 0);
    }
}
