//! Rates in tables, lines and JSON.

use serde_json::json;

use super::rates::{ParticipantRates, TopicRates};
use crate::look::view::Participant;
use crate::output::{Look, Table, counted, is_for_people, paint};
use crate::screen::Page;

/// Reasons for drops of a participant that are shown; the JSON has all.
const REASONS_SHOWN: usize = 3;

/// What there is to show.
pub(super) struct Picture {
    pub(super) topics: Vec<TopicRates>,
    pub(super) participants: Vec<ParticipantRates>,
    /// Those that tell nothing.
    pub(super) silent: Vec<Participant>,
}

/// The page of a screen.
pub(super) fn page(domain: u16, picture: &Picture) -> Page {
    let mut lines = Vec::new();
    for table in [topics(&picture.topics), participants(&picture.participants)] {
        let rows = table.lines(true, false).into_iter().enumerate();
        lines.extend(rows.map(|(place, row)| (row, place == 0)));
        lines.push((String::new(), false));
    }
    lines.extend(silent(picture).map(|line| (line, false)));
    Page { title: format!(" domain {domain}: {} ", counted(picture.topics.len() as u64, "topic")), lines }
}

/// Tables for people; for programs lines, which begin with what they are of.
pub(super) fn text(picture: &Picture) -> String {
    let mut text = String::new();
    let tables = [("topic", topics(&picture.topics)), ("participant", participants(&picture.participants))];
    for (kind, table) in tables {
        for line in table.lines(is_for_people(), true) {
            text += &if is_for_people() { format!("{line}\n") } else { format!("{kind}\t{line}\n") };
        }
        if is_for_people() {
            text += "\n";
        }
    }
    for line in silent(picture) {
        text += &format!("{}\n", paint(&line, Look::Warning));
    }
    text
}

/// One object in one line.
pub(super) fn json(domain: u16, picture: &Picture) -> String {
    let Picture { topics, participants, silent } = picture;
    format!(
        "{}\n",
        json!({ "domain": domain, "topics": topics, "participants": participants, "silent": silent })
    )
}

fn topics(topics: &[TopicRates]) -> Table {
    let mut table = Table::new(&[
        "TOPIC",
        "TYPE",
        "WRITERS",
        "READERS",
        "WRITTEN/S",
        "BYTES/S",
        "RECEIVED/S",
        "RESENT/S",
        "BEHIND",
        "LOST",
        "P50",
        "P99",
    ]);
    for topic in topics {
        let bad = if topic.lost + topic.rejected > 0 { Look::Bad } else { Look::Plain };
        let late = if topic.behind > 0 { Look::Warning } else { Look::Plain };
        let plain = |text: String| (text, Look::Plain);
        table.row([
            (topic.name.clone(), Look::Bold),
            plain(topic.type_name.clone()),
            plain(topic.writers.to_string()),
            plain(topic.readers.to_string()),
            plain(number(topic.written_per_s)),
            plain(bytes(topic.written_bytes_per_s)),
            plain(number(topic.received_per_s)),
            plain(number(topic.resent_per_s)),
            (topic.behind.to_string(), late),
            ((topic.lost + topic.rejected).to_string(), bad),
            plain(time(topic.latency_p50_ns)),
            plain(time(topic.latency_p99_ns)),
        ]);
    }
    table
}

fn participants(participants: &[ParticipantRates]) -> Table {
    let columns =
        ["PARTICIPANT", "HOST", "PROCESS", "CPU", "MEMORY", "WRITTEN/S", "RECEIVED/S", "LOST", "DROPPED"];
    let mut table = Table::new(&columns);
    for it in participants {
        let name = if it.name.is_empty() { &it.guid } else { &it.name };
        let mut drops: Vec<_> = it.drops.iter().collect();
        drops.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let reasons = drops.iter().take(REASONS_SHOWN).map(|(reason, count)| format!("{reason} {count}"));
        table.plain_row([
            name.clone(),
            it.host.clone(),
            it.process.to_string(),
            it.cpu_percent.map(|percent| format!("{percent:.0}%")).unwrap_or_default(),
            bytes(Some(it.memory_bytes as f64).filter(|bytes| *bytes > 0.0)),
            number(it.written_per_s),
            number(it.received_per_s),
            it.lost.to_string(),
            reasons.collect::<Vec<_>>().join(", "),
        ]);
    }
    table
}

fn silent(picture: &Picture) -> impl Iterator<Item = String> + '_ {
    picture.silent.iter().map(|it| {
        let name = if it.name.is_empty() { it.guid.to_string() } else { it.name.clone() };
        crate::output::clean(&format!("{name} ({}) tells nothing of what it counts", it.product))
    })
}

fn number(rate: Option<f64>) -> String {
    rate.map(|rate| if rate < 10.0 { format!("{rate:.1}") } else { format!("{rate:.0}") }).unwrap_or_default()
}

fn bytes(count: Option<f64>) -> String {
    let Some(count) = count else { return String::new() };
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let unit = units.into_iter().find(|(unit, _)| count >= *unit);
    unit.map_or_else(|| format!("{count:.0} B"), |(unit, name)| format!("{:.1} {name}", count / unit))
}

/// The end of a power of two: `<` says that it is no more than that.
fn time(nanos: Option<u64>) -> String {
    let Some(nanos) = nanos else { return String::new() };
    let nanos = nanos as f64;
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let unit = units.into_iter().find(|(unit, _)| nanos >= *unit);
    unit.map_or_else(|| format!("<{nanos:.0} ns"), |(unit, name)| format!("<{:.1} {name}", nanos / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!([bytes(Some(12.0)), bytes(Some(4.2e6)), bytes(None)], ["12 B", "4.2 MB", ""]);
        assert_eq!([time(Some(1_024)), time(Some(1 << 21)), time(None)], ["<1.0 us", "<2.1 ms", ""]);
        assert_eq!([number(Some(1.25)), number(Some(1_234.5)), number(None)], ["1.2", "1234", ""]);
    }
}
