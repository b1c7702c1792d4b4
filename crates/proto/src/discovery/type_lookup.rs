//! The types of endpoints: when others are asked for theirs, and what that means for a match (XTypes 1.3
//! §7.6.3.3, §7.6.3.4.2).
//!
//! Others are asked only about types that could keep endpoints apart: two of one topic whose types are not
//! equal by their hashes. Until the answer is there, or [`TYPE_REPLY_WITHIN`] has passed, such a pair is
//! undecided; without an answer types are told apart by name alone.

use std::collections::{BTreeMap, BTreeSet};

use super::channel::Channel;
use super::forms;
use super::matching::{Endpoint, Matching};
use super::participant::Participant;
use crate::cdr::XcdrVersion;
use crate::guid::{Guid, GuidPrefix};
use crate::instance::InstanceHandle;
use crate::outbox::Outbox;
use crate::qos::{ReliabilityKind, TypeConsistency};
use crate::reader::CachedSample;
use crate::stats::DropReason;
use crate::time::{Duration, Instant, Now};
use crate::tuning::discovery::{
    TYPE_LOOKUPS_PER_PARTICIPANT_MAX, TYPE_REPLY_BYTES_PER_SECOND, TYPE_REPLY_WITHIN, TYPE_REQUESTS_MAX,
};
use crate::types::lookup::{self, REQUESTED_MAX, Request, RequestId};
use crate::types::{AssignabilityRules, ComponentPlace, TypeDescription, TypeDifference, TypeHash, TypeIds};
use crate::writer::ChangeKind;

/// The types that others are asked about.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    /// By participant and type. One that was answered in full is not here any more.
    lookups: BTreeMap<Key, Lookup>,
    /// Of them those that are wanted, those that are requested, the oldest request first, and how many each
    /// participant has: nobody goes through all.
    wanted: BTreeSet<Key>,
    requested: BTreeSet<(Instant, Key)>,
    of_participant: BTreeMap<GuidPrefix, usize>,
    /// Participants that answer.
    services: BTreeSet<GuidPrefix>,
    requests: u64,
    /// When answering began to be counted, and octets since.
    answered: Option<(Instant, usize)>,
}

/// A participant and one of its types.
type Key = (GuidPrefix, TypeHash);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lookup {
    /// To be requested.
    Wanted { requests: u8 },
    /// Requested.
    Requested { requests: u8, until: Instant },
    /// There was no answer.
    Failed,
}

/// What is known of the type of an endpoint of another participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToldType {
    /// Its participant has told no type, or does not answer: the name is all that is known.
    Untold,
    /// The participant is asked.
    Awaited,
    /// The type, with its complete TypeObjects where there are some, and its minimal ones.
    Known(Box<TypeDescription>),
}

/// What is known about the types of a writer and a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TypeRelation {
    /// One of the types is not known.
    Unknown,
    /// The other participant is asked.
    Undecided,
    /// The reader's type is assignable from the writer's.
    Assignable,
    /// It is not.
    Different(TypeDifference),
}

impl Lookups {
    /// Notes whether a participant serves type lookup requests.
    pub(super) fn set_service(&mut self, prefix: GuidPrefix, answers: bool) {
        if answers {
            self.services.insert(prefix);
        } else {
            self.services.remove(&prefix);
        }
    }

    /// Forgets a participant.
    fn forget(&mut self, prefix: GuidPrefix) {
        self.services.remove(&prefix);
        let keys: Vec<Key> = self.lookups.range(all_of(prefix)).map(|(key, _)| *key).collect();
        keys.into_iter().for_each(|key| self.set(key, None));
    }

    /// Notes how far a look-up is; `None` forgets it.
    fn set(&mut self, key: Key, lookup: Option<Lookup>) {
        let before = match lookup {
            Some(lookup) => self.lookups.insert(key, lookup),
            None => self.lookups.remove(&key),
        };
        match before {
            Some(Lookup::Wanted { .. }) => _ = self.wanted.remove(&key),
            Some(Lookup::Requested { until, .. }) => _ = self.requested.remove(&(until, key)),
            Some(Lookup::Failed) | None => {}
        }
        match lookup {
            Some(Lookup::Wanted { .. }) => _ = self.wanted.insert(key),
            Some(Lookup::Requested { until, .. }) => _ = self.requested.insert((until, key)),
            Some(Lookup::Failed) | None => {}
        }
        let count = self.of_participant.entry(key.0).or_insert(0);
        *count = *count + usize::from(lookup.is_some()) - usize::from(before.is_some());
        if *count == 0 {
            self.of_participant.remove(&key.0);
        }
    }

    /// Whether a participant serves type lookup requests.
    pub(super) fn has_service(&self, of: GuidPrefix) -> bool {
        self.services.contains(&of)
    }

    /// Asks about a type once more, if there was no answer.
    pub(super) fn ask_again(&mut self, of: GuidPrefix, root: TypeHash) {
        if self.lookups.get(&(of, root)) == Some(&Lookup::Failed) {
            self.set((of, root), Some(Lookup::Wanted { requests: 0 }));
        }
    }

    /// Whether the answer about a type is awaited; asks when nobody has.
    fn awaits(&mut self, of: GuidPrefix, root: TypeHash) -> bool {
        if let Some(known) = self.lookups.get(&(of, root)) {
            return *known != Lookup::Failed;
        }
        let count = self.of_participant.get(&of).copied().unwrap_or(0);
        let is_wanted = self.services.contains(&of) && count < TYPE_LOOKUPS_PER_PARTICIPANT_MAX;
        if is_wanted {
            self.set((of, root), Some(Lookup::Wanted { requests: 0 }));
        }
        is_wanted
    }

    /// Whether the answer about a type is awaited; nobody is asked.
    fn is_awaited(&self, of: GuidPrefix, root: TypeHash) -> bool {
        self.lookups.get(&(of, root)).is_some_and(|known| *known != Lookup::Failed)
    }

    /// Whether any answer is awaited.
    pub(super) fn is_waiting(&self) -> bool {
        !self.wanted.is_empty() || !self.requested.is_empty()
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.requested.first().map(|(until, _)| *until)
    }

    /// Whether so many octets may be sent in answers now.
    fn may_answer(&mut self, now: Instant, bytes: usize) -> bool {
        let (since, before) = match self.answered {
            Some((since, before)) if now < since.after(Duration::from_secs(1)).unwrap_or(now) => {
                (since, before)
            }
            _ => (now, 0),
        };
        let sum = before.saturating_add(bytes);
        self.answered = Some((since, sum));
        sum <= TYPE_REPLY_BYTES_PER_SECOND
    }
}

const fn all_of(prefix: GuidPrefix) -> std::ops::RangeInclusive<(GuidPrefix, TypeHash)> {
    let first = TypeHash { complete: false, octets: [0; 14], component: None };
    let last_place = ComponentPlace { length: u32::MAX, index: u32::MAX };
    let last = TypeHash { complete: true, octets: [0xff; 14], component: Some(last_place) };
    (prefix, first)..=(prefix, last)
}

/// What a reader lets differ, given the encoding of the writer. Who goes by the name is refused only what
/// nobody could read.
fn rules(offering: &Endpoint, requesting: &Endpoint) -> AssignabilityRules {
    let xcdr1 = offering.qos.data_representation.first().is_none_or(|it| *it == XcdrVersion::Xcdr1);
    let policy = requesting.qos.type_consistency;
    if !is_mutual(offering, requesting) && !policy.force_type_validation {
        return AssignabilityRules::readable(xcdr1);
    }
    let TypeConsistency { allow_type_coercion: coercion, .. } = policy;
    AssignabilityRules {
        coercion,
        ignore_sequence_bounds: coercion && policy.ignore_sequence_bounds,
        ignore_string_bounds: coercion && policy.ignore_string_bounds,
        ignore_member_names: coercion && policy.ignore_member_names,
        prevent_type_widening: !coercion || policy.prevent_type_widening,
        final_is_appendable: xcdr1,
        ignore_key_bounds: false,
        ignore_delimiters: false,
    }
}

/// Whether both participants know both types, and so come to the same verdict.
fn is_mutual(offering: &Endpoint, requesting: &Endpoint) -> bool {
    let knows =
        |one: &Endpoint, other: &Endpoint| one.knows_our_types && !forms::is_untold(other, one.vendor);
    knows(offering, requesting) && knows(requesting, offering)
}

impl Matching {
    /// What is known about the types of a pair; asks for what is not.
    pub(super) fn type_relation(&mut self, writer: Guid, reader: Guid) -> TypeRelation {
        let Some((written, read)) = self.roots(writer, reader) else { return TypeRelation::Unknown };
        if written == read {
            return TypeRelation::Assignable;
        }
        if !self.types_decide(writer, reader) {
            return TypeRelation::Unknown;
        }
        for (guid, root) in [(writer, written), (reader, read)] {
            if self.types.missing(guid.prefix, root, 1).is_empty() {
                continue;
            }
            let awaited = guid.prefix != self.own && self.lookups.awaits(guid.prefix, root);
            return if awaited { TypeRelation::Undecided } else { TypeRelation::Unknown };
        }
        match self.type_difference(writer, reader) {
            Some(difference) => TypeRelation::Different(difference),
            None => TypeRelation::Assignable,
        }
    }

    /// What has been told about the types of a pair, of whomever; nobody is asked.
    pub(super) fn told_type_relation(&self, writer: Guid, reader: Guid) -> TypeRelation {
        let Some((written, read)) = self.roots(writer, reader) else { return TypeRelation::Unknown };
        if written == read {
            return TypeRelation::Assignable;
        }
        for (of, root) in [(writer.prefix, written), (reader.prefix, read)] {
            if !self.types.missing(of, root, 1).is_empty() {
                let is_awaited = self.lookups.is_awaited(of, root);
                return if is_awaited { TypeRelation::Undecided } else { TypeRelation::Unknown };
            }
        }
        self.type_difference(writer, reader).map_or(TypeRelation::Assignable, TypeRelation::Different)
    }

    /// Wants to know the types of others by which endpoints of one topic may differ.
    pub(super) fn want_types_that_differ(&mut self) {
        let mut wanted = BTreeSet::new();
        for endpoints in self.shared_topics() {
            let told = endpoints.filter_map(|guid| Some((guid.prefix, self.get(guid)?.type_ids)));
            let told: Vec<_> = told.filter(|(_, ids)| *ids != TypeIds::default()).collect();
            if told.iter().all(|(_, ids)| Some(ids) == told.first().map(|(_, first)| first)) {
                continue;
            }
            // Pairs are compared by what both told: see `roots`.
            let all_are_complete = told.iter().all(|(_, ids)| ids.complete.is_some());
            for (of, ids) in told.into_iter().filter(|(of, _)| *of != self.own) {
                let minimal = ids.minimal.filter(|_| !all_are_complete);
                wanted.extend(ids.complete.into_iter().chain(minimal).map(|root| (of, root)));
            }
        }
        for (of, root) in wanted {
            if !self.types.missing(of, root, 1).is_empty() {
                self.lookups.awaits(of, root);
            }
        }
    }

    /// Whether it matters what the types of a pair are. Who does not know our type goes by its name: a
    /// reliable writer that is refused all the same would wait for acknowledgements, so its name decides here
    /// too.
    fn types_decide(&self, writer: Guid, reader: Guid) -> bool {
        let (Some(offering), Some(requesting)) = (self.get(writer), self.get(reader)) else { return false };
        let reliable = |it: &Endpoint| it.qos.reliability.kind == ReliabilityKind::Reliable;
        let nobody_waits = writer.prefix == self.own || !reliable(offering) || !reliable(requesting);
        nobody_waits
            || offering.type_name != requesting.type_name
            || requesting.qos.type_consistency.force_type_validation
            || is_mutual(offering, requesting)
    }

    /// The first difference that keeps the types of a pair apart, as far as they are known.
    pub(super) fn type_difference(&self, writer: Guid, reader: Guid) -> Option<TypeDifference> {
        let rules = rules(self.get(writer)?, self.get(reader)?);
        self.difference_by(writer, reader, rules)
    }

    /// The first difference between the types of a pair, whatever the reader lets differ.
    pub(super) fn any_type_difference(&self, writer: Guid, reader: Guid) -> Option<TypeDifference> {
        self.difference_by(writer, reader, AssignabilityRules::default())
    }

    fn difference_by(&self, writer: Guid, reader: Guid, rules: AssignabilityRules) -> Option<TypeDifference> {
        let (written, read) = self.roots(writer, reader)?;
        self.types.first_difference((writer.prefix, written), (reader.prefix, read), rules)
    }

    /// Whether both types of a pair are known in full.
    pub(super) fn knows_types(&self, writer: Guid, reader: Guid) -> bool {
        let known = |guid: Guid, root| self.types.missing(guid.prefix, root, 1).is_empty();
        self.roots(writer, reader)
            .is_some_and(|(written, read)| known(writer, written) && known(reader, read))
    }

    /// The hashes of both types, of the same kind.
    fn roots(&self, writer: Guid, reader: Guid) -> Option<(TypeHash, TypeHash)> {
        let (written, read) = (self.get(writer)?.type_ids, self.get(reader)?.type_ids);
        let minimal = written.minimal.zip(read.minimal);
        let complete = written.complete.zip(read.complete);
        // Equal by what matters, they need not be looked at.
        minimal.filter(|(written, read)| written == read).or(complete).or(minimal)
    }

    /// The answer about a type is there or will not come: judges the pairs it is about.
    fn on_type_resolved(&mut self, of: GuidPrefix, root: TypeHash, out: &mut Outbox) {
        let concerned = |endpoint: &Endpoint| {
            [endpoint.type_ids.minimal, endpoint.type_ids.complete].contains(&Some(root))
        };
        let guids: Vec<Guid> =
            self.of(of).filter(|(_, endpoint)| concerned(endpoint)).map(|(guid, _)| guid).collect();
        for guid in guids {
            self.rematch_endpoint(guid, out);
        }
    }

    /// Forgets the types of a participant.
    pub(super) fn forget_types(&mut self, of: GuidPrefix) {
        self.lookups.forget(of);
        self.types.forget(of);
    }
}

impl Participant {
    /// What is known of the type of an endpoint; asks its participant for what is not, once. The answer is
    /// there with one of the calls to come.
    pub fn told_type(&mut self, now: Now, endpoint: Guid, out: &mut Outbox) -> ToldType {
        let Some(ids) = self.matching.get(endpoint).map(|it| it.type_ids) else { return ToldType::Untold };
        let of = endpoint.prefix;
        let (mut roots, mut objects) = (Vec::new(), BTreeMap::new());
        let mut is_awaited = false;
        for root in [ids.minimal, ids.complete].into_iter().flatten() {
            match self.matching.types.with_dependencies(of, root) {
                Some(known) => {
                    roots.push(root);
                    objects.extend(known);
                }
                None => is_awaited |= self.matching.lookups.awaits(of, root),
            }
        }
        self.request_types(now, out);
        if is_awaited {
            ToldType::Awaited
        } else if roots.is_empty() {
            ToldType::Untold
        } else {
            ToldType::Known(Box::new(TypeDescription::of_objects(&roots, objects)))
        }
    }

    /// Asks about the types that are wanted.
    pub(super) fn request_types(&mut self, now: Now, out: &mut Outbox) {
        while let Some((of, root)) = self.matching.lookups.wanted.first().copied() {
            let Some(Lookup::Wanted { requests }) = self.matching.lookups.lookups.get(&(of, root)).copied()
            else {
                break;
            };
            self.talk_about_types(now, of, out);
            let types = self.matching.types.missing(of, root, REQUESTED_MAX);
            self.matching.lookups.requests += 1;
            let id = RequestId {
                writer: self.config.prefix.entity(Channel::TypeRequests.writer()),
                number: self.matching.lookups.requests,
            };
            let request = Request { id, instance: lookup::instance_of(of.participant()), types };
            // A request that is not sent is not answered.
            let _ = self.builtin.write(
                now,
                Channel::TypeRequests,
                ChangeKind::Alive,
                InstanceHandle::NIL,
                request.encode(),
                out,
            );
            let until = now.mono.after(TYPE_REPLY_WITHIN).unwrap_or(now.mono);
            let requested = Lookup::Requested { requests: requests.saturating_add(1), until };
            self.matching.lookups.set((of, root), Some(requested));
        }
    }

    /// Gives up what was not answered in time.
    pub(super) fn type_lookup_timeout(&mut self, now: Now, out: &mut Outbox) {
        while let Some((until, (of, root))) = self.matching.lookups.requested.first().copied()
            && until <= now.mono
        {
            self.matching.lookups.set((of, root), Some(Lookup::Failed));
            self.matching.on_type_resolved(of, root, out);
        }
    }

    /// Answers a request for our types.
    pub(super) fn on_type_request(
        &mut self,
        now: Now,
        sample: &CachedSample,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let Some(request) = Request::decode(sample.payload.as_slice())? else { return Ok(()) };
        // Everyone hears every request; one that names nobody is for all. Tools of Cyclone DDS name the GUID
        // of nobody.
        let [own, nobody] = [self.guid(), Guid::UNKNOWN].map(lookup::instance_of);
        if request.instance.len() == own.len() && request.instance != own && request.instance != nobody {
            return Ok(());
        }
        let own = |hash: &TypeHash| Some((*hash, self.matching.types.own(hash)?));
        // Types that contain one another are told together, also to who asks for one of them.
        let named: BTreeSet<_> = request.types.iter().flat_map(|hash| hash.whole().types()).collect();
        let types: Vec<_> = named.iter().filter_map(own).collect();
        if types.is_empty() {
            return Ok(());
        }
        let reply = lookup::encode_reply(request.id, &types);
        if !self.matching.lookups.may_answer(now.mono, reply.len()) {
            return Err(DropReason::DiscoveryLimit);
        }
        self.builtin
            .write(now, Channel::TypeReplies, ChangeKind::Alive, InstanceHandle::NIL, reply, out)
            .map_err(|_| DropReason::DiscoveryLimit)
    }

    /// Takes the types of an answer that somebody asked for here.
    pub(super) fn on_type_reply(
        &mut self,
        sample: &CachedSample,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let of = Guid::from_bytes(sample.info.publication_handle.0).prefix;
        let told: BTreeMap<_, _> = lookup::decode_reply(sample.payload.as_slice())?.into_iter().collect();
        let requested: Vec<_> =
            self.matching.lookups.lookups.range(all_of(of)).map(|(key, it)| (*key, *it)).collect();
        for ((_, root), lookup) in requested {
            let Lookup::Requested { requests, .. } = lookup else { continue };
            let wanted = self.matching.types.missing(of, root, REQUESTED_MAX);
            match self.matching.types.add_told(of, &wanted, &told) {
                None => return Err(DropReason::DiscoveryLimit),
                Some(0) => continue,
                Some(_) => {}
            }
            if self.matching.types.missing(of, root, 1).is_empty() {
                self.matching.lookups.set((of, root), None);
                self.matching.on_type_resolved(of, root, out);
            } else if requests < TYPE_REQUESTS_MAX {
                self.matching.lookups.set((of, root), Some(Lookup::Wanted { requests }));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(participant: u8, number: u16) -> Key {
        let mut octets = [0; 14];
        octets[..2].copy_from_slice(&number.to_be_bytes());
        (GuidPrefix([participant; 12]), TypeHash { complete: true, octets, component: None })
    }

    /// What is kept so that nobody goes through all look-ups is what going through them would find.
    fn check(lookups: &Lookups) {
        let until = |lookup: &Lookup| match lookup {
            Lookup::Requested { until, .. } => Some(*until),
            Lookup::Wanted { .. } | Lookup::Failed => None,
        };
        assert_eq!(lookups.next_timeout(), lookups.lookups.values().filter_map(until).min());
        let is_wanted = |it: &(&Key, &Lookup)| matches!(it.1, Lookup::Wanted { .. });
        assert!(lookups.wanted.iter().eq(lookups.lookups.iter().filter(is_wanted).map(|(key, _)| key)));
        assert_eq!(lookups.of_participant.values().sum::<usize>(), lookups.lookups.len());
    }

    #[test]
    fn nobody_goes_through_all_lookups() {
        let mut lookups = Lookups::default();
        (1..=3).for_each(|of| lookups.set_service(GuidPrefix([of; 12]), true));
        for number in 0..300 {
            for of in 1..=3 {
                let (prefix, root) = key(of, number);
                assert_eq!(
                    lookups.awaits(prefix, root),
                    usize::from(number) < TYPE_LOOKUPS_PER_PARTICIPANT_MAX
                );
            }
            check(&lookups);
        }
        for number in 0..100 {
            let until = Instant(1_000 - u64::from(number) % 7);
            lookups.set(key(1, number), Some(Lookup::Requested { requests: 1, until }));
            lookups.set(key(2, number), Some(Lookup::Failed));
            check(&lookups);
        }
        lookups.set(key(1, 5), Some(Lookup::Wanted { requests: 1 }));
        lookups.set(key(1, 6), None);
        check(&lookups);
        assert!(lookups.awaits(key(1, 5).0, key(1, 5).1) && !lookups.awaits(key(2, 5).0, key(2, 5).1));
        lookups.forget(GuidPrefix([1; 12]));
        check(&lookups);
        assert_eq!(lookups.next_timeout(), None);
        assert_eq!(lookups.lookups.len(), 2 * TYPE_LOOKUPS_PER_PARTICIPANT_MAX);
    }
}
