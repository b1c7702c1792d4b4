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
    /// well, 1 if it is suspended or changing, a member is suspected or the topic has several groups, 2 if
    /// there is no group, 3 after an error
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
    let mut groups = observer.look_at_all()?;
    let are_well = |groups: &[ObservedGroup]| groups.iter().all(ObservedGroup::is_well);
    let wait = Duration::from_millis(options.wait_ms);
    while !are_well(&groups) && begin.elapsed() < wait && !stop.is_told() {
        stop.sleep(LOOK_AGAIN);
        groups = observer.look_at_all()?;
    }
    loop {
        print(options, &participant, &groups)?;
        if !options.watch || stop.is_told() {
            break;
        }
        let next = Instant::now() + Duration::from_secs(1);
        while Instant::now() < next && !stop.is_told() {
            stop.sleep(LOOK_AGAIN);
            groups = observer.look_at_all()?;
        }
        if stop.is_told() {
            break;
        }
    }
    Ok(match &groups {
        groups if !groups.iter().any(ObservedGroup::is_there) => ExitCode::from(NO_GROUP),
        groups if are_well(groups) => ExitCode::SUCCESS,
        _ => ExitCode::from(NOT_WELL),
    })
}

fn print(options: &Status, participant: &DomainParticipant, groups: &[ObservedGroup]) -> Result<(), Error> {
    if options.json {
        for group in groups {
            // It has nothing that JSON has not.
            say!("{}", serde_json::to_string(group).unwrap_or_default());
        }
        return Ok(());
    }
    for group in groups.iter().filter(|group| group.is_there()) {
        say!("{group}");
    }
    if groups.len() > 1 {
        say!("{}", advice(groups));
    }
    if !groups.iter().any(ObservedGroup::is_there) {
        print_others(options, participant)?;
    }
    Ok(())
}

/// What to set where the topic has several groups.
fn advice(groups: &[ObservedGroup]) -> String {
    let mut named = groups.iter().map(|group| group.voter_names.join(",")).filter(|names| !names.is_empty());
    let (first, second) = (named.next().unwrap_or_default(), named.next());
    let set =
        if second.is_none() { format!("PLAINSONG_VOTERS={first}") } else { "PLAINSONG_VOTERS".to_owned() };
    let lack: Vec<_> = groups.iter().filter(|group| group.voter_names.is_empty()).collect();
    let members = lack.iter().flat_map(|group| &group.members);
    let lack: Vec<_> = members.map(|member| format!("{:?} ({})", member.name, member.process)).collect();
    let who = if lack.is_empty() { String::new() } else { format!("; it is not set in {}", lack.join(", ")) };
    let count = groups.len();
    format!(
        "the topic has {count} groups, between which no sample goes: set {set} for all of its processes{who}"
    )
}

/// There is no group: what there is.
fn print_others(options: &Status, participant: &DomainParticipant) -> Result<(), Error> {
    let Status { topic, partition, domain, .. } = options;
    say!("{topic}: no member is heard in domain {domain}");
    let known = participant.discovered_atomic_topics()?;
    if known.is_empty() {
        say!("  no participant with an ATOMIC topic is known");
    }
    for (other, of) in known {
        if (&other, &of) == (topic, partition) {
            say!(
                "  a participant has the topic, and is not heard as a member: it is stopped, cut off, or of another version"
            );
            continue;
        }
        let of = if of.is_empty() { String::new() } else { format!(" -p {of}") };
        say!("  there is {other}: plainsong atomic status {other}{of} -d {domain}");
    }
    Ok(())
}
