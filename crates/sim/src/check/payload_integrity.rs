//! What is delivered is what was written: whole, by that writer, of that instance.

use super::Findings;
use crate::ledger::{Delivery, Ledger, ReaderRecord};
use crate::sample::Sample;

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for reader in &ledger.readers {
        for delivery in &reader.deliveries {
            let wrong = match delivery.data {
                None => None,
                Some(Err(wrong)) => Some(wrong),
                Some(Ok(sample)) => disagreement(ledger, reader, delivery, sample),
            };
            if let Some(wrong) = wrong {
                let (guid, at) = (reader.endpoint.guid, delivery.at.0 / 1_000_000);
                findings
                    .report(|| format!("{guid} took a sample of {} at {at} ms: {wrong}", delivery.writer));
            }
        }
    }
}

fn disagreement(
    ledger: &Ledger,
    reader: &ReaderRecord,
    delivery: &Delivery,
    sample: Sample,
) -> Option<&'static str> {
    let Some(writer) = ledger.writers.get(sample.writer as usize) else {
        return Some("no such writer ever lived");
    };
    let Some(change) = writer.data(sample.counter) else {
        return Some("its writer never wrote it");
    };
    let instance = if reader.endpoint.keyed { sample.instance } else { 0 };
    if writer.endpoint.guid != delivery.writer {
        return Some("the publication handle names another writer");
    }
    if writer.endpoint.topic != reader.endpoint.topic {
        return Some("it belongs to another topic");
    }
    if delivery.instance != instance || sample.instance != change.instance {
        return Some("the instance handle names another instance");
    }
    (!(change.bytes..change.bytes + 4).contains(&delivery.bytes)).then_some("it has another length")
}
