//! Endpoints of the same topic that do not match, and why, for applications.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use plainsong_proto::discovery::Participant;
pub use plainsong_proto::discovery::{Difference, Mismatch, MismatchReason, Party};
use plainsong_proto::guid::Guid;
use plainsong_proto::qos::QosSet;

use crate::base::trace;
use crate::error::Result;
use crate::participant::{DomainParticipant, ParticipantInner};

/// News of a pair of endpoints that does not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MismatchEvent {
    /// A writer and a reader of the same topic do not match, or for another reason than before.
    Mismatched(Box<Mismatch>),
    /// They match now, or one of them is gone.
    Ended {
        /// The writer.
        writer: Guid,
        /// The reader.
        reader: Guid,
    },
}

/// Why they do not match, or that this has ended.
impl fmt::Display for MismatchEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatched(mismatch) => write!(f, "{mismatch}"),
            Self::Ended { writer, reader } => {
                write!(f, "writer {writer} and reader {reader} match now, or one of them is gone")
            }
        }
    }
}

/// Called with writer and reader, and whether they do not match.
pub(crate) type OnMismatch = Arc<dyn Fn(Guid, Guid, bool) + Send + Sync>;

impl DomainParticipant {
    /// Pairs of a local endpoint and another of the same topic that do not match, and why.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`].
    pub fn mismatches(&self) -> Result<Vec<Mismatch>> {
        self.inspect(|control| control.mismatches().collect())
    }

    /// Calls `callback` once for each pair that does not match, again when the reason changes, and when it
    /// ends. Pairs from before are not told: [`Self::mismatches`] has them.
    pub fn on_mismatch(&self, callback: impl Fn(MismatchEvent) + Send + Sync + 'static) {
        let participant = Arc::downgrade(&self.inner);
        self.inner.router.set_on_mismatch(Arc::new(move |writer, reader, mismatched| {
            if !mismatched {
                callback(MismatchEvent::Ended { writer, reader });
            } else if let Some(participant) = participant.upgrade()
                // When it has ended meanwhile, the next event says so.
                && let Some(mismatch) = participant.mismatch(writer, reader)
            {
                callback(MismatchEvent::Mismatched(Box::new(mismatch)));
            }
        }));
    }
}

impl ParticipantInner {
    fn mismatch(&self, writer: Guid, reader: Guid) -> Option<Mismatch> {
        self.slot().ok()?.look(|control| control.mismatch(writer, reader))
    }

    /// The ATOMIC writers of a topic that offer less than a reader of such QoS asks for.
    pub(crate) fn mismatched_writers(&self, topic: &str, requested: &QosSet) -> BTreeSet<Guid> {
        let offers_less = |offered: &QosSet| {
            offered.is_atomic() && !plainsong_proto::qos::incompatible(offered, requested).is_empty()
        };
        let find = |control: &Participant| {
            let writers = control.endpoints_of(topic).filter(|it| it.guid.entity.is_writer());
            writers.filter(|it| offers_less(it.qos)).map(|it| it.guid).collect()
        };
        self.slot().map_or_else(|_| BTreeSet::new(), |slot| slot.look(find))
    }

    /// Those of a local reader.
    pub(crate) fn mismatches_of(&self, reader: Guid) -> Vec<Mismatch> {
        let of_it =
            |control: &Participant| control.mismatches().filter(|it| it.reader.guid == reader).collect();
        self.slot().map_or(Vec::new(), |slot| slot.look(of_it))
    }

    /// A writer and a reader do not match: their topic is inconsistent when their types are the reason. Other
    /// names of types are noticed when the endpoints are, whether or not there is one to match with.
    pub(crate) fn note_mismatch(&self, writer: Guid, reader: Guid) {
        let Some(mismatch) = self.mismatch(writer, reader) else { return };
        trace::mismatched(&mismatch);
        let differences = &mismatch.differences;
        if let Some(difference) = differences.iter().find(|it| it.subject == Difference::TYPE)
            && let Some(topic) = self.topic(&mismatch.topic)
        {
            topic.met_inconsistent(&difference.to_string());
        }
    }
}
