//! This product, used as an application would.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plainsong::Error;
use plainsong::config::{Peer, Use};
use plainsong::prelude::*;
use plainsong::time;
use plainsong_perfkit::adapter::{EncodeCost, Reader, Session, Sink, Writer};
use plainsong_perfkit::payload::SIZE_WITH_CHECKSUM;
use plainsong_perfkit::spec::{EndpointSpec, ReadCall, ReadMethod, SessionSpec};
use plainsong_perfkit::{Adapter, Description, Failure, Sample as Received};

use super::{encode, other_hosts};

/// The topic type without a key.
#[derive(DdsType)]
#[dds(name = "PerfBytes", final)]
struct PerfBytes<'a> {
    instance: u32,
    data: OctetSeq<'a>,
}

/// The topic type whose instance is a key.
#[derive(DdsType)]
#[dds(name = "PerfKeyed", final)]
struct PerfKeyed<'a> {
    #[dds(key)]
    instance: u32,
    data: OctetSeq<'a>,
}

/// Both of them.
trait Measured: DdsType + Send + Sync + 'static {
    fn parts(&self) -> (u32, &[u8]);
    fn with(instance: u32, data: OctetSeq<'_>) -> Self::Borrowed<'_>;
    /// Any sample of the instance.
    fn of(instance: u32) -> Self;
}

macro_rules! measured {
    ($name:ident) => {
        impl Measured for $name<'static> {
            fn parts(&self) -> (u32, &[u8]) {
                (self.instance, &self.data)
            }

            fn with(instance: u32, data: OctetSeq<'_>) -> $name<'_> {
                $name { instance, data }
            }

            fn of(instance: u32) -> Self {
                $name { instance, data: OctetSeq::new() }
            }
        }
    };
}

measured!(PerfBytes);
measured!(PerfKeyed);

/// Octets that a socket may hold where nobody set `net.core.rmem_default`, before the kernel doubles them for
/// its own use.
const USUAL_BUFFER_BYTES: usize = 212_992 / 2;

/// Plainsong.
pub(super) struct Product(pub(super) Setting);

/// What is different from how it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    Usual,
    /// Its receive threads never sleep.
    BusyPoll,
    /// Its receive threads have always slept before.
    Woken,
    /// It uses no shared memory.
    Udp,
    /// It makes samples in memory that its writers lend.
    Loan,
    /// All its topics have CONSISTENCY ATOMIC.
    Atomic,
    /// All its topics have CONSISTENCY ATOMIC, and it uses no shared memory.
    AtomicUdp,
    /// It uses no shared memory, and its sockets hold what those of every program do.
    SmallBuffers,
}

fn failed(error: Error) -> Failure {
    match error {
        Error::Timeout { .. } => Failure::Timeout,
        other => Failure::Failed(other.to_string()),
    }
}

impl Adapter for Product {
    fn description(&self) -> Description {
        let features = "listener waitset polling keyed reliable best_effort unicast ownership read_cost encode batching rtps";
        Description {
            product: match self.0 {
                Setting::Usual => "Plainsong",
                Setting::BusyPoll => "Plainsong, busy",
                Setting::Woken => "Plainsong, woken",
                Setting::Udp => "Plainsong, UDP",
                Setting::Loan => "Plainsong, loans",
                Setting::Atomic => "Plainsong, ATOMIC",
                Setting::AtomicUdp => "Plainsong, ATOMIC, UDP",
                Setting::SmallBuffers => "Plainsong, small buffers",
            }
            .to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            features: features.split(' ').map(str::to_owned).collect(),
        }
    }

    fn open(&mut self, spec: &SessionSpec) -> Result<Box<dyn Session>, Failure> {
        if spec.multicast == Some(true) {
            let reason = "Plainsong sends user data by unicast";
            return Err(Failure::Unsupported(reason.to_owned()));
        }
        Ok(Box::new(Joined { spec: spec.clone(), setting: self.0, participant: None }))
    }

    fn encode_cost(&mut self, type_name: &str, rounds: u64) -> Result<EncodeCost, Failure> {
        encode::cost(type_name, rounds)
    }
}

/// A participant. It is made with its first endpoint, since batching is a setting of the process.
struct Joined {
    spec: SessionSpec,
    setting: Setting,
    participant: Option<DomainParticipant>,
}

impl Joined {
    fn participant(&mut self, endpoint: &EndpointSpec) -> Result<DomainParticipant, Failure> {
        if let Some(participant) = &self.participant {
            return Ok(participant.clone());
        }
        let domain = u16::try_from(self.spec.domain)
            .map_err(|_| Failure::Failed(format!("domain {} does not exist", self.spec.domain)))?;
        let mut config = Config::from_env().map_err(|error| Failure::Failed(error.to_string()))?;
        if let Some(interface) = &self.spec.interface {
            config.interfaces = Some(vec![interface.clone()]);
        }
        config.peers.extend(other_hosts(&self.spec).into_iter().map(|host| Peer { host, port: None }));
        match self.setting {
            Setting::Usual | Setting::Loan | Setting::Atomic => {}
            Setting::Udp | Setting::AtomicUdp => config.shared_memory = Use::Off,
            Setting::BusyPoll => {
                config.busy_poll = true;
                // A thread for each family would never sleep: more than two cores have to give.
                config.ipv6 = Use::Off;
            }
            Setting::Woken => config.adaptive_poll = false,
            Setting::SmallBuffers => {
                config.shared_memory = Use::Off;
                config.receive_buffer_bytes = USUAL_BUFFER_BYTES;
                config.send_buffer_bytes = USUAL_BUFFER_BYTES;
            }
        }
        if !endpoint.batching {
            config.batch_bytes = 0;
        }
        let factory = DomainParticipantFactory::with_config(config);
        let participant = factory.create_participant(domain, "perf", QosSet::default()).map_err(failed)?;
        self.participant = Some(participant.clone());
        Ok(participant)
    }

    fn make_writer<T: Measured>(&mut self, endpoint: &EndpointSpec) -> Result<Box<dyn Writer>, Failure> {
        let participant = self.participant(endpoint)?;
        let base = self.setting.consistent(QosSet::writer());
        let make = || {
            let topic = participant.create_topic::<T>(&endpoint.topic, QosSet::default())?;
            participant.create_publisher(QosSet::default())?.create_writer(&topic, qos(endpoint, base))
        };
        let made = (self.setting == Setting::Loan).then(HashSet::new);
        Ok(Box::new(Writing { writer: make().map_err(failed)?, made }))
    }

    fn make_reader<T: Measured>(
        &mut self,
        endpoint: &EndpointSpec,
        sink: Sink,
    ) -> Result<Box<dyn Reader>, Failure> {
        let participant = self.participant(endpoint)?;
        let base = self.setting.consistent(QosSet::reader());
        let make = || {
            let topic = participant.create_topic::<T>(&endpoint.topic, QosSet::default())?;
            let subscriber = participant.create_subscriber(QosSet::default())?;
            let qos = qos(endpoint, base);
            let Some(below) = endpoint.filter_instances_below else {
                return subscriber.create_reader(&topic, qos);
            };
            let name = format!("{}_below_{below}", endpoint.topic);
            let parameters = vec![below.to_string()];
            let filtered =
                participant.create_content_filtered_topic(&name, &topic, "instance < %0", parameters)?;
            subscriber.create_reader(&filtered, qos)
        };
        let reader = make().map_err(failed)?;
        let taking = Arc::new(Taking(Mutex::new((sink, SampleBuffer::new()))));
        if endpoint.read == ReadMethod::Listener {
            let listener = Arc::clone(&taking) as Arc<dyn DataReaderListener>;
            reader.set_listener(Some(listener), StatusMask::NONE.with(StatusKind::DataAvailable));
        }
        let waiting = WaitSet::new();
        waiting.attach(reader.read_condition(&ReadOptions::new()));
        Ok(Box::new(Reading { reader, taking, waiting, triggered: Vec::new(), query: None }))
    }
}

impl Setting {
    const fn is_atomic(self) -> bool {
        matches!(self, Self::Atomic | Self::AtomicUdp)
    }

    fn consistent(self, base: QosSet) -> QosSet {
        if self.is_atomic() { base.consistency(ConsistencyKind::Atomic) } else { base }
    }
}

fn qos(endpoint: &EndpointSpec, base: QosSet) -> QosSet {
    let milliseconds =
        |count: u64| time::Duration::from_millis(i64::try_from(count).unwrap_or(i64::MAX / 2_000_000));
    let mut qos = if endpoint.reliable { base.reliable() } else { base.best_effort() };
    qos = match i32::try_from(endpoint.history_depth) {
        Ok(0) => qos.keep_all(),
        depth => qos.keep_last(depth.unwrap_or(i32::MAX)),
    };
    if endpoint.transient_local {
        qos = qos.durability(Durability::TransientLocal);
    }
    qos.reliability.max_blocking_time = milliseconds(endpoint.blocking_ms);
    if let Some(strength) = endpoint.ownership_strength {
        qos.ownership = Ownership::Exclusive;
        qos.ownership_strength = strength;
    }
    if endpoint.deadline_ms > 0 {
        qos.deadline = milliseconds(endpoint.deadline_ms);
    }
    if endpoint.liveliness_ms > 0 {
        qos.liveliness.lease_duration = milliseconds(endpoint.liveliness_ms);
    }
    qos.transport_priority = endpoint.priority;
    qos
}

impl Session for Joined {
    fn writer(&mut self, endpoint: &EndpointSpec) -> Result<Box<dyn Writer>, Failure> {
        if endpoint.keyed {
            self.make_writer::<PerfKeyed<'static>>(endpoint)
        } else {
            self.make_writer::<PerfBytes<'static>>(endpoint)
        }
    }

    fn reader(&mut self, endpoint: &EndpointSpec, sink: Sink) -> Result<Box<dyn Reader>, Failure> {
        if endpoint.keyed {
            self.make_reader::<PerfKeyed<'static>>(endpoint, sink)
        } else {
            self.make_reader::<PerfBytes<'static>>(endpoint, sink)
        }
    }
}

struct Writing<T> {
    writer: DataWriter<T>,
    /// The places where samples were made before and their octets, when they are made in place.
    made: Option<HashSet<(usize, usize)>>,
}

impl<T: Measured> Writer for Writing<T> {
    fn write(&mut self, instance: u32, payload: &[u8]) -> Result<(), Failure> {
        let octets = match &mut self.made {
            None => payload.into(),
            Some(made) => {
                let mut loan = self.writer.loan_octets(payload.len()).map_err(failed)?;
                // Samples have the same octets behind their heads. Who makes samples in place copies nothing;
                // here that is done once for each place.
                let is_new = !loan.is_shared() || made.insert((loan.as_ptr().addr(), payload.len()));
                let changed = if is_new { payload.len() } else { payload.len().min(SIZE_WITH_CHECKSUM) };
                loan[..changed].copy_from_slice(&payload[..changed]);
                loan.into()
            }
        };
        self.writer.write_borrowed(&T::with(instance, octets)).map_err(failed)
    }

    fn matched(&mut self) -> u32 {
        self.writer
            .matched_subscriptions()
            .map_or(0, |readers| u32::try_from(readers.len()).unwrap_or(u32::MAX))
    }

    fn flush(&mut self) {
        // What cannot be sent now is repaired like any loss.
        let _ = self.writer.flush();
    }

    fn wait_acknowledged(&mut self, timeout: Duration) -> bool {
        self.writer.wait_for_acknowledgments(timeout).is_ok()
    }
}

/// Takes everything into the sink; the buffer is there to be used again.
struct Taking<T>(Mutex<(Sink, SampleBuffer<T>)>);

impl<T: Measured> Taking<T> {
    fn take(&self, reader: &DataReader<T>) -> Result<u64, Failure> {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (sink, samples) = &mut *guard;
        reader.take_reusing(&ReadOptions::new(), samples).map_err(failed)?;
        let mut count = 0;
        for data in samples.iter().filter_map(|sample| sample.data.as_ref()) {
            let (instance, payload) = data.parts();
            sink(Received { instance, payload });
            count += 1;
        }
        samples.clear();
        Ok(count)
    }
}

impl<T: Measured> DataReaderListener for Taking<T> {
    fn on_data_available(&self, reader: &AnyDataReader) {
        if let Some(reader) = reader.downcast::<T>() {
            // A reader that is being deleted has nothing to take.
            let _ = self.take(&reader);
        }
    }
}

struct Reading<T: Measured> {
    reader: DataReader<T>,
    taking: Arc<Taking<T>>,
    waiting: WaitSet,
    triggered: Vec<Condition>,
    query: Option<QueryCondition<T>>,
}

impl<T: Measured> Reading<T> {
    /// The number of samples of one instance.
    fn query(&mut self, instance: u32) -> plainsong::Result<usize> {
        let parameters = vec![instance.to_string()];
        let query = match &self.query {
            Some(query) => {
                query.set_query_parameters(parameters)?;
                query
            }
            None => {
                let query = self.reader.query_condition(&ReadOptions::new(), "instance = %0", parameters)?;
                self.query.insert(query)
            }
        };
        Ok(self.reader.read_with(&ReadOptions::new().condition(query.condition()))?.len())
    }

    fn read_instance(&self, instance: u32) -> plainsong::Result<usize> {
        let Some(handle) = self.reader.lookup_instance(&T::of(instance))? else { return Ok(0) };
        Ok(self.reader.read_with(&ReadOptions::new().instance(handle).max_samples(1))?.len())
    }
}

impl<T: Measured> Reader for Reading<T> {
    fn matched(&mut self) -> u32 {
        self.reader
            .matched_publications()
            .map_or(0, |writers| u32::try_from(writers.len()).unwrap_or(u32::MAX))
    }

    fn take(&mut self) -> Result<u64, Failure> {
        self.taking.take(&self.reader)
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, Failure> {
        self.triggered.clear();
        match self.waiting.wait_into(timeout, &mut self.triggered) {
            Ok(()) => Ok(true),
            Err(Error::Timeout { .. }) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    fn call(&mut self, call: ReadCall, instance: u32) -> Result<u64, Failure> {
        let seen = match call {
            ReadCall::Lookup => {
                self.reader.lookup_instance(&T::of(instance)).map(|handle| usize::from(handle.is_some()))
            }
            ReadCall::ReadInstance => self.read_instance(instance),
            ReadCall::ReadAll => self.reader.read().map(|samples| samples.len()),
            ReadCall::Query => self.query(instance),
            ReadCall::TakeOne => {
                self.reader.take_with(&ReadOptions::new().max_samples(1)).map(|samples| samples.len())
            }
        };
        seen.map(|count| count as u64).map_err(failed)
    }
}

impl<T: Measured> Drop for Reading<T> {
    fn drop(&mut self) {
        self.reader.set_listener(None, StatusMask::NONE);
    }
}
