//! One participant's part in a group: its member, and its vote where it has one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::atomic::codec::{decode_decision, encode_decision};
use crate::atomic::coordinator::{Bootstrap, Coordinator, Proposal};
use crate::atomic::decider::{self, Electorate, ElectorateError, EpochDecider, RestoreError, VoterId};
use crate::atomic::member::{Config, Member, Phase, Refused};
use crate::atomic::message::Message;
use crate::atomic::storage::{Change, Image, Term};
use crate::atomic::view::{View, Voters};
use crate::atomic::{Action, Body, Destination, EntryHeader, MemberId};
use crate::time::{Duration, Instant};

/// A vote that outlives processes: one of a fixed set of voters.
#[derive(Clone, Debug)]
pub struct FixedVoter {
    /// Which of [`Voters::Fixed`] this is.
    pub id: VoterId,
    /// How the group is made if there is none.
    pub bootstrap: Bootstrap,
}

/// The term of fixed voters.
pub const FIXED: Term = (0, 0);

/// What a participant does in a group.
pub struct Group<B> {
    member: Option<Member<B>>,
    voters: Voters,
    coordinator: Option<Coordinator>,
    vote: Option<Vote>,
    actions: VecDeque<Action<B>>,
    proposals: Vec<Proposal<B>>,
    undecodable: u64,
    /// Changes of the disk so far.
    stores: u64,
    /// Whose the changes are that are not durable yet.
    stored: VecDeque<(u64, Stored)>,
    /// Terms that are over, with the records that are kept of them.
    over: Vec<(Term, std::ops::Range<u64>)>,
    /// What voters wrote before the process started again.
    records: BTreeMap<Term, BTreeMap<u64, Vec<u8>>>,
    /// What the vote here was last adapted to: nothing else of the member changes it.
    followed: Option<(Phase, MemberId, u64, u64)>,
}

/// Of whom a change of the disk is, and its number there.
enum Stored {
    Member(u64),
    Voter(Term, u64),
}

/// A voter's part in a decider.
struct Vote {
    own: VoterId,
    /// Voters of which instance, since which epoch; 0 of fixed ones.
    term: Term,
    is_durable: bool,
    /// Its records that are kept.
    records: std::ops::Range<u64>,
    decider: Box<dyn EpochDecider + Send>,
}

impl<B: Body> Group<B> {
    /// A member of a group in which the members vote.
    #[must_use]
    pub fn new(config: Config, id: MemberId, now: Instant) -> Self {
        Self::of(config.voters.clone(), Some(Member::new(config, id, now)))
    }

    /// One that has been a member before, from what is on its disk.
    #[must_use]
    pub fn restore(config: Config, id: MemberId, now: Instant, mut image: Image<B>) -> Self {
        let records = std::mem::take(&mut image.votes);
        let voters = config.voters.clone();
        let mut group = Self::of(voters, Some(Member::restore(config, id, now, image)));
        group.records = records;
        group.settle(now);
        group.follow(now);
        group.settle(now);
        group
    }

    fn of(voters: Voters, member: Option<Member<B>>) -> Self {
        Self {
            voters,
            member,
            coordinator: None,
            vote: None,
            actions: VecDeque::new(),
            proposals: Vec::new(),
            undecodable: 0,
            stores: 0,
            stored: VecDeque::new(),
            over: Vec::new(),
            records: BTreeMap::new(),
            followed: None,
        }
    }

    /// A voter of a fixed set, and a member, too, if it is given; `records` is what the voter has written, by
    /// number.
    ///
    /// # Errors
    /// The voter is none of them, or what it has written is damaged.
    pub fn with_vote(
        member: Option<Member<B>>,
        voters: &[VoterId],
        voter: &FixedVoter,
        records: &BTreeMap<u64, Vec<u8>>,
        now: Instant,
    ) -> Result<Self, VoteError> {
        let electorate = Electorate::new(voter.id, voters, 0)?;
        let decider = decider::open(now, &electorate, records.values().map(Vec::as_slice))?;
        let order = electorate.voters().iter().position(|it| *it == voter.id).unwrap_or(0);
        let set = Voters::Fixed(electorate.voters().to_vec());
        let digest = member.as_ref().map_or(0, Member::config_digest);
        let mut group = Self::of(set.clone(), member);
        group.coordinator = Some(Coordinator::new(set, order, Some(voter.bootstrap), digest));
        let records = numbers(records);
        group.vote = Some(Vote { own: voter.id, term: FIXED, is_durable: true, records, decider });
        group.settle(now);
        Ok(group)
    }

    /// Its member.
    #[must_use]
    pub const fn member(&self) -> Option<&Member<B>> {
        self.member.as_ref()
    }

    /// Writes.
    ///
    /// # Errors
    /// It was not accepted: see [`Member::write`].
    pub fn write(&mut self, now: Instant, body: B) -> Result<(), Refused> {
        let member = self.member.as_mut().ok_or(Refused::Gone)?;
        let written = member.write(now, body);
        self.settle(now);
        written
    }

    /// Everything up to a position is in `state` from now on.
    pub fn replace_history(&mut self, through: u64, state: Arc<[u8]>) {
        if let Some(member) = &mut self.member {
            member.replace_history(through, state);
        }
    }

    /// The readers here take no more: see [`Member::hold`].
    pub fn hold(&mut self) {
        if let Some(member) = &mut self.member {
            member.hold();
        }
    }

    /// See [`Member::set_slow`].
    pub const fn set_slow(&mut self, slow: Duration) {
        if let Some(member) = &mut self.member {
            member.set_slow(slow);
        }
    }

    /// Decisions of the voters that could not be read; a version that is to come may have other ones.
    #[must_use]
    pub const fn undecodable(&self) -> u64 {
        self.undecodable
    }

    /// The readers here take again: see [`Member::resume`].
    pub fn resume(&mut self, now: Instant) {
        if let Some(member) = &mut self.member {
            member.resume(now);
        }
        self.settle(now);
    }

    /// Leaves.
    pub fn leave(&mut self, now: Instant) {
        if let Some(member) = &mut self.member {
            member.leave(now);
        }
        self.settle(now);
    }

    /// Takes an entry of another member's lane.
    pub fn on_entry(&mut self, now: Instant, from: MemberId, header: EntryHeader, body: B) {
        if let Some(member) = &mut self.member {
            member.on_entry(now, from, header, body);
        }
        self.settle(now);
    }

    /// All changes of the disk up to this one are durable.
    pub fn on_stored(&mut self, now: Instant, number: u64) {
        let mut of_member = None;
        while let Some((at, _)) = self.stored.front()
            && *at <= number
        {
            match self.stored.pop_front() {
                Some((_, Stored::Member(number))) => of_member = Some(number),
                Some((_, Stored::Voter(term, number))) => {
                    if let Some(vote) = self.vote.as_mut().filter(|vote| vote.term == term) {
                        vote.decider.persisted(number);
                    }
                }
                None => {}
            }
        }
        if let (Some(number), Some(member)) = (of_member, &mut self.member) {
            member.on_stored(now, number);
        }
        self.settle(now);
    }

    /// Nothing can be written to the disk any more: the member leaves, and the voter says nothing.
    pub fn lose_disk(&mut self, now: Instant) {
        if let Some(member) = self.member.as_mut().filter(|member| member.has_disk()) {
            member.lose_disk(now);
        }
        self.settle(now);
    }

    /// Takes a message of another participant.
    pub fn on_message(&mut self, now: Instant, message: Message<B>) {
        if let Message::Decider { instance, since, from, octets } = &message {
            if let Some(vote) = &mut self.vote
                && vote.term == (*instance, *since)
            {
                // What is no message of the decider changes nothing, and its sender tries again.
                let _ = vote.decider.on_message(now, *from, octets);
            }
        } else {
            self.tell_coordinator(now, &message);
            if let Some(member) = &mut self.member {
                member.on_message(now, message);
            }
        }
        self.settle(now);
    }

    fn tell_coordinator(&mut self, now: Instant, message: &Message<B>) {
        let Some(coordinator) = &mut self.coordinator else { return };
        // Voters that agree on who leads them before the members stop decide at once when they have.
        if let (Message::Join(join), Some(vote)) = (message, &mut self.vote)
            && join.ready
        {
            vote.decider.wake(now);
        }
        if let Message::Report { report, .. } = message
            && coordinator.view().is_none_or(|view| view.epoch < report.epoch)
            && let Some(vote) = &mut self.vote
        {
            vote.decider.wake(now);
        }
        coordinator.on_message(now, message, &mut self.proposals);
    }

    /// The driver has handed over what was at hand.
    pub fn flush(&mut self, now: Instant) {
        if let Some(member) = &mut self.member {
            member.flush(now);
        }
        self.settle(now);
    }

    /// Others are to tell at once what they have: see [`Member::hasten`].
    pub fn hasten(&mut self, now: Instant) {
        if let Some(member) = &mut self.member {
            member.hasten(now);
        }
        self.settle(now);
    }

    /// When [`Self::tick`] is to be called next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        Instant::earliest([
            self.member.as_ref().and_then(Member::next_deadline),
            self.coordinator.as_ref().and_then(Coordinator::next_deadline),
            self.vote.as_ref().and_then(|vote| vote.decider.next_deadline()),
        ])
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Instant) {
        if let Some(member) = &mut self.member {
            member.tick(now);
        }
        self.settle(now);
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.tick(now, &mut self.proposals);
        }
        if let Some(vote) = &mut self.vote {
            vote.decider.tick(now);
        }
        self.settle(now);
    }

    /// Takes the next thing to be done.
    pub fn poll(&mut self) -> Option<Action<B>> {
        self.actions.pop_front()
    }

    /// Lets the parts tell one another what they have to say, until they have said it.
    fn settle(&mut self, now: Instant) {
        loop {
            while self.take_actions(now) {}
            if let Some(proposal) = (!self.proposals.is_empty()).then(|| self.proposals.remove(0)) {
                self.carry_out(now, proposal);
            } else if !self.hear_decisions() {
                break;
            }
        }
        // After the view with which others vote: before it is durable its term is not over for a restart.
        for (term, numbers) in std::mem::take(&mut self.over) {
            self.store(Stored::Voter(term, 0), Change::EndOfTerm(term, numbers));
        }
        self.send_votes();
    }

    /// Takes over what the member asks for; whether there was anything.
    fn take_actions(&mut self, now: Instant) -> bool {
        let Some(member) = &mut self.member else { return false };
        let mut actions = std::mem::take(&mut self.actions);
        let first = actions.len();
        member.move_actions(&mut actions);
        let is_any = actions.len() > first;
        for action in actions.range_mut(first..) {
            match action {
                Action::Send(Destination::Group, message) => self.tell_coordinator(now, message),
                Action::Store(number, _) => {
                    self.stores += 1;
                    self.stored.push_back((self.stores, Stored::Member(*number)));
                    *number = self.stores;
                }
                _ => {}
            }
            self.follow(now);
        }
        self.actions = actions;
        is_any
    }

    fn carry_out(&mut self, now: Instant, proposal: Proposal<B>) {
        match proposal {
            Proposal::Send(to, message) => {
                if let Some(member) = &mut self.member
                    && (to == Destination::Group || to == Destination::Member(member.id()))
                {
                    member.on_message(now, message.clone());
                }
                self.actions.push_back(Action::Send(to, message));
            }
            Proposal::Propose(decision) => {
                let Some(vote) = &mut self.vote else { return };
                let mut octets = Vec::new();
                encode_decision(&decision, &mut octets);
                // An epoch whose end nobody could read would never end.
                if decode_decision(&octets).is_err() {
                    self.undecodable += 1;
                    return;
                }
                // Of what is decided already, the decision follows.
                if vote.decider.propose(now, decision.base, &octets).is_err() {
                    vote.decider.wake(now);
                }
            }
        }
    }

    /// Whether there was one.
    fn hear_decisions(&mut self) -> bool {
        self.store_records();
        let Some(vote) = &mut self.vote else { return false };
        let Some(decided) = vote.decider.poll_decided() else { return false };
        match decode_decision(&decided.value) {
            Ok(decision) if decision.base == decided.base => {
                if let Some(coordinator) = &mut self.coordinator {
                    coordinator.on_decided(&Arc::new(decision), &mut self.proposals);
                }
            }
            _ => self.undecodable += 1,
        }
        true
    }

    fn store_records(&mut self) {
        while let Some(vote) = &mut self.vote
            && let Some(decider::Record { number, whole, octets }) = vote.decider.take_record()
        {
            if !vote.is_durable {
                vote.decider.persisted(number);
                continue;
            }
            let kept = &mut vote.records;
            if !kept.is_empty() && kept.end != number {
                // What it was restored from was not what it wrote: it votes no more.
                self.undecodable += 1;
                self.vote = None;
                return;
            }
            let replaces = (whole && !kept.is_empty()).then_some(kept.start);
            *kept = if whole || kept.is_empty() { number } else { kept.start }..number + 1;
            let term = vote.term;
            self.store(Stored::Voter(term, number), Change::Record { term, number, replaces, octets });
        }
    }

    fn store(&mut self, of: Stored, change: Change<B>) {
        self.stores += 1;
        self.stored.push_back((self.stores, of));
        self.actions.push_back(Action::Store(self.stores, change));
    }

    fn send_votes(&mut self) {
        let Some(vote) = &mut self.vote else { return };
        let mut messages = Vec::new();
        vote.decider.take_messages(&mut messages);
        let (instance, since) = vote.term;
        for (to, octets) in messages {
            let message = Message::Decider { instance, since, from: vote.own, octets };
            self.actions.push_back(Action::Send(Destination::Voter(to), message));
        }
    }

    /// The voter here votes no more, but for a term that it knows already.
    fn end_term(&mut self) {
        let vote = self.vote.take().filter(|vote| vote.is_durable && !vote.records.is_empty());
        // Who has left may come back as the one that it was.
        if self.member.as_ref().is_some_and(|member| member.phase() != Phase::Gone) {
            self.over.extend(vote.map(|vote| (vote.term, vote.records)));
        }
    }

    /// Where the members vote, the view says who does.
    fn follow(&mut self, now: Instant) {
        let (Voters::Members, Some(member)) = (&self.voters, &self.member) else { return };
        let (instance, epoch) = member.view().map_or((0, 0), |view| (view.instance, view.epoch));
        let state = Some((member.phase(), member.id(), instance, epoch));
        if self.followed == state {
            return;
        }
        self.followed = state;
        let view = member.view().filter(|_| matches!(member.phase(), Phase::Active | Phase::Frozen));
        let own = member.voter();
        let Some(view) = view.filter(|view| own.is_some_and(|own| view.voters.contains(&own))) else {
            self.coordinator = None;
            self.end_term();
            return;
        };
        let Some(own) = own else { return };
        let term = (view.instance, view.voters_since);
        // Who decided on the view itself knows it already, and votes in another term all the same.
        let votes = self.vote.as_ref().is_some_and(|vote| vote.term == term);
        if votes && self.coordinator.as_ref().and_then(Coordinator::view).is_some_and(|it| **it == *view) {
            return;
        }
        let view: View = view.clone();
        let order = view.voters.iter().position(|it| *it == own).unwrap_or(0);
        let digest = member.config_digest();
        // Without a disk who votes here never comes back under this identity: nothing need be durable.
        let is_durable = member.has_disk();
        if self.vote.as_ref().is_none_or(|vote| vote.term != term) {
            self.end_term();
            let records = self.records.remove(&term).unwrap_or_default();
            let old = self.records.extract_if(.., |(_, since), _| *since < term.1);
            self.over.extend(old.map(|(term, records)| (term, numbers(&records))));
            let electorate = Electorate::new(own, &view.voters, view.voters_since);
            let known = || records.values().map(Vec::as_slice);
            let decider = electorate.ok().and_then(|it| decider::open(now, &it, known()).ok());
            // Who cannot read its votes does not vote.
            self.undecodable += u64::from(decider.is_none());
            let records = numbers(&records);
            self.vote = decider.map(|decider| Vote { own, term, is_durable, records, decider });
            self.coordinator = None;
        }
        let coordinator =
            self.coordinator.get_or_insert_with(|| Coordinator::new(Voters::Members, order, None, digest));
        coordinator.set_order(order);
        coordinator.adopt(&view);
    }
}

/// From the first to the last.
fn numbers(records: &BTreeMap<u64, Vec<u8>>) -> std::ops::Range<u64> {
    let (first, last) = (records.first_key_value(), records.last_key_value());
    first.zip(last).map_or(0..0, |((first, _), (last, _))| *first..*last + 1)
}

/// Why a voter cannot vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VoteError {
    /// Its set of voters is none.
    #[error(transparent)]
    Electorate(#[from] ElectorateError),
    /// What it has written cannot be read.
    #[error(transparent)]
    Restore(#[from] RestoreError),
}
