//! `plainsong perf run`: carries out a campaign.

mod apart;
mod conduct;
pub(crate) mod directory;
mod link;
mod network;
mod order;
mod others;
mod outage;
mod parties;
mod progress;
mod repetition;
mod tail;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

pub(crate) use self::conduct::{Job, Outcome, conduct};

use self::order::turns;
use self::progress::words;
use super::agent::child::adapter_directory;
use super::agent::{clock, read_token};
use super::calibrate;
use super::campaign::{Campaign, Planned, resolve};
use super::report;
use super::results::{Calibration, Repetition, Run, SCHEMA, Status};
use crate::output::{counted, say};

/// What starting and ending the processes of a repetition takes, beside its own time.
const OVERHEAD: Duration = Duration::from_millis(900);

/// Carry out a campaign.
#[derive(Args)]
pub(crate) struct Options {
    /// The campaign: a TOML file, or `run.json` of a run that is to be repeated.
    #[arg(required_unless_present = "resume")]
    campaign: Option<PathBuf>,
    /// The run directory to write; a new one here if not given.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Go on with an interrupted run.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["campaign", "out", "only"])]
    resume: Option<PathBuf>,
    /// Only the cells whose names match: `pingpong.*.64`.
    #[arg(long, value_name = "GLOB")]
    only: Option<String>,
    /// Each cell once, whatever the campaign says: a first look, in a fraction of the time.
    #[arg(long, conflicts_with = "resume")]
    quick: bool,
    /// Print the cells and the time it will take, and measure nothing.
    #[arg(long)]
    dry_run: bool,
    /// Agents on other hosts instead of those of the campaign: `host:port,host:port`.
    #[arg(long, value_delimiter = ',')]
    agents: Vec<String>,
    /// The file with the secret of the agents.
    #[arg(long)]
    token_file: Option<PathBuf>,
    /// The directory of adapters of other products.
    #[arg(long)]
    adapter_dir: Option<PathBuf>,
    /// Skip a repetition, instead of marking it, when the machine is busy.
    #[arg(long)]
    strict: bool,
    /// A file that says how far apart the cores are, in nanoseconds, for tests: they have no hypervisor that
    /// moves them.
    #[arg(long, hide = true)]
    cores_apart_from: Option<PathBuf>,
}

/// Carries out `perf run`: 0 if everything was measured or is not offered, 1 if the campaign could not be
/// carried out, 3 if it missed one of its limits or ratios, 2 if it missed none but something failed in it,
/// 130 if it was interrupted.
pub(crate) fn run(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("plainsong perf run: {error}");
            ExitCode::FAILURE
        }
    }
}

fn attempt(options: &Options) -> Result<ExitCode, String> {
    let (mut campaign, before) = match (&options.resume, &options.campaign) {
        (Some(directory), _) => {
            let before = Run::read(directory)?;
            let campaign = Campaign::from_run(before.campaign.clone())
                .map_err(|error| format!("{}: {error}", directory.display()))?;
            (campaign, Some(before))
        }
        (None, Some(file)) => (Campaign::read(file)?, None),
        (None, None) => return Err("no campaign".to_owned()),
    };
    for (number, address) in options.agents.iter().enumerate() {
        if number == 0 {
            campaign.agents.clear();
        }
        campaign.agents.insert(format!("agent-{}", number + 1), address.clone());
    }
    if options.quick {
        once(&mut campaign);
    }
    let mut planned = resolve(&campaign)?;
    if let Some(glob) = &options.only {
        planned.retain(|it| matches(glob, &it.cell.id));
        if planned.is_empty() {
            return Err(format!("no cell is called like {glob:?}: --dry-run lists all"));
        }
    }
    if let Some(before) = &before {
        planned.retain(|it| before.cells.iter().any(|cell| cell.id == it.cell.id));
    }
    if options.dry_run {
        print_plan(&campaign, &planned);
        return Ok(ExitCode::SUCCESS);
    }
    let directory = match (&options.resume, &options.out) {
        (Some(directory), _) => directory.clone(),
        (None, Some(directory)) => directory.clone(),
        (None, None) => directory::fresh(&campaign.name, clock::unix_ms()),
    };
    if before.is_none() {
        directory::create(&directory)?;
    }
    let mut run = match before {
        Some(before) => before,
        None => begin(&campaign, &planned)?,
    };
    if campaign.calibrate && run.calibration.is_none() {
        run.calibration = floors();
    }
    let job = Job {
        campaign,
        planned,
        directory: Some(directory.clone()),
        adapters: adapter_directory(options.adapter_dir.as_deref()),
        token: options.token_file.as_deref().map(read_token).transpose()?.unwrap_or_default(),
        strict: options.strict,
        quiet: false,
        look: look(options.cores_apart_from.as_deref()),
    };
    Ok(tell(&conduct(&job, run)?, &directory))
}

/// Leaves one repetition of each cell.
fn once(campaign: &mut Campaign) {
    campaign.repetitions = 1;
    campaign.scenarios.iter_mut().for_each(|scenario| scenario.repetitions = None);
}

/// How it is known how far apart the cores are.
fn look(file: Option<&Path>) -> Box<dyn Fn() -> Option<f64>> {
    let Some(file) = file.map(Path::to_owned) else { return Box::new(calibrate::cores_apart_ns) };
    Box::new(move || std::fs::read_to_string(&file).ok()?.trim().parse().ok())
}

/// Says where the results are and what is doubtful of them; the status of the program.
fn tell(outcome: &Outcome, directory: &Path) -> ExitCode {
    print_marks(&outcome.run);
    say!("results: {}", directory.display());
    say!("next:    plainsong perf report {}", directory.display());
    if outcome.interrupted {
        say!("go on:   plainsong perf run --resume {}", directory.display());
        return ExitCode::from(130);
    }
    verdict(outcome)
}

/// How the run ended, after a line for each limit and ratio that it missed.
fn verdict(outcome: &Outcome) -> ExitCode {
    let missed = report::missed(&outcome.run);
    for words in &missed {
        eprintln!("{words}");
    }
    match (missed.is_empty(), outcome.all_well()) {
        (false, _) => ExitCode::from(report::MISSED),
        (true, false) => ExitCode::from(2),
        (true, true) => ExitCode::SUCCESS,
    }
}

/// The floors of this machine; a run without them is one all the same.
fn floors() -> Option<Calibration> {
    match calibrate::measure(|what| eprintln!("calibrating: {what}")) {
        Ok((calibration, _)) => Some(calibration),
        Err(error) => {
            eprintln!("plainsong perf run: results have no floors beside them: {error}");
            None
        }
    }
}

/// A run with nothing measured yet.
///
/// # Errors
/// The campaign cannot be stored.
pub(crate) fn begin(campaign: &Campaign, planned: &[Planned]) -> Result<Run, String> {
    Ok(Run {
        schema: SCHEMA,
        name: campaign.name.clone(),
        started_unix_ms: clock::unix_ms(),
        plainsong_version: env!("CARGO_PKG_VERSION").to_owned(),
        campaign: serde_json::to_value(campaign).map_err(|error| format!("storing the campaign: {error}"))?,
        cells: planned.iter().map(|it| it.cell.clone()).collect(),
        ..Run::default()
    })
}

impl Outcome {
    /// Nothing went wrong, beyond what is not offered or not installed.
    pub(crate) fn all_well(&self) -> bool {
        let mut repetitions = self.run.cells.iter().flat_map(|it| &it.repetitions);
        let fine = |it: &Repetition| matches!(it.status, Status::Ok | Status::Unsupported | Status::Skipped);
        !self.incomplete && repetitions.all(fine)
    }
}

/// Says how many of the repetitions are doubtful, and why.
fn print_marks(run: &Run) {
    let (measured, marked) = run.marked();
    if marked > 0 {
        let sorts = run.marks();
        let sorts = sorts.values().map(|(count, worst)| format!("{count} with \"{worst}\" or the like"));
        say!("marked:  {marked} of {measured} repetitions: {}", sorts.collect::<Vec<_>>().join("; "));
    }
}

fn print_plan(campaign: &Campaign, planned: &[Planned]) {
    let mut total = Duration::ZERO;
    for it in planned {
        let time = (parties::estimate(campaign, it) + OVERHEAD) * it.repetitions;
        total += time;
        say!(
            "{:<60} {:>3} x {:>6.1} s",
            it.cell.id,
            it.repetitions,
            time.as_secs_f64() / f64::from(it.repetitions)
        );
    }
    let repetitions: u32 = planned.iter().map(|it| it.repetitions).sum();
    let cells = counted(planned.len() as u64, "cell");
    say!("{cells}, {}, about {}", counted(repetitions as u64, "repetition"), words(total));
}

/// Whether a name matches a pattern with `*` and `?`.
fn matches(glob: &str, name: &str) -> bool {
    let (glob, name) = (glob.as_bytes(), name.as_bytes());
    let (mut at, mut place) = (0, 0);
    // Where the last star is, and how much of the name it has taken.
    let mut star: Option<(usize, usize)> = None;
    while let Some(octet) = name.get(place) {
        match (glob.get(at), star) {
            (Some(b'*'), _) => {
                star = Some((at, place));
                at += 1;
            }
            (Some(it), _) if it == octet || *it == b'?' => {
                at += 1;
                place += 1;
            }
            (_, Some((starred, taken))) => {
                star = Some((starred, taken + 1));
                at = starred + 1;
                place = taken + 1;
            }
            (_, None) => return false,
        }
    }
    glob.iter().skip(at).all(|it| *it == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_whole_names() {
        for (glob, name, expected) in [
            ("*", "", true),
            ("pingpong.*.64", "pingpong.cyclone.64", true),
            ("pingpong.*.64", "pingpong.cyclone.640", false),
            ("*64", "a.64.64", true),
            ("?b*", "abc", true),
            ("a", "ab", false),
            ("**x*", "aaax", true),
        ] {
            assert_eq!(matches(glob, name), expected, "{glob} {name}");
        }
    }
}
