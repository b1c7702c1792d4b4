//! Whose turn it is to receive user data: a receive thread's, or that of a thread that waits for it anyway.
//!
//! A thread of the application that sleeps in a wait costs a second wake-up for each sample: first the receive
//! thread, then it. So a receive thread that only ever wakes one and the same sleeper lends it the socket. The waiting
//! thread then sleeps in the socket, does with a datagram what the receive thread would have done, and when it leaves
//! its wait the socket is nobody's. If it does not come back within [`GRACE`], an alarm that it left wakes the
//! receive thread, which takes its socket back.
//!
//! A thread that waits for room to write is one of those: it receives the acknowledgements that make room, most of which came while
//! it wrote, so that nobody sleeps or is woken for them. It does so only while one participant answers and nothing comes for
//! readers: nobody receives as long as it writes, and each answer of many would wake it.
//!
//! A waiting thread calls nobody: events that a listener wants to hear of are left to the receive thread.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use plainsong_proto::guid::GuidPrefix;
use plainsong_proto::outbox::Event;
use plainsong_proto::time::Instant;

use super::dispatch::{LEFT_UNTOLD, ON_LOAN, is_on_loan};
use super::duty;
use super::linger::Linger;
use super::notify::Notify;
use super::patience::{Answers, Patience};
use super::walk::Walk;
use super::{Shared, placement};
use crate::base::clock;
use crate::base::config::Config;
use crate::base::locks::lock;
use crate::transport::{Alarm, Bell, Input, Received, Receiver, Traffic, Transports};

/// For so long data may be in a socket that nobody receives from, after a waiting thread left it.
const GRACE: Duration = Duration::from_millis(1);
/// A receive thread lends its socket after so many lone datagrams in a row that were awaited.
const LONE_MIN: u32 = 3;
/// Who looks so often between two datagrams does nothing else.
const POLLS_MIN: u32 = 8;
/// After loans that were of no use it takes more of them, up to so many.
const LONE_MAX: u32 = 4096;
/// A loan is of use when so many datagrams were received on it.
const USEFUL: u64 = 16;
/// Who did not have to wait so often in a row is in a flow: then two threads are better than one.
const AT_ONCE_MAX: u32 = 4;
/// Events that wait for a listener to return, at most by one batch more.
const UNTOLD_MAX: usize = 1 << 12;
/// A wait as short as that was none.
const AT_ONCE: Duration = Duration::from_micros(3);

/// What a waiting thread cannot go on without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// Samples of writers.
    Samples,
    /// Acknowledgements of readers.
    Answers,
}

/// The sockets for user data of a domain, and who receives from them.
pub(crate) struct Turns {
    state: Mutex<State>,
    /// How many are asleep, and whether the last of them waits for answers: copies for who looks without the lock.
    asleep: AtomicUsize,
    is_for_answers: AtomicBool,
    /// How often a thread found nothing to take.
    polls: AtomicU32,
    /// Some socket is lent to threads that look again and again.
    is_lent_to_polls: AtomicBool,
    desks: Vec<Desk>,
}

/// What it takes to receive from one socket.
struct Desk {
    input: Input,
    /// Locked by whose turn it is.
    hand: Mutex<Hand>,
    /// Wakes the receive thread while the socket is lent; `None`: it is never lent.
    alarm: Option<Alarm>,
}

struct Hand {
    receiver: Receiver,
    linger: Linger,
}

struct State {
    loans: Vec<Loan>,
    /// Threads in a wait that a receive thread will end.
    asleep: Vec<(Arc<Notify>, Awaited)>,
    /// What listeners have to be told, by a receive thread, and by whose participant.
    untold: Vec<(GuidPrefix, Event)>,
    stopped: bool,
}

/// Who has one socket, and how that went.
#[derive(Debug)]
struct Loan {
    holder: Holder,
    /// The alarm will go off.
    armed: bool,
    /// Datagrams that waiting threads received on it.
    received: u64,
    /// Waits in a row that were none.
    at_once: u32,
    /// The holder waited for answers of one participant, and something came for readers, or others answered.
    is_disturbed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// The receive thread.
    Thread,
    /// Nobody: the receive thread is coming.
    Called,
    /// A thread that waits.
    Waiter,
    /// Nobody: whoever comes first, the receive thread not before then.
    Nobody(Option<Instant>),
}

thread_local! {
    /// Kept for all waits of the thread.
    static BELL: RefCell<Option<Arc<Bell>>> = const { RefCell::new(None) };
}

/// On a thread of the domain, between batches: tells what was left untold while a listener waited.
#[inline]
pub(super) fn tell_rest(shared: &Shared) {
    while LEFT_UNTOLD.take() {
        shared.turns.tell(shared);
    }
}

fn bell_of_thread() -> Option<Arc<Bell>> {
    BELL.with_borrow_mut(|bell| {
        if bell.is_none() {
            *bell = Bell::new().ok().map(Arc::new);
        }
        bell.clone()
    })
}

/// Before something is taken: receives what is there when the socket was lent to threads that look again and again.
pub(crate) fn poll(shared: &Shared) {
    let turns = &shared.turns;
    if turns.is_lent_to_polls.load(Ordering::Relaxed)
        && let Some(mut turn) = turns.begin(Awaited::Samples)
    {
        turn.poll(shared);
    }
}

/// There was nothing to take. Exact numbers do not matter.
pub(crate) fn found_nothing(shared: &Shared) {
    let polls = &shared.turns.polls;
    polls.store(polls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// Sleeps while the epoch of `notify` is `seen`, receiving meanwhile when nobody else does. False when `deadline`
/// passed first.
pub(crate) fn wait(
    shared: &Shared,
    notify: &Arc<Notify>,
    seen: u32,
    deadline: Option<Instant>,
    awaited: Awaited,
) -> bool {
    if let Some(woken) = duty::wait(notify, seen, deadline) {
        return woken;
    }
    if let Some(mut turn) = shared.turns.begin(awaited)
        && let Some(woken) = turn.receive(shared, notify, seen, deadline)
    {
        return woken;
    }
    let _asleep = shared.turns.sleep(notify, awaited);
    notify.wait(seen, deadline)
}

/// Sleeps while the epoch of `notify` is `seen`, for what no socket of a domain brings. False when `deadline` passed first.
pub(crate) fn sleep(notify: &Notify, seen: u32, deadline: Option<Instant>) -> bool {
    duty::wait(notify, seen, deadline).unwrap_or_else(|| notify.wait(seen, deadline))
}

impl Turns {
    pub(crate) fn new(transport: &Transports, config: &Config) -> Self {
        // Where a receive thread was given a place, a priority or a core of its own, that is where data is received.
        let may_lend = !config.busy_poll && config.receive_cpus.is_empty() && config.receive_priority == 0;
        let desk = |input| Desk {
            input,
            hand: Mutex::new(Hand {
                receiver: transport.receiver(input),
                linger: Linger::new(config.may_linger()),
            }),
            alarm: if may_lend && transport.lends(input) { Alarm::new().ok() } else { None },
        };
        let loan =
            |_| Loan { holder: Holder::Thread, armed: false, received: 0, at_once: 0, is_disturbed: false };
        let inputs = transport.inputs().into_iter().filter(|input| matches!(input.traffic, Traffic::User(_)));
        let desks: Vec<Desk> = inputs.map(desk).collect();
        let state = State {
            loans: desks.iter().map(loan).collect(),
            asleep: Vec::new(),
            untold: Vec::new(),
            stopped: false,
        };
        Self {
            state: Mutex::new(state),
            asleep: AtomicUsize::new(0),
            is_for_answers: AtomicBool::new(false),
            polls: AtomicU32::new(0),
            is_lent_to_polls: AtomicBool::new(false),
            desks,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Receives from one input until the transports are closed: the life of a receive thread.
    pub(crate) fn run(&self, shared: &Shared, input: Input) {
        let Some(socket) = self.desks.iter().position(|desk| desk.input == input) else { return };
        let Some(desk) = self.desks.get(socket) else { return };
        let mut streak = Streak::default();
        let mut patience = Patience::default();
        while !shared.transport.is_closed() {
            self.receive(shared, desk, &mut streak, &mut patience);
            if let Some(alarm) = &desk.alarm
                && let Some(before) = self.lend(socket, alarm, streak.is_polled)
            {
                let was_useful = self.sleep_through_loan(socket, alarm, before);
                streak.enough = if was_useful { LONE_MIN } else { (2 * streak.enough).min(LONE_MAX) };
                self.tell(shared);
            }
        }
    }

    /// Receives until the socket is better lent.
    fn receive(&self, shared: &Shared, desk: &Desk, streak: &mut Streak, patience: &mut Patience) {
        let mut hand = lock(&desk.hand);
        while !shared.transport.is_closed() {
            let looks = hand.linger.looks(clock::mono);
            let mut awaited = None;
            let walk = hand.receive(|receiver, walk| {
                if duty::receives_alone() {
                    receiver.expect_one();
                }
                shared.transport.receive(desk.input, receiver, !looks, |received| {
                    if walk.datagrams == 0 {
                        awaited = streak.awaited(self);
                    }
                    walk.datagram(shared, &received);
                });
            });
            if walk.datagrams == 0 && looks {
                hand.linger.looked_in_vain();
                std::thread::yield_now();
                continue;
            }
            tell_rest(shared);
            if let Some(is_patient) = walk.judge(patience) {
                placement::be_patient(is_patient);
            }
            let is_lone = match awaited {
                Some(Awaited::Samples) => walk.datagrams == 1,
                Some(Awaited::Answers) => !walk.has_samples() && streak.is_of_one(&walk),
                None => false,
            };
            if streak.note(is_lone) && desk.alarm.is_some() {
                return;
            }
        }
    }

    /// Lends a socket to the one thread that sleeps, or that slept until it was woken just now, or to those that look
    /// again and again: how much was received on loans before.
    fn lend(&self, socket: usize, alarm: &Alarm, is_polled: bool) -> Option<u64> {
        let mut state = self.lock();
        if state.asleep.len() > 1 || state.stopped {
            return None;
        }
        let sleeper = state.asleep.first().map(|(notify, _)| Arc::clone(notify));
        let loan = state.loans.get_mut(socket)?;
        loan.holder = Holder::Nobody(clock::deadline(GRACE));
        loan.armed = true;
        (loan.at_once, loan.is_disturbed) = (0, false);
        let received = loan.received;
        alarm.set(GRACE);
        self.is_lent_to_polls.store(is_polled, Ordering::Relaxed);
        drop(state);
        if let Some(sleeper) = sleeper {
            // It looks again at what it waits for, and then takes the socket.
            sleeper.wake_all();
        }
        Some(received)
    }

    /// Sleeps until the socket is the receive thread's again: whether the loan was of use, before which so much was received on loans.
    fn sleep_through_loan(&self, socket: usize, alarm: &Alarm, before: u64) -> bool {
        loop {
            alarm.wait();
            let mut state = self.lock();
            let stopped = state.stopped;
            let Some(loan) = state.loans.get_mut(socket) else { return false };
            loan.armed = false;
            let left = match loan.holder {
                // Its receiver is not waited for when the transport has stopped.
                _ if stopped => return false,
                // Who leaves sets the alarm.
                Holder::Waiter => continue,
                Holder::Nobody(until) => until.map_or(GRACE, clock::until),
                Holder::Thread | Holder::Called => Duration::ZERO,
            };
            if left.is_zero() {
                loan.holder = Holder::Thread;
                self.is_lent_to_polls.store(false, Ordering::Relaxed);
                return !loan.is_disturbed && loan.received.wrapping_sub(before) >= USEFUL;
            }
            loan.armed = true;
            alarm.set(left);
        }
    }

    /// Tells listeners what waiting threads left for them.
    fn tell(&self, shared: &Shared) {
        let untold = std::mem::take(&mut self.lock().untold);
        for of_one in untold.chunk_by(|(one, _), (other, _)| one == other) {
            let mut events = of_one.iter().map(|(_, event)| *event).collect();
            if let Some((prefix, _)) = of_one.first()
                && let Some(participant) = shared.registry.participant(*prefix)
            {
                participant.tell(&mut events);
            }
        }
    }

    /// Leaves events of a participant to a thread of the domain. What is left twice is told once: that a status changed or that there is
    /// data does not say how much.
    pub(crate) fn leave_untold(&self, participant: GuidPrefix, events: impl Iterator<Item = Event>) {
        let mut state = self.lock();
        for event in events {
            let left = (participant, event);
            let can_wait_for_another =
                !matches!(event, Event::ParticipantChanged { .. } | Event::MismatchChanged { .. });
            if !can_wait_for_another || !state.untold.contains(&left) {
                state.untold.push(left);
            }
        }
        ON_LOAN.set(Some(true));
    }

    /// So much is untold that who waits in a listener had better not hear of more.
    pub(super) fn has_much_untold(&self) -> bool {
        self.lock().untold.len() >= UNTOLD_MAX
    }

    /// The turn to receive from a socket that is nobody's.
    fn begin(&self, awaited: Awaited) -> Option<Turn<'_>> {
        let mut state = self.lock();
        if state.stopped || is_on_loan() {
            return None;
        }
        let free = |loan: &Loan| matches!(loan.holder, Holder::Nobody(_));
        let socket = state.loans.iter().position(free)?;
        let (loan, desk) = (state.loans.get_mut(socket)?, self.desks.get(socket)?);
        loan.holder = Holder::Waiter;
        Some(Turn {
            turns: self,
            desk,
            socket,
            awaited,
            received: 0,
            at_once: loan.at_once,
            answers: Answers::default(),
            is_disturbed: false,
            call: false,
        })
    }

    /// The calling thread sleeps until a receive thread wakes it.
    fn sleep<'a>(&'a self, notify: &'a Arc<Notify>, awaited: Awaited) -> Asleep<'a> {
        let mut state = self.lock();
        state.asleep.push((Arc::clone(notify), awaited));
        self.copy_asleep(&state);
        self.call_for_all(&mut state);
        Asleep { turns: self, notify }
    }

    fn copy_asleep(&self, state: &State) {
        let is_for_answers = state.asleep.last().is_some_and(|(_, awaited)| *awaited == Awaited::Answers);
        self.asleep.store(state.asleep.len(), Ordering::Relaxed);
        self.is_for_answers.store(is_for_answers, Ordering::Relaxed);
    }

    /// Nothing is received any more: receive threads that sleep return.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        for alarm in self.desks.iter().filter_map(|desk| desk.alarm.as_ref()) {
            alarm.set(Duration::ZERO);
        }
    }

    /// In a process that was just forked: the alarms are the parent's, and so is the bell of this thread.
    #[cfg(unix)]
    pub(crate) fn abandon(&self) {
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            let alarms = self.desks.iter().filter_map(|desk| desk.alarm.as_ref());
            crate::base::fork::disconnect(alarms.map(AsRawFd::as_raw_fd));
            let _ = BELL.try_with(RefCell::take);
        }
    }

    /// Has the receive threads come for what is nobody's.
    fn call_for_all(&self, state: &mut State) {
        for (loan, desk) in state.loans.iter_mut().zip(&self.desks) {
            if matches!(loan.holder, Holder::Nobody(_)) {
                desk.call(loan);
            }
        }
    }
}

impl Hand {
    /// Receives as `f` does.
    fn receive(&mut self, f: impl FnOnce(&mut Receiver, &mut Walk)) -> Walk {
        let mut walk = Walk::default();
        f(&mut self.receiver, &mut walk);
        walk.end(&mut self.linger);
        walk
    }
}

impl Desk {
    fn call(&self, loan: &mut Loan) {
        loan.holder = Holder::Called;
        if let Some(alarm) = &self.alarm {
            alarm.set(Duration::ZERO);
        }
    }
}

/// How many lone datagrams in a row were awaited, and how many are enough to lend the socket.
struct Streak {
    lone: u32,
    /// Who sent them, if they are answers.
    answers: Answers,
    enough: u32,
    /// What [`Turns::polls`] was.
    polls: u32,
    /// The last one was awaited by threads that look again and again.
    is_polled: bool,
}

impl Default for Streak {
    fn default() -> Self {
        Self { lone: 0, answers: Answers::default(), enough: LONE_MIN, polls: 0, is_polled: false }
    }
}

impl Streak {
    /// Whether one participant sent all answers, these included.
    const fn is_of_one(&mut self, walk: &Walk) -> bool {
        self.answers = self.answers.with(walk.answers());
        self.answers.is_of_one()
    }

    /// What one thread sleeps for, or some look for again and again.
    fn awaited(&mut self, turns: &Turns) -> Option<Awaited> {
        let before = std::mem::replace(&mut self.polls, turns.polls.load(Ordering::Relaxed));
        let asleep = turns.asleep.load(Ordering::Relaxed);
        self.is_polled = asleep == 0 && self.polls.wrapping_sub(before) >= POLLS_MIN;
        match asleep {
            1 if turns.is_for_answers.load(Ordering::Relaxed) => Some(Awaited::Answers),
            1 => Some(Awaited::Samples),
            _ => self.is_polled.then_some(Awaited::Samples),
        }
    }

    /// Whether that is enough.
    fn note(&mut self, is_lone: bool) -> bool {
        self.lone = if is_lone { self.lone.saturating_add(1) } else { 0 };
        let enough = self.lone >= self.enough;
        if enough || !is_lone {
            (self.lone, self.answers) = (0, Answers::default());
        }
        enough
    }
}

/// See [`Turns::sleep`].
struct Asleep<'a> {
    turns: &'a Turns,
    notify: &'a Arc<Notify>,
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        if let Some(position) = state.asleep.iter().position(|(notify, _)| Arc::ptr_eq(notify, self.notify)) {
            state.asleep.swap_remove(position);
        }
        self.turns.copy_asleep(&state);
    }
}

/// The turn of a waiting thread.
struct Turn<'a> {
    turns: &'a Turns,
    desk: &'a Desk,
    socket: usize,
    awaited: Awaited,
    received: u64,
    at_once: u32,
    /// Who answered.
    answers: Answers,
    /// See [`Loan::is_disturbed`].
    is_disturbed: bool,
    /// The receive thread shall come.
    call: bool,
}

impl Turn<'_> {
    /// Receives until the epoch of `notify` is not `seen` any more (true) or `deadline` has passed (false); `None`
    /// when the receive thread had better do that.
    fn receive(
        &mut self,
        shared: &Shared,
        notify: &Notify,
        seen: u32,
        deadline: Option<Instant>,
    ) -> Option<bool> {
        let Some(bell) = bell_of_thread() else {
            self.call = true;
            return None;
        };
        let hung = notify.hang(&bell);
        let mut hand = lock(&self.desk.hand);
        let is_for_answers = self.awaited == Awaited::Answers;
        // What came while this thread wrote.
        while is_for_answers && !self.call && notify.epoch() == seen {
            if self.receive_some(shared, &mut hand).datagrams == 0 {
                break;
            }
        }
        while !self.call {
            let is_over = || deadline.is_some_and(|deadline| clock::mono() >= deadline);
            let began = clock::mono();
            if !is_for_answers && hand.linger.looks(|| began) && notify.epoch() == seen && !is_over() {
                self.look(shared, &mut hand, began);
                continue;
            }
            let Some(listening) = hung.listen(seen) else { return Some(true) };
            if is_over() {
                return Some(false);
            }
            let awaited = shared.transport.wait(self.desk.input, Some(&bell), deadline.map(clock::until));
            // What this thread does itself need not ring.
            drop(listening);
            match awaited {
                Ok(awaited) => {
                    if awaited.bell {
                        bell.hush();
                    }
                    if awaited.datagram {
                        let waited = clock::mono().since(began);
                        self.receive_some(shared, &mut hand);
                        self.note(waited < AT_ONCE.into());
                    }
                }
                Err(error) => self.call = error.kind() != std::io::ErrorKind::Interrupted,
            }
        }
        None
    }

    /// Receives one datagram if there is one.
    fn poll(&mut self, shared: &Shared) {
        let mut hand = lock(&self.desk.hand);
        self.receive_some(shared, &mut hand);
        self.note(self.received > 0);
    }

    /// Receives one datagram if there is one, or lets others run.
    fn look(&mut self, shared: &Shared, hand: &mut Hand, now: Instant) {
        let waited = now.since(hand.linger.since());
        if self.receive_some(shared, hand).datagrams == 0 {
            hand.linger.looked_in_vain();
            std::thread::yield_now();
        } else {
            self.note(waited < AT_ONCE.into());
        }
    }

    /// Whether a wait was none: who waits for samples in a flow had better not receive them, too.
    fn note(&mut self, at_once: bool) {
        if self.awaited == Awaited::Answers {
            return;
        }
        self.at_once = if at_once { self.at_once + 1 } else { 0 };
        self.call |= self.at_once >= AT_ONCE_MAX;
    }

    /// Receives one datagram if there is one, or the answers that are there: what they had.
    fn receive_some(&mut self, shared: &Shared, hand: &mut Hand) -> Walk {
        ON_LOAN.set(Some(false));
        let walk = hand.receive(|receiver, walk| {
            let each = |received: Received<'_>| {
                self.received += 1;
                walk.datagram(shared, &received);
            };
            if self.awaited == Awaited::Samples {
                receiver.expect_one();
            }
            shared.transport.receive(self.desk.input, receiver, false, each);
        });
        let untold = ON_LOAN.take() == Some(true);
        self.answers = self.answers.with(walk.answers());
        let is_alone = !walk.has_samples() && self.answers.is_of_one();
        self.is_disturbed |= self.awaited == Awaited::Answers && !is_alone;
        self.call |= untold || self.is_disturbed || shared.transport.is_closed();
        walk
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        // Who waits too must not wait for this thread to come back.
        let call = self.call || !state.asleep.is_empty();
        let Some(loan) = state.loans.get_mut(self.socket) else { return };
        loan.received += self.received;
        loan.at_once = self.at_once;
        loan.is_disturbed |= self.is_disturbed;
        if call {
            return self.desk.call(loan);
        }
        loan.holder = Holder::Nobody(clock::deadline(GRACE));
        if !loan.armed
            && let Some(alarm) = &self.desk.alarm
        {
            loan.armed = true;
            alarm.set(GRACE);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
