//! Participants that are gone. What they had is forgotten in pieces: one that had thousands of endpoints
//! holds nobody up.

use std::collections::VecDeque;

use super::participant::Participant;
use crate::guid::{Guid, GuidPrefix};
use crate::outbox::{Event, Outbox};
use crate::time::{Instant, Now};
use crate::tuning::discovery::{DEPARTURE_COST_OF_PARTICIPANT, DEPARTURES_PER_CALL};

/// Those whose endpoints are not all forgotten, in the order in which they went.
#[derive(Debug, Default)]
pub(super) struct Departures {
    pub(super) gone: VecDeque<GuidPrefix>,
    since: Option<Instant>,
    /// Endpoints that may still be forgotten in this call.
    left: usize,
}

impl Departures {
    pub(super) const fn next_timeout(&self) -> Option<Instant> {
        self.since
    }
}

impl Participant {
    /// Forgets a participant, and as much of what it had as one call may.
    pub(super) fn forget(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) {
        self.departures.left = DEPARTURES_PER_CALL;
        self.begin_to_forget(now, prefix, out);
        self.go_on_forgetting(now, out);
    }

    fn begin_to_forget(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) {
        let Some(remote) = self.database.remove(prefix) else { return };
        self.leave_link(prefix, &remote);
        if remote.matched.is_none() {
            return;
        }
        self.enqueue_heard_gone(prefix, &remote);
        if !remote.is_of_own_process {
            self.builtin.disconnect(now, prefix, out);
        }
        self.departures.gone.push_back(prefix);
    }

    /// Forgets participants whose leases have ended, and goes on with those that went before.
    pub(super) fn forget_due(&mut self, now: Now, out: &mut Outbox) {
        self.departures.left = DEPARTURES_PER_CALL;
        self.go_on_forgetting(now, out);
        while self.departures.left > 0
            && let Some(expired) = self.database.next_expired(now.mono)
        {
            let has_lease = self.database.get(expired).is_some_and(|remote| remote.has_lease(now.mono));
            if has_lease && self.is_of_use(expired) {
                self.database.excuse(expired, now.mono);
                continue;
            }
            self.begin_to_forget(now, expired, out);
            self.go_on_forgetting(now, out);
        }
        for silent in self.database.take_silent() {
            self.send_probe(now, silent, out);
        }
    }

    fn go_on_forgetting(&mut self, now: Now, out: &mut Outbox) {
        while let Some(prefix) = self.departures.gone.front().copied() {
            let most = self.departures.left;
            if !self.forget_endpoints(prefix, most, out) {
                self.departures.left = 0;
                self.departures.since = Some(now.mono);
                return;
            }
            self.departures.gone.pop_front();
        }
        self.departures.since = None;
    }

    /// One that is gone is there again: nothing of what it had may be left.
    pub(super) fn finish_forgetting(&mut self, prefix: GuidPrefix, out: &mut Outbox) {
        if let Some(at) = self.departures.gone.iter().position(|gone| *gone == prefix) {
            self.departures.gone.remove(at);
            self.forget_endpoints(prefix, usize::MAX, out);
        }
    }

    /// Forgets up to so many endpoints of a participant that is gone. Returns whether none is left.
    fn forget_endpoints(&mut self, prefix: GuidPrefix, most: usize, out: &mut Outbox) -> bool {
        let (guids, is_all) = self.matching.some_of(prefix, most);
        self.departures.left =
            self.departures.left.saturating_sub(guids.len().max(DEPARTURE_COST_OF_PARTICIPANT));
        out.events.extend(guids.iter().map(|guid: &Guid| Event::EndpointChanged { endpoint: *guid }));
        self.matching.remove_gone(prefix, &guids, out);
        if is_all {
            self.matching.forget_types(prefix);
            out.events.push(Event::ParticipantChanged { participant: prefix.participant(), alive: false });
        }
        is_all
    }
}
