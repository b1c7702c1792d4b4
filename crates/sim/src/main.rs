//! `sim`: runs seeds, prints what went wrong and how to see it again.

#![forbid(unsafe_code)]

use std::ops::Range;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use plainsong_sim::atomic::{self, Length, Mistake};
use plainsong_sim::atomic_model;
use plainsong_sim::check::Violation;
use plainsong_sim::decider;
use plainsong_sim::mutation::{self, Mutation};
use plainsong_sim::run::{self, Verdict};
use plainsong_sim::scale;
use plainsong_sim::trace::Detail;

const HELP: &str = "\
sim: simulates Plainsong systems from seeds and checks what must hold

  sim --seed N             one run: the end of its trace, and the verdict
  sim --seed N --trace     one run: the whole trace
  sim --seeds A..B         the runs A to B-1: failures, and a summary
  sim                      the same as --seeds 0..100
  sim --mutations          makes each deliberate mistake until the checker it is meant for notices it
  sim --model              every order of events of few members of an ATOMIC group, and one change of epochs
  sim decider OPTIONS      the same of the decider of epochs alone
  --without NAME           with any of these: does not judge that invariant

  sim atomic ...           groups of ATOMIC topics, with --seed, --seeds and --trace as above, and
  --runs N --seed A        the same as --seeds A..A+N
  --long                   runs of 20,000 samples
  --corpus                 the seeds that once failed
  --mutations              makes each deliberate mistake until it is noticed

  sim scale                what discovery costs of 10 to 10,000 participants
  --participants A,B,...   of so many
  --full, --sampled        simulates the traffic of all, or of some with all others; default: by their number
  --chart FILE             draws it, as SVG
";

/// Lines of the trace that a single run prints.
const TAIL_LINES: usize = 60;

enum Task {
    One { seed: u64, detail: Detail },
    Many { first: u64, end: u64 },
    Mutations,
    Model,
    Help,
}

/// Invariants that are not judged.
type Unjudged = Vec<String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((first, rest)) = arguments.split_first()
        && first == "atomic"
    {
        return match parse_atomic(rest) {
            Ok(task) => task.carry_out(),
            Err(error) => usage(&error),
        };
    }
    if let Some((first, rest)) = arguments.split_first()
        && first == "scale"
    {
        return scale_of(rest);
    }
    let mut unjudged = Unjudged::new();
    let (of_decider, arguments) = match arguments.split_first() {
        Some((first, rest)) if first == "decider" => (true, rest),
        _ => (false, &arguments[..]),
    };
    let passed = match parse(arguments, &mut unjudged) {
        Ok(Task::One { seed, detail }) if of_decider => one_decider(seed, detail == Detail::All),
        Ok(Task::Many { first, end }) if of_decider => deciders(first..end),
        Ok(Task::Mutations) if of_decider => decider_mistakes(),
        Ok(Task::One { seed, detail }) => one(seed, detail, &unjudged),
        Ok(Task::Many { first, end }) => many(first, end, &unjudged),
        Ok(Task::Mutations) => mutations(),
        Ok(Task::Model) => atomic_model::explore_all(),
        Ok(Task::Help) => {
            print!("{HELP}");
            true
        }
        Err(error) => return usage(&error),
    };
    exit_code(passed)
}

fn usage(error: &str) -> ExitCode {
    eprintln!("sim: {error}\n\n{HELP}");
    ExitCode::from(2)
}

const fn exit_code(passed: bool) -> ExitCode {
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs of groups of ATOMIC topics.
struct AtomicTask {
    first: u64,
    end: u64,
    length: Length,
    /// Of a single run.
    detail: Option<Detail>,
    is_of_mistakes: bool,
    is_of_corpus: bool,
}

/// Seeds that once failed.
const CORPUS: &str = include_str!("../corpus/atomic.txt");

fn parse_atomic(arguments: &[String]) -> Result<AtomicTask, String> {
    let (mut seed, mut runs, mut range, mut whole) = (None, None, None, false);
    let (mut length, mut is_of_mistakes, mut is_of_corpus) = (Length::Short, false, false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--seed" => seed = Some(number(rest.next())?),
            "--runs" => runs = Some(number(rest.next())?),
            "--seeds" => range = Some(seeds(rest.next())?),
            "--long" => length = Length::Long,
            "--mutations" => is_of_mistakes = true,
            "--corpus" => is_of_corpus = true,
            "--trace" => whole = true,
            other => return Err(format!("unknown argument {other}")),
        }
    }
    let first = seed.unwrap_or(0);
    let detail = if whole { Detail::All } else { Detail::Tail(TAIL_LINES) };
    let detail = (seed.is_some() && runs.is_none() && range.is_none()).then_some(detail);
    if whole && detail.is_none() {
        return Err("--trace goes with --seed".to_owned());
    }
    let end = first.saturating_add(runs.unwrap_or(1_000));
    let (first, end) = range.unwrap_or((first, end));
    Ok(AtomicTask { first, end, length, detail, is_of_mistakes, is_of_corpus })
}

impl AtomicTask {
    fn carry_out(&self) -> ExitCode {
        if self.is_of_mistakes {
            return exit_code(atomic_mutations());
        }
        if self.is_of_corpus {
            return exit_code(many_of_groups(&corpus()));
        }
        let Some(detail) = self.detail else {
            let runs: Vec<Run> = (self.first..self.end).map(|seed| (seed, self.length)).collect();
            return exit_code(many_of_groups(&runs));
        };
        let verdict = atomic::run(self.first, self.length, detail, None);
        verdict.tail.iter().for_each(|line| println!("{line}"));
        for violation in &verdict.violations {
            println!("violated {}: {}", violation.invariant, violation.what);
        }
        let (passed, seed) = (verdict.violations.is_empty(), self.first);
        let word = if passed { "passed" } else { "FAILED" };
        println!("seed {seed} {word}: {} events, hash {:016x}", verdict.events, verdict.hash);
        exit_code(passed)
    }
}

/// A seed, and how long it runs.
type Run = (u64, Length);

fn corpus() -> Vec<Run> {
    let lines = CORPUS.lines().filter(|line| !line.starts_with('#'));
    let run = |line: &str| {
        let (line, length) =
            line.strip_prefix("long ").map_or((line, Length::Short), |it| (it, Length::Long));
        (line.split_whitespace().next().and_then(|seed| seed.parse().ok()).expect("a seed"), length)
    };
    lines.map(run).collect()
}

fn many_of_groups(runs: &[Run]) -> bool {
    let delivered = AtomicU64::new(0);
    let failed = on_all_cores(0..runs.len() as u64, |index| {
        let (seed, length) = runs[index as usize];
        let found = std::panic::catch_unwind(|| atomic::run(seed, length, Detail::Hash, None));
        let what = match found {
            Ok(verdict) => {
                delivered.fetch_add(verdict.delivered, Ordering::Relaxed);
                let first = verdict.violations.first()?;
                format!("{}: {}", first.invariant, first.what)
            }
            Err(_) => "panic".to_owned(),
        };
        let long = if length == Length::Long { " --long" } else { "" };
        let line = format!("FAILED {what}; see: cargo xtask sim atomic{long} --seed {seed}");
        println!("{line}");
        Some(line)
    });
    let passed = runs.len() - failed.len();
    println!("{passed} passed, {} failed, {} samples", failed.len(), delivered.load(Ordering::Relaxed));
    failed.is_empty()
}

fn parse(arguments: &[String], unjudged: &mut Unjudged) -> Result<Task, String> {
    let mut task = Task::Many { first: 0, end: 100 };
    let mut whole = false;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--seed" => {
                let seed = number(rest.next())?;
                task = Task::One { seed, detail: Detail::Tail(TAIL_LINES) };
            }
            "--seeds" => {
                let (first, end) = seeds(rest.next())?;
                task = Task::Many { first, end };
            }
            "--mutations" => task = Task::Mutations,
            "--model" => task = Task::Model,
            "--trace" => whole = true,
            "--without" => unjudged.push(rest.next().ok_or("--without needs a name")?.clone()),
            "--help" | "-h" => return Ok(Task::Help),
            other => return Err(format!("unknown argument {other}")),
        }
    }
    match task {
        Task::One { seed, .. } if whole => Ok(Task::One { seed, detail: Detail::All }),
        Task::Many { .. } if whole => Err("--trace goes with --seed".to_owned()),
        task => Ok(task),
    }
}

fn seeds(text: Option<&String>) -> Result<(u64, u64), String> {
    let range = text.ok_or("--seeds needs a range such as 0..100")?;
    let (first, end) = range.split_once("..").ok_or("a range is written A..B")?;
    Ok((number(Some(first))?, number(Some(end))?))
}

fn number(text: Option<impl AsRef<str>>) -> Result<u64, String> {
    let text = text.ok_or("a number is missing")?;
    text.as_ref().parse().map_err(|_| format!("{} is not a number", text.as_ref()))
}

fn one(seed: u64, detail: Detail, unjudged: &Unjudged) -> bool {
    let Verdict { mut violations, world, .. } = run::run(seed, detail, None);
    judge(&mut violations, unjudged);
    for line in world.trace.tail() {
        println!("{line}");
    }
    for violation in &violations {
        println!("violated {}: {}", violation.invariant, violation.what);
    }
    let (hash, events) = (world.trace.hash(), world.trace.events());
    let verdict = if violations.is_empty() { "passed" } else { "FAILED" };
    println!("seed {seed} {verdict}: {events} events, hash {hash:016x}");
    violations.is_empty()
}

fn many(first: u64, end: u64, unjudged: &Unjudged) -> bool {
    let failed = on_all_cores(first..end, |seed| failure(seed, unjudged).inspect(|line| println!("{line}")));
    println!("{} passed, {} failed", end.saturating_sub(first) - failed.len() as u64, failed.len());
    failed.is_empty()
}

/// A checker that cannot fail proves nothing.
fn mutations() -> bool {
    let unnoticed = on_all_cores(0..Mutation::ALL.len() as u64, |index| {
        let (mutation, invariant, _) = Mutation::ALL.get(index as usize)?;
        match mutation::first_noticed(*mutation, invariant) {
            Some(seed) => {
                println!("{mutation:?} is noticed by {invariant} with seed {seed}");
                None
            }
            None => Some(format!("FAILED {mutation:?} goes unnoticed by {invariant}")),
        }
    });
    unnoticed.iter().for_each(|line| println!("{line}"));
    println!("{} mistakes noticed, {} not", Mutation::ALL.len() - unnoticed.len(), unnoticed.len());
    unnoticed.is_empty()
}

fn one_decider(seed: u64, told: bool) -> bool {
    let outcome = decider::run(seed, None, told);
    for violation in &outcome.violations {
        println!("violated {}: {}", violation.invariant, violation.what);
    }
    let verdict = if outcome.violations.is_empty() { "passed" } else { "FAILED" };
    println!("seed {seed} {verdict}: {} steps, hash {:016x}", outcome.steps, outcome.hash);
    outcome.violations.is_empty()
}

/// Many seeds of the decider of epochs.
fn deciders(seeds: Range<u64>) -> bool {
    let (steps, decisions, slowest) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let failed = on_all_cores(seeds.clone(), |seed| {
        let outcome = std::panic::catch_unwind(|| decider::run(seed, None, false));
        let what = match &outcome {
            Ok(outcome) => {
                steps.fetch_add(outcome.steps, Ordering::Relaxed);
                decisions.fetch_add(outcome.decisions, Ordering::Relaxed);
                slowest.fetch_max(outcome.healed_in.0.unsigned_abs(), Ordering::Relaxed);
                let first = outcome.violations.first()?;
                format!("{}: {}", first.invariant, first.what)
            }
            Err(_) => "panic".to_owned(),
        };
        let line = format!("FAILED {what}; see: cargo xtask sim decider --seed {seed}");
        println!("{line}");
        Some(line)
    });
    let (steps, decisions) = (steps.into_inner(), decisions.into_inner());
    let slowest_ms = slowest.into_inner() / 1_000_000;
    println!("{steps} steps, {decisions} decisions, the slowest {slowest_ms} ms after all had healed");
    println!(
        "{} passed, {} failed",
        seeds.end.saturating_sub(seeds.start) - failed.len() as u64,
        failed.len()
    );
    failed.is_empty()
}

fn decider_mistakes() -> bool {
    let unnoticed = on_all_cores(0..decider::Mistake::ALL.len() as u64, |index| {
        let (mistake, invariant, _) = decider::Mistake::ALL.get(index as usize)?;
        let noticed = decider::first_noticed(*mistake, invariant);
        match noticed {
            Some(seed) => println!("{mistake:?} is noticed by {invariant} with seed {seed}"),
            None => println!("FAILED {mistake:?} goes unnoticed by {invariant}"),
        }
        noticed.is_none().then(String::new)
    });
    let all = decider::Mistake::ALL.len();
    println!("{} mistakes noticed, {} not", all - unnoticed.len(), unnoticed.len());
    unnoticed.is_empty()
}

/// The same of groups of ATOMIC topics.
fn atomic_mutations() -> bool {
    let unnoticed = on_all_cores(0..Mistake::ALL.len() as u64, |index| {
        let (mistake, _) = Mistake::ALL.get(index as usize)?;
        let Some((seed, invariant)) = mistake.first_noticed() else {
            return Some(format!("FAILED {mistake:?} goes unnoticed"));
        };
        println!("{mistake:?} is noticed by {invariant} with seed {seed}");
        None
    });
    unnoticed.iter().for_each(|line| println!("{line}"));
    println!("{} mistakes noticed, {} not", Mistake::ALL.len() - unnoticed.len(), unnoticed.len());
    unnoticed.is_empty()
}

/// What `work` says about each number. Threads are allowed here and only here: each run is a world of its
/// own.
fn on_all_cores(numbers: Range<u64>, work: impl Fn(u64) -> Option<String> + Sync) -> Vec<String> {
    let next = AtomicU64::new(numbers.start);
    let lines = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= numbers.end {
                        break;
                    }
                    if let Some(line) = work(number)
                        && let Ok(mut lines) = lines.lock()
                    {
                        lines.push(line);
                    }
                }
            });
        }
    });
    lines.into_inner().unwrap_or_default()
}

fn judge(violations: &mut Vec<Violation>, unjudged: &Unjudged) {
    violations.retain(|violation| !unjudged.iter().any(|name| name == violation.invariant));
}

/// One line about a run that failed. A panic of the protocol core is a failure like others.
fn failure(seed: u64, unjudged: &Unjudged) -> Option<String> {
    let found = std::panic::catch_unwind(|| run::run(seed, Detail::Hash, None).violations);
    let what = match found {
        Ok(mut violations) => {
            judge(&mut violations, unjudged);
            let first = violations.first()?;
            let mut names: Vec<&str> = violations.iter().map(|violation| violation.invariant).collect();
            names.dedup();
            format!("{}: {}", names.join(", "), first.what)
        }
        Err(_) => "panic".to_owned(),
    };
    Some(format!("FAILED {what}; see: cargo xtask sim --seed {seed}"))
}

/// What discovery costs of many participants.
fn scale_of(arguments: &[String]) -> ExitCode {
    let (mut counts, mut seed, mut is_full, mut chart) = (scale::PARTICIPANTS.to_vec(), 1, None, None);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let parsed = match argument.as_str() {
            "--participants" => participants(rest.next()).map(|told| counts = told),
            "--seed" => number(rest.next()).map(|told| seed = told),
            "--full" | "--sampled" => {
                is_full = Some(argument == "--full");
                Ok(())
            }
            "--chart" => {
                chart = rest.next();
                chart.map(drop).ok_or_else(|| "--chart wants a file".to_owned())
            }
            other => Err(format!("unknown argument {other}")),
        };
        if let Err(error) = parsed {
            return usage(&error);
        }
    }
    println!("{}", scale::HEAD);
    let mut rows = Vec::new();
    for participants in counts {
        let is_full = is_full.unwrap_or(participants <= scale::FULL_MAX);
        let row = scale::run(scale::Options { participants, is_full, seed });
        println!("{row}");
        rows.push(row);
    }
    if rows.iter().any(|row| !row.options.is_full) {
        println!("* of some participants: their traffic with all others");
    }
    if let Some(file) = chart
        && let Err(error) = std::fs::write(file, scale::chart(&rows))
    {
        eprintln!("sim: cannot write {file}: {error}");
        return ExitCode::FAILURE;
    }
    exit_code(rows.iter().all(|row| row.matched_s.is_some() && row.joined_ms.is_some()))
}

/// Numbers of participants, each at least two.
fn participants(list: Option<&String>) -> Result<Vec<usize>, String> {
    let list = list.ok_or("--participants wants numbers, with commas")?;
    let count = |text: &str| text.parse().ok().filter(|count| (2..=100_000).contains(count));
    let counts: Option<Vec<usize>> = list.split(',').map(count).collect();
    counts.ok_or_else(|| format!("{list} is not numbers from 2 to 100000, with commas"))
}
