//! A change as the parts of a writer pass it on.

use crate::instance::InstanceHandle;
use crate::payload::{Payload, PayloadView};
use crate::seq::SequenceNumber;
use crate::time::{Instant, Time};
use crate::tuning::writer::CHANGE_OVERHEAD_BYTES;

/// What a change does to its instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// New data.
    Alive,
    /// The instance is no more.
    Dispose,
    /// This writer has nothing more to say about the instance; disposes it too when
    /// WRITER_DATA_LIFECYCLE says so.
    Unregister,
    /// Both, whatever WRITER_DATA_LIFECYCLE says.
    DisposeUnregister,
}

impl ChangeKind {
    pub(crate) const fn disposes(self) -> bool {
        matches!(self, Self::Dispose | Self::DisposeUnregister)
    }

    pub(crate) const fn unregisters(self) -> bool {
        matches!(self, Self::Unregister | Self::DisposeUnregister)
    }

    pub(crate) const fn is_key_only(self) -> bool {
        !matches!(self, Self::Alive)
    }
}

/// What a change says about coherence and order beyond its writer's own numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// First number of the coherent set it belongs to or ends.
    pub(crate) set: Option<SequenceNumber>,
    /// First group number of the publisher's coherent set.
    pub(crate) group_set: Option<SequenceNumber>,
    /// Its number among the changes of all writers of the publisher.
    pub(crate) group_number: Option<SequenceNumber>,
    /// It has no data: it only ends the set.
    pub(crate) is_end: bool,
}

/// Which filters let a change pass, a bit for each, as far as they were there when it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict(pub(crate) u32);

impl Verdict {
    /// The change is for everyone.
    pub(crate) const ALL: Self = Self(u32::MAX);
}

/// One change of one instance, as the history shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    pub(crate) kind: ChangeKind,
    /// The key hash of its instance.
    pub(crate) hash: InstanceHandle,
    /// Data, or the serialized key for all kinds but Alive.
    pub(crate) payload: PayloadView<'a>,
    pub(crate) source_timestamp: Time,
    /// End of its lifespan.
    pub(crate) expires: Option<Instant>,
    /// `None` unless it is of a coherent set, or numbered among those of all writers of the publisher: few
    /// are.
    pub(crate) marks: Option<&'a Marks>,
    /// What the content filters of readers say.
    pub(crate) verdict: Verdict,
}

impl<'a> Change<'a> {
    /// Data for all readers, and nothing else.
    #[inline]
    pub(crate) const fn plain(
        hash: InstanceHandle,
        payload: PayloadView<'a>,
        source_timestamp: Time,
    ) -> Self {
        let (kind, verdict) = (ChangeKind::Alive, Verdict::ALL);
        Self { kind, hash, payload, source_timestamp, expires: None, marks: None, verdict }
    }

    /// It has no data: it only ends a coherent set.
    pub(crate) const fn is_end(&self) -> bool {
        matches!(self.marks, Some(Marks { is_end: true, .. }))
    }

    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }
}

/// A change that outlives its place in the history.
#[derive(Debug)]
pub(crate) struct TakenChange {
    change: Change<'static>,
    marks: Option<Marks>,
    payload: Payload,
}

impl TakenChange {
    pub(crate) fn of(change: &Change<'_>) -> Self {
        let payload = change.payload.to_payload();
        let Change { kind, hash, source_timestamp, expires, verdict, .. } = *change;
        let shown = PayloadView::Octets(&[]);
        let kept = Change { kind, hash, payload: shown, source_timestamp, expires, marks: None, verdict };
        Self { change: kept, marks: change.marks.copied(), payload }
    }

    pub(crate) fn view(&self) -> Change<'_> {
        Change { payload: (&self.payload).into(), marks: self.marks.as_ref(), ..self.change }
    }
}

/// What a change counts for in the window of a writer.
pub(crate) const fn window_bytes(payload_bytes: usize) -> usize {
    payload_bytes + CHANGE_OVERHEAD_BYTES
}
