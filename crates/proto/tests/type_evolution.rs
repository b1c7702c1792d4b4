//! Forty pairs of versions of a type: whether a reader of one is assignable from a writer of the other
//! (XTypes 1.3 §7.2.4), and what it gets. The table is in `docs/types.md`.

use std::collections::BTreeMap;
use std::fmt::Debug;

use plainsong_derive::DdsType;
use plainsong_proto::cdr::{Endianness, XcdrVersion, from_payload, to_payload};
use plainsong_proto::malformed::Malformed;
use plainsong_proto::types::compare::{Side, first_difference};
use plainsong_proto::types::{AssignabilityRules, TypeDescription, TypeHash, TypeIdentifier, TypeObject};

/// What TYPE_CONSISTENCY_ENFORCEMENT is when nothing is said.
const DEFAULT: AssignabilityRules = AssignabilityRules {
    coercion: true,
    ignore_sequence_bounds: true,
    ignore_string_bounds: true,
    ignore_member_names: false,
    prevent_type_widening: false,
    final_is_appendable: false,
    ignore_key_bounds: false,
    ignore_delimiters: false,
};
/// The same in version 1 of XCDR.
const XCDR1: AssignabilityRules = AssignabilityRules { final_is_appendable: true, ..DEFAULT };

fn objects(description: &TypeDescription) -> BTreeMap<TypeHash, TypeObject> {
    let object = |hash: &TypeHash| Some((*hash, description.object(*hash)?));
    description.objects.keys().filter_map(object).collect()
}

/// Why a reader of `R` is not assignable from a writer of `W`.
fn difference<W, R>(rules: AssignabilityRules) -> Option<String>
where
    W: plainsong_proto::cdr::DdsType,
    R: plainsong_proto::cdr::DdsType,
{
    let [written, read] = [TypeDescription::of::<W>(), TypeDescription::of::<R>()]
        .map(|description| description.expect("it can be described"));
    let roots = [&written, &read].map(|it| it.information.complete.as_ref().expect("a complete type").id);
    let (our_objects, their_objects) = (objects(&written), objects(&read));
    let find_written = |ty: &TypeIdentifier| match ty {
        TypeIdentifier::Hash(hash) => our_objects.get(hash),
        _ => None,
    };
    let find_read = |ty: &TypeIdentifier| match ty {
        TypeIdentifier::Hash(hash) => their_objects.get(hash),
        _ => None,
    };
    let [our_root, their_root] = roots.map(TypeIdentifier::Hash);
    let writer = Side { root: &our_root, find: &find_written };
    let reader = Side { root: &their_root, find: &find_read };
    first_difference(writer, reader, rules).map(|it| it.to_string())
}

/// What a reader of `R` makes of a sample.
fn received<W, R>(value: &W, version: XcdrVersion) -> Result<R, Malformed>
where
    W: plainsong_proto::cdr::DdsType,
    R: plainsong_proto::cdr::DdsType,
{
    let mut payload = Vec::new();
    to_payload(value, version, Endianness::Little, &mut payload).expect("it can be encoded");
    from_payload(&payload)
}

#[track_caller]
fn assert_assignable<W, R>(value: &W, expected: Result<R, Malformed>)
where
    W: plainsong_proto::cdr::DdsType,
    R: plainsong_proto::cdr::DdsType + PartialEq + Debug,
{
    assert_eq!(difference::<W, R>(DEFAULT), None);
    assert_eq!(received::<W, R>(value, XcdrVersion::Xcdr2), expected);
}

/// The two are told apart, in these words.
#[track_caller]
fn assert_different<W, R>(words: &str)
where
    W: plainsong_proto::cdr::DdsType,
    R: plainsong_proto::cdr::DdsType,
{
    let difference = difference::<W, R>(DEFAULT).expect("they differ");
    assert!(difference.contains(words), "`{difference}` does not say `{words}`");
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Two {
    a: i32,
    b: u8,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Three {
    a: i32,
    b: u8,
    c: String,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Swapped {
    b: u8,
    a: i32,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T", final)]
struct FinalTwo {
    a: i32,
    b: u8,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T", final)]
struct FinalThree {
    a: i32,
    b: u8,
    c: String,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T", mutable)]
struct MutableTwo {
    a: i32,
    b: u8,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T", mutable)]
struct MutableOther {
    #[dds(id = 1)]
    b: u8,
    #[dds(id = 2, default = 9)]
    c: i64,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T", mutable)]
struct Needed {
    a: i32,
    #[dds(must_understand)]
    b: u8,
    #[dds(must_understand)]
    c: i64,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T", mutable)]
struct Apart {
    #[dds(id = 7)]
    x: i32,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Wide {
    a: i64,
    b: u8,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Signed {
    a: u32,
    b: u8,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Optional {
    a: Option<i32>,
    b: u8,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T", mutable)]
struct MutableOptional {
    a: Option<i32>,
    b: u8,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Renamed {
    a: i32,
    other: u8,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T", mutable)]
struct Renumbered {
    a: i32,
    #[dds(id = 5)]
    b: u8,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct WithDefault {
    a: i32,
    b: u8,
    #[dds(default = 7)]
    c: u16,
    d: Option<u8>,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Short {
    #[dds(bound = 3)]
    text: String,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Trimmed {
    #[dds(bound = 3, try_construct = "trim")]
    text: String,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Defaulted {
    #[dds(bound = 3, try_construct = "use_default", default = "none".to_owned())]
    text: String,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Text {
    text: String,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct List {
    all: Vec<i32>,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct ShortList {
    #[dds(bound = 2)]
    all: Vec<i32>,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Array {
    all: [i32; 3],
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct LongArray {
    all: [i32; 4],
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct KeyText {
    #[dds(key, bound = 8)]
    text: String,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct KeyShort {
    #[dds(key, bound = 4)]
    text: String,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Keyed {
    #[dds(key)]
    a: i32,
    b: u8,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct MoreKeys {
    #[dds(key)]
    a: i32,
    #[dds(key)]
    b: u8,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct WideText {
    text: plainsong_proto::cdr::WString,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Map {
    ages: BTreeMap<String, u8>,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct OtherMap {
    ages: BTreeMap<i32, u8>,
}

#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
enum Colour {
    Red,
    Green,
}

#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
enum MoreColours {
    Red,
    Green,
    Blue,
}

#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
enum OtherColours {
    Red,
    Blue,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Painted {
    colour: Colour,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct MorePainted {
    colour: MoreColours,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct OtherPainted {
    colour: OtherColours,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct LenientPainted {
    #[dds(try_construct = "use_default", default = Colour::Green)]
    colour: Colour,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct KeyPainted {
    #[dds(key)]
    colour: Colour,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct KeyMorePainted {
    #[dds(key)]
    colour: MoreColours,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T", union, discriminator = i32)]
enum Number {
    #[dds(case = 1, name = "whole")]
    Whole(i32),
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T", union, discriminator = i32)]
enum MoreNumber {
    #[dds(case = 1, name = "whole")]
    Whole(i32),
    #[dds(case = 2, name = "text")]
    Text(String),
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T", union, discriminator = i32)]
enum OtherNumber {
    #[dds(case = 1, name = "whole")]
    Whole(i64),
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T", union, discriminator = i32)]
enum DefaultNumber {
    #[dds(case = 1, name = "whole")]
    Whole(i32),
    #[dds(default, name = "text")]
    Text(String),
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T", final, union, discriminator = i32)]
enum FinalNumber {
    #[dds(case = 1, name = "whole")]
    Whole(i32),
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T", final, union, discriminator = i32)]
enum FinalMoreNumber {
    #[dds(case = 1, name = "whole")]
    Whole(i32),
    #[dds(case = 2, name = "text")]
    Text(String),
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T", union, discriminator = i64)]
enum LongNumber {
    #[dds(case = 1, name = "whole")]
    Whole(i32),
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Outer {
    inner: Two,
    last: u8,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct OuterMore {
    inner: Three,
    last: u8,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T", final)]
struct FinalText {
    text: String,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T", final)]
struct FinalShort {
    #[dds(bound = 9)]
    text: String,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct OuterText {
    inner: FinalText,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct OuterShort {
    inner: FinalShort,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Extended {
    #[dds(base)]
    base: Two,
    c: String,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Refactored {
    #[dds(base)]
    base: OnlyA,
    b: u8,
    c: String,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct OnlyA {
    a: i32,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct OtherBase {
    #[dds(base)]
    base: Wide,
    c: String,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Octets {
    mask: u8,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Tree {
    value: i32,
    children: Vec<Self>,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct LargerTree {
    value: i32,
    children: Vec<Self>,
    weight: Option<u8>,
}

#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "Mask", bitmask, flag(A), flag(B))]
struct Mask(u8);

#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "Mask", bitmask, flag(A), flag(B), flag(C))]
struct LargerMask(u8);

#[derive(DdsType, Clone, Copy, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "Mask", bitmask, flag(A))]
struct LongMask(u16);

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct Masked {
    mask: Mask,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct LargerMasked {
    mask: LargerMask,
}

#[derive(DdsType, Clone, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", name = "T")]
struct LongMasked {
    mask: LongMask,
}

fn two() -> Two {
    Two { a: -1, b: 2 }
}

fn three() -> Three {
    Three { a: -1, b: 2, c: "c".to_owned() }
}

fn text<T>(make: impl Fn(String) -> T, text: &str) -> T {
    make(text.to_owned())
}

/// Pairs 1 to 8: members added, removed, reordered (§7.2.4.4.8).
#[test]
fn members_come_and_go_at_the_end() {
    // 1, 2: a member is added at the end: readers of the older and of the newer version.
    assert_assignable(&three(), Ok(two()));
    assert_assignable(&two(), Ok(Three { a: -1, b: 2, c: String::new() }));
    // 3: members that are not sent take their defaults, optional ones none.
    assert_assignable(&two(), Ok(WithDefault { a: -1, b: 2, c: 7, d: None }));
    // 4: members change places.
    assert_different::<Two, Swapped>("member `a` is");
    // 5: a final type has the same members.
    assert_different::<FinalThree, FinalTwo>("member `c` is string at the writer, missing at the reader");
    // 6: mutable types have their members by id, in any order.
    let sent = MutableTwo { a: 1, b: 2 };
    assert_assignable(&sent, Ok(MutableOther { b: 2, c: 9 }));
    // 7: a member that must be understood is missing.
    assert_different::<Needed, MutableTwo>("member `c` is int64 at the writer, missing at the reader");
    // 8: no member in common.
    assert_different::<MutableTwo, Apart>("without member in common");
}

/// Pairs 9 to 16: members change (§7.2.4.4.4, §7.2.4.4.8).
#[test]
fn members_keep_type_name_id_and_optionality() {
    // 9, 10: widened, or of another sign.
    assert_different::<Two, Wide>("member `a` is int32 at the writer, int64 at the reader");
    assert_different::<Two, Signed>("member `a` is int32 at the writer, uint32 at the reader");
    // 11: made optional: appendable members say the same.
    assert_different::<Two, Optional>("member `a` is always there at the writer, optional at the reader");
    // 12: in mutable types it does not matter.
    let sent = MutableTwo { a: 1, b: 2 };
    assert_assignable(&sent, Ok(MutableOptional { a: Some(1), b: 2 }));
    // 13, 14: another name, another id.
    assert_different::<Two, Renamed>("member `b` is `b`, number 1 at the writer, `other`, number 1");
    assert_different::<MutableTwo, Renumbered>(
        "member `b` is number 1 at the writer, number 5 at the reader",
    );
    // 15: names may be ignored.
    let ignore_member_names = AssignabilityRules { ignore_member_names: true, ..DEFAULT };
    assert_eq!(difference::<Two, Renamed>(ignore_member_names), None);
    assert_eq!(received(&two(), XcdrVersion::Xcdr2), Ok(Renamed { a: -1, other: 2 }));
    // 16: another extensibility.
    assert_different::<Two, FinalTwo>("the type is appendable at the writer, final at the reader");
}

/// Pairs 17 to 26: bounds and collections (§7.2.4.4.5, §7.2.4.4.6, §7.2.4.1).
#[test]
fn bounds_are_a_matter_of_each_value() {
    let (long, short) = (text(|text| Text { text }, "abcd"), text(|text| Text { text }, "abc"));
    // 17: a shorter string: values that fit.
    assert_assignable(&short, Ok(text(|text| Short { text }, "abc")));
    assert_assignable::<_, Short>(&long, Err(Malformed::LengthOutOfRange));
    // 18, 19: what becomes of others is said by the member.
    assert_assignable(&long, Ok(text(|text| Trimmed { text }, "abc")));
    assert_assignable(&long, Ok(text(|text| Defaulted { text }, "none")));
    // 20: bounds may matter.
    let with_bounds = AssignabilityRules { ignore_string_bounds: false, ..DEFAULT };
    let words = "member `text` is string at the writer, string<3> at the reader";
    assert_eq!(difference::<Text, Short>(with_bounds).as_deref(), Some(words));
    // 21: a shorter sequence.
    assert_assignable(&List { all: vec![1, 2] }, Ok(ShortList { all: vec![1, 2] }));
    assert_assignable::<_, ShortList>(&List { all: vec![1, 2, 3] }, Err(Malformed::LengthOutOfRange));
    // 22, 23, 24: a longer array, a sequence for an array, wide characters.
    assert_different::<Array, LongArray>("member `all` is int32[3] at the writer, int32[4] at the reader");
    assert_different::<List, Array>("member `all` is sequence<int32> at the writer, int32[3] at the reader");
    assert_different::<Text, WideText>("member `text` is string at the writer, wstring at the reader");
    // 25: other keys of a map.
    assert_different::<Map, OtherMap>("member `ages[]` is string at the writer, int32 at the reader");
    // 26: what has no length on the wire is equivalent: a final structure within another one.
    assert_different::<OuterText, OuterShort>("member `inner.text` is string at the writer, string<9>");
}

/// Pairs 27 to 32: keys and enumerations (§7.2.4.4.7, §7.2.4.4.8).
#[test]
fn keys_survive_and_literals_are_known_or_not() {
    // 27, 28: a key that does not fit everybody; one that does.
    assert_different::<KeyText, KeyShort>(
        "member `text` is string<8> at the writer, string<4> at the reader",
    );
    assert_assignable(&text(|text| KeyShort { text }, "abcd"), Ok(text(|text| KeyText { text }, "abcd")));
    // 29: another key.
    assert_different::<Keyed, MoreKeys>("member `b` is no key at the writer, a key at the reader");
    // 30: an enumeration grew: known literals arrive, others are discarded or replaced.
    assert_assignable(&MorePainted { colour: MoreColours::Green }, Ok(Painted { colour: Colour::Green }));
    let blue = MorePainted { colour: MoreColours::Blue };
    assert_assignable::<_, Painted>(&blue, Err(Malformed::InvalidEnum));
    assert_assignable(&blue, Ok(LenientPainted { colour: Colour::Green }));
    // 31: a value has another name.
    assert_different::<Painted, OtherPainted>("member `colour` is Green = 1 at the writer, Blue = 1");
    // 32: as a key, all its literals are known.
    assert_different::<KeyMorePainted, KeyPainted>("Blue = 2 at the writer, without 2 at the reader");
    assert_assignable(
        &KeyPainted { colour: Colour::Green },
        Ok(KeyMorePainted { colour: MoreColours::Green }),
    );
}

/// Pairs 33 to 37: unions (§7.2.4.4.8).
#[test]
fn unions_grow_by_labels() {
    // 33: a label was added.
    assert_assignable(&MoreNumber::Whole(4), Ok(Number::Whole(4)));
    assert_assignable::<_, Number>(&MoreNumber::Text("x".into()), Err(Malformed::InvalidDiscriminator));
    assert_assignable(&Number::Whole(4), Ok(MoreNumber::Whole(4)));
    // 34: the member of a label has another type.
    assert_different::<Number, OtherNumber>("member `case 1` is int32 at the writer, int64 at the reader");
    // 35: the new label is among those of the default.
    assert_assignable(&MoreNumber::Text("x".into()), Ok(DefaultNumber::Text("x".into())));
    // 36: final unions have the same labels.
    assert_different::<FinalMoreNumber, FinalNumber>("member `case 2` is string at the writer, missing");
    // 37: another discriminator.
    assert_different::<Number, LongNumber>("member `discriminator` is int32 at the writer, int64");
}

/// Pairs 38 to 40 and more: bases, inner types, masks, trees.
#[test]
fn bases_inner_types_and_masks_evolve() {
    // 38: members moved to a base, and between bases (§7.2.4.4.8.2, §7.2.4.4.8.3).
    let extended = Extended { base: two(), c: "c".into() };
    assert_assignable(&three(), Ok(extended.clone()));
    assert_assignable(&extended, Ok(two()));
    let refactored = Refactored { base: OnlyA { a: -1 }, b: 2, c: "c".into() };
    assert_assignable(&extended, Ok(refactored));
    // 39: a base changed in a way that matters.
    assert_different::<Extended, OtherBase>("member `a` is int32 at the writer, int64 at the reader");
    // 40: an inner appendable type grew: version 2 tells its length, version 1 does not (§7.2.4.2).
    let outer = OuterMore { inner: three(), last: 9 };
    assert_assignable(&outer, Ok(Outer { inner: two(), last: 9 }));
    let words = "member `inner.c` is string at the writer, missing at the reader";
    assert_eq!(difference::<OuterMore, Outer>(XCDR1).as_deref(), Some(words));
    assert_eq!(difference::<Three, Two>(XCDR1), None, "nothing follows");
    assert_eq!(received(&three(), XcdrVersion::Xcdr1), Ok(two()));
    // Bit masks: of as many bits, or an integer that holds as many (§7.2.4.4.7).
    assert_assignable(&LargerMasked { mask: LargerMask(6) }, Ok(Masked { mask: Mask(6) }));
    assert_assignable(&Masked { mask: Mask(3) }, Ok(Octets { mask: 3 }));
    assert_different::<Masked, LongMasked>("a bit mask of 8 bits at the writer, a bit mask of 16 bits");
    // A tree grew.
    let leaf = || LargerTree { value: 2, children: Vec::new(), weight: Some(1) };
    let larger = LargerTree { value: 1, children: vec![leaf(), leaf()], weight: None };
    let tree = |value, children| Tree { value, children };
    assert_assignable(&larger, Ok(tree(1, vec![tree(2, Vec::new()), tree(2, Vec::new())])));
    // Widening may be forbidden (§7.6.3.4).
    let prevent_type_widening = AssignabilityRules { prevent_type_widening: true, ..DEFAULT };
    let words = "member `c` is missing at the writer, string at the reader";
    assert_eq!(difference::<Two, Three>(prevent_type_widening).as_deref(), Some(words));
    assert_eq!(difference::<Three, Two>(prevent_type_widening), None);
    assert_eq!(difference::<FinalTwo, Two>(XCDR1), None, "they look the same");
}
