//! The content filters that readers announced, and what they say about a change.

use std::collections::VecDeque;

use crate::filter::PayloadFilter;
use crate::payload::PayloadView;
use crate::seq::SequenceNumber;
use crate::wire::FilterSignature;
use crate::wire::content_filter::append_content_filter_info;

use crate::tuning::writer::{FILTER_STEPS_MAX, FILTERS_MAX, REFUSED_RANGES_MAX};
use crate::writer::record::change::{Change, ChangeKind, Marks, Verdict};

/// A filter that readers announced.
#[derive(Debug)]
struct Entry {
    signature: FilterSignature,
    filter: PayloadFilter,
    readers: usize,
    /// Changes up to this one were written before the filter was here.
    since: SequenceNumber,
}

/// The filters of all readers, each once.
#[derive(Debug, Default)]
pub(crate) struct Filters {
    entries: Vec<Option<Entry>>,
    /// Readers with a filter.
    pub(crate) readers: usize,
}

/// Ranges of changes, without their ends, of which a reader was told that its filter refused them, as long as
/// it may not have heard that. The history may have let go of them, and what is gone without that word counts
/// as lost. Of more ranges than there is room for the oldest are forgotten.
#[derive(Debug, Default)]
pub(crate) struct Refused(VecDeque<(SequenceNumber, SequenceNumber)>);

impl Refused {
    pub(crate) fn add(&mut self, start: SequenceNumber, end: SequenceNumber) {
        if let Some((_, last)) = self.0.back_mut().filter(|(_, last)| *last == start) {
            *last = end;
            return;
        }
        if self.0.len() >= REFUSED_RANGES_MAX {
            self.0.pop_front();
        }
        self.0.push_back((start, end));
    }

    /// The reader knows of all changes up to this one.
    pub(crate) fn confirm(&mut self, up_to: SequenceNumber) {
        while self.0.pop_front_if(|(_, end)| *end <= up_to.next()).is_some() {}
    }

    /// The end of the range that a change is in.
    pub(crate) fn end_covering(&self, number: SequenceNumber) -> Option<SequenceNumber> {
        let at = self.0.partition_point(|(_, end)| *end <= number);
        self.0.get(at).filter(|(start, _)| *start <= number).map(|(_, end)| *end)
    }

    /// The start of the next range.
    pub(crate) fn start_after(&self, number: SequenceNumber) -> Option<SequenceNumber> {
        let at = self.0.partition_point(|(start, _)| *start <= number);
        self.0.get(at).map(|(start, _)| *start)
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Entry {
    /// Whether a sample is worth the look, and fails it.
    fn refuses(&self, payload: PayloadView<'_>) -> bool {
        self.evaluates(payload) && !self.filter.passes(payload.as_slice())
    }

    fn evaluates(&self, payload: PayloadView<'_>) -> bool {
        self.filter.is_affordable(payload.as_slice(), FILTER_STEPS_MAX)
    }
}

impl Filters {
    pub(crate) fn acquire(
        &mut self,
        signature: FilterSignature,
        since: SequenceNumber,
        compile: impl FnOnce() -> Option<PayloadFilter>,
    ) -> Option<usize> {
        let known = |entry: &&mut Option<Entry>| entry.as_ref().is_some_and(|it| it.signature == signature);
        let slot = match self.entries.iter_mut().enumerate().find(|(_, entry)| known(entry)) {
            Some((slot, Some(entry))) => {
                entry.readers += 1;
                slot
            }
            _ => {
                let free = self.entries.iter().position(Option::is_none).unwrap_or(self.entries.len());
                let entry =
                    Entry { signature, filter: (free < FILTERS_MAX).then(compile)??, readers: 1, since };
                match self.entries.get_mut(free) {
                    Some(place) => *place = Some(entry),
                    None => self.entries.push(Some(entry)),
                }
                free
            }
        };
        self.readers += 1;
        Some(slot)
    }

    /// Different filters, for tests.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.entries.iter().flatten().count()
    }

    pub(crate) fn release(&mut self, slot: usize) {
        let Some(place) = self.entries.get_mut(slot) else { return };
        let Some(entry) = place else { return };
        entry.readers -= 1;
        self.readers -= 1;
        if entry.readers == 0 {
            *place = None;
        }
    }

    pub(crate) fn signature(&self, slot: usize) -> Option<FilterSignature> {
        self.entries.get(slot)?.as_ref().map(|entry| entry.signature)
    }

    /// Asks every filter once.
    pub(crate) fn evaluate(&self, payload: PayloadView<'_>) -> Verdict {
        let refusing = self
            .entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.as_ref().is_some_and(|entry| entry.refuses(payload)));
        Verdict(refusing.fold(u32::MAX, |bits, (slot, _)| bits & !(1 << slot)))
    }

    pub(crate) fn wants(&self, slot: Option<usize>, number: SequenceNumber, change: &Change<'_>) -> bool {
        let Some(Some(entry)) = slot.and_then(|slot| self.entries.get(slot)) else { return true };
        if !is_evaluated(change.kind, change.marks) {
            return true;
        }
        if number > entry.since {
            return slot.is_none_or(|slot| change.verdict.0 >> slot & 1 == 1);
        }
        !entry.refuses(change.payload)
    }

    /// Octets that [`Self::append_verdicts`] adds at most.
    pub(crate) fn verdict_bytes(&self) -> usize {
        20 + size_of::<FilterSignature>() * self.entries.iter().flatten().count()
    }

    /// Appends what the filters said to the inline QoS of a change.
    pub(crate) fn append_verdicts(&self, change: &Change<'_>, inline_qos: &mut Vec<u8>) {
        let mut verdicts = [(FilterSignature([0; 16]), false); FILTERS_MAX];
        let mut count = 0;
        for (slot, entry) in self.entries.iter().enumerate() {
            let judged = entry.as_ref().filter(|entry| entry.evaluates(change.payload));
            if let (Some(entry), Some(place)) = (judged, verdicts.get_mut(count)) {
                *place = (entry.signature, change.verdict.0 >> slot & 1 == 1);
                count += 1;
            }
        }
        if count > 0 {
            append_content_filter_info(inline_qos, verdicts.iter().take(count).copied());
        }
    }
}

/// Whether filters are asked about such a change.
pub(crate) fn is_evaluated(kind: ChangeKind, marks: Option<&Marks>) -> bool {
    kind == ChangeKind::Alive && marks.is_none_or(|marks| marks.set.is_none() && !marks.is_end)
}
