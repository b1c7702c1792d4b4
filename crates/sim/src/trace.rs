//! What happened in a run: a hash of everything, and the text for those who want to read it.

use std::collections::VecDeque;

use plainsong_proto::time::Instant;

/// How much of the trace is kept as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The hash only: fast.
    Hash,
    /// The last lines.
    Tail(usize),
    /// Every line goes to standard output at once.
    All,
}

/// A running hash and the last lines.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    events: u64,
    detail: Detail,
    tail: VecDeque<String>,
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

impl Trace {
    /// An empty trace.
    #[must_use]
    pub const fn new(detail: Detail) -> Self {
        Self { hash: FNV_OFFSET, events: 0, detail, tail: VecDeque::new() }
    }

    /// Records that something happened `at` a time. `facts` go into the hash; `line` is only
    /// called when somebody reads along.
    pub fn record(&mut self, at: Instant, facts: &[u64], line: impl FnOnce() -> String) {
        self.events += 1;
        self.mix(at.0);
        for fact in facts {
            self.mix(*fact);
        }
        let kept = match self.detail {
            Detail::Hash => return,
            Detail::Tail(kept) => kept,
            Detail::All => 0,
        };
        let text = format!("{:>13.6} {}", at.0 as f64 / 1e9, line());
        if self.detail == Detail::All {
            println!("{text}");
        } else {
            if self.tail.len() >= kept {
                self.tail.pop_front();
            }
            self.tail.push_back(text);
        }
    }

    /// The hash of everything so far: equal seeds have equal hashes.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// How many events were recorded.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// The last lines, oldest first.
    pub fn tail(&self) -> impl Iterator<Item = &str> {
        self.tail.iter().map(String::as_str)
    }

    const fn mix(&mut self, fact: u64) {
        self.hash = (self.hash ^ fact).wrapping_mul(FNV_PRIME).rotate_left(23);
    }
}

/// A hash of octets, for facts that are longer than a number.
#[must_use]
pub fn octets(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(FNV_OFFSET ^ bytes.len() as u64, |hash, word| {
        (hash ^ u64::from_le_bytes(*word)).wrapping_mul(FNV_PRIME).rotate_left(29)
    });
    rest.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_tells_runs_apart_and_the_tail_keeps_the_end() {
        let mut trace = Trace::new(Detail::Tail(2));
        let mut other = Trace::new(Detail::Hash);
        for at in 0..5 {
            trace.record(Instant(at), &[1, 2], || format!("event {at}"));
            other.record(Instant(at), &[1, if at == 3 { 9 } else { 2 }], String::new);
        }
        assert_ne!(trace.hash(), other.hash());
        assert_eq!(trace.tail().count(), 2);
        assert!(trace.tail().last().is_some_and(|line| line.ends_with("event 4")));
        assert_ne!(octets(b"12345678a"), octets(b"12345678b"));
    }
}
