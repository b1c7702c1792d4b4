//! Taking a snapshot: one lock at a time, and nothing is formatted or dropped while one is held.

use std::collections::BTreeMap;

use plainsong_proto::discovery::{MismatchReason, Participant, ProcessData, are_internal, survey};
use plainsong_proto::guid::Guid;
use plainsong_proto::qos::{EntityKind, Property, QosSet, unhonoured};
use plainsong_proto::stats::DropCounters;
use plainsong_proto::time::Now;
use plainsong_proto::types::TypeHash;
use plainsong_proto::vendor;

use super::{
    Bounded, DropCount, GroupState, MatchedReaderState, MatchedWriterState, ParticipantState, ReaderCounters,
    ReaderState, RemoteEndpointState, RemoteParticipantState, RouteKind, RouteState, StateLimits, TopicState,
    UnhonouredPolicy, WriterCounters, WriterState,
};
use crate::base::{clock, process};
use crate::builtin_topics::is_internal;
use crate::condition::HasCore;
use crate::data_reader::ReaderInner;
use crate::data_writer::WriterInner;
use crate::error::Result;
use crate::group::{Group, Member};
use crate::participant::DomainParticipant;
use crate::topic::TopicInner;

impl DomainParticipant {
    /// A snapshot of the participant, also of one that is not enabled.
    ///
    /// # Errors
    /// [`crate::Error::AlreadyDeleted`].
    pub fn state(&self) -> Result<ParticipantState> {
        self.state_within(&StateLimits::default())
    }

    /// A snapshot with lists of other lengths.
    ///
    /// # Errors
    /// [`crate::Error::AlreadyDeleted`].
    pub fn state_within(&self, limits: &StateLimits) -> Result<ParticipantState> {
        let inner = &self.inner;
        inner.check_exists()?;
        let now = clock::now();
        let (publishers, subscribers) = inner.groups();
        let (writers, readers) = inner.endpoints();
        let entities = limits.entities;
        let mut state = ParticipantState {
            time: now.wall,
            guid: self.guid(),
            name: inner.name.clone(),
            process: process::describe(),
            domain_id: inner.domain_id,
            is_enabled: inner.core.is_enabled(),
            qos: inner.qos(),
            interfaces: self.interfaces(),
            topics: Bounded::of(inner.all_topics().iter(), entities, |topic| topic_state(topic)),
            publishers: Bounded::of(publishers.iter(), entities, |it| group_state(it)),
            subscribers: Bounded::of(subscribers.iter(), entities, |it| group_state(it)),
            writers: Bounded::of(writers.iter(), entities, |it| writer_state(it, now, limits)),
            readers: Bounded::of(readers.iter(), entities, |it| reader_state(it, limits)),
            remote_participants: Bounded::default(),
            remote_endpoints: Bounded::default(),
            mismatches: Bounded::default(),
            discovery_drops: Vec::new(),
            domain_drops: drop_counts(&self.drops()),
            copied_samples: inner.slot().map_or(0, |slot| slot.shared().transport.copied()),
        };
        if let Ok(slot) = inner.slot() {
            slot.look(|control| state.add_discovered(control, now, limits));
        }
        Ok(state)
    }
}

impl ParticipantState {
    /// Adds what discovery knows of others.
    fn add_discovered(&mut self, control: &Participant, now: Now, limits: &StateLimits) {
        self.remote_participants =
            Bounded::of(control.remote_participants(), limits.remote, |remote| RemoteParticipantState {
                guid: remote.guid,
                name: remote.name.to_owned(),
                process: ProcessData::of_properties(remote.properties),
                product: vendor::name(remote.vendor).map(str::to_owned),
                vendor: remote.vendor,
                product_version: Some(remote.product_version).filter(|it| *it != [0; 2]),
                rtps_version: remote.version,
                is_secured: remote.is_secured,
                user_data: remote.user_data.to_vec(),
                tool: tool_of(remote.properties),
                address: remote.address,
                discovery_locators: remote.meta_unicast.to_vec(),
                is_proven: remote.proven,
                same_host: remote.same_host,
                transport: remote.transport,
                lease_duration: remote.lease_duration,
                silent_for: now.mono.since(remote.last_heard),
            });
        let shown = |guid| limits.internal_endpoints || !is_internal(guid);
        let endpoints = control.remote_endpoints().filter(|it| shown(it.guid));
        self.remote_endpoints = Bounded::of(endpoints, limits.remote, |remote| RemoteEndpointState {
            guid: remote.guid,
            is_writer: remote.guid.entity.is_writer(),
            topic: remote.topic.to_owned(),
            type_name: remote.type_name.to_owned(),
            qos: remote.qos.clone(),
            content_filter: remote.content_filter.cloned(),
            type_hash: remote.type_hash.map(hash_in_digits),
        });
        let pairs = control.mismatched_pairs();
        let mut pairs = pairs.filter(|it| limits.internal_endpoints || !are_internal(it.0, it.1));
        let told = pairs.by_ref().take(limits.mismatches);
        let items = told.filter_map(|(writer, reader, _)| control.mismatch(writer, reader)).collect();
        self.mismatches = Bounded { items, left_out: pairs.count() };
        let incompatible = incompatible_now(control);
        let count = |guid| incompatible.get(&guid).copied().unwrap_or(0);
        self.writers.items.iter_mut().for_each(|writer| writer.incompatible_now = count(writer.guid));
        self.readers.items.iter_mut().for_each(|reader| reader.incompatible_now = count(reader.guid));
        self.discovery_drops = drop_counts(control.drops());
    }
}

/// Of types that contain one another with the place among these.
fn hash_in_digits(hash: TypeHash) -> String {
    let digits = hash.octets.iter().map(|it| format!("{it:02x}"));
    let place = hash.component.map(|place| format!("#{}", place.index));
    digits.chain(place).collect()
}

fn tool_of(properties: &[Property]) -> Option<String> {
    let tool = properties.iter().find(|property| property.name == survey::TOOL_PROPERTY);
    tool.map(|property| property.value.clone())
}

/// With how many each endpoint does not match because of QoS.
fn incompatible_now(control: &Participant) -> BTreeMap<Guid, usize> {
    let mut counts = BTreeMap::new();
    for (writer, reader, reason) in control.mismatched_pairs() {
        if matches!(reason, MismatchReason::Qos(_)) {
            *counts.entry(writer).or_default() += 1;
            *counts.entry(reader).or_default() += 1;
        }
    }
    counts
}

impl<T> Default for Bounded<T> {
    fn default() -> Self {
        Self { items: Vec::new(), left_out: 0 }
    }
}

impl<T> Bounded<T> {
    /// What `make` makes of the first `limit`.
    fn of<S>(mut all: impl Iterator<Item = S>, limit: usize, make: impl FnMut(S) -> T) -> Self {
        let items = all.by_ref().take(limit).map(make).collect();
        Self { items, left_out: all.count() }
    }
}

fn drop_counts(counters: &DropCounters) -> Vec<DropCount> {
    counters.iter().map(|(reason, count)| DropCount { reason, count }).collect()
}

fn topic_state(topic: &TopicInner) -> TopicState {
    TopicState {
        name: topic.name.clone(),
        type_name: topic.type_name().to_owned(),
        qos: topic.qos(),
        inconsistent: topic.inconsistent_total(),
    }
}

fn group_state<E: Member, L: ?Sized>(group: &Group<E, L>) -> GroupState {
    GroupState { guid: group.guid(), is_enabled: group.core.is_enabled(), qos: group.qos() }
}

fn unhonoured_policies(qos: &QosSet, kind: EntityKind) -> Vec<UnhonouredPolicy> {
    let all = unhonoured(qos, kind).into_iter();
    all.map(|it| UnhonouredPolicy { policy: it.policy.to_owned(), what: it.what.to_owned() }).collect()
}

fn writer_state(inner: &WriterInner, now: Now, limits: &StateLimits) -> WriterState {
    let datagrams = inner.datagrams();
    let (qos, reached, matched, totals, written, in_history, drops) = inner.look(|writer| {
        let reached: Vec<_> = writer.reader_routes(now.mono).take(limits.matches).collect();
        let totals = writer.totals();
        let written = writer.last_sequence_number().0;
        let (matched, drops) = (writer.matched_readers().count(), writer.drops().clone());
        (writer.qos().clone(), reached, matched, totals, written, writer.history_len(), drops)
    });
    let readers_left_out = matched.saturating_sub(reached.len());
    let mut routes: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for reader in reached {
        let is_by_memory = reader.destinations.iter().any(|locator| locator.node_id().is_some());
        let kind = match (is_by_memory, reader.same_host) {
            (true, _) => RouteKind::Memory,
            (false, true) => RouteKind::SameHost,
            (false, false) => RouteKind::Remote,
        };
        routes.entry((kind, reader.destinations)).or_default().push(MatchedReaderState {
            guid: reader.reader,
            is_reliable: reader.reliable,
            behind: reader.behind,
            silent_for: reader.silent_for,
            is_left_out: reader.is_left_out,
        });
    }
    let route = |((kind, destinations), readers)| RouteState { kind, destinations, readers };
    WriterState {
        guid: inner.guid(),
        topic: inner.topic.name.clone(),
        type_name: inner.topic.type_name().to_owned(),
        publisher: inner.group_guid(),
        is_enabled: inner.core().is_enabled(),
        unhonoured: unhonoured_policies(&qos, EntityKind::Writer),
        qos,
        incompatible_now: 0,
        routes: routes.into_iter().map(route).collect(),
        readers_left_out,
        counters: WriterCounters {
            written: u64::try_from(written).unwrap_or(0),
            written_bytes: totals.written_bytes,
            in_history,
            datagrams,
            resent_datagrams: totals.resent_datagrams,
            matched: totals.matched,
            incompatible: totals.incompatible,
            deadlines_missed: totals.deadlines_missed,
            liveliness_lost: totals.liveliness_lost,
        },
        drops: drop_counts(&drops),
    }
}

fn reader_state(inner: &ReaderInner, limits: &StateLimits) -> ReaderState {
    let datagrams = inner.datagrams();
    let (qos, writers, totals, held, drops) = inner.look(|reader| {
        let writers = Bounded::of(reader.writer_routes(), limits.matches, |writer| MatchedWriterState {
            guid: writer.writer,
            is_reliable: writer.reliable,
            destinations: writer.destinations,
            received: u64::try_from(writer.received.0).unwrap_or(0),
            waiting: writer.waiting,
            is_refused: writer.is_refused,
        });
        (reader.qos().clone(), writers, reader.totals(), reader.held_samples(), reader.drops().clone())
    });
    ReaderState {
        guid: inner.guid(),
        topic: inner.topic.name.clone(),
        type_name: inner.topic.type_name().to_owned(),
        subscriber: inner.group_guid(),
        is_enabled: inner.core().is_enabled(),
        unhonoured: unhonoured_policies(&qos, EntityKind::Reader),
        qos,
        incompatible_now: 0,
        writers,
        counters: ReaderCounters {
            received: totals.latencies.counts().iter().sum(),
            received_bytes: totals.received_bytes,
            held,
            lost: totals.lost,
            rejected: totals.rejected,
            datagrams,
            matched: totals.matched,
            alive: totals.alive,
            not_alive: totals.not_alive,
            incompatible: totals.incompatible,
            deadlines_missed: totals.deadlines_missed,
        },
        drops: drop_counts(&drops),
    }
}
