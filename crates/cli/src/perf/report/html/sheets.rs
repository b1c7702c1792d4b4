//! Sheets: where and with what a run was made.

use std::fmt::Write;

use super::table::sheet;
use crate::perf::report::section::Names;
use crate::perf::report::summary::Summary;
use crate::perf::report::svg::escape;
use crate::perf::report::{format, ratios};
use crate::perf::results::{Host, Program, Run, Status};

/// More of the campaign than this is not put into the page.
const CAMPAIGN_OCTETS_MAX: usize = 200_000;

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
    hosts.iter().map(host).collect()
}

fn host(host: &Host) -> String {
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
    let mut rows: Vec<(String, String)> = [
        ("Host name", told(&host.hostname)),
        ("Kernel", told(&host.kernel)),
        ("CPU", format!("{} × {}", host.cpus, told(&host.cpu))),
        ("Memory", format::octets(host.memory_octets as f64)),
        ("Frequency governor", told(&host.governor)),
        ("SMT", told(&host.smt)),
        ("Virtualization", told(&host.virtualization)),
        ("Used by others before the start", format!("{} % of a core", format::number(host.load_before))),
        ("Clock", clock),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec();
    rows.extend(host.sysctls.iter().map(|(name, value)| (name.clone(), value.clone())));
    sheet(&format!("Agent {}.", host.name), &rows)
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
    let mut rows = Vec::new();
    for program in programs {
        let twice = programs.iter().any(|it| {
            it.adapter == program.adapter
                && it != program
                && it.hosts.iter().any(|host| program.hosts.contains(host))
        });
        let changed = if twice { ", and not the same in the whole run" } else { "" };
        rows.push((format!("{} on {}{changed}", program.adapter, program.hosts.join(", ")), String::new()));
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
pub(crate) fn troubles(names: &Names, summaries: &[Summary<'_>]) -> String {
    let mut lines: Vec<(bool, String)> = Vec::new();
    for summary in summaries {
        let label = format!("{} ({})", summary.cell.id, names.pair(summary.cell));
        for (status, reason) in summary.reasons() {
            let reason = if reason.is_empty() { "no reason is given" } else { reason };
            lines.push((status != Status::Unsupported, format!("{label}: {}: {reason}", status.label())));
        }
        lines.extend(summary.damage.iter().map(|what| (true, format!("{label}: {what}"))));
    }
    let marked = summaries.iter().filter(|summary| !summary.marks().is_empty()).count();
    let mut text = String::new();
    if marked > 0 {
        let _ = write!(
            text,
            "<p class=\"box\">{marked} of {} cells carry a mark: their machine was not quiet, or something else makes \
             them doubtful. The mark is below the cell's row.</p>",
            summaries.len()
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
