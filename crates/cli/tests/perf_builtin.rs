//! Workers of the built-in adapters, as agents start them, over loopback and shared memory.

#[path = "../../perfkit/tests/driver/mod.rs"]
mod driver;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use driver::{Worker, endpoint, run_all, spec};
use plainsong_perfkit::event::{ErrorKind, Totals};
use plainsong_perfkit::spec::{
    EndpointSpec, Faults, InstanceOrder, Pacing, ReadCall, ReadMethod, Role, SessionSpec,
};
use plainsong_perfkit::{Event, WorkerSpec};

/// A cell: a directory and a domain that its workers alone share.
struct Cell {
    scratch: PathBuf,
    domain: u32,
    children: Vec<Child>,
}

impl Cell {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(100);
        let domain = NEXT.fetch_add(1, Ordering::Relaxed);
        let scratch = std::env::temp_dir().join(format!("plainsong-perf-{}-{domain}", std::process::id()));
        std::fs::create_dir_all(&scratch).expect("a directory");
        Self { scratch, domain, children: Vec::new() }
    }

    fn start(&mut self, adapter: &str) -> Worker {
        let mut child = Command::new(env!("CARGO_BIN_EXE_plainsong"))
            .args(["perf", "worker", "--adapter", adapter])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the worker starts");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        self.children.push(child);
        Worker::new(input, output)
    }

    fn here(&self, spec: WorkerSpec) -> WorkerSpec {
        let scratch = self.scratch.to_string_lossy().into_owned();
        WorkerSpec { session: SessionSpec { scratch, domain: self.domain, ..spec.session }, ..spec }
    }

    fn run(&mut self, adapter: &str, specs: Vec<WorkerSpec>) -> Vec<plainsong_perfkit::Report> {
        let mut workers: Vec<Worker> = specs.iter().map(|_| self.start(adapter)).collect();
        let specs: Vec<WorkerSpec> = specs.into_iter().map(|spec| self.here(spec)).collect();
        let done = run_all(&mut workers, &specs);
        for worker in &mut workers {
            worker.tell(&plainsong_perfkit::Command::Quit);
        }
        for child in &mut self.children {
            assert!(child.wait().expect("it is our child").success());
        }
        let left: Vec<_> = std::fs::read_dir(&self.scratch).expect("it is there").flatten().collect();
        assert!(left.is_empty(), "{adapter} leaves {left:?}");
        done.into_iter().map(|(report, _)| report).collect()
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Most have left already.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

const ADAPTERS: [&str; 13] = [
    "plainsong",
    "plainsong-busy",
    "plainsong-woken",
    "plainsong-udp",
    "plainsong-loan",
    "plainsong-small-buffers",
    "plainsong-atomic",
    "plainsong-atomic-udp",
    "udp",
    "udp-busy",
    "unix",
    "shm-spin",
    "shm-futex",
];

fn ping_pong(read: ReadMethod, size: u64, keyed: bool) -> Vec<WorkerSpec> {
    let with = |topic| EndpointSpec { payload_max: size, keyed, ..endpoint(topic, read) };
    let (writer, reader) = (with("ping"), with("pong"));
    let ping = Role::Ping {
        writer: writer.clone(),
        reader: reader.clone(),
        size,
        rate: 0,
        timeout_ms: 10_000,
        answers: 1,
    };
    let pong = Role::Pong { reader: writer, writer: reader, full: true };
    vec![
        WorkerSpec { samples_max: 50, warmup_ms: 1, ..spec("ping", ping) },
        WorkerSpec { drain_ms: 10, ..spec("pong", pong) },
    ]
}

#[test]
fn every_adapter_answers_pings_also_those_larger_than_a_datagram() {
    for adapter in ADAPTERS {
        for (read, size) in [(ReadMethod::Listener, 64), (ReadMethod::Polling { period_us: 50 }, 200_000)] {
            let reports = Cell::new().run(adapter, ping_pong(read, size, false));
            let octets = 50 * size;
            let expected = Totals { received: 50, octets, ..Totals::default() };
            assert_eq!(reports[0].totals, expected, "{adapter} {read:?}");
        }
    }
}

#[test]
fn plainsong_reads_by_waitset_and_with_a_key() {
    let reports = Cell::new().run("plainsong", ping_pong(ReadMethod::Waitset, 64, true));
    assert_eq!(reports[0].totals.received, 50);
}

#[test]
fn every_adapter_counts_what_goes_wrong_on_purpose() {
    for adapter in ADAPTERS {
        let faults =
            Faults { drop_every: 7, duplicate_every: 11, swap_every: 13, corrupt_every: 17, delay_us: 0 };
        let data = EndpointSpec { keyed: true, instances: 3, ..endpoint("data", ReadMethod::Waitset) };
        let publisher = Role::Publish {
            writer: data.clone(),
            number: 0,
            size: 100,
            instances: 3,
            order: InstanceOrder::RoundRobin,
            // No faster than sockets without flow control can take.
            pacing: Pacing::Rate { rate: 2000 },
            readers: 2,
        };
        let subscriber = Role::Subscribe { reader: data, writers: 1, one_way: true, checksum: true };
        let subscriber = WorkerSpec { samples_max: 0, ..spec("sub", subscriber) };
        let publisher = WorkerSpec { faults, warmup_ms: 0, samples_max: 500, ..spec("pub", publisher) };
        let reports = Cell::new().run(adapter, vec![publisher, subscriber.clone(), subscriber]);
        let injected = reports[0].injected;
        let received = 500 - injected.lost - injected.corrupted;
        for report in &reports[1..] {
            assert_eq!(report.totals, Totals { received, octets: 100 * received, ..injected }, "{adapter}");
        }
    }
}

#[test]
fn plainsong_discovers_filters_and_times_its_calls() {
    let discover = Role::Discover { participants: 1, endpoints: 2, participants_total: 2 };
    let reports = Cell::new().run("plainsong", vec![spec("a", discover.clone()), spec("b", discover)]);
    assert!(reports.iter().all(|report| report.matched_after_ns.is_some()));

    let data = EndpointSpec { keyed: true, instances: 4, ..endpoint("data", ReadMethod::Listener) };
    let reader = EndpointSpec { filter_instances_below: Some(1), ..data.clone() };
    let publisher = Role::Publish {
        writer: data.clone(),
        number: 0,
        size: 16,
        instances: 4,
        order: InstanceOrder::RoundRobin,
        pacing: Pacing::Max,
        readers: 1,
    };
    let subscriber = Role::Subscribe { reader, writers: 1, one_way: false, checksum: true };
    let publisher = WorkerSpec { warmup_ms: 0, ..spec("pub", publisher) };
    let reports = Cell::new().run("plainsong", vec![publisher, spec("sub", subscriber)]);
    assert_eq!((reports[0].sent, reports[1].totals.received), (200, 50));

    let data = EndpointSpec { instances: 100, ..data };
    let calls =
        vec![ReadCall::Lookup, ReadCall::ReadInstance, ReadCall::ReadAll, ReadCall::Query, ReadCall::TakeOne];
    let role = Role::ReadCost { writer: data.clone(), reader: data, size: 16, calls };
    let reports = Cell::new().run("plainsong", vec![WorkerSpec { samples_max: 20, ..spec("cost", role) }]);
    let counts: Vec<u64> = reports[0].histograms.iter().map(|it| it.count).collect();
    assert_eq!((reports[0].totals.received, counts), (100, vec![20; 5]));
}

#[test]
fn plainsong_encodes_every_type() {
    for (type_name, octets) in [("numbers", 324), ("text", 0), ("pose", 0), ("image", 0), ("track", 0)] {
        let role = Role::Encode { type_name: type_name.to_owned() };
        let spec = WorkerSpec { duration_ms: 50, ..spec("encode", role) };
        let cost = Cell::new().run("plainsong", vec![spec])[0].encode.expect("a cost");
        assert!(cost.encode_ns > 0.0 && cost.decode_ns > 0.0 && cost.encoded_octets >= octets, "{cost:?}");
    }
}

#[test]
fn what_a_built_in_adapter_does_not_offer_is_refused() {
    for adapter in ADAPTERS {
        let mut cell = Cell::new();
        let mut worker = cell.start(adapter);
        let mut multicast = cell.here(ping_pong(ReadMethod::Listener, 64, false).remove(0));
        multicast.session.multicast = Some(true);
        worker.configure(&multicast);
        let event = worker.next();
        assert!(matches!(event, Event::Error { kind: ErrorKind::Unsupported, .. }), "{adapter}: {event:?}");
    }
}
