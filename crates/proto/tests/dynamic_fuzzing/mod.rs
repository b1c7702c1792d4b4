//! One fuzzing run over types that are known at run time: the octets change a TypeObject, a sample of the
//! type that it then is, and a text. Whatever happens, nothing panics, and what was read can be written.

use std::collections::BTreeMap;
use std::sync::Arc;

use plainsong_derive::DdsType;
use plainsong_proto::cdr::{DdsType, Endianness, OctetSeq, WChar, WString, XcdrVersion, to_payload};
use plainsong_proto::type_support::{DynamicData, DynamicType, TypeSupport};
use plainsong_proto::types::{TypeDescription, TypeHash};

/// The run that `octets` choose.
pub(crate) fn run(octets: &[u8]) {
    let [kind, octets @ ..] = octets else { return };
    let (of_type, rest) = octets.split_at(octets.len() / 3);
    let (of_sample, text) = rest.split_at(rest.len() / 2);
    match kind & 1 {
        0 => any::<Everything>(*kind, &Everything::sample(), of_type, of_sample, text),
        _ => any::<Mutable>(
            *kind,
            &Mutable { all: vec![Everything::sample()], note: None },
            of_type,
            of_sample,
            text,
        ),
    }
}

fn any<T: DdsType>(kind: u8, sample: &T, of_type: &[u8], of_sample: &[u8], text: &[u8]) {
    let description = described::<T>(kind & 2 != 0, of_type);
    let Ok(ty) = DynamicType::new(T::TYPE_NAME, Arc::new(description)) else { return };
    let endianness = if kind & 4 == 0 { Endianness::Little } else { Endianness::Big };
    let version = if kind & 8 == 0 { XcdrVersion::Xcdr1 } else { XcdrVersion::Xcdr2 };
    let mut payload = Vec::new();
    to_payload(sample, version, endianness, &mut payload).expect("a small sample fits");
    mutate(&mut payload, of_sample);
    assert_eq!(ty.check(&payload).err(), ty.read_data(&payload).err());
    if let Ok(data) = ty.read_data(&payload) {
        comes_back(&ty, &data);
    }
    let _ = ty.read_key_data(&payload, true);
    comes_back(&ty, &ty.new_data());
    from_text(&ty, text);
}

/// What was read is written, and read again as the same.
fn comes_back(ty: &DynamicType, data: &DynamicData) {
    // Names that are no UTF-8, and values that nest too deep, are refused as they are read.
    let mut payload = Vec::new();
    data.write(XcdrVersion::Xcdr2, Endianness::Little, &mut payload).expect("what was read can be written");
    let again = ty.read_data(&payload).expect("what was written can be read");
    let mut second = Vec::new();
    again.write(XcdrVersion::Xcdr2, Endianness::Little, &mut second).expect("it was written before");
    assert_eq!(payload, second, "{ty:?}");
    data.root().walk(&mut |path, value| {
        let _ = (path.len(), value.get());
    });
    #[cfg(feature = "serde")]
    {
        let text = serde_json::to_string(data).expect("JSON has all of it");
        let mut parser = serde_json::Deserializer::from_str(&text);
        let again = ty.deserialize_data(&mut parser).unwrap_or_else(|error| panic!("{error}: {text}"));
        let mut third = Vec::new();
        again.write(XcdrVersion::Xcdr2, Endianness::Little, &mut third).expect("it was written before");
        // A NaN has many forms, and a text one.
        assert!(payload == third || text.contains("NaN") && payload.len() == third.len(), "{text}");
    }
}

/// A text of the application, or what is like one.
#[cfg(feature = "serde")]
fn from_text(ty: &DynamicType, text: &[u8]) {
    let _ = ty.deserialize_data(&mut serde_json::Deserializer::from_slice(text));
    let mut known = serde_json::to_vec(&ty.new_data()).expect("JSON has all of it");
    mutate(&mut known, text);
    if let Ok(data) = ty.deserialize_data(&mut serde_json::Deserializer::from_slice(&known)) {
        data.write(XcdrVersion::Xcdr1, Endianness::Big, &mut Vec::new())
            .expect("what was read can be written");
    }
}

#[cfg(not(feature = "serde"))]
fn from_text(ty: &DynamicType, text: &[u8]) {
    let mut data = ty.new_data();
    let Ok(text) = std::str::from_utf8(text) else { return };
    let _ = (data.set(text, 1), data.set(text, text), data.resize(text, 3), data.reset(text));
    data.write(XcdrVersion::Xcdr1, Endianness::Big, &mut Vec::new()).expect("what was set can be written");
}

/// The description of a type, of which one TypeObject is changed, and its hash with it where it is the type
/// itself.
fn described<T: DdsType>(complete: bool, changes: &[u8]) -> TypeDescription {
    let mut description = TypeDescription::of::<T>().expect("it is described");
    let information = &mut description.information;
    if !complete {
        information.complete = None;
    }
    let Some(root) = information.complete.as_mut().or(information.minimal.as_mut()) else {
        return description;
    };
    let Some(mut object) = description.objects.remove(&root.id) else { return description };
    mutate(&mut object, changes);
    root.id = TypeHash::of(root.id.complete, &object);
    description.objects.insert(root.id, object);
    description
}

/// Changes some octets: where, and to what.
fn mutate(octets: &mut [u8], changes: &[u8]) {
    for change in changes.chunks_exact(3).take(4) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % octets.len().max(1);
        if let Some(octet) = octets.get_mut(at) {
            *octet = change[2];
        }
    }
}

#[derive(DdsType, Clone, Copy)]
#[dds(crate = "plainsong_proto")]
enum Mode {
    Idle = 3,
    Moving = -5,
}

#[derive(DdsType, Clone)]
#[dds(crate = "plainsong_proto", union, discriminator = i16)]
enum Choice {
    #[dds(case = 1)]
    Number(i32),
    #[dds(default, case(2, -3))]
    Text(Option<String>),
}

#[derive(DdsType, Clone)]
#[dds(crate = "plainsong_proto")]
struct Everything {
    #[dds(key)]
    key: u32,
    mode: Mode,
    choice: Choice,
    other: Choice,
    matrix: [[i16; 3]; 2],
    modes: [Mode; 2],
    octets: OctetSeq<'static>,
    by_name: BTreeMap<String, Vec<f32>>,
    by_unit: BTreeMap<WChar, bool>,
    #[dds(bound = 9)]
    wide: WString,
    letter: char,
    inner: Option<f64>,
}

#[derive(DdsType, Clone)]
#[dds(crate = "plainsong_proto", mutable)]
struct Mutable {
    all: Vec<Everything>,
    note: Option<String>,
}

impl Everything {
    fn sample() -> Self {
        Self {
            key: 7,
            mode: Mode::Moving,
            choice: Choice::Number(3),
            other: Choice::Text(Some("text".into())),
            matrix: [[1, 2, 3], [4, 5, 6]],
            modes: [Mode::Idle, Mode::Moving],
            octets: vec![1, 2, 3].into(),
            by_name: BTreeMap::from([("a".into(), vec![0.5])]),
            by_unit: BTreeMap::from([(WChar(65), true)]),
            wide: WString("é🎵".into()),
            letter: 'x',
            inner: Some(1.5),
        }
    }
}
