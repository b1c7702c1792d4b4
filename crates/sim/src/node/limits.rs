//! Limits of endpoints that have hardly any room.

use plainsong_proto::reader::ReaderLimits;
use plainsong_proto::time::Duration;
use plainsong_proto::writer::WriterLimits;

/// Room for the largest sample and little more.
pub(super) fn tight_writer() -> WriterLimits {
    WriterLimits {
        unacknowledged_bytes_max: 20_000,
        burst_bytes_local: 10_000,
        burst_bytes_remote: 4_000,
        retransmissions_max: 2,
        ..WriterLimits::default()
    }
}

/// Room for the largest sample and little more.
pub(super) fn tight_reader() -> ReaderLimits {
    ReaderLimits {
        reassembly_bytes_max: 250_000,
        reorder_samples_max: 3,
        reorder_bytes_max: 4_000,
        heartbeat_response_delay: Duration::from_millis(10),
        ..ReaderLimits::default()
    }
}
