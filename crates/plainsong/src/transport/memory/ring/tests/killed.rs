//! Real processes, killed at any instruction: what one has put into a ring before is whole, in order and
//! unchanged while it is borrowed, and what one has borrowed is back. `PLAINSONG_KILLS` says how many, of
//! each kind.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use super::super::super::lending::{ForeignChunk, Lending, LetGo, PeerSlabs};
use super::super::super::pool::{Chunk, Pool};
use super::super::super::segment::{Pages, PeerSegment, Segment};
use super::*;
use crate::base::locks::lock;

const RING: usize = 16 << 10;
/// Its first slab, which the other process knows, takes a quarter.
const POOL: u64 = 1 << 20;
const CHUNK: usize = 4_096;
/// So many payloads are kept for a while.
const BORROWED: usize = 16;
const ROLE: &str = "PLAINSONG_TEST_ROLE";
const ROLES: &str = "transport::memory::ring::tests::killed::carries_out_a_role";

/// xorshift64*.
struct Random(u64);

impl Random {
    const fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % limit
    }
}

fn kills() -> u64 {
    std::env::var("PLAINSONG_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(40)
}

/// FNV-1a.
fn checksum(octets: &[u8]) -> u64 {
    octets
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, octet| (sum ^ u64::from(*octet)).wrapping_mul(0x100_0000_01b3))
}

/// A number, octets that depend on it, and what they come to.
fn fill(octets: &mut [u8], number: u64) {
    let (content, sum) = octets.split_last_chunk_mut::<8>().unwrap();
    for (at, octet) in content.iter_mut().enumerate() {
        *octet = (number as u8).wrapping_mul(31).wrapping_add(at as u8);
    }
    content.first_chunk_mut::<8>().unwrap().copy_from_slice(&number.to_le_bytes());
    *sum = checksum(content).to_le_bytes();
}

fn verify(octets: &[u8], number: u64) {
    let (content, sum) = octets.split_last_chunk::<8>().unwrap();
    assert_eq!(u64::from_le_bytes(*content.first_chunk::<8>().unwrap()), number, "in order");
    assert_eq!(u64::from_le_bytes(*sum), checksum(content), "whole: {number}");
}

/// A descriptor of another process, opened once more.
fn peer(process: u32, fd: i32) -> File {
    File::open(format!("/proc/{process}/fd/{fd}")).unwrap()
}

/// Another process with a role, the lines that it says, and its segment.
struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
    segment: PeerSegment,
}

impl Process {
    fn start(role: &str, own: &Segment, of_slab: Option<&Chunk>) -> Self {
        let slab = of_slab.map_or(-1, |chunk| chunk.slab().fd().as_raw_fd());
        let told = format!("{role} {} {} {slab}", std::process::id(), own.fd().as_raw_fd());
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([ROLES, "--exact", "--ignored", "--nocapture"]).env(ROLE, told);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let fd = number_after(&mut lines, "segment ");
        let bytes = segment_bytes(RING);
        let segment = PeerSegment::map(peer(child.id(), fd).as_fd(), bytes..=bytes).unwrap();
        Self { child, lines, segment }
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number in the next line that begins so.
fn number_after(lines: &mut impl BufRead, begin: &str) -> i32 {
    for line in lines.lines() {
        // libtest begins the line.
        if let Some((_, number)) = line.unwrap().rsplit_once(begin) {
            return number.trim().parse().unwrap();
        }
    }
    panic!("the process ended before it said: {begin}");
}

#[test]
#[ignore = "what other tests start as a process"]
fn carries_out_a_role() {
    let Ok(told) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = told.split(' ').collect();
    let [role, process, fd, slab] = words[..] else { panic!("{told}") };
    let (process, fd, slab) = (process.parse().unwrap(), fd.parse().unwrap(), slab.parse().unwrap());
    let own = Segment::create(segment_bytes(RING), Pages::Usual).unwrap();
    let bytes = segment_bytes(RING);
    let segment = PeerSegment::map(peer(process, fd).as_fd(), bytes..=bytes).unwrap();
    if role == "send" {
        let pool = Pool::new(POOL, Pages::Usual);
        let chunk = pool.allocate(CHUNK).unwrap();
        println!("segment {}", own.fd().as_raw_fd());
        println!("slab {}", chunk.slab().fd().as_raw_fd());
        drop(chunk);
        send(&own, &segment, &pool, || true);
    } else {
        println!("segment {}", own.fd().as_raw_fd());
        let mut slabs = PeerSlabs::new(POOL);
        slabs.insert(0, peer(process, slab).as_fd(), CHUNK as u64).unwrap();
        let mut receiver = Receiver::new(own);
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            receiver.receive(&segment, &slabs);
        }
    }
}

/// Sends records, of which every third has a payload in a chunk, as long as it may: how many.
fn send(own: &Segment, receiver: &PeerSegment, pool: &Pool, mut may_go_on: impl FnMut() -> bool) -> u64 {
    let (mut producer, mut releases) = (RingProducer::new(RING), ReleaseConsumer::default());
    let mut lending = Lending::new();
    let (mut number, begin) = (0, Instant::now());
    while may_go_on() && begin.elapsed() < PATIENCE {
        releases.drain(receiver, |slot| assert!(lending.release(slot).is_some())).unwrap();
        let mut octets = vec![0; 16 + (number as usize * 37) % 1_500];
        fill(&mut octets, number);
        let lent = (number % 3 == 0).then(|| lend(&mut lending, pool, number)).flatten();
        let attachment = lent.as_ref();
        let parts = octets.chunks(700);
        match producer.push(own, receiver, parts, octets.len(), attachment) {
            Ok(()) => number += 1,
            Err(PushError::Full) => {
                attachment.map(|it| lending.release(it.slot).unwrap());
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
    number
}

fn lend(lending: &mut Lending<Chunk>, pool: &Pool, number: u64) -> Option<Attachment> {
    let mut chunk = pool.allocate(CHUNK).ok().filter(|chunk| chunk.slab().id() == 0)?;
    fill(chunk.bytes_mut(), number);
    let mut attachment = chunk.attachment(&(0..CHUNK), 0);
    attachment.slot = lending.lend(chunk, CHUNK as u64)?;
    Some(attachment)
}

/// Gives back into the own segment.
struct Returns {
    own: Segment,
    releases: Mutex<ReleaseProducer>,
}

impl LetGo for Returns {
    fn let_go(&self, slot: u32) {
        lock(&self.releases).push(&self.own, slot);
    }
}

struct Receiver {
    returns: Arc<Returns>,
    consumer: RingConsumer,
    octets: Vec<u8>,
    borrowed: VecDeque<(u64, ForeignChunk)>,
    /// Records that came, and those with a payload.
    number: u64,
    attached: u64,
}

impl Receiver {
    fn new(own: Segment) -> Self {
        let returns = Arc::new(Returns { own, releases: Mutex::default() });
        let (consumer, octets, borrowed) = (RingConsumer::new(RING), Vec::new(), VecDeque::new());
        Self { returns, consumer, octets, borrowed, number: 0, attached: 0 }
    }

    /// Takes a record, if there is one.
    fn receive(&mut self, sender: &PeerSegment, slabs: &PeerSlabs) -> bool {
        let Some(record) = self.consumer.pop(sender, &mut self.octets) else { return false };
        verify(&self.octets, self.number);
        if let Some(attachment) = record.unwrap().attachment {
            let chunk = slabs.borrow(&attachment, &self.returns).unwrap();
            verify(chunk.bytes(), self.number);
            self.borrowed.push_back((self.number, chunk));
            self.attached += 1;
            if self.borrowed.len() > BORROWED {
                self.let_go_of_one();
            }
        }
        self.consumer.publish(&self.returns.own);
        self.number += 1;
        true
    }

    fn let_go_of_one(&mut self) -> bool {
        let Some((number, chunk)) = self.borrowed.pop_front() else { return false };
        verify(chunk.bytes(), number);
        true
    }
}

#[test]
#[cfg_attr(miri, ignore = "processes")]
fn what_a_killed_sender_has_put_in_is_whole_and_stays() {
    let mut random = Random(0x5eed);
    let (mut records, mut attached) = (0, 0);
    for _ in 0..kills() {
        let mut receiver = Receiver::new(Segment::create(segment_bytes(RING), Pages::Usual).unwrap());
        let mut sender = Process::start("send", &receiver.returns.own, None);
        let fd = number_after(&mut sender.lines, "slab ");
        let mut slabs = PeerSlabs::new(POOL);
        slabs.insert(0, peer(sender.child.id(), fd).as_fd(), CHUNK as u64).unwrap();
        let (begin, life) = (Instant::now(), Duration::from_micros(random.below(3_000)));
        while begin.elapsed() < life {
            receiver.receive(&sender.segment, &slabs);
        }
        sender.child.kill().unwrap();
        while sender.is_running() {
            receiver.receive(&sender.segment, &slabs);
        }
        while receiver.receive(&sender.segment, &slabs) {}
        // What is borrowed outlives the sender.
        while receiver.let_go_of_one() {}
        assert_eq!(slabs.borrowed_bytes(), 0);
        records += receiver.number;
        attached += receiver.attached;
    }
    assert!(records > 0 && attached > 0, "{records} records, {attached} with a payload");
}

#[test]
#[cfg_attr(miri, ignore = "processes")]
fn what_a_killed_receiver_has_borrowed_is_back() {
    let mut random = Random(0xdead);
    let mut records = 0;
    for _ in 0..kills() {
        let own = Segment::create(segment_bytes(RING), Pages::Usual).unwrap();
        let pool = Pool::new(POOL, Pages::Usual);
        let first = pool.allocate(CHUNK).unwrap();
        let mut receiver = Process::start("receive", &own, Some(&first));
        drop(first);
        let (begin, life) = (Instant::now(), Duration::from_micros(random.below(3_000)));
        let mut is_killed = false;
        let Process { child, segment, .. } = &mut receiver;
        records += send(&own, segment, &pool, || {
            if !is_killed && begin.elapsed() >= life {
                child.kill().unwrap();
                is_killed = true;
            }
            child.try_wait().unwrap().is_none()
        });
        assert!(is_killed, "it did not end by itself");
        // The link is gone, and its table of what was lent with it.
        assert!(pool.trim(plainsong_proto::time::Instant(1), plainsong_proto::time::Duration::ZERO));
        assert_eq!(pool.bytes(), 0);
    }
    assert!(records > 0);
}
