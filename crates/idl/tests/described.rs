//! IDL of types that are known by their TypeObjects alone.

// The derive names its library by an absolute path: here this file stands for it.
extern crate self as plainsong;

/// What the derive uses.
pub mod __private {
    pub use plainsong_proto::{cdr, malformed, types};
}

use std::collections::BTreeMap;

use plainsong_derive::DdsType;
use plainsong_idl::{Compiler, DescribedError, Memory, Model, idl_of};
use plainsong_proto::types::TypeDescription;

#[derive(DdsType, Default)]
#[dds(name = "plant::Mode")]
enum Mode {
    #[default]
    Off = 0,
    On = 3,
}

#[derive(DdsType, Default)]
#[dds(name = "plant::parts::Reading", mutable)]
struct Reading {
    #[dds(id = 7)]
    value: f64,
    unit: Option<String>,
}

#[derive(DdsType)]
#[dds(name = "plant::Value", union, discriminator = i32, final)]
enum Value {
    #[dds(case = 1)]
    Number(i32),
    #[dds(case(2, 3))]
    Reading(Reading),
    #[dds(default)]
    Text(String),
}

impl Default for Value {
    fn default() -> Self {
        Self::Number(0)
    }
}

#[derive(DdsType, Default)]
#[dds(name = "plant::Pump", appendable)]
struct Pump {
    #[dds(key, bound = 32)]
    name: String,
    #[dds(key)]
    number: u16,
    mode: Mode,
    readings: Vec<Reading>,
    last: Value,
    path: Vec<[[u8; 3]; 2]>,
    block: [i64; 4],
    by_name: BTreeMap<String, Reading>,
    values: BTreeMap<u8, [f32; 2]>,
}

fn described() -> TypeDescription {
    TypeDescription::of::<Pump>().expect("it has a description")
}

#[test]
fn a_described_type_is_printed_as_idl_that_is_read_as_the_same_types() {
    let model = Model::described(&described()).expect("it can be said in IDL");
    let text = idl_of(&described()).expect("it can be said in IDL");
    let again = Compiler::new().compile_from(&Memory::new().with("a.idl", text.clone()), &["a.idl"]);
    assert!(again.model.is_some(), "{text}\n{}", again.render());
    assert!(again.model.as_ref() == Some(&model), "{text}\n{model:#?}\n{:#?}", again.model);
    for line in [
        "@key string<32> name;",
        "sequence<::plant::parts::Reading> readings;",
        "typedef uint8 Pump_array_1[2][3];",
        "map<uint8, ::plant::Pump_array_2> values;",
        "@id(7) double value;",
        "@value(3) On",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let mut description = described();
    let root = description.information.complete.as_ref().expect("complete").id;
    description.objects.retain(|hash, _| *hash == root);
    assert_eq!(idl_of(&description), Err(DescribedError::Missing("plant::Pump".to_owned())));
    description.information.complete = None;
    assert_eq!(idl_of(&description), Err(DescribedError::NoNames));
}

#[derive(DdsType, Default)]
#[dds(name = "Evil; }; struct Other")]
struct Evil {
    number: u8,
}

#[test]
fn a_name_that_is_none_is_refused() {
    let evil = TypeDescription::of::<Evil>().expect("it has a description");
    assert_eq!(idl_of(&evil), Err(DescribedError::BadName("Evil; }; struct Other".to_owned())));
}
