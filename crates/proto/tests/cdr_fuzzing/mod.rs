//! One fuzzing run over CDR: the octets choose a type, a value, and what happens to its representation.
//! Whatever happens, nothing panics, and what was decoded can be encoded.

use std::collections::BTreeMap;

use plainsong_derive::DdsType;
use plainsong_proto::cdr::{
    DdsType, Decoder, Encapsulation, Encoder, Endianness, Extensibility, WChar, WString, XcdrVersion,
    from_payload, from_shared_payload_over, key_from_payload, key_hash, key_hash_of_payload, to_payload,
};

use plainsong_proto::payload::Payload;

use crate::type_model::{Choices, TypeModel};

/// The run that `octets` choose.
pub(crate) fn run(octets: &[u8]) {
    let (first, second) = octets.split_at(octets.len() / 2);
    random_type(&mut Choices(first));
    derived_types(&mut Choices(second));
}

/// A random type: its value comes back untouched, and its mutated octets are refused or read.
fn random_type(choices: &mut Choices<'_>) {
    let model = TypeModel::structure(choices, 4);
    let value = model.value(choices);
    let version = if choices.octet() & 1 == 0 { XcdrVersion::Xcdr1 } else { XcdrVersion::Xcdr2 };
    let endianness = if choices.octet() & 1 == 0 { Endianness::Little } else { Endianness::Big };
    let mut body = Vec::new();
    model.encode(&value, &mut Encoder::new(&mut body, version, endianness)).expect("small values fit");
    assert_eq!(
        model.decode(&mut Decoder::new(&body, version, endianness)),
        Ok(value),
        "{model:?} {version:?}"
    );

    mutate(&mut body, choices);
    if let Ok(read) = model.decode(&mut Decoder::new(&body, version, endianness)) {
        let mut again = Vec::new();
        model.encode(&read, &mut Encoder::new(&mut again, version, endianness)).expect("decoded values fit");
        assert_eq!(model.decode(&mut Decoder::new(&again, version, endianness)), Ok(read), "{model:?}");
    }
}

/// Derived types: a valid sample mutated, and octets that never were a sample.
fn derived_types(choices: &mut Choices<'_>) {
    let mut payload = Vec::new();
    let sample = Everything { key: choices.number() as u32, ..Everything::sample() };
    let version = if choices.octet() & 1 == 0 { XcdrVersion::Xcdr1 } else { XcdrVersion::Xcdr2 };
    to_payload(&sample, version, Endianness::Little, &mut payload).expect("a small sample fits");
    mutate(&mut payload, choices);
    read(&payload, Everything::sample());
    let id = Encapsulation::for_type(version, Extensibility::Appendable, Endianness::Big).id();
    let arbitrary = [&id.to_be_bytes(), &[0, choices.octet()], choices.0].concat();
    read(&arbitrary, Everything::sample());
    let leaf = || Tree { children: Vec::new(), next: None };
    read(&arbitrary, Tree { children: vec![leaf(), leaf()], next: Some(Box::new(leaf())) });
}

/// Reads octets in every way, also over a value that is there.
fn read<T: DdsType>(payload: &[u8], mut over: T) {
    let decoded = from_payload::<T>(payload);
    let decoded_over = from_shared_payload_over(&Payload::from_vec(payload.to_vec()), &mut over);
    assert_eq!(
        decoded.as_ref().err(),
        decoded_over.as_ref().err(),
        "the same is refused for the same reason"
    );
    if let Ok(sample) = decoded {
        let octets = |sample: &T| {
            let mut octets = Vec::new();
            to_payload(sample, XcdrVersion::Xcdr1, Endianness::Little, &mut octets).map(|()| octets)
        };
        assert_eq!(octets(&sample), octets(&over), "nothing is left of what was there");
        let hash = key_hash(&sample).expect("decoded samples have keys");
        assert_eq!(key_hash_of_payload::<T>(payload, false), Ok(hash));
        to_payload(&sample, XcdrVersion::Xcdr2, Endianness::Big, &mut Vec::new())
            .expect("decoded samples fit");
    }
    let _ = key_from_payload::<T>(payload);
    let _ = key_hash_of_payload::<T>(payload, true);
    let _ = key_hash_of_payload::<T>(payload, false);
}

fn mutate(octets: &mut Vec<u8>, choices: &mut Choices<'_>) {
    for _ in 0..=choices.below(4) {
        let at = choices.number() as usize % (octets.len() + 1);
        match (choices.below(6), octets.get_mut(at)) {
            (0, Some(octet)) => *octet ^= 1 << choices.below(8),
            (1, Some(octet)) => *octet = choices.octet(),
            (2, Some(octet)) => *octet = [0, 1, 0x7f, 0x80, 0xff][usize::from(choices.below(5))],
            (3, Some(_)) => octets.truncate(at),
            (4, _) => octets.insert(at, choices.octet()),
            (_, Some(_)) => drop(octets.remove(at)),
            _ => {}
        }
    }
}

#[derive(DdsType, Debug)]
#[dds(crate = "plainsong_proto", appendable)]
struct Everything {
    #[dds(key)]
    key: u32,
    flag: bool,
    letter: char,
    wide_letter: WChar,
    small: i8,
    matrix: [[i16; 2]; 3],
    real: f64,
    #[dds(bound = 20)]
    text: String,
    wide_text: WString,
    #[dds(key)]
    nested: Nested,
    choices: Vec<Choice>,
    map: BTreeMap<u16, String>,
    colors: Vec<Color>,
    boxed: Box<u64>,
    optional: Option<Vec<Nested>>,
}

#[derive(DdsType, Debug)]
#[dds(crate = "plainsong_proto", mutable)]
struct Nested {
    #[dds(id = 9, key, bound = 8)]
    name: String,
    #[dds(id = 2, key)]
    number: u16,
    optional: Option<i64>,
    #[dds(must_understand)]
    octets: Vec<u8>,
}

#[derive(DdsType, Debug)]
#[dds(crate = "plainsong_proto", union, discriminator = u8, mutable)]
enum Choice {
    #[dds(case = 1)]
    Number(u32),
    #[dds(case(2, 3))]
    Text(String),
    #[dds(default)]
    Nothing,
}

#[derive(DdsType, Debug)]
#[dds(crate = "plainsong_proto", bit_bound = 16)]
enum Color {
    Red,
    Blue = 7,
}

#[derive(DdsType, Debug)]
#[dds(crate = "plainsong_proto", appendable)]
struct Tree {
    children: Vec<Self>,
    next: Option<Box<Self>>,
}

impl Everything {
    fn sample() -> Self {
        let nested =
            |number| Nested { name: "n".to_owned(), number, optional: Some(-1), octets: vec![1, 2, 3] };
        Self {
            key: 1,
            flag: true,
            letter: 'x',
            wide_letter: WChar(0x6f22),
            small: -1,
            matrix: [[1, 2], [3, 4], [5, 6]],
            real: 0.5,
            text: "text".to_owned(),
            wide_text: WString("wide".to_owned()),
            nested: nested(2),
            choices: vec![Choice::Number(1), Choice::Text("t".to_owned()), Choice::Nothing],
            map: BTreeMap::from([(1, "one".to_owned())]),
            colors: vec![Color::Red, Color::Blue],
            boxed: Box::new(3),
            optional: Some(vec![nested(4)]),
        }
    }
}
