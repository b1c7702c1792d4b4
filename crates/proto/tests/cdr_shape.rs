//! ShapeType of the OMG interoperability suite, octet by octet.

use plainsong_derive::DdsType;
use plainsong_proto::cdr::{
    DdsType, Endianness, XcdrVersion, from_payload, key_from_payload, key_hash, key_hash_of_payload,
    key_to_payload, to_payload,
};

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", name = "ShapeType", appendable)]
struct Shape {
    #[dds(key, bound = 128)]
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
    additional_payload_size: Vec<u8>,
}

fn blue() -> Shape {
    Shape { color: "BLUE".to_owned(), x: 10, y: 20, shapesize: 30, additional_payload_size: vec![1, 2, 3] }
}

fn payload(version: XcdrVersion, endianness: Endianness) -> Vec<u8> {
    let mut buffer = Vec::new();
    to_payload(&blue(), version, endianness, &mut buffer).expect("a shape can be encoded");
    buffer
}

#[test]
fn xcdr1_little_endian() {
    let golden = [
        0, 1, 0, 1, // CDR_LE, one octet of padding
        5, 0, 0, 0, b'B', b'L', b'U', b'E', 0, 0, 0, 0, // color and alignment
        10, 0, 0, 0, 20, 0, 0, 0, 30, 0, 0, 0, // x, y, shapesize
        3, 0, 0, 0, 1, 2, 3, // additional_payload_size
        0, // padding
    ];
    assert_eq!(payload(XcdrVersion::Xcdr1, Endianness::Little), golden);
    assert_eq!(from_payload::<Shape>(&golden), Ok(blue()));
}

#[test]
fn xcdr1_big_endian() {
    let golden = [
        0, 0, 0, 1, // CDR_BE, one octet of padding
        0, 0, 0, 5, b'B', b'L', b'U', b'E', 0, 0, 0, 0, // color and alignment
        0, 0, 0, 10, 0, 0, 0, 20, 0, 0, 0, 30, // x, y, shapesize
        0, 0, 0, 3, 1, 2, 3, // additional_payload_size
        0, // padding
    ];
    assert_eq!(payload(XcdrVersion::Xcdr1, Endianness::Big), golden);
    assert_eq!(from_payload::<Shape>(&golden), Ok(blue()));
}

#[test]
fn xcdr2_little_endian() {
    let golden = [
        0, 9, 0, 1, // D_CDR2_LE, one octet of padding
        31, 0, 0, 0, // DHEADER
        5, 0, 0, 0, b'B', b'L', b'U', b'E', 0, 0, 0, 0, // color and alignment
        10, 0, 0, 0, 20, 0, 0, 0, 30, 0, 0, 0, // x, y, shapesize
        3, 0, 0, 0, 1, 2, 3, // additional_payload_size
        0, // padding
    ];
    assert_eq!(payload(XcdrVersion::Xcdr2, Endianness::Little), golden);
    assert_eq!(from_payload::<Shape>(&golden), Ok(blue()));
}

#[test]
fn keys() {
    assert_eq!(Shape::KEY_BYTES_MAX, Some(133));
    let hash = key_hash(&blue()).unwrap();
    for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
        for endianness in [Endianness::Little, Endianness::Big] {
            let sample = payload(version, endianness);
            assert_eq!(key_hash_of_payload::<Shape>(&sample, false), Ok(hash));
            let mut key = Vec::new();
            key_to_payload(&blue(), version, endianness, &mut key).unwrap();
            assert_eq!(key_hash_of_payload::<Shape>(&key, true), Ok(hash));
            assert_eq!(key_from_payload::<Shape>(&key).unwrap().color, "BLUE");
        }
    }
    // MD5 of 00000005 "BLUE" 00.
    assert_eq!(hash.to_string(), "cac217c318363f8ef1160eeedef9e886");
}

#[test]
fn a_short_key_is_longer_than_a_key_hash() {
    let golden = [
        0, 1, 0, 3, // CDR_LE, three octets of padding
        5, 0, 0, 0, b'B', b'L', b'U', b'E', 0, 0, 0, 0, // color and padding
        0, 0, 0, 0, // Fast DDS takes 16 octets for the key hash
    ];
    let mut key = Vec::new();
    key_to_payload(&blue(), XcdrVersion::Xcdr1, Endianness::Little, &mut key).unwrap();
    assert_eq!(key, golden);
    key.clear();
    let long = Shape { color: "TURQUOISE-BLUE".to_owned(), ..blue() };
    key_to_payload(&long, XcdrVersion::Xcdr1, Endianness::Little, &mut key).unwrap();
    assert_eq!(key.len(), 4 + 4 + 16, "a longer one is left as it is");
}

#[test]
fn keys_of_both_generations_of_cyclone_dds_are_read() {
    let hash = key_hash(&blue()).unwrap();
    for golden in [
        // Cyclone DDS 11.0.1: DHEADER, padding not announced.
        &[0, 9, 0, 0, 9, 0, 0, 0, 5, 0, 0, 0, b'B', b'L', b'U', b'E', 0, 0, 0, 0][..],
        // Cyclone DDS 0.10.2: no DHEADER.
        &[0, 9, 0, 3, 5, 0, 0, 0, b'B', b'L', b'U', b'E', 0, 0, 0, 0],
    ] {
        assert_eq!(key_from_payload::<Shape>(golden).unwrap().color, "BLUE");
        assert_eq!(key_hash_of_payload::<Shape>(golden, true), Ok(hash));
    }
}

#[test]
fn a_key_of_integers_without_a_dheader_is_not_mistaken() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(crate = "plainsong_proto", appendable)]
    struct Seat {
        #[dds(key)]
        row: i32,
        #[dds(key)]
        number: i32,
    }
    // The row looks like the length of what follows.
    let payload = [0, 9, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0];
    assert_eq!(key_from_payload(&payload), Ok(Seat { row: 4, number: 7 }));
    assert!(key_from_payload::<Seat>(&payload[..8]).is_err());
}
