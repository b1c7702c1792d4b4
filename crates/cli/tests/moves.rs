//! Addresses that change under load: of an interface, of either side, and of what a NAT makes of them. Two
//! hosts are network namespaces, in which processes of `plainsong shapes` write and read, or the like of
//! other products that interop built; what is written arrives in order, once, and long before a lease ends.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "support/namespaces.rs"]
mod namespaces;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use namespaces::need_namespaces;

/// How long anything may take on a busy machine; what is tested takes some seconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// No lease ends in the course of a test.
const LEASE_MS: &str = "3600000";
/// Samples that have to arrive before something changes, and after it: more than a writer leaves
/// unacknowledged.
const SOME: usize = 300;

/// The shapes application of another product, if `cargo xtask setup` could build it.
fn other(product: &str, test: &str) -> Option<PathBuf> {
    let profile = Path::new(env!("CARGO_BIN_EXE_plainsong")).parent().unwrap();
    let program = profile.parent().unwrap().join("interop").join(product);
    if program.exists() {
        return Some(program);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "{} is missing: cargo xtask setup builds it",
        program.display()
    );
    eprintln!("{test}: skipped, cargo xtask setup has not built {product}");
    None
}

/// A network namespace, for as long as its process waits for the end of its input.
struct Host {
    holder: Child,
}

impl Host {
    fn new() -> Self {
        let mut holder = Command::new("unshare")
            .args(["-n", "sh", "-ec", "ip link set lo up; echo up; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "up\n", "a network namespace");
        Self { holder }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.holder.id().to_string(), "-n", program]);
        command
    }

    /// Runs a script there; what it prints.
    fn run(&self, script: &str) -> String {
        let output = self.command("sh").args(["-ec", script]).output().unwrap();
        assert!(output.status.success(), "`{script}`: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A link to another host, of an interface of this name on both.
    fn link(&self, interface: &str, other: &Self) {
        let pid = other.holder.id();
        self.run(&format!("ip link add {interface} type veth peer name {interface} netns {pid}"));
        for host in [self, other] {
            host.run(&format!("ip link set {interface} up"));
        }
    }

    /// Gives an interface this address instead of those that it has.
    fn set_address(&self, interface: &str, address: &str) {
        self.run(&format!(
            "ip address flush dev {interface}; ip address add {address}/24 dev {interface}\n\
             ip route replace 224.0.0.0/4 dev {interface}"
        ));
    }

    /// Starts `plainsong shapes`, reliable, with a history that keeps all.
    fn shapes(&self, arguments: &[&str], peers: &str) -> Shapes {
        let mut command = self.command(env!("CARGO_BIN_EXE_plainsong"));
        command.args(["shapes", "-r", "-k", "0"]).args(arguments);
        command.env("PLAINSONG_LEASE_DURATION_MS", LEASE_MS).env("PLAINSONG_IPV6", "off");
        // A writer whose acknowledgements are not believed soon stops.
        command.env("PLAINSONG_UNACKNOWLEDGED_BYTES_MAX", "65536");
        command.env("PLAINSONG_PEERS", peers);
        Shapes::start(command)
    }

    /// Starts that of another product. What only Cyclone DDS has to be told: whom to announce itself to
    /// besides (others are found where they listen), and how often, lest its lease end before.
    fn shapes_of(&self, program: &Path, arguments: &[&str], peer: &str) -> Shapes {
        let mut command = self.command(program.to_str().unwrap());
        command.args(["-r", "-k", "0"]).args(arguments);
        let peers = if peer.is_empty() { String::new() } else { format!("<Peer Address=\"{peer}\"/>") };
        let discovery = format!(
            "<Discovery><SPDPInterval>2s</SPDPInterval><LeaseDuration>60s</LeaseDuration><Peers>{peers}</Peers></Discovery>"
        );
        command.env("CYCLONEDDS_URI", discovery);
        Shapes::start(command)
    }

    /// A writer of a topic whose samples are numbered from 1, some in a millisecond.
    fn writes(&self, topic: &str, peers: &str) -> Shapes {
        self.shapes(&["-P", "-t", topic, "-z", "0", "--write-period", "1"], peers)
    }

    fn reads(&self, topic: &str, peers: &str) -> Shapes {
        self.shapes(&["-S", "-t", topic, "--read-period", "5"], peers)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// A running `plainsong shapes`, ended with the test.
struct Shapes {
    process: Child,
    lines: Receiver<String>,
    /// The number of the last sample that arrived.
    last: Option<usize>,
    matches: usize,
    /// Its match may end and begin again, and what is written meanwhile is for nobody.
    begins_anew: bool,
}

impl Shapes {
    fn start(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { process, lines, last: None, matches: 0, begins_anew: false }
    }

    fn hear(&mut self, line: &str) {
        if line.contains("_matched()") {
            self.matches += 1;
            let is_first = self.matches == 1 && line.contains("(change = 1)");
            assert!(is_first || self.begins_anew, "matched once and for all: {line}");
        }
        let size = line.rsplit_once('[').and_then(|(_, size)| size.strip_suffix(']'));
        if let Some(number) = size.map(|size| size.parse::<usize>().unwrap()) {
            let expected = self.last.map_or(number, |last| last + 1);
            assert!(number == expected || number > expected && self.begins_anew, "after {expected}: {line}");
            self.last = Some(number);
        }
    }

    /// Waits until `SOME` more samples have arrived; how long that took.
    fn hear_some(&mut self, what: &str) -> Duration {
        let (begin, mut arrived) = (Instant::now(), 0);
        while arrived < SOME {
            let left = PATIENCE.saturating_sub(begin.elapsed());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("{what}: {arrived} samples in {PATIENCE:?}"));
            let before = self.last;
            self.hear(&line);
            arrived += usize::from(self.last != before);
        }
        begin.elapsed()
    }

    /// All that was said by now.
    fn hear_rest(&mut self) {
        while let Ok(line) = self.lines.try_recv() {
            self.hear(&line);
        }
    }
}

impl Drop for Shapes {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_flow_goes_on_while_the_interfaces_of_both_sides_change_their_addresses() {
    need_namespaces("a_flow_goes_on_while_the_interfaces_of_both_sides_change_their_addresses");
    let (here, there) = (Host::new(), Host::new());
    here.link("wire", &there);
    here.set_address("wire", "10.90.0.1");
    there.set_address("wire", "10.90.0.2");
    let mut reader = there.reads("Square", "");
    let mut writer = here.writes("Square", "");
    reader.hear_some("before anything changes");
    for (host, of, address) in [
        (&there, "reader", "10.90.0.12"),
        (&here, "writer", "10.90.0.11"),
        (&there, "reader", "10.90.0.22"),
        (&here, "writer", "10.90.0.21"),
    ] {
        reader.hear_rest();
        host.set_address("wire", address);
        let what = format!("the {of} is at {address} now");
        let took = reader.hear_some(&what);
        eprintln!("{what}: {SOME} samples took {took:?}");
    }
    writer.hear_rest();
    assert_eq!((writer.matches, reader.matches), (1, 1));
}

/// What the router makes of the address of who is behind it.
const TRANSLATION: &str = "table ip nat { chain out { type filter hook postrouting priority 100;
    oifname \"outer\" ip saddr 10.91.1.2 counter ip saddr set ADDRESS; }; }";

fn translate_to(router: &Host, address: &str) {
    let rules = TRANSLATION.replace("ADDRESS", address).replace('\n', " ");
    router.run(&format!("echo 'table ip nat {{}}; delete table ip nat; {rules}' | nft -f -"));
}

/// How many datagrams it has translated with the present rule.
fn translated(router: &Host) -> u64 {
    let rules = router.run("nft list table ip nat");
    let mut words = rules.split_whitespace().skip_while(|word| *word != "packets");
    words.nth(1).unwrap().parse().unwrap()
}

/// Who is inside announces where it is reached, and speaks from elsewhere.
fn with_translation() -> [Host; 3] {
    let (inside, router, outside) = (Host::new(), Host::new(), Host::new());
    router.link("inner", &inside);
    router.link("outer", &outside);
    router.run("ip address add 10.91.1.1/24 dev inner; ip address add 10.91.2.1/24 dev outer");
    router.run("echo 1 > /proc/sys/net/ipv4/ip_forward");
    inside.set_address("inner", "10.91.1.2");
    inside.run("ip route add default via 10.91.1.1");
    outside.set_address("outer", "10.91.2.2");
    outside.run("ip route add 10.91.1.0/24 via 10.91.2.1");
    translate_to(&router, "10.91.2.77");
    [inside, router, outside]
}

/// Flows to the outside and to the inside go on while addresses change.
fn rebind(router: &Host, [outer_reader, inner_reader]: [&mut Shapes; 2]) {
    outer_reader.hear_some("to the outside, before anything changes");
    inner_reader.hear_some("to the inside, before anything changes");
    for address in ["10.91.2.78", "10.91.2.79"] {
        let before = translated(router);
        assert!(before > SOME as u64 / 10, "{before} datagrams were translated");
        outer_reader.hear_rest();
        inner_reader.hear_rest();
        translate_to(router, address);
        for (reader, to) in [(&mut *outer_reader, "outside"), (&mut *inner_reader, "inside")] {
            let took = reader.hear_some(&format!("to the {to}, from {address}"));
            eprintln!("from {address}: {SOME} samples to the {to} took {took:?}");
        }
    }
    assert_eq!((outer_reader.matches, inner_reader.matches), (1, 1));
}

#[test]
fn flows_go_on_when_a_nat_gives_a_participant_another_address_than_before() {
    need_namespaces("flows_go_on_when_a_nat_gives_a_participant_another_address_than_before");
    let [inside, router, outside] = with_translation();
    let mut outer_reader = outside.reads("Square", "");
    let mut inner_reader = inside.reads("Circle", "10.91.2.2");
    let _inner_writer = inside.writes("Square", "10.91.2.2");
    let _outer_writer = outside.writes("Circle", "");
    rebind(&router, [&mut outer_reader, &mut inner_reader]);
}

/// Samples of these are numbered, too, and fewer: they are to fit the history of a product that cannot wait.
fn writes_of(topic: &str) -> Vec<&str> {
    vec!["-P", "-t", topic, "-z", "0", "--write-period", "3"]
}

fn reads_of(topic: &str) -> Vec<&str> {
    vec!["-S", "-t", topic, "--read-period", "10"]
}

fn flows_of_another_product_go_on_when_a_nat_changes(product: &str) {
    let test = "flows_of_another_product_go_on_when_a_nat_changes";
    let Some(program) = other(product, test) else { return };
    need_namespaces(test);
    let [inside, router, outside] = with_translation();
    let mut outer_reader = outside.reads("Square", "10.91.1.2");
    let mut inner_reader = inside.shapes_of(&program, &reads_of("Circle"), "10.91.2.2");
    let _inner_writer = inside.shapes_of(&program, &writes_of("Square"), "10.91.2.2");
    let _outer_writer = outside.writes("Circle", "10.91.1.2");
    rebind(&router, [&mut outer_reader, &mut inner_reader]);
}

#[test]
fn flows_of_cyclone_go_on_when_a_nat_gives_it_another_address_than_before() {
    flows_of_another_product_go_on_when_a_nat_changes("cyclone_c");
}

#[test]
fn flows_of_fast_dds_go_on_when_a_nat_gives_it_another_address_than_before() {
    flows_of_another_product_go_on_when_a_nat_changes("fastdds_cpp");
}

/// Other products go on to send to the address that we had, until they have forgotten us.
fn another_product_begins_anew_where_we_are(product: &str) {
    let test = "another_product_begins_anew_where_we_are";
    let Some(program) = other(product, test) else { return };
    need_namespaces(test);
    let (here, there) = (Host::new(), Host::new());
    here.link("wire", &there);
    here.set_address("wire", "10.90.0.1");
    there.set_address("wire", "10.90.0.2");
    let mut our_reader = here.reads("Square", "");
    let mut their_reader = there.shapes_of(&program, &reads_of("Circle"), "");
    (our_reader.begins_anew, their_reader.begins_anew) = (true, true);
    let _their_writer = there.shapes_of(&program, &writes_of("Square"), "");
    let _our_writer = here.writes("Circle", "");
    our_reader.hear_some("to us, before anything changes");
    their_reader.hear_some("from us, before anything changes");
    for address in ["10.90.0.11", "10.90.0.21"] {
        our_reader.hear_rest();
        their_reader.hear_rest();
        here.set_address("wire", address);
        for (reader, to) in [(&mut our_reader, "to us"), (&mut their_reader, "from us")] {
            let took = reader.hear_some(&format!("{to} at {address}"));
            eprintln!("{product}, {to} at {address}: {SOME} samples took {took:?}");
        }
    }
}

#[test]
fn cyclone_begins_anew_when_our_address_changes() {
    another_product_begins_anew_where_we_are("cyclone_c");
}

#[test]
fn fast_dds_begins_anew_when_our_address_changes() {
    another_product_begins_anew_where_we_are("fastdds_cpp");
}
