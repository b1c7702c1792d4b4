//! What a filtering reader tells writers about its filter (`ContentFilterProperty_t`, RTPS 2.5 §9.6.3.2).

use md5::{Digest, Md5};

use super::{EXPRESSION_BYTES_MAX, PARAMETER_BYTES_MAX, PARAMETERS_MAX};
use crate::malformed::Malformed;
use crate::wire::FilterSignature;
use crate::wire::octets::{Reader, Sink};

/// Octets of a name at most.
const NAME_BYTES_MAX: usize = 256;

/// The content filter of a reader, as announced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ContentFilter {
    /// Name of the content-filtered topic.
    pub topic_name: String,
    /// Name of the topic it filters.
    pub related_topic_name: String,
    /// Language of the expression: [`ContentFilter::SQL`] or a vendor's own.
    pub class_name: String,
    /// The expression.
    pub expression: String,
    /// Values of %0, %1, ….
    pub parameters: Vec<String>,
}

impl ContentFilter {
    /// The language of DCPS 1.4 Annex B.
    pub const SQL: &str = "DDSSQL";

    pub(crate) fn encode(&self, value: &mut Sink<'_>) {
        value.string(&self.topic_name);
        value.string(&self.related_topic_name);
        value.string(&self.class_name);
        value.string(&self.expression);
        // An expression has at most 100 parameters.
        value.u32(self.parameters.len() as u32);
        self.parameters.iter().for_each(|parameter| value.string(parameter));
    }

    /// Other products' limits are higher: what exceeds ours is an error, and then the reader counts as one
    /// that filters for itself.
    pub(crate) fn decode(value: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut text = |octets_max| value.string(octets_max).map(str::to_owned);
        let topic_name = text(NAME_BYTES_MAX)?;
        let related_topic_name = text(NAME_BYTES_MAX)?;
        let class_name = text(NAME_BYTES_MAX)?;
        let expression = text(EXPRESSION_BYTES_MAX)?;
        let count = value.count(PARAMETERS_MAX, size_of::<u32>())?;
        let parameters = (0..count).map(|_| value.string(PARAMETER_BYTES_MAX).map(str::to_owned));
        let parameters = parameters.collect::<Result<_, _>>()?;
        Ok(Self { topic_name, related_topic_name, class_name, expression, parameters })
    }

    /// What tells this filter from all others: the MD5 of its strings, each with a zero octet at its end
    /// (§9.6.4.1).
    #[must_use]
    pub fn signature(&self) -> FilterSignature {
        let names = [&self.topic_name, &self.related_topic_name, &self.class_name, &self.expression];
        let mut hash = Md5::new();
        for text in names.into_iter().chain(&self.parameters) {
            hash.update(text);
            hash.update([0]);
        }
        FilterSignature(hash.finalize().into())
    }

    /// What remembering it costs, roughly, in octets.
    pub(crate) fn bytes(&self) -> usize {
        let parameters: usize = self.parameters.iter().map(|text| text.len() + size_of::<String>()).sum();
        self.topic_name.len()
            + self.related_topic_name.len()
            + self.class_name.len()
            + self.expression.len()
            + parameters
    }
}
