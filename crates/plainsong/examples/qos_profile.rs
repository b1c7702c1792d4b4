//! QoS from an XML file (DDS-XML 1.0), which can change without the program.
//!
//! ```text
//! cargo run -p plainsong --example qos_profile -- subscribe
//! cargo run -p plainsong --example qos_profile -- publish
//! ```
//! A second argument names another file with the profile `Plant::Event`. `DOMAIN_ID` chooses a domain other
//! than 0.

use plainsong::prelude::*;

#[derive(Debug, Default, DdsType)]
struct Event {
    number: u32,
    text: String,
}

const PROFILE: &str = "Plant::Event";
const EVENTS: [&str; 3] = ["valve opened", "pump started", "tank full"];
const TIMEOUT: Duration = Duration::from_secs(30);

fn main() -> plainsong::Result<()> {
    let own_file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/qos_profile.xml");
    let file = std::env::args().nth(2);
    let profiles = QosProvider::from_file(file.as_deref().unwrap_or(own_file))?;

    let participant = DomainParticipant::new(domain_id())?;
    let topic = participant.create_topic::<Event>("Event", QosSet::default())?;
    match std::env::args().nth(1).as_deref() {
        Some("publish") => {
            let publisher = participant.create_publisher(QosSet::default())?;
            publish(&publisher.create_writer(&topic, profiles.writer_qos(PROFILE)?)?)
        }
        Some("subscribe") => {
            let subscriber = participant.create_subscriber(QosSet::default())?;
            subscribe(&subscriber.create_reader(&topic, profiles.reader_qos(PROFILE)?)?)
        }
        _ => {
            eprintln!("usage: qos_profile publish|subscribe [FILE]");
            std::process::exit(2)
        }
    }
}

fn publish(writer: &DataWriter<Event>) -> plainsong::Result<()> {
    println!("the writer has {:?} and {:?}", writer.qos().durability, writer.qos().history.kind);
    for (number, text) in (1..).zip(EVENTS) {
        writer.write(&Event { number, text: text.to_owned() })?;
    }
    // The profile has the writer keep them for readers that come later. It stays until its reader has gone.
    let waiting = WaitSet::new();
    waiting.attach(writer.status_condition(StatusMask::NONE.with(StatusKind::PublicationMatched)));
    loop {
        waiting.wait(TIMEOUT)?;
        if writer.publication_matched_status()?.current_count == 0 {
            return Ok(());
        }
    }
}

fn subscribe(reader: &DataReader<Event>) -> plainsong::Result<()> {
    let mut last = 0;
    while last < EVENTS.len() as u32 {
        for event in reader.wait_take(TIMEOUT)?.into_iter().filter_map(|sample| sample.data) {
            println!("{}: {}", event.number, event.text);
            last = event.number;
        }
    }
    Ok(())
}

fn domain_id() -> u16 {
    std::env::var("DOMAIN_ID").map_or(0, |id| id.parse().expect("DOMAIN_ID is a number"))
}
