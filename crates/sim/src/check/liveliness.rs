//! LIVELINESS_CHANGED counts each matched writer once, and a writer whose participant asserts for
//! it is alive as long as the participant is (DCPS 1.4 §2.2.3.11).

use plainsong_proto::qos::LivelinessKind;

use super::Findings;
use crate::ledger::Ledger;

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
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
