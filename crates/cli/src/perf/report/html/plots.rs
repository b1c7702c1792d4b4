//! Charts of latency and throughput, over what the scenario varies, and of distributions.

use crate::perf::metrics::{METRICS, find_metric};
use crate::perf::report::format;
use crate::perf::report::section::{Names, Section, parameter};
use crate::perf::report::summary::Summary;
use crate::perf::report::svg::chart::{Axis, Chart, Join, Point, Series};
use crate::perf::report::svg::scale::Scale;
use crate::perf::statistics::smooth::{cumulative, smoothed};
use crate::perf::statistics::{Distribution, is_supported};

/// More series than this in one chart cannot be told apart.
const SERIES_MAX: usize = 8;

/// Bars of linear charts end at so many times the largest value.
const SPREAD_MAX: f64 = 1.5;

/// Series that are drawn together.
pub(crate) struct Facet<'s, 'a> {
    /// What its cells have in common and others have not; may be empty.
    pub(crate) title: String,
    pub(crate) lines: Vec<Line<'s, 'a>>,
    /// Series that are not drawn.
    pub(crate) left_out: usize,
}

/// The cells of one series, in the order of the horizontal axis.
pub(crate) struct Line<'s, 'a> {
    pub(crate) label: String,
    pub(crate) index: usize,
    pub(crate) rows: Vec<&'s Summary<'a>>,
}

/// All series in one facet if they are few; otherwise one facet for each variant, with products as series.
pub(crate) fn facets<'s, 'a>(names: &Names, section: &Section<'s, 'a>) -> Vec<Facet<'s, 'a>> {
    let series = section.series(names);
    if series.len() <= SERIES_MAX {
        let line = |(index, (label, rows))| Line { label, index, rows };
        let lines = series.into_iter().enumerate().map(line).collect();
        return vec![Facet { title: String::new(), lines, left_out: 0 }];
    }
    // Products with themselves come first: pairs have a table of their own.
    let mut products: Vec<String> = Vec::new();
    for crossed in [false, true] {
        for pair in
            section.rows.iter().map(|row| names.pair(row.cell)).filter(|pair| pair.contains('→') == crossed)
        {
            if !products.contains(&pair) {
                products.push(pair);
            }
        }
    }
    let mut facets: Vec<Facet<'s, 'a>> = Vec::new();
    for (label, rows) in series {
        let Some(first) = rows.first() else { continue };
        let product = names.pair(first.cell);
        let index = products.iter().position(|known| *known == product).unwrap_or(0);
        let title = label.strip_prefix(&product).unwrap_or(&label).trim_start_matches(", ").to_owned();
        let line = Line { label: product, index, rows };
        match facets.iter_mut().find(|facet| facet.title == title) {
            Some(facet) => facet.lines.push(line),
            None => facets.push(Facet { title, lines: vec![line], left_out: 0 }),
        }
    }
    for facet in &mut facets {
        facet.lines.sort_by_key(|line| line.index);
        facet.left_out = facet.lines.len().saturating_sub(SERIES_MAX);
        facet.lines.truncate(SERIES_MAX);
    }
    facets
}

impl Line<'_, '_> {
    /// As a chart draws it.
    fn series(&self, join: Join, points: Vec<Point>) -> Series {
        Series { label: self.label.clone(), index: self.index, join, points }
    }
}

impl Facet<'_, '_> {
    fn titled(&self, title: &str) -> String {
        if self.title.is_empty() { title.to_owned() } else { format!("{title}: {}", self.title) }
    }

    fn note(&self, more: &str) -> String {
        let left_out = match self.left_out {
            0 => String::new(),
            1 => " One further series is in the table only.".to_owned(),
            count => format!(" {count} further series are in the table only."),
        };
        format!("{more}{left_out}").trim().to_owned()
    }
}

/// The horizontal axis of a section.
fn horizontal(section: &Section<'_, '_>) -> Option<Axis> {
    let over = section.over?;
    let values = || section.rows.iter().map(|row| section.place(row));
    let (label, scale) = match over {
        "size" => ("payload (octets)", Scale::binary(values())?),
        "rate" => ("rate asked for (samples/s)", Scale::log(values())?),
        "instances" => ("instances", Scale::log(values())?),
        "loss_percent" => ("datagrams lost on purpose (%)", Scale::linear(values())?),
        other => (other, Scale::linear(values())?),
    };
    let label = match section.tied {
        Some(tied) => format!("{label}, and as many {tied}"),
        None => label.to_owned(),
    };
    Some(Axis { label, scale })
}

fn linear_size(section: &Section<'_, '_>) -> Option<Axis> {
    (section.over == Some("size")).then_some(())?;
    let values = section.rows.iter().map(|row| section.place(row) / 1024.0);
    Some(Axis { label: "payload (KiB)".to_owned(), scale: Scale::linear(values)? })
}

/// Whether and how a metric is drawn over the horizontal axis.
struct Plot {
    metric: &'static str,
    title: &'static str,
    log: bool,
    linear_size: bool,
    note: &'static str,
}

const INTERVALS: &str = "Bars at the points: 95 % confidence from repetitions.";

const fn plot(metric: &'static str, title: &'static str, log: bool) -> Plot {
    Plot { metric, title, log, linear_size: false, note: INTERVALS }
}

const LATENCY_PLOTS: [Plot; 6] = [
    Plot { linear_size: true, ..plot("p50_us", "Median latency, linear axes", false) },
    plot("p50_us", "Median latency", true),
    plot("p90_us", "90th percentile", true),
    plot("p99_us", "99th percentile", true),
    Plot {
        note: "One value, the longest of all repetitions: it has no confidence.",
        ..plot("max_us", "Longest", true)
    },
    Plot {
        note: "Bars at the points: one standard deviation to either side.",
        ..plot("mean_us", "Mean and standard deviation", false)
    },
];

const FLOW_PLOTS: [Plot; 6] = [
    plot("received_per_s", "Samples received by each reader", true),
    plot("mbit_per_s", "Payload received by each reader", true),
    Plot { linear_size: true, ..plot("mbit_per_s", "Payload received by each reader, linear axes", false) },
    plot("lost_percent", "Loss", false),
    plot("cpu_writer_percent", "CPU of a writer", false),
    plot("cpu_reader_percent", "CPU of a reader", false),
];

const DISCOVERY_PLOTS: [Plot; 4] = [
    plot("matched_ms", "Time until the last is matched", true),
    plot("matched_median_ms", "Time until the median worker is matched", true),
    plot("wire_octets", "Octets on the wire", true),
    plot("memory_writer_mib", "Peak memory of a process", false),
];

/// Charts over the horizontal axis; nothing if the section has none.
pub(crate) fn over_axis(section: &Section<'_, '_>, facet: &Facet<'_, '_>) -> Vec<String> {
    let plots: &[Plot] = match section.kind.as_str() {
        "pingpong" | "latency_at_rate" | "large" => &LATENCY_PLOTS,
        "discovery" => &DISCOVERY_PLOTS,
        "encode" | "failover" | "outage" | "ramp" | "read_cost" => &[],
        _ => &FLOW_PLOTS,
    };
    let mut figures: Vec<String> = plots.iter().filter_map(|plot| chart(section, facet, plot)).collect();
    if matches!(section.kind.as_str(), "fan" | "multicast") {
        let all = plot("received_total_per_s", "Samples received by all readers together", true);
        figures.splice(0..0, chart(section, facet, &all));
    }
    if section.kind == "large" {
        let more = [
            plot("mbit_per_s", "Payload answered", true),
            plot("wire_per_useful", "Octets on the wire for each octet of payload", false),
        ];
        figures.extend(more.iter().filter_map(|plot| chart(section, facet, plot)));
    }
    figures
}

fn chart(section: &Section<'_, '_>, facet: &Facet<'_, '_>, plot: &Plot) -> Option<String> {
    let x = if plot.linear_size { linear_size(section)? } else { horizontal(section)? };
    let unit = if plot.linear_size { 1.0 / 1024.0 } else { 1.0 };
    let metric = find_metric(plot.metric)?;
    let points = |line: &Line<'_, '_>| {
        line.rows.iter().map(|row| point(section.place(row) * unit, row, plot.metric)).collect()
    };
    let mut series: Vec<Series> =
        facet.lines.iter().map(|line| line.series(Join::Marked, points(line))).collect();
    let values = || series.iter().flat_map(|line| &line.points);
    // One wide interval must not press all that is measured onto the axis.
    let most = values().map(|point| point.y).filter(|y| y.is_finite()).reduce(f64::max)? * SPREAD_MAX;
    let high = |point: &Point| point.spread.map_or(point.y, |(_, high)| high);
    let cut = !plot.log && values().any(|point| high(point) > most);
    let drawn = || values().filter(|point| point.y.is_finite());
    let ends =
        || drawn().flat_map(|point| [point.spread.map_or(point.y, |(low, _)| low), point.y, high(point)]);
    let scale = if plot.log { Scale::log(ends())? } else { Scale::linear(ends().map(|end| end.min(most)))? };
    if cut {
        for (_, high) in
            series.iter_mut().flat_map(|line| &mut line.points).filter_map(|it| it.spread.as_mut())
        {
            *high = high.min(most);
        }
    }
    let cut = if cut { " The longest bars are cut." } else { "" };
    let chart = Chart {
        title: facet.titled(plot.title),
        x,
        y: Axis { label: format!("{} ({})", metric.title, metric.unit), scale },
        series,
        marks: Vec::new(),
        note: facet.note(&format!("{}{cut}", plot.note)),
    };
    Some(chart.figure()).filter(|figure| !figure.is_empty())
}

/// A cell without the metric keeps its place, so that the line is interrupted there.
fn point(x: f64, row: &Summary<'_>, metric: &str) -> Point {
    let Some(estimate) = row.metrics.get(metric) else { return Point::new(x, f64::NAN) };
    let spread = if metric == "mean_us" {
        row.value("deviation_us")
            .map(|deviation| ((estimate.value - deviation).max(0.0), estimate.value + deviation))
    } else {
        estimate.interval
    };
    Point { x, y: estimate.value, spread }
}

/// Distributions at the smallest, the middle and the largest place of the horizontal axis.
pub(crate) fn distributions(section: &Section<'_, '_>, facet: &Facet<'_, '_>) -> Vec<String> {
    let mut places: Vec<f64> =
        facet.lines.iter().flat_map(|line| &line.rows).map(|row| section.place(row)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    if places.len() > 3 {
        places = [0, places.len() / 2, places.len() - 1]
            .iter()
            .filter_map(|&at| places.get(at).copied())
            .collect();
    }
    places.into_iter().flat_map(|place| at_place(section, facet, place)).collect()
}

fn at_place(section: &Section<'_, '_>, facet: &Facet<'_, '_>, place: f64) -> Vec<String> {
    let curves: Vec<(&Line<'_, '_>, &Distribution)> = facet
        .lines
        .iter()
        .filter_map(|line| {
            let row = line.rows.iter().find(|row| section.place(row) == place)?;
            Some((line, &row.latency()?.merged))
        })
        .collect();
    let named = |title: &str| facet.titled(&format!("{title}{}", where_at(section, facet, place)));
    [
        percentiles(&named("Latency by percentile"), facet, &curves),
        ecdf(&named("Cumulative distribution"), facet, &curves),
        smooth(&named("Cumulative distribution, smoothed"), facet, &curves),
    ]
    .into_iter()
    .flatten()
    .filter(|figure| !figure.is_empty())
    .collect()
}

/// The place on the horizontal axis in words, after a comma; nothing without such an axis.
fn where_at(section: &Section<'_, '_>, facet: &Facet<'_, '_>, place: f64) -> String {
    let mut rows = facet.lines.iter().flat_map(|line| &line.rows).filter(|row| section.place(row) == place);
    let words = section.over.and_then(|over| {
        rows.find_map(|row| row.cell.parameters.get(over))
            .map(|value| format!(", {}", parameter(over, value)))
    });
    words.unwrap_or_default()
}

/// Distributions with the lines they belong to.
type Curves<'f, 's, 'a> = [(&'f Line<'s, 'a>, &'f Distribution)];

/// Points of a drawn curve at most.
const CURVE_POINTS: usize = 80;

/// One series for each distribution.
fn curve_series(
    curves: &Curves<'_, '_, '_>,
    join: Join,
    points: impl Fn(&Distribution) -> Vec<Point>,
) -> Vec<Series> {
    let series =
        |(line, distribution): &(&Line<'_, '_>, &Distribution)| line.series(join, points(distribution));
    curves.iter().map(series).collect()
}

/// Nanoseconds and parts of all values.
fn in_micro(points: Vec<(f64, f64)>) -> Vec<Point> {
    points.into_iter().map(|(value, part)| Point::new(value / 1000.0, part)).collect()
}

fn micro(value: u64) -> f64 {
    value as f64 / 1000.0
}

/// The percentile plot: each further nine has the same width, up to what the counts support.
fn percentiles(title: &str, facet: &Facet<'_, '_>, curves: &Curves<'_, '_, '_>) -> Option<String> {
    let most = curves.iter().map(|(_, distribution)| nines(distribution)).max()?;
    let series = curve_series(curves, Join::Line, percentile_points);
    let values = series.iter().flat_map(|line| &line.points).map(|point| point.y);
    let chart = Chart {
        title: title.to_owned(),
        x: Axis { label: "percentile".to_owned(), scale: Scale::Nines { most: f64::from(most.max(1)) } },
        y: Axis { label: "latency (µs)".to_owned(), scale: Scale::log(values)? },
        series,
        marks: Vec::new(),
        note: facet.note("A line ends where fewer than ten values are left above it."),
    };
    Some(chart.figure())
}

/// How many nines a count supports.
fn nines(distribution: &Distribution) -> u32 {
    (1..=6)
        .take_while(|&nines| is_supported(100.0 - 100.0 * 0.1_f64.powi(nines), distribution.count()))
        .count() as u32
}

fn percentile_points(distribution: &Distribution) -> Vec<Point> {
    const PARTS_OF_A_NINE: i32 = 20;
    let count = nines(distribution) as i32 * PARTS_OF_A_NINE;
    let parts = (0..=count).map(|step| 1.0 - 10_f64.powf(-f64::from(step) / f64::from(PARTS_OF_A_NINE)));
    parts.filter_map(|part| Some(Point::new(part, micro(distribution.quantile(part)?)))).collect()
}

fn ecdf(title: &str, facet: &Facet<'_, '_>, curves: &Curves<'_, '_, '_>) -> Option<String> {
    let series = curve_series(curves, Join::Steps, |distribution| {
        in_micro(cumulative(distribution, 0.0, f64::INFINITY, CURVE_POINTS))
    });
    let values = series.iter().flat_map(|line| &line.points).map(|point| point.x);
    let chart = Chart {
        title: title.to_owned(),
        x: Axis { label: "latency (µs)".to_owned(), scale: Scale::log(values)? },
        y: Axis { label: "part of all values".to_owned(), scale: Scale::Linear { low: 0.0, high: 1.0 } },
        series,
        marks: Vec::new(),
        note: facet.note("Every value, logarithmic."),
    };
    Some(chart.figure())
}

/// Zoomed to the bulk, without the far outliers.
fn smooth(title: &str, facet: &Facet<'_, '_>, curves: &Curves<'_, '_, '_>) -> Option<String> {
    let at =
        |part: f64| curves.iter().filter_map(move |(_, distribution)| distribution.quantile(part)).map(micro);
    let low = at(0.0).reduce(f64::min)?;
    let fastest = at(0.95).reduce(f64::min)?;
    let high = at(0.95).reduce(f64::max)?.min(fastest * 4.0);
    let scale = Scale::between([low, high].into_iter())?;
    let Scale::Linear { low, high } = scale else { return None };
    let series = curve_series(curves, Join::Line, |distribution| {
        in_micro(smoothed(distribution, low.max(0.0) * 1000.0, high * 1000.0, CURVE_POINTS))
    });
    let chart = Chart {
        title: title.to_owned(),
        x: Axis { label: "latency (µs)".to_owned(), scale },
        y: Axis { label: "part of all values".to_owned(), scale: Scale::Linear { low: 0.0, high: 1.0 } },
        series,
        marks: Vec::new(),
        note: facet.note(&format!(
            "Gaussian kernel, reflected at 0; zoomed to at most {} µs, what is longer is in the other charts.",
            format::number(high)
        )),
    };
    Some(chart.figure())
}

/// Rates of single seconds of all repetitions, cumulative: how steady the throughput is.
pub(crate) fn steadiness(section: &Section<'_, '_>, facet: &Facet<'_, '_>) -> Option<String> {
    let last =
        facet.lines.iter().flat_map(|line| &line.rows).map(|row| section.place(row)).reduce(f64::max)?;
    let series: Vec<Series> = facet
        .lines
        .iter()
        .filter_map(|line| {
            let row = line.rows.iter().find(|row| section.place(row) == last)?;
            let mut rates = super::series::interval_rates(row);
            rates.sort_by(f64::total_cmp);
            let count = rates.len() as f64;
            let points =
                rates.iter().enumerate().map(|(place, rate)| Point::new(*rate, (place + 1) as f64 / count));
            Some(line.series(Join::Steps, points.collect()))
        })
        .collect();
    let values = || series.iter().flat_map(|line| &line.points).map(|point| point.x);
    if values().count() < 5 {
        return None;
    }
    let size = where_at(section, facet, last);
    let chart = Chart {
        title: facet.titled(&format!("Rates of single seconds, cumulative{size}")),
        x: Axis { label: "samples/s, all readers".to_owned(), scale: Scale::linear(values())? },
        y: Axis { label: "part of all seconds".to_owned(), scale: Scale::Linear { low: 0.0, high: 1.0 } },
        series,
        marks: Vec::new(),
        note: facet.note("A steep curve is a steady rate."),
    };
    Some(chart.figure()).filter(|figure| !figure.is_empty())
}

/// A column of a table, by the metric's name.
pub(crate) fn heading(name: &str) -> (String, String) {
    METRICS.iter().find(|metric| metric.name == name).map_or_else(
        || (name.to_owned(), String::new()),
        |metric| (metric.title.to_owned(), metric.unit.to_owned()),
    )
}
