//! A network in memory that loses datagrams, for tests of the driver without a socket. Which are lost the
//! seed alone says.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::{Duration, Instant};

use plainsong_proto::discovery::LocalLocators;
use plainsong_proto::locator::{Locator, ports};

use super::{Batch, Input, Kind, Received, Sent, ThreadWaker, Traffic, Transport, WokenBy};
use crate::base::locks::lock;

/// Datagrams that wait to be received by one input, at most.
const INBOX_MAX: usize = 1 << 12;
/// Datagrams that one call receives, at most.
const BATCH_MAX: usize = 8;

/// What several hosts are on. The n-th datagram from one to another is lost or not by the seed, whatever
/// happens elsewhere.
pub(crate) struct Network {
    seed: u64,
    loss_percent: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    hosts: Vec<Weak<Host>>,
    /// How many datagrams went from one host to another.
    sent: BTreeMap<(IpAddr, IpAddr), u64>,
    lost: u64,
    /// Ways on which everything is lost.
    cut: BTreeSet<(IpAddr, IpAddr)>,
}

/// One end of a [`Network`].
pub(crate) struct NetworkHost {
    network: Arc<Network>,
    host: Arc<Host>,
}

struct Host {
    domain: u16,
    address: IpAddr,
    discovery: Inbox,
    user: Inbox,
}

#[derive(Default)]
struct Inbox {
    content: Mutex<Content>,
    changed: Condvar,
}

/// Who sent it, and its octets.
type Datagram = (Locator, Arc<[u8]>);

#[derive(Default)]
struct Content {
    datagrams: VecDeque<Datagram>,
    is_closed: bool,
}

#[derive(Default)]
pub(crate) struct Receiver {
    expects_one: bool,
}

impl Network {
    pub(crate) fn new(seed: u64, loss_percent: u64) -> Arc<Self> {
        Arc::new(Self { seed, loss_percent, state: Mutex::default() })
    }

    /// A host of that number on this network.
    pub(crate) fn host(self: &Arc<Self>, domain: u16, number: u8) -> NetworkHost {
        let address = address(number);
        let host = Arc::new(Host { domain, address, discovery: Inbox::default(), user: Inbox::default() });
        lock(&self.state).hosts.push(Arc::downgrade(&host));
        NetworkHost { network: Arc::clone(self), host }
    }

    /// From now on everything is lost that one host sends another, or not.
    pub(crate) fn cut(&self, from: u8, to: u8, is_cut: bool) {
        let way = (address(from), address(to));
        let mut state = lock(&self.state);
        if is_cut {
            state.cut.insert(way)
        } else {
            state.cut.remove(&way)
        };
    }

    /// Datagrams that went from one host to another, and those of them that were lost.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let state = lock(&self.state);
        (state.sent.values().sum(), state.lost)
    }

    /// How many hosts are still there.
    pub(crate) fn hosts(&self) -> usize {
        lock(&self.state).hosts.iter().filter(|host| host.strong_count() > 0).count()
    }

    /// Whether the n-th datagram from one host to another is lost.
    fn loses(&self, (from, to): (IpAddr, IpAddr), number: u64) -> bool {
        let octet = |address| match address {
            IpAddr::V4(v4) => u64::from(u32::from(v4)),
            IpAddr::V6(_) => 0,
        };
        // SplitMix64 of what tells this datagram from all others.
        let mut it = self.seed ^ (octet(from) << 32) ^ octet(to);
        for part in [number, 0] {
            it = (it ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
            it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            it ^= it >> 31;
        }
        it % 100 < self.loss_percent
    }

    fn carry(&self, from: &Host, to: &Locator, bytes: &Arc<[u8]>) {
        let mut state = lock(&self.state);
        state.hosts.retain(|host| host.strong_count() > 0);
        let hosts: Vec<Arc<Host>> = state.hosts.iter().filter_map(Weak::upgrade).collect();
        for host in hosts {
            let Some(inbox) = host.inbox_of(to) else { continue };
            let link = (from.address, host.address);
            let number = state.sent.entry(link).or_default();
            *number += 1;
            // A host hears itself.
            let is_lost = self.loses(link, *number) || state.cut.contains(&link);
            if link.0 != link.1 && is_lost {
                state.lost += 1;
            } else {
                inbox.put(from.discovery_locator(), bytes);
            }
        }
    }
}

fn address(number: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, number).into()
}

impl Host {
    fn discovery_locator(&self) -> Locator {
        Locator::udp(self.address, ports::meta_unicast(self.domain, 0))
    }

    fn user_locator(&self) -> Locator {
        Locator::udp(self.address, ports::user_unicast(self.domain, 0))
    }

    /// Where discovery traffic to everybody goes.
    fn group(&self) -> Locator {
        Locator::udp(ports::MULTICAST_V4.into(), ports::meta_multicast(self.domain))
    }

    fn inbox_of(&self, to: &Locator) -> Option<&Inbox> {
        if *to == self.discovery_locator() || *to == self.group() {
            Some(&self.discovery)
        } else {
            (*to == self.user_locator()).then_some(&self.user)
        }
    }

    const fn inbox(&self, traffic: Traffic) -> &Inbox {
        match traffic {
            Traffic::Discovery => &self.discovery,
            Traffic::User(_) | Traffic::Links => &self.user,
        }
    }
}

impl Inbox {
    fn put(&self, from: Locator, bytes: &Arc<[u8]>) {
        let mut content = lock(&self.content);
        if content.datagrams.len() < INBOX_MAX {
            content.datagrams.push_back((from, Arc::clone(bytes)));
            self.changed.notify_all();
        }
    }

    /// Sleeps until there is a datagram, the inbox is closed or the time is over: what there is.
    fn take(&self, max: usize, timeout: Option<Duration>) -> (bool, Vec<Datagram>) {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut content = lock(&self.content);
        while content.datagrams.is_empty() && !content.is_closed {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            let left = left.unwrap_or(Duration::from_secs(60));
            content = match self.changed.wait_timeout(content, left) {
                Ok((content, _)) => content,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        let count = content.datagrams.len().min(max);
        (!content.datagrams.is_empty(), content.datagrams.drain(..count).collect())
    }

    fn close(&self) {
        lock(&self.content).is_closed = true;
        self.changed.notify_all();
    }
}

impl Transport for NetworkHost {
    type Receiver = Receiver;

    fn inputs(&self) -> Vec<Input> {
        let input = |traffic, name| Input { transport: Kind::Other, traffic, name };
        vec![input(Traffic::Discovery, "rx-meta"), input(Traffic::User(0), "rx-data")]
    }

    fn receiver(&self) -> Receiver {
        Receiver::default()
    }

    fn expect_one(receiver: &mut Receiver) {
        receiver.expects_one = true;
    }

    fn reaches(&self, locator: &Locator) -> bool {
        locator.kind == Locator::KIND_UDP_V4 && locator.udp_port().is_some()
    }

    fn send(&self, batch: &Batch<'_>) -> Sent {
        let mut sent = Sent::default();
        for transmit in batch.out.transmits() {
            let bytes: Vec<&[u8]> = batch.out.slices(transmit).collect();
            let bytes: Arc<[u8]> = bytes.concat().into();
            for to in batch.out.destinations(transmit) {
                if self.reaches(to) {
                    self.network.carry(&self.host, to, &bytes);
                } else {
                    sent.has_others = true;
                }
            }
        }
        sent
    }

    fn receive(
        &self,
        traffic: Traffic,
        receiver: &mut Receiver,
        wait: bool,
        mut each: impl FnMut(Received<'_>),
    ) -> bool {
        let max = if std::mem::take(&mut receiver.expects_one) { 1 } else { BATCH_MAX };
        let timeout = if wait { None } else { Some(Duration::ZERO) };
        let (_, datagrams) = self.host.inbox(traffic).take(max, timeout);
        for (from, bytes) in &datagrams {
            each(Received { from: *from, interface: 0, bytes, attachment: None });
        }
        false
    }

    fn wait(
        &self,
        traffic: Traffic,
        waker: Option<&ThreadWaker>,
        timeout: Option<Duration>,
    ) -> io::Result<WokenBy> {
        if waker.is_some() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (datagram, _) = self.host.inbox(traffic).take(0, timeout);
        Ok(WokenBy { datagram, waker: false })
    }

    fn can_hand_over(&self, _: Traffic) -> bool {
        false
    }

    fn locators(&self, locators: &mut LocalLocators) {
        locators.meta_unicast.push(self.host.discovery_locator());
        locators.user_unicast.push(self.host.user_locator());
        locators.meta_multicast.push(self.host.group());
        locators.announce_to.push(self.host.group());
        locators.own_addresses.push(self.host.address);
    }

    fn close(&self) {
        [&self.host.discovery, &self.host.user].into_iter().for_each(Inbox::close);
    }
}

#[cfg(test)]
mod tests;
