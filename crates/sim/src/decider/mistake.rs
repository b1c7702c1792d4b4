//! Deliberate mistakes of what is around the decider: each proves that a checker can fail.

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// See [`Mistake::ALL`].
    AcknowledgeEarly,
    /// See [`Mistake::ALL`].
    ForgetRecord,
    /// See [`Mistake::ALL`].
    WipeDisk,
    /// See [`Mistake::ALL`].
    TooFewVoters,
    /// See [`Mistake::ALL`].
    ProposeAgain,
    /// See [`Mistake::ALL`].
    SkipDecision,
    /// See [`Mistake::ALL`].
    CutMessages,
    /// See [`Mistake::ALL`].
    StopTimers,
    /// See [`Mistake::ALL`].
    WakeForNothing,
}

/// Seeds tried before a mistake counts as unnoticed.
pub const SEEDS_MAX: u64 = 2_000;

impl Mistake {
    /// Every mistake, the checker that must notice it, and what goes wrong.
    pub const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::AcknowledgeEarly, "agreement", "messages leave before what they rest on is durable"),
        (Self::TooFewVoters, "agreement", "voters do not know of one another, and think fewer a majority"),
        (Self::ForgetRecord, "agreement", "who starts again has lost the last record that was durable"),
        (Self::WipeDisk, "agreement", "who starts again remembers nothing, under the same identity"),
        (Self::AcknowledgeEarly, "ballots", "messages leave before what they rest on is durable"),
        (Self::ForgetRecord, "ballots", "who starts again has lost the last record that was durable"),
        (Self::WipeDisk, "ballots", "who starts again remembers nothing, under the same identity"),
        (Self::CutMessages, "doubt", "some messages are cut short"),
        (Self::StopTimers, "liveness", "voters are never told that time passes"),
        (Self::SkipDecision, "order", "every tenth decision is not passed on"),
        (Self::ProposeAgain, "proposed", "what lost is decided for the next base: no compare-and-swap"),
        (Self::WakeForNothing, "rest", "voters are woken again and again"),
    ];
}
