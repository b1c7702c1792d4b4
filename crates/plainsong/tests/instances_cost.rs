//! What an instance costs among many: the instructions of a write, its arrival, its take and the look-ups of
//! both sides, with one instance and with 100,000. Nothing on these paths may scan the instances.
//!
//! A child process does the work between two signals to itself; its parent counts the instructions in between
//! by stepping through them.
#![allow(missing_docs, unsafe_code, clippy::unwrap_used, reason = "tests; ptrace needs unsafe")]

use std::process::Command;

use plainsong_proto::discovery::{MatchedReader, MatchedWriter};
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::instance::{InstanceHandle, Key, KeyFunction};
use plainsong_proto::locator::Locator;
use plainsong_proto::malformed::Malformed;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::PayloadPool;
use plainsong_proto::qos::QosSet;
use plainsong_proto::reader::{CachedSamples, Reader, ReaderConfig, ReaderLimits};
use plainsong_proto::receiver::{self, Registry};
use plainsong_proto::sample_info::Selector;
use plainsong_proto::stats::DropCounters;
use plainsong_proto::time::{Duration, Instant, Now, Time};
use plainsong_proto::wire::{EndpointSubmessage, MessageContext};
use plainsong_proto::writer::{ChangeKind, Writer, WriterConfig, WriterLimits};

const WRITER: Guid = GuidPrefix([1; 12]).entity(EntityId::user_writer(1, true));
const READER: Guid = GuidPrefix([2; 12]).entity(EntityId::user_reader(1, true));
const CHILD: &str = "PLAINSONG_TEST_INSTANCES_COST_CHILD";
/// Samples measured.
const SAMPLES: u32 = 6;
/// What finding a place in an ordered set of thousands may take, in unoptimized code, where one of one
/// instance has none to look for. Looking at each of them would take fifty times that.
const SEARCH: usize = 6_000;
/// What is measured, in this order.
const STEPS: [&str; 4] = ["write", "arrival", "take", "look-ups"];

/// The first octets behind the encapsulation are the key.
fn key(payload: &[u8], _key_only: bool) -> Result<Key, Malformed> {
    payload.get(4..8).map(|number| handle(number).into()).ok_or(Malformed::Truncated)
}

/// As a key hash of a number: most octets are alike.
fn handle(number: &[u8]) -> InstanceHandle {
    let mut handle = [0; 16];
    handle[..4].copy_from_slice(number);
    InstanceHandle(handle)
}

/// A writer and a reader without any network.
struct Ends {
    writer: Writer,
    reader: Reader,
    now: Now,
    out: Outbox,
    pool: PayloadPool,
    taken: CachedSamples,
}

struct Ear<'a>(&'a mut Reader);

impl Registry for Ear<'_> {
    fn deliver(&mut self, now: Now, from: &MessageContext, heard: &EndpointSubmessage<'_>, out: &mut Outbox) {
        let result = match heard {
            EndpointSubmessage::Data(data) => self.0.on_data(now, from, data, out),
            EndpointSubmessage::Heartbeat(heartbeat) => self.0.on_heartbeat(now, from, heartbeat, out),
            _ => Ok(()),
        };
        assert_eq!(result, Ok(()));
    }

    fn is_local(&self, _: GuidPrefix) -> bool {
        true
    }
}

impl Ends {
    /// Each sample leaves at once.
    fn new() -> Self {
        let limits = WriterLimits { batch_bytes: 0, ..WriterLimits::default() };
        let (offered, requested) = (QosSet::writer().keep_last(1), QosSet::reader().keep_last(1));
        let now = Now { mono: Instant(1_000_000_000), wall: Time(1_700_000_000_000_000_000) };
        let content_filter = None;
        let mut writer = Writer::new(WriterConfig {
            guid: WRITER,
            keyed: true,
            qos: offered.clone(),
            limits,
            content_filter,
            group: None,
        });
        let limits = ReaderLimits::default();
        let mut reader = Reader::new(ReaderConfig {
            guid: READER,
            keyed: true,
            qos: requested.clone(),
            limits,
            key: KeyFunction::new(key),
        });
        let mut out = Outbox::new();
        let locators = vec![Locator::udp([127, 0, 0, 1].into(), 7_411)];
        let matched = MatchedReader {
            guid: READER,
            locators: locators.clone(),
            sources: plainsong_proto::sources::Sources::default(),
            urgent: None,
            expects_inline_qos: false,
            same_host: true,
            receive_bytes: 0,
            qos: requested,
            content_filter: None,
            begins: false,
            skips_to_heartbeat: false,
            is_of_own_process: false,
        };
        writer.match_reader(now, &matched, &mut out);
        let matched = MatchedWriter {
            guid: WRITER,
            locators,
            sources: plainsong_proto::sources::Sources::default(),
            publisher: EntityId::UNKNOWN,
            vendor: plainsong_proto::vendor::PLAINSONG,
            qos: offered,
            begins: false,
        };
        reader.match_writer(now, &matched, &mut out);
        Self { writer, reader, now, out, pool: PayloadPool::new(), taken: CachedSamples::new() }
    }

    fn write(&mut self, number: u32) {
        self.now.mono = self.now.mono.after(Duration::from_micros(20)).unwrap();
        let mut payload = [7; 64];
        payload[..4].copy_from_slice(&[0, 1, 0, 0]);
        payload[4..8].copy_from_slice(&number.to_le_bytes());
        let payload = self.pool.copy(&payload);
        let (kind, instance) = (ChangeKind::Alive, handle(&number.to_le_bytes()));
        let stamp = self.now.wall;
        self.writer.write(self.now, kind, instance, payload, stamp, &mut self.out).unwrap();
    }

    fn arrive(&mut self, bytes: &[u8]) {
        let (mut drops, from) = (DropCounters::default(), Locator::default());
        receiver::datagram(
            self.now,
            from,
            bytes,
            None,
            &mut Ear(&mut self.reader),
            &mut drops,
            &mut self.out,
        );
    }

    /// What was sent, in one piece.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        let sent = self.out.transmits().iter().map(|transmit| self.out.datagram(transmit)).collect();
        self.out.clear();
        sent
    }

    fn take(&mut self) {
        self.reader.take(self.now, &Selector { samples_max: 1, ..Selector::default() }, &mut self.taken);
        assert_eq!(self.taken.len(), 1);
        self.taken.clear();
    }

    fn look_up(&self, number: u32) {
        let handle = handle(&number.to_le_bytes());
        assert!(self.writer.is_registered(handle) && self.reader.has_instance(handle));
    }
}

fn mark() {
    // SAFETY: the tracer keeps the signal.
    unsafe { libc::raise(libc::SIGUSR1) };
}

/// The child: with so many instances it writes, delivers, takes and looks up samples of a few of them.
fn work_between_marks(instances: u32) {
    let mut ends = Ends::new();
    for number in 0..instances {
        ends.write(number);
        ends.sent().iter().for_each(|datagram| ends.arrive(datagram));
        // A tenth of the samples is never taken.
        if number % 10 != 0 {
            ends.take();
        }
    }
    while ends.reader.has_data(u8::MAX, u8::MAX, u8::MAX) && instances == 1 {
        ends.take();
    }
    // Every path is warm: no first allocation is measured.
    for round in 0..2 {
        for sample in 0..SAMPLES {
            let number = (sample * 7_919 + 1) % instances;
            let measured = round == 1;
            let step = |ends: &mut Ends, step: &mut dyn FnMut(&mut Ends)| {
                if measured {
                    mark();
                }
                step(ends);
                if measured {
                    mark();
                }
            };
            step(&mut ends, &mut |ends| ends.write(number));
            let sent = ends.sent();
            step(&mut ends, &mut |ends| sent.iter().for_each(|datagram| ends.arrive(datagram)));
            step(&mut ends, &mut Ends::take);
            step(&mut ends, &mut |ends| ends.look_up(number));
        }
    }
}

#[test]
fn no_path_of_a_sample_depends_on_the_number_of_instances() {
    if let Some(instances) = std::env::var_os(CHILD) {
        return work_between_marks(instances.to_str().unwrap().parse().unwrap());
    }
    let test = "no_path_of_a_sample_depends_on_the_number_of_instances";
    let [one, many] = ["1", "100000"].map(|instances| averages(&count_instructions(test, instances)));
    for (step, (one, many)) in STEPS.iter().zip(one.iter().zip(&many)) {
        println!("{step}: {one} instructions with one instance, {many} with 100,000");
        assert!(
            *many <= one + one / 2 + SEARCH,
            "{step}: {one} instructions with one instance, {many} with 100,000"
        );
    }
}

/// The average instructions of each of [`STEPS`].
fn averages(counts: &[usize]) -> [usize; 4] {
    assert_eq!(counts.len(), SAMPLES as usize * STEPS.len());
    std::array::from_fn(|step| {
        counts.iter().skip(step).step_by(STEPS.len()).sum::<usize>() / SAMPLES as usize
    })
}

/// Runs the test as a child, told what to do, and gives the instructions of each pair of its marks.
fn count_instructions(test: &str, what: &str) -> Vec<usize> {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--test-threads=1"]).env(CHILD, what);
    // SAFETY: between fork and exec only one system call is made.
    unsafe {
        command.pre_exec(|| {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            Ok(())
        });
    }
    #[expect(clippy::zombie_processes, reason = "step_between_marks() waits")]
    let child = command.spawn().unwrap();
    step_between_marks(child.id() as libc::pid_t)
}

/// The instructions of each pair of marks.
fn step_between_marks(process: libc::pid_t) -> Vec<usize> {
    let (mut counts, mut stepping) = (Vec::new(), false);
    let mut status = 0;
    loop {
        // SAFETY: `status` outlives the call.
        let thread = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
        assert!(thread > 0, "the child ended without telling");
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            if thread == process {
                assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "the child failed");
                return counts;
            }
            continue;
        }
        let signal = libc::WSTOPSIG(status);
        match signal {
            libc::SIGUSR1 => {
                stepping = !stepping;
                if stepping {
                    counts.push(0);
                }
            }
            libc::SIGTRAP if stepping => *counts.last_mut().unwrap() += 1,
            libc::SIGTRAP => {
                // The exec, or a new thread announced itself: both want the option.
                let options = libc::PTRACE_O_TRACECLONE;
                // SAFETY: `thread` is stopped and traced by us; the call takes no pointers.
                unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, thread, 0, options) };
            }
            _ => {}
        }
        let request = if stepping { libc::PTRACE_SINGLESTEP } else { libc::PTRACE_CONT };
        let deliver =
            if matches!(signal, libc::SIGTRAP | libc::SIGSTOP | libc::SIGUSR1) { 0 } else { signal };
        // SAFETY: `thread` is stopped and traced by us; the call takes no pointers.
        unsafe { libc::ptrace(request, thread, 0, deliver) };
    }
}
