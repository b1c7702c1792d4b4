//! The built-in endpoints, by what they are for.

use crate::guid::{EntityId, Guid};

/// The topics of the built-in endpoints, in the order of [`super::sedp::Builtin::channels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    Publications,
    Subscriptions,
    Messages,
    TypeRequests,
    TypeReplies,
}

impl Channel {
    pub(super) const ALL: [Self; 5] =
        [Self::Publications, Self::Subscriptions, Self::Messages, Self::TypeRequests, Self::TypeReplies];

    /// Where an endpoint is announced.
    pub(super) const fn of(guid: Guid) -> Self {
        if guid.entity.is_writer() { Self::Publications } else { Self::Subscriptions }
    }

    pub(super) const fn writer(self) -> EntityId {
        let [request_writer, _, reply_writer, _] = EntityId::TYPE_LOOKUP;
        match self {
            Self::Publications => EntityId::SEDP_PUBLICATIONS_WRITER,
            Self::Subscriptions => EntityId::SEDP_SUBSCRIPTIONS_WRITER,
            Self::Messages => EntityId::PARTICIPANT_MESSAGE_WRITER,
            Self::TypeRequests => request_writer,
            Self::TypeReplies => reply_writer,
        }
    }

    pub(super) const fn reader(self) -> EntityId {
        let [_, request_reader, _, reply_reader] = EntityId::TYPE_LOOKUP;
        match self {
            Self::Publications => EntityId::SEDP_PUBLICATIONS_READER,
            Self::Subscriptions => EntityId::SEDP_SUBSCRIPTIONS_READER,
            Self::Messages => EntityId::PARTICIPANT_MESSAGE_READER,
            Self::TypeRequests => request_reader,
            Self::TypeReplies => reply_reader,
        }
    }

    /// The bits of the writer and of the reader (§9.3.2, Table 9.4; XTypes 1.3 table 62).
    pub(super) const fn bits(self) -> (u32, u32) {
        match self {
            Self::Publications => (1 << 2, 1 << 3),
            Self::Subscriptions => (1 << 4, 1 << 5),
            Self::Messages => (1 << 10, 1 << 11),
            Self::TypeRequests => (1 << 12, 1 << 13),
            Self::TypeReplies => (1 << 14, 1 << 15),
        }
    }

    /// Which of publications and subscriptions a participant with these built-in endpoints answers challenges
    /// on: one at least.
    pub(super) const fn challenged(available: u32) -> [bool; 2] {
        let (_, publications) = Self::Publications.bits();
        let (_, subscriptions) = Self::Subscriptions.bits();
        let has_subscriptions = available & subscriptions != 0;
        [available & publications != 0 || !has_subscriptions, has_subscriptions]
    }

    /// Whether a participant with these built-in endpoints can answer a challenge. Who tells of none may have
    /// some.
    pub(super) const fn answers(available: u32) -> bool {
        let readers = Self::Publications.bits().1 | Self::Subscriptions.bits().1;
        let writers = Self::Publications.bits().0 | Self::Subscriptions.bits().0;
        available & readers != 0 || available & writers == 0
    }

    /// The bits of the readers by which a lead hears for others.
    pub(super) const fn readers_of_lead() -> u32 {
        Self::Publications.bits().1 | Self::Subscriptions.bits().1 | Self::Messages.bits().1
    }

    /// The bits of the writers that they hear.
    pub(super) const fn writers_for_lead() -> u32 {
        Self::Publications.bits().0 | Self::Subscriptions.bits().0 | Self::Messages.bits().0
    }

    /// Where a participant with these built-in endpoints answers HEARTBEATs.
    pub(super) const fn answered_by(available: u32) -> Self {
        let (_, publications) = Self::Publications.bits();
        let (_, subscriptions) = Self::Subscriptions.bits();
        if available & publications == 0 && available & subscriptions != 0 {
            Self::Subscriptions
        } else {
            Self::Publications
        }
    }

    /// Whether endpoints are announced there.
    pub(super) const fn announces(self) -> bool {
        matches!(self, Self::Publications | Self::Subscriptions)
    }

    pub(super) const fn is_about_types(self) -> bool {
        matches!(self, Self::TypeRequests | Self::TypeReplies)
    }
}
