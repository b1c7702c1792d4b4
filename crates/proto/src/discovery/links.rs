//! With which nodes memory is shared. A node is what a process has open of a domain; its participants
//! announce its id.
//!
//! Once a participant of this host has proven its address, the driver is asked to link with its node
//! ([`Command::Link`]): once for all participants of the node, and again after a pause if the link ended or
//! there was none for a reason that may pass, or as the peer announces something else. The answer comes by
//! [`Participant::memory_link`], also later. Until then, for [`LINK_WAIT_MAX`] at most, user endpoints of
//! these participants are not matched: what is said by one transport is not to overtake what was said by
//! another.
//!
//! A participant is heard by memory from the node that it announces, whatever is known of a link: the driver
//! vouches for the node, and either side may know of the link first. So a node speaks for its own
//! participants alone, and who announces another's node id is not reached.

use std::collections::{BTreeMap, BTreeSet};

use super::database::Remote;
use super::memory::{MemoryRefusal, UsedTransport};
use super::participant::Participant;
use crate::backoff::Backoff;
use crate::guid::GuidPrefix;
use crate::locator::NodeId;
use crate::matched::Command;
use crate::outbox::Outbox;
use crate::stats::DropReason;
use crate::time::{Instant, Now};
use crate::tuning::discovery::{LINK_PAUSE_FIRST, LINK_PAUSE_MAX, LINK_WAIT_MAX, LINKS_MAX};
use crate::vendor;

const PAUSES: Backoff = Backoff::new(LINK_PAUSE_FIRST, LINK_PAUSE_MAX);

/// The nodes of participants of this host.
#[derive(Debug, Default)]
pub(super) struct Links {
    links: BTreeMap<NodeId, Link>,
    due: BTreeSet<(Instant, NodeId)>,
}

#[derive(Debug)]
struct Link {
    /// Those of the node.
    participants: BTreeSet<GuidPrefix>,
    state: LinkState,
    /// So often in a row it came to nothing.
    failures: u32,
    /// It is not asked for again before.
    pause_end: Instant,
    /// Its place in the queue: when nobody waits any longer, or it is asked for again.
    due: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    Awaited,
    Linked { since: Instant },
    Refused(MemoryRefusal),
}

/// What follows from a participant's being of a node.
enum Joined {
    /// The driver is to be asked.
    Asks,
    Known,
    /// There are too many.
    Full,
}

impl Links {
    /// A participant is of a node, or has changed.
    fn join(&mut self, now: Instant, node: NodeId, prefix: GuidPrefix) -> Joined {
        if let Some(link) = self.links.get_mut(&node) {
            link.participants.insert(prefix);
            let asks = matches!(link.state, LinkState::Refused(_)) && link.pause_end <= now;
            if asks {
                self.fail(now, node);
            }
            return if asks { Joined::Asks } else { Joined::Known };
        }
        if self.links.len() >= LINKS_MAX && !self.make_room() {
            return Joined::Full;
        }
        let (participants, state) = (BTreeSet::from([prefix]), LinkState::Awaited);
        let link = Link { participants, state, failures: 0, pause_end: now, due: None };
        self.links.insert(node, link);
        self.set_due(node, now.after(LINK_WAIT_MAX));
        Joined::Asks
    }

    /// Forgets a node with which there is no link. Whether there was one.
    fn make_room(&mut self) -> bool {
        let refused = |(_, link): &(&NodeId, &Link)| matches!(link.state, LinkState::Refused(_));
        let node = self.links.iter().filter(refused).min_by_key(|(_, link)| link.pause_end);
        let node = node.map(|(node, _)| *node);
        node.into_iter().for_each(|node| self.remove(node));
        node.is_some()
    }

    fn leave(&mut self, node: NodeId, prefix: GuidPrefix) {
        let Some(link) = self.links.get_mut(&node) else { return };
        link.participants.remove(&prefix);
        if link.participants.is_empty() {
            self.remove(node);
        }
    }

    fn remove(&mut self, node: NodeId) {
        self.set_due(node, None);
        self.links.remove(&node);
    }

    fn state(&self, node: NodeId) -> Option<LinkState> {
        self.links.get(&node).map(|link| link.state)
    }

    fn participants(&self, node: NodeId) -> Vec<GuidPrefix> {
        self.links.get(&node).into_iter().flat_map(|link| &link.participants).copied().collect()
    }

    /// What became of a link. Whether that is another state than before.
    fn on_answer(&mut self, now: Instant, node: NodeId, answer: Result<(), MemoryRefusal>) -> bool {
        let Some(link) = self.links.get_mut(&node) else { return false };
        let before = link.state;
        match (answer, before) {
            (Ok(()), LinkState::Linked { .. }) => return false,
            (Ok(()), _) => {
                link.state = LinkState::Linked { since: now };
                self.set_due(node, None);
            }
            (Err(reason), _) => {
                if let LinkState::Linked { since } = before
                    && now.since(since) >= LINK_PAUSE_MAX
                {
                    link.failures = 0;
                }
                link.state = LinkState::Refused(reason);
                // Who was asked again has its pause already.
                if !matches!(before, LinkState::Refused(_)) {
                    self.fail(now, node);
                }
                if !reason.may_pass() {
                    self.set_due(node, None);
                }
            }
        }
        self.state(node) != Some(before)
    }

    /// It came to nothing, or is tried once more: a longer pause begins.
    fn fail(&mut self, now: Instant, node: NodeId) {
        let Some(link) = self.links.get_mut(&node) else { return };
        let end = now.after(PAUSES.pause(link.failures));
        link.failures = link.failures.saturating_add(1);
        link.pause_end = end.unwrap_or(now);
        self.set_due(node, end);
    }

    fn set_due(&mut self, node: NodeId, due: Option<Instant>) {
        let Some(link) = self.links.get_mut(&node) else { return };
        if let Some(before) = std::mem::replace(&mut link.due, due) {
            self.due.remove(&(before, node));
        }
        self.due.extend(due.map(|at| (at, node)));
    }

    fn next_due(&mut self, now: Instant) -> Option<NodeId> {
        let (_, node) = self.due.first().copied().filter(|(at, _)| *at <= now)?;
        self.set_due(node, None);
        Some(node)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }
}

impl Remote {
    /// The node that it says it is of: what comes from there may be its own.
    pub(super) fn announced_node(&self) -> Option<NodeId> {
        self.data.node_id.filter(|_| self.data.vendor == vendor::PLAINSONG)
    }

    fn is_on_this_host(&self) -> bool {
        self.matched.is_some_and(|path| path.same_host)
    }
}

impl Participant {
    /// What became of a link with a node, or of an attempt. May be told at any time, and again.
    pub fn memory_link(
        &mut self,
        now: Now,
        node: NodeId,
        answer: Result<(), MemoryRefusal>,
        out: &mut Outbox,
    ) {
        if answer == Err(MemoryRefusal::ProcessGone) {
            self.links
                .participants(node)
                .into_iter()
                .for_each(|prefix| self.participant_died(now, prefix, out));
        }
        let was_linked = matches!(self.links.state(node), Some(LinkState::Linked { .. }));
        if self.has_left() || !self.links.on_answer(now.mono, node, answer) {
            return;
        }
        let participants = self.links.participants(node);
        participants.iter().for_each(|prefix| self.note_link(*prefix, out));
        // A process that has ended before there was a link has no socket, either.
        if was_linked || answer == Err(MemoryRefusal::NoSocket) {
            self.probe_unlinked(now, &participants, out);
        }
    }

    /// Most links end because a process does. Its participants are asked whether they are there, lest they
    /// stay for the rest of their leases. What the lead finds out it tells.
    fn probe_unlinked(&mut self, now: Now, participants: &[GuidPrefix], out: &mut Outbox) {
        for prefix in participants {
            if self.database.get(*prefix).is_some_and(|remote| !remote.is_heard_by_lead) {
                self.probe_peer(now, *prefix, out);
            }
        }
    }

    /// By which transport the user endpoints of a participant are reached; `None` for one that is not known.
    #[must_use]
    pub fn transport_of(&self, prefix: GuidPrefix) -> Option<UsedTransport> {
        if prefix == self.config.prefix {
            return Some(self.transport_of_own_process());
        }
        self.database.get(prefix).map(|remote| self.transport_of_remote(remote))
    }

    fn transport_of_own_process(&self) -> UsedTransport {
        match self.config.locators.node_id {
            Some(_) => UsedTransport::Memory,
            None => UsedTransport::Udp(self.own_refusal()),
        }
    }

    /// Why this process shares no memory.
    fn own_refusal(&self) -> MemoryRefusal {
        self.config.locators.memory_refusal.unwrap_or(MemoryRefusal::Off)
    }

    pub(super) fn transport_of_remote(&self, remote: &Remote) -> UsedTransport {
        if remote.is_of_own_process {
            return self.transport_of_own_process();
        }
        let own = self.config.locators.node_id;
        let reason = if !(remote.is_on_this_host() || self.host.sent(&remote.from)) {
            MemoryRefusal::OtherHost
        } else if remote.data.vendor != vendor::PLAINSONG {
            MemoryRefusal::OtherProduct
        } else if own.is_none() {
            self.own_refusal()
        } else {
            match remote.announced_node() {
                None => MemoryRefusal::PeerOff,
                announced if announced == own => MemoryRefusal::ForeignNode,
                Some(node) => match self.links.state(node) {
                    Some(LinkState::Linked { .. }) if remote.linked_node.is_some() => {
                        return UsedTransport::Memory;
                    }
                    Some(LinkState::Refused(reason)) => reason,
                    Some(_) => MemoryRefusal::Awaited,
                    None if remote.matched.is_none() => MemoryRefusal::Awaited,
                    None => MemoryRefusal::TooManyLinks,
                },
            }
        };
        UsedTransport::Udp(reason)
    }

    /// The node to link with for a participant, if any.
    fn node_to_link(&mut self, prefix: GuidPrefix) -> Option<NodeId> {
        let own = self.config.locators.node_id?;
        let remote = self.database.get(prefix)?;
        let node = remote.announced_node().filter(|_| remote.is_on_this_host() && !remote.is_of_own_process);
        if node == Some(own) {
            self.drops.count(DropReason::SpoofSuspected);
            return None;
        }
        node
    }

    /// A participant has proven its address, or has changed: the driver is asked to link with its node.
    pub(super) fn review_link(&mut self, now: Now, prefix: GuidPrefix, out: &mut Outbox) {
        let node = self.node_to_link(prefix);
        let Some(remote) = self.database.get_mut(prefix) else { return };
        let before = std::mem::replace(&mut remote.node, node);
        if let Some(before) = before.filter(|_| before != node) {
            self.links.leave(before, prefix);
        }
        if let Some(node) = node {
            match self.links.join(now.mono, node, prefix) {
                Joined::Asks => out.commands.push(Command::Link { node }),
                Joined::Known => {}
                Joined::Full => self.drops.count(DropReason::DiscoveryLimit),
            }
        }
        self.note_link(prefix, out);
    }

    /// Takes over what is known of the link with a participant's node.
    fn note_link(&mut self, prefix: GuidPrefix, out: &mut Outbox) {
        let Some(remote) = self.database.get_mut(prefix) else { return };
        let state = remote.node.and_then(|node| self.links.state(node));
        let linked = remote.node.filter(|_| matches!(state, Some(LinkState::Linked { .. })));
        let is_other = std::mem::replace(&mut remote.linked_node, linked) != linked;
        let is_released = self.matching.hold(prefix, state == Some(LinkState::Awaited));
        if is_other || is_released {
            self.resolve_endpoints(prefix, out);
        }
        if is_released {
            self.matching.match_held(prefix, out);
        }
    }

    /// A participant is gone.
    pub(super) fn leave_link(&mut self, prefix: GuidPrefix, remote: &Remote) {
        if let Some(node) = remote.node {
            self.links.leave(node, prefix);
        }
        self.matching.hold(prefix, false);
    }

    pub(super) fn links_timeout(&mut self, now: Now, out: &mut Outbox) {
        while let Some(node) = self.links.next_due(now.mono) {
            if self.links.state(node) == Some(LinkState::Awaited) {
                self.memory_link(now, node, Err(MemoryRefusal::TimedOut), out);
            } else {
                self.links.fail(now.mono, node);
                out.commands.push(Command::Link { node });
            }
        }
    }
}
