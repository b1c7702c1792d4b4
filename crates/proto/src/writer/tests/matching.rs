//! Readers come and go: who is sent what, and where.

use super::*;
use crate::policy_id::PolicyId;

fn ms(millis: i64) -> Duration {
    Duration::from_millis(millis)
}

fn durable_writer() -> QosSet {
    QosSet::writer().keep_all().durability(Durability::TransientLocal)
}

#[test]
fn fact_63_a_late_durable_reader_is_sent_the_history_in_order_and_once() {
    let mut story = Story::new(QosSet::writer().keep_last(2).durability(Durability::TransientLocal));
    for (instance, payload) in [(1, b"a"), (1, b"b"), (2, b"c"), (1, b"d"), (2, b"e"), (3, b"f")] {
        story.write(instance, payload).unwrap();
    }
    assert!(story.sent().is_empty(), "nobody listens");
    let late = durable(7);
    story.matched(&late);
    let sent = story.sent();
    assert_eq!(data(&sent), [2, 3, 4, 5, 6], "the last two of each instance");
    assert_eq!(gaps(&sent, 6), [1]);
    let asked = heartbeats(&sent);
    assert_eq!((asked[0].first.0, asked[0].last.0, asked[0].final_flag), (2, 6, false));
    story.write(3, b"live").unwrap();
    assert_eq!(data(&story.sent()), [7]);
    story.acknack(&late, 8, &[]).unwrap();
    story.pass(Duration::from_secs(10));
    assert!(story.sent().is_empty(), "no duplicates");
}

#[test]
fn fact_63_a_late_volatile_reader_gets_no_old_data_even_when_it_asks() {
    let mut story = Story::new(durable_writer());
    let early = durable(8);
    story.matched(&early);
    for _ in 0..5 {
        story.write(1, b"old").unwrap();
    }
    story.sent();
    let late = reliable(7);
    story.matched(&late);
    let sent = story.sent();
    assert_eq!(data(&sent), []);
    assert_eq!(gaps(&sent, 5), [1, 2, 3, 4, 5]);
    let told = heartbeats(&sent);
    assert_eq!((told[0].first.0, told[0].last.0), (6, 5), "for it there is nothing yet");
    story.acknack(&late, 1, &[1, 2, 3, 4, 5]).unwrap();
    let sent = story.sent();
    assert_eq!((data(&sent), gaps(&sent, 5)), (vec![], vec![1, 2, 3, 4, 5]));
    story.write(1, b"new").unwrap();
    story.sent();
    story.acknack(&late, 1, &[1, 2, 3, 4, 5, 6]).unwrap();
    let sent = story.sent();
    assert_eq!((data(&sent), gaps(&sent, 6)), (vec![6], vec![1, 2, 3, 4, 5]));
}

#[test]
fn a_late_best_effort_durable_reader_is_sent_the_history_too() {
    let mut story = Story::new(durable_writer());
    for _ in 0..3 {
        story.write(1, b"old").unwrap();
    }
    story.matched(&reader(7, QosSet::reader().durability(Durability::TransientLocal)));
    let sent = story.sent();
    assert_eq!(data(&sent), [1, 2, 3]);
    assert_eq!(heartbeats(&sent), [], "it will not answer");
}

#[test]
fn a_long_history_is_replayed_in_bursts_and_completely() {
    let mut story = Story::new(durable_writer());
    for _ in 0..2_000 {
        story.write(1, &[0; 1_000]).unwrap();
    }
    let late = durable(7);
    story.matched(&late);
    let first_burst: usize = story.out.transmits().iter().map(crate::outbox::Transmit::len).sum();
    assert!((100_000..300_000).contains(&first_burst), "{first_burst}");
    let mut numbers = data(&story.sent());
    while numbers.len() < 2_000 {
        story.pass(Duration::from_millis(1));
        numbers.extend(data(&story.sent()));
    }
    assert_eq!(numbers, (1..=2_000).collect::<Vec<_>>());
}

#[test]
fn requests_during_the_replay_do_not_double_it() {
    let mut story = Story::new(durable_writer());
    for _ in 0..500 {
        story.write(1, &[0; 1_000]).unwrap();
    }
    let late = durable(7);
    story.matched(&late);
    let mut numbers = data(&story.sent());
    assert!(numbers.len() < 500);
    let next = numbers.len() as i64 + 1;
    story.acknack(&late, next, &(next..=500.min(next + 255)).collect::<Vec<_>>()).unwrap();
    story.pass(Duration::from_millis(10));
    numbers.extend(data(&story.sent()));
    assert_eq!(numbers, (1..=500).collect::<Vec<_>>());
}

#[test]
fn a_volatile_writer_without_readers_keeps_nothing() {
    let mut story = Story::new(QosSet::writer().keep_all());
    for _ in 0..100 {
        story.write(1, b"data").unwrap();
    }
    story.matched(&reader(7, QosSet::reader()));
    story.write(1, b"data").unwrap();
    assert_eq!(story.writer.history.len(), 0);
    assert_eq!(data(&story.sent()), [101]);
    assert_eq!(story.writer.next_timeout(), None);
}

#[test]
fn one_datagram_serves_all_readers_of_a_kind() {
    let mut story = Story::new(QosSet::writer());
    let readers = [reliable(7), reliable(8), reader(9, QosSet::reader())];
    for reader in &readers {
        story.matched(reader);
    }
    story.sent();
    story.write(1, b"data").unwrap();
    let datagrams = story.sent_by_datagram();
    assert_eq!(datagrams.len(), 1);
    let (destinations, sent) = &datagrams[0];
    assert_eq!(destinations.len(), 3);
    let Sent::Data(data) = &sent[0] else { panic!("{sent:?}") };
    assert_eq!((data.destination, data.reader), (GuidPrefix::UNKNOWN, EntityId::UNKNOWN));
}

#[test]
fn readers_of_one_participant_share_a_locator_and_a_datagram() {
    let mut story = Story::new(QosSet::writer());
    let one = reliable(7);
    let mut two = one.clone();
    two.guid.entity = EntityId::user_reader(99, true);
    story.matched(&one);
    story.matched(&two);
    story.sent();
    story.write(1, b"data").unwrap();
    let datagrams = story.sent_by_datagram();
    assert_eq!(datagrams.len(), 1);
    assert_eq!(datagrams[0].0, one.locators);
    let Sent::Data(data) = &datagrams[0].1[0] else { panic!("{datagrams:?}") };
    assert_eq!((data.destination, data.reader), (one.guid.prefix, EntityId::UNKNOWN));
}

#[test]
fn a_known_reader_may_move_without_being_matched_again() {
    let mut story = Story::new(QosSet::writer());
    let mut reader = reliable(7);
    story.matched(&reader);
    assert_eq!(story.writer.publication_matched_status().total.total_count_change, 1);
    story.events();
    reader.locators = vec![Locator::udp([127, 0, 0, 1].into(), 9_999)];
    story.matched(&reader);
    assert!(story.events().is_empty());
    story.sent();
    story.write(1, b"data").unwrap();
    assert_eq!(story.sent_by_datagram()[0].0, reader.locators);
}

#[test]
fn matching_is_counted_both_ways() {
    let mut story = Story::new(QosSet::writer());
    let reader = reliable(7);
    story.matched(&reader);
    let event = Event::Status { endpoint: WRITER, kind: StatusKind::PublicationMatched };
    assert!(story.events().contains(&event));
    assert!(story.writer.status_changes().contains(StatusKind::PublicationMatched));
    story.writer.unmatch_reader(story.now, reader.guid, &mut story.out);
    story.writer.unmatch_reader(story.now, reader.guid, &mut story.out);
    let status = story.writer.publication_matched_status();
    assert_eq!((status.total.total_count, status.current_count, status.current_count_change), (1, 0, 0));
    assert_eq!(status.last_endpoint, reader.guid.into());
    assert!(!story.writer.status_changes().contains(StatusKind::PublicationMatched));
    assert_eq!(story.writer.matched_readers().count(), 0);
}

#[test]
fn incompatible_readers_are_counted_by_policy() {
    let mut story = Story::new(QosSet::writer());
    story.writer.incompatible_reader(&[PolicyId::Reliability], &mut story.out);
    story.writer.incompatible_reader(&[PolicyId::Deadline, PolicyId::Reliability], &mut story.out);
    assert_eq!(story.events().len(), 2);
    let status = story.writer.offered_incompatible_qos_status();
    assert_eq!((status.count.total_count, status.count.total_count_change), (2, 2));
    assert_eq!(status.last_policy_id, Some(PolicyId::Reliability));
    assert_eq!(status.policies, [(PolicyId::Reliability, 2), (PolicyId::Deadline, 1)]);
    assert_eq!(story.writer.offered_incompatible_qos_status().count.total_count_change, 0);
}

#[test]
fn readers_are_limited() {
    let limits = WriterLimits { readers_max: 2, ..WriterLimits::default() };
    let mut story = Story::with_limits(QosSet::writer(), limits);
    for number in 1..=3 {
        story.matched(&reliable(number));
    }
    assert_eq!(story.writer.matched_readers().count(), 2);
    assert_eq!(story.writer.drops().get(DropReason::DiscoveryLimit), 1);
    story.matched(&reliable(1));
    assert_eq!(story.writer.drops().get(DropReason::DiscoveryLimit), 1, "known readers may always change");
}

#[test]
fn one_participant_leaves_reader_places_for_others() {
    let limits = WriterLimits { readers_max: 8, readers_of_participant_max: 2, ..WriterLimits::default() };
    let mut story = Story::with_limits(QosSet::writer(), limits);
    let greedy = |number: u8| {
        let mut reader = reliable(number);
        reader.guid.prefix = GuidPrefix([5; 12]);
        reader
    };
    for number in 1..=200 {
        story.matched(&greedy(number));
    }
    assert_eq!(story.writer.matched_readers().count(), 2);
    assert_eq!(story.writer.drops().get(DropReason::DiscoveryLimit), 198);
    story.matched(&reliable(4));
    story.matched(&reliable(6));
    assert_eq!(story.writer.matched_readers().count(), 4);
    story.writer.unmatch_reader(story.now, greedy(1).guid, &mut story.out);
    story.matched(&greedy(9));
    assert_eq!(story.writer.matched_readers().count(), 4, "a place that became free is its own");
}

#[test]
fn inline_qos_is_sent_when_a_reader_expects_it() {
    let mut story = Story::new(QosSet { lifespan: Duration::from_secs(3), ..QosSet::writer() });
    let mut reader = reliable(7);
    story.matched(&reader);
    story.write(1, b"data").unwrap();
    reader.expects_inline_qos = true;
    story.matched(&reader);
    story.write(1, b"data").unwrap();
    let lifespans: Vec<_> = story
        .sent()
        .iter()
        .filter_map(|sent| match sent {
            Sent::Data(data) => Some(data.qos.lifespan),
            _ => None,
        })
        .collect();
    assert_eq!(lifespans, [None, Some(Duration::from_secs(3))]);
}

#[test]
fn r8_what_comes_from_elsewhere_in_a_readers_name_acknowledges_and_asks_nothing() {
    let at = |octet| Locator::udp([10, 0, 0, octet].into(), 7411);
    let reader = MatchedReader { sources: Sources::new([at(1)], false), ..reliable(7) };
    let mut story = Story::new(QosSet::writer().keep_all());
    story.matched(&reader);
    story.write(1, b"a").unwrap();
    story.write(1, b"b").unwrap();
    story.sent();
    let acknack = |count| AckNack {
        reader: reader.guid.entity,
        writer: WRITER.entity,
        missing: SequenceSet::empty(SequenceNumber(3)),
        count,
        final_flag: true,
        heartbeat: None,
    };
    let say = |story: &mut Story, from, count| {
        let sender = Sender { guid: reader.guid, from };
        story.writer.on_acknack(story.now, sender, &acknack(count), &mut story.out)
    };
    assert_eq!(say(&mut story, at(2), 1), Err(DropReason::SpoofSuspected));
    assert!(!story.writer.is_acknowledged(story.now.mono, SequenceNumber(2)));
    assert_eq!(say(&mut story, at(1), 1), Ok(()), "the count of the forged one was not noted");
    assert!(story.writer.is_acknowledged(story.now.mono, SequenceNumber(2)));
}

#[test]
fn of_an_empty_history_a_reader_of_this_host_is_told_and_others_are_asked() {
    let ours = MatchedReader { receive_bytes: 1 << 20, ..reliable(7) };
    let begins = MatchedReader { begins: true, ..ours.clone() };
    let elsewhere = MatchedReader { same_host: false, ..ours.clone() };
    for (reader, final_flags) in
        [(ours, vec![true]), (begins, vec![]), (elsewhere, vec![false]), (reliable(8), vec![false])]
    {
        let mut story = Story::new(QosSet::writer());
        story.matched(&reader);
        let told: Vec<bool> = heartbeats(&story.sent()).iter().map(|it| it.final_flag).collect();
        assert_eq!(told, final_flags, "{reader:?}");
        story.pass(Duration::from_secs(10));
        assert!(story.sent().is_empty(), "nothing was written");
        // What it is told answers what it asks.
        story.acknack_with(&reader, 1, &[], 1, false).unwrap();
        assert!(heartbeats(&story.sent()).iter().all(|it| it.final_flag), "{reader:?}");
    }
}

/// A reader that takes the first HEARTBEAT that it hears for the end of what is older than itself.
struct Skipping {
    skipped: Option<i64>,
    received: Vec<i64>,
}

impl Skipping {
    /// It hears what was sent, in this order.
    fn hear(&mut self, sent: &[Sent]) {
        for heard in sent {
            match heard {
                Sent::Heartbeat(heartbeat) => {
                    self.skipped.get_or_insert(heartbeat.last.0);
                }
                Sent::Data(data) if self.skipped.is_some_and(|last| data.number > last) => {
                    self.received.push(data.number);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn what_is_written_before_a_reader_has_matched_is_not_skipped_by_its_first_heartbeat() {
    let cyclone = MatchedReader { skips_to_heartbeat: true, ..reliable(7) };
    // It matches before the first write, between the two, or after both.
    for heard_from in 0..3 {
        let mut story = Story::new(QosSet::writer().keep_all());
        story.write(1, b"old").unwrap();
        let mut reader = Skipping { skipped: None, received: Vec::new() };
        story.matched(&cyclone);
        story.sent();
        for write in 0..2 {
            if heard_from <= write {
                reader.hear(&story.sent());
            }
            story.write(1, b"new").unwrap();
            if heard_from <= write {
                reader.hear(&story.sent());
            } else {
                story.sent();
            }
            story.pass(ms(1));
        }
        // Its first words ask for a HEARTBEAT.
        story.acknack_with(&cyclone, 1, &[], 1, false).unwrap();
        reader.hear(&story.sent());
        assert_eq!(reader.skipped, Some(1), "heard from write {heard_from}");
        let missing: Vec<i64> = (2..=3).filter(|number| !reader.received.contains(number)).collect();
        story.acknack_with(&cyclone, 2, &missing, 2, true).unwrap();
        reader.hear(&story.sent());
        reader.received.sort_unstable();
        reader.received.dedup();
        assert_eq!(reader.received, [2, 3], "heard from write {heard_from}");
        // It is known: nothing is sent beside the samples any more.
        story.write(1, b"more").unwrap();
        assert_eq!(story.sent_by_datagram().len(), 1);
    }
}

#[test]
fn who_skips_to_the_first_heartbeat_is_met_by_the_timer_and_before_a_long_sample() {
    let cyclone = MatchedReader { skips_to_heartbeat: true, ..reliable(7) };
    let first_told = |story: &mut Story| {
        let sent = story.sent();
        heartbeats(&sent).first().map(|it| (it.first.0, it.last.0, it.final_flag))
    };
    let mut story = Story::new(QosSet::writer().keep_all());
    story.matched(&cyclone);
    story.sent();
    story.write(1, &[7; 200_000]).unwrap();
    assert_eq!(first_told(&mut story), Some((1, 0, true)), "before the fragments");
    story.sent();
    story.pass(ms(3_000));
    assert_eq!(first_told(&mut story), Some((1, 0, true)), "before what the timer asks");
    let mut ours = Story::new(QosSet::writer().keep_all());
    ours.matched(&reliable(7));
    ours.sent();
    ours.write(1, b"new").unwrap();
    assert_eq!(first_told(&mut ours), Some((1, 1, false)), "others need no such HEARTBEAT");
}
