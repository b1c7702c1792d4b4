//! Ordered access of GROUP scope: the readers of a subscriber show the changes of a publisher in the order of
//! its writers together, from access to access, and within one as far as one reader shows them (DCPS 1.4
//! §2.2.3.6).
//!
//! RESOURCE_LIMITS of one reader do not stop the others: what found no room in it may come behind what they
//! have shown, but not behind what it has shown itself.

use std::collections::{BTreeMap, BTreeSet};

use plainsong_proto::guid::Guid;
use plainsong_proto::qos::{AccessScope, DestinationOrder};
use plainsong_proto::time::Instant;

use super::Findings;
use crate::ledger::{Ledger, Pair, ReaderRecord};

/// A change of a publisher as one reader showed it.
struct Sight<'a> {
    pair: Pair<'a>,
    access: u64,
    /// Its place among all that the reader showed.
    place: usize,
    number: i64,
    written_at: Instant,
    seen_at: Instant,
}

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    let judged = |reader: &&ReaderRecord| {
        let presentation = reader.endpoint.qos.presentation;
        presentation.ordered_access && presentation.access_scope == AccessScope::Group
    };
    let subscribers: BTreeSet<usize> =
        ledger.readers.iter().filter(judged).filter_map(|reader| reader.endpoint.group).collect();
    let publishers: BTreeSet<usize> =
        ledger.writers.iter().filter_map(|writer| writer.endpoint.group).collect();
    for subscriber in subscribers {
        for publisher in &publishers {
            check_groups(ledger, *publisher, subscriber, findings);
        }
    }
}

fn check_groups(ledger: &Ledger, publisher: usize, subscriber: usize, findings: &mut Findings) {
    let pairs = ledger
        .writers_in(publisher)
        .flat_map(|writer| ledger.readers_in(subscriber).map(move |reader| Pair { writer, reader }));
    let mut sights: Vec<Sight<'_>> = pairs.flat_map(sights).collect();
    sights.sort_by_key(|sight| (sight.access, sight.place));
    // What may be shown too late, and what too early: nothing is held back for a writer that is gone.
    let mut latest: BTreeMap<Guid, &Sight<'_>> = BTreeMap::new();
    let mut start = 0;
    while let Some(first) = sights.get(start) {
        let end = start + sights[start..].partition_point(|sight| sight.access == first.access);
        let access = &sights[start..end];
        for sight in access.iter().filter(|sight| may_not_be_late(sight)) {
            let in_access = access.iter().filter(|other| other.is_before_in_reader(sight));
            let before = latest.values().copied().filter(|other| !may_precede(other, sight));
            let before = before.chain(in_access).find(|other| other.number > sight.number);
            if let Some(before) = before {
                report(sight, before, findings);
            }
        }
        for sight in access.iter().filter(|sight| is_matched(sight, sight.written_at)) {
            let highest = latest.entry(sight.reader()).or_insert(sight);
            if sight.number > highest.number {
                *highest = sight;
            }
        }
        start = end;
    }
}

fn sights(pair: Pair<'_>) -> impl Iterator<Item = Sight<'_>> {
    let deliveries = pair.reader.deliveries.iter().enumerate();
    let of_writer = deliveries.filter(move |(_, it)| it.writer == pair.writer.endpoint.guid);
    of_writer.filter_map(move |(place, delivery)| {
        let change = pair.writer.data(delivery.data?.ok()?.counter)?;
        Some(Sight {
            pair,
            access: delivery.access,
            place,
            number: change.group_number?,
            written_at: change.at,
            seen_at: delivery.at,
        })
    })
}

impl Sight<'_> {
    fn reader(&self) -> Guid {
        self.pair.reader.endpoint.guid
    }

    /// The same reader showed it before `other`, and arranges nothing by time.
    fn is_before_in_reader(&self, other: &Self) -> bool {
        let reader = &self.pair.reader.endpoint;
        reader.guid == other.pair.reader.endpoint.guid
            && self.place < other.place
            && reader.qos.destination_order == DestinationOrder::ByReceptionTimestamp
            && is_matched(self, self.written_at)
    }
}

/// Nothing lets others be shown before it: they wait for its writer all the time.
fn may_not_be_late(sight: &Sight<'_>) -> bool {
    let pair = &sight.pair;
    pair.is_reliable()
        && pair.has_no_lease()
        && !pair.is_thinned()
        && pair.reader_epochs() == 1
        && is_matched(sight, sight.written_at)
}

/// Another reader has room for `early`, that of `late` may have to wait for it.
fn may_precede(early: &Sight<'_>, late: &Sight<'_>) -> bool {
    early.reader() != late.reader() && !late.pair.reader.is_unlimited()
}

fn is_matched(sight: &Sight<'_>, since: Instant) -> bool {
    let (writer, reader) = (&sight.pair.writer.endpoint, &sight.pair.reader.endpoint);
    writer.matched_throughout(reader.guid, since, sight.seen_at)
        && reader.matched_throughout(writer.guid, since, sight.seen_at)
}

fn report(late: &Sight<'_>, early: &Sight<'_>, findings: &mut Findings) {
    let ends = |sight: &Sight<'_>| {
        let (from, to) = (sight.pair.writer.endpoint.guid, sight.pair.reader.endpoint.guid);
        format!("change {} of the publisher, by {from} to {to}", sight.number)
    };
    findings.report(|| {
        format!("{} was seen at {} ms, behind {}", ends(late), late.seen_at.0 / 1_000_000, ends(early))
    });
}
