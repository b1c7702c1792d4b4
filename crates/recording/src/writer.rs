//! What is kept of a writer: the channel of a file that has its samples.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plainsong_idl::idl_of;
use plainsong_proto::cdr::XcdrVersion;
use plainsong_proto::guid::Guid;
use plainsong_proto::qos::QosSet;
use plainsong_proto::types::lookup::{RequestId, decode_reply, encode_reply};
use plainsong_proto::types::{TypeDescription, TypeHash, TypeInformation};

use crate::limits::{QOS_TEXT_BYTES_MAX, TYPE_TEXT_BYTES_MAX};
use crate::names::channel_topic;
use crate::ros;

const TOPIC: &str = "plainsong.topic";
const TYPE_NAME: &str = "plainsong.type_name";
const WRITER: &str = "plainsong.writer";
const KEYED: &str = "plainsong.keyed";
const QOS: &str = "plainsong.qos";
const TYPE_INFORMATION: &str = "plainsong.type_information";
const TYPE_OBJECTS: &str = "plainsong.type_objects";
/// What tools of ROS 2 look for.
const OFFERED_QOS_PROFILES: &str = "offered_qos_profiles";

/// A writer whose changes are recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedWriter {
    /// Name of its topic on the wire.
    pub topic: String,
    /// Registered name of its type.
    pub type_name: String,
    /// Its GUID.
    pub guid: Guid,
    /// Its type has a key.
    pub keyed: bool,
    /// Its QoS, and that of its publisher and topic.
    pub qos: QosSet,
    /// Its type, as it told it.
    pub ty: Option<Arc<TypeDescription>>,
}

/// The schema of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schema {
    pub(crate) name: String,
    pub(crate) encoding: &'static str,
    pub(crate) text: String,
}

/// Why the metadata of a channel tells of no writer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// Somebody else wrote the file.
    #[error("it has no '{0}' in its metadata: Plainsong did not record it")]
    Missing(&'static str),
    /// A value is none.
    #[error("'{key}' in its metadata is wrong: {why}")]
    Wrong {
        /// Which.
        key: &'static str,
        /// What is wrong.
        why: String,
    },
}

impl RecordedWriter {
    /// The schema of its samples, and what is to be said where the type cannot be told in one.
    pub(crate) fn schema(&self) -> (Option<Schema>, Option<String>) {
        let Some(ty) = &self.ty else {
            return (None, Some("its participant does not tell its type".to_owned()));
        };
        if self.is_ros()
            && let Some(text) = ros::message_text(ty, self.is_delimited())
        {
            return (Some(Schema { name: ros::type_name(&self.type_name), encoding: "ros2msg", text }), None);
        }
        match idl_of(ty) {
            Ok(text) => (Some(Schema { name: self.type_name.clone(), encoding: "omgidl", text }), None),
            Err(error) => (None, Some(error.to_string())),
        }
    }

    /// Samples of types that may evolve begin with their lengths.
    fn is_delimited(&self) -> bool {
        self.qos.data_representation.first() == Some(&XcdrVersion::Xcdr2)
    }

    /// A topic of ROS 2.
    fn is_ros(&self) -> bool {
        channel_topic(&self.topic) != self.topic
    }

    /// All of it, as texts.
    pub(crate) fn metadata(&self) -> BTreeMap<String, String> {
        let mut metadata = BTreeMap::new();
        let mut put = |key: &str, value: String| _ = metadata.insert(key.to_owned(), value);
        put(TOPIC, self.topic.clone());
        put(TYPE_NAME, self.type_name.clone());
        put(WRITER, self.guid.to_string());
        put(KEYED, self.keyed.to_string());
        // A QoS has nothing that JSON cannot say.
        put(QOS, serde_json::to_string(&self.qos).unwrap_or_default());
        if let Some(ty) = &self.ty {
            put(TYPE_INFORMATION, BASE64_STANDARD.encode(ty.information.encode()));
            let objects: Vec<_> =
                ty.objects.iter().map(|(hash, object)| (*hash, object.as_slice())).collect();
            // As an answer of the TypeLookup service has them.
            let id = RequestId { writer: Guid::UNKNOWN, number: 0 };
            put(TYPE_OBJECTS, BASE64_STANDARD.encode(encode_reply(id, &objects)));
        }
        if self.is_ros() {
            put(OFFERED_QOS_PROFILES, ros::qos_profiles(&self.qos));
        }
        metadata
    }

    /// From the metadata of a channel.
    ///
    /// # Errors
    /// [`MetadataError`].
    pub fn of_metadata(metadata: &BTreeMap<String, String>) -> Result<Self, MetadataError> {
        let get = |key| metadata.get(key).ok_or(MetadataError::Missing(key));
        let wrong = |key, why: String| MetadataError::Wrong { key, why };
        let guid = get(WRITER)?.parse::<Guid>().map_err(|error| wrong(WRITER, error.to_string()))?;
        let keyed =
            get(KEYED)?.parse().map_err(|_| wrong(KEYED, "it is neither true nor false".to_owned()))?;
        let qos = get(QOS)?;
        check_length(QOS, qos, QOS_TEXT_BYTES_MAX)?;
        let qos = serde_json::from_str(qos).map_err(|error| wrong(QOS, error.to_string()))?;
        let ty = match (metadata.get(TYPE_INFORMATION), metadata.get(TYPE_OBJECTS)) {
            (Some(information), Some(objects)) => Some(Arc::new(described(information, objects)?)),
            _ => None,
        };
        let (topic, type_name) = (get(TOPIC)?.clone(), get(TYPE_NAME)?.clone());
        Ok(Self { topic, type_name, guid, keyed, qos, ty })
    }
}

fn described(information: &str, objects: &str) -> Result<TypeDescription, MetadataError> {
    let octets = |key, text: &str| {
        check_length(key, text, TYPE_TEXT_BYTES_MAX)?;
        BASE64_STANDARD.decode(text).map_err(|error| MetadataError::Wrong { key, why: error.to_string() })
    };
    let information = TypeInformation::decode(&octets(TYPE_INFORMATION, information)?)
        .map_err(|error| MetadataError::Wrong { key: TYPE_INFORMATION, why: error.to_string() })?;
    let octets = octets(TYPE_OBJECTS, objects)?;
    let objects = decode_reply(&octets)
        .map_err(|error| MetadataError::Wrong { key: TYPE_OBJECTS, why: error.to_string() })?;
    let objects: BTreeMap<TypeHash, Vec<u8>> =
        objects.into_iter().map(|(hash, object)| (hash, object.to_vec())).collect();
    let roots = [&information.minimal, &information.complete];
    if roots.into_iter().flatten().any(|root| !objects.contains_key(&root.id)) {
        let why = "the TypeObject of the type is not among them".to_owned();
        return Err(MetadataError::Wrong { key: TYPE_OBJECTS, why });
    }
    Ok(TypeDescription { information, objects })
}

fn check_length(key: &'static str, text: &str, most: usize) -> Result<(), MetadataError> {
    if text.len() <= most {
        return Ok(());
    }
    let mut why = String::new();
    let _ = write!(why, "it has {} octets, and {most} are read", text.len());
    Err(MetadataError::Wrong { key, why })
}
