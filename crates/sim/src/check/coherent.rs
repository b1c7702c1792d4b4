//! Coherent sets are seen whole or not at all: in one access, of one writer, and under GROUP scope of all
//! writers of the publisher by all readers of the subscriber (DCPS 1.4 §2.2.3.6).

use std::collections::{BTreeMap, BTreeSet};

use plainsong_proto::qos::{AccessScope, DestinationOrder, Ownership};

use super::Findings;
use crate::ledger::{Change, ChangeKind, Ledger, Pair, ReaderRecord};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for pair in ledger.pairs().filter(|pair| is_judged(ledger, pair)) {
        for (set, access) in sightings(&pair) {
            check_sighting(&pair, set, access, findings);
        }
    }
    for pair in ledger.pairs().filter(|pair| is_judged(ledger, pair) && is_group(pair)) {
        check_group(ledger, &pair, findings);
    }
}

/// Nothing but PRESENTATION and the depth of the history takes samples away from the reader.
fn is_judged(ledger: &Ledger, pair: &Pair<'_>) -> bool {
    let reader = &pair.reader.endpoint;
    // What replaced samples of a set may have expired itself before anybody took it.
    let replaces = Pair::depth(&reader.qos) < usize::MAX;
    let mut writers = ledger.writers.iter().filter(|writer| {
        replaces && writer.endpoint.topic == reader.topic && !reader.epochs(writer.endpoint.guid).is_empty()
    });
    reader.qos.presentation.coherent_access
        && reader.qos.ownership == Ownership::Shared
        && reader.qos.destination_order == DestinationOrder::ByReceptionTimestamp
        && !pair.reader.forgets_instances()
        && !pair.is_thinned()
        && pair.is_lasting()
        && writers.all(|writer| Pair { writer, ..*pair }.is_lasting())
}

fn is_group(pair: &Pair<'_>) -> bool {
    let scope = pair.reader.endpoint.qos.presentation.access_scope;
    scope == AccessScope::Group && pair.is_reliable() && pair.has_no_lease()
}

/// In which accesses the reader saw anything of which sets of the writer.
fn sightings(pair: &Pair<'_>) -> BTreeSet<(usize, u64)> {
    let writer = pair.writer;
    let seen = pair
        .reader
        .data_from(writer.endpoint.guid)
        .filter_map(|(delivery, sample)| Some((writer.data(sample.counter)?.set?, delivery.access)));
    seen.collect()
}

fn check_sighting(pair: &Pair<'_>, set: usize, access: u64, findings: &mut Findings) {
    if let Some((counter, seen)) = missing(pair, set, access) {
        let (from, to) = (pair.writer.endpoint.guid, pair.reader.endpoint.guid);
        findings.report(|| {
            format!("{to} saw {seen} samples of set {set} of {from}, #{counter} was not among them")
        });
    }
}

/// A data sample of the set that the reader did not see in an access, and how many it saw; none when it
/// saw all that its history keeps.
fn missing(pair: &Pair<'_>, set: usize, access: u64) -> Option<(u32, usize)> {
    let in_access = || pair.reader.deliveries.iter().filter(|delivery| delivery.access == access);
    let from_writer = in_access().filter(|delivery| delivery.writer == pair.writer.endpoint.guid);
    let seen: BTreeSet<u32> = from_writer.filter_map(|delivery| Some(delivery.data?.ok()?.counter)).collect();
    let mut held: BTreeMap<u32, usize> = BTreeMap::new();
    for delivery in in_access().filter(|delivery| delivery.data.is_some()) {
        *held.entry(delivery.instance).or_default() += 1;
    }
    let depth = Pair::depth(&pair.reader.endpoint.qos);
    let in_set = |change: &&Change| change.set == Some(set) && pair.wants(change);
    let of_set = || pair.writer.changes.iter().filter(in_set);
    let counter = |change: &Change| match change.kind {
        ChangeKind::Data(counter) => Some((counter, change.instance)),
        _ => None,
    };
    // KEEP_LAST: what is missing was replaced by newer samples of the instance, at max_samples before the
    // depth was reached.
    let samples_max =
        usize::try_from(pair.reader.endpoint.qos.resource_limits.max_samples).unwrap_or(usize::MAX);
    let is_full = depth < usize::MAX && held.values().sum::<usize>() >= samples_max;
    let replaced = |instance: u32| held.get(&instance).is_some_and(|held| *held >= depth || is_full);
    let lacking = of_set().filter_map(counter);
    let mut lacking = lacking.filter(|(counter, instance)| !seen.contains(counter) && !replaced(*instance));
    lacking.next().map(|(counter, _)| (counter, seen.len()))
}

/// Whoever of the subscriber saw something of a set, the others see all of it in the same access.
fn check_group(ledger: &Ledger, pair: &Pair<'_>, findings: &mut Findings) {
    let (Some(publisher), Some(subscriber)) = (pair.writer.endpoint.group, pair.reader.endpoint.group) else {
        return;
    };
    for (set, access) in sightings(pair) {
        let Some(record) = ledger.sets.get(set) else { continue };
        let seen = pair.reader.deliveries.iter().filter(|delivery| delivery.access == access);
        let Some(seen_at) = seen.map(|delivery| delivery.at).max() else { continue };
        let together = |pair: &Pair<'_>| {
            let (writer, reader) = (&pair.writer.endpoint, &pair.reader.endpoint);
            writer.matched_throughout(reader.guid, record.begun_at, seen_at)
                && reader.matched_throughout(writer.guid, record.begun_at, seen_at)
        };
        // A reader that joined later gets alone what the others saw before.
        if !together(pair) {
            continue;
        }
        let readers = || ledger.readers_in(subscriber);
        let pairs = ledger
            .writers_in(publisher)
            .flat_map(|writer| readers().map(move |reader: &ReaderRecord| Pair { writer, reader }));
        let judged = |pair: &Pair<'_>| is_judged(ledger, pair) && is_group(pair) && together(pair);
        pairs.filter(judged).for_each(|pair| check_sighting(&pair, set, access, findings));
    }
}
