//! A thread that writes to one place of its host has a connected socket for it, for as long as it lives.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]
// Elsewhere there are no such sockets, and no table of them.
#![cfg(target_os = "linux")]

mod common;

use std::collections::BTreeSet;
use std::sync::mpsc;

use common::{Pair, Point, until};
use plainsong::prelude::*;

/// More than it takes to get one.
const SAMPLES: u32 = 200;

/// The inodes of the UDP sockets of this process that are connected (`man 5 proc`: `local_address rem_address
/// st ...`).
fn connected() -> BTreeSet<String> {
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    let links = links.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let inode = |link: std::path::PathBuf| {
        Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
    };
    let own: BTreeSet<_> = links.filter_map(inode).collect();
    let tables = ["/proc/self/net/udp", "/proc/self/net/udp6"].map(std::fs::read_to_string);
    let rows = tables.iter().flatten().flat_map(|table| table.lines().skip(1));
    let inode_if_connected = |row: &str| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        (!fields[2].ends_with(":0000")).then(|| fields[9].to_owned())
    };
    rows.filter_map(inode_if_connected).filter(|inode| own.contains(inode)).collect()
}

#[test]
fn a_thread_that_writes_to_one_place_of_the_host_sends_by_a_socket_of_its_own_until_it_ends() {
    let pair = Pair::<Point>::with(
        &common::udp(),
        QosSet::writer().keep_all(),
        QosSet::reader().reliable().keep_all(),
    );
    assert_eq!(connected(), BTreeSet::new(), "discovery needs none");
    let taken = || pair.reader.take_with(&ReadOptions::new().max_samples(1)).unwrap();
    let (mut seen, mut received) = (BTreeSet::new(), Vec::new());
    std::thread::scope(|scope| {
        // It ends when this side says so.
        let (end, wait) = mpsc::channel::<()>();
        let (go_on, turns) = mpsc::channel::<u32>();
        let writer = &pair.writer;
        scope.spawn(move || {
            for id in turns {
                writer.write(&Point { id, x: 1.0, y: 2.0 }).unwrap();
            }
            let _ = wait.recv();
        });
        for id in 0..SAMPLES {
            go_on.send(id).unwrap();
            until("the sample is there", || {
                received.extend(taken().into_iter().filter_map(|sample| Some(sample.data?.id)));
                received.len() > id as usize
            });
        }
        seen.extend(connected());
        assert!(!seen.is_empty(), "{SAMPLES} samples went to one place, one by one");
        drop((go_on, end));
    });
    assert_eq!(received, Vec::from_iter(0..SAMPLES));
    until("the socket is closed with its thread", || !seen.is_subset(&connected()));
}
