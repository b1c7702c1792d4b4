//! A product in memory: every writer of a topic reaches every reader of it, in order, at once.

use std::collections::{HashMap, VecDeque};
use std::io::BufReader;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use plainsong_perfkit::adapter::{EncodeCost, Reader, Sample, Session, Sink, Writer};
use plainsong_perfkit::spec::{EndpointSpec, ReadCall, ReadMethod, SessionSpec};
use plainsong_perfkit::worker::serve;
use plainsong_perfkit::{Adapter, Description, Failure};

use crate::driver::Worker;

#[derive(Clone, Default)]
pub(crate) struct Bus(Arc<Mutex<HashMap<String, Topic>>>);

#[derive(Default)]
struct Topic {
    writers: u32,
    readers: Vec<Arc<Queue>>,
}

/// Instances and payloads; and whether the reader is gone.
type Samples = (VecDeque<(u32, Vec<u8>)>, bool);

#[derive(Default)]
struct Queue {
    samples: Mutex<Samples>,
    arrived: Condvar,
}

impl Queue {
    fn wait(&self, timeout: Duration) -> bool {
        let samples = self.samples.lock().expect("no panics");
        let waited = self.arrived.wait_timeout_while(samples, timeout, |it| it.0.is_empty() && !it.1);
        !waited.expect("no panics").0.0.is_empty()
    }
}

impl Adapter for Bus {
    fn description(&self) -> Description {
        Description {
            product: "Memory".to_owned(),
            version: "1".to_owned(),
            features: vec!["listener".to_owned()],
        }
    }

    fn open(&mut self, spec: &SessionSpec) -> Result<Box<dyn Session>, Failure> {
        if spec.multicast == Some(true) {
            return Err(Failure::Unsupported("memory has no multicast".to_owned()));
        }
        Ok(Box::new(self.clone()))
    }

    fn encode_cost(&mut self, type_name: &str, rounds: u64) -> Result<EncodeCost, Failure> {
        if type_name != "numbers" {
            return Err(Failure::Unsupported(format!("no type {type_name}")));
        }
        let begin = std::time::Instant::now();
        for round in 0..rounds {
            std::hint::black_box(round.to_le_bytes());
        }
        let encode_ns = begin.elapsed().as_nanos() as f64 / rounds as f64;
        Ok(EncodeCost { encode_ns, decode_ns: encode_ns, encoded_octets: 8 })
    }
}

impl Session for Bus {
    fn writer(&mut self, endpoint: &EndpointSpec) -> Result<Box<dyn Writer>, Failure> {
        self.0.lock().expect("no panics").entry(endpoint.topic.clone()).or_default().writers += 1;
        Ok(Box::new(BusWriter { bus: self.clone(), topic: endpoint.topic.clone() }))
    }

    fn reader(&mut self, endpoint: &EndpointSpec, mut sink: Sink) -> Result<Box<dyn Reader>, Failure> {
        let queue = Arc::new(Queue::default());
        let mut topics = self.0.lock().expect("no panics");
        topics.entry(endpoint.topic.clone()).or_default().readers.push(Arc::clone(&queue));
        let mut listener = None;
        let mut kept = None;
        if endpoint.read == ReadMethod::Listener {
            let queue = Arc::clone(&queue);
            listener = Some(std::thread::spawn(move || {
                while !queue.samples.lock().expect("no panics").1 {
                    queue.wait(Duration::from_secs(1));
                    take(&queue, &mut sink);
                }
            }));
        } else {
            kept = Some(sink);
        }
        Ok(Box::new(BusReader {
            bus: self.clone(),
            topic: endpoint.topic.clone(),
            queue,
            sink: kept,
            listener,
        }))
    }
}

struct BusWriter {
    bus: Bus,
    topic: String,
}

impl Writer for BusWriter {
    fn write(&mut self, instance: u32, payload: &[u8]) -> Result<(), Failure> {
        let topics = self.bus.0.lock().expect("no panics");
        for reader in topics.get(&self.topic).into_iter().flat_map(|topic| &topic.readers) {
            reader.samples.lock().expect("no panics").0.push_back((instance, payload.to_vec()));
            reader.arrived.notify_one();
        }
        Ok(())
    }

    fn matched(&mut self) -> u32 {
        self.bus.0.lock().expect("no panics").get(&self.topic).map_or(0, |topic| topic.readers.len() as u32)
    }
}

struct BusReader {
    bus: Bus,
    topic: String,
    queue: Arc<Queue>,
    sink: Option<Sink>,
    listener: Option<JoinHandle<()>>,
}

fn take(queue: &Queue, sink: &mut Sink) -> u64 {
    let samples = std::mem::take(&mut queue.samples.lock().expect("no panics").0);
    for (instance, payload) in &samples {
        sink(Sample { instance: *instance, payload });
    }
    samples.len() as u64
}

impl Reader for BusReader {
    fn matched(&mut self) -> u32 {
        self.bus.0.lock().expect("no panics").get(&self.topic).map_or(0, |topic| topic.writers)
    }

    fn take(&mut self) -> Result<u64, Failure> {
        Ok(self.sink.as_mut().map_or(0, |sink| take(&self.queue, sink)))
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, Failure> {
        Ok(self.queue.wait(timeout))
    }

    fn call(&mut self, call: ReadCall, instance: u32) -> Result<u64, Failure> {
        let samples = &mut self.queue.samples.lock().expect("no panics").0;
        match call {
            ReadCall::ReadAll => Ok(samples.len() as u64),
            ReadCall::TakeOne => Ok(u64::from(samples.pop_front().is_some())),
            ReadCall::Lookup => Ok(samples.iter().filter(|(it, _)| *it == instance).count() as u64),
            ReadCall::ReadInstance | ReadCall::Query => Err(Failure::Unsupported("no such call".to_owned())),
        }
    }
}

impl Drop for BusReader {
    fn drop(&mut self) {
        self.queue.samples.lock().expect("no panics").1 = true;
        self.queue.arrived.notify_all();
        if let Some(listener) = self.listener.take() {
            listener.join().expect("the listener ends");
        }
    }
}

impl Bus {
    /// A worker on a thread of this process.
    pub(crate) fn worker(&self) -> Worker {
        let mut bus = self.clone();
        let (commands, input) = std::io::pipe().expect("a pipe");
        let (events, output) = std::io::pipe().expect("a pipe");
        std::thread::spawn(move || serve(&mut bus, BufReader::new(commands), output, || {}));
        Worker::new(input, events)
    }
}
