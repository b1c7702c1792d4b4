//! What happens beside samples, as messages of a channel of their own.

use plainsong_proto::guid::Guid;
use serde::{Deserialize, Serialize};

/// The topic of that channel.
pub(crate) const TOPIC: &str = "plainsong/events";
/// The name of its schema.
pub(crate) const SCHEMA_NAME: &str = "plainsong.Event";
/// Its schema.
pub(crate) const SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "plainsong.Event",
  "description": "The end of an instance, or of a writer",
  "type": "object",
  "properties": {
    "topic": {"type": "string", "description": "name of the topic on the wire"},
    "writer": {"type": "string", "description": "GUID of the writer"},
    "kind": {"enum": ["dispose", "unregister", "dispose_unregister", "departure"]},
    "key": {"type": "string", "contentEncoding": "base64", "description": "the serialized key as it came, with its encapsulation header"},
    "key_hash": {"type": "string", "contentEncoding": "base64", "description": "the key hash, where no key came"}
  },
  "required": ["topic", "writer", "kind"]
}
"#;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The instance was disposed.
    Dispose,
    /// The writer is done with the instance.
    Unregister,
    /// Both at once.
    DisposeUnregister,
    /// The writer has left.
    Departure,
}

/// The end of an instance, or of a writer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Name of the topic on the wire.
    pub topic: String,
    /// The writer.
    pub writer: Guid,
    /// What happened.
    pub kind: EventKind,
    /// The serialized key as it came.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "text")]
    pub key: Vec<u8>,
    /// The key hash, where no key came.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "text")]
    pub key_hash: Vec<u8>,
}

/// Octets as base64.
mod text {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;

    pub(super) fn serialize<S: Serializer>(octets: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(octets))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text).map_err(D::Error::custom)
    }
}
