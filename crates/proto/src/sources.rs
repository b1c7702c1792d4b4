//! Where the traffic of a matched endpoint may come from (R8).
//!
//! Control traffic is checked in discovery, DATA, HEARTBEAT, GAP and ACKNACK of user endpoints in each reader
//! and writer; the rest is counted as `SpoofSuspected`. Within this host an address is everyone's: control
//! traffic is told apart by its socket, user traffic is not.

use std::sync::Arc;

use crate::guid::Guid;
use crate::locator::Locator;

/// Addresses from which a matched endpoint is heard; by default any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Their ports are 0: who sends chooses one.
    addresses: Option<Arc<[Locator]>>,
    /// Loopback addresses as well.
    loopback: bool,
}

/// Who says something, and from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The endpoint.
    pub guid: Guid,
    /// Where the datagram came from.
    pub from: Locator,
}

/// From where an endpoint was heard.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    sources: Sources,
    /// From where it was heard last: most often it is heard from there again.
    last: Locator,
}

impl Sources {
    /// These addresses, whatever their ports, and with `loopback` those of the loopback interface.
    #[must_use]
    pub fn new(addresses: impl IntoIterator<Item = Locator>, loopback: bool) -> Self {
        let mut known: Vec<Locator> = Vec::new();
        for address in addresses.into_iter().map(address_of) {
            if !known.contains(&address) {
                known.push(address);
            }
        }
        Self { addresses: Some(known.into()), loopback }
    }

    /// Whether a datagram from there may be the endpoint's.
    #[must_use]
    pub fn admit(&self, from: &Locator) -> bool {
        let Some(addresses) = &self.addresses else { return true };
        addresses.contains(&address_of(*from))
            || (self.loopback && from.ip().is_some_and(|ip| ip.is_loopback()))
    }
}

impl Sender {
    /// An endpoint from nowhere: where any source is good.
    #[must_use]
    pub const fn unplaced(guid: Guid) -> Self {
        Self { guid, from: Locator::INVALID }
    }
}

impl Origin {
    pub(crate) const fn new(sources: Sources) -> Self {
        Self { sources, last: Locator::INVALID }
    }

    pub(crate) fn set(&mut self, sources: &Sources) {
        if self.sources != *sources {
            *self = Self::new(sources.clone());
        }
    }

    /// Whether a datagram from there may be the endpoint's.
    #[inline]
    pub(crate) fn admit(&mut self, from: &Locator) -> bool {
        if self.last == *from {
            return true;
        }
        let admitted = self.sources.admit(from);
        if admitted {
            self.last = *from;
        }
        admitted
    }
}

const fn address_of(locator: Locator) -> Locator {
    Locator { port: 0, ..locator }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(ip: &str, port: u16) -> Locator {
        Locator::udp(ip.parse().unwrap(), port)
    }

    #[test]
    fn r8_a_source_is_an_address_and_any_port() {
        let sources = Sources::new([udp("10.0.0.2", 7411), udp("fd00::2", 7411)], false);
        let admitted = |ip| sources.admit(&udp(ip, 40_000));
        assert!(admitted("10.0.0.2") && admitted("fd00::2"));
        assert!(!admitted("10.0.0.3") && !admitted("127.0.0.1") && !admitted("fd00::3"));
        let here = Sources::new([udp("10.0.0.2", 7411)], true);
        assert!(here.admit(&udp("127.0.0.5", 1)) && !here.admit(&udp("10.0.0.3", 1)));
        assert!(Sources::default().admit(&udp("192.0.2.1", 1)), "nobody told");
        assert!(!Sources::new([], false).admit(&udp("192.0.2.1", 1)));
    }

    #[test]
    fn r8_what_was_admitted_is_asked_again_when_the_sources_change() {
        let mut origin = Origin::new(Sources::new([udp("10.0.0.2", 0)], false));
        assert!(!origin.admit(&udp("10.0.0.3", 1)) && origin.admit(&udp("10.0.0.2", 1)));
        assert!(origin.admit(&udp("10.0.0.2", 1)) && !origin.admit(&udp("10.0.0.3", 1)));
        origin.set(&Sources::new([udp("10.0.0.3", 0)], false));
        assert!(!origin.admit(&udp("10.0.0.2", 1)) && origin.admit(&udp("10.0.0.3", 1)));
    }
}
