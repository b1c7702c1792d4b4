//! Readers that see samples come as they would from a network.

use crate::payload::Maker;

use super::*;

fn expectation() -> Expectation {
    Expectation { writers: 2, instances: 3, one_way: true, checksum: true, exclusive: false }
}

struct Play {
    counting: Counting,
    maker: Maker,
    now_ns: u64,
}

impl Play {
    fn new(expectation: Expectation) -> Self {
        let counting = Counting::new(expectation).expect("few streams");
        Self { counting, maker: Maker::new(64, 5), now_ns: 1_000_000 }
    }

    /// A sample that comes 1 µs after the one before and took `latency_ns`.
    fn comes(&mut self, head: Head, instance: u32, latency_ns: u64) {
        self.now_ns += 1000;
        let payload = self.maker.make(&Head { due_ns: self.now_ns - latency_ns, ..head });
        self.counting.sample(|| self.now_ns, Sample { instance, payload });
    }
}

fn head(writer: u16, sequence: u32) -> Head {
    Head { writer, sequence, ..Head::default() }
}

#[test]
fn losses_duplicates_and_order_are_counted_by_writer_and_instance() {
    let mut play = Play::new(expectation());
    for sequence in [0, 1, 4, 3, 3, 5] {
        play.comes(head(0, sequence), 1, 500);
    }
    play.comes(head(1, 2), 0, 500);
    let counted = play.counting.finish(play.now_ns);
    let first = Totals { received: 5, octets: 5 * 64, lost: 1, duplicates: 1, reordered: 1, corrupted: 0 };
    let second = Totals { received: 1, octets: 64, lost: 2, ..Totals::default() };
    assert_eq!(
        counted.streams,
        [
            Stream { writer: 0, instance: Some(1), totals: first },
            Stream { writer: 1, instance: Some(0), totals: second }
        ]
    );
    let all = Totals { received: 6, octets: 6 * 64, lost: 3, duplicates: 1, reordered: 1, corrupted: 0 };
    assert_eq!(counted.totals, all);
}

#[test]
fn good_samples_are_in_all_counts_whenever_these_are_asked_for() {
    let mut play = Play::new(Expectation { writers: 1, instances: 1, ..expectation() });
    let samples = |play: &mut Play, sequences: Range<u32>, phase| {
        sequences.for_each(|sequence| play.comes(Head { phase, ..head(0, sequence) }, 0, 500));
    };
    samples(&mut play, 0..10, 0);
    // They came before anybody said what is measured, and count all the same.
    let end_ns = play.now_ns + 10_000;
    play.counting.measures_in(1_000_000..end_ns);
    samples(&mut play, 10..13, 0);
    assert_eq!(play.counting.received(), 13);
    let interval = |play: &mut Play| play.counting.end_interval(&mut histogram()).0;
    assert_eq!((interval(&mut play).received, interval(&mut play).received), (13, 0));
    samples(&mut play, 14..17, 1);
    samples(&mut play, 17..20, 1);
    // Six of seven 1 µs apart have come before the end; the first of these is the last of them, the others
    // are late.
    samples(&mut play, 20..24, 1);
    let last = interval(&mut play);
    assert_eq!((last.received, last.octets, last.lost), (10, 10 * 64, 1));
    let counted = play.counting.finish(play.now_ns);
    assert_eq!((counted.totals.received, counted.totals.octets, counted.totals.lost), (23, 23 * 64, 1));
    assert_eq!((counted.in_time.received, counted.in_time.octets), (20, 20 * 64));
    assert_eq!(counted.streams[0].totals, counted.totals);
    let phases: Vec<_> = counted.phases.iter().map(|it| (it.totals.received, it.length_ns)).collect();
    assert_eq!(phases, [(13, 12_000), (10, 9_000)]);
    assert_eq!(counted.length_ns, end_ns - 1_000_000);
}

/// Samples of one writer, one each millisecond, of which none came for so long: then all at once.
fn stalled(missing: Option<u32>) -> Counted {
    let mut play = Play::new(Expectation { writers: 1, instances: 1, ..expectation() });
    let ms = 1_000_000;
    for sequence in (0..500).filter(|it| Some(*it) != missing) {
        let due_ns = 1_000_000_000 + u64::from(sequence) * ms;
        let stands_still = (100..300).contains(&sequence);
        play.now_ns = if stands_still { 1_300 * ms } else { due_ns + ms };
        let payload = play.maker.make(&Head { due_ns, ..head(0, sequence) });
        play.counting.sample(|| play.now_ns, Sample { instance: 0, payload });
    }
    play.counting.finish(play.now_ns)
}

#[test]
fn a_reader_is_behind_until_it_gets_samples_in_time_again() {
    let ms = 1_000_000;
    let stall = Stall { begin_ns: 1_100 * ms, end_ns: Some(1_300 * ms) };
    assert_eq!(stalled(None).stalls, [stall]);
    assert_eq!(stalled(Some(5)).stalls, [stall], "what was lost before does not count");
    let never = Stall { end_ns: None, ..stall };
    assert_eq!(stalled(Some(150)).stalls, [never], "one of it is still missing");
}

#[test]
fn what_a_product_repairs_after_the_end_is_not_lost_but_is_in_no_rate() {
    let mut play = Play::new(expectation());
    play.counting.measures_in(1_000_500..1_003_500);
    for sequence in [0, 1, 3, 2, 4] {
        play.comes(head(0, sequence), 1, 500);
    }
    let counted = play.counting.finish(play.now_ns);
    assert_eq!((counted.totals.received, counted.totals.lost), (5, 0));
    assert_eq!(counted.in_time, InTime { received: 3, octets: 3 * 64 });
    assert_eq!(counted.length_ns, 3000);
}

#[test]
fn the_warm_up_is_seen_in_intervals_alone() {
    let mut play = Play::new(expectation());
    play.comes(Head { warmup: true, sequence: 900, ..Head::default() }, 0, 500);
    play.comes(head(0, 0), 0, 500);
    let (interval, _) = play.counting.end_interval(&mut histogram());
    assert_eq!(interval.received, 2);
    let counted = play.counting.finish(play.now_ns);
    assert_eq!((counted.totals.received, counted.totals.lost), (1, 0));
    assert_eq!(counted.moments.mean(), Some(500.0));
}

#[test]
fn a_corrupted_sample_is_not_lost_as_well() {
    let mut play = Play::new(expectation());
    for sequence in 0..10 {
        let mut payload = play.maker.make(&head(0, sequence)).to_vec();
        if sequence % 3 == 1 {
            payload[40] ^= 4;
        }
        play.counting.sample(|| u64::from(sequence) + 1, Sample { instance: 0, payload: &payload });
    }
    // One whose writer does not exist, one of an instance that does not, and one too small to be any.
    play.comes(head(9, 0), 0, 0);
    play.comes(head(0, 0), 7, 0);
    play.counting.sample(|| 99, Sample { instance: 0, payload: &[1] });
    let totals = play.counting.finish(play.now_ns).totals;
    assert_eq!((totals.received, totals.lost, totals.corrupted), (7, 0, 6));
}

#[test]
fn each_step_of_a_ramp_is_counted_apart() {
    let mut play = Play::new(expectation());
    for sequence in 0..100_u32 {
        let phase = u16::try_from(sequence / 50).expect("two steps");
        play.comes(Head { phase, ..head(0, sequence) }, 0, 1000 * u64::from(phase + 1));
    }
    let phases = play.counting.finish(play.now_ns).phases;
    let told: Vec<_> = phases.iter().map(|it| (it.phase, it.totals.received, it.length_ns)).collect();
    assert_eq!(told, [(0, 50, 49_000), (1, 50, 49_000)]);
    assert_eq!(phases[0].latency_p99_ns, Some(1000));
    assert!((1999..=2001).contains(&phases[1].latency_p50_ns.expect("latencies")));
}

#[test]
fn a_new_owner_is_a_switch_and_not_a_loss() {
    let mut play = Play::new(Expectation { exclusive: true, ..expectation() });
    for sequence in 0..5 {
        play.comes(head(0, sequence), 0, 0);
    }
    play.now_ns += 50_000;
    for sequence in 60..65 {
        play.comes(head(1, sequence), 0, 0);
    }
    let counted = play.counting.finish(play.now_ns);
    assert_eq!((counted.totals.received, counted.totals.lost), (10, 0));
    let [switch] = counted.switches[..] else { panic!("one change of owner: {:?}", counted.switches) };
    assert_eq!((switch.from, switch.to, switch.gap_ns), (0, 1, 51_000));
}

#[test]
fn several_writers_cannot_be_told_apart_in_four_octets() {
    let mut play = Play::new(expectation());
    play.maker = Maker::new(4, 1);
    for sequence in [0, 0, 1, 1] {
        play.comes(head(0, sequence), 0, 0);
    }
    let totals = play.counting.finish(play.now_ns).totals;
    assert_eq!((totals.received, totals.duplicates, totals.lost), (4, 0, 0));
}

#[test]
fn a_million_instances_are_counted_in_bounded_memory() {
    let expectation =
        Expectation { writers: 1, instances: 1_000_000, one_way: false, checksum: false, ..expectation() };
    let mut play = Play::new(expectation);
    play.maker = Maker::new(16, 1);
    for instance in 0..1_000_000 {
        play.comes(head(0, 0), instance, 0);
    }
    play.comes(head(0, 2), 999_999, 0);
    let counted = play.counting.finish(play.now_ns);
    assert_eq!((counted.totals.received, counted.totals.lost), (1_000_001, 1));
    assert_eq!(counted.streams.len(), 1);
    assert_eq!(counted.streams[0].instance, None);
}

#[test]
fn a_sample_that_does_not_say_when_it_was_due_comes_with_the_last_that_does() {
    let mut play = Play::new(Expectation { writers: 1, ..expectation() });
    let comes = |play: &mut Play, sequence: u32, due_ns: u64, at_ns: Option<u64>| {
        let payload = play.maker.make(&Head { due_ns, ..head(0, sequence) });
        let clock = || at_ns.expect("the clock is not read for it");
        play.counting.sample(clock, Sample { instance: 0, payload });
    };
    comes(&mut play, 0, 0, Some(1_000));
    comes(&mut play, 1, 1_500, Some(2_000));
    comes(&mut play, 2, 0, None);
    comes(&mut play, 3, 0, None);
    comes(&mut play, 5, 2_900, Some(3_000));
    assert_eq!(play.counting.last_heard_ns(), 3_000);
    let counted = play.counting.finish(4_000);
    assert_eq!((counted.totals.received, counted.totals.lost), (5, 1), "it counts as any other");
    assert_eq!(counted.moments.mean(), Some(300.0), "but has no latency");

    let mut play = Play::new(Expectation { exclusive: true, ..expectation() });
    comes(&mut play, 0, 1_500, Some(2_000));
    comes(&mut play, 1, 0, Some(9_000));
    assert_eq!(play.counting.last_heard_ns(), 9_000, "times of owners are told exactly");
}
