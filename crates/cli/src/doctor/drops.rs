//! What this process dropped on its way in.

use plainsong::drops::DropReason;

use super::codes::{self, Severity};
use super::{Patient, report::Report};
use crate::output::counted;

/// Reasons that say something about others or the host, and what to do. What is not here is in order:
/// repetitions, own datagrams, those for others.
const TELLING: [(DropReason, &str, &str); 9] = [
    (
        DropReason::Malformed,
        "datagrams are not what they claim to be",
        "find out who sends something else than RTPS to these ports",
    ),
    (
        DropReason::UnknownVersion,
        "datagrams are of another major version of RTPS than 2",
        "upgrade whoever sends them",
    ),
    (
        DropReason::DiscoveryLimit,
        "there are more participants, endpoints or locators than this process keeps",
        "use fewer participants, or several domains; docs/limits.md has the limits",
    ),
    (
        DropReason::SpoofSuspected,
        "discovery came from addresses that its participant never announced",
        "let participants announce the addresses from which their datagrams come: a NAT or tunnel changes them",
    ),
    (
        DropReason::SecurityRequired,
        "datagrams are protected by DDS Security, which this process has not",
        "see participant-secured",
    ),
    (
        DropReason::SocketFull,
        "the kernel had no room for datagrams to this process",
        "raise net.core.rmem_max: sysctl -w net.core.rmem_max=8388608",
    ),
    (
        DropReason::LocatorRefused,
        "addresses were announced that may not be used: port 0, reserved ports, groups as unicast",
        "correct the addresses that participants announce",
    ),
    (
        DropReason::Unreachable,
        "addresses were announced of kinds that no transport here reaches",
        "let participants announce UDP addresses of a family that this host has",
    ),
    (
        DropReason::OtherDomain,
        "announcements on the ports of this domain are of another one",
        "see other-domain",
    ),
];

pub(super) fn check(patient: &Patient<'_>, report: &mut Report) {
    let state = &patient.state;
    let counts: Vec<_> = state.domain_drops.iter().chain(&state.discovery_drops).collect();
    let told: Vec<_> = counts.iter().map(|it| format!("{:?} {}", it.reason, it.count)).collect();
    report.check("dropped here", if told.is_empty() { "nothing".to_owned() } else { told.join(", ") });
    for (reason, what, cure) in TELLING {
        let count: u64 = counts.iter().filter(|it| it.reason == reason).map(|it| it.count).sum();
        if count > 0 {
            let what = format!("{what}: {} {reason:?}", counted(count, "time"));
            report.find(
                codes::DATAGRAMS_REFUSED,
                Severity::Note,
                "this process",
                what,
                Some(cure.to_owned()),
            );
        }
    }
}
