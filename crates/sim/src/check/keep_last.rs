//! When everything is quiet, a reliable reader has seen the last samples of each instance that both
//! histories keep (DCPS 1.4 §2.2.3.18): with KEEP_LAST older ones may be missing, the newest never.

use plainsong_proto::qos::{HistoryKind, LENGTH_UNLIMITED};

use super::Findings;
use crate::ledger::{ChangeKind, Ledger, Pair};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for pair in ledger.reliable_pairs() {
        let mut delivered = pair.delivered();
        delivered.sort_unstable();
        for instance in pair.writer.instances() {
            if ledger.writers_of(&pair.writer.endpoint.topic, instance).count() == 1 {
                check_instance(ledger, &pair, instance, &delivered, findings);
            }
        }
    }
}

fn check_instance(
    ledger: &Ledger,
    pair: &Pair<'_>,
    instance: u32,
    delivered: &[u32],
    findings: &mut Findings,
) {
    let requested = &pair.reader.endpoint.qos;
    // At max_samples an instance replaces its own before the depth is reached; the newest stays.
    let is_short = requested.history.kind == HistoryKind::KeepLast
        && requested.resource_limits.max_samples != LENGTH_UNLIMITED;
    let kept = if is_short { 1 } else { Pair::depth(requested) };
    let depth = Pair::depth(&pair.writer.endpoint.qos).min(kept);
    let for_late_joiners = Pair::depth_for_late_joiners(&pair.writer.endpoint.qos);
    let from = pair.promised_from();
    let changes = pair.writer.changes.iter().rev().filter(|change| change.instance == instance);
    let newest = changes
        .map_while(|change| match change.kind {
            ChangeKind::Data(counter) => Some((change, counter)),
            _ => None,
        })
        .take(depth)
        .enumerate()
        .take_while(|(newer, (change, _))| {
            change.at >= from || (pair.is_durable() && *newer < for_late_joiners)
        })
        .map(|(_, newest)| newest);
    for (_, counter) in newest.filter(|(change, _)| pair.owes(ledger, change)) {
        if delivered.binary_search(&counter).is_err() {
            let (writer, reader) = (pair.writer.endpoint.guid, pair.reader.endpoint.guid);
            findings.report(|| {
                format!(
                    "{reader} lacks #{counter}, one of the last {depth} of instance {instance} of {writer}"
                )
            });
        }
    }
}
