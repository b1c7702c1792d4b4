//! A random system and what its applications do: hosts, processes, topics, legal QoS, writes.

use plainsong_proto::discovery::DiscoveryLimits;
use plainsong_proto::locator::{Locator, ports};
use plainsong_proto::qos::{DestinationOrder, EntityKind, Presentation, QosSet};
use plainsong_proto::time::{Duration, Instant};

use crate::clock::Clock;
use crate::fault::{Extent, Fault, FaultPlan};
use crate::ledger::Taking;
use crate::network::Host;
use crate::node::NodeOptions;
use crate::qos::{self, Change};
use crate::rng::Rng;
use crate::sample::Filter;
use crate::world::{Topic, Write, WriteKind};

/// A system, what happens in it and what goes wrong.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its topics.
    pub topics: Vec<TopicPlan>,
    /// Its processes.
    pub nodes: Vec<NodePlan>,
    /// What goes wrong.
    pub faults: FaultPlan,
    /// When faults end.
    pub safe_until: Instant,
    /// When the last sample is written.
    pub writing_until: Instant,
}

/// A topic and how it is used.
#[derive(Clone, Debug)]
pub struct TopicPlan {
    /// Name and key.
    pub topic: Topic,
    /// Instances there are; 1 without key.
    pub instances: u32,
    /// Largest payload in octets.
    pub bytes_max: usize,
    /// QoS from which those of its endpoints deviate.
    pub qos: QosSet,
}

/// A process and its endpoints.
#[derive(Clone, Debug)]
pub struct NodePlan {
    /// How it is set up.
    pub options: NodeOptions,
    /// When it starts.
    pub starts_at: Instant,
    /// Its publishers and subscribers.
    pub groups: Vec<GroupPlan>,
    /// Its endpoints.
    pub endpoints: Vec<EndpointPlan>,
}

/// A publisher or subscriber.
#[derive(Clone, Debug)]
pub struct GroupPlan {
    /// Which participant of the node.
    pub member: usize,
    /// It is a publisher.
    pub publishes: bool,
    /// Its QoS.
    pub qos: QosSet,
    /// What of its QoS changes, after how long.
    pub changes: Vec<(Duration, Change)>,
    /// How all readers of a subscriber take that are looked at together.
    pub taking: Taking,
}

/// A writer or a reader.
#[derive(Clone, Debug)]
pub struct EndpointPlan {
    /// Which publisher or subscriber of the node.
    pub group: usize,
    /// Which topic of the plan.
    pub topic: usize,
    /// Its QoS.
    pub qos: QosSet,
    /// When it is created, after its process.
    pub starts_after: Duration,
    /// How long it lives, if not to the end.
    pub lives: Option<Duration>,
    /// What of its QoS changes, after how long.
    pub changes: Vec<(Duration, Change)>,
    /// Which other content filters it has, if it has any, and after how long.
    pub filter_changes: Vec<(Duration, Filter)>,
    /// What it does.
    pub role: Role,
}

/// What an endpoint does.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// Writes.
    Write {
        /// Longest pause between writes.
        pause_max: Duration,
        /// Writes at most so often.
        writes_max: u32,
        /// Its instances are nobody else's when set.
        own_instances: bool,
        /// Of a hundred writes, so many end an instance.
        ends_percent: u64,
    },
    /// Reads.
    Read {
        /// When it takes.
        taking: Taking,
        /// What it wants, if not everything.
        filter: Option<Filter>,
    },
}

/// Octets all writers together may write in one run: what a run costs.
const OCTETS_MAX: u64 = 3_000_000;

impl Plan {
    /// Draws a system.
    #[must_use]
    pub fn draw(rng: &mut Rng) -> Self {
        let safe_until = Instant(rng.between(3, 12) * 1_000_000_000);
        let writing_until = Instant(safe_until.0 + 2_000_000_000);
        let hosts = rng.between(1, 4) as u8;
        let topics: Vec<TopicPlan> = (0..rng.between(1, 3)).map(|index| topic(rng, index)).collect();
        let usual = qos::presentation(rng);
        let count = rng.between(2, 5);
        let mut nodes: Vec<NodePlan> =
            (0..count).map(|_| node(rng, hosts, &topics, usual, safe_until)).collect();
        if rng.chance(15) {
            nodes.iter_mut().for_each(|node| node.options.peers = peers(hosts, node.options.domain));
        }
        let faults = FaultPlan::draw(rng, Extent { nodes: nodes.len(), hosts, until: safe_until });
        let mut plan = Self { topics, nodes, faults, safe_until, writing_until };
        plan.bound_traffic();
        plan
    }

    /// Lets the parameters of content filters change. Drawn by itself, so that all else is as it was without.
    pub fn change_filters(&mut self, rng: &mut Rng) {
        for endpoint in self.nodes.iter_mut().flat_map(|node| &mut node.endpoints) {
            if matches!(endpoint.role, Role::Read { filter: Some(_), .. }) && rng.chance(60) {
                let change = |_| (Duration::from_millis(rng.between(100, 10_000) as i64), filter(rng));
                endpoint.filter_changes = (0..3).map(change).collect();
            }
        }
    }

    /// Fewer writes where they are large.
    fn bound_traffic(&mut self) {
        let topics = &self.topics;
        let endpoints = || self.nodes.iter().flat_map(|node| &node.endpoints);
        let writers = endpoints().filter(|one| matches!(one.role, Role::Write { .. })).count() as u64;
        let share = OCTETS_MAX / writers.max(1);
        for endpoint in self.nodes.iter_mut().flat_map(|node| &mut node.endpoints) {
            if let Role::Write { writes_max, .. } = &mut endpoint.role {
                let mean = topics[endpoint.topic].bytes_max as u64 / 2 + 1;
                *writes_max = (*writes_max).min((share / mean).max(4) as u32);
            }
        }
    }

    /// Whether a process may be started again, and with which clock and ports.
    #[must_use]
    pub fn faults_at(&self) -> &[(Instant, Fault)] {
        &self.faults.0
    }
}

/// One write of a writer that has written `written` times before. `shift` sets apart the instances of
/// writers that have their own.
#[must_use]
pub fn draw_write(rng: &mut Rng, topic: &TopicPlan, ends_percent: u64, shift: u32) -> Write {
    let instance = if topic.topic.keyed { rng.below(topic.instances.into()) as u32 + 1 + shift } else { 0 };
    let kind = match rng.below(100) {
        roll if topic.topic.keyed && roll < ends_percent / 2 => WriteKind::Dispose,
        roll if topic.topic.keyed && roll < ends_percent => WriteKind::Unregister,
        _ => WriteKind::Data,
    };
    // Small samples are the rule even on topics with large ones.
    let bytes_max = if rng.chance(50) { topic.bytes_max } else { topic.bytes_max.min(200) };
    let bytes = rng.between(28, bytes_max.max(28) as u64) as usize;
    // Applications may date their samples back; where order depends on it, some do.
    let dated = topic.qos.destination_order == DestinationOrder::BySourceTimestamp && rng.chance(20);
    let aged = if dated { Duration::from_millis(rng.below(300) as i64) } else { Duration::ZERO };
    Write { kind, instance, bytes, aged }
}

fn topic(rng: &mut Rng, index: u64) -> TopicPlan {
    let keyed = rng.chance(60);
    let instances = if keyed { *rng.pick(&[1, 2, 3, 5, 20]) } else { 1 };
    let bytes_max = match rng.below(20) {
        0..12 => 120,
        12..17 => 6_000,
        17..19 => 70_000,
        _ => 200_000,
    };
    let topic = Topic { name: format!("topic{index}"), keyed };
    TopicPlan { topic, instances, bytes_max, qos: qos::topic(rng) }
}

/// The first discovery ports of every host: how systems without multicast are configured.
fn peers(hosts: u8, domain: u16) -> Vec<Locator> {
    let of_host = |host: u8| (0..5).map(move |index| Host(host).locator(ports::meta_unicast(domain, index)));
    (0..hosts).flat_map(of_host).collect()
}

fn node(rng: &mut Rng, hosts: u8, topics: &[TopicPlan], usual: Presentation, until: Instant) -> NodePlan {
    let participants = if rng.chance(15) { 2 } else { 1 };
    let announce_period = Duration::from_millis(rng.between(300, 1_000) as i64);
    let lease = announce_period.0 * rng.between(3, 5) as i64;
    let wall_error = if rng.chance(30) { rng.below(4_000_000_000) as i64 - 2_000_000_000 } else { 0 };
    let options = NodeOptions {
        host: Host(rng.below(hosts.into()) as u8),
        domain: if rng.chance(5) { 1 } else { 0 },
        participants,
        lease_duration: Duration(lease),
        announce_period,
        clock: Clock::new(rng.between(1, 1 << 40), Duration(wall_error)),
        peers: Vec::new(),
        tight: rng.chance(20),
        limits: DiscoveryLimits::default(),
        driver: false,
    };
    let groups: Vec<GroupPlan> = (0..participants)
        .flat_map(|member| [(member, true), (member, false)])
        .flat_map(|(member, publishes)| (0..2).map(move |_| (member, publishes)))
        .map(|(member, publishes)| group(rng, member, publishes, usual))
        .collect();
    let endpoints = (0..rng.between(1, 4)).map(|_| endpoint(rng, &groups, topics)).collect();
    let starts_at = if rng.chance(70) { 0 } else { rng.below(until.0) };
    NodePlan { options, starts_at: Instant(starts_at), groups, endpoints }
}

fn group(rng: &mut Rng, member: usize, publishes: bool, usual: Presentation) -> GroupPlan {
    let qos = qos::group(rng, usual, publishes);
    let changes = changes(rng, 12, Change::draw_of_group);
    GroupPlan { member, publishes, qos, changes, taking: taking(rng) }
}

fn endpoint(rng: &mut Rng, groups: &[GroupPlan], topics: &[TopicPlan]) -> EndpointPlan {
    let topic = rng.below(topics.len() as u64) as usize;
    let writes = rng.chance(45);
    let starts_after = if rng.chance(60) { 0 } else { rng.below(4_000_000_000) as i64 };
    let lives = rng.chance(20).then(|| Duration::from_millis(rng.between(100, 6_000) as i64));
    let fitting: Vec<usize> = (0..groups.len()).filter(|group| groups[*group].publishes == writes).collect();
    // The first publisher and subscriber of a participant have most of its endpoints.
    let group = if rng.chance(60) { fitting[0] } else { *rng.pick(&fitting) };
    let (qos, kind) = if writes {
        (qos::writer(rng, &topics[topic].qos, &groups[group].qos), EntityKind::Writer)
    } else {
        (qos::reader(rng, &topics[topic].qos, &groups[group].qos), EntityKind::Reader)
    };
    let role = if writes { write_role(rng) } else { read_role(rng) };
    let changes = changes(rng, 15, |rng| Change::draw(rng, kind));
    EndpointPlan {
        group,
        topic,
        qos,
        starts_after: Duration(starts_after),
        lives,
        changes,
        filter_changes: Vec::new(),
        role,
    }
}

fn changes(rng: &mut Rng, percent: u64, draw: impl Fn(&mut Rng) -> Change) -> Vec<(Duration, Change)> {
    let count = if rng.chance(percent) { rng.between(1, 3) } else { 0 };
    (0..count).map(|_| (Duration::from_millis(rng.between(100, 8_000) as i64), draw(rng))).collect()
}

fn write_role(rng: &mut Rng) -> Role {
    let pause_max = Duration::from_millis(*rng.pick(&[1, 10, 50, 200, 1_000]));
    Role::Write {
        pause_max,
        writes_max: rng.between(5, 300) as u32,
        own_instances: rng.chance(70),
        ends_percent: if rng.chance(60) { rng.between(1, 30) } else { 0 },
    }
}

fn read_role(rng: &mut Rng) -> Role {
    let filter = rng.chance(12).then(|| filter(rng));
    Role::Read { taking: taking(rng), filter }
}

fn filter(rng: &mut Rng) -> Filter {
    let one_in = rng.between(1, 4) as u32;
    Filter { one_in, remainder: rng.below(one_in.into()) as u32 }
}

fn taking(rng: &mut Rng) -> Taking {
    match rng.below(10) {
        0..6 => Taking::Promptly,
        6..9 => Taking::Every(Duration::from_millis(rng.between(20, 3_000) as i64)),
        _ => Taking::AtEnd,
    }
}
