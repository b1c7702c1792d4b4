//! What was discovered of others (DCPS 1.4 §2.2.2.2.1.27 to .30, §2.2.2.4.2.23, §2.2.2.5.3.33).

use std::collections::BTreeSet;

use plainsong_proto::cdr::DdsType;
pub use plainsong_proto::discovery::ToldType;
use plainsong_proto::guid::Guid;
use plainsong_proto::instance::InstanceHandle;
use plainsong_proto::time::Duration;

use crate::base::clock;
use crate::builtin_topics::{
    ParticipantBuiltinTopicData, PublicationBuiltinTopicData, SubscriptionBuiltinTopicData,
    TopicBuiltinTopicData, is_internal, topic_handle,
};
use crate::data_reader::{AnyDataReader, DataReader};
use crate::data_writer::{AnyDataWriter, DataWriter};
use crate::error::{BadParameter, Error, PreconditionNotMet, Result, WaitedFor};
use crate::participant::{DomainParticipant, ParticipantInner};
use crate::topic::{AnyTopic, Topic};

/// How often discovery is looked at while waiting for a topic.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(20);

impl DomainParticipant {
    /// Handles of the other participants that are known and not ignored.
    ///
    /// # Errors
    /// [`Error::NotEnabled`].
    pub fn discovered_participants(&self) -> Result<Vec<InstanceHandle>> {
        self.inspect(|control| control.remote_participants().map(|it| it.guid.into()).collect())
    }

    /// What one of them told.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] when the handle is none of [`Self::discovered_participants`],
    /// [`Error::NotEnabled`].
    pub fn discovered_participant_data(&self, handle: InstanceHandle) -> Result<ParticipantBuiltinTopicData> {
        let guid = Guid::from(handle);
        let found = self.inspect(|control| ParticipantBuiltinTopicData::of(control, guid))?;
        found.ok_or_else(|| PreconditionNotMet::NotDiscovered { what: "participant" }.into())
    }

    /// Handles of the topics of which others have writers or readers that are not ignored.
    ///
    /// # Errors
    /// [`Error::NotEnabled`].
    pub fn discovered_topics(&self) -> Result<Vec<InstanceHandle>> {
        let handles: BTreeSet<_> = self.inspect(|control| {
            let all = control.remote_endpoints().filter(|it| !is_internal(it.guid));
            all.map(|it| topic_handle(it.topic, it.type_name)).collect()
        })?;
        Ok(handles.into_iter().collect())
    }

    /// What is known of one of them.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] when the handle is none of [`Self::discovered_topics`],
    /// [`Error::NotEnabled`].
    pub fn discovered_topic_data(&self, handle: InstanceHandle) -> Result<TopicBuiltinTopicData> {
        let found = self.inspect(|control| {
            let mut endpoints = control.remote_endpoints();
            let found = endpoints.find(|it| topic_handle(it.topic, it.type_name) == handle);
            found.map(|endpoint| TopicBuiltinTopicData::of(&endpoint))
        })?;
        found.ok_or_else(|| PreconditionNotMet::NotDiscovered { what: "topic" }.into())
    }

    /// The type of a writer or reader of another participant, as its participant told it. Where that has not
    /// told all of it yet, it is asked: call again later.
    ///
    /// # Errors
    /// [`Error::NotEnabled`].
    pub fn discovered_type(&self, endpoint: InstanceHandle) -> Result<ToldType> {
        let guid = Guid::from(endpoint);
        Ok(self.inner.slot()?.control(|control, now, out| control.told_type(now, guid, out)))
    }

    /// The topic of this name: one made here or, as soon as somebody else has it, made here now with the QoS
    /// that is known of it. Waits for at most `timeout`.
    ///
    /// # Errors
    /// [`Error::Timeout`] when nobody has it, [`Error::PreconditionNotMet`] when it has another type here.
    pub fn find_topic<T: DdsType>(&self, name: &str, timeout: impl Into<Duration>) -> Result<Topic<T>> {
        let timeout = timeout.into();
        let deadline = clock::deadline(timeout);
        loop {
            if let Some(known) = self.inner.topic(name).map(AnyTopic) {
                return known.downcast().ok_or_else(|| {
                    let [topic, type_name, wanted] =
                        [name, known.type_name(), T::TYPE_NAME].map(str::to_owned);
                    PreconditionNotMet::OtherType { topic, type_name, wanted }.into()
                });
            }
            let found = self.inspect(|control| {
                let mut others = control.remote_endpoints();
                others.find(|it| it.topic == name && it.type_name == T::TYPE_NAME).map(|it| it.qos.clone())
            })?;
            if let Some(qos) = found {
                return self.create_topic(name, qos);
            }
            let left = deadline.map_or(LOOK_AGAIN, |deadline| clock::until(deadline).min(LOOK_AGAIN));
            if left.is_zero() {
                let what = format!("finding topic '{name}' of type '{}'", T::TYPE_NAME);
                return Err(Error::Timeout { waited_for: WaitedFor::Topic, what, timeout });
            }
            std::thread::sleep(left);
        }
    }
}

/// The publication of a writer matched with one of `matched`.
fn publication(
    participant: &ParticipantInner,
    matched: &[InstanceHandle],
    handle: InstanceHandle,
) -> Result<PublicationBuiltinTopicData> {
    let guid = Guid::from(handle);
    let slot = participant.slot()?;
    let found = slot.look(|control| control.endpoint(guid).map(|it| PublicationBuiltinTopicData::of(&it)));
    found
        .filter(|_| matched.contains(&handle))
        .ok_or_else(|| BadParameter::NotMatched { entity: "the reader".to_owned() }.into())
}

fn subscription(
    participant: &ParticipantInner,
    matched: &[InstanceHandle],
    handle: InstanceHandle,
) -> Result<SubscriptionBuiltinTopicData> {
    let guid = Guid::from(handle);
    let slot = participant.slot()?;
    let found = slot.look(|control| control.endpoint(guid).map(|it| SubscriptionBuiltinTopicData::of(&it)));
    found
        .filter(|_| matched.contains(&handle))
        .ok_or_else(|| BadParameter::NotMatched { entity: "the writer".to_owned() }.into())
}

macro_rules! matched_publication_data {
    () => {
        /// What a matched writer told; its handle is one of [`Self::matched_publications`].
        ///
        /// # Errors
        /// [`Error::BadParameter`] when no such writer is matched, [`Error::NotEnabled`].
        pub fn matched_publication_data(
            &self,
            handle: InstanceHandle,
        ) -> Result<PublicationBuiltinTopicData> {
            publication(&self.subscriber().inner.participant, &self.matched_publications()?, handle)
        }
    };
}

macro_rules! matched_subscription_data {
    () => {
        /// What a matched reader told; its handle is one of [`Self::matched_subscriptions`].
        ///
        /// # Errors
        /// [`Error::BadParameter`] when no such reader is matched, [`Error::NotEnabled`].
        pub fn matched_subscription_data(
            &self,
            handle: InstanceHandle,
        ) -> Result<SubscriptionBuiltinTopicData> {
            subscription(&self.publisher().inner.participant, &self.matched_subscriptions()?, handle)
        }
    };
}

impl<T: DdsType> DataReader<T> {
    matched_publication_data!();
}

impl AnyDataReader {
    matched_publication_data!();
}

impl<T: DdsType> DataWriter<T> {
    matched_subscription_data!();
}

impl AnyDataWriter {
    matched_subscription_data!();
}
