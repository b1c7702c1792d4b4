//! New changes: to everyone at once where that is possible, else through the queue of each route.

use crate::outbox::Outbox;
use crate::seq::SequenceNumber;
use crate::stats::DropReason;
use crate::time::Now;
use crate::wire::HeartbeatFrag;

use super::acks::{put_heartbeats, send_control};
use super::packet::Packet;
use super::packetizer::{Filled, Packetizer, Rules};
use super::submessages::encode;
use crate::writer::Writer;
use crate::writer::flow::heartbeat::Piggyback;
use crate::writer::flow::queue::Tail;
use crate::writer::flow::route_kind::RouteKind;
use crate::writer::record::change::{Change, TakenChange};
use crate::writer::routes::filters::is_evaluated;
use crate::writer::routes::gap::GapBuilder;
use crate::writer::routes::route::Routes;

impl Writer {
    /// What composes datagrams, and the routes that it composes for.
    pub(crate) const fn packetizer(&mut self) -> (Packetizer<'_>, &mut Routes) {
        let Self { history, instances, proxies, config, inline_qos, routes, .. } = self;
        (Packetizer { history, instances, proxies, config, inline_qos }, routes)
    }

    /// Sends a change just written: whole where it fits, the first burst of its fragments where not. `fresh`:
    /// the change, if it need not be looked up.
    pub(crate) fn send_new(
        &mut self,
        now: Now,
        number: SequenceNumber,
        fresh: Option<&Change<'_>>,
        out: &mut Outbox,
    ) {
        if self.proxies.is_filtering() {
            // It does not wait for others: what a datagram holds depends on whom it is for.
            self.send_held(now, Some(number), out);
        } else if self.batched(now, number, fresh, out) {
            return;
        }
        let carried = self.carried_heartbeat(now);
        if carried.is_some() {
            self.meet(out);
        }
        let (mut asked, mut queued) = (false, false);
        for kind in RouteKind::ALL {
            if self.routes.of(kind).is_empty() {
                continue;
            }
            if let Some(has_asked) = self.send_now(now, kind, (number, fresh), carried, out) {
                asked |= has_asked;
            } else {
                self.routes.of_mut(kind).queue.push(number);
                queued = true;
            }
        }
        if self.proxies.is_filtering() && carried == Some(Piggyback::Request) {
            asked |= self.ask_those(now, out, |reader| reader.passed_over.is_some());
        }
        if asked {
            self.asked(now);
        }
        if queued {
            self.pump(now, out);
        }
    }

    /// Sends a change just written by a route at once: whether its readers were asked to acknowledge; `None`:
    /// it cannot leave now.
    fn send_now(
        &mut self,
        now: Now,
        kind: RouteKind,
        (number, fresh): (SequenceNumber, Option<&Change<'_>>),
        carried: Option<Piggyback>,
        out: &mut Outbox,
    ) -> Option<bool> {
        if self.routes.of(kind).queue.unsent().is_some() || !self.routes.admits(now.mono, kind, 1) {
            return None;
        }
        let Self { history, instances, proxies, config, inline_qos, routes, heartbeat, .. } = self;
        let held;
        let change = match fresh {
            Some(change) => change,
            None => {
                held = history.get(number, instances)?;
                &held
            }
        };
        let inline_qos_bytes = encode(config, proxies, change, inline_qos);
        proxies.aim(routes.of_mut(kind), number, change);
        let routes = &*routes;
        let route = routes.of(kind);
        let target = route.target_of(proxies.aimed(route));
        if !target.fits(change.payload.len(), inline_qos_bytes) && !target.destinations.is_empty() {
            return None;
        }
        let mut gap = None;
        if proxies.is_filtering() {
            gap = proxies.begin(route, (number, change), out);
            // Verdicts of built-in writers are ours, and nobody else's business.
            let beside_bytes = inline_qos_bytes + proxies.filters.verdict_bytes();
            if target.fits(change.payload.len() + gap.map_or(0, |_| GAP_BYTES_MAX), beside_bytes)
                && !config.guid.entity.is_builtin()
                && is_evaluated(change.kind, change.marks)
            {
                proxies.filters.append_verdicts(change, inline_qos);
            }
            if target.destinations.is_empty() {
                return Some(false);
            }
        }
        let mut packet = Packet::open(target, out);
        if let Some(gap) = gap {
            packet.gap(&gap);
        }
        if !packet.sample(number, change, inline_qos) {
            // It fits in one of its own: the target said so.
            packet.next();
            let _ = packet.sample(number, change, inline_qos);
        }
        let sent = (packet.total(), target.attached_bytes(change.payload.len()));
        let carried = carried.filter(|_| proxies.aimed(route).reliable > 0);
        if let Some(carried) = carried {
            let final_flag = carried == Piggyback::Final;
            put_heartbeats(&mut packet, heartbeat, (history, proxies, routes), final_flag);
        }
        packet.seal();
        self.separate(now, kind);
        if kind != RouteKind::SameHost {
            let controller = &mut self.routes.of_mut(kind).controller;
            controller.sent(sent.0, Some(number));
            controller.lent(sent.1, Some(number));
        }
        self.batch.leaves_alone(now.mono, self.proxies.len());
        Some(carried == Some(Piggyback::Request))
    }

    /// Sends what waits, as far as the current burst and the windows allow: new changes and retransmissions
    /// by turns.
    pub(crate) fn pump(&mut self, now: Now, out: &mut Outbox) {
        self.routes.refresh(now.mono);
        let near = self.routes.of_mut(RouteKind::SameHost);
        if let Some(window_bytes) = near.port.window_bytes {
            near.controller.widen(window_bytes);
        }
        self.check_ack_timeout(now, out);
        let (unsent, mut has_sent) = (self.routes.unsent(), false);
        loop {
            let mut any = false;
            for kind in RouteKind::ALL {
                any |= self.pump_queue(now, kind, out);
            }
            has_sent |= any;
            if !self.pump_retransmissions(now, out) && !any {
                break;
            }
        }
        if self.routes.unsent() != unsent {
            self.settle(now);
            if self.blocked && self.has_room_to_go_on() {
                self.progress(out);
            }
        } else if has_sent && self.heartbeat.due().is_none() {
            // Of a route that is ahead of another its readers owed nothing until now.
            self.settle(now);
        }
    }

    /// Readers on other hosts that answer nothing keep nobody waiting for ever: when some do answer, the
    /// others are not waited for any more; when none does, a little is sent all the same.
    fn check_ack_timeout(&mut self, now: Now, out: &mut Outbox) {
        let Some(delay) = self.routes.delay() else { return };
        if delay.ack_timeout().is_none_or(|end| end > now.mono) {
            if delay.requests_again_at().is_some_and(|at| at <= now.mono) {
                self.request_acks_inside(now, out);
            }
            return;
        }
        self.proxies.pass_slow(delay.delivered_bytes());
        self.note_delivered(now, None);
        let last = self.history.last();
        if let Some(delay) = self.routes.delay_mut()
            && delay.ack_timeout().is_some_and(|end| end <= now.mono)
        {
            delay.give_up(last);
        }
    }

    /// One more datagram of the queued changes; false when there is none, the burst is over, or readers have
    /// to answer first.
    fn pump_queue(&mut self, now: Now, kind: RouteKind, out: &mut Outbox) -> bool {
        let route = self.routes.of_mut(kind);
        if route.queue.is_empty() || route.queue.waits() || self.holds_tail(now, kind) {
            return false;
        }
        let controller = &mut self.routes.of_mut(kind).controller;
        if !controller.may_send() {
            controller.block(now.mono);
            return false;
        }
        self.skip_replaced(kind, out);
        self.meet(out);
        let mut is_open = false;
        loop {
            self.begin_first(kind, out);
            if !self.put_queued(now, kind, &mut is_open, out) {
                return true;
            }
        }
    }

    /// A sample was sent by a route: the next waits as long as its readers would filter it out.
    fn separate(&mut self, now: Now, kind: RouteKind) {
        if let Some(separation) = self.plan().separation(kind) {
            self.routes.of_mut(kind).queue.separation_end = now.mono.after(separation);
        }
    }

    /// Drops what is first in the queue and was replaced, or has expired, before its turn came, and tells
    /// readers so before they ask; those that filter are told when they ask. Where all filter by time, the
    /// last replaces all.
    fn skip_replaced(&mut self, kind: RouteKind, out: &mut Outbox) {
        let separates = self.plan().separation(kind).is_some();
        let route = self.routes.of_mut(kind);
        let Some(pending) = route.queue.first().filter(|pending| pending.begun.is_none()) else { return };
        let (start, after_last) = (pending.span.number, pending.span.last.next());
        let mut end = start;
        if separates {
            end = after_last.previous();
        }
        while end < after_last && self.history.kind(end).is_none() {
            end = self.history.next_held(end).min(after_last);
        }
        if end == start {
            return;
        }
        route.queue.advance(end);
        if route.is_empty() {
            return;
        }
        self.drops.count_many(DropReason::ReplacedUnsent, end.0.abs_diff(start.0));
        if self.proxies.is_filtering() {
            // Who was passed over with what came before is not to take this for filtered out, too.
            self.proxies.close_gaps(route, start, out);
        } else {
            send_control(route.target(), Some(&GapBuilder::range(start, end)), None, out);
        }
    }

    /// Makes sure that the first queued change is begun.
    fn begin_first(&mut self, kind: RouteKind, out: &mut Outbox) {
        let Self { history, instances, proxies, routes, .. } = self;
        let route = routes.of_mut(kind);
        let Some(pending) = route.queue.first() else { return };
        let number = pending.span.number;
        if pending.begun.is_some() && !proxies.is_filtering() {
            return;
        }
        let is_new = pending.begun.is_none();
        if is_new {
            pending.begun = history.get(number, instances).as_ref().map(TakenChange::of);
        }
        let Some(begun) = pending.begun.take() else { return };
        proxies.aim(route, number, &begun.view());
        if is_new && let Some(gap) = proxies.begin(route, (number, &begun.view()), out) {
            send_control(route.target_of(proxies.aimed(route)), Some(&gap), None, out);
        }
        if let Some(pending) = route.queue.first() {
            pending.begun = Some(begun);
        }
    }

    /// Adds to a datagram what comes next of a queue, and ends it unless the next change goes on in it.
    /// Whether it does.
    fn put_queued(&mut self, now: Now, kind: RouteKind, is_open: &mut bool, out: &mut Outbox) -> bool {
        let is_flowing = self.batch.is_flowing(now.mono, &self.config.limits);
        let goes_on = std::mem::replace(is_open, true);
        let (mut packetizer, routes) = self.packetizer();
        let is_filtering = packetizer.proxies.is_filtering();
        let (target, port, queue, controller) = routes.of_mut(kind).parts(is_filtering);
        let Some(pending) = queue.first() else { return false };
        let begun = pending.begun.as_ref().map(TakenChange::view).filter(|_| !port.destinations.is_empty());
        let mut packet = if goes_on { Packet::resume(target, out) } else { Packet::open(target, out) };
        let Some(begun) = begun else {
            packet.seal();
            let next = pending.span.number.next();
            queue.advance(next);
            return false;
        };
        // The first fragments of a lone sample leave first: who tells what its socket holds looks for the
        // rest; others would sleep, and be woken twice.
        let is_lone =
            !pending.span.is_inside() && !goes_on && !is_flowing && port.receive_buffer_bytes.is_some();
        let fragments_max = is_lone.then(|| target.fragments_ahead(begun.payload.len()));
        let rules = Rules { begun: Some(begun), fragments_max, is_alone: is_filtering, ..Rules::default() };
        let before = if goes_on { packet.len() } else { 0 };
        let mut span = pending.span;
        let filled = packetizer.fill(&mut packet, &mut span, &rules);
        let added_bytes = packet.len() - before;
        packet.pause();
        controller.sent((added_bytes, usize::from(!goes_on)), filled.ended);
        controller.lent(filled.attached_bytes, filled.ended);
        queue.put(span);
        self.end_queued(now, kind, &filled, out)
    }

    /// Ends what a datagram has of queued changes. Whether it goes on.
    fn end_queued(&mut self, now: Now, kind: RouteKind, filled: &Filled, out: &mut Outbox) -> bool {
        let is_filtering = self.proxies.is_filtering();
        if filled.ended.is_some() {
            self.separate(now, kind);
        }
        let goes_on = filled.shares && !is_filtering && self.next_is_there(kind);
        let reliable = self.proxies.aimed(self.routes.of(kind)).reliable > 0;
        let asks = is_filtering || self.must_ask(now, kind);
        let Self { history, proxies, routes, heartbeat, .. } = self;
        let route = routes.of(kind);
        let mut packet = Packet::resume(route.target_of(proxies.aimed(route)), out);
        // To other hosts, and in a ring, what follows tells enough.
        let tells = filled.ended.is_some() && reliable && (asks || kind == RouteKind::SameHost);
        if tells {
            put_heartbeats(&mut packet, heartbeat, (history, proxies, routes), !asks);
        }
        if goes_on {
            packet.pause();
        } else {
            packet.seal();
        }
        if tells && asks {
            self.asked(now);
        }
        if !goes_on && filled.ended.is_none() {
            self.announce_inside(now, kind, out);
        }
        goes_on
    }

    /// Whether the next queued change can be sent now.
    fn next_is_there(&mut self, kind: RouteKind) -> bool {
        let queue = &mut self.routes.of_mut(kind).queue;
        let may_follow = !queue.waits();
        queue.first().is_some_and(|pending| may_follow && self.history.kind(pending.span.number).is_some())
    }

    /// A datagram ended inside a sample: asks readers, or tells them how far it got, now and then, so that
    /// they ask for lost fragments while the rest is still to come (RTPS 2.5 §8.3.8.7).
    fn announce_inside(&mut self, now: Now, kind: RouteKind, out: &mut Outbox) {
        if self.routes.of(kind).controller.wants_ack_inside() {
            self.request_acks_inside(now, out);
        }
        let route = self.routes.of(kind);
        let Some((number, last_fragment)) = route.queue.unsent() else { return };
        // Of the next sample nothing had room in the datagram.
        if last_fragment == 0
            || route.controller.may_send()
            || route.port.reliable == 0
            || !self.heartbeat.fragments_due(now.mono)
        {
            return;
        }
        let target = route.target();
        let mut packet = Packet::open(target, out);
        packet.heartbeat_frag(&HeartbeatFrag {
            reader: target.reader,
            writer: target.source.entity,
            sequence_number: number,
            last_fragment,
            count: self.heartbeat.next_count(),
        });
        packet.seal();
    }

    /// Whether what is left to send to readers of this host waits for the next sample of a flow: the last
    /// fragments of a sample, which fill no datagram.
    fn holds_tail(&mut self, now: Now, kind: RouteKind) -> bool {
        if kind != RouteKind::SameHost {
            return false;
        }
        let is_alone = self.proxies.is_filtering() || self.config.limits.batch_bytes == 0;
        let is_flowing = self.batch.is_flowing(now.mono, &self.config.limits);
        let linger = self.batch.linger_in_flow(&self.config.limits);
        let (target, _, queue, _) = self.routes.of_mut(kind).parts(false);
        if is_alone || queue.is_paused() {
            queue.release_tail();
            return false;
        }
        let Some(pending) = queue.first() else { return false };
        let due = match pending.tail {
            Tail::Unknown => now.mono.after(linger),
            Tail::Held(due) if due > now.mono => Some(due),
            Tail::Held(_) | Tail::Released => None,
        };
        let span = &pending.span;
        let is_short = span.number == span.last
            && pending.begun.as_ref().map(TakenChange::view).is_some_and(|change| {
                let bytes = change.payload.len();
                let sent = (span.fragment - 1) as usize * usize::from(target.fragment_bytes(bytes, 0));
                sent > 0 && target.shares(bytes) && target.has_room_behind(bytes.saturating_sub(sent))
            });
        pending.tail = due.filter(|_| is_flowing && is_short).map_or(Tail::Released, Tail::Held);
        pending.tail != Tail::Released
    }
}

/// A GAP of one range with its INFO_DST, and an INFO_DST back.
const GAP_BYTES_MAX: usize = 4 + 36 + 2 * 16;
