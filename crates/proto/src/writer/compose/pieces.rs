//! Sending samples that are cut: new ones, of which several share datagrams in a flow, and repeated fragments.

use crate::guid::Guid;
use crate::outbox::Outbox;
use crate::seq::{FragmentNumber, FragmentSet, SequenceNumber};
use crate::time::Now;
use crate::wire::HeartbeatFrag;

use super::submessages::{encode, heartbeat_to, sent_last};
use crate::writer::Writer;
use crate::writer::flow::class::Class;
use crate::writer::flow::pace::{Repeated, Tail};
use crate::writer::record::change::TakenChange;

impl Writer {
    /// Whether what is left to send to readers of this host waits for the next sample of a flow: the last fragments of a sample,
    /// which fill no datagram.
    pub(in crate::writer) fn holds_tail(&mut self, now: Now, class: Class) -> bool {
        if class == Class::Remote {
            return false;
        }
        let is_alone = self.proxies.is_filtering() || self.config.limits.batch_bytes == 0;
        if is_alone || self.pacer.is_turning() {
            self.pacer.release_tail();
            return false;
        }
        let is_flowing = self.batch.is_flowing(now.mono, &self.config.limits);
        let route = self.proxies.route(class);
        let Some(live) = self.pacer.first_live(class) else { return false };
        let due = match live.tail {
            Tail::Unknown => now.mono.after(self.batch.patience_in_flow(&self.config.limits)),
            Tail::Held(due) if due > now.mono => Some(due),
            Tail::Held(_) | Tail::Released => None,
        };
        let target = route.target(class, self.config.guid, &self.config.limits);
        let is_short = live.number == live.last
            && live.begun.as_ref().map(TakenChange::view).is_some_and(|change| {
                let bytes = change.payload.len();
                let sent = live.fragments_sent as usize * usize::from(target.fragment_bytes(bytes, 0));
                sent > 0 && target.shares(bytes) && target.has_room_behind(bytes.saturating_sub(sent))
            });
        live.tail = due.filter(|_| is_flowing && is_short).map_or(Tail::Released, Tail::Held);
        live.tail != Tail::Released
    }

    /// One datagram of queued changes, of which the first is cut: of its next fragments, and of those of the changes after it.
    pub(in crate::writer) fn send_fragments(&mut self, now: Now, class: Class, out: &mut Outbox) {
        let mut is_open = false;
        while self.put_fragments(now, class, &mut is_open, out) {
            self.begin_live(class, out);
        }
    }

    /// Adds the next fragments of the first queued change to a datagram, as many as it takes, and ends it unless the next
    /// change goes on in it.
    fn put_fragments(&mut self, now: Now, class: Class, is_open: &mut bool, out: &mut Outbox) -> bool {
        let route = self.proxies.aimed(class);
        let Some(live) = self.pacer.first_live(class) else { return false };
        let number = live.number;
        let Some(change) = &live.begun.as_ref().map(TakenChange::view) else { return false };
        let target = route.target(class, self.config.guid, &self.config.limits);
        let goes_on = std::mem::replace(is_open, true);
        if goes_on {
            encode(&self.config, &self.proxies, change, &mut self.inline_qos);
        }
        let mut message = if goes_on { out.resume() } else { target.open(out) };
        let before = if goes_on { message.len() } else { 0 };
        let first = live.fragments_sent + 1;
        let is_lone = first == 1 && !goes_on && !self.batch.is_flowing(now.mono, &self.config.limits);
        // Who tells what its socket holds looks for the rest; others would sleep, and be woken twice.
        let most = if is_lone && route.hold_bytes.is_some() {
            target.fragments_ahead(change.payload.len(), self.inline_qos.len())
        } else {
            FragmentNumber::MAX
        };
        let put = target.put_fragments(&mut message, number, change, (first, most), &self.inline_qos);
        // One that no datagram takes is passed over.
        live.fragments_sent += if goes_on { put } else { put.max(1) };
        live.tail = Tail::Unknown;
        let total = target.fragments(change.payload.len(), self.inline_qos.len());
        let finished = live.fragments_sent >= total;
        let shares = target.shares(change.payload.len());
        let sent = (message.len() - before, usize::from(!goes_on));
        self.pacer.sent_live(class, sent, finished.then_some(number));
        let datagram_bytes = message.len();
        if finished {
            message.pause();
            self.pacer.advance_live(class, number.next());
            let goes_on = shares && !self.pacer.waits_for_turn(class) && self.next_shares(class);
            if self.end_queued(now, class, goes_on, out) {
                return true;
            }
        } else {
            message.finish();
        }
        if class == Class::SameHost {
            self.multicast.sent(datagram_bytes);
        }
        if finished {
            return false;
        }
        if class == Class::Remote && self.pacer.road.wants_answer_inside() {
            self.put_question(now, out);
        }
        self.announce_fragments(now, class, out);
        false
    }

    /// Whether the next queued change is there, and cut, too.
    fn next_shares(&mut self, class: Class) -> bool {
        let route = self.proxies.route(class);
        let target = route.target(class, self.config.guid, &self.config.limits);
        let Some(live) = self.pacer.first_live(class) else { return false };
        let next = self.history.get(live.number, &self.instances);
        !self.proxies.is_filtering() && next.is_some_and(|change| target.shares(change.payload.len()))
    }

    /// The burst ended inside a sample: tells readers now and then how far it got, so that they ask for
    /// lost fragments while the rest is still to come (RTPS 2.5 §8.3.8.7).
    fn announce_fragments(&mut self, now: Now, class: Class, out: &mut Outbox) {
        let route = self.proxies.route(class);
        let Some((number, last_fragment)) = self.pacer.unsent_to(class) else { return };
        // Of the next sample nothing had room in the datagram.
        if last_fragment == 0
            || self.pacer.may_send(class)
            || route.reliable == 0
            || !self.heartbeat.fragments_due(now.mono)
        {
            return;
        }
        let target = route.target(class, self.config.guid, &self.config.limits);
        let heartbeat = HeartbeatFrag {
            reader: target.reader,
            writer: target.source.entity,
            sequence_number: number,
            last_fragment,
            count: self.heartbeat.next_count(),
        };
        let _ = target.open(out).heartbeat_frag(&heartbeat);
    }

    /// Repeats fragments from `first` on in one datagram, as many as it takes of `most`: the one after them, or `None` when there is no
    /// such fragment any more.
    pub(in crate::writer) fn repeat_fragments(
        &mut self,
        now: Now,
        reader: Guid,
        number: SequenceNumber,
        (first, most): (FragmentNumber, FragmentNumber),
        out: &mut Outbox,
    ) -> Option<FragmentNumber> {
        let change = self.history.get(number, &self.instances)?;
        let proxy = self.proxies.get(reader)?;
        encode(&self.config, &self.proxies, &change, &mut self.inline_qos);
        let target = proxy.target(self.config.guid, &self.config.limits);
        let whole = target.fits(change.payload.len(), self.inline_qos.len());
        if whole || first > target.fragments(change.payload.len(), self.inline_qos.len()) {
            return None;
        }
        let mut message = target.open(out);
        let put = target.put_fragments(&mut message, number, &change, (first, most), &self.inline_qos);
        let bytes = message.len();
        message.finish();
        self.pacer.sent_again(target.class, bytes);
        let next = first.saturating_add(put.max(1));
        if let Some(proxy) = self.proxies.get_mut(reader) {
            for fragment in first..next {
                proxy.repeated_fragments.sent((number, fragment), now.mono);
            }
        }
        Some(next)
    }

    /// Fragments were repeated: asks the reader which it still misses, unless the end of the sample is
    /// still to come and will ask.
    pub(in crate::writer) fn ask_for_fragments(
        &mut self,
        now: Now,
        reader: Guid,
        number: SequenceNumber,
        out: &mut Outbox,
    ) {
        let more = self.pacer.repeats.iter().any(|repeat| {
            repeat.reader == reader
                && matches!(repeat.what, Repeated::Fragments { number: other, .. } if other == number)
        });
        let Some(proxy) = self.proxies.get(reader).filter(|proxy| proxy.reliable && !more) else { return };
        if number > sent_last(&self.history, &self.pacer, proxy.class) {
            return;
        }
        let target = proxy.target(self.config.guid, &self.config.limits);
        let mut message = target.open(out);
        if let Some(change) = self.history.get(number, &self.instances) {
            let inline_qos = encode(&self.config, &self.proxies, &change, &mut self.inline_qos);
            let _ = message.heartbeat_frag(&HeartbeatFrag {
                reader: target.reader,
                writer: target.source.entity,
                sequence_number: number,
                last_fragment: target.fragments(change.payload.len(), inline_qos),
                count: self.heartbeat.next_count(),
            });
        }
        let heartbeat = heartbeat_to(&mut self.heartbeat, &self.history, &self.pacer, proxy, &target, false);
        // Both fit the smallest datagram.
        let _ = message.heartbeat(&heartbeat);
        self.asked(now);
    }
}

/// How many members of a set follow each other from `first` on.
pub(in crate::writer) fn run_of(set: &FragmentSet, first: FragmentNumber) -> FragmentNumber {
    let mut next = first;
    while set.contains(next) {
        next = next.saturating_add(1);
    }
    next - first
}
