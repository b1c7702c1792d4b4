//! A few participants on a make-believe LAN: virtual time, one way per datagram, seeded loss.

use std::collections::{BTreeMap, BTreeSet};

use super::peer::{Peer, announcement};
use crate::discovery::{Command, LocalEndpoint, LocalLocators, News, Participant, ParticipantConfig};
use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::locator::{Locator, ports};
use crate::outbox::{Event, Outbox};
use crate::qos::QosSet;
use crate::receiver::{self, ControlRun, Registry};
use crate::stats::{DropCounters, DropReason};
use crate::time::{Duration, Instant, Now, Time};
use crate::wire::{EndpointSubmessage, MessageContext};

/// Time a datagram takes.
pub(super) const HOP: u64 = 100_000;
pub(super) const SECOND: u64 = 1_000_000_000;

pub(super) struct Network {
    pub(super) now: u64,
    pub(super) nodes: Vec<Node>,
    /// Time that each datagram takes of the one core that all share: late ones wait.
    pub(super) work: u64,
    /// Datagrams lost, in percent.
    pub(super) loss: u64,
    /// Datagrams lost besides, by what is in them.
    pub(super) loses: Option<fn(&[u8]) -> bool>,
    /// Changes datagrams on their way.
    pub(super) changes: Option<fn(&mut [u8])>,
    /// From where to which node nothing gets through.
    pub(super) blocked: Vec<(Locator, usize)>,
    /// Octets on the wire towards each address, IP and UDP headers included.
    pub(super) octets_to: BTreeMap<Locator, u64>,
    pub(super) datagrams: u64,
    /// Every datagram ever sent, when wanted: from, to, octets.
    pub(super) capture: Option<Vec<(Locator, Locator, Vec<u8>)>>,
    /// Participants of other stacks.
    pub(super) peers: Vec<Peer>,
    on_the_way: BTreeMap<(u64, u64), (usize, Locator, Vec<u8>)>,
    pub(super) random: u64,
}

pub(super) struct Node {
    pub(super) participant: Participant,
    pub(super) address: Locator,
    /// What others see as the source of its datagrams, if that is not its address.
    pub(super) source: Option<Locator>,
    pub(super) up: bool,
    /// Those of one process share their sockets, and tell each other what is new without them.
    pub(super) process: Option<usize>,
    pub(super) hears_multicast: bool,
    pub(super) commands: Vec<(u64, Command)>,
    pub(super) events: Vec<(u64, Event)>,
    pub(super) drops: DropCounters,
}

pub(super) fn udp(ip: &str, port: u16) -> Locator {
    Locator::udp(ip.parse().unwrap(), port)
}

pub(super) fn prefix(index: usize) -> GuidPrefix {
    let [high, low] = (index as u16).to_be_bytes();
    GuidPrefix([1, 1, 7, 7, 0, 0, 0, 0, 0, 0, high, low])
}

pub(super) fn group() -> Locator {
    Locator::udp(ports::MULTICAST_V4.into(), ports::meta_multicast(0))
}

pub(super) fn locators(ip: &str) -> LocalLocators {
    LocalLocators {
        meta_unicast: vec![udp(ip, 7410)],
        meta_multicast: vec![group()],
        user_unicast: vec![udp(ip, 7411)],
        user_multicast: Vec::new(),
        own_addresses: vec![ip.parse().unwrap()],
        networks: Vec::new(),
        announce_to: vec![group()],
        scan: Vec::new(),
        receive_bytes: 0,
        node_id: None,
        memory_refusal: None,
    }
}

pub(super) fn config(index: usize) -> ParticipantConfig {
    ParticipantConfig {
        name: format!("node {index}"),
        locators: locators(&format!("10.0.0.{}", index + 1)),
        seed: index as u64,
        ..ParticipantConfig::new(prefix(index), 0)
    }
}

pub(super) fn endpoint(prefix: GuidPrefix, entity: EntityId, topic: &str, qos: QosSet) -> LocalEndpoint {
    LocalEndpoint {
        guid: prefix.entity(entity),
        topic: topic.into(),
        type_name: "ShapeType".into(),
        keyed: entity.is_keyed(),
        qos,
        group: EntityId::UNKNOWN,
        content_filter: None,
        type_description: None,
    }
}

pub(super) const WRITER: EntityId = EntityId::user_writer(1, true);
pub(super) const READER: EntityId = EntityId::user_reader(2, true);

impl Network {
    pub(super) fn new() -> Self {
        Self {
            now: SECOND,
            nodes: Vec::new(),
            work: 0,
            loss: 0,
            loses: None,
            changes: None,
            blocked: Vec::new(),
            octets_to: BTreeMap::new(),
            datagrams: 0,
            capture: None,
            peers: Vec::new(),
            on_the_way: BTreeMap::new(),
            random: 7,
        }
    }

    /// A network of participants that all have started, each with a writer and a reader of one topic.
    pub(super) fn of(nodes: usize) -> Self {
        let mut network = Self::new();
        for index in 0..nodes {
            network.add(config(index));
            network.add_writer(index, QosSet::writer());
            network.add_reader(index, QosSet::reader());
        }
        for index in 0..nodes {
            network.start(index);
        }
        network
    }

    pub(super) fn add(&mut self, config: ParticipantConfig) -> usize {
        let address = config.locators.meta_unicast[0];
        self.nodes.push(Node {
            participant: Participant::new(config),
            address,
            source: None,
            up: true,
            process: None,
            hears_multicast: true,
            commands: Vec::new(),
            events: Vec::new(),
            drops: DropCounters::default(),
        });
        self.nodes.len() - 1
    }

    /// A participant of a process.
    pub(super) fn add_to(&mut self, process: usize, config: ParticipantConfig) -> usize {
        let node = self.add(config);
        self.nodes[node].process = Some(process);
        self.nodes[node].participant.share_process();
        for other in self.of_same_process(node) {
            let told = self.nodes[other].participant.introduction();
            self.hear_news(node, &told);
        }
        node
    }

    fn of_same_process(&self, node: usize) -> Vec<usize> {
        let process = self.nodes[node].process;
        let same =
            |other: &usize| *other != node && process.is_some() && self.nodes[*other].process == process;
        (0..self.nodes.len()).filter(same).collect()
    }

    fn hear_news(&mut self, node: usize, news: &[News]) {
        self.call(node, |participant, now, out| {
            news.iter().for_each(|news| participant.on_news(now, news, out));
        });
    }

    pub(super) fn add_peer(&mut self, peer: Peer) {
        self.peers.push(peer);
    }

    /// A participant of another stack announces itself to everyone.
    pub(super) fn announce_peer(&mut self, index: usize) {
        let (from, bytes) =
            (self.peers[index].from, announcement(&self.peers[index].data(), GuidPrefix::UNKNOWN));
        self.inject(from, group(), &bytes);
    }

    pub(super) fn start(&mut self, node: usize) {
        self.call(node, |participant, now, out| participant.start(now, out));
    }

    pub(super) fn add_writer(&mut self, node: usize, qos: QosSet) -> Guid {
        self.add_endpoint(node, WRITER, "Square", qos)
    }

    pub(super) fn add_reader(&mut self, node: usize, qos: QosSet) -> Guid {
        self.add_endpoint(node, READER, "Square", qos)
    }

    pub(super) fn add_endpoint(&mut self, node: usize, entity: EntityId, topic: &str, qos: QosSet) -> Guid {
        let endpoint = endpoint(self.nodes[node].participant.guid().prefix, entity, topic, qos);
        let guid = endpoint.guid;
        self.call(node, |participant, now, out| participant.add_endpoint(now, endpoint, out)).unwrap();
        guid
    }

    pub(super) fn clock(&self) -> Now {
        Now { mono: Instant(self.now), wall: Time(self.now as i64) }
    }

    /// Calls into a participant and carries its outbox away.
    pub(super) fn call<R>(
        &mut self,
        node: usize,
        act: impl FnOnce(&mut Participant, Now, &mut Outbox) -> R,
    ) -> R {
        let now = self.clock();
        let mut out = Outbox::new();
        let result = act(&mut self.nodes[node].participant, now, &mut out);
        self.carry(node, &out);
        result
    }

    /// Sends any octets in anyone's name.
    pub(super) fn inject(&mut self, from: Locator, to: Locator, bytes: &[u8]) {
        *self.octets_to.entry(to).or_default() += bytes.len() as u64 + 28;
        self.datagrams += 1;
        if let Some(capture) = &mut self.capture {
            capture.push((from, to, bytes.to_vec()));
        }
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            let multicast = to.ip().is_some_and(|ip| ip.is_multicast());
            let addressed = if multicast { node.hears_multicast } else { node.address == to };
            let blocked = self.blocked.contains(&(from, index));
            let lost = self.loses.is_some_and(|loses| loses(bytes));
            if !addressed || blocked || lost || self.roll() % 100 < self.loss {
                continue;
            }
            let key = (self.now + HOP, self.on_the_way.len() as u64 + self.datagrams * 1_000);
            self.on_the_way.insert(key, (index, from, bytes.to_vec()));
        }
        for index in 0..self.peers.len() {
            let peer = &mut self.peers[index];
            if peer.hears(&to) && peer.from != from {
                let source = peer.from;
                for answer in peer.answers(bytes) {
                    self.inject(source, from, &answer);
                }
            }
        }
    }

    /// Runs until `moment`, everything in its order.
    pub(super) fn run_until(&mut self, moment: u64) {
        while let Some(next) = self.next_moment().filter(|next| *next <= moment) {
            self.now = self.now.max(next);
            self.deliver_due();
            for index in 0..self.nodes.len() {
                let due = self.nodes[index].participant.next_timeout().is_some_and(|at| at.0 <= self.now);
                if due && self.nodes[index].up {
                    self.call(index, |participant, now, out| participant.timeout(now, out));
                }
            }
        }
        self.now = self.now.max(moment);
    }

    pub(super) fn run_for(&mut self, duration: Duration) {
        self.run_until(self.now + duration.0 as u64);
    }

    /// When the first command for which `wanted` holds came to a node.
    pub(super) fn first(&self, node: usize, wanted: impl Fn(&Command) -> bool) -> Option<u64> {
        self.nodes[node].commands.iter().find(|(_, command)| wanted(command)).map(|(at, _)| *at)
    }

    pub(super) fn count(&self, node: usize, wanted: impl Fn(&Command) -> bool) -> usize {
        self.nodes[node].commands.iter().filter(|(_, command)| wanted(command)).count()
    }

    /// The pairs a node's commands add up to: local endpoint and other endpoint.
    pub(super) fn matches(&self, node: usize) -> BTreeSet<(EntityId, Guid)> {
        let mut matches = BTreeSet::new();
        for (_, command) in &self.nodes[node].commands {
            match command {
                Command::MatchReader { writer, reader } => matches.insert((*writer, reader.guid)),
                Command::MatchWriter { reader, writer } => matches.insert((*reader, writer.guid)),
                Command::UnmatchReader { writer, reader } => matches.remove(&(*writer, *reader)),
                Command::UnmatchWriter { reader, writer } => matches.remove(&(*reader, *writer)),
                _ => continue,
            };
        }
        matches
    }

    /// Whether each of the first `nodes` participants has matched its endpoints with those of all of them.
    pub(super) fn is_converged(&self, nodes: usize) -> bool {
        (0..nodes).all(|node| self.matches(node).len() == 2 * nodes)
    }

    /// Drops of a node, its participant's included.
    pub(super) fn drops(&self, node: usize, reason: DropReason) -> u64 {
        self.nodes[node].drops.get(reason) + self.nodes[node].participant.drops().get(reason)
    }

    fn carry(&mut self, index: usize, out: &Outbox) {
        for transmit in out.transmits() {
            let mut bytes = out.datagram(transmit);
            if let Some(change) = self.changes {
                change(&mut bytes);
            }
            for to in out.destinations(transmit) {
                let from = self.nodes[index].source.unwrap_or(self.nodes[index].address);
                if self.nodes[index].up {
                    self.inject(from, *to, &bytes);
                }
            }
        }
        let now = self.now;
        let node = &mut self.nodes[index];
        node.commands.extend(out.commands.iter().map(|command| (now, command.clone())));
        node.events.extend(out.events.iter().map(|event| (now, *event)));
        let news = node.participant.take_news();
        if !news.is_empty() {
            self.of_same_process(index).into_iter().for_each(|other| self.hear_news(other, &news));
        }
    }

    /// Delivers what is due now; what becomes due while that takes time has its turn after the timers.
    fn deliver_due(&mut self) {
        let due = self.now;
        while let Some(entry) = self.on_the_way.first_entry().filter(|entry| entry.key().0 <= due) {
            let (index, from, bytes) = entry.remove();
            self.now += self.work;
            if !self.nodes[index].up {
                continue;
            }
            let now = self.clock();
            let (mut out, mut drops) = (Outbox::new(), DropCounters::default());
            receiver::datagram(now, from, &bytes, None, &mut self.nodes[index], &mut drops, &mut out);
            self.nodes[index].drops.merge(&drops);
            self.carry(index, &out);
        }
    }

    fn next_moment(&self) -> Option<u64> {
        let timeouts = self.nodes.iter().filter(|node| node.up);
        let timeouts =
            timeouts.filter_map(|node| node.participant.next_timeout()).map(|at| at.0.max(self.now));
        self.on_the_way.keys().next().map(|(at, _)| *at).into_iter().chain(timeouts).min()
    }

    fn roll(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }
}

impl Registry for Node {
    fn deliver(
        &mut self,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    ) {
        if let Err(reason) = self.participant.on_submessage(now, context, submessage, out) {
            self.drops.count(reason);
        }
    }

    fn deliver_control(&mut self, now: Now, run: &mut ControlRun<'_, '_>, out: &mut Outbox) {
        let first = out.transmits().len();
        while let Some((context, submessage)) = run.next() {
            self.deliver(now, context, &submessage, out);
        }
        out.merge(first);
    }

    fn is_local(&self, prefix: GuidPrefix) -> bool {
        self.participant.guid().prefix == prefix
    }
}
