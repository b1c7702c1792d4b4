//! Who takes part in a cell, where, and what each is told.

use std::time::Duration;

use plainsong_perfkit::WorkerSpec;
use plainsong_perfkit::spec::{Background, EndpointSpec, Pacing, ReadCall, ReadMethod, Role, SessionSpec};

use crate::perf::campaign::values::Time;
use crate::perf::campaign::{Campaign, Durability, Echo, Kind, Planned, Point, Scenario};

/// One worker of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Party {
    /// Its place: an index of the nodes of its network.
    pub(crate) node: usize,
    pub(crate) adapter: String,
    pub(crate) pin: Option<u32>,
    pub(crate) spec: WorkerSpec,
    /// The others go on for as long as one of these does.
    pub(crate) leads: bool,
    /// When it is killed, counted from the start.
    pub(crate) killed_after: Option<Duration>,
}

/// Where parties can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// How others reach it, if it has an address.
    pub(crate) address: Option<String>,
    pub(crate) interface: Option<String>,
}

/// What one repetition of a cell is made from.
pub(crate) struct Draft<'a> {
    pub(crate) campaign: &'a Campaign,
    pub(crate) planned: &'a Planned,
    pub(crate) nodes: &'a [Node],
    /// All nodes read one clock.
    pub(crate) one_clock: bool,
    pub(crate) repetition: u32,
    /// Position in the run: neighbours in time share neither domain nor topics.
    pub(crate) order: u32,
}

const MATCH_TIMEOUT: Time = Time::from_millis(15_000);
const DRAIN: Time = Time::from_millis(500);
/// With loss, a repair may take some heartbeats.
const DRAIN_LOSSY: Time = Time::from_millis(2000);
/// For the last acknowledgement of reliable writers: longer than the slowest period of heartbeats that
/// products have by default (3 s).
const SETTLE_MS: u64 = 5000;
/// And for each process more, which all share the cores.
const SETTLE_EACH_MS: u64 = 100;
/// Steps of a ramp that are waited for unless its scenario says how long.
const RAMP_STEPS_MAX: u64 = 40;
const FIRST_DOMAIN: u32 = 20;
/// Samples that a writer beside pings keeps: what is written faster than it is sent would fill the memory.
const BACKGROUND_DEPTH: u32 = 2;
/// What an outage is unless its scenario says how long.
const OUTAGE: Time = Time::from_millis(1000);

/// Nothing at all gets through in this time, counted from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outage {
    pub(crate) begin: Duration,
    pub(crate) end: Duration,
}

impl Kind {
    /// What is done once, or in a time of its own, is measured from the start.
    fn has_warmup(self) -> bool {
        !matches!(self, Self::Discovery | Self::ReadCost | Self::Encode)
    }

    fn has_pongs(self) -> bool {
        matches!(self, Self::Pingpong | Self::LatencyAtRate | Self::Large)
    }
}

/// How long the measured part of a scenario takes at most.
pub(crate) fn duration(campaign: &Campaign, scenario: &Scenario) -> Time {
    let of_ramp =
        scenario.ramp.map(|ramp| Time::from_millis(ramp.hold.millis().saturating_mul(RAMP_STEPS_MAX)));
    // Discovery ends by itself, at the latest when its patience does.
    let of_discovery =
        (scenario.kind == Kind::Discovery).then(|| scenario.match_timeout.unwrap_or(MATCH_TIMEOUT));
    let chosen = scenario.duration.or(of_ramp).or(of_discovery).unwrap_or(campaign.duration);
    // As long before an outage and after it as it takes, at least.
    let outages = scenario.outage.iter().flat_map(|it| &it.0).copied();
    let outage = (scenario.kind == Kind::Outage).then(|| outages.max().unwrap_or(OUTAGE));
    chosen.max(Time(outage.map_or(Duration::ZERO, |it| 3 * it.0)))
}

/// How long a repetition takes, but for starting and ending processes.
pub(crate) fn estimate(campaign: &Campaign, planned: &Planned) -> Duration {
    let Some(scenario) = campaign.scenarios.get(planned.scenario) else { return Duration::ZERO };
    let kind = scenario.kind;
    if !kind.has_warmup() {
        return Duration::from_secs(2);
    }
    let warmup = scenario.warmup.unwrap_or(campaign.warmup);
    warmup.0
        + duration(campaign, scenario).0
        + if kind.has_pongs() { Duration::ZERO } else { drain(scenario, &planned.point).0 }
}

fn drain(scenario: &Scenario, point: &Point) -> Time {
    scenario.drain.unwrap_or(if point.loss_percent > 0.0 { DRAIN_LOSSY } else { DRAIN })
}

fn settle_ms(scenario: &Scenario, point: &Point) -> u64 {
    if scenario.kind.has_pongs() || !point.reliable {
        return 0;
    }
    let processes = point.publishers.saturating_add(point.subscribers);
    SETTLE_MS + SETTLE_EACH_MS * u64::from(processes)
}

impl Draft<'_> {
    /// The outage of the cell, if it is about one: in the middle of the measured time.
    pub(crate) fn outage(&self) -> Option<Outage> {
        let scenario = self.campaign.scenarios.get(self.planned.scenario)?;
        let length = self.planned.point.outage.0;
        if scenario.kind != Kind::Outage {
            return None;
        }
        let warmup = scenario.warmup.unwrap_or(self.campaign.warmup).0;
        let begin = warmup + duration(self.campaign, scenario).0.saturating_sub(length) / 2;
        Some(Outage { begin, end: begin + length })
    }

    /// All workers of the cell.
    pub(crate) fn parties(&self) -> Vec<Party> {
        let Some(scenario) = self.campaign.scenarios.get(self.planned.scenario) else { return Vec::new() };
        match scenario.kind {
            Kind::Pingpong | Kind::LatencyAtRate | Kind::Large => self.ping_and_pong(scenario),
            Kind::Discovery => self.discoverers(scenario),
            Kind::ReadCost => vec![self.read_cost(scenario)],
            Kind::Encode => {
                let role = Role::Encode { type_name: self.planned.point.type_name.clone() };
                vec![self.party(scenario, "encode".to_owned(), 0, role, true)]
            }
            _ => self.publishers_and_subscribers(scenario),
        }
    }

    fn party(&self, scenario: &Scenario, name: String, node: usize, role: Role, writes: bool) -> Party {
        let (campaign, point) = (self.campaign, &self.planned.point);
        let place = self.nodes.get(node).cloned().unwrap_or(Node { address: None, interface: None });
        // With one node there is nobody on another host.
        let others = self.nodes.iter().enumerate().filter(|(other, _)| *other != node);
        let session = SessionSpec {
            domain: campaign.network.domain.unwrap_or(FIRST_DOMAIN) + self.order % 10,
            interface: place.interface,
            multicast: point.multicast.0,
            peers: others.filter_map(|(_, other)| other.address.clone()).collect(),
            listen: place.address.filter(|_| self.nodes.len() > 1),
            profile: point.profile,
            // The agent knows one.
            scratch: String::new(),
        };
        let cell = &self.planned.cell;
        let spec = WorkerSpec {
            name,
            session,
            role,
            warmup_ms: if scenario.kind.has_warmup() {
                scenario.warmup.unwrap_or(campaign.warmup).millis()
            } else {
                0
            },
            duration_ms: duration(campaign, scenario).millis(),
            samples_max: scenario.samples.unwrap_or(0),
            match_timeout_ms: scenario.match_timeout.unwrap_or(MATCH_TIMEOUT).millis(),
            drain_ms: drain(scenario, point).millis(),
            settle_ms: settle_ms(scenario, point),
            faults: scenario.faults.unwrap_or_default(),
            seed: campaign.seed.wrapping_mul(1_000_003).wrapping_add(u64::from(self.repetition)),
            background: None,
        };
        let pin = scenario.pin.unwrap_or(campaign.pin).then_some(u32::from(!writes));
        let adapter = if writes { cell.adapter.clone() } else { cell.peer.clone() };
        Party { node, adapter, pin, spec, leads: writes, killed_after: None }
    }

    /// Of its own for each repetition: nothing of the one before can be heard.
    fn topic(&self, part: &str) -> String {
        format!("perf_{part}_{}", self.order)
    }

    fn endpoint(&self, part: &str, keyed: bool) -> EndpointSpec {
        let point = &self.planned.point;
        EndpointSpec {
            topic: self.topic(part),
            keyed: keyed || point.instances > 1 || self.compares_instances(),
            reliable: point.reliable,
            history_depth: point.history.map_or(16, |it| it.depth),
            transient_local: point.durability == Some(Durability::TransientLocal),
            blocking_ms: point.blocking.map_or(1000, Time::millis),
            ownership_strength: None,
            deadline_ms: point.deadline.millis(),
            liveliness_ms: point.liveliness.millis(),
            priority: point.priority,
            payload_max: point.size.max(4),
            instances: point.instances.max(1),
            batching: point.batching.unwrap_or(true),
            read: point.read.map_or(ReadMethod::Listener, |it| it.0),
            filter_instances_below: None,
        }
    }

    /// One instance is compared with many: of the same type, or it would be the key that is measured.
    fn compares_instances(&self) -> bool {
        let instances =
            self.campaign.scenarios.get(self.planned.scenario).and_then(|it| it.instances.as_ref());
        instances.is_some_and(|instances| instances.0.iter().any(|number| *number > 1))
    }

    /// Writers are on the first node, readers on the others, if there are any.
    fn reader_node(&self, number: u32) -> usize {
        match self.nodes.len() {
            0 | 1 => 0,
            nodes => 1 + number as usize % (nodes - 1),
        }
    }

    /// What streams beside pings, without their priority.
    fn background(&self) -> Option<Background> {
        let wanted = self.planned.point.background;
        let pacing = if wanted.rate == 0 { Pacing::Max } else { Pacing::Rate { rate: wanted.rate } };
        let endpoint = EndpointSpec {
            priority: 0,
            payload_max: wanted.size,
            reliable: true,
            history_depth: BACKGROUND_DEPTH,
            ..self.endpoint("background", false)
        };
        (wanted.size > 0).then_some(Background { endpoint, size: wanted.size, pacing })
    }

    fn ping_and_pong(&self, scenario: &Scenario) -> Vec<Party> {
        let point = &self.planned.point;
        let large = scenario.kind == Kind::Large;
        let ping = Role::Ping {
            writer: self.endpoint("ping", false),
            reader: self.endpoint("pong", false),
            size: point.size,
            rate: point.rate,
            timeout_ms: if large { 10_000 } else { 1000 },
            answers: 1,
        };
        let pong = Role::Pong {
            reader: self.endpoint("ping", false),
            writer: self.endpoint("pong", false),
            full: point.echo != Some(Echo::Ack),
        };
        let mut ping = self.party(scenario, "ping".to_owned(), 0, ping, true);
        let pong = self.party(scenario, "pong-0".to_owned(), self.reader_node(0), pong, false);
        // Faults in what is sent are for the writer, the delay for the pong.
        ping.spec.faults.delay_us = 0;
        ping.spec.background = self.background();
        let pong = Party { spec: WorkerSpec { background: self.background(), ..pong.spec }, ..pong };
        vec![pong, ping]
    }

    fn publishers_and_subscribers(&self, scenario: &Scenario) -> Vec<Party> {
        let point = &self.planned.point;
        let failover = scenario.kind == Kind::Failover;
        let rate = Pacing::Rate { rate: point.rate.max(1) };
        let pacing = match (scenario.kind, scenario.ramp) {
            (Kind::Ramp | Kind::ReadMethod, Some(ramp)) => Pacing::Ramp {
                start: ramp.start,
                step: ramp.step,
                hold_ms: ramp.hold.millis(),
                misses: ramp.misses,
            },
            (Kind::Failover | Kind::Outage | Kind::Soak, _) => rate,
            _ => point.pacing.map_or(Pacing::Max, |it| it.0),
        };
        let (publishers, subscribers) = (point.publishers.max(1), point.subscribers.max(1));
        let subscribe = (0..subscribers).map(|number| {
            let mut reader = self.endpoint("data", failover);
            // The strength of a reader has no meaning; that there is one says EXCLUSIVE.
            reader.ownership_strength = failover.then_some(0);
            let role = Role::Subscribe {
                reader,
                writers: publishers,
                one_way: self.one_clock,
                checksum: scenario.checksum.unwrap_or(true),
            };
            let mut party =
                self.party(scenario, format!("sub-{number}"), self.reader_node(number), role, false);
            party.spec.faults = plainsong_perfkit::spec::Faults::default();
            party
        });
        let publish = (0..publishers).map(|number| {
            let mut writer = self.endpoint("data", failover);
            // The first is the owner.
            writer.ownership_strength =
                failover.then(|| i32::try_from(publishers - number).unwrap_or(i32::MAX));
            let role = Role::Publish {
                writer,
                number: u16::try_from(number).unwrap_or(u16::MAX),
                size: point.size,
                instances: point.instances.max(1),
                order: scenario.instance_order.unwrap_or_default(),
                pacing,
                readers: subscribers,
            };
            let mut party = self.party(scenario, format!("pub-{number}"), 0, role, true);
            if failover && number == 0 {
                let until_measured = Duration::from_millis(party.spec.warmup_ms);
                party.killed_after = Some(until_measured + Duration::from_millis(party.spec.duration_ms / 2));
                party.leads = false;
            }
            party
        });
        subscribe.chain(publish).collect()
    }

    fn discoverers(&self, scenario: &Scenario) -> Vec<Party> {
        let point = &self.planned.point;
        let processes = point.processes.clamp(1, point.participants.max(1));
        let party = |number: u32| {
            let share = point.participants / processes + u32::from(number < point.participants % processes);
            let role = Role::Discover {
                participants: share,
                endpoints: point.endpoints,
                participants_total: point.participants,
            };
            let node = number as usize % self.nodes.len().max(1);
            let mut party =
                self.party(scenario, format!("discover-{number}"), node, role, number.is_multiple_of(2));
            party.leads = true;
            party
        };
        (0..processes).map(party).collect()
    }

    fn read_cost(&self, scenario: &Scenario) -> Party {
        let mut endpoint = self.endpoint("data", true);
        endpoint.history_depth = 1;
        let all =
            [ReadCall::Lookup, ReadCall::ReadInstance, ReadCall::ReadAll, ReadCall::Query, ReadCall::TakeOne];
        let role = Role::ReadCost {
            writer: endpoint.clone(),
            reader: endpoint,
            size: self.planned.point.size,
            calls: scenario.calls.clone().unwrap_or_else(|| all.to_vec()),
        };
        self.party(scenario, "read_cost".to_owned(), 0, role, true)
    }
}

impl Party {
    /// Its name in the results.
    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::campaign::resolve;

    /// Whether the topic of each cell has a key.
    fn keyed(instances: &str) -> Vec<bool> {
        let text = format!(
            "schema = 1\nname = \"test\"\n[[scenario]]\nkind = \"throughput\"\nadapters = [\"a\"]\ninstances = {instances}"
        );
        let campaign = Campaign::parse(&text).unwrap();
        let planned = resolve(&campaign).unwrap();
        let nodes = [Node { address: None, interface: None }];
        let mut keyed = Vec::new();
        for planned in &planned {
            let one_clock = true;
            let draft =
                Draft { campaign: &campaign, planned, nodes: &nodes, one_clock, repetition: 0, order: 0 };
            keyed.extend(draft.parties().into_iter().map(|party| match party.spec.role {
                Role::Publish { writer: endpoint, .. } | Role::Subscribe { reader: endpoint, .. } => {
                    endpoint.keyed
                }
                role => panic!("{role:?}"),
            }));
        }
        keyed
    }

    #[test]
    fn one_instance_is_compared_with_many_of_the_same_type() {
        assert_eq!(keyed("[1, 70000]"), [true; 4]);
        assert_eq!(keyed("70000"), [true; 2]);
        assert_eq!(keyed("1"), [false; 2]);
    }
}
