//! `cargo xtask bench`: Plainsong beside Cyclone DDS and raw sockets, interleaved, in one run.
//!
//! Each pair of processes gets a network namespace of its own and one core each. Figures of one run compare;
//! figures of different runs or machines do not.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use crate::shell;

const REPETITIONS: usize = 5;
const SECONDS: u32 = 4;

/// One column of the table: how its two processes are started, and how its figure is read.
struct Contender {
    name: &'static str,
    first: fn(size: u32) -> String,
    second: fn(size: u32) -> String,
    read: fn(output: &str) -> Option<Vec<f64>>,
}

const LATENCY: [Contender; 3] = [
    Contender {
        name: "raw sockets",
        first: |_| bench("raw-pong"),
        second: |size| sized("raw-ping", size),
        read: round_trip,
    },
    Contender {
        name: "Plainsong",
        first: |_| bench("pong"),
        second: |size| sized("ping", size),
        read: round_trip,
    },
    Contender {
        name: "Cyclone (ddsperf)",
        first: |_| "ddsperf pong".into(),
        second: |size| format!("ddsperf -D {} ping size {size}", SECONDS + 1),
        read: ddsperf_round_trip,
    },
];

const THROUGHPUT: [Contender; 2] = [
    Contender {
        name: "Plainsong",
        first: |size| sized("publish", size),
        second: |size| sized("subscribe", size),
        read: |output| Some(vec![word_after(output, "samples_per_s")?]),
    },
    Contender {
        name: "Cyclone (ddsperf, batching)",
        first: |size| format!("ddsperf -D {} pub size {size}", SECONDS + 2),
        second: |_| format!("ddsperf -D {} sub", SECONDS + 1),
        read: ddsperf_rate,
    },
];

/// Builds, measures, prints.
pub(crate) fn run(_arguments: &[String]) -> Result<bool, String> {
    let built = shell::cargo(&["build", "--release", "-p", "plainsong-bench"]).status();
    if !built.map_err(|error| format!("cargo: {error}"))?.success() {
        return Ok(false);
    }
    for size in [64, 8192] {
        table(&format!("round trip of {size} octets, reliable, p50 and p99 in µs"), &LATENCY, size)?;
    }
    table("samples of 64 octets a second, reliable, keep all", &THROUGHPUT, 64)?;
    println!("\nfrom the start of a publishing process to its first sample in a subscriber that waits");
    let mut command = Command::new(shell::target().join("release/bench"));
    command.arg("start");
    shell::isolated(&command).status().map_err(|error| format!("bench: {error}"))?;
    println!("\nan idle participant with 10 endpoints, over 60 s");
    let mut command = Command::new(shell::target().join("release/bench"));
    command.args(["footprint", "--seconds", "60", "--strict"]);
    let footprint = shell::isolated(&command).status().map_err(|error| format!("bench: {error}"))?;
    println!("\ntwo participants of one process, reliable");
    let mut command = Command::new(shell::target().join("release/bench"));
    command.arg("inside");
    shell::isolated(&command).status().map_err(|error| format!("bench: {error}"))?;
    scale()?;
    Ok(footprint.success())
}

/// Many instances, endpoints, participants.
fn scale() -> Result<(), String> {
    println!("\na structure of numbers, encoded whole and member by member");
    let mut command = Command::new(shell::target().join("release/bench"));
    command.arg("encode").status().map_err(|error| format!("bench: {error}"))?;
    println!("\nmany instances, endpoints and participants");
    let runs = [
        ("instances", 1),
        ("instances", 70_000),
        ("instances", 1_000_000),
        ("endpoints", 500),
        ("participants", 200),
    ];
    for (role, count) in runs {
        let mut command = Command::new(shell::target().join("release/bench"));
        command.args([role, "--count", &count.to_string()]);
        shell::isolated(&command).status().map_err(|error| format!("bench: {error}"))?;
    }
    Ok(())
}

fn table(title: &str, contenders: &[Contender], size: u32) -> Result<(), String> {
    println!("\n{title} (median [min..max] of {REPETITIONS})");
    let mut figures: BTreeMap<&str, Vec<Vec<f64>>> = BTreeMap::new();
    for _ in 0..REPETITIONS {
        for contender in contenders {
            let output = pair(&(contender.first)(size), &(contender.second)(size))?;
            match (contender.read)(&output) {
                Some(values) => figures.entry(contender.name).or_default().push(values),
                None => println!("  {}: no figure in: {}", contender.name, output.trim()),
            }
        }
    }
    for contender in contenders {
        let Some(runs) = figures.get(contender.name) else { continue };
        let columns = runs.first().map_or(0, Vec::len);
        let cells: Vec<_> = (0..columns)
            .map(|column| {
                let mut values: Vec<f64> = runs.iter().filter_map(|run| run.get(column).copied()).collect();
                values.sort_by(f64::total_cmp);
                let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
                format!("{:.1} [{:.1}..{:.1}]", at(values.len() / 2), at(0), at(values.len() - 1))
            })
            .collect();
        println!("  {:<28} {}", contender.name, cells.join("   "));
    }
    Ok(())
}

/// Runs both commands in one namespace, a core each, until the second ends; gives its output.
fn pair(first: &str, second: &str) -> Result<String, String> {
    let script = format!(
        "taskset -c 1 {first} >/dev/null 2>&1 & first=$!\nsleep 0.3\n\
         taskset -c 0 timeout 30 {second}\nkill -INT $first 2>/dev/null; wait $first"
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]);
    let output = shell::isolated(&command)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("unshare: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn bench(role: &str) -> String {
    format!("{} {role}", shell::target().join("release/bench").display())
}

fn sized(role: &str, size: u32) -> String {
    format!("{} --size {size} --seconds {SECONDS}", bench(role))
}

fn round_trip(output: &str) -> Option<Vec<f64>> {
    Some(vec![word_after(output, "p50_us")?, word_after(output, "p99_us")?])
}

/// ddsperf prints percentiles of half the round trip each second: the median of its seconds, doubled.
fn ddsperf_round_trip(output: &str) -> Option<Vec<f64>> {
    let median = |name: &str| {
        let mut seconds: Vec<f64> =
            output.lines().skip(1).filter_map(|line| word_after(line, name)).collect();
        seconds.sort_by(f64::total_cmp);
        seconds.get(seconds.len() / 2).map(|half| half * 2.0)
    };
    Some(vec![median("50%")?, median("99%")?])
}

/// Thousands of samples a second, once a second; the first and last seconds are not whole.
fn ddsperf_rate(output: &str) -> Option<Vec<f64>> {
    let mut rates: Vec<f64> = output.lines().filter_map(|line| word_after(line, "rate")).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).map(|thousands| vec![thousands * 1000.0])
}

/// The number that follows a word, whatever unit sticks to it.
fn word_after(text: &str, word: &str) -> Option<f64> {
    let mut words = text.split_whitespace().skip_while(|candidate| *candidate != word);
    words.nth(1)?.trim_end_matches(|c: char| c.is_alphabetic()).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_both_tools() {
        let ours = "size 64 count 9 p50_us 21.5 p99_us 40.0 max_us 99.0\n";
        assert_eq!(round_trip(ours), Some(vec![21.5, 40.0]));
        let line = "[1] 2.000  vm:2 size 64 mean 9.8us min 8us 50% 10.5us 90% 13us 99% 20us max 99us cnt 9\n";
        assert_eq!(ddsperf_round_trip(&line.repeat(3)), Some(vec![21.0, 40.0]));
        let line = "[1] 4.000  size 64 total 9 lost 0 delta 9 lost 0 rate 737.5 kS/s 377 Mb/s\n";
        assert_eq!(ddsperf_rate(&line.repeat(3)), Some(vec![737_500.0]));
    }
}
