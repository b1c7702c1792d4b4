//! CONSISTENCY ATOMIC: all readers have the same samples in the same order, or none has them.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use common::{
    Blob, PATIENCE, Point, fresh_domain, loopback, participant, participant_with, reader, until, writer,
};
use plainsong::Error;
use plainsong::atomic::MemberPhase;
use plainsong::builtin_topics::{PUBLICATION_TOPIC, PublicationBuiltinTopicData};
use plainsong::prelude::*;
use plainsong::qos::HistoryKind;
use plainsong::state::StateLimits;

fn atomic(qos: QosSet) -> QosSet {
    let mut qos = qos.reliable().consistency(ConsistencyKind::Atomic).max_blocking_time(PATIENCE);
    qos.history.kind = HistoryKind::KeepAll;
    qos
}

/// What a reader got: who wrote it, what, and where it stands.
type Log = Vec<(InstanceHandle, i64, u64)>;

fn take(reader: &DataReader<Point>, log: &mut Log) {
    for sample in reader.take().unwrap() {
        let info = sample.info;
        log.extend(sample.data.map(|data| (info.publication_handle, data.x as i64, info.agreed.position)));
    }
}

fn take_all(readers: &[DataReader<Point>], count: usize) -> Vec<Log> {
    let mut logs = vec![Log::new(); readers.len()];
    until("all samples arrive", || {
        readers.iter().zip(&mut logs).for_each(|(reader, log)| take(reader, log));
        logs.iter().all(|log| log.len() >= count)
    });
    logs
}

fn point(x: i32) -> Point {
    Point { x: x.into(), ..Point::default() }
}

/// Participants that are members of the group of a topic, each with a writer and a reader.
struct Members<T: DdsType> {
    participants: Vec<DomainParticipant>,
    writers: Vec<DataWriter<T>>,
    readers: Vec<DataReader<T>>,
}

impl<T: DdsType> Members<T> {
    fn new(count: usize, qos: impl Fn(QosSet) -> QosSet) -> Self {
        let domain = fresh_domain();
        let participants: Vec<_> = (0..count).map(|_| participant(domain)).collect();
        let writers = participants.iter().map(|it| writer(it, "Plan", qos(QosSet::writer()))).collect();
        let readers = participants.iter().map(|it| reader(it, "Plan", qos(QosSet::reader()))).collect();
        let members = Self { participants, writers, readers };
        members.until(count);
        members
    }

    fn until(&self, count: usize) {
        for participant in &self.participants {
            until("all are members", || participant.atomic_groups()[0].members.len() == count);
        }
    }
}

#[test]
fn one_writer_and_readers_in_two_participants_have_one_order() {
    let Members { participants, writers, readers } = Members::<Point>::new(2, atomic);
    readers.iter().for_each(|reader| reader.sync(PATIENCE).unwrap());
    (0..1_000).for_each(|x| writers[0].write(&point(x)).unwrap());
    writers[0].wait_for_acknowledgments(PATIENCE).unwrap();
    let logs = take_all(&readers, 1_000);
    assert_eq!(logs[0], logs[1]);
    assert!(logs[0].iter().map(|it| it.1).eq(0..1_000));
    let position = logs[0].last().unwrap().2;
    let has_all = |it: &DomainParticipant| {
        let group = it.atomic_groups().pop().unwrap();
        group.position == position && group.members.iter().all(|member| member.position == position)
    };
    until("both have told that they have all", || participants.iter().all(has_all));
}

#[test]
fn writers_in_three_participants_have_one_order_everywhere() {
    let Members { writers, readers, .. } = Members::<Point>::new(3, atomic);
    std::thread::scope(|scope| {
        for writer in &writers {
            scope.spawn(|| (0..500).for_each(|x| writer.write(&point(x)).unwrap()));
        }
    });
    let logs = take_all(&readers, 1_500);
    assert_eq!(logs[0], logs[1]);
    assert_eq!(logs[0], logs[2]);
    assert!(logs[0].is_sorted_by(|one, other| one.2 < other.2));
    for writer in &writers {
        let own = logs[0].iter().filter(|it| it.0 == writer.instance_handle()).map(|it| it.1);
        assert!(own.eq(0..500), "{:?}", writer.guid());
    }
}

#[test]
fn instances_end_in_their_turn() {
    let Members { writers, readers, .. } = Members::<Point>::new(2, atomic);
    let writer = &writers[0];
    let change = |step: i32| match step {
        0 => writer.write(&point(1)),
        1 => writer.dispose(&point(1)),
        2 => writer.write(&point(2)),
        _ => writer.unregister_instance(&point(2)),
    };
    for (step, value) in [Some(1.0), None, Some(2.0), None].into_iter().enumerate() {
        change(step as i32).unwrap();
        for reader in &readers {
            let samples = reader.wait_take(PATIENCE).unwrap();
            assert_eq!(samples.len(), 1, "{step}");
            assert_eq!(samples[0].data.map(|data| data.x), value);
            assert_eq!(samples[0].info.agreed.position, step as u64 + 1);
            assert_eq!(samples[0].info.publication_handle, writer.instance_handle());
        }
    }
    assert!(matches!(change(3), Err(Error::PreconditionNotMet(_))));
}

#[test]
fn who_joins_later_has_the_agreed_history() {
    let kept = |qos: QosSet| atomic(qos).durability(Durability::TransientLocal);
    let Members { participants, writers, readers } = Members::<Point>::new(2, kept);
    for x in 0..50 {
        writers[0].write(&point(x)).unwrap();
        writers[1].write(&point(x)).unwrap();
    }
    let before = take_all(&readers, 100);
    assert_eq!(before[0], before[1]);
    let late = participant(participants[0].domain_id());
    let volatile = reader::<Point>(&late, "Plan", atomic(QosSet::reader()));
    let durable = reader::<Point>(&late, "Plan", kept(QosSet::reader()));
    volatile.sync(PATIENCE).unwrap();
    let beside = reader::<Point>(&participants[1], "Plan", kept(QosSet::reader()));
    writers[0].write(&point(50)).unwrap();
    let all = take_all(&[durable, beside], 101);
    assert_eq!(all[0][..100], before[0][..]);
    assert_eq!(all[1], all[0]);
    let last = take_all(&[volatile, readers[0].clone()], 1);
    assert_eq!((&last[0][..], &last[1][..]), (&all[0][100..], &all[0][100..]));
}

#[test]
fn long_samples_are_delivered_as_they_were_written() {
    let Members { writers, readers, .. } = Members::<Blob>::new(2, atomic);
    let blob = |number: u32| {
        let bytes = [40, 400, 4_000, 1 << 20][number as usize % 4];
        Blob { number, octets: (0..bytes + number).map(|it| (it ^ number) as u8).collect() }
    };
    (0..16).for_each(|number| writers[number as usize % 2].write(&blob(number)).unwrap());
    for reader in &readers {
        let mut count = 0;
        until("all samples arrive", || {
            for sample in reader.take().unwrap() {
                let data = sample.data.unwrap();
                assert!(data == blob(data.number), "sample {}", data.number);
                count += 1;
            }
            count == 16
        });
    }
}

#[test]
fn eventual_readers_get_what_is_delivered_in_the_order_of_each_writer() {
    let Members { participants, writers, readers } = Members::<Point>::new(2, atomic);
    let other = participant(participants[0].domain_id());
    let eventual = reader::<Point>(&other, "Plan", QosSet::reader().reliable().keep_all());
    for writer in &writers {
        until("the reader matches", || writer.matched_subscriptions().unwrap().len() == 3);
    }
    for x in 0..100 {
        writers[0].write(&point(x)).unwrap();
        writers[1].write(&point(x)).unwrap();
    }
    let logs = take_all(&readers, 200);
    assert_eq!(logs[0], logs[1]);
    let log = take_all(&[eventual], 200).remove(0);
    assert!(log.iter().all(|it| it.2 == 0), "no position is told of");
    for writer in &writers {
        let of =
            |log: &Log| log.iter().filter(|it| it.0 == writer.instance_handle()).map(|it| it.1).collect();
        let (eventual, agreed): (Vec<i64>, Vec<i64>) = (of(&log), of(&logs[0]));
        assert_eq!(eventual, agreed);
    }
    assert_eq!(other.atomic_groups(), []);
}

#[test]
fn an_eventual_reader_that_comes_later_gets_what_is_agreed_from_then_on() {
    let Members { participants, writers, readers } = Members::<Point>::new(2, atomic);
    (0..100).for_each(|x| writers[0].write(&point(x)).unwrap());
    writers[0].wait_for_acknowledgments(PATIENCE).unwrap();
    take_all(&readers, 100);
    let other = participant(participants[0].domain_id());
    let eventual = reader::<Point>(&other, "Plan", QosSet::reader().reliable().keep_all());
    until("the reader matches", || writers[0].matched_subscriptions().unwrap().len() == 3);
    (100..200).for_each(|x| writers[0].write(&point(x)).unwrap());
    let log = take_all(&[eventual], 100).remove(0);
    assert_eq!(log.iter().map(|it| it.1).collect::<Vec<_>>(), (100..200).collect::<Vec<_>>());
}

#[test]
fn what_is_not_atomic_has_nothing_to_wait_for() {
    let one = participant(fresh_domain());
    let reader = reader::<Point>(&one, "Plan", QosSet::reader());
    let refused = reader.sync(PATIENCE).unwrap_err();
    assert!(matches!(refused, Error::PreconditionNotMet(_)), "{refused}");
    assert_eq!(one.atomic_groups(), []);
}

/// In the environment of a process that is a member: its domain.
const DOMAIN: &str = "PLAINSONG_TEST_DOMAIN";

/// A process with a writer, which writes until its standard input ends, and a reader, of which it prints what
/// it got.
struct Elsewhere {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Elsewhere {
    fn new(test: &str, domain: u16) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(DOMAIN, domain.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    /// In such a process.
    fn run(domain: &str) {
        let member = participant_with(domain.parse().unwrap(), loopback());
        let writer =
            writer::<Point>(&member, "Plan", atomic(QosSet::writer()).durability(Durability::TransientLocal));
        let reader =
            reader::<Point>(&member, "Plan", atomic(QosSet::reader()).durability(Durability::TransientLocal));
        let has_ended = AtomicBool::new(false);
        let mut log = Log::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _ = std::io::stdin().read(&mut [0; 1]);
                has_ended.store(true, Ordering::SeqCst);
            });
            for x in 0.. {
                if has_ended.load(Ordering::SeqCst) {
                    break;
                }
                writer.write(&point(x)).unwrap();
                take(&reader, &mut log);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        writer.wait_for_acknowledgments(PATIENCE).unwrap();
        reader.sync(PATIENCE).unwrap();
        take(&reader, &mut log);
        for (writer, x, position) in log {
            println!("got {writer} {x} {position}");
        }
    }

    /// Ends it: what it got.
    fn end(mut self) -> Log {
        drop(self.child.stdin.take());
        let mut log = Log::new();
        for line in self.out.by_ref().lines() {
            let line = line.unwrap();
            let words: Vec<_> = line.split(' ').collect();
            if let ["got", writer, x, position] = words[..] {
                log.push((writer.parse().unwrap(), x.parse().unwrap(), position.parse().unwrap()));
            }
        }
        assert!(self.child.wait().unwrap().success());
        log
    }
}

#[test]
fn of_three_processes_two_go_on_when_one_is_killed_and_it_may_come_back() {
    const TEST: &str = "of_three_processes_two_go_on_when_one_is_killed_and_it_may_come_back";
    if let Ok(domain) = std::env::var(DOMAIN) {
        return Elsewhere::run(&domain);
    }
    let domain = fresh_domain();
    let home = participant(domain);
    let kept = |qos: QosSet| atomic(qos).durability(Durability::TransientLocal);
    let (writer, reader) = (
        writer::<Point>(&home, "Plan", kept(QosSet::writer())),
        reader::<Point>(&home, "Plan", kept(QosSet::reader())),
    );
    let mut log = Log::new();
    let members = || home.atomic_groups()[0].members.len();
    let survivor = Elsewhere::new(TEST, domain);
    let mut victim = Elsewhere::new(TEST, domain);
    until("there are three", || members() == 3);
    let mut next = 0;
    let mut write = |count| {
        (next..next + count).for_each(|x| writer.write(&point(x)).unwrap());
        next += count;
        next
    };
    write(100);
    victim.child.kill().unwrap();
    victim.child.wait().unwrap();
    write(100);
    until("two go on", || members() == 2);
    let back = Elsewhere::new(TEST, domain);
    until("it is back", || members() == 3);
    let written = write(100);
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    let logs = [back.end(), survivor.end()];
    until("it is alone", || members() == 1);
    take(&reader, &mut log);
    let own = log.iter().filter(|it| it.0 == writer.instance_handle()).map(|it| it.1);
    assert!(own.eq(0..written.into()), "what was written is delivered once, in order");
    assert!(log.is_sorted_by(|one, other| one.2 < other.2));
    for other in &logs {
        let common: Vec<_> = log.iter().filter(|it| it.2 <= other.last().unwrap().2).copied().collect();
        assert_eq!(*other, common);
    }
    assert_eq!(home.atomic_groups()[0].phase, MemberPhase::Active);
    assert_eq!(home.atomic_groups()[0].counts.evicted, 0);
}

#[test]
fn who_is_no_member_sees_the_group_and_is_counted_nowhere() {
    let Members { participants, writers, readers } = Members::<Point>::new(2, atomic);
    let other = participant(participants[0].domain_id());
    let shown = other.builtin_subscriber().unwrap().lookup_reader(PUBLICATION_TOPIC).unwrap();
    let shown: DataReader<PublicationBuiltinTopicData> = shown.downcast().unwrap();
    let observer = other.observe_group("Plan", "").unwrap();
    let none = other.observe_group("Place", "").unwrap();
    writers[0].write(&point(1)).unwrap();
    until("the group is well", || observer.look().unwrap().is_well());
    take_all(&readers, 1);
    until("it is where its members are", || observer.look().unwrap().position == 1);
    let seen = observer.look().unwrap();
    let own = participants[1].atomic_groups().remove(0);
    assert_eq!((seen.topic.as_str(), seen.epoch, seen.position), ("Plan", own.epoch, own.position));
    let guids = |members: &mut dyn Iterator<Item = _>| members.collect::<Vec<_>>();
    assert_eq!(
        guids(&mut seen.members.iter().map(|it| it.participant)),
        guids(&mut own.members.iter().map(|it| it.participant)),
    );
    assert!(seen.members.iter().all(|it| it.is_caught_up && !it.is_held && it.name == "test"), "{seen}");
    assert!(!none.look().unwrap().is_there());
    assert_eq!(other.discovered_atomic_topics().unwrap(), [("Plan".to_owned(), String::new())]);

    // The endpoints of the group are shown to who asks for them.
    let is_internal = |topic: &str| topic.starts_with("plainsong.atomic/");
    let count = |internal_endpoints| {
        let limits = StateLimits { internal_endpoints, ..StateLimits::default() };
        let state = other.state_within(&limits).unwrap();
        state.remote_endpoints.items.iter().filter(|it| is_internal(&it.topic)).count()
    };
    assert_eq!((count(false), count(true)), (0, 8));
    for topic in other.discovered_topics().unwrap() {
        assert!(!is_internal(&other.discovered_topic_data(topic).unwrap().name));
    }
    let mut names = Vec::new();
    until("both writers are shown", || {
        names.extend(shown.take().unwrap().into_iter().filter_map(|it| it.data).map(|it| it.topic_name));
        names.len() >= 2
    });
    assert_eq!(names, ["Plan", "Plan"]);
}
