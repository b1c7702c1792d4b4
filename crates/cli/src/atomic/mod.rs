//! `plainsong atomic status`: the group of an ATOMIC topic, seen by a participant that is no member of it.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use plainsong::Error;
use plainsong::atomic::ObservedGroup;
use plainsong::group_observer::GroupObserver;
use plainsong::prelude::*;
use plainsong::state::StateLimits;

use crate::output::{self, say};
use crate::span;
use crate::stop::Stop;

/// Something of it is suspended, changing, suspected or not heard.
const NOT_WELL: u8 = 1;
const NO_GROUP: u8 = 2;
pub(crate) const FAILED: u8 = 3;
/// No participant, endpoint or group has come for so long: members are asked every 50 ms and answer at once,
/// and a participant that comes announces its endpoints at once.
const QUIET_FOR: Duration = Duration::from_secs(1);
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
    /// well, 1 if it is suspended or changing, a member is suspected, a voter is not heard or the topic has
    /// several groups, 2 if there is no group, 3 after an error, one of the arguments too
    Status(Status),
}

#[derive(Args)]
struct Status {
    /// The topic
    topic: String,
    /// Domain id
    #[arg(short, long, default_value_t = 0, value_parser = span::domain)]
    domain: u16,
    /// Partition
    #[arg(short, long, default_value = "")]
    partition: String,
    /// How long to wait in milliseconds until all is well and nobody has come for a second, before what there
    /// is is shown
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
    let mut config = Config::from_env()?;
    // Who looks does not vote, whatever is set for the members, and keeps nothing.
    config.voter = None;
    config.voters.clear();
    config.state_directory = None;
    let factory = DomainParticipantFactory::with_config(config);
    let participant =
        factory.create_participant(options.domain, "plainsong atomic status", QosSet::default())?;
    let observer = participant.observe_group(&options.topic, &options.partition)?;
    let mut groups = look_around(options, &participant, &observer, &stop)?;
    loop {
        print(options, &participant, &groups)?;
        if !options.watch || stop.is_told() || output::is_closed() {
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

fn are_well(groups: &[ObservedGroup]) -> bool {
    groups.iter().all(ObservedGroup::is_well)
}

/// Looks until all is well and nobody has come for a while: another group of the topic may be heard later
/// than the first.
fn look_around(
    options: &Status,
    participant: &DomainParticipant,
    observer: &GroupObserver,
    stop: &Stop,
) -> Result<Vec<ObservedGroup>, Error> {
    // Counts alone.
    let limits = StateLimits { entities: 0, remote: 0, matches: 0, mismatches: 0, internal_endpoints: true };
    let wait = Duration::from_millis(options.wait_ms);
    let begin = Instant::now();
    let (mut known, mut known_since) = (None, begin);
    loop {
        let groups = observer.look_at_all()?;
        let endpoints = participant.state_within(&limits)?.remote_endpoints.left_out;
        let now_known = Some((participant.discovered_participants()?, endpoints, groups.len()));
        if known != now_known {
            (known, known_since) = (now_known, Instant::now());
        }
        let is_done = known_since.elapsed() >= QUIET_FOR && are_well(&groups);
        if is_done || begin.elapsed() >= wait || stop.is_told() {
            return Ok(groups);
        }
        stop.sleep(LOOK_AGAIN);
    }
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
