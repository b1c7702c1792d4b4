//! Samples of one writer and one instance are delivered as they were written (RTPS 2.5 §8.4.2.2).
//! Going back is allowed once for each time the reader lost the writer and found it again.

use std::collections::BTreeMap;

use plainsong_proto::qos::DestinationOrder;

use super::Findings;
use crate::ledger::{Ledger, Pair};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    // Under BY_SOURCE_TIMESTAMP it is the clock of the writer that orders.
    let by_source =
        |pair: &Pair<'_>| pair.reader.endpoint.qos.destination_order == DestinationOrder::BySourceTimestamp;
    for pair in ledger.pairs().filter(|pair| !by_source(pair)) {
        let mut instances: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (_, sample) in pair.reader.data_from(pair.writer.endpoint.guid) {
            instances.entry(sample.instance).or_default().push(sample.counter);
        }
        let allowed = pair.reader_epochs().saturating_sub(1);
        let (writer, reader) = (pair.writer.endpoint.guid, pair.reader.endpoint.guid);
        for (instance, counters) in instances {
            let steps_back: Vec<&[u32]> = counters.windows(2).filter(|pair| pair[1] < pair[0]).collect();
            let Some(step) = steps_back.get(allowed) else { continue };
            findings.report(|| {
                format!("{reader} got #{} of {writer} after #{}, instance {instance}", step[1], step[0])
            });
        }
    }
}
