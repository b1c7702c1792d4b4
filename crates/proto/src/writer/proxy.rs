//! What a writer knows of each matched reader (RTPS 2.5 §8.4.7.5), and the destinations of all of them
//! together, worked out once when a reader is matched or unmatched.

use crate::discovery::MatchedReader;
use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::locator::Locator;
use crate::seq::{FragmentNumber, Number, NumberSet, SET_BITS_MAX, SequenceNumber};
use crate::sources::{Origin, Sender, Sources};
use crate::stats::DropReason;
use crate::time::{Duration, Instant};

use super::WriterLimits;
use super::content::Filters;
use super::crowd::Asked;
use super::fragment::Target;
use super::multicast::Hearing;
use super::repair::Repair;
use super::road::{LastRepeated, Shortest};
use super::silence::Silence;

/// Readers that take datagrams of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// On this host: datagrams as large as UDP allows.
    SameHost = 0,
    /// Elsewhere: datagrams of one Ethernet frame.
    Remote = 1,
}

impl Class {
    pub(super) const ALL: [Self; 2] = [Self::SameHost, Self::Remote];
}

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
    is_urgent: bool,
    pub(super) class: Class,
    /// Reader and writer are both reliable.
    pub(super) reliable: bool,
    pub(super) expects_inline_qos: bool,
    /// What its socket holds; 0 when unknown.
    receive_bytes: u32,
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
    names_questions: bool,
    /// It did not answer in time: new changes do not wait for it.
    is_slow: bool,
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
    fn new(
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

    fn update(&mut self, reader: &MatchedReader) {
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
    fn destinations(&self) -> &[Locator] {
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

/// What an acknowledgement changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// It repeats an earlier one.
    None,
    /// What is known of this reader; others still owe as much as before.
    OfOne,
    /// What all readers have: there may be room, and an end of waiting.
    OfAll,
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

/// All readers of one class, addressed at once.
#[derive(Debug, Default)]
pub(super) struct Route {
    /// Each locator once.
    pub(super) destinations: Vec<Locator>,
    /// The participant all readers live in; UNKNOWN when there are several.
    prefix: GuidPrefix,
    /// The only reader; UNKNOWN when there are several.
    reader: EntityId,
    /// Reliable readers.
    pub(super) reliable: usize,
    /// Octets of large samples that may be on their way to them unacknowledged, whatever the time; `None`: a reader
    /// acknowledges nothing, or did not tell what its socket holds.
    pub(super) window_bytes: Option<usize>,
    /// What the sockets of the reliable readers hold of short datagrams; `None`: one did not tell.
    pub(super) hold_bytes: Option<usize>,
}

/// The part of a socket's buffer that one writer may fill: others write too, and the kernel counts more than octets.
const WINDOW_PART: u32 = 4;
/// The part of it that datagrams of an Ethernet frame fill with their octets; the rest is what the kernel counts beside.
const HOLD_PART: u32 = 2;
/// More on its way than this makes nothing faster.
const WINDOW_BYTES_MAX: u32 = 2 << 20;

impl Route {
    pub(super) fn target<'a>(&'a self, class: Class, source: Guid, limits: &WriterLimits) -> Target<'a> {
        Target {
            source,
            destinations: &self.destinations,
            prefix: &self.prefix,
            reader: self.reader,
            class,
            datagram_bytes_max: limits.datagram_bytes_max(class),
        }
    }

    /// The only reader.
    pub(super) fn only(&self) -> Option<Guid> {
        (self.reader != EntityId::UNKNOWN).then(|| self.prefix.entity(self.reader))
    }

    pub(super) fn rebuild<'r>(&mut self, mut members: impl Iterator<Item = &'r ReaderProxy> + Clone) {
        let first = members.clone().next().map_or(Guid::UNKNOWN, |reader| reader.guid);
        self.reader = if members.clone().count() == 1 { first.entity } else { EntityId::UNKNOWN };
        let all = members.clone();
        let together = members.all(|reader| reader.guid.prefix == first.prefix);
        self.prefix = if together { first.prefix } else { GuidPrefix::UNKNOWN };
        let holds = all.clone().map(|reader| if reader.reliable { reader.receive_bytes } else { 0 });
        let window = (holds.min().unwrap_or(0) / WINDOW_PART).min(WINDOW_BYTES_MAX);
        self.window_bytes = usize::try_from(window).ok().filter(|bytes| *bytes > 0);
        let holds = all.clone().filter(|reader| reader.reliable).map(|reader| reader.receive_bytes);
        let hold = (holds.min().unwrap_or(0) / HOLD_PART).min(WINDOW_BYTES_MAX);
        self.hold_bytes = usize::try_from(hold).ok().filter(|bytes| *bytes > 0);
        self.reliable = 0;
        self.destinations.clear();
        for reader in all {
            self.reliable += usize::from(reader.reliable);
            self.destinations.extend_from_slice(reader.destinations());
        }
        self.destinations.sort_unstable();
        self.destinations.dedup();
    }
}

/// The matched readers of one writer.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    /// In the order of their GUIDs.
    pub(super) readers: Vec<ReaderProxy>,
    pub(super) filters: Filters,
    /// Processes of this host with readers that may hear a group; whether anything is sent to it.
    pub(super) may_hear: usize,
    pub(super) use_group: bool,
    routes: [Route; 2],
    /// Lowest `acknowledged` of the reliable readers that were not left out; `None` without such readers.
    acknowledged: Option<SequenceNumber>,
    /// The same for who waits for acknowledgements: those of changes before a reader joined are not waited for.
    awaited: Option<SequenceNumber>,
    /// A reader wants inline QoS, so every sample carries it: its octets are composed once for all.
    inline_qos: bool,
    /// The writer has a TRANSPORT_PRIORITY.
    is_urgent: bool,
}

impl Proxies {
    /// What follows is urgent, or not any more: it goes where readers hear it beside the rest.
    pub(super) fn set_urgent(&mut self, is_urgent: bool) {
        if self.is_urgent != is_urgent {
            self.is_urgent = is_urgent;
            self.rebuild();
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ReaderProxy> {
        self.readers.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.readers.len()
    }

    pub(super) fn get(&self, guid: Guid) -> Option<&ReaderProxy> {
        self.readers.get(self.position(guid).ok()?)
    }

    pub(super) fn get_mut(&mut self, guid: Guid) -> Option<&mut ReaderProxy> {
        let position = self.position(guid).ok()?;
        self.readers.get_mut(position)
    }

    /// The reliable reader that says something, from where it is heard.
    pub(super) fn speaker(&mut self, sender: &Sender) -> Result<&mut ReaderProxy, DropReason> {
        let proxy = self.get_mut(sender.guid).filter(|proxy| proxy.reliable).ok_or(DropReason::NotMatched)?;
        if proxy.origin.admit(&sender.from) { Ok(proxy) } else { Err(DropReason::SpoofSuspected) }
    }

    fn position(&self, guid: Guid) -> Result<usize, usize> {
        self.readers.binary_search_by_key(&guid, |reader| reader.guid)
    }

    pub(super) const fn route(&self, class: Class) -> &Route {
        match class {
            Class::SameHost => &self.routes[0],
            Class::Remote => &self.routes[1],
        }
    }

    pub(super) const fn inline_qos(&self) -> bool {
        self.inline_qos
    }

    /// So much has left the road to a reader, and so much to all others.
    pub(super) fn left_to(&mut self, guid: Guid, left: u64, to_others: u64, names_question: bool) {
        let Some(reader) = self.get_mut(guid) else { return };
        reader.left = reader.left.max(left);
        reader.is_slow &= reader.left < to_others;
        reader.names_questions |= names_question;
    }

    /// What every reliable reader has that was not left out; `None` without such readers.
    pub(super) const fn acknowledged(&self) -> Option<SequenceNumber> {
        self.acknowledged
    }

    /// Adds a reader, or takes over what changed of a known one; whether it is new.
    pub(super) fn insert(&mut self, reader: &MatchedReader, reliable: bool, since: &Since) -> bool {
        let position = self.position(reader.guid);
        match position {
            Ok(known) => {
                if let Some(proxy) = self.readers.get_mut(known) {
                    proxy.update(reader);
                }
            }
            Err(place) => {
                // Most writers have one reader: no room is made for four.
                if self.readers.is_empty() {
                    self.readers.reserve_exact(1);
                }
                self.readers.insert(place, ReaderProxy::new(reader, reliable, since));
            }
        }
        self.rebuild();
        position.is_err()
    }

    /// Readers of one participant.
    pub(super) fn of_participant(&self, prefix: GuidPrefix) -> usize {
        let first = self.readers.partition_point(|reader| reader.guid.prefix < prefix);
        self.readers.iter().skip(first).take_while(|reader| reader.guid.prefix == prefix).count()
    }

    /// Whether the reader was there.
    pub(super) fn remove(&mut self, guid: Guid) -> bool {
        let Ok(position) = self.position(guid) else { return false };
        let filter = self.readers.remove(position).filter;
        self.release_filter(filter);
        self.rebuild();
        true
    }

    pub(super) fn rebuild(&mut self) {
        let is_urgent = self.is_urgent;
        for reader in &mut self.readers {
            reader.is_urgent = is_urgent;
            reader.is_slow = false;
        }
        for class in Class::ALL {
            if let Some(route) = self.routes.get_mut(class as usize) {
                route.rebuild(self.readers.iter().filter(|reader| reader.class == class));
            }
        }
        self.count_near();
        self.forget_aims();
        self.inline_qos = self.readers.iter().any(|reader| reader.expects_inline_qos);
        self.update_acknowledged();
    }

    /// The reader has everything up to `number`.
    pub(super) fn acknowledge(&mut self, guid: Guid, number: SequenceNumber) -> News {
        let before = (self.acknowledged, self.awaited);
        let Some(reader) = self.get_mut(guid).filter(|reader| reader.acknowledged < number) else {
            return News::None;
        };
        let was_lowest = before.0 == Some(reader.acknowledged) || before.1 == Some(reader.awaited());
        reader.acknowledged = number;
        if was_lowest {
            self.update_acknowledged();
        }
        if (self.acknowledged, self.awaited) == before { News::OfOne } else { News::OfAll }
    }

    /// The readers on other hosts whose answers are waited for: how many, what has left the road to all of them, and whether
    /// all say which heartbeats they answer.
    ///
    /// Changes up to `last` were sent, `sent` octets in all: to who has the changes all of that has left.
    pub(super) fn left(&self, last: SequenceNumber, sent: u64) -> (usize, u64, bool) {
        let waited_for = self.readers.iter().filter(|reader| reader.is_waited_for());
        waited_for.fold((0, sent, true), |(readers, left, all_name), it| {
            let has_all = !it.names_questions() && it.acknowledged >= last;
            let its = if has_all { sent } else { it.left };
            (readers + 1, left.min(its), all_name && it.names_questions())
        })
    }

    /// The readers on other hosts.
    pub(super) fn remote(&self) -> impl Iterator<Item = Guid> {
        self.readers.iter().filter(|reader| reader.class == Class::Remote).map(|reader| reader.guid)
    }

    /// Those that keep others waiting, to whom more has left the road than so much, are waited for no more until they are as
    /// far.
    pub(super) fn pass_slow(&mut self, left: u64) {
        if self.readers.iter().any(|it| it.is_waited_for() && it.left > left) {
            let keeps_waiting = |it: &&mut ReaderProxy| it.is_waited_for() && it.left <= left;
            self.readers.iter_mut().filter(keeps_waiting).for_each(|it| it.is_slow = true);
        }
    }

    /// Reliable readers.
    pub(super) const fn reliable(&self) -> usize {
        self.routes[0].reliable + self.routes[1].reliable
    }

    /// Reliable readers that have not acknowledged everything up to `last`, and are waited for.
    pub(super) fn owing(&self, last: SequenceNumber) -> usize {
        self.readers.iter().filter(|reader| reader.is_awaited() && reader.acknowledged < last).count()
    }

    /// The reader says that it lacks what it had acknowledged; whether that is news. It lost its writer,
    /// found it again and began anew, while the writer never lost sight of it.
    pub(super) fn rewind(&mut self, now: Instant, guid: Guid, number: SequenceNumber) -> bool {
        let Some(reader) = self.get_mut(guid) else { return false };
        let number = number.max(reader.first_relevant.previous());
        let back = number < reader.acknowledged;
        if back {
            reader.acknowledged = number;
            reader.repair.begins_anew(now, number);
            self.update_acknowledged();
        }
        back
    }

    pub(super) fn update_acknowledged(&mut self) {
        let reliable = || self.readers.iter().filter(|reader| reader.is_awaited());
        self.acknowledged = reliable().map(|reader| reader.acknowledged).min();
        self.awaited = reliable().map(ReaderProxy::awaited).min();
    }
}
