//! Listeners: callbacks on the thread that caused the event, with no lock held.
//!
//! A status goes to the first listener that asked for it, from the entity upwards: writer or reader, then
//! publisher or subscriber, then participant (DCPS 1.4 §2.2.4.2.3). A listener that heard of it has consumed
//! the change. Callbacks should return soon: they run on a receive or timer thread, and what that thread is
//! to do next waits for them. A thread that waits or takes and receives meanwhile what is for others calls
//! none of them.
//!
//! A callback may wait in the library: `write` for room, `wait_for_acknowledgments`, `WaitSet::wait` and the
//! like go on receiving and sending for all entities of the domain. Readers of others get their samples
//! meanwhile, and whoever waits for these is woken; other listeners of the thread are called when the
//! callback has returned and the rest of its batch of datagrams is done, once for what came several times.
//! What waits by other means, as for a lock or in a sleep, keeps the thread from all that.

use plainsong_proto::status::{
    CountStatus, DeadlineMissedStatus, IncompatibleQosStatus, LivelinessChangedStatus, MatchedStatus,
    SampleRejectedStatus,
};

use crate::data_reader::AnyDataReader;
use crate::data_writer::AnyDataWriter;
use crate::multi_topic::MultiTopicReader;
use crate::subscriber::Subscriber;
use crate::topic::AnyTopic;

/// Hears the statuses of writers: set on a writer, a publisher or a participant.
#[expect(unused_variables, reason = "callbacks do nothing by default")]
pub trait DataWriterListener: Send + Sync {
    /// Readers were matched or unmatched.
    fn on_publication_matched(&self, writer: &AnyDataWriter, status: &MatchedStatus) {}
    /// A reader asks for more than the writer offers.
    fn on_offered_incompatible_qos(&self, writer: &AnyDataWriter, status: &IncompatibleQosStatus) {}
    /// The writer missed the deadline it offers.
    fn on_offered_deadline_missed(&self, writer: &AnyDataWriter, status: &DeadlineMissedStatus) {}
    /// The writer did not assert its liveliness in time.
    fn on_liveliness_lost(&self, writer: &AnyDataWriter, status: &CountStatus) {}
}

/// Hears the statuses of readers: set on a reader, a subscriber or a participant.
#[expect(unused_variables, reason = "callbacks do nothing by default")]
pub trait DataReaderListener: Send + Sync {
    /// Samples or changes of instance state can be taken.
    fn on_data_available(&self, reader: &AnyDataReader) {}
    /// Some reader of the subscriber has data; told instead of `on_data_available` when wanted.
    fn on_data_on_readers(&self, subscriber: &Subscriber) {}
    /// Writers were matched or unmatched.
    fn on_subscription_matched(&self, reader: &AnyDataReader, status: &MatchedStatus) {}
    /// A writer offers less than the reader asks for.
    fn on_requested_incompatible_qos(&self, reader: &AnyDataReader, status: &IncompatibleQosStatus) {}
    /// An instance saw no sample within the requested deadline.
    fn on_requested_deadline_missed(&self, reader: &AnyDataReader, status: &DeadlineMissedStatus) {}
    /// Writers became alive or not alive.
    fn on_liveliness_changed(&self, reader: &AnyDataReader, status: &LivelinessChangedStatus) {}
    /// Samples were never received.
    fn on_sample_lost(&self, reader: &AnyDataReader, status: &CountStatus) {}
    /// A sample was refused by a resource limit.
    fn on_sample_rejected(&self, reader: &AnyDataReader, status: &SampleRejectedStatus) {}
}

/// Hears the status of topics: set on a topic or a participant.
#[expect(unused_variables, reason = "callbacks do nothing by default")]
pub trait TopicListener: Send + Sync {
    /// Another participant has a topic of the same name with another type.
    fn on_inconsistent_topic(&self, topic: &AnyTopic, status: &CountStatus) {}
}

/// Hears of the reader of a multi-topic.
pub trait MultiTopicListener<T>: Send + Sync {
    /// Samples came to be that can be taken.
    fn on_data_available(&self, reader: &MultiTopicReader<T>);
}

/// Hears of everything in a participant that no closer listener asked for.
pub trait DomainParticipantListener: DataWriterListener + DataReaderListener + TopicListener {}
