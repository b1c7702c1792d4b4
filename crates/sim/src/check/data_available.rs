//! A reader that takes whenever it is told of data has nothing left when the run ends, and what it
//! takes is what it could read just before (DCPS 1.4 §2.2.4.1, §2.2.2.5.3).

use super::Findings;
use crate::ledger::{Ledger, Taking};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for reader in ledger.readers.iter().filter(|reader| reader.misreads > 0) {
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
