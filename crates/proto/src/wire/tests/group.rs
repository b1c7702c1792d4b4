//! Octets that tell of the writers of a publisher (RTPS 2.5 §8.3.8.6, §9.3.2.5, §9.4.5.7, §9.6.4.5).

use crate::guid::EntityId;
use crate::seq::SequenceNumber;
use crate::wire::{GroupDigest, Heartbeat, HeartbeatGroup, InlineQos, ParameterListView, encode_inline_qos};

const ONE: EntityId = EntityId([0, 0, 1, 2]);
const OTHER: EntityId = EntityId([0, 0, 2, 2]);

/// A writer that has changes 3 and 4 of its publisher, which has written 9.
fn heartbeat(writers: Option<GroupDigest>) -> Heartbeat {
    let [current, first, last] = [9, 3, 4].map(SequenceNumber);
    Heartbeat {
        reader: EntityId([0, 0, 1, 7]),
        writer: ONE,
        first: SequenceNumber(1),
        last: SequenceNumber(2),
        count: 5,
        final_flag: true,
        liveliness: false,
        group: Some(HeartbeatGroup { current, first, last, writers }),
    }
}

#[test]
fn the_digest_of_writers_is_the_start_of_an_md5_of_their_sorted_ids() {
    // md5 00000002 00000102 00000202 is 6f621362 008c505d 50d80df7 4927c5a3.
    let digest = GroupDigest([0x6f, 0x62, 0x13, 0x62]);
    assert_eq!(GroupDigest::of([ONE, OTHER]), digest);
    assert_eq!(GroupDigest::of([OTHER, ONE, OTHER]), digest);
    assert_eq!(GroupDigest::of([]), GroupDigest([0; 4]), "not the digest of nothing");
    // The kind is the highest octet, and has a sign: 000001c2 comes before 00000202.
    assert_eq!(GroupDigest::of([OTHER, EntityId([0, 0, 1, 0xc2])]), GroupDigest([0x6c, 0x37, 0x81, 0x7e]));
}

#[test]
fn the_octets_of_a_heartbeat_with_group_information() {
    let whole = heartbeat(Some(GroupDigest::of([ONE, OTHER])));
    let mut octets = Vec::new();
    whole.emit(&mut octets, true);
    let plain = [
        &[0x07, 0x0b, 60, 0][..],
        &[0, 0, 1, 7, 0, 0, 1, 2],
        &[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0],
        &[5, 0, 0, 0],
    ]
    .concat();
    let numbers = [0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0];
    let digests = [0x6f, 0x62, 0x13, 0x62, 0, 0, 0, 0];
    assert_eq!(octets, [&plain[..], &numbers, &digests].concat());
    assert_eq!(Heartbeat::parse(&octets[4..], octets[1]), Ok(whole));

    // The figure of §9.4.5.7: without the digests.
    let short = heartbeat(None);
    let mut octets = Vec::new();
    short.emit(&mut octets, true);
    assert_eq!(octets[2..4], [52, 0]);
    assert_eq!(octets[4..], [&plain[4..], &numbers].concat());
    assert_eq!(Heartbeat::parse(&octets[4..], octets[1]), Ok(short));

    let mut big_endian = Vec::new();
    whole.emit(&mut big_endian, false);
    assert_eq!(big_endian[..4], [0x07, 0x0a, 0, 60]);
    assert_eq!(big_endian[32..40], [0, 0, 0, 0, 0, 0, 0, 9]);
    assert_eq!(big_endian[56..], digests, "octets, never swapped");
}

#[test]
fn the_octets_of_the_writers_in_inline_qos() {
    let qos = InlineQos {
        group_sequence_number: Some(SequenceNumber(9)),
        group_writers: Some(GroupDigest::of([ONE, OTHER])),
        ..InlineQos::default()
    };
    let mut octets = Vec::new();
    encode_inline_qos(&qos, &mut octets);
    let number = [0x64, 0, 8, 0, 0, 0, 0, 0, 9, 0, 0, 0];
    let writers = [0x65, 0, 4, 0, 0x6f, 0x62, 0x13, 0x62];
    assert_eq!(octets, [&number[..], &writers, &[1, 0, 0, 0]].concat());
    let (list, _) = ParameterListView::parse(&octets, true).unwrap();
    assert_eq!(InlineQos::parse(&list), Ok(qos));
}
