//! Discovery of many participants, each on a host of its own, in virtual time: the state machine of the
//! product, a switch, and sockets that hold so much and are read at a pace.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use core::net::{IpAddr, Ipv4Addr};
use plainsong_proto::discovery::{Command, LocalEndpoint, LocalLocators, Participant, ParticipantConfig};
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::locator::{Locator, ports};
use plainsong_proto::outbox::Outbox;
use plainsong_proto::qos::QosSet;
use plainsong_proto::receiver::{self, Registry};
use plainsong_proto::stats::DropCounters;
use plainsong_proto::time::{Duration, Instant, Now};
use plainsong_proto::types::TypeDescription;
use plainsong_proto::wire::{EndpointSubmessage, MessageContext, Target};

use super::workload::{self, Endpoint};
use crate::clock::Clock;
use crate::rng::Rng;

/// Each link, in both directions: one gigabit a second.
const NANOS_PER_OCTET: u64 = 8;
/// From the end of a datagram on one link to its begin on another.
const SWITCH_NANOS: u64 = 50_000;
/// To read a datagram and do what it asks for.
const READ_NANOS: u64 = 10_000;
/// Of a socket: what Linux gives to whoever asks for more, twice `net.core.rmem_max`.
const SOCKET_BYTES_MAX: usize = 425_984;
/// What a kernel counts of each datagram besides its octets.
const SOCKET_OVERHEAD_BYTES: usize = 768;
/// Of the network that all are on.
const PREFIX_LENGTH: u8 = 8;
/// Headers of IP and UDP.
const HEADERS_BYTES: u64 = 28;
/// Timers go off a little late.
const LATENESS_NANOS_MAX: u64 = 50_000;

/// What one participant sent and received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    pub(super) sent_datagrams: u64,
    pub(super) sent_bytes: u64,
    pub(super) received_datagrams: u64,
    pub(super) received_bytes: u64,
    /// Datagrams for which its socket had no room.
    pub(super) overflowed: u64,
}

enum Happening {
    Start {
        node: usize,
    },
    /// Reaches the switch.
    Datagram {
        from: usize,
        to: Locator,
        bytes: Rc<[u8]>,
    },
    Read {
        node: usize,
    },
    Wake {
        node: usize,
    },
}

struct Node {
    participant: Participant,
    prefix: GuidPrefix,
    locator: Locator,
    is_started: bool,
    /// All its traffic is simulated.
    is_observed: bool,
    socket: VecDeque<(Instant, Locator, Rc<[u8]>)>,
    socket_bytes: usize,
    reads_at: Option<Instant>,
    egress_free_at: Instant,
    ingress_free_at: Instant,
    wake_at: Option<Instant>,
    matches: HashSet<(EntityId, Guid)>,
    traffic: Traffic,
    drops: DropCounters,
}

/// Participants and the time.
pub(super) struct World {
    pub(super) at: Instant,
    nodes: Vec<Node>,
    /// Those of which all traffic is simulated.
    observed: Vec<usize>,
    by_locator: BTreeMap<Locator, usize>,
    queue: BTreeMap<(Instant, u64), Happening>,
    serial: u64,
    rng: Rng,
    clock: Clock,
    out: Outbox,
    description: Option<Arc<TypeDescription>>,
    group: Locator,
    participants_max: usize,
}

impl World {
    pub(super) fn new(seed: u64, participants_max: usize) -> Self {
        Self {
            at: Instant(0),
            nodes: Vec::new(),
            observed: Vec::new(),
            by_locator: BTreeMap::new(),
            queue: BTreeMap::new(),
            serial: 0,
            rng: Rng::new(seed),
            clock: Clock::new(1_000_000_000, Duration::ZERO),
            out: Outbox::new(),
            description: TypeDescription::of::<workload::Pose>().map(Arc::new),
            group: Locator::udp(ports::MULTICAST_V4.into(), ports::meta_multicast(0)),
            participants_max,
        }
    }

    /// A participant that starts at `at`, and answers as one that knows `known` others; its number.
    pub(super) fn add(&mut self, at: Instant, is_observed: bool, known: usize) -> usize {
        let index = self.nodes.len();
        let [_, high, middle, low] = (index as u32 + 1).to_be_bytes();
        let address: IpAddr = Ipv4Addr::new(10, high, middle, low).into();
        let locator = Locator::udp(address, ports::meta_unicast(0, 0));
        let prefix = GuidPrefix([0x01, 0x99, high, middle, low, 0, 0, 0, 0, 0, 0, 1]);
        let mut config = ParticipantConfig::new(prefix, 0);
        config.name = format!("vehicle {index}");
        config.limits.participants_max = self.participants_max;
        config.seed = self.rng.next();
        config.secret[..8].copy_from_slice(&self.rng.next().to_le_bytes());
        config.secret[8..].copy_from_slice(&self.rng.next().to_le_bytes());
        config.locators = LocalLocators {
            meta_unicast: vec![locator],
            meta_multicast: vec![self.group],
            user_unicast: vec![Locator::udp(address, ports::user_unicast(0, 0))],
            own_addresses: vec![address],
            networks: vec![(address, PREFIX_LENGTH)],
            announce_to: vec![self.group],
            receive_bytes: SOCKET_BYTES_MAX as u32,
            ..LocalLocators::default()
        };
        let mut participant = Participant::new(config);
        participant.assume_known(known);
        self.by_locator.insert(locator, index);
        if is_observed {
            self.observed.push(index);
        }
        self.nodes.push(Node {
            participant,
            prefix,
            locator,
            is_started: false,
            is_observed,
            socket: VecDeque::new(),
            socket_bytes: 0,
            reads_at: None,
            egress_free_at: Instant(0),
            ingress_free_at: Instant(0),
            wake_at: None,
            matches: HashSet::new(),
            traffic: Traffic::default(),
            drops: DropCounters::default(),
        });
        self.push(at, Happening::Start { node: index });
        index
    }

    /// What the participants of which everything is simulated sent and received, and how many they are.
    pub(super) fn traffic(&self) -> (Traffic, u64) {
        let mut sum = Traffic::default();
        for node in &self.observed {
            let traffic = &self.nodes[*node].traffic;
            sum.sent_datagrams += traffic.sent_datagrams;
            sum.sent_bytes += traffic.sent_bytes;
            sum.received_datagrams += traffic.received_datagrams;
            sum.received_bytes += traffic.received_bytes;
            sum.overflowed += traffic.overflowed;
        }
        (sum, self.observed.len() as u64)
    }

    /// What one sent and received.
    pub(super) fn traffic_of(&self, node: usize) -> Traffic {
        self.nodes[node].traffic
    }

    /// Pairs of a local endpoint of it and another that match.
    pub(super) fn matches_of(&self, node: usize) -> usize {
        self.nodes[node].matches.len()
    }

    /// Other participants that it knows.
    pub(super) fn known_to(&self, node: usize) -> usize {
        self.nodes[node].participant.remote_participants().count()
    }

    /// Does what happens next, unless that is after `end`; false then.
    pub(super) fn step(&mut self, end: Instant) -> bool {
        let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= end) else {
            self.at = end;
            return false;
        };
        let ((at, _), happening) = entry.remove_entry();
        self.at = at;
        match happening {
            Happening::Start { node } => self.start(node),
            Happening::Datagram { from, to, bytes } => self.switch(from, to, &bytes),
            Happening::Read { node } => self.read(node),
            Happening::Wake { node } => {
                // Another timer took its place.
                if self.nodes[node].wake_at == Some(at) {
                    self.nodes[node].wake_at = None;
                    self.call(node, |node, now, out| node.participant.timeout(now, out));
                }
            }
        }
        true
    }

    fn start(&mut self, index: usize) {
        self.nodes[index].is_started = true;
        self.call(index, |node, now, out| node.participant.start(now, out));
        for (key, endpoint) in workload::endpoints(index).into_iter().enumerate() {
            let local = self.local_endpoint(index, key as u32 + 1, endpoint);
            self.call(index, |node, now, out| {
                let added = node.participant.add_endpoint(now, local, out);
                debug_assert_eq!(added, Ok(()), "the workload has endpoints that are allowed");
            });
        }
    }

    fn local_endpoint(&self, index: usize, key: u32, endpoint: Endpoint) -> LocalEndpoint {
        let entity = if endpoint.is_writer {
            EntityId::user_writer(key, false)
        } else {
            EntityId::user_reader(key, false)
        };
        LocalEndpoint {
            guid: self.nodes[index].prefix.entity(entity),
            topic: endpoint.topic,
            type_name: "vehicle::Pose".to_owned(),
            keyed: false,
            qos: QosSet::default(),
            group: EntityId::UNKNOWN,
            content_filter: None,
            type_description: self.description.clone(),
        }
    }

    /// Calls into a participant, notes what matches, and sends what it wants sent.
    fn call(&mut self, index: usize, f: impl FnOnce(&mut Node, Now, &mut Outbox)) {
        let mut out = std::mem::take(&mut self.out);
        let now = self.clock.now(self.at);
        let node = &mut self.nodes[index];
        f(node, now, &mut out);
        for command in out.commands.drain(..) {
            match command {
                Command::MatchReader { writer, reader } => drop(node.matches.insert((writer, reader.guid))),
                Command::MatchWriter { reader, writer } => drop(node.matches.insert((reader, writer.guid))),
                Command::UnmatchReader { writer, reader } => drop(node.matches.remove(&(writer, reader))),
                Command::UnmatchWriter { reader, writer } => drop(node.matches.remove(&(reader, writer))),
                _ => {}
            }
        }
        for transmit in out.transmits() {
            let bytes: Rc<[u8]> = out.datagram(transmit).into();
            for destination in out.destinations(transmit) {
                self.send(index, *destination, &bytes);
            }
        }
        out.clear();
        self.out = out;
        self.arm(index);
    }

    fn arm(&mut self, index: usize) {
        let Some(next) = self.nodes[index].participant.next_timeout() else { return };
        let next = self.clock.world(next).max(Instant(self.at.0 + 1_000));
        if self.nodes[index].wake_at.is_none_or(|wake_at| next < wake_at) {
            let at = Instant(next.0 + self.rng.below(LATENESS_NANOS_MAX));
            if self.nodes[index].wake_at.is_none_or(|wake_at| at < wake_at) {
                self.nodes[index].wake_at = Some(at);
                self.push(at, Happening::Wake { node: index });
            }
        }
    }

    fn send(&mut self, from: usize, to: Locator, bytes: &Rc<[u8]>) {
        let octets = bytes.len() as u64 + HEADERS_BYTES;
        let node = &mut self.nodes[from];
        node.traffic.sent_datagrams += 1;
        node.traffic.sent_bytes += octets;
        let departs = node.egress_free_at.0.max(self.at.0) + octets * NANOS_PER_OCTET;
        node.egress_free_at = Instant(departs);
        let arrives = Instant(departs + SWITCH_NANOS);
        self.push(arrives, Happening::Datagram { from, to, bytes: Rc::clone(bytes) });
    }

    /// A datagram goes on to whom it is for. Those of whom half is simulated hear nothing of each other.
    fn switch(&mut self, from: usize, to: Locator, bytes: &Rc<[u8]>) {
        if to == self.group {
            if self.nodes[from].is_observed {
                (0..self.nodes.len())
                    .filter(|node| *node != from)
                    .for_each(|node| self.arrive(from, node, bytes));
            } else {
                (0..self.observed.len()).for_each(|place| self.arrive(from, self.observed[place], bytes));
            }
        } else if let Some(node) = self.by_locator.get(&to) {
            self.arrive(from, *node, bytes);
        }
    }

    fn arrive(&mut self, from: usize, to: usize, bytes: &Rc<[u8]>) {
        let locator = self.nodes[from].locator;
        let node = &mut self.nodes[to];
        if !node.is_started {
            return;
        }
        let octets = bytes.len() as u64 + HEADERS_BYTES;
        let arrived = node.ingress_free_at.0.max(self.at.0) + octets * NANOS_PER_OCTET;
        node.ingress_free_at = Instant(arrived);
        node.traffic.received_datagrams += 1;
        node.traffic.received_bytes += octets;
        let held = bytes.len() + SOCKET_OVERHEAD_BYTES;
        if node.socket_bytes + held > SOCKET_BYTES_MAX {
            node.traffic.overflowed += 1;
            return;
        }
        node.socket_bytes += held;
        node.socket.push_back((Instant(arrived), locator, Rc::clone(bytes)));
        self.read_next(to);
    }

    /// The oldest datagram of its socket is read when it is there.
    fn read_next(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        if let (None, Some((arrived, ..))) = (node.reads_at, node.socket.front()) {
            let at = Instant(arrived.0.max(self.at.0) + READ_NANOS);
            node.reads_at = Some(at);
            self.push(at, Happening::Read { node: index });
        }
    }

    fn read(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.reads_at = None;
        let Some((_, from, bytes)) = node.socket.pop_front() else { return };
        node.socket_bytes -= bytes.len() + SOCKET_OVERHEAD_BYTES;
        self.call(index, |node, now, out| {
            let mut drops = std::mem::take(&mut node.drops);
            let mut dispatch = Dispatch { participant: &mut node.participant, prefix: node.prefix };
            receiver::datagram(now, from, &bytes, None, &mut dispatch, &mut drops, out);
            node.drops = drops;
        });
        self.read_next(index);
    }

    fn push(&mut self, at: Instant, happening: Happening) {
        self.serial += 1;
        self.queue.insert((at, self.serial), happening);
    }
}

/// Discovery alone: its user endpoints hear nothing.
struct Dispatch<'a> {
    participant: &'a mut Participant,
    prefix: GuidPrefix,
}

impl Registry for Dispatch<'_> {
    fn deliver(
        &mut self,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    ) {
        let is_for_us = context.destination == GuidPrefix::UNKNOWN || context.destination == self.prefix;
        if is_for_us && matches!(submessage.target(context.source), Target::Builtin) {
            // Why something goes no further is not counted here.
            let _ = self.participant.on_submessage(now, context, submessage, out);
        }
    }

    fn is_local(&self, prefix: GuidPrefix) -> bool {
        self.prefix == prefix
    }
}
