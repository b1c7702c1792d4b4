//! Content filters of readers, applied by the writer (RTPS 2.5 §8.7.3).

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::filter::{ContentFilter, PayloadFilter};
use crate::qos::{AccessScope, LivelinessKind, Ownership, Presentation};
use crate::wire::{ContentFilterInfo, FilterSignature};

static EVALUATIONS: AtomicUsize = AtomicUsize::new(0);

/// The only expressions here are numbers: payloads that begin with at least so much pass.
pub(super) fn compile(filter: &ContentFilter) -> Option<PayloadFilter> {
    let least: u8 = filter.expression.parse().ok()?;
    let steps = filter.parameters.len();
    let filter = PayloadFilter::new(move |payload| {
        EVALUATIONS.fetch_add(1, Ordering::Relaxed);
        payload.first().is_some_and(|first| *first >= least)
    });
    Some(filter.with_steps_per_octet(steps))
}

pub(super) fn filter(least: &str) -> ContentFilter {
    ContentFilter {
        topic_name: "Filtered".into(),
        related_topic_name: "Topic".into(),
        class_name: ContentFilter::SQL.into(),
        expression: least.into(),
        parameters: Vec::new(),
    }
}

/// `reader`, which wants payloads from `least` on.
pub(super) fn wanting(least: u8, reader: MatchedReader) -> MatchedReader {
    MatchedReader { content_filter: Some(filter(&least.to_string())), ..reader }
}

fn story(readers: &[MatchedReader]) -> Story {
    let mut story = Story::new(QosSet::writer().keep_all());
    for reader in readers {
        story.matched(reader);
    }
    story.sent();
    story
}

/// Numbers in samples, and of GAPs the numbers and the filtered counts, in the order sent.
fn shape(sent: &[Sent]) -> Vec<String> {
    sent.iter()
        .map(|sent| match sent {
            Sent::Data(data) => format!("data {}", data.number),
            Sent::Fragment(data) => format!("fragment {} of {}", data.fragment, data.number),
            Sent::Gap(gap) => {
                format!("gap {}..{} filtered {}", gap.start.0, gap.list.base().0, gap.filtered)
            }
            Sent::Heartbeat(it) => format!("heartbeat {}..={}", it.first.0, it.last.0),
            Sent::HeartbeatFrag(_) => "heartbeat of fragments".into(),
        })
        .collect()
}

fn without_heartbeats(sent: &[Sent]) -> Vec<String> {
    shape(sent).into_iter().filter(|it| !it.starts_with("heartbeat")).collect()
}

#[test]
fn fact_62_what_the_filter_refuses_is_not_sent_and_a_gap_tells_of_it() {
    let reader = wanting(10, reliable(7));
    let mut story = story(std::slice::from_ref(&reader));
    for value in [10, 1, 2] {
        story.write(1, &[value]).unwrap();
    }
    assert_eq!(without_heartbeats(&story.sent()), ["data 1"]);
    story.write(1, &[11]).unwrap();
    let datagrams = story.sent_by_datagram();
    assert_eq!(datagrams.len(), 1, "one datagram takes both");
    assert_eq!(without_heartbeats(&datagrams[0].1), ["gap 2..4 filtered 2", "data 4"]);
}

#[test]
fn fact_62_a_best_effort_reader_is_told_too_so_that_it_counts_nothing_lost() {
    let reader = wanting(10, reader(7, QosSet::reader().best_effort()));
    let mut story = story(std::slice::from_ref(&reader));
    for value in [10, 1, 11] {
        story.write(1, &[value]).unwrap();
    }
    assert_eq!(shape(&story.sent()), ["data 1", "gap 2..3 filtered 1", "data 3"]);
}

#[test]
fn fact_62_samples_say_which_filters_they_passed() {
    let (low, high) = (wanting(5, reliable(7)), wanting(10, reliable(8)));
    let mut story = story(&[low.clone(), high.clone()]);
    story.write(1, &[7]).unwrap();
    let verdicts: Vec<_> = story
        .out
        .transmits()
        .iter()
        .map(|transmit| {
            let bytes = story.out.datagram(transmit);
            let at = bytes.windows(4).position(|it| it == [0x55, 0, 44, 0]).expect("the parameter is there");
            let info = ContentFilterInfo::parse(&bytes[at + 4..at + 48], true).unwrap();
            [&low, &high].map(|it| info.result(&it.content_filter.as_ref().unwrap().signature()))
        })
        .collect();
    assert_eq!(verdicts, [[Some(true), Some(false)]]);
    let datagrams = story.sent_by_datagram();
    assert_eq!(datagrams[0].0, low.locators, "only to the one that wants it");
}

#[test]
fn the_filter_of_many_readers_is_asked_once_for_each_sample() {
    let readers: Vec<_> = (2..12).map(|number| wanting(10, reliable(number))).collect();
    let mut story = story(&readers);
    let before = EVALUATIONS.load(Ordering::Relaxed);
    let other_tests_may_ask_too = || EVALUATIONS.load(Ordering::Relaxed) - before;
    story.write(1, &[10]).unwrap();
    assert!(other_tests_may_ask_too() >= 1);
    assert_eq!(story.writer.proxies.filters.held(), 1, "ten readers, one filter");
    assert_eq!(data(&story.sent()), [1], "one datagram for all");
    for reader in &readers {
        story.writer.unmatch_reader(story.now, reader.guid, &mut story.out);
    }
    assert_eq!(story.writer.proxies.filters.held(), 0);
}

#[test]
fn what_is_filtered_out_counts_as_acknowledged() {
    let mut qos = QosSet::writer().keep_all();
    qos.resource_limits.max_samples = 1;
    let reader = wanting(10, reliable(7));
    let mut story = Story::new(qos);
    story.matched(&reader);
    for _ in 0..5 {
        story.write(1, &[1]).unwrap();
    }
    assert!(story.writer.is_acknowledged(story.now.mono, SequenceNumber(5)));
    story.pass(Duration::from_secs(1));
    story.sent();
    assert_eq!(story.writer.next_timeout(), None, "nothing is owed, so nothing is asked");

    story.write(1, &[10]).unwrap();
    assert_eq!(story.write(1, &[1]), Err(WriteError::Full), "the sample that was sent is not acknowledged");
    story.acknack(&reader, 7, &[]).unwrap();
    story.write(1, &[1]).unwrap();
}

#[test]
fn an_acknowledgement_of_what_came_before_covers_what_was_passed_over_since() {
    let reader = wanting(10, reliable(7));
    let mut story = story(std::slice::from_ref(&reader));
    for value in [10, 1, 2] {
        story.write(1, &[value]).unwrap();
    }
    assert!(!story.writer.is_acknowledged(story.now.mono, SequenceNumber(1)));
    story.acknack(&reader, 2, &[]).unwrap();
    assert!(story.writer.is_acknowledged(story.now.mono, SequenceNumber(3)));
    story.acknack_with(&reader, 2, &[], 99, true).unwrap();
    assert!(
        story.writer.is_acknowledged(story.now.mono, SequenceNumber(3)),
        "it lacks nothing that is for it"
    );
}

#[test]
fn a_reader_that_asks_for_what_is_not_for_it_is_told_so() {
    let reader = wanting(10, reliable(7));
    let mut story = story(&[reader.clone(), reliable(8)]);
    for value in [10, 1, 2, 11] {
        story.write(1, &[value]).unwrap();
    }
    story.sent();
    story.acknack(&reader, 1, &[1, 2, 3, 4]).unwrap();
    let sent = story.sent();
    assert_eq!(data(&sent), [1, 4]);
    assert!(shape(&sent).contains(&"gap 2..4 filtered 2".to_owned()), "{:?}", shape(&sent));
}

#[test]
fn a_reader_that_is_asked_hears_first_what_is_not_for_it() {
    let reader = wanting(10, reliable(7));
    let mut story = story(std::slice::from_ref(&reader));
    for value in [10, 1, 2] {
        story.write(1, &[value]).unwrap();
    }
    story.sent();
    story.pass(Duration::from_millis(50));
    let sent = shape(&story.sent());
    assert_eq!(sent[..2], ["gap 2..4 filtered 2".to_owned(), "heartbeat 1..=3".to_owned()]);
}

#[test]
fn while_others_are_sent_samples_those_passed_over_are_asked_for_what_they_owe() {
    let (filtered, all) = (wanting(10, reliable(7)), reliable(8));
    let mut story = story(&[filtered.clone(), all.clone()]);
    story.write(1, &[10]).unwrap();
    story.sent();
    let mut asked = 0;
    for _ in 0..40 {
        story.pass(Duration::from_millis(1));
        story.write(1, &[1]).unwrap();
        for (destinations, sent) in story.sent_by_datagram() {
            assert!(destinations != filtered.locators || data(&sent).is_empty());
            asked += usize::from(destinations == filtered.locators && !heartbeats(&sent).is_empty());
        }
    }
    assert!(asked >= 2, "the reader owes an acknowledgement of 1, and is asked for it");
}

#[test]
fn a_late_joiner_gets_of_the_history_what_it_wants() {
    let mut story = Story::new(QosSet::writer().keep_all().durability(Durability::TransientLocal));
    for value in [1, 10, 2, 3, 11, 4] {
        story.write(1, &[value]).unwrap();
    }
    story.matched(&wanting(10, durable(7)));
    let sent = shape(&story.sent());
    let expected = ["gap 1..2 filtered 1", "data 2", "gap 3..5 filtered 2", "data 5", "gap 6..7 filtered 1"];
    assert_eq!(sent[..5], expected.map(str::to_owned));
}

#[test]
fn fragments_of_a_sample_go_to_those_who_want_it() {
    let (filtered, all) = (wanting(10, reliable(7)), reliable(8));
    let mut story = story(&[filtered.clone(), all.clone()]);
    for value in [1, 10] {
        story.write(1, &vec![value; 200_000]).unwrap();
    }
    story.pass(Duration::from_millis(3));
    let mut heard = Vec::new();
    for (destinations, sent) in story.sent_by_datagram() {
        if destinations.contains(&filtered.locators[0]) {
            heard.extend(without_heartbeats(&sent));
        }
    }
    assert_eq!(
        heard,
        [
            "gap 1..2 filtered 1",
            "fragment 1 of 2",
            "fragment 64 of 2",
            "fragment 127 of 2",
            "fragment 190 of 2"
        ]
    );
    story.nack_frag(&filtered, 1, &[1]).unwrap();
    assert_eq!(shape(&story.sent()), ["gap 1..2 filtered 0"], "it heard a part of what is not for it");
}

#[test]
fn a_filtered_sample_waits_its_turn_behind_a_large_one() {
    let reader = wanting(10, reader(7, QosSet::reader().best_effort()));
    let mut story = story(std::slice::from_ref(&reader));
    for payload in [vec![10; 400_000], vec![1], vec![11]] {
        story.write(1, &payload).unwrap();
    }
    story.pass(Duration::from_millis(5));
    let sent = shape(&story.sent());
    assert_eq!(
        sent[sent.len() - 3..],
        ["fragment 7 of 1", "gap 2..3 filtered 1", "data 3"].map(str::to_owned)
    );
}

#[test]
fn the_ends_of_instances_go_to_everyone() {
    let mut story = story(&[wanting(10, reliable(7))]);
    story.write(1, &[1]).unwrap();
    story.change(ChangeKind::Dispose, 1, &[1]).unwrap();
    story.change(ChangeKind::Unregister, 1, &[1]).unwrap();
    assert_eq!(without_heartbeats(&story.sent()), ["gap 1..2 filtered 1", "data 2", "data 3"]);
}

#[test]
fn a_coherent_set_goes_whole_to_everyone() {
    let presentation =
        Presentation { access_scope: AccessScope::Topic, coherent_access: true, ordered_access: false };
    let mut story = Story::new(QosSet { presentation, ..QosSet::writer().keep_all() });
    story.matched(&wanting(10, reliable(7)));
    story.sent();
    story.writer.begin_coherent_changes(SequenceNumber(1));
    for value in [1, 10] {
        story.write(1, &[value]).unwrap();
    }
    story.writer.end_coherent_changes(story.now, SequenceNumber(3), &mut story.out);
    story.write(1, &[1]).unwrap();
    assert_eq!(data(&story.sent()), [1, 2, 3], "both members and the end, but not the sample after it");
}

#[test]
fn where_samples_say_more_than_their_data_all_are_sent() {
    let mut exclusive = QosSet::writer().keep_all();
    exclusive.ownership = Ownership::Exclusive;
    let mut manual = QosSet::writer().keep_all();
    manual.liveliness.kind = LivelinessKind::ManualByTopic;
    for qos in [exclusive, manual] {
        let mut story = Story::new(qos);
        story.matched(&wanting(10, reliable(7)));
        story.write(1, &[1]).unwrap();
        assert_eq!(data(&story.sent()), [1]);
    }
}

#[test]
fn a_filter_that_means_nothing_here_is_left_to_the_reader() {
    let strange = MatchedReader { content_filter: Some(filter("x > 3")), ..reliable(7) };
    let foreign = ContentFilter { class_name: "MATCH".into(), ..filter("10") };
    let mut story = story(&[strange, MatchedReader { content_filter: Some(foreign), ..reliable(8) }]);
    story.write(1, &[1]).unwrap();
    let datagrams = story.sent_by_datagram();
    assert_eq!(datagrams[0].0.len(), 2);
    assert_eq!(data(&datagrams[0].1), [1]);
}

#[test]
fn a_changed_filter_holds_for_what_is_sent_from_then_on() {
    let reader = wanting(10, reliable(7));
    let mut story = story(std::slice::from_ref(&reader));
    for value in [10, 5] {
        story.write(1, &[value]).unwrap();
    }
    story.matched(&wanting(3, reader.clone()));
    story.write(1, &[6]).unwrap();
    assert_eq!(without_heartbeats(&story.sent()), ["data 1", "gap 2..3 filtered 1", "data 3"]);
    story.acknack(&reader, 2, &[2]).unwrap();
    assert_eq!(data(&story.sent()), [2], "what it still lacks is judged by what it wants now");
    story.matched(&reader);
    story.matched(&MatchedReader { content_filter: None, ..reader });
    story.write(1, &[0]).unwrap();
    assert_eq!(data(&story.sent()), [4]);
}

#[test]
fn more_filters_than_fit_are_left_to_their_readers() {
    let readers: Vec<_> = (100..140).map(|number| wanting(number, reliable(number))).collect();
    let mut story = story(&readers);
    story.write(1, &[1]).unwrap();
    let reached = |story: &mut Story| {
        let datagrams = story.sent_by_datagram().into_iter();
        datagrams.filter(|(_, sent)| !data(sent).is_empty()).flat_map(|it| it.0).count()
    };
    assert_eq!(reached(&mut story), 40 - 32);
    story.write(1, &[120]).unwrap();
    assert_eq!(reached(&mut story), 21 + 8);
}

#[test]
fn readers_of_one_participant_share_the_sample_when_one_of_them_wants_it() {
    let mut low = wanting(5, reliable(7));
    low.guid.entity = EntityId::user_reader(99, true);
    let mut story = story(&[wanting(10, reliable(7)), low]);
    story.write(1, &[7]).unwrap();
    let datagrams = story.sent_by_datagram();
    assert_eq!(datagrams.len(), 1);
    assert_eq!(data(&datagrams[0].1), [1]);
    let signature = FilterSignature([0; 16]);
    assert_eq!(ContentFilterInfo::parse(&[0; 8], true).unwrap().result(&signature), None);
}

#[test]
fn what_waits_for_others_leaves_before_what_is_filtered() {
    let latency_budget = Duration::from_millis(10);
    let mut story =
        Story::with_limits(QosSet { latency_budget, ..QosSet::writer().keep_all() }, WriterLimits::default());
    let reader = reliable(7);
    story.matched(&reader);
    story.sent();
    story.write(1, &[1]).unwrap();
    story.write(1, &[2]).unwrap();
    assert_eq!(data(&story.sent()), [], "they wait for more");
    story.matched(&wanting(10, reader));
    for value in [3, 10] {
        story.write(1, &[value]).unwrap();
    }
    assert_eq!(without_heartbeats(&story.sent()), ["data 1", "data 2", "gap 3..4 filtered 1", "data 4"]);
}

#[test]
fn fact_62_a_heartbeat_does_not_say_that_what_a_reader_does_not_know_of_is_gone() {
    let reader = wanting(10, reliable(7));
    let mut story = story(std::slice::from_ref(&reader));
    for value in [1, 2, 10] {
        story.write(1, &[value]).unwrap();
    }
    story.pass(Duration::from_millis(50));
    let sent = story.sent();
    assert!(!heartbeats(&sent).is_empty());
    assert!(heartbeats(&sent).iter().all(|it| it.first.0 == 1), "the GAP may be lost: {:?}", shape(&sent));
    story.acknack(&reader, 4, &[]).unwrap();
    story.write(1, &[11]).unwrap();
    story.pass(Duration::from_millis(50));
    assert!(heartbeats(&story.sent()).iter().all(|it| it.first.0 == 4), "now it knows");
}

#[test]
fn what_is_filtered_out_is_told_to_be_so_when_the_history_has_let_go_of_it() {
    let reader = wanting(10, reliable(7));
    let mut story = story(std::slice::from_ref(&reader));
    for value in [1, 2] {
        story.write(1, &[value]).unwrap();
    }
    assert_eq!(story.writer.history.next_held(SequenceNumber(1)), SequenceNumber(3), "nobody needs them");
    // It asks what there is: another reader of its subscriber, say, has heard of more.
    story.acknack_with(&reader, 1, &[], 1, false).unwrap();
    assert_eq!(shape(&story.sent()), ["gap 1..3 filtered 2", "heartbeat 1..=2"]);
    // The GAP was lost.
    story.acknack_with(&reader, 1, &[1], 2, true).unwrap();
    assert_eq!(without_heartbeats(&story.sent()), ["gap 1..3 filtered 2"]);
    for value in [10, 3, 4, 11] {
        story.write(1, &[value]).unwrap();
    }
    story.sent();
    story.acknack_with(&reader, 1, &[1, 2, 4, 5], 3, true).unwrap();
    assert_eq!(without_heartbeats(&story.sent()), ["gap 1..3 filtered 4"], "and 4 and 5 in its bitmap");
    story.acknack_with(&reader, 3, &[4, 5], 4, true).unwrap();
    assert_eq!(without_heartbeats(&story.sent()), ["gap 4..6 filtered 2"]);
    story.acknack_with(&reader, 7, &[], 5, true).unwrap();
    assert!(story.writer.proxies.get(reader.guid).unwrap().refused.is_empty(), "it knows");
}

#[test]
fn what_was_replaced_is_not_told_with_what_was_filtered_out() {
    let reader = wanting(10, reliable(7));
    let mut story = Story::new(QosSet::writer());
    story.matched(&reader);
    for value in [10, 1, 11] {
        story.write(1, &[value]).unwrap();
    }
    story.sent();
    story.acknack(&reader, 1, &[1, 2]).unwrap();
    assert_eq!(without_heartbeats(&story.sent()), ["gap 1..2 filtered 0", "gap 2..3 filtered 1"]);
}

#[test]
fn r15_a_filter_that_would_take_long_is_left_to_its_reader() {
    let patterns = ContentFilter { parameters: vec![String::new(); 100], ..filter("10") };
    let signature = patterns.signature();
    let reader = MatchedReader { content_filter: Some(patterns), ..reliable(7) };
    let mut story = story(&[reader, wanting(1, reliable(8))]);
    story.write(1, &[1; 2_621]).unwrap();
    let datagrams = story.sent_by_datagram();
    assert_eq!(datagrams[0].0.len(), 1, "100 steps for each of 2,621 octets are affordable");
    story.write(1, &[1; 2_622]).unwrap();
    let sent: Vec<u8> = story.out.transmits().iter().flat_map(|it| story.out.datagram(it)).collect();
    assert!(!sent.windows(16).any(|octets| octets == signature.0), "what was not asked has no verdict");
    let datagrams = story.sent_by_datagram();
    let (destinations, _) = datagrams.iter().find(|(_, sent)| data(sent) == [2]).unwrap();
    assert_eq!(destinations.len(), 2, "one octet more, and it is sent");
}

#[test]
fn a_heartbeat_does_not_say_that_nothing_comes_of_what_the_history_replaced() {
    let group = Arc::new(WriterGroup::default());
    let presentation =
        Presentation { access_scope: AccessScope::Group, coherent_access: false, ordered_access: true };
    let qos = QosSet { presentation, ..QosSet::writer() };
    let limits = WriterLimits { batch_bytes: 0, ..WriterLimits::default() };
    let mut story = Story::of_group(qos, limits, Some(Arc::clone(&group)));
    story.matched(&wanting(10, reliable(7)));
    story.sent();
    // The first is on its way, or waits at the reader for something before it, when the others replace it.
    for value in [10, 1, 11] {
        story.write(1, &[value]).unwrap();
    }
    story.writer.request_acknowledgments(story.now, &mut story.out);
    let sent = story.sent();
    let heartbeat = sent.iter().rev().find_map(|sent| match sent {
        Sent::Heartbeat(it) => Some(it),
        _ => None,
    });
    let heartbeat = heartbeat.unwrap();
    assert_eq!((heartbeat.first, heartbeat.last), (SequenceNumber(1), SequenceNumber(3)));
    let first = heartbeat.group.as_ref().unwrap().first;
    assert_eq!(first, SequenceNumber(1), "group number 1 may still come");
}

#[test]
fn what_was_replaced_before_its_turn_does_not_count_as_filtered_out() {
    let reader = wanting(10, reliable(7));
    let mut story = Story::new(QosSet::writer());
    story.matched(&reader);
    story.sent();
    story.write(1, &[10; 300_000]).unwrap();
    // These wait; the last replaces the one before it.
    for (instance, value) in [(2, 1), (3, 10), (3, 11)] {
        story.write(instance, &[value]).unwrap();
    }
    story.pass(Duration::from_millis(3));
    let shape = without_heartbeats(&story.sent());
    let later = shape.iter().filter(|it| !it.starts_with("fragment")).map(String::as_str);
    assert_eq!(later.collect::<Vec<_>>(), ["gap 2..3 filtered 1", "data 4"]);
}

#[test]
fn who_was_passed_over_gets_what_was_queued_when_another_reader_came() {
    let elsewhere = |number| {
        let locators = vec![Locator::udp([192, 0, 2, number].into(), 7_411)];
        MatchedReader { same_host: false, locators, ..reliable(number) }
    };
    let choosy = wanting(10, elsewhere(7));
    let mut story = story(&[choosy.clone(), elsewhere(8)]);
    // The first is longer than a burst, so that the others wait for it.
    story.write(1, &[1; 100_000]).unwrap();
    for value in [20, 1, 21] {
        story.write(1, &[value]).unwrap();
    }
    story.matched(&elsewhere(9));
    story.acknack(&choosy, 1, &[]).unwrap();
    story.pass(Duration::from_millis(10));
    let to_choosy = story.sent_by_datagram().into_iter().filter(|(to, _)| *to == choosy.locators);
    let sent: Vec<Sent> = to_choosy.flat_map(|(_, sent)| sent).collect();
    assert_eq!(data(&sent), [2, 4], "{:?}", shape(&sent));
    assert_eq!(gaps(&sent, 4), [1, 3], "{:?}", shape(&sent));
}
