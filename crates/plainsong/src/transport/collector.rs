//! A transport of the simulator: what is sent is collected, and what arrives is not received here.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plainsong_proto::discovery::LocalLocators;
use plainsong_proto::locator::Locator;

use super::{Batch, Input, Received, Sent, ThreadWaker, Traffic, Transport, WokenBy};
use crate::base::locks::lock;

/// A datagram on its way.
#[derive(Clone, Debug)]
pub struct Collected {
    /// Its octets.
    pub bytes: Vec<u8>,
    /// Where it goes.
    pub destinations: Vec<Locator>,
    /// The octet of the IP header that marks it.
    pub traffic_class: u8,
}

/// Everything that was sent since somebody asked, in order.
#[derive(Clone, Default)]
pub(crate) struct Collector(Arc<Mutex<Vec<Collected>>>);

impl Collector {
    pub(crate) fn take(&self) -> Vec<Collected> {
        std::mem::take(&mut *lock(&self.0))
    }
}

impl Transport for Collector {
    type Receiver = ();

    fn inputs(&self) -> Vec<Input> {
        Vec::new()
    }

    fn receiver(&self) {}

    fn expect_one((): &mut ()) {}

    fn reaches(&self, _: &Locator) -> bool {
        true
    }

    fn send(&self, batch: &Batch<'_>) -> Sent {
        let mut collected = lock(&self.0);
        for transmit in batch.out.transmits() {
            let bytes: Vec<&[u8]> = batch.out.slices(transmit).collect();
            let destinations = batch.out.destinations(transmit).to_vec();
            collected.push(Collected {
                bytes: bytes.concat(),
                destinations,
                traffic_class: batch.traffic_class,
            });
        }
        Sent::default()
    }

    fn receive(&self, _: Traffic, (): &mut (), _: bool, _: impl FnMut(Received<'_>)) -> bool {
        false
    }

    fn wait(&self, _: Traffic, _: Option<&ThreadWaker>, _: Option<Duration>) -> io::Result<WokenBy> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn can_hand_over(&self, _: Traffic) -> bool {
        false
    }

    fn locators(&self, _: &mut LocalLocators) {}

    fn close(&self) {}
}
