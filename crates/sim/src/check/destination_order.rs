//! BY_SOURCE_TIMESTAMP: whatever the network and other writers do, a reader never goes back in the time
//! of the sources of an instance (DCPS 1.4 §2.2.3.17).

use std::collections::BTreeMap;

use plainsong_proto::qos::DestinationOrder;

use super::Findings;
use crate::ledger::{Ledger, ReaderRecord};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    let judged = |reader: &&ReaderRecord| {
        reader.endpoint.qos.destination_order == DestinationOrder::BySourceTimestamp
            && !reader.forgets_instances()
    };
    for reader in ledger.readers.iter().filter(judged) {
        let mut newest = BTreeMap::new();
        for delivery in reader.deliveries.iter().filter(|delivery| delivery.data.is_some()) {
            // Equal timestamps are told apart by the GUIDs of the writers, the same way everywhere.
            let order = (delivery.source, delivery.writer);
            let before = newest.insert(delivery.instance, order);
            if let Some(before) = before.filter(|before| *before > order) {
                let (guid, at) = (reader.endpoint.guid, delivery.at.0 / 1_000_000);
                let back = before.0.since(order.0).0 / 1_000_000;
                findings.report(|| {
                    format!("{guid} goes back {back} ms in instance {} at {at} ms", delivery.instance)
                });
            }
        }
    }
}
