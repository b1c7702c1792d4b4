//! LIVELINESS_CHANGED counts each matched writer once, and a writer whose participant asserts for
//! it is alive as long as the participant is (DCPS 1.4 §2.2.3.11).

use plainsong_proto::qos::LivelinessKind;

use super::Findings;
use crate::ledger::{Ledger, WriterRecord};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    ledger.writers.iter().filter(|writer| writer.endpoint.is_alive()).for_each(|writer| {
        check_writer(writer, findings);
    });
    for reader in ledger.readers.iter().filter(|reader| reader.endpoint.is_alive()) {
        let status = reader.liveliness;
        let matched: Vec<_> = reader.endpoint.matched().collect();
        let guid = reader.endpoint.guid;
        if status.alive_count + status.not_alive_count != matched.len() as i32 {
            findings.report(|| format!("{guid} has {} writers and counts {status:?}", matched.len()));
        }
        let automatic = |guid: &&plainsong_proto::guid::Guid| {
            let writer = ledger.writers.iter().find(|writer| writer.endpoint.guid == **guid);
            writer.is_some_and(|writer| {
                let liveliness = writer.endpoint.qos.liveliness;
                liveliness.kind == LivelinessKind::Automatic || liveliness.lease_duration.is_infinite()
            })
        };
        let automatic = matched.iter().filter(automatic).count();
        // Manual writers fell silent long before the end, unless what they wrote before arrives only now.
        let late = !reader.can_hold_everything();
        if status.alive_count < automatic as i32 || (status.alive_count != automatic as i32 && !late) {
            findings.report(|| {
                format!("{guid} has {automatic} writers that live and counts {} alive", status.alive_count)
            });
        }
    }
}

/// A writer that has to assert itself and was silent for long has lost its liveliness; no other ever does.
fn check_writer(writer: &WriterRecord, findings: &mut Findings) {
    let (liveliness, lost) = (writer.endpoint.qos.liveliness, writer.liveliness_lost.total_count);
    let guid = writer.endpoint.guid;
    let manual = liveliness.kind != LivelinessKind::Automatic && !liveliness.lease_duration.is_infinite();
    if lost > 0 && !manual {
        findings.report(|| format!("{guid} lost its liveliness {lost} times without having to assert it"));
    }
    if lost == 0 && manual && !writer.changes.is_empty() {
        findings.report(|| format!("{guid} fell silent and did not lose its liveliness"));
    }
}
