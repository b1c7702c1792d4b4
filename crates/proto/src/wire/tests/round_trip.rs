//! What we emit we parse, in both octet orders.

use proptest::prelude::*;

use crate::guid::{EntityId, GuidPrefix};
use crate::malformed::Malformed;
use crate::seq::{FragmentSet, NumberSet, SequenceNumber, SequenceSet};
use crate::time::Time;
use crate::wire::header::{Submessage, id};
use crate::wire::info::{self, InfoSource};
use crate::wire::{
    AckNack, Data, DataFrag, Gap, Heartbeat, HeartbeatFrag, InlineQos, NackFrag, ParameterListView,
    encode_inline_qos,
};
use crate::wire::{GroupDigest, HeartbeatGroup};

fn entity() -> impl Strategy<Value = EntityId> {
    any::<[u8; 4]>().prop_map(EntityId)
}

fn change() -> impl Strategy<Value = SequenceNumber> {
    (1..=i64::MAX).prop_map(SequenceNumber)
}

fn words() -> impl Strategy<Value = (u32, Vec<u32>)> {
    (0..=256_u32)
        .prop_flat_map(|bits| (Just(bits), prop::collection::vec(any::<u32>(), bits.div_ceil(32) as usize)))
}

fn sequence_set() -> impl Strategy<Value = SequenceSet> {
    (change(), words()).prop_map(|(base, (bits, words))| NumberSet::from_wire(base, bits, &words).unwrap())
}

fn fragment_set() -> impl Strategy<Value = FragmentSet> {
    (1..=u32::MAX, words())
        .prop_map(|(base, (bits, words))| NumberSet::from_wire(base, bits, &words).unwrap())
}

/// Emits with `emit`, checks the frame, and parses what is in it.
fn through<T>(
    expected_id: u8,
    little_endian: bool,
    emit: impl FnOnce(&mut Vec<u8>),
    parse: impl FnOnce(&[u8], u8) -> Result<T, Malformed>,
) -> T {
    let mut out = b"RTPS\x02\x05\x01\x10aaaaaaaaaaaa".to_vec();
    emit(&mut out);
    let (_, mut submessages) = crate::wire::header::Header::parse(&out).unwrap();
    let Submessage { id, flags, body, .. } = submessages.next().unwrap().unwrap();
    assert!(submessages.next().is_none());
    assert_eq!((id, flags & 1 != 0), (expected_id, little_endian));
    parse(body, flags).unwrap()
}

proptest! {
    #[test]
    fn heartbeats(
        reader in entity(), writer in entity(), first in change(), available in 0..1000_i64,
        count in any::<i32>(), final_flag: bool, liveliness: bool, little: bool,
        (ahead, digest) in (0..1000_i64, proptest::option::of(any::<[u8; 4]>())), grouped: bool,
    ) {
        let last = first.previous().plus(available);
        let (current, writers) = (last.max(first).plus(ahead), digest.map(GroupDigest));
        let group = grouped.then_some(HeartbeatGroup { current, first, last, writers });
        let it = Heartbeat { reader, writer, first, last, count, final_flag, liveliness, group };
        prop_assert_eq!(through(id::HEARTBEAT, little, |out| it.emit(out, little), Heartbeat::parse), it);
    }

    #[test]
    fn heartbeat_frags(
        reader in entity(), writer in entity(), sequence_number in change(), last_fragment in 1..=u32::MAX,
        count in any::<i32>(), little: bool,
    ) {
        let it = HeartbeatFrag { reader, writer, sequence_number, last_fragment, count };
        prop_assert_eq!(through(id::HEARTBEAT_FRAG, little, |out| it.emit(out, little), HeartbeatFrag::parse), it);
    }

    #[test]
    fn acknacks(
        reader in entity(), writer in entity(), missing in sequence_set(), count in any::<i32>(),
        final_flag: bool, little: bool,
    ) {
        let it = AckNack { reader, writer, missing, count, final_flag, heartbeat: None };
        prop_assert_eq!(through(id::ACKNACK, little, |out| it.emit(out, little), AckNack::parse), it);
    }

    #[test]
    fn nack_frags(
        reader in entity(), writer in entity(), sequence_number in change(), missing in fragment_set(),
        count in any::<i32>(), little: bool,
    ) {
        let it = NackFrag { reader, writer, sequence_number, missing, count };
        prop_assert_eq!(through(id::NACK_FRAG, little, |out| it.emit(out, little), NackFrag::parse), it);
    }

    #[test]
    fn gaps(reader in entity(), writer in entity(), back in 0..i64::MAX, list in sequence_set(), filtered in 0..300_u64, little: bool) {
        let start = SequenceNumber(list.base().0.saturating_sub(back).max(1));
        let it = Gap { reader, writer, start, list, filtered };
        prop_assert_eq!(through(id::GAP, little, |out| it.emit(out, little), Gap::parse), it);
    }

    #[test]
    fn infos(
        prefix in any::<[u8; 12]>(), version in any::<[u8; 2]>(), vendor in any::<[u8; 2]>(),
        seconds in 0..u32::MAX, nanos in 0..1_000_000_000_i64, valid: bool, little: bool,
    ) {
        let prefix = GuidPrefix(prefix);
        let source = InfoSource { version, vendor, prefix };
        prop_assert_eq!(through(id::INFO_SRC, little, |out| source.emit(out, little), InfoSource::parse), source);
        let destination = |out: &mut Vec<u8>| info::emit_destination(out, prefix, little);
        prop_assert_eq!(through(id::INFO_DST, little, destination, info::parse_destination), prefix);
        let time = valid.then_some(Time(i64::from(seconds) * 1_000_000_000 + nanos));
        let timestamp = |out: &mut Vec<u8>| info::emit_timestamp(out, time.unwrap_or(Time::INVALID), little);
        prop_assert_eq!(through(id::INFO_TS, little, timestamp, info::parse_timestamp), time);
    }

    #[test]
    fn data(
        reader in entity(), writer in entity(), sequence_number in change(), strength in any::<i32>(),
        payload in prop::collection::vec(any::<u8>(), 4..100), key_only: bool,
    ) {
        let mut list = Vec::new();
        encode_inline_qos(&InlineQos { ownership_strength: Some(strength), ..InlineQos::default() }, &mut list);
        let (view, _) = ParameterListView::parse(&list, true).unwrap();
        for inline_qos in [None, Some(view)] {
            let it = Data { reader, writer, sequence_number, inline_qos, payload: &payload, attachment: None, key_only };
            through(id::DATA, true, |out| it.emit(out, true), |body, flags| {
                let back = Data::parse(body, flags)?;
                assert_eq!((back.reader, back.writer, back.sequence_number), (reader, writer, sequence_number));
                assert_eq!((back.payload, back.key_only), (&payload[..], key_only));
                assert_eq!(back.inline_qos.map(|list| list.bytes), inline_qos.map(|list| list.bytes));
                Ok(())
            });
        }
    }

    #[test]
    fn data_frags(
        reader in entity(), writer in entity(), sequence_number in change(), fragment_bytes in 1..200_u16,
        sample in prop::collection::vec(any::<u8>(), 200..2000), first in 1..20_u32, count in 1..20_u16,
        key_only: bool, little: bool,
    ) {
        let total = (sample.len() as u32).div_ceil(fragment_bytes.into());
        let first_fragment = first.min(total);
        let fragments = count.min((total - first_fragment + 1) as u16);
        let start = (first_fragment as usize - 1) * usize::from(fragment_bytes);
        let end = (start + usize::from(fragments) * usize::from(fragment_bytes)).min(sample.len());
        let it = DataFrag {
            reader, writer, sequence_number, first_fragment, fragments, fragment_bytes,
            sample_bytes: sample.len() as u32, inline_qos: None, payload: &sample[start..end], key_only,
        };
        through(id::DATA_FRAG, little, |out| it.emit(out, little), |body, flags| {
            let back = DataFrag::parse(body, flags)?;
            assert_eq!((back.first_fragment, back.fragments), (first_fragment, fragments));
            assert_eq!((back.payload, back.key_only), (it.payload, key_only));
            assert_eq!((back.sample_bytes, back.fragment_bytes), (it.sample_bytes, fragment_bytes));
            Ok(())
        });
    }

    #[test]
    fn no_octets_make_a_parser_panic(body in prop::collection::vec(any::<u8>(), 0..120), flags: u8) {
        let _ = Heartbeat::parse(&body, flags);
        let _ = HeartbeatFrag::parse(&body, flags);
        let _ = AckNack::parse(&body, flags);
        let _ = NackFrag::parse(&body, flags);
        let _ = Gap::parse(&body, flags);
        let _ = Data::parse(&body, flags);
        let _ = DataFrag::parse(&body, flags);
        let _ = info::HeaderExtension::parse(&body, flags);
        let _ = info::InfoReply::parse(&body, flags).map(|reply| reply.unicast.iter().count());
        let _ = info::InfoReplyIp4::parse(&body, flags);
    }
}
