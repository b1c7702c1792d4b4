//! LATENCY_BUDGET: a small sample waits for others no longer than the budget of its writer allows, or,
//! without one, than samples of a flow do (DCPS 1.4 §2.2.3.8).

use plainsong_proto::time::{Duration, Instant};

use super::Findings;
use crate::ledger::{Change, ChangeKind, Ledger, Pair, WriterRecord};

/// How long samples of a flow wait for each other.
const FLOW_WAIT: Duration = Duration::from_micros(200);
/// How long a sample waits at most, whatever its budget.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// Timers go off a little late.
const LATENESS: Duration = Duration::from_micros(300);
/// Samples up to so many octets never leave in fragments.
const SMALL_BYTES_MAX: usize = 800;

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for writer in ledger.writers.iter().filter(|writer| writes_small_samples(writer)) {
        for (change, counter, due) in late(ledger, writer) {
            if !is_behind_fragments(ledger, writer, change, due) {
                let guid = writer.endpoint.guid;
                findings.report(|| late_text(writer, change, counter, &format!("{guid} kept")));
            }
        }
    }
}

/// What is said of a sample that left late.
pub(super) fn late_text(writer: &WriterRecord, change: &Change, counter: u32, who: &str) -> String {
    let left = writer.sent.get(&change.number).map(|sent| sent.since(change.at).0 / 1_000);
    let left = left.map_or_else(|| "for ever".to_owned(), |micros| format!("for {micros} µs"));
    format!("{who} #{counter}, written at {} ms, {left}", change.at.0 / 1_000_000)
}

/// Nothing of it is ever sent in fragments, which take their time.
pub(super) fn writes_small_samples(writer: &WriterRecord) -> bool {
    writer.changes.iter().all(|change| change.bytes <= SMALL_BYTES_MAX)
}

/// Samples that somebody waited for and that had not left when they were due, and when that was.
pub(super) fn late<'a>(
    ledger: &'a Ledger,
    writer: &'a WriterRecord,
) -> impl Iterator<Item = (&'a Change, u32, Instant)> {
    let budget = writer.endpoint.ever().map(|qos| qos.latency_budget.min(WAIT_MAX)).max();
    let patience = Duration(budget.unwrap_or(Duration::ZERO).max(FLOW_WAIT).0 + LATENESS.0);
    // What readers filter out by time may wait for their separation.
    let wants_all =
        |pair: &Pair<'_>| pair.reader.filters.is_empty() && (!pair.is_thinned() || writer.endpoint.keyed);
    let readers: Vec<Pair<'_>> = ledger
        .pairs()
        .filter(|pair| pair.writer.endpoint.guid == writer.endpoint.guid && wants_all(pair))
        .collect();
    writer.changes.iter().filter_map(move |change| {
        let ChangeKind::Data(counter) = change.kind else { return None };
        let due = change.at.after(patience)?;
        let endpoint = &writer.endpoint;
        // What waits for the way to one address is not sent to another: a reader that moves meanwhile asks
        // for it like for anything lost, and with KEEP_LAST may be too late.
        let waits = |pair: &Pair<'_>| {
            let reader = &pair.reader.endpoint;
            endpoint.matched_throughout(reader.guid, change.at, due)
                && reader.stayed_throughout(ledger, change.at, due)
        };
        let waited_for = endpoint.ran_throughout(ledger, change.at, due)
            && due <= ledger.finished_at
            && readers.iter().any(waits);
        let has_left = writer.sent.get(&change.number).is_some_and(|left| *left <= due);
        // What waits for the road does not wait for others; the budget is a hint, not a right to flood the
        // road.
        (waited_for && !has_left && !change.waits_for_road).then_some((change, counter, due))
    })
}

/// Whether fragments of another writer of its participant left while the sample should have.
pub(super) fn is_behind_fragments(
    ledger: &Ledger,
    writer: &WriterRecord,
    change: &Change,
    due: Instant,
) -> bool {
    let others = ledger.writers.iter().filter(|other| {
        other.endpoint.participant == writer.endpoint.participant
            && other.endpoint.guid != writer.endpoint.guid
    });
    others.flat_map(|other| &other.fragments).any(|left| (change.at..=due).contains(left))
}
