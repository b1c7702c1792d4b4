//! Asking who is there in a domain without joining it: an announcement that everyone answers, of a
//! participant that has nothing, and what is read of the answers.

use super::builtin::ParticipantData;
use super::process::ProcessData;
use crate::guid::{EntityId, GuidPrefix};
use crate::locator::Locator;
use crate::outbox::{DataHeader, Outbox};
use crate::payload::Payload;
use crate::qos::Property;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Time};
use crate::tuning::discovery::ANNOUNCEMENT_BYTES_MAX;
use crate::vendor;
use crate::wire::header::{self, Header, PROTOCOL_VERSION, flag, id};
use crate::wire::param::{InlineQos, StatusInfo, encode_inline_qos};
use crate::wire::{Data, info};

/// Has an announcer and a detector of participants (RTPS 2.5 §9.3.2), and nothing else.
const ANNOUNCES_ITSELF: u32 = 0b11;
/// A property by which tools that look at a domain tell that they are none of its applications.
pub const TOOL_PROPERTY: &str = "plainsong.tool";

/// The announcement of a participant that has nothing, and only wants to know who answers.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Its prefix, which nobody else has.
    pub prefix: GuidPrefix,
    /// Which tool asks.
    pub tool: String,
    /// Where it hears answers.
    pub listens: Vec<Locator>,
    /// Who does not hear that it leaves forgets it then.
    pub lease_duration: Duration,
}

/// Another participant, as its announcement tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeardParticipant {
    /// Its prefix.
    pub prefix: GuidPrefix,
    /// Its domain, when it tells.
    pub domain: Option<u32>,
    /// Its domain tag.
    pub domain_tag: String,
    /// Its name; empty when it told none.
    pub name: String,
    /// Vendor id.
    pub vendor: [u8; 2],
    /// The product that its vendor id names.
    pub product: Option<&'static str>,
    /// What it told of its process.
    pub process: ProcessData,
    /// The tool that it is, if it looks at the domain like this one.
    pub tool: Option<String>,
    /// Whom the datagram is for; UNKNOWN: everyone.
    pub destination: GuidPrefix,
    /// When it says that it sent this, by its clock. Some products tell when they first did.
    pub sent: Option<Time>,
}

impl Survey {
    /// The datagram that asks who is in `domain`.
    #[must_use]
    pub fn question(&self, domain: u16, now: Time) -> Vec<u8> {
        let mut data = ParticipantData::new(self.prefix.participant());
        data.domain_id = Some(domain.into());
        data.meta_unicast.clone_from(&self.listens);
        data.default_unicast.clone_from(&self.listens);
        data.lease_duration = self.lease_duration;
        data.builtin_endpoints = ANNOUNCES_ITSELF;
        data.name = format!("plainsong {}", self.tool);
        data.properties.push(tool(&self.tool));
        self.message(SequenceNumber::FIRST, now, &[], false, data.encode())
    }

    /// The datagram by which it leaves.
    #[must_use]
    pub fn farewell(&self, now: Time) -> Vec<u8> {
        let gone = InlineQos {
            status_info: StatusInfo { disposed: true, unregistered: true, ..StatusInfo::default() },
            ..InlineQos::default()
        };
        let mut inline_qos = Vec::new();
        encode_inline_qos(&gone, &mut inline_qos);
        let key = ParticipantData::encode_key(self.prefix.participant());
        self.message(SequenceNumber::FIRST.next(), now, &inline_qos, true, key)
    }

    fn message(
        &self,
        sequence_number: SequenceNumber,
        now: Time,
        inline_qos: &[u8],
        key_only: bool,
        payload: Vec<u8>,
    ) -> Vec<u8> {
        let mut out = Outbox::new();
        let mut message = out.message(self.prefix, &[Locator::INVALID], ANNOUNCEMENT_BYTES_MAX);
        message.info_timestamp(Some(now));
        let (reader, writer) = (EntityId::SPDP_READER, EntityId::SPDP_WRITER);
        let header = DataHeader { reader, writer, sequence_number, inline_qos, key_only };
        // A datagram has room for it: only names and locators vary, and these are few.
        let _ = message.data(&header, &Payload::from_vec(payload));
        message.finish();
        out.transmits().first().map(|transmit| out.datagram(transmit)).unwrap_or_default()
    }
}

/// A message without contents, which means nothing to anybody.
#[must_use]
pub fn empty_message(prefix: GuidPrefix) -> Vec<u8> {
    let mut octets = Vec::new();
    header::emit(&mut octets, &prefix);
    octets
}

/// What makes a participant one of a tool.
#[must_use]
pub fn tool(name: &str) -> Property {
    Property { name: TOOL_PROPERTY.to_owned(), value: name.to_owned(), propagate: true }
}

/// The participants whose announcements a datagram holds. What is none, or malformed, is left out: nothing
/// follows from it here.
#[must_use]
pub fn heard(datagram: &[u8]) -> Vec<HeardParticipant> {
    let Ok((header, submessages)) = Header::parse(datagram) else { return Vec::new() };
    if header.version.first() != PROTOCOL_VERSION.first() {
        return Vec::new();
    }
    let (mut all, mut sent, mut destination) = (Vec::new(), None, GuidPrefix::UNKNOWN);
    for submessage in submessages.map_while(Result::ok) {
        match submessage.id {
            id::INFO_DST => {
                let Ok(told) = info::parse_destination(submessage.body, submessage.flags) else { break };
                destination = told;
            }
            id::INFO_TS => sent = info::parse_timestamp(submessage.body, submessage.flags).unwrap_or(None),
            id::DATA if submessage.flags & flag::DATA != 0 => {
                let Ok(data) = Data::parse(submessage.body, submessage.flags) else { break };
                let told = Some(data).filter(|data| data.writer == EntityId::SPDP_WRITER);
                let told = told.and_then(|data| ParticipantData::decode(data.payload).ok());
                all.extend(told.map(|told| HeardParticipant::of(told, destination, sent)));
            }
            _ => {}
        }
    }
    all
}

impl HeardParticipant {
    fn of(data: ParticipantData, destination: GuidPrefix, sent: Option<Time>) -> Self {
        let tool = data.properties.iter().find(|property| property.name == TOOL_PROPERTY);
        Self {
            prefix: data.guid.prefix,
            domain: data.domain_id,
            product: vendor::name(data.vendor),
            vendor: data.vendor,
            process: ProcessData::of_properties(&data.properties),
            tool: tool.map(|property| property.value.clone()),
            domain_tag: data.domain_tag,
            name: data.name,
            destination,
            sent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey() -> Survey {
        Survey {
            prefix: GuidPrefix([7; 12]),
            tool: "doctor".into(),
            listens: vec![Locator::udp([127, 0, 0, 1].into(), 40_000)],
            lease_duration: Duration::from_secs(2),
        }
    }

    #[test]
    fn a_question_is_an_announcement_of_a_tool() {
        let now = Time::from_wire(1_700_000_000, 0);
        let all = heard(&survey().question(42, now));
        let [told] = &all[..] else { panic!("{all:?}") };
        assert_eq!((told.domain, told.product), (Some(42), Some("Plainsong")));
        assert_eq!((told.prefix, told.tool.as_deref()), (GuidPrefix([7; 12]), Some("doctor")));
        assert_eq!((told.name.as_str(), told.sent), ("plainsong doctor", Some(now)));
        assert_eq!(told.destination, GuidPrefix::UNKNOWN);
        assert_eq!(heard(&empty_message(GuidPrefix([7; 12]))), []);
    }

    #[test]
    fn a_farewell_announces_nobody_and_disposes_of_the_participant() {
        let farewell = survey().farewell(Time::from_wire(1, 0));
        assert_eq!(heard(&farewell), []);
        let (_, mut submessages) = Header::parse(&farewell).unwrap();
        let data = submessages.find_map(|it| it.ok().filter(|it| it.id == id::DATA)).unwrap();
        let data = Data::parse(data.body, data.flags).unwrap();
        assert_eq!(ParticipantData::decode_key(data.payload), Ok(GuidPrefix([7; 12]).participant()));
        assert!(data.inline_qos.is_some() && data.key_only);
    }

    #[test]
    fn what_is_no_announcement_is_left_out() {
        assert_eq!(heard(b""), []);
        assert_eq!(heard(b"RTPS\x02\x05\x01\x0f123456789012"), []);
        let question = survey().question(1, Time::from_wire(1, 0));
        for end in 0..question.len() {
            assert!(heard(&question[..end]).len() <= 1);
        }
        let mut other_major = question;
        other_major[4] = 3;
        assert_eq!(heard(&other_major), []);
    }
}
