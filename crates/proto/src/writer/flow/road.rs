//! What is on its way to the readers on other hosts: what was sent, what has left the road since, and when they were asked.
//!
//! Readers of our like say which heartbeat they answer: what was sent before it has left the road, be it new or repeated, a
//! fragment, or lost; what follows waits until there is room. Of others it is known which samples they have: for these nothing
//! waits, but the window is spread over the time that their answers take.

use std::collections::VecDeque;

use crate::backoff::Backoff;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};

use super::window::{Trip, Window};

/// What a datagram has on the road beside its octets: Ethernet, IP and UDP.
const DATAGRAM_BYTES: usize = 66;
/// Questions that are remembered.
const QUESTIONS_MAX: usize = 256;
/// How long readers that answer nothing are waited for: at least, at most, and in round trips.
const PATIENCE_LEAST: Duration = Duration::from_millis(50);
const PATIENCE_MOST: Duration = Duration::from_secs(1);
const PATIENCE_TRIPS: i64 = 4;
/// They are asked again after two round trips, and this at least.
const ASK_AGAIN_LEAST: Duration = Duration::from_millis(1);
/// Readers are asked when so large a part of the window was sent since; many readers, more rarely.
const PARTS_ASKED: usize = 4;
const PARTS_ASKED_OF_MANY: usize = 2;
const MANY: usize = 4;
/// While the window grows with each answer, and on a road that loses some: also questions and answers, which tell what is missing.
const PARTS_ASKED_OFTEN: usize = 24;
/// Few of them are asked on a long road when so much was sent since as leaves it in that time: who sends a quarter of a window at
/// once makes others wait for longer than the window is to, and an empty queue for itself.
const PART_MOST: Duration = Duration::from_millis(1);
/// The shortest round trip is looked for anew so often: roads change.
const BASE_PERIOD: Duration = Duration::from_secs(10);

/// A heartbeat that wants an answer.
#[derive(Clone, Copy, Debug)]
struct Question {
    count: i32,
    at: Instant,
    /// The last change that it names.
    last: SequenceNumber,
    /// What had been sent then.
    sent: u64,
}

/// What an answer of a reader shows.
#[derive(Clone, Copy, Debug)]
pub(in crate::writer) struct Told {
    /// So many octets of all that were sent have left the road to it.
    pub(in crate::writer) left: u64,
    /// Of the changes up to this one it has said what it lacks.
    pub(in crate::writer) last: SequenceNumber,
    /// When it was asked.
    pub(in crate::writer) asked: Option<Instant>,
}

/// The greatest change that was repeated for a reader since losses made the window smaller.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::writer) struct LastRepeated {
    number: SequenceNumber,
    shrinks: u32,
}

/// The shortest round trip to one reader.
#[derive(Debug, Default)]
pub(in crate::writer) struct Shortest {
    /// In this period, and in the one before.
    took: [Option<Duration>; 2],
    began: Instant,
}

impl Shortest {
    /// An answer took so long: how much of that it spent in queues.
    pub(in crate::writer) fn trip(&mut self, now: Instant, took: Duration) -> Trip {
        if now.since(self.began) >= BASE_PERIOD {
            self.began = now;
            self.took = [None, self.took[0]];
        }
        self.took[0] = Some(self.took[0].map_or(took, |least| least.min(took)));
        let least = self.took.into_iter().flatten().min().unwrap_or(took);
        Trip { took, waited: Duration(took.0 - least.0) }
    }
}

/// The road of one writer. Octets are counted from its beginning.
#[derive(Debug)]
pub(in crate::writer) struct Road {
    pub(in crate::writer) window: Window,
    /// What may be unacknowledged at all.
    history_bytes: usize,
    /// Reliable readers whose answers are waited for; 0: nothing waits.
    readers: usize,
    /// All of them say which heartbeats they answer.
    all_name_questions: bool,
    sent: u64,
    /// What has left the road to all of them, and what is given up.
    left: u64,
    given_up: u64,
    /// What had been sent when readers were last asked.
    asked: u64,
    questions: VecDeque<Question>,
    /// Something waits for room since then; each answer begins it anew.
    closed: Option<Instant>,
    /// Times in a row that readers were waited for in vain.
    silences: u32,
    /// Times that losses made the window smaller.
    shrinks: u32,
    /// That changes up to this one are lost says nothing new.
    forgiven: SequenceNumber,
}

impl Road {
    pub(in crate::writer) const fn new() -> Self {
        Self {
            window: Window::new(),
            history_bytes: usize::MAX,
            readers: 0,
            all_name_questions: false,
            sent: 0,
            left: 0,
            given_up: 0,
            asked: 0,
            questions: VecDeque::new(),
            closed: None,
            silences: 0,
            shrinks: 0,
            forgiven: SequenceNumber(0),
        }
    }

    /// So many readers answer, all say what they answer or not, and their sockets hold so much.
    pub(in crate::writer) fn set_readers(
        &mut self,
        readers: usize,
        all_name_questions: bool,
        hold_bytes: Option<usize>,
    ) {
        self.window.set_hold(hold_bytes.filter(|_| all_name_questions));
        self.readers = readers;
        self.all_name_questions = all_name_questions;
        if readers == 0 {
            self.questions.clear();
            self.left = self.sent;
            self.closed = None;
        }
    }

    /// So many octets may be unacknowledged at all.
    pub(in crate::writer) const fn set_history(&mut self, bytes: usize) {
        self.history_bytes = bytes;
    }

    /// Whether readers answer, so that the window follows them.
    pub(in crate::writer) const fn is_answered(&self) -> bool {
        self.readers > 0
    }

    /// What was sent since the beginning.
    pub(in crate::writer) const fn sent_bytes(&self) -> u64 {
        self.sent
    }

    /// What of that has left the road.
    pub(in crate::writer) const fn left_bytes(&self) -> u64 {
        self.left
    }

    /// Octets that may be sent now.
    fn room(&self) -> usize {
        if self.readers == 0 || !self.all_name_questions {
            return usize::MAX;
        }
        let on_its_way = self.sent - self.left.max(self.given_up);
        self.window.bytes().saturating_sub(usize::try_from(on_its_way).unwrap_or(usize::MAX))
    }

    /// Who waits to write more is woken for so many octets: what leaves the road in some milliseconds.
    pub(in crate::writer) const fn wakes_for(&self) -> usize {
        self.window.bytes().saturating_mul(2)
    }

    /// Whether what is to be sent has to wait.
    pub(in crate::writer) fn is_closed(&self) -> bool {
        self.room() == 0
    }

    /// Whether so many octets may leave at once.
    pub(in crate::writer) fn has_room(&self, bytes: usize) -> bool {
        self.room() >= bytes
    }

    /// Something waits: for answers, if the road is closed, or for the next burst, which a wider window would make longer.
    pub(in crate::writer) fn wait(&mut self, now: Instant) {
        self.window.limits();
        if self.is_closed() {
            self.closed.get_or_insert(now);
        }
    }

    /// Whether something waits for answers to make room.
    pub(in crate::writer) const fn is_waited_for(&self) -> bool {
        self.closed.is_some()
    }

    /// Until when readers are waited for.
    pub(in crate::writer) fn patience_end(&self) -> Option<Instant> {
        let trips = self.window.trip().map_or(0, |trip| trip.0.saturating_mul(PATIENCE_TRIPS));
        let patience = Backoff::new(Duration(trips).max(PATIENCE_LEAST), PATIENCE_MOST).pause(self.silences);
        self.closed?.after(patience)
    }

    /// When readers are asked again, while something waits for their answers: the question, or all answers, may be lost.
    pub(in crate::writer) fn asks_again(&self) -> Option<Instant> {
        let closed = self.closed?;
        let Some(question) = self.questions.back().filter(|question| question.sent > self.left) else {
            // All were answered, but the window has become smaller meanwhile.
            return Some(closed);
        };
        let trips = self.window.trip().map_or(0, |trip| trip.0.saturating_mul(2));
        question.at.after(Duration(trips).max(ASK_AGAIN_LEAST))
    }

    /// So many octets were sent in so many datagrams, new or again.
    pub(in crate::writer) const fn sent(&mut self, bytes: usize, datagrams: usize) {
        if self.is_answered() {
            self.sent += bytes.saturating_add(DATAGRAM_BYTES.saturating_mul(datagrams)) as u64;
        }
    }

    /// Whether so much was sent that readers are to be asked in the middle of a sample, or of repetitions, what has arrived.
    pub(in crate::writer) fn wants_answer_inside(&self) -> bool {
        self.all_name_questions && self.wants_answer()
    }

    /// Whether so much was sent that readers are to be asked what they have: by parts of the window, so that while it is full a
    /// question is under way that makes room.
    pub(in crate::writer) fn wants_answer(&self) -> bool {
        self.wants_answer_after(0)
    }

    /// The same when so many octets more will have been sent.
    pub(in crate::writer) fn wants_answer_after(&self, to_come: usize) -> bool {
        let since = self.sent - self.asked + to_come as u64;
        self.is_answered() && since > 0 && since >= self.part() as u64
    }

    /// Octets after which readers are asked.
    fn part(&self) -> usize {
        let most = self.window.bytes().min(self.history_bytes);
        if self.readers > MANY {
            return most / PARTS_ASKED_OF_MANY;
        }
        let soon = self.window.spread_bytes(PART_MOST).unwrap_or(usize::MAX);
        let parts = if self.window.needs_answers() { PARTS_ASKED_OFTEN } else { PARTS_ASKED };
        soon.min(most / parts)
    }

    /// Readers are asked by a heartbeat of that count, up to a change, what they have of all that was sent.
    pub(in crate::writer) fn asked(&mut self, now: Instant, count: i32, last: SequenceNumber) {
        if !self.is_answered() {
            return;
        }
        self.asked = self.sent;
        if self.questions.len() >= QUESTIONS_MAX {
            self.questions.pop_front();
        }
        self.questions.push_back(Question { count, at: now, last, sent: self.sent });
    }

    /// What a reader shows that names a heartbeat; or, if it names none ever, has all up to a change, or knows what is missing.
    pub(in crate::writer) fn told(
        &self,
        heartbeat: Option<i32>,
        names_questions: bool,
        known: SequenceNumber,
    ) -> Option<Told> {
        let mut questions = self.questions.iter();
        let (question, asked) = if let Some(count) = heartbeat {
            let question = questions.rfind(|it| count.wrapping_sub(it.count) >= 0)?;
            (question, Some(question.at).filter(|_| question.count == count))
        } else if names_questions {
            return None;
        } else {
            let question = questions.rfind(|it| it.last <= known)?;
            // It may have been asked several times, and answered any of these.
            let first = self.questions.iter().find(|it| it.last == question.last);
            (question, first.map(|question| question.at))
        };
        Some(Told { left: question.sent, last: question.last, asked })
    }

    /// So much has left the road to all readers that are waited for; the answer that shows it.
    pub(in crate::writer) fn leave(&mut self, now: Instant, left: u64, trip: Option<Trip>) {
        if left <= self.left {
            return;
        }
        let more = left - self.left;
        self.left = left;
        self.closed = None;
        self.silences = 0;
        while self.questions.pop_front_if(|question| question.sent < left).is_some() {}
        if self.window.left(now, (self.left, more), self.sent, trip) {
            self.shrinks = self.shrinks.wrapping_add(1);
            // What else is lost of what was sent until now, tells nothing of the smaller window.
            self.forgiven = self.questions.back().map_or(self.forgiven, |question| question.last);
        }
    }

    /// A reader lacks so many octets of a change, which may have been repeated for it.
    pub(in crate::writer) fn lost(&mut self, number: SequenceNumber, repeated: LastRepeated, bytes: usize) {
        if number > self.forgiven || self.is_repeated(number, repeated) {
            self.window.lost(bytes);
        }
    }

    /// Whether a change was repeated since losses made the window smaller: then it is lost again.
    pub(in crate::writer) fn is_repeated(&self, number: SequenceNumber, repeated: LastRepeated) -> bool {
        repeated.shrinks == self.shrinks && number <= repeated.number
    }

    /// A change is repeated now.
    pub(in crate::writer) fn repeats(&self, number: SequenceNumber, repeated: &mut LastRepeated) {
        let before = Some(repeated.number).filter(|_| repeated.shrinks == self.shrinks);
        let number = before.map_or(number, |before| before.max(number));
        *repeated = LastRepeated { number, shrinks: self.shrinks };
    }

    /// Readers were waited for in vain: what is on its way, changes up to `last`, is given up, so that a little may follow.
    pub(in crate::writer) const fn give_up(&mut self, last: SequenceNumber) {
        self.given_up = self.sent;
        self.forgiven = last;
        self.closed = None;
        self.silences = self.silences.saturating_add(1);
        self.window.silence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant(1_000_000_000 + micros * 1_000)
    }

    /// A road with one reader that names what it answers.
    fn road() -> Road {
        let mut road = Road::new();
        road.set_readers(1, true, Some(1 << 20));
        road
    }

    #[test]
    fn an_answer_tells_what_had_been_sent_when_it_was_asked_for() {
        let mut road = road();
        for (number, count) in [(1, 10), (2, 11), (3, 12)] {
            road.sent(1_000, 1);
            road.asked(at(number), count, SequenceNumber(number.cast_signed()));
        }
        let told = road.told(Some(11), true, SequenceNumber(9)).unwrap();
        assert_eq!((told.left, told.last, told.asked), (2 * 1_066, SequenceNumber(2), Some(at(2))));
        // A heartbeat that is not remembered was sent after one that is.
        let told = road.told(Some(20), true, SequenceNumber(9)).unwrap();
        assert_eq!((told.left, told.last, told.asked), (3 * 1_066, SequenceNumber(3), None));
        assert!(road.told(None, true, SequenceNumber(3)).is_none(), "it answered none");
        assert!(road.told(Some(9), true, SequenceNumber(3)).is_none(), "it answered an old one");
    }

    #[test]
    fn who_names_no_heartbeat_answers_the_last_that_it_could() {
        let mut road = road();
        for (number, count) in [(1, 10_i32), (2, 11), (2, 12), (3, 13)] {
            road.sent(1_000, 1);
            road.asked(at(u64::from(count.unsigned_abs())), count, SequenceNumber(number));
        }
        let told = road.told(None, false, SequenceNumber(2)).unwrap();
        assert_eq!((told.left, told.asked), (3 * 1_066, Some(at(11))));
    }

    #[test]
    fn a_full_road_is_closed_until_an_answer_comes_or_patience_ends() {
        let mut road = road();
        let window = road.window.bytes();
        road.sent(window, 1);
        assert!(road.is_closed() && road.wants_answer());
        road.asked(at(0), 1, SequenceNumber(1));
        road.wait(at(10));
        assert_eq!(road.asks_again(), Some(at(1_000)));
        assert_eq!(road.patience_end(), Some(at(50_010)));
        road.give_up(SequenceNumber(1));
        assert!(!road.is_closed(), "a little is sent all the same");
        // The next time it is waited for twice as long.
        road.sent(window, 1);
        road.wait(at(60_000));
        assert_eq!(road.patience_end(), Some(at(160_000)));
        road.leave(at(70_000), road.sent_bytes(), None);
        assert!(!road.is_closed() && road.patience_end().is_none());
    }

    #[test]
    fn readers_are_asked_by_quarters_of_the_window_also_when_it_is_full() {
        let mut road = road();
        road.window.end_beginning();
        let quarter = road.window.bytes() / 4;
        for count in 0..4_i32 {
            road.sent(quarter, 0);
            assert!(road.wants_answer());
            road.asked(at(0), count, SequenceNumber(1));
            assert!(
                !road.wants_answer() && !road.wants_answer_after(100) && road.wants_answer_after(quarter)
            );
        }
        assert!(road.is_closed());
        road.sent(100, 0);
        assert!(!road.wants_answer(), "a question is under way");
    }

    #[test]
    fn a_window_that_becomes_smaller_than_what_nobody_was_asked_for_is_asked_for_at_once() {
        let mut road = road();
        road.sent(1_000, 1);
        road.asked(at(0), 1, SequenceNumber(1));
        road.sent(3_000, 1);
        road.leave(at(100), road.told(Some(1), true, SequenceNumber(1)).unwrap().left, None);
        road.window.silence();
        road.sent(super::super::window::LEAST_BYTES, 1);
        road.wait(at(200));
        assert!(road.is_closed() && road.asks_again() == Some(at(200)));
    }

    #[test]
    fn readers_of_other_makes_keep_nothing_waiting() {
        let mut road = Road::new();
        road.set_readers(1, false, None);
        road.sent(100 << 20, 1);
        assert!(!road.is_closed() && road.has_room(1 << 20));
    }

    #[test]
    fn what_takes_longer_than_the_shortest_round_trip_was_spent_in_queues() {
        let mut shortest = Shortest::default();
        let ms = Duration::from_millis;
        assert_eq!(shortest.trip(at(0), ms(5)).waited, ms(0));
        assert_eq!(shortest.trip(at(0), ms(3)).waited, ms(0));
        assert_eq!(shortest.trip(at(0), ms(9)).waited, ms(6));
        // Two periods later the road has changed.
        assert_eq!(shortest.trip(at(11_000_000), ms(9)).waited, ms(6));
        assert_eq!(shortest.trip(at(22_000_000), ms(9)).waited, ms(0));
    }

    #[test]
    fn losses_of_before_the_window_was_made_smaller_are_not_held_against_it_again() {
        let mut road = road();
        let mut repeated = LastRepeated::default();
        road.forgiven = SequenceNumber(10);
        road.shrinks = 1;
        assert!(!road.is_repeated(SequenceNumber(7), repeated));
        road.repeats(SequenceNumber(8), &mut repeated);
        road.repeats(SequenceNumber(6), &mut repeated);
        assert!(road.is_repeated(SequenceNumber(7), repeated), "lost again");
        road.shrinks = 2;
        assert!(!road.is_repeated(SequenceNumber(7), repeated));
    }
}
