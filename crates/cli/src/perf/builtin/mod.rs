//! Adapters that are part of the program: Plainsong itself, and the floors that every product stands on.

mod datagram;
mod encode;
mod plainsong;
mod registry;
mod shared;

use std::net::IpAddr;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use plainsong_perfkit::Adapter;
use plainsong_perfkit::spec::SessionSpec;

use self::plainsong::Setting;

/// What a worker speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Name {
    /// This product.
    Plainsong,
    /// This product with the setting `busy_poll`.
    PlainsongBusy,
    /// This product without the setting `adaptive_poll`: whoever receives has slept.
    PlainsongWoken,
    /// This product without shared memory: what it writes goes by UDP within a host, too.
    PlainsongUdp,
    /// This product, whose samples are filled in the memory that its readers see: all but their first octets
    /// is left as it was found there, as an application does whose device fills them.
    PlainsongLoan,
    /// This product with socket buffers as Linux gives them to anyone, also when it runs as root.
    PlainsongSmallBuffers,
    /// This product, all of whose topics have CONSISTENCY ATOMIC.
    PlainsongAtomic,
    /// The same without shared memory.
    PlainsongAtomicUdp,
    /// UDP sockets that block.
    Udp,
    /// UDP sockets that are looked at all the time.
    UdpBusy,
    /// Unix sockets that block.
    Unix,
    /// Shared memory that is looked at all the time.
    ShmSpin,
    /// Shared memory, with the kernel's help to sleep and wake.
    ShmFutex,
}

/// Options of `plainsong perf worker`.
#[derive(Args)]
pub(crate) struct Options {
    /// What it speaks.
    #[arg(long)]
    adapter: Name,
}

impl Options {
    /// A worker of this name, if there is such an adapter.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Name::from_str(name, false).ok().map(|adapter| Self { adapter })
    }
}

/// Is a worker on standard input and output.
pub(crate) fn run(options: &Options) -> ExitCode {
    let mut adapter: Box<dyn Adapter> = match options.adapter {
        Name::Plainsong => Box::new(plainsong::Product(Setting::Usual)),
        Name::PlainsongBusy => Box::new(plainsong::Product(Setting::BusyPoll)),
        Name::PlainsongWoken => Box::new(plainsong::Product(Setting::Woken)),
        Name::PlainsongUdp => Box::new(plainsong::Product(Setting::Udp)),
        Name::PlainsongLoan => Box::new(plainsong::Product(Setting::Loan)),
        Name::PlainsongSmallBuffers => Box::new(plainsong::Product(Setting::SmallBuffers)),
        Name::PlainsongAtomic => Box::new(plainsong::Product(Setting::Atomic)),
        Name::PlainsongAtomicUdp => Box::new(plainsong::Product(Setting::AtomicUdp)),
        Name::Udp => Box::new(datagram::Floor::new(datagram::Kind::Udp)),
        Name::UdpBusy => Box::new(datagram::Floor::new(datagram::Kind::UdpBusy)),
        Name::Unix => Box::new(datagram::Floor::new(datagram::Kind::Unix)),
        Name::ShmSpin => Box::new(shared::Floor { spinning: true }),
        Name::ShmFutex => Box::new(shared::Floor { spinning: false }),
    };
    plainsong_perfkit::worker::main(&mut *adapter)
}

/// The peers that are not this host.
fn other_hosts(spec: &SessionSpec) -> Vec<String> {
    let is_loopback = |host: &str| host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let is_here = |host: &str| spec.listen.as_deref() == Some(host) || is_loopback(host);
    spec.peers.iter().filter(|host| !is_here(host)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_with_the_own_address_is_this_host() {
        let spec = |listen: &str, peers: &[&str]| SessionSpec {
            listen: Some(listen.to_owned()),
            peers: peers.iter().map(|&host| host.to_owned()).collect(),
            ..SessionSpec::default()
        };
        assert!(other_hosts(&spec("127.0.0.1", &["127.0.0.1"])).is_empty());
        assert_eq!(other_hosts(&spec("10.77.0.1", &["10.77.0.1", "10.77.0.2"])), ["10.77.0.2"]);
    }
}
