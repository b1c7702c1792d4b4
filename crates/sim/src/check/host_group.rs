//! One datagram for all: a writer that may sends to a group of its host what a process hears that has joined
//! it, and to none that nobody hears. What arrives by it is judged by all other checkers.

use plainsong_proto::guid::Guid;
use plainsong_proto::qos::{HistoryKind, QosSet};
use plainsong_proto::time::{Duration, Instant};
use plainsong_proto::writer::{Delivery, UnicastReason};

use super::Findings;
use crate::ledger::{Ending, Ledger, ReaderRecord, WriterRecord};
use crate::node::{Hearing, prefers_groups};

/// Who has written so often since everything went well has heard from its readers as often as it takes.
const CHANGES_MIN: usize = 30;
/// By then everyone who was there is matched again.
const SETTLED: Duration = Duration::from_millis(500);

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    // Who shares memory needs no group.
    if ledger.shares_memory {
        return;
    }
    // The GUIDs tell where processes were born.
    let moved = ledger.participants.iter().any(|participant| !participant.moved_at.is_empty());
    for writer in ledger.writers.iter().filter(|writer| writer.endpoint.is_alive() && !moved) {
        let guid = writer.endpoint.guid;
        let near: Vec<_> = ledger.readers.iter().filter(|reader| may_answer(writer, reader)).collect();
        let hearing = || near.iter().map(|reader| Hearing::of(reader.endpoint.guid.prefix));
        match writer.delivery {
            Some(Delivery::Multicast { group, .. }) if hearing().all(|it| it == Hearing::Never) => {
                findings.report(|| format!("{guid} sends to {group}, which nobody hears"));
            }
            Some(Delivery::Unicast(reason))
                if is_expected(ledger, writer, &near) && !is_plausible(reason, writer, &near) =>
            {
                findings.report(|| format!("{guid} sends by unicast: {reason}"));
            }
            _ => {}
        }
    }
}

/// Who replaces samples does not let them wait for readers that take their time to answer,
/// without which the way does not change; and one that is full answers when its application takes.
fn is_plausible(reason: UnicastReason, writer: &WriterRecord, near: &[&ReaderRecord]) -> bool {
    reason == UnicastReason::NotAcknowledged
        && (writer.endpoint.qos.history.kind == HistoryKind::KeepLast
            || near.iter().any(|reader| !reader.can_hold_everything()))
}

/// When the last reader left whose process had died: it was waited for until its lease ended, and the way
/// does not change before all whom it concerns have acknowledged.
fn missed_until(ledger: &Ledger, writer: &WriterRecord) -> Option<Instant> {
    let has_crashed = |reader: &Guid| {
        let participant = ledger.participants.iter().find(|one| one.prefix == reader.prefix);
        participant.is_some_and(|one| matches!(one.ended, Some((_, Ending::Crashed))))
    };
    let dead = writer.endpoint.matches.iter().filter(|(reader, _)| has_crashed(reader));
    dead.flat_map(|(_, epochs)| epochs).map(|epoch| epoch.end.unwrap_or(ledger.finished_at)).max()
}

/// Whether a writer should have found out that a reader hears the group.
fn is_expected(ledger: &Ledger, writer: &WriterRecord, near: &[&ReaderRecord]) -> bool {
    let Some(settled) = ledger.calm_since.and_then(|calm| calm.after(SETTLED)) else { return false };
    let settled = missed_until(ledger, writer).map_or(settled, |missed| missed.max(settled));
    let guid = writer.endpoint.guid;
    let written = writer.changes.iter().filter(|change| change.at >= settled).count();
    let has_no_priority = |qos: &QosSet| qos.transport_priority == 0;
    let mut matched = ledger.readers.iter().filter(|reader| reader.endpoint.matches.contains_key(&guid));
    let is_plain = has_no_priority(&writer.endpoint.qos)
        && matched.all(|reader| reader.filters.is_empty())
        && writer.endpoint.earlier.iter().all(has_no_priority);
    let is_settled = |reader: &&&ReaderRecord| {
        let epoch = reader.endpoint.matches.get(&guid).and_then(|epochs| epochs.last());
        let participant = &ledger.participants[reader.endpoint.participant];
        Hearing::of(reader.endpoint.guid.prefix) == Hearing::Always
            && epoch.is_some_and(|epoch| epoch.start < settled)
            && participant.stopped.is_empty()
            && reader.can_hold_everything()
    };
    let own = &ledger.participants[writer.endpoint.participant];
    prefers_groups(guid.prefix)
        && is_plain
        && own.stopped.is_empty()
        && written >= CHANGES_MIN
        && near.iter().any(|reader| is_settled(&reader))
}

/// A reader that is matched with the writer, on the same host, and acknowledges what it gets.
fn may_answer(writer: &WriterRecord, reader: &ReaderRecord) -> bool {
    let (here, there) = (&writer.endpoint, &reader.endpoint);
    let is_matched = there.matches.get(&here.guid).and_then(|epochs| epochs.last());
    there.is_alive()
        && here.guid.prefix.0[2] == there.guid.prefix.0[2]
        && here.qos.is_reliable()
        && there.qos.is_reliable()
        && is_matched.is_some_and(|epoch| epoch.end.is_none())
}
