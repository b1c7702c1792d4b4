//! An adapter in C, compiled here, does the same work as one in Rust.

mod driver;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use driver::{Worker, endpoint, run_all, spec};
use plainsong_perfkit::event::{ErrorKind, Totals};
use plainsong_perfkit::spec::{Faults, InstanceOrder, Pacing, ReadMethod, Role, SessionSpec};
use plainsong_perfkit::{Event, WorkerSpec};

/// The library that cargo built last, beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this test has a path");
    let directory = test.parent().expect("it is in a directory");
    let built = |path: &Path| path.metadata().and_then(|it| it.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let entries =
        std::fs::read_dir(directory).expect("that can be listed").flatten().map(|entry| entry.path());
    let libraries = entries.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libplainsong_perfkit") && name.ends_with(".a")
    });
    libraries.max_by_key(|path| built(path)).expect("cargo builds libplainsong_perfkit.a")
}

/// The adapter, compiled once.
fn adapter() -> &'static Path {
    static ADAPTER: OnceLock<PathBuf> = OnceLock::new();
    ADAPTER.get_or_init(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("perf-adapter-test");
        let compiled = Command::new("cc")
            .args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
            .arg(here.join("include"))
            .arg(here.join("tests/adapter.c"))
            .arg(library())
            .args(["-lpthread", "-ldl", "-lm", "-o"])
            .arg(&program)
            .output()
            .expect("cc is installed");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        program
    })
}

/// A directory for the sockets of one test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("perfkit-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn give(&self, spec: WorkerSpec) -> WorkerSpec {
        let scratch = self.0.to_string_lossy().into_owned();
        WorkerSpec { session: SessionSpec { scratch, ..spec.session }, ..spec }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start() -> (Child, Worker) {
    let mut child = Command::new(adapter())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the adapter starts");
    let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    (child, Worker::new(input, output))
}

/// Waits for the end of a process that should be near.
fn ends(mut child: Child) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(20) {
        if child.try_wait().expect("it is our child").is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("it is our child");
    false
}

#[test]
fn pings_are_answered() {
    for read in [ReadMethod::Listener, ReadMethod::Waitset] {
        let scratch = Scratch::new("ping");
        let (there, back) = (endpoint("ping", read), endpoint("pong", read));
        let role = Role::Ping {
            writer: there.clone(),
            reader: back.clone(),
            size: 64,
            rate: 0,
            timeout_ms: 1000,
            answers: 1,
        };
        let specs =
            [spec("ping", role), spec("pong", Role::Pong { reader: there, writer: back, full: true })];
        let specs = specs.map(|spec| scratch.give(spec));
        let (children, mut workers): (Vec<_>, Vec<_>) = specs.iter().map(|_| start()).unzip();
        let done = run_all(&mut workers, &specs);
        let (ping, pong) = (&done[0].0, &done[1].0);
        assert_eq!((ping.sent, ping.totals.received), (200, 200), "{read:?}");
        assert_eq!(pong.sent, ping.sent, "{read:?}");
        assert!(ping.recorder_cost_ns > 0.0);
        // The end of their input is the end of the processes.
        drop(workers);
        assert!(children.into_iter().all(ends), "{read:?}");
    }
}

#[test]
fn what_goes_wrong_on_purpose_is_counted_exactly() {
    let scratch = Scratch::new("faults");
    let faults =
        Faults { drop_every: 7, duplicate_every: 11, swap_every: 13, corrupt_every: 17, delay_us: 0 };
    let data = endpoint("data", ReadMethod::Waitset);
    let publisher = Role::Publish {
        writer: data.clone(),
        number: 0,
        size: 100,
        instances: 1,
        order: InstanceOrder::RoundRobin,
        pacing: Pacing::Rate { rate: 5000 },
        readers: 1,
    };
    let subscriber = Role::Subscribe { reader: data, writers: 1, one_way: true, checksum: true };
    let specs = [
        WorkerSpec { faults, warmup_ms: 0, samples_max: 1000, ..spec("pub", publisher) },
        WorkerSpec { warmup_ms: 0, samples_max: 0, ..spec("sub", subscriber) },
    ];
    let specs = specs.map(|spec| scratch.give(spec));
    let (_children, mut workers): (Vec<_>, Vec<_>) = specs.iter().map(|_| start()).unzip();
    let done = run_all(&mut workers, &specs);
    let (publisher, counted) = (&done[0].0, done[1].0.totals);
    let injected = publisher.injected;
    assert_eq!(publisher.sent, 1000);
    let received = 1000 - injected.lost - injected.corrupted;
    assert_eq!(counted, Totals { received, octets: 100 * received, ..injected });
}

#[test]
fn what_an_adapter_refuses_is_told_in_its_words() {
    let scratch = Scratch::new("refused");
    let (_child, mut worker) = start();
    let reader = endpoint("data", ReadMethod::Listener);
    let mut refused =
        scratch.give(spec("sub", Role::Subscribe { reader, writers: 1, one_way: false, checksum: false }));
    refused.session.multicast = Some(true);
    worker.configure(&refused);
    let Event::Error { kind, message } = worker.next() else { panic!("it has no multicast") };
    assert_eq!((kind, message.as_str()), (ErrorKind::Unsupported, "no multicast in C"));
}

#[test]
fn a_worker_ends_with_its_input_even_if_the_product_hangs() {
    let scratch = Scratch::new("hangs");
    let (child, mut worker) = start();
    let mut spec =
        scratch.give(spec("encode", Role::Discover { participants: 1, endpoints: 1, participants_total: 1 }));
    spec.session.domain = 66;
    worker.configure(&spec);
    assert!(matches!(worker.next(), Event::Ready { .. }));
    worker.tell(&plainsong_perfkit::Command::Start { at_ns: 0 });
    drop(worker);
    assert!(ends(child));
}

#[test]
fn serialization_is_measured_through_the_table() {
    let scratch = Scratch::new("encode");
    let (_child, worker) = start();
    let specs = [scratch.give(WorkerSpec {
        duration_ms: 100,
        ..spec("encode", Role::Encode { type_name: "numbers".to_owned() })
    })];
    let done = run_all(&mut [worker], &specs);
    assert_eq!(done[0].0.encode.expect("a cost").encoded_octets, 320);
}
