//! Time as integers: instants, wall-clock times and durations. Nothing here reads a clock.

use std::fmt;
use std::time::SystemTime;

use crate::malformed::Malformed;

const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// The first time whose seconds do not fit 32 bits, in the year 2106.
const WIRE_END_NANOS: u64 = (1 << 32) * NANOS_PER_SECOND as u64;

/// A point of monotonic time, in nanoseconds since an arbitrary origin of the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

/// A wall-clock time, in nanoseconds since 1970-01-01 UTC. Source timestamps are of this kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Time(pub i64);

/// A signed span of time in nanoseconds; [`Duration::INFINITE`] compares greater than any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub i64);

/// Both clocks, read once by the driver for each call into the state machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Monotonic time: timers, leases, deadlines.
    pub mono: Instant,
    /// Wall-clock time: source and reception timestamps.
    pub wall: Time,
}

impl Instant {
    /// This instant moved later by `duration`, or `None` when the duration is infinite.
    #[must_use]
    pub const fn after(self, duration: Duration) -> Option<Self> {
        if duration.is_infinite() {
            return None;
        }
        let nanos = if duration.0 > 0 { duration.0 as u64 } else { 0 };
        Some(Self(self.0.saturating_add(nanos)))
    }

    /// Time passed since `earlier`; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        let nanos = self.0.saturating_sub(earlier.0);
        Duration(if nanos > i64::MAX as u64 { i64::MAX } else { nanos as i64 })
    }
}

impl Instant {
    /// The first of several, compared as numbers: that takes a tenth of what comparing optional instants
    /// takes.
    #[inline]
    pub(crate) fn earliest<const COUNT: usize>(dues: [Option<Self>; COUNT]) -> Option<Self> {
        let first = dues.iter().fold(u64::MAX, |first, due| first.min(due.map_or(u64::MAX, |due| due.0)));
        (first != u64::MAX).then_some(Self(first))
    }

    /// A `Count_t` that grows by about a thousand each second, wrapping: where counts begin that a peer
    /// must not take for ones it has seen before (RTPS 2.5 §8.4.15.7).
    #[must_use]
    pub const fn as_count(self) -> i32 {
        (self.0 >> 20) as i32
    }
}

impl Time {
    /// `TIME_INVALID` of RTPS 2.5 §9.3.2.
    pub const INVALID: Self = Self(i64::MIN);

    /// The first time that RTPS can tell, in 1970.
    pub const FIRST_ON_WIRE: Self = Self(0);
    /// The last time that RTPS can tell, in 2106.
    pub const LAST_ON_WIRE: Self = Self(WIRE_END_NANOS as i64 - 1);

    /// From seconds and fractions of 2⁻³² s, as `Time_t` travels (RTPS 2.5 §9.3.2.1).
    #[must_use]
    pub const fn from_wire(seconds: u32, fraction: u32) -> Self {
        Self(seconds as i64 * NANOS_PER_SECOND + fraction_to_nanos(fraction))
    }

    /// Whether RTPS can tell it: its seconds since 1970 are unsigned and have 32 bits (RTPS 2.5 §9.3.2.1).
    #[must_use]
    #[inline]
    pub const fn is_on_wire(self) -> bool {
        // What is negative becomes larger than any that fits.
        (self.0 as u64) < WIRE_END_NANOS
    }

    /// Seconds and fractions of 2⁻³² s; round-trips every nanosecond. `TIME_INVALID` of what
    /// [`Self::is_on_wire`] excludes.
    #[must_use]
    #[inline]
    pub const fn to_wire(self) -> (u32, u32) {
        if !self.is_on_wire() {
            return (u32::MAX, u32::MAX);
        }
        // As of unsigned numbers, both take half of the work.
        let (nanos, second) = (self.0 as u64, NANOS_PER_SECOND as u64);
        ((nanos / second) as u32, nanos_to_fraction((nanos % second) as i64))
    }

    /// This time moved later by `duration`, saturating.
    #[must_use]
    pub const fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.0))
    }

    /// The span from `earlier` to this time; negative when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// `DURATION_INFINITE`.
    pub const INFINITE: Self = Self(i64::MAX);

    /// A duration of whole seconds.
    #[must_use]
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(NANOS_PER_SECOND))
    }

    /// A duration of whole milliseconds.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// A duration of whole microseconds.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// A duration of whole nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Whether RTPS can tell it: infinite, or from zero to less than 2³¹ − 1 seconds, which stand for
    /// infinite (RTPS 2.5 §9.3.2.3).
    #[must_use]
    pub const fn is_on_wire(self) -> bool {
        self.is_infinite() || self.0 >= 0 && self.0 < i32::MAX as i64 * NANOS_PER_SECOND
    }

    /// Whether this is [`Duration::INFINITE`].
    #[must_use]
    pub const fn is_infinite(self) -> bool {
        self.0 == i64::MAX
    }

    /// From `Duration_t` on the wire: {0x7fffffff, 0xffffffff} is infinite (RTPS 2.5 §9.3.2.3).
    ///
    /// # Errors
    /// [`Malformed::InvalidDuration`] when negative: no policy allows that.
    pub const fn from_wire(seconds: i32, fraction: u32) -> Result<Self, Malformed> {
        if seconds == i32::MAX {
            // Vendors write 0xffffffff, DDS's 0x7fffffff nanoseconds, or leave a remainder.
            return Ok(Self::INFINITE);
        }
        if seconds < 0 {
            return Err(Malformed::InvalidDuration);
        }
        Ok(Self(seconds as i64 * NANOS_PER_SECOND + fraction_to_nanos(fraction)))
    }

    /// `Duration_t` as it travels; values beyond its range become infinite.
    #[must_use]
    pub const fn to_wire(self) -> (i32, u32) {
        let seconds = self.0.div_euclid(NANOS_PER_SECOND);
        if seconds >= i32::MAX as i64 {
            return (i32::MAX, u32::MAX);
        }
        (seconds as i32, nanos_to_fraction(self.0.rem_euclid(NANOS_PER_SECOND)))
    }
}

impl From<std::time::Duration> for Duration {
    fn from(value: std::time::Duration) -> Self {
        Self(i64::try_from(value.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// Infinite becomes 292 years, what is negative zero.
impl From<Duration> for std::time::Duration {
    fn from(value: Duration) -> Self {
        Self::from_nanos(u64::try_from(value.0).unwrap_or(0))
    }
}

/// Nanoseconds; nothing (`null`) for [`Duration::INFINITE`].
#[cfg(feature = "serde")]
impl serde::Serialize for Duration {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (!self.is_infinite()).then_some(self.0).serialize(serializer)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Duration {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<i64>::deserialize(deserializer).map(|nanos| nanos.map_or(Self::INFINITE, Self))
    }
}

/// Those beyond what 64 bits of nanoseconds tell (from 1677 to 2262) become the first or last.
impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Self {
        let nanos = |span: std::time::Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => Self(nanos(since)),
            Err(before) => Self(-nanos(before.duration())),
        }
    }
}

impl From<Time> for SystemTime {
    fn from(time: Time) -> Self {
        let span = std::time::Duration::from_nanos(time.0.unsigned_abs());
        if time.0 < 0 { Self::UNIX_EPOCH - span } else { Self::UNIX_EPOCH + span }
    }
}

/// As RFC 3339 writes it, with as many digits as it needs: `2026-11-28T21:02:15.25Z`; `invalid` of
/// [`Time::INVALID`].
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::INVALID {
            return f.write_str("invalid");
        }
        let (seconds, nanos) = (self.0.div_euclid(NANOS_PER_SECOND), self.0.rem_euclid(NANOS_PER_SECOND));
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = date(days);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if nanos != 0 {
            write!(f, ".{}", format!("{nanos:09}").trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

/// Year, month and day of the Gregorian calendar, so many days after 1970-01-01. Years are counted from
/// March, so that the day that some of them have more is their last.
const fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    let since_march_of_year_0 = days + 719_468;
    let cycle = since_march_of_year_0.div_euclid(DAYS_OF_400_YEARS);
    let day = since_march_of_year_0.rem_euclid(DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / (DAYS_OF_400_YEARS - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Five months from March on, or from August on, have 153 days.
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (month, turn) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (cycle * 400 + year + turn, month, day_of_month)
}

/// For people: `infinite`, `1.5 s`, `100 ms`, `20 µs`, `7 ns`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0;
        if self.is_infinite() {
            return f.write_str("infinite");
        }
        let (unit, name) = match nanos.unsigned_abs() {
            0 | 1_000_000_000.. => (NANOS_PER_SECOND, "s"),
            1_000_000.. => (1_000_000, "ms"),
            1_000.. => (1_000, "µs"),
            _ => (1, "ns"),
        };
        let (whole, part) =
            (nanos.unsigned_abs() / unit.unsigned_abs(), nanos.unsigned_abs() % unit.unsigned_abs());
        let sign = if nanos < 0 { "-" } else { "" };
        if part == 0 {
            return write!(f, "{sign}{whole} {name}");
        }
        let digits = unit.ilog10() as usize;
        let part = format!("{part:0digits$}");
        write!(f, "{sign}{whole}.{} {name}", part.trim_end_matches('0'))
    }
}

/// Nearest nanosecond; never a whole second, so that the seconds field stays as sent.
const fn fraction_to_nanos(fraction: u32) -> i64 {
    let nanos = (fraction as u64 * NANOS_PER_SECOND as u64 + (1 << 31)) >> 32;
    if nanos >= NANOS_PER_SECOND as u64 { NANOS_PER_SECOND - 1 } else { nanos as i64 }
}

/// Nearest fraction of 2⁻³² s.
const fn nanos_to_fraction(nanos: i64) -> u32 {
    (((nanos as u64) << 32).wrapping_add(NANOS_PER_SECOND as u64 / 2) / NANOS_PER_SECOND as u64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fact_37_every_nanosecond_survives_the_wire() {
        for nanos in [0, 1, 2, 3, 499_999_999, 500_000_000, 999_999_998, 999_999_999] {
            let time = Time(1_700_000_000 * NANOS_PER_SECOND + nanos);
            let (seconds, fraction) = time.to_wire();
            assert_eq!(Time::from_wire(seconds, fraction), time);
            let duration = Duration(5 * NANOS_PER_SECOND + nanos);
            let (seconds, fraction) = duration.to_wire();
            assert_eq!(Duration::from_wire(seconds, fraction), Ok(duration));
        }
    }

    #[test]
    fn times_that_have_no_place_on_the_wire_are_told_as_invalid() {
        let last = Time((i64::from(u32::MAX) + 1) * NANOS_PER_SECOND - 1);
        assert!(Time(0).is_on_wire() && last.is_on_wire());
        assert_eq!((Time::FIRST_ON_WIRE, Time::LAST_ON_WIRE), (Time(0), last));
        assert_eq!(Time(0).to_wire(), (0, 0));
        let (seconds, fraction) = last.to_wire();
        assert_eq!((seconds, Time::from_wire(seconds, fraction)), (u32::MAX, last));
        for time in
            [Time(-1), Time(last.0 + 1), Time(i64::MAX), Time(-1_700_000_000_000_000_000), Time::INVALID]
        {
            assert!(!time.is_on_wire());
            assert_eq!(time.to_wire(), (u32::MAX, u32::MAX));
        }
    }

    #[test]
    fn durations_that_the_wire_would_make_infinite_are_known() {
        let longest = Duration(i64::from(i32::MAX) * NANOS_PER_SECOND - 1);
        for duration in [Duration::ZERO, longest, Duration::INFINITE] {
            assert!(duration.is_on_wire());
            let (seconds, fraction) = duration.to_wire();
            assert_eq!(Duration::from_wire(seconds, fraction), Ok(duration));
        }
        for duration in [Duration(-1), Duration(longest.0 + 1), Duration(i64::MAX - 1), Duration(i64::MIN)] {
            assert!(!duration.is_on_wire());
        }
    }

    #[test]
    fn durations_become_those_of_std_and_back() {
        for duration in [Duration::ZERO, Duration(1), Duration::from_secs(3), Duration::INFINITE] {
            assert_eq!(Duration::from(std::time::Duration::from(duration)), duration);
        }
        assert_eq!(std::time::Duration::from(Duration(-1)), std::time::Duration::ZERO);
        assert_eq!(Duration::from(std::time::Duration::MAX), Duration::INFINITE);
    }

    #[test]
    fn times_become_those_of_std_and_back() {
        for time in [Time(0), Time(1_700_000_000_123_456_789), Time(-1), Time(-86_400_000_000_001)] {
            assert_eq!(Time::from(SystemTime::from(time)), time);
        }
        assert_eq!(SystemTime::from(Time(0)), SystemTime::UNIX_EPOCH);
    }

    #[test]
    fn times_read_as_rfc_3339_writes_them() {
        let cases = [
            (Time(0), "1970-01-01T00:00:00Z"),
            (Time(1_700_000_000_250_000_000), "2023-11-14T22:13:20.25Z"),
            (Time(951_782_400_000_000_000), "2000-02-29T00:00:00Z"),
            (Time(1_709_251_199_999_999_999), "2024-02-29T23:59:59.999999999Z"),
            (Time(4_107_542_400_000_000_000), "2100-03-01T00:00:00Z"),
            (Time(-1), "1969-12-31T23:59:59.999999999Z"),
            (Time(i64::MAX), "2262-04-11T23:47:16.854775807Z"),
            (Time(-i64::MAX), "1677-09-21T00:12:43.145224193Z"),
            (Time::INVALID, "invalid"),
        ];
        for (time, words) in cases {
            assert_eq!(time.to_string(), words);
        }
        let mut first = date(0);
        for days in 1..=200_000 {
            let next = date(days);
            let (year, month, day) = first;
            let follows = [(year, month, day + 1), (year, month + 1, 1), (year + 1, 1, 1)];
            assert!(follows.contains(&next), "{next:?} after {first:?}");
            first = next;
        }
        assert_eq!(first, (2517, 8, 1));
    }

    #[test]
    fn durations_read_as_people_write_them() {
        let cases = [
            (Duration::ZERO, "0 s"),
            (Duration::INFINITE, "infinite"),
            (Duration::from_millis(1500), "1.5 s"),
            (Duration::from_millis(100), "100 ms"),
            (Duration(1_000_050_000), "1.00005 s"),
            (Duration(20_500), "20.5 µs"),
            (Duration(7), "7 ns"),
            (Duration::from_secs(-3), "-3 s"),
            (Duration(i64::MIN), "-9223372036.854775808 s"),
        ];
        for (duration, words) in cases {
            assert_eq!(duration.to_string(), words);
        }
    }

    #[test]
    fn fact_37_infinite_is_recognised_in_both_dialects() {
        assert_eq!(Duration::from_wire(i32::MAX, u32::MAX), Ok(Duration::INFINITE));
        assert_eq!(Duration::from_wire(i32::MAX, 0x7fff_ffff), Ok(Duration::INFINITE));
        assert_eq!(Duration::INFINITE.to_wire(), (i32::MAX, u32::MAX));
        assert_eq!(Duration::from_wire(-1, 0), Err(Malformed::InvalidDuration));
    }
}
