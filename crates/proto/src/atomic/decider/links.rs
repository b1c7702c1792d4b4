//! Connections to the other voters. The engine expects of each that messages arrive in order and once, or not
//! at all, and that none of an earlier connection arrives later: an old synchronization of the log would take
//! back what was accepted after it. Numbers and lives in the headers see to that; what comes out of order is
//! dropped, which is a loss like others. The order of heartbeats and proposals does not matter.

use omnipaxos::ballot_leader_election::Ballot;

use crate::atomic::decider::message::{Header, Position};
use crate::time::Instant;
use crate::tuning::decider::SILENCE;

/// What is known of another voter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    /// Its newest incarnation that was heard of, 0 before.
    pub(super) incarnation: u32,
    /// Number of the newest message from this incarnation.
    heard: u64,
    /// Number of the newest of those whose order matters.
    in_order: u64,
    /// Number of the last message to it.
    sent: u64,
    heard_at: Option<Instant>,
    /// How far its log is, as it says.
    pub(super) position: Position,
    /// The round of the last heartbeat that it has answered.
    pub(super) replied: Option<u32>,
    /// The ballot that it heeded then.
    pub(super) heeded: Ballot,
}

/// What a header says of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// It is meant for this incarnation of this voter.
    pub(super) is_connected: bool,
    /// Nothing that was sent later has come before.
    pub(super) is_newest: bool,
    /// Its sender had been silent, or is in an incarnation of which nothing was known.
    pub(super) is_news: bool,
}

impl Link {
    /// Notes a message. `None` of one that must not be looked at: it is of an earlier incarnation, or its
    /// order matters and it comes twice or late.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        header: &Header,
        order_matters: bool,
        own_incarnation: u32,
    ) -> Option<Arrival> {
        let is_of_new_incarnation = header.from > self.incarnation;
        if is_of_new_incarnation {
            *self = Self { incarnation: header.from, sent: self.sent, ..Self::default() };
        }
        if header.from < self.incarnation || order_matters && header.number <= self.in_order {
            return None;
        }
        if order_matters {
            self.in_order = header.number;
        }
        let is_newest = header.number > self.heard;
        if is_newest {
            self.heard = header.number;
            self.position = header.position;
        }
        let was_silent = self.heard_at.is_none_or(|at| now.since(at) > SILENCE);
        self.heard_at = Some(now);
        let is_connected = header.to == own_incarnation;
        Some(Arrival { is_connected, is_newest, is_news: is_of_new_incarnation || was_silent })
    }

    /// The header of the next message.
    pub(super) const fn send(&mut self, own_incarnation: u32, active_ms: u16, position: Position) -> Header {
        self.sent += 1;
        Header { active_ms, from: own_incarnation, to: self.incarnation, number: self.sent, position }
    }
}
