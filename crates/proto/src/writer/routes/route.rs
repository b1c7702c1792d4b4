//! A route: the readers that are reached alike, where they are, and what is on its way to them.

use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::locator::Locator;
use crate::outbox::Outbox;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};

use super::proxy::ReaderProxy;
use super::target::{Target, inline_bytes_max};
use crate::tuning::writer::{ROUTE_WINDOW_BYTES_MAX, SOCKET_FRAMES_DIVISOR, SOCKET_WINDOW_DIVISOR};
use crate::writer::WriterLimits;
use crate::writer::flow::controller::Controller;
use crate::writer::flow::delay::DelayController;
use crate::writer::flow::queue::Queue;
use crate::writer::flow::route_kind::RouteKind;

/// Several readers addressed at once; worked out when one is matched or unmatched.
#[derive(Debug, Default)]
pub(crate) struct Port {
    /// Each locator once; empty: nobody is there.
    pub(crate) destinations: Vec<Locator>,
    /// The participant all readers live in; UNKNOWN when there are several.
    prefix: GuidPrefix,
    /// The only reader; UNKNOWN when there are several.
    reader: EntityId,
    /// Reliable readers.
    pub(crate) reliable: usize,
    /// Least TIME_BASED_FILTER; zero: a reader has none.
    pub(crate) separation: Duration,
    /// Octets of large samples that may be on their way to them unacknowledged, whatever the time; `None`: a
    /// reader acknowledges nothing, or did not tell what its socket holds.
    pub(crate) window_bytes: Option<usize>,
    /// What the sockets of the reliable readers hold of short datagrams; `None`: one did not tell.
    pub(crate) receive_buffer_bytes: Option<usize>,
}

/// The readers of a route that want one change, while content filters are applied here.
#[derive(Debug, Default)]
pub(crate) struct Aim {
    pub(crate) number: Option<SequenceNumber>,
    pub(crate) port: Port,
    /// Those of them that are reliable.
    pub(crate) reliable: Vec<Guid>,
}

/// The datagrams that wait for more samples, of which the last is open.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) out: Outbox,
    pub(crate) is_open: bool,
}

/// One route of a writer.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) kind: RouteKind,
    /// The writer.
    source: Guid,
    /// Longest datagram: what all paths take, less what sealing adds.
    pub(crate) datagram_bytes_max: usize,
    /// Samples of so many octets go beside their messages.
    attached_bytes_min: usize,
    sealed_bytes: usize,
    /// All its readers.
    pub(crate) port: Port,
    pub(crate) aim: Aim,
    pub(crate) queue: Queue,
    pub(crate) controller: Controller,
    pub(crate) held: Held,
}

impl Route {
    pub(crate) fn new(kind: RouteKind, source: Guid, limits: &WriterLimits) -> Self {
        let datagram_bytes_max = kind.datagram_bytes_max(limits).saturating_sub(limits.sealed_bytes);
        let attached_bytes_min = match kind {
            // What no message has room for goes beside it.
            RouteKind::Memory => limits.attached_bytes_min.clamp(1, inline_bytes_max(datagram_bytes_max) + 1),
            RouteKind::SameHost | RouteKind::Remote => usize::MAX,
        };
        Self {
            kind,
            source,
            datagram_bytes_max,
            attached_bytes_min,
            sealed_bytes: limits.sealed_bytes,
            port: Port::default(),
            aim: Aim::default(),
            queue: Queue::default(),
            controller: Controller::new(kind, limits),
            held: Held::default(),
        }
    }

    /// All paths take UDP payloads of so many octets. Whether that is news.
    pub(crate) fn set_path_bytes(&mut self, bytes: usize) -> bool {
        let bytes = bytes.saturating_sub(self.sealed_bytes);
        std::mem::replace(&mut self.datagram_bytes_max, bytes) != bytes
    }

    /// Whether nobody is there.
    pub(crate) const fn is_empty(&self) -> bool {
        self.port.destinations.is_empty()
    }

    /// All its readers.
    pub(crate) fn target(&self) -> Target<'_> {
        self.target_of(&self.port)
    }

    /// Some of its readers.
    pub(crate) fn target_of<'a>(&self, port: &'a Port) -> Target<'a> {
        port.target(self.kind, self.source, self.sizes())
    }

    const fn sizes(&self) -> (usize, usize) {
        (self.datagram_bytes_max, self.attached_bytes_min)
    }

    /// Those of its readers that a change is for, and what is known of them; what is queued for them, and how
    /// much may be sent.
    pub(crate) fn parts(&mut self, is_filtering: bool) -> (Target<'_>, &Port, &mut Queue, &mut Controller) {
        let sizes = self.sizes();
        let Self { kind, source, port, aim, queue, controller, .. } = self;
        let of = if is_filtering { &aim.port } else { &*port };
        (of.target(*kind, *source, sizes), of, queue, controller)
    }

    /// Where the datagrams that wait go, and these.
    pub(crate) fn held_parts(&mut self) -> (Target<'_>, &mut Outbox) {
        let sizes = self.sizes();
        let Self { kind, source, port, held, .. } = self;
        (port.target(*kind, *source, sizes), &mut held.out)
    }

    /// One of its readers.
    pub(crate) fn target_to<'a>(&self, reader: &'a ReaderProxy) -> Target<'a> {
        Target {
            source: self.source,
            destinations: reader.destinations(),
            prefix: &reader.guid.prefix,
            reader: reader.guid.entity,
            kind: self.kind,
            datagram_bytes_max: self.datagram_bytes_max,
            attached_bytes_min: self.attached_bytes_min,
        }
    }

    /// When something that waits here may leave: with the next burst, with what it waits for, or after a
    /// timeout.
    fn due(&self) -> Option<Instant> {
        if self.queue.is_empty() && !self.controller.delay().is_some_and(DelayController::is_blocked) {
            return None;
        }
        let (tail, timeout) = (self.queue.tail_due(), self.controller.due());
        let waits_for_burst =
            !self.queue.is_empty() && tail.is_none() && !self.queue.waits() && timeout.is_none();
        let burst = waits_for_burst.then(|| self.controller.burst_end());
        Instant::earliest([burst, tail, timeout, self.queue.separation_end])
    }
}

/// The routes of one writer.
#[derive(Debug)]
pub(crate) struct Routes {
    list: [Route; RouteKind::ALL.len()],
}

impl Routes {
    pub(crate) fn new(source: Guid, limits: &WriterLimits) -> Self {
        Self { list: RouteKind::ALL.map(|kind| Route::new(kind, source, limits)) }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Route> {
        self.list.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Route> {
        self.list.iter_mut()
    }

    #[inline]
    pub(crate) const fn of(&self, kind: RouteKind) -> &Route {
        match kind {
            RouteKind::Memory => &self.list[0],
            RouteKind::SameHost => &self.list[1],
            RouteKind::Remote => &self.list[2],
        }
    }

    #[inline]
    pub(crate) const fn of_mut(&mut self, kind: RouteKind) -> &mut Route {
        match kind {
            RouteKind::Memory => &mut self.list[0],
            RouteKind::SameHost => &mut self.list[1],
            RouteKind::Remote => &mut self.list[2],
        }
    }

    /// One reader.
    pub(crate) fn target_to<'a>(&self, reader: &'a ReaderProxy) -> Target<'a> {
        self.of(reader.kind).target_to(reader)
    }

    /// Reliable readers.
    pub(crate) fn reliable(&self) -> usize {
        self.list.iter().map(|route| route.port.reliable).sum()
    }

    /// The delay-based controller, of the route to other hosts.
    pub(crate) fn delay(&self) -> Option<&DelayController> {
        self.of(RouteKind::Remote).controller.delay()
    }

    pub(crate) fn delay_mut(&mut self) -> Option<&mut DelayController> {
        self.of_mut(RouteKind::Remote).controller.delay_mut()
    }

    /// Whether so many octets of short changes may leave at once by a route.
    pub(crate) fn admits(&mut self, now: Instant, kind: RouteKind, bytes: usize) -> bool {
        if self.of(kind).controller.is_windowed() || self.of(kind).queue.is_paused() {
            self.refresh(now);
        } else if kind == RouteKind::Memory {
            self.of_mut(kind).controller.refresh(now);
        }
        let route = self.of(kind);
        !route.queue.is_paused() && route.controller.admits(bytes)
    }

    /// The first change not yet sent to all readers.
    pub(crate) fn unsent(&self) -> Option<SequenceNumber> {
        self.list.iter().filter_map(|route| route.queue.unsent()).map(|(number, _)| number).min()
    }

    /// Begins the next burst of each when it is time, and ends what kept changes waiting.
    pub(crate) fn refresh(&mut self, now: Instant) {
        for route in &mut self.list {
            route.controller.refresh(now);
            route.queue.separation_end = route.queue.separation_end.filter(|end| *end > now);
        }
    }

    /// When the next burst begins.
    pub(crate) const fn burst_end(&self) -> Instant {
        self.of(RouteKind::SameHost).controller.burst_end()
    }

    /// When something that waits may leave, or was waited for long enough; what waits for answers alone does
    /// not count.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.list.iter().filter_map(Route::due).min()
    }

    /// Works out anew who is where.
    pub(crate) fn rebuild(&mut self, readers: &[ReaderProxy]) {
        for route in &mut self.list {
            let kind = route.kind;
            route.port.rebuild(readers.iter().filter(|reader| reader.kind == kind));
            route.controller.set_reliable(route.port.reliable);
        }
        self.forget_aims();
    }

    /// Readers came, went or changed.
    pub(crate) fn forget_aims(&mut self) {
        self.list.iter_mut().for_each(|route| route.aim.number = None);
    }
}

impl Port {
    const fn target(
        &self,
        kind: RouteKind,
        source: Guid,
        (datagram_bytes_max, attached_bytes_min): (usize, usize),
    ) -> Target<'_> {
        let Self { destinations, prefix, reader, .. } = self;
        Target {
            source,
            destinations: destinations.as_slice(),
            prefix,
            reader: *reader,
            kind,
            datagram_bytes_max,
            attached_bytes_min,
        }
    }

    /// The only reader.
    pub(crate) fn only(&self) -> Option<Guid> {
        (self.reader != EntityId::UNKNOWN).then(|| self.prefix.entity(self.reader))
    }

    pub(crate) fn rebuild<'r>(&mut self, mut members: impl Iterator<Item = &'r ReaderProxy> + Clone) {
        let first = members.clone().next().map_or(Guid::UNKNOWN, |reader| reader.guid);
        self.reader = if members.clone().count() == 1 { first.entity } else { EntityId::UNKNOWN };
        let all = members.clone();
        let together = members.all(|reader| reader.guid.prefix == first.prefix);
        self.prefix = if together { first.prefix } else { GuidPrefix::UNKNOWN };
        let holds = all.clone().map(|reader| if reader.reliable { reader.receive_bytes } else { 0 });
        let window = (holds.min().unwrap_or(0) / SOCKET_WINDOW_DIVISOR).min(ROUTE_WINDOW_BYTES_MAX);
        self.window_bytes = usize::try_from(window).ok().filter(|bytes| *bytes > 0);
        let holds = all.clone().filter(|reader| reader.reliable).map(|reader| reader.receive_bytes);
        let hold = (holds.min().unwrap_or(0) / SOCKET_FRAMES_DIVISOR).min(ROUTE_WINDOW_BYTES_MAX);
        self.receive_buffer_bytes = usize::try_from(hold).ok().filter(|bytes| *bytes > 0);
        let separations = all.clone().map(|reader| reader.separation);
        self.separation = separations.min().unwrap_or(Duration::ZERO);
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
