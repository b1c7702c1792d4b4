//! Why two endpoints of a topic do not match, in words that say what would change it.

use core::net::IpAddr;
use std::borrow::Cow;
use std::fmt;

use super::matching::{Endpoint, MismatchReason};
use super::participant::Participant;
use crate::guid::Guid;
use crate::qos::rxo::{is_pattern, partitions_match};
use crate::qos::{partitions_in_words, shortfalls};
use crate::types::TypeDifference;
use crate::vendor;

/// A writer and a reader of the same topic that do not match. `Display` tells it in sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Mismatch {
    /// Their topic.
    pub topic: String,
    /// The writer.
    pub writer: Party,
    /// The reader.
    pub reader: Party,
    /// The first reason, which keeps them apart whatever the others are.
    pub reason: MismatchReason,
    /// All that keeps them apart, the first reason first; of policies each one.
    pub differences: Vec<Difference>,
}

/// One side of a mismatch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Party {
    /// The endpoint.
    pub guid: Guid,
    /// It belongs to the participant that tells.
    pub local: bool,
    /// Name of its participant; empty when it told none.
    pub participant: String,
    /// The product its participant is made with, as its vendor id says.
    pub product: Option<Cow<'static, str>>,
    /// Where its participant announces itself from; `None` for a local one.
    pub address: Option<IpAddr>,
    /// Registered type name.
    pub type_name: String,
}

/// Something in which a writer and a reader differ though they must not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Difference {
    /// In what: the name of a policy, `type name`, `type`, `key`, `locators`.
    pub subject: Cow<'static, str>,
    /// What the writer has, in words.
    pub writer: String,
    /// What the reader has, in words.
    pub reader: String,
    /// What would end the difference.
    pub cure: String,
    /// What else is known about it; may be empty.
    pub note: String,
}

impl Party {
    /// One of which nothing else is known any more.
    #[must_use]
    pub const fn unknown(guid: Guid) -> Self {
        Self {
            guid,
            local: false,
            participant: String::new(),
            product: None,
            address: None,
            type_name: String::new(),
        }
    }
}

impl Difference {
    /// The subject of different type names.
    pub const TYPE_NAME: &'static str = "type name";
    /// The subject of types of one name that differ in a member or otherwise.
    pub const TYPE: &'static str = "type";
}

/// Whether both endpoints are of the product itself: those of a group of an ATOMIC topic, for example. They
/// share a topic and have types of different names by design, so that nobody need hear why they do not match.
#[must_use]
pub const fn are_internal(writer: Guid, reader: Guid) -> bool {
    writer.entity.is_vendor_specific() && reader.entity.is_vendor_specific()
}

impl Participant {
    /// Local and remote endpoints of the same topic that do not match, and why; none of the product itself.
    pub fn mismatches(&self) -> impl Iterator<Item = Mismatch> + '_ {
        let pairs = self.matching.mismatches().filter(|(writer, reader, _)| !are_internal(*writer, *reader));
        pairs.filter_map(|(writer, reader, _)| self.mismatch(writer, reader))
    }

    /// All pairs that do not match, writer first, with the first reason of each: those that
    /// [`Self::mismatches`] tells of, and those of the product itself.
    pub fn mismatched_pairs(&self) -> impl Iterator<Item = (Guid, Guid, &MismatchReason)> + '_ {
        self.matching.mismatches()
    }

    /// Why a writer and a reader do not match; `None` when they do, or one of them or their pair is not
    /// known here.
    #[must_use]
    pub fn mismatch(&self, writer: Guid, reader: Guid) -> Option<Mismatch> {
        self.explain(writer, reader, self.matching.reason(writer, reader)?.clone())
    }

    /// All that keeps a writer and a reader apart, whoever has them.
    pub(super) fn explain(&self, writer: Guid, reader: Guid, reason: MismatchReason) -> Option<Mismatch> {
        let (offering, requesting) = (self.matching.get(writer)?, self.matching.get(reader)?);
        Some(Mismatch {
            topic: offering.topic.clone(),
            writer: self.party(writer, offering),
            reader: self.party(reader, requesting),
            differences: self.differences((writer, offering), (reader, requesting)),
            reason,
        })
    }

    /// A local endpoint or a known one, and whose it is.
    #[must_use]
    pub fn party_of(&self, endpoint: Guid) -> Option<Party> {
        Some(self.party(endpoint, self.matching.get(endpoint)?))
    }

    fn party(&self, guid: Guid, endpoint: &Endpoint) -> Party {
        let type_name = endpoint.type_name.clone();
        let local = guid.prefix == self.config.prefix;
        let remote = self.database.get(guid.prefix);
        Party {
            guid,
            local,
            participant: match remote {
                _ if local => self.config.name.clone(),
                Some(remote) => remote.data.name.clone(),
                None => String::new(),
            },
            product: remote.and_then(|remote| vendor::name(remote.data.vendor)).map(Cow::Borrowed),
            address: remote.and_then(|remote| remote.from.ip()),
            type_name,
        }
    }

    fn differences(
        &self,
        (writer, offering): (Guid, &Endpoint),
        (reader, requesting): (Guid, &Endpoint),
    ) -> Vec<Difference> {
        let keys = (writer.entity.is_keyed(), reader.entity.is_keyed());
        let kinds = [
            self.type_names((writer, offering), (reader, requesting)),
            self.type_definitions((writer, offering), (reader, requesting)),
            self.type_information((writer, reader), requesting),
            key(keys),
            partition(offering, requesting),
        ];
        let mut all: Vec<_> = kinds.into_iter().flatten().collect();
        all.extend(shortfalls(&offering.qos, &requesting.qos).into_iter().map(|shortfall| Difference {
            subject: Cow::Borrowed(shortfall.policy.name),
            writer: shortfall.offered,
            reader: shortfall.requested,
            cure: shortfall.cure,
            note: String::new(),
        }));
        let sides = [(writer, offering), (reader, requesting)];
        if self.matching.cannot_meet(writer, reader) {
            let words = sides.map(|(guid, endpoint)| {
                if self.matching.is_unreachable(guid, endpoint) { "no usable address" } else { "reachable" }
            });
            let remote = sides.iter().find_map(|(guid, _)| self.database.get(guid.prefix));
            all.push(locators(words, remote.map_or(0, |remote| remote.data.unreached)));
        }
        all
    }

    fn type_names(
        &self,
        (writer, offering): (Guid, &Endpoint),
        (reader, requesting): (Guid, &Endpoint),
    ) -> Option<Difference> {
        let names = (&offering.type_name, &requesting.type_name);
        let note = || match self.matching.type_difference(writer, reader) {
            Some(difference) => difference.to_string(),
            None if !self.matching.knows_types(writer, reader) => {
                "their members cannot be compared: one of the participants tells nothing of its type".into()
            }
            None => match self.matching.any_type_difference(writer, reader) {
                Some(difference) => difference.to_string(),
                None => "their members are the same".into(),
            },
        };
        (names.0 != names.1).then(|| Difference {
            subject: Cow::Borrowed(Difference::TYPE_NAME),
            writer: format!("{:?}", names.0),
            reader: format!("{:?}", names.1),
            cure: "register the type under one name on both sides, or use another topic for the other type"
                .into(),
            note: note(),
        })
    }

    /// Types of the same name that differ in a member or otherwise.
    fn type_definitions(
        &self,
        (writer, offering): (Guid, &Endpoint),
        (reader, requesting): (Guid, &Endpoint),
    ) -> Option<Difference> {
        if offering.type_name != requesting.type_name || !self.matching.knows_types(writer, reader) {
            return None;
        }
        let TypeDifference { member, writer, reader } = self.matching.type_difference(writer, reader)?;
        let of = |endpoint: &Endpoint, is: String| {
            let name = &endpoint.type_name;
            if member.is_empty() {
                format!("{name:?}, {is}")
            } else {
                format!("{name:?} with member `{member}`: {is}")
            }
        };
        Some(Difference {
            subject: Cow::Borrowed(Difference::TYPE),
            writer: of(offering, writer),
            reader: of(requesting, reader),
            cure: "define the type alike on both sides, or use another topic for the other type".into(),
            note: String::new(),
        })
    }

    fn type_information(&self, (writer, reader): (Guid, Guid), requesting: &Endpoint) -> Option<Difference> {
        let forced = requesting.qos.type_consistency.force_type_validation;
        (forced && !self.matching.knows_types(writer, reader)).then(|| Difference {
            subject: Cow::Borrowed("TYPE_CONSISTENCY_ENFORCEMENT"),
            writer: "no type information to check".into(),
            reader: "force_type_validation".into(),
            cure:
                "set the reader's force_type_validation to false, or have both participants tell their types"
                    .into(),
            note: String::new(),
        })
    }
}

fn key((writer, reader): (bool, bool)) -> Option<Difference> {
    let words = |keyed| if keyed { "a keyed type" } else { "a type without key" }.to_owned();
    (writer != reader).then(|| Difference {
        subject: Cow::Borrowed("key"),
        writer: words(writer),
        reader: words(reader),
        cure: "mark the same members of the type as key on both sides, or none on either".into(),
        note: String::new(),
    })
}

fn partition(offering: &Endpoint, requesting: &Endpoint) -> Option<Difference> {
    let (writer, reader) = (&offering.qos.partition, &requesting.qos.partition);
    if partitions_match(writer, reader) {
        return None;
    }
    let plain = |names: &[String]| match names {
        [] => Some(String::new()),
        names => names.iter().find(|name| !is_pattern(name)).cloned(),
    };
    let cure = match (plain(writer), plain(reader)) {
        (Some(ours), Some(theirs)) => {
            format!("add {ours:?} to the subscriber's PARTITION or {theirs:?} to the publisher's")
        }
        (Some(ours), None) => format!("add {ours:?} to the subscriber's PARTITION"),
        (None, Some(theirs)) => format!("add {theirs:?} to the publisher's PARTITION"),
        (None, None) => "use a plain name on one side: a pattern never matches a pattern".into(),
    };
    Some(Difference {
        subject: Cow::Borrowed("PARTITION"),
        writer: partitions_in_words(writer),
        reader: partitions_in_words(reader),
        cure,
        note: String::new(),
    })
}

/// `unreached`: so many locators of the remote participant are of kinds that no transport here reaches.
fn locators([writer, reader]: [&str; 2], unreached: u32) -> Difference {
    Difference {
        subject: Cow::Borrowed("locators"),
        writer: writer.into(),
        reader: reader.into(),
        cure: "have the remote participant announce an address from which it answers this host".into(),
        note: match unreached {
            0 => String::new(),
            count => format!("{count} of its addresses are of kinds that no transport here reaches"),
        },
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, writer, reader, differences, .. } = self;
        write!(f, "topic {topic:?}: writer {writer} and reader {reader} do not match")?;
        for difference in differences {
            write!(f, "\n  {difference}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.guid)?;
        if self.local {
            return f.write_str(" of this participant");
        }
        if self.participant.is_empty() {
            f.write_str(" of an unnamed participant")?;
        } else {
            write!(f, " of participant {:?}", self.participant)?;
        }
        match (&self.product, self.address) {
            (Some(product), Some(address)) => write!(f, " ({product}, {address})"),
            (None, Some(address)) => write!(f, " ({address})"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, writer, reader, cure, note } = self;
        write!(f, "{subject}: the writer has {writer}, the reader wants {reader}; {cure}")?;
        if note.is_empty() { Ok(()) } else { write!(f, " ({note})") }
    }
}
