//! Reading samples where they arrived.

use std::fmt;

use plainsong_proto::cdr::{self, DdsType, XcdrVersion};
use plainsong_proto::malformed::Malformed;
use plainsong_proto::payload::Payload;
use plainsong_proto::reader::{Access, CachedSample};
use plainsong_proto::sample_info::SampleInfo;
use plainsong_proto::time::Duration;

use crate::base::large_stack::on_fitting_stack;
use crate::data_reader::DataReader;
use crate::error::Result;
use crate::read_options::ReadOptions;
use crate::sample::{Store, settle};
use crate::transport::loan::LoanedPayload;

/// One sample, where it arrived, or a change of its instance's state.
///
/// It keeps memory of its writer: a process that keeps more than its share of what a writer's process lends
/// gets copies (`docs/shared-memory.md`). What was received from another process of this host is in memory to
/// which that process may still write if it breaks the rules: who does not trust it calls
/// [`DataReader::take`].
pub struct SampleRef<T> {
    value: Value<T>,
    /// Facts about it.
    pub info: SampleInfo,
}

enum Value<T> {
    None,
    InPlace(Payload),
    /// In memory of its own, aligned as the value has to be.
    Copied(Payload),
    Decoded(Box<T>),
}

impl<T: DdsType> SampleRef<T> {
    /// The value, when there is one.
    #[must_use]
    pub fn data(&self) -> Option<&T> {
        match &self.value {
            Value::None => None,
            Value::InPlace(payload) | Value::Copied(payload) => cdr::plain_in_payload(payload.as_slice()),
            Value::Decoded(value) => Some(value),
        }
    }

    /// Whether the value is where this process received it. Else it was decoded: it is of a type whose memory
    /// is not its wire form ([`DataWriter::loan`](crate::data_writer::DataWriter::loan) says which types
    /// are), came in another encoding, or in pieces.
    #[must_use]
    pub const fn is_in_place(&self) -> bool {
        matches!(self.value, Value::InPlace(_))
    }

    /// Whether the value is in memory that processes share: nobody has copied it since it was written.
    #[must_use]
    pub fn is_in_shared_memory(&self) -> bool {
        matches!(&self.value, Value::InPlace(payload) if payload.region().is_some())
    }

    fn of(sample: &CachedSample) -> std::result::Result<Self, Malformed> {
        let CachedSample { info, payload, .. } = sample;
        let value = if !info.valid_data {
            Value::None
        } else if let Some(kept) = aligned::<T>(payload.clone()) {
            // A few octets that are copied may be aligned otherwise where they go.
            Value::InPlace(kept)
        } else if let Some(copy) = aligned_copy::<T>(payload) {
            // A long value is never on the stack.
            Value::Copied(copy)
        } else {
            Value::Decoded(decoded(payload)?)
        };
        Ok(Self { value, info: *info })
    }
}

/// The payload, if it is such a value.
fn aligned<T: DdsType>(payload: Payload) -> Option<Payload> {
    cdr::plain_in_payload::<T>(payload.as_slice()).is_some().then_some(payload)
}

/// Whether its memory is its wire form in some version.
const fn is_plain<T: DdsType>() -> bool {
    cdr::plain_payload_bytes::<T>(XcdrVersion::Xcdr1).is_some()
        || cdr::plain_payload_bytes::<T>(XcdrVersion::Xcdr2).is_some()
}

fn aligned_copy<T: DdsType>(payload: &Payload) -> Option<Payload> {
    if !is_plain::<T>() {
        return None;
    }
    let mut copy = LoanedPayload::in_heap(payload.len());
    copy.bytes_mut().copy_from_slice(payload.as_slice());
    aligned::<T>(copy.payload())
}

/// A long value takes as much of the stack, and those in place shall not.
fn decoded<T: DdsType>(payload: &Payload) -> std::result::Result<Box<T>, Malformed> {
    let decode = || cdr::from_shared_payload(payload).map(Box::new);
    if is_plain::<T>() {
        on_fitting_stack::<T, _>(0, decode).unwrap_or(Err(Malformed::TooLarge))
    } else {
        decode()
    }
}

impl<T: DdsType + fmt::Debug> fmt::Debug for SampleRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SampleRef").field("data", &self.data()).field("info", &self.info).finish()
    }
}

impl<T: DdsType> Store for Vec<SampleRef<T>> {
    /// Values that may be in place are decoded apart, each for itself.
    const VALUE_BYTES: usize = if is_plain::<T>() { 0 } else { size_of::<T>() };

    fn count(&self) -> usize {
        self.len()
    }

    fn store(&mut self, samples: &[CachedSample]) -> Vec<(usize, Malformed)> {
        let mut undecodable = Vec::new();
        for (at, sample) in samples.iter().enumerate() {
            match SampleRef::of(sample) {
                Ok(sample) => self.push(sample),
                Err(reason) => undecodable.push((at, reason)),
            }
        }
        undecodable
    }

    fn settle(&mut self, start: usize, grouped: bool) {
        let samples = self.get_mut(start..).unwrap_or_default();
        settle(samples, |sample| sample.info.instance_handle, |sample| &mut sample.info, grouped);
    }
}

/// Samples that are looked at where they arrived: of a type whose memory is its wire form
/// ([`DataWriter::loan`](crate::data_writer::DataWriter::loan)) nothing is copied on this side. Octets of an
/// [`OctetSeq`](crate::cdr::OctetSeq) stay where they arrived by any way to take.
impl<T: DdsType> DataReader<T> {
    /// Removes and returns all samples.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`].
    pub fn take_in_place(&self) -> Result<Vec<SampleRef<T>>> {
        self.take_in_place_with(&ReadOptions::new())
    }

    /// Removes and returns what `options` choose; ORDER BY of a query does not count.
    ///
    /// # Errors
    /// As [`Self::take_with`].
    pub fn take_in_place_with(&self, options: &ReadOptions) -> Result<Vec<SampleRef<T>>> {
        let mut samples = Vec::new();
        self.inner().collect_with(Access::Take, options, &mut samples)?;
        Ok(samples)
    }

    /// Returns what `options` choose and marks it read; ORDER BY of a query does not count.
    ///
    /// # Errors
    /// As [`Self::take_with`].
    pub fn read_in_place_with(&self, options: &ReadOptions) -> Result<Vec<SampleRef<T>>> {
        let mut samples = Vec::new();
        self.inner().collect_with(Access::Read, options, &mut samples)?;
        Ok(samples)
    }

    /// Blocks until there is something to take, and takes it.
    ///
    /// # Errors
    /// As [`Self::wait_take`].
    pub fn wait_take_in_place(&self, timeout: impl Into<Duration>) -> Result<Vec<SampleRef<T>>> {
        self.wait_until(timeout.into(), "wait_take_in_place", || self.take_in_place())
    }
}
