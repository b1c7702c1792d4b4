//! A domain as data: who is there, what they have, and what matches.

use std::collections::{BTreeMap, BTreeSet};

use plainsong::Error;
use plainsong::prelude::*;
use plainsong::qos::EntityKind;
use plainsong::state::{Judgement, Mismatch, RemoteEndpointState, RemoteParticipantState, StateLimits};
use plainsong::statistics::STATISTICS_TOPIC;
use serde::Serialize;

/// Participants and endpoints shown at most.
const SHOWN_MAX: usize = 20_000;
/// Pairs that are judged at most.
const PAIRS_MAX: usize = 200_000;

/// What there is in a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct View {
    pub(crate) domain: u16,
    pub(crate) participants: Vec<Participant>,
    pub(crate) topics: Vec<Topic>,
    pub(crate) types: Vec<Type>,
    pub(crate) endpoints: Vec<Endpoint>,
    /// Pairs that do not match, and why.
    pub(crate) mismatches: Vec<Mismatch>,
    /// So many participants, endpoints and pairs are not among these, because there are too many.
    pub(crate) left_out: usize,
}

/// A participant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Participant {
    pub(crate) guid: Guid,
    pub(crate) name: String,
    pub(crate) host: String,
    /// Process id; 0 when it is not told.
    pub(crate) process: u32,
    pub(crate) executable: String,
    pub(crate) user: String,
    /// The product, or the vendor id where that is unknown.
    pub(crate) product: String,
    /// The version of the product, where it is told.
    pub(crate) version: Option<String>,
    pub(crate) rtps_version: String,
    /// Where it is heard from.
    pub(crate) address: Option<String>,
    /// Where it says that it receives discovery traffic.
    pub(crate) locators: Vec<String>,
    pub(crate) user_data: String,
    pub(crate) same_host: bool,
    /// It has answered where it says that it is.
    pub(crate) answers: bool,
    /// By which transport this process reaches it, and why not by shared memory.
    pub(crate) transport: String,
    /// It tells an identity of DDS Security.
    pub(crate) secured: bool,
    /// The tool that it is, if it is one.
    pub(crate) tool: Option<String>,
    pub(crate) endpoints: usize,
}

/// A topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Topic {
    pub(crate) name: String,
    pub(crate) types: BTreeSet<String>,
    pub(crate) writers: usize,
    pub(crate) readers: usize,
    /// Pairs of a writer and a reader.
    pub(crate) matches: usize,
    pub(crate) mismatches: usize,
}

/// A type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Type {
    pub(crate) name: String,
    /// Its definitions, by hash: of one definition there is one.
    pub(crate) hashes: BTreeSet<String>,
    pub(crate) topics: BTreeSet<String>,
    pub(crate) endpoints: usize,
}

/// A writer or reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Endpoint {
    pub(crate) guid: Guid,
    /// `writer` or `reader`.
    pub(crate) kind: &'static str,
    pub(crate) topic: String,
    #[serde(rename = "type")]
    pub(crate) type_name: String,
    pub(crate) type_hash: Option<String>,
    pub(crate) participant: Guid,
    /// What names its participant for people.
    pub(crate) of: String,
    /// The policies that are not the defaults of its kind, in words.
    pub(crate) qos: BTreeMap<&'static str, String>,
    pub(crate) content_filter: Option<String>,
    pub(crate) matches: Vec<Guid>,
    pub(crate) mismatches: Vec<Guid>,
    /// It is not known whether these match: a type is not told yet.
    pub(crate) undecided: Vec<Guid>,
}

impl View {
    /// What a participant knows of its domain. With `all` also of tools, and what groups of ATOMIC topics
    /// talk by.
    pub(crate) fn of(participant: &DomainParticipant, all: bool) -> Result<Self, Error> {
        let limits = StateLimits {
            entities: 0,
            remote: SHOWN_MAX,
            matches: 0,
            mismatches: 0,
            internal_endpoints: all,
        };
        let state = participant.state_within(&limits)?;
        let pairs = participant.discovered_pairs(PAIRS_MAX, all)?;
        let left_out = state.remote_participants.left_out + state.remote_endpoints.left_out + pairs.left_out;
        let mut view = Self { domain: state.domain_id, left_out, ..Self::default() };
        view.participants = state.remote_participants.items.into_iter().map(Participant::of).collect();
        let names: BTreeMap<Guid, String> =
            view.participants.iter().map(|it| (it.guid, it.label())).collect();
        let shown = |it: &RemoteEndpointState| all || it.topic != STATISTICS_TOPIC;
        let named = |endpoint: RemoteEndpointState| {
            let of = names.get(&endpoint.guid.prefix.participant()).cloned().unwrap_or_default();
            (endpoint.guid, Endpoint::of(endpoint, of))
        };
        let mut endpoints: BTreeMap<Guid, Endpoint> =
            state.remote_endpoints.items.into_iter().filter(shown).map(named).collect();
        let own = participant.guid().prefix;
        for pair in pairs.items {
            if [pair.writer.prefix, pair.reader.prefix].contains(&own) {
                continue;
            }
            for (one, other) in [(pair.writer, pair.reader), (pair.reader, pair.writer)] {
                let Some(endpoint) = endpoints.get_mut(&one) else { continue };
                match &pair.judgement {
                    Judgement::Matched => endpoint.matches.push(other),
                    Judgement::Mismatched(_) => endpoint.mismatches.push(other),
                    _ => endpoint.undecided.push(other),
                }
            }
            if let Judgement::Mismatched(mismatch) = pair.judgement
                && endpoints.contains_key(&pair.writer)
            {
                view.mismatches.push(*mismatch);
            }
        }
        for endpoint in endpoints.values() {
            let of = endpoint.participant;
            if let Some(participant) = view.participants.iter_mut().find(|it| it.guid == of) {
                participant.endpoints += 1;
            }
        }
        view.participants.retain(|it| all || it.tool.is_none() || it.endpoints > 0);
        view.endpoints = endpoints.into_values().collect();
        view.endpoints.sort_by(|one, other| {
            (&one.topic, one.kind, one.guid).cmp(&(&other.topic, other.kind, other.guid))
        });
        view.add_topics();
        Ok(view)
    }

    /// Topics and types follow from the endpoints.
    fn add_topics(&mut self) {
        let mut topics: BTreeMap<&str, Topic> = BTreeMap::new();
        let mut types: BTreeMap<&str, Type> = BTreeMap::new();
        for endpoint in &self.endpoints {
            let topic = topics.entry(&endpoint.topic).or_default();
            topic.types.insert(endpoint.type_name.clone());
            if endpoint.is_writer() {
                topic.writers += 1;
                topic.matches += endpoint.matches.len();
                topic.mismatches += endpoint.mismatches.len();
            } else {
                topic.readers += 1;
            }
            let of = types.entry(&endpoint.type_name).or_default();
            of.hashes.extend(endpoint.type_hash.clone());
            of.topics.insert(endpoint.topic.clone());
            of.endpoints += 1;
        }
        let named = |(name, topic): (&str, Topic)| Topic { name: name.to_owned(), ..topic };
        let topics = topics.into_iter().map(named).collect();
        let types = types.into_iter().map(|(name, it)| Type { name: name.to_owned(), ..it }).collect();
        (self.topics, self.types) = (topics, types);
    }
}

impl Participant {
    fn of(state: RemoteParticipantState) -> Self {
        let vendor = || format!("vendor {:02x}.{:02x}", state.vendor[0], state.vendor[1]);
        let dotted = |[major, minor]: [u8; 2]| format!("{major}.{minor}");
        Self {
            guid: state.guid,
            product: state.product.unwrap_or_else(vendor),
            version: state.product_version.map(dotted),
            rtps_version: dotted(state.rtps_version),
            name: state.name,
            host: state.process.host,
            process: state.process.id,
            executable: state.process.executable,
            user: state.process.user,
            address: state.address.map(|address| address.to_string()),
            locators: state.discovery_locators.iter().map(ToString::to_string).collect(),
            user_data: octets_in_words(&state.user_data),
            same_host: state.same_host,
            answers: state.is_proven,
            transport: state.transport.to_string(),
            secured: state.is_secured,
            tool: state.tool,
            endpoints: 0,
        }
    }

    /// What names it for people: its name or that of its process, else its GUID.
    pub(crate) fn label(&self) -> String {
        let executable = self.executable.rsplit(['/', '\\']).next().unwrap_or_default();
        let name = [self.name.as_str(), executable].into_iter().find(|name| !name.is_empty());
        let name = name.map_or_else(|| self.guid.to_string(), str::to_owned);
        match (self.process, self.host.as_str()) {
            (0, _) => name,
            (process, "") => format!("{name} (process {process})"),
            (process, host) => format!("{name} (process {process} on {host})"),
        }
    }

    /// The product with its version.
    pub(crate) fn product_and_version(&self) -> String {
        self.version.as_ref().map_or_else(|| self.product.clone(), |it| format!("{} {it}", self.product))
    }
}

impl Endpoint {
    fn of(state: RemoteEndpointState, of: String) -> Self {
        let kind = if state.is_writer { EntityKind::Writer } else { EntityKind::Reader };
        let defaults = if state.is_writer { QosSet::writer() } else { QosSet::reader() };
        let filter = state.content_filter.map(|it| {
            let parameters = it.parameters.iter().map(|value| format!(" {value}"));
            format!("{}{}", it.expression, parameters.collect::<String>())
        });
        Self {
            kind: if kind == EntityKind::Writer { "writer" } else { "reader" },
            participant: state.guid.prefix.participant(),
            guid: state.guid,
            topic: state.topic,
            type_name: state.type_name,
            type_hash: state.type_hash,
            of,
            qos: state.qos.differing_from(&defaults).into_iter().collect(),
            content_filter: filter,
            matches: Vec::new(),
            mismatches: Vec::new(),
            undecided: Vec::new(),
        }
    }

    pub(crate) fn is_writer(&self) -> bool {
        self.kind == "writer"
    }

    /// Its QoS in a line.
    pub(crate) fn qos_in_words(&self) -> String {
        let policies = self.qos.iter().map(|(name, value)| format!("{name} {value}"));
        policies.collect::<Vec<_>>().join(", ")
    }
}

/// Text as it is; anything else in hexadecimal digits.
fn octets_in_words(octets: &[u8]) -> String {
    match std::str::from_utf8(octets) {
        Ok(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => octets.iter().map(|octet| format!("{octet:02x}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_data_is_text_or_digits() {
        assert_eq!(octets_in_words(b"enclave=/;"), "enclave=/;");
        assert_eq!(octets_in_words(&[0, 255]), "00ff");
        assert_eq!(octets_in_words(b"a\nb"), "610a62");
    }
}
