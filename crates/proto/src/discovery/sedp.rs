//! Simple Endpoint Discovery Protocol, and the built-in endpoints it shares with liveliness (RTPS 2.5
//! §8.5.4).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::builtin::{EndpointData, ParticipantData, endpoint_key, message_key};
use super::channel::Channel;
use super::config::{DiscoveryError, DiscoveryLimits};
use super::forms::{Copies, Form};
use super::matching::{ENDPOINT_BYTES_MIN, Endpoint};
use super::participant::Participant;
use super::path::Path;
use super::proof::{self, Challenged, NUMBERS_AFTER};
use super::{MatchedReader, MatchedWriter, forms};
use crate::filter::FilterFunction;
use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::instance::{InstanceHandle, Key, KeyFunction};
use crate::malformed::Malformed;
use crate::outbox::{Event, Outbox};
use crate::payload::Payload;
use crate::qos::{Durability, QosSet};
use crate::reader::{CachedSample, CachedSamples, Reader, ReaderConfig, ReaderLimits};
use crate::sample_info::Selector;
use crate::seq::SequenceNumber;
use crate::sources::Sources;
use crate::stats::DropReason;
use crate::time::{Instant, Now};
use crate::tuning::discovery::{
    BUILTIN_HEARTBEAT_LONGEST, BUILTIN_HEARTBEAT_SHORTEST, ENDPOINT_DATA_BYTES_MAX, TYPE_MESSAGES_MAX,
};
use crate::wire::{AckNack, EndpointSubmessage, Heartbeat, MessageContext};
use crate::writer::{ChangeKind, WriteError, Writer, WriterConfig, WriterLimits};

/// What a submessage to a built-in reader led to.
struct News {
    channel: Channel,
    /// A change that we cannot get any more was passed over.
    missed: bool,
    /// Endpoints beyond those that a participant may have.
    surplus: u64,
}

/// A reliable built-in writer and the reader that hears its like.
struct Pair {
    channel: Channel,
    // Boxed: ten of them by value, moved from function to function, would touch 100 kB of stack.
    writer: Box<Writer>,
    reader: Box<Reader>,
    /// Bits of `availableBuiltinEndpoints` by which a participant tells that it has the like.
    writer_bit: u32,
    reader_bit: u32,
    /// The next change of the writer comes after this number: challenges named numbers up to here.
    challenged: SequenceNumber,
}

/// The reliable built-in endpoints of a participant.
pub(super) struct Builtin {
    pairs: [Pair; 5],
    /// With whom there was talk about types: others are not matched on those channels, for most never ask.
    type_peers: BTreeSet<GuidPrefix>,
    samples: CachedSamples,
    /// The forms in which announcements have copies.
    pub(super) copies: Copies,
}

impl Channel {
    fn key(self) -> KeyFunction {
        KeyFunction::new(match self {
            Self::Publications | Self::Subscriptions => endpoint_key,
            Self::Messages => message_key,
            Self::TypeRequests | Self::TypeReplies => no_key,
        })
    }

    /// Whether a submessage is of one of the channels about types.
    fn is_of_types(submessage: &EndpointSubmessage<'_>) -> bool {
        let writer = writer_of(submessage).0;
        Self::ALL.iter().any(|channel| channel.is_about_types() && channel.writer() == writer)
    }

    /// RELIABLE, and TRANSIENT_LOCAL with KEEP_LAST 1 (§8.5.4.2, §8.4.13.3), or VOLATILE for type lookup
    /// requests (XTypes 1.3 §7.6.3.3.3). The standard wants KEEP_ALL there; a bound loses only the oldest of
    /// many.
    fn qos(self) -> QosSet {
        if self.is_about_types() {
            return QosSet::writer().keep_last(TYPE_MESSAGES_MAX);
        }
        QosSet::writer().keep_last(1).durability(Durability::TransientLocal)
    }

    #[inline(never)]
    fn new_writer(self, prefix: GuidPrefix, limits: &DiscoveryLimits) -> Box<Writer> {
        Box::new(Writer::new(WriterConfig {
            guid: prefix.entity(self.writer()),
            keyed: !self.is_about_types(),
            qos: self.qos(),
            // A neighbour that is slow to answer is not to keep others waiting.
            limits: WriterLimits {
                readers_max: limits.participants_max,
                has_congestion_window: false,
                // Participants of a host that start at once answer after a while: what was lost has time.
                heartbeat_shortest: BUILTIN_HEARTBEAT_SHORTEST,
                heartbeat_longest: BUILTIN_HEARTBEAT_LONGEST,
                numbers_after: if self.is_about_types() { SequenceNumber(0) } else { NUMBERS_AFTER },
                ..WriterLimits::default()
            },
            content_filter: self.announces().then(|| FilterFunction::new(forms::compile)),
            group: None,
        }))
    }

    #[inline(never)]
    fn new_reader(self, prefix: GuidPrefix, limits: &DiscoveryLimits) -> Box<Reader> {
        Box::new(Reader::new(ReaderConfig {
            guid: prefix.entity(self.reader()),
            keyed: !self.is_about_types(),
            qos: self.qos(),
            limits: reader_limits(limits),
            key: self.key(),
        }))
    }
}

/// The participant announcer and detector, and all of [`Channel`]: what we announce to have.
pub(super) const AVAILABLE_ENDPOINTS: u32 = 0b11 | 0b11_1100 | 0b11 << 10 | 0b1111 << 12;

/// Who has these serves type lookup requests: the request reader and the reply writer.
const TYPE_SERVICE: u32 = 1 << 13 | 1 << 14;

/// Types of lookups have no key.
fn no_key(_: &[u8], _: bool) -> Result<Key, Malformed> {
    Ok(InstanceHandle::NIL.into())
}

/// Whose built-in endpoints are matched, and where they are reached.
#[derive(Clone, Copy)]
struct Peer {
    prefix: GuidPrefix,
    vendor: [u8; 2],
    form: Form,
    path: Path,
}

impl Peer {
    fn new(prefix: GuidPrefix, data: &ParticipantData, path: Path) -> Self {
        Self { prefix, vendor: data.vendor, form: Form::of(data), path }
    }

    fn writer(self, channel: Channel) -> MatchedWriter {
        MatchedWriter {
            guid: self.prefix.entity(channel.writer()),
            locators: vec![self.path.locator],
            // What comes for built-in endpoints is believed before it comes to them.
            sources: Sources::default(),
            publisher: EntityId::UNKNOWN,
            vendor: self.vendor,
            qos: channel.qos(),
            begins: false,
        }
    }
}

/// As many endpoints as the database has room for, and as many participants.
fn instances_max(limits: &DiscoveryLimits) -> usize {
    (limits.endpoint_bytes_max / ENDPOINT_BYTES_MIN).max(limits.participants_max)
}

/// Samples are taken as they come, so only what is under way is kept.
fn reader_limits(limits: &DiscoveryLimits) -> ReaderLimits {
    ReaderLimits {
        sample_bytes_max: ENDPOINT_DATA_BYTES_MAX,
        reassembly_bytes_max: 16 * ENDPOINT_DATA_BYTES_MAX,
        reorder_bytes_max: 16 * ENDPOINT_DATA_BYTES_MAX,
        cache_bytes_max: 16 * ENDPOINT_DATA_BYTES_MAX,
        writers_max: limits.participants_max,
        // Beyond, the database refuses them, too.
        instances_per_writer_max: limits.endpoints_per_participant_max,
        instances_max: instances_max(limits),
        instances_unlimited_max: instances_max(limits),
        // What an instance that its writer has left means is known only to who unmatched it.
        instances_left_per_call: usize::MAX,
        ..ReaderLimits::default()
    }
}

impl Builtin {
    pub(super) fn new(prefix: GuidPrefix, limits: &DiscoveryLimits) -> Self {
        let pairs = Channel::ALL.map(|channel| {
            let (writer_bit, reader_bit) = channel.bits();
            let (writer, reader) = (channel.new_writer(prefix, limits), channel.new_reader(prefix, limits));
            Pair { channel, writer, reader, writer_bit, reader_bit, challenged: SequenceNumber(0) }
        });
        Self { pairs, type_peers: BTreeSet::new(), samples: CachedSamples::new(), copies: Copies::default() }
    }

    /// Publishes a new state of an instance.
    pub(super) fn write(
        &mut self,
        now: Now,
        channel: Channel,
        kind: ChangeKind,
        instance: InstanceHandle,
        payload: Vec<u8>,
        out: &mut Outbox,
    ) -> Result<(), WriteError> {
        let [publications, subscriptions, messages, requests, replies] = &mut self.pairs;
        let pair = match channel {
            Channel::Publications => publications,
            Channel::Subscriptions => subscriptions,
            Channel::Messages => messages,
            Channel::TypeRequests => requests,
            Channel::TypeReplies => replies,
        };
        pair.writer.leave_out_numbers(pair.challenged);
        quietly(out, |out| pair.writer.write(now, kind, instance, Payload::from_vec(payload), now.wall, out))
            .map(drop)
    }

    /// Matches with the built-in endpoints that a participant has, or tells ours where they are now.
    fn connect(&mut self, now: Now, peer: Peer, available: u32, out: &mut Outbox) {
        let Peer { prefix, path, .. } = peer;
        let talks = self.type_peers.contains(&prefix);
        let has_copies = self.copies.any();
        for pair in self.pairs.iter_mut().filter(|pair| talks || !pair.channel.is_about_types()) {
            let (writer, reader) =
                (prefix.entity(pair.channel.writer()), prefix.entity(pair.channel.reader()));
            // Readers first: their pre-emptive acknowledgements prove our address to the other side.
            if available & pair.writer_bit != 0 {
                let matched = peer.writer(pair.channel);
                quietly(out, |out| pair.reader.match_writer(now, &matched, out));
            } else if pair.reader.is_matched(writer) {
                quietly(out, |out| pair.reader.unmatch_writer(now, writer, out));
            }
            if available & pair.reader_bit != 0 {
                let matched = MatchedReader {
                    guid: reader,
                    locators: vec![path.locator],
                    sources: Sources::default(),
                    urgent: None,
                    expects_inline_qos: false,
                    same_host: path.same_host,
                    receive_bytes: 0,
                    qos: pair.channel.qos(),
                    content_filter: (has_copies && pair.channel.announces()).then(|| peer.form.filter()),
                    begins: false,
                    // Built-in endpoints are durable: nothing is older than they are.
                    skips_to_heartbeat: false,
                    is_of_own_process: false,
                };
                quietly(out, |out| pair.writer.match_reader(now, &matched, out));
            } else {
                quietly(out, |out| pair.writer.unmatch_reader(now, reader, out));
            }
        }
    }

    /// A heartbeat that wants an answer of whoever hears this channel, matched or not.
    pub(super) fn heartbeat(&mut self, channel: Channel) -> Option<Heartbeat> {
        let mut pairs = self.pairs.iter_mut().filter(|pair| pair.channel == channel);
        pairs.next().map(|pair| pair.writer.ack_request(channel.reader()))
    }

    /// The heartbeats that challenge with these numbers.
    pub(super) fn challenges(&mut self, challenged: &Challenged) -> Vec<Heartbeat> {
        let channels = [Channel::Publications, Channel::Subscriptions];
        let numbers = channels.into_iter().zip(challenged);
        let challenged: Vec<_> =
            numbers.filter_map(|(channel, number)| Some((channel, (*number)?))).collect();
        for (channel, first) in &challenged {
            let mut pairs = self.pairs.iter_mut().filter(|pair| pair.channel == *channel);
            if let Some(pair) = pairs.next().filter(|pair| *first > pair.writer.last_number()) {
                pair.challenged = proof::after_challenges(pair.writer.last_number());
            }
        }
        challenged
            .into_iter()
            .filter_map(|(channel, first)| {
                Some(Heartbeat { first, last: first.previous(), ..self.heartbeat(channel)? })
            })
            .collect()
    }

    /// The numbers of the last changes of endpoints.
    pub(super) fn last_numbers(&self) -> [SequenceNumber; 2] {
        let [publications, subscriptions, ..] = &self.pairs;
        [publications.writer.last_number(), subscriptions.writer.last_number()]
    }

    /// Whether a participant has acknowledged all that was told of endpoints.
    pub(super) fn is_in_step(&self, prefix: GuidPrefix) -> bool {
        let announcing = self.pairs.iter().filter(|pair| pair.channel.announces());
        announcing
            .filter_map(|pair| pair.writer.is_in_step(prefix.entity(pair.channel.reader())))
            .all(|it| it)
    }

    /// Whether the reader of an ACKNACK has all that was told of endpoints on its channel.
    pub(super) fn has_all(&self, acknack: &AckNack) -> bool {
        let mut announcing = self.pairs.iter().filter(|pair| pair.channel.announces());
        announcing.any(|pair| {
            pair.channel.writer() == acknack.writer && acknack.missing.base() > pair.writer.last_number()
        })
    }

    /// Whether it names a number that no change has, nor will have, but a challenge may have named.
    pub(super) fn is_beyond(&self, acknack: &AckNack) -> bool {
        let base = acknack.missing.base();
        let mut announcing = self.pairs.iter().filter(|pair| pair.channel.announces());
        announcing.any(|pair| {
            pair.channel.writer() == acknack.writer
                && base > pair.writer.last_number().next()
                && base <= pair.challenged
        })
    }

    /// Has everything announced again on one channel.
    fn request_again(&mut self, now: Now, peer: Peer, channel: Channel, out: &mut Outbox) {
        for pair in self.pairs.iter_mut().filter(|pair| pair.channel == channel) {
            let matched = peer.writer(channel);
            quietly(out, |out| pair.reader.rematch_writer(now, &matched, out));
            // That its instances lost their writer is no news here.
            pair.reader.take(now, &Selector::default(), &mut self.samples);
            self.samples.clear();
        }
    }

    /// Whether a participant has told all that it had to tell on a channel.
    fn has_all_of(&self, prefix: GuidPrefix, channel: Channel) -> bool {
        let mut pairs = self.pairs.iter().filter(|pair| pair.channel == channel);
        pairs.any(|pair| pair.reader.has_history_of(prefix.entity(channel.writer())))
    }

    pub(super) fn disconnect(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) {
        self.type_peers.remove(&prefix);
        for pair in &mut self.pairs {
            let (writer, reader) =
                (prefix.entity(pair.channel.writer()), prefix.entity(pair.channel.reader()));
            quietly(out, |out| pair.reader.unmatch_writer(now, writer, out));
            quietly(out, |out| pair.writer.unmatch_reader(now, reader, out));
            // That its instances lost their writer is no news here.
            pair.reader.take(now, &Selector::default(), &mut self.samples);
            self.samples.clear();
        }
    }

    /// Hands a submessage to the built-in endpoint it concerns.
    fn on_submessage(
        &mut self,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    ) -> Result<Option<News>, DropReason> {
        let (writer, to_reader) = writer_of(submessage);
        let pair = self.pairs.iter_mut().find(|pair| pair.channel.writer() == writer);
        let Some(Pair { channel, writer, reader, .. }) = pair else {
            return Err(DropReason::UnknownEndpoint);
        };
        let peer = context.source.entity(channel.writer());
        let missed_before = reader.last_missed(peer);
        let refused = |reader: &Reader| reader.drops().get(DropReason::ResourceLimit);
        let refused_before = refused(reader);
        quietly(out, |out| match submessage {
            EndpointSubmessage::AckNack(acknack) => {
                writer.on_acknack(now, context.sender(acknack.reader), acknack, out)
            }
            EndpointSubmessage::NackFrag(nack) => {
                writer.on_nack_frag(now, context.sender(nack.reader), nack, out)
            }
            of_writer => reader.on_submessage(now, context, of_writer, out),
        })?;
        let missed = channel.announces() && reader.last_missed(peer) != missed_before;
        let surplus = refused(reader) - refused_before;
        Ok(to_reader.then_some(News { channel: *channel, missed, surplus }))
    }

    /// A participant was heard.
    pub(super) fn heard(&mut self, now: Instant, prefix: GuidPrefix) {
        for pair in &mut self.pairs {
            pair.reader.writer_participant_heard(now, prefix.entity(pair.channel.writer()));
        }
    }

    /// Everything a reader has, in order.
    fn take(&mut self, now: Now, channel: Channel) -> CachedSamples {
        let mut samples = std::mem::take(&mut self.samples);
        samples.clear();
        if let Some(pair) = self.pairs.iter_mut().find(|pair| pair.channel == channel) {
            pair.reader.take(now, &Selector::default(), &mut samples);
        }
        samples
    }

    pub(super) fn timeout(&mut self, now: Now, out: &mut Outbox) {
        for pair in &mut self.pairs {
            quietly(out, |out| pair.writer.timeout(now, out));
            quietly(out, |out| pair.reader.timeout(now, out));
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let timeouts =
            self.pairs.iter().flat_map(|pair| [pair.writer.next_timeout(), pair.reader.next_timeout()]);
        timeouts.flatten().min()
    }
}

impl Participant {
    /// A submessage of a reliable built-in endpoint.
    pub(super) fn on_builtin(
        &mut self,
        now: Now,
        context: &MessageContext,
        submessage: &EndpointSubmessage<'_>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        if Channel::is_of_types(submessage) {
            self.talk_about_types(now, context.source, out);
        }
        let Some(news) = self.builtin.on_submessage(now, context, submessage, out)? else {
            return Ok(());
        };
        let News { channel, missed, surplus } = news;
        self.drops.count_many(DropReason::DiscoveryLimit, surplus);
        self.drain(now, channel, out);
        if missed {
            self.request_again(now, context.source, channel, out);
        }
        self.forget_unconfirmed(context.source, channel, out);
        Ok(())
    }

    /// Acts on what a built-in reader received.
    pub(super) fn drain(&mut self, now: Now, channel: Channel, out: &mut Outbox) {
        let mut samples = self.builtin.take(now, channel);
        for sample in samples.iter() {
            let handled = match channel {
                Channel::Publications | Channel::Subscriptions => self.on_endpoint(channel, sample, out),
                Channel::Messages => self.on_participant_message(now, sample, out),
                Channel::TypeRequests => self.on_type_request(now, sample, out),
                Channel::TypeReplies => self.on_type_reply(sample, out),
            };
            if let Err(reason) = handled {
                self.drops.count(reason);
            }
        }
        samples.clear();
        self.builtin.samples = samples;
    }

    /// A remote participant announced or withdrew one of its endpoints.
    fn on_endpoint(
        &mut self,
        channel: Channel,
        sample: &CachedSample,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let announcer = Guid::from_bytes(sample.info.publication_handle.0).prefix;
        let Some(remote) = self.database.get(announcer) else { return Ok(()) };
        if !sample.info.valid_data {
            let guid = Guid::from_bytes(sample.info.instance_handle.0);
            if guid.prefix != announcer {
                return Err(DropReason::SpoofSuspected);
            }
            self.enqueue_endpoint_heard_gone(guid);
            self.forget_endpoint(guid, out);
            return Ok(());
        }
        let announced = EndpointData::decode(sample.payload.as_slice(), remote.data.vendor)?;
        let guid = announced.guid;
        let is_writer = channel == Channel::Publications;
        if guid.prefix != announcer {
            return Err(DropReason::SpoofSuspected);
        }
        if guid.entity.is_builtin()
            || guid.entity.is_writer() != is_writer
            || guid.entity.is_reader() == is_writer
        {
            return Err(DropReason::Malformed);
        }
        self.drops.count_many(DropReason::Unreachable, announced.unreached.into());
        let path = remote.endpoint_path(
            &announced.unicast,
            &announced.multicast,
            &self.host,
            &self.config.limits,
            &mut self.drops,
        );
        let endpoint = Arc::new(Endpoint {
            vendor: remote.data.vendor,
            topic: announced.topic_name,
            type_name: announced.type_name,
            qos: announced.qos,
            unicast: announced.unicast,
            multicast: announced.multicast,
            path,
            receive_bytes: announced.receive_bytes,
            expects_inline_qos: announced.expects_inline_qos,
            group: announced.group,
            content_filter: announced.content_filter,
            type_ids: announced.type_information.map(|it| it.ids()).unwrap_or_default(),
            knows_our_types: remote.data.reads_types(),
            description: None,
            process_types: None,
        });
        self.enqueue_endpoint_heard(guid, &endpoint);
        self.admit(guid, endpoint, out)
    }

    /// Takes over what is known of an endpoint of another participant now.
    pub(super) fn admit(
        &mut self,
        guid: Guid,
        endpoint: Arc<Endpoint>,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let ignored = &self.matching.ignored;
        if ignored.has(guid) || ignored.has_topic(&endpoint.topic) {
            return Err(DropReason::Ignored);
        }
        let before = self.matching.get(guid).map(Endpoint::bytes);
        self.database.admit_endpoint(guid.prefix, before, endpoint.bytes())?;
        self.database.confirm_endpoint(guid);
        if self.matching.get(guid).is_none_or(|known| known.differs(&endpoint)) {
            out.events.push(Event::EndpointChanged { endpoint: guid });
        }
        self.matching.insert(guid, endpoint, out);
        Ok(())
    }

    /// Forgets a remote endpoint.
    pub(super) fn forget_endpoint(&mut self, guid: Guid, out: &mut Outbox) {
        let Some(bytes) = self.matching.get(guid).map(Endpoint::bytes) else { return };
        self.database.release_endpoint(guid.prefix, bytes);
        self.database.confirm_endpoint(guid);
        self.matching.remove(guid, out);
        out.events.push(Event::EndpointChanged { endpoint: guid });
    }

    /// The endpoints of a participant are reached at its new path, where one is proven.
    pub(super) fn resolve_endpoints(&mut self, prefix: GuidPrefix, out: &mut Outbox) {
        let Some(remote) = self.database.get(prefix) else { return };
        let paths: Vec<_> = self
            .matching
            .of(prefix)
            .map(|(guid, endpoint)| {
                let (unicast, multicast) = (&endpoint.unicast, &endpoint.multicast);
                let path = remote.endpoint_path(
                    unicast,
                    multicast,
                    &self.host,
                    &self.config.limits,
                    &mut self.drops,
                );
                (guid, path)
            })
            .filter(|(_, path)| !path.locators.is_empty())
            .collect();
        for (guid, path) in paths {
            self.matching.set_path(guid, path, out);
        }
    }

    /// Announces a local endpoint.
    pub(super) fn publish(
        &mut self,
        now: Now,
        guid: Guid,
        endpoint: &Arc<Endpoint>,
        out: &mut Outbox,
    ) -> Result<(), DiscoveryError> {
        let data = forms::announced(guid, endpoint);
        self.withhold(now, guid, endpoint, out);
        self.builtin
            .write(now, Channel::of(guid), ChangeKind::Alive, guid.into(), data.encode(), out)
            .and_then(|()| self.publish_copies(now, guid, endpoint, out))
            .map_err(|_| DiscoveryError::OutOfResources(guid))?;
        self.enqueue_endpoint(guid, endpoint);
        Ok(())
    }

    /// Withdraws a local endpoint: disposed and unregistered.
    pub(super) fn withdraw(&mut self, now: Now, guid: Guid, out: &mut Outbox) {
        self.enqueue_endpoint_gone(guid);
        let key = EndpointData::encode_key(guid);
        // The history keeps one change of each instance: there is room for its last.
        let _ =
            self.builtin.write(now, Channel::of(guid), ChangeKind::DisposeUnregister, guid.into(), key, out);
        self.withdraw_copies(now, guid, out);
    }

    /// Matches the built-in endpoints of a proven participant, and tells user endpoints where theirs are.
    pub(super) fn connect(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) {
        let Some(remote) = self.database.get_mut(prefix) else { return };
        // While a new address proves itself, the old one stays in use.
        let Some(path) = remote.proven_meta(&self.host).or(remote.matched) else { return };
        self.database.set_matched(prefix, path);
        // It has proven itself meanwhile, and so nothing is left as a rule.
        self.finish_forgetting(prefix, out);
        let Some(remote) = self.database.get(prefix) else { return };
        let available = remote.data.builtin_endpoints;
        self.matching.lookups.set_service(prefix, available & TYPE_SERVICE == TYPE_SERVICE);
        let form = Form::of(&remote.data);
        self.provide(now, form, out);
        self.reconnect(now, prefix, out);
        self.review_link(now, prefix, out);
        self.resolve_endpoints(prefix, out);
        self.enqueue_participant_heard(prefix);
    }

    /// Notifies our built-in endpoints of what changed for those of a participant.
    pub(super) fn reconnect(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) {
        if let Some(remote) = self.database.get(prefix)
            && let Some(path) = remote.matched
        {
            let peer = Peer::new(prefix, &remote.data, path);
            let (lead, is_heard_by_lead) = (remote.lead(), remote.is_heard_by_lead);
            // What a lead hears for others they do not hear themselves.
            let deaf = if lead.is_some() { Channel::readers_of_lead() } else { 0 };
            let unheard = if is_heard_by_lead { Channel::writers_for_lead() } else { 0 };
            self.builtin.connect(now, peer, remote.data.builtin_endpoints & !deaf & !unheard, out);
        }
    }

    /// Matches the endpoints for type lookup requests with those of a participant, as the first request is
    /// due or came.
    pub(super) fn talk_about_types(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) {
        let Some(remote) = self.database.get(prefix) else { return };
        if remote.heard_by_wire().is_some() && self.builtin.type_peers.insert(prefix) {
            self.reconnect(now, prefix, out);
        }
    }

    /// We missed a change of a participant's endpoints: it lost us for a while and we did not notice, or
    /// it changed them faster than it could tell. What it withdrew nobody will tell us any more, so it
    /// has to tell again what it has.
    fn request_again(&mut self, now: Now, prefix: GuidPrefix, channel: Channel, out: &mut Outbox) {
        let Some(remote) = self.database.get_mut(prefix) else { return };
        let Some(path) = remote.matched else { return };
        let peer = Peer::new(prefix, &remote.data, path);
        let announced = self.matching.of(prefix).map(|(guid, _)| guid);
        remote.unconfirmed.extend(announced.filter(|guid| Channel::of(*guid) == channel));
        self.builtin.request_again(now, peer, channel, out);
    }

    /// What our built-in endpoints were told by a participant, and what they told it, was somebody else's:
    /// when they are connected again, both tell again what they have.
    pub(super) fn begin_anew(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) {
        if let Some(remote) = self.database.get_mut(prefix) {
            remote.unconfirmed.extend(self.matching.of(prefix).map(|(guid, _)| guid));
            self.builtin.disconnect(now, prefix, out);
        }
    }

    /// Once a participant has told again what it has, the rest is forgotten.
    fn forget_unconfirmed(&mut self, prefix: GuidPrefix, channel: Channel, out: &mut Outbox) {
        let Some(remote) = self.database.get_mut(prefix).filter(|remote| !remote.unconfirmed.is_empty())
        else {
            return;
        };
        if self.builtin.has_all_of(prefix, channel) {
            let gone: Vec<Guid> = remote.unconfirmed.iter().copied().collect();
            for guid in gone.into_iter().filter(|guid| Channel::of(*guid) == channel) {
                self.enqueue_endpoint_heard_gone(guid);
                self.forget_endpoint(guid, out);
            }
        }
    }
}

/// The writer that a submessage is of or for, and whether it is of it.
const fn writer_of(submessage: &EndpointSubmessage<'_>) -> (EntityId, bool) {
    match submessage {
        EndpointSubmessage::Data(data) => (data.writer, true),
        EndpointSubmessage::DataFrag(data) => (data.writer, true),
        EndpointSubmessage::Heartbeat(heartbeat) => (heartbeat.writer, true),
        EndpointSubmessage::HeartbeatFrag(heartbeat) => (heartbeat.writer, true),
        EndpointSubmessage::Gap(gap) => (gap.writer, true),
        EndpointSubmessage::AckNack(acknack) => (acknack.writer, false),
        EndpointSubmessage::NackFrag(nack) => (nack.writer, false),
    }
}

/// Runs a built-in endpoint; its events concern nobody outside.
fn quietly<R>(out: &mut Outbox, act: impl FnOnce(&mut Outbox) -> R) -> R {
    let events = out.events.len();
    let result = act(out);
    out.events.truncate(events);
    result
}
