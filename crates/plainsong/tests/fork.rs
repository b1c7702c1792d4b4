//! `fork()` in the middle of everything: the child can use nothing of its parent's, does nothing to it, and
//! has what it makes itself.
#![cfg(target_os = "linux")]
#![allow(unsafe_code, clippy::unwrap_used, reason = "tests, of fork")]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::*;
use plainsong::Error;
use plainsong::prelude::*;
use plainsong::time;

/// In the environment of a process that forks: the domain for it.
const FORKING: &str = "PLAINSONG_TEST_FORKING";

/// A process that runs the test of that name, in which it finds itself forking.
fn process(test: &str, domain: u16) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(FORKING, domain.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn forking_domain() -> Option<u16> {
    std::env::var(FORKING).ok().map(|domain| domain.parse().unwrap())
}

/// Runs `test` in a process of its own, which ends well.
fn in_a_process(test: &str, run: impl FnOnce(u16)) {
    match forking_domain() {
        Some(domain) => run(domain),
        None => assert!(process(test, fresh_domain()).wait().unwrap().success()),
    }
}

/// Forks; the child does `run` and ends as `end` does.
fn fork(run: impl FnOnce(), end: fn() -> !) -> libc::pid_t {
    // SAFETY: the child uses what the C library and std allow after fork, and the calls under test.
    match unsafe { libc::fork() } {
        0 => match catch_unwind(AssertUnwindSafe(run)) {
            Ok(()) => end(),
            // SAFETY: ends the process, without anything that the test harness has to do.
            Err(_) => unsafe { libc::_exit(101) },
        },
        child => {
            assert!(child > 0);
            child
        }
    }
}

fn end_at_once() -> ! {
    // SAFETY: as above.
    unsafe { libc::_exit(0) }
}

fn exit() -> ! {
    std::process::exit(0)
}

/// The child ended by itself, in good time, and well.
fn expect_end(child: libc::pid_t) {
    let mut status = 0;
    until("the child ends", || {
        // SAFETY: `status` is a local variable.
        unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) == child }
    });
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:#x}");
}

fn assert_forked<T>(call: &str, result: Result<T, Error>) {
    match result {
        Err(Error::Forked(_)) => {}
        Err(other) => panic!("{call}: {other}"),
        Ok(_) => panic!("{call} is Ok"),
    }
}

/// What the child does with all that it inherits.
fn use_everything(pair: &Pair<Blob>, waiting: &WaitSet, blob: &Blob) {
    let Pair { writer, reader, participants } = pair;
    let [participant, _] = participants;
    let timeout = Duration::from_secs(60);
    let topic = writer.topic().downcast::<Blob>().unwrap();
    let (publisher, subscriber) = (writer.publisher(), reader.subscriber());
    assert_forked("write", writer.write(blob));
    assert_forked("write of a long sample", writer.write(&Blob { number: 0, octets: vec![0; 400_000] }));
    assert_forked("try_write", writer.try_write(blob));
    assert_forked("wait_for_acknowledgments", writer.wait_for_acknowledgments(timeout));
    assert_forked("flush", writer.flush());
    assert_forked("matched_subscriptions", writer.matched_subscriptions());
    assert_forked("publication_matched_status", writer.publication_matched_status());
    assert_forked("assert_liveliness", writer.assert_liveliness());
    assert_forked("set_qos of a writer", writer.set_qos(QosSet::writer()));
    assert_forked("take", reader.take());
    assert_forked("read", reader.read());
    assert_forked("wait_take", reader.wait_take(timeout));
    assert_forked("wait_for_historical_data", reader.wait_for_historical_data(timeout));
    assert_forked("set_qos of a reader", reader.set_qos(QosSet::reader()));
    assert_forked("WaitSet::wait", waiting.wait(timeout));
    assert_forked("create_writer", publisher.create_writer(&topic, QosSet::writer()));
    assert_forked("create_reader", subscriber.create_reader(&topic, QosSet::reader()));
    assert_forked("create_topic", participant.create_topic::<Blob>("New", QosSet::default()));
    let filtered = participant.create_content_filtered_topic("F", &topic, "number = 1", Vec::new());
    assert_forked("create_content_filtered_topic", filtered);
    assert_forked("create_publisher", participant.create_publisher(QosSet::default()));
    assert_forked("create_subscriber", participant.create_subscriber(QosSet::default()));
    assert_forked("builtin_subscriber", participant.builtin_subscriber());
    assert_forked("find_topic", participant.find_topic::<Blob>("New", timeout));
    assert_forked("enable", participant.enable());
    assert_forked("set_qos of a participant", participant.set_qos(QosSet::default()));
    assert_forked("set_qos of a topic", topic.set_qos(QosSet::default()));
    assert_forked("delete_writer", publisher.delete_writer(&writer.as_any()));
    assert_forked("delete_reader", subscriber.delete_reader(&reader.as_any()));
    assert_forked("delete_contained_entities", participant.delete_contained_entities());
    let factory = DomainParticipantFactory::with_config(loopback());
    assert_forked("delete_participant", factory.delete_participant(participant));
    assert!(factory.lookup_participant(participant.domain_id()).is_none());
    assert!(writer.guid() != reader.guid() && writer.topic_name() == "Pair");
}

#[test]
fn a_child_is_refused_all_that_is_its_parents_and_does_nothing_to_it() {
    in_a_process("a_child_is_refused_all_that_is_its_parents_and_does_nothing_to_it", |_| {
        let mut qos = QosSet::writer().keep_all();
        qos.reliability.max_blocking_time = time::Duration::from_secs(20);
        let pair = Pair::<Blob>::new(qos, QosSet::reader().reliable().keep_all());
        let waiting = WaitSet::new();
        waiting.attach(pair.reader.read_condition(&ReadOptions::new()));
        waiting.attach(pair.writer.status_condition(StatusMask::ALL));
        let (pair, waiting) = (Box::new(pair), Box::new(waiting));
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Locks are held when the process forks, and samples are on their way.
            let writing = scope.spawn(|| {
                let blob = Blob { number: 0, octets: vec![0; 2_000] };
                while !over.load(Ordering::Relaxed) {
                    pair.writer.write(&blob).unwrap();
                }
            });
            let reading = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let _ = pair.reader.wait_take(Duration::from_millis(50));
                }
            });
            for round in 0..16 {
                let child = fork(
                    || {
                        use_everything(&pair, &waiting, &Blob::default());
                        // SAFETY: in the child they are its own, and not used after that: their owner never
                        // comes to run there.
                        let copies = unsafe {
                            (std::ptr::read(&raw const *pair), std::ptr::read(&raw const *waiting))
                        };
                        drop(copies);
                    },
                    if round % 2 == 0 { exit } else { end_at_once },
                );
                expect_end(child);
            }
            over.store(true, Ordering::Relaxed);
            writing.join().unwrap();
            reading.join().unwrap();
        });
        let matched = pair.writer.publication_matched_status().unwrap();
        assert_eq!((matched.current_count, matched.total.total_count), (1, 1), "nobody left or came back");
        pair.writer.write(&Blob { number: 7, octets: Vec::new() }).unwrap();
        until("the parent's sample arrives", || {
            let samples = pair.reader.wait_take(PATIENCE).unwrap();
            samples.iter().any(|sample| sample.data.as_ref().unwrap().number == 7)
        });
        pair.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    });
}

#[test]
fn what_a_child_makes_after_fork_works_and_takes_leave_when_it_ends() {
    in_a_process("what_a_child_makes_after_fork_works_and_takes_leave_when_it_ends", |domain| {
        let here = participant(domain);
        let qos = QosSet::writer().durability(Durability::TransientLocal);
        let told = writer::<Blob>(&here, "Told", qos);
        told.write(&Blob { number: 5, octets: Vec::new() }).unwrap();
        let child = fork(
            || {
                let own = Box::leak(Box::new(participant(domain)));
                let qos = QosSet::reader().reliable().durability(Durability::TransientLocal);
                let reader = Box::leak(Box::new(reader::<Blob>(own, "Told", qos)));
                let samples = reader.wait_take(PATIENCE).unwrap();
                assert_eq!(samples[0].data.as_ref().unwrap().number, 5);
                let answer =
                    Box::leak(Box::new(writer::<Prefix>(own, "Answer", QosSet::writer().keep_all())));
                until("the parent matches", || !answer.matched_subscriptions().unwrap().is_empty());
                answer.write(&Prefix { prefix: own.guid().prefix.0 }).unwrap();
                answer.wait_for_acknowledgments(PATIENCE).unwrap();
            },
            exit,
        );
        let second = participant(domain);
        let answers = reader::<Prefix>(&here, "Answer", QosSet::reader().reliable().keep_all());
        let prefix = answers.wait_take(PATIENCE).unwrap()[0].data.as_ref().unwrap().prefix;
        assert!(![here.guid().prefix.0, second.guid().prefix.0].contains(&prefix), "all are different");
        expect_end(child);
        let ended = Instant::now();
        until("the child's reader is gone", || told.matched_subscriptions().unwrap().is_empty());
        // Its lease lasts for 20 s.
        assert!(ended.elapsed() < Duration::from_secs(5), "{:?}", ended.elapsed());
    });
}

/// The prefix of a participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(name = "Prefix", final)]
struct Prefix {
    prefix: [u8; 12],
}

#[test]
fn a_child_does_not_keep_the_sockets_of_a_parent_that_is_killed() {
    const NAME: &str = "a_child_does_not_keep_the_sockets_of_a_parent_that_is_killed";
    if let Some(domain) = forking_domain() {
        let participant = participant(domain);
        fork(|| std::thread::sleep(PATIENCE), end_at_once);
        let _reader = reader::<Blob>(&participant, "Kept", QosSet::reader().reliable().keep_all());
        loop {
            std::thread::park();
        }
    }
    let domain = fresh_domain();
    let participant = participant(domain);
    let mut qos = QosSet::writer().keep_all();
    qos.reliability.max_blocking_time = time::Duration::from_secs(60);
    qos.resource_limits.max_samples = 2;
    let writer = writer::<Blob>(&participant, "Kept", qos);
    let mut killed = process(NAME, domain);
    until("the writer matches", || !writer.matched_subscriptions().unwrap().is_empty());
    killed.kill().unwrap();
    killed.wait().unwrap();
    let ended = Instant::now();
    (0..10).for_each(|number| writer.write(&Blob { number, octets: Vec::new() }).unwrap());
    assert!(ended.elapsed() < Duration::from_secs(5), "{:?}", ended.elapsed());
}
