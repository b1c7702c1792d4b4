//! The files of a run directory beside `run.json`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use plainsong_perfkit::Event;

use super::repetition::Finished;
use crate::perf::results::WorkerResult;

/// Makes the directory of a new run.
///
/// # Errors
/// It exists and is not empty, or cannot be made.
pub(crate) fn create(directory: &Path) -> Result<(), String> {
    let fail = |what: String| format!("{}: {what}", directory.display());
    if directory.join("run.json").exists() {
        return Err(fail("is a run already: choose another --out, or go on with --resume".to_owned()));
    }
    fs::create_dir_all(directory).map_err(|error| fail(error.to_string()))
}

/// A directory that no run has yet, beside the caller.
pub(crate) fn fresh(name: &str, unix_ms: u64) -> PathBuf {
    let plain: String = name.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).collect();
    let first = PathBuf::from(format!("perf-{plain}-{}", stamp(unix_ms)));
    let further = |number: u32| PathBuf::from(format!("{}-{number}", first.display()));
    if !first.exists() {
        return first;
    }
    (2..).map(further).find(|it| !it.exists()).unwrap_or(first)
}

/// `20260102-030405`, in UTC.
fn stamp(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000;
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // Days to a date, counted in years that begin in March (H. Hinnant, "chrono-Compatible Low-Level Date Algorithms").
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}{month:02}{day:02}-{:02}{:02}{:02}", time / 3600, time / 60 % 60, time % 60)
}

/// Writes what the workers of a repetition said.
///
/// # Errors
/// The file that cannot be written, and why.
pub(super) fn write_repetition(directory: &Path, cell: &str, finished: &Finished) -> Result<(), String> {
    let place = directory.join("cells").join(cell).join(finished.repetition.number.to_string());
    let fail = |error: io::Error| format!("{}: {error}", place.display());
    fs::create_dir_all(&place).map_err(fail)?;
    for (name, lines) in &finished.lines {
        write_lines(&place.join(format!("{name}.ndjson")), lines).map_err(fail)?;
    }
    for worker in finished.repetition.workers.iter().filter(|it| it.report.is_some()) {
        write_histograms(
            &place.join(format!("{}.hlog", worker.name)),
            worker,
            finished.repetition.started_unix_ms,
        )
        .map_err(fail)?;
    }
    write_resources(&place.join("resources.csv"), &finished.repetition.workers).map_err(fail)
}

fn write_lines(path: &Path, lines: &[Event]) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for line in lines {
        serde_json::to_writer(&mut out, line)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// As other tools for HdrHistogram read it: one line for each histogram, over the whole measured time.
fn write_histograms(path: &Path, worker: &WorkerResult, started_unix_ms: u64) -> io::Result<()> {
    let Some(report) = &worker.report else { return Ok(()) };
    if report.histograms.is_empty() {
        return Ok(());
    }
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "#[Histogram log format version 1.3]")?;
    writeln!(out, "#[Nanoseconds; worker {} of adapter {}]", worker.name, worker.adapter)?;
    writeln!(out, "#[StartTime: {:.3} (seconds since epoch)]", started_unix_ms as f64 / 1000.0)?;
    writeln!(
        out,
        "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
    )?;
    for histogram in &report.histograms {
        // A comma or a blank would end the tag.
        let tag = histogram.name.replace([',', ' '], "_");
        let length = report.length_ns as f64 / 1e9;
        // The largest value is in the histogram; this column is for those who do not decode it.
        writeln!(out, "Tag={tag},0.000,{length:.3},0.000,{}", histogram.data)?;
    }
    out.flush()
}

fn write_resources(path: &Path, workers: &[WorkerResult]) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "worker,host,pid,at_ns,cpu_percent,resident_octets")?;
    for worker in workers {
        for sample in &worker.resources.samples {
            writeln!(
                out,
                "{},{},{},{},{:.2},{}",
                worker.name,
                worker.host,
                worker.pid,
                sample.at_ns,
                sample.cpu_percent,
                sample.resident_octets
            )?;
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates_are_right_around_leap_days() {
        assert_eq!(super::stamp(0), "19700101-000000");
        assert_eq!(super::stamp(951_782_399_000), "20000228-235959");
        assert_eq!(super::stamp(951_782_400_000), "20000229-000000");
        assert_eq!(super::stamp(1_772_323_200_000), "20260301-000000");
    }
}
