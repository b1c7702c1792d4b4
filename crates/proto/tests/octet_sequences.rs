//! Types whose octets are borrowed to write them, and shared with the payload when they are read.

use plainsong_derive::DdsType;
use plainsong_proto::cdr::{
    Cdr, DdsType, Endianness, OctetSeq, XcdrVersion, from_payload, from_shared_payload,
    from_shared_payload_over, key_hash, key_hash_as, key_hash_of_payload, to_fixed_payload_as, to_payload,
    to_payload_around, to_payload_as,
};
use plainsong_proto::malformed::Malformed;
use plainsong_proto::payload::Payload;
use plainsong_proto::types::TypeDescription;

const LONG: usize = 10_000;

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", name = "Image", final)]
struct Image<'a> {
    width: u32,
    #[dds(key)]
    camera: u16,
    #[dds(bound = 20000)]
    data: OctetSeq<'a>,
    is_dense: bool,
}

/// The same for others.
#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", name = "Image", final)]
struct Owned {
    width: u32,
    #[dds(key)]
    camera: u16,
    #[dds(bound = 20000)]
    data: Vec<u8>,
    is_dense: bool,
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", mutable)]
struct Nested<'a> {
    images: Vec<Image<'a>>,
    thumbnail: Option<OctetSeq<'a>>,
}

fn image(data: &[u8]) -> Image<'_> {
    Image { width: 7, camera: 3, data: data.into(), is_dense: true }
}

fn owned(data: &[u8]) -> Owned {
    Owned { width: 7, camera: 3, data: data.to_vec(), is_dense: true }
}

fn octets<T: DdsType>(sample: &T, version: XcdrVersion) -> Vec<u8> {
    let mut buffer = Vec::new();
    to_payload(sample, version, Endianness::Little, &mut buffer).expect("a sample that can be encoded");
    buffer
}

#[test]
fn borrowed_octets_are_on_the_wire_what_owned_ones_are() {
    let data = (0..LONG).map(|index| index as u8).collect::<Vec<_>>();
    let (lent, kept) = (image(&data), owned(&data));
    for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
        let expected = octets(&kept, version);
        let mut buffer = Vec::new();
        to_payload_as::<Image<'static>, _>(&lent, version, Endianness::Little, &mut buffer).expect("it fits");
        assert_eq!(buffer, expected);
        let mut place = vec![0; expected.len()];
        let used = to_fixed_payload_as::<Image<'static>, _>(&lent, version, Endianness::Little, &mut place);
        assert_eq!((used, place), (Ok(expected.len()), expected.clone()));
        assert_eq!(from_payload::<Image<'static>>(&expected), Ok(lent.clone()));
    }
    let hash = key_hash(&kept).expect("a key");
    assert_eq!(key_hash_as::<Image<'static>, _>(&lent), Ok(hash));
    let payload = octets(&kept, XcdrVersion::Xcdr1);
    assert_eq!(key_hash_of_payload::<Image<'static>>(&payload, false), Ok(hash));
}

#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", mutable)]
struct Framed<'a> {
    before: u16,
    #[dds(id = 9)]
    data: OctetSeq<'a>,
    after: u64,
}

/// Objects with lengths of their own follow the octets.
#[derive(DdsType, Debug, Clone, PartialEq)]
#[dds(crate = "plainsong_proto", appendable)]
struct Last<'a> {
    data: OctetSeq<'a>,
    parts: Vec<Framed<'a>>,
}

#[test]
fn octets_that_are_elsewhere_are_left_out_and_nothing_else_changes() {
    fn check<T: DdsType, S: Cdr>(sample: &S, version: XcdrVersion) {
        let octets = sample.octet_seq().expect("it has a sequence of octets").as_slice();
        let mut expected = Vec::new();
        to_payload_as::<T, S>(sample, version, Endianness::Little, &mut expected).expect("it fits");
        let mut around = vec![0xee; 10];
        let at = to_payload_around::<T, S>(sample, version, Endianness::Little, &mut around, octets)
            .expect("it fits")
            .expect("it has them");
        assert_eq!(around.len() + LONG, expected.len());
        assert_eq!([&around[..at], octets, &around[at..]].concat(), expected);
    }
    let data = (0..LONG + 1).map(|index| index as u8).collect::<Vec<_>>();
    for data in [&data[..LONG], &data[1..]] {
        for version in [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2] {
            check::<Image<'static>, _>(&image(data), version);
        }
        let framed = Framed { before: 1, data: data.into(), after: 2 };
        check::<Framed<'static>, _>(&framed, XcdrVersion::Xcdr1);
        check::<Framed<'static>, _>(&framed, XcdrVersion::Xcdr2);
        let last = Last { data: data.into(), parts: vec![Framed { before: 3, ..framed.clone() }] };
        check::<Last<'static>, _>(&last, XcdrVersion::Xcdr2);
    }
    let mut buffer = Vec::new();
    let elsewhere = to_payload_around::<Image<'static>, _>(
        &image(&data[1..]),
        XcdrVersion::Xcdr2,
        Endianness::Little,
        &mut buffer,
        &[1; LONG],
    );
    assert_eq!(elsewhere, Ok(None), "other octets than those of the sample");
    assert_eq!(buffer, octets(&owned(&data[1..]), XcdrVersion::Xcdr2));
}

#[test]
fn to_others_it_is_the_same_type() {
    let (lent, kept) = (TypeDescription::of::<Image<'static>>(), TypeDescription::of::<Owned>());
    assert!(lent.is_some());
    assert_eq!(lent, kept);
}

#[test]
fn long_octets_stay_in_the_payload_and_keep_it() {
    let data = vec![9; LONG];
    let payload = Payload::from_vec(octets(&owned(&data), XcdrVersion::Xcdr2));
    let image = from_shared_payload::<Image<'static>>(&payload).expect("what was encoded");
    assert!(payload.as_slice().as_ptr_range().contains(&image.data.as_ptr()));
    assert!(image.is_dense, "what follows is read, too");
    drop(payload);
    assert_eq!(image.data, OctetSeq::from(data));
}

#[test]
fn read_over_others_they_are_the_same() {
    let payload =
        |length: usize| Payload::from_vec(octets(&owned(&vec![length as u8; length]), XcdrVersion::Xcdr2));
    let lengths = [LONG, 7, 100, LONG, 100, 60, 0, 61, LONG];
    let mut read = image(&[]);
    let mut places = Vec::new();
    for length in lengths {
        let payload = payload(length);
        from_shared_payload_over(&payload, &mut read).expect("what was encoded");
        assert_eq!(read.data.as_slice(), vec![length as u8; length]);
        let is_shared = payload.as_slice().as_ptr_range().contains(&read.data.as_ptr());
        assert_eq!(is_shared, length == LONG, "{length}");
        places.push(read.data.as_ptr());
    }
    assert_eq!(places[4], places[5], "60 octets where 100 were");
    assert_eq!(places[5], places[7], "and 61 after none");
}

#[test]
fn they_may_be_anywhere_in_a_type() {
    let data = vec![1; LONG];
    let nested = Nested { images: vec![image(&data), image(&[])], thumbnail: Some((&[4, 5]).into()) };
    let mut buffer = Vec::new();
    to_payload_as::<Nested<'static>, _>(&nested, XcdrVersion::Xcdr2, Endianness::Little, &mut buffer)
        .expect("it fits");
    let payload = Payload::from_vec(buffer);
    assert_eq!(from_shared_payload::<Nested<'static>>(&payload), Ok(nested));
}

#[test]
fn a_bound_is_a_bound() {
    let data = vec![0; 20_001];
    let mut buffer = Vec::new();
    let refused = to_payload_as::<Image<'static>, _>(
        &image(&data),
        XcdrVersion::Xcdr1,
        Endianness::Little,
        &mut buffer,
    );
    assert!(refused.is_err_and(|error| error.to_string().contains("`data`")), "the member is named");
    let mut payload = octets(&owned(&data[1..]), XcdrVersion::Xcdr1);
    let length = 4 + 4 + 4;
    payload[length..length + 4].copy_from_slice(&20_001_u32.to_le_bytes());
    payload.push(0);
    assert_eq!(from_payload::<Image<'static>>(&payload), Err(Malformed::LengthOutOfRange));
}
