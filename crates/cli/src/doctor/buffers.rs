//! What the kernel grants to sockets, and where that was not enough.

use std::collections::BTreeMap;
use std::fs;

use socket2::{Domain, Protocol, Socket, Type};

use super::codes::{self, Code, Severity};
use super::ports;
use super::sockets::UdpSocketEntry;
use super::{Patient, report::Report};
use crate::output::counted;

/// A burst of fragments: less is a fault even without loss.
const LEAST_BYTES: usize = 128 << 10;

pub(super) fn check(patient: &Patient<'_>, sockets: &Option<Vec<UdpSocketEntry>>, report: &mut Report) {
    let (receive, send) = (patient.config.receive_buffer_bytes, patient.config.send_buffer_bytes);
    if let Ok((received, sent)) = granted(receive, send) {
        let limit = |name: &str| {
            let value = fs::read_to_string(format!("/proc/sys/net/core/{name}")).unwrap_or_default();
            if value.is_empty() {
                "the limit is not told".to_owned()
            } else {
                format!("{name} is {}", value.trim())
            }
        };
        let (most_received, most_sent) = (limit("rmem_max"), limit("wmem_max"));
        report.check(
            "buffers",
            format!("receive {received} of {receive} octets ({most_received}), send {sent} of {send} ({most_sent})"),
        );
        let sides = [
            (codes::RECEIVE_BUFFER_SMALL, received, receive, most_received),
            (codes::SEND_BUFFER_SMALL, sent, send, most_sent),
        ];
        for (code, granted, asked, limit) in sides {
            find_small(code, granted, asked, &limit, report);
        }
    }
    if let Some(sockets) = sockets {
        overflows(patient, sockets, report);
    }
}

fn find_small(code: &Code, granted: usize, asked: usize, limit: &str, report: &mut Report) {
    let severity = if granted < LEAST_BYTES { Severity::Warning } else { Severity::Note };
    if granted < asked {
        let what = format!("a socket gets {granted} octets of {asked} that are asked for: {limit}");
        report.find(code, severity, "sockets without CAP_NET_ADMIN", what, None);
    } else if severity == Severity::Warning {
        let what = format!("only {asked} octets are asked for");
        let which = if code.name.starts_with("receive") { "RECEIVE" } else { "SEND" };
        let cure = format!("raise or unset PLAINSONG_{which}_BUFFER_BYTES");
        report.find(code, severity, "sockets of this process", what, Some(cure));
    }
}

/// What a socket gets that asks for so much to receive and to send.
fn granted(receive: usize, send: usize) -> std::io::Result<(usize, usize)> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    // Some systems refuse what exceeds a limit instead of granting less.
    let _ = socket.set_recv_buffer_size(receive);
    let _ = socket.set_send_buffer_size(send);
    // Linux doubles what was asked for, for its own use, and tells the double.
    let own_use = if cfg!(target_os = "linux") { 2 } else { 1 };
    Ok((socket.recv_buffer_size()? / own_use, socket.send_buffer_size()? / own_use))
}

/// Sockets of this domain that were too full.
fn overflows(patient: &Patient<'_>, sockets: &[UdpSocketEntry], report: &mut Report) {
    let range = ports::of_domain(patient.domain);
    let here = patient.view.participants.iter().filter(|it| it.same_host && it.process != 0);
    let processes: Vec<u32> = here.map(|it| it.process).collect();
    let mut lost: BTreeMap<String, u64> = BTreeMap::new();
    for socket in sockets.iter().filter(|it| it.drops > 0) {
        let is_known = socket.process.as_ref().is_some_and(|it| processes.contains(&it.id));
        if range.contains(&socket.port) || is_known {
            *lost.entry(socket.owner()).or_default() += socket.drops;
        }
    }
    for (owner, count) in lost {
        let lost = counted(count, "datagram");
        let what = format!("the kernel dropped {lost}, since its receive buffers were full");
        report.find(codes::SOCKET_OVERFLOW, Severity::Warning, owner, what, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_is_at_most_what_is_asked_for() {
        let (receive, send) = granted(16 << 10, 16 << 10).unwrap();
        assert_eq!((receive, send), (16 << 10, 16 << 10));
    }

    #[test]
    fn a_small_buffer_is_a_note_and_a_tiny_one_a_warning() {
        for (granted, asked, expected) in [
            (8 << 20, 8 << 20, None),
            (212_992, 8 << 20, Some(Severity::Note)),
            (65_536, 8 << 20, Some(Severity::Warning)),
            (4_096, 4_096, Some(Severity::Warning)),
        ] {
            let mut report = Report::default();
            find_small(codes::RECEIVE_BUFFER_SMALL, granted, asked, "rmem_max is 1", &mut report);
            assert_eq!(report.findings.first().map(|it| it.severity), expected, "{granted} of {asked}");
        }
    }
}
