//! A reader that takes whenever it is told of data has nothing left when the run ends, and what it
//! takes is what it could read just before (DCPS 1.4 §2.2.4.1, §2.2.2.5.3), unless reading let in what had waited for room and
//! replaces what was read (KEEP_LAST with max_samples, §2.2.3.18).

use plainsong_proto::qos::{HistoryKind, LENGTH_UNLIMITED};

use super::Findings;
use crate::ledger::{Ledger, ReaderRecord, Taking};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for reader in
        ledger.readers.iter().filter(|reader| reader.misreads > 0 && !replaces_what_was_read(reader))
    {
        let times = reader.misreads;
        findings.report(|| {
            format!("{} took other samples than it had read, {times} times", reader.endpoint.guid)
        });
    }
    for reader in ledger.readers.iter().filter(|reader| reader.endpoint.is_alive()) {
        if reader.taking != Taking::AtEnd && reader.untold > 0 {
            findings.report(|| {
                format!("{} held {} samples it was never told of", reader.endpoint.guid, reader.untold)
            });
        }
    }
}

fn replaces_what_was_read(reader: &ReaderRecord) -> bool {
    let qos = &reader.endpoint.qos;
    qos.history.kind == HistoryKind::KeepLast && qos.resource_limits.max_samples != LENGTH_UNLIMITED
}
