//! The QoS of the entities: of a profile in XML or of this application, and what the options say on top of
//! it.

use plainsong::Result;
use plainsong::prelude::*;
use plainsong::qos_provider::QosProviderError;

use super::options::{ConsistencyOption, DurabilityOption, FinalState, Options, Scope};

/// The QoS of all entities.
pub(super) struct Qos<'a> {
    options: &'a Options,
    profiles: Option<QosProvider>,
}

impl<'a> Qos<'a> {
    /// Reads the profiles, if a file is named.
    pub(super) fn new(options: &'a Options) -> Result<Self> {
        let profiles = options.qos_file.as_ref().map(QosProvider::from_file).transpose()?;
        Ok(Self { options, profiles })
    }

    /// Endpoints are enabled when all are there: readers of a group show nothing without each other.
    pub(super) fn participant(&self) -> Result<QosSet> {
        let mut qos = self.base(QosSet::default, QosProvider::participant_qos)?;
        qos.entity_factory.autoenable_created_entities = false;
        Ok(qos)
    }

    pub(super) fn topic(&self, name: &str) -> Result<QosSet> {
        self.base(QosSet::default, |profiles, profile| profiles.topic_qos_for_topic(profile, name))
    }

    /// PARTITION and PRESENTATION, for publisher or subscriber.
    pub(super) fn group(&self) -> Result<QosSet> {
        let options = self.options;
        let of_profile =
            if options.publish { QosProvider::publisher_qos } else { QosProvider::subscriber_qos };
        let mut qos = self.base(QosSet::default, of_profile)?;
        if let Some(partition) = &options.partition {
            qos.partition = vec![partition.clone()];
        }
        qos.presentation.coherent_access |= options.coherent;
        qos.presentation.ordered_access |= options.ordered;
        if options.coherent || options.ordered {
            qos.presentation.access_scope = match options.access_scope {
                None | Some(Scope::I) => AccessScope::Instance,
                Some(Scope::T) => AccessScope::Topic,
                Some(Scope::G) => AccessScope::Group,
            };
        }
        // Enabling the group is what begins everything.
        qos.entity_factory.autoenable_created_entities = true;
        Ok(qos)
    }

    pub(super) fn writer(&self, topic: &str) -> Result<QosSet> {
        let options = self.options;
        let own = || QosSet::writer().reliable().representation(XcdrVersion::Xcdr1);
        let mut qos =
            self.endpoint(self.base(own, |profiles, profile| profiles.writer_qos_for_topic(profile, topic))?);
        if options.strength >= 0 {
            qos.ownership_strength = options.strength;
        }
        if options.lifespan_ms > 0 {
            qos.lifespan = Duration::from_millis(options.lifespan_ms);
        }
        if options.final_instance_state == Some(FinalState::U) {
            qos.writer_data_lifecycle.autodispose_unregistered_instances = false;
        }
        Ok(qos)
    }

    pub(super) fn reader(&self, topic: &str) -> Result<QosSet> {
        let own = || QosSet::reader().reliable().representation(XcdrVersion::Xcdr1);
        let mut qos =
            self.endpoint(self.base(own, |profiles, profile| profiles.reader_qos_for_topic(profile, topic))?);
        if self.options.time_filter_ms > 0 {
            qos.time_based_filter = Duration::from_millis(self.options.time_filter_ms);
        }
        Ok(qos)
    }

    /// The QoS that the options change: of the profile, or else `own`.
    fn base(
        &self,
        own: impl FnOnce() -> QosSet,
        of_profile: impl FnOnce(&QosProvider, &str) -> std::result::Result<QosSet, QosProviderError>,
    ) -> Result<QosSet> {
        let Some(profiles) = &self.profiles else { return Ok(own()) };
        Ok(of_profile(profiles, self.options.qos_profile.as_deref().unwrap_or_default())?)
    }

    fn endpoint(&self, mut qos: QosSet) -> QosSet {
        let options = self.options;
        if options.best_effort {
            qos = qos.best_effort();
        } else if options.reliable {
            qos = qos.reliable();
        }
        if let Some(durability) = options.durability {
            qos.durability = match durability {
                DurabilityOption::V => Durability::Volatile,
                DurabilityOption::L => Durability::TransientLocal,
                DurabilityOption::T => Durability::Transient,
                DurabilityOption::P => Durability::Persistent,
            };
        }
        qos = match options.history_depth {
            None => qos,
            Some(0) => qos.keep_all(),
            Some(depth) => qos.keep_last(depth),
        };
        match options.representation {
            None => {}
            Some(1) => qos = qos.representation(XcdrVersion::Xcdr1),
            Some(_) => qos = qos.representation(XcdrVersion::Xcdr2),
        }
        if options.strength >= 0 {
            qos.ownership = Ownership::Exclusive;
        }
        if let Some(consistency) = options.consistency {
            qos = qos.consistency(match consistency {
                ConsistencyOption::Eventual => ConsistencyKind::Eventual,
                ConsistencyOption::Atomic => ConsistencyKind::Atomic,
            });
        }
        if options.deadline_ms > 0 {
            qos.deadline = Duration::from_millis(options.deadline_ms);
        }
        qos
    }
}
