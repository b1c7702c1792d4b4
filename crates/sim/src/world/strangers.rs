//! Readers that nobody has: their participants have proven their addresses, and then they answer nothing, or
//! ask without end. Those that ask speak in the names of others, too: from where these never were, they
//! acknowledge everything.

use plainsong_proto::discovery::MatchedReader;
use plainsong_proto::guid::{EntityId, Guid};
use plainsong_proto::locator::ports;
use plainsong_proto::qos::QosSet;
use plainsong_proto::seq::{SequenceNumber, SequenceSet};
use plainsong_proto::sources::{Sender, Sources};
use plainsong_proto::time::{Duration, Instant, Now};
use plainsong_proto::wire::AckNack;

use super::{HEADERS_BYTES, Happening, Place, World, prefix};
use crate::ledger::{Ending, Storm};
use crate::mutation::Mutation;
use crate::network::UNHEARD;
use crate::node::{Call, LocalWriter, State};

/// RTPS header, INFO_DST and an ACKNACK with a bitmap of 256 numbers.
const REQUEST_BYTES: u64 = HEADERS_BYTES + 20 + 16 + 60;
/// How often one asks, and how often each time again.
const REQUESTS: u32 = 600;
const PAUSE: Duration = Duration::from_millis(1);
/// One request in so many is followed by acknowledgements in the names of others.
const FORGED_EACH: u32 = 10;
/// With the mistake that each who asks is taken for a new one: after so many requests.
const RENEWED_EACH: u32 = 20;

/// A reader that nobody has, matched with a writer.
#[derive(Clone, Copy, Debug)]
pub(super) struct StrangeReader {
    /// The writer's place in the ledger.
    writer: usize,
    place: Place,
    guid: Guid,
    /// It asks, by which it answers: it is waited for until its lease ends, as any other.
    asks: bool,
}

impl World {
    /// Every writer of a process that there is now is matched with a reliable reader of a stranger. It asks
    /// for everything again and again when it `asks`, and says nothing otherwise.
    pub fn haunt(&mut self, node: usize, asks: bool) {
        if self.nodes[node].state != State::Running {
            return;
        }
        self.note(node, 26, || {
            format!("has to do with a stranger that {}", if asks { "asks" } else { "is silent" })
        });
        let prefix = prefix(UNHEARD, self.strangers.len(), node);
        for writer in 0..self.writers.len() {
            let place = self.writers[writer];
            let endpoint = &self.ledger.writers[writer].endpoint;
            if place.node != node || !endpoint.is_alive() || !endpoint.qos.is_reliable() {
                continue;
            }
            let guid = prefix.entity(EntityId::user_reader(writer as u32 + 1, true));
            let stranger = StrangeReader { writer, place, guid, asks };
            self.ledger.writers[writer].endpoint.begin_match(guid, self.at);
            self.greet(stranger, true);
            self.strangers.push(stranger);
            if asks {
                self.ledger.storms.push(Storm { writer, asked: 0, drawn: 0 });
                let (storm, stranger) = (self.ledger.storms.len() - 1, self.strangers.len() - 1);
                self.after(PAUSE, Happening::StrangerAsks { stranger, storm, left: REQUESTS });
            }
        }
    }

    /// Its writer is told that a stranger comes, or goes.
    fn greet(&mut self, stranger: StrangeReader, comes: bool) {
        let mut qos = QosSet::reader().reliable();
        qos.durability = self.ledger.writers[stranger.writer].endpoint.qos.durability;
        let reader = MatchedReader {
            guid: stranger.guid,
            locators: vec![UNHEARD.locator(ports::user_unicast(0, 0))],
            sources: Sources::default(),
            urgent: None,
            expects_inline_qos: false,
            same_host: false,
            receive_bytes: 0,
            qos,
            content_filter: None,
            begins: false,
            skips_to_heartbeat: false,
            is_of_own_process: false,
        };
        self.with_writer(stranger.place, |local, now_at, call| {
            let now = now_at;
            call.of_writer(&mut local.writer, |writer, out| {
                if comes {
                    writer.match_reader(now, &reader, out);
                } else {
                    writer.unmatch_reader(now, reader.guid, out);
                }
            });
        });
    }

    /// Calls into a writer that still lives.
    fn with_writer(&mut self, place: Place, f: impl FnOnce(&mut LocalWriter, Now, &mut Call<'_>)) {
        if self.nodes[place.node].state == State::Gone {
            return;
        }
        self.call(place.node, |node, call| {
            let now = node.options.clock.now(call.at);
            if let Some(local) = node.members[place.member].writers.get_mut(&place.entity) {
                f(local, now, call);
            }
            node.settle(place.member, now, call);
        });
    }

    /// A stranger asks for as much as an ACKNACK can name.
    pub(super) fn stranger_asks(&mut self, stranger: usize, storm: usize, left: u32) {
        let Some(it) = self.strangers.get(stranger).copied() else { return };
        if self.nodes[it.place.node].state == State::Running {
            if self.mutation == Some(Mutation::RenewBudgets) && left.is_multiple_of(RENEWED_EACH) {
                self.greet(it, false);
                self.greet(it, true);
            }
            if left.is_multiple_of(FORGED_EACH) {
                let mut taken = Vec::new();
                self.with_writer(it.place, |local, now, call| taken = forge(local, it.guid, now, call));
                self.ledger.taken.append(&mut taken);
            }
            let mut drawn = 0;
            self.with_writer(it.place, |local, now, call| {
                let last = local.writer.look(|writer| writer.last_sequence_number().0);
                let base = (last - 255).max(1);
                let mut missing = SequenceSet::empty(SequenceNumber(base));
                for number in base..=last {
                    missing.insert(SequenceNumber(number));
                }
                let acknack = AckNack {
                    reader: it.guid.entity,
                    writer: it.place.entity,
                    missing,
                    count: (REQUESTS - left) as i32 + 1,
                    final_flag: true,
                    heartbeat: None,
                };
                let before = call.out.transmits().len();
                // What it is refused for is no matter here.
                let _ = call.of_writer(&mut local.writer, |writer, out| {
                    writer.on_acknack(now, Sender::unplaced(it.guid), &acknack, out)
                });
                let sent = call.out.transmits().iter().skip(before);
                drawn = sent.map(|transmit| HEADERS_BYTES + transmit.len() as u64).sum();
            });
            let storm = &mut self.ledger.storms[storm];
            (storm.asked, storm.drawn) = (storm.asked + REQUEST_BYTES, storm.drawn + drawn);
        }
        if left > 1 {
            self.after(PAUSE, Happening::StrangerAsks { stranger, storm, left: left - 1 });
        }
    }

    /// Strangers go, and what their silence has stopped is noted; whether there were any.
    pub(super) fn dismiss_strangers(&mut self) -> bool {
        let strangers = std::mem::take(&mut self.strangers);
        let any = !strangers.is_empty();
        for stranger in strangers {
            let record = &self.ledger.writers[stranger.writer];
            if !matches!(record.endpoint.ended, None | Some((_, Ending::Deleted))) {
                continue;
            }
            if let Some(since) = record.blocked_since.filter(|_| record.endpoint.is_alive() && !stranger.asks)
            {
                self.ledger.held_up.push((stranger.writer, self.at.since(since)));
            }
            self.ledger.writers[stranger.writer].endpoint.end_match(stranger.guid, self.at);
            self.greet(stranger, false);
        }
        any
    }

    /// When strangers come to a system that is over at `until`, if any do: to every sixth.
    #[must_use]
    pub fn draw_stranger(seed: u64, nodes: usize, until: Instant) -> Option<(Instant, usize, bool)> {
        let mut rng = crate::rng::Rng::new(!seed.rotate_left(17));
        rng.chance(17).then(|| {
            let at = Instant(rng.below(until.0));
            (at, rng.below(nodes as u64) as usize, rng.chance(50))
        })
    }
}

/// Acknowledges all that was written in the name of each reader but the stranger, from where no reader is; in
/// whose names that was taken.
fn forge(local: &mut LocalWriter, stranger: Guid, now: Now, call: &mut Call<'_>) -> Vec<Guid> {
    let readers: Vec<Guid> =
        local.writer.look(|writer| writer.matched_readers().filter(|guid| *guid != stranger).collect());
    let mut taken = Vec::new();
    for guid in readers {
        let next = SequenceNumber(local.writer.look(|writer| writer.last_sequence_number().0) + 1);
        let acknack = AckNack {
            reader: guid.entity,
            writer: local.writer.look(|writer| writer.guid().entity),
            missing: SequenceSet::empty(next),
            count: now.mono.as_count().wrapping_add(1 << 20),
            final_flag: true,
            heartbeat: None,
        };
        let sender = Sender { guid, from: UNHEARD.locator(ports::user_unicast(0, 0)) };
        let result =
            call.of_writer(&mut local.writer, |writer, out| writer.on_acknack(now, sender, &acknack, out));
        if result.is_ok() {
            taken.push(guid);
        }
    }
    taken
}
