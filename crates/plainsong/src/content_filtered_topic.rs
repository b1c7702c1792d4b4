//! Content-filtered topics (DCPS 1.4 §2.2.2.3.3): readers of them get the samples of a topic that an
//! expression is true of. The others are not sent by writers that filter (RTPS 2.5 §8.7.3), and are dropped
//! as they arrive from those that do not, before they take room in the history.
//!
//! Only data is filtered. That an instance was disposed or has no writers any more comes with its key alone,
//! so there is nothing to evaluate: readers hear of it for the instances of which they got data.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use plainsong_proto::cdr::DdsType;
use plainsong_proto::filter::{ContentFilter, FilterError, PayloadFilter};

use crate::base::locks::lock;
use crate::data_reader::ReaderInner;
use crate::error::{BadParameter, Error, Result};
use crate::topic::{AnyTopic, Topic, TopicInner};
use crate::topic_description::Derived;

/// A topic seen through a filter. Clones are the same content-filtered topic.
///
/// DEADLINE of a reader of it is met by samples that pass the filter: it is missed by an instance of which
/// none passes for a period, also where its writer writes in time.
pub struct ContentFilteredTopic<T> {
    inner: Arc<Inner>,
    topic: Topic<T>,
}

/// A content-filtered topic whose type is not known to the compiler. Clones are the same content-filtered
/// topic.
#[derive(Clone)]
pub struct AnyContentFilteredTopic {
    inner: Arc<Inner>,
    topic: AnyTopic,
}

struct Inner {
    name: String,
    topic: Arc<TopicInner>,
    expression: String,
    state: Mutex<State>,
}

struct State {
    parameters: Vec<String>,
    filter: PayloadFilter,
    /// Counts changes of the parameters.
    revision: u64,
    readers: Vec<Weak<ReaderInner>>,
}

/// A filter, as a reader applies it and as it announces it.
pub(crate) struct ReaderFilter {
    /// The larger is the newer.
    pub(crate) revision: u64,
    pub(crate) payload: PayloadFilter,
    pub(crate) announced: ContentFilter,
}

impl<T: DdsType> ContentFilteredTopic<T> {
    pub(crate) fn new(
        name: &str,
        topic: &Topic<T>,
        expression: &str,
        parameters: Vec<String>,
    ) -> Result<Self> {
        let inner = Inner::create(name, &topic.inner, expression, parameters)?;
        Ok(Self { inner, topic: topic.clone() })
    }

    pub(crate) fn from_any(any: Arc<dyn Any + Send + Sync>) -> Option<Self> {
        let inner = any.downcast::<Inner>().ok()?;
        let topic = AnyTopic(Arc::clone(&inner.topic)).downcast()?;
        Some(Self { inner, topic })
    }

    /// The topic it filters.
    #[must_use]
    pub const fn related_topic(&self) -> &Topic<T> {
        &self.topic
    }

    /// The same content-filtered topic without its type.
    #[must_use]
    pub fn as_any(&self) -> AnyContentFilteredTopic {
        AnyContentFilteredTopic { inner: Arc::clone(&self.inner), topic: self.topic.as_any() }
    }
}

impl AnyContentFilteredTopic {
    pub(crate) fn new(
        name: &str,
        topic: &AnyTopic,
        expression: &str,
        parameters: Vec<String>,
    ) -> Result<Self> {
        let inner = Inner::create(name, &topic.0, expression, parameters)?;
        Ok(Self { inner, topic: topic.clone() })
    }

    pub(crate) fn from_any(any: Arc<dyn Any + Send + Sync>) -> Option<Self> {
        let inner = any.downcast::<Inner>().ok()?;
        let topic = AnyTopic(Arc::clone(&inner.topic));
        Some(Self { inner, topic })
    }

    /// The topic it filters.
    #[must_use]
    pub const fn related_topic(&self) -> &AnyTopic {
        &self.topic
    }
}

/// What a content-filtered topic can do whether or not its type is known.
macro_rules! untyped_operations {
    () => {
        /// Its name; writers write to the related topic.
        #[must_use]
        pub fn name(&self) -> &str {
            &self.inner.name
        }

        /// The expression.
        #[must_use]
        pub fn filter_expression(&self) -> &str {
            &self.inner.expression
        }

        /// The values of %0, %1, ….
        #[must_use]
        pub fn expression_parameters(&self) -> Vec<String> {
            self.inner.lock().parameters.clone()
        }

        /// Replaces the values of %0, %1, …: for the samples that its readers receive from now on. Writers
        /// that filter hear of it a little later; what they hold back until then does not come.
        ///
        /// # Errors
        /// [`Error::BadParameter`] when a value is missing or of the wrong kind; then nothing changed.
        /// [`Error::OutOfResources`] when a reader cannot announce it.
        pub fn set_expression_parameters(&self, parameters: Vec<String>) -> Result<()> {
            self.inner.set_parameters(parameters)
        }

        /// Gives a new reader its filter, and remembers it for when the parameters change.
        pub(crate) fn attach(&self, reader: &Arc<ReaderInner>) -> Result<()> {
            self.inner.attach(reader)
        }
    };
}

impl<T: DdsType> ContentFilteredTopic<T> {
    untyped_operations!();
}

impl AnyContentFilteredTopic {
    untyped_operations!();
}

impl Inner {
    fn create(
        name: &str,
        topic: &Arc<TopicInner>,
        expression: &str,
        parameters: Vec<String>,
    ) -> Result<Arc<Self>> {
        BadParameter::check_name("content-filtered topic", name, 1)?;
        let filter = compile(name, topic, expression, &parameters)?;
        let state = Mutex::new(State { parameters, filter, revision: 0, readers: Vec::new() });
        let (name, expression) = (name.to_owned(), expression.to_owned());
        let inner = Arc::new(Self { name, topic: Arc::clone(topic), expression, state });
        topic.participant.name_derived_topic(Arc::clone(&inner) as Arc<dyn Derived>)?;
        Ok(inner)
    }

    fn set_parameters(&self, parameters: Vec<String>) -> Result<()> {
        let filter = compile(&self.name, &self.topic, &self.expression, &parameters)?;
        let readers: Vec<_> = {
            let mut state = self.lock();
            state.parameters = parameters;
            state.filter = filter;
            state.revision += 1;
            state.readers.iter().filter_map(Weak::upgrade).collect()
        };
        // Listeners may be called from here: no lock is held.
        readers.iter().try_for_each(|reader| reader.set_filter(self.reader_filter()))
    }

    fn attach(&self, reader: &Arc<ReaderInner>) -> Result<()> {
        {
            let mut state = self.lock();
            state.readers.retain(|reader| reader.strong_count() > 0);
            state.readers.push(Arc::downgrade(reader));
        }
        reader.set_filter(self.reader_filter())
    }

    fn reader_filter(&self) -> ReaderFilter {
        let state = self.lock();
        ReaderFilter {
            revision: state.revision,
            payload: state.filter.clone(),
            announced: ContentFilter {
                topic_name: self.name.clone(),
                related_topic_name: self.topic.name.clone(),
                class_name: ContentFilter::SQL.to_owned(),
                expression: self.expression.clone(),
                parameters: state.parameters.clone(),
            },
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Derived for Inner {
    fn name(&self) -> &str {
        &self.name
    }

    fn type_name(&self) -> &str {
        self.topic.type_name()
    }
}

impl<T> Clone for ContentFilteredTopic<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), topic: self.topic.clone() }
    }
}

fn compile(name: &str, topic: &TopicInner, expression: &str, parameters: &[String]) -> Result<PayloadFilter> {
    let refused = |error| refused(&format!("the content-filtered topic '{name}'"), expression, error);
    topic.ty.filter(expression, parameters).map_err(refused)
}

/// The error of an expression that does not compile.
pub(crate) fn refused(entity: &str, expression: &str, source: FilterError) -> Error {
    let (entity, expression) = (entity.to_owned(), expression.to_owned());
    BadParameter::Expression { entity, expression, source }.into()
}
