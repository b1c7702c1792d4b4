//! What is computed from measurements.
//!
//! Distributions are merged as histograms, never by averaging percentiles. A percentile is given only when
//! there are enough values above it. Uncertainty comes from repetitions: values of one repetition are not
//! independent.

pub(crate) mod bootstrap;
pub(crate) mod compare;
pub(crate) mod smooth;
pub(crate) mod trend;

use std::borrow::Cow;
use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

/// The most octets of an encoded histogram that are decoded, and of what it inflates to.
const ENCODED_OCTETS_MAX: usize = 8 << 20;
const INFLATED_OCTETS_MAX: u64 = 32 << 20;

/// Values and how often each was counted: a histogram without its empty bins.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Distribution {
    /// Ascending, each once.
    values: Vec<u64>,
    /// The number of values up to and including the one at the same place.
    cumulative: Vec<u64>,
}

impl Distribution {
    /// From an HdrHistogram V2, deflated or not, in base64.
    ///
    /// # Errors
    /// In words: what is wrong with the text.
    pub(crate) fn decode(text: &str) -> Result<Self, String> {
        if text.len() > ENCODED_OCTETS_MAX {
            return Err(format!("a histogram of {} octets is more than {ENCODED_OCTETS_MAX}", text.len()));
        }
        let octets = STANDARD.decode(text).map_err(|error| format!("not base64: {error}"))?;
        let octets = inflate(octets)?;
        // Cookie, then the length that the decoder allocates.
        let announced =
            octets.get(4..8).and_then(|field| field.try_into().ok()).map_or(0, u32::from_be_bytes);
        if announced as usize > octets.len() {
            return Err("a histogram that is cut off".to_owned());
        }
        let histogram: Histogram<u64> =
            Deserializer::new().deserialize(&mut octets.as_slice()).map_err(|error| error.to_string())?;
        Ok(Self::of_histogram(&histogram))
    }

    pub(crate) fn of_histogram(histogram: &Histogram<u64>) -> Self {
        let bins = histogram
            .iter_recorded()
            .map(|bin| (bin.value_iterated_to().min(histogram.max()), bin.count_at_value()));
        Self::of_counts(bins)
    }

    /// From values in ascending order and their counts.
    pub(crate) fn of_counts(counts: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut distribution = Self::default();
        let mut total = 0_u64;
        for (value, count) in counts {
            total = total.saturating_add(count);
            if distribution.values.last() == Some(&value) {
                distribution.cumulative.pop();
            } else {
                distribution.values.push(value);
            }
            distribution.cumulative.push(total);
        }
        distribution
    }

    /// All values of all parts.
    pub(crate) fn merge<'d>(parts: impl IntoIterator<Item = &'d Self>) -> Self {
        let mut counts: Vec<(u64, u64)> = parts.into_iter().flat_map(Self::counts).collect();
        counts.sort_unstable();
        Self::of_counts(counts)
    }

    /// Ascending values with their counts.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let before = std::iter::once(0).chain(self.cumulative.iter().copied());
        self.values
            .iter()
            .zip(&self.cumulative)
            .zip(before)
            .map(|((&value, &upto), before)| (value, upto - before))
    }

    pub(crate) fn count(&self) -> u64 {
        self.cumulative.last().copied().unwrap_or(0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The number of values up to this one.
    pub(crate) fn count_at_most(&self, value: u64) -> u64 {
        let place = self.values.partition_point(|&each| each <= value);
        place.checked_sub(1).and_then(|last| self.cumulative.get(last)).copied().unwrap_or(0)
    }

    /// The smallest value that at least this part (0 to 1) of all values do not exceed.
    pub(crate) fn quantile(&self, part: f64) -> Option<u64> {
        let wanted = ((part * self.count() as f64).ceil() as u64).max(1);
        let place = self.cumulative.partition_point(|&upto| upto < wanted);
        self.values.get(place.min(self.values.len().checked_sub(1)?)).copied()
    }

    /// A percentile, if there are ten values above it to speak of.
    pub(crate) fn percentile(&self, percent: f64) -> Option<u64> {
        is_supported(percent, self.count()).then(|| self.quantile(percent / 100.0)).flatten()
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        let sum: f64 = self.counts().map(|(value, count)| value as f64 * count as f64).sum();
        (!self.is_empty()).then(|| sum / self.count() as f64)
    }

    /// The standard deviation of the values.
    pub(crate) fn deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        let squares: f64 =
            self.counts().map(|(value, count)| (value as f64 - mean).powi(2) * count as f64).sum();
        Some((squares / self.count() as f64).sqrt())
    }

    /// The median distance from the median.
    pub(crate) fn median_absolute_deviation(&self) -> Option<u64> {
        let median = self.quantile(0.5)?;
        let mut distances: Vec<(u64, u64)> =
            self.counts().map(|(value, count)| (value.abs_diff(median), count)).collect();
        distances.sort_unstable();
        Self::of_counts(distances).quantile(0.5)
    }
}

const DEFLATED_COOKIE: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();

/// An HdrHistogram V2 in base64 as the logs of other tools have it: deflated. What is something else stays as
/// it is.
pub(crate) fn deflated(text: &str) -> Cow<'_, str> {
    const PLAIN_COOKIE: [u8; 4] = 0x1c84_9313_u32.to_be_bytes();
    let plain = STANDARD.decode(text).ok().filter(|octets| octets.starts_with(&PLAIN_COOKIE));
    let Some(plain) = plain else { return text.into() };
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let deflated = encoder.write_all(&plain).and_then(|()| encoder.finish());
    let Ok(deflated) = deflated else { return text.into() };
    let length = u32::try_from(deflated.len()).unwrap_or(u32::MAX).to_be_bytes();
    STANDARD.encode([&DEFLATED_COOKIE[..], &length, &deflated].concat()).into()
}

fn inflate(octets: Vec<u8>) -> Result<Vec<u8>, String> {
    if !octets.starts_with(&DEFLATED_COOKIE) {
        return Ok(octets);
    }
    let deflated = octets.get(8..).unwrap_or_default();
    let mut inflated = Vec::new();
    flate2::read::ZlibDecoder::new(deflated)
        .take(INFLATED_OCTETS_MAX + 1)
        .read_to_end(&mut inflated)
        .map_err(|error| format!("a histogram that does not inflate: {error}"))?;
    if inflated.len() as u64 > INFLATED_OCTETS_MAX {
        return Err("a histogram that inflates without end".to_owned());
    }
    Ok(inflated)
}

/// Whether so many values support this percentile: ten of them are above it, or it is an extreme.
pub(crate) fn is_supported(percent: f64, count: u64) -> bool {
    if percent <= 0.0 || percent >= 100.0 {
        return count > 0;
    }
    // A little less than ten, because 100 - 99.9 is not exactly 0.1.
    count as f64 * (100.0 - percent) / 100.0 >= 10.0 - 1e-8
}

/// The median of numbers; the mean of the middle two of an even count.
pub(crate) fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    sorted.get(middle.checked_sub(1)?).map(|lower| f64::midpoint(*lower, upper))
}

#[cfg(test)]
mod tests;
