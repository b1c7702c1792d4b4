//! Images of 4 MB, 30 a second: the publisher fills them where the subscribers of this host look at them.
//!
//! The subscriber shows how many come in a second, how long they take, and whether they were copied on their
//! way; the publisher, how they go.
//!
//! ```text
//! cargo run --release -p plainsong --example camera -- subscribe
//! cargo run --release -p plainsong --example camera -- publish
//! ```
//! `DOMAIN_ID` chooses a domain other than 0.

use std::time::{Instant, SystemTime};

use plainsong::prelude::*;

#[derive(Clone, Debug, Default, DdsType)]
struct Image<'a> {
    #[dds(key)]
    camera: u32,
    frame: u32,
    width: u32,
    height: u32,
    /// Three octets for each pixel.
    pixels: OctetSeq<'a>,
}

const WIDTH: u32 = 1280;
const HEIGHT: u32 = 1040;
const FRAMES: u32 = 90;
/// Those of a second.
const FRAMES_PER_S: u32 = 30;
const TIMEOUT: Duration = Duration::from_secs(30);

fn main() -> plainsong::Result<()> {
    let participant = DomainParticipant::new(domain_id())?;
    let topic = participant.create_topic::<Image<'static>>("Image", QosSet::default())?;
    match std::env::args().nth(1).as_deref() {
        Some("publish") => publish(&participant, &topic),
        Some("subscribe") => subscribe(&participant, &topic),
        _ => {
            eprintln!("usage: camera publish|subscribe");
            std::process::exit(2)
        }
    }
}

fn publish(participant: &DomainParticipant, topic: &Topic<Image<'static>>) -> plainsong::Result<()> {
    let publisher = participant.create_publisher(QosSet::default())?;
    // KEEP_ALL: a frame waits until there is room for it, so none is lost on the way.
    let qos = QosSet::writer().keep_all().max_blocking_time(TIMEOUT);
    let writer = publisher.create_writer(topic, qos)?;
    let waiting = WaitSet::new();
    waiting.attach(writer.status_condition(StatusMask::NONE.with(StatusKind::PublicationMatched)));
    waiting.wait(TIMEOUT)?;

    let octets = (WIDTH * HEIGHT * 3) as usize;
    let begin = Instant::now();
    let mut writing = std::time::Duration::ZERO;
    for frame in 0..FRAMES {
        let due = begin + std::time::Duration::from_secs(1) * frame / FRAMES_PER_S;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        // What the camera fills.
        let mut pixels = writer.loan_octets(octets)?;
        pixels.fill(frame as u8);
        let image = Image { camera: 1, frame, width: WIDTH, height: HEIGHT, pixels: pixels.into() };
        let before = Instant::now();
        writer.write(&image)?;
        writing += before.elapsed();
    }
    let milliseconds = writing.as_secs_f64() * 1_000.0 / f64::from(FRAMES);
    println!("{FRAMES} images of {octets} octets: a write took {milliseconds:.3} ms");
    println!("on their way: {}", writer.delivery()?);
    writer.wait_for_acknowledgments(TIMEOUT)
}

fn subscribe(participant: &DomainParticipant, topic: &Topic<Image<'static>>) -> plainsong::Result<()> {
    let subscriber = participant.create_subscriber(QosSet::default())?;
    let reader = subscriber.create_reader(topic, QosSet::reader().reliable().keep_all())?;
    let waiting = WaitSet::new();
    waiting.attach(reader.read_condition(&ReadOptions::new()));
    let mut images = SampleBuffer::new();
    let (mut next, mut wrong, mut copied) = (0, 0, 0);
    // How long each image of this second took, in milliseconds, and when the first of them came.
    let (mut latencies, mut begin) = (Vec::new(), Instant::now());
    while next < FRAMES {
        waiting.wait(TIMEOUT)?;
        reader.take_reusing(&ReadOptions::new(), &mut images)?;
        for sample in images.iter() {
            let Some(image) = &sample.data else { continue };
            if latencies.is_empty() {
                begin = Instant::now();
            }
            let took = SystemTime::from(sample.info.source_timestamp).elapsed().unwrap_or_default();
            latencies.push(took.as_secs_f64() * 1_000.0);
            let is_whole = image.frame == next && image.pixels.iter().all(|octet| *octet == next as u8);
            wrong += u32::from(!is_whole);
            copied += u32::from(!image.pixels.is_in_shared_memory());
            next = image.frame + 1;
            if next.is_multiple_of(FRAMES_PER_S) {
                latencies.sort_by(f64::total_cmp);
                let median = latencies[latencies.len() / 2];
                let rate = (latencies.len() - 1) as f64 / begin.elapsed().as_secs_f64();
                let Image { width, height, .. } = image;
                println!(
                    "{width} x {height}: {rate:.1} images a second, {median:.2} ms each, {copied} of them copied"
                );
                latencies.clear();
                copied = 0;
            }
        }
    }
    println!("{next} images, {wrong} of them not whole or not in their place");
    Ok(())
}

fn domain_id() -> u16 {
    std::env::var("DOMAIN_ID").map_or(0, |id| id.parse().expect("DOMAIN_ID is a number"))
}
