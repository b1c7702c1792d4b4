//! The transport that there is none of, where a domain has UDP alone: the compiler leaves out what would be
//! done with it.

use std::io;
use std::time::Duration;

use plainsong_proto::discovery::LocalLocators;
use plainsong_proto::locator::Locator;

use super::{Batch, Input, Received, Sent, ThreadWaker, Traffic, Transport, WokenBy};

pub(crate) enum Absent {}

impl Transport for Absent {
    type Receiver = Self;

    fn inputs(&self) -> Vec<Input> {
        match *self {}
    }

    fn receiver(&self) -> Self {
        match *self {}
    }

    fn expect_one(receiver: &mut Self) {
        match *receiver {}
    }

    fn reaches(&self, _: &Locator) -> bool {
        match *self {}
    }

    fn send(&self, _: &Batch<'_>) -> Sent {
        match *self {}
    }

    fn receive(&self, _: Traffic, _: &mut Self, _: bool, _: impl FnMut(Received<'_>)) -> bool {
        match *self {}
    }

    fn wait(&self, _: Traffic, _: Option<&ThreadWaker>, _: Option<Duration>) -> io::Result<WokenBy> {
        match *self {}
    }

    fn can_hand_over(&self, _: Traffic) -> bool {
        match *self {}
    }

    fn locators(&self, _: &mut LocalLocators) {
        match *self {}
    }

    fn close(&self) {
        match *self {}
    }
}
