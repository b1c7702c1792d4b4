//! Who runs a participant: what the tools of products show beside it, in the properties that they read.
//!
//! Host, process and id are told by the names of Cyclone DDS to everyone, by those of Fast DDS and RTI from
//! when one of theirs was heard, since each announcement carries them. What the application says under the
//! same name stands.

use crate::qos::Property;

/// The process of a participant, for people. What is empty is not told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessData {
    /// Name of its host.
    pub host: String,
    /// Name of its user.
    pub user: String,
    /// Path of its executable.
    pub executable: String,
    /// Its id on its host; 0 when unknown.
    pub id: u32,
}

/// Products whose tools read names of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Product {
    FastDds,
    Rti,
}

/// The products among the participants heard so far: names that nobody reads are not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Audience {
    fast_dds: bool,
    rti: bool,
}

impl Audience {
    /// A participant of this vendor was heard; whether its product reads names that were not told so far.
    pub(super) const fn hears(&mut self, vendor: [u8; 2]) -> bool {
        let before = match vendor {
            [0x01, 0x0f] => &mut self.fast_dds,
            [0x01, 0x01 | 0x0a] => &mut self.rti,
            _ => return false,
        };
        !core::mem::replace(before, true)
    }

    const fn includes(self, product: Product) -> bool {
        match product {
            Product::FastDds => self.fast_dds,
            Product::Rti => self.rti,
        }
    }
}

type Value = fn(&ProcessData) -> String;

/// The names, and who reads them: those of Cyclone DDS, which are short, go to everyone.
const NAMES: [(&str, Option<Product>, Value); 10] = [
    ("__Hostname", None, |it| it.host.clone()),
    ("__ProcessName", None, |it| it.name().to_owned()),
    ("__Pid", None, ProcessData::id_text),
    ("fastdds.physical_data.host", Some(Product::FastDds), |it| it.host.clone()),
    ("fastdds.physical_data.user", Some(Product::FastDds), |it| it.user.clone()),
    ("fastdds.physical_data.process", Some(Product::FastDds), ProcessData::id_text),
    ("dds.sys_info.hostname", Some(Product::Rti), |it| it.host.clone()),
    ("dds.sys_info.username", Some(Product::Rti), |it| it.user.clone()),
    ("dds.sys_info.process_id", Some(Product::Rti), ProcessData::id_text),
    ("dds.sys_info.executable_filepath", Some(Product::Rti), |it| it.executable.clone()),
];

impl ProcessData {
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
