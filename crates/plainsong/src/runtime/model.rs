//! The orderings of threads that are made by hand, under a model checker: many schedules of a few threads,
//! chosen at random and by PCT. `cargo test -p plainsong --lib --features shuttle model` runs them; a failure
//! prints a schedule that `shuttle::replay` repeats.
//!
//! No wake-up is lost and nothing waits for ever (a run that cannot go on fails, and time saves nobody), each
//! delegated call is made once, a deadline that moved earlier is noticed, and an input is received from by
//! one thread at a time, and by one always. With notifications that are lost on purpose each model fails, so
//! it looks where it should.
//!
//! What is new in the files that take their atomics, locks and clock from `base/sync.rs` needs a story here.
//! The checker knows sequentially consistent memory only: orderings weaker than `SeqCst` need an argument in
//! a comment.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use plainsong_proto::guid::Guid;
use plainsong_proto::time::Instant;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use super::deadline::Deadline;
use super::delegation::Delegating;
use super::notify::{Notify, Wake};
use super::receive::owner::{Owned, Owners, WakeUp, Wanted};
use super::timer::Timer;
use crate::base::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use crate::base::sync::{self, Condvar, Mutex, lock};

/// Schedules of each kind.
const SCHEDULES: usize = 6_000;
/// How often PCT lets a thread of lower priority go first.
const PCT_DEPTH: usize = 3;

fn holds(story: fn()) {
    let run = move || {
        sync::begin_run(false);
        story();
    };
    shuttle::check_random(run, SCHEDULES);
    shuttle::check_pct(run, SCHEDULES, PCT_DEPTH);
}

/// As [`holds`], with a mistake that has to be noticed.
fn notifications_are_lost(story: fn()) {
    let run = move || {
        sync::begin_run(true);
        story();
    };
    shuttle::check_random(run, SCHEDULES);
}

/// Three threads hand a token over.
fn a_token_goes_round() {
    const PLAYERS: u32 = 3;
    const ROUNDS: u32 = 2;
    let shared = Arc::new((AtomicU32::new(0), Notify::default()));
    let play = |me: u32| {
        let shared = Arc::clone(&shared);
        move || {
            let (token, notify) = &*shared;
            for round in 0..ROUNDS {
                loop {
                    let seen = notify.epoch();
                    if token.load(Ordering::SeqCst) == round * PLAYERS + me {
                        break;
                    }
                    notify.wait(seen, None);
                }
                token.fetch_add(1, Ordering::SeqCst);
                notify.wake_all();
            }
        }
    };
    let threads: Vec<_> = (0..PLAYERS).map(|me| thread::spawn(play(me))).collect();
    threads.into_iter().for_each(|it| it.join().unwrap());
}

#[test]
fn no_wake_up_of_a_notify_is_lost() {
    holds(a_token_goes_round);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_notify_that_wakes_nobody_is_noticed() {
    notifications_are_lost(a_token_goes_round);
}

/// A state machine that is due at a time, and a timer thread that calls it.
struct Machine {
    due: Mutex<Option<Instant>>,
    deadline: Deadline,
    timer: Timer,
    fired: AtomicU32,
    notify: Notify,
}

/// No thread gets there.
const FAR: Option<Instant> = Some(Instant(u64::MAX / 2));
const AT_ONCE: Option<Instant> = Some(Instant(1));

impl Machine {
    /// How often it had been called before.
    fn set(&self, due: Option<Instant>) -> u32 {
        let mut machine = lock(&self.due);
        *machine = due;
        self.deadline.set(&self.timer, Guid::UNKNOWN, due);
        self.fired.load(Ordering::SeqCst)
    }

    /// As `EndpointSlot::fire` and `Timed::fire` do.
    fn fire(&self) {
        let now = sync::mono();
        if !self.deadline.is_due(&self.timer, Guid::UNKNOWN, now) {
            return;
        }
        let mut machine = lock(&self.due);
        self.deadline.disarmed();
        if machine.is_some_and(|due| due <= now) {
            *machine = None;
            self.fired.fetch_add(1, Ordering::SeqCst);
        }
        self.deadline.set(&self.timer, Guid::UNKNOWN, *machine);
        drop(machine);
        self.notify.wake_all();
    }

    fn await_fired(&self, times: u32) {
        loop {
            let seen = self.notify.epoch();
            if self.fired.load(Ordering::SeqCst) >= times {
                return;
            }
            self.notify.wait(seen, None);
        }
    }
}

/// Deadlines move to and fro, and end with one that is due.
fn deadlines_move() {
    let machine = Arc::new(Machine {
        due: Mutex::new(None),
        deadline: Deadline::default(),
        timer: Timer::default(),
        fired: AtomicU32::new(0),
        notify: Notify::default(),
    });
    let of_timer = Arc::clone(&machine);
    let timer = thread::spawn(move || of_timer.timer.run(|_| of_timer.fire()));
    for _ in 0..2 {
        // The entry that the first makes may go off while the second and the third move the deadline.
        machine.set(AT_ONCE);
        machine.set(FAR);
        let fired = machine.set(AT_ONCE);
        machine.await_fired(fired + 1);
    }
    machine.timer.stop();
    timer.join().unwrap();
}

#[test]
fn a_deadline_that_moved_earlier_is_noticed() {
    holds(deadlines_move);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_timer_that_sleeps_through_an_earlier_deadline_is_noticed() {
    notifications_are_lost(deadlines_move);
}

/// Threads use a lock that others delegate to, look without serving, and leave.
fn calls_are_delegated() {
    let shared: Arc<Delegating<Vec<u32>, u32>> = Arc::new(Delegating::new(Vec::new()));
    let run = |made: &mut Vec<u32>, call| made.push(call);
    let using = |call: u32| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            shared.with(|made| made.push(call));
            shared.run_deferred(run);
        })
    };
    let delegating = |call: u32| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            shared.run_or_enqueue(call, run);
            shared.run_deferred(run);
        })
    };
    let looking = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || drop(shared.lock()))
    };
    let threads = [using(0), delegating(1), delegating(2), using(3), looking];
    threads.into_iter().for_each(|it| it.join().unwrap());
    assert!(!shared.has_deferred(), "a call waits for nobody");
    let mut made = shared.lock().clone();
    made.sort_unstable();
    assert_eq!(made, [0, 1, 2, 3], "each call once");
}

#[test]
fn each_delegated_call_is_made_once_by_somebody() {
    holds(calls_are_delegated);
}

/// What two threads wait for, and the socket that brings it.
struct World {
    owners: Owners<ModelAlarm>,
    socket: Socket,
    readers: [Reader; 2],
    /// How many threads receive.
    receiving: AtomicUsize,
}

#[derive(Default)]
struct Reader {
    notify: Arc<Notify>,
    samples: AtomicU32,
}

#[derive(Default)]
struct Socket {
    content: Mutex<Content>,
    changed: Condvar,
}

/// Datagrams, each for one reader.
#[derive(Default)]
struct Content {
    datagrams: VecDeque<usize>,
    is_closed: bool,
}

/// What a thread that waits for the socket is woken by.
struct ModelWaker {
    world: Arc<World>,
    is_set: AtomicBool,
}

/// Goes off as soon as it is set: that it takes its time, schedules say.
#[derive(Default)]
struct ModelAlarm {
    is_off: Mutex<bool>,
    changed: Condvar,
}

impl WakeUp for ModelAlarm {
    fn set(&self, _: Duration) {
        *lock(&self.is_off) = true;
        self.changed.notify_one();
    }

    fn wait(&self) {
        let mut is_off = lock(&self.is_off);
        while !*is_off {
            is_off = self.changed.wait(is_off).unwrap();
        }
        *is_off = false;
    }
}

impl Wake for ModelWaker {
    fn wake(&self) {
        let _content = lock(&self.world.socket.content);
        self.is_set.store(true, Ordering::SeqCst);
        self.world.socket.changed.notify_all();
    }
}

impl Socket {
    fn put(&self, reader: usize) {
        lock(&self.content).datagrams.push_back(reader);
        self.changed.notify_all();
    }

    fn close(&self) {
        lock(&self.content).is_closed = true;
        self.changed.notify_all();
    }

    fn is_closed(&self) -> bool {
        lock(&self.content).is_closed
    }

    /// Sleeps until there is a datagram, the waker is used or the socket is closed: whether there is a
    /// datagram.
    fn wait(&self, waker: Option<&ModelWaker>) -> bool {
        let mut content = lock(&self.content);
        let is_woken = || waker.is_some_and(|waker| waker.is_set.load(Ordering::SeqCst));
        while content.datagrams.is_empty() && !content.is_closed && !is_woken() {
            content = self.changed.wait(content).unwrap();
        }
        !content.datagrams.is_empty()
    }
}

impl World {
    fn receive_one(&self) -> bool {
        let Some(reader) = lock(&self.socket.content).datagrams.pop_front() else { return false };
        self.readers[reader].samples.fetch_add(1, Ordering::SeqCst);
        self.readers[reader].notify.wake_all();
        true
    }

    /// Calls `f` as the only thread that receives.
    fn alone<R>(&self, f: impl FnOnce() -> R) -> R {
        assert_eq!(self.receiving.fetch_add(1, Ordering::SeqCst), 0, "two threads receive from one input");
        let result = f();
        self.receiving.fetch_sub(1, Ordering::SeqCst);
        result
    }

    /// A receive thread: as `UserInputs::run`.
    fn run(&self) {
        while !self.socket.is_closed() {
            self.alone(|| {
                while !self.socket.is_closed() {
                    self.socket.wait(None);
                    if self.receive_one() && thread_rng().r#gen::<bool>() {
                        break;
                    }
                }
            });
            if let Some(before) = self.owners.hand_over(0, false) {
                self.owners.await_return(0, before);
            }
        }
    }

    /// As `waiter::wait`, without an end.
    fn wait(self: &Arc<Self>, notify: &Arc<Notify>, seen: u32) {
        if let Some(mut owned) = self.owners.acquire()
            && self.alone(|| self.receive_in_wait(&mut owned, notify, seen))
        {
            return;
        }
        let _sleeping = self.owners.sleep(notify, Wanted::Samples);
        notify.wait(seen, None);
    }

    /// Whether the epoch moved.
    fn receive_in_wait(
        self: &Arc<Self>,
        owned: &mut Owned<'_, ModelAlarm>,
        notify: &Notify,
        seen: u32,
    ) -> bool {
        let waker = Arc::new(ModelWaker { world: Arc::clone(self), is_set: AtomicBool::new(false) });
        let registration = notify.register(Arc::<ModelWaker>::clone(&waker));
        while !owned.recalls {
            let Some(armed) = registration.arm(seen) else { return true };
            let has_datagram = self.socket.wait(Some(&waker));
            drop(armed);
            waker.is_set.store(false, Ordering::SeqCst);
            if has_datagram && self.receive_one() {
                owned.received += 1;
                owned.recalls |= thread_rng().gen_ratio(1, 4);
            }
            owned.recalls |= self.socket.is_closed();
        }
        false
    }
}

/// Datagrams for two threads that wait: the input goes from hand to hand.
fn an_input_changes_owners() {
    const SAMPLES: u32 = 3;
    let world = Arc::new(World {
        owners: Owners::new(vec![Some(ModelAlarm::default())]),
        socket: Socket::default(),
        readers: Default::default(),
        receiving: AtomicUsize::new(0),
    });
    let receiver = {
        let world = Arc::clone(&world);
        thread::spawn(move || world.run())
    };
    let waiting = |number: usize| {
        let world = Arc::clone(&world);
        thread::spawn(move || {
            let reader = &world.readers[number];
            loop {
                let seen = reader.notify.epoch();
                if reader.samples.load(Ordering::SeqCst) >= SAMPLES {
                    return;
                }
                world.wait(&reader.notify, seen);
            }
        })
    };
    let threads = [waiting(0), waiting(1)];
    for _ in 0..SAMPLES {
        world.socket.put(0);
        world.socket.put(1);
    }
    threads.into_iter().for_each(|it| it.join().unwrap());
    world.socket.close();
    world.owners.stop();
    receiver.join().unwrap();
}

#[test]
fn an_input_has_one_owner_or_one_that_comes() {
    holds(an_input_changes_owners);
}

#[test]
#[should_panic(expected = "deadlock")]
fn an_input_that_is_recalled_in_vain_is_noticed() {
    notifications_are_lost(an_input_changes_owners);
}
