//! From scenarios to cells: each value of each list with each of the others.

use std::collections::BTreeMap;

use plainsong_perfkit::spec::Profile;
use serde::Deserialize;
use serde_json::{Value, json};

use super::values::{Background, History, Multicast, NetworkMode, Pace, Read, Time};
use super::{Campaign, Durability, Echo, Kind, Pair, Ratio, Scenario};
use crate::perf::agent::child::is_built_in;
use crate::perf::metrics::is_metric;
use crate::perf::results::Cell;

/// A cell, and what its workers need to know.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) cell: Cell,
    pub(crate) point: Point,
    /// Of the campaign's scenarios.
    pub(crate) scenario: usize,
    pub(crate) repetitions: u32,
}

/// The parameters of a cell. What does not belong to its kind has a neutral value.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Point {
    pub(crate) size: u64,
    pub(crate) rate: u64,
    pub(crate) pacing: Option<Pace>,
    pub(crate) publishers: u32,
    pub(crate) subscribers: u32,
    pub(crate) participants: u32,
    pub(crate) endpoints: u32,
    pub(crate) processes: u32,
    pub(crate) instances: u32,
    pub(crate) read: Option<Read>,
    pub(crate) multicast: Multicast,
    pub(crate) profile: Profile,
    pub(crate) network: NetworkMode,
    pub(crate) loss_percent: f64,
    pub(crate) batching: Option<bool>,
    pub(crate) echo: Option<Echo>,
    pub(crate) background: Background,
    pub(crate) outage: Time,
    #[serde(rename = "type")]
    pub(crate) type_name: String,
    pub(crate) reliable: bool,
    pub(crate) history: Option<History>,
    pub(crate) durability: Option<Durability>,
    pub(crate) deadline: Time,
    pub(crate) liveliness: Time,
    pub(crate) blocking: Option<Time>,
    pub(crate) priority: i32,
}

/// What a field of a scenario is called as a parameter of a cell, where it is, and the kinds it belongs to.
struct Axis {
    field: &'static str,
    parameter: &'static str,
    in_qos: bool,
    kinds: &'static [Kind],
}

use Kind::{
    Discovery, Encode, Failover, Fan, Large, LatencyAtRate, Multicast as MulticastKind, Outage, Pingpong,
    Ramp, ReadCost, ReadMethod, Soak, Throughput,
};

/// Kinds with writers and readers of their own.
const ENDPOINTS: &[Kind] = &[
    Pingpong,
    LatencyAtRate,
    Throughput,
    Fan,
    Ramp,
    ReadMethod,
    ReadCost,
    MulticastKind,
    Large,
    Failover,
    Outage,
    Soak,
];
const STREAMS: &[Kind] = &[Throughput, Fan, Ramp, ReadMethod, MulticastKind, Failover, Outage, Soak];
const NETWORKED: &[Kind] = &[
    Pingpong,
    LatencyAtRate,
    Throughput,
    Fan,
    Ramp,
    ReadMethod,
    ReadCost,
    MulticastKind,
    Discovery,
    Large,
    Failover,
    Outage,
    Encode,
    Soak,
];

const fn axis(field: &'static str, parameter: &'static str, kinds: &'static [Kind]) -> Axis {
    Axis { field, parameter, in_qos: false, kinds }
}

const fn qos(field: &'static str, parameter: &'static str) -> Axis {
    Axis { field, parameter, in_qos: true, kinds: ENDPOINTS }
}

/// In the order in which they appear in the names of cells.
const AXES: [Axis; 26] = [
    axis("network", "network", NETWORKED),
    axis("loss_percent", "loss_percent", NETWORKED),
    axis("profile", "profile", NETWORKED),
    qos("reliability", "reliable"),
    axis("multicast", "multicast", NETWORKED),
    axis("read", "read", ENDPOINTS),
    axis("publishers", "publishers", STREAMS),
    axis("subscribers", "subscribers", STREAMS),
    axis("participants", "participants", &[Discovery]),
    axis("endpoints", "endpoints", &[Discovery]),
    axis("processes", "processes", &[Discovery]),
    axis("instances", "instances", &[Throughput, Fan, Ramp, ReadMethod, ReadCost, MulticastKind, Soak]),
    axis("sizes", "size", ENDPOINTS),
    axis("rates", "rate", &[LatencyAtRate, Failover, Outage, Soak]),
    axis("pacing", "pacing", &[Throughput, Fan, ReadMethod, MulticastKind]),
    axis("batching", "batching", ENDPOINTS),
    axis("echo", "echo", &[Pingpong, LatencyAtRate, Large]),
    axis("background", "background", &[Pingpong, LatencyAtRate]),
    axis("outage", "outage", &[Outage]),
    axis("types", "type", &[Encode]),
    qos("history", "history"),
    qos("durability", "durability"),
    qos("deadline", "deadline"),
    qos("liveliness", "liveliness"),
    qos("blocking", "blocking"),
    qos("priority", "priority"),
];

/// What a cell of the kind has when its scenario does not say.
fn defaults(kind: Kind) -> Vec<(&'static str, Value)> {
    let mut defaults = vec![("profile", json!("default"))];
    if ENDPOINTS.contains(&kind) {
        let keeps_all = matches!(kind, Throughput | Fan | MulticastKind | Large | Outage | Soak);
        let history = if keeps_all { "keep_all" } else { "keep_last:16" };
        let size = if kind == Large { 1 << 20 } else { 64 };
        defaults.extend([
            ("reliable", json!(true)),
            ("history", json!(history)),
            ("read", json!("listener")),
            ("size", json!(size)),
        ]);
    }
    if STREAMS.contains(&kind) {
        defaults.extend([
            ("publishers", json!(if kind == Failover { 2 } else { 1 })),
            ("subscribers", json!(1)),
            ("instances", json!(1)),
        ]);
    }
    match kind {
        Pingpong => defaults.push(("echo", json!("full"))),
        LatencyAtRate => defaults.extend([("rate", json!(1000)), ("echo", json!("full"))]),
        Throughput | Fan | MulticastKind => defaults.push(("pacing", json!("max"))),
        ReadMethod => defaults.push(("pacing", json!("rate:1000"))),
        ReadCost => defaults.push(("instances", json!(1000))),
        Discovery => {
            defaults.extend([("participants", json!(2)), ("endpoints", json!(10)), ("processes", json!(2))])
        }
        Large => defaults.extend([("echo", json!("ack")), ("blocking", json!("10s"))]),
        Failover => defaults.extend([("rate", json!(1000)), ("liveliness", json!("200ms"))]),
        Outage => {
            defaults.extend([("rate", json!(1000)), ("outage", json!("1s")), ("blocking", json!("5s"))])
        }
        Encode => defaults.push(("type", json!("numbers"))),
        Soak => defaults.push(("rate", json!(1000))),
        Ramp => {}
    }
    defaults
}

/// Whether a scenario makes sense.
///
/// # Errors
/// The field, and what is wrong with it.
pub(super) fn check(scenario: &Scenario) -> Result<(), (&'static str, String)> {
    let kind = scenario.kind;
    let written = serde_json::to_value(scenario).unwrap_or_default();
    for axis in &AXES {
        if !values_of(&written, axis).is_empty() && !axis.kinds.contains(&kind) {
            return Err((axis.field, format!("kind = \"{}\" has no {}", kind.text(), axis.field)));
        }
    }
    if scenario.adapters.is_empty() && scenario.pairs.is_empty() {
        return Err(("", "a scenario needs adapters = [\"plainsong\"], or pairs".to_owned()));
    }
    if scenario.name().is_empty() || scenario.name().contains(|it: char| !is_plain(it)) {
        return Err((
            "name",
            "a name has letters, digits, '_' and '-' only: directories are called so".to_owned(),
        ));
    }
    if scenario.ramp.is_some() && !matches!(kind, Ramp | ReadMethod) {
        return Err(("ramp", format!("kind = \"{}\" has no ramp", kind.text())));
    }
    if scenario
        .ramp
        .is_some_and(|it| it.start == 0 || it.step == 0 || it.hold.millis() == 0 || it.misses == 0)
    {
        return Err(("ramp", "start, step, hold and misses of a ramp are at least 1".to_owned()));
    }
    if kind == Ramp && scenario.ramp.is_none() {
        let example = "ramp = { start = 1000, step = 1000, hold = \"10s\" }";
        return Err(("kind", format!("kind = \"ramp\" needs {example}")));
    }
    if scenario.calls.is_some() && kind != ReadCost {
        return Err(("calls", "only kind = \"read_cost\" has calls".to_owned()));
    }
    if scenario.repetitions == Some(0) {
        return Err(("repetitions", "at least 1".to_owned()));
    }
    let percents = scenario.loss_percent.iter().flat_map(|it| &it.0);
    if percents.into_iter().any(|it| !(0.0..100.0).contains(it)) {
        return Err(("loss_percent", "from 0 to less than 100".to_owned()));
    }
    let counts = [&scenario.publishers, &scenario.subscribers, &scenario.participants, &scenario.processes];
    if counts.into_iter().flatten().flat_map(|it| &it.0).any(|it| *it == 0 || *it > 1000) {
        return Err(("publishers", "numbers of parties are from 1 to 1000".to_owned()));
    }
    scenario.ratios.iter().try_for_each(check_ratio)?;
    check_together(scenario, &written)
}

fn check_ratio(ratio: &Ratio) -> Result<(), (&'static str, String)> {
    if !is_metric(&ratio.metric) {
        return Err(("ratios", format!("ratios: there is no metric called {}", ratio.metric)));
    }
    if ratio.min.is_none() && ratio.max.is_none() {
        return Err(("ratios", format!("ratios: that of {} needs min or max", ratio.metric)));
    }
    let known = |name: &String| name == "adapter" || AXES.iter().any(|axis| axis.parameter == name);
    match ratio.of.keys().chain(ratio.to.keys()).find(|name| !known(name)) {
        Some(name) => Err(("ratios", format!("ratios: there is no parameter called {name}"))),
        None => Ok(()),
    }
}

fn check_together(scenario: &Scenario, written: &Value) -> Result<(), (&'static str, String)> {
    let mut length = None;
    for field in &scenario.together {
        let axis = AXES.iter().find(|it| it.field == field);
        let count = axis.map_or(0, |axis| values_of(written, axis).len());
        if count == 0 {
            return Err(("together", format!("together: this scenario has no list \"{field}\"")));
        }
        if *length.get_or_insert(count) != count {
            return Err(("together", "together: the lists have different lengths".to_owned()));
        }
    }
    Ok(())
}

fn is_plain(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '_' || it == '-'
}

/// The values that a scenario gives to an axis, none if it does not speak of it.
fn values_of(written: &Value, axis: &Axis) -> Vec<Value> {
    let table = if axis.in_qos { written.get("qos") } else { Some(written) };
    let Some(Value::Array(values)) = table.and_then(|it| it.get(axis.field)) else { return Vec::new() };
    let mut flat = Vec::new();
    for value in values {
        match value {
            // A scan of sizes.
            Value::Array(several) => flat.extend(several.iter().cloned()),
            Value::String(text) if axis.parameter == "reliable" => flat.push(json!(text == "reliable")),
            one => flat.push(one.clone()),
        }
    }
    flat
}

/// All cells of a campaign.
///
/// # Errors
/// Two have the same name.
pub(crate) fn resolve(campaign: &Campaign) -> Result<Vec<Planned>, String> {
    let mut planned: Vec<Planned> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (number, scenario) in campaign.scenarios.iter().enumerate() {
        for cell in cells_of(campaign, scenario)? {
            if !seen.insert(cell.id.clone()) {
                return Err(format!(
                    "scenario \"{}\" has two cells {}: a value is there twice",
                    scenario.name(),
                    cell.id
                ));
            }
            let parameters = cell.parameters.clone().into_iter().collect();
            let point = serde_json::from_value(Value::Object(parameters))
                .map_err(|error| format!("cell {}: {error}", cell.id))?;
            let repetitions = scenario.repetitions.unwrap_or(campaign.repetitions);
            planned.push(Planned { cell, point, scenario: number, repetitions });
        }
    }
    Ok(planned)
}

/// Each with each, but those that go together: of these, always the values at the same place.
fn combinations(scenario: &Scenario, axes: &[(&'static Axis, Vec<Value>)]) -> Vec<Vec<Value>> {
    let together = |axis: &Axis| scenario.together.iter().any(|it| it == axis.field);
    // With each row the place that its lists which go together have, once the first of them has been met.
    let mut rows: Vec<(Option<usize>, Vec<Value>)> = vec![(None, Vec::new())];
    for (axis, values) in axes {
        let mut next = Vec::new();
        for (shared, row) in &rows {
            for (place, value) in values.iter().enumerate() {
                if together(axis) && shared.is_some_and(|shared| shared != place) {
                    continue;
                }
                let shared = if together(axis) { Some(place) } else { *shared };
                next.push((shared, row.iter().cloned().chain([value.clone()]).collect()));
            }
        }
        rows = next;
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

fn cells_of(campaign: &Campaign, scenario: &Scenario) -> Result<Vec<Cell>, String> {
    let written = serde_json::to_value(scenario).map_err(|error| error.to_string())?;
    let lists: Vec<(&Axis, Vec<Value>)> = AXES
        .iter()
        .map(|axis| (axis, values_of(&written, axis)))
        .filter(|(_, values)| !values.is_empty())
        .collect();
    let mut base: BTreeMap<String, Value> = BTreeMap::new();
    base.insert("network".to_owned(), json!(campaign.network.mode.text()));
    base.insert("loss_percent".to_owned(), json!(campaign.network.loss_percent));
    base.extend(defaults(scenario.kind).into_iter().map(|(name, value)| (name.to_owned(), value)));
    if scenario.ramp.is_some() {
        // The ramp paces.
        base.remove("pacing");
    }
    let mut cells = Vec::new();
    for values in combinations(scenario, &lists) {
        let mut parameters = base.clone();
        let mut label = String::new();
        for ((axis, all), value) in lists.iter().zip(values) {
            if all.len() > 1 {
                label.push('.');
                label.push_str(&in_name(axis.parameter, &value));
            }
            parameters.insert(axis.parameter.to_owned(), value);
        }
        for (adapter, peer) in pairs(scenario) {
            let parties = if adapter == peer { adapter.clone() } else { format!("{adapter}~{peer}") };
            cells.push(Cell {
                id: format!("{}.{parties}{label}", scenario.name()),
                scenario: scenario.name().to_owned(),
                kind: scenario.kind.text().to_owned(),
                adapter,
                peer,
                parameters: parameters.clone(),
                limits: scenario.limits.clone(),
                repetitions: Vec::new(),
            });
        }
    }
    Ok(cells)
}

fn pairs(scenario: &Scenario) -> Vec<(String, String)> {
    let adapters = &scenario.adapters;
    let mut pairs: Vec<(String, String)> = Vec::new();
    if scenario.pair != Pair::Cross {
        pairs.extend(adapters.iter().map(|it| (it.clone(), it.clone())));
    }
    // One process has no peer of another product.
    if scenario.pair != Pair::Same && !matches!(scenario.kind, ReadCost | Encode) {
        // Sockets and shared memory speak no RTPS; of the others their adapters tell.
        let speak = |it: &&String| it.as_str() == "plainsong" || !is_built_in(it);
        for one in adapters.iter().filter(speak) {
            let others = adapters.iter().filter(speak).filter(|it| *it != one);
            pairs.extend(others.map(|other| (one.clone(), other.clone())));
        }
    }
    pairs.extend(scenario.pairs.iter().map(|[one, other]| (one.clone(), other.clone())));
    pairs.dedup();
    pairs
}

/// A value in the name of a cell.
fn in_name(parameter: &str, value: &Value) -> String {
    let text = match (parameter, value) {
        ("reliable", Value::Bool(true)) => "reliable".to_owned(),
        ("reliable", Value::Bool(false)) => "best_effort".to_owned(),
        ("multicast", Value::Bool(true)) => "multicast".to_owned(),
        ("multicast", Value::Bool(false)) => "unicast".to_owned(),
        ("batching", Value::Bool(true)) => "batching".to_owned(),
        ("batching", Value::Bool(false)) => "no_batching".to_owned(),
        ("multicast" | "profile", Value::String(text)) => format!("{parameter}_{text}"),
        ("publishers", number) => format!("{number}p"),
        ("subscribers", number) => format!("{number}s"),
        ("participants", number) => format!("{number}participants"),
        ("endpoints", number) => format!("{number}endpoints"),
        ("processes", number) => format!("{number}processes"),
        ("instances", number) => format!("{number}i"),
        ("loss_percent", number) => format!("loss{number}"),
        ("rate", number) => format!("{number}hz"),
        ("priority", number) => format!("priority{number}"),
        ("background", Value::String(text)) => format!("beside-{text}"),
        (_, Value::String(text)) => text.clone(),
        (_, other) => other.to_string(),
    };
    // Points part the name, and a file name must not have anything else.
    text.replace('.', "_").replace(|it: char| !is_plain(it), "-")
}
