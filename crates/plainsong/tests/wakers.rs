//! Wakers of tasks are code of the application, as listeners are: none is called, or dropped, with a lock of
//! the library held, nor by a thread that only writes.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, ThreadId};

use common::*;
use plainsong::prelude::*;

fn blob(number: u32) -> Blob {
    Blob { number, octets: Vec::new() }
}

/// A writer and a reader of one participant, matched.
fn pair() -> (DataWriter<Blob>, DataReader<Blob>) {
    let participant = participant(fresh_domain());
    let reader = reader::<Blob>(&participant, "Wakers", QosSet::reader().reliable().keep_all());
    let writer = writer::<Blob>(&participant, "Wakers", QosSet::writer().keep_all());
    until("they match", || {
        !writer.matched_subscriptions().unwrap().is_empty()
            && !reader.matched_publications().unwrap().is_empty()
    });
    (writer, reader)
}

/// Takes a lock of the application, and says on which thread.
struct Locks {
    ready: Arc<Mutex<()>>,
    woken: Mutex<Sender<ThreadId>>,
}

impl Wake for Locks {
    fn wake(self: Arc<Self>) {
        drop(self.ready.lock().unwrap());
        self.woken.lock().unwrap().send(thread::current().id()).unwrap();
    }
}

#[test]
fn a_thread_that_writes_with_a_lock_held_wakes_no_task_that_takes_it() {
    const SAMPLES: u32 = 600;
    let (writer, reader) = pair();
    let ready = Arc::new(Mutex::new(()));
    let (woken, wakes) = channel();
    let waker = Waker::from(Arc::new(Locks { ready: Arc::clone(&ready), woken: Mutex::new(woken) }));
    let mut context = Context::from_waker(&waker);
    let (numbers, to_write) = channel();
    let (written, writes) = channel();
    // It is not waited for: it would never end if it waited for itself.
    let application = thread::spawn(move || {
        for number in to_write {
            let locked = ready.lock().unwrap();
            let result = writer.write(&blob(number));
            drop(locked);
            written.send(result).unwrap();
        }
    });
    for number in 0..SAMPLES {
        let mut next = pin!(reader.next());
        assert!(next.as_mut().poll(&mut context).is_pending());
        numbers.send(number).unwrap();
        writes.recv_timeout(PATIENCE).expect("write returns").unwrap();
        let thread = wakes.recv_timeout(PATIENCE).expect("the task is woken");
        assert_ne!(thread, application.thread().id());
        let Poll::Ready(sample) = next.as_mut().poll(&mut context) else { panic!("nothing is there") };
        assert_eq!(sample.unwrap().data.unwrap().number, number);
    }
}

/// An executor that runs its task where that is woken.
struct Inline {
    task: Mutex<Pin<Box<dyn Future<Output = ()> + Send>>>,
    wakes: AtomicUsize,
}

impl Inline {
    fn spawn(task: impl Future<Output = ()> + Send + 'static) {
        Arc::new(Self { task: Mutex::new(Box::pin(task)), wakes: AtomicUsize::new(0) }).wake();
    }
}

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        if self.wakes.fetch_add(1, Ordering::SeqCst) > 0 {
            return;
        }
        let waker = Waker::from(Arc::clone(&self));
        let mut task = self.task.lock().unwrap();
        let mut seen = 1;
        while seen > 0 {
            if task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                return;
            }
            seen = self.wakes.fetch_sub(seen, Ordering::SeqCst) - seen;
        }
    }
}

#[test]
fn a_waker_may_poll_its_task_at_once() {
    const SAMPLES: u32 = 100;
    let (writer, reader) = pair();
    let (taken, numbers) = channel();
    Inline::spawn(async move {
        for _ in 0..SAMPLES {
            taken.send(reader.next().await.unwrap().data.unwrap().number).unwrap();
        }
    });
    let writing = writer.clone();
    thread::spawn(move || (0..SAMPLES).for_each(|number| writing.write(&blob(number)).unwrap()));
    for number in 0..SAMPLES {
        assert_eq!(numbers.recv_timeout(PATIENCE).expect("the task goes on"), number);
    }
}

#[test]
fn a_writing_task_is_polled_where_there_is_room_for_it() {
    const SAMPLES: u32 = 20;
    let participant = participant(fresh_domain());
    let mut narrow = QosSet::writer().keep_all();
    narrow.resource_limits.max_samples = 1;
    let reader = reader::<Blob>(&participant, "Room", QosSet::reader().reliable().keep_all());
    let writer = writer::<Blob>(&participant, "Room", narrow);
    until("they match", || !writer.matched_subscriptions().unwrap().is_empty());
    let (written, writes) = channel();
    thread::spawn(move || {
        Inline::spawn(async move {
            for number in 0..SAMPLES {
                writer.write_async(&blob(number)).await.unwrap();
            }
            written.send(writer).unwrap();
        });
    });
    let mut numbers = Vec::new();
    while numbers.len() < SAMPLES as usize {
        let samples = reader.wait_take(PATIENCE).unwrap();
        numbers.extend(samples.into_iter().map(|sample| sample.data.unwrap().number));
    }
    assert!(numbers.into_iter().eq(0..SAMPLES));
    writes.recv_timeout(PATIENCE).expect("all are written");
}

/// Waits for two acknowledgements, of which the second comes when a task has taken the first sample.
struct Waits {
    writer: DataWriter<Blob>,
    done: Mutex<Sender<plainsong::Result<()>>>,
}

impl DataReaderListener for Waits {
    fn on_data_available(&self, _: &AnyDataReader) {
        let result = (0..2)
            .try_for_each(|number| self.writer.write(&blob(number)))
            .and_then(|()| self.writer.wait_for_acknowledgments(PATIENCE));
        self.done.lock().unwrap().send(result).unwrap();
    }
}

/// Polls on a thread that sleeps between.
struct Unparks(thread::Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn a_task_is_woken_while_a_listener_waits_for_what_it_does() {
    let (to_listener, reader_with_listener) = pair();
    let domain = fresh_domain();
    let [here, there] = [participant(domain), participant(domain)];
    let mut limited = QosSet::reader().reliable().keep_all();
    limited.resource_limits.max_samples = 1;
    let full = reader::<Blob>(&there, "Full", limited.clone());
    let writer = writer::<Blob>(&here, "Full", QosSet::writer().keep_all());
    until("the reader is there", || !writer.matched_subscriptions().unwrap().is_empty());
    // Once by the threads of the same domain, once by those of another.
    let trigger = reader::<Blob>(&here, "Trigger", QosSet::reader().reliable().keep_all());
    let to_trigger = self::writer::<Blob>(&there, "Trigger", QosSet::writer().keep_all());
    until("the trigger is there", || !to_trigger.matched_subscriptions().unwrap().is_empty());
    let (done, results) = channel();
    let listener = Arc::new(Waits { writer, done: Mutex::new(done) });
    let data = StatusMask::NONE.with(StatusKind::DataAvailable);
    trigger.set_listener(Some(listener.clone()), data);
    reader_with_listener.set_listener(Some(listener), data);
    thread::spawn(move || {
        let waker = Waker::from(Arc::new(Unparks(thread::current())));
        for _ in 0..4 {
            let mut next = pin!(full.next());
            while next.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                thread::park();
            }
        }
    });
    for trigger in [&to_trigger, &to_listener] {
        trigger.write(&blob(0)).unwrap();
        results.recv_timeout(2 * PATIENCE).expect("the listener returns").unwrap();
    }
}

/// Uses its reader when it is dropped.
struct Last(DataReader<Blob>, Mutex<Sender<bool>>);

impl DataReaderListener for Last {}

impl Drop for Last {
    fn drop(&mut self) {
        let is_there = self.0.listener().is_some();
        self.1.lock().unwrap().send(is_there).unwrap();
    }
}

#[test]
fn a_listener_that_is_dropped_may_use_its_reader() {
    let (_writer, reader) = pair();
    let (dropped, drops) = channel();
    reader.set_listener(Some(Arc::new(Last(reader.clone(), Mutex::new(dropped)))), StatusMask::NONE);
    thread::spawn(move || reader.set_listener(None, StatusMask::NONE));
    assert!(!drops.recv_timeout(PATIENCE).expect("it is dropped without a lock"));
}
