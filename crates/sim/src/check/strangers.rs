//! A reader that never answers stops no writer for longer than that may wait, whatever its lease is, and one
//! that asks again and again draws no more than three times what it sends, beside what the writer has for it.
//! What it says in the names of others, from where these never were, is not taken (rule R8 of this
//! implementation).

use plainsong_proto::time::Duration;

use super::Findings;
use super::reliable_complete::is_held_up;
use crate::ledger::Ledger;

const FACTOR: u64 = 3;
/// Repetitions of what is there, and what may be saved up.
const TIMES: u64 = 4;
const SAVED_BYTES: u64 = 300_000;
/// A write that fails is made again; faults and other readers that recover from them may stop a writer for
/// some time.
const HELD_UP_MAX: Duration = Duration::from_secs(15);

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for (writer, lasting) in &ledger.held_up {
        let Some(record) = ledger.writers.get(*writer).filter(|record| !is_held_up(ledger, record)) else {
            continue;
        };
        if *lasting > HELD_UP_MAX {
            let millis = lasting.0 / 1_000_000;
            findings.report(|| format!("{} was held up by a stranger for {millis} ms", record.endpoint.guid));
        }
    }
    for reader in &ledger.taken {
        findings
            .report(|| format!("what a stranger said in the name of {reader}, from elsewhere, was taken"));
    }
    for storm in &ledger.storms {
        let Some(record) = ledger.writers.get(storm.writer) else { continue };
        let written: u64 = record.changes.iter().map(|change| 100 + change.bytes as u64).sum();
        if storm.drawn > FACTOR * storm.asked + TIMES * written + SAVED_BYTES {
            findings.report(|| {
                let (guid, drawn, asked) = (record.endpoint.guid, storm.drawn, storm.asked);
                format!("{asked} octets drew {drawn} from {guid}, which has written {written}")
            });
        }
    }
}
