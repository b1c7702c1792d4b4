//! Random legal QoS: of topics, of the writers and readers that deviate from them, and of what changes
//! while a system runs. Every policy that acts is drawn; what contradicts itself is drawn again.

use plainsong_proto::cdr::XcdrVersion;
use plainsong_proto::qos::{
    AccessScope, DestinationOrder, Durability, DurabilityService, EntityKind, History, HistoryKind,
    LENGTH_UNLIMITED, Liveliness, LivelinessKind, Ownership, Presentation, QosSet, ReaderDataLifecycle,
    ReliabilityKind, ResourceLimits, consistent,
};
use plainsong_proto::time::Duration;

use crate::rng::Rng;

/// One policy that changes while its entity lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// USER_DATA.
    UserData(Vec<u8>),
    /// TOPIC_DATA.
    TopicData(Vec<u8>),
    /// GROUP_DATA.
    GroupData(Vec<u8>),
    /// PARTITION.
    Partition(Vec<String>),
    /// DEADLINE.
    Deadline(Duration),
    /// LATENCY_BUDGET.
    LatencyBudget(Duration),
    /// OWNERSHIP_STRENGTH.
    Strength(i32),
    /// TIME_BASED_FILTER.
    Separation(Duration),
    /// TRANSPORT_PRIORITY.
    Priority(i32),
    /// LIFESPAN.
    Lifespan(Duration),
    /// WRITER_DATA_LIFECYCLE.
    Autodispose(bool),
    /// READER_DATA_LIFECYCLE.
    Purge(ReaderDataLifecycle),
}

/// Partitions endpoints are in; a final `*` is a pattern.
const PARTITIONS: [&str; 5] = ["", "a", "b", "a*", "*"];

/// Which way an endpoint may deviate from what its topic says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Offer more.
    Stronger,
    /// Request less.
    Weaker,
    /// Whatever; the pair may be incompatible.
    Any,
}

impl Change {
    /// Draws a change of a writer or reader.
    #[must_use]
    pub fn draw(rng: &mut Rng, kind: EntityKind) -> Self {
        let writes = kind == EntityKind::Writer;
        match rng.below(9) {
            0 => Self::UserData(octets(rng)),
            1 => Self::TopicData(octets(rng)),
            2 => Self::Deadline(if rng.chance(30) { Duration::INFINITE } else { millis(rng, 200, 2_000) }),
            3 => Self::LatencyBudget(millis(rng, 0, 50)),
            4 | 5 if writes => Self::Strength(rng.below(4) as i32),
            6 if writes => Self::Lifespan(millis(rng, 50, 2_000)),
            7 if writes => Self::Autodispose(rng.chance(50)),
            _ if writes => Self::Priority(rng.below(100) as i32),
            4..7 => Self::Separation(if rng.chance(30) { Duration::ZERO } else { millis(rng, 5, 500) }),
            _ => Self::Purge(purge(rng)),
        }
    }

    /// Draws a change of a publisher or subscriber.
    #[must_use]
    pub fn draw_of_group(rng: &mut Rng) -> Self {
        if rng.chance(75) { Self::Partition(partition(rng)) } else { Self::GroupData(octets(rng)) }
    }

    /// `qos` with the change, or as it was where that would contradict itself.
    #[must_use]
    pub fn applied(&self, qos: &QosSet, kind: EntityKind) -> QosSet {
        let mut changed = qos.clone();
        match self.clone() {
            Self::UserData(octets) => changed.user_data = octets,
            Self::TopicData(octets) => changed.topic_data = octets,
            Self::GroupData(octets) => changed.group_data = octets,
            Self::Partition(names) => changed.partition = names,
            Self::Deadline(period) => changed.deadline = period,
            Self::LatencyBudget(budget) => changed.latency_budget = budget,
            Self::Strength(strength) => changed.ownership_strength = strength,
            Self::Separation(separation) => changed.time_based_filter = separation,
            Self::Priority(priority) => changed.transport_priority = priority,
            Self::Lifespan(lifespan) => changed.lifespan = lifespan,
            Self::Autodispose(autodispose) => {
                changed.writer_data_lifecycle.autodispose_unregistered_instances = autodispose;
            }
            Self::Purge(lifecycle) => changed.reader_data_lifecycle = lifecycle,
        }
        if consistent(&changed, kind).is_ok() { changed } else { qos.clone() }
    }
}

/// QoS of a topic, from which those of its endpoints deviate.
#[must_use]
pub fn topic(rng: &mut Rng) -> QosSet {
    legal(rng, EntityKind::Topic, |rng| {
        let mut qos = QosSet::default();
        qos.reliability.kind =
            if rng.chance(75) { ReliabilityKind::Reliable } else { ReliabilityKind::BestEffort };
        qos.history = history(rng);
        if rng.chance(45) {
            qos.durability = durability(rng);
        }
        if rng.chance(12) {
            qos.ownership = Ownership::Exclusive;
        }
        if rng.chance(15) {
            qos.deadline = millis(rng, 200, 2_000);
        }
        if rng.chance(20) {
            qos.liveliness = liveliness(rng);
        }
        if rng.chance(8) {
            qos.lifespan = millis(rng, 50, 2_000);
        }
        if rng.chance(15) {
            qos.latency_budget = millis(rng, 1, 50);
        }
        if rng.chance(12) {
            qos.destination_order = DestinationOrder::BySourceTimestamp;
        }
        if rng.chance(10) {
            qos.topic_data = octets(rng);
        }
        qos
    })
}

/// PRESENTATION of a system, from which those of its publishers and subscribers deviate.
#[must_use]
pub fn presentation(rng: &mut Rng) -> Presentation {
    if rng.chance(55) {
        return Presentation::default();
    }
    let scopes = [AccessScope::Instance, AccessScope::Topic, AccessScope::Group, AccessScope::Group];
    Presentation {
        access_scope: *rng.pick(&scopes),
        coherent_access: rng.chance(70),
        ordered_access: rng.chance(50),
    }
}

/// PRESENTATION, PARTITION and GROUP_DATA of a publisher or subscriber.
#[must_use]
pub fn group(rng: &mut Rng, usual: Presentation, publishes: bool) -> QosSet {
    let mut qos = QosSet { presentation: usual, ..QosSet::default() };
    if rng.chance(15) {
        let other = Presentation {
            access_scope: *rng.pick(&[AccessScope::Instance, AccessScope::Topic, AccessScope::Group]),
            coherent_access: rng.chance(50),
            ordered_access: rng.chance(50),
        };
        let pick: fn(bool, bool) -> bool = if publishes { |a, b| a | b } else { |a, b| a & b };
        let fits = rng.chance(80);
        qos.presentation = if fits {
            Presentation {
                access_scope: if publishes {
                    other.access_scope.max(usual.access_scope)
                } else {
                    other.access_scope.min(usual.access_scope)
                },
                coherent_access: pick(other.coherent_access, usual.coherent_access),
                ordered_access: pick(other.ordered_access, usual.ordered_access),
            }
        } else {
            other
        };
    }
    if rng.chance(10) {
        qos.partition = partition(rng);
    }
    if rng.chance(10) {
        qos.group_data = octets(rng);
    }
    qos
}

/// QoS of a writer: it offers at least what its topic says, mostly.
#[must_use]
pub fn writer(rng: &mut Rng, topic: &QosSet, publisher: &QosSet) -> QosSet {
    legal(rng, EntityKind::Writer, |rng| {
        let mut qos = in_group(topic, publisher);
        deviate(rng, &mut qos, Way::Stronger);
        if rng.chance(25) {
            qos.history = history(rng);
        }
        if rng.chance(10) {
            qos.lifespan = millis(rng, 50, 2_000);
        }
        if rng.chance(30) {
            qos.transport_priority = rng.below(100) as i32;
        }
        if rng.chance(30) {
            qos.durability_service = durability_service(rng);
        }
        qos.writer_data_lifecycle.autodispose_unregistered_instances = rng.chance(50);
        qos.ownership_strength = rng.below(3) as i32;
        // A durable KEEP_ALL writer with a bound would be full for good one day.
        if qos.durability == Durability::Volatile && rng.chance(30) {
            qos.resource_limits = limits(rng);
        }
        qos
    })
}

/// QoS of a reader: it requests at most what its topic says, mostly.
#[must_use]
pub fn reader(rng: &mut Rng, topic: &QosSet, subscriber: &QosSet) -> QosSet {
    legal(rng, EntityKind::Reader, |rng| {
        let mut qos = in_group(topic, subscriber);
        qos.lifespan = Duration::INFINITE;
        deviate(rng, &mut qos, Way::Weaker);
        if rng.chance(30) {
            qos.history = history(rng);
        }
        if rng.chance(12) {
            qos.time_based_filter = millis(rng, 5, 1_000);
        }
        if rng.chance(12) {
            qos.reader_data_lifecycle = purge(rng);
        }
        if rng.chance(25) {
            qos.resource_limits = limits(rng);
            if rng.chance(20) {
                qos.resource_limits.max_instances = rng.between(1, 4) as i32;
            }
        }
        qos
    })
}

/// Draws until the policies fit together.
fn legal(rng: &mut Rng, kind: EntityKind, draw: impl Fn(&mut Rng) -> QosSet) -> QosSet {
    loop {
        let qos = draw(rng);
        if consistent(&qos, kind).is_ok() {
            return qos;
        }
    }
}

fn in_group(topic: &QosSet, group: &QosSet) -> QosSet {
    let mut qos = topic.clone();
    qos.presentation = group.presentation;
    qos.partition.clone_from(&group.partition);
    qos.group_data.clone_from(&group.group_data);
    qos
}

/// Other values of the policies that have request/offered rules.
fn deviate(rng: &mut Rng, qos: &mut QosSet, way: Way) {
    let mut roll = |percent: u64| {
        let way = if rng.chance(85) { way } else { Way::Any };
        rng.chance(percent).then_some(way)
    };
    let ways: [Option<Way>; 7] = [roll(25), roll(18), roll(15), roll(12), roll(12), roll(12), roll(12)];
    let ownership = roll(3);
    if let Some(way) = ways[0] {
        let kind = *rng.pick(&[ReliabilityKind::BestEffort, ReliabilityKind::Reliable]);
        qos.reliability.kind = toward(way, qos.reliability.kind, kind);
    }
    if let Some(way) = ways[1] {
        let kind = if rng.chance(40) { Durability::Volatile } else { durability(rng) };
        qos.durability = toward(way, qos.durability, kind);
    }
    if let Some(way) = ways[2] {
        let period = if rng.chance(50) { Duration::INFINITE } else { millis(rng, 200, 2_000) };
        // A shorter period is the stronger offer.
        qos.deadline = toward(way.turned(), qos.deadline, period);
    }
    if let Some(way) = ways[3] {
        qos.latency_budget = toward(way.turned(), qos.latency_budget, millis(rng, 0, 50));
    }
    if let Some(way) = ways[4] {
        let other = if rng.chance(40) { Liveliness::default() } else { liveliness(rng) };
        let Liveliness { kind, lease_duration } = qos.liveliness;
        qos.liveliness = Liveliness {
            kind: toward(way, kind, other.kind),
            lease_duration: toward(way.turned(), lease_duration, other.lease_duration),
        };
    }
    if let Some(way) = ways[5] {
        let other = *rng.pick(&[DestinationOrder::ByReceptionTimestamp, DestinationOrder::BySourceTimestamp]);
        qos.destination_order = toward(way, qos.destination_order, other);
    }
    if let Some(way) = ways[6] {
        qos.data_representation = match way {
            Way::Weaker => vec![XcdrVersion::Xcdr1, XcdrVersion::Xcdr2],
            Way::Stronger => vec![XcdrVersion::Xcdr1],
            Way::Any => vec![XcdrVersion::Xcdr2],
        };
    }
    if ownership.is_some() {
        qos.ownership = *rng.pick(&[Ownership::Shared, Ownership::Exclusive]);
    }
    if rng.chance(10) {
        qos.user_data = octets(rng);
    }
}

impl Way {
    const fn turned(self) -> Self {
        match self {
            Self::Stronger => Self::Weaker,
            Self::Weaker => Self::Stronger,
            Self::Any => Self::Any,
        }
    }
}

fn toward<T: Ord>(way: Way, usual: T, other: T) -> T {
    match way {
        Way::Stronger => usual.max(other),
        Way::Weaker => usual.min(other),
        Way::Any => other,
    }
}

fn durability(rng: &mut Rng) -> Durability {
    match rng.below(10) {
        0..8 => Durability::TransientLocal,
        8 => Durability::Transient,
        _ => Durability::Persistent,
    }
}

fn durability_service(rng: &mut Rng) -> DurabilityService {
    DurabilityService {
        service_cleanup_delay: millis(rng, 0, 3_000),
        history: history(rng),
        resource_limits: if rng.chance(50) { limits(rng) } else { ResourceLimits::default() },
    }
}

fn liveliness(rng: &mut Rng) -> Liveliness {
    let kinds =
        [LivelinessKind::Automatic, LivelinessKind::ManualByParticipant, LivelinessKind::ManualByTopic];
    Liveliness { kind: *rng.pick(&kinds), lease_duration: millis(rng, 500, 3_000) }
}

fn history(rng: &mut Rng) -> History {
    let kind = if rng.chance(50) { HistoryKind::KeepAll } else { HistoryKind::KeepLast };
    History { kind, depth: *rng.pick(&[1, 1, 2, 5, 20]) }
}

/// Some of these contradict themselves, or the depth of the history.
fn limits(rng: &mut Rng) -> ResourceLimits {
    let per_instance = rng.between(1, 24) as i32;
    ResourceLimits {
        max_samples: rng.between(1, 60) as i32,
        max_instances: LENGTH_UNLIMITED,
        max_samples_per_instance: if rng.chance(50) { per_instance } else { LENGTH_UNLIMITED },
    }
}

fn purge(rng: &mut Rng) -> ReaderDataLifecycle {
    let mut delay = || if rng.chance(50) { millis(rng, 0, 2_000) } else { Duration::INFINITE };
    ReaderDataLifecycle {
        autopurge_nowriter_samples_delay: delay(),
        autopurge_disposed_samples_delay: delay(),
    }
}

fn partition(rng: &mut Rng) -> Vec<String> {
    let count = if rng.chance(80) { 1 } else { 2 };
    (0..count).map(|_| (*rng.pick(&PARTITIONS)).to_owned()).collect()
}

fn octets(rng: &mut Rng) -> Vec<u8> {
    (0..rng.below(40)).map(|_| rng.below(256) as u8).collect()
}

fn millis(rng: &mut Rng, low: u64, high: u64) -> Duration {
    Duration::from_millis(rng.between(low, high) as i64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use plainsong_proto::qos::incompatible;

    use super::*;

    #[test]
    fn what_is_drawn_is_legal_and_every_policy_varies() {
        let mut rng = Rng::new(1);
        let mut seen: [BTreeSet<String>; 2] = Default::default();
        for _ in 0..500 {
            let topic = topic(&mut rng);
            let usual = presentation(&mut rng);
            let (publisher, subscriber) = (group(&mut rng, usual, true), group(&mut rng, usual, false));
            let pair = [writer(&mut rng, &topic, &publisher), reader(&mut rng, &topic, &subscriber)];
            for ((qos, kind), seen) in
                pair.iter().zip([EntityKind::Writer, EntityKind::Reader]).zip(&mut seen)
            {
                assert_eq!(consistent(qos, kind), Ok(()));
                let text = format!("{qos:?}");
                seen.extend(text.split(", ").map(str::to_owned));
            }
        }
        for value in
            ["durability: Persistent", "ownership: Exclusive", "access_scope: Group", "ordered_access: true"]
        {
            assert!(seen.iter().all(|seen| seen.iter().any(|text| text.contains(value))), "{value}");
        }
    }

    #[test]
    fn pairs_are_compatible_mostly_and_fail_in_every_policy_that_has_a_rule() {
        let mut rng = Rng::new(2);
        let (mut compatible, mut named) = (0, BTreeSet::new());
        for _ in 0..3_000 {
            let topic = topic(&mut rng);
            let usual = presentation(&mut rng);
            let (publisher, subscriber) = (group(&mut rng, usual, true), group(&mut rng, usual, false));
            let offered = writer(&mut rng, &topic, &publisher);
            let policies = incompatible(&offered, &reader(&mut rng, &topic, &subscriber));
            compatible += usize::from(policies.is_empty());
            named.extend(policies);
        }
        assert!((1_500..2_800).contains(&compatible), "{compatible} of 3000 pairs fit");
        let ruled = ["DURABILITY", "PRESENTATION", "DEADLINE", "LATENCY_BUDGET", "OWNERSHIP", "LIVELINESS"];
        let ruled = ruled.iter().chain(&["RELIABILITY", "DESTINATION_ORDER", "DATA_REPRESENTATION"]);
        for name in ruled {
            assert!(named.iter().any(|id| id.name() == *name), "no pair fails in {name}");
        }
    }

    #[test]
    fn changes_stay_legal_and_leave_what_must_not_change() {
        let mut rng = Rng::new(3);
        for _ in 0..500 {
            let topic = topic(&mut rng);
            let qos = reader(&mut rng, &topic, &QosSet::default());
            let change = Change::draw(&mut rng, EntityKind::Reader).applied(&qos, EntityKind::Reader);
            assert_eq!(consistent(&change, EntityKind::Reader), Ok(()));
            assert!(plainsong_proto::qos::changed_immutable(&qos, &change, EntityKind::Reader).is_none());
        }
    }
}
