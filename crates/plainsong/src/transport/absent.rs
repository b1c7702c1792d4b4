//! The transport that there is none of, where a domain has UDP alone: the compiler leaves out what would be
//! done with it.

use std::io;
use std::time::Duration;

use plainsong_proto::discovery::LocalLocators;
#[cfg(not(target_os = "linux"))]
use plainsong_proto::discovery::MemoryRefusal;
use plainsong_proto::locator::Locator;
#[cfg(not(target_os = "linux"))]
use plainsong_proto::locator::NodeId;
#[cfg(not(target_os = "linux"))]
use plainsong_proto::payload::Payload;

#[cfg(not(target_os = "linux"))]
use super::LinkChange;
#[cfg(not(target_os = "linux"))]
use super::loan::{LoanedOctets, LoanedPayload};
use super::{Batch, Input, Received, Sent, ThreadWaker, Traffic, Transport, WokenBy};

pub(crate) enum Absent {}

#[cfg(not(target_os = "linux"))]
impl Absent {
    pub(crate) const fn link(&self, _: NodeId) -> Option<Result<(), MemoryRefusal>> {
        match *self {}
    }

    pub(crate) const fn loan(&self, _: usize) -> Result<LoanedPayload, String> {
        match *self {}
    }

    pub(crate) const fn loan_octets(&self, _: usize) -> Result<LoanedOctets, String> {
        match *self {}
    }

    pub(crate) fn fitting(&self, _: Payload) -> Payload {
        match *self {}
    }

    pub(crate) const fn finds_no_chunk(&self) -> bool {
        match *self {}
    }

    pub(crate) const fn wake_receiver(&self) {
        match *self {}
    }

    pub(crate) const fn copied(&self) -> u64 {
        match *self {}
    }

    pub(crate) const fn unsent(&self) -> u64 {
        match *self {}
    }

    pub(crate) const fn own_queue(&self) -> Option<NodeId> {
        match *self {}
    }

    pub(crate) const fn receive_own(&self, _: impl FnMut(Received<'_>) -> bool) {
        match *self {}
    }

    pub(crate) const fn serve(&self) -> Vec<LinkChange> {
        match *self {}
    }
}

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
