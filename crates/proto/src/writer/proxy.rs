//! What a writer knows of a matched reader (RTPS 2.5 §8.4.7.5).

use crate::guid::Guid;
use crate::locator::Locator;
use crate::matched::MatchedReader;
use crate::seq::{FragmentNumber, Number, NumberSet, SET_BITS_MAX, SequenceNumber};
use crate::sources::{Origin, Sources};
use crate::time::{Duration, Instant};

use super::WriterLimits;
use super::class::Class;
use super::crowd::Asked;
use super::fragment::Target;
use super::hearing::Hearing;
use super::repair::Repair;
use super::road::{LastRepeated, Shortest};
use super::silence::Silence;

/// One matched reader.
#[derive(Debug)]
pub(super) struct ReaderProxy {
    pub(super) guid: Guid,
    pub(super) locators: Vec<Locator>,
    pub(super) origin: Origin,
    /// Instead of these when it is written to with others, if it hears it.
    pub(super) group: Option<Locator>,
    pub(super) hearing: Hearing,
    /// It is written to by its group.
    pub(super) by_group: bool,
    /// Instead of these for what is urgent.
    urgent: Option<Locator>,
    /// The writer has a TRANSPORT_PRIORITY.
    pub(super) is_urgent: bool,
    pub(super) class: Class,
    /// Reader and writer are both reliable.
    pub(super) reliable: bool,
    pub(super) expects_inline_qos: bool,
    /// What its socket holds; 0 when unknown.
    pub(super) receive_bytes: u32,
    /// Last change when it was matched: nobody waits for its acknowledgement of those.
    pub(super) joined_at: SequenceNumber,
    /// Changes below were written before it was matched and are not for it.
    pub(super) first_relevant: SequenceNumber,
    /// It has, or does not need, every change up to here.
    pub(super) acknowledged: SequenceNumber,
    /// On another host: so many octets of all that were sent have left the road to it.
    pub(super) left: u64,
    pub(super) shortest: Shortest,
    /// What it lacks of the changes up to here is counted as lost on the road.
    pub(super) losses_counted: SequenceNumber,
    /// It said once which heartbeat it answered.
    pub(super) names_questions: bool,
    /// It did not answer in time: new changes do not wait for it.
    pub(super) is_slow: bool,
    /// It said so itself of every change up to here; of what its filter refused, or was before its time, it may not know
    /// yet.
    pub(super) confirmed: SequenceNumber,
    pub(super) acknack_count: Option<i32>,
    pub(super) nack_frag_count: Option<i32>,
    pub(super) asked: Asked,
    pub(super) silence: Silence,
    /// When a HEARTBEAT last answered one of its ACKNACKs.
    pub(super) answered: Option<Instant>,
    /// Its content filter among those of all readers, when it is applied here.
    pub(super) filter: Option<usize>,
    /// From this change on it was sent nothing, because nothing passed its filter, and it was not told so.
    pub(super) passed_over: Option<SequenceNumber>,
    /// Changes repeated for it lately.
    pub(super) repeated: Repeats<SequenceNumber>,
    pub(super) last_repeated: LastRepeated,
    pub(super) repair: Repair,
    /// Fragments repeated for it lately.
    pub(super) repeated_fragments: RepeatedFragments,
}

/// When a reader came.
#[derive(Debug)]
pub(super) struct Since {
    pub(super) now: Instant,
    /// Changes begin after it.
    pub(super) before_all: SequenceNumber,
    /// It needs what follows.
    pub(super) history: SequenceNumber,
    /// The last change when it came.
    pub(super) last: SequenceNumber,
}

impl ReaderProxy {
    pub(super) fn new(
        reader: &MatchedReader,
        reliable: bool,
        &Since { now, before_all, history, last }: &Since,
    ) -> Self {
        let mut proxy = Self {
            guid: reader.guid,
            locators: Vec::new(),
            origin: Origin::new(Sources::default()),
            group: None,
            hearing: Hearing::default(),
            by_group: false,
            urgent: None,
            is_urgent: false,
            class: Class::Remote,
            reliable,
            expects_inline_qos: false,
            receive_bytes: 0,
            joined_at: last,
            first_relevant: history.next(),
            acknowledged: history,
            left: 0,
            shortest: Shortest::default(),
            losses_counted: last,
            names_questions: false,
            is_slow: false,
            confirmed: before_all,
            acknack_count: None,
            nack_frag_count: None,
            asked: Asked::first(now),
            silence: Silence::first(now),
            answered: None,
            filter: None,
            passed_over: None,
            repeated: Repeats::new(SequenceNumber::FIRST),
            last_repeated: LastRepeated::default(),
            repair: Repair::new(now),
            repeated_fragments: RepeatedFragments::default(),
        };
        proxy.update(reader);
        proxy
    }

    pub(super) fn update(&mut self, reader: &MatchedReader) {
        self.locators.clone_from(&reader.locators);
        self.origin.set(&reader.sources);
        self.urgent = reader.urgent;
        if self.group != reader.group {
            self.group = reader.group;
            self.hearing = Hearing::default();
            self.by_group = false;
        }
        self.class = if reader.same_host { Class::SameHost } else { Class::Remote };
        self.expects_inline_qos = reader.expects_inline_qos;
        self.receive_bytes = reader.receive_bytes;
    }

    /// It has every change up to here, or nobody waits for its acknowledgement.
    pub(super) fn awaited(&self) -> SequenceNumber {
        self.acknowledged.max(self.joined_at)
    }

    /// It acknowledges what it has, or is to answer at last.
    pub(super) const fn is_awaited(&self) -> bool {
        self.reliable && !self.silence.is_left_out
    }

    /// Whether what is sent waits for its answers: it is elsewhere, answers in time, and tells more by it than that it has
    /// what was written before it came.
    pub(super) fn is_waited_for(&self) -> bool {
        let is_prompt = self.is_awaited() && self.class == Class::Remote && !self.is_slow;
        is_prompt && (self.names_questions() || self.acknowledged >= self.joined_at)
    }

    /// It says which heartbeats it answers, as those of our like do, who tell what their sockets hold.
    pub(super) const fn names_questions(&self) -> bool {
        self.names_questions || self.receive_bytes > 0
    }

    /// Where to send to it.
    pub(super) fn destinations(&self) -> &[Locator] {
        match (&self.urgent, &self.group) {
            (Some(urgent), _) if self.is_urgent => std::slice::from_ref(urgent),
            (_, Some(group)) if self.by_group => std::slice::from_ref(group),
            _ => &self.locators,
        }
    }

    pub(super) fn target<'a>(&'a self, source: Guid, limits: &WriterLimits) -> Target<'a> {
        Target {
            source,
            destinations: self.destinations(),
            prefix: &self.guid.prefix,
            reader: self.guid.entity,
            class: self.class,
            datagram_bytes_max: limits.datagram_bytes_max(self.class),
        }
    }
}

/// What was repeated for a reader lately: two requests that crossed on the wire are answered once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeats<N> {
    numbers: NumberSet<N>,
    since: Instant,
}

impl<N: Number> Repeats<N> {
    pub(super) const fn new(base: N) -> Self {
        Self { numbers: NumberSet::empty(base), since: Instant(0) }
    }

    /// Whether `number` was repeated less than `pause` ago; if not, notes that it is repeated now.
    pub(super) fn note(&mut self, number: N, now: Instant, pause: Duration) -> bool {
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
pub(super) struct RepeatedFragments {
    number: SequenceNumber,
    windows: Vec<Repeats<FragmentNumber>>,
}

impl RepeatedFragments {
    /// So many windows are remembered; a request names as many fragments at most.
    const WINDOWS_MAX: u32 = 16;

    /// Whether the fragment was repeated less than `pause` ago; if not, notes that it is repeated now.
    pub(super) fn note(
        &mut self,
        (number, fragment): (SequenceNumber, FragmentNumber),
        now: Instant,
        pause: Duration,
    ) -> bool {
        let (start, window) = self.window(number, fragment);
        window.is_some_and(|repeats| repeats.note_from(start, fragment, now, pause))
    }

    /// The fragment, whose turn may have come long after it was asked for, is sent now.
    pub(super) fn sent(&mut self, (number, fragment): (SequenceNumber, FragmentNumber), now: Instant) {
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
    ) -> (FragmentNumber, Option<&mut Repeats<FragmentNumber>>) {
        if self.number != number {
            *self = Self { number, windows: Vec::new() };
        }
        let window = fragment.saturating_sub(1) / SET_BITS_MAX;
        let index = (window % Self::WINDOWS_MAX) as usize;
        if index >= self.windows.len() {
            self.windows.resize(index + 1, Repeats::new(1));
        }
        (window * SET_BITS_MAX + 1, self.windows.get_mut(index))
    }
}

/// Whether `count` is news after `last` (RTPS 2.5 §8.3.8.1, interoperable reading): the same count, or
/// one shortly before it, was handled; a count from far away is a peer that began anew.
pub(super) fn is_news(last: &mut Option<i32>, count: i32) -> bool {
    const REORDERED_MAX: i32 = 16;
    let behind = last.map(|last| last.wrapping_sub(count));
    if behind.is_some_and(|behind| (0..REORDERED_MAX).contains(&behind)) {
        return false;
    }
    *last = Some(count);
    true
}
