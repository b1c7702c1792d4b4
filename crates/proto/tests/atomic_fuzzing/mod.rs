//! Two members of a group with disks: what they send one another, and what is on their disks, is changed as
//! the octets say. Whatever comes of it, nobody panics.

use std::collections::BTreeMap;

use plainsong_proto::atomic::codec::{decode, encode};
use plainsong_proto::atomic::entry::{Entry, EntryKind};
use plainsong_proto::atomic::storage::{Batch, Image};
use plainsong_proto::atomic::view::Voters;
use plainsong_proto::atomic::{Action, Config, EntryHeader, Group, MemberId, Message, Storage};
use plainsong_proto::guid::{EntityId, GuidPrefix};
use plainsong_proto::payload::Payload;
use plainsong_proto::seq::SequenceNumber;
use plainsong_proto::time::{Duration, Instant, Time};

/// What one sends in one step at most: more is lost.
const SENT_MAX: usize = 200;

enum Sent {
    Message(Vec<u8>),
    Entry(EntryHeader, Entry),
}

struct Side {
    group: Group<Entry>,
    id: MemberId,
    disk: BTreeMap<Vec<u8>, Vec<u8>>,
    stored: u64,
    sent: Vec<Sent>,
    written: i64,
}

fn config(now: Instant) -> Config {
    Config {
        digest: 1,
        lease: Duration::from_millis(500),
        stuck: Duration::from_secs(2),
        slow: Duration::from_secs(1),
        window_entries: 8,
        window_octets: 1 << 12,
        keeps_history: true,
        history_entries_max: 16,
        storage: Storage::Durable,
        voters: Voters::Members,
        bootstrap_after: Some(Duration::from_millis(100)),
        instance: now.0,
    }
}

fn id(number: u8, now: Instant) -> MemberId {
    MemberId { prefix: GuidPrefix([number; 12]), nonce: now.0 >> 20 }
}

impl Side {
    fn new(number: u8, now: Instant) -> Self {
        let id = id(number, now);
        let group = Group::new(config(now), id, now);
        Self { group, id, disk: BTreeMap::new(), stored: 0, sent: Vec::new(), written: 0 }
    }

    fn write(&mut self, now: Instant) {
        self.written += 1;
        let entry = Entry {
            writer: self.id.prefix.entity(EntityId::user_writer(1, true)),
            number: SequenceNumber(self.written),
            kind: EntryKind::Data,
            timestamp: Time::from_wire(1, 0),
            instance: [self.written as u8 % 3; 16],
            depth: 2,
            is_kept: true,
            payload: Payload::from_vec(vec![7; 20]),
        };
        // It may be refused.
        let _ = self.group.write(now, entry);
    }

    /// Does what it asks for.
    fn settle(&mut self) {
        while let Some(action) = self.group.poll() {
            let room = self.sent.len() < SENT_MAX;
            match action {
                Action::Send(_, message) if room => {
                    let mut octets = Vec::new();
                    encode(&message, &mut octets);
                    self.sent.push(Sent::Message(octets));
                }
                Action::SendEntry(header, entry) if room => self.sent.push(Sent::Entry(header, entry)),
                Action::Store(number, change) => {
                    let mut batch = Batch::new();
                    change.stage(&mut batch);
                    for (key, value) in batch {
                        match value {
                            Some(value) => self.disk.insert(key, value),
                            None => self.disk.remove(&key),
                        };
                    }
                    self.stored = number;
                }
                _ => {}
            }
        }
    }

    /// Starts again from its disk, of which one octet may be another.
    fn restart(&mut self, now: Instant, at: u8, value: u8) {
        let mut disk = self.disk.clone();
        let values = disk.values_mut().filter(|it| !it.is_empty());
        if let Some(octets) =
            values.enumerate().find(|(index, _)| *index == usize::from(at) / 4).map(|it| it.1)
        {
            let place = usize::from(value) % octets.len();
            octets[place] = octets[place].wrapping_add(value);
        }
        let Ok(image) = Image::read(disk) else { return };
        self.id = MemberId { nonce: self.id.nonce + 1, ..self.id };
        self.group = Group::restore(config(now), self.id, now, image);
        self.stored = 0;
    }
}

/// Runs the story that the octets tell, four for each step.
pub(crate) fn run(octets: &[u8]) {
    let mut now = Instant(1 << 40);
    let mut sides = [Side::new(1, now), Side::new(2, now)];
    for step in octets.chunks_exact(4).take(300) {
        let [what, who, at, value] = [step[0], step[1], step[2], step[3]];
        now = now.after(Duration::from_millis(i64::from(what % 4) * 25)).unwrap_or(now);
        let who = usize::from(who) % 2;
        match what / 4 % 8 {
            0 => sides[who].write(now),
            1 => sides[who].group.leave(now),
            2 => sides[who].restart(now, at, value),
            3 => sides[who].group.lose_disk(now),
            _ => {}
        }
        for side in &mut sides {
            side.group.tick(now);
            side.settle();
            side.group.on_stored(now, side.stored);
            side.group.flush(now);
            side.settle();
        }
        for from in [0, 1] {
            let sent = std::mem::take(&mut sides[from].sent);
            let sender = sides[from].group.member().map_or(sides[from].id, |member| member.id());
            for (index, sent) in sent.into_iter().enumerate() {
                let spoils = from == who && what >= 128 && index == usize::from(at) % 4;
                deliver(&mut sides[1 - from].group, now, sender, sent, spoils.then_some((at, value)));
            }
        }
    }
}

fn deliver(group: &mut Group<Entry>, now: Instant, sender: MemberId, sent: Sent, spoils: Option<(u8, u8)>) {
    match sent {
        Sent::Message(mut octets) => {
            if let Some((at, value)) = spoils {
                let place = usize::from(at) % octets.len();
                // Numbers that are about to overflow are the ones to fear.
                let end = octets.len().min(place + if value < 64 { 8 } else { 1 });
                octets[place..end].fill(value | if value < 64 { 0xf0 } else { 0 });
            }
            if let Ok(message) = decode::<Entry>(&octets) {
                let message: Message<Entry> = message;
                group.on_message(now, message);
            }
        }
        Sent::Entry(mut header, entry) => {
            if let Some((at, value)) = spoils {
                let word = u64::from(value) << (at % 57);
                match at % 4 {
                    0 => header.index ^= word,
                    1 => header.stamp ^= word,
                    2 => header.epoch ^= word,
                    _ => header.instance ^= word,
                }
            }
            group.on_entry(now, sender, header, entry);
        }
    }
}
