//! The interfaces of this host: which of them are used, and why the others are not.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use super::Via;
use crate::base::config::{Config, Use};

/// One interface with an IP address.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) index: u32,
    pub(crate) addresses: Vec<IpAddr>,
    /// The same, each with the prefix length of its network.
    pub(crate) networks: Vec<(IpAddr, u8)>,
    /// Why it is not used; `None`: it is.
    pub(crate) unusable: Option<&'static str>,
    pub(crate) counters: Arc<Counters>,
}

/// What happened on one interface.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) multicast_heard: AtomicU64,
    pub(crate) send_errors: AtomicU64,
    /// Error number of the host; 0 for none.
    last_error: AtomicI32,
}

impl Counters {
    pub(crate) fn refused(&self, error: &io::Error) {
        self.send_errors.fetch_add(1, Ordering::Relaxed);
        self.last_error.store(error.raw_os_error().unwrap_or_default(), Ordering::Relaxed);
    }

    pub(crate) fn last_error(&self) -> Option<String> {
        let code = self.last_error.load(Ordering::Relaxed);
        (code != 0).then(|| io::Error::from_raw_os_error(code).to_string())
    }
}

impl Interface {
    /// Whether that is its name or one of its addresses.
    fn is_named(&self, text: &str) -> bool {
        text == self.name || text.parse().is_ok_and(|address: IpAddr| self.addresses.contains(&address))
    }

    /// Whether it reaches this host only.
    pub(crate) fn is_loopback(&self) -> bool {
        self.addresses.iter().any(IpAddr::is_loopback)
    }

    /// How a multicast datagram leaves here.
    pub(super) fn via(&self) -> Via {
        let ipv4 = self.addresses.iter().find_map(|address| match address {
            IpAddr::V4(v4) => Some(*v4),
            IpAddr::V6(_) => None,
        });
        Via { interface: self.index, source: ipv4.unwrap_or(Ipv4Addr::UNSPECIFIED) }
    }

    /// Whether datagrams of that family can leave here.
    pub(crate) fn speaks(&self, ipv4: bool) -> bool {
        self.unusable.is_none() && self.addresses.iter().any(|address| address.is_ipv4() == ipv4)
    }

    /// Addresses that others can be told. A link-local IPv6 address means nothing without an interface.
    pub(crate) fn announced(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let link_local = |address: &IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        let usable = self.unusable.is_none();
        self.addresses.iter().copied().filter(move |address| usable && !link_local(address))
    }

    /// Same in all but its counters.
    fn is_like(&self, other: &Self) -> bool {
        (&self.name, self.index, &self.networks, self.unusable)
            == (&other.name, other.index, &other.networks, other.unusable)
    }
}

/// Whether two lists differ in anything but counters.
pub(crate) fn differ(before: &[Interface], after: &[Interface]) -> bool {
    before.len() != after.len() || before.iter().zip(after).any(|(before, after)| !before.is_like(after))
}

/// All interfaces with an IP address, sorted by index; counters are taken over from `before`.
pub(crate) fn list(config: &Config, before: &[Interface]) -> io::Result<Vec<Interface>> {
    let mut interfaces: Vec<Interface> = Vec::new();
    for found in if_addrs::get_if_addrs()? {
        let Some(index) = found.index else { continue };
        if found.ip().is_ipv6() && config.ipv6 == Use::Off {
            continue;
        }
        let position = interfaces.partition_point(|interface| interface.index < index);
        if interfaces.get(position).is_none_or(|interface| interface.index != index) {
            let known = before.iter().find(|interface| interface.index == index);
            let counters = known.map(|known| Arc::clone(&known.counters)).unwrap_or_default();
            let unusable = (!found.is_oper_up()).then_some("it is down");
            let name = found.name.clone();
            let (addresses, networks) = (Vec::new(), Vec::new());
            interfaces.insert(position, Interface { name, index, addresses, networks, unusable, counters });
        }
        let prefix_length = match &found.addr {
            if_addrs::IfAddr::V4(v4) => v4.prefixlen,
            if_addrs::IfAddr::V6(v6) => v6.prefixlen,
        };
        interfaces[position].addresses.push(found.ip());
        interfaces[position].networks.push((found.ip(), prefix_length));
    }
    for interface in &mut interfaces {
        interface.addresses.sort_unstable();
        interface.networks.sort_unstable();
        if interface.unusable.is_none() && !is_selected(interface, config) {
            interface.unusable = Some("PLAINSONG_INTERFACES does not name it");
        }
    }
    Ok(interfaces)
}

fn is_selected(interface: &Interface, config: &Config) -> bool {
    let Some(selected) = &config.interfaces else { return true };
    interface.is_loopback() || selected.iter().any(|text| interface.is_named(text))
}

/// What the settings name that none of these is.
pub(super) fn missing<'a>(config: &'a Config, interfaces: &'a [Interface]) -> impl Iterator<Item = &'a str> {
    let named = config.interfaces.iter().flatten().map(String::as_str);
    named.filter(|text| !interfaces.iter().any(|interface| interface.is_named(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, addresses: &[&str]) -> Interface {
        let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let networks = addresses.iter().map(|address| (*address, 24)).collect();
        Interface {
            name: name.to_owned(),
            index: 7,
            addresses,
            networks,
            unusable: None,
            counters: Arc::default(),
        }
    }

    #[test]
    fn interfaces_are_selected_by_name_or_address_and_loopback_always() {
        let config =
            Config { interfaces: Some(vec!["eth1".to_owned(), "10.0.0.1".to_owned()]), ..Config::default() };
        assert!(is_selected(&interface("eth1", &["192.0.2.1"]), &config));
        assert!(is_selected(&interface("eth0", &["10.0.0.1"]), &config));
        assert!(!is_selected(&interface("eth0", &["10.0.0.2"]), &config));
        assert!(is_selected(&interface("lo", &["127.0.0.1"]), &config));
        let here = [interface("eth0", &["10.0.0.1"]), interface("lo", &["127.0.0.1"])];
        assert_eq!(missing(&config, &here).collect::<Vec<_>>(), ["eth1"]);
    }

    #[test]
    fn link_local_addresses_are_not_announced() {
        let interface = interface("eth0", &["10.0.0.1", "fe80::1", "2001:db8::1"]);
        let announced: Vec<_> = interface.announced().map(|address| address.to_string()).collect();
        assert_eq!(announced, ["10.0.0.1", "2001:db8::1"]);
        assert!(interface.speaks(true) && interface.speaks(false));
    }
}
