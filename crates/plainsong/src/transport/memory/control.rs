//! Who serves the local socket of a node: makes links with the nodes that it is asked to reach or that reach
//! it, and notices when they end. One thread of the domain does that.
//!
//! Two nodes may connect to each other at the same time. Of two connections that of the node with the
//! smaller id is kept, which both know.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use plainsong_proto::discovery::MemoryRefusal;
use plainsong_proto::locator::NodeId;
use plainsong_proto::time::Instant;

use super::Memory;
use super::handshake::{Hello, MESSAGE_BYTES_MAX, Message, Refusal, VERSION};
use super::link::{Half, Link};
use super::local_socket::{Connection, Incoming, Listener};
use super::wait::{Trigger, WaitSet};
use crate::base::clock;
use crate::transport::LinkChange;

/// A node that has not answered for so long is not waited for.
const GREETING_MAX: Duration = Duration::from_secs(1);
/// Between two looks whether memory can be given back.
const TRIM_PERIOD: Duration = Duration::from_secs(1);
/// After the process had no descriptor for who connects, it tries again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Connections at one time: links, and those that may become some.
const CONNECTIONS_MAX: usize = 512;
/// So long after a peer has hung up it is looked whether its process has ended: first, and then, so often,
/// after twice as long.
const ENDED_CHECK_FIRST: Duration = Duration::from_micros(500);
const ENDED_CHECKS: u32 = 7;
/// Messages of one connection that are received before others have their turn.
const MESSAGES_MAX: usize = 16;

const BELL: u64 = 0;
const LISTENER: u64 = 1;
const FIRST_CONNECTION: u64 = 2;

/// What the thread keeps.
pub(super) struct Control {
    set: WaitSet,
    listener: Listener,
    connections: BTreeMap<u64, Peer>,
    next_token: u64,
    /// Nodes that are to be reached, and when that is given up.
    wanted: BTreeMap<NodeId, Instant>,
    /// Nodes that hung up without a word.
    suspected: Vec<Suspect>,
    changes: Vec<LinkChange>,
    /// When who connects is accepted again; `None`: now.
    next_accept: Option<Instant>,
    /// A descriptor of nothing: it makes room to tell who connects that there is none left.
    spare: Option<WaitSet>,
    /// When chunks that are not used are given back; `None`: there are none.
    next_trim: Option<Instant>,
    /// When links are looked at that long payloads do not find a way by.
    next_starved: Option<Instant>,
}

/// Who is at the other end of a connection.
struct Peer {
    connection: Arc<Connection>,
    /// This node connected.
    is_ours: bool,
    node: Option<NodeId>,
    stage: Stage,
    until: Option<Instant>,
}

/// A node whose process may have ended: it is gone if nobody listens at its socket any more.
struct Suspect {
    node: NodeId,
    /// What came by it is received first.
    link: Option<Arc<Link>>,
    checks: u32,
    next: Instant,
}

enum Stage {
    /// Our half was told; theirs is awaited.
    Greeting(Option<Half>),
    /// Both halves are here; that they see ours is awaited.
    Proving(Arc<Link>),
    /// Messages go both ways.
    Linked(Arc<Link>),
    /// None does; what was lent is not all back.
    Closing(Arc<Link>),
}

/// A connection does not work.
fn failed(error: &io::Error) -> MemoryRefusal {
    match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset, _) => MemoryRefusal::Ended,
        (_, Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS)) => MemoryRefusal::NoMemory,
        _ => MemoryRefusal::Refused,
    }
}

/// Tells the other end why there is no link, as far as that is not its own doing.
fn refuse(connection: &Connection, why: MemoryRefusal) {
    let why = match why {
        MemoryRefusal::OtherUser(_) => Refusal::User,
        MemoryRefusal::NoMemory => Refusal::NoMemory,
        MemoryRefusal::TooManyLinks | MemoryRefusal::NotShared | MemoryRefusal::Refused => Refusal::Other,
        _ => return,
    };
    // It may be gone.
    let _ = connection.send(&Message::Refused(why).to_octets(), &[]);
}

impl Control {
    /// # Errors
    /// The host has no local sockets, or no descriptors to spare.
    pub(super) fn new(domain: u16, node: NodeId, bell: &impl AsFd) -> io::Result<Self> {
        let (set, listener) = (WaitSet::new()?, Listener::bind(domain, node)?);
        set.add(bell.as_fd(), BELL, Trigger::Edge)?;
        set.add(listener.as_fd(), LISTENER, Trigger::Level)?;
        Ok(Self {
            set,
            listener,
            connections: BTreeMap::new(),
            next_token: FIRST_CONNECTION,
            wanted: BTreeMap::new(),
            suspected: Vec::new(),
            changes: Vec::new(),
            next_accept: None,
            spare: WaitSet::new().ok(),
            next_trim: None,
            next_starved: None,
        })
    }

    /// Those that it has from the beginning.
    pub(super) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.set.as_fd(), self.listener.as_fd()]
    }

    /// Waits until something is to be done, and does it: the links that began or ended, and the attempts that
    /// failed.
    pub(super) fn serve(&mut self, memory: &Memory) -> Vec<LinkChange> {
        let timeout = self.next_timeout().map(clock::until);
        // A signal ends it, too.
        let _ = self.set.wait_or(None, timeout);
        let ready: Vec<u64> = self.set.wait(false).collect();
        for token in ready {
            match token {
                BELL => {
                    for node in memory.take_requests() {
                        self.reach(memory, node);
                    }
                    self.next_starved = Some(clock::mono());
                }
                LISTENER => self.accept(memory),
                connection => self.receive(memory, connection),
            }
        }
        let now = clock::mono();
        self.give_up(memory, now);
        self.find_gone(memory, now);
        self.accept_again(now);
        if self.next_starved.is_some_and(|next| next <= now) {
            self.end_starved(memory, now);
        }
        if self.next_trim.is_none_or(|next| next <= now) {
            self.next_trim = if memory.trim(now) { clock::deadline(TRIM_PERIOD) } else { None };
        }
        std::mem::take(&mut self.changes)
    }

    /// Ends links by which long payloads have not arrived for a while.
    fn end_starved(&mut self, memory: &Memory, now: Instant) {
        let starved_until = |peer: &Peer| match &peer.stage {
            Stage::Linked(link) => link.starved_until(),
            Stage::Greeting(_) | Stage::Proving(_) | Stage::Closing(_) => None,
        };
        let starved =
            self.connections.iter().filter_map(|(token, peer)| Some((starved_until(peer)?, *token)));
        let (over, waiting): (Vec<_>, Vec<_>) = starved.partition(|(until, _)| *until <= now);
        self.next_starved = waiting.into_iter().map(|(until, _)| until).min();
        for (_, token) in over {
            self.end(memory, token, MemoryRefusal::PoolUsedUp);
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        let others = self.next_trim.into_iter().chain(self.next_accept).chain(self.next_starved);
        let greetings = self.connections.values().filter_map(|peer| peer.until);
        let suspects = self.suspected.iter().map(|suspect| suspect.next);
        greetings.chain(self.wanted.values().copied()).chain(suspects).chain(others).min()
    }

    fn report(&mut self, node: NodeId, result: Result<(), MemoryRefusal>) {
        self.wanted.remove(&node);
        self.changes.push(LinkChange { node, result });
    }

    fn is_linked(&self, node: NodeId) -> bool {
        let mut peers = self.connections.values();
        peers.any(|peer| peer.node == Some(node) && matches!(peer.stage, Stage::Linked(_)))
    }

    /// A participant wants to send to that node.
    fn reach(&mut self, memory: &Memory, node: NodeId) {
        if self.is_linked(node) {
            return self.report(node, Ok(()));
        }
        if self.wanted.contains_key(&node) {
            return;
        }
        let until = clock::deadline(GREETING_MAX).unwrap_or_else(clock::mono);
        self.wanted.insert(node, until);
        if self.connections.values().any(|peer| peer.node == Some(node)) {
            return;
        }
        let connection = match Connection::open(memory.domain(), node) {
            Ok(connection) => connection,
            Err(error) => {
                let why = match error.kind() {
                    io::ErrorKind::ConnectionRefused => MemoryRefusal::NoSocket,
                    // It does not accept: it may be stopped.
                    io::ErrorKind::WouldBlock => MemoryRefusal::TimedOut,
                    _ => MemoryRefusal::NoMemory,
                };
                return self.report(node, Err(why));
            }
        };
        if let Err(why) = self.greet(memory, connection, Some(node)) {
            self.report(node, Err(why));
        }
    }

    fn accept(&mut self, memory: &Memory) {
        self.spare = self.spare.take().or_else(|| WaitSet::new().ok());
        loop {
            // Without a descriptor it fails whether or not somebody connects.
            match self.listener.accept().or_else(|error| self.accept_instead(error)) {
                // Who is refused was told so.
                Ok(Some(connection)) if self.spare.is_some() => drop(self.greet(memory, connection, None)),
                Ok(Some(connection)) => {
                    refuse(&connection, MemoryRefusal::NoMemory);
                    drop(connection);
                    self.spare = WaitSet::new().ok();
                }
                Ok(None) => return,
                // It would be ready all the time.
                Err(_) => {
                    self.set.remove(self.listener.as_fd());
                    self.next_accept = clock::deadline(ACCEPT_PAUSE);
                    return;
                }
            }
        }
    }

    /// Accepts with the spare descriptor, which is gone then: only to say that there is none.
    fn accept_instead(&mut self, error: io::Error) -> io::Result<Option<Connection>> {
        self.spare.take().map(drop).ok_or(error)?;
        let accepted = self.listener.accept();
        if !matches!(accepted, Ok(Some(_))) {
            self.spare = WaitSet::new().ok();
        }
        accepted
    }

    fn accept_again(&mut self, now: Instant) {
        if self.next_accept.is_some_and(|next| next <= now) {
            let added = self.set.add(self.listener.as_fd(), LISTENER, Trigger::Level);
            self.next_accept = added.err().and_then(|_| clock::deadline(ACCEPT_PAUSE));
        }
    }

    /// Tells our half, or why there is none, to whom a connection leads: the node, where this one connected.
    fn greet(
        &mut self,
        memory: &Memory,
        connection: Connection,
        node: Option<NodeId>,
    ) -> Result<(), MemoryRefusal> {
        let connection = Arc::new(connection);
        let greeted = self.add(memory, Arc::clone(&connection), node);
        greeted.inspect_err(|why| refuse(&connection, *why))
    }

    fn add(
        &mut self,
        memory: &Memory,
        connection: Arc<Connection>,
        node: Option<NodeId>,
    ) -> Result<(), MemoryRefusal> {
        let user = connection.peer_user().map_err(|_| MemoryRefusal::Refused)?;
        if !memory.trusts(user) {
            return Err(MemoryRefusal::OtherUser(user));
        }
        if self.connections.len() >= CONNECTIONS_MAX {
            return Err(MemoryRefusal::TooManyLinks);
        }
        let half = Half::new(memory.ring_bytes(), clock::seed()).map_err(|_| MemoryRefusal::NoMemory)?;
        let hello = Hello { version: VERSION, node: memory.node(), nonce: half.nonce() };
        let sent = connection.send(&Message::Hello(hello).to_octets(), &half.descriptors());
        // Who has hung up already may have said why.
        sent.map_err(|error| failed(&error)).or_else(|why| match why {
            MemoryRefusal::Ended => Ok(()),
            why => Err(why),
        })?;
        let token = self.next_token;
        self.next_token += 1;
        self.set.add(connection.as_fd(), token, Trigger::Level).map_err(|_| MemoryRefusal::NoMemory)?;
        let peer = Peer {
            connection,
            is_ours: node.is_some(),
            node,
            stage: Stage::Greeting(Some(half)),
            until: clock::deadline(GREETING_MAX),
        };
        memory.opened(peer.connection.as_fd().as_raw_fd());
        self.connections.insert(token, peer);
        Ok(())
    }

    /// What came by a connection.
    fn receive(&mut self, memory: &Memory, token: u64) {
        let Some(connection) = self.connections.get(&token).map(|peer| Arc::clone(&peer.connection)) else {
            return;
        };
        let mut octets = [0; MESSAGE_BYTES_MAX];
        for _ in 0..MESSAGES_MAX {
            let handled = match connection.receive(&mut octets) {
                Ok(Incoming::Nothing) => return,
                Ok(Incoming::Message(length, descriptors)) => {
                    let message = octets.get(..length).and_then(Message::from_octets);
                    message
                        .ok_or(MemoryRefusal::Refused)
                        .and_then(|it| self.handle(memory, token, it, descriptors))
                }
                Ok(Incoming::HungUp) => return self.hung_up(memory, token),
                Err(error) => Err(failed(&error)),
            };
            if let Err(why) = handled {
                return self.end(memory, token, why);
            }
        }
    }

    fn handle(
        &mut self,
        memory: &Memory,
        token: u64,
        message: Message,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), MemoryRefusal> {
        match message {
            Message::Hello(hello) => self.greeted(memory, token, hello, descriptors),
            Message::Proved => self.proved(memory, token),
            Message::Slab { id, chunk_bytes } => {
                let link = self.link(token).ok_or(MemoryRefusal::Refused)?;
                let slab = descriptors.into_iter().next().ok_or(MemoryRefusal::Refused)?;
                link.add_slab(id, &slab, chunk_bytes)?;
                // Who receives may wait for it.
                memory.bell.ring();
                Ok(())
            }
            Message::Closing => Err(MemoryRefusal::Ended),
            Message::Refused(Refusal::User) => Err(MemoryRefusal::UserRefused),
            Message::Refused(Refusal::NoMemory) => Err(MemoryRefusal::PeerNoMemory),
            Message::Refused(Refusal::Other) => Err(MemoryRefusal::Refused),
            Message::SlabGone { id } => {
                self.link(token).ok_or(MemoryRefusal::Refused)?.remove_slab(id);
                Ok(())
            }
        }
    }

    fn link(&self, token: u64) -> Option<&Arc<Link>> {
        match &self.connections.get(&token)?.stage {
            Stage::Greeting(_) | Stage::Closing(_) => None,
            Stage::Proving(link) | Stage::Linked(link) => Some(link),
        }
    }

    /// The peer told who it is, and its half.
    fn greeted(
        &mut self,
        memory: &Memory,
        token: u64,
        hello: Hello,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), MemoryRefusal> {
        if hello.version != VERSION {
            return Err(MemoryRefusal::Version);
        }
        let Some(peer) = self.connections.get(&token) else { return Ok(()) };
        // A node that we reached is the one whose name its socket has.
        let is_other = peer.node.is_some_and(|node| node != hello.node) || hello.node == memory.node();
        if is_other || !matches!(peer.stage, Stage::Greeting(_)) {
            return Err(MemoryRefusal::Refused);
        }
        self.displace(memory, token, hello.node, peer.is_ours)?;
        let Some(peer) = self.connections.get_mut(&token) else { return Ok(()) };
        let Stage::Greeting(half) = &mut peer.stage else { return Err(MemoryRefusal::Refused) };
        let Some(half) = half.take() else { return Err(MemoryRefusal::Refused) };
        let connection = Arc::clone(&peer.connection);
        let link = Arc::new(Link::new(hello, half, descriptors, connection)?);
        // From now on its records are received, before it hears that it may send some.
        memory.receive_from(&link).map_err(|_| MemoryRefusal::NoMemory)?;
        (peer.node, peer.stage) = (Some(hello.node), Stage::Proving(Arc::clone(&link)));
        link.prove();
        peer.connection.send(&Message::Proved.to_octets(), &[]).map_err(|error| failed(&error))
    }

    /// Ends the other connections with a node, if this one is to be kept.
    fn displace(
        &mut self,
        memory: &Memory,
        token: u64,
        node: NodeId,
        is_ours: bool,
    ) -> Result<(), MemoryRefusal> {
        // A peer that has given a link up said so before it connected anew.
        for rival in self.rivals(token, node, |it| !matches!(it.stage, Stage::Greeting(_))) {
            self.receive(memory, rival);
        }
        let is_kept = is_ours == (memory.node() < node);
        if !self.rivals(token, node, |it| !is_kept || it.is_ours == is_ours).is_empty() {
            return Err(MemoryRefusal::Ended);
        }
        for rival in self.rivals(token, node, |_| true) {
            self.end(memory, rival, MemoryRefusal::Ended);
        }
        Ok(())
    }

    fn rivals(&self, token: u64, node: NodeId, which: impl Fn(&Peer) -> bool) -> Vec<u64> {
        let others = self
            .connections
            .iter()
            .filter(|(other, it)| **other != token && it.node == Some(node) && which(it));
        others.map(|(token, _)| *token).collect()
    }

    /// The peer says that it has seen our memory.
    fn proved(&mut self, memory: &Memory, token: u64) -> Result<(), MemoryRefusal> {
        let Some(peer) = self.connections.get_mut(&token) else { return Ok(()) };
        let Stage::Proving(link) = &peer.stage else { return Err(MemoryRefusal::Refused) };
        if !link.is_proved() {
            return Err(MemoryRefusal::Refused);
        }
        let link = Arc::clone(link);
        (peer.stage, peer.until) = (Stage::Linked(Arc::clone(&link)), None);
        memory.send_to(&link);
        self.report(link.node(), Ok(()));
        Ok(())
    }

    /// The peer has hung up: nothing is lent to it any more.
    fn hung_up(&mut self, memory: &Memory, token: u64) {
        // Also of one by which nothing is sent any more: its process may end later.
        let node = self.connections.get(&token).and_then(|peer| match &peer.stage {
            Stage::Closing(link) => Some(link.node()),
            Stage::Greeting(_) | Stage::Proving(_) | Stage::Linked(_) => peer.node,
        });
        self.end(memory, token, MemoryRefusal::Ended);
        let link = self.forget(memory, token);
        link.iter().for_each(|link| link.take_all_back());
        let has_other = |node| self.connections.values().any(|other| other.node == Some(node));
        if let Some(node) = node.filter(|node| !has_other(*node)) {
            self.suspected.push(Suspect { node, link, checks: 0, next: clock::mono() });
        }
    }

    /// Which of the nodes that hung up are gone with their processes. Of one that is not the participants
    /// are asked whether they are there, as of one that is told to share no memory any more.
    fn find_gone(&mut self, memory: &Memory, now: Instant) {
        let suspected = std::mem::take(&mut self.suspected);
        for mut suspect in suspected {
            let is_due = suspect.next <= now;
            let is_drained = suspect.link.as_ref().is_none_or(|link| link.is_drained());
            if is_due && is_drained && !Connection::has_listener(memory.domain(), suspect.node) {
                self.report(suspect.node, Err(MemoryRefusal::ProcessGone));
                continue;
            }
            if is_due {
                suspect.next = clock::deadline(ENDED_CHECK_FIRST * (1 << suspect.checks)).unwrap_or(now);
                suspect.checks += 1;
            }
            if suspect.checks < ENDED_CHECKS && !self.is_linked(suspect.node) {
                self.suspected.push(suspect);
            }
        }
    }

    /// A connection is not looked after any more.
    fn forget(&mut self, memory: &Memory, token: u64) -> Option<Arc<Link>> {
        let peer = self.connections.remove(&token)?;
        self.set.remove(peer.connection.as_fd());
        memory.closed(peer.connection.as_fd().as_raw_fd());
        match peer.stage {
            Stage::Greeting(_) => None,
            Stage::Proving(link) | Stage::Linked(link) | Stage::Closing(link) => Some(link),
        }
    }

    /// Nothing is sent by a connection any more. Where there was a link, the peer's hang-up is awaited.
    fn end(&mut self, memory: &Memory, token: u64, why: MemoryRefusal) {
        let Some(peer) = self.connections.get_mut(&token) else { return };
        let (node, was_linked) = (peer.node.take(), matches!(peer.stage, Stage::Linked(_)));
        if matches!(peer.stage, Stage::Greeting(_) | Stage::Proving(_)) {
            refuse(&peer.connection, why);
        }
        match &peer.stage {
            Stage::Greeting(_) => {
                peer.connection.hang_up();
                self.forget(memory, token);
            }
            Stage::Proving(link) | Stage::Linked(link) => {
                let link = Arc::clone(link);
                memory.end(&link);
                // Who does not keep to the rules is not waited for.
                if why == MemoryRefusal::Refused {
                    peer.connection.hang_up();
                }
                (peer.stage, peer.until) = (Stage::Closing(link), None);
            }
            Stage::Closing(_) => return,
        }
        let Some(node) = node else { return };
        let has_other = self.connections.values().any(|other| other.node == Some(node));
        // A peer that connected itself may have hung up on us: it may still come.
        let may_come = !was_linked && why == MemoryRefusal::Ended;
        if was_linked || !(has_other || may_come) {
            self.report(node, Err(why));
        }
    }

    /// Who did not answer is not waited for any longer.
    fn give_up(&mut self, memory: &Memory, now: Instant) {
        let late = |until: Option<Instant>| until.is_some_and(|until| until <= now);
        let tokens = self.connections.iter().filter(|(_, peer)| late(peer.until)).map(|(token, _)| *token);
        for token in tokens.collect::<Vec<_>>() {
            self.end(memory, token, MemoryRefusal::TimedOut);
        }
        let wanted = self.wanted.iter().filter(|(_, until)| late(Some(**until))).map(|(node, _)| *node);
        for node in wanted.collect::<Vec<_>>() {
            self.report(node, Err(MemoryRefusal::TimedOut));
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        for peer in self.connections.values() {
            match &peer.stage {
                Stage::Greeting(_) => peer.connection.hang_up(),
                // What was borrowed may outlive the domain, and keeps it open.
                Stage::Proving(link) | Stage::Linked(link) | Stage::Closing(link) => {
                    link.close();
                    link.drained();
                }
            }
        }
    }
}
