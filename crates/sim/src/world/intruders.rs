//! Strangers of discovery: they speak in the names of others, claim addresses that are not theirs, come in
//! crowds that last for ever, and announce endpoints without end (rules R1, R3 and R8 of this
//! implementation). They come when faults are over: then nothing of a genuine participant has a reason to end
//! or to move.

use std::rc::Rc;

use plainsong_proto::discovery::{LocalEndpoint, LocalLocators, Participant, ParticipantConfig};
use plainsong_proto::guid::{EntityId, GuidPrefix};
use plainsong_proto::locator::{Locator, ports};
use plainsong_proto::outbox::Outbox;
use plainsong_proto::qos::QosSet;
use plainsong_proto::receiver::{self, Registry};
use plainsong_proto::seq::{SequenceNumber, SequenceSet};
use plainsong_proto::stats::DropCounters;
use plainsong_proto::time::{Duration, Instant, Now};
use plainsong_proto::wire::{AckNack, EndpointSubmessage, MessageContext, Target};

use super::{Happening, World, prefix};
use crate::dissect::{self, ACKNACK, HEARTBEAT, Submessage, Summary};
use crate::ledger::Crowd;
use crate::mutation::Mutation;
use crate::network::{Host, INTRUDER, STRANGER, is_genuine};
use crate::node::{NodeOptions, State};
use crate::rng::Rng;

/// What strangers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// One says that a participant is where it is itself, proves that address, announces the endpoints there
    /// and changes them, and at last takes leave in the name of the participant.
    Impersonate,
    /// One says that it is at an address that is not its own. It sends what names its victim (INFO_DST), and
    /// repeats answers to challenges of others.
    Claim,
    /// Many come, prove their addresses, and last for ever; then somebody genuine comes.
    Crowd,
    /// One proves its address and has more readers than anybody may, all of them also at an address that is
    /// not its own.
    Flood,
}

/// Participants that processes remember where strangers come in crowds, and endpoints of each where one has
/// too many.
pub(super) const PARTICIPANTS_MAX: usize = 40;
const ENDPOINTS_MAX: usize = 20;
/// No address has more than this part of the places.
const ADDRESS_SHARE: usize = 4;
/// A crowd has so many addresses, and more participants at each than there are places for.
pub(super) const ADDRESSES: u8 = 5;
pub(super) const AT_EACH: usize = PARTICIPANTS_MAX / ADDRESS_SHARE + 1;
/// Time in which everyone who can finds everyone, after faults are over; and how long strangers stay.
const SETTLED: Duration = Duration::from_secs(3);
const STAY: Duration = Duration::from_millis(2_500);
/// An impostor says so often who it is.
const CLAIM_PERIOD: Duration = Duration::from_millis(500);
/// How long an answer takes.
const DELAY: Duration = Duration::from_micros(100);
/// An impostor changes its endpoints so often.
const CHANGES: u32 = 8;
/// Messages that name the process that they go to.
const MESSAGES: usize = 20;
/// Numbers of challenges (`discovery/proof.rs`).
const CHALLENGES: std::ops::Range<u64> = 1 << 7..1 << 12;
/// Answers of others that are remembered.
const ANSWERS_MAX: usize = 16;

/// A participant that nobody wants.
pub(super) struct Intruder {
    participant: Participant,
    prefix: GuidPrefix,
    /// Where it speaks from and hears.
    at: Locator,
    /// The process that it speaks to.
    victim: usize,
    wake_at: Option<Instant>,
    pub(super) is_gone: bool,
}

/// What is known of challenges.
#[derive(Default)]
pub(super) struct Overheard {
    /// Answers of genuine participants.
    answers: Vec<(EntityId, u64)>,
    /// Challenges to an address that is claimed, which nobody answers but by mistake.
    open: Vec<(EntityId, u64)>,
}

/// The built-in endpoints of one that answers.
struct Ear<'a>(&'a mut Participant, GuidPrefix);

impl Registry for Ear<'_> {
    fn deliver(
        &mut self,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    ) {
        if submessage.target(context.source) == Target::Builtin {
            // What it is refused for is no matter here.
            let _ = self.0.on_submessage(now, context, submessage, out);
        }
    }

    fn is_local(&self, prefix: GuidPrefix) -> bool {
        prefix == self.1
    }
}

impl World {
    /// Whether strangers come to a system, to every eighth, and when.
    pub fn draw_intrusion(&mut self, seed: u64, safe_until: Instant) -> bool {
        let mut rng = Rng::new(!seed.rotate_left(41));
        let drawn = rng.chance(12);
        if drawn {
            let attack = *rng.pick(&[Attack::Impersonate, Attack::Claim, Attack::Crowd, Attack::Flood]);
            match attack {
                Attack::Crowd => self.limits.participants_max = PARTICIPANTS_MAX,
                Attack::Flood => self.limits.endpoints_per_participant_max = ENDPOINTS_MAX,
                Attack::Impersonate | Attack::Claim => {}
            }
            let at = Instant(safe_until.0 + SETTLED.0 as u64 + rng.below(500_000_000));
            self.push(at, Happening::Intrude { attack, draw: rng.next() });
        }
        drawn
    }

    pub(super) fn intrude(&mut self, attack: Attack, draw: u64) {
        let mut rng = Rng::new(draw);
        let pairs = self.acquainted();
        if pairs.is_empty() {
            return;
        }
        let (victim, named) = *rng.pick(&pairs);
        self.intruded_at = Some(self.at);
        self.note(victim, 27, || format!("has to do with strangers: {attack:?}, {named:?}"));
        match attack {
            Attack::Impersonate => self.impersonate(victim, named),
            Attack::Claim => self.claim(victim, &mut rng),
            Attack::Crowd => self.come_in_a_crowd(victim),
            Attack::Flood => self.flood(victim),
        }
    }

    /// Processes that run and participants that each of them knows, of other processes that run.
    fn acquainted(&self) -> Vec<(usize, GuidPrefix)> {
        let mut pairs = Vec::new();
        let running = |node: &usize| self.nodes[*node].state == State::Running;
        for victim in (0..self.nodes.len()).filter(running) {
            for other in (0..self.nodes.len()).filter(running).filter(|other| *other != victim) {
                for member in &self.nodes[other].members {
                    let knows = |it: &crate::node::Member| {
                        it.participant.look(|participant| {
                            let mut known = participant.remote_participants();
                            known.any(|remote| remote.guid.prefix == member.prefix && remote.proven)
                        })
                    };
                    if self.nodes[victim].members.iter().all(knows) {
                        pairs.push((victim, member.prefix));
                    }
                }
            }
        }
        pairs
    }

    /// A stranger that announces itself to one process, and answers from `at`; user data is to go to `user`.
    pub(super) fn enter(
        &mut self,
        (prefix, at, user): (GuidPrefix, Locator, &[Locator]),
        victim: usize,
        lease: Duration,
    ) -> usize {
        let mut config = ParticipantConfig::new(prefix, self.nodes[victim].options.domain);
        config.lease_duration = lease;
        if is_genuine(prefix) {
            config.announce_period = CLAIM_PERIOD;
        }
        config.secret[..12].copy_from_slice(&prefix.0);
        config.locators = LocalLocators {
            meta_unicast: vec![at],
            user_unicast: user.to_vec(),
            own_addresses: at.ip().into_iter().collect(),
            announce_to: self.nodes[victim].sockets()[..1].to_vec(),
            ..LocalLocators::default()
        };
        let participant = Participant::new(config);
        self.intruders.push(Intruder { participant, prefix, at, victim, wake_at: None, is_gone: false });
        let intruder = self.intruders.len() - 1;
        self.with_intruder(intruder, |participant, now, out| participant.start(now, out));
        intruder
    }

    pub(super) fn with_intruder(
        &mut self,
        intruder: usize,
        act: impl FnOnce(&mut Participant, Now, &mut Outbox),
    ) {
        let it = &mut self.intruders[intruder];
        let clock = self.nodes[it.victim].options.clock.clone();
        let mut out = Outbox::new();
        act(&mut it.participant, clock.now(self.at), &mut out);
        let (victim, from) = (it.victim, it.at);
        let next =
            it.participant.next_timeout().map(|next| clock.world(next).max(Instant(self.at.0 + 1_000)));
        let wakes = next.filter(|next| !it.is_gone && it.wake_at.is_none_or(|at| *next < at));
        if let Some(at) = wakes {
            it.wake_at = Some(at);
            self.push(at, Happening::IntruderWakes { intruder });
        }
        for transmit in out.transmits() {
            let bytes: Rc<[u8]> = out.datagram(transmit).into();
            for destination in out.destinations(transmit) {
                if self.sockets.get(destination) == Some(&victim) {
                    self.after(DELAY, Happening::Datagram { node: victim, from, bytes: Rc::clone(&bytes) });
                }
            }
        }
    }

    pub(super) fn wake_intruder(&mut self, intruder: usize) {
        let it = &mut self.intruders[intruder];
        if it.wake_at == Some(self.at) && !it.is_gone {
            it.wake_at = None;
            self.with_intruder(intruder, |participant, now, out| participant.timeout(now, out));
        }
    }

    /// Something was sent to an address of strangers: who is there hears it.
    pub(super) fn sent_to_stranger(&mut self, from: Locator, destination: &Locator, bytes: &Rc<[u8]>) {
        let Some(summary) = dissect::dissect(bytes) else { return };
        if Host::of(destination) == Some(STRANGER) {
            let challenges = summary.submessages.iter().filter(|it| it.id == HEARTBEAT && is_sedp(it.writer));
            let challenges = challenges.filter(|it| CHALLENGES.contains(&it.number));
            self.overheard.open.extend(challenges.map(|it| (it.writer, it.number)));
            return;
        }
        if !self.is_overtaken && self.intruders.iter().any(|it| is_genuine(it.prefix)) {
            self.ledger.diverted += summary.submessages.iter().filter(|it| it.is_user()).count() as u64;
        }
        let answers = |it: &Intruder| !it.is_gone || self.mutation == Some(Mutation::KeepTheDead);
        let heard = self.intruders.iter().position(|it| it.at == *destination && answers(it));
        if let Some(intruder) = heard {
            self.after(DELAY, Happening::IntruderHears { intruder, from, bytes: Rc::clone(bytes) });
        }
    }

    pub(super) fn intruder_hears(&mut self, intruder: usize, from: Locator, bytes: &[u8]) {
        let prefix = self.intruders[intruder].prefix;
        self.with_intruder(intruder, |participant, now, out| {
            let mut ear = Ear(participant, prefix);
            receiver::datagram(now, from, bytes, None, &mut ear, &mut DropCounters::default(), out);
        });
    }

    /// An impostor changes its endpoints, or takes leave.
    pub(super) fn intruder_acts(&mut self, intruder: usize, left: u32) {
        self.note_moves();
        if left == 0 {
            self.with_intruder(intruder, |participant, now, out| participant.shutdown(now, out));
            self.intruders[intruder].is_gone = true;
            return;
        }
        let prefix = self.intruders[intruder].prefix;
        let endpoints = self.endpoints_of(prefix);
        self.with_intruder(intruder, |participant, now, out| {
            for endpoint in endpoints {
                let qos = QosSet { user_data: vec![left as u8; 7], ..endpoint.qos };
                // What was refused when it was created does not exist.
                let _ = participant.update_endpoint(now, endpoint.guid, qos, out);
            }
        });
        self.after(
            Duration(STAY.0 / i64::from(CHANGES)),
            Happening::IntruderActs { intruder, left: left - 1 },
        );
    }

    fn endpoints_of(&self, prefix: GuidPrefix) -> Vec<LocalEndpoint> {
        let writers = self.ledger.writers.iter().map(|writer| &writer.endpoint);
        let readers = self.ledger.readers.iter().map(|reader| &reader.endpoint);
        let own = writers.chain(readers).filter(|it| it.guid.prefix == prefix && it.is_alive());
        own.map(|it| LocalEndpoint {
            guid: it.guid,
            topic: it.topic.clone(),
            type_name: "Sample".to_owned(),
            keyed: it.keyed,
            qos: it.qos.clone(),
            group: EntityId::UNKNOWN,
            content_filter: None,
            type_description: None,
        })
        .collect()
    }

    /// One that says that it is `named`, with the same endpoints.
    pub(super) fn enter_as(&mut self, victim: usize, named: GuidPrefix) -> usize {
        let (at, user) = (INTRUDER.locator(7_410), INTRUDER.locator(7_411));
        let intruder = self.enter((named, at, &[user]), victim, Duration::from_secs(60));
        let endpoints = self.endpoints_of(named);
        self.with_intruder(intruder, |participant, now, out| {
            for endpoint in endpoints {
                let _ = participant.add_endpoint(now, endpoint, out);
            }
        });
        intruder
    }

    fn impersonate(&mut self, victim: usize, named: GuidPrefix) {
        let (at, intruder) = (INTRUDER.locator(7_410), self.enter_as(victim, named));
        // When it has said where it is, and was asked.
        for bytes in self.old_answers(named, victim) {
            self.after(Duration::from_millis(10), Happening::Datagram { node: victim, from: at, bytes });
        }
        let pause = Duration(STAY.0 / i64::from(CHANGES));
        self.after(pause, Happening::IntruderActs { intruder, left: CHANGES });
    }

    /// Messages that name a process, some with answers to challenges as others gave them.
    fn old_answers(&self, source: GuidPrefix, victim: usize) -> Vec<Rc<[u8]>> {
        let to = self.nodes[victim].members.first().map_or(GuidPrefix::UNKNOWN, |member| member.prefix);
        let answers = &self.overheard.answers;
        let mut out = Outbox::new();
        for place in 0..MESSAGES {
            let (writer, number) = match answers.get(place % (2 * answers.len().max(1))) {
                Some((writer, number)) => (*writer, *number as i64),
                None => (EntityId::SEDP_PUBLICATIONS_WRITER, 1),
            };
            let mut message = out.message(source, &[INTRUDER.locator(7_410)], 1_400);
            message.info_destination(to);
            let _ = message.acknack(&acknack(writer, number, place as i32));
        }
        out.transmits().iter().map(|transmit| out.datagram(transmit).into()).collect()
    }

    fn claim(&mut self, victim: usize, rng: &mut Rng) {
        let prefix = prefix(STRANGER, self.nodes.len(), victim);
        let from = STRANGER.locator(ports::meta_unicast(0, 0));
        self.forge_as(prefix, victim, 3);
        for bytes in self.old_answers(prefix, victim) {
            let at = Instant(self.at.0 + 100_000_000 + rng.below(2_900_000_000));
            self.push(at, Happening::Datagram { node: victim, from, bytes });
        }
    }

    /// With the mistake that something else proves an address than the answer to what went there: it is
    /// answered by itself.
    pub(super) fn prove_by_mistake(&mut self, node: usize, from: Locator, bytes: &[u8]) {
        let Some(summary) = dissect::dissect(bytes) else { return };
        let is_answer =
            summary.submessages.iter().any(|it| it.id == ACKNACK && CHALLENGES.contains(&it.number));
        let is_addressed = summary.submessages.iter().any(|it| it.id == ACKNACK) && !is_answer;
        let proves = match self.mutation {
            Some(Mutation::ProveByDestination) => is_addressed,
            Some(Mutation::ProveByOldNumbers) => is_answer,
            _ => false,
        };
        if !proves {
            return;
        }
        let Some(to) = self.nodes[node].members.first().map(|member| member.prefix) else { return };
        let mut out = Outbox::new();
        for (writer, number) in std::mem::take(&mut self.overheard.open) {
            let mut message = out.message(summary.source, &[from], 1_400);
            message.info_destination(to);
            let _ = message.acknack(&acknack(writer, number as i64, 1_000));
        }
        for transmit in out.transmits() {
            let bytes = out.datagram(transmit);
            self.call(node, |node, call| node.receive(from, &bytes, call));
        }
    }

    /// Answers to challenges, as anybody may overhear them.
    pub(super) fn overhear(&mut self, summary: &Summary) {
        let answers = summary.submessages.iter().filter(|it| it.id == ACKNACK && is_sedp(it.writer));
        let answers = answers.filter(|it| CHALLENGES.contains(&it.number)).map(|it| (it.writer, it.number));
        let room = ANSWERS_MAX.saturating_sub(self.overheard.answers.len());
        self.overheard.answers.extend(answers.take(room));
    }

    fn come_in_a_crowd(&mut self, victim: usize) {
        for address in 0..ADDRESSES {
            let host = Host(INTRUDER.0 + address);
            for place in 0..AT_EACH {
                let port = 7_410 + 2 * place as u16;
                let guid = prefix(host, place, victim);
                self.enter((guid, host.locator(port), &[host.locator(port + 1)]), victim, Duration::INFINITE);
            }
        }
        self.after(Duration::from_secs(1), Happening::NewcomerComes { victim });
    }

    /// Somebody genuine comes when everything is full.
    pub(super) fn newcomer_comes(&mut self, victim: usize) {
        let options = self.nodes[victim].options.clone();
        self.start(NodeOptions { host: Host(100), participants: 1, ..options });
    }

    fn flood(&mut self, victim: usize) {
        let guid = prefix(INTRUDER, self.nodes.len(), victim);
        let user = [STRANGER.locator(7_411), INTRUDER.locator(7_411)];
        let intruder = self.enter((guid, INTRUDER.locator(7_410), &user), victim, Duration::INFINITE);
        let mut topics: Vec<(String, bool)> =
            self.ledger.writers.iter().map(|it| (it.endpoint.topic.clone(), it.endpoint.keyed)).collect();
        topics.dedup();
        self.with_intruder(intruder, |participant, now, out| {
            for (place, (topic, keyed)) in topics.iter().cycle().take(ENDPOINTS_MAX + 10).enumerate() {
                let endpoint = LocalEndpoint {
                    guid: guid.entity(EntityId::user_reader(place as u32 + 1, *keyed)),
                    topic: topic.clone(),
                    type_name: "Sample".to_owned(),
                    keyed: *keyed,
                    qos: QosSet::reader().best_effort(),
                    group: EntityId::UNKNOWN,
                    content_filter: None,
                    type_description: None,
                };
                let _ = participant.add_endpoint(now, endpoint, out);
            }
        });
    }

    /// What a process believes of genuine participants: where they are, and what they have.
    pub(super) fn beliefs(&self, node: usize) -> Vec<String> {
        let mut beliefs = Vec::new();
        for member in &self.nodes[node].members {
            member.participant.look(|participant| {
                let known = participant.remote_participants().filter(|it| is_genuine(it.guid.prefix));
                beliefs.extend(known.map(|it| format!("{:?} at {:?}", it.guid.prefix, it.meta_unicast)));
                let endpoints = participant.remote_endpoints().filter(|it| is_genuine(it.guid.prefix));
                beliefs.extend(endpoints.map(|it| format!("{} {:?}", it.guid, it.qos)));
            });
        }
        beliefs
    }

    /// In a crowd somebody who has nothing in common with anybody may have to leave.
    fn is_crowded(&self) -> bool {
        self.limits.participants_max == PARTICIPANTS_MAX
    }

    /// A process forgets a participant that is there.
    pub(super) fn note_end(&mut self, node: usize, prefix: GuidPrefix, alive: bool) {
        let is_there = self.ledger.participants.iter().any(|it| it.prefix == prefix && it.ended.is_none());
        if !alive && is_there && self.intruded_at.is_some() && !self.is_crowded() {
            self.ledger.altered.push(format!("n{node} forgets {prefix:?}"));
        }
    }

    /// Where a datagram is taken to come from; `None`: it is not heard. Both are as they should be but for a
    /// mistake.
    pub(super) fn mistake(&self, node: usize, from: Locator, bytes: &[u8]) -> Option<Locator> {
        let Some(mutation) = self.mutation.filter(|_| self.intruded_at.is_some()) else { return Some(from) };
        let Some(summary) = dissect::dissect(bytes) else { return Some(from) };
        let place = self.nodes[node].members.iter().find_map(|member| {
            member.participant.look(|participant| {
                let mut known =
                    participant.remote_participants().filter(|it| it.guid.prefix == summary.source);
                known.find_map(|it| it.meta_unicast.first().copied())
            })
        });
        let is_strange = Host::of(&from).is_some_and(|host| host >= INTRUDER);
        let says = |is_of: fn(&Submessage) -> bool| summary.submessages.iter().any(is_of);
        match mutation {
            Mutation::BelieveAnnouncements if is_strange && says(|it| it.writer == EntityId::SPDP_WRITER) => {
                place.or(Some(from))
            }
            // Its own challenges are to be answered where it is.
            Mutation::BelieveEndpoints
                if is_strange
                    && says(|it| is_sedp(it.writer) && it.id != ACKNACK && it.number >= CHALLENGES.end) =>
            {
                place.or(Some(from))
            }
            Mutation::IgnoreTheNamed => {
                let is_of = |it: &Intruder| it.victim == node && it.prefix == summary.source && !it.is_gone;
                (is_strange || !self.intruders.iter().any(is_of)).then_some(from)
            }
            Mutation::ForgetOldPlaces | Mutation::BelieveTheLatest => {
                let is_claimed =
                    self.intruders.iter().any(|it| it.victim == node && it.prefix == summary.source);
                let is_elsewhere = place.as_ref().and_then(Host::of).is_some_and(|host| host >= INTRUDER);
                let is_ignored = is_elsewhere == (mutation == Mutation::ForgetOldPlaces);
                (is_strange || !is_claimed || !is_ignored).then_some(from)
            }
            Mutation::RefuseNewcomers => {
                let is_full = self.nodes[node].members.iter().any(|it| {
                    it.participant.look(|participant| {
                        participant.remote_participants().count() >= self.limits.participants_max
                    })
                });
                (place.is_some() || !is_full).then_some(from)
            }
            Mutation::ForgetQuotas if is_strange => {
                Some(Locator::udp([10, 1, summary.source.0[2], from.port as u8].into(), from.port as u16))
            }
            _ => Some(from),
        }
    }

    /// What a stranger said has changed nothing of anybody else.
    pub(super) fn note_changes(&mut self, node: usize, before: &[String]) {
        if self.is_crowded() || self.is_overtaken {
            return;
        }
        let after = self.beliefs(node);
        if before != after {
            let gone = before.iter().find(|it| !after.contains(it));
            let what = gone.or_else(|| after.iter().find(|it| !before.contains(it)));
            self.ledger.altered.extend(what.map(|it| format!("n{node}: {it}")));
        }
    }

    /// Genuine participants that are believed to be at addresses of strangers.
    fn note_moves(&mut self) {
        for (index, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.state != State::Gone) {
            let altered = &mut self.ledger.altered;
            for member in &node.members {
                member.participant.look(|participant| {
                    let is_there = |it: &Locator| Host::of(it).is_some_and(|host| host >= STRANGER);
                    let moved = participant.remote_participants().filter(|remote| {
                        is_genuine(remote.guid.prefix) && remote.meta_unicast.iter().any(is_there)
                    });
                    let told =
                        moved.map(|it| format!("n{index}: {:?} at {:?}", it.guid.prefix, it.meta_unicast));
                    altered.extend(told);
                });
            }
        }
    }

    /// How many strangers some process knows.
    pub(super) fn strangers_known(&self) -> u64 {
        let members = self.nodes.iter().flat_map(|node| &node.members);
        let strange = |it: &crate::node::Member| {
            it.participant.look(|participant| {
                participant.remote_participants().filter(|it| !is_genuine(it.guid.prefix)).count() as u64
            })
        };
        members.map(strange).max().unwrap_or(0)
    }

    /// Strangers say nothing more; how many of each address, and how many of their endpoints, are known
    /// anywhere.
    pub(super) fn dismiss_intruders(&mut self) {
        self.intruders.iter_mut().for_each(|it| it.is_gone = true);
        if self.intruders.is_empty() {
            return;
        }
        self.note_moves();
        for member in
            self.nodes.iter().filter(|node| node.state != State::Gone).flat_map(|node| &node.members)
        {
            let strange = |prefix: GuidPrefix| !is_genuine(prefix);
            let known: Vec<GuidPrefix> = member.participant.look(|participant| {
                let known = participant.remote_participants().map(|it| it.guid.prefix);
                known.filter(|prefix| strange(*prefix)).collect()
            });
            for host in 0..ADDRESSES {
                let there = |prefix: &GuidPrefix| prefix.0[2] == INTRUDER.0 + host;
                self.ledger.crowds.push(Crowd {
                    what: "participants",
                    known: known.iter().filter(|it| there(it)).count(),
                    allowed: self.limits.participants_max / ADDRESS_SHARE,
                });
            }
            for prefix in known {
                let known = member.participant.look(|participant| {
                    participant.remote_endpoints().filter(|it| it.guid.prefix == prefix).count()
                });
                let allowed = self.limits.endpoints_per_participant_max;
                self.ledger.crowds.push(Crowd { what: "endpoints", known, allowed });
            }
        }
    }
}

fn is_sedp(writer: EntityId) -> bool {
    [EntityId::SEDP_PUBLICATIONS_WRITER, EntityId::SEDP_SUBSCRIPTIONS_WRITER].contains(&writer)
}

/// What a reader of another answers that has everything below `number`.
fn acknack(writer: EntityId, number: i64, count: i32) -> AckNack {
    let reader = if writer == EntityId::SEDP_PUBLICATIONS_WRITER {
        EntityId::SEDP_PUBLICATIONS_READER
    } else {
        EntityId::SEDP_SUBSCRIPTIONS_READER
    };
    let missing = SequenceSet::empty(SequenceNumber(number));
    AckNack { reader, writer, missing, count, final_flag: true, heartbeat: None }
}
