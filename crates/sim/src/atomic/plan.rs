//! What a run is like: who takes part, what is written, and what goes wrong when.

use plainsong_proto::atomic::Storage;
use plainsong_proto::atomic::VoterId;
use plainsong_proto::atomic::member::Config;
use plainsong_proto::atomic::view::Voters;
use plainsong_proto::time::{Duration, Instant};

use crate::rng::Rng;

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Some 200 samples.
    Short,
    /// Some 20,000.
    Long,
}

/// One place where processes run, one after the other.
#[derive(Clone, Debug)]
pub(super) struct NodePlan {
    pub(super) is_member: bool,
    /// Which of the fixed voters it is.
    pub(super) voter: Option<usize>,
    pub(super) starts: Instant,
    /// Samples that it writes, in all its incarnations.
    pub(super) writes: u32,
    /// Mean time between them.
    pub(super) pause: Duration,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Block {
        from: usize,
        to: usize,
        both_ways: bool,
    },
    /// Nodes of this set and the others do not reach one another.
    Split(u32),
    Heal,
    Pause {
        node: usize,
        lasting: Duration,
    },
    /// What comes on lanes is not taken for a while.
    Slow {
        node: usize,
        lasting: Duration,
    },
    Clog {
        from: usize,
        to: usize,
        lasting: Duration,
    },
    Crash {
        node: usize,
        restart: Option<Duration>,
        /// What it starts again with, if not with what it had.
        loses_disk: bool,
    },
    /// All crash at once, and start again.
    PowerLoss {
        restart: Duration,
    },
    Leave {
        node: usize,
        again: Option<Duration>,
    },
    /// Nothing more can be written to the disk of this node until another process runs there.
    DiskFull {
        node: usize,
        again: Duration,
    },
    /// Another process takes the GUID prefix of this node.
    Clone {
        node: usize,
        lasting: Duration,
    },
    Loss(u64),
    Snapshot {
        node: usize,
    },
    /// An application takes nothing for a while.
    Hold {
        node: usize,
        lasting: Duration,
    },
}

/// How messages fare.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) loss_percent: u64,
    pub(super) twice_percent: u64,
    pub(super) delay_min: u64,
    pub(super) delay_mean: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) nodes: Vec<NodePlan>,
    pub(super) config: Config,
    pub(super) link: Link,
    /// Inputs within this are one batch.
    pub(super) batch: u64,
    /// Time until peers know each other.
    pub(super) discovery: u64,
    /// After a partition of this length lanes begin anew.
    pub(super) forgets_after: Option<Duration>,
    pub(super) depths: Vec<u8>,
    pub(super) keys: u64,
    pub(super) faults: Vec<(Instant, Fault)>,
    pub(super) faults_until: Instant,
    pub(super) persist_delay: u64,
}

const MILLI: u64 = 1_000_000;

/// The name of a fixed voter.
pub(super) const fn voter_id(order: usize) -> VoterId {
    VoterId([order as u8 + 1; 16])
}

impl Plan {
    pub(super) fn draw(rng: &mut Rng, length: Length) -> Self {
        let members = *rng.pick(&[1, 2, 3, 3, 3, 3, 4, 4, 5, 5, 6, 7]);
        let long = length == Length::Long;
        let until = if long { rng.between(20_000, 40_000) } else { rng.between(1_500, 5_000) } * MILLI;
        let writes = if long { 20_000 } else { 200 };
        let mut nodes = draw_nodes(rng, members, until, writes);
        let is_fixed = rng.chance(60);
        let voters = if is_fixed { draw_voters(rng, &mut nodes) } else { Voters::Members };
        let config = draw_config(rng, voters, members);
        let delay_mean = *rng.pick(&[20_000, 100_000, 1_000_000, 5_000_000]);
        let link = Link {
            loss_percent: 0,
            twice_percent: if rng.chance(40) { rng.between(1, 10) } else { 0 },
            delay_min: *rng.pick(&[5_000, 50_000, 500_000]),
            delay_mean,
        };
        let mut plan = Self {
            nodes,
            config,
            link,
            batch: *rng.pick(&[0, 10_000, 50_000, 500_000]),
            discovery: *rng.pick(&[1, 20, 200]) * MILLI,
            forgets_after: rng.chance(25).then(|| Duration::from_millis(rng.between(500, 3_000) as i64)),
            depths: vec![*rng.pick(&[0, 0, 1, 2, 3])],
            keys: rng.between(1, 4),
            faults: Vec::new(),
            faults_until: Instant(until),
            persist_delay: *rng.pick(&[100_000, 2 * MILLI, 20 * MILLI, 300 * MILLI]),
        };
        plan.draw_faults(rng, long);
        plan
    }

    /// So many make a group, where the voters are fixed.
    pub(super) fn founders(&self) -> usize {
        self.nodes.iter().filter(|it| it.is_member && it.starts.0 < 20_000_000).count().max(1)
    }

    pub(super) fn has_snapshots(&self) -> bool {
        self.faults.iter().any(|(_, fault)| matches!(fault, Fault::Snapshot { .. }))
    }

    fn draw_faults(&mut self, rng: &mut Rng, long: bool) {
        let until = self.faults_until.0;
        let count = match rng.below(10) {
            0 => 0,
            1..3 => 1,
            _ => rng.between(1, if long { 60 } else { 10 }),
        };
        // Some kinds of faults are more frequent in some runs.
        let favourite = rng.below(12);
        for _ in 0..count {
            let at = Instant(rng.below(until));
            let kind = if rng.chance(40) { favourite } else { rng.below(12) };
            let fault = self.draw_fault(rng, kind);
            self.faults.push((at, fault));
            if matches!(fault, Fault::Block { .. } | Fault::Split(_)) && rng.chance(80) {
                let lasting = *rng.pick(&[50, 400, 1_000, 3_000]) * rng.between(500, 1_500) * 1_000;
                self.faults.push((Instant(at.0 + lasting), Fault::Heal));
            }
        }
        if rng.chance(50) {
            self.faults.push((Instant(0), Fault::Loss(rng.between(1, 30))));
        }
        if self.config.keeps_history && rng.chance(30) {
            for _ in 0..rng.between(1, 4) {
                let node = rng.below(self.nodes.len() as u64) as usize;
                self.faults.push((Instant(rng.below(until)), Fault::Snapshot { node }));
            }
        }
        if rng.chance(30) {
            for _ in 0..rng.between(1, 4) {
                let node = rng.below(self.nodes.len() as u64) as usize;
                let most = *rng.pick(&[50, 1_000, 5_000]);
                let lasting = Duration::from_millis(rng.between(1, most) as i64);
                self.faults.push((Instant(rng.below(until)), Fault::Hold { node, lasting }));
            }
        }
        if self.config.storage != Storage::None && rng.chance(20) {
            let again = Duration::from_millis(rng.between(1, 1_000) as i64);
            let node = rng.below(self.nodes.len() as u64) as usize;
            self.faults.push((Instant(rng.below(until)), Fault::DiskFull { node, again }));
        }
        if self.config.storage != Storage::None && rng.chance(50) {
            for _ in 0..rng.between(1, if long { 10 } else { 3 }) {
                let restart = Duration::from_millis(rng.between(1, 1_000) as i64);
                let at = Instant(rng.below(until));
                self.faults.push((at, Fault::PowerLoss { restart }));
                if rng.chance(50) {
                    // And again when they have hardly begun.
                    let again = at.0 + restart.0 as u64 + rng.below(400 * MILLI);
                    self.faults.push((Instant(again), Fault::PowerLoss { restart }));
                }
            }
        }
        self.draw_founding_fault(rng);
        self.faults.retain(|(at, _)| at.0 < until);
        self.faults.sort_by_key(|(at, _)| *at);
    }

    /// A group that is kept on disks loses power, or who makes it is killed, when it has hardly begun.
    fn draw_founding_fault(&mut self, rng: &mut Rng) {
        let Some(after) = self.config.bootstrap_after.filter(|_| self.config.storage != Storage::None) else {
            return;
        };
        if rng.chance(25) {
            return;
        }
        let within = *rng.pick(&[30, 100, 400]) * MILLI;
        let restart = Duration::from_millis(rng.between(1, 1_500) as i64);
        let fault = if rng.chance(70) {
            Fault::PowerLoss { restart }
        } else {
            let node = rng.below(self.nodes.len() as u64) as usize;
            Fault::Crash { node, restart: Some(restart), loses_disk: false }
        };
        self.faults.push((Instant(after.0 as u64 + rng.below(within)), fault));
    }

    fn draw_fault(&self, rng: &mut Rng, kind: u64) -> Fault {
        let count = self.nodes.len() as u64;
        let node = rng.below(count) as usize;
        let other = rng.below(count) as usize;
        let millis =
            |rng: &mut Rng, low: u64, high: u64| Duration::from_millis(rng.between(low, high) as i64);
        match kind {
            0..2 => Fault::Block { from: node, to: other, both_ways: rng.chance(50) },
            2 => Fault::Split(rng.below(1 << count) as u32),
            3..5 => {
                let high = *rng.pick(&[200, 1_000, 3_000, 10_000]);
                Fault::Pause { node, lasting: millis(rng, 100, high) }
            }
            5 => Fault::Slow { node, lasting: millis(rng, 50, 3_000) },
            6 => Fault::Clog { from: node, to: other, lasting: millis(rng, 10, 1_000) },
            7..9 => {
                let restart = millis(rng, 1, 2_000);
                // A voter without its disk is another.
                let loses_disk = rng.chance(20) && self.nodes[node].voter.is_none();
                Fault::Crash { node, restart: rng.chance(75).then_some(restart), loses_disk }
            }
            9 => {
                let again = millis(rng, 1, 1_000);
                Fault::Leave { node, again: rng.chance(75).then_some(again) }
            }
            10 => Fault::Clone { node, lasting: millis(rng, 100, 3_000) },
            _ => Fault::Loss(rng.between(0, 30)),
        }
    }
}

fn draw_nodes(rng: &mut Rng, members: usize, until: u64, writes: u64) -> Vec<NodePlan> {
    // At least one writes.
    let writers = rng.between(1, members as u64);
    let late = rng.chance(40);
    let node = |index: usize| {
        let writes = if (index as u64) < writers { writes / writers } else { 0 };
        // Some write steadily, others at once.
        let share = *rng.pick(&[1, 2, 4, 20]);
        let pause = until.saturating_sub(500 * MILLI) / (writes.max(1) * share);
        let starts = if late && rng.chance(30) { rng.below(until) } else { rng.below(20 * MILLI) };
        NodePlan {
            is_member: true,
            voter: None,
            starts: Instant(starts),
            writes: writes as u32,
            pause: Duration(pause as i64),
        }
    };
    (0..members).map(node).collect()
}

/// One, three or five voters, members or witnesses.
fn draw_voters(rng: &mut Rng, nodes: &mut Vec<NodePlan>) -> Voters {
    let count = *rng.pick(&[1, 3, 3, 3, 5]);
    let members = nodes.len();
    for order in 0..count {
        let free: Vec<usize> = (0..members).filter(|&node| nodes[node].voter.is_none()).collect();
        if !free.is_empty() && rng.chance(60) {
            nodes[*rng.pick(&free)].voter = Some(order);
        } else {
            let starts = Instant(rng.below(20 * MILLI));
            nodes.push(NodePlan {
                is_member: false,
                voter: Some(order),
                starts,
                writes: 0,
                pause: Duration(0),
            });
        }
    }
    Voters::Fixed((0..count).map(voter_id).collect())
}

fn draw_config(rng: &mut Rng, voters: Voters, members: usize) -> Config {
    let storage = match rng.below(100) {
        0..18 => Storage::Durable,
        18..25 => Storage::Stable,
        _ => Storage::None,
    };
    let keeps_history = storage != Storage::None || rng.chance(50);
    let bootstrap_after =
        (voters == Voters::Members).then(|| Duration::from_millis(*rng.pick(&[100, 300, 1_000])));
    Config {
        digest: 0x1234,
        lease: Duration::from_millis(*rng.pick(&[300, 500, 500, 500])),
        stuck: Duration::from_millis(*rng.pick(&[700, 2_000])),
        slow: if rng.chance(70) {
            Duration::INFINITE
        } else {
            Duration::from_millis(rng.between(200, 1_000) as i64)
        },
        window_entries: *rng.pick(&[4, 16, 64, 256, 1024]),
        window_octets: *rng.pick(&[500, 1 << 20]),
        keeps_history,
        history_entries_max: if rng.chance(20) { 20 } else { 1_000_000 },
        storage,
        voters,
        bootstrap_after,
        instance: members as u64,
    }
}
