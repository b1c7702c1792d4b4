//! Networks of a campaign: the host's, or namespaces that vanish with their agents.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::link::{Link, Mailbox};
use super::parties::Node;
use crate::perf::campaign::Campaign;
use crate::perf::campaign::values::NetworkMode;

const LOOPBACK: &str = "ip link set lo up";
const ALONE: &str = "ip link set lo multicast on; ip route add 224.0.0.0/4 dev lo";
/// The interface of a namespace that has others to talk to.
const INTERFACE: &str = "lab0";

/// What a slow interface sends at once, and how long what it does not may wait.
const BURST: &str = "16kb";
const QUEUE: &str = "100ms";

/// Agents that can reach each other, and nothing else unless it is the host's network.
pub(crate) struct Network {
    pub(crate) links: Vec<Link>,
    pub(crate) nodes: Vec<Node>,
    loss_percent: f64,
    pub(crate) private: bool,
    /// Holds the namespace of a bridge.
    _hub: Option<Hub>,
}

/// What agents are made with.
pub(crate) struct Setting<'a> {
    pub(crate) campaign: &'a Campaign,
    pub(crate) adapters: &'a Path,
    pub(crate) token: &'a str,
    pub(crate) mailbox: Mailbox<'a>,
}

impl Network {
    /// Makes a network and its agents, whose links are numbered from `first`.
    ///
    /// # Errors
    /// What is missing: rights, programs, agents.
    pub(crate) fn make(mode: NetworkMode, first: usize, setting: &Setting<'_>) -> Result<Self, String> {
        match mode {
            NetworkMode::Host => Self::host(first, setting),
            NetworkMode::Private => Self::private(first, setting),
            NetworkMode::Pair => Self::joined(2, false, first, setting),
            NetworkMode::Road(mbit_per_s) => Self::road(mbit_per_s, first, setting),
            NetworkMode::Bridge(count) => Self::joined(count, true, first, setting),
        }
    }

    fn host(first: usize, setting: &Setting<'_>) -> Result<Self, String> {
        let mut agents: Vec<(String, String)> =
            setting.campaign.agents.iter().map(|(name, place)| (name.clone(), place.clone())).collect();
        if agents.is_empty() {
            agents.push(("local".to_owned(), "local".to_owned()));
        }
        let remote = agents.iter().any(|(_, place)| place != "local");
        let mut network = Self::empty(false);
        for (number, (name, place)) in agents.iter().enumerate() {
            let number = first + number;
            let link = if place == "local" {
                Link::start(number, name, &[], setting.adapters, &setting.mailbox)?
            } else {
                Link::connect(number, name, place, setting.token, &setting.mailbox)?
            };
            let chosen = setting.campaign.network.interface.clone();
            let interface = if remote { chosen } else { chosen.or_else(|| Some("lo".to_owned())) };
            let address = if remote { link.address.clone() } else { Some("127.0.0.1".to_owned()) };
            network.nodes.push(Node { address, interface });
            network.links.push(link);
        }
        Ok(network)
    }

    fn private(first: usize, setting: &Setting<'_>) -> Result<Self, String> {
        let mut network = Self::empty(true);
        let before = in_namespace(&format!("{LOOPBACK}; {ALONE}"), is_root());
        let link = Link::start(first, "private", &before, setting.adapters, &setting.mailbox)
            .map_err(|error| format!("a network namespace: {error}; {RIGHTS}"))?;
        network.links.push(link);
        let interface = Some("lo".to_owned());
        network.nodes.push(Node { address: Some("127.0.0.1".to_owned()), interface });
        Ok(network)
    }

    /// Namespaces joined by one pair of virtual interfaces, or by one pair each to a bridge.
    fn joined(count: u32, bridged: bool, first: usize, setting: &Setting<'_>) -> Result<Self, String> {
        if !is_root() {
            return Err(format!("namespaces that are joined need root; {RIGHTS}"));
        }
        let mut network = Self::empty(true);
        for number in 0..count {
            let name =
                if bridged { format!("bridge-{}", number + 1) } else { format!("pair-{}", number + 1) };
            let before = in_namespace(LOOPBACK, true);
            let link =
                Link::start(first + number as usize, &name, &before, setting.adapters, &setting.mailbox)
                    .map_err(|error| format!("a network namespace: {error}; {RIGHTS}"))?;
            network.links.push(link);
            let address = Some(format!("10.77.0.{}", number + 1));
            network.nodes.push(Node { address, interface: Some(INTERFACE.to_owned()) });
        }
        let pids: Vec<u32> = network.links.iter().map(|it| it.pid).collect();
        if bridged {
            let hub = Hub::start()?;
            for (number, pid) in pids.iter().enumerate() {
                let port = format!(
                    "ip link add port{number} type veth peer name {INTERFACE} netns {pid}; \
                     ip link set port{number} master hub up"
                );
                inside(hub.0.id(), &port, "")?;
            }
            network._hub = Some(hub);
        } else if let [one, other] = pids[..] {
            inside(
                one,
                &format!("ip link add {INTERFACE} type veth peer name {INTERFACE} netns {other}"),
                "",
            )?;
        }
        for (pid, node) in pids.iter().zip(&network.nodes) {
            let address = node.address.as_deref().unwrap_or_default();
            let up = format!(
                "ip address add {address}/24 dev {INTERFACE}; ip link set {INTERFACE} up; \
                 ip route add 224.0.0.0/4 dev {INTERFACE}"
            );
            inside(*pid, &up, "")?;
        }
        Ok(network)
    }

    /// Two namespaces joined by interfaces that send no faster than that.
    fn road(mbit_per_s: u32, first: usize, setting: &Setting<'_>) -> Result<Self, String> {
        let network = Self::joined(2, false, first, setting)?;
        let slow = format!(
            "tc qdisc add dev {INTERFACE} root tbf rate {mbit_per_s}mbit burst {BURST} latency {QUEUE}"
        );
        for link in &network.links {
            inside(link.pid, &slow, "").map_err(|error| format!("{error}; tc (iproute2) is needed"))?;
        }
        Ok(network)
    }

    fn empty(private: bool) -> Self {
        Self { links: Vec::new(), nodes: Vec::new(), loss_percent: 0.0, private, _hub: None }
    }

    /// Drops so many of the UDP datagrams that arrive in each namespace, from now on.
    ///
    /// # Errors
    /// Never on the network of the host; or nft is missing.
    pub(crate) fn set_loss(&mut self, percent: f64) -> Result<(), String> {
        if percent == self.loss_percent {
            return Ok(());
        }
        if !self.private {
            return Err(
                "loss_percent needs a network of its own: write network = \"private\" or \"pair\"".to_owned()
            );
        }
        // In hundred thousandths; a table is made so that it can be deleted whether it was there or not.
        let share = (percent * 1000.0).round() as u64;
        let mut rules = "table inet plainsong_lab\ndelete table inet plainsong_lab\n".to_owned();
        if share > 0 {
            rules.push_str(&format!(
                "table inet plainsong_lab {{\n chain arriving {{\n  type filter hook input priority 0;\n  \
                 meta l4proto udp numgen random mod 100000 < {share} drop;\n }}\n}}\n"
            ));
        }
        for link in &self.links {
            inside(link.pid, "nft -f -", &rules).map_err(|error| {
                format!("dropping datagrams: {error}; the program nft (nftables) is needed")
            })?;
        }
        self.loss_percent = percent;
        Ok(())
    }
}

const RIGHTS: &str = "run as root, or inside of `unshare -Urn`, or choose network = \"host\"";

/// A namespace with a bridge, for as long as this process holds the pipe.
struct Hub(Child);

impl Hub {
    fn start() -> Result<Self, String> {
        let script = "ip link add hub type bridge mcast_snooping 0; ip link set hub up; echo up; exec cat";
        let words = in_namespace(script, true);
        let (program, arguments) = words.split_first().ok_or("no program")?;
        let mut command = Command::new(program);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("starting {program}: {error}"))?;
        let mut line = String::new();
        let told = child.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
        match told {
            Some(Ok(_)) if line.trim() == "up" => Ok(Self(child)),
            _ => Err(format!("making a bridge failed; {RIGHTS}")),
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The words before a program that has to run in a new network namespace, after `script`.
fn in_namespace(script: &str, root: bool) -> Vec<String> {
    let options = if root { "-n" } else { "-Urn" };
    let script = format!("set -e; {script}; exec \"$@\"");
    ["unshare", options, "sh", "-c", &script, "sh"].map(str::to_owned).to_vec()
}

/// Runs a script in the network namespace of a process.
fn inside(pid: u32, script: &str, input: &str) -> Result<(), String> {
    Inside::start(pid, script)?.finish(input)
}

/// A script in the network namespace of a process, which waits for its input.
pub(super) struct Inside {
    script: String,
    child: Child,
}

impl Inside {
    pub(super) fn start(pid: u32, script: &str) -> Result<Self, String> {
        let child = start_inside(pid, script).map_err(|error| format!("nsenter (util-linux): {error}"))?;
        Ok(Self { script: script.to_owned(), child })
    }

    /// Gives it all of its input, and waits for its end.
    pub(super) fn finish(mut self, input: &str) -> Result<(), String> {
        if let Some(mut stdin) = self.child.stdin.take() {
            // Who fails early does not read; its error tells more.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output =
            self.child.wait_with_output().map_err(|error| format!("nsenter (util-linux): {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let told = String::from_utf8_lossy(&output.stderr);
        Err(format!("`{}` in a network namespace: {}", self.script, told.trim()))
    }
}

fn start_inside(pid: u32, script: &str) -> std::io::Result<Child> {
    let mut command = Command::new("nsenter");
    command.args(["-t", &pid.to_string()]);
    if !is_root() {
        command.args(["-U", "--preserve-credentials"]);
    }
    command.args(["-n", "sh", "-ec", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
