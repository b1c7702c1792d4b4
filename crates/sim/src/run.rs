//! One run: a plan drawn from a seed, carried out in a world, judged by every checker.

use std::collections::BTreeMap;

use plainsong_proto::qos::{AccessScope, EntityKind, QosSet};
use plainsong_proto::time::{Duration, Instant};

use crate::check::Violation;
use crate::fault::Fault;
use crate::mutation::Mutation;
use crate::network::Host;
use crate::node::State;
use crate::qos::Change;
use crate::rng::Rng;
use crate::sample::Filter;
use crate::trace::Detail;
use crate::workload::{self, EndpointPlan, GroupPlan, Plan, Role};
use crate::world::{Scene, World};

/// How a run came out.
pub struct Verdict {
    /// The seed.
    pub seed: u64,
    /// What should never have been.
    pub violations: Vec<Violation>,
    /// The world as it ended, with its trace.
    pub world: World,
}

/// Time in which all promises must come true once faults are over: several leases and back-offs.
const LIVENESS: Duration = Duration::from_secs(20);
/// Time in which strangers of discovery do what they do, while others write.
const INTRUSION: Duration = Duration::from_secs(5);
/// Time listened to when everything should be quiet.
const QUIET: Duration = Duration::from_secs(5);

/// One seed in so many has the driver of the library dispatch.
const DRIVER_SHARE: u64 = 8;

/// In one seed of so many processes of one host share memory.
const MEMORY_SHARE: u64 = 3;

/// Carries out the run of `seed`.
#[must_use]
pub fn run(seed: u64, detail: Detail, mutation: Option<Mutation>) -> Verdict {
    let mut rng = Rng::new(seed);
    let mut plan = Plan::draw(&mut rng);
    plan.change_filters(&mut Rng::new(!seed));
    let mut world = World::new(rng.next(), detail);
    world.mutation = mutation;
    // Mistakes are made in what the node does itself.
    world.driver = mutation.is_none() && seed % DRIVER_SHARE == DRIVER_SHARE - 1;
    world.shares_memory = match mutation {
        Some(mutation) => mutation.is_of_memory(),
        None => !world.driver && seed.is_multiple_of(MEMORY_SHARE),
    };
    if let Some(scene) = Scene::draw(seed) {
        world.play(scene, &mut rng);
        let violations = world.finish(LIVENESS, QUIET);
        return Verdict { seed, violations, world };
    }
    let mut director =
        Director { plan, rng, items: Vec::new(), nodes: Vec::new(), groups: BTreeMap::new(), owners: 0 };
    if world.draw_intrusion(seed, director.plan.safe_until) {
        director.plan.writing_until =
            director.plan.writing_until.after(INTRUSION).unwrap_or(director.plan.writing_until);
    }
    director.begin(&mut world, seed);
    director.until(&mut world, director.plan.safe_until);
    world.heal();
    director.until(&mut world, director.plan.writing_until);
    world.end_sets();
    let violations = world.finish(LIVENESS, QUIET);
    Verdict { seed, violations, world }
}

/// Something the plan wants done at a time.
#[derive(Clone, Debug)]
enum Item {
    Start {
        plan: usize,
    },
    Begin {
        node: usize,
        plan: usize,
        endpoint: usize,
    },
    Write {
        writer: usize,
        plan: usize,
        endpoint: usize,
        left: u32,
        shift: u32,
    },
    EndWriter(usize),
    EndReader(usize),
    /// QoS of a writer or reader changes.
    ChangeEndpoint {
        endpoint: Created,
        change: Change,
    },
    /// QoS of a publisher or subscriber changes, and with it that of all its endpoints.
    ChangeGroup {
        node: usize,
        group: usize,
        change: Change,
    },
    /// The content filter of a reader changes.
    ChangeFilter {
        reader: usize,
        filter: Filter,
    },
    BeginSet(usize),
    EndSet(usize),
    Fault(Fault),
    /// Writers of a node are matched with readers that nobody has.
    Stranger {
        node: usize,
        asks: bool,
    },
}

/// An endpoint by its place in the ledger.
#[derive(Clone, Copy, Debug)]
enum Created {
    Writer(usize),
    Reader(usize),
}

/// A publisher or subscriber of the plan as it is now.
struct Living {
    group: usize,
    qos: QosSet,
    endpoints: Vec<Created>,
}

/// Carries out a plan.
struct Director {
    plan: Plan,
    rng: Rng,
    items: Vec<Item>,
    /// The process that plays each node of the plan now.
    nodes: Vec<Option<usize>>,
    /// Publishers and subscribers by node and place in its plan.
    groups: BTreeMap<(usize, usize), Living>,
    /// Writers with instances of their own so far.
    owners: u32,
}

impl Director {
    fn begin(&mut self, world: &mut World, seed: u64) {
        self.nodes = vec![None; self.plan.nodes.len()];
        for plan in 0..self.plan.nodes.len() {
            self.schedule(world, self.plan.nodes[plan].starts_at, Item::Start { plan });
        }
        if let Some((at, node, asks)) =
            World::draw_stranger(seed, self.plan.nodes.len(), self.plan.safe_until)
        {
            self.schedule(world, at, Item::Stranger { node, asks });
        }
        for (at, fault) in self.plan.faults.0.clone() {
            self.schedule(world, at, Item::Fault(fault));
        }
    }

    fn until(&mut self, world: &mut World, until: Instant) {
        while !world.advance(until) {
            for item in std::mem::take(&mut world.due) {
                if let Some(item) = self.items.get(item as usize).cloned() {
                    self.carry_out(world, item);
                }
            }
        }
    }

    fn schedule(&mut self, world: &mut World, at: Instant, item: Item) {
        self.items.push(item);
        world.agenda(at, self.items.len() as u64 - 1);
    }

    fn after(&mut self, world: &mut World, delay: Duration, item: Item) {
        let at = world.at.after(delay).unwrap_or(Instant(u64::MAX));
        self.schedule(world, at, item);
    }

    fn carry_out(&mut self, world: &mut World, item: Item) {
        match item {
            // A process that stands still does these things when it runs again.
            Item::Begin { node, .. } if world.nodes[node].state == State::Paused => self.put_off(world, item),
            Item::EndWriter(writer) if world.is_paused_with_writer(writer) => self.put_off(world, item),
            Item::EndReader(reader) if world.is_paused_with_reader(reader) => self.put_off(world, item),
            Item::ChangeEndpoint { endpoint: Created::Writer(writer), .. }
                if world.is_paused_with_writer(writer) =>
            {
                self.put_off(world, item);
            }
            Item::ChangeEndpoint { endpoint: Created::Reader(reader), .. }
                if world.is_paused_with_reader(reader) =>
            {
                self.put_off(world, item);
            }
            Item::ChangeFilter { reader, .. } if world.is_paused_with_reader(reader) => {
                self.put_off(world, item);
            }
            Item::ChangeGroup { node, .. } if world.nodes[node].state == State::Paused => {
                self.put_off(world, item);
            }
            Item::EndSet(group) if world.is_group_running(group) == Some(false) => self.put_off(world, item),
            Item::Start { plan } => {
                let node = world.start(self.plan.nodes[plan].options.clone());
                self.nodes[plan] = Some(node);
                self.begin_groups(world, node, plan);
                for endpoint in 0..self.plan.nodes[plan].endpoints.len() {
                    let delay = self.plan.nodes[plan].endpoints[endpoint].starts_after;
                    self.after(world, delay, Item::Begin { node, plan, endpoint });
                }
            }
            // Whoever crashed meanwhile creates nothing any more.
            Item::Begin { node, plan, endpoint } if self.nodes[plan] == Some(node) => {
                self.begin_endpoint(world, node, plan, endpoint);
            }
            Item::Begin { .. } => {}
            Item::Write { writer, plan, endpoint, left, shift } => {
                self.write(world, writer, (plan, endpoint), left, shift);
            }
            Item::EndWriter(writer) => world.remove_writer(writer),
            Item::EndReader(reader) => world.remove_reader(reader),
            Item::ChangeEndpoint { endpoint, change } => change_endpoint(world, endpoint, &change),
            Item::ChangeFilter { reader, filter } => world.set_reader_filter(reader, filter),
            Item::ChangeGroup { node, group, change } => self.change_group(world, (node, group), &change),
            Item::BeginSet(group) => {
                world.begin_set(group);
                self.after_random(world, 300, Item::EndSet(group));
            }
            Item::EndSet(group) => {
                world.end_set(group);
                if world.is_group_running(group).is_some() {
                    self.after_random(world, 600, Item::BeginSet(group));
                }
            }
            Item::Fault(fault) => self.fault(world, fault),
            Item::Stranger { node, asks } => {
                if let Some(node) = self.nodes[node] {
                    world.haunt(node, asks);
                }
            }
        }
    }

    fn put_off(&mut self, world: &mut World, item: Item) {
        self.after(world, Duration::from_millis(20), item);
    }

    fn after_random(&mut self, world: &mut World, millis_max: u64, item: Item) {
        let delay = Duration::from_millis(self.rng.between(1, millis_max) as i64);
        self.after(world, delay, item);
    }

    fn begin_groups(&mut self, world: &mut World, node: usize, plan: usize) {
        for (index, group) in self.plan.nodes[plan].groups.clone().into_iter().enumerate() {
            let GroupPlan { member, publishes, qos, changes, .. } = group;
            let coherent = qos.presentation.coherent_access;
            let group = if publishes {
                world.add_publisher(node, member)
            } else {
                world.add_subscriber(node, member)
            };
            self.groups.insert((node, index), Living { group, qos, endpoints: Vec::new() });
            for (delay, change) in changes {
                self.after(world, delay, Item::ChangeGroup { node, group: index, change });
            }
            if publishes && coherent {
                self.after_random(world, 600, Item::BeginSet(group));
            }
        }
    }

    fn change_group(&mut self, world: &mut World, at: (usize, usize), change: &Change) {
        let Some(living) = self.groups.get_mut(&at) else { return };
        living.qos = change.applied(&living.qos, EntityKind::Publisher);
        living.endpoints.iter().for_each(|endpoint| change_endpoint(world, *endpoint, change));
    }

    fn begin_endpoint(&mut self, world: &mut World, node: usize, plan: usize, endpoint: usize) {
        let EndpointPlan { group, topic, mut qos, lives, changes, filter_changes, role, .. } =
            self.plan.nodes[plan].endpoints[endpoint].clone();
        let topic = self.plan.topics[topic].topic.clone();
        let taking_together = self.plan.nodes[plan].groups[group].taking;
        let Some(living) = self.groups.get_mut(&(node, group)) else { return };
        qos.partition.clone_from(&living.qos.partition);
        qos.group_data.clone_from(&living.qos.group_data);
        let (end, created) = match role {
            Role::Read { taking, filter } => {
                let together = qos.presentation.access_scope == AccessScope::Group;
                let taking = if together { taking_together } else { taking };
                let reader = world.add_reader_of(living.group, &topic, &qos, (taking, filter));
                for (delay, filter) in filter_changes {
                    self.after(world, delay, Item::ChangeFilter { reader, filter });
                }
                (Item::EndReader(reader), Created::Reader(reader))
            }
            Role::Write { writes_max, own_instances, .. } => {
                let writer = world.add_writer_of(living.group, &topic, &qos);
                self.owners += u32::from(own_instances);
                let shift = if own_instances { self.owners * 100 } else { 0 };
                let item = Item::Write { writer, plan, endpoint, left: writes_max, shift };
                self.after(world, Duration::ZERO, item);
                (Item::EndWriter(writer), Created::Writer(writer))
            }
        };
        if let Some(living) = self.groups.get_mut(&(node, group)) {
            living.endpoints.push(created);
        }
        for (delay, change) in changes {
            self.after(world, delay, Item::ChangeEndpoint { endpoint: created, change });
        }
        if let Some(lives) = lives {
            self.after(world, lives, end);
        }
    }

    fn write(&mut self, world: &mut World, writer: usize, at: (usize, usize), left: u32, shift: u32) {
        let (plan, endpoint) = at;
        let found = &self.plan.nodes[plan].endpoints[endpoint];
        let Role::Write { pause_max, ends_percent, .. } = found.role else { return };
        if left == 0 || !world.ledger.writers[writer].endpoint.is_alive() {
            return;
        }
        let mut left = left;
        if self.rng.chance(10) {
            world.assert_liveliness(writer);
        }
        if world.can_write(writer) {
            let topic = &self.plan.topics[found.topic];
            let burst = if self.rng.chance(5) { 10 } else { 1 };
            for _ in 0..burst.min(left) {
                if world.can_write(writer) {
                    left -= 1;
                    let write = workload::draw_write(&mut self.rng, topic, ends_percent, shift);
                    world.write(writer, write);
                }
            }
        }
        let pause = Duration(self.rng.below(pause_max.0 as u64) as i64 + 1_000);
        let item = Item::Write { writer, plan, endpoint, left, shift };
        self.after(world, pause, item);
    }

    fn fault(&mut self, world: &mut World, fault: Fault) {
        match fault {
            Fault::Link(link) => world.network.link = link,
            Fault::Partition { from, to, both_ways } => {
                world.network.block(Host(from), Host(to));
                if both_ways {
                    world.network.block(Host(to), Host(from));
                }
            }
            Fault::Forge { node, times } => {
                if let Some(node) = self.nodes[node] {
                    world.forge(node, times);
                }
            }
            Fault::Heal => world.network.unblock_all(),
            Fault::Pause { node, lasting } => {
                if let Some(node) = self.nodes[node] {
                    world.pause(node, lasting);
                }
            }
            Fault::Crash { node: plan, restart_after } => {
                let Some(node) = self.nodes[plan].take() else { return };
                world.crash(node);
                if let Some(delay) = restart_after {
                    self.after(world, delay, Item::Start { plan });
                }
            }
            Fault::Move { node, to } => {
                if let Some(node) = self.nodes[node] {
                    world.move_to(node, Host(to));
                }
            }
            Fault::WallJump { node, by } => {
                if let Some(node) = self.nodes[node] {
                    world.jump(node, by);
                }
            }
            Fault::Leave { node } if self.nodes[node].is_some_and(|node| !world.is_running(node)) => {
                self.put_off(world, Item::Fault(fault));
            }
            Fault::Leave { node } => {
                if let Some(node) = self.nodes[node].take() {
                    world.leave(node);
                }
            }
        }
    }
}

fn change_endpoint(world: &mut World, endpoint: Created, change: &Change) {
    match endpoint {
        Created::Writer(writer) => {
            let qos = change.applied(&world.ledger.writers[writer].endpoint.qos, EntityKind::Writer);
            world.set_writer_qos(writer, &qos);
        }
        Created::Reader(reader) => {
            let qos = change.applied(&world.ledger.readers[reader].endpoint.qos, EntityKind::Reader);
            world.set_reader_qos(reader, &qos);
        }
    }
}
