//! One change of a writer on its way into the cache.

use crate::cdr::KeyHash;
use crate::payload::{Payload, PayloadView};
use crate::sample_info::Agreed;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Now, Time};
use crate::wire::{GroupDigest, StatusInfo};

/// One change of a writer, out of its submessage.
#[derive(Debug)]
pub(super) struct Change<'a> {
    pub(super) sequence_number: SequenceNumber,
    pub(super) status: StatusInfo,
    pub(super) key_hash: Option<KeyHash>,
    pub(super) lifespan: Option<Duration>,
    pub(super) ownership_strength: Option<i32>,
    /// First number of the coherent set it is in.
    pub(super) coherent_set: Option<SequenceNumber>,
    /// First group number of the publisher's coherent set it is in, or ends.
    pub(super) group_set: Option<SequenceNumber>,
    pub(super) group_number: Option<SequenceNumber>,
    /// The writers of its publisher.
    pub(super) group_writers: Option<GroupDigest>,
    pub(super) source_timestamp: Time,
    pub(super) reception_timestamp: Time,
    pub(super) key_only: bool,
    /// Its writer says that our content filter does not want it.
    pub(super) unwanted: bool,
    /// Where it stands in the agreed order.
    pub(super) agreed: Agreed,
    pub(super) payload: Incoming<'a>,
}

/// The octets of a change.
#[derive(Debug)]
pub(super) enum Incoming<'a> {
    /// Few, where they arrived: copied once, to where they stay.
    Octets(&'a [u8]),
    Payload(Payload),
}

impl<'a> Change<'a> {
    /// Of which nothing more was said.
    #[inline(always)]
    pub(super) fn new(
        sequence_number: SequenceNumber,
        now: Now,
        timestamp: Option<Time>,
        key_only: bool,
        payload: Incoming<'a>,
    ) -> Self {
        Self {
            sequence_number,
            status: StatusInfo { disposed: false, unregistered: false, filtered: false },
            key_hash: None,
            lifespan: None,
            ownership_strength: None,
            coherent_set: None,
            group_set: None,
            group_number: None,
            group_writers: None,
            source_timestamp: timestamp.filter(|time| *time != Time::INVALID).unwrap_or(now.wall),
            reception_timestamp: now.wall,
            key_only,
            unwanted: false,
            agreed: Agreed::default(),
            payload,
        }
    }

    /// Moves the change out; only its payload is missing from what stays.
    pub(super) fn take(&mut self) -> Change<'static> {
        let payload = match &mut self.payload {
            Incoming::Octets(octets) => PayloadView::Octets(octets).to_payload(),
            Incoming::Payload(payload) => std::mem::take(payload),
        };
        Change {
            sequence_number: self.sequence_number,
            status: self.status,
            key_hash: self.key_hash,
            lifespan: self.lifespan,
            ownership_strength: self.ownership_strength,
            coherent_set: self.coherent_set,
            group_set: self.group_set,
            group_number: self.group_number,
            group_writers: self.group_writers,
            source_timestamp: self.source_timestamp,
            reception_timestamp: self.reception_timestamp,
            key_only: self.key_only,
            unwanted: self.unwanted,
            agreed: self.agreed,
            payload: Incoming::Payload(payload),
        }
    }

    pub(super) fn is_data_or_status(&self) -> bool {
        !self.payload.is_empty() || self.status.disposed || self.status.unregistered
    }
}

impl Incoming<'_> {
    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Octets(octets) => octets,
            Self::Payload(payload) => payload.as_slice(),
        }
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        match self {
            Self::Octets(octets) => octets.len(),
            Self::Payload(payload) => payload.len(),
        }
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the octets to where they stay.
    #[inline]
    pub(super) fn hand_over(&mut self, place: &mut Payload) {
        match self {
            Self::Octets(octets) => place.copy_few(octets),
            Self::Payload(payload) => payload.hand_over(place),
        }
    }
}
