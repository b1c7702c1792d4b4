//! The settings, in the form the protocol core wants them.

use plainsong_proto::discovery::ParticipantConfig;
use plainsong_proto::reader::ReaderLimits;
use plainsong_proto::time::Duration;
use plainsong_proto::writer::WriterLimits;

use crate::base::config::Config;

impl Config {
    /// Limits of every writer.
    pub(crate) fn writer_limits(&self) -> WriterLimits {
        let defaults = WriterLimits::default();
        WriterLimits {
            datagram_bytes_max_local: self.datagram_bytes_max_local,
            // What no path was told of may take.
            datagram_bytes_max_remote: defaults.datagram_bytes_max_remote.min(self.datagram_bytes_max),
            sample_bytes_max: self.sample_bytes_max,
            unacknowledged_bytes_max: self.unacknowledged_bytes_max,
            batch_bytes: self.batch_bytes,
            memory_ring_bytes: self.memory_ring_bytes,
            ..defaults
        }
    }

    /// Limits of every reader.
    pub(crate) fn reader_limits(&self) -> ReaderLimits {
        let defaults = ReaderLimits::default();
        // What is incomplete counts with what keeping it takes: the longest sample has to fit.
        let longest =
            self.sample_bytes_max.saturating_add(self.sample_bytes_max / 64).saturating_add(64 << 10);
        ReaderLimits {
            sample_bytes_max: self.sample_bytes_max,
            reassembly_bytes_max: defaults.reassembly_bytes_max.max(longest),
            ..defaults
        }
    }

    /// Sets what a participant announces about itself.
    pub(crate) fn apply_to(&self, config: &mut ParticipantConfig) {
        config.lease_duration = millis(self.lease_duration_ms);
        config.announce_period = millis(self.announce_period_ms);
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}
