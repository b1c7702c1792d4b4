//! What a run leaves behind: `run.json` of a run directory.
//!
//! ```text
//! DIR/run.json                                      Run
//! DIR/cells/<cell id>/<repetition>/<worker>.ndjson  every line that the worker said
//! DIR/cells/<cell id>/<repetition>/<worker>.hlog    its histograms as an HdrHistogram log (V2, base64)
//! DIR/cells/<cell id>/<repetition>/<worker>-intervals.hlog   the same, one of each second
//! DIR/cells/<cell id>/<repetition>/resources.csv    one row for each process and sampling time
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use plainsong_perfkit::adapter::Description;
use plainsong_perfkit::event::{Interval, Report};
use serde::{Deserialize, Serialize};

/// The form of `run.json` that this program reads and writes.
pub(crate) const SCHEMA: u32 = 1;

/// How the mark begins of what was measured while the cores were further apart than at other times of the
/// run.
pub(crate) const CORES_APART: &str = "cores apart:";

/// The largest `run.json` that is read: ten times what a day of campaigns leaves.
const FILE_OCTETS_MAX: u64 = 1 << 30;

/// Everything about one run of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// [`SCHEMA`].
    pub(crate) schema: u32,
    /// Name of the campaign.
    pub(crate) name: String,
    pub(crate) started_unix_ms: u64,
    /// None while it runs, or when it was interrupted.
    pub(crate) finished_unix_ms: Option<u64>,
    pub(crate) plainsong_version: String,
    /// The resolved campaign: enough to run it again (`plainsong perf run DIR/run.json`).
    pub(crate) campaign: serde_json::Value,
    /// One for each agent.
    pub(crate) hosts: Vec<Host>,
    /// What each adapter said of itself, by its name.
    pub(crate) adapters: BTreeMap<String, Description>,
    /// What exactly ran under these names; more than one of a name if it has changed between two parts of the
    /// run.
    #[serde(default)]
    pub(crate) programs: Vec<Program>,
    pub(crate) calibration: Option<Calibration>,
    /// The least that was seen of what repetitions tell as `cores_apart_ns`, before, between or after them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cores_nearest_ns: Option<f64>,
    pub(crate) cells: Vec<Cell>,
}

/// The program that was measured under the name of an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program {
    pub(crate) adapter: String,
    /// The agents that ran it.
    pub(crate) hosts: Vec<String>,
    /// How it was built, as far as that is known: flags, compiler, commit.
    pub(crate) build: String,
    /// The executable, then the shared libraries that were loaded.
    pub(crate) files: Vec<HashedFile>,
}

/// A file that code was run from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HashedFile {
    /// Without links; the user's directory is `~`.
    pub(crate) path: String,
    pub(crate) octets: u64,
    /// In hexadecimal digits; empty if it could not be computed.
    pub(crate) sha256: String,
}

/// One point of the campaign: everything is fixed but the repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cell {
    /// Short, stable, usable as a file name: `pingpong.cyclone.64`.
    pub(crate) id: String,
    /// Name of the scenario in the campaign.
    pub(crate) scenario: String,
    /// `pingpong`, `latency_at_rate`, `throughput`, `ramp`, `read_method`, `read_cost`, `fan`, `discovery`,
    /// `large`, `failover`, `encode` or `soak`.
    pub(crate) kind: String,
    /// The adapter of the writers (of the pingers).
    pub(crate) adapter: String,
    /// The adapter of the readers (of the pongs): the same unless it is a pair of two products.
    pub(crate) peer: String,
    /// `size`, `rate`, `instances`, `publishers`, `subscribers`, `reliable`, `read`, `multicast`, `network`,
    /// `loss_percent`, `profile` and so on.
    pub(crate) parameters: BTreeMap<String, serde_json::Value>,
    /// What must be kept for the run to pass: `p99_us = 200`.
    pub(crate) limits: BTreeMap<String, f64>,
    pub(crate) repetitions: Vec<Repetition>,
}

/// One measurement of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Repetition {
    /// From 0.
    pub(crate) number: u32,
    /// Its place in the randomized order of the whole run.
    pub(crate) order: u32,
    pub(crate) started_unix_ms: u64,
    pub(crate) status: Status,
    /// CPU used by others while it was measured, percent of one core; not known of what ended early.
    #[serde(default)]
    pub(crate) others_percent: Option<f64>,
    /// The round trip of a word between the two CPUs of the only machine, the larger of before and after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cores_apart_ns: Option<f64>,
    /// Why it is not ok, in words that a user can act on.
    pub(crate) reason: String,
    /// What makes it doubtful: `busy: 0.34 cores by others`.
    pub(crate) marks: Vec<String>,
    /// When an outage ended, on the clock of the workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outage_end_ns: Option<u64>,
    pub(crate) workers: Vec<WorkerResult>,
}

/// How a repetition ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// Measured.
    Ok,
    /// The product, or its adapter, does not offer this.
    Unsupported,
    /// The parties did not match in time.
    Unmatched,
    /// An adapter reported an error.
    Failed,
    /// A worker died.
    Crashed,
    /// A worker did not answer in time and was killed.
    Hung,
    /// Not run.
    #[default]
    Skipped,
}

/// What one worker did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkerResult {
    /// `ping`, `pong-0`, `pub-3`, `sub-1`.
    pub(crate) name: String,
    /// Name of the agent.
    pub(crate) host: String,
    pub(crate) adapter: String,
    pub(crate) pid: u32,
    pub(crate) ready_after_ns: Option<u64>,
    /// Without their histograms, which are in files of their own.
    pub(crate) intervals: Vec<Interval>,
    pub(crate) report: Option<Report>,
    pub(crate) resources: Resources,
    /// `exit 0`, `signal 9`, `killed by the laboratory: hung`.
    pub(crate) exit: String,
}

/// What one process used over the measured time: differences, unless a maximum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Resources {
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) wall_ns: u64,
    pub(crate) resident_octets_max: u64,
    pub(crate) resident_octets_end: u64,
    /// Without pages of files, which processes share; the most at any look.
    pub(crate) own_octets_max: u64,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
    pub(crate) threads_max: u32,
    pub(crate) descriptors_max: u32,
    /// CPU time in nanoseconds by the names of threads; those with one name are taken together.
    pub(crate) threads: BTreeMap<String, u64>,
    /// The time line.
    pub(crate) samples: Vec<ResourceSample>,
    /// Of the whole network namespace in the same time.
    #[serde(flatten)]
    pub(crate) traffic: Traffic,
}

/// Counters of a network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Traffic {
    pub(crate) udp_in_datagrams: u64,
    pub(crate) udp_out_datagrams: u64,
    pub(crate) udp_in_errors: u64,
    pub(crate) udp_receive_buffer_errors: u64,
    /// Sent, over all interfaces.
    pub(crate) interface_octets: u64,
    pub(crate) interface_packets: u64,
}

impl Traffic {
    /// What has been counted since an earlier look.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            udp_in_datagrams: self.udp_in_datagrams.saturating_sub(before.udp_in_datagrams),
            udp_out_datagrams: self.udp_out_datagrams.saturating_sub(before.udp_out_datagrams),
            udp_in_errors: self.udp_in_errors.saturating_sub(before.udp_in_errors),
            udp_receive_buffer_errors: self
                .udp_receive_buffer_errors
                .saturating_sub(before.udp_receive_buffer_errors),
            interface_octets: self.interface_octets.saturating_sub(before.interface_octets),
            interface_packets: self.interface_packets.saturating_sub(before.interface_packets),
        }
    }
}

/// One look at a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ResourceSample {
    /// Monotonic clock of the host.
    pub(crate) at_ns: u64,
    /// Of one core, since the look before.
    pub(crate) cpu_percent: f64,
    pub(crate) resident_octets: u64,
}

/// Where an agent ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Host {
    /// Of the agent.
    pub(crate) name: String,
    pub(crate) hostname: String,
    pub(crate) kernel: String,
    pub(crate) cpu: String,
    pub(crate) cpus: u32,
    pub(crate) memory_octets: u64,
    pub(crate) governor: String,
    pub(crate) smt: String,
    pub(crate) virtualization: String,
    /// What the kernel reads the time from.
    pub(crate) clock_source: String,
    /// The sort of container that the agent is in, empty if none is seen.
    pub(crate) container: String,
    /// Cores that a control group leaves to the agent, none if it does not limit them.
    pub(crate) cpu_limit: Option<f64>,
    /// What the kernel does about faults of the processor that it has; some of it is slow.
    pub(crate) mitigations: BTreeMap<String, String>,
    pub(crate) sysctls: BTreeMap<String, String>,
    /// CPU of all other processes, percent of one core, over a second before the start.
    pub(crate) load_before: f64,
    /// To the controller's clock; this and the bound are 0 on the controller's host.
    pub(crate) clock_offset_ns: i64,
    pub(crate) clock_bound_ns: u64,
}

/// The floors of a machine (`plainsong perf calibrate`): medians.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Calibration {
    pub(crate) clock_read_ns: f64,
    pub(crate) recorder_ns: f64,
    pub(crate) system_call_ns: f64,
    pub(crate) timer_slack_ns: f64,
    pub(crate) futex_wakeup_round_trip_ns: f64,
    pub(crate) pipe_wakeup_round_trip_ns: f64,
    pub(crate) spin_round_trip_ns: f64,
    pub(crate) udp_sendto_ns: f64,
    /// By payload, like all that follow: blocking receives.
    pub(crate) udp_round_trip_ns: BTreeMap<u64, Floor>,
    /// Receives that never sleep.
    pub(crate) udp_busy_round_trip_ns: BTreeMap<u64, Floor>,
    pub(crate) unix_round_trip_ns: BTreeMap<u64, Floor>,
    /// Received, one datagram a call.
    pub(crate) udp_datagrams_per_s: BTreeMap<u64, f64>,
    /// Received, with segmentation offload on both sides: 64 segments a call, or what fits.
    pub(crate) udp_gso_datagrams_per_s: BTreeMap<u64, f64>,
    pub(crate) memcpy_octets_per_s: BTreeMap<u64, f64>,
}

/// A round trip that nothing on this machine can be faster than, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Floor {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Run {
    /// Notes what ran, once for all hosts that ran the same.
    pub(crate) fn note_program(&mut self, program: Program) {
        let same = |it: &&mut Program| {
            it.adapter == program.adapter && it.build == program.build && it.files == program.files
        };
        match self.programs.iter_mut().find(same) {
            Some(known) => {
                let new = program.hosts.into_iter().filter(|it| !known.hosts.contains(it));
                let new: Vec<String> = new.collect();
                known.hosts.extend(new);
            }
            None => self.programs.push(program),
        }
    }

    /// How many repetitions were measured, and how many of them carry a mark.
    pub(crate) fn marked(&self) -> (usize, usize) {
        let repetitions = self.cells.iter().flat_map(|it| &it.repetitions);
        let measured = repetitions.filter(|it| it.status == Status::Ok);
        measured.fold((0, 0), |(all, marked), it| (all + 1, marked + usize::from(!it.marks.is_empty())))
    }

    /// What makes repetitions doubtful.
    pub(crate) fn marks(&self) -> BTreeMap<&str, (usize, &str)> {
        marks_of(self.cells.iter().flat_map(|it| &it.repetitions))
    }

    /// Reads `run.json` of a run directory, or the file itself.
    ///
    /// # Errors
    /// In words: what is wrong with which file.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        Self::read_at_most(path, FILE_OCTETS_MAX)
    }

    fn read_at_most(path: &Path, octets_max: u64) -> Result<Self, String> {
        let path = run_file(path);
        let fail = |what: String| format!("{}: {what}", path.display());
        let file = File::open(&path).map_err(|error| {
            fail(format!("{error}; a run directory is what `plainsong perf run --out` writes"))
        })?;
        let mut text = Vec::new();
        file.take(octets_max.saturating_add(1))
            .read_to_end(&mut text)
            .map_err(|error| fail(error.to_string()))?;
        if text.len() as u64 > octets_max {
            return Err(fail(format!("is larger than {octets_max} octets, the most that is read")));
        }
        Self::parse(&text).map_err(fail)
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            schema: u32,
        }
        let head: Head =
            serde_json::from_slice(text).map_err(|error| format!("is not the result of a run: {error}"))?;
        if head.schema != SCHEMA {
            return Err(format!(
                "has schema {}, this program reads {SCHEMA}: use the version of plainsong that wrote it",
                head.schema
            ));
        }
        serde_json::from_slice(text).map_err(|error| format!("is damaged: {error}"))
    }

    /// Writes `run.json` of a run directory, such that the file is always whole, the old or the new one.
    ///
    /// # Errors
    /// In words: what could not be written, and why.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), String> {
        let path = directory.join("run.json");
        let draft = directory.join("run.json.new");
        let fail = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut file = BufWriter::new(File::create(&draft).map_err(fail)?);
        serde_json::to_writer(&mut file, self).map_err(|error| fail(error.into()))?;
        file.write_all(b"\n").map_err(fail)?;
        let file = file.into_inner().map_err(|error| fail(error.into_error()))?;
        file.sync_all().map_err(fail)?;
        std::fs::rename(&draft, &path).map_err(fail)
    }
}

/// Each sort of mark (the words before the colon), with the number of repetitions that have it and what the
/// one with the largest number says, or the last of them in the order of letters.
pub(crate) fn marks_of<'a>(
    repetitions: impl Iterator<Item = &'a Repetition>,
) -> BTreeMap<&'a str, (usize, &'a str)> {
    let mut sorts: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for mark in repetitions.flat_map(|it| &it.marks) {
        let sort = mark.split(':').next().unwrap_or_default();
        let (count, worst) = sorts.entry(sort).or_insert((0, mark));
        *count += 1;
        let (one, other) = (amount(worst), amount(mark));
        if one.total_cmp(&other).then((*worst).cmp(mark)).is_lt() {
            *worst = mark;
        }
    }
    sorts
}

/// The number that a mark says first.
fn amount(mark: &str) -> f64 {
    let said = mark.split_once(':').and_then(|(_, said)| said.split_whitespace().next());
    said.and_then(|it| it.parse().ok()).unwrap_or(0.0)
}

fn run_file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("run.json") } else { path.to_owned() }
}

impl Status {
    /// In a table.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unsupported => "not offered",
            Self::Unmatched => "unmatched",
            Self::Failed => "failed",
            Self::Crashed => "crashed",
            Self::Hung => "hung",
            Self::Skipped => "skipped",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("plainsong-results-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn small_run() -> Run {
        let repetition = Repetition {
            status: Status::Unsupported,
            reason: "no multicast".to_owned(),
            workers: vec![WorkerResult { report: Some(Report::default()), ..WorkerResult::default() }],
            ..Repetition::default()
        };
        let cell = Cell { id: "a".to_owned(), repetitions: vec![repetition], ..Cell::default() };
        let mut calibration = Calibration::default();
        calibration.udp_round_trip_ns.insert(64, Floor { p50: 25_000.0, p99: 60_000.0 });
        Run { schema: SCHEMA, cells: vec![cell], calibration: Some(calibration), ..Run::default() }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let directory = Directory::new("round-trip");
        let run = small_run();
        run.write(&directory.0).unwrap();
        assert_eq!(Run::read(&directory.0).unwrap(), run);
        assert_eq!(Run::read(&directory.0.join("run.json")).unwrap(), run);
        assert!(!directory.0.join("run.json.new").exists());
    }

    #[test]
    fn how_far_the_cores_were_apart_is_kept_and_may_be_missing() {
        let mut run = small_run();
        run.cores_nearest_ns = Some(48.25);
        run.cells[0].repetitions[0].cores_apart_ns = Some(50.5);
        let text = serde_json::to_string(&run).unwrap();
        assert!(text.contains(r#""cores_apart_ns":50.5"#), "{text}");
        assert_eq!(Run::parse(text.as_bytes()).unwrap(), run);
        let text = serde_json::to_string(&small_run()).unwrap();
        assert!(!text.contains("cores"), "{text}");
    }

    #[test]
    fn the_worst_mark_is_that_with_the_largest_number() {
        let marks = ["busy: 9.50 cores by others", "busy: 10.20 cores by others", "clock: a", "clock: b"];
        let repetition = Repetition { marks: marks.map(str::to_owned).to_vec(), ..Repetition::default() };
        let sorts = marks_of([&repetition].into_iter());
        assert_eq!(sorts["busy"], (2, "busy: 10.20 cores by others"));
        assert_eq!(sorts["clock"], (2, "clock: b"));
    }

    #[test]
    fn another_schema_is_refused_before_anything_else_is_looked_at() {
        let error = Run::parse(br#"{"schema": 2, "cells": "something new"}"#).unwrap_err();
        assert!(error.contains("schema 2"), "{error}");
    }

    #[test]
    fn damage_and_absence_are_told_with_the_name_of_the_file() {
        let directory = Directory::new("damage");
        let error = Run::read(&directory.0).unwrap_err();
        assert!(error.contains("run.json") && error.contains("perf run"), "{error}");
        std::fs::write(directory.0.join("run.json"), r#"{"schema": 1, "name": 3}"#).unwrap();
        let error = Run::read(&directory.0).unwrap_err();
        assert!(error.contains("run.json: is damaged"), "{error}");
        std::fs::write(directory.0.join("run.json"), "[]").unwrap();
        assert!(Run::read(&directory.0).unwrap_err().contains("is not the result of a run"));
    }

    #[test]
    fn a_file_that_is_too_large_is_not_read() {
        let directory = Directory::new("size");
        small_run().write(&directory.0).unwrap();
        let error = Run::read_at_most(&directory.0, 100).unwrap_err();
        assert!(error.contains("larger than 100 octets"), "{error}");
    }
}
