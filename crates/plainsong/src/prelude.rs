//! What most programs use.

pub use plainsong_derive::DdsType;
pub use plainsong_proto::cdr::{DdsType, OctetSeq, XcdrVersion};
pub use plainsong_proto::guid::Guid;
pub use plainsong_proto::instance::InstanceHandle;
pub use plainsong_proto::qos::{
    AccessScope, DestinationOrder, Durability, History, HistoryKind, Liveliness, LivelinessKind, Ownership,
    QosSet, ReliabilityKind, ResourceLimits,
};
pub use plainsong_proto::sample_info::{
    InstanceSelector, InstanceState, SampleInfo, SampleState, Selector, ViewState,
};
pub use plainsong_proto::status::{StatusKind, StatusMask};
pub use plainsong_proto::type_support::{DynamicType, TypeSupport};

pub use crate::base::config::Config;
pub use crate::builtin_topics::{
    ParticipantBuiltinTopicData, PublicationBuiltinTopicData, SubscriptionBuiltinTopicData,
    TopicBuiltinTopicData,
};
pub use crate::condition::{Condition, GuardCondition, WaitSet};
pub use crate::content_filtered_topic::{AnyContentFilteredTopic, ContentFilteredTopic};
pub use crate::data_reader::{AnyDataReader, DataReader};
pub use crate::data_writer::{AnyDataWriter, DataWriter};
pub use crate::listener::{
    DataReaderListener, DataWriterListener, DomainParticipantListener, MultiTopicListener, TopicListener,
};
pub use crate::mismatch::{Mismatch, MismatchEvent};
pub use crate::multi_topic::{MultiTopic, MultiTopicReader};
pub use crate::participant::{DomainParticipant, DomainParticipantFactory};
pub use crate::publisher::Publisher;
pub use crate::qos_provider::QosProvider;
pub use crate::query::QueryCondition;
pub use crate::sample::{Sample, SampleBuffer};
pub use crate::serialized::SerializedSample;
pub use crate::subscriber::Subscriber;
pub use crate::topic::{AnyTopic, Topic};
pub use crate::topic_description::TopicDescription;
pub use crate::undecodable::UndecodableSamples;
