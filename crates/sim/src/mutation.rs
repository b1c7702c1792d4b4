//! Deliberate mistakes, made by the simulator itself: each proves that a checker can fail.
//!
//! They sit in the layer around the protocol core, never in the core: the driver misleads a state machine,
//! or the application misreports what it got. So they cost the core nothing and cannot reach a product.

use plainsong_proto::qos::{
    AccessScope, DestinationOrder, Durability, LENGTH_UNLIMITED, Ownership, QosSet, ReaderDataLifecycle,
    ResourceLimits,
};
use plainsong_proto::time::Duration;

use crate::run;
use crate::sample::Filter;
use crate::trace::Detail;

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// See [`Mutation::ALL`].
    DropAcknacks,
    /// See [`Mutation::ALL`].
    DeliverTwice,
    /// See [`Mutation::ALL`].
    SwapDeliveries,
    /// See [`Mutation::ALL`].
    LoseDelivery,
    /// See [`Mutation::ALL`].
    LoseNewest,
    /// See [`Mutation::ALL`].
    FlipOctet,
    /// See [`Mutation::ALL`].
    KeepGhosts,
    /// See [`Mutation::ALL`].
    ForgetMatches,
    /// See [`Mutation::ALL`].
    ReplayHistory,
    /// See [`Mutation::ALL`].
    ExceedDepth,
    /// See [`Mutation::ALL`].
    OverfillWriter,
    /// See [`Mutation::ALL`].
    HideStates,
    /// See [`Mutation::ALL`].
    StopTimers,
    /// See [`Mutation::ALL`].
    HastenDeadlines,
    /// See [`Mutation::ALL`].
    HideDataAvailable,
    /// See [`Mutation::ALL`].
    HideLiveliness,
    /// See [`Mutation::ALL`].
    ForgiveSilence,
    /// See [`Mutation::ALL`].
    ShowPartsOfSets,
    /// See [`Mutation::ALL`].
    ShowGroupsApart,
    /// See [`Mutation::ALL`].
    SettleAlone,
    /// See [`Mutation::ALL`].
    SortByInstance,
    /// See [`Mutation::ALL`].
    IgnoreSeparation,
    /// See [`Mutation::ALL`].
    HoldForEver,
    /// See [`Mutation::ALL`].
    ForgetLifespan,
    /// See [`Mutation::ALL`].
    ForgetStrength,
    /// See [`Mutation::ALL`].
    MixPartitions,
    /// See [`Mutation::ALL`].
    PretendToFit,
    /// See [`Mutation::ALL`].
    HideMismatch,
    /// See [`Mutation::ALL`].
    OrderByReception,
    /// See [`Mutation::ALL`].
    NeverPurge,
    /// See [`Mutation::ALL`].
    HideChanges,
    /// See [`Mutation::ALL`].
    PassEverything,
    /// See [`Mutation::ALL`].
    PassTooLittle,
    /// See [`Mutation::ALL`].
    TrustStrangers,
    /// See [`Mutation::ALL`].
    WakeForNothing,
    /// See [`Mutation::ALL`].
    KeepOldFilter,
    /// See [`Mutation::ALL`].
    HideFilters,
    /// See [`Mutation::ALL`].
    WaitLonger,
    /// See [`Mutation::ALL`].
    ForgetPriority,
    /// See [`Mutation::ALL`].
    WaitInLine,
    /// See [`Mutation::ALL`].
    TakeUnread,
    /// See [`Mutation::ALL`].
    MatchAgain,
    /// See [`Mutation::ALL`].
    HearAnywhere,
    /// See [`Mutation::ALL`].
    AwaitStrangers,
    /// See [`Mutation::ALL`].
    RenewBudgets,
    /// See [`Mutation::ALL`].
    AimAnywhere,
    /// See [`Mutation::ALL`].
    ProveByDestination,
    /// See [`Mutation::ALL`].
    ProveByOldNumbers,
    /// See [`Mutation::ALL`].
    BelieveAnnouncements,
    /// See [`Mutation::ALL`].
    BelieveEndpoints,
    /// See [`Mutation::ALL`].
    IgnoreTheNamed,
    /// See [`Mutation::ALL`].
    RefuseNewcomers,
    /// See [`Mutation::ALL`].
    ForgetQuotas,
    /// See [`Mutation::ALL`].
    AdmitAll,
    /// See [`Mutation::ALL`].
    KeepTheDead,
    /// See [`Mutation::ALL`].
    ForgetOldPlaces,
    /// See [`Mutation::ALL`].
    BelieveTheLatest,
    /// See [`Mutation::ALL`].
    StretchLifespan,
    /// See [`Mutation::ALL`].
    ReadInstead,
    /// See [`Mutation::ALL`].
    SwapTakes,
    /// See [`Mutation::ALL`].
    ShareAll,
    /// See [`Mutation::ALL`].
    CutPayload,
    /// See [`Mutation::ALL`].
    ReuseChunks,
    /// See [`Mutation::ALL`].
    LoseWakeups,
    /// See [`Mutation::ALL`].
    HideLinkEnds,
    /// See [`Mutation::ALL`].
    KeepOldRoutes,
    /// See [`Mutation::ALL`].
    KeepLoans,
}

/// Seeds tried before a mistake counts as unnoticed.
pub const SEEDS_MAX: u64 = 1_000;

/// The first seed with which `invariant` notices a mistake.
#[must_use]
pub fn first_noticed(mutation: Mutation, invariant: &str) -> Option<u64> {
    (0..SEEDS_MAX).find(|seed| {
        let violations = run::run(*seed, Detail::Hash, Some(mutation)).violations;
        violations.iter().any(|violation| violation.invariant == invariant)
    })
}

/// A mistake, the checker that must notice it, and what goes wrong.
pub type Row = (Mutation, &'static str, &'static str);

impl Mutation {
    /// Every mistake, by the checkers that must notice it: at least two for each. `MUTATIONS.md` has the same
    /// rows.
    pub const ALL: &'static [Row] = &[
        (Self::SortByInstance, "access_order", "readers with ordered access sort by instance"),
        (Self::SwapDeliveries, "access_order", "a take is turned round"),
        (Self::TrustStrangers, "amplification", "an address nobody proved to own is trusted"),
        (
            Self::AimAnywhere,
            "amplification",
            "readers of strangers are sent to where they say, whoever is there",
        ),
        (
            Self::ProveByDestination,
            "amplification",
            "what names the participant that it goes to proves the address that it seems to come from",
        ),
        (Self::ProveByOldNumbers, "amplification", "answers to challenges of others prove an address"),
        (Self::HideChanges, "announced", "changed QoS is not announced"),
        (Self::MixPartitions, "announced", "endpoints are announced in the default partition"),
        (Self::NeverPurge, "autopurge", "readers keep instances that are to be purged"),
        (Self::StopTimers, "autopurge", "endpoints are never told that time passes"),
        (Self::ShowPartsOfSets, "coherent", "readers show the parts of a coherent set as they come"),
        (
            Self::ShowGroupsApart,
            "coherent",
            "readers of a subscriber show sets of GROUP scope each by itself",
        ),
        (Self::PassEverything, "content_filter", "readers do not filter"),
        (Self::KeepOldFilter, "content_filter", "readers do not obey a filter that was changed"),
        (Self::HideFilters, "content_filter", "changed filters are not announced"),
        (Self::ForgetQuotas, "crowds", "each participant of a stranger counts for an address of its own"),
        (Self::AdmitAll, "crowds", "a participant may have any number of endpoints"),
        (Self::HideDataAvailable, "data_available", "the application is not told of data"),
        (Self::TakeUnread, "data_available", "a take leaves what was read"),
        (Self::StopTimers, "deadline", "endpoints are never told that time passes"),
        (Self::HastenDeadlines, "deadline", "readers watch deadlines three times too short"),
        (Self::OrderByReception, "destination_order", "readers show samples as they arrive"),
        (Self::SwapDeliveries, "destination_order", "a take is turned round"),
        (Self::KeepGhosts, "discovery", "endpoints are not told when a match ends"),
        (Self::ForgetMatches, "discovery", "readers are not told of matches"),
        (Self::MatchAgain, "discovery", "readers tell of one match more than there were"),
        (Self::RefuseNewcomers, "discovery", "nobody is admitted when all places are taken"),
        (Self::SettleAlone, "group_order", "readers of a subscriber do not wait for each other"),
        (Self::SwapDeliveries, "group_order", "a take is turned round"),
        (
            Self::BelieveAnnouncements,
            "impostors",
            "announcements and departures of a participant are believed from any address",
        ),
        (
            Self::BelieveEndpoints,
            "impostors",
            "what a participant says of its endpoints is believed from any address",
        ),
        (Self::IgnoreTheNamed, "impostors", "who is impersonated is not heard"),
        (Self::HideStates, "instance_state", "changes of instance states are not shown"),
        (Self::LoseNewest, "instance_state", "the last sample of a take is lost"),
        (Self::MixPartitions, "isolation", "endpoints are announced in the default partition"),
        (Self::PretendToFit, "isolation", "endpoints announce the same QoS whatever they have"),
        (Self::LoseNewest, "keep_last", "the last sample of a take is lost"),
        (Self::LoseDelivery, "keep_last", "every tenth sample is lost on its way to the application"),
        (Self::ReplayHistory, "late_joiner", "volatile endpoints behave as TRANSIENT_LOCAL ones"),
        (Self::ExceedDepth, "late_joiner", "readers keep more than they were asked to"),
        (Self::WaitLonger, "latency_budget", "writers let samples wait for each other 90 ms"),
        (Self::StopTimers, "latency_budget", "endpoints are never told that time passes"),
        (Self::ForgetLifespan, "lifespan", "readers are not told of lifespans"),
        (Self::StretchLifespan, "lifespan", "readers take lifespans for four times as long"),
        (Self::ExceedDepth, "limits", "readers keep more than they were asked to"),
        (Self::OverfillWriter, "limits", "writers know no max_samples"),
        (Self::HideLiveliness, "liveliness", "readers are not told that their writers are alive"),
        (Self::ForgiveSilence, "liveliness", "writers never lose their liveliness"),
        (Self::HideMismatch, "mismatch", "endpoints are not told of incompatible ones"),
        (Self::PretendToFit, "mismatch", "endpoints announce the same QoS whatever they have"),
        (Self::KeepTheDead, "newcomers", "the dead of a crowd count as if they answered"),
        (Self::RefuseNewcomers, "newcomers", "nobody is admitted when all places are taken"),
        (Self::DeliverTwice, "no_duplicates", "what was delivered is delivered again"),
        (Self::ReadInstead, "no_duplicates", "every tenth take only reads"),
        (Self::SwapDeliveries, "order", "a take is turned round"),
        (Self::SwapTakes, "order", "the last sample of a take changes places with the first of the next"),
        (Self::ForgetStrength, "ownership", "readers are not told of ownership strengths"),
        (Self::ShareAll, "ownership", "readers take all ownership for shared"),
        (Self::FlipOctet, "payload_integrity", "an octet of each payload is flipped"),
        (Self::CutPayload, "payload_integrity", "the last octet of each payload is cut off"),
        (
            Self::ReuseChunks,
            "payload_integrity",
            "what lies beside a message in shared memory is written over before it is read",
        ),
        (Self::LoseWakeups, "reliable_complete", "who sleeps beside a ring is not woken, and sleeps on"),
        (Self::HideLinkEnds, "reliable_complete", "processes do not hear that they share no memory any more"),
        (
            Self::KeepOldRoutes,
            "reliable_complete",
            "writers do not hear that a reader is reached by another transport",
        ),
        (Self::KeepLoans, "reliable_complete", "readers of shared memory give nothing back"),
        (Self::PassTooLittle, "reliable_complete", "readers let half of what they want pass"),
        (Self::LoseDelivery, "reliable_complete", "every tenth sample is lost on its way to the application"),
        (Self::ForgetOldPlaces, "returns", "who is taken to be elsewhere is not heard where it was before"),
        (
            Self::BelieveTheLatest,
            "returns",
            "who is where it was is not heard while somebody else claims to be it",
        ),
        (Self::DropAcknacks, "silence", "acknowledgements of user data never reach their writer"),
        (Self::WakeForNothing, "silence", "timers go off without end"),
        (Self::HearAnywhere, "strangers", "readers are heard from any address"),
        (Self::AwaitStrangers, "strangers", "writers wait for readers that have never answered"),
        (Self::RenewBudgets, "strangers", "a reader that asks again and again is matched anew each time"),
        (Self::IgnoreSeparation, "time_based_filter", "readers know no minimum separation"),
        (Self::HoldForEver, "time_based_filter", "the last sample is held back for ever"),
        (Self::ForgetPriority, "transport_priority", "writers know no transport priority"),
        (
            Self::WaitInLine,
            "transport_priority",
            "all datagrams of a process wait while a large sample is being sent",
        ),
    ];
}

impl Mutation {
    /// Whether it is a mistake of those that share memory: then they do.
    pub(crate) const fn is_of_memory(self) -> bool {
        matches!(
            self,
            Self::ReuseChunks
                | Self::LoseWakeups
                | Self::HideLinkEnds
                | Self::KeepOldRoutes
                | Self::KeepLoans
        )
    }
}

/// The content filter that a reader obeys and announces.
pub(crate) const fn obeyed_filter(filter: Filter, mutation: Option<Mutation>) -> Option<Filter> {
    match mutation {
        Some(Mutation::PassEverything) => None,
        Some(Mutation::PassTooLittle) => {
            Some(Filter { one_in: 2 * filter.one_in, remainder: filter.remainder })
        }
        _ => Some(filter),
    }
}

/// The QoS that a state machine obeys.
pub(crate) fn obeyed(mut qos: QosSet, mutation: Option<Mutation>) -> QosSet {
    let Some(mutation) = mutation else { return qos };
    match mutation {
        Mutation::ReplayHistory => qos.durability = qos.durability.max(Durability::TransientLocal),
        Mutation::ExceedDepth => {
            qos.history.depth += 1;
            qos.resource_limits = ResourceLimits::default();
        }
        Mutation::OverfillWriter => qos.resource_limits.max_samples = LENGTH_UNLIMITED,
        Mutation::HastenDeadlines if !qos.deadline.is_infinite() => qos.deadline.0 /= 3,
        Mutation::ForgiveSilence => qos.liveliness.lease_duration = Duration::INFINITE,
        Mutation::ShowPartsOfSets => qos.presentation.coherent_access = false,
        Mutation::ShowGroupsApart => {
            qos.presentation.access_scope = qos.presentation.access_scope.min(AccessScope::Topic);
        }
        Mutation::SortByInstance => qos.presentation.ordered_access = false,
        Mutation::ShareAll => qos.ownership = Ownership::Shared,
        Mutation::IgnoreSeparation => qos.time_based_filter = Duration::ZERO,
        Mutation::HoldForEver if qos.time_based_filter > Duration::ZERO => {
            qos.time_based_filter = Duration::from_secs(3_600);
        }
        Mutation::OrderByReception => qos.destination_order = DestinationOrder::ByReceptionTimestamp,
        Mutation::WaitLonger => qos.latency_budget = Duration::from_millis(90),
        Mutation::ForgetPriority => qos.transport_priority = 0,
        Mutation::NeverPurge => qos.reader_data_lifecycle = ReaderDataLifecycle::default(),
        _ => {}
    }
    qos
}

/// The QoS that others are told of.
pub(crate) fn announced(mut qos: QosSet, mutation: Option<Mutation>) -> QosSet {
    let Some(mutation) = mutation else { return qos };
    match mutation {
        Mutation::ReplayHistory => qos.durability = qos.durability.max(Durability::TransientLocal),
        Mutation::MixPartitions => qos.partition.clear(),
        Mutation::PretendToFit => {
            qos = QosSet { partition: qos.partition, ..QosSet::default() };
        }
        _ => {}
    }
    qos
}
