//! `docs/vendors.md` is printed from the table of what products of others do otherwise. `cargo xtask docs`
//! writes the page; the test refuses one that is out of date.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use plainsong_proto::vendor::{DIALECTS, Dialect, name};

/// Set by `cargo xtask docs`: the page is written instead of compared.
const WRITE_VARIABLE: &str = "PLAINSONG_WRITE_PAGES";

const INTRODUCTION: &str = "# Products of others

This page is written by `cargo xtask docs` from `crates/proto/src/vendor.rs`; a test fails when it is out of date. Products are told
apart by the vendor id that every message has, and by the version that Fast DDS and Cyclone DDS tell in what they announce.

## What is done for one of them

Whatever is not here is done for all alike. A product without a vendor id in the list below is taken for a small stack: its endpoints are
told where ours are, and it is told no more than RTPS 2.1 knows. How types are told, where products differ, is in `types.md`.

| product | versions | switch | what it does | what is done |
|---|---|---|---|---|
";

#[test]
fn the_page_says_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/vendors.md");
    let page = page();
    if env::var_os(WRITE_VARIABLE).is_some() {
        fs::write(&path, page).expect("the page can be written");
    } else {
        let there = fs::read_to_string(&path).expect("there is a page");
        assert!(there == page, "docs/vendors.md is out of date: run `cargo xtask docs`");
    }
}

#[test]
fn every_switch_is_of_a_known_product_and_says_why() {
    for (index, dialect) in DIALECTS.iter().enumerate() {
        assert!(name(dialect.vendor).is_some(), "{dialect:?}");
        assert!(dialect.does.ends_with('.') && dialect.here.ends_with('.'), "{dialect:?}");
        assert!(dialect.until.is_none_or(|until| until > dialect.from), "{dialect:?}");
        let again = |it: &Dialect| it.vendor == dialect.vendor && it.quirk == dialect.quirk;
        assert_eq!(DIALECTS.iter().position(again), Some(index), "{dialect:?} is there twice");
    }
}

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for Dialect { vendor, from, until, quirk, does, here } in DIALECTS {
        let product = name(vendor).unwrap_or_default();
        let versions = match (from, until) {
            ([0, 0], None) => "all".to_owned(),
            ([0, 0], Some([major, minor])) => format!("before {major}.{minor}"),
            ([major, minor], None) => format!("from {major}.{minor}"),
            ([one, two], Some([three, four])) => format!("from {one}.{two}, before {three}.{four}"),
        };
        let switch = quirk.name();
        let _ = writeln!(page, "| {product} | {versions} | `{switch}` | {does} | {here} |");
    }
    page += "\n## Vendor ids\n\n| id | product |\n|---|---|\n";
    for id in (0..=u16::MAX).map(u16::to_be_bytes) {
        if let Some(product) = name(id) {
            let _ = writeln!(page, "| {:02x}.{:02x} | {product} |", id[0], id[1]);
        }
    }
    page
}
