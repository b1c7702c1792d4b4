//! Deliberate mistakes, made by the simulator itself: each proves that a checker can fail.
//!
//! They sit in the layer around the protocol core, never in the core: the driver misleads a state machine,
//! or the application misreports what it got. So they cost the core nothing and cannot reach a product.

use crate::run;
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
}

/// Seeds tried before a mistake counts as unnoticed.
pub const SEEDS_MAX: u64 = 500;

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
    /// Every mistake, by the checker that must notice it. `MUTATIONS.md` has the same rows.
    pub const ALL: &'static [Row] = &[
        (Self::SortByInstance, "access_order", "readers with ordered access sort by instance"),
        (Self::TrustStrangers, "amplification", "an address nobody proved to own is trusted"),
        (Self::HideChanges, "announced", "changed QoS is not announced"),
        (Self::NeverPurge, "autopurge", "readers keep instances that are to be purged"),
        (Self::ShowPartsOfSets, "coherent", "readers show the parts of a coherent set as they come"),
        (
            Self::ShowGroupsApart,
            "coherent",
            "readers of a subscriber show sets of GROUP scope each by itself",
        ),
        (Self::PassEverything, "content_filter", "readers do not filter"),
        (Self::PassTooLittle, "reliable_complete", "readers let half of what they want pass"),
        (Self::HideDataAvailable, "data_available", "the application is not told of data"),
        (Self::StopTimers, "deadline", "endpoints are never told that time passes"),
        (Self::HastenDeadlines, "deadline", "readers watch deadlines three times too short"),
        (Self::OrderByReception, "destination_order", "readers show samples as they arrive"),
        (Self::KeepGhosts, "discovery", "endpoints are not told when a match ends"),
        (Self::ForgetMatches, "discovery", "readers are not told of matches"),
        (Self::HideStates, "instance_state", "changes of instance states are not shown"),
        (Self::MixPartitions, "isolation", "endpoints are announced in the default partition"),
        (Self::PretendToFit, "isolation", "endpoints announce the same QoS whatever they have"),
        (Self::LoseNewest, "keep_last", "the last sample of a take is lost"),
        (Self::ReplayHistory, "late_joiner", "volatile endpoints behave as TRANSIENT_LOCAL ones"),
        (Self::ForgetLifespan, "lifespan", "readers are not told of lifespans"),
        (Self::ExceedDepth, "limits", "readers keep more than they were asked to"),
        (Self::OverfillWriter, "limits", "writers know no max_samples"),
        (Self::HideLiveliness, "liveliness", "readers are not told that their writers are alive"),
        (Self::ForgiveSilence, "liveliness", "writers never lose their liveliness"),
        (Self::HideMismatch, "mismatch", "endpoints are not told of incompatible ones"),
        (Self::DeliverTwice, "no_duplicates", "what was delivered is delivered again"),
        (Self::SwapDeliveries, "order", "a take is turned round"),
        (Self::ForgetStrength, "ownership", "readers are not told of ownership strengths"),
        (Self::FlipOctet, "payload_integrity", "an octet of each payload is flipped"),
        (Self::LoseDelivery, "reliable_complete", "every tenth sample is lost on its way to the application"),
        (Self::DropAcknacks, "silence", "acknowledgements of user data never reach their writer"),
        (Self::WakeForNothing, "silence", "timers go off without end"),
        (Self::IgnoreSeparation, "time_based_filter", "readers know no minimum separation"),
        (Self::HoldForEver, "time_based_filter", "the last sample is held back for ever"),
    ];
}
