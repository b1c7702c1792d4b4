//! What all entities share: whether they are enabled, which statuses changed, and who waits for that.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};
use std::task::Waker;

use plainsong_proto::cdr::{self, DdsType};
use plainsong_proto::payload::Payload;
use plainsong_proto::status::{StatusKind, StatusMask};

use crate::base::fork;
use crate::base::large_stack::on_fitting_stack;
use crate::base::locks::{lock, read, write};
use crate::error::{BadParameter, Error, OutOfResources, Result};
use crate::runtime::dispatch;
use crate::runtime::notify::Notify;

/// The value with a serialized key, if there is one.
pub(crate) fn key_value<T: DdsType>(
    key: Option<Payload>,
    value_bytes: usize,
    describe: impl Fn() -> String,
) -> Result<T> {
    let unknown = || BadParameter::UnknownInstance { entity: describe() };
    let key = key.ok_or_else(unknown)?;
    let decode = || {
        let value = if T::KEYED { cdr::key_from_payload(key.as_slice()).ok() } else { Some(T::initial()) };
        value.map(Box::new)
    };
    let value = on_fitting_stack::<T, _>(value_bytes, decode)
        .map_err(|no_stack| OutOfResources::stack(describe(), no_stack))?;
    Ok(*value.ok_or_else(unknown)?)
}

/// State behind every entity's status condition.
pub(crate) struct EntityCore {
    /// In which process it was made: see [`fork`].
    generation: u32,
    enabled: AtomicBool,
    deleted: AtomicBool,
    changed: AtomicU32,
    waiters: Waiters,
}

impl EntityCore {
    pub(crate) fn new() -> Self {
        Self {
            generation: fork::generation(),
            enabled: AtomicBool::new(false),
            deleted: AtomicBool::new(false),
            changed: AtomicU32::new(0),
            waiters: Waiters::default(),
        }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Acquire)
    }

    /// Whether its conditions may be triggered.
    pub(crate) fn is_active(&self) -> bool {
        self.is_enabled() && !self.is_deleted()
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    /// It was made in the process that this one was forked from: nothing of it may be used, and none of its
    /// locks taken.
    pub(crate) fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    /// It is neither deleted nor another process's: the last handle of it has something to end.
    pub(crate) fn is_to_end(&self) -> bool {
        !self.is_inherited() && !self.is_deleted()
    }

    /// Marks the entity deleted and wakes who waits on it; true when it was not before.
    pub(crate) fn delete(&self) -> bool {
        let first = !self.deleted.swap(true, Ordering::AcqRel);
        self.changed.store(0, Ordering::SeqCst);
        self.waiters.wake_now();
        first
    }

    /// Refuses what needs an entity that is there.
    pub(crate) fn check_exists(&self, describe: impl FnOnce() -> String) -> Result<()> {
        if self.is_inherited() {
            return Err(Error::Forked(describe()));
        }
        if self.is_deleted() { Err(Error::AlreadyDeleted(describe())) } else { Ok(()) }
    }

    /// Refuses what needs an entity that is there and enabled.
    pub(crate) fn check_enabled(&self, describe: impl Fn() -> String) -> Result<()> {
        if self.is_enabled() && self.is_to_end() {
            return Ok(());
        }
        self.check_exists(&describe).and_then(|()| Err(Error::NotEnabled(describe())))
    }

    /// Marks the entity enabled; true when it was not before.
    pub(crate) fn enable(&self) -> bool {
        !self.enabled.swap(true, Ordering::AcqRel)
    }

    /// Raises a status and wakes whoever waits on the entity.
    pub(crate) fn raise(&self, kind: StatusKind) {
        self.change(kind);
        self.waiters.wake_now();
    }

    /// As [`Self::raise`], but that the caller is left the tasks to wake.
    pub(crate) fn raise_leaving(&self, kind: StatusKind, tasks: &mut Vec<Waker>) {
        self.change(kind);
        self.waiters.wake_leaving(tasks);
    }

    fn change(&self, kind: StatusKind) {
        if !self.is_deleted() {
            self.changed.fetch_or(kind as u32, Ordering::SeqCst);
        }
    }

    /// Wakes whoever waits on the entity, without a status.
    pub(crate) fn wake_waiters(&self) {
        self.waiters.wake_now();
    }

    /// As [`Self::wake_waiters`], but that the caller is left the tasks to wake.
    pub(crate) fn wake_waiters_leaving(&self, tasks: &mut Vec<Waker>) {
        self.waiters.wake_leaving(tasks);
    }

    /// Lowers a status: it was read, or a listener was told.
    pub(crate) fn lower(&self, kind: StatusKind) {
        // Reading first keeps the cache line shared on the data path.
        if self.changed.load(Ordering::Relaxed) & kind as u32 != 0 {
            self.changed.fetch_and(!(kind as u32), Ordering::SeqCst);
        }
    }

    pub(crate) fn changed(&self) -> StatusMask {
        StatusMask(self.changed.load(Ordering::SeqCst))
    }

    pub(crate) fn waiters(&self) -> &Waiters {
        &self.waiters
    }
}

/// What readers and writers can do alike, whether or not their type is known. For an `impl` block with a
/// method `inner`; the names in it are those of the module that calls.
macro_rules! endpoint_operations {
    ($listener:ident) => {
        /// Its GUID.
        #[must_use]
        pub fn guid(&self) -> Guid {
            self.inner().guid
        }

        /// Its instance handle, as others see it in built-in topics and in `SampleInfo`.
        #[must_use]
        pub fn instance_handle(&self) -> InstanceHandle {
            self.guid().into()
        }

        /// Whether it was enabled, by its factory or by `enable`.
        #[must_use]
        pub fn is_enabled(&self) -> bool {
            self.inner().core.is_enabled()
        }

        /// Name of its topic.
        #[must_use]
        pub fn topic_name(&self) -> &str {
            &self.inner().topic.name
        }

        /// Its topic.
        #[must_use]
        pub fn topic(&self) -> AnyTopic {
            AnyTopic(Arc::clone(&self.inner().topic))
        }

        /// Registered name of its type.
        #[must_use]
        pub fn type_name(&self) -> &str {
            self.inner().topic.type_name()
        }

        /// Hears of the statuses in `mask` from now on, not of matches or samples before: a listener of the
        /// publisher or subscriber, set before this entity is created, hears those, too. `None` removes the
        /// listener.
        pub fn set_listener(&self, listener: Option<Arc<dyn $listener>>, mask: impl Into<StatusMask>) {
            self.inner().listener.set(listener, mask.into());
        }

        /// The listener, if one is set.
        #[must_use]
        pub fn listener(&self) -> Option<Arc<dyn $listener>> {
            self.inner().listener.get()
        }

        /// A condition on the statuses in `mask`.
        #[must_use]
        pub fn status_condition(&self, mask: impl Into<StatusMask>) -> Condition {
            Condition::status(Arc::clone(self.inner()) as Arc<dyn HasCore>, mask.into())
        }

        /// Statuses that changed since they were last read.
        #[must_use]
        pub fn status_changes(&self) -> StatusMask {
            self.inner().core.changed()
        }

        /// Its QoS, with what publisher or subscriber and topic decide.
        #[must_use]
        pub fn qos(&self) -> QosSet {
            self.inner().slot.look(|endpoint| endpoint.qos().clone())
        }

        /// What of its QoS has less effect than the standard promises, and what to do about it.
        #[must_use]
        pub fn unhonoured(&self) -> Vec<Unhonoured> {
            unhonoured(&self.qos(), ENTITY_KIND)
        }

        /// Changes the changeable policies.
        ///
        /// # Errors
        /// [`Error::ImmutablePolicy`] names the first policy that cannot change,
        /// [`Error::InconsistentPolicy`].
        pub fn set_qos(&self, qos: QosSet) -> Result<()> {
            self.inner().set_qos(qos)
        }
    };
}
pub(crate) use endpoint_operations;

/// What the inner halves of readers and writers do alike: calls into the protocol's state machine, and QoS.
/// The names in it are those of the module that calls.
macro_rules! endpoint_inner {
    ($machine:ident, $group:ident) => {
        /// Runs `f` on the protocol's endpoint and sends what it leaves.
        pub(crate) fn with<R>(
            &self,
            f: impl FnOnce(&mut $machine, plainsong_proto::time::Now, &mut Outbox) -> R,
        ) -> Result<R> {
            self.core.check_enabled(|| self.describe())?;
            Ok(self.slot.with(self.$group.participant.slot()?, f))
        }

        /// Looks at the protocol's endpoint, also of an entity that is not enabled.
        pub(crate) fn look<R>(&self, f: impl FnOnce(&$machine) -> R) -> R {
            self.slot.look(f)
        }

        /// So many datagrams it composed.
        pub(crate) fn datagrams(&self) -> u64 {
            self.slot.datagrams()
        }

        /// The publisher or subscriber that made it.
        pub(crate) fn group_guid(&self) -> plainsong_proto::guid::Guid {
            self.$group.guid()
        }

        /// Reads a status: also of an entity that is not enabled (DCPS 1.4 §2.2.2.1.1.7).
        fn status<R>(&self, kind: StatusKind, read: impl FnOnce(&mut $machine) -> R) -> Result<R> {
            self.core.check_exists(|| self.describe())?;
            self.core.lower(kind);
            Ok(self.slot.edit(read))
        }

        fn set_qos(&self, qos: QosSet) -> Result<()> {
            self.core.check_exists(|| self.describe())?;
            self.$group.check_not_builtin()?;
            let qos = self.$group.qos_of_member(qos);
            check_qos(&qos, ENTITY_KIND, &self.describe())?;
            let qos = announced_qos(qos, &self.$group.qos(), &self.topic.qos());
            let old = self.slot.look(|endpoint| endpoint.qos().clone());
            if self.core.is_enabled()
                && let Some(policy) = changed_immutable(&old, &qos, ENTITY_KIND)
            {
                return Err(Error::ImmutablePolicy { policy: policy.name, entity: self.describe() });
            }
            check_announced_qos(&qos, self.core.is_enabled().then_some(&old), || self.describe())?;
            self.apply_qos(qos)
        }

        /// Refuses policies of a group that this member of it cannot have.
        fn check_group_qos(&self, group: &QosSet) -> Result<()> {
            let old = self.slot.look(|endpoint| endpoint.qos().clone());
            let qos = announced_qos(old.clone(), group, &self.topic.qos());
            check_announced_qos(&qos, self.core.is_enabled().then_some(&old), || self.describe())
        }

        /// Announces anew what the group decides.
        pub(crate) fn announce_qos(&self) -> Result<()> {
            let own = self.slot.look(|endpoint| endpoint.qos().clone());
            self.apply_qos(announced_qos(own, &self.$group.qos(), &self.topic.qos()))
        }

        fn apply_qos(&self, qos: QosSet) -> Result<()> {
            if !self.core.is_enabled() {
                self.slot.edit(|endpoint| endpoint.set_qos(clock::now(), qos));
                return Ok(());
            }
            let announced = qos.clone();
            self.with(|endpoint, now, _| endpoint.set_qos(now, qos))?;
            let slot = self.$group.participant.slot()?;
            slot.control(|control, now, out| control.update_endpoint(now, self.guid, announced, out))
                .map_err(|error| OutOfResources::from(error).into())
        }

        pub(crate) fn describe(&self) -> String {
            let kind = if matches!(ENTITY_KIND, EntityKind::Writer) { "writer" } else { "reader" };
            format!("the {kind} of topic '{}'", self.topic.name)
        }
    };
}
pub(crate) use endpoint_inner;

/// Wait sets and tasks to wake when something happens to an entity.
pub(crate) struct Waiters {
    /// In which process it was made: in another, there is nobody who wakes, and the list may stay locked.
    generation: u32,
    count: AtomicUsize,
    list: Mutex<WaiterList>,
}

#[derive(Default)]
struct WaiterList {
    wait_sets: Vec<Weak<Notify>>,
    /// Code of the application: called, and dropped, when the list is unlocked.
    tasks: Vec<Waker>,
}

impl Default for Waiters {
    fn default() -> Self {
        Self { generation: fork::generation(), count: AtomicUsize::new(0), list: Mutex::default() }
    }
}

impl Waiters {
    /// Wakes `notify` at every event until it is detached or dropped.
    pub(crate) fn attach(&self, notify: &Arc<Notify>) {
        self.edit(|list| list.wait_sets.push(Arc::downgrade(notify)));
    }

    pub(crate) fn detach(&self, notify: &Arc<Notify>) {
        let target = Arc::downgrade(notify);
        self.edit(|list| {
            if let Some(index) = list.wait_sets.iter().position(|weak| weak.ptr_eq(&target)) {
                list.wait_sets.swap_remove(index);
            }
        });
    }

    /// Wakes `waker` once, at the next event.
    pub(crate) fn register_task(&self, waker: &Waker) {
        let mut waker = Some(waker.clone());
        self.edit(|list| {
            if !list.tasks.iter().any(|task| waker.as_ref().is_some_and(|waker| task.will_wake(waker))) {
                list.tasks.extend(waker.take());
            }
        });
    }

    /// Wakes all of them.
    pub(crate) fn wake_now(&self) {
        if self.is_empty() {
            return;
        }
        let mut tasks = Vec::new();
        self.edit(|list| {
            list.wake_wait_sets();
            if !list.tasks.is_empty() {
                tasks = std::mem::take(&mut list.tasks);
            }
        });
        if tasks.is_empty() {
            return;
        }
        dispatch::wake_tasks(&mut tasks);
        // Its memory is for those that come next.
        self.edit(|list| {
            if list.tasks.capacity() == 0 {
                list.tasks = tasks;
            }
        });
    }

    /// Wakes the wait sets; the caller has to wake the tasks.
    fn wake_leaving(&self, tasks: &mut Vec<Waker>) {
        if self.is_empty() {
            return;
        }
        self.edit(|list| {
            list.wake_wait_sets();
            tasks.append(&mut list.tasks);
        });
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    fn edit(&self, change: impl FnOnce(&mut WaiterList)) {
        if self.generation != fork::generation() {
            return;
        }
        let mut list = lock(&self.list);
        change(&mut list);
        self.count.store(list.wait_sets.len() + list.tasks.len(), Ordering::SeqCst);
    }
}

impl WaiterList {
    fn wake_wait_sets(&mut self) {
        self.wait_sets.retain(|weak| weak.upgrade().inspect(|notify| notify.wake_all()).is_some());
    }
}

/// A listener and the statuses it wants to hear of.
pub(crate) struct ListenerSlot<L: ?Sized> {
    mask: AtomicU32,
    listener: RwLock<Option<Arc<L>>>,
}

impl<L: ?Sized> ListenerSlot<L> {
    pub(crate) fn new() -> Self {
        Self { mask: AtomicU32::new(0), listener: RwLock::new(None) }
    }

    pub(crate) fn set(&self, listener: Option<Arc<L>>, mask: StatusMask) {
        let mut slot = write(&self.listener);
        self.mask.store(if listener.is_some() { mask.0 } else { 0 }, Ordering::SeqCst);
        let old = std::mem::replace(&mut *slot, listener);
        // What is dropped with it may use this entity.
        drop(slot);
        drop(old);
    }

    /// The listener, whatever it wants.
    pub(crate) fn get(&self) -> Option<Arc<L>> {
        read(&self.listener).clone()
    }

    /// The listener, when it wants to hear of `kind`.
    pub(crate) fn wants(&self, kind: StatusKind) -> Option<Arc<L>> {
        if self.mask.load(Ordering::Acquire) & kind as u32 == 0 {
            return None;
        }
        read(&self.listener).clone()
    }
}
