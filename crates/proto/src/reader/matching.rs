//! Writers come, change and go.

use super::Reader;
use super::ownership::WriterId;
use super::proxy::{Answer, Proxy};
use crate::guid::{EntityId, Guid};
use crate::matched::MatchedWriter;
use crate::outbox::Outbox;
use crate::policy_id::PolicyId;
use crate::qos::Durability;
use crate::seq::SequenceNumber;
use crate::stats::DropReason;
use crate::status::StatusKind;
use crate::time::{Instant, Now};

impl Reader {
    /// A compatible writer was found, or a known one has other locators or QoS.
    pub fn match_writer(&mut self, now: Now, writer: &MatchedWriter, out: &mut Outbox) {
        if let Some(id) = self.by_guid.get(&writer.guid).copied() {
            if let Some(proxy) = self.proxy_mut(id) {
                proxy.locators.clone_from(&writer.locators);
                proxy.origin.set(&writer.sources);
            }
            self.wake_at(self.proxy(id).and_then(Proxy::next_timeout));
            self.cache.publications.set(id, writer.guid, writer.qos.ownership_strength, writer.qos.lifespan);
            return;
        }
        // A writer that still remembers an earlier match ignores counts up to the last one it saw:
        // time makes ours grow from match to match.
        let count = now.mono.as_count();
        self.admit_writer(now, writer, (count, count), out);
    }

    /// Begins anew with a matched writer: everything it has is asked for again.
    pub fn rematch_writer(&mut self, now: Now, writer: &MatchedWriter, out: &mut Outbox) {
        let known = self.by_guid.get(&writer.guid).and_then(|id| self.proxy(*id));
        let Some(answer) = known.map(|proxy| &proxy.answer) else { return };
        // The writer knows the counts so far: they go on.
        let counts = (answer.acknack_count, answer.nack_frag_count);
        self.unmatch_writer(now, writer.guid, out);
        self.admit_writer(now, writer, counts, out);
    }

    fn admit_writer(&mut self, now: Now, writer: &MatchedWriter, counts: (i32, i32), out: &mut Outbox) {
        self.part_with_namesake(now, writer.guid, out);
        let prefix = writer.guid.prefix;
        let of_participant = || {
            let its = self.by_guid.range(prefix.entity(EntityId([0; 4]))..);
            its.take_while(|(guid, _)| guid.prefix == prefix).count()
        };
        if self.by_guid.len() + self.lingering >= self.limits.writers_max
            || of_participant() >= self.limits.writers_of_participant_max
        {
            self.drops.count(DropReason::DiscoveryLimit);
            return;
        }
        // What an ATOMIC reader gets comes from its group: nothing is asked of the writer.
        let reliable = self.qos.is_reliable() && writer.qos.is_reliable() && !self.qos.is_atomic();
        let historical =
            reliable && self.qos.durability.min(writer.qos.durability) >= Durability::TransientLocal;
        let mut proxy = Proxy::new(writer, reliable, historical);
        proxy.answer = Answer::new(counts, self.guid.entity.is_builtin());
        proxy.lease.renew(now.mono);
        let id = self.place(proxy);
        self.cache.publications.set(id, writer.guid, writer.qos.ownership_strength, writer.qos.lifespan);
        self.statuses.subscription_matched.matched(writer.guid);
        self.changed(StatusKind::SubscriptionMatched, out);
        self.liveliness_changed(writer.guid, 1, 0, out);
        if reliable && writer.begins {
            self.await_beginning(now.mono, id);
        } else if reliable {
            self.probe(now.mono, id, out);
        }
        self.wake_at(self.proxy(id).and_then(Proxy::next_timeout));
    }

    /// The participant of a writer was heard: a built-in reader that asked it ever less, while it was silent,
    /// asks at once.
    pub fn writer_participant_heard(&mut self, now: Instant, writer: Guid) {
        // Most often nothing is asked of anybody.
        if self.proxies_due.is_none() {
            return;
        }
        let id = self.by_guid.get(&writer).copied();
        if id.and_then(|id| self.proxy_mut(id)).is_some_and(|proxy| proxy.answer.writer_heard(now)) {
            self.wake_at(Some(now));
        }
    }

    /// So many samples will not come. A writer that is matched may have lost this reader and found it again:
    /// then the application is told by a match more.
    pub(super) fn given_up(&mut self, samples: u64, found_again: Option<Guid>, out: &mut Outbox) {
        if let Some(writer) = found_again {
            self.statuses.subscription_matched.unmatched(writer);
            self.statuses.subscription_matched.matched(writer);
            self.changed(StatusKind::SubscriptionMatched, out);
        }
        self.samples_lost(samples, out);
    }

    fn place(&mut self, proxy: Proxy) -> WriterId {
        let guid = proxy.guid;
        if let Some(publisher) = proxy.publisher {
            *self.publishers.entry(publisher).or_insert(0) += 1;
        }
        let id = self.free_proxies.pop_first().unwrap_or_else(|| {
            // Most readers hear one writer: no room is made for four.
            if self.proxies.is_empty() {
                self.proxies.reserve_exact(1);
            }
            self.proxies.push(None);
            (self.proxies.len() - 1) as WriterId
        });
        if let Some(slot) = self.proxies.get_mut(id as usize) {
            *slot = Some(proxy);
        }
        self.by_guid.insert(guid, id);
        id
    }

    /// A writer left, or matches no more: instances only it wrote are without writers, once what waits of it
    /// is shown.
    pub fn unmatch_writer(&mut self, now: Now, writer: Guid, out: &mut Outbox) {
        let Some(id) = self.by_guid.remove(&writer) else { return };
        let Self { proxies, presenter, cache, assembly, .. } = self;
        let Some(proxy) = proxies.get_mut(id as usize).and_then(Option::as_mut) else { return };
        let assembled_bytes = proxy.fragments.bytes();
        cache.freed.note(proxy.fragments.len() + proxy.order.waiting());
        self.blocked -= usize::from(proxy.blocked);
        presenter.forget(cache, now, id, &mut proxy.sets);
        let was_alive = proxy.lease.alive;
        proxy.depart();
        assembly.settle(id, proxy, assembled_bytes);
        let is_done = proxy.is_done();
        self.lingering += 1;
        if self.recent_writer == id {
            self.recent_writer = WriterId::MAX;
        }
        self.notify_presented(out);
        if is_done {
            self.part_with(now, id, out);
        }
        self.cache.undecodable.gone(writer);
        self.statuses.subscription_matched.unmatched(writer);
        self.changed(StatusKind::SubscriptionMatched, out);
        let (alive, not_alive) = if was_alive { (-1, 0) } else { (0, -1) };
        self.liveliness_changed(writer, alive, not_alive, out);
        self.notify_freed(out);
    }

    /// Of the writers that are gone, those of which nothing waits any more leave for good.
    pub(super) fn part_with_shown(&mut self, now: Now, out: &mut Outbox) {
        for index in 0..self.proxies.len() {
            if self.proxies.get(index).and_then(Option::as_ref).is_some_and(Proxy::is_done) {
                self.part_with(now, index as WriterId, out);
            }
        }
    }

    /// A writer comes back of which something still waits from before: that is shown now, before what comes
    /// anew.
    fn part_with_namesake(&mut self, now: Now, writer: Guid, out: &mut Outbox) {
        if self.lingering == 0 {
            return;
        }
        let Self { proxies, presenter, cache, .. } = self;
        let namesake = |proxy: &Proxy| proxy.guid == writer && proxy.departed;
        let Some(index) = proxies.iter().position(|it| it.as_ref().is_some_and(namesake)) else { return };
        if let Some(proxy) = proxies.get_mut(index).and_then(Option::as_mut) {
            presenter.show_all(cache, now, index as WriterId, &mut proxy.sets);
        }
        self.part_with(now, index as WriterId, out);
    }

    /// Instances that only this writer wrote are without writers.
    fn part_with(&mut self, now: Now, id: WriterId, out: &mut Outbox) {
        let Some(proxy) = self.proxies.get_mut(id as usize).and_then(Option::take) else { return };
        self.lingering -= 1;
        self.forget_publisher_if_unmatched(proxy.publisher);
        self.notify_presented(out);
        // Meanwhile another one may write what it wrote.
        self.cache.publications.weaken(id);
        self.departing.push_back(id);
        self.depart(now, id, out);
    }

    /// An unmatched writer leaves its instances, as many as one call may take. Its number is free when none
    /// is left. Returns whether it is.
    fn depart(&mut self, now: Now, id: WriterId, out: &mut Outbox) -> bool {
        if self.cache.writer_lost(now, id) {
            self.data_available(out);
        }
        if self.cache.has_instances(id) {
            self.wake_at(Some(now.mono));
            return false;
        }
        self.cache.publications.remove(id);
        self.departing.retain(|departing| *departing != id);
        self.free_proxies.insert(id);
        true
    }

    /// Goes on with the first of the writers that have not left all their instances.
    pub(super) fn finish_departures(&mut self, now: Now, out: &mut Outbox) {
        if let Some(id) = self.departing.front().copied()
            && self.depart(now, id, out)
            && !self.departing.is_empty()
        {
            self.wake_at(Some(now.mono));
        }
    }

    /// A writer offers less than this reader requests.
    pub fn incompatible_writer(&mut self, policies: &[PolicyId], out: &mut Outbox) {
        let status = &mut self.statuses.incompatible_qos;
        status.count.count();
        for policy in policies {
            status.last_policy_id = Some(*policy);
            match status.policies.iter_mut().find(|(id, _)| id == policy) {
                Some((_, count)) => *count = count.saturating_add(1),
                None => status.policies.push((*policy, 1)),
            }
        }
        self.changed(StatusKind::RequestedIncompatibleQos, out);
    }

    /// Whether this writer is matched.
    #[must_use]
    pub fn is_matched(&self, writer: Guid) -> bool {
        self.by_guid.contains_key(&writer)
    }

    /// Whether everything that a matched writer had when it was first heard is here or known to be gone.
    #[must_use]
    pub fn has_history_of(&self, writer: Guid) -> bool {
        let proxy = self.by_guid.get(&writer).and_then(|id| self.proxy(*id));
        proxy.is_some_and(Proxy::is_history_complete)
    }

    /// The last change that a matched writer made after it was first heard and that this reader can no
    /// longer get, if there is one.
    #[must_use]
    pub fn last_missed(&self, writer: Guid) -> Option<SequenceNumber> {
        let proxy = self.by_guid.get(&writer).and_then(|id| self.proxy(*id))?;
        let skipped = proxy.order.skipped();
        (proxy.heard.count.is_some() && skipped > proxy.heard.history_last).then_some(skipped)
    }

    /// The matched writers.
    pub fn matched_writers(&self) -> impl Iterator<Item = Guid> + '_ {
        self.by_guid.keys().copied()
    }
}
