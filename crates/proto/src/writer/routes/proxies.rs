//! The matched readers of a writer together.

use crate::guid::{Guid, GuidPrefix};
use crate::matched::MatchedReader;
use crate::seq::SequenceNumber;
use crate::sources::Sender;
use crate::stats::DropReason;
use crate::time::Instant;

use super::filters::Filters;
use super::proxy::{ReaderProxy, Since};
use super::route::Routes;
use crate::writer::flow::route_kind::RouteKind;

/// What an acknowledgement changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// It repeats an earlier one.
    None,
    /// What is known of this reader; others still owe as much as before.
    OfOne,
    /// What all readers have: there may be room, and an end of waiting.
    OfAll,
}

/// The matched readers of one writer.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    /// In the order of their GUIDs.
    pub(crate) readers: Vec<ReaderProxy>,
    pub(crate) filters: Filters,
    /// Lowest `acknowledged` of the reliable readers that were not left out; `None` without such readers.
    acknowledged: Option<SequenceNumber>,
    /// The same for who waits for acknowledgements: those of changes before a reader joined are not waited
    /// for.
    awaited: Option<SequenceNumber>,
    /// A reader wants inline QoS, so every sample carries it: its octets are composed once for all.
    inline_qos: bool,
    /// The writer has a TRANSPORT_PRIORITY.
    is_urgent: bool,
    /// A reader may yet hear its first HEARTBEAT, and take it for more than it tells.
    meets: bool,
}

impl Proxies {
    /// What follows is urgent, or not any more: it goes where readers hear it beside the rest.
    pub(crate) fn set_urgent(&mut self, is_urgent: bool, routes: &mut Routes) {
        if self.is_urgent != is_urgent {
            self.is_urgent = is_urgent;
            self.rebuild(routes);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ReaderProxy> {
        self.readers.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.readers.len()
    }

    pub(crate) fn get(&self, guid: Guid) -> Option<&ReaderProxy> {
        self.readers.get(self.position(guid).ok()?)
    }

    pub(crate) fn get_mut(&mut self, guid: Guid) -> Option<&mut ReaderProxy> {
        let position = self.position(guid).ok()?;
        self.readers.get_mut(position)
    }

    /// The reliable reader that says something, from where it is heard.
    pub(crate) fn speaker(&mut self, sender: &Sender) -> Result<&mut ReaderProxy, DropReason> {
        let proxy = self.get_mut(sender.guid).filter(|proxy| proxy.reliable).ok_or(DropReason::NotMatched)?;
        if proxy.origin.admit(&sender.from) { Ok(proxy) } else { Err(DropReason::SpoofSuspected) }
    }

    fn position(&self, guid: Guid) -> Result<usize, usize> {
        self.readers.binary_search_by_key(&guid, |reader| reader.guid)
    }

    pub(crate) const fn inline_qos(&self) -> bool {
        self.inline_qos
    }

    /// So much has arrived at a reader, and so much at all others.
    pub(crate) fn delivered_to(&mut self, guid: Guid, left: u64, to_others: u64, echoes_count: bool) {
        let Some(reader) = self.get_mut(guid) else { return };
        reader.left = reader.left.max(left);
        reader.is_slow &= reader.left < to_others;
        reader.echoes_counts |= echoes_count;
    }

    /// Whether some reader must be told what is older than itself before it hears another HEARTBEAT.
    pub(crate) const fn meets(&self) -> bool {
        self.meets
    }

    pub(crate) fn update_meets(&mut self) {
        self.meets = self.readers.iter().any(ReaderProxy::must_be_met);
    }

    /// What every reliable reader has that was not left out; `None` without such readers.
    pub(crate) const fn acknowledged(&self) -> Option<SequenceNumber> {
        self.acknowledged
    }

    /// Adds a reader, or takes over what changed of a known one; whether it is new.
    pub(crate) fn insert(
        &mut self,
        reader: &MatchedReader,
        reliable: bool,
        since: &Since,
        routes: &mut Routes,
    ) -> bool {
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
        self.rebuild(routes);
        position.is_err()
    }

    /// Readers of one participant.
    pub(crate) fn of_participant(&self, prefix: GuidPrefix) -> usize {
        let first = self.readers.partition_point(|reader| reader.guid.prefix < prefix);
        self.readers.iter().skip(first).take_while(|reader| reader.guid.prefix == prefix).count()
    }

    /// Whether the reader was there.
    pub(crate) fn remove(&mut self, guid: Guid, routes: &mut Routes) -> bool {
        let Ok(position) = self.position(guid) else { return false };
        let filter = self.readers.remove(position).filter;
        self.release_filter(filter);
        self.rebuild(routes);
        true
    }

    pub(crate) fn rebuild(&mut self, routes: &mut Routes) {
        let is_urgent = self.is_urgent;
        for reader in &mut self.readers {
            reader.is_urgent = is_urgent;
            reader.is_slow = false;
        }
        routes.rebuild(&self.readers);
        self.inline_qos = self.readers.iter().any(|reader| reader.expects_inline_qos);
        self.update_meets();
        self.update_acknowledged();
    }

    /// The reader has everything up to `number`.
    pub(crate) fn acknowledge(&mut self, guid: Guid, number: SequenceNumber) -> News {
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

    /// The readers on other hosts whose answers are waited for: how many, what has arrived at all of
    /// them, and whether all say which heartbeats they answer.
    ///
    /// Changes up to `last` were sent, `sent` octets in all: to who has the changes all of that has left.
    pub(crate) fn delivered(&self, last: SequenceNumber, sent: u64) -> (usize, u64, bool) {
        let waited_for = self.readers.iter().filter(|reader| reader.is_waited_for());
        waited_for.fold((0, sent, true), |(readers, left, all_echo), it| {
            let has_all = !it.echoes_counts() && it.acknowledged >= last;
            let its = if has_all { sent } else { it.left };
            (readers + 1, left.min(its), all_echo && it.echoes_counts())
        })
    }

    /// The readers of a route.
    pub(crate) fn of_route(&self, kind: RouteKind) -> impl Iterator<Item = Guid> {
        self.readers.iter().filter(move |reader| reader.kind == kind).map(|reader| reader.guid)
    }

    /// Those that keep others waiting, to whom more has arrived than so much, are waited for no more
    /// until they are as far.
    pub(crate) fn pass_slow(&mut self, left: u64) {
        if self.readers.iter().any(|it| it.is_waited_for() && it.left > left) {
            let keeps_waiting = |it: &&mut ReaderProxy| it.is_waited_for() && it.left <= left;
            self.readers.iter_mut().filter(keeps_waiting).for_each(|it| it.is_slow = true);
        }
    }

    /// Reliable readers that have not acknowledged everything up to `last`, and are waited for.
    pub(crate) fn owing(&self, last: SequenceNumber) -> usize {
        self.readers.iter().filter(|reader| reader.is_awaited() && reader.acknowledged < last).count()
    }

    /// The reader says that it lacks what it had acknowledged; whether that is news. It lost its writer,
    /// found it again and began anew, while the writer never lost sight of it.
    pub(crate) fn rewind(&mut self, now: Instant, guid: Guid, number: SequenceNumber) -> bool {
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

    pub(crate) fn update_acknowledged(&mut self) {
        let reliable = || self.readers.iter().filter(|reader| reader.is_awaited());
        self.acknowledged = reliable().map(|reader| reader.acknowledged).min();
        self.awaited = reliable().map(ReaderProxy::awaited).min();
    }
}
