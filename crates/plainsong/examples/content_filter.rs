//! A reader that wants a part of a topic only: the writer does not send it the rest.
//!
//! ```text
//! cargo run -p plainsong --example content_filter -- subscribe
//! cargo run -p plainsong --example content_filter -- publish
//! ```
//! They may start in either order. `DOMAIN_ID` chooses a domain other than 0.

use plainsong::prelude::*;

#[derive(Clone, Debug, Default, DdsType)]
struct Temperature {
    #[dds(key)]
    room: String,
    celsius: f64,
}

const TIMEOUT: Duration = Duration::from_secs(30);

/// Without loss, and whoever comes later gets what was written before.
fn kept(qos: QosSet) -> QosSet {
    qos.reliable().keep_all().durability(Durability::TransientLocal)
}

fn main() -> plainsong::Result<()> {
    let participant = DomainParticipant::new(domain_id())?;
    let topic = participant.create_topic::<Temperature>("Temperature", QosSet::default())?;
    match std::env::args().nth(1).as_deref() {
        Some("publish") => publish(&participant, &topic),
        Some("subscribe") => subscribe(&participant, &topic),
        _ => {
            eprintln!("usage: content_filter publish|subscribe");
            std::process::exit(2)
        }
    }
}

fn publish(participant: &DomainParticipant, topic: &Topic<Temperature>) -> plainsong::Result<()> {
    let publisher = participant.create_publisher(QosSet::default())?;
    let writer = publisher.create_writer(topic, kept(QosSet::writer()))?;
    let waiting = WaitSet::new();
    waiting.attach(writer.status_condition(StatusMask::NONE.with(StatusKind::PublicationMatched)));
    waiting.wait(TIMEOUT)?;
    for celsius in 15..=25 {
        for room in ["kitchen", "cellar"] {
            writer.write(&Temperature { room: room.to_owned(), celsius: f64::from(celsius) })?;
        }
    }
    writer.wait_for_acknowledgments(TIMEOUT)
}

fn subscribe(participant: &DomainParticipant, topic: &Topic<Temperature>) -> plainsong::Result<()> {
    let warm = participant.create_content_filtered_topic(
        "WarmKitchen",
        topic,
        "room = 'kitchen' AND celsius >= %0",
        vec!["22".to_owned()],
    )?;
    let subscriber = participant.create_subscriber(QosSet::default())?;
    let reader = subscriber.create_reader(&warm, kept(QosSet::reader()))?;
    let mut hottest = 0.0;
    while hottest < 25.0 {
        for Temperature { room, celsius } in
            reader.wait_take(TIMEOUT)?.into_iter().filter_map(|sample| sample.data)
        {
            println!("{room}: {celsius}");
            hottest = celsius;
        }
    }
    Ok(())
}

fn domain_id() -> u16 {
    std::env::var("DOMAIN_ID").map_or(0, |id| id.parse().expect("DOMAIN_ID is a number"))
}
