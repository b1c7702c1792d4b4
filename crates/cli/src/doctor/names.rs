//! Topics whose names differ in little: probably one was meant.

use std::collections::BTreeMap;

use super::codes::{self, Code, Severity};
use super::{Patient, report::Report};
use crate::look::view::Topic;

/// What ROS 2 puts before the names of topics, requests, replies and services.
const ROS_PREFIXES: [&str; 4] = ["rt/", "rq/", "rr/", "rs/"];
/// Topics of one meaning that are compared with each other: somebody may make many.
const ALIKE_MAX: usize = 50;

pub(super) fn check(patient: &Patient<'_>, report: &mut Report) {
    let mut alike: BTreeMap<String, Vec<&Topic>> = BTreeMap::new();
    for topic in &patient.view.topics {
        let topics = alike.entry(meaning(&topic.name)).or_default();
        if topics.len() < ALIKE_MAX {
            topics.push(topic);
        }
    }
    for topics in alike.values() {
        for (place, one) in topics.iter().enumerate() {
            for other in &topics[place + 1..] {
                compare(one, other, report);
            }
        }
    }
}

fn compare(one: &Topic, other: &Topic, report: &mut Report) {
    let meet = |one: &Topic, other: &Topic| one.writers > 0 && other.readers > 0;
    let lacks = |topic: &Topic| topic.writers == 0 || topic.readers == 0;
    if !meet(one, other) && !meet(other, one) {
        return;
    }
    let severity = if lacks(one) || lacks(other) { Severity::Warning } else { Severity::Note };
    let sides = |topic: &Topic| {
        let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        format!(
            "{:?} has {} and {}",
            topic.name,
            count(topic.writers, "writer"),
            count(topic.readers, "reader")
        )
    };
    let what = format!("{}, {}: these are two topics", sides(one), sides(other));
    let entity = format!("topics {:?} and {:?}", one.name, other.name);
    report.find(difference(&one.name, &other.name), severity, entity, what, None);
}

/// The least that must be changed for two names to be one.
fn difference(one: &str, other: &str) -> &'static Code {
    let without_slash = |name: &str| name.trim_start_matches('/').to_owned();
    if without_slash(one) == without_slash(other) {
        codes::TOPIC_SLASH
    } else if without_prefix(one) == without_prefix(other) {
        codes::TOPIC_ROS_PREFIX
    } else if without_slash(one).to_lowercase() == without_slash(other).to_lowercase() {
        codes::TOPIC_CASE
    } else {
        codes::TOPIC_ROS_PREFIX
    }
}

/// A name without slash and without the prefix of ROS.
fn without_prefix(name: &str) -> &str {
    let prefix = ROS_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    prefix.unwrap_or(name).trim_start_matches('/')
}

/// What names have in common that may have been meant alike.
fn meaning(name: &str) -> String {
    without_prefix(name.trim_start_matches('/')).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_little_have_one_meaning() {
        for (one, other, code) in [
            ("chatter", "rt/chatter", "topic-ros-prefix"),
            ("/chatter", "rt/chatter", "topic-ros-prefix"),
            ("rt/Chatter", "chatter", "topic-ros-prefix"),
            ("/chatter", "chatter", "topic-slash"),
            ("Chatter", "chatter", "topic-case"),
            ("rt/a/B", "rt/a/b", "topic-case"),
        ] {
            assert_eq!(meaning(one), meaning(other), "{one} {other}");
            assert_eq!(difference(one, other).name, code, "{one} {other}");
        }
        assert_ne!(meaning("a/b"), meaning("ab"));
        assert_ne!(meaning("rtchatter"), meaning("chatter"));
    }

    #[test]
    fn only_topics_that_would_complete_each_other_are_told() {
        let topic =
            |name: &str, writers, readers| Topic { name: name.into(), writers, readers, ..Topic::default() };
        let found = |one: &Topic, other: &Topic| {
            let mut report = Report::default();
            compare(one, other, &mut report);
            report.findings.first().map(|it| it.severity)
        };
        assert_eq!(found(&topic("A", 1, 0), &topic("a", 0, 2)), Some(Severity::Warning));
        assert_eq!(found(&topic("A", 1, 0), &topic("a", 1, 0)), None);
        assert_eq!(found(&topic("A", 1, 1), &topic("a", 1, 1)), Some(Severity::Note));
        assert_eq!(found(&topic("A", 0, 1), &topic("a", 1, 1)), Some(Severity::Warning));
    }
}
