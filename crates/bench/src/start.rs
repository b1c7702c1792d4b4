//! From the start of a publishing process to its first sample in a subscriber that waits.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plainsong::prelude::*;
use plainsong::{Error, Result};

use super::{Measured, Options, io};

const RUNS: usize = 11;
const PATIENCE: Duration = Duration::from_secs(10);

/// The process being started: writes every millisecond until it is ended, at most for a while.
pub(super) fn publish(options: &Options) -> Result<()> {
    let participant = DomainParticipant::new(options.domain)?;
    let topic = participant.create_topic("Start", QosSet::default())?;
    let writer = participant
        .create_publisher(QosSet::default())?
        .create_writer(&topic, QosSet::writer().keep_last(1))?;
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        writer.write(&Measured::default())?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Starts publishers one after the other and prints how long their first samples took.
pub(super) fn measure(options: &Options) -> Result<()> {
    let participant = DomainParticipant::new(options.domain)?;
    let topic = participant.create_topic("Start", QosSet::default())?;
    let reader = participant
        .create_subscriber(QosSet::default())?
        .create_reader(&topic, QosSet::reader().reliable().keep_last(1))?;
    let (mut millis, mut known) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let begin = Instant::now();
        let mut publisher = start(options)?;
        let first = first_of_another(&reader, &mut known);
        millis.push(begin.elapsed().as_secs_f64() * 1000.0);
        publisher
            .kill()
            .and_then(|()| publisher.wait())
            .map_err(|source| io("ending a publisher", source))?;
        first?;
    }
    millis.sort_by(f64::total_cmp);
    let at = |index: usize| millis.get(index).copied().unwrap_or(f64::NAN);
    println!(
        "first_sample_ms median {:.1} min {:.1} max {:.1} runs {RUNS}",
        at(RUNS / 2),
        at(0),
        at(RUNS - 1)
    );
    Ok(())
}

/// Waits for a sample of a writer that is not `known` yet: late samples of those ended are none.
fn first_of_another(reader: &DataReader<Measured>, known: &mut Vec<InstanceHandle>) -> Result<()> {
    loop {
        let samples = reader.wait_take(PATIENCE)?;
        let writers = samples.iter().map(|sample| sample.info.publication_handle);
        if let Some(writer) = writers.into_iter().find(|writer| !known.contains(writer)) {
            known.push(writer);
            return Ok(());
        }
    }
}

fn start(options: &Options) -> Result<Child> {
    let program = std::env::current_exe().map_err(|source| io("finding this program", source))?;
    let mut command = Command::new(program);
    command.args(["start-publish", "--domain", &options.domain.to_string()]).stdout(Stdio::null());
    command.spawn().map_err(|source| Error::Io { what: "starting a publisher".into(), source })
}
