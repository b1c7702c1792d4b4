//! Retransmissions, and the history for late joiners: what is queued for single readers.

use crate::outbox::Outbox;
use crate::time::Now;
use crate::wire::HeartbeatFrag;

use super::packet::Packet;
use super::packetizer::{Packetizer, Rules};
use super::submessages::{encode, heartbeat_to, sent_last};
use crate::writer::Writer;
use crate::writer::flow::retransmission::Retransmission;

impl Writer {
    /// One more datagram of the next retransmission, readers by turns; false when nothing may be sent.
    pub(crate) fn pump_retransmissions(&mut self, now: Now, out: &mut Outbox) -> bool {
        for _ in 0..self.retransmissions.len() {
            let Some(next) = self.retransmissions.pop_front() else { return false };
            let reader = next.reader;
            let Some(proxy) = self.proxies.get(reader) else { continue };
            if next.span.last <= proxy.acknowledged {
                continue;
            }
            let kind = proxy.kind;
            if self.routes.of(kind).controller.may_send() {
                self.retransmit_datagram(now, next, out);
                if self.routes.of(kind).controller.wants_ack_inside() {
                    self.request_ack_inside(now, reader, out);
                }
                self.retransmissions.rotate(reader);
                return true;
            }
            self.routes.of_mut(kind).controller.block(now.mono);
            self.retransmissions.push_front(next);
            self.retransmissions.rotate(reader);
        }
        false
    }

    /// One datagram of a retransmission; what is left of it queues again in front. At the end of it, and of
    /// each change that was cut, the reader is asked what it still lacks.
    fn retransmit_datagram(&mut self, now: Now, mut next: Retransmission, out: &mut Outbox) {
        let Self { history, instances, proxies, config, inline_qos, routes, heartbeat, .. } = self;
        let Some(proxy) = proxies.get(next.reader) else { return };
        let target = routes.target_to(proxy);
        let mut packet = Packet::open(target, out);
        let before = next.span;
        let rules = Rules { reader: Some((proxy, now.mono)), ..Rules::default() };
        let mut packetizer = Packetizer { history, instances, proxies, config, inline_qos };
        let filled = packetizer.fill(&mut packet, &mut next.span, &rules);
        let (bytes, datagrams) = packet.total();
        let mut asks = proxy.reliable && next.span.is_over();
        if let Some((number, ..)) = filled.cut.filter(|(number, ..)| filled.ended == Some(*number)) {
            let more = !next.span.is_over() && next.span.number == number
                || self.retransmissions.has(next.reader, number);
            // Unless the end of the sample is still to come, and will ask.
            asks = proxy.reliable && !more && number <= sent_last(history, routes, proxy.kind);
            if asks && let Some(change) = history.get(number, instances) {
                let inline_qos = encode(config, proxies, &change, inline_qos);
                packet.heartbeat_frag(&HeartbeatFrag {
                    reader: target.reader,
                    writer: target.source.entity,
                    sequence_number: number,
                    last_fragment: target.fragments(change.payload.len(), inline_qos),
                    count: heartbeat.next_count(),
                });
            }
        }
        if asks {
            packet.heartbeat(&heartbeat_to(heartbeat, history, routes, proxy, &target, false));
        }
        packet.seal();
        let controller = &mut routes.of_mut(target.kind).controller;
        controller.sent_again((bytes, datagrams));
        self.counted.resent_bytes += (bytes + filled.attached_bytes) as u64;
        self.counted.resent_datagrams += datagrams as u64;
        controller.lent_again(filled.attached_bytes);
        if let (Some((number, first, end)), Some(proxy)) = (filled.cut, proxies.get_mut(next.reader)) {
            let was_sent = |fragment: &u32| before.number != number || before.has(number, *fragment);
            for fragment in (first..end).filter(was_sent) {
                proxy.recent_fragments.sent((number, fragment), now.mono);
            }
        }
        if asks {
            self.asked(now);
        }
        // What nothing can be made of is dropped.
        if !next.span.is_over() && (bytes > 0 || next.span != before) {
            self.retransmissions.push_front(next);
        }
    }
}
