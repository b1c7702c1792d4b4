//! What `read` and `take` return, and where.

use std::ops::Deref;

use plainsong_proto::cdr::{self, DdsType};
use plainsong_proto::instance::InstanceHandle;
use plainsong_proto::malformed::Malformed;
use plainsong_proto::payload::COPIED_BYTES_MAX;
use plainsong_proto::reader::{CachedSample, rank_together};
pub use plainsong_proto::sample_info::{Agreed, InstanceState, SampleInfo, SampleState, ViewState};

use crate::base::large_stack::on_fitting_stack;

/// So many samples of a buffer keep their memory when it is cleared.
const PLACES_KEPT: usize = 4_096;

/// One sample, or a change of its instance's state (`data` is `None`).
#[derive(Clone, Debug)]
pub struct Sample<T> {
    /// The value, when there is one.
    pub data: Option<T>,
    /// Facts about it.
    pub info: SampleInfo,
}

/// Samples that are taken again and again into the same memory
/// ([`crate::data_reader::DataReader::take_reusing`]): that of strings and sequences, too.
///
/// It is a slice of samples. Whoever is done with them may [`clear`](Self::clear) it, or leave that to the
/// next call.
#[derive(Debug)]
pub struct SampleBuffer<T> {
    /// Those after the first `len` are there for their memory only.
    places: Vec<Sample<T>>,
    len: usize,
    /// Some are long: they keep memory in which others arrive.
    has_long: bool,
}

impl<T> SampleBuffer<T> {
    /// No samples.
    #[must_use]
    pub const fn new() -> Self {
        Self { places: Vec::new(), len: 0, has_long: false }
    }

    /// Forgets the samples. The memory of 4,096 short ones stays, that of long ones (more than 1,280 octets
    /// on the wire) goes back.
    pub fn clear(&mut self) {
        self.len = 0;
        let kept = if std::mem::take(&mut self.has_long) { 0 } else { PLACES_KEPT };
        self.places.truncate(kept);
    }
}

impl<T> Default for SampleBuffer<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for SampleBuffer<T> {
    type Target = [Sample<T>];

    fn deref(&self) -> &[Sample<T>] {
        self.places.get(..self.len).unwrap_or(&[])
    }
}

impl<T> AsMut<[Sample<T>]> for SampleBuffer<T> {
    fn as_mut(&mut self) -> &mut [Sample<T>] {
        self.places.get_mut(..self.len).unwrap_or_default()
    }
}

impl<'a, T> IntoIterator for &'a SampleBuffer<T> {
    type Item = &'a Sample<T>;
    type IntoIter = std::slice::Iter<'a, Sample<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Where samples go when they were taken out of a reader.
pub(crate) trait Store: Send {
    /// Octets of a value that is on the stack while it is stored; 0 where none is.
    const VALUE_BYTES: usize;

    /// How many there are.
    fn count(&self) -> usize;

    /// Appends those that decode; the places of the others, and what is wrong with them.
    fn store(&mut self, samples: &[CachedSample]) -> Vec<(usize, Malformed)>;

    /// Those from `start` on came by and by: ranks them anew, and puts those of an instance together if they
    /// are to be.
    fn settle(&mut self, start: usize, grouped: bool);
}

impl<T: DdsType> Store for Vec<Sample<T>> {
    const VALUE_BYTES: usize = size_of::<T>();

    fn count(&self) -> usize {
        self.len()
    }

    fn store(&mut self, samples: &[CachedSample]) -> Vec<(usize, Malformed)> {
        self.reserve(samples.len());
        let mut undecodable = Vec::new();
        for (at, sample) in samples.iter().enumerate() {
            match decode(sample) {
                Ok(data) => self.push(Sample { data, info: sample.info }),
                Err(reason) => undecodable.push((at, reason)),
            }
        }
        undecodable
    }

    fn settle(&mut self, start: usize, grouped: bool) {
        settle_typed(self.get_mut(start..).unwrap_or_default(), grouped);
    }
}

impl<T: DdsType> Store for SampleBuffer<T> {
    const VALUE_BYTES: usize = size_of::<T>();

    fn count(&self) -> usize {
        self.len
    }

    fn store(&mut self, samples: &[CachedSample]) -> Vec<(usize, Malformed)> {
        let mut undecodable = Vec::new();
        for (at, sample) in samples.iter().enumerate() {
            self.has_long |= sample.payload.len() > COPIED_BYTES_MAX;
            if let Err(reason) = self.put(sample) {
                undecodable.push((at, reason));
            }
        }
        undecodable
    }

    fn settle(&mut self, start: usize, grouped: bool) {
        settle_typed(self.places.get_mut(start..self.len).unwrap_or_default(), grouped);
    }
}

fn settle_typed<T: Send>(samples: &mut [Sample<T>], grouped: bool) {
    let mut settle =
        |grouped| settle(samples, |sample| sample.info.instance_handle, |sample| &mut sample.info, grouped);
    if !grouped {
        return settle(false);
    }
    // Sorting moves values by way of the stack. Without room for them they stay as they are.
    if on_fitting_stack::<T, _>(0, || settle(true)).is_err() {
        settle(false);
    }
}

/// What [`Store::settle`] does with samples in a row.
pub(crate) fn settle<S>(
    samples: &mut [S],
    instance: impl Fn(&S) -> InstanceHandle,
    info: impl Fn(&mut S) -> &mut SampleInfo,
    grouped: bool,
) {
    if grouped {
        samples.sort_by_key(instance);
    }
    let mut infos: Vec<_> = samples.iter_mut().map(info).collect();
    rank_together(&mut infos);
}

impl<T: DdsType> SampleBuffer<T> {
    #[inline]
    fn put(&mut self, sample: &CachedSample) -> Result<(), Malformed> {
        match self.places.get_mut(self.len) {
            Some(Sample { data: Some(value), info }) if sample.info.valid_data => {
                cdr::from_shared_payload_over(&sample.payload, value)?;
                *info = sample.info;
            }
            Some(place) => *place = Sample { data: decode(sample)?, info: sample.info },
            None => self.places.push(Sample { data: decode(sample)?, info: sample.info }),
        }
        self.len += 1;
        Ok(())
    }
}

#[inline]
fn decode<T: DdsType>(sample: &CachedSample) -> Result<Option<T>, Malformed> {
    sample.info.valid_data.then(|| cdr::from_shared_payload(&sample.payload)).transpose()
}

#[cfg(test)]
mod tests {
    use plainsong_derive::DdsType;
    use plainsong_proto::cdr::{Endianness, XcdrVersion};
    use plainsong_proto::payload::Payload;
    use plainsong_proto::sample_info::{InstanceState, SampleState, ViewState};
    use plainsong_proto::time::Time;

    use super::*;

    #[derive(DdsType)]
    #[dds(crate = "plainsong_proto")]
    struct Note {
        text: String,
    }

    fn cached(payload: Payload, valid_data: bool) -> CachedSample {
        let info = SampleInfo {
            sample_state: SampleState::NotRead,
            view_state: ViewState::New,
            instance_state: InstanceState::Alive,
            disposed_generation_count: 0,
            no_writers_generation_count: 0,
            sample_rank: 0,
            generation_rank: 0,
            absolute_generation_rank: 0,
            source_timestamp: Time(0),
            reception_timestamp: Time(0),
            instance_handle: InstanceHandle::NIL,
            publication_handle: InstanceHandle::NIL,
            valid_data,
            agreed: Agreed::default(),
        };
        CachedSample { info, id: 0, payload }
    }

    fn note(text: &str) -> CachedSample {
        let mut payload = Vec::new();
        let note = Note { text: text.to_owned() };
        cdr::to_payload(&note, XcdrVersion::Xcdr2, Endianness::Little, &mut payload).unwrap();
        cached(Payload::from_vec(payload), true)
    }

    fn texts(samples: &SampleBuffer<Note>) -> Vec<Option<&str>> {
        samples.iter().map(|sample| sample.data.as_ref().map(|note| note.text.as_str())).collect()
    }

    #[test]
    fn what_cannot_be_decoded_is_counted_and_leaves_no_trace() {
        let garbled = || cached(Payload::from_vec(vec![0, 7, 0, 0, 0xff, 0xff, 0xff, 0xff]), true);
        let ended = || cached(Payload::empty(), false);
        let mut samples = SampleBuffer::new();
        for _ in 0..3 {
            samples.clear();
            assert!(samples.is_empty());
            let undecodable =
                samples.store(&[note("a"), garbled(), note("b"), ended(), garbled(), note("c")]);
            let places: Vec<_> = undecodable.iter().map(|(at, _)| *at).collect();
            assert_eq!(places, [1, 4]);
            assert_eq!(texts(&samples), [Some("a"), Some("b"), None, Some("c")]);
        }
        assert_eq!(samples.store(&[note("d")]), [], "what is stored without clearing comes behind");
        assert_eq!(texts(&samples), [Some("a"), Some("b"), None, Some("c"), Some("d")]);
    }

    #[test]
    fn memory_is_kept_but_not_that_of_long_samples_or_of_too_many() {
        let mut samples = SampleBuffer::new();
        samples.store(&[note("a long one"), note("another")]);
        let place = |samples: &SampleBuffer<Note>| samples[0].data.as_ref().unwrap().text.as_ptr();
        let first = place(&samples);
        samples.clear();
        samples.store(&[note("a short")]);
        assert_eq!((place(&samples), texts(&samples)), (first, vec![Some("a short")]));

        samples.store(&[note(&"long".repeat(COPIED_BYTES_MAX))]);
        samples.clear();
        assert_eq!(samples.places.len(), 0);

        let many: Vec<_> = (0..=PLACES_KEPT).map(|_| note("")).collect();
        samples.store(&many);
        assert_eq!(samples.len(), PLACES_KEPT + 1);
        samples.clear();
        assert_eq!(samples.places.len(), PLACES_KEPT);
    }
}
