//! Types with values larger than a thread's stack: what a peer sends of them never ends the process.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::{PATIENCE, fresh_domain, participant, until, writer};
use plainsong::prelude::*;

const CELLS: usize = 1 << 20;
/// Where the key is in a sample, behind the encapsulation header.
const KEY_AT: usize = 4 + CELLS * 8;
const DOMAIN: &str = "PLAINSONG_TEST_LARGE_TYPES_DOMAIN";

/// Two key members: their hash is found member by member.
#[derive(DdsType)]
#[dds(name = "Field", final)]
#[repr(C)]
struct Field {
    cells: [f64; CELLS],
    #[dds(key)]
    row: u32,
    #[dds(key)]
    column: u32,
}

/// A process that runs the test of that name, in which it finds its domain.
fn process(test: &str, domain: u16) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(DOMAIN, domain.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// What a reader was told: the sum of all rows, and how many instances ended.
#[derive(Default)]
struct Told {
    rows: AtomicU32,
    ends: AtomicU32,
}

/// Takes when it is told of data: on a receive thread, as a rule.
struct Taking(Arc<Told>);

impl DataReaderListener for Taking {
    fn on_data_available(&self, reader: &AnyDataReader) {
        for SerializedSample { payload, info } in reader.take_serialized().unwrap() {
            let key_at = if info.valid_data { KEY_AT } else { 4 };
            let key = *payload.as_slice()[key_at..].first_chunk().unwrap();
            let is_big = payload.as_slice()[1] == 0;
            let row = if is_big { u32::from_be_bytes(key) } else { u32::from_le_bytes(key) };
            if info.valid_data {
                self.0.rows.fetch_add(row, Ordering::Relaxed);
            } else {
                self.0.ends.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Told {
    fn by(reader: &DataReader<Field>) -> Arc<Self> {
        let told = Arc::new(Self::default());
        reader.set_listener(Some(Arc::new(Taking(Arc::clone(&told)))), StatusKind::DataAvailable);
        told
    }

    fn is(&self, rows: u32, ends: u32) -> bool {
        (self.rows.load(Ordering::Relaxed), self.ends.load(Ordering::Relaxed)) == (rows, ends)
    }
}

/// Writes, disposes and unregisters instances of a field, until nobody is there.
fn write(domain: u16) {
    let here = participant(domain);
    let fields: DataWriter<Field> = writer(&here, "Field", QosSet::writer().keep_last(1));
    until("the readers are there", || fields.matched_subscriptions().unwrap().len() == 3);
    for row in 1..=3 {
        let mut field = fields.loan().unwrap();
        field.row = row;
        // Also in the other byte order, which no type has in memory.
        let mut swapped = vec![0; KEY_AT + 8];
        swapped[KEY_AT + 3] = row as u8;
        let handle = fields.register_instance(&field).unwrap();
        fields.as_any().write_serialized(&swapped).unwrap();
        fields.wait_for_acknowledgments(PATIENCE).unwrap();
        fields.dispose(&field).unwrap();
        let same = fields.as_any().key_value_serialized(handle).unwrap();
        assert_eq!(same[4..12], [row as u8, 0, 0, 0, 0, 0, 0, 0]);
        field.write().unwrap();
        fields.wait_for_acknowledgments(PATIENCE).unwrap();
        fields.as_any().unregister_instance_serialized(&same).unwrap();
        fields.wait_for_acknowledgments(PATIENCE).unwrap();
    }
    until("the readers have gone", || fields.matched_subscriptions().unwrap().is_empty());
}

#[test]
fn a_peer_that_writes_and_ends_large_instances_does_no_harm() {
    let name = "a_peer_that_writes_and_ends_large_instances_does_no_harm";
    if let Ok(domain) = std::env::var(DOMAIN) {
        return write(domain.parse().unwrap());
    }
    let domain = fresh_domain();
    let here = participant(domain);
    let topic = here.create_topic::<Field>("Field", QosSet::default()).unwrap();
    let filtered =
        here.create_content_filtered_topic("Some", &topic, "row > %0", vec!["1".to_owned()]).unwrap();
    let subscriber = here.create_subscriber(QosSet::default()).unwrap();
    let qos = || QosSet::reader().reliable().keep_all();
    let all = subscriber.create_reader(&topic, qos()).unwrap();
    let some = subscriber.create_reader(&filtered, qos()).unwrap();
    let queried = subscriber.create_reader(&topic, qos()).unwrap();
    let query = queried.query_condition(&ReadOptions::new(), "row = 3 ORDER BY column", Vec::new()).unwrap();
    let (of_all, of_some) = (Told::by(&all), Told::by(&some));
    let mut child = process(name, domain);
    until("all is told", || of_all.is(12, 6) && of_some.is(10, 4));
    let chosen = queried.as_any().take_serialized_with(&query.read_options().condition(&query)).unwrap();
    assert_eq!(chosen.len(), 2);
    assert_eq!(all.undecodable_samples() + some.undecodable_samples() + queried.undecodable_samples(), 0);
    here.delete_contained_entities().unwrap();
    assert!(child.wait().unwrap().success());
}
