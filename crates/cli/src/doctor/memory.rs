//! Shared memory: whether this process has it, and with whom of this host it does not share it.

use plainsong::config::Use;
use plainsong::state::{MemoryRefusal, RemoteParticipantState, UsedTransport};

use super::codes::{self, Severity};
use super::{Patient, report::Report};

/// Each process with which memory is shared takes some descriptors.
const DESCRIPTORS_MIN: u64 = 256;

pub(super) fn check(patient: &Patient<'_>, report: &mut Report) {
    let config = patient.config;
    let peers = patient.state.remote_participants.items.iter().filter(|it| it.tool.is_none());
    let here: Vec<&RemoteParticipantState> = peers.filter(|it| it.same_host && it.is_proven).collect();
    let shares = here.iter().filter(|it| it.transport == UsedTransport::Memory).count();
    if config.shared_memory == Use::Off || !cfg!(target_os = "linux") {
        report.check("shared memory", "off in this process");
        let what = "this process shares no memory: whether others do is not known";
        report.find(codes::MEMORY_OFF, Severity::Note, "this process", what, None);
        return;
    }
    let limit = open_files_limit();
    let (ring, pool) = (config.memory_ring_bytes, config.memory_pool_bytes_max);
    let files = limit.map_or_else(|| "no limit of open files".to_owned(), |it| format!("{it} open files"));
    report.check(
        "shared memory",
        format!(
            "shared with {shares} of {} participants of this host; ring {ring} octets, pool {pool}; {files}",
            here.len()
        ),
    );
    if let Some(limit) = limit.filter(|limit| *limit < DESCRIPTORS_MIN) {
        let what = format!("this process may have {limit} open files: few are left for shared memory");
        report.find(codes::MEMORY_LIMIT, Severity::Warning, "this process", what, None);
    }
    for peer in here {
        let UsedTransport::Udp(refusal) = peer.transport else { continue };
        let severity = match refusal {
            MemoryRefusal::OtherProduct | MemoryRefusal::OtherHost | MemoryRefusal::ProcessGone => continue,
            MemoryRefusal::Awaited => Severity::Note,
            _ => Severity::Warning,
        };
        let known = patient.view.participants.iter().find(|it| it.guid == peer.guid);
        let entity = known.map_or_else(|| peer.guid.to_string(), |known| known.label());
        let what = format!("it is on this host and is reached by UDP instead of shared memory: {refusal}");
        report.find(codes::MEMORY_REFUSED, severity, entity, what, Some(refusal.advice().to_owned()));
    }
}

/// How many descriptors this process may have; `None` where there is no limit.
#[cfg(unix)]
fn open_files_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(not(unix))]
const fn open_files_limit() -> Option<u64> {
    None
}
