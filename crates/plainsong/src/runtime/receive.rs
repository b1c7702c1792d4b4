//! The threads of a domain: what arrives goes to the state machines it concerns, what is due is done.

use std::sync::Arc;

use super::duty::{self, Duty, ReceiveThread};
use super::linger::Linger;
use super::walk::{Walk, datagram, fire_one, locators_changed};
use super::{Shared, turn};
use crate::base::clock;
use crate::transport::Receiver;

/// Receives until the transport stops.
pub(crate) fn run(shared: &Arc<Shared>, thread: ReceiveThread) {
    duty::begin(shared, Duty::Receive(thread));
    match thread {
        ReceiveThread::Meta => receive_meta(shared),
        ReceiveThread::User(socket) => shared.turns.run(shared, socket),
        ReceiveThread::Groups => {
            let mut receiver = Receiver::new();
            while !shared.transport.is_stopped() {
                if duty::receives_alone() {
                    receiver.expect_one();
                }
                shared.transport.receive_groups(&mut receiver, true, |it| _ = datagram(shared, &it));
                turn::tell_rest(shared);
            }
        }
    }
}

/// Receives discovery traffic until the transport stops.
fn receive_meta(shared: &Shared) {
    let mut meta = shared.transport.meta();
    // Urgent samples come here.
    let mut linger = Linger::new(shared.transport.config().may_linger());
    while !shared.transport.is_stopped() {
        let looks = linger.looks(clock::mono);
        let mut walk = Walk::default();
        meta.receive(!looks, |it| walk.datagram(shared, &it), || locators_changed(shared));
        if looks && walk.datagrams == 0 {
            linger.looked_in_vain();
            // Whoever else is to run on this core comes first.
            std::thread::yield_now();
        }
        walk.end(&mut linger);
        turn::tell_rest(shared);
    }
}

/// Calls what is due until the timer stops.
pub(crate) fn run_timer(shared: &Arc<Shared>) {
    duty::begin(shared, Duty::Timer);
    shared.timer.run(|guid| {
        fire_one(shared, guid);
        turn::tell_rest(shared);
    });
}
