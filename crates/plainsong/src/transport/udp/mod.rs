//! UDP: the sockets of one domain, its ports, groups and locators.
//!
//! Sending takes no lock; an error on one destination is counted for its interface and never keeps datagrams
//! from others (RTPS 2.5 §9.6 for ports and groups).

mod interfaces;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod name;
mod neighbours;
#[cfg(target_os = "linux")]
mod netlink;
#[cfg(any(test, not(target_os = "linux")))]
#[cfg_attr(target_os = "linux", allow(dead_code, reason = "on Linux only its tests use it"))]
mod portable;
mod probe;
mod socket;
#[cfg(target_os = "linux")]
mod waiting;

#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use plainsong_proto::discovery::LocalLocators;
use plainsong_proto::locator::{Locator, ports};

use super::{Batch, Input, Kind, Received, Sent, Traffic, Transport, WokenBy};
use crate::base::config::{Config, Peer, Use};
use crate::base::words::counted;
use interfaces::{Counters, Interface};
use socket::{BufferSizes, Socket};

#[cfg(not(target_os = "linux"))]
use portable as platform;
#[cfg(not(target_os = "linux"))]
use portable::Watcher;
#[cfg(target_os = "linux")]
use {linux as platform, netlink::Watcher};

pub(crate) use platform::{Alarm, Receiver, ThreadWaker};
use platform::{Sender, Waker};

/// A peer without a port is asked at the well-known ports of this many participants.
const PEER_PARTICIPANTS: u16 = 10;
/// Sockets that a metatraffic thread waits for, at most: group and unicast, IPv4 and IPv6.
const META_SOCKETS_MAX: usize = 6;

/// Told of each datagram that the host refused: the interface it was for (0: unicast) and why.
type Refused<'a> = dyn Fn(u32, &io::Error) + 'a;
/// Told where a datagram was to go, of how many octets, that is longer than the path takes: whether it is
/// left out. If not, IP cuts it.
type TooLong<'a> = dyn Fn(SocketAddr, usize) -> bool + 'a;

/// Octets of a UDP payload that a path takes of which the host tells nothing: Ethernet, with a header of
/// IPv6.
const PATH_BYTES: usize = 1_448;
/// What a path takes that is said to take more than it just did: the least of IPv6.
const PATH_BYTES_NARROW: usize = 1_232;
/// What every path is taken to take, and the most that any is used for.
const PATH_BYTES_MIN: usize = 512;
const PATH_BYTES_MAX: usize = 65_000;

/// The interface that a multicast datagram leaves by. The host would choose one by its routes, and on
/// loopback without such a route even the source address 0.0.0.0.
#[derive(Clone, Copy, Debug)]
struct Via {
    interface: u32,
    /// For IPv4; unspecified otherwise.
    source: Ipv4Addr,
}

/// What ended a wait.
#[derive(Clone, Copy, Debug)]
struct Ready {
    interfaces: bool,
    /// In the order of the sockets waited for.
    sockets: [bool; META_SOCKETS_MAX],
}

/// What is known of one interface of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct InterfaceReport {
    /// Its name; `*` for unicast, where the host chooses.
    pub name: String,
    /// Its number; 0 for unicast, and for what is not there.
    pub index: u32,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Why it is not used; `None`: it is.
    pub unusable: Option<Cow<'static, str>>,
    /// Datagrams of others that arrived by multicast.
    pub multicast_heard: u64,
    /// Datagrams that the host refused to send, and groups it refused to join.
    pub send_errors: u64,
    /// The last such refusal.
    pub last_error: Option<String>,
    /// Datagrams that could not be handed to the host in one piece, though it offered that: from then on they
    /// go one by one. For unicast.
    pub uncut: u64,
    /// Datagrams that the host dropped because the receive buffer of a socket had no room for them. For
    /// unicast, with those to groups.
    pub overflows: u64,
    /// Datagrams that were longer than their path to another host takes, and were not sent: what they held
    /// follows in shorter ones. For unicast.
    pub too_long: u64,
}

/// What goes by unicast.
const UNICAST: &str = "unicast, also of user data";

impl fmt::Display for InterfaceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name == "*" { UNICAST } else { &self.name };
        write!(f, "{name}")?;
        for address in &self.addresses {
            write!(f, " {address}")?;
        }
        if let Some(reason) = &self.unusable {
            return write!(f, ": not used, {reason}");
        }
        if self.uncut > 0 {
            f.write_str(", datagrams go one by one since the host did not cut them")?;
        }
        if self.overflows > 0 {
            let lost = counted(self.overflows, "datagram");
            write!(f, ", {lost} lost since receive buffers were full")?;
        }
        if self.too_long > 0 {
            let cut = counted(self.too_long, "datagram");
            write!(f, ", {cut} cut anew since the path took less")?;
        }
        // Where multicast is heard, a family of addresses without it is no news.
        match (self.multicast_heard, &self.last_error) {
            (1.., _) => f.write_str(", multicast heard"),
            (0, Some(error)) => {
                write!(f, ", {} refused, last: {error}", counted(self.send_errors, "datagram"))
            }
            (0, None) => Ok(()),
        }
    }
}

/// The sockets of a domain and what is known of the host's interfaces.
pub(crate) struct Udp {
    domain: u16,
    config: Config,
    /// IPv4 before IPv6; at least one.
    families: Vec<Family>,
    /// Sorted by index.
    interfaces: ArcSwap<Vec<Interface>>,
    unicast: Counters,
    too_long: AtomicU64,
    peers: ArcSwap<Vec<Locator>>,
    /// `None`: the host does not tell of changes.
    watcher: Option<Watcher>,
    waker: Waker,
}

/// The sockets of one IP version.
struct Family {
    group: IpAddr,
    /// Discovery traffic to this process; everything is sent from here, and cut by nobody on its way.
    meta: Socket,
    /// User traffic to this process; what has to be cut by IP leaves here.
    user: Socket,
    /// Discovery traffic to everyone; `None` when multicast is off or its port refused.
    multicast: Option<Socket>,
}

impl Udp {
    /// Opens the sockets. A port in use is never an error: another one is taken.
    ///
    /// # Errors
    /// The host has neither IPv4 nor IPv6, or refuses sockets.
    pub(crate) fn open(domain: u16, config: &Config) -> io::Result<Self> {
        // Before the interfaces are listed, so that no change falls in between.
        let watcher = Watcher::new().ok();
        let mut families = Family::open_all(domain, config)?;
        let unicast = Counters::default();
        for family in families.iter_mut().filter(|_| config.multicast) {
            let sizes = BufferSizes::of(config);
            match Socket::bind_group(family.group, ports::meta_multicast(domain), sizes) {
                Ok(socket) => family.multicast = Some(socket),
                // Deaf to groups, but others still hear us, and answer by unicast.
                Err(error) => unicast.refused(&error),
            }
        }
        let transport = Self {
            domain,
            config: config.clone(),
            families,
            interfaces: ArcSwap::default(),
            unicast,
            too_long: AtomicU64::new(0),
            peers: ArcSwap::default(),
            watcher,
            waker: Waker::new()?,
        };
        transport.refresh()?;
        Ok(transport)
    }

    /// Whether a datagram for another host is left out that is longer than its path takes; if so, the address
    /// is noted.
    fn leaves_out(&self, to: IpAddr, bytes: usize, paths: &mut Vec<(IpAddr, usize)>) -> bool {
        let own = self.interfaces.load().iter().any(|interface| interface.addresses.contains(&to));
        let leaves_out = !own && !to.is_multicast();
        if leaves_out {
            self.too_long.fetch_add(1, Ordering::Relaxed);
            if !paths.iter().any(|(address, _)| *address == to) {
                paths.push((to, self.narrower_path_bytes(to, bytes)));
            }
        }
        leaves_out
    }

    /// Octets of a UDP payload that the path to an address takes, as far as this host knows now.
    fn path_bytes_of(&self, address: IpAddr) -> usize {
        let headers = if address.is_ipv4() { 20 + 8 } else { 40 + 8 };
        let told = platform::path_mtu(address).map(|bytes| bytes.saturating_sub(headers));
        told.unwrap_or(PATH_BYTES).clamp(PATH_BYTES_MIN, PATH_BYTES_MAX).min(self.config.datagram_bytes_max)
    }

    /// Where a locator leads, and the sockets of its family.
    fn place(&self, locator: &Locator) -> Option<(&Family, SocketAddr)> {
        let (ip, port) = (locator.ip()?, locator.udp_port()?);
        Some((self.family(ip)?, SocketAddr::new(ip, port)))
    }

    /// False: it does not lead anywhere from here.
    fn send_to<'a>(&'a self, sender: &mut Sender<'a>, destination: &Locator) -> bool {
        let Some((family, to)) = self.place(destination) else { return false };
        if to.ip().is_multicast() {
            self.send_to_group(sender, family, to);
        } else {
            sender.to(&family.meta, &family.user, to, None);
        }
        true
    }

    /// A group is reached on every interface: the host's default one may be the wrong one, or down.
    fn send_to_group<'a>(&'a self, sender: &mut Sender<'a>, family: &'a Family, mut to: SocketAddr) {
        let is_ipv4 = to.is_ipv4();
        for interface in self.interfaces.load().iter().filter(|it| it.speaks(is_ipv4)) {
            if let SocketAddr::V6(to) = &mut to {
                to.set_scope_id(interface.index);
            }
            sender.to(&family.meta, &family.user, to, Some(interface.via()));
        }
    }

    fn counters<'a>(&'a self, interfaces: &'a [Interface], index: u32) -> &'a Counters {
        let found = interfaces.binary_search_by_key(&index, |interface| interface.index);
        found.ok().and_then(|position| interfaces.get(position)).map_or(&self.unicast, |it| &it.counters)
    }

    fn family(&self, address: IpAddr) -> Option<&Family> {
        self.families.iter().find(|family| family.is_ipv4() == address.is_ipv4())
    }

    /// Lists the interfaces anew and joins the groups on them. True when something changed.
    ///
    /// # Errors
    /// The host does not list its interfaces; what was known stays.
    pub(crate) fn refresh(&self) -> io::Result<bool> {
        let before = self.interfaces.load();
        let after = interfaces::list(&self.config, &before)?;
        for family in &self.families {
            let Some(socket) = &family.multicast else { continue };
            for interface in after.iter().filter(|interface| interface.speaks(family.is_ipv4())) {
                // Joining again does no harm and repairs what the host forgot while the interface was away.
                if let Err(error) = socket.join(family.group, interface.index) {
                    interface.counters.refused(&error);
                }
            }
        }
        let peers: Vec<_> = self.config.peers.iter().flat_map(|peer| resolve(peer, self.domain)).collect();
        let changed = interfaces::differ(&before, &after) || **self.peers.load() != peers;
        self.peers.store(Arc::new(peers));
        self.interfaces.store(Arc::new(after));
        Ok(changed)
    }

    /// What is known of each interface, of those that the settings name in vain, and of unicast at the end.
    pub(crate) fn report(&self) -> Vec<InterfaceReport> {
        let row = |name: &str, index, addresses: &[IpAddr], unusable, counters: &Counters| InterfaceReport {
            name: name.to_owned(),
            index,
            addresses: addresses.to_vec(),
            unusable: Option::map(unusable, Cow::Borrowed),
            multicast_heard: counters.multicast_heard.load(Ordering::Relaxed),
            send_errors: counters.send_errors.load(Ordering::Relaxed),
            last_error: counters.last_error(),
            uncut: if name == "*" { self.families.iter().map(Family::uncut).sum() } else { 0 },
            overflows: if name == "*" { self.overflows() } else { 0 },
            too_long: if name == "*" { self.too_long.load(Ordering::Relaxed) } else { 0 },
        };
        let interfaces = self.interfaces.load();
        let rows =
            interfaces.iter().map(|it| row(&it.name, it.index, &it.addresses, it.unusable, &it.counters));
        let none = Counters::default();
        let missing = interfaces::missing(&self.config, &interfaces);
        let missing = missing.map(|name| row(name, 0, &[], Some("this host has no such interface"), &none));
        rows.chain(missing).chain([row("*", 0, &[], None, &self.unicast)]).collect()
    }

    /// Sockets for discovery traffic, and which of them are for groups.
    fn discovery_sockets(&self) -> impl Iterator<Item = (&Socket, bool)> {
        let unicast = self.families.iter().map(|family| (&family.meta, false));
        unicast.chain(self.families.iter().filter_map(|family| Some((family.multicast.as_ref()?, true))))
    }

    /// True when interfaces changed.
    fn receive_discovery(
        &self,
        receiver: &mut Receiver,
        wait: bool,
        mut each: impl FnMut(Received<'_>),
    ) -> bool {
        let watcher = self.watcher.as_ref();
        let sockets = self.discovery_sockets().map(|(socket, _)| socket);
        let Ok(ready) = platform::wait(sockets, watcher, &self.waker, wait) else { return false };
        let mut changed = false;
        if ready.interfaces {
            watcher.into_iter().for_each(Watcher::drain);
            // When the host cannot list them now, its next message is another chance.
            changed = self.refresh().unwrap_or(false);
        }
        for ((socket, is_multicast), is_ready) in self.discovery_sockets().zip(ready.sockets) {
            if is_ready {
                self.receive_batch(receiver, socket, false, |received| {
                    if is_multicast {
                        self.heard(&received);
                    }
                    each(received);
                });
            }
        }
        changed
    }

    fn receive_batch(
        &self,
        receiver: &mut Receiver,
        socket: &Socket,
        wait: bool,
        mut each: impl FnMut(Received<'_>),
    ) {
        let received = receiver.receive(socket, wait, |it| {
            if self.accepts(&it) {
                each(it);
            }
        });
        if let Err(error) = received {
            let harmless = matches!(
                error.kind(),
                io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
            );
            if !harmless {
                // Never in a tight loop, whatever is wrong with the socket.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// The same of a path that did not take a datagram of so many octets, whatever the host says now.
    fn narrower_path_bytes(&self, address: IpAddr, refused_bytes: usize) -> usize {
        match self.path_bytes_of(address) {
            told if told < refused_bytes => told,
            _ if refused_bytes > PATH_BYTES_NARROW => PATH_BYTES_NARROW,
            _ => PATH_BYTES_MIN,
        }
    }

    /// The sockets hear every interface; those that the user did not select are ignored here.
    fn accepts(&self, received: &Received<'_>) -> bool {
        if self.config.interfaces.is_none() || received.interface == 0 {
            return true;
        }
        self.interfaces.load().iter().any(|it| it.index == received.interface && it.unusable.is_none())
    }

    /// Counts a datagram to the group, unless it is our own.
    fn heard(&self, received: &Received<'_>) {
        let interfaces = self.interfaces.load();
        let Some(from) = received.from.ip() else { return };
        let own_port =
            self.family(from).is_some_and(|family| u32::from(family.meta.port) == received.from.port);
        if !own_port || !interfaces.iter().any(|interface| interface.addresses.contains(&from)) {
            let counters = self.counters(&interfaces, received.interface);
            counters.multicast_heard.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Transport for Udp {
    type Receiver = Receiver;

    fn inputs(&self) -> Vec<Input> {
        let input = |traffic, name| Input { transport: Kind::Udp, traffic, name };
        let user = |socket| input(Traffic::User(socket), if socket == 0 { "rx-data" } else { "rx-data6" });
        [input(Traffic::Discovery, "rx-meta")].into_iter().chain((0..self.families.len()).map(user)).collect()
    }

    fn receiver(&self) -> Receiver {
        Receiver::new()
    }

    fn expect_one(receiver: &mut Receiver) {
        receiver.expect_one();
    }

    fn reaches(&self, locator: &Locator) -> bool {
        self.place(locator).is_some()
    }

    fn send(&self, batch: &Batch<'_>) -> Sent {
        let left_out: RefCell<Vec<(IpAddr, usize)>> = RefCell::default();
        // Interfaces are looked at where something is refused, or goes to a group: not for each datagram.
        let refused = |interface, error: &io::Error| {
            self.counters(&self.interfaces.load(), interface).refused(error);
        };
        let too_long = |to: SocketAddr, bytes: usize| {
            batch.recuts && self.leaves_out(to.ip(), bytes, &mut left_out.borrow_mut())
        };
        let mut sender = Sender::new(batch.traffic_class, &refused, &too_long);
        let mut has_others = false;
        for transmit in batch.out.transmits() {
            sender.datagram(batch.out.slices(transmit));
            for destination in batch.out.destinations(transmit) {
                has_others |= !self.send_to(&mut sender, destination);
            }
        }
        sender.finish();
        Sent { left_out: left_out.into_inner(), has_others }
    }

    #[inline]
    fn receive(
        &self,
        traffic: Traffic,
        receiver: &mut Receiver,
        wait: bool,
        each: impl FnMut(Received<'_>),
    ) -> bool {
        match traffic {
            Traffic::Discovery => return self.receive_discovery(receiver, wait, each),
            Traffic::User(socket) => {
                if let Some(family) = self.families.get(socket) {
                    self.receive_batch(receiver, &family.user, wait && !self.config.busy_poll, each);
                }
            }
            Traffic::Links => {}
        }
        false
    }

    fn wait(
        &self,
        traffic: Traffic,
        waker: Option<&ThreadWaker>,
        timeout: Option<Duration>,
    ) -> io::Result<WokenBy> {
        match traffic {
            Traffic::Discovery => {
                platform::await_any(self.discovery_sockets().map(|(it, _)| it), waker, timeout)
            }
            Traffic::User(socket) => {
                let family = self.families.get(socket).ok_or(io::ErrorKind::NotFound)?;
                platform::await_any([&family.user].into_iter(), waker, timeout)
            }
            Traffic::Links => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn can_hand_over(&self, traffic: Traffic) -> bool {
        // Elsewhere no thread has a waker.
        cfg!(target_os = "linux") && matches!(traffic, Traffic::User(_))
    }

    fn locators(&self, locators: &mut LocalLocators) {
        let interfaces = self.interfaces.load();
        let (mut loopback, mut announced): (Vec<_>, Vec<_>) =
            interfaces.iter().flat_map(Interface::announced).partition(IpAddr::is_loopback);
        announced.retain(|address| self.family(*address).is_some());
        if announced.is_empty() {
            loopback.retain(|address| self.family(*address).is_some());
            // One is enough, and IPv4 sorts first.
            loopback.sort_unstable();
            announced.extend(loopback.first());
        }
        for address in announced {
            let Some(family) = self.family(address) else { continue };
            locators.meta_unicast.push(Locator::udp(address, family.meta.port));
            locators.user_unicast.push(Locator::udp(address, family.user.port));
        }
        for family in self.families.iter().filter(|_| self.config.multicast) {
            let group = Locator::udp(family.group, ports::meta_multicast(self.domain));
            locators.announce_to.push(group);
            locators.meta_multicast.extend(family.multicast.as_ref().map(|_| group));
        }
        locators.own_addresses.extend(interfaces.iter().flat_map(|it| it.addresses.iter().copied()));
        locators.networks.extend(interfaces.iter().flat_map(|it| it.networks.iter().copied()));
        locators.announce_to.extend(self.peers.load().iter());
        locators.scan.extend(self.scan());
        // Half of what was granted: the kernel counts its own overhead, too.
        let granted = self.families.iter().filter_map(|family| family.user.raw.recv_buffer_size().ok());
        locators.receive_bytes = granted.min().and_then(|bytes| u32::try_from(bytes / 2).ok()).unwrap_or(0);
    }

    /// As far as this host knows now.
    fn path_bytes(&self, address: IpAddr) -> Option<usize> {
        Some(self.path_bytes_of(address))
    }

    fn scan(&self) -> Vec<Locator> {
        let address = match self.families.first() {
            Some(family) if !family.is_ipv4() => IpAddr::from(Ipv6Addr::LOCALHOST),
            _ => Ipv4Addr::LOCALHOST.into(),
        };
        let in_use = neighbours::ports_in_use();
        let indices = ports::participant_indices(self.domain);
        let ports = indices.map(|index| ports::meta_unicast(self.domain, index));
        let is_in_use = |port: &u16| in_use.as_ref().is_none_or(|in_use| in_use.contains(port));
        ports.filter(is_in_use).map(|port| Locator::udp(address, port)).collect()
    }

    fn is_gone(&self, locator: &Locator, message: &[u8]) -> bool {
        self.place(locator).is_some_and(|(_, to)| probe::is_refused(to, message))
    }

    /// Nobody counts while receiving: the kernel is asked.
    fn overflows(&self) -> u64 {
        let sockets = |family: &Family| {
            let [meta, user] = [&family.meta, &family.user].map(platform::overflows);
            meta + user + family.multicast.as_ref().map_or(0, platform::overflows)
        };
        self.families.iter().map(sockets).sum()
    }

    fn close(&self) {
        self.waker.wake();
        self.families.iter().for_each(|family| family.user.end_receiving());
    }

    #[cfg(unix)]
    fn abandon(&self) {
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            let of_family = |family: &'_ Family| {
                let multicast = family.multicast.as_ref().map(|socket| socket.raw.as_raw_fd());
                [Some(family.meta.raw.as_raw_fd()), Some(family.user.raw.as_raw_fd()), multicast]
            };
            let watcher = self.watcher.as_ref().map(AsRawFd::as_raw_fd);
            let others = [watcher, Some(self.waker.as_raw_fd())];
            crate::base::fork::disconnect(self.families.iter().flat_map(of_family).chain(others).flatten());
        }
    }
}

impl Family {
    fn is_ipv4(&self) -> bool {
        self.group.is_ipv4()
    }

    fn uncut(&self) -> u64 {
        self.meta.offload.uncut()
    }

    /// All families that the host has, at the first participant index whose ports are all free, or else at
    /// ports that the host chooses.
    fn open_all(domain: u16, config: &Config) -> io::Result<Vec<Self>> {
        let sizes = BufferSizes::of(config);
        let addresses: [IpAddr; 2] = if config.loopback_only() {
            [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        } else {
            [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()]
        };
        let wanted = addresses.into_iter().filter(|it| it.is_ipv4() || config.ipv6 == Use::Auto);
        let (usable, mut refused): (Vec<_>, Vec<_>) = wanted
            .map(|address| Socket::bind(SocketAddr::new(address, 0), sizes).map(|_| address))
            .partition(Result::is_ok);
        let usable: Vec<IpAddr> = usable.into_iter().flatten().collect();
        if usable.is_empty() {
            return Err(match refused.pop() {
                Some(Err(error)) => error,
                _ => io::Error::from(io::ErrorKind::Unsupported),
            });
        }
        let open = |meta_port: u16, user_port: u16| -> io::Result<Vec<Self>> {
            let bind = |address, port| Socket::bind(SocketAddr::new(address, port), sizes);
            let family = |address: &IpAddr| {
                let (meta, user) = (bind(*address, meta_port)?, bind(*address, user_port)?);
                // Where the host cannot, it cuts datagrams by itself.
                let _ = platform::leave_whole(&meta.raw, address.is_ipv4());
                if config.interfaces.is_none() {
                    let _ = platform::disable_pktinfo(&user.raw, address.is_ipv4());
                }
                let group = group_of(*address);
                Ok(Self { group, meta, user, multicast: None })
            };
            usable.iter().map(family).collect()
        };
        let well_known = ports::participant_indices(domain).find_map(|index| {
            open(ports::meta_unicast(domain, index), ports::user_unicast(domain, index)).ok()
        });
        well_known.map_or_else(|| open(0, 0), Ok)
    }
}

const fn group_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => IpAddr::V4(ports::MULTICAST_V4),
        IpAddr::V6(_) => IpAddr::V6(ports::MULTICAST_V6),
    }
}

/// Where a configured peer listens; nothing while its name is unknown (asked again when an interface
/// changes).
fn resolve(peer: &Peer, domain: u16) -> Vec<Locator> {
    let addresses: Vec<IpAddr> = match peer.host.parse() {
        Ok(address) => vec![address],
        Err(_) => match (peer.host.as_str(), 0).to_socket_addrs() {
            Ok(addresses) => addresses.map(|address| address.ip()).collect(),
            Err(_) => Vec::new(),
        },
    };
    let ports = match peer.port {
        Some(port) => vec![port],
        None => (0..PEER_PARTICIPANTS).map(|index| ports::meta_unicast(domain, index)).collect(),
    };
    let pairs = addresses.iter().flat_map(|address| ports.iter().map(|port| (*address, *port)));
    pairs.map(|(address, port)| Locator::udp(address, port)).collect()
}
