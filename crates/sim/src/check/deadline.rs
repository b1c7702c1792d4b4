//! A deadline that was set is missed when nobody writes, about as often as it fits into the
//! silence, and one that was not set is never missed (DCPS 1.4 §2.2.3.7).

use plainsong_proto::time::{Duration, Instant};

use super::Findings;
use crate::ledger::{ChangeKind, Endpoint, Ledger, WriterRecord};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for writer in ledger.writers.iter().filter(|writer| writer.endpoint.is_alive()) {
        never_missed_when_unset(&writer.endpoint, findings);
        let (endpoint, missed) = (&writer.endpoint, writer.endpoint.deadline_missed.total_count);
        if endpoint.qos.deadline.is_infinite() {
            continue;
        }
        // A stopped process counts nothing, and timers may be late.
        let Some(calm_since) = ledger.calm_since else { continue };
        let silence = longest_silence(writer, calm_since, ledger.finished_at);
        let expected = silence.0 / endpoint.qos.deadline.0.max(1) - 2;
        if i64::from(missed) < expected {
            findings.report(|| {
                format!("{} missed {missed} deadlines, at least {expected} were due", endpoint.guid)
            });
        }
        let life = ledger.finished_at.since(endpoint.born_at).0 / endpoint.qos.deadline.0.max(1) + 1;
        let most = life.saturating_mul(writer.instances().len() as i64);
        if i64::from(missed) > most {
            findings.report(|| format!("{} missed {missed} deadlines, at most {most} fit", endpoint.guid));
        }
    }
    for reader in ledger.readers.iter().filter(|reader| reader.endpoint.is_alive()) {
        never_missed_when_unset(&reader.endpoint, findings);
    }
}

fn never_missed_when_unset(endpoint: &Endpoint, findings: &mut Findings) {
    if endpoint.qos.deadline.is_infinite() && endpoint.deadline_missed.total_count != 0 {
        findings.report(|| format!("{} missed a deadline nobody set", endpoint.guid));
    }
}

/// Time since the last write of the instance that has waited longest among those still registered.
fn longest_silence(writer: &WriterRecord, from: Instant, until: Instant) -> Duration {
    let silences = writer.instances().into_iter().filter_map(|instance| {
        let last = writer.changes.iter().rfind(|change| change.instance == instance)?;
        matches!(last.kind, ChangeKind::Data(_)).then(|| until.since(last.at.max(from)))
    });
    silences.max().unwrap_or(Duration::ZERO)
}
