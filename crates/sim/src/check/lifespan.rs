//! LIFESPAN: what has expired is not shown, as far as the clocks of writer and reader agree to say so
//! (DCPS 1.4 §2.2.3.16).

use plainsong_proto::time::Duration;

use super::Findings;
use crate::ledger::{Ledger, Pair};

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for pair in ledger.pairs() {
        // The longest it ever had: a change may overtake samples that are under way.
        let lifespan = pair.writer.endpoint.ever().map(|qos| qos.lifespan).max();
        if let Some(lifespan) = lifespan.filter(|lifespan| !lifespan.is_infinite()) {
            check_pair(ledger, &pair, lifespan, findings);
        }
    }
}

fn check_pair(ledger: &Ledger, pair: &Pair<'_>, lifespan: Duration, findings: &mut Findings) {
    for (delivery, sample) in pair.reader.data_from(pair.writer.endpoint.guid) {
        let Some(change) = pair.writer.data(sample.counter) else { continue };
        // Expiry is decided once, when the sample arrives: a clock set afterwards does not change it.
        let reader = &pair.reader.endpoint;
        if ledger.clock_was_set(reader.participant, change.at, delivery.at) {
            continue;
        }
        let age = delivery.wall.since(change.source);
        if age > lifespan {
            let (from, to) = (pair.writer.endpoint.guid, reader.guid);
            let (age, lifespan) = (age.0 / 1_000_000, lifespan.0 / 1_000_000);
            findings.report(|| {
                format!(
                    "{to} got #{} of {from}, {age} ms old; it expires after {lifespan} ms",
                    sample.counter
                )
            });
        }
    }
}
