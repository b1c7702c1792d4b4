//! What tools of ROS 2 expect of a recording: messages described as in `.msg` files, and QoS profiles.

use std::fmt::Write as _;

use plainsong_idl::Model;
use plainsong_idl::model::{Definition, DefinitionKind, Extensibility, Member, Primitive, Structure, Type};
use plainsong_proto::qos::{Durability, HistoryKind, LivelinessKind, QosSet, ReliabilityKind};
use plainsong_proto::time::Duration;
use plainsong_proto::types::TypeDescription;

/// What stands between the descriptions of two messages.
const SEPARATOR: &str = "================================================================================";

/// `pkg::msg::dds_::Type_` as ROS 2 writes it: `pkg/msg/Type`.
pub(crate) fn type_name(dds: &str) -> String {
    let parts: Vec<_> = dds.split("::").collect();
    ros_name(&parts).unwrap_or_else(|| dds.to_owned())
}

fn ros_name(parts: &[&str]) -> Option<String> {
    match parts {
        [package, kind, "dds_", name] => Some(format!("{package}/{kind}/{}", name.strip_suffix('_')?)),
        [package, kind, name] => Some(format!("{package}/{kind}/{name}")),
        _ => None,
    }
}

/// The type as in `.msg` files, the messages that it has after it; `None` for one that such files cannot say.
pub(crate) fn message_text(ty: &TypeDescription, is_delimited: bool) -> Option<String> {
    let model = Model::described(ty).ok()?;
    let mut messages = Vec::new();
    for (_, definition) in model.definitions() {
        match &definition.kind {
            DefinitionKind::Structure(structure) => {
                // ROS 2 has the encoding of final types; in XCDR1 that of others is the same.
                if is_delimited && structure.aggregate.extensibility != Extensibility::Final {
                    return None;
                }
                messages.push(message(&model, definition, structure)?);
            }
            // A member says what it is another name for.
            DefinitionKind::Alias(_) => {}
            _ => return None,
        }
    }
    // The type itself stands last among the definitions.
    let ((_, first), others) = messages.split_last()?;
    let mut text = first.clone();
    for (name, fields) in others {
        let _ = write!(text, "{SEPARATOR}\nMSG: {name}\n{fields}");
    }
    Some(text)
}

/// A message, with the name that others call it by.
fn message(model: &Model, definition: &Definition, structure: &Structure) -> Option<(String, String)> {
    if structure.base.is_some() || structure.aggregate.extensibility == Extensibility::Mutable {
        return None;
    }
    let mut fields = String::new();
    for member in &structure.members {
        if member.optional {
            return None;
        }
        let name = field_name(structure, member);
        let _ = writeln!(fields, "{} {name}", field_type(model, &member.ty)?);
    }
    Some((name_of(definition)?, fields))
}

fn name_of(definition: &Definition) -> Option<String> {
    let full = definition.full_name();
    let name = ros_name(&full.split("::").collect::<Vec<_>>())?;
    // Other messages name it without the folder.
    Some(name.replacen("/msg/", "/", 1))
}

/// Some products put a `_` behind the name of each member.
fn field_name<'a>(structure: &Structure, member: &'a Member) -> &'a str {
    let all = structure.members.iter().all(|member| member.name.ends_with('_'));
    if all { member.name.strip_suffix('_').unwrap_or(&member.name) } else { &member.name }
}

fn field_type(model: &Model, ty: &Type) -> Option<String> {
    let ty = model.resolved(ty);
    Some(match ty {
        Type::Sequence { element, bound } => {
            let bound = bound.map_or_else(String::new, |bound| format!("<={bound}"));
            format!("{}[{bound}]", element_type(model, &element.ty)?)
        }
        Type::Array { element, dimensions } => {
            let [length] = dimensions.as_slice() else { return None };
            format!("{}[{length}]", element_type(model, &element.ty)?)
        }
        _ => element_type(model, ty)?,
    })
}

fn element_type(model: &Model, ty: &Type) -> Option<String> {
    Some(match model.resolved(ty) {
        Type::Primitive(primitive) => match primitive {
            Primitive::Boolean => "bool",
            Primitive::Octet => "byte",
            Primitive::Char | Primitive::UInt8 => "uint8",
            Primitive::Int8 => "int8",
            Primitive::Int16 => "int16",
            Primitive::UInt16 => "uint16",
            Primitive::Int32 => "int32",
            Primitive::UInt32 => "uint32",
            Primitive::Int64 => "int64",
            Primitive::UInt64 => "uint64",
            Primitive::Float32 => "float32",
            Primitive::Float64 => "float64",
            Primitive::WChar | Primitive::Float128 => return None,
        }
        .to_owned(),
        Type::String { wide, bound } => {
            let bound = bound.map_or_else(String::new, |bound| format!("<={bound}"));
            format!("{}{bound}", if *wide { "wstring" } else { "string" })
        }
        Type::Named(id) => name_of(model.definition(*id))?,
        _ => return None,
    })
}

/// The QoS as the recorder of ROS 2 writes it: YAML with one profile. The numbers are those of its middleware
/// interface.
pub(crate) fn qos_profiles(qos: &QosSet) -> String {
    let history = match qos.history.kind {
        HistoryKind::KeepLast => 1,
        HistoryKind::KeepAll => 2,
    };
    let reliability = match qos.reliability.kind {
        ReliabilityKind::Reliable => 1,
        ReliabilityKind::BestEffort | ReliabilityKind::Unset => 2,
    };
    let durability = if qos.durability >= Durability::TransientLocal { 1 } else { 2 };
    let liveliness = if qos.liveliness.kind == LivelinessKind::Automatic { 1 } else { 3 };
    format!(
        "- history: {history}\n  depth: {}\n  reliability: {reliability}\n  durability: {durability}\n  \
         deadline:\n{}  lifespan:\n{}  liveliness: {liveliness}\n  liveliness_lease_duration:\n{}  \
         avoid_ros_namespace_conventions: false\n",
        qos.history.depth,
        duration(qos.deadline),
        duration(qos.lifespan),
        duration(qos.liveliness.lease_duration),
    )
}

fn duration(duration: Duration) -> String {
    // How that interface says that it never ends.
    let (seconds, nanos) = if duration.is_infinite() {
        (9_223_372_036, 854_775_807)
    } else {
        (duration.0.div_euclid(1_000_000_000), duration.0.rem_euclid(1_000_000_000))
    };
    format!("    sec: {seconds}\n    nsec: {nanos}\n")
}
