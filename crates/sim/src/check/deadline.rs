//! A deadline is missed when an instance was silent for so long, by writers and by readers, and only
//! then; one that was not set is never missed (DCPS 1.4 §2.2.3.7).

use std::collections::BTreeMap;

use plainsong_proto::sample_info::InstanceState;
use plainsong_proto::time::{Duration, Instant};

use super::Findings;
use crate::ledger::{ChangeKind, Endpoint, Ledger, ReaderRecord, Taking, WriterRecord};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    let Some(calm_since) = ledger.calm_since else { return };
    let finished_at = ledger.finished_at;
    for writer in ledger.writers.iter().filter(|writer| writer.endpoint.is_alive()) {
        let silences = silences_of_writer(writer, finished_at);
        let last = longest(&silences, calm_since, finished_at);
        judge(&writer.endpoint, &silences, last, findings);
    }
    for reader in ledger.readers.iter().filter(|reader| reader.endpoint.is_alive()) {
        let silences = silences_of_reader(ledger, reader);
        let last = if reader.forgets_instances() {
            Duration::ZERO
        } else {
            longest(&silences, calm_since, finished_at)
        };
        judge(&reader.endpoint, &silences, last, findings);
    }
}

/// Times in which a living instance was silent.
type Silences = Vec<(Instant, Instant)>;

fn judge(endpoint: &Endpoint, silences: &Silences, last: Duration, findings: &mut Findings) {
    let missed = i64::from(endpoint.deadline_missed.total_count);
    let shortest = endpoint.ever().map(|qos| qos.deadline).min().unwrap_or(Duration::INFINITE);
    let fits = |silence: &(Instant, Instant)| silence.1.since(silence.0).0 / shortest.0.max(1);
    // A new period counts from when it is set.
    let changes = (endpoint.earlier.len() * silences.len()) as i64;
    let most = if shortest.is_infinite() { 0 } else { silences.iter().map(fits).sum::<i64>() + changes };
    if missed > most {
        findings.report(|| format!("{} missed {missed} deadlines, at most {most} were due", endpoint.guid));
    }
    // A stopped process counts nothing, and timers may be late: only the last silence, all calm, is sure.
    let period = endpoint.qos.deadline;
    let least = if period.is_infinite() { 0 } else { last.0 / period.0.max(1) - 2 };
    if missed < least && endpoint.earlier.is_empty() {
        findings.report(|| format!("{} missed {missed} deadlines, at least {least} were due", endpoint.guid));
    }
}

/// The longest silence that lasted to the end, as far as all was calm.
fn longest(silences: &Silences, calm_since: Instant, finished_at: Instant) -> Duration {
    let to_the_end = silences.iter().filter(|(_, end)| *end == finished_at);
    to_the_end.map(|(start, _)| finished_at.since((*start).max(calm_since))).max().unwrap_or(Duration::ZERO)
}

fn silences_of_writer(writer: &WriterRecord, finished_at: Instant) -> Silences {
    let mut open: BTreeMap<u32, Instant> = BTreeMap::new();
    let mut silences = Silences::new();
    for change in &writer.changes {
        if let Some(start) = open.remove(&change.instance) {
            silences.push((start, change.at));
        }
        if let ChangeKind::Data(_) = change.kind {
            open.insert(change.instance, change.at);
        }
    }
    silences.extend(open.into_values().map(|start| (start, finished_at)));
    silences
}

fn silences_of_reader(ledger: &Ledger, reader: &ReaderRecord) -> Silences {
    let finished_at = ledger.finished_at;
    let mut open: BTreeMap<u32, (Instant, InstanceState)> = BTreeMap::new();
    let mut silences = Silences::new();
    // When a sample came that is taken later, nobody knows.
    let prompt = reader.taking == Taking::Promptly;
    for delivery in &reader.deliveries {
        let before = open.get(&delivery.instance).map(|(start, _)| *start);
        let start = if delivery.data.is_some() { delivery.at } else { before.unwrap_or(delivery.at) };
        if let Some(before) = before.filter(|_| delivery.data.is_some()) {
            silences.push((before, delivery.at));
        }
        open.insert(delivery.instance, (start, delivery.state));
    }
    for (start, state) in open.into_values() {
        let end = if state == InstanceState::Alive { finished_at } else { Instant(finished_at.0 - 1) };
        silences.push((start, end));
    }
    if !prompt {
        // What expired or was replaced before anybody took it kept its instance alive, too.
        let pairs = ledger.pairs().filter(|pair| pair.reader.endpoint.guid == reader.endpoint.guid);
        let instances: usize = pairs.map(|pair| pair.writer.instances().len()).sum();
        silences
            .extend(std::iter::repeat_n((reader.endpoint.born_at, Instant(finished_at.0 - 1)), instances));
    }
    silences
}
