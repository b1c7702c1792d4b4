//! A sample is delivered once. Only a reader that lost its writer and found it again may see again
//! what the first match brought (RTPS 2.5 §8.4.2.2).

use std::collections::BTreeMap;

use super::Findings;
use crate::ledger::Ledger;

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for pair in ledger.pairs() {
        let mut times: BTreeMap<u32, usize> = BTreeMap::new();
        for counter in pair.delivered() {
            *times.entry(counter).or_default() += 1;
        }
        let (writer, reader) = (pair.writer.endpoint.guid, pair.reader.endpoint.guid);
        let allowed = pair.reader_epochs();
        for (counter, count) in times.into_iter().filter(|(_, count)| *count > allowed) {
            findings
                .report(|| format!("{reader} got #{counter} of {writer} {count} times in {allowed} matches"));
        }
    }
}
