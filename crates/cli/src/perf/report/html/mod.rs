//! The report as one HTML file that needs nothing else.

mod floor;
mod plots;
mod scenario;
mod series;
mod sheets;
mod special;
mod streams;
mod table;
mod threads;

use std::fmt::Write;

use super::Reported;
use super::compare::with_base;
use super::format;
use super::section::{Names, Section};
use super::svg::{escape, marker_shapes};

/// Charts are left out after this much of a page; tables never are.
const CHART_OCTETS_MAX: usize = 2_600_000;

/// What may still be spent on charts.
pub(crate) struct Budget {
    octets: usize,
}

impl Budget {
    /// The charts as far as there is room, and what was left out.
    pub(crate) fn plots(&mut self, figures: Vec<String>) -> String {
        let mut text = String::new();
        let mut left_out = 0;
        for figure in figures {
            match self.octets.checked_sub(figure.len()) {
                Some(left) => {
                    self.octets = left;
                    text.push_str(&figure);
                }
                None => left_out += 1,
            }
        }
        if !text.is_empty() {
            text = format!("<div class=\"plots\">{text}</div>\n");
        }
        if left_out > 0 {
            let _ = writeln!(
                text,
                "<p class=\"note\">{left_out} charts are left out to keep this file small: their numbers are in the tables. \
                 A report of fewer scenarios has them.</p>"
            );
        }
        text
    }
}

/// A heading of the page and what follows it.
struct Part {
    id: String,
    level: u8,
    title: String,
    /// Beside the title in the contents.
    remark: String,
    body: String,
}

/// The whole page.
pub(crate) fn page(runs: &[Reported<'_>], base: Option<&Reported<'_>>) -> String {
    let mut budget = Budget { octets: CHART_OCTETS_MAX };
    let mut parts: Vec<Part> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        chapter(place, runs.len() == 1, run, base, &mut budget, &mut parts);
    }
    parts.push(Part {
        id: "methods".to_owned(),
        level: 2,
        title: "How to read this".to_owned(),
        remark: String::new(),
        body: METHODS.to_owned(),
    });
    let title = runs.iter().map(|each| each.run.name.as_str()).collect::<Vec<_>>().join(", ");
    let title = if title.is_empty() { "Measurements".to_owned() } else { title };
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\"/>\
         <title>{title}: plainsong perf</title><style>{}</style></head><body>\n{}<header><h1>{title}</h1>\
         <p class=\"lead\">Measured by <code>plainsong perf</code>.</p></header>\n",
        include_str!("style.css"),
        marker_shapes(),
        title = escape(&title)
    );
    text.push_str(&contents(&parts));
    text.push_str("<main>\n");
    for part in &parts {
        let _ = write!(
            text,
            "<section aria-labelledby=\"{id}\"><h{level} id=\"{id}\">{}</h{level}>\n{}</section>\n",
            escape(&part.title),
            part.body,
            id = part.id,
            level = part.level
        );
    }
    let _ = write!(text, "</main>\n<script>{}</script></body></html>\n", include_str!("script.js"));
    text
}

fn contents(parts: &[Part]) -> String {
    let mut text = String::from("<nav aria-label=\"Contents\"><h2 id=\"contents\">Contents</h2><ol>");
    for part in parts {
        let remark = if part.remark.is_empty() {
            String::new()
        } else {
            format!(" <span class=\"note\">{}</span>", escape(&part.remark))
        };
        let _ = write!(text, "<li><a href=\"#{}\">{}</a>{remark}</li>", part.id, escape(&part.title));
    }
    text.push_str("</ol></nav>\n");
    text
}

/// The parts of one run.
fn chapter(
    place: usize,
    alone: bool,
    reported: &Reported<'_>,
    base: Option<&Reported<'_>>,
    budget: &mut Budget,
    parts: &mut Vec<Part>,
) {
    let (run, summaries) = (reported.run, reported.summaries);
    let names = Names::of(run);
    let mut add = |name: &str, title: String, remark: String, body: String| {
        parts.push(Part { id: format!("r{place}-{name}"), level: 2, title, remark, body });
    };
    let of = |what: &str| if alone { what.to_owned() } else { format!("{what}: {}", run.name) };
    let overview = sheets::overview(run, summaries);
    add(
        "run",
        of("Run"),
        String::new(),
        format!("{overview}{}{}", sheets::troubles(run, &names, summaries), sheets::ratios(run, summaries)),
    );
    let environment = format!(
        "{}{}{}{}",
        sheets::environment(&run.hosts),
        sheets::adapters(run),
        sheets::programs(&run.programs),
        sheets::campaign(run)
    );
    add("environment", of("Environment"), String::new(), environment);
    add("floors", of("Floors of the machine"), String::new(), floor::tables(run.calibration.as_ref()));
    if let Some(base) = base {
        let pairs = with_base(summaries, base.summaries);
        let caption = format!(
            "Each cell against the same of {}, {}.",
            base.run.name,
            format::time(base.run.started_unix_ms)
        );
        let body = if pairs.is_empty() {
            "<p class=\"box\">No cell is in both runs.</p>\n".to_owned()
        } else {
            scenario::comparison(&caption, &pairs)
        };
        let notices = sheets::differences(run, base.run);
        add("base", format!("Compared with {}", base.run.name), String::new(), format!("{notices}{body}"));
    }
    if summaries.is_empty() {
        add(
            "none",
            "Nothing measured".to_owned(),
            String::new(),
            "<p class=\"box\">The run has no cells.</p>\n".to_owned(),
        );
    }
    for (number, section) in Section::all(summaries).iter().enumerate() {
        let ok = section.rows.iter().filter(|row| row.ok > 0).count();
        let remark = if ok == section.rows.len() {
            format!("{} cells", section.rows.len())
        } else {
            format!("{} cells, {} without a result", section.rows.len(), section.rows.len() - ok)
        };
        let body = scenario::body(&names, section, run.calibration.as_ref(), budget);
        let kind = kind_name(&section.kind);
        let title = if section.title == section.kind { kind } else { format!("{}: {kind}", section.title) };
        add(&format!("s{number}"), of(&title), remark, body);
    }
}

/// A kind of scenario in words.
fn kind_name(kind: &str) -> String {
    let words = match kind {
        "pingpong" => "Round trip",
        "latency_at_rate" => "Latency at a rate",
        "throughput" => "Throughput",
        "fan" => "Several writers and readers",
        "multicast" => "Multicast and unicast",
        "ramp" => "Ramp",
        "read_method" => "Methods of reading",
        "read_cost" => "Cost of read calls",
        "discovery" => "Discovery",
        "large" => "Large samples",
        "failover" => "Failover",
        "outage" => "Outage",
        "encode" => "Serialization",
        "soak" => "Soak",
        other => return other.replace('_', " "),
    };
    words.to_owned()
}

/// The rules of measuring, for those who read the numbers.
const METHODS: &str = "\
<h3>Repetitions and confidence</h3>\
<p>Every cell was measured several times, in an order drawn at random over the whole run, so that the drift of the machine \
meets all alike. Histograms of repetitions are merged; percentiles are those of the merged histogram and never averages of \
percentiles. An interval in brackets is a bootstrap of 1,000 drawings of whole repetitions, 95 %; with fewer than three \
repetitions there is none. Rates and resources are means over repetitions.</p>\
<h3>Percentiles</h3>\
<p>A percentile is shown only if at least ten values lie above it: p99 needs 1,000 values, p99.99 needs 100,000. MAD is \
the median distance from the median. Values are recorded in nanoseconds with three digits.</p>\
<h3>Comparisons</h3>\
<p>A verdict rests on the interval of the ratio, which comes from repetitions, and on the size of the effect, Cliff's δ: \
below 0.147 it is called negligible, below 0.33 small, below 0.474 medium. The Mann–Whitney U test and the \
Kolmogorov–Smirnov test are over single values. Values that follow each other are not independent, so these p are too \
small, and no verdict rests on them.</p>\
<h3>Floors</h3>\
<p>A ratio to the floor is the result divided by what bare sockets, or memory, reach on this machine with the same payload. \
≤ and ≥ mean that only a smaller payload was calibrated. Products that put several samples into a datagram can receive more \
samples than bare sockets receive datagrams.</p>\
<h3>Loss</h3>\
<p>Lost, repeated, late and corrupted samples are counted from the numbers and checksums within each payload, for each \
writer and instance. Small payloads cannot carry all of these; what they cannot carry is not counted.</p>\
<h3>What is missing</h3>\
<p>What was not measured is –, or a row with the reason. A line in a chart is interrupted there. Nothing is \
interpolated.</p>";
