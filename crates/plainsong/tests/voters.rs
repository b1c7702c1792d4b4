//! Voters with names decide how the epochs of ATOMIC groups end: members that keep their votes on a disk, and
//! witnesses.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use common::{PATIENCE, Point, fresh_domain, loopback, participant_with, reader, until, writer};
use plainsong::Error;
use plainsong::atomic::{AtomicEvent, AtomicGroup, StoreError};
use plainsong::prelude::*;
use plainsong::qos::HistoryKind;
use plainsong::state::StateLimits;
use plainsong::witness::{Witness, WitnessEvent};

const VOTERS: [&str; 3] = ["a", "b", "c"];

fn atomic(qos: QosSet) -> QosSet {
    let mut qos = qos.reliable().consistency(ConsistencyKind::Atomic).max_blocking_time(PATIENCE);
    qos.history.kind = HistoryKind::KeepAll;
    qos.durability(Durability::TransientLocal)
}

/// A directory for the states of a test, which goes with this.
struct States(PathBuf);

impl States {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("plainsong-voters-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn of(&self, voter: &str) -> PathBuf {
        self.0.join(voter)
    }

    /// The file in which a voter keeps its votes.
    fn file_of(&self, voter: &str, domain: u16) -> PathBuf {
        let folder = self.of(voter).join(format!("domain-{domain}"));
        let is_store = |path: &PathBuf| path.extension().is_some_and(|it| it == "redb");
        std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).find(is_store).unwrap()
    }
}

impl Drop for States {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn config(voters: &[&str], voter: Option<&str>, state: &Path) -> Config {
    Config {
        voters: voters.iter().map(ToString::to_string).collect(),
        voter: voter.map(ToOwned::to_owned),
        state_directory: voter.map(|_| state.to_owned()),
        ..loopback()
    }
}

/// A member with a writer and a reader.
struct Member {
    participant: DomainParticipant,
    writer: DataWriter<Point>,
    reader: DataReader<Point>,
}

impl Member {
    fn new(domain: u16, config: Config) -> Self {
        let participant = participant_with(domain, config);
        let writer = writer(&participant, "Plan", atomic(QosSet::writer()));
        let reader = reader(&participant, "Plan", atomic(QosSet::reader()));
        Self { participant, writer, reader }
    }

    fn group(&self) -> AtomicGroup {
        self.participant.atomic_groups().remove(0)
    }

    fn until_members(&self, count: usize) {
        until(&format!("there are {count} members"), || self.group().members.len() == count);
    }

    fn write(&self, x: i32) {
        self.writer.write(&Point { x: x.into(), ..Point::default() }).unwrap();
        self.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    }

    fn take(&self) -> Vec<i32> {
        self.reader.take().unwrap().into_iter().filter_map(|it| it.data.map(|data| data.x as i32)).collect()
    }
}

#[test]
fn three_members_that_vote_by_name_are_one_group() {
    let (states, domain) = (States::new("three"), fresh_domain());
    let members = VOTERS.map(|name| Member::new(domain, config(&VOTERS, Some(name), &states.of(name))));
    members.iter().for_each(|member| member.until_members(3));
    (0..30).for_each(|x| members[x as usize % 3].write(x));
    for (member, name) in members.iter().zip(VOTERS) {
        member.reader.sync(PATIENCE).unwrap();
        assert_eq!(member.take(), (0..30).collect::<Vec<_>>());
        let group = member.group();
        assert_eq!((group.voters, group.voter.as_deref()), (VOTERS.map(String::from).to_vec(), Some(name)));
        assert_eq!((group.store_error, group.strangers), (None, Vec::new()));
    }
}

#[test]
fn who_has_other_voters_is_of_another_group_and_both_are_told_why() {
    let (states, domain) = (States::new("other"), fresh_domain());
    let one = Member::new(domain, config(&["a"], Some("a"), &states.of("a")));
    let other = Member::new(domain, config(&["b"], Some("b"), &states.of("b")));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&heard);
    other
        .participant
        .on_atomic_event(move |topic, event| events.lock().unwrap().push((topic.to_owned(), event)));
    let auto = Member::new(domain, config(&[], None, &states.of("none")));
    let mismatches = Arc::new(Mutex::new(Vec::new()));
    for member in [&one, &other, &auto] {
        let told = Arc::clone(&mismatches);
        member.participant.on_mismatch(move |event| told.lock().unwrap().push(event.to_string()));
    }
    for (member, others) in [(&one, ["", "b"]), (&other, ["", "a"]), (&auto, ["a", "b"])] {
        let mut told = Vec::new();
        until("it is told of the others", || {
            told = member.group().strangers.into_iter().map(|it| it.voters).collect();
            told.sort_unstable();
            told == others
        });
        member.until_members(1);
        member.write(1);
    }
    let shown = one.group().to_string();
    assert!(shown.contains("its voters are others: b; set PLAINSONG_VOTERS alike"), "{shown}");
    until("there is an event", || {
        heard.lock().unwrap().contains(&("Plan".to_owned(), AtomicEvent::Stranger))
    });
    let topic = auto.participant.create_topic::<Point>("Plan", QosSet::default()).unwrap();
    until("the topic is inconsistent", || topic.inconsistent_topic_status().total_count == 2);
    let late = Member::new(domain, config(&["d"], Some("d"), &states.of("d")));
    until("all are told of one that comes late", || {
        [&one, &other, &auto, &late].iter().all(|it| it.group().strangers.len() == 3)
    });
    // What groups do not match by design is no application's business.
    assert_eq!(*mismatches.lock().unwrap(), [""; 0]);
    for member in [&one, &other, &auto] {
        assert_eq!(member.participant.mismatches().unwrap(), []);
        let count = |internal_endpoints| {
            let limits = StateLimits { internal_endpoints, ..StateLimits::default() };
            member.participant.state_within(&limits).unwrap().mismatches.items.len()
        };
        assert!(count(false) == 0 && count(true) > 0);
    }
}

#[test]
fn a_voter_that_lost_its_votes_does_not_vote_and_says_what_to_do() {
    let (states, domain) = (States::new("lost"), fresh_domain());
    let state = states.of("a");
    let member = Member::new(domain, config(&["a"], Some("a"), &state));
    member.until_members(1);
    let second = participant_with(domain, config(&["a"], Some("a"), &state));
    let topic = second.create_topic::<Point>("Plan", QosSet::default()).unwrap();
    let publisher = second.create_publisher(QosSet::default()).unwrap();
    let join = || publisher.create_writer(&topic, atomic(QosSet::writer())).err().unwrap();
    let in_use = join();
    assert!(matches!(in_use, Error::Store(StoreError::InUse { .. })), "{in_use}");
    assert!(in_use.to_string().contains(&std::process::id().to_string()), "{in_use}");
    drop(member);
    let file = states.file_of("a", domain);
    let sound = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let missing = join();
    assert!(missing.to_string().contains("is missing, and this voter has voted before"), "{missing}");
    std::fs::write(&file, &sound[..sound.len() / 2]).unwrap();
    let damaged = join();
    assert!(matches!(damaged, Error::Store(StoreError::Damaged { .. })), "{damaged}");
    std::fs::write(&file, &sound).unwrap();
    let others = participant_with(domain, config(&["b"], Some("b"), &states.of("b")));
    drop(others);
    assert!(publisher.create_writer(&topic, atomic(QosSet::writer())).is_ok());
}

/// A participant that keeps the topic in this directory, if it may.
fn keep(domain: u16, voters: &[&str], voter: Option<&str>, state: &Path) -> Result<Keeper, StoreError> {
    let config = Config { state_directory: Some(state.to_owned()), ..config(voters, voter, state) };
    let participant = participant_with(domain, config);
    let topic = participant.create_topic::<Point>("Plan", QosSet::default()).unwrap();
    let publisher = participant.create_publisher(QosSet::default()).unwrap();
    let qos = atomic(QosSet::writer()).durability(Durability::Persistent);
    match publisher.create_writer(&topic, qos) {
        Ok(writer) => Ok(Keeper { writer, _participant: participant }),
        Err(Error::Store(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

struct Keeper {
    writer: DataWriter<Point>,
    _participant: DomainParticipant,
}

impl Keeper {
    fn write(self) {
        self.writer.write(&Point::default()).unwrap();
        self.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    }
}

#[test]
fn a_start_that_does_not_vote_makes_up_for_no_lost_votes() {
    let (states, domain) = (States::new("bypass"), fresh_domain());
    let state = states.of("a");
    let start = |voter| keep(domain, &["a"], voter, &state);
    start(Some("a")).unwrap().write();
    let file = states.file_of("a", domain);
    let sound = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let refused = || start(Some("a")).err().unwrap();
    assert!(matches!(refused(), StoreError::VotesLost { is_missing: true, .. }), "{}", refused());
    assert!(refused().to_string().contains("is missing"), "{}", refused());
    drop(start(None).unwrap());
    assert!(file.exists());
    for _ in 0..2 {
        assert!(matches!(refused(), StoreError::VotesLost { is_missing: false, .. }), "{}", refused());
        assert!(refused().to_string().contains("Start without PLAINSONG_VOTER"), "{}", refused());
    }
    std::fs::write(&file, sound).unwrap();
    // Whoever does not vote leaves the votes there.
    drop(start(None).unwrap());
    start(Some("a")).unwrap().write();
}

#[test]
fn a_group_that_is_kept_is_not_opened_with_other_voters() {
    let (states, domain) = (States::new("opened"), fresh_domain());
    let state = states.of("a");
    let start = |voters: &[&str], voter| keep(domain, voters, voter, &state);
    let refused = |voters: &[&str], voter, made: &str, cure: &str| {
        let error = start(voters, voter).err().unwrap();
        assert!(matches!(error, StoreError::OtherVoters { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(made) && text.contains(cure) && text.contains("Plan-"), "{text}");
    };
    start(&[], None).unwrap().write();
    for (voters, voter) in [(&["a"], None), (&["a"], Some("a"))] {
        refused(voters, voter, "made without PLAINSONG_VOTERS", "unset PLAINSONG_VOTERS");
    }
    start(&[], None).unwrap().write();
    let file = states.file_of("a", domain);
    std::fs::rename(&file, file.with_extension("aside")).unwrap();
    start(&["a"], Some("a")).unwrap().write();
    for (voters, voter) in [(&[][..], None), (&["b"], None), (&["b"], Some("b"))] {
        refused(voters, voter, "made with PLAINSONG_VOTERS=a,", "set PLAINSONG_VOTERS=a,");
    }
    start(&["a"], Some("a")).unwrap().write();
    // Other voters begin a group of their own, whatever was voted before.
    std::fs::rename(&file, file.with_extension("2.aside")).unwrap();
    start(&["b"], Some("b")).unwrap().write();
}

#[test]
fn settings_of_voters_that_contradict_each_other_make_no_participant() {
    let make = |voters: &[&str], voter| {
        let mut config = config(voters, voter, Path::new("/nowhere"));
        config.state_directory = None;
        let factory = DomainParticipantFactory::with_config(config);
        factory.create_participant(fresh_domain(), "", QosSet::default()).err().unwrap().to_string()
    };
    assert!(make(&["a", "b"], None).contains("1, 3 or 5"));
    assert!(make(&["a"], Some("b")).contains("PLAINSONG_VOTERS"));
    assert!(make(&["a"], Some("a")).contains("PLAINSONG_STATE_DIRECTORY"));
}

/// In the environment of a process of a test: what it is, its domain, and its state directory.
const ROLE: &str = "PLAINSONG_TEST_ROLE";
const DOMAIN: &str = "PLAINSONG_TEST_DOMAIN";
const STATE: &str = "PLAINSONG_TEST_STATE";

/// Another process, killed with this.
struct Process(Child);

impl Process {
    fn start(test: &str, role: &str, domain: u16, state: &Path) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(ROLE, role)
            .env(DOMAIN, domain.to_string())
            .env(STATE, state)
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What such a process does until it is killed.
fn act(role: &str) {
    let domain = std::env::var(DOMAIN).unwrap().parse().unwrap();
    let state = PathBuf::from(std::env::var(STATE).unwrap());
    if role == "member" {
        let _member = Member::new(domain, config(&VOTERS, Some("b"), &state));
        loop {
            std::thread::park();
        }
    }
    let participant = participant_with(domain, config(&VOTERS, Some("c"), &state));
    let witness = Witness::new(&participant, 4).unwrap();
    loop {
        witness.look().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn of_two_members_and_a_witness_any_may_be_killed_and_come_back() {
    const TEST: &str = "of_two_members_and_a_witness_any_may_be_killed_and_come_back";
    if let Ok(role) = std::env::var(ROLE) {
        return act(&role);
    }
    let (states, domain) = (States::new("killed"), fresh_domain());
    let start = |role: &str| Process::start(TEST, role, domain, &states.of(role));
    let home = Member::new(domain, config(&VOTERS, Some("a"), &states.of("a")));
    let member = start("member");
    let witness = start("witness");
    home.until_members(2);
    home.write(1);
    drop(member);
    home.until_members(1);
    home.write(2);
    // The witness has its votes when it is back.
    drop(witness);
    let witness = start("witness");
    let member = start("member");
    home.until_members(2);
    home.write(3);
    drop(member);
    home.until_members(1);
    home.write(4);
    drop(witness);
    home.write(5);
    assert_eq!(home.take(), [1, 2, 3, 4, 5]);
    assert_eq!(home.group().counts.evicted, 0);
}

#[test]
fn when_nobody_is_left_of_a_group_that_keeps_nothing_the_next_begin_it_anew() {
    let (states, domain) = (States::new("anew"), fresh_domain());
    let of_witness = || participant_with(domain, config(&["c"], Some("c"), &states.of("c")));
    let voted = |witness: &Witness, what: &str, member: &Member| {
        until(what, || {
            witness.look().unwrap();
            member.group().members.len() == 1
        });
    };
    let participant = of_witness();
    let witness = Witness::new(&participant, 4).unwrap();
    let member = || Member::new(domain, config(&["c"], None, &states.0));
    let first = member();
    voted(&witness, "the first is a member", &first);
    (0..3).for_each(|x| first.write(x));
    drop(first);
    // The witness keeps its votes, and so knows of members that are gone.
    drop((witness, participant));
    let participant = of_witness();
    let witness = Witness::new(&participant, 4).unwrap();
    let second = member();
    voted(&witness, "the second begins anew", &second);
    second.write(7);
    assert_eq!(second.take(), [7]);
    assert_eq!(second.group().position, 1);
}

#[test]
fn a_witness_votes_in_as_many_groups_as_it_may_and_ends_with_them() {
    let (states, domain) = (States::new("groups"), fresh_domain());
    let participant = participant_with(domain, config(&["c"], Some("c"), &states.of("c")));
    let witness = Witness::new(&participant, 2).unwrap();
    let member = participant_with(domain, config(&["c"], None, &states.0));
    let writers =
        ["Plan", "Route", "Map"].map(|topic| writer::<Point>(&member, topic, atomic(QosSet::writer())));
    let mut events = Vec::new();
    until("it votes in two groups and refuses the third", || {
        events.extend(witness.look().unwrap());
        events.len() == 3
    });
    let count = |is: fn(&WitnessEvent) -> bool| events.iter().filter(|it| is(it)).count();
    assert_eq!(count(|it| matches!(it, WitnessEvent::Votes { .. })), 2, "{events:?}");
    let refused =
        |it: &WitnessEvent| matches!(it, WitnessEvent::Refused { reason, .. } if reason.contains("2 groups"));
    assert_eq!(count(refused), 1, "{events:?}");
    let voted: Vec<String> = participant.atomic_groups().into_iter().map(|it| it.topic).collect();
    for (writer, topic) in
        writers.iter().zip(["Plan", "Route", "Map"]).filter(|it| voted.contains(&it.1.into()))
    {
        let point = Point::default();
        until(topic, || writer.write(&point).is_ok());
        writer.wait_for_acknowledgments(PATIENCE).unwrap();
    }
    drop((writers, member));
    let mut ended = 0;
    until("nobody is left", || {
        let events = witness.look().unwrap();
        ended += events.iter().filter(|it| matches!(it, WitnessEvent::Ended { .. })).count();
        ended == 2
    });
    assert_eq!(participant.atomic_groups(), []);
}
