//! Prints each status as the OMG suite expects it.

use plainsong::prelude::*;
use plainsong::status::{
    CountStatus, DeadlineMissedStatus, IncompatibleQosStatus, LivelinessChangedStatus, MatchedStatus,
    SampleRejectedStatus,
};

use crate::output::say;

/// The participant's listener: statuses of all entities bubble up to it.
pub(super) struct Report {
    /// Also says what the suite does not ask for: samples that were lost or rejected.
    pub verbose: bool,
}

impl DataWriterListener for Report {
    fn on_publication_matched(&self, writer: &AnyDataWriter, status: &MatchedStatus) {
        say!(
            "on_publication_matched() {} : matched readers {} (change = {})",
            of(writer.topic_name(), writer.type_name()),
            status.current_count,
            status.current_count_change
        );
    }

    fn on_offered_incompatible_qos(&self, writer: &AnyDataWriter, status: &IncompatibleQosStatus) {
        say!(
            "on_offered_incompatible_qos() {} : {}",
            of(writer.topic_name(), writer.type_name()),
            policy(status)
        );
    }

    fn on_offered_deadline_missed(&self, writer: &AnyDataWriter, status: &DeadlineMissedStatus) {
        say!(
            "on_offered_deadline_missed() {} : {}",
            of(writer.topic_name(), writer.type_name()),
            count(&status.count)
        );
    }

    fn on_liveliness_lost(&self, writer: &AnyDataWriter, status: &CountStatus) {
        say!("on_liveliness_lost() {} : {}", of(writer.topic_name(), writer.type_name()), count(status));
    }
}

impl DataReaderListener for Report {
    fn on_subscription_matched(&self, reader: &AnyDataReader, status: &MatchedStatus) {
        say!(
            "on_subscription_matched() {} : matched writers {} (change = {})",
            of(reader.topic_name(), reader.type_name()),
            status.current_count,
            status.current_count_change
        );
    }

    fn on_requested_incompatible_qos(&self, reader: &AnyDataReader, status: &IncompatibleQosStatus) {
        say!(
            "on_requested_incompatible_qos() {} : {}",
            of(reader.topic_name(), reader.type_name()),
            policy(status)
        );
    }

    fn on_requested_deadline_missed(&self, reader: &AnyDataReader, status: &DeadlineMissedStatus) {
        say!(
            "on_requested_deadline_missed() {} : {}",
            of(reader.topic_name(), reader.type_name()),
            count(&status.count)
        );
    }

    fn on_liveliness_changed(&self, reader: &AnyDataReader, status: &LivelinessChangedStatus) {
        say!(
            "on_liveliness_changed() {} : (alive = {}, not_alive = {})",
            of(reader.topic_name(), reader.type_name()),
            status.alive_count,
            status.not_alive_count
        );
    }

    fn on_sample_lost(&self, reader: &AnyDataReader, status: &CountStatus) {
        if self.verbose {
            say!("on_sample_lost() {} : {}", of(reader.topic_name(), reader.type_name()), count(status));
        }
    }

    fn on_sample_rejected(&self, reader: &AnyDataReader, status: &SampleRejectedStatus) {
        if self.verbose {
            say!(
                "on_sample_rejected() {} : {} {:?}",
                of(reader.topic_name(), reader.type_name()),
                count(&status.count),
                status.last_reason
            );
        }
    }
}

impl TopicListener for Report {}
impl DomainParticipantListener for Report {}

fn of(topic: &str, type_name: &str) -> String {
    format!("topic: '{topic}'  type: '{type_name}'")
}

fn policy(status: &IncompatibleQosStatus) -> String {
    status.last_policy_id.map_or_else(String::new, |id| format!("{} ({id})", id as u32))
}

fn count(status: &CountStatus) -> String {
    format!("(total = {}, change = {})", status.total_count, status.total_count_change)
}
