//! iceoryx2, as released on crates.io: shared memory of one host, an outsider among DDS products.
//!
//! The instance is a user header. A full queue blocks a reliable writer and drops samples of others; with a
//! history depth the oldest make room ("safe overflow"). Every write also notifies an event service of the
//! same name, on which readers wait; without listeners that costs one look at an empty list.

#![forbid(unsafe_code)]

use std::fmt::Debug;
use std::process::ExitCode;
use std::time::Duration;

use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::{BackpressureAction, BackpressureInfo, SendError};
use iceoryx2::prelude::{
    BackpressureStrategy, Config, LogLevel, Node, NodeBuilder, Path, PortFactory, SemanticString,
    ServiceName, SignalHandlingMode, ipc_threadsafe, set_log_level,
};
use iceoryx2::service::port_factory::event::PortFactory as EventFactory;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory as PublishSubscribeFactory;
use plainsong_perfkit::adapter::{Adapter, Description, Failure, Reader, Sample, Session, Sink, Writer};
use plainsong_perfkit::spec::{EndpointSpec, ReadMethod, SessionSpec};

type Ipc = ipc_threadsafe::Service;
/// Publishers, and subscribers, of one topic.
const PORTS_MAX: usize = 32;
/// Samples and octets that wait for one subscriber.
const QUEUE_SAMPLES_MAX: u64 = 1024;
const QUEUE_OCTETS_MAX: u64 = 4 << 20;
/// Shared memory of one publisher.
const POOL_OCTETS_MAX: u64 = 512 << 20;

struct Iceoryx2;

impl Adapter for Iceoryx2 {
    fn description(&self) -> Description {
        let features = "waitset polling reliable best_effort";
        Description {
            product: "iceoryx2".to_owned(),
            version: "0.10.0".to_owned(),
            features: features.split(' ').map(str::to_owned).collect(),
        }
    }

    fn open(&mut self, spec: &SessionSpec) -> Result<Box<dyn Session>, Failure> {
        if spec.multicast == Some(true) {
            return unsupported("iceoryx2 is shared memory: there is no multicast");
        }
        set_log_level(LogLevel::Error);
        let mut config = Config::default();
        if !spec.scratch.is_empty() {
            config.global.set_root_path(&Path::new(spec.scratch.as_bytes()).map_err(failed)?);
        }
        // Signals are left to the process.
        let node = NodeBuilder::new()
            .config(&config)
            .signal_handling_mode(SignalHandlingMode::Disabled)
            .create::<Ipc>()
            .map_err(failed)?;
        Ok(Box::new(Iceoryx2Session { node, domain: spec.domain }))
    }
}

fn failed(error: impl Debug) -> Failure {
    Failure::Failed(format!("{error:?}"))
}

fn unsupported<T>(reason: &str) -> Result<T, Failure> {
    Err(Failure::Unsupported(reason.to_owned()))
}

fn count(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

struct Iceoryx2Session {
    node: Node<Ipc>,
    domain: u32,
}

struct Services {
    data: PublishSubscribeFactory<Ipc, [u8], u32>,
    events: EventFactory<Ipc>,
}

impl Iceoryx2Session {
    fn services(&self, endpoint: &EndpointSpec) -> Result<Services, Failure> {
        check(endpoint)?;
        let name = ServiceName::new(&format!("perf/{}/{}", self.domain, endpoint.topic)).map_err(failed)?;
        let data = self
            .node
            .service_builder(&name)
            .publish_subscribe::<[u8]>()
            .user_header::<u32>()
            .history_size(0)
            .subscriber_max_buffer_size(queue(endpoint))
            .enable_safe_overflow(endpoint.history_depth != 0)
            .max_publishers(PORTS_MAX)
            .max_subscribers(PORTS_MAX)
            .max_nodes(2 * PORTS_MAX)
            .open_or_create()
            .map_err(failed)?;
        let events = self
            .node
            .service_builder(&name)
            .event()
            .max_notifiers(PORTS_MAX)
            .max_listeners(PORTS_MAX)
            .max_nodes(2 * PORTS_MAX)
            .open_or_create()
            .map_err(failed)?;
        Ok(Services { data, events })
    }
}

/// How many samples may wait for one subscriber: the depth of the history, or what KEEP_ALL gets.
fn queue(endpoint: &EndpointSpec) -> usize {
    match endpoint.history_depth {
        0 => count((QUEUE_OCTETS_MAX / endpoint.payload_max.max(1)).clamp(4, QUEUE_SAMPLES_MAX)),
        depth => count(u64::from(depth)),
    }
}

fn check(endpoint: &EndpointSpec) -> Result<(), Failure> {
    let missing = [
        (endpoint.keyed, "keys"),
        (endpoint.transient_local, "durability"),
        (endpoint.ownership_strength.is_some(), "ownership"),
        (endpoint.deadline_ms != 0, "deadlines of topics"),
        (endpoint.liveliness_ms != 0, "liveliness leases"),
        (endpoint.priority != 0, "priorities"),
        (endpoint.filter_instances_below.is_some(), "content filters"),
    ];
    match missing.iter().find(|(asked, _)| *asked) {
        Some((_, what)) => unsupported(&format!("iceoryx2 has no {what}")),
        None => Ok(()),
    }
}

impl Session for Iceoryx2Session {
    fn writer(&mut self, endpoint: &EndpointSpec) -> Result<Box<dyn Writer>, Failure> {
        let services = self.services(endpoint)?;
        let strategy = if endpoint.reliable {
            BackpressureStrategy::RetryUntilDelivered
        } else {
            BackpressureStrategy::DiscardData
        };
        let patience = Duration::from_millis(endpoint.blocking_ms);
        let reliable = endpoint.reliable;
        let pool = count((POOL_OCTETS_MAX / endpoint.payload_max.max(1)).max(4));
        let publisher = services
            .data
            .publisher_builder()
            .initial_max_slice_len(count(endpoint.payload_max.max(1)))
            .override_sample_preallocation(move |wanted| wanted.min(pool))
            .backpressure_strategy(strategy)
            .set_backpressure_handler(move |info: &BackpressureInfo| match reliable {
                false => BackpressureAction::DiscardData,
                true if info.elapsed_time < patience => BackpressureAction::Retry,
                true => BackpressureAction::DiscardDataAndFail,
            })
            .create()
            .map_err(failed)?;
        let notifier = services.events.notifier_builder().create().map_err(failed)?;
        Ok(Box::new(Iceoryx2Writer { publisher, notifier, service: services.data }))
    }

    fn reader(&mut self, endpoint: &EndpointSpec, sink: Sink) -> Result<Box<dyn Reader>, Failure> {
        if endpoint.read == ReadMethod::Listener {
            return unsupported("iceoryx2 calls nobody: choose waitset (its events) or polling");
        }
        let services = self.services(endpoint)?;
        let subscriber = services.data.subscriber_builder().create().map_err(failed)?;
        let listener = match endpoint.read {
            ReadMethod::Waitset => Some(services.events.listener_builder().create().map_err(failed)?),
            ReadMethod::Listener | ReadMethod::Polling { .. } => None,
        };
        Ok(Box::new(Iceoryx2Reader { subscriber, listener, service: services.data, sink }))
    }
}

struct Iceoryx2Writer {
    publisher: Publisher<Ipc, [u8], u32>,
    notifier: Notifier<Ipc>,
    service: PublishSubscribeFactory<Ipc, [u8], u32>,
}

impl Writer for Iceoryx2Writer {
    fn write(&mut self, instance: u32, payload: &[u8]) -> Result<(), Failure> {
        let mut sample = self.publisher.loan_slice_uninit(payload.len()).map_err(failed)?;
        *sample.user_header_mut() = instance;
        match sample.write_from_slice(payload).send() {
            Ok(_) => {}
            Err(SendError::UnableToDeliver) => return Err(Failure::Timeout),
            Err(error) => return Err(failed(error)),
        }
        self.notifier.notify().map_err(failed)?;
        Ok(())
    }

    fn matched(&mut self) -> u32 {
        u32::try_from(self.service.dynamic_config().number_of_subscribers()).unwrap_or(u32::MAX)
    }
}

struct Iceoryx2Reader {
    subscriber: Subscriber<Ipc, [u8], u32>,
    listener: Option<Listener<Ipc>>,
    service: PublishSubscribeFactory<Ipc, [u8], u32>,
    sink: Sink,
}

impl Reader for Iceoryx2Reader {
    fn matched(&mut self) -> u32 {
        u32::try_from(self.service.dynamic_config().number_of_publishers()).unwrap_or(u32::MAX)
    }

    fn take(&mut self) -> Result<u64, Failure> {
        let mut seen = 0;
        while let Some(sample) = self.subscriber.receive().map_err(failed)? {
            (self.sink)(Sample { instance: *sample.user_header(), payload: sample.payload() });
            seen += 1;
        }
        Ok(seen)
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, Failure> {
        let Some(listener) = &self.listener else {
            return unsupported("this reader was not opened to wait for it");
        };
        let notified = listener.timed_wait(|_| {}, timeout).map_err(failed)?;
        Ok(notified > 0)
    }
}

fn main() -> ExitCode {
    plainsong_perfkit::worker::main(&mut Iceoryx2)
}
