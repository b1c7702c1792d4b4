//! Values of campaign files: times, sizes, pacing, and lists of anything.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use plainsong_perfkit::spec::{Pacing, ReadMethod};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One value or several: several are measured one by one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T: Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMany(PhantomData))
    }
}

struct OneOrMany<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> OneOrMany<T> {
    fn one<E: Error>(value: impl IntoDeserializer<'de, E>) -> Result<List<T>, E> {
        T::deserialize(value.into_deserializer()).map(|value| List(vec![value]))
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
    type Value = List<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value or a list of values")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<List<T>, E> {
        Self::one(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<List<T>, E> {
        Self::one(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<List<T>, E> {
        Self::one(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<List<T>, E> {
        Self::one(value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<List<T>, E> {
        Self::one(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<List<T>, A::Error> {
        let values = Vec::deserialize(SeqAccessDeserializer::new(values))?;
        if values.is_empty() {
            Err(Error::custom("an empty list measures nothing"))
        } else {
            Ok(List(values))
        }
    }
}

/// A type whose values are written as text that `from_text` understands and `text` prints.
macro_rules! as_text {
    ($name:ident) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.text())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::from_text(&text).map_err(Error::custom)
            }
        }
    };
}

/// A time: `250us`, `10ms`, `5s`, `2m`, `1h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time(pub(crate) Duration);

as_text!(Time);

impl Time {
    pub(crate) const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    pub(crate) fn millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    fn micros(self) -> u64 {
        u64::try_from(self.0.as_micros()).unwrap_or(u64::MAX)
    }

    pub(crate) fn from_text(text: &str) -> Result<Self, String> {
        let split = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let micros = match unit.trim() {
            "us" => Some(1),
            "ms" => Some(1000),
            "s" => Some(1_000_000),
            "m" => Some(60_000_000),
            "h" => Some(3_600_000_000),
            _ => None,
        };
        let whole =
            number.parse::<u64>().ok().zip(micros).and_then(|(number, unit)| number.checked_mul(unit));
        let micros = whole.filter(|it| *it <= 30 * 24 * 3_600_000_000);
        micros.map(|micros| Self(Duration::from_micros(micros))).ok_or_else(|| {
            format!("{text:?} is no time: write a whole number and us, ms, s, m or h, as in \"10s\"")
        })
    }

    pub(crate) fn text(self) -> String {
        let micros = self.micros();
        match micros {
            0 => "0s".to_owned(),
            _ if micros.is_multiple_of(1_000_000) => format!("{}s", micros / 1_000_000),
            _ if micros.is_multiple_of(1000) => format!("{}ms", micros / 1000),
            _ => format!("{micros}us"),
        }
    }
}

/// Sizes of payloads: a number of octets, `16KiB`, or a scan `4..16KiB*2`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sizes(pub(crate) Vec<u64>);

/// The largest payload that is measured.
const SIZE_MAX: u64 = 1 << 30;

impl Sizes {
    fn from_text(text: &str) -> Result<Self, String> {
        let fail = || {
            format!(
                "{text:?} is no size: write octets (64), units (\"16KiB\", \"4MiB\"), or a scan \"4..16KiB*2\""
            )
        };
        let Some((first, rest)) = text.split_once("..") else {
            return one_size(text).map(|size| Self(vec![size])).ok_or_else(fail);
        };
        let (last, factor) = rest.split_once('*').unwrap_or((rest, "2"));
        let (first, last) = one_size(first).zip(one_size(last)).ok_or_else(fail)?;
        let factor = factor.trim().parse::<u64>().ok().filter(|it| *it >= 2).ok_or_else(fail)?;
        let sizes: Vec<u64> = std::iter::successors(Some(first), |size| size.checked_mul(factor))
            .take_while(|it| *it <= last)
            .collect();
        if sizes.is_empty() { Err(fail()) } else { Ok(Self(sizes)) }
    }
}

fn one_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = match unit.trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit).filter(|it| (4..=SIZE_MAX).contains(it))
}

impl Serialize for Sizes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0[..] {
            [size] => size.serialize(serializer),
            _ => self.0.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizesVisitor)
    }
}

struct SizesVisitor;

impl<'de> Visitor<'de> for SizesVisitor {
    type Value = Sizes;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a size in octets, \"16KiB\", or a scan \"4..16KiB*2\"")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Sizes, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Sizes, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Sizes, E> {
        Sizes::from_text(value).map_err(Error::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<Sizes, A::Error> {
        Vec::<u64>::deserialize(SeqAccessDeserializer::new(values)).map(Sizes)
    }
}

/// What streams beside pings: `none`, samples of a size as fast as they are acknowledged (`16MiB`), or so
/// many a second (`16MiB@30`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Background {
    /// Octets of payload; 0 for nothing.
    pub(crate) size: u64,
    /// Samples a second; 0 for no pacing.
    pub(crate) rate: u64,
}

as_text!(Background);

impl Background {
    fn from_text(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::default());
        }
        let (size, rate) = match text.split_once('@') {
            None => (one_size(text), Some(0)),
            Some((size, rate)) => (one_size(size), rate.parse::<u64>().ok().filter(|rate| *rate > 0)),
        };
        size.zip(rate).map(|(size, rate)| Self { size, rate }).ok_or_else(|| {
            format!(
                "{text:?} is nothing that can stream: write \"none\", a size (\"16MiB\"), or a size and samples a second \"16MiB@30\""
            )
        })
    }

    pub(crate) fn text(self) -> String {
        let size = match self.size {
            0 => return "none".to_owned(),
            size if size.is_multiple_of(1 << 20) => format!("{}MiB", size >> 20),
            size if size.is_multiple_of(1 << 10) => format!("{}KiB", size >> 10),
            size => size.to_string(),
        };
        if self.rate == 0 { size } else { format!("{size}@{}", self.rate) }
    }
}

/// When samples are written: `max`, `rate:1000`, `burst:100/10ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace(pub(crate) Pacing);

as_text!(Pace);

impl Pace {
    fn from_text(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u64>().ok().filter(|it| *it > 0);
        let pacing = match text.split_once(':') {
            None if text == "max" => Some(Pacing::Max),
            Some(("rate", rate)) => number(rate).map(|rate| Pacing::Rate { rate }),
            Some(("burst", burst)) => burst.split_once('/').and_then(|(count, period)| {
                let period_us = Time::from_text(period).ok()?.micros();
                (period_us > 0).then_some(())?;
                Some(Pacing::Burst { count: number(count)?, period_us })
            }),
            _ => None,
        };
        pacing.map(Self).ok_or_else(|| {
            format!(
                "{text:?} is no pacing: write \"max\", \"rate:1000\" (samples a second) or \"burst:100/10ms\""
            )
        })
    }

    pub(crate) fn text(self) -> String {
        match self.0 {
            Pacing::Rate { rate } => format!("rate:{rate}"),
            Pacing::Burst { count, period_us } => {
                format!("burst:{count}/{}", Time(Duration::from_micros(period_us)).text())
            }
            // A ramp has fields of its own in a campaign.
            Pacing::Max | Pacing::Ramp { .. } => "max".to_owned(),
        }
    }
}

/// How a reader reads: `listener`, `waitset`, `polling:10ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Read(pub(crate) ReadMethod);

as_text!(Read);

impl Read {
    fn from_text(text: &str) -> Result<Self, String> {
        let method = match text.split_once(':') {
            None if text == "listener" => Some(ReadMethod::Listener),
            None if text == "waitset" => Some(ReadMethod::Waitset),
            None if text == "polling" => Some(ReadMethod::Polling { period_us: 0 }),
            Some(("polling", period)) => {
                Time::from_text(period).ok().map(|period| ReadMethod::Polling { period_us: period.micros() })
            }
            _ => None,
        };
        method.map(Self).ok_or_else(|| {
            format!(
                "{text:?} is no way to read: write \"listener\", \"waitset\", \"polling\" or \"polling:10ms\""
            )
        })
    }

    fn text(self) -> String {
        match self.0 {
            ReadMethod::Listener => "listener".to_owned(),
            ReadMethod::Waitset => "waitset".to_owned(),
            ReadMethod::Polling { period_us: 0 } => "polling".to_owned(),
            ReadMethod::Polling { period_us } => {
                format!("polling:{}", Time(Duration::from_micros(period_us)).text())
            }
        }
    }
}

/// HISTORY: `keep_all` or `keep_last:16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct History {
    /// 0 for KEEP_ALL.
    pub(crate) depth: u32,
}

as_text!(History);

impl History {
    fn from_text(text: &str) -> Result<Self, String> {
        let depth = match text.split_once(':') {
            None if text == "keep_all" => Some(0),
            Some(("keep_last", depth)) => depth.parse().ok().filter(|it| *it > 0),
            _ => None,
        };
        depth
            .map(|depth| Self { depth })
            .ok_or_else(|| format!("{text:?} is no HISTORY: write \"keep_all\" or \"keep_last:16\""))
    }

    fn text(self) -> String {
        if self.depth == 0 { "keep_all".to_owned() } else { format!("keep_last:{}", self.depth) }
    }
}

/// Where the parties are: `host`, `private`, `pair`, `road:100`, `bridge:3`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NetworkMode {
    /// The network of this process, or of the agents.
    #[default]
    Host,
    /// A network namespace with loopback alone.
    Private,
    /// Two namespaces joined by veth.
    Pair,
    /// The same, where so many Mbit/s pass in each direction; what does not waits for up to a tenth of a
    /// second, then is dropped.
    Road(u32),
    /// So many namespaces on a bridge.
    Bridge(u32),
}

as_text!(NetworkMode);

/// Ports of a bridge: the second octet of addresses has room for more, a machine hardly.
const BRIDGE_MAX: u32 = 64;
/// Beyond that it is the machine that limits.
const ROAD_MBIT_MAX: u32 = 10_000;

impl NetworkMode {
    fn from_text(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "host" => Some(Self::Host),
            None if text == "private" => Some(Self::Private),
            None if text == "pair" => Some(Self::Pair),
            Some(("road", rate)) => rate.parse().ok().filter(|it| (1..=ROAD_MBIT_MAX).contains(it)).map(Self::Road),
            Some(("bridge", count)) => {
                count.parse().ok().filter(|it| (2..=BRIDGE_MAX).contains(it)).map(Self::Bridge)
            }
            _ => None,
        }
        .ok_or_else(|| {
            format!(
                "{text:?} is no network: write \"host\", \"private\", \"pair\", \"road:N\" with N from 1 to {ROAD_MBIT_MAX} Mbit/s, \
                 or \"bridge:N\" with N from 2 to {BRIDGE_MAX}"
            )
        })
    }

    pub(crate) fn text(self) -> String {
        match self {
            Self::Host => "host".to_owned(),
            Self::Private => "private".to_owned(),
            Self::Pair => "pair".to_owned(),
            Self::Road(rate) => format!("road:{rate}"),
            Self::Bridge(count) => format!("bridge:{count}"),
        }
    }
}

/// By multicast, by unicast, or as the product chooses: `true`, `false`, `"default"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Multicast(pub(crate) Option<bool>);

impl Serialize for Multicast {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(chosen) => serializer.serialize_bool(chosen),
            None => serializer.serialize_str("default"),
        }
    }
}

impl<'de> Deserialize<'de> for Multicast {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choice;
        impl Visitor<'_> for Choice {
            type Value = Multicast;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("true, false or \"default\"")
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Multicast, E> {
                Ok(Multicast(Some(value)))
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Multicast, E> {
                if value == "default" {
                    Ok(Multicast(None))
                } else {
                    Err(E::custom("true, false or \"default\""))
                }
            }
        }
        deserializer.deserialize_any(Choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_has_both_ends_where_the_factor_meets_them() {
        assert_eq!(Sizes::from_text("4..64*2").unwrap().0, [4, 8, 16, 32, 64]);
        assert_eq!(Sizes::from_text("64KiB..8MiB*8").unwrap().0, [65_536, 524_288, 4_194_304]);
        assert_eq!(Sizes::from_text("16KiB").unwrap().0, [16_384]);
        for wrong in ["", "3", "64..4*2", "4..64*1", "4..64*x", "4GB", "2GiB", "99999999999999999999"] {
            let error = Sizes::from_text(wrong).unwrap_err();
            assert!(error.contains("4..16KiB*2"), "{error}");
        }
    }

    #[test]
    fn what_is_printed_is_read_again() {
        for text in ["250us", "10ms", "90s", "0s"] {
            assert_eq!(Time::from_text(text).unwrap().text(), text);
        }
        for text in ["max", "rate:1000", "burst:100/10ms"] {
            assert_eq!(Pace::from_text(text).unwrap().text(), text);
        }
        for text in ["listener", "waitset", "polling", "polling:10ms"] {
            assert_eq!(Read::from_text(text).unwrap().text(), text);
        }
        for text in ["host", "private", "pair", "road:100", "bridge:3"] {
            assert_eq!(NetworkMode::from_text(text).unwrap().text(), text);
        }
        for text in ["none", "16MiB", "64KiB", "100", "16MiB@30"] {
            assert_eq!(Background::from_text(text).unwrap().text(), text);
        }
        for text in ["keep_all", "keep_last:3"] {
            assert_eq!(History::from_text(text).unwrap().text(), text);
        }
    }

    #[test]
    fn nonsense_is_refused_with_an_example() {
        assert!(Time::from_text("10").unwrap_err().contains("10s"));
        assert!(Time::from_text("99999999999h").is_err());
        assert!(Pace::from_text("rate:0").unwrap_err().contains("rate:1000"));
        assert!(Pace::from_text("burst:5/0s").is_err());
        assert!(NetworkMode::from_text("road:0").unwrap_err().contains("road:N"));
        assert!(NetworkMode::from_text("bridge:1").unwrap_err().contains("bridge:N"));
        assert!(History::from_text("keep_last:0").is_err());
        assert!(Background::from_text("16MiB@0").unwrap_err().contains("16MiB@30"));
    }
}
