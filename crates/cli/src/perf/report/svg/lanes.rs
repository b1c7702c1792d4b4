//! Time lines: who was heard when, one lane for each repetition.

use std::fmt::Write;

use super::scale::Scale;
use super::{WIDTH, escape, open, short};

/// What a lane shows between two times, in seconds.
pub(crate) struct Stretch {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    /// A writer by its number, or nobody: a gap.
    pub(crate) writer: Option<u16>,
}

/// One lane.
pub(crate) struct Lane {
    pub(crate) label: String,
    pub(crate) stretches: Vec<Stretch>,
}

const ROW: f64 = 32.0;
const LEFT: f64 = 8.0;
const RIGHT: f64 = 12.0;

/// A figure with one lane above the other; nothing without one.
pub(crate) fn figure(title: &str, lanes: &[Lane]) -> String {
    let ends = lanes.iter().flat_map(|lane| &lane.stretches).map(|stretch| stretch.to_s);
    let Some(scale) = Scale::linear(ends) else { return String::new() };
    let height = 8.0 + ROW * lanes.len() as f64 + 36.0;
    let bottom = height - 36.0;
    let across = |value: f64| LEFT + scale.place(value).unwrap_or(1.0) * (WIDTH - LEFT - RIGHT);
    let mut text = format!("<figure><figcaption>{}</figcaption>", escape(title));
    text.push_str(&open(height, title, &description(lanes)));
    for (value, label) in scale.ticks() {
        let x = short(across(value));
        let _ = write!(
            text,
            "<path class=\"grid\" d=\"M{x} 8V{}\"/><text class=\"c\" x=\"{x}\" y=\"{}\">{}</text>",
            short(bottom),
            short(bottom + 14.0),
            escape(&label)
        );
    }
    for (place, lane) in lanes.iter().enumerate() {
        let top = 8.0 + ROW * place as f64;
        let (x, y) = (short(LEFT), short(top + 11.0));
        let _ = write!(text, "<text class=\"b\" x=\"{x}\" y=\"{y}\">{}</text>", escape(&lane.label));
        for stretch in &lane.stretches {
            let (from, to) = (across(stretch.from_s), across(stretch.to_s));
            let width = short((to - from).max(1.0));
            let (x, y) = (short(from), short(top + 15.0));
            let _ = match stretch.writer {
                Some(writer) => write!(
                    text,
                    "<rect class=\"bar s{}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"12\"/><text class=\"inside\" x=\"{}\" y=\"{}\">{writer}</text>",
                    usize::from(writer) % super::COLOURS,
                    short(from + 4.0),
                    short(top + 25.0)
                ),
                None => write!(
                    text,
                    "<rect class=\"gap\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"12\" fill=\"url(#hatch)\"/>"
                ),
            };
        }
    }
    let _ = writeln!(
        text,
        "<text class=\"c name\" x=\"{}\" y=\"{}\">time since the start of the measurement (s)</text></svg>\
         <p class=\"note\">A bar is the time in which the reader was given samples of the writer with this number; a hatched part is a gap.</p></figure>",
        short(WIDTH / 2.0),
        short(height - 6.0)
    );
    text
}

fn description(lanes: &[Lane]) -> String {
    let mut text = String::from("Owners over time.");
    for lane in lanes {
        let _ = write!(text, " {}:", lane.label);
        for stretch in &lane.stretches {
            let who = stretch.writer.map_or_else(|| "gap".to_owned(), |writer| format!("writer {writer}"));
            let _ = write!(text, " {who} from {:.3} to {:.3} s,", stretch.from_s, stretch.to_s);
        }
    }
    text
}
