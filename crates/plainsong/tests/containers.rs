//! Two processes of one host that are apart: in containers with a shared network (mount, IPC, PID and user
//! namespaces of their own, both the same process id), of different users, or one of which can share no
//! memory. They keep talking, and say by which transport and why.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]
#![allow(unsafe_code, reason = "seccomp has no safe wrapper")]
#![cfg(target_os = "linux")]

mod common;

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use common::{Blob, PATIENCE, fresh_domain, reader, until, writer};
use plainsong::config::Use;
use plainsong::prelude::*;

/// In the environment of a process that a test has started: its domain, and `asks` or `answers`.
const PART: &str = "PLAINSONG_TEST_PART";
/// What its delivery says in the end.
const EXPECTED: &str = "PLAINSONG_TEST_EXPECTED";
/// What it cannot do.
const LACKS: &str = "PLAINSONG_TEST_LACKS";
const SAMPLES: u32 = 200;
/// Some longer than a datagram.
const BYTES: [usize; 4] = [16, 1_000, 20_000, 300_000];
/// A user that is not root.
const SOMEBODY: &str = "12345";

const BY_MEMORY: &str = "memory to 1 reader of this host";

/// Where a process runs.
#[derive(Clone, Copy)]
struct Place {
    /// In namespaces of its own, but for the network.
    is_container: bool,
    user: Option<&'static str>,
    shared_memory: &'static str,
    /// With whom it shares memory beside its own user.
    users: &'static str,
    lacks: Option<Lack>,
}

/// What a process can do without.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lack {
    /// Its sandbox refuses `memfd_create`.
    Memory,
    /// Files, and memory that has a descriptor, can only be short.
    Size,
    /// It has no more descriptors than UDP takes.
    Descriptors,
    /// It has no more descriptors than it takes before it knows of others.
    MoreDescriptors,
}

const PROCESS: Place =
    Place { is_container: false, user: None, shared_memory: "auto", users: "", lacks: None };
const CONTAINER: Place = Place { is_container: true, ..PROCESS };

/// A process; it ends with its owner.
struct Process(Child);

impl Process {
    /// This program, which finds itself in the test of that name.
    fn start(test: &str, domain: u16, role: &str, place: Place, expected: &str) -> Self {
        let mut line: Vec<&str> = Vec::new();
        if let Some(user) = place.user {
            line.extend(["setpriv", "--reuid", user, "--regid", user, "--clear-groups"]);
        }
        if place.lacks == Some(Lack::Size) {
            line.extend(["prlimit", "--fsize=100000"]);
        }
        if place.is_container {
            line.extend(["unshare", "--user", "--map-root-user", "--mount", "--ipc", "--pid", "--fork"]);
            line.extend(["--mount-proc", "--kill-child"]);
        }
        let program = std::env::current_exe().unwrap();
        line.extend([program.to_str().unwrap(), "--exact", test, "--nocapture"]);
        let mut command = Command::new(line[0]);
        command.args(&line[1..]).env(PART, format!("{domain} {role}")).env(EXPECTED, expected);
        command.env("PLAINSONG_SHARED_MEMORY", place.shared_memory);
        if !place.users.is_empty() {
            command.env("PLAINSONG_MEMORY_USERS", place.users);
        }
        match place.lacks {
            Some(Lack::Memory) => drop(command.env(LACKS, "memory")),
            Some(Lack::Descriptors) => drop(command.env(LACKS, "descriptors")),
            Some(Lack::MoreDescriptors) => drop(command.env(LACKS, "more descriptors")),
            Some(Lack::Size) | None => {}
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        Self(child.expect("unshare, setpriv and prlimit (util-linux)"))
    }

    /// What it said, when it has ended well.
    fn output(mut self) -> String {
        let mut ended = None;
        until("the process ends", || {
            ended = self.0.try_wait().unwrap();
            ended.is_some()
        });
        let mut text = String::new();
        std::io::Read::read_to_string(&mut self.0.stdout.take().unwrap(), &mut text).unwrap();
        assert!(ended.unwrap().success(), "{}: {text}; it needs user namespaces", ended.unwrap());
        text
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// From now on no thread that this one starts makes memory with a descriptor.
fn refuse_memory() {
    const NUMBER: u32 = 0;
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, NUMBER),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_memfd_create as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: takes numbers only.
    let is_set = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(is_set, 0);
    // SAFETY: the program and its steps are local variables, of which the kernel takes a copy.
    let is_set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!(is_set, 0, "{}", std::io::Error::last_os_error());
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// From now on there are as many descriptors as UDP takes, and one more.
fn spare_descriptors(domain: u16) {
    let udp = Config { shared_memory: Use::Off, interfaces: Some(vec!["lo".into()]), ..Config::default() };
    let by_udp = common::participant_with(domain, udp);
    let limit = open_descriptors();
    drop(by_udp);
    limit_descriptors(limit);
}

fn limit_descriptors(limit: usize) {
    let limit = format!("--nofile={limit}");
    let status = Command::new("prlimit").args(["--pid", &std::process::id().to_string(), &limit]).status();
    assert!(status.unwrap().success());
}

/// From now on there are as many descriptors as there are.
fn spare_all_descriptors() {
    limit_descriptors(open_descriptors());
    while let Ok(file) = std::fs::File::open("/dev/null") {
        std::mem::forget(file);
    }
}

fn blob(number: u32) -> Blob {
    Blob { number, octets: vec![number as u8; BYTES[number as usize % BYTES.len()]] }
}

/// In a process that a test has started: asks and hears the answers, or answers; in the end it says how its
/// samples went.
fn talk(part: &str) {
    let (domain, role) = part.split_once(' ').unwrap();
    let domain = domain.parse().unwrap();
    let lacks = std::env::var(LACKS);
    match lacks.as_deref() {
        Ok("memory") => refuse_memory(),
        Ok("descriptors") => spare_descriptors(domain),
        _ => {}
    }
    let config = Config { interfaces: Some(vec!["lo".into()]), ..Config::from_env().unwrap() };
    let disabled = QosSet {
        entity_factory: plainsong::qos::EntityFactory { autoenable_created_entities: false },
        ..QosSet::default()
    };
    let mut factory = DomainParticipantFactory::with_config(config);
    factory.set_qos(disabled);
    // It has its memory, and nobody knows of it.
    let participant = factory.create_participant(domain, "test", QosSet::default()).unwrap();
    if lacks.as_deref() == Ok("more descriptors") {
        spare_all_descriptors();
    }
    participant.enable().unwrap();
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
    let said = delivery(&writer, &std::env::var(EXPECTED).unwrap());
    // Neither ends before the other knows.
    if asks {
        writer.write(&blob(SAMPLES)).unwrap();
    }
    until("the last is said", || hear(&reader, &mut next, answer) > SAMPLES);
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    println!("process {} delivery {said}", std::process::id());
}

/// What the writer says of its delivery, in one line, when that is what is expected, or after a while.
fn delivery(writer: &DataWriter<Blob>, expected: &str) -> String {
    let end = Instant::now() + PATIENCE / 2;
    loop {
        let said = writer.delivery().unwrap().to_string().replace('\n', " | ");
        if said.contains(expected) || Instant::now() > end {
            return said;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
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

/// Two processes talk, and what each says of how its samples went has what is expected in it.
fn processes(test: &str, places: [Place; 2], expected: [&str; 2]) {
    if let Ok(part) = std::env::var(PART) {
        return talk(&part);
    }
    let domain = fresh_domain();
    let [asks, answers] = [("asks", 0), ("answers", 1)]
        .map(|(role, index)| Process::start(test, domain, role, places[index], expected[index]));
    for (process, expected) in [asks, answers].into_iter().zip(expected) {
        let text = process.output();
        let said = text.lines().find_map(|line| line.split_once(" delivery "));
        let (_, said) = said.unwrap_or_else(|| panic!("nothing of its delivery: {text}"));
        assert!(said.contains(expected), "{said}\ninstead of {expected}");
        assert_eq!(said.contains("memory to"), expected == BY_MEMORY, "{said}");
    }
}

#[test]
fn containers_with_a_shared_network_share_memory() {
    const NAME: &str = "containers_with_a_shared_network_share_memory";
    processes(NAME, [CONTAINER; 2], [BY_MEMORY; 2]);
}

#[test]
fn containers_of_which_one_shares_no_memory_keep_talking_by_udp() {
    const NAME: &str = "containers_of_which_one_shares_no_memory_keep_talking_by_udp";
    let expected = [
        "the other process shares no memory; set PLAINSONG_SHARED_MEMORY=auto there",
        "this process shares no memory; set PLAINSONG_SHARED_MEMORY=auto here",
    ];
    processes(NAME, [CONTAINER, Place { shared_memory: "off", ..CONTAINER }], expected);
}

#[test]
fn containers_of_two_users_keep_talking_by_udp() {
    const NAME: &str = "containers_of_two_users_keep_talking_by_udp";
    // Neither knows the user of the other by its number.
    let expected = "the other process is of user 65534; run both as one user";
    processes(NAME, [CONTAINER, Place { user: Some(SOMEBODY), ..CONTAINER }], [expected; 2]);
}

#[test]
fn two_users_keep_talking_by_udp_and_hear_what_to_do_about_it() {
    const NAME: &str = "two_users_keep_talking_by_udp_and_hear_what_to_do_about_it";
    let expected = [
        "the other process is of user 12345; run both as one user, or name the other in \
         PLAINSONG_MEMORY_USERS on both sides",
        "the other process is of user 0; run both as one user, or name the other in PLAINSONG_MEMORY_USERS \
         on both sides",
    ];
    processes(NAME, [PROCESS, Place { user: Some(SOMEBODY), ..PROCESS }], expected);
}

#[test]
fn two_users_that_name_each_other_share_memory() {
    const NAME: &str = "two_users_that_name_each_other_share_memory";
    let places =
        [Place { users: "7,12345", ..PROCESS }, Place { user: Some(SOMEBODY), users: "0", ..PROCESS }];
    processes(NAME, places, [BY_MEMORY; 2]);
}

#[test]
fn a_user_that_names_one_who_does_not_name_it_keeps_talking_by_udp() {
    const NAME: &str = "a_user_that_names_one_who_does_not_name_it_keeps_talking_by_udp";
    let places = [Place { users: SOMEBODY, ..PROCESS }, Place { user: Some(SOMEBODY), ..PROCESS }];
    let expected = [
        "the other process does not share memory with this user; name this user in PLAINSONG_MEMORY_USERS \
         there, too",
        "the other process is of user 0; run both as one user, or name the other in PLAINSONG_MEMORY_USERS",
    ];
    processes(NAME, places, expected);
}

const NO_MEMORY: [&str; 2] = [
    "there was no memory or descriptor for it; raise the memory limit or the limit of open files, or lower \
     PLAINSONG_MEMORY_RING_BYTES",
    "the other process had no memory or descriptor for it; raise the memory limit or the limit of open files \
     of the other process",
];

#[test]
fn a_process_whose_sandbox_refuses_memory_keeps_talking_by_udp() {
    const NAME: &str = "a_process_whose_sandbox_refuses_memory_keeps_talking_by_udp";
    processes(NAME, [Place { lacks: Some(Lack::Memory), ..PROCESS }, PROCESS], NO_MEMORY);
}

#[test]
fn a_process_whose_memory_is_limited_keeps_talking_by_udp() {
    const NAME: &str = "a_process_whose_memory_is_limited_keeps_talking_by_udp";
    processes(NAME, [Place { lacks: Some(Lack::Size), ..PROCESS }, PROCESS], NO_MEMORY);
}

#[test]
fn a_process_that_has_no_descriptors_left_keeps_talking_by_udp() {
    const NAME: &str = "a_process_that_has_no_descriptors_left_keeps_talking_by_udp";
    // It says from the beginning that it shares none.
    let expected = [NO_MEMORY[0], "the other process shares no memory"];
    processes(NAME, [Place { lacks: Some(Lack::Descriptors), ..PROCESS }, PROCESS], expected);
}

#[test]
fn a_process_whose_descriptors_are_used_up_later_says_so_to_who_connects() {
    const NAME: &str = "a_process_whose_descriptors_are_used_up_later_says_so_to_who_connects";
    processes(NAME, [Place { lacks: Some(Lack::MoreDescriptors), ..PROCESS }, PROCESS], NO_MEMORY);
}
