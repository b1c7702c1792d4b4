//! What was dropped on the way in: counters of all threads, touched only where something is.

use std::sync::atomic::{AtomicU64, Ordering};

use plainsong_proto::stats::{CountDrops, DropCounters, DropReason};

use crate::base::trace;

/// How often each reason occurred, in its order.
#[derive(Debug)]
pub(crate) struct Drops([AtomicU64; DropReason::ALL.len()]);

impl Default for Drops {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; DropReason::ALL.len()])
    }
}

impl Drops {
    #[cold]
    pub(crate) fn count(&self, reason: DropReason) {
        trace::dropped(reason);
        if let Some(counter) = self.0.get(reason as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The counts now.
    pub(crate) fn counters(&self) -> DropCounters {
        let mut counters = DropCounters::default();
        for (reason, count) in DropReason::ALL.into_iter().zip(&self.0) {
            counters.count_many(reason, count.load(Ordering::Relaxed));
        }
        counters
    }
}

impl CountDrops for &Drops {
    fn dropped(&mut self, reason: DropReason) {
        self.count(reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_by_itself() {
        let drops = Drops::default();
        DropReason::ALL.into_iter().for_each(|reason| drops.count(reason));
        (&drops).dropped(DropReason::Duplicate);
        let counters = drops.counters();
        assert!(
            DropReason::ALL
                .into_iter()
                .all(|it| counters.get(it) == 1 + u64::from(it == DropReason::Duplicate))
        );
    }
}
