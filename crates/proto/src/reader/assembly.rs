//! Incomplete samples of all writers share one budget of octets. Which of them gives way is found without a
//! look at each.

use std::collections::BTreeSet;

use super::Reader;
use super::fragment::Fragments;
use super::ownership::WriterId;
use super::proxy::{Proxy, Rank};
use crate::seq::SequenceNumber;
use crate::stats::DropReason;
use crate::time::Instant;
use crate::tuning::reader::FRAGMENTS_STALLED_CHECK;

/// What the incomplete samples of a reader amount to.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    pub(super) bytes: usize,
    /// Writers with incomplete samples, by the rank of the one that gives way first. It may have fallen
    /// since; it only rises when nothing comes any more.
    order: BTreeSet<(Rank, WriterId)>,
    stalled_look_at: Option<Instant>,
    /// How many places in the order were looked at.
    #[cfg(test)]
    pub(super) looks: usize,
}

impl Assembly {
    /// Brings bytes and order up to date after the incomplete samples of a writer took `before` octets.
    pub(super) fn settle(&mut self, id: WriterId, proxy: &mut Proxy, before: usize) {
        self.bytes = self.bytes + proxy.fragments.bytes() - before;
        self.place(id, proxy, None);
    }

    /// Puts a writer in its place, as of `now` or as if its samples went on.
    fn place(&mut self, id: WriterId, proxy: &mut Proxy, now: Option<Instant>) {
        let rank = proxy.first_to_go(now).map(|(rank, _)| rank);
        let before = std::mem::replace(&mut proxy.rank_placed, rank);
        if before == rank {
            return;
        }
        if let Some(before) = before {
            self.order.remove(&(before, id));
        }
        if let Some(rank) = rank {
            self.order.insert((rank, id));
        }
    }

    /// Whether there are samples that are next, but of which nothing comes any more: their ranks rise.
    fn find_stalled(&mut self, proxies: &mut [Option<Proxy>], now: Instant) -> bool {
        if self.stalled_look_at.is_some_and(|at| now < at) {
            return false;
        }
        self.stalled_look_at = now.after(FRAGMENTS_STALLED_CHECK);
        let ids: Vec<WriterId> = self.order.iter().map(|(_, id)| *id).collect();
        let mut found = false;
        for id in ids {
            if let Some(proxy) = proxies.get_mut(id as usize).and_then(Option::as_mut) {
                let before = proxy.rank_placed;
                self.place(id, proxy, Some(now));
                found |= proxy.rank_placed > before;
            }
        }
        found
    }
}

impl Reader {
    /// When a writer has too many incomplete samples, one more displaces what matters least: the oldest
    /// of a best-effort writer, whose rest will never come; the newest of a reliable one.
    pub(super) fn make_room_for_sample(&mut self, id: WriterId, number: SequenceNumber) {
        self.with_fragments(id, |fragments, reliable| {
            let victim = if reliable { fragments.last() } else { fragments.first() };
            if fragments.is_full()
                && !fragments.contains(number)
                && let Some(victim) = victim.filter(|victim| !reliable || *victim > number)
            {
                fragments.forget(victim);
            }
        });
    }

    /// Makes room for `growth` octets more of the incomplete sample `number`, at the cost of those that
    /// matter less. Each sample has its rank, so that two that do not fit together never displace each
    /// other by turns: the first to come is completed first.
    pub(super) fn afford(
        &mut self,
        now: Instant,
        id: WriterId,
        number: SequenceNumber,
        growth: usize,
    ) -> Result<(), DropReason> {
        while self.assembly.bytes.saturating_add(growth) > self.limits.reassembly_bytes_max {
            let proxy = self.proxy(id).ok_or(DropReason::NotMatched)?;
            let own = proxy.rank(Some(now), proxy.fragments.age(number).unwrap_or((number, now, now)));
            let victim = self.first_to_go(now, own.is_next());
            let (_, other, of) = victim.filter(|it| *it > (own, id, number)).ok_or(DropReason::BufferFull)?;
            self.with_fragments(other, |fragments, _| fragments.forget(of));
        }
        Ok(())
    }

    /// The incomplete sample with the greatest rank. Those that are next and do not go on are only asked for
    /// `among_next`.
    fn first_to_go(&mut self, now: Instant, among_next: bool) -> Option<(Rank, WriterId, SequenceNumber)> {
        let Self { proxies, assembly, .. } = self;
        loop {
            let (placed, id) = *assembly.order.last()?;
            #[cfg(test)]
            {
                assembly.looks += 1;
            }
            let proxy = proxies.get_mut(id as usize)?.as_mut()?;
            let (rank, number) = proxy.first_to_go(Some(now))?;
            if rank != placed {
                assembly.place(id, proxy, Some(now));
            } else if !(among_next && rank.is_next() && assembly.find_stalled(proxies, now)) {
                return Some((rank, id, number));
            }
        }
    }

    /// Changes the incomplete samples of a writer and accounts for it.
    pub(super) fn with_fragments<R>(
        &mut self,
        id: WriterId,
        change: impl FnOnce(&mut Fragments, bool) -> R,
    ) -> Option<R> {
        let Self { proxies, assembly, .. } = self;
        let proxy = proxies.get_mut(id as usize)?.as_mut()?;
        let before = proxy.fragments.bytes();
        let result = change(&mut proxy.fragments, proxy.reliable);
        if proxy.fragments.bytes() != before {
            assembly.settle(id, proxy, before);
        }
        Some(result)
    }
}
