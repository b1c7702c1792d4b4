//! A late joiner gets the retained history when both sides are TRANSIENT_LOCAL and nothing from
//! before its time otherwise (DCPS 1.4 §2.2.3.4). That history comes first and is complete follows
//! from the invariants on order and completeness.

use plainsong_proto::qos::{Durability, HistoryKind};
use plainsong_proto::time::{Duration, Instant};

use super::Findings;
use crate::ledger::{Change, Ledger, Pair};

/// Datagrams under way when both sides met, and the writer's own delay in sending.
const SLACK: Duration = Duration::from_millis(400);

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    // What a best-effort reader hears once it is matched may have waited in its socket since before.
    for pair in ledger.pairs().filter(Pair::is_reliable) {
        let met_at = pair.first_matched_at();
        let writer = pair.writer;
        for (_, sample) in pair.reader.data_from(writer.endpoint.guid) {
            let Some(change) = writer.data(sample.counter) else { continue };
            // What had to wait for the road is new to who is there when it leaves.
            if met_at.since(change.at) <= SLACK
                || change.waits_for_road
                || (pair.is_durable() && retained(&pair, change, met_at))
            {
                continue;
            }
            findings.report(|| {
                let age = met_at.since(change.at).0 / 1_000_000;
                let (writer, reader) = (writer.endpoint.guid, pair.reader.endpoint.guid);
                format!("{reader} got #{} of {writer}, written {age} ms before they met", sample.counter)
            });
        }
    }
}

/// Whether the writer's history still held `change` when the two met.
fn retained(pair: &Pair<'_>, change: &Change, met_at: Instant) -> bool {
    let newer = pair.writer.data_of(change.instance);
    let newer = newer.filter(|(other, _)| other.at > change.at && met_at.since(other.at) > SLACK);
    let qos = &pair.writer.endpoint.qos;
    let service = &qos.durability_service.history;
    let kept_by_service = match service.kind {
        _ if qos.durability < Durability::Transient => 0,
        HistoryKind::KeepAll => usize::MAX,
        HistoryKind::KeepLast => usize::try_from(service.depth).unwrap_or(1),
    };
    newer.count() < Pair::depth(qos).max(kept_by_service)
}
