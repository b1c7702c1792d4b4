//! The state of a participant as JSON: it is read as it was written.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Point, fresh_domain, participant, reader, until, writer};
use plainsong::prelude::*;

#[test]
fn a_snapshot_is_read_from_json_as_it_was_written() {
    let domain = fresh_domain();
    let [here, there] = [participant(domain), participant(domain)];
    let matched = writer::<Point>(&here, "Matched", QosSet::writer().keep_all());
    let reading = reader::<Point>(&there, "Matched", QosSet::reader().reliable());
    let _offering = writer::<Point>(&here, "Qos", QosSet::writer().best_effort());
    let _asking = reader::<Point>(&there, "Qos", QosSet::reader().reliable());
    until("a pair matches", || !matched.matched_subscriptions().unwrap().is_empty());
    until("a pair does not", || here.state().unwrap().mismatches.items.len() == 1);
    matched.write(&Point::default()).unwrap();

    let state = here.state().unwrap();
    let json = serde_json::to_value(&state).unwrap();
    assert_eq!(json["guid"], here.guid().to_string());
    let writers = json["writers"]["items"].as_array().unwrap();
    let writer = writers.iter().find(|it| it["topic"] == "Matched").unwrap();
    assert_eq!(writer["qos"]["history"]["kind"], "KeepAll");
    assert_eq!(writer["qos"]["deadline"], serde_json::Value::Null, "without end");
    assert_eq!(writer["routes"][0]["readers"][0]["guid"], reading.guid().to_string());
    assert_eq!(json["mismatches"]["items"][0]["differences"][0]["subject"], "RELIABILITY");

    let text = serde_json::to_string_pretty(&state).unwrap();
    assert_eq!(serde_json::from_str::<ParticipantState>(&text).unwrap(), state);
}

#[test]
fn a_qos_is_read_from_a_part_and_what_is_no_policy_is_named() {
    let read = serde_json::from_str::<QosSet>;
    assert_eq!(read("{}").unwrap(), QosSet::default());
    let text = r#"{"reliability": {"kind": "Reliable"}, "deadline": 20000000, "resource_limits": {"max_samples": 7}}"#;
    let limits = ResourceLimits { max_samples: 7, ..ResourceLimits::default() };
    let expected = QosSet::default().reliable().deadline(Duration::from_millis(20)).resource_limits(limits);
    assert_eq!(read(text).unwrap(), expected);
    for (wrong, name) in [
        (r#"{"deadlin": 1}"#, "`deadlin`"),
        (r#"{"history": {"dept": 3}}"#, "`dept`"),
        (r#"{"durability": "Sometimes"}"#, "`Sometimes`"),
    ] {
        let error = read(wrong).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn statuses_and_sample_infos_are_read_from_json_as_they_were_written() {
    fn same<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(
        value: &T,
    ) -> String {
        let json = serde_json::to_string(value).unwrap();
        assert_eq!(serde_json::from_str::<T>(&json).unwrap(), *value);
        json
    }
    let domain = fresh_domain();
    let here = participant(domain);
    let writer = writer::<Point>(&here, "Statuses", QosSet::writer());
    let reader = reader::<Point>(&here, "Statuses", QosSet::reader().reliable());
    until("they match", || !writer.matched_subscriptions().unwrap().is_empty());
    let matched = same(&writer.publication_matched_status().unwrap());
    assert!(matched.contains(&reader.instance_handle().to_string()), "{matched}");
    same(&reader.liveliness_changed_status().unwrap());
    same(&reader.sample_rejected_status().unwrap());
    same(&reader.sample_lost_status().unwrap());
    same(&reader.requested_deadline_missed_status().unwrap());
    same(&reader.requested_incompatible_qos_status().unwrap());
    assert_eq!(same(&StatusKind::SampleLost), "\"SampleLost\"");
    same(&StatusMask::ALL);
    assert_eq!(same(&PolicyId::TimeBasedFilter), "\"TimeBasedFilter\"");
    writer.write(&Point::default()).unwrap();
    same(&reader.wait_take(common::PATIENCE).unwrap()[0].info);
}
