//! One fuzzing run of a link with a hostile peer: whatever it writes to the words that it can write to, no
//! panic, nothing out of bounds, bounded work, and only errors.
//!
//! The octets of an input are what the peer writes and what this side does, in turns.

use std::os::fd::AsFd;
use std::sync::Arc;

use super::layout::{
    CONSUMED, HEAD, Header, LENT_MAX, RELEASED, RELEASES, RING, RING_BYTES_LEAST, SLEEPING, read_echo,
    read_share, segment_bytes,
};
use super::lending::{AttachmentError, Lending, LetGo, PeerSlabs};
use super::ring::{
    Attachment, Corrupt, PeerSleep, PushError, ReleaseConsumer, ReleaseProducer, RingConsumer, RingProducer,
    record_bytes_max,
};
use super::segment::{HeapMemory, Memory, OwnMemory, Pages, Segment};
use crate::base::locks::lock;

const BYTES: usize = RING_BYTES_LEAST;
const SLAB: u32 = 3;
const SLAB_BYTES: usize = 8_192;
const CHUNK_BYTES: u64 = 4_096;

/// What is left of an input; zeros when nothing is.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn octet(&mut self) -> u8 {
        let octet = self.0.first().copied().unwrap_or(0);
        self.0 = self.0.get(1..).unwrap_or(&[]);
        octet
    }

    fn number(&mut self) -> usize {
        usize::from(self.octet()) | usize::from(self.octet()) << 8
    }

    fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.octet()))
    }
}

/// This side's ends of a link, and what the peer writes.
struct Link {
    own: HeapMemory,
    peer: HeapMemory,
    producer: RingProducer,
    consumer: RingConsumer,
    releases: ReleaseConsumer,
    sleep: PeerSleep,
    lending: Lending<u32>,
    slabs: PeerSlabs,
    returns: Arc<Returns>,
    /// What the peer would have to write next into its ring.
    head: u64,
    octets: Vec<u8>,
}

/// What is borrowed goes back into the own segment.
struct Returns {
    own: HeapMemory,
    releases: std::sync::Mutex<ReleaseProducer>,
}

impl LetGo for Returns {
    fn let_go(&self, slot: u32) {
        lock(&self.releases).push(&self.own, slot);
    }
}

/// Runs an input; tells how many records were taken out.
pub(crate) fn run(input: &[u8]) -> usize {
    let mut input = Input(input);
    let mut link = Link::new();
    let mut records = 0;
    while !input.0.is_empty() {
        match link.step(&mut input) {
            Ok(more) => records += more,
            // The link is closed; another one follows.
            Err(_) => link = Link::new(),
        }
    }
    records
}

impl Link {
    fn new() -> Self {
        let memory = || HeapMemory::new(segment_bytes(BYTES));
        let mut slabs = PeerSlabs::new(SLAB_BYTES as u64);
        if let Ok(slab) = Segment::create(SLAB_BYTES, Pages::Usual) {
            // It may have no memory to map: then nothing can be borrowed.
            let _ = slabs.insert(SLAB, slab.fd().as_fd(), CHUNK_BYTES);
        }
        Self {
            own: memory(),
            peer: memory(),
            producer: RingProducer::new(BYTES),
            consumer: RingConsumer::new(BYTES),
            releases: ReleaseConsumer::default(),
            sleep: PeerSleep::default(),
            lending: Lending::new(),
            slabs,
            returns: Arc::new(Returns { own: memory(), releases: std::sync::Mutex::default() }),
            head: 0,
            octets: Vec::new(),
        }
    }

    fn step(&mut self, input: &mut Input<'_>) -> Result<usize, Corrupt> {
        match input.octet() % 10 {
            0 => self.scribble(input),
            1 | 2 => self.forge_record(input),
            3 => self.nudge(input),
            4 | 5 => self.send(input)?,
            6 | 7 => return self.receive(),
            8 => self.take_releases()?,
            _ => self.look(),
        }
        Ok(0)
    }

    /// Any octets, anywhere.
    fn scribble(&self, input: &mut Input<'_>) {
        let offset = input.number() % (self.peer.bytes() / 8) * 8;
        self.peer.store64(offset, input.word());
    }

    /// A record that may be nearly right, so that what follows is looked at.
    fn forge_record(&mut self, input: &mut Input<'_>) {
        let (kind, bytes) = (u64::from(input.octet() % 4), input.number() as u64 % (BYTES as u64));
        let attachment = [u64::from(input.octet() % 5) | input.word() << 32, input.word(), input.word()];
        let small =
            |word: u64| if input.0.len().is_multiple_of(2) { word % (2 * SLAB_BYTES as u64) } else { word };
        let words = [bytes | kind << 32, attachment[0], small(attachment[1]), small(attachment[2])];
        for (at, word) in words.into_iter().enumerate() {
            let place = (self.head as usize + at * 8) & (BYTES - 1);
            self.peer.store64(RING + place, word);
        }
        let words = if kind == 2 { 4 } else { 1 };
        self.head = self.head.wrapping_add(words * 8 + bytes.next_multiple_of(8));
        self.peer.release64(HEAD, self.head);
    }

    /// A word that the peer has to write, by a little more or less, or anything.
    fn nudge(&mut self, input: &mut Input<'_>) {
        let which = usize::from(input.octet());
        let offset = [HEAD, CONSUMED, RELEASED, SLEEPING, RELEASES, RING][which % 6];
        let by = u64::from(input.octet());
        let word = match input.octet() % 4 {
            0 => self.peer.load64(offset).wrapping_add(by * 8),
            1 => self.peer.load64(offset).wrapping_add(by),
            2 => self.peer.load64(offset).wrapping_sub(by),
            _ => input.word(),
        };
        self.peer.store64(offset, word);
    }

    fn send(&mut self, input: &mut Input<'_>) -> Result<(), Corrupt> {
        let octets = vec![input.octet(); input.number() % (BYTES / 2 + 64)];
        let lent = self.lending.lend(7, octets.len() as u64);
        let attachment = lent.map(|slot| Attachment { slab: 0, slot, offset: 0, bytes: 1 });
        let parts = octets.chunks(100);
        match self.producer.push(&self.own, &self.peer, parts, octets.len(), attachment.as_ref()) {
            Ok(()) => assert!(octets.len() <= record_bytes_max(BYTES)),
            Err(PushError::Corrupt(corrupt)) => return Err(corrupt),
            Err(PushError::Full | PushError::TooLong) => {
                let back = lent.and_then(|slot| self.lending.release(slot));
                assert_eq!(back.is_some(), lent.is_some());
            }
        }
        assert!(self.producer.used() <= BYTES);
        assert!(self.lending.len() <= LENT_MAX);
        assert!(self.lending.bytes() <= (self.lending.len() * BYTES) as u64);
        let _ = self.sleep.must_wake(&self.peer);
        Ok(())
    }

    /// A few, as a receiver does.
    fn receive(&mut self) -> Result<usize, Corrupt> {
        let mut records = 0;
        while records < 8 {
            let Some(record) = self.consumer.pop(&self.peer, &mut self.octets) else { break };
            let record = record?;
            records += 1;
            assert!(self.octets.len() <= record_bytes_max(BYTES));
            let Some(attachment) = record.attachment else { continue };
            match self.slabs.borrow(&attachment, &self.returns) {
                Ok(borrowed) => {
                    assert_eq!(borrowed.bytes().len() as u64, attachment.bytes);
                    assert!(attachment.bytes <= CHUNK_BYTES);
                    assert_eq!(self.slabs.borrowed_bytes(), CHUNK_BYTES, "what it pins is counted");
                }
                Err(AttachmentError::Slab(id)) => assert_ne!(id, SLAB),
                Err(AttachmentError::Range(id)) => assert_eq!(id, SLAB),
            }
        }
        self.consumer.publish(&self.own);
        assert_eq!(self.slabs.borrowed_bytes(), 0);
        Ok(records)
    }

    fn take_releases(&mut self) -> Result<(), Corrupt> {
        let (mut count, lending) = (0, &mut self.lending);
        self.releases.drain(&self.peer, |slot| {
            count += 1;
            // Of a slot that is not lent it is ignored.
            lending.release(slot);
        })?;
        assert!(count <= LENT_MAX);
        Ok(())
    }

    /// What a handshake and a sleeper look at.
    fn look(&self) {
        let _ = self.consumer.has_more(&self.peer);
        let _ = (read_echo(&self.peer), read_share(&self.peer));
        if let Ok(header) = Header::read(&self.peer) {
            assert!(segment_bytes(header.ring_bytes) <= self.peer.bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::time::{Duration, Instant};

    /// Seeded fuzzing on stable Rust; the target of libFuzzer has the same body.
    #[test]
    #[cfg_attr(miri, ignore = "a mapping")]
    fn fuzz_shared_memory() {
        let seconds = env::var("PLAINSONG_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
        let time = Duration::from_secs(seconds.unwrap_or(1));
        let only = env::var("PLAINSONG_FUZZ_SEED").ok().and_then(|text| text.parse::<u64>().ok());
        let (begin, mut records) = (Instant::now(), 0);
        let mut seed = only.unwrap_or(0);
        while begin.elapsed() < time {
            let input = octets(seed);
            let result = std::panic::catch_unwind(|| super::run(&input));
            let Ok(more) = result else { panic!("repeat with PLAINSONG_FUZZ_SEED={seed}") };
            records += more;
            seed += 1;
            if only.is_some() {
                return;
            }
        }
        println!("{seed} runs, {records} records taken out");
        assert!(records > 0, "nothing came through");
    }

    /// xorshift64*.
    fn octets(seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u8
        };
        let length = 16 + usize::from(next()) * 8;
        (0..length).map(|_| next()).collect()
    }
}
