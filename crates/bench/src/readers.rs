//! What one more reader in a process of this host costs a writer: the processor time of the thread that
//! writes, best effort, as fast as it can.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plainsong::Result;
use plainsong::prelude::*;
use rustix::time::{ClockId, clock_gettime};

use super::{Measured, Options, failed, io};

/// Readers, each in a process of its own.
const COUNTS: [usize; 5] = [1, 2, 4, 8, 10];
const ROUNDS: usize = 5;
const WRITES: u32 = 20_000;
const PATIENCE: Duration = Duration::from_secs(20);
/// What one more reader may cost.
const NS_MAX: f64 = 300.0;

/// A process with a reader; it is ended with its owner.
struct Reading(Child);

impl Drop for Reading {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Reading {
    fn start(options: &Options) -> Result<Self> {
        let program = std::env::current_exe().map_err(|source| io("finding this program", source))?;
        let mut child = Command::new(program)
            .args(["read", "--domain", &options.domain.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|source| io("starting a reader", source))?;
        let output = child.stdout.take();
        let reading = Self(child);
        let mut line = String::new();
        let told = output.map(|output| BufReader::new(output).read_line(&mut line));
        if matches!(told, Some(Ok(count)) if count > 0) {
            Ok(reading)
        } else {
            Err(failed("a reader did not begin"))
        }
    }
}

/// The process being started: takes what comes, until the end of its input.
pub(super) fn read(options: &Options) -> Result<()> {
    let participant = DomainParticipant::new(options.domain)?;
    let topic = participant.create_topic::<Measured>("Readers", QosSet::default())?;
    let subscriber = participant.create_subscriber(QosSet::default())?;
    let reader = subscriber.create_reader(&topic, QosSet::reader().best_effort().keep_last(16))?;
    println!("ready");
    std::thread::spawn(move || {
        loop {
            // An error is that none came in time.
            let _ = reader.wait_take(PATIENCE);
        }
    });
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).map_err(|source| io("waiting", source))?;
    Ok(())
}

/// Prints what a write takes with so many readers, and what each of them adds.
pub(super) fn measure(options: &Options) -> Result<()> {
    let participant = DomainParticipant::new(options.domain)?;
    let topic = participant.create_topic("Readers", QosSet::default())?;
    let publisher = participant.create_publisher(QosSet::default())?;
    let writer = publisher.create_writer(&topic, QosSet::writer().best_effort().keep_last(1))?;
    let sample = Measured { payload: vec![0; options.size], ..Measured::default() };
    let (mut readers, mut costs) = (Vec::new(), Vec::new());
    for count in COUNTS {
        while readers.len() < count {
            readers.push(Reading::start(options)?);
        }
        let end = Instant::now() + PATIENCE;
        while writer.matched_subscriptions()?.len() < count {
            if Instant::now() > end {
                return Err(failed("readers do not match"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // The first one is for what comes into being with its readers.
        let mut rounds = Vec::with_capacity(ROUNDS);
        for _ in 0..=ROUNDS {
            rounds.push(round(&writer, &sample)?);
        }
        rounds.remove(0);
        rounds.sort_by(f64::total_cmp);
        let median = rounds.get(ROUNDS / 2).copied().unwrap_or(f64::NAN);
        println!("size {} readers {count} write_ns {median:.0}", options.size);
        costs.push((count as f64, median));
    }
    let slope = slope(&costs);
    println!("size {} each_reader_ns {slope:.0}", options.size);
    if options.strict && slope > NS_MAX {
        return Err(failed(format!("one more reader costs {slope:.0} ns, not {NS_MAX} at most")));
    }
    Ok(())
}

/// Nanoseconds of processor time that a write takes.
fn round(writer: &DataWriter<Measured>, sample: &Measured) -> Result<f64> {
    let begin = thread_ns();
    for _ in 0..WRITES {
        writer.write(sample)?;
    }
    Ok((thread_ns() - begin) / f64::from(WRITES))
}

fn thread_ns() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// Of the straight line with the least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|it| it.0), mean(|it| it.1));
    let products = points.iter().map(|it| (it.0 - x) * (it.1 - y)).sum::<f64>();
    products / points.iter().map(|it| (it.0 - x).powi(2)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_slope_is_that_of_the_line() {
        let line: Vec<_> =
            super::COUNTS.iter().map(|count| (*count as f64, 70.0 + 250.0 * *count as f64)).collect();
        assert!((super::slope(&line) - 250.0).abs() < 1e-6);
    }
}
