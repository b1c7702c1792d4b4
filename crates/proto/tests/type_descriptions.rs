//! Types as others are told them: octet by octet what Cyclone DDS tells of the same IDL.

use plainsong_derive::DdsType;
use plainsong_proto::types::{ComponentPlace, TypeDescription, TypeInformation};

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", final)]
struct Position {
    x: f64,
    y: f32,
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto")]
enum Mode {
    Off = 0,
    On = 1,
    Broken = 7,
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", union, discriminator = i32)]
enum Choice {
    #[dds(case = 1)]
    Number(i32),
    #[dds(case(2, 3))]
    Text(String),
    #[dds(default)]
    Rest(u32),
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", mutable)]
struct Device {
    #[dds(key)]
    serial: u64,
    position: Position,
    #[dds(bound = 10)]
    track: Vec<Position>,
    corners: [Position; 4],
    matrix: [[i16; 3]; 2],
    mode: Mode,
    note: Option<String>,
    #[dds(bound = 1000)]
    big: Vec<i32>,
    flag: bool,
    choice: Choice,
    #[dds(bound = 300)]
    rows: Vec<Vec<f32>>,
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto")]
struct Reordered {
    #[dds(id = 5)]
    b: i32,
    #[dds(id = 3)]
    a: f64,
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto")]
struct Tree {
    value: i32,
    children: Vec<Self>,
}

// What `idlc` of Cyclone DDS 0.10.2 makes of the same types in IDL.
const POSITION: &str = concat!(
    "6000000001100040280000002400000014000000f1486a02287e4296f23ece454f126b00370000000000000004000000",
    "0000000002100040280000002400000014000000f2c9e3f72e346e514475b7d0df5f2000500000000000000004000000",
    "00000000",
);
const CHOICE: &str = concat!(
    "6000000001100040280000002400000014000000f11ca6cb6202375d804c72f0a5ebbf00640000000000000004000000",
    "0000000002100040280000002400000014000000f248f4b6374b99424c2e2f3955f4ca00930000000000000004000000",
    "00000000",
);
const DEVICE: &str = concat!(
    "f000000001100040700000006c00000014000000f1346de013328f991252a59b8f1a4e004a010000030000004c000000",
    "0300000014000000f1486a02287e4296f23ece454f126b003700000014000000f12224bf4d63ca08bd924534efb80900",
    "5200000014000000f11ca6cb6202375d804c72f0a5ebbf006400000002100040700000006c00000014000000f2fce362",
    "17f739254312e7c471028000c3010000030000004c0000000300000014000000f2c9e3f72e346e514475b7d0df5f2000",
    "5000000014000000f2ec389045fad9df2fd03746c0fb2e007900000014000000f248f4b6374b99424c2e2f3955f4ca00",
    "93000000",
);
const REORDERED: &str = concat!(
    "6000000001100040280000002400000014000000f1c2d423196b5ef973c913807e96f800370000000000000004000000",
    "0000000002100040280000002400000014000000f2fe4f38ecc7ed443a32c8fd977f0100500000000000000004000000",
    "00000000",
);

fn octets(hex: &str) -> Vec<u8> {
    let octet = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
    (0..hex.len()).step_by(2).map(octet).collect()
}

/// The order of the types that one depends on means nothing.
fn sorted(mut information: TypeInformation) -> TypeInformation {
    for ty in [&mut information.minimal, &mut information.complete].into_iter().flatten() {
        ty.dependencies.sort_unstable();
    }
    information
}

#[test]
fn types_are_told_as_cyclone_tells_them() {
    let position = TypeDescription::of::<Position>().expect("it can be described");
    assert_eq!(position.information.encode(), octets(POSITION));
    let choice = TypeDescription::of::<Choice>().expect("it can be described");
    assert_eq!(choice.information.encode(), octets(CHOICE));
    let device = TypeDescription::of::<Device>().expect("it can be described").information;
    assert_eq!(
        sorted(device.clone()),
        sorted(TypeInformation::decode(&octets(DEVICE)).expect("well-formed"))
    );
    assert_eq!(device.encode().len(), octets(DEVICE).len());
}

/// A comment of Annex B wants the members of minimal types in the order of their ids, XTypes 1.3 §7.3.4.5 as
/// they are declared: so do all products.
#[test]
fn members_are_told_in_the_order_of_their_declaration() {
    let ours = TypeDescription::of::<Reordered>().expect("it can be described").information;
    assert_eq!(ours.encode(), octets(REORDERED));
}

#[test]
fn every_type_that_one_depends_on_is_told() {
    let device = TypeDescription::of::<Device>().expect("it can be described");
    // Device, Position, Mode and Choice, each minimal and complete.
    assert_eq!(device.objects.len(), 8);
    let complete = device.information.complete.expect("a complete type");
    assert_eq!(complete.dependencies.len(), 3);
    assert_eq!(device.objects.get(&complete.id).map(Vec::len), usize::try_from(complete.bytes).ok());
}

#[test]
fn a_type_that_contains_itself_is_told() {
    let tree = TypeDescription::of::<Tree>().expect("it can be described");
    let complete = tree.information.complete.expect("a complete type");
    assert_eq!(complete.id.component, Some(ComponentPlace { length: 1, index: 1 }));
    assert_eq!(tree.objects.len(), 2);
}

mod other {
    use super::DdsType;

    #[derive(DdsType)]
    #[dds(crate = "plainsong_proto")]
    pub(super) struct Position {
        room: String,
    }

    #[derive(DdsType)]
    #[dds(crate = "plainsong_proto")]
    pub(super) enum Mode {
        Quiet = 2,
    }

    #[derive(DdsType)]
    #[dds(crate = "plainsong_proto", union, discriminator = u8)]
    pub(super) enum Choice {
        #[dds(case = 1)]
        Position(Position),
    }

    /// What it is made of has its name.
    #[derive(DdsType)]
    #[dds(crate = "plainsong_proto")]
    pub(super) struct Namesakes {
        count: u16,
    }
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto")]
struct Namesakes {
    position: Position,
    other_position: other::Position,
    mode: Mode,
    other_mode: other::Mode,
    choice: Choice,
    other_choice: other::Choice,
    namesakes: other::Namesakes,
}

/// Their names are the default, or the same on purpose: no two types are one because of it.
#[test]
fn types_of_one_name_are_told_apart() {
    let all = TypeDescription::of::<Namesakes>().expect("it can be described");
    assert_eq!(all.objects.len(), 2 * 8);
    for part in [
        TypeDescription::of::<Position>(),
        TypeDescription::of::<other::Position>(),
        TypeDescription::of::<Choice>(),
        TypeDescription::of::<other::Choice>(),
        TypeDescription::of::<other::Namesakes>(),
    ] {
        let part = part.expect("it can be described").objects;
        assert!(part.iter().all(|(hash, object)| all.objects.get(hash) == Some(object)));
    }
}

#[test]
fn types_of_one_name_are_told_apart_within_one_function_too() {
    let one = {
        #[derive(DdsType)]
        #[dds(crate = "plainsong_proto")]
        struct Part {
            x: u8,
        }
        <Part as plainsong_proto::cdr::Cdr>::describe
    };
    let two = {
        #[derive(DdsType)]
        #[dds(crate = "plainsong_proto")]
        struct Part {
            y: String,
        }
        <Part as plainsong_proto::cdr::Cdr>::describe
    };
    TypeDescription::build(|types| {
        let (first, second) = (one(types), two(types));
        assert!(first.is_some() && second.is_some());
        assert_ne!(first, second);
        assert_eq!(first, one(types), "each is the same type each time");
        second
    })
    .expect("it can be described");
}

/// A TypeObject would have other labels, and what reads by it would read other members.
#[test]
fn a_union_with_labels_that_no_type_object_has_is_not_told() {
    #[derive(DdsType)]
    #[dds(crate = "plainsong_proto", union, discriminator = u32)]
    enum Wide {
        #[dds(case = 0xffff_ffff)]
        Number(u8),
        #[dds(case = 0x8000_0000)]
        Text(String),
    }
    assert_eq!(TypeDescription::of::<Wide>(), None);
}
