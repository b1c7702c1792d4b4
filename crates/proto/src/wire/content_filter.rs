//! What a writer tells of the content filters it applied to a sample (`ContentFilterInfo_t`, RTPS 2.5
//! §8.7.3.3, §9.6.4.1).

use super::ParameterListView;
use super::octets::Reader;
use super::param::{ParameterListBuilder, pid};
use crate::malformed::Malformed;

/// Filters one sample tells of at most. One that tells of more tells nothing: readers filter for themselves.
pub const SIGNATURES_MAX: usize = 256;

/// What tells one filter from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterSignature(pub [u8; 16]);

/// The verdicts of filters on one sample, still in their octets.
#[derive(Clone, Copy, Debug)]
pub struct ContentFilterInfo<'a> {
    results: &'a [u8],
    signatures: &'a [u8],
    little_endian: bool,
}

impl<'a> ContentFilterInfo<'a> {
    /// From the value of the parameter.
    ///
    /// # Errors
    /// [`Malformed::Truncated`]; [`Malformed::LengthOutOfRange`] when the bitmap is longer or shorter than
    /// the signatures need, or there are more than [`SIGNATURES_MAX`].
    pub fn parse(value: &'a [u8], little_endian: bool) -> Result<Self, Malformed> {
        let mut fields = Reader::new(value, little_endian);
        let words = fields.count(SIGNATURES_MAX.div_ceil(32), 4)?;
        let results = fields.octets(4 * words)?;
        let count = fields.count(SIGNATURES_MAX, 16)?;
        if words != count.div_ceil(32) {
            return Err(Malformed::LengthOutOfRange);
        }
        Ok(Self { results, signatures: fields.octets(16 * count)?, little_endian })
    }

    /// The verdict in a sample's inline QoS, when there is a valid one.
    #[must_use]
    pub fn find(list: &ParameterListView<'a>) -> Option<Self> {
        let parameter = list.parameters().find(|it| it.known_id() == pid::CONTENT_FILTER_INFO)?;
        Self::parse(parameter.value, list.little_endian).ok()
    }

    /// Whether the sample passed the filter with this signature; `None` when it was not applied.
    #[must_use]
    pub fn result(&self, signature: &FilterSignature) -> Option<bool> {
        let index = self.signatures.chunks_exact(16).position(|octets| *octets == signature.0)?;
        let mut words = Reader::new(self.results.get(index / 32 * 4..)?, self.little_endian);
        // The first filter has the highest bit.
        Some(words.u32().ok()? << (index % 32) >> 31 == 1)
    }
}

/// Adds the verdicts of up to 32 filters to an encoded little-endian parameter list, or begins one.
pub(crate) fn append_content_filter_info(
    list: &mut Vec<u8>,
    verdicts: impl ExactSizeIterator<Item = (FilterSignature, bool)> + Clone,
) {
    const SENTINEL_BYTES: usize = 4;
    list.truncate(list.len().saturating_sub(SENTINEL_BYTES));
    let mut list = ParameterListBuilder::new(list, true);
    list.parameter(pid::CONTENT_FILTER_INFO, |value| {
        let passed = verdicts.clone().enumerate().filter(|(_, (_, passed))| *passed);
        value.u32(1);
        value.u32(passed.fold(0, |bits, (index, _)| bits | 1 << 31 >> index));
        value.u32(verdicts.len() as u32);
        verdicts.for_each(|(signature, _)| value.octets(&signature.0));
    });
    list.sentinel();
}
