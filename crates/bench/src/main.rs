//! Round trips, throughput and footprint of Plainsong, and the same round trip over raw sockets.
//!
//! Each role is one process; `cargo xtask bench` starts the pairs and the peers and prints the table.

#![forbid(unsafe_code)]

mod commits;
mod encode;
mod footprint;
mod inside;
mod latency;
mod paths;
mod readers;
mod record;
mod scale;
mod start;
mod throughput;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use plainsong::Error;
use plainsong::prelude::*;

/// One role of a measurement.
#[derive(Parser)]
struct Options {
    #[arg(value_enum)]
    role: Role,
    /// Octets of the payload
    #[arg(long, default_value_t = 64)]
    size: usize,
    /// Measured seconds; the first one before is not counted
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Instances, endpoints of one kind, or participants
    #[arg(long, default_value_t = 1_000)]
    count: u32,
    /// Endpoints of each of many participants
    #[arg(long, default_value_t = 0)]
    endpoints: u32,
    /// LATENCY_BUDGET in µs of the writer and the reader of a throughput measurement: under a profiler no
    /// application writes fast enough for its samples to share datagrams without
    #[arg(long, default_value_t = 0)]
    latency_budget_us: i64,
    /// End with an error if one more reader costs its writer more than it may, or an idle participant has
    /// more memory than it may
    #[arg(long)]
    strict: bool,
    /// MB/s that are written for the recorder
    #[arg(long, default_value_t = 200)]
    rate: u32,
    /// Domain id
    #[arg(long, default_value_t = 0)]
    domain: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    /// Sends, waits for the echo, prints percentiles of the round trip.
    Ping,
    /// Echoes.
    Pong,
    /// As ping, over a blocking UDP socket.
    RawPing,
    /// As pong, over a blocking UDP socket.
    RawPong,
    /// Round trips and a flow within one process.
    Inside,
    /// Writes as fast as it can.
    Publish,
    /// Counts what arrives.
    Subscribe,
    /// Holds a participant with 10 endpoints and prints its memory, threads and idle time.
    Footprint,
    /// Makes values durable in the current directory, by a database and by appending to a file.
    Commits,
    /// Encodes a plain structure, and its like.
    Encode,
    /// Writes, takes and looks up samples of many instances.
    Instances,
    /// Matches many endpoints of two participants.
    Endpoints,
    /// Lets many participants of one process find each other.
    Participants,
    /// Writes `count` samples that another participant takes: for `cargo xtask instructions`.
    Paths,
    /// Prints what one more reader costs a writer.
    Readers,
    /// What it starts.
    Read,
    /// Writes mixed topics that `plainsong record` records, and as many octets to a plain file.
    Record,
    /// Starts publishers and prints how long their first samples took.
    Start,
    /// What it starts.
    StartPublish,
}

/// What travels: the shape of the Cyclone tool ddsperf's default topic.
#[derive(Clone, Debug, Default, DdsType)]
#[dds(name = "Measured", final)]
struct Measured {
    sequence: u32,
    #[dds(key)]
    key: u32,
    payload: Vec<u8>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let warm_up = Duration::from_secs(1);
    let duration = Duration::from_secs(options.seconds);
    let result = match options.role {
        Role::Ping => latency::ping(&options, warm_up, duration),
        Role::Pong => latency::pong(&options),
        Role::RawPing => latency::raw_ping(&options, warm_up, duration),
        Role::RawPong => latency::raw_pong(),
        Role::Inside => inside::measure(&options, warm_up, duration),
        Role::Publish => throughput::publish(&options, warm_up + duration),
        Role::Subscribe => throughput::subscribe(&options, warm_up, duration),
        Role::Footprint => footprint::measure(&options, duration),
        Role::Commits => commits::measure(duration).map_err(|error| io("making values durable", error)),
        Role::Encode => encode::measure(),
        Role::Instances => scale::instances(&options),
        Role::Endpoints => scale::endpoints(&options),
        Role::Participants => scale::participants(&options),
        Role::Paths => paths::run(&options),
        Role::Readers => readers::measure(&options),
        Role::Read => readers::read(&options),
        Role::Record => record::measure(&options, duration),
        Role::Start => start::measure(&options),
        Role::StartPublish => start::publish(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn io(what: &str, source: std::io::Error) -> Error {
    Error::Io { what: what.to_owned(), source }
}

/// Of the measurement itself, not of the library.
fn failed(what: impl Into<String>) -> Error {
    io("measuring", std::io::Error::other(what.into()))
}
