//! The clock of this host, and those of others as far as announcements tell.

use plainsong::prelude::*;

use super::codes::{self, Severity};
use super::{Patient, report::Report};

/// 2024-01-01: this program is younger.
const PLAUSIBLE_FROM_S: u32 = 1_704_067_200;
/// A clock that is set by NTP is nearer.
const AHEAD_MAX: Duration = Duration::from_millis(500);

pub(super) fn check(patient: &Patient<'_>, report: &mut Report) {
    let now = patient.state.time;
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let source = source.map_or_else(|_| "not told".to_owned(), |source| source.trim().to_owned());
    report.check("clock", format!("{now}, source {source}"));
    if now < Time::from_wire(PLAUSIBLE_FROM_S, 0) {
        let what = format!("the wall clock says {now}");
        report.find(codes::CLOCK_WRONG, Severity::Warning, "this host", what, None);
    }
    for (participant, ahead) in patient.neighbours.ahead() {
        if ahead > AHEAD_MAX {
            let what = format!("its announcements are stamped {ahead} later than the clock of this host");
            report.find(codes::CLOCK_AHEAD, Severity::Warning, participant, what, None);
        }
    }
}
