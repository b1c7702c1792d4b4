//! The packetizer: what comes next of some changes goes into a datagram, be they new, held, cut, queued,
//! asked for again or history for a late joiner. Coalescing, filled datagrams and packed fragments are what
//! it does with the room there is.

use crate::seq::{FragmentNumber, SequenceNumber};
use crate::time::{Instant, Now};

use super::packet::Packet;
use super::submessages::encode;
use crate::tuning::writer::{FULL_BATCH_BYTES, FULL_BATCH_SAMPLES, UNWANTED_SCANNED_MAX};
use crate::writer::WriterConfig;
use crate::writer::flow::span::Span;
use crate::writer::record::change::Change;
use crate::writer::record::history::History;
use crate::writer::record::instances::Instances;
use crate::writer::routes::gap::GapBuilder;
use crate::writer::routes::proxies::Proxies;
use crate::writer::routes::proxy::ReaderProxy;
use crate::writer::routes::target::Target;

/// Whether a batch of so many octets and samples is full.
pub(crate) const fn is_full(bytes: usize, samples: usize, bytes_max: usize) -> bool {
    bytes > bytes_max || bytes >= FULL_BATCH_BYTES && samples >= FULL_BATCH_SAMPLES
}

/// What the packetizer reads.
#[derive(Debug)]
pub(crate) struct Packetizer<'a> {
    pub(crate) history: &'a History,
    pub(crate) instances: &'a Instances,
    pub(crate) proxies: &'a Proxies,
    pub(crate) config: &'a WriterConfig,
    /// Inline QoS of the change being sent; kept for its memory.
    pub(crate) inline_qos: &'a mut Vec<u8>,
}

/// For whom, and how, a span is put into datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules<'a> {
    /// One reader, now: it gets what is for it, and is told of what is not.
    pub(crate) reader: Option<(&'a ReaderProxy, Instant)>,
    /// The first change, if it is at hand: the history may have let go of it.
    pub(crate) begun: Option<Change<'a>>,
    /// Fragments to put at most; `None`: as many as there is room for.
    pub(crate) fragments_max: Option<FragmentNumber>,
    /// A sample that the rest of a datagram of up to so many octets has no room for is cut there.
    pub(crate) fills_bytes: Option<usize>,
    /// Every sample has a datagram of its own.
    pub(crate) is_alone: bool,
}

/// What was put into a datagram.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filled {
    /// The last change of which the end was.
    pub(crate) ended: Option<SequenceNumber>,
    /// The change of which fragments were, the first of these, and the one after the last.
    pub(crate) cut: Option<(SequenceNumber, FragmentNumber, FragmentNumber)>,
    /// Octets of payload.
    pub(crate) payload_bytes: usize,
    /// Those of them that go beside it.
    pub(crate) attached_bytes: usize,
    /// Where that change shares datagrams with the next.
    pub(crate) shares: bool,
}

/// How far one change got.
enum Put {
    Whole,
    /// Its last fragment.
    End,
    /// There was no more room.
    Full,
}

impl Packetizer<'_> {
    /// Adds as much of a span to a datagram as it takes, and takes that out of the span. Stops at the end of
    /// a change that was cut, after which others may follow in the same datagram.
    pub(crate) fn fill(&mut self, packet: &mut Packet<'_, '_>, span: &mut Span, rules: &Rules<'_>) -> Filled {
        let mut filled = Filled::default();
        let mut samples = 0;
        while !span.is_over() {
            if let Some((reader, now)) = rules.reader
                && !span.is_inside()
                && self.skip(packet, span, reader, now)
            {
                continue;
            }
            let number = span.number;
            let known = rules.begun.filter(|_| samples == 0);
            let Some(change) = known.or_else(|| self.history.get(number, self.instances)) else { break };
            match self.put(packet, span, &change, rules, &mut filled) {
                Put::Whole => {
                    span.advance(number.next());
                    (filled.ended, samples) = (Some(number), samples + 1);
                    if rules.is_alone || is_full(packet.len(), samples, self.config.limits.batch_bytes) {
                        break;
                    }
                }
                Put::End => {
                    span.advance(number.next());
                    filled.ended = Some(number);
                    filled.shares = packet.target.shares(change.payload.len());
                    break;
                }
                Put::Full => break,
            }
        }
        filled
    }

    /// Passes over what is not for a reader: whether there was anything.
    fn skip(&self, packet: &mut Packet<'_, '_>, span: &mut Span, reader: &ReaderProxy, now: Instant) -> bool {
        let next = span.number;
        let (held, filtered) = self.next_wanted(reader, next, span.last);
        if held > next {
            if reader.reliable {
                packet.gap(&GapBuilder::range(next, held).filtering(filtered));
            }
            span.advance(held);
            return true;
        }
        let is_expired = self.history.get(next, self.instances).is_some_and(|change| change.is_expired(now));
        if is_expired {
            span.advance(next.next());
        }
        is_expired
    }

    /// Adds the first change of a span, or its next fragments.
    fn put(
        &mut self,
        packet: &mut Packet<'_, '_>,
        span: &mut Span,
        change: &Change<'_>,
        rules: &Rules<'_>,
        filled: &mut Filled,
    ) -> Put {
        let target = packet.target;
        let payload_bytes = change.payload.len();
        let inline_qos_bytes = encode(self.config, self.proxies, change, self.inline_qos);
        let mut most = rules.fragments_max.unwrap_or(FragmentNumber::MAX);
        if !span.is_inside() && target.fits(payload_bytes, inline_qos_bytes) {
            let has_room = rules
                .fills_bytes
                .is_none_or(|bytes_max| target.fits_within(payload_bytes, packet.room_bytes(bytes_max)));
            if (has_room || packet.is_empty()) && packet.sample(span.number, change, self.inline_qos) {
                filled.payload_bytes += payload_bytes;
                filled.attached_bytes += target.attached_bytes(payload_bytes);
                return Put::Whole;
            }
            let Some(bytes_max) = rules.fills_bytes else { return Put::Full };
            most = target.fragments_within(packet.room_bytes(bytes_max));
        } else if filled.ended.is_some() && filled.cut.is_none() {
            // Whole samples leave before one that is cut.
            return Put::Full;
        }
        let total = target.fragments(payload_bytes, inline_qos_bytes);
        while let Some((first, run)) = span.next_fragments().filter(|(first, _)| *first <= total) {
            let is_empty = packet.is_empty();
            let put = packet.fragments(span.number, change, (first, run.min(most)), self.inline_qos);
            // One that no datagram takes is passed over.
            span.fragment = first + if is_empty { put.max(1) } else { put };
            let fragment_bytes = usize::from(target.fragment_bytes(payload_bytes, inline_qos_bytes));
            let from = (first as usize - 1) * fragment_bytes;
            filled.payload_bytes += (put as usize * fragment_bytes).min(payload_bytes.saturating_sub(from));
            let begin = filled.cut.map_or(first, |(_, begin, _)| begin);
            filled.cut = Some((span.number, begin, span.fragment));
            if put < run {
                return if span.fragment > total { Put::End } else { Put::Full };
            }
        }
        Put::End
    }

    /// Whether a change can be sent to the reader: it is for it, held, and of use.
    pub(crate) fn is_held_for(&self, now: Now, reader: &ReaderProxy, number: SequenceNumber) -> bool {
        number >= reader.first_relevant
            && self.history.get(number, self.instances).is_some_and(|change| {
                !change.is_expired(now.mono) && self.proxies.wants(reader, number, &change)
            })
    }

    /// The first after a change that is not there for the reader which is held, or was refused by its filter.
    pub(crate) fn gone_until(&self, reader: &ReaderProxy, number: SequenceNumber) -> SequenceNumber {
        let refused = reader.refused.start_after(number).or(reader.passed_over);
        let held = self.history.next_held(number.next()).max(reader.first_relevant);
        refused.map_or(held, |refused| refused.min(held))
    }

    /// If a change does not pass the reader's content filter: the first after it that may, or is beyond
    /// `sent`. The history may have let go of it.
    pub(crate) fn refused_until(
        &self,
        reader: &ReaderProxy,
        number: SequenceNumber,
        sent: SequenceNumber,
    ) -> Option<SequenceNumber> {
        if reader.passed_over.is_some_and(|from| from <= number) {
            return Some(sent.next());
        }
        let is_refused = || {
            let change = self.history.get(number, self.instances).filter(|_| number >= reader.first_relevant);
            change.is_some_and(|change| !self.proxies.wants(reader, number, &change))
        };
        reader.refused.end_covering(number).or_else(|| is_refused().then(|| number.next()))
    }

    /// Whether a change goes whole.
    pub(crate) fn fits(&mut self, target: &Target<'_>, change: &Change<'_>) -> bool {
        target.fits(change.payload.len(), encode(self.config, self.proxies, change, self.inline_qos))
    }

    /// The first change from `next` to `last` that is held and wanted by the reader, or a number below which
    /// there is none; and how many of those before it are held, but filtered out.
    fn next_wanted(
        &self,
        reader: &ReaderProxy,
        next: SequenceNumber,
        last: SequenceNumber,
    ) -> (SequenceNumber, u64) {
        let mut number = next;
        for filtered in 0..UNWANTED_SCANNED_MAX as u64 {
            number = self.history.next_held(number).min(last.next());
            let change = self.history.get(number, self.instances).filter(|_| number <= last);
            if change.is_none_or(|change| self.proxies.wants(reader, number, &change)) {
                return (number, filtered);
            }
            number = number.next();
        }
        (number, UNWANTED_SCANNED_MAX as u64)
    }
}
