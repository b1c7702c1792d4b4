//! Memory that processes of one host share: rings in which messages keep their order and are lost only where
//! there is no room, links that are made late, refused or end at any moment, and readers that wake late.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use plainsong_proto::discovery::MemoryRefusal;
use plainsong_proto::locator::{Locator, NodeId};
use plainsong_proto::payload::Payload;
use plainsong_proto::time::{Duration, Instant};

use super::{Happening, World};
use crate::mutation::Mutation;
use crate::node::State;

/// A message, and what is beside it.
pub(crate) type Record = (Rc<[u8]>, Option<Payload>);

/// Octets that a ring has room for, and how many samples may be lent.
const RING_BYTES: usize = 256 << 10;
const LENT_MAX: usize = 64;
/// Of the rings of some processes others have filled the most.
const CROWDED_RING_BYTES: usize = 8 << 10;

/// What processes share.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Pairs, the lesser first, and which of their links it is.
    links: BTreeMap<(usize, usize), u64>,
    made: u64,
    /// From one to another.
    rings: BTreeMap<(usize, usize), Ring>,
    /// Links of which nothing arrives any more.
    cut: BTreeSet<u64>,
    /// What each process has put beside a message last.
    latest: BTreeMap<usize, Payload>,
    /// What a stopped process has not read: the process it is from, and the link.
    waiting: BTreeMap<usize, VecDeque<(usize, u64, Record)>>,
}

#[derive(Debug, Default)]
struct Ring {
    unread_bytes: usize,
    lent: usize,
    /// Its reader sleeps and is not woken, with the mistake that wake-ups are lost.
    is_overslept: bool,
    /// When the last message is read.
    last: Instant,
}

/// What every process is told by.
pub(crate) fn node_id(node: usize) -> NodeId {
    let mut id = *b"a simulated node";
    id[8..].copy_from_slice(&(node as u64).to_be_bytes());
    id
}

const fn pair(one: usize, other: usize) -> (usize, usize) {
    if one < other { (one, other) } else { (other, one) }
}

impl World {
    fn node_with(&self, id: &NodeId) -> Option<usize> {
        (0..self.nodes.len()).find(|node| node_id(*node) == *id && self.nodes[*node].node_id.is_some())
    }

    /// A process asks for a link with another.
    pub(super) fn ask_for_link(&mut self, node: usize, id: NodeId) {
        // One in eight comes after nobody waits any longer.
        let late = if self.rng.chance(12) { 200_000_000 } else { 3_000_000 };
        let delay = Duration(50_000 + self.rng.below(late) as i64);
        self.after(delay, Happening::LinkAnswered { node, id });
    }

    pub(super) fn answer_link(&mut self, node: usize, id: NodeId) {
        let peer = self.node_with(&id).filter(|peer| {
            self.nodes[*peer].options.host == self.nodes[node].options.host
                && self.nodes[*peer].state != State::Gone
        });
        let Some(peer) = peer else { return self.tell_link(node, id, Err(MemoryRefusal::NoSocket)) };
        if self.nodes[peer].state == State::Paused {
            return self.tell_link(node, id, Err(MemoryRefusal::TimedOut));
        }
        if !self.faults_over && self.rng.chance(5) {
            return self.tell_link(node, id, Err(MemoryRefusal::NoMemory));
        }
        let key = pair(node, peer);
        if !self.memory.links.contains_key(&key) {
            self.memory.made += 1;
            let link = self.memory.made;
            self.memory.links.insert(key, link);
            if !self.faults_over && self.rng.chance(50) {
                let lasting = Duration(self.rng.below(3_000_000_000) as i64);
                self.after(lasting, Happening::LinkEnds { key, link });
            }
        }
        self.note(node, 30, || format!("shares memory with n{peer}"));
        self.tell_link(node, id, Ok(()));
        self.tell_link(peer, node_id(node), Ok(()));
    }

    /// A link ends, whatever is under way; what is in its rings may still be read.
    pub(super) fn end_link(&mut self, key: (usize, usize), link: u64) {
        if self.faults_over || self.memory.links.get(&key) != Some(&link) {
            return;
        }
        self.drop_link(key);
    }

    /// A process is killed: the kernel says so to most of those that share memory with it.
    pub(super) fn tell_end_of(&mut self, node: usize) {
        let peers: Vec<_> = self
            .memory
            .links
            .keys()
            .filter_map(|(one, other)| match node {
                node if node == *one => Some(*other),
                node if node == *other => Some(*one),
                _ => None,
            })
            .collect();
        for peer in peers {
            if self.rng.chance(70) {
                self.tell_link(peer, node_id(node), Err(MemoryRefusal::ProcessGone));
            }
        }
    }

    /// A process is gone, or is elsewhere: so are its links.
    pub(super) fn end_links_of(&mut self, node: usize) {
        let of_it: Vec<_> =
            self.memory.links.keys().filter(|(one, other)| *one == node || *other == node).copied().collect();
        of_it.into_iter().for_each(|key| self.drop_link(key));
    }

    fn drop_link(&mut self, key: (usize, usize)) {
        let Some(link) = self.memory.links.remove(&key) else { return };
        if self.rng.chance(50) {
            self.memory.cut.insert(link);
        }
        if self.mutation == Some(Mutation::HideLinkEnds) {
            return;
        }
        self.note(key.0, 31, || format!("shares no memory with n{} any more", key.1));
        for (node, peer) in [key, (key.1, key.0)] {
            self.tell_link(node, node_id(peer), Err(MemoryRefusal::Ended));
        }
    }

    /// Each side hears of it when it comes to it.
    fn tell_link(&mut self, node: usize, id: NodeId, answer: Result<(), MemoryRefusal>) {
        let delay = Duration(self.rng.below(1_000_000) as i64);
        self.after(delay, Happening::LinkTold { node, id, answer });
    }

    pub(super) fn link_told(&mut self, node: usize, id: NodeId, answer: Result<(), MemoryRefusal>) {
        // What it has sent is received first.
        let ring = self.node_with(&id).and_then(|peer| self.memory.rings.get(&(peer, node)));
        if let Some(last) = ring.map(|ring| ring.last)
            && answer == Err(MemoryRefusal::ProcessGone)
            && last >= self.at
        {
            return self.push(Instant(last.0 + 1), Happening::LinkTold { node, id, answer });
        }
        // What is told late, or out of turn, is what holds now.
        let is_linked = self.node_with(&id).is_some_and(|it| self.memory.links.contains_key(&pair(node, it)));
        let answer = match answer {
            Ok(()) if !is_linked => Err(MemoryRefusal::Ended),
            Err(_) if is_linked => Ok(()),
            answer => answer,
        };
        match self.nodes[node].state {
            State::Running => self.call(node, |node, call| node.memory_link(id, answer, call)),
            State::Paused => {
                self.after(Duration::from_millis(5), Happening::LinkTold { node, id, answer });
            }
            State::Gone => {}
        }
    }

    /// A message goes to a node by memory.
    pub(super) fn push_record(&mut self, from: usize, id: NodeId, record: Record, departs: Instant) {
        let Some(node) = self.node_with(&id) else { return };
        let link = if node == from { Some(0) } else { self.memory.links.get(&pair(from, node)).copied() };
        let Some(link) = link else { return };
        let late = self.rng.chance(6);
        let delay = 2_000 + self.rng.below(if late { 2_000_000 } else { 10_000 });
        let bytes_max = if node.is_multiple_of(3) { CROWDED_RING_BYTES } else { RING_BYTES };
        let ring = self.memory.rings.entry((from, node)).or_default();
        let lends = usize::from(record.1.is_some());
        let is_empty = ring.unread_bytes == 0;
        if self.mutation == Some(Mutation::LoseWakeups) && is_empty && late {
            ring.is_overslept = true;
        }
        if !is_empty && ring.unread_bytes + record.0.len() > bytes_max || ring.lent + lends > LENT_MAX {
            return self.note(from, 32, || format!("finds no room for a message to n{node}"));
        }
        ring.unread_bytes += record.0.len();
        ring.lent += lends;
        if ring.is_overslept {
            return;
        }
        self.memory.latest.extend(record.1.clone().map(|payload| (from, payload)));
        // Who is awake reads all that is there.
        let at = Instant(departs.0 + delay).max(ring.last);
        ring.last = at;
        self.push(at, Happening::Record { node, from, link, record });
    }

    /// A message is read, unless its reader stands still.
    pub(super) fn read_record(&mut self, node: usize, from: usize, link: u64, mut record: Record) {
        if self.nodes[node].state == State::Paused {
            return self.memory.waiting.entry(node).or_default().push_back((from, link, record));
        }
        if let Some(ring) = self.memory.rings.get_mut(&(from, node)) {
            ring.unread_bytes -= record.0.len();
            if self.mutation != Some(Mutation::KeepLoans) {
                ring.lent -= usize::from(record.1.is_some());
            }
        }
        if self.mutation == Some(Mutation::ReuseChunks) && record.1.is_some() {
            record.1 = self.memory.latest.get(&from).cloned();
        }
        if self.nodes[node].state == State::Gone || self.memory.cut.contains(&link) {
            return;
        }
        let from = Locator::memory(node_id(from));
        self.call(node, |node, call| node.receive_with(from, &record.0, record.1.as_ref(), call));
    }

    /// A process runs again: what waits in its rings is read.
    pub(super) fn read_waiting(&mut self, node: usize) {
        for (from, link, record) in self.memory.waiting.remove(&node).unwrap_or_default() {
            self.read_record(node, from, link, record);
        }
    }
}
