//! What readers can be made of (DCPS 1.4 §2.2.2.3.1): topics, and what is made of topics. They share the
//! names of their participant.

use std::any::Any;
use std::sync::{Arc, Weak};

use plainsong_proto::cdr::DdsType;
use plainsong_proto::qos::QosSet;

use crate::base::locks::lock;
use crate::content_filtered_topic::{AnyContentFilteredTopic, ContentFilteredTopic};
use crate::data_reader::{AnyDataReader, DataReader, ReaderInner};
use crate::data_writer::{AnyDataWriter, DataWriter, WriterInner};
use crate::error::{Error, PreconditionNotMet, Result};
use crate::multi_topic::{MultiTopic, MultiTopicReader};
use crate::participant::{DomainParticipant, ParticipantInner};
use crate::publisher::Publisher;
use crate::subscriber::Subscriber;
use crate::topic::{AnyTopic, Topic};

/// What [`Subscriber::create_reader`] makes readers of: a topic, a content-filtered topic or a multi-topic.
pub trait TopicDescription: sealed::Sealed {
    /// What reads it.
    type Reader;

    /// Its name.
    fn name(&self) -> &str;

    /// The registered name of the type that readers of it have.
    fn type_name(&self) -> &str;

    #[doc(hidden)]
    fn new_reader(&self, subscriber: &Subscriber, qos: QosSet) -> Result<Self::Reader>;
}

/// What [`Publisher::create_writer`] makes writers of, and what can be filtered by content: a topic, with or
/// without a Rust type.
pub trait WritableTopic: TopicDescription {
    /// What writes to it.
    type Writer;
    /// The same topic seen through a filter.
    type ContentFiltered;

    #[doc(hidden)]
    fn new_writer(&self, publisher: &Publisher, qos: QosSet) -> Result<Self::Writer>;

    #[doc(hidden)]
    fn new_content_filtered(
        &self,
        participant: &DomainParticipant,
        name: &str,
        expression: &str,
        parameters: Vec<String>,
    ) -> Result<Self::ContentFiltered>;
}

mod sealed {
    pub trait Sealed {}
}

/// A topic, a content-filtered topic or a multi-topic, whose type is not known to the compiler.
#[derive(Clone)]
pub struct AnyTopicDescription(Kind);

#[derive(Clone)]
enum Kind {
    Topic(AnyTopic),
    Derived(Arc<dyn Derived>),
}

/// What is made of topics.
pub(crate) trait Derived: Any + Send + Sync {
    fn name(&self) -> &str;
    fn type_name(&self) -> &str;
}

impl AnyTopicDescription {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.0 {
            Kind::Topic(topic) => topic.name(),
            Kind::Derived(derived) => derived.name(),
        }
    }

    /// The registered name of the type that readers of it have.
    #[must_use]
    pub fn type_name(&self) -> &str {
        match &self.0 {
            Kind::Topic(topic) => topic.type_name(),
            Kind::Derived(derived) => derived.type_name(),
        }
    }

    /// The topic, when it is one.
    #[must_use]
    pub fn topic(&self) -> Option<AnyTopic> {
        match &self.0 {
            Kind::Topic(topic) => Some(topic.clone()),
            Kind::Derived(_) => None,
        }
    }

    /// The content-filtered topic, when it is one of `T`.
    #[must_use]
    pub fn content_filtered_topic<T: DdsType>(&self) -> Option<ContentFilteredTopic<T>> {
        self.made().and_then(ContentFilteredTopic::from_any)
    }

    /// The content-filtered topic without its type, when it is one.
    #[must_use]
    pub fn any_content_filtered_topic(&self) -> Option<AnyContentFilteredTopic> {
        self.made().and_then(AnyContentFilteredTopic::from_any)
    }

    /// The multi-topic, when it is one of `T`.
    #[must_use]
    pub fn multi_topic<T: DdsType>(&self) -> Option<MultiTopic<T>> {
        self.made().and_then(MultiTopic::from_any)
    }

    fn made(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        match &self.0 {
            Kind::Topic(_) => None,
            Kind::Derived(derived) => Some(Arc::clone(derived) as Arc<dyn Any + Send + Sync>),
        }
    }
}

impl DomainParticipant {
    /// What this participant has of this name, as long as somebody holds it: a topic, a content-filtered
    /// topic or a multi-topic.
    #[must_use]
    pub fn lookup_topic_description(&self, name: &str) -> Option<AnyTopicDescription> {
        let topic = self.inner.topic(name).map(|topic| Kind::Topic(AnyTopic(topic)));
        topic.or_else(|| self.inner.derived_topic(name).map(Kind::Derived)).map(AnyTopicDescription)
    }
}

/// Name and type name as the type itself has them.
macro_rules! described {
    () => {
        fn name(&self) -> &str {
            Self::name(self)
        }

        fn type_name(&self) -> &str {
            Self::type_name(self)
        }
    };
}

impl<T: DdsType> sealed::Sealed for Topic<T> {}
impl sealed::Sealed for AnyTopic {}
impl<T: DdsType> sealed::Sealed for ContentFilteredTopic<T> {}
impl sealed::Sealed for AnyContentFilteredTopic {}
impl<T: DdsType> sealed::Sealed for MultiTopic<T> {}

impl<T: DdsType> TopicDescription for Topic<T> {
    type Reader = DataReader<T>;

    described!();

    fn new_reader(&self, subscriber: &Subscriber, qos: QosSet) -> Result<DataReader<T>> {
        let reader = DataReader::create(Arc::clone(&subscriber.inner), self, qos)?;
        subscriber.adopt(reader.inner())?;
        Ok(reader)
    }
}

impl<T: DdsType> WritableTopic for Topic<T> {
    type Writer = DataWriter<T>;
    type ContentFiltered = ContentFilteredTopic<T>;

    fn new_writer(&self, publisher: &Publisher, qos: QosSet) -> Result<DataWriter<T>> {
        let writer = DataWriter::create(Arc::clone(&publisher.inner), self, qos)?;
        publisher.adopt(writer.inner())?;
        Ok(writer)
    }

    fn new_content_filtered(
        &self,
        participant: &DomainParticipant,
        name: &str,
        expression: &str,
        parameters: Vec<String>,
    ) -> Result<ContentFilteredTopic<T>> {
        participant.check_own(&self.inner)?;
        ContentFilteredTopic::new(name, self, expression, parameters)
    }
}

impl TopicDescription for AnyTopic {
    type Reader = AnyDataReader;

    described!();

    fn new_reader(&self, subscriber: &Subscriber, qos: QosSet) -> Result<AnyDataReader> {
        let reader = ReaderInner::create(Arc::clone(&subscriber.inner), &self.0, self.type_support(), qos)?;
        subscriber.adopt(&reader)?;
        Ok(AnyDataReader(reader))
    }
}

impl WritableTopic for AnyTopic {
    type Writer = AnyDataWriter;
    type ContentFiltered = AnyContentFilteredTopic;

    fn new_writer(&self, publisher: &Publisher, qos: QosSet) -> Result<AnyDataWriter> {
        let writer = WriterInner::create(Arc::clone(&publisher.inner), &self.0, self.type_support(), qos)?;
        publisher.adopt(&writer)?;
        Ok(AnyDataWriter::new(writer))
    }

    fn new_content_filtered(
        &self,
        participant: &DomainParticipant,
        name: &str,
        expression: &str,
        parameters: Vec<String>,
    ) -> Result<AnyContentFilteredTopic> {
        participant.check_own(&self.0)?;
        AnyContentFilteredTopic::new(name, self, expression, parameters)
    }
}

impl<T: DdsType> TopicDescription for ContentFilteredTopic<T> {
    type Reader = DataReader<T>;

    fn name(&self) -> &str {
        Self::name(self)
    }

    fn type_name(&self) -> &str {
        self.related_topic().type_name()
    }

    fn new_reader(&self, subscriber: &Subscriber, qos: QosSet) -> Result<DataReader<T>> {
        let reader = DataReader::create(Arc::clone(&subscriber.inner), self.related_topic(), qos)?;
        self.attach(reader.inner())?;
        subscriber.adopt(reader.inner())?;
        Ok(reader)
    }
}

impl TopicDescription for AnyContentFilteredTopic {
    type Reader = AnyDataReader;

    fn name(&self) -> &str {
        Self::name(self)
    }

    fn type_name(&self) -> &str {
        self.related_topic().type_name()
    }

    fn new_reader(&self, subscriber: &Subscriber, qos: QosSet) -> Result<AnyDataReader> {
        let related = self.related_topic();
        let reader =
            ReaderInner::create(Arc::clone(&subscriber.inner), &related.0, related.type_support(), qos)?;
        self.attach(&reader)?;
        subscriber.adopt(&reader)?;
        Ok(AnyDataReader(reader))
    }
}

impl<T: DdsType> TopicDescription for MultiTopic<T> {
    type Reader = MultiTopicReader<T>;

    fn name(&self) -> &str {
        Self::name(self)
    }

    fn type_name(&self) -> &str {
        T::TYPE_NAME
    }

    fn new_reader(&self, subscriber: &Subscriber, qos: QosSet) -> Result<MultiTopicReader<T>> {
        self.create_reader(subscriber, qos)
    }
}

impl ParticipantInner {
    fn derived_topic(&self, name: &str) -> Option<Arc<dyn Derived>> {
        lock(&self.derived_topics).get(name).and_then(Weak::upgrade)
    }

    /// Gives a name to what is made of topics, unless the participant has something else of that name.
    pub(crate) fn name_derived_topic(&self, derived: Arc<dyn Derived>) -> Result<()> {
        let mut all = lock(&self.derived_topics);
        all.retain(|_, known| known.strong_count() > 0);
        let name = derived.name();
        if all.contains_key(name) || self.topic(name).is_some() {
            return Err(in_use(name));
        }
        all.insert(name.to_owned(), Arc::downgrade(&derived));
        Ok(())
    }

    /// Refuses the name of something made of topics to a topic. As long as the result lives, nobody gives it
    /// to such.
    pub(crate) fn keep_for_topic(&self, name: &str) -> Result<impl Drop> {
        let all = lock(&self.derived_topics);
        if all.get(name).is_some_and(|known| known.strong_count() > 0) { Err(in_use(name)) } else { Ok(all) }
    }
}

fn in_use(name: &str) -> Error {
    PreconditionNotMet::NameInUse { name: name.to_owned() }.into()
}
