//! Errors of the API: the return codes of DCPS 1.4 §2.2.1.1, each with the fact that matters.

use std::time::Duration;

use thiserror::Error;

use crate::base::config::ConfigError;
use crate::qos_provider::QosProviderError;

/// What went wrong, in which entity, and what to do about it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused something the entity cannot do without.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted.
        what: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A configuration value is unusable.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// QoS profiles cannot be used.
    #[error(transparent)]
    QosProfile(#[from] QosProviderError),
    /// An argument is outside of what the operation accepts.
    #[error("{0}")]
    BadParameter(String),
    /// The entity is not in a state that allows the operation.
    #[error("{0}")]
    PreconditionNotMet(String),
    /// A limit is reached.
    #[error("{0}")]
    OutOfResources(String),
    /// The entity was created disabled: call `enable` first.
    #[error("{0} is not enabled: call enable() first")]
    NotEnabled(String),
    /// The entity was deleted, by itself or with what contained it.
    #[error("{0} was deleted")]
    AlreadyDeleted(String),
    /// The entity was made before `fork()`, in the parent process, which alone can use it. A participant that is made after
    /// `fork()` works.
    #[error("{0} was made before fork(), in another process: make a participant after fork()")]
    Forked(String),
    /// The policy cannot change once the entity is enabled.
    #[error("the policy {policy} of {entity} cannot change once it is enabled")]
    ImmutablePolicy {
        /// Name of the policy.
        policy: &'static str,
        /// The entity.
        entity: String,
    },
    /// Policies contradict each other.
    #[error("inconsistent QoS of {entity}: {reason}")]
    InconsistentPolicy {
        /// The entity.
        entity: String,
        /// Which policies, and why.
        reason: String,
    },
    /// The operation did not finish in time.
    #[error("{what} did not finish within {timeout:?}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        timeout: Duration,
    },
    /// The sample cannot be serialized (a bound is exceeded, for example).
    #[error("a sample of topic '{topic}' cannot be serialized: {reason}")]
    Serialization {
        /// The topic.
        topic: String,
        /// Why.
        reason: String,
    },
}

/// A result with [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;
