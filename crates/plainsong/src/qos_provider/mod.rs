//! QoS profiles from XML: the building block QoS of DDS-XML 1.0 (§7.3.2).
//!
//! ```
//! use plainsong::qos_provider::QosProvider;
//!
//! # fn main() -> plainsong::Result<()> {
//! let profiles = QosProvider::from_text(
//!     r#"<qos_library name="Robot">
//!          <qos_profile name="State">
//!            <datawriter_qos><history><depth>8</depth></history></datawriter_qos>
//!            <datawriter_qos topic_filter="Log*">
//!              <history><kind>KEEP_ALL_HISTORY_QOS</kind></history>
//!            </datawriter_qos>
//!          </qos_profile>
//!        </qos_library>"#,
//! )?;
//! assert_eq!(profiles.writer_qos_for_topic("Robot::State", "Pose")?.history.depth, 8);
//! # Ok(())
//! # }
//! ```
//!
//! A profile says what differs from its base, field by field, and the first base from the standard's
//! defaults. Lists are replaced as a whole, except that properties add to inherited ones. A QoS with its own
//! `base_name` inherits from that profile instead of its profile's base. Forward references are allowed.
//! Where a profile has several QoS of one kind, those with a `topic_filter` are tried in order, then the one
//! without.
//!
//! `is_default_qos` of a profile is known from elsewhere than the standard: its profile is found as `""`.

mod document;
mod error;
mod schema;
#[cfg(test)]
mod tests;
mod value;
mod xml;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use plainsong_proto::qos::rxo::pattern_matches;
use plainsong_proto::qos::{self, EntityKind, QosSet};

pub use error::QosProviderError;

use document::{Entry, Profile};
use error::{Place, suggestion};
use schema::Assignment;

type Result<T> = std::result::Result<T, QosProviderError>;

/// Profiles that inherit in a row.
const CHAIN_MAX: usize = 32;
/// Octets that are copied to check the QoS of all profiles: each is checked with all that it inherits.
const CHECKED_BYTES_MAX: usize = 16 << 20;

/// QoS profiles, by library and name.
pub struct QosProvider {
    /// By full name, `library::profile`.
    profiles: BTreeMap<String, Profile>,
    default: Option<String>,
}

impl QosProvider {
    /// The profiles of a file.
    ///
    /// # Errors
    /// [`QosProviderError`] names file, line and column, and what would be right.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_files(&[path])
    }

    /// The profiles of several files, which may refer to each other.
    ///
    /// # Errors
    /// As [`Self::from_file`].
    pub fn from_files(paths: &[impl AsRef<Path>]) -> Result<Self> {
        let mut provider = Self { profiles: BTreeMap::new(), default: None };
        for path in paths {
            let source: Arc<str> = path.as_ref().display().to_string().into();
            let text = read(path.as_ref(), &source)?;
            provider.add(&source, &text)?;
        }
        provider.check()
    }

    /// The profiles of an XML text.
    ///
    /// # Errors
    /// As [`Self::from_file`].
    pub fn from_text(text: &str) -> Result<Self> {
        let mut provider = Self { profiles: BTreeMap::new(), default: None };
        provider.add(&"text".into(), text)?;
        provider.check()
    }

    /// Full names of all profiles, in order.
    pub fn profiles(&self) -> impl Iterator<Item = &str> + Clone + '_ {
        self.profiles.keys().map(String::as_str)
    }

    /// The profile that says of itself to be the default; it is also found as `""`.
    #[must_use]
    pub fn default_profile(&self) -> Option<&str> {
        self.default.as_deref()
    }

    /// QoS of a participant.
    ///
    /// # Errors
    /// [`QosProviderError`] for an unknown profile.
    pub fn participant_qos(&self, profile: &str) -> Result<QosSet> {
        self.resolve(profile, EntityKind::Participant, None)
    }

    /// QoS of a publisher.
    ///
    /// # Errors
    /// As [`Self::participant_qos`].
    pub fn publisher_qos(&self, profile: &str) -> Result<QosSet> {
        self.resolve(profile, EntityKind::Publisher, None)
    }

    /// QoS of a subscriber.
    ///
    /// # Errors
    /// As [`Self::participant_qos`].
    pub fn subscriber_qos(&self, profile: &str) -> Result<QosSet> {
        self.resolve(profile, EntityKind::Subscriber, None)
    }

    /// QoS of a topic, whatever its name.
    ///
    /// # Errors
    /// As [`Self::participant_qos`].
    pub fn topic_qos(&self, profile: &str) -> Result<QosSet> {
        self.resolve(profile, EntityKind::Topic, None)
    }

    /// QoS of the topic with that name.
    ///
    /// # Errors
    /// As [`Self::writer_qos_for_topic`].
    pub fn topic_qos_for_topic(&self, profile: &str, topic: &str) -> Result<QosSet> {
        self.resolve(profile, EntityKind::Topic, Some(topic))
    }

    /// QoS of a writer, whatever its topic.
    ///
    /// # Errors
    /// As [`Self::participant_qos`].
    pub fn writer_qos(&self, profile: &str) -> Result<QosSet> {
        self.resolve(profile, EntityKind::Writer, None)
    }

    /// QoS of a writer of the topic with that name.
    ///
    /// # Errors
    /// [`QosProviderError`] for an unknown profile, or when what filters choose in a profile and its bases
    /// does not fit together.
    pub fn writer_qos_for_topic(&self, profile: &str, topic: &str) -> Result<QosSet> {
        self.resolve(profile, EntityKind::Writer, Some(topic))
    }

    /// QoS of a reader, whatever its topic.
    ///
    /// # Errors
    /// As [`Self::participant_qos`].
    pub fn reader_qos(&self, profile: &str) -> Result<QosSet> {
        self.resolve(profile, EntityKind::Reader, None)
    }

    /// QoS of a reader of the topic with that name.
    ///
    /// # Errors
    /// As [`Self::writer_qos_for_topic`].
    pub fn reader_qos_for_topic(&self, profile: &str, topic: &str) -> Result<QosSet> {
        self.resolve(profile, EntityKind::Reader, Some(topic))
    }

    fn add(&mut self, source: &Arc<str>, text: &str) -> Result<()> {
        for profile in document::profiles(&xml::parse(source, text)?)? {
            if let Some(known) = self.profiles.get(&profile.name) {
                let message = format!("the profile {} exists already, at {}", profile.name, known.place);
                return Err(QosProviderError::at(&profile.place, message));
            }
            if profile.is_default {
                if let Some(known) = &self.default {
                    let message = format!("{known} is the default already: there is one at most");
                    return Err(QosProviderError::at(&profile.place, message));
                }
                self.default = Some(profile.name.clone());
            }
            self.profiles.insert(profile.name.clone(), profile);
        }
        Ok(())
    }

    /// Finds all bases, refuses cycles, and checks that all QoS are consistent.
    fn check(self) -> Result<Self> {
        let mut depths = BTreeMap::new();
        for profile in self.profiles.values() {
            self.depth(profile, &mut Vec::new(), &mut depths)?;
        }
        let mut checked = 0;
        for profile in self.profiles.values() {
            for entry in &profile.entries {
                let assignments = self.chain(profile, Some(entry), entry.kind, None)?;
                checked += assignments.iter().map(|assignment| assignment.weight).sum::<usize>();
                if checked > CHECKED_BYTES_MAX {
                    let message = format!(
                        "too much is inherited: up to here all QoS together take more than {CHECKED_BYTES_MAX} \
                         octets; let fewer profiles inherit large values"
                    );
                    return Err(QosProviderError::at(&profile.place, message));
                }
                self.settle(assignments, entry.kind)?;
            }
        }
        Ok(self)
    }

    /// How many profiles inherit in a row here; `path` leads from the first to this one.
    fn depth<'a>(
        &'a self,
        profile: &'a Profile,
        path: &mut Vec<&'a str>,
        depths: &mut BTreeMap<&'a str, usize>,
    ) -> Result<usize> {
        if let Some(known) = depths.get(profile.name.as_str()) {
            return Ok(*known);
        }
        path.push(&profile.name);
        let mut deepest = 0;
        for base in profile.entries.iter().filter_map(|entry| entry.base.as_ref()).chain(&profile.base) {
            let of = self.base(profile, base)?;
            if let Some(start) = path.iter().position(|name| *name == of.name) {
                let cycle = path.get(start..).unwrap_or(&[]).join(" -> ");
                let message = format!("a profile inherits from itself: {cycle} -> {}", of.name);
                return Err(QosProviderError::at(&base.place, message));
            }
            if path.len() >= CHAIN_MAX {
                let message = format!("more than {CHAIN_MAX} profiles inherit in a row");
                return Err(QosProviderError::at(&base.place, message));
            }
            deepest = deepest.max(self.depth(of, path, depths)?);
        }
        path.pop();
        if deepest >= CHAIN_MAX {
            let message = format!("more than {CHAIN_MAX} profiles inherit in a row");
            return Err(QosProviderError::at(&profile.place, message));
        }
        depths.insert(&profile.name, deepest + 1);
        Ok(deepest + 1)
    }

    /// The profile a `base_name` means: one of the same library, or a full name.
    fn base(&self, profile: &Profile, base: &document::Reference) -> Result<&Profile> {
        let full = base.name.strip_prefix("::").unwrap_or(&base.name);
        let near = format!("{}::{full}", profile.library);
        self.profiles.get(&near).or_else(|| self.profiles.get(full)).ok_or_else(|| {
            let hint = suggestion(full, self.profiles());
            QosProviderError::at(&base.place, format!("there is no profile {full}{hint}"))
        })
    }

    fn resolve(&self, name: &str, kind: EntityKind, topic: Option<&str>) -> Result<QosSet> {
        let name = match (name, &self.default) {
            ("", Some(default)) => default,
            ("", None) => {
                return Err(QosProviderError::anywhere("no profile says is_default_qos: name a profile"));
            }
            (name, _) => name,
        };
        let profile = self.profiles.get(name).ok_or_else(|| {
            let hint = suggestion(name, self.profiles());
            QosProviderError::anywhere(format!("there is no profile {name}{hint}"))
        })?;
        self.settle(self.chain(profile, profile.choose(kind, topic), kind, topic)?, kind)
    }

    /// What applies, base first, when `entry` was chosen in `profile`.
    fn chain<'a>(
        &'a self,
        mut profile: &'a Profile,
        mut entry: Option<&'a Entry>,
        kind: EntityKind,
        topic: Option<&str>,
    ) -> Result<Vec<&'a Assignment>> {
        let mut entries = Vec::new();
        loop {
            entries.extend(entry);
            let base = entry.and_then(|entry| entry.base.as_ref()).or(profile.base.as_ref());
            let Some(base) = base else { break };
            profile = self.base(profile, base)?;
            entry = profile.choose(kind, topic);
        }
        Ok(entries.iter().rev().flat_map(|entry| &entry.assignments).collect())
    }

    /// Carries out assignments in order and checks the result.
    fn settle(&self, assignments: Vec<&Assignment>, kind: EntityKind) -> Result<QosSet> {
        let mut qos = match kind {
            EntityKind::Writer => QosSet::writer(),
            EntityKind::Reader => QosSet::reader(),
            _ => QosSet::default(),
        };
        assignments.iter().for_each(|assignment| assignment.apply(&mut qos));
        qos::consistent(&qos, kind).map_err(|error| {
            // What was said last is most probably wrong.
            let of_policy = |it: &&&Assignment| it.policy == error.policy;
            let to_blame = assignments.iter().rev().find(of_policy).or_else(|| assignments.last());
            let place: Option<&Place> = to_blame.map(|assignment| &assignment.place);
            match place {
                Some(place) => QosProviderError::at(place, error.to_string()),
                None => QosProviderError::anywhere(error.to_string()),
            }
        })?;
        Ok(qos)
    }
}

impl Profile {
    /// The QoS of `kind` that applies to a topic, or to any (§7.3.2.4.3).
    fn choose(&self, kind: EntityKind, topic: Option<&str>) -> Option<&Entry> {
        let filtered = topic.and_then(|topic| {
            self.entries.iter().filter(|entry| entry.kind == kind).find(|entry| {
                entry.topic_filter.as_ref().is_some_and(|filter| pattern_matches(filter, topic))
            })
        });
        filtered.or_else(|| self.entries.get(*self.for_any_topic.get(&(kind as u8))?))
    }
}

/// Reads a file that is not too large.
fn read(path: &Path, source: &Arc<str>) -> Result<String> {
    let failed = |error: std::io::Error| QosProviderError::anywhere(format!("{source}: {error}"));
    let mut octets = Vec::new();
    let limit = xml::DOCUMENT_BYTES_MAX as u64 + 1;
    File::open(path).map_err(failed)?.take(limit).read_to_end(&mut octets).map_err(failed)?;
    if octets.len() > xml::DOCUMENT_BYTES_MAX {
        let message = format!("{source}: the file has more than {} octets", xml::DOCUMENT_BYTES_MAX);
        return Err(QosProviderError::anywhere(message));
    }
    String::from_utf8(octets).map_err(|error| {
        let valid =
            String::from_utf8_lossy(error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or(&[]));
        let line = valid.matches('\n').count() as u32 + 1;
        let column = valid.rsplit('\n').next().map_or(0, |last| last.chars().count()) as u32 + 1;
        let place = Place { source: Arc::clone(source), line, column };
        QosProviderError::at(&place, "this is not UTF-8 (DDS-XML 1.0 §7.1.1)")
    })
}
