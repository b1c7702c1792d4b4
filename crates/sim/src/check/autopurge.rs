//! What READER_DATA_LIFECYCLE says is forgotten when its time has come: the samples of what is disposed,
//! everything about what nobody writes (DCPS 1.4 §2.2.3.22).

use plainsong_proto::sample_info::InstanceState;
use plainsong_proto::time::{Duration, Instant};

use super::Findings;
use crate::ledger::{Change, ChangeKind, Delivery, Ledger, ReaderRecord};

/// Timers are late, and a sample is delivered after its instance changed.
const SLACK: Duration = Duration::from_millis(500);
/// The time that repetitions may take.
const REPAIR: Duration = Duration::from_secs(10);

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    // A delay that changed applies to what comes after the change.
    let judged = |reader: &&ReaderRecord| reader.endpoint.is_alive() && reader.endpoint.earlier.is_empty();
    for reader in ledger.readers.iter().filter(judged) {
        check_orphans(ledger, reader, findings);
        // What was held back enters late, as does what waits for room.
        if !reader.endpoint.qos.presentation.coherent_access && reader.is_emptied_in_time() {
            check_disposed(ledger, reader, findings);
        }
    }
}

/// Instances without writers are forgotten.
fn check_orphans(ledger: &Ledger, reader: &ReaderRecord, findings: &mut Findings) {
    let delay = reader.endpoint.qos.reader_data_lifecycle.autopurge_nowriter_samples_delay;
    for instance in &reader.known_instances {
        let last = reader.deliveries.iter().rfind(|delivery| delivery.instance == *instance);
        let orphaned = last.filter(|last| last.state == InstanceState::NotAliveNoWriters);
        // Data that came too late or found no room may have named the instance again.
        let named = |last: &&Delivery| {
            let mut changes = changes_of(ledger, reader, *instance);
            changes
                .any(|change| matches!(change.kind, ChangeKind::Data(_)) && last.at.since(change.at) < SLACK)
        };
        let Some(age) = orphaned.filter(|last| !named(last)).map(|last| ledger.finished_at.since(last.at))
        else {
            continue;
        };
        if age.0 > delay.0.saturating_add(SLACK.0) {
            let (guid, age, delay) = (reader.endpoint.guid, age.0 / 1_000_000, delay.0 / 1_000_000);
            findings.report(|| {
                format!("{guid} knows instance {instance} {age} ms after its writers left, not {delay} ms")
            });
        }
    }
}

/// Samples of disposed instances are not there any more when somebody takes at last.
fn check_disposed(ledger: &Ledger, reader: &ReaderRecord, findings: &mut Findings) {
    let delay = reader.endpoint.qos.reader_data_lifecycle.autopurge_disposed_samples_delay;
    let old = Instant(ledger.finished_at.0.saturating_sub((delay.0.saturating_add(REPAIR.0)) as u64));
    let disposed = |state| state == InstanceState::NotAliveDisposed;
    let left = reader.deliveries.iter().filter(|delivery| {
        delivery.at == ledger.finished_at && disposed(delivery.state) && delivery.data.is_some()
    });
    for delivery in left {
        let topic = &reader.endpoint.topic;
        let changes = ledger.writers_of(topic, delivery.instance).flat_map(|writer| &writer.changes);
        let last =
            changes.filter(|change| change.instance == delivery.instance).map(|change| change.at).max();
        if last.is_some_and(|last| last < old) {
            let (guid, instance) = (reader.endpoint.guid, delivery.instance);
            findings.report(|| format!("{guid} kept samples of instance {instance}, disposed long ago"));
        }
    }
}

/// What anybody did to an instance.
fn changes_of<'a>(
    ledger: &'a Ledger,
    reader: &'a ReaderRecord,
    instance: u32,
) -> impl Iterator<Item = &'a Change> {
    let writers = ledger.writers_of(&reader.endpoint.topic, instance);
    writers.flat_map(|writer| &writer.changes).filter(move |change| change.instance == instance)
}
