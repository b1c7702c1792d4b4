//! What all samples of a reader amount to, and where those are that have an order or an end.

use std::collections::BTreeMap;

use super::super::ReaderLimits;
use super::super::destination_order::Place;
use super::super::instances::{Departure, InstanceId, Sample};
use super::super::samples::SlotId;
use super::Policy;
use crate::time::Instant;

/// Where a sample is.
pub(in crate::reader) type Whereabouts = (InstanceId, SlotId);

#[derive(Debug, Default)]
pub(in crate::reader) struct Ledger {
    pub(super) valid_samples: usize,
    /// Octets of samples, and of those held back.
    pub(super) bytes: usize,
    /// Ordered access of TOPIC or GROUP scope: every sample, in the order to return.
    pub(in crate::reader) order: BTreeMap<Place, Whereabouts>,
    /// Samples with a LIFESPAN.
    pub(super) expiry: BTreeMap<(Instant, u64), Whereabouts>,
}

impl Ledger {
    /// Whether there is more than the limits allow.
    #[inline]
    pub(super) const fn is_over(&self, policy: &Policy, limits: &ReaderLimits) -> bool {
        self.valid_samples > policy.samples_max || self.bytes > limits.cache_bytes_max
    }

    /// Accounts for a sample that enters the cache.
    #[inline(always)]
    pub(super) fn entered(&mut self, sample: &Sample, at: Whereabouts, policy: &Policy) {
        if sample.valid {
            self.valid_samples += 1;
            self.bytes += sample.payload.len();
        }
        if let Some(expires) = sample.expires {
            self.expiry.insert((expires, sample.id), at);
        }
        if policy.interleaved {
            self.order.insert(policy.order.place(sample), at);
        }
    }

    /// Accounts for a sample that left the cache.
    #[inline(always)]
    pub(in crate::reader) fn left(&mut self, sample: Departure, policy: &Policy) {
        if sample.valid {
            self.valid_samples -= 1;
            self.bytes -= sample.bytes;
        }
        if let Some(expires) = sample.expires {
            self.expiry.remove(&(expires, sample.id));
        }
        if policy.interleaved {
            self.order.remove(&policy.order.place_of(sample.source_order, sample.id));
        }
    }
}
