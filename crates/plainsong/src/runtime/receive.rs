//! The threads of a domain: what arrives goes to the state machines it concerns, what is due is done.

use std::sync::Arc;

use super::duty::{self, Duty};
use super::linger::Linger;
use super::walk::{Walk, datagram, fire_one, locators_changed};
use super::{Shared, turn};
use crate::base::clock;
use crate::transport::{Input, Traffic};

/// Receives until the transports are closed.
pub(crate) fn run(shared: &Arc<Shared>, input: Input) {
    duty::begin(shared, Duty::Receive(input));
    match input.traffic {
        Traffic::Discovery => receive_discovery(shared, input),
        Traffic::User(_) => shared.turns.run(shared, input),
        Traffic::HostGroups => {
            let mut receiver = shared.transport.receiver(input);
            while !shared.transport.is_closed() {
                if duty::receives_alone() {
                    receiver.expect_one();
                }
                shared.transport.receive(input, &mut receiver, true, |it| _ = datagram(shared, &it));
                turn::tell_rest(shared);
            }
        }
    }
}

fn receive_discovery(shared: &Shared, input: Input) {
    let mut receiver = shared.transport.receiver(input);
    // Urgent samples come here.
    let mut linger = Linger::new(shared.transport.config().may_linger());
    while !shared.transport.is_closed() {
        let looks = linger.looks(clock::mono);
        let mut walk = Walk::default();
        if shared.transport.receive(input, &mut receiver, !looks, |it| walk.datagram(shared, &it)) {
            locators_changed(shared);
        }
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
