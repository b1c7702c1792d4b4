//! The program as its users see it: two processes of `plainsong shapes` on loopback.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::Arc;
use std::time::Instant;

use common::{PATIENCE, Program, plainsong};
use plainsong::prelude::*;
use plainsong::types::OpaqueType;

fn shapes(arguments: &[&str]) -> Program {
    Program::start(&[&["shapes"], arguments].concat())
}

#[test]
fn a_subscriber_that_gets_nothing_is_told_why() {
    let domain = (100 + std::process::id() % 100).to_string();
    let _publisher = shapes(&["-P", "-b", "-d", &domain]);
    let subscriber = shapes(&["-S", "-r", "-v", "d", "-d", &domain]);
    let introduction = subscriber.line_with("do not match");
    assert!(introduction.starts_with("topic \"Square\": writer "), "{introduction}");
    assert!(introduction.contains(" of participant \"plainsong shapes\" (Plainsong, "), "{introduction}");
    assert!(introduction.ends_with(" of this participant do not match"), "{introduction}");
    assert_eq!(
        subscriber.line_with("RELIABILITY:"),
        "  RELIABILITY: the writer has BEST_EFFORT, the reader wants RELIABLE; \
         set the reader's RELIABILITY to BEST_EFFORT or the writer's to RELIABLE"
    );
}

#[test]
fn who_prints_shapes_ends_when_nobody_reads_them() {
    let domain = (100 + (std::process::id() + 50) % 100).to_string();
    let _other = shapes(&["-P", "-d", &domain]);
    let _another = shapes(&["-S", "-d", &domain]);
    for role in [&["-P", "-w"][..], &["-S"]] {
        let words = [&["shapes", "-d", &domain], role].concat();
        let mut process = plainsong(&words).stdout(std::process::Stdio::piped()).spawn().unwrap();
        // As `head -1` does.
        let mut output = std::io::BufReader::new(process.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut String::new()).unwrap();
        drop(output);
        let end = Instant::now() + PATIENCE;
        while process.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "{role:?} goes on");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(process.wait().unwrap().success());
    }
}

#[test]
fn a_subscriber_that_cannot_decode_what_it_gets_is_told_why() {
    let domain = (100 + (std::process::id() + 25) % 100) as u16;
    let subscriber = shapes(&["-S", "-x", "2", "-v", "d", "-d", &domain.to_string()]);
    let config = Config { interfaces: Some(vec!["lo".into()]), ..Config::default() };
    let here = DomainParticipantFactory::with_config(config);
    let here = here.create_participant(domain, "final", QosSet::default()).unwrap();
    // Of another extensibility than the reader's, of which nobody is told.
    let untold = Arc::new(OpaqueType::new("ShapeType", true));
    let topic = here.create_any_topic("Square", untold, QosSet::default()).unwrap();
    let publisher = here.create_publisher(QosSet::default()).unwrap();
    let qos = QosSet { data_representation: vec![XcdrVersion::Xcdr2], ..QosSet::writer().keep_all() };
    let writer = publisher.create_writer(&topic, qos).unwrap();
    subscriber.line_with("matched writers 1");
    let end = Instant::now() + PATIENCE;
    while writer.matched_subscriptions().unwrap().is_empty() {
        assert!(Instant::now() < end, "the writer does not match");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    writer.write_serialized(b"\0\x07\0\0\x05\0\0\0BLUE\0\0\0\0").unwrap();
    let told = subscriber.line_with("could not be decoded");
    let writer = writer.guid();
    let start = format!(
        "topic \"Square\": 1 of the samples of writer {writer} of participant \"final\" (Plainsong, "
    );
    assert!(told.starts_with(&start), "{told}");
    assert!(
        told.contains("encapsulated as CDR2_LE (0x0007), for the reader's appendable type \"ShapeType\""),
        "{told}"
    );
}

const PROFILES: &str = r#"<qos_library name="House">
  <qos_profile name="Room">
    <publisher_qos><partition><name><element>Room</element></name></partition></publisher_qos>
    <subscriber_qos><partition><name><element>Room</element></name></partition></subscriber_qos>
    <datawriter_qos topic_filter="Sq*">
      <reliability><kind>BEST_EFFORT_RELIABILITY_QOS</kind></reliability>
    </datawriter_qos>
  </qos_profile>
</qos_library>
"#;

/// A file with that text, gone with the test.
struct File(std::path::PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let name = format!("plainsong-{}-{name}.xml", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_profile_gives_the_qos_of_all_entities_and_options_go_before_it() {
    let domain = (100 + (std::process::id() + 50) % 100).to_string();
    let file = File::new("room", PROFILES);
    let profile = ["--qos-file", file.path(), "--qos-profile", "House::Room"];
    let subscriber = shapes(&["-S", "-r", "-p", "Room", "-v", "d", "-d", &domain]);
    let _best_effort = shapes(&[&["-P", "-d", &domain][..], &profile].concat());
    // Of the profile: the partition, or they would not be compared, and the QoS of a writer of Square.
    let mismatch = subscriber.line_with("RELIABILITY:");
    assert!(mismatch.contains("the writer has BEST_EFFORT, the reader wants RELIABLE"), "{mismatch}");
    let in_room = shapes(&[&["-S", "-d", &domain][..], &profile].concat());
    let _reliable = shapes(&[&["-P", "-r", "-c", "RED", "-d", &domain][..], &profile].concat());
    subscriber.line_with("RED ");
    in_room.line_with("RED ");
}

const SMALL_READER: &str = r#"<qos_library name="House">
  <qos_profile name="Closet">
    <datareader_qos>
      <history><kind>KEEP_ALL_HISTORY_QOS</kind></history>
      <resource_limits><max_samples>1</max_samples></resource_limits>
    </datareader_qos>
  </qos_profile>
</qos_library>
"#;

#[test]
fn a_subscriber_says_what_it_had_to_reject() {
    let domain = (100 + (std::process::id() + 75) % 100).to_string();
    let file = File::new("closet", SMALL_READER);
    let profile = ["--qos-file", file.path(), "--qos-profile", "House::Closet"];
    let slow = ["-S", "-b", "--read-period", "60000", "-v", "d", "-d", &domain];
    let subscriber = shapes(&[&slow[..], &profile].concat());
    let _publisher = shapes(&["-P", "-b", "-d", &domain]);
    let rejected = subscriber.line_with("on_sample_rejected()");
    let start =
        "on_sample_rejected() topic: 'Square'  type: 'ShapeType' : (total = 1, change = 1) SamplesLimit";
    assert_eq!(rejected, start);
}

/// What it prints, and its exit code, when it cannot start.
fn failure(arguments: &[&str]) -> (String, Option<i32>) {
    let output = plainsong(&[&["shapes"], arguments].concat()).output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

#[test]
fn a_mistake_in_a_profile_is_told_with_its_line_and_column() {
    let file = File::new("mistake", &PROFILES.replace("BEST_EFFORT_", "BEST_EFORT_"));
    let (line, code) = failure(&["-P", "--qos-file", file.path(), "--qos-profile", "House::Room"]);
    assert!(line.starts_with(&format!("cannot start: {}:6:20: ", file.path())), "{line}");
    assert_eq!(code, Some(2));
    let file = File::new("unknown", PROFILES);
    let (line, _) = failure(&["-P", "--qos-file", file.path(), "--qos-profile", "House::Rome"]);
    assert!(line.contains("there is no profile House::Rome; did you mean House::Room?"), "{line}");
    let (line, _) = failure(&["-P", "--qos-file", file.path()]);
    assert!(line.contains("no profile says is_default_qos"), "{line}");
    let (_, code) = failure(&["-P", "--qos-profile", "House::Room"]);
    assert_eq!(code, Some(2), "a profile is of a file");
}

#[test]
fn an_atomic_subscriber_gets_what_an_atomic_publisher_writes() {
    let domain = (100 + (std::process::id() + 75) % 100).to_string();
    let atomic = ["--consistency", "atomic", "-d", &domain];
    let _publisher = shapes(&[&["-P", "-r"], &atomic[..]].concat());
    let subscriber = shapes(&[&["-S", "-r"], &atomic[..]].concat());
    assert!(subscriber.line_with(" BLUE ").starts_with("Square "));
}

#[test]
fn what_contradicts_atomic_consistency_is_refused_by_name() {
    let (line, code) = failure(&["-S", "--consistency", "atomic", "-s", "1"]);
    assert!(line.contains("the reader of topic 'Square': OWNERSHIP: "), "{line}");
    assert_eq!(code, Some(2));
}
