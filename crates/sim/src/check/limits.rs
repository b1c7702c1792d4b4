//! RESOURCE_LIMITS and HISTORY depth bound what a reader ever holds and what a writer keeps
//! (DCPS 1.4 §2.2.3.18, §2.2.3.19).

use std::collections::BTreeMap;

use plainsong_proto::qos::QosSet;

use super::Findings;
use crate::ledger::{Delivery, Ledger, Pair};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for reader in &ledger.readers {
        for taken in reader.by_take() {
            if let Some(what) = excess(&reader.endpoint.qos, taken) {
                findings.report(|| format!("{} held {what} at one time", reader.endpoint.guid));
            }
        }
    }
    for writer in &ledger.writers {
        let most = bound(writer.endpoint.qos.resource_limits.max_samples);
        if writer.history_max > most {
            findings.report(|| {
                format!("{} kept {} changes, max_samples is {most}", writer.endpoint.guid, writer.history_max)
            });
        }
    }
}

fn excess(qos: &QosSet, taken: &[Delivery]) -> Option<String> {
    let mut instances: BTreeMap<u32, usize> = BTreeMap::new();
    for delivery in taken.iter().filter(|delivery| delivery.data.is_some()) {
        *instances.entry(delivery.instance).or_default() += 1;
    }
    let limits = qos.resource_limits;
    let samples: usize = instances.values().sum();
    if samples > bound(limits.max_samples) {
        return Some(format!("{samples} samples, max_samples is {}", limits.max_samples));
    }
    if instances.len() > bound(limits.max_instances) {
        return Some(format!("{} instances, max_instances is {}", instances.len(), limits.max_instances));
    }
    let most = bound(limits.max_samples_per_instance).min(Pair::depth(qos));
    let (instance, samples) = instances.into_iter().find(|(_, samples)| *samples > most)?;
    Some(format!("{samples} samples of instance {instance}, {most} are allowed"))
}

fn bound(limit: i32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
