//! How far a result is from what this machine can do at all.

use std::collections::BTreeMap;

use super::format;
use super::summary::Summary;
use crate::perf::results::Calibration;

/// A result divided by its floor.
pub(crate) struct Ratio {
    /// `2.3`, or `≤ 2.3` when the floor is that of a smaller payload.
    pub(crate) text: String,
    pub(crate) value: f64,
    /// What stands before it in the text, if the floor is that of another payload.
    pub(crate) sign: &'static str,
}

/// The header of the column of ratios, for a kind that has one.
pub(crate) fn column(kind: &str) -> Option<(&'static str, &'static str)> {
    match kind {
        "pingpong" | "latency_at_rate" => Some(("p50 / raw UDP", "blocking, same payload")),
        "throughput" | "fan" | "multicast" | "read_method" => {
            Some(("samples / raw UDP", "one datagram a call"))
        }
        "ramp" => Some(("knee / raw UDP", "one datagram a call")),
        "large" => Some(("payload / raw UDP", "datagrams of 8 KiB")),
        "encode" => Some(("encode / memcpy", "same octets")),
        _ => None,
    }
}

/// The ratio for a cell, if it was measured and calibrated.
pub(crate) fn ratio(calibration: &Calibration, summary: &Summary<'_>) -> Option<Ratio> {
    match summary.cell.kind.as_str() {
        "pingpong" | "latency_at_rate" => {
            let measured = summary.value("p50_us")? * 1000.0;
            let (sign, floor) = at(&calibration.udp_round_trip_ns, summary.number("size")?, "≤ ")?;
            new(measured, floor.p50, sign)
        }
        "throughput" | "fan" | "multicast" | "read_method" | "ramp" => {
            let metric = if summary.cell.kind == "ramp" { "knee_per_s" } else { "received_per_s" };
            let measured = summary.value(metric)?;
            let (sign, floor) = at(&calibration.udp_datagrams_per_s, summary.number("size")?, "≥ ")?;
            new(measured, floor, sign)
        }
        "large" => {
            const DATAGRAM: u64 = 8192;
            let floor = *calibration.udp_datagrams_per_s.get(&DATAGRAM)? * DATAGRAM as f64 * 8e-6;
            new(summary.value("mbit_per_s")?, floor, "")
        }
        "encode" => {
            let octets = summary.value("encoded_octets")?;
            let (sign, rate) = at(&calibration.memcpy_octets_per_s, octets, "about ")?;
            new(summary.value("encode_ns")?, octets / rate * 1e9, sign)
        }
        _ => None,
    }
}

fn new(measured: f64, floor: f64, sign: &'static str) -> Option<Ratio> {
    let value = measured / floor;
    value.is_finite().then(|| Ratio { text: format!("{sign}{}", format::number(value)), value, sign })
}

/// The floor of a payload, or of the next smaller that was calibrated, with what that makes of the ratio; of
/// the smallest for payloads below it, which cost hardly less. Nothing is interpolated.
fn at<T: Copy>(floors: &BTreeMap<u64, T>, size: f64, of_smaller: &'static str) -> Option<(&'static str, T)> {
    let size = size as u64;
    match floors.range(..=size).next_back() {
        Some((known, floor)) => Some((if *known == size { "" } else { of_smaller }, *floor)),
        None => floors.first_key_value().map(|(_, floor)| ("about ", *floor)),
    }
}
