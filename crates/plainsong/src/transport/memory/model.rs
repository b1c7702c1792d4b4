//! Rings, wake-ups and lent chunks between two processes, under a model checker: many schedules of two
//! threads, chosen at random and by PCT. As in `runtime/model.rs`, mistakes made on purpose are noticed.
//!
//! Whatever one side does with a segment is a step, before which the other side may go on; a side that dies
//! does so between two steps, and what it would have written afterwards is never written. The checker knows
//! sequentially consistent memory only: why weaker orderings suffice is said in `ring.rs`, and Miri, which
//! knows them, runs the same ends in `ring/tests.rs`.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use super::layout::{RING_BYTES_LEAST, segment_bytes};
use super::lending::{Lending, LetGo, PeerSlabs};
use super::own::{OwnQueue, Record};
use super::pool::{Chunk, Pool};
use super::ring::{
    PeerSleep, PushError, ReleaseConsumer, ReleaseProducer, RingConsumer, RingProducer, announce_awake,
    announce_sleep, before_last_look,
};
use super::segment::{HeapMemory, Memory, OwnMemory, Pages};
use crate::base::sync::atomic::{AtomicUsize, Ordering};
use crate::base::sync::{self, Condvar, Mutex, lock};

/// Schedules of each kind.
const SCHEDULES: usize = 4_000;
/// How often PCT lets a thread of lower priority go first.
const PCT_DEPTH: usize = 3;
const BYTES: usize = RING_BYTES_LEAST;

fn holds(story: fn()) {
    let run = move || {
        sync::begin_run(false);
        story();
    };
    shuttle::check_random(run, SCHEDULES);
    shuttle::check_pct(run, SCHEDULES, PCT_DEPTH);
}

/// A segment of which each use is a step.
struct Stepped {
    memory: HeapMemory,
    steps: AtomicUsize,
    /// Its owner dies before this step.
    life: usize,
}

impl Stepped {
    fn new(life: usize) -> Self {
        Self { memory: HeapMemory::new(segment_bytes(BYTES)), steps: AtomicUsize::new(0), life }
    }

    /// A place where the other thread may go on.
    fn pause(&self) {
        self.steps.load(Ordering::SeqCst);
    }

    /// As [`Self::pause`]: whether the owner lives. Only it writes.
    fn step(&self) -> bool {
        self.steps.fetch_add(1, Ordering::SeqCst) < self.life
    }

    fn is_dead(&self) -> bool {
        self.steps.load(Ordering::SeqCst) >= self.life
    }
}

impl Memory for Stepped {
    fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    fn load32(&self, offset: usize) -> u32 {
        self.pause();
        self.memory.load32(offset)
    }

    fn load64(&self, offset: usize) -> u64 {
        self.pause();
        self.memory.load64(offset)
    }

    fn copy_out(&self, offset: usize, bytes: usize, into: &mut Vec<u8>) {
        for (at, bytes) in [(0, bytes / 2), (bytes / 2, bytes - bytes / 2)] {
            self.pause();
            self.memory.copy_out(offset + at, bytes, into);
        }
    }
}

impl OwnMemory for Stepped {
    fn store32(&self, offset: usize, word: u32) {
        if self.step() {
            self.memory.store32(offset, word);
        }
    }

    fn store64(&self, offset: usize, word: u64) {
        if self.step() {
            self.memory.store64(offset, word);
        }
    }

    fn release64(&self, offset: usize, word: u64) {
        if self.step() {
            self.memory.release64(offset, word);
        }
    }

    fn copy_in(&self, offset: usize, octets: &[u8]) {
        let (first, second) = octets.split_at(octets.len() / 2);
        for (at, part) in [(0, first), (first.len(), second)] {
            if self.step() {
                self.memory.copy_in(offset + at, part);
            }
        }
    }
}

/// What an eventfd is for a link.
#[derive(Default)]
struct Event {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Event {
    fn set(&self) {
        *lock(&self.is_set) = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let mut is_set = lock(&self.is_set);
        while !*is_set {
            is_set = self.changed.wait(is_set).unwrap();
        }
        *is_set = false;
    }
}

/// Both segments of a link and the event of the one that receives.
struct Link {
    sender: Stepped,
    receiver: Stepped,
    event: Event,
}

impl Link {
    fn new(life: usize) -> Arc<Self> {
        let (sender, receiver) = (Stepped::new(life), Stepped::new(usize::MAX));
        Arc::new(Self { sender, receiver, event: Event::default() })
    }
}

/// Few go into the ring at a time, and they go around its end.
const RECORDS: usize = 5;
/// So many go in at once: a sender without a receiver waits for nothing.
const RECORDS_WITH_ROOM: usize = 3;

fn content(number: usize) -> Vec<u8> {
    vec![number as u8 + 1; 1_000 + number * 97]
}

/// How many records the sender has put in before it died.
fn send_records(link: &Link, records: usize) -> usize {
    let (mut producer, mut peer_sleep) = (RingProducer::new(BYTES), PeerSleep::default());
    let (mut number, mut told) = (0, 0);
    while number < records && !link.sender.is_dead() {
        let octets = content(number);
        let parts = octets.chunks(999);
        match producer.push(&link.sender, &link.receiver, parts, octets.len(), None) {
            Ok(()) => number += 1,
            Err(PushError::Full) => {
                thread::yield_now();
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        if !link.sender.is_dead() {
            told = number;
            if peer_sleep.must_wake(&link.receiver) {
                link.event.set();
            }
        }
    }
    if link.sender.is_dead() {
        // The kernel tells.
        link.event.set();
    }
    told
}

/// Sleeps whenever there is nothing.
fn receive_records(link: &Link, records: usize, looks_again: bool) -> usize {
    let (mut consumer, mut octets) = (RingConsumer::new(BYTES), Vec::new());
    let (mut number, mut epoch) = (0, 0);
    while number < records {
        if let Some(record) = consumer.pop(&link.sender, &mut octets) {
            record.unwrap();
            assert_eq!(octets, content(number));
            consumer.publish(&link.receiver);
            number += 1;
            continue;
        }
        epoch += 1;
        announce_sleep(&link.receiver, epoch);
        before_last_look();
        if !looks_again || !consumer.has_more(&link.sender) {
            let is_dead = link.sender.is_dead();
            if is_dead && !consumer.has_more(&link.sender) {
                break;
            }
            if !is_dead {
                link.event.wait();
            }
        }
        announce_awake(&link.receiver);
    }
    number
}

fn hand_over(records: usize, life: usize, looks_again: bool) {
    let link = Link::new(life);
    let sender = Arc::clone(&link);
    let sends = thread::spawn(move || send_records(&sender, records));
    let received = receive_records(&link, records, looks_again);
    let told = sends.join().unwrap();
    assert!(received >= told, "what a sender has put in arrives though it died: {received} of {told}");
    assert!(life < usize::MAX || received == records);
}

#[test]
fn records_arrive_whole_and_in_order_and_no_wake_up_is_lost() {
    holds(|| hand_over(RECORDS, usize::MAX, true));
}

#[test]
fn a_sender_that_dies_anywhere_leaves_whole_records() {
    holds(|| hand_over(RECORDS, thread_rng().gen_range(0..60), true));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_receiver_that_does_not_look_again_is_noticed() {
    shuttle::check_random(
        || {
            sync::begin_run(false);
            hand_over(RECORDS_WITH_ROOM, usize::MAX, false);
        },
        SCHEDULES,
    );
}

#[test]
#[should_panic(expected = "deadlock")]
fn an_event_that_wakes_nobody_is_noticed() {
    shuttle::check_random(
        || {
            sync::begin_run(true);
            hand_over(RECORDS_WITH_ROOM, usize::MAX, true);
        },
        SCHEDULES,
    );
}

/// Gives slots back by way of the receiver's segment.
struct Returns {
    link: Arc<Link>,
    releases: Mutex<ReleaseProducer>,
}

impl LetGo for Returns {
    fn let_go(&self, slot: u32) {
        lock(&self.releases).push(&self.link.receiver, slot);
    }
}

const CHUNK_BYTES: usize = 4_096;
/// So that each chunk is used several times.
const CHUNKS: u64 = 2;
const LOANS: usize = 4;

/// Writes each payload into a chunk, and lends it.
fn send_loans(link: &Link, pool: &Pool, slabs: &Mutex<PeerSlabs>) {
    let mut producer = RingProducer::new(BYTES);
    let (mut lending, mut releases) = (Lending::new(), ReleaseConsumer::default());
    let mut number = 0;
    while number < LOANS && !link.receiver.is_dead() {
        let mut drain = |lending: &mut Lending<Chunk>| {
            releases.drain(&link.receiver, |slot| assert!(lending.release(slot).is_some())).unwrap();
        };
        let Ok(mut chunk) = pool.allocate(CHUNK_BYTES) else {
            drain(&mut lending);
            thread::yield_now();
            continue;
        };
        // In two steps, as the receiver reads.
        for half in chunk.bytes_mut().chunks_mut(CHUNK_BYTES / 2) {
            half.fill(number as u8);
            link.sender.pause();
        }
        let id = chunk.slab().id();
        if !lock(slabs).knows(id) {
            lock(slabs).insert(id, chunk.slab().fd(), CHUNK_BYTES as u64).unwrap();
        }
        let mut attachment = chunk.attachment(&(0..CHUNK_BYTES), 0);
        attachment.slot = lending.lend(chunk, CHUNK_BYTES as u64).unwrap();
        let pushed = producer.push(&link.sender, &link.receiver, std::iter::empty(), 0, Some(&attachment));
        pushed.unwrap();
        number += 1;
        drain(&mut lending);
    }
    // The link ends: whatever is lent is back.
}

/// Reads each payload in place. One that lets go too early finds what was written later.
fn receive_loans(link: &Arc<Link>, slabs: &Mutex<PeerSlabs>, lets_go_early: bool, dies_at: usize) {
    let releases = Mutex::new(ReleaseProducer::default());
    let returns = Arc::new(Returns { link: Arc::clone(link), releases });
    let (mut consumer, mut octets) = (RingConsumer::new(BYTES), Vec::new());
    let mut number = 0;
    while number < LOANS.min(dies_at) {
        let Some(record) = consumer.pop(&link.sender, &mut octets) else {
            thread::yield_now();
            continue;
        };
        consumer.publish(&link.receiver);
        let attachment = record.unwrap().attachment.unwrap();
        let borrowed = lock(slabs).borrow(&attachment, &returns).unwrap();
        if lets_go_early {
            returns.let_go(attachment.slot);
        }
        for half in borrowed.bytes().chunks(CHUNK_BYTES / 2) {
            assert!(half.iter().all(|octet| *octet == number as u8), "payload {number} as it was written");
            link.sender.pause();
        }
        number += 1;
        if lets_go_early || number == dies_at {
            std::mem::forget(borrowed);
        }
    }
    if number == dies_at {
        // All its steps are done.
        link.receiver.steps.store(usize::MAX, Ordering::SeqCst);
    }
}

fn lend(lets_go_early: bool, dies_at: usize) {
    let pool = Arc::new(Pool::new(CHUNKS * CHUNK_BYTES as u64, Pages::Usual));
    let link = Link::new(usize::MAX);
    let slabs = Arc::new(Mutex::new(PeerSlabs::new(u64::MAX)));
    let sender = {
        let (link, pool, slabs) = (Arc::clone(&link), Arc::clone(&pool), Arc::clone(&slabs));
        thread::spawn(move || send_loans(&link, &pool, &slabs))
    };
    receive_loans(&link, &slabs, lets_go_early, dies_at);
    sender.join().unwrap();
    let all: Vec<Chunk> = std::iter::from_fn(|| pool.allocate(CHUNK_BYTES).ok()).collect();
    assert_eq!(all.len() as u64, CHUNKS, "all are back");
}

#[test]
fn a_payload_stays_as_it_was_written_while_it_is_borrowed() {
    holds(|| lend(false, usize::MAX));
}

#[test]
fn a_borrower_that_dies_gives_all_back() {
    holds(|| lend(false, thread_rng().gen_range(0..=LOANS)));
}

#[test]
#[should_panic(expected = "as it was written")]
fn a_borrower_that_lets_go_early_is_noticed() {
    shuttle::check_random(
        || {
            sync::begin_run(false);
            lend(true, usize::MAX);
        },
        SCHEDULES,
    );
}

/// A peer is lent a chunk of its own and one that the other one is lent, too, and gives both back.
fn take_a_share(pool: &Pool, common: &Chunk) {
    let own = pool.allocate(CHUNK_BYTES).unwrap();
    let bytes = CHUNK_BYTES as u64;
    let has = own.lend(0).map_or(0, |_| bytes);
    let is_common = common.lend(has).is_some();
    if is_common {
        common.take_back();
    }
    if has > 0 {
        own.take_back();
    }
}

#[test]
fn what_peers_have_is_counted_whoever_is_lent_it_first_and_last() {
    holds(|| {
        let bytes = CHUNK_BYTES as u64;
        let pool = Arc::new(Pool::new(8 * bytes, Pages::Usual));
        let common = Arc::new(pool.allocate(CHUNK_BYTES).unwrap());
        let other = {
            let (pool, common) = (Arc::clone(&pool), Arc::clone(&common));
            thread::spawn(move || take_a_share(&pool, &common))
        };
        take_a_share(&pool, &common);
        other.join().unwrap();
        let all: Vec<Chunk> = (0..4).map(|_| pool.allocate(CHUNK_BYTES).unwrap()).collect();
        assert_eq!(all[0].lend(0), Some(bytes), "nothing is lent, so that a third of three is a share");
        assert_eq!(all[1].lend(bytes), Some(2 * bytes / 3));
        assert_eq!(all[2].lend(2 * bytes), None);
        assert_eq!(all[3].lend(0), Some(bytes / 3), "the next gets what is left");
    });
}

/// What a node has sent to itself, as its receivers got it.
struct OwnTraffic {
    queue: OwnQueue,
    event: Event,
    received: Mutex<Vec<(u8, u8)>>,
}

const OWN_SENDERS: u8 = 3;
const OWN_RECORDS: u8 = 2;

impl OwnTraffic {
    fn receive(&self, record: &mut Record) {
        while self.queue.pop(record) {
            // Somebody else who received now would be first.
            thread::yield_now();
            lock(&self.received).push((record.bytes[0], record.bytes[1]));
        }
    }

    fn is_complete(&self) -> bool {
        lock(&self.received).len() == usize::from(OWN_SENDERS * OWN_RECORDS)
    }

    /// The last one only sends, as the timer does; the others receive, too.
    fn send(&self, sender: u8, records: u8, looks_again: bool) {
        for number in 0..records {
            let octets = [sender, number];
            assert_eq!(self.queue.push(std::iter::once(&octets[..]), None, (1 << 10, 0)), Some(2));
            if sender + 1 == OWN_SENDERS {
                if self.queue.must_wake() {
                    self.event.set();
                }
                continue;
            }
            let mut claim = self.queue.claim();
            while let Some(claimed) = claim {
                self.receive(&mut Record::default());
                claim = if looks_again {
                    self.queue.release(claimed)
                } else {
                    self.queue.stop_receiving(claimed);
                    None
                };
            }
            if self.is_complete() {
                self.event.set();
            }
        }
    }

    /// Sleeps whenever there is nothing, as it does now, until all is there.
    fn receive_all(&self) {
        let mut sleep = 1;
        while !self.is_complete() {
            if !self.queue.must_stay_awake() && !self.is_complete() {
                self.event.wait();
            }
            if self.queue.begin_receiving() {
                self.receive(&mut Record::default());
            }
            sleep += 1;
            self.queue.announce_sleep(sleep);
        }
    }
}

/// Its receiver sleeps.
fn own_traffic() -> Arc<OwnTraffic> {
    let (queue, event, received) = (OwnQueue::default(), Event::default(), Mutex::default());
    queue.announce_sleep(1);
    Arc::new(OwnTraffic { queue, event, received })
}

fn own_traffic_is_received() {
    let traffic = own_traffic();
    let senders: Vec<_> = (0..OWN_SENDERS)
        .map(|sender| {
            let traffic = Arc::clone(&traffic);
            thread::spawn(move || traffic.send(sender, OWN_RECORDS, true))
        })
        .collect();
    traffic.receive_all();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    let received = lock(&traffic.received);
    for sender in 0..OWN_SENDERS {
        let of_one: Vec<u8> = received.iter().filter(|(of, _)| *of == sender).map(|(_, it)| *it).collect();
        assert_eq!(of_one, (0..OWN_RECORDS).collect::<Vec<_>>(), "each once and in order");
    }
}

#[test]
fn what_a_node_sends_to_itself_is_received_once_and_in_order_whoever_receives() {
    holds(own_traffic_is_received);
}

/// Two senders of so many records, and a receiver that nobody wakes.
fn senders_receive(records: u8, looks_again: bool) {
    let traffic = own_traffic();
    let senders = [0, 1].map(|sender| {
        let traffic = Arc::clone(&traffic);
        thread::spawn(move || traffic.send(sender, records, looks_again))
    });
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    assert!(traffic.queue.is_empty(), "a record is left behind");
    assert!(traffic.queue.sleeps(), "somebody keeps the right to receive");
}

#[test]
fn while_the_receiver_sleeps_no_record_is_left_behind() {
    holds(|| senders_receive(OWN_RECORDS, true));
}

/// With one record each, so that no later one makes up for it.
#[test]
#[should_panic(expected = "a record is left behind")]
fn a_sender_that_receives_and_does_not_look_again_is_noticed() {
    holds(|| senders_receive(1, false));
}
