//! Two sensors are instances of one topic. Readers hear when one of them falls silent (DEADLINE), and when
//! the writer of both does (LIVELINESS).
//!
//! ```text
//! cargo run -p plainsong --example sensors -- subscribe
//! cargo run -p plainsong --example sensors -- publish
//! ```
//! `DOMAIN_ID` chooses a domain other than 0.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::sleep;
use std::time::Duration;

use plainsong::prelude::*;

#[derive(Clone, Copy, Debug, Default, DdsType)]
struct Temperature {
    #[dds(key)]
    sensor: u32,
    celsius: f64,
}

const PERIOD: Duration = Duration::from_millis(50);

/// Each sensor tells its temperature every 200 ms at least; the writer is alive if it writes something in 500
/// ms.
fn watched(qos: QosSet) -> QosSet {
    qos.reliable()
        .deadline(Duration::from_millis(200))
        .liveliness(LivelinessKind::ManualByTopic, Duration::from_millis(500))
}

fn main() -> plainsong::Result<()> {
    let participant = DomainParticipant::new(domain_id())?;
    let topic = participant.create_topic::<Temperature>("Temperature", QosSet::default())?;
    match std::env::args().nth(1).as_deref() {
        Some("publish") => publish(&participant, &topic),
        Some("subscribe") => subscribe(&participant, &topic),
        _ => {
            eprintln!("usage: sensors publish|subscribe");
            std::process::exit(2)
        }
    }
}

fn publish(participant: &DomainParticipant, topic: &Topic<Temperature>) -> plainsong::Result<()> {
    let publisher = participant.create_publisher(QosSet::default())?;
    let writer = publisher.create_writer(topic, watched(QosSet::writer()))?;
    let waiting = WaitSet::new();
    waiting.attach(writer.status_condition(StatusMask::NONE.with(StatusKind::PublicationMatched)));
    waiting.wait(Duration::from_secs(30))?;

    let write = |sensor, celsius| writer.write(&Temperature { sensor, celsius });
    for step in 0..10 {
        write(1, 20.0 + f64::from(step))?;
        write(2, 5.0)?;
        sleep(PERIOD);
    }
    println!("sensor 2 falls silent");
    for step in 0..10 {
        write(1, 30.0 + f64::from(step))?;
        sleep(PERIOD);
    }
    println!("the writer falls silent");
    sleep(Duration::from_secs(2));
    println!("sensor 1 is taken away");
    writer.dispose(&Temperature { sensor: 1, celsius: 0.0 })?;
    writer.wait_for_acknowledgments(Duration::from_secs(10))
}

/// Tells the main thread what it hears.
struct Watch(Sender<String>);

impl DataReaderListener for Watch {
    fn on_requested_deadline_missed(&self, reader: &AnyDataReader, status: &DeadlineMissedStatus) {
        let Some(reader) = reader.downcast::<Temperature>() else { return };
        if let Ok(key) = reader.key_value(status.last_instance) {
            let _ = self.0.send(format!("sensor {} missed its deadline", key.sensor));
        }
    }

    fn on_liveliness_changed(&self, _: &AnyDataReader, status: &LivelinessChangedStatus) {
        let _ = self.0.send(format!("writers alive: {}", status.alive_count));
    }
}

fn subscribe(participant: &DomainParticipant, topic: &Topic<Temperature>) -> plainsong::Result<()> {
    let subscriber = participant.create_subscriber(QosSet::default())?;
    let (told, news) = channel();
    let mask = StatusMask::NONE.with(StatusKind::RequestedDeadlineMissed).with(StatusKind::LivelinessChanged);
    // A listener of the subscriber hears of all its readers, and so of this one from the beginning.
    subscriber.set_listener(Some(Arc::new(Watch(told))), mask);
    let reader = subscriber.create_reader(topic, watched(QosSet::reader()))?;

    let waiting = WaitSet::new();
    waiting.attach(reader.read_condition(&ReadOptions::new()));
    loop {
        // Also without samples it looks now and then whether there is news.
        let came = waiting.wait(Duration::from_millis(100));
        news.try_iter().for_each(|line| println!("{line}"));
        if came.is_err() {
            continue;
        }
        for sample in reader.take()? {
            match sample.data {
                Some(Temperature { sensor, celsius }) => println!("sensor {sensor}: {celsius}"),
                None => {
                    let sensor = reader.key_value(sample.info.instance_handle)?.sensor;
                    println!("sensor {sensor} is {:?}", sample.info.instance_state);
                    if sample.info.instance_state == InstanceState::NotAliveDisposed {
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn domain_id() -> u16 {
    std::env::var("DOMAIN_ID").map_or(0, |id| id.parse().expect("DOMAIN_ID is a number"))
}
