//! Who makes changes durable: a thread of the participant. While the disk works on some, others come to wait,
//! and are made durable together: a disk does hundreds of syncs in a second, whatever each is for.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;

use plainsong_proto::time::Duration;

use super::{Batch, Store, StoreError};
use crate::base::fork;
use crate::base::locks::lock;

/// Changes that are made durable together at most: as many more would hardly go faster, and the first would
/// wait longer.
const COMMIT_CHANGES_MAX: usize = 256;
/// Octets of keys and values after which a commit takes no more.
const COMMIT_BYTES_MAX: usize = 1 << 20;

/// What is to be made durable.
pub(crate) trait Stage: Send + 'static {
    /// What is in the store is void: it is put aside before this change is made.
    fn discards(&self) -> bool {
        false
    }

    /// Adds its changes to those that are made with it.
    fn stage(self, batch: &mut Batch);
}

/// The thread of a participant that makes changes durable, for all its groups in turn. At its end it has done
/// everything that waited.
pub(crate) struct StoreThread {
    /// In which process it was started: see [`fork`].
    generation: u32,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Takes what is to be made durable for one group.
///
/// What waits is bounded by who pushes: members write no more than a window beyond what the slowest has made
/// durable, and a voter has one record for each message that it answers.
pub(crate) struct Committer<C> {
    queue: Arc<Queue<C>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<Turns>,
    changed: Condvar,
}

#[derive(Default)]
struct Turns {
    /// Those for whom something waits.
    queues: VecDeque<Arc<dyn Work>>,
    /// Whose stores are open.
    open: Vec<Weak<dyn Work>>,
    is_ended: bool,
}

trait Work: Send + Sync {
    /// Makes some of what waits durable; whether more waits.
    fn commit_some(&self) -> bool;

    /// Closes the store: somebody else may open it.
    fn close(&self);
}

struct Queue<C> {
    waiting: Mutex<Waiting<C>>,
    own: Mutex<Own<C>>,
    /// Nothing waits any more.
    drained: Condvar,
    on_durable: OnDurable,
}

/// Hears of the last number that is durable, or why nothing is any more.
type OnDurable = Box<dyn Fn(Result<u64, StoreError>) + Send + Sync>;

struct Waiting<C> {
    changes: VecDeque<(u64, C)>,
    /// It has a turn.
    is_scheduled: bool,
    has_failed: bool,
}

/// What the thread alone has.
struct Own<C> {
    /// `None` once it is closed.
    store: Option<Box<dyn Store>>,
    taken: VecDeque<(u64, C)>,
    batch: Batch,
}

impl StoreThread {
    /// Starts the thread, which is called after the domain.
    pub(crate) fn start(domain_id: u16) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        let builder = std::thread::Builder::new().name(format!("store-{domain_id}"));
        let thread = builder.spawn(move || of_thread.run())?;
        Ok(Self { generation: fork::generation(), shared, thread: Some(thread) })
    }

    /// A committer for this store. `on_durable` is called on the thread, with no lock held, with the last
    /// number that is durable; or once with an error, after which nothing more is.
    pub(crate) fn committer<C: Stage>(
        &self,
        store: Box<dyn Store>,
        on_durable: impl Fn(Result<u64, StoreError>) + Send + Sync + 'static,
    ) -> Committer<C> {
        let waiting = Waiting { changes: VecDeque::new(), is_scheduled: false, has_failed: false };
        let own = Own { store: Some(store), taken: VecDeque::new(), batch: Batch::new() };
        let (waiting, own) = (Mutex::new(waiting), Mutex::new(own));
        let on_durable = Box::new(on_durable);
        let queue = Arc::new(Queue { waiting, own, drained: Condvar::new(), on_durable });
        let work: Arc<dyn Work> = Arc::clone(&queue) as _;
        {
            let mut turns = lock(&self.shared.state);
            turns.open.retain(|it| it.strong_count() > 0);
            turns.open.push(Arc::downgrade(&work));
        }
        Committer { queue, shared: Arc::clone(&self.shared) }
    }
}

impl<C> Drop for Committer<C> {
    /// Who wants what waits to be kept drains it first. Nobody was told of that, so that nothing rests on it.
    fn drop(&mut self) {
        let mut own = lock(&self.queue.own);
        own.store = None;
        own.taken.clear();
    }
}

impl<C: Stage> Committer<C> {
    /// Waits until everything is durable, or nothing will be, at most for so long.
    pub(crate) fn drain(&self, within: Duration) {
        let waits = |waiting: &mut Waiting<C>| waiting.is_scheduled && !waiting.has_failed;
        let within = std::time::Duration::from_nanos(within.0.max(0).unsigned_abs());
        let waiting = lock(&self.queue.waiting);
        drop(self.queue.drained.wait_timeout_while(waiting, within, waits));
    }

    /// Makes a change durable soon, after those before; numbers ascend.
    pub(crate) fn push(&self, number: u64, change: C) {
        {
            let mut waiting = lock(&self.queue.waiting);
            // The error was told.
            if waiting.has_failed {
                return;
            }
            waiting.changes.push_back((number, change));
            if std::mem::replace(&mut waiting.is_scheduled, true) {
                return;
            }
        }
        let queue: Arc<dyn Work> = Arc::clone(&self.queue) as _;
        lock(&self.shared.state).queues.push_back(queue);
        self.shared.changed.notify_one();
    }
}

impl Shared {
    fn run(&self) {
        let mut turns = lock(&self.state);
        loop {
            if let Some(queue) = turns.queues.pop_front() {
                drop(turns);
                let has_more = queue.commit_some();
                turns = lock(&self.state);
                if has_more {
                    turns.queues.push_back(queue);
                }
            } else if turns.is_ended {
                let open = std::mem::take(&mut turns.open);
                drop(turns);
                open.iter().filter_map(Weak::upgrade).for_each(|queue| queue.close());
                return;
            } else {
                turns = self.changed.wait(turns).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl<C: Stage> Work for Queue<C> {
    fn commit_some(&self) -> bool {
        let mut own = lock(&self.own);
        let Own { store, taken, batch } = &mut *own;
        {
            let mut waiting = lock(&self.waiting);
            taken.append(&mut waiting.changes);
            waiting.is_scheduled = !taken.is_empty();
            if taken.is_empty() {
                self.drained.notify_all();
            }
        }
        let Some(store) = store else { return false };
        let is_void = taken.front().is_some_and(|(_, change)| change.discards());
        let Some(last) = stage(taken, batch) else { return false };
        let aside = if is_void { store.put_aside() } else { Ok(()) };
        let committed = aside.and_then(|()| store.commit(batch));
        batch.clear();
        if committed.is_err() {
            taken.clear();
            let mut waiting = lock(&self.waiting);
            waiting.changes.clear();
            waiting.has_failed = true;
            self.drained.notify_all();
        }
        let is_failed = committed.is_err();
        drop(own);
        (self.on_durable)(committed.map(|()| last));
        !is_failed
    }

    fn close(&self) {
        lock(&self.own).store = None;
    }
}

/// Moves changes to a batch, as many as one commit takes; the number of the last.
fn stage<C: Stage>(taken: &mut VecDeque<(u64, C)>, batch: &mut Batch) -> Option<u64> {
    let (mut last, mut changes, mut bytes) = (None, 0, 0);
    while changes < COMMIT_CHANGES_MAX
        && bytes < COMMIT_BYTES_MAX
        && let Some((number, change)) = taken.pop_front_if(|(_, it)| changes == 0 || !it.discards())
    {
        let mut staged = Batch::new();
        change.stage(&mut staged);
        bytes +=
            staged.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Vec::len)).sum::<usize>();
        batch.append(&mut staged);
        changes += 1;
        last = Some(number);
    }
    last
}

impl Drop for StoreThread {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.generation != fork::generation() {
            // It runs in another process.
            return std::mem::forget(thread);
        }
        lock(&self.shared.state).is_ended = true;
        self.shared.changed.notify_one();
        // Whoever is told last of something durable may be the last who has the participant.
        if thread.thread().id() != std::thread::current().id() {
            let _ = thread.join();
        }
    }
}
