//! Connections to the other voters. The engine expects of each that messages arrive in order and once, or not
//! at all, and that none of an earlier connection arrives later: an old synchronization of the log would take
//! back what was accepted after it. Numbers and lives in the headers see to that; what comes out of order
//! is dropped, which is a loss like others.

use crate::atomic::decider::message::{Header, Position};
use crate::time::Instant;
use crate::tuning::decider::SILENCE;

/// What is known of another voter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    /// Its newest life that was heard of, 0 before.
    pub(super) life: u32,
    /// Number of the newest message from this life.
    heard: u64,
    /// Number of the last message to it.
    sent: u64,
    heard_at: Option<Instant>,
    /// How far its log is, as it says.
    pub(super) position: Position,
    /// The round of the last heartbeat that it has answered.
    pub(super) replied: Option<u32>,
}

/// What a header says of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It comes twice or late: it must not be looked at.
    Stale,
    /// It is meant for another life of this voter, or for anyone.
    Stranger,
    /// It is part of a connection.
    Connected,
}

impl Link {
    /// Notes a message; also says whether the voter had been silent, or is another than before.
    pub(super) fn receive(&mut self, now: Instant, header: &Header, own_life: u32) -> (Arrival, bool) {
        if header.from < self.life || header.from == self.life && header.number <= self.heard {
            return (Arrival::Stale, false);
        }
        let is_new = header.from > self.life;
        if is_new {
            *self = Self { life: header.from, sent: self.sent, ..Self::default() };
        }
        self.heard = header.number;
        let was_silent = self.heard_at.is_none_or(|at| now.since(at) > SILENCE);
        self.heard_at = Some(now);
        self.position = header.position;
        let arrival = if header.to == own_life { Arrival::Connected } else { Arrival::Stranger };
        (arrival, is_new || was_silent)
    }

    /// The header of the next message.
    pub(super) const fn send(&mut self, own_life: u32, active_ms: u16, position: Position) -> Header {
        self.sent += 1;
        Header { active_ms, from: own_life, to: self.life, number: self.sent, position }
    }
}
