//! A filter without its type, for those that hold samples as octets: readers and writers.

use std::fmt;
use std::sync::Arc;

use super::ContentFilter;
use crate::wire::FilterSignature;

/// Says of serialized data, with its encapsulation header, whether the application wants it.
#[derive(Clone)]
pub struct PayloadFilter {
    passes: Arc<Verdict>,
    steps_per_octet: usize,
}

type Verdict = dyn Fn(&[u8]) -> bool + Send + Sync;

impl PayloadFilter {
    /// A filter that lets pass what `passes` is true of.
    #[must_use]
    pub fn new(passes: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        Self { passes: Arc::new(passes), steps_per_octet: 0 }
    }

    /// Says what it costs: [`super::Filter::steps_per_octet`].
    #[must_use]
    pub fn with_steps_per_octet(self, steps_per_octet: usize) -> Self {
        Self { steps_per_octet, ..self }
    }

    /// Whether it takes at most so many steps to look at `payload`.
    #[must_use]
    pub const fn is_affordable(&self, payload: &[u8], steps_max: usize) -> bool {
        self.steps_per_octet.saturating_mul(payload.len()) <= steps_max
    }

    /// Whether the application wants `payload`.
    #[must_use]
    pub fn passes(&self, payload: &[u8]) -> bool {
        (self.passes)(payload)
    }

    /// Whether both are clones of one.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.passes, &other.passes)
    }
}

impl fmt::Debug for PayloadFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PayloadFilter")
    }
}

/// Makes a filter of what a reader announced; `None` when it means nothing for the type of the topic.
#[derive(Clone)]
pub struct FilterFunction(Arc<Compile>);

type Compile = dyn Fn(&ContentFilter) -> Option<PayloadFilter> + Send + Sync;

impl FilterFunction {
    /// `compile` is given what a reader announced.
    #[must_use]
    pub fn new(compile: impl Fn(&ContentFilter) -> Option<PayloadFilter> + Send + Sync + 'static) -> Self {
        Self(Arc::new(compile))
    }

    /// The filter of what a reader announced.
    #[must_use]
    pub fn compile(&self, announced: &ContentFilter) -> Option<PayloadFilter> {
        (self.0)(announced)
    }
}

impl fmt::Debug for FilterFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FilterFunction")
    }
}

/// A filter, and what its announcement is known by.
#[derive(Clone, Debug)]
pub struct SignedFilter {
    /// The filter.
    pub filter: PayloadFilter,
    /// [`super::ContentFilter::signature`] of what is announced of it.
    pub signature: FilterSignature,
}
