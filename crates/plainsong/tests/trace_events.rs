//! What a subscriber of `tracing` hears: entities, matches, what does not match and why; nothing of samples.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use common::{PATIENCE, Point, fresh_domain, participant, reader, until, writer};
use plainsong::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Keeps each event as a line.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "plainsong"
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Lines {
    fn has(&self, parts: &[&str]) -> bool {
        self.0.lock().unwrap().iter().any(|line| parts.iter().all(|part| line.contains(part)))
    }
}

#[test]
fn entities_matches_and_what_does_not_match_are_told_and_no_sample_is() {
    let lines = Lines::default();
    tracing::subscriber::set_global_default(lines.clone()).unwrap();
    let domain = fresh_domain();
    let [here, there] = [participant(domain), participant(domain)];
    let writing = writer::<Point>(&here, "Traced", QosSet::writer().keep_all());
    let reading = reader::<Point>(&there, "Traced", QosSet::reader().reliable().keep_all());
    let guid = |guid: Guid| guid.to_string();
    assert!(lines.has(&["INFO", "participant created", &guid(here.guid())]));
    let created = ["INFO", "writer created", &guid(writing.guid()), "Traced", "RELIABILITY RELIABLE"];
    assert!(lines.has(&created));
    assert!(lines.has(&["INFO", "reader created", &guid(reading.guid())]));
    until("each discovers the other", || {
        [&here, &there].iter().all(|it| lines.has(&["participant discovered", &guid(it.guid())]))
    });
    until("the writer matches", || lines.has(&["matches changed", &guid(writing.guid()), "matches=1"]));
    until("the reader matches", || lines.has(&["matches changed", &guid(reading.guid()), "matches=1"]));

    let told = lines.0.lock().unwrap().len();
    for _ in 0..100 {
        writing.write(&Point::default()).unwrap();
    }
    writing.wait_for_acknowledgments(PATIENCE).unwrap();
    assert!(!reading.wait_take(PATIENCE).unwrap().is_empty());
    let since = lines.0.lock().unwrap()[told..].to_vec();
    assert!(since.is_empty(), "{since:?}");

    let _offering = writer::<Point>(&here, "Qos", QosSet::writer().best_effort());
    let _asking = reader::<Point>(&there, "Qos", QosSet::reader().reliable());
    until("what does not match is told, and why", || {
        lines.has(&["WARN", "not matched", "RELIABILITY", "BEST_EFFORT"])
    });

    let deleted = guid(reading.guid());
    drop(reading);
    assert!(lines.has(&["reader deleted", &deleted]));
    until("the writer has no match", || lines.has(&["matches changed", &guid(writing.guid()), "matches=0"]));
    let left = guid(there.guid());
    there.delete_contained_entities().unwrap();
    drop((_asking, there));
    until("it is gone", || lines.has(&["participant lost", &left]));
}
