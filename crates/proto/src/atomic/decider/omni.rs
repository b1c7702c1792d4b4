//! The decider of a group with 2 to 7 voters: a log that the crate `omnipaxos` replicates.
//!
//! The engine was made for connections like those of TCP and for a cluster that is always busy. What it lacks
//! for ours is here:
//!
//! - *Connections.* Messages that come late or twice are dropped (`links.rs`).
//! - *Repetition.* The engine repeats what elects and prepares a leader, but nothing after. Every message
//!   says how far the log of its sender is. Who finds itself behind, or has entries that nobody decides,
//!   asks its leader to begin anew, as after the loss of a connection.
//! - *Ballots.* A voter that has promised a higher ballot than that of a leader whom the others are content
//!   with would be left behind for ever: then the leader takes a higher one.
//! - *Proposals.* The engine would queue and forward them without limit. Here a voter has one at most, and
//!   sends it to the leader until something is decided for its base; a leader appends one for each base.
//! - *Snapshots.* Differences of snapshots are wrong where the receiver has accepted something else
//!   meanwhile: the log is compacted as soon as it is decided, and whole snapshots are sent, without what the
//!   receiver is known to have.
//! - *Rest.* Voters at rest have no clock (`activity.rs`).
//! - *Doubt.* What no correct voter would say is dropped before the engine could trip over it.

use std::collections::VecDeque;

use omnipaxos::messages::Message;
use omnipaxos::messages::ballot_leader_election::HeartbeatMsg;
use omnipaxos::messages::sequence_paxos::{AcceptSync, PaxosMsg, Promise};
use omnipaxos::storage::SnapshotType;
use omnipaxos::util::LogSync;
use omnipaxos::{ClusterConfig, OmniPaxos as Engine, ServerConfig};

use crate::atomic::decider::activity::Activity;
use crate::atomic::decider::decided::{Entry, Summary};
use crate::atomic::decider::links::Link;
use crate::atomic::decider::message::{self, Body, CONFIGURATION, Position};
use crate::atomic::decider::record::Journal;
use crate::atomic::decider::store::Shared;
use crate::atomic::decider::{
    Decision, Electorate, EpochDecider, ProposeError, Record, RestoreError, VALUE_BYTES_MAX, VoterId,
};
use crate::malformed::Malformed;
use crate::time::{Duration, Instant};
use crate::tuning::decider::{ACTIVE, HELD_MESSAGES_MAX, RESEND_HEARTBEATS, UNDECIDED_MAX};

/// What is done with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Take,
    Drop,
    /// No correct voter says this.
    Refuse,
}

impl Verdict {
    const fn refused_unless(is_plausible: bool) -> Self {
        if is_plausible { Self::Take } else { Self::Refuse }
    }

    const fn dropped_unless(is_useful: bool) -> Self {
        if is_useful { Self::Take } else { Self::Drop }
    }
}

/// One of several voters.
pub struct OmniPaxos {
    electorate: Electorate,
    /// The engine numbers voters from 1, in the order of their identities.
    own: u64,
    engine: Engine<Entry, Shared>,
    store: Shared,
    journal: Journal,
    /// By number, from 1; that of this voter is not used.
    links: Vec<Link>,
    activity: Activity,
    /// What this voter wants to be decided.
    proposal: Option<Entry>,
    /// Ticks until it is sent again, or the leader is asked to begin anew.
    patience: u64,
    /// The round of the last heartbeat.
    round: u32,
    /// Messages, each with the record that must be durable first.
    held: VecDeque<(u64, VoterId, Vec<u8>)>,
    /// The base of the next decision to report.
    reported: u64,
    from_engine: Vec<Message<Entry>>,
}

impl std::fmt::Debug for OmniPaxos {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("OmniPaxos");
        debug.field("own", &self.own).field("journal", &self.journal).field("links", &self.links);
        debug.field("proposal", &self.proposal).field("activity", &self.activity);
        debug.field("leader", &self.engine.get_current_leader()).finish_non_exhaustive()
    }
}

impl OmniPaxos {
    /// The decider, from the records of the voter: none when it is new.
    ///
    /// # Errors
    /// When the records are not those of this voter, or one is missing or damaged, or it votes alone.
    pub fn open<'a>(
        now: Instant,
        electorate: &Electorate,
        records: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, RestoreError> {
        let (journal, store) = Journal::restore(electorate, records)?;
        let reported = store.decided.first_kept();
        let store = Shared::new(store);
        let index = electorate.voters.binary_search(&electorate.own);
        let own = index.map_err(|_| RestoreError::OtherVoters)? as u64 + 1;
        let voters = electorate.voters.len() as u64;
        let cluster = ClusterConfig {
            configuration_id: CONFIGURATION,
            nodes: (1..=voters).collect(),
            flexible_quorum: None,
        };
        let server = ServerConfig {
            pid: own,
            election_tick_timeout: 1,
            resend_message_tick_timeout: RESEND_HEARTBEATS,
            // It grows with what is in it, which is little.
            buffer_size: voters as usize,
            batch_size: 1,
            flush_batch_tick_timeout: u64::MAX,
            leader_priority: 0,
        };
        // Refused only where there is one voter.
        let engine =
            cluster.build_for_server(server, store.clone()).map_err(|_| RestoreError::OtherVoters)?;
        let mut decider = Self {
            electorate: electorate.clone(),
            own,
            engine,
            store,
            links: vec![Link::default(); voters as usize + 1],
            activity: Activity::new(now),
            proposal: None,
            patience: 0,
            round: 0,
            held: VecDeque::new(),
            reported,
            from_engine: Vec::new(),
            journal,
        };
        // A new voter says nothing before there is something to decide; others catch up.
        decider.engine.take_outgoing_messages(&mut decider.from_engine);
        decider.from_engine.clear();
        if decider.journal.incarnation > 1 {
            decider.activity.stay(now, ACTIVE);
        }
        Ok(decider)
    }

    fn position(&self) -> Position {
        Position {
            next: self.store.lock().decided.next(),
            decided: self.engine.get_decided_idx() as u64,
            accepted: self.engine.get_accepted_idx() as u64,
        }
    }

    /// Whether another voter has said that there is more than is known here.
    fn is_behind(&self) -> bool {
        let own = self.position();
        let leader = self.engine.get_current_leader().map_or(0, |(leader, _)| leader);
        (1_u64..).zip(self.links.iter().skip(1)).any(|(voter, link)| {
            let its = link.position;
            its.next > own.next
                || voter == leader && (its.decided > own.decided || its.accepted > own.accepted)
        })
    }

    fn has_work(&self) -> bool {
        self.proposal.is_some()
            || self.engine.get_accepted_idx() > self.engine.get_decided_idx()
            || self.is_behind()
    }

    fn leads(&self) -> bool {
        self.engine.get_current_leader() == Some((self.own, true))
    }

    /// Sends the own proposal where it can be decided, if it still can.
    fn offer(&mut self, now: Instant) {
        let Some(entry) = &self.proposal else { return };
        let next = self.base();
        if entry.base < next {
            self.proposal = None;
        } else if entry.base == next {
            let entry = entry.clone();
            match self.engine.get_current_leader() {
                _ if self.leads() => self.append(entry),
                Some((leader, _)) if leader != self.own => self.send(now, leader, &Body::Propose(entry)),
                _ => {}
            }
        }
    }

    /// Appends an entry to the log that is led from here, unless there is one already for its base.
    fn append(&mut self, entry: Entry) {
        let has_one = {
            let store = self.store.lock();
            let mut undecided = store.undecided();
            entry.base != store.decided.next() || undecided.any(|other| other.base == entry.base)
        };
        let undecided = self.engine.get_accepted_idx() - self.engine.get_decided_idx();
        if !has_one && undecided < UNDECIDED_MAX {
            // Refused only while voters change, which they never do.
            let _ = self.engine.append(entry);
        }
    }

    fn send(&mut self, now: Instant, to: u64, body: &Body) {
        let active_ms = self.activity.of_others(now, self.has_work());
        let position = self.position();
        let index = to as usize;
        let (Some(link), Some(voter)) =
            (self.links.get_mut(index), self.electorate.voters.get(index.wrapping_sub(1)))
        else {
            return;
        };
        let header = link.send(self.journal.incarnation, active_ms, position);
        let store = self.store.lock();
        let Some(octets) = message::write(&header, body, &store.decided, link.position.next) else { return };
        self.held.push_back((self.journal.needed(&store), *voter, octets));
        if self.held.len() > HELD_MESSAGES_MAX {
            self.held.pop_front();
        }
    }

    /// What follows from a call of the engine: it is compacted, and its messages leave.
    fn settle(&mut self, now: Instant) {
        let before = self.base();
        if self.engine.get_decided_idx() > self.engine.get_compacted_idx() {
            // Of what is decided a snapshot can always be made.
            let _ = self.engine.snapshot(None, true);
        }
        if self.base() > before {
            self.activity.hope(now);
            self.proposal.take_if(|entry| entry.base <= before);
            self.offer(now);
        }
        let mut messages = std::mem::take(&mut self.from_engine);
        self.engine.take_outgoing_messages(&mut messages);
        for message in messages.drain(..) {
            let to = message.get_receiver();
            let body = match message {
                Message::BLE(message) => {
                    if let HeartbeatMsg::Request(request) = &message.msg {
                        self.round = request.round;
                        self.activity.ask(now, request.round);
                    }
                    Body::Heartbeat(message.msg)
                }
                Message::SequencePaxos(message) => Body::Paxos(message.msg),
            };
            if self.is_current(&body) {
                self.send(now, to, &body);
            }
        }
        self.from_engine = messages;
    }

    /// Whether a snapshot in a message is that of the log as it is now, which takes its place.
    fn is_current(&self, body: &Body) -> bool {
        let sync = match body {
            Body::Paxos(PaxosMsg::AcceptSync(accept)) => &accept.log_sync,
            Body::Paxos(PaxosMsg::Promise(Promise { log_sync: Some(sync), .. })) => sync,
            _ => return true,
        };
        sync.decided_snapshot.is_none() || sync.sync_idx == self.engine.get_compacted_idx()
    }

    /// Whether most voters follow this one, but some have promised a higher ballot that came to nothing: they
    /// hear nothing of a leader with a lower one, and nobody else sees a reason to elect another.
    fn is_outbid(&self) -> bool {
        let own = self.engine.get_promise();
        let is_recent = |link: &&Link| link.replied.is_some_and(|round| self.round.wrapping_sub(round) <= 1);
        let heeded = || self.links.iter().filter(is_recent).map(|link| link.heeded);
        let followers = 1 + heeded().filter(|ballot| *ballot == own).count();
        self.leads() && 2 * followers > self.electorate.voters.len() && heeded().any(|ballot| ballot > own)
    }

    /// Asks the leader to begin anew with this voter, as after the loss of a connection.
    fn begin_anew(&mut self) {
        if let Some((leader, true)) = self.engine.get_current_leader()
            && leader != self.own
        {
            self.engine.reconnected(leader);
        }
    }

    /// Whether the engine can take a message for what it is. What it would not look at is not judged.
    fn judge(&mut self, now: Instant, from: usize, body: &mut Body) -> Verdict {
        let accepted = self.engine.get_accepted_idx();
        let undecided = accepted - self.engine.get_decided_idx();
        let promised = self.engine.get_promise();
        let is_own = |ballot| ballot == promised && promised.pid == self.own;
        match body {
            Body::Paxos(PaxosMsg::Prepare(prepare)) => {
                Verdict::refused_unless(prepare.decided_idx <= prepare.accepted_idx)
            }
            Body::Paxos(PaxosMsg::Promise(promise)) if is_own(promise.n) => {
                if self.leads() {
                    // The log is already agreed upon; this changes nothing of it.
                    promise.log_sync = None;
                    return Verdict::refused_unless(promise.decided_idx <= promise.accepted_idx);
                }
                let (end, follows) = match &promise.log_sync {
                    Some(sync) => (sync.sync_idx + sync.suffix.len(), self.follows(sync)),
                    None => (promise.accepted_idx, promise.decided_idx <= accepted),
                };
                // It may be meant for the leader that this voter was before it started again.
                Verdict::dropped_unless(
                    promise.decided_idx <= promise.accepted_idx && promise.accepted_idx == end && follows,
                )
            }
            // It may be meant for this voter as it was before it began anew.
            Body::Paxos(PaxosMsg::AcceptSync(AcceptSync { n, decided_idx, log_sync, .. }))
                if *n == promised =>
            {
                let end = log_sync.sync_idx + log_sync.suffix.len();
                Verdict::dropped_unless(*decided_idx <= end && self.follows(log_sync))
            }
            Body::Paxos(PaxosMsg::AcceptDecide(accept)) if accept.n == promised => {
                Verdict::dropped_unless(undecided + accept.entries.len() <= UNDECIDED_MAX)
            }
            Body::Paxos(PaxosMsg::Accepted(message)) if is_own(message.n) => {
                Verdict::refused_unless(message.accepted_idx <= accepted)
            }
            Body::Heartbeat(HeartbeatMsg::Reply(reply)) => {
                let round = reply.round;
                self.activity.answer(now, round);
                if round != self.round {
                    return Verdict::Drop;
                }
                let Some(link) = self.links.get_mut(from) else { return Verdict::Drop };
                link.heeded = reply.leader;
                Verdict::dropped_unless(link.replied.replace(round) != Some(round))
            }
            _ => Verdict::Take,
        }
    }

    /// Whether a log can go on as it is said to, and nothing that is decided is taken back.
    fn follows(&self, sync: &LogSync<Entry>) -> bool {
        let is_known = match &sync.decided_snapshot {
            Some(SnapshotType::Complete(Summary::Decided(decided))) => decided.next() >= self.base(),
            Some(_) => false,
            None => sync.sync_idx <= self.engine.get_accepted_idx(),
        };
        is_known && sync.sync_idx >= self.engine.get_decided_idx()
    }

    fn handle(&mut self, now: Instant, from: u64, mut body: Body) -> Result<(), Malformed> {
        match self.judge(now, from as usize, &mut body) {
            Verdict::Take => {}
            Verdict::Drop => return Ok(()),
            Verdict::Refuse => return Err(Malformed::LengthOutOfRange),
        }
        match body {
            Body::Hello => {}
            Body::Propose(entry) => {
                if entry.base < self.base() {
                    self.send(now, from, &Body::Hello);
                } else if self.leads() {
                    self.append(entry);
                }
            }
            body => {
                if let Some(message) = body.into_message(from, self.own) {
                    self.engine.handle_incoming(message);
                }
            }
        }
        Ok(())
    }
}

impl EpochDecider for OmniPaxos {
    fn propose(&mut self, now: Instant, base: u64, value: &[u8]) -> Result<(), ProposeError> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(ProposeError::TooLong(value.len()));
        }
        if base < self.base() {
            return Err(ProposeError::Decided(base));
        }
        if self.proposal.as_ref().is_none_or(|it| it.base != base) {
            // Who proposes again and again still does what is overdue.
            self.patience = RESEND_HEARTBEATS;
        }
        self.proposal = Some(Entry { base, value: value.into() });
        self.activity.stay(now, ACTIVE);
        self.activity.hope(now);
        self.offer(now);
        self.settle(now);
        Ok(())
    }

    fn wake(&mut self, now: Instant) {
        self.activity.stay(now, ACTIVE);
    }

    fn on_message(&mut self, now: Instant, from: VoterId, octets: &[u8]) -> Result<(), Malformed> {
        let index = self.electorate.voters.binary_search(&from).map_err(|_| Malformed::NotUnderstood)? + 1;
        if index as u64 == self.own {
            return Err(Malformed::NotUnderstood);
        }
        let (header, body) = message::read(octets, &self.store.lock().decided)?;
        let incarnation = self.journal.incarnation;
        let Some(link) = self.links.get_mut(index) else { return Ok(()) };
        let order_matters = matches!(body, Body::Paxos(_));
        let Some(arrival) = link.receive(now, &header, order_matters, incarnation) else { return Ok(()) };
        let voter = index as u64;
        if arrival.is_newest {
            self.activity.stay(now, Duration::from_millis(header.active_ms.into()));
        }
        if arrival.is_news {
            self.activity.hope(now);
        }
        if !arrival.is_connected {
            if matches!(body, Body::Paxos(_) | Body::Propose(_)) {
                // It learns which incarnation this is.
                self.send(now, voter, &Body::Hello);
            }
            if matches!(body, Body::Paxos(_) | Body::Heartbeat(HeartbeatMsg::Reply(_))) {
                return Ok(());
            }
        }
        let handled = self.handle(now, voter, body);
        if arrival.is_news {
            // What was sent to another incarnation of it, or to none, is lost.
            self.offer(now);
        }
        self.settle(now);
        handled
    }

    fn tick(&mut self, now: Instant) {
        let has_work = self.has_work();
        if !self.activity.tick(now, has_work) {
            return;
        }
        self.engine.tick();
        self.patience = self.patience.saturating_sub(1);
        if self.patience == 0 {
            self.patience = RESEND_HEARTBEATS;
            self.offer(now);
            if self.is_behind() || self.engine.get_accepted_idx() > self.engine.get_decided_idx() {
                self.begin_anew();
            }
            if self.is_outbid() {
                self.engine.try_become_leader();
            }
        }
        self.settle(now);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.activity.next_deadline()
    }

    fn take_record(&mut self) -> Option<Record> {
        let mut store = self.store.lock();
        if store.has_failed { None } else { self.journal.take(&self.electorate, &mut store) }
    }

    fn persisted(&mut self, number: u64) {
        self.journal.persisted(number);
    }

    fn take_messages(&mut self, out: &mut Vec<(VoterId, Vec<u8>)>) {
        if self.has_failed() {
            self.held.clear();
        }
        while let Some((_, to, octets)) = self.held.pop_front_if(|held| held.0 <= self.journal.durable) {
            out.push((to, octets));
        }
    }

    fn poll_decided(&mut self) -> Option<Decision> {
        let store = self.store.lock();
        if store.has_failed {
            return None;
        }
        self.reported = self.reported.max(store.decided.first_kept());
        let decision = store.decided.get(self.reported)?;
        self.reported += 1;
        Some(decision)
    }

    fn base(&self) -> u64 {
        self.store.lock().decided.next()
    }

    fn leader(&self) -> Option<VoterId> {
        let (leader, _) = self.engine.get_current_leader()?;
        self.electorate.voters.get(usize::try_from(leader).ok()?.checked_sub(1)?).copied()
    }

    fn has_failed(&self) -> bool {
        self.store.lock().has_failed
    }

    fn ballots(&self) -> [(u32, u64); 2] {
        let store = self.store.lock();
        [store.promise, store.accepted].map(|ballot| (ballot.n, ballot.pid))
    }
}
