//! Which positions have samples that are not kept: who was away when they were delivered has lost them.

use std::collections::VecDeque;

use crate::atomic::history::History;
use crate::atomic::{Body, Delivered};
use crate::tuning::atomic::LOST_POSITIONS_KEPT;

/// Bits of the last positions that were delivered here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Lost {
    /// Of 64 positions each.
    words: VecDeque<u64>,
    /// The number of the first word.
    first: u64,
    /// Nothing is known of positions before this one.
    since: u64,
    /// The position to come.
    next: u64,
}

impl Lost {
    /// This was delivered here.
    pub(crate) fn delivered<B: Body>(&mut self, entry: &Delivered<B>) {
        let (word, bit) = (entry.position / 64, entry.position % 64);
        if entry.position != self.next {
            // What came between came from others.
            *self = Self { words: VecDeque::new(), first: word, since: entry.position, next: 0 };
        }
        self.next = entry.position + 1;
        if word == self.first + self.words.len() as u64 {
            self.words.push_back(0);
        }
        if self.words.len() > LOST_POSITIONS_KEPT / 64 {
            self.words.pop_front();
            self.first += 1;
            self.since = self.since.max(self.first * 64);
        }
        let is_lost = entry.body.is_sample() && entry.body.history_key().is_none();
        if is_lost && let Some(word) = self.words.get_mut((word - self.first) as usize) {
            *word |= 1 << bit;
        }
    }

    /// How many samples after one position up to another are not kept. Of what is not known, all that is not
    /// kept is taken for a sample.
    pub(crate) fn between<B: Body>(&self, after: u64, through: u64, history: &History<B>) -> u64 {
        let (first, end) = (after.saturating_add(1), through.saturating_add(1));
        let known = self.since.max(first).min(end);
        let unknown = known.saturating_sub(first);
        let kept = if unknown == 0 { 0 } else { history.count(after, known - 1) };
        unknown.saturating_sub(kept) + self.count(known, through)
    }

    /// So many from one position to another were lost: by what is known, however far apart those are.
    fn count(&self, from: u64, through: u64) -> u64 {
        let below = |bits: u64| if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        let of_word = |(word, number): (&u64, u64)| {
            let begin = number * 64;
            let before = from.saturating_sub(begin);
            let up_to = through.saturating_add(1).saturating_sub(begin);
            u64::from((word & below(up_to) & !below(before)).count_ones())
        };
        self.words.iter().zip(self.first..).map(of_word).sum()
    }
}
