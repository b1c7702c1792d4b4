//! What a writer refuses, and what it says of a change that it did not write.

use plainsong_proto::cdr::EncodeError;
use plainsong_proto::instance::{InstanceHandle, Key};
use plainsong_proto::time::{Duration, Now, Time};
use plainsong_proto::writer::WriteError;

use super::WriterInner;
use crate::base::clock;
use crate::error::{BadParameter, Error, OutOfResources, PreconditionNotMet, Result, WaitedFor};

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
            return Err(BadParameter::UnknownInstance { entity: self.describe() }.into());
        }
        let key = key()?;
        if self.ty.is_keyed() && self.with(|writer, _, _| writer.find_registered(key))? == Some(handle) {
            return Ok(());
        }
        Err(PreconditionNotMet::OtherInstance { entity: self.describe() }.into())
    }

    /// Refuses a source timestamp that would arrive as another.
    pub(super) fn check_timestamp(&self, timestamp: Time) -> Result<()> {
        if timestamp.is_on_wire() {
            return Ok(());
        }
        Err(BadParameter::TimestampRange { entity: self.describe(), timestamp }.into())
    }

    #[cold]
    pub(super) fn has_no_key(&self) -> Error {
        let (topic, type_name) = (self.topic.name.clone(), self.ty.name().to_owned());
        PreconditionNotMet::NoKey { topic, type_name }.into()
    }

    pub(super) fn serialization(&self, source: EncodeError) -> Error {
        Error::Serialization { topic: self.topic.name.clone(), source }
    }

    /// `timeout` is how long it waited for room, if it was to wait; `change` has its instance and the
    /// timestamp that it was given.
    #[cold]
    pub(super) fn write_error(
        &self,
        error: WriteError,
        timeout: Option<Duration>,
        change: Option<(Key, Time)>,
    ) -> Error {
        let entity = self.describe();
        match error {
            WriteError::Full => self.no_room(entity, timeout),
            WriteError::OutOfResources(limit) => {
                let limit = self.slot.look(|writer| writer.limit_in_words(limit));
                OutOfResources::Limit { entity, limit }.into()
            }
            WriteError::TooLarge => {
                let octets_max = self.publisher.participant.config().sample_bytes_max;
                OutOfResources::SampleTooLong { entity, octets_max }.into()
            }
            WriteError::UnknownInstance => PreconditionNotMet::NotRegistered { entity }.into(),
            WriteError::NotKeyed => self.has_no_key(),
            WriteError::TimestampBack => {
                let (key, timestamp) = change.unzip();
                let timestamp = timestamp.unwrap_or(Time::INVALID);
                let last = key.map_or(timestamp, |key| {
                    // What a change that is no later would be stamped with.
                    let now = Now { mono: clock::mono(), wall: timestamp };
                    self.slot.look(|writer| writer.source_timestamp(now, key))
                });
                BadParameter::TimestampBack { entity, timestamp, last }.into()
            }
        }
    }

    fn no_room(&self, entity: String, timeout: Option<Duration>) -> Error {
        let limit = self.slot.look(|writer| writer.limit_in_words(writer.full_by()));
        let Some(timeout) = timeout else {
            let behind = self.readers_waited_for();
            return Error::WouldBlock { entity, limit, behind };
        };
        let what = format!(
            "waiting for room in the history of {entity}, full of unacknowledged samples by {limit},"
        );
        Error::Timeout { waited_for: WaitedFor::Room, what, timeout }
    }
}
