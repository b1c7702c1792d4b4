//! Values of types that are known at run time: got and set by path, and as JSON.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use plainsong_derive::DdsType;
use plainsong_proto::cdr::{DdsType, Endianness, OctetSeq, WChar, WString, XcdrVersion, to_payload};
use plainsong_proto::type_support::{DataError, DataValue, DynamicData, DynamicType, Scalar};
use plainsong_proto::types::TypeDescription;

#[derive(DdsType, Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[dds(crate = "plainsong_proto")]
enum Mode {
    #[default]
    Idle = 3,
    Moving = -5,
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", union, discriminator = i16)]
enum Choice {
    #[dds(case = 1)]
    Number(i32),
    #[dds(case(2, -3))]
    Text(String),
    #[dds(default)]
    Rest(Option<u32>),
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", mutable)]
struct Place {
    x: f32,
    note: Option<String>,
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto")]
struct Sample {
    #[dds(key)]
    id: u64,
    least: i64,
    is_on: bool,
    grade: char,
    unit: WChar,
    half: WChar,
    #[dds(bound = 3)]
    short: String,
    wide: WString,
    mode: Mode,
    floats: [f64; 4],
    matrix: [[i16; 3]; 2],
    octets: OctetSeq<'static>,
    bytes: Vec<u8>,
    #[dds(bound = 2)]
    modes: Vec<Mode>,
    places: Vec<Place>,
    choice: Choice,
    by_name: BTreeMap<String, Place>,
    by_number: BTreeMap<i32, bool>,
    by_mode: BTreeMap<Mode, u8>,
    by_unit: BTreeMap<WChar, u8>,
    place: Option<Place>,
}

fn sample() -> Sample {
    Sample {
        id: u64::MAX,
        least: i64::MIN,
        is_on: true,
        grade: 'é',
        unit: WChar(0x263a),
        half: WChar(0xd83c),
        short: "a\"b".into(),
        wide: WString("é🎵".into()),
        mode: Mode::Moving,
        floats: [0.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY],
        matrix: [[1, 2, 3], [4, 5, -6]],
        octets: vec![0xff, 0xfe, 0xfb, 0].into(),
        bytes: vec![0, 255],
        modes: vec![Mode::Idle, Mode::Moving],
        places: vec![Place { x: 0.1, note: None }, Place { x: -2.0, note: Some("n".into()) }],
        choice: Choice::Text("t".into()),
        by_name: BTreeMap::from([("a \"b\"".into(), Place { x: 1.0, note: None })]),
        by_number: BTreeMap::from([(-1, true), (7, false)]),
        by_mode: BTreeMap::from([(Mode::Moving, 9)]),
        by_unit: BTreeMap::from([(WChar(65), 1)]),
        place: None,
    }
}

const TEXT: &str = r#"{"id":18446744073709551615,"least":-9223372036854775808,"is_on":true,"grade":"é","unit":"☺","half":55356,"short":"a\"b","wide":"é🎵","mode":"Moving","floats":[0.1,"NaN","Infinity","-Infinity"],"matrix":[[1,2,3],[4,5,-6]],"octets":"//77AA==","bytes":"AP8=","modes":["Idle","Moving"],"places":[{"x":0.1},{"x":-2.0,"note":"n"}],"choice":{"$discriminator":-3,"Text":"t"},"by_name":{"a \"b\"":{"x":1.0}},"by_number":{"-1":true,"7":false},"by_mode":{"Moving":9},"by_unit":[["A",1]]}"#;

fn ty<T: DdsType>() -> DynamicType {
    DynamicType::new(T::TYPE_NAME, Arc::new(TypeDescription::of::<T>().unwrap())).unwrap()
}

fn payload<T: DdsType>(sample: &T) -> Vec<u8> {
    let mut payload = Vec::new();
    to_payload(sample, XcdrVersion::Xcdr2, Endianness::Little, &mut payload).unwrap();
    payload
}

fn written(data: &DynamicData) -> Vec<u8> {
    let mut payload = Vec::new();
    data.write(XcdrVersion::Xcdr2, Endianness::Little, &mut payload).unwrap();
    payload
}

fn parsed(text: &str) -> Result<DynamicData, serde_json::Error> {
    ty::<Sample>().deserialize_data(&mut serde_json::Deserializer::from_str(text))
}

#[test]
fn a_sample_is_this_text_and_the_text_this_sample() {
    let data = ty::<Sample>().read_data(&payload(&sample())).unwrap();
    let text = serde_json::to_string(&data).unwrap();
    // Labels of a case are told in the order of their values: the first of `Text` may be either.
    assert_eq!(text.replace("\"$discriminator\":2", "\"$discriminator\":-3"), TEXT);
    let again = parsed(&text).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
    assert_eq!(written(&again), payload(&sample()));
}

#[test]
fn what_a_text_leaves_out_is_not_set_and_forms_may_differ() {
    assert_eq!(written(&parsed("{}").unwrap()), written(&ty::<Sample>().new_data()));
    let data = parsed(
        r#"{"id":"18446744073709551615","least":-3.0,"mode":-5,"octets":[255,1],"floats":["1e3",2,3,4],"half":"x",
            "choice":{"Text":"t"},"place":null,"by_number":[[4,true]]}"#,
    )
    .unwrap();
    let get = |path: &str| data.get(path).unwrap().get();
    assert_eq!(get("id"), DataValue::Unsigned(u64::MAX));
    assert_eq!(get("least"), DataValue::Signed(-3));
    assert_eq!(get("mode"), DataValue::Enumeration { value: -5, literal: Some("Moving") });
    assert_eq!(data.get("octets").unwrap().octets().unwrap().as_ref(), [255, 1]);
    assert_eq!(get("floats[0]"), DataValue::Float64(1000.0));
    assert_eq!(get("choice.Text"), DataValue::Text("t".into()));
    assert_eq!(get("place"), DataValue::Absent);
    assert_eq!(get("by_number[4]"), DataValue::Boolean(true));
    // A union by its discriminator, by a member of several labels, and by the default.
    for (text, discriminator, member) in [
        (r#"{"$discriminator":2}"#, 2, Some("Text")),
        (r#"{"Text":"a","$discriminator":2}"#, 2, Some("Text")),
        (r#"{"Rest":7}"#, 0, Some("Rest")),
        (r#"{"$discriminator":100,"Rest":null}"#, 100, Some("Rest")),
    ] {
        let data = parsed(&format!(r#"{{"choice":{text}}}"#)).unwrap();
        let choice = data.get("choice").unwrap();
        assert_eq!(choice.discriminator().unwrap().get(), DataValue::Signed(discriminator), "{text}");
        assert_eq!(choice.selected().map(|(name, _)| name), member, "{text}");
    }
}

#[test]
fn an_error_names_the_member_and_what_it_should_be() {
    for (text, words) in [
        (r#"{"id":-1}"#, "member `id`: expected uint64 (0 to 18446744073709551615), found -1"),
        (r#"{"id":1.5}"#, "member `id`: expected uint64 (0 to 18446744073709551615), found 1.5"),
        (r#"{"is_on":1}"#, "member `is_on`: expected boolean, found 1"),
        (
            r#"{"mode":"Gone"}"#,
            "member `mode`: expected a literal of Mode (Moving, Idle), found the text \"Gone\"",
        ),
        (
            r#"{"short":"abcd"}"#,
            "member `short`: expected a string of at most 3 octets, found the text \"abcd\"",
        ),
        (r#"{"short":"a\u0000"}"#, "member `short`: expected a string"),
        (r#"{"matrix":[[1,2,3],[4,5]]}"#, "member `matrix[1]`: expected an array of 3 elements, found 2"),
        (
            r#"{"matrix":[[1,2,3],[4,5,70000]]}"#,
            "member `matrix[1][2]`: expected int16 (-32768 to 32767), found 70000",
        ),
        (
            r#"{"modes":["Idle","Idle","Idle"]}"#,
            "member `modes`: expected a sequence of at most 2 elements, found 3",
        ),
        (
            r#"{"places":[{"x":1},{"y":1}]}"#,
            "member `places[1]`: expected a member of a structure Place (x, note), found \"y\"",
        ),
        (r#"{"places":[{"x":1,"x":2}]}"#, "member `places[0].x`: expected one value, found a second one"),
        (r#"{"places":{}}"#, "member `places`: expected a sequence, found an object"),
        (r#"{"choice":{"Number":1,"$discriminator":2}}"#, "member `choice`: expected `Text`, found `Number`"),
        (r#"{"choice":{"Number":1,"Text":""}}"#, "member `choice`: expected one member of a union"),
        (r#"{"by_name":{"k":{"x":"?"}}}"#, r#"member `by_name["k"].x`: expected float32"#),
        (r#"{"by_mode":{"k":1}}"#, r#"member `by_mode["k"]`: expected a key, a literal of Mode"#),
        (r#"{"octets":"a"}"#, "member `octets`: expected octets in base64"),
        (r#"{"id":null}"#, "member `id`: expected uint64 (0 to 18446744073709551615), found no value"),
        (r#"{"grade":"ā"}"#, "member `grade`: expected char"),
        ("[]", "the sample: expected a structure Sample, found an array"),
        ("7", "the sample: expected a structure Sample, found 7"),
        (r#"{"nothing":1}"#, "the sample: expected a member of a structure Sample (id, least,"),
    ] {
        let error = parsed(text).unwrap_err().to_string();
        assert!(error.starts_with(words), "{text}: {error}");
        assert!(error.contains(" at line 1 column "), "{error}");
    }
}

#[test]
fn parts_are_set_by_path() {
    let mut data = ty::<Sample>().new_data();
    let mut set = |path: &str, value: Scalar<'_>| data.set(path, value).unwrap();
    let expected = sample();
    set("id", u64::MAX.into());
    set("least", i64::MIN.into());
    set("is_on", true.into());
    set("grade", 'é'.into());
    set("unit", '☺'.into());
    set("half", 0xd83c_u16.into());
    set("short", "a\"b".into());
    set("wide", "é🎵".into());
    set("mode", "Moving".into());
    for (at, value) in expected.floats.into_iter().enumerate() {
        set(&format!("floats[{at}]"), value.into());
    }
    for (row, values) in expected.matrix.iter().enumerate() {
        for (column, value) in values.iter().enumerate() {
            set(&format!("matrix[{row}][{column}]"), (*value).into());
        }
    }
    set("octets", vec![0xff_u8, 0xfe, 0xfb, 0].into());
    set("bytes[0]", 0.into());
    set("bytes[1]", 255.into());
    set("modes[0]", 3.into());
    set("modes[1]", "Moving".into());
    set("places[0].x", 0.1_f32.into());
    set("places[1].x", Scalar::Integer(-2));
    set("places[1].note", "n".into());
    set("choice.Number", 4.into());
    set("choice.$discriminator", 2.into());
    set("choice.Text", "t".into());
    set(r#"by_name["a \"b\""].x"#, 1.into());
    set("by_number[-1]", true.into());
    set("by_number[7]", false.into());
    set("by_mode[\"Moving\"]", 9.into());
    set("by_unit[\"A\"]", 1.into());
    set("place.x", 1.into());
    set("place", Scalar::Absent);
    let text = |data: &DynamicData| {
        serde_json::to_string(data).unwrap().replace("\"$discriminator\":2", "\"$discriminator\":-3")
    };
    assert_eq!(text(&data), TEXT);
    assert_eq!(written(&data).len(), payload(&expected).len());

    data.resize("places", 1).unwrap();
    data.resize("bytes", 3).unwrap();
    data.reset("matrix").unwrap();
    data.reset("floats[0]").unwrap();
    assert_eq!(data.get("places").unwrap().get(), DataValue::Elements(1));
    assert_eq!(data.get("bytes").unwrap().octets().unwrap().as_ref(), [0, 255, 0]);
    assert_eq!(data.get("matrix[1][2]").unwrap().get(), DataValue::Signed(0));
    assert_eq!(data.get("floats[0]").unwrap().get(), DataValue::Float64(0.0));
    let mut paths = Vec::new();
    data.root().walk(&mut |path, _| paths.push(path.to_owned()));
    assert_eq!(paths.first().map(String::as_str), Some("id"));
    assert!(paths.contains(&"choice.$discriminator".to_owned()) && paths.contains(&"place".to_owned()));
}

#[test]
fn what_is_not_there_and_what_does_not_fit_is_not_set() {
    let mut data = ty::<Sample>().new_data();
    let before = written(&data);
    for (path, value, words) in [
        ("nothing", Scalar::Integer(1), "the sample"),
        ("id.x", Scalar::Integer(1), "member `id.x`: expected uint64"),
        ("id[0]", Scalar::Integer(1), "member `id[0]`: expected uint64"),
        ("id", Scalar::from("a"), "member `id`: expected uint64"),
        ("id", Scalar::Absent, "member `id`: expected uint64"),
        ("matrix[2][0]", Scalar::Integer(1), "member `matrix[2][0]`: expected an index below 2, found [2]"),
        (
            "matrix[1]",
            Scalar::Integer(1),
            "member `matrix[1]`: expected 2 indices of an array of 2 × 3 elements, found 1",
        ),
        ("modes[1]", Scalar::Integer(3), "member `modes[1]`: expected an index below 1, found [1]"),
        ("a..b", Scalar::Integer(1), "member `a..b`: expected a path"),
        ("mode.$discriminator", Scalar::Integer(1), "member `mode.$discriminator`: expected a union"),
    ] {
        let error: DataError = data.set(path, value).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(words) || words == "the sample", "{path}: {text}");
        assert!(!error.expected.is_empty() && !error.found.is_empty());
    }
    assert_eq!(written(&data), before);
    assert!(data.resize("modes", 3).is_err() && data.resize("id", 3).is_err());
    assert!(data.get("places[0]").is_err() && data.get("choice.Text").is_err());
}

#[test]
fn objects_of_few_letters_do_not_take_much_memory() {
    let text = format!(r#"{{"places":[{}{{}}]}}"#, "{},".repeat(1 << 22));
    let error = parsed(&text).unwrap_err().to_string();
    assert!(error.contains("expected at most 4194304 parts in a sample"), "{error}");
}

/// Without derived types beside them, whose code names all of these in full.
mod bits {
    use std::any::TypeId;
    use std::sync::Arc;

    use plainsong_proto::cdr::{Endianness, Extensibility, XcdrVersion};
    use plainsong_proto::type_support::{DataValue, DynamicType};
    use plainsong_proto::types::{
        AggregateDescription, BitsDescription, FieldDescription, FlagDescription, MemberDescription,
        Primitive, TypeBuilder, TypeDescription, TypeIdentifiers,
    };

    fn access(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        struct Access;
        let about = BitsDescription {
            rust_type: TypeId::of::<Access>(),
            name: "Access",
            extensibility: None,
            bit_bound: 16,
        };
        let flag = |name, position| FlagDescription { name, position };
        types.bitmask(&about, &[flag("READ", 0), flag("WRITE", 1), flag("ADMIN", 15)])
    }

    fn bits(types: &mut TypeBuilder) -> Option<TypeIdentifiers> {
        struct Bits;
        let field = |name, position, bits, holder| FieldDescription { name, position, bits, holder };
        let fields = [
            field("low", 0, 3, Primitive::Uint8),
            field("on", 3, 1, Primitive::Boolean),
            field("high", 5, 3, Primitive::Int8),
        ];
        types.bitset(TypeId::of::<Bits>(), "Bits", &fields)
    }

    #[test]
    fn bitmasks_are_the_names_of_their_flags_and_bitsets_their_fields() {
        struct Door;
        let about = AggregateDescription {
            rust_type: TypeId::of::<Door>(),
            name: "Door",
            extensibility: Extensibility::Final,
            hash_ids: false,
            nested: false,
        };
        let members = [MemberDescription::new("access", 0, access), MemberDescription::new("bits", 1, bits)];
        let description = TypeDescription::build(|types| types.structure(&about, None, &members)).unwrap();
        let ty = DynamicType::new("Door", Arc::new(description)).unwrap();
        let read = |text: &str| ty.deserialize_data(&mut serde_json::Deserializer::from_str(text));
        let data = read(r#"{"access":["ADMIN","READ",4],"bits":5}"#).unwrap();
        assert_eq!(data.get("access").unwrap().get(), DataValue::Bitmask(0x8005));
        assert_eq!(
            serde_json::to_string(&data).unwrap(),
            r#"{"access":["READ","ADMIN",4],"bits":{"low":5,"on":false,"high":0}}"#
        );
        let mut payload = Vec::new();
        data.write(XcdrVersion::Xcdr2, Endianness::Big, &mut payload).unwrap();
        assert_eq!(payload[4..7], [0x80, 5, 5]);
        let data = read(r#"{"bits":{"high":-2,"on":true,"low":7}}"#).unwrap();
        assert_eq!(data.get("bits").unwrap().get(), DataValue::Bitmask(0b1100_1111));
        let gap = read(r#"{"bits":16}"#).unwrap();
        let text = r#"{"access":[],"bits":16}"#;
        assert_eq!(serde_json::to_string(&gap).unwrap(), text, "no field has this bit");
        for (text, words) in [
            (r#"{"bits":{"low":8}}"#, "member `bits.low`: expected a value of 3 bits, found 8"),
            (r#"{"bits":{"high":4}}"#, "member `bits.high`: expected a value of 3 bits, found 4"),
            (r#"{"bits":{"low":1,"low":1}}"#, "member `bits.low`: expected one value, found a second one"),
            (r#"{"bits":{"middle":1}}"#, "member `bits`: expected "),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(words), "{error}");
        }
        let error = read(r#"{"access":["FLY"]}"#).unwrap_err().to_string();
        let words = "member `access`: expected flags of Access (READ, WRITE, ADMIN), found \"FLY\"";
        assert!(error.starts_with(words), "{error}");
        assert_eq!(
            read(r#"{"access":"READ | WRITE"}"#).unwrap().get("access").unwrap().get(),
            DataValue::Bitmask(3)
        );
    }
}
