//! Submessages as others write them, and as nobody may.

use crate::guid::{EntityId, GuidPrefix};
use crate::locator::Locator;
use crate::malformed::Malformed;
use crate::seq::{SequenceNumber, SequenceSet};
use crate::time::Time;
use crate::wire::header::{Header, Submessage, Submessages, flag, id};
use crate::wire::info::{self, Checksum, HeaderExtension, InfoReply, InfoReplyIp4, InfoSource};
use crate::wire::secure::CryptoHeader;
use crate::wire::{
    AckNack, Data, DataFrag, EndpointSubmessage, Gap, GroupDigest, Heartbeat, HeartbeatFrag, HeartbeatGroup,
    NackFrag, Target,
};

const WRITER: [u8; 4] = [0, 0, 1, 2];
const READER: [u8; 4] = [0, 0, 1, 7];
const LITTLE: u8 = flag::LITTLE_ENDIAN;

fn datagram(submessages: &[&[u8]]) -> Vec<u8> {
    let header = *b"RTPS\x02\x05\x01\x10aaaaaaaaaaaa";
    [&header[..], &submessages.concat()].concat()
}

fn walk(datagram: &[u8]) -> Submessages<'_> {
    Header::parse(datagram).unwrap().1
}

/// A body that begins with reader, writer and goes on with big-endian words.
fn body(words: &[u32]) -> Vec<u8> {
    let words: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    [&READER[..], &WRITER, &words].concat()
}

#[test]
fn fact_1_length_zero_reaches_to_the_end_but_not_of_pad_and_info_ts() {
    let bytes =
        datagram(&[&[id::INFO_TS, 3, 0, 0], &[id::PAD, 1, 0, 0], &[id::DATA, 1, 0, 0, 9, 9, 9, 9, 9]]);
    let found: Vec<Submessage<'_>> = walk(&bytes).map(Result::unwrap).collect();
    let ids: Vec<u8> = found.iter().map(|submessage| submessage.id).collect();
    assert_eq!(ids, [id::INFO_TS, id::PAD, id::DATA]);
    assert_eq!(found[0].body.len(), 0);
    assert_eq!(found[2].body, [9; 5]);
}

#[test]
fn fact_1_an_unknown_submessage_of_length_zero_hides_the_rest() {
    let bytes = datagram(&[&[0x7e, 1, 0, 0], &[id::PAD, 1, 0, 0]]);
    let found: Vec<Submessage<'_>> = walk(&bytes).map(Result::unwrap).collect();
    assert_eq!(found, [Submessage { id: 0x7e, flags: 1, body: &[id::PAD, 1, 0, 0], attachment: None }]);
}

#[test]
fn fact_2_each_submessage_has_its_own_octet_order_and_ids_have_none() {
    let heartbeat = Heartbeat {
        reader: EntityId(READER),
        writer: EntityId(WRITER),
        first: SequenceNumber(1),
        last: SequenceNumber(0x1_0000_0002),
        count: 5,
        final_flag: false,
        liveliness: true,
        group: None,
    };
    let (mut big, mut little) = (Vec::new(), Vec::new());
    heartbeat.emit(&mut big, false);
    heartbeat.emit(&mut little, true);
    assert_eq!(big[..4], [id::HEARTBEAT, 4, 0, 28]);
    assert_eq!(little[..4], [id::HEARTBEAT, 5, 28, 0]);
    assert_eq!(big[4..12], little[4..12]);
    let bytes = datagram(&[&big, &little]);
    for submessage in walk(&bytes) {
        let Submessage { flags, body, .. } = submessage.unwrap();
        assert_eq!(Heartbeat::parse(body, flags), Ok(heartbeat));
    }
}

#[test]
fn fact_3_both_words_of_a_sequence_number_are_swapped_on_their_own() {
    let gap =
        [&READER[..], &WRITER, &[2, 0, 0, 0, 1, 0, 0, 0], &[2, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]].concat();
    let gap = Gap::parse(&gap, LITTLE).unwrap();
    assert_eq!(gap.start, SequenceNumber((2 << 32) | 1));
    assert_eq!(gap.list.base(), SequenceNumber((2 << 32) | 5));
}

#[test]
fn fact_4_a_set_has_as_many_words_as_its_bits_need() {
    let acknack = AckNack::parse(&body(&[0, 1, 0, 7]), 0).unwrap();
    assert_eq!((acknack.missing.bits(), acknack.count), (0, 7));
    let acknack = AckNack::parse(&body(&[0, 1, 33, 0x8000_0000, 0x8000_0000, 7]), 0).unwrap();
    let missing: Vec<_> = acknack.missing.iter().collect();
    assert_eq!(missing, [SequenceNumber(1), SequenceNumber(33)]);
    assert_eq!(
        AckNack::parse(&body(&[0, 1, 257, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]), 0),
        Err(Malformed::LengthOutOfRange)
    );
    assert_eq!(AckNack::parse(&body(&[0, 1, u32::MAX]), 0), Err(Malformed::LengthOutOfRange));
    assert_eq!(AckNack::parse(&body(&[0, 1, 64, 0]), 0), Err(Malformed::Truncated));
}

#[test]
fn fact_5_a_preemptive_acknack_may_have_base_zero() {
    let acknack = AckNack::parse(&body(&[0, 0, 0, 1]), flag::FINAL).unwrap();
    assert_eq!(acknack.missing, SequenceSet::empty(SequenceNumber(0)));
    assert!(acknack.final_flag);
    assert!(AckNack::parse(&body(&[0, 0, 1, 0, 1]), 0).is_ok(), "a bitmap without members");
    let asks_for_zero = body(&[0, 0, 1, 0x8000_0000, 1]);
    assert_eq!(AckNack::parse(&asks_for_zero, 0), Err(Malformed::InvalidSequenceNumber));
    let negative = body(&[u32::MAX, 5, 0, 1]);
    assert_eq!(AckNack::parse(&negative, 0), Err(Malformed::InvalidSequenceNumber));
}

#[test]
fn fact_6_the_final_flag_tells_whether_an_answer_is_wanted() {
    let words = body(&[0, 1, 0, 7]);
    assert!(!AckNack::parse(&words, 0).unwrap().final_flag);
    assert!(AckNack::parse(&words, flag::FINAL).unwrap().final_flag);
}

#[test]
fn fact_7_heartbeats_of_empty_writers_have_last_before_first() {
    let heartbeat = |first: [u32; 2], last: [u32; 2]| {
        Heartbeat::parse(&body(&[first[0], first[1], last[0], last[1], 1]), 0)
    };
    assert!(heartbeat([0, 1], [0, 0]).is_ok());
    assert!(heartbeat([0, 11], [0, 10]).is_ok());
    assert_eq!(heartbeat([0, 2], [0, 0]), Err(Malformed::InvalidSequenceNumber));
    assert_eq!(heartbeat([0, 0], [0, 0]), Err(Malformed::InvalidSequenceNumber));
    assert_eq!(heartbeat([u32::MAX, 0], [0, 0]), Err(Malformed::InvalidSequenceNumber));
    let lowest = heartbeat([0x8000_0000, 0], [0x8000_0000, 0]);
    assert_eq!(lowest, Err(Malformed::InvalidSequenceNumber));
}

#[test]
fn fact_7_heartbeats_tell_of_the_group_with_and_without_its_writers() {
    let with = |group: [u32; 6]| {
        let words = [&[0, 1, 0, 4, 9][..], &group].concat();
        Heartbeat::parse(&body(&words), flag::HEARTBEAT_GROUP | flag::LIVELINESS)
    };
    let heartbeat = with([0, 6, 0, 2, 0, 5]).unwrap();
    assert!(heartbeat.liveliness && heartbeat.last == SequenceNumber(4));
    let [current, first, last] = [6, 2, 5].map(SequenceNumber);
    let short = HeartbeatGroup { current, first, last, writers: None };
    assert_eq!(heartbeat.group, Some(short));
    let words = [0, 1, 0, 4, 9, 0, 6, 0, 2, 0, 5, 0x0102_0304, 0];
    let whole = Heartbeat::parse(&body(&words), flag::HEARTBEAT_GROUP).unwrap();
    assert_eq!(whole.group.unwrap().writers, Some(GroupDigest([1, 2, 3, 4])));
    // Cut within the numbers, and within the digests.
    for length in [7, 12] {
        let cut = Heartbeat::parse(&body(&words[..length]), flag::HEARTBEAT_GROUP);
        assert_eq!(cut, Err(Malformed::Truncated));
    }
    assert_eq!(Heartbeat::parse(&body(&words), 0).unwrap().group, None, "without its flag it is nothing");

    assert!(with([0, 6, 0, 6, 0, 5]).is_ok(), "a writer that has nothing");
    for group in [
        [0, 0, 0, 1, 0, 0],
        [0, 6, 0, 0, 0, 5],
        [0, 6, 0, 1, u32::MAX, 0],
        [0, 6, 0, 4, 0, 2],
        [0, 3, 0, 4, 0, 3],
        [0, 4, 0, 2, 0, 5],
    ] {
        assert_eq!(with(group), Err(Malformed::InvalidSequenceNumber), "{group:?}");
    }
}

#[test]
fn fact_7_group_information_of_gaps_is_looked_for_and_passed_over() {
    let words = [0, 1, 0, 4, 0, 0, 1, 0, 4, 0, 2];
    assert!(Gap::parse(&body(&words), flag::GAP_GROUP | flag::GAP_FILTERED).is_ok());
    let short = &words[..9];
    assert!(Gap::parse(&body(short), flag::GAP_GROUP).is_ok());
    assert_eq!(Gap::parse(&body(short), flag::GAP_GROUP | flag::GAP_FILTERED), Err(Malformed::Truncated));
}

#[test]
fn fact_8_counts_wrap_and_keep_their_sign() {
    let heartbeat = Heartbeat::parse(&body(&[0, 1, 0, 0, 0x8000_0000]), 0).unwrap();
    assert_eq!(heartbeat.count, i32::MIN);
}

#[test]
fn fact_9_a_gap_starts_before_its_list() {
    assert!(Gap::parse(&body(&[0, 3, 0, 3, 0]), 0).is_ok());
    assert_eq!(Gap::parse(&body(&[0, 4, 0, 3, 0]), 0), Err(Malformed::InvalidSequenceNumber));
    assert_eq!(Gap::parse(&body(&[0, 0, 0, 3, 0]), 0), Err(Malformed::InvalidSequenceNumber));
}

#[test]
fn r13_a_gap_of_two_to_the_62_costs_nothing() {
    let gap = Gap::parse(&body(&[0, 1, 1 << 30, 0, 256, 1, 1, 1, 1, 1, 1, 1, 1]), 0).unwrap();
    assert_eq!((gap.start, gap.list.base()), (SequenceNumber(1), SequenceNumber(1 << 62)));
    assert_eq!(gap.list.iter().count(), 8);
}

/// DATA_FRAG of fragments `first` to `first + count - 1`, each of `bytes`, of a sample of `sample` octets.
fn frag(first: u32, count: u16, bytes: u16, sample: u32, payload: usize) -> Vec<u8> {
    let numbers = body(&[0, 1, first, (u32::from(count) << 16) | u32::from(bytes), sample]);
    [&[0, 0, 0, 28], &numbers[..], &vec![7; payload]].concat()
}

#[test]
fn fact_10_the_last_fragment_is_as_long_as_what_remains() {
    let check = |octets: &[u8]| DataFrag::parse(octets, 0).map(|data| data.payload.len());
    assert_eq!(check(&frag(1, 1, 1000, 2500, 1000)), Ok(1000));
    assert_eq!(check(&frag(3, 1, 1000, 2500, 500)), Ok(500));
    assert_eq!(check(&frag(2, 2, 1000, 2500, 1500)), Ok(1500));
    assert_eq!(check(&frag(1, 3, 999, 2500, 2500)), Ok(2500));
    assert_eq!(check(&frag(3, 1, 999, 2500, 504)), Ok(502), "padding is no part of the fragment");
    assert_eq!(check(&frag(1, 1, u16::MAX, u32::MAX, 65_535)), Ok(65_535));
}

#[test]
fn r12_the_geometry_of_fragments_must_agree() {
    let check = |octets: &[u8]| DataFrag::parse(octets, 0).map(|data| data.payload.len());
    assert_eq!(check(&frag(0, 1, 1000, 2500, 1000)), Err(Malformed::InvalidFragment));
    assert_eq!(check(&frag(1, 0, 1000, 2500, 1000)), Err(Malformed::InvalidFragment));
    assert_eq!(check(&frag(1, 1, 0, 2500, 1000)), Err(Malformed::InvalidFragment));
    assert_eq!(check(&frag(4, 1, 1000, 2500, 1000)), Err(Malformed::InvalidFragment));
    assert_eq!(check(&frag(3, 2, 1000, 2500, 1500)), Err(Malformed::InvalidFragment));
    assert_eq!(check(&frag(u32::MAX, u16::MAX, u16::MAX, u32::MAX, 0)), Err(Malformed::InvalidFragment));
    assert_eq!(
        check(&frag(1, 1, 1000, 999, 1000)),
        Err(Malformed::InvalidFragment),
        "larger than the sample"
    );
    assert_eq!(check(&frag(1, 1, 1000, 2500, 999)), Err(Malformed::Truncated));
    assert_eq!(check(&frag(1, 1, 1000, 2500, 1001)), Err(Malformed::InvalidFragment), "more than promised");
}

#[test]
fn fact_11_fragment_numbers_start_at_one() {
    let nack = NackFrag::parse(&body(&[0, 1, 3, 2, 0xc000_0000, 9]), 0).unwrap();
    assert_eq!(nack.missing.iter().collect::<Vec<_>>(), [3, 4]);
    assert_eq!(NackFrag::parse(&body(&[0, 1, 0, 0, 9]), 0), Err(Malformed::InvalidFragment));
    assert!(HeartbeatFrag::parse(&body(&[0, 1, 1, 9]), 0).is_ok());
    assert_eq!(HeartbeatFrag::parse(&body(&[0, 1, 0, 9]), 0), Err(Malformed::InvalidFragment));
    assert_eq!(HeartbeatFrag::parse(&body(&[0, 0, 1, 9]), 0), Err(Malformed::InvalidSequenceNumber));
}

#[test]
fn fact_12_data_and_key_exclude_each_other_and_the_offset_is_honoured() {
    let numbers = body(&[0, 1]);
    let data = |offset: u8, rest: &[u8]| [&[0, 0, 0, offset], &numbers[..], rest].concat();
    let with_payload = data(16, &[0, 1, 0, 0, 42]);
    assert_eq!(Data::parse(&with_payload, flag::DATA).unwrap().payload, [0, 1, 0, 0, 42]);
    assert!(Data::parse(&with_payload, flag::DATA_KEY).unwrap().key_only);
    assert!(Data::parse(&with_payload, 0).unwrap().payload.is_empty(), "no flag, no payload");
    let both = Data::parse(&with_payload, flag::DATA | flag::DATA_KEY);
    assert_eq!(both.err(), Some(Malformed::InvalidFlags));

    let from_the_future = data(24, &[1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, 0]);
    assert_eq!(Data::parse(&from_the_future, flag::DATA).unwrap().payload, [0, 1, 0, 0]);
    assert_eq!(Data::parse(&data(12, &[]), flag::DATA).err(), Some(Malformed::InvalidOffset));
    assert_eq!(Data::parse(&data(17, &[]), flag::DATA).err(), Some(Malformed::InvalidOffset));
    assert_eq!(Data::parse(&data(16, &[0, 1]), flag::DATA).err(), Some(Malformed::Truncated));
    let zero = [&[0, 0, 0, 16], &body(&[0, 0])[..]].concat();
    assert_eq!(Data::parse(&zero, 0).err(), Some(Malformed::InvalidSequenceNumber));
}

#[test]
fn r2_lengths_are_held_against_what_remains() {
    for bytes in [&[id::PAD][..], &[id::PAD, 1, 4], &[id::HEARTBEAT, 1, 28, 0, 1, 2, 3]] {
        let bytes = datagram(&[bytes]);
        let mut submessages = walk(&bytes);
        assert_eq!(submessages.next(), Some(Err(Malformed::Truncated)));
        assert_eq!(submessages.next(), None, "nothing after an error");
    }
    let whole = body(&[0, 1, 0, 4, 9]);
    for length in 0..whole.len() {
        assert_eq!(Heartbeat::parse(&whole[..length], 0), Err(Malformed::Truncated));
    }
}

#[test]
fn r4_numbers_at_the_edge_do_not_overflow() {
    let top = [0x7fff_ffff, u32::MAX];
    let heartbeat = Heartbeat::parse(&body(&[top[0], top[1], top[0], top[1], 1]), 0).unwrap();
    assert_eq!(heartbeat.first, SequenceNumber(i64::MAX));
    let acknack = AckNack::parse(&body(&[top[0], top[1], 2, 0xc000_0000, 1]), 0).unwrap();
    assert_eq!(acknack.missing.iter().last(), Some(SequenceNumber(i64::MAX)));
    let nack = NackFrag::parse(&body(&[0, 1, u32::MAX, 2, 0xc000_0000, 1]), 0).unwrap();
    assert_eq!(nack.missing.iter().last(), Some(u32::MAX));
}

#[test]
fn fact_18_reply_locators_of_any_kind_are_read() {
    let v4 = Locator::udp("192.0.2.7".parse().unwrap(), 7410);
    let other = Locator { kind: 0x0100_0000, port: 1, address: [3; 16] };
    for little_endian in [false, true] {
        let mut out = Vec::new();
        info::emit_reply(&mut out, &[v4, other], &[v4], little_endian);
        let reply = InfoReply::parse(&out[4..], out[1]).unwrap();
        assert_eq!(reply.unicast.iter().collect::<Vec<_>>(), [v4, other]);
        assert_eq!(reply.multicast.unwrap().iter().collect::<Vec<_>>(), [v4]);
        out.clear();
        let compact = InfoReplyIp4 { unicast: v4, multicast: Some(v4) };
        compact.emit(&mut out, little_endian);
        assert_eq!(InfoReplyIp4::parse(&out[4..], out[1]), Ok(compact));
    }
    let endless = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    assert_eq!(InfoReply::parse(&endless, 0).err(), Some(Malformed::Truncated));
}

#[test]
fn fact_36_info_ts_may_take_the_timestamp_away() {
    let mut out = Vec::new();
    info::emit_timestamp(&mut out, Time(1_500_000_000), true);
    assert_eq!(out, [id::INFO_TS, 1, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0x80]);
    assert_eq!(info::parse_timestamp(&out[4..], out[1]), Ok(Some(Time(1_500_000_000))));
    out.clear();
    info::emit_timestamp(&mut out, Time::INVALID, true);
    assert_eq!(out, [id::INFO_TS, 3, 0, 0]);
    assert_eq!(info::parse_timestamp(&[], out[1]), Ok(None));
    assert_eq!(info::parse_timestamp(&[0xff; 8], 0), Ok(None), "TIME_INVALID is no time");
    assert_eq!(info::parse_timestamp(&[], 0), Err(Malformed::Truncated));
}

#[test]
fn fact_36_info_src_names_prefix_version_and_vendor() {
    let source = InfoSource { version: [2, 1], vendor: [1, 3], prefix: GuidPrefix([4; 12]) };
    let mut out = Vec::new();
    source.emit(&mut out, false);
    assert_eq!(out[4..12], [0, 0, 0, 0, 2, 1, 1, 3]);
    assert_eq!(InfoSource::parse(&out[4..], out[1]), Ok(source));
}

#[test]
fn fact_60_header_extensions_are_understood_or_skipped() {
    let extensions = [
        HeaderExtension::default(),
        HeaderExtension { message_bytes: Some(100), ..HeaderExtension::default() },
        HeaderExtension {
            message_bytes: Some(100),
            send_timestamp: Some(Time(1)),
            checksum: Some(Checksum::Crc32c([1; 4])),
        },
        HeaderExtension { checksum: Some(Checksum::Crc64([2; 8])), ..HeaderExtension::default() },
        HeaderExtension { checksum: Some(Checksum::Md5([3; 16])), ..HeaderExtension::default() },
    ];
    for extension in extensions {
        for little_endian in [false, true] {
            let mut out = Vec::new();
            extension.emit(&mut out, little_endian);
            assert_eq!(HeaderExtension::parse(&out[4..], out[1]), Ok(extension));
        }
    }
    let unknown_fields = HeaderExtension::parse(&[0; 12], 0x08 | 0x10);
    assert_eq!(unknown_fields, Ok(HeaderExtension::default()));
    assert!(HeaderExtension::parse(&[0x12, 0x34, 0, 4, 1, 2, 3, 4], 0x80).is_ok(), "no sentinel needed");
    let must_understand = HeaderExtension::parse(&[0x52, 0x34, 0, 0], 0x80);
    assert_eq!(must_understand, Err(Malformed::NotUnderstood));
    assert_eq!(HeaderExtension::parse(&[0, 9, 0, 4, 1], 0x80), Err(Malformed::Truncated));
}

#[test]
fn fact_61_the_header_tells_version_and_vendor() {
    let bytes = datagram(&[]);
    let (header, submessages) = Header::parse(&bytes).unwrap();
    assert_eq!((header.version, header.vendor), ([2, 5], [1, 0x10]));
    assert_eq!(submessages.count(), 0);
    for wrong in [&b"RTPX\x02\x05\x01\x10aaaaaaaaaaaa"[..], b"RTPS\x02\x05\x01\x10aaaaaaaaaaa", b""] {
        assert_eq!(Header::parse(wrong).err(), Some(Malformed::InvalidHeader));
    }
}

#[test]
fn a_crypto_header_is_octets_in_order() {
    let body: Vec<u8> = (0..20).collect();
    let header = CryptoHeader::parse(&body).unwrap();
    assert_eq!(header.transformation_kind, [0, 1, 2, 3]);
    assert_eq!(header.initialization_vector_suffix, [12, 13, 14, 15, 16, 17, 18, 19]);
    assert_eq!(CryptoHeader::parse(&body[..19]), Err(Malformed::Truncated));
}

#[test]
fn fact_56_entity_ids_decide_who_gets_a_submessage() {
    let source = GuidPrefix([4; 12]);
    let acknack = |writer| {
        let acknack = AckNack {
            reader: EntityId(READER),
            writer,
            missing: SequenceSet::empty(SequenceNumber(1)),
            count: 1,
            final_flag: true,
            heartbeat: None,
        };
        EndpointSubmessage::AckNack(acknack).target(source)
    };
    assert_eq!(acknack(EntityId(WRITER)), Target::Writer(EntityId(WRITER)));
    assert_eq!(acknack(EntityId::SEDP_PUBLICATIONS_WRITER), Target::Builtin);
    let heartbeat = |reader, writer| {
        let words = [&body(&[0, 1, 0, 0, 1])[..]].concat();
        let heartbeat = Heartbeat { reader, writer, ..Heartbeat::parse(&words, 0).unwrap() };
        EndpointSubmessage::Heartbeat(heartbeat).target(source)
    };
    let writer = EntityId(WRITER);
    assert_eq!(heartbeat(EntityId::UNKNOWN, writer), Target::ReadersOf(source.entity(writer)));
    assert_eq!(heartbeat(EntityId(READER), writer), Target::Reader(EntityId(READER)));
    assert_eq!(heartbeat(EntityId::UNKNOWN, EntityId::SPDP_WRITER), Target::Builtin);
    assert_eq!(heartbeat(EntityId::SPDP_READER, EntityId::SPDP_WRITER), Target::Builtin);
}
