//! `plainsong perf selftest`: what is done wrong on purpose must be counted exactly, and a known delay be
//! measured.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use plainsong_perfkit::Report;
use plainsong_perfkit::event::Totals;

use super::agent::child::{adapter_directory, built_in};
use super::campaign::{Campaign, resolve};
use super::results::{Cell, Repetition, Run, Status};
use super::run::{Job, begin, conduct};
use super::statistics::{Distribution, median};
use crate::output::say;

/// What a pong sleeps before it answers, and how wrong the measured difference between the two may be. Both
/// are long enough for all threads and processors to have gone to sleep meanwhile: to wake them takes the
/// same after either, and is no part of the difference. Of a round trip without delay that could not be said.
const DELAYS_US: [u64; 2] = [10_000, 50_000];
const DELAY_ERROR: f64 = 0.02;
const SHORT_DELAY: &str = "short_delay";
const LONG_DELAY: &str = "long_delay";

/// Check adapters against faults that are made on purpose, and a known delay.
#[derive(Args)]
pub(crate) struct Options {
    /// Only these; else all that are built in or installed.
    #[arg(long = "adapter", value_name = "NAME")]
    adapters: Vec<String>,
    /// The directory of adapters of other products.
    #[arg(long)]
    adapter_dir: Option<PathBuf>,
    /// Check what is counted, and measure no delay: for machines that have other things to do.
    #[arg(long)]
    counts_only: bool,
}

/// Carries out `perf selftest`: 0 if every adapter passed or does not offer what is tested.
pub(crate) fn run(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("plainsong perf selftest: {error}");
            ExitCode::FAILURE
        }
    }
}

fn attempt(options: &Options) -> Result<ExitCode, String> {
    let directory = adapter_directory(options.adapter_dir.as_deref());
    let adapters = if options.adapters.is_empty() { available(&directory) } else { options.adapters.clone() };
    let campaign = Campaign::parse(&text(&adapters, options.counts_only))?;
    let planned = resolve(&campaign)?;
    let run = begin(&campaign, &planned)?;
    let job = Job {
        campaign,
        planned,
        directory: None,
        adapters: directory,
        token: String::new(),
        strict: false,
        quiet: false,
        look: Box::new(|| None),
    };
    let outcome = conduct(&job, run)?;
    if outcome.interrupted {
        return Ok(ExitCode::from(130));
    }
    let mut passed = true;
    for adapter in &adapters {
        say!("{adapter}");
        for finding in judge(&outcome.run, adapter, options.counts_only) {
            passed &= finding.passed;
            say!("  {:<4} {}", if finding.passed { "ok" } else { "FAIL" }, finding.words);
        }
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Those that are part of this program, then those that are installed.
fn available(directory: &Path) -> Vec<String> {
    let mut installed: Vec<String> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_prefix("perf-adapter-")?.to_owned()))
        .collect();
    installed.sort();
    built_in().chain(installed).collect()
}

/// One scenario for each fault. Without warm-up: faults are counted from the first sample on.
fn text(adapters: &[String], counts_only: bool) -> String {
    let mut text =
        "schema = 1\nname = \"selftest\"\nrepetitions = 1\nwarmup = \"0s\"\nduration = \"500ms\"\n\
                    busy_wait = \"0s\"\n"
            .to_owned();
    for (name, faults) in [
        ("clean", ""),
        ("lost", "faults = { drop_every = 7 }\n"),
        ("duplicates", "faults = { duplicate_every = 11 }\n"),
        ("reordered", "faults = { swap_every = 13 }\n"),
        ("corrupted", "faults = { corrupt_every = 17 }\n"),
    ] {
        text.push_str(&format!(
            "[[scenario]]\nkind = \"throughput\"\nname = {name:?}\nadapters = {adapters:?}\nsizes = 64\n\
             pacing = \"rate:2000\"\nchecksum = true\n{faults}"
        ));
    }
    if counts_only {
        return text;
    }
    for (name, delay_us, duration) in
        [(SHORT_DELAY, DELAYS_US[0], "500ms"), (LONG_DELAY, DELAYS_US[1], "1500ms")]
    {
        text.push_str(&format!(
            "[[scenario]]\nkind = \"pingpong\"\nname = {name:?}\nadapters = {adapters:?}\nsizes = 64\nrepetitions = 5\n\
             warmup = \"200ms\"\nduration = {duration:?}\nfaults = {{ delay_us = {delay_us} }}\n"
        ));
    }
    text
}

/// One line of the result.
struct Finding {
    passed: bool,
    words: String,
}

impl Finding {
    fn new(passed: bool, words: String) -> Self {
        Self { passed, words }
    }
}

fn judge(run: &Run, adapter: &str, counts_only: bool) -> Vec<Finding> {
    let cells = run.cells.iter().filter(|it| it.adapter == adapter);
    let mut findings = Vec::new();
    for cell in cells.filter(|it| it.kind == "throughput") {
        findings.push(judge_counts(cell));
    }
    if !counts_only {
        findings.push(judge_delay(run, adapter));
    }
    let costs: Vec<f64> =
        reports(run, adapter).map(|it| it.recorder_cost_ns).filter(|it| *it > 0.0).collect();
    if let Some(cost) = median(&costs) {
        findings.push(Finding::new(true, format!("the recorder takes {cost:.0} ns for a sample")));
    }
    findings
}

fn reports<'a>(run: &'a Run, adapter: &str) -> impl Iterator<Item = &'a Report> {
    let cells = run.cells.iter().filter(move |it| it.adapter == adapter);
    let workers = cells.flat_map(|it| &it.repetitions).flat_map(|it| &it.workers);
    workers.filter_map(|it| it.report.as_ref())
}

/// Not measured: in order only if the product does not offer it.
fn not_measured(scenario: &str, repetition: &Repetition) -> Option<Finding> {
    match repetition.status {
        Status::Ok => None,
        Status::Unsupported => {
            Some(Finding::new(true, format!("{scenario}: not offered: {}", repetition.reason)))
        }
        status => Some(Finding::new(false, format!("{scenario}: {}: {}", status.label(), repetition.reason))),
    }
}

fn judge_counts(cell: &Cell) -> Finding {
    let name = &cell.scenario;
    let Some(repetition) = cell.repetitions.first() else {
        return Finding::new(false, format!("{name}: not measured"));
    };
    if let Some(finding) = not_measured(name, repetition) {
        return finding;
    }
    let report = |prefix: &str| {
        let worker = repetition.workers.iter().find(|it| it.name.starts_with(prefix));
        worker.and_then(|it| it.report.as_ref())
    };
    let (Some(publisher), Some(subscriber)) = (report("pub"), report("sub")) else {
        return Finding::new(false, format!("{name}: a report is missing"));
    };
    let (made, seen) = (publisher.injected, subscriber.totals);
    let good = publisher.sent.saturating_sub(made.lost + made.corrupted);
    let wrong: Vec<String> = [
        ("received", good, seen.received),
        ("lost", made.lost, seen.lost),
        ("duplicates", made.duplicates, seen.duplicates),
        ("reordered", made.reordered, seen.reordered),
        ("corrupted", made.corrupted, seen.corrupted),
    ]
    .iter()
    .filter(|(_, made, seen)| made != seen)
    .map(|(what, made, seen)| format!("{what} {seen} instead of {made}"))
    .collect();
    if publisher.sent == 0 {
        return Finding::new(false, format!("{name}: nothing was sent"));
    }
    if !wrong.is_empty() {
        return Finding::new(false, format!("{name}: of {} sent: {}", publisher.sent, wrong.join(", ")));
    }
    let words = match injected(name, &made) {
        None => format!("{name}: {} sent, all of them received once and in order", publisher.sent),
        Some(count) => format!("{name}: {count} of {} sent, counted exactly", publisher.sent),
    };
    Finding::new(true, words)
}

fn injected(name: &str, made: &Totals) -> Option<u64> {
    match name {
        "lost" => Some(made.lost),
        "duplicates" => Some(made.duplicates),
        "reordered" => Some(made.reordered),
        "corrupted" => Some(made.corrupted),
        _ => None,
    }
}

/// In nanoseconds.
fn median_round_trip(repetition: &Repetition) -> Option<f64> {
    let mut reports = repetition.workers.iter().filter_map(|it| it.report.as_ref());
    let histogram = reports.find_map(|it| it.histograms.iter().find(|it| it.name == "round_trip"))?;
    Distribution::decode(&histogram.data).ok()?.percentile(50.0).map(|it| it as f64)
}

/// The difference between medians of round trips with the short and the long delay, each of its least
/// disturbed repetition.
fn judge_delay(run: &Run, adapter: &str) -> Finding {
    let measured = |scenario: &str| -> Result<f64, Finding> {
        let missing = || Finding::new(false, format!("{scenario}: not measured"));
        let cell = run
            .cells
            .iter()
            .find(|it| it.adapter == adapter && it.scenario == scenario)
            .ok_or_else(missing)?;
        for repetition in &cell.repetitions {
            if let Some(finding) = not_measured(scenario, repetition) {
                return Err(finding);
            }
        }
        let medians = cell.repetitions.iter().filter_map(median_round_trip);
        medians.reduce(f64::min).ok_or_else(missing)
    };
    let (short_ns, long_ns) = match (measured(SHORT_DELAY), measured(LONG_DELAY)) {
        (Ok(short_ns), Ok(long_ns)) => (short_ns, long_ns),
        (Err(finding), _) | (_, Err(finding)) => return finding,
    };
    let made_us = (DELAYS_US[1] - DELAYS_US[0]) as f64;
    let measured_us = (long_ns - short_ns) / 1000.0;
    let error = measured_us / made_us - 1.0;
    let words = format!(
        "delay: {made_us:.0} us more made, {measured_us:.0} us more measured: {:+.2} % (at most {:.0} %)",
        error * 100.0,
        DELAY_ERROR * 100.0
    );
    Finding::new(error.abs() <= DELAY_ERROR, words)
}

#[cfg(test)]
mod tests {
    use plainsong_perfkit::recorder;

    use super::*;
    use crate::perf::results::WorkerResult;

    fn cell(injected: Totals, seen: Totals) -> Cell {
        let worker = |name: &str, report| WorkerResult {
            name: name.to_owned(),
            report: Some(report),
            ..WorkerResult::default()
        };
        let workers = vec![
            worker("sub-0", Report { totals: seen, ..Report::default() }),
            worker("pub-0", Report { sent: 100, injected, ..Report::default() }),
        ];
        let repetition = Repetition { status: Status::Ok, workers, ..Repetition::default() };
        Cell { scenario: "lost".to_owned(), repetitions: vec![repetition], ..Cell::default() }
    }

    #[test]
    fn the_campaign_of_the_self_test_is_one() {
        let campaign = Campaign::parse(&text(&["plainsong".to_owned(), "udp".to_owned()], false)).unwrap();
        assert_eq!(resolve(&campaign).unwrap().len(), 14);
        let campaign = Campaign::parse(&text(&["plainsong".to_owned()], true)).unwrap();
        assert_eq!(resolve(&campaign).unwrap().len(), 5, "no delay");
    }

    #[test]
    fn one_sample_too_few_is_noticed() {
        let made = Totals { lost: 14, ..Totals::default() };
        assert!(judge_counts(&cell(made, Totals { received: 86, lost: 14, ..Totals::default() })).passed);
        let finding = judge_counts(&cell(made, Totals { received: 87, lost: 13, ..Totals::default() }));
        assert!(!finding.passed);
        assert!(finding.words.contains("lost 13 instead of 14"), "{}", finding.words);
    }

    #[test]
    fn what_a_product_does_not_offer_is_no_failure_but_is_said() {
        let mut cell = cell(Totals::default(), Totals::default());
        cell.repetitions[0].status = Status::Unsupported;
        cell.repetitions[0].reason = "no reliable writers".to_owned();
        let finding = judge_counts(&cell);
        assert!(
            finding.passed && finding.words.contains("not offered: no reliable writers"),
            "{}",
            finding.words
        );
        cell.repetitions[0].status = Status::Crashed;
        assert!(!judge_counts(&cell).passed);
    }

    /// Round trips of the two delays as a recorder has them that makes `factor` of each: some are disturbed,
    /// all take a while more.
    fn delays_recorded(factor: f64) -> Run {
        let cell = |scenario: &str, delay_us: u64| {
            let mut histogram = recorder::histogram();
            for trip in 0..40_u64 {
                let disturbed_us = if trip % 5 == 0 { 3000 } else { 0 };
                let latency_us = delay_us + 180 + trip + disturbed_us;
                histogram.saturating_record((latency_us as f64 * 1000.0 * factor) as u64);
            }
            let histograms = recorder::named("round_trip", &histogram).into_iter().collect();
            let ping = WorkerResult {
                name: "ping".to_owned(),
                report: Some(Report { histograms, ..Report::default() }),
                ..WorkerResult::default()
            };
            let repetition = Repetition { status: Status::Ok, workers: vec![ping], ..Repetition::default() };
            let repetitions = vec![repetition];
            let (adapter, scenario) = ("plainsong".to_owned(), scenario.to_owned());
            Cell { adapter, scenario, repetitions, ..Cell::default() }
        };
        let cells = vec![cell(SHORT_DELAY, DELAYS_US[0]), cell(LONG_DELAY, DELAYS_US[1])];
        Run { cells, ..Run::default() }
    }

    #[test]
    fn a_recorder_that_errs_by_more_than_two_percent_is_caught_and_what_a_product_takes_is_no_error() {
        for (factor, passes) in [(1.0, true), (1.018, true), (0.982, true), (1.022, false), (0.978, false)] {
            let finding = judge_delay(&delays_recorded(factor), "plainsong");
            assert_eq!(finding.passed, passes, "{factor}: {}", finding.words);
        }
    }
}
