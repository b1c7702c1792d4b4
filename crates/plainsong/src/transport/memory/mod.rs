//! Memory shared with other processes of this host, as a transport: no copy by the kernel, no daemon, no name
//! in a file system.
//!
//! An open domain of a process is a *node*, with a random id. Two nodes that were asked to (`control.rs`)
//! meet by a local socket, hand each other a segment of memory (`segment.rs`) and prove by it that they share
//! it (`handshake.rs`): that is a *link* (`link.rs`). Messages go by a ring in the sender's segment
//! (`ring.rs`), which the receiver can only read. A receiver that sleeps is woken by an event (`wait.rs`).
//! What a node sends to itself waits in its own memory (`own.rs`). When a process ends, however it does, the
//! kernel hangs up its connections, and frees what nobody else has.

mod control;
pub(crate) mod filled;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzzing;
mod handshake;
pub(crate) mod layout;
pub(crate) mod lending;
mod link;
mod local_socket;
#[cfg(all(test, feature = "shuttle"))]
mod model;
mod own;
pub(crate) mod pool;
pub(crate) mod ring;
pub(crate) mod segment;
mod wait;

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use plainsong_proto::discovery::{LocalLocators, MemoryRefusal};
use plainsong_proto::locator::{Locator, NodeId};
use plainsong_proto::payload::{Payload, Region};
use plainsong_proto::time::Instant;

use super::loan::{LoanedOctets, LoanedPayload, PAYLOAD_START};
use super::{
    Batch, Input, Kind, LOAN_SHARED_BYTES_MIN, LinkChange, Received, Sent, ThreadWaker, Traffic, Transport,
    WokenBy, own_traffic,
};
use crate::base::clock;
use crate::base::config::Config;
use crate::base::locks::lock;
use control::Control;
use filled::Completed;
use link::{Attached, Link};
use own::{Claim, OwnQueue, Record};
use pool::{Chunk, Exhausted, Pool, chunk_bytes};
use segment::Pages;
use wait::{Bell, Trigger, WaitSet};

/// Records that one call receives, at most.
const RECORDS_MAX: usize = 32;
/// Records that a thread receives that has sent one, at most: others may send all the time.
const OWN_RECORDS_MAX: usize = 64;
/// What is longer has several samples, of a flow: the receiver takes them while the next are written.
const LONE_BYTES_MAX: usize = 8 << 10;
/// What part of the pool payloads in the own queue may have, at most.
const QUEUED_PART: u64 = 2;
/// Slabs that nobody has used for so long are given back to the system.
const UNUSED_MAX: Duration = Duration::from_secs(2);
/// What the own bell is called among those of links.
const OWN_BELL: u64 = 0;

/// What this process has of the memory that nodes of this host share in one domain.
pub(crate) struct Memory {
    domain: u16,
    node: NodeId,
    ring_bytes: usize,
    busy_polls: bool,
    own_user: Option<u32>,
    /// Others with whom memory is shared.
    users: Vec<u32>,
    /// Where messages can be sent to, sorted by node.
    links: ArcSwap<Vec<Arc<Link>>>,
    /// From which messages may come.
    incoming: ArcSwap<Vec<Arc<Link>>>,
    own: OwnQueue,
    /// In which a sender receives what is in it.
    own_record: Mutex<Record>,
    /// No receive thread was given a core or a priority: data is not received elsewhere then.
    lets_senders_receive: bool,
    /// For long payloads.
    pool: Pool,
    queued_bytes_max: u64,
    /// Bells of links, and the own one.
    bells: WaitSet,
    /// Rung for what this node sends to itself, and when it is closed.
    bell: Bell,
    /// Numbers the sleeps of who receives.
    sleeps: AtomicU32,
    /// Nodes that participants want to send to.
    requests: Mutex<Vec<NodeId>>,
    /// Wakes who serves the local socket.
    control_bell: Bell,
    control: Mutex<Option<Box<Control>>>,
    /// For who must not use them after a fork.
    descriptors: ArcSwap<Vec<RawFd>>,
    is_closed: AtomicBool,
    /// Messages that the own queue had no room for, and those of links that are gone.
    lost: AtomicU64,
    /// Payloads that were copied by links that have ended.
    copied: AtomicU64,
}

/// What one thread receives in.
pub(crate) struct Receiver {
    record: Record,
    expects_one: bool,
    /// Whose turn it is.
    next: usize,
}

impl Memory {
    /// A node that others can reach.
    ///
    /// # Errors
    /// The host has no local sockets, or no descriptors to spare.
    pub(crate) fn open(domain: u16, config: &Config) -> io::Result<Self> {
        let mut node = NodeId::default();
        for (half, random) in node.as_chunks_mut::<8>().0.iter_mut().zip([clock::seed(), clock::seed()]) {
            *half = random.to_be_bytes();
        }
        let pages = if config.memory_huge_pages { Pages::Huge } else { Pages::Usual };
        let (bells, bell, control_bell) = (WaitSet::new()?, Bell::new()?, Bell::new()?);
        bells.add(bell.as_fd(), OWN_BELL, Trigger::Edge)?;
        let control = Control::new(domain, node, &control_bell)?;
        let own = [bells.as_fd(), bell.as_fd(), bell.watched(), control_bell.as_fd(), control_bell.watched()];
        let descriptors = own.into_iter().chain(control.descriptors()).map(|fd| fd.as_raw_fd()).collect();
        Ok(Self {
            domain,
            node,
            ring_bytes: config.memory_ring_bytes,
            busy_polls: config.busy_poll,
            own_user: local_socket::own_user(),
            users: config.memory_users.clone(),
            links: ArcSwap::default(),
            incoming: ArcSwap::default(),
            own: OwnQueue::default(),
            own_record: Mutex::default(),
            lets_senders_receive: config.may_hand_over(),
            pool: Pool::new(config.memory_pool_bytes_max, pages),
            queued_bytes_max: config.memory_pool_bytes_max / QUEUED_PART,
            bells,
            bell,
            sleeps: AtomicU32::new(0),
            requests: Mutex::default(),
            control_bell,
            control: Mutex::new(Some(Box::new(control))),
            descriptors: ArcSwap::from_pointee(descriptors),
            is_closed: AtomicBool::new(false),
            lost: AtomicU64::new(0),
            copied: AtomicU64::new(0),
        })
    }

    /// Whether there is a link with that node; `None`: it was asked for one, or was before, and
    /// [`serve`](Self::serve) will tell.
    pub(crate) fn link(&self, node: NodeId) -> Option<Result<(), MemoryRefusal>> {
        if find(&self.links.load(), node).is_some() {
            return Some(Ok(()));
        }
        lock(&self.requests).push(node);
        self.control_bell.ring();
        None
    }

    /// Serves the local socket until something of links has changed, or the transport is closed. One thread
    /// at a time does it.
    pub(crate) fn serve(&self) -> Vec<LinkChange> {
        let mut control = lock(&self.control);
        match &mut *control {
            Some(control) if !self.is_closed.load(Ordering::Acquire) => control.serve(self),
            _ => {
                *control = None;
                Vec::new()
            }
        }
    }

    const fn domain(&self) -> u16 {
        self.domain
    }

    const fn node(&self) -> NodeId {
        self.node
    }

    /// Gives back memory that nobody uses. False: there is none.
    fn trim(&self, now: Instant) -> bool {
        if self.pool.bytes() == 0 {
            return false;
        }
        self.links.load().iter().for_each(|link| link.take_back(&self.pool));
        if self.pool.trim(now, UNUSED_MAX.into()) {
            self.links.load().iter().for_each(|link| link.take_back(&self.pool));
        }
        true
    }

    /// A payload in a chunk of the pool: where it is already, or a copy. `None`: there is no chunk for it.
    fn attached(&self, payload: &Payload) -> Option<Attached> {
        if let Some((region, range)) = payload.region()
            && chunk_of(&**region, &range).is_some_and(|(chunk, _)| self.pool.owns(chunk))
        {
            return Some((Arc::clone(region), range));
        }
        let range = PAYLOAD_START..PAYLOAD_START + payload.len();
        let mut chunk = self.allocate(range.end)?;
        chunk.bytes_mut().get_mut(range.clone())?.copy_from_slice(payload.as_slice());
        Some((Arc::new(chunk), range))
    }

    /// A chunk; if there is none, what peers have let go of is taken back first.
    fn allocate(&self, bytes: usize) -> Option<Chunk> {
        self.allocate_by(|pool| pool.allocate(bytes)).ok()
    }

    fn allocate_by(&self, allocate: impl Fn(&Pool) -> Result<Chunk, Exhausted>) -> Result<Chunk, Exhausted> {
        // Who serves the local socket gives it back later.
        if self.pool.bytes() == 0 {
            self.control_bell.ring();
        }
        allocate(&self.pool).or_else(|_| {
            self.links.load().iter().for_each(|link| link.take_back(&self.pool));
            allocate(&self.pool)
        })
    }

    /// Memory for a payload of so many octets.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn loan(&self, bytes: usize) -> Result<LoanedPayload, Exhausted> {
        let with_start = bytes.checked_add(PAYLOAD_START).unwrap_or(bytes);
        let chunk = self.allocate_by(|pool| pool.allocate_to_keep(with_start))?;
        Ok(LoanedPayload::in_chunk(chunk, bytes))
    }

    /// Memory for a sample that is mostly made of so many octets.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn loan_octets(&self, bytes: usize) -> Result<LoanedOctets, Exhausted> {
        let around = LoanedOctets::chunk_bytes(bytes).unwrap_or(bytes);
        let chunk = self.allocate_by(|pool| pool.allocate_to_keep(around))?;
        Ok(LoanedOctets::in_chunk(chunk, bytes))
    }

    /// A payload that is to be kept: itself, or a copy of the octets that it has where more than half of its
    /// chunk is for nothing. Who keeps a chunk keeps all of it.
    pub(super) fn fitting(&self, payload: Payload) -> Payload {
        let bytes = payload.len();
        let chunk =
            payload.region().and_then(|(region, range)| Some(chunk_of(&**region, &range)?.0.capacity()));
        let fitting = bytes.checked_add(PAYLOAD_START).and_then(chunk_bytes);
        if chunk.zip(fitting).is_none_or(|(chunk, fitting)| chunk / 2 < fitting) {
            return payload;
        }
        let shared = (bytes >= LOAN_SHARED_BYTES_MIN).then(|| self.loan(bytes).ok()).flatten();
        let mut copy = shared.unwrap_or_else(|| LoanedPayload::in_heap(bytes));
        copy.bytes_mut().copy_from_slice(payload.as_slice());
        copy.payload()
    }

    /// Payloads that were not sent for want of a chunk.
    pub(super) fn unsent(&self) -> u64 {
        self.pool.unsent()
    }

    /// Payloads that were copied, sent or received, since a receiver has its share.
    pub(super) fn copied(&self) -> u64 {
        let of_links: u64 = self.links.load().iter().map(|link| link.copied()).sum();
        self.copied.load(Ordering::Relaxed) + of_links
    }

    /// Whether a payload does not find a chunk, and is on none of the ways on which it could do without.
    pub(super) fn finds_no_chunk(&self) -> bool {
        self.links.load().iter().any(|link| link.starved_until().is_some())
    }

    const fn ring_bytes(&self) -> usize {
        self.ring_bytes
    }

    fn take_requests(&self) -> Vec<NodeId> {
        std::mem::take(&mut lock(&self.requests))
    }

    /// Whether memory is shared with processes of that user.
    fn trusts(&self, user: u32) -> bool {
        self.own_user == Some(user) || self.users.contains(&user)
    }

    /// Messages of a link are received from now on.
    fn receive_from(&self, link: &Arc<Link>) -> io::Result<()> {
        // Whatever else it does it is looked at for each bell.
        self.bells.add(link.watched(), OWN_BELL + 1, Trigger::Edge)?;
        change(&self.incoming, |links| links.push(Arc::clone(link)));
        // Who sleeps has not said so in its segment.
        self.bell.ring();
        Ok(())
    }

    /// Messages may go by a link from now on.
    fn send_to(&self, link: &Arc<Link>) {
        change(&self.links, |links| {
            let place = links.partition_point(|other| other.node() < link.node());
            links.insert(place, Arc::clone(link));
        });
    }

    /// A link is over: nothing is sent by it any more. What came by it is still received.
    fn end(&self, link: &Arc<Link>) {
        change(&self.links, |links| links.retain(|other| !Arc::ptr_eq(other, link)));
        self.copied.fetch_add(link.copied(), Ordering::Relaxed);
        link.close();
        self.bells.remove(link.watched());
        // Who receives looks, and forgets it.
        self.bell.ring();
    }

    /// A forked process must not use that descriptor.
    fn opened(&self, descriptor: RawFd) {
        change(&self.descriptors, |all| all.push(descriptor));
    }

    /// It is about to be closed.
    fn closed(&self, descriptor: RawFd) {
        change(&self.descriptors, |all| all.retain(|other| *other != descriptor));
    }

    /// Hands messages to `each`, so many at most: how many.
    fn take(&self, receiver: &mut Receiver, max: usize, each: &mut impl FnMut(Received<'_>)) -> usize {
        let mut taken = 0;
        if self.own.begin_receiving() {
            while taken < max && self.own.pop(&mut receiver.record) {
                each(self.own_received(&receiver.record));
                taken += 1;
            }
            receiver.record.attachment = None;
        }
        let links = self.incoming.load();
        for turn in 0..links.len() {
            let Some(link) = links.get((receiver.next + turn) % links.len()) else { continue };
            let from = link.locator();
            while taken < max && link.receive(&mut receiver.record) {
                let Record { bytes, attachment } = &receiver.record;
                each(Received { from, interface: 0, bytes, attachment: attachment.as_ref() });
                taken += 1;
            }
            receiver.record.attachment = None;
            if taken >= max {
                receiver.next = (receiver.next + turn + 1) % links.len();
                return taken;
            }
            if link.is_ended() && !link.has_more() {
                change(&self.incoming, |links| links.retain(|other| !Arc::ptr_eq(other, link)));
                link.drained();
            }
        }
        taken
    }

    /// Says that who receives is about to sleep. False: it must not, for there is something.
    fn begin_sleep(&self) -> bool {
        // Neither 0 nor the largest, which mean something else.
        let epoch = self.sleeps.fetch_add(1, Ordering::Relaxed) % (u32::MAX - 1) + 1;
        self.own.announce_sleep(epoch);
        let links = self.incoming.load();
        links.iter().for_each(|link| link.announce_sleep(epoch));
        ring::before_last_look();
        let is_idle = !self.own.must_stay_awake()
            && !links.iter().any(|link| link.has_more() || link.is_ended())
            && !self.is_closed.load(Ordering::Acquire);
        if !is_idle {
            self.end_sleep();
        }
        is_idle
    }

    fn end_sleep(&self) {
        // What is in the own queue senders receive, until it is looked at here.
        self.incoming.load().iter().for_each(|link| link.announce_awake());
    }

    fn send_to_self(&self, batch: &Batch<'_>, transmit: &plainsong_proto::outbox::Transmit) {
        let (parts, attachment) = batch.out.parts(transmit);
        let room = (self.ring_bytes, self.queued_bytes_max);
        let pushed = self.own.push(parts, attachment, room);
        if pushed.is_none() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        let is_flow = pushed.is_none_or(|octets| octets > LONE_BYTES_MAX);
        if (is_flow || !own_traffic::note(self.node)) && self.own.must_wake() {
            self.bell.ring();
        }
    }

    fn own_received<'a>(&self, record: &'a Record) -> Received<'a> {
        let Record { bytes, attachment } = record;
        let from = Locator::memory(self.node);
        Received { from, interface: 0, bytes, attachment: attachment.as_ref() }
    }

    /// Who receives looks around, also if nothing came.
    pub(super) fn wake_receiver(&self) {
        self.bell.ring();
    }

    /// The node, if threads that have sent to it may receive that.
    #[inline]
    pub(crate) const fn own_queue(&self) -> Option<NodeId> {
        if self.lets_senders_receive { Some(self.node) } else { None }
    }

    /// On a thread that has sent something to this node: hands to `each` what is there, unless somebody else
    /// receives it. When `each` says false, and when there is much, the receiver goes on.
    pub(crate) fn receive_own(&self, mut each: impl FnMut(Received<'_>) -> bool) {
        let mut receiving = Receiving { memory: self, claim: self.own.claim() };
        let mut left = OWN_RECORDS_MAX;
        while receiving.claim.is_some() {
            let mut record = lock(&self.own_record);
            while self.own.pop(&mut record) {
                left -= 1;
                if !each(self.own_received(&record)) || left == 0 {
                    record.attachment = None;
                    return;
                }
            }
            record.attachment = None;
            drop(record);
            receiving.claim = receiving.claim.take().and_then(|claim| self.own.release(claim));
        }
    }
}

/// A sender that receives. The receiver goes on when it stops, or panics, before all is received.
struct Receiving<'a> {
    memory: &'a Memory,
    claim: Option<Claim>,
}

impl Drop for Receiving<'_> {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            self.memory.own.hand_back(claim);
            self.memory.bell.ring();
        }
    }
}

/// The chunk that a range of a region is in, and where it is there.
fn chunk_of<'a>(region: &'a dyn Region, range: &Range<usize>) -> Option<(&'a Chunk, Range<usize>)> {
    if let Some(chunk) = region.as_any().downcast_ref::<Chunk>() {
        return Some((chunk, range.clone()));
    }
    let (chunk, place) = region.as_any().downcast_ref::<Completed>()?.place();
    Some((chunk, place.start + range.start..place.start + range.end))
}

fn find(links: &[Arc<Link>], node: NodeId) -> Option<&Arc<Link>> {
    links.binary_search_by_key(&node, |link| link.node()).ok().and_then(|place| links.get(place))
}

/// Changes what is read without a lock.
fn change<T: Clone>(list: &ArcSwap<Vec<T>>, f: impl Fn(&mut Vec<T>)) {
    list.rcu(|list| {
        let mut list = Vec::clone(list);
        f(&mut list);
        list
    });
}

impl Transport for Memory {
    type Receiver = Receiver;

    fn inputs(&self) -> Vec<Input> {
        let input = |traffic, name| Input { transport: Kind::Memory, traffic, name };
        vec![input(Traffic::Links, "memory"), input(Traffic::User(0), "rx-memory")]
    }

    fn receiver(&self) -> Receiver {
        Receiver { record: Record::default(), expects_one: false, next: 0 }
    }

    fn expect_one(receiver: &mut Receiver) {
        receiver.expects_one = true;
    }

    fn reaches(&self, locator: &Locator) -> bool {
        let reaches = |node| node == self.node || find(&self.links.load(), node).is_some();
        locator.node_id().is_some_and(reaches)
    }

    fn send(&self, batch: &Batch<'_>) -> Sent {
        let mut sent = Sent::default();
        let links = self.links.load();
        for transmit in batch.out.transmits() {
            // One for all links.
            let mut attached = None;
            for destination in batch.out.destinations(transmit) {
                match destination.node_id() {
                    None => sent.has_others = true,
                    Some(node) if node == self.node => self.send_to_self(batch, transmit),
                    Some(node) => match find(&links, node) {
                        Some(link) => {
                            let payload = batch.out.parts(transmit).1;
                            let attached = payload.and_then(|payload| {
                                attached.get_or_insert_with(|| self.attached(payload)).as_ref()
                            });
                            if link.send(batch, transmit, attached, (&self.pool, &links)) {
                                self.control_bell.ring();
                            }
                        }
                        // Its link has just ended: who sends there hears of it.
                        None => _ = self.lost.fetch_add(1, Ordering::Relaxed),
                    },
                }
            }
        }
        sent
    }

    fn receive(
        &self,
        _: Traffic,
        receiver: &mut Receiver,
        wait: bool,
        mut each: impl FnMut(Received<'_>),
    ) -> bool {
        let max = if std::mem::take(&mut receiver.expects_one) { 1 } else { RECORDS_MAX };
        let waits = wait && !self.busy_polls;
        if self.take(receiver, max, &mut each) == 0 && waits && self.begin_sleep() {
            // A signal ends it, too.
            self.bells.wait(true).for_each(drop);
            self.end_sleep();
            self.take(receiver, max, &mut each);
        }
        false
    }

    fn wait(
        &self,
        _: Traffic,
        waker: Option<&ThreadWaker>,
        timeout: Option<Duration>,
    ) -> io::Result<WokenBy> {
        if !self.begin_sleep() {
            return Ok(WokenBy { datagram: true, waker: false });
        }
        let woken = self.bells.wait_or(waker, timeout);
        self.end_sleep();
        if woken.as_ref().is_ok_and(|woken| woken.datagram) {
            // They have been seen.
            self.bells.wait(false).for_each(drop);
        }
        woken
    }

    fn can_hand_over(&self, traffic: Traffic) -> bool {
        matches!(traffic, Traffic::User(_))
    }

    fn locators(&self, locators: &mut LocalLocators) {
        locators.node_id = Some(self.node);
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.bell.ring();
        self.control_bell.ring();
    }

    fn overflows(&self) -> u64 {
        let of_links: u64 = self.links.load().iter().map(|link| link.lost()).sum();
        self.lost.load(Ordering::Relaxed) + of_links
    }

    fn abandon(&self) {
        self.is_closed.store(true, Ordering::Release);
        crate::base::fork::disconnect(self.descriptors.load().iter().copied());
    }
}

#[cfg(test)]
mod tests;
