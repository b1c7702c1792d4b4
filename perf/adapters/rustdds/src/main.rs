//! RustDDS of Atostek, as released on crates.io.

#![forbid(unsafe_code)]

mod reader;

use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Duration;

use plainsong_perfkit::adapter::{Adapter, Description, Failure, Reader, Session, Sink, Writer};
use plainsong_perfkit::spec::{EndpointSpec, ReadMethod, SessionSpec};
use rustdds::dds::result::WriteError;
use rustdds::policy::{Durability, History, Liveliness, Reliability};
use rustdds::{
    DataWriterStatus, DomainParticipant, DomainParticipantBuilder, Keyed, Publisher, QosPolicies,
    QosPolicyBuilder, StatusEvented, Subscriber, Topic, TopicKind, no_key, with_key,
};
use serde::{Deserialize, Serialize};

/// `PerfBytes` and `PerfKeyed`.
#[derive(Serialize, Deserialize)]
struct Perf {
    instance: u32,
    #[serde(with = "serde_bytes")]
    data: Vec<u8>,
}

impl Keyed for Perf {
    type K = u32;

    fn key(&self) -> u32 {
        self.instance
    }
}

struct RustDds;

impl Adapter for RustDds {
    fn description(&self) -> Description {
        let features = "rtps waitset polling keyed reliable best_effort transient_local read_cost";
        Description {
            product: "RustDDS".to_owned(),
            version: "0.15.1".to_owned(),
            features: features.split(' ').map(str::to_owned).collect(),
        }
    }

    fn open(&mut self, spec: &SessionSpec) -> Result<Box<dyn Session>, Failure> {
        if spec.multicast.is_some() {
            return unsupported("RustDDS does not let one choose between multicast and unicast");
        }
        let domain = u16::try_from(spec.domain).map_err(|_| Failure::Failed("no such domain".to_owned()))?;
        let mut builder = DomainParticipantBuilder::new(domain);
        if let Some(name) = &spec.interface {
            builder = builder.with_only_networks(addresses_of(name)?);
        }
        let participant = builder.build().map_err(failed)?;
        let qos = QosPolicyBuilder::new().build();
        Ok(Box::new(RustDdsSession {
            publisher: participant.create_publisher(&qos).map_err(failed)?,
            subscriber: participant.create_subscriber(&qos).map_err(failed)?,
            participant,
        }))
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Failed(error.to_string())
}

fn unsupported<T>(reason: &str) -> Result<T, Failure> {
    Err(Failure::Unsupported(reason.to_owned()))
}

/// The addresses of an interface that is given by name or address.
fn addresses_of(name: &str) -> Result<Vec<IpAddr>, Failure> {
    if let Ok(address) = name.parse() {
        return Ok(vec![address]);
    }
    let all = if_addrs::get_if_addrs().map_err(failed)?;
    let found: Vec<IpAddr> = all.iter().filter(|one| one.name == name).map(if_addrs::Interface::ip).collect();
    if found.is_empty() { Err(Failure::Failed(format!("no address on interface {name}"))) } else { Ok(found) }
}

struct RustDdsSession {
    participant: DomainParticipant,
    publisher: Publisher,
    subscriber: Subscriber,
}

impl Session for RustDdsSession {
    fn writer(&mut self, endpoint: &EndpointSpec) -> Result<Box<dyn Writer>, Failure> {
        let qos = qos(endpoint)?;
        let topic = self.topic(endpoint, &qos)?;
        let entity = if endpoint.keyed {
            WriterEntity::Keyed(
                self.publisher.create_datawriter_cdr::<Perf>(&topic, Some(qos)).map_err(failed)?,
            )
        } else {
            WriterEntity::Plain(
                self.publisher.create_datawriter_no_key_cdr::<Perf>(&topic, Some(qos)).map_err(failed)?,
            )
        };
        Ok(Box::new(RustDdsWriter { entity, matched: 0 }))
    }

    fn reader(&mut self, endpoint: &EndpointSpec, sink: Sink) -> Result<Box<dyn Reader>, Failure> {
        if endpoint.read == ReadMethod::Listener {
            return unsupported(
                "RustDDS has no listeners: choose waitset (its readers in a mio poll) or polling",
            );
        }
        if endpoint.filter_instances_below.is_some() {
            return unsupported("RustDDS has no content filters");
        }
        let qos = qos(endpoint)?;
        let topic = self.topic(endpoint, &qos)?;
        reader::open(&self.subscriber, &topic, qos, endpoint, sink)
    }
}

impl RustDdsSession {
    fn topic(&self, endpoint: &EndpointSpec, qos: &QosPolicies) -> Result<Topic, Failure> {
        let (type_name, kind) =
            if endpoint.keyed { ("PerfKeyed", TopicKind::WithKey) } else { ("PerfBytes", TopicKind::NoKey) };
        self.participant.create_topic(endpoint.topic.clone(), type_name.to_owned(), qos, kind).map_err(failed)
    }
}

/// RustDDS announces OWNERSHIP and DEADLINE, but by its own table of features does nothing about them.
fn qos(endpoint: &EndpointSpec) -> Result<QosPolicies, Failure> {
    if endpoint.ownership_strength.is_some() {
        return unsupported("RustDDS does not select samples by ownership strength");
    }
    if endpoint.deadline_ms != 0 {
        return unsupported("RustDDS does not watch deadlines");
    }
    if endpoint.priority != 0 {
        return unsupported("RustDDS does not implement TRANSPORT_PRIORITY");
    }
    let reliability = if endpoint.reliable {
        Reliability::Reliable { max_blocking_time: milliseconds(endpoint.blocking_ms) }
    } else {
        Reliability::BestEffort
    };
    let history = match i32::try_from(endpoint.history_depth) {
        Ok(0) => History::KeepAll,
        Ok(depth) => History::KeepLast { depth },
        Err(_) => return unsupported("a history so deep"),
    };
    let mut builder = QosPolicyBuilder::new()
        .reliability(reliability)
        .history(history)
        .durability(if endpoint.transient_local { Durability::TransientLocal } else { Durability::Volatile });
    if endpoint.liveliness_ms != 0 {
        builder = builder
            .liveliness(Liveliness::Automatic { lease_duration: milliseconds(endpoint.liveliness_ms) });
    }
    Ok(builder.build())
}

fn milliseconds(count: u64) -> rustdds::Duration {
    rustdds::Duration::from(Duration::from_millis(count))
}

enum WriterEntity {
    Keyed(with_key::DataWriterCdr<Perf>),
    Plain(no_key::DataWriterCdr<Perf>),
}

struct RustDdsWriter {
    entity: WriterEntity,
    matched: i32,
}

impl Writer for RustDdsWriter {
    fn write(&mut self, instance: u32, payload: &[u8]) -> Result<(), Failure> {
        let sample = Perf { instance, data: payload.to_vec() };
        let written = match &self.entity {
            WriterEntity::Keyed(writer) => writer.write(sample, None),
            WriterEntity::Plain(writer) => writer.write(sample, None),
        };
        written.map_err(|error| match error {
            WriteError::WouldBlock { .. } => Failure::Timeout,
            other => failed(other),
        })
    }

    fn matched(&mut self) -> u32 {
        let next = |entity: &WriterEntity| match entity {
            WriterEntity::Keyed(writer) => writer.try_recv_status(),
            WriterEntity::Plain(writer) => writer.try_recv_status(),
        };
        while let Some(status) = next(&self.entity) {
            if let DataWriterStatus::PublicationMatched { current, .. } = status {
                self.matched = current.count();
            }
        }
        u32::try_from(self.matched).unwrap_or(0)
    }

    fn wait_acknowledged(&mut self, timeout: Duration) -> bool {
        let result = match &self.entity {
            WriterEntity::Keyed(writer) => writer.wait_for_acknowledgments(timeout),
            WriterEntity::Plain(writer) => writer.wait_for_acknowledgments(timeout),
        };
        matches!(result, Ok(true))
    }
}

fn main() -> ExitCode {
    plainsong_perfkit::worker::main(&mut RustDds)
}
