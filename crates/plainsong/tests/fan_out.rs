//! One writer and several processes of one host without shared memory, for which participants with different
//! settings stand here: each has sockets of its own.
#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Blob, PATIENCE, fresh_domain, loopback, reader, until, writer};
use plainsong::config::Use;
use plainsong::prelude::*;

const OCTETS: usize = 16 << 10;
/// The first of them has the writer.
const PROCESSES: u64 = 10;

/// A participant that shares no sockets with those of other numbers.
fn process(domain: u16, number: u64) -> DomainParticipant {
    let config = Config { announce_period_ms: 1_000 + number, shared_memory: Use::Off, ..loopback() };
    DomainParticipantFactory::with_config(config)
        .create_participant(domain, "process", QosSet::default())
        .unwrap()
}

fn write(writer: &DataWriter<Blob>, numbers: std::ops::Range<u32>, octets: usize) {
    for number in numbers {
        writer.write(&Blob { number, octets: vec![number as u8; octets] }).unwrap();
    }
    writer.flush().unwrap();
}

/// Takes until the sample before `end` is there: they are those from `first` on, each once and in order.
fn take_all(reader: &DataReader<Blob>, first: u32, end: u32) {
    let mut next = first;
    until("all samples arrive", || {
        for sample in reader.take().unwrap() {
            let blob = sample.data.unwrap();
            assert_eq!(blob.number, next);
            assert!(blob.octets.iter().all(|octet| *octet == next as u8));
            next += 1;
        }
        next == end
    });
}

/// While all take at once.
fn write_to_all(
    writer: &DataWriter<Blob>,
    readers: &[DataReader<Blob>],
    numbers: std::ops::Range<u32>,
    octets: usize,
) {
    let (first, end) = (numbers.start, numbers.end);
    std::thread::scope(|scope| {
        scope.spawn(|| write(writer, numbers, octets));
        for reader in readers {
            scope.spawn(move || take_all(reader, first, end));
        }
    });
}

/// A machine may be so busy that nobody acknowledges anything for a while.
fn patient() -> QosSet {
    let mut qos = QosSet::writer().keep_all().durability(Durability::TransientLocal);
    qos.reliability.max_blocking_time = PATIENCE.into();
    qos
}

fn reliable() -> QosSet {
    QosSet::reader().reliable().keep_all().durability(Durability::TransientLocal)
}

#[test]
fn flows_of_short_and_long_samples_reach_many_processes_and_a_late_joiner_whole_and_in_order() {
    let domain = fresh_domain();
    let processes: Vec<_> = (0..PROCESSES).map(|number| process(domain, number)).collect();
    let writer: DataWriter<Blob> = writer(&processes[0], "Shared", patient());
    let (late, early) = processes[1..].split_last().unwrap();
    let mut readers: Vec<DataReader<Blob>> =
        early.iter().map(|process| reader(process, "Shared", reliable())).collect();
    until("all match", || writer.matched_subscriptions().unwrap().len() == readers.len());
    write_to_all(&writer, &readers, 0..300, OCTETS);
    write_to_all(&writer, &readers, 300..1_300, 16);
    // The history for one, while what is new goes to all.
    let joiner = reader(late, "Shared", reliable());
    std::thread::scope(|scope| {
        scope.spawn(|| take_all(&joiner, 0, 1_600));
        write_to_all(&writer, &readers, 1_300..1_600, OCTETS);
    });
    readers.push(joiner);
    early[0].delete_contained_entities().unwrap();
    readers.remove(0);
    until("the writer hears that one is gone", || {
        writer.matched_subscriptions().unwrap().len() == readers.len()
    });
    write_to_all(&writer, &readers, 1_600..2_600, 16);
}
