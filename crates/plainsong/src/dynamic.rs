//! Topics whose type no program here was compiled with: found by their name, with the type that others tell
//! of (XTypes 1.3 §7.6.3), and read and written as values that are known at run time.
//!
//! ```no_run
//! use plainsong::dynamic::FittingQos;
//! use plainsong::prelude::*;
//!
//! # fn main() -> plainsong::Result<()> {
//! let participant = DomainParticipant::new(0)?;
//! let topic = participant.find_any_topic("Temperature", Duration::from_secs(5))?;
//! let qos = FittingQos::of_reader(&participant.look_up_topic("Temperature")?);
//! let subscriber = participant.create_subscriber(qos.group)?;
//! let reader = subscriber.create_reader(&topic, qos.endpoint)?;
//! for sample in reader.take_data()? {
//!     println!("{:?}", sample.data.get("celsius"));
//! }
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use plainsong_proto::cdr::XcdrVersion;
pub use plainsong_proto::discovery::{ToldType, WhyUntold};
use plainsong_proto::guid::Guid;
use plainsong_proto::malformed::Malformed;
use plainsong_proto::qos::{Durability, QosSet};
use plainsong_proto::reader::{Access, CachedSample};
use plainsong_proto::sample_info::SampleInfo;
use plainsong_proto::time::Duration;
use plainsong_proto::type_support::{DynamicData, DynamicType};

use crate::base::clock;
use crate::data_reader::AnyDataReader;
use crate::error::{Error, PreconditionNotMet, Result, WaitedFor};
use crate::participant::DomainParticipant;
use crate::read_options::ReadOptions;
use crate::sample::{Store, settle};
use crate::topic::AnyTopic;

/// How often discovery is looked at while waiting for a topic.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(20);

/// A writer or reader of another participant, and what is known of its type.
#[derive(Clone, Debug)]
pub struct DiscoveredEndpoint {
    /// Its GUID.
    pub guid: Guid,
    /// The registered name of its type.
    pub type_name: String,
    /// Its policies, and those of its publisher or subscriber.
    pub qos: QosSet,
    /// Its type, if it is known.
    pub told: ToldType,
    /// Why it is not, where it is not.
    pub why_untold: Option<WhyUntold>,
}

impl DiscoveredEndpoint {
    /// Whether it writes; otherwise it reads.
    #[must_use]
    pub const fn is_writer(&self) -> bool {
        self.guid.entity.is_writer()
    }

    /// Its type.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub fn dynamic_type(&self) -> std::result::Result<DynamicType, String> {
        let name = &self.type_name;
        let why = match &self.told {
            ToldType::Known(description) => {
                let made = DynamicType::new(name, Arc::new((**description).clone()));
                return made.map_err(|error| format!("its type '{name}' cannot be used: {error}"));
            }
            ToldType::Awaited => format!("its participant is being asked for the type '{name}'"),
            ToldType::Untold => match self.why_untold {
                Some(WhyUntold::NoService) => format!(
                    "its announcement has only the hash of the type '{name}', and its participant has no TypeLookup service"
                ),
                Some(WhyUntold::NotAnswered) => {
                    format!("its participant did not answer when asked for the type '{name}'")
                }
                Some(WhyUntold::NotTold) | None => format!(
                    "its announcement names the type '{name}' and does not describe it (it has no TypeInformation)"
                ),
            },
        };
        Err(why)
    }
}

impl DomainParticipant {
    /// The writers and readers that others have of a topic, writers first. Participants are asked for types
    /// that are not known yet: look again for the answer.
    ///
    /// # Errors
    /// [`Error::NotEnabled`].
    pub fn look_up_topic(&self, name: &str) -> Result<Vec<DiscoveredEndpoint>> {
        let slot = self.inner.slot()?;
        let mut found = slot.control(|control, now, out| {
            let all = control.remote_endpoints().filter(|it| it.topic == name);
            let known: Vec<_> = all.map(|it| (it.guid, it.type_name.to_owned(), it.qos.clone())).collect();
            let asked = known.into_iter().map(|(guid, type_name, qos)| {
                let told = control.told_type(now, guid, out);
                let why_untold = (told == ToldType::Untold).then(|| control.why_untold(guid));
                DiscoveredEndpoint { guid, type_name, qos, told, why_untold }
            });
            asked.collect::<Vec<_>>()
        });
        found.sort_by_key(|endpoint| (!endpoint.is_writer(), endpoint.guid));
        Ok(found)
    }

    /// The topic of this name, with the type that others have: of the first writer whose type is known, else
    /// of the first reader. Waits for at most `timeout` until somebody has it and has told what its type is.
    ///
    /// # Errors
    /// [`Error::Timeout`] when nobody has it, or nobody told its type: it says who and why not.
    /// [`Error::PreconditionNotMet`] when it has another type here.
    pub fn find_any_topic(&self, name: &str, timeout: impl Into<Duration>) -> Result<AnyTopic> {
        let timeout = timeout.into();
        let deadline = clock::deadline(timeout);
        loop {
            let endpoints = self.look_up_topic(name)?;
            if let Some(ty) = endpoints.iter().find_map(|endpoint| endpoint.dynamic_type().ok()) {
                return self.create_any_topic(name, Arc::new(ty), QosSet::default());
            }
            let left = deadline.map_or(LOOK_AGAIN, |deadline| clock::until(deadline).min(LOOK_AGAIN));
            if left.is_zero() {
                let what = format!("finding topic '{name}' and its type ({})", why_unknown(&endpoints));
                return Err(Error::Timeout { waited_for: WaitedFor::Topic, what, timeout });
            }
            std::thread::sleep(left);
        }
    }
}

/// Why nobody of them tells what the type is.
fn why_unknown(endpoints: &[DiscoveredEndpoint]) -> String {
    let reasons: Vec<String> = endpoints
        .iter()
        .filter_map(|endpoint| Some((endpoint, endpoint.dynamic_type().err()?)))
        .map(|(endpoint, why)| {
            let what = if endpoint.is_writer() { "writer" } else { "reader" };
            format!("{what} {}: {why}", endpoint.guid)
        })
        .collect();
    if reasons.is_empty() { "nobody else has it".to_owned() } else { reasons.join("; ") }
}

/// QoS with which a new endpoint matches those that others have, as far as one can match them all.
#[derive(Clone, Debug, Default)]
pub struct FittingQos {
    /// Of the writer or reader.
    pub endpoint: QosSet,
    /// Of its publisher or subscriber: the partitions of all, each once.
    pub group: QosSet,
}

impl FittingQos {
    /// Of a reader: reliable where all writers are, with what they keep for late joiners where all do.
    #[must_use]
    pub fn of_reader(endpoints: &[DiscoveredEndpoint]) -> Self {
        let writers = || endpoints.iter().filter(|it| it.is_writer()).map(|it| &it.qos);
        let mut qos = QosSet::reader();
        if writers().next().is_some() && writers().all(QosSet::is_reliable) {
            qos = qos.reliable();
        }
        let kept = writers().map(|it| it.durability).min().unwrap_or_default();
        qos.durability = kept.min(Durability::TransientLocal);
        qos.latency_budget = writers().map(|it| it.latency_budget).max().unwrap_or_default();
        qos.ownership = writers().next().map(|it| it.ownership).unwrap_or_default();
        qos.data_representation = vec![XcdrVersion::Xcdr1, XcdrVersion::Xcdr2];
        Self { endpoint: qos, group: partitioned(writers()) }
    }

    /// Of a writer: all that the readers request, in a representation that all of them take; without readers,
    /// as the other writers are.
    #[must_use]
    pub fn of_writer(endpoints: &[DiscoveredEndpoint]) -> Self {
        let readers: Vec<&QosSet> = endpoints.iter().filter(|it| !it.is_writer()).map(|it| &it.qos).collect();
        let writers: Vec<&QosSet> = endpoints.iter().filter(|it| it.is_writer()).map(|it| &it.qos).collect();
        let models = if readers.is_empty() { &writers } else { &readers };
        let mut qos = QosSet::writer();
        let kept = models.iter().map(|it| it.durability).max().unwrap_or_default();
        qos.durability = kept.min(Durability::TransientLocal);
        qos.deadline = readers.iter().map(|it| it.deadline).min().unwrap_or(qos.deadline);
        qos.ownership = models.first().map(|it| it.ownership).unwrap_or_default();
        qos.destination_order = models.iter().map(|it| it.destination_order).max().unwrap_or_default();
        qos.liveliness.kind = readers.iter().map(|it| it.liveliness.kind).max().unwrap_or_default();
        let lease = readers.iter().map(|it| it.liveliness.lease_duration).min();
        qos.liveliness.lease_duration = lease.unwrap_or(qos.liveliness.lease_duration);
        qos.data_representation = vec![representation(&readers, &writers)];
        let mut group = partitioned(models.iter().copied());
        let scope = readers.iter().map(|it| it.presentation.access_scope).max();
        group.presentation.access_scope = scope.unwrap_or_default();
        group.presentation.coherent_access = readers.iter().any(|it| it.presentation.coherent_access);
        group.presentation.ordered_access = readers.iter().any(|it| it.presentation.ordered_access);
        Self { endpoint: qos, group }
    }
}

/// What all readers take: the older version, unless one of them takes the newer one alone; without readers
/// what writers have.
fn representation(readers: &[&QosSet], writers: &[&QosSet]) -> XcdrVersion {
    let takes = |qos: &&QosSet, version| match qos.data_representation.as_slice() {
        [] => version == XcdrVersion::Xcdr1,
        list => list.contains(&version),
    };
    let of_writers = writers.first().and_then(|it| it.data_representation.first()).copied();
    let liked = of_writers.unwrap_or(XcdrVersion::Xcdr1);
    let all_take = |version| readers.iter().all(|it| takes(it, version));
    [liked, XcdrVersion::Xcdr1, XcdrVersion::Xcdr2].into_iter().find(|it| all_take(*it)).unwrap_or(liked)
}

fn partitioned<'a>(all: impl Iterator<Item = &'a QosSet>) -> QosSet {
    let default = [String::new()];
    let mut names = BTreeSet::new();
    for qos in all {
        let own = if qos.partition.is_empty() { &default[..] } else { qos.partition.as_slice() };
        names.extend(own.iter().cloned());
    }
    let mut group = QosSet::default();
    if names.iter().any(|name| !name.is_empty()) {
        group.partition = names.into_iter().collect();
    }
    group
}

/// One sample of a type that is known at run time, or a change of its instance's state.
#[derive(Clone, Debug)]
pub struct DynamicSample {
    /// The value where `info.valid_data` says so; otherwise the key members alone are set.
    pub data: DynamicData,
    /// Octets of its payload, encapsulation header included.
    pub bytes: usize,
    /// Facts about it.
    pub info: SampleInfo,
}

/// Where samples go as values.
struct DataStore<'a> {
    ty: &'a DynamicType,
    samples: Vec<DynamicSample>,
}

impl DataStore<'_> {
    fn read(&self, sample: &CachedSample) -> std::result::Result<DynamicData, Malformed> {
        let payload = sample.payload.as_slice();
        if sample.info.valid_data {
            return self.ty.read_data(payload);
        }
        // Nothing is there where the key is known by its hash alone.
        if payload.is_empty() { Ok(self.ty.new_data()) } else { self.ty.read_key_data(payload, true) }
    }
}

impl Store for DataStore<'_> {
    const VALUE_BYTES: usize = 0;

    fn count(&self) -> usize {
        self.samples.len()
    }

    fn store(&mut self, samples: &[CachedSample]) -> Vec<(usize, Malformed)> {
        let mut undecodable = Vec::new();
        for (at, sample) in samples.iter().enumerate() {
            match self.read(sample) {
                Ok(data) => {
                    let bytes = sample.payload.len();
                    self.samples.push(DynamicSample { data, bytes, info: sample.info });
                }
                Err(reason) => undecodable.push((at, reason)),
            }
        }
        undecodable
    }

    fn settle(&mut self, start: usize, grouped: bool) {
        let samples = self.samples.get_mut(start..).unwrap_or_default();
        settle(samples, |sample| sample.info.instance_handle, |sample| &mut sample.info, grouped);
    }
}

/// Samples as values, of a topic with a [`DynamicType`].
impl AnyDataReader {
    /// Removes and returns all samples as values.
    ///
    /// # Errors
    /// [`Error::PreconditionNotMet`] when the type is no [`DynamicType`], [`Error::NotEnabled`].
    pub fn take_data(&self) -> Result<Vec<DynamicSample>> {
        self.take_data_with(&ReadOptions::new())
    }

    /// Removes and returns what `options` choose, as values; ORDER BY of a query does not count.
    ///
    /// # Errors
    /// Those of [`Self::take_data`] and of
    /// [`DataReader::take_with`](crate::data_reader::DataReader::take_with).
    pub fn take_data_with(&self, options: &ReadOptions) -> Result<Vec<DynamicSample>> {
        let ty = self.0.ty.as_dynamic().ok_or_else(|| not_dynamic(self.topic_name(), self.0.ty.name()))?;
        let mut samples = DataStore { ty, samples: Vec::new() };
        self.0.collect_with(Access::Take, options, &mut samples)?;
        Ok(samples.samples)
    }
}

/// What needs a [`DynamicType`] found another type.
pub(crate) fn not_dynamic(topic: &str, type_name: &str) -> Error {
    let (topic, type_name) = (topic.to_owned(), type_name.to_owned());
    PreconditionNotMet::NotDynamic { topic, type_name }.into()
}
