//! `plainsong witness`: votes in the groups of ATOMIC topics, so that two members go on when one dies.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plainsong::Error;
use plainsong::prelude::*;
use plainsong::witness::{Witness, WitnessEvent};

use crate::output::say;
use crate::span;
use crate::stop::Stop;

/// How often it looks for new groups.
const LOOK_PERIOD: Duration = Duration::from_millis(50);

/// Options of `plainsong witness`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// As which of the voters it votes [default: PLAINSONG_VOTER]
    #[arg(long)]
    name: Option<String>,
    /// The voters: 1, 3 or 5 names, the same for all members [default: PLAINSONG_VOTERS]
    #[arg(long, value_delimiter = ',')]
    voters: Vec<String>,
    /// Directory in which it keeps its votes; nobody else has it [default: PLAINSONG_STATE_DIRECTORY]
    #[arg(long)]
    state: Option<PathBuf>,
    /// Domain id
    #[arg(short, long, default_value_t = 0, value_parser = span::domain)]
    domain: u16,
    /// Vote in so many groups at most; each takes a file of a few MiB
    #[arg(long, default_value_t = 256)]
    groups: usize,
}

/// Votes until a signal comes.
pub(crate) fn run(options: &Options) -> ExitCode {
    match vote(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot vote: {error}");
            ExitCode::FAILURE
        }
    }
}

fn vote(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let io = |what: &str, source| Error::Io { what: what.to_owned(), source };
    let stop = Stop::on_signals().map_err(|source| io("installing signal handlers", source))?;
    let mut config = Config::from_env()?;
    if let Some(name) = &options.name {
        config.voter = Some(name.clone());
    }
    if !options.voters.is_empty() {
        config.voters.clone_from(&options.voters);
    }
    if let Some(state) = &options.state {
        let path = std::path::absolute(state).map_err(|source| io("naming the state directory", source))?;
        config.state_directory = Some(path);
    }
    let place = check(&config, options.domain)?;
    let factory = DomainParticipantFactory::with_config(config);
    let participant = factory.create_participant(options.domain, "plainsong witness", QosSet::default())?;
    let witness = Witness::new(&participant, options.groups)?;
    say!("votes as {place}");
    while !stop.is_told() {
        for event in witness.look()? {
            match event {
                WitnessEvent::Votes { topic, partition } => say!("votes on {}", group(&topic, &partition)),
                WitnessEvent::Ended { topic, partition } => {
                    say!("nobody is left of {}", group(&topic, &partition))
                }
                WitnessEvent::Refused { topic, partition, reason } => {
                    say!("does not vote on {}: {reason}", group(&topic, &partition));
                }
                _ => {}
            }
        }
        stop.sleep(LOOK_PERIOD);
    }
    drop(witness);
    factory.delete_participant(&participant)?;
    Ok(())
}

/// As whom it votes, and where it keeps that; or what is missing.
fn check(config: &Config, domain: u16) -> Result<String, String> {
    let voters = config.voters.join(",");
    let name = config.voter.as_deref().unwrap_or_default();
    if voters.is_empty() {
        return Err(
            "no voters are given: name them by --voters or PLAINSONG_VOTERS, as the members do".to_owned()
        );
    }
    if name.is_empty() {
        return Err(format!(
            "no name is given: say as which of the voters {voters} it votes, by --name or PLAINSONG_VOTER"
        ));
    }
    if !config.voters.iter().any(|it| it == name) {
        return Err(format!(
            "'{name}' is none of the voters {voters}: give one of them by --name, or name it in --voters, and in PLAINSONG_VOTERS of \
             all members"
        ));
    }
    let Some(state) = &config.state_directory else {
        let advice = "say where it keeps its votes, by --state or PLAINSONG_STATE_DIRECTORY";
        return Err(format!("no directory is given: {advice}"));
    };
    Ok(format!("{name} of {voters} in domain {domain}, state in {}", state.display()))
}

fn group(topic: &str, partition: &str) -> String {
    if partition.is_empty() { topic.to_owned() } else { format!("{topic} in partition {partition}") }
}
