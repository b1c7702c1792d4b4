//! Sending: new changes to everyone at once, what waits for its turn, and heartbeats.

use crate::guid::{EntityId, Guid};
use crate::outbox::Outbox;
use crate::seq::{FragmentNumber, SequenceNumber};
use crate::stats::DropReason;
use crate::time::Now;
use crate::wire::Heartbeat;

use super::batch::is_full;
use super::pieces::run_of;
use super::submessages::{encode, heartbeat, heartbeat_to, sent_last};
use crate::writer::Writer;
use crate::writer::flow::class::Class;
use crate::writer::flow::crowd::Crowd;
use crate::writer::flow::heartbeat::Piggyback;
use crate::writer::flow::pace::{Repeat, Repeated};
use crate::writer::record::change::{Change, TakenChange};
use crate::writer::routes::gap::GapBuilder;
use crate::writer::routes::proxy::ReaderProxy;

impl Writer {
    /// Sends a change just written: whole where it fits, the first burst of its fragments where not. `fresh`: the change, if
    /// it need not be looked up.
    pub(in crate::writer) fn send_new(
        &mut self,
        now: Now,
        number: SequenceNumber,
        fresh: Option<&Change<'_>>,
        out: &mut Outbox,
    ) {
        if self.proxies.is_filtering() {
            self.send_filtered(now, number, out);
            return;
        }
        if self.batched(now, number, fresh, out) {
            return;
        }
        let carried = self.carried_heartbeat(now);
        let held;
        let change = match fresh {
            Some(change) => change,
            None => {
                held = self.history.get(number, &self.instances);
                let Some(change) = &held else { return };
                change
            }
        };
        encode(&self.config, &self.proxies, change, &mut self.inline_qos);
        let (mut asked, mut queued) = (false, false);
        for class in Class::ALL {
            let route = self.proxies.route(class);
            if route.destinations.is_empty() {
                continue;
            }
            let target = route.target(class, self.config.guid, &self.config.limits);
            if self.pacer.unsent_to(class).is_some()
                || !target.fits(change.payload.len(), self.inline_qos.len())
                || !self.pacer.admits(now.mono, class, 1, &self.config.limits)
            {
                self.pacer.push_live(number, class);
                queued = true;
                continue;
            }
            self.batch.leaves_alone(now.mono, self.proxies.len());
            let mut message = target.open(out);
            // It fits: the target said so.
            let _ = target.put_data(&mut message, number, change, &self.inline_qos);
            match class {
                Class::SameHost => self.multicast.sent(message.len()),
                Class::Remote => self.pacer.sent_live(class, (message.len(), 1), Some(number)),
            }
            if let Some(carried) = carried.filter(|_| route.reliable > 0) {
                let final_flag = carried == Piggyback::Tells;
                let heartbeat =
                    heartbeat(&mut self.heartbeat, &self.history, &self.pacer, &target, final_flag);
                if !message.heartbeat(&heartbeat) {
                    message.finish();
                    target.send_heartbeat(&heartbeat, out);
                }
                asked |= carried == Piggyback::Asks;
            }
        }
        if asked {
            self.asked(now);
        }
        if queued {
            self.pump(now, out);
        }
    }

    /// All readers were asked what they have.
    pub(in crate::writer) fn asked(&mut self, now: Now) {
        self.heartbeat.asked(now.mono);
        // The last heartbeat was that to other hosts, if there are readers.
        self.note_question(now, self.heartbeat.count());
    }

    /// A heartbeat of that count asks readers on other hosts.
    pub(in crate::writer) fn note_question(&mut self, now: Now, count: i32) {
        let last = self.sent_last(false);
        self.pacer.road.asked(now.mono, count, last);
    }

    /// Half of what may be unacknowledged is.
    fn is_half_full(&self) -> bool {
        self.history.pending_bytes() >= self.window_bytes / 2
    }

    /// The heartbeat that samples sent now carry. Those that wait for a change of the way carry none, and do not put off the timer.
    pub(in crate::writer) fn carried_heartbeat(&mut self, now: Now) -> Option<Piggyback> {
        let urgent = self.is_half_full();
        self.proxies.acknowledged()?;
        // Of those that may share a group the answers tell who hears it.
        let unhurried = !urgent
            && !self.is_limited()
            && self.proxies.route(Class::Remote).reliable == 0
            && self.proxies.reliable() < self.config.limits.multicast_processes_min;
        let carried = if self.pacer.is_turning() {
            None
        } else {
            self.heartbeat.piggyback(now.mono, urgent, unhurried)
        };
        if self.pacer.road.wants_answer() { Some(Piggyback::Asks) } else { carried }
    }

    /// Sends what waits, as far as the current burst and the road allow: new changes and repetitions by turns.
    pub(in crate::writer) fn pump(&mut self, now: Now, out: &mut Outbox) {
        self.pacer.refresh(now.mono, &self.config.limits);
        if let Some(window_bytes) = self.proxies.route(Class::SameHost).window_bytes {
            self.pacer.widen(window_bytes);
        }
        self.lose_patience(now, out);
        self.give_up_turn(now);
        let unsent = self.pacer.unsent();
        loop {
            let local = self.pump_live(now, Class::SameHost, out);
            let remote = self.pump_live(now, Class::Remote, out);
            let repeated = self.pump_repeat(now, out);
            if !local && !remote && !repeated {
                break;
            }
        }
        if self.pacer.unsent() != unsent {
            self.settle(now);
            if self.blocked && self.has_room_to_go_on() {
                self.progress(out);
            }
        }
    }

    /// Readers on other hosts that answer nothing keep nobody waiting for ever: when some do answer, the others are not waited
    /// for any more; when none does, a little is sent all the same.
    fn lose_patience(&mut self, now: Now, out: &mut Outbox) {
        if self.pacer.road.patience_end().is_none_or(|end| end > now.mono) {
            if self.pacer.road.asks_again().is_some_and(|at| at <= now.mono) {
                self.put_question(now, out);
            }
            return;
        }
        self.proxies.pass_slow(self.pacer.road.left_bytes());
        self.note_left(now, None);
        if self.pacer.road.patience_end().is_some_and(|end| end <= now.mono) {
            self.pacer.road.give_up(self.history.last());
        }
    }

    /// One more datagram of the queued changes; false when there is none, the burst is over, or readers have to answer first.
    fn pump_live(&mut self, now: Now, class: Class, out: &mut Outbox) -> bool {
        if self.pacer.first_live(class).is_none()
            || self.pacer.waits_for_turn(class)
            || self.holds_tail(now, class)
        {
            return false;
        }
        if !self.pacer.may_send(class) {
            if class == Class::Remote {
                self.pacer.road.wait(now.mono);
            }
            return false;
        }
        self.skip_replaced(class, out);
        self.begin_live(class, out);
        let route = self.proxies.aimed(class);
        let Some(live) = self.pacer.first_live(class) else { return true };
        let number = live.number;
        let begun = live.begun.as_ref().map(TakenChange::view);
        let Some(change) = &begun.filter(|_| !route.destinations.is_empty()) else {
            self.pacer.advance_live(class, number.next());
            return true;
        };
        let target = route.target(class, self.config.guid, &self.config.limits);
        let inline_qos = encode(&self.config, &self.proxies, change, &mut self.inline_qos);
        if target.fits(change.payload.len(), inline_qos) {
            self.send_queued(now, class, out);
        } else {
            self.send_fragments(now, class, out);
        }
        true
    }

    /// Drops what is first in the queue and was replaced, or has expired, before its turn came, and tells readers so before
    /// they ask; those that filter are told when they ask.
    fn skip_replaced(&mut self, class: Class, out: &mut Outbox) {
        let Some(live) = self.pacer.first_live(class).filter(|live| live.begun.is_none()) else { return };
        let (start, after_last) = (live.number, live.last.next());
        let mut end = start;
        while end < after_last && self.history.kind(end).is_none() {
            end = self.history.next_held(end).min(after_last);
        }
        if end == start {
            return;
        }
        self.pacer.advance_live(class, end);
        let route = self.proxies.route(class);
        if route.destinations.is_empty() {
            return;
        }
        self.drops.count_many(DropReason::ReplacedUnsent, end.0.abs_diff(start.0));
        if self.proxies.is_filtering() {
            // Who was passed over with what came before is not to take this for filtered out, too.
            self.proxies.close_gaps(class, start, &self.config, out);
        } else {
            let target = route.target(class, self.config.guid, &self.config.limits);
            target.send_gap(&GapBuilder::range(start, end), out);
        }
    }

    /// Makes sure that the first queued change is begun.
    pub(in crate::writer) fn begin_live(&mut self, class: Class, out: &mut Outbox) {
        let Some(live) = self.pacer.first_live(class) else { return };
        let number = live.number;
        if let Some(change) = &live.begun.as_ref().map(TakenChange::view) {
            self.proxies.aim(class, number, change);
            return;
        }
        live.begun = self.history.get(number, &self.instances).as_ref().map(TakenChange::of);
        if let Some(change) = &live.begun.as_ref().map(TakenChange::view) {
            self.proxies.aim(class, number, change);
            self.proxies.begin((class, number, change), None, &self.config, out);
        }
    }

    /// One datagram of queued changes, of which the first fits one: of as many as a batch has; of one while readers filter.
    fn send_queued(&mut self, now: Now, class: Class, out: &mut Outbox) {
        let limits = &self.config.limits;
        let Some(live) = self.pacer.first_live(class) else { return };
        let (mut number, last) = (live.number, live.last);
        let filtering = self.proxies.is_filtering();
        let route = self.proxies.aimed(class);
        let target = route.target(class, self.config.guid, limits);
        let mut message = target.open(out);
        let mut samples = 0;
        let begun = live.begun.as_ref().map(TakenChange::view);
        while number <= last
            && let Some(change) =
                &self.history.get(number, &self.instances).or_else(|| begun.filter(|_| samples == 0))
        {
            let inline_qos = encode(&self.config, &self.proxies, change, &mut self.inline_qos);
            let fits = target.fits(change.payload.len(), inline_qos);
            if !fits || !target.put_data(&mut message, number, change, &self.inline_qos) {
                break;
            }
            (number, samples) = (number.next(), samples + 1);
            if filtering || is_full(message.len(), samples, limits.batch_bytes) {
                break;
            }
        }
        self.pacer.sent_live(class, (message.len(), 1), Some(number.previous()));
        if class == Class::SameHost {
            self.multicast.sent(message.len());
        }
        message.pause();
        self.pacer.advance_live(class, number);
        self.end_queued(now, class, false, out);
    }

    /// Ends what a datagram has of a queued change, with its last octets: tells or asks who got it. Whether the datagram goes on,
    /// as it should.
    pub(in crate::writer) fn end_queued(
        &mut self,
        now: Now,
        class: Class,
        goes_on: bool,
        out: &mut Outbox,
    ) -> bool {
        let mut message = out.resume();
        if self.proxies.aimed(class).reliable == 0 {
            return message.end(goes_on);
        }
        if self.proxies.is_filtering() {
            message.finish();
            self.heartbeat_aimed(class, false, out);
            self.asked(now);
            return false;
        }
        let asks = self.must_ask(now, class);
        if !asks && class == Class::Remote {
            // What follows tells enough.
            return message.end(goes_on);
        }
        let target = self.proxies.route(class).target(class, self.config.guid, &self.config.limits);
        let heartbeat = heartbeat(&mut self.heartbeat, &self.history, &self.pacer, &target, !asks);
        let goes_on = if message.heartbeat(&heartbeat) {
            message.end(goes_on)
        } else {
            message.finish();
            target.send_heartbeat(&heartbeat, out);
            false
        };
        if asks {
            self.asked(now);
        }
        goes_on
    }

    /// Whether readers are asked what they have with a queued change that was just sent: where their answers make room, in time
    /// and when nothing follows; else with each.
    fn must_ask(&self, now: Now, class: Class) -> bool {
        let (half_full, is_last) = (self.is_half_full(), self.pacer.unsent_to(class).is_none());
        match class {
            Class::SameHost => self.proxies.route(class).window_bytes.is_none_or(|window_bytes| {
                let urgent = half_full || 2 * self.pacer.in_flight() >= window_bytes;
                self.pacer.is_turning() || self.heartbeat.must_ask(now.mono, urgent)
            }),
            Class::Remote if self.pacer.road.is_answered() => {
                is_last || self.pacer.road.wants_answer() || self.heartbeat.must_ask(now.mono, false)
            }
            Class::Remote => true,
        }
    }

    /// Asks in the middle of a sample for readers on other hosts, so that they tell when this has left the road.
    pub(in crate::writer) fn put_question(&mut self, now: Now, out: &mut Outbox) {
        if self.proxies.is_filtering() {
            // Also those that want none of what is being sent: nobody knows otherwise that it has left the road to them.
            self.ask_readers(now, out, |reader, _| reader.is_waited_for());
            return;
        }
        let target =
            self.proxies.route(Class::Remote).target(Class::Remote, self.config.guid, &self.config.limits);
        let heartbeat = heartbeat(&mut self.heartbeat, &self.history, &self.pacer, &target, false);
        target.send_heartbeat(&heartbeat, out);
        self.note_question(now, heartbeat.count);
    }

    /// One more datagram of the next repetition, readers by turns; false when nothing may be sent.
    fn pump_repeat(&mut self, now: Now, out: &mut Outbox) -> bool {
        for _ in 0..self.pacer.repeats.len() {
            let Some(repeat) = self.pacer.repeats.pop_front() else { return false };
            let reader = repeat.reader;
            let Some(proxy) = self.proxies.get(reader) else { continue };
            if repeat.is_needless(proxy.acknowledged) {
                continue;
            }
            let class = proxy.class;
            if self.pacer.may_send(class) {
                self.send_repeat(now, repeat, out);
                if class == Class::Remote && self.pacer.road.wants_answer_inside() {
                    self.question_reader(now, reader, out);
                }
                self.pacer.yield_turn(reader);
                return true;
            }
            if class == Class::Remote {
                self.pacer.road.wait(now.mono);
            }
            self.pacer.repeats.push_front(repeat);
            self.pacer.yield_turn(reader);
        }
        false
    }

    /// Asks one reader on another host in the middle of repetitions, so that it tells when these have left the road; for one that never
    /// answers, the others.
    fn question_reader(&mut self, now: Now, reader: Guid, out: &mut Outbox) {
        let Some(proxy) = self.proxies.get(reader) else { return };
        if !proxy.reliable {
            return self.put_question(now, out);
        }
        let target = proxy.target(self.config.guid, &self.config.limits);
        let heartbeat = heartbeat_to(&mut self.heartbeat, &self.history, &self.pacer, proxy, &target, false);
        target.send_heartbeat(&heartbeat, out);
        self.note_question(now, heartbeat.count);
    }

    /// One datagram of a repetition; what is left of it queues again in front.
    fn send_repeat(&mut self, now: Now, repeat: Repeat, out: &mut Outbox) {
        let reader = repeat.reader;
        match repeat.what {
            Repeated::Changes { next, last } => self.repeat_changes(now, reader, next, last, out),
            Repeated::Fragments { number, next, wanted } => {
                let next = match &wanted {
                    Some(set) => set.iter().find(|fragment| *fragment >= next),
                    None => Some(next),
                };
                let next = next.and_then(|next| {
                    let most = wanted.as_ref().map_or(FragmentNumber::MAX, |set| run_of(set, next));
                    self.repeat_fragments(now, reader, number, (next, most), out)
                });
                if let Some(next) = next {
                    let what = Repeated::Fragments { number, next, wanted };
                    self.pacer.repeats.push_front(Repeat { reader, what });
                } else {
                    self.ask_for_fragments(now, reader, number, out);
                }
            }
        }
    }

    /// As many changes from `next` to `last` as one datagram takes, in order; the rest queues again.
    fn repeat_changes(
        &mut self,
        now: Now,
        reader: Guid,
        mut next: SequenceNumber,
        last: SequenceNumber,
        out: &mut Outbox,
    ) {
        let Some(proxy) = self.proxies.get(reader) else { return };
        let target = proxy.target(self.config.guid, &self.config.limits);
        let mut message = target.open(out);
        let mut large = None;
        while next <= last {
            let (held, filtered) = self.next_wanted(proxy, next, last);
            if held > next {
                let gap = GapBuilder::range(next, held)
                    .filtering(filtered)
                    .gap(target.reader, target.source.entity);
                if proxy.reliable && !message.gap(&gap) {
                    break;
                }
                next = held;
                continue;
            }
            let Some(change) = self.history.get(next, &self.instances) else { break };
            if change.is_expired(now.mono) {
                next = next.next();
                continue;
            }
            encode(&self.config, &self.proxies, &change, &mut self.inline_qos);
            if !target.fits(change.payload.len(), self.inline_qos.len()) {
                large = Some(next);
                next = next.next();
                break;
            }
            if !target.put_data(&mut message, next, &change, &self.inline_qos) {
                break;
            }
            next = next.next();
        }
        self.pacer.sent_again(target.class, message.len());
        let finished = next > last;
        let asks = finished && proxy.reliable && large.is_none();
        if asks {
            let heartbeat =
                heartbeat_to(&mut self.heartbeat, &self.history, &self.pacer, proxy, &target, false);
            if !message.heartbeat(&heartbeat) {
                message.finish();
                target.send_heartbeat(&heartbeat, out);
            }
            self.asked(now);
        } else {
            message.finish();
        }
        if !finished {
            self.pacer.repeats.push_front(Repeat { reader, what: Repeated::Changes { next, last } });
        }
        if let Some(number) = large {
            let what = Repeated::Fragments { number, next: 1, wanted: None };
            self.pacer.repeats.push_front(Repeat { reader, what });
        }
    }

    /// Asks the reliable readers that owe an acknowledgement of what was sent: each of them when they are the lesser part,
    /// all of a route otherwise. Whether there was any.
    pub(in crate::writer) fn ask(&mut self, now: Now, out: &mut Outbox) -> bool {
        if self.proxies.is_filtering() {
            return self.ask_each(now, out);
        }
        let owes = |proxy: &&ReaderProxy| {
            proxy.is_awaited() && proxy.acknowledged < sent_last(&self.history, &self.pacer, proxy.class)
        };
        let owing = self.proxies.iter().filter(owes).count();
        if owing == 0 {
            return false;
        }
        if owing == 1 || 2 * owing <= self.proxies.reliable() {
            return self.ask_each(now, out);
        }
        for class in Class::ALL {
            let route = self.proxies.route(class);
            if route.reliable > 0 {
                let target = route.target(class, self.config.guid, &self.config.limits);
                let heartbeat = heartbeat(&mut self.heartbeat, &self.history, &self.pacer, &target, false);
                target.send_heartbeat(&heartbeat, out);
            }
        }
        let (history, pacer) = (&self.history, &self.pacer);
        for reader in &mut self.proxies.readers {
            if reader.is_awaited() && reader.acknowledged < sent_last(history, pacer, reader.class) {
                reader.silence.asked(now.mono);
            }
        }
        self.asked(now);
        true
    }

    /// Tells all readers that the application asserted this writer (RTPS 2.5 §8.3.8.6.3).
    pub(in crate::writer) fn send_liveliness(&mut self, out: &mut Outbox) {
        for class in Class::ALL {
            let route = self.proxies.route(class);
            if route.destinations.is_empty() {
                continue;
            }
            let target = route.target(class, self.config.guid, &self.config.limits);
            let mut heartbeat = heartbeat(&mut self.heartbeat, &self.history, &self.pacer, &target, true);
            heartbeat.liveliness = true;
            target.send_heartbeat(&heartbeat, out);
        }
    }

    /// Tells a new reader that what was written before is not for it.
    pub(in crate::writer) fn tell_start(&mut self, now: Now, reader: Guid, out: &mut Outbox) {
        let Some(proxy) = self.proxies.get(reader) else { return };
        let target = proxy.target(self.config.guid, &self.config.limits);
        let mut message = target.open(out);
        if proxy.first_relevant > self.first_number() {
            let gap = GapBuilder::range(self.first_number(), proxy.first_relevant);
            let _ = message.gap(&gap.gap(target.reader, target.source.entity));
        }
        // Of an empty history nothing has to be acknowledged. A reader of another stack may have been waiting for a question, and
        // the answer of one elsewhere tells how long the road is.
        let is_near_kin = proxy.names_questions() && proxy.class == Class::SameHost;
        let is_final = self.history.len() == 0 && (self.config.guid.entity.is_builtin() || is_near_kin);
        let mut heartbeat =
            heartbeat_to(&mut self.heartbeat, &self.history, &self.pacer, proxy, &target, is_final);
        // It comes with the GAP or not at all.
        heartbeat.first = heartbeat.first.max(proxy.first_relevant).min(heartbeat.last.next());
        if !message.heartbeat(&heartbeat) {
            message.finish();
            target.send_heartbeat(&heartbeat, out);
        }
        if !is_final {
            self.asked(now);
        }
    }

    /// The number of the first change there ever was.
    pub(in crate::writer) const fn first_number(&self) -> SequenceNumber {
        self.config.limits.numbers_after.next()
    }

    /// A HEARTBEAT that wants an answer of a reader, be it matched or not.
    pub fn question(&mut self, reader: EntityId) -> Heartbeat {
        let last = self.sent_last(true).min(self.sent_last(false));
        Heartbeat {
            reader,
            writer: self.config.guid.entity,
            first: self.history.first().min(last.next()),
            last,
            count: self.heartbeat.next_count(),
            final_flag: false,
            liveliness: false,
            group: None,
        }
    }

    /// The timer went off: asks again who owes an answer, of many only those whose time it is. Whether anybody was asked.
    pub(in crate::writer) fn ask_again(&mut self, now: Now, out: &mut Outbox) -> bool {
        let readers = self.proxies.reliable();
        if readers <= Crowd::PROMPT {
            return self.ask(now, out);
        }
        let pause = self.heartbeat.pause();
        let (mut due, history, pacer) = (0, &self.history, &self.pacer);
        let owes = |reader: &ReaderProxy| {
            reader.is_awaited() && reader.acknowledged < sent_last(history, pacer, reader.class)
        };
        for reader in self.proxies.readers.iter_mut().filter(|reader| owes(reader)) {
            due += usize::from(reader.asked.again(now.mono, pause, readers));
        }
        if 2 * due > readers {
            return self.ask(now, out);
        }
        let asked = due > 0 && self.ask_those(now, out, |reader| reader.asked.at == now.mono);
        if asked {
            self.asked(now);
        }
        asked
    }

    /// The last change that readers on this host, or elsewhere, were sent.
    pub(in crate::writer) fn sent_last(&self, same_host: bool) -> SequenceNumber {
        let class = if same_host { Class::SameHost } else { Class::Remote };
        sent_last(&self.history, &self.pacer, class)
    }
}
