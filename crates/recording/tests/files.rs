//! What is in a file, and what is left of it after a crash or damage.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{Place, event, record, writers};
use plainsong_recording::{Change, EventKind, Flaw, Input, InputError, Item, Output, RecordedWriter};

/// Everything in a file, and what could not be read.
fn read(octets: &[u8]) -> (Vec<Arc<RecordedWriter>>, Vec<Change>, Vec<Flaw>) {
    let mut input = Input::new(octets);
    let (mut writers, mut changes) = (Vec::new(), Vec::new());
    while let Some(item) = input.next_item().unwrap() {
        match item {
            Item::Writer(_, writer) => writers.push(writer),
            Item::Change(change) => changes.push(change),
        }
    }
    let flaws = input.flaws().0.to_vec();
    (writers, changes, flaws)
}

#[test]
fn what_is_kept_of_a_writer_comes_back_exactly() {
    let place = Place::new("writers");
    let (found, changes, flaws) = read(&record(&place, 3, |_, _| {}));
    assert_eq!(found.iter().map(|writer| (**writer).clone()).collect::<Vec<_>>(), writers());
    assert_eq!((changes.len(), flaws), (3, Vec::new()));
}

#[test]
fn the_file_can_be_opened_after_every_commit() {
    let place = Place::new("commits");
    let octets = record(&place, 50, |octets, count| {
        let (_, changes, flaws) = read(octets);
        assert_eq!((changes.len(), flaws), (count as usize, Vec::new()));
        // The readers of others want an end.
        assert_eq!(mcap::MessageStream::new(octets).unwrap().map(Result::unwrap).count(), count as usize);
    });
    let summary = mcap::Summary::read(&octets).unwrap().expect("a finished file has a summary");
    assert_eq!(summary.stats.unwrap().message_count, 55);
    let (_, changes, _) = read(&octets);
    let times: Vec<u64> = changes.iter().map(Change::log_time).collect();
    assert!(times.is_sorted() && times.len() == 55);
    let Change::Event { event: found, .. } = &changes[10] else { panic!("{changes:?}") };
    assert_eq!(found, &event(EventKind::Dispose));
}

#[test]
fn a_file_that_is_cut_off_is_read_up_to_there() {
    let place = Place::new("cut");
    let octets = record(&place, 100, |_, _| {});
    let mut most = 0;
    for length in (0..octets.len()).step_by(97) {
        let mut input = Input::new(&octets[..length]);
        let mut count = 0;
        while let Ok(Some(item)) = input.next_item() {
            count += usize::from(matches!(item, Item::Change(_)));
        }
        let (flaws, number) = input.flaws();
        assert_eq!(number, 1, "{length}: {flaws:?}");
        assert!(count >= most, "{length}: more of the file has less");
        most = count;
    }
    assert_eq!(most, 110);
}

#[test]
fn a_damaged_chunk_is_left_out_and_told() {
    let place = Place::new("damaged");
    let mut octets = record(&place, 100, |_, _| {});
    // In the middle of a payload of the sixth chunk.
    let needle = [0, 1, 0, 0, 55, 0, 0, 0];
    let at = octets.windows(8).position(|window| window == needle).unwrap();
    octets[at + 4] ^= 0x40;
    let (_, changes, flaws) = read(&octets);
    assert_eq!(changes.len(), 99, "one chunk of eleven changes is left out");
    assert_eq!(flaws.len(), 1);
    assert!(flaws[0].what.contains("checksum"), "{flaws:?}");
}

#[test]
fn what_a_record_says_of_its_length_costs_nothing() {
    let place = Place::new("lengths");
    let octets = record(&place, 10, |_, _| {});
    // The header is the first record.
    for length in [1 << 26, 1 << 40, u64::MAX] {
        let mut wrong = octets.clone();
        wrong[9..17].copy_from_slice(&u64::to_le_bytes(length));
        let mut input = Input::new(wrong.as_slice());
        assert!(input.next_item().unwrap().is_none());
        assert_eq!(input.flaws().1, 1);
    }
    assert!(matches!(Input::new(&b"\x7fELF, and not a recording"[..]).next_item(), Err(InputError::NotMcap)));
}

#[test]
fn others_find_schemas_that_they_read() {
    let place = Place::new("schemas");
    let octets = record(&place, 6, |_, _| {});
    let mut schemas = BTreeMap::new();
    for message in mcap::MessageStream::new(&octets).unwrap() {
        let channel = message.unwrap().channel;
        let schema = channel
            .schema
            .as_ref()
            .map(|it| (it.name.clone(), it.encoding.clone(), String::from_utf8(it.data.to_vec()).unwrap()));
        schemas.insert(channel.topic.clone(), (schema, channel.metadata.clone()));
    }
    let (light, _) = &schemas["Lights"];
    let (name, encoding, text) = light.as_ref().unwrap();
    assert_eq!((name.as_str(), encoding.as_str()), ("Light", "omgidl"));
    assert!(text.contains("@key uint32 id;") && text.contains("@optional uint16 level;"), "{text}");

    let (reading, metadata) = &schemas["/reading"];
    let (name, encoding, text) = reading.as_ref().unwrap();
    assert_eq!((name.as_str(), encoding.as_str()), ("demo/msg/Reading", "ros2msg"));
    let separator = "=".repeat(80);
    let expected = format!(
        "std_msgs/Header header\nfloat64[] values\nfloat32[9] matrix\nstring<=20 name\nuint8[] raw\n\
         {separator}\nMSG: std_msgs/Header\nstring frame_id\n"
    );
    assert_eq!(text, &expected);
    let profiles = &metadata["offered_qos_profiles"];
    assert!(
        profiles.starts_with("- history: 1\n  depth: 1\n  reliability: 1\n  durability: 2\n"),
        "{profiles}"
    );

    assert_eq!(schemas["Untold"].0, None);
}

#[test]
fn a_file_that_cannot_be_written_ends_after_what_was_written() {
    let place = Place::new("exists");
    record(&place, 1, |_, _| {});
    assert!(Output::create(&place.0, false).is_err(), "nothing is written over");
}
