//! The remote participants: who they are, where they are reached, how long they stay.
//!
//! No address fills the table: one address has a quarter of the places, and leases of participants without
//! matched endpoints count for 300 s at most. Where all places are taken, the most silent are asked, sixteen
//! for each newcomer. Who does not answer for a second gives way, whatever its lease.

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::amplification::Budget;
use super::builtin::ParticipantData;
use super::channel::Channel;
use super::config::DiscoveryLimits;
use super::path::{self, Acceptance, EndpointPath, Host, Path};
use super::proof::Proof;
use crate::guid::{Guid, GuidPrefix};
use crate::locator::{Locator, NodeId};
use crate::sources::Sources;
use crate::stats::{DropCounters, DropReason};
use crate::time::{Duration, Instant};
use crate::tuning::discovery::{
    ASKED_AFTER_LEASE, LEASE_MIN, PLACE_PROBE_SILENCE, PLACE_PROBES_AT_ONCE, PLACES_OF_ADDRESS_DIVISOR,
    UNMATCHED_LEASE_MAX, UNPROVEN_LEASE_MAX, UNPROVEN_PER_ADDRESS_MAX,
};
use crate::vendor;

/// A remote participant.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) data: Arc<ParticipantData>,
    /// Where its announcement came from.
    pub(super) from: Locator,
    pub(super) discovered: Instant,
    pub(super) last_heard: Instant,
    /// When it last sent from where it has answered a challenge.
    pub(super) last_certain: Instant,
    pub(super) budget: Budget,
    pub(super) proof: Proof,
    /// Something else was claimed of it: so many probes were sent to find out whether it is still where it
    /// was.
    pub(super) peer_probes: Option<u32>,
    /// When it was asked whether it is there, because most of its lease was over.
    asked: Option<Instant>,
    /// When its lease was found to count although it is long.
    excused: Instant,
    /// When it was challenged last, as long as that was not answered.
    pub(super) challenged: Option<Instant>,
    /// When it was last sent our announcement with a challenge.
    pub(super) introduced: Option<Instant>,
    /// Where many hear a newcomer, each answers it at a time of its own: then.
    pub(super) answer_due: Option<Instant>,
    /// It has challenged us, and was answered.
    pub(super) is_answered: bool,
    /// It expects more of us than we could ask for: we forgot it, and it did not forget us.
    pub(super) knows_more: bool,
    /// The application was notified that it does not answer.
    pub(super) is_reported: bool,
    /// Where built-in traffic goes.
    pub(super) meta: Option<Path>,
    /// The path its built-in endpoints are matched with; `None` while it is unproven. Set by
    /// [`Database::set_matched`].
    pub(super) matched: Option<Path>,
    /// The addresses that this host had when it met us.
    pub(super) met_at: Vec<IpAddr>,
    /// When an announcement arrived that was for everyone.
    pub(super) heard_openly: Option<Instant>,
    /// Endpoints that it has to announce again, or they are forgotten.
    pub(super) unconfirmed: BTreeSet<Guid>,
    /// The same participant as announced from an address that has proven nothing yet.
    pub(super) candidate: Option<Box<Self>>,
    /// Where it was before it did not answer there.
    former: Option<Box<Former>>,
    /// It is of this process: its messages do not use the wire.
    pub(super) is_of_own_process: bool,
    /// Of this process, and able to hear others for us.
    pub(super) can_lead: bool,
    /// Another participant of this process hears it for us.
    pub(super) is_heard_by_lead: bool,
    /// The node by which it is known to [`super::links`].
    pub(super) node: Option<NodeId>,
    /// The same, while there is a link.
    pub(super) linked_node: Option<NodeId>,
    /// User endpoints, and what they cost in octets.
    endpoints: usize,
    endpoint_bytes: usize,
    usable_meta: Vec<Locator>,
    usable_user: Vec<Locator>,
    /// Its places in the queues of leases and of reviews.
    check_at: Option<Instant>,
    review_at: Option<Instant>,
}

/// Where a participant had proven to be when another one proved to be it elsewhere, and it did not answer.
#[derive(Debug)]
struct Former {
    meta_unicast: Vec<Locator>,
    proof: Proof,
    /// The end of its lease, at most [`UNMATCHED_LEASE_MAX`] after it was last heard there.
    until: Option<Instant>,
}

/// The remote participants, with their leases.
#[derive(Debug)]
pub(super) struct Database {
    remotes: BTreeMap<GuidPrefix, Box<Remote>>,
    /// When to look at a participant's lease again: never later than its end.
    leases: BTreeSet<(Instant, GuidPrefix)>,
    /// When to challenge a participant again, or to probe one of which something else is claimed.
    reviews: BTreeSet<(Instant, GuidPrefix)>,
    limits: DiscoveryLimits,
    endpoint_bytes: usize,
    /// Those of which most of the lease is over, to be asked whether they are there.
    silent: Vec<GuidPrefix>,
    /// Participants that are not matched: each challenge asks.
    unproven: usize,
    #[cfg(feature = "mistakes")]
    assumed: usize,
}

impl Database {
    pub(super) const fn new(limits: DiscoveryLimits) -> Self {
        Self {
            remotes: BTreeMap::new(),
            leases: BTreeSet::new(),
            reviews: BTreeSet::new(),
            limits,
            endpoint_bytes: 0,
            silent: Vec::new(),
            unproven: 0,
            #[cfg(feature = "mistakes")]
            assumed: 0,
        }
    }

    pub(super) fn get(&self, prefix: GuidPrefix) -> Option<&Remote> {
        self.remotes.get(&prefix).map(|remote| &**remote)
    }

    pub(super) fn get_mut(&mut self, prefix: GuidPrefix) -> Option<&mut Remote> {
        self.remotes.get_mut(&prefix).map(|remote| &mut **remote)
    }

    /// Whether it is a participant of this process.
    pub(super) fn is_of_own_process(&self, prefix: GuidPrefix) -> bool {
        self.get(prefix).is_some_and(|remote| remote.is_of_own_process)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (GuidPrefix, &Remote)> + '_ {
        self.remotes.iter().map(|(prefix, remote)| (*prefix, &**remote))
    }

    /// Participants that have not proven their addresses.
    pub(super) const fn unproven(&self) -> usize {
        self.unproven
    }

    /// Participants that are known.
    pub(super) fn known(&self) -> usize {
        #[cfg(feature = "mistakes")]
        return self.remotes.len().max(self.assumed);
        #[cfg(not(feature = "mistakes"))]
        self.remotes.len()
    }

    /// In a simulation of some of many participants, the others behave as if they knew so many.
    #[cfg(feature = "mistakes")]
    pub(super) const fn assume_known(&mut self, participants: usize) {
        self.assumed = participants;
    }

    pub(super) fn prefixes(&self) -> Vec<GuidPrefix> {
        self.remotes.keys().copied().collect()
    }

    pub(super) fn insert(&mut self, prefix: GuidPrefix, remote: Remote) {
        self.unproven += usize::from(remote.matched.is_none());
        let before = self.remotes.insert(prefix, Box::new(remote));
        self.unproven -= usize::from(before.is_some_and(|before| before.matched.is_none()));
        self.reschedule(prefix);
    }

    /// Its built-in endpoints are matched at `path` from now on.
    pub(super) fn set_matched(&mut self, prefix: GuidPrefix, path: Path) {
        if let Some(remote) = self.remotes.get_mut(&prefix)
            && remote.matched.replace(path).is_none()
        {
            self.unproven -= 1;
        }
    }

    pub(super) fn remove(&mut self, prefix: GuidPrefix) -> Option<Remote> {
        let remote = self.remotes.remove(&prefix)?;
        self.unproven -= usize::from(remote.matched.is_none());
        if let Some(at) = remote.check_at {
            self.leases.remove(&(at, prefix));
        }
        if let Some(at) = remote.review_at {
            self.reviews.remove(&(at, prefix));
        }
        self.endpoint_bytes = self.endpoint_bytes.saturating_sub(remote.endpoint_bytes);
        Some(*remote)
    }

    /// Answers a newcomer then.
    pub(super) fn answer_at(&mut self, prefix: GuidPrefix, due: Option<Instant>) {
        if let Some(remote) = self.remotes.get_mut(&prefix) {
            remote.answer_due = due;
            self.review(prefix, due);
        }
    }

    /// Looks at a participant again then, and at no other time.
    pub(super) fn review(&mut self, prefix: GuidPrefix, at: Option<Instant>) {
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        if remote.review_at == at {
            return;
        }
        if let Some(before) = std::mem::replace(&mut remote.review_at, at) {
            self.reviews.remove(&(before, prefix));
        }
        self.reviews.extend(at.map(|at| (at, prefix)));
    }

    /// A participant that is to be looked at now.
    pub(super) fn next_review(&mut self, now: Instant) -> Option<GuidPrefix> {
        let (_, prefix) = self.reviews.first().copied().filter(|(at, _)| *at <= now)?;
        self.review(prefix, None);
        Some(prefix)
    }

    /// Its lease may end earlier than expected so far: look at it in time.
    pub(super) fn reschedule(&mut self, prefix: GuidPrefix) {
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        let expires = remote.expires();
        let Some(check_at) = expires.into_iter().chain(remote.asked_at()).min() else { return };
        if remote.check_at.is_some_and(|at| at <= check_at) {
            return;
        }
        if let Some(at) = remote.check_at.replace(check_at) {
            self.leases.remove(&(at, prefix));
        }
        self.leases.insert((check_at, prefix));
    }

    /// Which participant must leave so that one from `from` can come (R3): `Ok(None)` when there is room. No
    /// address but those of this host has more than its share of the places. Who has matched endpoints, which
    /// `is_matched` tells, stays as long as anybody else can go.
    pub(super) fn victim(
        &self,
        from: &Locator,
        this_host: bool,
        is_matched: impl Fn(GuidPrefix) -> bool,
    ) -> Result<Option<GuidPrefix>, DropReason> {
        let from_there = |remote: &Remote| remote.from.ip() == from.ip();
        let unproven_there = self.oldest_unproven(from_there);
        let is_unproven = |remote: &&Remote| remote.matched.is_none();
        let there = || self.iter().map(|(_, remote)| remote).filter(|remote| from_there(remote));
        if !this_host {
            if there().filter(is_unproven).count() >= UNPROVEN_PER_ADDRESS_MAX {
                return Ok(unproven_there);
            }
            if there().count() >= self.limits.participants_max / PLACES_OF_ADDRESS_DIVISOR {
                let idle = unproven_there.or_else(|| self.most_silent(from_there, &is_matched));
                return idle.map(Some).ok_or(DropReason::DiscoveryLimit);
            }
        }
        if self.remotes.len() < self.limits.participants_max {
            return Ok(None);
        }
        let idle = self.oldest_unproven(|_| true).or_else(|| self.most_silent(|_| true, &is_matched));
        idle.map(Some).ok_or(DropReason::DiscoveryLimit)
    }

    fn oldest_unproven(&self, among: impl Fn(&Remote) -> bool) -> Option<GuidPrefix> {
        let unproven = self.iter().filter(|(_, remote)| remote.matched.is_none() && among(remote));
        unproven.min_by_key(|(prefix, remote)| (remote.discovered, *prefix)).map(|(prefix, _)| prefix)
    }

    /// Of the proven ones without matched endpoints the one that was heard least lately.
    fn most_silent(
        &self,
        among: impl Fn(&Remote) -> bool,
        is_matched: impl Fn(GuidPrefix) -> bool,
    ) -> Option<GuidPrefix> {
        let is_own = |remote: &Remote| remote.heard_by_wire().is_some() && !remote.is_heard_by_lead;
        let proven = self.iter().filter(|(_, remote)| is_own(remote) && among(remote));
        let mut by_silence: Vec<_> = proven.map(|(prefix, remote)| (remote.last_heard, prefix)).collect();
        by_silence.sort_unstable();
        by_silence.into_iter().map(|(_, prefix)| prefix).find(|prefix| !is_matched(*prefix))
    }

    /// Of those that we hear ourselves the ones that were not heard for [`PLACE_PROBE_SILENCE`], the most
    /// silent first, a few of them.
    pub(super) fn silent(&self, now: Instant) -> Vec<GuidPrefix> {
        let is_silent = |remote: &Remote| {
            remote.heard_by_wire().is_some()
                && !remote.is_heard_by_lead
                && remote.peer_probes.is_none()
                && now.since(remote.last_heard) >= PLACE_PROBE_SILENCE
        };
        let mut silent: Vec<_> = self.iter().filter(|(_, remote)| is_silent(remote)).collect();
        silent.sort_unstable_by_key(|(prefix, remote)| (remote.last_heard, *prefix));
        silent.into_iter().map(|(prefix, _)| prefix).take(PLACE_PROBES_AT_ONCE).collect()
    }

    /// A participant that is silent for longer than strangers may be has matched endpoints: its lease counts.
    pub(super) fn excuse(&mut self, prefix: GuidPrefix, now: Instant) {
        if let Some(remote) = self.remotes.get_mut(&prefix) {
            remote.excused = now;
        }
        self.reschedule(prefix);
    }

    /// Makes room for what an endpoint of a participant costs now: `bytes` instead of `before`, if it was
    /// known.
    pub(super) fn admit_endpoint(
        &mut self,
        prefix: GuidPrefix,
        before: Option<usize>,
        bytes: usize,
    ) -> Result<(), DropReason> {
        let Some(remote) = self.remotes.get_mut(&prefix) else { return Err(DropReason::NotMatched) };
        let total = self.endpoint_bytes.saturating_sub(before.unwrap_or(0)).saturating_add(bytes);
        let crowded = before.is_none() && remote.endpoints >= self.limits.endpoints_per_participant_max;
        if crowded || total > self.limits.endpoint_bytes_max {
            return Err(DropReason::DiscoveryLimit);
        }
        remote.endpoints += usize::from(before.is_none());
        remote.endpoint_bytes =
            remote.endpoint_bytes.saturating_sub(before.unwrap_or(0)).saturating_add(bytes);
        self.endpoint_bytes = total;
        Ok(())
    }

    /// An endpoint was announced again, or withdrawn.
    pub(super) fn confirm_endpoint(&mut self, guid: Guid) {
        if let Some(remote) = self.remotes.get_mut(&guid.prefix) {
            remote.unconfirmed.remove(&guid);
        }
    }

    /// Gives back what an endpoint of a participant cost.
    pub(super) fn release_endpoint(&mut self, prefix: GuidPrefix, bytes: usize) {
        if let Some(remote) = self.remotes.get_mut(&prefix) {
            remote.endpoints = remote.endpoints.saturating_sub(1);
            remote.endpoint_bytes = remote.endpoint_bytes.saturating_sub(bytes);
            self.endpoint_bytes = self.endpoint_bytes.saturating_sub(bytes);
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let first = |queue: &BTreeSet<(Instant, GuidPrefix)>| queue.first().map(|(at, _)| *at);
        first(&self.leases).into_iter().chain(first(&self.reviews)).min()
    }

    /// Those that have been silent for most of their leases since this was asked last.
    pub(super) fn take_silent(&mut self) -> Vec<GuidPrefix> {
        std::mem::take(&mut self.silent)
    }

    /// A participant whose lease has ended.
    pub(super) fn next_expired(&mut self, now: Instant) -> Option<GuidPrefix> {
        while let Some((at, prefix)) = self.leases.first().copied() {
            if at > now {
                return None;
            }
            self.leases.pop_first();
            let Some(remote) = self.remotes.get_mut(&prefix) else { continue };
            remote.check_at = None;
            match remote.expires() {
                Some(expires) if expires <= now => return Some(prefix),
                _ => {
                    if remote.asked_at().is_some_and(|at| at <= now) {
                        remote.asked = Some(now);
                        self.silent.push(prefix);
                    }
                    self.reschedule(prefix);
                }
            }
        }
        None
    }
}

impl Remote {
    pub(super) fn new(now: Instant, data: Arc<ParticipantData>, from: Locator) -> Self {
        Self {
            data,
            from,
            discovered: now,
            last_heard: now,
            last_certain: now,
            budget: Budget::new(),
            proof: Proof::default(),
            peer_probes: None,
            challenged: None,
            introduced: None,
            answer_due: None,
            is_answered: false,
            knows_more: false,
            asked: None,
            excused: now,
            is_reported: false,
            meta: None,
            matched: None,
            met_at: Vec::new(),
            heard_openly: None,
            unconfirmed: BTreeSet::new(),
            candidate: None,
            former: None,
            is_of_own_process: false,
            can_lead: false,
            is_heard_by_lead: false,
            node: None,
            linked_node: None,
            endpoints: 0,
            endpoint_bytes: 0,
            usable_meta: Vec::new(),
            usable_user: Vec::new(),
            check_at: None,
            review_at: None,
        }
    }

    /// Of this process; reached at `from`.
    pub(super) fn of_own_process(now: Instant, data: Arc<ParticipantData>, from: Locator) -> Self {
        Self { is_of_own_process: true, ..Self::new(now, data, from) }
    }

    /// Where built-in traffic goes, if it goes by the wire.
    pub(super) fn heard_by_wire(&self) -> Option<Path> {
        self.matched.filter(|_| !self.is_of_own_process)
    }

    /// Where our announcements go by unicast, if it reads them itself.
    pub(super) fn announced_at(&self) -> Option<Path> {
        self.heard_by_wire().filter(|_| self.lead().is_none())
    }

    /// Whether it would not hear yet what we tell it of our endpoints: a participant of ours challenges us
    /// first.
    pub(super) fn will_challenge(&self) -> bool {
        self.data.vendor == vendor::PLAINSONG
            && self.matched.is_none()
            && !self.is_answered
            && self.lead().is_none()
    }

    /// Who of its process hears us for it.
    pub(super) fn lead(&self) -> Option<GuidPrefix> {
        self.data.lead.filter(|_| self.data.vendor == vendor::PLAINSONG)
    }

    /// Whether it has no readers that could answer a challenge.
    pub(super) fn cannot_answer(&self) -> bool {
        !Channel::answers(self.data.builtin_endpoints)
    }

    /// When it is gone unless it is heard of; `None` for never.
    pub(super) fn expires(&self) -> Option<Instant> {
        if self.is_of_own_process || self.is_heard_by_lead {
            return None;
        }
        let lease = self.data.lease_duration.max(LEASE_MIN);
        if self.matched.is_none() {
            return self.last_heard.after(lease.min(UNPROVEN_LEASE_MAX));
        }
        let stranger = self.last_heard.max(self.excused).after(UNMATCHED_LEASE_MAX);
        self.last_heard.after(lease).into_iter().chain(stranger).min()
    }

    /// When to ask whether it is there: its announcements may not arrive. Other stacks announce themselves
    /// more rarely.
    fn asked_at(&self) -> Option<Instant> {
        let is_asked = self.asked.is_some_and(|asked| asked >= self.last_heard);
        if is_asked || self.data.vendor != vendor::PLAINSONG || self.matched.is_none() {
            return None;
        }
        let (part, of) = ASKED_AFTER_LEASE;
        let silence = Duration(self.data.lease_duration.max(LEASE_MIN).0 / of * part);
        self.expires().and_then(|_| self.last_heard.after(silence))
    }

    /// Whether it may send to where this host is no more: others than Plainsong keep the addresses that they
    /// were told first.
    pub(super) fn looks_elsewhere(&self, host: &Host) -> bool {
        self.data.vendor != vendor::PLAINSONG && self.met_at.iter().any(|ip| !host.is_own(*ip))
    }

    /// Whether its own lease has not ended at `now`.
    pub(super) fn has_lease(&self, now: Instant) -> bool {
        let lease = self.data.lease_duration.max(LEASE_MIN);
        self.matched.is_some() && self.last_heard.after(lease).is_none_or(|end| end > now)
    }

    /// Sorts out its locators, after they or ours have changed.
    pub(super) fn sift(&mut self, host: &Host, limits: &DiscoveryLimits, drops: &mut DropCounters) {
        let acceptance = self.acceptance(host, limits);
        drops.count_many(DropReason::Unreachable, self.data.unreached.into());
        drops.count_many(DropReason::Malformed, self.data.malformed.into());
        self.usable_meta = path::usable(&self.data.meta_unicast, host, acceptance, drops);
        self.usable_user = path::usable(&self.data.default_unicast, host, acceptance, drops);
        self.meta = self.choose(&self.usable_meta, host);
    }

    /// Where it receives, as far as we may send there.
    pub(super) fn sockets(&self) -> Vec<Locator> {
        [&self.usable_meta[..], &self.usable_user].concat()
    }

    /// Which of its addresses are proven has changed.
    pub(super) fn choose_meta(&mut self, host: &Host) {
        self.meta = self.choose(&self.usable_meta, host);
    }

    /// It does not answer where it has proven to be, and is elsewhere now; or it stands still, and is
    /// somebody else there. For the rest of its lease it may come back.
    pub(super) fn leave_to(&mut self, candidate: Self, now: Instant) {
        let is_over = |former: &Former| former.until.is_none_or(|until| until <= now);
        if self.former.as_deref().is_none_or(is_over) {
            let until = self.last_heard.after(self.data.lease_duration.clamp(LEASE_MIN, UNMATCHED_LEASE_MAX));
            let meta_unicast = self.data.meta_unicast.clone();
            self.former = Some(Box::new(Former { meta_unicast, proof: self.proof.copy(), until }));
        }
        self.move_to(candidate, now);
    }

    /// Whether a candidate, which spoke `from` there when it proved it, is where this participant was until
    /// it did not answer.
    pub(super) fn is_back(&self, candidate: &Self, from: &Locator, now: Instant, host: &Host) -> bool {
        self.former.as_ref().is_some_and(|former| {
            former.until.is_some_and(|until| until > now)
                && candidate.meta.is_some_and(|path| former.meta_unicast.contains(&path.locator))
                && [&candidate.from, from].into_iter().all(|from| former.proof.is_source(from, host))
        })
    }

    /// It answers there again.
    pub(super) fn come_back(&mut self, candidate: Self, now: Instant) {
        self.former = None;
        self.move_to(candidate, now);
    }

    /// Takes over data, address and proof of a candidate.
    pub(super) fn move_to(&mut self, candidate: Self, now: Instant) {
        self.data = candidate.data;
        self.from = candidate.from;
        (self.last_heard, self.last_certain) = (now, now);
        self.meta = candidate.meta;
        self.usable_meta = candidate.usable_meta;
        self.usable_user = candidate.usable_user;
        self.proof = candidate.proof;
        (self.candidate, self.peer_probes) = (None, None);
    }

    /// Whether it may be sent to at `ip`.
    pub(super) fn proves(&self, ip: IpAddr, host: &Host) -> bool {
        self.proof.proves(ip, host)
    }

    /// The path to its built-in endpoints, when its address has proven itself.
    pub(super) fn proven_meta(&self, host: &Host) -> Option<Path> {
        self.meta.filter(|path| path.locator.ip().is_some_and(|ip| self.proves(ip, host)))
    }

    /// Whether a message from `from` is believed to be its own: it has answered from there, or announced the
    /// address. On this host, whose addresses are everyone's, that is the address of a socket.
    pub(super) fn is_at(&self, from: &Locator, host: &Host) -> bool {
        let Some(ip) = from.ip() else { return false };
        let mut announced = self.data.meta_unicast.iter().chain(&self.data.default_unicast);
        self.proof.is_source(from, host)
            || if host.is_own(ip) {
                host.sent(&self.from) && announced.any(|known| known.udp_port() == from.udp_port())
            } else {
                announced.any(|known| known.ip() == Some(ip))
            }
    }

    /// Whether what is announced now still has the addresses at which it is reached.
    pub(super) fn keeps_paths(&self, announced: &ParticipantData, host: &Host) -> bool {
        let keeps = |path: Option<Path>, locators: &[Locator]| {
            path.is_none_or(|path| locators.contains(&path.locator))
        };
        keeps(self.matched, &announced.meta_unicast)
            && keeps(self.choose(&self.usable_user, host), &announced.default_unicast)
    }

    /// Where a user endpoint is reached that announces these locators, or the participant's when it
    /// announces none. Only proven addresses are used; multicast only when there is nothing else.
    pub(super) fn endpoint_path(
        &self,
        unicast: &[Locator],
        multicast: &[Locator],
        host: &Host,
        limits: &DiscoveryLimits,
        drops: &mut DropCounters,
    ) -> EndpointPath {
        let acceptance = self.acceptance(host, limits);
        let sources = self.sources(unicast, host);
        let own;
        let usable = if unicast.is_empty() && multicast.is_empty() {
            &self.usable_user
        } else {
            own = path::usable(unicast, host, acceptance, drops);
            &own
        };
        let chosen = self.choose(usable, host);
        let proven = chosen.filter(|path| path.locator.ip().is_some_and(|ip| self.proves(ip, host)));
        if let Some(path) = proven {
            // Others may hear no user data there; an endpoint with locators of its own hears it nowhere else.
            let is_same_vendor = self.data.vendor == vendor::PLAINSONG && unicast.is_empty();
            let node = self.linked_node.filter(|_| is_same_vendor && path.same_host);
            let meta =
                self.proven_meta(host).filter(|meta| is_same_vendor && meta.same_host == path.same_host);
            let urgent = meta.filter(|_| node.is_none()).map(|meta| meta.locator);
            let (locators, same_host) = (vec![node.map_or(path.locator, Locator::memory)], path.same_host);
            let is_of_own_process = self.is_of_own_process;
            return EndpointPath { locators, sources, urgent, same_host, is_of_own_process };
        }
        let multicast =
            if unicast.is_empty() && multicast.is_empty() { &self.data.default_multicast } else { multicast };
        let group =
            if chosen.is_none() { path::groups(multicast, acceptance).first().copied() } else { None };
        EndpointPath { locators: group.into_iter().collect(), sources, ..EndpointPath::default() }
    }

    /// From where an endpoint is heard that announces `unicast`: where its participant has answered, and what
    /// they announce, its node among that.
    fn sources(&self, unicast: &[Locator], host: &Host) -> Sources {
        let is_here = host.sent(&self.from) || self.proof.is_here();
        let announced = self.data.meta_unicast.iter().chain(&self.data.default_unicast).chain(unicast);
        let foreign = announced.filter(|locator| !host.sent(locator)).copied();
        let by_memory = self.announced_node().map(Locator::memory);
        let heard = by_memory.into_iter().chain(self.proof.heard_from()).chain(foreign);
        if is_here { host.sources(heard) } else { Sources::new(heard, false) }
    }

    fn acceptance(&self, host: &Host, limits: &DiscoveryLimits) -> Acceptance {
        Acceptance {
            from_this_host: host.sent(&self.from),
            port_min: limits.port_min,
            locators_max: limits.locators_max,
        }
    }

    fn choose(&self, usable: &[Locator], host: &Host) -> Option<Path> {
        let here = host.sent(&self.from);
        path::choose(usable, host, here, self.from.ip(), |ip| self.proves(ip, host))
    }
}
