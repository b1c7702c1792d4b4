//! Reading samples as the octets they came in.

use plainsong_proto::guid::Guid;
pub use plainsong_proto::instance::Ending;
use plainsong_proto::instance::InstanceHandle;
use plainsong_proto::malformed::Malformed;
use plainsong_proto::payload::Payload;
use plainsong_proto::reader::{Access, CachedSample};
use plainsong_proto::sample_info::SampleInfo;
use plainsong_proto::time::Time;
use plainsong_proto::type_support::TypeSupport;

use crate::data_reader::AnyDataReader;
use crate::error::{BadParameter, PreconditionNotMet, Result};
use crate::group::Member;
use crate::keys;
use crate::read_options::ReadOptions;
use crate::sample::{Store, settle};

/// One sample as it came, or a change of its instance's state.
#[derive(Clone, Debug)]
pub struct SerializedSample {
    /// With the encapsulation header: the sample where `info.valid_data` says so, else the serialized key, or
    /// nothing. Long ones are not copied, but shared with the reader.
    pub payload: Payload,
    /// Facts about it.
    pub info: SampleInfo,
}

/// One change of a writer as it came: a sample, or the end of an instance.
#[derive(Clone, Debug)]
pub struct SerializedChange {
    /// With the encapsulation header: the sample, or of an ending the serialized key; 16 octets of key hash
    /// where an ending came with no more than that.
    pub payload: Payload,
    /// How the change ends its instance, if it does.
    pub ending: Option<Ending>,
    /// When it was written.
    pub source_timestamp: Time,
    /// When it arrived.
    pub reception_timestamp: Time,
    /// The writer.
    pub writer: Guid,
}

/// Where changes go as they came.
struct ChangeStore(Vec<(u64, SerializedChange)>);

impl Store for ChangeStore {
    const VALUE_BYTES: usize = 0;

    fn count(&self) -> usize {
        self.0.len()
    }

    fn store(&mut self, samples: &[CachedSample]) -> Vec<(usize, Malformed)> {
        // What is not valid tells that writers are gone: no change of any.
        self.0.extend(samples.iter().filter(|sample| sample.info.valid_data).map(|sample| {
            let CachedSample { info, id, payload } = sample;
            let change = SerializedChange {
                payload: payload.clone(),
                ending: info.instance_handle.ending(),
                source_timestamp: info.source_timestamp,
                reception_timestamp: info.reception_timestamp,
                writer: Guid::from(info.publication_handle),
            };
            (*id, change)
        }));
        Vec::new()
    }

    fn settle(&mut self, start: usize, _: bool) {
        self.0.get_mut(start..).unwrap_or_default().sort_by_key(|(id, _)| *id);
    }
}

/// Where samples go as they came.
struct SerializedStore<'a> {
    ty: &'a dyn TypeSupport,
    samples: Vec<SerializedSample>,
}

impl Store for SerializedStore<'_> {
    const VALUE_BYTES: usize = 0;

    fn count(&self) -> usize {
        self.samples.len()
    }

    fn store(&mut self, samples: &[CachedSample]) -> Vec<(usize, Malformed)> {
        let mut undecodable = Vec::new();
        for (at, sample) in samples.iter().enumerate() {
            let CachedSample { info, payload, .. } = sample;
            if info.valid_data
                && let Err(reason) = self.ty.check(payload.as_slice())
            {
                undecodable.push((at, reason));
                continue;
            }
            self.samples.push(SerializedSample { payload: payload.clone(), info: *info });
        }
        undecodable
    }

    fn settle(&mut self, start: usize, grouped: bool) {
        let samples = self.samples.get_mut(start..).unwrap_or_default();
        settle(samples, |sample| sample.info.instance_handle, |sample| &mut sample.info, grouped);
    }
}

/// Samples are looked at once before they are handed out: those that do not decode are discarded and counted,
/// as with a reader that decodes them.
impl AnyDataReader {
    /// Announces a reader that was created disabled.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`] when its participant is not, [`crate::Error::OutOfResources`] at a limit.
    pub fn enable(&self) -> Result<()> {
        self.0.enable()
    }

    /// Removes and returns all samples, as they came.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`].
    pub fn take_serialized(&self) -> Result<Vec<SerializedSample>> {
        self.take_serialized_with(&ReadOptions::new())
    }

    /// Removes and returns what `options` choose, as it came; ORDER BY of a query does not count.
    ///
    /// # Errors
    /// As [`DataReader::take_with`](crate::data_reader::DataReader::take_with).
    pub fn take_serialized_with(&self, options: &ReadOptions) -> Result<Vec<SerializedSample>> {
        self.serialized(Access::Take, options)
    }

    /// Removes and returns all changes in the order in which they arrived, those that end instances
    /// included: nothing is merged, and no ownership decides. Only for readers of an
    /// [`OpaqueType`](crate::types::OpaqueType).
    ///
    /// # Errors
    /// [`crate::Error::PreconditionNotMet`] for a reader of another type, [`crate::Error::NotEnabled`].
    pub fn take_changes(&self) -> Result<Vec<SerializedChange>> {
        if !self.0.ty.is_opaque() {
            return Err(PreconditionNotMet::KeepsInstances { entity: self.0.describe() }.into());
        }
        let mut changes = ChangeStore(Vec::new());
        self.0.collect_with(Access::Take, &ReadOptions::new(), &mut changes)?;
        changes.0.sort_by_key(|(id, _)| *id);
        Ok(changes.0.into_iter().map(|(_, change)| change).collect())
    }

    /// Returns all samples, as they came, and marks them read.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`].
    pub fn read_serialized(&self) -> Result<Vec<SerializedSample>> {
        self.read_serialized_with(&ReadOptions::new())
    }

    /// Returns what `options` choose, as it came, and marks it read; ORDER BY of a query does not count.
    ///
    /// # Errors
    /// As [`Self::take_serialized_with`].
    pub fn read_serialized_with(&self, options: &ReadOptions) -> Result<Vec<SerializedSample>> {
        self.serialized(Access::Read, options)
    }

    fn serialized(&self, access: Access, options: &ReadOptions) -> Result<Vec<SerializedSample>> {
        let mut samples = SerializedStore { ty: &*self.0.ty, samples: Vec::new() };
        self.0.collect_with(access, options, &mut samples)?;
        Ok(samples.samples)
    }

    /// The handle of the instance with this serialized key, when the reader knows it.
    ///
    /// # Errors
    /// [`crate::Error::BadParameter`] for octets that are no key of the type, [`crate::Error::NotEnabled`].
    pub fn lookup_instance_serialized(&self, key: &[u8]) -> Result<Option<InstanceHandle>> {
        let function = std::sync::Arc::clone(&self.0.ty).key_function(keys::fingerprint_of);
        let key = function.key(key, true).map_err(|source| {
            let entity = format!("the reader of topic '{}'", self.topic_name());
            let found = format!("the octets are no serialized key of type '{}'", self.0.ty.name());
            BadParameter::Octets { entity, found, source }
        })?;
        self.0.with(|reader, _, _| reader.find_instance(key))
    }
}
