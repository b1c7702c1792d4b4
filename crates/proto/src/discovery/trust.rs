//! Whom to believe (R1, R8): challenges and their answers, and probes of participants of whom something else
//! is claimed.
//!
//! A participant is matched once it has answered a challenge at an address that it announced. From then on
//! control traffic is taken only from where it has answered, or which it announced there. A claim that it is
//! elsewhere is believed when the new address has proven itself, and either both came from where it is known
//! to speak from, or the old address does not answer. If that address claims and proves it again within the
//! lease, the participant is there: it stood still, and somebody else claimed to be it.
//!
//! A participant of another stack that claims to be elsewhere knows us, and cannot repeat the usual numbers.
//! Its ACKNACK says so, and it is asked by numbers above our last change, if all that was written to it
//! before is acknowledged: it then misses nothing, and neither does the participant itself, should somebody
//! else have claimed it.
//!
//! The old address counts as silent when it leaves four questions in a second unanswered. Only where a change
//! of SEDP was on its way to a participant as it moved does its lease decide. Where an impostor had the place
//! of a participant, participants of Plainsong tell each other again what they have; user data that the
//! impostor acknowledged counts as lost at the reader.
//!
//! Others may go on to send where this host is no more. When its addresses have changed they are asked, and
//! who does not answer (Cyclone DDS and Fast DDS keep the first address) is told that we leave, and both
//! begin anew: what is written meanwhile is lost to volatile readers.

use super::channel::Channel;
use super::database::Remote;
use super::forms::Form;
use super::participant::Participant;
use super::path::Host;
use super::proof::{self, Answer, Challenged, Numbers, Range};
use super::spdp::TWO_HEARTBEATS_BYTES;
use crate::backoff::Backoff;
use crate::guid::GuidPrefix;
use crate::locator::Locator;
use crate::outbox::{Event, Outbox};
use crate::stats::DropReason;
use crate::time::{Duration, Instant, Now};
use crate::tuning::discovery::{
    ANNOUNCEMENT_BYTES_MAX, CHALLENGE_PAUSE, CHALLENGED_AT_ONCE, CHALLENGED_WITHIN, CHALLENGES_UNHEARD,
    INTRODUCTION_PAUSE, PEER_PROBE_PAUSE, PEER_PROBES, RECENTLY_HEARD, UNANSWERED_AFTER,
};
use crate::vendor;
use crate::wire::{AckNack, EndpointSubmessage, Heartbeat, MessageContext};

/// Message header, INFO_DST and two HEARTBEATs.
const SHORT_BYTES: usize = 20 + 16 + TWO_HEARTBEATS_BYTES;
/// An ACKNACK, the shortest of them.
const SUBMESSAGE_BYTES: usize = 28;
/// Our departure, as it goes to one participant.
const DEPARTURE_BYTES: usize = 20 + 16 + 12 + 24 + 32 + 32;

/// What goes with a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// Our announcement: without it, it means nothing to who does not know us.
    Whole,
    /// Nothing: who just spoke to us knows us.
    Short,
    /// Our departure instead: who expects more than we could ask for forgets what it knew of us, as we forgot
    /// what we knew of it. Our next announcement brings us together.
    Anew,
}

impl Remote {
    /// Who has to prove its address: the participant itself, or the same at another address.
    fn stranger(&mut self, host: &Host) -> Option<&mut Self> {
        let stranger = if self.candidate.is_some() { self.candidate.as_deref_mut() } else { Some(self) };
        stranger.filter(|stranger| stranger.proven_meta(host).is_none())
    }

    /// The numbers of a challenge. Of another stack it may be that all are used up; Plainsong answers
    /// whatever it expects.
    fn numbers(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        to: &Locator,
        range: Range,
        numbers: &mut Numbers,
    ) -> Option<Challenged> {
        let of = (range, Channel::challenged(self.data.builtin_endpoints));
        let challenged = self.proof.challenge(now, prefix, to, of, numbers);
        let is_alike = self.data.vendor == vendor::PLAINSONG;
        challenged.or_else(|| self.proof.challenge(now, prefix, to, of, numbers).filter(|_| is_alike))
    }

    /// Whether somebody at `from` may be who is claimed to be elsewhere.
    fn is_claimed_at(&self, from: &Locator) -> bool {
        self.candidate.as_ref().is_some_and(|candidate| {
            let mut announced = candidate.data.meta_unicast.iter();
            candidate.from.ip() == from.ip() || announced.any(|locator| locator.ip() == from.ip())
        })
    }

    /// Something came from where it has answered a challenge: what else is claimed of it is not so. That it
    /// still sends to where this host was only an answer disproves, which goes to us alone.
    pub(super) fn note_certainty(&mut self, now: Instant, from: &Locator, answers: bool, host: &Host) {
        if self.proof.is_source(from, host) {
            self.last_certain = now;
            if !answers && self.looks_elsewhere(host) {
                return;
            }
            if answers && self.looks_elsewhere(host) {
                self.met_at = host.addresses().to_vec();
            }
            if self.peer_probes.take().is_some()
                && let Some(candidate) = self.candidate.take()
            {
                self.proof.follow(&candidate.proof);
            }
        }
    }
}

impl Participant {
    /// Whether a submessage of a built-in endpoint is for our built-in endpoints: it is what it claims to be,
    /// and neither a challenge nor the answer to one.
    pub(super) fn believe(
        &mut self,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    ) -> Result<bool, DropReason> {
        match submessage {
            EndpointSubmessage::AckNack(acknack)
                if proof::is_answer(acknack) || self.builtin.is_beyond(acknack) =>
            {
                return self.on_answer(now, context, acknack, out);
            }
            EndpointSubmessage::Heartbeat(heartbeat)
                if context.vendor == vendor::PLAINSONG && proof::is_challenge(heartbeat) =>
            {
                self.answer_challenge(now, context, heartbeat, out);
                return Ok(false);
            }
            _ => {}
        }
        let Some(remote) = self.database.get_mut(context.source) else { return Err(DropReason::NotMatched) };
        if remote.matched.is_none() {
            let knows_more = matches!(submessage, EndpointSubmessage::AckNack(acknack)
                if acknack.missing.base() > proof::NUMBERS_AFTER);
            self.challenge_again(now, context, knows_more, out);
            return Err(DropReason::NotMatched);
        }
        if !remote.is_at(&context.from, &self.host) {
            let has_all =
                matches!(submessage, EndpointSubmessage::AckNack(acknack) if self.builtin.has_all(acknack));
            self.look_for_source(now, context, has_all, out);
            return Err(DropReason::SpoofSuspected);
        }
        remote.last_heard = now.mono;
        let answers = matches!(submessage, EndpointSubmessage::AckNack(_));
        remote.note_certainty(now.mono, &context.from, answers, &self.host);
        Ok(true)
    }

    /// An ACKNACK that names the number of a challenge.
    fn on_answer(
        &mut self,
        now: Now,
        context: &MessageContext,
        acknack: &AckNack,
        out: &mut Outbox,
    ) -> Result<bool, DropReason> {
        let (prefix, from) = (context.source, &context.from);
        let answer = (acknack.writer, acknack.missing.base());
        let Some(remote) = self.database.get_mut(prefix) else { return Err(DropReason::NotMatched) };
        let candidate = remote.candidate.as_mut();
        let claimed =
            candidate.map_or(Answer::Wrong, |it| it.proof.answered(now.mono, answer, from, &self.host));
        let worth = match claimed {
            Answer::Wrong => remote.proof.answered(now.mono, answer, from, &self.host),
            _ => claimed,
        };
        if claimed == Answer::Wrong && remote.matched.is_some() && remote.is_at(from, &self.host) {
            remote.last_heard = now.mono;
            remote.note_certainty(now.mono, from, true, &self.host);
        } else if matches!(worth, Answer::Wrong | Answer::Again)
            && remote.matched.is_some()
            && self.builtin.is_beyond(acknack)
        {
            self.look_for_source(now, context, true, out);
            return Err(DropReason::SpoofSuspected);
        }
        match worth {
            Answer::Half | Answer::Again => self.challenge_rest(now, prefix, out),
            Answer::Proof if claimed == Answer::Proof => self.on_claim_proven(now, context, out),
            Answer::Proof => {
                if let Some(remote) = self.database.get_mut(prefix) {
                    remote.note_certainty(now.mono, from, true, &self.host);
                }
                self.on_proof(now, prefix, out);
            }
            Answer::Wrong if self.database.get(prefix).is_some_and(|it| it.matched.is_none()) => {
                self.challenge_again(now, context, true, out);
                return Err(DropReason::NotMatched);
            }
            // It still is where a challenge left it: the first HEARTBEAT, or the next change, leads it on.
            Answer::Wrong => {}
        }
        Ok(false)
    }

    /// A matched participant has proven the address that is claimed of it. It moves there when claim and
    /// answer came from where it is known to speak from, or where it was known to before it stood still;
    /// otherwise it is asked at the address it has.
    fn on_claim_proven(&mut self, now: Now, context: &MessageContext, out: &mut Outbox) {
        let prefix = context.source;
        let Self { database, host, .. } = self;
        let Some(remote) = database.get_mut(prefix) else { return };
        let is_proven = |candidate: &mut Box<Remote>| {
            candidate.choose_meta(host);
            candidate.proven_meta(host).is_some()
        };
        let Some(candidate) = remote.candidate.take_if(is_proven) else { return };
        if remote.is_back(&candidate, &context.from, now.mono, host) {
            remote.come_back(*candidate, now.mono);
            // Another product's endpoints may not tell again what they have told.
            if remote.data.vendor == vendor::PLAINSONG {
                self.begin_anew(now, prefix, out);
            }
            return self.on_participant_changed(now, prefix, out);
        }
        if [&candidate.from, &context.from].into_iter().all(|from| remote.proof.is_source(from, host)) {
            remote.move_to(*candidate, now.mono);
            return self.on_participant_changed(now, prefix, out);
        }
        remote.candidate = Some(candidate);
        self.probe_peer(now, prefix, out);
    }

    /// A participant has proven an address, again or for the first time.
    pub(super) fn on_proof(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) {
        let Some(remote) = self.database.get_mut(prefix) else { return };
        remote.choose_meta(&self.host);
        (remote.last_heard, remote.last_certain) = (now.mono, now.mono);
        let first = remote.matched.is_none();
        if first {
            remote.met_at = self.host.addresses().to_vec();
        }
        remote.challenged = None;
        if remote.will_challenge() && now.mono.since(remote.discovered) < CHALLENGED_WITHIN {
            let at = remote.discovered.after(CHALLENGED_WITHIN);
            return self.database.review(prefix, at);
        }
        if remote.proven_meta(&self.host).is_some() {
            self.connect(now, prefix, out);
            if first {
                self.database.review(prefix, None);
                out.events.push(Event::ParticipantChanged { participant: prefix.participant(), alive: true });
                self.probe_predecessors(now, prefix, out);
                self.adopt_waiting(now, out);
            }
        }
    }

    /// One of the answers that make a proof came. The other is on its way, unless the participant has one
    /// reader for both.
    fn challenge_rest(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) {
        let Some(remote) = self.database.get_mut(prefix) else { return };
        let [one, other] = Channel::challenged(remote.data.builtin_endpoints);
        remote.budget.heard(now.mono, SUBMESSAGE_BYTES);
        if !(one && other) {
            remote.challenged = None;
            self.challenge(now, prefix, Challenge::Short, out);
        }
    }

    /// Answers a challenge of a Plainsong participant, known or not, to where it came from: with less than it
    /// had. That may lead to nobody (a NAT): if another address of it is proven, it goes there as well.
    fn answer_challenge(
        &mut self,
        now: Now,
        context: &MessageContext,
        heartbeat: &Heartbeat,
        out: &mut Outbox,
    ) {
        let port_min = self.config.limits.port_min;
        let may_answer = context.from.udp_port().is_some_and(|port| port >= port_min);
        if context.destination == self.config.prefix && may_answer {
            let proven = self.database.get(context.source).and_then(|remote| remote.proven_meta(&self.host));
            let other = proven.map(|path| path.locator).filter(|to| to.ip() != context.from.ip());
            let to: Vec<_> = [context.from].into_iter().chain(other).collect();
            let mut message = out.message(self.config.prefix, &to, ANNOUNCEMENT_BYTES_MAX);
            message.info_destination(context.source);
            let fits = message.acknack(&proof::answer_to(heartbeat));
            debug_assert!(fits, "the message is empty");
            message.finish();
            self.note_challenged(now, context.source, heartbeat, out);
        }
    }

    /// A participant has the last of the answers that it wants of us: what we tell it from now on it hears.
    fn note_challenged(&mut self, now: Now, prefix: GuidPrefix, heartbeat: &Heartbeat, out: &mut Outbox) {
        if Some(heartbeat.writer) != proof::last_writer() {
            return;
        }
        let Some(remote) = self.database.get_mut(prefix) else { return };
        let is_first = !std::mem::replace(&mut remote.is_answered, true);
        if remote.is_heard_by_lead {
            if is_first && self.is_present() {
                self.connect(now, prefix, out);
            }
        } else if remote.matched.is_none() && remote.proven_meta(&self.host).is_some() {
            self.on_proof(now, prefix, out);
        }
    }

    /// An unproven participant spoke to us: it may be able to answer now what it could not before.
    fn challenge_again(&mut self, now: Now, context: &MessageContext, knows_more: bool, out: &mut Outbox) {
        let Some(remote) = self.database.get_mut(context.source) else { return };
        remote.budget.heard(now.mono, SUBMESSAGE_BYTES);
        // A Plainsong participant answers whatever it knows.
        remote.knows_more |=
            knows_more && remote.data.vendor != vendor::PLAINSONG && remote.from.ip() == context.from.ip();
        self.challenge(now, context.source, Challenge::Short, out);
    }

    /// Challenges a participant that has not proven its address, or the new one that is claimed of it, as its
    /// budget allows.
    pub(super) fn challenge(&mut self, now: Now, prefix: GuidPrefix, with: Challenge, out: &mut Outbox) {
        let pause = self.challenge_pause();
        let Self { database, numbers, host, builtin, .. } = self;
        let Some(remote) = database.get_mut(prefix) else { return };
        let is_claim = remote.matched.is_some();
        let Some(stranger) = remote.stranger(host) else { return };
        let Some(path) = stranger.meta else { return };
        // A participant of ours answers whatever it knows: all that is wanted is time.
        let is_same_vendor = stranger.data.vendor == vendor::PLAINSONG;
        let lasts = |since: Option<Instant>, time| {
            is_same_vendor && since.and_then(|at| at.after(time)).is_some_and(|until| until > now.mono)
        };
        if lasts(stranger.challenged, pause) {
            return self.review_later(now, prefix, pause);
        }
        let with = if lasts(stranger.introduced, INTRODUCTION_PAUSE) { Challenge::Short } else { with };
        let is_asked_above = is_claim && stranger.knows_more && builtin.is_in_step(prefix);
        let range = if is_asked_above { Range::Above(builtin.last_numbers()) } else { Range::Below };
        let challenged = stranger.numbers(now.mono, prefix, &path.locator, range, numbers);
        // Who is claimed to be there may be known well elsewhere, and is to lose nothing.
        if is_claim && challenged.is_none() {
            return self.review_later(now, prefix, pause);
        }
        let knows_more = std::mem::take(&mut stranger.knows_more) || challenged.is_none();
        let with = if knows_more && !is_claim { Challenge::Anew } else { with };
        let bytes = match with {
            Challenge::Whole => self.announcer.datagram_bytes(Form::of(&stranger.data)),
            Challenge::Short => SHORT_BYTES,
            Challenge::Anew => DEPARTURE_BYTES,
        };
        if !stranger.budget.spend(now.mono, bytes) {
            stranger.knows_more = knows_more;
            self.drops.count(DropReason::AmplificationBudget);
            return self.review_later(now, prefix, pause);
        }
        stranger.challenged = Some(now.mono);
        if with == Challenge::Whole {
            stranger.introduced = stranger.challenged;
        }
        let Some(challenged) = challenged.filter(|_| with != Challenge::Anew) else {
            return self.have_us_forgotten(now, prefix, path.locator, out);
        };
        let heartbeats = builtin.challenges(&challenged);
        self.send_heartbeats(now, prefix, path.locator, &heartbeats, with == Challenge::Whole, out);
        self.review_later(now, prefix, pause);
    }

    /// One participant forgets what it knew of us.
    fn have_us_forgotten(&mut self, now: Now, prefix: GuidPrefix, at: Locator, out: &mut Outbox) {
        self.announcer.renumber();
        self.compose_departure(now, prefix, &[at], out);
        // What we announce next is news to it.
        self.announcer.renumber();
    }

    /// HEARTBEATs that have to be answered, to one participant alone.
    fn send_heartbeats(
        &self,
        now: Now,
        to: GuidPrefix,
        locator: Locator,
        heartbeats: &[Heartbeat],
        introduces: bool,
        out: &mut Outbox,
    ) {
        let mut message = if introduces {
            self.compose_announcement(now, Some(to), &[locator], out)
        } else {
            let mut message = out.message(self.config.prefix, &[locator], ANNOUNCEMENT_BYTES_MAX);
            message.info_destination(to);
            message
        };
        for heartbeat in heartbeats {
            let fits = message.heartbeat(heartbeat);
            debug_assert!(fits, "announcements leave room for it");
        }
    }

    fn challenge_pause(&self) -> Duration {
        Duration(CHALLENGE_PAUSE.0.saturating_mul((1 + self.database.unproven() / CHALLENGED_AT_ONCE) as i64))
    }

    /// Challenges again when the budget allows it, a few times without hearing anything new.
    fn review_later(&mut self, now: Now, prefix: GuidPrefix, pause: Duration) {
        let Some(remote) = self.database.get_mut(prefix).filter(|remote| remote.peer_probes.is_none()) else {
            return;
        };
        let notified_at = remote
            .discovered
            .after(UNANSWERED_AFTER)
            .filter(|_| remote.matched.is_none() && !remote.is_reported);
        let Some(stranger) = remote.stranger(&self.host) else { return };
        let again =
            stranger.budget.next(SHORT_BYTES).filter(|_| stranger.budget.unheard() < CHALLENGES_UNHEARD);
        let pause = Backoff::doubling(pause, CHALLENGES_UNHEARD).pause(stranger.budget.unheard());
        let soonest = now.mono.after(pause).unwrap_or(now.mono);
        let at = again.map(|at| at.max(soonest)).into_iter().chain(notified_at).min();
        self.database.review(prefix, at);
    }

    /// Another participant may be on its way whose proof holds for this one, which cannot answer: it is
    /// reported if none comes.
    pub(super) fn await_other(&mut self, now: Now, prefix: GuidPrefix) {
        let Some(remote) = self.database.get(prefix) else { return };
        let until = remote.discovered.after(UNANSWERED_AFTER).filter(|at| *at > now.mono);
        if until.is_some() {
            self.database.review(prefix, until);
        }
    }

    /// Looks at a participant that has not answered yet.
    pub(super) fn review(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) {
        let Some(remote) = self.database.get_mut(prefix) else { return };
        if remote.peer_probes.is_some() {
            return self.send_peer_probe(now, prefix, out);
        }
        if remote.is_heard_by_lead {
            return self.connect(now, prefix, out);
        }
        let is_unanswered = remote.matched.is_none() && now.mono.since(remote.discovered) >= UNANSWERED_AFTER;
        if is_unanswered && !remote.is_reported {
            remote.is_reported = true;
            // It may know us, and answer to where we were.
            remote.knows_more |= remote.data.vendor != vendor::PLAINSONG;
            out.events.push(Event::ParticipantUnanswering { participant: prefix.participant() });
        }
        if self.adopt_proof(now, prefix, out) {
            return;
        }
        let Some(remote) = self.database.get_mut(prefix) else { return };
        if remote.matched.is_none() && remote.proven_meta(&self.host).is_some() {
            return self.on_proof(now, prefix, out);
        }
        if remote.matched.is_some() && remote.knows_more {
            self.challenge_matched(now, prefix, out);
        }
        let Some(remote) = self.database.get_mut(prefix) else { return };
        let is_due = remote.answer_due.take().is_some();
        let with = if is_due { Challenge::Whole } else { Challenge::Short };
        let stranger = remote.stranger(&self.host);
        if stranger.is_some_and(|stranger| stranger.budget.unheard() < CHALLENGES_UNHEARD) {
            self.challenge(now, prefix, with, out);
        }
    }

    /// Something came in the name of a matched participant from where it was never heard: its next answer
    /// tells whether it comes from there now (a NAT forgot it). One of another stack tells by an ACKNACK that
    /// it `has_all`.
    pub(super) fn look_for_source(
        &mut self,
        now: Now,
        context: &MessageContext,
        has_all: bool,
        out: &mut Outbox,
    ) {
        let prefix = context.source;
        let Some(remote) = self.database.get_mut(prefix) else { return };
        // What was not acknowledged by now it would pass over.
        let knows_more =
            has_all && remote.data.vendor != vendor::PLAINSONG && self.builtin.is_in_step(prefix);
        if remote.data.vendor != vendor::PLAINSONG && remote.is_claimed_at(&context.from) {
            if let Some(candidate) = remote.candidate.as_mut().filter(|_| knows_more) {
                candidate.knows_more = true;
                candidate.budget.heard(now.mono, SUBMESSAGE_BYTES);
                self.challenge(now, prefix, Challenge::Short, out);
            }
            return;
        }
        remote.knows_more |= knows_more;
        self.challenge_matched(now, prefix, out);
    }

    /// Challenges a matched participant at its address.
    fn challenge_matched(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) {
        let Self { database, numbers, builtin, .. } = self;
        let Some(remote) = database.get_mut(prefix) else { return };
        let Some(path) = remote.matched else { return };
        if !remote.budget.may_probe(now.mono) {
            // It has told since what it can answer.
            if remote.knows_more && remote.peer_probes.is_none() {
                let at = remote.budget.may_probe_at();
                database.review(prefix, Some(at));
            }
            return;
        }
        let knows_more = std::mem::take(&mut remote.knows_more) && builtin.is_in_step(prefix);
        let range = if knows_more { Range::Above(builtin.last_numbers()) } else { Range::Below };
        let Some(challenged) = remote.numbers(now.mono, prefix, &path.locator, range, numbers) else {
            return;
        };
        let heartbeats = builtin.challenges(&challenged);
        self.send_heartbeats(now, prefix, path.locator, &heartbeats, false, out);
    }

    /// Something else is claimed of a matched participant: it is asked at its address. Silent there, it is no
    /// more, or where it claims to be now.
    pub(super) fn probe_peer(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) {
        let Some(remote) = self.database.get_mut(prefix) else { return };
        let can_answer =
            remote.data.vendor == vendor::PLAINSONG || Channel::answers(remote.data.builtin_endpoints);
        if remote.matched.is_some() && remote.peer_probes.is_none() && can_answer {
            remote.peer_probes = Some(0);
            self.send_peer_probe(now, prefix, out);
        }
    }

    /// All places are taken: those that say nothing, whatever their leases, are there or give way.
    pub(super) fn probe_the_silent(&mut self, now: Now, out: &mut Outbox) {
        for prefix in self.database.silent(now.mono) {
            self.probe_peer(now, prefix, out);
        }
    }

    fn send_peer_probe(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) {
        let Some(remote) = self.database.get_mut(prefix) else { return };
        let (Some(sent), Some(path)) = (&mut remote.peer_probes, remote.matched) else { return };
        if *sent < PEER_PROBES {
            *sent += 1;
            self.send_probe(now, prefix, out);
            return self.database.review(prefix, now.mono.after(PEER_PROBE_PAUSE));
        }
        remote.peer_probes = None;
        let is_proven = |candidate: &mut Box<Remote>| candidate.proven_meta(&self.host).is_some();
        match remote.candidate.take_if(is_proven) {
            Some(candidate) => {
                remote.leave_to(*candidate, now.mono);
                self.on_participant_changed(now, prefix, out);
            }
            None => {
                if remote.looks_elsewhere(&self.host) {
                    self.have_us_forgotten(now, prefix, path.locator, out);
                }
                self.forget(now, prefix, out);
            }
        }
    }

    /// Asks a participant, where it is matched, whether it is there.
    pub(super) fn send_probe(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) {
        let Some(remote) = self.database.get_mut(prefix) else { return };
        let Some(path) = remote.matched else { return };
        let heartbeats = if remote.lead().is_some() {
            let challenged = remote.numbers(now.mono, prefix, &path.locator, Range::Below, &mut self.numbers);
            challenged.map(|challenged| self.builtin.challenges(&challenged)).unwrap_or_default()
        } else {
            let channel = Channel::answered_by(remote.data.builtin_endpoints);
            self.builtin.heartbeat(channel).into_iter().collect()
        };
        self.send_heartbeats(now, prefix, path.locator, &heartbeats, false, out);
    }

    /// This host has other addresses: who was told of those before may go on to send there. It is asked, and
    /// if no answer arrives here, both begin anew.
    pub(super) fn probe_moved_peers(&mut self, now: Now, out: &mut Outbox) {
        if self.host.is_reachable() {
            let elsewhere =
                self.database.iter().filter(|(_, it)| it.matched.is_some() && it.looks_elsewhere(&self.host));
            let elsewhere: Vec<_> = elsewhere.map(|(prefix, _)| prefix).collect();
            elsewhere.into_iter().for_each(|prefix| self.probe_peer(now, prefix, out));
        }
    }

    /// Who has a socket now that was another participant's is of the same process, or the other is no more.
    /// Of Plainsong participants the prefix tells which; others are asked, unless they just spoke.
    fn probe_predecessors(&mut self, now: Now, newcomer: GuidPrefix, out: &mut Outbox) {
        let Some(new) = self.database.get(newcomer) else { return };
        let (is_same_vendor, path) = (new.data.vendor == vendor::PLAINSONG, new.matched);
        let there = |it: &Remote| {
            it.heard_by_wire().zip(path).is_some_and(|(one, other)| one.locator == other.locator)
        };
        let others = self.database.iter().filter(|(prefix, it)| *prefix != newcomer && there(it));
        let others: Vec<_> = others
            .map(|(prefix, it)| {
                let are_same_vendor = is_same_vendor && it.data.vendor == vendor::PLAINSONG;
                (prefix, are_same_vendor, now.mono.since(it.last_certain) >= RECENTLY_HEARD)
            })
            .collect();
        for (prefix, are_same_vendor, is_silent) in others {
            if are_same_vendor && !prefix.is_of_process(newcomer) {
                self.forget(now, prefix, out);
            } else if !are_same_vendor && is_silent {
                self.probe_peer(now, prefix, out);
            }
        }
    }
}
