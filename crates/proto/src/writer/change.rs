//! A change as the parts of a writer pass it on.

use crate::instance::InstanceHandle;
use crate::payload::{Payload, PayloadView};
use crate::seq::SequenceNumber;
use crate::time::{Instant, Time};

/// What a sample counts for in the window beside its payload: more than what it takes here and on its way, so that a window of
/// short ones is no more than some thousand.
pub(super) const CHANGE_OVERHEAD_BYTES: usize = 192;

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
    pub(super) const fn disposes(self) -> bool {
        matches!(self, Self::Dispose | Self::DisposeUnregister)
    }

    pub(super) const fn unregisters(self) -> bool {
        matches!(self, Self::Unregister | Self::DisposeUnregister)
    }

    pub(super) const fn is_key_only(self) -> bool {
        !matches!(self, Self::Alive)
    }
}

/// What a change says about coherence and order beyond its writer's own numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    /// First number of the coherent set it belongs to or ends.
    pub(super) set: Option<SequenceNumber>,
    /// First group number of the publisher's coherent set.
    pub(super) group_set: Option<SequenceNumber>,
    /// Its number among the changes of all writers of the publisher.
    pub(super) group_number: Option<SequenceNumber>,
    /// It has no data: it only ends the set.
    pub(super) is_end: bool,
}

/// Which filters let a change pass, a bit for each, as far as they were there when it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict(pub(super) u32);

impl Verdict {
    /// The change is for everyone.
    pub(super) const ALL: Self = Self(u32::MAX);
}

/// One change of one instance, as the history shows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change<'a> {
    pub(super) kind: ChangeKind,
    /// The key hash of its instance.
    pub(super) hash: InstanceHandle,
    /// Data, or the serialized key for all kinds but Alive.
    pub(super) payload: PayloadView<'a>,
    pub(super) source_timestamp: Time,
    /// End of its lifespan.
    pub(super) expires: Option<Instant>,
    /// `None` unless it is of a coherent set, or numbered among those of all writers of the publisher: few are.
    pub(super) marks: Option<&'a Marks>,
    /// What the content filters of readers say.
    pub(super) verdict: Verdict,
}

impl<'a> Change<'a> {
    /// Data for all readers, and nothing else.
    #[inline]
    pub(super) const fn plain(
        hash: InstanceHandle,
        payload: PayloadView<'a>,
        source_timestamp: Time,
    ) -> Self {
        let (kind, verdict) = (ChangeKind::Alive, Verdict::ALL);
        Self { kind, hash, payload, source_timestamp, expires: None, marks: None, verdict }
    }

    /// It has no data: it only ends a coherent set.
    pub(super) const fn is_end(&self) -> bool {
        matches!(self.marks, Some(Marks { is_end: true, .. }))
    }

    pub(super) fn is_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|end| end <= now)
    }
}

/// A change that outlives its place in the history.
#[derive(Debug)]
pub(super) struct TakenChange {
    change: Change<'static>,
    marks: Option<Marks>,
    payload: Payload,
}

impl TakenChange {
    pub(super) fn of(change: &Change<'_>) -> Self {
        let payload = change.payload.to_payload();
        let Change { kind, hash, source_timestamp, expires, verdict, .. } = *change;
        let shown = PayloadView::Octets(&[]);
        let kept = Change { kind, hash, payload: shown, source_timestamp, expires, marks: None, verdict };
        Self { change: kept, marks: change.marks.copied(), payload }
    }

    pub(super) const fn payload_mut(&mut self) -> &mut Payload {
        &mut self.payload
    }

    pub(super) fn view(&self) -> Change<'_> {
        Change { payload: (&self.payload).into(), marks: self.marks.as_ref(), ..self.change }
    }
}

/// What a change counts for in the window of a writer.
pub(super) const fn window_bytes(payload_bytes: usize) -> usize {
    payload_bytes + CHANGE_OVERHEAD_BYTES
}
