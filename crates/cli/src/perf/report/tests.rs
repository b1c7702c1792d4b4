//! The report on runs that nobody measured.

mod synthetic;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use quick_xml::events::Event;
use serde_json::json;

use super::compare::with_base;
use super::limits::{Condition, check};
use super::summary::Summary;
use super::*;
use crate::perf::results::{Cell, Status};
use crate::perf::statistics::median;
use synthetic::{HOSTILE, Noise, bad, cell, empty, flow, histogram, ok, ping, whole};

/// The run with everything, made once.
fn everything() -> &'static Run {
    static RUN: OnceLock<Run> = OnceLock::new();
    RUN.get_or_init(|| whole(1200))
}

fn html_of(run: &Run) -> String {
    let summaries = Summary::of_run(run);
    html::page(&[Reported { run, summaries: &summaries }], None)
}

/// Reads a page as XML, and gives all its ids, where its links lead, and the names of its elements.
fn look_through(page: &str) -> (Vec<String>, Vec<String>, BTreeSet<String>) {
    let body = page.strip_prefix("<!DOCTYPE html>\n").expect("it says what it is");
    let mut reader = quick_xml::Reader::from_str(body);
    reader.config_mut().check_end_names = true;
    let (mut ids, mut links, mut elements) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut depth = 0_i32;
    loop {
        match reader.read_event().expect("well-formed") {
            Event::Eof => break,
            Event::End(_) => depth -= 1,
            event @ (Event::Start(_) | Event::Empty(_)) => {
                depth += i32::from(matches!(event, Event::Start(_)));
                let (Event::Start(tag) | Event::Empty(tag)) = event else { continue };
                elements.insert(tag.name().as_ref().to_owned());
                for attribute in tag.attributes() {
                    let attribute = attribute.expect("attributes are quoted and differ");
                    let value = attribute.value.clone().into_owned();
                    match attribute.key.as_ref() {
                        "id" => ids.push(value),
                        "href" | "src" | "data" | "action" => links.push(value),
                        key => assert!(!key.starts_with("on"), "no handler of events in the markup"),
                    }
                }
            }
            _ => {}
        }
    }
    assert_eq!(depth, 0, "every element ends");
    (ids, links, elements)
}

#[test]
fn the_page_is_well_formed_and_needs_nothing_from_elsewhere() {
    let page = html_of(everything());
    let (ids, links, elements) = look_through(&page);
    let unique: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "ids are unique");
    for link in links {
        let target = link.strip_prefix('#').unwrap_or_else(|| panic!("{link} leads out of the page"));
        assert!(ids.iter().any(|id| id == target), "{link} leads nowhere");
    }
    for element in ["img", "iframe", "link", "object", "form"] {
        assert!(!elements.contains(element), "{element}");
    }
    for forbidden in ["http://", "https://", "url(//", "@import", "<script>alert"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    // As text, the hostile name is shown.
    assert!(page.contains("&lt;script&gt;alert(&#39;"), "{HOSTILE} is shown as it is");
}

#[test]
fn every_kind_and_every_status_is_in_the_page() {
    let page = html_of(everything());
    for words in [
        "Median latency, linear axes",
        "99th percentile",
        "Latency by percentile, 4 B",
        "Cumulative distribution, smoothed",
        "Mean and standard deviation",
        "Payload received by each reader",
        "Loss",
        "Rates of single seconds",
        "Ramp: Plainsong",
        "knee",
        "Owners over time: Plainsong",
        "publishers ↓ subscribers →",
        "read ↓ instances →",
        "Pairs of products",
        "Time until the last is matched",
        "encode (ns), less is better",
        "CPU: ",
        "Memory: ",
        "Octets on the wire for each octet of payload",
        "p50 / raw UDP",
        "Round trips, p50 / p99 µs, by payload",
        "Each row divided by Plainsong at the same point",
        "Cyclone DDS 11.0.1",
        "memory grows by",
        "lookup",
    ] {
        assert!(page.contains(words), "{words}");
    }
    for words in [
        "not offered: the adapter has no content filter",
        "unmatched: sub-0 found no writer",
        "failed: &lt;script&gt;",
        "crashed: pub-0 ended by signal 11",
        "hung: ping did not answer",
        "skipped",
        "not run",
        "marked in 2: busy: 0.34 cores by others",
        ", 2 marked",
        "SHA-256 5e5e5e",
        "libddsc.so.0.10.2",
        "main 40, &lt;script&gt;",
        "Losses, writer by writer",
        "knee / raw UDP",
        "payload / raw UDP",
        "crashed (1 of 6): ping ended by signal 6",
        "limit p99_us = 10 missed",
        "is said to be ok but has no report",
        "cannot be read",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(
        page.matches("NaN").count() - page.matches("isNaN").count(),
        0,
        "no chart holds what is not a number"
    );
}

#[test]
fn a_run_of_1500_cells_stays_below_5_mb() {
    let mut run = empty("large");
    let mut cells = Vec::new();
    for (place, adapter) in synthetic::ADAPTERS.into_iter().enumerate() {
        for size in 0..15 {
            for reliable in [true, false] {
                let parameters = json!({"size": 4_u64 << size, "reliable": reliable});
                let mut cell = ping("latency_at_rate", adapter, adapter, parameters, 120, place as u64 + 1);
                // As many as an interval needs.
                cell.repetitions.truncate(3);
                cells.push(cell);
            }
        }
    }
    for scenario in 0..10 {
        run.cells.extend(cells.iter().cloned().map(|cell| Cell {
            scenario: format!("scenario {scenario}"),
            id: format!("{scenario}.{}", cell.id),
            ..cell
        }));
    }
    assert_eq!(run.cells.len(), 1500);
    let page = html_of(&run);
    assert!(page.len() < 5_000_000, "{} octets", page.len());
    look_through(&page);
}

#[test]
fn whatever_is_missing_the_page_says_so() {
    let mut nothing = Run { schema: 1, ..Run::default() };
    let page = html_of(&nothing);
    look_through(&page);
    for words in [
        "has no calibration",
        "says nothing of the hosts",
        "No adapter has described itself",
        "has no cells",
        "not finished",
    ] {
        assert!(page.contains(words), "{words}");
    }
    let kinds = [
        "pingpong",
        "throughput",
        "ramp",
        "failover",
        "outage",
        "discovery",
        "encode",
        "read_cost",
        "fan",
        "soak",
        "large",
        "unheard_of",
    ];
    for kind in kinds {
        let crashed = vec![bad(0, Status::Crashed, "signal 11"), bad(1, Status::Hung, "")];
        nothing.cells.push(cell(kind, "a", "b", json!({"size": 64}), crashed));
        nothing.cells.push(cell(kind, "a", "a", json!({}), Vec::new()));
        let worker = synthetic::worker("ping", "a", plainsong_perfkit::Report::default(), &mut Noise::new(1));
        nothing.cells.push(cell(kind, "c", "c", json!({"size": "many"}), vec![ok(0, vec![worker])]));
    }
    let page = html_of(&nothing);
    look_through(&page);
    assert!(page.contains("crashed: signal 11; hung"), "both reasons are told");
    let summaries = Summary::of_run(&nothing);
    assert!(text::write(&nothing, &summaries).contains("crashed (1 of 2): signal 11"));
}

#[test]
fn numbers_of_a_cell_are_those_of_its_histograms() {
    let first = everything()
        .cells
        .iter()
        .find(|cell| cell.id.starts_with("pingpong.plainsong~plainsong.true.64"))
        .unwrap();
    let summary = Summary::of_cell(first);
    assert_eq!((summary.ok, summary.value("count")), (5, Some(6000.0)));
    let p50 = &summary.metrics["p50_us"];
    assert!(p50.value > 36.0 && p50.value < 44.0, "{}", p50.value);
    let (low, high) = p50.interval.unwrap();
    assert!(low <= p50.value && p50.value <= high);
    assert!(
        summary.metrics.contains_key("p99_us") && !summary.metrics.contains_key("p99.9_us"),
        "6000 do not support p99.9"
    );
    assert_eq!(summary.value("received_per_s"), Some(120.0));
    assert_eq!(summary.value("lost"), Some(1.0));
    assert!((summary.value("lost_percent").unwrap() - 100.0 / 1201.0 / 5.0).abs() < 1e-9);
    assert_eq!(summary.value("cpu_writer_percent"), Some(50.0));
}

#[test]
fn limits_are_upper_or_lower_by_what_they_limit() {
    let mut cell = flow("throughput", "plainsong", json!({"size": 64}), 1);
    cell.limits = [
        ("received_per_s", 1000.0),
        ("lost", 0.0),
        ("cpu_writer_percent", 10.0),
        ("received_per_s_max", 5.0),
        ("p99_us", 1e9),
        ("colour", 3.0),
    ]
    .map(|(name, bound)| (name.to_owned(), bound))
    .into();
    let summary = Summary::of_cell(&cell);
    let kept: Vec<(String, bool)> =
        check(&summary).into_iter().map(|limit| (limit.name, limit.kept)).collect();
    let expected = [
        ("colour", false),
        ("cpu_writer_percent", false),
        ("lost", true),
        ("p99_us", true),
        ("received_per_s", true),
        ("received_per_s_max", false),
    ];
    assert_eq!(kept, expected.map(|(name, kept)| (name.to_owned(), kept)));
}

fn conditioned(text: &str, now: &[Cell], base: &[Cell]) -> usize {
    let condition: Condition = text.parse().unwrap();
    let now: Vec<Summary<'_>> = now.iter().map(Summary::of_cell).collect();
    let base: Vec<Summary<'_>> = base.iter().map(Summary::of_cell).collect();
    condition.violations(&now, &with_base(&now, &base)).len()
}

#[test]
fn conditions_are_met_against_the_base_or_by_themselves() {
    let fast = [ping("pingpong", "plainsong", "plainsong", json!({"size": 64}), 1200, 1)];
    let mut slow = [ping("pingpong", "fastdds", "fastdds", json!({"size": 64}), 1200, 1)];
    slow[0].id = fast[0].id.clone();
    assert_eq!(conditioned("p50>+10%", &slow, &fast), 1);
    assert_eq!(conditioned("p50>+90%", &slow, &fast), 0);
    assert_eq!(conditioned("p99_us<-10%", &fast, &slow), 1);
    assert_eq!(conditioned("lost>0", &fast, &[]), 1);
    assert_eq!(conditioned("lost > 10", &fast, &[]), 0);
    let gone = [Cell { id: fast[0].id.clone(), kind: "pingpong".to_owned(), ..Cell::default() }];
    assert_eq!(conditioned("p50>+10%", &gone, &fast), 1, "not measured any more is not better");
    for wrong in ["p99", "p98>3", "p99>many", "p99>+x%"] {
        assert!(wrong.parse::<Condition>().is_err(), "{wrong}");
    }
}

#[test]
fn a_verdict_needs_repetitions_and_an_effect() {
    let fast = ping("pingpong", "plainsong", "plainsong", json!({"size": 64}), 1200, 1);
    let mut slow = ping("pingpong", "fastdds", "fastdds", json!({"size": 64}), 1200, 1);
    slow.id = fast.id.clone();
    let (fast, slow) = (Summary::of_cell(&fast), Summary::of_cell(&slow));
    let pair = compare::Pair::new(String::new(), &fast, &slow);
    assert_eq!(pair.verdict("p50_us"), "worse");
    assert!(pair.effect().unwrap().contains("(large)"));
    let same = compare::Pair::new(String::new(), &fast, &fast);
    assert_ne!(same.verdict("p50_us"), "worse");
    assert_eq!(same.verdict("gap_ms"), "not measured on both sides");
    let mut once = fast.cell.clone();
    once.repetitions.truncate(1);
    let once = Summary::of_cell(&once);
    assert_eq!(
        compare::Pair::new(String::new(), &once, &slow).verdict("p50_us"),
        "too few repetitions to say"
    );
}

struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_run_directory_becomes_tables_a_page_and_a_status() {
    let directory = Directory(std::env::temp_dir().join(format!("plainsong-report-{}", std::process::id())));
    std::fs::create_dir_all(&directory.0).unwrap();
    everything().write(&directory.0).unwrap();
    let options = Options {
        directories: vec![directory.0.clone()],
        html: Some(directory.0.join("report.html")),
        markdown: Some(directory.0.join("report.md")),
        csv: Some(directory.0.join("summary.csv")),
        compare: Some(directory.0.clone()),
        fail_on: vec!["p99>+10%".parse().unwrap()],
    };
    let complaints = show(&options).unwrap();
    assert_eq!(complaints.len(), 1, "the one limit that is missed: {complaints:?}");
    look_through(&std::fs::read_to_string(directory.0.join("report.html")).unwrap());
    assert!(std::fs::read_to_string(directory.0.join("report.md")).unwrap().contains("### pingpong"));
    let table = std::fs::read_to_string(directory.0.join("summary.csv")).unwrap();
    let columns = table.lines().next().unwrap().split(',').count();
    let plain = table.lines().filter(|line| line.contains(",throughput,plainsong,plainsong,reader,ok,"));
    for line in plain {
        let outside: String = line.split('"').step_by(2).collect();
        assert_eq!(outside.split(',').count(), columns, "{line}");
    }
    let files: BTreeSet<String> = std::fs::read_dir(directory.0.join("summary-perftest"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(files.contains("synthetic.pingpong.Plainsong.latency.csv"), "{files:?}");
    let latency = std::fs::read_to_string(
        directory.0.join("summary-perftest/synthetic.pingpong.Plainsong.latency.csv"),
    )
    .unwrap();
    assert!(latency.starts_with("Sample Size (Bytes), Ave (μs), Std (μs), Min (μs)"));
    let second: Vec<&str> = latency.lines().nth(3).unwrap().split(',').collect();
    assert_eq!((second.len(), second[0], second[9]), (10, "64", ""), "99.9999 % is not supported");
    let half: f64 = second[5].parse().unwrap();
    assert!(half > 17.0 && half < 23.0, "half of 40 µs, one way: {half}");
    let intervals = std::fs::read_to_string(
        directory.0.join("summary-perftest/synthetic.throughput.Plainsong-reliable.intervals.csv"),
    )
    .unwrap();
    assert!(intervals.starts_with("Length (Bytes), Total Samples, Samples/s, Avg Samples/s, Mbps, Avg Mbps"));
    assert_eq!(intervals.lines().nth(1).unwrap().split(',').count(), 8);
}

#[test]
fn reports_say_how_many_repetitions_had_cores_apart() {
    let mut run = everything().clone();
    let apart = "cores apart: 302 ns from core to core, 51 at best";
    run.cells[1].repetitions[0].marks = vec![apart.to_owned()];
    let text = text::write(&run, &Summary::of_run(&run));
    let line = format!("marked in 1 repetitions: {apart}, or the like");
    assert!(text.lines().any(|it| it == line), "{line:?} is not in\n{text}");
    let page = html_of(&run);
    assert!(page.contains("repetitions are marked \"cores apart\""));
}

#[test]
fn a_relative_condition_needs_a_base() {
    let options = Options {
        directories: vec![PathBuf::from("nowhere")],
        html: None,
        markdown: None,
        csv: None,
        compare: None,
        fail_on: vec!["p99>+10%".parse().unwrap()],
    };
    assert!(show(&options).unwrap_err().contains("--compare"));
}

#[test]
#[ignore = "writes a page to look at: PLAINSONG_REPORT_PAGE=FILE"]
fn write_a_page_to_look_at() {
    let Some(path) = std::env::var_os("PLAINSONG_REPORT_PAGE") else { return };
    std::fs::write(path, html_of(&whole(12_000))).unwrap();
}

#[test]
fn a_ratio_is_to_the_best_of_the_others_at_the_same_point() {
    let mut run = empty("ratios");
    let point = |size: u64, profile: &str| json!({"size": size, "profile": profile});
    for (adapter, profile, seed) in [
        ("plainsong", "default", 1),
        ("cyclone", "default", 2),
        ("cyclone", "tuned", 3),
        ("fastdds", "default", 4),
    ] {
        for size in [64, 4096] {
            let mut cell = ping("pingpong", adapter, adapter, point(size, profile), 200, seed);
            cell.id = format!("pingpong.{adapter}.{profile}.{size}");
            run.cells.push(cell);
        }
    }
    let ratio = |max: f64| json!({"metric": "p50_us", "of": {"adapter": ["plainsong"]}, "to": {"adapter": ["cyclone", "fastdds"]}, "max": max});
    run.campaign = json!({"scenario": [{"kind": "pingpong", "ratios": [ratio(0.001), ratio(1000.0)]}]});
    let summaries = Summary::of_run(&run);
    let verdicts = ratios::check(&run, &summaries);
    let kept: Vec<bool> = verdicts.iter().map(ratios::Verdict::kept).collect();
    assert_eq!(kept, [false, false, true, true]);
    let each = |id: &str| {
        let found = summaries.iter().find(|summary| summary.cell.id == id).expect("it is there");
        assert_eq!(found.each("p50_us").len(), 5);
        found.each("p50_us").values().copied().collect::<Vec<f64>>()
    };
    for (verdict, size) in verdicts.iter().zip([64, 4096]) {
        let ours = each(&format!("pingpong.plainsong.default.{size}"));
        let to = |other: &str| {
            let theirs = each(&format!("pingpong.{other}.{size}"));
            let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
            median(&ratios).unwrap()
        };
        let others = ["cyclone.default", "cyclone.tuned", "fastdds.default"];
        let worst = others.map(to).into_iter().fold(0.0, f64::max);
        let (found, best) = verdict.found.clone().expect("both are measured");
        assert!((found - worst).abs() < 1e-9, "{best} is the best at {size}");
        assert!(verdict.words().contains("at most 0.001 missed"), "{}", verdict.words());
    }
    let page = html_of(&run);
    assert!(page.contains("2 of 4 ratios that the campaign asks for are kept"));
}

#[test]
fn a_ratio_is_the_median_of_those_of_neighbours() {
    let mut run = empty("ratios");
    // The machine was at half its speed for the last two, and something else disturbed two: means would say
    // 2.5, medians 1.5.
    for (adapter, rates) in [("plainsong", [900, 960, 90, 450, 300]), ("cyclone", [300, 300, 300, 150, 20])] {
        let mut cell = flow("throughput", adapter, json!({"size": 64}), 1);
        let report = cell.repetitions[0].workers.clone();
        cell.repetitions = (0..5).map(|number| ok(number, report.clone())).collect();
        for (repetition, rate) in cell.repetitions.iter_mut().zip(rates) {
            for report in repetition.workers.iter_mut().filter_map(|it| it.report.as_mut()) {
                (report.length_ns, report.totals.received, report.in_time) = (1_000_000_000, rate, None);
            }
        }
        cell.id = format!("throughput.{adapter}");
        run.cells.push(cell);
    }
    let ratio = |metric: &str| json!({"metric": metric, "of": {"adapter": ["plainsong"]}, "to": {"adapter": ["cyclone"]}});
    run.campaign =
        json!({"scenario": [{"kind": "throughput", "ratios": [ratio("received_per_s"), ratio("p90_us")]}]});
    let found = |run: &Run| -> Vec<f64> {
        let verdicts = ratios::check(run, &Summary::of_run(run));
        verdicts.iter().map(|it| it.found.as_ref().expect("measured").0).collect()
    };
    assert_eq!(found(&run)[0], 3.0);
    run.cells[1].repetitions[4].status = Status::Crashed;
    assert_eq!(found(&run)[0], 3.0, "of those that both have");
    // Too few values for a percentile in one of them: all are put together.
    let whole = found(&run)[1];
    let few = histogram("one_way", 20, 30_000.0, &mut Noise::new(7));
    for worker in &mut run.cells[0].repetitions[3].workers {
        worker.report.as_mut().unwrap().histograms = vec![few.clone()];
    }
    let summaries = Summary::of_run(&run);
    let [ours, theirs] = [0, 1].map(|place| summaries[place].value("p90_us").unwrap());
    assert_eq!(found(&run)[1], ours / theirs);
    assert!((whole - found(&run)[1]).abs() > f64::EPSILON);
}

#[test]
fn what_was_not_measured_keeps_no_ratio() {
    let mut run = empty("ratios");
    run.cells.push(ping("pingpong", "plainsong", "plainsong", json!({"size": 64}), 200, 1));
    let ratio =
        json!({"metric": "p50_us", "of": {"adapter": ["plainsong"]}, "to": {"adapter": ["udp"]}, "max": 2.0});
    run.campaign = json!({"scenario": [{"kind": "pingpong", "ratios": [ratio]}]});
    let summaries = Summary::of_run(&run);
    let verdicts = ratios::check(&run, &summaries);
    assert_eq!(verdicts.len(), 1);
    assert!(
        verdicts.iter().all(|verdict| !verdict.kept() && verdict.words().ends_with("missed: not measured"))
    );
}

#[test]
fn a_comparison_says_what_else_has_changed() {
    let base = empty("base");
    let mut now = base.clone();
    let told = compare::differences(&now, &base);
    assert_eq!(
        told,
        ["it is not known whether the same program ran in the base as cyclone11, fastdds, hostile, udp"]
    );
    now.hosts[0].kernel = "6.19.0".to_owned();
    now.programs[1].files[1].sha256 = "ab".repeat(32);
    let told = compare::differences(&now, &base);
    assert!(told[0].contains("another kernel"), "{told:?}");
    assert_eq!(told[1], "another program, or another library, ran in the base as cyclone");
}

/// A line without the markup that is escaped in it.
fn unescaped(line: &str) -> String {
    let mut characters = line.chars();
    let mut left = String::new();
    while let Some(each) = characters.next() {
        if each == '\\' { characters.next().map_or((), drop) } else { left.push(each) }
    }
    left
}

#[test]
fn markdown_tables_have_all_columns_in_each_row_and_no_markup_of_others() {
    let run = everything();
    let page = markdown::write(run, &Summary::of_run(run));
    let mut columns = 0;
    let mut rows = 0;
    for line in page.lines().map(unescaped) {
        assert!(!line.contains(['<', '>', '`']), "{line}");
        if line.starts_with('|') {
            let count = line.matches('|').count();
            // A table begins anew after a line that belongs to none.
            if columns == 0 {
                columns = count;
            }
            assert_eq!(count, columns, "{line}");
            rows += 1;
        } else {
            columns = 0;
        }
    }
    assert!(rows > run.cells.len(), "{rows} rows of {} cells", run.cells.len());
    assert!(page.contains("\\<script\\>alert(") && page.contains("### pingpong (pingpong)"), "{page}");
    assert!(page.contains("|---|---:|"), "numbers stand to the right");
}
