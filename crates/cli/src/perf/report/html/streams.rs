//! Where samples went missing: reader by reader and writer by writer.

use plainsong_perfkit::event::Stream;

use super::table::Table;
use crate::perf::report::format;
use crate::perf::report::section::{Names, Section};
use crate::perf::results::Status;

/// More rows than this are left to the files of the run.
const ROWS_MAX: usize = 60;

/// One row for each reader and writer, and for each instance that is counted apart, between which something
/// went wrong in a repetition that is ok; folded, nothing if all went well.
pub(crate) fn table(names: &Names, section: &Section<'_, '_>) -> String {
    let heads = [
        ("series", ""),
        ("process", ""),
        ("repetition", ""),
        ("writer", ""),
        ("instance", ""),
        ("received", "samples"),
        ("lost", "samples"),
        ("duplicates", "samples"),
        ("out of order", "samples"),
        ("corrupted", "samples"),
    ]
    .map(|(title, unit)| (title.to_owned(), unit.to_owned()));
    let mut table = Table::new(
        "Readers and writers between which samples were lost, repeated, late or corrupted.",
        &heads,
    );
    let mut rows = 0;
    for row in section.ordered() {
        let ok = row.cell.repetitions.iter().filter(|repetition| repetition.status == Status::Ok);
        for (repetition, worker) in ok.flat_map(|it| it.workers.iter().map(move |worker| (it.number, worker)))
        {
            let streams = worker.report.iter().flat_map(|report| &report.streams);
            for stream in streams.filter(|stream| went_wrong(stream)) {
                rows += 1;
                if rows > ROWS_MAX {
                    continue;
                }
                let point = section.point_of(names, row.cell);
                add(&mut table, &point, &worker.name, repetition, stream);
            }
        }
    }
    let table = table.finish("losses");
    if table.is_empty() {
        return table;
    }
    let more = match rows.saturating_sub(ROWS_MAX) {
        0 => String::new(),
        more => format!(
            "<p class=\"note\">{} further rows are in the files of the run.</p>",
            format::number(more as f64)
        ),
    };
    format!("<details><summary>Losses, writer by writer</summary>{table}{more}</details>\n")
}

fn add(table: &mut Table, point: &str, reader: &str, repetition: u32, stream: &Stream) {
    table.row(point);
    table.text(reader);
    number(table, u64::from(repetition));
    number(table, u64::from(stream.writer));
    match stream.instance {
        Some(instance) => number(table, u64::from(instance)),
        None => table.classed("no", "all"),
    }
    let counts = &stream.totals;
    for count in [counts.received, counts.lost, counts.duplicates, counts.reordered, counts.corrupted] {
        number(table, count);
    }
}

fn went_wrong(stream: &Stream) -> bool {
    let counts = &stream.totals;
    counts.lost + counts.duplicates + counts.reordered + counts.corrupted > 0
}

fn number(table: &mut Table, count: u64) {
    table.keyed(&format::number(count as f64), count as f64);
}
