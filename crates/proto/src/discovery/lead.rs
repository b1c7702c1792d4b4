//! One participant of a process hears Plainsong participants of other processes for all: their announcements,
//! their endpoints and that they live. It is the lead of the others, which say so in what they announce
//! ([`ParticipantData::lead`]), so that each of them is told once for a process. They speak for themselves:
//! each has writers of its own, and its announcements.
//!
//! Participants of other stacks know of no leads: everyone hears them itself.
//!
//! The first participant that starts is the lead. When it leaves, or ignores something, the others agree on
//! the next, which has everything told again. Naming a lead proves nothing: each participant answers a
//! challenge itself. Only one that has no SEDP readers, and so cannot answer (Cyclone DDS gives them to one
//! participant of a process), counts as being where another one at its socket has proven to be, if it speaks
//! from there.

use std::sync::Arc;

use super::builtin::ParticipantData;
use super::database::Remote;
use super::matching::Endpoint;
use super::participant::Participant;
use super::proof::Proof;
use crate::guid::{Guid, GuidPrefix};
use crate::locator::Locator;
use crate::outbox::{Event, Outbox};
use crate::qos::LivelinessKind;
use crate::time::{Instant, Now};
use crate::tuning::discovery::CHALLENGED_WITHIN;
use crate::vendor;
use crate::wire::MessageContext;

/// Who hears for whom.
#[derive(Debug, Default)]
pub(super) struct Lead {
    /// Who hears others for us; `None`: we do.
    followed: Option<GuidPrefix>,
    /// We ignore something that others may want to hear.
    ignores: bool,
}

/// What a lead tells those of its process of others.
#[derive(Clone, Debug)]
pub(super) enum Heard {
    Participant(Arc<HeardParticipant>),
    Endpoint(Guid, Arc<Endpoint>),
    EndpointGone(Guid),
    Alive(GuidPrefix, LivelinessKind),
    Gone(GuidPrefix),
    /// These are all that there are: a new lead has told of them.
    All(Arc<Vec<GuidPrefix>>),
    /// Told to the lead: its socket is closed.
    Died(GuidPrefix),
}

/// A participant with all that makes it trusted.
#[derive(Debug)]
pub(super) struct HeardParticipant {
    data: Arc<ParticipantData>,
    from: Locator,
    proof: Proof,
    heard_openly: Option<Instant>,
}

impl Lead {
    pub(super) const fn followed(&self) -> Option<GuidPrefix> {
        self.followed
    }
}

impl Participant {
    /// Whether we could hear for others: what we ignore they would not hear.
    pub(super) const fn can_lead(&self) -> bool {
        !self.lead.ignores
    }

    /// We ignore something: who followed us finds another lead.
    pub(super) fn cease_to_lead(&mut self) {
        if !std::mem::replace(&mut self.lead.ignores, true) {
            self.enqueue_participant();
        }
    }

    /// Whether an announcement is for our lead to hear, which tells us what matters of it.
    pub(super) fn is_heard_by_lead(&mut self, now: Now, context: &MessageContext) -> bool {
        if self.lead.followed.is_none() || context.vendor != vendor::PLAINSONG {
            return false;
        }
        if context.destination == GuidPrefix::UNKNOWN {
            self.note_heard_openly(now, context);
        }
        true
    }

    /// Finds a lead as a participant of this process came, changed, or `left`.
    pub(super) fn review_lead(&mut self, now: Now, of: GuidPrefix, left: bool, out: &mut Outbox) {
        let Some(followed) = self.lead.followed else {
            // Who has started hears for itself: others may follow it already.
            if !self.is_present() {
                self.lead.followed = self.present_lead(None);
            }
            return;
        };
        let is_lead = |remote: &Remote| remote.can_lead && remote.data.lead.is_none();
        let stays = !(left && of == followed) && self.database.get(followed).is_some_and(is_lead);
        if stays {
            return;
        }
        let gone = left.then_some(of);
        let next = self.present_lead(gone).or_else(|| self.next_lead(gone));
        if next != self.lead.followed {
            self.follow(now, next, out);
        }
    }

    /// The participants of this process that could hear for us, in the order of their GUIDs.
    fn candidates(&self, but: Option<GuidPrefix>) -> impl Iterator<Item = (GuidPrefix, &Remote)> + '_ {
        self.database
            .iter()
            .filter(move |(prefix, it)| it.is_of_own_process && it.can_lead && Some(*prefix) != but)
    }

    fn present_lead(&self, but: Option<GuidPrefix>) -> Option<GuidPrefix> {
        self.candidates(but).find(|(_, remote)| remote.data.lead.is_none()).map(|(prefix, _)| prefix)
    }

    /// Whom all agree upon: of those that are left the one with the lowest GUID. `None` for us.
    fn next_lead(&self, but: Option<GuidPrefix>) -> Option<GuidPrefix> {
        let lowest = self.candidates(but).map(|(prefix, _)| prefix).next();
        lowest.filter(|lowest| !self.can_lead() || *lowest < self.config.prefix)
    }

    /// Follows another lead, or hears for itself from now on.
    fn follow(&mut self, now: Now, lead: Option<GuidPrefix>, out: &mut Outbox) {
        self.lead.followed = lead;
        if !self.is_present() {
            // The next lead tells of them, or they tell of themselves.
            return self.heard_by_lead().into_iter().for_each(|prefix| self.forget(now, prefix, out));
        }
        if lead.is_none() {
            self.hear_again(now, out);
        }
        self.announce_change(now, out);
        for heard in self.all_heard() {
            self.enqueue_heard(|_| heard);
        }
    }

    /// What the lead heard for us we hear ourselves: all is told again, and what is not told again is gone.
    fn hear_again(&mut self, now: Now, out: &mut Outbox) {
        for prefix in self.heard_by_lead() {
            if let Some(remote) = self.database.get_mut(prefix) {
                remote.is_heard_by_lead = false;
                (remote.last_heard, remote.last_certain) = (now.mono, now.mono);
                remote.unconfirmed.extend(self.matching.of(prefix).map(|(guid, _)| guid));
            }
            self.database.reschedule(prefix);
            self.reconnect(now, prefix, out);
        }
    }

    fn heard_by_lead(&self) -> Vec<GuidPrefix> {
        let heard = self.database.iter().filter(|(_, remote)| remote.is_heard_by_lead);
        heard.map(|(prefix, _)| prefix).collect()
    }

    /// Whether a participant has matched endpoints, here or, as far as we can tell who hear for others, at
    /// those of this process.
    pub(super) fn is_of_use(&self, prefix: GuidPrefix) -> bool {
        let is_for_others = |(guid, endpoint): (Guid, &Endpoint)| {
            let others = self.matching.on_topic(&endpoint.topic, !guid.entity.is_writer());
            others.into_iter().any(|other| self.database.is_of_own_process(other.prefix))
        };
        self.matching.is_matched_with(prefix)
            || self.passes_on(prefix) && self.matching.of(prefix).any(is_for_others)
    }

    /// All that we heard, for who is new or follows us from now on. Nothing unless we hear for ourselves.
    pub(super) fn all_heard(&self) -> Vec<Heard> {
        if self.lead.followed.is_some() || !self.can_lead() {
            return Vec::new();
        }
        let is_matched = |remote: &Remote| Self::is_passed_on(remote) && remote.matched.is_some();
        let remotes = self.database.iter().filter(|(_, remote)| is_matched(remote));
        let mut all = Vec::new();
        let mut prefixes = Vec::new();
        for (prefix, remote) in remotes {
            prefixes.push(prefix);
            all.push(Heard::Participant(Arc::new(HeardParticipant::of(remote))));
            let endpoints = self.matching.shared_of(prefix);
            all.extend(endpoints.map(|(guid, endpoint)| Heard::Endpoint(guid, Arc::clone(endpoint))));
        }
        all.push(Heard::All(Arc::new(prefixes)));
        all
    }

    /// Whether others of this process hear of it by us.
    fn is_passed_on(remote: &Remote) -> bool {
        remote.data.vendor == vendor::PLAINSONG && !remote.is_of_own_process
    }

    fn passes_on(&self, prefix: GuidPrefix) -> bool {
        self.hears_for_others() && self.database.get(prefix).is_some_and(Self::is_passed_on)
    }

    fn hears_for_others(&self) -> bool {
        self.is_shared() && self.lead.followed.is_none() && self.can_lead()
    }

    /// A participant was found, moved or changed.
    pub(super) fn enqueue_participant_heard(&mut self, prefix: GuidPrefix) {
        if self.passes_on(prefix)
            && let Some(remote) = self.database.get(prefix)
        {
            let heard = Heard::Participant(Arc::new(HeardParticipant::of(remote)));
            self.enqueue_heard(|_| heard);
        }
    }

    pub(super) fn enqueue_endpoint_heard(&mut self, guid: Guid, endpoint: &Arc<Endpoint>) {
        if self.passes_on(guid.prefix) {
            self.enqueue_heard(|_| Heard::Endpoint(guid, Arc::clone(endpoint)));
        }
    }

    pub(super) fn enqueue_endpoint_heard_gone(&mut self, guid: Guid) {
        if self.passes_on(guid.prefix) {
            self.enqueue_heard(|_| Heard::EndpointGone(guid));
        }
    }

    pub(super) fn enqueue_alive_heard(&mut self, prefix: GuidPrefix, kind: LivelinessKind) {
        if self.passes_on(prefix) {
            self.enqueue_heard(|_| Heard::Alive(prefix, kind));
        }
    }

    /// One that was found is gone.
    pub(super) fn enqueue_heard_gone(&mut self, prefix: GuidPrefix, remote: &Remote) {
        if self.hears_for_others() && Self::is_passed_on(remote) {
            self.enqueue_heard(|_| Heard::Gone(prefix));
        }
    }

    /// Our driver found out what the lead may not know.
    pub(super) fn enqueue_died(&mut self, prefix: GuidPrefix) {
        if self.database.get(prefix).is_some_and(|remote| remote.is_heard_by_lead) {
            self.enqueue_heard(|_| Heard::Died(prefix));
        }
    }

    /// Another participant of this process tells what it heard.
    pub(super) fn on_heard(&mut self, now: Now, of: GuidPrefix, heard: &Heard, out: &mut Outbox) {
        if let Heard::Died(prefix) = heard {
            if self.passes_on(*prefix) {
                self.forget(now, *prefix, out);
            }
            return;
        }
        if self.lead.followed != Some(of) {
            return;
        }
        let is_known =
            |prefix| self.database.get(prefix).is_some_and(|remote: &Remote| remote.is_heard_by_lead);
        match heard {
            Heard::Participant(participant) => self.on_participant_heard(now, participant, out),
            Heard::Endpoint(guid, endpoint) if is_known(guid.prefix) => {
                if let Err(reason) = self.admit(*guid, Arc::clone(endpoint), out) {
                    self.drops.count(reason);
                }
                self.request_types(now, out);
            }
            Heard::EndpointGone(guid) if is_known(guid.prefix) => self.forget_endpoint(*guid, out),
            Heard::Alive(prefix, kind) if is_known(*prefix) => {
                if let Some(remote) = self.database.get_mut(*prefix) {
                    remote.last_heard = now.mono;
                }
                self.builtin.heard(now.mono, *prefix);
                self.matching.assert_liveliness(*prefix, *kind, out);
            }
            Heard::Gone(prefix) if is_known(*prefix) => self.forget(now, *prefix, out),
            Heard::All(prefixes) => {
                let gone = self.heard_by_lead().into_iter().filter(|prefix| !prefixes.contains(prefix));
                gone.for_each(|prefix| self.forget(now, prefix, out));
            }
            _ => {}
        }
    }

    fn on_participant_heard(&mut self, now: Now, heard: &HeardParticipant, out: &mut Outbox) {
        let prefix = heard.data.guid.prefix;
        if self.matching.ignored.has_participant(prefix) {
            return;
        }
        let known = self.database.get(prefix);
        let is_new = known.is_none_or(|remote| !remote.is_heard_by_lead);
        // Whom we heard ourselves until now knows us.
        let knows_us = known.is_some_and(|remote| remote.matched.is_some());
        if is_new {
            // Whoever else used its name is gone.
            self.forget(now, prefix, out);
            self.finish_forgetting(prefix, out);
            let mut remote = Remote::new(now.mono, Arc::clone(&heard.data), heard.from);
            (remote.is_heard_by_lead, remote.is_answered) = (true, knows_us);
            remote.heard_openly = heard.heard_openly;
            self.database.insert(prefix, remote);
        }
        let Some(remote) = self.database.get_mut(prefix) else { return };
        let changed = is_new || remote.data != heard.data;
        remote.data.clone_from(&heard.data);
        (remote.from, remote.last_heard) = (heard.from, now.mono);
        remote.proof = heard.proof.copy();
        remote.sift(&self.host, &self.config.limits, &mut self.drops);
        if let Some(path) = remote.proven_meta(&self.host) {
            self.database.set_matched(prefix, path);
        }
        // Its endpoints come next.
        self.review_link(now, prefix, out);
        if self.is_present() {
            self.meet(now, prefix, is_new, out);
        }
        if changed {
            out.events.push(Event::ParticipantChanged { participant: prefix.participant(), alive: true });
        }
    }

    /// We have started, and told everyone: those of whom our lead told hear of us.
    pub(super) fn connect_heard(&mut self, now: Now, out: &mut Outbox) {
        for prefix in self.heard_by_lead() {
            self.meet(now, prefix, false, out);
        }
    }

    /// Matches our writers with its readers, once it has challenged us: before it would not hear us. Of who
    /// is new it may be that it did not hear our announcements.
    fn meet(&mut self, now: Now, prefix: GuidPrefix, is_new: bool, out: &mut Outbox) {
        let Some(remote) = self.database.get(prefix) else { return };
        if is_new && let Some(path) = remote.announced_at() {
            self.send_announcement(now, Some(prefix), &[path.locator], out);
        }
        match remote.discovered.after(CHALLENGED_WITHIN).filter(|at| *at > now.mono) {
            Some(at) if !remote.is_answered => self.database.review(prefix, Some(at)),
            _ => self.connect(now, prefix, out),
        }
    }

    /// A participant that has no readers to answer with is where another one of its product and socket is
    /// that has proven the address, if it speaks from where that one speaks.
    pub(super) fn adopt_proof(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) -> bool {
        let Some(remote) = self.database.get(prefix) else { return false };
        if remote.matched.is_some() || !remote.cannot_answer() {
            return false;
        }
        let is_same = |(other, it): &(GuidPrefix, &Remote)| {
            *other != prefix
                && it.data.vendor == remote.data.vendor
                && it.heard_by_wire().is_some_and(|path| remote.sockets().contains(&path.locator))
                && it.proof.is_source(&remote.from, &self.host)
        };
        let proof = self.database.iter().find(is_same).map(|(_, it)| it.proof.copy());
        match (proof, self.database.get_mut(prefix)) {
            (Some(proof), Some(remote)) => {
                remote.proof = proof;
                self.on_proof(now, prefix, out);
            }
            _ => self.await_other(now, prefix),
        }
        true
    }

    /// Those whose announcements came before another one had proven the address.
    pub(super) fn adopt_waiting(&mut self, now: Now, out: &mut Outbox) {
        let waits = |remote: &Remote| remote.matched.is_none() && remote.cannot_answer();
        let waiting = self.database.iter().filter(|(_, remote)| waits(remote));
        let waiting: Vec<GuidPrefix> = waiting.map(|(prefix, _)| prefix).collect();
        for prefix in waiting {
            self.adopt_proof(now, prefix, out);
        }
    }
}

impl HeardParticipant {
    fn of(remote: &Remote) -> Self {
        Self {
            data: Arc::clone(&remote.data),
            from: remote.from,
            proof: remote.proof.copy(),
            heard_openly: remote.heard_openly,
        }
    }
}
