//! A thread that waits for readers probes them: a process of this host may have been killed, and its lease
//! lasts long.
//!
//! Its sockets went with it, and the kernel refuses what is sent to them. Refused by all of them, the
//! participant is gone; if it is not, its next announcement brings it back. Where another process has the
//! ports by now, and on other hosts, the lease tells.
//!
//! A `write` that waits for room asks about the slowest readers, after 50 ms or four times what answers of
//! many readers took.

use plainsong_proto::backoff::Backoff;
use plainsong_proto::guid::GuidPrefix;
use plainsong_proto::time::{Duration, Instant};
use plainsong_proto::vendor::PLAINSONG as VENDOR_ID;

use crate::base::clock;
use crate::runtime::ParticipantSlot;

/// First and longest pause before somebody who waits probes; where acknowledgements usually take longer, so
/// many times that.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const USUAL_TIMES: i64 = 4;
const PAUSE_MAX: Duration = Duration::from_secs(1);
const PAUSES: Backoff = Backoff::new(PAUSE_FIRST, PAUSE_MAX);
/// So many participants are probed at a time.
const PARTICIPANTS_MAX: usize = 8;

/// When a call that waits probes next.
#[derive(Debug)]
pub(crate) struct PeerProbe {
    pause: Duration,
}

impl PeerProbe {
    /// The last acknowledgements took so long.
    pub(crate) fn new(usual: Duration) -> Self {
        Self { pause: Duration(usual.0.max(0).saturating_mul(USUAL_TIMES)).clamp(PAUSE_FIRST, PAUSE_MAX) }
    }

    /// Waits until `deadline` by `wait`, which is false when the time that it is given has passed, and calls
    /// `probe` now and then.
    pub(crate) fn wait(
        &mut self,
        deadline: Option<Instant>,
        wait: impl Fn(Option<Instant>) -> bool,
        probe: impl Fn(),
    ) -> bool {
        loop {
            let next = clock::mono().after(self.pause);
            let first = deadline.into_iter().chain(next).min();
            if wait(first) {
                return true;
            }
            if deadline.is_some_and(|deadline| deadline <= clock::mono()) {
                return false;
            }
            self.pause = PAUSES.after(self.pause);
            probe();
        }
    }
}

/// Forgets those of the participants on this host whose sockets are closed.
pub(crate) fn drop_dead_peers(participant: &ParticipantSlot, others: impl Iterator<Item = GuidPrefix>) {
    let mut others: Vec<GuidPrefix> = others.collect();
    others.dedup();
    let shared = participant.shared();
    let message = empty_message(participant.prefix);
    let is_elsewhere = |prefix: &GuidPrefix| !shared.registry.contains(*prefix);
    for prefix in others.into_iter().filter(is_elsewhere).take(PARTICIPANTS_MAX) {
        let sockets = participant.look(|control| control.sockets_on_this_host(prefix));
        if !sockets.is_empty() && sockets.iter().all(|socket| shared.transport.is_gone(socket, &message)) {
            participant.control(|control, now, out| control.participant_died(now, prefix, out));
        }
    }
}

/// A message without submessages (RTPS 2.5 §8.3.4), which means nothing to anybody.
fn empty_message(from: GuidPrefix) -> [u8; 20] {
    let mut header = *b"RTPS\x02\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    header[6..8].copy_from_slice(&VENDOR_ID);
    header[8..].copy_from_slice(&from.0);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_readers_that_take_long_probes_later() {
        let first = |usual_ms| PeerProbe::new(Duration::from_millis(usual_ms)).pause;
        assert_eq!(first(0), PAUSE_FIRST);
        assert_eq!(first(150), Duration::from_millis(600));
        assert_eq!(first(60_000), PAUSE_MAX);
    }
}
