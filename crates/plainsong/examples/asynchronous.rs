//! Reading and writing with `async`: any executor does, and this small one too.
//!
//! ```text
//! cargo run -p plainsong --example asynchronous -- subscribe
//! cargo run -p plainsong --example asynchronous -- publish
//! ```
//! `DOMAIN_ID` chooses a domain other than 0.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use plainsong::prelude::*;

#[derive(Debug, Default, DdsType)]
struct Count {
    value: u32,
}

const COUNTS: u32 = 100;

/// Ten samples at most wait for readers: beyond that `write_async` waits, without holding the thread.
fn few(qos: QosSet) -> QosSet {
    let mut qos = qos.reliable().keep_all();
    qos.resource_limits.max_samples = 10;
    qos
}

fn main() -> plainsong::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("publish") => block_on(publish()),
        Some("subscribe") => block_on(subscribe()),
        _ => {
            eprintln!("usage: asynchronous publish|subscribe");
            std::process::exit(2)
        }
    }
}

async fn publish() -> plainsong::Result<()> {
    let participant = DomainParticipant::new(domain_id())?;
    let topic = participant.create_topic::<Count>("Count", QosSet::default())?;
    let publisher = participant.create_publisher(QosSet::default())?;
    let writer = publisher.create_writer(&topic, few(QosSet::writer()))?;
    let waiting = WaitSet::new();
    waiting.attach(writer.status_condition(StatusMask::NONE.with(StatusKind::PublicationMatched)));
    waiting.wait(Duration::from_secs(30))?;
    for value in 1..=COUNTS {
        writer.write_async(&Count { value }).await?;
    }
    writer.wait_for_acknowledgments(Duration::from_secs(30))
}

async fn subscribe() -> plainsong::Result<()> {
    let participant = DomainParticipant::new(domain_id())?;
    let topic = participant.create_topic::<Count>("Count", QosSet::default())?;
    let subscriber = participant.create_subscriber(QosSet::default())?;
    let reader = subscriber.create_reader(&topic, few(QosSet::reader()))?;
    let mut sum = 0;
    loop {
        let Some(Count { value }) = reader.next().await?.data else { continue };
        sum += value;
        if value == COUNTS {
            println!("the sum up to {COUNTS} is {sum}");
            return Ok(());
        }
    }
}

/// Wakes the thread that polls.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::park();
    }
}

fn domain_id() -> u16 {
    std::env::var("DOMAIN_ID").map_or(0, |id| id.parse().expect("DOMAIN_ID is a number"))
}
