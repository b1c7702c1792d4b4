//! Datagrams in and out.

use std::io;
use std::net::IpAddr;

use plainsong_proto::discovery::LocalLocators;
use plainsong_proto::outbox::Outbox;

use crate::config::Config;

/// What is known of one interface of this host.
#[derive(Clone, Debug)]
pub(crate) struct InterfaceReport {
    /// Its name; `*` for unicast, where the kernel chooses.
    pub(crate) name: String,
    /// Its number; 0 for unicast.
    pub(crate) index: u32,
    /// Its addresses.
    pub(crate) addresses: Vec<IpAddr>,
    /// Why it is not used; `None`: it is.
    pub(crate) unusable: Option<&'static str>,
    /// Announcements of others that arrived by multicast.
    pub(crate) multicast_heard: u64,
    /// Datagrams that the host refused to send.
    pub(crate) send_errors: u64,
    /// The last such refusal.
    pub(crate) last_error: Option<String>,
}

/// The sockets of a domain.
pub(crate) struct Transport {}

impl Transport {
    pub(crate) fn open(_domain: u16, _config: &Config) -> io::Result<Self> {
        Ok(Self {})
    }
    /// Sends all datagrams of `out`, in order.
    pub(crate) fn send(&self, _out: &Outbox) {}
    /// Where participants can be reached, and where they announce themselves.
    pub(crate) fn locators(&self) -> LocalLocators {
        LocalLocators::default()
    }
    /// What is known of each interface.
    pub(crate) fn report(&self) -> Vec<InterfaceReport> {
        Vec::new()
    }
    /// Makes the receive threads return.
    pub(crate) fn stop(&self) {}
}
