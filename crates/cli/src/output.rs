//! Standard output, whose reader may have heard enough: for people at a terminal tables and colours, for
//! programs plain lines.

use std::fmt::Arguments;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Prints a line. When nobody reads any more, what is said is lost, and the work goes on: its results are
/// kept elsewhere.
macro_rules! say {
    () => {{ $crate::output::print(format_args!("\n")); }};
    ($($text:tt)*) => {{ $crate::output::print(format_args!("{}\n", format_args!($($text)*))); }};
}

pub(crate) use say;

/// What cannot be printed ends the program, unless nobody reads it.
const FAILED: i32 = 3;

/// Whoever read the output has closed it.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether nobody reads what is printed any more. Who prints and does nothing else ends then.
pub(crate) fn is_closed() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}

/// Prints at once; whether somebody may still read it. Where that is a file on a disk that is full, for
/// example, the program says so and ends with 3.
pub(crate) fn print(text: Arguments<'_>) -> bool {
    let mut out = std::io::stdout().lock();
    match out.write_fmt(text).and_then(|()| out.flush()) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            IS_CLOSED.store(true, Ordering::Relaxed);
            false
        }
        Err(error) => {
            eprintln!("cannot write to standard output: {error}");
            std::process::exit(FAILED);
        }
    }
}

/// So many things, in words: `1 sample`, `2 samples`. The word is one whose plural has an `s` more.
pub(crate) fn counted(count: u64, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// Whether a person looks at what is printed.
pub(crate) fn is_for_people() -> bool {
    std::io::stdout().is_terminal()
}

/// How a text stands out at a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Plain,
    Bold,
    Warning,
    Bad,
}

impl Look {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "1",
            Self::Warning => "33",
            Self::Bad => "31",
        }
    }
}

/// The text in that look, where somebody sees it: at a terminal, unless `NO_COLOR` is set.
pub(crate) fn paint(text: &str, look: Look) -> String {
    let is_colourless = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if look == Look::Plain || is_colourless || !is_for_people() {
        return text.to_owned();
    }
    format!("\x1b[{}m{text}\x1b[0m", look.code())
}

/// A text of others as it may be printed: without what would move the cursor or end a line.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .flat_map(|it| if it.is_control() { it.escape_default().collect() } else { vec![it] })
        .collect()
}

/// Rows with a cell for each column. A terminal gets aligned columns under their names; a pipe one line for
/// each row, its cells separated by tabs, a `-` for an empty one.
pub(crate) struct Table {
    columns: Vec<&'static str>,
    rows: Vec<Vec<(String, Look)>>,
}

impl Table {
    pub(crate) fn new(columns: &[&'static str]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; what is missing of it is empty.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (String, Look)>) {
        let cell = |(text, look): (String, Look)| {
            (if text.is_empty() { "-".to_owned() } else { clean(&text) }, look)
        };
        self.rows.push(cells.into_iter().map(cell).collect());
    }

    /// Adds a row without colours.
    pub(crate) fn plain_row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.row(cells.into_iter().map(|text| (text, Look::Plain)));
    }

    /// Whether it has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Its lines, for people or for programs; for people with colours, or without where something else draws
    /// them.
    pub(crate) fn lines(&self, for_people: bool, in_colour: bool) -> Vec<String> {
        if !for_people {
            let line = |row: &Vec<(String, Look)>| {
                row.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join("\t")
            };
            return self.rows.iter().map(line).collect();
        }
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let cells = cells.map(|(text, _)| text.chars().count());
            let name = self.columns.get(column).map_or(0, |name| name.chars().count());
            cells.chain([name]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let line = |cells: Vec<(&str, Look)>| {
            let last = cells.len().saturating_sub(1);
            let padded = cells.into_iter().zip(&widths).enumerate().map(|(column, ((text, look), width))| {
                let pad = if column == last { 0 } else { width.saturating_sub(text.chars().count()) };
                let look = if in_colour { look } else { Look::Plain };
                format!("{}{}", paint(text, look), " ".repeat(pad))
            });
            padded.collect::<Vec<_>>().join("  ")
        };
        let names = line(self.columns.iter().map(|name| (*name, Look::Bold)).collect());
        let rows = self.rows.iter();
        let rows = rows.map(|row| line(row.iter().map(|(text, look)| (text.as_str(), *look)).collect()));
        std::iter::once(names).chain(rows).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned_for_people_and_separated_by_tabs_for_programs() {
        let mut table = Table::new(&["NAME", "COUNT"]);
        table.plain_row(["Square".to_owned(), "2".to_owned()]);
        table.plain_row(["C".to_owned(), String::new()]);
        assert_eq!(table.lines(false, true), ["Square\t2", "C\t-"]);
        assert_eq!(table.lines(true, true), ["NAME    COUNT", "Square  2", "C       -"]);
    }

    #[test]
    fn one_thing_is_no_plural() {
        let told: Vec<String> = (0..3).map(|count| counted(count, "sample")).collect();
        assert_eq!(told, ["0 samples", "1 sample", "2 samples"]);
    }

    #[test]
    fn texts_of_others_do_not_move_the_cursor() {
        let hostile = "a\u{1b}[2Jb\nc\td\u{7f}e\u{9b}é";
        let cleaned = clean(hostile);
        assert!(!cleaned.contains(char::is_control), "{cleaned:?}");
        assert!(cleaned.contains('é') && cleaned.contains("\\n"), "{cleaned}");
        let mut table = Table::new(&["NAME"]);
        table.plain_row([hostile.to_owned()]);
        assert!(table.lines(false, true).iter().all(|line| !line.contains(char::is_control)));
    }
}
