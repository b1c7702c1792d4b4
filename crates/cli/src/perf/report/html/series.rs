//! Time series of one repetition: what was measured second by second, and what the processes used.

use std::collections::BTreeMap;

use plainsong_perfkit::event::Interval;

use crate::perf::report::summary::{Side, Summary, is_paired, side};
use crate::perf::report::svg::chart::{Axis, Chart, Join, Mark, Point, Series};
use crate::perf::report::svg::scale::Scale;
use crate::perf::results::{Repetition, Status, WorkerResult};

/// More points than this are put together.
const POINTS_MAX: usize = 240;

/// Processes drawn in one chart.
const WORKERS_MAX: usize = 8;

/// Samples a second of single intervals that count, all readers together, of all repetitions that are ok.
pub(crate) fn interval_rates(summary: &Summary<'_>) -> Vec<f64> {
    let paired = is_paired(&summary.cell.kind);
    let mut rates = Vec::new();
    for repetition in summary.cell.repetitions.iter().filter(|repetition| repetition.status == Status::Ok) {
        let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
        for worker in &repetition.workers {
            if (side(worker) == Side::Reader) == paired {
                continue;
            }
            let counted = worker.intervals.iter().filter(|interval| !interval.warmup);
            for (place, interval) in counted.enumerate() {
                if interval.length_ns > 0 {
                    *sums.entry(place).or_insert(0.0) +=
                        interval.received as f64 * 1e9 / interval.length_ns as f64;
                }
            }
        }
        // The last second is seldom a whole one.
        sums.pop_last();
        rates.extend(sums.into_values());
    }
    rates
}

/// Charts of the first repetition that is ok.
pub(crate) fn figures(title: &str, summary: &Summary<'_>) -> Vec<String> {
    let ok = summary.cell.repetitions.iter().find(|repetition| repetition.status == Status::Ok);
    let Some(repetition) = ok else { return Vec::new() };
    let origins = origins(repetition);
    let end = repetition
        .workers
        .iter()
        .flat_map(|worker| {
            let intervals =
                worker.intervals.iter().map(|interval| interval.start_ns.saturating_add(interval.length_ns));
            let looks = worker.resources.samples.iter().map(|sample| sample.at_ns);
            intervals.chain(looks).map(|at_ns| since(&origins, worker, at_ns))
        })
        .fold(0.0, f64::max);
    let marks = || warmup_end(repetition, &origins);
    let chart = |what: &str, label: &str, series: Vec<Series>, log: bool, note: &str| {
        let values = || series.iter().flat_map(|line| &line.points).map(|point| point.y);
        let scale = if log { Scale::log(values())? } else { Scale::linear(values())? };
        let figure = Chart {
            title: format!("{what}: {title}"),
            x: Axis { label: "time (s)".to_owned(), scale: Scale::linear(std::iter::once(end))? },
            y: Axis { label: label.to_owned(), scale },
            series,
            marks: marks().into_iter().collect(),
            note: note.to_owned(),
        };
        Some(figure.figure()).filter(|figure| !figure.is_empty())
    };
    let note = match repetition.workers.len().checked_sub(WORKERS_MAX) {
        Some(more) if more > 0 => {
            format!("{more} further processes are not drawn; they are in the files of the run.")
        }
        _ => String::new(),
    };
    let used = |value: fn(f64, u64) -> f64| {
        lines(repetition, |worker| {
            let looks = worker.resources.samples.iter();
            looks
                .map(|look| {
                    Point::new(
                        since(&origins, worker, look.at_ns),
                        value(look.cpu_percent, look.resident_octets),
                    )
                })
                .collect()
        })
    };
    [
        chart("Rate", "samples/s", rates(repetition, &origins), false, &note),
        chart("Latency", "latency (µs)", latencies(repetition, &origins), true, ""),
        chart("CPU", "% of a core", used(|cpu, _| cpu), false, &note),
        chart("Memory", "resident (MiB)", used(|_, octets| octets as f64 / 1_048_576.0), false, &note),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The earliest time of each host: clocks of different hosts are not compared.
fn origins(repetition: &Repetition) -> BTreeMap<&str, u64> {
    let mut origins: BTreeMap<&str, u64> = BTreeMap::new();
    for worker in &repetition.workers {
        let first = worker.intervals.first().map(|interval| interval.start_ns);
        let look = worker.resources.samples.first().map(|sample| sample.at_ns);
        for at_ns in first.into_iter().chain(look) {
            let known = origins.entry(&worker.host).or_insert(at_ns);
            *known = (*known).min(at_ns);
        }
    }
    origins
}

/// Seconds since the origin.
fn since(origins: &BTreeMap<&str, u64>, worker: &WorkerResult, at_ns: u64) -> f64 {
    let origin = origins.get(worker.host.as_str()).copied().unwrap_or(0);
    at_ns.saturating_sub(origin) as f64 * 1e-9
}

fn warmup_end(repetition: &Repetition, origins: &BTreeMap<&str, u64>) -> Option<Mark> {
    repetition.workers.iter().find_map(|worker| {
        let warm = worker.intervals.iter().filter(|interval| interval.warmup).count();
        let first = worker.intervals.get(warm).filter(|_| warm > 0)?;
        Some(Mark { x: since(origins, worker, first.start_ns), label: "measured from here".to_owned() })
    })
}

fn lines(repetition: &Repetition, points: impl Fn(&WorkerResult) -> Vec<Point>) -> Vec<Series> {
    repetition
        .workers
        .iter()
        .take(WORKERS_MAX)
        .enumerate()
        .map(|(index, worker)| Series {
            label: worker.name.clone(),
            index,
            join: Join::Line,
            points: thin(&points(worker)),
        })
        .collect()
}

fn middle(origins: &BTreeMap<&str, u64>, worker: &WorkerResult, interval: &Interval) -> f64 {
    since(origins, worker, interval.start_ns.saturating_add(interval.length_ns / 2))
}

fn rates(repetition: &Repetition, origins: &BTreeMap<&str, u64>) -> Vec<Series> {
    lines(repetition, |worker| {
        let whole = worker.intervals.iter().filter(|interval| interval.length_ns > 0);
        whole
            .map(|interval| {
                let count = if interval.received > 0 { interval.received } else { interval.sent };
                Point::new(middle(origins, worker, interval), count as f64 * 1e9 / interval.length_ns as f64)
            })
            .collect()
    })
}

/// Percentiles of the first worker that measured latency.
fn latencies(repetition: &Repetition, origins: &BTreeMap<&str, u64>) -> Vec<Series> {
    let measures =
        |worker: &&WorkerResult| worker.intervals.iter().any(|interval| interval.latency_p50_ns.is_some());
    let Some(worker) = repetition.workers.iter().find(measures) else { return Vec::new() };
    type Field = fn(&Interval) -> Option<u64>;
    let fields: [(&str, Field); 3] = [
        ("median", |interval| interval.latency_p50_ns),
        ("99th percentile", |interval| interval.latency_p99_ns),
        ("longest", |interval| interval.latency_max_ns),
    ];
    fields
        .into_iter()
        .enumerate()
        .map(|(index, (name, field))| {
            let points: Vec<Point> = worker
                .intervals
                .iter()
                .filter_map(|interval| {
                    Some(Point::new(middle(origins, worker, interval), field(interval)? as f64 / 1000.0))
                })
                .collect();
            let label = format!("{} ({})", name, worker.name);
            Series { label, index, join: Join::Line, points: thin_most(&points) }
        })
        .collect()
}

/// Neighbours put together by their mean.
fn thin(points: &[Point]) -> Vec<Point> {
    let group = points.len().div_ceil(POINTS_MAX).max(1);
    points
        .chunks(group)
        .filter_map(|chunk| {
            let sum: f64 = chunk.iter().map(|point| point.y).sum();
            Some(Point::new(chunk.first()?.x, sum / chunk.len() as f64))
        })
        .collect()
}

/// Neighbours put together by the largest: a peak must not vanish.
fn thin_most(points: &[Point]) -> Vec<Point> {
    let group = points.len().div_ceil(POINTS_MAX).max(1);
    points
        .chunks(group)
        .filter_map(|chunk| {
            let most = chunk.iter().map(|point| point.y).fold(0.0, f64::max);
            Some(Point::new(chunk.first()?.x, most))
        })
        .collect()
}
