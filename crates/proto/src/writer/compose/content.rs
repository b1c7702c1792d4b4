//! Filtering for readers (RTPS 2.5 §8.7.3): what a reader's content filter does not let pass is not sent to it.
//! It counts as acknowledged, and a GAP tells of it before the next sample that the reader does want, or when
//! the reader is asked what it has.
//!
//! Only data is withheld, and only where nothing else would be lost with it: the ends of instances, members of
//! coherent sets, and samples that decide about ownership or assert the writer go to everyone. Readers filter
//! for themselves in any case.
//!
//! RTPS 2.5 §8.7.4 asks for a DATA that says ALIVE_FILTERED when an instance leaves what a filter lets pass. A GAP
//! goes in its place: DCPS 1.4 has no such instance state that a reader could show, and one GAP tells of many.

use crate::filter::{ContentFilter, FilterFunction};
use crate::guid::Guid;
use crate::matched::MatchedReader;
use crate::outbox::Outbox;
use crate::payload::PayloadView;
use crate::qos::{LivelinessKind, Ownership};
use crate::seq::SequenceNumber;
use crate::time::Now;

use super::submessages::{encode, heartbeat_to, sent_last};
use crate::writer::flow::class::Class;
use crate::writer::flow::heartbeat::Piggyback;
use crate::writer::record::change::{Change, ChangeKind, Marks, Verdict};
use crate::writer::routes::filters::is_judged;
use crate::writer::routes::gap::GapBuilder;
use crate::writer::routes::proxies::Proxies;
use crate::writer::routes::proxy::ReaderProxy;
use crate::writer::routes::route::Route;
use crate::writer::{Writer, WriterConfig};

/// Changes looked at in one search for one that a reader wants: work per datagram stays bounded.
const UNWANTED_SCANNED_MAX: usize = 256;
/// A GAP of one range with its INFO_DST, and an INFO_DST back.
const GAP_BYTES_MAX: usize = 4 + 36 + 2 * 16;

impl ReaderProxy {
    /// Tells the reader that what it was passed over with is filtered out, up to but without `end`.
    fn close_gap(&mut self, end: SequenceNumber) -> Option<GapBuilder> {
        let start = self.passed_over.take()?;
        let count = u64::try_from(end.0 - start.0).unwrap_or(0);
        Some(GapBuilder::range(start, end).filtering(count))
    }
}

impl Proxies {
    /// Whether any reader has a filter that is applied here.
    pub(in crate::writer) const fn is_filtering(&self) -> bool {
        self.filters.readers > 0
    }

    /// What the filters of all readers say about a change to be written.
    pub(in crate::writer) fn judge(
        &self,
        kind: ChangeKind,
        marks: Option<&Marks>,
        payload: PayloadView<'_>,
    ) -> Verdict {
        if self.is_filtering() && is_judged(kind, marks) { self.filters.judge(payload) } else { Verdict::ALL }
    }

    /// Whether a change is for this reader.
    pub(in crate::writer) fn wants(
        &self,
        proxy: &ReaderProxy,
        number: SequenceNumber,
        change: &Change<'_>,
    ) -> bool {
        self.filters.wants(proxy.filter, number, change)
    }

    /// The filter of a reader that leaves is not its any more.
    pub(in crate::writer) fn release_filter(&mut self, slot: Option<usize>) {
        if let Some(slot) = slot {
            self.filters.release(slot);
        }
    }

    /// Works out for whom of a class a change is.
    pub(in crate::writer) fn aim(&mut self, class: Class, number: SequenceNumber, change: &Change<'_>) {
        if !self.is_filtering() {
            return;
        }
        let Self { filters, readers, .. } = self;
        let Some(mut aim) = filters.aims.get_mut(class as usize).map(std::mem::take) else { return };
        if aim.number != Some(number) {
            aim.number = Some(number);
            aim.reliable.clear();
            let wanting =
                readers.iter().filter(|it| it.class == class && filters.wants(it.filter, number, change));
            aim.reliable.extend(wanting.clone().filter(|it| it.reliable).map(|it| it.guid));
            aim.route.rebuild(wanting);
        }
        if let Some(place) = filters.aims.get_mut(class as usize) {
            *place = aim;
        }
    }

    /// Readers came, went or changed.
    pub(in crate::writer) fn forget_aims(&mut self) {
        self.filters.aims.iter_mut().for_each(|aim| aim.number = None);
    }

    /// The readers of a class that want the change that was aimed last.
    pub(in crate::writer) const fn aimed(&self, class: Class) -> &Route {
        if !self.is_filtering() {
            return self.route(class);
        }
        match class {
            Class::SameHost => &self.filters.aims[0].route,
            Class::Remote => &self.filters.aims[1].route,
        }
    }

    /// The reliable readers among [`Self::aimed`], when readers are filtering.
    fn aimed_readers(&self, class: Class) -> &[Guid] {
        self.filters.aims.get(class as usize).map_or(&[], |aim| &aim.reliable)
    }

    /// A change goes to those of a class that want it: passes over the others, which thereby have all they
    /// need of it.
    pub(in crate::writer) fn pass_over(&mut self, class: Class, number: SequenceNumber, change: &Change<'_>) {
        if !self.is_filtering() {
            return;
        }
        let Self { filters, readers, .. } = self;
        let mut news = false;
        for reader in readers.iter_mut().filter(|reader| reader.class == class) {
            if filters.wants(reader.filter, number, change) {
                continue;
            }
            reader.passed_over.get_or_insert(number);
            if reader.acknowledged.next() == number {
                reader.acknowledged = number;
                news = true;
            }
        }
        if news {
            self.update_acknowledged();
        }
    }
}

impl Proxies {
    /// Takes over what a reader announced of its filter.
    fn set_filter(
        &mut self,
        guid: Guid,
        told: Option<(&ContentFilter, &FilterFunction)>,
        last: SequenceNumber,
    ) {
        let Some(known) = self.get(guid).map(|reader| reader.filter) else { return };
        let signature = told.map(|(filter, _)| filter.signature());
        if known.and_then(|slot| self.filters.signature(slot)) == signature {
            return;
        }
        self.release_filter(known);
        let filters = &mut self.filters;
        let acquired = told.zip(signature).and_then(|((filter, compile), signature)| {
            filters.acquire(signature, last, || compile.compile(filter))
        });
        if let Some(reader) = self.get_mut(guid) {
            reader.filter = acquired;
        }
        self.forget_aims();
    }

    /// A change is about to go to those of a class that want it. The others are passed over; who was passed
    /// over before is told of that first, unless it is `told` with the change.
    pub(in crate::writer) fn begin(
        &mut self,
        (class, number, change): (Class, SequenceNumber, &Change<'_>),
        told: Option<Guid>,
        config: &WriterConfig,
        out: &mut Outbox,
    ) {
        self.pass_over(class, number, change);
        let Self { filters, readers, .. } = self;
        let passed_over = |reader: &&mut ReaderProxy| {
            reader.class == class && reader.passed_over.is_some() && Some(reader.guid) != told
        };
        for reader in readers.iter_mut().filter(passed_over) {
            if filters.wants(reader.filter, number, change)
                && let Some(gap) = reader.close_gap(number)
            {
                reader.target(config.guid, &config.limits).send_gap(&gap, out);
            }
        }
    }

    /// Tells the readers of a class what they were passed over with, up to but without `end`.
    pub(in crate::writer) fn close_gaps(
        &mut self,
        class: Class,
        end: SequenceNumber,
        config: &WriterConfig,
        out: &mut Outbox,
    ) {
        for reader in self.readers.iter_mut().filter(|reader| reader.class == class) {
            if let Some(gap) = reader.close_gap(end) {
                reader.target(config.guid, &config.limits).send_gap(&gap, out);
            }
        }
    }
}

impl Writer {
    /// Takes over the filter of a reader that was matched, or has changed.
    pub(in crate::writer) fn adopt_filter(&mut self, reader: &MatchedReader) {
        let qos = &self.config.qos;
        let only_data =
            qos.ownership == Ownership::Shared && qos.liveliness.kind != LivelinessKind::ManualByTopic;
        let told = reader.content_filter.as_ref().filter(|it| it.class_name == ContentFilter::SQL);
        let told = told.zip(self.config.content_filter.as_ref()).filter(|_| only_data);
        self.proxies.set_filter(reader.guid, told, self.history.last());
    }

    /// Sends a change just written to the readers whose filters let it pass. It does not wait for others: what
    /// a datagram holds depends on whom it is for.
    pub(in crate::writer) fn send_filtered(&mut self, now: Now, number: SequenceNumber, out: &mut Outbox) {
        self.send_held(now, Some(number), out);
        let carried = self.carried_heartbeat(now);
        let (mut asked, mut queued) = (false, false);
        for class in Class::ALL {
            let Some(change) = self.history.get(number, &self.instances) else { return };
            if self.proxies.route(class).destinations.is_empty() {
                continue;
            }
            self.proxies.aim(class, number, &change);
            let inline_qos = encode(&self.config, &self.proxies, &change, &mut self.inline_qos);
            let route = self.proxies.aimed(class);
            let target = route.target(class, self.config.guid, &self.config.limits);
            let unfit = !route.destinations.is_empty() && !target.fits(change.payload.len(), inline_qos);
            let waits = !self.pacer.admits(now.mono, class, 1, &self.config.limits);
            if unfit || waits || self.pacer.unsent_to(class).is_some() {
                self.pacer.push_live(number, class);
                queued = true;
                continue;
            }
            let only = route.only();
            self.proxies.begin((class, number, &change), only, &self.config, out);
            asked |= self.send_aimed(class, number, carried, out);
        }
        if carried == Some(Piggyback::Asks) {
            asked |= self.ask_those(now, out, |reader| reader.passed_over.is_some());
        }
        if asked {
            self.asked(now);
        }
        if queued {
            self.pump(now, out);
        }
    }

    /// Sends a change, whose inline QoS is encoded, to the readers of a class that it is for; whether they were
    /// asked to acknowledge.
    fn send_aimed(
        &mut self,
        class: Class,
        number: SequenceNumber,
        carried: Option<Piggyback>,
        out: &mut Outbox,
    ) -> bool {
        let only = self.proxies.aimed(class).only();
        let gap = only.and_then(|only| self.proxies.get_mut(only)?.close_gap(number));
        let Some(change) = self.history.get(number, &self.instances) else { return false };
        let route = self.proxies.aimed(class);
        if route.destinations.is_empty() {
            return false;
        }
        let target = route.target(class, self.config.guid, &self.config.limits);
        let mut gap_bytes = 0;
        if let Some(gap) = gap {
            if target.fits(change.payload.len() + GAP_BYTES_MAX, self.inline_qos.len()) {
                gap_bytes = GAP_BYTES_MAX;
            } else {
                target.send_gap(&gap, out);
            }
        }
        let filters = &self.proxies.filters;
        let verdicts_fit =
            target.fits(change.payload.len() + gap_bytes, self.inline_qos.len() + filters.verdict_bytes());
        // Those of built-in writers are ours, and nobody else's business.
        let tells = verdicts_fit && !self.config.guid.entity.is_builtin();
        if tells && is_judged(change.kind, change.marks) {
            filters.append_verdicts(&change, &mut self.inline_qos);
        }
        let mut message = target.open(out);
        if let Some(gap) = gap.filter(|_| gap_bytes > 0) {
            let _ = message.gap(&gap.gap(target.reader, target.source.entity));
        }
        // It fits: the target said so.
        let _ = target.put_data(&mut message, number, &change, &self.inline_qos);
        if class == Class::Remote {
            self.pacer.sent_live(class, (message.len(), 1), Some(number));
        }
        let Some(carried) = carried.filter(|_| route.reliable > 0) else { return false };
        let final_flag = carried == Piggyback::Tells;
        if let Some(proxy) = only.and_then(|only| self.proxies.get(only)) {
            let heartbeat =
                heartbeat_to(&mut self.heartbeat, &self.history, &self.pacer, proxy, &target, final_flag);
            if !message.heartbeat(&heartbeat) {
                message.finish();
                target.send_heartbeat(&heartbeat, out);
            }
        } else {
            message.finish();
            self.heartbeat_aimed(class, final_flag, out);
        }
        carried == Piggyback::Asks
    }

    /// Asks every reliable reader that owes an acknowledgement, each for itself: what is gone differs, and who
    /// was passed over is told of that with it. Whether there were any.
    pub(in crate::writer) fn ask_each(&mut self, now: Now, out: &mut Outbox) -> bool {
        let asked = self.ask_those(now, out, |_| true);
        if asked {
            self.asked(now);
        }
        asked
    }

    /// The same for some of them.
    pub(in crate::writer) fn ask_those(
        &mut self,
        now: Now,
        out: &mut Outbox,
        which: impl Fn(&ReaderProxy) -> bool,
    ) -> bool {
        self.ask_readers(now, out, |reader, last| reader.acknowledged < last && which(reader))
    }

    /// Asks some reliable readers, each for itself, whatever they owe of what was sent up to a last change. Whether there were any.
    pub(in crate::writer) fn ask_readers(
        &mut self,
        now: Now,
        out: &mut Outbox,
        which: impl Fn(&ReaderProxy, SequenceNumber) -> bool,
    ) -> bool {
        let mut asked = false;
        for reader in self.proxies.readers.iter_mut().filter(|reader| reader.is_awaited()) {
            let last = sent_last(&self.history, &self.pacer, reader.class);
            if !which(reader, last) {
                continue;
            }
            reader.silence.asked(now.mono);
            let gap = reader.close_gap(last.next());
            let target = reader.target(self.config.guid, &self.config.limits);
            let mut message = target.open(out);
            if let Some(gap) = gap {
                let _ = message.gap(&gap.gap(target.reader, target.source.entity));
            }
            let heartbeat =
                heartbeat_to(&mut self.heartbeat, &self.history, &self.pacer, reader, &target, false);
            // Both fit the smallest datagram.
            let _ = message.heartbeat(&heartbeat);
            if target.class == Class::Remote {
                self.pacer.road.asked(now.mono, heartbeat.count, last);
            }
            asked = true;
        }
        asked
    }

    /// Sends a heartbeat to each reliable reader of a class that was sent the change aimed last, in one datagram
    /// if they fit.
    pub(in crate::writer) fn heartbeat_aimed(&mut self, class: Class, final_flag: bool, out: &mut Outbox) {
        let shared = self.proxies.aimed(class).target(class, self.config.guid, &self.config.limits);
        let mut message = shared.open(out);
        for reader in self.proxies.aimed_readers(class) {
            let Some(proxy) = self.proxies.get(*reader) else { continue };
            let target = proxy.target(self.config.guid, &self.config.limits);
            let heartbeat =
                heartbeat_to(&mut self.heartbeat, &self.history, &self.pacer, proxy, &target, final_flag);
            message.info_destination(reader.prefix);
            if !message.heartbeat(&heartbeat) {
                message.finish();
                message = shared.open(out);
                message.info_destination(reader.prefix);
                let _ = message.heartbeat(&heartbeat);
            }
        }
    }

    /// A reader comes that is not to hear what is queued for others on other hosts: each of these gets it by itself. What they were passed
    /// over with ends before it: of what follows each is asked when it is its turn.
    pub(in crate::writer) fn part_live(&mut self, out: &mut Outbox) {
        let Some(live) = self.pacer.first_live(Class::Remote) else { return };
        let end = if live.begun.is_some() { live.number.next() } else { live.number };
        self.proxies.close_gaps(Class::Remote, end, &self.config, out);
        self.pacer.part_live(self.proxies.remote());
    }

    /// What a reader has that acknowledges everything below `base`: also what it was passed over with after
    /// that and was not told of yet.
    pub(in crate::writer) fn acknowledged_by(
        &self,
        proxy: &ReaderProxy,
        base: SequenceNumber,
    ) -> SequenceNumber {
        match proxy.passed_over {
            Some(from) if base >= from => {
                sent_last(&self.history, &self.pacer, proxy.class).max(base.previous())
            }
            _ => base.previous(),
        }
    }

    /// The first change from `next` to `last` that is held and wanted by the reader, or a number below which
    /// there is none; and how many of those before it are held, but filtered out.
    pub(in crate::writer) fn next_wanted(
        &self,
        proxy: &ReaderProxy,
        next: SequenceNumber,
        last: SequenceNumber,
    ) -> (SequenceNumber, u64) {
        let mut number = next;
        for filtered in 0..UNWANTED_SCANNED_MAX as u64 {
            number = self.history.next_held(number).min(last.next());
            let change = self.history.get(number, &self.instances).filter(|_| number <= last);
            if change.is_none_or(|change| self.proxies.wants(proxy, number, &change)) {
                return (number, filtered);
            }
            number = number.next();
        }
        (number, UNWANTED_SCANNED_MAX as u64)
    }
}
