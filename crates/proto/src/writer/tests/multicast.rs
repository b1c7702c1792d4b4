//! Readers of one host that hear a group: who is written to by it, when, and why not.

use super::*;
use crate::locator::ports;

static LONG: [u8; 24_000] = [7; 24_000];
/// After so many samples the writer has compared both ways and chosen.
const WRITTEN: i64 = 30;

fn group() -> Locator {
    Locator::udp(ports::host_group("Square").into(), ports::host_multicast(0))
}

/// A reader that may hear the group.
fn near(number: u8) -> MatchedReader {
    MatchedReader { group: Some(group()), ..reliable(number) }
}

/// What a datagram costs by unicast to each process, and by the group.
#[derive(Clone, Copy)]
struct Costs {
    copy_micros: i64,
    group_micros: i64,
}

const CHEAP_GROUP: Costs = Costs { copy_micros: 10, group_micros: 12 };
const DEAR_GROUP: Costs = Costs { copy_micros: 10, group_micros: 29 };

impl Story {
    /// Writes a sample and tells what the sending cost, if that is asked for; whether it was.
    fn write_at(&mut self, costs: Costs, payload: &[u8]) -> bool {
        self.write(1, payload).unwrap();
        let cost_of = |to: &Locator| if *to == group() { costs.group_micros } else { costs.copy_micros };
        let sent = self.out.transmits().iter().flat_map(|transmit| self.out.destinations(transmit));
        let took = Duration::from_micros(sent.map(cost_of).sum());
        let wants = self.writer.wants_cost();
        self.writer.sending_took(wants.then_some(took));
        wants
    }

    /// The readers have everything up to `last` and answer whatever they are asked, by a group only where they hear it.
    fn answer(&mut self, readers: &[(MatchedReader, bool)], last: i64) {
        for _ in 0..100 {
            let sent = self.sent_by_datagram();
            let is_asked = |reader: &MatchedReader, hears: bool| {
                let reaches =
                    |to: &[Locator]| to.contains(&reader.locators[0]) || hears && to.contains(&group());
                let asks = |it: &Heartbeat| {
                    !it.final_flag && [reader.guid.entity, EntityId::UNKNOWN].contains(&it.reader)
                };
                sent.iter().any(|(to, sent)| reaches(to) && heartbeats(sent).iter().any(asks))
            };
            let asked: Vec<_> = readers.iter().filter(|(reader, hears)| is_asked(reader, *hears)).collect();
            if asked.is_empty() {
                return;
            }
            self.advance_to(self.now.mono.after(Duration::from_micros(100)).unwrap());
            for (reader, _) in asked {
                self.acknack(reader, last + 1, &[]).unwrap();
            }
        }
        panic!("the writer asks without end");
    }

    /// A writer of long samples, after some of them, whose readers hear the group or do not.
    fn among(qos: QosSet, readers: &[(MatchedReader, bool)]) -> Self {
        let comparison = ComparisonPace { first_after: 4, measured: 4 };
        let limits = WriterLimits { batch_bytes: 0, comparison, ..WriterLimits::default() };
        let mut story = Self::with_limits(qos, limits);
        readers.iter().for_each(|(reader, _)| story.matched(reader));
        story.answer(readers, 0);
        for last in 1..=WRITTEN {
            story.pass(Duration::from_millis(10));
            story.write_at(CHEAP_GROUP, &LONG);
            story.answer(readers, last);
        }
        story.sent();
        story.events();
        story
    }

    /// How many readers are written to by the group, if that was chosen.
    fn by_group(&self) -> Option<usize> {
        match self.writer.delivery() {
            Delivery::Multicast { group: chosen, readers, .. } if chosen == group() => Some(readers),
            _ => None,
        }
    }

    /// Where the data went that was just sent.
    fn data_went(&mut self) -> Vec<Vec<Locator>> {
        let sent = self.sent_by_datagram().into_iter();
        sent.filter(|(_, sent)| !data(sent).is_empty()).map(|(to, _)| to).collect()
    }
}

/// Three readers that hear the group.
fn all_hear() -> [(MatchedReader, bool); 3] {
    [6, 7, 8].map(|number| (near(number), true))
}

/// The same and another one.
fn all_hear_but(other: MatchedReader, hears: bool) -> Vec<(MatchedReader, bool)> {
    all_hear().into_iter().chain([(other, hears)]).collect()
}

fn keep_all() -> QosSet {
    QosSet::writer().keep_all()
}

#[test]
fn readers_that_answer_the_group_are_sent_one_datagram() {
    let mut story = Story::among(keep_all(), &all_hear());
    assert_eq!(story.by_group(), Some(3));
    story.write(1, &LONG).unwrap();
    let sent = story.sent_by_datagram();
    assert!(sent.iter().all(|(to, _)| *to == [group()]), "heartbeats, too: {sent:?}");
    assert_eq!(sent.iter().map(|(_, sent)| data(sent).len()).sum::<usize>(), 1);
}

#[test]
fn who_does_not_hear_the_group_is_sent_its_own_beside_it() {
    let deaf = reliable(9);
    let mut story = Story::among(keep_all(), &all_hear_but(deaf.clone(), false));
    assert_eq!(story.by_group(), Some(3));
    story.write(1, &LONG).unwrap();
    assert_eq!(story.data_went(), [[group(), deaf.locators[0]]]);
}

#[test]
fn nothing_goes_to_a_group_that_fewer_than_three_processes_hear() {
    let neighbour = MatchedReader { locators: near(7).locators, ..near(8) };
    for other in [reliable(8), neighbour] {
        let mut story = Story::among(keep_all(), &[(near(6), true), (near(7), true), (other, true)]);
        assert_eq!(story.writer.delivery(), Delivery::Unicast(UnicastReason::FewReaders));
        story.write(1, &LONG).unwrap();
        assert!(!story.data_went()[0].contains(&group()));
    }
}

#[test]
fn short_samples_go_by_unicast_and_changing_lengths_do_not_change_that_all_the_time() {
    let mut story = Story::among(keep_all(), &all_hear());
    let mut changes = 0;
    for round in WRITTEN + 1..200 {
        let before = story.writer.delivery();
        story.write(1, &LONG[..if round % 2 == 0 { 9_000 } else { 16_000 }]).unwrap();
        for (reader, _) in all_hear() {
            story.acknack(&reader, round + 1, &[]).unwrap();
        }
        changes += usize::from(story.writer.delivery() != before);
    }
    assert_eq!(changes, 0);
    for round in 200..260 {
        story.write(1, &[0; 16]).unwrap();
        for (reader, _) in all_hear() {
            story.acknack(&reader, round + 1, &[]).unwrap();
        }
    }
    assert_eq!(story.writer.delivery(), Delivery::Unicast(UnicastReason::ShortDatagrams));
    story.sent();
    story.write(1, &[0; 16]).unwrap();
    assert_eq!(story.data_went(), [all_hear().map(|(reader, _)| reader.locators[0])]);
}

#[test]
fn what_one_reader_misses_comes_by_the_group_in_order_and_for_it_alone() {
    let readers = all_hear().map(|(reader, _)| reader);
    let mut story = Story::among(keep_all(), &all_hear());
    story.write(1, &LONG).unwrap();
    story.write(1, &LONG).unwrap();
    story.sent();
    story.advance_to(story.now.mono.after(Duration::from_millis(5)).unwrap());
    story.acknack(&readers[0], WRITTEN + 1, &[WRITTEN + 1]).unwrap();
    let sent = story.sent_by_datagram();
    assert!(sent.iter().all(|(to, _)| *to == [group()]));
    let repeated: Vec<_> = sent
        .iter()
        .flat_map(|(_, sent)| sent)
        .filter_map(|sent| if let Sent::Data(data) = sent { Some(data) } else { None })
        .collect();
    assert_eq!(repeated.len(), 1);
    assert_eq!((repeated[0].number, repeated[0].reader), (WRITTEN + 1, readers[0].guid.entity));
    assert_eq!(repeated[0].destination, readers[0].guid.prefix);
}

#[test]
fn a_reader_that_falls_silent_is_asked_and_answered_by_unicast_and_comes_back() {
    let lost = near(8);
    let mut story = Story::among(keep_all(), &all_hear());
    story.write(1, &LONG).unwrap();
    story.acknack(&near(6), WRITTEN + 2, &[]).unwrap();
    story.acknack(&near(7), WRITTEN + 2, &[]).unwrap();
    story.sent();
    story.pass(Duration::from_millis(1_200));
    let asked = story.sent_by_datagram();
    let asked = asked.iter().any(|(to, sent)| to == &lost.locators && !heartbeats(sent).is_empty());
    assert!(asked, "it does not hear the group any more");
    assert_eq!(story.writer.delivery(), Delivery::Unicast(UnicastReason::NotHeard));
    story.acknack(&lost, WRITTEN + 1, &[WRITTEN + 1]).unwrap();
    assert_eq!(story.data_went(), [[lost.locators[0]]]);
    story.acknack(&lost, WRITTEN + 2, &[]).unwrap();
    assert_eq!(story.writer.delivery(), Delivery::Unicast(UnicastReason::NotHeard), "not at once");
    story.pass(Duration::from_secs(2));
    story.acknack(&lost, WRITTEN + 2, &[]).unwrap();
    assert_eq!(story.by_group(), Some(3));
}

#[test]
fn a_reader_that_repetitions_do_not_reach_is_written_to_by_unicast() {
    let lost = near(8);
    let mut story = Story::among(keep_all(), &all_hear());
    story.write(1, &LONG).unwrap();
    for reader in [near(6), near(7)] {
        story.acknack(&reader, WRITTEN + 2, &[]).unwrap();
    }
    for _ in 0..40 {
        story.pass(Duration::from_millis(5));
        story.acknack(&lost, WRITTEN + 1, &[WRITTEN + 1]).unwrap();
    }
    assert_eq!(story.writer.delivery(), Delivery::Unicast(UnicastReason::NotHeard));
    story.sent();
    story.pass(Duration::from_millis(10));
    story.acknack(&lost, WRITTEN + 1, &[WRITTEN + 1]).unwrap();
    assert_eq!(story.data_went(), [lost.locators]);
}

#[test]
fn who_answers_late_but_answers_is_not_taken_for_lost() {
    let mut story = Story::among(keep_all(), &all_hear());
    for last in WRITTEN + 1..50 {
        story.write(1, &LONG).unwrap();
        story.pass(Duration::from_millis(240));
        all_hear().iter().for_each(|(reader, _)| story.acknack(reader, last + 1, &[]).unwrap());
    }
    assert_eq!(story.by_group(), Some(3));
    story.pass(Duration::from_secs(60));
    assert_eq!(story.writer.next_timeout(), None, "nothing is looked for when nobody owes anything");
}

#[test]
fn the_history_for_a_late_joiner_goes_to_it_alone() {
    let qos = QosSet::writer().keep_all().durability(Durability::TransientLocal);
    let near = |number| MatchedReader { group: Some(group()), ..durable(number) };
    let late = near(9);
    let mut story = Story::among(qos, &all_hear());
    story.matched(&late);
    story.pass(Duration::from_millis(20));
    let history: Vec<_> =
        story.sent_by_datagram().into_iter().filter(|(_, sent)| !data(sent).is_empty()).collect();
    assert!(!history.is_empty() && history.iter().all(|(to, _)| *to == late.locators));
    story.write(1, &LONG).unwrap();
    assert_eq!(story.data_went(), [[group(), late.locators[0]]], "what is new goes to all");
    story.answer(&all_hear_but(late, true), WRITTEN + 1);
    story.pass(Duration::from_millis(10));
    story.write(1, &LONG).unwrap();
    story.answer(&all_hear_but(near(9), true), WRITTEN + 2);
    assert_eq!(story.by_group(), Some(4));
}

#[test]
fn samples_for_some_and_urgent_ones_go_by_unicast() {
    let story = Story::among(QosSet { transport_priority: 10, ..keep_all() }, &all_hear());
    assert_eq!(story.writer.delivery(), Delivery::Unicast(UnicastReason::TransportPriority));
    let mut story = Story::among(keep_all(), &all_hear());
    story.matched(&content::wanting(5, near(9)));
    story.acknack(&near(7), WRITTEN + 1, &[]).unwrap();
    assert_eq!(story.writer.delivery(), Delivery::Unicast(UnicastReason::ContentFilter));
    assert!(story.writer.delivery().to_string().contains("content filters"), "it says why");
}

#[test]
fn it_ends_when_too_few_are_left() {
    let mut story = Story::among(keep_all(), &all_hear());
    story.writer.unmatch_reader(story.now, near(8).guid, &mut story.out);
    assert_eq!(story.writer.delivery(), Delivery::Unicast(UnicastReason::FewReaders));
    story.write(1, &LONG).unwrap();
    assert_eq!(story.data_went(), [[near(6).locators[0], near(7).locators[0]]]);
}

#[test]
fn multicast_that_saves_little_is_not_chosen_and_both_figures_are_told() {
    let mut story = Story::among(keep_all(), &[]);
    all_hear().iter().for_each(|(reader, _)| story.matched(reader));
    story.answer(&all_hear(), WRITTEN);
    let mut last = WRITTEN;
    let mut write = |story: &mut Story, costs| {
        last += 1;
        story.pass(Duration::from_millis(10));
        let was_measured = story.write_at(costs, &LONG);
        story.answer(&all_hear(), last);
        was_measured
    };
    (1..=3).for_each(|_| assert!(!write(&mut story, DEAR_GROUP), "not at once"));
    assert_eq!(story.writer.delivery(), Delivery::Unicast(UnicastReason::NotMeasured));
    for _ in 0..40 {
        write(&mut story, DEAR_GROUP);
    }
    let told = |unicast, multicast| SendCosts {
        datagram_bytes: 16_384,
        unicast: Duration::from_micros(unicast),
        multicast: Duration::from_micros(multicast),
    };
    assert_eq!(story.writer.delivery(), Delivery::Unicast(UnicastReason::Cheap(told(30, 29))));
    let reason = story.writer.delivery().to_string();
    assert!(reason.contains("30.0 µs by unicast, 29.0 µs by multicast"), "{reason}");
    for _ in 0..40 {
        write(&mut story, CHEAP_GROUP);
    }
    assert!(
        matches!(story.writer.delivery(), Delivery::Multicast { costs, .. } if costs == Some(told(30, 12))),
        "it finds out that the group became cheaper: {}",
        story.writer.delivery()
    );
    let measured = (0..5_000).filter(|_| write(&mut story, CHEAP_GROUP)).count();
    assert!(measured <= 40, "{measured} of 5,000 are measured in the long run");
    assert_eq!(story.by_group(), Some(3));
}

#[test]
fn sends_that_took_long_because_somebody_interrupted_them_do_not_change_the_choice() {
    let mut story = Story::among(keep_all(), &all_hear());
    let mut changes = 0;
    for last in WRITTEN + 1..3_000 {
        let interrupted = if last % 2 == 0 { 500 } else { 0 };
        let costs = Costs { copy_micros: 10 + interrupted, group_micros: 12 + interrupted };
        story.write_at(costs, &LONG);
        story.answer(&all_hear(), last);
        changes += usize::from(story.by_group() != Some(3));
    }
    assert_eq!(changes, 0);
}

#[test]
fn when_more_processes_hear_the_group_it_is_soon_measured_again() {
    let mut story = Story::among(keep_all(), &all_hear());
    story.matched(&near(9));
    let readers = all_hear_but(near(9), true);
    story.answer(&readers, WRITTEN);
    for last in WRITTEN + 1..WRITTEN + 30 {
        story.write_at(CHEAP_GROUP, &LONG);
        story.answer(&readers, last);
    }
    let costs = SendCosts {
        datagram_bytes: 16_384,
        unicast: Duration::from_micros(40),
        multicast: Duration::from_micros(12),
    };
    assert_eq!(
        story.writer.delivery(),
        Delivery::Multicast { group: group(), readers: 4, costs: Some(costs) }
    );
}

#[test]
fn to_many_processes_the_group_is_taken_at_once_and_left_when_it_turns_out_to_be_dear() {
    let mut story =
        Story::with_limits(keep_all(), WriterLimits { batch_bytes: 0, ..WriterLimits::default() });
    let readers: Vec<_> = (20..30).map(|number| (near(number), true)).collect();
    readers.iter().for_each(|(reader, _)| story.matched(reader));
    story.answer(&readers, 0);
    let mut last = 0;
    let mut write = |story: &mut Story, costs| {
        last += 1;
        story.write_at(costs, &LONG);
        let went = story.data_went();
        story.pass(Duration::from_millis(10));
        story.answer(&readers, last);
        went
    };
    assert_eq!(write(&mut story, CHEAP_GROUP), [[group()]], "the first already");
    let reason = story.writer.delivery().to_string();
    assert!(reason.contains("likely to cost less"), "{reason}");
    let by_group = (0..1_200).filter(|_| write(&mut story, CHEAP_GROUP) == [[group()]]).count();
    assert!((1_185..1_200).contains(&by_group), "{by_group} of 1,200, the others to compare");
    assert!(matches!(story.writer.delivery(), Delivery::Multicast { costs: Some(_), .. }));
    let dear = Costs { copy_micros: 10, group_micros: 200 };
    (0..5_000).for_each(|_| drop(write(&mut story, dear)));
    assert!(matches!(story.writer.delivery(), Delivery::Unicast(UnicastReason::Cheap(_))));
}
