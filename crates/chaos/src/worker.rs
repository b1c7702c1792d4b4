//! A process under load: it writes and reads until it is killed, or its input ends.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::Args;
use plainsong::Error;
use plainsong::prelude::*;

use crate::check::{Fault, Found, Streams};
use crate::clock::{now_ns, ns, watch};
use crate::load::{FLOWS, Flow, Load, SURVIVORS, difference, fill, process_of, writer_id};
use crate::mistake::Mistake;
use crate::random::Random;
use crate::told::{Count, Told};

/// Pause between two counts.
const COUNT_PAUSE: Duration = Duration::from_millis(100);
/// Pause of a reader that polls.
const POLL_PAUSE: Duration = Duration::from_millis(3);
/// A longer wait for samples looks whether anything else is to be done.
const WAIT: Duration = Duration::from_millis(100);
/// Faults that one process tells.
const FAULTS_MAX: u64 = 20;

/// What a process is to do.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Its number; those below 16 are never killed.
    #[arg(long)]
    pub(crate) process: u64,
    /// The flows that it writes, a bit for each
    #[arg(long)]
    pub(crate) writes: u64,
    /// The flows that it reads
    #[arg(long)]
    pub(crate) reads: u64,
    #[arg(long)]
    pub(crate) seed: u64,
    /// A pause that is told
    #[arg(long)]
    pub(crate) stall_ms: u64,
    #[arg(long)]
    pub(crate) mistake: Option<Mistake>,
}

/// What the threads of a process share.
#[derive(Debug)]
struct Shared {
    options: Options,
    /// Nothing is to be written.
    resting: AtomicBool,
    /// When writing began or went on.
    load_since_ns: AtomicU64,
    /// Writers that are not at rest.
    writing: AtomicU64,
    written: AtomicU64,
    received: AtomicU64,
    octets: AtomicU64,
    late: AtomicU64,
    pause_ns: AtomicU64,
    write_ns: AtomicU64,
    faults: AtomicU64,
}

impl Shared {
    fn stall(&self) -> Duration {
        Duration::from_millis(self.options.stall_ms)
    }

    fn count(&self) -> Count {
        let of = |it: &AtomicU64| it.load(Ordering::Relaxed);
        Count {
            written: of(&self.written),
            received: of(&self.received),
            octets: of(&self.octets),
            late: of(&self.late),
            pause_ns: of(&self.pause_ns),
            write_ns: of(&self.write_ns),
        }
    }

    fn violation(&self, what: String) {
        if self.faults.fetch_add(1, Ordering::Relaxed) < FAULTS_MAX {
            say(&Told::Violation(format!("process {}: {what}", self.options.process)));
        }
    }

    /// Of a process that is never killed.
    fn lasted(&self, flow: usize, from_ns: u64, to_ns: u64, writing: bool) {
        if self.options.process >= SURVIVORS {
            return;
        }
        let took_ns = to_ns.saturating_sub(from_ns);
        let longest = if writing { &self.write_ns } else { &self.pause_ns };
        longest.fetch_max(took_ns, Ordering::Relaxed);
        if took_ns > ns(self.stall()) {
            say(&Told::Stall { flow, from_ns, to_ns, writing });
        }
    }
}

fn say(told: &Told) {
    // Whoever started it may have ended.
    if writeln!(std::io::stdout().lock(), "{told}").is_err() {
        std::process::exit(0);
    }
}

/// A writer, and the number of its next sample.
struct Writing {
    index: usize,
    writer: DataWriter<Load<'static>>,
    next: AtomicU64,
    /// When the write began that is not over; 0: none.
    began_ns: AtomicU64,
}

/// A reader and what it has received.
struct Reading {
    index: usize,
    reader: DataReader<Load<'static>>,
    taken: Mutex<(SampleBuffer<Load<'static>>, Streams)>,
}

/// Runs until the end of its input.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let fail = |error: Error| error.to_string();
    // Threads of those that are killed hold the others up less.
    let _ = rustix::process::nice(if options.process < SURVIVORS { -10 } else { 5 });
    let shared = Arc::new(Shared {
        options: options.clone(),
        resting: AtomicBool::new(false),
        load_since_ns: AtomicU64::new(now_ns()),
        writing: AtomicU64::new(0),
        written: AtomicU64::new(0),
        received: AtomicU64::new(0),
        octets: AtomicU64::new(0),
        late: AtomicU64::new(0),
        pause_ns: AtomicU64::new(0),
        write_ns: AtomicU64::new(0),
        faults: AtomicU64::new(0),
    });
    let participant = DomainParticipant::new(0).map_err(fail)?;
    let publisher = participant.create_publisher(QosSet::default()).map_err(fail)?;
    let subscriber = participant.create_subscriber(QosSet::default()).map_err(fail)?;
    let mut random = Random::new(options.seed);
    let (mut writers, mut readers) = (Vec::new(), Vec::new());
    for (index, flow) in FLOWS.iter().enumerate() {
        let topic = participant.create_topic(flow.topic, QosSet::default()).map_err(fail)?;
        if options.reads >> index & 1 == 1 {
            let reader = subscriber.create_reader(&topic, flow.requested()).map_err(fail)?;
            let taken = Mutex::new((SampleBuffer::new(), Streams::new(index, flow)));
            readers.push(Arc::new(Reading { index, reader, taken }));
        }
        if options.writes >> index & 1 == 1 {
            let writer = publisher.create_writer(&topic, flow.offered()).map_err(fail)?;
            writers.push(Arc::new(Writing {
                index,
                writer,
                next: AtomicU64::new(0),
                began_ns: AtomicU64::new(0),
            }));
        }
    }
    for reading in &readers {
        read(reading, &shared, random.below(3));
    }
    for writing in &writers {
        let (writing, shared) = (Arc::clone(writing), Arc::clone(&shared));
        let pause = writing_pause(&FLOWS[writing.index], options.process, &mut random);
        shared.writing.fetch_add(1, Ordering::Relaxed);
        std::thread::spawn(move || write(&writing, pause, &shared));
    }
    if let Some(mistake) = options.mistake {
        let shared = Arc::clone(&shared);
        std::thread::spawn(move || mistake.leak(&shared.resting));
    }
    if options.process < SURVIVORS {
        let long = shared.stall() / 3;
        std::thread::spawn(move || watch(long, |from_ns, to_ns| say(&Told::Paused { from_ns, to_ns })));
        let (writers, long) = (writers.clone(), shared.stall() / 2);
        std::thread::spawn(move || watch_writes(&participant, &writers, long));
    }
    let counting = Arc::clone(&shared);
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(COUNT_PAUSE);
            say(&Told::Count(counting.count()));
        }
    });
    say(&Told::Ready);
    obey(&writers, &readers, &shared);
    Ok(())
}

/// Those that are killed write slowly or fast, the others as told.
fn writing_pause(flow: &Flow, process: u64, random: &mut Random) -> Duration {
    if process < SURVIVORS {
        return flow.pause;
    }
    flow.pause.mul_f64(random.between(50, 800) as f64 / 100.0)
}

/// Does what it is told until the end of its input.
fn obey(writers: &[Arc<Writing>], readers: &[Arc<Reading>], shared: &Shared) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match line.as_str() {
            "rest" => shared.resting.store(true, Ordering::Relaxed),
            "go" => {
                shared.load_since_ns.store(now_ns(), Ordering::Relaxed);
                shared.resting.store(false, Ordering::Relaxed);
            }
            _ => report(writers, readers, shared),
        }
    }
}

fn report(writers: &[Arc<Writing>], readers: &[Arc<Reading>], shared: &Shared) {
    let mut matched = 0;
    for writing in writers {
        matched += writing.writer.matched_subscriptions().map_or(0, |it| it.len() as u64);
        let next = writing.next.load(Ordering::Acquire);
        if FLOWS[writing.index].reliable && next > 0 {
            say(&Told::Written {
                writer: writer_id(shared.options.process, writing.index),
                number: next - 1,
            });
        }
    }
    for reading in readers {
        matched += reading.reader.matched_publications().map_or(0, |it| it.len() as u64);
        if FLOWS[reading.index].reliable {
            let taken = lock(&reading.taken);
            taken.1.of_survivors().for_each(|(writer, number)| say(&Told::Seen { writer, number }));
        }
    }
    let resting = shared.writing.load(Ordering::Acquire) == 0;
    say(&Told::Count(shared.count()));
    say(&Told::Rests { matched, resting });
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes at a pace, and counts itself as resting when it does not.
fn write(writing: &Writing, pause: Duration, shared: &Shared) {
    let id = writer_id(shared.options.process, writing.index);
    let flow = &FLOWS[writing.index];
    let mistake = shared.options.mistake;
    let mut octets = Vec::new();
    let mut turn = 0;
    loop {
        if shared.resting.load(Ordering::Relaxed) {
            shared.writing.fetch_sub(1, Ordering::Release);
            while shared.resting.load(Ordering::Relaxed) {
                std::thread::sleep(pause);
            }
            shared.writing.fetch_add(1, Ordering::Relaxed);
        }
        for number in Mistake::numbers(mistake, turn) {
            fill(&mut octets, flow.length(id, number), id, number);
            Mistake::spoil(mistake, number, &mut octets);
            let from_ns = now_ns();
            let sample = Load { writer: id, number, octets: OctetSeq::from(&octets[..]) };
            writing.began_ns.store(from_ns, Ordering::Relaxed);
            if let Err(error) = writing.writer.write_borrowed(&sample) {
                shared.violation(format!("writing {}: {error}", flow.topic));
            }
            writing.began_ns.store(0, Ordering::Relaxed);
            shared.lasted(writing.index, from_ns, now_ns(), true);
            shared.written.fetch_add(1, Ordering::Relaxed);
            writing.next.fetch_max(number + 1, Ordering::Release);
        }
        std::thread::sleep(pause + Mistake::pause(mistake, turn, shared.stall()));
        turn += 1;
    }
}

/// Tells what writers say while a write lasts longer than so long. It never returns.
fn watch_writes(participant: &DomainParticipant, writers: &[Arc<Writing>], longer_than: Duration) {
    let mut told_ns = vec![0; writers.len()];
    loop {
        std::thread::sleep(longer_than / 4);
        for (writing, told_ns) in writers.iter().zip(&mut told_ns) {
            let from_ns = writing.began_ns.load(Ordering::Relaxed);
            if from_ns != 0 && from_ns != *told_ns && now_ns().saturating_sub(from_ns) > ns(longer_than) {
                *told_ns = from_ns;
                let state = waits_for(participant, &writing.writer);
                say(&Told::Waits { flow: writing.index, from_ns, state });
            }
        }
    }
}

/// What a writer knows of how its samples go, in one line.
fn waits_for(participant: &DomainParticipant, writer: &DataWriter<Load<'static>>) -> String {
    let delivery = writer.delivery().map_or_else(|error| error.to_string(), |it| it.to_string());
    let routes = participant.state().map_or_else(
        |error| error.to_string(),
        |state| {
            let of_writer = state.writers.items.iter().find(|it| it.guid == writer.guid());
            of_writer.map_or(String::new(), |it| format!("{:?} {:?} {:?}", it.routes, it.counters, it.drops))
        },
    );
    format!("{delivery}; {routes}").replace('\n', ", ")
}

/// Reads in one of three ways: in a listener, when a WaitSet says so, or now and then.
fn read(reading: &Arc<Reading>, shared: &Arc<Shared>, way: u64) {
    let (reading, shared) = (Arc::clone(reading), Arc::clone(shared));
    match way {
        0 => {
            let reader = reading.reader.clone();
            let mask = StatusMask::NONE.with(StatusKind::DataAvailable);
            reader.set_listener(Some(Arc::new(Hearing { reading, shared })), mask);
        }
        1 => {
            std::thread::spawn(move || {
                let waiting = WaitSet::new();
                waiting.attach(reading.reader.read_condition(&ReadOptions::new()));
                loop {
                    if waiting.wait(WAIT).is_ok() {
                        take(&reading, &shared);
                    }
                }
            });
        }
        _ => {
            std::thread::spawn(move || {
                loop {
                    std::thread::sleep(POLL_PAUSE);
                    take(&reading, &shared);
                }
            });
        }
    }
}

struct Hearing {
    reading: Arc<Reading>,
    shared: Arc<Shared>,
}

impl DataReaderListener for Hearing {
    fn on_data_available(&self, _: &AnyDataReader) {
        take(&self.reading, &self.shared);
    }
}

fn take(reading: &Reading, shared: &Shared) {
    let mut taken = lock(&reading.taken);
    let (samples, streams) = &mut *taken;
    if let Err(error) = reading.reader.take_reusing(&ReadOptions::new(), samples) {
        return shared.violation(format!("taking from {}: {error}", FLOWS[reading.index].topic));
    }
    let at_ns = now_ns();
    for sample in samples.iter().filter_map(|sample| sample.data.as_ref()) {
        let Found { fault, since_ns, count, joined_late } =
            streams.check(at_ns, sample.writer, sample.number, &sample.octets);
        if let Some(fault) = fault {
            let (topic, number) = (FLOWS[reading.index].topic, sample.number);
            let writer = process_of(sample.writer);
            let what = match fault {
                Fault::Corrupted => difference(&sample.octets, sample.writer, number),
                _ => String::new(),
            };
            shared.violation(format!(
                "sample {number} of {writer} in {topic}, after {count} of it: {what} {fault}"
            ));
        }
        shared.late.fetch_add(joined_late.into(), Ordering::Relaxed);
        if let Some(since_ns) = since_ns {
            let from_ns = since_ns.max(shared.load_since_ns.load(Ordering::Relaxed));
            shared.lasted(reading.index, from_ns, at_ns, false);
        }
        shared.received.fetch_add(1, Ordering::Relaxed);
        shared.octets.fetch_add(sample.octets.len() as u64, Ordering::Relaxed);
    }
}
