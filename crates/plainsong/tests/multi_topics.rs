//! Multi-topics over real sockets on loopback: joins on keys, names, conditions, ends of instances.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::sync::{Arc, Mutex};

use common::{PATIENCE, fresh_domain, participant, until, writer};
use plainsong::Error;
use plainsong::multi_topic::Constituent;
use plainsong::prelude::*;

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Place {
    x: f64,
    z: i32,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Location {
    #[dds(key)]
    flight: u32,
    place: Place,
    z: i32,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Plan {
    #[dds(key)]
    flight: u32,
    #[dds(key)]
    airline: String,
    name: String,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Airline {
    #[dds(key)]
    airline: String,
    country: String,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Flight {
    name: String,
    x: f64,
    height: i32,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Everything {
    flight: u32,
    airline: String,
    name: String,
    country: Option<String>,
    z: i32,
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

fn location(flight: u32, x: f64, z: i32) -> Location {
    Location { flight, place: Place { x, z: -z }, z }
}

fn plan(flight: u32, airline: &str, name: &str) -> Plan {
    Plan { flight, airline: airline.into(), name: name.into() }
}

/// Writers at one side, and the topics at the other.
struct Sky {
    sides: [DomainParticipant; 2],
    locations: DataWriter<Location>,
    plans: DataWriter<Plan>,
    airlines: DataWriter<Airline>,
    topics: (Topic<Location>, Topic<Plan>, Topic<Airline>),
}

impl Sky {
    fn new() -> Self {
        let domain = fresh_domain();
        let sides = [participant(domain), participant(domain)];
        let qos = || QosSet::writer().keep_all();
        Self {
            locations: writer(&sides[0], "Location", qos()),
            plans: writer(&sides[0], "Plan", qos()),
            airlines: writer(&sides[0], "Airline", qos()),
            topics: (
                sides[1].create_topic("Location", QosSet::default()).unwrap(),
                sides[1].create_topic("Plan", QosSet::default()).unwrap(),
                sides[1].create_topic("Airline", QosSet::default()).unwrap(),
            ),
            sides,
        }
    }

    fn all(&self) -> [Constituent; 3] {
        [(&self.topics.0).into(), (&self.topics.1).into(), (&self.topics.2).into()]
    }

    fn two(&self) -> [Constituent; 2] {
        [(&self.topics.0).into(), (&self.topics.1).into()]
    }

    fn multi<T: DdsType>(
        &self,
        expression: &str,
        parameters: &[&str],
        topics: &[Constituent],
    ) -> MultiTopic<T> {
        self.sides[1].create_multi_topic("View", expression, strings(parameters), topics).unwrap()
    }

    fn reader<T: DdsType>(&self, topic: &MultiTopic<T>) -> MultiTopicReader<T> {
        let subscriber = self.sides[1].create_subscriber(QosSet::default()).unwrap();
        let reader = subscriber.create_reader(topic, QosSet::reader().reliable().keep_all()).unwrap();
        until("all of its readers match", || {
            reader.readers().iter().all(|reader| !reader.matched_publications().unwrap().is_empty())
        });
        until("all writers match", || {
            let matched = [
                self.locations.matched_subscriptions().unwrap().len(),
                self.plans.matched_subscriptions().unwrap().len(),
                self.airlines.matched_subscriptions().unwrap().len(),
            ];
            matched.iter().sum::<usize>() == reader.readers().len()
        });
        reader
    }

    fn settle(&self) {
        self.locations.wait_for_acknowledgments(PATIENCE).unwrap();
        self.plans.wait_for_acknowledgments(PATIENCE).unwrap();
        self.airlines.wait_for_acknowledgments(PATIENCE).unwrap();
    }
}

fn data<T>(samples: Vec<Sample<T>>) -> Vec<T> {
    samples.into_iter().filter_map(|sample| sample.data).collect()
}

#[test]
fn two_topics_are_joined_on_their_common_key() {
    let sky = Sky::new();
    let text = "SELECT name, place.x AS x, z AS height FROM Location NATURAL JOIN Plan";
    let reader = sky.reader(&sky.multi::<Flight>(text, &[], &sky.two()));
    sky.locations.write(&location(1, 0.5, 100)).unwrap();
    sky.settle();
    assert!(reader.take().unwrap().is_empty(), "no plan of flight 1 is known");
    sky.plans.write(&plan(1, "LH", "LH 400")).unwrap();
    sky.plans.write(&plan(2, "LH", "LH 402")).unwrap();
    let samples = reader.wait_take(PATIENCE).unwrap();
    assert_eq!(samples[0].info.view_state, ViewState::New);
    assert_eq!(data(samples), [Flight { name: "LH 400".into(), x: 0.5, height: 100 }]);

    sky.locations.write(&location(1, 0.75, 200)).unwrap();
    sky.locations.write(&location(3, 9.0, 300)).unwrap();
    sky.settle();
    let samples = reader.take().unwrap();
    assert_eq!(samples[0].info.view_state, ViewState::NotNew);
    assert_eq!(data(samples), [Flight { name: "LH 400".into(), x: 0.75, height: 200 }]);
    assert_eq!(reader.dropped(), 0);
}

#[test]
fn three_topics_are_joined_through_the_one_in_the_middle_and_filled_by_name() {
    let sky = Sky::new();
    let text = "SELECT * FROM Location INNER NATURAL JOIN (Airline NATURAL JOIN Plan)";
    let reader = sky.reader(&sky.multi::<Everything>(text, &[], &sky.all()));
    for (airline, country) in [("LH", "DE"), ("AF", "FR")] {
        sky.airlines.write(&Airline { airline: airline.into(), country: country.into() }).unwrap();
    }
    sky.plans.write(&plan(1, "LH", "LH 400")).unwrap();
    sky.plans.write(&plan(1, "AF", "AF 7400")).unwrap();
    sky.settle();
    sky.locations.write(&location(1, 0.0, 10)).unwrap();
    sky.settle();
    let mut joined = data(reader.take().unwrap());
    joined.sort_by(|one, other| one.name.cmp(&other.name));
    let expected = |airline: &str, name: &str, country: &str| Everything {
        flight: 1,
        airline: airline.into(),
        name: name.into(),
        country: Some(country.into()),
        z: 10,
    };
    assert_eq!(joined, [expected("AF", "AF 7400", "FR"), expected("LH", "LH 400", "DE")]);
    sky.airlines.write(&Airline { airline: "AF".into(), country: "France".into() }).unwrap();
    sky.settle();
    assert_eq!(data(reader.take().unwrap()), [expected("AF", "AF 7400", "France")]);
}

#[test]
fn where_is_about_the_members_of_the_result_and_its_parameters_change() {
    let sky = Sky::new();
    let text = "SELECT name, place.x AS x, z height FROM 'Location' NATURAL JOIN 'Plan' \
                WHERE height < %0 AND name LIKE 'LH%';";
    let topic = sky.multi::<Flight>(text, &["1000"], &sky.two());
    let reader = sky.reader(&topic);
    sky.plans.write(&plan(1, "LH", "LH 400")).unwrap();
    sky.plans.write(&plan(2, "AF", "AF 7400")).unwrap();
    sky.settle();
    for (flight, z) in [(1, 999), (1, 1000), (2, 5)] {
        sky.locations.write(&location(flight, 0.0, z)).unwrap();
    }
    sky.settle();
    let heights = |samples: Vec<Sample<Flight>>| data(samples).iter().map(|it| it.height).collect::<Vec<_>>();
    assert_eq!(heights(reader.take().unwrap()), [999]);
    topic.set_expression_parameters(strings(&["2000"])).unwrap();
    assert_eq!(topic.expression_parameters(), ["2000"]);
    sky.locations.write(&location(1, 0.0, 1500)).unwrap();
    sky.settle();
    assert_eq!(heights(reader.read().unwrap()), [1500]);
    let samples = reader.take().unwrap();
    assert_eq!(samples[0].info.sample_state, SampleState::Read);
    assert!(topic.set_expression_parameters(strings(&["'x'"])).is_err());
    assert_eq!(topic.expression_parameters(), ["2000"], "nothing changed");
}

#[test]
fn a_combination_ends_with_any_of_its_instances_and_comes_back() {
    let sky = Sky::new();
    let text = "SELECT name, z AS height FROM Location NATURAL JOIN Plan";
    let reader = sky.reader(&sky.multi::<Flight>(text, &[], &sky.two()));
    sky.plans.write(&plan(1, "LH", "LH 400")).unwrap();
    sky.plans.write(&plan(2, "LH", "LH 402")).unwrap();
    sky.locations.write(&location(1, 0.0, 1)).unwrap();
    sky.locations.write(&location(2, 0.0, 2)).unwrap();
    sky.settle();
    let born = reader.take().unwrap();
    assert_eq!(born.len(), 2);
    let first = born.iter().find(|it| it.data.as_ref().unwrap().height == 1).unwrap().info.instance_handle;
    assert_ne!(born[0].info.instance_handle, born[1].info.instance_handle);

    sky.plans.dispose(&plan(1, "LH", "")).unwrap();
    sky.settle();
    let samples = reader.take().unwrap();
    assert_eq!(samples.len(), 1, "the other flight flies on");
    assert_eq!(
        (samples[0].info.instance_handle, samples[0].info.instance_state, samples[0].info.valid_data),
        (first, InstanceState::NotAliveDisposed, false)
    );
    sky.locations.write(&location(1, 0.0, 3)).unwrap();
    sky.settle();
    assert!(reader.take().unwrap().is_empty(), "without a plan there is no flight");
    sky.plans.write(&plan(1, "LH", "LH 400")).unwrap();
    sky.settle();
    let samples = reader.take().unwrap();
    assert_eq!((samples[0].info.view_state, samples[0].data.as_ref().unwrap().height), (ViewState::New, 3));

    sky.locations.unregister_instance(&location(2, 0.0, 0)).unwrap();
    sky.settle();
    let states: Vec<_> = reader.take().unwrap().iter().map(|it| it.info.instance_state).collect();
    assert_eq!(states.len(), 1);
    assert_ne!(states[0], InstanceState::Alive);
}

#[test]
fn history_applies_to_each_combination() {
    let sky = Sky::new();
    let topic = sky.multi::<Flight>("SELECT z AS height FROM Location NATURAL JOIN Plan", &[], &sky.two());
    let subscriber = sky.sides[1].create_subscriber(QosSet::default()).unwrap();
    let reader = subscriber.create_reader(&topic, QosSet::reader().reliable().keep_last(2)).unwrap();
    until("they match", || {
        reader.readers().iter().all(|it| !it.matched_publications().unwrap().is_empty())
            && !sky.locations.matched_subscriptions().unwrap().is_empty()
            && !sky.plans.matched_subscriptions().unwrap().is_empty()
    });
    for flight in [1, 2] {
        sky.plans.write(&plan(flight, "LH", "")).unwrap();
    }
    for z in 1..=5 {
        sky.locations.write(&location(1, 0.0, z)).unwrap();
        sky.locations.write(&location(2, 0.0, 10 * z)).unwrap();
        sky.settle();
        // Nothing waits at the reader of the topic, so that only the history of the result counts.
        until("it is joined", || {
            let waiting = WaitSet::new();
            reader.readers().iter().for_each(|it| waiting.attach(it.read_condition(&ReadOptions::new())));
            waiting.wait(std::time::Duration::ZERO).is_err()
        });
    }
    let samples = reader.take().unwrap();
    assert_eq!(samples.iter().map(|it| it.info.sample_rank).collect::<Vec<_>>(), [1, 1, 0, 0]);
    let heights: Vec<_> = data(samples).iter().map(|it| it.height).collect();
    assert_eq!(heights, [4, 40, 5, 50]);
}

#[test]
fn a_wait_set_wakes_when_something_is_joined() {
    let sky = Sky::new();
    let topic = sky.multi::<Flight>("SELECT name FROM Location NATURAL JOIN Plan", &[], &sky.two());
    let reader = sky.reader(&topic);
    let waiting = WaitSet::new();
    waiting.attach(reader.status_condition(StatusMask::NONE.with(StatusKind::DataAvailable)));
    sky.locations.write(&location(1, 0.0, 1)).unwrap();
    sky.settle();
    assert!(matches!(waiting.wait(std::time::Duration::ZERO), Err(Error::Timeout { .. })));
    sky.plans.write(&plan(1, "LH", "LH 400")).unwrap();
    waiting.wait(PATIENCE).unwrap();
    assert_eq!(reader.take().unwrap().len(), 1);
}

/// Notes what could be taken, each time it is told.
struct Taken(Mutex<Vec<Vec<String>>>);

impl MultiTopicListener<Flight> for Taken {
    fn on_data_available(&self, reader: &MultiTopicReader<Flight>) {
        assert!(reader.status_changes().contains(StatusKind::DataAvailable));
        let names = data(reader.take().unwrap()).into_iter().map(|it| it.name).collect();
        self.0.lock().unwrap().push(names);
    }
}

#[test]
fn a_listener_is_told_once_when_something_is_joined() {
    let sky = Sky::new();
    let topic = sky.multi::<Flight>("SELECT name FROM Location NATURAL JOIN Plan", &[], &sky.two());
    let reader = sky.reader(&topic);
    let taken = Arc::new(Taken(Mutex::default()));
    let data_available = StatusMask::NONE.with(StatusKind::DataAvailable);
    reader.set_listener(Some(taken.clone()), data_available);
    assert!(reader.listener().is_some());
    sky.locations.write(&location(1, 0.0, 1)).unwrap();
    sky.settle();
    sky.plans.write(&plan(1, "LH", "LH 400")).unwrap();
    until("the listener takes the first", || taken.0.lock().unwrap().len() == 1);
    assert!(!reader.status_changes().contains(StatusKind::DataAvailable), "it was taken");
    // What joins with nothing is no news; what was not wanted waits.
    sky.locations.write(&location(2, 0.0, 1)).unwrap();
    sky.settle();
    reader.set_listener(Some(taken.clone()), StatusMask::NONE);
    sky.plans.write(&plan(2, "BA", "BA 12")).unwrap();
    until("the second is there", || reader.status_changes().contains(StatusKind::DataAvailable));
    reader.set_listener(Some(taken.clone()), data_available);
    sky.plans.write(&plan(1, "LH", "LH 401")).unwrap();
    until("the listener takes the rest", || taken.0.lock().unwrap().len() == 2);
    assert_eq!(*taken.0.lock().unwrap(), [vec!["LH 400"], vec!["BA 12", "LH 401"]]);
}

#[test]
fn wrong_expressions_are_refused_when_they_are_made() {
    let sky = Sky::new();
    let refusal = |expression: &str, topics: &[Constituent]| {
        let made = sky.sides[1].create_multi_topic::<Flight>("View", expression, Vec::new(), topics);
        let Err(Error::BadParameter(cause)) = made else { panic!("{expression} is taken") };
        cause.to_string()
    };
    let (two, all) = (sky.two(), sky.all());
    for (expression, topics, expected) in [
        ("SELECT name FROM Location JOIN Plan", &two[..], "at column 27: expected NATURAL JOIN"),
        ("SELECT name FROM Location NATURAL JOIN Nowhere", &two, "topic 'Nowhere', which was not given"),
        ("SELECT name FROM Location NATURAL JOIN Location", &two, "names topic 'Location' twice"),
        ("SELECT name FROM Location", &two, "topic 'Plan' is given, but FROM does not name it"),
        (
            "SELECT speed AS x FROM Location NATURAL JOIN Plan",
            &two,
            "no topic of Location, Plan has a member 'speed'",
        ),
        (
            "SELECT name AS x FROM Location NATURAL JOIN Plan",
            &two,
            "'name' is a string, but 'x' of Flight is a floating",
        ),
        ("SELECT z AS depth FROM Location NATURAL JOIN Plan", &two, "Flight has no member 'depth'"),
        ("SELECT * FROM Location NATURAL JOIN Plan", &two, "no topic of Location, Plan has a member 'x'"),
        (
            "SELECT name FROM Plan WHERE flight = 1",
            &all[1..2],
            "at column 29: the type Flight has no member 'flight'",
        ),
        ("SELECT name FROM Plan WHERE name = %0", &all[1..2], "%0 has no value"),
    ] {
        let message = refusal(expression, topics);
        assert!(message.contains(expected), "{expression}: {message}");
    }
    let apart = [all[0].clone(), all[2].clone()];
    let message = refusal("SELECT country AS name FROM Location NATURAL JOIN Airline", &apart);
    assert!(message.contains("'Location' and 'Airline' have no key member of the same name"), "{message}");
    let foreign = participant(fresh_domain());
    let made = foreign.create_multi_topic::<Flight>("View", "SELECT name FROM Plan", Vec::new(), &all[1..2]);
    assert!(matches!(made, Err(Error::BadParameter(_))));
}

#[test]
fn deleting_the_readers_of_a_multi_topic_ends_who_waits_to_take_from_it() {
    let sky = Sky::new();
    let text = "SELECT name, place.x AS x, z AS height FROM Location NATURAL JOIN Plan";
    let reader = sky.reader(&sky.multi::<Flight>(text, &[], &sky.two()));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| reader.wait_take(PATIENCE));
        std::thread::sleep(std::time::Duration::from_millis(20));
        reader.readers().iter().for_each(|it| it.subscriber().delete_reader(it).unwrap());
        assert!(matches!(waiting.join().unwrap(), Err(Error::AlreadyDeleted(_))));
    });
}

/// Larger than what a stack has room for several times.
#[derive(DdsType)]
#[repr(C)]
struct Radar {
    #[dds(key)]
    flight: u32,
    strength: u32,
    echoes: [u64; 1 << 17],
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Seen {
    strength: u32,
    z: i32,
}

#[test]
fn topics_of_large_values_are_joined_where_there_is_room_for_them() {
    let sky = Sky::new();
    let radars: DataWriter<Radar> = writer(&sky.sides[0], "Radar", QosSet::writer().keep_all());
    let topic = sky.sides[1].create_topic::<Radar>("Radar", QosSet::default()).unwrap();
    let topics = [(&topic).into(), (&sky.topics.0).into()];
    let expression = "SELECT strength, z FROM Radar NATURAL JOIN Location";
    let seen: MultiTopic<Seen> =
        sky.sides[1].create_multi_topic("Seen", expression, Vec::new(), &topics).unwrap();
    let subscriber = sky.sides[1].create_subscriber(QosSet::default()).unwrap();
    let reader = subscriber.create_reader(&seen, QosSet::reader().reliable().keep_all()).unwrap();
    until("all match", || {
        let of_locations = sky.locations.matched_subscriptions().unwrap().len();
        of_locations + radars.matched_subscriptions().unwrap().len() == 2
    });
    sky.locations.write(&location(7, 1.0, 3)).unwrap();
    let mut radar = radars.loan().unwrap();
    (radar.flight, radar.strength) = (7, 9);
    radar.write().unwrap();
    let joined = reader.wait_take(PATIENCE).unwrap();
    assert_eq!(joined[0].data, Some(Seen { strength: 9, z: 3 }));
}
