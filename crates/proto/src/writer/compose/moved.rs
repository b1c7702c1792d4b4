//! A reader is reached by another route from now on: its process shares memory with ours, or does not any
//! more.
//!
//! What it was sent by the old route may be on its way still, or be lost: it tells, as after any loss. What
//! was queued there follows for it alone. The queue of the new route was emptied in the same way before
//! (`part_queue`), so that heartbeats by it take back nothing that the reader was told.

use crate::guid::Guid;
use crate::outbox::Outbox;
use crate::time::Now;

use crate::writer::Writer;
use crate::writer::compose::acks::send_control;
use crate::writer::flow::retransmission::Retransmission;
use crate::writer::flow::route_kind::RouteKind;
use crate::writer::flow::span::Span;

impl Writer {
    /// A reader was moved to another route, and its proxy knows that already.
    pub(crate) fn moved(&mut self, now: Now, reader: Guid, before: RouteKind, out: &mut Outbox) {
        let last = self.history.last();
        let queued = self.routes.of(before).queue.unsent().map(|(number, _)| number);
        if self.routes.of(before).is_empty() {
            self.routes.of_mut(before).queue.take();
        }
        self.retransmissions.recut(|it| it == reader);
        let Some(proxy) = self.proxies.get_mut(reader) else { return };
        // Of the new ring nothing has to be read yet.
        proxy.read = last;
        proxy.repair.moved();
        if let Some(number) = queued {
            let gap = proxy.close_gap(number);
            let span = Span::new(number.max(proxy.first_relevant), last);
            let target = self.routes.target_to(proxy);
            send_control(target, gap.as_ref(), None, out);
            if !span.is_over() {
                self.retransmissions.push_back(Retransmission { reader, span });
            }
        }
        self.forget_paths();
        self.pump(now, out);
        let asked = self.ask_those(now, out, |it| it.guid == reader);
        if asked {
            self.heartbeat.requested_one(now.mono);
        }
        self.settle(now);
    }
}
