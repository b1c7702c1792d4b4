//! Small systems in which strangers of discovery meet what chance seldom brings together: a participant that
//! stands still while an impostor proves to be it (rule R8 of this implementation), and a crowd with matched
//! endpoints and endless leases that falls silent (rule R3).

use plainsong_proto::discovery::LocalEndpoint;
use plainsong_proto::guid::{EntityId, Guid, GuidPrefix};
use plainsong_proto::qos::{Durability, QosSet};
use plainsong_proto::time::Duration;

use super::intruders::{ADDRESSES, AT_EACH, PARTICIPANTS_MAX};
use super::{Topic, World, Write, prefix};
use crate::ledger::{Acquaintance, Taking};
use crate::network::{Host, INTRUDER};
use crate::node::{NodeOptions, State};
use crate::rng::Rng;

/// What happens in a small system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// A participant stands still for less than its lease. Meanwhile an impostor proves to be it, and goes on
    /// claiming to be it afterwards.
    StandStill,
    /// Many come, have endpoints that are matched, and leases without end; then all of them are dead, and
    /// somebody genuine comes.
    DeadCrowd,
}

/// A writer and a reader on two hosts; the process and the place in the ledger of each.
#[derive(Clone, Copy, Debug)]
struct Pair {
    writes: usize,
    reads: usize,
    writer: usize,
    reader: usize,
}

/// One seed of so many, in percent, has each of the scenes.
const OFTEN: u64 = 2;
/// Time in which those who can hear each other find each other.
const SETTLED: Duration = Duration::from_secs(3);
/// Time in which what was written arrives.
const ARRIVAL: Duration = Duration::from_millis(300);
/// Between two samples.
const PAUSE: Duration = Duration::from_millis(50);
/// Time in which who stands still is asked, does not answer, and counts as the one that answers elsewhere.
const OVERTAKEN: Duration = Duration::from_millis(1_200);
/// Beyond one period of its announcements: time in which who ran on is at its place again.
const RETURN: Duration = Duration::from_secs(1);
/// Time in which the impostor claims and is not believed.
const CLAIMS: Duration = Duration::from_secs(6);
/// Time in which a crowd proves its addresses and announces its endpoints.
const CROWDING: Duration = Duration::from_secs(2);
/// Time after which participants count as silent (`discovery/database.rs`), and more.
const SILENCE: Duration = Duration::from_secs(31);
/// Time in which a newcomer finds a place: the dead are asked for a second, and it announces itself again.
const ADMISSION: Duration = Duration::from_secs(4);

impl Scene {
    /// The scene of a seed, if it has one.
    #[must_use]
    pub fn draw(seed: u64) -> Option<Self> {
        match Rng::new(!seed.rotate_left(29)).below(100) {
            0..OFTEN => Some(Self::StandStill),
            drawn if drawn < 2 * OFTEN => Some(Self::DeadCrowd),
            _ => None,
        }
    }
}

impl World {
    /// Everything of a scene until faults are over.
    pub fn play(&mut self, scene: Scene, rng: &mut Rng) {
        match scene {
            Scene::StandStill => self.stand_still(rng),
            Scene::DeadCrowd => self.let_a_crowd_die(rng),
        }
    }

    fn begin_pair(&mut self, rng: &mut Rng, lease_periods: std::ops::Range<u64>) -> (Pair, NodeOptions) {
        let announce_period = Duration::from_millis(rng.between(300, 1_000) as i64);
        let lease = announce_period.0 * rng.between(lease_periods.start, lease_periods.end) as i64;
        let lease_duration = Duration(lease.max(Duration::from_secs(3).0));
        let options = NodeOptions { announce_period, lease_duration, ..NodeOptions::on(0) };
        let (writes, reads) =
            (self.start(options.clone()), self.start(NodeOptions { host: Host(1), ..options.clone() }));
        let durability = if rng.chance(50) { Durability::Volatile } else { Durability::TransientLocal };
        let (topic, qos) = (topic(), QosSet::default().reliable().keep_all().durability(durability));
        let writer = self.add_writer(writes, 0, &topic, &qos);
        let reader = self.add_reader(reads, 0, &topic, &qos, Taking::Promptly);
        self.run_for(SETTLED);
        (Pair { writes, reads, writer, reader }, options)
    }

    /// The writer writes again and again, unless its process stands still.
    fn write_for(&mut self, pair: Pair, lasting: Duration) {
        for _ in 0..lasting.0 / PAUSE.0 {
            if self.nodes[pair.writes].state == State::Running && self.can_write(pair.writer) {
                self.write(pair.writer, Write::data(1, 60));
            }
            self.run_for(PAUSE);
        }
    }

    fn stand_still(&mut self, rng: &mut Rng) {
        let (pair, options) = self.begin_pair(rng, 20..40);
        if rng.chance(50) {
            let host = Host(rng.below(3) as u8);
            self.start(NodeOptions { host, ..options.clone() });
        }
        self.write_for(pair, Duration::from_millis(rng.between(0, 1_000) as i64));
        let (victim, still) =
            if rng.chance(50) { (pair.writes, pair.reads) } else { (pair.reads, pair.writes) };
        let named = self.nodes[still].members[0].prefix;
        let lasting_max = options.lease_duration.0 / 1_000_000 - 1_000;
        let lasting = Duration::from_millis(rng.between(1_500, 6_000.min(lasting_max as u64)) as i64);
        let (other, qos) = (Topic::keyless("other"), QosSet::default().reliable());
        self.add_reader(still, 0, &other, &qos, Taking::Promptly);
        self.run_for(ARRIVAL);
        self.pause(still, lasting);
        self.take_place(victim, named, rng.chance(50));
        self.write_for(pair, OVERTAKEN);
        // The impostor hears of it, and acknowledges it; who stands still does not.
        if rng.chance(50) {
            self.add_writer(victim, 0, &other, &qos);
        }
        if rng.chance(50) {
            self.change_user_data(pair, victim);
        }
        self.write_for(pair, Duration(lasting.0 - OVERTAKEN.0));
        let again = options.announce_period.0 + RETURN.0;
        self.write_for(pair, Duration(again));
        self.is_overtaken = false;
        self.note_return(pair, victim, still);
        self.write_for(pair, CLAIMS);
        self.note_return(pair, victim, still);
    }

    fn change_user_data(&mut self, pair: Pair, node: usize) {
        let user_data = b"news".to_vec();
        if node == pair.writes {
            let qos = self.ledger.writers[pair.writer].endpoint.qos.clone();
            self.set_writer_qos(pair.writer, &QosSet { user_data, ..qos });
        } else {
            let qos = self.ledger.readers[pair.reader].endpoint.qos.clone();
            self.set_reader_qos(pair.reader, &QosSet { user_data, ..qos });
        }
    }

    /// An impostor claims to be a participant, and does not cease to.
    fn take_place(&mut self, victim: usize, named: GuidPrefix, invents: bool) {
        self.intruded_at = Some(self.at);
        self.is_overtaken = true;
        self.note(victim, 28, || format!("hears somebody else claim to be {named:?}"));
        let intruder = self.enter_as(victim, named);
        if invents {
            let guid = named.entity(EntityId::user_writer(99, false));
            self.add_strange_endpoint(intruder, guid, QosSet::default().reliable());
        }
    }

    /// Whether who stood still is at its place for `victim`, matched, and receives or is received.
    fn note_return(&mut self, pair: Pair, victim: usize, still: usize) {
        let found = Acquaintance { at: self.at, ..self.acquaintance(pair, victim, still) };
        self.ledger.returns.push(found);
    }

    /// What `one` knows of `other`, and whether what the writer writes now is received.
    fn acquaintance(&mut self, pair: Pair, one: usize, other: usize) -> Acquaintance {
        let before = self.ledger.writers[pair.writer].changes.len();
        if self.can_write(pair.writer) {
            self.write(pair.writer, Write::data(1, 60));
        }
        self.run_for(ARRIVAL);
        let changes = &self.ledger.writers[pair.writer].changes;
        let written = changes.get(before).is_some_and(|_| {
            let (sent, received) = (changes.len(), self.received(pair.reader));
            received.last().is_some_and(|last| *last as usize + 1 >= sent)
        });
        let (host, prefix) = (self.nodes[other].options.host, self.nodes[other].members[0].prefix);
        let is_there = self.nodes[one].members[0].participant.look(|participant| {
            let remotes = participant.remote_participants();
            let mut known = remotes.filter(|remote| remote.guid.prefix == prefix && remote.proven);
            known.any(|remote| remote.meta_unicast.iter().all(|it| Host::of(it) == Some(host)))
        });
        let writer = &self.ledger.writers[pair.writer].endpoint;
        let reader = &self.ledger.readers[pair.reader].endpoint;
        let is_matched =
            writer.matched().any(|it| it == reader.guid) && reader.matched().any(|it| it == writer.guid);
        Acquaintance { at: self.at, of: prefix, is_there, is_matched, receives: written }
    }

    fn let_a_crowd_die(&mut self, rng: &mut Rng) {
        self.limits.participants_max = PARTICIPANTS_MAX;
        let (pair, options) = self.begin_pair(rng, 3..5);
        self.add_reader(pair.writes, 0, &topic(), &QosSet::reader(), Taking::Promptly);
        self.intruded_at = Some(self.at);
        self.note(pair.writes, 29, || "meets a crowd with matched endpoints".to_owned());
        for address in 0..ADDRESSES {
            for place in 0..AT_EACH {
                self.come_with_endpoint(pair.writes, address, place, rng.chance(50));
            }
        }
        self.write_for(pair, CROWDING);
        self.intruders.iter_mut().for_each(|it| it.is_gone = true);
        self.run_for(Duration(SILENCE.0 + rng.below(3_000_000_000) as i64));
        let newcomer = self.start(NodeOptions { host: Host(100), ..options });
        let qos = QosSet::default().reliable().keep_all();
        let reader = self.add_reader(newcomer, 0, &topic(), &qos, Taking::Promptly);
        self.write_for(pair, ADMISSION);
        for (reads, reader) in [(newcomer, reader), (pair.reads, pair.reader)] {
            let found = self.acquaintance(Pair { reads, reader, ..pair }, pair.writes, reads);
            self.ledger.arrivals.push(found);
        }
    }

    /// One of a crowd, with a reader or a writer.
    fn come_with_endpoint(&mut self, victim: usize, address: u8, place: usize, reads: bool) {
        let host = Host(INTRUDER.0 + address);
        let port = 7_410 + 2 * place as u16;
        let guid = prefix(host, place, victim);
        let at = (guid, host.locator(port), &[host.locator(port + 1)][..]);
        let intruder = self.enter(at, victim, Duration::INFINITE);
        let (entity, qos) = if reads {
            (EntityId::user_reader(1, false), QosSet::reader().best_effort())
        } else {
            (EntityId::user_writer(1, false), QosSet::default().best_effort())
        };
        self.add_strange_endpoint(intruder, guid.entity(entity), qos);
    }

    fn add_strange_endpoint(&mut self, intruder: usize, guid: Guid, qos: QosSet) {
        let endpoint = LocalEndpoint {
            guid,
            topic: topic().name,
            type_name: "Sample".to_owned(),
            keyed: false,
            qos,
            group: EntityId::UNKNOWN,
            content_filter: None,
            type_description: None,
        };
        self.with_intruder(intruder, |participant, now, out| {
            let _ = participant.add_endpoint(now, endpoint, out);
        });
    }
}

fn topic() -> Topic {
    Topic::keyless("scene")
}
