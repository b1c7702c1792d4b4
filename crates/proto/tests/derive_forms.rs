//! What `#[derive(DdsType)]` can say beyond plain structures: bases, bit masks and sets, maps, inner bounds,
//! values that do not fit.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use plainsong_derive::DdsType;
use plainsong_proto::cdr::{
    DdsType as _, EncodeError, Endianness, Float128, WChar, XcdrVersion, from_payload, key_hash,
    key_to_payload, to_payload,
};
use plainsong_proto::filter::Filter;
use plainsong_proto::malformed::Malformed;
use plainsong_proto::payload::Payload;
use plainsong_proto::types::{Definition, TypeDescription, TypeIdentifier, TypeObject};

fn payload<T: plainsong_proto::cdr::DdsType>(value: &T, version: XcdrVersion) -> Vec<u8> {
    let mut payload = Vec::new();
    to_payload(value, version, Endianness::Little, &mut payload).expect("it can be encoded");
    payload
}

/// Both versions, both byte orders.
#[track_caller]
fn assert_survives<T: plainsong_proto::cdr::DdsType + PartialEq + Debug>(value: &T) {
    for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
        for endianness in [Endianness::Little, Endianness::Big] {
            let mut payload = Vec::new();
            to_payload(value, version, endianness, &mut payload).expect("it can be encoded");
            assert_eq!(&from_payload::<T>(&payload).expect("it can be decoded"), value, "{version:?}");
        }
    }
}

fn object<T: plainsong_proto::cdr::DdsType>() -> TypeObject {
    let description = TypeDescription::of::<T>().expect("it can be described");
    let root = description.information.complete.as_ref().expect("a complete type").id;
    description.object(root).expect("well-formed")
}

/// A base, its extension, the extension of that, and all of it without base.
macro_rules! family {
    ($module:ident, $extensibility:ident) => {
        mod $module {
            use super::DdsType;

            #[derive(DdsType, Clone, Debug, Default, PartialEq)]
            #[dds(crate = "plainsong_proto", $extensibility)]
            pub(super) struct Vehicle {
                #[dds(key)]
                pub(super) plate: u16,
                pub(super) speed: u64,
            }

            #[derive(DdsType, Clone, Debug, Default, PartialEq)]
            #[dds(crate = "plainsong_proto", $extensibility)]
            pub(super) struct Car {
                #[dds(base)]
                pub(super) vehicle: Vehicle,
                pub(super) doors: u8,
                #[dds(default = 4)]
                pub(super) wheels: u32,
            }

            #[derive(DdsType, Clone, Debug, Default, PartialEq)]
            #[dds(crate = "plainsong_proto", $extensibility)]
            pub(super) struct Taxi {
                #[dds(base)]
                pub(super) car: Car,
                pub(super) sign: Option<String>,
                #[dds(key)]
                pub(super) number: u8,
            }

            #[derive(DdsType, Clone, Debug, Default, PartialEq)]
            #[dds(crate = "plainsong_proto", $extensibility)]
            pub(super) struct Flat {
                #[dds(key)]
                pub(super) plate: u16,
                pub(super) speed: u64,
                pub(super) doors: u8,
                #[dds(default = 4)]
                pub(super) wheels: u32,
                pub(super) sign: Option<String>,
                #[dds(key)]
                pub(super) number: u8,
            }
        }
    };
}

family!(final_ones, final);
family!(appendable_ones, appendable);
family!(mutable_ones, mutable);

macro_rules! family_tests {
    ($($module:ident),*) => { $(
        {
            use $module::{Car, Flat, Taxi, Vehicle};
            let vehicle = Vehicle { plate: 0x1234, speed: 99 };
            let car = Car { vehicle, doors: 5, wheels: 6 };
            let taxi = Taxi { car, sign: Some("free".to_owned()), number: 7 };
            let flat = Flat {
                plate: 0x1234, speed: 99, doors: 5, wheels: 6, sign: Some("free".to_owned()), number: 7,
            };
            assert_survives(&taxi);
            assert!(Taxi::KEYED && Taxi::KEY_BYTES_MAX == Flat::KEY_BYTES_MAX);
            assert_eq!(key_hash(&taxi).unwrap(), key_hash(&flat).unwrap());
            for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
                assert_eq!(payload(&taxi, version), payload(&flat, version), "{version:?}");
                let [mut one, mut other] = [Vec::new(), Vec::new()];
                key_to_payload(&taxi, version, Endianness::Little, &mut one).unwrap();
                key_to_payload(&flat, version, Endianness::Little, &mut other).unwrap();
                assert_eq!(one, other, "{version:?}");
                let key = plainsong_proto::cdr::key_from_payload::<Taxi>(&one).unwrap();
                assert_eq!((key.car.vehicle.plate, key.number, key.car.wheels), (0x1234, 7, 4));
                let sample = payload(&flat, version);
                let key = plainsong_proto::cdr::key_of_payload::<Taxi>(&sample, false).unwrap();
                assert_eq!((key.car.vehicle.plate, key.number, key.car.vehicle.speed), (0x1234, 7, 0));
            }
            let filter = Filter::<Taxi>::query("speed = 99 AND doors = 5 AND number = 7", &[]).unwrap();
            assert!(filter.passes(&taxi));
            let reference: &Car = taxi.as_ref();
            assert_eq!(reference.doors, 5);
        }
    )* };
}

#[test]
fn an_extension_is_sent_as_if_the_members_of_its_bases_were_its_own() {
    family_tests!(final_ones, appendable_ones, mutable_ones);
    let Definition::Structure { base, members, .. } = object::<mutable_ones::Taxi>().definition else {
        panic!("a structure");
    };
    assert!(matches!(base, TypeIdentifier::Hash(_)));
    assert_eq!(members.iter().map(|it| it.id).collect::<Vec<_>>(), [4, 5]);
}

/// The ids of both are mixed: the key holder is in their order.
#[test]
fn keys_of_base_and_extension_are_in_the_order_of_their_ids() {
    #[derive(DdsType, Default)]
    #[dds(crate = "plainsong_proto", final)]
    struct Base {
        #[dds(key, id = 9)]
        last: u8,
        #[dds(key, id = 2)]
        second: u8,
    }
    #[derive(DdsType, Default)]
    #[dds(crate = "plainsong_proto", final)]
    struct Extension {
        #[dds(base)]
        base: Base,
        #[dds(key, id = 5)]
        third: u8,
        #[dds(key, id = 1)]
        first: u8,
    }
    let value = Extension { base: Base { last: 4, second: 2 }, third: 3, first: 1 };
    let hash = key_hash(&value).unwrap();
    assert_eq!(hash.0[..5], [1, 2, 3, 4, 0]);
}

#[derive(DdsType, Clone, Copy, Debug, Default, PartialEq)]
#[dds(crate = "plainsong_proto", bitmask, bit_bound = 12)]
#[dds(flag(READY), flag(BROKEN = 7, name = "broken", doc = "It does not turn."), flag(HOT))]
struct Status(u16);

#[derive(DdsType, Clone, Copy, Debug, Default, PartialEq)]
#[dds(crate = "plainsong_proto", bitset)]
struct Header {
    #[dds(bits = 3)]
    version: u8,
    #[dds(bits = 1)]
    urgent: bool,
    #[dds(bits = 10, position = 6)]
    offset: i16,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(crate = "plainsong_proto")]
struct Flags {
    #[dds(key)]
    status: Status,
    header: Header,
    all: Vec<Status>,
    long: Float128,
}

#[test]
fn bit_masks_and_bit_sets_are_integers_on_the_wire() {
    let status = Status::READY | Status::BROKEN | Status::HOT;
    assert_eq!(status.bits(), 0b1_1000_0001);
    assert!(status.contains(Status::HOT | Status::READY) && !(status - Status::HOT).contains(Status::HOT));
    let mut changed = Status::empty();
    changed.insert(Status::HOT);
    changed |= Status::READY;
    changed.remove(Status::READY);
    assert_eq!(changed & Status::from_bits(0xffff), Status::HOT);
    assert!(!changed.is_empty());
    let header = Header { version: 5, urgent: true, offset: -2 };
    let value = Flags { status, header, all: vec![status, changed], long: 1.5.into() };
    assert_survives(&value);
    let octets = payload(&value, XcdrVersion::Xcdr2);
    assert_eq!(octets[8..12], [0x81, 1, 0b1000_1101, 0b1111_1111], "{octets:x?}");
    let too_large = Flags { header: Header { version: 8, ..header }, ..value };
    let refused = to_payload(&too_large, XcdrVersion::Xcdr2, Endianness::Little, &mut Vec::new());
    assert_eq!(refused, Err(EncodeError::BitsOutOfRange { member: "version", bits: 3 }));
    let filter = Filter::<Flags>::query("header.urgent = TRUE AND header.offset < 0", &[]).unwrap();
    assert!(filter.passes(&Flags { header, ..Flags::default() }));
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
#[dds(crate = "plainsong_proto")]
struct Bounded {
    #[dds(bound = 3, element(bound = 2))]
    names: Vec<String>,
    #[dds(bound = 2, key_element(bound = 1), element(bound = 2))]
    map: BTreeMap<String, Vec<u8>>,
    #[dds(element(element(bound = 2)))]
    grid: [[String; 2]; 1],
    table: HashMap<u32, String>,
    #[dds(element(bound = 1))]
    perhaps: Option<Vec<String>>,
    #[dds(element(bound = 2))]
    boxed: Box<[String; 1]>,
}

#[test]
fn bounds_within_collections_are_checked_both_ways() {
    let fits = Bounded {
        names: vec!["ab".into(), "c".into()],
        map: [("a".to_owned(), vec![1, 2])].into(),
        grid: [["ab".into(), String::new()]],
        table: [(1, "long enough".to_owned()), (2, String::new())].into(),
        perhaps: Some(vec!["a".into()]),
        boxed: Box::new(["ab".into()]),
    };
    assert_survives(&fits);
    let long = || "abc".to_owned();
    let refused = [
        Bounded { names: vec![long()], ..fits.clone() },
        Bounded { map: [(long(), Vec::new())].into(), ..fits.clone() },
        Bounded { map: [(String::new(), vec![0; 3])].into(), ..fits.clone() },
        Bounded { grid: [[String::new(), long()]], ..fits.clone() },
        Bounded { perhaps: Some(vec![long()]), ..fits.clone() },
        Bounded { boxed: Box::new([long()]), ..fits.clone() },
    ];
    for value in refused {
        let encoded = to_payload(&value, XcdrVersion::Xcdr2, Endianness::Little, &mut Vec::new());
        assert!(matches!(encoded, Err(EncodeError::BoundExceeded { .. })), "{value:?}");
    }
    #[derive(DdsType)]
    #[dds(crate = "plainsong_proto")]
    struct Unbounded {
        names: Vec<String>,
    }
    let sent = payload(&Unbounded { names: vec![long()] }, XcdrVersion::Xcdr2);
    assert_eq!(from_payload::<Bounded>(&sent).unwrap_err(), Malformed::LengthOutOfRange);
}

#[derive(DdsType, Clone, Copy, Debug, Default, PartialEq)]
#[dds(crate = "plainsong_proto")]
enum Mode {
    #[default]
    Off,
    On,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto")]
struct Inner {
    mode: Mode,
}

#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(crate = "plainsong_proto")]
enum MoreModes {
    Off,
    Broken = 9,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto")]
struct MoreInner {
    mode: MoreModes,
}

macro_rules! lenient {
    ($written:ident, $read:ident, $extensibility:ident) => {
        #[derive(DdsType, Clone, Debug, PartialEq)]
        #[dds(crate = "plainsong_proto", $extensibility)]
        struct $written {
            name: String,
            list: Vec<u8>,
            mode: MoreModes,
            names: Vec<String>,
            letters: Vec<String>,
            inner: Option<MoreInner>,
            last: u8,
        }

        #[derive(DdsType, Clone, Debug, PartialEq)]
        #[dds(crate = "plainsong_proto", $extensibility)]
        struct $read {
            #[dds(bound = 4, try_construct = "trim")]
            name: String,
            #[dds(bound = 2, try_construct = "use_default", default = vec![7])]
            list: Vec<u8>,
            #[dds(try_construct = "use_default", default = Mode::On)]
            mode: Mode,
            #[dds(bound = 2, try_construct = "trim", element(bound = 2, try_construct = "trim"))]
            names: Vec<String>,
            #[dds(element(bound = 1, try_construct = "use_default"))]
            letters: Vec<String>,
            #[dds(try_construct = "use_default")]
            inner: Option<Inner>,
            last: u8,
        }

        let written = $written {
            // The two octets of the last letter do not fit.
            name: "abcé".to_owned(),
            list: vec![1, 2, 3],
            mode: MoreModes::Broken,
            names: ["abc", "d", "e"].map(str::to_owned).to_vec(),
            letters: ["ab", "c"].map(str::to_owned).to_vec(),
            inner: Some(MoreInner { mode: MoreModes::Broken }),
            last: 42,
        };
        let expected = $read {
            name: "abc".to_owned(),
            list: vec![7],
            mode: Mode::On,
            names: ["ab", "d"].map(str::to_owned).to_vec(),
            letters: ["", "c"].map(str::to_owned).to_vec(),
            inner: None,
            last: 42,
        };
        for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
            let sent = payload(&written, version);
            assert_eq!(from_payload::<$read>(&sent).as_ref(), Ok(&expected), "{version:?}");
            let over = payload(&expected, version);
            let mut value = from_payload::<$read>(&over).unwrap();
            let shared = Payload::from_vec(sent);
            plainsong_proto::cdr::from_shared_payload_over(&shared, &mut value).unwrap();
            assert_eq!(value, expected);
        }
    };
}

#[test]
fn values_that_do_not_fit_become_what_their_member_says() {
    lenient!(WrittenFinal, ReadFinal, final);
    lenient!(WrittenAppendable, ReadAppendable, appendable);
    lenient!(WrittenMutable, ReadMutable, mutable);
    let discards = Inner { mode: Mode::Off };
    assert_survives(&discards);
    let sent = payload(&MoreInner { mode: MoreModes::Broken }, XcdrVersion::Xcdr2);
    assert_eq!(from_payload::<Inner>(&sent), Err(Malformed::InvalidEnum));
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", union, discriminator = WChar, mutable)]
enum ByLetter {
    #[dds(case = WChar(0x3b1), id = 0)]
    Alpha(u8),
    #[dds(default, case = WChar(0))]
    Other(String),
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", union, discriminator = Status)]
enum ByStatus {
    #[dds(case(Status::READY, Status::from_bits(3)))]
    Ready(u8),
    #[dds(case = Status::empty())]
    Nothing,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", union, discriminator = bool)]
enum ByTruth {
    #[dds(case = true)]
    Yes(i64),
    #[dds(case = false)]
    No(char),
}

#[test]
fn unions_are_over_anything_that_has_values() {
    assert_survives(&ByLetter::Alpha(3));
    assert_survives(&ByLetter::Other("x".to_owned()));
    assert_survives(&ByStatus::Ready(1));
    assert_survives(&ByStatus::Nothing);
    assert_survives(&ByTruth::Yes(-1));
    assert_survives(&ByTruth::No('é'));
    let Definition::Union { members, .. } = object::<ByLetter>().definition else { panic!("a union") };
    assert_eq!((members[0].id, members[0].labels.as_slice()), (0, &[0x3b1][..]));
    let Definition::Union { members, .. } = object::<ByStatus>().definition else { panic!("a union") };
    assert_eq!(members[0].labels, [1, 3]);
}
