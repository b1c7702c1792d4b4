//! A live participant with user endpoints, for fuzzing: two of them talk in virtual time, and what they say
//! becomes the corpus that is mutated and fed back.

#![allow(unreachable_pub, missing_docs, clippy::unwrap_used, reason = "test support")]

use plainsong_proto::discovery::{Command, LocalEndpoint, LocalLocators, Participant, ParticipantConfig};
use plainsong_proto::filter::{ContentFilter, FilterFunction, PayloadFilter};
use plainsong_proto::guid::{EntityId, GuidPrefix};
use plainsong_proto::instance::{InstanceHandle, Key, KeyFunction};
use plainsong_proto::locator::Locator;
use plainsong_proto::malformed::Malformed;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::Payload;
use plainsong_proto::qos::{Durability, QosSet};
use plainsong_proto::reader::{CachedSamples, Reader, ReaderConfig, ReaderLimits};
use plainsong_proto::receiver::{self, Registry};
use plainsong_proto::sample_info::Selector;
use plainsong_proto::stats::DropCounters;
use plainsong_proto::time::{Instant, Now, Time};
use plainsong_proto::wire::{EndpointSubmessage, MessageContext};
use plainsong_proto::writer::{ChangeKind, Writer, WriterConfig, WriterLimits};

const TOPICS: [&str; 2] = ["Reliable", "BestEffort"];
const MILLISECOND: u64 = 1_000_000;

/// One participant with a writer and a reader of a reliable and of a best-effort topic.
pub struct Live {
    prefix: GuidPrefix,
    locator: Locator,
    participant: Participant,
    writers: Vec<Writer>,
    readers: Vec<Reader>,
    counters: DropCounters,
    now: Now,
    samples: CachedSamples,
}

/// What one input made the participant do.
pub struct Effect {
    /// Octets it sent, counted once for each destination.
    pub octets_sent: usize,
    /// Samples the application got.
    pub samples: usize,
}

/// The filter of one of the readers.
fn filter(expression: &str) -> ContentFilter {
    ContentFilter {
        topic_name: "Filtered".to_owned(),
        related_topic_name: TOPICS[1].to_owned(),
        class_name: ContentFilter::SQL.to_owned(),
        expression: expression.to_owned(),
        parameters: Vec::new(),
    }
}

/// Lets samples of an even length pass, whatever the expression.
fn even(_: &ContentFilter) -> Option<PayloadFilter> {
    Some(PayloadFilter::new(|payload| payload.len().is_multiple_of(2)))
}

impl Live {
    /// Number 0 or 1 of a pair; the other's locator is announced to.
    pub fn new(number: u8) -> Self {
        let prefix = GuidPrefix([0x01, 0xf5, number, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let at = |number: u8| Locator::udp([127, 0, 0, 1].into(), 7410 + 2 * u16::from(number));
        let now = Now { mono: Instant(MILLISECOND), wall: Time(1_700_000_000_000_000_000) };
        let mut config = ParticipantConfig::new(prefix, 0);
        config.locators = LocalLocators {
            meta_unicast: vec![at(number)],
            user_unicast: vec![at(number)],
            own_addresses: vec![[127, 0, 0, 1].into()],
            announce_to: vec![at(1 - number)],
            scan: Vec::new(),
            ..LocalLocators::default()
        };
        let qos = [
            QosSet::writer().keep_last(20).durability(Durability::TransientLocal),
            QosSet::writer().best_effort().keep_last(1),
        ];
        let id = |key: u32| (EntityId::user_writer(key, true), EntityId::user_reader(key, true));
        // Small limits: reaching them is what a hostile peer tries.
        let limits = ReaderLimits {
            sample_bytes_max: 256 << 10,
            reassembly_bytes_max: 1 << 20,
            ..ReaderLimits::default()
        };
        let writers = (1..).zip(qos.clone()).map(|(key, qos)| {
            Writer::new(WriterConfig {
                guid: prefix.entity(id(key).0),
                keyed: true,
                qos,
                limits: WriterLimits::default(),
                content_filter: Some(FilterFunction::new(even)),
                group: None,
            })
        });
        let readers = (1..).zip(qos.clone()).map(|(key, qos)| {
            let guid = prefix.entity(id(key).1);
            Reader::new(ReaderConfig {
                guid,
                keyed: true,
                qos,
                limits: limits.clone(),
                key: KeyFunction::new(instance_of),
            })
        });
        let mut live = Self {
            prefix,
            locator: at(number),
            participant: Participant::new(config),
            writers: writers.collect(),
            readers: readers.collect(),
            counters: DropCounters::default(),
            now,
            samples: CachedSamples::new(),
        };
        let mut out = Outbox::new();
        for (index, qos) in qos.into_iter().enumerate() {
            for guid in [live.writers[index].guid(), live.readers[index].guid()] {
                let (topic, type_name) = (TOPICS[index].to_owned(), "Octets".to_owned());
                let endpoint = LocalEndpoint {
                    guid,
                    topic,
                    type_name,
                    keyed: true,
                    qos: qos.clone(),
                    group: EntityId::UNKNOWN,
                    content_filter: (guid.entity.is_reader() && index == 1).then(|| filter("even")),
                    type_description: None,
                };
                live.participant.add_endpoint(now, endpoint, &mut out).unwrap();
            }
        }
        live
    }

    /// Announces the participant; gives the datagrams.
    pub fn start(&mut self) -> Vec<Vec<u8>> {
        let mut out = Outbox::new();
        self.participant.start(self.now, &mut out);
        self.settle(&mut out)
    }

    /// A sample of each topic, of `octets` octets, of one of a few instances; now and then a disposal.
    pub fn write(&mut self, step: u8, octets: usize) -> Vec<Vec<u8>> {
        let mut out = Outbox::new();
        for writer in &mut self.writers {
            let key = step % 5;
            let mut payload = vec![0, 1, 0, 0, key];
            let kind = if step % 7 == 6 { ChangeKind::Dispose } else { ChangeKind::Alive };
            if kind == ChangeKind::Alive {
                payload.resize(5 + octets, step);
            }
            let payload = Payload::from_vec(payload);
            writer.write(self.now, kind, instance(key), payload, self.now.wall, &mut out).ok();
        }
        self.settle(&mut out)
    }

    /// Lets time pass and does what is due.
    pub fn pass(&mut self, nanos: u64) -> Vec<Vec<u8>> {
        self.now.mono.0 += nanos;
        self.now.wall.0 += nanos as i64;
        let mut out = Outbox::new();
        self.participant.timeout(self.now, &mut out);
        self.writers.iter_mut().for_each(|writer| writer.timeout(self.now, &mut out));
        self.readers.iter_mut().for_each(|reader| reader.timeout(self.now, &mut out));
        self.settle(&mut out)
    }

    /// Takes one datagram from the other participant's address; gives the answers.
    pub fn receive(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut out = Outbox::new();
        let from = Locator { port: 7410 + 7412 - self.locator.port, ..self.locator };
        let mut counters = std::mem::take(&mut self.counters);
        receiver::datagram(self.now, from, bytes, None, self, &mut counters, &mut out);
        self.counters = counters;
        self.settle(&mut out)
    }

    /// One fuzz input: a datagram, a little time, and an application that takes what came.
    pub fn endure(&mut self, bytes: &[u8]) -> Effect {
        let answers = self.receive(bytes);
        let later = self.pass(MILLISECOND);
        let octets_sent = answers.iter().chain(&later).map(Vec::len).sum();
        for reader in &mut self.readers {
            reader.take(self.now, &Selector::default(), &mut self.samples);
        }
        let samples = self.samples.len();
        self.samples.clear();
        Effect { octets_sent, samples }
    }

    /// What was dropped on the way in.
    pub fn counters(&self) -> &DropCounters {
        &self.counters
    }

    /// Readers of the other participant that its reliable writer is matched with.
    pub fn matched_readers(&self) -> usize {
        self.writers[0].matched_readers().count()
    }

    /// Carries out commands and gives the datagrams.
    fn settle(&mut self, out: &mut Outbox) -> Vec<Vec<u8>> {
        // A command may send and, through the other side of a local match, never causes another command.
        for command in std::mem::take(&mut out.commands) {
            self.carry_out(command, out);
        }
        let datagrams = out
            .transmits()
            .iter()
            .flat_map(|transmit| {
                let copies = out.destinations(transmit).len();
                std::iter::repeat_n(out.datagram(transmit), copies)
            })
            .collect();
        out.clear();
        datagrams
    }

    fn carry_out(&mut self, command: Command, out: &mut Outbox) {
        let now = self.now;
        match command {
            Command::MatchReader { writer, reader } => {
                self.writer(writer, |it| it.match_reader(now, &reader, out));
            }
            Command::UnmatchReader { writer, reader } => {
                self.writer(writer, |it| it.unmatch_reader(now, reader, out));
            }
            Command::IncompatibleReader { writer, policies } => {
                self.writer(writer, |it| it.incompatible_reader(&policies, out));
            }
            // Its groups are heard by nobody.
            // It is of no node, and knows of none.
            Command::Link { .. } => {}
            Command::MatchWriter { reader, writer } => {
                self.reader(reader, |it| it.match_writer(now, &writer, out));
            }
            Command::UnmatchWriter { reader, writer } => {
                self.reader(reader, |it| it.unmatch_writer(now, writer, out));
            }
            Command::IncompatibleWriter { reader, policies } => {
                self.reader(reader, |it| it.incompatible_writer(&policies, out));
            }
            Command::GroupWriters { reader, publisher, writers } => {
                self.reader(reader, |it| it.set_group_writers(publisher, writers, out));
            }
            Command::WriterAsserted { writer } => {
                self.writer(writer, |it| it.participant_asserted(now));
            }
            Command::WriterAlive { reader, writer } => {
                self.reader(reader, |it| it.writer_liveliness(now, writer, out));
            }
        }
    }

    fn writer(&mut self, id: EntityId, act: impl FnOnce(&mut Writer)) {
        if let Some(writer) = self.writers.iter_mut().find(|writer| writer.guid().entity == id) {
            act(writer);
        }
    }

    fn reader(&mut self, id: EntityId, act: impl FnOnce(&mut Reader)) {
        if let Some(reader) = self.readers.iter_mut().find(|reader| reader.guid().entity == id) {
            act(reader);
        }
    }
}

impl Registry for Live {
    fn deliver(
        &mut self,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    ) {
        let sender = |entity: EntityId| context.sender(entity);
        self.participant.on_submessage(now, context, submessage, out).ok();
        for writer in &mut self.writers {
            match submessage {
                EndpointSubmessage::AckNack(it) if it.writer == writer.guid().entity => {
                    writer.on_acknack(now, sender(it.reader), it, out).ok();
                }
                EndpointSubmessage::NackFrag(it) if it.writer == writer.guid().entity => {
                    writer.on_nack_frag(now, sender(it.reader), it, out).ok();
                }
                _ => {}
            }
        }
        for reader in &mut self.readers {
            reader.on_submessage(now, context, submessage, out).ok();
        }
    }

    fn is_local(&self, prefix: GuidPrefix) -> bool {
        prefix == self.prefix
    }
}

/// Two participants that have discovered each other and exchanged samples, and all that the second said.
pub fn converse() -> (Live, Vec<Vec<u8>>) {
    let (mut one, mut other) = (Live::new(0), Live::new(1));
    let mut corpus = Vec::new();
    let (mut to_other, mut to_one) = (one.start(), other.start());
    for step in 0..60u8 {
        corpus.extend(to_one.iter().cloned());
        let answers: Vec<_> = to_one.drain(..).flat_map(|bytes| one.receive(&bytes)).collect();
        to_one.extend(to_other.drain(..).flat_map(|bytes| other.receive(&bytes)));
        to_other.extend(answers);
        if step > 20 {
            let octets = if step % 10 == 0 { 150_000 } else { usize::from(step) };
            to_other.extend(one.write(step, octets));
            to_one.extend(other.write(step, octets));
        }
        to_other.extend(one.pass(7 * MILLISECOND));
        to_one.extend(other.pass(7 * MILLISECOND));
    }
    assert!(one.matched_readers() > 0, "the two never matched: the corpus would be about nothing");
    (one, corpus)
}

/// The instance of the test's payload: its first octet after the encapsulation.
fn instance_of(payload: &[u8], _: bool) -> Result<Key, Malformed> {
    payload.get(4).map(|key| instance(*key).into()).ok_or(Malformed::Truncated)
}

fn instance(key: u8) -> InstanceHandle {
    let mut handle = InstanceHandle::NIL;
    handle.0[0] = 1;
    handle.0[15] = key;
    handle
}
