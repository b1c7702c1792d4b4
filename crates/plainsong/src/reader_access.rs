//! The ways to read and take (DCPS 1.4 §2.2.2.5.3.8 to .19). Samples are owned by whoever gets them: there is
//! no loan to return.

use plainsong_proto::cdr::DdsType;
use plainsong_proto::instance::InstanceHandle;
use plainsong_proto::malformed::Malformed;
use plainsong_proto::reader::{Access, CachedSample, Fetch};
use plainsong_proto::sample_info::{InstanceSelector, SampleState, Selector};

use crate::base::large_stack::{VALUE_BYTES_MAX, on_large_stack};
use crate::condition::Condition;
use crate::data_reader::{DataReader, ReaderInner};
use crate::error::{BadParameter, PreconditionNotMet, Result};
use crate::query::Query;
use crate::read_options::ReadOptions;
use crate::sample::{Sample, SampleBuffer, Store};

impl<T: DdsType> DataReader<T> {
    /// Removes and returns all samples.
    ///
    /// Who asks again and again, and finds nothing, may receive what comes itself, for all readers and
    /// writers of the domain. It calls no listener for that.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`].
    pub fn take(&self) -> Result<Vec<Sample<T>>> {
        let mut samples = Vec::new();
        self.inner().collect(&mut samples, &all(Access::Take))?;
        Ok(samples)
    }

    /// Returns all samples and marks them read.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`].
    pub fn read(&self) -> Result<Vec<Sample<T>>> {
        let mut samples = Vec::new();
        self.inner().collect(&mut samples, &all(Access::Read))?;
        Ok(samples)
    }

    /// Removes and returns what `options` choose.
    ///
    /// # Errors
    /// [`crate::Error::BadParameter`] for an instance that the reader does not know,
    /// [`crate::Error::PreconditionNotMet`] for a condition of another reader or of the application,
    /// [`crate::Error::NotEnabled`].
    pub fn take_with(&self, options: &ReadOptions) -> Result<Vec<Sample<T>>> {
        let mut samples = Vec::new();
        self.take_into(options, &mut samples)?;
        Ok(samples)
    }

    /// Returns what `options` choose and marks it read.
    ///
    /// # Errors
    /// As [`Self::take_with`].
    pub fn read_with(&self, options: &ReadOptions) -> Result<Vec<Sample<T>>> {
        let mut samples = Vec::new();
        self.collect(Access::Read, options, &mut samples)?;
        Ok(samples)
    }

    /// Like [`Self::take_with`], appending to `samples`, whose memory the caller keeps.
    ///
    /// # Errors
    /// As [`Self::take_with`].
    pub fn take_into(&self, options: &ReadOptions, samples: &mut Vec<Sample<T>>) -> Result<()> {
        self.collect(Access::Take, options, samples)
    }

    /// Like [`Self::take_with`], in place of what `samples` has: where that is possible it is overwritten,
    /// and nothing allocated.
    ///
    /// # Errors
    /// As [`Self::take_with`].
    pub fn take_reusing(&self, options: &ReadOptions, samples: &mut SampleBuffer<T>) -> Result<()> {
        samples.clear();
        self.collect(Access::Take, options, samples)
    }

    /// Returns the next sample that was not read yet, and marks it read.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`].
    pub fn read_next_sample(&self) -> Result<Option<Sample<T>>> {
        Ok(self.read_with(&next_unread())?.pop())
    }

    /// Removes and returns the next sample that was not read yet.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`].
    pub fn take_next_sample(&self) -> Result<Option<Sample<T>>> {
        Ok(self.take_with(&next_unread())?.pop())
    }

    #[inline]
    fn collect<S>(&self, access: Access, options: &ReadOptions, samples: &mut S) -> Result<()>
    where
        S: Store + AsMut<[Sample<T>]>,
    {
        let before = samples.count();
        if let Some(query) = self.inner().collect_with(access, options, samples)? {
            // The query is of this reader, so of its type.
            query.sort(samples.as_mut().get_mut(before..).unwrap_or_default())?;
        }
        Ok(())
    }
}

impl ReaderInner {
    /// Stores samples where there is room for their values on the stack.
    #[inline]
    pub(crate) fn store<S: Store>(
        &self,
        samples: &mut S,
        cached: &[CachedSample],
    ) -> Vec<(usize, Malformed)> {
        if const { S::VALUE_BYTES > VALUE_BYTES_MAX }
            || S::VALUE_BYTES > 0 && self.value_bytes > VALUE_BYTES_MAX
        {
            return self.store_large(samples, cached);
        }
        samples.store(cached)
    }

    #[cold]
    #[inline(never)]
    fn store_large<S: Store>(&self, samples: &mut S, cached: &[CachedSample]) -> Vec<(usize, Malformed)> {
        if cached.is_empty() {
            return Vec::new();
        }
        on_large_stack(self.value_bytes.max(S::VALUE_BYTES), || samples.store(cached))
            .unwrap_or_else(|_| (0..cached.len()).map(|at| (at, Malformed::TooLarge)).collect())
    }

    /// Appends what `options` choose, in the order of the reader; the query to order it by, if there is one.
    #[inline]
    pub(crate) fn collect_with<'a>(
        &self,
        access: Access,
        options: &'a ReadOptions,
        samples: &mut impl Store,
    ) -> Result<Option<&'a Query>> {
        if let InstanceSelector::Exactly(instance) = options.selector.instance {
            self.check_instance(instance)?;
        }
        let Some(condition) = &options.condition else {
            self.collect(samples, &Fetch { access, selector: &options.selector, query: None })?;
            return Ok(None);
        };
        let selector = &options.within(&self.own_condition(condition)?);
        let Some(query) = condition.query() else {
            self.collect(samples, &Fetch { access, selector, query: None })?;
            return Ok(None);
        };
        self.collect(samples, &Fetch { access, selector, query: Some(&query.filter()) })?;
        Ok(Some(query))
    }

    /// What a condition of this reader chooses.
    fn own_condition(&self, condition: &Condition) -> Result<Selector> {
        let Some((reader, selector)) = condition.reading() else {
            return Err(PreconditionNotMet::ChoosesNothing.into());
        };
        if std::ptr::eq(&**reader, self) {
            return Ok(*selector);
        }
        Err(PreconditionNotMet::ForeignCondition { entity: self.describe() }.into())
    }

    fn check_instance(&self, instance: InstanceHandle) -> Result<()> {
        if self.with(|reader, _, _| reader.has_instance(instance))? {
            return Ok(());
        }
        Err(BadParameter::UnknownInstance { entity: self.describe() }.into())
    }
}

/// All samples.
const fn all(access: Access) -> Fetch<'static> {
    const ALL: &Selector = &Selector::ALL;
    Fetch { access, selector: ALL, query: None }
}

fn next_unread() -> ReadOptions {
    ReadOptions::new().sample_states([SampleState::NotRead]).max_samples(1)
}
