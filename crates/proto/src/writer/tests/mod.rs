//! Stories about one writer, in virtual time, told through the datagrams it sends.

mod batch;
mod coherent;
mod content;
mod destination_order;
mod durability;
mod fan;
mod fill;
mod fragments;
mod histories;
mod instances;
mod join;
mod long_keys;
mod matching;
mod memory;
mod multipliers;
mod paths;
mod reliability;
mod separation;
mod silence;
mod tuning;

use crate::filter::FilterFunction;
use std::sync::Arc;

use super::record::change::Verdict;
use super::*;
use crate::guid::{EntityId, GuidPrefix};
use crate::locator::Locator;
use crate::receiver::{self, Registry};
use crate::seq::{FragmentSet, SequenceSet};
use crate::sources::{Sender, Sources};
use crate::wire::param::InlineQos;
use crate::wire::{AckNack, EndpointSubmessage, Gap, Heartbeat, HeartbeatFrag, MessageContext, NackFrag};

const WRITER: Guid = GuidPrefix([1; 12]).entity(EntityId::user_writer(1, true));

/// What a writer sent, as its readers see it.
#[derive(Clone, Debug, PartialEq)]
enum Sent {
    Data(DataSent),
    Fragment(FragmentSent),
    Heartbeat(Heartbeat),
    HeartbeatFrag(HeartbeatFrag),
    Gap(Gap),
}

#[derive(Clone, Debug, PartialEq)]
struct DataSent {
    destination: GuidPrefix,
    reader: EntityId,
    number: i64,
    payload: Vec<u8>,
    key_only: bool,
    qos: InlineQos,
    timestamp: Option<Time>,
}

#[derive(Clone, Debug, PartialEq)]
struct FragmentSent {
    reader: EntityId,
    number: i64,
    fragment: u32,
    fragment_bytes: u16,
    sample_bytes: u32,
    payload: Vec<u8>,
    has_inline_qos: bool,
}

/// Keeps what it hears.
#[derive(Default)]
struct Ear(Vec<Sent>);

impl Registry for Ear {
    fn deliver(&mut self, _: Now, context: &MessageContext, heard: &EndpointSubmessage<'_>, _: &mut Outbox) {
        self.0.push(match *heard {
            EndpointSubmessage::Data(data) => Sent::Data(DataSent {
                destination: context.destination,
                reader: data.reader,
                number: data.sequence_number.0,
                payload: data.payload.to_vec(),
                key_only: data.key_only,
                qos: data.inline_qos.map_or_else(InlineQos::default, |list| InlineQos::parse(&list).unwrap()),
                timestamp: context.timestamp,
            }),
            EndpointSubmessage::DataFrag(data) => Sent::Fragment(FragmentSent {
                reader: data.reader,
                number: data.sequence_number.0,
                fragment: data.first_fragment,
                fragment_bytes: data.fragment_bytes,
                sample_bytes: data.sample_bytes,
                payload: data.payload.to_vec(),
                has_inline_qos: data.inline_qos.is_some(),
            }),
            EndpointSubmessage::Heartbeat(heartbeat) => Sent::Heartbeat(heartbeat),
            EndpointSubmessage::HeartbeatFrag(heartbeat) => Sent::HeartbeatFrag(heartbeat),
            EndpointSubmessage::Gap(gap) => Sent::Gap(gap),
            EndpointSubmessage::AckNack(_) | EndpointSubmessage::NackFrag(_) => {
                panic!("a writer never sends acknowledgements")
            }
        });
    }

    fn is_local(&self, _: GuidPrefix) -> bool {
        true
    }
}

/// A writer, its clock and its outbox.
struct Story {
    writer: Writer,
    now: Now,
    out: Outbox,
    acknack_count: i32,
}

impl Story {
    /// Every sample leaves at once: stories about batches are told in `batch.rs`.
    fn new(qos: QosSet) -> Self {
        Self::with_limits(qos, WriterLimits { batch_bytes: 0, ..WriterLimits::default() })
    }

    fn with_limits(qos: QosSet, limits: WriterLimits) -> Self {
        Self::of_group(qos, limits, None)
    }

    /// A writer of a publisher with GROUP access.
    fn of_group(qos: QosSet, limits: WriterLimits, group: Option<Arc<WriterGroup>>) -> Self {
        Self {
            writer: Writer::new(WriterConfig {
                guid: WRITER,
                keyed: true,
                qos,
                limits,
                content_filter: Some(FilterFunction::new(content::compile)),
                group,
            }),
            now: Now { mono: Instant(1_000_000_000), wall: Time(1_700_000_000_000_000_000) },
            out: Outbox::new(),
            acknack_count: 0,
        }
    }

    fn write(&mut self, instance: u8, payload: &[u8]) -> Result<SequenceNumber, WriteError> {
        self.change(ChangeKind::Alive, instance, payload)
    }

    fn change(
        &mut self,
        kind: ChangeKind,
        instance: u8,
        payload: &[u8],
    ) -> Result<SequenceNumber, WriteError> {
        let payload = Payload::from_vec(payload.to_vec());
        self.writer.write(self.now, kind, handle(instance), payload, self.now.wall, &mut self.out)
    }

    fn matched(&mut self, reader: &MatchedReader) {
        self.writer.match_reader(self.now, reader, &mut self.out);
    }

    /// Time passes; what falls due in it is done when it falls due.
    fn pass(&mut self, duration: Duration) {
        let end = self.now.mono.after(duration).unwrap();
        while let Some(due) = self.writer.next_timeout().filter(|due| *due <= end) {
            self.advance_to(due.max(self.now.mono));
            self.writer.timeout(self.now, &mut self.out);
        }
        self.advance_to(end);
    }

    fn advance_to(&mut self, mono: Instant) {
        self.now.wall = self.now.wall.plus(mono.since(self.now.mono));
        self.now.mono = mono;
    }

    /// The reader has everything below `base` and misses `missing`.
    fn acknack(&mut self, reader: &MatchedReader, base: i64, missing: &[i64]) -> Result<(), DropReason> {
        self.acknack_count += 1;
        self.acknack_with(reader, base, missing, self.acknack_count, true)
    }

    fn acknack_with(
        &mut self,
        reader: &MatchedReader,
        base: i64,
        missing: &[i64],
        count: i32,
        final_flag: bool,
    ) -> Result<(), DropReason> {
        let mut set = SequenceSet::empty(SequenceNumber(base));
        assert!(missing.iter().all(|number| set.insert(SequenceNumber(*number))));
        let acknack = AckNack {
            reader: reader.guid.entity,
            writer: WRITER.entity,
            missing: set,
            count,
            final_flag,
            heartbeat: None,
        };
        self.writer.on_acknack(self.now, Sender::unplaced(reader.guid), &acknack, &mut self.out)
    }

    fn nack_frag(&mut self, reader: &MatchedReader, number: i64, missing: &[u32]) -> Result<(), DropReason> {
        self.acknack_count += 1;
        let mut set = FragmentSet::empty(missing[0]);
        assert!(missing.iter().all(|fragment| set.insert(*fragment)));
        let nack = NackFrag {
            reader: reader.guid.entity,
            writer: WRITER.entity,
            sequence_number: SequenceNumber(number),
            missing: set,
            count: self.acknack_count,
        };
        self.writer.on_nack_frag(self.now, Sender::unplaced(reader.guid), &nack, &mut self.out)
    }

    /// What was sent since the last look.
    fn sent(&mut self) -> Vec<Sent> {
        self.sent_by_datagram().into_iter().flat_map(|(_, sent)| sent).collect()
    }

    /// Per datagram: where it went and what was in it.
    fn sent_by_datagram(&mut self) -> Vec<(Vec<Locator>, Vec<Sent>)> {
        let mut datagrams = Vec::new();
        for transmit in self.out.transmits() {
            let bytes = self.out.datagram(transmit);
            let attachment = self.out.parts(transmit).1;
            assert_eq!(bytes.len(), transmit.len());
            let mut ear = Ear::default();
            let mut drops = DropCounters::default();
            receiver::datagram(
                self.now,
                Locator::default(),
                &bytes,
                attachment,
                &mut ear,
                &mut drops,
                &mut Outbox::new(),
            );
            assert_eq!(drops, DropCounters::default(), "a writer sends nothing a receiver would drop");
            datagrams.push((self.out.destinations(transmit).to_vec(), ear.0));
        }
        self.out.clear_transmits();
        datagrams
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.out.events)
    }
}

fn handle(number: u8) -> InstanceHandle {
    InstanceHandle([number; 16])
}

/// A reader in a participant of its own, on this host.
fn reader(number: u8, qos: QosSet) -> MatchedReader {
    let guid = GuidPrefix([number; 12]).entity(EntityId::user_reader(number.into(), true));
    let locator = Locator::udp([127, 0, 0, 1].into(), 7_400 + u16::from(number));
    MatchedReader {
        guid,
        locators: vec![locator],
        sources: Sources::default(),
        urgent: None,
        expects_inline_qos: false,
        same_host: true,
        receive_bytes: 0,
        qos,
        content_filter: None,
        begins: false,
        skips_to_heartbeat: false,
        is_of_own_process: false,
    }
}

fn reliable(number: u8) -> MatchedReader {
    reader(number, QosSet::reader().reliable())
}

fn durable(number: u8) -> MatchedReader {
    reader(number, QosSet::reader().reliable().durability(Durability::TransientLocal))
}

/// Numbers of the whole samples among what was sent.
fn data(sent: &[Sent]) -> Vec<i64> {
    sent.iter()
        .filter_map(|sent| match sent {
            Sent::Data(data) => Some(data.number),
            _ => None,
        })
        .collect()
}

/// Numbers the GAPs among what was sent declare irrelevant, up to `last`.
fn gaps(sent: &[Sent], last: i64) -> Vec<i64> {
    let mut numbers: Vec<i64> = sent
        .iter()
        .filter_map(|sent| match sent {
            Sent::Gap(gap) => Some(gap),
            _ => None,
        })
        .flat_map(|gap| {
            let range = gap.start.0..gap.list.base().0.min(last + 1);
            range.chain(gap.list.iter().map(|number| number.0).collect::<Vec<_>>())
        })
        .collect();
    numbers.dedup();
    numbers
}

fn heartbeats(sent: &[Sent]) -> Vec<Heartbeat> {
    sent.iter()
        .filter_map(|sent| match sent {
            Sent::Heartbeat(heartbeat) => Some(*heartbeat),
            _ => None,
        })
        .collect()
}
