//! Events for `tracing`, with the feature of that name; without it nothing. What happens to entities is told,
//! nothing that happens to every sample. All have the target `plainsong`.
#![cfg_attr(
    not(feature = "tracing"),
    allow(unused_variables, reason = "without the feature nothing is told")
)]

use std::fmt::Display;

use plainsong_proto::guid::Guid;
use plainsong_proto::qos::QosSet;
use plainsong_proto::stats::DropReason;
use plainsong_proto::status::StatusKind;

/// Only with the feature `tracing`.
macro_rules! event {
    ($level:ident, $($fields:tt)+) => {
        #[cfg(feature = "tracing")]
        tracing::$level!(target: "plainsong", $($fields)+);
    };
}

/// A participant announces itself.
pub(crate) fn participant_created(participant: Guid, domain_id: u16, name: &str) {
    event!(info, %participant, domain_id, name, "participant created");
}

/// A participant leaves its domain.
pub(crate) fn participant_deleted(participant: Guid) {
    event!(info, %participant, "participant deleted");
}

/// A writer or reader is announced.
pub(crate) fn endpoint_created(endpoint: Guid, topic: &str, type_name: &str, qos: &QosSet) {
    event!(info, %endpoint, topic, type_name, %qos, "{} created", kind(endpoint));
}

/// A writer or reader ends.
pub(crate) fn endpoint_deleted(endpoint: Guid, topic: &str) {
    event!(info, %endpoint, topic, "{} deleted", kind(endpoint));
}

/// A status of a writer or reader changed; `matches` counts those that it matches now.
pub(crate) fn status_changed(
    endpoint: Guid,
    topic: &str,
    status: StatusKind,
    matches: impl FnOnce() -> usize,
) {
    match status {
        StatusKind::PublicationMatched | StatusKind::SubscriptionMatched => {
            event!(info, %endpoint, topic, matches = matches(), "matches changed");
        }
        _ => {
            event!(debug, %endpoint, topic, %status, "status changed");
        }
    }
}

/// A writer and a reader of one topic do not match.
pub(crate) fn mismatched(mismatch: &impl Display) {
    event!(warn, %mismatch, "not matched");
}

/// Another participant came or is gone.
pub(crate) fn participant_discovered(participant: Guid, is_there: bool) {
    if is_there {
        event!(info, %participant, "participant discovered");
    } else {
        event!(info, %participant, "participant lost");
    }
}

/// A participant is heard, but answers nothing.
pub(crate) fn participant_unresponsive(participant: Guid) {
    event!(warn, %participant, "participant does not answer at the addresses that it announces");
}

/// Something that came, or was to leave, is dropped.
pub(crate) fn dropped(reason: DropReason) {
    event!(debug, ?reason, "dropped");
}

#[cfg(feature = "tracing")]
const fn kind(endpoint: Guid) -> &'static str {
    if endpoint.entity.is_writer() { "writer" } else { "reader" }
}
