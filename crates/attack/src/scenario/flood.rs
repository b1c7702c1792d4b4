//! Many of what a peer may have a few of.

use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use plainsong_proto::discovery::builtin::EndpointData;
use plainsong_proto::guid::{EntityId, GuidPrefix};
use plainsong_proto::locator::Locator;
use plainsong_proto::outbox::{DataFragHeader, MessageBuilder};
use plainsong_proto::payload::Payload;
use plainsong_proto::qos::AccessScope;
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::time::Duration as Lease;

use super::Stage;
use crate::attacker::Peer;
use crate::compose;
use crate::lab::{ATTACKER, victim};
use crate::pair::Worker;

/// More than a participant remembers.
const PARTICIPANTS: usize = 1_200;
/// How long a newcomer may take until it has samples.
const DISCOVERY_MAX: Duration = Duration::from_secs(8);
/// How long the writer may take to forget one that left: less than its history takes to be full.
const DEPARTURE_MAX: Duration = Duration::from_millis(1_500);
const SILENT_READERS: u32 = 50;
const GROUP_WRITERS: u32 = 4_000;
/// As many as key numbers of endpoints there are in two kinds would be more; the flood ends before.
const INSTANCES: u32 = 1 << 20;
/// A flood's participant is gone so long after it was heard last.
const LEASE: Lease = Lease::from_secs(3);
const ANNOUNCEMENTS: Duration = Duration::from_millis(500);
/// Datagrams between two looks at the clock and at what has arrived.
const BATCH: u32 = 16;
/// So long after each batch of a flood: 20 MB a second, which leaves the pair a share of its cores.
const PAUSE: Duration = Duration::from_micros(700);
/// Octets of a sample of which a fragment arrives, how many such samples a writer has, and how many writers
/// there are.
const FRAGMENTED_BYTES: usize = 8;
const FRAGMENTED_SAMPLES: i64 = 250;
const FRAGMENTING_WRITERS: u32 = 1_000;

/// A newcomer has samples of the writer in time, and the writer waits for it no longer than it is there.
fn admits_a_newcomer(stage: &mut Stage<'_>) -> Result<(), String> {
    let matched = stage.pair.writer.ask()?.matched;
    let begin = Instant::now();
    let mut newcomer = Worker::start(&stage.lab.newcomer, "reader", stage.run, false)?;
    loop {
        stage.attacker.listen(Duration::from_millis(20));
        if newcomer.ask()?.samples >= 10 {
            stage.notes.push(format!("a newcomer has samples after {} ms", begin.elapsed().as_millis()));
            newcomer.leave()?;
            return forgets_who_left(stage, matched);
        }
        if begin.elapsed() > DISCOVERY_MAX {
            return Err(format!("a newcomer has no samples after {} s", DISCOVERY_MAX.as_secs()));
        }
    }
}

/// The writer has so many readers again: one more, that is gone, would stop it when its history is full.
fn forgets_who_left(stage: &mut Stage<'_>, matched: u64) -> Result<(), String> {
    let end = Instant::now() + DEPARTURE_MAX;
    while stage.pair.writer.ask()?.matched > matched {
        if Instant::now() > end {
            return Err("the writer still waits for a newcomer that left".to_owned());
        }
        stage.attacker.listen(Duration::from_millis(20));
    }
    Ok(())
}

pub(super) fn strangers(stage: &mut Stage<'_>) -> Result<(), String> {
    let mut number = 0;
    let mut admitted = Ok(());
    let half = stage.end - stage.end.saturating_duration_since(Instant::now()) / 2;
    let mut asked = false;
    while !stage.is_over() {
        for _ in 0..BATCH {
            number += 1;
            let last = (number % 250) as u8 + 1;
            let ip = if number % 4 == 0 { ATTACKER } else { victim(last) };
            let [meta, user] = [7_410, 7_411].map(|port| Locator::udp(ip.into(), port));
            let data = compose::participant(stage.attacker.prefix(), meta, user);
            let to = stage.peers[number % 2].clone();
            let datagram = compose::announcement(&data, to.prefix());
            stage.attacker.raw.send(SocketAddrV4::new(ip, 7_410), to.meta, &datagram);
        }
        stage.attacker.listen(Duration::from_millis(4));
        if !asked && Instant::now() > half {
            asked = true;
            admitted = admits_a_newcomer(stage);
        }
    }
    admitted
}

pub(super) fn closed_door(stage: &mut Stage<'_>) -> Result<(), String> {
    let peers = stage.peers.clone();
    let prefixes: Vec<GuidPrefix> = (0..PARTICIPANTS).map(|_| stage.attacker.newcomer(|_| {})).collect();
    for round in 0..3 {
        for prefix in &prefixes {
            if round > 0 && stage.is_over() {
                break;
            }
            peers.iter().for_each(|peer| stage.attacker.announce(*prefix, peer));
            stage.attacker.listen(Duration::from_micros(300));
        }
        stage.attacker.listen(Duration::from_millis(200));
    }
    stage.wait();
    let asked = stage.attacker.identities.values().filter(|it| it.answers > 0).count();
    let writer = peers[0].prefix();
    let matched = stage.attacker.identities.values().filter(|it| it.is_matched_by(writer)).count();
    stage
        .notes
        .push(format!("{asked} of {PARTICIPANTS} were asked for a proof and gave it, {matched} matched"));
    admits_a_newcomer(stage)
}

/// An identity that is there for a moment, and answers nothing any more.
fn passing(stage: &mut Stage<'_>, peers: &[Peer; 2]) -> Result<(GuidPrefix, SocketAddrV4), String> {
    let prefix = stage.attacker.proven(peers, |data| data.lease_duration = LEASE)?;
    let meta = stage.attacker.identities.get(&prefix).and_then(|it| it.meta());
    Ok((prefix, meta.ok_or("an identity without an address")?))
}

/// Sends datagrams as fast as they are built, until the attack is over, `build` says that it has no more, or
/// the lease of who sends them would end.
fn pour(
    stage: &mut Stage<'_>,
    from: SocketAddrV4,
    to: SocketAddrV4,
    prefixes: [GuidPrefix; 2],
    mut build: impl FnMut(&mut MessageBuilder<'_>) -> bool,
) {
    // What ends is to be seen within the time of the attack.
    let left = stage.end.saturating_duration_since(Instant::now());
    let until = stage.end - (left / 2).min(Duration::from_secs(5));
    let [source, destination] = prefixes;
    let (mut goes_on, mut announced) = (true, Instant::now());
    while goes_on && Instant::now() < until {
        for _ in 0..BATCH {
            let datagram = compose::datagram(source, destination, |message| goes_on &= build(message));
            if !datagram.is_empty() {
                stage.attacker.raw.send(from, to, &datagram);
            }
        }
        stage.attacker.listen(PAUSE);
        if announced.elapsed() > ANNOUNCEMENTS
            && let Some(identity) = stage.attacker.identities.get(&source)
        {
            announced = Instant::now();
            // Who has nothing new to say is still heard of.
            let datagram = compose::announcement(&identity.data, GuidPrefix::UNKNOWN);
            stage.attacker.raw.send(from, stage.peers[1].meta, &datagram);
        }
    }
}

/// Until the lease of the flood's participant has ended.
fn outlive(stage: &mut Stage<'_>) {
    let lease = Duration::from_secs(LEASE.0 as u64 / 1_000_000_000) + Duration::from_secs(2);
    let end = Instant::now() + lease;
    while Instant::now() < end {
        stage.attacker.listen(Duration::from_millis(50));
    }
}

pub(super) fn endpoints(stage: &mut Stage<'_>) -> Result<(), String> {
    let peers = stage.peers.clone();
    let (prefix, from) = passing(stage, &peers)?;
    let (reader, writer) = (EntityId::SEDP_PUBLICATIONS_READER, EntityId::SEDP_PUBLICATIONS_WRITER);
    let mut number = 0;
    pour(stage, from, peers[1].meta, [prefix, peers[1].prefix()], |message| {
        let first = number + 1;
        loop {
            let guid = prefix.entity(EntityId::user_writer(number as u32 + 1, true));
            let payload = EndpointData::new(guid, "t".to_owned(), "t".to_owned()).encode();
            if message.remaining() < payload.len() + 128
                || !compose::add(message, reader, writer, number + 1, &[], &payload, false)
            {
                break;
            }
            number += 1;
        }
        // What came before is not to be asked for again.
        let heartbeat = compose::heartbeat(reader, writer, [first, number], first as i32);
        let fits = message.heartbeat(&heartbeat);
        debug_assert!(fits, "room was kept for it");
        number < i64::from(INSTANCES)
    });
    stage.notes.push(format!("{number} endpoints"));
    outlive(stage);
    Ok(())
}

/// A writer of the pair's topic, which its reader knows.
fn user_writer(stage: &mut Stage<'_>, prefix: GuidPrefix, peers: &[Peer; 2]) -> EntityId {
    let writer = EntityId::user_writer(1, true);
    stage.attacker.publish(&compose::endpoint(prefix, writer, Vec::new()), &peers[1]);
    stage.attacker.listen(Duration::from_millis(200));
    writer
}

pub(super) fn instances(stage: &mut Stage<'_>) -> Result<(), String> {
    let peers = stage.peers.clone();
    let (prefix, from) = passing(stage, &peers)?;
    let writer = user_writer(stage, prefix, &peers);
    let mut number = 0;
    let reader = peers[1].endpoint.entity;
    pour(stage, from, peers[1].user, [prefix, peers[1].prefix()], |message| {
        let first = number + 1;
        loop {
            let payload = compose::sample(1_000 + number as u32);
            if message.remaining() < payload.len() + 128
                || !compose::add(message, reader, writer, number + 1, &[], &payload, false)
            {
                break;
            }
            number += 1;
        }
        let fits = message.heartbeat(&compose::heartbeat(reader, writer, [first, number], first as i32));
        debug_assert!(fits, "room was kept for it");
        number < i64::from(INSTANCES)
    });
    stage.notes.push(format!("{number} instances"));
    outlive(stage);
    Ok(())
}

pub(super) fn fragments(stage: &mut Stage<'_>) -> Result<(), String> {
    let peers = stage.peers.clone();
    let (prefix, from) = passing(stage, &peers)?;
    let writer = |key: u32| EntityId::user_writer(key + 1, true);
    for key in 0..FRAGMENTING_WRITERS {
        stage.attacker.publish(&compose::endpoint(prefix, writer(key), Vec::new()), &peers[1]);
    }
    stage.attacker.listen(Duration::from_millis(200));
    let sample = Payload::from_vec(vec![0; FRAGMENTED_BYTES]);
    let (mut key, mut number, mut count) = (0, 1, 0_u64);
    let reader = peers[1].endpoint.entity;
    pour(stage, from, peers[1].user, [prefix, peers[1].prefix()], |message| {
        loop {
            let header = DataFragHeader {
                reader,
                writer: writer(key),
                sequence_number: SequenceNumber(number),
                first_fragment: 1,
                fragments: 1,
                fragment_bytes: 2,
                inline_qos: &[],
                key_only: false,
            };
            if !message.data_frag(&header, &sample) {
                return true;
            }
            count += 1;
            // One of each sample, so that none is ever complete.
            number += 1;
            if number > FRAGMENTED_SAMPLES {
                (number, key) = (1, (key + 1) % FRAGMENTING_WRITERS);
            }
        }
    });
    stage.notes.push(format!("{count} fragments"));
    outlive(stage);
    Ok(())
}

pub(super) fn group_writers(stage: &mut Stage<'_>) -> Result<(), String> {
    let peers = stage.peers.clone();
    let (prefix, _) = passing(stage, &peers)?;
    let writer = |key: u32| {
        let mut data = compose::endpoint(prefix, EntityId::user_writer(key + 1, true), Vec::new());
        data.group = EntityId::with_kind(1, 0x08);
        data.qos.presentation.access_scope = AccessScope::Group;
        data.qos.presentation.ordered_access = true;
        data
    };
    for key in 0..GROUP_WRITERS {
        stage.attacker.publish(&writer(key), &peers[1]);
        if key % 500 == 0 {
            stage.attacker.announce(prefix, &peers[1]);
        }
    }
    stage.attacker.listen(Duration::from_millis(500));
    for key in 0..GROUP_WRITERS / 4 {
        stage.attacker.withdraw(writer(key).guid, &peers[1]);
    }
    outlive(stage);
    stage.wait();
    Ok(())
}

pub(super) fn silent_readers(stage: &mut Stage<'_>) -> Result<(), String> {
    let peers = stage.peers.clone();
    let prefix = stage.attacker.proven(&peers, |_| {})?;
    for key in 0..SILENT_READERS {
        let reader = EntityId::user_reader(key + 1, true);
        stage.attacker.publish(&compose::endpoint(prefix, reader, Vec::new()), &peers[0]);
    }
    // Longer than the writer's history takes to be full.
    stage.end = stage.end.max(Instant::now() + Duration::from_secs(5));
    stage.wait();
    Ok(())
}

/// Asks again and again for as many samples as an ACKNACK can name.
fn storm(
    stage: &mut Stage<'_>,
    reader: plainsong_proto::guid::Guid,
    from: SocketAddrV4,
) -> Result<(), String> {
    let to = stage.peers[0].clone();
    let mut count = 1_000_000;
    while !stage.is_over() {
        let written = stage.pair.writer.ask()?.samples as i64;
        for _ in 0..100 {
            count += 1;
            let base = (written - 250).max(1);
            let acknack = compose::acknack(reader.entity, to.endpoint.entity, base, 256, count);
            let datagram = compose::datagram(reader.prefix, to.prefix(), |message| {
                let fits = message.acknack(&acknack);
                debug_assert!(fits, "it is alone");
            });
            stage.attacker.raw.send(from, to.user, &datagram);
            stage.attacker.listen(Duration::from_micros(500));
        }
    }
    Ok(())
}

pub(super) fn nack_storm(stage: &mut Stage<'_>) -> Result<(), String> {
    let peers = stage.peers.clone();
    let prefix = stage.attacker.proven(&peers, |_| {})?;
    let reader = EntityId::user_reader(1, true);
    stage.attacker.publish(&compose::endpoint(prefix, reader, Vec::new()), &peers[0]);
    stage.attacker.listen(Duration::from_millis(300));
    let from = stage.attacker.identities.get(&prefix).and_then(|it| it.meta());
    storm(stage, prefix.entity(reader), from.ok_or("an identity without an address")?)
}

pub(super) fn nack_storm_as_peer(stage: &mut Stage<'_>) -> Result<(), String> {
    let reader = stage.peers[1].clone();
    storm(stage, reader.endpoint, reader.user)
}
