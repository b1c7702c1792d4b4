//! The world: virtual time, a queue of what happens next, every process, and the ledger.

mod endpoints;
mod groups;
mod intruders;
mod memory;
mod scenes;
mod strangers;
mod verdict;

use std::collections::BTreeMap;
use std::rc::Rc;

use plainsong_proto::discovery::{DiscoveryLimits, MemoryRefusal, Participant, ParticipantConfig};
use plainsong_proto::guid::{EntityId, GuidPrefix};
use plainsong_proto::locator::{Locator, NodeId, ports};
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::Payload;
use plainsong_proto::time::{Duration, Instant};

use crate::dissect::{self, DATA, DATA_FRAG, GAP, HEARTBEAT, HEARTBEAT_FRAG};
use crate::ledger::{Ending, Epoch, Ledger, ParticipantRecord, Quiet, Taking};
use crate::mutation::Mutation;
use crate::network::{Host, Network, STRANGER, UNHEARD, is_multicast};
use crate::node::{Call, Node, NodeOptions, State, Told};
use crate::rng::Rng;
use crate::trace::{self, Detail, Trace};
use groups::Group;
pub use intruders::Attack;
use intruders::{Intruder, Overheard};
use memory::{Memory, Record};
pub use scenes::Scene;
use strangers::StrangeReader;

/// A topic of the simulated system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// It has a key.
    pub keyed: bool,
}

impl Topic {
    /// A topic whose instances are told apart by a key.
    #[must_use]
    pub fn keyed(name: &str) -> Self {
        Self { name: name.to_owned(), keyed: true }
    }

    /// A topic of one instance.
    #[must_use]
    pub fn keyless(name: &str) -> Self {
        Self { name: name.to_owned(), keyed: false }
    }
}

impl Write {
    /// Data of one instance, `bytes` long.
    #[must_use]
    pub const fn data(instance: u32, bytes: usize) -> Self {
        Self { kind: WriteKind::Data, instance, bytes, aged: Duration::ZERO }
    }

    /// The end of an instance.
    #[must_use]
    pub const fn dispose(instance: u32) -> Self {
        Self { kind: WriteKind::Dispose, instance, bytes: 0, aged: Duration::ZERO }
    }

    /// The writer gives an instance up.
    #[must_use]
    pub const fn unregister(instance: u32) -> Self {
        Self { kind: WriteKind::Unregister, instance, bytes: 0, aged: Duration::ZERO }
    }
}

/// What an application asks of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Data, or the end of an instance.
    pub kind: WriteKind,
    /// Which instance; 0 for topics without key.
    pub instance: u32,
    /// Length of the payload in octets.
    pub bytes: usize,
    /// Its source timestamp lies so far back.
    pub aged: Duration,
}

/// The four things one can do to an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// Write data.
    Data,
    /// Dispose of it.
    Dispose,
    /// Unregister it; disposes of it too when the writer's QoS says so.
    Unregister,
}

/// Something that happens at a time.
#[derive(Clone, Debug)]
pub(crate) enum Happening {
    /// A datagram reaches a node.
    Datagram { node: usize, from: Locator, bytes: Rc<[u8]> },
    /// A message is read from a ring.
    Record { node: usize, from: usize, link: u64, record: Record },
    /// A handshake about shared memory is over.
    LinkAnswered { node: usize, id: NodeId },
    /// A node hears of a link.
    LinkTold { node: usize, id: NodeId, answer: Result<(), MemoryRefusal> },
    /// A link ends.
    LinkEnds { key: (usize, usize), link: u64 },
    /// A node's timer goes off.
    Wake { node: usize },
    /// A stopped node runs again.
    Resume { node: usize },
    /// A reader takes.
    Take { reader: usize },
    /// The application has looked long enough at a subscriber.
    EndAccess { group: usize },
    /// A reader that nobody has asks again.
    StrangerAsks { stranger: usize, storm: usize, left: u32 },
    /// Strangers of discovery come.
    Intrude { attack: Attack, draw: u64 },
    /// A datagram reaches one of them.
    IntruderHears { intruder: usize, from: Locator, bytes: Rc<[u8]> },
    /// The timer of one goes off.
    IntruderWakes { intruder: usize },
    /// One changes what it has, or takes leave.
    IntruderActs { intruder: usize, left: u32 },
    /// Somebody genuine comes after a crowd.
    NewcomerComes { victim: usize },
    /// Whoever runs the world does something; the number is theirs.
    Agenda { item: u64 },
}

/// Where an endpoint of the ledger lives.
#[derive(Clone, Copy, Debug)]
struct Place {
    node: usize,
    member: usize,
    entity: EntityId,
}

/// Everything there is.
pub struct World {
    /// The time.
    pub at: Instant,
    /// The roads.
    pub network: Network,
    /// Who did what.
    pub ledger: Ledger,
    /// What happened.
    pub trace: Trace,
    /// Chance, for whoever runs the world.
    pub rng: Rng,
    /// A deliberate mistake.
    pub mutation: Option<Mutation>,
    /// The driver of the library dispatches in every process.
    pub driver: bool,
    /// Processes of one host share memory, most of them.
    pub shares_memory: bool,
    memory: Memory,
    /// Every process there ever was.
    pub nodes: Vec<Node>,
    /// Items of whoever runs the world that came up.
    pub(crate) due: Vec<u64>,
    queue: BTreeMap<(Instant, u64), Happening>,
    serial: u64,
    sockets: BTreeMap<Locator, usize>,
    writers: Vec<Place>,
    readers: Vec<Place>,
    groups: Vec<Group>,
    strangers: Vec<StrangeReader>,
    intruders: Vec<Intruder>,
    overheard: Overheard,
    /// When they came.
    intruded_at: Option<Instant>,
    /// Somebody stands still, and may be taken to be where somebody else is.
    is_overtaken: bool,
    /// What every process remembers of others.
    limits: DiscoveryLimits,
    /// Accesses of applications so far.
    accesses: u64,
    blocked: BTreeMap<usize, Write>,
    quiet: Option<Quiet>,
    faults_over: bool,
    out: Outbox,
    /// When a process may send again, with the mistake that large samples hold up the others.
    line_free_at: BTreeMap<usize, Instant>,
    /// Datagrams and timers so far; a run that exceeds [`STEPS_MAX`] goes round in circles.
    steps: u64,
}

/// More than any honest run needs.
const STEPS_MAX: u64 = 4_000_000;
/// IP and UDP headers of a datagram.
const HEADERS_BYTES: u64 = 28;
/// Timers go off a little late.
const LATENESS_NANOS_MAX: u64 = 200_000;

impl World {
    /// An empty world.
    #[must_use]
    pub fn new(seed: u64, detail: Detail) -> Self {
        let mut rng = Rng::new(seed);
        Self {
            at: Instant(0),
            network: Network::new(rng.fork(1)),
            ledger: Ledger::default(),
            trace: Trace::new(detail),
            rng: rng.fork(2),
            mutation: None,
            driver: false,
            shares_memory: false,
            memory: Memory::default(),
            nodes: Vec::new(),
            due: Vec::new(),
            queue: BTreeMap::new(),
            serial: 0,
            sockets: BTreeMap::new(),
            writers: Vec::new(),
            readers: Vec::new(),
            groups: Vec::new(),
            strangers: Vec::new(),
            intruders: Vec::new(),
            overheard: Overheard::default(),
            intruded_at: None,
            is_overtaken: false,
            limits: DiscoveryLimits::default(),
            accesses: 0,
            blocked: BTreeMap::new(),
            quiet: None,
            faults_over: false,
            out: Outbox::new(),
            line_free_at: BTreeMap::new(),
            steps: 0,
        }
    }

    /// Starts a process; its number.
    pub fn start(&mut self, mut options: NodeOptions) -> usize {
        options.limits = self.limits;
        options.driver = self.driver;
        if self.mutation == Some(Mutation::AdmitAll) {
            options.limits.endpoints_per_participant_max = usize::MAX;
        }
        let index = self.nodes.len();
        let mut node = Node::new(options.clone(), 0);
        node.bind(self.free_index(options.host, options.domain));
        if self.shares_memory && index % 5 != 4 {
            node.node_id = Some(memory::node_id(index));
            self.ledger.shares_memory = true;
        }
        for socket in node.sockets() {
            self.sockets.insert(socket, index);
        }
        let lease_duration = options.lease_duration;
        let (domain, host, participants) = (options.domain, options.host, options.participants);
        self.nodes.push(node);
        self.note(index, 1, || format!("starts on {}, domain {domain}", host.address()));
        for member in 0..participants {
            let prefix = prefix(host, index, member);
            let record = self.ledger.participants.len();
            self.ledger.participants.push(ParticipantRecord {
                prefix,
                domain,
                born_at: self.at,
                ended: None,
                lease_duration,
                knows: Vec::new(),
                believes: Vec::new(),
                mismatches: Vec::new(),
                wall_set_at: Vec::new(),
                stopped: Vec::new(),
                moved_at: Vec::new(),
            });
            let seed = self.rng.next();
            self.call(index, |node, call| node.join(prefix, seed, record, call));
        }
        index
    }

    /// A process dies without a word.
    pub fn crash(&mut self, node: usize) {
        if self.nodes[node].state == State::Gone {
            return;
        }
        self.note(node, 2, || "crashes".to_owned());
        self.nodes[node].state = State::Gone;
        self.tell_end_of(node);
        self.bury(node, Ending::Crashed);
    }

    /// A process leaves in good order.
    pub fn leave(&mut self, node: usize) {
        if self.nodes[node].state == State::Gone {
            return;
        }
        self.note(node, 3, || "leaves".to_owned());
        self.call(node, |node, call| node.leave(call));
        self.nodes[node].state = State::Gone;
        self.bury(node, Ending::Deleted);
    }

    fn bury(&mut self, node: usize, ending: Ending) {
        let ended = Some((self.at, ending));
        self.end_links_of(node);
        for socket in self.nodes[node].sockets() {
            self.sockets.remove(&socket);
        }
        for member in &self.nodes[node].members {
            self.ledger.participants[member.record].ended = ended;
            for local in member.writers.values() {
                self.ledger.writers[local.record].endpoint.ended = ended;
                self.blocked.remove(&local.record);
            }
            for local in member.readers.values() {
                self.ledger.readers[local.record].endpoint.ended = ended;
            }
        }
    }

    /// A process stops for a while.
    pub fn pause(&mut self, node: usize, lasting: Duration) {
        if self.nodes[node].state != State::Running {
            return;
        }
        self.note(node, 4, || format!("stops for {} ms", lasting.0 / 1_000_000));
        self.nodes[node].state = State::Paused;
        for member in &self.nodes[node].members {
            let stop = Epoch { start: self.at, end: None };
            self.ledger.participants[member.record].stopped.push(stop);
        }
        self.after(lasting, Happening::Resume { node });
    }

    fn resume(&mut self, node: usize) {
        if self.nodes[node].state != State::Paused {
            return;
        }
        self.note(node, 5, || "runs again".to_owned());
        self.nodes[node].state = State::Running;
        for member in &self.nodes[node].members {
            if let Some(stop) = self.ledger.participants[member.record].stopped.last_mut() {
                stop.end = Some(self.at);
            }
        }
        while let Some((from, bytes)) = self.nodes[node].waiting.pop_front() {
            self.call(node, |node, call| node.receive(from, &bytes, call));
        }
        self.read_waiting(node);
        self.call(node, |node, call| node.timeout(call));
    }

    /// The lowest participant index whose ports are free on a host.
    fn free_index(&self, host: Host, domain: u16) -> u16 {
        let free = |index: &u16| {
            let ports = [ports::meta_unicast(domain, *index), ports::user_unicast(domain, *index)];
            ports.iter().all(|port| !self.sockets.contains_key(&host.locator(*port)))
        };
        (0..ports::PARTICIPANT_INDEX_MAX).find(free).unwrap_or(ports::PARTICIPANT_INDEX_MAX)
    }

    /// A process finds itself under another address: its interface changed.
    pub fn move_to(&mut self, node: usize, host: Host) {
        if self.nodes[node].state != State::Running || self.nodes[node].options.host == host {
            return;
        }
        self.note(node, 18, || format!("moves to {}", host.address()));
        self.end_links_of(node);
        for member in &self.nodes[node].members {
            self.ledger.participants[member.record].moved_at.push(self.at);
        }
        for socket in self.nodes[node].sockets() {
            self.sockets.remove(&socket);
        }
        let index = self.free_index(host, self.nodes[node].options.domain);
        // The new sockets are open before anybody hears of them.
        let domain = self.nodes[node].options.domain;
        for port in [ports::meta_unicast(domain, index), ports::user_unicast(domain, index)] {
            self.sockets.insert(host.locator(port), node);
        }
        self.call(node, |node, call| node.move_to(host, index, call));
    }

    /// Somebody sets a wall clock.
    pub fn jump(&mut self, node: usize, by: Duration) {
        self.note(node, 6, || format!("wall clock jumps by {} ms", by.0 / 1_000_000));
        self.nodes[node].options.clock.jump(by);
        for member in &self.nodes[node].members {
            self.ledger.participants[member.record].wall_set_at.push(self.at);
        }
    }

    /// Puts something on the agenda; it comes up in `due`.
    pub(crate) fn agenda(&mut self, at: Instant, item: u64) {
        self.push(at, Happening::Agenda { item });
    }

    fn after(&mut self, delay: Duration, happening: Happening) {
        let at = self.at.after(delay).unwrap_or(Instant(u64::MAX));
        self.push(at, happening);
    }

    fn push(&mut self, at: Instant, happening: Happening) {
        self.serial += 1;
        self.queue.insert((at, self.serial), happening);
    }

    /// Lets time pass until `until`, or until an item of the agenda comes up. True when it is `until`.
    pub(crate) fn advance(&mut self, until: Instant) -> bool {
        while let Some(((at, serial), _)) = self.queue.first_key_value() {
            let key = (*at, *serial);
            if key.0 > until || self.is_livelocked() {
                break;
            }
            self.at = self.at.max(key.0);
            if let Some(happening) = self.queue.remove(&key) {
                self.step(happening);
            }
            if !self.due.is_empty() {
                return false;
            }
        }
        self.at = until;
        true
    }

    /// Lets `lasting` pass.
    pub fn run_for(&mut self, lasting: Duration) {
        let until = self.at.after(lasting).unwrap_or(self.at);
        while !self.advance(until) {
            self.due.clear();
        }
    }

    /// Lets time pass until `condition` holds, in steps of 10 ms; false when it does not within `limit`.
    pub fn run_until(&mut self, limit: Duration, condition: impl Fn(&Self) -> bool) -> bool {
        let end = self.at.after(limit).unwrap_or(self.at);
        while !condition(self) {
            if self.at >= end {
                return false;
            }
            self.run_for(Duration::from_millis(10));
        }
        true
    }

    fn is_livelocked(&self) -> bool {
        self.steps > STEPS_MAX
    }

    fn step(&mut self, happening: Happening) {
        self.steps += 1;
        if let Happening::Datagram { node, from, bytes } = &happening
            && Host::of(from) == Some(STRANGER)
        {
            // Each participant of a process answers for itself.
            let heard_by = self.nodes[*node].members.len().max(1) as u64;
            self.ledger.stranger.received += heard_by * (HEADERS_BYTES + bytes.len() as u64);
        }
        match happening {
            Happening::Datagram { node, from, bytes } => match self.nodes[node].state {
                State::Running => {
                    self.note(node, 17, || {
                        let content = dissect::dissect(&bytes);
                        format!(
                            "< {from} {}",
                            content.map_or_else(String::new, |summary| summary.to_string())
                        )
                    });
                    self.hear(node, from, &bytes);
                }
                State::Paused => {
                    let kept = self.nodes[node].queue(from, bytes);
                    self.note(node, 14, || format!("datagram waits: {kept}"));
                }
                State::Gone => {}
            },
            Happening::Wake { node } => {
                if self.nodes[node].wake_at == Some(self.at) {
                    self.nodes[node].wake_at = None;
                    if let Some(quiet) = &mut self.quiet {
                        quiet.timers += 1;
                    }
                    if self.nodes[node].state == State::Running {
                        let (at, process) = (self.at, &self.nodes[node]);
                        self.trace.record(at, &[node as u64, 24], || {
                            format!("n{node} timer of {:?}", process.due(at))
                        });
                        self.call(node, |node, call| node.timeout(call));
                    }
                }
            }
            Happening::Record { node, from, link, record } => self.read_record(node, from, link, record),
            Happening::LinkAnswered { node, id } => self.answer_link(node, id),
            Happening::LinkTold { node, id, answer } => self.link_told(node, id, answer),
            Happening::LinkEnds { key, link } => self.end_link(key, link),
            Happening::Resume { node } => self.resume(node),
            Happening::EndAccess { group } => drop(self.end_access(group)),
            Happening::Take { reader } => {
                if self.ledger.readers[reader].endpoint.is_alive() {
                    match self.accessed_group(reader) {
                        Some(group) => self.begin_long_access(group),
                        None => drop(self.take(reader)),
                    }
                    if let Taking::Every(period) = self.ledger.readers[reader].taking
                        && !self.faults_over
                    {
                        self.after(period, Happening::Take { reader });
                    }
                }
            }
            Happening::StrangerAsks { stranger, storm, left } => self.stranger_asks(stranger, storm, left),
            Happening::Intrude { attack, draw } => self.intrude(attack, draw),
            Happening::IntruderHears { intruder, from, bytes } => self.intruder_hears(intruder, from, &bytes),
            Happening::IntruderWakes { intruder } => self.wake_intruder(intruder),
            Happening::IntruderActs { intruder, left } => self.intruder_acts(intruder, left),
            Happening::NewcomerComes { victim } => self.newcomer_comes(victim),
            Happening::Agenda { item } => self.due.push(item),
        }
    }

    /// A running process hears a datagram.
    fn hear(&mut self, node: usize, from: Locator, bytes: &[u8]) {
        let Some(mistaken) = self.mistake(node, from, bytes) else { return };
        if self.intruded_at.is_none() || Host::of(&from).is_none_or(|host| host < STRANGER) {
            return self.call(node, |node, call| node.receive(mistaken, bytes, call));
        }
        let before = self.beliefs(node);
        self.call(node, |node, call| node.receive(mistaken, bytes, call));
        self.note_changes(node, &before);
        self.prove_by_mistake(node, from, bytes);
    }

    /// Calls into a node, sends what it wants sent, and lets applications do what they are told of.
    fn call<R>(&mut self, index: usize, f: impl FnOnce(&mut Node, &mut Call<'_>) -> R) -> R {
        let mut out = std::mem::take(&mut self.out);
        let (mut told, mut classes) = (Vec::new(), Vec::new());
        let mut call = Call {
            at: self.at,
            now: self.nodes[index].options.clock.now(self.at),
            ledger: &mut self.ledger,
            out: &mut out,
            told: &mut told,
            classes: &mut classes,
            mutation: self.mutation,
        };
        let result = f(&mut self.nodes[index], &mut call);
        self.send(index, &out, &classes);
        for sent in self.nodes[index].take_sent() {
            self.send_datagram(index, (sent.bytes.into(), None), sent.traffic_class, &sent.destinations);
        }
        out.clear();
        self.out = out;
        self.arm(index);
        for told in told {
            self.tell(index, told);
        }
        result
    }

    fn tell(&mut self, node: usize, told: Told) {
        match told {
            Told::DataAvailable(reader) => {
                let taking = self.ledger.readers[reader].taking;
                let promptly = taking == Taking::Promptly || (self.faults_over && taking != Taking::AtEnd);
                if promptly && self.mutation != Some(Mutation::HideDataAvailable) {
                    self.take(reader);
                }
            }
            Told::Progress(writer) => {
                if let Some(write) = self.blocked.get(&writer).copied() {
                    self.write(writer, write);
                }
            }
            Told::GroupPart(reader) => self.group_part(reader),
            Told::Link(id) => self.ask_for_link(node, id),
            Told::Match { local, peer, begins } => {
                let verb = if begins { "is matched with" } else { "is no longer matched with" };
                self.note(node, 15, || format!("{local:?} {verb} {peer}"));
            }
            Told::Participant { guid, alive } => {
                self.note_end(node, guid.prefix, alive);
                let verb = if alive { "knows" } else { "forgets" };
                self.note(node, 16, || format!("{verb} {guid}"));
            }
        }
    }

    fn arm(&mut self, index: usize) {
        let node = &self.nodes[index];
        let mut next_timeout = node.next_timeout();
        if self.mutation == Some(Mutation::WakeForNothing) {
            next_timeout = Some(Instant(self.at.0 + 1_000_000));
        }
        let Some(next) = next_timeout.filter(|_| node.state == State::Running) else { return };
        // A timer that is due already still takes a moment to go off.
        let next = next.max(Instant(self.at.0 + 1_000));
        let wake_at = node.wake_at.unwrap_or(Instant(u64::MAX));
        if next < wake_at {
            let at = Instant(next.0 + self.rng.below(LATENESS_NANOS_MAX));
            // One that is late already is not put off again.
            if at < wake_at {
                self.nodes[index].wake_at = Some(at);
                self.push(at, Happening::Wake { node: index });
            }
        }
    }

    fn send(&mut self, index: usize, out: &Outbox, classes: &[u8]) {
        for (place, transmit) in out.transmits().iter().enumerate() {
            let class = classes.get(place).copied().unwrap_or(0);
            let attachment: Option<Payload> = out.parts(transmit).1.cloned();
            let record = (out.datagram(transmit).into(), attachment);
            self.send_datagram(index, record, class, out.destinations(transmit));
        }
    }

    fn send_datagram(&mut self, index: usize, record: Record, class: u8, destinations: &[Locator]) {
        let departs = self.witness(index, &record.0, class);
        for destination in destinations {
            self.send_one(index, destination, &record.0, departs);
            if let Some(id) = destination.node_id() {
                self.push_record(index, id, record.clone(), departs);
            }
        }
    }

    /// Enters into the ledger what writers sent, and says when it departs.
    fn witness(&mut self, index: usize, bytes: &[u8], class: u8) -> Instant {
        let Some(summary) = dissect::dissect(bytes) else { return self.at };
        self.overhear(&summary);
        let of_writers = [DATA, DATA_FRAG, HEARTBEAT, HEARTBEAT_FRAG, GAP];
        let sent = summary.submessages.iter().filter(|it| it.is_user() && of_writers.contains(&it.id));
        let mut departs = self.at;
        for submessage in sent {
            if self.mutation == Some(Mutation::WaitInLine) {
                let free_at = self.line_free_at.entry(index).or_default();
                departs = (*free_at).max(self.at);
                if submessage.id == DATA_FRAG {
                    *free_at = Instant(departs.0 + 1_000_000);
                }
            }
            let guid = summary.source.entity(submessage.writer);
            let record = self.ledger.writers.iter_mut().find(|writer| writer.endpoint.guid == guid);
            let Some(record) = record else { continue };
            record.marked.insert((record.endpoint.qos.transport_priority, class));
            match submessage.id {
                DATA => drop(record.sent.entry(submessage.number as i64).or_insert(departs)),
                DATA_FRAG if record.fragments.last() != Some(&departs) => record.fragments.push(departs),
                _ => {}
            }
        }
        departs
    }

    fn send_one(&mut self, index: usize, destination: &Locator, bytes: &Rc<[u8]>, departs: Instant) {
        let [from, _] = self.nodes[index].sockets();
        let host = self.nodes[index].options.host;
        self.count(bytes);
        if Host::of(destination) == Some(STRANGER) {
            self.ledger.stranger.sent += HEADERS_BYTES + bytes.len() as u64;
        }
        if Host::of(destination).is_some_and(|host| host >= STRANGER && host != UNHEARD) {
            self.sent_to_stranger(from, destination, bytes);
        }
        self.trace.record(
            self.at,
            &[index as u64, trace::octets(bytes), u64::from(destination.port)],
            || {
                let content = dissect::dissect(bytes).map_or_else(String::new, |summary| summary.to_string());
                format!("n{index} > {destination} {} {content}", bytes.len())
            },
        );
        if is_multicast(destination) {
            let domain = self.nodes[index].options.domain;
            let group: Vec<usize> = self.members_of(domain);
            for node in group {
                let to = self.nodes[node].options.host;
                self.carry((host, departs), to, from, node, bytes);
            }
        } else if let Some(node) = self.sockets.get(destination).copied() {
            let to = self.nodes[node].options.host;
            self.carry((host, departs), to, from, node, bytes);
        }
    }

    fn members_of(&self, domain: u16) -> Vec<usize> {
        let nodes = self.nodes.iter().enumerate();
        nodes
            .filter(|(_, node)| node.state != State::Gone && node.options.domain == domain)
            .filter(|(_, node)| node.options.peers.is_empty())
            .map(|(index, _)| index)
            .collect()
    }

    fn carry(
        &mut self,
        (from_host, departs): (Host, Instant),
        to: Host,
        from: Locator,
        node: usize,
        bytes: &Rc<[u8]>,
    ) {
        for arrival in self.network.arrivals(departs, from_host, to, bytes.len()).into_iter().flatten() {
            self.push(arrival, Happening::Datagram { node, from, bytes: Rc::clone(bytes) });
        }
    }

    fn count(&mut self, bytes: &[u8]) {
        let Some(quiet) = &mut self.quiet else { return };
        quiet.datagrams += 1;
        quiet.octets += bytes.len() as u64;
        if let Some(summary) = dissect::dissect(bytes) {
            let user = summary.submessages.iter().filter(|submessage| submessage.is_user());
            quiet.user_submessages += user.count() as u64;
        }
    }

    /// Somebody pretends to a node, `times` within a few seconds, that a participant lives at
    /// [`STRANGER`].
    pub fn forge(&mut self, node: usize, times: u64) {
        let serial = self.nodes.len() + self.queue.len();
        self.forge_as(prefix(STRANGER, serial, node), node, times);
    }

    fn forge_as(&mut self, prefix: GuidPrefix, node: usize, times: u64) {
        let from = STRANGER.locator(ports::meta_unicast(0, 0));
        let mut out = Outbox::new();
        let mut config = ParticipantConfig::new(prefix, self.nodes[node].options.domain);
        config.lease_duration = Duration::from_secs(5);
        config.locators.meta_unicast = vec![from];
        config.locators.user_unicast = vec![from];
        config.locators.announce_to = self.nodes[node].sockets()[..1].to_vec();
        let now = self.nodes[node].options.clock.now(self.at);
        Participant::new(config).start(now, &mut out);
        self.note(node, 23, || format!("is told {times} times that {prefix:?} lives at {from}"));
        for transmit in out.transmits() {
            let bytes: Rc<[u8]> = out.datagram(transmit).into();
            for _ in 0..times {
                let at = Instant(self.at.0 + self.rng.below(3_000_000_000));
                self.push(at, Happening::Datagram { node, from, bytes: Rc::clone(&bytes) });
            }
        }
    }

    fn note(&mut self, node: usize, what: u64, line: impl FnOnce() -> String) {
        self.trace.record(self.at, &[node as u64, what], || format!("n{node} {}", line()));
    }
}

/// Twelve octets that no other participant of this world has.
fn prefix(host: Host, node: usize, member: usize) -> GuidPrefix {
    let [node_high, node_low] = (node as u16).to_be_bytes();
    GuidPrefix([0x01, 0x99, host.0, 0, 0, node_high, node_low, 0, 0, 0, 0, member as u8 + 1])
}
