//! What must hold in every run, one file for each invariant. A checker reads the ledger and
//! nothing else, so it cannot share a mistake with the code it judges.

mod access_order;
mod amplification;
mod announced;
mod autopurge;
mod coherent;
mod content_filter;
mod crowds;
mod data_available;
mod deadline;
mod destination_order;
mod discovery;
mod group_order;
mod impostors;
mod instance_state;
mod isolation;
mod keep_last;
mod late_joiner;
mod latency_budget;
mod lifespan;
mod limits;
mod liveliness;
mod mismatch;
mod newcomers;
mod no_duplicates;
mod order;
mod ownership;
mod payload_integrity;
mod reliable_complete;
mod returns;
mod rules;
mod silence;
mod strangers;
mod time_based_filter;
mod transport_priority;

use crate::ledger::Ledger;

/// Something that should never be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Name of the invariant.
    pub invariant: &'static str,
    /// Who, what and when.
    pub what: String,
}

/// Collects what one checker finds.
#[derive(Debug)]
pub struct Findings {
    invariant: &'static str,
    violations: Vec<Violation>,
}

type Check = fn(&Ledger, &mut Findings);

/// Every invariant.
pub const CHECKS: [(&str, Check); 33] = [
    ("access_order", access_order::check),
    ("amplification", amplification::check),
    ("announced", announced::check),
    ("autopurge", autopurge::check),
    ("coherent", coherent::check),
    ("content_filter", content_filter::check),
    ("crowds", crowds::check),
    ("data_available", data_available::check),
    ("deadline", deadline::check),
    ("destination_order", destination_order::check),
    ("discovery", discovery::check),
    ("group_order", group_order::check),
    ("impostors", impostors::check),
    ("instance_state", instance_state::check),
    ("isolation", isolation::check),
    ("keep_last", keep_last::check),
    ("late_joiner", late_joiner::check),
    ("latency_budget", latency_budget::check),
    ("lifespan", lifespan::check),
    ("limits", limits::check),
    ("liveliness", liveliness::check),
    ("mismatch", mismatch::check),
    ("newcomers", newcomers::check),
    ("no_duplicates", no_duplicates::check),
    ("order", order::check),
    ("ownership", ownership::check),
    ("payload_integrity", payload_integrity::check),
    ("reliable_complete", reliable_complete::check),
    ("returns", returns::check),
    ("silence", silence::check),
    ("strangers", strangers::check),
    ("time_based_filter", time_based_filter::check),
    ("transport_priority", transport_priority::check),
];

/// Findings of one invariant that are reported; more of the same help nobody.
const FINDINGS_MAX: usize = 5;

impl Findings {
    /// Reports a violation.
    pub fn report(&mut self, what: impl FnOnce() -> String) {
        if self.violations.len() < FINDINGS_MAX {
            self.violations.push(Violation { invariant: self.invariant, what: what() });
        }
    }
}

/// Everything that is wrong with a run.
#[must_use]
pub fn all(ledger: &Ledger) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (invariant, check) in CHECKS {
        let mut findings = Findings { invariant, violations: Vec::new() };
        check(ledger, &mut findings);
        violations.append(&mut findings.violations);
    }
    violations
}
