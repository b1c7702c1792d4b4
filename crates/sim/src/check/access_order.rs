//! Ordered access of TOPIC or GROUP scope: within one access, the samples of a writer come as they were
//! written, whatever their instances (DCPS 1.4 §2.2.3.6).

use std::collections::BTreeMap;

use plainsong_proto::qos::{AccessScope, DestinationOrder};

use super::Findings;
use crate::ledger::{Delivery, Ledger, Pair, ReaderRecord};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    let judged = |reader: &&ReaderRecord| {
        let qos = &reader.endpoint.qos;
        qos.presentation.ordered_access && qos.presentation.access_scope >= AccessScope::Topic
    };
    for reader in ledger.readers.iter().filter(judged) {
        reader.by_take().for_each(|taken| check_take(ledger, reader, taken, findings));
    }
}

fn check_take(ledger: &Ledger, reader: &ReaderRecord, taken: &[Delivery], findings: &mut Findings) {
    let by_source = reader.endpoint.qos.destination_order == DestinationOrder::BySourceTimestamp;
    let mut newest = BTreeMap::new();
    for delivery in taken {
        let Some(Ok(sample)) = delivery.data else { continue };
        let Some(writer) = ledger.writer(delivery.writer) else { continue };
        // A writer that was lost and found begins again, and a clock that is set back turns time round.
        let again = Pair { writer, reader }.reader_epochs() > 1;
        let disorder = by_source && !writer.changes.is_sorted_by_key(|change| change.source);
        let before = newest.insert(delivery.writer, sample.counter);
        if let Some(before) = before.filter(|before| *before > sample.counter && !again && !disorder) {
            let (to, from, at) = (reader.endpoint.guid, delivery.writer, delivery.at.0 / 1_000_000);
            findings
                .report(|| format!("{to} took #{} of {from} behind #{before} at {at} ms", sample.counter));
        }
    }
}
