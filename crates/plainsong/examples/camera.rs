//! Images of 6 MB: borrowed to write them, and looked at where they arrived.
//!
//! ```text
//! cargo run --release -p plainsong --example camera -- subscribe
//! cargo run --release -p plainsong --example camera -- publish
//! ```
//! `DOMAIN_ID` chooses a domain other than 0.

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

const WIDTH: u32 = 1920;
const HEIGHT: u32 = 1080;
const FRAMES: u32 = 10;
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

    // What the camera fills again and again.
    let mut pixels = vec![0; (WIDTH * HEIGHT * 3) as usize];
    for frame in 0..FRAMES {
        pixels.fill(frame as u8);
        let pixels = OctetSeq::from(&pixels[..]);
        writer.write_borrowed(&Image { camera: 1, frame, width: WIDTH, height: HEIGHT, pixels })?;
    }
    writer.wait_for_acknowledgments(TIMEOUT)
}

fn subscribe(participant: &DomainParticipant, topic: &Topic<Image<'static>>) -> plainsong::Result<()> {
    let subscriber = participant.create_subscriber(QosSet::default())?;
    let reader = subscriber.create_reader(topic, QosSet::reader().reliable().keep_all())?;
    let waiting = WaitSet::new();
    waiting.attach(reader.read_condition(&ReadOptions::new()));
    let mut images = SampleBuffer::new();
    let mut last = None;
    while last != Some(FRAMES - 1) {
        waiting.wait(TIMEOUT)?;
        reader.take_reusing(&ReadOptions::new(), &mut images)?;
        for image in images.iter().filter_map(|sample| sample.data.as_ref()) {
            let sum: u64 = image.pixels.iter().map(|octet| u64::from(*octet)).sum();
            let mean = sum / image.pixels.len() as u64;
            println!("frame {}: {} x {}, mean {mean}", image.frame, image.width, image.height);
            last = Some(image.frame);
        }
    }
    Ok(())
}

fn domain_id() -> u16 {
    std::env::var("DOMAIN_ID").map_or(0, |id| id.parse().expect("DOMAIN_ID is a number"))
}
