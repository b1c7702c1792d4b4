//! Eclipse zenoh, as released on crates.io: peers over TCP that find one another by multicast, an outsider
//! among DDS products.
//!
//! The instance goes in front of the payload. A reliable writer blocks while links are congested, others
//! drop. zenoh keeps no history and has no acknowledgements. It does not count who is matched either: every
//! endpoint declares a liveliness token, and the other side counts those of the topic. A token is declared
//! after its endpoint, so that who knows the token knows the endpoint.

#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plainsong_perfkit::adapter::{Adapter, Description, Failure, Reader, Sample, Session, Sink, Writer};
use plainsong_perfkit::spec::{EndpointSpec, ReadMethod, SessionSpec};
use zenoh::handlers::{FifoChannel, FifoChannelHandler};
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::CongestionControl;
use zenoh::sample::{Sample as ZenohSample, SampleKind};
use zenoh::{Config, Wait};

/// Samples that wait for a reader that takes them itself.
const QUEUE_MAX: usize = 1024;
const INSTANCE_OCTETS: usize = 4;

struct Zenoh;

impl Adapter for Zenoh {
    fn description(&self) -> Description {
        let features = "listener waitset polling reliable best_effort unicast batching";
        Description {
            product: "zenoh".to_owned(),
            version: "1.10.2".to_owned(),
            features: features.split(' ').map(str::to_owned).collect(),
        }
    }

    fn open(&mut self, spec: &SessionSpec) -> Result<Box<dyn Session>, Failure> {
        if spec.multicast == Some(true) {
            return unsupported("this adapter uses TCP: there is no multicast of user data");
        }
        let session = zenoh::open(config(spec)?).wait().map_err(failed)?;
        Ok(Box::new(ZenohSession { session, domain: spec.domain, endpoints: 0 }))
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Failed(error.to_string())
}

fn unsupported<T>(reason: &str) -> Result<T, Failure> {
    Err(Failure::Unsupported(reason.to_owned()))
}

/// As zenoh comes; except that it is told the interface, if asked for or if there is loopback alone, which
/// zenoh does not choose by itself.
fn config(spec: &SessionSpec) -> Result<Config, Failure> {
    let mut config = Config::default();
    if let Some((name, address)) = interface(spec.interface.as_deref())? {
        config.insert_json5("scouting/multicast/interface", &format!("\"{name}\"")).map_err(failed)?;
        config.insert_json5("listen/endpoints", &format!("[\"tcp/{address}:0\"]")).map_err(failed)?;
    }
    Ok(config)
}

fn interface(wanted: Option<&str>) -> Result<Option<(String, IpAddr)>, Failure> {
    let all = if_addrs::get_if_addrs().map_err(failed)?;
    let chosen = match wanted {
        Some(wanted) => {
            let is_it = |one: &&if_addrs::Interface| one.name == wanted || one.ip().to_string() == wanted;
            let found = all.iter().filter(|one| one.ip().is_ipv4()).find(is_it);
            Some(found.ok_or_else(|| Failure::Failed(format!("no IPv4 address on interface {wanted}")))?)
        }
        None if all.iter().all(if_addrs::Interface::is_loopback) => all.iter().find(|one| one.ip().is_ipv4()),
        None => None,
    };
    Ok(chosen.map(|one| (one.name.clone(), one.ip())))
}

struct ZenohSession {
    session: zenoh::Session,
    domain: u32,
    endpoints: u32,
}

/// Those of the other kind, counted by their tokens.
struct Matching {
    _token: LivelinessToken,
    _watcher: Subscriber<()>,
    others: Arc<Mutex<HashSet<String>>>,
}

impl Matching {
    fn count(&self) -> u32 {
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        u32::try_from(others.len()).unwrap_or(u32::MAX)
    }
}

impl ZenohSession {
    fn key(&self, endpoint: &EndpointSpec) -> String {
        format!("perf/{}/data/{}", self.domain, endpoint.topic)
    }

    fn matching(&mut self, endpoint: &EndpointSpec, own: &str, other: &str) -> Result<Matching, Failure> {
        let others = Arc::new(Mutex::new(HashSet::new()));
        let known = Arc::clone(&others);
        let base = format!("perf/{}/{{}}/{}", self.domain, endpoint.topic);
        self.endpoints += 1;
        let token = format!("{}/{}/{}", base.replace("{}", own), self.session.zid(), self.endpoints);
        let watcher = self
            .session
            .liveliness()
            .declare_subscriber(format!("{}/*/*", base.replace("{}", other)))
            .history(true)
            .callback(move |sample| {
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                let name = sample.key_expr().as_str().to_owned();
                match sample.kind() {
                    SampleKind::Put => known.insert(name),
                    SampleKind::Delete => known.remove(&name),
                };
            })
            .wait()
            .map_err(failed)?;
        let token = self.session.liveliness().declare_token(token).wait().map_err(failed)?;
        Ok(Matching { _token: token, _watcher: watcher, others })
    }
}

fn check(endpoint: &EndpointSpec) -> Result<(), Failure> {
    let missing = [
        (endpoint.keyed, "instances of a topic"),
        (endpoint.transient_local, "durability (but in extensions)"),
        (endpoint.ownership_strength.is_some(), "ownership"),
        (endpoint.deadline_ms != 0, "deadlines"),
        (endpoint.liveliness_ms != 0, "liveliness leases of publishers"),
        (endpoint.priority != 0, "TRANSPORT_PRIORITY (its own priorities are classes)"),
        (endpoint.filter_instances_below.is_some(), "content filters"),
    ];
    match missing.iter().find(|(asked, _)| *asked) {
        Some((_, what)) => unsupported(&format!("zenoh has no {what}")),
        None => Ok(()),
    }
}

impl Session for ZenohSession {
    fn writer(&mut self, endpoint: &EndpointSpec) -> Result<Box<dyn Writer>, Failure> {
        check(endpoint)?;
        let congestion = if endpoint.reliable { CongestionControl::Block } else { CongestionControl::Drop };
        let publisher = self
            .session
            .declare_publisher(self.key(endpoint))
            .congestion_control(congestion)
            .express(!endpoint.batching)
            .wait()
            .map_err(failed)?;
        let matching = self.matching(endpoint, "writers", "readers")?;
        Ok(Box::new(ZenohWriter { publisher, matching }))
    }

    fn reader(&mut self, endpoint: &EndpointSpec, mut sink: Sink) -> Result<Box<dyn Reader>, Failure> {
        check(endpoint)?;
        let declared = self.session.declare_subscriber(self.key(endpoint));
        let input = if endpoint.read == ReadMethod::Listener {
            // zenoh calls from one thread of each link.
            let sink = Mutex::new(move |sample: ZenohSample| hand_over(&sample, &mut sink));
            let deliver = move |sample| (*sink.lock().unwrap_or_else(PoisonError::into_inner))(sample);
            Input::Called { _subscriber: declared.callback(deliver).wait().map_err(failed)? }
        } else {
            let subscriber = declared.with(FifoChannel::new(QUEUE_MAX)).wait().map_err(failed)?;
            Input::Queued { subscriber, sink, next: None }
        };
        let matching = self.matching(endpoint, "readers", "writers")?;
        Ok(Box::new(ZenohReader { input, matching }))
    }
}

fn hand_over(sample: &ZenohSample, sink: &mut Sink) {
    let octets = sample.payload().to_bytes();
    if let Some((instance, payload)) = octets.split_first_chunk::<INSTANCE_OCTETS>() {
        sink(Sample { instance: u32::from_le_bytes(*instance), payload });
    }
}

struct ZenohWriter {
    publisher: Publisher<'static>,
    matching: Matching,
}

impl Writer for ZenohWriter {
    fn write(&mut self, instance: u32, payload: &[u8]) -> Result<(), Failure> {
        let mut octets = Vec::with_capacity(INSTANCE_OCTETS + payload.len());
        octets.extend_from_slice(&instance.to_le_bytes());
        octets.extend_from_slice(payload);
        self.publisher.put(octets).wait().map_err(failed)
    }

    fn matched(&mut self) -> u32 {
        self.matching.count()
    }
}

enum Input {
    Called { _subscriber: Subscriber<()> },
    Queued { subscriber: Subscriber<FifoChannelHandler<ZenohSample>>, sink: Sink, next: Option<ZenohSample> },
}

struct ZenohReader {
    input: Input,
    matching: Matching,
}

impl Reader for ZenohReader {
    fn matched(&mut self) -> u32 {
        self.matching.count()
    }

    fn take(&mut self) -> Result<u64, Failure> {
        let Input::Queued { subscriber, sink, next } = &mut self.input else { return Ok(0) };
        let mut seen = 0;
        let mut waiting = next.take();
        loop {
            let sample = match waiting.take() {
                Some(sample) => Some(sample),
                None => subscriber.try_recv().map_err(failed)?,
            };
            let Some(sample) = sample else { return Ok(seen) };
            hand_over(&sample, sink);
            seen += 1;
        }
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, Failure> {
        let Input::Queued { subscriber, next, .. } = &mut self.input else {
            return unsupported("this reader was not opened to wait for it");
        };
        if next.is_none() {
            *next = subscriber.recv_timeout(timeout).map_err(failed)?;
        }
        Ok(next.is_some())
    }
}

fn main() -> ExitCode {
    plainsong_perfkit::worker::main(&mut Zenoh)
}
