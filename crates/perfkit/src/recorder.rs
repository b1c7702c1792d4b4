//! Keeps latencies: nothing but counting happens where they are measured.

use hdrhistogram::Histogram;

use crate::clock::now_ns;
use crate::event::NamedHistogram;

/// The longest latency that is told apart: an hour.
const HIGHEST_NS: u64 = 3_600_000_000_000;

/// An empty histogram of nanoseconds, 1 ns to 1 h, 3 significant digits.
#[must_use]
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, HIGHEST_NS, 3).unwrap_or_else(|_| unreachable!("these bounds are allowed"))
}

/// Latencies as they come: a histogram, and mean and deviation of the values themselves.
pub struct Recorder {
    current: Histogram<u64>,
    moments: Moments,
}

/// Mean and spread of values, from exact sums: without a division for each value, which the next one would
/// have to wait for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moments {
    count: u64,
    sum: u128,
    squares: u128,
}

impl Moments {
    /// Notes a value.
    pub fn note(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.squares += u128::from(value) * u128::from(value);
    }

    /// The mean, if there are values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The standard deviation of the sample, if there are at least two values.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        // The square of the sum could be too large; its parts are not, with values below 2^43 of which there
        // are fewer than 2^40.
        let count = u128::from(self.count.max(1));
        let (whole, rest) = (self.sum / count, self.sum % count);
        let of_mean = whole * self.sum + rest * self.sum / count;
        let spread = self.squares.saturating_sub(of_mean);
        (self.count > 1).then(|| (spread as f64 / (self.count - 1) as f64).sqrt())
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self { current: histogram(), moments: Moments::default() }
    }
}

impl Recorder {
    /// Notes a latency. Takes no memory.
    pub fn record(&mut self, latency_ns: u64) {
        let latency_ns = latency_ns.clamp(1, HIGHEST_NS);
        self.current.saturating_record(latency_ns);
        self.moments.note(latency_ns);
    }

    /// Exchanges what came since the last time for an empty histogram: what the measuring thread does at the
    /// end of an interval is to exchange a pointer; adding up is left to the thread that asks.
    pub fn exchange(&mut self, other: &mut Histogram<u64>) {
        std::mem::swap(&mut self.current, other);
    }

    /// Mean and deviation of all.
    #[must_use]
    pub fn moments(&self) -> Moments {
        self.moments
    }
}

/// A histogram as its event has it; `None` if it is empty.
#[must_use]
pub fn named(name: &str, histogram: &Histogram<u64>) -> Option<NamedHistogram> {
    if histogram.is_empty() {
        return None;
    }
    Some(NamedHistogram { name: name.to_owned(), count: histogram.len(), data: base64(&encoded(histogram)) })
}

/// HdrHistogram V2, not deflated. The serializers of `hdrhistogram` want up to half a megabyte for it, by
/// chance of the longest latency, which would count as memory of the product that is measured; this wants
/// what it writes.
fn encoded(histogram: &Histogram<u64>) -> Vec<u8> {
    const COOKIE: u32 = 0x1c84_9313;
    let mut octets = Vec::new();
    octets.extend_from_slice(&COOKIE.to_be_bytes());
    // The length of the counts, and an offset that is none.
    octets.extend_from_slice(&[0; 8]);
    octets.extend_from_slice(&u32::from(histogram.sigfig()).to_be_bytes());
    octets.extend_from_slice(&histogram.low().to_be_bytes());
    octets.extend_from_slice(&histogram.high().to_be_bytes());
    octets.extend_from_slice(&1_f64.to_be_bytes());
    let start = octets.len();
    let (mut left, mut zeros) = (histogram.len(), 0_u64);
    for bin in histogram.iter_all() {
        let count = bin.count_at_value();
        if count == 0 {
            zeros += 1;
            continue;
        }
        // One zero is a count, several in a row are their number below zero.
        match std::mem::take(&mut zeros) {
            0 => {}
            1 => octets.push(0),
            many => put_number(&mut octets, 2 * many - 1),
        }
        put_number(&mut octets, 2 * count);
        left -= count;
        if left == 0 {
            break;
        }
    }
    let length = u32::try_from(octets.len() - start).unwrap_or(u32::MAX);
    octets[4..8].copy_from_slice(&length.to_be_bytes());
    octets
}

/// Seven bits an octet, the lowest first, each but the last with the highest bit set; a ninth octet would be
/// whole.
fn put_number(octets: &mut Vec<u8>, mut number: u64) {
    for _ in 0..8 {
        if number < 0x80 {
            break;
        }
        octets.push(number as u8 | 0x80);
        number >>= 7;
    }
    octets.push(number as u8);
}

/// What a closed loop would have seen had it gone on writing while it waited: for each latency above the
/// median, those that begin one median later each, too (Tene's correction for coordinated omission).
#[must_use]
pub fn corrected(histogram: &Histogram<u64>) -> Histogram<u64> {
    histogram.clone_correct(histogram.value_at_quantile(0.5))
}

/// Base64 of RFC 4648 §4.
#[must_use]
pub fn base64(octets: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(octets.len().div_ceil(3) * 4);
    for chunk in octets.chunks(3) {
        let part = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = part(0) << 16 | part(1) << 8 | part(2);
        for index in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * index) & 63) as usize];
            text.push(if index <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// Nanoseconds that one sample costs its reader because it is measured: the clock, the counting and the
/// histogram. The median of some runs, in this process, now.
#[must_use]
pub fn cost_ns() -> f64 {
    const ROUNDS: u32 = 20_000;
    let mut recorder = Recorder::default();
    let mut runs: Vec<f64> = (0..5)
        .map(|_| {
            let begin = now_ns();
            for round in 0..ROUNDS {
                recorder.record(now_ns().saturating_sub(begin) % 50_000 + u64::from(round));
            }
            now_ns().saturating_sub(begin) as f64 / f64::from(ROUNDS)
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    runs.get(2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::{Serializer, V2Serializer};

    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        let encoded: Vec<String> =
            ["", "f", "fo", "foo", "foob"].iter().map(|it| base64(it.as_bytes())).collect();
        assert_eq!(encoded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }

    #[test]
    fn mean_and_deviation_are_those_of_the_values() {
        let mut recorder = Recorder::default();
        for value in [2, 4, 4, 4, 5, 5, 7, 9] {
            recorder.record(value);
        }
        assert!((recorder.moments().mean().expect("values") - 5.0).abs() < 1e-9);
        assert!((recorder.moments().deviation().expect("values") - (32.0_f64 / 7.0).sqrt()).abs() < 1e-9);
        let mut interval = histogram();
        recorder.exchange(&mut interval);
        assert_eq!((interval.len(), interval.min(), interval.max()), (8, 2, 9));
    }

    #[test]
    fn the_correction_adds_what_was_not_written_while_waiting() {
        let mut closed_loop = histogram();
        for _ in 0..1000 {
            closed_loop.saturating_record(100);
        }
        closed_loop.saturating_record(1000);
        let corrected = corrected(&closed_loop);
        // 900, 800, ... 100 as well.
        assert_eq!(corrected.len(), 1010);
    }

    #[test]
    fn a_histogram_is_encoded_as_others_do_and_takes_no_more_memory_than_that() {
        let mut histogram = histogram();
        for (value, count) in [(1, 1), (2, 127), (4, 128), (900, 1 << 40), (123_456, 1), (HIGHEST_NS, 3)] {
            histogram.record_n(value, count).expect("it is in the bounds");
            let mut expected = Vec::new();
            V2Serializer::new().serialize(&histogram, &mut expected).expect("counts are small");
            let octets = encoded(&histogram);
            assert_eq!(octets, expected);
            assert!(octets.capacity() < 1_000);
        }
    }

    #[test]
    fn a_histogram_has_its_name_and_count() {
        let mut few = histogram();
        few.saturating_record(123_456);
        let named = named("round_trip", &few).expect("it is not empty");
        assert_eq!((named.name.as_str(), named.count), ("round_trip", 1));
        assert!(named.data.starts_with("HISTEwAA"), "the prefix of every V2 histogram: {}", named.data);
        assert!(super::named("empty", &histogram()).is_none());
    }
}
