//! Ping-pong: the round trip of one sample, or of one datagram.

use std::net::UdpSocket;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use plainsong::Result;
use plainsong::prelude::*;

use super::{Measured, Options, io};

const RAW_PONG: &str = "127.0.0.1:7399";

/// Writes the next sample from the callback that takes the echo of the last.
pub(super) struct Echo {
    writer: DataWriter<Measured>,
    measuring: Option<Measuring>,
}

/// Notes round trips on the thread that sees them: another one would have to be woken for each.
struct Measuring {
    round_trips: Mutex<RoundTrips>,
    /// Dropped when the measurement is over.
    running: Mutex<Option<Sender<()>>>,
}

impl Echo {
    /// Answers, and measures nothing.
    pub(super) const fn new(writer: DataWriter<Measured>) -> Self {
        Self { writer, measuring: None }
    }

    fn has_begun(&self) -> bool {
        let last = |it: &Measuring| it.round_trips.lock().ok().and_then(|it| it.last);
        self.measuring.as_ref().and_then(last).is_some()
    }

    /// False when the measurement is over.
    fn note(&self) -> bool {
        let Some(measuring) = &self.measuring else { return true };
        // Noted before the next write, so that the time of the write belongs to the next round trip.
        let goes_on = measuring.round_trips.lock().is_ok_and(|mut it| it.note(Instant::now()));
        if !goes_on && let Ok(mut running) = measuring.running.lock() {
            *running = None;
        }
        goes_on
    }
}

impl DataReaderListener for Echo {
    fn on_data_available(&self, reader: &AnyDataReader) {
        let Some(reader) = reader.downcast::<Measured>() else { return };
        let Ok(samples) = reader.take() else { return };
        for sample in samples.into_iter().filter_map(|sample| sample.data) {
            if !self.note() || self.writer.write(&sample).is_err() {
                return;
            }
        }
    }
}

pub(super) fn endpoints(
    participant: &DomainParticipant,
    written: &str,
    read: &str,
) -> Result<(DataWriter<Measured>, DataReader<Measured>)> {
    let written = participant.create_topic(written, QosSet::default())?;
    let read = participant.create_topic(read, QosSet::default())?;
    let publisher = participant.create_publisher(QosSet::default())?;
    let subscriber = participant.create_subscriber(QosSet::default())?;
    let writer = publisher.create_writer(&written, QosSet::writer().keep_last(1))?;
    let reader = subscriber.create_reader(&read, QosSet::reader().reliable().keep_last(1))?;
    Ok((writer, reader))
}

pub(super) fn ping(options: &Options, warm_up: Duration, duration: Duration) -> Result<()> {
    let participant = DomainParticipant::new(options.domain)?;
    let (writer, reader) = endpoints(&participant, "Ping", "Pong")?;
    wait_for_match(&writer, &reader)?;
    let (running, over) = channel();
    let measuring = Measuring {
        round_trips: Mutex::new(RoundTrips::new(warm_up, duration)),
        running: Mutex::new(Some(running)),
    };
    let echo = Arc::new(Echo { writer: writer.clone(), measuring: Some(measuring) });
    let listener = Arc::clone(&echo);
    reader.set_listener(Some(listener), StatusMask::NONE.with(StatusKind::DataAvailable));
    // The other side may not have matched our reader yet: its first echo then goes nowhere.
    while !echo.has_begun() {
        writer.write(&Measured { payload: vec![0; options.size], ..Measured::default() })?;
        let _ = over.recv_timeout(Duration::from_millis(500));
    }
    if over.recv_timeout(warm_up + duration + Duration::from_secs(2)) == Err(RecvTimeoutError::Timeout) {
        return Err(crate::failed("an echo did not come back within 2 s"));
    }
    if let Some(Ok(round_trips)) = echo.measuring.as_ref().map(|it| it.round_trips.lock()) {
        round_trips.print(options.size);
    }
    Ok(())
}

pub(super) fn pong(options: &Options) -> Result<()> {
    let participant = DomainParticipant::new(options.domain)?;
    let (writer, reader) = endpoints(&participant, "Pong", "Ping")?;
    // Listens before it is found: the first sample may arrive with the match.
    let echo = Echo::new(writer.clone());
    reader.set_listener(Some(Arc::new(echo)), StatusMask::NONE.with(StatusKind::DataAvailable));
    wait_for_match(&writer, &reader)?;
    while !reader.matched_publications()?.is_empty() {
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

pub(super) fn raw_ping(options: &Options, warm_up: Duration, duration: Duration) -> Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(|source| io("binding", source))?;
    socket.connect(RAW_PONG).map_err(|source| io("connecting", source))?;
    let (mut buffer, sent) = (vec![0; 65_536], vec![0; options.size]);
    let mut round_trips = RoundTrips::new(warm_up, duration);
    loop {
        socket.send(&sent).map_err(|source| io("sending", source))?;
        socket.recv(&mut buffer).map_err(|source| io("receiving", source))?;
        if !round_trips.note(Instant::now()) {
            break;
        }
    }
    // An empty datagram ends the other side.
    socket.send(&[]).map_err(|source| io("sending", source))?;
    round_trips.print(options.size);
    Ok(())
}

pub(super) fn raw_pong() -> Result<()> {
    let socket = UdpSocket::bind(RAW_PONG).map_err(|source| io("binding", source))?;
    let mut buffer = vec![0; 65_536];
    loop {
        let (octets, from) = socket.recv_from(&mut buffer).map_err(|source| io("receiving", source))?;
        if octets == 0 {
            return Ok(());
        }
        socket.send_to(&buffer[..octets], from).map_err(|source| io("sending", source))?;
    }
}

pub(super) fn wait_for_match(writer: &DataWriter<Measured>, reader: &DataReader<Measured>) -> Result<()> {
    let waiting = WaitSet::new();
    waiting.attach(writer.status_condition(StatusMask::NONE.with(StatusKind::PublicationMatched)));
    waiting.attach(reader.status_condition(StatusMask::NONE.with(StatusKind::SubscriptionMatched)));
    loop {
        // Reading a status lowers its condition, so each match is waited for once.
        let readers = writer.publication_matched_status()?.current_count;
        let writers = reader.subscription_matched_status()?.current_count;
        if readers > 0 && writers > 0 {
            return Ok(());
        }
        waiting.wait(Duration::from_secs(10))?;
    }
}

/// Times between returns, after a warm-up.
pub(super) struct RoundTrips {
    last: Option<Instant>,
    counted_from: Instant,
    until: Instant,
    nanos: Histogram<u64>,
}

impl RoundTrips {
    pub(super) fn new(warm_up: Duration, duration: Duration) -> Self {
        let counted_from = Instant::now() + warm_up;
        let nanos = Histogram::new_with_max(60_000_000_000, 3);
        let nanos = nanos.unwrap_or_else(|_| unreachable!("three digits are allowed"));
        Self { last: None, counted_from, until: counted_from + duration, nanos }
    }

    /// Notes a return; false when the measurement is over.
    pub(super) fn note(&mut self, at: Instant) -> bool {
        if let Some(last) = self.last.filter(|_| at >= self.counted_from) {
            self.nanos.saturating_record(u64::try_from((at - last).as_nanos()).unwrap_or(u64::MAX));
        }
        self.last = Some(at);
        at < self.until
    }

    pub(super) fn print(&self, size: usize) {
        let micros = |quantile| self.nanos.value_at_quantile(quantile) as f64 / 1000.0;
        println!(
            "size {size} count {} p50_us {:.1} p99_us {:.1} max_us {:.1}",
            self.nanos.len(),
            micros(0.5),
            micros(0.99),
            self.nanos.max() as f64 / 1000.0
        );
    }
}
