//! The delay-based controller of a route to other hosts: what is in flight, and the acknowledgement requests
//! that tell.
//!
//! Readers of Plainsong echo the count of the HEARTBEAT that they answer: what was sent before it is
//! delivered or lost, be it new, retransmitted or a fragment; what follows waits until the congestion window
//! has room. Of others it is known which samples they have: for these nothing waits, but the window is spread
//! over a round trip.

use std::collections::VecDeque;

use crate::backoff::Backoff;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};
use crate::tuning::writer::{
    ACK_TIMEOUT_MAX, ACK_TIMEOUT_MIN, ACK_TIMEOUT_ROUND_TRIPS, BASE_ROUND_TRIP_PERIOD, CWND_REQUEST_MANY,
    CWND_REQUEST_PARTS, CWND_REQUEST_PARTS_OF_MANY, CWND_REQUEST_PARTS_OFTEN, CWND_REQUEST_REPEAT_MIN,
    CWND_REQUEST_SPAN_MAX, CWND_REQUESTS_MAX,
};

use super::congestion_window::{CongestionWindow, RttSample};

/// What a datagram has on the wire beside its octets: Ethernet, IP and UDP.
const DATAGRAM_BYTES: usize = 66;

/// A heartbeat that wants an answer.
#[derive(Clone, Copy, Debug)]
struct AckRequest {
    count: i32,
    at: Instant,
    /// The last change that it names.
    last: SequenceNumber,
    /// What had been sent then.
    sent: u64,
}

/// What an answer of a reader shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckSample {
    /// So many octets of all that were sent have arrived to it.
    pub(crate) delivered: u64,
    /// Of the changes up to this one it has said what it lacks.
    pub(crate) last: SequenceNumber,
    /// When it was asked.
    pub(crate) asked: Option<Instant>,
}

/// The greatest change that was repeated for a reader since losses made the window smaller.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastRetransmitted {
    number: SequenceNumber,
    shrinks: u32,
}

/// The shortest round trip to one reader.
#[derive(Debug, Default)]
pub(crate) struct ShortestRtt {
    /// In this period, and in the one before.
    took: [Option<Duration>; 2],
    began: Instant,
}

impl ShortestRtt {
    /// An answer took so long: how much of that it spent in queues.
    pub(crate) fn rtt(&mut self, now: Instant, took: Duration) -> RttSample {
        if now.since(self.began) >= BASE_ROUND_TRIP_PERIOD {
            self.began = now;
            self.took = [None, self.took[0]];
        }
        self.took[0] = Some(self.took[0].map_or(took, |least| least.min(took)));
        let least = self.took.into_iter().flatten().min().unwrap_or(took);
        RttSample { took, waited: Duration(took.0 - least.0) }
    }
}

/// The path of one writer. Octets are counted from its beginning.
#[derive(Debug)]
pub(crate) struct DelayController {
    pub(crate) window: CongestionWindow,
    /// What may be unacknowledged at all.
    history_bytes: usize,
    /// Reliable readers whose answers are waited for; 0: nothing waits.
    readers: usize,
    /// All of them say which heartbeats they answer.
    all_echo_counts: bool,
    sent: u64,
    /// What has arrived to all of them, and what is given up.
    delivered: u64,
    given_up: u64,
    /// What had been sent when readers were last asked.
    requested: u64,
    ack_requests: VecDeque<AckRequest>,
    /// Something waits for room since then; each answer begins it anew.
    blocked_since: Option<Instant>,
    /// Times in a row that readers were waited for in vain.
    timeouts: u32,
    /// Times that losses made the window smaller.
    shrinks: u32,
    /// That changes up to this one are lost says nothing new.
    forgiven: SequenceNumber,
}

impl DelayController {
    pub(crate) const fn new() -> Self {
        Self {
            window: CongestionWindow::new(),
            history_bytes: usize::MAX,
            readers: 0,
            all_echo_counts: false,
            sent: 0,
            delivered: 0,
            given_up: 0,
            requested: 0,
            ack_requests: VecDeque::new(),
            blocked_since: None,
            timeouts: 0,
            shrinks: 0,
            forgiven: SequenceNumber(0),
        }
    }

    /// So many readers answer, all say what they answer or not, and their sockets hold so much.
    pub(crate) fn set_readers(
        &mut self,
        readers: usize,
        all_echo_counts: bool,
        receive_buffer_bytes: Option<usize>,
    ) {
        self.window.set_receive_buffer(receive_buffer_bytes.filter(|_| all_echo_counts));
        self.readers = readers;
        self.all_echo_counts = all_echo_counts;
        if readers == 0 {
            self.ack_requests.clear();
            self.delivered = self.sent;
            self.blocked_since = None;
        }
    }

    /// So many octets may be unacknowledged at all.
    pub(crate) const fn set_history(&mut self, bytes: usize) {
        self.history_bytes = bytes;
    }

    /// Whether readers answer, so that the window follows them.
    pub(crate) const fn is_answered(&self) -> bool {
        self.readers > 0
    }

    /// What was sent since the beginning.
    pub(crate) const fn sent_bytes(&self) -> u64 {
        self.sent
    }

    /// What of that has arrived.
    pub(crate) const fn delivered_bytes(&self) -> u64 {
        self.delivered
    }

    /// Octets that may be sent now.
    fn room(&self) -> usize {
        if self.readers == 0 || !self.all_echo_counts {
            return usize::MAX;
        }
        let on_its_way = self.sent - self.delivered.max(self.given_up);
        self.window.bytes().saturating_sub(usize::try_from(on_its_way).unwrap_or(usize::MAX))
    }

    /// Who waits to write more is woken for so many octets: what leaves the path in some milliseconds.
    pub(crate) const fn wakes_for_bytes(&self) -> usize {
        self.window.bytes().saturating_mul(2)
    }

    /// Whether what is to be sent has to wait.
    pub(crate) fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// Whether so many octets may leave at once.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.room() >= bytes
    }

    /// Something waits: for answers, if the path is full, or for the next burst, which a wider window would
    /// make longer.
    pub(crate) fn block(&mut self, now: Instant) {
        self.window.limits();
        if self.is_full() {
            self.blocked_since.get_or_insert(now);
        }
    }

    /// Whether something waits for answers to make room.
    pub(crate) const fn is_blocked(&self) -> bool {
        self.blocked_since.is_some()
    }

    /// Until when readers are waited for.
    pub(crate) fn ack_timeout(&self) -> Option<Instant> {
        let rtts = self.window.rtt().map_or(0, |rtt| rtt.0.saturating_mul(ACK_TIMEOUT_ROUND_TRIPS));
        let timeout = Backoff::new(Duration(rtts).max(ACK_TIMEOUT_MIN), ACK_TIMEOUT_MAX).pause(self.timeouts);
        self.blocked_since?.after(timeout)
    }

    /// When readers are asked again, while something waits for their answers: the request, or all answers,
    /// may be lost.
    pub(crate) fn requests_again_at(&self) -> Option<Instant> {
        let blocked_since = self.blocked_since?;
        let Some(request) = self.ack_requests.back().filter(|request| request.sent > self.delivered) else {
            // All were answered, but the window has become smaller meanwhile.
            return Some(blocked_since);
        };
        let rtts = self.window.rtt().map_or(0, |rtt| rtt.0.saturating_mul(2));
        request.at.after(Duration(rtts).max(CWND_REQUEST_REPEAT_MIN))
    }

    /// So many octets were sent in so many datagrams, new or again.
    pub(crate) const fn sent(&mut self, bytes: usize, datagrams: usize) {
        if self.is_answered() {
            self.sent += bytes.saturating_add(DATAGRAM_BYTES.saturating_mul(datagrams)) as u64;
        }
    }

    /// Whether so much was sent that readers are to be asked in the middle of a sample, or of repetitions,
    /// what has arrived.
    pub(crate) fn wants_ack_inside(&self) -> bool {
        self.all_echo_counts && self.wants_ack()
    }

    /// Whether so much was sent that readers are to be asked what they have: by parts of the window, so that
    /// while it is full a request is under way that makes room.
    pub(crate) fn wants_ack(&self) -> bool {
        let since = self.sent - self.requested;
        self.is_answered() && since > 0 && since >= self.part() as u64
    }

    /// Octets after which readers are asked.
    fn part(&self) -> usize {
        let most = self.window.bytes().min(self.history_bytes);
        if self.readers > CWND_REQUEST_MANY {
            return most / CWND_REQUEST_PARTS_OF_MANY;
        }
        let soon = self.window.spread_bytes(CWND_REQUEST_SPAN_MAX).unwrap_or(usize::MAX);
        let parts = if self.window.needs_answers() { CWND_REQUEST_PARTS_OFTEN } else { CWND_REQUEST_PARTS };
        soon.min(most / parts)
    }

    /// Readers are asked by a heartbeat of that count, up to a change, what they have of all that was sent.
    pub(crate) fn requested(&mut self, now: Instant, count: i32, last: SequenceNumber) {
        if !self.is_answered() {
            return;
        }
        self.requested = self.sent;
        if self.ack_requests.len() >= CWND_REQUESTS_MAX {
            self.ack_requests.pop_front();
        }
        self.ack_requests.push_back(AckRequest { count, at: now, last, sent: self.sent });
    }

    /// What a reader shows that names a heartbeat; or, if it names none ever, has all up to a change, or
    /// knows what is missing.
    pub(crate) fn ack_sample(
        &self,
        heartbeat: Option<i32>,
        echoes_counts: bool,
        known: SequenceNumber,
    ) -> Option<AckSample> {
        let mut ack_requests = self.ack_requests.iter();
        let (request, asked) = if let Some(count) = heartbeat {
            let request = ack_requests.rfind(|it| count.wrapping_sub(it.count) >= 0)?;
            (request, Some(request.at).filter(|_| request.count == count))
        } else if echoes_counts {
            return None;
        } else {
            let request = ack_requests.rfind(|it| it.last <= known)?;
            // It may have been asked several times, and answered any of these.
            let first = self.ack_requests.iter().find(|it| it.last == request.last);
            (request, first.map(|request| request.at))
        };
        Some(AckSample { delivered: request.sent, last: request.last, asked })
    }

    /// So much has arrived to all readers that are waited for; the answer that shows it.
    pub(crate) fn deliver(&mut self, now: Instant, delivered: u64, rtt: Option<RttSample>) {
        if delivered <= self.delivered {
            return;
        }
        let more = delivered - self.delivered;
        self.delivered = delivered;
        self.blocked_since = None;
        self.timeouts = 0;
        while self.ack_requests.pop_front_if(|request| request.sent < delivered).is_some() {}
        if self.window.left(now, (self.delivered, more), self.sent, rtt) {
            self.shrinks = self.shrinks.wrapping_add(1);
            // What else is lost of what was sent until now, tells nothing of the smaller window.
            self.forgiven = self.ack_requests.back().map_or(self.forgiven, |request| request.last);
        }
    }

    /// A reader lacks so many octets of a change, which may have been repeated for it.
    pub(crate) fn lost(&mut self, number: SequenceNumber, repeated: LastRetransmitted, bytes: usize) {
        if number > self.forgiven || self.is_repeated(number, repeated) {
            self.window.lost(bytes);
        }
    }

    /// Whether a change was repeated since losses made the window smaller: then it is lost again.
    pub(crate) fn is_repeated(&self, number: SequenceNumber, repeated: LastRetransmitted) -> bool {
        repeated.shrinks == self.shrinks && number <= repeated.number
    }

    /// A change is repeated now.
    pub(crate) fn repeats(&self, number: SequenceNumber, repeated: &mut LastRetransmitted) {
        let before = Some(repeated.number).filter(|_| repeated.shrinks == self.shrinks);
        let number = before.map_or(number, |before| before.max(number));
        *repeated = LastRetransmitted { number, shrinks: self.shrinks };
    }

    /// Readers were waited for in vain: what is on its way, changes up to `last`, is given up, so that a
    /// little may follow.
    pub(crate) const fn give_up(&mut self, last: SequenceNumber) {
        self.given_up = self.sent;
        self.forgiven = last;
        self.blocked_since = None;
        self.timeouts = self.timeouts.saturating_add(1);
        self.window.silence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant(1_000_000_000 + micros * 1_000)
    }

    /// A path with one reader that names what it answers.
    fn path() -> DelayController {
        let mut path = DelayController::new();
        path.set_readers(1, true, Some(1 << 20));
        path
    }

    #[test]
    fn an_answer_tells_what_had_been_sent_when_it_was_asked_for() {
        let mut path = path();
        for (number, count) in [(1, 10), (2, 11), (3, 12)] {
            path.sent(1_000, 1);
            path.requested(at(number), count, SequenceNumber(number.cast_signed()));
        }
        let sample = path.ack_sample(Some(11), true, SequenceNumber(9)).unwrap();
        assert_eq!(
            (sample.delivered, sample.last, sample.asked),
            (2 * 1_066, SequenceNumber(2), Some(at(2)))
        );
        // A heartbeat that is not remembered was sent after one that is.
        let sample = path.ack_sample(Some(20), true, SequenceNumber(9)).unwrap();
        assert_eq!((sample.delivered, sample.last, sample.asked), (3 * 1_066, SequenceNumber(3), None));
        assert!(path.ack_sample(None, true, SequenceNumber(3)).is_none(), "it answered none");
        assert!(path.ack_sample(Some(9), true, SequenceNumber(3)).is_none(), "it answered an old one");
    }

    #[test]
    fn who_names_no_heartbeat_answers_the_last_that_it_could() {
        let mut path = path();
        for (number, count) in [(1, 10_i32), (2, 11), (2, 12), (3, 13)] {
            path.sent(1_000, 1);
            path.requested(at(u64::from(count.unsigned_abs())), count, SequenceNumber(number));
        }
        let sample = path.ack_sample(None, false, SequenceNumber(2)).unwrap();
        assert_eq!((sample.delivered, sample.asked), (3 * 1_066, Some(at(11))));
    }

    #[test]
    fn a_full_path_is_full_until_an_answer_comes_or_a_timeout() {
        let mut path = path();
        let window = path.window.bytes();
        path.sent(window, 1);
        assert!(path.is_full() && path.wants_ack());
        path.requested(at(0), 1, SequenceNumber(1));
        path.block(at(10));
        assert_eq!(path.requests_again_at(), Some(at(1_000)));
        assert_eq!(path.ack_timeout(), Some(at(50_010)));
        path.give_up(SequenceNumber(1));
        assert!(!path.is_full(), "a little is sent all the same");
        // The next time it is waited for twice as long.
        path.sent(window, 1);
        path.block(at(60_000));
        assert_eq!(path.ack_timeout(), Some(at(160_000)));
        path.deliver(at(70_000), path.sent_bytes(), None);
        assert!(!path.is_full() && path.ack_timeout().is_none());
    }

    #[test]
    fn readers_are_asked_by_quarters_of_the_window_also_when_it_is_full() {
        let mut path = path();
        path.window.end_beginning();
        let quarter = path.window.bytes() / 4;
        for count in 0..4_i32 {
            path.sent(quarter, 0);
            assert!(path.wants_ack());
            path.requested(at(0), count, SequenceNumber(1));
            assert!(!path.wants_ack());
        }
        assert!(path.is_full());
        path.sent(100, 0);
        assert!(!path.wants_ack(), "a request is under way");
    }

    #[test]
    fn a_window_that_becomes_smaller_than_what_nobody_was_asked_for_is_asked_for_at_once() {
        let mut path = path();
        path.sent(1_000, 1);
        path.requested(at(0), 1, SequenceNumber(1));
        path.sent(3_000, 1);
        path.deliver(at(100), path.ack_sample(Some(1), true, SequenceNumber(1)).unwrap().delivered, None);
        path.window.silence();
        path.sent(crate::tuning::writer::CWND_MIN_BYTES, 1);
        path.block(at(200));
        assert!(path.is_full() && path.requests_again_at() == Some(at(200)));
    }

    #[test]
    fn readers_of_other_makes_keep_nothing_waiting() {
        let mut path = DelayController::new();
        path.set_readers(1, false, None);
        path.sent(100 << 20, 1);
        assert!(!path.is_full() && path.has_room(1 << 20));
    }

    #[test]
    fn what_takes_longer_than_the_shortest_round_trip_was_spent_in_queues() {
        let mut shortest = ShortestRtt::default();
        let ms = Duration::from_millis;
        assert_eq!(shortest.rtt(at(0), ms(5)).waited, ms(0));
        assert_eq!(shortest.rtt(at(0), ms(3)).waited, ms(0));
        assert_eq!(shortest.rtt(at(0), ms(9)).waited, ms(6));
        // Two periods later the path has changed.
        assert_eq!(shortest.rtt(at(11_000_000), ms(9)).waited, ms(6));
        assert_eq!(shortest.rtt(at(22_000_000), ms(9)).waited, ms(0));
    }

    #[test]
    fn losses_of_before_the_window_was_made_smaller_are_not_held_against_it_again() {
        let mut path = path();
        let mut repeated = LastRetransmitted::default();
        path.forgiven = SequenceNumber(10);
        path.shrinks = 1;
        assert!(!path.is_repeated(SequenceNumber(7), repeated));
        path.repeats(SequenceNumber(8), &mut repeated);
        path.repeats(SequenceNumber(6), &mut repeated);
        assert!(path.is_repeated(SequenceNumber(7), repeated), "lost again");
        path.shrinks = 2;
        assert!(!path.is_repeated(SequenceNumber(7), repeated));
    }
}
