//! Two processes that are as far apart as containers of one host with a shared network: each has mount, IPC,
//! PID and user namespaces of its own, and both the same process id. They keep talking, and say by which way.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]
#![cfg(target_os = "linux")]

mod common;

use std::process::{Child, Command, Stdio};

use common::{Blob, PATIENCE, fresh_domain, reader, until, writer};
use plainsong::prelude::*;

/// In the environment of a process that a test has started: its domain, and `asks` or `answers`.
const PART: &str = "PLAINSONG_TEST_PART";
const SAMPLES: u32 = 200;
/// Some longer than a datagram.
const BYTES: [usize; 4] = [16, 1_000, 20_000, 300_000];
/// A user that is not root.
const SOMEBODY: &str = "12345";

/// A container; it ends with its owner.
struct Container(Child);

impl Container {
    /// This program in namespaces of its own, which finds itself in the test of that name.
    fn start(test: &str, domain: u16, role: &str, user: Option<&str>, road: &str) -> Self {
        let mut command = Command::new(if user.is_some() { "setpriv" } else { "unshare" });
        if let Some(user) = user {
            command.args(["--reuid", user, "--regid", user, "--clear-groups", "unshare"]);
        }
        command.args(["--user", "--map-root-user", "--mount", "--ipc", "--pid", "--fork", "--mount-proc"]);
        command.arg("--kill-child").arg(std::env::current_exe().unwrap()).args([
            "--exact",
            test,
            "--nocapture",
        ]);
        command.env(PART, format!("{domain} {role}")).env("PLAINSONG_SHARED_MEMORY", road);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        Self(child.expect("unshare and setpriv (util-linux)"))
    }

    /// What it said, when it has ended well.
    fn output(mut self) -> String {
        let mut ended = None;
        until("the container ends", || {
            ended = self.0.try_wait().unwrap();
            ended.is_some()
        });
        let mut text = String::new();
        std::io::Read::read_to_string(&mut self.0.stdout.take().unwrap(), &mut text).unwrap();
        assert!(ended.unwrap().success(), "{}: {text}; it needs user namespaces", ended.unwrap());
        text
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn blob(number: u32) -> Blob {
    Blob { number, octets: vec![number as u8; BYTES[number as usize % BYTES.len()]] }
}

/// In a container: asks and hears the answers, or answers; in the end it says how its samples went.
fn talk(part: &str) {
    let (domain, role) = part.split_once(' ').unwrap();
    let config = Config { interfaces: Some(vec!["lo".into()]), ..Config::from_env().unwrap() };
    let participant = DomainParticipantFactory::with_config(config)
        .create_participant(domain.parse().unwrap(), "test", QosSet::default())
        .unwrap();
    let asks = role == "asks";
    let [theirs, ours] = if asks { ["Answers", "Questions"] } else { ["Questions", "Answers"] };
    let reader = reader::<Blob>(&participant, theirs, QosSet::reader().reliable().keep_all());
    let writer = writer::<Blob>(&participant, ours, QosSet::writer().keep_all().max_blocking_time(PATIENCE));
    until("both match", || {
        !writer.matched_subscriptions().unwrap().is_empty()
            && !reader.matched_publications().unwrap().is_empty()
    });
    let mut next = 0;
    // Half of the samples go one by one, the others as fast as they are taken.
    for number in (0..SAMPLES).filter(|_| asks) {
        writer.write(&blob(number)).unwrap();
        if number < SAMPLES / 2 {
            until("it is answered", || hear(&reader, &mut next, |_| {}) > number);
        }
    }
    let answer = |blob: &Blob| {
        if !asks {
            writer.write(blob).unwrap()
        }
    };
    until("all is said", || hear(&reader, &mut next, answer) == SAMPLES);
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    println!("process {} delivery {:?}", std::process::id(), writer.delivery().unwrap());
}

/// Takes what is there, which is in order and whole; the number of the next sample.
fn hear(reader: &DataReader<Blob>, next: &mut u32, each: impl Fn(&Blob)) -> u32 {
    for sample in reader.take().unwrap().into_iter().filter_map(|sample| sample.data) {
        assert!(sample == blob(*next), "sample {} instead of {next}", sample.number);
        *next += 1;
        each(&sample);
    }
    *next
}

/// What two containers say of how samples went from the one to the other, with the users and settings of
/// `PLAINSONG_SHARED_MEMORY` of both.
fn containers(test: &str, users: [Option<&str>; 2], roads: [&str; 2]) -> Option<[String; 2]> {
    if let Ok(part) = std::env::var(PART) {
        talk(&part);
        return None;
    }
    let domain = fresh_domain();
    let [asks, answers] = ["asks", "answers"].map(|role| {
        let index = usize::from(role == "answers");
        Container::start(test, domain, role, users[index], roads[index])
    });
    Some([asks, answers].map(|container| {
        let text = container.output();
        let said =
            text.lines().find_map(|line| line.split_once(" delivery ").map(|(_, said)| said.to_owned()));
        said.unwrap_or_else(|| panic!("nothing of its delivery: {text}"))
    }))
}

/// The words of the ways by which samples may go, as [`DataWriter::delivery`] shows them.
const BY_UDP: [&str; 2] = ["Unicast", "Udp"];
const BY_MEMORY: &str = "Memory";

fn is_by_udp(said: &str) -> bool {
    BY_UDP.iter().any(|word| said.contains(word)) && !said.contains(BY_MEMORY)
}

#[test]
fn containers_with_a_shared_network_keep_talking_and_say_how() {
    const NAME: &str = "containers_with_a_shared_network_keep_talking_and_say_how";
    let Some(said) = containers(NAME, [None, None], ["auto", "auto"]) else { return };
    for said in said {
        assert!(is_by_udp(&said) || said.contains(BY_MEMORY), "{said}");
    }
}

#[test]
fn containers_of_which_one_shares_no_memory_keep_talking_by_udp() {
    const NAME: &str = "containers_of_which_one_shares_no_memory_keep_talking_by_udp";
    let Some(said) = containers(NAME, [None, None], ["auto", "off"]) else { return };
    for said in said {
        assert!(is_by_udp(&said), "{said}");
    }
}

#[test]
fn containers_of_two_users_keep_talking_by_udp() {
    const NAME: &str = "containers_of_two_users_keep_talking_by_udp";
    let Some(said) = containers(NAME, [None, Some(SOMEBODY)], ["auto", "auto"]) else { return };
    for said in said {
        assert!(is_by_udp(&said), "{said}");
    }
}
