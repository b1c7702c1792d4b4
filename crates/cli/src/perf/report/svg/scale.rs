//! From values to places on an axis, and the ticks of that axis.

use crate::perf::report::format;

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scale {
    Linear {
        low: f64,
        high: f64,
    },
    Log {
        low: f64,
        high: f64,
    },
    /// Powers of two have the ticks.
    Binary {
        low: f64,
        high: f64,
    },
    /// Percentiles as parts of 1: 0, 0.9, 0.99 and so on are equally far apart, up to so many nines.
    Nines {
        most: f64,
    },
}

impl Scale {
    /// Zero to a round number above all values.
    pub(crate) fn linear(values: impl Iterator<Item = f64>) -> Option<Self> {
        let high = values.filter(|value| value.is_finite()).reduce(f64::max)?;
        Some(Self::Linear { low: 0.0, high: round_up(high.max(1e-9)) })
    }

    /// A round number below all values to one above.
    pub(crate) fn between(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = range(values)?;
        let step = nice_step((high - low).max(high.abs() * 1e-3).max(1e-9));
        Some(Self::Linear {
            low: (low / step).floor() * step,
            high: ((high / step).ceil() * step).max(low + step),
        })
    }

    /// Decades around all values that are above zero.
    pub(crate) fn log(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = range(values.filter(|value| *value > 0.0))?;
        let (low, high) = (floor_125(low), ceil_125(high));
        Some(Self::Log { low, high: if high > low { high } else { low * 10.0 } })
    }

    /// From the smallest to the largest.
    pub(crate) fn binary(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = range(values.filter(|value| *value > 0.0))?;
        Some(Self::Binary { low, high: if high > low { high } else { low * 2.0 } })
    }

    /// 0 at the beginning, 1 at the end; none for what cannot be on this axis.
    pub(crate) fn place(self, value: f64) -> Option<f64> {
        let part = match self {
            Self::Linear { low, high } => (value - low) / (high - low),
            Self::Log { low, high } | Self::Binary { low, high } => {
                (value > 0.0).then(|| (value / low).ln() / (high / low).ln())?
            }
            Self::Nines { most } => (value < 1.0).then(|| -(1.0 - value).log10() / most)?,
        };
        (part.is_finite() && (-0.001..=1.001).contains(&part)).then_some(part.clamp(0.0, 1.0))
    }

    /// Values with their labels. An empty label is a line without a word.
    pub(crate) fn ticks(self) -> Vec<(f64, String)> {
        match self {
            Self::Linear { low, high } => {
                let step = nice_step(high - low);
                let count = ((high - low) / step).round() as usize;
                (0..=count.min(20)).map(|place| low + step * place as f64).map(labelled).collect()
            }
            Self::Log { low, high } => log_ticks(low, high),
            Self::Binary { low, high } => binary_ticks(low, high),
            Self::Nines { most } => (0..=most as usize)
                .map(|nines| {
                    let part = 1.0 - 10_f64.powi(-(nines as i32));
                    let label = match nines {
                        0 => "0 %".to_owned(),
                        1 => "90 %".to_owned(),
                        _ => format!("{:.*} %", nines - 2, part * 100.0),
                    };
                    (part, label)
                })
                .collect(),
        }
    }
}

fn labelled(value: f64) -> (f64, String) {
    // What is left of 0.1 * 3 - 0.3 is nothing.
    let value = if value.abs() < 1e-12 { 0.0 } else { value };
    (value, format::short(value))
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite()).fold(None, |range, value| {
        Some(range.map_or((value, value), |(low, high): (f64, f64)| (low.min(value), high.max(value))))
    })
}

fn decade(value: f64) -> f64 {
    10_f64.powf(value.log10().floor())
}

fn nice_step(width: f64) -> f64 {
    let rough = width / 5.0;
    let unit = decade(rough);
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * unit)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(rough)
}

fn round_up(value: f64) -> f64 {
    let step = nice_step(value);
    (value / step).ceil() * step
}

fn floor_125(value: f64) -> f64 {
    let unit = decade(value);
    [5.0, 2.0, 1.0]
        .into_iter()
        .map(|factor| factor * unit)
        .find(|each| *each <= value * 1.0001)
        .unwrap_or(unit)
}

fn ceil_125(value: f64) -> f64 {
    let unit = decade(value);
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * unit)
        .find(|each| *each >= value * 0.9999)
        .unwrap_or(value)
}

fn log_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let decades = (high / low).log10();
    let mut ticks = Vec::new();
    let mut unit = decade(low);
    while unit <= high * 1.001 && ticks.len() < 100 {
        for factor in [1.0, 2.0, 5.0] {
            let value = factor * unit;
            if value < low * 0.999 || value > high * 1.001 {
                continue;
            }
            let worded = factor == 1.0 || decades <= 2.0 || (decades <= 3.0 && factor == 5.0);
            ticks.push((value, if worded { format::short(value) } else { String::new() }));
        }
        unit *= 10.0;
    }
    ticks
}

fn binary_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let first = low.log2().ceil() as i32;
    let last = high.log2().floor() as i32;
    let every = ((last - first) / 7 + 1).max(1);
    (first..=last)
        .step_by(every as usize)
        .map(|power| 2_f64.powi(power))
        .map(|value| (value, format::octets(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_begin_and_end_at_round_numbers() {
        assert_eq!(Scale::linear([3.0, 47.0].into_iter()), Some(Scale::Linear { low: 0.0, high: 50.0 }));
        assert_eq!(Scale::log([21.0, 480.0].into_iter()), Some(Scale::Log { low: 20.0, high: 500.0 }));
        assert_eq!(Scale::linear(std::iter::empty()), None);
        assert_eq!(Scale::log([0.0, -1.0].into_iter()), None);
        assert!(Scale::between([5.0, 5.0].into_iter()).is_some());
    }

    #[test]
    fn what_is_not_on_the_axis_has_no_place() {
        let log = Scale::Log { low: 1.0, high: 100.0 };
        assert_eq!((log.place(10.0), log.place(0.0), log.place(1000.0)), (Some(0.5), None, None));
        let nines = Scale::Nines { most: 4.0 };
        assert!((nines.place(0.99).unwrap() - 0.5).abs() < 1e-9);
        assert_eq!(nines.place(1.0), None);
    }

    #[test]
    fn ticks_are_few_and_worded() {
        let words =
            |scale: Scale| -> Vec<String> { scale.ticks().into_iter().map(|(_, label)| label).collect() };
        assert_eq!(words(Scale::Linear { low: 0.0, high: 50.0 }), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(words(Scale::Nines { most: 4.0 }), ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert_eq!(words(Scale::Binary { low: 64.0, high: 256.0 }), ["64 B", "128 B", "256 B"]);
    }
}
