//! Participants for tests: loopback only, so that no test ever talks to a network.
#![allow(dead_code, clippy::unwrap_used, unreachable_pub, reason = "tests; each file uses its own part")]

use std::any::TypeId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use plainsong::cdr::{Endianness, KeyHash, Malformed, XcdrVersion};
use plainsong::config::Use;
use plainsong::prelude::*;
use plainsong::types::{Extensibility, FilterError, KeyError, TypeDescription, type_support_of};
use plainsong_proto::filter::PayloadFilter;

/// Long enough for a busy machine; a passing test never waits for it.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Settings that keep all traffic on the loopback interface, by memory unless `PLAINSONG_SHARED_MEMORY` says
/// otherwise: `cargo xtask test` runs these tests by UDP, too.
pub fn loopback() -> Config {
    let shared_memory = Config::from_env().unwrap().shared_memory;
    Config { interfaces: Some(vec!["lo".into()]), shared_memory, ..Config::default() }
}

/// The same, without shared memory: for tests of what UDP does.
pub fn udp() -> Config {
    Config { shared_memory: Use::Off, ..loopback() }
}

/// A domain that no other test of this process uses.
pub fn fresh_domain() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test binaries run one after the other; the process id spreads them anyway.
    let offset = (std::process::id() % 10) as u16 * 20;
    1 + offset + NEXT.fetch_add(1, Ordering::Relaxed) % 20
}

/// A participant on loopback.
pub fn participant(domain: u16) -> DomainParticipant {
    participant_with(domain, loopback())
}

pub fn participant_with(domain: u16, config: Config) -> DomainParticipant {
    DomainParticipantFactory::with_config(config)
        .create_participant(domain, "test", QosSet::default())
        .unwrap()
}

/// Waits, without polling time away, until `done` says so; panics with `what` when it never does.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A writer and a reader in two participants, matched.
pub struct Pair<T: DdsType> {
    pub writer: DataWriter<T>,
    pub reader: DataReader<T>,
    pub participants: [DomainParticipant; 2],
}

impl<T: DdsType> Pair<T> {
    pub fn new(writer_qos: QosSet, reader_qos: QosSet) -> Self {
        Self::with(&loopback(), writer_qos, reader_qos)
    }

    pub fn with(config: &Config, writer_qos: QosSet, reader_qos: QosSet) -> Self {
        let domain = fresh_domain();
        let participants = [(); 2].map(|()| participant_with(domain, config.clone()));
        let writer = writer(&participants[0], "Pair", writer_qos);
        let reader = reader(&participants[1], "Pair", reader_qos);
        until("the writer matches", || !writer.matched_subscriptions().unwrap().is_empty());
        until("the reader matches", || !reader.matched_publications().unwrap().is_empty());
        Self { writer, reader, participants }
    }
}

pub fn writer<T: DdsType>(participant: &DomainParticipant, topic: &str, qos: QosSet) -> DataWriter<T> {
    let topic = participant.create_topic(topic, QosSet::default()).unwrap();
    participant.create_publisher(QosSet::default()).unwrap().create_writer(&topic, qos).unwrap()
}

/// A type of which others are told its name alone: readers of another type of that name match its writers.
#[derive(Debug)]
struct Untold(Arc<dyn TypeSupport>);

impl TypeSupport for Untold {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn extensibility(&self) -> Extensibility {
        self.0.extensibility()
    }

    fn is_keyed(&self) -> bool {
        self.0.is_keyed()
    }

    fn sample_bytes_max(&self) -> Option<usize> {
        self.0.sample_bytes_max()
    }

    fn description(&self) -> Option<Arc<TypeDescription>> {
        None
    }

    fn rust_type(&self) -> Option<TypeId> {
        self.0.rust_type()
    }

    fn value_bytes(&self) -> usize {
        self.0.value_bytes()
    }

    fn check(&self, payload: &[u8]) -> Result<(), Malformed> {
        self.0.check(payload)
    }

    fn key_hash(
        &self,
        payload: &[u8],
        key_only: bool,
        long_key: &mut dyn FnMut(&[u8]),
    ) -> Result<KeyHash, Malformed> {
        self.0.key_hash(payload, key_only, long_key)
    }

    fn serialize_key(
        &self,
        payload: &[u8],
        key_only: bool,
        representation: (XcdrVersion, Endianness),
        buffer: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        self.0.serialize_key(payload, key_only, representation, buffer)
    }

    fn filter(&self, expression: &str, parameters: &[String]) -> Result<PayloadFilter, FilterError> {
        self.0.filter(expression, parameters)
    }

    fn query(&self, expression: &str, parameters: &[String]) -> Result<PayloadFilter, FilterError> {
        self.0.query(expression, parameters)
    }
}

/// A topic with a type of which others are told its name alone.
pub fn untold_topic<T: DdsType>(participant: &DomainParticipant, name: &str) -> Topic<T> {
    let ty = Arc::new(Untold(type_support_of::<T>()));
    participant.create_any_topic(name, ty, QosSet::default()).unwrap().downcast().unwrap()
}

pub fn untold_writer<T: DdsType>(participant: &DomainParticipant, topic: &str, qos: QosSet) -> DataWriter<T> {
    let topic = untold_topic(participant, topic);
    participant.create_publisher(QosSet::default()).unwrap().create_writer(&topic, qos).unwrap()
}

pub fn reader<T: DdsType>(participant: &DomainParticipant, topic: &str, qos: QosSet) -> DataReader<T> {
    let topic = participant.create_topic(topic, QosSet::default()).unwrap();
    participant.create_subscriber(QosSet::default()).unwrap().create_reader(&topic, qos).unwrap()
}

/// A keyed sample of bounded size.
#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(name = "Point", final)]
pub struct Point {
    #[dds(key)]
    pub id: u32,
    pub x: f64,
    pub y: f64,
}

/// A sample of any size, without key.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(name = "Blob", appendable)]
pub struct Blob {
    pub number: u32,
    pub octets: Vec<u8>,
}
