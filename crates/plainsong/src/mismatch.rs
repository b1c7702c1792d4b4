//! Endpoints of the same topic that do not match, and why, for applications.

use std::sync::Arc;

use plainsong_proto::cdr::{Fields, first_difference};
pub use plainsong_proto::discovery::{Difference, Mismatch, MismatchReason, Party};
use plainsong_proto::guid::Guid;

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

/// Called with writer and reader, and whether they do not match.
pub(crate) type OnMismatch = Arc<dyn Fn(Guid, Guid, bool) + Send + Sync>;

impl DomainParticipant {
    /// Pairs of a local endpoint and another of the same topic that do not match, and why.
    ///
    /// # Errors
    /// [`crate::Error::NotEnabled`].
    pub fn mismatches(&self) -> Result<Vec<Mismatch>> {
        let mut all: Vec<_> = self.inspect(|control| control.mismatches().collect())?;
        all.iter_mut().for_each(|mismatch| self.inner.compare_types(mismatch));
        Ok(all)
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
        let mut mismatch = self.slot().ok()?.look(|control| control.mismatch(writer, reader))?;
        self.compare_types(&mut mismatch);
        Some(mismatch)
    }

    /// Where both types are known to this process, says in which member they part.
    fn compare_types(&self, mismatch: &mut Mismatch) {
        let (writer, reader) = (mismatch.writer.guid, mismatch.reader.guid);
        let differs = |difference: &&mut Difference| difference.subject == Difference::TYPE_NAME;
        let Some(difference) = mismatch.differences.iter_mut().find(differs) else { return };
        let (Some(written), Some(read)) = (self.type_of(writer), self.type_of(reader)) else { return };
        difference.note = first_difference(("the writer's", written), ("the reader's", read))
            .unwrap_or_else(|| "their members have the same names and kinds".into());
    }

    /// The type of an endpoint of any participant of this process in the domain.
    fn type_of(&self, endpoint: Guid) -> Option<Fields> {
        let participant = self.slot().ok()?.shared().registry.participant(endpoint.prefix)?;
        participant.sink().type_of(endpoint.entity)
    }
}
