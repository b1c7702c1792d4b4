//! The readers of what is recorded: for each kind of writer of a topic one that matches it, whatever it
//! offers.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use plainsong::Error;
use plainsong::config::Config;
use plainsong::listener::DataReaderListener;
use plainsong::prelude::*;
use plainsong::types::OpaqueType;

use crate::look;

/// Participants that one topic may need at most, because its writers disagree about its type.
const PARTICIPANTS_MAX: usize = 8;

/// Which readers have something.
#[derive(Default)]
pub(crate) struct Arrivals {
    readers: Mutex<BTreeSet<usize>>,
    news: Condvar,
}

impl Arrivals {
    fn add(&self, reader: usize) {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).insert(reader);
        self.news.notify_one();
    }

    /// Those that have something, after so long at most.
    pub(crate) fn wait(&self, patience: Duration) -> BTreeSet<usize> {
        let readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.news.wait_timeout_while(readers, patience, |readers| readers.is_empty());
        let (mut readers, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *readers)
    }
}

struct Listener {
    arrivals: Arc<Arrivals>,
    reader: usize,
}

impl DataReaderListener for Listener {
    fn on_data_available(&self, _: &AnyDataReader) {
        self.arrivals.add(self.reader);
    }
}

/// One reader, and the writers that it is for.
pub(crate) struct Source {
    pub(crate) topic: String,
    type_name: String,
    keyed: bool,
    qos: QosSet,
    pub(crate) reader: AnyDataReader,
    /// What was told of already: SAMPLE_LOST and SAMPLE_REJECTED.
    pub(crate) told: (u64, u64),
}

/// All of them.
pub(crate) struct Sources {
    config: Config,
    domain: u16,
    participants: Vec<DomainParticipant>,
    pub(crate) all: Vec<Source>,
    pub(crate) arrivals: Arc<Arrivals>,
}

impl Sources {
    pub(crate) fn new(config: Config, domain: u16) -> Result<Self, Error> {
        let participants = vec![join(&config, domain)?];
        Ok(Self { config, domain, participants, all: Vec::new(), arrivals: Arc::default() })
    }

    /// The participant that looks around.
    pub(crate) fn participant(&self) -> &DomainParticipant {
        &self.participants[0]
    }

    /// The number of the reader for a writer, which is made if there is none.
    pub(crate) fn for_writer(
        &mut self,
        writer: &PublicationBuiltinTopicData,
        keyed: bool,
    ) -> Result<usize, Error> {
        let qos = matching(&writer.qos());
        let same = |it: &Source| {
            it.topic == writer.topic_name
                && it.type_name == writer.type_name
                && it.keyed == keyed
                && it.qos == qos
        };
        if let Some(known) = self.all.iter().position(same) {
            return Ok(known);
        }
        let topic = self.topic(&writer.topic_name, &writer.type_name, keyed)?;
        let partition = qos.partition.clone();
        let subscriber = topic.participant().create_subscriber(QosSet { partition, ..QosSet::default() })?;
        let reader: AnyDataReader = subscriber.create_reader(&topic, qos.clone())?;
        let number = self.all.len();
        let listener = Listener { arrivals: Arc::clone(&self.arrivals), reader: number };
        reader.set_listener(Some(Arc::new(listener)), StatusKind::DataAvailable);
        self.arrivals.add(number);
        let (topic, type_name) = (writer.topic_name.clone(), writer.type_name.clone());
        self.all.push(Source { topic, type_name, keyed, qos, reader, told: (0, 0) });
        Ok(number)
    }

    /// A participant has one topic of a name, and so one type of it: of another type another has it.
    fn topic(&mut self, name: &str, type_name: &str, keyed: bool) -> Result<AnyTopic, Error> {
        let ty = || Arc::new(OpaqueType::new(type_name, keyed));
        let mut refusal = None;
        for place in 0..PARTICIPANTS_MAX {
            if place == self.participants.len() {
                self.participants.push(join(&self.config, self.domain)?);
            }
            match self.participants[place].create_any_topic(name, ty(), QosSet::default()) {
                Ok(topic) if topic.type_support().is_keyed() == keyed => return Ok(topic),
                Ok(_) => {}
                Err(error) => refusal = Some(error),
            }
        }
        let refused = || Error::Timeout {
            waited_for: plainsong::WaitedFor::Topic,
            what: format!("finding room for one more type of topic '{name}'"),
            timeout: plainsong::time::Duration::from_secs(0),
        };
        Err(refusal.unwrap_or_else(refused))
    }
}

fn join(config: &Config, domain: u16) -> Result<DomainParticipant, Error> {
    look::join(domain, "record", config.clone())
}

/// Samples of one reader that wait to be written, at most: those of a reliable writer wait there, others are
/// counted as rejected.
const SAMPLES_MAX: i32 = 1 << 17;

/// A QoS of a reader that matches a writer and gets all that it has.
fn matching(writer: &QosSet) -> QosSet {
    let mut qos = QosSet::reader().keep_all();
    qos.reliability.kind = writer.reliability.kind;
    qos.durability = writer.durability.min(Durability::TransientLocal);
    qos.ownership = writer.ownership;
    qos.latency_budget = writer.latency_budget;
    qos.data_representation.clone_from(&writer.data_representation);
    qos.partition.clone_from(&writer.partition);
    qos.resource_limits.max_samples = SAMPLES_MAX;
    qos
}
