//! Who matches whom: an index by topic, the verdict on each pair, and the commands that follow from it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::endpoint::{RemoteEndpoint, all_of};
use super::groups::Groups;
use super::ignore::Ignored;
use super::path::EndpointPath;
use super::type_lookup::{Lookups, TypeRelation};
use crate::filter::ContentFilter;
use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::locator::Locator;
use crate::matched::{Command, MatchedReader, MatchedWriter};
use crate::outbox::{Event, Outbox};
use crate::policy_id::PolicyId;
use crate::qos::{AccessScope, LivelinessKind, QosSet, rxo};
use crate::shrink::Freed;
use crate::time::{Duration, Instant};
use crate::tuning::discovery::ENDPOINT_ALLOCATIONS;
use crate::types::library::{ProcessTypes, TypeLibrary, TypeLimits};
use crate::types::{TypeDescription, TypeIds};
use crate::vendor;
use crate::wire::GroupDigest;

/// Why two endpoints of the same topic do not match.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum MismatchReason {
    /// The registered type names differ.
    TypeName,
    /// The reader matches only with type information (XTypes 1.3 §7.6.3.4.2), and there is none.
    TypeInformation,
    /// The reader's type is not assignable from the writer's (XTypes 1.3 §7.2.4), though their names are
    /// equal.
    TypeDefinition,
    /// One has a key, the other has not.
    KeyKind,
    /// No partition in common.
    Partition,
    /// Requested and offered QoS are incompatible: DCPS policy ids.
    Qos(Vec<PolicyId>),
    /// No locator of the remote endpoint may be used.
    NoUsableLocator,
}

/// A user endpoint, local or remote, as far as matching is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// Of its participant.
    pub(super) vendor: [u8; 2],
    pub(super) topic: String,
    pub(super) type_name: String,
    pub(super) qos: QosSet,
    /// Locators it announced itself; empty when its participant's apply.
    pub(super) unicast: Vec<Locator>,
    pub(super) multicast: Vec<Locator>,
    /// Where we send to it.
    pub(super) path: EndpointPath,
    /// What its socket holds; 0 when unknown.
    pub(super) receive_bytes: u32,
    pub(super) expects_inline_qos: bool,
    /// Its publisher or subscriber; UNKNOWN unless told.
    pub(super) group: EntityId,
    pub(super) content_filter: Option<ContentFilter>,
    /// The hashes of its type, where it told them.
    pub(super) type_ids: TypeIds,
    /// Its participant is told our types, so that it comes to the same verdict.
    pub(super) knows_our_types: bool,
    /// The type of one of this process, and what it consists of.
    pub(super) description: Option<Arc<TypeDescription>>,
    pub(super) process_types: Option<ProcessTypes>,
}

/// All endpoints the participant knows, and the state of each pair with a local member.
#[derive(Debug)]
pub(super) struct Matching {
    pub(super) own: GuidPrefix,
    mismatches_max: usize,
    mismatches: usize,
    endpoints: BTreeMap<Guid, Known>,
    topics: BTreeMap<String, Topic>,
    groups: Groups,
    /// By writer and reader.
    pairs: BTreeMap<(Guid, Guid), Pair>,
    /// Writers whose liveliness is asserted by participant messages.
    leased: BTreeSet<Guid>,
    revision: u64,
    /// What the application ignores.
    pub(super) ignored: Ignored,
    /// The types of endpoints, and who is asked about them.
    pub(super) types: TypeLibrary,
    pub(super) lookups: Lookups,
    freed: Freed,
    /// Participants whose endpoints are not to be matched yet.
    held: BTreeSet<GuidPrefix>,
}

/// What remembering an endpoint costs at least, in octets.
pub(super) const ENDPOINT_BYTES_MIN: usize = size_of::<Known>() + size_of::<Endpoint>();

#[derive(Debug)]
struct Known {
    endpoint: Arc<Endpoint>,
    /// Differs whenever what the other side of a match must know has changed.
    revision: u64,
}

#[derive(Debug, Default)]
struct Topic {
    writers: BTreeSet<Guid>,
    readers: BTreeSet<Guid>,
}

#[derive(Debug, PartialEq, Eq)]
enum Pair {
    Matched {
        writer_revision: u64,
        reader_revision: u64,
    },
    Mismatch(MismatchReason),
    /// The type of the other participant is asked for, or its endpoints are held.
    Undecided,
}

impl Topic {
    /// The endpoints `guid` could match: everyone's for one of `own`, its own for a remote one. Who tells
    /// others something is not told it.
    fn counterparts(&self, guid: Guid, own: GuidPrefix) -> Vec<Guid> {
        let others = if guid.entity.is_writer() { &self.readers } else { &self.writers };
        if guid.prefix == own {
            let is_itself = |it: &Guid| it.prefix == own && it.entity.is_counterpart(guid.entity);
            others.iter().copied().filter(|it| !is_itself(it)).collect()
        } else {
            others.range(all_of(own)).copied().collect()
        }
    }
}

impl Matching {
    pub(super) fn new(own: GuidPrefix, mismatches_max: usize, types: TypeLimits) -> Self {
        Self {
            own,
            mismatches_max,
            mismatches: 0,
            endpoints: BTreeMap::new(),
            topics: BTreeMap::new(),
            groups: Groups::default(),
            pairs: BTreeMap::new(),
            leased: BTreeSet::new(),
            revision: 0,
            ignored: Ignored::new(),
            types: TypeLibrary::new(types),
            lookups: Lookups::default(),
            freed: Freed::default(),
            held: BTreeSet::new(),
        }
    }

    pub(super) fn get(&self, guid: Guid) -> Option<&Endpoint> {
        self.endpoints.get(&guid).map(|known| &*known.endpoint)
    }

    /// The endpoints of one participant, in order.
    pub(super) fn of(&self, prefix: GuidPrefix) -> impl Iterator<Item = (Guid, &Endpoint)> + '_ {
        self.shared_of(prefix).map(|(guid, endpoint)| (guid, &**endpoint))
    }

    /// The same, to be shared with others of this process.
    pub(super) fn shared_of(&self, prefix: GuidPrefix) -> impl Iterator<Item = (Guid, &Arc<Endpoint>)> + '_ {
        self.endpoints.range(all_of(prefix)).map(|(guid, known)| (*guid, &known.endpoint))
    }

    /// All endpoints, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Guid, &Endpoint)> + '_ {
        self.endpoints.iter().map(|(guid, known)| (*guid, &*known.endpoint))
    }

    /// Writer, reader and reason of each pair that does not match.
    pub(super) fn mismatches(&self) -> impl Iterator<Item = (Guid, Guid, &MismatchReason)> + '_ {
        self.pairs.iter().filter_map(|((writer, reader), pair)| match pair {
            Pair::Mismatch(reason) => Some((*writer, *reader, reason)),
            Pair::Matched { .. } | Pair::Undecided => None,
        })
    }

    /// Why a pair does not match, when it does not.
    pub(super) fn reason(&self, writer: Guid, reader: Guid) -> Option<&MismatchReason> {
        match self.pairs.get(&(writer, reader))? {
            Pair::Mismatch(reason) => Some(reason),
            Pair::Matched { .. } | Pair::Undecided => None,
        }
    }

    /// Whether a pair with a local member matches; `None` while that is undecided.
    pub(super) fn is_matched(&self, writer: Guid, reader: Guid) -> Option<bool> {
        match self.pairs.get(&(writer, reader))? {
            Pair::Matched { .. } => Some(true),
            Pair::Mismatch(_) => Some(false),
            Pair::Undecided => None,
        }
    }

    /// Each writer of each topic with each of its readers.
    pub(super) fn pairs_of_topics(&self) -> impl Iterator<Item = (Guid, Guid)> + '_ {
        self.topics.values().flat_map(|topic| {
            let with_all = |writer| topic.readers.iter().map(move |reader| (writer, *reader));
            topic.writers.iter().copied().flat_map(with_all)
        })
    }

    /// The writers and readers of each topic that has both.
    pub(super) fn shared_topics(&self) -> impl Iterator<Item = impl Iterator<Item = Guid> + '_> + '_ {
        let shared = self.topics.values().filter(|topic| !topic.writers.is_empty());
        let shared = shared.filter(|topic| !topic.readers.is_empty());
        shared.map(|topic| topic.writers.iter().chain(&topic.readers).copied())
    }

    /// Adds an endpoint or replaces what is known of it, and judges its pairs anew.
    pub(super) fn insert(&mut self, guid: Guid, endpoint: Arc<Endpoint>, out: &mut Outbox) {
        match self.endpoints.get(&guid) {
            Some(known) if Arc::ptr_eq(&known.endpoint, &endpoint) || known.endpoint == endpoint => return,
            // A topic cannot change its name: what comes now is another endpoint.
            Some(known) if known.endpoint.topic != endpoint.topic => self.remove(guid, out),
            _ => {}
        }
        let topic = match self.topics.get_mut(&endpoint.topic) {
            Some(topic) => topic,
            None => self.topics.entry(endpoint.topic.clone()).or_default(),
        };
        if guid.entity.is_writer() {
            topic.writers.insert(guid)
        } else {
            topic.readers.insert(guid)
        };
        let counterparts = topic.counterparts(guid, self.own);
        if guid.entity.is_writer() && is_leased(&endpoint.qos) {
            self.leased.insert(guid);
        } else {
            self.leased.remove(&guid);
        }
        let publisher = endpoint.publisher(guid);
        let before = self.get(guid).and_then(|known| known.publisher(guid));
        if let Some(before) = before.filter(|before| Some(*before) != publisher) {
            self.groups.remove(before, guid);
            self.notify_group(before, None, out);
        }
        if let Some(publisher) = publisher {
            self.groups.add(publisher, guid);
        }
        self.revision += 1;
        let is_new = self.endpoints.insert(guid, Known { endpoint, revision: self.revision }).is_none();
        // The others do not know it yet: what it told them now they would not hear.
        let newcomer = Some(guid).filter(|guid| is_new && guid.prefix == self.own);
        for other in counterparts {
            self.match_pair(guid, other, newcomer, out);
        }
        self.notify_groups_of(guid, out);
    }

    /// Matches all pairs of an endpoint anew.
    pub(super) fn rematch_endpoint(&mut self, guid: Guid, out: &mut Outbox) {
        let Some(endpoint) = self.get(guid) else { return };
        for other in self.counterparts(guid, &endpoint.topic) {
            self.match_pair(guid, other, None, out);
        }
        self.notify_groups_of(guid, out);
    }

    /// Endpoints of a participant are not matched from now on, or may be. Whether they were not until now.
    pub(super) fn hold(&mut self, prefix: GuidPrefix, is_held: bool) -> bool {
        if is_held {
            self.held.insert(prefix);
        }
        !is_held && self.held.remove(&prefix)
    }

    /// Matches those endpoints of a participant that were held.
    pub(super) fn match_held(&mut self, prefix: GuidPrefix, out: &mut Outbox) {
        let guids: Vec<Guid> = self.of(prefix).map(|(guid, _)| guid).collect();
        guids.into_iter().for_each(|guid| self.rematch_endpoint(guid, out));
    }

    /// Changes where an endpoint is reached; its matches are notified.
    pub(super) fn set_path(&mut self, guid: Guid, path: EndpointPath, out: &mut Outbox) {
        let Some(known) = self.endpoints.get(&guid) else { return };
        if known.endpoint.path == path {
            return;
        }
        let endpoint = Arc::new(Endpoint { path, ..(*known.endpoint).clone() });
        self.insert(guid, endpoint, out);
    }

    /// Forgets an endpoint; its matches are undone. A local one gets no commands itself.
    pub(super) fn remove(&mut self, guid: Guid, out: &mut Outbox) {
        let Some(known) = self.endpoints.remove(&guid) else { return };
        self.leased.remove(&guid);
        self.freed.note(ENDPOINT_ALLOCATIONS);
        if self.freed.take() {
            out.events.push(Event::MemoryFreed);
        }
        let publisher = known.endpoint.publisher(guid);
        let topic_name = &known.endpoint.topic;
        for other in self.counterparts(guid, topic_name) {
            let key = if guid.entity.is_writer() { (guid, other) } else { (other, guid) };
            match self.pairs.remove(&key) {
                Some(Pair::Matched { .. }) => self.notify_unmatched(other, guid, out),
                Some(Pair::Mismatch(_)) => {
                    self.mismatches -= 1;
                    notify_mismatch(key.0, key.1, false, out);
                }
                Some(Pair::Undecided) | None => {}
            }
        }
        if let Some(topic) = self.topics.get_mut(topic_name) {
            topic.writers.remove(&guid);
            topic.readers.remove(&guid);
            if topic.writers.is_empty() && topic.readers.is_empty() {
                self.topics.remove(topic_name);
            }
        }
        if let Some(publisher) = publisher {
            self.groups.remove(publisher, guid);
            self.notify_group(publisher, None, out);
        }
    }

    /// An endpoint is new or changed. A writer changes what all readers that are matched with its publisher
    /// are notified of that; a reader is told of the publishers of all its writers.
    fn notify_groups_of(&mut self, guid: Guid, out: &mut Outbox) {
        if guid.entity.is_writer() {
            if let Some(publisher) = self.get(guid).and_then(|endpoint| endpoint.publisher(guid)) {
                self.notify_group(publisher, None, out);
            }
            return;
        }
        if guid.prefix != self.own {
            return;
        }
        let topic = self.get(guid).and_then(|endpoint| self.topics.get(&endpoint.topic));
        let writers = topic.into_iter().flat_map(|topic| &topic.writers);
        let publishers: BTreeSet<Guid> =
            writers.filter_map(|writer| self.get(*writer)?.publisher(*writer)).collect();
        for publisher in publishers {
            self.notify_group(publisher, Some(guid), out);
        }
    }

    /// Notifies local readers, or `only` one, that are matched with a publisher of the writers that it has;
    /// of a publisher with many writers later, lest each of them cost as much as all.
    fn notify_group(&mut self, publisher: Guid, only: Option<Guid>, out: &mut Outbox) {
        if self.groups.notifies_at_once(publisher) {
            self.notify_group_now(publisher, only, out);
        }
    }

    /// Notifies of the publishers that changed, when it is time to.
    pub(super) fn groups_timeout(&mut self, now: Instant, out: &mut Outbox) {
        for publisher in self.groups.take_due(now) {
            self.notify_group_now(publisher, None, out);
        }
    }

    pub(super) fn groups_next_timeout(&self) -> Option<Instant> {
        self.groups.next_timeout()
    }

    fn notify_group_now(&self, publisher: Guid, only: Option<Guid>, out: &mut Outbox) {
        let writers: Vec<(Guid, &str)> = self
            .groups
            .writers(publisher)
            .filter_map(|writer| Some((writer, self.get(writer)?.topic.as_str())))
            .collect();
        let mut readers: BTreeSet<Guid> = BTreeSet::new();
        for (writer, topic) in &writers {
            let Some(topic) = self.topics.get(*topic) else { continue };
            let local = topic.readers.range(only.map_or_else(|| all_of(self.own), |only| only..=only));
            let local = local.filter(|reader| reader.prefix == self.own);
            readers.extend(
                local.filter(|reader| {
                    matches!(self.pairs.get(&(*writer, **reader)), Some(Pair::Matched { .. }))
                }),
            );
        }
        let digest = GroupDigest::of(writers.iter().map(|(writer, _)| writer.entity));
        for reader in readers {
            out.commands.push(Command::GroupWriters { reader: reader.entity, publisher, writers: digest });
        }
    }

    /// Up to so many endpoints of a participant, and whether they are all.
    pub(super) fn some_of(&self, prefix: GuidPrefix, most: usize) -> (Vec<Guid>, bool) {
        let mut guids = self.endpoints.range(all_of(prefix)).map(|(guid, _)| *guid);
        let some = guids.by_ref().take(most).collect();
        (some, guids.next().is_none())
    }

    /// Forgets endpoints of a participant that is gone.
    pub(super) fn remove_gone(&mut self, prefix: GuidPrefix, guids: &[Guid], out: &mut Outbox) {
        // None of its writers stays matched: nobody needs to know which others are left meanwhile.
        self.groups.remove_all(prefix);
        for guid in guids {
            self.remove(*guid, out);
        }
    }

    /// Liveliness of one kind was asserted by a participant: its writers of that kind live.
    pub(super) fn assert_liveliness(&self, prefix: GuidPrefix, kind: LivelinessKind, out: &mut Outbox) {
        for writer in self.leased.range(all_of(prefix)) {
            let Some(endpoint) = self.get(*writer) else { continue };
            let Some(topic) = self.topics.get(&endpoint.topic) else { continue };
            if endpoint.qos.liveliness.kind != kind {
                continue;
            }
            if prefix == self.own && kind == LivelinessKind::ManualByParticipant {
                out.commands.push(Command::WriterAsserted { writer: writer.entity });
            }
            for reader in topic.readers.range(all_of(self.own)) {
                if let Some(Pair::Matched { .. }) = self.pairs.get(&(*writer, *reader)) {
                    out.commands.push(Command::WriterAlive { reader: reader.entity, writer: *writer });
                }
            }
        }
    }

    /// The shortest lease among one participant's writers of one liveliness kind.
    pub(super) fn shortest_lease(&self, prefix: GuidPrefix, kind: LivelinessKind) -> Option<Duration> {
        let writers = self.leased.range(all_of(prefix)).filter_map(|guid| self.get(*guid));
        writers
            .map(|writer| writer.qos.liveliness)
            .filter(|it| it.kind == kind)
            .map(|it| it.lease_duration)
            .min()
    }

    /// Whether an endpoint of another participant is matched with one of ours.
    pub(super) fn is_matched_with(&self, prefix: GuidPrefix) -> bool {
        self.of(prefix).any(|(guid, endpoint)| {
            let is_matched = |own: Guid| {
                let pair = if guid.entity.is_writer() { (guid, own) } else { (own, guid) };
                matches!(self.pairs.get(&pair), Some(Pair::Matched { .. }))
            };
            self.counterparts(guid, &endpoint.topic).into_iter().any(is_matched)
        })
    }

    /// The writers of a topic, or its readers.
    pub(super) fn on_topic(&self, topic: &str, writers: bool) -> impl Iterator<Item = Guid> + '_ {
        let topic = self.topics.get(topic);
        let endpoints = topic.map(|topic| if writers { &topic.writers } else { &topic.readers });
        endpoints.into_iter().flatten().copied()
    }

    fn counterparts(&self, guid: Guid, topic: &str) -> Vec<Guid> {
        self.topics.get(topic).map(|topic| topic.counterparts(guid, self.own)).unwrap_or_default()
    }

    /// Ends the local matches of what is ignored from now on.
    pub(super) fn part_ignored(&mut self, out: &mut Outbox) {
        let ignored: Vec<(Guid, Guid)> =
            self.pairs.keys().filter(|(writer, reader)| self.is_ignored(*writer, *reader)).copied().collect();
        for (writer, reader) in ignored {
            match self.pairs.remove(&(writer, reader)) {
                Some(Pair::Matched { .. }) => {
                    self.notify_unmatched(writer, reader, out);
                    self.notify_unmatched(reader, writer, out);
                }
                Some(Pair::Mismatch(_)) => {
                    self.mismatches -= 1;
                    notify_mismatch(writer, reader, false, out);
                }
                Some(Pair::Undecided) | None => {}
            }
        }
    }

    /// Whether neither of two local endpoints may match the other. Remote ones that are ignored are not here.
    fn is_ignored(&self, writer: Guid, reader: Guid) -> bool {
        writer.prefix == reader.prefix && (self.ignored.has(writer) || self.ignored.has(reader))
    }

    /// Compares the verdict on a pair with the last one, and tells the local members what changed.
    /// `newcomer`: a local one of the two, of which the other has yet to hear.
    fn match_pair(&mut self, one: Guid, other: Guid, newcomer: Option<Guid>, out: &mut Outbox) {
        let (writer, reader) = if one.entity.is_writer() { (one, other) } else { (other, one) };
        if self.is_ignored(writer, reader) {
            return;
        }
        let relation = self.type_relation(writer, reader);
        if relation == TypeRelation::Undecided {
            // What was decided before holds until then.
            self.pairs.entry((writer, reader)).or_insert(Pair::Undecided);
            return;
        }
        let (Some(offering), Some(requesting)) = (self.endpoints.get(&writer), self.endpoints.get(&reader))
        else {
            return;
        };
        let verdict = match self.mismatch(writer, reader, &relation) {
            Some(reason) => Pair::Mismatch(reason),
            None => {
                Pair::Matched { writer_revision: offering.revision, reader_revision: requesting.revision }
            }
        };
        let before = self.pairs.get(&(writer, reader));
        if before == Some(&verdict) {
            return;
        }
        let is_held = self.held.contains(&writer.prefix) || self.held.contains(&reader.prefix);
        if is_held && matches!((&verdict, before), (Pair::Matched { .. }, None | Some(Pair::Undecided))) {
            self.pairs.insert((writer, reader), Pair::Undecided);
            return;
        }
        match &verdict {
            Pair::Matched { writer_revision, reader_revision } => {
                let (knew_writer, knew_reader) = match before {
                    Some(Pair::Matched { writer_revision: w, reader_revision: r }) => {
                        (w == writer_revision, r == reader_revision)
                    }
                    _ => (false, false),
                };
                if writer.prefix == self.own && !knew_reader {
                    let is_near = requesting.endpoint.path.same_host;
                    let begins = newcomer == Some(writer) && requesting.endpoint.is_same_vendor() && is_near;
                    let reader = Box::new(requesting.endpoint.as_reader(reader, begins));
                    out.commands.push(Command::MatchReader { writer: writer.entity, reader });
                }
                if reader.prefix == self.own && !knew_writer {
                    let begins = newcomer == Some(reader) && offering.endpoint.is_same_vendor();
                    let writer = Box::new(offering.endpoint.as_writer(writer, begins));
                    out.commands.push(Command::MatchWriter { reader: reader.entity, writer });
                }
            }
            Pair::Undecided => {}
            Pair::Mismatch(reason) => {
                if let Some(Pair::Matched { .. }) = before {
                    self.notify_unmatched(writer, reader, out);
                    self.notify_unmatched(reader, writer, out);
                }
                if let MismatchReason::Qos(policies) = reason {
                    self.notify_incompatible(writer, reader, policies, out);
                }
            }
        }
        self.remember(writer, reader, verdict, out);
    }

    fn remember(&mut self, writer: Guid, reader: Guid, verdict: Pair, out: &mut Outbox) {
        let was_mismatched = matches!(self.pairs.remove(&(writer, reader)), Some(Pair::Mismatch(_)));
        if was_mismatched {
            self.mismatches -= 1;
        }
        let mismatched = matches!(verdict, Pair::Mismatch(_));
        if mismatched {
            // What cannot be remembered is not told either: it would be told over and over.
            if self.mismatches >= self.mismatches_max {
                return;
            }
            self.mismatches += 1;
        }
        if was_mismatched || mismatched {
            notify_mismatch(writer, reader, mismatched, out);
        }
        self.pairs.insert((writer, reader), verdict);
    }

    fn mismatch(&self, writer: Guid, reader: Guid, types: &TypeRelation) -> Option<MismatchReason> {
        let discord = self.discord(writer, reader, types);
        discord.or_else(|| self.cannot_meet(writer, reader).then_some(MismatchReason::NoUsableLocator))
    }

    /// Whether one of a pair is not reached by this participant, whose the other is.
    pub(super) fn cannot_meet(&self, writer: Guid, reader: Guid) -> bool {
        let is_own = [writer.prefix, reader.prefix].contains(&self.own);
        let unreachable = |guid| self.get(guid).is_some_and(|endpoint| self.is_unreachable(guid, endpoint));
        is_own && (unreachable(writer) || unreachable(reader))
    }

    /// Why a writer and a reader of one topic do not match, wherever they are.
    pub(super) fn discord(&self, writer: Guid, reader: Guid, types: &TypeRelation) -> Option<MismatchReason> {
        let (offering, requesting) = (self.get(writer)?, self.get(reader)?);
        if offering.type_name != requesting.type_name {
            return Some(MismatchReason::TypeName);
        }
        match types {
            TypeRelation::Different(_) => return Some(MismatchReason::TypeDefinition),
            TypeRelation::Unknown if requesting.qos.type_consistency.force_type_validation => {
                return Some(MismatchReason::TypeInformation);
            }
            TypeRelation::Unknown | TypeRelation::Undecided | TypeRelation::Assignable => {}
        }
        if writer.entity.is_keyed() != reader.entity.is_keyed() {
            return Some(MismatchReason::KeyKind);
        }
        // Before QoS: endpoints without a common partition have no business with each other (DCPS §2.2.3.13).
        if !rxo::partitions_match(&offering.qos.partition, &requesting.qos.partition) {
            return Some(MismatchReason::Partition);
        }
        let policies = rxo::incompatible(&offering.qos, &requesting.qos);
        (!policies.is_empty()).then_some(MismatchReason::Qos(policies))
    }

    /// Whether an endpoint is of another participant and nothing may be sent to it.
    pub(super) fn is_unreachable(&self, guid: Guid, endpoint: &Endpoint) -> bool {
        guid.prefix != self.own && endpoint.path.locators.is_empty()
    }

    fn notify_unmatched(&self, local: Guid, other: Guid, out: &mut Outbox) {
        if local.prefix != self.own {
            return;
        }
        out.commands.push(if local.entity.is_writer() {
            Command::UnmatchReader { writer: local.entity, reader: other }
        } else {
            Command::UnmatchWriter { reader: local.entity, writer: other }
        });
    }

    fn notify_incompatible(&self, writer: Guid, reader: Guid, policies: &[PolicyId], out: &mut Outbox) {
        let policies = || policies.to_vec();
        if writer.prefix == self.own {
            out.commands.push(Command::IncompatibleReader { writer: writer.entity, policies: policies() });
        }
        if reader.prefix == self.own {
            out.commands.push(Command::IncompatibleWriter { reader: reader.entity, policies: policies() });
        }
    }
}

fn notify_mismatch(writer: Guid, reader: Guid, mismatched: bool, out: &mut Outbox) {
    out.events.push(Event::MismatchChanged { writer, reader, mismatched });
}

impl Endpoint {
    /// Whether applications see anything else of this endpoint.
    pub(super) fn differs(&self, other: &Self) -> bool {
        (&self.topic, &self.type_name, &self.qos) != (&other.topic, &other.type_name, &other.qos)
    }

    pub(super) fn describe(&self, guid: Guid) -> RemoteEndpoint<'_> {
        RemoteEndpoint {
            guid,
            topic: &self.topic,
            type_name: &self.type_name,
            qos: &self.qos,
            content_filter: self.content_filter.as_ref(),
            type_hash: self.type_ids.complete.or(self.type_ids.minimal),
        }
    }

    /// The publisher of a writer whose changes have an order in it.
    fn publisher(&self, guid: Guid) -> Option<Guid> {
        let is_grouped = guid.entity.is_writer()
            && self.group != EntityId::UNKNOWN
            && self.qos.presentation.access_scope == AccessScope::Group;
        is_grouped.then(|| guid.prefix.entity(self.group))
    }

    fn as_reader(&self, guid: Guid, begins: bool) -> MatchedReader {
        MatchedReader {
            guid,
            locators: self.path.locators.clone(),
            sources: self.path.sources.clone(),
            urgent: self.path.urgent,
            expects_inline_qos: self.expects_inline_qos,
            same_host: self.path.same_host,
            receive_bytes: self.receive_bytes,
            qos: self.qos.clone(),
            content_filter: self.content_filter.clone(),
            begins,
            skips_to_heartbeat: vendor::skips_to_heartbeat(self.vendor),
            is_of_own_process: self.path.is_of_own_process,
        }
    }

    /// Whether it is an endpoint of Plainsong.
    fn is_same_vendor(&self) -> bool {
        self.vendor == vendor::PLAINSONG
    }

    fn as_writer(&self, guid: Guid, begins: bool) -> MatchedWriter {
        let EndpointPath { locators, sources, .. } = self.path.clone();
        let (qos, vendor) = (self.qos.clone(), self.vendor);
        MatchedWriter { guid, locators, sources, publisher: self.group, vendor, qos, begins }
    }

    /// What remembering it costs, roughly, in octets.
    pub(super) fn bytes(&self) -> usize {
        let qos = &self.qos;
        let data = qos.user_data.len() + qos.topic_data.len() + qos.group_data.len();
        let partitions: usize = qos.partition.iter().map(|name| name.len() + size_of::<String>()).sum();
        let properties: usize =
            qos.properties.iter().map(|property| property.name.len() + property.value.len()).sum();
        let filter = self.content_filter.as_ref().map_or(0, ContentFilter::bytes);
        ENDPOINT_BYTES_MIN + self.topic.len() + self.type_name.len() + data + partitions + properties + filter
    }
}

/// Whether participant messages assert a writer of this QoS (RTPS 2.5 §8.7.2.2.3).
fn is_leased(qos: &QosSet) -> bool {
    qos.liveliness.kind != LivelinessKind::ManualByTopic && !qos.liveliness.lease_duration.is_infinite()
}
