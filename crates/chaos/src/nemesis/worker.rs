//! A process of a cell: it writes to one topic, reads from it, keeps the state that the samples make, and
//! tells all that. It ends with its input.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::Args;
use plainsong::Error;
use plainsong::atomic::{AtomicEvent, AtomicGroup, MemberPhase};
use plainsong::prelude::*;

use crate::clock::now_ns;
use crate::load::fill;
use crate::nemesis::history::order::{Entry, Id};
use crate::nemesis::mistake::{Mistake, Spoiled};
use crate::nemesis::plan::{Consistency, Durability};
use crate::nemesis::told::{Kind, Told, value};
use crate::random::Random;

const TOPIC: &str = "Commands";
/// Writers of a process: one writes at a pace, two wait for each of their samples, the last writes what it is
/// told to.
const WRITERS: u64 = 4;
/// Octets of a sample beside the rest: shortest and longest.
const BYTES: [u64; 2] = [16, 16 << 10];
/// Those of samples that are kept on disks.
const KEPT_BYTES: [u64; 2] = [16, 2 << 10];
/// Pauses between samples of the first writer, and between operations of the others, in milliseconds.
const PACE_MS: u64 = 8;
const PAUSE_MS: [u64; 2] = [3, 40];
/// The first writer waits for acknowledgments after so many samples.
const UNRESOLVED_MAX: u64 = 64;
/// Who writes as fast as it can waits after so many, and rests after so many.
const RUSH_UNRESOLVED_MAX: u64 = 8;
const RUSH_SAMPLES_MAX: u64 = 2_000;
const REGISTERS: u64 = 4;
const LISTS: u64 = 2;
/// So long lists grow, then others do.
const LIST_LIFE_NS: u64 = 2_000_000_000;
/// A call waits so long, then the next one does.
const STATE_PAUSE: Duration = Duration::from_secs(1);
const WAIT: Duration = Duration::from_millis(500);

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Its number, of this life alone
    #[arg(long)]
    pub(crate) process: u64,
    #[arg(long)]
    pub(crate) writes: bool,
    #[arg(long)]
    pub(crate) reads: bool,
    /// Its first writer writes as fast as it can, and the next what it is told to; there are no others
    #[arg(long)]
    pub(crate) rushes: bool,
    /// Processes that write and read, with itself
    #[arg(long)]
    pub(crate) writers: u64,
    #[arg(long)]
    pub(crate) readers: u64,
    /// Processes that write or read
    #[arg(long)]
    pub(crate) members: u64,
    /// It gets everything that was ever written: what it keeps is what others keep
    #[arg(long)]
    pub(crate) is_whole: bool,
    #[arg(long)]
    pub(crate) consistency: Consistency,
    #[arg(long)]
    pub(crate) durability: Durability,
    #[arg(long)]
    pub(crate) seed: u64,
    #[arg(long)]
    pub(crate) mistake: Option<Mistake>,
}

/// A sample.
#[derive(Clone, Debug, Default, DdsType)]
#[dds(name = "Command", final)]
struct Command<'a> {
    writer: u64,
    number: u64,
    code: u64,
    key: u64,
    octets: OctetSeq<'a>,
}

impl Command<'_> {
    const fn id(&self) -> Id {
        Id { writer: self.writer, number: self.number }
    }

    const fn kind(&self) -> Kind {
        Kind::of_code(self.code, self.key)
    }

    /// Of all that it contains.
    fn hash(&self) -> u64 {
        let mut hash = Random::new(self.writer ^ self.number.rotate_left(32)).next();
        let eights = self.octets.chunks(8).map(|eight| {
            let mut word = [0; 8];
            word[..eight.len()].copy_from_slice(eight);
            u64::from_le_bytes(word)
        });
        for word in [self.code, self.key, self.octets.len() as u64].into_iter().chain(eights) {
            hash = Random::new(hash ^ word).next();
        }
        hash
    }
}

/// What the threads of a process share.
struct Shared {
    options: Options,
    participant: DomainParticipant,
    resting: AtomicBool,
    /// Threads that do something.
    busy: AtomicU64,
}

impl Shared {
    fn is_atomic(&self) -> bool {
        self.options.consistency == Consistency::Atomic
    }

    /// What is known of the group of an ATOMIC topic.
    fn group(&self) -> Option<AtomicGroup> {
        self.participant.atomic_groups().into_iter().find(|group| group.topic == TOPIC)
    }

    /// Waits while nothing is to be done.
    fn rest(&self) {
        if self.resting.load(Ordering::Acquire) {
            self.busy.fetch_sub(1, Ordering::AcqRel);
            while self.resting.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(2));
            }
            self.busy.fetch_add(1, Ordering::AcqRel);
        }
    }
}

fn say(told: &Told) {
    // Whoever started it may have ended.
    if writeln!(std::io::stdout().lock(), "{told}").is_err() {
        std::process::exit(0);
    }
}

/// Tells what must not be refused. Who leaves deletes its participant under the hands of its threads; that a
/// disk failed is told by [`tell_disk`], and another process follows.
fn refused(what: &str, error: &Error) {
    match error {
        Error::Timeout { .. } => {}
        Error::AlreadyDeleted(_) | Error::LeftGroup { .. } | Error::Store(_) => {
            std::thread::sleep(Duration::from_secs(3_600));
        }
        _ => {
            say(&Told::Violation(format!("{what}: {error}")));
            std::thread::sleep(WAIT);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A writer and the number of its next sample.
struct Writing {
    writer: DataWriter<Command<'static>>,
    next: Id,
    random: Random,
    octets: Vec<u8>,
    bytes: [u64; 2],
}

impl Writing {
    /// Writes a sample, however long that takes.
    fn write(&mut self, kind: Kind) {
        let id = self.next;
        let length = self.random.between(self.bytes[0], self.bytes[1]) as usize;
        fill(&mut self.octets, length, id.writer, id.number);
        let (code, key) = kind.code();
        let octets = OctetSeq::from(&self.octets[..]);
        let sample = Command { writer: id.writer, number: id.number, code, key, octets };
        say(&Told::Begins { id, kind, hash: sample.hash(), at_ns: now_ns() });
        // What was refused for a timeout was not written.
        while let Err(error) = self.writer.write_borrowed(&sample) {
            refused("writing", &error);
        }
        self.next.number += 1;
    }

    /// Waits until all that it wrote is where it belongs.
    fn resolve(&self) {
        let Some(number) = self.next.number.checked_sub(1) else { return };
        let id = Id { number, ..self.next };
        loop {
            match self.writer.wait_for_acknowledgments(WAIT) {
                Ok(()) => return say(&Told::Resolved { id, at_ns: now_ns() }),
                Err(Error::OutcomeUnknown { count, .. }) => return say(&Told::Unknown { id, count }),
                Err(error) => refused("waiting for acknowledgments", &error),
            }
        }
    }
}

/// What all samples together made.
#[derive(Default)]
struct Replica {
    registers: BTreeMap<u64, u64>,
    /// What registers were before.
    stale: BTreeMap<u64, u64>,
    lists: BTreeMap<u64, Vec<u64>>,
    count: u64,
    /// So often something was missed.
    missed: u64,
    spoiled: Spoiled,
}

impl Replica {
    fn apply(&mut self, id: Id, kind: Kind) {
        self.count += 1;
        match kind {
            Kind::Load => {}
            Kind::Register(key) => {
                if let Some(before) = self.registers.insert(key, value(id)) {
                    self.stale.insert(key, before);
                }
            }
            Kind::Append(key) => self.lists.entry(key).or_default().push(value(id)),
        }
    }
}

/// A reader and what it got.
struct Reading {
    reader: DataReader<Command<'static>>,
    taken: Mutex<(SampleBuffer<Command<'static>>, Replica)>,
}

impl Reading {
    /// Takes what is there, in its order.
    fn take(&self, shared: &Shared) {
        let mut taken = lock(&self.taken);
        let (samples, replica) = &mut *taken;
        if let Err(error) = self.reader.take_reusing(&ReadOptions::new(), samples) {
            return refused("taking", &error);
        }
        for sample in samples.iter() {
            let Some(data) = sample.data.as_ref() else { continue };
            let id = data.id();
            replica.apply(id, data.kind());
            let (position, epoch) = match shared.options.consistency {
                Consistency::Eventual => (replica.count, 0),
                Consistency::Atomic => (sample.info.agreed.position, sample.info.agreed.epoch),
            };
            let entry = Entry { position, epoch, id, hash: data.hash(), at_ns: now_ns() };
            let mistake = shared.options.mistake;
            replica.spoiled.entries(mistake, entry).for_each(|entry| say(&Told::Got(entry)));
        }
        if shared.group().is_some_and(|group| group.counts.diverged > 0) {
            say(&Told::Violation("has something else than most others".to_owned()));
        }
        // It is known before what comes after it is delivered. Who has no history has none of what was agreed
        // on without it.
        let missed = shared.group().map_or(0, |group| match shared.options.durability {
            Durability::Volatile => group.counts.data_loss + group.counts.evicted,
            Durability::TransientLocal | Durability::Persistent => group.counts.data_loss,
        });
        while replica.missed < missed {
            replica.missed += 1;
            say(&Told::Missed);
        }
    }

    /// Reads a register or lists as they are now, if it can be told how they are.
    fn read(&self, shared: &Shared, what: impl FnOnce(&Replica, u64) -> Told) -> bool {
        let began_ns = now_ns();
        if shared.is_atomic()
            && let Err(error) = self.reader.sync(WAIT)
        {
            refused("synchronizing", &error);
            return false;
        }
        self.take(shared);
        let replica = &lock(&self.taken).1;
        // Who missed something does not know how they are.
        if replica.missed == 0 || shared.options.durability != Durability::Volatile {
            say(&what(replica, began_ns));
        }
        true
    }

    fn read_register(&self, shared: &Shared, key: u64) -> bool {
        self.read(shared, |replica, began_ns| {
            let is_stale = shared.options.mistake == Some(Mistake::Stale);
            let registers = if is_stale { &replica.stale } else { &replica.registers };
            let value = registers.get(&key).copied();
            Told::Register { key, value, began_ns, ended_ns: now_ns() }
        })
    }

    /// Lists that elements are appended to now.
    fn read_lists(&self, shared: &Shared) -> bool {
        self.read(shared, |replica, began_ns| {
            let list = |key| (key, replica.lists.get(&key).cloned().unwrap_or_default());
            Told::Lists { lists: current_lists().map(list).collect(), began_ns, ended_ns: now_ns() }
        })
    }

    /// Everything once more, in the end.
    fn read_all(&self, shared: &Shared) {
        let all = |replica: &Replica, began_ns| {
            let lists = replica.lists.iter().map(|(key, list)| (*key, list.clone())).collect();
            Told::Lists { lists, began_ns, ended_ns: now_ns() }
        };
        while !self.read(shared, all) {}
        (0..REGISTERS).for_each(|key| while !self.read_register(shared, key) {});
    }
}

/// The lists that elements are appended to now.
fn current_lists() -> std::ops::Range<u64> {
    let first = now_ns() / LIST_LIFE_NS * LISTS;
    first..first + LISTS
}

/// Runs until the end of its input.
///
/// # Errors
/// What the library refuses.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let fail = |error: Error| error.to_string();
    let participant = DomainParticipant::new(0).map_err(fail)?;
    let shared = Arc::new(Shared {
        options: options.clone(),
        participant: participant.clone(),
        resting: AtomicBool::new(true),
        busy: AtomicU64::new(0),
    });
    tell_disk(&participant);
    let topic = participant.create_topic(TOPIC, QosSet::default()).map_err(fail)?;
    let mut random = Random::new(options.seed);
    let mut reading = None;
    if options.reads {
        let subscriber = participant.create_subscriber(QosSet::default()).map_err(fail)?;
        let reader = subscriber.create_reader(&topic, requested(options)).map_err(fail)?;
        let taken = Mutex::new((SampleBuffer::new(), Replica::default()));
        reading = Some(Arc::new(Reading { reader, taken }));
    }
    let mut writers = Vec::new();
    if options.writes {
        let publisher = participant.create_publisher(QosSet::default()).map_err(fail)?;
        let bytes = if options.durability == Durability::Persistent { KEPT_BYTES } else { BYTES };
        for number in 0..writers_of(options) {
            let writer = publisher.create_writer(&topic, offered(options)).map_err(fail)?;
            let next = Id { writer: options.process * WRITERS + number, number: 0 };
            let (random, octets) = (Random::new(random.next()), Vec::new());
            writers.push(Writing { writer, next, random, octets, bytes });
        }
    }
    await_matches(&writers, reading.as_deref(), &shared).map_err(fail)?;
    if let Some(reading) = reading.clone() {
        let shared = Arc::clone(&shared);
        std::thread::spawn(move || keep_reading(&reading, &shared));
    }
    let mut writers = writers.into_iter();
    if let Some(writing) = writers.next() {
        begin(&shared, move |shared| stream(writing, shared));
    }
    for index in 1..writers_of(options) - 1 {
        let (writing, reading) = (writers.next(), reading.clone().filter(|_| options.is_whole));
        let random = Random::new(options.seed ^ index);
        if writing.is_some() || reading.is_some() {
            begin(&shared, move |shared| act(writing, reading.as_deref(), random, shared));
        }
    }
    obey(&shared, reading.as_deref(), writers.next());
    Ok(())
}

/// Writers of a process that writes.
const fn writers_of(options: &Options) -> u64 {
    if options.rushes { 2 } else { WRITERS }
}

/// Tells when this process leaves the group since its disk fails.
fn tell_disk(participant: &DomainParticipant) {
    let known = participant.clone();
    participant.on_atomic_event(move |_, event| {
        if event == AtomicEvent::StorageFailed {
            let why = known.atomic_groups().into_iter().find_map(|group| group.store_error);
            say(&Told::DiskFailed(why.unwrap_or_default().replace('\n', ";")));
        }
    });
}

fn offered(options: &Options) -> QosSet {
    promised(QosSet::writer().keep_all().max_blocking_time(WAIT), options)
}

fn requested(options: &Options) -> QosSet {
    promised(QosSet::reader().reliable().keep_all(), options)
}

/// What the topic promises.
fn promised(qos: QosSet, options: &Options) -> QosSet {
    let mut qos = qos.consistency(match options.consistency {
        Consistency::Eventual => ConsistencyKind::Eventual,
        Consistency::Atomic => ConsistencyKind::Atomic,
    });
    if options.mistake == Some(Mistake::Unsynced) {
        qos.consistency.deliver_at = DeliverAt::Stable;
    }
    match options.durability {
        Durability::Volatile => qos,
        Durability::TransientLocal => qos.durability(plainsong::prelude::Durability::TransientLocal),
        Durability::Persistent => qos.durability(plainsong::prelude::Durability::Persistent),
    }
}

/// Starts a thread that does something whenever this process does not rest.
fn begin(shared: &Arc<Shared>, action: impl FnOnce(&Shared) + Send + 'static) {
    shared.busy.fetch_add(1, Ordering::AcqRel);
    let shared = Arc::clone(shared);
    std::thread::spawn(move || action(&shared));
}

/// Waits until everybody has found everybody, and tells it.
fn await_matches(writers: &[Writing], reading: Option<&Reading>, shared: &Shared) -> Result<(), Error> {
    let options = &shared.options;
    loop {
        let mut is_complete = true;
        if shared.is_atomic() && (options.writes || options.reads) {
            let is_there = |group: AtomicGroup| {
                group.phase == MemberPhase::Active && group.members.len() as u64 >= options.members
            };
            is_complete = shared.group().is_some_and(is_there);
        } else {
            for writing in writers {
                is_complete &= writing.writer.matched_subscriptions()?.len() as u64 >= options.readers;
            }
            if let Some(reading) = reading {
                let matched = reading.reader.matched_publications()?.len() as u64;
                is_complete &= matched >= options.writers * WRITERS;
            }
        }
        if is_complete {
            say(&Told::Ready);
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Does what it is told until the end of its input.
fn obey(shared: &Arc<Shared>, reading: Option<&Reading>, mut last: Option<Writing>) {
    let stated = Arc::clone(shared);
    std::thread::spawn(move || tell_state(&stated));
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match line.as_str() {
            "go" => shared.resting.store(false, Ordering::Release),
            "rest" => {
                shared.resting.store(true, Ordering::Release);
                while shared.busy.load(Ordering::Acquire) > 0 {
                    std::thread::sleep(Duration::from_millis(2));
                }
                say(&Told::Rests);
            }
            // Those who came back meanwhile read something, too.
            "write" => {
                if let Some(writing) = &mut last {
                    writing.write(Kind::Load);
                    writing.resolve();
                }
                say(&Told::Rests);
            }
            _ => {
                if let Some(reading) = reading.filter(|_| shared.options.is_whole) {
                    reading.read_all(shared);
                }
                say(&Told::Rests);
            }
        }
    }
}

/// Tells what is known of the group now and then.
fn tell_state(shared: &Shared) {
    while shared.is_atomic() {
        std::thread::sleep(STATE_PAUSE);
        if let Some(group) = shared.group() {
            say(&Told::State(format!("{group} {:?}", group.counts).replace('\n', ";")));
        }
    }
}

fn keep_reading(reading: &Reading, shared: &Shared) {
    let waiting = WaitSet::new();
    waiting.attach(reading.reader.read_condition(&ReadOptions::new()));
    loop {
        // Nothing came.
        let _ = waiting.wait(WAIT);
        reading.take(shared);
    }
}

/// Writes at a pace, and waits for acknowledgments now and then.
fn stream(mut writing: Writing, shared: &Shared) {
    let rushes = shared.options.rushes;
    let unresolved_max = if rushes { RUSH_UNRESOLVED_MAX } else { UNRESOLVED_MAX };
    loop {
        if writing.next.number % unresolved_max == unresolved_max - 1
            || shared.resting.load(Ordering::Acquire)
        {
            writing.resolve();
        }
        shared.rest();
        if !rushes || writing.next.number < RUSH_SAMPLES_MAX {
            writing.write(Kind::Load);
        }
        if !rushes || writing.next.number >= RUSH_SAMPLES_MAX {
            std::thread::sleep(Duration::from_millis(PACE_MS));
        }
    }
}

/// Writes to registers and lists, and reads them, one after the other.
fn act(mut writing: Option<Writing>, reading: Option<&Reading>, mut random: Random, shared: &Shared) {
    loop {
        shared.rest();
        let is_read = writing.is_none() || reading.is_some() && random.percent(50);
        let is_register = random.percent(50);
        let key =
            if is_register { random.below(REGISTERS) } else { current_lists().start + random.below(LISTS) };
        match (&mut writing, reading) {
            (_, Some(reading)) if is_read => {
                // What cannot be told is no operation.
                let _ =
                    if is_register { reading.read_register(shared, key) } else { reading.read_lists(shared) };
            }
            (Some(writing), _) => {
                writing.write(if is_register { Kind::Register(key) } else { Kind::Append(key) });
                writing.resolve();
            }
            (None, _) => {}
        }
        std::thread::sleep(Duration::from_millis(random.between(PAUSE_MS[0], PAUSE_MS[1])));
    }
}
