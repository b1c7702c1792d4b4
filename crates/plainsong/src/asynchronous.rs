//! The asynchronous API: wakers over the notifications that conditions use, without a runtime.
//!
//! Wakers are code of the application, as listeners are: they are called with no lock held, and no thread
//! that receives as it writes or waits calls one (`runtime/dispatch.rs`).

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use plainsong_proto::cdr::DdsType;

use crate::data_reader::DataReader;
use crate::data_writer::DataWriter;
use crate::error::{Error, Result};
use crate::read_options::ReadOptions;
use crate::sample::Sample;

impl<T: DdsType> DataReader<T> {
    /// The next sample; waits for one without blocking the thread.
    ///
    /// # Errors
    /// [`Error::NotEnabled`].
    pub async fn next(&self) -> Result<Sample<T>> {
        NextSample { reader: self }.await
    }
}

impl<T: DdsType> DataWriter<T> {
    /// Like [`DataWriter::write`], waiting for room without blocking the thread and without limit:
    /// drop the future to give up.
    ///
    /// # Errors
    /// As [`DataWriter::write`], but never [`Error::Timeout`], [`Error::WouldBlock`] or
    /// [`Error::GroupUnready`].
    pub async fn write_async(&self, sample: &T) -> Result<()> {
        WriteSample { writer: self, sample }.await
    }
}

struct NextSample<'a, T> {
    reader: &'a DataReader<T>,
}

impl<T: DdsType> Future for NextSample<'_, T> {
    type Output = Result<Sample<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Registered before looking: a sample that arrives in between wakes the task again.
        self.reader.inner().core().waiters().register_task(context.waker());
        match self.reader.take_with(&ReadOptions::new().max_samples(1)).map(|mut samples| samples.pop()) {
            Ok(Some(sample)) => Poll::Ready(Ok(sample)),
            Ok(None) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

struct WriteSample<'a, T> {
    writer: &'a DataWriter<T>,
    sample: &'a T,
}

impl<T: DdsType> Future for WriteSample<'_, T> {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.writer.inner().waiters().register_task(context.waker());
        match self.writer.try_write(self.sample) {
            Err(Error::WouldBlock { .. } | Error::GroupUnready { .. }) => Poll::Pending,
            result => Poll::Ready(result),
        }
    }
}
