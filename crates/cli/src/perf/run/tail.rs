//! Samples that were sent last and never came: a reader cannot know of them.

use plainsong_perfkit::event::{Stream, Totals};
use plainsong_perfkit::spec::Role;

use super::parties::Party;
use crate::perf::results::WorkerResult;

/// Payloads from this size on carry the number of their writer.
const SIZE_WITH_WRITER: u64 = 8;

/// Adds to the loss of each reader what each writer has sent beyond the last sample it has seen.
pub(super) fn add_lost_tails(parties: &[Party], workers: &mut [WorkerResult]) {
    let writers = parties.iter().filter(|it| matches!(it.spec.role, Role::Publish { .. })).count();
    let mut sent = Vec::new();
    for (party, worker) in parties.iter().zip(workers.iter()) {
        if let (Role::Publish { number, size, .. }, Some(report)) = (&party.spec.role, &worker.report)
            && (writers == 1 || *size >= SIZE_WITH_WRITER)
        {
            sent.push((*number, report.sent));
        }
    }
    for (party, worker) in parties.iter().zip(workers.iter_mut()) {
        let (Role::Subscribe { reader, .. }, Some(report)) = (&party.spec.role, &mut worker.report) else {
            continue;
        };
        // What was written by others than the owner is no loss, nor what a filter or a limit left out.
        if reader.ownership_strength.is_some()
            || reader.filter_instances_below.is_some()
            || party.spec.samples_max > 0
        {
            continue;
        }
        for (writer, sent) in &sent {
            let own = report.streams.iter().filter(|it| it.writer == *writer);
            let seen: u64 = own.map(|it| it.totals.received + it.totals.corrupted + it.totals.lost).sum();
            let lost = sent.saturating_sub(seen);
            if lost == 0 {
                continue;
            }
            report.totals.lost += lost;
            // Of which instance it was is not known; the last told one stands for all.
            match report.streams.iter_mut().rfind(|it| it.writer == *writer) {
                Some(stream) => stream.totals.lost += lost,
                None => report.streams.push(Stream {
                    writer: *writer,
                    instance: None,
                    totals: Totals { lost, ..Totals::default() },
                }),
            }
        }
    }
}
