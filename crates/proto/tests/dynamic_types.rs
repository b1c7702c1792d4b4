//! A type that is described at run time says of every payload what the derived type says of it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plainsong_derive::DdsType;
use plainsong_proto::cdr::{
    DdsType, Encapsulation, Endianness, OctetSeq, WChar, WString, XcdrVersion, key_hash, key_to_payload,
    to_payload,
};
use plainsong_proto::malformed::Malformed;
use plainsong_proto::type_support::{
    self, DataValue, DynamicData, DynamicType, DynamicTypeError, TypeSupport,
};
use plainsong_proto::types::TypeDescription;
use proptest::prelude::*;

#[derive(DdsType, Debug, Clone, Copy, Default, PartialEq)]
#[dds(crate = "plainsong_proto")]
enum Mode {
    #[default]
    #[dds(default)]
    Idle = 3,
    Moving = -5,
    Gone = 1 << 20,
}

#[derive(DdsType, Debug, Clone, Copy, PartialEq)]
#[dds(crate = "plainsong_proto", bit_bound = 8)]
enum Colour {
    Red,
    Green,
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", union, discriminator = i16)]
enum Choice {
    #[dds(case = 1)]
    Number(i32),
    #[dds(case(2, -3))]
    Text(String),
    #[dds(default, case = 9)]
    Rest(Option<u32>),
}

/// A variant without value: the description does not tell its label, which nothing else has.
#[derive(DdsType, Debug, Clone, Copy, PartialEq)]
#[dds(crate = "plainsong_proto", union, discriminator = bool)]
enum Perhaps {
    #[dds(case = true)]
    Number(u16),
    #[dds(case = false)]
    Nothing,
}

/// Key members whose ids are not in the order of declaration.
#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", final)]
struct Place {
    #[dds(key, id = 9)]
    building: i16,
    height: f64,
    #[dds(key, id = 2)]
    room: u32,
}

/// Without a key of its own: all of it is the key where it is a key member.
#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto")]
struct Batch {
    colour: Colour,
    digits: [u16; 3],
    corners: [[i8; 2]; 2],
    colours: [Colour; 2],
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto")]
struct Machine {
    before: Option<f64>,
    names: Vec<String>,
    #[dds(key)]
    place: Place,
    choice: Choice,
    modes: Vec<Mode>,
    matrix: [[f32; 3]; 2],
    boxes: [[Batch; 1]; 2],
    octets: OctetSeq<'static>,
    by_name: BTreeMap<String, i64>,
    wide: WString,
    unit: WChar,
    #[dds(key)]
    batch: Batch,
    mode: Mode,
    #[dds(bound = 12)]
    label: String,
    is_on: bool,
    grade: char,
    speed: f32,
    count: u64,
    load: Option<i16>,
    inner: Option<Place>,
    perhaps: Perhaps,
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", mutable)]
struct Device {
    note: Option<String>,
    #[dds(id = 0x4000)]
    speed: f32,
    #[dds(key, id = 77, bound = 40)]
    serial: String,
    #[dds(key, id = 5)]
    mode: Mode,
    #[dds(must_understand)]
    choice: Choice,
    inner: Place,
    count: i64,
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", final)]
struct Short {
    x: f64,
    #[dds(key)]
    id: u32,
    #[dds(key, bound = 3)]
    kind: Vec<u8>,
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto")]
struct Keyless {
    count: u64,
    text: String,
}

/// The key has no bound, and its mutable parts are written as final ones in the key holder.
#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", mutable)]
struct Tagged {
    #[dds(key, id = 3)]
    tags: Vec<String>,
    #[dds(key, id = 1)]
    part: Part,
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", mutable)]
struct Part {
    #[dds(id = 8)]
    number: u16,
    #[dds(id = 4)]
    note: Option<String>,
    values: Vec<f64>,
}

const CELLS: usize = 1 << 20;

/// What [`Machine`] has, and more than a stack has room for: read by its description.
#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto")]
struct Plant {
    rooms: [u64; 2_000],
    #[dds(key, id = 40)]
    machine: Machine,
    boxed: Box<u32>,
    #[dds(key, id = 7)]
    name: String,
    #[dds(key, id = 8)]
    mode: Mode,
}

/// The wire form of its memory.
#[derive(DdsType)]
#[dds(crate = "plainsong_proto")]
#[repr(C)]
struct Field {
    cells: [f64; CELLS],
    #[dds(key)]
    row: u32,
    #[dds(key)]
    column: u32,
}

/// Small itself.
#[derive(DdsType)]
#[dds(crate = "plainsong_proto", mutable)]
struct Fields {
    #[dds(key)]
    name: String,
    fields: Vec<Field>,
    other: Option<Box<Field>>,
}

/// No dynamic type contains itself.
#[derive(DdsType)]
#[dds(crate = "plainsong_proto")]
struct Knot {
    #[dds(key)]
    name: String,
    cells: [u8; 1 << 16],
    others: Vec<Self>,
}

/// As that, and not too large.
#[derive(DdsType)]
#[dds(crate = "plainsong_proto")]
struct Twist {
    #[dds(key)]
    name: String,
    cells: [u8; 1 << 14],
    others: Vec<Self>,
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Idle), Just(Mode::Moving), Just(Mode::Gone)]
}

fn colour() -> impl Strategy<Value = Colour> {
    prop_oneof![Just(Colour::Red), Just(Colour::Green)]
}

fn choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        any::<i32>().prop_map(Choice::Number),
        "[a-zé]{0,3}".prop_map(Choice::Text),
        any::<Option<u32>>().prop_map(Choice::Rest),
    ]
}

fn place() -> impl Strategy<Value = Place> {
    (any::<i16>(), any::<f64>(), any::<u32>()).prop_map(|(building, height, room)| Place {
        building,
        height,
        room,
    })
}

fn batch() -> impl Strategy<Value = Batch> {
    (colour(), any::<[u16; 3]>(), any::<[[i8; 2]; 2]>(), [colour(), colour()])
        .prop_map(|(colour, digits, corners, colours)| Batch { colour, digits, corners, colours })
}

prop_compose! {
    fn machine()(
        (before, names, place, choice) in (any::<Option<f64>>(), prop::collection::vec("[ab]{0,4}", 0..3), place(), choice()),
        (modes, matrix, boxes) in (prop::collection::vec(mode(), 0..4), any::<[[f32; 3]; 2]>(), [[batch()], [batch()]]),
        (octets, by_name, wide, unit) in (
            any::<Vec<u8>>(), prop::collection::btree_map("[ab]{1,2}", any::<i64>(), 0..3), "[aé🎵]{0,3}", any::<u16>(),
        ),
        (batch, mode, label, is_on) in (batch(), mode(), "[RGB]{0,3}", any::<bool>()),
        (grade, speed, count) in (prop::char::range('\0', 'ÿ'), any::<f32>(), any::<u64>()),
        (load, inner, perhaps) in (any::<Option<i16>>(), prop::option::of(place()), any::<Option<u16>>()),
    ) -> Machine {
        let (octets, wide, unit) = (octets.into(), WString(wide), WChar(unit));
        let perhaps = perhaps.map_or(Perhaps::Nothing, Perhaps::Number);
        Machine {
            before, names, place, choice, modes, matrix, boxes, octets, by_name, wide, unit, batch, mode, label, is_on, grade,
            speed, count, load, inner, perhaps,
        }
    }
}

prop_compose! {
    fn device()(
        note in prop::option::of("[a-z]{0,5}"), speed in any::<f32>(), serial in "[a-z0-9]{0,40}", mode in mode(),
        choice in choice(), inner in place(), count in any::<i64>(),
    ) -> Device {
        Device { note, speed, serial, mode, choice, inner, count }
    }
}

prop_compose! {
    fn tagged()(
        tags in prop::collection::vec("[ab]{0,9}", 0..4), number in any::<u16>(),
        note in prop::option::of("[a-z]{0,5}"), values in any::<Vec<f64>>(),
    ) -> Tagged {
        Tagged { tags, part: Part { number, note, values } }
    }
}

prop_compose! {
    fn plant()(room in any::<u64>(), machine in machine(), boxed in any::<u32>(), name in "[ab]{0,4}", mode in mode()) -> Plant {
        Plant { rooms: [room; 2_000], machine, boxed: Box::new(boxed), name, mode }
    }
}

fn described<T: DdsType>() -> DynamicType {
    DynamicType::new(T::TYPE_NAME, Arc::new(TypeDescription::of::<T>().unwrap())).unwrap()
}

const REPRESENTATIONS: [(XcdrVersion, Endianness); 4] = [
    (XcdrVersion::Xcdr1, Endianness::Little),
    (XcdrVersion::Xcdr1, Endianness::Big),
    (XcdrVersion::Xcdr2, Endianness::Little),
    (XcdrVersion::Xcdr2, Endianness::Big),
];

type Keys = Result<(plainsong_proto::cdr::KeyHash, Option<Vec<u8>>), Malformed>;

fn keys(ty: &dyn TypeSupport, payload: &[u8], key_only: bool) -> Keys {
    let mut long = None;
    let hash = ty.key_hash(payload, key_only, &mut |key| long = Some(key.to_vec()))?;
    Ok((hash, long))
}

/// Both kinds of support say the same of `sample`, in each representation, of its key, and of each filter.
fn agree<T: DdsType>(sample: &T, filters: &[&str]) {
    let (derived, dynamic) = (type_support::of::<T>(), described::<T>());
    let dynamic: Arc<dyn TypeSupport> = Arc::new(dynamic);
    assert_eq!((dynamic.name(), dynamic.extensibility()), (T::TYPE_NAME, T::EXTENSIBILITY));
    assert_eq!(dynamic.is_keyed(), T::KEYED);
    assert!(derived.is_same_type(&*dynamic) && dynamic.is_same_type(&*derived));
    data_agrees(sample);
    for (version, endianness) in REPRESENTATIONS {
        let (mut payload, mut key) = (Vec::new(), Vec::new());
        to_payload(sample, version, endianness, &mut payload).unwrap();
        key_to_payload(sample, version, endianness, &mut key).unwrap();
        assert_eq!(dynamic.check(&payload), Ok(()));
        assert_eq!(derived.check(&payload), Ok(()));
        assert!(dynamic.sample_bytes_max().is_none_or(|most| payload.len() <= most));
        let expected = keys(&*derived, &payload, false).unwrap();
        assert_eq!(expected.0, key_hash(sample).unwrap());
        assert_eq!(keys(&*dynamic, &payload, false).unwrap(), expected, "{version:?} {endianness:?}");
        assert_eq!(keys(&*dynamic, &key, true).unwrap(), expected, "{version:?} {endianness:?}");
        for representation in REPRESENTATIONS {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            dynamic.serialize_key(&payload, false, representation, &mut ours).unwrap();
            derived.serialize_key(&payload, false, representation, &mut theirs).unwrap();
            assert_eq!(ours, theirs);
        }
        for filter in filters {
            let (ours, theirs) = (dynamic.filter(filter, &[]).unwrap(), derived.filter(filter, &[]).unwrap());
            assert_eq!(ours.passes(&payload), theirs.passes(&payload), "{filter}");
        }
    }
}

/// The value that a sample is read as is written as the derived type writes it, from each representation in
/// each, and comes back from JSON.
fn data_agrees<T: DdsType>(sample: &T) {
    let ty = described::<T>();
    let expected = REPRESENTATIONS.map(|(version, endianness)| {
        let mut payload = Vec::new();
        to_payload(sample, version, endianness, &mut payload).unwrap();
        payload
    });
    let check = |data: &DynamicData| {
        for ((version, endianness), expected) in REPRESENTATIONS.into_iter().zip(&expected) {
            let mut payload = Vec::new();
            data.write(version, endianness, &mut payload).unwrap();
            assert_eq!(payload, *expected, "{version:?} {endianness:?}: {data:?}");
        }
    };
    for payload in &expected {
        let data = ty.read_data(payload).unwrap();
        check(&data);
        let mut again = ty.new_data();
        again.read(payload).unwrap();
        check(&again);
        #[cfg(feature = "serde")]
        {
            let text = serde_json::to_string(&data).unwrap();
            check(&ty.deserialize_data(&mut serde_json::Deserializer::from_str(&text)).unwrap());
        }
    }
}

/// Both refuse the same octets, and for the same reason, as samples and as keys.
fn agree_on<T: DdsType>(payload: &[u8]) {
    let (derived, dynamic) = (type_support::of::<T>(), described::<T>());
    assert_eq!(dynamic.check(payload), derived.check(payload), "{payload:02x?}");
    for key_only in [false, true] {
        assert_eq!(keys(&dynamic, payload, key_only), keys(&*derived, payload, key_only), "{payload:02x?}");
    }
}

/// A payload, shortened or with some octets changed.
fn garbled<T: DdsType>(sample: &T, kind: usize, at: prop::sample::Index, octet: u8, cut: bool) -> Vec<u8> {
    let (version, endianness) = REPRESENTATIONS[kind];
    let mut payload = Vec::new();
    to_payload(sample, version, endianness, &mut payload).unwrap();
    let at = at.index(payload.len());
    if cut {
        payload.truncate(at);
    } else {
        payload[at] = octet;
    }
    payload
}

const OF_MACHINES: [&str; 9] = [
    "place.room > 2000000000 OR place.building < 0",
    "mode = 'Moving' OR mode < 0",
    "label LIKE 'R%' AND NOT is_on = TRUE",
    "grade > 'a' OR speed BETWEEN -1e10 AND 1e10",
    "count > 9223372036854775807",
    "load > 0 OR NOT load > 0",
    "inner.height < 0 AND inner.building > -3",
    "before <> 1.5",
    "batch.colour = 'Green'",
];

proptest! {
    #[test]
    fn keys_and_filters_of_appendable_types_agree(sample in machine()) {
        agree(&sample, &OF_MACHINES);
    }

    #[test]
    fn keys_and_filters_of_large_types_are_those_of_their_values(sample in plant()) {
        agree(&sample, &["machine.place.room > 77 AND mode = 'Gone'", "machine.load > 0 OR name < 'b'"]);
        for (version, endianness) in REPRESENTATIONS {
            let (mut payload, mut expected, mut key) = (Vec::new(), Vec::new(), Vec::new());
            to_payload(&sample, version, endianness, &mut payload).unwrap();
            key_to_payload(&sample, version, endianness, &mut expected).unwrap();
            let large = type_support::of::<Plant>();
            large.serialize_key(&payload, false, (version, endianness), &mut key).unwrap();
            assert_eq!(key, expected, "of the octets as of the value");
            let filter = large.filter("machine.place.room > 77", &[]).unwrap();
            assert_eq!(filter.passes(&payload), sample.machine.place.room > 77);
        }
    }

    #[test]
    fn keys_and_filters_of_mutable_types_agree(sample in device(), tagged in tagged()) {
        agree(&sample, &["serial > 'h'", "mode = 'Idle' OR inner.room > 77", "note MATCH '*a*'", "speed > count"]);
        agree(&tagged, &["part.number > 1000", "part.note > 'b'"]);
    }

    #[test]
    fn keys_and_filters_of_final_and_keyless_types_agree(
        x in any::<f64>(), id in any::<u32>(), kind in prop::collection::vec(any::<u8>(), 0..4), text in "[ab]{0,5}",
    ) {
        agree(&Short { x, id, kind }, &["x > 0", "id > 7"]);
        agree(&Keyless { count: id.into(), text }, &["text = 'ab' OR count > 5"]);
    }

    #[test]
    fn both_refuse_the_same_octets(
        sample in device(), tagged in tagged(), place in place(), kind in 0..4_usize, at in any::<prop::sample::Index>(),
        octet in any::<u8>(), cut in any::<bool>(),
    ) {
        agree_on::<Tagged>(&garbled(&tagged, kind, at, octet, cut));
        agree_on::<Place>(&garbled(&place, kind, at, octet, cut));
        // A union that is derived knows which discriminators select a variant without value, and the
        // description does not.
        let payload = garbled(&sample, kind, at, octet, cut);
        let _ = described::<Device>().check(&payload);
        let _ = keys(&described::<Device>(), &payload, true);
    }

    #[test]
    fn nothing_that_comes_as_a_sample_does_harm(octets in prop::collection::vec(any::<u8>(), 0..200), id in 0..12_u16) {
        let mut payload = [id.to_be_bytes(), [0; 2]].concat();
        payload.extend(octets);
        let dynamic = described::<Machine>();
        let _ = (dynamic.check(&payload), keys(&dynamic, &payload, false), keys(&dynamic, &payload, true));
        let _ = dynamic.filter(OF_MACHINES[0], &[]).unwrap().passes(&payload);
    }

    #[test]
    fn a_description_that_lies_makes_no_type(at in any::<prop::sample::Index>(), octet in any::<u8>(), which in 0..6_usize) {
        let mut description = TypeDescription::of::<Machine>().unwrap();
        let changed = description.objects.iter_mut().filter(|(hash, _)| hash.complete).nth(which);
        let Some((_, object)) = changed else { return Ok(()) };
        let at = at.index(object.len());
        prop_assume!(object[at] != octet);
        object[at] = octet;
        let refused = DynamicType::new("Machine", Arc::new(description)).unwrap_err();
        prop_assert!(matches!(refused, DynamicTypeError::Missing(_)), "{refused}");
    }
}

#[test]
fn a_wrong_expression_is_refused_in_the_same_words() {
    let (derived, dynamic) = (type_support::of::<Machine>(), described::<Machine>());
    for wrong in [
        "nothing = 1",
        "place = 1",
        "names = 'a'",
        "place.nothing > 1",
        "batch.colour = 'Lost'",
        "x >",
        "1 = 2",
        "label > 3",
        "wide = 'a'",
    ] {
        let refusal = dynamic.filter(wrong, &[]).unwrap_err();
        assert_eq!(refusal, derived.filter(wrong, &[]).unwrap_err(), "{wrong}");
    }
}

#[test]
fn the_largest_sample_is_known_where_there_is_one() {
    let bounded = described::<Short>().sample_bytes_max().unwrap();
    assert!((23..=64).contains(&bounded), "{bounded}");
    assert_eq!(type_support::of::<Short>().sample_bytes_max(), Some(bounded));
    assert_eq!(described::<Keyless>().sample_bytes_max(), None);
}

#[test]
fn types_that_are_not_alike_are_not_the_same() {
    let (short, keyless) = (type_support::of::<Short>(), type_support::of::<Keyless>());
    assert!(!short.is_same_type(&*keyless) && !keyless.is_same_type(&described::<Short>()));
}

fn without_names<T: DdsType>() -> Result<DynamicType, DynamicTypeError> {
    let mut description = TypeDescription::of::<T>().unwrap();
    description.information.complete = None;
    DynamicType::new(T::TYPE_NAME, Arc::new(description))
}

#[test]
fn a_description_without_names_is_read_by_ids() {
    let ty = without_names::<Short>().unwrap();
    assert!(!ty.has_names() && described::<Short>().has_names());
    let mut payload = Vec::new();
    let sample = Short { x: 1.5, id: 7, kind: vec![1, 2] };
    to_payload(&sample, XcdrVersion::Xcdr2, Endianness::Big, &mut payload).unwrap();
    let data = ty.read_data(&payload).unwrap();
    assert_eq!(data.get("#1").unwrap().get(), DataValue::Unsigned(7));
    assert_eq!(keys(&ty, &payload, false), keys(&described::<Short>(), &payload, false));
    assert!(ty.filter("id = 7", &[]).is_err());
    assert!(without_names::<Tagged>().is_ok() && without_names::<Machine>().is_ok());
    let mut nothing = TypeDescription::of::<Short>().unwrap();
    (nothing.information.complete, nothing.information.minimal) = (None, None);
    assert_eq!(DynamicType::new("Short", Arc::new(nothing)).unwrap_err(), DynamicTypeError::Empty);
}

#[test]
fn an_encapsulation_of_another_extensibility_is_refused() {
    let mut payload = Vec::new();
    to_payload(&Keyless { count: 1, text: "a".into() }, XcdrVersion::Xcdr2, Endianness::Little, &mut payload)
        .unwrap();
    payload[1] = 7;
    assert_eq!(Encapsulation::parse(&payload).unwrap().0.name(), "CDR2_LE");
    assert_eq!(described::<Keyless>().check(&payload), Err(Malformed::UnsuitableEncapsulation));
}

/// A payload of `T` that is nothing but zeros, as each of these types may be.
fn zeros<T: DdsType>(version: XcdrVersion, endianness: Endianness, bytes: usize) -> Vec<u8> {
    let id = Encapsulation::for_type(version, T::EXTENSIBILITY, endianness).id();
    [id.to_be_bytes().as_slice(), &vec![0; 2 + bytes]].concat()
}

fn on_a_stack<R: Send + 'static>(bytes: usize, run: impl FnOnce() -> R + Send + 'static) -> R {
    std::thread::Builder::new().stack_size(bytes).spawn(run).unwrap().join().unwrap()
}

/// Where a tenth of a receive thread's stack is left.
fn on_a_small_stack(read: impl FnOnce() + Send + 'static) {
    on_a_stack(200 << 10, read);
}

#[test]
fn no_value_of_a_large_type_is_ever_on_the_stack_that_reads_it() {
    on_a_small_stack(|| {
        let large = type_support::of::<Field>();
        let octets = CELLS * 8 + 8;
        for (endianness, representation) in
            [Endianness::Little, Endianness::Big].map(|it| (it, (XcdrVersion::Xcdr1, it)))
        {
            let mut payload = zeros::<Field>(XcdrVersion::Xcdr1, endianness, octets);
            let at = payload.len() - if endianness == Endianness::Little { 4 } else { 1 };
            payload[at] = 9;
            assert_eq!(large.check(&payload), Ok(()));
            let mut key = Vec::new();
            large.serialize_key(&payload, false, representation, &mut key).unwrap();
            let of_key = large.key_hash(&key, true, &mut |_| ()).unwrap();
            assert_eq!(large.key_hash(&payload, false, &mut |_| ()), Ok(of_key));
            assert_eq!(of_key.to_string(), "00000000000000090000000000000000");
            for (expression, passes) in [("column = 9", true), ("row > 0", false)] {
                assert_eq!(large.filter(expression, &[]).unwrap().passes(&payload), passes);
                let ordered = large.query(&format!("{expression} ORDER BY row"), &[]).unwrap();
                assert_eq!(ordered.passes(&payload), passes);
            }
        }
    });
    let of_fields = on_a_stack(512 << 20, || {
        let field = |row| Field { cells: [0.0; CELLS], row, column: 0 };
        let fields = Fields { name: "a".into(), fields: vec![field(1)], other: Some(Box::new(field(2))) };
        let mut payload = Vec::new();
        to_payload(&fields, XcdrVersion::Xcdr2, Endianness::Big, &mut payload).unwrap();
        payload
    });
    on_a_small_stack(move || {
        let fields = type_support::of::<Fields>();
        assert_eq!(fields.check(&of_fields), Ok(()));
        let hash = fields.key_hash(&of_fields, false, &mut |_| ()).unwrap();
        assert_eq!(hash.to_string(), "17bccba5c67b0746940ff9dfd356e745");
        assert!(fields.filter("other.row = 2", &[]).unwrap().passes(&of_fields));
        assert!(!fields.filter("name > 'a'", &[]).unwrap().passes(&of_fields));
    });
}

#[test]
fn what_is_too_large_and_contains_itself_is_read_by_its_description() {
    let knot = type_support::of::<Knot>();
    on_a_small_stack(move || {
        let payload = zeros::<Knot>(XcdrVersion::Xcdr1, Endianness::Little, 1 << 17);
        assert_eq!(knot.check(&payload), Ok(()));
        assert!(knot.key_hash(&payload, false, &mut |_| ()).is_ok());
        assert!(!knot.filter("name = 'a'", &[]).unwrap().passes(&payload));
    });
    let mut payload = Vec::new();
    let twist = Twist { name: "a".into(), cells: [0; 1 << 14], others: Vec::new() };
    to_payload(&twist, XcdrVersion::Xcdr1, Endianness::Little, &mut payload).unwrap();
    let ty = type_support::of::<Twist>();
    assert_eq!(ty.check(&payload), Ok(()));
    assert_eq!(ty.key_hash(&payload, false, &mut |_| ()), Ok(key_hash(&twist).unwrap()));
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto")]
struct Tree {
    #[dds(key)]
    name: String,
    first: Option<Box<Self>>,
    children: Vec<Self>,
}

fn tree(depth: usize) -> Tree {
    let below = || depth.checked_sub(1).map(tree);
    Tree {
        name: format!("level {depth}"),
        first: below().map(Box::new),
        children: below().into_iter().collect(),
    }
}

#[test]
fn types_that_contain_themselves_are_read_as_deep_as_samples_nest() {
    agree(&tree(5), &["name = 'level 5'", "first.name = 'level 4' OR name < 'a'"]);
    let ty = described::<Tree>();
    assert!(format!("{ty:?}").len() < 10_000, "in words");
    // A chain as long as can be, and one that is longer.
    let chain = |length: usize| {
        let leaf = Tree { name: String::new(), first: None, children: Vec::new() };
        (1..length).fold(leaf, |below, _| Tree { name: "a".into(), first: None, children: vec![below] })
    };
    for (version, endianness) in REPRESENTATIONS {
        let mut payload = Vec::new();
        to_payload(&chain(64), version, endianness, &mut payload).unwrap();
        let (data, mut again) = (ty.read_data(&payload).unwrap(), Vec::new());
        data.write(version, endianness, &mut again).unwrap();
        assert_eq!(again, payload);
    }
    // Parsers of JSON have limits of their own.
    data_agrees(&chain(30));
    let mut data = ty.new_data();
    for depth in 1..64 {
        data.set(&format!("{}name", "children[0].".repeat(depth)), "a").unwrap();
    }
    data.write(XcdrVersion::Xcdr2, Endianness::Little, &mut Vec::new()).unwrap();
    assert!(data.set(&format!("{}name", "children[0].".repeat(64)), "a").is_err());
}

/// Types that have names of others.
mod other {
    use super::DdsType;

    #[derive(DdsType)]
    #[dds(crate = "plainsong_proto")]
    pub(super) enum Mode {
        Idle = 1,
        Moving = 3,
    }

    #[derive(DdsType)]
    #[dds(crate = "plainsong_proto")]
    pub(super) struct Part {
        pub(super) stamp: u64,
        pub(super) name: String,
    }

    #[derive(DdsType)]
    #[dds(crate = "plainsong_proto")]
    pub(super) struct Short {
        pub(super) values: Vec<[f64; super::CELLS]>,
    }
}

macro_rules! namesakes {
    ($name:ident, $bytes:expr) => {
        #[derive(DdsType)]
        #[dds(crate = "plainsong_proto")]
        struct $name {
            mode: Mode,
            other_mode: other::Mode,
            part: Part,
            other_part: other::Part,
            #[dds(key)]
            key: u32,
            #[dds(key)]
            line: String,
            octets: [u8; $bytes],
        }

        impl $name {
            fn new(key: u32) -> Self {
                Self {
                    mode: Mode::Moving,
                    other_mode: if key == 1 { other::Mode::Idle } else { other::Mode::Moving },
                    part: Part { number: 7, note: None, values: vec![1.5] },
                    other_part: other::Part { stamp: 1 << 40 | u64::from(key), name: "part".into() },
                    key,
                    line: "line".into(),
                    octets: [0; $bytes],
                }
            }

            /// What the values are told by is theirs, whether they or their description are read.
            fn are_told_apart() {
                let ty = type_support::of::<Self>();
                let filters = ["key >= 2", "other_part.stamp > 1099511627777", "other_mode = 'Moving'"]
                    .map(|it| ty.filter(it, &[]).unwrap());
                let mut instances = BTreeSet::new();
                for key in 1..=3 {
                    let (sample, mut payload) = (Self::new(key), Vec::new());
                    agree(&sample, &["part.number = 7", "mode = 'Moving' AND other_mode = 'Moving'"]);
                    to_payload(&sample, XcdrVersion::Xcdr1, Endianness::Little, &mut payload).unwrap();
                    assert!(instances.insert(ty.key_hash(&payload, false, &mut |_| ()).unwrap().to_string()));
                    for filter in &filters {
                        assert_eq!(filter.passes(&payload), key >= 2);
                    }
                }
            }
        }
    };
}

namesakes!(Few, 16);
namesakes!(Many, 9_000);

#[test]
fn members_of_types_of_one_name_are_read_as_what_they_are() {
    assert!(format!("{:?}", type_support::of::<Few>()).starts_with("RustType"));
    assert!(format!("{:?}", type_support::of::<Many>()).starts_with("LargeType"));
    Few::are_told_apart();
    Many::are_told_apart();
}

#[test]
fn room_is_counted_for_the_values_of_each_type() {
    /// The second type has the name of the first.
    #[derive(DdsType)]
    #[dds(crate = "plainsong_proto")]
    struct Namesakes {
        short: Short,
        other_short: other::Short,
    }
    assert_eq!(type_support::of::<Namesakes>().value_bytes(), CELLS * 8);

    #[derive(DdsType, PartialEq, Eq, PartialOrd, Ord)]
    #[dds(crate = "plainsong_proto")]
    struct Twig {
        twigs: Vec<Self>,
    }

    /// Nothing describes the keys.
    #[derive(DdsType)]
    #[dds(crate = "plainsong_proto")]
    struct Grown {
        rows: BTreeMap<Twig, Vec<[f64; CELLS]>>,
    }
    assert_eq!(type_support::of::<Grown>().value_bytes(), CELLS * 8);
}
