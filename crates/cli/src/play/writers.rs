//! The writers of a performance: one for each that was recorded, with its QoS and type.

use std::collections::BTreeMap;
use std::sync::Arc;

use plainsong::Error;
use plainsong::config::Config;
use plainsong::prelude::*;
use plainsong::types::OpaqueType;
use plainsong_recording::{Event, EventKind, RecordedWriter};

use super::Options;
use super::survey::Found;
use crate::look;

/// Participants that one topic may need at most, because its writers disagree about its type.
const PARTICIPANTS_MAX: usize = 8;

/// One writer.
pub(super) struct Player {
    recorded: Arc<RecordedWriter>,
    writer: AnyDataWriter,
    ty: Arc<dyn TypeSupport>,
    /// Keys of instances, by the key hashes that stand for them in some endings.
    keys: BTreeMap<[u8; 16], Vec<u8>>,
}

/// Keys that are kept of one writer.
const KEYS_MAX: usize = 1 << 16;

/// All of them.
pub(super) struct Writers {
    config: Config,
    domain: u16,
    participants: Vec<DomainParticipant>,
    players: BTreeMap<u16, Player>,
}

impl Writers {
    pub(super) fn new(options: &Options) -> Result<Self, Error> {
        // Who plays is no member of anything.
        let config = look::config()?;
        let participants = vec![join(&config, options.domain)?];
        Ok(Self { config, domain: options.domain, participants, players: BTreeMap::new() })
    }

    /// Makes those that are not there.
    pub(super) fn complete(&mut self, options: &Options, found: &Found) -> Result<(), Error> {
        for (id, recorded) in &found.writers {
            if !self.players.contains_key(id) {
                let player = self.player(options, recorded)?;
                self.players.insert(*id, player);
            }
        }
        Ok(())
    }

    fn player(&mut self, options: &Options, recorded: &Arc<RecordedWriter>) -> Result<Player, Error> {
        let ty = type_of(recorded);
        let name = options.renamed(&recorded.topic);
        let topic = self.topic(&name, &ty, &recorded.qos)?;
        let of_publisher = QosSet {
            partition: recorded.qos.partition.clone(),
            presentation: recorded.qos.presentation,
            group_data: recorded.qos.group_data.clone(),
            ..QosSet::default()
        };
        let publisher = topic.participant().create_publisher(of_publisher)?;
        let mut qos = recorded.qos.clone();
        // What was disposed with its writer is recorded as such: nothing else is.
        qos.writer_data_lifecycle.autodispose_unregistered_instances = false;
        let writer: AnyDataWriter = publisher.create_writer(&topic, qos)?;
        Ok(Player { recorded: Arc::clone(recorded), writer, ty, keys: BTreeMap::new() })
    }

    /// A participant has one topic of a name, and so one type of it: of another type another has it.
    fn topic(&mut self, name: &str, ty: &Arc<dyn TypeSupport>, qos: &QosSet) -> Result<AnyTopic, Error> {
        let of_topic = QosSet { topic_data: qos.topic_data.clone(), ..QosSet::default() };
        let mut place = 0;
        loop {
            if place == self.participants.len() {
                self.participants.push(join(&self.config, self.domain)?);
            }
            match self.participants[place].create_any_topic(name, Arc::clone(ty), of_topic.clone()) {
                Ok(topic) => return Ok(topic),
                Err(error) if place + 1 >= PARTICIPANTS_MAX => return Err(error),
                Err(Error::PreconditionNotMet(_)) => place += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Names of topics that nobody reads.
    pub(super) fn unread(&self) -> Result<Vec<String>, Error> {
        let mut read = BTreeMap::new();
        for player in self.players.values() {
            let is_read = !player.writer.matched_subscriptions()?.is_empty();
            *read.entry(player.writer.topic_name().to_owned()).or_insert(false) |= is_read;
        }
        Ok(read.into_iter().filter(|(_, is_read)| !is_read).map(|(name, _)| name).collect())
    }

    /// Whether each topic has a reader that every writer of it knows that could match it.
    pub(super) fn get(&mut self, id: u16) -> Option<&mut Player> {
        self.players.get_mut(&id)
    }

    /// Whose recorded writer this is.
    fn id_of(&self, writer: Guid) -> Option<u16> {
        self.players.iter().find(|(_, player)| player.recorded.guid == writer).map(|(id, _)| *id)
    }

    /// Ends an instance, or a writer. Whether there was something to do; else why that cannot be.
    pub(super) fn end(&mut self, event: &Event, options: &WriteOptions) -> Result<bool, String> {
        let Some(id) = self.id_of(event.writer) else { return Ok(false) };
        if event.kind == EventKind::Departure {
            if let Some(player) = self.players.remove(&id) {
                player.settle();
            }
            return Ok(false);
        }
        let Some(player) = self.players.get(&id) else { return Ok(false) };
        if player.ty.is_opaque() {
            let recorded = &player.recorded;
            return Err(format!(
                "topic '{}': an instance cannot be ended, for writer {} did not tell its type '{}', and so what its key is",
                recorded.topic, recorded.guid, recorded.type_name
            ));
        }
        player.end(event, options).map_err(|error| error.to_string())?;
        Ok(true)
    }

    /// Waits until readers have everything.
    pub(super) fn settle(&self) {
        self.players.values().for_each(Player::settle);
    }
}

impl Player {
    pub(super) fn write(&mut self, payload: &[u8], options: &WriteOptions) -> Result<(), Error> {
        self.writer.write_serialized_with(payload, options)?;
        if self.recorded.keyed && !self.ty.is_opaque() && self.keys.len() < KEYS_MAX {
            self.note_key(payload);
        }
        Ok(())
    }

    /// What a key hash that comes without key will mean.
    fn note_key(&mut self, payload: &[u8]) {
        let Ok(hash) = self.ty.key_hash(payload, false, &mut |_| {}) else { return };
        if self.keys.contains_key(&hash.0) {
            return;
        }
        let mut key = Vec::new();
        let representation = (XcdrVersion::Xcdr1, plainsong::cdr::Endianness::Little);
        if self.ty.serialize_key(payload, false, representation, &mut key).is_ok() {
            self.keys.insert(hash.0, key);
        }
    }

    fn end(&self, event: &Event, options: &WriteOptions) -> Result<(), Error> {
        let hash = <[u8; 16]>::try_from(event.key_hash.as_slice());
        let known = hash.ok().and_then(|hash| self.keys.get(&hash));
        let key = if event.key.is_empty() { known.map_or(&[][..], Vec::as_slice) } else { &event.key };
        let (disposes, unregisters) = match event.kind {
            EventKind::Dispose => (true, false),
            EventKind::Unregister => (false, true),
            EventKind::DisposeUnregister => (true, true),
            EventKind::Departure => return Ok(()),
        };
        if disposes {
            self.writer.dispose_serialized_with(key, options)?;
        }
        if unregisters {
            // It may have been registered before the recording began.
            self.writer.register_instance_serialized(key)?;
            self.writer.unregister_instance_serialized_with(key, options)?;
        }
        Ok(())
    }

    /// Waits until its readers have everything.
    fn settle(&self) {
        const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
        if self.recorded.qos.reliability.kind == ReliabilityKind::Reliable {
            // Who does not acknowledge in that time is not waited for.
            let _ = self.writer.wait_for_acknowledgments(PATIENCE);
        }
    }
}

/// The type of a recorded writer: one that knows keys, where its TypeObjects tell them.
fn type_of(recorded: &RecordedWriter) -> Arc<dyn TypeSupport> {
    let name = &recorded.type_name;
    let opaque = OpaqueType::new(name, recorded.keyed);
    let Some(description) = &recorded.ty else { return Arc::new(opaque) };
    match DynamicType::new(name, Arc::clone(description)) {
        Ok(ty) if ty.is_keyed() == recorded.keyed => Arc::new(ty),
        Ok(_) => Arc::new(opaque),
        Err(error) => {
            eprintln!("type '{name}' cannot be read, so its samples are written unseen: {error}");
            Arc::new(opaque.with_description(Arc::clone(description)))
        }
    }
}

fn join(config: &Config, domain: u16) -> Result<DomainParticipant, Error> {
    let factory = DomainParticipantFactory::with_config(config.clone());
    factory.create_participant(domain, "plainsong play", QosSet::default())
}
