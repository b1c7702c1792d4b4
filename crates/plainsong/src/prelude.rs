//! What most programs use.

pub use crate::cdr::{OctetSeq, XcdrVersion};
pub use crate::instance::{Guid, InstanceHandle};
pub use crate::qos::{
    AccessScope, ConsistencyKind, DeliverAt, DestinationOrder, Durability, History, HistoryKind, Liveliness,
    LivelinessKind, Ownership, PolicyId, Presentation, QosSet, ReliabilityKind, ResourceLimits,
};
pub use crate::sample::{InstanceState, SampleInfo, SampleState, ViewState};
pub use crate::status::{
    CountStatus, DeadlineMissedStatus, IncompatibleQosStatus, LivelinessChangedStatus, MatchedStatus,
    RejectReason, SampleRejectedStatus, StatusKind, StatusMask,
};
pub use crate::time::{Duration, Time, TimeExt as _};
pub use crate::types::{DdsType, DynamicData, DynamicType, TypeSupport};

pub use crate::base::config::Config;
pub use crate::builtin_topics::{
    ParticipantBuiltinTopicData, PublicationBuiltinTopicData, SubscriptionBuiltinTopicData,
    TopicBuiltinTopicData,
};
pub use crate::condition::{Condition, GuardCondition, WaitSet};
pub use crate::content_filtered_topic::{AnyContentFilteredTopic, ContentFilteredTopic};
pub use crate::data_reader::{AnyDataReader, DataReader};
pub use crate::data_writer::{AnyDataWriter, DataWriter, Loan, NotWritten, OctetLoan, SerializedLoan};
pub use crate::dynamic::{DiscoveredEndpoint, DynamicSample, FittingQos};
pub use crate::in_place::SampleRef;
pub use crate::listener::{
    DataReaderListener, DataWriterListener, DomainParticipantListener, MultiTopicListener, TopicListener,
};
pub use crate::mismatch::{Mismatch, MismatchEvent};
pub use crate::multi_topic::{MultiTopic, MultiTopicReader};
pub use crate::participant::{DomainParticipant, DomainParticipantFactory};
pub use crate::publisher::Publisher;
pub use crate::qos_provider::QosProvider;
pub use crate::query::QueryCondition;
pub use crate::read_options::ReadOptions;
pub use crate::sample::{Sample, SampleBuffer};
pub use crate::serialized::SerializedSample;
pub use crate::state::ParticipantState;
pub use crate::subscriber::Subscriber;
pub use crate::topic::{AnyTopic, Topic};
pub use crate::topic_description::{AnyTopicDescription, TopicDescription, WritableTopic};
pub use crate::undecodable::UndecodableSamples;
pub use crate::write_options::WriteOptions;
