//! The well-known ports of the domain: who has them, and whether anybody else may.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::ops::RangeInclusive;

use plainsong::survey::ports;

use super::codes::{self, Severity};
use super::multicast::group_socket;
use super::sockets::UdpSocketEntry;
use super::{Patient, report::Report};

/// Owners of ports that a line names; an owner's ports are told together, each once.
const NAMED_MAX: usize = 12;

pub(super) fn check(patient: &Patient<'_>, sockets: &Option<Vec<UdpSocketEntry>>, report: &mut Report) {
    let range = of_domain(patient.domain);
    let own = std::process::id();
    match sockets {
        None => report.check("ports", format!("{}; the system does not tell who has them", words(&range))),
        Some(sockets) => {
            let is_own = |it: &UdpSocketEntry| it.process.as_ref().is_some_and(|it| it.id == own);
            let taken = sockets.iter().filter(|it| range.contains(&it.port) && !is_own(it));
            let taken = by_owner(taken.map(|it| (it.owner(), it.port)));
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

/// Who has which ports: a process has several sockets on one.
fn by_owner(sockets: impl Iterator<Item = (String, u16)>) -> String {
    let mut owners: BTreeMap<String, BTreeSet<u16>> = BTreeMap::new();
    for (owner, port) in sockets {
        owners.entry(owner).or_default().insert(port);
    }
    if owners.is_empty() {
        return "nobody else has one".to_owned();
    }
    let named = owners.iter().take(NAMED_MAX).map(|(owner, ports)| {
        let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
        format!("{owner} has {}", ports.join(", "))
    });
    let named = named.collect::<Vec<_>>().join("; ");
    match owners.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named}; and {more} more"),
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
    fn each_port_of_an_owner_is_told_once() {
        let sockets = [
            ("b (process 2)", 7_400),
            ("a (process 1)", 7_411),
            ("a (process 1)", 7_400),
            ("a (process 1)", 7_400),
        ];
        let told = by_owner(sockets.into_iter().map(|(owner, port)| (owner.to_owned(), port)));
        assert_eq!(told, "a (process 1) has 7400, 7411; b (process 2) has 7400");
        assert_eq!(by_owner(std::iter::empty()), "nobody else has one");
    }

    #[test]
    fn domains_have_ports_of_their_own() {
        assert_eq!(of_domain(0), 7_400..=7_649);
        assert_eq!(of_domain(1).start(), &7_650);
        assert_eq!(of_domain(232).end(), &65_535);
    }
}
