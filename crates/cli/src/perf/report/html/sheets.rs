//! Sheets: where and with what a run was made.

use std::fmt::Write;

use super::table::sheet;
use crate::perf::report::section::Names;
use crate::perf::report::summary::Summary;
use crate::perf::report::svg::escape;
use crate::perf::report::{compare, format, ratios};
use crate::perf::results::{Host, Program, Run, Status};

/// More of the campaign than this is not put into the page.
const CAMPAIGN_OCTETS_MAX: usize = 200_000;

/// Names and values.
type Rows = Vec<(String, String)>;

/// The run as a whole.
pub(crate) fn overview(run: &Run, summaries: &[Summary<'_>]) -> String {
    let finished = run.finished_unix_ms.map_or_else(
        || "not finished: it was interrupted, or is still running".to_owned(),
        |finished| {
            let minutes = finished.saturating_sub(run.started_unix_ms) as f64 / 60_000.0;
            format!("{} ({} minutes)", format::time(finished), format::number(minutes))
        },
    );
    let repetitions: usize = run.cells.iter().map(|cell| cell.repetitions.len()).sum();
    let ok: usize = summaries.iter().map(|summary| summary.ok).sum();
    let (_, marked) = run.marked();
    let rows = [
        ("Started", format::time(run.started_unix_ms)),
        ("Finished", finished),
        ("Plainsong", run.plainsong_version.clone()),
        ("Cells", run.cells.len().to_string()),
        ("Repetitions", format!("{repetitions}, of these {ok} ok, {marked} of them marked as doubtful")),
    ];
    sheet("", &rows.map(|(name, value)| (name.to_owned(), value)))
}

/// Hosts.
pub(crate) fn environment(hosts: &[Host]) -> String {
    if hosts.is_empty() {
        return "<p class=\"box\">The run says nothing of the hosts it was made on.</p>\n".to_owned();
    }
    let mut sheets: Vec<(Rows, Vec<&str>)> = Vec::new();
    for host in hosts {
        let rows = rows_of(host);
        match sheets.iter_mut().find(|(known, _)| *known == rows) {
            Some((_, names)) => names.push(&host.name),
            None => sheets.push((rows, vec![&host.name])),
        }
    }
    let caption = |names: &[&str]| {
        let word = if names.len() == 1 { "Agent" } else { "Agents" };
        format!("{word} {}.", names.join(", "))
    };
    sheets.iter().map(|(rows, names)| sheet(&caption(names), rows)).collect()
}

fn rows_of(host: &Host) -> Rows {
    let told = |text: &str| if text.is_empty() { "not known".to_owned() } else { text.to_owned() };
    let clock = if host.clock_bound_ns == 0 && host.clock_offset_ns == 0 {
        "the controller's".to_owned()
    } else {
        format!(
            "{} ns from the controller's, ± {} ns",
            format::number(host.clock_offset_ns as f64),
            format::number(host.clock_bound_ns as f64)
        )
    };
    let mitigations: Vec<String> =
        host.mitigations.iter().map(|(fault, answer)| format!("{fault}: {answer}")).collect();
    let mitigations = if mitigations.is_empty() { "none known".to_owned() } else { mitigations.join("; ") };
    let mut rows: Rows = [
        ("Host name", told(&host.hostname)),
        ("Kernel", told(&host.kernel)),
        ("CPU", format!("{} × {}", host.cpus, told(&host.cpu))),
        ("Memory", format::octets(host.memory_octets as f64)),
        ("Frequency governor", told(&host.governor)),
        ("SMT", told(&host.smt)),
        ("Virtualization", told(&host.virtualization)),
        (
            "Container",
            if host.container.is_empty() { "none seen".to_owned() } else { host.container.clone() },
        ),
        (
            "CPU limit",
            host.cpu_limit.map_or_else(|| "none".to_owned(), |it| format!("{} cores", format::number(it))),
        ),
        ("Mitigations", mitigations),
        ("Clock source", told(&host.clock_source)),
        ("Used by others before the start", format!("{} % of a core", format::number(host.load_before))),
        ("Clock", clock),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec();
    rows.extend(host.sysctls.iter().map(|(name, value)| (name.clone(), value.clone())));
    rows
}

/// Adapters, as they describe themselves.
pub(crate) fn adapters(run: &Run) -> String {
    if run.adapters.is_empty() {
        return "<p class=\"box\">No adapter has described itself.</p>\n".to_owned();
    }
    let mut text = String::from(
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"sheet\"><thead><tr><th scope=\"col\">adapter</th>\
         <th scope=\"col\">product</th><th scope=\"col\">version</th><th scope=\"col\">offers</th></tr></thead><tbody>",
    );
    for (name, description) in &run.adapters {
        let _ = write!(
            text,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(name),
            escape(&description.product),
            escape(&description.version),
            escape(&description.features.join(", "))
        );
    }
    text.push_str("</tbody></table></div>\n");
    text
}

/// Libraries of the system: they are in `run.json`, and not what is compared.
const OF_THE_SYSTEM: [&str; 9] = [
    "ld-linux",
    "libc.",
    "libm.",
    "libdl.",
    "libgcc_s.",
    "libpthread.",
    "librt.",
    "libresolv.",
    "libstdc++.",
];

/// What exactly ran: how it was built, and the hashes of its files.
pub(crate) fn programs(programs: &[Program]) -> String {
    if programs.is_empty() {
        return "<p class=\"box\">The run says nothing of the files it has measured.</p>\n".to_owned();
    }
    // Adapters that are part of one program, or of one host and another, are told of once.
    let mut same: Vec<(&Program, Vec<&str>)> = Vec::new();
    for program in programs {
        match same.iter_mut().find(|(it, _)| it.build == program.build && it.files == program.files) {
            Some((_, adapters)) => adapters.push(&program.adapter),
            None => same.push((program, vec![&program.adapter])),
        }
    }
    let mut rows = Vec::new();
    for (program, mut adapters) in same {
        adapters.sort_unstable();
        let changed = |it: &&Program| {
            it.adapter == program.adapter
                && it.files != program.files
                && it.hosts.iter().any(|host| program.hosts.contains(host))
        };
        let changed = if programs.iter().any(|it| changed(&it)) { ", but not in the whole run" } else { "" };
        rows.push((format!("{}{changed}", adapters.join(", ")), format!("on {}", program.hosts.join(", "))));
        let built = if program.build.is_empty() { "not known" } else { &program.build };
        rows.push(("built with".to_owned(), built.to_owned()));
        for file in &program.files {
            let name = file.path.rsplit('/').next().unwrap_or_default();
            if !OF_THE_SYSTEM.iter().any(|it| name.starts_with(it)) {
                let hash = if file.sha256.is_empty() { "not known" } else { &file.sha256 };
                rows.push((
                    name.to_owned(),
                    format!("SHA-256 {hash}, {}", format::octets(file.octets as f64)),
                ));
            }
        }
    }
    sheet("Programs and libraries that were measured, without those of the system.", &rows)
}

/// What did not go well, before any number.
pub(crate) fn troubles(run: &Run, names: &Names, summaries: &[Summary<'_>]) -> String {
    let lines = trouble_lines(names, summaries);
    let mut text = String::new();
    for (sort, (count, worst)) in run.marks() {
        let all: usize = run.cells.iter().map(|cell| cell.repetitions.len()).sum();
        let _ = write!(
            text,
            "<p class=\"box\">{count} of {all} repetitions are marked \"{}\", and their numbers are among all others; the \
             worst: {}. How many of a cell are marked stands in its row.</p>",
            escape(sort),
            escape(worst)
        );
    }
    if lines.is_empty() {
        return text;
    }
    let bad = lines.iter().filter(|(bad, _)| *bad).count();
    let class = if bad > 0 { "box bad" } else { "box" };
    let _ = write!(text, "<div class=\"{class}\"><p>Not everything was measured:</p><ul>");
    const SHOWN_MAX: usize = 40;
    for (_, line) in lines.iter().take(SHOWN_MAX) {
        let _ = write!(text, "<li>{}</li>", escape(line));
    }
    if lines.len() > SHOWN_MAX {
        let _ = write!(text, "<li>and {} more, each at its row</li>", lines.len() - SHOWN_MAX);
    }
    text.push_str("</ul></div>\n");
    text
}

/// What had to hold between products.
pub(crate) fn ratios(run: &Run, summaries: &[Summary<'_>]) -> String {
    let verdicts = ratios::check(run, summaries);
    if verdicts.is_empty() {
        return String::new();
    }
    let kept = verdicts.iter().filter(|verdict| verdict.kept()).count();
    let mut text = format!(
        "<p>{kept} of {} ratios that the campaign asks for are kept.</p>\n<div class=\"scroll\" tabindex=\"0\"><table class=\"sheet\">\
         <thead><tr><th scope=\"col\">cell</th><th scope=\"col\">ratio</th></tr></thead><tbody>",
        verdicts.len()
    );
    for verdict in &verdicts {
        let (cell, words) = (escape(&verdict.cell), escape(&verdict.words()));
        let _ = write!(text, "<tr><th scope=\"row\">{cell}</th><td>{words}</td></tr>");
    }
    text.push_str("</tbody></table></div>\n");
    text
}

/// What is not ok, and whether that is bad: one line for all cells of a scenario and product that ended
/// alike.
fn trouble_lines(names: &Names, summaries: &[Summary<'_>]) -> Vec<(bool, String)> {
    // By status, scenario with product, and reason.
    type Key = (Status, String, String);
    let mut alike: Vec<(Key, Vec<&str>)> = Vec::new();
    let mut lines = Vec::new();
    for summary in summaries {
        let cell = summary.cell;
        for (status, reason) in summary.reasons() {
            let reason = if reason.is_empty() { "no reason is given".to_owned() } else { reason };
            let key = (status, format!("{}, {}", cell.scenario, names.pair(cell)), reason);
            match alike.iter_mut().find(|(known, _)| *known == key) {
                Some((_, ids)) if ids.contains(&cell.id.as_str()) => {}
                Some((_, ids)) => ids.push(&cell.id),
                None => alike.push((key, vec![&cell.id])),
            }
        }
        lines.extend(summary.damage.iter().map(|what| (true, format!("{}: {what}", cell.id))));
    }
    let told = alike.into_iter().map(|((status, group, reason), ids)| {
        let cells = if ids.len() == 1 { ids.concat() } else { format!("{group}, {} cells", ids.len()) };
        (status != Status::Unsupported, format!("{cells}: {}: {reason}", status.label()))
    });
    told.chain(lines).collect()
}

/// What else has changed since the base.
pub(crate) fn differences(run: &Run, base: &Run) -> String {
    let boxed = |what: &String| format!("<p class=\"box\">{}.</p>\n", escape(&format::capitalized(what)));
    compare::differences(run, base).iter().map(boxed).collect()
}

/// The resolved campaign, to run it again.
pub(crate) fn campaign(run: &Run) -> String {
    if run.campaign.is_null() {
        return String::new();
    }
    let json = serde_json::to_string_pretty(&run.campaign).unwrap_or_default();
    if json.len() > CAMPAIGN_OCTETS_MAX {
        return "<p class=\"note\">The campaign is too long to be shown here; it is in run.json.</p>"
            .to_owned();
    }
    let json: String = json.lines().map(|line| format!("{}\n", escape(line))).collect();
    format!(
        "<details><summary>The campaign, resolved</summary><p class=\"note\"><code>plainsong perf run DIR/run.json</code> \
         repeats it.</p><pre>{json}</pre></details>\n"
    )
}
