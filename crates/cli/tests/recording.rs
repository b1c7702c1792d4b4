//! `plainsong record` and `plainsong play` as their users run them, beside programs that write and read.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{PATIENCE, Program, domain, plainsong};
use plainsong::config::Use;
use plainsong::discovered::ToldType;
use plainsong::prelude::{
    AnyDataReader, Config, DataReader, DataWriter, DdsType, DomainParticipant, DomainParticipantFactory,
    Durability, Guid, InstanceHandle, Ownership, QosSet, WriteOptions,
};
use plainsong::serialized::SerializedChange;
use plainsong::time::{Time, TimeExt as _};
use plainsong::types::{OpaqueType, TypeDescription};
use plainsong_recording::{Change, EventKind, Input, Item, RecordedWriter};

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
struct Light {
    #[dds(key)]
    id: u32,
    level: Option<u16>,
    name: String,
}

fn light(id: u32, level: u16) -> Light {
    Light { id, level: Some(level), name: format!("light {id}") }
}

fn join(domain: &str) -> DomainParticipant {
    let config =
        Config { interfaces: Some(vec!["lo".into()]), shared_memory: Use::Auto, ..Config::default() };
    let factory = DomainParticipantFactory::with_config(config);
    factory.create_participant(domain.parse().unwrap(), "test", QosSet::default()).unwrap()
}

/// A QoS that default readers do not match, and that says something of everything.
fn special() -> QosSet {
    let mut qos = QosSet {
        ownership: Ownership::Exclusive,
        ownership_strength: 7,
        user_data: vec![1, 0, 255],
        ..QosSet::writer().reliable().keep_all().durability(Durability::TransientLocal)
    };
    qos.writer_data_lifecycle.autodispose_unregistered_instances = false;
    qos
}

fn partition() -> QosSet {
    QosSet { partition: vec!["hall".to_owned()], ..QosSet::default() }
}

fn writer(participant: &DomainParticipant, topic: &str, qos: QosSet) -> DataWriter<Light> {
    let topic = participant.create_topic::<Light>(topic, QosSet::default()).unwrap();
    participant.create_publisher(partition()).unwrap().create_writer(&topic, qos).unwrap()
}

/// A reader that has every change as it comes.
fn observer(participant: &DomainParticipant, topic: &str) -> AnyDataReader {
    let ty = Arc::new(OpaqueType::new("Light", true));
    let topic = participant.create_any_topic(topic, ty, QosSet::default()).unwrap();
    let qos = QosSet {
        ownership: Ownership::Exclusive,
        ..QosSet::reader().reliable().keep_all().durability(Durability::TransientLocal)
    };
    participant.create_subscriber(partition()).unwrap().create_reader(&topic, qos).unwrap()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A file of a test, which goes with this.
struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Self {
        let name = format!("plainsong-record-{test}-{}.mcap", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn name(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// All that is in the file, which has no flaw.
    fn read(&self) -> (Vec<Arc<RecordedWriter>>, Vec<Change>) {
        let mut input = Input::new(File::open(&self.0).unwrap());
        let (mut writers, mut changes) = (Vec::new(), Vec::new());
        while let Some(item) = input.next_item().unwrap() {
            match item {
                Item::Writer(_, writer) => writers.push(writer),
                Item::Change(change) => changes.push(change),
            }
        }
        assert_eq!(input.flaws(), (&[][..], 0));
        (writers, changes)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What a change does, without its times.
type Deed = (Vec<u8>, Option<EventKind>);

fn deed_of(change: &Change) -> Deed {
    match change {
        Change::Sample { payload, .. } => (payload.clone(), None),
        Change::Event { event, .. } => (event.key.clone(), Some(event.kind)),
    }
}

fn deed_of_observed(change: &SerializedChange) -> Deed {
    let kind = change.ending.map(|ending| match (ending.disposed, ending.unregistered) {
        (true, true) => EventKind::DisposeUnregister,
        (true, false) => EventKind::Dispose,
        (false, _) => EventKind::Unregister,
    });
    (change.payload.as_slice().to_vec(), kind)
}

/// A recorder that has found the writer.
fn recorder(domain: &str, place: &Place, topic: &str) -> Program {
    let program = Program::start(&["record", topic, "-o", place.name(), "-d", domain]);
    program.line_with(&format!("topic '{topic}' (Light) of writer"));
    program
}

fn stop(mut recorder: Program) {
    recorder.signal("INT");
    let status = recorder.process.wait().unwrap();
    assert!(status.success(), "{:?}", recorder.lines.try_iter().collect::<Vec<_>>());
}

/// Writes samples of three instances, and ends two of them in different ways; the moments between take time.
fn live(writer: &DataWriter<Light>) {
    let pause = || std::thread::sleep(Duration::from_millis(15));
    for level in 0..3 {
        (1..4).for_each(|id| writer.write(&light(id, level)).unwrap());
        pause();
    }
    writer.dispose(&light(1, 0)).unwrap();
    writer.dispose(&light(1, 0)).unwrap();
    pause();
    writer.write(&light(1, 10)).unwrap();
    writer.unregister_instance(&light(2, 0)).unwrap();
    pause();
    writer.write(&light(2, 11)).unwrap();
    writer.dispose(&light(3, 0)).unwrap();
    writer.unregister_instance(&light(3, 0)).unwrap();
    pause();
    writer.write(&Light { id: 4, level: None, name: String::new() }).unwrap();
}

const SAMPLES: usize = 12;
const ENDINGS: usize = 5;

#[test]
fn what_was_written_is_written_again_with_qos_type_and_ends_of_instances() {
    let place = Place::new("again");
    let first = domain(0);
    let participant = join(&first);
    let lights = writer(&participant, "Lights", special());
    // Before the recorder comes: it asks for what the writer keeps.
    lights.write(&light(9, 9)).unwrap();
    let begin = Time::now();
    let recording = recorder(&first, &place, "Lights");
    let guid = Guid::from(lights.instance_handle());
    live(&lights);
    lights.wait_for_acknowledgments(plainsong::time::Duration::from_secs(20)).unwrap();
    drop((lights, participant));
    std::thread::sleep(Duration::from_millis(200));
    stop(recording);

    let (writers, changes) = place.read();
    let [recorded] = writers.as_slice() else { panic!("{writers:?}") };
    assert_eq!(
        (recorded.topic.as_str(), recorded.type_name.as_str(), recorded.guid),
        ("Lights", "Light", guid)
    );
    assert!(recorded.keyed && recorded.ty.as_deref() == TypeDescription::of::<Light>().as_ref());
    let QosSet { ownership, ownership_strength, durability, partition, user_data, .. } = &recorded.qos;
    assert_eq!(
        (*ownership, *ownership_strength, *durability),
        (Ownership::Exclusive, 7, Durability::TransientLocal)
    );
    assert_eq!((partition.as_slice(), user_data.as_slice()), (&["hall".to_owned()][..], &[1, 0, 255][..]));
    let mut deeds: Vec<Deed> = changes.iter().map(deed_of).collect();
    assert_eq!(deeds.len(), 1 + SAMPLES + ENDINGS + 1, "{deeds:?}");
    assert_eq!(deeds.pop(), Some((Vec::new(), Some(EventKind::Departure))));
    assert_eq!(deeds.iter().filter(|(_, kind)| kind.is_some()).count(), ENDINGS);
    let Change::Sample { publish_time, log_time, .. } = &changes[0] else { panic!("{changes:?}") };
    assert!(*publish_time < begin.0 as u64 && *log_time > begin.0 as u64, "both times are kept");

    // Played in another domain, an observer sees the same, no sample before its time.
    let second = domain(1);
    let participant = join(&second);
    let reader = observer(&participant, "Lights");
    let player = Program::start(&["play", place.name(), "-d", &second, "--wait", "--delay", "1"]);
    let mut seen: Vec<SerializedChange> = Vec::new();
    let mut told = ToldType::Untold;
    let mut announced = None;
    until("all is played", || {
        for handle in reader.matched_publications().unwrap() {
            announced = reader.matched_publication_data(handle).ok().or_else(|| announced.take());
            told = match participant.discovered_type(handle).unwrap() {
                ToldType::Known(ty) => ToldType::Known(ty),
                _ => std::mem::replace(&mut told, ToldType::Untold),
            };
        }
        seen.extend(reader.take_changes().unwrap());
        seen.len() >= deeds.len()
    });
    player.line_with("samples and");
    assert_eq!(seen.iter().map(deed_of_observed).collect::<Vec<_>>(), deeds);
    let recorded_span = changes[deeds.len() - 1].log_time() - changes[0].log_time();
    let span = |last: Time, first: Time| u64::try_from(last.0 - first.0).unwrap();
    let last = seen.last().unwrap();
    // Sources are moved with the time, and are exact but for the rounding of the wire.
    let moved = span(last.source_timestamp, seen[1].source_timestamp);
    let Change::Sample { publish_time: end, .. } = &changes[deeds.len() - 1] else { panic!("{changes:?}") };
    let Change::Sample { publish_time: start, .. } = &changes[1] else { panic!("{changes:?}") };
    assert!(moved.abs_diff(end - start) < 10, "{moved} {}", end - start);
    assert!(span(last.reception_timestamp, seen[0].reception_timestamp) + 20_000_000 > recorded_span);
    let announced = announced.unwrap().qos();
    assert_eq!(
        QosSet { writer_data_lifecycle: recorded.qos.writer_data_lifecycle, ..announced },
        recorded.qos
    );
    assert_eq!(told, ToldType::Known(Box::new(TypeDescription::of::<Light>().unwrap())));
}

#[test]
fn a_killed_recorder_leaves_a_file_that_has_all_but_the_last_second() {
    let place = Place::new("killed");
    let domain = domain(2);
    let participant = join(&domain);
    let lights = writer(&participant, "Lights", special());
    let mut recording = recorder(&domain, &place, "Lights");
    let begin = Instant::now();
    let mut written = Vec::new();
    while begin.elapsed() < Duration::from_millis(2_500) {
        let now = Time::now();
        let number = written.len() as u16;
        lights
            .write_with(&light(u32::from(number), number), &WriteOptions::new().source_timestamp(now))
            .unwrap();
        written.push(now);
        std::thread::sleep(Duration::from_millis(5));
    }
    recording.process.kill().unwrap();
    let killed = Time::now();
    recording.process.wait().unwrap();
    let (_, changes) = place.read();
    let before = written.iter().filter(|time| time.0 + 1_000_000_000 < killed.0).count();
    assert!(before > 10 && changes.len() >= before, "{} of {before}", changes.len());

    // It can be played as if nothing had happened.
    let status =
        plainsong(&["play", place.name(), "-d", &domain, "--fast", "--rename", "Lights=Again"]).status();
    assert!(status.unwrap().success());
}

#[test]
fn a_full_disk_ends_with_an_error_and_a_file_that_can_be_read() {
    let place = Place::new("full");
    let domain = domain(3);
    let participant = join(&domain);
    let lights = writer(&participant, "Lights", special());
    // 16 KiB, in the blocks of the shell.
    let words = ["-c", "ulimit -f 32; exec \"$@\"", "-", env!("CARGO_BIN_EXE_plainsong")];
    let mut command = Command::new("sh");
    command.args(words).args(["record", "Lights", "-o", place.name(), "-d", &domain]);
    let mut recording = Program::run(command.env("PLAINSONG_INTERFACES", "lo"));
    recording.line_with("topic 'Lights'");
    let end = Instant::now() + PATIENCE;
    let status = loop {
        assert!(Instant::now() < end, "it never ends");
        lights.write(&light(1, 1)).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        if let Some(status) = recording.process.try_wait().unwrap() {
            break status;
        }
    };
    assert_eq!(status.code(), Some(3));
    let kept = recording.line_with("samples of 1 topic");
    let told = recording.line_with("File too large");
    assert!(
        told.ends_with(&format!("; it ends after {} samples, which it has", kept.split_once(' ').unwrap().0)),
        "{told}"
    );
    let (_, changes) = place.read();
    let count: usize = kept.split_whitespace().next().unwrap().parse().unwrap();
    let samples = changes.iter().filter(|change| matches!(change, Change::Sample { .. })).count();
    assert!(count > 0 && samples == count, "{samples}, and it says: {kept}");
}

#[test]
fn where_nothing_was_written_the_error_says_nothing_of_what_was() {
    let words = ["record", "Lights", "-o", "/nowhere/at/all.mcap", "-d", &domain(7)];
    let output = plainsong(&words).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.starts_with("cannot write /nowhere/at/all.mcap: ") && !said.contains("ends after"),
        "{said}"
    );
}

/// As a disk does that takes its time: the recorder stands still while samples come.
#[test]
#[cfg(target_os = "linux")]
fn what_a_recorder_that_is_held_up_loses_is_counted_and_of_reliable_writers_it_loses_nothing() {
    let place = Place::new("slow");
    let domain = domain(8);
    let participant = join(&domain);
    let best_effort = QosSet::writer().best_effort().keep_last(1);
    let (lights, doors) =
        (writer(&participant, "Lights", best_effort), writer(&participant, "Doors", special()));
    let mut command = plainsong(&["record", "-a", "-o", place.name(), "-d", &domain, "--json"]);
    let small = [("PLAINSONG_RECEIVE_BUFFER_BYTES", "4096"), ("PLAINSONG_SHARED_MEMORY", "off")];
    let mut recording = Program::run(command.envs(small));
    (0..2).for_each(|_| _ = recording.line_with("topic '"));
    until("both match", || [&lights, &doors].iter().all(|it| it.matched_subscriptions().unwrap().len() == 1));
    // Who has matched here may yet have to match there: the first that is recorded begins the count.
    let mut numbers = 1..;
    let mut write_light = || lights.write(&light(numbers.next().unwrap(), 1)).unwrap();
    doors.write(&light(1, 0)).unwrap();
    doors.wait_for_acknowledgments(plainsong::time::Duration::from_secs(30)).unwrap();
    for _ in 0..20 {
        write_light();
        std::thread::sleep(Duration::from_millis(10));
    }
    recording.signal("STOP");
    for _ in 0..500 {
        write_light();
        doors.write(&light(1, 1)).unwrap();
    }
    recording.signal("CONT");
    doors.wait_for_acknowledgments(plainsong::time::Duration::from_secs(30)).unwrap();
    // What is lost at the end shows by what comes after it.
    for _ in 0..20 {
        write_light();
        std::thread::sleep(Duration::from_millis(10));
    }
    recording.signal("INT");
    let report: serde_json::Value = serde_json::from_str(&recording.line_with("\"samples\"")).unwrap();
    assert_eq!(recording.process.wait().unwrap().code(), Some(1), "{report}");
    let topics = report["topics"].as_array().unwrap();
    let of = |name: &str| topics.iter().find(|it| it["topic"] == name).unwrap();
    assert_eq!((&of("Doors")["samples"], &of("Doors")["lost"]), (&501.into(), &0.into()), "{report}");
    let count = |key: &str| of("Lights")[key].as_u64().unwrap();
    let (_, changes) = place.read();
    let number = |change: &Change| match change {
        Change::Sample { payload, .. } => plainsong::cdr::from_payload::<Light>(payload).ok(),
        Change::Event { .. } => None,
    };
    // Those of the other topic have one number.
    let kept: Vec<u32> = changes.iter().filter_map(number).map(|it| it.id).filter(|it| *it > 1).collect();
    assert!(count("lost") > 0, "{report}");
    assert_eq!(kept.last(), Some(&540), "{report}");
    // From the first that was recorded to the last every one is in the file or counted.
    let begun = u64::from(541 - kept[0]) + (count("samples") - kept.len() as u64);
    assert_eq!(count("samples") + count("lost") + count("rejected"), begun, "{report}");
}

/// A recording of two topics, without the other programs.
fn recorded(place: &Place, samples: u32) {
    let mut output = plainsong_recording::Output::create(&place.0, true).unwrap();
    let writers = ["Lights", "Doors"].map(|topic| RecordedWriter {
        topic: topic.to_owned(),
        type_name: "Light".to_owned(),
        guid: Guid::from_bytes([topic.len() as u8; 16]),
        keyed: true,
        qos: QosSet { partition: partition().partition, ..special() },
        ty: TypeDescription::of::<Light>().map(Arc::new),
    });
    let channels = writers.map(|writer| output.add_writer(&writer).unwrap().0);
    for number in 0..samples {
        let sample = light(number, 1);
        let mut payload = Vec::new();
        let (version, order) = (plainsong::cdr::XcdrVersion::Xcdr1, plainsong::cdr::Endianness::Little);
        plainsong::cdr::to_payload(&sample, version, order, &mut payload).unwrap();
        let time = 1_000_000_000 + u64::from(number) * 10_000_000;
        output.sample(channels[number as usize % 2], number, (time, time), &payload).unwrap();
        if number % 10 == 9 {
            output.commit().unwrap();
        }
    }
    output.finish().unwrap();
}

#[test]
fn of_a_damaged_file_is_played_what_can_be_read_and_the_end_is_told() {
    let place = Place::new("damaged");
    recorded(&place, 100);
    let octets = std::fs::read(&place.0).unwrap();
    // Of the third quarter of the data an octet is wrong, and the last quarter is missing.
    let mut damaged = octets[..octets.len() / 2].to_vec();
    let at = damaged.len() * 3 / 4;
    damaged[at] ^= 0x10;
    std::fs::write(&place.0, &damaged).unwrap();
    let domain = domain(4);
    let participant = join(&domain);
    let reader = observer(&participant, "Lights");
    let output =
        plainsong(&["play", place.name(), "-d", &domain, "--fast", "--wait", "20", "-t", "Lights"]).output();
    let output = output.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the file ends in the middle") && said.contains("s after its begin"), "{said}");
    let count: usize = said.lines().last().unwrap().split_whitespace().next().unwrap().parse().unwrap();
    let mut seen = 0;
    until("what can be read is played", || {
        seen += reader.take_changes().unwrap().len();
        seen >= count
    });
    assert!((5..50).contains(&count), "{said}");
    std::fs::write(&place.0, b"no recording at all").unwrap();
    let status = plainsong(&["play", place.name(), "-d", &domain]).status().unwrap();
    assert_eq!(status.code(), Some(3));
}

#[test]
fn topics_are_chosen_renamed_and_repeated() {
    let place = Place::new("chosen");
    recorded(&place, 40);
    let domain = domain(5);
    let participant = join(&domain);
    let (doors, gates) = (observer(&participant, "Doors"), observer(&participant, "Gates"));
    let mut words = vec!["play", place.name(), "-d", &domain, "--fast", "--wait", "20", "-x", "L*"];
    words.extend(["--rename", "Doors=Gates", "--loop", "3", "--start", "0.1", "--json"]);
    let output = plainsong(&words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let played: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // Of 40 samples every second is of the topic, and the first ten are left out.
    assert_eq!((&played["samples"], &played["refused"]), (&45.into(), &0.into()));
    let mut seen = 0;
    until("all is played", || {
        seen += gates.take_changes().unwrap().len();
        seen >= 45
    });
    assert!(doors.take_changes().unwrap().is_empty());
    // The file has 0.39 s.
    for span in [&["--start", "5"][..], &["--start", "0.001", "--end", "0.002"]] {
        let words = [&["play", place.name(), "-d", &domain, "--fast"], span].concat();
        let output = plainsong(&words).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("has nothing to play in the time that is asked for"), "{said}");
        assert!(said.contains("its changes are of 0 to 0.390 s"), "{said}");
    }

    let output =
        plainsong(&["play", place.name(), "-d", &domain, "--wait", "0.3", "--rename", "Doors=Nobody"]);
    let output = { output }.output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("nobody reads Lights, Nobody"), "{said}");
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(name = "std_msgs::msg::dds_::String_", final)]
struct Text {
    #[dds(name = "data_")]
    data: String,
}

#[test]
fn a_topic_of_ros_is_shown_as_ros_shows_it_and_played_as_it_was() {
    let place = Place::new("ros");
    let domain = domain(6);
    let participant = join(&domain);
    let topic = participant.create_topic::<Text>("rt/chatter", QosSet::default()).unwrap();
    let publisher = participant.create_publisher(QosSet::default()).unwrap();
    let chatter =
        publisher.create_writer(&topic, QosSet::writer().durability(Durability::TransientLocal)).unwrap();
    chatter.write(&Text { data: "hello".to_owned() }).unwrap();
    let recording =
        Program::start(&["record", "/chat*", "-o", place.name(), "-d", &domain, "--max-bytes", "1M"]);
    recording.line_with("topic 'rt/chatter' (std_msgs::msg::dds_::String_) of writer");
    std::thread::sleep(Duration::from_millis(300));
    stop(recording);
    drop((chatter, publisher, topic));

    let octets = std::fs::read(&place.0).unwrap();
    let has = |text: &str| octets.windows(text.len()).any(|window| window == text.as_bytes());
    for text in ["ros2msg", "std_msgs/msg/String", "string data\n", "/chatter", "offered_qos_profiles"] {
        assert!(has(text), "{text} is missing");
    }
    let topic = participant.create_topic::<Text>("rt/other", QosSet::default()).unwrap();
    let subscriber = participant.create_subscriber(QosSet::default()).unwrap();
    let reader: DataReader<Text> = subscriber.create_reader(&topic, QosSet::reader().reliable()).unwrap();
    let player = Program::start(&["play", place.name(), "-d", &domain, "-w", "--rename", "/chatter=/other"]);
    let samples = reader.wait_take(plainsong::time::Duration::from_secs(30)).unwrap();
    assert_eq!(samples[0].data, Some(Text { data: "hello".to_owned() }));
    player.line_with("1 sample and 0 ends");
    assert_ne!(samples[0].info.publication_handle, InstanceHandle::NIL);
}
