//! Tables of the page.

use std::fmt::Write;

use crate::perf::metrics::Better;
use crate::perf::report::format;
use crate::perf::report::svg::escape;
use crate::perf::statistics::bootstrap::Estimate;

/// Titles of columns that hold words.
const WORDED: [&str; 6] = ["ok", "verdict", "duration of", "all values of latency", "process", "threads"];

/// A wide table, row by row. What is put into cells is escaped here.
pub(crate) struct Table {
    head: String,
    body: String,
    columns: usize,
}

impl Table {
    /// With a caption and columns: title and unit.
    pub(crate) fn new(caption: &str, columns: &[(String, String)]) -> Self {
        let mut head = format!("<caption>{}</caption><thead><tr>", escape(caption));
        for (title, unit) in columns {
            // Columns of words are aligned as words.
            let class = if WORDED.contains(&title.as_str()) { " class=\"t\"" } else { "" };
            let _ = write!(head, "<th scope=\"col\"{class}>{}", escape(title));
            if !unit.is_empty() {
                let _ = write!(head, "<small>{}</small>", escape(unit));
            }
            head.push_str("</th>");
        }
        head.push_str("</tr></thead>");
        Self { head, body: String::new(), columns: columns.len() }
    }

    /// Begins a row with its name.
    pub(crate) fn row(&mut self, name: &str) {
        if !self.body.is_empty() {
            self.body.push_str("</tr></tbody>\n");
        }
        let _ = write!(self.body, "<tbody><tr><th scope=\"row\">{}</th>", escape(name));
    }

    pub(crate) fn text(&mut self, text: &str) {
        let _ = write!(self.body, "<td class=\"t\">{}</td>", escape(text));
    }

    /// Text with one of the page's classes.
    pub(crate) fn classed(&mut self, class: &str, text: &str) {
        let _ = write!(self.body, "<td class=\"{class}\">{}</td>", escape(text));
    }

    /// Text that sorts as a number.
    pub(crate) fn keyed(&mut self, text: &str, key: f64) {
        let _ = write!(self.body, "<td data-v=\"{key}\">{}</td>", escape(text));
    }

    pub(crate) fn estimate(&mut self, estimate: Option<&Estimate>) {
        match estimate {
            None => self.body.push_str("<td class=\"no\">–</td>"),
            Some(estimate) => {
                let _ = write!(self.body, "<td>{}", format::number(estimate.value));
                if let Some(interval) = format::interval(estimate) {
                    let _ = write!(self.body, "<i>{interval}</i>");
                }
                self.body.push_str("</td>");
            }
        }
    }

    /// Text over all columns that are left in this row.
    pub(crate) fn rest(&mut self, used: usize, text: &str) {
        let _ = write!(
            self.body,
            "<td class=\"t bad\" colspan=\"{}\">{}</td>",
            self.columns.saturating_sub(used).max(1),
            escape(text)
        );
    }

    /// A line below the row.
    pub(crate) fn say(&mut self, bad: bool, text: &str) {
        let class = if bad { "say bad" } else { "say" };
        let _ = write!(
            self.body,
            "</tr><tr class=\"{class}\"><td colspan=\"{}\"><span>{}</span></td>",
            self.columns,
            escape(text)
        );
    }

    /// The table, scrolling if it is wider than the page; nothing without a row.
    pub(crate) fn finish(self, name: &str) -> String {
        if self.body.is_empty() {
            return String::new();
        }
        format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table class=\"big\">{}{}</tr></tbody></table></div>\n",
            escape(name),
            self.head,
            self.body
        )
    }
}

/// A small table of names and values; nothing without a row.
pub(crate) fn sheet(caption: &str, rows: &[(String, String)]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text =
        format!("<div class=\"scroll\"><table class=\"sheet\"><caption>{}</caption><tbody>", escape(caption));
    for (name, value) in rows {
        let _ = write!(text, "<tr><th scope=\"row\">{}</th><td>{}</td></tr>", escape(name), escape(value));
    }
    text.push_str("</tbody></table></div>\n");
    text
}

/// A grid of numbers with colours, readable without them.
pub(crate) struct Heat {
    pub(crate) caption: String,
    /// What stands in the corner: `publishers \ subscribers`.
    pub(crate) corner: String,
    pub(crate) columns: Vec<String>,
    /// A name, and for each column a number or why there is none.
    pub(crate) rows: Vec<(String, Vec<Result<f64, String>>)>,
    pub(crate) better: Better,
    /// Values of the lightest and the darkest shade.
    pub(crate) range: Option<(f64, f64)>,
}

impl Heat {
    /// The table; nothing without a cell.
    pub(crate) fn table(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let order = match self.better {
            Better::Less => "Stronger colour is more; less is better.",
            Better::More => "Stronger colour is more; more is better.",
            Better::Neither => "Stronger colour is more.",
        };
        let mut text = format!(
            "<div class=\"scroll\" tabindex=\"0\"><table class=\"heat\"><caption>{} {order}</caption><thead><tr><th scope=\"col\">{}</th>",
            escape(&self.caption),
            escape(&self.corner)
        );
        for column in &self.columns {
            let _ = write!(text, "<th scope=\"col\">{}</th>", escape(column));
        }
        text.push_str("</tr></thead><tbody>");
        for (name, cells) in &self.rows {
            let _ = write!(text, "<tr><th scope=\"row\">{}</th>", escape(name));
            for cell in cells {
                let _ = match cell {
                    Ok(value) => {
                        write!(
                            text,
                            "<td class=\"h{}\">{}</td>",
                            level(*value, self.range),
                            format::number(*value)
                        )
                    }
                    Err(reason) => write!(text, "<td class=\"none\">{}</td>", escape(reason)),
                };
            }
            text.push_str("</tr>");
        }
        text.push_str("</tbody></table></div>\n");
        text
    }
}

/// One of nine shades, by the logarithm.
fn level(value: f64, range: Option<(f64, f64)>) -> usize {
    let Some((low, high)) = range.filter(|(low, high)| high > low) else { return 0 };
    if value <= low {
        return 0;
    }
    (((value / low).ln() / (high / low).ln() * 8.0).round() as usize).min(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_holds_numbers_gaps_and_what_must_be_said() {
        let column = |title: &str| (title.to_owned(), "µs".to_owned());
        let mut table = Table::new("a < b", &[column("series"), column("p50"), column("p99")]);
        table.row("<A>");
        table.estimate(Some(&Estimate::exact(12.34)));
        table.estimate(None);
        table.say(true, "crashed & gone");
        let text = table.finish("t");
        assert!(text.contains("<caption>a &lt; b</caption>"), "{text}");
        assert!(
            text.contains(
                "<tbody><tr><th scope=\"row\">&lt;A&gt;</th><td>12.3</td><td class=\"no\">–</td></tr>\
                 <tr class=\"say bad\"><td colspan=\"3\"><span>crashed &amp; gone</span></td></tr></tbody>"
            ),
            "{text}"
        );
        assert_eq!(Table::new("", &[]).finish("t"), "");
    }

    #[test]
    fn shades_follow_the_logarithm() {
        let range = Some((1.0, 100.0));
        assert_eq!(
            (level(1.0, range), level(10.0, range), level(100.0, range), level(0.0, range)),
            (0, 4, 8, 0)
        );
        assert_eq!(level(5.0, Some((5.0, 5.0))), 0);
    }
}
