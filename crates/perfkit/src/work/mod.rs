//! The workloads, one a module.

mod background;
mod control;
mod discover;
mod encode;
mod output;
mod ping;
mod pong;
mod publish;
mod read_cost;
mod reading;
mod subscribe;
mod ticker;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::adapter::{Adapter, Failure};
use crate::clock::ms;
use crate::event::Report;
use crate::spec::{EndpointSpec, ReadMethod, Role, WorkerSpec};

pub(crate) use control::Control;
pub(crate) use output::Output;

/// What a worker was configured for.
pub(crate) trait Work {
    /// Whether everyone expected is there.
    ///
    /// # Errors
    /// Who is missing, in words.
    fn matched(&mut self) -> Result<(), String>;

    /// Does it, from that time on.
    ///
    /// # Errors
    /// Why it could not be done.
    fn run(&mut self, adapter: &mut dyn Adapter, start_ns: u64) -> Result<Report, Failure>;
}

/// What all workloads need.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) spec: Arc<WorkerSpec>,
    pub(crate) control: Arc<Control>,
    pub(crate) output: Arc<Output>,
}

/// The times of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// The warm-up begins.
    pub(crate) start_ns: u64,
    /// Measuring begins.
    pub(crate) measure_ns: u64,
    /// It ends.
    pub(crate) end_ns: u64,
}

impl Context {
    pub(crate) fn window(&self, start_ns: u64) -> Window {
        let measure_ns = start_ns.saturating_add(ms(self.spec.warmup_ms));
        Window { start_ns, measure_ns, end_ns: measure_ns.saturating_add(ms(self.spec.duration_ms)) }
    }
}

/// Makes the entities of a role.
///
/// # Errors
/// What the adapter cannot do, or what of the specification makes no sense.
pub(crate) fn prepare(
    adapter: &mut dyn Adapter,
    spec: &WorkerSpec,
    control: &Arc<Control>,
    output: &Arc<Output>,
) -> Result<Box<dyn Work>, Failure> {
    let mut spec = spec.clone();
    if !adapter.description().features.iter().any(|feature| feature == "listener") {
        read_without_listener(&mut spec.role);
        if let Some(background) = &mut spec.background {
            waiting(&mut background.endpoint);
        }
    }
    let context =
        Context { spec: Arc::new(spec.clone()), control: Arc::clone(control), output: Arc::clone(output) };
    Ok(match &spec.role {
        Role::Ping { .. } => Box::new(ping::Ping::new(adapter, context)?),
        Role::Pong { .. } => Box::new(pong::Pong::new(adapter, context)?),
        Role::Publish { .. } => Box::new(publish::Publish::new(adapter, context)?),
        Role::Subscribe { .. } => Box::new(subscribe::Subscribe::new(adapter, context)?),
        Role::Discover { .. } => Box::new(discover::Discover::new(context)),
        Role::ReadCost { .. } => Box::new(read_cost::ReadCost::new(adapter, context)?),
        Role::Encode { .. } => Box::new(encode::Encode::new(context)),
    })
}

/// Reads in the worker's own thread what the product has no listeners for.
fn read_without_listener(role: &mut Role) {
    if let Role::Ping { reader, .. } | Role::Pong { reader, .. } | Role::Subscribe { reader, .. } = role {
        waiting(reader);
    }
}

fn waiting(reader: &mut EndpointSpec) {
    if reader.read == ReadMethod::Listener {
        reader.read = ReadMethod::Waitset;
    }
}

/// The size of a payload, if it can be one.
fn checked_size(size: u64) -> Result<usize, Failure> {
    if size < crate::payload::SIZE_MIN {
        return Err(Failure::Unsupported(format!("a payload has at least 4 octets, not {size}")));
    }
    usize::try_from(size).map_err(|_| Failure::Unsupported(format!("{size} octets do not fit into memory")))
}

/// The lock, also after a panic of another thread: counts are still counts.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `Err` with words if there are fewer than expected.
fn enough(what: &str, topic: &str, matched: u32, expected: u32) -> Result<(), String> {
    if matched >= expected {
        return Ok(());
    }
    Err(format!("{matched} of {expected} {what} of topic {topic} are matched"))
}
