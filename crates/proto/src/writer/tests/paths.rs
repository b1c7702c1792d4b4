//! Where datagrams go, and how long they may be on their way there.

use core::net::IpAddr;

use super::*;

/// On another host.
fn remote(number: u8) -> MatchedReader {
    let locator = Locator::udp(address(number), 7_411);
    MatchedReader { same_host: false, locators: vec![locator], ..reliable(number) }
}

fn address(number: u8) -> IpAddr {
    [192, 0, 2, number].into()
}

fn longest(story: &Story) -> usize {
    story.out.transmits().iter().map(|transmit| transmit.len()).max().unwrap()
}

fn fragments(sent: &[Sent]) -> Vec<u32> {
    let number = |sent: &Sent| if let Sent::Fragment(it) = sent { Some(it.fragment) } else { None };
    sent.iter().filter_map(number).collect()
}

#[test]
fn datagrams_are_as_long_as_the_narrowest_of_the_paths_takes() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let mut longest_to = |paths: &[(u8, usize)], readers: &[u8]| {
        for (number, bytes) in paths {
            story.writer.path(address(*number), *bytes);
        }
        readers.iter().for_each(|number| story.matched(&remote(*number)));
        story.sent();
        story.write(1, &[7; 40_000]).unwrap();
        story.pass(Duration::from_millis(3));
        let longest = longest(&story);
        story.sent();
        longest
    };
    let jumbo = longest_to(&[(7, 8_972)], &[7]);
    assert!((8_500..=8_972).contains(&jumbo), "{jumbo}");
    let ethernet = longest_to(&[(8, 1_472)], &[8]);
    assert!((1_300..=1_472).contains(&ethernet), "{ethernet}");
    let untold = longest_to(&[], &[9]);
    assert!(untold <= 1_456, "{untold}: as long as a path that nobody told of may be");
}

#[test]
fn readers_that_are_gone_narrow_nothing() {
    let mut story = Story::new(QosSet::writer().keep_all());
    for (number, bytes) in [(7, 8_972), (8, 1_232)] {
        story.writer.path(address(number), bytes);
        story.matched(&remote(number));
    }
    story.writer.unmatch_reader(story.now, remote(8).guid, &mut story.out);
    story.sent();
    story.write(1, &[7; 8_000]).unwrap();
    assert_eq!(data(&story.sent()), [1], "it fits one datagram");
}

#[test]
fn a_sample_that_was_begun_begins_anew_when_its_path_takes_less() {
    let mut story = Story::new(QosSet::writer().keep_all());
    story.writer.path(address(7), 1_472);
    story.matched(&remote(7));
    story.sent();
    story.write(1, &[7; 200_000]).unwrap();
    let first = fragments(&story.sent());
    assert!(first.len() > 10 && first.len() < 100, "the first burst: {}", first.len());

    story.writer.path(address(7), 1_252);
    story.pass(Duration::from_millis(20));
    assert!(longest(&story) <= 1_252);
    let all = story.sent();
    let again = fragments(&all);
    assert!(again.iter().copied().eq(1..=again.len() as u32), "all of them, from the first on");
    let octets = |sent: &Sent| if let Sent::Fragment(it) = sent { it.payload.len() } else { 0 };
    assert_eq!(all.iter().map(octets).sum::<usize>(), 200_000);
}

#[test]
fn what_has_a_priority_goes_where_it_does_not_queue_behind_the_rest() {
    let urgent = Locator::udp([127, 0, 0, 1].into(), 7_410);
    let both = MatchedReader { urgent: Some(urgent), ..reliable(7) };
    let other = reliable(8);
    let qos = |priority| QosSet { transport_priority: priority, ..QosSet::writer().keep_all() };
    let mut story = Story::new(qos(5));
    story.matched(&both);
    story.matched(&other);
    story.sent();
    let mut written_to = |priority| {
        story.writer.set_qos(story.now, qos(priority));
        story.write(1, &[7; 8]).unwrap();
        let mut destinations: Vec<Locator> =
            story.sent_by_datagram().into_iter().flat_map(|(destinations, _)| destinations).collect();
        destinations.sort_unstable();
        destinations
    };
    let sorted = |mut locators: Vec<Locator>| {
        locators.sort_unstable();
        locators
    };
    assert_eq!(written_to(5), sorted(vec![urgent, other.locators[0]]), "who tells of no such place has one");
    assert_eq!(written_to(0), sorted(vec![both.locators[0], other.locators[0]]));
    assert_eq!(written_to(-1), sorted(vec![both.locators[0], other.locators[0]]), "less than none is none");
    assert_eq!(written_to(1), sorted(vec![urgent, other.locators[0]]));
}

/// Time passes; a reader on another host that says what it answers does so, and has everything.
fn pass_with_answers(story: &mut Story, reader: &MatchedReader, lasting: Duration) -> Vec<Sent> {
    let (mut all, end) = (Vec::new(), story.now.mono.after(lasting).unwrap());
    while story.now.mono < end {
        story.pass(Duration::from_millis(1));
        for (to, sent) in story.sent_by_datagram() {
            for heartbeat in
                heartbeats(&sent).iter().filter(|it| to.contains(&reader.locators[0]) && !it.final_flag)
            {
                let acknack = AckNack {
                    reader: reader.guid.entity,
                    writer: WRITER.entity,
                    missing: SequenceSet::empty(heartbeat.last.next()),
                    count: heartbeat.count,
                    final_flag: true,
                    heartbeat: Some(heartbeat.count),
                };
                let sender = Sender::unplaced(reader.guid);
                story.writer.on_acknack(story.now, sender, &acknack, &mut story.out).unwrap();
            }
            all.extend(sent);
        }
    }
    all
}

#[test]
fn what_a_late_reader_that_answers_nothing_gets_makes_others_tell_how_the_road_is() {
    let elsewhere = |number| {
        let reader = MatchedReader { receive_bytes: 200_000, ..remote(number) };
        MatchedReader { qos: QosSet::reader().reliable().durability(Durability::TransientLocal), ..reader }
    };
    let prompt = elsewhere(8);
    let best_effort = QosSet::reader().best_effort().durability(Durability::TransientLocal);
    let late = MatchedReader { qos: best_effort, ..elsewhere(9) };
    for filters in [false, true] {
        let qos = QosSet::writer().keep_last(20).durability(Durability::TransientLocal);
        let mut story = Story::new(qos);
        if filters {
            // What it does not want goes to others alone.
            story.matched(&content::wanting(200, durable(7)));
        }
        for _ in 0..20 {
            story.write(1, &[100; 20_000]).unwrap();
            story.pass(Duration::from_millis(1));
        }
        story.matched(&prompt);
        pass_with_answers(&mut story, &prompt, Duration::from_secs(1));
        story.matched(&late);
        let sent = pass_with_answers(&mut story, &prompt, Duration::from_millis(500));
        let of_last =
            |it: &&Sent| matches!(it, Sent::Fragment(it) if it.reader == late.guid.entity && it.number == 20);
        let count = sent.iter().filter(of_last).count();
        assert!(
            count >= 14,
            "{count} fragments of the last sample went to the late reader, filters: {filters}"
        );
    }
}

/// Answers a heartbeat by its count: it has everything below `base`, and misses `missing`.
fn answer(story: &mut Story, reader: &MatchedReader, count: i32, base: i64, missing: &[i64]) {
    let mut set = SequenceSet::empty(SequenceNumber(base));
    assert!(missing.iter().all(|number| set.insert(SequenceNumber(*number))));
    story.acknack_count += 1;
    let (reader_id, count_of) = (reader.guid.entity, story.acknack_count);
    let acknack = AckNack {
        reader: reader_id,
        writer: WRITER.entity,
        missing: set,
        count: count_of,
        final_flag: true,
        heartbeat: Some(count),
    };
    story.writer.on_acknack(story.now, Sender::unplaced(reader.guid), &acknack, &mut story.out).unwrap();
}

/// A writer with these readers on other hosts, of which all have answered, and whose window is full.
fn full_window(readers: &[MatchedReader]) -> Story {
    let mut story = Story::new(QosSet::writer().keep_all());
    readers.iter().for_each(|reader| story.matched(reader));
    for number in 1..=10 {
        story.write(1, &[7; 100]).unwrap();
        story.pass(Duration::from_micros(200));
        story.writer.request_acknowledgments(story.now, &mut story.out);
        story.pass(Duration::from_micros(200));
        let count = heartbeats(&story.sent()).last().unwrap().count;
        readers.iter().for_each(|reader| answer(&mut story, reader, count, number + 1, &[]));
    }
    story.sent();
    story.write(1, &[7; 8_000]).unwrap();
    story.pass(Duration::from_millis(1));
    while !story.writer.waits_for_path() {
        story.write(1, &[7; 1_000]).unwrap();
        story.pass(Duration::from_micros(20));
    }
    story
}

fn kin(number: u8) -> MatchedReader {
    MatchedReader { receive_bytes: 200_000, ..remote(number) }
}

#[test]
fn who_asks_while_the_window_is_full_is_not_asked_again_before_it_may_be_answered() {
    let (asking, silent) = (kin(7), kin(8));
    let mut story = full_window(&[asking.clone(), silent]);
    let mut requests = heartbeats(&story.sent());
    answer(&mut story, &asking, requests.last().unwrap().count, 12, &[12]);
    requests.clear();
    for _ in 0..200 {
        story.pass(Duration::from_micros(100));
        let heard = heartbeats(&story.sent());
        for heartbeat in heard.iter().filter(|heartbeat| !heartbeat.final_flag) {
            answer(&mut story, &asking, heartbeat.count, 12, &[12]);
        }
        requests.extend(heard);
    }
    // Everyone is asked each millisecond, and besides by a timer that goes off ever more rarely.
    assert!((5..=30).contains(&requests.len()), "{} requests in 20 ms", requests.len());
}

#[test]
fn a_writer_whose_retransmissions_wait_for_answers_wakes_only_to_ask() {
    let reader = kin(7);
    let mut story = full_window(std::slice::from_ref(&reader));
    story.nack_frag(&reader, 11, &[1, 2, 3]).unwrap();
    story.sent();
    let end = story.now.mono.after(Duration::from_millis(20)).unwrap();
    let mut wakes = 0;
    let mut sent = 0;
    while let Some(due) = story.writer.next_timeout().filter(|due| *due <= end) {
        story.advance_to(due.max(story.now.mono));
        story.writer.timeout(story.now, &mut story.out);
        wakes += 1;
        sent += story.sent_by_datagram().len();
    }
    assert!(wakes <= sent + 1, "{wakes} times it woke, and {sent} datagrams it sent");
}

#[test]
fn every_datagram_leaves_room_for_a_seal() {
    const SEALED_BYTES: usize = 100;
    let limits = WriterLimits { sealed_bytes: SEALED_BYTES, ..WriterLimits::default() };
    let mut story =
        Story::with_limits(QosSet::writer().keep_all().durability(Durability::TransientLocal), limits);
    story.writer.path(address(8), 1_472);
    [remote(8), reliable(7)].iter().for_each(|reader| story.matched(reader));
    let mut longest = [0; 2];
    let mut look = |story: &mut Story| {
        for transmit in story.out.transmits() {
            let near =
                story.out.destinations(transmit).iter().all(|to| to.ip() == Some([127, 0, 0, 1].into()));
            longest[usize::from(near)] = longest[usize::from(near)].max(transmit.len());
        }
        story.sent();
    };
    for (index, bytes) in [9, 700, 5_000, 64_880, 64_900, 65_000, 300_000].into_iter().enumerate() {
        for _ in 0..(400_000 / bytes).clamp(1, 20) {
            while story.write(1, &vec![7; bytes]).is_err() {
                story.pass(Duration::from_millis(20));
                let next = story.writer.last_sequence_number().0 + 1;
                [remote(8), reliable(7)].iter().for_each(|it| story.acknack(it, next, &[]).unwrap());
            }
            look(&mut story);
        }
        let last = story.writer.last_sequence_number().0;
        for reader in [remote(8), reliable(7)] {
            story.acknack(&reader, last - 10, &[last - 10, last - 7, last - 6]).unwrap();
            let _ = story.nack_frag(&reader, last, &[1, 3, 4]);
            look(&mut story);
            story.pass(Duration::from_millis(20));
            look(&mut story);
            story.acknack(&reader, last + 1, &[]).unwrap();
        }
        story.matched(&durable(20 + index as u8));
        story.pass(Duration::from_millis(20));
        look(&mut story);
        story.writer.unmatch_reader(story.now, durable(20 + index as u8).guid, &mut story.out);
    }
    let [far, near] = longest;
    assert!((1_472 - SEALED_BYTES - 100..=1_472 - SEALED_BYTES).contains(&far), "{far}");
    assert!((65_000 - SEALED_BYTES - 8..=65_000 - SEALED_BYTES).contains(&near), "{near}");
}
