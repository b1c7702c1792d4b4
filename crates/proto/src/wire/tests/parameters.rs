//! Parameter lists and inline QoS.

use crate::cdr::KeyHash;
use crate::guid::Guid;
use crate::malformed::Malformed;
use crate::seq::SequenceNumber;
use crate::time::Duration;
use crate::wire::GroupDigest;
use crate::wire::content_filter::append_content_filter_info;
use crate::wire::param::{PARAMETERS_MAX, pid};
use crate::wire::{
    ContentFilterInfo, FilterSignature, InlineQos, OriginalWriter, ParameterListView, StatusInfo,
    encode_inline_qos,
};

fn qos(list: &[u8]) -> Result<InlineQos, Malformed> {
    let (view, _) = ParameterListView::parse(list, true)?;
    InlineQos::parse(&view)
}

#[test]
fn fact_13_both_flags_of_status_info_are_read_in_either_octet_order() {
    let flags = |list: &[u8], little| {
        let (view, _) = ParameterListView::parse(list, little).unwrap();
        InlineQos::parse(&view).unwrap().status_info
    };
    let little = [0x71, 0, 4, 0, 0, 0, 0, 2, 1, 0, 0, 0];
    let big = [0, 0x71, 0, 4, 0, 0, 0, 2, 0, 1, 0, 0];
    let unregistered = StatusInfo { unregistered: true, ..StatusInfo::default() };
    assert_eq!((flags(&little, true), flags(&big, false)), (unregistered, unregistered));
    assert_eq!(StatusInfo::from_bytes([0xff, 0xff, 0xff, 0xf8]), StatusInfo::default(), "reserved flags");
}

#[test]
fn fact_14_a_dispose_with_key_hash_only_says_which_instance() {
    let list =
        [0x70, 0, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0x71, 0, 4, 0, 0, 0, 0, 1];
    let qos = qos(&[&list[..], &[1, 0, 0, 0]].concat()).unwrap();
    assert_eq!(qos.key_hash, Some(KeyHash([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])));
    assert!(qos.status_info.disposed && !qos.status_info.unregistered);
}

#[test]
fn fact_41_a_marker_may_dispose_and_unregister_at_once() {
    let status_info = StatusInfo { disposed: true, unregistered: true, filtered: false };
    assert_eq!(StatusInfo::from_bytes(status_info.to_bytes()), status_info);
    assert_eq!(status_info.to_bytes(), [0, 0, 0, 3]);
}

#[test]
fn fact_16_unknown_parameters_and_padding_are_skipped() {
    let list = [
        0x00, 0x00, 4, 0, 9, 9, 9, 9, // PID_PAD
        0x34, 0x12, 0, 0, // unknown
        0x19, 0x80, 4, 0, 1, 1, 1, 1, // a vendor's own
        0x2b, 0x00, 8, 0, 5, 0, 0, 0, 0, 0, 0, 0, // lifespan
        0x01, 0x00, 0xff, 0x77, // the sentinel's length means nothing
        1, 2, 3,
    ];
    let (view, rest) = ParameterListView::parse(&list, true).unwrap();
    assert_eq!(rest, [1, 2, 3]);
    let ids: Vec<u16> = view.parameters().map(|parameter| parameter.id).collect();
    assert_eq!(ids, [0x1234, 0x8019, pid::LIFESPAN]);
    assert_eq!(InlineQos::parse(&view).unwrap().lifespan, Some(Duration::from_secs(5)));
}

#[test]
fn fact_16_an_unknown_parameter_that_must_be_understood_is_an_error() {
    assert_eq!(qos(&[0x34, 0x52, 0, 0, 1, 0, 0, 0]), Err(Malformed::NotUnderstood));
    let known = [0x71, 0x40, 4, 0, 0, 0, 0, 1, 1, 0, 0, 0];
    assert!(qos(&known).unwrap().status_info.disposed);
}

#[test]
fn fact_16_lengths_are_multiples_of_four_and_lists_end() {
    let length = |list: &[u8]| ParameterListView::parse(list, true).map(|(view, _)| view.bytes.len());
    assert_eq!(length(&[0x34, 0x12, 3, 0, 1, 2, 3, 1, 0, 0, 0]), Err(Malformed::LengthOutOfRange));
    assert_eq!(length(&[0x34, 0x12, 4, 0, 1, 2, 3, 4]), Err(Malformed::MissingSentinel));
    assert_eq!(length(&[0x34, 0x12, 4]), Err(Malformed::MissingSentinel));
    assert_eq!(length(&[]), Err(Malformed::MissingSentinel));
    assert_eq!(length(&[0x34, 0x12, 8, 0, 1, 2, 3, 4]), Err(Malformed::Truncated));
    assert_eq!(length(&[1, 0, 0, 0]), Ok(4));
}

#[test]
fn r3_a_list_has_a_limited_number_of_parameters() {
    let list = |count: usize| [[0x34, 0x12, 0, 0].repeat(count), vec![1, 0, 0, 0]].concat();
    let longest = list(PARAMETERS_MAX - 1);
    assert!(ParameterListView::parse(&longest, true).is_ok());
    let longer = list(PARAMETERS_MAX);
    assert_eq!(ParameterListView::parse(&longer, true).err(), Some(Malformed::LengthOutOfRange));
}

#[test]
fn r2_values_shorter_than_their_type_are_refused() {
    for id in [pid::STATUS_INFO, pid::KEY_HASH, pid::COHERENT_SET, pid::LIFESPAN, pid::OWNERSHIP_STRENGTH] {
        let [low, high] = id.to_le_bytes();
        assert_eq!(qos(&[low, high, 0, 0, 1, 0, 0, 0]), Err(Malformed::Truncated));
    }
    let first_writer = [&[0x61, 0, 24, 0][..], &[1; 16], &[0; 8], &[1, 0, 0, 0]].concat();
    assert_eq!(qos(&first_writer), Err(Malformed::InvalidSequenceNumber));
}

#[test]
fn fact_38_the_marks_of_coherent_sets_survive() {
    let whole = InlineQos {
        status_info: StatusInfo { disposed: false, unregistered: false, filtered: true },
        key_hash: Some(KeyHash([7; 16])),
        coherent_set: Some(SequenceNumber(3)),
        group_coherent_set: Some(SequenceNumber(11)),
        group_sequence_number: Some(SequenceNumber(1 << 40)),
        group_writers: Some(GroupDigest([1, 2, 3, 4])),
        original_writer: Some(OriginalWriter {
            guid: Guid::from_bytes([5; 16]),
            sequence_number: SequenceNumber(9),
        }),
        lifespan: Some(Duration::from_millis(250)),
        ownership_strength: Some(-4),
    };
    let mut list = Vec::new();
    encode_inline_qos(&whole, &mut list);
    assert_eq!(qos(&list), Ok(whole));

    let end_of_set = InlineQos { coherent_set: Some(SequenceNumber::UNKNOWN), ..InlineQos::default() };
    list.clear();
    encode_inline_qos(&end_of_set, &mut list);
    assert_eq!(list, [0x56, 0, 8, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(qos(&list), Ok(end_of_set));
}

#[test]
fn fact_62_the_octets_of_filter_verdicts() {
    let verdicts = [(FilterSignature([0xa1; 16]), false), (FilterSignature([0xb2; 16]), true)];
    let mut list = Vec::new();
    append_content_filter_info(&mut list, verdicts.into_iter());
    let octets: Vec<u8> = [
        &[0x55, 0, 44, 0, 1, 0, 0, 0][..],
        // The second of two: bit 1 from the top.
        &[0, 0, 0, 0x40, 2, 0, 0, 0],
        &[0xa1; 16],
        &[0xb2; 16],
        &[1, 0, 0, 0],
    ]
    .concat();
    assert_eq!(list, octets);
    let (view, _) = ParameterListView::parse(&list, true).unwrap();
    let info = ContentFilterInfo::find(&view).unwrap();
    assert_eq!(verdicts.map(|(signature, _)| info.result(&signature)), [Some(false), Some(true)]);
    assert_eq!(info.result(&FilterSignature([0; 16])), None);
    assert_eq!(InlineQos::parse(&view), Ok(InlineQos::default()), "others skip it");

    let qos = InlineQos { lifespan: Some(Duration::from_secs(1)), ..InlineQos::default() };
    let mut list = Vec::new();
    encode_inline_qos(&qos, &mut list);
    append_content_filter_info(&mut list, verdicts.into_iter());
    let (view, rest) = ParameterListView::parse(&list, true).unwrap();
    assert_eq!((InlineQos::parse(&view), rest.len()), (Ok(qos), 0));
    assert!(ContentFilterInfo::find(&view).is_some());
}

#[test]
fn verdicts_of_many_filters_are_found_in_either_octet_order() {
    let signature = |number: u8| FilterSignature([number; 16]);
    for little_endian in [false, true] {
        let word = |value: u32| if little_endian { value.to_le_bytes() } else { value.to_be_bytes() };
        let mut value = [word(2), word(0), word(0x8000_0000 >> 1), word(34)].concat();
        (0..34).for_each(|number| value.extend(signature(number).0));
        let info = ContentFilterInfo::parse(&value, little_endian).unwrap();
        assert_eq!(info.result(&signature(33)), Some(true));
        assert_eq!(info.result(&signature(32)), Some(false));
        assert_eq!(info.result(&signature(0)), Some(false));
    }
}

#[test]
fn r3_impossible_verdicts_are_refused() {
    let parse = |words: &[u32]| {
        let value: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        ContentFilterInfo::parse(&value, true).map(|_| ())
    };
    assert_eq!(parse(&[0, 0]), Ok(()));
    assert_eq!(parse(&[1, 0, 0]), Err(Malformed::LengthOutOfRange), "a bitmap for no filter");
    assert_eq!(parse(&[0, 1, 0, 0, 0, 0]), Err(Malformed::LengthOutOfRange), "a filter without its bit");
    assert_eq!(parse(&[u32::MAX]), Err(Malformed::LengthOutOfRange));
    assert_eq!(parse(&[1, 0, u32::MAX]), Err(Malformed::LengthOutOfRange));
    let too_many = [&[9][..], &[0; 9], &[257], &[0; 4 * 257]].concat();
    assert_eq!(parse(&too_many), Err(Malformed::LengthOutOfRange));
}
