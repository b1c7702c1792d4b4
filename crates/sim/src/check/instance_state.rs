//! When everything is quiet, the state a reader last saw of an instance is the state its only
//! writer left it in: alive, disposed, or without writers (DCPS 1.4 §2.2.2.5.1.3).

use plainsong_proto::sample_info::InstanceState;

use super::Findings;
use crate::ledger::{Change, ChangeKind, Ledger, Pair, ReaderRecord, Taking};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for pair in ledger.reliable_pairs().filter(|pair| pair.reader.endpoint.keyed && cannot_fall_silent(pair))
    {
        for instance in pair.writer.instances() {
            if ledger.writers_of(&pair.writer.endpoint.topic, instance).count() == 1 {
                check_instance(ledger, &pair, instance, findings);
            }
        }
    }
    check_orphans(ledger, findings);
}

/// A writer that did not assert its liveliness in time loses its instances until it writes again.
fn cannot_fall_silent(pair: &Pair<'_>) -> bool {
    pair.writer.endpoint.qos.liveliness.lease_duration.is_infinite()
}

fn check_instance(ledger: &Ledger, pair: &Pair<'_>, instance: u32, findings: &mut Findings) {
    let Some(last) = pair.writer.changes.iter().rfind(|change| change.instance == instance) else { return };
    // Of instances without data that it wants, a filtering reader need not know.
    if last.at < pair.promised_from() || !pair.owes(ledger, last) || !pair.reader.filters.is_empty() {
        return;
    }
    let guid = pair.reader.endpoint.guid;
    let expected = left_in(pair, last);
    let seen = last_seen(pair, instance);
    // A reader that never saw the instance alive need not be told that it is not.
    let told_nothing = seen.is_none() && !expected.contains(&InstanceState::Alive);
    if !seen.is_some_and(|seen| expected.contains(&seen)) && !told_nothing {
        findings.report(|| format!("{guid} last saw instance {instance} {seen:?}, it is {expected:?}"));
    }
}

/// The states that may follow from the last change.
fn left_in(pair: &Pair<'_>, last: &Change) -> &'static [InstanceState] {
    match last.kind {
        ChangeKind::Data(_) => &[InstanceState::Alive],
        ChangeKind::Dispose | ChangeKind::DisposeUnregister => &[InstanceState::NotAliveDisposed],
        // What is disposed stays so without writers; with KEEP_LAST the disposal may never have arrived.
        ChangeKind::Unregister if was_disposed(pair, last.instance) => {
            &[InstanceState::NotAliveDisposed, InstanceState::NotAliveNoWriters]
        }
        ChangeKind::Unregister => &[InstanceState::NotAliveNoWriters],
    }
}

/// Whether the reader may have seen the instance disposed last, before the writer gave it up: data that
/// brought it back may have been replaced, or written while the two were parted.
fn was_disposed(pair: &Pair<'_>, instance: u32) -> bool {
    let changes = pair.writer.changes.iter().filter(|change| change.instance == instance);
    let mut before = changes.rev().skip_while(|change| change.kind == ChangeKind::Unregister);
    let data = |change: &Change| matches!(change.kind, ChangeKind::Data(_));
    match before.next() {
        Some(change) if data(change) => {
            let may_be_lost =
                Pair::depth(&pair.writer.endpoint.qos) < usize::MAX || change.at < pair.promised_from();
            may_be_lost && before.any(|change| !data(change))
        }
        Some(_) => true,
        None => false,
    }
}

fn last_seen(pair: &Pair<'_>, instance: u32) -> Option<InstanceState> {
    let deliveries = &pair.reader.deliveries;
    deliveries.iter().rfind(|delivery| delivery.instance == instance).map(|delivery| delivery.state)
}

/// An instance all of whose writers are gone is alive to nobody.
fn check_orphans(ledger: &Ledger, findings: &mut Findings) {
    let judged = |reader: &&ReaderRecord| {
        let unpurged = !reader.forgets_instances() || reader.taking == Taking::Promptly;
        reader.endpoint.is_alive() && reader.endpoint.keyed && unpurged && reader.is_emptied_in_time()
    };
    for reader in ledger.readers.iter().filter(judged) {
        let mut instances: Vec<u32> = reader.deliveries.iter().map(|delivery| delivery.instance).collect();
        instances.sort_unstable();
        instances.dedup();
        for instance in instances {
            let mut writers = ledger.writers_of(&reader.endpoint.topic, instance);
            let orphaned = writers.all(|writer| !writer.endpoint.is_alive());
            let last = reader.deliveries.iter().rfind(|delivery| delivery.instance == instance);
            if orphaned && last.is_some_and(|last| last.state == InstanceState::Alive) {
                let guid = reader.endpoint.guid;
                findings.report(|| format!("{guid} believes orphaned instance {instance} alive"));
            }
        }
    }
}
