//! The files of a run directory beside `run.json`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use plainsong_perfkit::Event;
use plainsong_perfkit::event::NamedHistogram;

use super::repetition::Finished;
use crate::perf::results::WorkerResult;
use crate::perf::statistics::deflated;

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
    // Days to a date, counted in years that begin in March (H. Hinnant, "chrono-Compatible Low-Level Date
    // Algorithms").
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
    let started_unix_ms = finished.repetition.started_unix_ms;
    for worker in &finished.repetition.workers {
        let lines = finished.lines.iter().find(|(name, _)| *name == worker.name);
        let (whole, each) = logged(worker, lines.map_or(&[][..], |(_, lines)| lines.as_slice()));
        for (name, histograms) in [(worker.name.clone(), whole), (format!("{}-intervals", worker.name), each)]
        {
            let path = place.join(format!("{name}.hlog"));
            write_histograms(&path, worker, &histograms, started_unix_ms).map_err(fail)?;
        }
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

/// A histogram with the time it is about, in nanoseconds since the measurement began.
struct Logged<'a> {
    histogram: &'a NamedHistogram,
    begin_ns: u64,
    length_ns: u64,
}

/// The histograms of the whole measured time, and those of its intervals.
fn logged<'a>(worker: &'a WorkerResult, lines: &'a [Event]) -> (Vec<Logged<'a>>, Vec<Logged<'a>>) {
    let Some(report) = &worker.report else { return (Vec::new(), Vec::new()) };
    let whole = report.histograms.iter();
    let whole = whole.map(|histogram| Logged { histogram, begin_ns: 0, length_ns: report.length_ns });
    let each = lines.iter().filter_map(|line| {
        let Event::Interval(interval) = line else { return None };
        Some(Logged {
            histogram: interval.histogram.as_ref()?,
            begin_ns: interval.start_ns.saturating_sub(report.start_ns),
            length_ns: interval.length_ns,
        })
    });
    (whole.collect(), each.collect())
}

/// As other tools for HdrHistogram read it: one line for each histogram.
fn write_histograms(
    path: &Path,
    worker: &WorkerResult,
    histograms: &[Logged<'_>],
    started_unix_ms: u64,
) -> io::Result<()> {
    if histograms.is_empty() {
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
    for Logged { histogram, begin_ns, length_ns } in histograms {
        // A comma or a blank would end the tag.
        let tag = histogram.name.replace([',', ' '], "_");
        let (begin, length) = (*begin_ns as f64 / 1e9, *length_ns as f64 / 1e9);
        // The largest value is in the histogram; this column is for those who do not decode it.
        writeln!(out, "Tag={tag},{begin:.3},{length:.3},0.000,{}", deflated(&histogram.data))?;
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
    use plainsong_perfkit::event::{Interval, Report};

    use super::*;

    #[test]
    fn each_interval_is_logged_with_its_time() {
        let histogram = |data: &str| NamedHistogram { name: "one way".into(), count: 1, data: data.into() };
        let report = Report {
            start_ns: 5_000_000_000,
            length_ns: 2_000_000_000,
            histograms: vec![histogram("whole")],
            ..Report::default()
        };
        let worker = WorkerResult { name: "sub-0".into(), report: Some(report), ..WorkerResult::default() };
        let interval = |start_ns, data| {
            let histogram = Some(histogram(data));
            Event::Interval(Interval { start_ns, length_ns: 1_000_000_000, histogram, ..Interval::default() })
        };
        let lines = [interval(5_000_000_000, "first"), interval(6_000_000_000, "second")];
        let (whole, each) = logged(&worker, &lines);
        assert_eq!((whole.len(), each.len()), (1, 2));
        let path = std::env::temp_dir().join(format!("plainsong-log-{}.hlog", std::process::id()));
        write_histograms(&path, &worker, &each, 0).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(
            text.ends_with("Tag=one_way,0.000,1.000,0.000,first\nTag=one_way,1.000,1.000,0.000,second\n"),
            "{text}"
        );
    }

    #[test]
    fn dates_are_right_around_leap_days() {
        assert_eq!(stamp(0), "19700101-000000");
        assert_eq!(stamp(951_782_399_000), "20000228-235959");
        assert_eq!(stamp(951_782_400_000), "20000229-000000");
        assert_eq!(stamp(1_772_323_200_000), "20260301-000000");
    }
}
