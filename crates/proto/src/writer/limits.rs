//! Which limit keeps a writer from writing.

use std::fmt;

use super::{WriteError, Writer, bound};
use crate::tuning::writer::CHANGE_OVERHEAD_BYTES;

/// What bounds the changes of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// RESOURCE_LIMITS max_samples.
    Samples,
    /// RESOURCE_LIMITS max_samples_per_instance.
    SamplesPerInstance,
    /// RESOURCE_LIMITS max_instances, or [`super::WriterLimits::instances_max`].
    Instances,
    /// [`super::WriterLimits::unacknowledged_bytes_max`], or the part of it that the readers there are leave.
    UnacknowledgedBytes,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Samples => "RESOURCE_LIMITS max_samples",
            Self::SamplesPerInstance => "RESOURCE_LIMITS max_samples_per_instance",
            Self::Instances => "RESOURCE_LIMITS max_instances",
            Self::UnacknowledgedBytes => "unacknowledged_bytes_max",
        })
    }
}

impl Writer {
    /// Which limit it was that [`WriteError::Full`] told of last.
    #[must_use]
    pub const fn full_by(&self) -> Limit {
        self.full_by
    }

    /// A limit with its value.
    #[must_use]
    pub fn limit_in_words(&self, limit: Limit) -> String {
        let (qos, most) = (&self.config.qos.resource_limits, &self.config.limits);
        match limit {
            Limit::Samples => format!("{limit} = {}", qos.max_samples),
            Limit::SamplesPerInstance => format!("{limit} = {}", qos.max_samples_per_instance),
            Limit::Instances if bound(qos.max_instances) > most.instances_max => {
                format!("the bound of {} instances of any writer", most.instances_max)
            }
            Limit::Instances => format!("{limit} = {}", qos.max_instances),
            Limit::UnacknowledgedBytes => format!(
                "{limit} = {} (for these readers {} octets, {CHANGE_OVERHEAD_BYTES} of them for each sample)",
                most.unacknowledged_bytes_max, self.window_bytes
            ),
        }
    }

    pub(super) const fn full(&mut self, limit: Limit) -> WriteError {
        self.full_by = limit;
        WriteError::Full
    }
}
