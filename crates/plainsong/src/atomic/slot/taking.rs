//! What comes from the other members.

use std::sync::Arc;

use plainsong_proto::atomic::entry::{Entry, HEAD_BYTES, Head};
use plainsong_proto::atomic::{EntryHeader, MEMBERS_MAX, MemberId};
use plainsong_proto::guid::Guid;
use plainsong_proto::outbox::Outbox;
use plainsong_proto::payload::Payload;
use plainsong_proto::time::Now;

use super::{GroupSlot, State};
use crate::atomic::{AtomicDrop, lane};

/// An entry, and how it came.
struct Taken {
    nonce: u64,
    header: EntryHeader,
    is_awaited: bool,
    entry: Arc<Entry>,
}

impl GroupSlot {
    /// Whether somebody waits to hear that they are here.
    pub(super) fn take_entries(&self, state: &mut State, now: Now, out: &mut Outbox) -> bool {
        let mut is_awaited = false;
        let mut samples = std::mem::take(&mut state.samples);
        self.lane.take(&self.slot, now, &mut samples, out);
        for sample in samples.iter().filter(|sample| sample.info.valid_data) {
            let lane = Guid::from(sample.info.publication_handle);
            match state.entry(lane, &sample.payload) {
                Ok(Some(Taken { nonce, header, is_awaited: awaited, entry })) => {
                    is_awaited |= awaited;
                    state.untold.0 += 1;
                    state.untold.1 += entry.payload.len();
                    state.group.on_entry(now.mono, MemberId { prefix: lane.prefix, nonce }, header, entry);
                }
                Ok(None) => {}
                Err(why) => state.dropped.count(why),
            }
        }
        samples.clear();
        state.samples = samples;
        is_awaited
    }

    /// Whether there were any of other members: who tells something waits for an answer.
    pub(super) fn take_messages(&self, state: &mut State, now: Now, out: &mut Outbox) -> bool {
        let mut is_any = false;
        let mut samples = std::mem::take(&mut state.samples);
        self.messages.take(&self.slot, now, &mut samples, out);
        for sample in samples.iter().filter(|sample| sample.info.valid_data) {
            let from = Guid::from(sample.info.publication_handle).prefix;
            if !self.voting.names().is_empty() {
                state.hear(from, now.mono);
            }
            let own = self.addressee(state);
            if from == self.guid.prefix {
                continue;
            }
            match lane::message(sample, from, own) {
                Ok(Some(message)) => {
                    is_any = true;
                    state.group.on_message(now.mono, message);
                }
                Ok(None) => {}
                Err(why) => state.dropped.count(why),
            }
        }
        samples.clear();
        state.samples = samples;
        is_any
    }
}

impl State {
    /// The entry that ends with a sample of a lane; `None` if its octets come with the next.
    fn entry(&mut self, lane: Guid, payload: &Payload) -> Result<Option<Taken>, AtomicDrop> {
        let known = if self.apart.is_empty() { None } else { self.apart.remove(&lane) };
        let (head, begin) = match known {
            Some(head) => (head, 0),
            None => (Head::decode(payload.as_slice()).map_err(|_| AtomicDrop::Undecodable)?, HEAD_BYTES),
        };
        if head.entry.writer.prefix != lane.prefix {
            return Err(AtomicDrop::Foreign);
        }
        if head.is_apart && begin > 0 {
            if self.apart.len() >= 2 * MEMBERS_MAX {
                // Of lanes that have ended; a lane that goes on has room among those that remain.
                self.apart.pop_first();
                self.dropped.count(AtomicDrop::Incomplete);
            }
            self.apart.insert(lane, head);
            return Ok(None);
        }
        // What travels is padded.
        let end = begin + head.payload_bytes;
        if end > payload.len() {
            return Err(AtomicDrop::Incomplete);
        }
        let Head { nonce, header, is_awaited, mut entry, .. } = head;
        entry.payload = payload.slice(begin..end);
        Ok(Some(Taken { nonce, header, is_awaited, entry: Arc::new(entry) }))
    }
}
