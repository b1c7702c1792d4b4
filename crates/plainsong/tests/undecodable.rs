//! Samples that do not decode: each is discarded by itself, counted once and told, and hides none of the
//! others.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use common::{PATIENCE, fresh_domain, participant, reader, until, untold_topic, untold_writer};
use plainsong::cdr::Malformed;
use plainsong::prelude::*;
use plainsong::qos::Presentation;

/// What the reader knows.
#[derive(Clone, Copy, Debug, PartialEq, DdsType)]
enum Color {
    Red,
    Green,
}

/// What a newer writer has.
#[derive(Clone, Copy, Debug, PartialEq, DdsType)]
#[dds(name = "Color")]
enum NewerColor {
    Red,
    Green,
    Blue,
}

#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(name = "Dot", appendable)]
struct Dot {
    #[dds(key)]
    id: u32,
    number: u32,
    color: Color,
    #[dds(bound = 4)]
    name: String,
}

/// Others are not told its members.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(name = "Dot", appendable)]
struct NewerDot {
    #[dds(key)]
    id: u32,
    number: u32,
    color: NewerColor,
    name: String,
}

fn dot(id: u32, number: u32) -> NewerDot {
    NewerDot { id, number, color: NewerColor::Green, name: "ok".into() }
}

/// Has a literal that the reader does not know.
fn blue(id: u32, number: u32) -> NewerDot {
    NewerDot { color: NewerColor::Blue, ..dot(id, number) }
}

/// Has a string beyond the reader's bound.
fn long(id: u32, number: u32) -> NewerDot {
    NewerDot { name: "too long".into(), ..dot(id, number) }
}

/// A reader that has what was written: of writers in other participants.
struct Bench {
    writer: DataWriter<NewerDot>,
    reader: DataReader<Dot>,
    participants: [DomainParticipant; 2],
}

impl Bench {
    fn new() -> Self {
        Self::with(QosSet::reader().reliable().keep_all())
    }

    fn with(qos: QosSet) -> Self {
        let domain = fresh_domain();
        let participants = [participant(domain), participant(domain)];
        let writer = untold_writer(&participants[0], "Dots", QosSet::writer().keep_all());
        let reader = reader(&participants[1], "Dots", qos);
        until("the writer matches", || !writer.matched_subscriptions().unwrap().is_empty());
        until("the reader matches", || !reader.matched_publications().unwrap().is_empty());
        Self { writer, reader, participants }
    }

    fn write(&self, dots: &[NewerDot]) {
        for dot in dots {
            self.writer.write(dot).unwrap();
        }
        self.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    }

    fn counts(&self) -> (u64, i32) {
        (self.reader.undecodable_samples(), self.reader.sample_lost_status().unwrap().total_count)
    }
}

fn numbers(samples: &[Sample<Dot>]) -> Vec<u32> {
    samples.iter().map(|sample| sample.data.as_ref().unwrap().number).collect()
}

fn unread(samples_max: usize) -> ReadOptions {
    ReadOptions::new().sample_states([SampleState::NotRead]).max_samples(samples_max)
}

#[test]
fn the_next_sample_is_the_next_that_decodes() {
    let bench = Bench::new();
    bench.write(&[blue(1, 1), long(1, 2), dot(1, 3), blue(1, 4), dot(1, 5), dot(1, 6), long(1, 7)]);
    let next = |found: Option<Sample<Dot>>| found.map(|sample| sample.data.unwrap().number);
    assert_eq!(next(bench.reader.read_next_sample().unwrap()), Some(3));
    assert_eq!(bench.counts(), (2, 2), "told at once");
    assert_eq!(next(bench.reader.read_next_sample().unwrap()), Some(5));
    assert_eq!(next(bench.reader.take_next_sample().unwrap()), Some(6));
    assert_eq!(next(bench.reader.take_next_sample().unwrap()), None);
    assert_eq!(bench.counts(), (4, 4));
    for _ in 0..3 {
        assert_eq!(numbers(&bench.reader.read().unwrap()), [3, 5]);
    }
    assert_eq!(bench.counts(), (4, 4), "each is counted once, however often the others are read");
}

#[test]
fn the_next_instance_is_the_next_with_something_that_decodes() {
    for take in [false, true] {
        let bench = Bench::new();
        // In the order of handles, which are the octets of the keys.
        bench.write(&[
            blue(1, 1),
            long(1, 2),
            dot(2, 3),
            blue(2, 4),
            dot(2, 5),
            dot(2, 6),
            blue(3, 7),
            dot(4, 8),
        ]);
        let mut previous = InstanceHandle::NIL;
        let mut found = Vec::new();
        let mut views = Vec::new();
        loop {
            let samples = if take {
                bench.reader.take_with(&ReadOptions::new().next_instance(previous).max_samples(2)).unwrap()
            } else {
                bench.reader.read_with(&ReadOptions::new().next_instance(previous).max_samples(2)).unwrap()
            };
            let Some(last) = samples.last() else { break };
            previous = last.info.instance_handle;
            views.extend(samples.iter().map(|sample| sample.info.view_state));
            found.push(numbers(&samples));
        }
        assert_eq!(found, [vec![3, 5], vec![8]], "take: {take}");
        assert_eq!(views, [ViewState::New; 3]);
        assert_eq!(bench.counts(), (4, 4));
    }
}

#[test]
fn a_collection_is_as_long_as_asked_for_and_ranked_as_if_the_others_had_never_come() {
    for take in [false, true] {
        let bench = Bench::new();
        bench.write(&[dot(1, 1), blue(1, 2), dot(1, 3), long(1, 4), dot(2, 5), dot(2, 6)]);
        let selector = ReadOptions::new().max_samples(3);
        let samples = if take {
            bench.reader.take_with(&selector).unwrap()
        } else {
            bench.reader.read_with(&selector).unwrap()
        };
        assert_eq!(numbers(&samples), [1, 3, 5], "take: {take}");
        let ranks: Vec<_> = samples.iter().map(|sample| sample.info.sample_rank).collect();
        assert_eq!(ranks, [1, 0, 0]);
        for Sample { info, .. } in &samples {
            assert_eq!((info.sample_state, info.view_state), (SampleState::NotRead, ViewState::New));
        }
        assert_eq!(bench.counts(), (2, 2));
        let rest = numbers(&bench.reader.read_with(&unread(9)).unwrap());
        assert_eq!(rest, [6], "what was returned was marked read, nothing else");
    }
}

#[test]
fn an_instance_of_which_nothing_decoded_is_still_new() {
    let bench = Bench::new();
    bench.write(&[blue(1, 1)]);
    assert!(bench.reader.read().unwrap().is_empty());
    bench.write(&[dot(1, 2)]);
    assert_eq!(bench.reader.take().unwrap()[0].info.view_state, ViewState::New);
    let handle =
        bench.reader.lookup_instance(&Dot { id: 1, number: 0, color: Color::Red, name: String::new() });
    assert_eq!(bench.reader.key_value(handle.unwrap().unwrap()).unwrap().id, 1, "the key does decode");
}

#[test]
fn who_waits_gets_the_sample_behind() {
    let bench = Bench::new();
    bench.write(&[blue(1, 1), blue(1, 2), dot(1, 3)]);
    let mut next = pin!(bench.reader.next());
    match next.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(sample) => assert_eq!(sample.unwrap().data.unwrap().number, 3),
        Poll::Pending => panic!("waits though a sample is there"),
    }
    bench.write(&[blue(1, 4), dot(1, 5)]);
    assert_eq!(numbers(&bench.reader.wait_take(PATIENCE).unwrap()), [5]);
    bench.write(&[blue(1, 6)]);
    let nothing = bench.reader.wait_take(Duration::ZERO).unwrap_err();
    assert!(matches!(nothing, plainsong::Error::Timeout { .. }), "{nothing}");
    let mut buffer = SampleBuffer::new();
    bench.write(&[blue(1, 7), dot(1, 8), blue(1, 9), dot(1, 10)]);
    bench.reader.take_reusing(&ReadOptions::new().max_samples(2), &mut buffer).unwrap();
    assert_eq!(numbers(&buffer), [8, 10]);
    assert_eq!(bench.counts(), (6, 6));
}

#[test]
fn queries_pass_over_them() {
    let bench = Bench::new();
    bench.write(&[blue(1, 1), dot(1, 2), long(1, 3), dot(1, 4), blue(2, 5), dot(3, 6)]);
    let query = bench.reader.query_condition(&ReadOptions::new(), "number > 2", Vec::new()).unwrap();
    assert_eq!(
        numbers(&bench.reader.read_with(&ReadOptions::new().condition(&query).max_samples(1)).unwrap()),
        [4]
    );
    let next = bench
        .reader
        .read_with(&ReadOptions::new().next_instance(InstanceHandle::NIL).condition(&query))
        .unwrap();
    assert_eq!(numbers(&next), [4]);
    let after = next[0].info.instance_handle;
    let next = bench.reader.take_with(&ReadOptions::new().next_instance(after).condition(&query)).unwrap();
    assert_eq!(numbers(&next), [6]);
    assert_eq!(numbers(&bench.reader.take().unwrap()), [2, 4]);
    assert_eq!(bench.counts(), (3, 3));
}

#[test]
fn a_content_filter_lets_them_be_counted() {
    let domain = fresh_domain();
    let [one, two] = [participant(domain), participant(domain)];
    let source: DataWriter<NewerDot> = untold_writer(&one, "Dots", QosSet::writer().keep_all());
    let topic = two.create_topic::<Dot>("Dots", QosSet::default()).unwrap();
    let filtered = two.create_content_filtered_topic("Some", &topic, "number > 2", Vec::new()).unwrap();
    let subscriber = two.create_subscriber(QosSet::default()).unwrap();
    let reader = subscriber.create_reader(&filtered, QosSet::reader().reliable().keep_all()).unwrap();
    until("they match", || !source.matched_subscriptions().unwrap().is_empty());
    until("both match", || !reader.matched_publications().unwrap().is_empty());
    for dot in [dot(1, 1), blue(1, 3), dot(1, 4)] {
        source.write(&dot).unwrap();
    }
    source.wait_for_acknowledgments(PATIENCE).unwrap();
    assert_eq!(numbers(&reader.take_with(&ReadOptions::new().max_samples(1)).unwrap()), [4]);
    assert_eq!(reader.undecodable_samples(), 1);
}

#[test]
fn in_the_order_of_a_group_none_comes_in_place_of_another() {
    let presentation =
        Presentation { access_scope: AccessScope::Group, coherent_access: false, ordered_access: true };
    let ordered = QosSet { presentation, ..QosSet::default() };
    let domain = fresh_domain();
    let [one, two] = [participant(domain), participant(domain)];
    let publisher = one.create_publisher(ordered.clone()).unwrap();
    let subscriber = two.create_subscriber(ordered).unwrap();
    let [a, b] = ["A", "B"].map(|name| {
        let topic = untold_topic::<NewerDot>(&one, name);
        let writer = publisher.create_writer(&topic, QosSet::writer().keep_all()).unwrap();
        let topic = two.create_topic::<Dot>(name, QosSet::default()).unwrap();
        let reader = subscriber.create_reader(&topic, QosSet::reader().reliable().keep_all()).unwrap();
        until("they match", || !writer.matched_subscriptions().unwrap().is_empty());
        until("both match", || !reader.matched_publications().unwrap().is_empty());
        (writer, reader)
    });
    for (writer, dot) in [(&a.0, blue(1, 1)), (&b.0, dot(1, 2)), (&a.0, dot(1, 3))] {
        writer.write(&dot).unwrap();
    }
    until("all is there", || {
        subscriber.begin_access().unwrap();
        let mut found = Vec::new();
        let readers = subscriber.readers(&ReadOptions::new());
        if readers.len() == 3 {
            for reader in readers {
                found.extend(numbers(
                    &reader.downcast::<Dot>().unwrap().take_with(&ReadOptions::new().max_samples(1)).unwrap(),
                ));
            }
            assert_eq!(found, [2, 3]);
        }
        subscriber.end_access().unwrap();
        !found.is_empty()
    });
    assert_eq!(a.1.undecodable_samples(), 1);
}

#[test]
fn the_room_of_what_is_discarded_is_there_for_others() {
    let mut qos = QosSet::reader().reliable().keep_all();
    qos.resource_limits.max_samples = 2;
    let bench = Bench::with(qos);
    for dot in [blue(1, 1), long(1, 2), dot(1, 3)] {
        bench.writer.write(&dot).unwrap();
    }
    until("the third comes into the room of the others", || {
        numbers(&bench.reader.read_with(&ReadOptions::new().max_samples(1)).unwrap()) == [3]
    });
    bench.writer.wait_for_acknowledgments(PATIENCE).unwrap();
    assert_eq!(bench.reader.undecodable_samples(), 2);
}

/// A final type of the same name and members.
#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(name = "Dot", final)]
struct FinalDot {
    #[dds(key)]
    id: u32,
    number: u32,
    color: NewerColor,
    name: String,
}

#[test]
fn samples_whose_encapsulation_does_not_suit_are_counted_as_they_come_and_told_once_for_each_writer() {
    let domain = fresh_domain();
    let [one, two] = [participant(domain), participant(domain)];
    let (tell, told) = channel();
    two.on_undecodable(move |samples| tell.send(samples.clone()).unwrap());
    let xcdr2 = || QosSet { data_representation: vec![XcdrVersion::Xcdr2], ..QosSet::writer().keep_all() };
    let reads =
        QosSet { data_representation: vec![XcdrVersion::Xcdr2], ..QosSet::reader().reliable().keep_all() };
    let finals: DataWriter<FinalDot> = untold_writer(&one, "Dots", xcdr2());
    let newer: DataWriter<NewerDot> = untold_writer(&participant(domain), "Dots", xcdr2());
    let reader: DataReader<Dot> = reader(&two, "Dots", reads);
    until("all match", || reader.matched_publications().unwrap().len() == 2);
    until("both know", || {
        !finals.matched_subscriptions().unwrap().is_empty()
            && !newer.matched_subscriptions().unwrap().is_empty()
    });
    for number in 0..50 {
        let NewerDot { id, color, name, .. } = dot(1, number);
        finals.write(&FinalDot { id, number, color, name }).unwrap();
    }
    finals.wait_for_acknowledgments(PATIENCE).unwrap();
    until("all are counted", || reader.undecodable_samples() == 50);
    assert_eq!(reader.sample_lost_status().unwrap().total_count, 50);
    assert!(reader.take().unwrap().is_empty());

    let first = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!((first.writer.guid, first.reason), (finals.guid(), Malformed::UnsuitableEncapsulation));
    assert_eq!((first.representation_id, first.type_name), (Some(0x0007), "Dot".to_owned()));
    let text = reader.undecodable()[0].to_string();
    let expected = "encapsulated as CDR2_LE (0x0007), for the reader's appendable type \"Dot\": the representation \
                    identifier does not suit the type; define the type alike on both sides";
    assert!(
        text.starts_with("topic \"Dots\": 50 of the samples of writer ") && text.ends_with(expected),
        "{text}"
    );

    newer.write(&blue(1, 1)).unwrap();
    newer.wait_for_acknowledgments(PATIENCE).unwrap();
    assert!(reader.take().unwrap().is_empty());
    let second = told.recv_timeout(PATIENCE).unwrap();
    assert_eq!((second.writer.guid, second.reason), (newer.guid(), Malformed::InvalidEnum));
    assert_eq!(second.representation_id, Some(0x0009));
    assert!(told.try_recv().is_err(), "once for each writer");
    assert_eq!(reader.undecodable().len(), 2);
}

#[derive(Clone, Debug, PartialEq, DdsType)]
struct Named {
    id: u32,
    name: String,
}

#[test]
fn multi_topics_go_on_without_them() {
    let bench = Bench::new();
    let there = &bench.participants[1];
    let topic = there.create_topic::<Dot>("Dots", QosSet::default()).unwrap();
    let view = there.create_multi_topic::<Named>(
        "View",
        "SELECT id, name FROM Dots",
        Vec::new(),
        &[(&topic).into()],
    );
    let subscriber = there.create_subscriber(QosSet::default()).unwrap();
    let qos = QosSet::reader().reliable().keep_all();
    let reader = subscriber.create_reader(&view.unwrap(), qos).unwrap();
    until("its reader matches", || bench.writer.matched_subscriptions().unwrap().len() == 2);
    until("the writer matches", || !reader.readers()[0].matched_publications().unwrap().is_empty());
    bench.write(&[blue(1, 1), dot(2, 2), long(3, 3), dot(4, 4)]);
    let mut found = Vec::new();
    while found.len() < 2 {
        found.extend(reader.wait_take(PATIENCE).unwrap().into_iter().map(|sample| sample.data.unwrap().id));
    }
    assert_eq!(found, [2, 4]);
    assert_eq!(reader.readers()[0].undecodable_samples(), 2);
}
