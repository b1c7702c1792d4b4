//! A reliable KEEP_ALL reader gets every sample a KEEP_ALL writer wrote while they were matched, and
//! when both are TRANSIENT_LOCAL everything written before; no writer stays blocked (DCPS 1.4 §2.2.3.14).

use plainsong_proto::qos::HistoryKind;

use super::Findings;
use crate::ledger::{Change, ChangeKind, Ledger, Pair, WriterRecord};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for pair in ledger.reliable_pairs() {
        let keeps_all = |qos: &plainsong_proto::qos::QosSet| qos.history.kind == HistoryKind::KeepAll;
        if keeps_all(&pair.writer.endpoint.qos) && keeps_all(&pair.reader.endpoint.qos) {
            check_pair(ledger, &pair, findings);
        }
    }
    for writer in ledger.writers.iter().filter(|writer| writer.endpoint.is_alive()) {
        let Some(since) = writer.blocked_since.filter(|_| !is_held_up(ledger, writer)) else { continue };
        let seconds = since.0 as f64 / 1e9;
        findings.report(|| format!("{} is blocked since {seconds:.3} s", writer.endpoint.guid));
    }
}

/// Whether a reliable reader of the writer has no room and does not take.
pub(super) fn is_held_up(ledger: &Ledger, writer: &WriterRecord) -> bool {
    writer.endpoint.matched().any(|guid| {
        let reader = ledger.readers.iter().find(|reader| reader.endpoint.guid == guid);
        reader.is_some_and(|reader| !reader.can_hold_everything() && reader.endpoint.qos.is_reliable())
    })
}

fn check_pair(ledger: &Ledger, pair: &Pair<'_>, findings: &mut Findings) {
    let from = pair.promised_from();
    let mut delivered = pair.delivered();
    delivered.sort_unstable();
    let keeps_all = Pair::depth_for_late_joiners(&pair.writer.endpoint.qos) == usize::MAX;
    let retained =
        |change: &&Change| pair.is_durable() && keeps_all && !pair.writer.is_unregistered_after(change);
    let promised = pair.writer.changes.iter().filter(|change| change.at >= from || retained(change));
    let promised =
        promised.filter(|change| pair.owes(ledger, change)).filter_map(|change| match change.kind {
            ChangeKind::Data(counter) => Some((change, counter)),
            _ => None,
        });
    for (change, counter) in promised.filter(|(_, counter)| delivered.binary_search(counter).is_err()) {
        let (writer, reader) = (pair.writer.endpoint.guid, pair.reader.endpoint.guid);
        let seconds = change.at.0 as f64 / 1e9;
        findings.report(|| format!("{reader} lacks #{counter} of {writer}, written at {seconds:.3} s"));
    }
}
