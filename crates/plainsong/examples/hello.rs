//! One process writes a few greetings, another reads them.
//!
//! ```text
//! cargo run -p plainsong --example hello -- subscribe
//! cargo run -p plainsong --example hello -- publish
//! ```
//! They may start in either order. `DOMAIN_ID` chooses a domain other than 0.

use plainsong::prelude::*;

#[derive(Debug, Default, DdsType)]
struct Greeting {
    number: u32,
    text: String,
}

const GREETINGS: u32 = 3;

/// Without loss, and whoever comes later gets what was written before.
fn kept(qos: QosSet) -> QosSet {
    qos.reliable().keep_all().durability(Durability::TransientLocal)
}

fn main() -> plainsong::Result<()> {
    let participant = DomainParticipant::new(domain_id())?;
    let topic = participant.create_topic::<Greeting>("Greeting", QosSet::default())?;
    match std::env::args().nth(1).as_deref() {
        Some("publish") => publish(&participant, &topic),
        Some("subscribe") => subscribe(&participant, &topic),
        _ => {
            eprintln!("usage: hello publish|subscribe");
            std::process::exit(2)
        }
    }
}

fn publish(participant: &DomainParticipant, topic: &Topic<Greeting>) -> plainsong::Result<()> {
    let publisher = participant.create_publisher(QosSet::default())?;
    let writer = publisher.create_writer(topic, kept(QosSet::writer()))?;

    let waiting = WaitSet::new();
    waiting.attach(writer.status_condition(StatusMask::NONE.with(StatusKind::PublicationMatched)));
    waiting.wait(Duration::from_secs(30))?;
    println!("a reader is there");

    for number in 1..=GREETINGS {
        writer.write(&Greeting { number, text: "Hello, world".to_owned() })?;
    }
    // Who leaves at once may leave before the samples have arrived.
    writer.wait_for_acknowledgments(Duration::from_secs(10))
}

fn subscribe(participant: &DomainParticipant, topic: &Topic<Greeting>) -> plainsong::Result<()> {
    let subscriber = participant.create_subscriber(QosSet::default())?;
    let reader = subscriber.create_reader(topic, kept(QosSet::reader()))?;
    let mut last = 0;
    while last < GREETINGS {
        for greeting in
            reader.wait_take(Duration::from_secs(30))?.into_iter().filter_map(|sample| sample.data)
        {
            println!("{}: {}", greeting.number, greeting.text);
            last = greeting.number;
        }
    }
    Ok(())
}

fn domain_id() -> u16 {
    std::env::var("DOMAIN_ID").map_or(0, |id| id.parse().expect("DOMAIN_ID is a number"))
}
