//! Readers of one host that hear a group: who is written to by it, when, and why not.

use super::*;
use crate::locator::ports;
use crate::qos::ResourceLimits;

static LONG: [u8; 24_000] = [7; 24_000];
/// After so many samples the writer knows how long they usually are.
const WRITTEN: i64 = 30;

fn group() -> Locator {
    Locator::udp(ports::host_group("Square").into(), ports::host_multicast(0))
}

/// A reader that may hear the group.
fn near(number: u8) -> MatchedReader {
    MatchedReader { group: Some(group()), ..reliable(number) }
}

impl Story {
    /// The readers have everything up to `last` and answer whatever they are asked, by a group only where
    /// they hear it.
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
        let mut story = Self::with_limits(qos, unbatched());
        readers.iter().for_each(|(reader, _)| story.matched(reader));
        story.answer(readers, 0);
        for last in 1..=WRITTEN {
            story.pass(Duration::from_millis(10));
            story.write(1, &LONG).unwrap();
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
fn to_many_processes_short_samples_go_by_the_group_from_the_first_on() {
    let mut story = Story::with_limits(keep_all(), unbatched());
    let readers: Vec<_> = many(8).into_iter().map(|reader| (reader, true)).collect();
    readers.iter().for_each(|(reader, _)| story.matched(reader));
    story.answer(&readers, 0);
    for last in 1..100 {
        story.write(1, &[0; 16]).unwrap();
        assert_eq!(story.data_went(), [[group()]]);
        story.pass(Duration::from_millis(10));
        story.answer(&readers, last);
    }
}

/// Processes that hear the group; with eight it saves with samples of any length.
fn many(count: u8) -> Vec<MatchedReader> {
    (20..20 + count).map(near).collect()
}

fn unbatched() -> WriterLimits {
    WriterLimits { batch_bytes: 0, ..WriterLimits::default() }
}

const TURN: Duration = Duration::from_millis(40);
/// What went by unicast and by the group.
const NOTHING: [Vec<i64>; 2] = [vec![], vec![]];

impl Story {
    /// A writer of short samples and readers, which have the first and not the three that follow.
    fn flowing(qos: QosSet, limits: WriterLimits, readers: &[MatchedReader]) -> Self {
        let mut story = Self::with_limits(qos, limits);
        readers.iter().for_each(|reader| story.matched(reader));
        for number in 1..=4 {
            story.write(1, b"old way").unwrap();
            if number == 1 {
                story.pass(Duration::from_millis(10));
                story.acknowledged(readers, 1);
            }
        }
        story.sent();
        story
    }

    fn acknowledged(&mut self, readers: &[MatchedReader], last: i64) {
        readers.iter().for_each(|reader| self.acknack(reader, last + 1, &[]).unwrap());
    }

    /// Which data went by unicast, and which by the group, since the last look.
    fn data_by_way(&mut self) -> [Vec<i64>; 2] {
        let sent = self.sent_by_datagram();
        [false, true].map(|by_group| {
            let datagrams = sent.iter().filter(|(to, _)| to.contains(&group()) == by_group);
            datagrams.flat_map(|(_, sent)| data(sent)).collect()
        })
    }

    /// Who was asked since the last look, and was sent nothing.
    fn asked(&mut self) -> Vec<Locator> {
        let sent = self.sent_by_datagram();
        assert!(sent.iter().all(|(_, sent)| data(sent).is_empty()));
        let asks = |sent: &[Sent]| heartbeats(sent).iter().any(|it| !it.final_flag);
        let mut asked: Vec<_> =
            sent.into_iter().filter(|(_, sent)| asks(sent)).flat_map(|(to, _)| to).collect();
        asked.dedup();
        asked
    }
}

#[test]
fn in_a_flow_the_way_changes_when_what_went_the_old_one_has_arrived() {
    let readers = many(8);
    let mut story = Story::flowing(keep_all(), unbatched(), &readers[..7]);
    story.matched(&readers[7]);
    assert!(story.asked().contains(&readers[0].locators[0]), "at once, the old way");
    for number in 5..=9 {
        assert_eq!(story.write(1, b"waits").unwrap(), SequenceNumber(number));
    }
    assert_eq!(story.data_by_way(), NOTHING, "it would overtake");
    story.acknowledged(&readers[..6], 4);
    story.acknowledged(&readers[6..7], 3);
    assert_eq!(story.data_by_way(), NOTHING, "one still owes an answer");
    story.pass(Duration::from_millis(20));
    assert_eq!(story.asked(), readers[6].locators, "again: the question may be lost");
    story.acknowledged(&readers[6..7], 4);
    assert_eq!(story.data_by_way(), [vec![], vec![5, 6, 7, 8, 9]]);
    story.write(1, b"new way").unwrap();
    assert_eq!(story.data_by_way(), [vec![], vec![10]]);
    story.acknowledged(&readers, 10);
    assert_eq!(story.writer.next_timeout(), None);
}

#[test]
fn what_waits_for_others_leaves_as_it_was_addressed_before_the_way_changes() {
    let readers = many(8);
    let qos = QosSet { latency_budget: Duration::from_millis(5), ..keep_all() };
    let mut story = Story::flowing(qos, WriterLimits::default(), &readers[..7]);
    assert!(story.writer.holds());
    story.matched(&readers[7]);
    assert_eq!(story.data_by_way(), [vec![2, 3, 4], vec![]]);
    story.write(1, b"waits").unwrap();
    story.pass(Duration::from_millis(10));
    assert_eq!(story.data_by_way(), NOTHING);
    story.acknowledged(&readers, 4);
    assert_eq!(story.data_by_way(), [vec![], vec![5]]);
    story.acknowledged(&readers, 5);
    story.write(1, b"new way").unwrap();
    story.write(1, b"new way").unwrap();
    story.pass(Duration::from_millis(10));
    assert_eq!(story.data_by_way(), [vec![], vec![6, 7]]);
}

#[test]
fn a_flow_whose_samples_become_long_and_short_again_overtakes_nothing_either() {
    let readers = all_hear().map(|(reader, _)| reader);
    let mut story = Story::with_limits(keep_all(), unbatched());
    readers.iter().for_each(|reader| story.matched(reader));
    story.acknowledged(&readers, 0);
    let mut went = Vec::new();
    let mut acknowledged = 0;
    let mut note = |story: &mut Story, acknowledged: i64| {
        let [copies, shared] = story.data_by_way();
        for (number, by_group) in
            copies.into_iter().map(|it| (it, false)).chain(shared.into_iter().map(|it| (it, true)))
        {
            if let Some((before, way)) = went.last() {
                assert!(*way == by_group || acknowledged >= *before, "{number} overtakes {before}");
            }
            went.push((number, by_group));
        }
        went.len() as i64
    };
    for last in 1..=400 {
        story.pass(Duration::from_micros(200));
        story.write(1, if last / 100 % 2 == 0 { &LONG } else { &LONG[..16] }).unwrap();
        // Readers are two samples behind as long as there are more.
        let sent = note(&mut story, acknowledged);
        acknowledged = acknowledged.max(if sent < last { sent } else { last - 2 });
        story.acknowledged(&readers, acknowledged);
        note(&mut story, acknowledged);
    }
    assert!(went.iter().map(|(number, _)| *number).eq(1..=400), "in order, whole, and once: {went:?}");
    assert!(went.windows(2).filter(|two| two[0].1 != two[1].1).count() >= 3, "the way changed");
}

#[test]
fn a_sample_that_was_begun_goes_the_old_way_to_its_end() {
    let readers = many(8);
    let mut story = Story::flowing(keep_all(), unbatched(), &readers[..7]);
    story.acknowledged(&readers[..7], 4);
    story.write(1, &[1; 500_000]).unwrap();
    story.matched(&readers[7]);
    story.write(1, b"waits").unwrap();
    story.acknowledged(&readers[..7], 4);
    let mut fragments = 0;
    for _ in 0..10 {
        let sent = story.sent_by_datagram();
        let has_fragments = |sent: &[Sent]| sent.iter().any(|it| matches!(it, Sent::Fragment(_)));
        let cut = sent.iter().filter(|(_, sent)| has_fragments(sent));
        assert!(cut.clone().all(|(to, _)| !to.contains(&group())));
        assert!(sent.iter().all(|(_, sent)| data(sent).is_empty()));
        fragments += cut.count();
        story.pass(Duration::from_millis(1));
    }
    assert_eq!(fragments, 8);
    story.acknowledged(&readers[..7], 5);
    assert_eq!(story.data_by_way(), [vec![], vec![6]]);
}

#[test]
fn a_flow_is_not_halted_for_long_by_a_reader_that_does_not_acknowledge() {
    let readers = many(8);
    let mut story = Story::flowing(keep_all(), unbatched(), &readers[..7]);
    story.matched(&readers[7]);
    story.acknowledged(&readers[1..], 4);
    story.write(1, b"waits").unwrap();
    story.pass(Duration::from_millis(39));
    assert_eq!(story.data_by_way(), NOTHING);
    story.pass(Duration::from_millis(1));
    assert_eq!(story.data_by_way(), [vec![5], vec![]]);
    assert_eq!(story.writer.delivery(), Delivery::Unicast(UnicastReason::NotAcknowledged));
    for number in 6..=14 {
        story.pass(Duration::from_millis(100));
        story.write(1, b"old way").unwrap();
        assert_eq!(story.data_by_way(), [vec![number], vec![]]);
        story.acknowledged(&readers[1..], number);
    }
    story.pass(Duration::from_millis(100));
    story.acknowledged(&readers[..1], 13);
    story.write(1, b"waits").unwrap();
    assert_eq!(story.data_by_way(), NOTHING, "it is tried again");
    let dues = (0..100).map_while(|_| {
        let due = story.writer.next_timeout().filter(|due| *due <= story.now.mono.after(TURN).unwrap())?;
        story.advance_to(due.max(story.now.mono));
        story.writer.timeout(story.now, &mut story.out);
        Some(())
    });
    assert!((1..30).contains(&dues.count()), "the timer does not spin");
    assert_eq!(story.data_by_way(), [vec![15], vec![]]);
    story.pass(Duration::from_millis(1_500));
    story.acknowledged(&readers[1..], 15);
    story.write(1, b"old way").unwrap();
    assert_eq!(story.data_by_way(), [vec![16], vec![]], "ever more rarely");
    story.acknowledged(&readers, 16);
    story.write(1, b"new way").unwrap();
    assert_eq!(story.data_by_way(), [vec![], vec![17]], "everything has arrived by chance");
}

#[test]
fn where_nothing_is_unacknowledged_the_way_changes_at_once() {
    let readers = many(8);
    let mut story = Story::flowing(keep_all(), unbatched(), &readers[..7]);
    story.acknowledged(&readers[..7], 4);
    story.matched(&readers[7]);
    story.sent();
    story.write(1, b"new way").unwrap();
    assert_eq!(story.data_by_way(), [vec![], vec![5]]);
}

#[test]
fn when_who_was_waited_for_leaves_the_way_changes_or_need_not() {
    for (joined, went) in [(8, [vec![5], vec![]]), (9, [vec![], vec![5]])] {
        let readers = many(joined);
        let mut story = Story::flowing(keep_all(), unbatched(), &readers[..7]);
        readers[7..].iter().for_each(|reader| story.matched(reader));
        story.acknowledged(&readers[1..7], 4);
        story.write(1, b"waits").unwrap();
        assert_eq!(story.data_by_way(), NOTHING);
        story.writer.unmatch_reader(story.now, readers[0].guid, &mut story.out);
        assert_eq!(story.data_by_way(), went);
        story.acknowledged(&readers[1..], 5);
        assert_eq!(story.writer.next_timeout(), None);
    }
}

#[test]
fn who_did_not_acknowledge_and_left_puts_off_no_further_switch() {
    let readers = many(9);
    let mut story = Story::flowing(keep_all(), unbatched(), &readers[..7]);
    readers[7..].iter().for_each(|reader| story.matched(reader));
    story.acknowledged(&readers[1..], 4);
    story.write(1, b"waits").unwrap();
    story.pass(Duration::from_millis(40));
    assert_eq!(story.data_by_way(), [vec![5], vec![]]);
    assert_eq!(story.writer.delivery(), Delivery::Unicast(UnicastReason::NotAcknowledged));
    story.writer.unmatch_reader(story.now, readers[0].guid, &mut story.out);
    assert_ne!(story.writer.delivery(), Delivery::Unicast(UnicastReason::NotAcknowledged));
    story.write(1, b"waits for the others").unwrap();
    assert_eq!(story.data_by_way(), NOTHING, "it is tried again at once");
    story.acknowledged(&readers[1..], 5);
    assert_eq!(story.data_by_way(), [vec![], vec![6]]);
}

#[test]
fn a_filter_ends_the_wait() {
    let readers = many(8);
    let mut story = Story::flowing(keep_all(), unbatched(), &readers[..7]);
    story.matched(&readers[7]);
    story.write(1, &[5]).unwrap();
    assert_eq!(story.data_by_way(), NOTHING);
    story.matched(&content::wanting(5, near(9)));
    let [copies, shared] = story.data_by_way();
    assert!(copies.contains(&5) && shared.is_empty());
    assert_eq!(story.writer.delivery(), Delivery::Unicast(UnicastReason::ContentFilter));
}

#[test]
fn when_samples_replace_those_that_wait_the_flow_is_halted_for_a_moment_only() {
    let readers = many(8);
    let mut story = Story::flowing(QosSet::writer(), unbatched(), &readers[..7]);
    story.matched(&readers[7]);
    story.write(1, b"replaced").unwrap();
    story.sent();
    story.write(1, b"waits").unwrap();
    story.pass(Duration::from_millis(3));
    assert_eq!(story.data_by_way(), NOTHING);
    story.pass(Duration::from_millis(1));
    let sent = story.sent();
    assert_eq!((data(&sent), gaps(&sent, 6)), (vec![6], vec![5]));
}

#[test]
fn who_waits_for_acknowledgements_or_room_is_told_when_the_way_has_changed() {
    let readers = many(8);
    let qos = QosSet {
        resource_limits: ResourceLimits { max_samples: 5, ..ResourceLimits::default() },
        ..keep_all()
    };
    let mut story = Story::flowing(qos, unbatched(), &readers[..7]);
    story.matched(&readers[7]);
    story.write(1, b"waits").unwrap();
    story.write(1, b"waits").unwrap();
    assert_eq!(story.write(1, b"too much"), Err(WriteError::Full));
    story.writer.flush(story.now, &mut story.out);
    story.writer.request_acknowledgments(story.now, &mut story.out);
    assert_eq!(story.data_by_way(), NOTHING);
    story.events();
    story.acknowledged(&readers[..7], 4);
    assert_eq!(story.data_by_way(), [vec![], vec![5, 6]]);
    assert!(story.events().contains(&Event::Progress { endpoint: WRITER.entity }));
    story.write(1, b"new way").unwrap();
    story.acknowledged(&readers, 7);
    assert!(story.writer.is_acknowledged(story.now.mono, SequenceNumber(7)));
}

#[test]
fn readers_on_other_hosts_do_not_wait_for_a_change_of_the_way() {
    let readers = many(8);
    let far = MatchedReader { same_host: false, ..reliable(9) };
    let all: Vec<_> = readers[..7].iter().cloned().chain([far.clone()]).collect();
    let mut story = Story::flowing(keep_all(), WriterLimits::default(), &all);
    story.pass(Duration::from_millis(5));
    story.sent();
    story.matched(&readers[7]);
    story.sent();
    for number in 5..=20 {
        story.write(1, b"waits here").unwrap();
        let sent = story.sent_by_datagram();
        let went: Vec<_> = sent.iter().filter(|(_, sent)| !data(sent).is_empty()).collect();
        assert!(matches!(went[..], [(to, sent)] if *to == far.locators && data(sent) == [number]));
    }
    story.acknowledged(&readers[..7], 4);
    assert_eq!(story.data_by_way(), [vec![], (5..=20).collect()]);
}
