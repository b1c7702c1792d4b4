//! Sending: new changes to everyone at once, what waits for its turn, and heartbeats.

use crate::guid::{EntityId, Guid};
use crate::outbox::Outbox;
use crate::seq::{FragmentNumber, SequenceNumber};
use crate::stats::DropReason;
use crate::time::Now;
use crate::wire::param::{InlineQos, StatusInfo, encode_inline_qos};
use crate::wire::{Heartbeat, HeartbeatFrag};

use super::coherent::Marks;
use super::fragment::Target;
use super::gap::GapBuilder;
use super::heartbeat::{HeartbeatTimer, Piggyback};
use super::history::{Change, History, TakenChange};
use super::pace::{Pacer, Repeat, Repeated};
use super::proxy::{Class, Proxies, ReaderProxy};
use super::{ChangeKind, Writer, WriterConfig};

impl Writer {
    /// Sends a change just written: whole where it fits, the first burst of its fragments where not. `fresh`: the change, if
    /// it need not be looked up.
    pub(super) fn send_new(
        &mut self,
        now: Now,
        number: SequenceNumber,
        fresh: Option<&Change<'_>>,
        out: &mut Outbox,
    ) {
        if self.proxies.is_filtering() {
            self.send_filtered(now, number, out);
            return;
        }
        if self.batched(now, number, fresh, out) {
            return;
        }
        let carried = self.carried_heartbeat(now);
        let Some(change) = self.history.get(number, &self.instances) else { return };
        encode(&self.config, &self.proxies, &change, &mut self.inline_qos);
        let (mut asked, mut queued) = (false, false);
        for class in Class::ALL {
            let route = self.proxies.route(class);
            if route.destinations.is_empty() {
                continue;
            }
            let target = route.target(class, self.config.guid, &self.config.limits);
            if self.pacer.unsent_to(class).is_some()
                || !target.fits(change.payload.len(), self.inline_qos.len())
            {
                self.pacer.push_live(number, class);
                queued = true;
                continue;
            }
            let mut message = target.open(out);
            // It fits: the target said so.
            let _ = target.put_data(&mut message, number, &change, &self.inline_qos);
            if class == Class::SameHost {
                self.multicast.sent(message.len());
            }
            if let Some(carried) = carried.filter(|_| route.reliable > 0) {
                let final_flag = carried == Piggyback::Tells;
                let heartbeat =
                    heartbeat(&mut self.heartbeat, &self.history, &self.pacer, &target, final_flag);
                if !message.heartbeat(&heartbeat) {
                    message.finish();
                    target.send_heartbeat(&heartbeat, out);
                }
                asked |= carried == Piggyback::Asks;
            }
        }
        if asked {
            self.heartbeat.asked(now.mono);
        }
        if queued {
            self.pump(now, out);
        }
    }

    /// Half of what may be unacknowledged is.
    fn is_half_full(&self) -> bool {
        self.history.pending_bytes() >= self.window_bytes / 2
    }

    /// The heartbeat that samples sent now carry.
    pub(super) fn carried_heartbeat(&mut self, now: Now) -> Option<Piggyback> {
        let urgent = self.is_half_full();
        let reliable = self.proxies.acknowledged().is_some();
        if reliable { self.heartbeat.piggyback(now.mono, urgent) } else { None }
    }

    /// Sends what waits, as far as the current burst allows: new changes and repetitions by turns.
    pub(super) fn pump(&mut self, now: Now, out: &mut Outbox) {
        self.pacer.refresh(now.mono, &self.config.limits);
        if let Some(window_bytes) = self.proxies.route(Class::SameHost).window_bytes {
            self.pacer.widen(Class::SameHost, window_bytes);
        }
        let unsent = self.pacer.unsent();
        loop {
            let local = self.pump_live(now, Class::SameHost, out);
            let remote = self.pump_live(now, Class::Remote, out);
            let repeated = self.pump_repeat(now, out);
            if !local && !remote && !repeated {
                break;
            }
        }
        if self.pacer.unsent() != unsent {
            self.settle(now);
            if self.blocked {
                self.progress(out);
            }
        }
    }

    /// One more datagram of the first queued change; false when there is none or the burst is over.
    fn pump_live(&mut self, now: Now, class: Class, out: &mut Outbox) -> bool {
        if !self.pacer.may_send(class) {
            return false;
        }
        self.skip_replaced(class, out);
        let half_full = self.is_half_full();
        let window_bytes = self.proxies.route(class).window_bytes.filter(|_| class == Class::SameHost);
        let Some(live) = self.pacer.first_live(class) else { return false };
        let number = live.number;
        if live.begun.is_none() {
            live.begun = self.history.get(number, &self.instances).as_ref().map(TakenChange::of);
        }
        if let Some(change) = &live.begun.as_ref().map(TakenChange::view) {
            self.proxies.aim(class, number, change);
            if live.fragments_sent == 0 {
                self.proxies.begin((class, number, change), None, &self.config, out);
            }
        }
        let route = self.proxies.aimed(class);
        let Some(change) =
            &live.begun.as_ref().map(TakenChange::view).filter(|_| !route.destinations.is_empty())
        else {
            self.pacer.pop_live(class);
            return true;
        };
        let target = route.target(class, self.config.guid, &self.config.limits);
        encode(&self.config, &self.proxies, change, &mut self.inline_qos);
        let mut message = target.open(out);
        let finished = if target.fits(change.payload.len(), self.inline_qos.len()) {
            let _ = target.put_data(&mut message, number, change, &self.inline_qos);
            true
        } else {
            live.fragments_sent += 1;
            let fragment = live.fragments_sent;
            let _ = target.put_fragment(&mut message, number, change, fragment, &self.inline_qos);
            fragment >= target.fragments(change.payload.len())
        };
        self.pacer.sent_live(class, message.len(), finished.then_some(number));
        if class == Class::SameHost {
            self.multicast.sent(message.len());
        }
        if !finished {
            message.finish();
            self.announce_fragments(now, class, out);
            return true;
        }
        self.pacer.pop_live(class);
        if route.reliable > 0 {
            if self.proxies.is_filtering() {
                message.finish();
                self.heartbeat_aimed(class, false, out);
                self.heartbeat.asked(now.mono);
            } else {
                // Where acknowledgements make room, they are asked for in time; else with each sample.
                let asks = window_bytes.is_none_or(|window_bytes| {
                    let urgent = half_full || 2 * self.pacer.in_flight(class) >= window_bytes;
                    self.heartbeat.must_ask(now.mono, urgent)
                });
                let heartbeat = heartbeat(&mut self.heartbeat, &self.history, &self.pacer, &target, !asks);
                if !message.heartbeat(&heartbeat) {
                    message.finish();
                    target.send_heartbeat(&heartbeat, out);
                }
                if asks {
                    self.heartbeat.asked(now.mono);
                }
            }
        }
        true
    }

    /// Drops what is first in the queue and was replaced, or has expired, before its turn came, and tells readers so before
    /// they ask; those that filter are told when they ask.
    fn skip_replaced(&mut self, class: Class, out: &mut Outbox) {
        let mut gone: Option<(SequenceNumber, SequenceNumber)> = None;
        while let Some(live) = self.pacer.first_live(class)
            && live.begun.is_none()
            && self.history.kind(live.number).is_none()
            && gone.is_none_or(|(_, end)| end == live.number)
        {
            gone = Some((gone.map_or(live.number, |(start, _)| start), live.number.next()));
            self.pacer.pop_live(class);
        }
        let Some((start, end)) = gone else { return };
        let route = self.proxies.route(class);
        if route.destinations.is_empty() {
            return;
        }
        self.drops.count_many(DropReason::ReplacedUnsent, end.0.abs_diff(start.0));
        if !self.proxies.is_filtering() {
            let target = route.target(class, self.config.guid, &self.config.limits);
            target.send_gap(&GapBuilder::range(start, end), out);
        }
    }

    /// The burst ended inside a sample: tells readers now and then how far it got, so that they ask for
    /// lost fragments while the rest is still to come (RTPS 2.5 §8.3.8.7).
    fn announce_fragments(&mut self, now: Now, class: Class, out: &mut Outbox) {
        let route = self.proxies.route(class);
        let Some((number, last_fragment)) = self.pacer.unsent_to(class) else { return };
        if self.pacer.may_send(class) || route.reliable == 0 || !self.heartbeat.fragments_due(now.mono) {
            return;
        }
        let target = route.target(class, self.config.guid, &self.config.limits);
        let heartbeat = HeartbeatFrag {
            reader: target.reader,
            writer: target.source.entity,
            sequence_number: number,
            last_fragment,
            count: self.heartbeat.next_count(),
        };
        let _ = target.open(out).heartbeat_frag(&heartbeat);
    }

    /// One more datagram of the next repetition, readers by turns; false when nothing may be sent.
    fn pump_repeat(&mut self, now: Now, out: &mut Outbox) -> bool {
        for _ in 0..self.pacer.repeats.len() {
            let Some(repeat) = self.pacer.repeats.pop_front() else { return false };
            let reader = repeat.reader;
            let Some(proxy) = self.proxies.get(reader) else { continue };
            if repeat.is_needless(proxy.acknowledged) {
                continue;
            }
            if self.pacer.may_send(proxy.class) {
                self.send_repeat(now, repeat, out);
                self.pacer.yield_turn(reader);
                return true;
            }
            self.pacer.repeats.push_front(repeat);
            self.pacer.yield_turn(reader);
        }
        false
    }

    /// One datagram of a repetition; what is left of it queues again in front.
    fn send_repeat(&mut self, now: Now, repeat: Repeat, out: &mut Outbox) {
        let reader = repeat.reader;
        match repeat.what {
            Repeated::Changes { next, last } => self.repeat_changes(now, reader, next, last, out),
            Repeated::Fragments { number, next, wanted } => {
                let fragment = match &wanted {
                    Some(set) => set.iter().find(|fragment| *fragment >= next),
                    None => Some(next),
                };
                if let Some(fragment) = fragment
                    && self.repeat_fragment(reader, number, fragment, out)
                {
                    let what = Repeated::Fragments { number, next: fragment.saturating_add(1), wanted };
                    self.pacer.repeats.push_front(Repeat { reader, what });
                } else {
                    self.ask_for_fragments(now, reader, number, out);
                }
            }
        }
    }

    /// As many changes from `next` to `last` as one datagram takes, in order; the rest queues again.
    fn repeat_changes(
        &mut self,
        now: Now,
        reader: Guid,
        mut next: SequenceNumber,
        last: SequenceNumber,
        out: &mut Outbox,
    ) {
        let Some(proxy) = self.proxies.get(reader) else { return };
        let target = proxy.target(self.config.guid, &self.config.limits);
        let mut message = target.open(out);
        let mut large = None;
        while next <= last {
            let (held, filtered) = self.next_wanted(proxy, next, last);
            if held > next {
                let gap = GapBuilder::range(next, held)
                    .filtering(filtered)
                    .gap(target.reader, target.source.entity);
                if proxy.reliable && !message.gap(&gap) {
                    break;
                }
                next = held;
                continue;
            }
            let Some(change) = self.history.get(next, &self.instances) else { break };
            if change.is_expired(now.mono) {
                next = next.next();
                continue;
            }
            encode(&self.config, &self.proxies, &change, &mut self.inline_qos);
            if !target.fits(change.payload.len(), self.inline_qos.len()) {
                large = Some(next);
                next = next.next();
                break;
            }
            if !target.put_data(&mut message, next, &change, &self.inline_qos) {
                break;
            }
            next = next.next();
        }
        let bytes = message.len();
        let finished = next > last;
        if finished && proxy.reliable && large.is_none() {
            let heartbeat =
                heartbeat_to(&mut self.heartbeat, &self.history, &self.pacer, proxy, &target, false);
            if !message.heartbeat(&heartbeat) {
                message.finish();
                target.send_heartbeat(&heartbeat, out);
            }
            self.heartbeat.asked(now.mono);
        }
        self.pacer.spend(target.class, bytes);
        if !finished {
            self.pacer.repeats.push_front(Repeat { reader, what: Repeated::Changes { next, last } });
        }
        if let Some(number) = large {
            let what = Repeated::Fragments { number, next: 1, wanted: None };
            self.pacer.repeats.push_front(Repeat { reader, what });
        }
    }

    /// Repeats one fragment; false when there is no such fragment any more.
    fn repeat_fragment(
        &mut self,
        reader: Guid,
        number: SequenceNumber,
        fragment: FragmentNumber,
        out: &mut Outbox,
    ) -> bool {
        let (Some(change), Some(proxy)) =
            (self.history.get(number, &self.instances), self.proxies.get(reader))
        else {
            return false;
        };
        encode(&self.config, &self.proxies, &change, &mut self.inline_qos);
        let target = proxy.target(self.config.guid, &self.config.limits);
        let whole = target.fits(change.payload.len(), self.inline_qos.len());
        if whole || fragment > target.fragments(change.payload.len()) {
            return false;
        }
        let mut message = target.open(out);
        let _ = target.put_fragment(&mut message, number, &change, fragment, &self.inline_qos);
        let bytes = message.len();
        message.finish();
        self.pacer.spend(target.class, bytes);
        true
    }

    /// Fragments were repeated: asks the reader which it still misses, unless the end of the sample is
    /// still to come and will ask.
    fn ask_for_fragments(&mut self, now: Now, reader: Guid, number: SequenceNumber, out: &mut Outbox) {
        let more = self.pacer.repeats.iter().any(|repeat| {
            repeat.reader == reader
                && matches!(repeat.what, Repeated::Fragments { number: other, .. } if other == number)
        });
        let Some(proxy) = self.proxies.get(reader).filter(|proxy| proxy.reliable && !more) else { return };
        if number > sent_last(&self.history, &self.pacer, proxy.class) {
            return;
        }
        let target = proxy.target(self.config.guid, &self.config.limits);
        let mut message = target.open(out);
        if let Some(change) = self.history.get(number, &self.instances) {
            let _ = message.heartbeat_frag(&HeartbeatFrag {
                reader: target.reader,
                writer: target.source.entity,
                sequence_number: number,
                last_fragment: target.fragments(change.payload.len()),
                count: self.heartbeat.next_count(),
            });
        }
        let heartbeat = heartbeat_to(&mut self.heartbeat, &self.history, &self.pacer, proxy, &target, false);
        // Both fit the smallest datagram.
        let _ = message.heartbeat(&heartbeat);
        self.heartbeat.asked(now.mono);
    }

    /// Asks the reliable readers that owe an acknowledgement of what was sent: each of them when they are the lesser part,
    /// all of a route otherwise. Whether there was any.
    pub(super) fn ask(&mut self, now: Now, out: &mut Outbox) -> bool {
        if self.proxies.is_filtering() {
            return self.ask_each(now, out);
        }
        let owes = |proxy: &&ReaderProxy| {
            proxy.reliable && proxy.acknowledged < sent_last(&self.history, &self.pacer, proxy.class)
        };
        let owing = self.proxies.iter().filter(owes).count();
        if owing == 0 {
            return false;
        }
        if owing == 1 || 2 * owing <= self.proxies.reliable() {
            return self.ask_each(now, out);
        }
        self.heartbeat.asked(now.mono);
        for class in Class::ALL {
            let route = self.proxies.route(class);
            if route.reliable > 0 {
                let target = route.target(class, self.config.guid, &self.config.limits);
                let heartbeat = heartbeat(&mut self.heartbeat, &self.history, &self.pacer, &target, false);
                target.send_heartbeat(&heartbeat, out);
            }
        }
        true
    }

    /// Tells all readers that the application asserted this writer (RTPS 2.5 §8.3.8.6.3).
    pub(super) fn send_liveliness(&mut self, out: &mut Outbox) {
        for class in Class::ALL {
            let route = self.proxies.route(class);
            if route.destinations.is_empty() {
                continue;
            }
            let target = route.target(class, self.config.guid, &self.config.limits);
            let mut heartbeat = heartbeat(&mut self.heartbeat, &self.history, &self.pacer, &target, true);
            heartbeat.liveliness = true;
            target.send_heartbeat(&heartbeat, out);
        }
    }

    /// Tells a new reader that what was written before is not for it.
    pub(super) fn tell_start(&mut self, now: Now, reader: Guid, out: &mut Outbox) {
        let Some(proxy) = self.proxies.get(reader) else { return };
        let target = proxy.target(self.config.guid, &self.config.limits);
        let mut message = target.open(out);
        if proxy.first_relevant > SequenceNumber::FIRST {
            let gap = GapBuilder::range(SequenceNumber::FIRST, proxy.first_relevant);
            let _ = message.gap(&gap.gap(target.reader, target.source.entity));
        }
        let mut heartbeat =
            heartbeat_to(&mut self.heartbeat, &self.history, &self.pacer, proxy, &target, false);
        // It comes with the GAP or not at all.
        heartbeat.first = heartbeat.first.max(proxy.first_relevant).min(heartbeat.last.next());
        if !message.heartbeat(&heartbeat) {
            message.finish();
            target.send_heartbeat(&heartbeat, out);
        }
        self.heartbeat.asked(now.mono);
    }

    /// A HEARTBEAT that wants an answer of a reader, be it matched or not.
    pub fn question(&mut self, reader: EntityId) -> Heartbeat {
        let last = self.sent_last(true).min(self.sent_last(false));
        Heartbeat {
            reader,
            writer: self.config.guid.entity,
            first: self.history.first().min(last.next()),
            last,
            count: self.heartbeat.next_count(),
            final_flag: false,
            liveliness: false,
            group: None,
        }
    }

    /// The last change that readers on this host, or elsewhere, were sent.
    pub(super) fn sent_last(&self, same_host: bool) -> SequenceNumber {
        let class = if same_host { Class::SameHost } else { Class::Remote };
        sent_last(&self.history, &self.pacer, class)
    }
}

/// The last change that was sent to all readers of a class: heartbeats announce no more than that,
/// lest readers ask for what is on its way.
pub(super) fn sent_last(history: &History, pacer: &Pacer, class: Class) -> SequenceNumber {
    pacer.unsent_to(class).map_or_else(|| history.last(), |(number, _)| number.previous())
}

/// How many fragments of a change were sent to all readers of a class.
pub(super) fn sent_fragments(
    pacer: &Pacer,
    target: &Target<'_>,
    number: SequenceNumber,
    change: &Change<'_>,
) -> FragmentNumber {
    match pacer.unsent_to(target.class) {
        Some((unsent, _)) if number > unsent => 0,
        Some((unsent, fragments)) if number == unsent => fragments,
        _ => target.fragments(change.payload.len()),
    }
}

/// A HEARTBEAT for all readers of a route.
pub(super) fn heartbeat(
    timer: &mut HeartbeatTimer,
    history: &History,
    pacer: &Pacer,
    target: &Target<'_>,
    final_flag: bool,
) -> Heartbeat {
    let last = sent_last(history, pacer, target.class);
    let first = history.first().min(last.next());
    Heartbeat {
        reader: target.reader,
        writer: target.source.entity,
        first,
        last,
        count: timer.next_count(),
        final_flag,
        liveliness: false,
        group: timer.group_info(history, first, last),
    }
}

/// A HEARTBEAT for one reader: what is not for it is not announced.
pub(super) fn heartbeat_to(
    timer: &mut HeartbeatTimer,
    history: &History,
    pacer: &Pacer,
    proxy: &ReaderProxy,
    target: &Target<'_>,
    final_flag: bool,
) -> Heartbeat {
    let mut heartbeat = heartbeat(timer, history, pacer, target, final_flag);
    heartbeat.last = heartbeat.last.max(proxy.first_relevant.previous());
    heartbeat.first = heartbeat.first.max(proxy.first_relevant).min(heartbeat.last.next());
    if proxy.filter.is_some() || proxy.confirmed < proxy.acknowledged {
        // Of what its filter refused, or was before its time, it may not know yet, even when it was told: were it said to
        // be gone, it would count as lost.
        heartbeat.first = heartbeat.first.min(proxy.confirmed.next());
    }
    heartbeat.group = timer.group_info(history, heartbeat.first, heartbeat.last);
    heartbeat
}

/// Encodes the inline QoS of a change: status and key hash for keyed topics (RTPS 2.5 §9.6.4.8 and
/// §9.6.4.9), the rest when a reader expects it. Its length in octets.
pub(super) fn encode(
    config: &WriterConfig,
    proxies: &Proxies,
    change: &Change<'_>,
    bytes: &mut Vec<u8>,
) -> usize {
    bytes.clear();
    let marks = &change.marks;
    let is_plain = change.kind == ChangeKind::Alive && *marks == Marks::default();
    if is_plain && config.group.is_none() && !proxies.inline_qos() {
        return 0;
    }
    let tells_key = !marks.is_end && (change.kind.is_key_only() || proxies.inline_qos());
    let mut qos = InlineQos {
        coherent_set: marks.set.filter(|_| !marks.is_end),
        group_coherent_set: marks.group_set,
        group_sequence_number: marks.group_number,
        group_writers: config.group.as_ref().map(|group| group.writers()),
        status_info: StatusInfo {
            disposed: change.kind.disposes(),
            unregistered: change.kind.unregisters(),
            filtered: false,
        },
        // Data has its key in it.
        key_hash: (config.keyed && tells_key).then(|| change.instance.key_hash()),
        ..InlineQos::default()
    };
    if proxies.inline_qos() && !marks.is_end {
        qos.lifespan = Some(config.qos.lifespan);
        qos.ownership_strength = Some(config.qos.ownership_strength);
    }
    encode_inline_qos(&qos, bytes);
    bytes.len()
}
