//! Two participants of one process: round trips between two threads, and a flow from one to the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plainsong::Result;
use plainsong::prelude::*;

use super::latency::{Echo, RoundTrips, endpoints, wait_for_match};
use super::{Measured, Options};

/// For so long a wait lasts before it is looked whether the measurement is over.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

type Pair = (DataWriter<Measured>, DataReader<Measured>);

/// Both threads wait in a WaitSet; then the same with a listener that answers; then the flow.
pub(super) fn measure(options: &Options, warm_up: Duration, duration: Duration) -> Result<()> {
    let participants = [DomainParticipant::new(options.domain)?, DomainParticipant::new(options.domain)?];
    let ping = endpoints(&participants[0], "Ping", "Pong")?;
    let pong = endpoints(&participants[1], "Pong", "Ping")?;
    wait_for_match(&ping.0, &ping.1)?;
    wait_for_match(&pong.0, &pong.1)?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| answer(&pong, &is_over));
        let result = ask(&ping, options.size, RoundTrips::new(warm_up, duration), "waiting");
        is_over.store(true, Ordering::Relaxed);
        let answered = answering.join();
        result.and_then(|()| answered.unwrap_or_else(|_| Err(crate::failed("the answering thread panicked"))))
    })?;
    let echo = Arc::new(Echo::new(pong.0.clone()));
    pong.1.set_listener(Some(echo), StatusMask::NONE.with(StatusKind::DataAvailable));
    ask(&ping, options.size, RoundTrips::new(warm_up, duration), "listener")?;
    pong.1.set_listener(None, StatusMask::NONE);
    flow(&participants, options, warm_up, duration)
}

fn waiting_for(reader: &DataReader<Measured>) -> WaitSet {
    let waiting = WaitSet::new();
    waiting.attach(reader.status_condition(StatusMask::NONE.with(StatusKind::DataAvailable)));
    waiting
}

fn answer((writer, reader): &Pair, is_over: &AtomicBool) -> Result<()> {
    let waiting = waiting_for(reader);
    while !is_over.load(Ordering::Relaxed) {
        if waiting.wait(LOOK_AGAIN).is_err() {
            continue;
        }
        for sample in reader.take()?.into_iter().filter_map(|sample| sample.data) {
            writer.write(&sample)?;
        }
    }
    Ok(())
}

fn ask((writer, reader): &Pair, size: usize, mut round_trips: RoundTrips, how: &str) -> Result<()> {
    let waiting = waiting_for(reader);
    let sample = Measured { payload: vec![0; size], ..Measured::default() };
    loop {
        writer.write(&sample)?;
        let mut answers = reader.take()?.len();
        while answers == 0 {
            waiting.wait(Duration::from_secs(10))?;
            answers = reader.take()?.len();
        }
        if !round_trips.note(Instant::now()) {
            break;
        }
    }
    print!("{how} ");
    round_trips.print(size);
    Ok(())
}

/// As fast as writes return; the reader's thread waits in a WaitSet.
fn flow(
    participants: &[DomainParticipant; 2],
    options: &Options,
    warm_up: Duration,
    duration: Duration,
) -> Result<()> {
    let topic = |it: &DomainParticipant| it.create_topic::<Measured>("Flow", QosSet::default());
    let publisher = participants[0].create_publisher(QosSet::default())?;
    let subscriber = participants[1].create_subscriber(QosSet::default())?;
    let mut qos = QosSet::writer().keep_all();
    qos.reliability.max_blocking_time = plainsong::time::Duration::from_secs(10);
    let writer = publisher.create_writer(&topic(&participants[0])?, qos)?;
    let reader =
        subscriber.create_reader(&topic(&participants[1])?, QosSet::reader().reliable().keep_all())?;
    wait_for_match(&writer, &reader)?;
    let (taken, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let rate = std::thread::scope(|scope| -> Result<f64> {
        let taking = scope.spawn(|| -> Result<()> {
            let waiting = waiting_for(&reader);
            while !is_over.load(Ordering::Relaxed) {
                let samples = reader.take()?.len() as u64;
                taken.fetch_add(samples, Ordering::Relaxed);
                if samples == 0 {
                    let _ = waiting.wait(LOOK_AGAIN);
                }
            }
            Ok(())
        });
        let mut sample = Measured { payload: vec![0; options.size], ..Measured::default() };
        let mut write_for = |duration: Duration| -> Result<()> {
            let end = Instant::now() + duration;
            while Instant::now() < end {
                for _ in 0..100 {
                    writer.write(&sample)?;
                    sample.sequence += 1;
                }
            }
            Ok(())
        };
        let written = write_for(warm_up);
        let (begin, before) = (Instant::now(), taken.load(Ordering::Relaxed));
        let written = written.and_then(|()| write_for(duration));
        let rate = (taken.load(Ordering::Relaxed) - before) as f64 / begin.elapsed().as_secs_f64();
        is_over.store(true, Ordering::Relaxed);
        let taking = taking.join();
        written?;
        taking.unwrap_or_else(|_| Err(crate::failed("the taking thread panicked")))?;
        Ok(rate)
    })?;
    println!("flow size {} samples_per_s {rate:.0}", options.size);
    Ok(())
}
