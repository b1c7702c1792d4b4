//! What others are told of types that a file alone tells: the hashes of Cyclone DDS for the same file, those
//! of `crates/proto/tests/type_hashes.rs`, and of an alias those of its Python package 11.0.1.

use std::sync::Arc;

use plainsong_idl::{Compiler, DescriptionError, Memory, Model};
use plainsong_proto::type_support::DynamicType;
use plainsong_proto::types::TypeDescription;

fn model(text: &str) -> Model {
    let compilation = Compiler::new().compile_from(&Memory::new().with("a.idl", text), &["a.idl"]);
    let said = compilation.render();
    compilation.model.expect(&said)
}

fn hashes(description: &TypeDescription) -> [String; 2] {
    let hash = |octets: [u8; 14]| octets.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
    let told = &description.information;
    [&told.minimal, &told.complete].map(|it| hash(it.as_ref().expect("both are told").id.octets))
}

#[test]
fn hashes_are_those_of_cyclone() {
    let model = model(include_str!("../../proto/tests/golden/type_hashes.idl"));
    for (name, minimal, complete) in [
        ("gold::Base", "abc0121c3e0f1ff679e52aab3695", "cff40267f4c135f2a0bc539661e6"),
        ("gold::Derived", "76aa4f26026e4354a09f9ae4e6df", "e991bce1bcc78e7a4706e34094c5"),
        ("gold::Hashed", "b7c0e3bd44bc8b56c86bea589bb3", "94414c1ccc4bb5a0639398da5efa"),
        ("gold::Simple", "f8afb9219e7ace26d9eaf03e8ba5", "08f57a2a6849a97aa20733fe7a41"),
        ("gold::Choice", "4cc444857206b28a2d348284fcfb", "31c8fd85c8d521b51e6c9d25e7ba"),
        ("gold::Letter", "959cefd17666158ccde82a28aec1", "a47075cae8c7ba7152b2df506c79"),
        ("gold::Marked", "dd4c065167fc58306b6cbe1ebb83", "bcda2f2707b6e2db42013fb04e43"),
    ] {
        let description = model.description(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(hashes(&description), [minimal, complete], "{name}");
        DynamicType::new(name, Arc::new(description)).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn an_alias_is_told_as_cyclone_tells_it() {
    let model = model(
        "module gold { typedef long Number; typedef sequence<Number, 4> Numbers;
         @final struct Named { Number one; Numbers many; Numbers grid[2]; }; };",
    );
    let description = model.description("gold::Named").expect("it is told");
    assert_eq!(hashes(&description), ["9335d909074b494828fd1d63f3df", "815916796399e4130e3a3b322465"]);
    assert_eq!(description.objects.len(), 6, "three types in two relations");
}

#[test]
fn a_type_that_contains_itself_is_told_as_the_derived_one() {
    let model = model(
        "module gold { struct Node; typedef sequence<Node> Nodes;
         @appendable struct Node { long value; sequence<Node> children; }; };",
    );
    let description = model.description("gold::Node").expect("it is told");
    assert_eq!(hashes(&description), ["0068ccbad520a5124b542f2ef3b5", "4f8cc19866c48bc89d91ed628ff8"]);
}

#[test]
fn what_no_type_object_tells_is_named() {
    let model = model(
        "enum Colour { RED }; struct Money { fixed<9, 2> amount; }; struct Purse { Money money; };
         union Wide switch (long long) { case 5000000000: long one; };",
    );
    let untold = |name: &str, what| Err(DescriptionError::Untold { name: name.to_owned(), what });
    assert_eq!(model.description("Purse"), untold("Money", "a fixed-point number"));
    assert_eq!(model.description("Wide"), untold("Wide", "a label of more than 32 bits"));
    assert_eq!(model.description("Colour"), Err(DescriptionError::Unknown("Colour".to_owned())));
}
