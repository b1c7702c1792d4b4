//! Requests and replies: two topics, and a content filter by which each client gets the replies to itself.
//!
//! ```text
//! cargo run -p plainsong --example request_reply -- serve
//! cargo run -p plainsong --example request_reply -- ask 7
//! ```
//! The server runs until it is ended. `DOMAIN_ID` chooses a domain other than 0.

use plainsong::prelude::*;

#[derive(Clone, Debug, Default, DdsType)]
struct Request {
    client: String,
    number: u32,
    value: i64,
}

#[derive(Clone, Debug, Default, DdsType)]
struct Reply {
    #[dds(key)]
    client: String,
    number: u32,
    result: i64,
}

const TIMEOUT: Duration = Duration::from_secs(30);

/// The last replies to each client are kept: the server may answer before it knows the reader of the client.
fn kept(qos: QosSet) -> QosSet {
    qos.reliable().keep_last(8).durability(Durability::TransientLocal)
}

fn main() -> plainsong::Result<()> {
    let participant = DomainParticipant::new(domain_id())?;
    let requests = participant.create_topic::<Request>("SquareRequest", QosSet::default())?;
    let replies = participant.create_topic::<Reply>("SquareReply", QosSet::default())?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => serve(&participant, &requests, &replies),
        ["ask", value] => ask(&participant, &requests, &replies, value.parse().expect("ask a whole number")),
        _ => {
            eprintln!("usage: request_reply serve|ask NUMBER");
            std::process::exit(2)
        }
    }
}

fn serve(
    participant: &DomainParticipant,
    requests: &Topic<Request>,
    replies: &Topic<Reply>,
) -> plainsong::Result<()> {
    let reader = participant
        .create_subscriber(QosSet::default())?
        .create_reader(requests, QosSet::reader().reliable().keep_all())?;
    let writer =
        participant.create_publisher(QosSet::default())?.create_writer(replies, kept(QosSet::writer()))?;
    println!("serving");

    let waiting = WaitSet::new();
    waiting.attach(reader.read_condition(&ReadOptions::new()));
    loop {
        waiting.wait(Duration::INFINITE)?;
        for Request { client, number, value } in reader.take()?.into_iter().filter_map(|sample| sample.data) {
            println!("request {number}: {value}");
            writer.write(&Reply { client, number, result: value * value })?;
        }
    }
}

fn ask(
    participant: &DomainParticipant,
    requests: &Topic<Request>,
    replies: &Topic<Reply>,
    value: i64,
) -> plainsong::Result<()> {
    // The GUID of the participant tells this client from all others.
    let client = participant.guid().to_string();
    let mine = participant.create_content_filtered_topic(
        "MyReplies",
        replies,
        "client = %0",
        vec![format!("'{client}'")],
    )?;
    let reader =
        participant.create_subscriber(QosSet::default())?.create_reader(&mine, kept(QosSet::reader()))?;
    let writer = participant
        .create_publisher(QosSet::default())?
        .create_writer(requests, QosSet::writer().keep_all())?;

    // A request that is written before the server is known would reach nobody.
    let waiting = WaitSet::new();
    waiting.attach(writer.status_condition(StatusMask::NONE.with(StatusKind::PublicationMatched)));
    waiting.wait(TIMEOUT)?;

    for number in 0..3 {
        writer.write(&Request { client: client.clone(), number, value: value + i64::from(number) })?;
        let reply = reader.wait_take(TIMEOUT)?.remove(0).data.unwrap_or_default();
        println!("{} squared is {}", value + i64::from(reply.number), reply.result);
    }
    Ok(())
}

fn domain_id() -> u16 {
    std::env::var("DOMAIN_ID").map_or(0, |id| id.parse().expect("DOMAIN_ID is a number"))
}
