//! Types as others are told them, octet by octet what Cyclone DDS tells of the same IDL,
//! `golden/type_hashes.idl`: `idlc` 0.10.2, and of what that does not know the Python package 11.0.1.

use plainsong_derive::DdsType;
use plainsong_proto::types::{TypeDescription, TypeInformation};

#[derive(DdsType, Clone, Copy)]
#[dds(crate = "plainsong_proto", name = "gold::inner::Point", final, nested)]
struct Point {
    x: f64,
    y: f64,
}

#[derive(DdsType, Clone, Copy, PartialEq)]
#[dds(crate = "plainsong_proto", name = "gold::inner::Colour")]
enum Colour {
    #[dds(name = "RED")]
    Red,
    #[dds(name = "GREEN")]
    Green,
    #[dds(name = "BLUE")]
    Blue,
}

#[derive(DdsType, Clone, Copy, PartialEq)]
#[dds(crate = "plainsong_proto", name = "gold::inner::Status", bitmask, flag(READY), flag(BROKEN = 7))]
struct Status(u8);

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", name = "gold::Base", appendable)]
struct Base {
    #[dds(key, bound = 16)]
    name: String,
    id: i32,
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", name = "gold::Derived", appendable)]
struct Derived {
    #[dds(base)]
    base: Base,
    place: Point,
    colour: Colour,
    status: Status,
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", name = "gold::Hashed", mutable, autoid = "hash")]
struct Hashed {
    #[dds(key)]
    one: i32,
    two: Option<String>,
    #[dds(id = 5, must_understand, octet)]
    three: u8,
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", name = "gold::Simple", final)]
struct Simple {
    #[dds(octet)]
    data: Vec<u8>,
    #[dds(bound = 300)]
    path: Vec<Point>,
    grid: [[i32; 3]; 2],
    #[dds(bound = 3, element(bound = 5))]
    names: Vec<String>,
    colours: [Colour; 2],
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", name = "gold::Choice", appendable, union, discriminator = Colour)]
enum Choice {
    #[dds(case = Colour::Red, name = "number")]
    Number(i32),
    #[dds(case(Colour::Green, Colour::Blue), name = "point", external)]
    Point(Box<Point>),
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", name = "gold::Letter", final, union, discriminator = char)]
enum Letter {
    #[dds(case = 'a', name = "first", octet)]
    First(u8),
    #[dds(default = '\0', name = "other", bound = 300)]
    Other(String),
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", name = "gold::Marked", appendable)]
struct Marked {
    #[dds(default = 7)]
    seven: i32,
    #[dds(external)]
    there: Box<Point>,
    #[dds(bound = 8)]
    text: String,
    number: i32,
    choice: Option<Choice>,
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", name = "gold::Node", appendable)]
struct Node {
    value: i32,
    children: Vec<Self>,
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", name = "gold::List", appendable)]
struct List {
    value: i32,
    next: Option<Box<Self>>,
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", name = "gold::Holder", final)]
struct Holder {
    status: Status,
    letter: plainsong_proto::cdr::WChar,
    small: i8,
    #[dds(octet)]
    data: Vec<u8>,
}

/// What typedefs name.
#[derive(DdsType)]
#[dds(crate = "plainsong_proto", name = "names::Point", final)]
struct NamedPoint {
    x: f64,
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", name = "names::Named", final)]
struct Named {
    #[dds(key, alias = "names::Metres")]
    a: i32,
    #[dds(alias = "names::Depth", alias = "names::Metres")]
    b: i32,
    #[dds(alias = "names::Name", bound = 8)]
    c: String,
    #[dds(alias = "names::Path", bound = 4, element(alias = "names::Metres"))]
    d: Vec<i32>,
    #[dds(alias = "names::Row")]
    e: [i16; 3],
    #[dds(element(alias = "names::Row"))]
    f: [[i16; 3]; 2],
    #[dds(element(alias = "names::Row"))]
    g: Vec<[i16; 3]>,
    #[dds(alias = "names::Place")]
    h: NamedPoint,
    #[dds(element(alias = "names::Place"))]
    i: Vec<NamedPoint>,
    #[dds(alias = "names::Depth", alias = "names::Metres")]
    j: Option<i32>,
    #[dds(element(element(alias = "names::Metres")))]
    k: [[i32; 3]; 2],
    #[dds(bound = 2, element(alias = "names::Name", bound = 8))]
    l: Vec<String>,
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", name = "names::Which", union, discriminator = i32, final)]
enum Which {
    #[dds(case = 1, name = "a", alias = "names::Metres")]
    A(i32),
    #[dds(default, name = "b", alias = "names::Path", bound = 4, element(alias = "names::Metres"))]
    B(Vec<i32>),
}

#[derive(DdsType)]
#[dds(crate = "plainsong_proto", name = "told::Ranged", mutable)]
struct Ranged {
    #[dds(unit = "m")]
    one: i32,
    #[dds(min = 1.5)]
    two: f64,
    #[dds(min = 1, max = 200, octet)]
    three: u8,
    #[dds(max = 7)]
    four: f64,
    #[dds(min = -3)]
    five: i64,
    #[dds(min = 2)]
    six: f32,
    #[dds(unit = "s")]
    seven: Option<u16>,
    #[dds(unit = "m")]
    eight: Vec<f64>,
    #[dds(max = 3_000_000_000)]
    nine: u32,
    #[dds(max = 5_000_000_000)]
    ten: u64,
}

/// A typedef of what contains it.
#[derive(DdsType)]
#[dds(crate = "plainsong_proto", name = "names::Item")]
struct Item {
    x: i32,
    #[dds(alias = "names::Items")]
    more: Vec<Self>,
    #[dds(alias = "names::Items")]
    again: Vec<Self>,
}

const BASE: &str = concat!(
    "6000000001100040280000002400000014000000f1abc0121c3e0f1ff679e52aab369500370000000000000004000000",
    "0000000002100040280000002400000014000000f2cff40267f4c135f2a0bc539661e600550000000000000004000000",
    "00000000",
);
const DERIVED: &str = concat!(
    "2001000001100040880000008400000014000000f176aa4f26026e4354a09f9ae4e6df00810000000400000064000000",
    "0400000014000000f1abc0121c3e0f1ff679e52aab3695003700000014000000f1fdb26fcec6d9c2c3cdb105f18c9000",
    "3700000014000000f175669210362875edafa63f866d05005200000014000000f12ff2ccfab21e1d57526cb2f0064f00",
    "3800000002100040880000008400000014000000f2e991bce1bcc78e7a4706e34094c500b90000000400000064000000",
    "0400000014000000f2cff40267f4c135f2a0bc539661e6005500000014000000f2138222721e2a6da88879fb14108700",
    "5800000014000000f2d5df84ca194736a8fd3d3eacc0ed008300000014000000f2580d4af7788662873dbcb6dac51300",
    "61000000",
);
const HASHED: &str = concat!(
    "6000000001100040280000002400000014000000f1b7c0e3bd44bc8b56c86bea589bb300470000000000000004000000",
    "0000000002100040280000002400000014000000f294414c1ccc4bb5a0639398da5efa00740000000000000004000000",
    "00000000",
);
const SIMPLE: &str = concat!(
    "c000000001100040580000005400000014000000f1f8afb9219e7ace26d9eaf03e8ba500b00000000200000034000000",
    "0200000014000000f1fdb26fcec6d9c2c3cdb105f18c90003700000014000000f175669210362875edafa63f866d0500",
    "5200000002100040580000005400000014000000f208f57a2a6849a97aa20733fe7a4100ee0000000200000034000000",
    "0200000014000000f2138222721e2a6da88879fb141087005800000014000000f2d5df84ca194736a8fd3d3eacc0ed00",
    "83000000",
);
const CHOICE: &str = concat!(
    "c000000001100040580000005400000014000000f14cc444857206b28a2d348284fcfb00700000000200000034000000",
    "0200000014000000f175669210362875edafa63f866d05005200000014000000f1fdb26fcec6d9c2c3cdb105f18c9000",
    "3700000002100040580000005400000014000000f231c8fd85c8d521b51e6c9d25e7ba009c0000000200000034000000",
    "0200000014000000f2d5df84ca194736a8fd3d3eacc0ed008300000014000000f2138222721e2a6da88879fb14108700",
    "58000000",
);
const LETTER: &str = concat!(
    "6000000001100040280000002400000014000000f1959cefd17666158ccde82a28aec1004c0000000000000004000000",
    "0000000002100040280000002400000014000000f2a47075cae8c7ba7152b2df506c7900780000000000000004000000",
    "00000000",
);
const MARKED: &str = concat!(
    "f000000001100040700000006c00000014000000f1dd4c065167fc58306b6cbe1ebb830085000000030000004c000000",
    "0300000014000000f1fdb26fcec6d9c2c3cdb105f18c90003700000014000000f14cc444857206b28a2d348284fcfb00",
    "7000000014000000f175669210362875edafa63f866d05005200000002100040700000006c00000014000000f2bcda2f",
    "2707b6e2db42013fb04e4300c9000000030000004c0000000300000014000000f2138222721e2a6da88879fb14108700",
    "5800000014000000f231c8fd85c8d521b51e6c9d25e7ba009c00000014000000f2d5df84ca194736a8fd3d3eacc0ed00",
    "83000000",
);
const NAMED: &str = concat!(
    "b001000001100040d0000000cc00000014000000f1c644bc2ebbd464e64d7e33f6888f00b601000007000000ac000000",
    "0700000014000000f18ea97f4529a6c07cb8096e567bd3001300000014000000f19079910e290cbfad717ee3f3a9e700",
    "2100000014000000f1bb0e9e739ac901fa7e34012aba6d001400000014000000f14c0449f5572a36e54687a38fd72400",
    "2600000014000000f1468acc04e9c3791914b099bdb022001e00000014000000f18728e64c06fd0aac2c726b2c626e00",
    "2100000014000000f162c7d98c9989a9ddda89d2e731db002700000002100040d0000000cc00000014000000f2e00817",
    "cc824e5944cb33f8255f3a00fc01000007000000ac0000000700000014000000f243f1ab2fc06a0819c7711a52540600",
    "2d00000014000000f21d5ce44a440d0d64a49730a2aecd003b00000014000000f2d855e275bb513cdd6c59919cd8f700",
    "2a00000014000000f22d9ee2b0bc786a8db75487d118de003c00000014000000f26cac72942a02f633d5b14930b06700",
    "3400000014000000f292289e51147139b5e4efe1895112003b00000014000000f27ff52f0ed7061c56962694f566f900",
    "40000000",
);
const WHICH: &str = concat!(
    "c000000001100040580000005400000014000000f1ca01b26cd4818fd9ddd2708abfbc00680000000200000034000000",
    "0200000014000000f18ea97f4529a6c07cb8096e567bd3001300000014000000f14c0449f5572a36e54687a38fd72400",
    "2600000002100040580000005400000014000000f2a85d69b159b82faff9d4f7a9a24e008c0000000200000034000000",
    "0200000014000000f243f1ab2fc06a0819c7711a525406002d00000014000000f22d9ee2b0bc786a8db75487d118de00",
    "3c000000",
);
const RANGED: &str = concat!(
    "6000000001100040280000002400000014000000f1ae478c56ec9ffd5ded00c9f03d0b00bb0000000000000004000000",
    "0000000002100040280000002400000014000000f21e4271ceaedc201db23d3be3330400da0100000000000004000000",
    "00000000",
);
// By the Python package.
const NODE: &str = concat!(
    "d000000001100040600000005c00000024000000b000000018000000f10068ccbad520a5124b542f2ef3b50001000000",
    "0100000058000000010000002c0000000100000024000000b000000018000000f10068ccbad520a5124b542f2ef3b500",
    "01000000000000006000000002100040600000005c00000024000000b000000018000000f24f8cc19866c48bc89d91ed",
    "628ff80001000000010000007b000000010000002c0000000100000024000000b000000018000000f24f8cc19866c48b",
    "c89d91ed628ff800010000000000000083000000",
);
const LIST: &str = concat!(
    "d000000001100040600000005c00000024000000b000000018000000f1f31d20d8278490049b68ede2f7470001000000",
    "0100000054000000010000002c0000000100000024000000b000000018000000f1f31d20d8278490049b68ede2f74700",
    "01000000000000005c00000002100040600000005c00000024000000b000000018000000f249ba5ffca3d05bdc3f11d9",
    "efde7f00010000000100000073000000010000002c0000000100000024000000b000000018000000f249ba5ffca3d05b",
    "dc3f11d9efde7f0001000000000000007b000000",
);
const HOLDER: &str = concat!(
    "9000000001100040400000003c00000014000000f1bf586342e4605b8c8eef11796a27006c000000010000001c000000",
    "0100000014000000f12ff2ccfab21e1d57526cb2f0064f003800000002100040400000003c00000014000000f2f5df64",
    "44cab370d96507267377d300a7000000010000001c0000000100000014000000f2580d4af7788662873dbcb6dac51300",
    "61000000",
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

#[track_caller]
fn assert_told<T: plainsong_proto::cdr::DdsType>(hex: &str) {
    let ours = TypeDescription::of::<T>().expect("it can be described").information;
    let theirs = TypeInformation::decode(&octets(hex)).expect("well-formed");
    assert_eq!(sorted(ours.clone()), sorted(theirs));
    assert_eq!(ours.encode().len(), octets(hex).len());
}

#[test]
fn structures_unions_and_masks_are_told_as_cyclone_tells_them() {
    assert_told::<Base>(BASE);
    assert_told::<Derived>(DERIVED);
    assert_told::<Hashed>(HASHED);
    assert_told::<Simple>(SIMPLE);
    assert_told::<Choice>(CHOICE);
    assert_told::<Letter>(LETTER);
    assert_told::<Marked>(MARKED);
    assert_told::<Holder>(HOLDER);
}

#[test]
fn types_that_contain_themselves_are_told_as_cyclone_tells_them() {
    assert_told::<Node>(NODE);
    assert_told::<List>(LIST);
}

#[test]
fn typedefs_are_told_as_cyclone_tells_them() {
    assert_told::<Named>(NAMED);
    assert_told::<Which>(WHICH);
}

#[test]
fn units_and_ranges_are_told_as_cyclone_tells_them() {
    assert_told::<Ranged>(RANGED);
}

/// The Python package tells these, too, with a hash that is not that of what it tells.
#[test]
fn a_typedef_of_what_contains_it_is_of_the_same_component() {
    let description = TypeDescription::of::<Item>().expect("it can be described");
    for ty in [&description.information.minimal, &description.information.complete].into_iter().flatten() {
        let place = ty.id.component.expect("it contains itself");
        assert_eq!((place.length, place.index), (2, 1), "the structure and one typedef");
        let found: Vec<_> = ty.id.whole().types().map(|ty| description.object(ty).is_some()).collect();
        assert_eq!(found, [true, true], "the hash is that of what is told");
    }
}
