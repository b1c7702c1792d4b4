//! One process: participants that share its sockets, their writers and readers, and its clock. It does
//! with the state machines what a driver does, one call at a time, or has the driver of the library do it.

mod home;
mod limits;
mod member;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use plainsong_proto::discovery::{
    DiscoveryLimits, LocalEndpoint, LocalLocators, MemoryRefusal, Participant, ParticipantConfig,
};
use plainsong_proto::filter::{FilterFunction, SignedFilter};
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::instance::KeyFunction;
use plainsong_proto::locator::{Locator, NodeId, ports};
use plainsong_proto::outbox::{Event, Outbox};
use plainsong_proto::payload::Payload;
use plainsong_proto::qos::{LivelinessKind, QosSet};
use plainsong_proto::reader::{GroupRoom, Reader, ReaderConfig, ReaderLimits, next_verdict};
use plainsong_proto::receiver::{self, Registry};
use plainsong_proto::stats::DropCounters;
use plainsong_proto::time::{Duration, Instant, Now};
use plainsong_proto::wire::{EndpointSubmessage, MessageContext};
use plainsong_proto::writer::{Writer, WriterConfig, WriterGroup, WriterLimits};

use plainsong::sim::{Collected, Driver, Heard, SimWriter};

use self::limits::{tight_reader, tight_writer};

pub use self::home::Home;
pub use self::member::{LocalReader, LocalWriter, Member};

use crate::clock::Clock;
use crate::ledger::Ledger;
use crate::mutation::{Mutation, announced, obeyed, obeyed_filter};
use crate::network::{Host, STRANGER};
use crate::sample::{self, Filter};

/// How a process is set up.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The machine it runs on.
    pub host: Host,
    /// The domain of its participants.
    pub domain: u16,
    /// How many participants it has.
    pub participants: usize,
    /// Lease of its participants.
    pub lease_duration: Duration,
    /// Time between announcements.
    pub announce_period: Duration,
    /// Its clock.
    pub clock: Clock,
    /// Where it announces itself besides: unicast addresses of peers. Without any it uses multicast.
    pub peers: Vec<Locator>,
    /// Its endpoints have hardly any room beside what QoS asks for.
    pub tight: bool,
    /// What it remembers of others.
    pub limits: DiscoveryLimits,
    /// The driver of the library dispatches, not the node.
    pub driver: bool,
}

impl NodeOptions {
    /// One participant in domain 0, announced each second, forgotten after three.
    #[must_use]
    pub fn on(host: u8) -> Self {
        Self {
            host: Host(host),
            domain: 0,
            participants: 1,
            lease_duration: Duration::from_secs(3),
            announce_period: Duration::from_secs(1),
            clock: Clock::new(1_000_000_000, Duration::ZERO),
            peers: Vec::new(),
            tight: false,
            limits: DiscoveryLimits::default(),
            driver: false,
        }
    }
}

/// Whether a process does anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Running,
    /// It is stopped; datagrams wait in its sockets.
    Paused,
    /// It is gone for good.
    Gone,
}

/// A process.
pub struct Node {
    /// How it was set up.
    pub options: NodeOptions,
    /// Whether it runs.
    pub state: State,
    /// When its timer goes off.
    pub wake_at: Option<Instant>,
    /// What it dropped, beyond what its endpoints counted.
    pub drops: DropCounters,
    /// Its participants.
    pub members: Vec<Member>,
    /// Datagrams in the sockets of a stopped process, oldest first.
    pub waiting: VecDeque<(Locator, Rc<[u8]>)>,
    /// The driver of the process, unless the node makes all calls itself.
    driver: Option<Driver>,
    /// By which others share memory with it.
    pub node_id: Option<NodeId>,
    meta_port: u16,
    user_port: u16,
}

/// What an application was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Data waits at the reader with this place in the ledger.
    DataAvailable(usize),
    /// The writer with this place in the ledger has room.
    Progress(usize),
    /// The reader with this place in the ledger has its part of a coherent set of its publisher.
    GroupPart(usize),
    /// A node of its host is there, to share memory with.
    Link(NodeId),
    /// An endpoint is matched with another, or is no longer.
    Match {
        /// The local endpoint.
        local: EntityId,
        /// The other.
        peer: Guid,
        /// Whether the match begins.
        begins: bool,
    },
    /// A remote participant came, changed or went.
    Participant {
        /// Its GUID.
        guid: Guid,
        /// Whether it is there.
        alive: bool,
    },
}

/// What a call into a node needs besides the node.
pub struct Call<'a> {
    /// The world's time.
    pub at: Instant,
    /// The same by the clocks of the node.
    pub now: Now,
    /// What everyone did.
    pub ledger: &'a mut Ledger,
    /// What the state machines ask for.
    pub out: &'a mut Outbox,
    /// What the application is told.
    pub told: &'a mut Vec<Told>,
    /// With which traffic class each datagram in `out` is to be marked; those beyond the end with 0.
    pub classes: &'a mut Vec<u8>,
    /// A deliberate mistake.
    pub mutation: Option<Mutation>,
}

impl Call<'_> {
    /// Calls into a writer, whose datagrams bear the mark that it asks for.
    pub fn of_writer<R>(
        &mut self,
        writer: &mut Home<Writer, SimWriter>,
        call: impl FnOnce(&mut Writer, &mut Outbox) -> R,
    ) -> R {
        let writer = match writer {
            Home::Here(writer) => writer,
            Home::Driver(slot) => return slot.run(self.now, call),
        };
        let before = self.out.transmits().len();
        self.classes.resize(before, 0);
        let result = call(writer, self.out);
        self.classes.resize(self.out.transmits().len(), writer.traffic_class());
        result
    }
}

/// Octets a stopped process's sockets hold.
const SOCKET_BYTES_MAX: usize = 256 << 10;

impl Node {
    /// A process that is not yet known to anyone. `index` numbers it on its host, `serial` in the world.
    #[must_use]
    pub fn new(options: NodeOptions, index: u16) -> Self {
        let (meta_port, user_port) =
            (ports::meta_unicast(options.domain, index), ports::user_unicast(options.domain, index));
        let driver = options.driver.then(Driver::default);
        Self {
            options,
            state: State::Running,
            wake_at: None,
            drops: DropCounters::default(),
            members: Vec::new(),
            waiting: VecDeque::new(),
            driver,
            node_id: None,
            meta_port,
            user_port,
        }
    }

    /// Its sockets.
    #[must_use]
    pub fn sockets(&self) -> [Locator; 2] {
        [self.options.host.locator(self.meta_port), self.options.host.locator(self.user_port)]
    }

    /// Creates and starts a participant.
    pub fn join(&mut self, prefix: GuidPrefix, seed: u64, record: usize, call: &mut Call<'_>) {
        let now = self.options.clock.now(call.at);
        let mut config = ParticipantConfig::new(prefix, self.options.domain);
        config.lease_duration = self.options.lease_duration;
        config.announce_period = self.options.announce_period;
        config.locators = self.locators();
        config.limits = self.options.limits;
        config.seed = seed;
        config.secret[..8].copy_from_slice(&seed.to_le_bytes());
        config.secret[8..].copy_from_slice(&prefix.0[4..]);
        let mut participant = Participant::new(config);
        if call.mutation == Some(Mutation::TrustStrangers) {
            let mut locators = self.locators();
            locators.announce_to.push(STRANGER.locator(self.meta_port));
            participant.set_locators(now, locators, call.out);
        }
        let participant = match &self.driver {
            None => {
                participant.start(now, call.out);
                Home::Here(Box::new(participant))
            }
            Some(driver) => {
                let slot = driver.add(now, participant);
                slot.run(now, |participant, out| participant.start(now, out));
                Home::Driver(slot)
            }
        };
        let (writers, readers) = (BTreeMap::new(), BTreeMap::new());
        self.members.push(Member { participant, record, writers, readers, prefix, next_key: 1 });
        self.settle(self.members.len() - 1, now, call);
    }

    fn locators(&self) -> LocalLocators {
        let [meta, user] = self.sockets();
        let domain = self.options.domain;
        let group = Locator::udp(ports::MULTICAST_V4.into(), ports::meta_multicast(domain));
        let by_multicast = self.options.peers.is_empty();
        LocalLocators {
            meta_unicast: vec![meta],
            meta_multicast: if by_multicast { vec![group] } else { Vec::new() },
            user_unicast: vec![user],
            user_multicast: Vec::new(),
            node_id: self.node_id,
            memory_refusal: None,
            own_addresses: vec![self.options.host.address()],
            networks: Vec::new(),
            announce_to: if by_multicast { vec![group] } else { self.options.peers.clone() },
            scan: Vec::new(),
            receive_bytes: SOCKET_BYTES_MAX as u32,
        }
    }

    /// A datagram arrived.
    pub fn receive(&mut self, from: Locator, bytes: &[u8], call: &mut Call<'_>) {
        self.receive_with(from, bytes, None, call);
    }

    /// A message arrived, and what came beside it.
    pub fn receive_with(
        &mut self,
        from: Locator,
        bytes: &[u8],
        attachment: Option<&Payload>,
        call: &mut Call<'_>,
    ) {
        let now = self.options.clock.now(call.at);
        if let Some(driver) = &self.driver {
            driver.receive(now, from, bytes);
            return self.settle_driver(call);
        }
        let mut drops = std::mem::take(&mut self.drops);
        let mut out = std::mem::take(call.out);
        let mut dispatch = Dispatch { node: self, call };
        receiver::datagram(now, from, bytes, attachment, &mut dispatch, &mut drops, &mut out);
        drops.merge(&self.drops);
        self.drops = drops;
        *call.out = out;
    }

    /// What became of a link with another process.
    pub fn memory_link(&mut self, id: NodeId, answer: Result<(), MemoryRefusal>, call: &mut Call<'_>) {
        let now = self.options.clock.now(call.at);
        for index in 0..self.members.len() {
            self.members[index]
                .participant
                .run(now, call.out, |participant, out| participant.memory_link(now, id, answer, out));
            self.settle(index, now, call);
        }
    }

    /// A datagram reached a stopped process: it waits, or is dropped when there is no room.
    pub fn queue(&mut self, from: Locator, bytes: Rc<[u8]>) -> bool {
        let waiting: usize = self.waiting.iter().map(|(_, bytes)| bytes.len()).sum();
        let fits = waiting + bytes.len() <= SOCKET_BYTES_MAX;
        if fits {
            self.waiting.push_back((from, bytes));
        }
        fits
    }

    /// Calls everyone whose time has come.
    pub fn timeout(&mut self, call: &mut Call<'_>) {
        let now = self.options.clock.now(call.at);
        if let Some(driver) = &self.driver {
            driver.fire_due(now);
            return self.settle_driver(call);
        }
        let due = |next: Option<Instant>| next.is_some_and(|next| next <= now.mono);
        let stopped = call.mutation == Some(Mutation::StopTimers);
        for index in 0..self.members.len() {
            let member = &mut self.members[index];
            if due(member.participant.look(Participant::next_timeout)) {
                member.participant.run(now, call.out, |participant, out| participant.timeout(now, out));
            }
            for local in member.writers.values_mut().filter(|_| !stopped) {
                if due(local.writer.look(Writer::next_timeout)) {
                    call.of_writer(&mut local.writer, |writer, out| writer.timeout(now, out));
                }
            }
            for local in member.readers.values_mut().filter(|_| !stopped) {
                if due(local.reader.look(Reader::next_timeout)) {
                    local.reader.run(now, call.out, |reader, out| reader.timeout(now, out));
                }
            }
            self.settle(index, now, call);
        }
    }

    /// The world's time at which [`Self::timeout`] is to be called next.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        if let Some(driver) = &self.driver {
            return driver.next_timeout().map(|mono| self.options.clock.world(mono));
        }
        let members = self.members.iter().flat_map(|member| {
            let writers = member.writers.values().filter_map(|local| local.writer.look(Writer::next_timeout));
            let readers = member.readers.values().filter_map(|local| local.reader.look(Reader::next_timeout));
            member.participant.look(Participant::next_timeout).into_iter().chain(writers).chain(readers)
        });
        members.min().map(|mono| self.options.clock.world(mono))
    }

    /// Whose time has come, for the trace.
    #[must_use]
    pub fn due(&self, at: Instant) -> Vec<EntityId> {
        let now = self.options.clock.now(at).mono;
        let is_due = |next: Option<Instant>| next.is_some_and(|next| next <= now);
        let of_member = |member: &Member| -> Vec<EntityId> {
            let writers =
                member.writers.iter().filter(|(_, local)| is_due(local.writer.look(Writer::next_timeout)));
            let readers =
                member.readers.iter().filter(|(_, local)| is_due(local.reader.look(Reader::next_timeout)));
            let participant =
                is_due(member.participant.look(Participant::next_timeout)).then_some(EntityId::PARTICIPANT);
            let endpoints = writers.map(|(id, _)| *id).chain(readers.map(|(id, _)| *id));
            participant.into_iter().chain(endpoints).collect()
        };
        self.members.iter().flat_map(of_member).collect()
    }

    /// Leaves in good order.
    pub fn leave(&mut self, call: &mut Call<'_>) {
        let now = self.options.clock.now(call.at);
        for index in 0..self.members.len() {
            self.members[index]
                .participant
                .run(now, call.out, |participant, out| participant.shutdown(now, out));
            self.settle(index, now, call);
        }
        self.state = State::Gone;
    }

    /// Creates a writer and announces it. Its GUID, or why it was refused.
    ///
    /// # Errors
    /// What discovery said.
    pub fn add_writer(
        &mut self,
        member: usize,
        endpoint: NewEndpoint<'_>,
        group: Option<Arc<WriterGroup>>,
        call: &mut Call<'_>,
    ) -> Result<Guid, String> {
        let now = self.options.clock.now(call.at);
        let place = &mut self.members[member];
        let guid = place.next_guid(|key| EntityId::user_writer(key, endpoint.keyed));
        let qos = obeyed(endpoint.qos.clone(), call.mutation);
        let mut limits = if self.options.tight { tight_writer() } else { WriterLimits::default() };
        if call.mutation == Some(Mutation::AwaitStrangers) {
            limits.strangers_wait_max = Duration::INFINITE;
        }
        let content_filter = Some(FilterFunction::new(sample::content_filter));
        if let Some(group) = &group {
            group.add_writer(guid.entity);
        }
        let writer = Writer::new(WriterConfig {
            guid,
            keyed: endpoint.keyed,
            qos,
            limits,
            content_filter,
            group: group.clone(),
        });
        let writer = match &place.participant {
            Home::Here(_) => Home::Here(Box::new(writer)),
            Home::Driver(slot) => Home::Driver(slot.add_writer(now, writer)),
        };
        let local = LocalWriter { writer, record: endpoint.record, group };
        place.writers.insert(guid.entity, local);
        self.announce(member, guid, endpoint, call, now)
    }

    /// Creates a reader and announces it. Its GUID, or why it was refused.
    ///
    /// # Errors
    /// What discovery said.
    pub fn add_reader(
        &mut self,
        member: usize,
        endpoint: NewEndpoint<'_>,
        call: &mut Call<'_>,
    ) -> Result<Guid, String> {
        let now = self.options.clock.now(call.at);
        let place = &mut self.members[member];
        let guid = place.next_guid(|key| EntityId::user_reader(key, endpoint.keyed));
        let key = KeyFunction::new(if endpoint.keyed { sample::key } else { sample::no_key });
        let qos = obeyed(endpoint.qos.clone(), call.mutation);
        let limits = if self.options.tight { tight_reader() } else { ReaderLimits::default() };
        let mut reader = Reader::new(ReaderConfig { guid, keyed: endpoint.keyed, qos, limits, key });
        if let Some(filter) = endpoint.filter.and_then(|filter| obeyed_filter(filter, call.mutation)) {
            let signature = filter.announced(endpoint.topic).signature();
            reader.set_filter(Some(SignedFilter { filter: filter.obeyed(), signature }));
        }
        let reader = match &place.participant {
            Home::Here(_) => Home::Here(Box::new(reader)),
            Home::Driver(slot) => Home::Driver(slot.add_reader(now, reader)),
        };
        place.readers.insert(guid.entity, LocalReader { reader, record: endpoint.record });
        self.announce(member, guid, endpoint, call, now)
    }

    fn announce(
        &mut self,
        member: usize,
        guid: Guid,
        endpoint: NewEndpoint<'_>,
        call: &mut Call<'_>,
        now: Now,
    ) -> Result<Guid, String> {
        let local = LocalEndpoint {
            guid,
            topic: endpoint.topic.to_owned(),
            type_name: "Sample".to_owned(),
            keyed: endpoint.keyed,
            qos: announced(endpoint.qos.clone(), call.mutation),
            group: endpoint.group,
            content_filter: endpoint
                .filter
                .and_then(|filter| obeyed_filter(filter, call.mutation))
                .map(|filter| filter.announced(endpoint.topic)),
            type_description: None,
        };
        (endpoint.born)(call.ledger, guid);
        let added = self.members[member]
            .participant
            .run(now, call.out, |participant, out| participant.add_endpoint(now, local, out));
        self.settle(member, now, call);
        added.map(|()| guid).map_err(|error| error.to_string())
    }

    /// Changes the QoS of a writer or reader.
    pub fn set_qos(&mut self, member: usize, entity: EntityId, qos: &QosSet, call: &mut Call<'_>) {
        let now = self.options.clock.now(call.at);
        let place = &mut self.members[member];
        let obeyed = obeyed(qos.clone(), call.mutation);
        if let Some(local) = place.writers.get_mut(&entity) {
            local.writer.edit(now, |writer| writer.set_qos(now, obeyed.clone()));
        }
        if let Some(local) = place.readers.get_mut(&entity) {
            local.reader.edit(now, |reader| reader.set_qos(now, obeyed));
        }
        if call.mutation == Some(Mutation::HideChanges) {
            return;
        }
        let qos = announced(qos.clone(), call.mutation);
        let updated = place.participant.run(now, call.out, |participant, out| {
            participant.update_endpoint(now, place.prefix.entity(entity), qos, out)
        });
        debug_assert!(updated.is_ok(), "an endpoint that exists can be updated: {updated:?}");
        self.settle(member, now, call);
    }

    /// Changes the content filter of a reader.
    pub fn set_filter(
        &mut self,
        member: usize,
        entity: EntityId,
        (topic, filter): (&str, Filter),
        call: &mut Call<'_>,
    ) {
        let now = self.options.clock.now(call.at);
        let place = &mut self.members[member];
        let Some(local) = place.readers.get_mut(&entity) else { return };
        let changed = obeyed_filter(filter, call.mutation);
        let Some(filter) = changed.filter(|_| call.mutation != Some(Mutation::KeepOldFilter)) else { return };
        let announced = filter.announced(topic);
        let signature = announced.signature();
        let signed = SignedFilter { filter: filter.obeyed(), signature };
        local.reader.edit(now, |reader| reader.set_filter(Some(signed)));
        if call.mutation == Some(Mutation::HideFilters) {
            return;
        }
        let guid = place.prefix.entity(entity);
        let updated = place.participant.run(now, call.out, |participant, out| {
            participant.update_content_filter(now, guid, announced, out)
        });
        debug_assert!(updated.is_ok(), "an endpoint that exists can be updated: {updated:?}");
        self.settle(member, now, call);
    }

    /// Asserts the liveliness of a writer, as its kind has it.
    pub fn assert_liveliness(&mut self, member: usize, entity: EntityId, call: &mut Call<'_>) {
        let now = self.options.clock.now(call.at);
        let place = &mut self.members[member];
        let Some(local) = place.writers.get_mut(&entity) else { return };
        call.of_writer(&mut local.writer, |writer, out| writer.assert_liveliness(now, out));
        if local.writer.look(|writer| writer.qos().liveliness.kind) == LivelinessKind::ManualByParticipant {
            place.participant.run(now, call.out, |participant, out| participant.assert_liveliness(now, out));
        }
        self.settle(member, now, call);
    }

    /// Shows or drops what has its turn in all readers of a subscriber under GROUP access.
    pub fn settle_groups(&mut self, member: usize, readers: &[EntityId], call: &mut Call<'_>) {
        if call.mutation == Some(Mutation::SettleAlone) {
            readers.iter().for_each(|reader| self.settle_together(member, &[*reader], call));
        } else {
            self.settle_together(member, readers, call);
        }
    }

    fn settle_together(&mut self, member: usize, readers: &[EntityId], call: &mut Call<'_>) {
        let now = self.options.clock.now(call.at);
        let mut last = None;
        loop {
            let place = &mut self.members[member];
            let mut members = Vec::new();
            let each = || readers.iter().filter_map(|reader| place.readers.get(reader));
            each().for_each(|local| local.reader.look(|reader| reader.group_members(now, &mut members)));
            let room = |publisher, number| {
                let of_each =
                    each().map(|local| local.reader.look(|reader| reader.group_room(publisher, number)));
                of_each.min().unwrap_or(GroupRoom::Enough)
            };
            let verdict = next_verdict(&members, room);
            assert!(verdict.is_none() || verdict != last, "carried out, and still due: {verdict:?}");
            last = verdict;
            for reader in readers {
                let Some(local) = place.readers.get_mut(reader) else { continue };
                match verdict {
                    Some(verdict) => local.reader.run(now, call.out, |reader, out| {
                        reader.carry_out_verdict(now, verdict, out);
                    }),
                    None => local
                        .reader
                        .run(now, call.out, |reader, out| reader.ask_for_group(now, &members, out)),
                }
            }
            self.settle(member, now, call);
            if verdict.is_none() {
                return;
            }
        }
    }

    /// The host has another address from now on.
    pub fn move_to(&mut self, host: Host, index: u16, call: &mut Call<'_>) {
        let now = self.options.clock.now(call.at);
        self.options.host = host;
        self.bind(index);
        let locators = self.locators();
        for index in 0..self.members.len() {
            let locators = locators.clone();
            self.members[index]
                .participant
                .run(now, call.out, |participant, out| participant.set_locators(now, locators, out));
            self.settle(index, now, call);
        }
    }

    /// Takes the ports of a participant index.
    pub fn bind(&mut self, index: u16) {
        self.meta_port = ports::meta_unicast(self.options.domain, index);
        self.user_port = ports::user_unicast(self.options.domain, index);
    }

    /// Withdraws and deletes a writer or reader.
    pub fn remove_endpoint(&mut self, member: usize, entity: EntityId, call: &mut Call<'_>) {
        let now = self.options.clock.now(call.at);
        let place = &mut self.members[member];
        if let Home::Driver(slot) = &place.participant {
            slot.remove(entity);
        }
        place.participant.run(now, call.out, |participant, out| {
            participant.remove_endpoint(now, place.prefix.entity(entity), out);
        });
        if let Some(group) = place.writers.remove(&entity).and_then(|local| local.group) {
            group.remove_writer(entity);
        }
        place.readers.remove(&entity);
        self.settle(member, now, call);
    }

    /// After a call of the driver, which may concern any member.
    fn settle_driver(&mut self, call: &mut Call<'_>) {
        (0..self.members.len()).for_each(|member| self.settle(member, call.now, call));
    }

    /// What the driver sent since this was asked last.
    pub fn take_sent(&self) -> Vec<Collected> {
        self.driver.as_ref().map(Driver::take_sent).unwrap_or_default()
    }

    /// Carries out the commands of a call into `member` and turns its events into what applications hear.
    pub fn settle(&mut self, member: usize, now: Now, call: &mut Call<'_>) {
        let Some(member) = self.members.get_mut(member) else { return };
        let mut commands = std::mem::take(&mut call.out.commands);
        for command in commands.drain(..) {
            member.carry_out(now, command, call);
        }
        call.out.commands = commands;
        let mut events = std::mem::take(&mut call.out.events);
        for heard in member.take_heard() {
            match heard {
                Heard::Command(command) => member.note_command(&command, call),
                Heard::Event(event) => events.push(event),
            }
        }
        for event in events {
            let told = match event {
                Event::DataAvailable { reader } => {
                    member.readers.get(&reader).map(|local| Told::DataAvailable(local.record))
                }
                Event::Progress { endpoint } => {
                    member.writers.get(&endpoint).map(|local| Told::Progress(local.record))
                }
                Event::ParticipantChanged { participant, alive } => {
                    Some(Told::Participant { guid: participant, alive })
                }
                Event::GroupPart { reader } => {
                    member.readers.get(&reader).map(|local| Told::GroupPart(local.record))
                }
                Event::Status { .. }
                | Event::ParticipantUnanswering { .. }
                | Event::EndpointChanged { .. }
                | Event::MismatchChanged { .. }
                | Event::MemoryFreed
                | Event::Undecodable { .. } => None,
            };
            call.told.extend(told);
        }
    }
}

/// A user endpoint to be created.
pub struct NewEndpoint<'a> {
    /// Topic name.
    pub topic: &'a str,
    /// The topic has a key.
    pub keyed: bool,
    /// QoS, with that of its publisher or subscriber and its topic.
    pub qos: &'a QosSet,
    /// Its publisher or subscriber, for GROUP scope; else UNKNOWN.
    pub group: EntityId,
    /// The content filter of a reader.
    pub filter: Option<Filter>,
    /// Its place in the ledger.
    pub record: usize,
    /// Enters it into the ledger, before anyone can match it.
    pub born: &'a dyn Fn(&mut Ledger, Guid),
}

/// The registry of one process while a datagram is walked.
struct Dispatch<'a, 'b> {
    node: &'a mut Node,
    call: &'a mut Call<'b>,
}

impl Registry for Dispatch<'_, '_> {
    fn deliver(
        &mut self,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    ) {
        // The receiver lends the outbox it was lent; commands and events are carried out for each
        // participant by itself, because they do not name it.
        std::mem::swap(self.call.out, out);
        for index in 0..self.node.members.len() {
            let member = &mut self.node.members[index];
            if context.destination == GuidPrefix::UNKNOWN || context.destination == member.prefix {
                member.deliver(now, context, submessage, self.call, &mut self.node.drops);
                self.node.settle(index, now, self.call);
            }
        }
        std::mem::swap(self.call.out, out);
    }

    fn is_local(&self, prefix: GuidPrefix) -> bool {
        self.node.members.iter().any(|member| member.prefix == prefix)
    }
}
