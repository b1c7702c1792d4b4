//! Reading samples as the octets they came in.

use plainsong_proto::instance::InstanceHandle;
use plainsong_proto::malformed::Malformed;
use plainsong_proto::payload::Payload;
use plainsong_proto::reader::{Access, CachedSample};
use plainsong_proto::sample_info::SampleInfo;
use plainsong_proto::type_support::TypeSupport;

use crate::data_reader::AnyDataReader;
use crate::error::{BadParameter, Result};
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
