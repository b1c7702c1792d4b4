//! Writing samples that are encoded already.

use std::borrow::Cow;

use plainsong_proto::cdr::{Encapsulation, Endianness};
use plainsong_proto::instance::{InstanceHandle, Key};
use plainsong_proto::malformed::Malformed;
use plainsong_proto::payload::{NewPayload, Payload};
use plainsong_proto::type_support::KeyError;
use plainsong_proto::writer::ChangeKind;

use super::{AnyDataWriter, WriterInner};
use crate::error::{BadParameter, Error, Result};
use crate::group::Member;
use crate::write_options::WriteOptions;

/// Payloads are padded to a multiple of so many octets, of which the options of the encapsulation tell.
const ALIGNMENT: usize = 4;

/// Samples and keys as octets, with their encapsulation header: samples in the encoding version that the
/// writer offers, the first of its DATA_REPRESENTATION, in either byte order; keys in any version. Each is
/// decoded once before it is written, so that nothing leaves that readers would discard.
impl AnyDataWriter {
    /// Announces a writer that was created disabled.
    ///
    /// # Errors
    /// [`Error::NotEnabled`] when its participant is not, [`Error::OutOfResources`] at a limit.
    pub fn enable(&self) -> Result<()> {
        self.inner().enable()
    }

    /// Writes an encoded sample, otherwise as [`DataWriter::write`](super::DataWriter::write).
    ///
    /// # Errors
    /// [`Error::BadParameter`] for octets that are no sample of the type, or not in the encoding version of
    /// the writer: it says which and why. Otherwise those of [`DataWriter::write`](super::DataWriter::write).
    pub fn write_serialized(&self, sample: &[u8]) -> Result<()> {
        self.write_serialized_with(sample, &WriteOptions::new())
    }

    /// Writes an encoded sample as [`Self::write_serialized`] does, but for what `options` say.
    ///
    /// # Errors
    /// Those of [`Self::write_serialized`] and of [`DataWriter::write_with`](super::DataWriter::write_with).
    pub fn write_serialized_with(&self, sample: &[u8], options: &WriteOptions) -> Result<()> {
        self.inner().write_serialized(sample, options)
    }

    /// Disposes the instance with this serialized key.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for octets that are no key of the type, [`Error::PreconditionNotMet`] for a
    /// type without key; otherwise those of [`Self::write_serialized`].
    pub fn dispose_serialized(&self, key: &[u8]) -> Result<()> {
        self.dispose_serialized_with(key, &WriteOptions::new())
    }

    /// Disposes as [`Self::dispose_serialized`] does, but for what `options` say.
    ///
    /// # Errors
    /// Those of [`Self::dispose_serialized`] and of
    /// [`DataWriter::write_with`](super::DataWriter::write_with).
    pub fn dispose_serialized_with(&self, key: &[u8], options: &WriteOptions) -> Result<()> {
        self.inner().end_serialized(key, ChangeKind::Dispose, options)
    }

    /// Unregisters the instance with this serialized key.
    ///
    /// # Errors
    /// As [`Self::dispose_serialized`]; [`Error::PreconditionNotMet`] when the instance is not registered.
    pub fn unregister_instance_serialized(&self, key: &[u8]) -> Result<()> {
        self.unregister_instance_serialized_with(key, &WriteOptions::new())
    }

    /// Unregisters as [`Self::unregister_instance_serialized`] does, but for what `options` say.
    ///
    /// # Errors
    /// Those of [`Self::unregister_instance_serialized`] and of
    /// [`DataWriter::write_with`](super::DataWriter::write_with).
    pub fn unregister_instance_serialized_with(&self, key: &[u8], options: &WriteOptions) -> Result<()> {
        self.inner().end_serialized(key, ChangeKind::Unregister, options)
    }

    /// Prepares to write the instance with this serialized key, and gives its handle; NIL for a type without
    /// key.
    ///
    /// # Errors
    /// As [`Self::dispose_serialized`]; [`Error::OutOfResources`] at `max_instances`.
    pub fn register_instance_serialized(&self, key: &[u8]) -> Result<InstanceHandle> {
        let writer = self.inner();
        if !writer.ty.is_keyed() {
            return Ok(InstanceHandle::NIL);
        }
        let (key, payload) = writer.own_key(key, true)?;
        writer
            .with(|writer, now, _| writer.register_instance(now, key, payload))?
            .map_err(|error| writer.write_error(error, None, None))
    }

    /// The handle of the registered instance with this serialized key.
    ///
    /// # Errors
    /// [`Error::BadParameter`] for octets that are no key of the type, [`Error::NotEnabled`].
    pub fn lookup_instance_serialized(&self, key: &[u8]) -> Result<Option<InstanceHandle>> {
        let key = self.inner().key_in(key, true)?;
        self.inner().with(|writer, _, _| writer.find_registered(key))
    }

    /// The serialized key of a registered instance.
    ///
    /// # Errors
    /// [`Error::NotEnabled`], [`Error::BadParameter`] when the handle is not registered.
    pub fn key_value_serialized(&self, handle: InstanceHandle) -> Result<Vec<u8>> {
        let key = self.inner().with(|writer, _, _| writer.instance_key(handle).cloned())?;
        key.map(|key| key.as_slice().to_vec())
            .ok_or_else(|| BadParameter::UnknownInstance { entity: self.inner().describe() }.into())
    }
}

impl WriterInner {
    fn write_serialized(&self, sample: &[u8], options: &WriteOptions) -> Result<()> {
        self.write_encoded(sample, options, || self.copied(sample))
    }

    fn copied(&self, sample: &[u8]) -> Payload {
        let mut buffer = self.pool.take();
        buffer.bytes_mut().extend_from_slice(sample);
        buffer.freeze()
    }

    /// Writes an encoded sample, which `payload` has in memory to be kept.
    pub(super) fn write_encoded(
        &self,
        sample: &[u8],
        options: &WriteOptions,
        payload: impl FnOnce() -> Payload,
    ) -> Result<()> {
        let timestamp = options.timestamp();
        if let Some(timestamp) = timestamp {
            self.check_timestamp(timestamp)?;
        }
        self.core.check_exists(|| self.describe())?;
        let padded = self.checked_sample(sample)?;
        let key = self.key_in(sample, false)?;
        self.check_handle(options.handle(), || Ok(key))?;
        let timeout = options.patience(self.max_blocking_time);
        let lacks_key = if padded.len() <= self.copied_bytes_max {
            self.write(ChangeKind::Alive, key, NewPayload::Octets(&padded), timestamp, timeout)?
        } else {
            let payload = &mut match padded {
                Cow::Borrowed(_) => payload(),
                Cow::Owned(padded) => Payload::from_vec(padded),
            };
            self.write(ChangeKind::Alive, key, NewPayload::Payload(payload), timestamp, timeout)?
        };
        if lacks_key {
            self.keep_key(key, || self.own_key(sample, false).map(|(_, payload)| payload));
        }
        Ok(())
    }

    fn end_serialized(&self, key: &[u8], kind: ChangeKind, options: &WriteOptions) -> Result<()> {
        let timestamp = options.timestamp();
        if let Some(timestamp) = timestamp {
            self.check_timestamp(timestamp)?;
        }
        if !self.ty.is_keyed() {
            return Err(self.has_no_key());
        }
        self.core.check_exists(|| self.describe())?;
        let (key, mut payload) = self.own_key(key, true)?;
        self.check_handle(options.handle(), || Ok(key))?;
        let timeout = options.patience(self.max_blocking_time);
        self.write(kind, key, NewPayload::Payload(&mut payload), timestamp, timeout).map(drop)
    }

    /// The serialized key of an encoded sample.
    pub(super) fn serialized_key(&self, sample: &[u8]) -> Result<Vec<u8>> {
        if !self.ty.is_keyed() {
            return Err(self.has_no_key());
        }
        self.own_key(sample, false).map(|(_, payload)| payload.as_slice().to_vec())
    }

    /// The key of a payload, and its serialized key as this writer sends it.
    fn own_key(&self, payload: &[u8], key_only: bool) -> Result<(Key, Payload)> {
        let key = self.key_in(payload, key_only)?;
        let mut buffer = self.pool.take();
        let representation = (self.version, Endianness::Little);
        let serialized = self.ty.serialize_key(payload, key_only, representation, buffer.bytes_mut());
        match serialized {
            Ok(()) => Ok((key, buffer.freeze())),
            Err(KeyError::Malformed(malformed)) => Err(self.no_such(payload, key_only, malformed)),
            Err(KeyError::Encode(error)) => Err(self.serialization(error)),
        }
    }

    fn key_in(&self, payload: &[u8], key_only: bool) -> Result<Key> {
        self.key.key(payload, key_only).map_err(|malformed| self.no_such(payload, key_only, malformed))
    }

    /// The sample, padded, if it is one of the type, in the encoding version that the writer announces.
    fn checked_sample<'a>(&self, sample: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        let parsed = Encapsulation::parse(sample);
        let (encapsulation, _) = parsed.map_err(|malformed| self.no_such(sample, false, malformed))?;
        if encapsulation.version != self.version {
            return Err(BadParameter::Encoding {
                entity: self.describe(),
                encoding: encapsulation.name(),
                version: encapsulation.version,
                offered: self.version,
            }
            .into());
        }
        self.ty.check(sample).map_err(|malformed| self.no_such(sample, false, malformed))?;
        let padding = sample.len().next_multiple_of(ALIGNMENT) - sample.len();
        if padding == 0 {
            return Ok(Cow::Borrowed(sample));
        }
        let mut padded = sample.to_vec();
        padded.resize(sample.len() + padding, 0);
        // Where the options tell of padding that the length contradicts, what is told now is true.
        if let Some(options) = padded.get_mut(Encapsulation::HEADER_BYTES - 1) {
            *options = *options & !(ALIGNMENT as u8 - 1) | padding as u8;
        }
        Ok(Cow::Owned(padded))
    }

    #[cold]
    fn no_such(&self, payload: &[u8], key_only: bool, malformed: Malformed) -> Error {
        let what = if key_only { "serialized key" } else { "sample" };
        let extensibility = self.ty.extensibility();
        let expected = Encapsulation::for_type(self.version, extensibility, Endianness::Little).name();
        let encapsulated = match Encapsulation::parse(payload) {
            Ok((encapsulation, _)) => format!("encapsulated as {}", encapsulation.name()),
            Err(Malformed::Truncated) => "too short for an encapsulation header".to_owned(),
            Err(_) => "of an unknown encapsulation".to_owned(),
        };
        let found = format!(
            "{} octets, {encapsulated}, are no {what} of type '{}', which is {extensibility:?} and encapsulated as {expected}",
            payload.len(),
            self.ty.name()
        );
        BadParameter::Octets { entity: self.describe(), found, source: malformed }.into()
    }
}
