//! How much a route may be sent, and when: one controller for each.
//!
//! Readers that share memory are sent what their rings hold, and what may be lent to them. Readers of this
//! host are sent what their sockets hold, in bursts. Readers elsewhere that acknowledge
//! follow a window of the delay of their answers, spread over a round trip; those that acknowledge nothing
//! are sent a fixed rate, in bursts.

use std::collections::VecDeque;

use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};

use super::delay::DelayController;
use super::route_kind::RouteKind;
use crate::tuning::writer::{BURST_SAVED_BYTES, BURSTS_SAVED, CHANGE_ENDS_MAX, RING_STALLED_AFTER};
use crate::writer::WriterLimits;

/// New changes that were sent to readers on this host and not acknowledged: they may all still be in the
/// buffers of sockets.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    /// Octets sent since the beginning, and how many of them were acknowledged.
    sent: u64,
    acknowledged: u64,
    /// Changes sent to their end, and what `sent` was then.
    ends: VecDeque<(SequenceNumber, u64)>,
}

impl Flight {
    fn sent(&mut self, bytes: usize, end: Option<SequenceNumber>) {
        self.sent += bytes as u64;
        if let Some(number) = end {
            if self.ends.len() >= CHANGE_ENDS_MAX {
                self.ends.pop_back();
            }
            self.ends.push_back((number, self.sent));
        }
    }

    fn acknowledge(&mut self, up_to: SequenceNumber) {
        while let Some((number, sent)) = self.ends.front().copied()
            && number <= up_to
        {
            self.acknowledged = sent;
            self.ends.pop_front();
        }
    }

    fn bytes(&self) -> usize {
        usize::try_from(self.sent - self.acknowledged).unwrap_or(usize::MAX)
    }
}

/// What was sent by memory and not read: messages in rings, and samples beside them.
#[derive(Debug)]
struct Ring {
    messages: Flight,
    lent: Flight,
    bytes_max: usize,
    lent_bytes_max: usize,
    /// What of both was sent again since a reader answered.
    again: (usize, usize),
    /// What of both had been sent when readers were last asked.
    requested: (u64, u64),
    /// Readers tell what they have read.
    is_answered: bool,
    /// When something was read last, or nothing was unread.
    progressed: Instant,
    /// One reads nothing: the others are sent what they are not known to have room for, in bursts.
    is_stalled: bool,
}

impl Ring {
    fn new(limits: &WriterLimits) -> Self {
        Self {
            messages: Flight::default(),
            lent: Flight::default(),
            bytes_max: RouteKind::Memory.burst_bytes(limits),
            lent_bytes_max: limits.lent_bytes_max,
            again: (0, 0),
            requested: (0, 0),
            is_answered: false,
            progressed: Instant(0),
            is_stalled: false,
        }
    }

    fn is_read(&self) -> bool {
        self.messages.bytes() == 0 && self.lent.bytes() == 0
    }

    fn refresh(&mut self, now: Instant) {
        if self.is_read() {
            (self.progressed, self.is_stalled, self.again) = (now, false, (0, 0));
        } else if now.since(self.progressed) >= RING_STALLED_AFTER {
            (self.is_stalled, self.again) = (true, (0, 0));
        }
    }

    fn read(&mut self, now: Instant, up_to: SequenceNumber) {
        let before = (self.messages.acknowledged, self.lent.acknowledged);
        self.messages.acknowledge(up_to);
        self.lent.acknowledge(up_to);
        self.again = (0, 0);
        if (self.messages.acknowledged, self.lent.acknowledged) != before {
            (self.progressed, self.is_stalled) = (now, false);
        }
    }

    /// Whether there is room for one message more, in half of each ring at the least.
    fn has_room(&self, bytes: usize) -> bool {
        !self.is_answered
            || self.messages.bytes() + self.again.0 + bytes <= self.bytes_max
                && self.lent.bytes() + self.again.1 < self.lent_bytes_max
    }

    /// By halves of what has room.
    fn wants_ack(&self) -> bool {
        let since = |flight: &Flight, requested| flight.sent - requested;
        self.is_answered
            && (since(&self.messages, self.requested.0) >= self.bytes_max as u64 / 2
                || since(&self.lent, self.requested.1) >= self.lent_bytes_max as u64 / 2)
    }
}

/// What bounds the octets in flight.
#[derive(Debug)]
enum Window {
    /// The rings of readers that share memory.
    Ring(Ring),
    /// The sockets of readers on this host.
    Local(Flight),
    /// The path to other hosts, as the delay of answers tells; while nobody answers there is a fixed rate.
    Delay(DelayController),
}

/// The controller of one route.
#[derive(Debug)]
pub(crate) struct Controller {
    window: Window,
    /// Octets of a burst, and how long it lasts.
    burst_bytes: usize,
    burst_interval: Duration,
    /// What is left of the burst. Below 0: the last datagram was more than that.
    left: isize,
    burst_began: Instant,
    burst_end: Instant,
}

impl Controller {
    pub(crate) fn new(kind: RouteKind, limits: &WriterLimits) -> Self {
        let window = match kind {
            RouteKind::Memory => Window::Ring(Ring::new(limits)),
            RouteKind::SameHost => Window::Local(Flight::default()),
            RouteKind::Remote => Window::Delay(DelayController::new()),
        };
        Self {
            window,
            burst_bytes: kind.burst_bytes(limits),
            burst_interval: limits.burst_interval,
            left: 0,
            burst_began: Instant(0),
            burst_end: Instant(0),
        }
    }

    /// Begins the next burst when it is time.
    pub(crate) fn refresh(&mut self, now: Instant) {
        if let Window::Ring(ring) = &mut self.window {
            ring.refresh(now);
        }
        if now < self.burst_end {
            return;
        }
        let bytes = |bytes| isize::try_from(bytes).unwrap_or(isize::MAX);
        self.left = match self.spread(now) {
            Some((since, one)) => {
                let most = one.saturating_mul(BURSTS_SAVED).max(BURST_SAVED_BYTES);
                self.left.saturating_add(bytes(since)).min(bytes(most))
            }
            None => bytes(self.burst_bytes),
        };
        self.burst_began = now;
        self.burst_end = now.after(self.burst_interval).unwrap_or(now);
    }

    /// Octets of the window, spread over a round trip, since the burst began and in one.
    fn spread(&self, now: Instant) -> Option<(usize, usize)> {
        let window = &self.delay().filter(|delay| delay.is_answered())?.window;
        Some((window.spread_bytes(now.since(self.burst_began))?, window.spread_bytes(self.burst_interval)?))
    }

    /// Readers on this host acknowledge what they have: as much may be in flight as their sockets hold.
    pub(crate) fn widen(&mut self, window_bytes: usize) {
        let room = isize::try_from(window_bytes.saturating_sub(self.in_flight())).unwrap_or(isize::MAX);
        self.left = room.max(self.left);
    }

    /// Octets of new changes that were sent to readers on this host and not acknowledged.
    pub(crate) fn in_flight(&self) -> usize {
        match &self.window {
            Window::Local(flight) => flight.bytes(),
            Window::Ring(_) | Window::Delay(_) => 0,
        }
    }

    /// Everyone has all changes up to this one.
    pub(crate) fn acknowledged(&mut self, up_to: SequenceNumber) {
        if let Window::Local(flight) = &mut self.window {
            flight.acknowledge(up_to);
        }
    }

    /// Octets of new changes were sent in so many datagrams; `end`: the last of which this was the end.
    pub(crate) fn sent(&mut self, (bytes, datagrams): (usize, usize), end: Option<SequenceNumber>) {
        self.left = self.left.saturating_sub_unsigned(bytes);
        match &mut self.window {
            Window::Ring(ring) if ring.is_answered => ring.messages.sent(bytes, end),
            Window::Ring(_) => {}
            Window::Local(flight) => flight.sent(bytes, end),
            Window::Delay(delay) => delay.sent(bytes, datagrams),
        }
    }

    /// Beside them so many octets were lent.
    pub(crate) fn lent(&mut self, bytes: usize, end: Option<SequenceNumber>) {
        if let Window::Ring(ring) = &mut self.window
            && ring.is_answered
            && bytes > 0
        {
            ring.lent.sent(bytes, end);
        }
    }

    /// So many reliable readers are reached by it.
    pub(crate) fn set_reliable(&mut self, readers: usize) {
        if let Window::Ring(ring) = &mut self.window {
            ring.is_answered = readers > 0;
            if readers == 0 {
                (ring.messages, ring.lent) = (Flight::default(), Flight::default());
                (ring.again, ring.requested, ring.is_stalled) = ((0, 0), (0, 0), false);
            }
        }
    }

    /// All readers that are reached by memory have read what holds the changes up to this one.
    pub(crate) fn read(&mut self, now: Instant, up_to: SequenceNumber) {
        if let Window::Ring(ring) = &mut self.window {
            ring.read(now, up_to);
        }
    }

    /// Readers were asked what they have.
    pub(crate) const fn requested(&mut self) {
        if let Window::Ring(ring) = &mut self.window {
            ring.requested = (ring.messages.sent, ring.lent.sent);
        }
    }

    /// Octets of what had been sent before were sent in so many datagrams.
    pub(crate) fn sent_again(&mut self, (bytes, datagrams): (usize, usize)) {
        self.left = self.left.saturating_sub_unsigned(bytes);
        match &mut self.window {
            Window::Ring(ring) => ring.again.0 += bytes,
            Window::Local(_) => {}
            Window::Delay(delay) => delay.sent(bytes, datagrams),
        }
    }

    /// Beside them so many octets were lent.
    pub(crate) const fn lent_again(&mut self, bytes: usize) {
        if let Window::Ring(ring) = &mut self.window {
            ring.again.1 += bytes;
        }
    }

    /// Whether more may be sent now: the burst is not over, and the window has room.
    pub(crate) fn may_send(&self) -> bool {
        match &self.window {
            Window::Ring(ring) => ring.has_room(1) || ring.is_stalled && self.left > 0,
            Window::Local(_) => self.left > 0,
            Window::Delay(delay) => self.left > 0 && !delay.is_full(),
        }
    }

    /// Whether something waits until answers make room in the window; [`Self::due`] tells when readers are
    /// asked again.
    pub(crate) fn waits_for_answers(&self) -> bool {
        self.delay().is_some_and(|delay| delay.is_blocked() && delay.is_full())
    }

    /// Whether so many octets of short changes may leave at once: bursts within this host, and at a fixed
    /// rate, are of long ones.
    pub(crate) fn admits(&self, bytes: usize) -> bool {
        if let Window::Ring(ring) = &self.window {
            return ring.has_room(bytes) || ring.is_stalled && self.left > 0;
        }
        self.delay().is_none_or(|delay| !delay.is_answered() || self.may_send() && delay.has_room(bytes))
    }

    /// Something waits until more may be sent.
    pub(crate) fn block(&mut self, now: Instant) {
        if let Window::Delay(delay) = &mut self.window {
            delay.block(now);
        }
    }

    /// The delay-based one, of a route to other hosts.
    pub(crate) const fn delay(&self) -> Option<&DelayController> {
        match &self.window {
            Window::Ring(_) | Window::Local(_) => None,
            Window::Delay(delay) => Some(delay),
        }
    }

    pub(crate) const fn delay_mut(&mut self) -> Option<&mut DelayController> {
        match &mut self.window {
            Window::Ring(_) | Window::Local(_) => None,
            Window::Delay(delay) => Some(delay),
        }
    }

    /// Whether a window that follows answers bounds everything that is sent.
    pub(crate) fn is_windowed(&self) -> bool {
        self.delay().is_some_and(DelayController::is_answered)
    }

    /// Whether so much was sent that readers are to be asked what they have.
    pub(crate) fn wants_ack(&self) -> bool {
        if let Window::Ring(ring) = &self.window {
            return ring.wants_ack();
        }
        self.delay().is_some_and(DelayController::wants_ack)
    }

    /// Whether they are to be asked in the middle of a sample, or of retransmissions.
    pub(crate) fn wants_ack_inside(&self) -> bool {
        self.delay().is_some_and(DelayController::wants_ack_inside)
    }

    /// When the next burst begins.
    pub(crate) const fn burst_end(&self) -> Instant {
        self.burst_end
    }

    /// When readers that make no room are asked again, or given up.
    pub(crate) fn due(&self) -> Option<Instant> {
        if let Window::Ring(ring) = &self.window {
            let waits = !ring.is_stalled && !ring.has_room(1) && !ring.is_read();
            return ring.progressed.after(RING_STALLED_AFTER).filter(|_| waits);
        }
        let delay = self.delay()?;
        let end = delay.ack_timeout()?;
        Some(delay.requests_again_at().map_or(end, |at| at.min(end)))
    }
}
