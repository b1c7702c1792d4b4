//! The part of a writer that stands for the durability service (`durability.rs`).

use std::collections::{BTreeMap, BTreeSet};

use crate::qos::{Durability, HistoryKind, QosSet};
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};

use super::instances::Slot;
use crate::writer::bound;

/// The part of a writer that stands for the durability service.
#[derive(Debug)]
pub(crate) struct Service {
    /// Changes of one instance.
    pub(crate) depth: usize,
    pub(crate) samples_max: usize,
    pub(crate) instances_max: usize,
    pub(crate) cleanup_delay: Duration,
    /// Instances that nobody writes any more, by the change that unregistered them.
    pub(crate) closed: BTreeMap<SequenceNumber, (Slot, Option<Instant>)>,
    /// When those of them that are disposed are forgotten.
    pub(crate) cleanups: BTreeSet<(Instant, SequenceNumber)>,
}

impl Service {
    /// The service of a writer with this QoS, if its DURABILITY asks for one.
    pub(crate) fn new(qos: &QosSet) -> Option<Self> {
        if qos.durability < Durability::Transient {
            return None;
        }
        let service = &qos.durability_service;
        let most = bound(service.resource_limits.max_samples_per_instance);
        Some(Self {
            depth: match service.history.kind {
                HistoryKind::KeepLast => bound(service.history.depth).clamp(1, most),
                HistoryKind::KeepAll => most,
            },
            samples_max: bound(service.resource_limits.max_samples),
            instances_max: bound(service.resource_limits.max_instances),
            cleanup_delay: service.service_cleanup_delay,
            closed: BTreeMap::new(),
            cleanups: BTreeSet::new(),
        })
    }

    /// The change left the history, or another one follows it.
    pub(crate) fn closed(&mut self, number: SequenceNumber) {
        if let Some((_, Some(end))) = self.closed.remove(&number) {
            self.cleanups.remove(&(end, number));
        }
    }
}
