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
}

#[test]
fn errors_point_at_the_type_attribute() {
    assert_error("#[dds(final, mutable)] struct A;", "mutable", "one extensibility");
    assert_error("#[dds(autoid = \"name\")] struct A;", "\"name\"", "\"sequential\" or \"hash\"");
    assert_error("#[dds(bit_bound = 33)] enum A { B }", "33", "1 to 32");
    assert_error("#[dds(nested)] struct A;", "nested", "known are name");
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
