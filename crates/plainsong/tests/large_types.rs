//! Types with values larger than a thread's stack: what a peer sends of them never ends the process.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::{PATIENCE, Pair, fresh_domain, participant, until, writer};
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

type Take = fn(&DataReader<Field>) -> Vec<Option<u32>>;

/// Takes when it is told of data: on a receive thread, as a rule.
struct Taking {
    take: Take,
    reader: DataReader<Field>,
    told: Arc<Told>,
}

impl DataReaderListener for Taking {
    fn on_data_available(&self, _: &AnyDataReader) {
        for row in (self.take)(&self.reader) {
            match row {
                Some(row) => self.told.rows.fetch_add(row, Ordering::Relaxed),
                None => self.told.ends.fetch_add(1, Ordering::Relaxed),
            };
        }
    }
}

/// The rows of samples, `None` of an end: taken as octets, as values, over values and in place.
const WAYS: [Take; 4] = [
    |reader| {
        let row = |sample: &SerializedSample| {
            let octets = sample.payload.as_slice();
            let key_at = if sample.info.valid_data { KEY_AT } else { 4 };
            let key = *octets[key_at..].first_chunk().unwrap();
            let row = if octets[1] == 0 { u32::from_be_bytes(key) } else { u32::from_le_bytes(key) };
            sample.info.valid_data.then_some(row)
        };
        reader.as_any().take_serialized().unwrap().iter().map(row).collect()
    },
    |reader| reader.take().unwrap().iter().map(|sample| Some(sample.data.as_ref()?.row)).collect(),
    |reader| {
        let mut samples = SampleBuffer::new();
        reader.take_reusing(&ReadOptions::new(), &mut samples).unwrap();
        samples.iter().map(|sample| Some(sample.data.as_ref()?.row)).collect()
    },
    |reader| reader.take_in_place().unwrap().iter().map(|sample| Some(sample.data()?.row)).collect(),
];

impl Told {
    fn by(reader: &DataReader<Field>, take: Take) -> Arc<Self> {
        let told = Arc::new(Self::default());
        let taking = Taking { take, reader: reader.clone(), told: Arc::clone(&told) };
        reader.set_listener(Some(Arc::new(taking)), StatusKind::DataAvailable);
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
    until("the readers are there", || fields.matched_subscriptions().unwrap().len() == 2 * WAYS.len() + 1);
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
    let (mut readers, mut told) = (Vec::new(), Vec::new());
    for way in WAYS {
        let all = subscriber.create_reader(&topic, qos()).unwrap();
        let some = subscriber.create_reader(&filtered, qos()).unwrap();
        told.push([Told::by(&all, way), Told::by(&some, way)]);
        readers.extend([all, some]);
    }
    let queried = subscriber.create_reader(&topic, qos()).unwrap();
    let query = queried.query_condition(&ReadOptions::new(), "row > 1 ORDER BY row", Vec::new()).unwrap();
    let mut child = process(name, domain);
    until("all is told", || told.iter().all(|[all, some]| all.is(12, 6) && some.is(10, 4)));
    let chosen = queried.take_with(&query.read_options().condition(&query)).unwrap();
    let rows: Vec<_> = chosen.iter().map(|sample| sample.data.as_ref().unwrap().row).collect();
    assert_eq!(rows, [2, 2, 3, 3]);
    assert!(readers.iter().all(|reader| reader.undecodable_samples() == 0));
    for reader in &readers {
        reader.set_listener(None, StatusMask::NONE);
    }
    here.delete_contained_entities().unwrap();
    assert!(child.wait().unwrap().success());
}

/// Its values are large, and have memory elsewhere.
#[derive(DdsType, Clone, PartialEq)]
#[dds(name = "Sheet")]
struct Sheet {
    #[dds(key)]
    name: String,
    cells: [u64; 12_000],
    parts: Vec<[u64; 12_000]>,
}

#[test]
fn values_that_are_large_are_taken_ordered_and_asked_for_by_key() {
    let (offered, requested) = (QosSet::writer().keep_all(), QosSet::reader().reliable().keep_all());
    let pair: Pair<Sheet> = Pair::new(offered, requested);
    let sheet = |name: &str, cell| {
        let cells = [cell; 12_000];
        Box::new(Sheet { name: name.to_owned(), cells, parts: vec![cells] })
    };
    let names = ["b", "c", "a"];
    for (name, cell) in names.into_iter().zip(1..) {
        let sheet = sheet(name, cell);
        pair.writer.register_instance(&sheet).unwrap();
        pair.writer.write(&sheet).unwrap();
    }
    pair.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    let query = pair.reader.query_condition(&ReadOptions::new(), "ORDER BY name", Vec::new()).unwrap();
    let samples = pair.reader.read_with(&query.read_options().condition(&query)).unwrap();
    for (sample, (name, cell)) in samples.iter().zip([("a", 3), ("b", 1), ("c", 2)]) {
        assert!(sample.data.as_ref() == Some(&sheet(name, cell)));
        let handle = sample.info.instance_handle;
        for key in [pair.reader.key_value(handle), pair.writer.key_value(handle)] {
            let key = Box::new(key.unwrap());
            assert!(key.name == name && key.cells == [0; 12_000] && key.parts.is_empty());
        }
    }
    assert_eq!(pair.reader.take_in_place().unwrap().len(), samples.len());
    assert_eq!(samples.len(), 3);
}
