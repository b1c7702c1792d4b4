//! One epoch of one member: what it holds, what the others have, and what may be delivered.
//!
//! An entry is delivered when all members vouch for it, and nobody can still send one that comes before:
//! stamps of a lane grow, each member's clock passes the stamps that it receives, and rows tell the clocks.
//! Entries with one stamp follow the ranks of their senders.

use crate::atomic::Storage;
use crate::atomic::lane::Lane;
use crate::atomic::message::Row;
use crate::atomic::storage::{EpochImage, Slot};
use crate::atomic::view::{Ranks, View};
use crate::atomic::{Body, EntryHeader};
use crate::time::Instant;

/// How far a stamp may be ahead: a clock grows by one with each entry, so that no sound one jumps like this.
const CLOCK_JUMP_MAX: u64 = 1 << 32;
/// Digests of so many of the last positions are remembered, to compare with rows of members that are behind.
const DIGESTS_KEPT: usize = 256;

/// What is known of one member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Peer {
    acked: Vec<u64>,
    position: u64,
    /// (position, digest) that it told and this member has not reached.
    ahead: Option<(u64, u64)>,
    closing: u64,
    is_held: bool,
    heard: Instant,
    hears: Ranks,
    /// When what it vouches for of each lane last grew, or was all that is known.
    progress: Vec<Instant>,
    /// When something of its lane last came, or all had come that it had sent.
    arrived: Instant,
}

/// An epoch, as one of its members sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Epoch<B> {
    pub(crate) view: View,
    pub(crate) rank: usize,
    pub(crate) clock: u64,
    pub(crate) position: u64,
    pub(crate) digest: u64,
    /// Of the epoch before, when it ended; 0 if this member was not there.
    pub(crate) closing: u64,
    /// Others have delivered something else.
    pub(crate) diverged: Ranks,
    lanes: Vec<Lane<B>>,
    peers: Vec<Peer>,
    digests: std::collections::VecDeque<(u64, u64)>,
    /// Entries of each lane that are vouched for.
    acked: Vec<u64>,
    /// The readers here take no more.
    pub(crate) is_held: bool,
    /// They took no more when the epoch began: what would be vouched for of each lane if they did.
    withheld: Option<Vec<u64>>,
    /// Only what is durable is vouched for.
    is_durable: bool,
    /// Of each member: who has sent an entry vouches for it.
    vouches_by_sending: Ranks,
    #[cfg(feature = "mistakes")]
    pub(crate) mistake: Option<crate::atomic::mistake::Mistake>,
}

/// What came of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Taken {
    /// It is the next of its lane.
    Next,
    /// It was there.
    Again,
    /// It cannot be: numbers are missing, or its stamp.
    Impossible,
}

impl<B: Body> Epoch<B> {
    pub(crate) fn new(view: View, rank: usize, now: Instant) -> Self {
        let count = view.members.len();
        let is_durable = |rank: usize| view.members[rank].storage == Storage::Durable;
        let mut vouches_by_sending = Ranks::default();
        (0..count).filter(|rank| !is_durable(*rank)).for_each(|rank| vouches_by_sending.add(rank));
        let clock = view.base_clock;
        let peer = Peer {
            acked: vec![0; count],
            position: view.base_position,
            ahead: None,
            closing: 0,
            is_held: false,
            heard: now,
            hears: view.ranks(),
            progress: vec![now; count],
            arrived: now,
        };
        Self {
            rank,
            clock,
            position: view.base_position,
            digest: first_digest(&view),
            closing: 0,
            diverged: Ranks::default(),
            lanes: (0..count).map(|_| Lane::new(clock)).collect(),
            peers: vec![peer; count],
            digests: std::collections::VecDeque::new(),
            acked: vec![0; count],
            is_held: false,
            withheld: None,
            is_durable: is_durable(rank),
            vouches_by_sending,
            #[cfg(feature = "mistakes")]
            mistake: None,
            view,
        }
    }

    /// The epoch in which a member was whose process has started again: it says what it has, and takes
    /// nothing more.
    pub(crate) fn restore(image: EpochImage<B>, now: Instant) -> Self {
        let EpochImage { view, rank, delivered, held } = image;
        let base_clock = view.base_clock;
        let mut epoch = Self::new(view, rank, now);
        epoch.position += delivered.iter().sum::<u64>();
        epoch.lanes = delivered
            .into_iter()
            .zip(held)
            .map(|(delivered, entries)| Lane::restore(base_clock, delivered, entries))
            .collect();
        epoch.acked = epoch.lanes.iter().map(|lane| lane.received).collect();
        epoch.clock = epoch.lanes.iter().map(Lane::last_stamp).fold(base_clock, u64::max);
        epoch
    }

    /// Appends to the lane of this member.
    pub(crate) fn send(&mut self, body: B) -> EntryHeader {
        self.clock += 1;
        let stamp = self.clock;
        let lane = &mut self.lanes[self.rank];
        lane.push(stamp, body);
        let index = lane.received;
        self.vouch_for_received(self.rank);
        EntryHeader { instance: self.view.instance, epoch: self.view.epoch, index, stamp }
    }

    /// Takes an entry of another lane.
    pub(crate) fn take(&mut self, now: Instant, rank: usize, header: EntryHeader, body: B) -> Taken {
        let Some(lane) = self.lanes.get_mut(rank) else { return Taken::Impossible };
        if header.index <= lane.received {
            return Taken::Again;
        }
        let is_next = header.index == lane.received + 1;
        let is_sound = header.stamp > lane.last_stamp()
            && header.stamp > self.view.base_clock
            && header.stamp <= self.clock.saturating_add(CLOCK_JUMP_MAX);
        if !is_next || !is_sound {
            return Taken::Impossible;
        }
        lane.push(header.stamp, body);
        let received = lane.received;
        self.pass(header.stamp);
        self.peers[rank].heard = now;
        self.peers[rank].arrived = now;
        if self.vouches_by_sending.has(rank) {
            let told = &mut self.peers[rank].acked[rank];
            *told = (*told).max(received);
        }
        self.vouch_for_received(rank);
        Taken::Next
    }

    /// Whatever this member sends from now on has a larger stamp.
    fn pass(&mut self, clock: u64) {
        #[cfg(feature = "mistakes")]
        if self.mistake == Some(crate::atomic::mistake::Mistake::KeepClock) {
            return;
        }
        self.clock = self.clock.max(clock);
    }

    fn vouch_for_received(&mut self, rank: usize) {
        if !self.is_durable {
            self.vouch_for(rank, self.lanes[rank].received);
        }
    }

    /// What a member has sent it holds, by what others know.
    fn vouch_for(&mut self, rank: usize, count: u64) {
        let counts = match &mut self.withheld {
            Some(withheld) if rank != self.rank => withheld,
            _ => &mut self.acked,
        };
        counts[rank] = counts[rank].max(count);
        self.settle_stable(rank);
    }

    /// Nothing of other lanes is vouched for in this epoch until [`Self::vouch_again`]: what waits for room
    /// in the readers here would grow with each epoch that ends.
    pub(crate) fn withhold(&mut self) {
        self.is_held = true;
        self.withheld = Some(vec![0; self.lanes.len()]);
    }

    /// Whether it vouches for nothing.
    pub(crate) const fn withholds(&self) -> bool {
        self.withheld.is_some()
    }

    /// Whether there was something to vouch for.
    pub(crate) fn vouch_again(&mut self) -> bool {
        let withheld = self.withheld.take().unwrap_or_default();
        for (rank, count) in withheld.iter().enumerate() {
            self.vouch_for(rank, *count);
        }
        withheld.iter().any(|count| *count > 0)
    }

    /// Whose readers take no more, as far as is known.
    pub(crate) fn held(&self) -> Ranks {
        let mut ranks = Ranks::default();
        for (rank, peer) in self.peers.iter().enumerate() {
            if if rank == self.rank { self.is_held } else { peer.is_held } {
                ranks.add(rank);
            }
        }
        ranks
    }

    /// Whether only what is durable is vouched for.
    pub(crate) const fn is_durable(&self) -> bool {
        self.is_durable
    }

    /// The first entries of a lane are durable.
    pub(crate) fn persisted(&mut self, rank: usize, count: u64) {
        if self.is_durable
            && let Some(lane) = self.lanes.get(rank)
        {
            let count = count.min(lane.received);
            self.vouch_for(rank, count);
        }
    }

    fn settle_stable(&mut self, lane: usize) {
        let own = self.acked[lane];
        let rest = self.peers.iter().enumerate().filter(|(rank, _)| *rank != self.rank);
        let others = rest.map(|(_, peer)| peer.acked[lane]).min();
        let stable = others.map_or(own, |others| own.min(others));
        let known = &mut self.lanes[lane].stable;
        *known = (*known).max(stable);
    }

    /// Takes what another member tells. Whether it is of a member, and says something possible.
    pub(crate) fn merge(&mut self, now: Instant, rank: usize, row: &Row) -> bool {
        let count = self.lanes.len();
        if rank >= count || rank == self.rank || row.acked.len() != count {
            return false;
        }
        if row.clock > self.clock.saturating_add(CLOCK_JUMP_MAX) || row.acked[self.rank] > self.sent() {
            return false;
        }
        self.pass(row.clock);
        self.lanes[rank].promised(row.sent, row.clock);
        let peer = &mut self.peers[rank];
        peer.heard = now;
        peer.hears = row.hears;
        let mut grown = Ranks::default();
        for (lane, (told, acked)) in peer.acked.iter_mut().zip(&row.acked).enumerate() {
            if *acked > *told {
                *told = *acked;
                grown.add(lane);
            }
        }
        for ((acked, lane), progress) in peer.acked.iter().zip(&self.lanes).zip(&mut peer.progress) {
            // Who says that it takes nothing is not stuck.
            if *acked >= lane.received || row.is_held {
                *progress = now;
            }
        }
        grown.iter().for_each(|lane| peer.progress[lane] = now);
        if !self.lanes[rank].is_behind() {
            peer.arrived = now;
        }
        if row.position > peer.position {
            peer.position = row.position;
        }
        peer.closing = row.closing.max(peer.closing);
        peer.is_held = row.is_held;
        grown.iter().for_each(|lane| self.settle_stable(lane));
        self.compare(rank, row);
        true
    }

    fn compare(&mut self, rank: usize, row: &Row) {
        if row.closing != 0 && self.closing != 0 && row.closing != self.closing {
            self.diverged.add(rank);
        }
        if !row.caught_up || row.position <= self.view.base_position {
            return;
        }
        if row.position > self.position {
            self.peers[rank].ahead = Some((row.position, row.digest));
            return;
        }
        if let Some((first, _)) = self.digests.front()
            && row.position >= *first
            && let Some((_, digest)) = self.digests.get((row.position - first) as usize)
            && *digest != row.digest
        {
            self.diverged.add(rank);
        }
    }

    /// The next entry in the agreed order, if it may be delivered.
    pub(crate) fn next(&mut self) -> Option<(usize, B)> {
        let (stamp, rank) = self.first()?;
        let lane = &self.lanes[rank];
        if lane.stable <= lane.delivered {
            return None;
        }
        let is_last =
            |(other, lane): (usize, &Lane<B>)| other == rank || other == self.rank || lane.promise() >= stamp;
        if !self.lanes.iter().enumerate().all(is_last) {
            return None;
        }
        self.deliver(rank)
    }

    /// The next entry in the order of what is held, up to a cut.
    pub(crate) fn next_within(&mut self, cut: &[u64]) -> Option<(usize, B)> {
        let heads = self
            .lanes
            .iter()
            .enumerate()
            .filter(|(rank, lane)| cut.get(*rank).is_some_and(|cut| lane.delivered < *cut));
        let (_, rank) = heads.filter_map(|(rank, lane)| Some((lane.next_stamp()?, rank))).min()?;
        self.deliver(rank)
    }

    fn first(&self) -> Option<(u64, usize)> {
        self.lanes.iter().enumerate().filter_map(|(rank, lane)| Some((lane.next_stamp()?, rank))).min()
    }

    fn deliver(&mut self, rank: usize) -> Option<(usize, B)> {
        let body = self.lanes[rank].deliver()?;
        self.position += 1;
        self.digest = mix(mix(self.digest, rank as u64), body.digest());
        if self.digests.len() == DIGESTS_KEPT {
            self.digests.pop_front();
        }
        self.digests.push_back((self.position, self.digest));
        for (other, peer) in self.peers.iter_mut().enumerate() {
            if let Some((position, digest)) = peer.ahead
                && position == self.position
            {
                peer.ahead = None;
                if digest != self.digest {
                    self.diverged.add(other);
                }
            }
        }
        Some((rank, body))
    }

    /// What this member tells of itself.
    pub(crate) fn row(&self, now: Instant, lease: crate::time::Duration, caught_up: bool) -> Row {
        Row {
            from: self.view.members[self.rank].id,
            instance: self.view.instance,
            epoch: self.view.epoch,
            clock: self.clock,
            sent: self.sent(),
            acked: self.acked.clone(),
            position: self.position,
            digest: self.digest,
            closing: self.closing,
            hears: self.hears(now, lease),
            caught_up,
            is_held: self.is_held,
        }
    }

    /// Whom this member heard within the lease, with itself.
    pub(crate) fn hears(&self, now: Instant, lease: crate::time::Duration) -> Ranks {
        let mut ranks = Ranks::default();
        for (rank, peer) in self.peers.iter().enumerate() {
            if rank == self.rank || now.since(peer.heard) < lease {
                ranks.add(rank);
            }
        }
        ranks
    }

    /// Who has not received anything for so long although there is something, or whose entries do not come
    /// here.
    pub(crate) fn stuck(&self, now: Instant, within: crate::time::Duration) -> Ranks {
        let mut ranks = Ranks::default();
        for (rank, (peer, own)) in self.peers.iter().zip(&self.lanes).enumerate() {
            let lanes = peer.progress.iter().zip(&peer.acked).zip(&self.lanes);
            let mut waiting = lanes.filter(|((_, acked), lane)| **acked < lane.received);
            let receives = !waiting.any(|((progress, _), _)| now.since(*progress) >= within);
            let arrives = !own.is_behind() || now.since(peer.arrived) < within;
            if rank != self.rank && !(receives && arrives) {
                ranks.add(rank);
            }
        }
        ranks
    }

    /// A member is alive: it sent something else.
    pub(crate) fn heard(&mut self, now: Instant, rank: usize) {
        if let Some(peer) = self.peers.get_mut(rank) {
            peer.heard = now;
        }
    }

    /// Nobody was heard while this member itself did not run.
    pub(crate) fn woke(&mut self, now: Instant) {
        for peer in &mut self.peers {
            peer.heard = peer.heard.max(now);
            peer.progress.fill(now);
            peer.arrived = now;
        }
    }

    /// Entries of this member's lane.
    pub(crate) fn sent(&self) -> u64 {
        self.lanes[self.rank].received
    }

    /// Entries of each lane that it vouches for.
    pub(crate) fn vouched(&self) -> Vec<u64> {
        self.acked.clone()
    }

    /// Whether something was received and not delivered.
    pub(crate) fn has_undelivered(&self) -> bool {
        self.lanes.iter().any(|lane| lane.received > lane.delivered)
    }

    /// Entries of this member's lane that it delivered.
    pub(crate) fn own_delivered(&self) -> u64 {
        self.delivered_of(self.rank)
    }

    /// Entries of a lane that it delivered.
    pub(crate) fn delivered_of(&self, rank: usize) -> u64 {
        self.lanes[rank].delivered
    }

    /// Entries of a lane that it received.
    pub(crate) fn received_of(&self, rank: usize) -> u64 {
        self.lanes[rank].received
    }

    /// What it holds and has not delivered.
    pub(crate) fn undelivered(&self) -> impl Iterator<Item = Slot> {
        let epoch = self.view.epoch;
        let of = move |(rank, lane): (usize, &Lane<B>)| {
            (lane.delivered + 1..=lane.received).map(move |index| Slot { epoch, rank, index })
        };
        self.lanes.iter().enumerate().flat_map(of)
    }

    /// Everybody has delivered so many positions.
    pub(crate) fn everywhere(&self) -> u64 {
        let others = self.peers.iter().enumerate().filter(|(rank, _)| *rank != self.rank);
        others.map(|(_, peer)| peer.position).min().map_or(self.position, |least| least.min(self.position))
    }

    /// Who has delivered least, or vouches for least, unless it is this member itself.
    pub(crate) fn slowest(&self) -> Option<usize> {
        let others = self.peers.iter().enumerate().filter(|(rank, _)| *rank != self.rank);
        let progress = |peer: &Peer| (peer.position, peer.acked.iter().sum::<u64>());
        let (rank, slowest) = others.min_by_key(|(_, peer)| progress(peer))?;
        (progress(slowest) <= (self.position, self.acked.iter().sum())).then_some(rank)
    }

    /// Where each member is.
    pub(crate) fn positions(&self) -> impl Iterator<Item = u64> {
        self.peers
            .iter()
            .enumerate()
            .map(|(rank, peer)| if rank == self.rank { self.position } else { peer.position })
    }

    /// Ends the epoch: what this member sent after the cut.
    pub(crate) fn into_uncut(mut self, cut: u64) -> impl Iterator<Item = B> {
        self.lanes.swap_remove(self.rank).after(cut)
    }

    /// Whether it has delivered nothing after a cut.
    pub(crate) fn is_within(&self, cut: &[u64]) -> bool {
        self.lanes.iter().zip(cut).all(|(lane, cut)| lane.delivered <= *cut)
    }

    /// Whether it holds everything up to a cut.
    pub(crate) fn holds(&self, cut: &[u64]) -> bool {
        cut.len() == self.lanes.len() && self.lanes.iter().zip(cut).all(|(lane, cut)| lane.received >= *cut)
    }
}

fn first_digest(view: &View) -> u64 {
    mix(mix(view.instance, view.epoch), view.base_position)
}

/// Mixes a word into a digest: a step of the finaliser of MurmurHash3, where each bit changes half of all.
pub(crate) fn mix(digest: u64, word: u64) -> u64 {
    let mut it = digest.rotate_left(5) ^ word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    it = (it ^ (it >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    it ^ (it >> 33)
}
