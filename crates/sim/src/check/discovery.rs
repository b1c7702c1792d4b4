//! Once faults are over, live participants know each other and nobody else, endpoints that fit are
//! matched on both sides and no others are, and the matched statuses say so (RTPS 2.5 §8.5).

use plainsong_proto::guid::{Guid, GuidPrefix};

use super::Findings;
use super::rules::fits;
use crate::ledger::{Endpoint, Epoch, Ledger, ParticipantRecord};
use crate::network::is_genuine;

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for participant in ledger.participants.iter().filter(|participant| participant.ended.is_none()) {
        check_acquaintances(ledger, participant, findings);
    }
    for writer in ledger.writers.iter().filter(|writer| writer.endpoint.is_alive()) {
        let readers = ledger.readers.iter().map(|reader| &reader.endpoint);
        let fitting =
            readers.filter(|reader| fits(ledger, &writer.endpoint, reader)).map(|reader| reader.guid);
        check_matches(&writer.endpoint, fitting.collect(), 0, findings);
    }
    for reader in ledger.readers.iter().filter(|reader| reader.endpoint.is_alive()) {
        let writers = ledger.writers.iter().map(|writer| &writer.endpoint);
        let fitting =
            writers.filter(|writer| fits(ledger, writer, &reader.endpoint)).map(|writer| writer.guid);
        check_matches(&reader.endpoint, fitting.collect(), made_anew(ledger, &reader.endpoint), findings);
    }
}

fn check_acquaintances(ledger: &Ledger, participant: &ParticipantRecord, findings: &mut Findings) {
    let mut expected: Vec<GuidPrefix> = ledger
        .participants
        .iter()
        .filter(|other| other.ended.is_none() && other.domain == participant.domain)
        .map(|other| other.prefix)
        .filter(|prefix| *prefix != participant.prefix)
        .collect();
    expected.sort_unstable();
    // Strangers may be known for some time.
    let mut known: Vec<GuidPrefix> = participant.knows.iter().copied().filter(|it| is_genuine(*it)).collect();
    known.sort_unstable();
    for prefix in expected.iter().filter(|prefix| !known.contains(prefix)) {
        findings.report(|| format!("{:?} does not know {prefix:?}", participant.prefix));
    }
    for prefix in known.iter().filter(|prefix| !expected.contains(prefix)) {
        findings.report(|| format!("{:?} still knows {prefix:?}, which is gone", participant.prefix));
    }
}

/// How many matches more than its own the reader may tell of: as often as a writer lost it and found it again
/// while it noticed nothing but the samples that it missed.
fn made_anew(ledger: &Ledger, reader: &Endpoint) -> usize {
    ledger.writers.iter().map(|writer| found_again(ledger, reader, &writer.endpoint)).sum()
}

fn found_again(ledger: &Ledger, reader: &Endpoint, writer: &Endpoint) -> usize {
    // What the writer sent while it was matched before is heard after the reader's match began: at once, or
    // by a process that stood still.
    let is_heard = |lost: &Epoch, epoch: &Epoch| {
        lost.overlaps(epoch) || lost.end.is_some_and(|end| !reader.ran_throughout(ledger, end, epoch.start))
    };
    let changes = || writer.epochs(reader.guid).iter().zip(writer.epochs(reader.guid).iter().skip(1));
    let within = |epoch: &Epoch| {
        changes().filter(|(lost, found)| is_heard(lost, epoch) && found.overlaps(epoch)).count()
    };
    reader.epochs(writer.guid).iter().map(within).sum()
}

fn check_matches(endpoint: &Endpoint, mut expected: Vec<Guid>, made_anew: usize, findings: &mut Findings) {
    expected.sort_unstable();
    let matched: Vec<Guid> = endpoint.matched().collect();
    for peer in expected.iter().filter(|peer| !matched.contains(peer)) {
        findings.report(|| format!("{} is not matched with {peer}, which fits", endpoint.guid));
    }
    let genuine = matched.iter().filter(|peer| is_genuine(peer.prefix));
    for peer in genuine.filter(|peer| !expected.contains(peer)) {
        findings
            .report(|| format!("{} is matched with {peer}, which is gone or does not fit", endpoint.guid));
    }
    let status = endpoint.matched_status;
    let total: usize = endpoint.matches.values().map(Vec::len).sum();
    let totals = total as i32..=(total + made_anew) as i32;
    if status.current_count != matched.len() as i32 || !totals.contains(&status.total.total_count) {
        findings.report(|| {
            let (current, ever) = (status.current_count, status.total.total_count);
            let told = format!("{} of {total} matches ever made", matched.len());
            format!("{} says {current} of {ever} matches, it was told {told}", endpoint.guid)
        });
    }
}
