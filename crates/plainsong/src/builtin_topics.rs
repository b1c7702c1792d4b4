//! The built-in topics (DCPS 1.4 §2.2.5): what other participants have, read like any data.
//!
//! They begin when the application first asks for the built-in subscriber, with all that is known then.
//! Readers keep the last sample of each instance; what has left is NOT_ALIVE_DISPOSED. There are no topics on
//! the wire: `DCPSTopic` tells of the topics of others' writers and readers, with their QoS.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};

use plainsong_derive::DdsType;
use plainsong_proto::cdr::{self, DdsType, Endianness, XcdrVersion};
use plainsong_proto::discovery::{MatchedWriter, Participant, RemoteEndpoint};
use plainsong_proto::guid::{EntityId, Guid};
use plainsong_proto::instance::InstanceHandle;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::Payload;
use plainsong_proto::qos::{AccessScope, Durability, EntityKind, Presentation, QosSet, table};
use plainsong_proto::sources::Sources;
use plainsong_proto::type_support;
use plainsong_proto::wire::param::StatusInfo;

use crate::base::locks::lock;
use crate::data_reader::DataReader;
use crate::error::Result;
use crate::participant::{DomainParticipant, ParticipantInner};
use crate::runtime::{ParticipantSlot, dispatch};
use crate::subscriber::Subscriber;
use crate::topic::{Topic, TopicInner};

/// Name of the built-in topic of participants.
pub const PARTICIPANT_TOPIC: &str = "DCPSParticipant";
/// Name of the built-in topic of topics.
pub const TOPIC_TOPIC: &str = "DCPSTopic";
/// Name of the built-in topic of writers.
pub const PUBLICATION_TOPIC: &str = "DCPSPublication";
/// Name of the built-in topic of readers.
pub const SUBSCRIPTION_TOPIC: &str = "DCPSSubscription";

/// What `DCPSParticipant` tells of a participant.
#[derive(Clone, Debug, Default, PartialEq, Eq, DdsType)]
#[dds(name = "ParticipantBuiltinTopicData", final)]
pub struct ParticipantBuiltinTopicData {
    /// Its GUID.
    #[dds(key)]
    pub key: [u8; 16],
    /// USER_DATA.
    pub user_data: Vec<u8>,
    /// Its name; empty when it told none.
    pub name: String,
}

/// What `DCPSTopic` tells of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, DdsType)]
#[dds(name = "TopicBuiltinTopicData", final)]
pub struct TopicBuiltinTopicData {
    /// Names the topic, by name and type.
    #[dds(key)]
    pub key: [u8; 16],
    /// Its name.
    pub name: String,
    /// Registered name of its type.
    pub type_name: String,
    qos: Vec<u8>,
}

/// What `DCPSPublication` tells of a writer.
#[derive(Clone, Debug, Default, PartialEq, Eq, DdsType)]
#[dds(name = "PublicationBuiltinTopicData", final)]
pub struct PublicationBuiltinTopicData {
    /// Its GUID.
    #[dds(key)]
    pub key: [u8; 16],
    /// The GUID of its participant.
    pub participant_key: [u8; 16],
    /// Name of its topic.
    pub topic_name: String,
    /// Registered name of its type.
    pub type_name: String,
    qos: Vec<u8>,
}

/// What `DCPSSubscription` tells of a reader.
#[derive(Clone, Debug, Default, PartialEq, Eq, DdsType)]
#[dds(name = "SubscriptionBuiltinTopicData", final)]
pub struct SubscriptionBuiltinTopicData {
    /// Its GUID.
    #[dds(key)]
    pub key: [u8; 16],
    /// The GUID of its participant.
    pub participant_key: [u8; 16],
    /// Name of its topic.
    pub topic_name: String,
    /// Registered name of its type.
    pub type_name: String,
    qos: Vec<u8>,
}

macro_rules! with_qos {
    ($($data:ident),+) => {
        $(impl $data {
            /// The policies of the entity; of a writer or reader also those of its publisher or subscriber.
            #[must_use]
            pub fn qos(&self) -> QosSet {
                table::from_octets(&self.qos).unwrap_or_default()
            }
        })+
    };
}
with_qos!(TopicBuiltinTopicData, PublicationBuiltinTopicData, SubscriptionBuiltinTopicData);

/// A topic has no GUID: its name and type name it.
#[derive(Clone, Default, DdsType)]
#[dds(name = "TopicKey", final)]
struct TopicKey {
    #[dds(key)]
    name: String,
    #[dds(key)]
    type_name: String,
}

/// The handle of a topic.
pub(crate) fn topic_handle(name: &str, type_name: &str) -> InstanceHandle {
    let key = TopicKey { name: name.to_owned(), type_name: type_name.to_owned() };
    // Two strings always have a hash.
    cdr::key_hash(&key).map(InstanceHandle::from).unwrap_or_default()
}

impl ParticipantBuiltinTopicData {
    pub(crate) fn of(control: &Participant, guid: Guid) -> Option<Self> {
        let remote = control.remote_participants().find(|remote| remote.guid == guid)?;
        let (user_data, name) = (remote.user_data.to_vec(), remote.name.to_owned());
        Some(Self { key: guid.to_bytes(), user_data, name })
    }
}

impl TopicBuiltinTopicData {
    pub(crate) fn of(endpoint: &RemoteEndpoint<'_>) -> Self {
        Self {
            key: topic_handle(endpoint.topic, endpoint.type_name).0,
            name: endpoint.topic.to_owned(),
            type_name: endpoint.type_name.to_owned(),
            qos: table::to_octets(endpoint.qos, kind_of(endpoint.guid)),
        }
    }
}

macro_rules! endpoint_data {
    ($($data:ident),+) => {
        $(impl $data {
            pub(crate) fn of(endpoint: &RemoteEndpoint<'_>) -> Self {
                Self {
                    key: endpoint.guid.to_bytes(),
                    participant_key: endpoint.guid.prefix.participant().to_bytes(),
                    topic_name: endpoint.topic.to_owned(),
                    type_name: endpoint.type_name.to_owned(),
                    qos: table::to_octets(endpoint.qos, kind_of(endpoint.guid)),
                }
            }
        })+
    };
}
endpoint_data!(PublicationBuiltinTopicData, SubscriptionBuiltinTopicData);

const fn kind_of(guid: Guid) -> EntityKind {
    if guid.entity.is_writer() { EntityKind::Writer } else { EntityKind::Reader }
}

/// The built-in entities of a participant, once they are wanted.
#[derive(Default)]
pub(crate) struct Builtin(OnceLock<Entities>);

struct Entities {
    subscriber: Subscriber,
    /// Stands for discovery as the writer of the built-in topics.
    source: Guid,
    participants: DataReader<ParticipantBuiltinTopicData>,
    topics: DataReader<TopicBuiltinTopicData>,
    publications: DataReader<PublicationBuiltinTopicData>,
    subscriptions: DataReader<SubscriptionBuiltinTopicData>,
    /// Locked while discovery is looked at and the readers are told: news cannot overtake each other. No
    /// event is reported meanwhile.
    known: Mutex<Known>,
}

/// What the readers were told.
#[derive(Default)]
struct Known {
    participants: BTreeSet<Guid>,
    /// Endpoints with the handles of their topics.
    endpoints: BTreeMap<Guid, InstanceHandle>,
    /// Topics, and how many endpoints each has.
    topics: BTreeMap<InstanceHandle, usize>,
}

impl DomainParticipant {
    /// The subscriber of the built-in topics. Its readers are found with [`Subscriber::lookup_reader`] by
    /// [`PARTICIPANT_TOPIC`], [`TOPIC_TOPIC`], [`PUBLICATION_TOPIC`] and [`SUBSCRIPTION_TOPIC`].
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`].
    pub fn builtin_subscriber(&self) -> Result<Subscriber> {
        let slot = self.inner.slot()?;
        if self.builtin.0.get().is_none() {
            // Whoever comes second drops what it made.
            let _ = self.builtin.0.set(Entities::new(&self.inner, slot)?);
            self.builtin.catch_up(slot);
        }
        let entities = self.builtin.0.get().map(|entities| entities.subscriber.clone());
        entities.ok_or_else(|| crate::Error::NotEnabled("the built-in subscriber".into()))
    }
}

impl Builtin {
    /// Tells the readers all that is known now.
    fn catch_up(&self, slot: &ParticipantSlot) {
        let (participants, endpoints) = slot.look(|control| {
            let participants: Vec<Guid> = control.remote_participants().map(|it| it.guid).collect();
            (participants, control.remote_endpoints().map(|it| it.guid).collect::<Vec<_>>())
        });
        participants.into_iter().for_each(|guid| self.participant_changed(slot, guid));
        endpoints.into_iter().for_each(|guid| self.endpoint_changed(slot, guid));
    }

    /// A remote participant came, changed or left.
    pub(crate) fn participant_changed(&self, slot: &ParticipantSlot, guid: Guid) {
        let Some(entities) = self.0.get() else { return };
        entities.tell(slot, |known, out| {
            let data = slot.look(|control| ParticipantBuiltinTopicData::of(control, guid));
            match data {
                Some(data) => {
                    known.participants.insert(guid);
                    entities.show(&entities.participants, slot, &data, true, out);
                }
                None if known.participants.remove(&guid) => {
                    let data = ParticipantBuiltinTopicData { key: guid.to_bytes(), ..Default::default() };
                    entities.show(&entities.participants, slot, &data, false, out);
                }
                None => {}
            }
        });
    }

    /// An endpoint of a remote participant came, changed or left.
    pub(crate) fn endpoint_changed(&self, slot: &ParticipantSlot, guid: Guid) {
        let Some(entities) = self.0.get().filter(|_| !is_internal(guid)) else { return };
        entities.tell(slot, |known, out| {
            let found = slot.look(|control| {
                control.endpoint(guid).map(|endpoint| {
                    let publication = PublicationBuiltinTopicData::of(&endpoint);
                    (
                        publication,
                        SubscriptionBuiltinTopicData::of(&endpoint),
                        TopicBuiltinTopicData::of(&endpoint),
                    )
                })
            });
            let (alive, (publication, subscription, topic)) = match found {
                Some(found) => (true, found),
                None if known.endpoints.contains_key(&guid) => {
                    let key = guid.to_bytes();
                    let publication = PublicationBuiltinTopicData { key, ..Default::default() };
                    (
                        false,
                        (
                            publication,
                            SubscriptionBuiltinTopicData { key, ..Default::default() },
                            Default::default(),
                        ),
                    )
                }
                None => return,
            };
            if guid.entity.is_writer() {
                entities.show(&entities.publications, slot, &publication, alive, out);
            } else {
                entities.show(&entities.subscriptions, slot, &subscription, alive, out);
            }
            entities.topic_changed(slot, known, guid, alive.then_some(&topic), out);
        });
    }
}

/// Whether an endpoint is of no concern to applications: those by which the groups of ATOMIC topics talk.
pub(crate) const fn is_internal(endpoint: Guid) -> bool {
    endpoint.entity.is_vendor_specific()
}

impl Entities {
    fn new(participant: &Arc<ParticipantInner>, slot: &ParticipantSlot) -> Result<Self> {
        let presentation = Presentation { access_scope: AccessScope::Topic, ..Presentation::default() };
        let subscriber =
            Subscriber::builtin(Arc::clone(participant), QosSet { presentation, ..QosSet::default() })?;
        let source = participant.guid_prefix.entity(EntityId::SEDP_PUBLICATIONS_WRITER);
        Ok(Self {
            participants: reader(&subscriber, slot, PARTICIPANT_TOPIC, source)?,
            topics: reader(&subscriber, slot, TOPIC_TOPIC, source)?,
            publications: reader(&subscriber, slot, PUBLICATION_TOPIC, source)?,
            subscriptions: reader(&subscriber, slot, SUBSCRIPTION_TOPIC, source)?,
            subscriber,
            source,
            known: Mutex::default(),
        })
    }

    /// Runs `tell` with the lock held, and reports its events without it.
    fn tell(&self, slot: &ParticipantSlot, tell: impl FnOnce(&mut Known, &mut Outbox)) {
        dispatch::with_outbox(|out| {
            tell(&mut lock(&self.known), out);
            slot.report(out);
        });
    }

    /// Gives a reader a sample, or ends its instance.
    fn show<T: DdsType>(
        &self,
        reader: &DataReader<T>,
        slot: &ParticipantSlot,
        data: &T,
        alive: bool,
        out: &mut Outbox,
    ) {
        let mut octets = Vec::new();
        let encoded = if alive {
            cdr::to_payload(data, XcdrVersion::Xcdr1, Endianness::Little, &mut octets)
        } else {
            cdr::key_to_payload(data, XcdrVersion::Xcdr1, Endianness::Little, &mut octets)
        };
        if encoded.is_err() {
            return;
        }
        let status = StatusInfo { disposed: !alive, unregistered: !alive, ..StatusInfo::default() };
        let payload = Payload::from_vec(octets);
        reader.inner().run(slot, out, |reader, now, out| {
            // The reader counts what it cannot take.
            let _ = reader.store_local(now, self.source, status, payload, out);
        });
    }

    /// The topic of an endpoint came, goes on or, with its last endpoint, left.
    fn topic_changed(
        &self,
        slot: &ParticipantSlot,
        known: &mut Known,
        endpoint: Guid,
        topic: Option<&TopicBuiltinTopicData>,
        out: &mut Outbox,
    ) {
        let handle = topic.map(|topic| InstanceHandle(topic.key));
        let before = known.endpoints.get(&endpoint).copied();
        if before == handle {
            return;
        }
        if let (Some(topic), Some(handle)) = (topic, handle) {
            known.endpoints.insert(endpoint, handle);
            let count = known.topics.entry(handle).or_default();
            *count += 1;
            if *count == 1 {
                self.show(&self.topics, slot, topic, true, out);
            }
        } else {
            known.endpoints.remove(&endpoint);
        }
        let Some(before) = before else { return };
        if let Some(count) = known.topics.get_mut(&before) {
            *count -= 1;
            if *count == 0 {
                known.topics.remove(&before);
                let gone = TopicBuiltinTopicData { key: before.0, ..Default::default() };
                self.show(&self.topics, slot, &gone, false, out);
            }
        }
    }
}

/// A reader of a built-in topic: discovery does not know of it.
fn reader<T: DdsType>(
    subscriber: &Subscriber,
    slot: &ParticipantSlot,
    topic: &str,
    source: Guid,
) -> Result<DataReader<T>> {
    let participant = Arc::clone(&subscriber.inner.participant);
    let topic = TopicInner::new(participant, topic.to_owned(), type_support::of::<T>(), QosSet::default());
    let qos = QosSet::reader().reliable().keep_last(1).durability(Durability::TransientLocal);
    let reader = DataReader::create(Arc::clone(&subscriber.inner), &Topic::from_inner(Arc::new(topic)), qos)?;
    subscriber.inner.add(reader.inner());
    reader.inner().enable_unannounced()?;
    let writer = MatchedWriter {
        guid: source,
        locators: Vec::new(),
        sources: Sources::default(),
        publisher: EntityId::UNKNOWN,
        vendor: plainsong_proto::vendor::PLAINSONG,
        qos: QosSet::default(),
        begins: false,
    };
    dispatch::with_outbox(|out| {
        reader.inner().run(slot, out, |reader, now, out| reader.match_writer(now, &writer, out));
        // Nobody else knows of that writer: its match is no event.
        out.events.clear();
    });
    Ok(reader)
}

impl Subscriber {
    /// Whether it is the subscriber of the built-in topics.
    #[must_use]
    pub fn is_builtin(&self) -> bool {
        self.inner.is_builtin
    }
}
