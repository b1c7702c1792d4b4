//! Rows as a picture: two charts with logarithmic axes, as SVG.

use std::fmt::Write;

use super::Row;

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 36.0;

/// A line of a chart.
struct Line {
    name: &'static str,
    colour: &'static str,
    /// Participants, and the value.
    points: Vec<(f64, f64)>,
}

/// The rows as two charts: octets that each participant receives, and seconds until all matches are there.
#[must_use]
pub fn chart(rows: &[Row]) -> String {
    let line = |name, colour, value: &dyn Fn(&Row) -> Option<f64>| {
        let point = |row: &Row| Some((row.options.participants as f64, value(row)?));
        Line { name, colour, points: rows.iter().filter_map(point).collect() }
    };
    let octets = [
        line("start, MB", "#1f5fa8", &|row| Some(row.start.received_bytes / 1e6)),
        line("one joins, MB", "#b5541c", &|row| Some(row.join.received_bytes / 1e6)),
        line("later, MB/s", "#2c7a3f", &|row| Some(row.steady.received_bytes / 1e6)),
    ];
    let seconds = [
        line("all start", "#1f5fa8", &|row| row.matched_s),
        line("one joins", "#b5541c", &|row| row.joined_ms.map(|ms| ms / 1e3)),
    ];
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        2.0 * (WIDTH + LEFT + 30.0),
        HEIGHT + TOP + 50.0
    );
    panel(&mut svg, 0.0, "Discovery: received by each participant", &octets);
    panel(&mut svg, WIDTH + LEFT + 30.0, "Seconds until all matches are there", &seconds);
    svg.push_str("</svg>\n");
    svg
}

/// The powers of ten around all values.
fn decades(values: impl Iterator<Item = f64>) -> (i32, i32) {
    let logarithms = values.filter(|value| *value > 0.0).map(f64::log10);
    let (low, high) = logarithms.fold((f64::MAX, f64::MIN), |(low, high), it| (low.min(it), high.max(it)));
    if low > high { (0, 1) } else { (low.floor() as i32, (high.ceil() as i32).max(low.floor() as i32 + 1)) }
}

fn panel(svg: &mut String, offset: f64, title: &str, lines: &[Line]) {
    let points = || lines.iter().flat_map(|line| &line.points);
    let (left, right) = decades(points().map(|(x, _)| *x));
    let (low, high) = decades(points().map(|(_, y)| *y));
    let at_x = |x: f64| offset + LEFT + (x.log10() - f64::from(left)) / f64::from(right - left) * WIDTH;
    let at_y = |y: f64| TOP + HEIGHT - (y.log10() - f64::from(low)) / f64::from(high - low) * HEIGHT;
    let mut put = |text: std::fmt::Arguments<'_>| svg.write_fmt(text).unwrap_or_default();
    put(format_args!("<text x=\"{}\" y=\"18\" font-size=\"13\">{title}</text>\n", offset + LEFT));
    for power in low..=high {
        let (value, y) = (10_f64.powi(power), at_y(10_f64.powi(power)));
        let (from, to) = (offset + LEFT, offset + LEFT + WIDTH);
        put(format_args!("<path d=\"M{from} {y:.1}H{to}\" stroke=\"#ddd\"/>\n"));
        put(format_args!(
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>\n",
            from - 6.0,
            y + 4.0
        ));
    }
    for power in left..=right {
        let (value, x) = (10_f64.powi(power), at_x(10_f64.powi(power)));
        let bottom = TOP + HEIGHT;
        put(format_args!("<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#ddd\"/>\n"));
        put(format_args!(
            "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{value}</text>\n",
            bottom + 16.0
        ));
    }
    let (x, y) = (offset + LEFT + WIDTH / 2.0, TOP + HEIGHT + 34.0);
    put(format_args!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">participants</text>\n"));
    for (number, Line { name, colour, points }) in lines.iter().enumerate() {
        let corners = points.iter().filter(|(_, y)| *y > 0.0);
        let corners: Vec<String> = corners.map(|(x, y)| format!("{:.1},{:.1}", at_x(*x), at_y(*y))).collect();
        let all = corners.join(" ");
        put(format_args!(
            "<polyline points=\"{all}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n"
        ));
        let (x, y) = (offset + LEFT + 10.0, TOP + 16.0 + 15.0 * number as f64);
        put(format_args!("<text x=\"{x}\" y=\"{y}\" fill=\"{colour}\">{name}</text>\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::{Load, Options};

    #[test]
    fn a_chart_has_a_line_for_each_row_of_values_and_leaves_out_what_never_came() {
        let row = |participants, matched_s| Row {
            options: Options { participants, is_full: true, seed: 0 },
            matched_s,
            start: Load { received_bytes: 1e6 * participants as f64, ..Load::default() },
            steady: Load::default(),
            joined_ms: None,
            join: Load::default(),
        };
        let svg = chart(&[row(10, Some(0.5)), row(100, None)]);
        assert_eq!(svg.matches("<polyline").count(), 5);
        // 10 and 100 are the ends of the axis, 10 MB and 100 MB those of the other.
        assert!(svg.contains("points=\"60.0,296.0 420.0,36.0\""), "{svg}");
    }
}
