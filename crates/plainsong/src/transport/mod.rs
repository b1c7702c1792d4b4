//! Datagrams in and out, whatever carries them: what a transport is, and those that a domain has.
//!
//! Nothing here knows RTPS messages, and nothing outside knows sockets: there, who sent and who is sent to is
//! a [`Locator`].

#[cfg(any(not(any(test, feature = "sim")), not(target_os = "linux")))]
mod absent;
#[cfg(all(feature = "sim", not(test)))]
pub(crate) mod collector;
pub(crate) mod loan;
#[cfg(target_os = "linux")]
pub(crate) mod memory;
#[cfg(test)]
pub(crate) mod network;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "processes send to themselves by UDP"))]
pub(crate) mod own_traffic;
pub(crate) mod udp;

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use plainsong_proto::discovery::{LocalLocators, MemoryRefusal};
use plainsong_proto::locator::{Locator, NodeId};
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::Payload;

use crate::base::config::{Config, Use};
#[cfg(not(target_os = "linux"))]
use absent::Absent as Memory;
#[cfg(not(any(test, feature = "sim")))]
use absent::Absent as Other;
#[cfg(all(feature = "sim", not(test)))]
use collector::Collector as Other;
use loan::{LoanedOctets, LoanedPayload};
#[cfg(target_os = "linux")]
use memory::Memory;
#[cfg(test)]
use network::NetworkHost as Other;
pub use udp::InterfaceReport;
use udp::Udp;
pub(crate) use udp::{Alarm, ThreadWaker};

/// Fewer octets are sent with their message, so that memory is not shared for them alone.
pub(crate) const LOAN_SHARED_BYTES_MIN: usize = 4 << 10;

/// A way by which datagrams leave and arrive.
///
/// One value serves all participants of a domain in this process, and all its members are called by many
/// threads at once. Whatever is received by it is received by threads of the domain, one for each of its
/// [`inputs`](Transport::inputs), or by threads of the application that wait for it: a transport starts none,
/// and calls nobody but `each`, on the thread that receives.
///
/// It may lose, repeat and reorder datagrams, as UDP does, but never cut or alter them, and never deliver one
/// to who was not meant. What it can do without is the fewer repairs for the reliable. A writer's datagrams
/// are sent under that writer's lock, one batch after the other: a transport that keeps them in order spares
/// its readers repairs.
///
/// Its value lives as long as any thread of the domain, and longer than what was sent by it: what a batch
/// borrows ends with `send`, what was received with `each`.
pub(crate) trait Transport: Send + Sync {
    /// What one thread receives in: buffers, allocated once. Those of several threads may be in use at one
    /// time, also of one input.
    type Receiver: Send;

    /// Where datagrams arrive: one input for discovery traffic, at least one for user traffic. The same for
    /// the whole life of the transport.
    fn inputs(&self) -> Vec<Input>;

    fn receiver(&self) -> Self::Receiver;

    /// The next call of [`receive`](Transport::receive) had better bring one datagram: a lone one is
    /// expected, or others would wait.
    fn expect_one(receiver: &mut Self::Receiver);

    /// Whether it would carry a datagram there, now: by the kind of the locator, and what this host has. That
    /// somebody listens there is not asked. A locator is reached by one transport of a domain at most.
    fn reaches(&self, locator: &Locator) -> bool;

    /// Sends all datagrams of a batch to those destinations that it reaches, in order, from the calling
    /// thread, which holds the lock of the writer, reader or participant that they are of. So it never waits
    /// for a receiver: what there is no room for is lost. It may wait for a moment for a device that is busy.
    /// When it returns, nothing of the batch is needed any more, and receivers that sleep have been woken. A
    /// destination that fails keeps nothing from others.
    fn send(&self, batch: &Batch<'_>) -> Sent;

    /// Hands each datagram that is there to `each`, a few at most, so that the caller can look after other
    /// things; with `wait`, sleeps until there is one, [`close`](Transport::close) is called, or for no
    /// reason. No datagram is handed out twice, whoever else receives from the same input. `each` may send,
    /// and may take long. True when [`locators`](Transport::locators) would tell something else than before.
    fn receive(
        &self,
        traffic: Traffic,
        receiver: &mut Self::Receiver,
        wait: bool,
        each: impl FnMut(Received<'_>),
    ) -> bool;

    /// Sleeps until a datagram is there, `waker` is used, the time is over, or the transport is closed;
    /// nothing is received. A datagram or a wake from before the call ends it at once. A waker is given only
    /// where inputs [can be handed over](Transport::can_hand_over).
    ///
    /// # Errors
    /// A signal came (`Interrupted`), or it cannot wait for what it was given.
    fn wait(
        &self,
        traffic: Traffic,
        waker: Option<&ThreadWaker>,
        timeout: Option<Duration>,
    ) -> io::Result<WokenBy>;

    /// Whether threads of the application may receive from an input while they wait for what it brings:
    /// [`wait`](Transport::wait) then heeds the waker, and a thread of the domain in
    /// [`receive`](Transport::receive) is not needed to make anything arrive.
    fn can_hand_over(&self, traffic: Traffic) -> bool;

    /// Adds where participants can be reached by it, and where they announce themselves.
    fn locators(&self, locators: &mut LocalLocators);

    /// Makes everyone return who receives or waits, now and from now on, also who is about to begin. Sending
    /// does no harm afterwards, nor good.
    fn close(&self);

    /// Octets that the path to an address takes in one datagram, if the transport goes there.
    fn path_bytes(&self, _address: IpAddr) -> Option<usize> {
        None
    }

    /// Where participants of this host may listen now.
    fn scan(&self) -> Vec<Locator> {
        Vec::new()
    }

    /// Whether nobody has that locator of this host any more, as far as is certain: `message`, which means
    /// nothing, may be sent to it.
    fn is_gone(&self, _locator: &Locator, _message: &[u8]) -> bool {
        false
    }

    /// Datagrams that were lost because whoever was to receive them had no room.
    fn overflows(&self) -> u64 {
        0
    }

    /// In a process that was just forked: what is the parent's is left alone, whatever is called from now on.
    #[cfg(unix)]
    fn abandon(&self) {}
}

/// One datagram that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    pub(crate) from: Locator,
    /// Where it arrived; 0 when the host does not say.
    pub(crate) interface: u32,
    pub(crate) bytes: &'a [u8],
    /// The payload that came beside them.
    pub(crate) attachment: Option<&'a Payload>,
}

/// What is to be sent, and how.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub(crate) out: &'a Outbox,
    /// The octet of the IP header that marks the datagrams.
    pub(crate) traffic_class: u8,
    /// Datagrams for other hosts that are longer than their path takes are left out, since a writer of
    /// samples cuts them anew; else they are cut on their way.
    pub(crate) recuts: bool,
}

/// A link with a node of this host began, ended, or could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkChange {
    pub(crate) node: NodeId,
    pub(crate) result: Result<(), MemoryRefusal>,
}

/// What became of a batch.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// Addresses whose datagrams were left out, and how many octets their paths take.
    pub(crate) left_out: Vec<(IpAddr, usize)>,
    /// There was a destination that the transport does not reach.
    pub(crate) has_others: bool,
}

/// What ended a wait; nothing: the time was over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WokenBy {
    pub(crate) datagram: bool,
    pub(crate) waker: bool,
}

/// What arrives by an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// Discovery traffic, and urgent samples.
    Discovery,
    /// User traffic; a transport has one input for it or more.
    User(usize),
    /// What nodes of this host tell each other to share memory.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has such memory"))]
    Links,
}

/// Where a thread of the domain receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Input {
    transport: Kind,
    pub(crate) traffic: Traffic,
    /// For the name of the thread.
    pub(crate) name: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Udp,
    Memory,
    Other,
}

/// What one thread receives in from one input.
pub(crate) enum Receiver {
    Udp(udp::Receiver),
    Memory(<Memory as Transport>::Receiver),
    Other(<Other as Transport>::Receiver),
}

/// All transports of a domain. Which there are is known when the library is compiled, so that nothing is
/// called by way of a table.
pub(crate) struct Transports {
    config: Config,
    udp: Option<Udp>,
    /// Or why there is none.
    memory: Result<Memory, MemoryRefusal>,
    /// Beside these there is none but for tests.
    other: Option<Other>,
    is_closed: AtomicBool,
    /// How often something was sent; exact numbers do not matter.
    sent: AtomicU32,
    /// Datagrams for destinations that no transport reaches.
    unreachable: AtomicU64,
}

impl Receiver {
    /// See [`Transport::expect_one`].
    #[inline]
    pub(crate) fn expect_one(&mut self) {
        match self {
            Self::Udp(receiver) => Udp::expect_one(receiver),
            Self::Memory(receiver) => Memory::expect_one(receiver),
            Self::Other(receiver) => Other::expect_one(receiver),
        }
    }
}

impl Transports {
    /// Those of the host.
    ///
    /// # Errors
    /// As [`Udp::open`].
    pub(crate) fn open(domain: u16, config: &Config) -> io::Result<Self> {
        // Without UDP there is nothing: what descriptors there are it has first.
        let udp = Some(Udp::open(domain, config)?);
        let memory = match config.shared_memory {
            Use::Auto => Self::open_memory(domain, config),
            Use::Off => Err(MemoryRefusal::Off),
        };
        Ok(Self { udp, memory, ..Self::none(config) })
    }

    #[cfg(target_os = "linux")]
    fn open_memory(domain: u16, config: &Config) -> Result<Memory, MemoryRefusal> {
        Memory::open(domain, config).map_err(|_| MemoryRefusal::NoMemory)
    }

    #[cfg(not(target_os = "linux"))]
    const fn open_memory(_: u16, _: &Config) -> Result<Memory, MemoryRefusal> {
        Err(MemoryRefusal::Off)
    }

    /// Nothing but a network of a test, and no socket.
    #[cfg(test)]
    pub(crate) fn on_network(host: Other, config: &Config) -> Self {
        Self { other: Some(host), ..Self::none(config) }
    }

    /// Nothing but what collects for the simulator.
    #[cfg(all(feature = "sim", not(test)))]
    pub(crate) fn collecting(collector: Other, config: &Config) -> Self {
        Self { other: Some(collector), ..Self::none(config) }
    }

    fn none(config: &Config) -> Self {
        Self {
            config: config.clone(),
            udp: None,
            memory: Err(MemoryRefusal::Off),
            other: None,
            is_closed: AtomicBool::new(false),
            sent: AtomicU32::new(0),
            unreachable: AtomicU64::new(0),
        }
    }

    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    /// A number that nearly each call of [`Self::send`] changes.
    pub(crate) fn sent(&self) -> u32 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Datagrams for destinations that no transport reaches.
    pub(crate) fn unreachable(&self) -> u64 {
        self.unreachable.load(Ordering::Relaxed)
    }

    /// Where threads of the domain receive: as many as there are, whatever participants there are.
    pub(crate) fn inputs(&self) -> Vec<Input> {
        let of_other = self.other.iter().flat_map(Transport::inputs);
        let of_memory = self.memory.iter().flat_map(Transport::inputs);
        self.udp.iter().flat_map(Transport::inputs).chain(of_memory).chain(of_other).collect()
    }

    pub(crate) fn receiver(&self, input: Input) -> Receiver {
        let memory = self.memory.as_ref().ok().filter(|_| input.transport == Kind::Memory);
        let other = self.other.as_ref().filter(|_| input.transport == Kind::Other);
        let receiver = other.map(Transport::receiver).map(Receiver::Other);
        let receiver = receiver.or_else(|| memory.map(Transport::receiver).map(Receiver::Memory));
        receiver.unwrap_or_else(|| Receiver::Udp(udp::Receiver::new()))
    }

    /// Whether there is a link with a node of this host. `None`: a handshake is under way, of which
    /// [`serve_links`](Self::serve_links) will tell. It does not wait.
    pub(crate) fn link(&self, node: NodeId) -> Option<Result<(), MemoryRefusal>> {
        match &self.memory {
            Ok(memory) => memory.link(node),
            Err(refusal) => Some(Err(*refusal)),
        }
    }

    /// Memory for the payload of one sample, of so many octets. Few are of the heap, and so are all where no
    /// memory is shared.
    ///
    /// # Errors
    /// The limit that is reached.
    pub(crate) fn loan(&self, bytes: usize) -> Result<LoanedPayload, String> {
        match &self.memory {
            Ok(memory) if bytes >= LOAN_SHARED_BYTES_MIN && self.config.memory_pool_bytes_max > 0 => {
                memory.loan(bytes).map_err(|error| error.to_string())
            }
            _ => Ok(LoanedPayload::in_heap(bytes)),
        }
    }

    /// Memory for a sample that is mostly made of so many octets; as [`Self::loan`].
    ///
    /// # Errors
    /// The limit that is reached.
    pub(crate) fn loan_octets(&self, bytes: usize) -> Result<LoanedOctets, String> {
        match &self.memory {
            Ok(memory) if bytes >= LOAN_SHARED_BYTES_MIN && self.config.memory_pool_bytes_max > 0 => {
                memory.loan_octets(bytes).map_err(|error| error.to_string())
            }
            _ => Ok(LoanedOctets::in_heap(bytes)),
        }
    }

    /// The payload, which is to be kept, in memory of which it needs the most part: see [`Memory::fitting`].
    pub(crate) fn fitting(&self, payload: Payload) -> Payload {
        match &self.memory {
            Ok(memory) => memory.fitting(payload),
            Err(_) => payload,
        }
    }

    /// Whether long payloads find no room in the memory that is shared, and no way around it.
    pub(crate) fn finds_no_chunk(&self) -> bool {
        self.memory.as_ref().is_ok_and(Memory::finds_no_chunk)
    }

    /// Long payloads that were not sent by memory for want of room in it.
    pub(crate) fn unsent(&self) -> u64 {
        self.memory.as_ref().map_or(0, Memory::unsent)
    }

    /// Long payloads that were copied although memory is shared.
    pub(crate) fn copied(&self) -> u64 {
        self.memory.as_ref().map_or(0, Memory::copied)
    }

    /// As what this process sends to itself, if threads that have sent something may receive it: see
    /// [`Self::receive_own`].
    #[inline]
    pub(crate) fn own_queue(&self) -> Option<NodeId> {
        self.memory.as_ref().ok()?.own_queue()
    }

    /// On a thread that has sent something to this process and woken nobody, with no lock held: hands to
    /// `each` what nobody else receives, until it says false.
    pub(crate) fn receive_own(&self, each: impl FnMut(Received<'_>) -> bool) {
        if let Ok(memory) = &self.memory {
            memory.receive_own(each);
        }
    }

    /// Wakes the thread that receives by memory, if it sleeps.
    pub(crate) fn wake_receiver(&self) {
        if let Ok(memory) = &self.memory {
            memory.wake_receiver();
        }
    }

    /// Waits until links began, ended, or could not be made, or the transports are closed.
    pub(crate) fn serve_links(&self) -> Vec<LinkChange> {
        self.memory.as_ref().map(Memory::serve).unwrap_or_default()
    }

    /// See [`Transport::can_hand_over`].
    pub(crate) fn can_hand_over(&self, input: Input) -> bool {
        match input.transport {
            Kind::Udp => self.udp.as_ref().is_some_and(|udp| udp.can_hand_over(input.traffic)),
            Kind::Memory => self.memory.as_ref().is_ok_and(|memory| memory.can_hand_over(input.traffic)),
            Kind::Other => self.other.as_ref().is_some_and(|other| other.can_hand_over(input.traffic)),
        }
    }

    /// Sends all datagrams of a batch, each by the transport that reaches its destination, and counts those
    /// that none does. Returned are the addresses of [`Sent::left_out`].
    pub(crate) fn send(&self, batch: &Batch<'_>) -> Vec<(IpAddr, usize)> {
        if batch.out.transmits().is_empty() {
            return Vec::new();
        }
        // First: the answer may come before this thread goes on.
        self.sent.store(self.sent().wrapping_add(1), Ordering::Relaxed);
        if let Ok(memory) = &self.memory
            && !memory.send(batch).has_others
        {
            return Vec::new();
        }
        let sent = match &self.udp {
            Some(udp) => udp.send(batch),
            None => Sent { has_others: true, ..Sent::default() },
        };
        if sent.has_others {
            self.send_to_others(batch);
        }
        sent.left_out
    }

    /// Sends what goes neither by memory nor by UDP.
    #[cold]
    fn send_to_others(&self, batch: &Batch<'_>) {
        if let Some(other) = &self.other
            && !other.send(batch).has_others
        {
            return;
        }
        let destinations = batch.out.transmits().iter().flat_map(|it| batch.out.destinations(it));
        let unreachable = destinations.filter(|to| !self.reaches(to)).count();
        self.unreachable.fetch_add(unreachable as u64, Ordering::Relaxed);
    }

    /// Whether any transport carries datagrams there.
    fn reaches(&self, locator: &Locator) -> bool {
        if self.other.as_ref().is_some_and(|other| other.reaches(locator)) {
            return true;
        }
        // Memory has counted what it lost.
        locator.kind == Locator::KIND_MEMORY || self.udp.as_ref().is_some_and(|udp| udp.reaches(locator))
    }

    /// See [`Transport::receive`].
    #[inline]
    pub(crate) fn receive(
        &self,
        input: Input,
        receiver: &mut Receiver,
        wait: bool,
        each: impl FnMut(Received<'_>),
    ) -> bool {
        match receiver {
            Receiver::Udp(receiver) => {
                self.udp.as_ref().is_some_and(|udp| udp.receive(input.traffic, receiver, wait, each))
            }
            Receiver::Memory(receiver) => {
                self.memory.as_ref().is_ok_and(|it| it.receive(input.traffic, receiver, wait, each))
            }
            Receiver::Other(receiver) => {
                self.other.as_ref().is_some_and(|other| other.receive(input.traffic, receiver, wait, each))
            }
        }
    }

    /// See [`Transport::wait`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn wait(
        &self,
        input: Input,
        waker: Option<&ThreadWaker>,
        timeout: Option<Duration>,
    ) -> io::Result<WokenBy> {
        let awaited = match input.transport {
            Kind::Udp => self.udp.as_ref().map(|udp| udp.wait(input.traffic, waker, timeout)),
            Kind::Memory => self.memory.as_ref().ok().map(|it| it.wait(input.traffic, waker, timeout)),
            Kind::Other => self.other.as_ref().map(|other| other.wait(input.traffic, waker, timeout)),
        };
        awaited.unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))
    }

    /// Where participants can be reached, and where they announce themselves.
    pub(crate) fn locators(&self) -> LocalLocators {
        let mut locators = LocalLocators::default();
        self.udp.iter().for_each(|udp| udp.locators(&mut locators));
        match &self.memory {
            Ok(memory) => memory.locators(&mut locators),
            Err(refusal) => locators.memory_refusal = Some(*refusal),
        }
        self.other.iter().for_each(|other| other.locators(&mut locators));
        locators
    }

    /// Where participants of this host may listen now: found even without any multicast.
    pub(crate) fn scan(&self) -> Vec<Locator> {
        let of_other = self.other.iter().flat_map(Transport::scan);
        self.udp.iter().flat_map(Transport::scan).chain(of_other).collect()
    }

    /// Octets that the path to an address takes in one datagram, as far as this host knows now.
    pub(crate) fn path_bytes(&self, address: IpAddr) -> usize {
        let of_other = || self.other.as_ref().and_then(|other| other.path_bytes(address));
        let told = self.udp.as_ref().and_then(|udp| udp.path_bytes(address)).or_else(of_other);
        told.unwrap_or(self.config.datagram_bytes_max)
    }

    /// See [`Transport::is_gone`].
    pub(crate) fn is_gone(&self, locator: &Locator, message: &[u8]) -> bool {
        self.udp.as_ref().is_some_and(|udp| udp.is_gone(locator, message))
            || self.other.as_ref().is_some_and(|other| other.is_gone(locator, message))
    }

    /// Datagrams that were lost because whoever was to receive them had no room.
    pub(crate) fn overflows(&self) -> u64 {
        let of_other = self.other.iter().map(Transport::overflows);
        let of_memory = self.memory.iter().map(Transport::overflows);
        self.udp.iter().map(Transport::overflows).chain(of_memory).chain(of_other).sum()
    }

    /// What is known of each interface of the host.
    pub(crate) fn report(&self) -> Vec<InterfaceReport> {
        self.udp.iter().flat_map(Udp::report).collect()
    }

    /// Whether [`Self::close`] was called.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Makes the receive threads return.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.udp.iter().for_each(Transport::close);
        self.memory.iter().for_each(Transport::close);
        self.other.iter().for_each(Transport::close);
    }

    /// In a process that was just forked: see [`Transport::abandon`].
    #[cfg(unix)]
    pub(crate) fn abandon(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.udp.iter().for_each(Transport::abandon);
        self.memory.iter().for_each(Transport::abandon);
        self.other.iter().for_each(Transport::abandon);
    }
}
