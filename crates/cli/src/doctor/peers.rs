//! Participants that cannot be talked to.

use super::codes::{self, Severity};
use super::{Patient, report::Report};
use crate::output::counted;

pub(super) fn check(patient: &Patient<'_>, report: &mut Report) {
    let view = &patient.view;
    let answering = view.participants.iter().filter(|it| it.answers).count();
    report.check(
        "participants",
        format!(
            "{} heard, {answering} of them answering; {}",
            counted(view.participants.len() as u64, "participant"),
            counted(view.endpoints.len() as u64, "endpoint")
        ),
    );
    if view.participants.is_empty() {
        let what = "no other participant was heard, by multicast or unicast".to_owned();
        report.find(codes::NOBODY_HEARD, Severity::Warning, format!("domain {}", patient.domain), what, None);
    }
    for it in view.participants.iter().filter(|it| !it.answers) {
        let from = it.address.as_deref().unwrap_or("an unknown address");
        let at = if it.locators.is_empty() { "no address".to_owned() } else { it.locators.join(", ") };
        let what = format!("it is heard from {from}, but does not answer at {at}, which it announces");
        report.find(codes::NOT_ANSWERING, Severity::Error, it.label(), what, None);
    }
    for it in view.participants.iter().filter(|it| it.secured && it.endpoints == 0) {
        let what = "it announces an identity of DDS Security, and tells none of its endpoints".to_owned();
        report.find(codes::SECURED, Severity::Error, it.label(), what, None);
    }
}
