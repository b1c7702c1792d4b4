//! Errors: where they point and what they advise.

use super::expand;

/// The place in `source` an error points at, and its text.
fn error(source: &str) -> (String, String) {
    let input = syn::parse_str(source).expect("valid Rust");
    let error = expand(&input).expect_err("no DDS type");
    (error.span().source_text().unwrap_or_default(), error.to_string())
}

#[track_caller]
fn assert_error(source: &str, place: &str, advice: &str) {
    let (found_place, text) = error(source);
    assert!(found_place.starts_with(place), "points at `{found_place}`: {text}");
    assert!(text.contains(advice), "`{text}` does not say `{advice}`");
}

#[test]
fn errors_point_at_the_member_and_say_what_to_do() {
    assert_error("struct A { #[dds(key)] x: Option<u8> }", "key", "remove `key` or the `Option`");
    assert_error("struct A { #[dds(key)] x: Box<u8> }", "key", "remove the `Box`");
    assert_error("struct A { #[dds(optional)] x: u8 }", "optional", "wrap its type");
    assert_error("struct A { x: u8, #[dds(id = 0)] y: u8 }", "y", "already that of `x`");
    assert_error("struct A { #[dds(id = 0x10000000)] x: u8 }", "0x10000000", "28 bits");
    assert_error("struct A { #[dds(bounds = 3)] x: u8 }", "bounds", "known are name, key, id");
    assert_error("struct A { #[dds(case = 3)] x: u8 }", "#[dds(case", "for variants of unions");
    assert_error("struct A(u8);", "(u8)", "name these fields");
}

#[test]
fn errors_point_at_the_variant_and_say_what_to_do() {
    assert_error("enum A { B(u8) }", "B(u8)", "#[dds(union");
    assert_error("enum A {}", "A", "at least one literal");
    assert_error("#[dds(union)] enum A { #[dds(case = 1)] B }", "A", "discriminator = i32");
    let union = |variants: &str| format!("#[dds(union, discriminator = i32)] enum A {{ {variants} }}");
    assert_error(&union("B(u8)"), "B(u8)", "#[dds(case");
    assert_error(&union("#[dds(case = 1)] B(u8), #[dds(case = 1)] C"), "1", "another variant");
    assert_error(&union("#[dds(case = 1)] B(u8, u8)"), "#[dds(case", "structure of their own");
    assert_error(&union("#[dds(default)] B, #[dds(default)] C"), "#[dds(default)] C", "at most one default");
    assert_error(&union("#[dds(case = X)] B, #[dds(default)] C"), "#[dds(default)] C", "label to write");
    assert_error(&union("#[dds(case = 1, key)] B"), "key", "goes on the union");
    assert_error(&union("#[dds(case = 1)] B, #[dds(default = 1)] C"), "1", "selects another variant");
}

#[test]
fn errors_point_at_the_type_attribute() {
    assert_error("#[dds(final, mutable)] struct A;", "mutable", "one extensibility");
    assert_error("#[dds(autoid = \"name\")] struct A;", "\"name\"", "\"sequential\" or \"hash\"");
    assert_error("#[dds(bit_bound = 33)] enum A { B }", "33", "1 to 32");
    assert_error("#[dds(nest)] struct A;", "nest", "known are name");
    assert_error("#[dds(key)] struct A;", "A", "are for enums");
    assert_error("#[dds(plain)] struct A { x: u8 }", "A", "the memory of #[repr(C)]");
    assert_error("#[repr(C, packed)] #[dds(plain)] struct A { x: u8 }", "A", "without packed");
    assert_error("#[repr(C)] #[repr(align(64))] #[dds(plain)] struct A { x: u8 }", "A", "without packed");
    assert_error("#[repr(C)] #[dds(plain, mutable)] struct A { x: u8 }", "A", "say final");
    assert_error("#[repr(C)] #[dds(plain)] struct A {}", "A", "has members");
    assert_error("#[repr(u32)] #[dds(plain)] enum A { B }", "A", "for structures");
    let borrowing = "#[repr(C)] #[dds(plain)] struct A<'a> { x: OctetSeq<'a> }";
    assert_error(borrowing, "'a", "borrows nothing");
    assert_error("struct A<T> { x: T }", "<T>", "without generics");
    assert_error("struct A<'a, 'b> { x: OctetSeq<'a>, y: OctetSeq<'b> }", "<'a, 'b>", "one lifetime");
    assert_error("enum A<'a> { B(OctetSeq<'a>) }", "<'a>", "of a structure");
    assert_error("union A { x: u8 }", "A", "enum with #[dds(union");
}

#[test]
fn errors_about_bases_masks_and_sets_say_what_to_do() {
    assert_error("struct A { x: u8, #[dds(base)] y: B }", "base", "the first member");
    assert_error("#[repr(C)] #[dds(plain)] struct A { #[dds(base)] y: B }", "A", "extends no other");
    assert_error("#[dds(bitmask)] struct A { x: u8 }", "A", "one unnamed integer");
    assert_error("#[dds(bitmask)] struct A(i8);", "i8", "one unnamed integer");
    assert_error("#[dds(bitmask, bit_bound = 8)] struct A(u16);", "u16", "in a smaller integer");
    assert_error("#[dds(bitmask, bit_bound = 9)] struct A(u8);", "9", "1 to 8");
    assert_error("#[dds(bitmask, flag(X = 8))] struct A(u8);", "X", "positions are 0 to 7");
    assert_error("#[dds(bitmask, flag(X = 1), flag(Y = 1))] struct A(u8);", "Y", "is `X` already");
    assert_error("#[dds(bitmask, flag(X = 1, text = \"\"))] struct A(u8);", "text", "a name and a doc");
    assert_error("#[dds(bitset)] struct A { x: u8 }", "x", "#[dds(bits = 3)]");
    assert_error("#[dds(bitset)] struct A { #[dds(bits = 65)] x: u8 }", "x", "64 together");
    assert_error("#[dds(bitset)] struct A(u8);", "A", "named members");
    let taken = "#[dds(bitset)] struct A { #[dds(bits = 3)] x: u8, #[dds(bits = 1, position = 2)] y: u8 }";
    assert_error(taken, "y", "the next one is 3");
    assert_error("struct A { #[dds(bits = 3)] x: u8 }", "3", "for bit sets");
    assert_error("struct A { #[dds(element(key))] x: Vec<u8> }", "key", "attribute of an element");
    assert_error("struct A { #[dds(try_construct = \"cut\")] x: u8 }", "\"cut\"", "\"trim\"");
}
