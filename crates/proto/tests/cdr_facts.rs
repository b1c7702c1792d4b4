//! Facts about CDR that trip implementers, one test each, and octets of another product.

use std::collections::BTreeMap;

use plainsong_derive::DdsType;
use plainsong_proto::cdr::{
    Cdr, DdsType, Decoder, Encapsulation, Encoder, Endianness, Extensibility, Plain, WString, XcdrVersion,
    from_payload, key_from_payload, key_hash, key_hash_of_payload, key_to_payload, to_payload,
};
use plainsong_proto::malformed::Malformed;

/// A sample as a payload in little-endian.
fn payload<T: DdsType>(sample: &T, version: XcdrVersion) -> Vec<u8> {
    let mut buffer = Vec::new();
    to_payload(sample, version, Endianness::Little, &mut buffer).expect("a value that can be encoded");
    buffer
}

/// Octets written as hexadecimal digits.
fn octets(digits: &str) -> Vec<u8> {
    let digits = digits.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).expect("ASCII"));
    digits.map(|pair| u8::from_str_radix(pair, 16).expect("two hexadecimal digits")).collect()
}

/// A value without encapsulation, little-endian.
fn bare<T: Cdr>(value: &T, version: XcdrVersion) -> Vec<u8> {
    let mut buffer = Vec::new();
    value
        .encode(&mut Encoder::new(&mut buffer, version, Endianness::Little))
        .expect("a value that can be encoded");
    buffer
}

fn parsed<T: Cdr>(octets: &[u8], version: XcdrVersion) -> Result<T, Malformed> {
    T::decode(&mut Decoder::new(octets, version, Endianness::Little))
}

/// Example 1 of XTypes 1.3 §7.6.8.
#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", final)]
struct Numbered {
    #[dds(key)]
    id: i32,
    x: i32,
    y: i32,
}

/// Example 2 of XTypes 1.3 §7.6.8.
#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", final)]
struct Labelled {
    #[dds(key, bound = 12)]
    label: String,
    #[dds(key)]
    id: i64,
    x: i32,
    y: i32,
}

/// Key members whose ids are not in declaration order, one of them an aggregate.
#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", appendable)]
struct Reordered {
    #[dds(key, id = 30)]
    last: u8,
    #[dds(key, id = 10)]
    first: u16,
    ignored: u32,
    #[dds(key, id = 20)]
    nested: Nested,
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", mutable)]
struct Nested {
    #[dds(id = 2)]
    second: u8,
    #[dds(id = 1)]
    first: u8,
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto")]
struct Unbounded {
    #[dds(key)]
    name: String,
}

#[test]
fn fact_15_key_hash_is_big_endian_xcdr2_in_member_id_order() {
    let sample = Numbered { id: 0x1234_5678, x: 10, y: 20 };
    assert_eq!(key_hash(&sample).unwrap().to_string(), "12345678000000000000000000000000");

    let sample = Labelled { label: "BLUE".to_owned(), id: 0x1234_5678_9abc_def0, x: 10, y: 20 };
    assert_eq!(Labelled::KEY_BYTES_MAX, Some(28));
    assert_eq!(key_hash(&sample).unwrap().to_string(), "f91a59e32e4535d9a69cd5d9f5b6e36e");

    let sample = Reordered { last: 9, first: 0x0102, ignored: 7, nested: Nested { second: 5, first: 4 } };
    assert_eq!(Reordered::KEY_BYTES_MAX, Some(5));
    assert_eq!(key_hash(&sample).unwrap().to_string(), "01020405090000000000000000000000");
    for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
        let hash = key_hash_of_payload::<Reordered>(&payload(&sample, version), false);
        assert_eq!(hash, key_hash(&sample).map_err(|_| Malformed::InvalidString));
    }

    // Unbounded keys are hashed however short: MD5 of 00000002 41 00.
    assert_eq!(Unbounded::KEY_BYTES_MAX, None);
    let hash = key_hash(&Unbounded { name: "A".to_owned() }).unwrap();
    assert_eq!(hash.to_string(), "fe3b82419ed0d3550ba7d720c12463b2");
    // Long ones too, beyond any scratch space.
    let hash = key_hash(&Unbounded { name: "A".repeat(100_000) }).unwrap();
    assert_eq!(hash.to_string(), "5a87736df02f154faf1e6b0cec82c3ed");
}

#[test]
fn fact_42_encapsulation_ids_are_those_of_xtypes() {
    use Extensibility::{Appendable, Final, Mutable};
    use XcdrVersion::{Xcdr1, Xcdr2};
    let table = [
        (Xcdr1, Final, 0x0000),
        (Xcdr1, Appendable, 0x0000),
        (Xcdr1, Mutable, 0x0002),
        (Xcdr2, Final, 0x0006),
        (Xcdr2, Appendable, 0x0008),
        (Xcdr2, Mutable, 0x000a),
    ];
    for (version, extensibility, big_endian) in table {
        for (endianness, id) in [(Endianness::Big, big_endian), (Endianness::Little, big_endian + 1)] {
            let encapsulation = Encapsulation::for_type(version, extensibility, endianness);
            assert_eq!(encapsulation.id(), id);
            assert_eq!(Encapsulation::from_id(id), Ok(encapsulation));
            assert!(encapsulation.suits(extensibility));
        }
    }
    for id in [0x0004, 0x0005, 0x000c, 0x0010, 0x0015, 0xc000] {
        assert_eq!(Encapsulation::from_id(id), Err(Malformed::UnknownEncapsulation));
    }
    // A parameter list cannot be a final type.
    let payload = [0, 3, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0];
    assert_eq!(from_payload::<Numbered>(&payload), Err(Malformed::UnsuitableEncapsulation));
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", final)]
struct Octets {
    octets: Vec<u8>,
}

#[test]
fn fact_43_options_count_the_padding() {
    for (length, padding) in [(0, 0), (1, 3), (2, 2), (3, 1), (4, 0)] {
        let sample = Octets { octets: vec![7; length] };
        for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
            let mut written = payload(&sample, version);
            assert_eq!(written[3], padding);
            assert_eq!(written.len() % 4, 0);
            assert_eq!(from_payload(&written), Ok(sample.clone()));
            // Some writers leave the options zero: what is behind the value is padding all the same.
            written[3] = 0;
            assert_eq!(from_payload(&written), Ok(sample.clone()));
        }
    }
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", final)]
struct Wide {
    octet: u8,
    wide: f64,
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", mutable)]
struct WideMembers {
    octet: u8,
    wide: i64,
}

#[test]
fn fact_44_alignment_is_8_in_xcdr1_and_4_in_xcdr2() {
    let sample = Wide { octet: 1, wide: 1.5 };
    let golden = [0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f];
    assert_eq!(payload(&sample, XcdrVersion::Xcdr1), golden);
    let golden = [0, 7, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f];
    assert_eq!(payload(&sample, XcdrVersion::Xcdr2), golden);

    // The value of an XCDR1 parameter starts at alignment offset 0, here octet 12 of the body.
    let golden = [
        0, 3, 0, 0, // PL_CDR_LE
        0, 0, 1, 0, 1, 0, 0, 0, // member 0: one octet, and alignment
        1, 0, 8, 0, 2, 0, 0, 0, 0, 0, 0, 0, // member 1
        0x02, 0x7f, 0, 0, // sentinel
    ];
    assert_eq!(payload(&WideMembers { octet: 1, wide: 2 }, XcdrVersion::Xcdr1), golden);
}

#[derive(DdsType, Debug, Clone, Copy, PartialEq)]
#[dds(crate = "plainsong_proto")]
enum Letter {
    A,
    B,
    C = 5,
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", final)]
struct Inner {
    a: u8,
    b: i64,
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", appendable)]
struct InnerAppendable {
    a: u8,
    b: i64,
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", final)]
struct Collections {
    enumerations: Vec<Letter>,
    enumeration_array: [Letter; 2],
    structures: Vec<Inner>,
    appendables: Vec<InnerAppendable>,
    matrix: [[i16; 2]; 3],
    structure_matrix: [[Inner; 1]; 2],
    arrays: Vec<[i16; 2]>,
    strings: Vec<String>,
}

fn collections() -> Collections {
    Collections {
        enumerations: vec![Letter::B, Letter::C],
        enumeration_array: [Letter::A, Letter::C],
        structures: vec![Inner { a: 1, b: 2 }],
        appendables: vec![InnerAppendable { a: 1, b: 2 }],
        matrix: [[1, 2], [3, 4], [5, 6]],
        structure_matrix: [[Inner { a: 1, b: 2 }], [Inner { a: 3, b: 4 }]],
        arrays: vec![[1, 2], [3, 4]],
        strings: vec!["a".to_owned(), String::new()],
    }
}

#[test]
fn fact_45_collections_of_anything_but_primitives_have_a_delimiter() {
    // Octets of Cyclone DDS 11.0.1, with the padding that its Python serializer leaves out.
    let xcdr2 = octets(concat!(
        "000700030c0000000200000001000000050000000800000000000000050000001000000001000000010000000200000000000000",
        "14000000010000000c000000010000000200000000000000010002000300040005000600180000000100000002000000",
        "000000000300000004000000000000000c0000000200000001000200030004001100000002000000020000006100000001000000",
        "00000000"
    ));
    assert_eq!(payload(&collections(), XcdrVersion::Xcdr2), xcdr2);
    assert_eq!(from_payload(&xcdr2), Ok(collections()));
    let xcdr1 = octets(concat!(
        "0001000302000000010000000500000000000000050000000100000001000000000000000200000000000000",
        "0100000001000000020000000000000001000200030004000500060001000000020000000000000003000000000000000400",
        "000000000000020000000100020003000400020000000200000061000000010000000000",
        "0000"
    ));
    assert_eq!(payload(&collections(), XcdrVersion::Xcdr1), xcdr1);
    assert_eq!(from_payload(&xcdr1), Ok(collections()));
}

#[test]
fn fact_45_collections_of_enumerations_are_read_without_delimiter_too() {
    let with = [12, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0];
    assert_eq!(bare(&vec![Letter::B, Letter::C], XcdrVersion::Xcdr2), with);
    assert_eq!(parsed(&with, XcdrVersion::Xcdr2), Ok(vec![Letter::B, Letter::C]));
    assert_eq!(parsed(&with[4..], XcdrVersion::Xcdr2), Ok(vec![Letter::B, Letter::C]));
    let with = [8, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0];
    assert_eq!(bare(&[Letter::B, Letter::C], XcdrVersion::Xcdr2), with);
    assert_eq!(parsed(&with, XcdrVersion::Xcdr2), Ok([Letter::B, Letter::C]));
    assert_eq!(parsed(&with[4..], XcdrVersion::Xcdr2), Ok([Letter::B, Letter::C]));
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", mutable)]
struct Mutable {
    #[dds(key)]
    key: i32,
    flag: bool,
    text: String,
    number: f64,
    optional: Option<i16>,
    nested: InnerAppendable,
    numbers: Vec<i32>,
    texts: Vec<String>,
}

fn mutable() -> Mutable {
    Mutable {
        key: 7,
        flag: true,
        text: "hi".to_owned(),
        number: 1.5,
        optional: None,
        nested: InnerAppendable { a: 1, b: 2 },
        numbers: vec![1, 2],
        texts: vec!["x".to_owned(), "yz".to_owned()],
    }
}

#[test]
fn fact_46_all_length_codes_of_member_headers_are_read() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(crate = "plainsong_proto", mutable)]
    struct Codes {
        one: u8,
        two: u16,
        four: u32,
        eight: u64,
        next: [u8; 3],
        text: String,
        fours: Vec<u32>,
        eights: Vec<u64>,
    }
    let golden = [
        0, 11, 0, 0, 0x58, 0, 0, 0, // PL_CDR2_LE, DHEADER
        0, 0, 0, 0x00, 1, 0, 0, 0, // code 0: 1 octet
        1, 0, 0, 0x10, 2, 0, 0, 0, // code 1: 2 octets
        2, 0, 0, 0x20, 4, 0, 0, 0, // code 2: 4 octets
        3, 0, 0, 0x30, 8, 0, 0, 0, 0, 0, 0, 0, // code 3: 8 octets
        4, 0, 0, 0x40, 3, 0, 0, 0, 7, 8, 9, 0, // code 4: NEXTINT octets
        5, 0, 0, 0x50, 2, 0, 0, 0, b'h', 0, 0, 0, // code 5: NEXTINT is the length of the string
        6, 0, 0, 0x60, 1, 0, 0, 0, 6, 0, 0, 0, // code 6: NEXTINT counts 4 octets each
        7, 0, 0, 0x70, 1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, // code 7: 8 octets each
    ];
    let codes = Codes {
        one: 1,
        two: 2,
        four: 4,
        eight: 8,
        next: [7, 8, 9],
        text: "h".to_owned(),
        fours: vec![6],
        eights: vec![5],
    };
    assert_eq!(from_payload(&golden), Ok(codes));

    // Cyclone DDS 11.0.1: code 5 for strings and sequences, 4 for nested objects.
    let cyclone = octets(concat!(
        "000b00006b000000000000200700000001000000010000000200005003000000686900000300003000000000",
        "0000f83f05000040100000000c0000000100000002000000000000000600006002000000010000000200000007000050",
        "1300000002000000020000007800000003000000797a00"
    ));
    assert_eq!(from_payload(&cyclone), Ok(mutable()));
    assert_eq!(from_payload(&payload(&mutable(), XcdrVersion::Xcdr2)), Ok(mutable()));
}

#[test]
fn fact_46_unknown_members_are_skipped_unless_they_must_be_understood() {
    let unknown = |header| {
        from_payload::<WideMembers>(&[
            0, 11, 0, 0, 28, 0, 0, 0, // PL_CDR2_LE, DHEADER
            9, 0, 0, header, 1, 0, 0, 0, // member 9: 4 octets
            0, 0, 0, 0x00, 5, 0, 0, 0, // octet
            1, 0, 0, 0x30, 2, 0, 0, 0, 0, 0, 0, 0, // wide
        ])
    };
    assert_eq!(unknown(0x20), Ok(WideMembers { octet: 5, wide: 2 }));
    assert_eq!(unknown(0xa0), Err(Malformed::NotUnderstood));
}

#[test]
fn fact_47_parameter_lists_are_read_in_all_dialects() {
    // Cyclone DDS 11.0.1: extended headers throughout, rounded lengths, sentinel with must-understand.
    let cyclone = octets(concat!(
        "00030000017f0800000000000400000007000000017f0800010000000400000001000000017f080002000000080000000300",
        "000068690000017f08000300000008000000000000000000f83f017f0800050000001000000001000000000000000200",
        "000000000000017f0800060000000c000000020000000100000002000000017f08000700000014000000020000000200",
        "00007800000003000000797a0000027f0000"
    ));
    assert_eq!(from_payload(&cyclone), Ok(mutable()));
    // Short headers, true lengths, sentinel without must-understand, an ignored parameter.
    let short = [
        0, 3, 0, 0, // PL_CDR_LE
        0x03, 0x3f, 4, 0, 1, 2, 3, 4, // PID_IGNORE
        0, 0, 1, 0, 1, 0, 0, 0, // member 0
        1, 0, 8, 0, 2, 0, 0, 0, 0, 0, 0, 0, // member 1
        0x02, 0x3f, 0, 0, // sentinel
    ];
    assert_eq!(from_payload(&short), Ok(WideMembers { octet: 1, wide: 2 }));
    assert_eq!(from_payload::<WideMembers>(&short[..32]), Err(Malformed::MissingSentinel));
    assert_eq!(from_payload(&payload(&mutable(), XcdrVersion::Xcdr1)), Ok(mutable()));
}

#[test]
fn fact_47_long_members_get_an_extended_header() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(crate = "plainsong_proto", mutable)]
    struct Long {
        octets: Vec<u8>,
        #[dds(id = 0x3f01)]
        high_id: u32,
        wide: u64,
    }
    let sample = Long { octets: vec![3; 70_000], high_id: 4, wide: 5 };
    let written = payload(&sample, XcdrVersion::Xcdr1);
    // PID_EXTENDED with must-understand, 8, member id, 4 + 70,000 octets, the count.
    assert_eq!(written[4..24], octets("017f080000000000741101007011010003030303")[..]);
    assert_eq!(from_payload(&written), Ok(sample));
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", final)]
struct Optionals {
    a: u8,
    number: Option<i64>,
    text: Option<String>,
    z: u8,
}

#[test]
fn fact_48_optional_members() {
    let number = Optionals { a: 1, number: Some(5), text: None, z: 9 };
    let text = Optionals { a: 1, number: None, text: Some("q".to_owned()), z: 9 };
    // XCDR2: a boolean in front. Octets of Cyclone DDS 11.0.1.
    let golden = octets("0007000201010000050000000000000000090000");
    assert_eq!(payload(&number, XcdrVersion::Xcdr2), golden);
    let golden = octets("00070001010001000200000071000900");
    assert_eq!(payload(&text, XcdrVersion::Xcdr2), golden);
    assert_eq!(from_payload(&golden), Ok(text.clone()));

    // XCDR1: a parameter header in front, length 0 for none.
    let golden = [
        0, 1, 0, 3, // CDR_LE
        1, 0, 0, 0, // a
        1, 0, 8, 0, 5, 0, 0, 0, 0, 0, 0, 0, // member 1, 8 octets
        2, 0, 0, 0, // member 2, none
        9, 0, 0, 0, // z, padding
    ];
    assert_eq!(payload(&number, XcdrVersion::Xcdr1), golden);
    assert_eq!(from_payload(&golden), Ok(number.clone()));
    // The same with the extended headers of Cyclone DDS 11.0.1.
    let cyclone =
        octets("0001000001000000017f080001000000080000000500000000000000017f0800020000000000000009");
    assert_eq!(from_payload(&cyclone), Ok(number));
    let cyclone = octets("0001000001000000017f08000100000000000000017f0800020000000600000002000000710009");
    assert_eq!(from_payload(&cyclone), Ok(text));
}

#[test]
fn fact_49_wide_strings_count_octets_and_have_no_nul() {
    let text = WString("aé😀".to_owned());
    let golden = [8, 0, 0, 0, b'a', 0, 0xe9, 0, 0x3d, 0xd8, 0x00, 0xde];
    for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
        assert_eq!(bare(&text, version), golden);
        assert_eq!(parsed(&golden, version), Ok(text.clone()));
    }
    let mut buffer = Vec::new();
    text.encode(&mut Encoder::new(&mut buffer, XcdrVersion::Xcdr1, Endianness::Big)).unwrap();
    assert_eq!(buffer, [0, 0, 0, 8, 0, b'a', 0, 0xe9, 0xd8, 0x3d, 0xde, 0x00]);
    // Half a surrogate pair, and an odd number of octets.
    assert_eq!(
        parsed::<WString>(&[2, 0, 0, 0, 0x3d, 0xd8], XcdrVersion::Xcdr1),
        Err(Malformed::InvalidString)
    );
    assert_eq!(parsed::<WString>(&[1, 0, 0, 0, 0x3d], XcdrVersion::Xcdr1), Err(Malformed::InvalidString));
}

#[test]
fn fact_49_bool_char_and_enumeration_widths() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(crate = "plainsong_proto", bit_bound = 8)]
    enum Small {
        Minus = -1,
        #[dds(default)]
        Zero,
    }
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(crate = "plainsong_proto", bit_bound = 9)]
    enum Medium {
        Big = 300,
    }
    assert_eq!(bare(&Small::Minus, XcdrVersion::Xcdr1), [0xff]);
    assert_eq!(bare(&Medium::Big, XcdrVersion::Xcdr1), [0x2c, 1]);
    assert_eq!(bare(&Letter::C, XcdrVersion::Xcdr1), [5, 0, 0, 0]);
    assert_eq!(bare(&true, XcdrVersion::Xcdr1), [1]);
    assert_eq!(bare(&'é', XcdrVersion::Xcdr1), [0xe9]);
    assert_eq!(Small::initial(), Small::Zero);
    assert_eq!(parsed::<Small>(&[1], XcdrVersion::Xcdr1), Err(Malformed::InvalidEnum));
    assert_eq!(parsed::<bool>(&[2], XcdrVersion::Xcdr1), Err(Malformed::InvalidBoolean));
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", union, discriminator = i32, final)]
enum Choice {
    #[dds(case = 1)]
    Number(i32),
    #[dds(case(2, 3), bound = 4)]
    Text(String),
    #[dds(default)]
    Real(f64),
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", union, discriminator = Letter, key, mutable)]
enum ByLetter {
    #[dds(case = Letter::A)]
    Nothing,
    #[dds(case = Letter::C)]
    Octets(Vec<u8>),
}

#[test]
fn fact_50_unions() {
    let number = octets("0100000005000000");
    let text = octets("02000000020000007800");
    let other_label = octets("03000000020000007800");
    let default = octets("ffffffff0000000000000040");
    for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
        assert_eq!(bare(&Choice::Number(5), version), number);
        assert_eq!(parsed(&number, version), Ok(Choice::Number(5)));
        assert_eq!(bare(&Choice::Text("x".to_owned()), version), text);
        assert_eq!(parsed(&text, version), Ok(Choice::Text("x".to_owned())));
        assert_eq!(parsed(&other_label, version), Ok(Choice::Text("x".to_owned())));
    }
    assert_eq!(parsed(&default, XcdrVersion::Xcdr2), Ok(Choice::Real(2.0)));
    // The default is written with the smallest discriminator that selects nothing else.
    assert_eq!(bare(&Choice::Real(2.0), XcdrVersion::Xcdr2), octets("000000000000000000000040"));
    assert_eq!(
        parsed::<Choice>(&octets("020000000700000061626364656600"), XcdrVersion::Xcdr1),
        Err(Malformed::LengthOutOfRange)
    );

    let sample = ByLetter::Octets(vec![1, 2]);
    let other = ByLetter::Octets(vec![3]);
    assert_eq!(key_hash(&sample).unwrap().to_string(), "00000005000000000000000000000000");
    assert_eq!(key_hash(&sample), key_hash(&other));
    for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
        let written = payload(&sample, version);
        assert_eq!(from_payload(&written), Ok(sample.clone()));
        assert_eq!(key_hash_of_payload::<ByLetter>(&written, false).ok(), key_hash(&sample).ok());
        let mut key = Vec::new();
        key_to_payload(&sample, version, Endianness::Big, &mut key).unwrap();
        assert_eq!(key_from_payload(&key), Ok(ByLetter::Octets(Vec::new())));
    }
    let unknown_literal = [0, 11, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0xa0, 1, 0, 0, 0];
    assert_eq!(from_payload::<ByLetter>(&unknown_literal), Err(Malformed::InvalidDiscriminator));
}

#[test]
fn fact_50_maps_are_sequences_of_pairs() {
    let primitive = BTreeMap::from([(1_u32, 2_u32), (3, 4)]);
    let golden = octets("020000000100000002000000030000000400000000000000");
    assert_eq!(bare(&primitive, XcdrVersion::Xcdr2), golden[..20]);
    assert_eq!(parsed(&golden, XcdrVersion::Xcdr2), Ok(primitive));
    let named = BTreeMap::from([("a".to_owned(), 7_u8)]);
    let golden = octets("0b00000001000000020000006100");
    let golden = [&golden[..], &[7]].concat();
    assert_eq!(bare(&named, XcdrVersion::Xcdr2), golden);
    assert_eq!(bare(&named, XcdrVersion::Xcdr1), golden[4..]);
    assert_eq!(parsed(&golden, XcdrVersion::Xcdr2), Ok(named.clone()));
    assert_eq!(parsed(&golden[4..], XcdrVersion::Xcdr1), Ok(named));
}

#[test]
fn serialized_keys_are_framed_like_the_type() {
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(crate = "plainsong_proto", appendable)]
    struct Several {
        #[dds(key)]
        b: i16,
        #[dds(key)]
        i: InnerAppendable,
        #[dds(key)]
        a: i32,
        x: i32,
    }
    let sample = Several { b: 1, i: InnerAppendable { a: 2, b: 3 }, a: 4, x: 5 };
    // Octets of Cyclone DDS 11.0.1.
    let golden = octets("0009000018000000010000000c00000002000000030000000000000004000000");
    let mut key = Vec::new();
    key_to_payload(&sample, XcdrVersion::Xcdr2, Endianness::Little, &mut key).unwrap();
    assert_eq!(key, golden);
    assert_eq!(key_from_payload(&golden), Ok(Several { x: 0, ..sample }));
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", appendable)]
struct Old {
    #[dds(key)]
    a: u32,
    b: u8,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", appendable)]
struct New {
    #[dds(key)]
    a: u32,
    b: u8,
    c: [u64; 40],
    #[dds(default = 7)]
    d: u32,
    e: Option<u32>,
}

#[test]
fn appended_members_take_their_default_or_are_skipped() {
    let old = Old { a: 1, b: 2 };
    let new = New { a: 1, b: 2, c: [0; 40], d: 7, e: None };
    for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
        assert_eq!(
            from_payload::<New>(&payload(&old, version)),
            Ok(New { a: 1, b: 2, c: [0; 40], d: 7, e: None })
        );
        assert_eq!(from_payload::<Old>(&payload(&new, version)), Ok(Old { a: 1, b: 2 }));
    }
    // An optional member is not looked for in the padding, even where the options do not tell it.
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(crate = "plainsong_proto", appendable)]
    struct WithOptional {
        #[dds(key)]
        a: u32,
        b: u8,
        c: Option<u32>,
    }
    let padded = [0, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0];
    assert_eq!(from_payload(&padded), Ok(WithOptional { a: 1, b: 2, c: None }));
    // A key member is never made up.
    assert_eq!(from_payload::<Old>(&[0, 9, 0, 0, 0, 0, 0, 0]), Err(Malformed::MissingMember));
    assert_eq!(from_payload::<Old>(&[0, 1, 0, 0]), Err(Malformed::MissingMember));
}

#[derive(DdsType, Debug, PartialEq, Default)]
#[dds(crate = "plainsong_proto", final)]
struct Tree {
    children: Vec<Self>,
    next: Option<Box<Self>>,
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", union, discriminator = u8, appendable)]
enum Expression {
    #[dds(case = 0)]
    Number(f64),
    #[dds(case = 1)]
    Negative(Box<Self>),
    #[dds(case = 2)]
    Sum(Operands),
    #[dds(case = 3, bound = 4)]
    Product(Vec<Self>),
}

#[derive(DdsType, Debug, PartialEq)]
#[dds(crate = "plainsong_proto", final)]
struct Operands {
    left: Box<Expression>,
    right: Box<Expression>,
}

#[test]
fn types_may_be_mutually_recursive() {
    let number = || Box::new(Expression::Number(1.5));
    let product = Expression::Product(vec![Expression::Negative(number()), *number()]);
    let sum = Expression::Sum(Operands { left: Box::new(product), right: number() });
    for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
        let written = payload(&sum, version);
        assert_eq!(from_payload::<Expression>(&written).as_ref(), Ok(&sum));
        assert_eq!(key_hash_of_payload::<Expression>(&written, false), Ok(Default::default()));
    }
}

#[test]
fn r15_recursion_is_limited_both_ways() {
    let chain = |depth| {
        (1..depth).fold(Tree::default(), |next, _| Tree { next: Some(Box::new(next)), ..Tree::default() })
    };
    let mut buffer = Vec::new();
    for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
        let deepest = chain(64);
        assert_eq!(parsed(&bare(&deepest, version), version), Ok(deepest));
        assert!(chain(65).encode(&mut Encoder::new(&mut buffer, version, Endianness::Little)).is_err());
    }
    // Each level: DHEADER too large to matter, one child.
    let hostile =
        [[1_u32; 1]; 10_000].as_flattened().iter().flat_map(|one| one.to_le_bytes()).collect::<Vec<_>>();
    assert_eq!(parsed::<Tree>(&hostile, XcdrVersion::Xcdr1), Err(Malformed::TooDeep));
}

#[test]
fn r3_counts_and_memory_are_checked_before_anything_is_allocated() {
    let count = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    assert_eq!(parsed::<Vec<u8>>(&count, XcdrVersion::Xcdr1), Err(Malformed::LengthOutOfRange));
    assert_eq!(parsed::<String>(&count, XcdrVersion::Xcdr1), Err(Malformed::LengthOutOfRange));
    assert_eq!(parsed::<BTreeMap<u8, u8>>(&count, XcdrVersion::Xcdr1), Err(Malformed::LengthOutOfRange));
    // Elements of no octets at all.
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(crate = "plainsong_proto", final)]
    struct Empty {}
    assert_eq!(parsed::<Vec<Empty>>(&[3, 0, 0, 0], XcdrVersion::Xcdr1).map(|empty| empty.len()), Ok(3));
    assert_eq!(parsed::<Vec<Empty>>(&count[..4], XcdrVersion::Xcdr1), Err(Malformed::MemoryLimit));
    // Elements that take more memory than octets: a delimiter of 4 octets stands for 200 kilobytes.
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(crate = "plainsong_proto", appendable)]
    struct Amplifier {
        table: [u64; 25_000],
    }
    let mut hostile = vec![0; 40_008];
    hostile[..4].copy_from_slice(&40_004_u32.to_le_bytes());
    hostile[4..8].copy_from_slice(&10_000_u32.to_le_bytes());
    assert_eq!(parsed::<Vec<Amplifier>>(&hostile, XcdrVersion::Xcdr2), Err(Malformed::MemoryLimit));
}

#[test]
fn strings_are_terminated_text_within_their_bound() {
    let string = |octets: &[u8]| parsed::<String>(octets, XcdrVersion::Xcdr2);
    assert_eq!(string(&[0, 0, 0, 0]), Ok(String::new()));
    assert_eq!(string(&[1, 0, 0, 0, 0]), Ok(String::new()));
    assert_eq!(string(&[1, 0, 0, 0, b'a']), Err(Malformed::InvalidString));
    assert_eq!(string(&[3, 0, 0, 0, b'a', 0, 0]), Err(Malformed::InvalidString));
    assert_eq!(string(&[2, 0, 0, 0, 0xff, 0]), Err(Malformed::InvalidString));
    assert_eq!(string(&[9, 0, 0, 0, b'a', 0]), Err(Malformed::LengthOutOfRange));

    let long = Labelled { label: "a".repeat(13), id: 1, x: 2, y: 3 };
    let mut buffer = vec![1, 2, 3];
    let error = to_payload(&long, XcdrVersion::Xcdr1, Endianness::Little, &mut buffer).unwrap_err();
    assert!(error.to_string().contains("`label` has length 13, its bound is 12"), "{error}");
    assert_eq!(buffer, [1, 2, 3], "a failed sample leaves no trace");
    let nul = Unbounded { name: "a\0b".to_owned() };
    assert!(to_payload(&nul, XcdrVersion::Xcdr1, Endianness::Little, &mut buffer).is_err());
}

#[test]
fn plain_is_told_only_where_memory_is_the_wire() {
    #[derive(DdsType)]
    #[dds(crate = "plainsong_proto", final)]
    #[repr(C)]
    struct Point {
        x: f64,
        y: [f32; 2],
    }
    #[derive(DdsType)]
    #[dds(crate = "plainsong_proto", final)]
    #[repr(C)]
    struct Padded {
        octet: u8,
        wide: u64,
    }
    #[derive(DdsType)]
    #[dds(crate = "plainsong_proto", appendable)]
    #[repr(C)]
    struct Delimited {
        x: u32,
    }
    #[derive(DdsType)]
    #[dds(crate = "plainsong_proto", final)]
    #[repr(C)]
    struct Flagged {
        flag: bool,
    }
    assert_eq!(Point::PLAIN.xcdr1.map(|layout| (layout.bytes, layout.alignment)), Some((16, 8)));
    assert_eq!(Point::PLAIN.xcdr2.map(|layout| (layout.bytes, layout.alignment)), Some((16, 4)));
    assert_eq!(Padded::PLAIN, Plain::NEVER);
    assert!(Delimited::PLAIN.xcdr1.is_some() && Delimited::PLAIN.xcdr2.is_none());
    assert_eq!(Flagged::PLAIN, Plain::NEVER, "2 is no bool");
    assert_eq!(Inner::PLAIN, Plain::NEVER, "the layout is not defined without repr(C)");
}

#[test]
fn member_ids_from_hashes() {
    // Example 2 of XTypes 1.3 §7.3.1.2.1.1: color is 0x0fa5dd70, shapesize 0x047790da.
    #[derive(DdsType, Debug, PartialEq)]
    #[dds(crate = "plainsong_proto", mutable, autoid = "hash")]
    struct Hashed {
        color: u8,
        #[dds(hashid = "shapesize")]
        size: u8,
    }
    let golden = octets("000b00030d00000070dda50f01000000da90770402000000");
    assert_eq!(payload(&Hashed { color: 1, size: 2 }, XcdrVersion::Xcdr2), golden);
}
