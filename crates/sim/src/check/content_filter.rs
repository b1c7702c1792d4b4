//! A reader of a content-filtered topic gets what its filter lets pass and nothing else, whoever filters
//! (DCPS 1.4 §2.2.2.3.3). When the filter is changed, what comes later is for the new one, and in the end
//! every writer knows it. That a reader gets all it wants is the business of the invariants on completeness.

use super::Findings;
use crate::ledger::{Ledger, ReaderRecord};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for reader in ledger.readers.iter().filter(|reader| !reader.filters.is_empty()) {
        check_deliveries(ledger, reader, findings);
    }
    for pair in ledger.pairs().filter(|pair| pair.is_matched_to_the_end()) {
        let (guid, writer) = (pair.reader.endpoint.guid, pair.writer.endpoint.guid);
        let has = pair.reader.filters.last().map(|(_, filter)| *filter);
        let told = pair.writer.told_filters.get(&guid).and_then(|told| told.last());
        let told = told.and_then(|(_, filter)| *filter);
        if told != has {
            findings.report(|| format!("{writer} was told that {guid} has {told:?}, it has {has:?}"));
        }
    }
}

/// Every sample passes a filter that was in force between writing and taking it.
fn check_deliveries(ledger: &Ledger, reader: &ReaderRecord, findings: &mut Findings) {
    for delivery in &reader.deliveries {
        let Some(Ok(sample)) = delivery.data else { continue };
        let written = ledger.writer(delivery.writer).and_then(|writer| writer.data(sample.counter));
        let Some(written) = written else { continue };
        let mut filters = reader.filters_between(written.at, delivery.at);
        if !filters.any(|filter| filter.passes(sample.counter)) {
            let (guid, from) = (reader.endpoint.guid, delivery.writer);
            findings.report(|| format!("{guid} got #{} of {from}, which it did not want", sample.counter));
        }
    }
}
