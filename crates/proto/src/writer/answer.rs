//! Answering readers: acknowledgements, requests for changes and for fragments (RTPS 2.5 §8.4.9.2).
//! The work per submessage is bounded by its bitmap of 256 numbers.

use crate::guid::Guid;
use crate::outbox::Outbox;
use crate::seq::{FragmentNumber, FragmentSet, SequenceNumber};
use crate::sources::Sender;
use crate::stats::DropReason;
use crate::time::{Duration, Instant, Now};
use crate::tuning::writer::FRAGMENT_BYTES_SENT_MIN;
use crate::wire::{AckNack, NackFrag};

use super::Writer;
use super::compose::acks::send_control;
use super::compose::packet::Packet;
use super::compose::packetizer::{Packetizer, Rules};
use super::compose::submessages::{encode, heartbeat_to, sent_fragments, sent_last};
use super::flow::delay::LastRetransmitted;
use super::flow::retransmission::Retransmission;
use super::flow::route_kind::RouteKind;
use super::flow::span::Span;
use super::routes::gap::GapBuilder;
use super::routes::proxies::News;
use super::routes::proxy::{ReaderProxy, is_news};

/// What became of the requests of one ACKNACK.
#[derive(Clone, Copy, Debug, Default)]
struct Answer {
    /// Changes or gaps were sent.
    sent: bool,
    /// A large change was queued.
    queued: bool,
    /// Something must be asked for again later.
    deferred: bool,
    /// Something was asked for too often, and must be when the timer goes off.
    refused: bool,
}

impl Writer {
    /// What is asked for again in this time is not repeated: the requests crossed.
    fn crossing(&self) -> Duration {
        self.heartbeat.crossing(self.config.limits.repeat_pause)
    }

    /// An ACKNACK of a matched reader.
    ///
    /// # Errors
    /// Why it was dropped; counted already.
    pub fn on_acknack(
        &mut self,
        now: Now,
        sender: Sender,
        acknack: &AckNack,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        self.accept_acknack(now, sender, acknack, out).inspect_err(|reason| self.drops.count(*reason))
    }

    /// A NACK_FRAG of a matched reader.
    ///
    /// # Errors
    /// Why it was dropped; counted already.
    pub fn on_nack_frag(
        &mut self,
        now: Now,
        sender: Sender,
        nack: &NackFrag,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        self.accept_nack_frag(now, sender, nack, out).inspect_err(|reason| self.drops.count(*reason))
    }

    /// Whether every reliable reader that was matched when `up_to` was written has acknowledged it, strangers
    /// apart, which have answered nothing since their match and for
    /// [`super::WriterLimits::strangers_wait_max`].
    #[must_use]
    pub fn is_acknowledged(&self, now: Instant, up_to: SequenceNumber) -> bool {
        // The lowest of all tells it in most cases without looking at each.
        self.proxies.acknowledged().is_none_or(|lowest| lowest >= up_to)
            || self.proxies.iter().all(|reader| {
                !reader.reliable
                    || reader.awaited() >= up_to
                    || reader.silence.is_long(now, &self.config.limits)
            })
    }

    /// Whether a reader has acknowledged all that was written; `None` of one that is not matched.
    #[must_use]
    pub fn is_in_step(&self, reader: Guid) -> Option<bool> {
        self.proxies.get(reader).map(|proxy| proxy.acknowledged >= self.history.last())
    }

    /// The number of the last change, or the last that was left out.
    #[must_use]
    pub const fn last_number(&self) -> SequenceNumber {
        self.history.last()
    }

    /// The next change comes after this number; what is between was never written.
    pub fn leave_out_numbers(&mut self, up_to: SequenceNumber) {
        self.history.leave_out(up_to);
    }

    /// How long it took lately until the last of many readers had answered.
    #[must_use]
    pub const fn answers_take(&self) -> Duration {
        self.heartbeat.answers_take()
    }

    fn accept_acknack(
        &mut self,
        now: Now,
        sender: Sender,
        acknack: &AckNack,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let last = self.history.last();
        let proxy = self.proxies.speaker(&sender)?;
        let reader = sender.guid;
        // OpenDDS and Connext begin with a base of 0.
        let base = acknack.missing.base();
        if base.0 < 0 || base > last.next() {
            return Err(DropReason::ImplausibleSequence);
        }
        if !is_news(&mut proxy.acknack_count, acknack.count) {
            return Err(DropReason::StaleCount);
        }
        if self.proxies.meets() && !acknack.final_flag {
            // It asks as it comes.
            self.meet_one(reader, out);
        }
        self.proxies.heard(reader);
        let proxy = self.proxies.get_mut(reader).ok_or(DropReason::NotMatched)?;
        if base.0 > 0 {
            proxy.confirmed = base.previous().max(self.config.limits.numbers_after);
            proxy.refused.confirm(base.previous());
        }
        // What is not final and tells nothing new asks, which is no answer.
        let answers = acknack.final_flag || base.previous() > proxy.acknowledged;
        if answers && let Some(took) = proxy.request.answered(now.mono) {
            self.heartbeat.one_answered(took);
        }
        let has = self.proxies.get(reader).map(|proxy| self.acknowledged_by(proxy, base)).unwrap_or_default();
        let news = self.acknowledge(reader, has);
        if news != News::None {
            let lowest = self.proxies.acknowledged().unwrap_or(last);
            self.heartbeat.progressed(now.mono, self.proxies.owing(last), lowest);
        }
        if news == News::OfAll {
            let lowest = self.proxies.acknowledged().unwrap_or(last);
            self.routes.of_mut(RouteKind::SameHost).controller.acknowledged(lowest);
            // Who writes in a flow, or waits to go on, lets go of the changes, which are in the caches of
            // that core.
            if !self.blocked && !self.batch.is_flowing(now.mono, &self.config.limits) {
                self.settle(now);
            }
            if !self.blocked || self.has_room_to_go_on() {
                self.progress(out);
            }
        } else if news == News::None && base.0 > 0 && self.proxies.rewind(now.mono, reader, has) {
            // It owes an acknowledgement again: without the timer, one lost repetition would be the last.
            // A base of 0 acknowledges nothing and takes nothing back: it only asks for a heartbeat.
            self.settle(now);
        }
        self.note_path(now, reader, has, acknack);
        self.note_ring(now, reader, has, acknack);
        self.routes.refresh(now.mono);
        let gaps = self.send_gaps(now, reader, acknack, out);
        let mut answer = self.retransmit_missing(now, reader, acknack, out);
        answer.sent |= gaps;
        if answer.sent || answer.queued {
            self.heartbeat.heard(now.mono);
        }
        if answer.deferred {
            self.ask_soon(now, reader, self.routes.burst_end());
        }
        if answer.refused {
            self.drops.count(DropReason::RepairBudget);
        }
        if answer.sent || !acknack.final_flag && !answer.deferred && !answer.refused {
            self.answer_with_heartbeat(now, reader, answer.sent, out);
        }
        self.pump(now, out);
        Ok(())
    }

    /// Tells the reader which of the changes it asks for are gone, or never were for it; whether there
    /// were any.
    fn send_gaps(&mut self, now: Now, reader: Guid, acknack: &AckNack, out: &mut Outbox) -> bool {
        let (packetizer, routes) = self.packetizer();
        let Some(proxy) = packetizer.proxies.get(reader) else { return false };
        let target = routes.target_to(proxy);
        let sent = sent_last(packetizer.history, routes, proxy.kind);
        // Of what never was HEARTBEATs tell.
        let mut gone_below = packetizer.config.limits.numbers_after.next();
        let mut send = |(gap, of_refused): (GapBuilder, bool)| {
            let gap = if of_refused { gap.of_refused() } else { gap };
            send_control(target, Some(&gap), None, out);
        };
        let mut gap: Option<(GapBuilder, bool)> = None;
        for number in acknack.missing.iter() {
            if number < gone_below || number > sent || packetizer.is_held_for(now, proxy, number) {
                continue;
            }
            // Whole ranges go into one GAP, also beyond what was asked for; what a filter refused into others
            // than what is gone, since a GAP tells only how many of its changes are of which.
            let refused_until = packetizer.refused_until(proxy, number, sent);
            gone_below =
                refused_until.unwrap_or_else(|| packetizer.gone_until(proxy, number)).min(sent.next());
            let rest = match &mut gap {
                Some((gap, of_refused)) if *of_refused == refused_until.is_some() => {
                    gap.add(number, gone_below)
                }
                _ => Some((number, gone_below)),
            };
            if let Some((start, end)) = rest
                && let Some(full) = gap.replace((GapBuilder::range(start, end), refused_until.is_some()))
            {
                send(full);
            }
        }
        gap.map(send).is_some()
    }

    /// Repeats the changes the reader misses, as far as the burst and the window allow.
    fn retransmit_missing(&mut self, now: Now, reader: Guid, acknack: &AckNack, out: &mut Outbox) -> Answer {
        let mut answer = Answer::default();
        let crossing = self.crossing();
        let Self { history, instances, proxies, config, inline_qos, routes, retransmissions, .. } = self;
        let Some(proxy) = proxies.get(reader) else { return answer };
        let (kind, is_waited_for) = (proxy.kind, proxy.is_waited_for());
        let sent = sent_last(history, routes, kind);
        let (mut recent, mut last, mut repair) = (proxy.recent, proxy.last_retransmitted, proxy.repair);
        let mut packetizer = Packetizer { history, instances, proxies, config, inline_qos };
        let mut packet = Packet::open(routes.target_to(proxy), out);
        for number in acknack.missing.iter().take_while(|number| *number <= sent) {
            if !packetizer.is_held_for(now, proxy, number) || retransmissions.cover(reader, number, 1) {
                continue;
            }
            let Some(change) = history.get(number, instances) else { continue };
            let bytes = change.payload.len();
            let is_cut = !packetizer.fits(&packet.target, &change);
            let controller = &mut routes.of_mut(kind).controller;
            let is_behind = controller.is_windowed() && retransmissions.has_before(reader, number);
            let is_full = is_cut && retransmissions.len() >= config.limits.retransmissions_max;
            if is_behind || is_full || !controller.may_send() {
                controller.block(now.mono);
                answer.deferred = true;
                break;
            }
            if recent.note(number, now.mono, crossing) {
                answer.deferred = true;
                continue;
            }
            if !repair.allows(now.mono, number, bytes, bytes) {
                answer.refused = true;
                continue;
            }
            if let Some(delay) = controller.delay_mut() {
                if is_waited_for && delay.is_repeated(number, last) {
                    delay.lost(number, last, bytes);
                }
                delay.repeats(number, &mut last);
            }
            let mut span = Span::new(number, number);
            if is_cut {
                retransmissions.queue(Retransmission { reader, span }, controller.is_windowed());
                answer.queued = true;
                continue;
            }
            let rules = Rules { begun: Some(change), ..Rules::default() };
            let mut filled = packetizer.fill(&mut packet, &mut span, &rules);
            if !span.is_over() {
                controller.sent_again((packet.len(), 1));
                packet.next();
                filled = packetizer.fill(&mut packet, &mut span, &rules);
            }
            controller.lent_again(filled.attached_bytes);
            answer.sent = true;
        }
        if !packet.is_empty() {
            routes.of_mut(kind).controller.sent_again((packet.len(), 1));
        }
        packet.seal();
        if let Some(proxy) = proxies.get_mut(reader) {
            (proxy.recent, proxy.last_retransmitted, proxy.repair) = (recent, last, repair);
        }
        answer
    }

    /// A HEARTBEAT in answer to an ACKNACK. It wants an answer in turn only while the reader owes one,
    /// and not again at once: a peer that answers every heartbeat must not make a loop.
    fn answer_with_heartbeat(&mut self, now: Now, reader: Guid, sent: bool, out: &mut Outbox) {
        let Some(proxy) = self.proxies.get_mut(reader) else { return };
        let pause = self.config.limits.repeat_pause;
        let recent = proxy.answered.is_some_and(|answered| now.mono.since(answered) < pause);
        let owes = proxy.acknowledged < sent_last(&self.history, &self.routes, proxy.kind);
        if owes && recent && !sent {
            return;
        }
        if owes {
            proxy.answered = Some(now.mono);
            self.heartbeat.requested_one(now.mono);
        }
        let Some(proxy) = self.proxies.get_mut(reader) else { return };
        let gap = proxy.close_gap(sent_last(&self.history, &self.routes, proxy.kind).next());
        let target = self.routes.target_to(proxy);
        let heartbeat = heartbeat_to(&mut self.heartbeat, &self.history, &self.routes, proxy, &target, !owes);
        send_control(target, gap.as_ref(), Some(&heartbeat), out);
        if owes && target.kind == RouteKind::Remote {
            self.note_ack_request(now, heartbeat.count);
        }
    }

    fn accept_nack_frag(
        &mut self,
        now: Now,
        sender: Sender,
        nack: &NackFrag,
        out: &mut Outbox,
    ) -> Result<(), DropReason> {
        let number = nack.sequence_number;
        let proxy = self.proxies.speaker(&sender)?;
        let reader = sender.guid;
        if number.0 < 1 || number > self.history.last() {
            return Err(DropReason::ImplausibleSequence);
        }
        if !is_news(&mut proxy.nack_frag_count, nack.count) {
            return Err(DropReason::StaleCount);
        }
        self.proxies.heard(reader);
        let Some(proxy) = self.proxies.get(reader) else { return Ok(()) };
        let target = self.routes.target_to(proxy);
        let relevant = number >= proxy.first_relevant;
        let held = self.history.get(number, &self.instances).filter(|change| {
            relevant && !change.is_expired(now.mono) && self.proxies.wants(proxy, number, change)
        });
        let Some(change) = held else {
            send_control(target, Some(&GapBuilder::range(number, number.next())), None, out);
            return Ok(());
        };
        let inline_qos = encode(&self.config, &self.proxies, &change, &mut self.inline_qos);
        let sent = sent_fragments(&self.routes, &target, number, (change.payload.len(), inline_qos));
        let fragments = target.fragments(change.payload.len(), inline_qos);
        let (kind, fragment_bytes) =
            (target.kind, usize::from(target.fragment_bytes(change.payload.len(), inline_qos)));
        let whole = target.fits(change.payload.len(), inline_qos);
        let plausible =
            nack.missing.base() as usize <= change.payload.len().div_ceil(FRAGMENT_BYTES_SENT_MIN);
        if sent == fragments && plausible && (whole || nack.missing.base() > fragments) {
            self.retransmit_recut(now, reader, number);
            self.pump(now, out);
            return Ok(());
        }
        let sizes = (change.payload.len(), fragment_bytes);
        let (wanted, deferred) = self.wanted_fragments(now, reader, kind, nack, (sent, sizes));
        if !wanted.is_empty() {
            self.heartbeat.heard(now.mono);
            if let Some(proxy) = self.proxies.get_mut(reader).filter(|proxy| proxy.is_waited_for()) {
                let bytes = wanted.iter().count() * fragment_bytes;
                if let Some(delay) = self.routes.of_mut(kind).controller.delay_mut() {
                    delay.lost(number, proxy.last_retransmitted, bytes);
                    delay.repeats(number, &mut proxy.last_retransmitted);
                }
            }
            let span = Span { fragment: wanted.base(), wanted: Some(wanted), ..Span::new(number, number) };
            let is_windowed = self.routes.of(kind).controller.is_windowed();
            self.retransmissions.queue(Retransmission { reader, span }, is_windowed);
        } else if deferred {
            self.ask_soon(now, reader, now.mono);
        }
        self.pump(now, out);
        Ok(())
    }

    /// What a reader asked for was left out: it is asked again soon, but not before a time. While answers
    /// must make room, its route asks as often as can be of use.
    fn ask_soon(&mut self, now: Now, reader: Guid, not_before: Instant) {
        let kind = self.proxies.get(reader).map(|proxy| proxy.kind);
        if !kind.is_some_and(|kind| self.routes.of(kind).controller.waits_for_answers()) {
            let later = now.mono.after(self.crossing()).unwrap_or(now.mono);
            self.heartbeat.heard(now.mono);
            self.heartbeat.bring_forward(later.max(not_before));
        }
    }

    /// Takes over what a reader has.
    fn acknowledge(&mut self, reader: Guid, has: SequenceNumber) -> News {
        let usual_bytes = self.history.pending_bytes() / self.history.pending().max(1);
        if let Some(proxy) = self.proxies.get_mut(reader) {
            proxy.repair.acknowledged(has, usual_bytes);
        }
        self.proxies.acknowledge(reader, has)
    }

    /// The fragments of those asked for that are repeated now, and whether others must be asked for again
    /// soon: `sent` were sent of a change of so many octets, in fragments of so many.
    fn wanted_fragments(
        &mut self,
        now: Now,
        reader: Guid,
        kind: RouteKind,
        nack: &NackFrag,
        (sent, (change_bytes, fragment_bytes)): (FragmentNumber, (usize, usize)),
    ) -> (FragmentSet, bool) {
        let number = nack.sequence_number;
        let crossing = self.crossing();
        let mut wanted = FragmentSet::empty(nack.missing.base().max(1));
        if self.retransmissions.len() >= self.config.limits.retransmissions_max
            || self.routes.of(kind).controller.is_windowed()
                && self.retransmissions.has_before(reader, number)
        {
            return (wanted, true);
        }
        let Some(proxy) = self.proxies.get_mut(reader) else { return (wanted, false) };
        proxy.repair.has_fragments(number, nack.missing.base().min(sent), fragment_bytes);
        let (mut deferred, mut refused) = (false, false);
        for fragment in nack.missing.iter().filter(|fragment| *fragment >= 1 && *fragment <= sent) {
            if self.retransmissions.cover(reader, number, fragment) {
                continue;
            }
            if proxy.recent_fragments.note((number, fragment), now.mono, crossing) {
                deferred = true;
            } else if proxy.repair.allows(now.mono, number, change_bytes, fragment_bytes) {
                wanted.insert(fragment);
            } else {
                refused = true;
            }
        }
        if refused {
            self.drops.count(DropReason::RepairBudget);
        }
        (wanted, deferred)
    }

    /// A reader answered that it has all up to a change. If it is on another host, that tells of the path to
    /// it.
    fn note_path(&mut self, now: Now, reader: Guid, has: SequenceNumber, acknack: &AckNack) {
        let Some(proxy) = self.proxies.get(reader).filter(|proxy| proxy.kind == RouteKind::Remote) else {
            return;
        };
        let known = has.max(acknack.missing.iter().last().unwrap_or_default()).min(self.history.last());
        let Some(delay) = self.routes.delay_mut() else { return };
        let Some(sample) = delay.ack_sample(acknack.heartbeat, proxy.echoes_counts(), known) else { return };
        let counted = proxy.losses_counted;
        if proxy.is_waited_for() && sample.last > counted {
            let lost = acknack.missing.iter().filter(|number| *number > counted && *number <= sample.last);
            let changes =
                lost.filter_map(|number| self.history.get(number, &self.instances).map(|it| (number, it)));
            changes.for_each(|(number, change)| {
                delay.lost(number, LastRetransmitted::default(), change.payload.len())
            });
        }
        let Some(proxy) = self.proxies.get_mut(reader) else { return };
        proxy.losses_counted = counted.max(sample.last);
        let rtt = sample.asked.map(|asked| proxy.shortest.rtt(now.mono, now.mono.since(asked)));
        let (delivered, of_all) = (sample.delivered, delay.delivered_bytes());
        self.proxies.delivered_to(reader, delivered, of_all, acknack.heartbeat.is_some());
        self.note_delivered(now, rtt);
    }

    /// A reader that is reached by memory has read what it acknowledges, and what it says it misses was lost:
    /// nothing of that is in its ring any more.
    fn note_ring(&mut self, now: Now, reader: Guid, has: SequenceNumber, acknack: &AckNack) {
        let of_memory = |reader: &ReaderProxy| reader.kind == RouteKind::Memory;
        let Some(proxy) = self.proxies.get_mut(reader).filter(|it| of_memory(it)) else { return };
        let known = has.max(acknack.missing.iter().last().unwrap_or_default()).min(self.history.last());
        proxy.read = proxy.read.max(known);
        let awaited = self.proxies.iter().filter(|it| of_memory(it) && it.is_awaited());
        let lowest = awaited.map(|it| it.read.max(it.acknowledged)).min().unwrap_or(known);
        self.routes.of_mut(RouteKind::Memory).controller.read(now.mono, lowest);
    }

    /// A reader lacks fragments of a change that is not cut like that any more: the way to it has changed
    /// since it got the first. It is sent the whole change.
    fn retransmit_recut(&mut self, now: Now, reader: Guid, number: SequenceNumber) {
        let pause = self.crossing();
        let full = self.retransmissions.len() >= self.config.limits.retransmissions_max;
        let bytes = self.history.get(number, &self.instances).map_or(0, |change| change.payload.len());
        let Some(proxy) = self.proxies.get_mut(reader) else { return };
        if full || proxy.recent.note(number, now.mono, pause) {
            self.ask_soon(now, reader, now.mono);
        } else if !proxy.repair.allows(now.mono, number, bytes, bytes) {
            self.drops.count(DropReason::RepairBudget);
        } else if !self.retransmissions.cover(reader, number, 1) {
            self.retransmissions.push_back(Retransmission { reader, span: Span::new(number, number) });
        }
    }
}
