//! Simple Participant Discovery Protocol: announcing ourselves, hearing of others (RTPS 2.5 §8.5.3).
//!
//! Announcements go by multicast and unicast at once. Endpoint discovery is heard on both but sent by unicast
//! alone: it begins when an address has proven that unicast reaches it, so a copy to the group would reach
//! nobody else, and each of n participants n times.
//!
//! Who does not hear its own announcements come back by the group looks for neighbours at the well-known
//! loopback ports that this host lists as in use: 20 ms after the start (at once without a group), at the end
//! of the first burst of announcements, and with each tenth announcement later, except where somebody is
//! known to listen. So discovery needs no multicast, and where there is multicast nothing goes to ports that
//! nobody has.
//!
//! Each announcement wakes every participant of its host. So of more than twenty that know nobody elsewhere
//! each waits longer, up to three tenths of the lease (6 s, not 3): two of three announcements may still be
//! lost. Newcomers are answered at once.

use std::sync::Arc;

use super::builtin::ParticipantData;
use super::config::{LocalLocators, ParticipantConfig};
use super::database::Remote;
use super::forms::Form;
use super::participant::Participant;
use super::trust::Challenge;
use crate::cdr::KeyHash;
use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::locator::Locator;
use crate::outbox::{DATAGRAM_OVERHEAD, DataHeader, Event, MessageBuilder, Outbox, data_overhead};
use crate::payload::Payload;
use crate::qos::LivelinessKind;
use crate::seq::SequenceNumber;
use crate::stats::DropReason;
use crate::time::{Duration, Instant, Now};
use crate::tuning::discovery::{
    ANNOUNCEMENT_BURST_MS, ANNOUNCEMENT_BYTES_MAX, ANNOUNCEMENT_FOR_OTHERS, ANNOUNCEMENT_JITTER_DIVISOR,
    ANNOUNCEMENT_PERIOD_MIN, ANNOUNCEMENTS_PER_LEASES, ANSWER_SPREAD_OF_EACH, ANSWERED_AT_ONCE,
    HOST_PARTICIPANTS_PER_PERIOD, REMINDERS_PER_LEASE, SCAN_EVERY,
};
use crate::vendor;
use crate::wire::param::{InlineQos, StatusInfo, encode_inline_qos};
use crate::wire::{Data, EndpointSubmessage, MessageContext};

/// Message header and DATA without payload: the least a received announcement had besides its payload.
const RECEIVED_OVERHEAD_BYTES: usize = 44;
/// Two HEARTBEATs.
pub(super) const TWO_HEARTBEATS_BYTES: usize = 64;

/// What we announce, and when we do it next.
#[derive(Debug)]
pub(super) struct Announcer {
    payload: Payload,
    /// The same, for those who are told in [`Form::Located`].
    brief: Payload,
    sequence_number: SequenceNumber,
    /// Announcements of the burst already sent.
    step: usize,
    pub(super) next: Option<Instant>,
    /// What became of the last announcement to the group.
    echo: Echo,
    random: u64,
}

/// Whether the group works on this host: what we send there, we hear as every neighbour does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Echo {
    /// Nothing was sent there yet.
    Unknown,
    Awaited,
    Heard,
}

impl Announcer {
    pub(super) const fn new(seed: u64) -> Self {
        let sequence_number = SequenceNumber(0);
        Self {
            payload: Payload::empty(),
            brief: Payload::empty(),
            sequence_number,
            step: 0,
            next: None,
            echo: Echo::Unknown,
            random: seed,
        }
    }

    /// New contents are a new change of the announcing writer.
    pub(super) fn set(&mut self, payload: Payload, brief: Payload) {
        (self.payload, self.brief) = (payload, brief);
        self.renumber();
    }

    const fn payload(&self, form: Form) -> &Payload {
        match form {
            Form::Usual | Form::Own | Form::Untyped | Form::Acyclic => &self.payload,
            Form::Located => &self.brief,
        }
    }

    /// What is announced counts as another change.
    pub(super) const fn renumber(&mut self) {
        self.sequence_number = self.sequence_number.next();
    }

    /// Octets of a datagram with the announcement and two HEARTBEATs, at most.
    pub(super) const fn datagram_bytes(&self, form: Form) -> usize {
        DATAGRAM_OVERHEAD + data_overhead(0) + self.payload(form).len() + TWO_HEARTBEATS_BYTES
    }

    pub(super) const fn restart(&mut self) {
        self.step = 0;
    }

    /// Whether the announcement sent now also goes to where participants of this host may listen, because the
    /// group does not reach them: the first after which that is known, the last of the burst, for what is
    /// lost on one host is little, and some later.
    const fn scans(&self, has_group: bool) -> bool {
        let first = match (has_group, self.echo) {
            (false, _) => 0,
            (true, Echo::Awaited) => 1,
            (true, Echo::Unknown | Echo::Heard) => return false,
        };
        let later = self.step > 0 && self.step.is_multiple_of(SCAN_EVERY);
        self.step == first || self.step == ANNOUNCEMENT_BURST_MS.len() || later
    }

    /// Whether it also goes to each participant of this host.
    fn reminds(&self, period: Duration, lease_duration: Duration) -> bool {
        let every = lease_duration.0 / REMINDERS_PER_LEASE / period.max(ANNOUNCEMENT_PERIOD_MIN).0;
        self.step.is_multiple_of(usize::try_from(every).unwrap_or(1).max(1))
    }

    pub(super) fn schedule(&mut self, now: Instant, period: Duration) {
        let interval = ANNOUNCEMENT_BURST_MS
            .get(self.step)
            .map_or_else(|| period.max(ANNOUNCEMENT_PERIOD_MIN), |ms| Duration::from_millis(*ms));
        self.step = self.step.saturating_add(1);
        let spread = interval.0.max(0) as u64 / ANNOUNCEMENT_JITTER_DIVISOR;
        let jitter = self.random() % (2 * spread + 1);
        self.next =
            now.after(Duration(interval.0.saturating_sub(spread as i64).saturating_add(jitter as i64)));
    }

    /// SplitMix64: all that jitter asks for.
    const fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Participant {
    /// Builds the announcement anew: it was never built, or something in it changed.
    pub(super) fn renew_announcement(&mut self) {
        self.announced = Arc::new(self.participant_data());
        let mut data = ParticipantData::clone(&self.announced);
        let mut octets = data.encode();
        // What only tools read is not for everyone.
        let mut properties = self.own_properties();
        if octets.len() + DATAGRAM_OVERHEAD + data_overhead(0) + TWO_HEARTBEATS_BYTES > ANNOUNCEMENT_BYTES_MAX
        {
            // Announcements are never fragmented: better found without extras than not at all.
            data.user_data.clear();
            data.properties.clear();
            properties.clear();
            octets = data.encode();
        }
        let brief = ParticipantData { domain_id: None, lead: None, node_id: None, properties, ..data };
        self.announcer.set(Payload::from_vec(octets), Payload::from_vec(brief.encode()));
    }

    /// Whether the announcement that is due at `now` goes to [`LocalLocators::scan`], which should be up to
    /// date then.
    #[must_use]
    pub fn scans_at(&self, now: Instant) -> bool {
        self.announcer.next.is_some_and(|at| at <= now) && self.announcer.scans(self.has_group())
    }

    /// Where participants of this host may listen now.
    pub fn set_scan(&mut self, places: Vec<Locator>) {
        self.config.locators.scan = places;
    }

    /// Whether announcements go to a group by which we hear our own, and which come back by no other way.
    fn has_group(&self) -> bool {
        let LocalLocators { announce_to, meta_multicast, .. } = &self.config.locators;
        let heard = announce_to.iter().any(|group| meta_multicast.contains(group));
        heard && !announce_to.iter().any(|peer| self.is_own_socket(peer))
    }

    /// Whether a locator leads back to where we hear discovery.
    fn is_own_socket(&self, locator: &Locator) -> bool {
        let mut own = self.config.locators.meta_unicast.iter();
        locator.ip().is_some_and(|ip| self.host.is_own(ip)) && own.any(|own| own.port == locator.port)
    }

    /// Something we sent came back. An announcement to everyone does so by the group alone.
    pub(super) fn on_echo(&mut self, context: &MessageContext, submessage: &EndpointSubmessage<'_>) {
        if let EndpointSubmessage::Data(data) = submessage
            && data.writer == EntityId::SPDP_WRITER
            && context.destination == GuidPrefix::UNKNOWN
        {
            self.announcer.echo = Echo::Heard;
        }
    }

    /// Announces to everyone, and by unicast to those whom that does not reach, or to `all` who are known.
    pub(super) fn announce(&mut self, now: Now, all: bool, out: &mut Outbox) {
        let LocalLocators { announce_to, scan, .. } = &self.config.locators;
        if !announce_to.is_empty() {
            let is_for_others = self.announcer.step == ANNOUNCEMENT_FOR_OTHERS;
            let form = if is_for_others { Form::Located } else { Form::Usual };
            self.compose_announcement_in(form, now, None, announce_to, out).finish();
        }
        if self.announcer.scans(self.has_group()) {
            let is_known = |place: &&Locator| {
                let mut known = self.database.iter().filter_map(|(_, remote)| remote.matched.as_ref());
                known.any(|path| path.locator == **place)
            };
            let places = scan.iter().filter(|place| !self.is_own_socket(place));
            let unknown: Vec<_> = places.filter(|place| !is_known(place)).copied().collect();
            self.send_announcement(now, None, &unknown, out);
        }
        self.announcer.echo = Echo::Awaited;
        let period = self.announce_period();
        let reminds = self.announcer.reminds(period, self.config.lease_duration);
        for (prefix, remote) in self.database.iter() {
            if let Some(path) = remote.announced_at()
                && (all
                    || path.same_host && reminds && !self.group_reaches(now, remote)
                    || !self.hears_announcements(now, remote, &path.locator))
            {
                self.send_announcement(now, Some(prefix), &[path.locator], out);
            }
        }
        self.announcer.schedule(now.mono, period);
    }

    /// How often we announce ourselves. Many participants that have their host for themselves do it more
    /// rarely: little is lost there, its leases bear what is, and newcomers are answered anyway. Others hear
    /// of us as often as ever.
    fn announce_period(&self) -> Duration {
        let ParticipantConfig { announce_period, lease_duration, .. } = self.config;
        let mut host_participants = 1;
        for path in self.database.iter().filter_map(|(_, remote)| remote.matched) {
            if !path.same_host {
                return announce_period;
            }
            host_participants += 1;
        }
        let (parts, of) = ANNOUNCEMENTS_PER_LEASES;
        let shared =
            Duration(announce_period.0.saturating_mul(host_participants) / HOST_PARTICIPANTS_PER_PERIOD);
        announce_period.max(shared.min(Duration(lease_duration.0 / parts * of)))
    }

    /// What reaches us from a neighbour without being addressed to us came as ours reach it.
    pub(super) fn group_reaches(&self, now: Now, remote: &Remote) -> bool {
        let within = self.config.lease_duration.0 / 2;
        remote.heard_openly.is_some_and(|heard| now.mono.since(heard).0 < within)
    }

    /// Announces a change to everyone, again in a burst, and to known participants by unicast, which also
    /// proves our new address to them.
    pub(super) fn announce_change(&mut self, now: Now, out: &mut Outbox) {
        if self.is_present() {
            self.announce_anew(now, true, out);
        }
    }

    /// Announces to everyone, again in a burst, and by unicast to those whom that does not reach, or to `all`
    /// who are known.
    pub(super) fn announce_anew(&mut self, now: Now, all: bool, out: &mut Outbox) {
        self.renew_announcement();
        self.enqueue_participant();
        self.announcer.restart();
        self.announce(now, all, out);
    }

    /// Whether a participant surely gets what goes to `announce_to`.
    fn hears_announcements(&self, now: Now, remote: &Remote, locator: &Locator) -> bool {
        let announce_to = &self.config.locators.announce_to;
        let shares_group = || remote.data.meta_multicast.iter().any(|group| announce_to.contains(group));
        let near = locator.ip().is_some_and(|ip| {
            self.host.is_near(ip) || self.host.shares_network(ip) && self.group_reaches(now, remote)
        });
        // What everyone is told may mean nothing to it.
        let reads = Form::of(&remote.data) != Form::Located;
        reads && (announce_to.contains(locator) || (near && shares_group()))
    }

    pub(super) fn send_announcement(
        &self,
        now: Now,
        to: Option<GuidPrefix>,
        destinations: &[Locator],
        out: &mut Outbox,
    ) {
        if !destinations.is_empty() {
            self.compose_announcement(now, to, destinations, out).finish();
        }
    }

    pub(super) fn compose_announcement<'o>(
        &self,
        now: Now,
        to: Option<GuidPrefix>,
        destinations: &[Locator],
        out: &'o mut Outbox,
    ) -> MessageBuilder<'o> {
        let form = to.and_then(|to| self.database.get(to)).map_or(Form::Usual, |it| Form::of(&it.data));
        self.compose_announcement_in(form, now, to, destinations, out)
    }

    fn compose_announcement_in<'o>(
        &self,
        form: Form,
        now: Now,
        to: Option<GuidPrefix>,
        destinations: &[Locator],
        out: &'o mut Outbox,
    ) -> MessageBuilder<'o> {
        let mut message = out.message(self.config.prefix, destinations, ANNOUNCEMENT_BYTES_MAX);
        message.info_destination(to.unwrap_or(GuidPrefix::UNKNOWN));
        message.info_timestamp(Some(now.wall));
        let is_for_everyone = to.is_none() && form != Form::Located;
        let header = DataHeader {
            reader: if is_for_everyone { EntityId::UNKNOWN } else { EntityId::SPDP_READER },
            writer: EntityId::SPDP_WRITER,
            sequence_number: self.announcer.sequence_number,
            inline_qos: &[],
            key_only: false,
        };
        let fits = message.data(&header, self.announcer.payload(form));
        debug_assert!(fits, "the announcement was made to fit one datagram");
        message
    }

    /// Announces to everyone that we leave.
    pub(super) fn announce_departure(&mut self, now: Now, out: &mut Outbox) {
        self.announcer.renumber();
        let announce_to = &self.config.locators.announce_to;
        if !announce_to.is_empty() {
            self.compose_departure(now, GuidPrefix::UNKNOWN, announce_to, out);
        }
        for (prefix, remote) in self.database.iter() {
            // Once more by unicast: nobody repeats a departure that was lost.
            if let Some(path) = remote.announced_at() {
                self.compose_departure(now, prefix, &[path.locator], out);
            }
        }
    }

    /// We are disposed and unregistered, with the key in both forms (fact 14).
    pub(super) fn compose_departure(
        &self,
        now: Now,
        to: GuidPrefix,
        destinations: &[Locator],
        out: &mut Outbox,
    ) {
        let guid = self.guid();
        let status_info = StatusInfo { disposed: true, unregistered: true, filtered: false };
        let key_hash = Some(KeyHash(guid.to_bytes()));
        let mut inline_qos = Vec::new();
        encode_inline_qos(&InlineQos { status_info, key_hash, ..InlineQos::default() }, &mut inline_qos);
        let header = DataHeader {
            reader: EntityId::UNKNOWN,
            writer: EntityId::SPDP_WRITER,
            sequence_number: self.announcer.sequence_number,
            inline_qos: &inline_qos,
            key_only: true,
        };
        let mut message = out.message(guid.prefix, destinations, ANNOUNCEMENT_BYTES_MAX);
        message.info_destination(to);
        message.info_timestamp(Some(now.wall));
        let fits = message.data(&header, &Payload::from_vec(ParticipantData::encode_key(guid)));
        debug_assert!(fits, "a key fits any datagram");
    }

    /// A DATA of a participant announcer.
    pub(super) fn on_announcement(
        &mut self,
        now: Now,
        context: &MessageContext,
        data: &Data<'_>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        if self.is_heard_by_lead(now, context) {
            return Ok(());
        }
        let inline_qos = data.inline_qos.map(|list| InlineQos::parse(&list)).transpose()?.unwrap_or_default();
        if inline_qos.status_info.disposed || inline_qos.status_info.unregistered {
            return self.on_departure(now, context, data, inline_qos.key_hash, out);
        }
        let is_open = context.destination == GuidPrefix::UNKNOWN;
        if is_open && data.reader == EntityId::SPDP_READER && context.vendor == vendor::PLAINSONG {
            // It says less than the others do.
            return Ok(());
        }
        let announced = ParticipantData::decode(data.payload)?;
        if announced.guid.prefix != context.source {
            return Err(DropReason::SpoofSuspected);
        }
        if announced.domain_id.is_some_and(|domain| domain != self.config.domain.into())
            || announced.domain_tag != self.config.domain_tag
        {
            return Err(DropReason::OtherDomain);
        }
        if self.matching.ignored.has_participant(context.source) {
            return Err(DropReason::Ignored);
        }
        let received = RECEIVED_OVERHEAD_BYTES + data.payload.len();
        let is_new = self.database.get(context.source).is_none();
        if is_new {
            self.discover(now, context, announced, received, out)?;
        } else {
            self.refresh(now, context, announced, received, out)?;
        }
        if is_open {
            self.note_heard_openly(now, context);
        }
        if !self.adopt_proof(now, context.source, out) {
            // Who speaks to us alone knows us; for who has a lead, that one does.
            let has_lead = self.database.get(context.source).is_some_and(|remote| remote.lead().is_some());
            let knows_us = context.destination == self.config.prefix || has_lead;
            if knows_us {
                self.challenge(now, context.source, Challenge::Short, out);
            } else if !self.answers_later(now, context.source, is_new) {
                self.challenge(now, context.source, Challenge::Whole, out);
            }
        }
        Ok(())
    }

    /// Whether a newcomer, which all hear at once, is answered at another time: with the answers of many its
    /// socket would run over.
    fn answers_later(&mut self, now: Now, prefix: GuidPrefix, is_new: bool) -> bool {
        let known = self.database.known();
        if is_new && known > ANSWERED_AT_ONCE {
            let spread = (ANSWER_SPREAD_OF_EACH.0 as u64).saturating_mul(known as u64);
            let due = now.mono.after(Duration((self.announcer.random() % spread) as i64));
            self.database.answer_at(prefix, due);
            return true;
        }
        let due = self.database.get(prefix).and_then(|remote| remote.answer_due);
        due.is_some_and(|due| due > now.mono)
    }

    /// An announcement for everyone came, so ours reach who sent it: a neighbour that is known to speak from
    /// there.
    pub(super) fn note_heard_openly(&mut self, now: Now, context: &MessageContext) {
        if let Some(remote) = self.database.get_mut(context.source)
            && remote.matched.is_none_or(|_| remote.is_at(&context.from, &self.host))
        {
            remote.heard_openly = Some(now.mono);
        }
    }

    /// A participant we did not know.
    fn discover(
        &mut self,
        now: Now,
        context: &MessageContext,
        announced: ParticipantData,
        received: usize,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let is_matched = |prefix| self.is_of_use(prefix);
        let evicted = self.database.victim(&context.from, self.host.sent(&context.from), is_matched);
        if evicted.is_err() {
            self.probe_the_silent(now, out);
        }
        if let Some(evicted) = evicted? {
            self.forget(now, evicted, out);
            self.drops.count(DropReason::DiscoveryLimit);
        }
        let mut remote = Remote::new(now.mono, Arc::new(announced), context.from);
        remote.sift(&self.host, &self.config.limits, &mut self.drops);
        remote.budget.received(received);
        let vendor = remote.data.vendor;
        self.database.insert(context.source, remote);
        if self.audience.hears(vendor) && self.is_present() {
            // It reads names that nobody read before; it gets them with the answer, others in the course of
            // time.
            self.renew_announcement();
        }
        Ok(())
    }

    /// A participant we know: its data is updated in place (fact 25). A change of address waits until the new
    /// one has proven itself and the old one answers no more.
    fn refresh(
        &mut self,
        now: Now,
        context: &MessageContext,
        announced: ParticipantData,
        received: usize,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let Some(remote) = self.database.get_mut(context.source) else { return Ok(()) };
        let is_matched = remote.matched.is_some();
        if is_matched && !remote.keeps_paths(&announced, &self.host) {
            let candidate = match &mut remote.candidate {
                Some(candidate) if *candidate.data == announced && candidate.from == context.from => {
                    candidate
                }
                place => {
                    let mut fresh = Remote::new(now.mono, Arc::new(announced), context.from);
                    fresh.proof.follow(&remote.proof);
                    fresh.proof.follow(place.as_ref().map_or(&remote.proof, |before| &before.proof));
                    fresh.sift(&self.host, &self.config.limits, &mut self.drops);
                    place.insert(Box::new(fresh))
                }
            };
            candidate.budget.received(received);
            return Ok(());
        }
        if is_matched && !remote.is_at(&context.from, &self.host) {
            self.look_for_source(now, context, false, out);
            return Err(DropReason::SpoofSuspected);
        }
        remote.last_heard = now.mono;
        remote.note_certainty(now.mono, &context.from, false, &self.host);
        remote.budget.received(received);
        // Who announces itself is alive, and so are its AUTOMATIC writers (DCPS §2.2.3.11).
        self.matching.assert_liveliness(context.source, LivelinessKind::Automatic, out);
        self.enqueue_alive_heard(context.source, LivelinessKind::Automatic);
        let Some(remote) = self.database.get_mut(context.source) else { return Ok(()) };
        if *remote.data == announced && is_matched {
            return Ok(());
        }
        let came_from = remote.from;
        if !is_matched || remote.data.meta_unicast != announced.meta_unicast {
            remote.from = context.from;
        }
        let changed = *remote.data != announced;
        remote.data = Arc::new(announced);
        // Which of its addresses may be used depends on where it speaks from, too.
        if changed || remote.from != came_from {
            remote.sift(&self.host, &self.config.limits, &mut self.drops);
        }
        if changed {
            self.on_participant_changed(now, context.source, out);
        }
        Ok(())
    }

    /// Something of a known participant changed, already noted in the database.
    pub(super) fn on_participant_changed(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) {
        self.database.reschedule(prefix);
        if self.database.get(prefix).is_some_and(|remote| remote.matched.is_some()) {
            self.connect(now, prefix, out);
            out.events.push(Event::ParticipantChanged { participant: prefix.participant(), alive: true });
        }
    }

    /// A participant says that it leaves. Believed only from an address it is known at (R8). Another socket
    /// of this host may be one of its own: it is asked.
    fn on_departure(
        &mut self,
        now: Now,
        context: &MessageContext,
        data: &Data<'_>,
        key_hash: Option<KeyHash>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let named = match key_hash {
            Some(hash) => Some(Guid::from_bytes(hash.0)),
            None if data.payload.is_empty() => None,
            None => Some(ParticipantData::decode_key(data.payload)?),
        };
        let Some(remote) = self.database.get(context.source) else { return Ok(()) };
        let itself = named.is_none_or(|guid| guid.prefix == context.source);
        let is_known = match remote.matched {
            Some(_) => remote.is_at(&context.from, &self.host),
            None => remote.from.ip() == context.from.ip(),
        };
        if !itself || !is_known {
            if itself && self.host.sent(&context.from) {
                self.probe_peer(now, context.source, out);
            }
            return Err(DropReason::SpoofSuspected);
        }
        self.forget(now, context.source, out);
        Ok(())
    }
}
