//! Lines and points over two axes.

use std::fmt::Write;

use super::scale::Scale;
use super::{HEIGHT, WIDTH, escape, legend, marker, open, short, style};

/// The drawing area within the chart.
const LEFT: f64 = 58.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;

/// One axis.
pub(crate) struct Axis {
    /// With its unit.
    pub(crate) label: String,
    pub(crate) scale: Scale,
}

/// How points of a series are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    /// Straight lines with markers at the points.
    Marked,
    /// Straight lines.
    Line,
    /// Steps, as of a cumulative curve.
    Steps,
}

/// One line.
pub(crate) struct Series {
    pub(crate) label: String,
    /// Chooses colour, dash and marker.
    pub(crate) index: usize,
    pub(crate) join: Join,
    pub(crate) points: Vec<Point>,
}

/// A point, with its uncertainty if known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) spread: Option<(f64, f64)>,
}

impl Point {
    pub(crate) fn new(x: f64, y: f64) -> Self {
        Self { x, y, spread: None }
    }
}

/// A vertical line with a word.
pub(crate) struct Mark {
    pub(crate) x: f64,
    pub(crate) label: String,
}

/// A whole chart.
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    pub(crate) marks: Vec<Mark>,
    /// Said below the chart.
    pub(crate) note: String,
}

impl Chart {
    /// A figure of the page; nothing without a point.
    pub(crate) fn figure(&self) -> String {
        let (shown, empty): (Vec<&Series>, Vec<&Series>) =
            self.series.iter().partition(|series| series.points.iter().any(|point| point.y.is_finite()));
        if shown.is_empty() {
            return String::new();
        }
        let named = |series: &&&Series| !series.label.is_empty();
        let shown: Vec<(usize, String)> =
            shown.iter().filter(named).map(|series| (series.index, series.label.clone())).collect();
        let empty: Vec<&str> = empty.iter().filter(named).map(|series| series.label.as_str()).collect();
        let mut text = format!("<figure><figcaption>{}</figcaption>", escape(&self.title));
        text.push_str(&self.drawing());
        if !shown.is_empty() {
            text.push_str(&legend(&shown));
        }
        let mut note = self.note.clone();
        if !empty.is_empty() {
            let _ = write!(note, " Without a value: {}.", empty.join("; "));
        }
        if !note.is_empty() {
            let _ = write!(text, "<p class=\"note\">{}</p>", escape(note.trim_start()));
        }
        text.push_str("</figure>\n");
        text
    }

    fn drawing(&self) -> String {
        let labels: Vec<&str> = self
            .series
            .iter()
            .map(|series| series.label.as_str())
            .filter(|label| !label.is_empty())
            .collect();
        let description = format!("{} over {}. Series: {}.", self.y.label, self.x.label, labels.join("; "));
        let mut text = open(HEIGHT, &self.title, &description);
        text.push_str(&self.grid());
        for series in &self.series {
            text.push_str(&self.line(series));
        }
        for mark in &self.marks {
            text.push_str(&self.mark(mark));
        }
        text.push_str("</svg>");
        text
    }

    fn across(&self, x: f64) -> Option<f64> {
        self.x.scale.place(x).map(|part| LEFT + part * (WIDTH - LEFT - RIGHT))
    }

    fn down(&self, y: f64) -> Option<f64> {
        self.y.scale.place(y).map(|part| HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM))
    }

    fn grid(&self) -> String {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let mut lines = String::new();
        let mut words = String::new();
        for (value, label) in self.y.scale.ticks() {
            let Some(y) = self.down(value) else { continue };
            let _ = write!(lines, "M{} {}H{}", short(LEFT), short(y), short(right));
            if !label.is_empty() {
                let (x, y) = (short(LEFT - 5.0), short(y + 3.5));
                let _ = write!(words, "<text class=\"e\" x=\"{x}\" y=\"{y}\">{}</text>", escape(&label));
            }
        }
        for (value, label) in self.x.scale.ticks() {
            let Some(x) = self.across(value) else { continue };
            let _ = write!(lines, "M{} {}V{}", short(x), short(TOP), short(bottom));
            if !label.is_empty() {
                let (x, y) = (short(x), short(bottom + 15.0));
                let _ = write!(words, "<text class=\"c\" x=\"{x}\" y=\"{y}\">{}</text>", escape(&label));
            }
        }
        let middle = short(TOP + (HEIGHT - TOP - BOTTOM) / 2.0);
        format!(
            "<path class=\"grid\" d=\"{lines}\"/><path class=\"frame\" d=\"M{l} {t}V{b}H{r}\"/>{words}\
             <text class=\"c name\" x=\"{}\" y=\"{}\">{}</text>\
             <text class=\"c name\" transform=\"translate(12 {middle})rotate(-90)\">{}</text>",
            short(LEFT + (WIDTH - LEFT - RIGHT) / 2.0),
            short(HEIGHT - 8.0),
            escape(&self.x.label),
            escape(&self.y.label),
            l = short(LEFT),
            t = short(TOP),
            b = short(bottom),
            r = short(right),
        )
    }

    fn line(&self, series: &Series) -> String {
        let mut path = String::new();
        let mut spreads = String::new();
        let mut markers = String::new();
        let mut last: Option<(f64, f64)> = None;
        for point in &series.points {
            // A point that is not on the axes interrupts the line: it is not bridged.
            let Some((x, y)) = self.across(point.x).zip(self.down(point.y)) else {
                last = None;
                continue;
            };
            let _ = match (last, series.join) {
                (None, _) => write!(path, "M{} {}", short(x), short(y)),
                (Some(_), Join::Steps) => write!(path, "H{}V{}", short(x), short(y)),
                (Some(_), _) => write!(path, "L{} {}", short(x), short(y)),
            };
            last = Some((x, y));
            if let Some((low, high)) = point.spread {
                let ends = self.down(low).zip(self.down(high));
                if let Some((low, high)) = ends.filter(|(low, high)| low - high > 1.0) {
                    let (left, right) = (short(x - 3.0), short(x + 3.0));
                    let (low, high) = (short(low), short(high));
                    let _ = write!(
                        spreads,
                        "M{left} {low}H{right}M{} {low}V{high}M{left} {high}H{right}",
                        short(x)
                    );
                }
            }
            if series.join == Join::Marked {
                markers.push_str(&marker(series.index, x, y));
            }
        }
        if path.is_empty() {
            return String::new();
        }
        let spreads =
            if spreads.is_empty() { spreads } else { format!("<path class=\"spread\" d=\"{spreads}\"/>") };
        format!("<g class=\"{}\"><path d=\"{path}\"/>{spreads}{markers}</g>", style(series.index))
    }

    fn mark(&self, mark: &Mark) -> String {
        let Some(x) = self.across(mark.x) else { return String::new() };
        // Towards the middle, so that the word stays within the chart.
        let (class, at) = if x > WIDTH / 2.0 { ("e", x - 4.0) } else { ("b", x + 4.0) };
        format!(
            "<path class=\"mark\" d=\"M{x} {}V{}\"/><text class=\"{class}\" x=\"{}\" y=\"{}\">{}</text>",
            short(TOP),
            short(HEIGHT - BOTTOM),
            short(at),
            short(TOP + 12.0),
            escape(&mark.label),
            x = short(x),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<Point>, join: Join) -> Chart {
        Chart {
            title: "Round trip <64>".into(),
            x: Axis { label: "payload".into(), scale: Scale::Linear { low: 0.0, high: 10.0 } },
            y: Axis { label: "µs".into(), scale: Scale::Linear { low: 0.0, high: 10.0 } },
            series: vec![Series { label: "A & B".into(), index: 1, join, points }],
            marks: vec![Mark { x: 5.0, label: "knee".into() }],
            note: String::new(),
        }
    }

    #[test]
    fn a_line_is_drawn_where_its_points_are() {
        let points = vec![Point::new(0.0, 0.0), Point { x: 10.0, y: 10.0, spread: Some((5.0, 10.0)) }];
        let text = chart(points, Join::Marked).figure();
        assert!(text.contains("<g class=\"s1 d1\"><path d=\"M58 256L468 12\"/>"), "{text}");
        assert!(text.contains("<path class=\"spread\" d=\"M465 134H471M468 134V12M465 12H471\"/>"), "{text}");
        assert!(text.contains("<use href=\"#m1\" x=\"468\" y=\"12\"/>"), "{text}");
        assert!(
            text.contains("<title>Round trip &lt;64&gt;</title>") && text.contains("A &amp; B</li>"),
            "{text}"
        );
        assert!(text.contains("knee</text>"), "{text}");
    }

    #[test]
    fn what_is_missing_is_a_gap_and_nothing_is_no_chart() {
        let points = vec![Point::new(0.0, 1.0), Point::new(2.0, f64::NAN), Point::new(4.0, 1.0)];
        let text = chart(points, Join::Line).figure();
        assert!(text.contains("M58 231.6M222 231.6"), "{text}");
        assert_eq!(chart(Vec::new(), Join::Steps).figure(), "");
        let mut two = chart(vec![Point::new(0.0, 1.0)], Join::Line);
        let points = vec![Point::new(0.0, f64::NAN)];
        two.series.push(Series { label: "B".into(), index: 2, join: Join::Line, points });
        assert!(two.figure().contains("<p class=\"note\">Without a value: B.</p>"));
        assert!(!two.figure().contains("</svg>B</li>"), "the legend has what is drawn");
    }
}
