//! Horizontal bars with their uncertainty.

use std::fmt::Write;

use super::scale::Scale;
use super::{WIDTH, escape, open, short};
use crate::perf::report::format;
use crate::perf::statistics::bootstrap::Estimate;

/// One bar.
pub(crate) struct Bar {
    pub(crate) label: String,
    /// Chooses the colour.
    pub(crate) index: usize,
    pub(crate) value: Estimate,
}

const ROW: f64 = 34.0;
const LEFT: f64 = 8.0;
const RIGHT: f64 = 76.0;

/// A figure with one bar for each; nothing without one. The axis begins at 0.
pub(crate) fn figure(title: &str, axis: &str, bars: &[Bar]) -> String {
    let highs = bars.iter().map(|bar| bar.value.interval.map_or(bar.value.value, |(_, high)| high));
    let Some(scale) = Scale::linear(highs) else { return String::new() };
    let height = 8.0 + ROW * bars.len() as f64 + 36.0;
    let bottom = height - 36.0;
    let across = |value: f64| LEFT + scale.place(value).unwrap_or(0.0) * (WIDTH - LEFT - RIGHT);
    let mut text = format!("<figure><figcaption>{}</figcaption>", escape(title));
    let described: Vec<String> =
        bars.iter().map(|bar| format!("{}: {}", bar.label, format::number(bar.value.value))).collect();
    text.push_str(&open(height, title, &format!("{axis}. {}.", described.join("; "))));
    let mut lines = String::new();
    let mut words = String::new();
    for (value, label) in scale.ticks() {
        let x = short(across(value));
        let _ = write!(lines, "M{x} 8V{}", short(bottom));
        let _ = write!(
            words,
            "<text class=\"c\" x=\"{x}\" y=\"{}\">{}</text>",
            short(bottom + 14.0),
            escape(&label)
        );
    }
    let _ = write!(text, "<path class=\"grid\" d=\"{lines}\"/>{words}");
    for (place, bar) in bars.iter().enumerate() {
        let top = 8.0 + ROW * place as f64;
        let end = across(bar.value.value);
        let _ = write!(
            text,
            "<text class=\"b\" x=\"{l}\" y=\"{}\">{}</text><rect class=\"bar s{}\" x=\"{l}\" y=\"{}\" width=\"{}\" height=\"12\"/>\
             <text class=\"b\" x=\"{}\" y=\"{}\">{}</text>",
            short(top + 12.0),
            escape(&bar.label),
            bar.index % super::COLOURS,
            short(top + 17.0),
            short((end - LEFT).max(0.5)),
            short(across(bar.value.interval.map_or(bar.value.value, |(_, high)| high)) + 5.0),
            short(top + 27.0),
            escape(&format::number(bar.value.value)),
            l = short(LEFT),
        );
        if let Some((low, high)) = bar.value.interval {
            let (low, high, middle) = (short(across(low)), short(across(high)), short(top + 23.0));
            let (above, below) = (short(top + 19.0), short(top + 27.0));
            let _ = write!(
                text,
                "<path class=\"whisker\" d=\"M{low} {middle}H{high}M{low} {above}V{below}M{high} {above}V{below}\"/>"
            );
        }
    }
    let _ = writeln!(
        text,
        "<text class=\"c name\" x=\"{}\" y=\"{}\">{}</text></svg></figure>",
        short(LEFT + (WIDTH - LEFT - RIGHT) / 2.0),
        short(height - 6.0),
        escape(axis)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_begin_at_zero_and_are_worded() {
        let bar = Bar { label: "<A>".into(), index: 0, value: Estimate::exact(50.0) };
        let text = figure("Encode", "ns", &[bar]);
        assert!(
            text.contains("<rect class=\"bar s0\" x=\"8\" y=\"25\" width=\"396\" height=\"12\"/>"),
            "{text}"
        );
        assert!(text.contains("&lt;A&gt;") && !text.contains("<A>"), "{text}");
        assert_eq!(figure("Encode", "ns", &[]), "");
    }
}
