//! Participants of other stacks, as far as proofs of address and what follows need them.

use super::network::group;
use super::small::Small;
use crate::discovery::builtin::ParticipantData;
use crate::guid::{EntityId, GuidPrefix};
use crate::locator::Locator;
use crate::outbox::DataHeader;
use crate::outbox::Outbox;
use crate::payload::Payload;
use crate::receiver;
use crate::seq::{SequenceNumber, SequenceSet};
use crate::stats::DropCounters;
use crate::time::{Instant, Now, Time};
use crate::wire::param::InlineQos;
use crate::wire::{AckNack, EndpointSubmessage, Gap, Heartbeat, MessageContext};

/// A participant that answers HEARTBEATs of SEDP writers at once and keeps changes that come in order, as
/// small stacks do. It never names a destination.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) prefix: GuidPrefix,
    /// One that nobody knows, unless it is said.
    pub(super) vendor: [u8; 2],
    /// Where it listens.
    pub(super) at: Locator,
    /// Where its datagrams come from.
    pub(super) from: Locator,
    /// Where it listens besides, without saying so.
    pub(super) also_at: Option<Locator>,
    /// The next number it expects of the writers of publications and subscriptions.
    pub(super) expected: [i64; 2],
    /// Changes of these writers that it has got.
    pub(super) changes: usize,
    /// How often it was told that the participant leaves.
    pub(super) farewells: usize,
    pub(super) count: i32,
    /// What it has room for and understands, of one that is as small as they are.
    pub(super) small: Option<Small>,
    /// It asks for the first change, whatever a HEARTBEAT says is there.
    pub(super) wants_the_first: bool,
}

impl Peer {
    pub(super) fn new(prefix: GuidPrefix, at: Locator) -> Self {
        let (changes, farewells, wants_the_first) = (0, 0, false);
        let expected = [1; 2];
        Self {
            prefix,
            vendor: VENDOR,
            at,
            from: at,
            also_at: None,
            expected,
            changes,
            farewells,
            count: 0,
            small: None,
            wants_the_first,
        }
    }

    /// Whether it listens there.
    pub(super) fn hears(&self, at: &Locator) -> bool {
        self.at == *at || self.also_at == Some(*at)
    }

    /// What it answers to a datagram.
    pub(super) fn answers(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let told = dissect(bytes);
        if told.is_farewell {
            self.expected = [1; 2];
            self.farewells += 1;
        }
        self.skip(&told.gaps);
        for data in &told.data {
            if let Some(small) = &mut self.small
                && data.writer == EntityId::SPDP_WRITER
            {
                small.hear_participant(&data.payload);
            }
            if self.small.as_ref().is_none_or(|small| small.knows_us)
                && let Some(expected) = self.expected_of(data.writer)
                && *expected == data.number.0
            {
                *expected += 1;
                self.changes += 1;
                self.small.iter_mut().for_each(|small| small.hear_endpoint(data));
            }
        }
        self.skip(&told.gaps);
        if self.small.as_ref().is_some_and(|small| !small.knows_us) {
            return Vec::new();
        }
        told.heartbeats.iter().filter_map(|heartbeat| self.answer(heartbeat)).collect()
    }

    /// What is not for it.
    fn skip(&mut self, gaps: &[Gap]) {
        for Gap { writer, start, list, .. } in gaps {
            if let Some(expected) = self.expected_of(*writer)
                && *expected >= start.0
            {
                *expected = list.base().0.max(*expected);
                while list.contains(SequenceNumber(*expected)) {
                    *expected += 1;
                }
            }
        }
    }

    fn expected_of(&mut self, writer: EntityId) -> Option<&mut i64> {
        let [publications, subscriptions] = &mut self.expected;
        match writer {
            EntityId::SEDP_PUBLICATIONS_WRITER => Some(publications),
            EntityId::SEDP_SUBSCRIPTIONS_WRITER => Some(subscriptions),
            _ => None,
        }
    }

    fn answer(&mut self, heartbeat: &Heartbeat) -> Option<Vec<u8>> {
        let wants_the_first = self.wants_the_first;
        let expected = self.expected_of(heartbeat.writer)?;
        if !wants_the_first {
            *expected = heartbeat.first.0.max(*expected);
        }
        let mut missing = SequenceSet::empty(SequenceNumber(*expected));
        for number in *expected..=heartbeat.last.0.min(*expected + 31) {
            missing.insert(SequenceNumber(number));
        }
        let reader = heartbeat.reader;
        Some(self.acknack(reader, heartbeat.writer, missing))
    }

    /// An ACKNACK of its own.
    pub(super) fn acknack(&mut self, reader: EntityId, writer: EntityId, missing: SequenceSet) -> Vec<u8> {
        self.count += 1;
        let acknack = AckNack {
            reader,
            writer,
            missing,
            count: self.count,
            final_flag: missing.is_empty(),
            heartbeat: None,
        };
        let mut out = Outbox::new();
        let mut message = out.message(self.prefix, &[self.at], 1_400);
        assert!(message.acknack(&acknack));
        message.finish();
        let mut bytes = out.datagram(&out.transmits()[0]);
        bytes[6..8].copy_from_slice(&self.vendor);
        bytes
    }

    /// A HEARTBEAT of one of its built-in writers, which has changes up to this number.
    pub(super) fn heartbeat(&mut self, writer: EntityId, last: i64) -> Vec<u8> {
        self.count += 1;
        let heartbeat = Heartbeat {
            reader: EntityId::UNKNOWN,
            writer,
            first: SequenceNumber::FIRST,
            last: SequenceNumber(last),
            count: self.count,
            final_flag: false,
            liveliness: false,
            group: None,
        };
        let mut out = Outbox::new();
        let mut message = out.message(self.prefix, &[self.at], 1_400);
        assert!(message.heartbeat(&heartbeat));
        message.finish();
        out.datagram(&out.transmits()[0])
    }

    /// What it announces.
    pub(super) fn data(&self) -> ParticipantData {
        ParticipantData {
            vendor: self.vendor,
            builtin_endpoints: u32::MAX,
            meta_unicast: vec![self.at],
            default_unicast: vec![self.at],
            ..ParticipantData::new(self.prefix.participant())
        }
    }
}

/// A datagram that announces `data`, to `destination` in particular.
pub(super) fn announcement(data: &ParticipantData, destination: GuidPrefix) -> Vec<u8> {
    let mut out = Outbox::new();
    let mut message = out.message(data.guid.prefix, &[group()], 65_000);
    message.info_destination(destination);
    let header = DataHeader {
        reader: EntityId::UNKNOWN,
        writer: EntityId::SPDP_WRITER,
        sequence_number: SequenceNumber::FIRST,
        inline_qos: &[],
        key_only: false,
    };
    assert!(message.data(&header, &Payload::from_vec(data.encode())));
    message.finish();
    out.datagram(&out.transmits()[0])
}

/// Of another stack, which nobody knows.
pub(super) const VENDOR: [u8; 2] = [0x7f, 0x7f];

/// A DATA, as the wire has it.
pub(super) struct Told {
    pub(super) writer: EntityId,
    pub(super) number: SequenceNumber,
    pub(super) payload: Vec<u8>,
    pub(super) has_inline_qos: bool,
}

/// Collects what a datagram holds.
#[derive(Default)]
pub(super) struct Dissection {
    pub(super) writers: Vec<EntityId>,
    pub(super) numbers: Vec<SequenceNumber>,
    pub(super) data: Vec<Told>,
    pub(super) heartbeats: Vec<Heartbeat>,
    pub(super) gaps: Vec<Gap>,
    pub(super) acknacks: usize,
    pub(super) is_farewell: bool,
}

impl receiver::Registry for Dissection {
    fn deliver(&mut self, _: Now, _: &MessageContext, submessage: &EndpointSubmessage<'_>, _: &mut Outbox) {
        match submessage {
            EndpointSubmessage::Data(data) => {
                self.data.push(Told {
                    writer: data.writer,
                    number: data.sequence_number,
                    payload: data.payload.to_vec(),
                    has_inline_qos: data.inline_qos.is_some(),
                });
                self.numbers.push(data.sequence_number);
                self.writers.push(data.writer);
                let inline_qos = data.inline_qos.and_then(|list| InlineQos::parse(&list).ok());
                let disposes = inline_qos.is_some_and(|it| it.status_info.disposed);
                self.is_farewell |= disposes && data.writer == EntityId::SPDP_WRITER;
            }
            EndpointSubmessage::Heartbeat(heartbeat) => {
                self.writers.push(heartbeat.writer);
                self.heartbeats.push(*heartbeat);
            }
            EndpointSubmessage::Gap(gap) => {
                self.writers.push(gap.writer);
                self.gaps.push(*gap);
            }
            EndpointSubmessage::AckNack(acknack) => {
                self.writers.push(acknack.writer);
                self.acknacks += 1;
            }
            _ => {}
        }
    }

    fn is_local(&self, _: GuidPrefix) -> bool {
        true
    }
}

pub(super) fn dissect(bytes: &[u8]) -> Dissection {
    let mut dissection = Dissection::default();
    let now = Now { mono: Instant(1), wall: Time(1) };
    receiver::datagram(
        now,
        group(),
        bytes,
        None,
        &mut dissection,
        &mut DropCounters::default(),
        &mut Outbox::new(),
    );
    dissection
}
