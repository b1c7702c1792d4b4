//! Samples larger than a datagram: cut, paced, repeated.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::writer::flow::queue::Tail;
use crate::writer::flow::route_kind::RouteKind;

const MIB: usize = 1 << 20;

fn remote(number: u8) -> MatchedReader {
    MatchedReader { same_host: false, ..reliable(number) }
}

fn sample(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index * 31 + index / 251) as u8).collect()
}

fn fragments(sent: &[Sent]) -> Vec<FragmentSent> {
    sent.iter()
        .filter_map(|sent| match sent {
            Sent::Fragment(fragment) => Some(fragment.clone()),
            _ => None,
        })
        .collect()
}

#[test]
fn fact_10_fragments_make_up_the_sample_and_fit_their_datagrams() {
    for (reader, datagram_max) in [(reliable(7), 65_000), (remote(7), 1_456)] {
        let mut story = Story::new(QosSet::writer().keep_all());
        story.matched(&MatchedReader { expects_inline_qos: true, ..reader });
        story.sent();
        let sample = sample(100_001);
        story.write(1, &sample).unwrap();
        story.pass(Duration::from_millis(3));
        assert!(story.out.transmits().iter().all(|transmit| transmit.len() <= datagram_max));
        let sent = story.sent();
        let fragments = fragments(&sent);
        let mut next = 1;
        for fragment in &fragments {
            assert_eq!(fragment.fragment, next);
            next += fragment.payload.len().div_ceil(usize::from(fragment.fragment_bytes)) as u32;
        }
        assert!(fragments.iter().all(|fragment| fragment.sample_bytes == 100_001));
        assert!(fragments.iter().all(|fragment| fragment.has_inline_qos == (fragment.fragment == 1)));
        let whole: Vec<u8> = fragments.iter().flat_map(|fragment| fragment.payload.clone()).collect();
        assert!(whole == sample);
        let Some(Sent::Heartbeat(heartbeat)) = sent.last() else { panic!("{:?}", sent.last()) };
        assert_eq!((heartbeat.last.0, heartbeat.final_flag), (1, false));
    }
}

#[test]
fn fact_66_a_sample_that_fits_one_host_is_cut_for_the_other() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let (here, there) = (reliable(7), remote(8));
    story.matched(&here);
    story.matched(&there);
    story.sent();
    story.write(1, &sample(10_000)).unwrap();
    for (destinations, sent) in story.sent_by_datagram() {
        if destinations == here.locators {
            assert_eq!(data(&sent), [1]);
        } else {
            assert_eq!(destinations, there.locators);
            assert_eq!(fragments(&sent).len(), 1);
        }
    }
}

#[test]
fn the_largest_sample_of_one_datagram_fits_exactly() {
    let mut story = Story::new(QosSet::writer().keep_all());
    story.matched(&remote(7));
    story.sent();
    let mut largest = 0;
    for bytes in 1_200..1_456 {
        story.write(1, &sample(bytes)).unwrap();
        assert!(story.out.transmits().iter().all(|transmit| transmit.len() <= 1_456));
        if fragments(&story.sent()).is_empty() {
            largest = bytes;
        }
    }
    assert!(largest >= 1_340, "{largest}");
}

#[test]
fn a_large_sample_leaves_in_bursts() {
    let mut story = Story::new(QosSet::writer().keep_all());
    story.matched(&reliable(7));
    story.sent();
    let start = story.now.mono;
    story.write(1, &sample(5 * MIB)).unwrap();
    let mut total = 0;
    while let Some(due) = story.writer.pump_due() {
        let burst: usize = fragments(&story.sent()).iter().map(|fragment| fragment.payload.len()).sum();
        assert!((1..=4 * 65_000).contains(&burst), "{burst}");
        total += burst;
        story.pass(due.since(story.now.mono));
    }
    total += fragments(&story.sent()).iter().map(|fragment| fragment.payload.len()).sum::<usize>();
    assert_eq!(total, 5 * MIB);
    assert!(story.now.mono.since(start) < Duration::from_millis(30));
}

/// A reader on this host whose socket holds `bytes`.
fn holding(number: u8, bytes: u32) -> MatchedReader {
    MatchedReader { receive_bytes: bytes, ..reliable(number) }
}

#[test]
fn acknowledgements_open_the_window_of_readers_that_tell_what_their_sockets_hold() {
    let mut story = Story::new(QosSet::writer().keep_last(100));
    let reader = holding(7, 4 << 20);
    story.matched(&reader);
    story.sent();
    for _ in 0..20 {
        story.write(1, &sample(100_000)).unwrap();
    }
    let sent = story.sent();
    let octets: usize = fragments(&sent).iter().map(|fragment| fragment.payload.len()).sum();
    assert!((MIB..MIB + 65_000).contains(&octets), "a quarter of the buffer at once, not {octets}");
    let asking = heartbeats(&sent).iter().filter(|heartbeat| !heartbeat.final_flag).count();
    assert!((1..10).contains(&asking), "{asking} of 10 samples ask for acknowledgements");
    story.acknack(&reader, 6, &[]).unwrap();
    let octets: usize = fragments(&story.sent()).iter().map(|fragment| fragment.payload.len()).sum();
    assert!((400_000..565_001).contains(&octets), "five are acknowledged, so five more follow, not {octets}");
}

#[test]
fn time_opens_the_window_of_readers_that_acknowledge_nothing_or_tell_nothing() {
    for other in [reliable(8), MatchedReader { receive_bytes: 4 << 20, ..reader(8, QosSet::reader()) }] {
        let mut story = Story::new(QosSet::writer().keep_last(100));
        story.matched(&holding(7, 4 << 20));
        story.matched(&other);
        story.sent();
        story.write(1, &sample(MIB)).unwrap();
        let octets: usize = fragments(&story.sent()).iter().map(|fragment| fragment.payload.len()).sum();
        assert!(octets < 4 * 65_000, "one burst, not {octets}");
        story.pass(Duration::from_millis(10));
        let rest: usize = fragments(&story.sent()).iter().map(|fragment| fragment.payload.len()).sum();
        assert_eq!(octets + rest, MIB);
    }
}

#[test]
fn heartbeats_do_not_announce_what_is_still_on_its_way() {
    let mut story = Story::new(QosSet::writer().keep_last(5));
    let reader = reliable(7);
    story.matched(&reader);
    story.write(1, b"small").unwrap();
    story.sent();
    story.write(1, &sample(MIB)).unwrap();
    story.writer.request_acknowledgments(story.now, &mut story.out);
    assert!(heartbeats(&story.sent()).iter().all(|heartbeat| heartbeat.last.0 == 1));
    story.acknack(&reader, 2, &[2]).unwrap();
    story.pass(Duration::from_millis(10));
    let sent = story.sent();
    let numbers: Vec<u32> = fragments(&sent).iter().map(|fragment| fragment.fragment).collect();
    let distinct: BTreeSet<u32> = numbers.iter().copied().collect();
    assert_eq!(numbers.len(), distinct.len(), "what was on its way is not repeated");
    assert!(heartbeats(&sent).iter().any(|heartbeat| heartbeat.last.0 == 2));
}

#[test]
fn a_small_sample_does_not_overtake_a_large_one() {
    let mut story = Story::new(QosSet::writer().best_effort().keep_last(5));
    story.matched(&reader(7, QosSet::reader()));
    story.write(1, &sample(MIB)).unwrap();
    story.write(1, b"small").unwrap();
    assert_eq!(data(&story.sent()), []);
    story.pass(Duration::from_millis(10));
    assert_eq!(data(&story.sent()), [2]);
    assert_eq!(story.writer.history.len(), 0, "a volatile best-effort history ends empty");
}

#[test]
fn of_replaced_samples_in_the_queue_only_the_begun_and_the_last_are_sent() {
    let mut story = Story::new(QosSet::writer().best_effort().keep_last(1));
    story.matched(&reader(7, QosSet::reader()));
    for _ in 0..5 {
        story.write(1, &sample(MIB)).unwrap();
    }
    story.pass(Duration::from_millis(20));
    let numbers: BTreeSet<i64> = fragments(&story.sent()).iter().map(|fragment| fragment.number).collect();
    assert_eq!(numbers.into_iter().collect::<Vec<_>>(), [1, 5]);
}

#[test]
fn a_reader_is_told_of_what_was_replaced_in_the_queue_before_it_can_ask() {
    let mut story = Story::new(QosSet::writer().keep_last(1));
    let reader = remote(7);
    story.matched(&reader);
    story.sent();
    for _ in 0..4 {
        story.write(1, &sample(MIB)).unwrap();
    }
    story.write(1, b"newest").unwrap();
    story.pass(Duration::from_millis(20));
    let sent = story.sent();
    let large: BTreeSet<i64> = fragments(&sent).iter().map(|fragment| fragment.number).collect();
    assert_eq!((large, gaps(&sent, 5), data(&sent)), (BTreeSet::from([1]), vec![2, 3, 4], vec![5]));
    let told = |sent: &Sent| matches!(sent, Sent::Gap(_) | Sent::Data(_));
    assert!(matches!(sent.iter().find(|it| told(it)), Some(Sent::Gap(_))), "before what replaced them");
    assert_eq!(story.writer.drops().get(DropReason::ReplacedUnsent), 3);
    // It lost the first as well, and does not get it any more: there is a newer one.
    story.acknack(&reader, 1, &[1, 2, 3, 4]).unwrap();
    let sent = story.sent();
    assert_eq!((gaps(&sent, 5), data(&sent), fragments(&sent).len()), (vec![1, 2, 3, 4], vec![], 0));
}

#[test]
fn what_expires_in_the_queue_is_not_sent_and_not_waited_for() {
    let mut story = Story::new(QosSet { lifespan: Duration::from_millis(5), ..QosSet::writer().keep_all() });
    let reader = remote(7);
    story.matched(&reader);
    story.sent();
    story.write(1, &sample(MIB)).unwrap();
    story.write(1, b"short of life").unwrap();
    story.pass(Duration::from_millis(20));
    let sent = story.sent();
    assert_eq!((gaps(&sent, 2), data(&sent)), (vec![2], vec![]));
    story.acknack(&reader, 3, &[]).unwrap();
    assert!(story.writer.is_acknowledged(story.now.mono, SequenceNumber(2)));
}

#[test]
fn fact_11_only_the_fragments_asked_for_are_repeated() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let (reader, other) = (remote(7), remote(8));
    story.matched(&reader);
    story.matched(&other);
    story.write(1, &sample(50_000)).unwrap();
    story.pass(Duration::from_millis(10));
    story.sent();
    story.nack_frag(&reader, 1, &[2, 9, 30]).unwrap();
    let datagrams = story.sent_by_datagram();
    assert!(datagrams.iter().all(|(destinations, _)| *destinations == reader.locators));
    let sent: Vec<Sent> = datagrams.into_iter().flat_map(|(_, sent)| sent).collect();
    let repeated: Vec<u32> = fragments(&sent).iter().map(|fragment| fragment.fragment).collect();
    assert_eq!(repeated, [2, 9, 30]);
    assert!(sent.iter().any(|sent| matches!(sent, Sent::HeartbeatFrag(_))));
    story.nack_frag(&reader, 1, &[2, 9, 30]).unwrap();
    assert!(fragments(&story.sent()).is_empty(), "requests that crossed are answered once");
}

#[test]
fn an_acknack_for_a_large_sample_repeats_all_of_it() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let reader = remote(7);
    story.matched(&reader);
    story.write(1, &sample(50_000)).unwrap();
    story.pass(Duration::from_millis(10));
    let count = fragments(&story.sent()).len();
    story.acknack(&reader, 1, &[1]).unwrap();
    story.acknack(&reader, 1, &[1]).unwrap();
    story.pass(Duration::from_millis(2));
    assert_eq!(fragments(&story.sent()).len(), count);
}

#[test]
fn a_change_that_is_cut_otherwise_since_the_reader_moved_is_repeated_whole() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let far = remote(7);
    story.matched(&far);
    story.write(1, &sample(50_000)).unwrap();
    story.pass(Duration::from_millis(10));
    assert!(fragments(&story.sent()).len() > 30);
    // The reader got some of the fragments, then its datagrams could be larger.
    story.matched(&MatchedReader { same_host: true, ..far.clone() });
    story.nack_frag(&far, 1, &[20, 21]).unwrap();
    let repeated = story.sent();
    assert!(fragments(&repeated).is_empty());
    assert!(repeated.iter().any(|sent| matches!(sent, Sent::Data(data) if data.number == 1)));
    story.nack_frag(&far, 1, &[20, 21]).unwrap();
    assert!(story.sent().is_empty(), "requests that crossed are answered once");
}

#[test]
fn r13_requests_for_absurd_fragments_are_harmless() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let reader = remote(7);
    story.matched(&reader);
    story.write(1, &sample(50_000)).unwrap();
    story.write(1, b"small").unwrap();
    story.pass(Duration::from_millis(10));
    story.sent();
    story.nack_frag(&reader, 1, &[1_000_000, 1_000_200]).unwrap();
    story.nack_frag(&reader, 1, &[u32::MAX]).unwrap();
    story.nack_frag(&reader, 2, &[1]).unwrap();
    assert!(fragments(&story.sent()).is_empty());
    assert_eq!(story.nack_frag(&reader, 3, &[1]), Err(DropReason::ImplausibleSequence));
    assert_eq!(story.nack_frag(&reader, i64::MIN, &[1]), Err(DropReason::ImplausibleSequence));
    assert_eq!(story.nack_frag(&remote(9), 1, &[1]), Err(DropReason::NotMatched));
    for number in 0..1_000 {
        story.pass(Duration::from_micros(1));
        story.nack_frag(&reader, 1, &[1 + number % 30]).unwrap();
    }
    assert!(story.writer.retransmissions.len() <= story.writer.config.limits.retransmissions_max);
}

#[test]
fn fragments_of_a_sample_that_is_gone_are_answered_by_a_gap() {
    let mut story = Story::new(QosSet::writer().keep_last(1));
    let reader = remote(7);
    story.matched(&reader);
    story.write(1, &sample(50_000)).unwrap();
    story.pass(Duration::from_millis(10));
    story.write(1, b"newer").unwrap();
    story.sent();
    story.nack_frag(&reader, 1, &[3]).unwrap();
    assert_eq!(gaps(&story.sent(), 2), [1]);
}

/// A reader that loses datagrams at random and asks as the standard says.
struct Lossy {
    random: u64,
    lost_percent: u64,
    have: BTreeSet<u32>,
    of: u32,
}

impl Lossy {
    fn loses(&mut self) -> bool {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % 100 < self.lost_percent
    }

    /// The requests that answer one heartbeat: every window of 256 fragments with holes.
    fn missing(&self, up_to: u32) -> Vec<Vec<u32>> {
        let mut requests: Vec<Vec<u32>> = Vec::new();
        for fragment in (1..=up_to).filter(|fragment| !self.have.contains(fragment)) {
            match requests.last_mut() {
                Some(request) if fragment - request[0] < 256 => request.push(fragment),
                _ => requests.push(vec![fragment]),
            }
        }
        requests
    }
}

#[test]
fn five_megabytes_cross_a_link_that_loses_every_tenth_datagram() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let reader = remote(7);
    story.matched(&reader);
    story.sent();
    let start = story.now.mono;
    story.write(1, &sample(5 * MIB)).unwrap();
    let mut lossy = Lossy { random: 42, lost_percent: 10, have: BTreeSet::new(), of: u32::MAX };
    let mut sent_fragments = 0;
    while lossy.have.len() < lossy.of as usize {
        for (_, sent) in story.sent_by_datagram() {
            sent_fragments += fragments(&sent).len();
            if lossy.loses() {
                continue;
            }
            for fragment in fragments(&sent) {
                lossy.of = fragment.sample_bytes.div_ceil(fragment.fragment_bytes.into());
                lossy.have.insert(fragment.fragment);
            }
            let announced = sent.iter().filter_map(|sent| match sent {
                Sent::HeartbeatFrag(heartbeat) => Some(heartbeat.last_fragment),
                Sent::Heartbeat(heartbeat) if heartbeat.last.0 == 1 => Some(lossy.of),
                _ => None,
            });
            for up_to in announced.collect::<Vec<_>>() {
                for request in lossy.missing(up_to) {
                    if !lossy.loses() {
                        story.nack_frag(&reader, 1, &request).unwrap();
                    }
                }
            }
        }
        story.pass(Duration::from_micros(100));
        assert!(story.now.mono.since(start) < Duration::from_secs(2), "{} of {}", lossy.have.len(), lossy.of);
    }
    assert!(sent_fragments < lossy.of as usize * 14 / 10, "{sent_fragments} for {}", lossy.of);
    let took = story.now.mono.since(start);
    assert!(took < Duration::from_millis(300), "{took:?}");
    story.acknack(&reader, 2, &[]).unwrap();
    story.pass(Duration::from_secs(1));
    assert_eq!(story.writer.next_timeout(), None);
}

#[test]
fn a_best_effort_keep_all_writer_waits_until_its_samples_are_sent() {
    let mut story = Story::new(QosSet::writer().best_effort().keep_all());
    story.matched(&reader(7, QosSet::reader()));
    story.write(1, &sample(5 * MIB)).unwrap();
    assert_eq!(story.write(1, b"next"), Err(WriteError::Full));
    story.events();
    story.pass(Duration::from_millis(30));
    assert!(story.events().contains(&Event::Progress { endpoint: WRITER.entity }));
    story.write(1, b"next").unwrap();
}

#[test]
fn fact_11_while_a_sample_is_on_its_way_only_what_was_sent_is_announced() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let reader = remote(7);
    story.matched(&reader);
    story.sent();
    story.write(1, &sample(2 * MIB)).unwrap();
    let mut sent_so_far = 0;
    for _ in 0..20 {
        for sent in story.sent() {
            match sent {
                Sent::Fragment(fragment) => sent_so_far = sent_so_far.max(fragment.fragment),
                Sent::HeartbeatFrag(heartbeat) => assert_eq!(heartbeat.last_fragment, sent_so_far),
                other => panic!("{other:?}"),
            }
        }
        story.nack_frag(&reader, 1, &[1]).unwrap();
        story.pass(Duration::from_micros(500));
    }
    story.pass(Duration::from_millis(10));
    story.sent();
    story.pass(Duration::from_millis(5));
    assert!(!heartbeats(&story.sent()).is_empty(), "waiting for the end did not slow the questions down");
}

#[test]
fn an_acknowledgement_ends_the_repetitions_it_makes_needless() {
    let mut story = Story::new(QosSet::writer().keep_all());
    let reader = remote(7);
    story.matched(&reader);
    story.write(1, &sample(500_000)).unwrap();
    story.pass(Duration::from_millis(20));
    story.acknack(&reader, 1, &[1]).unwrap();
    story.sent();
    story.acknack(&reader, 2, &[]).unwrap();
    story.pass(Duration::from_secs(1));
    assert!(story.sent().is_empty());
    assert_eq!(story.writer.next_timeout(), None);
}

#[test]
fn the_longest_inline_qos_still_fits_the_first_fragment() {
    let mut qos = QosSet::writer().keep_all();
    qos.presentation.access_scope = crate::qos::AccessScope::Group;
    qos.presentation.coherent_access = true;
    let limits = WriterLimits { batch_bytes: 0, ..WriterLimits::default() };
    let mut story = Story::of_group(qos, limits, Some(Arc::default()));
    story.matched(&MatchedReader { same_host: false, expects_inline_qos: true, ..reliable(7) });
    story.writer.begin_coherent_changes(SequenceNumber(1));
    story.change(ChangeKind::Dispose, 1, &[0; 3_000]).unwrap();
    assert_eq!(story.writer.inline_qos.len(), routes::target::INLINE_QOS_BYTES_MAX);
    story.pass(Duration::from_millis(1));
    let sent = story.sent();
    let fragments = sent.iter().filter_map(|sent| match sent {
        Sent::Fragment(fragment) => Some((fragment.fragment, fragment.has_inline_qos)),
        _ => None,
    });
    assert_eq!(fragments.collect::<Vec<_>>(), [(1, true), (2, false), (3, false)]);
}

#[test]
fn a_sample_under_way_is_cut_anew_when_a_reader_comes_that_wants_its_inline_qos() {
    let limits = WriterLimits { has_congestion_window: false, ..WriterLimits::default() };
    let mut story = Story::with_limits(QosSet::writer().keep_all(), limits);
    let first = remote(7);
    story.matched(&first);
    story.sent();
    let sample = sample(200_000);
    story.write(1, &sample).unwrap();
    let before = fragments(&story.sent());
    assert!(before.iter().all(|fragment| !fragment.has_inline_qos));
    story.matched(&MatchedReader { expects_inline_qos: true, ..remote(8) });
    story.pass(Duration::from_millis(3));
    let after = fragments(&story.sent());
    assert!(after.iter().any(|fragment| fragment.has_inline_qos));
    let lengths: BTreeSet<usize> = after.iter().map(|fragment| fragment.payload.len()).collect();
    assert!(before[0].payload.len() > *lengths.last().unwrap(), "{lengths:?}");
    let one = after.iter().filter(|fragment| fragment.fragment == 1).count();
    assert_eq!(one, 1, "from the beginning, once");
}

/// A writer that batches, and its reader, which has room for all, after as many samples of 64 KiB and their
/// header as make a flow.
fn flow_of_long_samples() -> Story {
    let mut story = Story::with_limits(QosSet::writer().keep_last(64), WriterLimits::default());
    story.matched(&MatchedReader { receive_bytes: 64 << 20, ..reliable(7) });
    story.sent();
    for _ in 0..16 {
        story.write(1, &sample(65_540)).unwrap();
    }
    let now = story.now;
    story.writer.flush(now, &mut story.out);
    assert_eq!(story.writer.sent_last(RouteKind::SameHost), SequenceNumber(16));
    story.sent();
    story
}

#[test]
fn in_a_flow_the_end_of_a_sample_shares_a_datagram_with_the_next() {
    let mut story = flow_of_long_samples();
    for _ in 0..20 {
        story.write(1, &sample(65_540)).unwrap();
    }
    story.pass(Duration::from_millis(1));
    let last = story.writer.sent_last(RouteKind::SameHost).0;
    assert_eq!(last, 36, "the end of the last does not wait for ever");
    let (mut samples, mut datagrams) = (BTreeMap::<i64, Vec<u8>>::new(), 0);
    for (_, sent) in story.sent_by_datagram() {
        datagrams += usize::from(!fragments(&sent).is_empty());
        octets_of_samples(&sent, &mut samples);
    }
    assert!(datagrams <= 22, "{datagrams} datagrams of 20 samples");
    assert_eq!(samples.keys().copied().collect::<Vec<_>>(), (17..=36).collect::<Vec<_>>());
    assert!(samples.values().all(|octets| *octets == sample(65_540)));
}

/// What came of each sample, in order and none of it twice.
fn octets_of_samples(sent: &[Sent], samples: &mut BTreeMap<i64, Vec<u8>>) {
    for fragment in fragments(sent) {
        let octets = samples.entry(fragment.number).or_default();
        let at = (fragment.fragment - 1) as usize * usize::from(fragment.fragment_bytes);
        assert_eq!(octets.len(), at, "in order, and none twice");
        octets.extend_from_slice(&fragment.payload);
    }
}

#[test]
fn ends_that_wait_while_the_burst_is_over_are_not_forgotten() {
    let (mut waited, payload) = (0, sample(65_540));
    let bursts = [20_000, 64_000, 64_600, 65_600, 130_000, 192_000];
    for (burst_bytes_local, pause_us) in
        bursts.into_iter().flat_map(|burst| [100, 190, 400].map(|us| (burst, us)))
    {
        let limits = WriterLimits { burst_bytes_local, ..WriterLimits::default() };
        let mut story = Story::with_limits(QosSet::writer().keep_last(64), limits);
        story.matched(&MatchedReader { receive_bytes: 2 * burst_bytes_local as u32, ..reliable(7) });
        story.sent();
        let mut samples = BTreeMap::new();
        for _ in 0..24 {
            story.write(1, &payload).unwrap();
            let live = story.writer.routes.of_mut(RouteKind::SameHost).queue.first();
            let is_held = live.is_some_and(|live| matches!(live.tail, Tail::Held(_)));
            waited +=
                usize::from(is_held && !story.writer.routes.of(RouteKind::SameHost).controller.may_send());
            story.pass(Duration::from_micros(pause_us));
            let now = story.now;
            story.writer.sent(now.mono);
            octets_of_samples(&story.sent(), &mut samples);
        }
        story.pass(Duration::from_millis(50));
        octets_of_samples(&story.sent(), &mut samples);
        assert_eq!(samples.len(), 24, "{burst_bytes_local} {pause_us}");
        assert!(samples.values().all(|octets| *octets == payload), "{burst_bytes_local} {pause_us}");
    }
    assert!(waited > 0, "some end waited while the burst was over");
}

#[test]
fn an_end_that_waits_leaves_when_a_reader_comes_that_filters() {
    let mut story = flow_of_long_samples();
    for _ in 0..12 {
        story.write(1, &sample(65_540)).unwrap();
    }
    assert_eq!(story.writer.sent_last(RouteKind::SameHost), SequenceNumber(27), "the end of the last waits");
    let mut samples = BTreeMap::new();
    octets_of_samples(&story.sent(), &mut samples);
    story.matched(&content::wanting(200, MatchedReader { receive_bytes: 64 << 20, ..reliable(8) }));
    story.write(1, &sample(65_540)).unwrap();
    story.pass(Duration::from_millis(3));
    assert_eq!(story.writer.sent_last(RouteKind::SameHost), SequenceNumber(29));
    octets_of_samples(&story.sent(), &mut samples);
    assert_eq!(samples.keys().copied().collect::<Vec<_>>(), (17..=29).collect::<Vec<_>>());
    assert!(samples.values().all(|octets| *octets == sample(65_540)));
}

#[test]
fn the_end_of_a_lone_long_sample_leaves_at_once() {
    let mut story = flow_of_long_samples();
    story.pass(Duration::from_millis(5));
    story.write(1, &sample(65_540)).unwrap();
    assert_eq!(story.writer.sent_last(RouteKind::SameHost), SequenceNumber(17));
}

/// Fragments of 1 KiB, of which 63 fill a datagram, in each datagram of a sample that is written alone.
fn fragments_of_a_lone_sample(story: &mut Story, bytes: usize) -> Vec<usize> {
    story.write(1, &sample(bytes)).unwrap();
    let sent = story.sent_by_datagram();
    let mut samples = BTreeMap::new();
    sent.iter().for_each(|(_, sent)| octets_of_samples(sent, &mut samples));
    assert_eq!(samples.into_values().collect::<Vec<_>>(), [sample(bytes)]);
    let octets = |sent: &[Sent]| fragments(sent).iter().map(|it| it.payload.len()).sum::<usize>();
    let counts = sent.iter().map(|(_, sent)| octets(sent).div_ceil(1 << 10));
    counts.filter(|count| *count > 0).collect()
}

#[test]
fn of_a_lone_long_sample_what_fills_no_datagram_goes_ahead() {
    for (bytes, expected) in [
        (65_540, &[2, 63][..]),
        (100_000, &[35, 63]),
        (126 << 10, &[63, 63]),
        (200_000, &[7, 63, 63, 63]),
        (256 << 10, &[4, 63, 63, 63, 63]),
    ] {
        let mut story = flow_of_long_samples();
        story.pass(Duration::from_millis(5));
        assert_eq!(fragments_of_a_lone_sample(&mut story, bytes), expected, "{bytes}");
    }
}

#[test]
fn who_does_not_tell_what_its_socket_holds_gets_the_long_part_first() {
    let mut story = Story::with_limits(QosSet::writer().keep_last(64), WriterLimits::default());
    story.matched(&MatchedReader { receive_bytes: 0, ..reliable(7) });
    story.sent();
    assert_eq!(fragments_of_a_lone_sample(&mut story, 65_540), [63, 2]);
}

#[test]
fn no_heartbeat_names_a_sample_whose_end_waits_and_a_flush_sends_it() {
    let mut story = flow_of_long_samples();
    for _ in 0..12 {
        story.write(1, &sample(65_540)).unwrap();
    }
    let last = story.writer.sent_last(RouteKind::SameHost).0;
    assert_eq!(last, 27, "the end of the last waits for the next sample");
    let named = heartbeats(&story.sent()).iter().map(|heartbeat| heartbeat.last.0).max();
    assert!(named.is_none_or(|named| named <= last), "{named:?}");
    let now = story.now;
    story.writer.flush(now, &mut story.out);
    assert_eq!(story.writer.sent_last(RouteKind::SameHost), SequenceNumber(28));
    assert_eq!(fragments(&story.sent()).last().map(|fragment| fragment.number), Some(28));
}

#[test]
fn fragments_asked_for_share_datagrams() {
    let (mut story, reader) = (Story::new(QosSet::writer().keep_all()), reliable(7));
    story.matched(&reader);
    story.write(1, &sample(100_000)).unwrap();
    story.pass(Duration::from_millis(3));
    story.sent();
    let missing: Vec<u32> = (3..=40).chain([90]).collect();
    story.nack_frag(&reader, 1, &missing).unwrap();
    let sent = fragments(&story.sent());
    let shape: Vec<_> = sent.iter().map(|it| (it.fragment, it.payload.len())).collect();
    assert_eq!(shape, [(3, 38 << 10), (90, 1 << 10)]);
}
