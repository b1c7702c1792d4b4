//! One process: its member, its voter, and what its application knows.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use plainsong_proto::atomic::coordinator::{Bootstrap, Coordinator};
use plainsong_proto::atomic::member::{Member, Phase};
use plainsong_proto::atomic::message::Row;
use plainsong_proto::atomic::view::Voters;
use plainsong_proto::atomic::{EntryHeader, MemberId, Message, VoterId};
use plainsong_proto::guid::GuidPrefix;
use plainsong_proto::time::Instant;

use super::entry::Entry;
use super::plan::{Plan, voter_id};

/// What happens to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Runs,
    /// Stopped, and continued later.
    Paused,
    Dead,
}

/// An entry on a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnLane {
    /// Which of all that the process has sent.
    pub(super) number: u64,
    pub(super) instance: u64,
    pub(super) from: MemberId,
    pub(super) header: EntryHeader,
    pub(super) entry: Entry,
    pub(super) arrives: Instant,
}

/// What is on its way from one process to another.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    pub(super) queue: VecDeque<OnLane>,
    pub(super) last_arrival: Instant,
    /// An event is there for the first.
    pub(super) is_scheduled: bool,
}

/// What an application knows.
#[derive(Debug, Default)]
pub(super) struct App {
    /// Its own samples that are not resolved.
    pub(super) pending: VecDeque<Entry>,
    pub(super) instance: u64,
    /// Position of the last that it was given.
    pub(super) last: u64,
    /// Positions before which nothing is asked of the order.
    pub(super) begins: bool,
    /// It was told that something is lost.
    pub(super) knows_of_loss: bool,
    pub(super) writers: Vec<u32>,
    /// Of which instance the last transfer was.
    pub(super) donor_instance: u64,
    /// And the last position of who sent one.
    pub(super) transferred_to: u64,
}

/// A process.
pub(super) struct Process {
    pub(super) node: usize,
    pub(super) prefix: GuidPrefix,
    pub(super) state: State,
    pub(super) is_slow: bool,
    pub(super) is_clone: bool,
    pub(super) is_leaving: bool,
    pub(super) member: Option<Member<Entry>>,
    pub(super) coordinator: Coordinator,
    pub(super) fixed: Option<VoterId>,
    pub(super) proposal: Option<Arc<plainsong_proto::atomic::Decision>>,
    pub(super) inbox: VecDeque<(usize, Rc<Message<Entry>>)>,
    pub(super) timer: Option<Instant>,
    pub(super) is_flush_due: bool,
    /// Entries that it ever sent.
    pub(super) sent: u64,
    /// Of those, what is needed no more.
    pub(super) released: u64,
    pub(super) is_persist_due: bool,
    pub(super) app: App,
    /// What mistakes need: rows as they were heard, and the last that was sent.
    pub(super) rows: BTreeMap<MemberId, Row>,
    pub(super) last_row: Option<Row>,
    pub(super) name: String,
}

impl Process {
    pub(super) fn start(plan: &Plan, node: usize, nonce: u64, instance: u64, now: Instant) -> Self {
        let node_plan = &plan.nodes[node];
        let mut prefix = GuidPrefix::default();
        prefix.0[0] = node as u8 + 1;
        let mut config = plan.config.clone();
        config.instance = instance;
        let id = MemberId { prefix, nonce };
        let is_fixed = matches!(config.voters, Voters::Fixed(_));
        let bootstrap = is_fixed.then(|| Bootstrap { members: plan.founders(), instance: 1 });
        let order = node_plan.voter.unwrap_or(0);
        let coordinator = Coordinator::new(config.voters.clone(), order, bootstrap, config.digest);
        Self {
            node,
            prefix,
            state: State::Runs,
            is_slow: false,
            is_clone: false,
            is_leaving: false,
            member: node_plan.is_member.then(|| Member::new(config, id, now)),
            coordinator,
            fixed: node_plan.voter.map(voter_id),
            proposal: None,
            inbox: VecDeque::new(),
            timer: None,
            is_flush_due: false,
            sent: 0,
            released: 0,
            is_persist_due: false,
            app: App::default(),
            rows: BTreeMap::new(),
            last_row: None,
            name: format!("n{node}/{nonce:x}"),
        }
    }

    /// Which voter it is now.
    pub(super) fn voter(&self) -> Option<VoterId> {
        self.fixed.or_else(|| self.member.as_ref().map(|it| it.id().voter()))
    }

    /// Whether it votes on the end of the epoch that it knows.
    pub(super) fn votes(&self) -> bool {
        if self.fixed.is_some() {
            return true;
        }
        let voter = self.voter();
        self.coordinator.view().is_some_and(|view| view.voters.iter().any(|it| Some(*it) == voter))
    }

    pub(super) fn is_alive(&self) -> bool {
        self.state != State::Dead
    }

    /// Whether it takes what comes.
    pub(super) fn runs(&self) -> bool {
        self.state == State::Runs
    }

    pub(super) fn phase(&self) -> Option<Phase> {
        self.member.as_ref().map(Member::phase)
    }

    /// Instance and epoch that its member is in.
    pub(super) fn epoch(&self) -> Option<(u64, u64)> {
        let view = self.member.as_ref()?.view()?;
        Some((view.instance, view.epoch))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let member = self.member.as_ref().and_then(Member::next_deadline);
        let voter = if self.votes() { self.coordinator.next_deadline() } else { None };
        member.into_iter().chain(voter).min()
    }
}
