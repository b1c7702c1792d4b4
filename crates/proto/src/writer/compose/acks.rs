//! Acknowledgement requests: heartbeats to all readers of a route, to those that a content filter leaves, or
//! to one.

use crate::guid::{EntityId, Guid};
use crate::outbox::Outbox;
use crate::seq::SequenceNumber;
use crate::time::Now;
use crate::wire::Heartbeat;

use super::packet::Packet;
use super::submessages::{heartbeat, heartbeat_to, sent_last};
use crate::tuning::writer::{ISOLATED_READERS_MAX, PROMPT_READERS};
use crate::writer::Writer;
use crate::writer::flow::heartbeat::{HeartbeatTimer, Piggyback};
use crate::writer::flow::route_kind::RouteKind;
use crate::writer::record::history::History;
use crate::writer::routes::gap::GapBuilder;
use crate::writer::routes::proxies::Proxies;
use crate::writer::routes::proxy::ReaderProxy;
use crate::writer::routes::route::Routes;
use crate::writer::routes::target::Target;

/// A datagram that has no data, but one or both of these.
pub(crate) fn send_control(
    target: Target<'_>,
    gap: Option<&GapBuilder>,
    heartbeat: Option<&Heartbeat>,
    out: &mut Outbox,
) {
    let mut packet = Packet::open(target, out);
    if let Some(gap) = gap {
        packet.gap(gap);
    }
    if let Some(heartbeat) = heartbeat {
        packet.heartbeat(heartbeat);
    }
    packet.seal();
}

/// Adds a heartbeat for the readers of a route; while readers filter, one for each of them that is reliable
/// and was sent the change aimed last.
pub(crate) fn put_heartbeats(
    packet: &mut Packet<'_, '_>,
    timer: &mut HeartbeatTimer,
    (history, proxies, routes): (&History, &Proxies, &Routes),
    final_flag: bool,
) {
    let target = packet.target;
    if !proxies.is_filtering() {
        packet.heartbeat(&heartbeat(timer, history, routes, &target, final_flag));
        return;
    }
    let route = routes.of(target.kind);
    for reader in route.aim.reliable.iter().filter_map(|reader| proxies.get(*reader)) {
        let to = route.target_to(reader);
        packet.address(reader.guid.prefix);
        packet.heartbeat(&heartbeat_to(timer, history, routes, reader, &to, final_flag));
    }
}

impl Writer {
    /// All readers were asked what they have.
    pub(crate) fn asked(&mut self, now: Now) {
        self.heartbeat.requested(now.mono);
        self.routes.of_mut(RouteKind::Memory).controller.requested();
        // The last heartbeat was that to other hosts, if there are readers.
        self.note_ack_request(now, self.heartbeat.count());
    }

    /// A heartbeat of that count asks readers on other hosts.
    pub(crate) fn note_ack_request(&mut self, now: Now, count: i32) {
        let last = self.sent_last(RouteKind::Remote);
        if let Some(delay) = self.routes.delay_mut() {
            delay.requested(now.mono, count, last);
        }
    }

    /// Half of what may be unacknowledged is.
    fn is_half_full(&self) -> bool {
        self.history.pending_bytes() >= self.window_bytes / 2
    }

    /// The heartbeat that samples sent now carry.
    pub(crate) fn carried_heartbeat(&mut self, now: Now) -> Option<Piggyback> {
        let urgent = self.is_half_full();
        self.proxies.acknowledged()?;
        let unhurried = !urgent
            && !self.is_limited()
            && self.routes.of(RouteKind::Remote).port.reliable == 0
            && self.routes.reliable() <= ISOLATED_READERS_MAX;
        let carried = self.heartbeat.piggyback(now.mono, urgent, unhurried);
        if self.routes.iter().any(|route| route.controller.wants_ack()) {
            Some(Piggyback::Request)
        } else {
            carried
        }
    }

    /// Whether readers are asked what they have with queued changes that were just sent: where their answers
    /// make room, in time and when nothing follows; else with each.
    pub(crate) fn must_ask(&self, now: Now, kind: RouteKind) -> bool {
        let route = self.routes.of(kind);
        let (half_full, is_last) = (self.is_half_full(), route.queue.unsent().is_none());
        match kind {
            RouteKind::Memory => {
                is_last
                    || route.controller.wants_ack()
                    || self.heartbeat.requests_with_queued(now.mono, half_full)
            }
            RouteKind::SameHost => route.port.window_bytes.is_none_or(|window_bytes| {
                let urgent = half_full || 2 * route.controller.in_flight() >= window_bytes;
                self.heartbeat.requests_with_queued(now.mono, urgent)
            }),
            RouteKind::Remote if route.controller.is_windowed() => {
                is_last
                    || route.controller.wants_ack()
                    || self.heartbeat.requests_with_queued(now.mono, false)
            }
            RouteKind::Remote => true,
        }
    }

    /// Asks in the middle of a sample for readers on other hosts, so that they tell when this has arrived.
    pub(crate) fn request_acks_inside(&mut self, now: Now, out: &mut Outbox) {
        if self.proxies.is_filtering() {
            // Also those that want none of what is being sent: nobody knows otherwise that it has arrived at
            // their host.
            self.ask_readers(now, out, |reader, _| reader.is_waited_for());
            return;
        }
        let target = self.routes.of(RouteKind::Remote).target();
        let heartbeat = heartbeat(&mut self.heartbeat, &self.history, &self.routes, &target, false);
        send_control(target, None, Some(&heartbeat), out);
        self.note_ack_request(now, heartbeat.count);
    }

    /// Asks one reader on another host in the middle of retransmissions, so that it tells when these have
    /// arrived; for one that never answers, the others.
    pub(crate) fn request_ack_inside(&mut self, now: Now, reader: Guid, out: &mut Outbox) {
        let Some(proxy) = self.proxies.get(reader) else { return };
        if !proxy.reliable {
            return self.request_acks_inside(now, out);
        }
        let target = self.routes.target_to(proxy);
        let heartbeat = heartbeat_to(&mut self.heartbeat, &self.history, &self.routes, proxy, &target, false);
        send_control(target, None, Some(&heartbeat), out);
        self.note_ack_request(now, heartbeat.count);
    }

    /// Asks the reliable readers that owe an acknowledgement of what was sent: each of them when they are the
    /// lesser part, all of a route otherwise. Whether there was any.
    pub(crate) fn ask(&mut self, now: Now, out: &mut Outbox) -> bool {
        self.meet(out);
        if self.proxies.is_filtering() {
            return self.ask_each(now, out);
        }
        let (history, routes) = (&self.history, &self.routes);
        let owes = |reader: &ReaderProxy| {
            reader.is_awaited() && reader.acknowledged < sent_last(history, routes, reader.kind)
        };
        let owing = self.proxies.iter().filter(|reader| owes(reader)).count();
        if owing == 0 {
            return false;
        }
        if owing == 1 || 2 * owing <= routes.reliable() {
            return self.ask_each(now, out);
        }
        for reader in self.proxies.readers.iter_mut().filter(|reader| owes(reader)) {
            reader.silence.requested(now.mono);
        }
        for route in self.routes.iter().filter(|route| route.port.reliable > 0) {
            let target = route.target();
            let heartbeat = heartbeat(&mut self.heartbeat, &self.history, &self.routes, &target, false);
            send_control(target, None, Some(&heartbeat), out);
        }
        self.asked(now);
        true
    }

    /// Asks every reliable reader that owes an acknowledgement, each for itself: what is gone differs, and
    /// who was passed over is told of that with it. Whether there were any.
    pub(crate) fn ask_each(&mut self, now: Now, out: &mut Outbox) -> bool {
        let asked = self.ask_those(now, out, |_| true);
        if asked {
            self.asked(now);
        }
        asked
    }

    /// The same for some of them.
    pub(crate) fn ask_those(
        &mut self,
        now: Now,
        out: &mut Outbox,
        which: impl Fn(&ReaderProxy) -> bool,
    ) -> bool {
        self.ask_readers(now, out, |reader, last| reader.acknowledged < last && which(reader))
    }

    /// Asks some reliable readers, each for itself, whatever they owe of what was sent up to a last change.
    /// Whether there were any.
    pub(crate) fn ask_readers(
        &mut self,
        now: Now,
        out: &mut Outbox,
        which: impl Fn(&ReaderProxy, SequenceNumber) -> bool,
    ) -> bool {
        self.meet(out);
        let mut asked = false;
        for reader in self.proxies.readers.iter_mut().filter(|reader| reader.is_awaited()) {
            let last = sent_last(&self.history, &self.routes, reader.kind);
            if !which(reader, last) {
                continue;
            }
            reader.silence.requested(now.mono);
            let gap = reader.close_gap(last.next());
            let target = self.routes.target_to(reader);
            let heartbeat =
                heartbeat_to(&mut self.heartbeat, &self.history, &self.routes, reader, &target, false);
            send_control(target, gap.as_ref(), Some(&heartbeat), out);
            if let Some(delay) = self.routes.of_mut(reader.kind).controller.delay_mut() {
                delay.requested(now.mono, heartbeat.count, last);
            }
            asked = true;
        }
        asked
    }

    /// Tells all readers that the application asserted this writer (RTPS 2.5 §8.3.8.6.3).
    pub(crate) fn send_liveliness(&mut self, out: &mut Outbox) {
        self.meet(out);
        for route in self.routes.iter().filter(|route| !route.is_empty()) {
            let target = route.target();
            let mut heartbeat = heartbeat(&mut self.heartbeat, &self.history, &self.routes, &target, true);
            heartbeat.liveliness = true;
            send_control(target, None, Some(&heartbeat), out);
        }
    }

    /// Tells a new reader that what was written before is not for it.
    pub(crate) fn announce_start(&mut self, now: Now, reader: Guid, out: &mut Outbox) {
        let Some(proxy) = self.proxies.get(reader) else { return };
        let target = self.routes.target_to(proxy);
        let first = self.first_number();
        let gap = (proxy.first_relevant > first).then(|| GapBuilder::range(first, proxy.first_relevant));
        // Of an empty history nothing has to be acknowledged. A reader of another stack may have been waiting
        // for a request, and the answer of one elsewhere tells how long the path is.
        let is_near_kin = proxy.echoes_counts() && proxy.kind != RouteKind::Remote;
        let is_final = self.history.len() == 0 && (self.config.guid.entity.is_builtin() || is_near_kin);
        let mut heartbeat =
            heartbeat_to(&mut self.heartbeat, &self.history, &self.routes, proxy, &target, is_final);
        // It comes with the GAP or not at all.
        heartbeat.first = heartbeat.first.max(proxy.first_relevant).min(heartbeat.last.next());
        send_control(target, gap.as_ref(), Some(&heartbeat), out);
        if !is_final {
            self.asked(now);
        }
    }

    /// The number of the first change there ever was.
    pub(crate) const fn first_number(&self) -> SequenceNumber {
        self.config.limits.numbers_after.next()
    }

    /// A HEARTBEAT that wants an answer of a reader, be it matched or not.
    pub fn ack_request(&mut self, reader: EntityId) -> Heartbeat {
        let last = RouteKind::ALL.map(|kind| self.sent_last(kind));
        let last = last.into_iter().min().unwrap_or_default();
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

    /// The timer went off: asks again who owes an answer, of many only those whose time it is. Whether
    /// anybody was asked.
    pub(crate) fn ask_again(&mut self, now: Now, out: &mut Outbox) -> bool {
        let readers = self.routes.reliable();
        if readers <= PROMPT_READERS {
            return self.ask(now, out);
        }
        let pause = self.heartbeat.pause();
        let (mut due, history, routes) = (0, &self.history, &self.routes);
        let owes = |reader: &ReaderProxy| {
            reader.is_awaited() && reader.acknowledged < sent_last(history, routes, reader.kind)
        };
        for reader in self.proxies.readers.iter_mut().filter(|reader| owes(reader)) {
            due += usize::from(reader.request.again(now.mono, pause, readers));
        }
        if 2 * due > readers {
            return self.ask(now, out);
        }
        let asked = due > 0 && self.ask_those(now, out, |reader| reader.request.at == now.mono);
        if asked {
            self.asked(now);
        }
        asked
    }

    /// The last change that the readers of a route were sent.
    pub(crate) fn sent_last(&self, kind: RouteKind) -> SequenceNumber {
        sent_last(&self.history, &self.routes, kind)
    }
}
