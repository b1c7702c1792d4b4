//! Liveliness by participant messages: AUTOMATIC and MANUAL_BY_PARTICIPANT (RTPS 2.5 §8.4.13, §8.7.2.2.3).

use super::builtin::ParticipantMessage;
use super::channel::Channel;
use super::participant::Participant;
use crate::guid::Guid;
use crate::outbox::Outbox;
use crate::qos::LivelinessKind;
use crate::reader::CachedSample;
use crate::stats::DropReason;
use crate::time::{Duration, Instant, Now};
use crate::tuning::discovery::{ASSERTION_INTERVAL_MIN, ASSERTIONS_PER_LEASE, MANUAL_ASSERTIONS_PER_LEASE};
use crate::writer::ChangeKind;

/// When to assert the liveliness of local writers.
#[derive(Debug, Default)]
pub(super) struct Liveliness {
    /// Between automatic assertions; `None` when no local writer asks for any.
    automatic_interval: Option<Duration>,
    next_automatic: Option<Instant>,
    /// Between manual assertions, at least; `None` when no local writer asks for any.
    manual_interval: Option<Duration>,
    last_manual: Option<Instant>,
    /// The application asserted too soon after the last message: the next one is due then.
    manual_due: Option<Instant>,
}

impl Liveliness {
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.next_automatic.into_iter().chain(self.manual_due).min()
    }

    pub(super) const fn has_manual_writers(&self) -> bool {
        self.manual_interval.is_some()
    }

    /// The local writers changed; these are the leases of those of each kind.
    fn set_leases(&mut self, now: Instant, automatic: Option<Duration>, manual: Option<Duration>) {
        let part = |lease: Duration, parts: i64| Duration(lease.0 / parts).max(ASSERTION_INTERVAL_MIN);
        self.automatic_interval = automatic.map(|lease| part(lease, ASSERTIONS_PER_LEASE));
        self.manual_interval = manual.map(|lease| part(lease, MANUAL_ASSERTIONS_PER_LEASE));
        let soonest = self.automatic_interval.and_then(|interval| now.after(interval));
        self.next_automatic = match (self.next_automatic, soonest) {
            (Some(planned), Some(soonest)) => Some(planned.min(soonest)),
            // The first assertion follows at once: a reader counts the lease from its match.
            (None, Some(_)) => Some(now),
            (_, None) => None,
        };
        if manual.is_none() {
            self.manual_due = None;
        }
    }

    fn take_automatic(&mut self, now: Instant) -> bool {
        let due = self.next_automatic.is_some_and(|at| at <= now);
        if due {
            self.next_automatic = self.automatic_interval.and_then(|interval| now.after(interval));
        }
        due
    }

    /// Whether an assertion of the application is to be sent now; if not, it is put off.
    fn assert_manual(&mut self, now: Instant) -> bool {
        let Some(interval) = self.manual_interval else { return false };
        let earliest = self.last_manual.and_then(|last| last.after(interval)).unwrap_or(now);
        if earliest > now {
            self.manual_due = Some(earliest);
            return false;
        }
        self.manual_due = None;
        self.last_manual = Some(now);
        true
    }
}

impl Participant {
    /// Local writers came, went or changed their leases.
    pub(super) fn renew_leases(&mut self, now: Now) {
        let shortest = |kind| self.matching.shortest_lease(self.config.prefix, kind);
        let automatic = shortest(LivelinessKind::Automatic);
        let manual = shortest(LivelinessKind::ManualByParticipant);
        self.liveliness.set_leases(now.mono, automatic, manual);
    }

    pub(super) fn assert_manual(&mut self, now: Now, out: &mut Outbox) {
        if self.liveliness.assert_manual(now.mono) {
            self.send_assertion(now, LivelinessKind::ManualByParticipant, out);
        }
    }

    pub(super) fn liveliness_timeout(&mut self, now: Now, out: &mut Outbox) {
        if self.liveliness.take_automatic(now.mono) {
            self.send_assertion(now, LivelinessKind::Automatic, out);
        }
        if self.liveliness.manual_due.is_some_and(|at| at <= now.mono) {
            self.assert_manual(now, out);
        }
    }

    /// Asserts the liveliness of our writers of one kind, to the local readers and to everyone else.
    fn send_assertion(&mut self, now: Now, kind: LivelinessKind, out: &mut Outbox) {
        self.matching.assert_liveliness(self.config.prefix, kind, out);
        self.enqueue_alive(kind);
        let kind = match kind {
            LivelinessKind::Automatic => ParticipantMessage::AUTOMATIC,
            _ => ParticipantMessage::MANUAL_BY_PARTICIPANT,
        };
        let message = ParticipantMessage { prefix: self.config.prefix, kind, data: Vec::new() };
        // KEEP_LAST 1 always has room for the next assertion.
        let _ = self.builtin.write(
            now,
            Channel::Messages,
            ChangeKind::Alive,
            message.key(),
            message.encode(),
            out,
        );
    }

    /// A remote participant asserted its writers.
    pub(super) fn on_participant_message(
        &mut self,
        now: Now,
        sample: &CachedSample,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        if !sample.info.valid_data {
            return Ok(());
        }
        let sender = Guid::from_bytes(sample.info.publication_handle.0).prefix;
        let message = ParticipantMessage::decode(sample.payload.as_slice())?;
        if message.prefix != sender {
            return Err(DropReason::SpoofSuspected);
        }
        let kind = match message.kind {
            ParticipantMessage::AUTOMATIC => LivelinessKind::Automatic,
            ParticipantMessage::MANUAL_BY_PARTICIPANT => LivelinessKind::ManualByParticipant,
            // Vendors have kinds of their own: they say nothing about writers.
            _ => return Ok(()),
        };
        if let Some(remote) = self.database.get_mut(sender) {
            remote.last_heard = now.mono;
        }
        self.matching.assert_liveliness(sender, kind, out);
        self.enqueue_alive_heard(sender, kind);
        Ok(())
    }
}
