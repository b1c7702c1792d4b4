//! Stories of one reader in virtual time.

mod cache;
mod coherent;
mod departures;
mod destination_order;
mod filter;
mod first_contact;
mod fragments;
mod group;
mod hostile;
mod lifecycle;
mod limits;
mod liveliness;
mod long_keys;
mod order;
mod policies;
mod undecodable;

use super::*;
use crate::guid::{EntityId, GuidPrefix};
use crate::instance::KeyFunction;
use crate::locator::Locator;
use crate::malformed::Malformed;
use crate::matched::MatchedWriter;
use crate::sample_info::{InstanceSelector, InstanceState, SampleState, ViewState};
use crate::seq::SequenceSet;
use crate::sources::Sources;
use crate::time::Duration;
use crate::wire::StatusInfo;
use crate::wire::param::{InlineQos, encode_inline_qos};
use crate::wire::{Data, DataFrag, Gap, Heartbeat, MessageContext, ParameterListView};

/// Key function of the tests: octet 4 (after the encapsulation) names the instance.
pub(super) fn first_octet(payload: &[u8], _key_only: bool) -> Result<Key, Malformed> {
    Ok(handle(*payload.get(4).ok_or(Malformed::Truncated)?).into())
}

/// Keys of the first octets: a key alone is as far as they go.
pub(super) fn key_of_octets(find: fn(&[u8], bool) -> Result<Key, Malformed>, octets: usize) -> KeyFunction {
    KeyFunction::new(find).with_serialized(move |payload, _, buffer| {
        payload.get(..4 + octets).is_some_and(|key| {
            buffer.extend_from_slice(key);
            true
        })
    })
}

pub(super) fn handle(key: u8) -> InstanceHandle {
    let mut octets = [0xee; 16];
    octets[0] = key;
    InstanceHandle(octets)
}

pub(super) fn payload(key: u8, value: u8) -> Vec<u8> {
    vec![0, 1, 0, 0, key, value]
}

/// Which writer, by number; number 1 has the lowest GUID.
pub(super) fn writer(number: u8) -> Guid {
    GuidPrefix([number; 12]).entity(EntityId::user_writer(1, true))
}

/// A reader, its clock, and what it says.
pub(super) struct Bench {
    pub(super) reader: Reader,
    pub(super) now: Now,
    pub(super) out: Outbox,
    pub(super) heartbeats: i32,
    /// Of the writers.
    pub(super) vendor: [u8; 2],
}

/// An ACKNACK as the writer sees it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ack {
    pub(super) base: i64,
    pub(super) missing: Vec<i64>,
    pub(super) final_flag: bool,
}

pub(super) fn config(qos: QosSet) -> ReaderConfig {
    let guid = GuidPrefix([0xaa; 12]).entity(EntityId::user_reader(1, true));
    ReaderConfig {
        guid,
        keyed: true,
        qos,
        limits: ReaderLimits::default(),
        key: key_of_octets(first_octet, 1),
    }
}

/// What the readers of a subscriber have room for together.
fn room_of(readers: &[Bench], publisher: Guid, number: SequenceNumber) -> GroupRoom {
    let of_each = readers.iter().map(|bench| bench.reader.group_room(publisher, number));
    of_each.min().unwrap_or(GroupRoom::Enough)
}

impl Bench {
    pub(super) fn new(qos: QosSet) -> Self {
        Self::with(config(qos))
    }

    pub(super) fn with(config: ReaderConfig) -> Self {
        let now = Now { mono: Instant(1_000_000_000), wall: Time(1_700_000_000_000_000_000) };
        Self { reader: Reader::new(config), now, out: Outbox::new(), heartbeats: 0, vendor: [0, 0] }
    }

    /// A reliable KEEP_ALL reader matched with writer 1, which was heard.
    pub(super) fn reliable() -> Self {
        let mut bench = Self::new(QosSet::reader().reliable().keep_all());
        bench.matched(1, QosSet::writer());
        bench.heartbeat(1, 1, 0, true).unwrap();
        bench.out.clear();
        bench
    }

    pub(super) fn best_effort() -> Self {
        let mut bench = Self::new(QosSet::reader().keep_all());
        bench.matched(1, QosSet::writer());
        bench.out.clear();
        bench
    }

    pub(super) fn matched(&mut self, number: u8, qos: QosSet) {
        let writer = self.known(number, qos);
        self.reader.match_writer(self.now, &writer, &mut self.out);
    }

    /// What discovery tells of a writer.
    pub(super) fn known(&self, number: u8, qos: QosSet) -> MatchedWriter {
        MatchedWriter {
            guid: writer(number),
            locators: vec![Locator::udp([127, 0, 0, 1].into(), 7411)],
            sources: Sources::default(),
            publisher: EntityId::UNKNOWN,
            vendor: self.vendor,
            qos,
            begins: false,
        }
    }

    pub(super) fn context(&self, number: u8) -> MessageContext {
        MessageContext {
            source: writer(number).prefix,
            vendor: self.vendor,
            version: [2, 5],
            destination: GuidPrefix::UNKNOWN,
            timestamp: Some(self.now.wall),
            from: Locator::default(),
        }
    }

    /// Time passes and timers run.
    pub(super) fn pass(&mut self, span: Duration) {
        let end = self.now.mono.after(span).unwrap();
        while let Some(due) = self.reader.next_timeout().filter(|due| *due <= end) {
            self.move_to(due.max(self.now.mono));
            self.reader.timeout(self.now, &mut self.out);
        }
        self.move_to(end);
    }

    fn move_to(&mut self, instant: Instant) {
        self.now.wall = self.now.wall.plus(instant.since(self.now.mono));
        self.now.mono = instant;
    }

    pub(super) fn data(&mut self, from: u8, number: i64, key: u8, value: u8) -> Result<(), DropReason> {
        self.data_at(from, number, key, value, self.now.wall)
    }

    pub(super) fn data_at(
        &mut self,
        from: u8,
        number: i64,
        key: u8,
        value: u8,
        timestamp: Time,
    ) -> Result<(), DropReason> {
        let context = MessageContext { timestamp: Some(timestamp), ..self.context(from) };
        let octets = payload(key, value);
        let data = plain(number, &octets);
        self.reader.on_data(self.now, &context, &data, &mut self.out)
    }

    /// A DATA with inline QoS; an empty payload is none.
    pub(super) fn data_with(
        &mut self,
        from: u8,
        number: i64,
        inline: &InlineQos,
        payload: &[u8],
        key_only: bool,
    ) -> Result<(), DropReason> {
        let mut list = Vec::new();
        encode_inline_qos(inline, &mut list);
        let inline_qos = Some(ParameterListView { bytes: &list, little_endian: true });
        let data = Data { inline_qos, key_only, ..plain(number, payload) };
        self.reader.on_data(self.now, &self.context(from), &data, &mut self.out)
    }

    pub(super) fn dispose(&mut self, from: u8, number: i64, key: u8) -> Result<(), DropReason> {
        self.status(from, number, key, true, false)
    }

    pub(super) fn unregister(&mut self, from: u8, number: i64, key: u8) -> Result<(), DropReason> {
        self.status(from, number, key, false, true)
    }

    pub(super) fn status(
        &mut self,
        from: u8,
        number: i64,
        key: u8,
        disposed: bool,
        unregistered: bool,
    ) -> Result<(), DropReason> {
        let status_info = StatusInfo { disposed, unregistered, filtered: false };
        let inline = InlineQos { status_info, ..InlineQos::default() };
        self.data_with(from, number, &inline, &[0, 1, 0, 0, key], true)
    }

    pub(super) fn fragment(&mut self, from: u8, fragment: &DataFrag<'_>) -> Result<(), DropReason> {
        self.reader.on_data_frag(self.now, &self.context(from), fragment, &mut self.out)
    }

    pub(super) fn heartbeat(
        &mut self,
        from: u8,
        first: i64,
        last: i64,
        final_flag: bool,
    ) -> Result<(), DropReason> {
        self.heartbeats += 1;
        self.heartbeat_counted(from, first, last, final_flag, self.heartbeats)
    }

    pub(super) fn heartbeat_counted(
        &mut self,
        from: u8,
        first: i64,
        last: i64,
        final_flag: bool,
        count: i32,
    ) -> Result<(), DropReason> {
        let named = self.reader.guid().entity;
        self.heartbeat_to(named, from, (first, last), final_flag, count)
    }

    /// Of writer `from`, for one reader or for all.
    pub(super) fn heartbeat_to(
        &mut self,
        reader: EntityId,
        from: u8,
        (first, last): (i64, i64),
        final_flag: bool,
        count: i32,
    ) -> Result<(), DropReason> {
        let heartbeat = Heartbeat {
            reader,
            writer: writer(from).entity,
            first: SequenceNumber(first),
            last: SequenceNumber(last),
            count,
            final_flag,
            liveliness: false,
            group: None,
        };
        self.reader.on_heartbeat(self.now, &self.context(from), &heartbeat, &mut self.out)
    }

    pub(super) fn gap(&mut self, from: u8, start: i64, base: i64, members: &[i64]) -> Result<(), DropReason> {
        let mut list = SequenceSet::empty(SequenceNumber(base));
        for member in members {
            assert!(list.insert(SequenceNumber(*member)));
        }
        let gap = Gap {
            reader: self.reader.guid().entity,
            writer: writer(from).entity,
            start: SequenceNumber(start),
            list,
            filtered: 0,
        };
        self.reader.on_gap(self.now, &self.context(from), &gap, &mut self.out)
    }

    pub(super) fn take(&mut self) -> Vec<CachedSample> {
        self.take_with(&Selector::default())
    }

    pub(super) fn take_with(&mut self, selector: &Selector) -> Vec<CachedSample> {
        let mut samples = CachedSamples::new();
        self.reader.take(self.now, selector, &mut samples);
        samples.into_vec()
    }

    pub(super) fn read_with(&mut self, selector: &Selector) -> Vec<CachedSample> {
        let mut samples = CachedSamples::new();
        self.reader.read(self.now, selector, &mut samples);
        samples.into_vec()
    }

    /// Values of the valid samples taken.
    pub(super) fn values(&mut self) -> Vec<u8> {
        values(&self.take())
    }

    /// ACKNACKs sent since the last call.
    pub(super) fn acks(&mut self) -> Vec<Ack> {
        let acks = self.acks_kept();
        self.out.clear_transmits();
        acks
    }

    /// As [`Self::acks`], to be called before [`Self::nack_frags`].
    pub(super) fn acks_kept(&self) -> Vec<Ack> {
        let acks = self.submessages().into_iter().filter(|(id, ..)| *id == 0x06);
        let acks = acks.map(|(_, flags, body)| {
            let base = number_at(&body, 8);
            let bits = u32::from_le_bytes(body[16..20].try_into().unwrap());
            let word =
                |bit: u32| u32::from_le_bytes(body[20 + bit as usize / 32 * 4..][..4].try_into().unwrap());
            let missing = (0..bits).filter(|bit| word(*bit) & (1 << (31 - bit % 32)) != 0);
            Ack {
                base,
                missing: missing.map(|bit| base + i64::from(bit)).collect(),
                final_flag: flags & 2 != 0,
            }
        });
        acks.collect()
    }

    /// NACK_FRAGs sent since the last call: change and missing fragments.
    pub(super) fn nack_frags(&mut self) -> Vec<(i64, Vec<u32>)> {
        let nacks = self.submessages().into_iter().filter(|(id, ..)| *id == 0x12).map(|(_, _, body)| {
            let word_at = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap());
            let (base, bits) = (word_at(16), word_at(20));
            let missing =
                (0..bits).filter(|bit| word_at(24 + *bit as usize / 32 * 4) & (1 << (31 - bit % 32)) != 0);
            (number_at(&body, 8), missing.map(|bit| base + bit).collect())
        });
        let nacks = nacks.collect();
        self.out.clear_transmits();
        nacks
    }

    /// Kind, flags and body of every submessage in the outbox.
    fn submessages(&self) -> Vec<(u8, u8, Vec<u8>)> {
        let mut found = Vec::new();
        for transmit in self.out.transmits() {
            let datagram = self.out.datagram(transmit);
            let mut rest = &datagram[20..];
            while let [id, flags, a, b, body @ ..] = rest {
                let len = usize::from(u16::from_le_bytes([*a, *b]));
                found.push((*id, *flags, body[..len].to_vec()));
                rest = &body[len..];
            }
        }
        found
    }

    /// How often a status was reported since the last call of this function.
    pub(super) fn reported(&mut self, kind: StatusKind) -> usize {
        let is = |event: &Event| matches!(event, Event::Status { kind: reported, .. } if *reported == kind);
        let count = self.out.events.iter().filter(|event| is(event)).count();
        self.out.events.retain(|event| !is(event));
        count
    }
}

fn number_at(body: &[u8], at: usize) -> i64 {
    let high = i32::from_le_bytes(body[at..at + 4].try_into().unwrap());
    let low = u32::from_le_bytes(body[at + 4..at + 8].try_into().unwrap());
    SequenceNumber::from_wire(high, low).0
}

pub(super) fn plain(number: i64, payload: &[u8]) -> Data<'_> {
    Data {
        reader: EntityId::UNKNOWN,
        writer: writer(1).entity,
        sequence_number: SequenceNumber(number),
        inline_qos: None,
        payload,
        attachment: None,
        key_only: false,
    }
}

pub(super) fn values(samples: &[CachedSample]) -> Vec<u8> {
    samples
        .iter()
        .filter(|sample| sample.info.valid_data)
        .map(|sample| sample.payload.as_slice()[5])
        .collect()
}

pub(super) fn only(instance: InstanceSelector) -> Selector {
    Selector { instance, ..Selector::default() }
}

pub(super) fn state_of(samples: &[CachedSample]) -> InstanceState {
    samples.last().unwrap().info.instance_state
}
