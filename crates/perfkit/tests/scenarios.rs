//! Workloads of every role, between workers that reach each other through memory.

mod bus;
mod driver;

use bus::Bus;
use driver::{Worker, endpoint, run_all, spec};
use plainsong_perfkit::event::{ErrorKind, Interval, Report, Totals};
use plainsong_perfkit::spec::{
    Background, EndpointSpec, Faults, InstanceOrder, Pacing, ReadCall, ReadMethod, Role,
};
use plainsong_perfkit::{Command, Event, WorkerSpec};

/// Workers of one bus.
fn run(specs: &[WorkerSpec]) -> Vec<(Report, Vec<Interval>)> {
    let bus = Bus::default();
    let mut workers: Vec<Worker> = specs.iter().map(|_| bus.worker()).collect();
    run_all(&mut workers, specs)
}

fn publish(number: u16, instances: u32, pacing: Pacing, readers: u32) -> WorkerSpec {
    let writer = endpoint("data", ReadMethod::Listener);
    let order = InstanceOrder::RoundRobin;
    spec("pub", Role::Publish { writer, number, size: 64, instances, order, pacing, readers })
}

fn subscribe(writers: u32, instances: u32, read: ReadMethod) -> WorkerSpec {
    let reader = EndpointSpec { instances, ..endpoint("data", read) };
    spec("sub", Role::Subscribe { reader, writers, one_way: true, checksum: true })
}

fn ping(rate: u64, answers: u32, read: ReadMethod) -> WorkerSpec {
    let (writer, reader) = (endpoint("ping", read), endpoint("pong", read));
    spec("ping", Role::Ping { writer, reader, size: 64, rate, timeout_ms: 50, answers })
}

fn pong(full: bool, read: ReadMethod) -> WorkerSpec {
    let (reader, writer) = (endpoint("ping", read), endpoint("pong", read));
    spec("pong", Role::Pong { reader, writer, full })
}

fn short(spec: WorkerSpec) -> WorkerSpec {
    WorkerSpec { duration_ms: 100, ..spec }
}

fn histogram(report: &Report, name: &str) -> u64 {
    report.histograms.iter().find(|it| it.name == name).map_or(0, |it| it.count)
}

#[test]
fn a_closed_loop_measures_each_round_trip_by_every_read_method() {
    for read in [ReadMethod::Listener, ReadMethod::Waitset, ReadMethod::Polling { period_us: 100 }] {
        let done = run(&[ping(0, 1, read), pong(true, read)]);
        let (ping, pong) = (&done[0].0, &done[1].0);
        assert_eq!((ping.sent, ping.totals.received), (200, 200), "{read:?}");
        assert_eq!((ping.totals.lost, pong.sent), (0, ping.sent), "{read:?}");
        assert_eq!(histogram(ping, "round_trip"), ping.sent, "{read:?}");
        assert!(histogram(ping, "round_trip_corrected") >= ping.sent, "{read:?}");
        assert!(ping.latency_mean_ns.is_some_and(|mean| mean > 0.0), "{read:?}");
        assert_eq!(pong.totals.received, ping.sent, "{read:?}");
    }
}

#[test]
fn large_samples_stream_beside_pings_between_the_same_two_workers() {
    for read in [ReadMethod::Listener, ReadMethod::Waitset] {
        for pacing in [Pacing::Max, Pacing::Rate { rate: 1000 }] {
            let endpoint = endpoint("background", read);
            let background = Some(Background { endpoint, size: 1 << 16, pacing });
            let beside = |spec: WorkerSpec| WorkerSpec {
                background: background.clone(),
                duration_ms: 300,
                samples_max: 0,
                ..spec
            };
            let done = run(&[beside(ping(200, 1, read)), beside(pong(true, read))]);
            let (ping, pong) = (&done[0].0, &done[1].0);
            assert!(ping.totals.received > 0 && ping.totals.lost == 0, "{:?}", ping.totals);
            assert!(ping.background.received > 0, "{:?}", ping.background);
            assert_eq!(ping.background.octets, ping.background.received << 16);
            assert!(pong.background.received > 0, "{:?}", pong.background);
            assert_eq!(pong.totals.received, ping.sent, "what streams is not counted as pings");
        }
    }
}

#[test]
fn every_pong_answers() {
    let done = run(&[
        ping(0, 2, ReadMethod::Listener),
        pong(false, ReadMethod::Listener),
        pong(false, ReadMethod::Listener),
    ]);
    let ping = &done[0].0;
    assert_eq!((ping.sent, ping.totals.received), (200, 400));
    assert_eq!(ping.totals.octets, 4 * 400, "answers of 4 octets");
}

#[test]
fn an_open_loop_writes_as_often_as_it_should_and_counts_a_wrong_pong_exactly() {
    let faults =
        Faults { drop_every: 7, duplicate_every: 11, swap_every: 13, corrupt_every: 17, delay_us: 0 };
    let pong = WorkerSpec { faults, ..pong(true, ReadMethod::Waitset) };
    let ping = WorkerSpec { samples_max: 400, ..ping(2000, 1, ReadMethod::Waitset) };
    let done = run(&[ping, pong]);
    let (ping, pong) = (&done[0].0, &done[1].0);
    assert_eq!(ping.sent, 400);
    // The pong's faults began in the warm-up, so here the counts of its ping must explain all that came back.
    let counts = ping.totals;
    assert_eq!(counts.received + counts.lost + counts.corrupted, ping.sent);
    assert!(
        counts.lost > 10 && counts.corrupted > 4 && counts.duplicates > 5 && counts.reordered > 5,
        "{counts:?}"
    );
    assert!(pong.injected.lost >= counts.lost, "{:?}", pong.injected);
}

#[test]
fn a_known_delay_is_part_of_the_round_trip() {
    let faults = Faults { delay_us: 5000, ..Faults::default() };
    let done =
        run(&[ping(0, 1, ReadMethod::Listener), WorkerSpec { faults, ..pong(true, ReadMethod::Listener) }]);
    let mean = done[0].0.latency_mean_ns.expect("round trips");
    assert!(mean >= 5_000_000.0, "{mean}");
}

#[test]
fn what_a_publisher_does_wrong_a_subscriber_counts_exactly() {
    let faults =
        Faults { drop_every: 7, duplicate_every: 11, swap_every: 13, corrupt_every: 17, delay_us: 0 };
    for (instances, read) in [(1, ReadMethod::Listener), (5, ReadMethod::Waitset)] {
        // No warm-up: faults count from the first sample on. The last sample is none that is dropped.
        let publisher =
            WorkerSpec { faults, warmup_ms: 0, samples_max: 1000, ..publish(0, instances, Pacing::Max, 1) };
        let subscriber = WorkerSpec { warmup_ms: 0, ..subscribe(1, instances, read) };
        let done = run(&[publisher, subscriber]);
        let (publisher, subscriber) = (&done[0].0, &done[1].0);
        assert_eq!(publisher.sent, 1000);
        let injected = publisher.injected;
        assert!(
            injected.lost > 100
                && injected.duplicates > 50
                && injected.corrupted > 30
                && injected.reordered > 40
        );
        let expected = Totals {
            received: 1000 - injected.lost - injected.corrupted,
            octets: 64 * (1000 - injected.lost - injected.corrupted),
            ..injected
        };
        assert_eq!(subscriber.totals, expected, "{instances} instances");
        assert_eq!(histogram(subscriber, "one_way"), expected.received);
        assert_eq!(subscriber.streams.len(), instances as usize);
    }
}

#[test]
fn the_warm_up_is_not_counted() {
    let done = run(&[publish(0, 3, Pacing::Rate { rate: 5000 }, 1), subscribe(1, 3, ReadMethod::Listener)]);
    let ((publisher, intervals), (subscriber, _)) = (&done[0], &done[1]);
    assert_eq!(publisher.sent, 200);
    let all: u64 = intervals.iter().map(|interval| interval.sent).sum();
    let warm: u64 = intervals.iter().filter(|interval| interval.warmup).map(|interval| interval.sent).sum();
    assert!(warm > 0 && all > publisher.sent, "{warm} of {all} in the warm-up");
    assert_eq!((subscriber.totals.received, subscriber.totals.lost), (publisher.sent, 0));
}

#[test]
fn bursts_come_together() {
    let pacing = Pacing::Burst { count: 50, period_us: 100_000 };
    let done = run(&[publish(0, 1, pacing, 1), subscribe(1, 1, ReadMethod::Listener)]);
    let (publisher, subscriber) = (&done[0].0, &done[1].0);
    assert_eq!((publisher.sent, subscriber.totals.received), (200, 200));
    // The first may be late, the others are not put off by that.
    assert!(
        publisher.length_ns > 200_000_000,
        "four bursts, a tenth of a second apart: {}",
        publisher.length_ns
    );
}

#[test]
fn a_ramp_tells_of_each_step() {
    let pacing = Pacing::Ramp { start: 1000, step: 1000, hold_ms: 50, misses: 3 };
    let publisher = WorkerSpec { samples_max: 0, duration_ms: 400, ..publish(0, 1, pacing, 1) };
    let done = run(&[publisher, subscribe(1, 1, ReadMethod::Listener)]);
    let (publisher, subscriber) = (&done[0].0, &done[1].0);
    assert!(!publisher.phases.is_empty());
    for (number, phase) in publisher.phases.iter().enumerate() {
        assert_eq!(phase.target_rate, 1000 * (number as u64 + 1));
    }
    let sent: Vec<_> =
        publisher.phases.iter().filter(|it| it.sent > 0).map(|it| (it.phase, it.sent)).collect();
    let received: Vec<_> = subscriber.phases.iter().map(|it| (it.phase, it.totals.received)).collect();
    assert_eq!(sent, received);
    assert!(subscriber.phases[0].latency_p99_ns.is_some());
}

#[test]
fn many_writers_and_readers_are_told_apart() {
    let specs = [
        publish(0, 2, Pacing::Rate { rate: 1000 }, 2),
        publish(1, 2, Pacing::Rate { rate: 2000 }, 2),
        subscribe(2, 2, ReadMethod::Listener),
        subscribe(2, 2, ReadMethod::Polling { period_us: 1000 }),
    ];
    let specs = specs.map(|spec| WorkerSpec { samples_max: 0, duration_ms: 300, ..spec });
    let done = run(&specs);
    for (subscriber, _) in &done[2..] {
        for number in [0, 1] {
            let of_writer = subscriber.streams.iter().filter(|stream| stream.writer == number);
            let received: u64 = of_writer.map(|stream| stream.totals.received).sum();
            assert_eq!(received, done[usize::from(number)].0.sent);
        }
        assert_eq!(subscriber.totals.lost, 0);
    }
}

#[test]
fn calls_of_a_reader_are_timed_one_by_one() {
    let (writer, reader) =
        (endpoint("cost", ReadMethod::Polling { period_us: 0 }), endpoint("cost", ReadMethod::Listener));
    let writer = EndpointSpec { instances: 100, ..writer };
    let calls = vec![ReadCall::TakeOne, ReadCall::Lookup, ReadCall::ReadAll];
    let done = run(&[WorkerSpec {
        duration_ms: 300,
        ..spec("cost", Role::ReadCost { writer, reader, size: 16, calls })
    }]);
    let report = &done[0].0;
    assert_eq!(report.totals.received, 100);
    assert_eq!(histogram(report, "call:take_one"), 100, "each sample once, after the other calls");
    assert!(histogram(report, "call:lookup") > 0 && histogram(report, "call:read_all") > 0);
}

#[test]
fn discovery_ends_when_all_have_found_each_other() {
    let role = |total| Role::Discover { participants: 2, endpoints: 3, participants_total: total };
    let done = run(&[spec("a", role(4)), spec("b", role(4))]);
    for (report, _) in &done {
        assert!(report.matched_after_ns.is_some());
        assert_eq!(histogram(report, "matched"), 2);
    }
    let alone = run(&[WorkerSpec { duration_ms: 100, ..spec("a", role(3)) }]);
    assert_eq!(alone[0].0.matched_after_ns, None);
}

#[test]
fn serialization_is_measured_or_refused() {
    let done = run(&[short(spec("encode", Role::Encode { type_name: "numbers".to_owned() }))]);
    assert_eq!(done[0].0.encode.expect("a cost").encoded_octets, 8);
    let mut worker = Bus::default().worker();
    worker.configure(&spec("encode", Role::Encode { type_name: "hats".to_owned() }));
    assert!(matches!(worker.next(), Event::Ready { .. }));
    worker.tell(&Command::Start { at_ns: 0 });
    assert!(matches!(worker.next(), Event::Error { kind: ErrorKind::Unsupported, .. }));
}

#[test]
fn a_stop_gives_a_report_at_any_time() {
    let bus = Bus::default();
    let mut early = bus.worker();
    early.tell(&Command::Stop);
    assert_eq!(early.report().sent, 0);

    let mut waiting = bus.worker();
    waiting.configure(&publish(0, 1, Pacing::Max, 1));
    waiting.tell(&Command::Stop);
    assert_eq!(waiting.report().sent, 0, "while nobody matches");

    let mut reading = bus.worker();
    let long = |spec: WorkerSpec| WorkerSpec { duration_ms: 3_600_000, samples_max: 0, ..spec };
    reading.configure(&long(subscribe(1, 1, ReadMethod::Listener)));
    let mut writing = bus.worker();
    writing.configure(&long(publish(0, 1, Pacing::Rate { rate: 1000 }, 1)));
    for worker in [&mut reading, &mut writing] {
        assert!(matches!(worker.next(), Event::Ready { .. }));
        worker.tell(&Command::Start { at_ns: 0 });
    }
    std::thread::sleep(std::time::Duration::from_millis(200));
    writing.tell(&Command::Stop);
    let sent = writing.report().sent;
    reading.tell(&Command::Stop);
    let received = reading.report().totals.received;
    assert!(sent > 0 && received == sent, "{received} of {sent}");
    reading.tell(&Command::Stop);
    reading.tell(&Command::Hello);
    assert!(matches!(reading.next(), Event::Hello { .. }), "a report is given once");

    // A stop is for the work it came in.
    writing.configure(&publish(0, 1, Pacing::Max, 1));
    assert!(matches!(writing.next(), Event::Ready { .. }));
    writing.tell(&Command::Start { at_ns: 0 });
    assert_eq!(writing.report().sent, 200);
}

#[test]
fn what_cannot_be_done_ends_the_worker_with_a_reason() {
    let kind = |worker: &mut Worker| match worker.next() {
        Event::Error { kind, message } => (kind, message),
        other => panic!("instead of an error: {other:?}"),
    };
    let mut worker = Bus::default().worker();
    worker.line("{\"command\":\"dance\"}");
    assert_eq!(kind(&mut worker).0, ErrorKind::Protocol);

    let mut worker = Bus::default().worker();
    worker.tell(&Command::Start { at_ns: 0 });
    assert_eq!(kind(&mut worker).0, ErrorKind::Protocol);

    let mut worker = Bus::default().worker();
    worker.configure(&WorkerSpec { match_timeout_ms: 20, ..publish(0, 1, Pacing::Max, 2) });
    let (unmatched, message) = kind(&mut worker);
    assert_eq!(
        (unmatched, message.as_str()),
        (ErrorKind::Unmatched, "0 of 2 readers of topic data are matched after 20 ms")
    );

    let mut worker = Bus::default().worker();
    let mut multicast = publish(0, 1, Pacing::Max, 1);
    multicast.session.multicast = Some(true);
    worker.configure(&multicast);
    assert_eq!(kind(&mut worker), (ErrorKind::Unsupported, "memory has no multicast".to_owned()));

    let mut worker = Bus::default().worker();
    worker.configure(&subscribe(100, 1_000_000, ReadMethod::Listener));
    assert_eq!(kind(&mut worker).0, ErrorKind::Unsupported, "more streams than can be counted");
}
