//! Composing datagrams.

use crate::guid::{EntityId, GuidPrefix};
use crate::locator::Locator;
use crate::outbox::{DATAGRAM_OVERHEAD, DataFragHeader, DataHeader, Outbox, data_overhead};
use crate::payload::Payload;
use crate::seq::SequenceNumber;
use crate::time::Time;
use crate::wire::header::{Header, id};
use crate::wire::{Heartbeat, InlineQos, ParameterListView, StatusInfo, encode_inline_qos};

const ME: GuidPrefix = GuidPrefix([1; 12]);
const PEER: GuidPrefix = GuidPrefix([2; 12]);

fn data(inline_qos: &[u8]) -> DataHeader<'_> {
    DataHeader {
        reader: EntityId::UNKNOWN,
        writer: EntityId::user_writer(1, true),
        sequence_number: SequenceNumber(7),
        inline_qos,
        key_only: false,
    }
}

fn heartbeat() -> Heartbeat {
    Heartbeat {
        reader: EntityId::UNKNOWN,
        writer: EntityId::user_writer(1, true),
        first: SequenceNumber(1),
        last: SequenceNumber(7),
        count: 3,
        final_flag: true,
        liveliness: false,
        group: None,
    }
}

#[test]
fn samples_of_one_time_say_it_once_and_the_next_time_is_said_with_its_sample() {
    let mut out = Outbox::new();
    let payload = Payload::from_vec(vec![0, 1, 0, 0, 42, 0, 0, 0]);
    let mut message = out.message(ME, &[Locator::default()], 1456);
    for seconds in [5, 5, 5, 6] {
        message.info_timestamp(Some(Time(seconds * 1_000_000_000)));
        assert!(message.data(&data(&[]), &payload));
    }
    message.finish();
    let bytes = out.datagram(&out.transmits()[0]);
    assert_eq!(bytes.len(), 20 + 12 + 3 * 32 + 12 + 32);
    assert_eq!(
        (&bytes[20..28], &bytes[128..136]),
        (&[9, 1, 8, 0, 5, 0, 0, 0][..], &[9, 1, 8, 0, 6, 0, 0, 0][..])
    );
}

#[test]
fn a_time_that_rtps_cannot_tell_takes_the_one_before_away() {
    let mut out = Outbox::new();
    let payload = Payload::from_vec(vec![0, 1, 0, 0, 42, 0, 0, 0]);
    let mut message = out.message(ME, &[Locator::default()], 1456);
    for nanos in [5_000_000_000, -1, i64::MAX] {
        message.info_timestamp(Some(Time(nanos)));
        assert!(message.data(&data(&[]), &payload));
    }
    message.finish();
    let bytes = out.datagram(&out.transmits()[0]);
    assert_eq!(bytes.len(), 20 + 12 + 32 + 4 + 32 + 32);
    // INFO_TS with the flag Invalidate.
    assert_eq!(bytes[64..68], [9, 3, 0, 0]);
}

#[test]
fn a_small_datagram_is_one_slice_and_says_everything_once() {
    let mut out = Outbox::new();
    let payload = Payload::from_vec(vec![0, 1, 0, 0, 42, 0, 0, 0]);
    let mut message = out.message(ME, &[Locator::default()], 1456);
    message.info_destination(PEER);
    message.info_timestamp(Some(Time(5_000_000_000)));
    assert!(message.data(&data(&[]), &payload));
    message.info_destination(PEER);
    message.info_timestamp(Some(Time(5_000_000_000)));
    assert!(message.heartbeat(&heartbeat()));
    message.finish();

    let [transmit] = out.transmits() else { panic!("one datagram expected") };
    assert_eq!(out.slices(transmit).count(), 1);
    assert_eq!(out.destinations(transmit), [Locator::default()]);
    let bytes = out.datagram(transmit);
    assert_eq!(bytes.len(), transmit.len());
    assert_eq!(bytes.len(), 20 + 16 + 12 + 32 + 32);
    assert_eq!(bytes[..4], *b"RTPS");
    assert_eq!(bytes[20..24], [0x0e, 1, 12, 0]);
    assert_eq!(bytes[36..40], [0x09, 1, 8, 0]);
    assert_eq!(bytes[48..52], [0x15, 0x05, 28, 0]);
    assert_eq!(bytes[80..84], [0x07, 0x03, 28, 0]);
}

#[test]
fn large_payloads_are_referenced_and_padded() {
    let mut out = Outbox::new();
    let payload = Payload::from_vec(vec![9; 2001]);
    let mut message = out.message(ME, &[], 65_000);
    assert!(message.data(&data(&[]), &payload));
    assert!(message.heartbeat(&heartbeat()));
    drop(message);

    let transmit = out.transmits()[0].clone();
    let slices: Vec<_> = out.slices(&transmit).collect();
    assert_eq!(slices.len(), 3);
    assert_eq!(slices[1].as_ptr(), payload.as_slice().as_ptr(), "not copied");
    assert_eq!(slices[2][..3], [0; 3]);
    assert_eq!(transmit.len(), 20 + 24 + 2004 + 32);
    assert_eq!(out.datagram(&transmit).len(), transmit.len());
}

#[test]
fn what_does_not_fit_leaves_no_trace() {
    let mut out = Outbox::new();
    let payload = Payload::from_vec(vec![9; 100]);
    let mut message = out.message(ME, &[], 100);
    message.info_destination(PEER);
    assert!(!message.data(&data(&[]), &payload));
    assert!(message.is_empty());
    message.finish();
    assert!(out.is_empty() && out.bytes.is_empty(), "an empty datagram vanishes");

    let mut message = out.message(ME, &[], 60);
    assert!(message.heartbeat(&heartbeat()));
    message.info_destination(PEER);
    assert!(!message.heartbeat(&heartbeat()));
    message.finish();
    assert_eq!(out.transmits()[0].len(), 52);
    assert_eq!(out.datagram(&out.transmits()[0]).len(), 52);
}

#[test]
fn a_sample_of_64_kib_is_no_data_submessage() {
    let mut out = Outbox::new();
    let mut message = out.message(ME, &[], 70_000);
    assert!(!message.data(&data(&[]), &Payload::from_vec(vec![0; 65_536])));
}

#[test]
fn fact_10_fragments_count_from_one_and_the_last_is_short() {
    let mut out = Outbox::new();
    let sample = Payload::from_vec((0..2500_u32).map(|index| index as u8).collect());
    let header = DataFragHeader {
        reader: EntityId::UNKNOWN,
        writer: EntityId::user_writer(1, true),
        sequence_number: SequenceNumber(1),
        first_fragment: 3,
        fragments: 1,
        fragment_bytes: 1000,
        inline_qos: &[],
        key_only: false,
    };
    let mut message = out.message(ME, &[], 1456);
    assert!(message.data_frag(&header, &sample));
    assert!(!message.data_frag(&DataFragHeader { first_fragment: 4, ..header }, &sample));
    assert!(!message.data_frag(&DataFragHeader { first_fragment: 0, ..header }, &sample));
    message.finish();
    let bytes = out.datagram(&out.transmits()[0]);
    assert_eq!(bytes.len(), 20 + 4 + 32 + 500);
    assert_eq!(bytes[56..], sample.as_slice()[2000..]);
}

#[test]
fn fact_13_status_info_is_big_endian_in_a_little_endian_list() {
    let status_info = StatusInfo { disposed: true, unregistered: true, filtered: false };
    let mut list = Vec::new();
    encode_inline_qos(&InlineQos { status_info, ..InlineQos::default() }, &mut list);
    assert_eq!(list, [0x71, 0, 4, 0, 0, 0, 0, 3, 1, 0, 0, 0]);
    let (view, rest) = ParameterListView::parse(&list, true).unwrap();
    assert!(rest.is_empty());
    assert_eq!(InlineQos::parse(&view).unwrap().status_info, status_info);
}

#[test]
fn no_inline_qos_needs_no_list() {
    let mut list = Vec::new();
    encode_inline_qos(&InlineQos::default(), &mut list);
    assert!(list.is_empty());
}

#[test]
fn fact_36_a_new_source_makes_the_timestamp_be_said_again() {
    let mut out = Outbox::new();
    let mut message = out.message(ME, &[], 1456);
    message.info_timestamp(Some(Time(5)));
    assert!(message.heartbeat(&heartbeat()));
    message.info_source(PEER);
    let announced = message.remaining();
    assert!(message.heartbeat(&heartbeat()));
    assert_eq!(message.len(), 20 + 12 + 32 + 24 + 12 + 32);
    assert_eq!(announced, 1456 - (20 + 12 + 32) - (24 + 12));
    message.info_timestamp(None);
    assert!(message.heartbeat(&heartbeat()));
    message.finish();
    let ids: Vec<u8> = Header::parse(&out.datagram(&out.transmits()[0]))
        .unwrap()
        .1
        .map(|submessage| submessage.unwrap().id)
        .collect();
    let expected =
        [id::INFO_TS, id::HEARTBEAT, id::INFO_SRC, id::INFO_TS, id::HEARTBEAT, id::INFO_TS, id::HEARTBEAT];
    assert_eq!(ids, expected);
}

#[test]
fn the_overheads_are_what_a_datagram_needs() {
    let mut out = Outbox::new();
    let payload = Payload::from_vec(vec![1; 1001]);
    let mut message = out.message(ME, &[], DATAGRAM_OVERHEAD + data_overhead(0) + payload.len());
    message.info_destination(PEER);
    message.info_timestamp(Some(Time(5)));
    assert!(message.data(&data(&[]), &payload));
    drop(message);
    let mut message = out.message(ME, &[], DATAGRAM_OVERHEAD + data_overhead(0) + 1000);
    message.info_destination(PEER);
    message.info_timestamp(Some(Time(5)));
    assert!(!message.data(&data(&[]), &Payload::from_vec(vec![1; 1004])));
}

#[test]
fn golden_octets_of_a_data_with_its_payload_beside_the_message() {
    let mut out = Outbox::new();
    let mut list = Vec::new();
    let status_info = StatusInfo { disposed: true, unregistered: false, filtered: false };
    encode_inline_qos(&InlineQos { status_info, ..InlineQos::default() }, &mut list);
    let payload = Payload::from_vec(vec![7; 1 << 20]);
    let mut message = out.message(ME, &[Locator::default()], 1456);
    message.info_timestamp(Some(Time(5_000_000_000)));
    assert!(!message.attached(&data(&[]), &Payload::empty()), "a sample without octets has none elsewhere");
    assert!(message.attached(&data(&list), &payload));
    assert!(!message.heartbeat(&heartbeat()), "nothing follows it");
    assert!(!message.data(&data(&[]), &Payload::empty()) && !message.attached(&data(&[]), &payload));
    message.renew(&GuidPrefix::UNKNOWN, &ME, 1456);
    assert!(message.heartbeat(&heartbeat()), "but in a message of its own");
    message.finish();
    let [first, second] = out.transmits() else { panic!("{:?}", out.transmits()) };
    let expected = [
        &b"RTPS\x02\x05\x01\xf5"[..],
        &[1; 12],
        &[9, 1, 8, 0, 5, 0, 0, 0, 0, 0, 0, 0],
        &[0x15, 7, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 7, 0, 0, 0],
        &[0x71, 0, 4, 0, 0, 0, 0, 1, 1, 0, 0, 0],
    ];
    assert_eq!(out.datagram(first), expected.concat());
    assert_eq!((first.len(), out.destinations(first).len()), (expected.concat().len(), 1));
    let (slices, attachment) = out.parts(first);
    assert_eq!(slices.flatten().count(), first.len());
    assert_eq!(attachment.unwrap().as_slice().as_ptr(), payload.as_slice().as_ptr(), "it is not copied");
    assert!(out.parts(second).1.is_none());
    let mut moved = Outbox::new();
    assert!(moved.message(ME, &[Locator::default()], 1456).heartbeat(&heartbeat()));
    moved.append(&mut out);
    let attached = moved.transmits().iter().map(|it| moved.parts(it).1.is_some()).collect::<Vec<_>>();
    assert_eq!(attached, [false, true, false]);
    assert!(moved.datagram(&moved.transmits()[1]) == expected.concat());
    moved.merge(0);
    let attached = moved.transmits().iter().map(|it| moved.parts(it).1.is_some()).collect::<Vec<_>>();
    assert_eq!(attached, [true, false], "nothing is merged behind it");
}
