//! What a product must offer to take part.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::spec::{EndpointSpec, ReadCall, SessionSpec};

/// Why an adapter does not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The product, or its adapter, has no such thing. The cell is shown as "not offered", with these words.
    Unsupported(String),
    /// The product refused or failed.
    Failed(String),
    /// A reliable writer could not hand the sample over within its blocking time.
    Timeout,
}

/// What an adapter says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The product's name as users know it: `Cyclone DDS`.
    pub product: String,
    /// The product's version, as the product itself tells it if it can.
    pub version: String,
    /// What it offers: `listener`, `waitset`, `polling`, `keyed`, `reliable`, `best_effort`, `multicast`,
    /// `unicast`, `ownership`, `read_cost`, `encode`, `batching`, `rtps` (it can be paired with others that
    /// have `rtps`).
    pub features: Vec<String>,
}

/// One received sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// The instance, 0 for a product without instances.
    pub instance: u32,
    /// The octets that the writer was given.
    pub payload: &'a [u8],
}

/// Takes every sample of a reader, on the thread that reads it.
pub type Sink = Box<dyn FnMut(Sample<'_>) + Send>;

/// A product.
pub trait Adapter {
    /// What it is and what it can do.
    fn description(&self) -> Description;

    /// Joins a domain: a participant, a session, a socket.
    ///
    /// # Errors
    /// What the product cannot do, or why it failed.
    fn open(&mut self, spec: &SessionSpec) -> Result<Box<dyn Session>, Failure>;

    /// Encodes and decodes one of the types of [`crate::spec::Role::Encode`] `rounds` times.
    ///
    /// # Errors
    /// [`Failure::Unsupported`] unless the adapter can.
    fn encode_cost(&mut self, type_name: &str, rounds: u64) -> Result<EncodeCost, Failure> {
        let _ = (type_name, rounds);
        Err(Failure::Unsupported("the adapter does not measure serialization".to_owned()))
    }
}

/// The time that serialization takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EncodeCost {
    /// Nanoseconds to encode one sample.
    pub encode_ns: f64,
    /// Nanoseconds to decode one sample.
    pub decode_ns: f64,
    /// Octets of one encoded sample.
    pub encoded_octets: u64,
}

/// A participant of a product.
pub trait Session {
    /// Makes a writer.
    ///
    /// # Errors
    /// What the product cannot do, or why it failed.
    fn writer(&mut self, endpoint: &EndpointSpec) -> Result<Box<dyn Writer>, Failure>;

    /// Makes a reader. With [`crate::spec::ReadMethod::Listener`] the product's own threads call `sink`, from
    /// now on; otherwise the worker calls [`Reader::wait`] and [`Reader::take`], and `sink` is called within
    /// `take`.
    ///
    /// # Errors
    /// What the product cannot do, or why it failed.
    fn reader(&mut self, endpoint: &EndpointSpec, sink: Sink) -> Result<Box<dyn Reader>, Failure>;
}

/// A writer of a product.
pub trait Writer: Send {
    /// Writes one sample; a reliable writer may block for its blocking time.
    ///
    /// # Errors
    /// [`Failure::Timeout`], or why the product refused.
    fn write(&mut self, instance: u32, payload: &[u8]) -> Result<(), Failure>;

    /// The number of readers that are matched now.
    fn matched(&mut self) -> u32;

    /// Sends what waits in a batch.
    fn flush(&mut self) {}

    /// Waits until all readers have acknowledged everything; true if they have.
    fn wait_acknowledged(&mut self, timeout: Duration) -> bool {
        let _ = timeout;
        true
    }
}

/// A reader of a product.
pub trait Reader: Send {
    /// The number of writers that are matched now.
    fn matched(&mut self) -> u32;

    /// Gives all samples that are there to the sink, and their number.
    ///
    /// # Errors
    /// Why the product failed.
    fn take(&mut self) -> Result<u64, Failure>;

    /// Blocks until there may be samples, or the time is over; false when it is over.
    ///
    /// # Errors
    /// Why the product failed.
    fn wait(&mut self, timeout: Duration) -> Result<bool, Failure>;

    /// Makes one call of the kind, about the instance where it needs one, and gives the number of samples
    /// seen.
    ///
    /// # Errors
    /// [`Failure::Unsupported`] unless the adapter can.
    fn call(&mut self, call: ReadCall, instance: u32) -> Result<u64, Failure> {
        let _ = (call, instance);
        Err(Failure::Unsupported("the adapter does not measure calls of a reader".to_owned()))
    }
}
