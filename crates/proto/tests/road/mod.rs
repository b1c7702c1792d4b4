//! The road between a writer and its readers: it loses, repeats and reorders. And what travels on it:
//! numbered samples of one instance, and filters that ask for some of the numbers.

use std::collections::BTreeMap;

use plainsong_proto::filter::{ContentFilter, PayloadFilter, SignedFilter};
use plainsong_proto::instance::{InstanceHandle, Key};
use plainsong_proto::malformed::Malformed;
use plainsong_proto::time::Instant;

/// Datagrams on their way to places `T`.
pub(crate) struct Road<T> {
    /// When they arrive and a tie-breaker; where, what.
    waiting: BTreeMap<(Instant, u64), (T, Vec<u8>)>,
    loss_percent: u64,
    random: u64,
    /// How many were sent; one that is repeated counts twice.
    pub(crate) sent: u64,
}

const DELAY_NANOS: u64 = 50_000;
const JITTER_NANOS_MAX: u64 = 300_000;

impl<T: Copy> Road<T> {
    pub(crate) const fn new(loss_percent: u64, seed: u64) -> Self {
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self { waiting: BTreeMap::new(), loss_percent, random, sent: 0 }
    }

    pub(crate) const fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 16
    }

    /// Sends a datagram.
    pub(crate) fn carry(&mut self, now: Instant, to: T, datagram: &[u8]) {
        let copies = 1 + u64::from(self.loss_percent > 0 && self.draw().is_multiple_of(20));
        for _ in 0..copies {
            self.sent += 1;
            if self.draw() % 100 >= self.loss_percent {
                let jitter = if self.loss_percent == 0 { 0 } else { self.draw() % JITTER_NANOS_MAX };
                let arrival = Instant(now.0 + DELAY_NANOS + jitter);
                self.waiting.insert((arrival, self.sent), (to, datagram.to_vec()));
            }
        }
    }

    /// When the next datagram arrives.
    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        self.waiting.keys().next().map(|(at, _)| *at)
    }

    /// The next datagram that has arrived, and where.
    pub(crate) fn arrived(&mut self, now: Instant) -> Option<(T, Vec<u8>)> {
        let first = self.waiting.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(first.remove())
    }
}

#[allow(dead_code, reason = "some tests have instances of their own")]
pub(crate) fn one_instance(_payload: &[u8], _key_only: bool) -> Result<Key, Malformed> {
    Ok(InstanceHandle([1; 16]).into())
}

/// The expressions here are numbers: what the number of the sample is divisible by.
pub(crate) fn compile(filter: &ContentFilter) -> Option<PayloadFilter> {
    let divisor: u32 = filter.expression.parse().ok()?;
    Some(PayloadFilter::new(move |payload| {
        let number = payload.get(4..8).and_then(|octets| octets.try_into().ok()).map(u32::from_le_bytes);
        number.is_some_and(|number| number.is_multiple_of(divisor))
    }))
}

/// What a reader announces that wants every so manieth sample.
pub(crate) fn announced(divisor: u32) -> ContentFilter {
    ContentFilter {
        class_name: ContentFilter::SQL.to_owned(),
        expression: divisor.to_string(),
        ..ContentFilter::default()
    }
}

/// What it obeys.
pub(crate) fn obeyed(announced: &ContentFilter) -> SignedFilter {
    let filter = compile(announced).expect("a number");
    SignedFilter { filter, signature: announced.signature() }
}
