//! What a thread has sent to its own process, and will receive itself if nobody else does.

use std::cell::Cell;

use plainsong_proto::locator::NodeId;

thread_local! {
    static OWN_TRAFFIC: Cell<OwnTraffic> = const { Cell::new(OwnTraffic::Woken) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OwnTraffic {
    /// Who receives it is woken at once.
    Woken,
    /// This thread will look when it holds no lock: of this domain alone.
    Awaited(NodeId),
    /// There is some.
    Sent(NodeId),
}

/// A node has sent something to itself: whether [`Awaiting::end`] tells of it, and nobody needs to be woken.
pub(super) fn note(node: NodeId) -> bool {
    let awaited = match OWN_TRAFFIC.get() {
        OwnTraffic::Awaited(of) | OwnTraffic::Sent(of) => of == node,
        OwnTraffic::Woken => false,
    };
    if awaited {
        OWN_TRAFFIC.set(OwnTraffic::Sent(node));
    }
    awaited
}

/// While it lives, nobody is woken for what this thread makes a node send to itself.
pub(crate) struct Awaiting {
    node: NodeId,
    before: OwnTraffic,
}

impl Awaiting {
    #[inline]
    pub(crate) fn begin(node: NodeId) -> Self {
        Self { node, before: OWN_TRAFFIC.replace(OwnTraffic::Awaited(node)) }
    }

    /// Whether something was sent, which the caller has to receive.
    #[inline]
    pub(crate) fn end(self) -> bool {
        OWN_TRAFFIC.get() == OwnTraffic::Sent(self.node)
    }
}

impl Drop for Awaiting {
    fn drop(&mut self) {
        OWN_TRAFFIC.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_domain_sends_wakes_its_receiver() {
        let (one, other) = ([1; 16], [2; 16]);
        assert!(!note(one));
        let awaiting = Awaiting::begin(one);
        assert!(!note(other) && !awaiting.end());
        let awaiting = Awaiting::begin(one);
        assert!(note(one));
        let within = Awaiting::begin(other);
        assert!(note(other) && !note(one) && within.end());
        assert!(note(one) && awaiting.end() && !note(one));
        let panics = std::panic::catch_unwind(|| {
            let _awaiting = Awaiting::begin(one);
            panic!("meant")
        });
        assert!(panics.is_err() && !note(one));
    }
}
