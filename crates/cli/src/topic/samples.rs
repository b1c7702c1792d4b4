//! A sample as text for people, as JSON and as CSV.

use std::fmt::Write as _;

use plainsong::dynamic::DynamicSample;
use plainsong::prelude::*;
use plainsong::types::{DataRef, DataValue};
use serde::Serialize;
use serde_json::{Map, Value};

/// How samples are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
    Csv,
}

/// Prints samples of one type.
pub(super) struct Printer {
    form: Form,
    /// Paths of the columns of CSV.
    columns: Vec<String>,
    header_is_due: bool,
}

/// A sample as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    source_timestamp: String,
    reception_timestamp: String,
    writer: String,
    instance_state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a DynamicData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Value>,
}

impl Printer {
    pub(super) fn new(form: Form, ty: &DynamicType) -> Self {
        let mut columns = Vec::new();
        if form == Form::Csv {
            add_columns(ty.new_data().root(), &mut String::new(), &mut columns);
        }
        Self { form, columns, header_is_due: form == Form::Csv }
    }

    /// The lines of a sample, and of a header before the first.
    pub(super) fn text_of(&mut self, sample: &DynamicSample) -> String {
        match self.form {
            Form::Text => block(sample),
            Form::Json => line(sample),
            Form::Csv => {
                let header =
                    if std::mem::take(&mut self.header_is_due) { self.header() } else { String::new() };
                header + &self.row(sample)
            }
        }
    }

    fn header(&self) -> String {
        let own = ["source_timestamp", "instance_state"].map(str::to_owned);
        joined(own.into_iter().chain(self.columns.iter().cloned()))
    }

    fn row(&self, sample: &DynamicSample) -> String {
        let keys = if sample.info.valid_data { None } else { Some(key_of(sample.data.root())) };
        let cell = |path: &String| {
            let value = sample.data.get(path).ok().filter(|value| !value.is_absent());
            let is_told = keys.as_ref().is_none_or(|keys| has_path(keys, path));
            value.filter(|_| is_told).map(cell_of).unwrap_or_default()
        };
        let own = [sample.info.source_timestamp.to_string(), state(sample).to_owned()];
        joined(own.into_iter().chain(self.columns.iter().map(cell)))
    }
}

/// Members that are always there have columns of their own; everything else is JSON in one.
fn add_columns(value: DataRef<'_>, path: &mut String, columns: &mut Vec<String>) {
    let start = path.len();
    for (name, member) in value.members() {
        if start > 0 {
            path.push('.');
        }
        path.push_str(name);
        if matches!(member.get(), DataValue::Structure) {
            add_columns(member, path, columns);
        } else {
            columns.push(path.clone());
        }
        path.truncate(start);
    }
    if start == 0 && matches!(value.get(), DataValue::Union) {
        columns.push(String::new());
    }
}

fn cell_of(value: DataRef<'_>) -> String {
    match value.get() {
        DataValue::Text(text) => text.into_owned(),
        DataValue::Enumeration { literal: Some(name), .. } => name.to_owned(),
        _ => json_of(value),
    }
}

/// A row of CSV (RFC 4180), with a line feed alone.
fn joined(cells: impl Iterator<Item = String>) -> String {
    let quoted = cells.map(|cell| {
        if cell.contains(['"', ',', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell
        }
    });
    quoted.collect::<Vec<_>>().join(",") + "\n"
}

fn has_path(keys: &Value, path: &str) -> bool {
    path.split('.').try_fold(keys, |value, name| value.get(name)).is_some()
}

fn state(sample: &DynamicSample) -> &'static str {
    match sample.info.instance_state {
        InstanceState::Alive => "alive",
        InstanceState::NotAliveDisposed => "disposed",
        InstanceState::NotAliveNoWriters => "no_writers",
    }
}

fn json_of(value: impl Serialize) -> String {
    // Values have nothing that JSON has not.
    serde_json::to_string(&value).unwrap_or_default()
}

fn line(sample: &DynamicSample) -> String {
    let info = &sample.info;
    let is_valid = info.valid_data;
    let line = Line {
        source_timestamp: info.source_timestamp.to_string(),
        reception_timestamp: info.reception_timestamp.to_string(),
        writer: Guid::from(info.publication_handle).to_string(),
        instance_state: state(sample),
        data: is_valid.then_some(&sample.data),
        key: (!is_valid).then(|| key_of(sample.data.root())),
    };
    json_of(line) + "\n"
}

/// The key members of a value.
fn key_of(value: DataRef<'_>) -> Value {
    if !matches!(value.get(), DataValue::Structure) {
        return serde_json::to_value(value).unwrap_or_default();
    }
    let members = value.key_members().map(|(name, member)| (name.to_owned(), key_of(member)));
    Value::Object(members.collect::<Map<_, _>>())
}

fn block(sample: &DynamicSample) -> String {
    let mut text = String::new();
    if sample.info.valid_data {
        add_block(sample.data.root(), 0, false, &mut text);
    } else {
        let _ = writeln!(text, "# {}", state(sample));
        add_block(sample.data.root(), 0, true, &mut text);
    }
    text + "---\n"
}

fn add_block(value: DataRef<'_>, depth: usize, only_keys: bool, text: &mut String) {
    let mut member = |name: &str, value: DataRef<'_>| {
        let indent = "  ".repeat(depth);
        match value.get() {
            DataValue::Absent => {}
            DataValue::Structure | DataValue::Union => {
                let _ = writeln!(text, "{indent}{name}:");
                add_block(value, depth + 1, only_keys, text);
            }
            DataValue::Elements(count) if count > 0 && is_of_aggregates(value) => {
                let _ = writeln!(text, "{indent}{name}:");
                for (at, element) in value.elements().enumerate() {
                    let _ = writeln!(text, "{indent}  [{at}]:");
                    add_block(element, depth + 2, false, text);
                }
            }
            DataValue::Enumeration { literal: Some(literal), .. } => {
                let _ = writeln!(text, "{indent}{name}: {literal}");
            }
            _ => {
                let _ = writeln!(text, "{indent}{name}: {}", json_of(value));
            }
        }
    };
    if only_keys {
        value.key_members().for_each(|(name, value)| member(name, value));
    } else {
        value.members().for_each(|(name, value)| member(name, value));
    }
    if let Some(discriminator) = value.discriminator() {
        member("$discriminator", discriminator);
    }
    if let Some((name, selected)) = value.selected() {
        member(name, selected);
    }
}

fn is_of_aggregates(value: DataRef<'_>) -> bool {
    value
        .elements()
        .next()
        .is_some_and(|first| matches!(first.get(), DataValue::Structure | DataValue::Union))
}
