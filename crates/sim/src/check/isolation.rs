//! Endpoints that never fitted never exchange data: neither across domains and topics, nor across
//! partitions, nor where the offer does not suffice for the request (DCPS 1.4 §2.2.3, §2.2.3.13).

use super::Findings;
use super::rules::{meets_topic, partitions_meet, shortfalls};
use crate::ledger::{Ledger, Pair};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for reader in &ledger.readers {
        for writer in &ledger.writers {
            let pair = Pair { writer, reader };
            let Some((delivery, sample)) = reader.data_from(writer.endpoint.guid).next() else { continue };
            if !ever_fitted(ledger, &pair) {
                let (from, to, at) = (writer.endpoint.guid, reader.endpoint.guid, delivery.at.0 / 1_000_000);
                findings.report(|| {
                    format!("{to} got #{} of {from} at {at} ms, which it never fitted", sample.counter)
                });
            }
        }
    }
}

fn ever_fitted(ledger: &Ledger, pair: &Pair<'_>) -> bool {
    let (writer, reader) = (&pair.writer.endpoint, &pair.reader.endpoint);
    meets_topic(ledger, writer, reader)
        && writer.ever().any(|offered| {
            reader.ever().any(|requested| {
                partitions_meet(&offered.partition, &requested.partition)
                    && shortfalls(offered, requested).is_empty()
            })
        })
}
