//! What a writer says of a change that it did not write.

use std::time::Duration;

use plainsong_proto::writer::WriteError;

use super::WriterInner;
use crate::error::Error;

impl WriterInner {
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
