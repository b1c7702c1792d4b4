//! What every write would ask anew, though only QoS, matching, routes and coherent sets change it: asked
//! once, and kept until one of these changes.

use crate::qos::{HistoryKind, LivelinessKind, Ownership};
use crate::time::Duration;

use crate::tuning::writer::{
    FILLING_BYTES_LEAST, SAMPLE_OVERHEAD_BYTES, SEPARATION_MARGIN_DIVISOR, SEPARATION_MIN,
};
use crate::writer::Writer;
use crate::writer::flow::route_kind::RouteKind;

/// What a write may skip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Samples of up to so many octets may wait for others in a datagram, because they go whole to all
    /// readers; `None`: nobody is there.
    pub(crate) waiting_bytes_max: Option<usize>,
    /// Longer ones that are shorter than the second may wait, too, as they are cut to fill datagrams.
    pub(crate) filling_bytes: Option<(usize, usize)>,
    /// Samples of up to so many octets join those that wait, and nothing is asked but whether there is room
    /// in the window: data is all that they are, and all readers are on this host.
    pub(crate) joining_bytes_max: Option<usize>,
    /// By this route, which all readers are reached by then.
    pub(crate) joining: RouteKind,
    /// Octets of a batch.
    pub(crate) batch_bytes: usize,
    /// By route: after a sample, all its readers filter out by time what is sent sooner than this.
    pub(crate) separations: [Option<Duration>; RouteKind::ALL.len()],
}

impl Plan {
    pub(crate) const fn separation(&self, kind: RouteKind) -> Option<Duration> {
        self.separations[kind as usize]
    }

    /// Whether it lets nothing pass that the other one does not.
    #[cfg(debug_assertions)]
    fn is_within(self, other: Self) -> bool {
        let joins = self.joining_bytes_max.is_none() || self.joining_bytes_max == other.joining_bytes_max;
        joins && Self { joining_bytes_max: None, ..self } == Self { joining_bytes_max: None, ..other }
    }
}

impl Writer {
    /// QoS, matching, a route or a coherent set changes.
    pub(crate) fn void_plan(&mut self) {
        self.plan = None;
        self.routes.iter_mut().for_each(|route| route.queue.separation_end = None);
    }

    /// What holds until then.
    #[inline]
    pub(crate) fn plan(&mut self) -> Plan {
        #[cfg(debug_assertions)]
        assert!(self.plan.is_none_or(|plan| plan.is_within(self.make_plan())), "the plan was made void");
        match self.plan {
            Some(plan) => plan,
            None => *self.plan.insert(self.make_plan()),
        }
    }

    #[cold]
    fn make_plan(&self) -> Plan {
        let limits = &self.config.limits;
        let whole_bytes_max = self
            .routes
            .iter()
            .filter(|route| !route.is_empty())
            .map(|route| route.target().inline_bytes_max())
            .min();
        let by_memory = self.routes.of(RouteKind::Memory);
        let is_memory_alone = self.routes.iter().all(|it| it.is_empty() != (it.kind == RouteKind::Memory));
        // A message there costs no call of the system: readers begin with what one holds.
        let batch_bytes = if is_memory_alone {
            limits.batch_bytes.min(by_memory.datagram_bytes_max)
        } else {
            limits.batch_bytes
        };
        let half = (batch_bytes / 2).saturating_sub(SAMPLE_OVERHEAD_BYTES);
        let separations = RouteKind::ALL.map(|kind| self.separation(kind));
        let may_wait = limits.batch_bytes > 0 && separations == [None; RouteKind::ALL.len()];
        let waiting_bytes_max = whole_bytes_max.filter(|_| may_wait).map(|most| most.min(half));
        let near = self.routes.of(RouteKind::SameHost);
        let fills = near.target().may_fill()
            && near.port.receive_buffer_bytes.is_some()
            && self.routes.of(RouteKind::Remote).is_empty()
            && by_memory.is_empty();
        let filling_bytes = whole_bytes_max
            .filter(|_| fills && may_wait)
            .map(|most| (FILLING_BYTES_LEAST, (most + 1).min(limits.batch_bytes)));
        let joining_bytes_max = waiting_bytes_max
            .filter(|_| self.is_plain() && (is_memory_alone || by_memory.is_empty()))
            .map(|most| if fills { most.min(FILLING_BYTES_LEAST - 1) } else { most });
        let joining = if is_memory_alone { RouteKind::Memory } else { RouteKind::SameHost };
        Plan { waiting_bytes_max, filling_bytes, joining_bytes_max, joining, batch_bytes, separations }
    }

    /// How far apart samples of a route are sent, because all its readers filter by time (TIME_BASED_FILTER,
    /// DCPS 1.4 §2.2.3.12), and would drop all between. Only where that is all that samples have to do with
    /// each other, and there is one instance: readers of keyed topics filter each by itself, and what is kept
    /// for one cannot follow what another was sent.
    fn separation(&self, kind: RouteKind) -> Option<Duration> {
        let qos = &self.config.qos;
        let is_single = !self.config.keyed
            && !qos.presentation.coherent_access
            && self.config.group.is_none()
            && qos.ownership == Ownership::Shared
            && qos.liveliness.kind == LivelinessKind::Automatic
            && !self.is_by_source()
            && !self.proxies.is_filtering();
        let least = self.routes.of(kind).port.separation;
        // On its way a sample may gain on the one before it: readers would keep it for the next separation.
        let apart = Duration(least.0.saturating_add(least.0 / SEPARATION_MARGIN_DIVISOR));
        Some(apart).filter(|_| is_single && least >= SEPARATION_MIN && !least.is_infinite())
    }

    /// Whether data is all that a sample is: nothing is noted of it but its number, and no limit is asked but
    /// the window; and whether all readers are on this host.
    pub(crate) fn is_plain(&self) -> bool {
        let qos = &self.config.qos;
        let is_free =
            qos.history.kind == HistoryKind::KeepAll && !self.is_limited() && self.service_depth().is_none();
        let is_untimed = qos.lifespan.is_infinite()
            && qos.deadline.is_infinite()
            && qos.liveliness.kind == LivelinessKind::Automatic
            && !self.is_by_source();
        let is_unmarked = self.open_set.is_none() && self.config.group.is_none();
        let is_near = self.routes.of(RouteKind::Remote).is_empty();
        is_free
            && is_untimed
            && is_unmarked
            && is_near
            && !self.proxies.inline_qos()
            && !self.proxies.is_filtering()
    }
}
