//! Campaign files: what is measured, with what, how often.

mod cells;
pub(crate) mod values;

use std::collections::BTreeMap;
use std::path::Path;

use plainsong_perfkit::spec::{Faults, InstanceOrder, Profile, ReadCall};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use self::cells::{Planned, Point, resolve};
use self::values::{Background, History, List, Multicast, NetworkMode, Pace, Read, Sizes, Time};

/// The form of campaign files that is read.
const SCHEMA: u32 = 1;

/// The largest campaign file that is read.
const FILE_OCTETS_MAX: u64 = 1 << 20;

/// A whole campaign. Stored in every run, with everything that was not written filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Campaign {
    pub(crate) schema: u32,
    pub(crate) name: String,
    /// How often each cell is measured.
    #[serde(default = "five")]
    pub(crate) repetitions: u32,
    #[serde(default)]
    pub(crate) order: Order,
    /// Of the order, and of everything random in workers.
    #[serde(default)]
    pub(crate) seed: u64,
    #[serde(default = "a_second")]
    pub(crate) warmup: Time,
    #[serde(default = "five_seconds")]
    pub(crate) duration: Time,
    /// Publishers on CPU 0, subscribers on CPU 1.
    #[serde(default)]
    pub(crate) pin: bool,
    /// Measure the floors of this machine first: some 20 seconds.
    #[serde(default = "yes")]
    pub(crate) calibrate: bool,
    /// What others may use of the CPU, in percent of one core, before a repetition begins and during it.
    #[serde(default = "ten")]
    pub(crate) busy_limit_percent: f64,
    /// How long a repetition waits for others to use less; then it is marked. Zero: it begins at once, and is
    /// judged by what others use during it.
    #[serde(default = "five_seconds")]
    pub(crate) busy_wait: Time,
    /// By name: `local`, or the address of a `plainsong perf agent` on another host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) agents: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) network: Network,
    #[serde(rename = "scenario")]
    pub(crate) scenarios: Vec<Scenario>,
}

fn five() -> u32 {
    5
}

fn yes() -> bool {
    true
}

fn ten() -> f64 {
    10.0
}

fn a_second() -> Time {
    Time::from_millis(1000)
}

fn five_seconds() -> Time {
    Time::from_millis(5000)
}

/// In which order cells are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Each repetition takes all cells in an order of its own.
    #[default]
    Interleaved,
    /// Each repetition takes all cells as they are written: for debugging a campaign.
    AsWritten,
}

/// Where cells run unless their scenario says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Network {
    pub(crate) mode: NetworkMode,
    /// UDP datagrams that are dropped where they arrive; never with `host`.
    pub(crate) loss_percent: f64,
    /// Of all products, with `host`: `lo` if absent and there is no other host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interface: Option<String>,
    /// Repetitions take turns in ten DDS domains from here on.
    pub(crate) domain: Option<u32>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Pingpong,
    LatencyAtRate,
    Throughput,
    Fan,
    Ramp,
    ReadMethod,
    ReadCost,
    Multicast,
    Discovery,
    Large,
    Failover,
    Outage,
    Encode,
    Soak,
}

impl Kind {
    /// As it is written in campaigns and results.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Pingpong => "pingpong",
            Self::LatencyAtRate => "latency_at_rate",
            Self::Throughput => "throughput",
            Self::Fan => "fan",
            Self::Ramp => "ramp",
            Self::ReadMethod => "read_method",
            Self::ReadCost => "read_cost",
            Self::Multicast => "multicast",
            Self::Discovery => "discovery",
            Self::Large => "large",
            Self::Failover => "failover",
            Self::Outage => "outage",
            Self::Encode => "encode",
            Self::Soak => "soak",
        }
    }
}

/// Who is paired with whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Pair {
    #[default]
    #[serde(rename = "same")]
    Same,
    #[serde(rename = "cross")]
    Cross,
    #[serde(rename = "same+cross")]
    Both,
}

/// RELIABILITY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reliability {
    Reliable,
    BestEffort,
}

/// DURABILITY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Durability {
    Volatile,
    TransientLocal,
}

/// What a pong answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Echo {
    /// The whole payload.
    Full,
    /// Four octets.
    Ack,
}

/// QoS of all endpoints of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Qos {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reliability: Option<List<Reliability>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) history: Option<List<History>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) durability: Option<List<Durability>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deadline: Option<List<Time>>,
    /// The lease of LIVELINESS AUTOMATIC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) liveliness: Option<List<Time>>,
    /// How long a reliable write may block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blocking: Option<List<Time>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) priority: Option<List<i32>>,
}

/// Cells that have these values of parameters, or one of several; `adapter` is one of them.
pub(crate) type Side = BTreeMap<String, List<Value>>;

/// A bound of a ratio:
/// `{ metric = "p50_us", of = { adapter = "plainsong" }, to = { adapter = "udp" }, max = 1.2 }`. It is the
/// median of the ratios of repetitions that were measured beside each other; where several cells are on the
/// second side, to the best of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ratio {
    pub(crate) metric: String,
    pub(crate) of: Side,
    pub(crate) to: Side,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) min: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max: Option<f64>,
}

impl Ratio {
    /// Cells that it compares may differ in this parameter. In the profile always: who is compared with
    /// another meets its better settings.
    pub(crate) fn varies(&self, parameter: &str) -> bool {
        parameter == "profile" || self.of.contains_key(parameter) || self.to.contains_key(parameter)
    }
}

/// A kind of measurement. All that can be a list is varied; `cells` says what belongs to which kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) kind: Kind,
    /// The kind, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) adapters: Vec<String>,
    #[serde(default)]
    pub(crate) pair: Pair,
    /// Writer and reader of further pairs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) pairs: Vec<[String; 2]>,
    /// Lists of the same length whose values go together instead of each with each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) together: Vec<String>,
    #[serde(default)]
    pub(crate) qos: Qos,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) limits: BTreeMap<String, f64>,
    /// What must hold between products, or between points of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ratios: Vec<Ratio>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) repetitions: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) warmup: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) duration: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) match_timeout: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) drain: Option<Time>,
    /// Ends when so many samples are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) samples: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pin: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checksum: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instance_order: Option<InstanceOrder>,
    /// Of `ramp` and `read_method`: first rate, what is added, how long a rate is held, misses in a row that
    /// end it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ramp: Option<Ramp>,
    /// Of `read_cost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) calls: Option<Vec<ReadCall>>,
    /// What workers do wrong on purpose (self-test).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) faults: Option<Faults>,
    /// Octets of payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sizes: Option<List<Sizes>>,
    /// Samples a second of all `latency_at_rate`, `failover`, `outage` and `soak` writers, each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rates: Option<List<u64>>,
    /// When publishers write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pacing: Option<List<Pace>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) publishers: Option<List<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subscribers: Option<List<u32>>,
    /// Of `discovery`, over all processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) participants: Option<List<u32>>,
    /// Writers, and as many readers, of each participant of `discovery`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) endpoints: Option<List<u32>>,
    /// Of `discovery`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) processes: Option<List<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instances: Option<List<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) read: Option<List<Read>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) multicast: Option<List<Multicast>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) profile: Option<List<Profile>>,
    /// Instead of that of the campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) network: Option<List<NetworkMode>>,
    /// Instead of that of the campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) loss_percent: Option<List<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) batching: Option<List<bool>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) echo: Option<List<Echo>>,
    /// What streams beside pings, written by the process that pings and read by the one that answers;
    /// `qos.priority` is that of pings and answers alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) background: Option<List<Background>>,
    /// Of `outage`: how long nothing at all gets through, in the middle of the measured time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outage: Option<List<Time>>,
    /// Of `encode`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) types: Option<List<String>>,
}

/// A rate that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ramp {
    pub(crate) start: u64,
    pub(crate) step: u64,
    pub(crate) hold: Time,
    #[serde(default = "three")]
    pub(crate) misses: u32,
}

fn three() -> u32 {
    3
}

impl Scenario {
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.kind.text())
    }
}

impl Campaign {
    /// Reads a campaign file, or the campaign of a finished run (`run.json`).
    ///
    /// # Errors
    /// What is wrong, with the line, and what to write instead.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let fail = |what: String| format!("{}: {what}", path.display());
        if path.extension().is_some_and(|it| it == "json") || path.is_dir() {
            let run = crate::perf::results::Run::read(path)?;
            return Self::from_run(run.campaign).map_err(fail);
        }
        let metadata = std::fs::metadata(path).map_err(|error| fail(error.to_string()))?;
        if metadata.len() > FILE_OCTETS_MAX {
            return Err(fail(format!("a campaign file has at most {FILE_OCTETS_MAX} octets")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
        Self::parse(&text).map_err(fail)
    }

    /// The campaign that a run has stored.
    ///
    /// # Errors
    /// It was stored by another version.
    pub(crate) fn from_run(stored: Value) -> Result<Self, String> {
        let campaign: Self = serde_json::from_value(stored)
            .map_err(|error| format!("its campaign cannot be read: {error}"))?;
        campaign.check(|_, _| String::new())?;
        Ok(campaign)
    }

    /// Understands the text of a campaign file.
    ///
    /// # Errors
    /// What is wrong, with the line, and what to write instead.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let campaign: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        campaign.check(|scenario, field| format!("line {}: ", line_of(text, scenario, field)))?;
        Ok(campaign)
    }

    fn check(&self, place: impl Fn(usize, &str) -> String) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!("schema is {}, this program reads {SCHEMA}", self.schema));
        }
        if self.repetitions == 0 || self.scenarios.is_empty() {
            return Err("there is nothing to measure: write repetitions >= 1 and a [[scenario]]".to_owned());
        }
        if self.network.domain.is_some_and(|it| it > 220) {
            return Err("[network] domain: at most 220, for ten are used".to_owned());
        }
        if !(0.0..100.0).contains(&self.network.loss_percent) {
            return Err("[network] loss_percent: from 0 to less than 100".to_owned());
        }
        for (number, scenario) in self.scenarios.iter().enumerate() {
            cells::check(scenario).map_err(|(field, what)| format!("{}{what}", place(number, field)))?;
        }
        let mut names: Vec<&str> = self.scenarios.iter().map(Scenario::name).collect();
        names.sort_unstable();
        if let Some([name, _]) = names.array_windows().find(|[one, next]| one == next) {
            return Err(format!(
                "two scenarios are called \"{name}\": give one of them another name = \"...\""
            ));
        }
        Ok(())
    }
}

/// The line of a field of a scenario; that of its head if it is not there.
fn line_of(text: &str, scenario: usize, field: &str) -> usize {
    let is_head = |line: &str| line.trim_start().starts_with("[[scenario]]");
    let heads = text.lines().enumerate().filter(|(_, line)| is_head(line));
    let head = heads.map(|(number, _)| number).nth(scenario).unwrap_or(0);
    let mut lines = text.lines().enumerate().skip(head + 1).take_while(|(_, line)| !is_head(line));
    let is_field = |line: &str| {
        line.trim_start().strip_prefix(field).is_some_and(|rest| rest.trim_start().starts_with(['=', '.']))
    };
    lines.find(|(_, line)| !field.is_empty() && is_field(line)).map_or(head, |(number, _)| number) + 1
}

#[cfg(test)]
mod tests;
