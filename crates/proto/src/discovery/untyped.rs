//! Announcements without types, for the versions that types break ([`crate::vendor::reads_types`]).
//!
//! Endpoint discovery has one history for all readers. Once somebody of that sort is there, each announcement with a type has a
//! copy without, an instance of its own in our history, and the readers of both sorts are sent those that are theirs: by the
//! filters of [`crate::writer`], so that whatever is repeated or told to late ones follows the same rule.

use super::builtin::{EndpointData, has_parameter};
use super::matching::Endpoint;
use super::participant::Participant;
use super::sedp::Channel;
use crate::filter::{ContentFilter, PayloadFilter};
use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::outbox::Outbox;
use crate::time::Now;
use crate::wire::param::pid;
use crate::writer::{ChangeKind, WriteError};

const TYPED: &str = "typed";
const UNTYPED: &str = "untyped";
/// Kinds of entities with it are a vendor's own (RTPS 2.5 §9.3.1.2).
const VENDOR_KIND: u8 = 0x40;

/// What a participant is sent, once there are copies.
pub(super) fn filter_for(reads_types: bool) -> ContentFilter {
    let expression = if reads_types { TYPED } else { UNTYPED }.to_owned();
    ContentFilter { class_name: ContentFilter::SQL.to_owned(), expression, ..ContentFilter::default() }
}

/// A [`crate::writer::FilterFunction`] of the writers that announce endpoints.
pub(super) fn compile(filter: &ContentFilter) -> Option<PayloadFilter> {
    let refused = match filter.expression.as_str() {
        TYPED => pid::PLAINSONG_UNTYPED,
        UNTYPED => pid::TYPE_INFORMATION,
        _ => return None,
    };
    Some(PayloadFilter::new(move |payload| !has_parameter(payload, refused)))
}

/// The copy of an announcement is that of an endpoint which nobody has.
fn copy_of(guid: Guid) -> Guid {
    let EntityId([a, b, c, kind]) = guid.entity;
    guid.prefix.entity(EntityId([a, b, c, kind | VENDOR_KIND]))
}

impl Participant {
    /// Somebody is there whom types break: announces everything without, too, and has each participant sent what is for it.
    pub(super) fn provide_untyped(&mut self, now: Now, out: &mut Outbox) {
        if self.builtin.has_untyped {
            return;
        }
        self.builtin.has_untyped = true;
        // Those who are there are not to get the copies.
        let matched = |(prefix, it): (GuidPrefix, &super::database::Remote)| {
            Some(prefix).filter(|_| it.heard_by_wire().is_some())
        };
        let prefixes: Vec<GuidPrefix> = self.database.iter().filter_map(matched).collect();
        for prefix in prefixes {
            self.reconnect(now, prefix, out);
        }
        let own: Vec<(Guid, Endpoint)> =
            self.matching.of(self.config.prefix).map(|(guid, endpoint)| (guid, endpoint.clone())).collect();
        for (guid, endpoint) in own {
            // Of what cannot be recorded only they do not hear.
            let _ = self.publish_untyped(now, guid, &endpoint, out);
        }
    }

    /// Announces an endpoint to those whom its type breaks.
    pub(super) fn publish_untyped(
        &mut self,
        now: Now,
        guid: Guid,
        endpoint: &Endpoint,
        out: &mut Outbox,
    ) -> Result<(), WriteError> {
        if !self.builtin.has_untyped || endpoint.description.is_none() {
            return Ok(());
        }
        let data = EndpointData { type_information: None, is_untyped: true, ..announced(guid, endpoint) };
        let copy = copy_of(guid).into();
        self.builtin.write(now, Channel::of(guid), ChangeKind::Alive, copy, data.encode(), out)
    }

    /// The endpoint is withdrawn; its copy goes from the history.
    pub(super) fn withdraw_untyped(&mut self, now: Now, guid: Guid, out: &mut Outbox) {
        let is_described = self.matching.get(guid).is_some_and(|it| it.description.is_some());
        if self.builtin.has_untyped && is_described {
            let copy = copy_of(guid);
            let key = EndpointData::encode_key(copy);
            let kind = ChangeKind::DisposeUnregister;
            // The history keeps one change of each instance: there is room for its last.
            let _ = self.builtin.write(now, Channel::of(guid), kind, copy.into(), key, out);
        }
    }
}

/// What is announced of a local endpoint.
pub(super) fn announced(guid: Guid, endpoint: &Endpoint) -> EndpointData {
    let is_reader = guid.entity.is_reader();
    EndpointData {
        qos: endpoint.qos.clone(),
        group: endpoint.group,
        content_filter: endpoint.content_filter.clone(),
        type_information: endpoint.description.as_ref().map(|it| it.information.clone()),
        receive_bytes: if is_reader { endpoint.receive_bytes } else { 0 },
        host_group_port: if is_reader { endpoint.host_group_port } else { 0 },
        ..EndpointData::new(guid, endpoint.topic.clone(), endpoint.type_name.clone())
    }
}
