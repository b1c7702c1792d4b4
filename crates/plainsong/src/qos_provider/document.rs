//! Libraries, profiles and the QoS in them (DDS-XML 1.0 §7.3.2.4), and what other products write instead.

use std::collections::{BTreeMap, BTreeSet};

use plainsong_proto::qos::EntityKind;

use super::error::{Place, QosProviderError, suggestion};
use super::schema::{self, Assignment};
use super::value;
use super::xml::Element;

type Result<T> = std::result::Result<T, QosProviderError>;

/// A QoS profile.
pub(super) struct Profile {
    /// `library::profile`.
    pub(super) name: String,
    pub(super) library: String,
    pub(super) base: Option<Reference>,
    pub(super) is_default: bool,
    pub(super) entries: Vec<Entry>,
    /// Places of the entries for any topic, by kind of entity.
    pub(super) for_any_topic: BTreeMap<u8, usize>,
    pub(super) place: Place,
}

/// The QoS of one kind of entity in a profile.
pub(super) struct Entry {
    pub(super) kind: EntityKind,
    pub(super) topic_filter: Option<String>,
    pub(super) base: Option<Reference>,
    pub(super) assignments: Vec<Assignment>,
}

/// A `base_name`.
pub(super) struct Reference {
    pub(super) name: String,
    pub(super) place: Place,
}

/// The elements for the QoS of each kind of entity.
const ENTITIES: [(&str, EntityKind); 6] = [
    ("domain_participant_qos", EntityKind::Participant),
    ("topic_qos", EntityKind::Topic),
    ("publisher_qos", EntityKind::Publisher),
    ("subscriber_qos", EntityKind::Subscriber),
    ("datawriter_qos", EntityKind::Writer),
    ("datareader_qos", EntityKind::Reader),
];

/// The other building blocks of a system (§8.1), which hold no profiles.
const OTHER_BLOCKS: [&str; 4] =
    ["types", "domain_library", "domain_participant_library", "application_library"];

/// Octets of a name or of a topic filter.
const NAME_BYTES_MAX: usize = 255;

/// All profiles of a document.
pub(super) fn profiles(root: &Element) -> Result<Vec<Profile>> {
    refuse_dialects(root)?;
    let mut profiles = Vec::new();
    let outcome = match root.name.as_str() {
        "qos_library" => library(root, &mut profiles),
        "dds" => system(root, &mut profiles),
        _ => Err(unknown_root(root)),
    };
    outcome.map_err(|error| if is_of_connext(root) { in_connext(&error) } else { error })?;
    Ok(profiles)
}

fn system(root: &Element, profiles: &mut Vec<Profile>) -> Result<()> {
    for child in value::children(root)? {
        match child.name.as_str() {
            "qos_library" => library(child, profiles)?,
            other if OTHER_BLOCKS.contains(&other) => {}
            _ => {
                let known = std::iter::once("qos_library").chain(OTHER_BLOCKS);
                return Err(value::unknown(child, &root.name, known));
            }
        }
    }
    Ok(())
}

fn library(element: &Element, profiles: &mut Vec<Profile>) -> Result<()> {
    value::only_attributes(element, &["name"])?;
    let library = name(element)?;
    for child in value::children(element)? {
        if child.name == "qos_profile" {
            profiles.push(profile(child, &library)?);
        } else if let Some((_, kind)) = ENTITIES.iter().find(|(name, _)| *name == child.name) {
            // Short for a profile with this QoS alone (§7.3.2.4.4).
            profiles.push(Profile {
                name: format!("{library}::{}", name(child)?),
                library: library.clone(),
                base: None,
                is_default: false,
                for_any_topic: BTreeMap::from([(*kind as u8, 0)]),
                entries: vec![entry(child, *kind)?],
                place: child.place.clone(),
            });
        } else {
            let known = std::iter::once("qos_profile").chain(ENTITIES.iter().map(|(name, _)| *name));
            return Err(value::unknown(child, &element.name, known));
        }
    }
    Ok(())
}

fn profile(element: &Element, library: &str) -> Result<Profile> {
    value::only_attributes(element, &["name", "base_name", "is_default_qos"])?;
    let mut entries = Vec::new();
    let mut seen = BTreeSet::new();
    let mut for_any_topic = BTreeMap::new();
    for child in value::children(element)? {
        let Some((_, kind)) = ENTITIES.iter().find(|(name, _)| *name == child.name) else {
            return Err(value::unknown(child, &element.name, ENTITIES.iter().map(|(name, _)| *name)));
        };
        let entry = entry(child, *kind)?;
        if !seen.insert((child.name.as_str(), entry.topic_filter.clone())) {
            let all = "they apply to the same topics: give one another topic_filter, or put them together";
            return Err(child.error(format!("a second <{}> like one before: {all}", child.name)));
        }
        match entry.topic_filter.as_deref() {
            // An explicit filter comes before none, even when both let all pass.
            Some("*") => drop(for_any_topic.insert(*kind as u8, entries.len())),
            None => drop(for_any_topic.entry(*kind as u8).or_insert(entries.len())),
            Some(_) => {}
        }
        entries.push(entry);
    }
    Ok(Profile {
        name: format!("{library}::{}", name(element)?),
        library: library.to_owned(),
        base: base(element)?,
        is_default: value::boolean_attribute(element, "is_default_qos")?,
        entries,
        for_any_topic,
        place: element.place.clone(),
    })
}

fn entry(element: &Element, kind: EntityKind) -> Result<Entry> {
    value::only_attributes(element, &["name", "base_name", "topic_filter"])?;
    let topic_filter = element.attribute("topic_filter").map(str::to_owned);
    if let Some(filter) = &topic_filter {
        if !matches!(kind, EntityKind::Topic | EntityKind::Writer | EntityKind::Reader) {
            let message = format!("<{}> belongs to no topic: topic_filter says nothing here", element.name);
            return Err(element.error(message));
        }
        if filter.is_empty() || filter.len() > NAME_BYTES_MAX {
            return Err(element.error(format!("a topic_filter has 1 to {NAME_BYTES_MAX} octets")));
        }
    }
    let mut assignments = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for child in value::children(element)? {
        let known = schema::elements_of(kind);
        let Some(policy) = known.clone().find(|policy| policy.name == child.name) else {
            return Err(match schema::ELEMENTS.iter().find(|policy| policy.name == child.name) {
                Some(policy) => {
                    let message = format!("<{}> has no {}", element.name, policy.policy);
                    child.error(format!("{message} (DCPS 1.4 §2.2.3): put it where it belongs"))
                }
                None => value::unknown(child, &element.name, known.map(|policy| policy.name)),
            });
        };
        if seen.contains(&policy.name) {
            return Err(value::twice(child));
        }
        seen.push(policy.name);
        schema::policy(policy, child, &mut assignments)?;
    }
    Ok(Entry { kind, topic_filter, base: base(element)?, assignments })
}

/// The attribute `name`, which must be there.
fn name(element: &Element) -> Result<String> {
    let missing = || element.error(format!("<{}> needs an attribute \"name\"", element.name));
    checked(element, "name", element.attribute("name").ok_or_else(missing)?)
}

fn base(element: &Element) -> Result<Option<Reference>> {
    let Some(name) = element.attribute("base_name") else { return Ok(None) };
    let name = checked(element, "base_name", name)?;
    Ok(Some(Reference { name, place: element.place.clone() }))
}

/// The characters of the schema's `elementName`.
fn checked(element: &Element, attribute: &str, name: &str) -> Result<String> {
    let good = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | ':' | '-');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(good) {
        let rule = "letters, digits, '_', '.', '-' and '::'";
        return Err(element.error(format!("{attribute} is made of 1 to {NAME_BYTES_MAX} {rule}")));
    }
    Ok(name.to_owned())
}

/// What is read here, said to who brings something else.
const READ_HERE: &str = "Plainsong reads the profiles of DDS-XML 1.0: <qos_library> with <qos_profile>";

/// Says what a document looks like that is well-formed and of somebody else.
fn refuse_dialects(root: &Element) -> Result<()> {
    let namespace = root.attribute("xmlns").unwrap_or("");
    let inner = root.children.iter().find(|child| root.name == "dds" && child.name == "profiles");
    let of_fast = namespace.contains("eprosima") || inner.is_some() || root.name == "profiles";
    let at = inner.unwrap_or(root);
    if of_fast {
        return Err(at.error(format!("this looks like a Fast DDS profile (<{}>): {READ_HERE}", at.name)));
    }
    if root.name == "CycloneDDS" || namespace.contains("cdds.io") {
        let what = "this looks like the configuration of Cyclone DDS, which has no QoS profiles";
        return Err(root.error(format!("{what}: {READ_HERE}")));
    }
    let outside = root.children.iter().find(|child| root.name == "dds" && child.name == "qos_profile");
    if let Some(profile) = outside {
        let what = "this looks like a profile of DDS4CCM or OpenSplice, outside of any library";
        return Err(profile.error(format!("{what}: put it into a <qos_library>")));
    }
    Ok(())
}

/// RTI Connext writes what DDS-XML says and much more.
fn is_of_connext(root: &Element) -> bool {
    let of_schema = |(name, value): &(String, String)| {
        name.ends_with("SchemaLocation") && (value.contains("rti_dds") || value.contains("rti.com"))
    };
    root.name == "dds" && root.attributes.iter().any(of_schema)
}

fn in_connext(error: &QosProviderError) -> QosProviderError {
    error.continued(" (this looks like a profile of RTI Connext, whose own elements are not read)")
}

fn unknown_root(root: &Element) -> QosProviderError {
    let hint = suggestion(&root.name, ["qos_library", "dds"].into_iter());
    root.error(format!("<{}> holds no QoS profiles{hint}: {READ_HERE}", root.name))
}
