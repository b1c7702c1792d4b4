//! One process: its member, its voter, and what its application knows.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use plainsong_proto::atomic::coordinator::{Bootstrap, Coordinator};
use plainsong_proto::atomic::group::{FIXED, FixedVoter, Group};
use plainsong_proto::atomic::member::{Config, Member, Phase};
use plainsong_proto::atomic::message::Row;
use plainsong_proto::atomic::storage::{Change, Image};
use plainsong_proto::atomic::view::Voters;
use plainsong_proto::atomic::{EntryHeader, MemberId, Message, Storage, VoterId};
use plainsong_proto::guid::GuidPrefix;
use plainsong_proto::time::Instant;

use super::entry::Entry;
use super::participant::Participant;
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
    /// Samples that it was told it has missed.
    pub(super) missed: u64,
    /// Samples that it was given since it takes nothing.
    pub(super) given_while_held: usize,
}

/// What a node has on its disk.
pub(super) type Disk = BTreeMap<Vec<u8>, Vec<u8>>;

/// How a process starts.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) node: usize,
    pub(super) nonce: u64,
    /// Of the groups that it makes.
    pub(super) instance: u64,
    /// It has the GUID prefix of another, but not its disk.
    pub(super) is_clone: bool,
    /// How many processes ran here before, where each is another participant.
    pub(super) generation: u8,
    /// Groups are those of products.
    pub(super) is_real: bool,
    /// What processes here have written.
    pub(super) image: Option<Image<Entry>>,
}

/// A process.
pub(super) struct Process {
    pub(super) node: usize,
    pub(super) prefix: GuidPrefix,
    pub(super) state: State,
    pub(super) is_slow: bool,
    pub(super) is_clone: bool,
    pub(super) is_leaving: bool,
    pub(super) is_disk_full: bool,
    pub(super) participant: Participant,
    pub(super) fixed: Option<VoterId>,
    pub(super) proposal: Option<Arc<plainsong_proto::atomic::Decision>>,
    pub(super) inbox: VecDeque<(usize, Rc<Message<Entry>>)>,
    pub(super) timer: Option<Instant>,
    /// Changes that are not on its disk yet.
    pub(super) unsynced: VecDeque<(u64, Change<Entry>)>,
    /// Of which instance those are.
    pub(super) disk_instance: u64,
    /// Which member it is in each epoch that is on its disk.
    pub(super) places: BTreeMap<u64, MemberId>,
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
    pub(super) fn start(plan: &Plan, start: Start, now: Instant) -> Self {
        let Start { node, nonce, is_clone, generation, instance, is_real, image } = start;
        let mut prefix = GuidPrefix::default();
        prefix.0[..2].copy_from_slice(&[node as u8 + 1, generation]);
        let mut config = plan.config.clone();
        config.instance = instance;
        let voter = plan.nodes[node].voter.filter(|_| !is_clone);
        let member = plan.nodes[node].is_member.then_some((config, MemberId { prefix, nonce }));
        let (disk_instance, places) = image.as_ref().map_or_else(Default::default, |image| {
            let epoch = image.epoch.iter();
            let places = epoch.map(|it| (it.view.epoch, it.view.members[it.rank].id)).collect();
            (image.instance, places)
        });
        let participant = if is_real {
            Self::real(plan, voter, member, image, now)
        } else {
            Self::model(plan, voter, member, image, now)
        };
        Self {
            node,
            prefix,
            state: State::Runs,
            is_slow: false,
            is_clone,
            is_leaving: false,
            is_disk_full: false,
            participant,
            fixed: voter.map(voter_id),
            proposal: None,
            inbox: VecDeque::new(),
            timer: None,
            unsynced: VecDeque::new(),
            disk_instance,
            places,
            is_flush_due: false,
            sent: 0,
            released: 0,
            is_persist_due: false,
            app: App { instance: disk_instance, donor_instance: disk_instance, ..App::default() },
            rows: BTreeMap::new(),
            last_row: None,
            name: format!("n{node}/{nonce:x}"),
        }
    }

    fn model(
        plan: &Plan,
        voter: Option<usize>,
        member: Option<(Config, MemberId)>,
        image: Option<Image<Entry>>,
        now: Instant,
    ) -> Participant {
        let Config { voters, digest, .. } = &plan.config;
        let bootstrap = Bootstrap { members: plan.founders(), instance: 1, begins_anew: false };
        let bootstrap = matches!(voters, Voters::Fixed(_)).then_some(bootstrap);
        let coordinator = Coordinator::new(voters.clone(), voter.unwrap_or(0), bootstrap, *digest);
        let member = member.map(|member| Box::new(remember(member, image, now)));
        Participant::Model { member, coordinator: Box::new(coordinator) }
    }

    fn real(
        plan: &Plan,
        voter: Option<usize>,
        member: Option<(Config, MemberId)>,
        mut image: Option<Image<Entry>>,
        now: Instant,
    ) -> Participant {
        let group = match (&plan.config.voters, voter, member) {
            (Voters::Fixed(voters), Some(order), member) => {
                let bootstrap = Bootstrap { members: plan.founders(), instance: 1, begins_anew: false };
                let voter = FixedVoter { id: voter_id(order), bootstrap };
                let records = image.as_mut().and_then(|it| it.votes.remove(&FIXED)).unwrap_or_default();
                let member = member.map(|member| remember(member, image, now));
                Group::with_vote(member, voters, &voter, &records, now)
                    .expect("a voter reads what it has written")
            }
            (_, _, Some((config, id))) => match image {
                Some(image) => Group::restore(config, id, now, image),
                None => Group::new(config, id, now),
            },
            _ => unreachable!("who does not vote is a member"),
        };
        Participant::Real(Box::new(group))
    }

    /// What it does in the group, if anything but to vote.
    pub(super) fn member(&self) -> Option<&Member<Entry>> {
        self.participant.member()
    }

    /// Which voter it is now.
    pub(super) fn voter(&self) -> Option<VoterId> {
        self.fixed.or_else(|| self.member().and_then(Member::voter))
    }

    /// Whether it votes on the end of the epoch that it knows.
    pub(super) fn votes(&self) -> bool {
        if self.fixed.is_some() {
            return true;
        }
        let voter = self.voter();
        let Participant::Model { coordinator, .. } = &self.participant else { return false };
        coordinator.view().is_some_and(|view| view.voters.iter().any(|it| Some(*it) == voter))
    }

    /// Whether its voter knows a view.
    pub(super) fn knows(&self, view: &plainsong_proto::atomic::View) -> bool {
        match &self.participant {
            Participant::Model { coordinator, .. } => coordinator.view().is_some_and(|it| **it == *view),
            Participant::Real(_) => false,
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.state != State::Dead
    }

    /// Whether it takes what comes.
    pub(super) fn runs(&self) -> bool {
        self.state == State::Runs
    }

    pub(super) fn phase(&self) -> Option<Phase> {
        self.member().map(Member::phase)
    }

    /// Instance and epoch that its member is in.
    pub(super) fn epoch(&self) -> Option<(u64, u64)> {
        let view = self.member()?.view()?;
        Some((view.instance, view.epoch))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.participant.next_deadline(self.votes())
    }
}

fn remember((config, id): (Config, MemberId), image: Option<Image<Entry>>, now: Instant) -> Member<Entry> {
    match image.filter(|_| config.storage != Storage::None) {
        Some(image) => Member::restore(config, id, now, image),
        None => Member::new(config, id, now),
    }
}
