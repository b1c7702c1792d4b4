//! Charts as text: SVG that takes its colours from the page.

pub(crate) mod bars;
pub(crate) mod chart;
pub(crate) mod lanes;
pub(crate) mod scale;

use std::fmt::Write;

/// Width and height of every chart; the page scales them.
pub(crate) const WIDTH: f64 = 480.0;
pub(crate) const HEIGHT: f64 = 300.0;

/// The number of colours, dashes and markers of the page: series are told apart by all three.
pub(crate) const COLOURS: usize = 8;
pub(crate) const DASHES: usize = 5;
pub(crate) const MARKERS: usize = 7;

/// Text that may stand anywhere in XML, an attribute included.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for each in text.chars() {
        match each {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(' '),
            // XML has no way to write other control characters, nor these two.
            each if each.is_control() || matches!(each, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            each => safe.push(each),
        }
    }
    safe
}

/// The classes that give a series its colour and its dash.
pub(crate) fn style(index: usize) -> String {
    format!("s{} d{}", index % COLOURS, index % DASHES)
}

/// A marker of a series at a place.
pub(crate) fn marker(index: usize, x: f64, y: f64) -> String {
    format!("<use href=\"#m{}\" x=\"{}\" y=\"{}\"/>", index % MARKERS, short(x), short(y))
}

/// The shapes of markers, once for a page.
pub(crate) fn marker_shapes() -> &'static str {
    concat!(
        "<svg class=\"shapes\" width=\"0\" height=\"0\" aria-hidden=\"true\" focusable=\"false\"><defs>",
        "<circle id=\"m0\" r=\"3\"/>",
        "<rect id=\"m1\" x=\"-2.7\" y=\"-2.7\" width=\"5.4\" height=\"5.4\"/>",
        "<path id=\"m2\" d=\"M0-3.6L3.4 2.6H-3.4z\"/>",
        "<path id=\"m3\" d=\"M0-3.9L3.9 0L0 3.9L-3.9 0z\"/>",
        "<path id=\"m4\" d=\"M0 3.6L3.4-2.6H-3.4z\"/>",
        "<path id=\"m5\" d=\"M-1.2-3.6h2.4v2.4h2.4v2.4h-2.4v2.4h-2.4v-2.4h-2.4v-2.4h2.4z\"/>",
        "<path id=\"m6\" d=\"M-3.4-1.8L-1.8-3.4L0-1.6L1.8-3.4L3.4-1.8L1.6 0L3.4 1.8L1.8 3.4L0 1.6L-1.8 3.4L-3.4 1.8L-1.6 0z\"/>",
        "<pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">",
        "<rect class=\"hatch\" width=\"3\" height=\"6\"/></pattern>",
        "</defs></svg>"
    )
}

/// A coordinate: a tenth of a unit is finer than any screen shows.
pub(crate) fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), ToOwned::to_owned)
}

/// The beginning of a drawing with its title and description for those who do not see it.
pub(crate) fn open(height: f64, title: &str, description: &str) -> String {
    let mut text = String::new();
    let _ = write!(
        text,
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\"><title>{}</title><desc>{}</desc>",
        short(height),
        escape(title),
        escape(description)
    );
    text
}

/// The legend of series, beside or below a drawing.
pub(crate) fn legend(series: &[(usize, String)]) -> String {
    let mut text = String::from("<ul class=\"legend\">");
    for (index, label) in series {
        let _ = write!(
            text,
            "<li><svg class=\"swatch {}\" viewBox=\"0 0 34 10\" aria-hidden=\"true\"><path d=\"M1 5H33\"/>{}</svg>{}</li>",
            style(*index),
            marker(*index, 17.0, 5.0),
            escape(label)
        );
    }
    text.push_str("</ul>");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_files_cannot_become_markup() {
        assert_eq!(escape("<b onload='x'>&\"\u{1}\n"), "&lt;b onload=&#39;x&#39;&gt;&amp;&quot;\u{fffd} ");
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!((short(10.0), short(3.061), short(-0.04)), ("10".into(), "3.1".into(), "-0".into()));
    }
}
