//! What a writer knows of a matched reader (RTPS 2.5 §8.4.7.5).

use crate::guid::Guid;
use crate::locator::Locator;
use crate::matched::MatchedReader;
use crate::qos::QosSet;
use crate::seq::{FragmentNumber, Number, NumberSet, SET_BITS_MAX, SequenceNumber};
use crate::sources::{Origin, Sources};
use crate::time::{Duration, Instant};

use crate::tuning::writer::{ACKNACKS_REORDERED_MAX, NACK_FRAG_WINDOWS_MAX};
use crate::writer::flow::delay::{LastRetransmitted, ShortestRtt};
use crate::writer::flow::fan_out::ReaderRequest;
use crate::writer::flow::repair::Repair;
use crate::writer::flow::route_kind::RouteKind;
use crate::writer::flow::silence::Silence;

use super::filters::Refused;

/// One matched reader.
#[derive(Debug)]
pub(crate) struct ReaderProxy {
    pub(crate) guid: Guid,
    pub(crate) locators: Vec<Locator>,
    pub(crate) origin: Origin,
    /// Instead of these for what is urgent.
    urgent: Option<Locator>,
    /// The writer has a TRANSPORT_PRIORITY.
    pub(crate) is_urgent: bool,
    pub(crate) kind: RouteKind,
    /// Reader and writer are both reliable.
    pub(crate) reliable: bool,
    pub(crate) expects_inline_qos: bool,
    /// Its TIME_BASED_FILTER.
    pub(crate) separation: Duration,
    /// What its socket holds; 0 when unknown.
    pub(crate) receive_bytes: u32,
    /// Last change when it was matched: nobody waits for its acknowledgement of those.
    pub(crate) joined_at: SequenceNumber,
    /// Changes below were written before it was matched and are not for it.
    pub(crate) first_relevant: SequenceNumber,
    /// It has, or does not need, every change up to here.
    pub(crate) acknowledged: SequenceNumber,
    /// On another host: so many octets of all that were sent have arrived at it.
    pub(crate) left: u64,
    pub(crate) shortest: ShortestRtt,
    /// What it lacks of the changes up to here is counted as lost on its path.
    pub(crate) losses_counted: SequenceNumber,
    /// By memory: every message up to the one with this change was read, or lost.
    pub(crate) read: SequenceNumber,
    /// It said once which heartbeat it answered.
    pub(crate) echoes_counts: bool,
    /// It did not answer in time: new changes do not wait for it.
    pub(crate) is_slow: bool,
    /// It said so itself of every change up to here; of what its filter refused, or was before its time, it
    /// may not know yet.
    pub(crate) confirmed: SequenceNumber,
    pub(crate) acknack_count: Option<i32>,
    pub(crate) nack_frag_count: Option<i32>,
    pub(crate) request: ReaderRequest,
    pub(crate) silence: Silence,
    /// The first HEARTBEAT that it hears must tell of nothing that is for it.
    skips_to_heartbeat: bool,
    /// When a HEARTBEAT last answered one of its ACKNACKs.
    pub(crate) answered: Option<Instant>,
    /// Its content filter among those of all readers, when it is applied here.
    pub(crate) filter: Option<usize>,
    /// From this change on it was sent nothing, because nothing passed its filter, and it was not told so.
    pub(crate) passed_over: Option<SequenceNumber>,
    /// What it was told so of, and may not have heard.
    pub(crate) refused: Refused,
    /// Changes repeated for it lately.
    pub(crate) recent: RecentNumbers<SequenceNumber>,
    pub(crate) last_retransmitted: LastRetransmitted,
    pub(crate) repair: Repair,
    /// Fragments repeated for it lately.
    pub(crate) recent_fragments: RecentFragments,
}

/// When a reader came.
#[derive(Debug)]
pub(crate) struct Since {
    pub(crate) now: Instant,
    /// Changes begin after it.
    pub(crate) before_all: SequenceNumber,
    /// It needs what follows.
    pub(crate) history: SequenceNumber,
    /// The last change when it came.
    pub(crate) last: SequenceNumber,
}

impl ReaderProxy {
    pub(crate) fn new(
        reader: &MatchedReader,
        reliable: bool,
        &Since { now, before_all, history, last }: &Since,
    ) -> Self {
        let mut proxy = Self {
            guid: reader.guid,
            locators: Vec::new(),
            origin: Origin::new(Sources::default()),
            urgent: None,
            is_urgent: false,
            kind: RouteKind::Remote,
            reliable,
            expects_inline_qos: false,
            separation: Duration::ZERO,
            receive_bytes: 0,
            joined_at: last,
            first_relevant: history.next(),
            acknowledged: history,
            left: 0,
            shortest: ShortestRtt::default(),
            losses_counted: last,
            read: last,
            echoes_counts: false,
            is_slow: false,
            confirmed: before_all,
            acknack_count: None,
            nack_frag_count: None,
            request: ReaderRequest::first(now),
            silence: Silence::first(now, reader.is_of_own_process),
            skips_to_heartbeat: reader.skips_to_heartbeat && reliable,
            answered: None,
            filter: None,
            passed_over: None,
            refused: Refused::default(),
            recent: RecentNumbers::new(SequenceNumber::FIRST),
            last_retransmitted: LastRetransmitted::default(),
            repair: Repair::new(now),
            recent_fragments: RecentFragments::default(),
        };
        proxy.update(reader);
        proxy
    }

    pub(crate) fn update(&mut self, reader: &MatchedReader) {
        self.locators.clone_from(&reader.locators);
        self.origin.set(&reader.sources);
        self.urgent = reader.urgent;
        self.kind = RouteKind::of(&reader.locators, reader.same_host);
        self.expects_inline_qos = reader.expects_inline_qos;
        self.separation = separation(&reader.qos);
        self.receive_bytes = reader.receive_bytes;
    }

    /// It has every change up to here, or nobody waits for its acknowledgement.
    pub(crate) fn awaited(&self) -> SequenceNumber {
        self.acknowledged.max(self.joined_at)
    }

    /// It acknowledges what it has, or is to answer at last.
    pub(crate) const fn is_awaited(&self) -> bool {
        self.reliable && !self.silence.is_left_out
    }

    /// Whether what is sent waits for its answers: it is elsewhere, answers in time, and tells more by it
    /// than that it has what was written before it came.
    pub(crate) fn is_waited_for(&self) -> bool {
        let is_prompt = self.is_awaited() && self.kind == RouteKind::Remote && !self.is_slow;
        is_prompt && (self.echoes_counts() || self.acknowledged >= self.joined_at)
    }

    /// It may yet hear its first HEARTBEAT, and take what that tells of for older than itself.
    pub(crate) const fn must_be_met(&self) -> bool {
        self.skips_to_heartbeat && !self.silence.is_known
    }

    /// It says which heartbeats it answers, as those of our like do, who tell what their sockets hold.
    pub(crate) const fn echoes_counts(&self) -> bool {
        self.echoes_counts || self.receive_bytes > 0
    }

    /// Where to send to it.
    pub(crate) fn destinations(&self) -> &[Locator] {
        match &self.urgent {
            Some(urgent) if self.is_urgent && self.kind != RouteKind::Memory => std::slice::from_ref(urgent),
            _ => &self.locators,
        }
    }
}

/// What was repeated for a reader lately: two requests that crossed on the wire are answered once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecentNumbers<N> {
    numbers: NumberSet<N>,
    since: Instant,
}

impl<N: Number> RecentNumbers<N> {
    pub(crate) const fn new(base: N) -> Self {
        Self { numbers: NumberSet::empty(base), since: Instant(0) }
    }

    /// Whether `number` was repeated less than `pause` ago; if not, notes that it is repeated now.
    pub(crate) fn note(&mut self, number: N, now: Instant, pause: Duration) -> bool {
        self.note_from(number, number, now, pause)
    }

    /// The same; a new bitmap begins with `base`.
    fn note_from(&mut self, base: N, number: N, now: Instant, pause: Duration) -> bool {
        let fresh = now.since(self.since) < pause;
        if fresh && self.numbers.contains(number) {
            return true;
        }
        if !fresh || !self.numbers.insert(number) {
            *self = Self { numbers: NumberSet::empty(base), since: now };
            self.numbers.insert(number);
        }
        false
    }
}

/// Fragments of one change that were repeated for a reader lately, by windows of 256.
#[derive(Debug, Default)]
pub(crate) struct RecentFragments {
    number: SequenceNumber,
    windows: Vec<RecentNumbers<FragmentNumber>>,
}

impl RecentFragments {
    /// Whether the fragment was repeated less than `pause` ago; if not, notes that it is repeated now.
    pub(crate) fn note(
        &mut self,
        (number, fragment): (SequenceNumber, FragmentNumber),
        now: Instant,
        pause: Duration,
    ) -> bool {
        let (start, window) = self.window(number, fragment);
        window.is_some_and(|repeats| repeats.note_from(start, fragment, now, pause))
    }

    /// The fragment, whose turn may have come long after it was asked for, is sent now.
    pub(crate) fn sent(&mut self, (number, fragment): (SequenceNumber, FragmentNumber), now: Instant) {
        let (start, Some(window)) = self.window(number, fragment) else { return };
        if !window.numbers.insert(fragment) {
            window.numbers = NumberSet::empty(start);
            window.numbers.insert(fragment);
        }
        window.since = now;
    }

    /// The window of a fragment, and the first fragment that it may have.
    fn window(
        &mut self,
        number: SequenceNumber,
        fragment: FragmentNumber,
    ) -> (FragmentNumber, Option<&mut RecentNumbers<FragmentNumber>>) {
        if self.number != number {
            *self = Self { number, windows: Vec::new() };
        }
        let window = fragment.saturating_sub(1) / SET_BITS_MAX;
        let index = (window % NACK_FRAG_WINDOWS_MAX) as usize;
        if index >= self.windows.len() {
            self.windows.resize(index + 1, RecentNumbers::new(1));
        }
        (window * SET_BITS_MAX + 1, self.windows.get_mut(index))
    }
}

/// Whether `count` is news after `last` (RTPS 2.5 §8.3.8.1, interoperable reading): the same count, or
/// one shortly before it, was handled; a count from far away is a peer that began anew.
pub(crate) fn is_news(last: &mut Option<i32>, count: i32) -> bool {
    let behind = last.map(|last| last.wrapping_sub(count));
    if behind.is_some_and(|behind| (0..ACKNACKS_REORDERED_MAX).contains(&behind)) {
        return false;
    }
    *last = Some(count);
    true
}

/// The TIME_BASED_FILTER that may be applied for a reader. Samples that wait here arrive a little more than
/// it apart, and a DEADLINE that is hardly longer would be missed.
fn separation(qos: &QosSet) -> Duration {
    let least = qos.time_based_filter;
    if qos.deadline.0 / 2 < least.0 { Duration::ZERO } else { least }
}
