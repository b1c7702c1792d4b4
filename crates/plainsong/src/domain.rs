//! What the participants of one domain share in this process: sockets, threads, timer and registry.

use std::io;
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::thread::JoinHandle;

use plainsong_proto::discovery::{LocalLocators, Participant};
use plainsong_proto::locator::ports;
use plainsong_proto::stats::{DropCounters, DropReason};

use crate::base::config::Config;
use crate::base::fork;
use crate::base::locks::lock;
use crate::runtime::dispatch::DeferredEvents;
use crate::runtime::drops::Drops;
use crate::runtime::heap::Heap;
use crate::runtime::placement::Placement;
use crate::runtime::receive::{self, UserInputs};
use crate::runtime::registry::Registry;
use crate::runtime::timer::Timer;
use crate::runtime::{ParticipantSlot, Shared};
use crate::transport::{Traffic, Transports};

pub(crate) use crate::runtime::EventSink;
pub use crate::transport::InterfaceReport;

/// One domain of this process. Its threads end when the last user of it is gone.
pub(crate) struct Domain {
    /// In which process it was opened: see [`fork`].
    generation: u32,
    domain_id: u16,
    config: Config,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

static DOMAINS: Mutex<Vec<Weak<Domain>>> = Mutex::new(Vec::new());

impl Domain {
    /// The domain with that id and exactly these settings; opened when nobody in this process uses it yet.
    ///
    /// # Errors
    /// The domain id is too large, or the host refuses sockets or threads.
    pub(crate) fn join(domain_id: u16, config: &Config) -> io::Result<Arc<Self>> {
        // Outlives the lock: whoever drops the last user of a domain waits for its threads.
        let mut open = Vec::new();
        let mut domains = lock(&DOMAINS);
        domains.retain(|domain| domain.strong_count() > 0);
        open.extend(domains.iter().filter_map(Weak::upgrade));
        let same = |domain: &&Arc<Self>| {
            domain.domain_id == domain_id && domain.config == *config && !domain.is_inherited()
        };
        if let Some(domain) = open.iter().find(same) {
            return Ok(Arc::clone(domain));
        }
        let domain = Self::open(domain_id, config)?;
        domains.push(Arc::downgrade(&domain));
        Ok(domain)
    }

    /// A domain of its own, with sockets and threads that it shares with no other.
    ///
    /// # Errors
    /// As [`Domain::join`].
    pub(crate) fn open(domain_id: u16, config: &Config) -> io::Result<Arc<Self>> {
        if domain_id > ports::DOMAIN_MAX {
            let message =
                format!("domain {domain_id} has no UDP ports; the largest is {}", ports::DOMAIN_MAX);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Self::with_transports(domain_id, config, Transports::open(domain_id, config)?)
    }

    /// A domain whose datagrams go by these transports.
    ///
    /// # Errors
    /// The host refuses threads.
    pub(crate) fn with_transports(
        domain_id: u16,
        config: &Config,
        transport: Transports,
    ) -> io::Result<Arc<Self>> {
        let shared = Arc::new(Shared {
            inputs: UserInputs::new(&transport, config),
            deferred: DeferredEvents::default(),
            transport,
            timer: Timer::default(),
            registry: Registry::default(),
            drops: Drops::default(),
            heap: Heap::default(),
        });
        let generation = fork::generation();
        let mut domain = Self { generation, domain_id, config: config.clone(), shared, threads: Vec::new() };
        // On failure the drop of `domain` ends the threads that run already.
        for input in domain.shared.transport.inputs() {
            let name = format!("{}-{domain_id}", input.name);
            let placement = match input.traffic {
                Traffic::Discovery | Traffic::Links => Placement::of_meta_thread(),
                Traffic::User(_) => Placement::of_receive_threads(config),
            };
            domain.spawn(name, placement, move |shared| receive::run(shared, input))?;
        }
        domain.spawn(format!("timer-{domain_id}"), Placement::default(), receive::run_timer)?;
        Ok(Arc::new(domain))
    }

    pub(crate) const fn domain_id(&self) -> u16 {
        self.domain_id
    }

    fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    /// Starts a thread, which is where it shall be before this returns.
    fn spawn(
        &mut self,
        name: String,
        placement: Placement,
        run: impl FnOnce(&Arc<Shared>) + Send + 'static,
    ) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let (tell, told) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            let placed = placement.apply();
            let is_placed = placed.is_ok();
            // Whoever opens the domain waits for it.
            let _ = tell.send(placed);
            if is_placed {
                run(&shared);
            }
        })?;
        self.threads.push(thread);
        told.recv().unwrap_or_else(|_| Err(io::Error::other("a thread ended before it began")))
    }

    /// Where participants of this domain can be reached, and where they announce themselves.
    pub(crate) fn local_locators(&self) -> LocalLocators {
        self.shared.transport.locators()
    }

    /// Registers a participant, then starts it.
    pub(crate) fn add_participant(
        &self,
        control: Participant,
        sink: Arc<dyn EventSink>,
    ) -> Arc<ParticipantSlot> {
        let slot = ParticipantSlot::new(Arc::clone(&self.shared), control, sink);
        self.shared.registry.add(&slot);
        // The interfaces may have changed since the caller asked for the locators.
        let locators = self.local_locators();
        slot.control(|participant, now, out| {
            participant.set_locators(now, locators, out);
            participant.start(now, out);
        });
        slot
    }

    /// Tells everyone that the participant leaves, then forgets it.
    pub(crate) fn remove_participant(&self, slot: &ParticipantSlot) {
        slot.control(Participant::shutdown);
        self.shared.registry.remove(slot.prefix);
        slot.forget_deadlines();
    }

    /// What is known of each interface of this host.
    pub(crate) fn interfaces(&self) -> Vec<InterfaceReport> {
        self.shared.transport.report()
    }

    /// What was dropped before it reached any endpoint.
    pub(crate) fn drops(&self) -> DropCounters {
        let mut drops = self.shared.drops.counters();
        drops.count_many(DropReason::SocketFull, self.shared.transport.overflows());
        drops.count_many(DropReason::PoolUsedUp, self.shared.transport.unsent());
        drops.count_many(DropReason::Unreachable, self.shared.transport.unreachable());
        drops
    }
}

/// No domain is opened or looked for while this lives.
#[cfg(unix)]
pub(crate) type AllLocked = std::sync::MutexGuard<'static, Vec<Weak<Domain>>>;

#[cfg(unix)]
pub(crate) fn lock_all() -> AllLocked {
    lock(&DOMAINS)
}

/// In a process that was just forked: nothing that is done to the domains of its parent reaches them.
#[cfg(unix)]
pub(crate) fn abandon(all: &AllLocked) {
    all.iter().filter_map(Weak::upgrade).for_each(|domain| {
        domain.shared.transport.abandon();
        domain.shared.inputs.abandon();
    });
}

impl Drop for Domain {
    fn drop(&mut self) {
        if self.is_inherited() {
            // They run in another process: there is nobody here to wait for, nor to let go.
            return self.threads.drain(..).for_each(std::mem::forget);
        }
        self.shared.transport.close();
        self.shared.inputs.stop();
        self.shared.timer.stop();
        self.shared.registry.clear();
        for thread in self.threads.drain(..) {
            // The last user may be a listener on one of our own threads: that one ends when it returns.
            if thread.thread().id() != std::thread::current().id() {
                // A panic of the thread was printed by the hook.
                let _ = thread.join();
            }
        }
    }
}

#[cfg(test)]
mod tests;
