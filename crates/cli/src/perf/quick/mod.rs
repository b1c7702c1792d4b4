//! `plainsong perf quick`: a first honest table in 20 seconds, without a file and without any other product.

mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::agent::child::{adapter_directory, is_built_in};
use super::agent::clock;
use super::calibrate::cores_apart_ns;
use super::campaign::{Campaign, resolve};
use super::run::{Job, begin, conduct, directory};
use crate::output::{self, say};

/// Measure one thing now: Plainsong beside the floors of this machine, on loopback.
#[derive(Args)]
pub(crate) struct Options {
    /// What.
    #[arg(value_enum)]
    what: What,
    /// With these instead: `plainsong,cyclone`.
    #[arg(long, value_delimiter = ',')]
    adapters: Vec<String>,
    /// Octets of payload, or a scan `64..4KiB*4`.
    #[arg(long)]
    sizes: Option<String>,
    /// The measured time of each repetition.
    #[arg(long)]
    duration: Option<String>,
    /// How often each is measured.
    #[arg(long)]
    repetitions: Option<u32>,
    /// The run directory to write; one among the temporary files if not given.
    #[arg(long)]
    out: Option<PathBuf>,
    /// The directory of adapters of other products.
    #[arg(long)]
    adapter_dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Round trips, one at a time.
    Latency,
    /// Round trips at a fixed rate, counted from when they were due.
    LatencyAtRate,
    /// As many samples as one writer can write to one reader.
    Throughput,
    /// One writer, three readers; three writers, one reader.
    Fan,
    /// A rate that grows until it is not reached.
    Ramp,
    /// Time until participants know each other.
    Discovery,
    /// Samples of 1 MiB.
    Large,
    /// The owner of a topic is killed; the next takes over.
    Failover,
    /// Lookups and reads of a reader with 1000 instances.
    ReadCost,
    /// Encoding and decoding.
    Encode,
}

impl What {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |it| it.get_name().to_owned())
    }

    /// The scenario, without its adapters: about 15 seconds with those that `adapters` gives.
    fn scenario(self) -> &'static str {
        match self {
            Self::Latency => "kind = \"pingpong\"\nsizes = [64, 8192]",
            Self::LatencyAtRate => "kind = \"latency_at_rate\"\nsizes = 64\nrates = [100, 5000]",
            Self::Throughput => "kind = \"throughput\"\nsizes = [64, 8192]",
            Self::Fan => {
                "kind = \"fan\"\nsizes = 64\npublishers = [1, 3]\nsubscribers = [3, 1]\n\
                 together = [\"publishers\", \"subscribers\"]\npacing = \"rate:1000\""
            }
            Self::Ramp => {
                "kind = \"ramp\"\nsizes = 64\nduration = \"6s\"\n\
                 ramp = { start = 20000, step = 40000, hold = \"500ms\", misses = 2 }"
            }
            Self::Discovery => {
                "kind = \"discovery\"\nparticipants = [2, 10]\nprocesses = 2\nendpoints = 10\nmatch_timeout = \"5s\""
            }
            Self::Large => "kind = \"large\"\nsizes = \"1MiB\"",
            Self::Failover => {
                "kind = \"failover\"\nrates = 1000\nduration = \"2s\"\nqos.liveliness = \"200ms\""
            }
            Self::ReadCost => "kind = \"read_cost\"\ninstances = 1000",
            Self::Encode => {
                "kind = \"encode\"\ntypes = [\"numbers\", \"text\", \"pose\", \"image\", \"track\"]"
            }
        }
    }

    fn adapters(self) -> &'static [&'static str] {
        match self {
            Self::Latency | Self::Throughput => &["plainsong", "udp", "shm-futex"],
            Self::LatencyAtRate | Self::Fan | Self::Ramp | Self::Large => &["plainsong", "udp"],
            Self::Discovery | Self::Failover | Self::ReadCost | Self::Encode => &["plainsong"],
        }
    }
}

/// Carries out `perf quick`.
pub(crate) fn run(options: &Options) -> ExitCode {
    match attempt(options) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("plainsong perf quick: {error}");
            ExitCode::FAILURE
        }
    }
}

fn attempt(options: &Options) -> Result<ExitCode, String> {
    let campaign = campaign(options)?;
    let planned = resolve(&campaign)?;
    let place = options
        .out
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(directory::fresh(&campaign.name, clock::unix_ms())));
    directory::create(&place)?;
    let run = begin(&campaign, &planned)?;
    let job = Job {
        campaign,
        planned,
        directory: Some(place.clone()),
        adapters: adapter_directory(options.adapter_dir.as_deref()),
        token: String::new(),
        strict: false,
        quiet: true,
        look: Box::new(cores_apart_ns),
    };
    let outcome = conduct(&job, run)?;
    output::print(format_args!("{}", table::of(&outcome.run)));
    say!("\nresults: {}", place.display());
    say!("next:    plainsong perf report {}", place.display());
    if outcome.interrupted {
        return Ok(ExitCode::from(130));
    }
    Ok(if outcome.all_well() { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

fn campaign(options: &Options) -> Result<Campaign, String> {
    let chosen: Vec<&str> = match options.adapters.is_empty() {
        // A floor that this machine does not have is not asked for.
        true => options.what.adapters().iter().copied().filter(|it| is_built_in(it)).collect(),
        false => options.adapters.iter().map(String::as_str).collect(),
    };
    let mut text = format!(
        "schema = 1\nname = \"quick-{}\"\nrepetitions = {}\nwarmup = \"200ms\"\nduration = \"1s\"\nbusy_wait = \"0s\"\n\
         [[scenario]]\nadapters = {chosen:?}\n{}\n",
        options.what.name(),
        options.repetitions.unwrap_or(2),
        options.what.scenario(),
    );
    for (field, value) in [("sizes", &options.sizes), ("duration", &options.duration)] {
        if let Some(value) = value {
            let kept: Vec<&str> =
                text.lines().filter(|line| !line.starts_with(&format!("{field} ="))).collect();
            text = format!("{}\n{field} = {value:?}\n", kept.join("\n"));
        }
    }
    Campaign::parse(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(what: What) -> Options {
        let adapters = Vec::new();
        Options {
            what,
            adapters,
            sizes: None,
            duration: None,
            repetitions: None,
            out: None,
            adapter_dir: None,
        }
    }

    #[test]
    fn every_built_in_campaign_is_one() {
        for what in What::value_variants() {
            let campaign = campaign(&options(*what)).unwrap();
            assert!(!resolve(&campaign).unwrap().is_empty(), "{what:?}");
        }
    }

    #[test]
    fn the_user_may_choose() {
        let mut options = options(What::Latency);
        options.sizes = Some("64..1KiB*4".to_owned());
        options.duration = Some("3s".to_owned());
        options.adapters = vec!["cyclone".to_owned()];
        let cells = resolve(&campaign(&options).unwrap()).unwrap();
        let names: Vec<_> = cells.iter().map(|it| it.cell.id.as_str()).collect();
        assert_eq!(names, ["pingpong.cyclone.64", "pingpong.cyclone.256", "pingpong.cyclone.1024"]);
    }
}
