//! The forms of what we announce: the usual one, and those for products that cannot do with it.
//!
//! Endpoint discovery has one history for all readers. Once somebody is there who needs another form, each
//! announcement that differs in it has a copy, an instance of its own in our history, and each reader is sent
//! what is in its form: by the filters of [`crate::writer`], so that whatever is repeated or told to late
//! ones follows the same rule. What we announce of ourselves goes to everyone in the usual form, once as we
//! start in [`Form::Located`], and by unicast in that of the receiver.
//!
//! Types (XTypes' TypeInformation) are told to everyone but the versions that break
//! ([`crate::vendor::reads_types`]). These go by the name, and are refused only what nobody could read, and
//! only where nobody waits for acknowledgements: a reliable writer of theirs would wait for those of a reader
//! that refused it. They are asked for their types, so that people hear which member differs.
//!
//! Types that contain themselves are told to everyone but those who drop endpoints that tell them
//! ([`crate::vendor::refuses_components`]).
//!
//! Endpoints tell where they are only to products that nobody knows. The default locators of the participant
//! hold for all endpoints (RTPS 2.5 §8.5.3.2), and the products in `vendor.rs` go by them. Stacks for
//! microcontrollers ignore them, refuse participants that announce what RTPS 2.1 did not have, and have room
//! for a few hundred octets. So a participant of an unknown vendor is sent our announcement by unicast in a
//! short form, and announcements of endpoints with locators.
//!
//! Readers with CONSISTENCY ATOMIC are told to Plainsong participants alone: others would match their writers
//! with them, ignoring the policy, and reliable ones would wait for acknowledgements that never come. Fast
//! DDS ignores the bit that makes a parameter one that must be understood, too. Our readers hear of the
//! writers of others and are told that they do not fit.

use super::builtin::{EndpointData, ParticipantData, has_parameter};
use super::channel::Channel;
use super::matching::Endpoint;
use super::participant::Participant;
use crate::filter::{ContentFilter, PayloadFilter};
use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::outbox::Outbox;
use crate::time::Now;
use crate::vendor;
use crate::wire::param::pid;
use crate::writer::{ChangeKind, WriteError};

/// How a participant is told of us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Endpoints tell no locators: they are where their participant's are (RTPS 2.5 §8.5.3.2).
    Usual,
    /// The usual one, for Plainsong participants: they are also told of readers that others are not told of.
    Own,
    /// Without types, for the versions that types break ([`vendor::reads_types`]).
    Untyped,
    /// Without the types that contain themselves ([`vendor::refuses_components`]).
    Acyclic,
    /// For products that nobody knows ([`vendor::name`]), small stacks among them: endpoints tell where they
    /// are, because those ignore the default locators; the participant tells only what RTPS 2.1 knows,
    /// because those refuse the rest.
    Located,
}

/// The forms of which there are copies, and whether there is something that not everyone is told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copies {
    untyped: bool,
    acyclic: bool,
    located: bool,
    withheld: bool,
}

impl Copies {
    /// Whether participants are told different things.
    pub(super) const fn any(self) -> bool {
        self.untyped || self.acyclic || self.located || self.withheld
    }

    /// From now on there are copies in a form; whether that is new.
    const fn begin(&mut self, form: Form) -> bool {
        let place = match form {
            Form::Usual | Form::Own => return false,
            Form::Untyped => &mut self.untyped,
            Form::Acyclic => &mut self.acyclic,
            Form::Located => &mut self.located,
        };
        !core::mem::replace(place, true)
    }

    fn forms(self) -> impl Iterator<Item = Form> {
        let has =
            [(self.untyped, Form::Untyped), (self.acyclic, Form::Acyclic), (self.located, Form::Located)];
        has.into_iter().filter_map(|(has, form)| has.then_some(form))
    }
}

/// Kinds of entities with it are a vendor's own (RTPS 2.5 §9.3.1.2).
const VENDOR_KIND: u8 = 0x40;
/// No kind of entity has it.
const NO_KIND: u8 = 0x20;

impl Form {
    const ALL: [Self; 5] = [Self::Usual, Self::Own, Self::Untyped, Self::Acyclic, Self::Located];

    /// That of a participant.
    pub(super) fn of(data: &ParticipantData) -> Self {
        if !data.reads_types() {
            Self::Untyped
        } else if vendor::name(data.vendor).is_none() {
            Self::Located
        } else if data.vendor == vendor::PLAINSONG {
            Self::Own
        } else if vendor::refuses_components(data.vendor) {
            Self::Acyclic
        } else {
            Self::Usual
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::Own => "own",
            Self::Untyped => "untyped",
            Self::Acyclic => "acyclic",
            Self::Located => "located",
        }
    }

    /// What its reader is sent, once there are copies.
    pub(super) fn filter(self) -> ContentFilter {
        let expression = self.name().to_owned();
        ContentFilter { class_name: ContentFilter::SQL.to_owned(), expression, ..ContentFilter::default() }
    }

    /// Whether it is what an announcement is for.
    pub(super) fn is_of(self, payload: &[u8]) -> bool {
        let has = |id| has_parameter(payload, id);
        match self {
            Self::Own => {
                !has(pid::PLAINSONG_UNTYPED) && !has(pid::PLAINSONG_ACYCLIC) && !has(pid::UNICAST_LOCATOR)
            }
            _ if is_withheld(payload) => false,
            Self::Usual => Self::Own.is_of(payload),
            Self::Untyped => {
                !has(pid::TYPE_INFORMATION) && !has(pid::PLAINSONG_ACYCLIC) && !has(pid::UNICAST_LOCATOR)
            }
            Self::Acyclic => {
                has(pid::PLAINSONG_ACYCLIC) || Self::Own.is_of(payload) && !tells_component(payload)
            }
            Self::Located => has(pid::UNICAST_LOCATOR),
        }
    }

    /// The copy of an announcement is that of an endpoint which nobody has.
    fn copy_of(self, guid: Guid) -> Guid {
        let EntityId([a, b, c, kind]) = guid.entity;
        let mark = match self {
            Self::Usual | Self::Own => 0,
            Self::Untyped => VENDOR_KIND,
            Self::Acyclic => NO_KIND,
            Self::Located => VENDOR_KIND | NO_KIND,
        };
        guid.prefix.entity(EntityId([a, b, c, kind | mark]))
    }
}

/// Whether an announcement is for Plainsong participants alone: that of a reader with CONSISTENCY ATOMIC.
fn is_withheld(payload: &[u8]) -> bool {
    has_parameter(payload, pid::PLAINSONG_CONSISTENCY)
        && EndpointData::decode_key(payload).is_ok_and(|guid| guid.entity.is_reader())
}

/// Whether an announcement tells a type that contains itself.
fn tells_component(payload: &[u8]) -> bool {
    let information =
        EndpointData::decode(payload, vendor::PLAINSONG).ok().and_then(|it| it.type_information);
    information.is_some_and(|information| information.has_components())
}

/// Whether participants of this vendor are not told the type of an endpoint because it contains itself.
pub(super) fn is_untold(endpoint: &Endpoint, vendor: [u8; 2]) -> bool {
    vendor::refuses_components(vendor) && has_components(endpoint)
}

/// Whether the type of an endpoint contains itself, or one that it depends on does.
fn has_components(endpoint: &Endpoint) -> bool {
    endpoint.description.as_ref().is_some_and(|ty| ty.information.has_components())
}

/// The [`crate::filter::FilterFunction`] of the writers that announce endpoints.
pub(super) fn compile(filter: &ContentFilter) -> Option<PayloadFilter> {
    let form = Form::ALL.into_iter().find(|form| form.name() == filter.expression)?;
    Some(PayloadFilter::new(move |payload| form.is_of(payload)))
}

impl Participant {
    /// Somebody is there who needs a form: announces everything in it, too, and has each participant sent
    /// what is for it.
    pub(super) fn provide(&mut self, now: Now, form: Form, out: &mut Outbox) {
        // That of types which contain themselves begins with the first of these.
        if form != Form::Acyclic && self.builtin.copies.begin(form) {
            // Those who are there are not to get the copies.
            self.reconnect_all(now, out);
            self.publish_all_in(now, form, out);
        }
    }

    /// An endpoint is about to be announced: if not everyone may hear of it, or of its type, from now on each
    /// participant is sent what is for it.
    pub(super) fn withhold(&mut self, now: Now, guid: Guid, endpoint: &Endpoint, out: &mut Outbox) {
        let is_told_to_all = !endpoint.qos.is_atomic() || guid.entity.is_writer();
        let withholds = !is_told_to_all && !core::mem::replace(&mut self.builtin.copies.withheld, true);
        let begins = has_components(endpoint) && self.builtin.copies.begin(Form::Acyclic);
        if withholds || begins {
            self.reconnect_all(now, out);
        }
    }

    fn reconnect_all(&mut self, now: Now, out: &mut Outbox) {
        let matched = |(prefix, it): (GuidPrefix, &super::database::Remote)| {
            Some(prefix).filter(|_| it.heard_by_wire().is_some())
        };
        let prefixes: Vec<GuidPrefix> = self.database.iter().filter_map(matched).collect();
        for prefix in prefixes {
            self.reconnect(now, prefix, out);
        }
    }

    /// Our endpoints are elsewhere: those are told who are told where.
    pub(super) fn publish_locators(&mut self, now: Now, out: &mut Outbox) {
        if self.builtin.copies.located {
            self.publish_all_in(now, Form::Located, out);
        }
    }

    fn publish_all_in(&mut self, now: Now, form: Form, out: &mut Outbox) {
        let own: Vec<(Guid, Endpoint)> =
            self.matching.of(self.config.prefix).map(|(guid, endpoint)| (guid, endpoint.clone())).collect();
        for (guid, endpoint) in own {
            // Of what cannot be recorded only they do not hear.
            let _ = self.publish_in(now, form, guid, &endpoint, out);
        }
    }

    /// Announces an endpoint to those who need another form.
    pub(super) fn publish_copies(
        &mut self,
        now: Now,
        guid: Guid,
        endpoint: &Endpoint,
        out: &mut Outbox,
    ) -> Result<(), WriteError> {
        self.builtin.copies.forms().try_for_each(|form| self.publish_in(now, form, guid, endpoint, out))
    }

    fn publish_in(
        &mut self,
        now: Now,
        form: Form,
        guid: Guid,
        endpoint: &Endpoint,
        out: &mut Outbox,
    ) -> Result<(), WriteError> {
        let Some(data) = self.copy(form, guid, endpoint) else { return Ok(()) };
        let copy = form.copy_of(guid).into();
        self.builtin.write(now, Channel::of(guid), ChangeKind::Alive, copy, data.encode(), out)
    }

    /// What is announced of an endpoint in another form, if that is not what everyone is told.
    pub(super) fn copy(&self, form: Form, guid: Guid, endpoint: &Endpoint) -> Option<EndpointData> {
        if guid.entity.is_vendor_specific() {
            return None;
        }
        let data = announced(guid, endpoint);
        match form {
            Form::Usual | Form::Own => None,
            _ if endpoint.qos.is_atomic() && guid.entity.is_reader() => None,
            Form::Untyped => {
                data.type_information.as_ref()?;
                Some(EndpointData { type_information: None, is_untyped: true, ..data })
            }
            Form::Acyclic if !has_components(endpoint) => None,
            Form::Acyclic => Some(EndpointData { type_information: None, is_acyclic: true, ..data }),
            Form::Located => Some(EndpointData {
                unicast: self.config.locators.user_unicast.clone(),
                multicast: self.config.locators.user_multicast.clone(),
                receive_bytes: 0,
                ..data
            }),
        }
    }

    /// The endpoint is withdrawn; its copies go from the history.
    pub(super) fn withdraw_copies(&mut self, now: Now, guid: Guid, out: &mut Outbox) {
        let Some(endpoint) = self.matching.get(guid).cloned() else { return };
        for form in self.builtin.copies.forms() {
            if self.copy(form, guid, &endpoint).is_some() {
                let copy = form.copy_of(guid);
                let key = EndpointData::encode_key(copy);
                let kind = ChangeKind::DisposeUnregister;
                // The history keeps one change of each instance: there is room for its last.
                let _ = self.builtin.write(now, Channel::of(guid), kind, copy.into(), key, out);
            }
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
        ..EndpointData::new(guid, endpoint.topic.clone(), endpoint.type_name.clone())
    }
}
