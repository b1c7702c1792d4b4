//! What a filtering reader tells writers about its filter (`ContentFilterProperty_t`, RTPS 2.5 §9.6.3.2).

use crate::filter::{EXPRESSION_BYTES_MAX, PARAMETER_BYTES_MAX, PARAMETERS_MAX};
use crate::malformed::Malformed;
use crate::wire::octets::{Reader, Sink};

use super::builtin::NAME_BYTES_MAX;

/// The content filter of a reader, as announced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

    pub(super) fn encode(&self, value: &mut Sink<'_>) {
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
    pub(super) fn decode(value: &mut Reader<'_>) -> Result<Self, Malformed> {
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

    /// What remembering it costs, roughly, in octets.
    pub(super) fn bytes(&self) -> usize {
        let parameters: usize = self.parameters.iter().map(|text| text.len() + size_of::<String>()).sum();
        self.topic_name.len()
            + self.related_topic_name.len()
            + self.class_name.len()
            + self.expression.len()
            + parameters
    }
}
