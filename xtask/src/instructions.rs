//! `cargo xtask instructions`: what a sample costs on its two paths, in instructions, which must not grow.
//!
//! callgrind runs `bench paths` twice, with few samples and with many: the difference of what the writing and
//! the receiving thread have executed is what the samples between them have cost. Counts of one compiler
//! hardly differ between machines.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell;

/// Where the counts are written down.
const BASELINE: &str = "crates/bench/instructions.txt";
/// Of what was written down, in percent, a count may be this much larger.
const GROWTH_PERCENT: u64 = 10;
/// Samples of the two runs: so many more that discovery, which differs from run to run, does not matter.
const SAMPLES: [u64; 2] = [2_000, 82_000];
/// The least count of so many runs is taken: how many samples share a datagram depends on what else the
/// machine does.
const ROUNDS: u32 = 3;
/// What is counted, and the function that its thread is known by.
const PATHS: [(&str, &str); 2] = [("write", "path_write"), ("receive_and_take", "path_take")];

const HEAD: &str = "\
# Instructions of a sample of 64 octets (keyed, bounded, reliable, keep all, in a flow) on its two paths, system calls aside:
# `cargo xtask instructions` counts them with callgrind and fails where one is more than a tenth larger;
# `cargo xtask instructions --write` writes them down.
";

/// `cargo xtask instructions [--write]`.
pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let built = shell::cargo(&["build", "--release", "--quiet", "-p", "plainsong-bench"]).status();
    if !built.map_err(|error| format!("cargo: {error}"))?.success() {
        return Ok(false);
    }
    let counts = of_a_sample()?;
    let baseline = shell::root().join(BASELINE);
    if arguments.iter().any(|it| it == "--write") {
        let rows: String =
            PATHS.iter().zip(&counts).map(|((name, _), count)| format!("{name} {count}\n")).collect();
        fs::write(&baseline, format!("{HEAD}{rows}")).map_err(|error| format!("{BASELINE}: {error}"))?;
        print!("{rows}");
        return Ok(true);
    }
    let text = fs::read_to_string(&baseline).map_err(|error| format!("{BASELINE}: {error}"))?;
    let mut kept = true;
    for ((name, _), count) in PATHS.iter().zip(counts) {
        let before = written(&text, name).ok_or_else(|| format!("{BASELINE} has no row {name}"))?;
        let verdict = judge(before, count);
        kept &= verdict != Verdict::More;
        println!("{name}: {count} instructions a sample, {before} written down{}", verdict.words());
    }
    Ok(kept)
}

/// The instructions of one sample, on each path.
fn of_a_sample() -> Result<Vec<u64>, String> {
    let [few, many] = SAMPLES.map(least);
    let (few, many) = (few?, many?);
    let samples = SAMPLES[1] - SAMPLES[0];
    Ok(few.iter().zip(&many).map(|(few, many)| many.saturating_sub(*few) / samples).collect())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    More,
    Same,
    Fewer,
}

impl Verdict {
    const fn words(self) -> &'static str {
        match self {
            Self::More => ": more than a tenth more. Find out why, or write down why not and the new count",
            Self::Same => "",
            Self::Fewer => ": a tenth fewer. `cargo xtask instructions --write` keeps it that way",
        }
    }
}

fn judge(before: u64, now: u64) -> Verdict {
    if now * 100 > before * (100 + GROWTH_PERCENT) {
        Verdict::More
    } else if now * 100 < before * (100 - GROWTH_PERCENT) {
        Verdict::Fewer
    } else {
        Verdict::Same
    }
}

fn written(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// The least instructions of the thread of each path, of runs with so many samples.
fn least(samples: u64) -> Result<Vec<u64>, String> {
    let mut counts = count(samples)?;
    for _ in 1..ROUNDS {
        counts.iter_mut().zip(count(samples)?).for_each(|(least, count)| *least = count.min(*least));
    }
    Ok(counts)
}

/// The instructions of the thread of each path, of a run with so many samples.
fn count(samples: u64) -> Result<Vec<u64>, String> {
    let directory = shell::target().join("instructions");
    let fail = |error: std::io::Error| format!("{}: {error}", directory.display());
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).map_err(fail)?;
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--tool=callgrind", "--separate-threads=yes", "--compress-strings=no"]);
    command.args(["--fair-sched=yes", &format!("--callgrind-out-file={}", directory.join("of").display())]);
    command.arg(shell::target().join("release/bench"));
    command.args(["paths", "--count", &samples.to_string()]);
    let ended = shell::isolated(&command).status().map_err(|error| format!("valgrind: {error}"))?;
    if !ended.success() {
        return Err(format!("valgrind (`cargo xtask setup` installs it): {ended}"));
    }
    let threads: Vec<PathBuf> =
        fs::read_dir(&directory).map_err(fail)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    PATHS
        .iter()
        .map(|(name, function)| {
            of_thread(&threads, function).ok_or_else(|| {
                format!(
                    "callgrind saw no thread of the path {name}: none of {} files names {function}",
                    threads.len()
                )
            })
        })
        .collect()
}

/// The instructions of the thread that executed a function.
fn of_thread(threads: &[PathBuf], function: &str) -> Option<u64> {
    let texts = threads.iter().filter_map(|path: &PathBuf| fs::read_to_string(path as &Path).ok());
    texts.into_iter().filter(|text| executed(text, function)).find_map(|text| total(&text))
}

/// Whether the dump of a thread has costs of the function itself.
fn executed(dump: &str, function: &str) -> bool {
    dump.lines().any(|line| line.strip_prefix("fn=").is_some_and(|name| name.contains(function)))
}

fn total(dump: &str) -> Option<u64> {
    let value = |line: &str| line.strip_prefix("totals: ")?.trim().parse().ok();
    dump.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_is_no_growth_and_more_is() {
        assert_eq!(judge(1000, 1100), Verdict::Same);
        assert_eq!(judge(1000, 1101), Verdict::More);
        assert_eq!(judge(1000, 899), Verdict::Fewer);
    }

    #[test]
    fn rows_are_found_by_their_whole_name() {
        let text = "# write 7\nwrite 2652\nreceive_and_take 3039\n";
        assert_eq!(written(text, "write"), Some(2652));
        assert_eq!(written(text, "receive_and_take"), Some(3039));
        assert_eq!(written(text, "receive"), None);
    }

    #[test]
    fn a_thread_is_known_by_what_it_executed_and_not_by_what_it_called() {
        let dump = "thread: 2\nfn=bench::paths::path_take\n7 100\nfn=other\ncfn=bench::paths::path_write\ntotals: 4711\n";
        assert!(executed(dump, "path_take") && !executed(dump, "path_write"));
        assert_eq!(total(dump), Some(4711));
    }
}
