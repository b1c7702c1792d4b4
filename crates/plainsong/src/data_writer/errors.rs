//! What a writer refuses, and what it says of a change that it did not write.

use std::time::Duration;

use plainsong_proto::instance::{InstanceHandle, Key};
use plainsong_proto::writer::WriteError;

use super::WriterInner;
use crate::error::{Error, Result};

impl WriterInner {
    /// Refuses a handle that is not that of the instance with this key.
    pub(super) fn check_handle(
        &self,
        handle: InstanceHandle,
        key: impl FnOnce() -> Result<Key>,
    ) -> Result<()> {
        if handle == InstanceHandle::NIL {
            return Ok(());
        }
        if !self.with(|writer, _, _| writer.is_registered(handle))? {
            return Err(Error::BadParameter(format!("the handle names no instance of {}", self.describe())));
        }
        let key = key()?;
        if self.ty.is_keyed() && self.with(|writer, _, _| writer.find_registered(key))? == Some(handle) {
            return Ok(());
        }
        let text = format!("the handle names another instance of {} than the key does", self.describe());
        Err(Error::PreconditionNotMet(text))
    }

    #[cold]
    pub(super) fn has_no_key(&self) -> Error {
        Error::PreconditionNotMet(format!(
            "type '{}' of topic '{}' has no key, so it has no instances to end",
            self.ty.name(),
            self.topic.name
        ))
    }

    pub(super) fn serialization(&self, reason: &dyn std::fmt::Display) -> Error {
        Error::Serialization { topic: self.topic.name.clone(), reason: reason.to_string() }
    }

    pub(super) fn write_error(&self, error: WriteError, patience: Option<Duration>) -> Error {
        match error {
            WriteError::Full => Error::Timeout {
                what: format!(
                    "waiting for room in the history of {}, full of unacknowledged samples by {},",
                    self.describe(),
                    self.slot.look(|writer| writer.limit_in_words(writer.full_by()))
                ),
                timeout: patience.unwrap_or_default(),
            },
            WriteError::OutOfResources(limit) => Error::OutOfResources(format!(
                "{}: {} is reached; unregister instances or raise the limit",
                self.describe(),
                self.slot.look(|writer| writer.limit_in_words(limit))
            )),
            WriteError::TooLarge => Error::OutOfResources(format!(
                "{}: the sample is longer than sample_bytes_max = {}, and readers of these settings would drop it: raise \
                 it here and where readers are",
                self.describe(),
                self.publisher.participant.config().sample_bytes_max
            )),
            WriteError::UnknownInstance => Error::PreconditionNotMet(format!("{}: {error}", self.describe())),
            WriteError::TimestampBack => Error::BadParameter(format!("{}: {error}", self.describe())),
            other => Error::OutOfResources(format!("{}: {other}", self.describe())),
        }
    }
}
