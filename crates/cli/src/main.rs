//! The `plainsong` command-line tool.

#![forbid(unsafe_code)]

mod atomic;
mod demo;
mod doctor;
mod idl;
mod look;
mod ls;
mod output;
mod perf;
mod play;
mod progress;
mod record;
mod screen;
mod shape_type;
mod shapes;
mod span;
mod stop;
mod top;
mod topic;
mod witness;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use topic::meter::Quantity;

/// Plainsong: a Data Distribution Service.
#[derive(Parser)]
#[command(name = "plainsong", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The groups of ATOMIC topics: who their members are, and how they do.
    Atomic(atomic::Options),
    /// Show moving shapes between processes of this machine, and any other DDS on the same topic.
    Demo(demo::Options),
    /// How late samples of a topic come.
    Delay(topic::meter::Options),
    /// How often samples of a topic come.
    Hz(topic::meter::Options),
    /// How many octets of a topic come.
    Bw(topic::meter::Options),
    /// Why does nothing arrive? Looks at this host and at a domain, and says what to do.
    Doctor(doctor::Options),
    /// Compile IDL files: check them, and write Rust types.
    Idl(idl::Options),
    /// Who is there: participants, topics, types, endpoints, what matches and what does not.
    Ls(ls::Options),
    /// Play a recording: write what it has again, at the same times.
    Play(Box<play::Options>),
    /// Record topics to an MCAP file, the format of Foxglove and ROS 2.
    Record(record::Options),
    /// Write samples to a topic, whatever its type is.
    Pub(topic::publish::Options),
    /// Print the samples of a topic, whatever its type is.
    Sub(topic::subscribe::Options),
    /// Print the type of a topic as IDL, as those who have it tell it.
    Type(topic::describe::Options),
    /// The OMG interoperability application: publish or subscribe to shapes.
    Shapes(Box<shapes::Options>),
    /// Live rates, latencies, losses and resources of the topics and processes of a domain.
    Top(top::Options),
    /// Vote in the groups of ATOMIC topics, as a member of none.
    Witness(witness::Options),
    /// The laboratory: measure this product and others, and report it.
    Perf(perf::Options),
}

fn main() -> ExitCode {
    // What is measured is not to hold the memory that reading all options takes: other products' workers have
    // none.
    if let Some(status) = perf::run_as_worker() {
        return status;
    }
    match arguments().command {
        Command::Atomic(options) => atomic::run(&options),
        Command::Bw(options) => topic::meter::run(&options, Quantity::Bandwidth),
        Command::Delay(options) => topic::meter::run(&options, Quantity::Delay),
        Command::Demo(options) => demo::run(&options),
        Command::Hz(options) => topic::meter::run(&options, Quantity::Rate),
        Command::Doctor(options) => doctor::run(&options),
        Command::Idl(options) => idl::run(&options),
        Command::Ls(options) => ls::run(&options),
        Command::Play(options) => play::run(&options),
        Command::Record(options) => record::run(&options),
        Command::Pub(options) => topic::publish::run(&options),
        Command::Sub(options) => topic::subscribe::run(&options),
        Command::Type(options) => topic::describe::run(&options),
        Command::Shapes(options) => shapes::run(&options),
        Command::Top(options) => top::run(&options),
        Command::Witness(options) => witness::run(&options),
        Command::Perf(options) => perf::run(&options),
    }
}

/// A value such as -1 is no option that does not exist: who reads it says what is wrong with it.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let takes = |arg: &clap::Arg| arg.get_action().takes_values() && !arg.is_positional();
    let command = command.mut_args(|arg| if takes(&arg) { arg.allow_negative_numbers(true) } else { arg });
    command.mut_subcommands(with_negative_numbers)
}

/// What is asked for; otherwise says what is wrong and ends the process. For `plainsong atomic` the status 2
/// that is usual says that there is no group.
fn arguments() -> Arguments {
    let matches = with_negative_numbers(Arguments::command()).try_get_matches();
    matches.and_then(|it| Arguments::from_arg_matches(&it)).unwrap_or_else(|error| {
        let is_atomic = std::env::args_os().nth(1).is_some_and(|it| it == "atomic");
        if is_atomic && error.use_stderr() {
            eprint!("{error}");
            std::process::exit(atomic::FAILED.into());
        }
        error.exit()
    })
}
