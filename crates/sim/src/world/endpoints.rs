//! Writers and readers of the world: created, deleted, written and taken from.

use std::collections::{BTreeMap, BTreeSet};

use plainsong_proto::guid::{EntityId, Guid};
use plainsong_proto::qos::{AccessScope, HistoryKind, LENGTH_UNLIMITED, QosSet};
use plainsong_proto::reader::{CachedSample, CachedSamples, Reader};
use plainsong_proto::sample_info::{SampleState, Selector};
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::status::{CountStatus, IncompatibleQosStatus, LivelinessChangedStatus, MatchedStatus};
use plainsong_proto::time::{Duration, Now, Time};
use plainsong_proto::writer::{ChangeKind as ProtoKind, WriteError};

use super::groups::Group;
use super::{Happening, Place, Topic, World, Write, WriteKind};
use crate::ledger::{
    Change, ChangeKind, Delivery, Ending, Endpoint, Epoch, Ledger, ReaderRecord, Taking, WriterRecord,
};
use crate::mutation::Mutation;
use crate::node::{NewEndpoint, State};
use crate::sample::{self, Filter, Sample};

/// Node, participant, and publisher or subscriber.
type Home = (usize, usize, Option<usize>);

impl World {
    /// Creates a writer; its number in the ledger.
    ///
    /// # Panics
    /// When discovery refuses it: scenarios only ask for what is legal.
    pub fn add_writer(&mut self, node: usize, member: usize, topic: &Topic, qos: &QosSet) -> usize {
        self.add_writer_at((node, member, None), topic, qos)
    }

    /// Creates a writer of a publisher; its number in the ledger.
    pub fn add_writer_of(&mut self, publisher: usize, topic: &Topic, qos: &QosSet) -> usize {
        let Group { node, member, .. } = self.groups[publisher];
        let writer = self.add_writer_at((node, member, Some(publisher)), topic, qos);
        self.join_set(publisher, writer);
        writer
    }

    fn add_writer_at(&mut self, home: Home, topic: &Topic, qos: &QosSet) -> usize {
        let (node, member, _) = home;
        let record = self.ledger.writers.len();
        let endpoint = self.endpoint(home, topic, qos);
        let born = |ledger: &mut Ledger, guid: Guid| {
            ledger.writers.push(WriterRecord {
                endpoint: Endpoint { guid, ..endpoint.clone() },
                changes: Vec::new(),
                blocked_since: None,
                unblocked: 0,
                waits: Vec::new(),
                history_max: 0,
                liveliness_lost: CountStatus::default(),
                sent: BTreeMap::new(),
                fragments: Vec::new(),
                marked: BTreeSet::new(),
                told_filters: BTreeMap::new(),
            });
        };
        let (group, keyed) = (self.announced_group(home, qos), topic.keyed);
        let new = NewEndpoint { topic: &topic.name, keyed, qos, group, filter: None, record, born: &born };
        let numbering = self.numbering(home.2, qos);
        let added = self.call(node, |node, call| node.add_writer(member, new, numbering, call));
        let guid = added.expect("a legal writer");
        self.writers.push(Place { node, member, entity: guid.entity });
        self.note(node, 7, || format!("writer {guid} of {}: {}", topic.name, describe(qos)));
        record
    }

    /// Creates a reader; its number in the ledger.
    ///
    /// # Panics
    /// When discovery refuses it: scenarios only ask for what is legal.
    pub fn add_reader(
        &mut self,
        node: usize,
        member: usize,
        topic: &Topic,
        qos: &QosSet,
        taking: Taking,
    ) -> usize {
        self.add_reader_at((node, member, None), topic, qos, (taking, None))
    }

    /// Creates a reader of a subscriber; its number in the ledger.
    pub fn add_reader_of(
        &mut self,
        subscriber: usize,
        topic: &Topic,
        qos: &QosSet,
        how: (Taking, Option<Filter>),
    ) -> usize {
        let Group { node, member, .. } = self.groups[subscriber];
        self.add_reader_at((node, member, Some(subscriber)), topic, qos, how)
    }

    fn add_reader_at(
        &mut self,
        home: Home,
        topic: &Topic,
        qos: &QosSet,
        (taking, filter): (Taking, Option<Filter>),
    ) -> usize {
        let (node, member, _) = home;
        let record = self.ledger.readers.len();
        let endpoint = self.endpoint(home, topic, qos);
        let born_at = self.at;
        let born = |ledger: &mut Ledger, guid: Guid| {
            ledger.readers.push(ReaderRecord {
                endpoint: Endpoint { guid, ..endpoint.clone() },
                deliveries: Vec::new(),
                takes: Vec::new(),
                taking,
                filters: filter.map(|filter| (born_at, filter)).into_iter().collect(),
                untold: 0,
                misreads: 0,
                liveliness: LivelinessChangedStatus::default(),
                known_instances: Vec::new(),
            });
        };
        let (group, keyed) = (self.announced_group(home, qos), topic.keyed);
        let new = NewEndpoint { topic: &topic.name, keyed, qos, group, filter, record, born: &born };
        let added = self.call(node, |node, call| node.add_reader(member, new, call));
        let guid = added.expect("a legal reader");
        self.readers.push(Place { node, member, entity: guid.entity });
        self.note(node, 8, || {
            let filter = filter.map_or_else(String::new, |filter| format!(" {filter:?}"));
            format!("reader {guid} of {}: {}{filter}", topic.name, describe(qos))
        });
        if let Taking::Every(period) = taking {
            self.after(period, Happening::Take { reader: record });
        }
        record
    }

    /// What an endpoint announces as its group: others must know it for GROUP scope only.
    fn announced_group(&self, (_, _, group): Home, qos: &QosSet) -> EntityId {
        let group = group.filter(|_| qos.presentation.access_scope == AccessScope::Group);
        group.map_or(EntityId::UNKNOWN, |group| self.groups[group].entity)
    }

    fn endpoint(&self, (node, member, group): Home, topic: &Topic, qos: &QosSet) -> Endpoint {
        Endpoint {
            guid: Guid::UNKNOWN,
            participant: self.nodes[node].members[member].record,
            topic: topic.name.clone(),
            keyed: topic.keyed,
            group,
            qos: qos.clone(),
            earlier: Vec::new(),
            born_at: self.at,
            ended: None,
            matches: BTreeMap::new(),
            matched_status: MatchedStatus::default(),
            deadline_missed: CountStatus::default(),
            incompatible: IncompatibleQosStatus::default(),
        }
    }

    /// Deletes a writer.
    pub fn remove_writer(&mut self, writer: usize) {
        if self.ledger.writers[writer].endpoint.is_alive() {
            self.remove(self.writers[writer]);
            self.blocked.remove(&writer);
            self.ledger.writers[writer].endpoint.ended = Some((self.at, Ending::Deleted));
        }
    }

    /// Deletes a reader.
    pub fn remove_reader(&mut self, reader: usize) {
        if self.ledger.readers[reader].endpoint.is_alive() {
            self.remove(self.readers[reader]);
            self.ledger.readers[reader].endpoint.ended = Some((self.at, Ending::Deleted));
        }
    }

    /// Changes the QoS of a writer; only changeable policies may differ.
    pub fn set_writer_qos(&mut self, writer: usize, qos: &QosSet) {
        let endpoint = &mut self.ledger.writers[writer].endpoint;
        if endpoint.is_alive() && endpoint.qos != *qos {
            endpoint.change_qos(qos.clone());
            self.set_qos(self.writers[writer], qos);
        }
    }

    /// Changes the QoS of a reader; only changeable policies may differ.
    pub fn set_reader_qos(&mut self, reader: usize, qos: &QosSet) {
        let endpoint = &mut self.ledger.readers[reader].endpoint;
        if endpoint.is_alive() && endpoint.qos != *qos {
            endpoint.change_qos(qos.clone());
            self.set_qos(self.readers[reader], qos);
        }
    }

    /// Changes the content filter of a reader that has one.
    pub fn set_reader_filter(&mut self, reader: usize, filter: Filter) {
        let place = self.readers[reader];
        let record = &mut self.ledger.readers[reader];
        if !record.endpoint.is_alive() || record.filters.is_empty() {
            return;
        }
        record.filters.push((self.at, filter));
        let topic = record.endpoint.topic.clone();
        self.note(place.node, 25, || format!("{:?} has {filter:?}", place.entity));
        self.call(place.node, |node, call| {
            node.set_filter(place.member, place.entity, (&topic, filter), call);
        });
    }

    fn set_qos(&mut self, place: Place, qos: &QosSet) {
        self.note(place.node, 19, || {
            let [data, topic, group] = [&qos.user_data, &qos.topic_data, &qos.group_data].map(Vec::len);
            format!("{:?} has data of {data}, {topic}, {group} octets: {}", place.entity, describe(qos))
        });
        self.call(place.node, |node, call| node.set_qos(place.member, place.entity, qos, call));
    }

    /// Asserts the liveliness of a writer.
    pub fn assert_liveliness(&mut self, writer: usize) {
        let place = self.writers[writer];
        if self.ledger.writers[writer].endpoint.is_alive() && self.is_running(place.node) {
            self.note(place.node, 20, || format!("writer {writer} asserts its liveliness"));
            self.call(place.node, |node, call| node.assert_liveliness(place.member, place.entity, call));
        }
    }

    /// LIVELINESS_CHANGED of a reader, as its application would read it now.
    pub fn liveliness(&mut self, reader: usize) -> LivelinessChangedStatus {
        let Place { node, member, entity } = self.readers[reader];
        let now = self.nodes[node].options.clock.now(self.at);
        let local = self.nodes[node].members[member].readers.get_mut(&entity);
        local.map(|local| local.reader.edit(now, Reader::liveliness_changed_status)).unwrap_or_default()
    }

    /// How often a writer lost its liveliness since this was asked last.
    pub fn liveliness_lost(&mut self, writer: usize) -> i32 {
        let Place { node, member, entity } = self.writers[writer];
        let now = self.nodes[node].options.clock.now(self.at);
        let local = self.nodes[node].members[member].writers.get_mut(&entity);
        local.map_or(0, |local| {
            local.writer.edit(now, |writer| writer.liveliness_lost_status()).total_count_change
        })
    }

    fn remove(&mut self, place: Place) {
        self.note(place.node, 9, || format!("deletes {:?}", place.entity));
        self.call(place.node, |node, call| node.remove_endpoint(place.member, place.entity, call));
    }

    /// Whether the process of a writer runs and the writer waits for nothing.
    #[must_use]
    pub fn can_write(&self, writer: usize) -> bool {
        self.ledger.writers[writer].endpoint.is_alive()
            && !self.blocked.contains_key(&writer)
            && self.nodes[self.writers[writer].node].state == State::Running
    }

    /// Whether a process runs.
    #[must_use]
    pub fn is_running(&self, node: usize) -> bool {
        self.nodes[node].state == State::Running
    }

    /// Whether the process of a writer stands still.
    #[must_use]
    pub fn is_paused_with_writer(&self, writer: usize) -> bool {
        self.nodes[self.writers[writer].node].state == State::Paused
    }

    /// Whether the process of a reader stands still.
    #[must_use]
    pub fn is_paused_with_reader(&self, reader: usize) -> bool {
        self.nodes[self.readers[reader].node].state == State::Paused
    }

    /// Writes, or begins to wait for room. False when it has to wait.
    pub fn write(&mut self, writer: usize, write: Write) -> bool {
        let place = self.writers[writer];
        let at = self.at;
        let record = &self.ledger.writers[writer];
        let (keyed, counter) = (record.endpoint.keyed, next_counter(record));
        let autodispose = record.endpoint.qos.writer_data_lifecycle.autodispose_unregistered_instances;
        let kind = match write.kind {
            WriteKind::Data => ChangeKind::Data(counter),
            WriteKind::Dispose => ChangeKind::Dispose,
            WriteKind::Unregister if autodispose => ChangeKind::DisposeUnregister,
            WriteKind::Unregister => ChangeKind::Unregister,
        };
        let (proto_kind, payload) = match kind {
            ChangeKind::Data(counter) => {
                let data = Sample { instance: write.instance, writer: writer as u32, counter };
                (ProtoKind::Alive, data.encode(write.bytes))
            }
            ChangeKind::Dispose => (ProtoKind::Dispose, sample::encode_key(write.instance)),
            ChangeKind::Unregister => (ProtoKind::Unregister, sample::encode_key(write.instance)),
            ChangeKind::DisposeUnregister => {
                (ProtoKind::DisposeUnregister, sample::encode_key(write.instance))
            }
        };
        let bytes = payload.len();
        let result = self.call(place.node, |node, call| {
            let now = node.options.clock.now(at);
            let source = now.wall.plus(Duration(-write.aged.0));
            let Some(local) = node.members[place.member].writers.get_mut(&place.entity) else {
                return Ok((source, SequenceNumber(0), false));
            };
            let handle = if keyed { sample::handle(write.instance) } else { Default::default() };
            if keyed && !local.writer.look(|writer| writer.is_registered(handle)) {
                let key = sample::encode_key(write.instance);
                local.writer.edit(now, |writer| writer.register_instance(now, handle.into(), key))?;
            }
            let written = call.of_writer(&mut local.writer, |writer, out| {
                writer.write(now, proto_kind, handle, payload, source, out)
            });
            let waits = local.writer.look(|writer| writer.waits_for_path());
            let history = local.writer.look(|writer| writer.history_len());
            let most = &mut call.ledger.writers[writer].history_max;
            *most = history.max(*most);
            let participant = &mut node.members[place.member].participant;
            if written.is_ok() && participant.look(|participant| participant.has_manual_writers()) {
                participant.run(now, call.out, |participant, out| participant.assert_liveliness(now, out));
            }
            node.settle(place.member, now, call);
            written.map(|number| (source, number, waits))
        });
        self.written(writer, write, kind, bytes, result)
    }

    fn written(
        &mut self,
        writer: usize,
        write: Write,
        kind: ChangeKind,
        bytes: usize,
        result: Result<(Time, SequenceNumber, bool), WriteError>,
    ) -> bool {
        let node = self.writers[writer].node;
        let (set, group_number) = (self.open_set(writer), self.last_group_number(writer));
        let record = &mut self.ledger.writers[writer];
        match result {
            Ok((source, number, waits_for_road)) => {
                if let Some(start) = record.blocked_since.take() {
                    record.unblocked += 1;
                    record.waits.push(Epoch { start, end: Some(self.at) });
                }
                let (at, instance, number) = (self.at, write.instance, number.0);
                record.changes.push(Change {
                    at,
                    kind,
                    instance,
                    bytes,
                    source,
                    set,
                    number,
                    group_number,
                    waits_for_road,
                });
                self.blocked.remove(&writer);
                self.note(node, 10, || format!("writer {writer}: {kind:?} of {}", write.instance));
                true
            }
            Err(WriteError::Full) => {
                record.blocked_since.get_or_insert(self.at);
                self.blocked.insert(writer, write);
                self.note(node, 11, || format!("writer {writer} has no room"));
                false
            }
            Err(error) => {
                self.note(node, 12, || format!("writer {writer} refuses {kind:?}: {error:?}"));
                self.blocked.remove(&writer);
                self.ledger.writers[writer].blocked_since = None;
                true
            }
        }
    }

    /// Counters of the data a reader took so far, in order.
    #[must_use]
    pub fn received(&self, reader: usize) -> Vec<u32> {
        let deliveries = &self.ledger.readers[reader].deliveries;
        deliveries.iter().filter_map(|delivery| Some(delivery.data?.ok()?.counter)).collect()
    }

    /// How many endpoints a writer and a reader are matched with.
    #[must_use]
    pub fn matches(&self, writer: usize, reader: usize) -> (usize, usize) {
        let (writer, reader) = (&self.ledger.writers[writer], &self.ledger.readers[reader]);
        (writer.endpoint.matched().count(), reader.endpoint.matched().count())
    }

    /// Takes everything a reader has; under access of GROUP scope everything its subscriber has.
    pub fn take(&mut self, reader: usize) -> usize {
        match self.accessed_group(reader) {
            Some(group) => self.take_group(group),
            None => {
                self.accesses += 1;
                self.take_one(reader)
            }
        }
    }

    pub(super) fn take_one(&mut self, reader: usize) -> usize {
        let place = self.readers[reader];
        if self.nodes[place.node].state != State::Running {
            return 0;
        }
        let (mut seen, mut samples) = (Seen::default(), CachedSamples::new());
        let at = self.at;
        let qos = &self.ledger.readers[reader].endpoint.qos;
        // What gives way after it was read leaves sets behind of which a take shows only the rest.
        let leaves_parts = qos.presentation.coherent_access && makes_room_by_reading(qos);
        let reads_first = self.rng.chance(20) && !leaves_parts;
        let (mutation, accesses) = (self.mutation, self.accesses);
        self.call(place.node, |node, _| {
            let now = node.options.clock.now(at);
            if let Some(local) = node.members[place.member].readers.get_mut(&place.entity) {
                if reads_first {
                    seen = local.reader.edit(now, |reader| read_all(reader, now));
                }
                if mutation == Some(Mutation::ReadInstead) && accesses.is_multiple_of(10) {
                    local.reader.edit(now, |reader| reader.read(now, &Selector::default(), &mut samples));
                } else {
                    local.reader.edit(now, |reader| reader.take(now, &taken(mutation), &mut samples));
                }
            }
        });
        let same = |(one, other): (&CachedSample, &CachedSample)| {
            one.payload == other.payload && one.info.instance_handle == other.info.instance_handle
        };
        let is_left = seen.left.len() == samples.len() && seen.left.iter().zip(samples.iter()).all(same);
        if reads_first && !is_left {
            self.ledger.readers[reader].misreads += 1;
        }
        let hide = self.mutation == Some(Mutation::HideStates);
        let access = self.accesses;
        let wall = self.nodes[place.node].options.clock.now(at).wall;
        let all = seen.gave_way.iter().chain(samples.iter());
        let deliveries = all.filter(|sample| !hide || sample.info.valid_data).map(|sample| {
            let bytes = sample.payload.as_slice();
            Delivery {
                at,
                writer: Guid::from_bytes(sample.info.publication_handle.0),
                instance: sample::instance(sample.info.instance_handle),
                state: sample.info.instance_state,
                data: sample.info.valid_data.then(|| self.decode(bytes)),
                bytes: bytes.len(),
                source: sample.info.source_timestamp,
                wall,
                access,
            }
        });
        let mut deliveries: Vec<Delivery> = deliveries.collect();
        self.mutate(reader, &mut deliveries);
        let count = deliveries.len();
        if count > 0 {
            self.note(place.node, 13, || format!("reader {reader} takes {count}"));
            let record = &mut self.ledger.readers[reader];
            // What gave way was not there together with what came after it.
            let before = record.deliveries.len();
            record.takes.extend((1..=seen.gave_way.len().min(count - 1)).map(|apart| before + apart));
            record.deliveries.append(&mut deliveries);
            record.takes.push(record.deliveries.len());
        }
        count
    }

    fn decode(&self, bytes: &[u8]) -> Result<Sample, &'static str> {
        if self.mutation == Some(Mutation::FlipOctet) {
            let mut broken = bytes.to_vec();
            if let Some(last) = broken.last_mut() {
                *last ^= 1;
            }
            return Sample::decode(&broken);
        }
        let kept = bytes.len().saturating_sub((self.mutation == Some(Mutation::CutPayload)).into());
        Sample::decode(&bytes[..kept])
    }

    fn mutate(&mut self, reader: usize, deliveries: &mut Vec<Delivery>) {
        let before = self.ledger.readers[reader].deliveries.len();
        let tenth = |index: usize| (before + index) % 10 == 9;
        match self.mutation {
            Some(Mutation::DeliverTwice) => {
                let again: Vec<Delivery> = deliveries.iter().skip(1).copied().collect();
                deliveries.extend(again);
            }
            Some(Mutation::SwapDeliveries) => deliveries.reverse(),
            Some(Mutation::SwapTakes) => {
                let last = self.ledger.readers[reader].deliveries.last_mut();
                if let Some((last, first)) = last.zip(deliveries.first_mut()) {
                    std::mem::swap(last, first);
                }
            }
            Some(Mutation::LoseNewest) => drop(deliveries.pop()),
            Some(Mutation::LoseDelivery) => {
                let mut index = 0;
                deliveries.retain(|_| {
                    index += 1;
                    !tenth(index - 1)
                });
            }
            _ => {}
        }
    }
}

/// What was read gives way to what waits for room.
fn makes_room_by_reading(qos: &QosSet) -> bool {
    qos.history.kind == HistoryKind::KeepLast && qos.resource_limits.max_samples != LENGTH_UNLIMITED
}

/// What an application has read.
#[derive(Default)]
struct Seen {
    /// What is still there.
    left: CachedSamples,
    /// What was read before and is not.
    gave_way: Vec<CachedSample>,
}

/// Reads what there is. Where reading makes room, or something has expired, what waited comes in its place:
/// then that is read too, until nothing more comes.
fn read_all(reader: &mut Reader, now: Now) -> Seen {
    let is_new = |sample: &CachedSample| sample.info.sample_state == SampleState::NotRead;
    let mut seen = Seen::default();
    loop {
        let mut left = CachedSamples::new();
        reader.read(now, &Selector::default(), &mut left);
        let is_gone = |sample: &&CachedSample| left.iter().all(|other| other.id != sample.id);
        seen.gave_way.extend(seen.left.iter().filter(is_gone).cloned());
        seen.left = left;
        if !seen.left.iter().any(is_new) {
            return seen;
        }
    }
}

/// What a reader takes: everything, but for a mistake.
fn taken(mutation: Option<Mutation>) -> Selector {
    let everything = Selector::default();
    match mutation {
        Some(Mutation::TakeUnread) => Selector { sample_states: SampleState::NotRead as u8, ..everything },
        _ => everything,
    }
}

fn next_counter(record: &WriterRecord) -> u32 {
    record.changes.iter().filter(|change| matches!(change.kind, ChangeKind::Data(_))).count() as u32
}

/// The policies that matter here, in one line; the rarer ones only where they are set.
fn describe(qos: &QosSet) -> String {
    let QosSet { reliability, durability, history, partition, resource_limits: limits, .. } = qos;
    let mut line = format!("{:?} {durability:?} {:?}({})", reliability.kind, history.kind, history.depth);
    let usual = QosSet::default();
    let mut add = |set: bool, text: String| {
        if set {
            line.push(' ');
            line.push_str(&text);
        }
    };
    let milliseconds = |duration: Duration| duration.0 / 1_000_000;
    add(*limits != usual.resource_limits, format!("{limits:?}"));
    add(*partition != usual.partition, format!("partition {partition:?}"));
    add(qos.ownership != usual.ownership, format!("exclusive {}", qos.ownership_strength));
    add(qos.deadline != usual.deadline, format!("deadline {} ms", milliseconds(qos.deadline)));
    add(qos.lifespan != usual.lifespan, format!("lifespan {} ms", milliseconds(qos.lifespan)));
    let lease = milliseconds(qos.liveliness.lease_duration);
    add(qos.liveliness != usual.liveliness, format!("{:?} lease {lease} ms", qos.liveliness.kind));
    add(qos.presentation != usual.presentation, format!("{:?}", qos.presentation));
    let separation = milliseconds(qos.time_based_filter);
    add(qos.time_based_filter != usual.time_based_filter, format!("separation {separation} ms"));
    add(qos.destination_order != usual.destination_order, "by source".to_owned());
    let purge = &qos.reader_data_lifecycle;
    add(*purge != usual.reader_data_lifecycle, format!("{purge:?}"));
    add(qos.durability_service != usual.durability_service, format!("{:?}", qos.durability_service));
    add(
        qos.latency_budget != usual.latency_budget,
        format!("budget {} ms", milliseconds(qos.latency_budget)),
    );
    let versions = &qos.data_representation;
    add(*versions != usual.data_representation, format!("{versions:?}"));
    line
}
