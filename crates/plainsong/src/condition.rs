//! Conditions and wait sets (DCPS 1.4 §2.2.2.1.6–2.2.2.1.8): block until something is worth looking at.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use plainsong_proto::sample_info::Selector;
use plainsong_proto::status::StatusMask;
use plainsong_proto::time::{Duration, Instant};

use crate::base::clock;
use crate::base::locks::lock;
use crate::base::words::counted;
use crate::data_reader::{AnyDataReader, ReaderInner};
use crate::entity::{EntityCore, Waiters};
use crate::error::{Error, PreconditionNotMet, Result, WaitedFor};
use crate::query::Query;
use crate::read_options::ReadOptions;
use crate::runtime::Shared;
use crate::runtime::notify::Notify;
use crate::runtime::receive::{self, Wanted};

/// Something a [`WaitSet`] can wait for. Clones are the same condition.
#[derive(Clone)]
pub struct Condition(Kind);

#[derive(Clone)]
enum Kind {
    Guard(GuardCondition),
    Status { entity: Arc<dyn HasCore>, mask: StatusMask },
    Read { reader: Arc<ReaderInner>, selector: Selector, generation: u64 },
    Query(Arc<Query>),
}

/// An entity with a status condition.
pub(crate) trait HasCore: Send + Sync {
    fn core(&self) -> &EntityCore;

    /// The domain that user data for it comes from.
    fn shared(&self) -> Option<&Arc<Shared>> {
        None
    }
}

/// A condition that the application itself triggers.
#[derive(Clone, Default)]
pub struct GuardCondition(Arc<Guard>);

#[derive(Default)]
struct Guard {
    triggered: AtomicBool,
    waiters: Waiters,
}

/// Waits for any of its conditions.
#[derive(Default)]
pub struct WaitSet {
    notify: Arc<Notify>,
    conditions: Mutex<Vec<Condition>>,
}

impl GuardCondition {
    /// A condition that is not triggered.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Triggers or untriggers the condition.
    pub fn set_trigger_value(&self, value: bool) {
        self.0.triggered.store(value, Ordering::SeqCst);
        if value {
            self.0.waiters.wake_now();
        }
    }

    /// Whether it is triggered.
    #[must_use]
    pub fn trigger_value(&self) -> bool {
        self.0.triggered.load(Ordering::SeqCst)
    }

    /// As a condition for a wait set.
    #[must_use]
    pub fn condition(&self) -> Condition {
        Condition(Kind::Guard(self.clone()))
    }
}

impl Condition {
    pub(crate) fn status(entity: Arc<dyn HasCore>, mask: StatusMask) -> Self {
        Self(Kind::Status { entity, mask })
    }

    pub(crate) fn read(reader: Arc<ReaderInner>, selector: Selector) -> Self {
        let generation = reader.condition_generation();
        Self(Kind::Read { reader, selector, generation })
    }

    pub(crate) const fn of_query(query: Arc<Query>) -> Self {
        Self(Kind::Query(query))
    }

    /// Whether the condition is triggered now.
    #[must_use]
    pub fn trigger_value(&self) -> bool {
        match &self.0 {
            Kind::Guard(guard) => guard.0.triggered.load(Ordering::SeqCst),
            Kind::Status { entity, mask } => entity.core().changed().intersects(*mask),
            Kind::Read { reader, selector, generation } => {
                reader.condition_generation() == *generation && reader.has_data(selector)
            }
            Kind::Query(query) => {
                query.is_current() && query.reader.has_queried(&query.selector, &query.filter())
            }
        }
    }

    /// The states that a read or query condition chooses; `None` for other conditions.
    #[must_use]
    pub fn read_options(&self) -> Option<ReadOptions> {
        self.reading().map(|(_, selector)| ReadOptions { selector: *selector, condition: None })
    }

    /// The reader of a read or query condition, and the states that it chooses.
    pub(crate) fn reading(&self) -> Option<(&Arc<ReaderInner>, &Selector)> {
        match &self.0 {
            Kind::Read { reader, selector, .. } => Some((reader, selector)),
            Kind::Query(query) => Some((&query.reader, &query.selector)),
            Kind::Guard(_) | Kind::Status { .. } => None,
        }
    }

    pub(crate) fn query(&self) -> Option<&Query> {
        if let Kind::Query(query) = &self.0 { Some(query) } else { None }
    }

    /// The statuses that a status condition looks at; `None` for other conditions.
    #[must_use]
    pub const fn enabled_statuses(&self) -> Option<StatusMask> {
        match &self.0 {
            Kind::Status { mask, .. } => Some(*mask),
            _ => None,
        }
    }

    /// The reader of a read or query condition; `None` for other conditions.
    #[must_use]
    pub fn data_reader(&self) -> Option<AnyDataReader> {
        self.reading().map(|(reader, _)| AnyDataReader(Arc::clone(reader)))
    }

    /// State of the entity that it is about.
    pub(crate) fn entity(&self) -> Option<&EntityCore> {
        match &self.0 {
            Kind::Guard(_) => None,
            Kind::Status { entity, .. } => Some(entity.core()),
            Kind::Read { reader, .. } => Some(reader.core()),
            Kind::Query(query) => Some(query.reader.core()),
        }
    }

    fn waiters(&self) -> &Waiters {
        match &self.0 {
            Kind::Guard(guard) => &guard.0.waiters,
            Kind::Status { entity, .. } => entity.core().waiters(),
            Kind::Read { reader, .. } => reader.core().waiters(),
            Kind::Query(query) => query.reader.core().waiters(),
        }
    }

    /// The domain that user data for it comes from, if it waits for such.
    fn shared(&self) -> Option<&Arc<Shared>> {
        match &self.0 {
            Kind::Guard(_) => None,
            Kind::Status { entity, .. } => entity.shared(),
            Kind::Read { reader, .. } => reader.shared(),
            Kind::Query(query) => query.reader.shared(),
        }
    }
}

impl From<&Self> for Condition {
    fn from(condition: &Self) -> Self {
        condition.clone()
    }
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Guard(a), Kind::Guard(b)) => Arc::ptr_eq(&a.0, &b.0),
            (Kind::Status { entity: a, mask: x }, Kind::Status { entity: b, mask: y }) => {
                std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b)) && x == y
            }
            (
                Kind::Read { reader: a, selector: x, generation: g },
                Kind::Read { reader: b, selector: y, generation: h },
            ) => Arc::ptr_eq(a, b) && x == y && g == h,
            (Kind::Query(a), Kind::Query(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl WaitSet {
    /// A wait set without conditions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition; adding it again changes nothing.
    pub fn attach(&self, condition: Condition) {
        let mut conditions = self.lock();
        if !conditions.contains(&condition) {
            condition.waiters().attach(&self.notify);
            conditions.push(condition);
        }
        drop(conditions);
        // A thread already waiting must look at the new condition too.
        self.notify.wake_all();
    }

    /// Removes a condition.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] when it is not attached.
    pub fn detach(&self, condition: &Condition) -> Result<()> {
        let mut conditions = self.lock();
        let index = conditions.iter().position(|known| known == condition);
        let index = index.ok_or(PreconditionNotMet::NotAttached)?;
        conditions.swap_remove(index).waiters().detach(&self.notify);
        Ok(())
    }

    /// Blocks until a condition is triggered, and returns all that are.
    ///
    /// A thread that waits for data may receive it itself, for all readers and writers of the domain. It
    /// calls no listener.
    ///
    /// # Errors
    /// [`Error::Timeout`] when none was within `timeout`; [`Duration::INFINITE`] waits for ever.
    pub fn wait(&self, timeout: impl Into<Duration>) -> Result<Vec<Condition>> {
        let mut triggered = Vec::new();
        self.wait_into(timeout, &mut triggered)?;
        Ok(triggered)
    }

    /// Like [`Self::wait`], appending to `triggered`, whose memory the caller keeps.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_into(&self, timeout: impl Into<Duration>, triggered: &mut Vec<Condition>) -> Result<()> {
        let timeout = timeout.into();
        self.check_process()?;
        if self.wait_until(clock::deadline(timeout), triggered) {
            return Ok(());
        }
        let conditions = counted(self.lock().len() as u64, "condition");
        let what = format!("WaitSet::wait, for any of {conditions} to be triggered,");
        Err(Error::Timeout { waited_for: WaitedFor::Condition, what, timeout })
    }

    /// Like [`Self::wait_into`]; false when `deadline` passed first.
    pub(crate) fn wait_until(&self, deadline: Option<Instant>, triggered: &mut Vec<Condition>) -> bool {
        self.wait_unless(|| false, deadline, triggered)
    }

    /// Like [`Self::wait_until`]; true without a triggered condition once `is_over`, which is asked whenever
    /// an entity of the conditions wakes its waiters.
    pub(crate) fn wait_unless(
        &self,
        is_over: impl Fn() -> bool,
        deadline: Option<Instant>,
        triggered: &mut Vec<Condition>,
    ) -> bool {
        loop {
            let seen = self.notify.epoch();
            if is_over() {
                return true;
            }
            let Some(domain) = self.look(triggered) else { return true };
            let woken = match domain {
                Some(shared) => receive::wait(&shared, &self.notify, seen, deadline, Wanted::Samples),
                None => receive::sleep(&self.notify, seen, deadline),
            };
            if !woken {
                return false;
            }
        }
    }

    /// Refuses conditions on entities that were made before `fork()`.
    fn check_process(&self) -> Result<()> {
        let is_inherited = |condition: &Condition| condition.entity().is_some_and(EntityCore::is_inherited);
        if self.lock().iter().any(is_inherited) {
            return Err(Error::Forked("an entity that the wait set waits for".into()));
        }
        Ok(())
    }

    /// Finds the conditions that are triggered. When none is: the domain that data may come from, that of the
    /// first condition that waits for some.
    #[expect(clippy::option_option, reason = "nothing is triggered, and no domain has what is waited for")]
    fn look(&self, triggered: &mut Vec<Condition>) -> Option<Option<Arc<Shared>>> {
        let conditions = self.lock();
        let before = triggered.len();
        triggered.extend(conditions.iter().filter(|condition| condition.trigger_value()).cloned());
        (triggered.len() == before).then(|| conditions.iter().find_map(Condition::shared).cloned())
    }

    /// The conditions attached.
    #[must_use]
    pub fn conditions(&self) -> Vec<Condition> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Condition>> {
        lock(&self.conditions)
    }
}

impl Drop for WaitSet {
    fn drop(&mut self) {
        for condition in self.lock().drain(..) {
            condition.waiters().detach(&self.notify);
        }
    }
}
