//! Who is in other domains: they are asked at the well-known addresses of each, and heard for a short while.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use plainsong::InterfaceReport;
use plainsong::locator::Locator;
use plainsong::prelude::*;
use plainsong::survey::{self, GuidPrefix, HeardParticipant, Survey, ports};
use socket2::{InterfaceIndexOrAddress, SockRef};

use super::codes::{self, Severity};
use super::multicast::{group_socket, is_over};
use super::sockets;
use super::{Patient, report::Report};

/// Asked twice, everyone of this network has answered by then.
const LISTENS_FOR: Duration = Duration::from_millis(1_300);
const ASKS_AGAIN_AFTER: Duration = Duration::from_millis(400);
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Who does not hear the farewell has forgotten the question then.
const LEASE: plainsong::time::Duration = plainsong::time::Duration::from_secs(3);
/// Participants that are kept: anybody may announce many.
const HEARD_MAX: usize = 4_096;
/// Participants of a domain that a finding names.
const NAMED_MAX: usize = 4;
const DATAGRAM_BYTES_MAX: usize = 65_535;
/// Datagrams taken of one socket before others have their turn.
const TAKEN_AT_ONCE: usize = 64;

/// Who was heard, by domain.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    heard: BTreeMap<(u16, GuidPrefix), Heard>,
    /// Domains that were asked.
    asked: usize,
    /// Domains whose port could not be listened at.
    deaf: usize,
}

#[derive(Debug)]
struct Heard {
    participant: HeardParticipant,
    /// How far its stamps were ahead of the clock here.
    ahead: Option<plainsong::time::Duration>,
}

/// Listens for a while to all domains, or to this one alone, by the usable interfaces.
pub(super) fn look(own: u16, interfaces: &[InterfaceReport], asks: bool) -> Neighbours {
    let mut neighbours = Neighbours::default();
    let usable = interfaces.iter().filter(|it| it.unusable.is_none() && it.index != 0);
    let usable: Vec<(u32, Ipv4Addr)> = usable
        .filter_map(|it| {
            let ip = it.addresses.iter().find_map(|ip| match ip {
                IpAddr::V4(v4) => Some(*v4),
                IpAddr::V6(_) => None,
            });
            Some((it.index, ip?))
        })
        .collect();
    let mut groups = Vec::new();
    for domain in (0..=ports::DOMAIN_MAX).filter(|it| asks || *it == own) {
        match listen(domain, &usable) {
            Ok(socket) => groups.push((domain, socket)),
            Err(_) => neighbours.deaf += 1,
        }
    }
    let asker = if asks { Asker::new(own, &usable).ok() } else { None };
    neighbours.asked = asker.as_ref().map_or(0, |asker| asker.domains.len());
    let begin = Instant::now();
    let mut asked = 0;
    while begin.elapsed() < LISTENS_FOR {
        if let Some(asker) =
            asker.as_ref().filter(|_| begin.elapsed() >= ASKS_AGAIN_AFTER * asked && asked < 2)
        {
            asker.ask();
            asked += 1;
        }
        for (domain, socket) in &groups {
            neighbours.hear(socket, |_| Some(*domain));
        }
        if let Some(asker) = &asker {
            neighbours.hear(&asker.socket, |told| asker.domain_of(told));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    if let Some(asker) = asker {
        asker.leave();
    }
    neighbours
}

fn listen(domain: u16, interfaces: &[(u32, Ipv4Addr)]) -> io::Result<UdpSocket> {
    let socket = group_socket(ports::meta_multicast(domain))?;
    let mut joined = Err(io::Error::from(io::ErrorKind::AddrNotAvailable));
    for (index, _) in interfaces {
        let here = socket.join_multicast_v4_n(&ports::MULTICAST_V4, &InterfaceIndexOrAddress::Index(*index));
        // One interface that refuses does not matter where another works.
        joined = if here.is_ok() { here } else { joined };
    }
    joined?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Asks in all domains but one.
struct Asker {
    socket: UdpSocket,
    interfaces: Vec<Ipv4Addr>,
    domains: Vec<u16>,
    /// Its last two octets are the domain.
    prefix: GuidPrefix,
    listens: Vec<Locator>,
    /// Ports of this host where somebody of another domain may listen.
    local: Vec<(u16, u16)>,
}

impl Asker {
    fn new(own: u16, interfaces: &[(u32, Ipv4Addr)]) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.set_nonblocking(true)?;
        socket.set_multicast_ttl_v4(1)?;
        let port = socket.local_addr()?.port();
        let interfaces: Vec<Ipv4Addr> = interfaces.iter().map(|(_, ip)| *ip).collect();
        let random = RandomState::new().hash_one(port).to_be_bytes();
        let mut prefix = [0x01, 0xf5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        prefix[2..10].copy_from_slice(&random);
        let domains: Vec<u16> = (0..=ports::DOMAIN_MAX).filter(|domain| *domain != own).collect();
        let in_use = sockets::list().unwrap_or_default().into_iter().map(|socket| socket.port);
        let local = in_use.filter_map(|port| Some((domain_of_meta_port(port)?, port)));
        Ok(Self {
            listens: interfaces.iter().map(|ip| Locator::udp((*ip).into(), port)).collect(),
            local: local.filter(|(domain, _)| *domain != own).collect(),
            socket,
            interfaces,
            domains,
            prefix: GuidPrefix(prefix),
        })
    }

    fn prefix_in(&self, domain: u16) -> GuidPrefix {
        let mut prefix = self.prefix;
        prefix.0[10..].copy_from_slice(&domain.to_be_bytes());
        prefix
    }

    /// The domain of an answer: it says, or it is addressed to who asked there.
    fn domain_of(&self, told: &HeardParticipant) -> Option<u16> {
        let [.., high, low] = told.destination.0;
        let asked = u16::from_be_bytes([high, low]);
        let is_ours = told.destination == self.prefix_in(asked);
        told.domain.and_then(|domain| u16::try_from(domain).ok()).or_else(|| is_ours.then_some(asked))
    }

    fn ask(&self) {
        self.send(|survey, domain| survey.question(domain, Time::now()));
    }

    fn leave(&self) {
        self.send(|survey, _| survey.farewell(Time::now()));
    }

    /// To the group of each domain by each interface, and to sockets of this host. What cannot be sent is not
    /// answered: that there is no other domain is not claimed.
    fn send(&self, message: impl Fn(&Survey, u16) -> Vec<u8>) {
        let in_domain = |domain: u16| Survey {
            prefix: self.prefix_in(domain),
            tool: "doctor".to_owned(),
            listens: self.listens.clone(),
            lease_duration: LEASE,
        };
        for domain in &self.domains {
            let octets = message(&in_domain(*domain), *domain);
            for ip in &self.interfaces {
                let is_set = SockRef::from(&self.socket).set_multicast_if_v4(ip).is_ok();
                let _ = is_set
                    && self
                        .socket
                        .send_to(&octets, (ports::MULTICAST_V4, ports::meta_multicast(*domain)))
                        .is_ok();
            }
            for (_, port) in self.local.iter().filter(|(of, _)| of == domain) {
                let _ = self.socket.send_to(&octets, (Ipv4Addr::LOCALHOST, *port));
            }
        }
    }
}

/// The domain that has a port for the discovery traffic of a participant.
fn domain_of_meta_port(port: u16) -> Option<u16> {
    let domains = 0..=ports::DOMAIN_MAX;
    domains.into_iter().find(|domain| {
        ports::participant_indices(*domain).any(|index| ports::meta_unicast(*domain, index) == port)
    })
}

impl Neighbours {
    /// Takes what arrived at a socket.
    fn hear(&mut self, socket: &UdpSocket, domain_of: impl Fn(&HeardParticipant) -> Option<u16>) {
        let mut octets = vec![0; DATAGRAM_BYTES_MAX];
        for _ in 0..TAKEN_AT_ONCE {
            let length = match socket.recv_from(&mut octets) {
                Ok((length, _)) => length,
                Err(error) if is_over(&error) => return,
                // An answer of ICMP to something sent before.
                Err(_) => continue,
            };
            for participant in survey::heard(octets.get(..length).unwrap_or_default()) {
                let Some(domain) = domain_of(&participant) else { continue };
                let is_one =
                    participant.tool.is_none() && participant.domain.is_none_or(|it| it == u32::from(domain));
                if is_one && self.heard.len() < HEARD_MAX {
                    let ahead = participant.sent.map(|sent| sent.since(Time::now()));
                    self.heard.insert((domain, participant.prefix), Heard { participant, ahead });
                }
            }
        }
    }

    /// Participants, and by how much their stamps are ahead.
    pub(super) fn ahead(&self) -> impl Iterator<Item = (String, plainsong::time::Duration)> + '_ {
        self.heard.values().filter_map(|it| Some((label(&it.participant), it.ahead?)))
    }

    fn in_domain(&self, domain: u16) -> Vec<&HeardParticipant> {
        let of = self.heard.iter().filter(|((of, _), _)| *of == domain);
        of.map(|(_, heard)| &heard.participant).collect()
    }
}

/// What names a participant for people.
fn label(participant: &HeardParticipant) -> String {
    let HeardParticipant { name, process, product, prefix, .. } = participant;
    let name = if name.is_empty() { format!("{prefix:?}") } else { name.clone() };
    let process = process.to_string();
    let known: Vec<&str> =
        [process.as_str(), product.unwrap_or_default()].into_iter().filter(|it| !it.is_empty()).collect();
    if known.is_empty() { name } else { format!("{name} ({})", known.join(", ")) }
}

pub(super) fn check(patient: &Patient<'_>, report: &mut Report) {
    let Neighbours { heard, asked, deaf } = &patient.neighbours;
    let mut others: Vec<u16> = heard.keys().map(|(domain, _)| *domain).collect();
    others.dedup();
    others.retain(|domain| *domain != patient.domain);
    let found = match &others[..] {
        [] => "nobody is heard there".to_owned(),
        domains => format!("heard in {}", domains.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")),
    };
    let deaf = if *deaf > 0 { format!("; {deaf} could not be listened to") } else { String::new() };
    report.check("other domains", format!("{asked} asked, {found}{deaf}"));
    let severity = if patient.lacks_somebody() { Severity::Warning } else { Severity::Note };
    for domain in others {
        let participants = patient.neighbours.in_domain(domain);
        let named: Vec<_> = participants.iter().take(NAMED_MAX).map(|it| label(it)).collect();
        let more = match participants.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let what = format!("heard there, and not in domain {}: {}{more}", patient.domain, named.join("; "));
        report.find(codes::OTHER_DOMAIN, severity, format!("domain {domain}"), what, None);
    }
    for it in patient.neighbours.in_domain(patient.domain) {
        if !it.domain_tag.is_empty() {
            let what =
                format!("it has the domain tag {:?}, and hears those alone that have it, too", it.domain_tag);
            report.find(codes::OTHER_TAG, Severity::Warning, label(it), what, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_discovery_name_their_domain() {
        assert_eq!(domain_of_meta_port(7_410), Some(0));
        assert_eq!(domain_of_meta_port(7_411), None, "that is for user data");
        assert_eq!(domain_of_meta_port(7_400 + 250 * 42 + 10 + 2 * 7), Some(42));
        assert_eq!(domain_of_meta_port(80), None);
    }

    #[test]
    fn an_answer_tells_its_domain_or_whom_it_answers() {
        let asker = Asker::new(0, &[]).unwrap();
        let heard = |destination, domain| {
            let survey = Survey {
                prefix: GuidPrefix([9; 12]),
                tool: "test".into(),
                listens: Vec::new(),
                lease_duration: LEASE,
            };
            let told = survey::heard(&survey.question(5, Time::now())).remove(0);
            HeardParticipant { destination, domain, ..told }
        };
        assert_eq!(asker.domain_of(&heard(GuidPrefix::UNKNOWN, Some(7))), Some(7));
        assert_eq!(asker.domain_of(&heard(asker.prefix_in(42), None)), Some(42));
        assert_eq!(asker.domain_of(&heard(GuidPrefix([1; 12]), None)), None);
    }
}
