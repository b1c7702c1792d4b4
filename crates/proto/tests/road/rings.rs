//! The other road: rings of shared memory. What is in one is read in order, by a reader that may wake late,
//! and lost only where there is no room, or with its link.

use std::collections::VecDeque;

use plainsong_proto::payload::Payload;
use plainsong_proto::time::Instant;

/// A message and what came beside it.
pub(crate) type Record = (Vec<u8>, Option<Payload>);

/// One ring for each of several links.
pub(crate) struct Rings {
    rings: Vec<VecDeque<(Instant, Record)>>,
    bytes_max: usize,
    late_nanos_max: u64,
    random: u64,
    /// Messages that found no room.
    pub(crate) lost: usize,
}

const WAKE_NANOS: u64 = 5_000;

impl Rings {
    pub(crate) fn new(links: usize, bytes_max: usize, late_nanos_max: u64, seed: u64) -> Self {
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self { rings: vec![VecDeque::new(); links], bytes_max, late_nanos_max, random, lost: 0 }
    }

    pub(crate) const fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 16
    }

    /// Pushes a message.
    pub(crate) fn push(&mut self, now: Instant, link: usize, (message, attachment): Record) {
        let late = self.draw() % self.late_nanos_max.max(1);
        let ring = &mut self.rings[link];
        let unread: usize = ring.iter().map(|(_, (message, _))| message.len()).sum();
        if unread + message.len() > self.bytes_max {
            self.lost += 1;
            return;
        }
        // Who is awake reads all that is there.
        let woken = ring.back().map_or(Instant(0), |(at, _)| *at);
        ring.push_back((Instant(now.0 + WAKE_NANOS + late).max(woken), (message, attachment)));
    }

    /// When the next message is read.
    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        self.rings.iter().filter_map(|ring| ring.front().map(|(at, _)| *at)).min()
    }

    /// The next message that is read, and by which link it came.
    pub(crate) fn arrived(&mut self, now: Instant) -> Option<(usize, Record)> {
        let due = |ring: &VecDeque<(Instant, Record)>| ring.front().is_some_and(|(at, _)| *at <= now);
        let link = self.rings.iter().position(due)?;
        self.rings[link].pop_front().map(|(_, record)| (link, record))
    }

    /// The other process died: what was not read is gone.
    pub(crate) fn cut(&mut self, link: usize) {
        self.rings[link].clear();
    }
}
