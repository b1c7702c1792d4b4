//! `plainsong perf report`: shows what runs have measured.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::results::{Cell, Run};

/// Which runs, and how to show them.
#[derive(Args)]
pub(crate) struct Options {
    /// Run directories.
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
}

/// Prints a table of every run.
pub(crate) fn run(options: &Options) -> ExitCode {
    for directory in &options.directories {
        match Run::read(directory) {
            Ok(run) => print(&run),
            Err(error) => {
                eprintln!("plainsong perf report: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn print(run: &Run) {
    println!("{}", run.name);
    for cell in &run.cells {
        println!("{:<40} {}", cell.id, outcome(cell));
    }
}

fn outcome(cell: &Cell) -> String {
    let repetitions: Vec<String> = cell
        .repetitions
        .iter()
        .map(|repetition| {
            if repetition.reason.is_empty() {
                repetition.status.label().to_owned()
            } else {
                format!("{}: {}", repetition.status.label(), repetition.reason)
            }
        })
        .collect();
    repetitions.join(", ")
}
