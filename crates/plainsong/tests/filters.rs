//! Content-filtered topics and query conditions over real sockets on loopback.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::error::Error as _;
use std::time::Duration;

use common::{PATIENCE, Pair, Point, fresh_domain, participant, reader, until, writer};
use plainsong::drops::DropReason;
use plainsong::prelude::*;
use plainsong::types::FilterError;
use plainsong::{BadParameter, Error};

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

fn point(id: u32, x: f64) -> Point {
    Point { id, x, y: 0.0 }
}

fn xs(samples: Vec<Sample<Point>>) -> Vec<f64> {
    samples.into_iter().filter_map(|sample| sample.data).map(|point| point.x).collect()
}

#[test]
fn a_reader_of_a_content_filtered_topic_gets_what_the_filter_wants() {
    let domain = fresh_domain();
    let sides = [participant(domain), participant(domain)];
    let writer = writer::<Point>(&sides[0], "Points", QosSet::writer().keep_all());
    let topic = sides[1].create_topic::<Point>("Points", QosSet::default()).unwrap();
    let filtered = sides[1]
        .create_content_filtered_topic("Near", &topic, "x < %0 AND id <> %1", strings(&["10", "3"]))
        .unwrap();
    assert_eq!((filtered.name(), filtered.related_topic().name()), ("Near", "Points"));
    assert_eq!(filtered.filter_expression(), "x < %0 AND id <> %1");
    let subscriber = sides[1].create_subscriber(QosSet::default()).unwrap();
    // Only what is wanted counts for the history.
    let reader = subscriber.create_reader(&filtered, QosSet::reader().reliable().keep_last(2)).unwrap();
    until("the reader matches", || !writer.matched_subscriptions().unwrap().is_empty());

    for (id, x) in [(1, 1.0), (1, 20.0), (3, 2.0), (1, 3.0), (1, 30.0), (1, 40.0)] {
        writer.write(&point(id, x)).unwrap();
    }
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    assert_eq!(xs(reader.take().unwrap()), [1.0, 3.0]);

    filtered.set_expression_parameters(strings(&["35", "4"])).unwrap();
    assert_eq!(filtered.expression_parameters(), ["35", "4"]);
    until("the writer's side hears of the new parameters", || {
        let remote = sides[0].state().unwrap().remote_endpoints.items;
        let announced = remote.into_iter().find(|it| it.guid == reader.guid());
        announced.and_then(|it| it.content_filter).is_some_and(|filter| {
            filter.parameters == ["35", "4"]
                && filter.expression == "x < %0 AND id <> %1"
                && (filter.topic_name.as_str(), filter.related_topic_name.as_str()) == ("Near", "Points")
        })
    });
    until("the writer filters by the new parameters", || {
        writer.write(&point(9, 30.0)).unwrap();
        !reader.take().unwrap().is_empty()
    });
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    reader.take().unwrap();
    for (id, x) in [(3, 30.0), (4, 1.0), (1, 40.0)] {
        writer.write(&point(id, x)).unwrap();
    }
    writer.dispose(&point(4, 0.0)).unwrap();
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    let samples = reader.take().unwrap();
    assert!(samples.iter().all(|sample| sample.info.valid_data), "instance 4 was never known");
    assert_eq!(xs(samples), [30.0]);
    assert_eq!(sides[1].drops().get(DropReason::ContentFilter), 0, "the writer sent nothing in vain");
}

#[test]
fn a_writer_of_the_same_participant_is_filtered_too() {
    let alone = participant(fresh_domain());
    let topic = alone.create_topic::<Point>("Own", QosSet::default()).unwrap();
    let filtered =
        alone.create_content_filtered_topic("Odd", &topic, "id = 1 OR id = 3", Vec::new()).unwrap();
    let subscriber = alone.create_subscriber(QosSet::default()).unwrap();
    let reader = subscriber.create_reader(&filtered, QosSet::reader().reliable().keep_all()).unwrap();
    let writer = writer::<Point>(&alone, "Own", QosSet::writer().keep_all());
    until("they match", || !writer.matched_subscriptions().unwrap().is_empty());
    for id in 0..5 {
        writer.write(&point(id, f64::from(id))).unwrap();
    }
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    let mut found = xs(reader.take().unwrap());
    found.sort_by(f64::total_cmp);
    assert_eq!(found, [1.0, 3.0]);
}

#[test]
fn wrong_filters_are_refused_when_they_are_made() {
    let alone = participant(fresh_domain());
    let topic = alone.create_topic::<Point>("Refusals", QosSet::default()).unwrap();
    let refusal = |expression: &str, parameters: &[&str]| {
        let made = alone.create_content_filtered_topic("F", &topic, expression, strings(parameters));
        let Err(error) = made else { panic!("{expression} is taken") };
        assert!(matches!(error, Error::BadParameter(BadParameter::Expression { .. })), "{error}");
        assert!(error.source().is_some_and(|source| source.is::<FilterError>()), "{error}");
        error.to_string()
    };
    let message = refusal("id = 1 AND z > 0", &[]);
    for part in ["'F'", "\"id = 1 AND z > 0\"", "at column 12", "Point has no member 'z'", "id, x, y"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(refusal("x = 'far'", &[]).contains("expected a number"));
    let message = refusal("x = %0", &[]);
    for part in ["at column 5", "%0 has no value: no parameters are given; it needs 1"] {
        assert!(message.contains(part), "{message}");
    }
    let message = refusal("x = %2", &["1", "2"]);
    assert!(message.contains("%2 has no value: 2 parameters are given, %0 to %1; it needs 3"), "{message}");
    let message = refusal("x = %x", &[]);
    assert!(message.contains("at column 5: '%' is no parameter"), "{message}");
    assert!(refusal("", &[]).contains("needs a condition"));

    let filtered = alone.create_content_filtered_topic("F", &topic, "x > %0", strings(&["1"])).unwrap();
    assert!(matches!(filtered.set_expression_parameters(strings(&["'1'"])), Err(Error::BadParameter(_))));
    assert_eq!(filtered.expression_parameters(), ["1"], "nothing changed");
    assert!(alone.create_content_filtered_topic("", &topic, "x > 1", Vec::new()).is_err());
    let other = participant(fresh_domain());
    let foreign = other.create_content_filtered_topic("F", &topic, "x > 1", Vec::new());
    assert!(matches!(foreign, Err(Error::PreconditionNotMet(_))));
}

#[test]
fn a_query_condition_waits_for_content() {
    let pair = Pair::<Point>::new(QosSet::writer().keep_all(), QosSet::reader().reliable().keep_all());
    let unread = ReadOptions::new().sample_states([SampleState::NotRead]);
    let query = pair.reader.query_condition(&unread, "x > %0 ORDER BY x", strings(&["10"])).unwrap();
    let waiting = WaitSet::new();
    waiting.attach(query.condition());
    pair.writer.write(&point(1, 5.0)).unwrap();
    pair.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    assert!(!query.condition().trigger_value());
    assert!(matches!(waiting.wait(Duration::ZERO), Err(Error::Timeout { .. })));

    for (id, x) in [(1, 30.0), (2, 20.0), (2, 8.0), (3, 40.0)] {
        pair.writer.write(&point(id, x)).unwrap();
    }
    assert_eq!(waiting.wait(PATIENCE).unwrap().len(), 1);
    pair.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    assert_eq!(
        xs(pair.reader.read_with(&ReadOptions::new().condition(&query)).unwrap()),
        [20.0, 30.0, 40.0],
        "in the order of ORDER BY"
    );
    assert!(!query.condition().trigger_value(), "what it wants was read");

    query.set_query_parameters(strings(&["6"])).unwrap();
    assert_eq!(query.query_parameters(), ["6"]);
    assert!(query.condition().trigger_value());
    assert_eq!(
        xs(pair.reader.take_with(&ReadOptions::new().condition(&query)).unwrap()),
        [8.0],
        "the only one that is unread"
    );
    assert!(query.set_query_parameters(Vec::new()).is_err());
    assert_eq!(pair.reader.take().unwrap().len(), 4, "the others are still there");
    assert!(pair.reader.query_condition(&unread, "x >", Vec::new()).is_err());
    assert_eq!(pair.reader.query_condition(&unread, "", Vec::new()).unwrap().query_expression(), "");
}

#[test]
fn other_readers_of_the_topic_get_everything() {
    let domain = fresh_domain();
    let sides = [participant(domain), participant(domain)];
    let writer = writer::<Point>(&sides[0], "Shared", QosSet::writer().keep_all());
    let all = reader::<Point>(&sides[1], "Shared", QosSet::reader().reliable().keep_all());
    let topic = sides[1].create_topic::<Point>("Shared", QosSet::default()).unwrap();
    let filtered = sides[1].create_content_filtered_topic("Few", &topic, "x = 3", Vec::new()).unwrap();
    let subscriber = sides[1].create_subscriber(QosSet::default()).unwrap();
    let few = subscriber.create_reader(&filtered, QosSet::reader().reliable().keep_all()).unwrap();
    until("both match", || writer.matched_subscriptions().unwrap().len() == 2);
    for x in 0..6 {
        writer.write(&point(1, f64::from(x))).unwrap();
    }
    writer.wait_for_acknowledgments(PATIENCE).unwrap();
    assert_eq!(all.take().unwrap().len(), 6);
    assert_eq!(xs(few.take().unwrap()), [3.0]);
}
