//! `plainsong record` beside a plain write of as many octets: mixed topics at a rate, in the current
//! directory.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plainsong::Result;
use plainsong::prelude::*;

use super::{Measured, Options, io};

/// Octets of the samples of each topic, and the part of the octets that it has, in tenths.
const TOPICS: [(usize, usize); 4] = [(100, 1), (1_000, 2), (60_000, 3), (1_000_000, 4)];
/// How often the rate is looked at.
const TURN: Duration = Duration::from_millis(5);
/// As many octets as a recorder writes at once.
const BLOCK_BYTES: usize = 4 << 20;
const RECORDED: &str = "bench-record.mcap";
const PLAIN: &str = "bench-plain.bin";

pub(super) fn measure(options: &Options, duration: Duration) -> Result<()> {
    let program =
        std::env::current_exe().map_err(|error| io("finding plainsong", error))?.with_file_name("plainsong");
    let domain = options.domain.to_string();
    let recorder = Command::new(&program)
        .args(["record", "Record*", "--force", "--json", "-o", RECORDED, "-d", &domain])
        .stdout(Stdio::piped())
        .spawn();
    let mut recorder = recorder.map_err(|error| io("starting plainsong beside this program", error))?;
    let written = publish(options, duration);
    let stop = rustix::process::Pid::from_child(&recorder);
    rustix::process::kill_process(stop, rustix::process::Signal::INT)
        .map_err(|error| io("ending the recorder", error.into()))?;
    let mut said = String::new();
    if let Some(out) = &mut recorder.stdout {
        out.read_to_string(&mut said).map_err(|error| io("reading from the recorder", error))?;
    }
    let status = recorder.wait().map_err(|error| io("waiting for the recorder", error))?;
    let (samples, bytes, seconds) = written?;
    println!("written {samples} samples, {:.1} MB/s for {seconds:.1} s", bytes as f64 / 1e6 / seconds);
    println!("recorder {status}: {}", said.trim());
    plain_write(bytes).map_err(|error| io("writing a plain file", error))?;
    for file in [RECORDED, PLAIN] {
        std::fs::remove_file(file).map_err(|error| io("removing a file", error))?;
    }
    Ok(())
}

/// Writes to all topics at the rate; samples, octets and seconds.
fn publish(options: &Options, duration: Duration) -> Result<(u64, u64, f64)> {
    let participant = DomainParticipant::new(options.domain)?;
    let publisher = participant.create_publisher(QosSet::default())?;
    let mut writers = Vec::new();
    for (size, tenths) in TOPICS {
        let topic = participant.create_topic::<Measured>(&format!("Record{size}"), QosSet::default())?;
        let mut qos = QosSet::writer().keep_all();
        qos.reliability.max_blocking_time = plainsong::time::Duration::from_secs(60);
        let writer = publisher.create_writer(&topic, qos)?;
        let sample = Measured { payload: vec![0x5a; size], ..Measured::default() };
        writers.push((writer, sample, tenths, 0.0));
    }
    let patience = Instant::now() + Duration::from_secs(30);
    while writers.iter().any(|(writer, ..)| writer.matched_subscriptions().is_ok_and(|it| it.is_empty())) {
        if Instant::now() > patience {
            return Err(io("waiting for the recorder", std::io::ErrorKind::TimedOut.into()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let (begin, mut samples, mut bytes) = (Instant::now(), 0_u64, 0_u64);
    while begin.elapsed() < duration {
        for (writer, sample, tenths, due) in &mut writers {
            let octets = begin.elapsed().as_secs_f64() * options.rate as f64 * 1e6 * *tenths as f64 / 10.0;
            while *due < octets && begin.elapsed() < duration {
                writer.write(sample)?;
                sample.sequence += 1;
                *due += sample.payload.len() as f64;
                samples += 1;
                bytes += sample.payload.len() as u64;
            }
        }
        std::thread::sleep(TURN);
    }
    let seconds = begin.elapsed().as_secs_f64();
    writers.iter().try_for_each(|(writer, ..)| writer.wait_for_acknowledgments(Duration::from_secs(60)))?;
    Ok((samples, bytes, seconds))
}

fn plain_write(bytes: u64) -> std::io::Result<()> {
    let block = vec![0x5a; BLOCK_BYTES];
    let begin = Instant::now();
    let mut file = File::create(PLAIN)?;
    for _ in 0..bytes / BLOCK_BYTES as u64 {
        file.write_all(&block)?;
    }
    let in_memory = begin.elapsed().as_secs_f64();
    file.sync_data()?;
    let seconds = begin.elapsed().as_secs_f64();
    let rate = |seconds: f64| bytes as f64 / 1e6 / seconds;
    println!("plain file {:.1} MB/s, durable {:.1} MB/s", rate(in_memory), rate(seconds));
    Ok(())
}
