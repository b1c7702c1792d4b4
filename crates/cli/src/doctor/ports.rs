//! The well-known ports of the domain: who has them, and whether anybody else may.

use std::fs;
use std::io;
use std::ops::RangeInclusive;

use plainsong::survey::ports;

use super::codes::{self, Severity};
use super::multicast::group_socket;
use super::sockets::UdpSocketEntry;
use super::{Patient, report::Report};

/// Owners of ports that a line names.
const NAMED_MAX: usize = 12;

pub(super) fn check(patient: &Patient<'_>, sockets: &Option<Vec<UdpSocketEntry>>, report: &mut Report) {
    let range = of_domain(patient.domain);
    let own = std::process::id();
    match sockets {
        None => report.check("ports", format!("{}; the system does not tell who has them", words(&range))),
        Some(sockets) => {
            let is_own = |it: &UdpSocketEntry| it.process.as_ref().is_some_and(|it| it.id == own);
            let mut taken: Vec<_> =
                sockets.iter().filter(|it| range.contains(&it.port) && !is_own(it)).collect();
            taken.sort_by_key(|it| it.port);
            let named: Vec<_> =
                taken.iter().take(NAMED_MAX).map(|it| format!("{} {}", it.port, it.owner())).collect();
            let more = match taken.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let taken =
                if named.is_empty() { "nobody else has one".to_owned() } else { named.join(", ") + &more };
            report.check("ports", format!("{}: {taken}", words(&range)));
        }
    }
    let port = ports::meta_multicast(patient.domain);
    if patient.config.multicast
        && let Err(error) = group_socket(port)
        && error.kind() == io::ErrorKind::AddrInUse
    {
        let holder = sockets.iter().flatten().find(|it| it.port == port);
        let holder = holder.map_or_else(|| "another process".to_owned(), UdpSocketEntry::owner);
        let what = format!("{holder} has UDP port {port} for itself");
        report.find(codes::PORT_TAKEN, Severity::Error, format!("port {port}"), what, None);
    }
    if let Some(ephemeral) = ephemeral_ports()
        && ephemeral.contains(range.end())
    {
        let what = format!(
            "the kernel chooses ports from {} for any program, and the domain has {}",
            words(&ephemeral),
            words(&range)
        );
        report.find(
            codes::PORTS_EPHEMERAL,
            Severity::Warning,
            format!("domain {}", patient.domain),
            what,
            None,
        );
    }
}

/// The ports of a domain.
pub(super) fn of_domain(domain: u16) -> RangeInclusive<u16> {
    let last = *ports::participant_indices(domain).end();
    ports::meta_multicast(domain)..=ports::user_unicast(domain, last)
}

fn words(range: &RangeInclusive<u16>) -> String {
    format!("{} to {}", range.start(), range.end())
}

/// From where the kernel takes ports for who names none (Linux).
fn ephemeral_ports() -> Option<RangeInclusive<u16>> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    Some(numbers.next()?.ok()?..=numbers.next()?.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_have_ports_of_their_own() {
        assert_eq!(of_domain(0), 7_400..=7_649);
        assert_eq!(of_domain(1).start(), &7_650);
        assert_eq!(of_domain(232).end(), &65_535);
    }
}
