//! Mutated datagrams into a live participant: nothing panics, memory and answers stay bounded.
//!
//! Runs for `PLAINSONG_FUZZ_SECONDS` (default 1) from a seed that it prints; `PLAINSONG_FUZZ_SEED` replays.

mod counting;
#[path = "support/live.rs"]
mod live;

use std::time::{Duration, Instant};

/// Inputs that one participant endures before a fresh one takes its place.
const INPUTS_PER_LIFE: u32 = 20_000;
/// Beyond what the participant had before the first input.
const MEMORY_GROWTH_MAX: isize = 64 << 20;
/// One input never causes more than a burst of repeated samples from each writer.
const OCTETS_SENT_MAX: usize = 4 << 20;

/// A small generator: quality does not matter, repeatability does.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn fuzz_datagram() {
    let seconds = from_environment("PLAINSONG_FUZZ_SECONDS").unwrap_or(1);
    let clock_seed = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = from_environment("PLAINSONG_FUZZ_SEED").unwrap_or(clock_seed) | 1;
    println!("replay with PLAINSONG_FUZZ_SEED={seed}");
    let mut random = Random(seed);
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut inputs, mut samples) = (0u64, 0);
    while Instant::now() < end {
        let (mut victim, corpus) = live::converse();
        let before = counting::octets_held();
        for _ in 0..INPUTS_PER_LIFE {
            let input = mutate(&corpus, &mut random);
            let effect = victim.endure(&input);
            samples += effect.samples;
            inputs += 1;
            let growth = counting::octets_held() - before;
            assert!(growth < MEMORY_GROWTH_MAX, "memory grew by {growth} octets (seed {seed})");
            assert!(effect.octets_sent < OCTETS_SENT_MAX, "{} octets sent (seed {seed})", effect.octets_sent);
            if inputs % 256 == 0 && Instant::now() >= end {
                break;
            }
        }
        assert!(
            victim.counters().iter().count() > 0,
            "no input was ever refused: the mutations are too tame"
        );
    }
    println!("{inputs} inputs, {samples} samples accepted");
}

/// One datagram of the corpus, or two joined, with octets changed, cut, repeated or made extreme.
fn mutate(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    const EXTREMES: [u32; 8] = [0, 1, 0x7f, 0xff, 0x100, 0xffff, 0x7fff_ffff, 0xffff_ffff];
    let mut bytes = corpus[random.below(corpus.len())].clone();
    if random.below(8) == 0 {
        let other = &corpus[random.below(corpus.len())];
        // Submessages begin after the header: this often gives a valid message of two senders' parts.
        bytes.extend_from_slice(other.get(20..).unwrap_or(&[]));
    }
    for _ in 0..random.below(6) {
        if bytes.is_empty() {
            break;
        }
        let at = random.below(bytes.len().min(400));
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes.truncate(at.max(20)),
            3 => {
                let value = EXTREMES[random.below(EXTREMES.len())].to_le_bytes();
                let aligned = at & !3;
                bytes.iter_mut().skip(aligned).zip(value).for_each(|(octet, new)| *octet = new);
            }
            4 => {
                let value = (random.next() as u32 % 300).to_le_bytes();
                let aligned = at & !3;
                bytes.iter_mut().skip(aligned).zip(value).for_each(|(octet, new)| *octet = new);
            }
            _ => {
                let length = random.below(64).min(bytes.len() - at);
                let piece = bytes[at..at + length].to_vec();
                let target = random.below(bytes.len());
                bytes.splice(target..target, piece);
            }
        }
    }
    bytes.truncate(65_507);
    bytes
}
