//! Readers of multi-topics: one reader of each topic, and the join of what they get.

use std::sync::{Arc, Mutex, MutexGuard, Weak};

use plainsong_proto::cdr::DdsType;
use plainsong_proto::qos::{HistoryKind, QosSet};
use plainsong_proto::sample_info::{InstanceState, SampleInfo};
use plainsong_proto::status::{StatusKind, StatusMask};
use plainsong_proto::time::Duration;

use super::Condition as Where;
use super::join::{AnyRow, Join, Plan};
use crate::base::clock;
use crate::base::large_stack::on_fitting_stack;
use crate::base::locks::lock;
use crate::condition::{Condition, HasCore, WaitSet};
use crate::data_reader::{AnyDataReader, DataReader};
use crate::entity::{EntityCore, ListenerSlot};
use crate::error::{OutOfResources, Result, WaitedFor};
use crate::listener::{DataReaderListener, MultiTopicListener};
use crate::read_options::ReadOptions;
use crate::sample::Sample;

/// Reads the samples of a multi-topic. Clones are the same reader; it leaves when the last is dropped.
pub struct MultiTopicReader<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    readers: Vec<Box<dyn Source>>,
    condition: Arc<Where<T>>,
    join: Mutex<Join<T>>,
    core: EntityCore,
    listener: ListenerSlot<dyn MultiTopicListener<T>>,
}

/// What becomes of what is taken.
type Each<'a> = dyn FnMut(Option<AnyRow>, &SampleInfo) + 'a;

/// A reader of one of the topics.
pub(super) trait Source: Send + Sync {
    /// Takes what is there: data, or the end of an instance.
    fn drain(&self, each: &mut Each<'_>) -> Result<()>;

    fn reader(&self) -> AnyDataReader;
}

pub(super) struct TypedSource<T>(pub(super) DataReader<T>);

impl<T: DdsType> Source for TypedSource<T> {
    fn drain(&self, each: &mut Each<'_>) -> Result<()> {
        let samples = self.0.take()?;
        let row = |Sample { data, info }| (data.map(|data: T| -> AnyRow { Box::new(data) }), info);
        // Boxing moves values by way of the stack.
        let rows = on_fitting_stack::<T, Vec<_>>(0, move || samples.into_iter().map(row).collect())
            .map_err(|no_stack| OutOfResources::stack(self.0.inner().describe(), no_stack))?;
        rows.into_iter().for_each(|(row, info)| each(row, &info));
        Ok(())
    }

    fn reader(&self) -> AnyDataReader {
        self.0.as_any()
    }
}

impl<T: DdsType> MultiTopicReader<T> {
    pub(super) fn new(
        readers: Vec<Box<dyn Source>>,
        plan: Arc<Plan>,
        condition: Arc<Where<T>>,
        qos: &QosSet,
    ) -> Self {
        let depth = match qos.history.kind {
            HistoryKind::KeepLast => usize::try_from(qos.history.depth).unwrap_or(1).max(1),
            HistoryKind::KeepAll => usize::MAX,
        };
        let join = Mutex::new(Join::new(plan, depth));
        let inner = Arc::new(Inner {
            readers,
            condition,
            join,
            core: EntityCore::new(),
            listener: ListenerSlot::new(),
        });
        let waker: Arc<dyn DataReaderListener> = Arc::new(Waker(Arc::downgrade(&inner)));
        for source in &inner.readers {
            source
                .reader()
                .set_listener(Some(Arc::clone(&waker)), StatusMask::NONE.with(StatusKind::DataAvailable));
        }
        Self { inner }
    }

    /// Removes and returns all samples, in the order they came to be.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`], [`crate::Error::PreconditionNotMet`] under GROUP access scope outside of
    /// an access.
    pub fn take(&self) -> Result<Vec<Sample<T>>> {
        self.take_up_to(usize::MAX)
    }

    /// Removes and returns up to `samples_max` samples, in the order they came to be.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn take_up_to(&self, samples_max: usize) -> Result<Vec<Sample<T>>> {
        self.inner.gather()?;
        self.inner.core.lower(StatusKind::DataAvailable);
        Ok(self.inner.lock().take(samples_max))
    }

    /// Returns all samples, in the order they came to be, and marks them read.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn read(&self) -> Result<Vec<Sample<T>>>
    where
        T: Clone,
    {
        self.read_up_to(usize::MAX)
    }

    /// Returns up to `samples_max` samples, in the order they came to be, and marks them read.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn read_up_to(&self, samples_max: usize) -> Result<Vec<Sample<T>>>
    where
        T: Clone,
    {
        self.inner.gather()?;
        self.inner.core.lower(StatusKind::DataAvailable);
        Ok(self.inner.lock().read(samples_max))
    }

    /// Blocks until there is something to take, and takes it.
    ///
    /// # Errors
    /// [`crate::Error::Timeout`]; otherwise as [`Self::take`].
    pub fn wait_take(&self, timeout: impl Into<Duration>) -> Result<Vec<Sample<T>>> {
        let timeout = timeout.into();
        let deadline = clock::deadline(timeout);
        let waiting = WaitSet::new();
        waiting.attach(self.status_condition(StatusMask::NONE.with(StatusKind::DataAvailable)));
        // A listener for DATA_ON_READERS would keep the news from us.
        let readers = self.inner.readers.iter().map(|source| source.reader());
        let sources: Vec<_> = readers.map(|it| it.read_condition(&ReadOptions::new())).collect();
        sources.iter().for_each(|source| waiting.attach(source.clone()));
        let is_deleted = || sources.iter().any(|it| it.entity().is_some_and(EntityCore::is_deleted));
        loop {
            let samples = self.take()?;
            if !samples.is_empty() {
                return Ok(samples);
            }
            if !waiting.wait_unless(is_deleted, deadline, &mut Vec::new()) {
                let what = format!("wait_take on the reader of a multi-topic of type '{}'", T::TYPE_NAME);
                return Err(crate::Error::Timeout { waited_for: WaitedFor::Sample, what, timeout });
            }
        }
    }

    /// A condition on DATA_AVAILABLE, the only status it has of its own.
    #[must_use]
    pub fn status_condition(&self, mask: impl Into<StatusMask>) -> Condition {
        Condition::status(Arc::clone(&self.inner) as Arc<dyn HasCore>, mask.into())
    }

    /// Statuses that changed since samples were last taken.
    #[must_use]
    pub fn status_changes(&self) -> StatusMask {
        self.inner.core.changed()
    }

    /// Hears of DATA_AVAILABLE, if `mask` has it; `None` removes the listener.
    pub fn set_listener(
        &self,
        listener: Option<Arc<dyn MultiTopicListener<T>>>,
        mask: impl Into<StatusMask>,
    ) {
        self.inner.listener.set(listener, mask.into());
    }

    /// The listener, if one is set.
    #[must_use]
    pub fn listener(&self) -> Option<Arc<dyn MultiTopicListener<T>>> {
        self.inner.listener.get()
    }

    /// The readers of the topics, in the order of FROM: for their matches, statuses and QoS. What is taken
    /// from them is not joined.
    #[must_use]
    pub fn readers(&self) -> Vec<AnyDataReader> {
        self.inner.readers.iter().map(|source| source.reader()).collect()
    }

    /// Instances, combinations and samples that went beyond the limits of the module.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.inner.lock().dropped()
    }
}

impl<T> Clone for MultiTopicReader<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T: DdsType> Inner<T> {
    fn lock(&self) -> MutexGuard<'_, Join<T>> {
        lock(&self.join)
    }

    /// Joins what has arrived.
    fn gather(&self) -> Result<()> {
        let filter = self.condition.filter();
        let mut join = self.lock();
        for (topic, source) in self.readers.iter().enumerate() {
            source.drain(&mut |row, info| match (row, info.instance_state) {
                (Some(row), _) => join.update(topic, row, info, filter.as_deref()),
                (None, InstanceState::Alive) => {}
                (None, state) => join.remove(topic, state, info),
            })?;
        }
        Ok(())
    }
}

impl<T: DdsType> HasCore for Inner<T> {
    fn core(&self) -> &EntityCore {
        &self.core
    }
}

/// Joins as samples arrive.
struct Waker<T>(Weak<Inner<T>>);

impl<T: DdsType> DataReaderListener for Waker<T> {
    fn on_data_available(&self, _: &AnyDataReader) {
        let Some(inner) = self.0.upgrade() else { return };
        // Not enabled, or outside of an access: it is joined when it is taken.
        let _ = inner.gather();
        let has_news = inner.lock().has_news();
        if !has_news {
            return;
        }
        inner.core.raise(StatusKind::DataAvailable);
        if let Some(listener) = inner.listener.wants(StatusKind::DataAvailable) {
            listener.on_data_available(&MultiTopicReader { inner });
        }
    }
}
