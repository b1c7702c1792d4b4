//! `plainsong doctor`: why does nothing arrive?

mod buffers;
mod clock;
mod codes;
mod counters;
mod drops;
mod firewall;
mod memory;
mod multicast;
mod names;
mod neighbours;
mod pairs;
mod peers;
mod ports;
mod report;
mod sockets;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plainsong::Error;
use plainsong::prelude::*;
use plainsong::state::StateLimits;

use self::codes::Severity;
use self::report::Report;
use crate::look::{self, DomainOptions, view::View};
use crate::output::say;
use crate::stop::Stop;

/// Something was found.
const FOUND: u8 = 1;
/// It could not look.
const FAILED: u8 = 3;
/// Longer than `plainsong ls` waits, since what is not heard is told as a fault.
const QUIET_FOR: Duration = Duration::from_millis(1_200);

/// Options of `plainsong doctor`.
#[derive(Args)]
#[command(after_help = "\
Example:
  plainsong doctor
  plainsong doctor --json | jq -r '.findings[] | \"\\(.code) \\(.entity): \\(.cure)\"'

Exit status: 0 if nothing is wrong (notes are no fault), 1 if something is, 2 after an unknown option, 3 if it could
not look. docs/doctor.md explains every finding.")]
pub(crate) struct Options {
    #[command(flatten)]
    domain: DomainOptions,
    /// Send nothing to other domains: what is there is not found out
    #[arg(long)]
    this_domain_only: bool,
}

/// What is looked at.
struct Patient<'a> {
    domain: u16,
    config: &'a Config,
    state: ParticipantState,
    view: View,
    neighbours: neighbours::Neighbours,
    counters: counters::Counters,
}

/// Looks; see [`Options`] for the exit status.
pub(crate) fn run(options: &Options) -> ExitCode {
    match examine(options) {
        Ok(report) => {
            if options.domain.json {
                // It has nothing that JSON has not.
                say!("{}", serde_json::to_string(&report).unwrap_or_default());
            } else {
                report.print();
            }
            if report.is_bad() { ExitCode::from(FOUND) } else { ExitCode::SUCCESS }
        }
        Err(error) => {
            eprintln!("cannot look at domain {}: {error}", options.domain.domain);
            ExitCode::from(FAILED)
        }
    }
}

fn examine(options: &Options) -> Result<Report, Error> {
    let io = |what: &str, source| Error::Io { what: what.to_owned(), source };
    let stop = Stop::on_signals().map_err(|source| io("installing signal handlers", source))?;
    let DomainOptions { domain, wait, .. } = options.domain;
    let config = look::config()?;
    let participant = look::join(domain, "doctor", config.clone())?;
    let interfaces = participant.interfaces();
    let asks = !options.this_domain_only;
    let neighbours = std::thread::spawn(move || neighbours::look(domain, &interfaces, asks));
    let statistics = participant.observe_statistics()?;
    if !look::settle(&participant, QUIET_FOR, wait, &stop)? {
        // What was not heard so soon would be told as a fault.
        return Err(Error::Io { what: "looking".to_owned(), source: std::io::ErrorKind::Interrupted.into() });
    }
    let counters = counters::read(&participant, &statistics, &stop)?;
    let neighbours = neighbours.join().unwrap_or_default();
    let limits = StateLimits { matches: 0, ..StateLimits::default() };
    let (state, view) = (participant.state_within(&limits)?, View::of(&participant, false)?);
    let patient = Patient { domain, config: &config, state, view, neighbours, counters };
    let mut report = Report { domain, ..Report::default() };
    multicast::check(&patient, &mut report);
    let sockets = sockets::list();
    ports::check(&patient, &sockets, &mut report);
    buffers::check(&patient, &sockets, &mut report);
    memory::check(&patient, &mut report);
    clock::check(&patient, &mut report);
    firewall::check(&patient, &mut report);
    peers::check(&patient, &mut report);
    neighbours::check(&patient, &mut report);
    pairs::check(&patient, &mut report);
    names::check(&patient, &mut report);
    counters::check(&patient, &mut report);
    drops::check(&patient, &mut report);
    if patient.view.left_out > 0 {
        let what = format!("{} participants, endpoints and pairs were not looked at", patient.view.left_out);
        report.find(codes::LEFT_OUT, Severity::Note, format!("domain {domain}"), what, None);
    }
    report.sort();
    Ok(report)
}

impl Patient<'_> {
    /// Whether some writer or reader has nobody to talk to, or nobody is there.
    fn lacks_somebody(&self) -> bool {
        let lonely = |topic: &look::view::Topic| topic.writers == 0 || topic.readers == 0;
        self.view.participants.is_empty() || self.view.topics.iter().any(lonely)
    }

    /// Whether the settings keep everything on this host.
    fn is_loopback_only(&self) -> bool {
        let is_loopback = |name: &String| ["lo", "127.0.0.1", "::1"].contains(&name.as_str());
        self.config.interfaces.as_ref().is_some_and(|names| names.iter().all(is_loopback))
    }
}
