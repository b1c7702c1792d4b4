//! A run that nobody measured: every kind, every status, and names that try to break out.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use plainsong_perfkit::adapter::{Description, EncodeCost};
use plainsong_perfkit::event::{Interval, NamedHistogram, Phase, Report, Stream, Switch, Totals};
use serde_json::{Value, json};

use crate::perf::results::{
    Calibration, Cell, Floor, HashedFile, Host, Program, Repetition, ResourceSample, Resources, Run, SCHEMA,
    Status, Traffic, WorkerResult,
};

/// A name that would be a program if it were not escaped.
pub(crate) const HOSTILE: &str = "<script>alert('\"x\"')</script>&amp;";

pub(crate) const ADAPTERS: [&str; 5] = ["plainsong", "cyclone", "cyclone11", "fastdds", "udp"];

/// How slow a product is, in the world of this file.
fn slowness(adapter: &str) -> f64 {
    match adapter {
        "udp" => 0.7,
        "plainsong" => 1.0,
        "cyclone" => 1.15,
        "cyclone11" => 1.08,
        "fastdds" => 1.6,
        _ => 2.0,
    }
}

/// Xorshift: enough for curves that look like measured ones.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    fn part(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About normal.
    fn bell(&mut self) -> f64 {
        (0..6).map(|_| self.part()).sum::<f64>() * 1.41 - 4.24
    }
}

/// A histogram of so many latencies around a median, with a tail.
pub(crate) fn histogram(name: &str, count: u64, median_ns: f64, noise: &mut Noise) -> NamedHistogram {
    let mut histogram: Histogram<u64> = Histogram::new(3).unwrap();
    let drift = 1.0 + 0.03 * noise.bell();
    for _ in 0..count {
        let tail = if noise.part() < 0.01 { 2.0 + 3.0 * noise.part() } else { 1.0 };
        let value = median_ns * drift * (0.12 * noise.bell()).exp() * tail;
        histogram.record(value as u64).unwrap();
    }
    let mut octets = Vec::new();
    V2DeflateSerializer::new().serialize(&histogram, &mut octets).unwrap();
    NamedHistogram { name: name.to_owned(), count, data: STANDARD.encode(octets) }
}

fn intervals(count: u64, rate: f64, median_ns: Option<f64>, noise: &mut Noise) -> Vec<Interval> {
    (0..count)
        .map(|second| {
            let received = (rate * (1.0 + 0.04 * noise.bell())) as u64;
            let scaled =
                |factor: f64| median_ns.map(|median| (median * factor * (1.0 + 0.05 * noise.part())) as u64);
            let [p50, p99, max] = [1.0, 2.2, 6.0].map(scaled);
            Interval {
                start_ns: 1_000_000_000_000 + second * 1_000_000_000,
                length_ns: 1_000_000_000,
                warmup: second < 2,
                received,
                sent: received,
                octets: received * 64,
                latency_p50_ns: p50,
                latency_p99_ns: p99,
                latency_max_ns: max,
                ..Interval::default()
            }
        })
        .collect()
}

pub(crate) fn worker(name: &str, adapter: &str, report: Report, noise: &mut Noise) -> WorkerResult {
    let samples = (0..12_u64)
        .map(|second| ResourceSample {
            at_ns: 1_000_000_000_000 + second * 1_000_000_000,
            cpu_percent: 40.0 + 10.0 * noise.part(),
            resident_octets: 6_000_000 + second * 1000,
        })
        .collect();
    WorkerResult {
        name: name.to_owned(),
        host: "local".to_owned(),
        adapter: adapter.to_owned(),
        pid: 4711,
        ready_after_ns: Some(3_000_000),
        intervals: Vec::new(),
        report: Some(report),
        resources: Resources {
            user_ns: 3_000_000_000,
            system_ns: 2_000_000_000,
            wall_ns: 10_000_000_000,
            resident_octets_max: 6_500_000,
            own_octets_max: 1_500_000,
            voluntary_switches: 123_456,
            threads: [("main".to_owned(), 4_000_000_000), (HOSTILE.to_owned(), 1_000_000_000)].into(),
            samples,
            traffic: Traffic { interface_octets: 9_000_000, interface_packets: 80_000, ..Traffic::default() },
            ..Resources::default()
        },
        exit: "exit 0".to_owned(),
    }
}

pub(crate) fn ok(number: u32, workers: Vec<WorkerResult>) -> Repetition {
    Repetition { number, order: number * 7, status: Status::Ok, workers, ..Repetition::default() }
}

pub(crate) fn bad(number: u32, status: Status, reason: &str) -> Repetition {
    Repetition { number, status, reason: reason.to_owned(), ..Repetition::default() }
}

pub(crate) fn cell(
    kind: &str,
    adapter: &str,
    peer: &str,
    parameters: Value,
    repetitions: Vec<Repetition>,
) -> Cell {
    let parameters: BTreeMap<String, Value> = serde_json::from_value(parameters).unwrap();
    let values: Vec<String> = parameters.values().map(|value| value.to_string().replace('"', "")).collect();
    Cell {
        id: format!("{kind}.{adapter}~{peer}.{}", values.join(".")),
        scenario: kind.to_owned(),
        kind: kind.to_owned(),
        adapter: adapter.to_owned(),
        peer: peer.to_owned(),
        parameters,
        repetitions,
        ..Cell::default()
    }
}

fn median_ns(adapter: &str, size: u64) -> f64 {
    slowness(adapter) * (40_000.0 + size as f64 * 0.6)
}

/// Round trips of one payload.
pub(crate) fn ping(kind: &str, adapter: &str, peer: &str, parameters: Value, count: u64, seed: u64) -> Cell {
    let size = parameters["size"].as_u64().unwrap_or(64);
    let noise = &mut Noise::new(seed * 7919 + size);
    let median = f64::midpoint(median_ns(adapter, size), median_ns(peer, size));
    let repetitions = (0..5)
        .map(|number| {
            let mut histograms = vec![histogram("round_trip", count, median, noise)];
            if kind == "pingpong" {
                histograms.push(histogram("round_trip_corrected", count, median * 1.05, noise));
            }
            let report = Report {
                length_ns: 10_000_000_000,
                sent: count,
                totals: Totals {
                    received: count,
                    octets: count * size,
                    lost: u64::from(number == 3),
                    ..Totals::default()
                },
                histograms,
                recorder_cost_ns: 45.0,
                ..Report::default()
            };
            let mut ping = worker("ping", adapter, report, noise);
            ping.intervals = intervals(12, count as f64 / 10.0, Some(median), noise);
            let pong = worker("pong-0", peer, Report { sent: count, ..Report::default() }, noise);
            ok(number, vec![ping, pong])
        })
        .collect();
    cell(kind, adapter, peer, parameters, repetitions)
}

/// A flow to so many readers.
pub(crate) fn flow(kind: &str, adapter: &str, parameters: Value, seed: u64) -> Cell {
    let size = parameters["size"].as_u64().unwrap_or(64);
    let readers = parameters["subscribers"].as_u64().unwrap_or(1);
    let noise = &mut Noise::new(seed * 104_729 + size + readers);
    let rate = 800_000.0 / slowness(adapter) / (1.0 + size as f64 / 700.0) / readers as f64;
    let repetitions = (0..4)
        .map(|number| {
            let received = (rate * 10.0 * (1.0 + 0.02 * noise.bell())) as u64;
            let sent = Report { sent: received, length_ns: 10_000_000_000, ..Report::default() };
            let mut workers = vec![worker("pub-0", adapter, sent, noise)];
            for reader in 0..readers.min(4) {
                let lost = if size > 16_000 { received / 50 } else { 0 };
                let totals =
                    Totals { received: received - lost, octets: received * size, lost, ..Totals::default() };
                let report = Report {
                    length_ns: 10_000_000_000,
                    totals,
                    streams: vec![Stream { writer: 0, instance: None, totals }],
                    histograms: vec![histogram("one_way", 400, 90_000.0 * slowness(adapter), noise)],
                    ..Report::default()
                };
                let mut subscriber = worker(&format!("sub-{reader}"), adapter, report, noise);
                subscriber.intervals = intervals(12, rate, None, noise);
                workers.push(subscriber);
            }
            ok(number, workers)
        })
        .collect();
    cell(kind, adapter, adapter, parameters, repetitions)
}

fn ramp(adapter: &str, noise: &mut Noise) -> Cell {
    let most = 52_000.0 / slowness(adapter);
    let phases = |writer: bool| -> Vec<Phase> {
        (0..10_u16)
            .map(|phase| {
                let target_rate = 8000 * (u64::from(phase) + 1);
                let reached = (target_rate as f64).min(most) as u64 * 5;
                let load = target_rate as f64 / most;
                let totals =
                    Totals { received: reached, lost: (target_rate * 5 - reached) / 3, ..Totals::default() };
                Phase {
                    phase,
                    target_rate: if writer { target_rate } else { 0 },
                    length_ns: 5_000_000_000,
                    sent: if writer { target_rate * 5 } else { 0 },
                    totals: if writer { Totals::default() } else { totals },
                    latency_p50_ns: (!writer).then_some((40_000.0 * (1.0 + load.powi(6))) as u64),
                    latency_p99_ns: (!writer).then_some((90_000.0 * (1.0 + load.powi(8))) as u64),
                }
            })
            .collect()
    };
    let report = |writer: bool| Report {
        phases: phases(writer),
        length_ns: 50_000_000_000,
        sent: u64::from(writer),
        ..Report::default()
    };
    let workers =
        vec![worker("pub-0", adapter, report(true), noise), worker("sub-0", adapter, report(false), noise)];
    cell("ramp", adapter, adapter, json!({"size": 64}), vec![ok(0, workers)])
}

fn failover(adapter: &str, noise: &mut Noise) -> Cell {
    let repetitions = (0..3)
        .map(|number| {
            let gap_ns = (slowness(adapter) * 2.0e8 * (1.0 + 0.1 * noise.part())) as u64;
            let switches = vec![Switch { at_ns: 4_000_000_000 + gap_ns, from: 1, to: 0, gap_ns }];
            let totals = Totals { received: 9800, octets: 627_200, lost: 200, ..Totals::default() };
            let report = Report { length_ns: 10_000_000_000, switches, totals, ..Report::default() };
            ok(
                number,
                vec![
                    worker("pub-0", adapter, Report::default(), noise),
                    worker("sub-0", adapter, report, noise),
                ],
            )
        })
        .collect();
    cell("failover", adapter, adapter, json!({"rate": 1000, "liveliness": "200ms"}), repetitions)
}

fn discovery(adapter: &str, participants: u64, noise: &mut Noise) -> Cell {
    let repetitions = (0..3)
        .map(|number| {
            let workers = (0..2_u32)
                .map(|place| {
                    let after = slowness(adapter) * participants as f64 * 2.0e6 * (1.0 + 0.1 * noise.part());
                    let report = Report { matched_after_ns: Some(after as u64), ..Report::default() };
                    worker(&format!("discover-{place}"), adapter, report, noise)
                })
                .collect();
            ok(number, workers)
        })
        .collect();
    cell("discovery", adapter, adapter, json!({"participants": participants, "endpoints": 10}), repetitions)
}

fn encode(adapter: &str, type_name: &str, noise: &mut Noise) -> Cell {
    let repetitions = (0..3)
        .map(|number| {
            let encode_ns = slowness(adapter) * 20.0 * type_name.len() as f64 * (1.0 + 0.05 * noise.part());
            let cost = EncodeCost { encode_ns, decode_ns: encode_ns * 1.4, encoded_octets: 360 };
            ok(
                number,
                vec![worker("encode", adapter, Report { encode: Some(cost), ..Report::default() }, noise)],
            )
        })
        .collect();
    cell("encode", adapter, adapter, json!({"type": type_name}), repetitions)
}

fn read_cost(adapter: &str, instances: u64, noise: &mut Noise) -> Cell {
    let histograms = vec![
        histogram("call:lookup", 2000, 200.0 + instances as f64 / 5000.0, noise),
        histogram("call:read_instance", 2000, 900.0, noise),
    ];
    let report = Report { histograms, ..Report::default() };
    let workers = vec![worker("cost", adapter, report, noise)];
    cell("read_cost", adapter, adapter, json!({"instances": instances, "size": 64}), vec![ok(0, workers)])
}

fn soak(adapter: &str, noise: &mut Noise) -> Cell {
    let mut cell = flow("soak", adapter, json!({"size": 64, "rate": 1000}), 5);
    cell.repetitions.truncate(1);
    for worker in cell.repetitions.iter_mut().flat_map(|repetition| &mut repetition.workers) {
        worker.intervals = intervals(600, 1000.0, Some(50_000.0), noise);
        worker.resources.samples = (0..600_u64)
            .map(|second| ResourceSample {
                at_ns: 1_000_000_000_000 + second * 1_000_000_000,
                cpu_percent: 5.0,
                resident_octets: 6_000_000 + second * 400,
            })
            .collect();
    }
    cell
}

/// Every way not to be ok.
fn troubles() -> Vec<Cell> {
    let parameters = || json!({"size": 64, "reliable": true});
    let each = [
        (Status::Unsupported, "the adapter has no content filter: choose another reader"),
        (Status::Unmatched, "sub-0 found no writer in 10 s: is the domain the same?"),
        (Status::Failed, HOSTILE),
        (Status::Crashed, "pub-0 ended by signal 11; its last words are in cells/x/0/pub-0.ndjson"),
        (Status::Hung, "ping did not answer for 30 s and was killed"),
        (Status::Skipped, ""),
    ];
    let mut cells: Vec<Cell> = each
        .into_iter()
        .enumerate()
        .map(|(place, (status, reason))| {
            let adapter = ADAPTERS.get(place % ADAPTERS.len()).copied().unwrap_or("plainsong");
            let mut cell = cell(
                "throughput",
                adapter,
                adapter,
                parameters(),
                vec![bad(0, status, reason), bad(1, status, reason)],
            );
            cell.scenario = "troubles".to_owned();
            cell.id = format!("troubles.{place}");
            cell
        })
        .collect();
    let mut none = cell("throughput", "hostile", "hostile", parameters(), Vec::new());
    none.scenario = HOSTILE.to_owned();
    cells.push(none);
    let mut silent = cell("pingpong", "plainsong", "plainsong", parameters(), vec![ok(0, Vec::new())]);
    silent.scenario = "troubles".to_owned();
    silent.id = "troubles.silent".to_owned();
    cells.push(silent);
    cells
}

fn calibration() -> Calibration {
    let sizes = [4_u64, 64, 1024, 16_384];
    let trips = |factor: f64| {
        let each = sizes.iter().map(|&size| {
            (size, Floor { p50: factor * (25_000.0 + size as f64 * 0.3), p99: factor * 60_000.0 })
        });
        each.collect::<BTreeMap<_, _>>()
    };
    let rates = |factor: f64| {
        sizes.iter().map(|&size| (size, factor * 500_000.0 / (1.0 + size as f64 / 9000.0))).collect()
    };
    Calibration {
        clock_read_ns: 21.0,
        recorder_ns: 43.0,
        system_call_ns: 180.0,
        timer_slack_ns: 52_000.0,
        futex_wakeup_round_trip_ns: 9_000.0,
        pipe_wakeup_round_trip_ns: 12_000.0,
        spin_round_trip_ns: 210.0,
        udp_sendto_ns: 2_300.0,
        udp_round_trip_ns: trips(1.0),
        udp_busy_round_trip_ns: trips(0.4),
        unix_round_trip_ns: trips(0.7),
        udp_datagrams_per_s: rates(1.0),
        udp_gso_datagrams_per_s: rates(6.0),
        memcpy_octets_per_s: [(64, 2.0e10), (65_536, 1.2e10)].into(),
    }
}

/// A run without a cell, on one host.
pub(crate) fn empty(name: &str) -> Run {
    let described = |product: &str, version: &str| Description {
        product: product.to_owned(),
        version: version.to_owned(),
        features: vec!["listener".to_owned(), "rtps".to_owned()],
    };
    let adapters = [
        ("plainsong", described("Plainsong", "0.1.0")),
        ("cyclone", described("Cyclone DDS", "0.10.2")),
        ("cyclone11", described("Cyclone DDS", "11.0.1")),
        ("fastdds", described("Fast DDS", "2.9.1")),
        ("udp", described("raw UDP", "")),
        ("hostile", described(HOSTILE, HOSTILE)),
    ];
    let host = Host {
        name: "local".to_owned(),
        hostname: "bench-1".to_owned(),
        kernel: "6.18.0".to_owned(),
        cpu: "Example CPU at 2.0 GHz".to_owned(),
        cpus: 2,
        memory_octets: 24 << 30,
        virtualization: "kvm".to_owned(),
        sysctls: [("net.core.rmem_max".to_owned(), "4194304".to_owned())].into(),
        load_before: 1.25,
        ..Host::default()
    };
    Run {
        schema: SCHEMA,
        name: name.to_owned(),
        started_unix_ms: 1_795_318_622_000,
        finished_unix_ms: Some(1_795_322_222_000),
        plainsong_version: "0.1.0".to_owned(),
        campaign: json!({"schema": 1, "name": name, "note": HOSTILE}),
        hosts: vec![host],
        adapters: adapters.into_iter().map(|(name, description)| (name.to_owned(), description)).collect(),
        programs: programs(),
        calibration: Some(calibration()),
        cores_nearest_ns: None,
        cells: Vec::new(),
    }
}

fn programs() -> Vec<Program> {
    let file = |path: &str| HashedFile { path: path.to_owned(), octets: 1 << 20, sha256: "5e".repeat(32) };
    let program = |adapter: &str, build: &str, files: &[&str]| Program {
        adapter: adapter.to_owned(),
        hosts: vec!["local".to_owned()],
        build: build.to_owned(),
        files: files.iter().map(|path| file(path)).collect(),
    };
    vec![
        program("plainsong", "release profile, rustc 1.95.0", &["~/bin/plainsong", "/lib/libc.so.6"]),
        program("cyclone", HOSTILE, &["/opt/perf-adapter-cyclone", "/usr/lib/libddsc.so.0.10.2"]),
    ]
}

/// A run with everything.
pub(crate) fn whole(samples: u64) -> Run {
    let mut run = empty("synthetic");
    let noise = &mut Noise::new(20_261_122);
    for (place, adapter) in ADAPTERS.into_iter().enumerate() {
        let seed = place as u64 + 1;
        for power in [2_u32, 4, 6, 8, 10, 12, 14] {
            let size = 1_u64 << power;
            let cell =
                ping("pingpong", adapter, adapter, json!({"size": size, "reliable": true}), samples, seed);
            run.cells.push(cell);
            for reliable in [true, false] {
                run.cells.push(flow(
                    "throughput",
                    adapter,
                    json!({"size": size, "reliable": reliable}),
                    seed,
                ));
            }
        }
        for rate in [100, 1000, 10_000] {
            run.cells.push(ping(
                "latency_at_rate",
                adapter,
                adapter,
                json!({"size": 64, "rate": rate}),
                samples,
                seed + rate,
            ));
        }
        for subscribers in [1, 3, 10, 25] {
            for publishers in [1, 3, 10, 25] {
                run.cells.push(flow(
                    "fan",
                    adapter,
                    json!({"size": 64, "publishers": publishers, "subscribers": subscribers}),
                    seed,
                ));
            }
        }
        run.cells.push(ramp(adapter, noise));
        run.cells.push(failover(adapter, noise));
        run.cells.extend([2, 10, 50].map(|participants| discovery(adapter, participants, noise)));
        run.cells.extend(["numbers", "text", "image"].map(|type_name| encode(adapter, type_name, noise)));
        run.cells.extend([1, 70_000, 1_000_000].map(|instances| read_cost(adapter, instances, noise)));
        for read in ["listener", "waitset", "polling:10ms"] {
            for instances in [1, 70_000] {
                run.cells.push(flow(
                    "read_method",
                    adapter,
                    json!({"size": 64, "read": read, "instances": instances, "reliable": true}),
                    seed,
                ));
            }
        }
        run.cells
            .extend([65_536, 1 << 20].map(|size| {
                ping("large", adapter, adapter, json!({"size": size, "echo": "ack"}), 300, seed)
            }));
    }
    run.cells.push(soak("plainsong", noise));
    for adapter in ["plainsong", "cyclone", "fastdds"] {
        for peer in ["plainsong", "cyclone", "fastdds"] {
            let mut cell = ping("pingpong", adapter, peer, json!({"size": 64}), samples, 40);
            cell.scenario = "pairs".to_owned();
            cell.id = format!("pairs.{adapter}~{peer}");
            run.cells.push(cell);
        }
    }
    run.cells.extend(troubles());
    decorate(&mut run);
    run
}

/// Marks, limits, and a cell that lost some of its repetitions.
fn decorate(run: &mut Run) {
    if let Some(cell) = run.cells.first_mut() {
        cell.limits = [("p99_us".to_owned(), 10.0), ("received_per_s".to_owned(), 1.0)].into();
        cell.repetitions.push(bad(5, Status::Crashed, "ping ended by signal 6"));
        for repetition in cell.repetitions.iter_mut().take(2) {
            repetition.marks = vec!["busy: 0.34 cores by others".to_owned()];
        }
    }
    let broken = run.cells.get_mut(3).and_then(|cell| cell.repetitions.first_mut());
    let reports = broken
        .into_iter()
        .flat_map(|repetition| &mut repetition.workers)
        .filter_map(|worker| worker.report.as_mut());
    for report in reports {
        for histogram in &mut report.histograms {
            histogram.data = "bm90IGEgaGlzdG9ncmFt".to_owned();
        }
    }
}
