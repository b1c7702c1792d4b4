//! `plainsong atomic status`: the group of an ATOMIC topic, seen by a participant that is no member of it.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use plainsong::Error;
use plainsong::atomic::ObservedGroup;
use plainsong::prelude::*;

use crate::output::say;
use crate::stop::Stop;

/// Something of it is suspended, changing or suspected.
const NOT_WELL: u8 = 1;
const NO_GROUP: u8 = 2;
const FAILED: u8 = 3;
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Options of `plainsong atomic`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the group of an ATOMIC topic: a line for it, and one for each member. Exit status: 0 if all is
    /// well, 1 if it is suspended or changing or a member is suspected, 2 if there is no group, 3 after an
    /// error
    Status(Status),
}

#[derive(Args)]
struct Status {
    /// The topic
    topic: String,
    /// Domain id
    #[arg(short, long, default_value_t = 0)]
    domain: u16,
    /// Partition
    #[arg(short, long, default_value = "")]
    partition: String,
    /// How long to wait in milliseconds until all is well, before what there is is shown
    #[arg(long = "wait", value_name = "MS", default_value_t = 3_000)]
    wait_ms: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show it again every second, until interrupted
    #[arg(long)]
    watch: bool,
}

/// Shows it; see [`Command::Status`] for the exit status.
pub(crate) fn run(options: &Options) -> ExitCode {
    let Command::Status(options) = &options.command;
    show(options).unwrap_or_else(|error| {
        eprintln!("cannot show the group of topic '{}': {error}", options.topic);
        ExitCode::from(FAILED)
    })
}

fn show(options: &Status) -> Result<ExitCode, Error> {
    let stop = Stop::on_signals()
        .map_err(|source| Error::Io { what: "installing signal handlers".into(), source })?;
    let factory = DomainParticipantFactory::with_config(Config::from_env()?);
    let participant =
        factory.create_participant(options.domain, "plainsong atomic status", QosSet::default())?;
    let observer = participant.observe_group(&options.topic, &options.partition)?;
    let begin = Instant::now();
    let mut group = observer.look()?;
    while !group.is_well() && begin.elapsed() < Duration::from_millis(options.wait_ms) && !stop.is_told() {
        stop.sleep(LOOK_AGAIN);
        group = observer.look()?;
    }
    loop {
        print(options, &participant, &group)?;
        if !options.watch || stop.is_told() {
            break;
        }
        let next = Instant::now() + Duration::from_secs(1);
        while Instant::now() < next && !stop.is_told() {
            stop.sleep(LOOK_AGAIN);
            group = observer.look()?;
        }
        if stop.is_told() {
            break;
        }
    }
    Ok(match &group {
        group if !group.is_there() => ExitCode::from(NO_GROUP),
        group if group.is_well() => ExitCode::SUCCESS,
        _ => ExitCode::from(NOT_WELL),
    })
}

fn print(options: &Status, participant: &DomainParticipant, group: &ObservedGroup) -> Result<(), Error> {
    if options.json {
        // It has nothing that JSON has not.
        say!("{}", serde_json::to_string(group).unwrap_or_default());
        return Ok(());
    }
    if group.is_there() {
        say!("{group}");
        return Ok(());
    }
    say!("{group}: is one running in domain {}?", options.domain);
    let known = participant.discovered_atomic_topics()?;
    if known.is_empty() {
        say!("  no participant with an ATOMIC topic is known");
    }
    for (topic, partition) in known {
        let partition = if partition.is_empty() { String::new() } else { format!(" -p {partition}") };
        say!("  there is {topic}: plainsong atomic status {topic}{partition} -d {}", options.domain);
    }
    Ok(())
}
