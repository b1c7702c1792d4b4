//! What two nodes share: a segment of each, by which it sends to the other one, and the connection whose
//! hang-up ends it.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use plainsong_proto::discovery::MemoryRefusal;
use plainsong_proto::locator::{Locator, NodeId};
use plainsong_proto::outbox::Transmit;
use plainsong_proto::payload::{Payload, Region};
use plainsong_proto::time::{Duration, Instant};

use super::chunk_of;
use super::handshake::{Hello, Message};
use super::layout::{self, Header};
use super::lending::{AttachmentError, Lending, LetGo, PeerSlabs};
use super::local_socket::Connection;
use super::own::Record;
use super::pool::{Chunk, Pool};
use super::ring::{
    Attachment, PeerSleep, PushError, ReleaseConsumer, ReleaseProducer, RingConsumer, RingProducer,
};
use super::segment::{Pages, PeerSegment, Segment};
use super::wait::Bell;
use crate::base::locks::lock;
use crate::base::{clock, fork};
use crate::transport::Batch;

/// Address space for slabs of one peer.
const PEER_SLAB_BYTES_MAX: u64 = 1 << 40;
/// Attachments of one peer that are kept where they are; others are copied. A quarter of what it can lend, so
/// that it always has some to lend.
const BORROWED_MAX: usize = layout::LENT_MAX / 4;
/// What finds no way for so long goes by UDP.
const STARVED_MAX: Duration = Duration::from_millis(100);

/// What this node adds to a link.
pub(super) struct Half {
    segment: Segment,
    bell: Bell,
    ring_bytes: usize,
    nonce: u64,
}

/// A link, of which both halves are here.
pub(super) struct Link {
    node: NodeId,
    own: Segment,
    peer: PeerSegment,
    /// Wakes the peer.
    bell: Bell,
    /// Shows the bell by which the peer wakes this node.
    watched: OwnedFd,
    nonce: u64,
    peer_nonce: u64,
    sender: Mutex<Sender>,
    /// Locked by who receives from the node's links, who is one.
    receiver: Mutex<Incoming>,
    slabs: Mutex<PeerSlabs>,
    /// How many attachments are borrowed.
    borrowed: AtomicUsize,
    releases: Mutex<ReleaseProducer>,
    /// In which process it was made: see [`fork`].
    generation: u32,
    connection: Arc<Connection>,
    /// Nothing is sent any more; what is in the ring is still received.
    is_ended: AtomicBool,
    /// See [`close`](Self::close).
    is_closing: AtomicBool,
    /// All that was in the ring was received.
    is_drained: AtomicBool,
    /// The peer was told that nothing of it is borrowed. Changed and looked at with `slabs` locked.
    is_finished: AtomicBool,
    /// The peer does not keep to the rules: nothing of it is received any more.
    is_broken: AtomicBool,
    /// Records that there was no room for.
    lost: AtomicU64,
    /// Payloads that were copied, since one of both sides has its share of the pool of the other.
    copied: AtomicU64,
}

struct Sender {
    ring: RingProducer,
    sleep: PeerSleep,
    /// Attachments that the peer has not let go of.
    lending: Lending<LentChunk>,
    releases: ReleaseConsumer,
    /// Slabs that the peer was told of, and how many had been retired when this was last looked through.
    told: BTreeSet<u32>,
    retired: u64,
    /// Since when a payload that is longer than the ring takes has found no chunk, or none that may be lent,
    /// and its octets. Shorter ones that do find one say nothing of it.
    starved: Option<(Instant, usize)>,
}

/// A region with a chunk that was [lent](Chunk::lend).
struct LentChunk(Arc<dyn Region>);

struct Incoming {
    ring: RingConsumer,
    /// A record whose slab the peer has told of by the connection, which another thread receives from.
    pending: Option<(Attachment, Vec<u8>)>,
}

/// An attachment to send: a chunk of the node's pool, and which octets of it.
pub(super) type Attached = (Arc<dyn Region>, Range<usize>);

impl Half {
    /// # Errors
    /// There is no memory, or no descriptor.
    pub(super) fn new(ring_bytes: usize, nonce: u64) -> io::Result<Self> {
        let segment = Segment::create(layout::segment_bytes(ring_bytes), Pages::Usual)?;
        Header { ring_bytes, nonce }.write(&segment);
        Ok(Self { segment, bell: Bell::new()?, ring_bytes, nonce })
    }

    pub(super) const fn nonce(&self) -> u64 {
        self.nonce
    }

    /// Says what cannot be of its ring.
    #[cfg(test)]
    pub(super) fn spoil(&self) {
        use super::segment::OwnMemory;
        self.segment.release64(layout::HEAD, 1 << 60);
    }

    /// What the peer needs.
    pub(super) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.segment.fd(), self.bell.watched()]
    }
}

impl Link {
    /// Puts both halves together.
    ///
    /// # Errors
    /// The peer's is of no use.
    pub(super) fn new(
        hello: Hello,
        half: Half,
        descriptors: Vec<OwnedFd>,
        connection: Arc<Connection>,
    ) -> Result<Self, MemoryRefusal> {
        let mut descriptors = descriptors.into_iter();
        let (Some(segment), Some(watched)) = (descriptors.next(), descriptors.next()) else {
            return Err(MemoryRefusal::Refused);
        };
        let sizes =
            layout::segment_bytes(layout::RING_BYTES_LEAST)..=layout::segment_bytes(layout::RING_BYTES_MOST);
        let peer = PeerSegment::map(segment.as_fd(), sizes).map_err(|_| MemoryRefusal::NotShared)?;
        let header = Header::read(&peer).map_err(|_| MemoryRefusal::NotShared)?;
        if header.nonce != hello.nonce {
            return Err(MemoryRefusal::NotShared);
        }
        Ok(Self {
            node: hello.node,
            peer,
            bell: half.bell,
            watched,
            nonce: half.nonce,
            peer_nonce: hello.nonce,
            sender: Mutex::new(Sender {
                ring: RingProducer::new(half.ring_bytes),
                sleep: PeerSleep::default(),
                lending: Lending::new(),
                releases: ReleaseConsumer::default(),
                told: BTreeSet::new(),
                retired: 0,
                starved: None,
            }),
            own: half.segment,
            receiver: Mutex::new(Incoming { ring: RingConsumer::new(header.ring_bytes), pending: None }),
            slabs: Mutex::new(PeerSlabs::new(PEER_SLAB_BYTES_MAX)),
            borrowed: AtomicUsize::new(0),
            releases: Mutex::default(),
            generation: fork::generation(),
            connection,
            is_ended: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            is_drained: AtomicBool::new(false),
            is_finished: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
            lost: AtomicU64::new(0),
            copied: AtomicU64::new(0),
        })
    }

    pub(super) const fn node(&self) -> NodeId {
        self.node
    }

    pub(super) const fn locator(&self) -> Locator {
        Locator::memory(self.node)
    }

    /// Shows when the peer rings.
    pub(super) fn watched(&self) -> BorrowedFd<'_> {
        self.watched.as_fd()
    }

    /// Tells through our memory what was read in the peer's.
    pub(super) fn prove(&self) {
        layout::write_echo(&self.own, self.peer_nonce);
    }

    /// Whether the peer has told what it read in ours.
    pub(super) fn is_proved(&self) -> bool {
        layout::read_echo(&self.peer) == self.nonce
    }

    /// Puts a message in the ring, and wakes the peer if it sleeps. A message with a payload beside it has
    /// that as `attached`; where there is no chunk for it, or none that may be lent, it is copied behind the
    /// message, which is the same to who receives it. `all` have what they were lent, or had. True: a payload
    /// finds no way, and the one before it did; see [`starved_until`](Self::starved_until).
    pub(super) fn send(
        &self,
        batch: &Batch<'_>,
        transmit: &Transmit,
        attached: Option<&Attached>,
        (pool, all): (&Pool, &[Arc<Self>]),
    ) -> bool {
        let (parts, payload) = batch.out.parts(transmit);
        let bytes = transmit.len();
        let mut sender = lock(&self.sender);
        let mut lent = attached.and_then(|attached| sender.attach(self, attached, pool));
        if lent.is_none() && attached.is_some() {
            drop(sender);
            all.iter().for_each(|link| link.take_back(pool));
            sender = lock(&self.sender);
            lent = attached.and_then(|attached| sender.attach(self, attached, pool));
        }
        let is_copied = attached.is_some() && lent.is_none();
        let pushed = match payload {
            None => sender.ring.push(&self.own, &self.peer, parts, bytes, None),
            Some(payload) => match lent {
                Some(attachment) => {
                    let pushed = sender.ring.push(&self.own, &self.peer, parts, bytes, Some(&attachment));
                    if pushed.is_err() {
                        sender.lending.release(attachment.slot);
                    }
                    sender.starved.take_if(|(_, octets)| *octets <= payload.len());
                    pushed
                }
                None => {
                    let parts = parts.chain([payload.as_slice()]);
                    sender.ring.push(&self.own, &self.peer, parts, bytes + payload.len(), None)
                }
            },
        };
        let begins_to_starve = pushed == Err(PushError::TooLong) && sender.starved.is_none();
        if begins_to_starve {
            sender.starved = Some((clock::mono(), payload.map_or(0, Payload::len)));
        }
        if pushed.is_ok() && is_copied {
            self.copied.fetch_add(1, Ordering::Relaxed);
        }
        let must_wake = pushed.is_ok() && sender.sleep.must_wake(&self.peer);
        drop(sender);
        if must_wake {
            self.bell.ring();
        }
        match pushed {
            Ok(()) => return false,
            Err(PushError::TooLong) if payload.is_some() => {
                pool.count_unsent();
                return begins_to_starve;
            }
            Err(PushError::Full | PushError::TooLong) => {}
            Err(PushError::Corrupt(_)) => self.give_up(),
        }
        self.lost.fetch_add(1, Ordering::Relaxed);
        begins_to_starve
    }

    /// When the link has to end, unless a long payload finds a way before: its peer is reached by UDP then.
    pub(super) fn starved_until(&self) -> Option<Instant> {
        lock(&self.sender).starved?.0.after(STARVED_MAX)
    }

    /// Takes back what the peer has let go of, and tells it which slabs are gone.
    pub(super) fn take_back(&self, pool: &Pool) {
        let mut sender = lock(&self.sender);
        sender.take_back(self);
        sender.tell_retired(self, pool);
    }

    /// Attachments that the peer has.
    #[cfg(test)]
    pub(super) fn lent(&self, pool: &Pool) -> usize {
        self.take_back(pool);
        lock(&self.sender).lending.len()
    }

    /// Takes the next message out of the peer's ring.
    pub(super) fn receive(self: &Arc<Self>, record: &mut Record) -> bool {
        let mut incoming = lock(&self.receiver);
        record.attachment = None;
        let attachment = if let Some((attachment, bytes)) = incoming.pending.take() {
            record.bytes = bytes;
            Some(attachment)
        } else {
            match incoming.ring.pop(&self.peer, &mut record.bytes) {
                _ if self.is_broken.load(Ordering::Relaxed) => return false,
                None => return false,
                Some(Ok(popped)) => {
                    incoming.ring.publish(&self.own);
                    popped.attachment
                }
                Some(Err(_)) => {
                    self.give_up();
                    return false;
                }
            }
        };
        let Some(attachment) = attachment else { return true };
        match self.borrow(&attachment) {
            Ok(payload) => {
                record.attachment = Some(payload);
                true
            }
            Err(AttachmentError::Slab(_)) => {
                incoming.pending = Some((attachment, std::mem::take(&mut record.bytes)));
                false
            }
            Err(AttachmentError::Range(_)) => {
                self.give_up();
                false
            }
        }
    }

    /// What a record has beside it, where it is, unless much of the peer's is kept here: then a copy.
    fn borrow(self: &Arc<Self>, attachment: &Attachment) -> Result<Payload, AttachmentError> {
        let slabs = lock(&self.slabs);
        if self.is_finished.load(Ordering::Relaxed) {
            return Err(AttachmentError::Range(attachment.slab));
        }
        let chunk = slabs.borrow(attachment, self)?;
        let borrowed = self.borrowed.fetch_add(1, Ordering::SeqCst);
        let is_much = borrowed >= BORROWED_MAX || slabs.borrowed_bytes() > layout::read_share(&self.peer);
        drop(slabs);
        if is_much {
            self.copied.fetch_add(1, Ordering::Relaxed);
            return Ok(Payload::from_vec(chunk.bytes().to_vec()));
        }
        let bytes = chunk.bytes().len();
        Ok(Payload::from_region(Arc::new(chunk), 0..bytes))
    }

    pub(super) fn has_more(&self) -> bool {
        let incoming = lock(&self.receiver);
        !self.is_broken.load(Ordering::Relaxed)
            && match &incoming.pending {
                Some((attachment, _)) => lock(&self.slabs).knows(attachment.slab),
                None => incoming.ring.has_more(&self.peer),
            }
    }

    /// The peer tells of a slab.
    ///
    /// # Errors
    /// It cannot be mapped: what is in it would never arrive.
    pub(super) fn add_slab(&self, id: u32, slab: &OwnedFd, chunk_bytes: u64) -> Result<(), MemoryRefusal> {
        lock(&self.slabs).insert(id, slab.as_fd(), chunk_bytes).map_err(|_| MemoryRefusal::NoMemory)
    }

    /// The peer has given a slab up.
    pub(super) fn remove_slab(&self, id: u32) {
        lock(&self.slabs).remove(id);
    }

    pub(super) fn announce_sleep(&self, epoch: u32) {
        super::ring::announce_sleep(&self.own, epoch);
    }

    pub(super) fn announce_awake(&self) {
        super::ring::announce_awake(&self.own);
    }

    pub(super) fn copied(&self) -> u64 {
        self.copied.load(Ordering::Relaxed)
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// The peer does not keep to the rules: who serves the connection finds it hung up.
    #[cold]
    pub(super) fn give_up(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
        self.connection.hang_up();
    }

    /// Nothing is sent any more.
    pub(super) fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
    }

    /// Nothing is sent or received any more. What is borrowed stays borrowed, and what is lent stays lent:
    /// the peer hears of the end of its loans when the last one is let go of, and this node by its hang-up.
    /// So no chunk is used again while somebody reads it.
    pub(super) fn close(&self) {
        self.end();
        // The peer may be gone.
        let _ = self.connection.send(&Message::Closing.to_octets(), &[]);
        self.is_closing.store(true, Ordering::SeqCst);
        self.finish();
    }

    /// All that the peer has sent was received.
    pub(super) fn drained(&self) {
        self.is_drained.store(true, Ordering::SeqCst);
        self.finish();
    }

    pub(super) fn is_drained(&self) -> bool {
        self.is_drained.load(Ordering::SeqCst)
    }

    /// Hangs up, once nothing of the peer is borrowed, nor will be.
    fn finish(&self) {
        let slabs = lock(&self.slabs);
        let is_over = self.is_closing.load(Ordering::SeqCst) && self.is_drained.load(Ordering::SeqCst);
        if is_over && self.borrowed.load(Ordering::SeqCst) == 0 {
            self.is_finished.store(true, Ordering::Relaxed);
            self.connection.finish();
        }
        drop(slabs);
    }

    /// The peer has nothing of this node any more: it said so, or its process is gone.
    pub(super) fn take_all_back(&self) {
        lock(&self.sender).lending = Lending::new();
    }

    pub(super) fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Acquire)
    }
}

impl Sender {
    /// What a record says of an attachment that is lent to the peer; `None`: it is not, see
    /// [`lend`](Self::lend).
    fn attach(&mut self, link: &Link, (region, range): &Attached, pool: &Pool) -> Option<Attachment> {
        let (chunk, range) = chunk_of(&**region, range)?;
        let slot = self.lend(link, region, chunk, pool)?;
        Some(chunk.attachment(&range, slot))
    }

    /// Lends a chunk to the peer, who hears of its slab first; `None`: it has too much, or does not listen.
    fn lend(&mut self, link: &Link, region: &Arc<dyn Region>, chunk: &Chunk, pool: &Pool) -> Option<u32> {
        self.take_back(link);
        self.tell_retired(link, pool);
        let slab = chunk.slab();
        if !self.told.contains(&slab.id()) {
            let message = Message::Slab { id: slab.id(), chunk_bytes: chunk.capacity() as u64 };
            link.connection.send(&message.to_octets(), &[slab.fd()]).ok()?;
            self.told.insert(slab.id());
        }
        let share = chunk.lend(self.lending.bytes())?;
        let slot = self.lending.lend(LentChunk(Arc::clone(region)), chunk.capacity() as u64)?;
        layout::write_share(&link.own, share);
        Some(slot)
    }

    fn take_back(&mut self, link: &Link) {
        let Self { lending, releases, .. } = self;
        let drained = releases.drain(&link.peer, |slot| drop(lending.release(slot)));
        if drained.is_err() {
            link.give_up();
        }
    }

    fn tell_retired(&mut self, link: &Link, pool: &Pool) {
        let retired = pool.retired();
        if retired != self.retired {
            let is_there = pool.is_there();
            let tell = |id: &u32| {
                let message = Message::SlabGone { id: *id };
                is_there(*id) || link.connection.send(&message.to_octets(), &[]).is_err()
            };
            self.told.retain(tell);
            self.retired = retired;
        }
    }
}

impl Drop for LentChunk {
    fn drop(&mut self) {
        if let Some((chunk, _)) = chunk_of(&*self.0, &(0..0)) {
            chunk.take_back();
        }
    }
}

impl LetGo for Link {
    fn let_go(&self, slot: u32) {
        // A forked process has nothing of it.
        if self.generation != fork::generation() {
            return;
        }
        lock(&self.releases).push(&self.own, slot);
        if self.borrowed.fetch_sub(1, Ordering::SeqCst) == 1 && self.is_closing.load(Ordering::SeqCst) {
            self.finish();
        }
    }
}
