//! The floors as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Cpus;
use crate::perf::results::{Calibration, Floor};

/// A table for people.
pub(super) fn text(calibration: &Calibration, cpus: Cpus) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut text, calibration, cpus);
    text
}

fn write(text: &mut String, calibration: &Calibration, cpus: Cpus) -> std::fmt::Result {
    match cpus {
        Cpus::Two(one, other) => writeln!(text, "The two parties ran on CPUs {one} and {other}.\n")?,
        Cpus::One => {
            writeln!(text, "There is one CPU only: nobody was pinned, and the two parties shared it.\n")?
        }
    }
    let single = [
        ("look at the clock", calibration.clock_read_ns),
        ("record one latency", calibration.recorder_ns),
        ("system call", calibration.system_call_ns),
        ("sleep, longer than asked by", calibration.timer_slack_ns),
        ("round trip, shared memory, busy", calibration.spin_round_trip_ns),
        ("round trip, futex", calibration.futex_wakeup_round_trip_ns),
        ("round trip, pipe", calibration.pipe_wakeup_round_trip_ns),
        ("sendto of 64 octets", calibration.udp_sendto_ns),
    ];
    for (what, ns) in single {
        writeln!(text, "{what:<34}{:>12}", nanoseconds(ns))?;
    }
    writeln!(text, "\n{:<34}{:>12}{:>12}", "round trip of a datagram", "p50", "p99")?;
    for (what, floors) in [
        ("UDP", &calibration.udp_round_trip_ns),
        ("UDP, busy", &calibration.udp_busy_round_trip_ns),
        ("Unix socket", &calibration.unix_round_trip_ns),
    ] {
        for (size, Floor { p50, p99 }) in floors {
            let what = format!("{what}, {size} octets");
            writeln!(text, "{what:<34}{:>12}{:>12}", nanoseconds(*p50), nanoseconds(*p99))?;
        }
    }
    writeln!(text, "\n{:<34}{:>12}", "datagrams received", "a second")?;
    rates(text, "one a call", &calibration.udp_datagrams_per_s, "")?;
    rates(text, "GSO and GRO", &calibration.udp_gso_datagrams_per_s, "")?;
    writeln!(text, "\n{:<34}{:>12}", "memory copied", "a second")?;
    rates(text, "copies", &calibration.memcpy_octets_per_s, "B")
}

fn rates(text: &mut String, what: &str, rates: &BTreeMap<u64, f64>, unit: &str) -> std::fmt::Result {
    for (size, rate) in rates {
        let what = format!("{what}, {size} octets");
        let rate = match *rate {
            rate if rate >= 1e9 => format!("{:.2} G{unit}", rate / 1e9),
            rate if rate >= 1e6 => format!("{:.2} M{unit}", rate / 1e6),
            rate => format!("{:.1} k{unit}", rate / 1e3),
        };
        writeln!(text, "{what:<34}{rate:>12}")?;
    }
    Ok(())
}

fn nanoseconds(ns: f64) -> String {
    if ns >= 10_000.0 { format!("{:.1} µs", ns / 1000.0) } else { format!("{ns:.0} ns") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_its_line() {
        let floor = |size: u64| BTreeMap::from([(size, Floor { p50: 12_345.0, p99: 999.0 })]);
        let calibration = Calibration {
            system_call_ns: 85.4,
            udp_round_trip_ns: floor(64),
            udp_gso_datagrams_per_s: BTreeMap::from([(16, 23.6e6)]),
            memcpy_octets_per_s: BTreeMap::from([(1024, 5.0e10)]),
            ..Calibration::default()
        };
        let text = text(&calibration, Cpus::Two(0, 3));
        for line in [
            "The two parties ran on CPUs 0 and 3.",
            "system call                              85 ns",
            "UDP, 64 octets                         12.3 µs      999 ns",
            "GSO and GRO, 16 octets                 23.60 M",
            "copies, 1024 octets                   50.00 GB",
        ] {
            assert!(text.lines().any(|it| it == line), "{line:?} is not in\n{text}");
        }
        assert!(super::text(&calibration, Cpus::One).starts_with("There is one CPU only"));
    }
}
