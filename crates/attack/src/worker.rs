//! One of the live pair: numbered samples, what became of them, and how long the longest pause was.

use std::io::{BufRead, Write};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use plainsong::config::Use;
use plainsong::prelude::*;

pub(crate) const TOPIC: &str = "Attacked";
pub(crate) const TYPE: &str = "Numbered";
/// Octets of a sample without its encapsulation.
pub(crate) const SAMPLE_BYTES: usize = 64;
/// The pause between samples.
const PERIOD: Duration = Duration::from_millis(4);
const KEYS: u32 = 8;
/// Samples that a writer keeps while they are not acknowledged: two seconds of them, so that who does not is
/// felt.
const UNACKNOWLEDGED_MAX: i32 = 500;
/// Samples of a key that a latched writer keeps: more than a short outage takes.
const LATCHED_DEPTH: i32 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    Writer,
    Reader,
    /// Sends what it is told to, from an address of its host.
    Neighbour,
}

/// A sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(name = "Numbered", final)]
struct Numbered {
    #[dds(key)]
    key: u32,
    /// The pair it belongs to; attacks do not know it.
    run: u32,
    number: u32,
    padding: [u32; 13],
}

/// What one of the pair has seen. Its words go through a pipe: a name, `=` and a number each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Samples written, or received of the own pair.
    pub(crate) samples: u64,
    /// The highest number of them.
    pub(crate) highest: u64,
    pub(crate) duplicates: u64,
    /// SAMPLE_LOST.
    pub(crate) lost: u64,
    /// Writes that failed.
    pub(crate) failed: u64,
    /// The longest pause between two samples, or the longest write, since it was asked for last.
    pub(crate) pause_ms: u64,
    /// Endpoints matched.
    pub(crate) matched: u64,
}

impl Seen {
    fn fields(&mut self) -> [(&'static str, &mut u64); 7] {
        [
            ("samples", &mut self.samples),
            ("highest", &mut self.highest),
            ("duplicates", &mut self.duplicates),
            ("lost", &mut self.lost),
            ("failed", &mut self.failed),
            ("pause_ms", &mut self.pause_ms),
            ("matched", &mut self.matched),
        ]
    }

    fn words(mut self) -> String {
        self.fields().map(|(name, value)| format!("{name}={value}")).join(" ")
    }

    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut seen = Self::default();
        for (name, value) in seen.fields() {
            let mut words = line.split_whitespace().filter_map(|word| word.split_once('='));
            *value = words.find(|(word, _)| *word == name)?.1.parse().ok()?;
        }
        Some(seen)
    }
}

enum Endpoint {
    Writer(DataWriter<Numbered>),
    Reader(DataReader<Numbered>),
}

impl Endpoint {
    fn guid(&self) -> Guid {
        match self {
            Self::Writer(writer) => writer.guid(),
            Self::Reader(reader) => reader.guid(),
        }
    }

    fn lost(&self) -> u64 {
        match self {
            Self::Writer(_) => 0,
            Self::Reader(reader) => {
                reader.sample_lost_status().map_or(0, |it| it.total_count.unsigned_abs().into())
            }
        }
    }

    fn matched(&self) -> u64 {
        let matched = match self {
            Self::Writer(writer) => writer.matched_subscriptions(),
            Self::Reader(reader) => reader.matched_publications(),
        };
        matched.map_or(0, |it| it.len() as u64)
    }
}

/// What the threads of a worker share.
#[derive(Default)]
struct Shared {
    seen: Mutex<Seen>,
    resting: AtomicBool,
}

impl Shared {
    fn with<R>(&self, change: impl FnOnce(&mut Seen) -> R) -> R {
        change(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Runs until the end of its input. `rest` stops a writer, everything else asks what was seen.
pub(crate) fn run(role: Role, run: u32, latched: bool) -> Result<(), String> {
    if role == Role::Neighbour {
        return neighbour();
    }
    let fail = |error: plainsong::Error| error.to_string();
    let config = Config { ipv6: Use::Off, ..Config::default() };
    let participant = DomainParticipantFactory::with_config(config)
        .create_participant(0, "pair", QosSet::default())
        .map_err(fail)?;
    let topic = participant.create_topic::<Numbered>(TOPIC, QosSet::default()).map_err(fail)?;
    let shared = Arc::new(Shared::default());
    let theirs = Arc::clone(&shared);
    let endpoint = match role {
        Role::Writer => {
            let publisher = participant.create_publisher(QosSet::default()).map_err(fail)?;
            let writer = publisher.create_writer(&topic, offered(latched)).map_err(fail)?;
            let ours = writer.clone();
            std::thread::spawn(move || write(&ours, run, &theirs));
            Endpoint::Writer(writer)
        }
        _ => {
            let subscriber = participant.create_subscriber(QosSet::default()).map_err(fail)?;
            let reader =
                subscriber.create_reader(&topic, QosSet::reader().reliable().keep_all()).map_err(fail)?;
            let ours = reader.clone();
            std::thread::spawn(move || take(&ours, run, &theirs));
            Endpoint::Reader(reader)
        }
    };
    say(&hex(&endpoint.guid().to_bytes()))?;
    for line in std::io::stdin().lock().lines() {
        match line.as_deref().map(str::trim) {
            Ok("rest") => shared.resting.store(true, Ordering::Relaxed),
            Ok(_) => {
                let (lost, matched) = (endpoint.lost(), endpoint.matched());
                let seen = shared.with(|seen| {
                    let told = Seen { lost, matched, ..*seen };
                    seen.pause_ms = 0;
                    told
                });
                say(&seen.words())?;
            }
            Err(_) => break,
        }
    }
    Ok(())
}

/// An unprivileged process of a host: each line of its input is a socket and the octets that it sends there.
fn neighbour() -> Result<(), String> {
    let fail = |error: std::io::Error| format!("a socket of its own: {error}");
    let socket = UdpSocket::bind("0.0.0.0:0").map_err(fail)?;
    say(&hex(&[0; 16]))?;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if let Some((to, octets)) = line.split_once(' ') {
            socket.send_to(&unhex(octets), to).map_err(fail)?;
        }
    }
    Ok(())
}

pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let octet = |at: usize| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok();
    (0..text.len() / 2).map_while(octet).collect()
}

/// A writer that keeps everything until it is acknowledged, or one that keeps some for those who come later.
fn offered(latched: bool) -> QosSet {
    if latched {
        return QosSet::writer().keep_last(LATCHED_DEPTH).durability(Durability::TransientLocal);
    }
    let resource_limits = ResourceLimits {
        max_samples: UNACKNOWLEDGED_MAX,
        max_samples_per_instance: UNACKNOWLEDGED_MAX,
        ..ResourceLimits::default()
    };
    QosSet { resource_limits, ..QosSet::writer().keep_all() }
}

fn say(line: &str) -> Result<(), String> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")
        .and_then(|()| output.flush())
        .map_err(|error| format!("standard output: {error}"))
}

/// Writes at a steady pace. What could not be written is written again.
fn write(writer: &DataWriter<Numbered>, run: u32, shared: &Shared) {
    let mut number = 0;
    loop {
        std::thread::sleep(PERIOD);
        if shared.resting.load(Ordering::Relaxed)
            || writer.matched_subscriptions().is_ok_and(|it| it.is_empty())
        {
            continue;
        }
        let sample = Numbered { key: number % KEYS, run, number: number + 1, padding: [number; 13] };
        let begin = Instant::now();
        let written = writer.write(&sample);
        let took_ms = begin.elapsed().as_millis() as u64;
        number += u32::from(written.is_ok());
        shared.with(|seen| {
            seen.failed += u64::from(written.is_err());
            (seen.samples, seen.highest) = (number.into(), number.into());
            seen.pause_ms = seen.pause_ms.max(took_ms);
        });
    }
}

/// Takes what comes, and counts the samples of its own pair.
fn take(reader: &DataReader<Numbered>, run: u32, shared: &Shared) {
    let mut known: Vec<bool> = Vec::new();
    let mut last: Option<Instant> = None;
    loop {
        // An error is that none came in time.
        let samples = reader.wait_take(Duration::from_millis(100)).unwrap_or_default();
        let now = Instant::now();
        let numbers =
            samples.iter().filter_map(|it| it.data.filter(|data| data.run == run)).map(|data| data.number);
        let mut came = false;
        shared.with(|seen| {
            for number in numbers {
                came = true;
                let place = number as usize;
                if known.len() <= place {
                    known.resize(place + 1, false);
                }
                if std::mem::replace(&mut known[place], true) {
                    seen.duplicates += 1;
                } else {
                    seen.samples += 1;
                    seen.highest = seen.highest.max(number.into());
                }
            }
            // A pause that lasts counts, too.
            let pause = last.map(|last| now.saturating_duration_since(last));
            seen.pause_ms = seen.pause_ms.max(pause.map_or(0, |it| it.as_millis() as u64));
        });
        if came {
            last = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_goes_through_a_pipe() {
        let seen =
            Seen { samples: 1, highest: 2, duplicates: 3, lost: 4, failed: 5, pause_ms: 6, matched: 7 };
        assert_eq!(Seen::parse(&seen.words()), Some(seen));
        assert_eq!(Seen::parse("samples=1 highest=x"), None);
        assert_eq!(unhex(&hex(&[0, 0x7f, 0xff])), [0, 0x7f, 0xff]);
    }
}
