//! Structures of numbers are copied whole, and the copy is what member by member would have written.
//!
//! Also run under Miri, which watches the one cast that the derive writes.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]
#![forbid(unsafe_code)]

use plainsong_derive::DdsType;
use plainsong_proto::cdr::{self, Cdr, Endianness, XcdrVersion, from_payload, to_payload};

/// No padding: its memory is its wire form in both versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(final, crate = "plainsong_proto")]
#[repr(C)]
struct Pose {
    position: [f64; 3],
    covariance: [[f32; 3]; 2],
    #[dds(key)]
    id: u32,
    flags: [u8; 4],
}

/// The same, but nobody promised how it lies in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(final, crate = "plainsong_proto")]
struct AnyLayout {
    position: [f64; 3],
    covariance: [[f32; 3]; 2],
    #[dds(key)]
    id: u32,
    flags: [u8; 4],
}

/// Three octets of padding in memory, as on the wire, but not initialised.
#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(final, crate = "plainsong_proto")]
#[repr(C)]
struct Padded {
    short: u8,
    long: u32,
}

/// Aligned to 8 octets in memory and in version 1, to 4 in version 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(final, crate = "plainsong_proto")]
#[repr(C)]
struct Mixed {
    wide: f64,
    a: u32,
    b: u32,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(final, crate = "plainsong_proto")]
struct Path {
    name: String,
    poses: Vec<Pose>,
    ends: [Mixed; 2],
}

/// The same without a promised layout.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(final, crate = "plainsong_proto")]
struct AnyPath {
    name: String,
    poses: Vec<AnyLayout>,
    ends: [AnyMixed; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(final, crate = "plainsong_proto")]
struct AnyMixed {
    wide: f64,
    a: u32,
    b: u32,
}

fn pose(number: u32) -> Pose {
    let value = f64::from(number);
    Pose {
        position: [value, -value, value * 1e9],
        covariance: [[value as f32; 3], [0.5; 3]],
        id: number,
        flags: [1, 2, 3, number as u8],
    }
}

fn any_layout(Pose { position, covariance, id, flags }: Pose) -> AnyLayout {
    AnyLayout { position, covariance, id, flags }
}

#[test]
fn a_structure_of_numbers_without_padding_is_its_memory() {
    let values = [pose(1), pose(2)];
    let octets = Pose::plain_octets(&values).unwrap();
    assert_eq!(octets.len(), 2 * size_of::<Pose>());
    let mut member_by_member = Vec::new();
    for value in values.map(any_layout) {
        let mut payload = Vec::new();
        to_payload(&value, XcdrVersion::Xcdr2, Endianness::NATIVE, &mut payload).unwrap();
        member_by_member.extend_from_slice(&payload[4..]);
    }
    assert_eq!(octets, member_by_member);
}

#[test]
fn padding_and_an_unknown_layout_are_not_copied() {
    assert_eq!(Padded::plain_octets(&[Padded::default()]), None);
    assert_eq!(AnyLayout::plain_octets(&[AnyLayout::default()]), None);
}

#[test]
fn the_copy_is_what_member_by_member_writes_in_every_form() {
    let (path, any) = (
        Path {
            name: "odd".into(),
            poses: (0..5).map(pose).collect(),
            ends: [Mixed { wide: 1.5, a: 1, b: 2 }; 2],
        },
        AnyPath {
            name: "odd".into(),
            poses: (0..5).map(pose).map(any_layout).collect(),
            ends: [AnyMixed { wide: 1.5, a: 1, b: 2 }; 2],
        },
    );
    for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
        for endianness in [Endianness::Little, Endianness::Big] {
            let (mut copied, mut written) = (Vec::new(), Vec::new());
            to_payload(&path, version, endianness, &mut copied).unwrap();
            to_payload(&any, version, endianness, &mut written).unwrap();
            assert_eq!(copied, written, "{version:?} {endianness:?}");
            assert_eq!(from_payload::<Path>(&copied).unwrap(), path);
        }
    }
    let (mut copied, mut written) = (Vec::new(), Vec::new());
    cdr::key_to_payload(&pose(7), XcdrVersion::Xcdr2, Endianness::NATIVE, &mut copied).unwrap();
    cdr::key_to_payload(&any_layout(pose(7)), XcdrVersion::Xcdr2, Endianness::NATIVE, &mut written).unwrap();
    assert_eq!(copied, written, "keys are members, not memory");
    assert_eq!(cdr::key_hash(&pose(7)).unwrap(), cdr::key_hash(&any_layout(pose(7))).unwrap());
}

#[test]
fn a_payload_of_such_a_structure_is_the_structure() {
    /// Aligned as memory that is shared is: what is behind the four octets of encapsulation.
    #[repr(align(8))]
    struct Place([u8; 4 + 4 + size_of::<Pose>()]);

    for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
        let bytes = cdr::plain_payload_bytes::<Pose>(version).unwrap();
        assert_eq!(bytes, 4 + size_of::<Pose>());
        let mut place = Place([0xee; _]);
        let payload = &mut place.0[4..];
        *cdr::plain_payload_over::<Pose>(payload, version).unwrap() = pose(3);
        let mut encoded = Vec::new();
        to_payload(&pose(3), version, Endianness::NATIVE, &mut encoded).unwrap();
        assert_eq!(payload, encoded);
        assert_eq!(cdr::plain_in_payload::<Pose>(payload), Some(&pose(3)));
        assert_eq!(cdr::plain_in_payload::<Pose>(&payload[..bytes - 1]), None, "too short");
        assert_eq!(cdr::plain_in_payload::<AnyLayout>(payload), None);
        assert!(cdr::plain_payload_over::<Pose>(&mut place.0[..bytes], version).is_none(), "not aligned");
        let mut other = Vec::new();
        to_payload(&pose(3), version, Endianness::Big, &mut other).unwrap();
        place.0[4..].copy_from_slice(&other);
        let read = cdr::plain_in_payload::<Pose>(&place.0[4..]);
        assert_eq!(read.is_some(), Endianness::NATIVE == Endianness::Big, "of another byte order");
    }
    assert_eq!(cdr::plain_payload_bytes::<AnyLayout>(XcdrVersion::Xcdr2), None);
    let octets = &[0; size_of::<Padded>()];
    assert!(Padded::plain_ref(octets).is_none() && Padded::plain_mut(&mut octets.to_vec()).is_none());
}
