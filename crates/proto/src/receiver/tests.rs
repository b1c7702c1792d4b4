//! Whole datagrams: what is delivered, to whom, and what is dropped under which name.

use super::*;
use crate::guid::EntityId;
use crate::seq::{SequenceNumber, SequenceSet};
use crate::stats::DropCounters;
use crate::time::{Instant, Time};
use crate::wire::header::MAGIC;
use crate::wire::{AckNack, Data, DataFrag, Gap, Heartbeat, HeartbeatFrag, NackFrag};

const US: GuidPrefix = GuidPrefix(*b"us, ourselve");
const PEER: GuidPrefix = GuidPrefix(*b"a known peer");
const OTHER: GuidPrefix = GuidPrefix(*b"someone else");
const WRITER: EntityId = EntityId([0, 0, 1, 2]);

/// Remembers what was delivered.
#[derive(Default)]
struct Heard {
    contexts: Vec<MessageContext>,
    heartbeats: Vec<i32>,
    counters: DropCounters,
}

impl Registry for Heard {
    fn deliver(
        &mut self,
        _now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        _out: &mut Outbox,
    ) {
        self.contexts.push(*context);
        if let EndpointSubmessage::Heartbeat(heartbeat) = submessage {
            self.heartbeats.push(heartbeat.count);
        }
    }

    fn is_local(&self, prefix: GuidPrefix) -> bool {
        prefix == US
    }
}

fn hear(bytes: &[u8]) -> Heard {
    let (mut heard, mut counters) = (Heard::default(), DropCounters::default());
    let now = Now { mono: Instant(0), wall: Time(0) };
    datagram(now, Locator::default(), bytes, None, &mut heard, &mut counters, &mut Outbox::new());
    Heard { counters, ..heard }
}

/// A datagram in the making.
struct Letter(Vec<u8>);

impl Letter {
    fn from(prefix: GuidPrefix) -> Self {
        Self([&MAGIC[..], &[2, 3, 1, 0x10], &prefix.0].concat())
    }

    fn raw(mut self, octets: &[u8]) -> Self {
        self.0.extend_from_slice(octets);
        self
    }

    fn to(mut self, prefix: GuidPrefix) -> Self {
        info::emit_destination(&mut self.0, prefix, true);
        self
    }

    fn at(mut self, time: Option<Time>) -> Self {
        info::emit_timestamp(&mut self.0, time.unwrap_or(Time::INVALID), false);
        self
    }

    fn on_behalf_of(mut self, prefix: GuidPrefix) -> Self {
        InfoSource { version: [2, 1], vendor: [1, 1], prefix }.emit(&mut self.0, true);
        self
    }

    fn heartbeat(mut self, count: i32) -> Self {
        let (first, last) = (SequenceNumber(1), SequenceNumber(1));
        let reader = EntityId::UNKNOWN;
        Heartbeat {
            reader,
            writer: WRITER,
            first,
            last,
            count,
            final_flag: true,
            liveliness: false,
            group: None,
        }
        .emit(&mut self.0, true);
        self
    }

    fn heard(&self) -> Heard {
        hear(&self.0)
    }
}

#[test]
fn fact_36_a_timestamp_holds_until_changed_and_not_beyond_its_message() {
    let (early, late) = (Time(1_000_000_000), Time(2_000_000_000));
    let heard = Letter::from(PEER)
        .heartbeat(1)
        .at(Some(early))
        .heartbeat(2)
        .heartbeat(3)
        .at(Some(late))
        .heartbeat(4)
        .at(None)
        .heartbeat(5)
        .heard();
    let times: Vec<Option<Time>> = heard.contexts.iter().map(|context| context.timestamp).collect();
    assert_eq!(times, [None, Some(early), Some(early), Some(late), None]);
    assert_eq!(Letter::from(PEER).heartbeat(1).heard().contexts[0].timestamp, None);
}

#[test]
fn fact_36_a_destination_of_zeroes_is_everyone() {
    let heard = Letter::from(PEER)
        .to(OTHER)
        .heartbeat(1)
        .to(US)
        .heartbeat(2)
        .to(GuidPrefix::UNKNOWN)
        .heartbeat(3)
        .heard();
    assert_eq!(heard.heartbeats, [2, 3]);
    assert_eq!(heard.contexts[0].destination, US);
    assert_eq!(heard.counters.get(DropReason::OtherDestination), 1);
}

#[test]
fn fact_36_info_src_changes_the_sender_and_takes_the_timestamp() {
    let heard = Letter::from(PEER).at(Some(Time(7))).on_behalf_of(OTHER).heartbeat(1).heard();
    let context = heard.contexts[0];
    assert_eq!((context.source, context.vendor, context.version), (OTHER, [1, 1], [2, 1]));
    assert_eq!(context.timestamp, None);
}

#[test]
fn fact_60_any_minor_version_is_welcome_and_no_other_major() {
    let mut letter = Letter::from(PEER).heartbeat(1);
    letter.0[5] = 99;
    assert_eq!(letter.heard().contexts[0].version, [2, 99]);
    letter.0[4] = 3;
    let heard = letter.heard();
    assert!(heard.contexts.is_empty());
    assert_eq!(heard.counters.get(DropReason::UnknownVersion), 1);
}

#[test]
fn fact_60_a_header_extension_with_the_wrong_length_ends_the_message() {
    let with_length = |bytes: u32| {
        let extension = HeaderExtension { message_bytes: Some(bytes), ..HeaderExtension::default() };
        let mut letter = Letter::from(PEER);
        extension.emit(&mut letter.0, true);
        letter.heartbeat(1).heard().heartbeats.len()
    };
    assert_eq!(with_length(20 + 8 + 32), 1);
    assert_eq!(with_length(0), 1, "not told");
    assert_eq!(with_length(61), 0);
}

#[test]
fn fact_1_a_submessage_of_length_zero_is_the_last() {
    let mut letter = Letter::from(PEER).heartbeat(1);
    let at = letter.0.len() - 32 + 2;
    letter.0[at] = 0;
    assert_eq!(letter.heard().heartbeats, [1]);
}

#[test]
fn r2_a_malformed_submessage_ends_the_message_and_is_counted() {
    let heard =
        Letter::from(PEER).heartbeat(1).raw(&[id::HEARTBEAT, 1, 4, 0, 0, 0, 0, 0]).heartbeat(2).heard();
    assert_eq!(heard.heartbeats, [1]);
    assert_eq!(heard.counters.get(DropReason::Malformed), 1);
    let heard = Letter::from(PEER).heartbeat(1).raw(&[id::PAD, 1]).heard();
    assert_eq!((heard.heartbeats.len(), heard.counters.get(DropReason::Malformed)), (1, 1));
}

#[test]
fn unknown_submessages_are_skipped_and_counted() {
    for unknown in [0x02, 0x14, 0x7f] {
        let letter = Letter::from(PEER).raw(&[unknown, 1, 4, 0, 1, 2, 3, 4]);
        let heard = letter.raw(&[id::PAD, 1, 0, 0]).heartbeat(1).heard();
        assert_eq!(heard.heartbeats, [1]);
        assert_eq!(heard.counters.get(DropReason::UnknownSubmessage), 1);
    }
}

#[test]
fn what_vendors_keep_to_themselves_is_skipped_and_is_no_drop() {
    for own in 0x80..=0xff {
        let heard = Letter::from(PEER).raw(&[own, 1, 4, 0, 1, 2, 3, 4]).heartbeat(1).heard();
        assert_eq!(heard.heartbeats, [1]);
        assert_eq!(heard.counters, DropCounters::default(), "{own:#x}");
    }
}

#[test]
fn what_is_no_rtps_is_counted_as_malformed() {
    for bytes in [&b""[..], b"RTPS", b"GET / HTTP/1.1\r\nHost: x\r\n"] {
        assert_eq!(hear(bytes).counters.get(DropReason::Malformed), 1);
    }
}

#[test]
fn info_reply_is_checked_and_then_ignored() {
    let mut letter = Letter::from(PEER);
    info::emit_reply(&mut letter.0, &[Locator::default()], &[], true);
    assert_eq!(letter.heartbeat(1).heard().heartbeats, [1]);
    let endless = [id::INFO_REPLY, 1, 4, 0, 0xff, 0xff, 0xff, 0xff];
    let heard = Letter::from(PEER).raw(&endless).heartbeat(1).heard();
    assert_eq!((heard.heartbeats.len(), heard.counters.get(DropReason::Malformed)), (0, 1));
}

#[test]
fn protected_submessages_are_counted_and_what_follows_them_is_heard() {
    let prefix = [&[id::SEC_PREFIX, 1, 20, 0][..], &[0; 20]].concat();
    let heard = Letter::from(PEER)
        .raw(&prefix)
        .heartbeat(1)
        .raw(&[id::SEC_BODY, 1, 4, 0, 1, 2, 3, 4])
        .raw(&[id::SEC_POSTFIX, 1, 4, 0, 1, 2, 3, 4])
        .heartbeat(2)
        .heard();
    assert_eq!(heard.heartbeats, [2]);
    assert_eq!(heard.counters.get(DropReason::SecurityRequired), 1);
    let whole = [&[id::SRTPS_PREFIX, 1, 20, 0][..], &[0; 20]].concat();
    let heard = Letter::from(PEER).raw(&whole).heartbeat(1).heard();
    assert!(heard.heartbeats.is_empty());
    assert_eq!(heard.counters.get(DropReason::SecurityRequired), 1);
}

#[test]
fn encrypted_payloads_are_not_handed_out_as_data() {
    let fields = [&[0, 0, 16, 0][..], &[0; 4], &WRITER.0, &[0, 0, 0, 0, 1, 0, 0, 0], &[9; 8]].concat();
    let data = |flags: u8| [&[id::DATA, flags, 28, 0][..], &fields].concat();
    let heard = Letter::from(PEER).raw(&data(0x05)).raw(&data(0x15)).heartbeat(1).heard();
    assert_eq!(heard.contexts.len(), 2);
    assert_eq!(heard.counters.get(DropReason::SecurityRequired), 1);
}

#[test]
fn r15_the_longest_datagram_of_the_shortest_submessages_is_walked_to_its_end() {
    let mut letter = Letter::from(PEER);
    while letter.0.len() < 65_400 {
        letter = letter.raw(&[id::PAD, 1, 0, 0]);
    }
    assert_eq!(letter.heartbeat(1).heard().heartbeats, [1]);
}

#[test]
fn every_kind_of_endpoint_submessage_is_delivered() {
    let (reader, writer, sequence_number) = (EntityId::UNKNOWN, WRITER, SequenceNumber(1));
    let mut letter = Letter::from(PEER).heartbeat(1);
    let bytes = &mut letter.0;
    Gap { reader, writer, start: sequence_number, list: SequenceSet::empty(sequence_number), filtered: 0 }
        .emit(bytes, true);
    let missing = SequenceSet::empty(sequence_number);
    AckNack { reader, writer, missing, count: 1, final_flag: true, heartbeat: None }.emit(bytes, false);
    let missing = crate::seq::FragmentSet::empty(1);
    NackFrag { reader, writer, sequence_number, missing, count: 1 }.emit(bytes, true);
    HeartbeatFrag { reader, writer, sequence_number, last_fragment: 1, count: 1 }.emit(bytes, false);
    let payload = &[0, 1, 0, 0, 42, 0, 0, 0][..];
    Data { reader, writer, sequence_number, inline_qos: None, payload, attachment: None, key_only: false }
        .emit(bytes, true);
    let (first_fragment, fragments, fragment_bytes, sample_bytes) = (1, 1, 8, 20);
    DataFrag {
        reader,
        writer,
        sequence_number,
        first_fragment,
        fragments,
        fragment_bytes,
        sample_bytes,
        inline_qos: None,
        payload,
        key_only: false,
    }
    .emit(bytes, true);
    let heard = letter.heard();
    assert_eq!(heard.contexts.len(), 7);
    assert_eq!(heard.counters, DropCounters::default());
}

/// Remembers which HEARTBEATs ACKNACKs answer.
#[derive(Default)]
struct Answers(Vec<(i32, Option<i32>)>);

impl Registry for Answers {
    fn deliver(&mut self, _: Now, _: &MessageContext, heard: &EndpointSubmessage<'_>, _: &mut Outbox) {
        if let EndpointSubmessage::AckNack(acknack) = heard {
            self.0.push((acknack.count, acknack.heartbeat));
        }
    }

    fn is_local(&self, _: GuidPrefix) -> bool {
        true
    }
}

#[test]
fn an_acknack_of_our_like_says_which_heartbeat_it_answers() {
    let (reader, writer) = (EntityId::user_reader(1, true), WRITER);
    let missing = SequenceSet::empty(SequenceNumber(1));
    for (vendor, named) in [(vendor::PLAINSONG, Some(77)), ([1, 0x10], None)] {
        let mut bytes = [&MAGIC[..], &[2, 5], &vendor, &PEER.0].concat();
        for (count, heartbeat) in [(1, Some(77)), (2, None)] {
            AckNack { reader, writer, missing, count, final_flag: true, heartbeat }.emit(&mut bytes, false);
        }
        // What it names is of the next submessage alone.
        bytes.extend([id::ANSWERED, 1, 4, 0, 5, 0, 0, 0]);
        let mut letter = Letter(bytes).heartbeat(1);
        AckNack { reader, writer, missing, count: 3, final_flag: true, heartbeat: None }
            .emit(&mut letter.0, true);
        let (mut answers, mut counters, mut out) =
            (Answers::default(), DropCounters::default(), Outbox::new());
        let now = Now { mono: Instant(0), wall: Time(0) };
        datagram(now, Locator::default(), &letter.0, None, &mut answers, &mut counters, &mut out);
        assert_eq!(answers.0, [(1, named), (2, None), (3, None)]);
    }
}

/// Remembers what comes for built-in endpoints, run by run.
#[derive(Default)]
struct Runs {
    runs: Vec<Vec<(i32, Option<Time>)>>,
    others: usize,
}

impl Registry for Runs {
    fn deliver(&mut self, _: Now, _: &MessageContext, _: &EndpointSubmessage<'_>, _: &mut Outbox) {
        self.others += 1;
    }

    fn deliver_control(&mut self, _: Now, run: &mut ControlRun<'_, '_>, _: &mut Outbox) {
        let mut heard = Vec::new();
        while let Some((context, submessage)) = run.next() {
            assert_eq!(context.destination, US);
            if let EndpointSubmessage::Heartbeat(heartbeat) = submessage {
                heard.push((heartbeat.count, context.timestamp));
            }
        }
        self.runs.push(heard);
    }

    fn is_local(&self, prefix: GuidPrefix) -> bool {
        prefix == US
    }
}

#[test]
fn what_is_for_builtin_endpoints_comes_in_one_go_until_something_else_follows() {
    fn of_builtin(mut letter: Letter, count: i32) -> Letter {
        let place = letter.0.len();
        letter = letter.heartbeat(count);
        // Behind the submessage header, the reader and then the writer.
        letter.0[place + 8..place + 12].copy_from_slice(&EntityId::SEDP_PUBLICATIONS_WRITER.0);
        letter
    }
    let time = Some(Time(1_000_000_000));
    let letter = of_builtin(Letter::from(PEER).to(US), 1);
    let letter = of_builtin(letter.to(US).at(time), 2);
    let letter = of_builtin(letter.heartbeat(3), 4);
    let letter = of_builtin(letter.to(OTHER), 5);
    let letter = of_builtin(letter.to(US), 6).raw(&[id::ACKNACK, 1, 4, 0, 0, 0, 0, 0]);
    let letter = of_builtin(letter, 7);
    let (mut runs, mut counters) = (Runs::default(), DropCounters::default());
    let now = Now { mono: Instant(0), wall: Time(0) };
    datagram(now, Locator::default(), &letter.0, None, &mut runs, &mut counters, &mut Outbox::new());
    assert_eq!(runs.runs, [vec![(1, None), (2, time)], vec![(4, time)], vec![(6, time)]]);
    assert_eq!(runs.others, 1);
    assert_eq!(counters.get(DropReason::OtherDestination), 1);
    assert_eq!(counters.get(DropReason::Malformed), 1, "which ends the message");
}

/// Takes so many samples of each run.
struct Picky {
    taken_max: usize,
    runs: Vec<Vec<(i64, Option<Time>)>>,
    others: usize,
}

impl Registry for Picky {
    fn deliver(&mut self, _: Now, _: &MessageContext, _: &EndpointSubmessage<'_>, _: &mut Outbox) {
        self.others += 1;
    }

    fn deliver_run(&mut self, _: Now, run: &mut Run<'_, '_>, _: &mut Outbox) {
        assert_eq!(
            (run.target(), run.writer()),
            (Target::ReadersOf(PEER.entity(WRITER)), PEER.entity(WRITER))
        );
        let mut taken = Vec::new();
        while taken.len() < self.taken_max
            && let Some((context, data)) = run.next()
        {
            taken.push((data.sequence_number.0, context.timestamp));
        }
        self.runs.push(taken);
    }

    fn is_local(&self, prefix: GuidPrefix) -> bool {
        prefix == US
    }
}

#[test]
fn samples_that_nobody_took_of_a_run_begin_another_but_for_the_first() {
    let time = Some(Time(1_000_000_000));
    let sample = |mut letter: Letter, number: i64| {
        let (reader, sequence_number) = (EntityId::UNKNOWN, SequenceNumber(number));
        let payload = &[0, 1, 0, 0, 42, 0, 0, 0][..];
        Data {
            reader,
            writer: WRITER,
            sequence_number,
            inline_qos: None,
            payload,
            attachment: None,
            key_only: false,
        }
        .emit(&mut letter.0, true);
        letter
    };
    let letter = sample(sample(Letter::from(PEER).at(time), 1).at(None), 2);
    let letter = sample(sample(letter, 3).heartbeat(1), 4);
    let runs = |taken_max| {
        let mut picky = Picky { taken_max, runs: Vec::new(), others: 0 };
        let now = Now { mono: Instant(0), wall: Time(0) };
        let (mut counters, mut out) = (DropCounters::default(), Outbox::new());
        datagram(now, Locator::default(), &letter.0, None, &mut picky, &mut counters, &mut out);
        assert_eq!((picky.others, counters), (1, DropCounters::default()));
        picky.runs
    };
    assert_eq!(runs(usize::MAX), [vec![(1, time), (2, None), (3, None)], vec![(4, None)]]);
    assert_eq!(runs(2), [vec![(1, time), (2, None)], vec![(3, None)], vec![(4, None)]]);
    assert_eq!(runs(0), [const { Vec::new() }; 4], "each is passed over");
}

#[test]
fn who_asks_several_asks_for_no_sample_and_brings_none() {
    let acknack = |letter: Letter, missing: Option<i64>| {
        let mut set = SequenceSet::empty(SequenceNumber(1));
        assert!(missing.is_none_or(|number| set.insert(SequenceNumber(number))));
        let mut octets = Vec::new();
        AckNack {
            reader: WRITER,
            writer: WRITER,
            missing: set,
            count: 1,
            final_flag: false,
            heartbeat: None,
        }
        .emit(&mut octets, true);
        letter.raw(&octets)
    };
    let begun = || Letter::from(PEER).to(US).heartbeat(1);
    assert!(!asks_several(&begun().0), "one");
    assert!(asks_several(&begun().to(OTHER).heartbeat(2).0));
    assert!(asks_several(&acknack(begun(), None).0));
    assert!(!asks_several(&acknack(begun(), Some(3)).0), "a sample is asked for");
    assert!(!asks_several(&begun().heartbeat(2).raw(&[id::DATA, 1, 0, 0]).0), "a sample");
    assert!(asks_several(&begun().heartbeat(2).raw(&[0x81, 1, 4, 0, 1, 0, 0, 0]).0), "a vendor's own");
    assert!(!asks_several(&begun().heartbeat(2).raw(&[id::HEARTBEAT, 1, 3, 0, 1]).0), "malformed");
    let long = (0..60).fold(begun(), |letter, count| letter.heartbeat(count));
    assert!(!asks_several(&long.0), "many");
}

/// Remembers the octets of samples that came beside their messages.
#[derive(Default)]
struct Attached(Vec<(i64, Vec<u8>, bool)>);

impl Registry for Attached {
    fn deliver(&mut self, _: Now, _: &MessageContext, heard: &EndpointSubmessage<'_>, _: &mut Outbox) {
        if let EndpointSubmessage::Data(data) = heard {
            let in_place = data.attachment.is_some_and(|it| it.as_slice().as_ptr() == data.payload.as_ptr());
            self.0.push((data.sequence_number.0, data.payload.to_vec(), in_place));
        }
    }

    fn is_local(&self, prefix: GuidPrefix) -> bool {
        prefix == US
    }
}

fn hear_attached(letter: &Letter, attachment: &Payload) -> (Attached, DropCounters) {
    let (mut heard, mut counters) = (Attached::default(), DropCounters::default());
    let now = Now { mono: Instant(0), wall: Time(0) };
    let out = &mut Outbox::new();
    datagram(now, Locator::default(), &letter.0, Some(attachment), &mut heard, &mut counters, out);
    (heard, counters)
}

/// A DATA with flags that goes to the end of its message.
fn data_to_the_end(letter: Letter, writer: EntityId, number: u8, flags: u8, payload: &[u8]) -> Letter {
    letter
        .raw(&[id::DATA, flag::LITTLE_ENDIAN | flags, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0])
        .raw(&writer.0)
        .raw(&[0, 0, 0, 0, number, 0, 0, 0])
        .raw(payload)
}

#[test]
fn the_last_data_of_a_message_has_the_payload_that_came_beside_it() {
    let attachment = Payload::from_vec(vec![7; 5_000]);
    let mut letter = Letter::from(PEER);
    let (reader, writer, sequence_number) = (EntityId::UNKNOWN, WRITER, SequenceNumber(1));
    let payload = &[0, 1, 0, 0, 42, 0, 0, 0][..];
    Data { reader, writer, sequence_number, inline_qos: None, payload, attachment: None, key_only: false }
        .emit(&mut letter.0, true);
    let letter = data_to_the_end(letter, WRITER, 2, flag::DATA, &[]);
    let (heard, counters) = hear_attached(&letter, &attachment);
    assert_eq!(heard.0, [(1, payload.to_vec(), false), (2, vec![7; 5_000], true)]);
    assert_eq!(counters, DropCounters::default());
    // Without, it is a sample that has none, as it always was.
    assert_eq!(letter.heard().counters, DropCounters::default());
}

#[test]
fn what_came_beside_a_message_and_belongs_to_nothing_in_it_is_counted() {
    let attachment = Payload::from_vec(vec![7; 5_000]);
    let (stray, malformed) = (DropReason::StrayAttachment, DropReason::Malformed);
    let builtin = EntityId::SEDP_PUBLICATIONS_WRITER;
    let whole = [0, 1, 0, 0, 42, 0, 0, 0];
    let cases = [
        (Letter::from(PEER).heartbeat(1), stray),
        (data_to_the_end(Letter::from(PEER), builtin, 1, flag::DATA, &[]), stray),
        (
            data_to_the_end(Letter::from(PEER).to(OTHER), WRITER, 1, flag::DATA, &[]),
            DropReason::OtherDestination,
        ),
        (data_to_the_end(Letter::from(PEER), WRITER, 1, 0, &[]), malformed),
        (data_to_the_end(Letter::from(PEER), WRITER, 1, flag::DATA, &whole), malformed),
    ];
    for (index, (letter, reason)) in cases.iter().enumerate() {
        let (heard, counters) = hear_attached(letter, &attachment);
        assert_eq!(counters.iter().collect::<Vec<_>>(), [(*reason, 1)], "{index}");
        assert!(heard.0.is_empty(), "{index}");
    }
    // Behind what is for built-in endpoints, too.
    let mut letter = Letter::from(PEER).heartbeat(1);
    let place = letter.0.len() - 32 + 8;
    letter.0[place..place + 4].copy_from_slice(&builtin.0);
    let (heard, counters) = hear_attached(&data_to_the_end(letter, builtin, 1, flag::DATA, &[]), &attachment);
    assert_eq!((heard.0.len(), counters.get(stray)), (0, 1));
    let short = Payload::short(&[0, 1]).unwrap();
    let (_, counters) =
        hear_attached(&data_to_the_end(Letter::from(PEER), WRITER, 1, flag::DATA, &[]), &short);
    assert_eq!(counters.get(malformed), 1);
}
