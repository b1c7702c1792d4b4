//! What readers can be made of (DCPS 1.4 §2.2.2.3.1): topics, and what is made of topics. They share the names of their
//! participant.

use std::any::Any;
use std::sync::{Arc, Weak};

use plainsong_proto::cdr::DdsType;

use crate::base::locks::lock;
use crate::content_filtered_topic::{AnyContentFilteredTopic, ContentFilteredTopic};
use crate::error::{Error, Result};
use crate::multi_topic::MultiTopic;
use crate::participant::{DomainParticipant, ParticipantInner};
use crate::topic::AnyTopic;

/// A topic, a content-filtered topic or a multi-topic, whose type is not known to the compiler.
#[derive(Clone)]
pub struct TopicDescription(Kind);

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

impl TopicDescription {
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
    /// What this participant has of this name, as long as somebody holds it: a topic, a content-filtered topic or a multi-topic.
    #[must_use]
    pub fn lookup_topic_description(&self, name: &str) -> Option<TopicDescription> {
        let topic = self.inner.topic(name).map(|topic| Kind::Topic(AnyTopic(topic)));
        topic.or_else(|| self.inner.derived_topic(name).map(Kind::Derived)).map(TopicDescription)
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

    /// Refuses the name of something made of topics to a topic. As long as the result lives, nobody gives it to such.
    pub(crate) fn keep_for_topic(&self, name: &str) -> Result<impl Drop> {
        let all = lock(&self.derived_topics);
        if all.get(name).is_some_and(|known| known.strong_count() > 0) { Err(in_use(name)) } else { Ok(all) }
    }
}

fn in_use(name: &str) -> Error {
    Error::PreconditionNotMet(format!(
        "the participant has a topic, content-filtered topic or multi-topic of the name '{name}': choose another name"
    ))
}
