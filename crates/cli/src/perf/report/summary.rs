//! Cells reduced to numbers: repetitions merged, with confidence.

use std::collections::{BTreeMap, BTreeSet};

use plainsong_perfkit::event::Report;

use crate::perf::results::{Cell, Repetition, Run, Status, WorkerResult, marks_of};
use crate::perf::statistics::bootstrap::{Estimate, Pool, seed_of};
use crate::perf::statistics::trend::{Knee, Slope, Step, knee, slope};
use crate::perf::statistics::{Distribution, median};

/// One cell, from all its repetitions that are ok.
pub(crate) struct Summary<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) ok: usize,
    /// One for each name of a histogram.
    pub(crate) latencies: Vec<Latency>,
    /// By name, see [`METRICS`].
    pub(crate) metrics: BTreeMap<&'static str, Estimate>,
    /// The same of single repetitions, by their numbers, as far as each can tell.
    each: BTreeMap<&'static str, BTreeMap<u32, f64>>,
    /// Of a ramp.
    pub(crate) steps: Vec<Step>,
    pub(crate) knee: Option<Knee>,
    /// Of a soak: resident octets a second, of the worker where it is largest.
    pub(crate) memory_slope: Option<Slope>,
    /// What is wrong with the file, apart from what the run itself says.
    pub(crate) damage: Vec<String>,
}

/// A distribution of durations, in nanoseconds.
pub(crate) struct Latency {
    pub(crate) name: String,
    /// Of single repetitions, by their numbers.
    parts: BTreeMap<u32, Distribution>,
    pub(crate) merged: Distribution,
    pub(crate) p50: Option<Estimate>,
    /// Only if the count supports it.
    pub(crate) p99: Option<Estimate>,
}

/// Metrics that are sums over repetitions and not rates of one.
const SUMS: [&str; 9] = [
    "received",
    "lost",
    "duplicates",
    "reordered",
    "corrupted",
    "missed_slots",
    "write_timeouts",
    "changes",
    "receive_buffer_errors",
];

impl<'a> Summary<'a> {
    /// All cells of a run.
    pub(crate) fn of_run(run: &'a Run) -> Vec<Self> {
        run.cells.iter().map(Self::of_cell).collect()
    }

    pub(crate) fn of_cell(cell: &'a Cell) -> Self {
        let ok: Vec<&Repetition> = cell
            .repetitions
            .iter()
            .filter(|repetition| repetition.status == Status::Ok && has_report(repetition))
            .collect();
        let seed = seed_of(&cell.id);
        let mut damage = damage_of(cell);
        let latencies = latencies(&ok, seed, &mut damage);
        let steps = steps(&ok);
        let knee = knee(&steps);
        let memory_slope = (cell.kind == "soak").then(|| memory_slope(&ok)).flatten();
        let mut summary = Self {
            cell,
            ok: ok.len(),
            latencies,
            metrics: BTreeMap::new(),
            each: BTreeMap::new(),
            steps,
            knee,
            memory_slope,
            damage,
        };
        summary.take_numbers(&ok, seed);
        summary.take_percentiles();
        summary
    }

    /// The distribution that the cell is about.
    pub(crate) fn latency(&self) -> Option<&Latency> {
        let named = |name: &str| self.latencies.iter().find(|latency| latency.name == name);
        named("round_trip").or_else(|| named("one_way"))
    }

    pub(crate) fn value(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric).map(|estimate| estimate.value)
    }

    /// What single repetitions have of it, by their numbers.
    pub(crate) fn each(&self, metric: &str) -> &BTreeMap<u32, f64> {
        static NONE: BTreeMap<u32, f64> = BTreeMap::new();
        self.each.get(metric).unwrap_or(&NONE)
    }

    /// How many repetitions ended in which way.
    pub(crate) fn statuses(&self) -> BTreeMap<Status, usize> {
        let mut counts = BTreeMap::new();
        for repetition in &self.cell.repetitions {
            *counts.entry(repetition.status).or_insert(0) += 1;
        }
        counts
    }

    /// Why repetitions are not ok, each once, with the status.
    pub(crate) fn reasons(&self) -> BTreeSet<(Status, String)> {
        let not_ok = self.cell.repetitions.iter().filter(|repetition| repetition.status != Status::Ok);
        not_ok.map(|repetition| (repetition.status, of_any_worker(&repetition.reason))).collect()
    }

    /// What makes repetitions doubtful: each sort once, as the worst says it, with the number of repetitions.
    pub(crate) fn marks(&self) -> BTreeMap<&'a str, usize> {
        marks_of(self.cell.repetitions.iter()).into_values().map(|(count, worst)| (worst, count)).collect()
    }

    /// How many of the repetitions that are ok carry a mark.
    pub(crate) fn marked(&self) -> usize {
        let ok = self.cell.repetitions.iter().filter(|repetition| repetition.status == Status::Ok);
        ok.filter(|repetition| !repetition.marks.is_empty()).count()
    }

    /// A parameter as a number.
    pub(crate) fn number(&self, parameter: &str) -> Option<f64> {
        match self.cell.parameters.get(parameter)? {
            serde_json::Value::Number(number) => number.as_f64(),
            serde_json::Value::String(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn take_numbers(&mut self, ok: &[&Repetition], seed: u64) {
        for repetition in ok {
            for (name, number) in self.numbers(repetition) {
                self.each.entry(name).or_default().insert(repetition.number, number);
            }
        }
        for (name, numbers) in &self.each {
            let numbers: Vec<f64> = numbers.values().copied().collect();
            let estimate = if SUMS.contains(name) {
                Some(Estimate::exact(numbers.iter().sum()))
            } else {
                Estimate::of_mean(&numbers, seed)
            };
            if let Some(estimate) = estimate {
                self.metrics.insert(name, estimate);
            }
        }
        if let Some(knee) = self.knee {
            self.metrics.insert("knee_per_s", Estimate::exact(knee.rate));
        }
        if let Some(slope) = self.memory_slope {
            self.metrics.insert("memory_slope_kib_per_h", Estimate::exact(slope.value * 3600.0 / 1024.0));
        }
    }

    /// The numbers of one repetition.
    fn numbers(&self, repetition: &Repetition) -> BTreeMap<&'static str, f64> {
        let kind = self.cell.kind.as_str();
        let mut found = BTreeMap::new();
        found.extend(repetition.others_percent.map(|percent| ("others_percent", percent)));
        counts(kind, repetition, &mut found);
        resources(repetition, &mut found);
        discovery(repetition, &mut found);
        failover(kind, repetition, &mut found);
        beside(repetition, &mut found);
        recovery(repetition, &mut found);
        if kind == "large" {
            self.large(&mut found);
        }
        for (_, report) in reports(repetition) {
            if let Some(cost) = report.encode {
                found.insert("encode_ns", cost.encode_ns);
                found.insert("decode_ns", cost.decode_ns);
                found.insert("encoded_octets", cost.encoded_octets as f64);
            }
            if report.recorder_cost_ns > 0.0 {
                found.insert("recorder_cost_ns", report.recorder_cost_ns);
            }
        }
        found.retain(|_, number| number.is_finite());
        found
    }

    /// Payload that went out and was answered, and what that took on the wire. The answers may be short.
    fn large(&self, found: &mut BTreeMap<&'static str, f64>) {
        let Some(size) = self.number("size") else { return };
        if let Some(rate) = found.get("received_per_s").copied() {
            found.insert("mbit_per_s", rate * size * 8e-6);
        }
        let ways = if self.cell.parameters.get("echo").and_then(|echo| echo.as_str()) == Some("ack") {
            1.0
        } else {
            2.0
        };
        let useful = found.get("received").copied().unwrap_or(0.0) * size * ways;
        if let Some(octets) = found.get("wire_octets").copied().filter(|_| useful > 0.0) {
            found.insert("wire_per_useful", octets / useful);
        }
    }

    fn take_percentiles(&mut self) {
        let Some(latency) = self.latency() else { return };
        let mut found: Vec<(&'static str, Estimate)> = Vec::new();
        let mut each: BTreeMap<&'static str, BTreeMap<u32, f64>> = BTreeMap::new();
        for (name, percent) in percentile_metrics() {
            let of_parts =
                latency.parts.iter().filter_map(|(number, part)| Some((*number, part.percentile(percent)?)));
            each.insert(name, of_parts.map(|(number, value)| (number, value as f64 / 1000.0)).collect());
            if let Some(value) = latency.merged.percentile(percent) {
                found.push((name, Estimate::exact(value as f64 / 1000.0)));
            }
        }
        found.extend(latency.p50.as_ref().map(|estimate| ("p50_us", estimate.scaled(1e-3))));
        found.extend(latency.p99.as_ref().map(|estimate| ("p99_us", estimate.scaled(1e-3))));
        let moments = self.exact_moments();
        let mean = moments.map(|(mean, _)| mean).or_else(|| latency.merged.mean());
        let deviation = moments.map(|(_, deviation)| deviation).or_else(|| latency.merged.deviation());
        let spread = latency.merged.median_absolute_deviation();
        found.extend(mean.map(|mean| ("mean_us", Estimate::exact(mean / 1000.0))));
        found.extend(deviation.map(|deviation| ("deviation_us", Estimate::exact(deviation / 1000.0))));
        found.extend(spread.map(|spread| ("mad_us", Estimate::exact(spread as f64 / 1000.0))));
        found.push(("count", Estimate::exact(latency.merged.count() as f64)));
        self.metrics.extend(found);
        self.each.extend(each);
    }

    /// Mean and standard deviation from the values themselves, if there is exactly one report that has them:
    /// the deviation of several cannot be put together without their counts.
    fn exact_moments(&self) -> Option<(f64, f64)> {
        let ok = self.cell.repetitions.iter().filter(|repetition| repetition.status == Status::Ok);
        let mut found = ok
            .flat_map(reports)
            .filter_map(|(_, report)| report.latency_mean_ns.zip(report.latency_deviation_ns));
        let only = found.next()?;
        found.next().is_none().then_some(only)
    }
}

/// Metrics that are percentiles of the main distribution, and the percent.
fn percentile_metrics() -> [(&'static str, f64); 12] {
    [
        ("min_us", 0.0),
        ("p25_us", 25.0),
        ("p50_us", 50.0),
        ("p75_us", 75.0),
        ("p90_us", 90.0),
        ("p95_us", 95.0),
        ("p99_us", 99.0),
        ("p99.9_us", 99.9),
        ("p99.99_us", 99.99),
        ("p99.999_us", 99.999),
        ("p99.9999_us", 99.9999),
        ("max_us", 100.0),
    ]
}

/// A reason as any worker of the same role would give it: `sub-4 (product) made no report` without the
/// number, `pub-0: not offered` without the worker.
fn of_any_worker(reason: &str) -> String {
    let Some((role, rest)) = reason.split_once('-') else { return reason.to_owned() };
    let words = rest.trim_start_matches(|each: char| each.is_ascii_digit());
    let numbered = words.len() < rest.len() && role.chars().all(|each| each.is_ascii_lowercase());
    match words.strip_prefix(": ") {
        Some(words) if numbered => words.to_owned(),
        None if numbered && words.starts_with(" (") => format!("{role}{words}"),
        _ => reason.to_owned(),
    }
}

fn has_report(repetition: &Repetition) -> bool {
    repetition.workers.iter().any(|worker| worker.report.is_some())
}

fn damage_of(cell: &Cell) -> Vec<String> {
    let silent = |repetition: &&Repetition| repetition.status == Status::Ok && !has_report(repetition);
    let silent: Vec<String> =
        cell.repetitions.iter().filter(silent).map(|repetition| repetition.number.to_string()).collect();
    if silent.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "repetition {} is said to be ok but has no report of any worker: it is left out",
        silent.join(", ")
    )]
}

fn reports(repetition: &Repetition) -> impl Iterator<Item = (&WorkerResult, &Report)> {
    repetition.workers.iter().filter_map(|worker| worker.report.as_ref().map(|report| (worker, report)))
}

/// Histograms of all workers by name, one distribution for each repetition.
fn latencies(ok: &[&Repetition], seed: u64, damage: &mut Vec<String>) -> Vec<Latency> {
    let mut by_name: BTreeMap<&str, BTreeMap<u32, Distribution>> = BTreeMap::new();
    for repetition in ok {
        let mut of_repetition: BTreeMap<&str, Vec<Distribution>> = BTreeMap::new();
        for (worker, report) in reports(repetition) {
            for histogram in &report.histograms {
                match Distribution::decode(&histogram.data) {
                    Ok(distribution) => {
                        of_repetition.entry(&histogram.name).or_default().push(distribution);
                    }
                    Err(error) => damage.push(format!(
                        "histogram {} of {} in repetition {} cannot be read: {error}",
                        histogram.name, worker.name, repetition.number
                    )),
                }
            }
        }
        for (name, parts) in of_repetition {
            by_name.entry(name).or_default().insert(repetition.number, Distribution::merge(&parts));
        }
    }
    by_name
        .into_iter()
        .map(|(name, parts)| latency(name, parts, seed))
        .filter(|latency| !latency.merged.is_empty())
        .collect()
}

fn latency(name: &str, parts: BTreeMap<u32, Distribution>, seed: u64) -> Latency {
    let merged = Distribution::merge(parts.values());
    let pool = Pool::new(parts.values());
    let p50 = merged.percentile(50.0).and_then(|_| Estimate::of_quantile(&pool, 0.5, seed));
    let p99 = merged.percentile(99.0).and_then(|_| Estimate::of_quantile(&pool, 0.99, seed));
    Latency { name: name.to_owned(), parts, merged, p50, p99 }
}

/// The side a worker is on. A pong is a reader whose counts are not what the cell is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Writer,
    Reader,
}

pub(crate) fn side(worker: &WorkerResult) -> Side {
    let role = worker.name.split('-').next().unwrap_or_default();
    match role {
        "sub" | "pong" | "reader" | "subscriber" => Side::Reader,
        _ => Side::Writer,
    }
}

/// Whether it is about pings and answers: the pinger alone tells what came, the other side would count the
/// same again.
pub(crate) fn is_paired(kind: &str) -> bool {
    matches!(kind, "pingpong" | "latency_at_rate" | "large")
}

fn seconds(length_ns: u64) -> Option<f64> {
    (length_ns > 0).then_some(length_ns as f64 * 1e-9)
}

fn counts(kind: &str, repetition: &Repetition, found: &mut BTreeMap<&'static str, f64>) {
    let paired = is_paired(kind);
    let mut readers = 0_u32;
    let (mut received_per_s, mut mbit_per_s, mut sent_per_s) = (0.0, 0.0, 0.0);
    for (worker, report) in reports(repetition) {
        let reads = if paired { side(worker) == Side::Writer } else { side(worker) == Side::Reader };
        if report.sent > 0 && side(worker) == Side::Writer {
            sent_per_s += seconds(report.length_ns).map_or(0.0, |seconds| report.sent as f64 / seconds);
        }
        *found.entry("missed_slots").or_insert(0.0) += report.missed_slots as f64;
        *found.entry("write_timeouts").or_insert(0.0) += report.write_timeouts as f64;
        if !reads {
            continue;
        }
        readers += 1;
        if let Some(seconds) = seconds(report.length_ns) {
            let in_time = report.received_in_time();
            received_per_s += in_time.received as f64 / seconds;
            mbit_per_s += in_time.octets as f64 * 8e-6 / seconds;
        }
        for (name, count) in [
            ("received", report.totals.received),
            ("lost", report.totals.lost),
            ("duplicates", report.totals.duplicates),
            ("reordered", report.totals.reordered),
            ("corrupted", report.totals.corrupted),
        ] {
            *found.entry(name).or_insert(0.0) += count as f64;
        }
    }
    let total = found.get("received").copied().unwrap_or(0.0) + found.get("lost").copied().unwrap_or(0.0);
    if total > 0.0 {
        found.insert("lost_percent", 100.0 * found.get("lost").copied().unwrap_or(0.0) / total);
        found.insert("received_per_s", received_per_s / f64::from(readers));
        found.insert("received_total_per_s", received_per_s);
        if !paired {
            found.insert("mbit_per_s", mbit_per_s / f64::from(readers));
            found.insert("mbit_total_per_s", mbit_per_s);
        }
    } else {
        for name in ["received", "lost", "duplicates", "reordered", "corrupted"] {
            found.remove(name);
        }
    }
    if sent_per_s > 0.0 {
        found.insert("sent_per_s", sent_per_s);
    }
}

fn resources(repetition: &Repetition, found: &mut BTreeMap<&'static str, f64>) {
    const MEBI: f64 = 1024.0 * 1024.0;
    let of = |wanted: Side| {
        repetition.workers.iter().filter(move |worker| side(worker) == wanted && worker.resources.wall_ns > 0)
    };
    for (wanted, cpu, memory) in [
        (Side::Writer, "cpu_writer_percent", "memory_writer_mib"),
        (Side::Reader, "cpu_reader_percent", "memory_reader_mib"),
    ] {
        let each: Vec<f64> = of(wanted)
            .map(|worker| &worker.resources)
            .map(|used| 100.0 * (used.user_ns as f64 + used.system_ns as f64) / used.wall_ns as f64)
            .collect();
        if !each.is_empty() {
            found.insert(cpu, each.iter().sum::<f64>() / each.len() as f64);
            let most = of(wanted).map(|worker| worker.resources.resident_octets_max).max().unwrap_or(0);
            found.insert(memory, most as f64 / MEBI);
        }
    }
    let measured: Vec<&WorkerResult> = of(Side::Writer).chain(of(Side::Reader)).collect();
    if measured.is_empty() {
        return;
    }
    // The size of the program that an adapter happens to be in says nothing about a product.
    let own = |wanted| of(wanted).map(|worker| worker.resources.own_octets_max).max();
    if let (Some(writer), Some(reader)) = (own(Side::Writer), own(Side::Reader)) {
        found.insert("memory_pair_mib", (writer + reader) as f64 / MEBI);
    }
    cpu_per_sample(repetition, &measured, found);
    let switches = measured.iter().map(|worker| {
        let used = &worker.resources;
        (used.voluntary_switches + used.involuntary_switches) as f64 / (used.wall_ns as f64 * 1e-9)
    });
    found.insert("switches_per_s", switches.sum());
    // Counters of a network namespace are the same for all its workers.
    let mut hosts: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    for worker in measured {
        let used = &worker.resources;
        let most = hosts.entry(&worker.host).or_default();
        most.0 = most.0.max(used.traffic.interface_octets);
        most.1 = most.1.max(used.traffic.interface_packets);
        most.2 = most.2.max(used.traffic.udp_receive_buffer_errors);
    }
    let octets: u64 = hosts.values().map(|counters| counters.0).sum();
    if octets > 0 {
        found.insert("wire_octets", octets as f64);
        found.insert("wire_packets", hosts.values().map(|counters| counters.1).sum::<u64>() as f64);
    }
    found.insert("receive_buffer_errors", hosts.values().map(|counters| counters.2).sum::<u64>() as f64);
}

/// CPU time of all processes in the measured time, of user and system, for each sample that a reader received
/// in it.
fn cpu_per_sample(
    repetition: &Repetition,
    measured: &[&WorkerResult],
    found: &mut BTreeMap<&'static str, f64>,
) {
    let readers = reports(repetition).filter(|(worker, _)| side(worker) == Side::Reader);
    let received: u64 = readers.map(|(_, report)| report.received_in_time().received).sum();
    let used_ns: u64 =
        measured.iter().map(|worker| worker.resources.user_ns + worker.resources.system_ns).sum();
    if received > 0 && used_ns > 0 {
        found.insert("cpu_per_sample_us", used_ns as f64 * 1e-3 / received as f64);
    }
}

fn discovery(repetition: &Repetition, found: &mut BTreeMap<&'static str, f64>) {
    let matched: Vec<f64> = reports(repetition)
        .filter_map(|(_, report)| report.matched_after_ns)
        .map(|after_ns| after_ns as f64 * 1e-6)
        .collect();
    if let Some(middle) = median(&matched) {
        found.insert("matched_median_ms", middle);
        found.insert("matched_ms", matched.iter().copied().fold(0.0, f64::max));
    }
}

fn failover(kind: &str, repetition: &Repetition, found: &mut BTreeMap<&'static str, f64>) {
    if kind != "failover" {
        return;
    }
    let gaps: Vec<u64> = reports(repetition)
        .flat_map(|(_, report)| &report.switches)
        .filter(|switch| switch.from != switch.to)
        .map(|switch| switch.gap_ns)
        .collect();
    found.insert("changes", gaps.len() as f64);
    if let Some(longest) = gaps.iter().max() {
        found.insert("gap_ms", *longest as f64 * 1e-6);
    }
}

/// What streamed beside pings.
fn beside(repetition: &Repetition, found: &mut BTreeMap<&'static str, f64>) {
    let readers = repetition.workers.iter().filter(|worker| side(worker) == Side::Reader);
    for worker in readers.filter(|worker| worker.resources.wall_ns > 0) {
        let octets = worker.report.as_ref().map_or(0, |report| report.background.octets);
        if octets > 0 {
            let seconds = worker.resources.wall_ns as f64 * 1e-9;
            *found.entry("background_mbit_per_s").or_insert(0.0) += octets as f64 * 8e-6 / seconds;
        }
    }
}

/// From the end of an outage until the last reader was up to date.
fn recovery(repetition: &Repetition, found: &mut BTreeMap<&'static str, f64>) {
    let Some(ended_ns) = repetition.outage_end_ns else { return };
    let readers = reports(repetition).filter(|(worker, _)| side(worker) == Side::Reader);
    let stalls = readers.filter_map(|(_, report)| report.stall_at(ended_ns)?.end_ns);
    if let Some(end_ns) = stalls.max() {
        found.insert("recovery_ms", end_ns.saturating_sub(ended_ns) as f64 * 1e-6);
    }
}

/// Steps of a ramp, all repetitions and workers together: counts are added, percentiles are the median of
/// repetitions (only two percentiles of a step are recorded, no histogram).
fn steps(ok: &[&Repetition]) -> Vec<Step> {
    #[derive(Default)]
    struct Sum {
        target: f64,
        sent: f64,
        received: f64,
        kept: u64,
        lost: u64,
        p50: Vec<f64>,
        p99: Vec<f64>,
        repetitions: BTreeSet<u32>,
    }
    let mut sums: BTreeMap<u16, Sum> = BTreeMap::new();
    for repetition in ok {
        let mut targets: BTreeMap<u16, f64> = BTreeMap::new();
        let readers =
            reports(repetition).filter(|(worker, _)| side(worker) == Side::Reader).count().max(1) as f64;
        for (worker, report) in reports(repetition) {
            for phase in &report.phases {
                let Some(seconds) = seconds(phase.length_ns) else { continue };
                let sum = sums.entry(phase.phase).or_default();
                sum.repetitions.insert(repetition.number);
                if side(worker) == Side::Writer {
                    *targets.entry(phase.phase).or_insert(0.0) += phase.target_rate as f64;
                    sum.sent += phase.sent as f64 / seconds;
                } else {
                    sum.received += phase.totals.received as f64 / seconds / readers;
                    sum.kept += phase.totals.received;
                    sum.lost += phase.totals.lost;
                }
                sum.p50.extend(phase.latency_p50_ns.map(|value| value as f64));
                sum.p99.extend(phase.latency_p99_ns.map(|value| value as f64));
            }
        }
        for (phase, target) in targets {
            sums.entry(phase).or_default().target += target;
        }
    }
    sums.into_values()
        .filter(|sum| sum.target > 0.0)
        .map(|sum| {
            let repetitions = sum.repetitions.len().max(1) as f64;
            Step {
                target: sum.target / repetitions,
                sent: sum.sent / repetitions,
                received: sum.received / repetitions,
                lost_percent: 100.0 * sum.lost as f64 / (sum.kept + sum.lost).max(1) as f64,
                latency_p50_ns: median(&sum.p50),
                latency_p99_ns: median(&sum.p99),
            }
        })
        .collect()
}

/// The steepest growth of resident memory, octets a second, over all workers.
fn memory_slope(ok: &[&Repetition]) -> Option<Slope> {
    ok.iter()
        .flat_map(|repetition| &repetition.workers)
        .filter_map(|worker| {
            let points: Vec<(f64, f64)> = worker
                .resources
                .samples
                .iter()
                .map(|sample| (sample.at_ns as f64 * 1e-9, sample.resident_octets as f64))
                .collect();
            slope(&points)
        })
        .max_by(|a, b| a.value.total_cmp(&b.value))
}
