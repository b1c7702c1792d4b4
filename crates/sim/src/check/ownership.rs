//! EXCLUSIVE ownership: while the owner of an instance is there, nothing of weaker writers is shown
//! (DCPS 1.4 §2.2.3.9.2).

use plainsong_proto::guid::Guid;
use plainsong_proto::qos::{DestinationOrder, Ownership};
use plainsong_proto::time::Instant;

use super::Findings;
use crate::ledger::{ChangeKind, Ledger, Pair, ReaderRecord, WriterRecord};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    let judged = |reader: &&ReaderRecord| {
        let qos = &reader.endpoint.qos;
        qos.ownership == Ownership::Exclusive
            && qos.destination_order == DestinationOrder::ByReceptionTimestamp
            && !reader.forgets_instances()
            // A deadline missed is ownership lost.
            && reader.endpoint.ever().all(|qos| qos.deadline.is_infinite())
    };
    for reader in ledger.readers.iter().filter(judged) {
        check_reader(ledger, reader, findings);
    }
}

fn check_reader(ledger: &Ledger, reader: &ReaderRecord, findings: &mut Findings) {
    for (index, delivery) in reader.deliveries.iter().enumerate() {
        let Some(Ok(sample)) = delivery.data else { continue };
        let Some(writer) = ledger.writer(delivery.writer) else { continue };
        let before = &reader.deliveries[..index];
        let of_instance = before.iter().filter(|other| other.instance == delivery.instance);
        let rivals = of_instance.filter(|other| other.data.is_some() && other.writer != delivery.writer);
        for rival in rivals {
            let Some(owner) = ledger.writer(rival.writer) else { continue };
            if outranks(owner, writer) && stayed(owner, reader, delivery.instance, (rival.at, delivery.at)) {
                let (guid, from, to) = (reader.endpoint.guid, writer.endpoint.guid, owner.endpoint.guid);
                findings.report(|| {
                    format!("{guid} got #{} of {from}, {to} owns {}", sample.counter, delivery.instance)
                });
                break;
            }
        }
    }
}

/// Whether one writer was always stronger than another; the lower GUID decides between equals.
fn outranks(owner: &WriterRecord, challenger: &WriterRecord) -> bool {
    let strengths = |writer: &WriterRecord| -> Vec<(i32, Guid)> {
        writer.endpoint.ever().map(|qos| (qos.ownership_strength, writer.endpoint.guid)).collect()
    };
    strengths(owner).iter().all(|(held, owner)| {
        strengths(challenger).iter().all(|(offered, challenger)| (offered, owner) < (held, challenger))
    })
}

/// Whether nothing made the writer lose its ownership of the instance between two deliveries.
fn stayed(
    owner: &WriterRecord,
    reader: &ReaderRecord,
    instance: u32,
    (from, to): (Instant, Instant),
) -> bool {
    let unregisters = |kind| matches!(kind, ChangeKind::Unregister | ChangeKind::DisposeUnregister);
    let mut changes = owner.changes.iter().filter(|change| change.instance == instance);
    // What is taken in a second match may have come in the first. After a stop much happens in one instant.
    let first = reader.endpoint.epochs(owner.endpoint.guid).first();
    first.is_some_and(|first| first.start <= from && first.end.is_none_or(|end| end > to))
        && Pair { writer: owner, reader }.has_no_lease()
        && !changes.any(|change| unregisters(change.kind))
}
