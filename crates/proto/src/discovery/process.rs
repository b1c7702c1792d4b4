//! Who runs a participant: what the tools of products show beside it, in the properties that they read.
//!
//! Host, process and id are told by the names of Cyclone DDS to everyone, by those of Fast DDS and RTI from
//! when one of theirs was heard, since each announcement carries them. What the application says under the
//! same name stands.

use std::fmt;

use crate::qos::Property;
use crate::vendor::{self, ProcessNames};

/// The process of a participant, for people. What is empty is not told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ProcessData {
    /// Name of its host.
    pub host: String,
    /// Name of its user.
    pub user: String,
    /// Path of its executable, or its name alone.
    pub executable: String,
    /// Its id on its host; 0 when unknown.
    pub id: u32,
}

/// The products among the participants heard so far: names that nobody reads are not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Audience {
    fast_dds: bool,
    rti: bool,
}

impl Audience {
    /// A participant of this vendor was heard; whether its product reads names that were not told so far.
    pub(super) fn hears(&mut self, vendor: [u8; 2]) -> bool {
        let before = match vendor::process_names(vendor) {
            Some(ProcessNames::FastDds) => &mut self.fast_dds,
            Some(ProcessNames::Rti) => &mut self.rti,
            None => return false,
        };
        !core::mem::replace(before, true)
    }

    const fn includes(self, product: ProcessNames) -> bool {
        match product {
            ProcessNames::FastDds => self.fast_dds,
            ProcessNames::Rti => self.rti,
        }
    }
}

type Value = fn(&ProcessData) -> String;

/// The names, and who reads them: those of Cyclone DDS, which are short, go to everyone.
const NAMES: [(&str, Option<ProcessNames>, Value); 10] = [
    ("__Hostname", None, |it| it.host.clone()),
    ("__ProcessName", None, |it| it.name().to_owned()),
    ("__Pid", None, ProcessData::id_text),
    ("fastdds.physical_data.host", Some(ProcessNames::FastDds), |it| it.host.clone()),
    ("fastdds.physical_data.user", Some(ProcessNames::FastDds), |it| it.user.clone()),
    ("fastdds.physical_data.process", Some(ProcessNames::FastDds), ProcessData::id_text),
    ("dds.sys_info.hostname", Some(ProcessNames::Rti), |it| it.host.clone()),
    ("dds.sys_info.username", Some(ProcessNames::Rti), |it| it.user.clone()),
    ("dds.sys_info.process_id", Some(ProcessNames::Rti), ProcessData::id_text),
    ("dds.sys_info.executable_filepath", Some(ProcessNames::Rti), |it| it.executable.clone()),
];

impl ProcessData {
    /// What a participant of any product announced of its process. Texts are as long as properties may be.
    #[must_use]
    pub fn of_properties(properties: &[Property]) -> Self {
        let first = |names: [&str; 3]| {
            let named = |name: &str| properties.iter().find(|it| !name.is_empty() && it.name == name);
            names.into_iter().find_map(named).map_or("", |property| property.value.as_str())
        };
        Self {
            host: first(["__Hostname", "fastdds.physical_data.host", "dds.sys_info.hostname"]).to_owned(),
            user: first(["fastdds.physical_data.user", "dds.sys_info.username", ""]).to_owned(),
            executable: first(["dds.sys_info.executable_filepath", "__ProcessName", ""]).to_owned(),
            id: first(["__Pid", "fastdds.physical_data.process", "dds.sys_info.process_id"])
                .parse()
                .unwrap_or(0),
        }
    }

    /// The last part of the path of its executable.
    fn name(&self) -> &str {
        self.executable.rsplit(['/', '\\']).next().unwrap_or_default()
    }

    fn id_text(&self) -> String {
        if self.id == 0 { String::new() } else { self.id.to_string() }
    }

    /// Adds what this audience reads and the application does not say itself.
    pub(super) fn add_to(&self, properties: &mut Vec<Property>, audience: Audience) {
        for (name, reader, value) in NAMES {
            let value = value(self);
            let is_read = reader.is_none_or(|product| audience.includes(product));
            if is_read && !value.is_empty() && properties.iter().all(|property| property.name != name) {
                properties.push(Property { name: name.to_owned(), value, propagate: true });
            }
        }
    }
}

/// `process 4711 "planner" on host "robot"`; nothing where nothing is known.
impl fmt::Display for ProcessData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, name, host) = (self.id_text(), self.name(), &self.host);
        let mut separator = "";
        if !id.is_empty() || !name.is_empty() {
            f.write_str("process")?;
            separator = " ";
        }
        if !id.is_empty() {
            write!(f, " {id}")?;
        }
        if !name.is_empty() {
            write!(f, " {name:?}")?;
        }
        if host.is_empty() { Ok(()) } else { write!(f, "{separator}on host {host:?}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process() -> ProcessData {
        let (host, user) = ("robot".to_owned(), "operator".to_owned());
        ProcessData { host, user, executable: "/opt/arm/bin/planner".into(), id: 4_711 }
    }

    fn announced(audience: Audience) -> Vec<(String, String)> {
        let mut properties = Vec::new();
        process().add_to(&mut properties, audience);
        properties.into_iter().map(|property| (property.name, property.value)).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    const EVERYONE: [(&str, &str); 3] =
        [("__Hostname", "robot"), ("__ProcessName", "planner"), ("__Pid", "4711")];

    #[test]
    fn what_a_process_announces_is_read_back_and_shown() {
        let mut properties = Vec::new();
        process().add_to(&mut properties, Audience::default());
        let read = ProcessData::of_properties(&properties);
        assert_eq!((read.host.as_str(), read.executable.as_str(), read.id), ("robot", "planner", 4_711));
        assert_eq!(read.to_string(), "process 4711 \"planner\" on host \"robot\"");
        let audience = Audience { fast_dds: true, rti: true };
        properties.clear();
        process().add_to(&mut properties, audience);
        properties.retain(|property| !property.name.starts_with("__"));
        assert_eq!(ProcessData::of_properties(&properties), process());
        assert_eq!(ProcessData::of_properties(&[]), ProcessData::default());
        assert_eq!(ProcessData::default().to_string(), "");
    }

    #[test]
    fn each_product_finds_host_process_and_id_under_its_own_names() {
        let mut audience = Audience::default();
        assert_eq!(announced(audience), pairs(&EVERYONE));
        assert!(!audience.hears([0x01, 0x10]), "Cyclone DDS reads what everyone is told");
        assert!(audience.hears([0x01, 0x0f]));
        assert!(!audience.hears([0x01, 0x0f]), "told already");
        let fast_dds = [
            ("fastdds.physical_data.host", "robot"),
            ("fastdds.physical_data.user", "operator"),
            ("fastdds.physical_data.process", "4711"),
        ];
        assert_eq!(announced(audience), pairs(&[EVERYONE, fast_dds].concat()));
        let mut audience = Audience::default();
        assert!(audience.hears([0x01, 0x01]));
        let rti = [
            ("dds.sys_info.hostname", "robot"),
            ("dds.sys_info.username", "operator"),
            ("dds.sys_info.process_id", "4711"),
            ("dds.sys_info.executable_filepath", "/opt/arm/bin/planner"),
        ];
        assert_eq!(announced(audience), pairs(&[&EVERYONE[..], &rti].concat()));
    }

    #[test]
    fn what_the_application_says_stands_and_what_is_unknown_is_not_told() {
        let own = Property { name: "__Hostname".into(), value: "none of yours".into(), propagate: true };
        let mut properties = vec![own.clone()];
        process().add_to(&mut properties, Audience::default());
        assert_eq!(properties.len(), 3);
        assert_eq!(properties.first(), Some(&own));
        let mut properties = Vec::new();
        ProcessData::default().add_to(&mut properties, Audience::default());
        assert_eq!(properties, []);
    }
}
