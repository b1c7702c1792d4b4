//! Deliberate mistakes, made by the simulator itself: each proves that a checker can fail.

/// One mistake. It sits in the layer around the protocol core, never in the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Acknowledgements of user data never reach their writer.
    DropAcknacks,
    /// Every tenth delivered sample is counted twice.
    DeliverTwice,
    /// Two neighbouring samples of a take change places.
    SwapDeliveries,
    /// Every tenth delivered sample is lost on its way to the application.
    LoseDelivery,
    /// An octet of a delivered payload is flipped.
    FlipOctet,
    /// Endpoints are not told when a match ends.
    KeepGhosts,
    /// Endpoints are not told of matches in which they read.
    ForgetMatches,
    /// Volatile endpoints behave as TRANSIENT_LOCAL ones.
    ReplayHistory,
    /// Readers keep more than they were asked to.
    ExceedDepth,
    /// Changes of instance states are not shown to the application.
    HideStates,
    /// Endpoints are never told that time passes.
    StopTimers,
    /// The application is not told of data.
    HideDataAvailable,
    /// Readers are not told that their writers are alive.
    HideLiveliness,
}

impl Mutation {
    /// Every mutation, with an invariant that must notice it.
    pub const ALL: [(Self, &'static str); 13] = [
        (Self::DropAcknacks, "silence"),
        (Self::DeliverTwice, "no_duplicates"),
        (Self::SwapDeliveries, "order"),
        (Self::LoseDelivery, "reliable_complete"),
        (Self::FlipOctet, "payload_integrity"),
        (Self::KeepGhosts, "discovery"),
        (Self::ForgetMatches, "discovery"),
        (Self::ReplayHistory, "late_joiner"),
        (Self::ExceedDepth, "limits"),
        (Self::HideStates, "instance_state"),
        (Self::StopTimers, "deadline"),
        (Self::HideDataAvailable, "data_available"),
        (Self::HideLiveliness, "liveliness"),
    ];
}
