//! TRANSPORT_PRIORITY: how datagrams are marked on the wire, and what overtakes what.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::io::Read;
use std::time::{Duration, Instant};

use common::{Blob, PATIENCE, Pair, Point, reader, until, writer};
use plainsong::prelude::*;
use socket2::{Domain, Protocol, Socket, Type};

/// ETH_P_IP, in the order of the network: every IPv4 packet that an interface sends or receives.
const IPV4_PACKETS: i32 = (0x0800_u16.to_be()) as i32;
/// Octets of an Ethernet header, which the loopback interface has too.
const ETHERNET_BYTES: usize = 14;

fn prioritized(priority: i32) -> QosSet {
    QosSet { transport_priority: priority, ..QosSet::writer() }
}

/// The traffic class of the first packet from now on that holds `octets`.
fn traffic_class_of(mut packets: &Socket, octets: &[u8], mut write: impl FnMut()) -> u8 {
    let end = Instant::now() + PATIENCE;
    let mut packet = vec![0; 1 << 16];
    write();
    while Instant::now() < end {
        // Nothing came within the socket's timeout: what was written may have been lost.
        let Ok(length) = packets.read(&mut packet) else {
            write();
            continue;
        };
        if packet[..length].windows(octets.len()).any(|window| window == octets) {
            return packet[ETHERNET_BYTES + 1];
        }
    }
    panic!("no packet with the sample was seen");
}

#[test]
fn the_priority_is_the_dscp_of_the_datagrams_and_can_be_changed() {
    let packets = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(IPV4_PACKETS))).expect(
        "a packet socket needs CAP_NET_RAW, which `cargo xtask test` gives in a namespace of its own",
    );
    packets.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let pair = Pair::<Point>::with(&common::udp(), prioritized(46), QosSet::reader());
    let marked = f64::from_bits(0x4242_1717_4242_1717);
    let write = || pair.writer.write(&Point { id: 1, x: marked, y: 0.0 }).unwrap();
    assert_eq!(traffic_class_of(&packets, &marked.to_le_bytes(), write), 46 << 2);

    pair.writer.set_qos(prioritized(8)).unwrap();
    let marked = f64::from_bits(0x4343_1818_4343_1818);
    let write = || pair.writer.write(&Point { id: 1, x: marked, y: 0.0 }).unwrap();
    assert_eq!(traffic_class_of(&packets, &marked.to_le_bytes(), write), 8 << 2);
}

#[test]
fn an_urgent_small_sample_overtakes_a_large_one_that_is_being_sent() {
    let domain = common::fresh_domain();
    let [sender, receiver] = [(); 2].map(|()| common::participant_with(domain, common::udp()));
    let bulk = writer::<Blob>(&sender, "Bulk", prioritized(0).keep_last(1));
    let urgent = writer::<Point>(&sender, "Urgent", prioritized(46));
    let bulk_reader = reader::<Blob>(&receiver, "Bulk", QosSet::reader().reliable());
    let urgent_reader = reader::<Point>(&receiver, "Urgent", QosSet::reader().reliable());
    until("all match", || {
        bulk.matched_subscriptions().unwrap().len() == 1 && urgent.matched_subscriptions().unwrap().len() == 1
    });

    // At 192 KiB in half a millisecond it takes at least 160 ms.
    bulk.write(&Blob { number: 1, octets: vec![7; 60 << 20] }).unwrap();
    urgent.write(&Point { id: 1, x: 1.0, y: 1.0 }).unwrap();
    let small = urgent_reader.wait_take(PATIENCE).unwrap();
    let large = bulk_reader.wait_take(PATIENCE).unwrap();
    assert_eq!(large[0].data.as_ref().map(|blob| blob.octets.len()), Some(60 << 20));
    assert!(small[0].info.source_timestamp > large[0].info.source_timestamp, "it was written later");
    assert!(small[0].info.reception_timestamp < large[0].info.reception_timestamp, "and arrived earlier");
}
