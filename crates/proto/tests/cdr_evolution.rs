//! Types that grew at the end (XTypes 1.3 §7.2.4), in XCDR2, whose delimiters tell of every structure where
//! it ends. In XCDR1 only the outermost can: `cdr_facts.rs`.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use plainsong_derive::DdsType;
use plainsong_proto::cdr::{
    DdsType, Endianness, XcdrVersion, from_payload, from_shared_payload_over, key_hash_of_payload, to_payload,
};
use plainsong_proto::payload::Payload;

fn payload(sample: &impl DdsType) -> Vec<u8> {
    let mut octets = Vec::new();
    to_payload(sample, XcdrVersion::Xcdr2, Endianness::Little, &mut octets).unwrap();
    octets
}

mod older {
    use super::DdsType;

    #[derive(DdsType, Debug, PartialEq, Clone)]
    #[dds(crate = "plainsong_proto", appendable)]
    pub(super) struct Part {
        pub(super) octet: u8,
    }

    #[derive(DdsType, Debug, PartialEq, Clone)]
    #[dds(crate = "plainsong_proto", appendable, union, discriminator = u8)]
    pub(super) enum Choice {
        #[dds(case = 1)]
        One(Part),
    }

    #[derive(DdsType, Debug, PartialEq, Clone)]
    #[dds(crate = "plainsong_proto", appendable, name = "Holder")]
    pub(super) struct Holder {
        #[dds(key)]
        pub(super) key: String,
        pub(super) one: Part,
        pub(super) many: Vec<Part>,
        pub(super) pair: [Part; 2],
        pub(super) maybe: Option<Part>,
        pub(super) choice: Choice,
        pub(super) last: u8,
    }
}

/// Every structure has members more at its end.
mod newer {
    use super::DdsType;

    #[derive(DdsType, Debug, PartialEq, Clone)]
    #[dds(crate = "plainsong_proto", appendable)]
    pub(super) struct Part {
        pub(super) octet: u8,
        pub(super) name: String,
        #[dds(default = 7)]
        pub(super) number: u64,
    }

    #[derive(DdsType, Debug, PartialEq, Clone)]
    #[dds(crate = "plainsong_proto", appendable, union, discriminator = u8)]
    pub(super) enum Choice {
        #[dds(case = 1)]
        One(Part),
    }

    #[derive(DdsType, Debug, PartialEq, Clone)]
    #[dds(crate = "plainsong_proto", appendable, name = "Holder")]
    pub(super) struct Holder {
        #[dds(key)]
        pub(super) key: String,
        pub(super) one: Part,
        pub(super) many: Vec<Part>,
        pub(super) pair: [Part; 2],
        pub(super) maybe: Option<Part>,
        pub(super) choice: Choice,
        pub(super) last: u8,
        pub(super) parts: Vec<Part>,
        pub(super) another: Option<Part>,
        pub(super) array: [u16; 3],
    }
}

#[test]
fn members_that_are_missing_or_added_at_the_end_are_so_at_every_depth() {
    let old = |octet| older::Part { octet };
    let new = |octet| newer::Part { octet, name: String::new(), number: 7 };
    let before = older::Holder {
        key: "a key".into(),
        one: old(1),
        many: vec![old(2), old(3), old(4)],
        pair: [old(5), old(6)],
        maybe: Some(old(7)),
        choice: older::Choice::One(old(8)),
        last: 9,
    };
    let after = newer::Holder {
        key: "a key".into(),
        one: new(1),
        many: vec![new(2), new(3), new(4)],
        pair: [new(5), new(6)],
        maybe: Some(new(7)),
        choice: newer::Choice::One(new(8)),
        last: 9,
        parts: Vec::new(),
        another: None,
        array: [0; 3],
    };
    let from_old = payload(&before);
    assert_eq!(from_payload::<newer::Holder>(&from_old).as_ref(), Ok(&after));
    let hash = key_hash_of_payload::<newer::Holder>(&from_old, false).unwrap();
    let full = newer::Part { octet: 3, name: "something".into(), number: 1 };
    let written = newer::Holder {
        one: full.clone(),
        many: vec![full.clone(); 3],
        parts: vec![full.clone(); 2],
        another: Some(full),
        array: [1; 3],
        ..after.clone()
    };
    // What was there before leaves no trace in members that are missing.
    let mut reused = written.clone();
    from_shared_payload_over(&Payload::from_vec(from_old), &mut reused).unwrap();
    assert_eq!(reused, after);

    let from_new = payload(&written);
    let known = older::Holder { one: old(3), many: vec![old(3); 3], ..before };
    assert_eq!(from_payload::<older::Holder>(&from_new).as_ref(), Ok(&known));
    assert_eq!(key_hash_of_payload::<older::Holder>(&from_new, false), Ok(hash));
}
