//! The part of a writer that stands for the durability service (`durability.rs`).

use std::collections::{BTreeMap, BTreeSet};

use crate::qos::{Durability, HistoryKind, QosSet};
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};

use super::instances::Slot;
use crate::writer::bound;

/// The part of a writer that stands for the durability service.
#[derive(Debug)]
pub(in crate::writer) struct Service {
    /// Changes of one instance.
    pub(in crate::writer) depth: usize,
    pub(in crate::writer) samples_max: usize,
    pub(in crate::writer) instances_max: usize,
    pub(in crate::writer) cleanup_delay: Duration,
    /// Instances that nobody writes any more, by the change that unregistered them.
    pub(in crate::writer) closed: BTreeMap<SequenceNumber, (Slot, Option<Instant>)>,
    /// When those of them that are disposed are forgotten.
    pub(in crate::writer) cleanups: BTreeSet<(Instant, SequenceNumber)>,
}

impl Service {
    /// The service of a writer with this QoS, if its DURABILITY asks for one.
    pub(in crate::writer) fn new(qos: &QosSet) -> Option<Self> {
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
    pub(in crate::writer) fn closed(&mut self, number: SequenceNumber) {
        if let Some((_, Some(end))) = self.closed.remove(&number) {
            self.cleanups.remove(&(end, number));
        }
    }
}
