//! Query conditions (DCPS 1.4 §2.2.2.5.9): read conditions with an expression about the data.

use std::any::Any;
use std::sync::{Arc, RwLock};

use plainsong_proto::cdr::DdsType;
use plainsong_proto::filter::{Filter, PayloadFilter};
use plainsong_proto::sample_info::Selector;

use crate::base::large_stack::on_fitting_stack;
use crate::base::locks::{read, write};
use crate::condition::Condition;
use crate::content_filtered_topic::refused;
use crate::data_reader::{DataReader, ReaderInner};
use crate::error::{OutOfResources, Result};
use crate::read_options::ReadOptions;
use crate::sample::Sample;

/// Chooses among the samples of one reader by state and by content: to wait for with a
/// [`WaitSet`](crate::condition::WaitSet), and to read by with [`ReadOptions::condition`]. Clones are the
/// same condition.
pub struct QueryCondition<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    reader: DataReader<T>,
    expression: String,
    query: Arc<Query>,
}

struct Compiled {
    parameters: Vec<String>,
    payload: PayloadFilter,
    /// The same as a `Filter<T>` of the type of the reader.
    typed: Arc<dyn Any + Send + Sync>,
}

/// The part of a query condition whose type is not known to the compiler.
pub(crate) struct Query {
    pub(crate) reader: Arc<ReaderInner>,
    pub(crate) selector: Selector,
    compiled: RwLock<Compiled>,
    generation: u64,
}

impl Query {
    /// Whether its reader did not delete it.
    pub(crate) fn is_current(&self) -> bool {
        self.reader.condition_generation() == self.generation
    }

    pub(crate) fn filter(&self) -> PayloadFilter {
        read(&self.compiled).payload.clone()
    }

    /// Puts samples in the order of ORDER BY.
    ///
    /// # Errors
    /// [`crate::Error::OutOfResources`] where there is no room for values, which are large.
    pub(crate) fn sort<T: DdsType>(&self, samples: &mut [Sample<T>]) -> Result<()> {
        let typed = Arc::clone(&read(&self.compiled).typed);
        let Some(filter) = typed.downcast_ref::<Filter<T>>().filter(|filter| filter.is_ordered()) else {
            return Ok(());
        };
        // Sorting moves values by way of the stack.
        let sort = || {
            samples.sort_by(|left, right| match (&left.data, &right.data) {
                (Some(left), Some(right)) => filter.compare(left, right),
                (left, right) => left.is_some().cmp(&right.is_some()),
            });
        };
        on_fitting_stack::<T, _>(0, sort)
            .map_err(|no_stack| OutOfResources::stack(self.reader.describe(), no_stack).into())
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
            compiled: RwLock::new(compiled),
        };
        let inner = Inner { reader, expression: expression.to_owned(), query: Arc::new(query) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// For a wait set: triggered while the reader has samples that the query chooses. Each look at it looks
    /// at the reader's samples.
    #[must_use]
    pub fn condition(&self) -> Condition {
        Condition::of_query(Arc::clone(&self.inner.query))
    }

    /// The states that it chooses.
    #[must_use]
    pub fn read_options(&self) -> ReadOptions {
        ReadOptions { selector: self.inner.query.selector, condition: None }
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
        read(&self.inner.query.compiled).parameters.clone()
    }

    /// Replaces the values of %0, %1, ….
    ///
    /// # Errors
    /// [`crate::Error::BadParameter`] when a value is missing or of the wrong kind; then nothing changed.
    pub fn set_query_parameters(&self, parameters: Vec<String>) -> Result<()> {
        let compiled = compile(&self.inner.reader, &self.inner.expression, parameters)?;
        *write(&self.inner.query.compiled) = compiled;
        // What waits for the condition has to look again.
        self.inner.query.reader.core().wake_waiters();
        Ok(())
    }
}

impl<T: DdsType> From<&QueryCondition<T>> for Condition {
    fn from(query: &QueryCondition<T>) -> Self {
        query.condition()
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
) -> Result<Compiled> {
    let refused = |error| {
        refused(&format!("a query of the reader of topic '{}'", reader.topic_name()), expression, error)
    };
    let typed: Filter<T> = Filter::query(expression, &parameters).map_err(refused)?;
    let payload = reader.inner().ty.query(expression, &parameters).map_err(refused)?;
    Ok(Compiled { parameters, payload, typed: Arc::new(typed) })
}
