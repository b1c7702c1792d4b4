//! Floors of shared memory: a ring for each writer and reader, one copy in, none out. Within a host.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use plainsong_perfkit::adapter::{Reader, Session, Sink, Writer};
use plainsong_perfkit::clock::{ms, now_ns, to_ns};
use plainsong_perfkit::floor::ring::{Bell, Consumer, Producer};
use plainsong_perfkit::spec::{EndpointSpec, SessionSpec};
use plainsong_perfkit::{Adapter, Description, Failure, Sample};

use super::other_hosts;
use super::registry::{Entry, Place, Side};

/// Octets of a ring, unless samples need more.
const CAPACITY: usize = 4 << 20;

/// Shared memory.
pub(super) struct Floor {
    /// A reader looks all the time, instead of sleeping until it is woken.
    pub(super) spinning: bool,
}

impl Adapter for Floor {
    fn description(&self) -> Description {
        let product = if self.spinning { "Shared memory, busy" } else { "Shared memory, futex" };
        Description {
            product: product.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            features: ["waitset", "polling", "reliable", "best_effort", "unicast"]
                .map(str::to_owned)
                .to_vec(),
        }
    }

    fn open(&mut self, spec: &SessionSpec) -> Result<Box<dyn Session>, Failure> {
        if spec.multicast == Some(true) || !other_hosts(spec).is_empty() {
            return Err(Failure::Unsupported("shared memory reaches no other host and no group".to_owned()));
        }
        Ok(Box::new(Joined { spinning: self.spinning, spec: spec.clone() }))
    }
}

struct Joined {
    spinning: bool,
    spec: SessionSpec,
}

fn failed(what: &str) -> impl Fn(std::io::Error) -> Failure {
    move |error| Failure::Failed(format!("{what}: {error}"))
}

impl Session for Joined {
    fn writer(&mut self, endpoint: &EndpointSpec) -> Result<Box<dyn Writer>, Failure> {
        let place = Place::new(&self.spec.scratch, self.spec.domain, &endpoint.topic)?;
        let entry = place.register(Side::Writer, "")?;
        let payload_max = usize::try_from(endpoint.payload_max)
            .map_err(|_| Failure::Unsupported("samples that do not fit into memory".to_owned()))?;
        let blocking_ns = if endpoint.reliable { ms(endpoint.blocking_ms) } else { 0 };
        Ok(Box::new(Writing {
            place,
            entry,
            payload_max,
            blocking_ns,
            spinning: self.spinning,
            readers: BTreeMap::new(),
        }))
    }

    fn reader(&mut self, endpoint: &EndpointSpec, sink: Sink) -> Result<Box<dyn Reader>, Failure> {
        let place = Place::new(&self.spec.scratch, self.spec.domain, &endpoint.topic)?;
        let bell_path = place.own_path();
        let bell = Bell::create(&bell_path).map_err(failed("sharing memory"))?;
        let entry = place.register(Side::Reader, &bell_path.to_string_lossy())?;
        let rings = BTreeMap::new();
        Ok(Box::new(Reading { place, _entry: entry, bell, bell_path, spinning: self.spinning, rings, sink }))
    }
}

/// The file of the ring from one to the other.
fn ring_path(bell: &str, writer: u32) -> PathBuf {
    PathBuf::from(format!("{bell}-{writer:08x}"))
}

struct Writing {
    place: Place,
    entry: Entry,
    payload_max: usize,
    /// How long a full ring is waited for; what does not fit then is dropped, or refused if reliable.
    blocking_ns: u64,
    spinning: bool,
    readers: BTreeMap<u32, Target>,
}

struct Target {
    ring: Producer,
    bell: Bell,
    path: PathBuf,
}

impl Writing {
    fn look(&mut self) -> Result<(), Failure> {
        for (id, bell) in self.place.find(Side::Reader) {
            if self.readers.contains_key(&id) {
                continue;
            }
            let path = ring_path(&bell, self.entry.id);
            let bell = Bell::open(bell.as_ref()).map_err(failed("sharing memory"))?;
            let ring =
                Producer::create(&path, CAPACITY, self.payload_max).map_err(failed("sharing memory"))?;
            self.readers.insert(id, Target { ring, bell, path });
        }
        Ok(())
    }
}

impl Writer for Writing {
    fn write(&mut self, instance: u32, payload: &[u8]) -> Result<(), Failure> {
        if payload.len() > self.payload_max {
            return Err(Failure::Failed(format!("{} octets are more than payload_max", payload.len())));
        }
        for target in self.readers.values_mut() {
            if !target.ring.push(instance, payload) {
                let until_ns = now_ns().saturating_add(self.blocking_ns);
                while !target.ring.push(instance, payload) {
                    if now_ns() >= until_ns {
                        return if self.blocking_ns > 0 { Err(Failure::Timeout) } else { Ok(()) };
                    }
                    std::thread::yield_now();
                }
            }
            if !self.spinning {
                target.bell.ring();
            }
        }
        Ok(())
    }

    fn matched(&mut self) -> u32 {
        // A reader that cannot be reached is not matched, and looked at again.
        let _ = self.look();
        u32::try_from(self.readers.len()).unwrap_or(u32::MAX)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        for target in self.readers.values() {
            // A directory that is already gone has no such file either.
            let _ = std::fs::remove_file(&target.path);
        }
    }
}

struct Reading {
    place: Place,
    _entry: Entry,
    bell: Bell,
    bell_path: PathBuf,
    spinning: bool,
    rings: BTreeMap<u32, Consumer>,
    sink: Sink,
}

impl Reading {
    fn has_samples(&self) -> bool {
        self.rings.values().any(|ring| !ring.is_empty())
    }
}

impl Reader for Reading {
    fn matched(&mut self) -> u32 {
        for writer in self.place.find(Side::Writer).into_keys() {
            let path = ring_path(&self.bell_path.to_string_lossy(), writer);
            // The writer may not have made it yet.
            if !self.rings.contains_key(&writer)
                && let Ok(ring) = Consumer::open(&path)
            {
                self.rings.insert(writer, ring);
            }
        }
        u32::try_from(self.rings.len()).unwrap_or(u32::MAX)
    }

    fn take(&mut self) -> Result<u64, Failure> {
        let mut count = 0;
        for ring in self.rings.values_mut() {
            while ring.pop(&mut |instance, payload| (self.sink)(Sample { instance, payload })) {
                count += 1;
            }
        }
        Ok(count)
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, Failure> {
        if self.spinning {
            let until_ns = now_ns().saturating_add(to_ns(timeout));
            while !self.has_samples() && now_ns() < until_ns {
                std::hint::spin_loop();
            }
        } else if !self.has_samples() {
            self.bell.wait(timeout, || self.has_samples());
        }
        Ok(self.has_samples())
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        // A directory that is already gone has no such file either.
        let _ = std::fs::remove_file(&self.bell_path);
    }
}
