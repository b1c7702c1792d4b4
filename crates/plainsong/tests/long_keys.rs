//! Two keys with one MD5, and so with one key hash (RTPS 2.5 §8.7.8), are two instances.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod common;

use std::cell::Cell;

use common::{PATIENCE, Pair, participant, reader, until, writer};
use plainsong::Error;
use plainsong::cdr::{Endianness, key_hash, to_payload};
use plainsong::config::Use;
use plainsong::prelude::*;
use plainsong_proto::cdr::{Cdr, Decoder, ElementKind, EncodeError, Encoder, Extent, Plain};
use plainsong_proto::malformed::Malformed;
use plainsong_proto::types::{TypeBuilder, TypeIdentifiers};

/// Two keys with one MD5, by X. Wang and others (2004), in hexadecimal.
const COLLISION: [&str; 2] = [
    "d131dd02c5e6eec4693d9a0698aff95c2fcab58712467eab4004583eb8fb7f89\
     55ad340609f4b30283e488832571415a085125e8f7cdc99fd91dbdf280373c5b\
     d8823e3156348f5bae6dacd436c919c6dd53e2b487da03fd02396306d248cda0\
     e99f33420f577ee8ce54b67080a80d1ec69821bcb6a8839396f9652b6ff72a70",
    "d131dd02c5e6eec4693d9a0698aff95c2fcab50712467eab4004583eb8fb7f89\
     55ad340609f4b30283e4888325f1415a085125e8f7cdc99fd91dbd7280373c5b\
     d8823e3156348f5bae6dacd436c919c6dd53e23487da03fd02396306d248cda0\
     e99f33420f577ee8ce54b67080280d1ec69821bcb6a8839396f965ab6ff72a70",
];

#[derive(Clone, Copy, Debug, PartialEq, DdsType)]
#[dds(name = "Marked", final)]
struct Marked {
    #[dds(key)]
    key: [u8; 128],
    value: u32,
}

fn marked(which: usize, value: u32) -> Marked {
    let digits = COLLISION[which];
    let octet = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
    Marked { key: std::array::from_fn(octet), value }
}

fn values(samples: &[Sample<Marked>]) -> Vec<Marked> {
    let mut values: Vec<_> = samples.iter().filter_map(|sample| sample.data).collect();
    values.sort_by_key(|sample| sample.value);
    values
}

#[test]
fn keys_with_one_hash_are_two_instances_from_writer_to_reader() {
    let hash = key_hash(&marked(0, 0)).unwrap();
    assert_eq!(
        (hash, hash.to_string().as_str()),
        (key_hash(&marked(1, 0)).unwrap(), "79054025255fb1a26e4bc422aef54eb4")
    );
    let pair = Pair::<Marked>::new(QosSet::writer().keep_last(1), QosSet::reader().reliable().keep_last(1));
    for value in [10, 20] {
        pair.writer.write(&marked(0, value)).unwrap();
        pair.writer.write(&marked(1, value + 1)).unwrap();
    }
    pair.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    assert_eq!(values(&pair.reader.read().unwrap()), [marked(0, 20), marked(1, 21)], "the last of each");

    let handles = [0, 1].map(|which| pair.reader.lookup_instance(&marked(which, 0)).unwrap().unwrap());
    assert_ne!(handles[0], handles[1]);
    for (which, handle) in [(0, handles[0]), (1, handles[1])] {
        assert_eq!(pair.reader.key_value(handle).unwrap().key, marked(which, 0).key);
        assert_eq!(values(&pair.reader.read_with(&ReadOptions::new().instance(handle)).unwrap()).len(), 1);
        let written = pair.writer.lookup_instance(&marked(which, 0)).unwrap();
        assert_eq!(pair.writer.register_instance(&marked(which, 0)).unwrap(), written.unwrap());
        assert_eq!(pair.writer.key_value(written.unwrap()).unwrap().key, marked(which, 0).key);
    }
    let wrong = pair.writer.lookup_instance(&marked(0, 0)).unwrap().unwrap();
    let refused = pair.writer.write_with(&marked(1, 0), &WriteOptions::new().instance(wrong));
    assert!(matches!(refused, Err(Error::PreconditionNotMet(_))), "{refused:?}");

    pair.writer.dispose(&marked(0, 0)).unwrap();
    pair.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    let state = |which: usize| {
        let samples = pair.reader.read_with(&ReadOptions::new().instance(handles[which])).unwrap();
        samples.last().unwrap().info.instance_state
    };
    assert_eq!([state(0), state(1)], [InstanceState::NotAliveDisposed, InstanceState::Alive]);
}

#[test]
fn writers_and_readers_that_meet_the_keys_in_different_orders_understand_each_other() {
    let pair = Pair::<Marked>::new(QosSet::writer().keep_all(), QosSet::reader().reliable().keep_all());
    let other: DataWriter<Marked> = writer(&pair.participants[0], "Pair", QosSet::writer().keep_all());
    until("the other writer matches", || pair.reader.matched_publications().unwrap().len() == 2);
    until("and knows it", || !other.matched_subscriptions().unwrap().is_empty());
    // The reader meets key 0 first; the other writer key 1.
    pair.writer.write(&marked(0, 1)).unwrap();
    pair.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    other.write(&marked(1, 2)).unwrap();
    other.write(&marked(0, 3)).unwrap();
    pair.writer.write(&marked(1, 4)).unwrap();
    for writer in [&pair.writer, &other] {
        writer.wait_for_acknowledgments(PATIENCE).unwrap();
    }
    for (which, expected) in [(0, [1, 3]), (1, [2, 4])] {
        let handle = pair.reader.lookup_instance(&marked(which, 0)).unwrap().unwrap();
        let expected = expected.map(|value| marked(which, value));
        assert_eq!(values(&pair.reader.read_with(&ReadOptions::new().instance(handle)).unwrap()), expected);
    }
    // Deleting a writer ends its instances, by the handles that it has for them.
    for writer in [&other, &pair.writer] {
        writer.publisher().delete_writer(&writer.as_any()).unwrap();
    }
    until("both instances end", || {
        let samples = pair.reader.read().unwrap();
        samples.iter().all(|sample| sample.info.instance_state == InstanceState::NotAliveDisposed)
    });
    assert_eq!(values(&pair.reader.take().unwrap()).len(), 4);
}

#[test]
fn late_readers_get_the_history_of_both() {
    let domain = common::fresh_domain();
    let [one, two] = [participant(domain), participant(domain)];
    let durable = |qos: QosSet| QosSet { durability: Durability::TransientLocal, ..qos };
    let writer: DataWriter<Marked> = writer(&one, "Late", durable(QosSet::writer().keep_last(1)));
    for value in [1, 3, 5] {
        writer.write(&marked(0, value)).unwrap();
        writer.write(&marked(1, value + 1)).unwrap();
    }
    let reader: DataReader<Marked> = reader(&two, "Late", durable(QosSet::reader().reliable().keep_last(1)));
    until("both arrive", || reader.read().unwrap().len() == 2);
    assert_eq!(values(&reader.take().unwrap()), [marked(0, 5), marked(1, 6)]);
}

thread_local! {
    /// How often this thread may encode a [`Fickle`] key.
    static ENCODINGS: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// A key of which encoding may fail.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Fickle([u8; 128]);

impl Cdr for Fickle {
    const ELEMENT: ElementKind = <[u8; 128]>::ELEMENT;
    const BYTES_MIN: usize = <[u8; 128]>::BYTES_MIN;
    const EXTENT: Extent = <[u8; 128]>::EXTENT;
    const PLAIN: Plain = <[u8; 128]>::PLAIN;

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), EncodeError> {
        let left = ENCODINGS.get().checked_sub(1).ok_or(EncodeError::NulInString)?;
        ENCODINGS.set(left);
        self.0.encode(encoder)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Malformed> {
        Cdr::decode(decoder).map(Self)
    }

    fn skip(decoder: &mut Decoder<'_>) -> Result<(), Malformed> {
        <[u8; 128]>::skip(decoder)
    }

    fn initial() -> Self {
        Self([0; 128])
    }

    fn describe(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        <[u8; 128]>::describe(types)
    }
}

#[derive(Clone, Copy, DdsType)]
#[dds(name = "Doubtful", final)]
struct Doubtful {
    #[dds(key)]
    key: Fickle,
    value: u32,
}

/// A write that has failed has not written, wherever it fails; one that has written says so, whatever else
/// becomes of the key.
#[test]
fn a_sample_whose_key_cannot_be_kept_was_written_all_the_same() {
    let mut written = 0;
    for (encodings, is_encoded) in (0..6).flat_map(|encodings| [(encodings, false), (encodings, true)]) {
        // By UDP, so that the thread that writes does not receive, which encodes keys, too.
        let config = Config { shared_memory: Use::Off, ..common::loopback() };
        let (offered, requested) = (QosSet::writer().keep_all(), QosSet::reader().reliable().keep_all());
        let pair = Pair::<Doubtful>::with(&config, offered, requested);
        let sample = |which| Doubtful { key: Fickle(marked(which, 0).key), value: 7 };
        pair.writer.write(&sample(0)).unwrap();
        let mut encoded = Vec::new();
        to_payload(&sample(1), XcdrVersion::Xcdr1, Endianness::Little, &mut encoded).unwrap();
        ENCODINGS.set(encodings);
        let result = if is_encoded {
            pair.writer.as_any().write_serialized(&encoded)
        } else {
            pair.writer.write(&sample(1))
        };
        ENCODINGS.set(u32::MAX);
        pair.writer.wait_for_acknowledgments(PATIENCE).unwrap();
        let taken = pair.reader.take().unwrap();
        assert_eq!(taken.len(), 1 + usize::from(result.is_ok()), "{encodings} encodings: {result:?}");
        assert!(taken.iter().all(|sample| sample.data.unwrap().value == 7));
        written += usize::from(result.is_ok());
    }
    assert!((6..12).contains(&written), "some fail before, others behind: {written}");
}
