//! Where the CPU time of a process went: its threads.

use super::table::Table;
use crate::perf::report::format;
use crate::perf::report::section::{Names, Section};
use crate::perf::report::summary::{Side, side};
use crate::perf::results::{Resources, Status};

/// Threads that are told of one process.
const THREADS_MAX: usize = 8;
/// What a thread has used at least to be told, percent of a core: the system counts in steps.
const PERCENT_MIN: f64 = 1.0;

/// One row for the first writer and one for the first reader of each cell; folded, nothing for nothing.
pub(crate) fn table(names: &Names, section: &Section<'_, '_>) -> String {
    let heads = ["series", "process", "threads"].map(|title| (title.to_owned(), String::new()));
    let mut table = Table::new(
        "Percent of a core that each thread used in the first repetition that is ok. Threads with one name are taken together.",
        &heads,
    );
    for row in section.ordered() {
        let ok = row.cell.repetitions.iter().find(|repetition| repetition.status == Status::Ok);
        let workers = ok.map_or(&[][..], |repetition| repetition.workers.as_slice());
        for wanted in [Side::Writer, Side::Reader] {
            let mut known = workers.iter().filter(|worker| side(worker) == wanted);
            let Some(worker) = known.find(|worker| !worker.resources.threads.is_empty()) else { continue };
            table.row(&section.point_of(names, row.cell));
            table.text(&worker.name);
            table.text(&words(&worker.resources));
        }
    }
    let table = table.finish("CPU of threads");
    if table.is_empty() {
        return table;
    }
    format!("<details><summary>CPU of threads</summary>{table}</details>\n")
}

/// `receive 45, main 12`: what used most comes first.
fn words(resources: &Resources) -> String {
    let percent = |used_ns: u64| used_ns as f64 * 100.0 / resources.wall_ns.max(1) as f64;
    let mut threads: Vec<(&str, f64)> =
        resources.threads.iter().map(|(name, used_ns)| (name.as_str(), percent(*used_ns))).collect();
    threads.retain(|(_, percent)| *percent >= PERCENT_MIN);
    threads.sort_by(|one, other| other.1.total_cmp(&one.1));
    let told = threads.iter().take(THREADS_MAX);
    let told: Vec<String> =
        told.map(|(name, percent)| format!("{name} {}", format::number(*percent))).collect();
    match threads.len().saturating_sub(THREADS_MAX) {
        0 if told.is_empty() => "none of them 1 or more".to_owned(),
        0 => told.join(", "),
        more => format!("{}, and {more} more", told.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_used_most_comes_first_and_next_to_nothing_is_left_out() {
        let threads = [("main", 120), ("receive", 450), ("idle", 3)];
        let mut resources = Resources {
            wall_ns: 1000,
            threads: threads.map(|(name, used)| (name.to_owned(), used)).into(),
            ..Resources::default()
        };
        assert_eq!(words(&resources), "receive 45, main 12");
        resources.threads = (0..10).map(|number| (format!("t{number}"), 500 - number)).collect();
        assert!(words(&resources).ends_with("t7 49.3, and 2 more"), "{}", words(&resources));
        resources.threads.clear();
        assert_eq!(words(&resources), "none of them 1 or more");
    }
}
