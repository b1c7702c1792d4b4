//! Samples of which the application lends the octets while it writes ([`Lent`]).

use crate::instance::Key;
use crate::lent::Lent;
use crate::outbox::Outbox;
use crate::payload::{NewPayload, Payload};
use crate::seq::SequenceNumber;
use crate::time::{Instant, Now, Time};

use crate::writer::flow::route_kind::RouteKind;
use crate::writer::record::change::ChangeKind;
use crate::writer::{WriteError, Writer};

impl Writer {
    /// As [`Self::write_from`], of a sample whose octets are partly `lent`: the driver sends what this leaves
    /// with these in their place ([`Outbox::slices_lent`]), and then calls [`Self::settle_lent`]. Where that
    /// would serve nobody they are copied first.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_lent(
        &mut self,
        now: Now,
        (key, payload): (Key, &mut Payload),
        lent: &Lent<'_>,
        source_timestamp: Time,
        out: &mut Outbox,
    ) -> Result<SequenceNumber, WriteError> {
        if !self.borrows(now.mono) {
            lent.fill(payload);
        }
        let payload = NewPayload::Payload(payload);
        self.write_from(now, ChangeKind::Alive, key, payload, source_timestamp, out)
    }

    /// Whether a long sample may be written without its octets: all readers are on this host, none filters,
    /// and nothing waits. Then datagrams reference the payload, and nobody looks into it or copies of it
    /// until they have left. In a flow nobody is served sooner, and what was copied first is copied faster by
    /// the kernel: only a sample that follows a pause.
    #[must_use]
    pub fn borrows(&self, now: Instant) -> bool {
        !self.proxies.is_filtering()
            && self.routes.of(RouteKind::Remote).is_empty()
            && self.routes.of(RouteKind::Memory).is_empty()
            && !self.routes.of(RouteKind::SameHost).is_empty()
            && self.batch.follows_pause(now, &self.config.limits)
            && self.routes.unsent().is_none()
            && !self.holds()
    }

    /// Copies what was lent, if the last change wants it: to be called when its datagrams have left, before
    /// anything else is. What is left of them follows with the copy.
    pub fn settle_lent(&mut self, lent: &Lent<'_>) {
        let begun = self
            .routes
            .of_mut(RouteKind::SameHost)
            .queue
            .begun_payload()
            .filter(|payload| lent.is_of(payload));
        let held = self.history.last_payload().filter(|payload| lent.is_of(payload));
        match (held, begun) {
            (Some(held), Some(begun)) => {
                // The copy is made where only one has it.
                *begun = Payload::empty();
                lent.fill(held);
                *begun = held.clone();
            }
            (Some(payload), None) | (None, Some(payload)) => lent.fill(payload),
            (None, None) => {}
        }
    }
}
