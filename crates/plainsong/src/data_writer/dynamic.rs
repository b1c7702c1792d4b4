//! Writing samples as values that are known at run time.

use plainsong_proto::cdr::Endianness;
use plainsong_proto::type_support::{DynamicData, DynamicType};

use super::AnyDataWriter;
use crate::dynamic::not_dynamic;
use crate::error::Result;
use crate::write_options::WriteOptions;

/// What happens to an instance.
#[derive(Clone, Copy)]
enum Ending {
    Dispose,
    Unregister,
}

/// Samples as values, of a topic with a [`DynamicType`].
impl AnyDataWriter {
    /// A value of its type of which nothing is set.
    ///
    /// # Errors
    /// [`crate::Error::PreconditionNotMet`] when the type is no [`DynamicType`].
    pub fn new_data(&self) -> Result<DynamicData> {
        Ok(self.own_dynamic()?.new_data())
    }

    fn own_dynamic(&self) -> Result<&DynamicType> {
        let writer = self.inner();
        writer.ty.as_dynamic().ok_or_else(|| not_dynamic(self.topic_name(), writer.ty.name()))
    }

    /// Writes a value.
    ///
    /// # Errors
    /// Those of [`Self::write_serialized`]; of a value of another type too.
    pub fn write_data(&self, data: &DynamicData) -> Result<()> {
        self.write_data_with(data, &WriteOptions::new())
    }

    /// Writes a value as [`Self::write_data`] does, but for what `options` say.
    ///
    /// # Errors
    /// Those of [`Self::write_serialized_with`].
    pub fn write_data_with(&self, data: &DynamicData, options: &WriteOptions) -> Result<()> {
        self.write_serialized_with(&self.encoded(data)?, options)
    }

    /// Disposes the instance of a value.
    ///
    /// # Errors
    /// Those of [`Self::dispose_serialized`].
    pub fn dispose_data(&self, data: &DynamicData) -> Result<()> {
        self.end_data(data, Ending::Dispose)
    }

    /// Unregisters the instance of a value.
    ///
    /// # Errors
    /// Those of [`Self::unregister_instance_serialized`].
    pub fn unregister_data(&self, data: &DynamicData) -> Result<()> {
        self.end_data(data, Ending::Unregister)
    }

    fn end_data(&self, data: &DynamicData, ending: Ending) -> Result<()> {
        let key = self.inner().serialized_key(&self.encoded(data)?)?;
        match ending {
            Ending::Dispose => self.dispose_serialized(&key),
            Ending::Unregister => self.unregister_instance_serialized(&key),
        }
    }

    fn encoded(&self, data: &DynamicData) -> Result<Vec<u8>> {
        let mut payload = Vec::new();
        let writer = self.inner();
        let encoded = data.write(writer.version, Endianness::NATIVE, &mut payload);
        encoded.map_err(|source| writer.serialization(source))?;
        Ok(payload)
    }
}
