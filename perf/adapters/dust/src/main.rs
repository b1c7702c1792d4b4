//! Dust DDS of S2E Software Systems, as released on crates.io.

#![forbid(unsafe_code)]

mod reader;

use std::marker::PhantomData;
use std::process::ExitCode;
use std::time::Duration;

use dust_dds::dds_async::domain_participant::DomainParticipantAsync;
use dust_dds::dds_async::subscriber::SubscriberAsync;
use dust_dds::domain::domain_participant::DomainParticipant;
use dust_dds::domain::domain_participant_factory::DomainParticipantFactory;
use dust_dds::infrastructure::error::DdsError;
use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::{DataReaderQos, DataWriterQos, QosKind};
use dust_dds::infrastructure::qos_policy::{
    DataRepresentationQosPolicy, DeadlineQosPolicy, DurabilityQosPolicy, DurabilityQosPolicyKind,
    HistoryQosPolicy, HistoryQosPolicyKind, LivelinessQosPolicy, LivelinessQosPolicyKind, OwnershipQosPolicy,
    OwnershipQosPolicyKind, ReliabilityQosPolicy, ReliabilityQosPolicyKind, XCDR_DATA_REPRESENTATION,
};
use dust_dds::infrastructure::status::NO_STATUS;
use dust_dds::infrastructure::time::{Duration as DustDuration, DurationKind};
use dust_dds::infrastructure::type_support::DdsType;
use dust_dds::publication::data_writer::DataWriter;
use dust_dds::publication::publisher::Publisher;
use dust_dds::std_runtime::executor::block_on;
use dust_dds::topic_definition::topic::Topic;
use dust_dds::xtypes::type_support::TypeSupport;
use plainsong_perfkit::adapter::{Adapter, Description, Failure, Reader, Session, Sink, Writer};
use plainsong_perfkit::spec::{EndpointSpec, Profile, SessionSpec};

#[derive(DdsType, Debug)]
struct PerfBytes {
    instance: u32,
    data: Vec<u8>,
}

#[derive(DdsType, Debug)]
struct PerfKeyed {
    #[dust_dds(key)]
    instance: u32,
    data: Vec<u8>,
}

/// What the two types have in common.
trait Perf: TypeSupport + Send + Sync + Sized + 'static {
    const NAME: &'static str;
    fn new(instance: u32, data: Vec<u8>) -> Self;
    fn parts(&self) -> (u32, &[u8]);
}

impl Perf for PerfBytes {
    const NAME: &'static str = "PerfBytes";

    fn new(instance: u32, data: Vec<u8>) -> Self {
        Self { instance, data }
    }

    fn parts(&self) -> (u32, &[u8]) {
        (self.instance, &self.data)
    }
}

impl Perf for PerfKeyed {
    const NAME: &'static str = "PerfKeyed";

    fn new(instance: u32, data: Vec<u8>) -> Self {
        Self { instance, data }
    }

    fn parts(&self) -> (u32, &[u8]) {
        (self.instance, &self.data)
    }
}

struct Dust;

impl Adapter for Dust {
    fn description(&self) -> Description {
        let features = "rtps waitset polling keyed reliable best_effort ownership transient_local read_cost";
        Description {
            product: "Dust DDS".to_owned(),
            version: "0.16.0".to_owned(),
            features: features.split(' ').map(str::to_owned).collect(),
        }
    }

    fn open(&mut self, spec: &SessionSpec) -> Result<Box<dyn Session>, Failure> {
        if spec.multicast.is_some() {
            return unsupported("Dust DDS does not let one choose between multicast and unicast");
        }
        let domain = i32::try_from(spec.domain).map_err(|_| Failure::Failed("no such domain".to_owned()))?;
        let factory = DomainParticipantFactory::get_instance();
        {
            let mut transport = factory.get_mut_transport();
            transport.set_interface_name(spec.interface.as_deref().map(name_of).transpose()?);
            if spec.profile == Profile::Tuned {
                transport.set_fragment_size(65_000).map_err(failed)?;
                transport.set_udp_receive_buffer_size(Some(4 << 20));
            }
        }
        let participant =
            factory.create_participant(domain, QosKind::Default, NO_LISTENER, NO_STATUS).map_err(failed)?;
        let publisher =
            participant.create_publisher(QosKind::Default, NO_LISTENER, NO_STATUS).map_err(failed)?;
        let asynchronous = DomainParticipantAsync::from(participant.clone());
        let subscriber = block_on(asynchronous.create_subscriber(QosKind::Default, NO_LISTENER, NO_STATUS));
        Ok(Box::new(DustSession { participant, publisher, subscriber: subscriber.map_err(failed)? }))
    }
}

fn failed(error: DdsError) -> Failure {
    match error {
        DdsError::Timeout => Failure::Timeout,
        DdsError::Error(text) | DdsError::PreconditionNotMet(text) => Failure::Failed(text),
        other => Failure::Failed(format!("{other:?}")),
    }
}

fn unsupported<T>(reason: &str) -> Result<T, Failure> {
    Err(Failure::Unsupported(reason.to_owned()))
}

/// The name of an interface that is given by name or address: Dust DDS takes names only.
fn name_of(interface: &str) -> Result<String, Failure> {
    let all = if_addrs::get_if_addrs().map_err(|error| Failure::Failed(error.to_string()))?;
    let is_it = |one: &&if_addrs::Interface| one.name == interface || one.ip().to_string() == interface;
    all.iter()
        .find(is_it)
        .map(|one| one.name.clone())
        .ok_or_else(|| Failure::Failed(format!("no interface {interface}")))
}

struct DustSession {
    participant: DomainParticipant,
    publisher: Publisher,
    /// Asynchronous for the sake of wait sets, see [`reader::within`].
    subscriber: SubscriberAsync,
}

impl Session for DustSession {
    fn writer(&mut self, endpoint: &EndpointSpec) -> Result<Box<dyn Writer>, Failure> {
        if endpoint.keyed {
            self.typed_writer::<PerfKeyed>(endpoint)
        } else {
            self.typed_writer::<PerfBytes>(endpoint)
        }
    }

    fn reader(&mut self, endpoint: &EndpointSpec, sink: Sink) -> Result<Box<dyn Reader>, Failure> {
        if endpoint.filter_instances_below.is_some() {
            return unsupported("Dust DDS does not filter numbers by `<`");
        }
        if endpoint.keyed {
            reader::open::<PerfKeyed>(&self.subscriber, self.topic::<PerfKeyed>(endpoint)?, endpoint, sink)
        } else {
            reader::open::<PerfBytes>(&self.subscriber, self.topic::<PerfBytes>(endpoint)?, endpoint, sink)
        }
    }
}

impl DustSession {
    fn topic<T: Perf>(&self, endpoint: &EndpointSpec) -> Result<Topic, Failure> {
        self.participant
            .create_topic::<T>(&endpoint.topic, T::NAME, QosKind::Default, NO_LISTENER, NO_STATUS)
            .map_err(failed)
    }

    fn typed_writer<T: Perf>(&self, endpoint: &EndpointSpec) -> Result<Box<dyn Writer>, Failure> {
        if endpoint.priority != 0 {
            return unsupported("Dust DDS does nothing with TRANSPORT_PRIORITY");
        }
        let common = Common::new(endpoint)?;
        let mut qos = DataWriterQos {
            durability: common.durability,
            deadline: common.deadline,
            liveliness: common.liveliness,
            reliability: common.reliability,
            history: common.history,
            ownership: common.ownership,
            representation: common.representation,
            ..DataWriterQos::default()
        };
        qos.ownership_strength.value = endpoint.ownership_strength.unwrap_or(0);
        qos.writer_data_lifecycle.autodispose_unregistered_instances = false;
        let topic = self.topic::<T>(endpoint)?;
        let writer =
            self.publisher.create_datawriter::<T>(&topic, QosKind::Specific(qos), NO_LISTENER, NO_STATUS);
        Ok(Box::new(DustWriter { writer: writer.map_err(failed)?, of: PhantomData }))
    }
}

/// The policies that writers and readers share.
struct Common {
    durability: DurabilityQosPolicy,
    deadline: DeadlineQosPolicy,
    liveliness: LivelinessQosPolicy,
    reliability: ReliabilityQosPolicy,
    history: HistoryQosPolicy,
    ownership: OwnershipQosPolicy,
    representation: DataRepresentationQosPolicy,
}

impl Common {
    fn new(endpoint: &EndpointSpec) -> Result<Self, Failure> {
        let reliability = if endpoint.reliable {
            ReliabilityQosPolicyKind::Reliable
        } else {
            ReliabilityQosPolicyKind::BestEffort
        };
        let durability = if endpoint.transient_local {
            DurabilityQosPolicyKind::TransientLocal
        } else {
            DurabilityQosPolicyKind::Volatile
        };
        let history = match endpoint.history_depth {
            0 => HistoryQosPolicyKind::KeepAll,
            depth => HistoryQosPolicyKind::KeepLast(depth),
        };
        let ownership = match endpoint.ownership_strength {
            Some(_) => OwnershipQosPolicyKind::Exclusive,
            None => OwnershipQosPolicyKind::Shared,
        };
        Ok(Self {
            durability: DurabilityQosPolicy { kind: durability },
            deadline: DeadlineQosPolicy { period: period(endpoint.deadline_ms)? },
            liveliness: LivelinessQosPolicy {
                kind: LivelinessQosPolicyKind::Automatic,
                lease_duration: period(endpoint.liveliness_ms)?,
            },
            reliability: ReliabilityQosPolicy {
                kind: reliability,
                max_blocking_time: DurationKind::Finite(duration(Duration::from_millis(
                    endpoint.blocking_ms,
                ))?),
            },
            history: HistoryQosPolicy { kind: history },
            ownership: OwnershipQosPolicy { kind: ownership },
            representation: DataRepresentationQosPolicy { value: vec![XCDR_DATA_REPRESENTATION] },
        })
    }

    fn reader_qos(endpoint: &EndpointSpec) -> Result<DataReaderQos, Failure> {
        let common = Self::new(endpoint)?;
        Ok(DataReaderQos {
            durability: common.durability,
            deadline: common.deadline,
            liveliness: common.liveliness,
            reliability: common.reliability,
            history: common.history,
            ownership: common.ownership,
            representation: common.representation,
            ..DataReaderQos::default()
        })
    }
}

/// A period in milliseconds of which 0 is none.
fn period(milliseconds: u64) -> Result<DurationKind, Failure> {
    if milliseconds == 0 {
        return Ok(DurationKind::Infinite);
    }
    Ok(DurationKind::Finite(duration(Duration::from_millis(milliseconds))?))
}

fn duration(from: Duration) -> Result<DustDuration, Failure> {
    let seconds =
        i32::try_from(from.as_secs()).map_err(|_| Failure::Unsupported("a time so long".to_owned()))?;
    Ok(DustDuration::new(seconds, from.subsec_nanos()))
}

struct DustWriter<T> {
    writer: DataWriter<T>,
    of: PhantomData<T>,
}

impl<T: Perf> Writer for DustWriter<T> {
    fn write(&mut self, instance: u32, payload: &[u8]) -> Result<(), Failure> {
        self.writer.write(T::new(instance, payload.to_vec()), None).map_err(failed)
    }

    fn matched(&mut self) -> u32 {
        let status = self.writer.get_publication_matched_status();
        status.map_or(0, |status| u32::try_from(status.current_count).unwrap_or(0))
    }

    fn wait_acknowledged(&mut self, timeout: Duration) -> bool {
        duration(timeout).is_ok_and(|timeout| self.writer.wait_for_acknowledgments(timeout).is_ok())
    }
}

fn main() -> ExitCode {
    plainsong_perfkit::worker::main(&mut Dust)
}
