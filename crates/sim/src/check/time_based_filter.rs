//! TIME_BASED_FILTER: samples of an instance are shown at least the minimum separation apart, and the last
//! one is shown in the end (DCPS 1.4 §2.2.3.12).

use std::collections::BTreeMap;

use plainsong_proto::time::{Duration, Instant};

use super::Findings;
use crate::ledger::{ChangeKind, Delivery, Ledger, Pair, ReaderRecord, Taking};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for reader in &ledger.readers {
        let separation = reader.endpoint.ever().map(|qos| qos.time_based_filter).min();
        let separation = separation.filter(|separation| *separation > Duration::ZERO);
        if let Some(separation) = separation.filter(|_| !reader.forgets_instances()) {
            check_separation(ledger, reader, separation, findings);
        }
    }
    for pair in ledger.pairs().filter(|pair| pair.is_thinned() && promises_the_last(pair)) {
        check_last(ledger, &pair, findings);
    }
}

/// Between two takes of a reader, an instance shows as many samples as fit there and one more.
fn check_separation(ledger: &Ledger, reader: &ReaderRecord, separation: Duration, findings: &mut Findings) {
    let mut times: BTreeMap<u32, Vec<Instant>> = BTreeMap::new();
    // What is held back is shown at once when its instance loses its writers, for nothing will follow.
    let judged = |delivery: &&Delivery| {
        delivery.data.is_some()
            && ledger
                .writer(delivery.writer)
                .is_some_and(|writer| stays(&Pair { writer, reader }, delivery.instance, delivery.at))
    };
    for delivery in reader.deliveries.iter().filter(judged) {
        times.entry(delivery.instance).or_default().push(delivery.at);
    }
    let guid = reader.endpoint.guid;
    for (instance, times) in times {
        let (Some(first), Some(last)) = (times.first(), times.last()) else { continue };
        // A stopped process, or one that takes when it likes, shows together what came apart.
        let life = last.since(*first).0.max(last.since(reader.endpoint.born_at).0);
        let most = life / separation.0 + 1;
        if times.len() as i64 > most {
            findings
                .report(|| format!("{guid} got {} samples of instance {instance}, {most} fit", times.len()));
        }
        let prompt = reader.taking == Taking::Promptly;
        let close = times.windows(2).find(|pair| prompt && pair[1].since(pair[0]) < separation);
        if let Some([one, other]) = close {
            let micros = other.since(*one).0 / 1_000;
            findings.report(|| {
                format!(
                    "{guid} got instance {instance} {micros} µs after the last time, at {} ms",
                    other.0 / 1_000_000
                )
            });
        }
    }
}

/// Whether a writer never left an instance until a time.
fn stays(pair: &Pair<'_>, instance: u32, until: Instant) -> bool {
    let unregisters = |kind| matches!(kind, ChangeKind::Unregister | ChangeKind::DisposeUnregister);
    let mut changes = pair.writer.changes.iter().filter(|change| change.instance == instance);
    let epochs = pair.reader.endpoint.epochs(pair.writer.endpoint.guid);
    pair.has_no_lease()
        && epochs.first().is_some_and(|first| first.end.is_none_or(|end| end > until))
        && !changes.any(|change| unregisters(change.kind) && change.at <= until)
}

fn promises_the_last(pair: &Pair<'_>) -> bool {
    pair.is_matched_to_the_end()
        && pair.is_reliable()
        && pair.is_lasting()
        && pair.reader.can_hold_everything()
}

fn check_last(ledger: &Ledger, pair: &Pair<'_>, findings: &mut Findings) {
    let delivered = pair.delivered();
    for instance in pair.writer.instances() {
        if ledger.writers_of(&pair.writer.endpoint.topic, instance).count() > 1 {
            continue;
        }
        let last = pair.writer.changes.iter().rfind(|change| change.instance == instance);
        let Some(last) = last.filter(|last| last.at >= pair.promised_from() && pair.owes(ledger, last))
        else {
            continue;
        };
        if let ChangeKind::Data(counter) = last.kind
            && !delivered.contains(&counter)
        {
            let (from, to) = (pair.writer.endpoint.guid, pair.reader.endpoint.guid);
            findings.report(|| format!("{to} lacks #{counter}, the last of instance {instance} of {from}"));
        }
    }
}
