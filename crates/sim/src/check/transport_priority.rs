//! TRANSPORT_PRIORITY: the datagrams of a writer are marked with it, as DSCP (RFC 2474) in the upper six bits
//! of the traffic class, and a large sample that is being sent holds up no small one of another writer (DCPS
//! 1.4 §2.2.3.14).

use super::Findings;
use super::latency_budget::{is_behind_fragments, late, late_text, writes_small_samples};
use crate::ledger::Ledger;

pub(super) fn check(ledger: &Ledger, findings: &mut Findings) {
    for writer in &ledger.writers {
        let guid = writer.endpoint.guid;
        for (priority, class) in &writer.marked {
            let expected = (*priority).clamp(0, 63) * 4;
            if i32::from(*class) != expected {
                findings.report(|| format!("{guid} of priority {priority} has traffic class {class}"));
            }
        }
        if !writes_small_samples(writer) {
            continue;
        }
        for (change, counter, due) in late(ledger, writer) {
            if is_behind_fragments(ledger, writer, change, due) {
                let who = format!("a large sample of another writer held up {guid}:");
                findings.report(|| late_text(writer, change, counter, &who));
            }
        }
    }
}
