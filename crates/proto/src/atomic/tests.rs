//! Groups of participants with their votes, over a network in virtual time that loses nothing.

mod founding;
mod pause;
mod refused;
mod transfer;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::atomic::codec::BodyCodec;
use crate::atomic::storage::{Batch, Change, Image};
use crate::atomic::view::Storage;
use crate::atomic::view::Voters;
use crate::atomic::{
    Action, Body, Config, Delivered, Destination, EntryHeader, Group, HistoryKey, MemberId, Message, Phase,
    Refused, Status, VoterId,
};
use crate::guid::{Guid, GuidPrefix};
use crate::malformed::Malformed;
use crate::time::{Duration, Instant};

/// Writer and number of a sample.
type Sample = (u8, u64);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Written(Sample);

impl Body for Written {
    fn octets(&self) -> usize {
        100
    }
    fn digest(&self) -> u64 {
        self.0.1 << 8 | u64::from(self.0.0)
    }
    fn history_key(&self) -> Option<HistoryKey> {
        let writer = Guid { prefix: GuidPrefix([self.0.0; 12]), ..Guid::default() };
        (self.0.1 < NOT_KEPT).then_some(HistoryKey { writer, instance: [0; 16] })
    }
    fn history_depth(&self) -> u32 {
        0
    }
}

/// Samples of this number and more are not kept.
const NOT_KEPT: u64 = 1_000_000;

impl BodyCodec for Written {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.0.0);
        out.extend(self.0.1.to_le_bytes());
    }
    fn decode(octets: &mut &[u8]) -> Result<Self, Malformed> {
        let (taken, rest) = octets.split_first_chunk::<9>().ok_or(Malformed::Truncated)?;
        *octets = rest;
        let (name, number) = taken.split_first_chunk::<1>().ok_or(Malformed::Truncated)?;
        Ok(Self((name[0], u64::from_le_bytes(number.try_into().map_err(|_| Malformed::Truncated)?))))
    }
}

/// What is on the disk of a node.
type Disk = BTreeMap<Vec<u8>, Vec<u8>>;

struct Node {
    group: Group<Written>,
    delivered: Vec<Delivered<Written>>,
    statuses: Vec<Status>,
    missed: u64,
    states: Vec<(u64, Arc<[u8]>)>,
    disk: Disk,
    /// Nothing is written to its disk any more, from the first view on.
    stops_at_view: bool,
    is_stopped: bool,
}

/// Something on its way.
enum Packet {
    Message(Message<Written>),
    Entry(MemberId, EntryHeader, Written),
}

struct World {
    now: Instant,
    nodes: BTreeMap<u8, Node>,
    /// (arrives, number) -> (from, to, what).
    packets: BTreeMap<(Instant, u64), (u8, u8, Packet)>,
    number: u64,
    cut_off: BTreeSet<u8>,
    keeps_history: bool,
    slow: Duration,
    /// Parts of the history that each has sent; of so many one is lost.
    parts: BTreeMap<u8, u64>,
    lost_of: u64,
    storage: Storage,
}

const DELAY: Duration = Duration::from_micros(100);

impl World {
    fn new(keeps_history: bool) -> Self {
        Self {
            now: Instant(1_000_000),
            nodes: BTreeMap::new(),
            packets: BTreeMap::new(),
            number: 0,
            cut_off: BTreeSet::new(),
            keeps_history,
            slow: Duration::INFINITE,
            parts: BTreeMap::new(),
            lost_of: u64::MAX,
            storage: Storage::None,
        }
    }

    fn start(&mut self, name: u8) {
        self.start_with(name, Disk::new());
    }

    /// One with what is on a disk.
    fn start_with(&mut self, name: u8, disk: Disk) {
        let config = Config {
            digest: 1,
            lease: Duration::from_millis(500),
            stuck: Duration::from_secs(2),
            slow: self.slow,
            window_entries: 64,
            window_octets: 1 << 20,
            keeps_history: self.keeps_history,
            history_entries_max: 1 << 20,
            storage: self.storage,
            voters: Voters::Members,
            bootstrap_after: Some(Duration::from_millis(200)),
            instance: self.now.0 + u64::from(name),
        };
        let id = MemberId { prefix: GuidPrefix([name; 12]), nonce: self.now.0 };
        let group = match self.storage {
            Storage::None => Group::new(config, id, self.now),
            _ => Group::restore(config, id, self.now, Image::read(disk.clone()).unwrap()),
        };
        let node = Node {
            group,
            delivered: Vec::new(),
            statuses: Vec::new(),
            disk,
            missed: 0,
            states: Vec::new(),
            stops_at_view: false,
            is_stopped: false,
        };
        self.nodes.insert(name, node);
        self.act(name);
    }

    fn send(&mut self, from: u8, to: u8, packet: Packet) {
        if matches!(packet, Packet::Message(Message::Transfer(_))) {
            let count = self.parts.entry(from).or_default();
            *count += 1;
            if count.is_multiple_of(self.lost_of) {
                return;
            }
        }
        if self.cut_off.contains(&from) == self.cut_off.contains(&to) {
            self.number += 1;
            self.packets.insert((self.now.after(DELAY).unwrap(), self.number), (from, to, packet));
        }
    }

    fn act(&mut self, name: u8) {
        while let Some(action) = self.nodes.get_mut(&name).and_then(|node| node.group.poll()) {
            let others: Vec<u8> = self.nodes.keys().copied().filter(|it| *it != name).collect();
            let voter = |(name, node): (&u8, &Node)| Some((node.group.member()?.voter()?, *name));
            let voters: Vec<(VoterId, u8)> = self.nodes.iter().filter_map(voter).collect();
            let node = self.nodes.get_mut(&name).unwrap();
            match action {
                Action::Send(to, message) => {
                    for other in others {
                        let is_meant = match to {
                            Destination::Group => true,
                            Destination::Member(id) => id.prefix.0[0] == other,
                            Destination::Voter(id) => voters.contains(&(id, other)),
                        };
                        if is_meant {
                            self.send(name, other, Packet::Message(message.clone()));
                        }
                    }
                }
                Action::SendEntry(header, body) => {
                    let id = node.group.member().unwrap().id();
                    others
                        .into_iter()
                        .for_each(|it| self.send(name, it, Packet::Entry(id, header, body.clone())));
                }
                Action::Deliver(entry) => node.delivered.push(entry),
                Action::Status(status) => node.statuses.push(status),
                Action::Missed(count) => node.missed += count,
                Action::State(through, octets) => node.states.push((through, octets)),
                Action::Store(number, change) => {
                    node.is_stopped |= node.stops_at_view && matches!(change, Change::View(..));
                    if node.is_stopped {
                        continue;
                    }
                    let mut batch = Batch::new();
                    change.stage(&mut batch);
                    for (key, value) in batch {
                        match value {
                            Some(value) => node.disk.insert(key, value),
                            None => node.disk.remove(&key),
                        };
                    }
                    node.group.on_stored(self.now, number);
                }
                _ => {}
            }
        }
    }

    fn run(&mut self, duration: Duration) {
        let end = self.now.after(duration).unwrap();
        loop {
            let packet = self.packets.first_key_value().map(|((at, _), _)| *at);
            let timer = self.nodes.values().filter_map(|it| it.group.next_deadline()).min();
            let next = Instant::earliest([packet, timer]);
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.packets.first_entry()
                && entry.key().0 <= self.now
            {
                let (_, to, packet) = entry.remove();
                let Some(node) = self.nodes.get_mut(&to) else { continue };
                match packet {
                    Packet::Message(message) => node.group.on_message(self.now, message),
                    Packet::Entry(from, header, body) => node.group.on_entry(self.now, from, header, body),
                }
                self.act(to);
            }
            for name in self.nodes.keys().copied().collect::<Vec<_>>() {
                let group = &mut self.nodes.get_mut(&name).unwrap().group;
                group.flush(self.now);
                if group.next_deadline().is_some_and(|due| due <= self.now) {
                    group.tick(self.now);
                }
                self.act(name);
            }
        }
        self.now = end;
    }

    fn write(&mut self, name: u8, number: u64) -> Result<(), Refused> {
        let written = self.nodes.get_mut(&name).unwrap().group.write(self.now, Written((name, number)));
        self.act(name);
        written
    }

    fn samples(&self, name: u8) -> Vec<Sample> {
        self.nodes[&name].delivered.iter().map(|it| it.body.0).collect()
    }

    fn phases(&self) -> Vec<(Phase, u64, usize)> {
        let of = |node: &Node| {
            let state = node.group.member().unwrap().state(self.now);
            (state.phase, state.epoch, state.members.len())
        };
        self.nodes.values().map(of).collect()
    }
}

fn three(keeps_history: bool) -> World {
    let mut world = World::new(keeps_history);
    (1..=3).for_each(|name| world.start(name));
    world.run(Duration::from_millis(400));
    assert_eq!(world.phases(), [(Phase::Active, 1, 3); 3]);
    world
}

#[test]
fn all_have_what_all_write_in_one_order() {
    let mut world = three(false);
    for number in 1..=20 {
        (1..=3).for_each(|name| world.write(name, number).unwrap());
        world.run(Duration::from_micros(70));
    }
    world.run(Duration::from_millis(50));
    let first = world.samples(1);
    assert_eq!(first.len(), 60);
    assert_eq!(world.samples(2), first);
    assert_eq!(world.samples(3), first);
    for name in 1..=3 {
        let own: Vec<u64> = first.iter().filter(|it| it.0 == name).map(|it| it.1).collect();
        assert_eq!(own, (1..=20).collect::<Vec<_>>());
    }
}

#[test]
fn a_sample_reaches_two_members_after_one_message_and_three_after_two() {
    let mut world = World::new(false);
    (1..=2).for_each(|name| world.start(name));
    world.run(Duration::from_millis(400));
    world.write(1, 1).unwrap();
    world.run(DELAY);
    assert_eq!(world.samples(2), [(1, 1)]);
    let mut world = three(false);
    world.write(1, 1).unwrap();
    world.run(DELAY);
    assert!(world.samples(2).is_empty());
    world.run(DELAY);
    assert_eq!(world.samples(2), [(1, 1)]);
    assert_eq!(world.samples(1), [(1, 1)]);
}

#[test]
fn others_go_on_without_one_that_dies() {
    let mut world = three(false);
    world.write(1, 1).unwrap();
    world.run(Duration::from_millis(10));
    world.nodes.remove(&1);
    world.write(2, 1).unwrap();
    world.run(Duration::from_millis(10));
    assert_eq!(world.samples(2), [(1, 1)]);
    world.run(Duration::from_millis(800));
    assert_eq!(world.samples(2), [(1, 1), (2, 1)]);
    assert_eq!(world.samples(3), world.samples(2));
    assert_eq!(world.phases(), [(Phase::Active, 2, 2); 2]);
}

#[test]
fn who_was_cut_off_comes_back_and_loses_nothing_that_it_wrote() {
    let mut world = three(true);
    world.write(1, 1).unwrap();
    world.run(Duration::from_millis(10));
    world.cut_off.insert(3);
    world.write(3, 1).unwrap();
    world.write(2, 1).unwrap();
    world.run(Duration::from_secs(2));
    assert_eq!(world.samples(1), [(1, 1), (2, 1)]);
    assert_eq!(world.samples(3), [(1, 1)]);
    world.cut_off.clear();
    world.run(Duration::from_secs(2));
    assert_eq!(world.samples(1), [(1, 1), (2, 1), (3, 1)]);
    assert_eq!(world.samples(2), world.samples(1));
    assert_eq!(world.samples(3), world.samples(1));
    assert!(world.nodes[&3].statuses.contains(&Status::Evicted));
}

#[test]
fn who_joins_later_has_the_agreed_history() {
    let mut world = three(true);
    for number in 1..=50 {
        world.write(1, number).unwrap();
        world.write(2, number).unwrap();
        world.run(Duration::from_millis(1));
    }
    world.start(4);
    for number in 51..=600 {
        let _ = world.write(1, number);
        world.run(Duration::from_millis(1));
    }
    world.run(Duration::from_secs(1));
    assert_eq!(world.samples(4), world.samples(1));
    assert_eq!(world.phases()[3].0, Phase::Active);
    assert!(world.nodes[&4].delivered.is_sorted_by_key(|it| it.position));
}

#[test]
fn who_leaves_is_gone_at_once() {
    let mut world = three(false);
    world.write(3, 1).unwrap();
    world.nodes.get_mut(&3).unwrap().group.leave(world.now);
    world.act(3);
    world.run(Duration::from_millis(100));
    assert_eq!(world.phases()[..2], [(Phase::Active, 2, 2); 2]);
    assert_eq!(world.nodes[&3].group.member().unwrap().phase(), Phase::Gone);
}

#[test]
fn members_that_all_leave_are_gone_at_once() {
    for apart in [0, 1, 50, 150, 1_000].map(Duration::from_micros) {
        let mut world = three(false);
        let begin = world.now;
        for name in 1..=3 {
            world.nodes.get_mut(&name).unwrap().group.leave(world.now);
            world.act(name);
            world.run(apart);
        }
        world.run(Duration::from_millis(150));
        assert!(world.now.since(begin) < Duration::from_millis(200));
        let mut members = world.nodes.values().filter_map(|node| node.group.member());
        assert!(members.all(|it| it.phase() == Phase::Gone), "{apart:?}: {:?}", world.phases());
    }
}

#[test]
fn a_writer_waits_for_the_slowest() {
    let mut world = three(false);
    let refused = (1..=100).map(|number| world.write(1, number)).filter(Result::is_err).count();
    assert_eq!(refused, 36);
    world.run(Duration::from_millis(20));
    assert_eq!(world.write(1, 65), Ok(()));
}

/// Writes by members 1 and 2 until nothing more is accepted.
fn fill(world: &mut World) {
    for number in 1_000.. {
        let accepted = [1, 2].map(|name| world.write(name, number).is_ok());
        world.run(Duration::from_millis(2));
        if accepted == [false; 2] {
            return;
        }
    }
}

#[test]
fn who_takes_no_more_makes_writers_wait_however_often_epochs_end_and_loses_nothing() {
    let mut world = three(true);
    world.nodes.get_mut(&3).unwrap().group.hold();
    fill(&mut world);
    assert_eq!(world.samples(1).len(), 128, "a window of each lane");
    assert!(world.samples(3).is_empty());
    // It is not excluded, since it says why.
    world.run(Duration::from_secs(10));
    assert_eq!(world.phases(), [(Phase::Active, 1, 3); 3]);
    assert_eq!(world.nodes[&1].group.member().unwrap().state(world.now).held.iter().collect::<Vec<_>>(), [2]);
    for name in 4..=8 {
        world.start(name);
        world.run(Duration::from_secs(1));
        fill(&mut world);
        world.run(Duration::from_secs(4));
    }
    assert_eq!(world.phases()[2], (Phase::Active, 6, 8));
    assert_eq!(world.samples(3).len(), 128, "what was within the cut of the first epoch");
    assert_eq!(world.samples(1).len(), 128);
    let now = world.now;
    world.nodes.get_mut(&3).unwrap().group.resume(now);
    world.act(3);
    world.run(Duration::from_millis(100));
    assert_eq!(world.samples(1).len(), 256, "what had waited");
    (1..=8).for_each(|name| assert_eq!(world.samples(name), world.samples(1)));
}

#[test]
fn who_takes_no_more_is_excluded_after_the_delay_and_comes_back_when_it_takes() {
    let mut world = World { slow: Duration::from_secs(1), ..World::new(true) };
    (1..=3).for_each(|name| world.start(name));
    world.run(Duration::from_millis(400));
    world.nodes.get_mut(&1).unwrap().group.hold();
    for number in 0..400 {
        let _ = world.write(2, number);
        world.run(Duration::from_millis(10));
    }
    assert!(world.nodes[&1].statuses.contains(&Status::Evicted));
    assert_eq!(world.phases()[0].0, Phase::Joining, "it does not join to be excluded again");
    assert_eq!(world.phases()[1..], [(Phase::Active, 2, 2); 2]);
    let now = world.now;
    world.nodes.get_mut(&1).unwrap().group.resume(now);
    world.act(1);
    world.run(Duration::from_secs(1));
    assert_eq!(world.phases(), [(Phase::Active, 3, 3); 3]);
    assert!(world.samples(2).len() > 100);
    assert_eq!(world.samples(1), world.samples(2));
    // Who takes nothing itself accuses nobody.
    world.nodes.get_mut(&2).unwrap().group.hold();
    for number in 400..800 {
        let _ = world.write(2, number);
        world.run(Duration::from_millis(10));
    }
    assert_eq!(world.phases(), [(Phase::Active, 3, 3); 3]);
}

#[test]
fn who_took_a_joiner_in_alone_decides_no_more_alone() {
    let mut world = World::new(false);
    (1..=2).for_each(|name| world.start(name));
    world.run(Duration::from_millis(400));
    world.start(3);
    world.run(Duration::from_millis(400));
    assert_eq!(world.phases(), [(Phase::Active, 2, 3); 3]);
    // Of two members the first voted, of three all do.
    world.cut_off.insert(1);
    world.write(1, 1).unwrap();
    world.run(Duration::from_secs(2));
    assert_eq!(world.phases()[1..], [(Phase::Active, 3, 2); 2]);
    assert_eq!(world.phases()[0].0, Phase::Frozen);
    assert!(world.samples(1).is_empty());
    world.cut_off.clear();
    world.run(Duration::from_secs(2));
    assert_eq!(world.phases(), [(Phase::Active, 4, 3); 3]);
    assert_eq!(world.samples(2), [(1, 1)]);
    assert_eq!(world.samples(1), world.samples(2));
}

/// Two members that keep what they have, and what the second had on its disk before the last samples.
fn two_with_disks() -> (World, Disk) {
    let mut world = World { storage: Storage::Durable, ..World::new(true) };
    (1..=2).for_each(|name| world.start(name));
    world.run(Duration::from_millis(400));
    let mut copy = Disk::new();
    for number in 1..=10 {
        world.write(1, number).unwrap();
        world.run(Duration::from_millis(10));
        if number == 5 {
            copy = world.nodes[&2].disk.clone();
        }
    }
    assert_eq!(world.samples(2).len(), 10);
    (world, copy)
}

#[test]
fn members_that_keep_what_they_have_go_on_when_all_start_again() {
    let (mut world, _) = two_with_disks();
    let disks = [1, 2].map(|name| world.nodes.remove(&name).unwrap().disk);
    for (name, disk) in [3, 4].into_iter().zip(disks) {
        world.start_with(name, disk);
    }
    world.run(Duration::from_secs(2));
    assert_eq!(world.phases().iter().map(|it| (it.0, it.2)).collect::<Vec<_>>(), [(Phase::Active, 2); 2]);
    world.write(3, 11).unwrap();
    world.run(Duration::from_millis(100));
    assert_eq!(world.samples(3).len(), 11);
    assert_eq!(world.samples(3), world.samples(4));
}

#[test]
fn who_is_to_vouch_otherwise_than_before_vouches_as_before_until_it_joins_anew() {
    for (before, after) in [(Storage::Durable, Storage::Stable), (Storage::Stable, Storage::Durable)] {
        let mut world = World { storage: before, ..World::new(true) };
        world.start(1);
        world.run(Duration::from_millis(400));
        world.write(1, 1).unwrap();
        world.run(Duration::from_millis(100));
        let disk = world.nodes.remove(&1).unwrap().disk;
        world.storage = after;
        world.start_with(2, disk);
        world.run(Duration::from_secs(2));
        assert_eq!(world.write(2, 2), Ok(()));
        world.run(Duration::from_secs(1));
        assert_eq!(world.samples(2), [(1, 1), (2, 2)], "{before:?}");
        // What was vouched for before it was durable may be missing.
        let lineage = world.nodes[&2].group.member().unwrap().view().unwrap().lineage;
        assert_eq!(lineage > 0, before == Storage::Stable);
    }
}

#[test]
fn what_others_have_stands_when_a_member_comes_back_with_an_old_copy_of_its_directory() {
    let (mut world, copy) = two_with_disks();
    world.nodes.remove(&2);
    world.start_with(3, copy);
    world.run(Duration::from_secs(4));
    for number in 11..=20 {
        world.write(1, number).unwrap();
        world.run(Duration::from_millis(10));
    }
    world.run(Duration::from_secs(1));
    assert_eq!(world.samples(1), (1..=20).map(|number| (1, number)).collect::<Vec<_>>());
    assert_eq!(world.samples(3), world.samples(1));
    // Nobody took the copy for what the member had; it joined again.
    assert_eq!(world.nodes[&1].group.member().unwrap().view().unwrap().lineage, 0);
}

#[test]
fn who_comes_back_with_a_copy_from_an_epoch_before_joins_again() {
    let (mut world, copy) = two_with_disks();
    world.start(3);
    world.run(Duration::from_secs(1));
    assert_eq!(world.phases(), [(Phase::Active, 2, 3); 3]);
    world.nodes.remove(&2);
    world.start_with(4, copy);
    world.run(Duration::from_secs(4));
    assert_eq!(world.phases(), [(Phase::Active, 4, 3); 3]);
    assert_eq!(world.samples(4), world.samples(1));
}

#[test]
fn what_was_delivered_stands_when_all_start_again_and_one_of_them_with_an_old_copy() {
    let (mut world, copy) = two_with_disks();
    let disk = world.nodes.remove(&1).unwrap().disk;
    world.nodes.remove(&2);
    world.start_with(3, disk);
    world.start_with(4, copy);
    world.run(Duration::from_secs(4));
    assert_eq!(world.phases().iter().map(|it| (it.0, it.2)).collect::<Vec<_>>(), [(Phase::Active, 2); 2]);
    assert_eq!(world.samples(3).len(), 10);
    assert_eq!(world.samples(4), world.samples(3));
}

#[test]
fn of_two_that_come_back_with_one_directory_one_joins_anew() {
    let (mut world, _) = two_with_disks();
    let disk = world.nodes.remove(&2).unwrap().disk;
    [3, 4].into_iter().for_each(|name| world.start_with(name, disk.clone()));
    world.run(Duration::from_secs(4));
    assert_eq!(world.phases().iter().map(|it| (it.0, it.2)).collect::<Vec<_>>(), [(Phase::Active, 3); 3]);
    assert_eq!(world.samples(3), world.samples(1));
    assert_eq!(world.samples(4), world.samples(1));
}
