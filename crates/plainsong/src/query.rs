//! Query conditions (DCPS 1.4 §2.2.2.5.9): read conditions with an expression about the data.

use std::sync::{Arc, RwLock};

use plainsong_proto::cdr::DdsType;
use plainsong_proto::filter::{Filter, PayloadFilter};
use plainsong_proto::reader::{Access, Fetch};
use plainsong_proto::sample_info::{InstanceSelector, Selector};

use crate::base::locks::{read, write};
use crate::condition::Condition;
use crate::content_filtered_topic::refused;
use crate::data_reader::{DataReader, ReaderInner};
use crate::error::Result;
use crate::sample::Sample;

/// Chooses among the samples of one reader by state and by content. Clones are the same condition.
pub struct QueryCondition<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    reader: DataReader<T>,
    expression: String,
    query: Arc<Query>,
    compiled: RwLock<Compiled<T>>,
}

struct Compiled<T> {
    parameters: Vec<String>,
    filter: Arc<Filter<T>>,
}

/// The part of a query condition that a wait set looks at.
pub(crate) struct Query {
    pub(crate) reader: Arc<ReaderInner>,
    pub(crate) selector: Selector,
    filter: RwLock<PayloadFilter>,
    generation: u64,
}

impl Query {
    /// Whether its reader did not delete it.
    pub(crate) fn is_current(&self) -> bool {
        self.reader.condition_generation() == self.generation
    }

    pub(crate) fn filter(&self) -> PayloadFilter {
        read(&self.filter).clone()
    }
}

impl<T: DdsType> QueryCondition<T> {
    pub(crate) fn new(
        reader: DataReader<T>,
        selector: Selector,
        expression: &str,
        parameters: Vec<String>,
    ) -> Result<Self> {
        let compiled = compile(&reader, expression, parameters)?;
        let query = Query {
            reader: Arc::clone(reader.inner()),
            selector,
            generation: reader.inner().condition_generation(),
            filter: RwLock::new(payload_filter(&compiled)),
        };
        let inner = Inner {
            reader,
            expression: expression.to_owned(),
            query: Arc::new(query),
            compiled: RwLock::new(compiled),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// For a wait set: triggered while the reader has samples that the query chooses. Each look at it looks
    /// at the reader's samples.
    #[must_use]
    pub fn condition(&self) -> Condition {
        Condition::query(Arc::clone(&self.inner.query))
    }

    /// The states that it chooses.
    #[must_use]
    pub fn selector(&self) -> Selector {
        self.inner.query.selector
    }

    /// The reader it belongs to.
    #[must_use]
    pub fn reader(&self) -> &DataReader<T> {
        &self.inner.reader
    }

    /// The expression.
    #[must_use]
    pub fn query_expression(&self) -> &str {
        &self.inner.expression
    }

    /// The values of %0, %1, ….
    #[must_use]
    pub fn query_parameters(&self) -> Vec<String> {
        self.compiled(|compiled| compiled.parameters.clone())
    }

    /// Replaces the values of %0, %1, ….
    ///
    /// # Errors
    /// [`crate::Error::BadParameter`] when a value is missing or of the wrong kind; then nothing changed.
    pub fn set_query_parameters(&self, parameters: Vec<String>) -> Result<()> {
        let compiled = compile(&self.inner.reader, &self.inner.expression, parameters)?;
        let mut current = write(&self.inner.compiled);
        *write(&self.inner.query.filter) = payload_filter(&compiled);
        *current = compiled;
        drop(current);
        // What waits for the condition has to look again.
        self.inner.query.reader.core().wake_waiters();
        Ok(())
    }

    /// Returns up to `samples_max` samples that the query chooses and marks them read, in the order of
    /// ORDER BY if there is one: it orders what is returned, not what is chosen.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`].
    pub fn read(&self, samples_max: usize) -> Result<Vec<Sample<T>>> {
        self.fetch(Access::Read, self.selector().instance, samples_max)
    }

    /// As [`Self::read`], and removes them.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`].
    pub fn take(&self, samples_max: usize) -> Result<Vec<Sample<T>>> {
        self.fetch(Access::Take, self.selector().instance, samples_max)
    }

    /// What the query chooses of the instances that `instance` chooses.
    pub(crate) fn fetch(
        &self,
        access: Access,
        instance: InstanceSelector,
        samples_max: usize,
    ) -> Result<Vec<Sample<T>>> {
        let selector = self.inner.query.selector;
        let samples_max = samples_max.min(selector.samples_max);
        let selector = &Selector { instance, samples_max, ..selector };
        let query = Some(&self.inner.query.filter());
        self.sorted(self.inner.reader.fetch(&Fetch { access, selector, query })?)
    }

    fn sorted(&self, mut samples: Vec<Sample<T>>) -> Result<Vec<Sample<T>>> {
        let filter = self.compiled(|compiled| Arc::clone(&compiled.filter));
        if filter.is_ordered() {
            samples.sort_by(|left, right| match (&left.data, &right.data) {
                (Some(left), Some(right)) => filter.compare(left, right),
                (left, right) => left.is_some().cmp(&right.is_some()),
            });
        }
        Ok(samples)
    }

    fn compiled<R>(&self, look: impl FnOnce(&Compiled<T>) -> R) -> R {
        look(&read(&self.inner.compiled))
    }
}

impl<T> Clone for QueryCondition<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

fn compile<T: DdsType>(
    reader: &DataReader<T>,
    expression: &str,
    parameters: Vec<String>,
) -> Result<Compiled<T>> {
    let filter = Filter::query(expression, &parameters).map_err(|error| {
        refused(&format!("a query of the reader of topic '{}'", reader.topic_name()), expression, &error)
    })?;
    Ok(Compiled { parameters, filter: Arc::new(filter) })
}

fn payload_filter<T: DdsType>(compiled: &Compiled<T>) -> PayloadFilter {
    let filter = Arc::clone(&compiled.filter);
    PayloadFilter::new(move |payload| filter.passes_payload(payload))
}
