//! A reader of a content-filtered topic gets what its filter lets pass and nothing else, whoever filters
//! (DCPS 1.4 §2.2.2.3.3). That it gets all of it is the business of the invariants on completeness.

use super::Findings;
use crate::ledger::Ledger;

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for reader in &ledger.readers {
        let Some(filter) = reader.filter else { continue };
        for delivery in &reader.deliveries {
            let Some(Ok(sample)) = delivery.data else { continue };
            if !filter.passes(sample.counter) {
                let (guid, from) = (reader.endpoint.guid, delivery.writer);
                findings
                    .report(|| format!("{guid} got #{} of {from}, which it did not want", sample.counter));
            }
        }
    }
}
