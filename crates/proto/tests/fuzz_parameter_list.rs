//! Seeded mutation fuzzing of the wire on stable Rust. `PLAINSONG_FUZZ_SECONDS` says how long, default 1;
//! `PLAINSONG_FUZZ_SEED` repeats one run. The first examples are discovery data of ours and the captured
//! datagrams of others.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{env, fs};

use plainsong_proto::discovery::builtin::{EndpointData, ParticipantData, ParticipantMessage};
use plainsong_proto::filter::ContentFilter;
use plainsong_proto::guid::{EntityId, GuidPrefix};
use plainsong_proto::locator::Locator;
use plainsong_proto::outbox::DataHeader;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::Payload;
use plainsong_proto::qos::{ConsistencyKind, Property, QosSet};
use plainsong_proto::seq::{SequenceNumber, SequenceSet};
use plainsong_proto::wire::Gap;

mod counting;
mod wire_fuzzing;

/// Octets one run may allocate for each octet it was given (R3): the same octets are decoded several
/// times, and an empty string in memory is larger than on the wire.
const ALLOCATED_FACTOR: usize = 256;
/// Octets one run may allocate whatever it was given.
const ALLOCATED_BASE: usize = 16 << 10;

#[test]
fn fuzz_parameter_list() {
    fuzz(&payloads(), wire_fuzzing::parameter_list);
}

#[test]
fn fuzz_datagram() {
    fuzz(&datagrams(), wire_fuzzing::datagram);
}

fn fuzz(examples: &[Vec<u8>], run: impl Fn(&[u8]) + std::panic::RefUnwindSafe) {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let end = Instant::now() + Duration::from_secs(number("PLAINSONG_FUZZ_SECONDS").unwrap_or(1));
    examples.iter().for_each(|example| run(example));
    let only = number("PLAINSONG_FUZZ_SEED");
    let mut runs = 0_u64;
    for seed in only.map_or(0..=u64::MAX, |seed| seed..=seed) {
        if Instant::now() >= end {
            break;
        }
        let octets = Random::new(seed).mutated(examples);
        let (result, allocated) = counting::allocated_by(|| std::panic::catch_unwind(|| run(&octets)));
        assert!(result.is_ok(), "repeat with PLAINSONG_FUZZ_SEED={seed}");
        let limit = ALLOCATED_BASE + ALLOCATED_FACTOR * octets.len();
        assert!(allocated.octets <= limit, "{allocated:?}; repeat with PLAINSONG_FUZZ_SEED={seed}");
        runs += 1;
    }
    println!("{runs} runs");
    assert!(runs > 0);
}

/// Discovery data with many parameters.
fn payloads() -> Vec<Vec<u8>> {
    let prefix = GuidPrefix([1; 12]);
    let locator = Locator::udp(core::net::Ipv4Addr::LOCALHOST.into(), 7410);
    let participant = ParticipantData {
        domain_id: Some(3),
        domain_tag: "tag".to_owned(),
        meta_unicast: vec![locator; 3],
        default_unicast: vec![locator],
        name: "name".to_owned(),
        user_data: vec![7; 30],
        properties: vec![Property { name: "n".to_owned(), value: "v".to_owned(), propagate: true }; 2],
        ..ParticipantData::new(prefix.participant())
    };
    let endpoint = |entity: EntityId| EndpointData {
        qos: QosSet {
            partition: vec!["p1".to_owned(), "x*".to_owned()],
            topic_data: vec![1; 5],
            ..QosSet::writer().keep_last(5)
        },
        unicast: vec![locator],
        ..EndpointData::new(prefix.entity(entity), "Square".to_owned(), "ShapeType".to_owned())
    };
    let content_filter = ContentFilter {
        topic_name: "Filtered".to_owned(),
        related_topic_name: "Square".to_owned(),
        class_name: ContentFilter::SQL.to_owned(),
        expression: "color = %0 AND x < %1".to_owned(),
        parameters: vec!["'RED'".to_owned(), "3".to_owned()],
    };
    let filtering =
        EndpointData { content_filter: Some(content_filter), ..endpoint(EntityId::user_reader(1, false)) };
    let mut atomic = endpoint(EntityId::user_writer(2, true));
    atomic.qos = atomic.qos.consistency(ConsistencyKind::Atomic);
    // What two filters said about a sample.
    let verdicts =
        [&[0x55, 0, 44, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 2, 0, 0, 0][..], &[0x62; 32], &[1, 0, 0, 0]].concat();
    let message = ParticipantMessage { prefix, kind: ParticipantMessage::AUTOMATIC, data: vec![1; 9] };
    vec![
        participant.encode(),
        endpoint(EntityId::user_writer(1, true)).encode(),
        endpoint(EntityId::user_reader(1, true)).encode(),
        filtering.encode(),
        atomic.encode(),
        verdicts,
        message.encode(),
    ]
}

fn datagrams() -> Vec<Vec<u8>> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../interop/golden");
    let files = fs::read_dir(directory).expect("golden files").map(|entry| entry.expect("a file").path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|it| it == "hex")).collect();
    files.sort();
    let octets = |path: &PathBuf| -> Vec<u8> {
        let text = fs::read_to_string(path).expect("a golden file");
        let digits: String = text.lines().filter(|line| !line.starts_with('#')).collect();
        let pairs = digits.as_bytes().chunks(2).filter_map(|pair| str::from_utf8(pair).ok());
        pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
    };
    files.iter().map(octets).chain([filtered()]).collect()
}

/// A GAP with a count of filtered changes, and a sample with the verdicts of filters.
fn filtered() -> Vec<u8> {
    let prefix = GuidPrefix([1; 12]);
    let (reader, writer) = (EntityId::user_reader(1, true), EntityId::user_writer(1, true));
    let (start, list) = (SequenceNumber(3), SequenceSet::empty(SequenceNumber(5)));
    let verdicts =
        [&[0x55, 0, 28, 0, 1, 0, 0, 0, 0, 0, 0, 0x80, 1, 0, 0, 0][..], &[0x62; 16], &[1, 0, 0, 0]].concat();
    let data = DataHeader {
        reader,
        writer,
        sequence_number: SequenceNumber(5),
        inline_qos: &verdicts,
        key_only: false,
    };
    let mut out = Outbox::new();
    let mut message = out.message(prefix, &[Locator::default()], 1_456);
    assert!(message.gap(&Gap { reader, writer, start, list, filtered: 2 }));
    assert!(message.data(&data, &Payload::from_vec(vec![0, 1, 0, 0, 7])));
    message.finish();
    out.datagram(&out.transmits()[0])
}

/// xorshift64*.
struct Random(u64);

impl Random {
    const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    const fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    const fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % if limit == 0 { 1 } else { limit }
    }

    /// One of the examples with up to eight changes; now and then octets that never meant anything.
    fn mutated(&mut self, examples: &[Vec<u8>]) -> Vec<u8> {
        if self.below(50) == 0 {
            return (0..self.below(300)).map(|_| self.next() as u8).collect();
        }
        let mut octets = examples[self.below(examples.len())].clone();
        for _ in 0..=self.below(8) {
            let at = self.below(octets.len() + 1);
            let edge = [0, 1, 3, 4, 0x7f, 0x80, 0xff][self.below(7)];
            match (self.below(7), octets.get_mut(at)) {
                (0, Some(octet)) => *octet ^= 1 << self.below(8),
                (1, Some(octet)) => *octet = self.next() as u8,
                (2, Some(octet)) => *octet = edge,
                (3, _) => octets.truncate(at),
                (4, _) => octets.insert(at, edge),
                (5, _) => {
                    // A part of another example, four octets aligned: parameters and submessages move whole.
                    let other = &examples[self.below(examples.len())];
                    let from = self.below(other.len()) & !3;
                    let part = &other[from..(from + 4 * self.below(12)).min(other.len())];
                    let at = at & !3;
                    octets.splice(at..at, part.iter().copied());
                }
                (_, Some(_)) => {
                    let end = (at + self.below(8)).min(octets.len());
                    octets.drain(at..end);
                }
                _ => {}
            }
        }
        octets
    }
}
