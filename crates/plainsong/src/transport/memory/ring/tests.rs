//! Rings between two ends, over memory of the heap.

mod killed;

use std::time::{Duration, Instant};

use super::super::layout::{
    Header, HeaderError, RING_BYTES_LEAST, is_ring, read_echo, segment_bytes, write_echo,
};
use super::super::segment::HeapMemory;
use super::*;

const BYTES: usize = RING_BYTES_LEAST;

/// Both segments of a link, and the ends of one direction.
struct Road {
    sender: HeapMemory,
    receiver: HeapMemory,
    producer: RingProducer,
    consumer: RingConsumer,
}

impl Road {
    fn new() -> Self {
        let memory = || HeapMemory::new(segment_bytes(BYTES));
        let (producer, consumer) = (RingProducer::new(BYTES), RingConsumer::new(BYTES));
        Self { sender: memory(), receiver: memory(), producer, consumer }
    }

    fn push(&mut self, octets: &[u8]) -> Result<(), PushError> {
        self.push_with(octets, None)
    }

    fn push_with(&mut self, octets: &[u8], attachment: Option<&Attachment>) -> Result<(), PushError> {
        let (sender, receiver) = (&self.sender, &self.receiver);
        self.producer.push(sender, receiver, std::iter::once(octets), octets.len(), attachment)
    }

    fn pop(&mut self) -> Option<Result<Vec<u8>, Corrupt>> {
        let mut octets = Vec::new();
        let record = self.consumer.pop(&self.sender, &mut octets)?;
        self.consumer.publish(&self.receiver);
        Some(record.map(|_| octets))
    }
}

/// Octets that no other number has at this length.
fn content(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (number * 31 + at * 7) as u8).collect()
}

#[test]
fn records_come_out_as_they_went_in_however_often_the_ring_goes_around() {
    let mut road = Road::new();
    let rounds = if cfg!(miri) { 40 } else { 5_000 };
    let length = |number: usize| number * 37 % 900;
    let (mut put, mut taken) = (0, 0);
    while taken < rounds {
        while put < rounds && road.push(&content(put, length(put))).is_ok() {
            put += 1;
        }
        assert!(road.consumer.has_more(&road.sender));
        // Some stay, so that both ends meet everywhere.
        while taken + put % 3 < put || (put == rounds && taken < put) {
            assert_eq!(road.pop(), Some(Ok(content(taken, length(taken)))));
            taken += 1;
        }
    }
    assert_eq!(road.pop(), None);
    assert!(!road.consumer.has_more(&road.sender));
}

#[test]
fn parts_are_joined_and_attachments_kept() {
    let mut road = Road::new();
    let attachment = Attachment { slab: 1, slot: u32::MAX, offset: 1 << 40, bytes: u64::MAX };
    let parts: [&[u8]; 4] = [b"one", b"", b", two", b", three and four"];
    for _ in 0..if cfg!(miri) { 40 } else { 500 } {
        let bytes = parts.concat().len();
        let Road { sender, receiver, producer, consumer } = &mut road;
        producer.push(sender, receiver, parts.into_iter(), bytes, Some(&attachment)).unwrap();
        let mut octets = b"what was there".to_vec();
        let record = consumer.pop(sender, &mut octets);
        assert_eq!(record, Some(Ok(Record { attachment: Some(attachment) })));
        assert_eq!(octets, parts.concat());
        consumer.publish(receiver);
    }
}

#[test]
fn a_full_ring_takes_nothing_until_room_is_told() {
    let mut road = Road::new();
    let longest = content(1, record_bytes_max(BYTES));
    assert_eq!(road.push(&content(1, longest.len() + 1)), Err(PushError::TooLong));
    assert_eq!(road.push(&longest), Ok(()));
    assert_eq!(road.push(&longest), Ok(()));
    assert_eq!(road.push(&longest), Err(PushError::Full));
    let mut octets = Vec::new();
    assert!(road.consumer.pop(&road.sender, &mut octets).is_some());
    assert_eq!(road.push(&longest), Err(PushError::Full), "it was read, but not told");
    road.consumer.publish(&road.receiver);
    assert_eq!(road.push(&longest), Ok(()));
    assert_eq!(road.pop(), Some(Ok(longest.clone())));
    assert_eq!(road.pop(), Some(Ok(longest)));
    assert_eq!(road.pop(), None);
}

#[test]
fn an_empty_ring_takes_its_own_size_in_empty_records() {
    let mut road = Road::new();
    for _ in 0..BYTES / WORD {
        assert_eq!(road.push(&[]), Ok(()));
    }
    assert_eq!(road.push(&[]), Err(PushError::Full));
    assert_eq!(road.producer.used(), BYTES);
    for _ in 0..BYTES / WORD {
        assert_eq!(road.pop(), Some(Ok(Vec::new())));
    }
    assert_eq!(road.pop(), None);
}

#[test]
fn what_a_sender_cannot_have_written_is_corrupt() {
    let head = |value: u64| {
        let mut road = Road::new();
        road.push(b"one").unwrap();
        assert!(road.pop().is_some());
        road.sender.store64(HEAD, value);
        assert!(road.consumer.has_more(&road.sender) || value == 16);
        road.pop()
    };
    for wrong in [0, 8, 17, 16 + BYTES as u64 + 8, u64::MAX, u64::MAX - 7, 1 << 63] {
        assert_eq!(head(wrong), Some(Err(Corrupt::Head)), "{wrong}");
    }
    assert_eq!(head(16), None);
    let record = |word: u64| {
        let mut road = Road::new();
        road.push(b"12345678").unwrap();
        road.sender.store64(RING, word);
        road.pop()
    };
    let of = |bytes: u64, kind: u32| bytes | u64::from(kind) << 32;
    assert_eq!(record(of(8, PLAIN)), Some(Ok(b"12345678".to_vec())));
    for wrong in [of(9, PLAIN), of(0, ATTACHED), of(u64::from(u32::MAX), PLAIN), of(BYTES as u64, PLAIN)] {
        assert_eq!(record(wrong), Some(Err(Corrupt::Length)), "{wrong:x}");
    }
    for wrong in [of(8, 0), of(8, 3), u64::MAX] {
        assert_eq!(record(wrong), Some(Err(Corrupt::Kind)), "{wrong:x}");
    }
}

#[test]
fn what_a_receiver_cannot_have_read_is_corrupt() {
    let consumed = |value: u64| {
        let mut road = Road::new();
        let longest = content(1, record_bytes_max(BYTES));
        road.push(&longest).unwrap();
        assert!(road.pop().is_some());
        road.producer.look(&road.receiver).unwrap();
        road.push(&longest).unwrap();
        road.push(&longest).unwrap();
        assert_eq!(road.push(&longest), Err(PushError::Full));
        road.receiver.store64(CONSUMED, value);
        road.push(&longest)
    };
    let one = taken(record_bytes_max(BYTES), false) as u64;
    assert_eq!(consumed(2 * one), Ok(()));
    assert_eq!(consumed(3 * one), Ok(()));
    for wrong in [0, one - 8, 2 * one + 1, 3 * one + 8, u64::MAX] {
        assert_eq!(consumed(wrong), Err(PushError::Corrupt(Corrupt::Consumed)), "{wrong}");
    }
}

#[test]
fn released_slots_arrive_in_order_however_many_there_were() {
    let (own, mut producer, mut consumer) =
        (HeapMemory::new(segment_bytes(BYTES)), ReleaseProducer::default(), ReleaseConsumer::default());
    let rounds = if cfg!(miri) { 10 } else { 5_000 };
    let mut next = 0;
    for round in 0..rounds {
        let many = round * 13 % (LENT_MAX + 1);
        (0..many).for_each(|at| producer.push(&own, next + at as u32));
        let mut slots = Vec::new();
        consumer.drain(&own, |slot| slots.push(slot)).unwrap();
        assert_eq!(slots, (next..next + many as u32).collect::<Vec<_>>());
        next += many as u32;
    }
    own.store64(RELEASED, u64::from(next) + LENT_MAX as u64 + 1);
    assert_eq!(consumer.drain(&own, |_| unreachable!()), Err(Corrupt::Releases));
    own.store64(RELEASED, u64::from(next) - 1);
    assert_eq!(consumer.drain(&own, |_| unreachable!()), Err(Corrupt::Releases));
}

#[test]
fn a_sleeper_is_woken_once_for_each_sleep() {
    let (own, mut peer_sleep) = (HeapMemory::new(segment_bytes(BYTES)), PeerSleep::default());
    assert!(!peer_sleep.must_wake(&own));
    announce_sleep(&own, 1);
    before_last_look();
    assert!(peer_sleep.must_wake(&own));
    assert!(!peer_sleep.must_wake(&own));
    announce_awake(&own);
    assert!(!peer_sleep.must_wake(&own));
    announce_sleep(&own, 2);
    assert!(peer_sleep.must_wake(&own));
}

#[test]
fn a_header_is_read_as_it_was_written_or_refused() {
    let memory = HeapMemory::new(segment_bytes(BYTES));
    assert_eq!(Header::read(&memory), Err(HeaderError::Magic));
    let header = Header { ring_bytes: BYTES, nonce: 77 };
    header.write(&memory);
    assert_eq!(Header::read(&memory), Ok(header));
    assert_eq!(read_echo(&memory), 0);
    write_echo(&memory, 77);
    assert_eq!(read_echo(&memory), 77);
    for ring_bytes in [0, 8, BYTES - 8, 2 * BYTES, usize::MAX] {
        Header { ring_bytes, nonce: 77 }.write(&memory);
        assert!(matches!(Header::read(&memory), Err(HeaderError::Ring { .. })), "{ring_bytes}");
    }
    memory.store64(8, 3);
    assert_eq!(Header::read(&memory), Err(HeaderError::Version { found: 3 }));
    assert_eq!(Header::read(&HeapMemory::new(4_096)), Err(HeaderError::Magic));
    assert!(is_ring(256 << 10) && !is_ring(100_000) && !is_ring(0) && !is_ring(1 << 40));
}

const PATIENCE: Duration = Duration::from_secs(60);

/// Lets the other thread go on, if there is still one.
fn wait(begin: Instant) {
    assert!(begin.elapsed() < PATIENCE, "the other thread does nothing any more");
    std::thread::yield_now();
}

/// Two threads, as two processes would: what one publishes the other one sees as a whole. Miri watches.
#[test]
fn two_threads_hand_records_and_slots_over() {
    let (begin, rounds) = (Instant::now(), if cfg!(miri) { 60 } else { 50_000 });
    let memory = || HeapMemory::new(segment_bytes(BYTES));
    let (sender, receiver) = (memory(), memory());
    let length = |number: usize| number * 37 % 300;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut producer, mut releases) = (RingProducer::new(BYTES), ReleaseConsumer::default());
            let (mut released, mut number) = (0, 0);
            while number < rounds {
                let octets = content(number, length(number));
                let attachment =
                    Attachment { slab: 0, slot: number as u32, offset: 0, bytes: octets.len() as u64 };
                let parts = octets.chunks(100);
                match producer.push(&sender, &receiver, parts, octets.len(), Some(&attachment)) {
                    Ok(()) => number += 1,
                    Err(PushError::Full) => wait(begin),
                    Err(error) => panic!("{error}"),
                }
                let mut each = |slot| {
                    assert_eq!(slot, released);
                    released += 1;
                };
                releases.drain(&receiver, &mut each).unwrap();
            }
        });
        let (mut consumer, mut releases) = (RingConsumer::new(BYTES), ReleaseProducer::default());
        let (mut octets, mut number) = (Vec::new(), 0);
        while number < rounds {
            let Some(record) = consumer.pop(&sender, &mut octets) else {
                wait(begin);
                continue;
            };
            assert_eq!(record.unwrap().attachment.unwrap().slot, number as u32);
            assert_eq!(octets, content(number, length(number)));
            // The slot first: whoever has the room again has read of all before.
            releases.push(&receiver, number as u32);
            consumer.publish(&receiver);
            number += 1;
        }
    });
}

/// One sleeps when there is nothing, the other one wakes it. Miri knows memory that is not sequentially
/// consistent: without the fences it finds schedules in which neither sees what the other one wrote.
#[test]
fn nobody_sleeps_beside_a_record() {
    let (begin, rounds) = (Instant::now(), if cfg!(miri) { 30_u32 } else { 20_000 });
    let memory = || HeapMemory::new(segment_bytes(BYTES));
    let (sender, receiver) = (memory(), memory());
    let (woken, event) = (std::sync::Mutex::new(false), std::sync::Condvar::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut producer, mut peer_sleep) = (RingProducer::new(BYTES), PeerSleep::default());
            for number in 0..rounds {
                let octets = number.to_le_bytes();
                while producer.push(&sender, &receiver, std::iter::once(&octets[..]), 4, None).is_err() {
                    wait(begin);
                }
                if peer_sleep.must_wake(&receiver) {
                    *woken.lock().unwrap() = true;
                    event.notify_one();
                }
            }
        });
        let (mut consumer, mut octets) = (RingConsumer::new(BYTES), Vec::new());
        let (mut number, mut epoch) = (0_u32, 0);
        while number < rounds {
            if let Some(record) = consumer.pop(&sender, &mut octets) {
                record.unwrap();
                assert_eq!(octets, number.to_le_bytes());
                consumer.publish(&receiver);
                number += 1;
                continue;
            }
            epoch += 1;
            announce_sleep(&receiver, epoch);
            before_last_look();
            if !consumer.has_more(&sender) {
                // Miri calls it a deadlock if nobody comes.
                let is_asleep = |woken: &mut bool| !*woken;
                let slept = event.wait_timeout_while(woken.lock().unwrap(), PATIENCE, is_asleep);
                let (mut woken, timeout) = slept.unwrap();
                assert!(!timeout.timed_out(), "record {number} came and nobody was woken");
                *woken = false;
            }
            announce_awake(&receiver);
        }
    });
}
