//! What encoding and decoding allocate: nothing for bounded types, and never more than the input justifies.

use plainsong_derive::DdsType;
use plainsong_proto::cdr::{
    Endianness, OctetSeq, XcdrVersion, from_payload, from_shared_payload_over, key_hash, key_hash_of_payload,
    key_to_payload, to_payload,
};
use plainsong_proto::malformed::Malformed;
use plainsong_proto::payload::Payload;

mod counting;

use counting::allocated_by;

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", name = "ShapeType")]
struct Shape {
    #[dds(key, bound = 128)]
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
    additional_payload_size: Vec<u8>,
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", mutable)]
struct Fixed {
    #[dds(key)]
    id: u64,
    position: [f64; 3],
    matrix: [[f32; 4]; 4],
    parts: [Part; 5],
    flag: Option<bool>,
}

#[derive(DdsType, Debug, Clone, Copy, PartialEq)]
#[dds(crate = "plainsong_proto", appendable)]
struct Part {
    kind: Kind,
    weight: f32,
}

#[derive(DdsType, Debug, Clone, Copy, PartialEq)]
#[dds(crate = "plainsong_proto")]
enum Kind {
    Small,
    Large,
}

fn shape() -> Shape {
    Shape { color: "BLUE".to_owned(), x: 1, y: 2, shapesize: 3, additional_payload_size: vec![7; 100] }
}

fn fixed() -> Fixed {
    Fixed {
        id: 5,
        position: [1.0; 3],
        matrix: [[2.0; 4]; 4],
        parts: [Part { kind: Kind::Large, weight: 1.0 }; 5],
        flag: Some(true),
    }
}

const ALL: [(XcdrVersion, Endianness); 4] = [
    (XcdrVersion::Xcdr1, Endianness::Little),
    (XcdrVersion::Xcdr1, Endianness::Big),
    (XcdrVersion::Xcdr2, Endianness::Little),
    (XcdrVersion::Xcdr2, Endianness::Big),
];

#[test]
fn encoding_into_a_large_enough_buffer_allocates_nothing() {
    let (shape, fixed) = (shape(), fixed());
    let mut buffer = Vec::with_capacity(4096);
    for (version, endianness) in ALL {
        let (result, allocated) = allocated_by(|| {
            to_payload(&shape, version, endianness, &mut buffer)?;
            key_to_payload(&shape, version, endianness, &mut buffer)?;
            to_payload(&fixed, version, endianness, &mut buffer)
        });
        assert_eq!((result, allocated.calls), (Ok(()), 0), "{version:?} {endianness:?}");
        buffer.clear();
    }
}

#[test]
fn key_hashes_allocate_nothing() {
    let (shape, fixed) = (shape(), fixed());
    let (hashes, allocated) = allocated_by(|| (key_hash(&shape), key_hash(&fixed)));
    assert!(hashes.0.is_ok() && hashes.1.is_ok());
    assert_eq!(allocated.calls, 0);
}

#[test]
fn decoding_a_type_of_fixed_size_allocates_nothing() {
    for (version, endianness) in ALL {
        let mut payload = Vec::new();
        to_payload(&fixed(), version, endianness, &mut payload).unwrap();
        let (decoded, allocated) = allocated_by(|| from_payload::<Fixed>(&payload));
        assert_eq!((decoded, allocated.calls), (Ok(fixed()), 0), "{version:?} {endianness:?}");
    }
}

#[test]
fn decoding_a_shape_allocates_its_string_and_its_sequence() {
    let mut payload = Vec::new();
    to_payload(&shape(), XcdrVersion::Xcdr2, Endianness::Little, &mut payload).unwrap();
    let (decoded, allocated) = allocated_by(|| from_payload::<Shape>(&payload));
    assert_eq!((decoded, allocated.calls, allocated.octets), (Ok(shape()), 2, 4 + 100));
}

#[test]
fn decoding_over_a_value_allocates_only_what_is_longer() {
    #[derive(DdsType, Debug, Clone, PartialEq)]
    #[dds(crate = "plainsong_proto", appendable)]
    struct Scan {
        name: String,
        ranges: Vec<f32>,
        shapes: Vec<Shape>,
        octets: OctetSeq<'static>,
    }
    let scan = |length: usize| Scan {
        name: "n".repeat(length),
        ranges: vec![length as f32; length],
        shapes: vec![shape(); length],
        octets: vec![7; 30 + length].into(),
    };
    for (version, endianness) in ALL {
        let mut value = scan(4);
        for (length, calls) in [(4, 0), (1, 0), (3, 2 * 2), (5, 3 + 2 * 2 + 1)] {
            let mut payload = Vec::new();
            to_payload(&scan(length), version, endianness, &mut payload).unwrap();
            let payload = Payload::from_vec(payload);
            let (result, allocated) = allocated_by(|| from_shared_payload_over(&payload, &mut value));
            assert_eq!((result, allocated.calls), (Ok(()), calls), "{length} {version:?} {endianness:?}");
            assert_eq!(value, scan(length));
        }
    }
}

#[test]
fn the_key_hash_of_a_payload_does_not_copy_what_is_no_key() {
    let large = Shape { additional_payload_size: vec![7; 5_000_000], ..shape() };
    for (version, endianness) in ALL {
        let mut payload = Vec::new();
        to_payload(&large, version, endianness, &mut payload).unwrap();
        let (hash, allocated) = allocated_by(|| key_hash_of_payload::<Shape>(&payload, false));
        assert_eq!(hash.ok(), key_hash(&large).ok());
        assert!(allocated.octets < 100, "{allocated:?} {version:?} {endianness:?}");
    }
}

#[test]
fn a_small_hostile_payload_cannot_make_the_reader_allocate_much() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(crate = "plainsong_proto")]
    struct Hungry {
        rows: Vec<Vec<Vec<String>>>,
        shapes: Vec<Fixed>,
    }
    // Every length claims four billion.
    let mut hostile = vec![0xff; 65_000];
    for id in [[0, 0], [0, 1], [0, 8], [0, 9]] {
        hostile[..4].copy_from_slice(&[id[0], id[1], 0, 0]);
        let (decoded, allocated) = allocated_by(|| from_payload::<Hungry>(&hostile));
        assert_eq!((decoded, allocated.calls), (Err(Malformed::LengthOutOfRange), 0));
    }
    // One row after the other, each empty: memory stays within a multiple of the input.
    let mut rows = vec![0, 1, 0, 0];
    rows.extend_from_slice(&16_000_u32.to_le_bytes());
    rows.resize(4 + 4 + 64_000 + 4, 0);
    let (decoded, allocated) = allocated_by(|| from_payload::<Hungry>(&rows));
    assert_eq!(decoded.map(|hungry| hungry.rows.len()), Ok(16_000));
    assert!(allocated.octets <= 16_000 * size_of::<Vec<Vec<String>>>());
}
