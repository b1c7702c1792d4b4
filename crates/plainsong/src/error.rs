//! Errors of the API: the return codes of DCPS 1.4 §2.2.1.1. Those with more than one cause have a small enum
//! of causes, to match by; where something else is the cause, [`source`](std::error::Error::source) has it.

use std::fmt;

use plainsong_proto::cdr::{EncodeError, XcdrVersion};
use plainsong_proto::discovery::DiscoveryError;
use plainsong_proto::filter::FilterError;
use plainsong_proto::malformed::Malformed;
use plainsong_proto::qos::Inconsistent;
use plainsong_proto::time::{Duration, Time};
use plainsong_proto::writer::ReaderBehind;
use thiserror::Error;

use crate::base::config::ConfigError;
use crate::base::large_stack::NoStack;
use crate::base::store_error::StoreError;
use crate::base::words::counted;
use crate::qos_provider::QosProviderError;

/// What went wrong, in which entity, and what to do about it.
///
/// `Debug` says the same as `Display`: it is what `fn main() -> Result<()>` prints.
#[derive(Error)]
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
    /// What a participant keeps of ATOMIC topics on its disk cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An argument is outside of what the operation accepts.
    #[error(transparent)]
    BadParameter(#[from] BadParameter),
    /// The entity is not in a state that allows the operation.
    #[error(transparent)]
    PreconditionNotMet(#[from] PreconditionNotMet),
    /// A limit is reached.
    #[error(transparent)]
    OutOfResources(#[from] OutOfResources),
    /// The entity was created disabled: call `enable` first.
    #[error("{0} is not enabled: call enable() first")]
    NotEnabled(String),
    /// The entity was deleted, by itself or with what contained it.
    #[error("{0} was deleted")]
    AlreadyDeleted(String),
    /// The entity was made before `fork()`, in the parent process, which alone can use it. A participant that
    /// is made after `fork()` works.
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
    #[error("inconsistent QoS of {entity}: {}: {}", .source.policy, .source.reason)]
    InconsistentPolicy {
        /// The entity.
        entity: String,
        /// Which policy, and why.
        source: Inconsistent,
    },
    /// The operation did not finish in time.
    #[error("{what} did not finish within {timeout}")]
    Timeout {
        /// What was waited for.
        waited_for: WaitedFor,
        /// The same in words, with the entity, and who keeps it waiting.
        what: String,
        /// How long.
        timeout: Duration,
    },
    /// There is no room for the sample now, and the call was not to wait for some.
    #[error(
        "there is no room in the history of {entity}, full of unacknowledged samples by {limit}, waiting{}: try again when that \
         has acknowledged some (a reader at its RESOURCE_LIMITS does when it takes samples), or write with a time to wait",
        Behind(.behind)
    )]
    WouldBlock {
        /// The writer.
        entity: String,
        /// The limit that is reached, and its value.
        limit: String,
        /// The readers whose acknowledgements would make room, the slowest first.
        behind: Vec<ReaderBehind>,
    },
    /// The group of an ATOMIC topic takes no sample now, and the call was not to wait for it.
    #[error("{entity}: {why}")]
    GroupUnready {
        /// The writer.
        entity: String,
        /// Why, and what to do.
        why: String,
    },
    /// The participant is no member of the group of an ATOMIC topic any more: it had something else than most
    /// others, or is being deleted.
    #[error(
        "{entity}: this participant has left the group of the topic; delete the endpoints of the topic and make new ones to join it again"
    )]
    LeftGroup {
        /// The writer or reader.
        entity: String,
    },
    /// This participant was away from the group of the topic for so long that nobody can tell it any more
    /// whether samples that it wrote last were delivered to the others. None of them is written again.
    #[error(
        "{entity}: whether {count} samples were delivered is not known: its participant was cut off from the group of the topic; read the topic to see which"
    )]
    OutcomeUnknown {
        /// The writer.
        entity: String,
        /// So many samples.
        count: u64,
    },
    /// The sample cannot be serialized (a bound is exceeded, for example).
    #[error("a sample of topic '{topic}' cannot be serialized: {source}")]
    Serialization {
        /// The topic.
        topic: String,
        /// Why.
        source: EncodeError,
    },
}

/// A result with [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// So many readers are named to whom waits for them.
const NAMED_MAX: usize = 3;

/// The readers that somebody waits for: ` for …; …; and for 7 more readers`.
pub(crate) struct Behind<'a>(pub(crate) &'a [ReaderBehind]);

impl fmt::Display for Behind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, reader) in self.0.iter().take(NAMED_MAX).enumerate() {
            write!(f, "{} {reader}", if place == 0 { " for" } else { ";" })?;
        }
        match self.0.len().saturating_sub(NAMED_MAX) {
            0 => Ok(()),
            more => write!(f, "; and for {}", counted(more as u64, "more reader")),
        }
    }
}

/// What an operation waited for in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitedFor {
    /// Room in the history of a writer.
    Room,
    /// Acknowledgements of readers.
    Acknowledgments,
    /// What writers have for late joiners.
    HistoricalData,
    /// A sample to take.
    Sample,
    /// A condition of a wait set.
    Condition,
    /// A topic that others have.
    Topic,
    /// The group of a topic with CONSISTENCY ATOMIC.
    Group,
}

/// What is wrong with an argument (DCPS `BAD_PARAMETER`).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BadParameter {
    /// No ports are assigned to the domain.
    #[error("domain {domain_id} does not exist: use 0 to {max}")]
    Domain {
        /// The domain.
        domain_id: u16,
        /// The last there is.
        max: u16,
    },
    /// The voters of ATOMIC topics, or the one that the participant is to be, cannot be used.
    #[error("the voters of ATOMIC topics: {reason}")]
    Voters {
        /// What is wrong with them.
        reason: String,
    },
    /// A name is empty or too long.
    #[error("the name of a {what} has 1 to {max} octets, not {octets}")]
    Name {
        /// What was to have it.
        what: &'static str,
        /// Its length.
        octets: usize,
        /// The longest there may be.
        max: usize,
    },
    /// A name contains NUL, which ends a string on the wire.
    #[error("the name of a {what} contains NUL, which ends a string in CDR; remove it")]
    NameWithNul {
        /// What was to have it.
        what: &'static str,
    },
    /// The value of a policy is none that it may have.
    #[error("{} of {entity}: {}", .source.policy, .source.reason)]
    Policy {
        /// The entity.
        entity: String,
        /// Which policy, and why.
        source: Inconsistent,
    },
    /// A filter, query or multi-topic has an expression that is wrong or does not suit the type.
    #[error("the expression \"{expression}\" of {entity} is refused {source}")]
    Expression {
        /// Whose expression it is.
        entity: String,
        /// The expression.
        expression: String,
        /// In which column, and why.
        source: FilterError,
    },
    /// The topics and the type of a multi-topic do not fit its expression.
    #[error("the multi-topic '{name}': {reason}")]
    MultiTopic {
        /// Its name.
        name: String,
        /// What does not fit.
        reason: String,
    },
    /// The handle is none of an instance that the endpoint knows.
    #[error(
        "the handle names no instance that {entity} knows: take it from register_instance, lookup_instance or a SampleInfo"
    )]
    UnknownInstance {
        /// The endpoint.
        entity: String,
    },
    /// The handle is none of a matched endpoint.
    #[error(
        "the handle names no endpoint that {entity} matches: take it from matched_publications or matched_subscriptions"
    )]
    NotMatched {
        /// The endpoint that was asked.
        entity: String,
    },
    /// The handle is none of what is to be ignored.
    #[error("the handle names no {what}: take it from the built-in topics")]
    UnknownHandle {
        /// What it should name.
        what: &'static str,
    },
    /// BY_SOURCE_TIMESTAMP: readers would drop a change older than the one before it of its instance.
    #[error(
        "{entity}: the source timestamp {timestamp} is older than {last}, that of the last change of the instance, and readers \
         order BY_SOURCE_TIMESTAMP: give none, or one that is not older"
    )]
    TimestampBack {
        /// The writer.
        entity: String,
        /// The timestamp.
        timestamp: Time,
        /// The least that is allowed: that of the last change of the instance.
        last: Time,
    },
    /// The source timestamp has no form on the wire.
    #[error(
        "{entity}: the source timestamp {timestamp} ({} ns) cannot be sent: RTPS has those from {} to {}",
        .timestamp.0, Time::FIRST_ON_WIRE, Time::LAST_ON_WIRE
    )]
    TimestampRange {
        /// The writer.
        entity: String,
        /// The timestamp.
        timestamp: Time,
    },
    /// An encoded sample is in another encoding version than the writer offers.
    #[error(
        "{entity}: the sample is encoded as {encoding}, and DATA_REPRESENTATION offers {offered:?}: encode it so, or make a writer \
         that offers {version:?}"
    )]
    Encoding {
        /// The writer.
        entity: String,
        /// Name of the encapsulation of the sample.
        encoding: &'static str,
        /// Its version.
        version: XcdrVersion,
        /// The version that the writer offers.
        offered: XcdrVersion,
    },
    /// Octets are no encoded sample or key of the type.
    #[error("{entity}: {found}: {source}")]
    Octets {
        /// The endpoint.
        entity: String,
        /// What they are, and what they should be.
        found: String,
        /// What is wrong with them.
        source: Malformed,
    },
}

impl BadParameter {
    /// A name of so many octets at least may be announced.
    pub(crate) const NAME_OCTETS_MAX: usize = 255;

    pub(crate) fn check_name(what: &'static str, name: &str, least: usize) -> Result<()> {
        let (octets, max) = (name.len(), Self::NAME_OCTETS_MAX);
        if !(least..=max).contains(&octets) {
            return Err(Self::Name { what, octets, max }.into());
        }
        if name.contains('\0') { Err(Self::NameWithNul { what }.into()) } else { Ok(()) }
    }
}

/// Why an entity cannot do now what was asked of it (DCPS `PRECONDITION_NOT_MET`).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PreconditionNotMet {
    /// Only a voter with a name votes in groups of which it is no member.
    #[error("the participant has no name as a voter: set PLAINSONG_VOTERS and PLAINSONG_VOTER")]
    NoVoter,
    /// A witness votes in no more groups.
    #[error(
        "it votes in {max} groups, or has files of so many: let it vote in more, or remove files of groups that never come back"
    )]
    TooManyGroups {
        /// In so many.
        max: usize,
    },
    /// Something must outlive the participant, and it has no place for it.
    #[error(
        "the participant has to keep something on a disk: set PLAINSONG_STATE_DIRECTORY, or Config::state_directory"
    )]
    NoStateDirectory,
    /// A PERSISTENT endpoint of an ATOMIC topic comes after others that keep less, or nothing.
    #[error(
        "the participant is in the group of ATOMIC topic '{topic}' by an endpoint whose DURABILITY or deliver_at keeps less on its disk: \
         create the one that keeps most first, or give all of them the same QoS"
    )]
    KeepsLess {
        /// The topic.
        topic: String,
    },
    /// The entity has EVENTUAL consistency, and so no group.
    #[error("{entity} has CONSISTENCY EVENTUAL: there is no agreed order to wait for")]
    Eventual {
        /// The writer or reader.
        entity: String,
    },
    /// The participant has a topic, content-filtered topic or multi-topic of that name.
    #[error(
        "the participant has a topic, content-filtered topic or multi-topic of the name '{name}': choose another name"
    )]
    NameInUse {
        /// The name.
        name: String,
    },
    /// Only readers of an [`OpaqueType`](crate::types::OpaqueType) have changes as they came.
    #[error("{entity} keeps instances, not changes: make its topic of an OpaqueType to take changes")]
    KeepsInstances {
        /// The reader.
        entity: String,
    },
    /// Values that are known at run time need a type that is.
    #[error(
        "topic '{topic}' has the type '{type_name}', which is no DynamicType: make the topic of one, or use its Rust type"
    )]
    NotDynamic {
        /// The topic.
        topic: String,
        /// Its type.
        type_name: String,
    },
    /// Samples of the type cannot be set in place.
    #[error(
        "{entity}: samples of type '{type_name}' in {version:?} are not in memory what they are on the wire: {}",
        plain_where(*.plain_in)
    )]
    NotPlain {
        /// The writer.
        entity: String,
        /// The name of the type.
        type_name: String,
        /// How the writer encodes.
        version: XcdrVersion,
        /// Another encoding in which they are, if there is one.
        plain_in: Option<XcdrVersion>,
    },
    /// The topic exists with another type.
    #[error("topic '{topic}' exists with {}", other_type(.type_name, .wanted))]
    OtherType {
        /// The topic.
        topic: String,
        /// The name of its type.
        type_name: String,
        /// The name of the type that was asked for.
        wanted: String,
    },
    /// The topic exists with another QoS.
    #[error(
        "topic '{topic}' exists with another {policy}: pass QosSet::default() for the topic as it is, or use set_qos"
    )]
    OtherQos {
        /// The topic.
        topic: String,
        /// The first policy that differs.
        policy: &'static str,
    },
    /// The entity was made by another factory.
    #[error("{entity} belongs to another {factory}")]
    ForeignEntity {
        /// The entity.
        entity: String,
        /// What made it.
        factory: &'static str,
    },
    /// The handle names another instance than the key of the sample does.
    #[error("the handle names another instance of {entity} than the key does")]
    OtherInstance {
        /// The writer.
        entity: String,
    },
    /// The type has no key, so there are no instances to end.
    #[error("type '{type_name}' of topic '{topic}' has no key, so it has no instances to end")]
    NoKey {
        /// The topic.
        topic: String,
        /// Its type.
        type_name: String,
    },
    /// The instance is not registered with the writer.
    #[error("{entity}: the instance is not registered with this writer")]
    NotRegistered {
        /// The writer.
        entity: String,
    },
    /// The QoS of built-in entities is fixed.
    #[error("the QoS of built-in entities is fixed")]
    BuiltinQos,
    /// The entity contains others.
    #[error("{entity} has entities: delete them first")]
    HasEntities {
        /// The entity.
        entity: String,
    },
    /// What made the entity is not enabled.
    #[error("{entity} cannot be enabled before {factory}")]
    FactoryNotEnabled {
        /// The entity.
        entity: String,
        /// What made it.
        factory: &'static str,
    },
    /// Something ends that was not begun.
    #[error("{what}")]
    NotBegun {
        /// What was not begun.
        what: &'static str,
    },
    /// Under GROUP access scope samples are read within an access only.
    #[error("{entity} has GROUP access scope: read it between begin_access and end_access of its subscriber")]
    OutsideAccess {
        /// The reader.
        entity: String,
    },
    /// The condition is not attached to the wait set.
    #[error("the condition is not attached to this wait set")]
    NotAttached,
    /// Samples are chosen by read and query conditions only.
    #[error("only a read or query condition chooses samples, and this is another")]
    ChoosesNothing,
    /// The condition belongs to another reader.
    #[error("the condition belongs to another reader than {entity}")]
    ForeignCondition {
        /// The reader that was asked.
        entity: String,
    },
    /// Nobody told of such a participant or topic, or it has left.
    #[error("no such {what} is discovered")]
    NotDiscovered {
        /// What it should be.
        what: &'static str,
    },
}

/// Which limit is reached (DCPS `OUT_OF_RESOURCES`).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OutOfResources {
    /// A limit of the writer that no acknowledgement relieves.
    #[error("{entity}: {limit} is reached; unregister instances or raise the limit")]
    Limit {
        /// The writer.
        entity: String,
        /// The limit, and its value.
        limit: String,
    },
    /// The sample is longer than readers take.
    #[error(
        "{entity}: the sample is longer than sample_bytes_max = {octets_max}, and readers of these settings would drop it: raise \
         it here and where readers are"
    )]
    SampleTooLong {
        /// The writer.
        entity: String,
        /// The longest that readers take.
        octets_max: usize,
    },
    /// There is no memory for a loan.
    #[error("{entity}: no loan of {octets} octets: {limit}")]
    Loan {
        /// The writer.
        entity: String,
        /// So many were asked for.
        octets: usize,
        /// The limit that is reached, and what to do about it.
        limit: String,
    },
    /// There is no memory for a stack that has room for values of a large type.
    #[error(
        "{entity}: no memory for a stack of {octets} octets, on which its large values are decoded; box large members, or take \
         samples in place"
    )]
    Stack {
        /// The reader or writer.
        entity: String,
        /// So many were asked for.
        octets: usize,
    },
    /// A replicated state is too long to be given to who joins.
    #[error(
        "{entity}: its snapshot has {octets} octets, and {octets_max} is the most that can be given to who opens it later: keep \
         less in it"
    )]
    State {
        /// The writer of its commands.
        entity: String,
        /// So long it is.
        octets: usize,
        /// And may be.
        octets_max: usize,
    },
    /// Discovery cannot announce the entity, or remember what to ignore.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
}

impl OutOfResources {
    pub(crate) const fn stack(entity: String, NoStack(octets): NoStack) -> Self {
        Self::Stack { entity, octets }
    }
}

fn plain_where(version: Option<XcdrVersion>) -> String {
    version.map_or_else(
        || {
            "with #[dds(plain)] the compiler says what stands against it; write() them, or use loan_octets() \
             where most of a sample is one OctetSeq"
                .to_owned()
        },
        |version| {
            format!("declare the type #[dds(final)], or write it in {version:?} (QosSet::representation)")
        },
    )
}

fn other_type(type_name: &str, wanted: &str) -> String {
    if type_name == wanted {
        return format!("another type that is called '{type_name}', too");
    }
    format!("type '{type_name}', not '{wanted}'")
}
