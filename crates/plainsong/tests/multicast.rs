//! One writer and several processes of one host, for which participants with different settings stand here:
//! each has sockets of its own.
#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Blob, PATIENCE, fresh_domain, loopback, reader, until, writer};
use plainsong::config::Use;
use plainsong::data_writer::{HostDelivery, UnicastReason};
use plainsong::prelude::*;

const OCTETS: usize = 16 << 10;

/// A participant that shares no sockets with those of other numbers.
fn process(domain: u16, number: u64, multicast: bool) -> DomainParticipant {
    let config = Config {
        announce_period_ms: 1_000 + number,
        multicast,
        host_groups: true,
        shared_memory: Use::Off,
        ..loopback()
    };
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

/// A machine may be so busy that nobody acknowledges anything for a while.
fn patient() -> QosSet {
    let mut qos = QosSet::writer().keep_all();
    qos.reliability.max_blocking_time = PATIENCE.into();
    qos
}

fn reliable() -> QosSet {
    QosSet::reader().reliable().keep_all()
}

/// Whether so many readers are written to by the group.
fn goes_to_group(writer: &DataWriter<Blob>, hearing: usize) -> bool {
    matches!(writer.delivery().unwrap().by_udp, HostDelivery::Multicast { readers, .. } if readers == hearing)
}

#[test]
fn long_samples_for_several_processes_go_to_a_group_of_their_host() {
    let domain = fresh_domain();
    let processes: Vec<_> = (0..5).map(|number| process(domain, number, number != 4)).collect();
    let writer: DataWriter<Blob> = writer(&processes[0], "Shared", patient());
    let readers: Vec<DataReader<Blob>> =
        processes[1..].iter().map(|process| reader(process, "Shared", reliable())).collect();
    until("all match", || writer.matched_subscriptions().unwrap().len() == 4);
    let mut written = 0;
    until("the writer finds out who hears the group", || {
        write(&writer, written..written + 50, OCTETS);
        readers.iter().for_each(|reader| take_all(reader, written, written + 50));
        written += 50;
        goes_to_group(&writer, 3)
    });
    let more = written + 400;
    std::thread::scope(|scope| {
        scope.spawn(|| write(&writer, written..more, OCTETS));
        for reader in &readers {
            scope.spawn(|| take_all(reader, written, more));
        }
    });
    written = more;
    assert!(goes_to_group(&writer, 3), "in a flow, too");
    processes[1].delete_contained_entities().unwrap();
    until("the writer hears that one is gone", || writer.matched_subscriptions().unwrap().len() == 3);
    assert_eq!(writer.delivery().unwrap().by_udp, HostDelivery::Unicast(UnicastReason::FewReaders));
    write(&writer, written..written + 50, OCTETS);
    readers[1..].iter().for_each(|reader| take_all(reader, written, written + 50));
}

#[test]
fn short_samples_go_to_each_process_and_the_writer_says_why() {
    let domain = fresh_domain();
    let processes: Vec<_> = (0..4).map(|number| process(domain, number, true)).collect();
    let writer: DataWriter<Blob> = writer(&processes[0], "Short", patient());
    let readers: Vec<DataReader<Blob>> =
        processes[1..].iter().map(|process| reader(process, "Short", reliable())).collect();
    until("all match", || writer.matched_subscriptions().unwrap().len() == 3);
    let mut written = 0;
    until("the writer finds out who hears the group", || {
        write(&writer, written..written + 1, 16);
        readers.iter().for_each(|reader| take_all(reader, written, written + 1));
        written += 1;
        writer.delivery().unwrap().by_udp == HostDelivery::Unicast(UnicastReason::ShortDatagrams)
    });
    let reason = writer.delivery().unwrap().by_udp.to_string();
    assert!(reason.starts_with("unicast: datagrams are so short"), "{reason}");
}

#[test]
fn a_late_joiner_gets_the_history_and_then_what_all_get() {
    let domain = fresh_domain();
    let processes: Vec<_> = (0..5).map(|number| process(domain, number, true)).collect();
    let durable = patient().durability(Durability::TransientLocal);
    let writer: DataWriter<Blob> = writer(&processes[0], "Late", durable);
    let qos = || reliable().durability(Durability::TransientLocal);
    let mut readers: Vec<DataReader<Blob>> =
        processes[1..4].iter().map(|process| reader(process, "Late", qos())).collect();
    until("all match", || writer.matched_subscriptions().unwrap().len() == 3);
    write(&writer, 0..300, OCTETS);
    readers.iter().for_each(|reader| take_all(reader, 0, 300));
    readers.push(reader(&processes[4], "Late", qos()));
    write(&writer, 300..600, OCTETS);
    let (late, others) = readers.split_last().unwrap();
    take_all(late, 0, 600);
    others.iter().for_each(|reader| take_all(reader, 300, 600));
    let mut written = 600;
    until("all hear the group", || {
        write(&writer, written..written + 50, OCTETS);
        readers.iter().for_each(|reader| take_all(reader, written, written + 50));
        written += 50;
        goes_to_group(&writer, 4)
    });
}
