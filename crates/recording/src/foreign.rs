//! Channels of recorders that keep less of a writer: those of ROS 2, and others whose messages are CDR.

use mcap::records::{Channel, SchemaHeader};
use plainsong_proto::guid::{EntityId, GuidPrefix};
use plainsong_proto::qos::{Durability, QosSet};

use crate::names::dds_topic;
use crate::writer::RecordedWriter;

/// Participants do not begin with these: the writers of files of others have GUIDs of ours.
const PREFIX: GuidPrefix = GuidPrefix(*b"\x01\xffmcap\0\0\0\0\0\0");

/// What is kept of a schema.
#[derive(Clone, Debug)]
pub(crate) struct ForeignSchema {
    name: String,
    encoding: String,
    /// Its text marks a member as key.
    is_keyed: bool,
}

impl ForeignSchema {
    pub(crate) fn new(header: SchemaHeader, text: &[u8]) -> Self {
        let has = |what: &[u8]| text.windows(what.len()).any(|window| window == what);
        let is_keyed = has(b"@key") || has(b"#pragma keylist");
        Self { name: header.name, encoding: header.encoding, is_keyed }
    }

    /// Octets that it keeps.
    pub(crate) fn bytes(&self) -> usize {
        self.name.len() + self.encoding.len()
    }
}

/// Why nobody can write what a channel has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ForeignError {
    #[error("its messages are encoded as '{0}', and what can be written is CDR")]
    Encoding(String),
    #[error("it has no schema, which would name its type")]
    NoSchema,
    #[error("its schema is of '{0}'; those of ros2msg, ros2idl and omgidl are understood")]
    Schema(String),
}

/// The writer that a channel of somebody else stands for: its topic and type as on the wire, and as much of
/// its QoS as the recorder of ROS 2 keeps.
pub(crate) fn writer(
    channel: &Channel,
    schema: Option<&ForeignSchema>,
) -> Result<RecordedWriter, ForeignError> {
    if channel.message_encoding != "cdr" {
        return Err(ForeignError::Encoding(channel.message_encoding.escape_debug().to_string()));
    }
    let schema = schema.ok_or(ForeignError::NoSchema)?;
    let (topic, type_name) = match schema.encoding.as_str() {
        "ros2msg" | "ros2idl" => (dds_topic(&channel.topic), dds_type_name(&schema.name)),
        "omgidl" => (channel.topic.clone(), schema.name.clone()),
        other => return Err(ForeignError::Schema(other.escape_debug().to_string())),
    };
    let keyed = schema.is_keyed;
    let guid = PREFIX.entity(EntityId::user_writer(channel.id.into(), keyed));
    let qos = channel
        .metadata
        .get("offered_qos_profiles")
        .map_or_else(|| QosSet::writer().keep_all(), |text| qos_of(text));
    Ok(RecordedWriter { topic, type_name, guid, keyed, qos, ty: None })
}

/// `pkg/msg/Type` as it is on the wire: `pkg::msg::dds_::Type_`.
fn dds_type_name(ros: &str) -> String {
    let parts: Vec<_> = ros.split('/').collect();
    match parts[..] {
        [package, kind, name] => format!("{package}::{kind}::dds_::{name}_"),
        [package, name] => format!("{package}::msg::dds_::{name}_"),
        _ => ros.to_owned(),
    }
}

/// Of the first of the profiles, which are YAML, what decides who matches. Values are words, or before ROS 2
/// Jazzy the numbers of its middleware interface.
fn qos_of(profiles: &str) -> QosSet {
    let value = |name: &str| {
        let mut lines = profiles.lines().map(|line| line.trim_start_matches(['-', ' ']));
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.map(str::trim).unwrap_or_default()
    };
    let mut qos = QosSet::writer();
    qos = match value("reliability") {
        "2" | "best_effort" => qos.best_effort(),
        _ => qos.reliable(),
    };
    if ["1", "transient_local"].contains(&value("durability")) {
        qos = qos.durability(Durability::TransientLocal);
    }
    match (value("history"), value("depth").parse()) {
        ("1" | "keep_last", Ok(depth)) if depth > 0 => qos.keep_last(depth),
        _ => qos.keep_all(),
    }
}

#[cfg(test)]
mod tests {
    use plainsong_proto::qos::{HistoryKind, ReliabilityKind};

    use super::*;

    fn channel(topic: &str, encoding: &str, profiles: Option<&str>) -> Channel {
        let profiles = profiles.map(|text| ("offered_qos_profiles".to_owned(), text.to_owned()));
        Channel {
            id: 7,
            schema_id: 1,
            topic: topic.to_owned(),
            message_encoding: encoding.to_owned(),
            metadata: profiles.into_iter().collect(),
        }
    }

    fn schema(name: &str, encoding: &str, text: &str) -> ForeignSchema {
        let header = SchemaHeader { id: 1, name: name.to_owned(), encoding: encoding.to_owned() };
        ForeignSchema::new(header, text.as_bytes())
    }

    #[test]
    fn names_of_ros_are_those_of_the_wire_and_others_stay() {
        let text = schema("std_msgs/msg/String", "ros2msg", "string data");
        let found = writer(&channel("/chatter", "cdr", None), Some(&text)).unwrap();
        assert_eq!(
            (found.topic.as_str(), found.type_name.as_str()),
            ("rt/chatter", "std_msgs::msg::dds_::String_")
        );
        assert!(!found.keyed && !found.guid.entity.is_keyed() && found.guid.entity.is_writer());
        let shape = schema("demo::Shape", "omgidl", "module demo { struct Shape { @key string color; }; };");
        let found = writer(&channel("Square", "cdr", None), Some(&shape)).unwrap();
        assert_eq!((found.topic.as_str(), found.type_name.as_str()), ("Square", "demo::Shape"));
        assert!(found.keyed && found.guid.entity.is_keyed());
        assert_eq!(dds_type_name("std_msgs/String"), "std_msgs::msg::dds_::String_");
    }

    #[test]
    fn what_cannot_be_written_says_why() {
        let text = schema("std_msgs/msg/String", "ros2msg", "");
        let why = |channel: &Channel, schema: Option<&ForeignSchema>| writer(channel, schema).unwrap_err();
        assert_eq!(why(&channel("/a", "json", None), Some(&text)), ForeignError::Encoding("json".to_owned()));
        assert_eq!(why(&channel("/a", "cdr", None), None), ForeignError::NoSchema);
        let other = schema("A", "protobuf", "");
        assert_eq!(
            why(&channel("/a", "cdr", None), Some(&other)),
            ForeignError::Schema("protobuf".to_owned())
        );
    }

    #[test]
    fn profiles_are_read_in_words_and_in_numbers() {
        let numbers = "- history: 1\n  depth: 5\n  reliability: 2\n  durability: 1\n  deadline:\n    sec: 9\n    nsec: 0\n";
        let words =
            "- history: keep_last\n  depth: 5\n  reliability: best_effort\n  durability: transient_local\n";
        for text in [numbers, words] {
            let qos = qos_of(text);
            assert_eq!((qos.history.kind, qos.history.depth), (HistoryKind::KeepLast, 5), "{text}");
            assert_eq!(qos.reliability.kind, ReliabilityKind::BestEffort, "{text}");
            assert_eq!(qos.durability, Durability::TransientLocal, "{text}");
        }
        let qos = qos_of("nothing of that");
        assert_eq!(
            (qos.history.kind, qos.reliability.kind),
            (HistoryKind::KeepAll, ReliabilityKind::Reliable)
        );
        assert_eq!(qos.durability, Durability::Volatile);
    }
}
