//! Samples that the application makes where their readers will see them.

use std::error::Error as StdError;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering;

use plainsong_proto::cdr::{self, Cdr, DdsType, Endianness, OctetSeq, XcdrVersion};
use plainsong_proto::payload::{NewPayload, Payload};
use plainsong_proto::writer::ChangeKind;

use super::{AnyDataWriter, DataWriter, WriterInner};
use crate::error::{Error, OutOfResources, PreconditionNotMet, Result};
use crate::transport::loan::{LoanedOctets, LoanedPayload, payload_around};
use crate::write_options::WriteOptions;

/// A sample that is not written yet, in memory of its writer: it is a `T`, to be set and then
/// [written](Self::write).
///
/// Its octets are in memory that processes of this host share, unless they are few or nothing is shared; then
/// writing copies nothing, and all who need the sample have the same one. Dropped unwritten, the memory goes
/// back. A loan may outlive its writer: it cannot be written then.
#[must_use = "a loan that is dropped is not written"]
pub struct Loan<T> {
    writer: DataWriter<T>,
    payload: LoanedPayload,
}

/// Memory for the octets of one sample ([`DataWriter::loan_octets`]): it is a slice of them, which hold what
/// somebody has left there, or 0.
///
/// Filled, it becomes an [`OctetSeq`] by `into()`: a sample with that, written by a writer of the same domain
/// of this process, has them where they are. Dropped, it goes back.
#[must_use = "a loan that is dropped is not written"]
pub struct OctetLoan(LoanedOctets);

/// Memory for one encoded sample ([`AnyDataWriter::loan_serialized`]): it is a slice of its octets, the
/// encapsulation header first, which hold what somebody has left there, or 0.
#[must_use = "a loan that is dropped is not written"]
pub struct SerializedLoan {
    writer: AnyDataWriter,
    payload: LoanedPayload,
}

/// Why a loan was not written, and the loan. It becomes an [`Error`] by `?`.
pub struct NotWritten<L> {
    /// Why.
    pub error: Error,
    /// To be changed, written again or dropped.
    pub loan: L,
}

impl<T: DdsType> DataWriter<T> {
    /// Memory for one sample, to be set in place: for types whose memory is their wire form. These are
    /// structures of `#[repr(C)]` of which all members are numbers or arrays of numbers, without padding, and
    /// which are final, or appendable and encoded in version 1. A structure that says `plain` may have others
    /// that do, too; where it could not be lent, it does not compile. Its members hold what somebody has left
    /// there, or 0: set them all.
    ///
    /// ```
    /// use plainsong::prelude::*;
    ///
    /// #[derive(DdsType)]
    /// #[dds(final, plain)]
    /// #[repr(C)]
    /// struct Point {
    ///     x: f32,
    ///     y: f32,
    /// }
    ///
    /// #[derive(DdsType)]
    /// #[dds(final, plain)]
    /// #[repr(C)]
    /// struct Cloud {
    ///     count: u32,
    ///     points: [Point; 1_000],
    /// }
    /// ```
    ///
    /// This one has three octets between its members:
    ///
    /// ```compile_fail
    /// use plainsong::prelude::*;
    ///
    /// #[derive(DdsType)]
    /// #[dds(final, plain)]
    /// #[repr(C)]
    /// struct Scan {
    ///     echo: u8,
    ///     range: f32,
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] for other types: [`Self::loan_octets`] serves those with many octets.
    /// It never waits: [`Error::OutOfResources`] for more octets than [`Config::sample_bytes_max`], and where
    /// half of [`Config::memory_pool_bytes_max`] is kept by loans and histories, or less than they ask for.
    /// [`Error::AlreadyDeleted`], [`Error::NotEnabled`].
    ///
    /// [`Config::sample_bytes_max`]: crate::base::config::Config::sample_bytes_max
    /// [`Config::memory_pool_bytes_max`]: crate::base::config::Config::memory_pool_bytes_max
    pub fn loan(&self) -> Result<Loan<T>> {
        let inner = &self.inner;
        let bytes = cdr::plain_payload_bytes::<T>(inner.version);
        let mut payload = inner.loan_payload(bytes.ok_or_else(|| inner.is_not_plain::<T>())?)?;
        if cdr::plain_payload_over::<T>(payload.bytes_mut(), inner.version).is_none() {
            return Err(inner.is_not_plain::<T>());
        }
        Ok(Loan { writer: self.clone(), payload })
    }

    /// Memory for the octets of the first [`OctetSeq`] of a sample: an image, a point cloud. `bytes` is the
    /// most that it may take, [`OctetLoan::truncate`] says what it took.
    ///
    /// The sample is then written as any other, and copied only if the members before the octets take more
    /// than 1 KiB, those behind it more than 256 octets, or the same octets were written before. Fewer octets
    /// than 4 KiB are always copied.
    ///
    /// # Errors
    /// As [`Self::loan`], but for types.
    pub fn loan_octets(&self, bytes: usize) -> Result<OctetLoan> {
        let inner = &self.inner;
        inner.check_loan(bytes)?;
        let transport = &inner.publisher.participant.slot()?.shared().transport;
        transport.loan_octets(bytes).map(OctetLoan).map_err(|limit| inner.no_loan(bytes, limit))
    }

    /// A payload around octets of the sample that were filled in place, if there are any.
    pub(super) fn serialize_around<S: Cdr>(&self, sample: &S) -> Result<Option<Payload>> {
        let Some(octets) = sample.octet_seq().filter(|octets| octets.region().is_some()) else {
            return Ok(None);
        };
        let mut around = Vec::new();
        let (version, order) = (self.inner.version, Endianness::Little);
        let place = cdr::to_payload_around::<T, S>(sample, version, order, &mut around, octets)
            .map_err(|error| self.inner.serialization(error))?;
        let Some((head, tail)) = place.and_then(|place| around.split_at_checked(place)) else {
            return Ok(None);
        };
        let payload = payload_around(octets, head, tail);
        payload.map(|payload| self.inner.fitting(payload)).transpose()
    }

    /// A payload that is encoded where other processes can see it: with about as many octets as the last one.
    /// `None`: it has more, or there is no such memory to spare.
    pub(super) fn serialize_shared<S: Cdr>(&self, sample: &S, usual_bytes: usize) -> Result<Option<Payload>> {
        let inner = &self.inner;
        let transport = &inner.publisher.participant.slot()?.shared().transport;
        let bytes = usual_bytes.saturating_add(usual_bytes / 8);
        let Some(mut loan) = transport.loan(bytes).ok().filter(LoanedPayload::is_shared) else {
            return Ok(None);
        };
        let place = loan.bytes_mut();
        match cdr::to_fixed_payload_as::<T, S>(sample, inner.version, Endianness::Little, place) {
            Ok(bytes) => {
                inner.usual_bytes.store(bytes, Ordering::Relaxed);
                loan.truncate(bytes);
                Ok(Some(transport.fitting(loan.payload())))
            }
            Err(cdr::EncodeError::BufferFull { .. }) => Ok(None),
            Err(error) => Err(inner.serialization(error)),
        }
    }
}

impl<T: DdsType> Loan<T> {
    /// Writes the sample, as [`DataWriter::write`] does.
    ///
    /// # Errors
    /// As [`DataWriter::write`], with the loan.
    pub fn write(self) -> std::result::Result<(), NotWritten<Self>> {
        self.write_with(&WriteOptions::new())
    }

    /// Writes it as [`Self::write`] does, but for what `options` say.
    ///
    /// # Errors
    /// As [`DataWriter::write_with`], with the loan.
    pub fn write_with(mut self, options: &WriteOptions) -> std::result::Result<(), NotWritten<Self>> {
        self.written(options).map_err(|error| {
            self.payload.reclaim();
            NotWritten { error, loan: self }
        })
    }

    fn written(&self, options: &WriteOptions) -> Result<()> {
        let (writer, inner) = (&self.writer, &self.writer.inner);
        // In a forked process the sample is not there.
        inner.core.check_enabled(|| inner.describe())?;
        let key = writer.key_of::<T>(self)?;
        inner.check_handle(options.handle(), || Ok(key))?;
        if let Some(timestamp) = options.timestamp() {
            inner.check_timestamp(timestamp)?;
        }
        let (timestamp, patience) = (options.timestamp(), options.patience(inner.max_blocking_time));
        let (octets, mut payload);
        let new = if self.payload.bytes().len() <= inner.copied_bytes_max {
            octets = self.payload.bytes();
            NewPayload::Octets(octets)
        } else {
            payload = self.payload.payload();
            NewPayload::Payload(&mut payload)
        };
        if inner.write(ChangeKind::Alive, key, new, timestamp, patience)? {
            writer.keep_key::<T>(self, key);
        }
        Ok(())
    }

    /// Whether other processes of this host can have it without a copy.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.payload.is_shared()
    }
}

impl<T: DdsType> Deref for Loan<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match cdr::plain_in_payload(self.payload.bytes()) {
            Some(value) => value,
            None => unreachable!("`DataWriter::loan` has made it, and found that it is there"),
        }
    }
}

impl<T: DdsType> DerefMut for Loan<T> {
    fn deref_mut(&mut self) -> &mut T {
        let version = self.writer.inner.version;
        match cdr::plain_payload_over(self.payload.bytes_mut(), version) {
            Some(value) => value,
            None => unreachable!("`DataWriter::loan` has made it, and found that it is there"),
        }
    }
}

impl OctetLoan {
    /// There are so many octets at most from now on.
    pub fn truncate(&mut self, bytes: usize) {
        self.0.truncate(bytes);
    }

    /// Whether other processes of this host can have them without a copy.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.0.is_shared()
    }
}

impl Deref for OctetLoan {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl DerefMut for OctetLoan {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}

impl From<OctetLoan> for OctetSeq<'static> {
    fn from(loan: OctetLoan) -> Self {
        loan.0.into_sequence()
    }
}

impl AnyDataWriter {
    /// Memory for one encoded sample of at most so many octets, with its encapsulation header.
    ///
    /// # Errors
    /// As [`DataWriter::loan`], but for types.
    pub fn loan_serialized(&self, bytes: usize) -> Result<SerializedLoan> {
        Ok(SerializedLoan { payload: self.inner().loan_payload(bytes)?, writer: self.clone() })
    }
}

impl SerializedLoan {
    /// There are so many octets at most from now on.
    pub fn truncate(&mut self, bytes: usize) {
        self.payload.truncate(bytes);
    }

    /// Writes the sample, as [`AnyDataWriter::write_serialized`] does; one of which the octets are no
    /// multiple of four, as payloads are padded to, is copied.
    ///
    /// # Errors
    /// As [`AnyDataWriter::write_serialized`], with the loan.
    pub fn write(self) -> std::result::Result<(), NotWritten<Self>> {
        self.write_with(&WriteOptions::new())
    }

    /// Writes it as [`Self::write`] does, but for what `options` say.
    ///
    /// # Errors
    /// As [`AnyDataWriter::write_serialized_with`], with the loan.
    pub fn write_with(mut self, options: &WriteOptions) -> std::result::Result<(), NotWritten<Self>> {
        let inner = self.writer.inner();
        let written = inner.core.check_enabled(|| inner.describe()).and_then(|()| {
            let octets = self.payload.bytes();
            let transport = &inner.publisher.participant.slot()?.shared().transport;
            inner.write_encoded(octets, options, || transport.fitting(self.payload.payload()))
        });
        written.map_err(|error| {
            self.payload.reclaim();
            NotWritten { error, loan: self }
        })
    }

    /// Whether other processes of this host can have it without a copy.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.payload.is_shared()
    }
}

impl Deref for SerializedLoan {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.payload.bytes()
    }
}

impl DerefMut for SerializedLoan {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.payload.bytes_mut()
    }
}

impl WriterInner {
    fn check_loan(&self, bytes: usize) -> Result<()> {
        self.core.check_enabled(|| self.describe())?;
        let octets_max = self.publisher.participant.config().sample_bytes_max;
        if bytes > octets_max {
            return Err(OutOfResources::SampleTooLong { entity: self.describe(), octets_max }.into());
        }
        Ok(())
    }

    fn loan_payload(&self, bytes: usize) -> Result<LoanedPayload> {
        self.check_loan(bytes)?;
        let transport = &self.publisher.participant.slot()?.shared().transport;
        transport.loan(bytes).map_err(|limit| self.no_loan(bytes, limit))
    }

    fn fitting(&self, payload: Payload) -> Result<Payload> {
        Ok(self.publisher.participant.slot()?.shared().transport.fitting(payload))
    }

    #[cold]
    fn no_loan(&self, bytes: usize, limit: String) -> Error {
        OutOfResources::Loan { entity: self.describe(), octets: bytes, limit }.into()
    }

    #[cold]
    fn is_not_plain<T: DdsType>(&self) -> Error {
        let (entity, type_name) = (self.describe(), self.ty.name().to_owned());
        let mut others = [XcdrVersion::Xcdr1, XcdrVersion::Xcdr2].into_iter();
        let plain_in = others.find(|it| *it != self.version && cdr::plain_payload_bytes::<T>(*it).is_some());
        PreconditionNotMet::NotPlain { entity, type_name, version: self.version, plain_in }.into()
    }
}

impl<L> From<NotWritten<L>> for Error {
    fn from(not_written: NotWritten<L>) -> Self {
        not_written.error
    }
}

impl<L> fmt::Debug for NotWritten<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

impl<L> fmt::Display for NotWritten<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl<L> StdError for NotWritten<L> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.error.source()
    }
}

impl<T> fmt::Debug for Loan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Loan").field(&self.payload).finish()
    }
}

impl fmt::Debug for OctetLoan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.is_shared() { "shared memory" } else { "the heap" };
        write!(f, "OctetLoan({} octets of {place})", self.len())
    }
}

impl fmt::Debug for SerializedLoan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SerializedLoan").field(&self.payload).finish()
    }
}
