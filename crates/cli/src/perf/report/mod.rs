//! `plainsong perf report`: shows what runs have measured.

mod compare;
mod csv;
mod floor;
mod format;
mod html;
mod limits;
mod markdown;
mod ratios;
mod section;
mod summary;
mod svg;
mod text;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::results::Run;
use crate::output;
use limits::Condition;
use summary::Summary;

/// A limit was missed, or a condition of `--fail-on` was met.
pub(crate) const MISSED: u8 = 3;

/// Limits and ratios of the campaign that are not kept, in words.
pub(crate) fn missed(run: &Run) -> Vec<String> {
    missed_of(run, &Summary::of_run(run))
}

fn missed_of(run: &Run, summaries: &[Summary<'_>]) -> Vec<String> {
    let limits = summaries.iter().flat_map(|summary| {
        let missed = limits::check(summary).into_iter().filter(|limit| !limit.kept);
        missed.map(|limit| format!("{}: {}", summary.cell.id, limit.words()))
    });
    let ratios = ratios::check(run, summaries).into_iter().filter(|ratio| !ratio.kept());
    limits.chain(ratios.map(|ratio| format!("{}: {}", ratio.cell, ratio.words()))).collect()
}

/// Which runs, and how to show them.
#[derive(Args)]
pub(crate) struct Options {
    /// Run directories.
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Write one HTML file that needs nothing else.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the tables in Markdown, as the pages of a repository have them.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write one row for each cell and role, and beside it files with the columns of RTI Perftest.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Compare with the same cells of this run.
    #[arg(long, value_name = "DIR")]
    compare: Option<PathBuf>,
    /// End with status 3 if this is so anywhere: `p99>+10%` against the base, or `lost>0`. May be repeated.
    #[arg(long, value_name = "CONDITION")]
    fail_on: Vec<Condition>,
}

/// Prints tables of every run, and writes what else is wanted.
pub(crate) fn run(options: &Options) -> ExitCode {
    match show(options) {
        Ok(complaints) if complaints.is_empty() => ExitCode::SUCCESS,
        Ok(complaints) => {
            for complaint in complaints {
                eprintln!("{complaint}");
            }
            ExitCode::from(MISSED)
        }
        Err(error) => {
            eprintln!("plainsong perf report: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What a run is reported with.
pub(crate) struct Reported<'a> {
    run: &'a Run,
    summaries: &'a [Summary<'a>],
}

fn show(options: &Options) -> Result<Vec<String>, String> {
    if options.compare.is_none() && options.fail_on.iter().any(Condition::is_relative) {
        return Err("--fail-on with a percentage needs --compare".to_owned());
    }
    let runs: Vec<Run> = options.directories.iter().map(|path| Run::read(path)).collect::<Result<_, _>>()?;
    let base = options.compare.as_deref().map(Run::read).transpose()?;
    let base_summaries = base.as_ref().map(Summary::of_run);
    let summaries: Vec<Vec<Summary<'_>>> = runs.iter().map(Summary::of_run).collect();
    let reported: Vec<Reported<'_>> =
        runs.iter().zip(&summaries).map(|(run, summaries)| Reported { run, summaries }).collect();
    let reported_base =
        base.as_ref().zip(base_summaries.as_deref()).map(|(run, summaries)| Reported { run, summaries });
    let mut complaints = Vec::new();
    for each in &reported {
        output::print(format_args!("{}", text::write(each.run, each.summaries)));
        let pairs = reported_base
            .as_ref()
            .map_or_else(Vec::new, |base| compare::with_base(each.summaries, base.summaries));
        if let Some(base) = &reported_base {
            output::print(format_args!("{}", text::comparison(each.run, base.run, &pairs)));
        }
        complaints.extend(missed_of(each.run, each.summaries));
        complaints.extend(
            options.fail_on.iter().flat_map(|condition| condition.violations(each.summaries, &pairs)),
        );
    }
    if let Some(path) = &options.csv {
        let tables: Vec<_> = reported.iter().map(|each| (each.run, each.summaries)).collect();
        csv::write(path, &tables)?;
    }
    if let Some(path) = &options.markdown {
        let pages: Vec<_> = reported.iter().map(|each| markdown::write(each.run, each.summaries)).collect();
        std::fs::write(path, pages.join("\n")).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if let Some(path) = &options.html {
        let page = html::page(&reported, reported_base.as_ref());
        std::fs::write(path, page).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(complaints)
}
