//! A domain in tables, lines and JSON.

use std::collections::BTreeMap;

use plainsong::state::Mismatch;
use serde::Serialize;
use serde_json::{Value, json};

use super::What;
use crate::look::view::{Endpoint, Participant, Topic, Type, View};
use crate::output::{Look, Table, clean, is_for_people, paint, say};

/// What is shown when nothing is asked for.
const USUAL: [What; 3] = [What::Participants, What::Topics, What::Mismatches];

/// Prints what is asked for.
pub(super) fn print(view: &View, what: Option<What>) {
    let for_people = is_for_people();
    let parts = what.map_or_else(|| USUAL.to_vec(), |what| vec![what]);
    for (place, part) in parts.iter().enumerate() {
        let lines = lines(view, *part, for_people);
        if for_people && what.is_none() && !lines.is_empty() {
            if place > 0 {
                say!();
            }
            say!("{}", paint(&title(view, *part), Look::Bold));
        }
        for line in lines {
            // Rows of several parts are told apart by what they begin with.
            if for_people || what.is_some() {
                say!("{line}");
            } else {
                say!("{}\t{line}", word(*part));
            }
        }
    }
    if for_people && view.participants.is_empty() {
        say!("nobody is heard in domain {}; plainsong doctor looks for the reason", view.domain);
    }
    if view.left_out > 0 {
        say!("{} more are left out", view.left_out);
    }
}

fn title(view: &View, part: What) -> String {
    let count =
        |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    match part {
        What::Participants => {
            let participants = count(view.participants.len(), "participant", "participants");
            format!("{participants} in domain {}", view.domain)
        }
        What::Topics => count(view.topics.len(), "topic", "topics"),
        What::Types => count(view.types.len(), "type", "types"),
        What::Endpoints => count(view.endpoints.len(), "endpoint", "endpoints"),
        What::Mismatches => {
            let pairs = count(view.mismatches.len(), "pair that does", "pairs that do");
            format!("{pairs} not match; plainsong doctor says more")
        }
    }
}

/// What a line begins with that does not say it otherwise.
const fn word(part: What) -> &'static str {
    match part {
        What::Participants => "participant",
        What::Topics => "topic",
        What::Types => "type",
        What::Endpoints => "endpoint",
        What::Mismatches => "mismatch",
    }
}

/// The lines of one part: a table, with its heads for people.
fn lines(view: &View, part: What, for_people: bool) -> Vec<String> {
    lines_in(view, part, for_people, true)
}

/// The lines of one part for a screen, without colours.
pub(super) fn rows(view: &View, part: What) -> Vec<String> {
    lines_in(view, part, true, false)
}

fn lines_in(view: &View, part: What, for_people: bool, in_colour: bool) -> Vec<String> {
    let table = match part {
        What::Participants => participants(&view.participants),
        What::Topics => topics(&view.topics),
        What::Types => types(&view.types),
        What::Endpoints => endpoints(&view.endpoints),
        What::Mismatches if for_people => return mismatches_for_people(&view.mismatches),
        What::Mismatches => mismatches(&view.mismatches),
    };
    if table.is_empty() { Vec::new() } else { table.lines(for_people, in_colour) }
}

fn participants(all: &[Participant]) -> Table {
    let columns =
        ["GUID", "NAME", "PROCESS", "HOST", "PRODUCT", "ADDRESS", "ENDPOINTS", "REACHED BY", "USER DATA"];
    let mut table = Table::new(&columns);
    for it in all {
        let executable = it.executable.rsplit(['/', '\\']).next().unwrap_or_default();
        let process =
            if it.process == 0 { executable.to_owned() } else { format!("{executable} {}", it.process) };
        let reached = if it.answers { it.transport.clone() } else { "does not answer".to_owned() };
        let look = if it.answers { Look::Plain } else { Look::Bad };
        let cells = [
            it.guid.to_string(),
            it.name.clone(),
            process.trim().to_owned(),
            it.host.clone(),
            it.product_and_version(),
            it.address.clone().unwrap_or_default(),
            it.endpoints.to_string(),
        ];
        let cells = cells.into_iter().map(|text| (text, Look::Plain));
        table.row(cells.chain([(reached, look), (it.user_data.clone(), Look::Plain)]));
    }
    table
}

fn topics(all: &[Topic]) -> Table {
    let mut table = Table::new(&["TOPIC", "TYPE", "WRITERS", "READERS", "MATCHES", "MISMATCHES"]);
    for it in all {
        let types = it.types.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let counts = [it.writers, it.readers, it.matches].map(|count| (count.to_string(), Look::Plain));
        let mismatches =
            (it.mismatches.to_string(), if it.mismatches > 0 { Look::Warning } else { Look::Plain });
        let names = [it.name.clone(), types].map(|text| (text, Look::Plain));
        table.row(names.into_iter().chain(counts).chain([mismatches]));
    }
    table
}

fn types(all: &[Type]) -> Table {
    let mut table = Table::new(&["TYPE", "ENDPOINTS", "TOPICS", "DEFINITIONS"]);
    for it in all {
        let join = |texts: &mut dyn Iterator<Item = &String>| texts.cloned().collect::<Vec<_>>().join(", ");
        let (topics, hashes) = (join(&mut it.topics.iter()), join(&mut it.hashes.iter()));
        let look = if it.hashes.len() > 1 { Look::Warning } else { Look::Plain };
        let cells = [it.name.clone(), it.endpoints.to_string(), topics].map(|text| (text, Look::Plain));
        table.row(cells.into_iter().chain([(hashes, look)]));
    }
    table
}

fn endpoints(all: &[Endpoint]) -> Table {
    let mut table = Table::new(&[
        "KIND",
        "TOPIC",
        "TYPE",
        "GUID",
        "OF",
        "MATCHES",
        "MISMATCHES",
        "QOS OTHER THAN DEFAULT",
    ]);
    for it in all {
        let mut qos = it.qos_in_words();
        if let Some(filter) = &it.content_filter {
            qos = format!("{qos}{}filter {filter}", if qos.is_empty() { "" } else { ", " });
        }
        let count = it.mismatches.len();
        let look = if count > 0 { Look::Warning } else { Look::Plain };
        let before =
            [it.kind.to_owned(), it.topic.clone(), it.type_name.clone(), it.guid.to_string(), it.of.clone()];
        let before = before.into_iter().chain([it.matches.len().to_string()]);
        let before = before.map(|text| (text, Look::Plain));
        table.row(before.chain([(count.to_string(), look), (qos, Look::Plain)]));
    }
    table
}

fn mismatches(all: &[Mismatch]) -> Table {
    let mut table = Table::new(&["TOPIC", "WRITER", "READER", "IN"]);
    for it in all {
        let subjects = it.differences.iter().map(|it| it.subject.as_ref()).collect::<Vec<_>>().join(", ");
        let (writer, reader) = (it.writer.guid.to_string(), it.reader.guid.to_string());
        table.plain_row([it.topic.clone(), writer, reader, subjects]);
    }
    table
}

fn mismatches_for_people(all: &[Mismatch]) -> Vec<String> {
    let told = all.iter().map(ToString::to_string);
    told.flat_map(|text| text.lines().map(clean).collect::<Vec<_>>()).collect()
}

/// What is asked for, or everything.
pub(super) fn json(view: &View, what: Option<What>) -> String {
    fn of(value: &impl Serialize) -> Value {
        // Nothing of it has keys that are no strings.
        serde_json::to_value(value).unwrap_or_default()
    }
    let mut all = of(view);
    let Some(what) = what else { return all.to_string() };
    let key = key(what);
    json!({ "domain": view.domain, key: all[key].take(), "left_out": view.left_out }).to_string()
}

/// Where a part stands in the JSON.
const fn key(part: What) -> &'static str {
    match part {
        What::Participants => "participants",
        What::Topics => "topics",
        What::Types => "types",
        What::Endpoints => "endpoints",
        What::Mismatches => "mismatches",
    }
}

/// Something that is there: its line for programs, and as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    line: String,
    value: Value,
}

/// What is there, by kind and name.
pub(super) type Items = BTreeMap<(What, String), Item>;

/// The parts that are asked for, or all but types, which follow from endpoints.
pub(super) fn items(view: &View, what: Option<What>) -> Items {
    let usual = vec![What::Participants, What::Topics, What::Endpoints, What::Mismatches];
    let mut items = Items::new();
    for part in what.map_or(usual, |what| vec![what]) {
        let keys: Vec<String> = match part {
            What::Participants => view.participants.iter().map(|it| it.guid.to_string()).collect(),
            What::Topics => view.topics.iter().map(|it| it.name.clone()).collect(),
            What::Types => view.types.iter().map(|it| it.name.clone()).collect(),
            What::Endpoints => view.endpoints.iter().map(|it| it.guid.to_string()).collect(),
            What::Mismatches => {
                view.mismatches.iter().map(|it| format!("{} {}", it.writer.guid, it.reader.guid)).collect()
            }
        };
        let value: Value = serde_json::from_str(&json(view, Some(part))).unwrap_or_default();
        let values = value[key(part)].as_array().cloned().unwrap_or_default();
        for ((name, line), value) in keys.into_iter().zip(lines(view, part, false)).zip(values) {
            items.insert((part, name), Item { line, value });
        }
    }
    items
}

/// A line for each thing that came (`+`), changed (`~`) or went (`-`).
pub(super) fn changes(before: &Items, now: &Items, as_json: bool) -> Vec<String> {
    let line = |sign: &str, part: What, item: &Item| {
        let kind = word(part);
        if as_json {
            return json!({ "change": sign, "kind": kind, kind: item.value }).to_string();
        }
        format!("{sign}\t{kind}\t{}", item.line)
    };
    let gone = before.iter().filter(|(key, _)| !now.contains_key(key)).map(|(key, it)| line("-", key.0, it));
    let come = now.iter().filter_map(|(key, item)| match before.get(key) {
        None => Some(line("+", key.0, item)),
        Some(known) if known.line != item.line => Some(line("~", key.0, item)),
        Some(_) => None,
    });
    gone.chain(come).collect()
}
