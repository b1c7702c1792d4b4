//! Pairs of a writer and a reader that do not match, readers that receive nothing, and who is alone.

use std::collections::BTreeMap;

use plainsong::prelude::Guid;

use super::codes::{self, Severity};
use super::{Patient, report::Report};
use crate::look::view::{Endpoint, Topic};

pub(super) fn check(patient: &Patient<'_>, report: &mut Report) {
    let view = &patient.view;
    let endpoints: BTreeMap<Guid, &Endpoint> = view.endpoints.iter().map(|it| (it.guid, it)).collect();
    let topics: BTreeMap<&str, &Topic> = view.topics.iter().map(|it| (it.name.as_str(), it)).collect();
    let named = |guid: Guid, kind: &str| {
        let of = endpoints.get(&guid).map_or("", |endpoint| endpoint.of.as_str());
        format!("{kind} {guid} of {of}")
    };
    let is_starved = |reader: Guid| {
        endpoints.get(&reader).is_some_and(|it| it.matches.is_empty() && it.undecided.is_empty())
    };
    report.check("pairs", format!("{} that do not match", view.mismatches.len()));
    for mismatch in &view.mismatches {
        let (writer, reader) = (mismatch.writer.guid, mismatch.reader.guid);
        let entity = format!(
            "topic {:?}: {} and {}",
            mismatch.topic,
            named(writer, "writer"),
            named(reader, "reader")
        );
        for difference in &mismatch.differences {
            let code = codes::of_subject(&difference.subject);
            // Partitions are meant to keep apart; who has no other writer may have meant another one.
            let severity = match (is_starved(reader), code.severity) {
                (true, Severity::Note) => Severity::Warning,
                (true, _) => Severity::Error,
                (false, severity) => severity,
            };
            let subject = &difference.subject;
            let note =
                if difference.note.is_empty() { String::new() } else { format!(" ({})", difference.note) };
            let what = format!(
                "{subject}: the writer has {}, the reader wants {}{note}",
                difference.writer, difference.reader
            );
            report.find(code, severity, &entity, what, Some(difference.cure.clone()));
        }
    }
    for endpoint in &view.endpoints {
        let Some(topic) = topics.get(endpoint.topic.as_str()) else { continue };
        let entity = format!("topic {:?}: {}", endpoint.topic, named(endpoint.guid, endpoint.kind));
        match (endpoint.is_writer(), topic.writers, topic.readers) {
            (false, 0, _) => {
                let what = "the topic has no writer";
                report.find(codes::READER_ALONE, Severity::Note, entity, what, None);
            }
            (true, _, 0) => {
                let what = "the topic has no reader";
                report.find(codes::WRITER_ALONE, Severity::Note, entity, what, None);
            }
            (false, writers, _) if is_starved(endpoint.guid) => {
                let what = match writers {
                    1 => "it receives nothing: it does not match the one writer of its topic".to_owned(),
                    _ => format!("it receives nothing: none of the {writers} writers of its topic matches"),
                };
                report.find(codes::READER_STARVED, Severity::Error, entity, what, None);
            }
            _ => {}
        }
    }
}
