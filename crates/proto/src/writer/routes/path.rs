//! How large datagrams to readers on other hosts may be: what the paths to all of them take. The driver tells
//! it, of each address, when a reader is matched and when a path switches out to take less.

use core::net::IpAddr;

use crate::writer::Writer;
use crate::writer::flow::route_kind::RouteKind;

/// What the paths to readers on other hosts take, in octets of UDP payload.
#[derive(Debug)]
pub(crate) struct Paths {
    /// Of a path that nobody told of.
    unknown: usize,
    known: Vec<(IpAddr, usize)>,
}

impl Paths {
    pub(crate) const fn new(unknown: usize) -> Self {
        Self { unknown, known: Vec::new() }
    }

    fn set(&mut self, address: IpAddr, bytes: usize) {
        match self.known.iter_mut().find(|(known, _)| *known == address) {
            Some((_, before)) => *before = bytes,
            None => self.known.push((address, bytes)),
        }
    }

    fn bytes(&self, address: IpAddr) -> Option<usize> {
        self.known.iter().find(|(known, _)| *known == address).map(|(_, bytes)| *bytes)
    }
}

impl Writer {
    /// The path to an address takes UDP payloads of so many octets. A datagram that was larger never arrived:
    /// what it held is repeated as any loss is, in smaller ones.
    pub fn path(&mut self, address: IpAddr, bytes: usize) {
        self.paths.set(address, bytes);
        self.follow_paths();
    }

    /// Forgets the paths to readers that are gone.
    pub(crate) fn forget_paths(&mut self) {
        let readers = self.proxies.iter().filter(|reader| reader.kind == RouteKind::Remote);
        let addresses: Vec<IpAddr> =
            readers.flat_map(|reader| &reader.locators).filter_map(|locator| locator.ip()).collect();
        self.paths.known.retain(|(address, _)| addresses.contains(address));
        self.follow_paths();
    }

    /// Fragments of samples with inline QoS are shorter: what was begun begins anew when they get any, or
    /// have none any more.
    pub(crate) fn recut_for_inline_qos(&mut self, before: bool) {
        if before != self.proxies.inline_qos() {
            self.routes.iter_mut().for_each(|route| route.queue.recut());
            self.retransmissions.recut(|_| true);
        }
    }

    /// All readers of a route share datagrams: those of the narrowest path suit all of them.
    fn follow_paths(&mut self) {
        let known = self.paths.known.iter().map(|(_, bytes)| *bytes);
        let untold = self
            .proxies
            .iter()
            .filter(|reader| reader.kind == RouteKind::Remote)
            .flat_map(|reader| &reader.locators)
            .filter_map(|locator| locator.ip())
            .any(|address| self.paths.bytes(address).is_none());
        let unknown = Some(self.paths.unknown).filter(|_| untold);
        let bytes = known.chain(unknown).min().unwrap_or(self.paths.unknown);
        let route = self.routes.of_mut(RouteKind::Remote);
        if route.set_path_bytes(bytes) {
            route.queue.recut();
            self.plan = None;
            let is_remote = |reader| self.proxies.get(reader).is_some_and(|it| it.kind == RouteKind::Remote);
            self.retransmissions.recut(is_remote);
        }
    }
}
