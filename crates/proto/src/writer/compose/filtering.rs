//! Filtering for readers (RTPS 2.5 §8.7.3): what a reader's content filter does not let pass is not sent to
//! it. It counts as acknowledged, and a GAP tells of it before the next sample that the reader does want, or
//! when the reader is asked what it has.
//!
//! Only data is withheld, and only where nothing else would be lost with it: the ends of instances, members
//! of coherent sets, and samples that decide about ownership or assert the writer go to everyone. Readers
//! filter for themselves in any case.
//!
//! RTPS 2.5 §8.7.4 asks for a DATA that says ALIVE_FILTERED when an instance leaves what a filter lets pass.
//! A GAP goes in its place: DCPS 1.4 has no such instance state that a reader could show, and one GAP tells
//! of many.

use crate::filter::{ContentFilter, FilterFunction};
use crate::guid::Guid;
use crate::matched::MatchedReader;
use crate::outbox::Outbox;
use crate::payload::PayloadView;
use crate::qos::{LivelinessKind, Ownership};
use crate::seq::SequenceNumber;

use super::acks::send_control;
use super::submessages::sent_last;
use crate::writer::Writer;
use crate::writer::flow::retransmission::Retransmission;
use crate::writer::flow::route_kind::RouteKind;
use crate::writer::flow::span::Span;
use crate::writer::record::change::{Change, ChangeKind, Marks, Verdict};
use crate::writer::routes::filters::is_evaluated;
use crate::writer::routes::gap::GapBuilder;
use crate::writer::routes::proxies::Proxies;
use crate::writer::routes::proxy::ReaderProxy;
use crate::writer::routes::route::{Port, Route};

impl ReaderProxy {
    /// Tells the reader that what it was passed over with is filtered out, up to but without `end`.
    pub(crate) fn close_gap(&mut self, end: SequenceNumber) -> Option<GapBuilder> {
        let start = self.passed_over.take_if(|start| *start < end)?;
        self.refused.add(start, end);
        Some(GapBuilder::range(start, end).of_refused())
    }
}

impl Proxies {
    /// Whether any reader has a filter that is applied here.
    pub(crate) const fn is_filtering(&self) -> bool {
        self.filters.readers > 0
    }

    /// What the filters of all readers say about a change to be written.
    pub(crate) fn evaluate(
        &self,
        kind: ChangeKind,
        marks: Option<&Marks>,
        payload: PayloadView<'_>,
    ) -> Verdict {
        if self.is_filtering() && is_evaluated(kind, marks) {
            self.filters.evaluate(payload)
        } else {
            Verdict::ALL
        }
    }

    /// Whether a change is for this reader.
    pub(crate) fn wants(&self, proxy: &ReaderProxy, number: SequenceNumber, change: &Change<'_>) -> bool {
        self.filters.wants(proxy.filter, number, change)
    }

    /// The filter of a reader that leaves is not its any more.
    pub(crate) fn release_filter(&mut self, slot: Option<usize>) {
        if let Some(slot) = slot {
            self.filters.release(slot);
        }
    }

    /// Works out for whom of a route a change is.
    pub(crate) fn aim(&self, route: &mut Route, number: SequenceNumber, change: &Change<'_>) {
        let (aim, kind) = (&mut route.aim, route.kind);
        if !self.is_filtering() || aim.number == Some(number) {
            return;
        }
        let wants = |reader: &&ReaderProxy| reader.kind == kind && self.wants(reader, number, change);
        let wanting = self.readers.iter().filter(wants);
        aim.number = Some(number);
        aim.reliable.clear();
        aim.reliable.extend(wanting.clone().filter(|it| it.reliable).map(|it| it.guid));
        aim.port.rebuild(wanting);
    }

    /// The readers of a route that want the change that was aimed last.
    pub(crate) const fn aimed<'r>(&self, route: &'r Route) -> &'r Port {
        if self.is_filtering() { &route.aim.port } else { &route.port }
    }

    /// A change goes to those of a route that want it: passes over the others, which thereby have all they
    /// need of it.
    pub(crate) fn pass_over(&mut self, kind: RouteKind, number: SequenceNumber, change: &Change<'_>) {
        if !self.is_filtering() {
            return;
        }
        let Self { filters, readers, .. } = self;
        let mut news = false;
        for reader in readers.iter_mut().filter(|reader| reader.kind == kind) {
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
        announced: Option<(&ContentFilter, &FilterFunction)>,
        last: SequenceNumber,
    ) {
        let Some(known) = self.get(guid).map(|reader| reader.filter) else { return };
        let signature = announced.map(|(filter, _)| filter.signature());
        if known.and_then(|slot| self.filters.signature(slot)) == signature {
            return;
        }
        self.release_filter(known);
        let filters = &mut self.filters;
        let acquired = announced.zip(signature).and_then(|((filter, compile), signature)| {
            filters.acquire(signature, last, || compile.compile(filter))
        });
        if let Some(reader) = self.get_mut(guid) {
            reader.filter = acquired;
        }
    }

    /// A change is about to go to those of a route that want it. The others are passed over; who was passed
    /// over before is told of that first, or with the change: the GAP for the only reader that wants it.
    pub(crate) fn begin(
        &mut self,
        route: &Route,
        (number, change): (SequenceNumber, &Change<'_>),
        out: &mut Outbox,
    ) -> Option<GapBuilder> {
        if !self.is_filtering() {
            return None;
        }
        self.pass_over(route.kind, number, change);
        let (only, mut with_change) = (route.aim.port.only(), None);
        let Self { filters, readers, .. } = self;
        let passed_over = |it: &&mut ReaderProxy| it.kind == route.kind && it.passed_over.is_some();
        for reader in readers.iter_mut().filter(passed_over) {
            if !filters.wants(reader.filter, number, change) {
                continue;
            }
            let gap = reader.close_gap(number);
            if Some(reader.guid) == only {
                with_change = gap;
            } else {
                send_control(route.target_to(reader), gap.as_ref(), None, out);
            }
        }
        with_change
    }

    /// Tells the readers of a route what they were passed over with, up to but without `end`.
    pub(crate) fn close_gaps(&mut self, route: &Route, end: SequenceNumber, out: &mut Outbox) {
        for reader in self.readers.iter_mut().filter(|reader| reader.kind == route.kind) {
            let gap = reader.close_gap(end);
            send_control(route.target_to(reader), gap.as_ref(), None, out);
        }
    }
}

impl Writer {
    /// Takes over the filter of a reader that was matched, or has changed.
    pub(crate) fn adopt_filter(&mut self, reader: &MatchedReader) {
        let qos = &self.config.qos;
        let only_data =
            qos.ownership == Ownership::Shared && qos.liveliness.kind != LivelinessKind::ManualByTopic;
        let announced = reader.content_filter.as_ref().filter(|it| it.class_name == ContentFilter::SQL);
        let announced = announced.zip(self.config.content_filter.as_ref()).filter(|_| only_data);
        self.proxies.set_filter(reader.guid, announced, self.history.last());
        self.routes.forget_aims();
    }

    /// A reader comes that is not to hear what is queued for the others of its route: each of these gets it
    /// by itself. What they were passed over with ends before it: of what follows each is asked when it is
    /// its turn.
    pub(crate) fn part_queue(&mut self, kind: RouteKind, out: &mut Outbox) {
        let route = self.routes.of_mut(kind);
        let Some(pending) = route.queue.take() else { return };
        let Span { number, last, .. } = pending.span;
        let end = if pending.begun.is_some() { number.next() } else { number };
        self.proxies.close_gaps(route, end, out);
        for reader in self.proxies.of_route(kind) {
            self.retransmissions.push_back(Retransmission { reader, span: Span::new(number, last) });
        }
    }

    /// What a reader has that acknowledges everything below `base`: also what it was passed over with after
    /// that and was not told of yet.
    pub(crate) fn acknowledged_by(&self, proxy: &ReaderProxy, base: SequenceNumber) -> SequenceNumber {
        match proxy.passed_over {
            Some(from) if base >= from => {
                sent_last(&self.history, &self.routes, proxy.kind).max(base.previous())
            }
            _ => base.previous(),
        }
    }
}
