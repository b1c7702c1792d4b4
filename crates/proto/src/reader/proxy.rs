//! What a reader knows of one matched writer: order, fragments, lease, and what it still has to answer.

use std::cmp::Reverse;

use super::coherent::Sets;
use super::fragment::{Age, Fragments};
use super::liveliness::Lease;
use super::reorder::{Reorder, TakenBack};
use crate::backoff::Backoff;
use crate::guid::{EntityId, Guid};
use crate::locator::Locator;
use crate::matched::MatchedWriter;
use crate::qos::HistoryKind;
use crate::seq::SequenceNumber;
use crate::sources::Origin;
use crate::time::{Duration, Instant};
use crate::tuning::reader::{
    FRAGMENTS_STALLED, HEARTBEATS_OVERTAKEN_FOR, HEARTBEATS_OVERTAKEN_MAX, IN_FLIGHT, PROBE_PAUSE,
    PROBE_PAUSE_MAX, PROBE_PAUSE_SLOW, PROBE_WRITERS, PROBES_FAST_MAX, RETRY_PAUSE, RETRY_PAUSE_MAX,
    UNANSWERED_PAUSE, UNANSWERED_REQUESTS_MAX,
};

/// First and longest pause before what is missing is asked for again without another heartbeat.
const RETRY_PAUSES: Backoff = Backoff::new(RETRY_PAUSE, RETRY_PAUSE_MAX);

const UNANSWERED_PAUSES: Backoff = Backoff::new(UNANSWERED_PAUSE, PROBE_PAUSE_SLOW);

/// How much an incomplete sample matters for lack of memory: the greatest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// It is next, and moves on: those that came later go first.
    Next {
        started: Instant,
    },
    /// It is so far ahead of what is next; or it is next, and nothing comes any more.
    Ahead(u64),
    BestEffort(Reverse<Instant>),
}

impl Rank {
    pub(super) const fn is_next(self) -> bool {
        matches!(self, Self::Next { .. })
    }
}

/// One matched writer.
#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) guid: Guid,
    /// Vendor id of its participant.
    pub(super) vendor: [u8; 2],
    pub(super) locators: Vec<Locator>,
    pub(super) origin: Origin,
    /// Both ends are reliable.
    pub(super) reliable: bool,
    /// Nothing that it wrote is replaced or expires: what it leaves out for a reader in step is lost to that
    /// one.
    pub(super) keeps_all: bool,
    /// Writer keeps history for late joiners and the reader wants it.
    pub(super) historical: bool,
    /// Best effort: the highest number received, 0 before the first.
    pub(super) received: SequenceNumber,
    /// Reliable: what is delivered, waiting, missing.
    pub(super) order: Reorder,
    pub(super) fragments: Fragments,
    /// The rank by which it is found among the writers with incomplete samples.
    pub(super) rank_placed: Option<Rank>,
    /// Coherent sets that are not readable yet.
    pub(super) sets: Sets,
    /// Its publisher, when it said.
    pub(super) publisher: Option<Guid>,
    /// When the last fragment arrived, and of which sample: those behind it are likely on their way.
    pub(super) fragment_arrival: Option<(Instant, SequenceNumber)>,
    pub(super) heard: Heard,
    pub(super) lease: Lease,
    pub(super) answer: Answer,
    /// The cache refused the next sample; it waits for `take`.
    pub(super) blocked: bool,
    /// The last sample the cache refused: a refusal is reported once.
    pub(super) refused: SequenceNumber,
    /// It is not matched any more: only what waits in `sets` is still to be shown.
    pub(super) departed: bool,
}

/// What the writer's heartbeats said.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Count of the last HEARTBEAT, and when it came; `None` before the first.
    pub(super) count: Option<i32>,
    pub(super) counted: Instant,
    /// Count of the last HEARTBEAT_FRAG.
    pub(super) fragment_count: Option<i32>,
    /// Highest number its last HEARTBEAT announced.
    pub(super) last: SequenceNumber,
    /// Highest number when it was heard first: the end of its history.
    pub(super) history_last: SequenceNumber,
    /// A sample came before its turn, whose number it is, and when: what is missing before it may be asked
    /// for.
    pub(super) early: Option<(Instant, SequenceNumber)>,
    /// Highest number that it announced to this very reader when it first did: what it wrote after that, it
    /// wrote for this reader too.
    pub(super) named_last: Option<SequenceNumber>,
    /// A GAP told what a reader is told that was just matched, and passed over what this one waited for.
    pub(super) began_anew: bool,
    /// It is Plainsong's.
    pub(super) is_same_vendor: bool,
}

impl Heard {
    /// Whether a heartbeat with this count was sent before the last one that came. Plainsong never counts
    /// anew; but were every lower count of it refused, a forged one would silence a writer for good.
    pub(super) fn is_overtaken(&self, now: Instant, count: i32) -> bool {
        let behind = self.count.map_or(0, |last| last.wrapping_sub(count));
        if self.is_same_vendor {
            behind > 0 && now.since(self.counted) < HEARTBEATS_OVERTAKEN_FOR
        } else {
            (1..=HEARTBEATS_OVERTAKEN_MAX).contains(&behind)
        }
    }
}

/// Counters and timers of what goes back to the writer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) acknack_count: i32,
    pub(super) nack_frag_count: i32,
    /// An answer is owed at this time.
    pub(super) due: Option<Instant>,
    /// The owed answer goes out even when nothing is missing.
    pub(super) demanded: bool,
    /// Count of the last heartbeat that wants an answer, of a writer of our like: the answer names it.
    pub(super) request_count: Option<i32>,
    /// A heartbeat up to this number came while the last fragments were on their way: it is answered when
    /// they have arrived.
    pub(super) promised: Option<SequenceNumber>,
    /// When something was last asked for, and from which number on.
    pub(super) requested: Option<(Instant, SequenceNumber)>,
    /// The next probe of a writer that was never heard.
    pub(super) probe_at: Option<Instant>,
    pub(super) probes: u32,
    /// When what is missing is asked for again, and how often that was done.
    pub(super) retry_at: Option<Instant>,
    retries: u32,
    /// Of a built-in reader: how often it asked since the participant of the writer was heard.
    unanswered: Option<u32>,
    /// When the writer is asked again whether it is beyond this number of its group, and how often that was
    /// done.
    pub(super) group_probe_at: Option<Instant>,
    pub(super) group_probe_number: SequenceNumber,
    pub(super) group_probes: u32,
}

impl Proxy {
    pub(super) fn new(writer: &MatchedWriter, reliable: bool, historical: bool) -> Self {
        Self {
            guid: writer.guid,
            vendor: writer.vendor,
            locators: writer.locators.clone(),
            origin: Origin::new(writer.sources.clone()),
            reliable,
            keeps_all: writer.qos.history.kind == HistoryKind::KeepAll && writer.qos.lifespan.is_infinite(),
            historical,
            received: SequenceNumber(0),
            order: Reorder::new(),
            fragments: Fragments::default(),
            rank_placed: None,
            sets: Sets::new(reliable),
            publisher: (writer.publisher != EntityId::UNKNOWN)
                .then(|| writer.guid.prefix.entity(writer.publisher)),
            fragment_arrival: None,
            heard: Heard::default(),
            lease: Lease::new(writer.qos.liveliness),
            answer: Answer::default(),
            blocked: false,
            refused: SequenceNumber(0),
            departed: false,
        }
    }

    /// A heartbeat that none overtook says from which change to which the writer has them. Returns how many
    /// are lost by that, and whether the writer began anew.
    pub(super) fn hear(&mut self, first: SequenceNumber, last: SequenceNumber) -> (u64, bool) {
        self.heard.last = last;
        // What a later one, or a GAP with it, told is no lie.
        let lost = self.order.hear(first, last).unwrap_or_else(|TakenBack| {
            self.sets.progress.take_back();
            0
        });
        (lost, std::mem::take(&mut self.heard.began_anew) && lost > 0)
    }

    /// The writer is gone. Nothing is asked of it, expected or waited for any more.
    pub(super) fn depart(&mut self) {
        self.departed = true;
        (self.reliable, self.historical, self.blocked) = (false, false, false);
        self.order = Reorder::new();
        self.fragments = Fragments::default();
        self.answer = Answer::default();
        (self.lease.alive, self.lease.expires) = (false, None);
        self.sets.progress.leave();
    }

    /// The writer is gone, and nothing waits of it.
    pub(super) fn is_done(&self) -> bool {
        self.departed && self.sets.waiting().is_empty()
    }

    /// How much an incomplete sample of this age matters for lack of memory, as of `now` or as if it went on:
    /// the greatest rank goes first. What is next and moves on stays, in the order of coming.
    pub(super) fn rank(&self, now: Option<Instant>, (number, started, heard): Age) -> Rank {
        let ahead = number.0.saturating_sub(self.order.expected().0).max(0) as u64;
        let moves_on = now.is_none_or(|now| now.since(heard) < FRAGMENTS_STALLED);
        match (self.reliable, ahead) {
            (true, 0) if moves_on => Rank::Next { started },
            (true, ahead) => Rank::Ahead(ahead),
            // Of best effort the oldest: its rest will not come.
            (false, _) => Rank::BestEffort(Reverse(started)),
        }
    }

    /// Of its incomplete samples the one that goes first for lack of memory, and its rank as of `now` or as
    /// if it went on.
    pub(super) fn first_to_go(&self, now: Option<Instant>) -> Option<(Rank, SequenceNumber)> {
        let fragments = &self.fragments;
        let number = if self.reliable { fragments.last() } else { fragments.first() }?;
        Some((self.rank(now, fragments.age(number)?), number))
    }

    /// A sample came before its turn. When nothing closes the gap soon, what is missing is asked for, once,
    /// without waiting for a heartbeat; it is asked for again when one comes. Writers of other products are
    /// only answered (RTPS 2.5 §8.4.2.3).
    pub(super) fn came_early(&mut self, now: Instant, number: SequenceNumber) {
        let requested = self.answer.requested.is_some_and(|(_, base)| base == self.order.expected());
        if !self.heard.is_same_vendor || requested {
            return;
        }
        let waits = self.heard.early.is_some_and(|(_, early)| early >= self.order.expected());
        if !waits && let Some(at) = now.after(IN_FLIGHT) {
            self.heard.early = Some((now, number));
            self.answer.owe(at, false);
        }
    }

    /// The highest number that the writer announced, or that has shown itself without what comes before it.
    pub(super) fn known_last(&self, now: Instant) -> SequenceNumber {
        let early = self.heard.early.filter(|(since, _)| now.since(*since) >= IN_FLIGHT);
        early.map_or(self.heard.last, |(_, number)| number.max(self.heard.last))
    }

    /// When something has to be done for this writer.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let Answer { due, probe_at, retry_at, group_probe_at, .. } = self.answer;
        Instant::earliest([due, probe_at, retry_at, group_probe_at, self.lease.expires])
    }

    /// Whether the writer knows this reader, and everything was delivered, or gone before, that it had when
    /// it was heard first.
    pub(super) fn is_in_step(&self) -> bool {
        self.heard.named_last.is_some() && self.order.expected() > self.heard.history_last
    }

    /// The writer passes over `start..=end` for a reader in step that has no filter. A writer that replaces
    /// samples may do so, also from the first on, in answer to a request from before; one that keeps all and
    /// begins with the first has taken the reader for a new one.
    pub(super) fn pass_over(&mut self, start: SequenceNumber, end: SequenceNumber) {
        if !self.keeps_all {
            return;
        }
        // A GAP of the first match may come late, behind samples that went to all readers.
        let written_before = self.heard.history_last.max(self.heard.named_last.unwrap_or_default());
        let begins_anew = start == SequenceNumber::FIRST && self.order.expected() > SequenceNumber::FIRST;
        let is_missed = self.order.note_unconfirmed(start.max(written_before.next()), end);
        self.heard.began_anew |= begins_anew && is_missed;
    }

    /// Whether everything the writer had when it was matched is delivered or known to be gone.
    pub(super) fn is_history_complete(&self) -> bool {
        !self.historical || (self.heard.count.is_some() && self.order.expected() > self.heard.history_last)
    }

    /// Whether the history became complete since this was asked last: true once.
    pub(super) fn history_completed(&mut self) -> bool {
        let completed = self.historical && self.is_history_complete();
        if completed {
            self.historical = false;
        }
        completed
    }
}

impl Answer {
    /// Of a built-in reader, or of another one.
    pub(super) fn new(counts: (i32, i32), is_builtin: bool) -> Self {
        let (acknack_count, nack_frag_count) = counts;
        Self { acknack_count, nack_frag_count, unanswered: is_builtin.then_some(0), ..Self::default() }
    }

    /// The pause after a request: this one, unless the participant of the writer is silent.
    fn pause(&mut self, usual: Duration) -> Duration {
        let Some(unanswered) = &mut self.unanswered else { return usual };
        *unanswered = unanswered.saturating_add(1);
        unanswered
            .checked_sub(UNANSWERED_REQUESTS_MAX)
            .map_or(usual, |more| usual.max(UNANSWERED_PAUSES.pause(more)))
    }

    /// The participant of the writer was heard: whether what was asked ever less is asked now.
    pub(super) fn writer_heard(&mut self, now: Instant) -> bool {
        let before = self.unanswered.as_mut().map_or(0, std::mem::take);
        if before < UNANSWERED_REQUESTS_MAX {
            return false;
        }
        self.retries = 0;
        let pending = [&mut self.probe_at, &mut self.retry_at].into_iter().flatten();
        pending.map(|at| *at = now).count() > 0
    }

    /// The owed answer is due at `at` or earlier.
    pub(super) fn owe(&mut self, at: Instant, demanded: bool) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
        self.demanded |= demanded;
    }

    pub(super) fn next_acknack_count(&mut self) -> i32 {
        self.acknack_count = self.acknack_count.wrapping_add(1);
        self.acknack_count
    }

    pub(super) fn next_nack_frag_count(&mut self) -> i32 {
        self.nack_frag_count = self.nack_frag_count.wrapping_add(1);
        self.nack_frag_count
    }

    /// Something is asked for at `now`, from `base` on. A writer repeats its heartbeats until everything
    /// is acknowledged, but it may hold an acknowledgement of an earlier match against us.
    pub(super) fn note_request(&mut self, now: Instant, base: SequenceNumber) {
        let progress = self.requested.is_none_or(|(_, before)| before != base);
        self.retries = if progress { 0 } else { self.retries.saturating_add(1) };
        self.requested = Some((now, base));
        self.retry_at = now.after(self.pause(RETRY_PAUSES.pause(self.retries)));
    }

    /// The writer is asked how far it is at `now`: when again.
    pub(super) fn asked_again(&mut self, now: Instant) {
        self.group_probe_at = now.after(Backoff::new(PROBE_PAUSE, PROBE_PAUSE_MAX).pause(self.group_probes));
        self.group_probes = self.group_probes.saturating_add(1);
    }

    /// A probe is sent at `now` to one of so many writers: when the next one follows.
    pub(super) fn probed(&mut self, now: Instant, writers: usize) {
        let pause = if self.probes >= PROBES_FAST_MAX {
            PROBE_PAUSE_SLOW
        } else {
            let first = PROBE_PAUSE.0.saturating_mul((writers / PROBE_WRITERS).max(1) as i64);
            Backoff::new(Duration(first), PROBE_PAUSE_MAX).pause(self.probes)
        };
        // What nobody heard does not count: who is there again has its fast ones before it.
        let is_silent = self.unanswered.is_some_and(|unanswered| unanswered >= UNANSWERED_REQUESTS_MAX);
        self.probes = self.probes.saturating_add(u32::from(!is_silent));
        self.probe_at = now.after(self.pause(pause));
    }
}
