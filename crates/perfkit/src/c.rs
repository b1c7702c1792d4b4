//! The same for adapters in C and C++: see `include/perfkit.h`, which says what each part means.

// C has no other way to be called, and to call.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::process::ExitCode;
use std::ptr::{null, null_mut};
use std::time::Duration;

use crate::adapter::{Adapter, Description, EncodeCost, Failure, Reader, Sample, Session, Sink, Writer};
use crate::clock::{now_ns, to_ns};
use crate::spec::{EndpointSpec, Profile, ReadCall, ReadMethod, SessionSpec};

/// Version of the interface.
const ABI: u32 = 1;
const OK: i32 = 0;
const UNSUPPORTED: i32 = 1;
const TIMEOUT: i32 = 3;

thread_local! {
    static REASON: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// `perfkit_session`.
#[repr(C)]
struct RawSession {
    domain: u32,
    interface: *const c_char,
    multicast: i32,
    peers: *const *const c_char,
    peer_count: usize,
    listen: *const c_char,
    tuned: i32,
    scratch: *const c_char,
}

/// `perfkit_endpoint`.
#[repr(C)]
struct RawEndpoint {
    topic: *const c_char,
    keyed: i32,
    reliable: i32,
    history_depth: u32,
    transient_local: i32,
    blocking_ms: u64,
    exclusive: i32,
    ownership_strength: i32,
    deadline_ms: u64,
    liveliness_ms: u64,
    priority: i32,
    payload_max: u64,
    instances: u32,
    batching: i32,
    read: i32,
    read_period_us: u64,
    filtered: i32,
    filter_instances_below: u32,
}

/// `perfkit_encode_cost`.
#[repr(C)]
#[derive(Default)]
struct RawEncodeCost {
    encode_ns: f64,
    decode_ns: f64,
    encoded_octets: u64,
}

/// `perfkit_sink`.
struct RawSink(Sink);

type Handle = *mut c_void;

/// `perfkit_adapter`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawAdapter {
    abi: u32,
    context: Handle,
    product: *const c_char,
    version: *const c_char,
    features: *const c_char,
    open: Option<unsafe extern "C" fn(Handle, *const RawSession, *mut Handle) -> i32>,
    close: Option<unsafe extern "C" fn(Handle)>,
    writer_new: Option<unsafe extern "C" fn(Handle, *const RawEndpoint, *mut Handle) -> i32>,
    writer_delete: Option<unsafe extern "C" fn(Handle)>,
    write: Option<unsafe extern "C" fn(Handle, u32, *const c_void, usize) -> i32>,
    writer_matched: Option<unsafe extern "C" fn(Handle) -> u32>,
    flush: Option<unsafe extern "C" fn(Handle)>,
    wait_acknowledged: Option<unsafe extern "C" fn(Handle, u64) -> i32>,
    reader_new: Option<unsafe extern "C" fn(Handle, *const RawEndpoint, *mut RawSink, *mut Handle) -> i32>,
    reader_delete: Option<unsafe extern "C" fn(Handle)>,
    reader_matched: Option<unsafe extern "C" fn(Handle) -> u32>,
    take: Option<unsafe extern "C" fn(Handle, *mut u64) -> i32>,
    wait: Option<unsafe extern "C" fn(Handle, u64, *mut i32) -> i32>,
    call: Option<unsafe extern "C" fn(Handle, i32, u32, *mut u64) -> i32>,
    encode_cost: Option<unsafe extern "C" fn(Handle, *const c_char, u64, *mut RawEncodeCost) -> i32>,
}

/// The functions that every adapter has.
#[derive(Clone, Copy)]
struct Table {
    raw: RawAdapter,
    open: unsafe extern "C" fn(Handle, *const RawSession, *mut Handle) -> i32,
    close: unsafe extern "C" fn(Handle),
    writer_new: unsafe extern "C" fn(Handle, *const RawEndpoint, *mut Handle) -> i32,
    writer_delete: unsafe extern "C" fn(Handle),
    write: unsafe extern "C" fn(Handle, u32, *const c_void, usize) -> i32,
    writer_matched: unsafe extern "C" fn(Handle) -> u32,
    reader_new: unsafe extern "C" fn(Handle, *const RawEndpoint, *mut RawSink, *mut Handle) -> i32,
    reader_delete: unsafe extern "C" fn(Handle),
    reader_matched: unsafe extern "C" fn(Handle) -> u32,
    take: unsafe extern "C" fn(Handle, *mut u64) -> i32,
    wait: unsafe extern "C" fn(Handle, u64, *mut i32) -> i32,
}

impl Table {
    fn new(raw: RawAdapter) -> Option<Self> {
        Some(Self {
            raw,
            open: raw.open?,
            close: raw.close?,
            writer_new: raw.writer_new?,
            writer_delete: raw.writer_delete?,
            write: raw.write?,
            writer_matched: raw.writer_matched?,
            reader_new: raw.reader_new?,
            reader_delete: raw.reader_delete?,
            reader_matched: raw.reader_matched?,
            take: raw.take?,
            wait: raw.wait?,
        })
    }
}

/// See `perfkit_main` in the header.
///
/// # Safety
/// `adapter` points to a table whose functions do what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfkit_main(adapter: *const RawAdapter) -> c_int {
    // SAFETY: the caller's duty.
    let raw = match unsafe { adapter.as_ref() } {
        Some(raw) if raw.abi == ABI => *raw,
        Some(raw) => {
            eprintln!("the adapter was made for version {} of perfkit.h, this is version {ABI}", raw.abi);
            return 2;
        }
        None => {
            eprintln!("perfkit_main needs an adapter");
            return 2;
        }
    };
    let Some(table) = Table::new(raw) else {
        eprintln!("a function of perfkit_adapter is NULL that must not be");
        return 2;
    };
    let code = crate::worker::main(&mut CAdapter { table });
    c_int::from(code != ExitCode::SUCCESS)
}

/// See `perfkit_fail` in the header.
///
/// # Safety
/// `reason` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfkit_fail(status: i32, reason: *const c_char) -> i32 {
    // SAFETY: the caller's duty.
    let reason = unsafe { text(reason) };
    REASON.with(|it| *it.borrow_mut() = reason);
    status
}

/// See `perfkit_now_ns` in the header.
#[unsafe(no_mangle)]
pub extern "C" fn perfkit_now_ns() -> u64 {
    now_ns()
}

/// See `perfkit_deliver` in the header.
///
/// # Safety
/// `sink` is that of a reader that has not been deleted, in use by no other thread; `payload` has `size`
/// octets.
#[unsafe(no_mangle)]
#[allow(private_interfaces, reason = "C knows the sink by its address alone")]
pub unsafe extern "C" fn perfkit_deliver(
    sink: *mut RawSink,
    instance: u32,
    payload: *const c_void,
    size: usize,
) {
    // SAFETY: the caller's duty.
    let Some(sink) = (unsafe { sink.as_mut() }) else { return };
    let payload = if payload.is_null() {
        &[]
    } else {
        // SAFETY: the caller's duty.
        unsafe { std::slice::from_raw_parts(payload.cast::<u8>(), size) }
    };
    (sink.0)(Sample { instance, payload });
}

/// A copy of a string of C.
///
/// # Safety
/// `pointer` is NULL or a string.
unsafe fn text(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the caller's duty.
    Some(unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

/// A string for C; what follows a zero is left out.
fn c_text(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

fn check(status: i32) -> Result<(), Failure> {
    let reason = || {
        let reason = REASON.with(|it| it.borrow_mut().take());
        reason.unwrap_or_else(|| format!("the adapter gave status {status} and no reason"))
    };
    match status {
        OK => Ok(()),
        TIMEOUT => Err(Failure::Timeout),
        UNSUPPORTED => Err(Failure::Unsupported(reason())),
        _ => Err(Failure::Failed(reason())),
    }
}

struct CAdapter {
    table: Table,
}

impl Adapter for CAdapter {
    fn description(&self) -> Description {
        let raw = &self.table.raw;
        // SAFETY: strings or NULL, as the header asks.
        let text = |pointer| unsafe { text(pointer) }.unwrap_or_default();
        Description {
            product: text(raw.product),
            version: text(raw.version),
            features: text(raw.features).split_whitespace().map(str::to_owned).collect(),
        }
    }

    fn open(&mut self, spec: &SessionSpec) -> Result<Box<dyn Session>, Failure> {
        let interface = spec.interface.as_deref().map(c_text);
        let listen = spec.listen.as_deref().map(c_text);
        let peers: Vec<CString> = spec.peers.iter().map(|peer| c_text(peer)).collect();
        let peers: Vec<*const c_char> = peers.iter().map(|peer| peer.as_ptr()).collect();
        let scratch = c_text(&spec.scratch);
        let raw = RawSession {
            domain: spec.domain,
            interface: interface.as_ref().map_or(null(), |it| it.as_ptr()),
            multicast: spec.multicast.map_or(-1, i32::from),
            peers: peers.as_ptr(),
            peer_count: peers.len(),
            listen: listen.as_ref().map_or(null(), |it| it.as_ptr()),
            tuned: i32::from(spec.profile == Profile::Tuned),
            scratch: scratch.as_ptr(),
        };
        let mut handle = null_mut();
        // SAFETY: everything pointed to lives until the end of this function.
        check(unsafe { (self.table.open)(self.table.raw.context, &raw const raw, &raw mut handle) })?;
        Ok(Box::new(CSession { table: self.table, handle }))
    }

    fn encode_cost(&mut self, type_name: &str, rounds: u64) -> Result<EncodeCost, Failure> {
        let Some(encode_cost) = self.table.raw.encode_cost else {
            return Err(Failure::Unsupported("the adapter does not measure serialization".to_owned()));
        };
        let name = c_text(type_name);
        let mut cost = RawEncodeCost::default();
        // SAFETY: everything pointed to lives until the end of this function.
        check(unsafe { encode_cost(self.table.raw.context, name.as_ptr(), rounds, &raw mut cost) })?;
        Ok(EncodeCost {
            encode_ns: cost.encode_ns,
            decode_ns: cost.decode_ns,
            encoded_octets: cost.encoded_octets,
        })
    }
}

fn with_endpoint<R>(spec: &EndpointSpec, use_it: impl FnOnce(*const RawEndpoint) -> R) -> R {
    let topic = c_text(&spec.topic);
    let (read, read_period_us) = match spec.read {
        ReadMethod::Listener => (0, 0),
        ReadMethod::Waitset => (1, 0),
        ReadMethod::Polling { period_us } => (2, period_us),
    };
    use_it(&RawEndpoint {
        topic: topic.as_ptr(),
        keyed: spec.keyed.into(),
        reliable: spec.reliable.into(),
        history_depth: spec.history_depth,
        transient_local: spec.transient_local.into(),
        blocking_ms: spec.blocking_ms,
        exclusive: spec.ownership_strength.is_some().into(),
        ownership_strength: spec.ownership_strength.unwrap_or(0),
        deadline_ms: spec.deadline_ms,
        liveliness_ms: spec.liveliness_ms,
        priority: spec.priority,
        payload_max: spec.payload_max,
        instances: spec.instances,
        batching: spec.batching.into(),
        read,
        read_period_us,
        filtered: spec.filter_instances_below.is_some().into(),
        filter_instances_below: spec.filter_instances_below.unwrap_or(0),
    })
}

struct CSession {
    table: Table,
    handle: Handle,
}

impl Session for CSession {
    fn writer(&mut self, endpoint: &EndpointSpec) -> Result<Box<dyn Writer>, Failure> {
        let mut handle = null_mut();
        // SAFETY: the handle is the adapter's own; everything pointed to lives until the call returns.
        check(with_endpoint(endpoint, |raw| unsafe {
            (self.table.writer_new)(self.handle, raw, &raw mut handle)
        }))?;
        Ok(Box::new(CWriter { table: self.table, handle }))
    }

    fn reader(&mut self, endpoint: &EndpointSpec, sink: Sink) -> Result<Box<dyn Reader>, Failure> {
        let mut handle = null_mut();
        let sink = Box::into_raw(Box::new(RawSink(sink)));
        // SAFETY: as for a writer; the sink lives as long as the reader.
        let status = with_endpoint(endpoint, |raw| unsafe {
            (self.table.reader_new)(self.handle, raw, sink, &raw mut handle)
        });
        if let Err(failure) = check(status) {
            // SAFETY: it came from a box above, and there is no reader that could use it.
            drop(unsafe { Box::from_raw(sink) });
            return Err(failure);
        }
        Ok(Box::new(CReader { table: self.table, handle, sink }))
    }
}

impl Drop for CSession {
    fn drop(&mut self) {
        // SAFETY: the handle is the adapter's own, and is not used again.
        unsafe { (self.table.close)(self.handle) };
    }
}

struct CWriter {
    table: Table,
    handle: Handle,
}

// SAFETY: the header lets writers be used on any thread, one at a time.
unsafe impl Send for CWriter {}

impl Writer for CWriter {
    fn write(&mut self, instance: u32, payload: &[u8]) -> Result<(), Failure> {
        // SAFETY: the handle is the adapter's own; pointer and size are those of a slice.
        check(unsafe { (self.table.write)(self.handle, instance, payload.as_ptr().cast(), payload.len()) })
    }

    fn matched(&mut self) -> u32 {
        // SAFETY: the handle is the adapter's own.
        unsafe { (self.table.writer_matched)(self.handle) }
    }

    fn flush(&mut self) {
        if let Some(flush) = self.table.raw.flush {
            // SAFETY: the handle is the adapter's own.
            unsafe { flush(self.handle) };
        }
    }

    fn wait_acknowledged(&mut self, timeout: Duration) -> bool {
        // SAFETY: the handle is the adapter's own.
        self.table.raw.wait_acknowledged.is_none_or(|wait| unsafe { wait(self.handle, to_ns(timeout)) } != 0)
    }
}

impl Drop for CWriter {
    fn drop(&mut self) {
        // SAFETY: the handle is the adapter's own, and is not used again.
        unsafe { (self.table.writer_delete)(self.handle) };
    }
}

struct CReader {
    table: Table,
    handle: Handle,
    sink: *mut RawSink,
}

// SAFETY: the header lets readers be used on any thread, one at a time; what a sink holds may be sent.
unsafe impl Send for CReader {}

impl Reader for CReader {
    fn matched(&mut self) -> u32 {
        // SAFETY: the handle is the adapter's own.
        unsafe { (self.table.reader_matched)(self.handle) }
    }

    fn take(&mut self) -> Result<u64, Failure> {
        let mut count = 0;
        // SAFETY: the handle is the adapter's own; the pointer is to a local.
        check(unsafe { (self.table.take)(self.handle, &raw mut count) })?;
        Ok(count)
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, Failure> {
        let mut ready = 0;
        // SAFETY: as above.
        check(unsafe { (self.table.wait)(self.handle, to_ns(timeout), &raw mut ready) })?;
        Ok(ready != 0)
    }

    fn call(&mut self, call: ReadCall, instance: u32) -> Result<u64, Failure> {
        let Some(function) = self.table.raw.call else {
            return Err(Failure::Unsupported("the adapter does not measure calls of a reader".to_owned()));
        };
        let number = match call {
            ReadCall::Lookup => 0,
            ReadCall::ReadInstance => 1,
            ReadCall::ReadAll => 2,
            ReadCall::Query => 3,
            ReadCall::TakeOne => 4,
        };
        let mut count = 0;
        // SAFETY: as above.
        check(unsafe { function(self.handle, number, instance, &raw mut count) })?;
        Ok(count)
    }
}

impl Drop for CReader {
    fn drop(&mut self) {
        // SAFETY: the handle is the adapter's own and is not used again; after this call, neither is the
        // sink, which came from a box.
        unsafe {
            (self.table.reader_delete)(self.handle);
            drop(Box::from_raw(self.sink));
        }
    }
}
