//! Which participants and endpoints live here: snapshots that the receive threads read without a lock.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use arc_swap::{ArcSwap, Guard};
use plainsong_proto::discovery::{Command, News, Participant};
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::locator::Locator;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::time::Now;

use super::listener_time::ListenerTime;
use super::{EventSink, Held, Rank, ReaderSlot, Shared, Timed, WriterSlot, dispatch};
use crate::base::clock;
use crate::base::locks::lock;
use crate::base::locks::{read, write};

/// The participants of a domain in this process, sorted by prefix.
#[derive(Default)]
pub(crate) struct Registry {
    participants: ArcSwap<Vec<Arc<ParticipantSlot>>>,
}

/// A local participant: its control plane, its endpoints, and where its events go.
pub(crate) struct ParticipantSlot {
    /// The first twelve octets of the GUIDs of its entities.
    pub(crate) prefix: GuidPrefix,
    shared: Arc<Shared>,
    control: Mutex<Timed<Participant>>,
    writers: ArcSwap<Vec<Arc<WriterSlot>>>,
    readers: ArcSwap<Vec<Arc<ReaderSlot>>>,
    /// Readers matched with each writer: for submessages that name no reader.
    matched: RwLock<HashMap<Guid, Arc<[Arc<ReaderSlot>]>>>,
    sink: Arc<dyn EventSink>,
    pub(super) listener_time: ListenerTime,
    /// What others of this process told, until the timer thread has it heard.
    deferred: Mutex<Vec<News>>,
}

/// The timer's entry of a participant for what others of this process told it.
const NEWS: EntityId = EntityId::SPDP_READER;

/// The timer's entry of a participant for what it tells others of its counters.
pub(crate) const STATISTICS_TIMER: EntityId = EntityId::SPDP_WRITER;

impl Registry {
    /// All participants, sorted by prefix, as they are now.
    pub(crate) fn participants(&self) -> Guard<Arc<Vec<Arc<ParticipantSlot>>>> {
        self.participants.load()
    }

    /// The participant with that prefix.
    pub(crate) fn participant(&self, prefix: GuidPrefix) -> Option<Arc<ParticipantSlot>> {
        find(&self.participants.load(), |slot| slot.prefix, prefix).cloned()
    }

    /// Whether a participant with that prefix lives here.
    pub(crate) fn contains(&self, prefix: GuidPrefix) -> bool {
        find(&self.participants.load(), |slot| slot.prefix, prefix).is_some()
    }

    pub(crate) fn insert(&self, participant: &Arc<ParticipantSlot>) {
        insert(&self.participants, |slot| slot.prefix, participant);
    }

    /// A participant is here from now on: it hears of those that were before, of whose later news it hears as
    /// all do.
    pub(crate) fn add(&self, slot: &Arc<ParticipantSlot>) {
        self.insert(slot);
        let participants = self.participants();
        let others = participants.iter().filter(|it| it.prefix != slot.prefix);
        if others.map(|other| other.introduce_to(slot)).count() > 0 {
            slot.begin_among_others();
        }
    }

    pub(crate) fn remove(&self, prefix: GuidPrefix) {
        remove(&self.participants, |slot| slot.prefix, prefix);
    }

    /// Forgets all participants; they hold on to what they share with the registry.
    pub(crate) fn clear(&self) {
        self.participants.store(Arc::default());
    }
}

impl ParticipantSlot {
    pub(crate) fn new(shared: Arc<Shared>, control: Participant, sink: Arc<dyn EventSink>) -> Arc<Self> {
        Arc::new(Self {
            prefix: control.guid().prefix,
            shared,
            control: Mutex::new(Timed::new(control)),
            writers: ArcSwap::default(),
            readers: ArcSwap::default(),
            matched: RwLock::default(),
            sink,
            listener_time: ListenerTime::new(),
            deferred: Mutex::default(),
        })
    }

    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Much of what it knew was forgotten.
    pub(crate) fn memory_freed(&self) {
        self.shared.heap.freed(&self.shared.timer);
    }

    pub(crate) fn sink(&self) -> &dyn EventSink {
        &*self.sink
    }

    /// The local writer with that entity id.
    pub(crate) fn writer(&self, id: EntityId) -> Option<Arc<WriterSlot>> {
        find(&self.writers.load(), |slot| slot.id, id).cloned()
    }

    /// Wakes who waits for an endpoint's progress.
    pub(crate) fn progress(&self, id: EntityId) {
        if let Some(writer) = self.writer(id) {
            writer.progress.wake_all();
        } else if let Some(reader) = self.reader(id) {
            reader.progress.wake_all();
        }
    }

    /// The local readers, sorted by entity id, as they are now.
    pub(crate) fn readers(&self) -> Guard<Arc<Vec<Arc<ReaderSlot>>>> {
        self.readers.load()
    }

    /// The local reader with that entity id.
    pub(crate) fn reader(&self, id: EntityId) -> Option<Arc<ReaderSlot>> {
        find(&self.readers.load(), |slot| slot.id, id).cloned()
    }

    /// Makes a writer known to the receive and timer threads. Do this before announcing it.
    pub(crate) fn insert_writer(&self, slot: &Arc<WriterSlot>) {
        insert(&self.writers, |slot| slot.id, slot);
        slot.announce_deadline(&self.shared);
    }

    /// Makes a reader known to the receive and timer threads. Do this before announcing it.
    pub(crate) fn insert_reader(&self, slot: &Arc<ReaderSlot>) {
        insert(&self.readers, |slot| slot.id, slot);
        slot.announce_deadline(&self.shared);
    }

    /// Nothing reaches the writer any more.
    pub(crate) fn remove_writer(&self, id: EntityId) {
        remove(&self.writers, |slot| slot.id, id);
        self.shared.timer.remove(self.prefix.entity(id));
    }

    /// Nothing reaches the reader any more.
    pub(crate) fn remove_reader(&self, id: EntityId) {
        remove(&self.readers, |slot| slot.id, id);
        self.shared.timer.remove(self.prefix.entity(id));
        let mut matched = write(&self.matched);
        for readers in matched.values_mut().filter(|readers| readers.iter().any(|slot| slot.id == id)) {
            *readers = readers.iter().filter(|slot| slot.id != id).cloned().collect();
        }
        matched.retain(|_, readers| !readers.is_empty());
    }

    /// Local readers matched with `writer`.
    pub(crate) fn matched_readers(&self, writer: Guid) -> Option<Arc<[Arc<ReaderSlot>]>> {
        read(&self.matched).get(&writer).cloned()
    }

    fn lock(&self) -> (Held, MutexGuard<'_, Timed<Participant>>) {
        (Rank::Participant.hold(), lock(&self.control))
    }

    /// Runs `f` under the control-plane lock, sends what it left, carries out its commands, unlocks, then
    /// reports the events.
    pub(crate) fn control<R>(&self, f: impl FnOnce(&mut Participant, Now, &mut Outbox) -> R) -> R {
        dispatch::with_outbox(|out| {
            let result = self.run(clock::now(), out, f);
            self.report(out);
            result
        })
    }

    /// Like [`ParticipantSlot::control`] for callers that report later.
    pub(crate) fn run<R>(
        &self,
        now: Now,
        out: &mut Outbox,
        f: impl FnOnce(&mut Participant, Now, &mut Outbox) -> R,
    ) -> R {
        let (_rank, mut control) = self.lock();
        let result = control.run(&self.shared, self.prefix.participant(), now, out, |control, now, out| {
            let first = out.transmits().len();
            let result = f(control, now, out);
            out.merge(first);
            result
        });
        self.carry_out(&mut control, now, out);
        self.pass_on(&mut control, now);
        result
    }

    /// Has the others of this process told what is news to them. The participant stays locked, so that they
    /// hear in order.
    fn pass_on(&self, control: &mut Timed<Participant>, now: Now) {
        if !control.machine.has_news() {
            return;
        }
        let news = control.machine.take_news();
        for other in self.shared.registry.participants().iter().filter(|it| it.prefix != self.prefix) {
            other.leave_news(&news, now);
        }
    }

    /// Tells a participant that is new here all about this one.
    pub(crate) fn introduce_to(&self, newcomer: &Self) {
        let (_rank, mut control) = self.lock();
        let introduction = control.machine.introduction();
        newcomer.leave_news(&introduction, clock::now());
    }

    /// It will tell the others of this process what is new, and hears first what they told it: one of them
    /// may hear other processes for it.
    pub(crate) fn begin_among_others(&self) {
        self.control(|participant, _, _| participant.share_process());
        dispatch::with_outbox(|out| {
            self.hear_news(clock::now(), out);
            self.report(out);
        });
    }

    /// The timer thread soon reads them: no thread has to hold the locks of two participants, nor to call the
    /// listeners of another than its own.
    fn leave_news(&self, news: &[News], now: Now) {
        let mut deferred = lock(&self.deferred);
        if deferred.is_empty() && !news.is_empty() {
            self.shared.timer.set(self.prefix.entity(NEWS), now.mono);
        }
        deferred.extend_from_slice(news);
    }

    fn hear_news(&self, now: Now, out: &mut Outbox) {
        let (_rank, mut control) = self.lock();
        let news = std::mem::take(&mut *lock(&self.deferred));
        control.run(&self.shared, self.prefix.participant(), now, out, |control, now, out| {
            news.iter().for_each(|news| control.on_news(now, news, out));
            out.merge(0);
        });
        self.carry_out(&mut control, now, out);
        self.pass_on(&mut control, now);
    }

    /// The timer has nothing to do for the participant any more.
    pub(crate) fn forget_deadlines(&self) {
        for entity in [EntityId::PARTICIPANT, NEWS, STATISTICS_TIMER] {
            self.shared.timer.remove(self.prefix.entity(entity));
        }
    }

    /// Looks at the control plane: nothing may change, nothing is sent.
    pub(crate) fn look<R>(&self, f: impl FnOnce(&Participant) -> R) -> R {
        let (_rank, control) = self.lock();
        f(control.machine())
    }

    /// The timer's entry of `entity` went off.
    pub(crate) fn fire(&self, entity: EntityId, now: Now, out: &mut Outbox) {
        if entity == EntityId::PARTICIPANT {
            let (_rank, mut control) = self.lock();
            if control.machine.scans_at(now.mono) {
                control.machine.set_scan(self.shared.transport.scan());
            }
            control.fire(&self.shared, self.prefix.participant(), now, out);
            self.carry_out(&mut control, now, out);
            self.pass_on(&mut control, now);
        } else if entity == NEWS {
            self.hear_news(now, out);
        } else if let Some(writer) = self.writer(entity) {
            writer.fire(&self.shared, now, out);
        } else if let Some(reader) = self.reader(entity) {
            reader.fire(&self.shared, now, out);
        } else {
            self.sink.fire(entity, out);
        }
    }

    /// Carries out the commands in order, and what follows from them. The control plane stays locked, so that
    /// commands of two calls cannot overtake each other.
    fn carry_out(&self, control: &mut Timed<Participant>, now: Now, out: &mut Outbox) {
        while !out.commands.is_empty() {
            let mut commands = std::mem::take(&mut out.commands);
            let mut links = Vec::new();
            // What endpoints say as they match is short, and goes to few sockets.
            out.gather(true);
            for command in commands.drain(..) {
                match command {
                    Command::Link { node } => {
                        let answer = self.shared.transport.link(node);
                        links.extend(answer.map(|answer| (node, answer)));
                    }
                    of_endpoint => self.carry_out_one(now, of_endpoint, out),
                }
            }
            self.shared.send_gathered(out);
            // Gives the memory back.
            out.commands = commands;
            for (node, answer) in links {
                control.run(&self.shared, self.prefix.participant(), now, out, |control, now, out| {
                    control.memory_link(now, node, answer, out);
                });
            }
        }
    }

    fn carry_out_one(&self, now: Now, command: Command, out: &mut Outbox) {
        #[cfg(feature = "sim")]
        self.sink.command(&command);
        let writer = |id, out: &mut Outbox, f: &dyn Fn(&mut super::Writer, &mut Outbox)| {
            if let Some(slot) = self.writer(id) {
                slot.run(&self.shared, now, out, |writer, _, out| f(writer, out));
            }
        };
        let reader = |id, out: &mut Outbox, f: &dyn Fn(&mut super::Reader, &mut Outbox)| {
            let slot = self.reader(id)?;
            slot.run(&self.shared, now, out, |reader, _, out| f(reader, out));
            Some(slot)
        };
        match command {
            Command::MatchReader { writer: id, reader } => {
                let elsewhere = reader.locators.iter().filter(|_| !reader.same_host);
                let address = |locator: &Locator| locator.ip().filter(|address| !address.is_multicast());
                let paths: Vec<_> = elsewhere
                    .filter_map(address)
                    .map(|address| (address, self.shared.transport.path_bytes(address)))
                    .collect();
                writer(id, out, &|writer, out| {
                    paths.iter().for_each(|(address, bytes)| writer.path(*address, *bytes));
                    writer.match_reader(now, &reader, out);
                });
            }
            // Is of no endpoint.
            Command::Link { .. } => {}
            Command::UnmatchReader { writer: id, reader } => {
                writer(id, out, &|writer, out| writer.unmatch_reader(now, reader, out));
            }
            Command::IncompatibleReader { writer: id, policies } => {
                writer(id, out, &|writer, out| writer.incompatible_reader(&policies, out));
            }
            Command::MatchWriter { reader: id, writer } => {
                let slot = reader(id, out, &|reader, out| reader.match_writer(now, &writer, out));
                // What the writer sends to others is not for a reader that has it of a group.
                let slot = slot.filter(|slot| !slot.is_agreed);
                self.index(writer.guid, id, slot);
            }
            Command::UnmatchWriter { reader: id, writer } => {
                self.index(writer, id, None);
                reader(id, out, &|reader, out| reader.unmatch_writer(now, writer, out));
            }
            Command::IncompatibleWriter { reader: id, policies } => {
                reader(id, out, &|reader, out| reader.incompatible_writer(&policies, out));
            }
            Command::GroupWriters { reader: id, publisher, writers } => {
                reader(id, out, &|reader, out| reader.set_group_writers(publisher, writers, out));
            }
            Command::WriterAsserted { writer: id } => {
                writer(id, out, &|writer, _| writer.participant_asserted(now));
            }
            Command::WriterAlive { reader: id, writer } => {
                reader(id, out, &|reader, out| reader.writer_liveliness(now, writer, out));
            }
        }
    }

    /// Notes that the reader `id` is matched with `writer` (`slot` given) or not any more.
    fn index(&self, writer: Guid, id: EntityId, slot: Option<Arc<ReaderSlot>>) {
        let mut matched = write(&self.matched);
        let before = matched.get(&writer).map_or(&[][..], |readers| readers);
        let readers: Arc<[_]> = before.iter().filter(|slot| slot.id != id).cloned().chain(slot).collect();
        if readers.is_empty() {
            matched.remove(&writer);
        } else {
            matched.insert(writer, readers);
        }
    }
}

/// The one that has the key by which they are sorted.
#[inline]
pub(crate) fn find<T, K: Ord>(slots: &[Arc<T>], key: impl Fn(&T) -> K, wanted: K) -> Option<&Arc<T>> {
    slots.binary_search_by_key(&wanted, |slot| key(slot)).ok().and_then(|position| slots.get(position))
}

fn insert<T, K: Ord>(slots: &ArcSwap<Vec<Arc<T>>>, key: impl Fn(&T) -> K, slot: &Arc<T>) {
    slots.rcu(|before| {
        let position = before.partition_point(|other| key(other) < key(slot));
        let mut after = Vec::with_capacity(before.len() + 1);
        after.extend_from_slice(&before[..position]);
        after.push(Arc::clone(slot));
        after.extend_from_slice(&before[position..]);
        after
    });
}

fn remove<T, K: Ord>(slots: &ArcSwap<Vec<Arc<T>>>, key: impl Fn(&T) -> K, unwanted: K) {
    slots.rcu(|before| before.iter().filter(|slot| key(slot) != unwanted).cloned().collect::<Vec<_>>());
}
