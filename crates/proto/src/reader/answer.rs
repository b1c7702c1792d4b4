//! What goes back to writers: ACKNACK and NACK_FRAG (RTPS 2.5 §8.4.12.2, §8.4.15).

use super::Reader;
use super::ownership::WriterId;
use super::proxy::Proxy;
use crate::guid::Guid;
use crate::outbox::Outbox;
use crate::seq::{FragmentNumber, FragmentSet, SequenceNumber, SequenceSet};
use crate::time::{Instant, Now};
use crate::tuning::reader::{
    ACKNACK_DATAGRAM_BYTES_MAX, FIRST_ACKNACK_DELAY, FIRST_HEARTBEAT_WITHIN, IN_FLIGHT, NACK_FRAGS_MAX,
    REQUEST_REPEAT_MIN,
};
use crate::vendor::{self, Question};
use crate::wire::{AckNack, NackFrag};

/// An answer is bounded by [`NACK_FRAGS_MAX`] so that it always fits its datagram.
fn fits(written: bool) {
    debug_assert!(written, "an answer outgrew its datagram");
}

/// What is missing from one writer.
struct Wants {
    samples: SequenceSet,
    fragments: Vec<(SequenceNumber, FragmentSet)>,
    /// Fragments are missing that may be on their way.
    in_flight: bool,
}

impl Reader {
    /// Asks a writer that was never heard for a heartbeat: first as its vendor answers at once, else as the
    /// standard writes it (§8.4.12.2.1). What stays silent is asked in the other forms too, in one datagram.
    pub(super) fn probe(&mut self, now: Instant, id: WriterId, out: &mut Outbox) {
        let writers = self.by_guid.len();
        let Some(proxy) = self.proxy_mut(id) else { return };
        let known = vendor::question(proxy.vendor);
        let is_first = proxy.answer.probes == 0;
        proxy.answer.probed(now, writers);
        // A built-in writer of ours tells what it has as it matches; if it matched before, it learns that we
        // did just now.
        let announces_itself = known == Some(Question::Nothing) && self.guid.entity.is_builtin();
        match known {
            Some(Question::Nothing) if is_first && announces_itself => self.send_first_acknack(now, id, out),
            Some(Question::Nothing) => self.request_heartbeat(id, &[Question::Nothing], out),
            Some(question) if is_first => self.request_heartbeat(id, &[question], out),
            None if is_first => self.request_heartbeat(id, &[Question::Nothing], out),
            _ => self.request_heartbeat(id, &[Question::FromZero, Question::Lowest], out),
        }
    }

    /// A writer speaks first: it is asked only when what it says is lost.
    pub(super) fn await_beginning(&mut self, now: Instant, id: WriterId) {
        if let Some(proxy) = self.proxy_mut(id) {
            proxy.answer.probe_at = now.after(FIRST_HEARTBEAT_WITHIN);
        }
    }

    /// Asks a writer how far it is in the numbers of its group, until a heartbeat tells.
    pub(super) fn seek(&mut self, now: Instant, id: WriterId, out: &mut Outbox) {
        let Some(proxy) = self.proxy_mut(id) else { return };
        if proxy.sets.progress.has_announced(proxy.answer.group_probe_number) {
            proxy.answer.group_probe_at = None;
            return;
        }
        proxy.answer.asked_again(now);
        self.request_heartbeat(id, &[Question::Nothing], out);
    }

    /// An ACKNACK that says to a writer that it is matched, and wants no answer soon.
    fn send_first_acknack(&mut self, now: Instant, id: WriterId, out: &mut Outbox) {
        if let Some(proxy) = self.proxy_mut(id) {
            proxy.answer.probe_at = now.after(FIRST_ACKNACK_DELAY);
        }
        self.send_expected(id, &[Question::Nothing], true, out);
    }

    fn request_heartbeat(&mut self, id: WriterId, forms: &[Question], out: &mut Outbox) {
        self.send_expected(id, forms, false, out);
    }

    fn send_expected(&mut self, id: WriterId, forms: &[Question], final_flag: bool, out: &mut Outbox) {
        let reader = self.guid;
        let Some(proxy) = self.proxy_mut(id) else { return };
        let due = proxy.next_timeout();
        let mut message = out.message(reader.prefix, &proxy.locators, ACKNACK_DATAGRAM_BYTES_MAX);
        message.info_destination(proxy.guid.prefix);
        for form in forms {
            let expected = proxy.order.expected();
            let mut missing = SequenceSet::empty(expected);
            match form {
                Question::Nothing => {}
                Question::FromZero => missing = SequenceSet::empty(SequenceNumber(0)),
                Question::Lowest => _ = missing.insert(expected),
            }
            fits(message.acknack(&AckNack {
                reader: reader.entity,
                writer: proxy.guid.entity,
                missing,
                count: proxy.answer.next_acknack_count(),
                final_flag,
                heartbeat: None,
            }));
        }
        message.finish();
        self.wake_at(due);
    }

    /// An ACKNACK for a matched reliable writer that wants an answer and asks for nothing.
    pub fn question(&mut self, writer: Guid) -> Option<AckNack> {
        let id = self.by_guid.get(&writer).copied()?;
        let reader = self.guid;
        let proxy = self.proxy_mut(id).filter(|proxy| proxy.reliable)?;
        Some(AckNack {
            reader: reader.entity,
            writer: writer.entity,
            missing: SequenceSet::empty(proxy.order.expected()),
            count: proxy.answer.next_acknack_count(),
            final_flag: false,
            heartbeat: None,
        })
    }

    /// Answers a writer: what is missing is asked for unless it was a moment ago; when nothing is, an
    /// acknowledgement goes out only if `demanded`.
    pub(super) fn answer(&mut self, now: Instant, id: WriterId, demanded: bool, out: &mut Outbox) {
        let reader = self.guid;
        let Some(proxy) = self.proxy_mut(id) else { return };
        let wants = proxy.wants(now);
        // What one HEARTBEAT alone told is borne out, or not, by the one that answers.
        let is_unconfirmed = proxy.order.is_unconfirmed();
        let demanded = demanded || is_unconfirmed;
        let missing = !wants.samples.is_empty() || !wants.fragments.is_empty();
        if wants.in_flight {
            proxy.answer.owe(now.after(IN_FLIGHT).unwrap_or(now), false);
            if demanded {
                proxy.answer.promised = Some(proxy.heard.last);
            }
        }
        if missing
            && let Some((requested_at, base)) = proxy.answer.requested
            && base == wants.samples.base()
            && let Some(again) = requested_at.after(REQUEST_REPEAT_MIN).filter(|again| *again > now)
        {
            proxy.answer.owe(again, demanded);
        } else if missing || demanded {
            if missing {
                proxy.answer.note_request(now, wants.samples.base());
            }
            let mut message = out.message(reader.prefix, &proxy.locators, ACKNACK_DATAGRAM_BYTES_MAX);
            message.info_destination(proxy.guid.prefix);
            let only_fragments = wants.samples.is_empty() && !demanded;
            if !only_fragments {
                let heartbeat = proxy.answer.request_count.take();
                fits(message.acknack(&AckNack {
                    reader: reader.entity,
                    writer: proxy.guid.entity,
                    count: proxy.answer.next_acknack_count(),
                    // A writer asked to repeat says by a heartbeat when it has; otherwise two polite
                    // peers would answer each other for ever.
                    final_flag: wants.samples.is_empty() && !is_unconfirmed,
                    heartbeat,
                    missing: wants.samples,
                }));
            }
            for (sequence_number, fragments) in &wants.fragments {
                fits(message.nack_frag(&NackFrag {
                    reader: reader.entity,
                    writer: proxy.guid.entity,
                    sequence_number: *sequence_number,
                    missing: *fragments,
                    count: proxy.answer.next_nack_frag_count(),
                }));
            }
            message.finish();
        }
        if !missing {
            proxy.answer.retry_at = None;
        }
        let due = proxy.next_timeout();
        self.wake_at(due);
    }

    /// A sample is complete: acknowledges it if a heartbeat that arrived before its end wanted that.
    pub(super) fn keep_promise(&mut self, now: Instant, id: WriterId, out: &mut Outbox) {
        let Some(proxy) = self.proxy_mut(id) else { return };
        let expected = proxy.order.expected();
        if proxy.answer.promised.take_if(|last| expected > *last).is_some() {
            self.answer(now, id, true, out);
        }
    }

    /// Answers a HEARTBEAT_FRAG: asks for what is missing of one sample.
    pub(super) fn answer_fragments(
        &mut self,
        now: Instant,
        id: WriterId,
        sequence_number: SequenceNumber,
        last: FragmentNumber,
        out: &mut Outbox,
    ) {
        let reader = self.guid;
        let Some(proxy) = self.proxy_mut(id).filter(|proxy| !proxy.blocked) else { return };
        let mut missing = proxy.fragments.missing(sequence_number, last).take(NACK_FRAGS_MAX).peekable();
        if missing.peek().is_none() {
            return;
        }
        let mut message = out.message(reader.prefix, &proxy.locators, ACKNACK_DATAGRAM_BYTES_MAX);
        message.info_destination(proxy.guid.prefix);
        for missing in missing {
            fits(message.nack_frag(&NackFrag {
                reader: reader.entity,
                writer: proxy.guid.entity,
                sequence_number,
                missing,
                count: proxy.answer.next_nack_frag_count(),
            }));
        }
        message.finish();
        proxy.answer.requested = Some((now, proxy.order.expected()));
    }

    /// Leases, probes and owed answers that are due.
    pub(super) fn proxies_timeout(&mut self, now: Now, out: &mut Outbox) {
        self.proxies_due = None;
        self.finish_departures(now, out);
        for index in 0..self.proxies.len() {
            let id = index as WriterId;
            let Some(proxy) = self.proxy_mut(id) else { continue };
            let due = |at: Option<Instant>| at.is_some_and(|at| at <= now.mono);
            let answer = due(proxy.answer.due).then(|| {
                proxy.answer.due = None;
                std::mem::take(&mut proxy.answer.demanded)
            });
            let probe = due(proxy.answer.probe_at);
            let seek = due(proxy.answer.group_probe_at);
            let retry = due(proxy.answer.retry_at);
            if retry {
                proxy.answer.retry_at = None;
            }
            let dead = proxy.lease.expire(now.mono);
            if answer.is_some() || retry {
                self.answer(now.mono, id, answer.unwrap_or(false), out);
            }
            if probe {
                self.probe(now.mono, id, out);
            }
            if seek {
                self.seek(now.mono, id, out);
            }
            if self.proxy(id).is_some_and(|proxy| proxy.lease.leaves) {
                self.leave_instances(now, id, out);
            }
            if dead {
                self.writer_dead(id, out);
            }
            self.wake_at(self.proxy(id).and_then(Proxy::next_timeout));
        }
    }
}

impl Proxy {
    /// What is missing of all that the writer announced.
    fn wants(&self, now: Instant) -> Wants {
        let last = self.known_last(now);
        if self.blocked {
            // Nothing goes on before the application takes. What came now would be thrown away once the
            // buffers are full, asked for again, repeated, and so on for ever.
            let samples = SequenceSet::empty(self.order.expected());
            return Wants { samples, fragments: Vec::new(), in_flight: false };
        }
        let samples = self.order.missing(last, |number| self.fragments.contains(number));
        // Only the sample that is arriving is given time: others would starve in a steady stream.
        let arriving = self
            .fragment_arrival
            .filter(|(arrival, _)| arrival.after(IN_FLIGHT).is_some_and(|quiet| now < quiet))
            .map(|(_, number)| number);
        let fragments = self
            .fragments
            .incomplete(last)
            .filter(|number| *number >= self.order.expected() && Some(*number) != arriving)
            .flat_map(|number| {
                self.fragments.missing(number, FragmentNumber::MAX).map(move |it| (number, it))
            })
            .take(NACK_FRAGS_MAX)
            .collect();
        let in_flight = arriving.is_some_and(|number| number <= last && self.fragments.contains(number));
        Wants { samples, fragments, in_flight }
    }
}
