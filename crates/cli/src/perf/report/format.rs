//! Numbers as text.

use crate::perf::statistics::bootstrap::Estimate;

/// For a person: three digits or more, thousands apart.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        "not a number".to_owned()
    } else if size >= 1000.0 {
        thousands(value)
    } else if size >= 100.0 || value == 0.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        trimmed(format!("{value:.1}"))
    } else if size >= 1.0 {
        trimmed(format!("{value:.2}"))
    } else if size >= 0.001 {
        trimmed(format!("{value:.3}"))
    } else {
        format!("{value:.1e}")
    }
}

fn trimmed(text: String) -> String {
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

/// The interval of an estimate: `[12.1, 12.9]`; none if it is narrower than what is shown.
pub(crate) fn interval(estimate: &Estimate) -> Option<String> {
    let (low, high) = estimate.interval.map(|(low, high)| (number(low), number(high)))?;
    (low != high).then(|| format!("[{low}, {high}]"))
}

/// The first letter large.
pub(crate) fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// A count of octets: `64`, `1 KiB`, `1.5 MiB`.
pub(crate) fn octets(count: f64) -> String {
    let mut value = count;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 || unit == "GiB" {
            return format!("{} {unit}", number(value));
        }
        value /= 1024.0;
    }
    number(count)
}

/// A short number for the axis of a chart: `250 k`, `1.5 M`.
pub(crate) fn short(value: f64) -> String {
    for (least, unit) in [(1e9, " G"), (1e6, " M"), (1e4, " k")] {
        if value.abs() >= least {
            let scale = if unit == " k" { 1e3 } else { least };
            return format!("{}{unit}", number(value / scale));
        }
    }
    number(value)
}

/// A probability.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

/// The date and time of a Unix time, UTC.
pub(crate) fn time(unix_ms: u64) -> String {
    let seconds = unix_ms / 1000;
    let (days, within) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        within / 3600,
        within / 60 % 60,
        within % 60
    )
}

/// Year, month and day of a number of days since 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years are counted from March, so that the leap day is the last; 719,468 days are from 0000-03-01 to
    // 1970-01-01.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        let cases = [
            (0.0, "0"),
            (0.1234, "0.123"),
            (1.5, "1.5"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1234.5, "1,234"),
            (-1_234_567.0, "-1,234,567"),
            (0.000_012, "1.2e-5"),
            (f64::NAN, "not a number"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
        assert_eq!(
            (short(1_500_000.0), short(250_000.0), short(9_000.0)),
            ("1.5 M".into(), "250 k".into(), "9,000".into())
        );
        assert_eq!(
            (octets(64.0), octets(65536.0), octets(1_572_864.0)),
            ("64 B".into(), "64 KiB".into(), "1.5 MiB".into())
        );
    }

    #[test]
    fn times_are_dates() {
        assert_eq!(time(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(time(951_782_400_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(time(1_795_318_622_000), "2026-11-22 03:37:02 UTC");
    }
}
